// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// One collective of two steps. What a side lacks is a default `Use`; its key is the other side's.
template <typename Key, typename Use>
struct UsePair {
    Key before;
    Key after;
    Use was;
    Use is;
};

/// Which collectives of two steps are the same: those with equal keys (op, axes, phase, value); of what is left those that differ in
/// their axes only, as `sameButAxes(key, key)` says. The rest has no counterpart. Order: in the order of `was`, then of `is`.
template <typename Key, typename Use, typename SameButAxes>
std::vector<UsePair<Key, Use>> pairUses(std::map<Key, Use> was, std::map<Key, Use> is, SameButAxes sameButAxes)
{
    std::vector<UsePair<Key, Use>> pairs;
    const auto take = [&](auto from, auto to) {
        pairs.push_back({from->first, to->first, from->second, to->second});
        is.erase(to);
        return was.erase(from);
    };
    for (auto use = was.begin(); use != was.end();) {
        const auto same = is.find(use->first);
        use = same != is.end() ? take(use, same) : std::next(use);
    }
    for (auto use = was.begin(); use != was.end();) {
        const auto moved
            = std::find_if(is.begin(), is.end(), [&](const auto& other) { return sameButAxes(use->first, other.first); });
        use = moved != is.end() ? take(use, moved) : std::next(use);
    }
    for (const auto& [key, use] : was)
        pairs.push_back({key, key, use, {}});
    for (const auto& [key, use] : is)
        pairs.push_back({key, key, {}, use});
    return pairs;
}

} // namespace meshwright::sim
