// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/notation.h"

#include "core/support/text_cursor.h"

#include <fmt/format.h>

#include <numeric>

namespace meshwright {

namespace {

/// Reads `PositionalSharding(..)` and the operations after it. A function that yields false or nothing has left problems.
class PositionalReader {
public:
    explicit PositionalReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<PositionalSharding> read()
    {
        m_cursor.take("jax.sharding.");
        std::optional<PositionalSharding> sharding;
        if (m_cursor.take("PositionalSharding(") || fail("\"PositionalSharding(\""))
            sharding = m_cursor.peek("{") || (m_cursor.peek("[") && m_cursor.rest().find('{') != std::string_view::npos)
                ? printed()
                : made();
        while (sharding && m_cursor.take("."))
            sharding = operation(*sharding);
        if (sharding && !m_cursor.atEnd())
            fail("an operation or the end");
        if (!m_problems.empty())
            return m_problems;
        return *std::move(sharding);
    }

private:
    bool fail(const char* wanted)
    {
        m_problems.push_back(m_cursor.expected("MW1134", "positional sharding", wanted,
            "write PositionalSharding([[{TPU 0, 1}] [{TPU 2, 3}]], shape=(2, 1)), or PositionalSharding(8).reshape(4, "
            "2).replicate(1)"));
        return false;
    }

    std::optional<PositionalSharding> settle(Result<PositionalSharding> sharding)
    {
        if (sharding)
            return *std::move(sharding);
        append(m_problems, sharding.error());
        return std::nullopt;
    }

    /// The number of devices, or a list of them.
    std::optional<PositionalSharding> made()
    {
        std::vector<DeviceId> devices;
        if (m_cursor.take("[")) {
            if (!integers(devices, "]"))
                return std::nullopt;
        } else {
            const auto count = m_cursor.integer();
            if (!count || *count < 1 || *count > kLargestPositional) {
                fail("a number of devices or a list of them");
                return std::nullopt;
            }
            devices.resize(static_cast<std::size_t>(*count));
            std::iota(devices.begin(), devices.end(), DeviceId{0});
        }
        if (!m_cursor.take(")")) {
            fail("\")\"");
            return std::nullopt;
        }
        return settle(PositionalSharding::create(std::move(devices)));
    }

    /// Nested lists of sets of devices and, since JAX 0.4.8, their shape; without it the nesting says it.
    std::optional<PositionalSharding> printed()
    {
        std::optional<NestedCells> cells = nestedCells();
        if (!cells)
            return std::nullopt;
        if (cells->isRegular && m_cursor.take(")"))
            return ofCells(cells->sets, std::move(cells->lengths));
        if (m_cursor.take(", memory_kind="))
            m_cursor.word();
        if (!m_cursor.take(",") || !m_cursor.take("shape=(")) {
            fail("\", shape=(..)\" or \")\"");
            return std::nullopt;
        }
        Shape shape;
        if (!integers(shape, ")"))
            return std::nullopt;
        if (!m_cursor.take(")")) {
            fail("\")\"");
            return std::nullopt;
        }
        return ofCells(cells->sets, std::move(shape));
    }

    struct NestedCells {
        std::vector<std::vector<DeviceId>> sets;
        Shape lengths; ///< of the lists of each depth, the outermost first
        bool isRegular = true; ///< all lists of a depth have one length
    };

    std::optional<NestedCells> nestedCells()
    {
        NestedCells cells;
        Shape& lengths = cells.lengths;
        Shape open; // how much each open list has so far
        do {
            if (m_cursor.take("[")) {
                if (!open.empty())
                    ++open.back();
                open.push_back(0);
                lengths.resize(std::max(lengths.size(), open.size()));
            } else if (m_cursor.take("]")) {
                std::int64_t& length = lengths[open.size() - 1];
                cells.isRegular = cells.isRegular && (length == 0 || length == open.back());
                length = open.back();
                open.pop_back();
            } else if (m_cursor.take("{")) {
                // The platform stands before the first id.
                m_cursor.goTo(m_cursor.at() + std::min(m_cursor.rest().size(), m_cursor.rest().find_first_of("0123456789}")));
                cells.sets.emplace_back();
                if (!integers(cells.sets.back(), "}"))
                    return std::nullopt;
                if (!open.empty())
                    ++open.back();
            } else {
                m_cursor.take(",");
                if (m_cursor.atEnd() || (!m_cursor.peek("[") && !m_cursor.peek("]") && !m_cursor.peek("{"))) {
                    fail("a set of devices");
                    return std::nullopt;
                }
            }
        } while (!open.empty());
        return cells;
    }

    std::optional<PositionalSharding> ofCells(const std::vector<std::vector<DeviceId>>& cells, Shape shape)
    {
        std::vector<DeviceId> devices;
        for (const auto& cell : cells) {
            if (cell.size() != cells.front().size() || cell.empty()) {
                fail("sets with the same number of devices");
                return std::nullopt;
            }
            devices.insert(devices.end(), cell.begin(), cell.end());
        }
        if (cells.empty()) {
            fail("a set of devices");
            return std::nullopt;
        }
        auto sharding = settle(PositionalSharding::create(std::move(devices)));
        shape.push_back(static_cast<std::int64_t>(cells.front().size()));
        if (sharding)
            sharding = settle(sharding->reshape(std::move(shape)));
        if (sharding)
            sharding = settle(sharding->replicate(-1, false));
        return sharding;
    }

    std::optional<PositionalSharding> operation(const PositionalSharding& sharding)
    {
        if (m_cursor.take("reshape(")) {
            Shape shape;
            if (!arguments(shape))
                return std::nullopt;
            return settle(sharding.reshape(std::move(shape)));
        }
        if (m_cursor.take("transpose(")) {
            Shape axes;
            if (!arguments(axes))
                return std::nullopt;
            return axes.empty() ? sharding.transposed() : settle(sharding.transpose(axes));
        }
        if (m_cursor.take("T"))
            return sharding.transposed();
        if (m_cursor.take("replicate("))
            return replicate(sharding);
        fail("reshape, replicate, transpose or T");
        return std::nullopt;
    }

    std::optional<PositionalSharding> replicate(const PositionalSharding& sharding)
    {
        m_cursor.take("axis=");
        const auto axis = m_cursor.take("None") ? std::nullopt : m_cursor.integer();
        m_cursor.take(",");
        bool keep = true;
        if (m_cursor.take("keepdims=") || !m_cursor.peek(")")) {
            keep = !m_cursor.take("False");
            if (keep && !m_cursor.take("True")) {
                fail("True or False");
                return std::nullopt;
            }
        }
        if (!m_cursor.take(")")) {
            fail("\")\"");
            return std::nullopt;
        }
        return axis ? settle(sharding.replicate(*axis, keep)) : sharding.replicateAll(keep);
    }

    /// `2, 4)` or `(2, 4))`.
    bool arguments(std::vector<std::int64_t>& values)
    {
        if (!m_cursor.take("("))
            return integers(values, ")");
        return integers(values, ")") && (m_cursor.take(")") || fail("\")\""));
    }

    bool integers(std::vector<std::int64_t>& values, const char* close)
    {
        while (!m_cursor.take(close)) {
            const auto value = m_cursor.integer();
            if (!value)
                return fail("an integer");
            values.push_back(*value);
            if (!m_cursor.take(",") && !m_cursor.peek(close))
                return fail("\",\" or the closing bracket");
        }
        return true;
    }

    TextCursor m_cursor;
    Problems m_problems;
};

} // namespace

Result<PositionalSharding> parsePositional(std::string_view text)
{
    return PositionalReader(text).read();
}

} // namespace meshwright
