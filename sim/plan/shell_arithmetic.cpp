// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/shell_arithmetic.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <algorithm>

namespace meshwright::sim {

namespace {

class Arithmetic {
public:
    explicit Arithmetic(std::string_view text)
        : m_text(text)
    {
    }

    std::optional<std::int64_t> value()
    {
        const auto sum = terms();
        skip();
        return m_text.empty() ? sum : std::nullopt;
    }

private:
    void skip()
    {
        while (!m_text.empty() && (m_text.front() == ' ' || m_text.front() == '\t' || m_text.front() == '\n'))
            m_text.remove_prefix(1);
    }
    char next(std::string_view among)
    {
        skip();
        if (m_text.empty() || among.find(m_text.front()) == std::string_view::npos)
            return '\0';
        const char letter = m_text.front();
        m_text.remove_prefix(1);
        return letter;
    }
    std::optional<std::int64_t> terms()
    {
        auto sum = factors();
        for (char sign = next("+-"); sum && sign != '\0'; sign = next("+-")) {
            const auto more = factors();
            std::int64_t result = 0;
            if (!more
                || (sign == '+' ? __builtin_add_overflow(*sum, *more, &result) : __builtin_sub_overflow(*sum, *more, &result)))
                return std::nullopt;
            sum = result;
        }
        return sum;
    }
    std::optional<std::int64_t> factors()
    {
        auto product = atom();
        for (char sign = next("*/%"); product && sign != '\0'; sign = next("*/%")) {
            const auto more = atom();
            if (!more || (sign != '*' && *more <= 0))
                return std::nullopt;
            product = sign == '*' ? checkedMultiply(*product, *more) : sign == '/' ? *product / *more : *product % *more;
        }
        return product;
    }
    std::optional<std::int64_t> atom()
    {
        if (m_depth > 64)
            return std::nullopt;
        if (next("(") != '\0') {
            ++m_depth;
            const auto inner = terms();
            --m_depth;
            return next(")") != '\0' ? inner : std::nullopt;
        }
        skip();
        const auto end = std::find_if_not(m_text.begin(), m_text.end(), [](char c) { return c >= '0' && c <= '9'; });
        const auto digits = m_text.substr(0, static_cast<std::size_t>(end - m_text.begin()));
        m_text.remove_prefix(digits.size());
        return parseInteger(digits);
    }

    std::string_view m_text;
    int m_depth = 0;
};

} // namespace

std::optional<std::int64_t> valueOfArithmetic(std::string_view text)
{
    return Arithmetic(text).value();
}

} // namespace meshwright::sim
