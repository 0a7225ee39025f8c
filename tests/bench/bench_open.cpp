// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes to open, and then a study until every view that is seen shows it and until it is proved: bench_open [file].
// Prints {"start_ms", "shown_ms", "shown_cpu_ms", "drawn_ms", "proved_ms"}; without a file the first alone. The third is CPU time; "drawn_ms" is the time until all views, hidden ones too, have the
// analysis and have drawn it. Offscreen is enough: QT_QPA_PLATFORM=offscreen.
#include "ui/theme/theme.h"
#include "ui/widgets/view.h"
#include "ui/window/main_window.h"
#include "ui/window/workbench.h"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPixmap>
#include <QTimer>

#include <cstdio>
#include <ctime>
#include <memory>

using namespace meshwright;
using namespace meshwright::ui;

int main(int argc, char** argv)
{
    QElapsedTimer timer;
    timer.start();
    const auto milliseconds = [&] { return static_cast<double>(timer.nsecsElapsed()) * 1e-6; };
    QApplication application(argc, argv);
    applyTheme(application, ThemeChoice::Light);
    auto catalogue = sim::defaultCatalogue();
    if (!catalogue) {
        std::fprintf(stderr, "%s\n", describe(catalogue.error()).c_str());
        return 1;
    }
    MainWindow window(std::make_shared<sim::Session>(*std::move(catalogue)), MainWindow::defaultPlaces());
    window.show();
    (void)window.grab();
    fmt::print("{{\"start_ms\": {:.0f}", milliseconds());
    if (argc > 1) {
        Workbench& workbench = window.workbench();
        QEventLoop loop;
        bool isProved = false;
        double proved = 0.0;
        QObject::connect(&workbench, &Workbench::shown, &loop, &QEventLoop::quit);
        QObject::connect(&workbench, &Workbench::proved, &loop, [&] {
            isProved = true;
            proved = milliseconds();
            loop.quit();
        });
        timer.restart();
        const std::clock_t before = std::clock();
        if (!window.openFile(QString::fromLocal8Bit(argv[1])))
            return 1;
        loop.exec();
        (void)window.grab();
        const double shown = milliseconds();
        const double cpu = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
        for (View* view : workbench.views()) {
            view->bringUpToDate();
            (void)view->grab();
        }
        const double drawn = milliseconds();
        const auto& analysis = workbench.analysis();
        if (analysis && analysis->built && !analysis->proof && !isProved)
            loop.exec();
        fmt::print(", \"shown_ms\": {:.0f}, \"shown_cpu_ms\": {:.0f}, \"drawn_ms\": {:.0f}, \"proved_ms\": {:.0f}", shown, cpu,
            drawn, proved);
    }
    fmt::print("}}\n");
    return 0;
}
