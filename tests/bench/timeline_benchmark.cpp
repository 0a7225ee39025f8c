// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/bench/timeline_benchmark.h"

#include "ui/timeline/timeline_view.h"

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QThread>
#include <QWheelEvent>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace meshwright::ui {

namespace {

constexpr std::int64_t kRows = 64;
constexpr int kNames = 2048;
constexpr double kMedianSeconds = 1e-6;
constexpr std::int64_t kFewSlices = 8; ///< on a row, where zooming in ends

/// A normal number from a generator whose output the standard fixes, so that traces are the same everywhere.
class Random {
public:
    double uniform() { return static_cast<double>(m_engine() >> 11U) * 0x1.0p-53; }
    double normal() { return std::sqrt(-2.0 * std::log(1.0 - uniform())) * std::cos(6.283185307179586 * uniform()); }
    std::uint64_t below(std::uint64_t limit) { return m_engine() % limit; }

private:
    std::mt19937_64 m_engine{20240607};
};

class BenchmarkRun {
public:
    BenchmarkRun(std::int64_t slices, QSize size)
        : m_view(m_selection)
        , m_canvas(m_view.canvas())
        , m_slices(slices)
    {
        m_view.resize(size);
        m_view.show();
        m_view.setMeasured(nullptr, benchmarkTrace(slices));
        settle();
        // The rest of the view comes on top.
        for (int i = 0; i < 3; ++i) {
            m_view.resize(m_view.size() + size - m_canvas.size());
            settle();
        }
        m_canvas.installEventFilter(&m_paints);
    }

    TimelineBenchmark result()
    {
        play();
        TimelineBenchmark result;
        result.slices = static_cast<std::int64_t>(m_canvas.model().sliceCount());
        result.bytesPerSlice = static_cast<double>(m_canvas.model().byteCount()) / static_cast<double>(result.slices);
        result.frames = static_cast<std::int64_t>(m_frames.size());
        std::sort(m_frames.begin(), m_frames.end());
        result.frameMsMedian = m_frames[m_frames.size() / 2];
        result.frameMsMax = m_frames.back();
        return result;
    }

private:
    /// Counts what is really painted.
    class Paints : public QObject {
    public:
        int count = 0;
        bool eventFilter(QObject*, QEvent* event) override
        {
            count += event->type() == QEvent::Paint ? 1 : 0;
            return false;
        }
    };

    void settle()
    {
        do {
            QCoreApplication::processEvents();
            QThread::msleep(1);
        } while (m_view.isBusy());
        QCoreApplication::processEvents();
    }

    template <typename Input>
    void frame(Input input)
    {
        timed([&] {
            input();
            QCoreApplication::sendPostedEvents();
        });
        // What follows of itself: labels that were too many for one frame, results of workers.
        const int most = 50;
        for (int i = 0, before = -1; i < most && before != m_paints.count; ++i) {
            before = m_paints.count;
            timed([] { QCoreApplication::processEvents(); });
        }
    }

    template <typename Work>
    void timed(Work work)
    {
        const int before = m_paints.count;
        QElapsedTimer timer;
        timer.start();
        work();
        const double ms = static_cast<double>(timer.nsecsElapsed()) / 1e6;
        if (m_paints.count > before)
            m_frames.push_back(ms);
    }

    QPointF place(double x, double y) const
    {
        const QRect rows = m_canvas.rowsRect();
        return {rows.left() + x * rows.width(), rows.top() + y * rows.height()};
    }

    void wheel(QPointF at, int delta, Qt::KeyboardModifiers modifiers)
    {
        QWheelEvent event(at, m_canvas.mapToGlobal(at), {}, {0, delta}, Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(&m_canvas, &event);
    }

    void mouse(
        QEvent::Type type, QPointF at, Qt::MouseButton button, Qt::MouseButtons buttons, Qt::KeyboardModifiers modifiers = {})
    {
        QMouseEvent event(type, at, m_canvas.mapToGlobal(at), button, buttons, modifiers);
        QCoreApplication::sendEvent(&m_canvas, &event);
    }

    void moveAndSelect()
    {
        for (const int delta : {120, 120, -120, -120})
            frame([&] { wheel(place(0.6, 0.5), delta, Qt::ShiftModifier); });
        for (int i = 0; i < 6; ++i)
            frame([&] { mouse(QEvent::MouseMove, place(0.1 + 0.13 * i, 0.1 + 0.12 * i), Qt::NoButton, Qt::NoButton); });
        for (int i = 0; i < 2; ++i) {
            const QPointF at = place(0.3 + 0.3 * i, 0.4 + 0.2 * i);
            frame([&] { mouse(QEvent::MouseButtonPress, at, Qt::LeftButton, Qt::LeftButton); });
            frame([&] { mouse(QEvent::MouseButtonRelease, at, Qt::LeftButton, Qt::NoButton); });
        }
    }

    void selectTime()
    {
        const QPointF ruler(0.0, TimelineCanvas::kRulerHeight / -2.0);
        frame([&] { mouse(QEvent::MouseButtonPress, place(0.3, 0.0) + ruler, Qt::LeftButton, Qt::LeftButton); });
        for (int i = 1; i < 6; ++i)
            frame([&] { mouse(QEvent::MouseMove, place(0.3 + 0.05 * i, 0.0) + ruler, Qt::NoButton, Qt::LeftButton); });
        frame([&] { mouse(QEvent::MouseButtonRelease, place(0.55, 0.0) + ruler, Qt::LeftButton, Qt::NoButton); });
    }

    void play()
    {
        frame([&] { m_canvas.update(); });
        moveAndSelect();
        selectTime();
        const double shortest = m_canvas.axis().end() * static_cast<double>(kFewSlices * kRows) / static_cast<double>(m_slices);
        int steps = 0;
        for (; m_canvas.window().length() > shortest && steps < 200; ++steps) {
            frame([&] { wheel(place(0.6, 0.5), 120, Qt::ControlModifier); });
            if (steps % 4 == 0)
                moveAndSelect();
            if (steps % 12 == 0)
                selectTime();
        }
        for (; steps > 0; --steps)
            frame([&] { wheel(place(0.4, 0.5), -120, Qt::ControlModifier); });
    }

    Selection m_selection;
    TimelineView m_view;
    TimelineCanvas& m_canvas;
    std::int64_t m_slices;
    Paints m_paints;
    std::vector<double> m_frames; ///< ms
};

} // namespace

std::shared_ptr<const Timeline> benchmarkTrace(std::int64_t slices)
{
    constexpr std::uint64_t kCategories = 8;
    Random random;
    auto timeline = std::make_shared<Timeline>(Clock::Wall);
    std::vector<std::uint32_t> names;
    for (int i = 0; i < kNames; ++i)
        names.push_back(timeline->intern(fmt::format("layers.{}.{}", i / 8, i % 8 == 0 ? "w" : fmt::format("mlp.h{}", i % 8))));
    for (std::int64_t row = 0; row < kRows; ++row)
        timeline->addRow(row / 2, row % 2 == 0 ? "compute" : "collectives");
    for (std::uint32_t row = 0; row < kRows; ++row) {
        double at = kMedianSeconds * random.uniform();
        for (std::int64_t i = 0; i < slices / kRows; ++i) {
            if (random.below(10) == 0)
                at += kMedianSeconds * std::exp(random.normal());
            Slice slice;
            slice.startSeconds = at;
            slice.durationSeconds = kMedianSeconds * std::exp(random.normal());
            slice.cpuSeconds = slice.durationSeconds;
            slice.bytes = static_cast<std::int64_t>(random.below(1U << 20U));
            slice.row = row;
            slice.name = names[random.below(kNames)];
            slice.category = static_cast<SliceCategory>(random.below(kCategories));
            timeline->add(slice);
            at += slice.durationSeconds;
        }
    }
    return timeline;
}

TimelineBenchmark benchmarkTimeline(std::int64_t slices, QSize size)
{
    return BenchmarkRun(slices, size).result();
}

std::string timelineBenchmarkJson(const TimelineBenchmark& result)
{
    return fmt::format(R"({{"slices": {}, "frame_ms_median": {:.2f}, "frame_ms_max": {:.2f}, "bytes_per_slice": {:.2f}}})",
        result.slices, result.frameMsMedian, result.frameMsMax, result.bytesPerSlice);
}

} // namespace meshwright::ui
