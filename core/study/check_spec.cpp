// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/check_spec.h"

#include "core/sharding/notation.h"
#include "core/study/spec_findings.h"
#include "core/support/text.h"

#include <algorithm>

namespace meshwright {

namespace {

std::vector<std::string> namesOf(const std::vector<MeshAxis>& mesh)
{
    std::vector<std::string> names;
    for (const MeshAxis& axis : mesh)
        names.push_back(axis.name);
    return names;
}

/// The word, the quoted name or the mark at a position; the last word of the text when the position is past the end.
TextRange tokenAt(std::string_view text, std::size_t at)
{
    const auto isWord = [&](std::size_t i) { return i < text.size() && isNameLetter(text[i]); };
    const bool pastEnd = at >= text.size();
    while (at > 0 && (at >= text.size() || text[at] == ' '))
        --at; // the end, and the gap before what is missing, show at what stands before
    while (pastEnd && at > 0 && isWord(at) && isWord(at - 1))
        --at;
    const bool quoted = at < text.size() && (text[at] == '\'' || text[at] == '"');
    std::size_t end = quoted ? at + 1 : at;
    while (isWord(end))
        ++end;
    if (quoted && end < text.size() && text[end] == text[at])
        ++end;
    return {at, text.empty() ? 0 : std::max<std::size_t>(1, end - at)};
}

/// What stands in a text for a finding.
TextRange rangeOf(const LocatedSpec& located, const SpecFinding& finding)
{
    if (finding.axis)
        return located.axes[finding.dim][*finding.axis];
    if (finding.problem.id != "MW1101")
        return located.entries[finding.dim];
    const TextRange& first = located.entries[finding.dim]; // all entries beyond the rank
    const TextRange& last = located.entries.back();
    return {first.offset, last.offset + last.length - first.offset};
}

} // namespace

Result<PartitionSpec> parseTypedSpec(std::string_view text, const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order)
{
    auto spec = parseSpec(text);
    if (spec)
        return spec;
    SpellingContext context;
    if (auto known = Mesh::create(mesh, order))
        context.mesh = *std::move(known);
    const auto parsed = parseSharding(text, context);
    if (!parsed) {
        // A text that begins as JAX's specs do is one with a mistake.
        const bool isSpec = trimmed(text).empty() || trimmed(text).starts_with('P') || trimmed(text).starts_with('(')
            || parsed.error().front().id == "MW1158";
        return isSpec ? spec.error() : parsed.error();
    }
    if (!parsed->sharding.unreduced.empty() || !parsed->manual.empty())
        return Problem{"MW1161", "a study's spec places whole values, and this sharding has partial or manual axes",
            "give the sharding of the whole value", Place{{}, 1, 1, {}}};
    const auto jax = jaxSpecOf(parsed->sharding, {}, parsed->mesh);
    if (!jax)
        return jax.error();
    PartitionSpec plain;
    for (const JaxSpec::Entry& entry : jax->dims)
        plain.dims.push_back(entry.axes);
    return plain;
}

std::vector<SpecProblem> checkSpecText(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh)
{
    const auto located = parseLocatedSpec(text);
    std::vector<SpecProblem> problems;
    if (!located) {
        const auto typed = parseTypedSpec(text, mesh);
        if (!typed) {
            for (const Problem& problem : typed.error())
                problems.push_back({problem, tokenAt(text, static_cast<std::size_t>(std::max(0, problem.place.column - 1)))});
        } else if (Mesh::create(mesh)) {
            for (SpecFinding& finding : fitFindings(*typed, array, mesh))
                problems.push_back({std::move(finding.problem), {0, text.size()}});
        }
        return problems;
    }
    std::vector<SpecFinding> findings = axisFindings(located->spec, namesOf(mesh));
    if (findings.empty() && Mesh::create(mesh))
        findings = fitFindings(located->spec, array, mesh);
    for (SpecFinding& finding : findings) {
        const TextRange range = rangeOf(*located, finding);
        problems.push_back({std::move(finding.problem), range});
    }
    return problems;
}

std::optional<std::string> correctedSpec(std::string_view text, const StudyArray& array, const std::vector<MeshAxis>& mesh)
{
    const auto spec = parseTypedSpec(text, mesh);
    if (!spec)
        return std::nullopt;
    const std::vector<std::string> names = namesOf(mesh);
    const PartitionSpec known = withKnownAxes(*spec, names);
    if (!axisFindings(known, names).empty())
        return std::nullopt;
    return specText(Mesh::create(mesh) ? withFittingAxes(known, array.shape, std::span(&mesh, 1)) : known);
}

} // namespace meshwright
