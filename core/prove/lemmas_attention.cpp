// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include "core/program/attention.h"

#include <fmt/format.h>

#include <map>
#include <string>

namespace meshwright {

namespace {

/// A letter for each dimension of each operand and result: dimensions of one letter go together. s: queries, t: keys, g: groups of heads, h: heads of a
/// group, d: sizes of queries and keys, e: of values; digits: the batch.
struct Letters {
    Letters(const AttentionForm& form, std::size_t batchDims, bool isGradient)
    {
        std::string batch;
        for (std::size_t dim = 0; dim < batchDims; ++dim)
            batch += static_cast<char>('0' + dim);
        const std::string made = batch + "sghe";
        const std::string rows = batch + "sgh";
        operands = {batch + "sghd", batch + "tgd", batch + "tge"};
        results = {made, rows};
        if (form.causal)
            operands.insert(operands.end(), {"s", "t"});
        if (form.windowed)
            operands.emplace_back();
        if (form.segmented)
            operands.insert(operands.end(), {batch + "s", batch + "t"});
        if (isGradient) {
            results = {operands[0], operands[1], operands[2]};
            operands.insert(operands.end(), {made, rows, made});
        }
    }

    std::vector<std::string> operands;
    std::vector<std::string> results;
};

/// Where a letter's pieces are told by: copies may be taken to be pieces of any kind.
struct Reference {
    std::size_t operand = 0;
    std::size_t dim = 0;
};

std::map<char, Reference> referencesOf(const std::vector<Framed>& operands, const Letters& letters)
{
    std::map<char, Reference> references;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        for (std::size_t dim = 0; dim < letters.operands[i].size(); ++dim) {
            const auto [found, isNew] = references.try_emplace(letters.operands[i][dim], Reference{i, dim});
            const Reference& known = found->second;
            if (!isNew && operands[known.operand].isCopy(known.dim) && !operands[i].isCopy(dim))
                found->second = {i, dim};
        }
    }
    return references;
}

bool isNeededWhole(char letter)
{
    return letter == 't' || letter == 'd' || letter == 'e';
}

} // namespace

/// Each query of each head is computed apart, with all keys of its group. The cotangents of keys and values are sums over queries, and over the heads of
/// a group: where these are split, partial ones.
std::optional<Standing> attentionLemma(Site& site, std::size_t result)
{
    const auto form = attentionForm(site.op.as<OtherAttributes>());
    if (!form || site.local(0).size() < 4)
        return site.refuse("its attributes are not followed");
    const Letters letters(*form, site.local(0).size() - 4, site.op.kind == OpKind::AttentionGrad);
    std::vector<Framed> operands;
    std::int32_t mesh = 0;
    bool hasMesh = false;
    for (std::size_t i = 0; i < site.operands.size(); ++i) {
        operands.push_back(framed(site, i));
        if (!operands.back().partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
        if (placeAxes(*site.operands[i]).empty())
            continue;
        if (hasMesh && operands.back().mesh != mesh)
            return site.refuse("its operands are on different meshes");
        mesh = operands.back().mesh;
        hasMesh = true;
    }
    const std::map<char, Reference> references = referencesOf(operands, letters);
    std::string text = fmt::format("attention {} {} ", result, attributesText(site.walk, site.op));
    std::uint64_t varies = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Framed& operand = operands[i];
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            const char letter = letters.operands[i][dim];
            const Reference& reference = references.at(letter);
            if (isNeededWhole(letter)) {
                if (operand.isCopy(dim)) {
                    operand.shape[dim] = operand.local[dim];
                    operand.dims[dim].axes.clear();
                }
                if (!operand.isWhole(dim))
                    return site.refuse(fmt::format("operand {} is split along dimension {}, which it needs whole", i, dim));
                continue;
            }
            const Framed first = operands[reference.operand];
            adopt(operand, dim, first, reference.dim);
            if (!sameAlong(operand, dim, first, reference.dim))
                return site.refuse(fmt::format("operands {} and {} are split differently", reference.operand, i));
        }
        text += operand.text();
        varies |= site.walk.globals[operand.global].varies;
    }
    const std::string& made = letters.results[result];
    const Shape& local = site.localResult(result);
    Shape shape = local;
    std::vector<StandingDim> dims(local.size());
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        const Reference& reference = references.at(made[dim]);
        if (isNeededWhole(made[dim]))
            continue;
        shape[dim] = operands[reference.operand].shape[reference.dim];
        dims[dim] = operands[reference.operand].dims[reference.dim];
        dims[dim].fill = kNoGlobal;
    }
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    Standing standing = standingOf(global, shape, dims, local, mesh);
    for (const char summed : {'s', 'h'}) {
        if (made.find(summed) != std::string::npos)
            continue;
        const Reference& reference = references.at(summed);
        const Framed& operand = operands[reference.operand];
        if (!operand.isEven(reference.dim))
            return site.refuse(fmt::format("dimension {} of operand {} ends in padding", reference.dim, reference.operand));
        const AxisRefs& axes = operand.dims[reference.dim].axes;
        if (!disjoint(standing.partial, axes) || !disjoint(placeAxes(standing), axes))
            return site.refuse("an axis splits two of its dimensions");
        standing.partial.insert(standing.partial.end(), axes.begin(), axes.end());
    }
    standing.partial = canonicalSet(standing.partial);
    standing.kind = ReduceKind::Sum;
    return standing;
}

} // namespace meshwright
