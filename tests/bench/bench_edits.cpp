// SPDX-License-Identifier: GPL-3.0-or-later
// How long an edit takes until every view has the new analysis and has drawn it; all views count, hidden ones too: bench_edits [edits] [chips].
// The study is the notebook's MLP; with "chips" a transformer on 4,096 chips.
// Prints {"edits", "p50_ms", "p95_ms", "max_ms", "views"}. Offscreen is enough: QT_QPA_PLATFORM=offscreen.
#include "ui/theme/theme.h"
#include "ui/widgets/view.h"
#include "ui/window/main_window.h"
#include "ui/window/start_page.h"
#include "ui/window/workbench.h"

#include <fmt/format.h>

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QFileInfo>
#include <QPixmap>
#include <QTimer>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace meshwright;
using namespace meshwright::ui;

namespace {

/// No two edits lead to the same study, so that nothing is answered from memory.
QStringList editNumber(std::int64_t number)
{
    static const char* const kMeshes[]
        = {"{data: 8, model: 1}", "{data: 4, model: 2}", "{data: 2, model: 4}", "{data: 1, model: 8}"};
    static const char* const kSpecs[] = {"P(None, 'model')", "P('model', None)", "P()", "P('data', 'model')"};
    switch (number % 4) {
    case 0:
        return {QStringLiteral("mesh=%1").arg(QString::fromUtf8(kMeshes[number / 4 % 4]))};
    case 1:
        return {QStringLiteral("batch=%1").arg(4096 + 64 * number)};
    case 2:
        return {QStringLiteral("sharding.layers.1.w=%1").arg(QString::fromUtf8(kSpecs[number / 4 % 4]))};
    default:
        return {QStringLiteral("model.mlp.layers.2=%1").arg(4096 + 64 * number)};
    }
}

/// The same of the transformer on 4,096 chips.
QStringList chipsEditNumber(std::int64_t number)
{
    static const char* const kMeshes[] = {"{data: 512, model: 8}", "{data: 256, model: 16}", "{data: 128, model: 32}"};
    return {number % 2 == 0 ? QStringLiteral("mesh=%1").arg(QString::fromUtf8(kMeshes[number / 2 % 3]))
                            : QStringLiteral("batch=%1").arg(4096 + 512 * number)};
}

/// Until every view has the analysis and has been drawn.
void waitUntilShown(Workbench& workbench)
{
    QEventLoop loop;
    QObject::connect(&workbench, &Workbench::shown, &loop, &QEventLoop::quit);
    QTimer::singleShot(30'000, &loop, &QEventLoop::quit);
    loop.exec();
    for (View* view : workbench.views()) {
        view->bringUpToDate();
        (void)view->grab();
    }
    QApplication::processEvents();
}

} // namespace

int main(int argc, char** argv)
{
    const std::int64_t edits = argc > 1 ? std::max(1LL, std::atoll(argv[1])) : 200;
    QApplication application(argc, argv);
    applyTheme(application, ThemeChoice::Light);
    MainWindow::Places places = MainWindow::defaultPlaces();
    auto catalogue = sim::defaultCatalogue();
    if (!catalogue) {
        std::fprintf(stderr, "%s\n", describe(catalogue.error()).c_str());
        return 1;
    }
    MainWindow window(std::make_shared<sim::Session>(*std::move(catalogue)), places);
    window.show();
    Workbench& workbench = window.workbench();
    const bool isChips = argc > 2 && std::string_view(argv[2]) == "chips";
    const QString first = window.findChild<StartPage*>()->examples().front();
    window.openExample(isChips ? QFileInfo(first).dir().filePath(QStringLiteral("transformer_64.yaml")) : first);
    waitUntilShown(workbench);
    if (isChips) {
        window.document().change({QStringLiteral("hardware={chip: v5p, topology: [16, 16, 16]}"),
                                     QStringLiteral("mesh={data: 256, model: 16}"), QStringLiteral("batch=4096")},
            QStringLiteral("4,096 chips"));
        waitUntilShown(workbench);
    }
    std::vector<double> milliseconds;
    for (std::int64_t i = 0; i < edits; ++i) {
        QElapsedTimer timer;
        timer.start();
        window.document().change(isChips ? chipsEditNumber(i) : editNumber(i), QStringLiteral("edit"));
        waitUntilShown(workbench);
        milliseconds.push_back(static_cast<double>(timer.nsecsElapsed()) * 1e-6);
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    const auto quantile = [&](double share) {
        return milliseconds[static_cast<std::size_t>(share * static_cast<double>(milliseconds.size() - 1))];
    };
    window.document().undoStack().setClean();
    fmt::print("{{\"edits\": {}, \"p50_ms\": {:.2f}, \"p95_ms\": {:.2f}, \"max_ms\": {:.2f}, \"views\": {}}}\n", edits,
        quantile(0.5), quantile(0.95), milliseconds.back(), workbench.views().size() + 2);
    return 0;
}
