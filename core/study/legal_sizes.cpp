// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/legal_sizes.h"

#include "core/study/spec_findings.h"
#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace meshwright {

namespace {

/// Which dimensions a study cuts over which axes.
class Cuts {
public:
    explicit Cuts(const Study& study)
        : m_study(study)
    {
        m_study.places = {};
        const auto& rules = study.sharding.match;
        m_dependsOnMesh = std::any_of(rules.begin(), rules.end(), [](const MatchRule& rule) { return rule.largestDivisibleDim; });
        if (!m_dependsOnMesh)
            collect();
    }

    /// The first dimension that does not divide.
    std::optional<Problem> firstProblem(const std::vector<MeshAxis>& mesh)
    {
        if (m_dependsOnMesh) {
            m_study.mesh = mesh;
            collect();
        }
        for (const Cut& cut : m_cuts) {
            if (cut.size % piecesOf(*cut.axes, mesh) == 0)
                continue;
            const auto findings = fitFindings(m_assigned[cut.assigned].spec, m_assigned[cut.assigned].array, mesh);
            return findings.front().problem;
        }
        return std::nullopt;
    }

private:
    struct Cut {
        std::int64_t size;
        const std::vector<std::string>* axes;
        std::size_t assigned;
    };

    void collect()
    {
        m_cuts.clear();
        m_assigned = assignedSpecs(m_study);
        std::set<std::pair<std::int64_t, std::vector<std::string>>> seen;
        for (std::size_t i = 0; i < m_assigned.size(); ++i) {
            const AssignedSpec& one = m_assigned[i];
            for (std::size_t dim = 0; dim < std::min(one.spec.dims.size(), one.array.shape.size()); ++dim) {
                if (!one.spec.dims[dim].empty() && seen.emplace(one.array.shape[dim], one.spec.dims[dim]).second)
                    m_cuts.push_back({one.array.shape[dim], &one.spec.dims[dim], i});
            }
        }
    }

    Study m_study;
    bool m_dependsOnMesh = false;
    std::vector<AssignedSpec> m_assigned;
    std::vector<Cut> m_cuts;
};

/// Ascending. Precondition: number >= 1.
std::vector<std::int64_t> divisorsOf(std::int64_t number)
{
    std::vector<std::int64_t> low;
    std::vector<std::int64_t> high;
    for (std::int64_t i = 1; i <= number / i; ++i) {
        if (number % i != 0)
            continue;
        low.push_back(i);
        if (i != number / i)
            high.push_back(number / i);
    }
    low.insert(low.end(), high.rbegin(), high.rend());
    return low;
}

std::vector<MeshAxis> withSize(std::vector<MeshAxis> mesh, const std::string& axis, std::int64_t size)
{
    for (MeshAxis& one : mesh) {
        if (one.name == axis)
            one.size = size;
    }
    return mesh;
}

std::int64_t productOf(const std::vector<MeshAxis>& mesh)
{
    std::int64_t product = 1;
    for (const MeshAxis& axis : mesh)
        product *= axis.size;
    return product;
}

std::string sizesText(const std::vector<MeshAxis>& mesh)
{
    std::string text;
    for (const MeshAxis& axis : mesh)
        text += fmt::format("{}{}", text.empty() ? "" : " x ", axis.size);
    return text;
}

/// Appends every way to give `left` devices to the axes from `axis` on.
void factorise(Cuts& cuts, std::vector<MeshAxis>& mesh, std::size_t axis, std::int64_t left,
    std::vector<std::vector<MeshAxis>>& found, int& tries)
{
    if (axis + 1 == mesh.size()) {
        mesh[axis].size = left;
        if (!cuts.firstProblem(mesh))
            found.push_back(mesh);
        --tries;
        return;
    }
    const std::vector<std::int64_t> sizes = divisorsOf(left);
    for (auto size = sizes.rbegin(); size != sizes.rend() && found.size() < kMostFactorisations && tries > 0; ++size) {
        mesh[axis].size = *size;
        factorise(cuts, mesh, axis + 1, left / *size, found, tries);
    }
}

} // namespace

std::int64_t devicesIn(const std::vector<MeshAxis>& axes)
{
    std::int64_t count = 1;
    for (const MeshAxis& axis : axes)
        count *= axis.size;
    return count;
}

std::vector<std::int64_t> legalAxisSizes(const Study& study, const std::string& axis, std::int64_t devices)
{
    const std::int64_t others = productOf(withSize(study.mesh, axis, 1));
    std::vector<std::int64_t> candidates;
    if (devices > 0)
        candidates = divisorsOf(std::max<std::int64_t>(1, devices / others));
    for (std::int64_t size = 1; devices <= 0 && size <= std::min(kLargestOfferedSize, kLargestMesh / others); ++size)
        candidates.push_back(size);

    Cuts cuts(study);
    std::erase_if(candidates,
        [&](std::int64_t size) { return size > 1 && cuts.firstProblem(withSize(study.mesh, axis, size)).has_value(); });
    return candidates;
}

std::string whyNotAxisSize(const Study& study, const std::string& axis, std::int64_t size, std::int64_t devices)
{
    if (size < 1)
        return fmt::format("a size is at least 1, got {}", size);
    const auto total = checkedMultiply(size, productOf(withSize(study.mesh, axis, 1)));
    if (!total || *total > kLargestMesh)
        return fmt::format("a mesh has at most {} devices", kLargestMesh);
    const std::vector<MeshAxis> mesh = withSize(study.mesh, axis, size);
    if (const auto problem = Cuts(study).firstProblem(mesh))
        return problem->message;
    if (devices > 0 && (*total > devices || devices % *total != 0))
        return fmt::format("{} makes {} devices, the hardware has {}", sizesText(mesh), *total, devices);
    return {};
}

std::vector<std::vector<MeshAxis>> meshFactorisations(const Study& study, std::int64_t devices)
{
    std::vector<std::vector<MeshAxis>> found;
    if (study.mesh.empty())
        return found;
    constexpr int kMostTries = 2000;
    int tries = kMostTries;
    Cuts cuts(study);
    std::vector<MeshAxis> mesh = study.mesh;
    factorise(cuts, mesh, 0, devices, found, tries);
    return found;
}

std::optional<std::vector<MeshAxis>> nearestMesh(const Study& study, std::int64_t devices)
{
    const auto distance = [&](const std::vector<MeshAxis>& mesh) {
        int changed = 0;
        double octaves = 0.0;
        int unused = 0;
        for (std::size_t i = 0; i < mesh.size(); ++i) {
            changed += mesh[i].size != study.mesh[i].size ? 1 : 0;
            const auto now = static_cast<double>(std::max<std::int64_t>(1, study.mesh[i].size));
            octaves += std::abs(std::log2(static_cast<double>(mesh[i].size) / now));
            unused += mesh[i].size == 1 ? 1 : 0;
        }
        return std::tuple(changed, octaves, unused);
    };
    std::optional<std::vector<MeshAxis>> best;
    for (const auto& mesh : meshFactorisations(study, devices)) {
        if (!best || distance(mesh) < distance(*best))
            best = mesh;
    }
    return best;
}

std::vector<std::string> meshSettings(const std::vector<MeshAxis>& from, const std::vector<MeshAxis>& to, const std::string& path)
{
    std::vector<std::string> settings;
    for (const MeshAxis& axis : to) {
        if (std::find(from.begin(), from.end(), axis) == from.end())
            settings.push_back(fmt::format("{}.{}={}", path, axis.name, axis.size));
    }
    return settings;
}

} // namespace meshwright
