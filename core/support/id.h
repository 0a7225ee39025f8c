// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace meshwright {

/// An index into one table, which cannot be mixed up with an index into another. Default: no entry.
template <typename Tag>
struct Id {
    std::int32_t index = -1;

    constexpr Id() = default;
    constexpr explicit Id(std::int32_t i)
        : index(i)
    {
    }
    constexpr explicit Id(std::size_t i)
        : index(static_cast<std::int32_t>(i))
    {
    }

    constexpr bool valid() const { return index >= 0; }
    constexpr std::size_t at() const { return static_cast<std::size_t>(index); }

    friend constexpr auto operator<=>(Id, Id) = default;
};

} // namespace meshwright

template <typename Tag>
struct std::hash<meshwright::Id<Tag>> {
    std::size_t operator()(meshwright::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.index); }
};
