// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/host_memory.h"
#include "core/support/version.h"
#include "ui/report/report_files.h"
#include "ui/widgets/view.h"
#include "ui/window/main_window.h"
#include "ui/window/workbench.h"

#include <fmt/format.h>

#include <QApplication>
#include <QBuffer>
#include <QCommandLineParser>
#include <QFileInfo>
#include <QFontMetrics>
#include <QProcess>
#include <QTimer>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace {

using namespace meshwright;

/// The command line's exit codes; see design of the command line.
enum ExitCode : int { kOk = 0, kUsage = 2, kInvalid = 3, kFailed = 6 };

int fail(const Problems& problems)
{
    std::fprintf(stderr, "%s\n", describe(problems).c_str());
    const bool isFull
        = std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.id == "MW1007"; });
    return isFull ? kFailed : kInvalid;
}

bool hasDisplay()
{
    return qEnvironmentVariableIsSet("QT_QPA_PLATFORM") || qEnvironmentVariableIsSet("DISPLAY")
        || qEnvironmentVariableIsSet("WAYLAND_DISPLAY");
}

/// Whether any argument asks for work that shows no window.
bool needsNoDisplay(int argc, char** argv)
{
    for (int i = 1; i < argc; ++i) {
        const QByteArray argument(argv[i]);
        for (const char* option : {"--print", "--benchmark", "--picture", "--help", "--version", "-h", "-v"}) {
            if (argument.startsWith(option))
                return true;
        }
    }
    return false;
}

/// Without any font every letter is an empty box, and nothing else fails.
bool hasLetters()
{
    const QFontMetrics metrics(QApplication::font());
    return metrics.inFont(QLatin1Char('A')) && metrics.inFont(QLatin1Char('0'));
}

struct Options {
    QString file;
    QString print;
    QString output;
    QString picture;
    QString view;
    QString size;
    QStringList settings; ///< of the study: `path=value`
    QString theme;
    QStringList benchmark; ///< a program of tests/bench and its arguments; empty: none
};

Options optionsOf(const QApplication& application)
{
    QCommandLineParser parser;
    parser.setApplicationDescription("The desktop program of Meshwright. Without a file it opens its start page.");
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addPositionalArgument(
        "file", "A study, a program, a model's config.json, a report of Meshwright, or a log.", "[file]");
    parser.addOptions({{"theme", "system, light, dark or contrast.", "theme"},
        {"set", "Sets a value of the study, or of the program in its place; may be undone.", "path=value"},
        {"print", "Prints a report to a PDF and exits.", "report.html"},
        {{"o", "output"}, "The file that --print writes.", "report.pdf"},
        {"picture", "Opens the file, saves a picture of the window and exits.", "window.png"},
        {"view",
            "What --picture shows: a perspective (design, time, memory, search, train, explain, pages, report) or a view (mesh).",
            "view"},
        {"size", "The window's size for --picture, such as 1024x700.", "size"},
        {"benchmark",
            "Measures and exits: edit (200 edits until every view shows them), chips (edits of a transformer on 4,096 chips), "
            "timeline [slices] (a "
            "frame), graph [nodes] (laying out a program, and frames while it is moved), start (until the window is there), open "
            "[file] (until a study is shown), search (searches of plans).",
            "name"}});
    parser.process(application);
    Options options;
    options.file = parser.positionalArguments().value(0);
    options.settings = parser.values("set");
    options.print = parser.value("print");
    options.output = parser.value("output");
    options.picture = parser.value("picture");
    options.view = parser.value("view");
    options.size = parser.value("size");
    options.theme = parser.value("theme");
    if (const QString benchmark = parser.value("benchmark"); !benchmark.isEmpty()) {
        static const std::map<QString, QStringList> kPrograms
            = {{"edit", {"bench_edits"}}, {"chips", {"bench_edits", "40", "chips"}}, {"timeline", {"bench_timeline"}},
                {"graph", {"bench_graph"}}, {"start", {"bench_open"}}, {"open", {"bench_open"}}, {"search", {"bench_search"}}};
        const auto program = kPrograms.find(benchmark);
        if (program == kPrograms.end()) {
            std::fprintf(stderr,
                "--benchmark %s: there is none of this name: write edit, chips, timeline, graph, start, open or search\n",
                qPrintable(benchmark));
            std::exit(kUsage);
        }
        options.benchmark = program->second + parser.positionalArguments();
    }
    return options;
}

ui::ThemeChoice themeChoice(const QString& name, const QString& settings)
{
    if (name == QLatin1String("light"))
        return ui::ThemeChoice::Light;
    if (name == QLatin1String("dark"))
        return ui::ThemeChoice::Dark;
    if (name == QLatin1String("contrast"))
        return ui::ThemeChoice::HighContrast;
    return static_cast<ui::ThemeChoice>(QSettings(settings, QSettings::IniFormat).value("theme", 0).toInt());
}

/// Benchmarks of the window are programs of their own, beside this one.
int runBenchmark(const QStringList& benchmark)
{
    const QString program = QApplication::applicationDirPath() + QLatin1Char('/') + benchmark.front();
    const int code = QFileInfo::exists(program) ? QProcess::execute(program, benchmark.mid(1)) : -2;
    if (code < 0)
        std::fprintf(stderr, "%s cannot be started: build the target `benchmarks`\n", qPrintable(program));
    return code < 0 ? kFailed : code;
}

int savePicture(QWidget& window, const QString& path)
{
    QByteArray png;
    QBuffer buffer(&png);
    const QByteArray format = QFileInfo(path).suffix().toUpper().toLatin1();
    if (!buffer.open(QIODevice::WriteOnly) || !window.grab().save(&buffer, format.constData()))
        return fail({Problem{"MW1801", fmt::format("\"{}\" is not a known picture format", path.toStdString()),
            "end the name in .png", Place{path.toStdString()}}});
    const auto written = writeFileAtomically(path.toStdString(), png.toStdString());
    return written ? kOk : fail(written.error());
}

/// Once the study is shown: raises the view, saves the window as a picture, ends.
void savePictureWhenShown(ui::MainWindow& window, const Options& options)
{
    QObject::connect(&window.workbench(), &ui::Workbench::shown, &window, [&window, options] {
        window.workbench().showPerspective(options.view);
        if (const ui::View* view = window.workbench().findView(options.view))
            window.workbench().showView(view);
        QTimer::singleShot(400, &window, [&window, options] { QApplication::exit(savePicture(window, options.picture)); });
    });
}

} // namespace

int main(int argc, char** argv)
{
    growHeapInLargeSteps();
    reserveStandardStreams();
    std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is told where it is written
    std::signal(SIGPIPE, SIG_IGN);
    if (needsNoDisplay(argc, argv) && !hasDisplay())
        qputenv("QT_QPA_PLATFORM", "offscreen");
    if (!hasDisplay()) {
        std::fprintf(stderr,
            "there is no display: start the program on a desktop, use `meshwright` for everything on the command line, "
            "or set QT_QPA_PLATFORM=offscreen\n");
        return kUsage;
    }
    QApplication application(argc, argv);
    QApplication::setApplicationName("meshwright-gui");
    QApplication::setApplicationDisplayName("Meshwright");
    QApplication::setApplicationVersion(kVersion);
    const Options options = optionsOf(application);
    if (!hasLetters())
        std::fprintf(stderr, "no usable font is installed: install one, such as the package fonts-dejavu-core\n");

    if (!options.benchmark.isEmpty())
        return runBenchmark(options.benchmark);
    if (!options.print.isEmpty()) {
        const auto printed
            = ui::printReport(options.print, options.output.isEmpty() ? QStringLiteral("report.pdf") : options.output);
        return printed ? kOk : fail(printed.error());
    }
    ui::MainWindow::Places places = ui::MainWindow::defaultPlaces();
    ui::applyTheme(application, themeChoice(options.theme, places.settings));

    auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error());
    ui::MainWindow window(std::make_shared<sim::Session>(*std::move(catalogue)), places);
    if (const QStringList size = options.size.split(QLatin1Char('x')); size.size() == 2)
        window.resize(size[0].toInt(), size[1].toInt());
    window.show();
    if (!options.picture.isEmpty())
        savePictureWhenShown(window, options);
    if (!options.file.isEmpty())
        window.openFile(options.file);
    if (!options.settings.isEmpty() && !window.document().source().text.empty())
        window.document().change(options.settings, QStringLiteral("the command line"));
    if (!options.picture.isEmpty() && window.document().source().text.empty()) // no study is to be shown
        QTimer::singleShot(1000, &window, [&] { QApplication::exit(savePicture(window, options.picture)); });
    QTimer::singleShot(0, &window, &ui::MainWindow::offerRecovery);
    return QApplication::exec();
}
