// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <iterator>

namespace meshwright {

/// The first element whose `member` is the value; null: there is none.
template <typename Range, typename Value, typename Member>
auto* findBy(Range& range, const Value& value, Member member)
{
    const auto found = std::ranges::find(range, value, member);
    return found == std::ranges::end(range) ? nullptr : &*found;
}

} // namespace meshwright
