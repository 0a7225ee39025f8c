// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/compare.h"

#include "core/sharding/partition_spec.h"
#include "core/support/text.h"
#include "sim/compare/pair_uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace meshwright::sim {

namespace {

/// A collective by what makes it the same one.
struct ComparedKey {
    std::string phase;
    std::string op;
    std::string value;
    std::string axes;

    friend auto operator<=>(const ComparedKey&, const ComparedKey&) = default;
};

struct ComparedUse {
    std::optional<ComparedCollective> all; ///< calls and bytes of all with the key
};

std::map<ComparedKey, ComparedUse> usesOf(const std::vector<ComparedCollective>& collectives)
{
    std::map<ComparedKey, ComparedUse> uses;
    for (const ComparedCollective& one : collectives) {
        auto& all = uses[{one.phase, one.op, one.value, one.axes}].all;
        if (!all) {
            all = one;
            continue;
        }
        all->calls += one.calls;
        all->bytes += one.bytes;
    }
    return uses;
}

/// What comes to a device: of a pipeline, to one of the stage that has the most.
class DeviceTotal {
public:
    /// No stages: all devices have it.
    void add(double size, const std::vector<std::int64_t>& stages)
    {
        if (stages.empty())
            m_everywhere += size;
        for (const std::int64_t stage : stages)
            m_ofStage[stage] += size;
    }

    double value() const
    {
        double most = 0.0;
        for (const auto& [stage, size] : m_ofStage)
            most = std::max(most, size);
        return m_everywhere + most;
    }

private:
    double m_everywhere = 0.0;
    std::map<std::int64_t, double> m_ofStage;
};

void compareCollectives(const Comparable& before, const Comparable& after, Comparison& result)
{
    if (!before.collectives || !after.collectives)
        return;
    result.comparesCollectives = true;
    auto pairs
        = pairUses(usesOf(*before.collectives), usesOf(*after.collectives), [](const ComparedKey& a, const ComparedKey& b) {
              return std::tie(a.phase, a.op, a.value) == std::tie(b.phase, b.op, b.value);
          });
    std::stable_sort(pairs.begin(), pairs.end(),
        [](const auto& a, const auto& b) { return std::tie(a.after, a.before) < std::tie(b.after, b.before); });
    for (auto& pair : pairs) {
        const bool same = pair.was.all && pair.is.all && pair.was.all->axes == pair.is.all->axes
            && pair.was.all->calls == pair.is.all->calls && pair.was.all->bytes == pair.is.all->bytes;
        if (same)
            ++result.sameCollectives;
        else
            result.collectives.push_back({std::move(pair.was.all), std::move(pair.is.all)});
    }
    const auto total = [](const std::vector<ComparedCollective>& collectives) {
        DeviceTotal bytes;
        for (const ComparedCollective& one : collectives)
            bytes.add(static_cast<double>(one.bytes), one.stage ? std::vector{*one.stage} : std::vector<std::int64_t>());
        return bytes.value();
    };
    const auto figure = [&](const Comparable& side) {
        return ComparedFigure{
            "collective_bytes_per_device", "data in collectives a device", Quantity::Bytes, total(*side.collectives)};
    };
    result.collectiveBytes = FigureChange{figure(before), figure(after)};
}

/// The spec without whole dimensions at its end; the text itself when it is not a spec.
std::string canonical(const std::string& spec)
{
    const auto parsed = parseSpec(spec);
    return parsed ? specText(parsed->canonical()) : spec;
}

bool sameArray(const ComparedArray& a, const ComparedArray& b)
{
    const auto agree = [](const auto& x, const auto& y) { return !x || !y || *x == *y; };
    return canonical(a.spec) == canonical(b.spec) && (a.dtype.empty() || b.dtype.empty() || a.dtype == b.dtype)
        && agree(a.shape, b.shape) && agree(a.pieceElements, b.pieceElements) && agree(a.pieceBytes, b.pieceBytes)
        && (a.stages.empty() || b.stages.empty() || a.stages == b.stages);
}

void compareArrays(const Comparable& before, const Comparable& after, Comparison& result)
{
    if (!before.arrays || !after.arrays)
        return;
    result.comparesArrays = true;
    std::map<std::string, Change<ComparedArray>> byName;
    for (const ComparedArray& array : *before.arrays)
        byName[array.name].before = array;
    for (const ComparedArray& array : *after.arrays)
        byName[array.name].after = array;
    DeviceTotal was;
    DeviceTotal is;
    bool bytes = true; // of all arrays; otherwise elements are counted
    for (const auto& [name, change] : byName)
        bytes = bytes && (!change.before || change.before->pieceBytes) && (!change.after || change.after->pieceBytes);
    bool known = true;
    const auto addTo = [&](DeviceTotal& total, const std::optional<ComparedArray>& array) {
        if (!array)
            return;
        const auto& size = bytes ? array->pieceBytes : array->pieceElements;
        known = known && size.has_value();
        total.add(static_cast<double>(size.value_or(0)), array->stages);
    };
    for (auto& [name, change] : byName) {
        addTo(was, change.before);
        addTo(is, change.after);
        if (change.before && change.after && sameArray(*change.before, *change.after))
            ++result.sameArrays;
        else
            result.arrays.push_back(std::move(change));
    }
    if (known && !byName.empty()) {
        const ComparedFigure figure = bytes
            ? ComparedFigure{"array_bytes_per_device", "arrays a device", Quantity::Bytes, 0.0}
            : ComparedFigure{"array_elements_per_device", "elements of arrays a device", Quantity::Count, 0.0};
        result.arrayBytes = FigureChange{figure, figure};
        result.arrayBytes->before.value = was.value();
        result.arrayBytes->after.value = is.value();
    }
}

void compareProblems(const Comparable& before, const Comparable& after, Comparison& result)
{
    if (!before.problems || !after.problems)
        return;
    result.comparesProblems = true;
    const auto keyOf = [](const Problem& problem) { return std::tuple(problem.id, problem.place.path, problem.message); };
    std::map<std::tuple<std::string, std::string, std::string>, Change<Problem>> byKey;
    for (const Problem& problem : *before.problems)
        byKey[keyOf(problem)].before = problem;
    for (const Problem& problem : *after.problems)
        byKey[keyOf(problem)].after = problem;
    for (auto& [key, change] : byKey) {
        if (change.isNew() || change.isGone())
            result.problems.push_back(std::move(change));
    }
}

std::string sizeText(const ComparedArray& array)
{
    if (array.pieceBytes)
        return formatBytes(*array.pieceBytes);
    return array.pieceElements ? fmt::format("{} elements", *array.pieceElements) : std::string();
}

/// "stage 0", "stages 0 and 3"; empty: not of a pipeline.
std::string stagesText(const ComparedArray& array)
{
    if (array.stages.empty())
        return {};
    return fmt::format("stage{} {}", array.stages.size() == 1 ? "" : "s", fmt::join(array.stages, " and "));
}

std::string arrayTypeText(const ComparedArray& array)
{
    if (!array.shape)
        return array.dtype;
    std::string sizes;
    for (std::size_t i = 0; i < array.shape->size(); ++i)
        sizes += fmt::format("{}{}", i == 0 ? "" : ",", (*array.shape)[i]);
    return fmt::format("{}[{}]", array.dtype, sizes);
}

std::string callsText(const ComparedCollective& use)
{
    const double one = static_cast<double>(use.bytes) / static_cast<double>(std::max<std::int64_t>(1, use.calls));
    return fmt::format("{} x {}", use.calls, formatBytes(one));
}

} // namespace

double FigureChange::relative() const
{
    if (before.value == after.value)
        return 0.0;
    return before.value == 0.0 ? std::numeric_limits<double>::infinity() : after.value / before.value - 1.0;
}

bool Comparison::same() const
{
    return !mesh && !fits && !boundBy && arrays.empty() && collectives.empty() && problems.empty()
        && std::none_of(figures.begin(), figures.end(), [](const FigureChange& figure) { return figure.changed(); });
}

Comparison compare(const Comparable& before, const Comparable& after)
{
    Comparison result;
    result.beforeKind = before.kind;
    result.beforeFile = before.file;
    result.afterKind = after.kind;
    result.afterFile = after.file;
    result.comparesMesh = before.mesh && after.mesh;
    if (result.comparesMesh && *before.mesh != *after.mesh)
        result.mesh = Change<std::vector<MeshAxis>>{before.mesh, after.mesh};
    for (const ComparedFigure& was : before.figures) {
        for (const ComparedFigure& is : after.figures) {
            if (is.key == was.key)
                result.figures.push_back({was, is});
        }
    }
    compareArrays(before, after, result);
    compareCollectives(before, after, result);
    compareProblems(before, after, result);
    result.comparesFits = before.fits && after.fits;
    if (result.comparesFits && before.fits != after.fits)
        result.fits = Change<bool>{before.fits, after.fits};
    if (!before.boundBy.empty() && !after.boundBy.empty() && before.boundBy != after.boundBy)
        result.boundBy = Change<std::string>{before.boundBy, after.boundBy};
    return result;
}

bool hasOtherSpec(const Change<ComparedArray>& change)
{
    return change.before && change.after && canonical(change.before->spec) != canonical(change.after->spec);
}

std::string changeText(const Change<ComparedArray>& change)
{
    if (change.isNew() || change.isGone()) {
        const ComparedArray& array = change.either();
        const std::string size = sizeText(array);
        return fmt::format(
            "{} {}{}{}", arrayTypeText(array), array.spec, size.empty() ? "" : ", ", size.empty() ? "" : size + " a device");
    }
    std::vector<std::string> parts;
    const auto add = [&](const std::string& was, const std::string& is, const char* after) {
        if (was != is && !was.empty() && !is.empty())
            parts.push_back(fmt::format("{} -> {}{}", was, is, after));
    };
    add(arrayTypeText(*change.before), arrayTypeText(*change.after), "");
    if (hasOtherSpec(change))
        parts.push_back(fmt::format("{} -> {}", change.before->spec.empty() ? "none" : change.before->spec,
            change.after->spec.empty() ? "none" : change.after->spec));
    add(sizeText(*change.before), sizeText(*change.after), " a device");
    add(stagesText(*change.before), stagesText(*change.after), "");
    return join(parts, ", ");
}

std::string collectiveText(const ComparedCollective& use)
{
    return fmt::format("{}{} over {}{}", use.op, use.value.empty() ? "" : " of " + use.value, use.axes,
        use.phase.empty() ? "" : ", " + use.phase);
}

std::string changeText(const Change<ComparedCollective>& change)
{
    if (change.isNew() || change.isGone())
        return callsText(change.either());
    std::vector<std::string> parts;
    if (change.before->axes != change.after->axes)
        parts.push_back(fmt::format("over {} instead of {}", change.after->axes, change.before->axes));
    if (change.before->calls != change.after->calls || change.before->bytes != change.after->bytes)
        parts.push_back(fmt::format("{} -> {}", callsText(*change.before), callsText(*change.after)));
    return join(parts, ", ");
}

std::string changeText(const FigureChange& change)
{
    const std::string was = quantityText(change.before.value, change.before.quantity);
    const std::string is = quantityText(change.after.value, change.after.quantity);
    if (!change.changed())
        return was;
    const double relative = change.relative();
    return fmt::format("{} -> {} ({})", was, is,
        std::isfinite(relative) ? fmt::format("{:+.1f} %", 100.0 * relative) : std::string("from nothing"));
}

std::string axesText(const std::vector<MeshAxis>& mesh)
{
    std::string text;
    for (const MeshAxis& axis : mesh)
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    return text.empty() ? "one device" : text;
}

} // namespace meshwright::sim
