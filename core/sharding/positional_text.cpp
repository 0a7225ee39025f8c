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

    /// Nested lists of sets of devices, and their shape.
    std::optional<PositionalSharding> printed()
    {
        std::vector<std::vector<DeviceId>> cells;
        std::size_t depth = 0;
        std::size_t rank = 0;
        do {
            if (m_cursor.take("[")) {
                rank = std::max(rank, ++depth);
            } else if (m_cursor.take("]")) {
                --depth;
            } else if (m_cursor.take("{")) {
                // The platform stands before the first id.
                m_cursor.goTo(m_cursor.at() + std::min(m_cursor.rest().size(), m_cursor.rest().find_first_of("0123456789}")));
                cells.emplace_back();
                if (!integers(cells.back(), "}"))
                    return std::nullopt;
            } else {
                m_cursor.take(",");
                if (m_cursor.atEnd() || (!m_cursor.peek("[") && !m_cursor.peek("]") && !m_cursor.peek("{"))) {
                    fail("a set of devices");
                    return std::nullopt;
                }
            }
        } while (depth > 0);
        if (m_cursor.take(", memory_kind="))
            m_cursor.word();
        if (!m_cursor.take(",") || !m_cursor.take("shape=(")) {
            fail("\", shape=(..)\"");
            return std::nullopt;
        }
        Shape shape;
        if (!integers(shape, ")"))
            return std::nullopt;
        if (!m_cursor.take(")")) {
            fail("\")\"");
            return std::nullopt;
        }
        return ofCells(cells, std::move(shape));
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
