// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/free_space.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace meshwright {

FreeSpace::FreeSpace(std::size_t moments)
    : m_span(std::bit_ceil(std::max<std::size_t>(1, moments)))
    , m_nodes(2 * m_span)
{
}

void FreeSpace::add(Ranges& ranges, Range added)
{
    const auto first = std::lower_bound(
        ranges.begin(), ranges.end(), added.begin, [](const Range& range, std::int64_t begin) { return range.end < begin; });
    auto last = first;
    for (; last != ranges.end() && last->begin <= added.end; ++last) {
        added.begin = std::min(added.begin, last->begin);
        added.end = std::max(added.end, last->end);
    }
    if (first == last) {
        ranges.insert(first, added);
        return;
    }
    *first = added;
    ranges.erase(first + 1, last);
}

void FreeSpace::take(std::int64_t offset, std::int64_t bytes, Span span)
{
    assert(span.first <= span.last && span.last < m_span);
    if (bytes > 0)
        take({offset, offset + bytes}, span.first, span.last, 1, 0, m_span);
}

void FreeSpace::take(Range range, std::size_t first, std::size_t last, std::size_t node, std::size_t begin, std::size_t end)
{
    if (last < begin || end <= first)
        return;
    add(m_nodes[node].ever, range);
    if (first <= begin && end <= last + 1) {
        add(m_nodes[node].always, range);
        return;
    }
    const std::size_t middle = (begin + end) / 2;
    take(range, first, last, 2 * node, begin, middle);
    take(range, first, last, 2 * node + 1, middle, end);
}

void FreeSpace::collect(std::size_t first, std::size_t last, std::size_t node, std::size_t begin, std::size_t end,
    std::vector<const Ranges*>& taken) const
{
    if (last < begin || end <= first || m_nodes[node].ever.empty())
        return;
    if (first <= begin && end <= last + 1) {
        taken.push_back(&m_nodes[node].ever);
        return;
    }
    if (!m_nodes[node].always.empty())
        taken.push_back(&m_nodes[node].always);
    const std::size_t middle = (begin + end) / 2;
    collect(first, last, 2 * node, begin, middle, taken);
    collect(first, last, 2 * node + 1, middle, end, taken);
}

std::int64_t FreeSpace::lowestFit(std::int64_t bytes, const std::vector<Span>& spans) const
{
    if (bytes == 0)
        return 0;
    std::vector<const Ranges*> taken;
    for (const Span& span : spans) {
        assert(span.first <= span.last && span.last < m_span);
        collect(span.first, span.last, 1, 0, m_span, taken);
    }
    // Moves up past whatever is in the way, until nothing has been for as many lists as there are.
    std::int64_t offset = 0;
    std::vector<std::size_t> at(taken.size(), 0); // the first range of each list that may be in the way
    for (std::size_t free = 0, list = 0; free < taken.size(); list = (list + 1) % taken.size()) {
        const Ranges& ranges = *taken[list];
        std::size_t& next = at[list];
        const std::int64_t before = offset;
        for (; next < ranges.size() && ranges[next].begin < offset + bytes; ++next)
            offset = std::max(offset, ranges[next].end);
        free = offset == before ? free + 1 : 1;
    }
    return offset;
}

} // namespace meshwright
