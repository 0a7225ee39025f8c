// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/array_index.h"
#include "core/prove/identity_run.h"
#include "core/prove/walk.h"

#include "core/program/convolution_windows.h"
#include "core/program/other_op.h"
#include "core/program/placement.h"
#include "core/sharding/shard_indices.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace meshwright {

namespace {

using Dims = std::vector<std::size_t>;
using Operands = std::span<const Elements* const>;

/// Where a slice begins, clamped so that it lies within the array.
struct Starts {
    Shape known; ///< 0 along the dimensions of `unknown`
    Dims unknown; ///< the start depends on the inputs, and there is more than one place
};

/// `starts` are scalars, one for each dimension.
Starts clampedStarts(Operands starts, const Shape& array, const Shape& slice)
{
    Starts made{Shape(array.size(), 0), {}};
    for (std::size_t dim = 0; dim < array.size(); ++dim) {
        const Element& start = starts[dim]->front();
        if (start.isKnown)
            made.known[dim] = std::clamp<std::int64_t>(start.number, 0, array[dim] - slice[dim]);
        else if (array[dim] > slice[dim])
            made.unknown.push_back(dim);
    }
    return made;
}

template <typename T>
T readAt(const std::string& bytes, std::size_t index)
{
    T value{};
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

/// Where the windows of a gather or a scatter are, by the index of an element of the slices' array.
class SlicePlaces {
public:
    SlicePlaces(const IndexingDims& dims, const Shape& indices, std::size_t rank)
        : m_dims(dims)
        , m_indices(indices)
        , m_rank(rank)
    {
    }

    struct Place {
        Shape offset; ///< in the array, without the start
        std::vector<std::size_t> starts; ///< elements of the indices, one for each entry of `indexMap`
    };

    Place of(const Shape& element) const
    {
        Place place{Shape(m_rank, 0), {}};
        Shape at(m_indices.size(), 0);
        std::size_t arrayDim = 0;
        std::size_t indexDim = 0;
        for (std::size_t dim = 0; dim < element.size(); ++dim) {
            if (contains(m_dims.window, dim)) {
                while (contains(m_dims.collapsed, arrayDim) || contains(m_dims.operandBatch, arrayDim))
                    ++arrayDim;
                place.offset[arrayDim++] = element[dim];
                continue;
            }
            indexDim += indexDim == m_dims.indexVectorDim ? 1 : 0;
            at[indexDim] = element[dim];
            const auto batch = std::find(m_dims.indicesBatch.begin(), m_dims.indicesBatch.end(), indexDim++);
            if (batch != m_dims.indicesBatch.end())
                place.offset[m_dims.operandBatch[static_cast<std::size_t>(batch - m_dims.indicesBatch.begin())]] = element[dim];
        }
        for (std::size_t i = 0; i < m_dims.indexMap.size(); ++i) {
            if (m_dims.indexVectorDim < at.size())
                at[m_dims.indexVectorDim] = static_cast<std::int64_t>(i);
            place.starts.push_back(flatIndex(at, m_indices));
        }
        return place;
    }

private:
    const IndexingDims& m_dims;
    const Shape& m_indices;
    std::size_t m_rank;
};

/// The place in an array of the element of a window, or none: it is padding.
std::optional<std::int64_t> placeIn(const WindowDim& window, std::int64_t result, std::int64_t inWindow, std::int64_t size)
{
    const std::int64_t at = result * window.stride + inWindow * window.windowDilation - window.low;
    const bool isThere = at >= 0 && at % window.baseDilation == 0 && at / window.baseDilation < size;
    return isThere ? std::optional(at / window.baseDilation) : std::nullopt;
}

Shape sizesOf(const std::vector<WindowDim>& windows)
{
    Shape sizes;
    for (const WindowDim& window : windows)
        sizes.push_back(window.size);
    return sizes;
}

} // namespace

/// The elements of an array along some dimensions, at one place along the others, as one word.
Residue IdentityRun::lineAlong(
    const Elements& array, const Shape& shape, const std::vector<std::size_t>& dims, Shape at, Hash hash)
{
    Shape line(shape.size(), 1);
    for (const std::size_t dim : dims) {
        line[dim] = shape[dim];
        at[dim] = 0;
    }
    m_work -= kStepsOfElement * elementCount(line);
    if (isOver())
        return 0;
    forEachIndex(line, [&](Shape index) {
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += at[dim];
        hash.add(array[flatIndex(index, shape)].residue);
    });
    return hash.residue();
}

/// Beyond an array there is nothing that is known.
Element IdentityRun::at(std::span<const Element> elements, const Shape& index, const Shape& shape) const
{
    return isWithin(index, shape) ? elements[flatIndex(index, shape)] : m_algebra.fresh();
}

std::vector<Elements> IdentityRun::compute(const Op& op, const Lanes& lanes, std::size_t lane)
{
    std::vector<const Elements*> operands;
    for (const ValueId operand : op.operands)
        operands.push_back(&lanes[operand][lane]);
    switch (op.kind) {
    case OpKind::Constant:
        return {constant(op.as<ConstantAttributes>())};
    case OpKind::Iota: {
        Elements made;
        const std::size_t dim = op.as<IotaAttributes>().dim;
        const Shape start = startOf(op.results[0], lanes, lane);
        forEachIndex(shape(op.results[0]),
            [&](const Shape& index) { made.push_back(Algebra::known(start[dim] + index[dim], dtype(op.results[0]))); });
        return {made};
    }
    case OpKind::RandomBits:
    case OpKind::RngBitGenerator:
        return generatedBits(op, operands, lanes, lane);
    case OpKind::ShardingConstraint:
    case OpKind::PropagationBarrier:
    case OpKind::OptimizationBarrier: {
        std::vector<Elements> made;
        std::transform(
            operands.begin(), operands.end(), std::back_inserter(made), [](const Elements* operand) { return *operand; });
        return made;
    }
    case OpKind::PartitionId:
        if (lanes.mesh == nullptr)
            break;
        return {{Algebra::known(lanes.mesh->deviceAt(lanes.positions[lane]), dtype(op.results[0]))}};
    case OpKind::BroadcastInDim:
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Slice:
    case OpKind::Pad:
    case OpKind::Concatenate:
    case OpKind::Reverse:
        return {moved(op, operands)};
    case OpKind::DynamicSlice:
        return {dynamicSlice(op, operands)};
    case OpKind::DynamicUpdateSlice:
        return {dynamicUpdate(op, operands)};
    case OpKind::Gather:
        return {gathered(op, op.as<GatherAttributes>(), operands)};
    case OpKind::Scatter:
        return scattered(op, op.as<ScatterAttributes>().dims, op.as<ScatterAttributes>().combiner, operands);
    case OpKind::Reduce:
        return {reduced(op, operands)};
    case OpKind::DotGeneral:
        return {dot(op, operands)};
    default:
        break;
    }
    if (isElementwise(op))
        return {elementwise(op, operands)};
    if (isKept(op.kind))
        return kept(op, operands);
    std::vector<Elements> made;
    for (const ValueId result : op.results)
        made.push_back(freshElements(result));
    return made;
}

Elements IdentityRun::constant(const ConstantAttributes& constant) const
{
    const auto count = static_cast<std::size_t>(constant.type.elements());
    const DType type = constant.type.dtype;
    if (const auto* number = std::get_if<double>(&constant.data.value))
        return Elements(count, m_algebra.constant(*number, type));
    if (const auto* number = std::get_if<std::int64_t>(&constant.data.value))
        return Elements(count, Algebra::known(*number, type));
    Elements made;
    const auto& blob = std::get<2>(constant.data.value);
    const auto width = static_cast<std::size_t>(byteSize(type));
    for (std::size_t i = 0; i < count; ++i) {
        if (blob == nullptr || blob->size() < (i + 1) * width) {
            made.push_back(m_algebra.fresh());
        } else if (type == DType::F32) {
            made.push_back(m_algebra.constant(double{readAt<float>(*blob, i)}, type));
        } else if (type == DType::F64) {
            made.push_back(m_algebra.constant(readAt<double>(*blob, i), type));
        } else if (isFloating(type) || width > 8) {
            Hash hash = m_algebra.function(dtypeName(type));
            bool isZero = true;
            for (std::size_t byte = i * width; byte < (i + 1) * width; ++byte) {
                hash.add(static_cast<unsigned char>((*blob)[byte]));
                isZero = isZero && (*blob)[byte] == 0;
            }
            made.push_back(isZero ? Algebra::known(0, type) : Algebra::opaque(hash, true));
        } else {
            std::uint64_t bits = 0;
            std::memcpy(&bits, blob->data() + i * width, width);
            made.push_back(Algebra::known(static_cast<std::int64_t>(bits), type)); // wraps to the sign
        }
    }
    return made;
}

/// Where a device's piece of a value begins in the whole array.
Shape IdentityRun::startOf(ValueId value, const Lanes& lanes, std::size_t lane) const
{
    Shape start(shape(value).size(), 0);
    const auto& sharding = m_function[value].sharding;
    if (m_wholes == nullptr || !sharding)
        return start;
    const Mesh& mesh = m_meshes[static_cast<std::size_t>(sharding->mesh)].mesh;
    const std::int64_t position = positionOn(sharding->mesh, lanes.positions[lane]);
    for (std::size_t dim = 0; dim < start.size(); ++dim)
        start[dim]
            = std::min((*m_wholes)[value.at()][dim], shardIndex(position, sharding->dims[dim].axes, mesh) * shape(value)[dim]);
    return start;
}

Elements IdentityRun::elementwise(const Op& op, Operands operands)
{
    std::vector<DType> types;
    for (const ValueId operand : op.operands)
        types.push_back(dtype(operand));
    Elements made(static_cast<std::size_t>(m_function[op.results[0]].type.elements()));
    Elements given(operands.size());
    const Hash meaning = m_algebra.function(op);
    for (std::size_t i = 0; i < made.size(); ++i) {
        for (std::size_t operand = 0; operand < operands.size(); ++operand)
            given[operand] = (*operands[operand])[i];
        made[i] = m_algebra.elementwise(op, meaning, given, types, dtype(op.results[0]));
    }
    return made;
}

/// Ops whose results are elements of their operands, at places that are the same for every input.
Elements IdentityRun::moved(const Op& op, Operands operands)
{
    if (op.kind == OpKind::Reshape)
        return *operands[0];
    const Shape& from = shape(op.operands[0]);
    Elements made;
    forEachIndex(shape(op.results[0]), [&](const Shape& index) {
        Shape at(from.size(), 0);
        std::size_t operand = 0;
        switch (op.kind) {
        case OpKind::BroadcastInDim:
            for (std::size_t dim = 0; dim < at.size(); ++dim)
                at[dim] = from[dim] == 1 ? 0 : index[op.as<BroadcastAttributes>().dims[dim]];
            break;
        case OpKind::Transpose:
            for (std::size_t dim = 0; dim < at.size(); ++dim)
                at[op.as<TransposeAttributes>().permutation[dim]] = index[dim];
            break;
        case OpKind::Slice:
            for (std::size_t dim = 0; dim < at.size(); ++dim)
                at[dim] = op.as<SliceAttributes>().starts[dim] + index[dim] * op.as<SliceAttributes>().strides[dim];
            break;
        case OpKind::Pad: {
            const auto& pad = op.as<PadAttributes>();
            for (std::size_t dim = 0; dim < at.size(); ++dim) {
                const std::int64_t step = pad.interior[dim] + 1;
                const std::int64_t behind = index[dim] - pad.low[dim];
                const bool isThere = behind >= 0 && behind % step == 0 && behind / step < from[dim];
                operand = isThere ? operand : 1;
                at[dim] = behind / step;
            }
            if (operand == 1) {
                made.push_back(operands[1]->front());
                return;
            }
            break;
        }
        case OpKind::Concatenate: {
            const std::size_t dim = op.as<ConcatenateAttributes>().dim;
            at = index;
            while (at[dim] >= shape(op.operands[operand])[dim])
                at[dim] -= shape(op.operands[operand++])[dim];
            break;
        }
        default: // Reverse
            for (std::size_t dim = 0; dim < at.size(); ++dim)
                at[dim] = contains(op.as<ReverseAttributes>().dims, dim) ? from[dim] - 1 - index[dim] : index[dim];
            break;
        }
        made.push_back((*operands[operand])[flatIndex(at, shape(op.operands[operand]))]);
    });
    return made;
}

/// At starts that are not known, a function of them and of all elements along their dimensions.
Elements IdentityRun::dynamicSlice(const Op& op, Operands operands)
{
    const Shape& from = shape(op.operands[0]);
    const Shape& to = shape(op.results[0]);
    const Starts starts = clampedStarts(operands.subspan(1), from, to);
    const Dims& unknown = starts.unknown;
    Elements made;
    forEachIndex(to, [&](Shape index) {
        Hash hash = m_algebra.function("dynamic slice");
        for (const std::size_t dim : unknown)
            hash.add(dim)
                .add(operands[dim + 1]->front().residue)
                .add(static_cast<std::uint64_t>(index[dim]))
                .add(static_cast<std::uint64_t>(to[dim]));
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += contains(unknown, dim) ? 0 : starts.known[dim];
        if (unknown.empty())
            made.push_back((*operands[0])[flatIndex(index, from)]);
        else
            made.push_back(Algebra::opaque(Hash(hash).add(lineAlong(*operands[0], from, unknown, index, hash))));
    });
    return made;
}

Elements IdentityRun::dynamicUpdate(const Op& op, Operands operands)
{
    const Shape& from = shape(op.operands[0]);
    const Shape& update = shape(op.operands[1]);
    const Starts starts = clampedStarts(operands.subspan(2), from, update);
    const Dims& unknown = starts.unknown;
    Elements made;
    forEachIndex(from, [&](const Shape& index) {
        const std::size_t flat = flatIndex(index, from);
        Shape at = index;
        Hash hash = m_algebra.function("dynamic update");
        for (std::size_t dim = 0; dim < index.size(); ++dim) {
            at[dim] -= contains(unknown, dim) ? index[dim] : starts.known[dim];
            if (contains(unknown, dim))
                hash.add(dim).add(operands[dim + 2]->front().residue).add(static_cast<std::uint64_t>(index[dim]));
        }
        if (!isWithin(at, update))
            made.push_back((*operands[0])[flat]);
        else if (unknown.empty())
            made.push_back((*operands[1])[flatIndex(at, update)]);
        else
            made.push_back(Algebra::opaque(
                Hash(hash).add((*operands[0])[flat].residue).add(lineAlong(*operands[1], update, unknown, at, hash))));
    });
    return made;
}

Elements IdentityRun::gathered(const Op& op, const GatherAttributes& gather, Operands operands)
{
    const Shape& from = shape(op.operands[0]);
    const SlicePlaces places(gather.dims, shape(op.operands[1]), from.size());
    Elements made;
    forEachIndex(shape(op.results[0]), [&](const Shape& index) {
        SlicePlaces::Place place = places.of(index);
        Dims unknown;
        Hash hash = m_algebra.function("gather");
        for (std::size_t i = 0; i < place.starts.size(); ++i) {
            const std::size_t dim = gather.dims.indexMap[i];
            const Element& start = (*operands[1])[place.starts[i]];
            const std::int64_t last = from[dim] - gather.sliceSizes[dim];
            if (start.isKnown || last == 0) {
                place.offset[dim] += std::clamp<std::int64_t>(start.number, 0, last);
                continue;
            }
            unknown.push_back(dim);
            hash.add(dim)
                .add(start.residue)
                .add(static_cast<std::uint64_t>(place.offset[dim]))
                .add(static_cast<std::uint64_t>(gather.sliceSizes[dim]));
        }
        if (unknown.empty())
            made.push_back(at(*operands[0], place.offset, from));
        else
            made.push_back(Algebra::opaque(Hash(hash).add(lineAlong(*operands[0], from, unknown, place.offset, hash))));
    });
    return made;
}

/// An update hits an element or not: that is known, or else a function of the start and of the place.
std::vector<Elements> IdentityRun::scattered(
    const Op& op, const IndexingDims& dims, std::optional<ReduceKind> combiner, Operands operands)
{
    const std::size_t arrays = op.results.size(); // then the indices, then the updates of each array
    const Shape& from = shape(op.operands[0]);
    const Shape& updates = shape(op.operands[arrays + 1]);
    const SlicePlaces places(dims, shape(op.operands[arrays]), from.size());
    const Hash meaning = m_algebra.function("scatter");
    std::vector<Elements> made;
    std::vector<std::vector<Elements>> parts(arrays); // of each element, with a combiner
    for (std::size_t i = 0; i < arrays; ++i) {
        made.push_back(*operands[i]);
        for (std::size_t place = 0; combiner && place < made[i].size(); ++place)
            parts[i].push_back({made[i][place]});
    }
    const auto put = [&](std::size_t place, std::size_t update, const Element& hits) {
        for (std::size_t i = 0; combiner && i < arrays; ++i) // what does not hit adds what changes nothing
            parts[i][place].push_back(
                m_algebra.select(hits, (*operands[arrays + 1 + i])[update], m_algebra.identity(*combiner, dtype(op.results[i]))));
        if (combiner)
            return;
        std::vector<Arrays> given; // what there is, then what comes
        for (std::size_t i = 0; i < 2 * arrays; ++i)
            given.push_back({{i < arrays ? made[i][place] : (*operands[i + 1])[update]}});
        std::vector<Arrays> after(given.begin() + static_cast<std::ptrdiff_t>(arrays), given.end());
        Lanes lanes;
        lanes.positions = {0};
        if (!op.bodies.empty())
            after = runBlock(op.bodies.front(), lanes, std::move(given));
        for (std::size_t i = 0; i < std::min(arrays, after.size()); ++i)
            made[i][place] = m_algebra.select(hits, after[i][0][0], made[i][place]);
    };
    forEachIndex(updates, [&](const Shape& index) {
        if (isOver())
            return;
        SlicePlaces::Place place = places.of(index);
        Dims unknown;
        Hash starts = meaning;
        for (std::size_t i = 0; i < place.starts.size(); ++i) {
            const std::size_t dim = dims.indexMap[i];
            const Element& start = (*operands[arrays])[place.starts[i]];
            if (start.isKnown) {
                place.offset[dim] += std::clamp<std::int64_t>(start.number, -(1LL << 40), 1LL << 40);
                continue;
            }
            unknown.push_back(dim);
            starts.add(dim).add(start.residue).add(static_cast<std::uint64_t>(place.offset[dim]));
        }
        Shape line(from.size(), 1);
        for (const std::size_t dim : unknown) {
            line[dim] = from[dim];
            place.offset[dim] = 0;
        }
        m_work -= kStepsOfPart * elementCount(line);
        forEachIndex(line, [&](Shape at) {
            Hash hit = starts;
            for (std::size_t dim = 0; dim < at.size(); ++dim)
                at[dim] += place.offset[dim];
            for (const std::size_t dim : unknown)
                hit.add(static_cast<std::uint64_t>(at[dim]));
            if (isWithin(at, from))
                put(flatIndex(at, from), flatIndex(index, updates),
                    unknown.empty() ? Algebra::known(1, DType::Pred) : Algebra::opaque(hit, true));
        });
    });
    for (std::size_t i = 0; combiner && i < arrays; ++i) {
        for (std::size_t place = 0; place < made[i].size(); ++place)
            made[i][place] = m_algebra.combined(*combiner, parts[i][place], dtype(op.results[i]));
    }
    return made;
}

Elements IdentityRun::reduced(const Op& op, Operands operands)
{
    const auto& reduce = op.as<ReduceAttributes>();
    const Shape& from = shape(op.operands[0]);
    const Shape& to = shape(op.results[0]);
    std::vector<Elements> parts(static_cast<std::size_t>(elementCount(to)));
    forEachIndex(from, [&](const Shape& index) {
        Shape kept;
        for (std::size_t dim = 0; dim < index.size(); ++dim) {
            if (!contains(reduce.dims, dim))
                kept.push_back(index[dim]);
        }
        parts[flatIndex(kept, to)].push_back((*operands[0])[flatIndex(index, from)]);
    });
    m_work -= kStepsOfPart * elementCount(from);
    Elements made;
    for (const Elements& part : parts)
        made.push_back(m_algebra.combined(reduce.kind, part, dtype(op.results[0])));
    return made;
}

Elements IdentityRun::dot(const Op& op, Operands operands)
{
    const auto& dot = op.as<DotAttributes>();
    const Shape& left = shape(op.operands[0]);
    const Shape& right = shape(op.operands[1]);
    const auto rounded = [&](std::size_t operand) { // to the type in which they are multiplied
        Elements made = *operands[operand];
        const DType type = dtype(op.operands[operand]);
        for (Element& element : made)
            element = isFloating(type) && byteSize(dot.operandType) < byteSize(type)
                ? m_algebra.convert(element, type, dot.operandType)
                : element;
        return made;
    };
    const Elements lhs = rounded(0);
    const Elements rhs = rounded(1);
    const auto freeDims = [](std::size_t rank, const Dims& batch, const Dims& summed) {
        Dims free;
        for (std::size_t dim = 0; dim < rank; ++dim) {
            if (!contains(batch, dim) && !contains(summed, dim))
                free.push_back(dim);
        }
        return free;
    };
    const Dims leftFree = freeDims(left.size(), dot.lhsBatch, dot.lhsContracting);
    const Dims rightFree = freeDims(right.size(), dot.rhsBatch, dot.rhsContracting);
    Shape summed;
    for (const std::size_t dim : dot.lhsContracting)
        summed.push_back(left[dim]);
    const DType type = dtype(op.results[0]);
    Elements made;
    m_work -= m_function[op.results[0]].type.elements() * elementCount(summed);
    if (isOver())
        return freshElements(op.results[0]);
    forEachIndex(shape(op.results[0]), [&](const Shape& index) {
        Shape a(left.size(), 0);
        Shape b(right.size(), 0);
        std::size_t next = 0;
        for (std::size_t i = 0; i < dot.lhsBatch.size(); ++i)
            a[dot.lhsBatch[i]] = b[dot.rhsBatch[i]] = index[next++];
        for (const std::size_t dim : leftFree)
            a[dim] = index[next++];
        for (const std::size_t dim : rightFree)
            b[dim] = index[next++];
        Element sum = Algebra::known(0, type);
        forEachIndex(summed, [&](const Shape& at) {
            for (std::size_t i = 0; i < at.size(); ++i)
                a[dot.lhsContracting[i]] = b[dot.rhsContracting[i]] = at[i];
            sum = m_algebra.add(sum, m_algebra.multiply(lhs[flatIndex(a, left)], rhs[flatIndex(b, right)], type), type);
        });
        made.push_back(sum);
    });
    return made;
}

Elements IdentityRun::convolution(const Op& op, Operands operands)
{
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const Shape& input = shape(op.operands[0]);
    const Shape& kernel = shape(op.operands[1]);
    const auto dims = convolutionDims(attributes);
    const auto windows = dims ? convolutionWindows(attributes, *dims, kernel) : std::nullopt;
    if (!windows)
        return freshElements(op.results[0]);
    const auto reversed = integersAt(attributes, "window_reversal");
    const DType type = dtype(op.results[0]);
    const std::int64_t features = kernel[dims->kernel.outer]; // of one group
    const std::int64_t outputs = kernel[dims->kernel.inner];
    const std::int64_t batches = input[dims->input.outer] / dims->batchGroups;
    const Shape window = sizesOf(*windows);
    m_work -= m_function[op.results[0]].type.elements() * elementCount(window) * features;
    Elements made;
    if (isOver())
        return freshElements(op.results[0]);
    forEachIndex(shape(op.results[0]), [&](const Shape& index) {
        const std::int64_t output = index[dims->result.inner];
        Shape a(input.size(), 0);
        Shape b(kernel.size(), 0);
        a[dims->input.outer]
            = index[dims->result.outer] + (dims->batchGroups > 1 ? output / (outputs / dims->batchGroups) * batches : 0);
        const std::int64_t first = dims->featureGroups > 1 ? output / (outputs / dims->featureGroups) * features : 0;
        b[dims->kernel.inner] = output;
        Element sum = Algebra::known(0, type);
        forEachIndex(window, [&](const Shape& inWindow) {
            for (std::size_t i = 0; i < window.size(); ++i) {
                const std::size_t dim = dims->input.spatial[i];
                const auto at = placeIn((*windows)[i], index[dims->result.spatial[i]], inWindow[i], input[dim]);
                if (!at)
                    return;
                const bool isReversed = i < reversed.size() && reversed[i] != 0;
                a[dim] = *at;
                b[dims->kernel.spatial[i]] = isReversed ? window[i] - 1 - inWindow[i] : inWindow[i];
            }
            for (std::int64_t feature = 0; feature < features; ++feature) {
                a[dims->input.inner] = first + feature;
                b[dims->kernel.outer] = feature;
                sum = m_algebra.add(sum,
                    m_algebra.multiply((*operands[0])[flatIndex(a, input)], (*operands[1])[flatIndex(b, kernel)], type), type);
            }
        });
        made.push_back(sum);
    });
    return made;
}

/// Windows of several arrays, or whole dimensions of them, reduced together. Padded is what the reduction begins with.
std::vector<Elements> IdentityRun::windowReduction(const Op& op, Operands operands)
{
    constexpr auto kNone = static_cast<std::size_t>(-1);
    const KeptAttributes& attributes = op.as<OtherAttributes>().attributes;
    const Shape& from = shape(op.operands[0]);
    const Shape& to = shape(op.results[0]);
    const std::size_t count = op.results.size();
    std::vector<WindowDim> windows;
    Dims indexOf; // the dimension of the result that each of the operand's is
    if (op.kind == OpKind::ReduceWindow) {
        windows = windowDims(attributes, from.size()).value_or(std::vector<WindowDim>());
        indexOf.resize(from.size());
        std::iota(indexOf.begin(), indexOf.end(), std::size_t{0});
    } else if (const auto dims = dimsAt(attributes, "dimensions", from.size())) {
        std::size_t next = 0;
        for (std::size_t dim = 0; dim < from.size(); ++dim) {
            const bool isReduced = contains(*dims, dim);
            windows.push_back({});
            windows.back().size = isReduced ? from[dim] : 1;
            indexOf.push_back(isReduced ? kNone : next++);
        }
    }
    std::vector<Elements> made(count);
    if (windows.size() != from.size()) {
        for (std::size_t i = 0; i < count; ++i)
            made[i] = freshElements(op.results[i]);
        return made;
    }
    const auto combiner = combinerIn(m_function, op.bodies.front());
    Hash meaning = m_algebra.function("reduction");
    Elements start;
    if (!combiner)
        meaning.add(meaningOf(op.bodies.front()));
    for (std::size_t i = 0; i < count; ++i) {
        start.push_back(operands[count + i]->front());
        meaning.add(start.back().residue);
    }
    m_work -= kStepsOfPart * elementCount(to) * elementCount(sizesOf(windows));
    if (isOver())
        return made;
    forEachIndex(to, [&](const Shape& index) {
        std::vector<Elements> tuples;
        std::int64_t padded = 0;
        forEachIndex(sizesOf(windows), [&](const Shape& inWindow) {
            Shape place(from.size(), 0);
            for (std::size_t dim = 0; dim < from.size(); ++dim) {
                const auto found
                    = placeIn(windows[dim], indexOf[dim] == kNone ? 0 : index[indexOf[dim]], inWindow[dim], from[dim]);
                if (!found) {
                    ++padded;
                    return;
                }
                place[dim] = *found;
            }
            Elements& tuple = tuples.emplace_back();
            for (std::size_t i = 0; i < count; ++i)
                tuple.push_back((*operands[i])[flatIndex(place, from)]);
        });
        Hash all = meaning;
        all.add(static_cast<std::uint64_t>(padded));
        for (const Elements& tuple : tuples) {
            for (const Element& element : tuple)
                all.add(element.residue);
        }
        for (std::size_t i = 0; !combiner && i < count; ++i) // a function of them all, in their order
            made[i].push_back(Algebra::opaque(Hash(all).add(i)));
        for (std::size_t i = 0; combiner && i < count; ++i) {
            Elements parts(static_cast<std::size_t>(padded) + 1, start[i]);
            for (const Elements& tuple : tuples)
                parts.push_back(tuple[i]);
            made[i].push_back(m_algebra.combined(*combiner, parts, dtype(op.results[i])));
        }
    });
    return made;
}

/// Which element of a window is selected is a function of the window's elements: each gets a part of what the window has to give.
Elements IdentityRun::selectAndScatter(const Op& op, Operands operands)
{
    const Shape& from = shape(op.operands[0]);
    const auto windows = windowDims(op.as<OtherAttributes>().attributes, from.size());
    const auto combiner = combinerIn(m_function, op.bodies[1]);
    if (!windows || combiner != ReduceKind::Sum)
        return freshElements(op.results[0]);
    const Hash meaning = m_algebra.function("selection").add(meaningOf(op.bodies[0]));
    const DType type = dtype(op.results[0]);
    Elements made(static_cast<std::size_t>(elementCount(from)), operands[2]->front());
    forEachIndex(shape(op.operands[1]), [&](const Shape& index) {
        std::vector<std::size_t> places;
        Hash window = meaning;
        forEachIndex(sizesOf(*windows), [&](const Shape& inWindow) {
            Shape place(from.size(), 0);
            for (std::size_t dim = 0; dim < from.size(); ++dim) {
                const auto found = placeIn((*windows)[dim], index[dim], inWindow[dim], from[dim]);
                if (!found)
                    return;
                place[dim] = *found;
            }
            places.push_back(flatIndex(place, from));
            window.add((*operands[0])[places.back()].residue);
        });
        m_work -= std::ssize(places);
        const Element& source = (*operands[1])[flatIndex(index, shape(op.operands[1]))];
        for (std::size_t i = 0; i < places.size(); ++i)
            made[places[i]] = m_algebra.add(
                made[places[i]], m_algebra.multiply(Algebra::opaque(Hash(window).add(i), true), source, type), type);
    });
    return made;
}

/// Functions of whole lines along some dimensions, the same for each place along the others: dimension i of every array is one and the same.
std::vector<Elements> IdentityRun::alongWhole(const Op& op, const Dims& dims, Operands operands, const Hash& meaning)
{
    std::vector<Elements> made;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
        Elements& elements = made.emplace_back();
        forEachIndex(shape(op.results[i]), [&](const Shape& index) {
            Hash hash = Hash(meaning).add(i);
            for (const std::size_t dim : dims)
                hash.add(dim < index.size() ? static_cast<std::uint64_t>(index[dim]) : 0);
            for (std::size_t operand = 0; operand < operands.size(); ++operand) {
                const Shape& from = shape(op.operands[operand]);
                Dims within;
                std::copy_if(
                    dims.begin(), dims.end(), std::back_inserter(within), [&](std::size_t dim) { return dim < from.size(); });
                Shape at(from.size(), 0);
                for (std::size_t dim = 0; dim < std::min(at.size(), index.size()); ++dim)
                    at[dim] = contains(dims, dim) ? 0 : index[dim];
                hash.add(lineAlong(*operands[operand], from, within, at, meaning));
            }
            elements.push_back(Algebra::opaque(hash));
        });
    }
    return made;
}

std::vector<Elements> IdentityRun::kept(const Op& op, Operands operands)
{
    const auto& other = op.as<OtherAttributes>();
    const KeptAttributes& attributes = other.attributes;
    const std::size_t rank = op.operands.empty() ? 0 : shape(op.operands[0]).size();
    const auto lastDims = [&](std::size_t count) {
        Dims dims;
        for (std::size_t dim = rank - std::min(rank, count); dim < rank; ++dim)
            dims.push_back(dim);
        return dims;
    };
    if (other.captures == 0) {
        switch (op.kind) {
        case OpKind::Sort: {
            const std::int64_t dim = integerAt(attributes, "dimension").value_or(-1);
            return alongWhole(
                op, {static_cast<std::size_t>(dim < 0 ? dim + std::ssize(shape(op.operands[0])) : dim)}, operands, meaningOf(op));
        }
        case OpKind::TopK:
            return alongWhole(op, lastDims(1), operands, meaningOf(op));
        case OpKind::Fft:
        case OpKind::FftOfPairs:
            return alongWhole(
                op, lastDims(std::max<std::size_t>(1, integersAt(attributes, "fft_length").size())), operands, meaningOf(op));
        case OpKind::Cholesky:
        case OpKind::TriangularSolve:
            return alongWhole(op, lastDims(2), operands, meaningOf(op));
        case OpKind::VariadicReduce:
        case OpKind::ReduceWindow:
            return windowReduction(op, operands);
        case OpKind::SelectAndScatter:
            return {selectAndScatter(op, operands)};
        case OpKind::Convolution:
            return {convolution(op, operands)};
        case OpKind::VariadicScatter:
            if (const auto dims = indexingDims(attributes, true))
                return scattered(op, *dims, combinerIn(m_function, op.bodies.front()), operands);
            break;
        case OpKind::CustomCall:
            if (!movedTo(op))
                break;
            return {*operands[0]};
        default:
            break;
        }
    }
    std::vector<Elements> made;
    for (const ValueId result : op.results)
        made.push_back(freshElements(result));
    return made;
}

/// The same element of the whole array is drawn alike on every device.
std::vector<Elements> IdentityRun::generatedBits(const Op& op, Operands operands, const Lanes& lanes, std::size_t lane)
{
    const ValueId bits = op.results.back();
    const Shape start = startOf(bits, lanes, lane);
    const Shape whole = m_wholes != nullptr && m_function[bits].sharding ? (*m_wholes)[bits.at()] : shape(bits);
    Hash meaning = meaningOf(op);
    for (const Element& key : *operands[0])
        meaning.add(key.residue);
    for (const std::int64_t size : whole)
        meaning.add(static_cast<std::uint64_t>(size));
    std::vector<Elements> made;
    for (std::size_t i = 0; i + 1 < op.results.size(); ++i) { // the next state
        Elements& state = made.emplace_back();
        for (std::size_t at = 0; at < operands[0]->size(); ++at)
            state.push_back(Algebra::opaque(Hash(meaning).add(i + 1).add(at)));
    }
    Elements& drawn = made.emplace_back();
    forEachIndex(shape(bits), [&](Shape index) {
        for (std::size_t dim = 0; dim < index.size(); ++dim)
            index[dim] += start[dim];
        drawn.push_back(
            isWithin(index, whole) ? Algebra::opaque(Hash(meaning).add(0).add(flatIndex(index, whole))) : m_algebra.fresh());
    });
    return made;
}

} // namespace meshwright
