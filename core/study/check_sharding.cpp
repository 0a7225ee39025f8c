// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/check_sharding.h"

#include "core/study/pipeline_choice.h"
#include "core/study/spec_findings.h"
#include "core/study/yaml_text.h"
#include "core/support/checked.h"
#include "core/support/counted.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

std::vector<std::vector<MeshAxis>> meshesOf(const Study& study)
{
    std::vector<std::vector<MeshAxis>> all = {study.mesh};
    for (const StudyPhase& phase : study.phases)
        all.push_back(phase.mesh);
    return all;
}

class ShardingCheck : StudyFindings {
public:
    ShardingCheck(const Study& study, const ShardingKnowns& known)
        : StudyFindings{study, {}}
        , m_known(known)
    {
    }

    Problems run();

private:
    void checkNames(const std::vector<StudyArray>& arrays);
    void checkRuleUse(const std::vector<AssignedSpec>& assigned);
    bool checkAxes(const PartitionSpec& spec, const std::string& path);
    void checkAssigned(const AssignedSpec& assigned);
    void checkMicrobatch(const AssignedSpec& assigned, const std::vector<MeshAxis>& mesh, const std::string& where);
    std::vector<std::string> fixOf(const Problem& problem, const SpecFinding& finding, const AssignedSpec& assigned);

    const ShardingKnowns& m_known;
    int m_fixes = 0; ///< of specs, that were worked out
};

/// The first entry of a rule's spec that says something, as a setting.
std::vector<std::string> oneEntry(const PartitionSpec& spec, const std::string& path)
{
    const auto entry = std::find_if(spec.dims.begin(), spec.dims.end(), [](const auto& axes) { return !axes.empty(); });
    if (entry == spec.dims.end())
        return {};
    return {fmt::format("{}.spec={}", path, specText(PartitionSpec{{*entry}}))};
}

std::string withoutDigits(std::string name)
{
    std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
    return name;
}

/// True when the axes of a spec are known, each used once. What a logical axis stands for is a list, anything else a spec.
bool ShardingCheck::checkAxes(const PartitionSpec& spec, const std::string& path)
{
    if (m_known.gaps.axes)
        return false;
    const std::vector<SpecFinding> findings = axisFindings(spec, m_known.axisNames);
    if (findings.empty())
        return true;
    std::vector<std::string> fix;
    if (const PartitionSpec known = withKnownAxes(spec, m_known.axisNames); axisFindings(known, m_known.axisNames).empty()) {
        const bool isLogical = path.starts_with("sharding.rules");
        fix.push_back(isLogical ? fmt::format("{}[1]={}", path, namesText(known.dims.front()))
                                : fmt::format("{}={}", path, specText(known)));
    }
    for (const SpecFinding& finding : findings) {
        m_problems.push_back(finding.problem);
        m_problems.back().place = m_study.placeOf(path);
        m_problems.back().fixSettings = fix;
    }
    return false;
}

Problems ShardingCheck::run()
{
    std::set<std::string> badSpecs; // paths of specs whose axes are wrong: nothing more is said of them
    for (const ShardingEntry& entry : m_study.sharding.entries) {
        if (!checkAxes(entry.spec, entry.path))
            badSpecs.insert(entry.path);
    }
    for (std::size_t i = 0; i < m_study.sharding.match.size(); ++i) {
        const std::string path = fmt::format("sharding.match[{}]", i);
        const MatchRule& rule = m_study.sharding.match[i];
        if (rule.minElements < 0)
            report("MW1401", fmt::format("min_elements must be at least 0, got {}", rule.minElements),
                fmt::format("give a number from 0 to {}", kLargestDimension), path + ".min_elements")
                .fixSettings
                = {path + ".min_elements=0"};
        if (rule.largestDivisibleDim && rule.spec.dims.size() != 1)
            report("MW1427",
                fmt::format("{} has {} entries, but \"divisible: largest_dim\" puts one entry on one dimension",
                    specText(rule.spec), rule.spec.dims.size()),
                "give one entry: spec: [data]", path + ".spec")
                .fixSettings
                = oneEntry(rule.spec, path);
        else if (checkAxes(rule.spec, path + ".spec"))
            continue;
        badSpecs.insert(path);
    }
    for (std::size_t i = 0; m_study.sharding.ruleList.empty() && i < m_study.sharding.rules.size(); ++i) {
        const LogicalRule& rule = m_study.sharding.rules[i];
        if (!checkAxes(PartitionSpec{{rule.target.axes}}, fmt::format("sharding.rules[{}]", i)))
            badSpecs.insert("sharding.rules");
    }

    if (!m_known.arrays.empty())
        checkNames(m_known.arrays);
    if (m_known.arrays.empty() || m_known.assigned == nullptr)
        return std::move(m_problems);
    for (const AssignedSpec& one : *m_known.assigned) {
        if (!badSpecs.contains(one.path))
            checkAssigned(one);
    }
    checkRuleUse(*m_known.assigned);
    return std::move(m_problems);
}

void ShardingCheck::checkNames(const std::vector<StudyArray>& arrays)
{
    std::vector<std::string> names;
    for (const StudyArray& array : arrays)
        names.push_back(array.name);
    const std::set<std::string> known(names.begin(), names.end());
    const std::size_t layers = m_study.mlp() != nullptr ? m_study.mlp()->layers.size() - 1
                                                        : static_cast<std::size_t>(m_study.transformer()->config.layers);
    const std::string examples = m_study.mlp() != nullptr
        ? fmt::format("names are x, y, layers.0.w to layers.{}.w, opt.m.NAME, grad.NAME, act.layers.N", layers - 1)
        : std::string("names are x, y, embedding.w, layers.attention.q.w and such, opt.m.NAME, grad.NAME, act.layers");
    int searched = 0; // comparing with all names takes its time: the first wrong names say enough
    for (const ShardingEntry& entry : m_study.sharding.entries) {
        const bool isGlob = entry.name.find_first_of("*?") != std::string::npos;
        if (known.contains(entry.name) || (isGlob && std::any_of(arrays.begin(), arrays.end(), [&](const StudyArray& array) {
                return globCatches(entry.name, array);
            })))
            continue;
        constexpr int kMostSearched = 20;
        const auto near = searched++ < kMostSearched ? nearestName(entry.name, names) : std::nullopt;
        const bool otherLayer = near && withoutDigits(*near) == withoutDigits(entry.name);
        Problem& problem = report("MW1429", fmt::format("no array has the name \"{}\"", entry.name),
            otherLayer ? fmt::format("the model has the layers 0 to {}: remove the spec", layers - 1)
                : near ? fmt::format("did you mean \"{}\"?", *near)
                       : examples,
            entry.path);
        const auto& entries = m_study.sharding.entries;
        const bool isFree
            = near && std::none_of(entries.begin(), entries.end(), [&](const ShardingEntry& e) { return e.name == *near; });
        if (otherLayer)
            problem.fixSettings = {entry.path + "="};
        else if (isFree && entry.path == "sharding." + entry.name)
            problem.fixSettings
                = {entry.path + "=", fmt::format("sharding.{}={}", *near, specText(entry.spec))}; // the old name goes
    }
}

void ShardingCheck::checkRuleUse(const std::vector<AssignedSpec>& assigned)
{
    for (std::size_t i = 0; i < m_study.sharding.match.size(); ++i) {
        if (std::any_of(assigned.begin(), assigned.end(), [&](const AssignedSpec& one) { return one.rule == i; }))
            continue;
        const std::string& glob = m_study.sharding.match[i].glob;
        report("MW1431", fmt::format("the rule for \"{}\" matches no array", glob),
            "remove it, or put it before the rule that matches its arrays", fmt::format("sharding.match[{}]", i),
            "the first rule that matches an array decides; specs by name come before all rules", Severity::Warning);
    }
    for (std::size_t i = 0; m_study.sharding.ruleList.empty() && i < m_study.sharding.rules.size(); ++i) {
        const bool applied = std::any_of(assigned.begin(), assigned.end(), [&](const AssignedSpec& one) {
            return std::any_of(one.trace.begin(), one.trace.end(),
                [&](const LogicalStep& step) { return step.rule == i && step.verdict == LogicalVerdict::Applied; });
        });
        if (!applied)
            report("MW1431", fmt::format("the rule for the logical axis {} applies to nothing", m_study.sharding.rules[i].name),
                "remove it, or put it before the rule that takes its dimension or its axes", fmt::format("sharding.rules[{}]", i),
                "logical axis rules apply in order, each dimension and each mesh axis once, to arrays that nothing above matched",
                Severity::Warning);
    }
}

void ShardingCheck::checkAssigned(const AssignedSpec& assigned)
{
    const auto check = [&](const std::vector<MeshAxis>& mesh, const std::string& where) {
        for (const SpecFinding& finding : fitFindings(assigned.spec, assigned.array, mesh, where)) {
            m_problems.push_back(finding.problem);
            m_problems.back().place = m_study.placeOf(assigned.path);
            m_problems.back().fixSettings = fixOf(finding.problem, finding, assigned);
            if (finding.problem.id == "MW1101")
                return false; // on every mesh
        }
        checkMicrobatch(assigned, mesh, where);
        return true;
    };
    bool goesOn = check(m_study.mesh, "");
    for (std::size_t i = 0; goesOn && i < m_study.phases.size(); ++i)
        goesOn = check(m_study.phases[i].mesh, fmt::format(" in phases[{}]", i));
}

/// Whether the rows of a microbatch divide, where those of the batch do.
void ShardingCheck::checkMicrobatch(const AssignedSpec& assigned, const std::vector<MeshAxis>& mesh, const std::string& where)
{
    const std::int64_t microbatches = stepPipeline(m_study).microbatches;
    const bool isInput = assigned.array.name == "x" || assigned.array.name == "y";
    if (!isInput || assigned.spec.dims.empty() || m_study.batch < 1 || microbatches <= 1 || m_study.batch % microbatches != 0)
        return;
    const std::int64_t pieces = piecesOf(assigned.spec.dims.front(), mesh);
    const std::int64_t rows = m_study.batch / microbatches;
    if (pieces <= 1 || m_study.batch % pieces != 0 || rows % pieces == 0)
        return;
    std::int64_t fitting = std::min(microbatches, m_study.batch / pieces);
    while (m_study.batch / pieces % fitting != 0)
        --fitting;
    const std::string setting = m_study.train.accumulate > 1 ? "train.accumulate" : "pipeline.microbatches";
    m_problems.push_back({"MW1104",
        fmt::format("\"{}\": dim 0 (batch) of a microbatch has size {} and is not divisible by {}{}", assigned.array.name, rows,
            pieces, where),
        fmt::format("use {}, or a larger batch", counted(fitting, "microbatch")), m_study.placeOf(assigned.path), Severity::Error,
        fmt::format("a batch of {} in {} microbatches, each cut into {} equal pieces", m_study.batch, microbatches, pieces),
        {fmt::format("{}={}", setting, fitting)}});
}

/// Another batch where the batch does not divide; else a spec of the array's own, which leaves dimensions whole.
std::vector<std::string> ShardingCheck::fixOf(const Problem& problem, const SpecFinding& finding, const AssignedSpec& assigned)
{
    constexpr int kMostFixes = 100; // of an endless list of problems nobody needs more
    if (++m_fixes > kMostFixes)
        return {};
    if (problem.id == "MW1104" && assigned.array.meaning[finding.dim].role == DimRole::Batch) {
        if (const auto batch = m_known.assigned != nullptr ? fittingBatch(m_study, *m_known.assigned) : std::nullopt)
            return {fmt::format("batch={}", *batch)};
    }
    const PartitionSpec fitting = withFittingAxes(assigned.spec, assigned.array.shape, meshesOf(m_study));
    return {fmt::format("{}={}", ownSpecPath(m_study, assigned.array.name), specText(fitting))};
}

} // namespace

Problems checkSharding(const Study& study, const ShardingKnowns& known)
{
    return ShardingCheck(study, known).run();
}

std::optional<std::int64_t> fittingBatch(const Study& study, const std::vector<AssignedSpec>& assigned)
{
    std::int64_t multiple = 1;
    for (const AssignedSpec& one : assigned) {
        if (one.array.meaning.empty() || one.array.meaning.front().role != DimRole::Batch || one.spec.dims.empty())
            continue;
        for (const auto& mesh : meshesOf(study)) {
            const std::int64_t pieces = piecesOf(one.spec.dims.front(), mesh);
            const auto common = checkedMultiply(multiple / std::gcd(multiple, pieces), pieces);
            if (!common || *common > kLargestDimension)
                return std::nullopt;
            multiple = *common;
        }
    }
    const bool digits = study.train.data.kind == TrainingData::Kind::Digits;
    const std::int64_t most = digits ? kDigitsTrainingRows : kLargestDimension;
    if (multiple > most)
        return std::nullopt;
    return std::max(multiple, std::min(study.batch, most) / multiple * multiple);
}

} // namespace meshwright
