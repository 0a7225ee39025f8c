// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/split_exchange.h"

#include "core/partition/device_program.h"
#include "core/sharding/shard_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

bool sameStretch(const PieceTransfer& a, const PieceTransfer& b)
{
    return a.start == b.start && a.at == b.at && a.length == b.length;
}

bool isUniform(const PieceRound& round)
{
    return std::all_of(round.transfers.begin(), round.transfers.end(),
        [&](const PieceTransfer& transfer) { return sameStretch(transfer, round.transfers.front()); });
}

/// A round that grows, and which pieces send and receive in it.
struct GrowingRound {
    PieceRound round;
    std::vector<bool> sends;
    std::vector<bool> receives;

    explicit GrowingRound(std::int64_t pieces)
        : sends(static_cast<std::size_t>(pieces))
        , receives(static_cast<std::size_t>(pieces))
    {
    }

    /// No piece would have to send or receive twice.
    bool hasRoomFor(const PieceRound& more) const
    {
        return std::none_of(more.transfers.begin(), more.transfers.end(), [&](const PieceTransfer& transfer) {
            return sends[static_cast<std::size_t>(transfer.from)] || receives[static_cast<std::size_t>(transfer.to)];
        });
    }

    void add(const PieceRound& more)
    {
        for (const PieceTransfer& transfer : more.transfers) {
            sends[static_cast<std::size_t>(transfer.from)] = true;
            receives[static_cast<std::size_t>(transfer.to)] = true;
        }
        round.transfers.insert(round.transfers.end(), more.transfers.begin(), more.transfers.end());
        round.length = std::max(round.length, more.length);
    }
};

} // namespace

std::vector<PieceRound> roundsFor(const PieceWindow& window, std::int64_t pieces, std::int64_t size)
{
    // Windows that lie to the pieces alike are left alike: the unused messages at the ends take no extra time.
    const bool isAligned = !window.isExact && std::abs(window.step) == size && window.length <= size;
    std::vector<PieceTransfer> transfers;
    for (std::int64_t to = 0; to < pieces && size > 0; ++to) {
        const std::int64_t first = window.first + to * window.step;
        const std::int64_t low = std::max(first, isAligned ? 0 : std::max<std::int64_t>(window.low, 0));
        const std::int64_t high
            = std::min(first + window.length, isAligned ? pieces * size : std::min(window.high, pieces * size));
        for (std::int64_t from = low < high ? low / size : 0; low < high && from <= (high - 1) / size; ++from) {
            const std::int64_t begin = std::max(low, from * size);
            const std::int64_t end = std::min(high, (from + 1) * size);
            transfers.push_back({to, from, begin - from * size, begin - first, end - begin});
        }
    }
    // Those between pieces that lie equally far apart are together; the longest come first.
    const auto shiftOf = [](const PieceTransfer& transfer) { return transfer.from - transfer.to; };
    std::stable_sort(transfers.begin(), transfers.end(),
        [&](const PieceTransfer& a, const PieceTransfer& b) { return shiftOf(a) < shiftOf(b); });
    PieceRound own;
    std::vector<PieceRound> shifts;
    for (auto at = transfers.begin(); at != transfers.end();) {
        const auto end
            = std::find_if(at, transfers.end(), [&](const PieceTransfer& transfer) { return shiftOf(transfer) != shiftOf(*at); });
        PieceRound& round = shiftOf(*at) == 0 ? own : shifts.emplace_back();
        round.transfers.assign(at, end);
        for (const PieceTransfer& transfer : round.transfers)
            round.length = std::max(round.length, transfer.length);
        at = end;
    }
    std::stable_sort(shifts.begin(), shifts.end(), [](const PieceRound& a, const PieceRound& b) { return a.length > b.length; });
    std::vector<GrowingRound> growing;
    for (const PieceRound& shift : shifts) {
        const auto found
            = std::find_if(growing.begin(), growing.end(), [&](const GrowingRound& round) { return round.hasRoomFor(shift); });
        (found == growing.end() ? growing.emplace_back(pieces) : *found).add(shift);
    }
    // What stays joins a permute in which its devices would do nothing, where it lies as the rest of that.
    const auto joins = [&](const GrowingRound& round) {
        return isUniform(round.round) && isUniform(own) && sameStretch(round.round.transfers.front(), own.transfers.front())
            && round.hasRoomFor(own);
    };
    const auto found = own.transfers.empty() ? growing.end() : std::find_if(growing.begin(), growing.end(), joins);
    const bool stays = !own.transfers.empty() && found == growing.end();
    if (found != growing.end())
        found->add(own);
    std::vector<PieceRound> rounds;
    for (GrowingRound& each : growing)
        rounds.push_back(std::move(each.round));
    if (stays) {
        own.stays = true;
        rounds.push_back(std::move(own));
    }
    return rounds;
}

std::int64_t sentElements(const std::vector<PieceRound>& rounds)
{
    return std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0},
        [](std::int64_t sum, const PieceRound& round) { return sum + (round.stays ? 0 : round.length); });
}

ValueId SplitExchange::local(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes)
{
    const ValueId made = m_ops.builder().add(kind, std::move(operands), std::move(attributes));
    m_ops.describe(made, m_layout, wholeOfPieces(m_ops.type(made).shape, m_layout));
    return made;
}

ValueId SplitExchange::window(ValueId value, const TensorSharding& layout, std::size_t dim, const PieceWindow& window)
{
    return merged({{value, window}}, layout, dim);
}

ValueId SplitExchange::merged(const std::vector<Source>& sources, const TensorSharding& layout, std::size_t dim)
{
    m_layout = layout;
    m_dim = dim;
    m_pieces = shardCount(layout.dims[dim].axes);
    m_length = sources.front().window.length;
    std::vector<std::vector<PieceRound>> rounds; // they stay where they are: strips point at them
    std::vector<Strip> strips;
    for (const Source& source : sources)
        rounds.push_back(roundsFor(source.window, m_pieces, m_ops.type(source.value).shape[dim]));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        for (const PieceRound& round : rounds[i])
            strips.push_back(received(sources[i].value, round));
    }
    if (strips.empty()) {
        TensorType nothing = m_ops.type(sources.front().value);
        nothing.shape[dim] = m_length;
        return m_ops.zeros(nothing, layout);
    }
    return joined(std::move(strips));
}

/// What each device gets in a round: a strip of the round's length.
SplitExchange::Strip SplitExchange::received(ValueId value, const PieceRound& round)
{
    const Shape piece = m_ops.type(value).shape;
    const std::int64_t size = piece[m_dim];
    const auto pieces = static_cast<std::size_t>(m_pieces);
    // A device sends as many elements as any; a shorter stretch brings some along that lie beside it.
    std::vector<std::int64_t> starts(pieces, std::min(round.transfers.front().start, size - round.length));
    Strip strip;
    strip.round = &round;
    strip.begins.assign(pieces,
        round.transfers.front().at
            - (round.transfers.front().start - std::min(round.transfers.front().start, size - round.length)));
    for (const PieceTransfer& transfer : round.transfers) {
        const std::int64_t start = std::min(transfer.start, size - round.length);
        starts[static_cast<std::size_t>(transfer.from)] = start;
        strip.begins[static_cast<std::size_t>(transfer.to)] = transfer.at - (transfer.start - start);
    }
    strip.value = value;
    Shape sent = piece;
    sent[m_dim] = round.length;
    if (std::any_of(starts.begin(), starts.end(), [&](std::int64_t start) { return start != starts.front(); })) {
        std::vector<ValueId> operands{value};
        for (std::size_t dim = 0; dim < piece.size(); ++dim)
            operands.push_back(dim == m_dim ? m_ops.perPiece(starts, m_layout.dims[dim].axes, m_layout.mesh)
                                            : m_ops.integer(0, DType::S32, m_layout.mesh));
        strip.value = local(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{sent});
    } else if (round.length != size) {
        SliceAttributes slice{Shape(piece.size(), 0), piece, Shape(piece.size(), 1)};
        slice.starts[m_dim] = starts.front();
        slice.limits[m_dim] = starts.front() + round.length;
        strip.value = local(OpKind::Slice, {value}, std::move(slice));
    }
    if (!round.stays)
        strip.value = permuted(strip.value, round);
    return strip;
}

ValueId SplitExchange::permuted(ValueId sent, const PieceRound& round)
{
    const AxisRefs& axes = m_layout.dims[m_dim].axes;
    CollectiveAttributes attributes;
    attributes.axes = axes;
    attributes.resultShape = m_ops.type(sent).shape;
    attributes.pieces = PieceExchange{};
    const std::vector<std::int64_t> pieceOf = shardIndices(axes, m_ops.mesh());
    std::vector<std::int64_t> firstOf(static_cast<std::size_t>(m_pieces), -1); // by piece: the first position that has it
    for (std::size_t position = pieceOf.size(); position-- > 0;)
        firstOf[static_cast<std::size_t>(pieceOf[position])] = static_cast<std::int64_t>(position);
    std::vector<std::int64_t> senderOf(static_cast<std::size_t>(m_pieces), -1);
    for (const PieceTransfer& transfer : round.transfers)
        senderOf[static_cast<std::size_t>(transfer.to)] = transfer.from;
    attributes.sources.assign(pieceOf.size(), -1);
    for (std::size_t position = 0; position < pieceOf.size(); ++position) {
        const auto piece = static_cast<std::size_t>(pieceOf[position]);
        if (senderOf[piece] >= 0) // within a group, positions lie to each other as in the first one
            attributes.sources[position]
                = static_cast<std::int64_t>(position) - firstOf[piece] + firstOf[static_cast<std::size_t>(senderOf[piece])];
    }
    attributes.cause = {m_value, m_consumer,
        fmt::format("{} needs elements of {} that other devices along {} hold: {} of them along dim {}", m_consumer, m_value,
            axesText(axes, m_ops.mesh()), round.length, m_dim),
        {}};
    return local(OpKind::CollectivePermute, {sent}, std::move(attributes));
}

/// A strip at its place in a window; around it lies anything.
ValueId SplitExchange::placed(const Strip& strip)
{
    const Shape piece = m_ops.type(strip.value).shape;
    const std::int64_t size = piece[m_dim];
    const bool isUniform = std::all_of(
        strip.begins.begin(), strip.begins.end(), [&](std::int64_t begin) { return begin == strip.begins.front(); });
    PadAttributes pad{Shape(piece.size(), 0), Shape(piece.size(), 0), Shape(piece.size(), 0)};
    const auto padded = [&] {
        const ValueId zero = m_ops.zeros({m_ops.type(strip.value).dtype, {}}, wholeLayout(0, m_layout.mesh));
        return local(OpKind::Pad, {strip.value, zero}, pad);
    };
    if (isUniform) {
        pad.low[m_dim] = strip.begins.front();
        pad.high[m_dim] = m_length - size - strip.begins.front();
        return pad.low[m_dim] == 0 && pad.high[m_dim] == 0 ? strip.value : padded();
    }
    pad.low[m_dim] = m_length;
    pad.high[m_dim] = m_length;
    std::vector<std::int64_t> starts;
    for (const std::int64_t begin : strip.begins)
        starts.push_back(m_length - begin);
    Shape window = piece;
    window[m_dim] = m_length;
    std::vector<ValueId> operands{padded()};
    for (std::size_t dim = 0; dim < piece.size(); ++dim)
        operands.push_back(dim == m_dim ? m_ops.perPiece(starts, m_layout.dims[dim].axes, m_layout.mesh)
                                        : m_ops.integer(0, DType::S32, m_layout.mesh));
    return local(OpKind::DynamicSlice, std::move(operands), DynamicSliceAttributes{window});
}

/// One window of all strips: one after the other where they are alike on all devices, else each where its elements are.
ValueId SplitExchange::joined(std::vector<Strip> strips)
{
    std::stable_sort(strips.begin(), strips.end(),
        [](const Strip& a, const Strip& b) { return a.round->transfers.front().at < b.round->transfers.front().at; });
    std::int64_t end = 0;
    bool inLine = true;
    for (const Strip& strip : strips) {
        inLine = inLine && isUniform(*strip.round) && strip.round->transfers.front().at == end;
        end += strip.round->length;
    }
    if (inLine && end == m_length) {
        std::vector<ValueId> values;
        for (const Strip& strip : strips)
            values.push_back(strip.value);
        return values.size() == 1 ? values.front() : local(OpKind::Concatenate, std::move(values), ConcatenateAttributes{m_dim});
    }
    const auto pieces = static_cast<std::size_t>(m_pieces);
    ValueId window;
    for (const Strip& strip : strips) {
        const ValueId value = placed(strip);
        if (!window.valid()) {
            window = value;
            continue;
        }
        std::vector<std::int64_t> first(pieces, 0);
        std::vector<std::int64_t> limit(pieces, 0);
        for (const PieceTransfer& transfer : strip.round->transfers) {
            first[static_cast<std::size_t>(transfer.to)] = transfer.at;
            limit[static_cast<std::size_t>(transfer.to)] = transfer.at + transfer.length;
        }
        const AxisRefs& axes = m_layout.dims[m_dim].axes;
        const Shape shape = m_ops.type(value).shape;
        const ValueId from = m_ops.perPiece(first, axes, m_layout.mesh);
        const ValueId mask = m_ops.betweenInPiece(shape, m_layout, m_dim, from, m_ops.perPiece(limit, axes, m_layout.mesh));
        window = local(OpKind::Select, {mask, value, window}, {});
    }
    return window;
}

} // namespace meshwright
