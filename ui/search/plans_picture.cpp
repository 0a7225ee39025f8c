// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/search/plans_picture.h"

#include "core/support/text.h"
#include "ui/search/plans_model.h"

#include <fmt/format.h>

#include <cmath>

namespace meshwright::ui {

namespace {

constexpr double kText = 11.0;
constexpr double kLeft = 74.0;
constexpr double kRight = 20.0;
constexpr double kTop = 26.0;
constexpr double kBottom = 42.0;
constexpr double kDisc = 12.0;

/// About `count` steps of 1, 2 or 5 times a power of ten, from 0 or the first above `from`.
std::vector<double> ticks(double from, double to, int count)
{
    const double raw = (to - from) / count;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    const double share = raw / power;
    const double step = power * (share <= 1.0 ? 1.0 : share <= 2.0 ? 2.0 : share <= 5.0 ? 5.0 : 10.0);
    std::vector<double> found;
    for (double tick = std::ceil(from / step) * step; tick <= to + step * 1e-9; tick += step)
        found.push_back(tick);
    return found;
}

} // namespace

DisplayList plansPicture(const FoundPlans& found, int chosen, double width, double height)
{
    DisplayList picture;
    picture.width = width;
    picture.height = height;
    picture.title = "plans by step time and memory of a device";
    if (found.plans.empty())
        return picture;
    double shortest = stepSecondsOf(found.plans.front());
    double longest = 0.0;
    double most = 0.0;
    double usable = 0.0;
    for (const sim::FoundPlan& plan : found.plans) {
        shortest = std::min(shortest, stepSecondsOf(plan));
        longest = std::max(longest, stepSecondsOf(plan));
        most = std::max(most, plan.peakBytes);
        usable = std::max(usable, plan.usableBytes());
    }
    const double room = std::max(0.05 * shortest, 0.08 * (longest - shortest));
    const double from = std::max(0.0, shortest - room);
    const double to = longest + room;
    // The limit is drawn where the plans come near it; far below it they would all lie on the floor.
    const bool showsLimit = usable > 0.0 && most > 0.25 * usable;
    const double top = 1.1 * (showsLimit ? std::max(most, usable) : most);
    const double right = width - kRight;
    const double floor = height - kBottom;
    const auto x = [&](double seconds) { return kLeft + (seconds - from) / (to - from) * (right - kLeft); };
    const auto y = [&](double bytes) { return floor - bytes / top * (floor - kTop); };
    const auto say = [&](Point at, std::string text, TextAnchor anchor, Paint paint = ColourRole::MutedText) {
        picture.items.push_back({TextShape{at, std::move(text), kText, anchor, paint}});
    };
    constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
    for (const double gib : ticks(0.0, top / kGib, 4)) {
        picture.items.push_back({LineShape{{kLeft, y(gib * kGib)}, {right, y(gib * kGib)}, ColourRole::Grid}});
        say({kLeft - 6.0, y(gib * kGib)}, formatBytes(gib * kGib), TextAnchor::End);
    }
    for (const double seconds : ticks(from, to, std::clamp(static_cast<int>(width / 110.0), 2, 8))) {
        picture.items.push_back({LineShape{{x(seconds), kTop}, {x(seconds), floor}, ColourRole::Grid}});
        say({x(seconds), floor + 12.0}, formatSeconds(seconds), TextAnchor::Middle);
    }
    say({kLeft, 12.0}, "memory of a device", TextAnchor::Start, ColourRole::Text);
    say({right, height - 10.0}, "step time", TextAnchor::End, ColourRole::Text);
    if (showsLimit) {
        picture.items.push_back({LineShape{{kLeft, y(usable)}, {right, y(usable)}, ColourRole::Error, 1.5, true}});
        say({right, y(usable) - 8.0}, formatBytes(usable) + " of a device are usable", TextAnchor::End, ColourRole::Error);
    }
    bool hasEstimates = false;
    for (std::size_t i = found.plans.size(); i-- > 0;) { // the best one on top
        const sim::FoundPlan& plan = found.plans[i];
        const bool isChosen = static_cast<int>(i) == chosen;
        const double side = isChosen ? kDisc + 4.0 : kDisc;
        ShapeStyle style;
        const ColourRole colour = plan.fits ? ColourRole::Compute : ColourRole::Idle;
        const bool isEstimate = !plan.simulatedSeconds;
        style.fill = isEstimate ? ColourRole::Background : colour;
        style.outline = isChosen ? ColourRole::Accent : isEstimate ? colour : ColourRole::Background;
        style.outlineWidth = isChosen ? 3.0 : isEstimate ? 2.0 : 1.0;
        hasEstimates |= isEstimate;
        const Point centre{x(stepSecondsOf(plan)), y(plan.peakBytes)};
        picture.items.push_back(
            {RectShape{{centre.x - side / 2.0, centre.y - side / 2.0}, side, side, style, side / 2.0}, fmt::format("plan:{}", i),
                fmt::format("{}\n{}{}, {} of a device{}", meshWords(plan.mesh), isEstimate ? "about " : "",
                    formatSeconds(stepSecondsOf(plan)), formatBytes(plan.peakBytes),
                    plan.recompute.empty() ? "" : "\nrecompute " + plan.recompute)});
    }
    if (hasEstimates)
        say({right, 12.0}, "an empty disc is an estimate", TextAnchor::End);
    return picture;
}

} // namespace meshwright::ui
