// SPDX-License-Identifier: GPL-3.0-or-later
// How long frames of the timeline view take: bench_timeline [slices...]. Offscreen is enough: QT_QPA_PLATFORM=offscreen.
#include "tests/bench/timeline_benchmark.h"
#include "ui/theme/theme.h"

#include <QApplication>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv)
{
    using namespace meshwright::ui;
    QApplication application(argc, argv);
    applyTheme(application, ThemeChoice::Light);
    std::vector<std::int64_t> counts;
    for (int i = 1; i < argc; ++i)
        counts.push_back(std::atoll(argv[i]));
    if (counts.empty())
        counts = {1'000'000};
    for (const std::int64_t slices : counts)
        std::printf("%s\n", timelineBenchmarkJson(benchmarkTimeline(slices)).c_str());
    return 0;
}
