// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/benchmark_edit.h"

#include "ui/window/main_window.h"
#include "ui/window/start_page.h"
#include "ui/window/view_dock.h"
#include "ui/window/workbench.h"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPixmap>
#include <QTimer>

namespace meshwright::ui {

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

/// Until every view has the analysis and has been drawn.
void waitUntilShown(Workbench& workbench)
{
    QEventLoop loop;
    QObject::connect(&workbench, &Workbench::shown, &loop, &QEventLoop::quit);
    QTimer::singleShot(30'000, &loop, &QEventLoop::quit);
    loop.exec();
    for (const ViewDock* dock : workbench.docks())
        (void)dock->view()->grab();
    QApplication::processEvents();
}

} // namespace

std::string benchmarkEdits(MainWindow& window, std::int64_t edits)
{
    Workbench& workbench = window.workbench();
    window.openExample(window.findChild<StartPage*>()->examples().front());
    waitUntilShown(workbench);
    std::vector<double> milliseconds;
    for (std::int64_t i = 0; i < edits; ++i) {
        QElapsedTimer timer;
        timer.start();
        window.document().change(editNumber(i), QStringLiteral("edit"));
        waitUntilShown(workbench);
        milliseconds.push_back(static_cast<double>(timer.nsecsElapsed()) * 1e-6);
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    const auto quantile = [&](double share) {
        return milliseconds[static_cast<std::size_t>(share * static_cast<double>(milliseconds.size() - 1))];
    };
    window.document().undoStack().setClean();
    return fmt::format("{{\"edits\": {}, \"p50_ms\": {:.2f}, \"p95_ms\": {:.2f}, \"max_ms\": {:.2f}, \"views\": {}}}", edits,
        quantile(0.5), quantile(0.95), milliseconds.back(), workbench.docks().size() + 2);
}

} // namespace meshwright::ui
