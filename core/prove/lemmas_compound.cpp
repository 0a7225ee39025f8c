// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/known_numbers.h"
#include "core/prove/lemmas.h"

#include "core/program/other_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace meshwright {

namespace {

/// Finds how a device's value is made.
class Making {
public:
    Making(const Walk& walk, ValueId value)
        : m_walk(&walk)
        , m_value(value)
    {
    }

    const Op* op() const
    {
        const OpId producer = m_value.valid() ? m_walk->function[m_value].producer : OpId();
        return producer.valid() ? &m_walk->function[producer] : nullptr;
    }
    bool is(OpKind kind) const { return op() != nullptr && op()->kind == kind; }
    Making operand(std::size_t i) const
    {
        return {*m_walk, op() != nullptr && i < op()->operands.size() ? op()->operands[i] : ValueId()};
    }
    ValueId value() const { return m_value; }

    /// The value that this one is a wider form of: integers that are converted to a type that holds them all.
    Making withoutWidening() const
    {
        if (!is(OpKind::Convert))
            return *this;
        const DType from = m_walk->dtype(operand(0).value());
        const DType to = m_walk->dtype(m_value);
        const bool widens = isInteger(from) && isInteger(to) && !isUnsigned(to)
            && (byteSize(from) < byteSize(to) || (byteSize(from) == byteSize(to) && !isUnsigned(from)));
        return widens ? operand(0) : *this;
    }

private:
    const Walk* m_walk;
    ValueId m_value;
};

/// The scalar that all elements are, if they are a known number that all devices have.
std::optional<std::int64_t> oneNumber(const Walk& walk, ValueId value)
{
    const auto known = value.valid() ? knownNumbers(walk, value) : std::nullopt;
    if (!known || known->pieces() != 1 || known->at[0].size() != 1)
        return std::nullopt;
    return known->at[0][0];
}

std::int64_t extent(const Walk& walk, const Standing& standing, std::size_t dim)
{
    return walk.globals[standing.global].shape[static_cast<std::size_t>(standing.dims[dim].from)];
}

/// select(mask, value, filler): behind the last element of a dimension, where the mask is false, there is the filler.
std::optional<Standing> maskedEnd(
    const Walk& walk, const KnownNumbers& mask, ValueId value, Standing standing, const Standing& filler)
{
    if (mask.dim < 0 || !filler.isUniform())
        return std::nullopt;
    const auto dim = static_cast<std::size_t>(mask.dim);
    if (standing.dims[dim].from < 0 && standing.isWhole()) { // copies are as many as the mask says
        Framed array = framed(walk, value, standing);
        array.dims[dim].axes = mask.axes;
        array.shape[dim] = 0;
        for (const auto& numbers : mask.at)
            array.shape[dim] += std::count_if(numbers.begin(), numbers.end(), [](const auto number) { return number != 0; });
        AxisRefs others;
        for (std::size_t other = 0; other < array.dims.size(); ++other) {
            if (other != dim)
                others.insert(others.end(), array.dims[other].axes.begin(), array.dims[other].axes.end());
        }
        if (array.mesh != 0 || array.shape[dim] == 0 || !disjoint(mask.axes, others))
            return std::nullopt;
        const Framed all = filled(walk, std::move(array), true);
        standing = standingOf(all.global, all.shape, all.dims, all.local, 0);
    }
    const StandingDim& along = standing.dims[dim];
    if (along.from < 0 || along.window || (!mask.axes.empty() && (mask.axes != along.axes || standing.mesh != 0)))
        return std::nullopt;
    const std::int64_t local = walk.local(value)[dim];
    const std::int64_t size = extent(walk, standing, dim);
    for (std::int64_t piece = 0; piece < shardCount(along.axes); ++piece) {
        for (std::int64_t i = 0; i < local; ++i) {
            if ((mask(piece, i) != 0) != (piece * local + i < size))
                return std::nullopt;
        }
    }
    Standing made = standing;
    made.dims[dim].fill = filler.global;
    return made;
}

/// select(mask, value, identity) where the mask is true on one device along some axes only: parts of the value.
std::optional<Standing> partOnOne(
    const Walk& walk, const KnownNumbers& mask, const Standing& standing, const Standing& identity, ReduceKind kind)
{
    if (mask.dim >= 0 || mask.axes.empty() || !standing.isWhole() || !identity.isUniform()
        || !walk.globals.isIdentity(identity.global, kind) || !disjoint(mask.axes, placeAxes(standing)))
        return std::nullopt;
    const auto chosen = std::count_if(mask.at.begin(), mask.at.end(), [](const auto& numbers) { return numbers[0] != 0; });
    if (chosen != 1)
        return std::nullopt;
    Standing made = standing;
    made.partial = canonicalSet(mask.axes);
    made.kind = kind;
    made.mesh = 0;
    for (StandingDim& dim : made.dims)
        dim.fill = kNoGlobal;
    return commonMesh({&standing}) == 0 ? std::optional(made) : std::nullopt;
}

/// What `spread` in a masked look-up makes: one scalar for each entry of an index vector, at every index.
std::optional<std::vector<KnownNumbers>> entriesOf(const Walk& walk, Making made, const IndexingDims& dims)
{
    std::vector<ValueId> scalars;
    const std::size_t count = dims.indexMap.size();
    if (made.is(OpKind::BroadcastInDim) && made.operand(0).is(OpKind::Concatenate)) {
        const auto& along = made.op()->as<BroadcastAttributes>().dims;
        if (along.size() != 1 || along[0] != dims.indexVectorDim)
            return std::nullopt;
        for (const ValueId part : made.operand(0).op()->operands)
            scalars.push_back(part);
    } else {
        scalars.assign(count, made.value());
    }
    if (scalars.size() != count)
        return std::nullopt;
    std::vector<KnownNumbers> entries;
    for (const ValueId scalar : scalars) {
        auto known = knownNumbers(walk, scalar);
        if (!known || (known->dim >= 0 && known->at[0].size() != 1))
            return std::nullopt;
        known->dim = -1;
        entries.push_back(*std::move(known));
    }
    return entries;
}

/// True when all entries are these numbers on all devices.
bool areNumbers(const std::optional<std::vector<KnownNumbers>>& entries, const std::vector<std::int64_t>& numbers)
{
    if (!entries || entries->size() != numbers.size())
        return false;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if ((*entries)[i].pieces() != 1 || (*entries)[i](0, 0) != numbers[i])
            return false;
    }
    return true;
}

/// Which dimensions of an operand are counted from where the device's piece begins, when `begins` is what is subtracted from the indices;
/// nothing when it is anything else.
std::optional<std::vector<std::size_t>> countedByPiece(
    const Walk& walk, Making begins, const IndexingDims& dims, const Framed& operand, AxisRefs* axes)
{
    const auto entries = entriesOf(walk, begins, dims);
    if (!entries)
        return std::nullopt;
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const KnownNumbers& begin = (*entries)[i];
        const std::size_t dim = dims.indexMap[i];
        const StandingDim& along = operand.dims[dim];
        if (begin.pieces() == 1 && begin(0, 0) == 0 && (along.from < 0 || along.axes.empty()))
            continue;
        if (along.window || along.axes != begin.axes || operand.mesh != 0 || !disjoint(*axes, along.axes))
            return std::nullopt;
        for (std::int64_t piece = 0; piece < begin.pieces(); ++piece) {
            if (begin(piece, 0) != piece * operand.local[dim])
                return std::nullopt;
        }
        axes->insert(axes->end(), along.axes.begin(), along.axes.end());
        counted.push_back(dim);
    }
    return counted;
}

/// What makes a whole of parts of which one has the element, and the others zero.
ReduceKind joining(DType dtype)
{
    return dtype == DType::Pred ? ReduceKind::Or : ReduceKind::Sum;
}

/// select(own, gather(piece, clamp(indices) - begin), 0) with own = begin <= clamp(indices) < end: of the slices, each device has those that are in
/// its piece, and zeros; a sum over the devices has them all.
Standings maskedLookUp(const Walk& walk, const Op& select)
{
    const Making made(walk, select.results[0]);
    const Making found = made.operand(1);
    const auto zero = oneNumber(walk, made.operand(2).value());
    const bool isZero = (zero && *zero == 0)
        || std::any_of(walk.standings[select.operands[2].at()].begin(), walk.standings[select.operands[2].at()].end(),
            [&](const Standing& filler) { return filler.isUniform() && walk.globals.isZero(filler.global); });
    if (!found.is(OpKind::Gather) || !made.operand(0).is(OpKind::BroadcastInDim) || !isZero)
        return {};
    const auto& gather = found.op()->as<GatherAttributes>();
    const IndexingDims& dims = gather.dims;
    const Making own = found.operand(1);
    if (!own.is(OpKind::Subtract) || !own.operand(0).is(OpKind::Clamp))
        return {};
    const Making clamped = own.operand(0);
    // The mask of an index vector goes to all elements of its slice.
    const auto& spread = made.operand(0).op()->as<BroadcastAttributes>();
    std::vector<std::size_t> batch;
    for (std::size_t dim = 0; dim < spread.shape.size(); ++dim) {
        if (std::find(dims.window.begin(), dims.window.end(), dim) == dims.window.end())
            batch.push_back(dim);
    }
    Making mask = made.operand(0).operand(0);
    if (spread.dims != batch)
        return {};
    const Shape& indexShape = walk.local(own.value());
    if (dims.indexVectorDim < indexShape.size()) {
        if (!mask.is(OpKind::Reduce) || mask.op()->as<ReduceAttributes>().kind != ReduceKind::And
            || mask.op()->as<ReduceAttributes>().dims != std::vector<std::size_t>{dims.indexVectorDim})
            return {};
        mask = mask.operand(0);
    }
    const Making below = mask.operand(0);
    const Making above = mask.operand(1);
    if (!mask.is(OpKind::And) || !below.is(OpKind::Compare) || !above.is(OpKind::Compare)
        || below.op()->as<CompareAttributes>().direction != CompareDirection::GreaterEqual
        || above.op()->as<CompareAttributes>().direction != CompareDirection::LessEqual || below.operand(0).value() != own.value()
        || above.operand(0).value() != own.value())
        return {};
    const ValueId array = found.operand(0).value();
    const Shape& piece = walk.local(array);
    std::vector<std::int64_t> lastOwn;
    for (const std::size_t dim : dims.indexMap)
        lastOwn.push_back(piece[dim] - gather.sliceSizes[dim]);
    const std::vector<std::int64_t> zeros(dims.indexMap.size(), 0);
    if (!areNumbers(entriesOf(walk, below.operand(1), dims), zeros)
        || !areNumbers(entriesOf(walk, above.operand(1), dims), lastOwn)
        || !areNumbers(entriesOf(walk, clamped.operand(0), dims), zeros))
        return {};
    Standings result;
    for (const Standing& operand : walk.standings[array.at()]) {
        AxisRefs axes;
        const Framed whole = framed(walk, array, operand);
        const auto counted = countedByPiece(walk, own.operand(1), dims, whole, &axes);
        if (!counted || counted->empty() || !operand.isWhole() || commonMesh({&operand}) != 0)
            continue;
        std::vector<std::int64_t> last;
        bool fits = true;
        for (const std::size_t dim : dims.indexMap) {
            const bool isCounted = std::find(counted->begin(), counted->end(), dim) != counted->end();
            const std::int64_t size = whole.isCopy(dim) && !isCounted ? piece[dim] : whole.shape[dim];
            // Of slices of several elements, parts could lie in two pieces.
            fits = fits && (!isCounted || gather.sliceSizes[dim] == 1) && (isCounted || size == piece[dim]);
            last.push_back(size - gather.sliceSizes[dim]);
        }
        if (!fits || !areNumbers(entriesOf(walk, clamped.operand(2), dims), last))
            continue;
        const Making indices = clamped.operand(1).withoutWidening();
        for (const Standing& index : walk.standings[indices.value().at()]) {
            Op lookUp = *found.op();
            lookUp.results = select.results;
            Site site{walk, lookUp, {&operand, &index}, {}};
            auto standing
                = commonMesh(site.operands) == 0 ? gathered(site, index, indices.value(), gather, *counted) : std::nullopt;
            if (!standing || !disjoint(axes, placeAxes(*standing)))
                continue;
            standing->partial = canonicalSet(axes);
            standing->kind = joining(walk.dtype(select.results[0]));
            result.push_back(*std::move(standing));
        }
    }
    return result;
}

/// scatter(piece, indices - begin, updates): what is not in the piece lies outside of it and is left out.
Standings splitScatter(const Walk& walk, const Op& scatter, std::size_t made)
{
    const std::size_t arrays = scatter.results.size();
    const Making own(walk, scatter.operands[arrays]);
    const auto numbered = numbersOfScatter(scatter);
    if (!own.is(OpKind::Subtract) || !numbered)
        return {};
    const IndexingDims& dims = *numbered;
    Site site{walk, scatter, {}, {}};
    for (std::size_t i = 0; i < scatter.operands.size(); ++i) {
        const Standings& known = walk.standings[scatter.operands[i].at()];
        if (known.empty() && i != arrays) // its indices are those before the subtraction
            return {};
        site.operands.push_back(known.empty() ? nullptr : &known.front());
    }
    const Making indices = own.operand(0).withoutWidening();
    Standings result;
    for (const Standing& operand : walk.standings[scatter.operands[0].at()]) {
        AxisRefs axes;
        const auto counted = countedByPiece(walk, own.operand(1), dims, framed(walk, scatter.operands[0], operand), &axes);
        if (!counted || counted->empty())
            continue;
        const bool areSingle = std::all_of(counted->begin(), counted->end(), [&](std::size_t dim) {
            return std::find(dims.collapsed.begin(), dims.collapsed.end(), dim) != dims.collapsed.end();
        });
        const DType type = walk.dtype(own.value());
        if (!areSingle || (byteSize(type) < 4))
            continue;
        site.operands.front() = &operand;
        for (const Standing& index : walk.standings[indices.value().at()]) {
            for (const Standing& updates : walk.standings[scatter.operands[arrays + 1].at()]) {
                site.operands[arrays] = &index;
                site.operands[arrays + 1] = &updates;
                if (commonMesh(site.operands) != 0)
                    continue;
                if (auto standing = scattered(site, made, index, indices.value(), *counted))
                    result.push_back(*std::move(standing));
            }
        }
    }
    return result;
}

/// A part of an array that begins at computed places, of which each device has what is in its piece, with a margin of `sizes` around it.
struct Margin {
    std::vector<std::size_t> dims; ///< that are split and cut
    AxisRefs axes;
    std::vector<GlobalId> starts; ///< of each dimension; kNoGlobal: it is not cut
    std::uint64_t varies = 0;
};

/// Whether the starts are those of a part of `sizes` in the whole array, counted from where the device's piece with its margins begins.
std::optional<Margin> marginOf(const Walk& walk, const Standing& operand, const Shape& piece, const PadAttributes& pad,
    const std::vector<Making>& starts, const Shape& sizes)
{
    Margin margin;
    for (std::size_t dim = 0; dim < piece.size(); ++dim) {
        const StandingDim& along = operand.dims[dim];
        if (pad.interior[dim] != 0 || pad.low[dim] != pad.high[dim] || along.window)
            return std::nullopt;
        const std::int64_t size = along.from >= 0 ? extent(walk, operand, dim) : piece[dim];
        Making start = starts[dim];
        if (pad.low[dim] == 0) {
            margin.starts.push_back(kNoGlobal);
            if (sizes[dim] == piece[dim])
                continue;
            if (along.from >= 0 && (!along.axes.empty() || piece[dim] != size))
                return std::nullopt;
        } else {
            if (along.from < 0 || along.axes.empty() || operand.mesh != 0 || pad.low[dim] < sizes[dim]
                || !start.is(OpKind::Subtract) || !start.operand(0).is(OpKind::Clamp))
                return std::nullopt;
            const auto begin = knownNumbers(walk, start.operand(1).value());
            const Making clamped = start.operand(0);
            if (!begin || begin->axes != along.axes || oneNumber(walk, clamped.operand(0).value()) != 0
                || oneNumber(walk, clamped.operand(2).value()) != size - sizes[dim] || !disjoint(margin.axes, along.axes))
                return std::nullopt;
            for (std::int64_t k = 0; k < begin->pieces(); ++k) {
                if ((*begin)(k, 0) != k * piece[dim] - pad.low[dim])
                    return std::nullopt;
            }
            margin.starts.push_back(kNoGlobal);
            margin.dims.push_back(dim);
            margin.axes.insert(margin.axes.end(), along.axes.begin(), along.axes.end());
            start = clamped.operand(1);
        }
        start = start.withoutWidening();
        const Standings& known = walk.standings[start.value().at()];
        const auto uniform
            = std::find_if(known.begin(), known.end(), [](const Standing& standing) { return standing.isUniform(); });
        if (uniform == known.end())
            return std::nullopt;
        margin.starts.back() = uniform->global;
        margin.varies |= walk.globals[uniform->global].varies;
    }
    return margin.dims.empty() ? std::nullopt : std::optional(margin);
}

bool padsZeros(const Walk& walk, const Op& pad)
{
    const Standings& filler = walk.standings[pad.operands[1].at()];
    return std::any_of(filler.begin(), filler.end(),
        [&](const Standing& standing) { return standing.isUniform() && walk.globals.isZero(standing.global); });
}

std::string startsText(const Margin& margin)
{
    std::string text;
    for (std::size_t dim = 0; dim < margin.starts.size(); ++dim) {
        if (margin.starts[dim] != kNoGlobal)
            text += fmt::format(" {} at {}", dim, margin.starts[dim]);
    }
    return text;
}

/// dynamic_slice(pad(piece, 0), start - begin): what of the part a device has, and zeros.
Standings splitDynamicSlice(const Walk& walk, const Op& slice)
{
    const Making padded(walk, slice.operands[0]);
    if (!padded.is(OpKind::Pad) || !padsZeros(walk, *padded.op()))
        return {};
    std::vector<Making> starts;
    for (std::size_t i = 1; i < slice.operands.size(); ++i)
        starts.emplace_back(walk, slice.operands[i]);
    const ValueId array = padded.operand(0).value();
    const Shape& piece = walk.local(array);
    const Shape& sizes = walk.local(slice.results[0]);
    Standings result;
    for (const Standing& operand : walk.standings[array.at()]) {
        const auto margin = marginOf(walk, operand, piece, padded.op()->as<PadAttributes>(), starts, sizes);
        if (!margin || !operand.isWhole() || commonMesh({&operand}) != 0)
            continue;
        Framed whole = framed(walk, array, operand);
        Shape shape = whole.shape;
        std::vector<StandingDim> dims = whole.dims;
        for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
            if (margin->starts[dim] == kNoGlobal)
                continue;
            shape[dim] = sizes[dim];
            dims[dim] = {};
            if (whole.isCopy(dim))
                whole.shape[dim] = shape[dim];
        }
        const GlobalId global
            = walk.globals.number(fmt::format("dynamic slice{} {} {}", startsText(*margin), shape, whole.text()), shape,
                walk.dtype(slice.results[0]), margin->varies | walk.globals[operand.global].varies);
        Standing made = standingOf(global, shape, dims, sizes, 0);
        if (!disjoint(margin->axes, placeAxes(made)))
            continue;
        made.partial = canonicalSet(margin->axes);
        made.kind = joining(walk.dtype(slice.results[0]));
        result.push_back(std::move(made));
    }
    return result;
}

/// slice(dynamic_update_slice(pad(piece, 0), update, start - begin)): what of the update lies in the piece.
Standings splitDynamicUpdate(const Walk& walk, const Op& slice)
{
    const Making put(walk, slice.operands[0]);
    const Making padded = put.operand(0);
    if (!put.is(OpKind::DynamicUpdateSlice) || !padded.is(OpKind::Pad))
        return {};
    const auto& pad = padded.op()->as<PadAttributes>();
    const auto& cut = slice.as<SliceAttributes>();
    const ValueId array = padded.operand(0).value();
    const ValueId updateValue = put.operand(1).value();
    const Shape& piece = walk.local(array);
    const Shape& sizes = walk.local(updateValue);
    for (std::size_t dim = 0; dim < piece.size(); ++dim) {
        if (cut.starts[dim] != pad.low[dim] || cut.limits[dim] != pad.low[dim] + piece[dim] || cut.strides[dim] != 1)
            return {};
    }
    std::vector<Making> starts;
    for (std::size_t i = 2; i < put.op()->operands.size(); ++i)
        starts.emplace_back(walk, put.op()->operands[i]);
    Standings result;
    for (const Standing& operand : asArrays(walk, array)) {
        const auto margin = marginOf(walk, operand, piece, pad, starts, sizes);
        if (!margin || !operand.isWhole())
            continue;
        for (const Standing& update : walk.standings[updateValue.at()]) {
            Framed whole = framed(walk, array, operand);
            Framed part = framed(walk, updateValue, update);
            bool fits = update.isWhole() && commonMesh({&operand, &update}) == 0;
            for (std::size_t dim = 0; dim < piece.size() && fits; ++dim) {
                if (margin->starts[dim] == kNoGlobal) {
                    adopt(part, dim, whole, dim);
                    adopt(whole, dim, part, dim);
                    fits = sameAlong(whole, dim, part, dim);
                    continue;
                }
                if (part.isCopy(dim)) {
                    part.unclaim(dim);
                }
                fits = part.isWhole(dim);
            }
            if (!fits)
                continue;
            const GlobalId global
                = walk.globals.number(fmt::format("dynamic update{} {} {}", startsText(*margin), whole.text(), part.text()),
                    whole.shape, walk.dtype(slice.results[0]),
                    margin->varies | walk.globals[operand.global].varies | walk.globals[update.global].varies);
            for (StandingDim& dim : whole.dims)
                dim.fill = kNoGlobal;
            result.push_back(standingOf(global, whole.shape, whole.dims, piece, whole.mesh));
        }
    }
    return result;
}

/// The number of each device, by its place.
Standings deviceNumber(const Walk& walk, const Op& reshape)
{
    const auto known = knownNumbers(walk, reshape.results[0]);
    const Mesh& mesh = walk.mesh();
    if (!known || known->dim >= 0 || walk.dtype(reshape.results[0]) != DType::U32
        || shardCount(known->axes) != mesh.deviceCount())
        return {};
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
        if ((*known)(shardIndex(position, known->axes, mesh), 0) != mesh.deviceAt(position))
            return {};
    }
    Standing standing;
    standing.global = walk.globals.number("partition id", {}, DType::U32, ~std::uint64_t{0});
    standing.dims.resize(walk.local(reshape.results[0]).size());
    return {standing};
}

Standings ofSelect(const Walk& walk, const Op& op)
{
    Standings result = maskedLookUp(walk, op);
    const auto mask = knownNumbers(walk, op.operands[0]);
    if (!mask)
        return result;
    const auto& layout = walk.function[op.results[0]].sharding;
    const ReduceKind kind = layout ? layout->unreducedKind : ReduceKind::Sum;
    for (const Standing& standing : walk.standings[op.operands[1].at()]) {
        for (const Standing& other : walk.standings[op.operands[2].at()]) {
            if (auto made = maskedEnd(walk, *mask, op.operands[1], standing, other))
                result.push_back(*std::move(made));
            if (auto made = partOnOne(walk, *mask, standing, other, kind))
                result.push_back(*std::move(made));
        }
    }
    return result;
}

} // namespace

Standings compoundStandings(const Walk& walk, const Op& op, std::size_t result)
{
    if (walk.isSource())
        return {};
    switch (op.kind) {
    case OpKind::Select:
        return ofSelect(walk, op);
    case OpKind::Scatter:
    case OpKind::VariadicScatter:
        return splitScatter(walk, op, result);
    case OpKind::DynamicSlice:
        return splitDynamicSlice(walk, op);
    case OpKind::Slice:
        return splitDynamicUpdate(walk, op);
    case OpKind::Reshape:
        return deviceNumber(walk, op);
    case OpKind::Pad: {
        if (walk.standings[op.operands[1].at()].empty())
            return {};
        Standings made;
        for (const Standing& operand : walk.standings[op.operands[0].at()]) {
            const Site site{walk, op, {&operand, &walk.standings[op.operands[1].at()].front()}, {}};
            if (auto standing = withMoreRoom(site))
                made.push_back(*std::move(standing));
        }
        return made;
    }
    default:
        return {};
    }
}

} // namespace meshwright
