// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/lemmas.h"

#include "core/program/body_collective.h"
#include "core/program/other_op.h"
#include "core/program/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace meshwright {

std::optional<Standing> exchangedPieces(
    Site& site, const BodyCollective& collective, const std::optional<AxisRefs>& axes, std::size_t operandIndex);

namespace {

using Dims = std::vector<std::size_t>;

/// The first `count` operands have one shape, or nearly, and the op needs some of their dimensions whole; results that have the same rank keep
/// the others.
Passing alongSome(const Site& site, std::size_t count, const Dims& whole)
{
    Passing passing = wholePassing(site);
    const std::size_t rank = site.local(0).size();
    const auto pass = [&](std::vector<int>& dims) {
        for (std::size_t dim = 0; dims.size() == rank && dim < rank; ++dim)
            dims[dim] = contains(whole, dim) ? -1 : static_cast<int>(dim);
    };
    for (std::size_t i = 0; i < std::min(count, passing.operands.size()); ++i)
        pass(passing.operands[i]);
    std::for_each(passing.results.begin(), passing.results.end(), pass);
    return passing;
}

/// Matrices and vectors in batches: dimension i of each array is a batch's, but for the last ones.
Passing inBatches(const Site& site)
{
    Passing passing = wholePassing(site);
    const std::size_t batches = site.local(0).size() - std::min<std::size_t>(2, site.local(0).size());
    for (auto* arrays : {&passing.operands, &passing.results}) {
        for (std::vector<int>& dims : *arrays) {
            for (std::size_t dim = 0; dim < std::min(batches, dims.size()); ++dim)
                dims[dim] = static_cast<int>(dim);
        }
    }
    return passing;
}

Dims lastDims(std::size_t rank, std::size_t count)
{
    Dims dims;
    for (std::size_t dim = rank - std::min(rank, count); dim < rank; ++dim)
        dims.push_back(dim);
    return dims;
}

/// Reductions of several arrays, or by a block of their own: the arrays, then an initial value for each.
Passing reducing(const Site& site, const Dims& reduced)
{
    Passing passing = alongSome(site, site.op.results.size(), reduced);
    for (std::vector<int>& result : passing.results) {
        result.clear();
        for (std::size_t dim = 0; dim < site.local(0).size(); ++dim) {
            if (!contains(reduced, dim))
                result.push_back(static_cast<int>(dim));
        }
    }
    return passing;
}

/// Operands and results that differ in the size of some dimensions, or in their number, pass along those that are equal.
Passing alongEqual(const Site& site)
{
    const Shape& from = site.local(0);
    const Shape& to = site.localResult();
    Passing passing = wholePassing(site);
    if (from == to)
        return passing;
    for (auto* arrays : {&passing.operands, &passing.results}) {
        for (std::vector<int>& dims : *arrays) {
            for (std::size_t dim = 0; dim < std::min({dims.size(), from.size(), to.size()}); ++dim)
                dims[dim] = from[dim] == to[dim] ? static_cast<int>(dim) : -1;
        }
    }
    return passing;
}

/// How windows slide along one dimension: the window of result element j begins at element j * stride - low.
struct Sliding {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::int64_t stride = 1;
    std::int64_t span = 1; ///< from the first to the last element of a window
    bool isDilated = false; ///< the array itself is
    std::int64_t cut = 0; ///< of a result in pieces that fill whole devices: so many elements at its end are none

    bool isTrivial() const { return low == 0 && stride == 1 && span == 1 && !isDilated; }
};

/// Along a dimension, the piece of the result that a device makes of what it has of the array. Whole dimensions slide as they are. Of split ones
/// a device has the window of elements that its piece of the result needs, with the filler where the array has none.
/// `text` is told where the windows of the whole array lie.
bool slides(Site& site, const Framed& array, std::size_t dim, const Sliding& sliding, GlobalId filler, std::int64_t local,
    std::size_t resultDim, StandingDim& along, std::int64_t& size, std::string& text)
{
    const auto fail = [&](const char* why) {
        site.refuse(fmt::format("dimension {}: {}", dim, why));
        return false;
    };
    along.fill = kNoGlobal;
    const auto describe = [&](std::int64_t low) {
        // What of the padding no window reaches makes no difference.
        text += fmt::format(" {}: {} from {} by {} over {} {}", dim, size, low, sliding.stride, sliding.span, sliding.isDilated);
    };
    if (array.isWhole(dim) || (array.isCopy(dim) && array.dims[dim].axes.empty())) {
        size = local;
        describe(sliding.low);
        return true;
    }
    const AxisRefs& axes = array.dims[dim].axes;
    along.axes = axes;
    const auto& claimed = site.walk.function[site.op.results[0]].sharding;
    const bool hasSameSize = site.walk.isSource() || (*site.walk.wholes)[site.op.results[0].at()][resultDim] == array.shape[dim];
    const bool passes = sliding.isTrivial() && sliding.high == 0;
    site.walk.hasUsedClaims = site.walk.hasUsedClaims || passes;
    if (passes && (array.isCopy(dim) || !site.walk.usesClaims || (hasSameSize && !array.dims[dim].window))) {
        along = array.dims[dim];
        along.fill = kNoGlobal;
        size = array.shape[dim];
        describe(0);
        return true;
    }
    const std::int64_t whole = array.shape[dim];
    if (sliding.isDilated || sliding.low != 0 || sliding.high != 0 || array.mesh != 0 || array.isCopy(dim)
        || site.walk.isSource())
        return fail("its windows reach into other pieces");
    const Shape& shape = (*site.walk.wholes)[site.op.results[0].at()];
    if (!claimed || claimed->dims.size() <= resultDim || canonical(claimed->dims[resultDim].axes) != axes
        || shape.size() <= resultDim)
        return fail("its result is split differently than its windows");
    const std::int64_t pieces = shardCount(axes);
    size = shape[resultDim] - (shape[resultDim] == local * pieces ? sliding.cut : 0);
    if (local * pieces < size || array.local[dim] < (local - 1) * sliding.stride + sliding.span
        || pieces * array.local[dim] > (1 << 21))
        return fail("its pieces do not cover the result");
    std::vector<std::vector<std::int64_t>> at; // by piece and index: the element of the whole array that the windows need there
    std::optional<std::int64_t> low;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::int64_t results = std::max<std::int64_t>(0, std::min(local, size - piece * local));
        auto& own = at.emplace_back(static_cast<std::size_t>(array.local[dim]), -1);
        if (array.dims[dim].window) {
            for (const Run& run : (*array.dims[dim].window)[static_cast<std::size_t>(piece)]) {
                for (std::int64_t i = 0; i < run.length; ++i)
                    own[static_cast<std::size_t>(run.at + i)] = run.start + i;
            }
        } else {
            for (std::int64_t i = 0; i < array.local[dim] && piece * array.local[dim] + i < whole; ++i)
                own[static_cast<std::size_t>(i)] = piece * array.local[dim] + i;
        }
        own.resize(results > 0 ? static_cast<std::size_t>((results - 1) * sliding.stride + sliding.span) : 0);
        const auto first = std::find_if(own.begin(), own.end(), [](std::int64_t element) { return element >= 0; });
        if (!low && first != own.end())
            low = piece * local * sliding.stride + (first - own.begin()) - *first;
    }
    if (!low)
        return fail("no device has any element");
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        std::int64_t element = piece * local * sliding.stride - *low;
        for (const std::int64_t held : at[static_cast<std::size_t>(piece)]) {
            const bool exists = element >= 0 && element < whole;
            if (held != (exists ? element : -1))
                return fail("a device lacks an element that its windows need");
            if (!exists && (filler == kNoGlobal || array.dims[dim].fill != filler))
                return fail("a device has something else than the padding outside of the array");
            ++element;
        }
    }
    describe(*low);
    return true;
}

/// Where the windows of a result along a split dimension end within the last piece, its text does not say: of a few places, the one that is the source's.
template <typename Lemma>
std::optional<Standing> withSomeEnd(Site& site, const Lemma& lemma)
{
    constexpr std::int64_t kMostCut = 8;
    const std::optional<Standing> made = lemma(0);
    const auto isOfSource
        = [&](const std::optional<Standing>& standing) { return standing && site.walk.globals[standing->global].isInSource; };
    const auto& claimed = site.walk.function[site.op.results[0]].sharding;
    const bool mayEndBefore = !site.walk.isSource() && claimed
        && std::any_of(claimed->dims.begin(), claimed->dims.end(), [](const DimSharding& dim) { return !dim.axes.empty(); });
    for (std::int64_t cut = 1; mayEndBefore && !isOfSource(made) && cut < kMostCut; ++cut) {
        if (std::optional<Standing> other = lemma(cut); isOfSource(other))
            return other;
    }
    return made;
}

/// Batch and features of a convolution may be split; over split features that it sums the result is partial.
std::optional<Standing> convolutionLemma(Site& site, std::int64_t cut)
{
    const auto& other = site.op.as<OtherAttributes>();
    const auto numbers = convolutionDims(other.attributes);
    if (!numbers)
        return site.refuse("its dimensions are not followed");
    Framed input = framed(site, 0);
    Framed kernel = framed(site, 1);
    if (!input.partial.empty() || !kernel.partial.empty())
        return site.refuse("an operand is a partial result");
    const std::size_t rank = input.dims.size();
    std::vector<StandingDim> dims(rank);
    Shape shape = site.localResult();
    const std::size_t features = numbers->input.inner;
    std::int64_t featureGroups = numbers->featureGroups;
    std::int64_t batchGroups = numbers->batchGroups;
    AxisRefs summed;
    const auto pass = [&](const Framed& from, std::size_t dim, std::size_t to) {
        shape[to] = from.shape[dim];
        dims[to] = from.dims[dim];
        dims[to].fill = kNoGlobal;
    };
    const auto isUnsplit = [](const Framed& array, std::size_t dim) {
        return array.isWhole(dim) || (array.isCopy(dim) && array.dims[dim].axes.empty());
    };
    // Along a dimension that is in groups, the first axes split the groups: a device has some of them, whole, or a part of one. The features that the
    // kernel makes are split by the same first axes, and those of one group may be split further.
    const auto isSplitInGroups
        = [&](std::size_t ofInput, std::int64_t ownGroups, const AxisRefs& ofGroups, const AxisRefs& inGroup) {
              const auto more = withoutStart(kernel.dims[numbers->kernel.inner].axes, ofGroups);
              return more && (ownGroups == 1 || (more->empty() && inGroup.empty())) && disjoint(*more, inGroup)
                  && input.isEven(ofInput) && kernel.isEven(numbers->kernel.inner);
          };
    pass(input, numbers->input.outer, numbers->result.outer);
    pass(kernel, numbers->kernel.inner, numbers->result.inner);
    if (!isUnsplit(input, features) && input.shape[features] != kernel.shape[numbers->kernel.outer]) {
        const AxisRefs& inGroup = kernel.dims[numbers->kernel.outer].axes;
        const auto ofGroups = withoutEnd(input.dims[features].axes, inGroup);
        if (!ofGroups || !isSplitInGroups(features, featureGroups, *ofGroups, inGroup) || !kernel.isEven(numbers->kernel.outer)
            || featureGroups * shardCount(*ofGroups) * kernel.shape[numbers->kernel.outer] != input.shape[features])
            return site.refuse("its groups of features are split differently");
        featureGroups *= shardCount(*ofGroups);
        summed = inGroup;
    } else {
        if (input.isCopy(features))
            adopt(input, features, kernel, numbers->kernel.outer);
        else
            adopt(kernel, numbers->kernel.outer, input, features);
        const bool isGrouped = featureGroups > 1;
        if (isGrouped ? !isUnsplit(input, features) || !isUnsplit(kernel, numbers->kernel.outer)
                    || !isUnsplit(kernel, numbers->kernel.inner)
                      : !sameAlong(input, features, kernel, numbers->kernel.outer) || !input.isEven(features))
            return site.refuse("its operands are split differently along the features that it sums over");
        summed = input.dims[features].axes;
    }
    // How many batches there are in all is known from the whole result: a device may have one of them, or a part of it.
    const std::size_t batch = numbers->input.outer;
    const std::int64_t wholeBatch
        = (site.walk.isSource() ? site.localResult() : (*site.walk.wholes)[site.op.results[0].at()])[numbers->result.outer];
    if (batchGroups > 1 || shape[numbers->result.outer] > wholeBatch) {
        const AxisRefs& all = input.dims[batch].axes;
        AxisRefs inGroup;
        const std::int64_t own = site.localResult()[numbers->result.outer];
        for (auto axis = all.rbegin(); own > 0 && axis != all.rend() && own * shardCount(inGroup) < wholeBatch; ++axis) {
            const std::int64_t missing = wholeBatch / (own * shardCount(inGroup));
            const std::int64_t size = axis->size % missing == 0 ? missing : axis->size;
            inGroup.insert(inGroup.begin(), AxisRef{axis->axis, axis->pre * (axis->size / size), size});
        }
        inGroup = canonical(inGroup);
        const auto ofGroups = withoutEnd(all, inGroup);
        if (!ofGroups || own * shardCount(inGroup) != wholeBatch || !isSplitInGroups(batch, batchGroups, *ofGroups, inGroup))
            return site.refuse("its groups of the batch are split differently");
        batchGroups *= shardCount(*ofGroups);
        shape[numbers->result.outer] = wholeBatch;
        dims[numbers->result.outer] = {};
        dims[numbers->result.outer].axes = inGroup;
    }
    std::string text = fmt::format("convolution {} {} groups {} {}", typeText({site.dtype(), {}}),
        attributesTextWithout(site.walk, site.op, {"padding", "feature_group_count", "batch_group_count"}), featureGroups,
        batchGroups);
    const auto at = [&](const char* attribute, std::size_t index, std::int64_t otherwise) {
        const auto integers = integersAt(other.attributes, attribute);
        return index < integers.size() ? integers[index] : otherwise;
    };
    const GlobalId zero = site.walk.globals.scalar(site.walk.dtype(site.value(0)), {0.0});
    for (std::size_t i = 0; i < numbers->input.spatial.size(); ++i) {
        const std::size_t dim = numbers->input.spatial[i];
        const std::size_t window = numbers->kernel.spatial[i];
        const std::size_t to = numbers->result.spatial[i];
        if (!isUnsplit(kernel, window))
            return site.refuse("its windows are split");
        const Sliding sliding{at("padding", 2 * i, 0), at("padding", 2 * i + 1, 0), at("window_strides", i, 1),
            (kernel.local[window] - 1) * at("rhs_dilation", i, 1) + 1, at("lhs_dilation", i, 1) != 1, cut};
        if (!slides(site, input, dim, sliding, zero, site.localResult()[to], to, dims[to], shape[to], text))
            return std::nullopt;
    }
    const GlobalId global = site.walk.globals.number(fmt::format("{} {} {}", text, input.text(), kernel.text()), shape,
        site.dtype(), site.walk.globals[input.global].varies | site.walk.globals[kernel.global].varies);
    Standing made = standingOf(global, shape, dims, site.localResult(), site.mesh());
    made.partial = canonicalSet(summed);
    if (!disjoint(made.partial, placeAxes(made)))
        return site.refuse("an axis that splits the summed features splits another dimension too");
    return made;
}

/// Reductions of windows: `op.operands` are arrays of one shape, then an initial value for each.
std::optional<Standing> windowReductionLemma(Site& site, std::size_t result, std::int64_t cut)
{
    const auto& other = site.op.as<OtherAttributes>();
    const std::size_t arrays = site.op.results.size();
    const std::size_t rank = site.local(0).size();
    const auto windows = windowDims(other.attributes, rank);
    if (!windows || site.operands.size() != 2 * arrays || other.captures > 0)
        return site.refuse("its windows are not followed");
    std::vector<Framed> operands;
    for (std::size_t i = 0; i < site.operands.size(); ++i)
        operands.push_back(framed(site, i));
    std::string text = fmt::format("windows {} {}", result, attributesTextWithout(site.walk, site.op, {"padding"}));
    Shape shape = site.localResult(result);
    std::vector<StandingDim> dims(rank);
    std::uint64_t varies = 0;
    Framed first = operands.front();
    for (std::size_t dim = 0; dim < rank; ++dim) {
        for (std::size_t i = 1; i < arrays; ++i)
            adopt(first, dim, operands[i], dim);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].partial.empty())
            return site.refuse(fmt::format("operand {} is a partial result", i));
        for (std::size_t dim = 0; dim < rank && i < arrays; ++dim) {
            adopt(operands[i], dim, first, dim);
            if (!sameAlong(operands[i], dim, first, dim))
                return site.refuse(fmt::format("its operands are split differently along dimension {}", dim));
            const WindowDim& window = (*windows)[dim];
            const Sliding sliding{window.low, window.high, window.stride, (window.size - 1) * window.windowDilation + 1,
                window.baseDilation != 1, cut};
            if (!slides(site, operands[i], dim, sliding, site.operands[arrays + i]->global, site.localResult(result)[dim], dim,
                    dims[dim], shape[dim], text))
                return std::nullopt;
        }
        text += operands[i].text();
        varies |= site.walk.globals[operands[i].global].varies;
    }
    const GlobalId global = site.walk.globals.number(std::move(text), shape, site.dtype(result), varies);
    return standingOf(global, shape, dims, site.localResult(result), site.mesh());
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

/// Of a custom call. All others need everything whole.
Passing passingOfCall(const Site& site, std::string_view target)
{
    constexpr std::array kByElement = {"annotate_device_placement", "InspectSharding", "LayoutConstraint", "mhlo.erf",
        "MoveToDevice", "MoveToHost", "X64Combine", "X64SplitHigh", "X64SplitLow", "xla.megascale.provide_metadata"};
    constexpr std::array kOfMatrices = {"Cholesky", "CompactWyHelper", "Eigh", "InvertDiagBlocksLowerTriangular",
        "InvertDiagBlocksUpperTriangular", "ProductOfElementaryHouseholderReflectors", "Qr", "QrDecompositionBlock"};
    if (std::find(kByElement.begin(), kByElement.end(), target) != kByElement.end())
        return alongSome(site, site.operands.size(), {});
    if (std::find(kOfMatrices.begin(), kOfMatrices.end(), target) != kOfMatrices.end())
        return inBatches(site);
    if (target == "mhlo.topk")
        return alongSome(site, 1, lastDims(site.local(0).size(), 1));
    if (target == "ApproxTopK" || target == "PartialReduce")
        return alongEqual(site);
    return wholePassing(site);
}

/// Along which dimensions a kept op computes the same for each index by itself.
Passing passingOf(const Site& site)
{
    const KeptAttributes& attributes = site.op.as<OtherAttributes>().attributes;
    const std::size_t rank = site.operands.empty() ? 0 : site.local(0).size();
    switch (site.op.kind) {
    case OpKind::Sort: {
        const auto dim = integerAt(attributes, "dimension").value_or(-1);
        return alongSome(
            site, site.operands.size(), {static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim)});
    }
    case OpKind::Fft:
    case OpKind::FftOfPairs:
        return alongSome(
            site, site.operands.size(), lastDims(rank, std::max<std::size_t>(1, integersAt(attributes, "fft_length").size())));
    case OpKind::Cholesky:
    case OpKind::TriangularSolve:
        return inBatches(site);
    case OpKind::TopK:
        return alongSome(site, 1, lastDims(rank, 1));
    case OpKind::VariadicReduce: {
        const auto dims = dimsAt(attributes, "dimensions", rank);
        return dims ? reducing(site, *dims) : wholePassing(site);
    }
    case OpKind::SelectAndScatter:
        return alongSome(site, 2, windowedDims(attributes, rank));
    case OpKind::BitcastRegroup:
        return alongEqual(site);
    case OpKind::CustomCall:
        return passingOfCall(site, callTarget(site.op.as<OtherAttributes>()));
    default:
        return wholePassing(site);
    }
}

/// What an op does besides is known to be nothing to its results.
bool isFunctionOfOperands(const OtherAttributes& other, OpKind kind)
{
    return kind != OpKind::Rng && otherClass(other) != OtherClass::Unknown
        && (!hasEffect(other) || callTarget(other) == "annotate_device_placement");
}

} // namespace

std::optional<Standing> keptLemma(Site& site, std::size_t result)
{
    const auto& other = site.op.as<OtherAttributes>();
    const OpKind kind = site.op.kind;
    if (movedTo(site.op))
        return identityLemma(site, result);
    if (isElementwise(site.op))
        return elementwiseLemma(site, result);
    if (isBodyCollective(site.op) || isPartitionId(site.op)) {
        if (!site.walk.isSource())
            return site.refuse("it is not a collective over axes");
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
    if (!isFunctionOfOperands(other, kind))
        return site.refuse("nothing is known of what it computes");
    if (kind == OpKind::ReduceWindow)
        return withSomeEnd(site, [&](std::int64_t cut) { return windowReductionLemma(site, result, cut); });
    if (kind == OpKind::Convolution)
        return withSomeEnd(site, [&](std::int64_t cut) { return convolutionLemma(site, cut); });
    if (kind == OpKind::VariadicScatter)
        return scatterLemma(site, result);
    if (kind == OpKind::Attention || kind == OpKind::AttentionGrad)
        return attentionLemma(site, result);
    return apart(site, result, other.captures == 0 ? passingOf(site) : wholePassing(site),
        fmt::format("{} {}", opName(site.op), attributesText(site.walk, site.op)));
}

} // namespace meshwright
