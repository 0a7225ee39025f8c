// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/threefry.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace meshwright {

std::vector<std::int64_t> randomPermutation(const RandomKey& key, std::int64_t count, bool partitionable)
{
    assert(count >= 0 && count <= std::numeric_limits<std::uint32_t>::max());
    constexpr double kExponent = 3.0;
    const double rounds = std::ceil(kExponent * std::log(static_cast<double>(std::max<std::int64_t>(count, 1)))
        / std::log(static_cast<double>(std::numeric_limits<std::uint32_t>::max())));

    struct Item {
        std::uint32_t word;
        std::int64_t number;
    };
    std::vector<Item> items(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < items.size(); ++i)
        items[i].number = static_cast<std::int64_t>(i);
    RandomKey next = key;
    for (int round = 0; round < static_cast<int>(rounds); ++round) {
        const std::vector<RandomKey> keys = splitKey(next, 2, partitionable);
        next = keys[0];
        for (std::size_t i = 0; i < items.size(); ++i)
            items[i].word = randomWord(keys[1], i, items.size(), partitionable);
        std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.word < b.word; });
    }
    std::vector<std::int64_t> numbers;
    numbers.reserve(items.size());
    for (const Item& item : items)
        numbers.push_back(item.number);
    return numbers;
}

} // namespace meshwright
