// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace meshwright {

/// Messages between the processes ("ranks") of one job, as a message-passing library carries them. Nothing here waits. Messages from one
/// rank to another with one tag arrive in the order in which they were sent. May be called from several threads.
///
/// This header is all that the module knows of the program (see `kOpenRankPort`): it names standard types only.
class RankPort {
public:
    virtual ~RankPort() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int largestTag() const = 0; ///< tags go from 0 to this; at least 32767

    /// Begins to send or to receive at most kMostMessageBytes; the memory stays as it is until the message is done. Returns its number.
    virtual std::size_t send(int to, int tag, const std::byte* data, std::int64_t bytes) = 0;
    virtual std::size_t receive(int from, int tag, std::byte* data, std::int64_t bytes) = 0;

    enum class State : std::uint8_t { UnderWay, Done, Failed };

    /// How a message is. When it is done or has failed, its number is free for another one.
    virtual State stateOf(std::size_t message) = 0;

    /// Ends the job in good order, together on all ranks; nothing is called afterwards.
    virtual void leave() = 0;
};

inline constexpr std::int64_t kMostMessageBytes = std::int64_t{1} << 30;

/// The one function of the module that carries messages by MPI. Null: `why`, of `whyBytes`, says why not.
inline constexpr const char* kOpenRankPort = "meshwrightOpenRankPort";
using OpenRankPort = RankPort* (*)(char* why, std::size_t whyBytes);

} // namespace meshwright
