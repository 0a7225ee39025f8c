// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshwright {

/// Which offsets of an arena are taken at which times, for placing many buffers one after the other.
///
/// A segment tree over time: every node has the union of what is taken during all of its span, and of what is taken at some time in it. As
/// unions join what touches, they stay short where memory is packed well. A search looks at two nodes for each level of the tree.
class FreeSpace {
public:
    /// Times are 0 .. moments - 1.
    explicit FreeSpace(std::size_t moments);

    struct Span {
        std::size_t first = 0;
        std::size_t last = 0;
    };

    /// The lowest offset from which `bytes` are free at every time first .. last of each span. Preconditions: first <= last < moments, bytes >= 0.
    std::int64_t lowestFit(std::int64_t bytes, const std::vector<Span>& spans) const;

    /// Takes the bytes for the times first .. last, free or not.
    void take(std::int64_t offset, std::int64_t bytes, Span span);

private:
    struct Range {
        std::int64_t begin = 0;
        std::int64_t end = 0;
    };
    /// Ascending, apart from each other.
    using Ranges = std::vector<Range>;

    struct Node {
        Ranges always;
        Ranges ever;
    };

    static void add(Ranges& ranges, Range added);
    void take(Range range, std::size_t first, std::size_t last, std::size_t node, std::size_t begin, std::size_t end);
    void collect(std::size_t first, std::size_t last, std::size_t node, std::size_t begin, std::size_t end,
        std::vector<const Ranges*>& taken) const;

    std::size_t m_span = 1;
    std::vector<Node> m_nodes; ///< the children of i are 2 i and 2 i + 1; the root is 1
};

} // namespace meshwright
