// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/gates.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright::sim {

namespace {

using What = Gate::What;

struct GateKind {
    What what;
    const char* name;
    bool measures; ///< takes `>5%`
};

constexpr std::array kKinds
    = {GateKind{What::Any, "any", false}, GateKind{What::Mesh, "mesh", false}, GateKind{What::Sharding, "sharding", false},
        GateKind{What::Collectives, "collectives", false}, GateKind{What::NewCollectives, "new-collectives", false},
        GateKind{What::Bytes, "bytes", true}, GateKind{What::Time, "time", true}, GateKind{What::Memory, "memory", true},
        GateKind{What::Fits, "fits", false}, GateKind{What::Problems, "problems", false}};

Result<Gate> parseGate(const std::string& text)
{
    const std::string_view whole = trimmed(text);
    const std::size_t more = whole.find('>');
    const std::string name(trimmed(whole.substr(0, more)));
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const GateKind& known) { return known.name == name; });
    if (kind == kKinds.end())
        return Problem{"MW1941", fmt::format("--fail-on: \"{}\" is not a gate", name), suggestion(name, gateNames())};
    Gate gate{kind->what, 0.0, std::string(whole)};
    if (more == std::string_view::npos)
        return gate;
    std::string_view limit = trimmed(whole.substr(more + 1));
    const bool percent = limit.ends_with('%');
    if (percent)
        limit = trimmed(limit.substr(0, limit.size() - 1));
    const auto number = parseNumber(limit);
    if (!kind->measures || !percent || !number || *number < 0.0)
        return Problem{"MW1941", fmt::format("--fail-on: \"{}\" is not a limit", whole),
            kind->measures ? fmt::format("write {}>5%", name) : fmt::format("write {} alone", name)};
    gate.most = *number / 100.0;
    return gate;
}

class Judge {
public:
    explicit Judge(const Comparison& comparison)
        : m_comparison(comparison)
    {
    }

    Result<GateResult> judge(const Gate& gate)
    {
        GateResult result{gate, {}};
        if (!knows(gate.what))
            return Problem{"MW1942", fmt::format("--fail-on {}: one of the two does not report it", gate.text),
                gate.what == What::Problems ? "compare two studies, or what `check --format json` wrote of both"
                                            : "compare two studies, or what `simulate --format json` wrote of both"};
        m_findings = &result.findings;
        m_most = gate.most;
        find(gate.what);
        return result;
    }

private:
    const FigureChange* figure(const char* key) const
    {
        const auto found = std::find_if(m_comparison.figures.begin(), m_comparison.figures.end(),
            [&](const FigureChange& one) { return one.before.key == key; });
        return found == m_comparison.figures.end() ? nullptr : &*found;
    }

    bool knows(What what) const
    {
        switch (what) {
        case What::Any:
            return true;
        case What::Mesh:
            return m_comparison.comparesMesh;
        case What::Sharding:
            return m_comparison.comparesArrays;
        case What::Collectives:
        case What::NewCollectives:
            return m_comparison.comparesCollectives;
        case What::Bytes:
            return m_comparison.arrayBytes || m_comparison.collectiveBytes;
        case What::Time:
            return figure("step_time_s") != nullptr || figure("model_time_s") != nullptr;
        case What::Memory:
            return figure("peak_bytes_per_device") != nullptr;
        case What::Fits:
            return m_comparison.comparesFits;
        case What::Problems:
            return m_comparison.comparesProblems;
        }
        return false;
    }

    void find(What what)
    {
        const bool any = what == What::Any;
        if ((any || what == What::Mesh || what == What::Sharding) && m_comparison.mesh)
            add("the mesh is {} instead of {}", axesText(*m_comparison.mesh->after), axesText(*m_comparison.mesh->before));
        if (any || what == What::Sharding)
            findArrays(any);
        if (any || what == What::Collectives || what == What::NewCollectives)
            findCollectives(what == What::NewCollectives);
        if (what == What::Bytes) {
            findGrowth(m_comparison.arrayBytes ? &*m_comparison.arrayBytes : nullptr);
            findGrowth(m_comparison.collectiveBytes ? &*m_comparison.collectiveBytes : nullptr);
        }
        if (what == What::Time)
            findGrowth(figure("step_time_s") != nullptr ? figure("step_time_s") : figure("model_time_s"));
        if (what == What::Memory)
            findGrowth(figure("peak_bytes_per_device"));
        if (any) {
            for (const FigureChange& one : m_comparison.figures) {
                if (one.changed())
                    add("{}: {}", one.after.name, changeText(one));
            }
            if (m_comparison.boundBy)
                add("bound by {} instead of {}", *m_comparison.boundBy->after, *m_comparison.boundBy->before);
        }
        if ((any || what == What::Fits) && m_comparison.fits && (any || !*m_comparison.fits->after))
            add("{}", *m_comparison.fits->after ? "it fits now" : "it no longer fits");
        if (any || what == What::Problems) {
            for (const auto& change : m_comparison.problems) {
                if (any || change.isNew())
                    add("{} problem {}: {}", change.isNew() ? "new" : "gone:", change.either().id, change.either().message);
            }
        }
    }

    void findArrays(bool sizesToo)
    {
        for (const auto& change : m_comparison.arrays) {
            if (!sizesToo && change.before && change.after && !hasOtherSpec(change))
                continue;
            add("{}{}: {}", change.isNew() ? "new " : change.isGone() ? "gone: " : "", change.either().name, changeText(change));
        }
    }

    void findCollectives(bool onlyMore)
    {
        for (const auto& change : m_comparison.collectives) {
            const bool isMore = change.isNew()
                || (change.before && change.after
                    && (change.after->calls > change.before->calls || change.after->bytes > change.before->bytes));
            if (onlyMore && !isMore)
                continue;
            add("{}{}: {}{}",
                change.isNew()        ? "new "
                    : change.isGone() ? "gone: "
                                      : "",
                collectiveText(change.either()), changeText(change),
                change.either().reason.empty() || change.isGone() ? "" : " (" + change.either().reason + ")");
        }
    }

    void findGrowth(const FigureChange* one)
    {
        if (one == nullptr || !(one->relative() > m_most))
            return;
        add("{}: {}{}", one->after.name, changeText(*one),
            m_most > 0.0 ? fmt::format(", more than {:g} %", 100.0 * m_most) : std::string());
    }

    template <typename... Args>
    void add(fmt::format_string<Args...> format, Args&&... args)
    {
        m_findings->push_back(fmt::format(format, std::forward<Args>(args)...));
    }

    const Comparison& m_comparison;
    std::vector<std::string>* m_findings = nullptr;
    double m_most = 0.0;
};

} // namespace

std::vector<std::string> gateNames()
{
    std::vector<std::string> names;
    for (const GateKind& kind : kKinds)
        names.emplace_back(kind.name);
    return names;
}

Result<std::vector<Gate>> parseGates(std::string_view text)
{
    std::vector<Gate> gates;
    Problems problems;
    if (trimmed(text).empty())
        return Problem{"MW1941", "--fail-on names no gate", fmt::format("name some of {}", join(gateNames(), ", "))};
    for (const std::string& one : split(text, ',')) {
        auto gate = parseGate(one);
        if (gate)
            gates.push_back(*std::move(gate));
        else
            append(problems, gate.error());
    }
    if (!problems.empty())
        return problems;
    return gates;
}

Result<std::vector<GateResult>> judge(const std::vector<Gate>& gates, const Comparison& comparison)
{
    std::vector<GateResult> results;
    Problems problems;
    Judge judging(comparison);
    for (const Gate& gate : gates) {
        auto result = judging.judge(gate);
        if (result)
            results.push_back(*std::move(result));
        else
            append(problems, result.error());
    }
    if (!problems.empty())
        return problems;
    return results;
}

} // namespace meshwright::sim
