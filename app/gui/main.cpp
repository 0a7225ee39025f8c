// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/output.h"

#include "core/support/file.h"
#include "core/support/host_memory.h"
#include "core/support/text.h"
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
#include <optional>

namespace {

using namespace meshwright;

int fail(const Problems& problems)
{
    std::fprintf(stderr, "%s\n", describe(problems).c_str());
    return cli::exitCodeOf(problems);
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

Options optionsOf()
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
    if (!parser.parse(QApplication::arguments())) {
        std::fprintf(stderr, "%s\n", qPrintable(parser.errorText()));
        std::exit(cli::kExitUsage);
    }
    if (parser.isSet("help"))
        parser.showHelp(cli::kExitOk);
    if (parser.isSet("version"))
        parser.showVersion();
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
            std::exit(cli::kExitUsage);
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
    return code < 0 ? cli::kExitFailed : code;
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
    return written ? cli::kExitOk : fail(written.error());
}

/// The size of "1024x700"; none of it: not given.
std::optional<QSize> sizeOf(const QString& text)
{
    const QStringList sides = text.split(QLatin1Char('x'));
    if (sides.size() != 2)
        return std::nullopt;
    bool isWide = false;
    bool isHigh = false;
    const QSize size(sides[0].toInt(&isWide), sides[1].toInt(&isHigh));
    constexpr int kMostSide = 16'384;
    const bool isSize = isWide && isHigh && !size.isEmpty() && std::max(size.width(), size.height()) <= kMostSide;
    return isSize ? std::optional(size) : std::nullopt;
}

/// Options whose values name nothing that the program has.
Problems unknownValues(const Options& options, const ui::Workbench& workbench)
{
    Problems problems;
    const auto check = [&](const char* option, const QString& value, const std::vector<std::string>& known) {
        if (!value.isEmpty() && std::ranges::find(known, value.toStdString()) == known.end())
            problems.push_back({"MW1903", fmt::format("{}: \"{}\" is not allowed here", option, value.toStdString()),
                "one of: " + join(known, ", ")});
    };
    std::vector<std::string> views;
    for (const ui::Perspective& perspective : workbench.perspectives())
        views.push_back(perspective.id.toStdString());
    for (const ui::View* view : workbench.views()) {
        if (const std::string name = view->objectName().toStdString(); std::ranges::find(views, name) == views.end())
            views.push_back(name);
    }
    check("--view", options.view, views);
    check("--theme", options.theme, {"system", "light", "dark", "contrast"});
    if (!options.size.isEmpty() && !sizeOf(options.size))
        problems.push_back({"MW1903", fmt::format("--size: \"{}\" is not a size", options.size.toStdString()),
            "write width x height in pixels, such as 1024x700"});
    return problems;
}

/// Raises the view, and once it is drawn saves the window as a picture and ends.
void savePictureSoon(ui::MainWindow& window, const Options& options)
{
    constexpr int kDrawingMilliseconds = 400;
    window.workbench().showPerspective(options.view);
    if (const ui::View* view = window.workbench().findView(options.view))
        window.workbench().showView(view);
    QTimer::singleShot(
        kDrawingMilliseconds, &window, [&window, options] { QApplication::exit(savePicture(window, options.picture)); });
}

/// Opens the file and saves a picture of it, or says why the file is refused. Returns the exit code.
int takePicture(ui::MainWindow& window, const Options& options)
{
    constexpr int kReadingMilliseconds = 50;
    constexpr int kSettlingMilliseconds = 600;
    std::optional<int> refused;
    window.setRefusalHandler([&](const QString& what, const Problems& problems) {
        std::fprintf(stderr, "%s\n", qPrintable(what));
        refused = fail(problems);
        QApplication::exit(*refused); // where the file was read while the program ran
    });
    QObject::connect(&window.workbench(), &ui::Workbench::shown, &window, [&] { savePictureSoon(window, options); });
    if (!options.file.isEmpty())
        window.openFile(options.file);
    if (refused)
        return *refused;
    if (!options.settings.isEmpty() && !window.document().source().text.empty())
        window.document().change(options.settings, QStringLiteral("the command line"));
    QTimer reading; // only a study reports that it is shown; other files are drawn once they are read
    QObject::connect(&reading, &QTimer::timeout, &window, [&] {
        if (window.isReading())
            return;
        reading.stop();
        if (window.document().source().text.empty())
            QTimer::singleShot(kSettlingMilliseconds, &window, [&] { savePictureSoon(window, options); });
    });
    reading.start(kReadingMilliseconds);
    return QApplication::exec();
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
        return cli::kExitUsage;
    }
    QApplication application(argc, argv);
    QApplication::setApplicationName("meshwright-gui");
    QApplication::setApplicationDisplayName("Meshwright");
    QApplication::setApplicationVersion(kVersion);
    const Options options = optionsOf();
    if (!hasLetters())
        std::fprintf(stderr, "no usable font is installed: install one, such as the package fonts-dejavu-core\n");

    if (!options.benchmark.isEmpty())
        return runBenchmark(options.benchmark);
    if (!options.print.isEmpty()) {
        const auto printed
            = ui::printReport(options.print, options.output.isEmpty() ? QStringLiteral("report.pdf") : options.output);
        return printed ? cli::kExitOk : fail(printed.error());
    }
    ui::MainWindow::Places places = ui::MainWindow::defaultPlaces();
    ui::applyTheme(application, themeChoice(options.theme, places.settings));

    auto catalogue = sim::defaultCatalogue();
    if (!catalogue)
        return fail(catalogue.error());
    ui::MainWindow window(std::make_shared<sim::Session>(*std::move(catalogue)), places);
    if (const Problems unknown = unknownValues(options, window.workbench()); !unknown.empty())
        return fail(unknown);
    if (const auto size = sizeOf(options.size))
        window.resize(*size);
    window.show();
    if (!options.picture.isEmpty())
        return takePicture(window, options);
    if (!options.file.isEmpty())
        window.openFile(options.file);
    if (!options.settings.isEmpty() && !window.document().source().text.empty())
        window.document().change(options.settings, QStringLiteral("the command line"));
    QTimer::singleShot(0, &window, &ui::MainWindow::offerRecovery);
    return QApplication::exec();
}
