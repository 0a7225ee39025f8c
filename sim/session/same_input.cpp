// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/same_input.h"

#include "core/support/sha256.h"

#include <fmt/format.h>

namespace meshwright::sim {

namespace {

/// The first rank that says something else than rank 0; 0: none.
Result<std::size_t> firstDifferent(Ranks& ranks, const std::string& text)
{
    const auto all = ranks.all(sha256Text(text));
    if (!all)
        return all.error();
    for (std::size_t rank = 1; rank < all->size(); ++rank) {
        if ((*all)[rank] != all->front())
            return rank;
    }
    return std::size_t{0};
}

} // namespace

Result<Done> checkSameInput(Ranks& ranks, const std::string& kind, const std::string& input, const std::string& options)
{
    const std::string fix = "give all machines the same files and the same command";
    const auto different = firstDifferent(ranks, input);
    if (!different)
        return different.error();
    if (*different != 0)
        return Problem{"MW1554", fmt::format("rank {} read another {} than rank 0", *different, kind), fix};
    const auto others = firstDifferent(ranks, options);
    if (!others)
        return others.error();
    if (*others != 0)
        return Problem{"MW1554", fmt::format("rank {} was given other options than rank 0", *others), fix};
    return Done{};
}

} // namespace meshwright::sim
