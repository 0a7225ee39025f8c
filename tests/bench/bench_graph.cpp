// SPDX-License-Identifier: GPL-3.0-or-later
// How long the program view takes for a graph: bench_graph [nodes]. Prints {"nodes", "edges", "layout_ms", "pan_ms": {"median", "max"}, "far_pan_ms": ..}: the
// layout, frames while a readable part is panned, and frames while all of it is seen. Offscreen is enough: QT_QPA_PLATFORM=offscreen.
#include "ui/program/program_canvas.h"
#include "ui/theme/theme.h"

#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QImage>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace meshwright;
using namespace meshwright::ui;

namespace {

constexpr int kFrames = 60;

/// Layers of a step: chains with parameters and, behind the middle, a use of each forward value as the backward pass has them.
GraphDrawing stepOf(std::size_t nodes)
{
    GraphDrawing drawing;
    drawing.title = "A step";
    const std::size_t half = nodes / 2;
    for (std::size_t i = 0; i < nodes; ++i) {
        const bool isArgument = i % 6 == 1;
        const bool isCollective = i % 9 == 5;
        const GraphNodeKind kind = isArgument ? GraphNodeKind::Argument
            : isCollective                    ? GraphNodeKind::Collective
                                              : GraphNodeKind::Op;
        drawing.nodes.push_back({"node:" + std::to_string(i), kind, "dot_general", "f32[8192,8192]", {}, ColourRole::AllReduce});
        if (isArgument || i == 0)
            continue;
        drawing.edges.push_back({i - 1, i, "P('data', 'model')"});
        if (i >= 3 && i % 3 == 0)
            drawing.edges.push_back({i - 3, i, "P('data', None)"});
        if (i > half && i % 2 == 0)
            drawing.edges.push_back({nodes - 1 - i, i, "P('data', None)"});
    }
    return drawing;
}

std::string framesOf(ProgramCanvas& canvas)
{
    QImage image(canvas.size(), QImage::Format_RGB32);
    std::vector<double> times;
    for (int frame = 0; frame < kFrames; ++frame) {
        QElapsedTimer timer;
        timer.start();
        canvas.pan({frame % 2 == 0 ? -40.0 : 37.0, 3.0});
        canvas.render(&image);
        times.push_back(static_cast<double>(timer.nsecsElapsed()) * 1e-6);
    }
    std::sort(times.begin(), times.end());
    return fmt::format("{{\"median\": {:.1f}, \"max\": {:.1f}}}", times[times.size() / 2], times.back());
}

} // namespace

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    applyTheme(application, ThemeChoice::Light);
    const std::size_t nodes = argc > 1 ? static_cast<std::size_t>(std::max(2, std::atoi(argv[1]))) : 5000;
    const GraphDrawing drawing = stepOf(nodes);
    QElapsedTimer timer;
    timer.start();
    LayeredLayout layout = graphLayout(drawing);
    const double laidOut = static_cast<double>(timer.nsecsElapsed()) * 1e-6;
    ProgramCanvas canvas;
    canvas.resize(1600, 900);
    canvas.setGraph(drawing, std::move(layout));
    canvas.bringIntoView(nodes / 2);
    const std::string near = framesOf(canvas);
    canvas.fit();
    fmt::print("{{\"nodes\": {}, \"edges\": {}, \"layout_ms\": {:.0f}, \"pan_ms\": {}, \"far_pan_ms\": {}}}\n", nodes,
        drawing.edges.size(), laidOut, near, framesOf(canvas));
    return 0;
}
