// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include "core/program/body_collective.h"
#include "core/program/other_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

std::optional<Standing> exchangedPieces(
    Site& site, const BodyCollective& collective, const std::optional<AxisRefs>& axes, std::size_t operandIndex);

namespace {

/// An op that works on arrays of one shape, apart for each index along all but some of their dimensions.
std::optional<Standing> alongSome(Site& site, std::size_t result, std::size_t arrays, const std::vector<std::size_t>& along)
{
    std::vector<Framed> operands;
    for (std::size_t i = 0; i < site.operands.size(); ++i)
        operands.push_back(framed(site, i));
    Framed first = operands.front();
    const auto isAlong = [&](std::size_t dim) { return std::find(along.begin(), along.end(), dim) != along.end(); };
    std::string text = fmt::format("kept {} {} ", result, attributesText(site.walk, site.op));
    std::uint64_t varies = 0;
    for (std::size_t dim = 0; dim < first.dims.size(); ++dim) {
        for (std::size_t i = 1; i < arrays; ++i) {
            if (first.isCopy(dim) && !operands[i].isCopy(dim))
                adopt(first, dim, operands[i], dim);
        }
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Framed& operand = operands[i];
        if (!operand.partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            if (i < arrays && !isAlong(dim)) {
                adopt(operand, dim, first, dim);
                if (!sameAlong(operand, dim, first, dim))
                    return site.refuse(fmt::format("its operands are split differently along dimension {}", dim));
                continue;
            }
            if (operand.isCopy(dim)) {
                operand.shape[dim] = operand.local[dim];
                operand.dims[dim].axes.clear();
            }
            if (!operand.isWhole(dim))
                return site.refuse(fmt::format("operand {} is split along dimension {}, which it needs whole", i, dim));
        }
        text += operand.text();
        varies |= site.walk.globals[operand.global].varies;
    }
    const Shape& local = site.localResult(result);
    if (local.size() != first.dims.size())
        return site.refuse("its result has other dimensions");
    Shape shape = local;
    std::vector<StandingDim> dims(local.size());
    std::int32_t mesh = first.mesh;
    for (std::size_t dim = 0; dim < local.size(); ++dim) {
        if (isAlong(dim))
            continue;
        shape[dim] = first.shape[dim];
        dims[dim] = first.dims[dim];
        dims[dim].fill = kNoGlobal;
    }
    for (std::size_t i = 0; i < arrays; ++i) {
        if (!placeAxes(*site.operands[i]).empty())
            mesh = operands[i].mesh;
    }
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    return standingOf(global, shape, dims, local, mesh);
}

std::vector<std::size_t> lastDims(std::size_t rank, std::size_t count)
{
    std::vector<std::size_t> dims;
    for (std::size_t dim = rank - std::min(rank, count); dim < rank; ++dim)
        dims.push_back(dim);
    return dims;
}

/// Reductions of several arrays, or by a block of their own: `op.operands` are the arrays, then an initial value for each.
std::optional<Standing> keptReduction(Site& site, std::size_t result, const std::vector<std::size_t>& reduced)
{
    const std::size_t arrays = site.op.results.size();
    if (site.operands.size() != 2 * arrays)
        return site.refuse("it has other operands than arrays and initial values");
    const auto& other = site.op.as<OtherAttributes>();
    std::vector<Framed> operands;
    for (std::size_t i = 0; i < site.operands.size(); ++i)
        operands.push_back(framed(site, i));
    std::string text = fmt::format("kept {} {} ", result, attributesText(site.walk, site.op));
    std::uint64_t varies = 0;
    Framed first = operands.front();
    for (std::size_t i = 0; i < operands.size(); ++i) {
        Framed& operand = operands[i];
        if (!operand.partial.empty() || other.captures > 0)
            return site.refuse(fmt::format("operand {} is a partial result", i));
        for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
            const bool isReduced = std::find(reduced.begin(), reduced.end(), dim) != reduced.end();
            adopt(operand, dim, first, dim);
            if (isReduced && operand.isCopy(dim) && i == 0) {
                operand.shape[dim] = operand.local[dim];
                operand.dims[dim].axes.clear();
                first = operand;
            }
            if (isReduced && !operand.isWhole(dim))
                return site.refuse(fmt::format("operand {} is split along dimension {}", i, dim));
            if (!sameAlong(operand, dim, first, dim))
                return site.refuse(fmt::format("its operands are split differently along dimension {}", dim));
        }
        text += operand.text();
        varies |= site.walk.globals[operand.global].varies;
    }
    Shape shape;
    std::vector<StandingDim> dims;
    for (std::size_t dim = 0; dim < first.dims.size(); ++dim) {
        if (std::find(reduced.begin(), reduced.end(), dim) != reduced.end())
            continue;
        shape.push_back(first.shape[dim]);
        dims.push_back(first.dims[dim]);
        dims.back().fill = kNoGlobal;
    }
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    return standingOf(global, shape, dims, site.localResult(result), first.mesh);
}

/// Batch and output features of a convolution may be split; over split input features the result is partial.
std::optional<Standing> convolutionLemma(Site& site)
{
    const auto& other = site.op.as<OtherAttributes>();
    const auto numbers = convolutionDims(other.attributes);
    if (!numbers || numbers->batchGroups != 1 || numbers->featureGroups != 1)
        return site.refuse("its groups are not followed");
    Framed input = framed(site, 0);
    Framed kernel = framed(site, 1);
    if (!input.partial.empty() || !kernel.partial.empty())
        return site.refuse("an operand is a partial result");
    const std::size_t rank = input.dims.size();
    std::vector<StandingDim> dims(rank);
    Shape shape = site.localResult();
    adopt(input, numbers->input.inner, kernel, numbers->kernel.outer);
    adopt(kernel, numbers->kernel.outer, input, numbers->input.inner);
    if (!sameAlong(input, numbers->input.inner, kernel, numbers->kernel.outer) || !input.isEven(numbers->input.inner))
        return site.refuse("its operands are split differently along the features that it sums over");
    for (const auto* array : {&input, &kernel}) {
        for (const std::size_t dim : (array == &input ? numbers->input : numbers->kernel).spatial) {
            if (!array->isWhole(dim) && !(array->isCopy(dim) && array->dims[dim].axes.empty()))
                return site.refuse(fmt::format("dimension {} is split, and its windows reach into other pieces", dim));
        }
    }
    const auto pass = [&](const Framed& from, std::size_t dim, std::size_t to) {
        shape[to] = from.shape[dim];
        dims[to] = from.dims[dim];
        dims[to].fill = kNoGlobal;
    };
    pass(input, numbers->input.outer, numbers->result.outer);
    pass(kernel, numbers->kernel.inner, numbers->result.inner);
    const GlobalId global = site.walk.globals.number(fmt::format("convolution {} {} {} {}", typeText({site.dtype(), {}}),
                                                         attributesText(site.walk, site.op), input.text(), kernel.text()),
        shape, site.dtype(), site.walk.globals[input.global].varies | site.walk.globals[kernel.global].varies);
    const bool ownsMesh = !placeAxes(*site.operands[0]).empty();
    Standing made = standingOf(global, shape, dims, site.localResult(), ownsMesh ? input.mesh : kernel.mesh);
    made.partial = canonicalSet(input.dims[numbers->input.inner].axes);
    if (!disjoint(made.partial, placeAxes(made)))
        return site.refuse("an axis that splits the summed features splits another dimension too");
    return made;
}

/// Dimensions along which windows are more than the elements themselves.
std::vector<std::size_t> windowedDims(const KeptAttributes& attributes, std::size_t rank)
{
    std::vector<std::size_t> dims;
    const auto windows = windowDims(attributes, rank);
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (!windows || !(*windows)[dim].isTrivial())
            dims.push_back(dim);
    }
    return dims;
}

} // namespace

std::optional<Standing> keptLemma(Site& site, std::size_t result)
{
    const auto& other = site.op.as<OtherAttributes>();
    const std::string_view name = baseName(other.name);
    if (isElementwise(site.op))
        return elementwiseLemma(site, result);
    if (isBodyCollective(site.op) || isPartitionId(site.op)) {
        if (!site.walk.isSource())
            return site.refuse("it is no collective over axes");
        const Mesh& mesh = site.walk.mesh();
        if (isPartitionId(site.op)) {
            Standing made;
            made.global = site.walk.globals.number("partition id", {}, DType::U32, ~std::uint64_t{0});
            return made;
        }
        const auto collective = bodyCollective(site.walk.function, site.op, mesh);
        if (!collective)
            return site.refuse(collective.error().front().message);
        const auto axes = collective->sources.empty() ? axesOfGroups(collective->groups, mesh) : std::nullopt;
        return exchangedPieces(site, *collective, axes, result);
    }
    static const std::set<std::string_view> kRandom = {"rng", "rng_bit_generator"};
    if (hasEffect(other) || otherClass(other) == OtherClass::Unknown || kRandom.contains(name))
        return site.refuse("nothing is known of what it computes");
    const std::size_t rank = site.operands.empty() ? 0 : site.local(0).size();
    if (name == "sort" && other.captures == 0) {
        const auto dim = integerAt(other.attributes, "dimension").value_or(static_cast<std::int64_t>(rank) - 1);
        return alongSome(site, result, site.operands.size(),
            {static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim)});
    }
    if (name == "fft")
        return alongSome(
            site, result, 1, lastDims(rank, std::max<std::size_t>(1, integersAt(other.attributes, "fft_length").size())));
    if (name == "cholesky")
        return alongSome(site, result, 1, lastDims(rank, 2));
    if (name == "triangular_solve")
        return alongSome(site, result, 2, lastDims(rank, 2));
    if (name == "top_k")
        return alongSome(site, result, 1, lastDims(rank, 1));
    if (name == "reduce") {
        const auto dims = dimsAt(other.attributes, "dimensions", rank);
        if (dims)
            return keptReduction(site, result, *dims);
    }
    if (name == "reduce_window" && other.captures == 0)
        return alongSome(site, result, site.op.results.size(), windowedDims(other.attributes, rank));
    if (name == "convolution")
        return convolutionLemma(site);
    return wholeOp(site, result);
}

} // namespace meshwright
