// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/partition/device_ops.h"

#include <string>
#include <vector>

namespace meshwright {

/// What each of the pieces of a split dimension needs of an array: piece k the elements first + k * step .. + length - 1. Only those from
/// `low` to `high` - 1 matter; in place of others, anything may come.
struct PieceWindow {
    std::int64_t first = 0;
    std::int64_t step = 0;
    std::int64_t length = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
    bool isExact = false; ///< nothing else may come: something of another array belongs there
};

/// A stretch of elements that one piece sends to a window.
struct PieceTransfer {
    std::int64_t to = 0; ///< the window's number
    std::int64_t from = 0; ///< the piece's number
    std::int64_t start = 0; ///< in the piece
    std::int64_t at = 0; ///< in the window
    std::int64_t length = 0;
};

/// Transfers of which every piece sends one at most, and every window receives one at most: one permute. What stays where it is moves nothing.
struct PieceRound {
    std::vector<PieceTransfer> transfers;
    std::int64_t length = 0; ///< of the longest: so much every device sends
    bool stays = false;
};

/// The rounds in which `pieces` pieces of `size` elements fill a window each.
std::vector<PieceRound> roundsFor(const PieceWindow& window, std::int64_t pieces, std::int64_t size);

/// The elements along the dimension that every device sends.
std::int64_t sentElements(const std::vector<PieceRound>& rounds);

/// Exchanges between the devices along one split dimension: halos of neighbours, shifts, and whatever else fills windows.
class SplitExchange {
public:
    /// `value` and `consumer` are what causes name.
    SplitExchange(DeviceOps& ops, std::string value, std::string consumer)
        : m_ops(ops)
        , m_value(std::move(value))
        , m_consumer(std::move(consumer))
    {
    }

    /// Pieces of `value` (with this layout, split along `dim`) become windows of it.
    ValueId window(ValueId value, const TensorSharding& layout, std::size_t dim, const PieceWindow& window);

    /// The same of several arrays, whose windows are put together where they do not matter in one another.
    struct Source {
        ValueId value;
        PieceWindow window;
    };
    ValueId merged(const std::vector<Source>& sources, const TensorSharding& layout, std::size_t dim);

private:
    struct Strip {
        ValueId value;
        const PieceRound* round = nullptr;
        std::vector<std::int64_t> begins; ///< for each window, where in it the strip begins
    };
    Strip received(ValueId value, const PieceRound& round);
    ValueId permuted(ValueId sent, const PieceRound& round);
    ValueId placed(const Strip& strip);
    ValueId joined(std::vector<Strip> strips);
    ValueId local(OpKind kind, std::vector<ValueId> operands, OpAttributes attributes);

    DeviceOps& m_ops;
    std::string m_value;
    std::string m_consumer;

    // Of the call at work.
    TensorSharding m_layout;
    std::size_t m_dim = 0;
    std::int64_t m_pieces = 1;
    std::int64_t m_length = 0; ///< of the windows
};

} // namespace meshwright
