// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/number.h"
#include "core/text/parser.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

/// Reads the elements of one constant, each as its bits.
class DenseReader {
public:
    DenseReader(std::string_view body, std::size_t offset, const TensorType& type, TextProblems& problems)
        : m_body(body)
        , m_offset(offset)
        , m_type(type)
        , m_problems(problems)
        , m_bytes(static_cast<std::size_t>(byteSize(type.dtype)))
    {
    }

    bool read(ConstantData& data)
    {
        skipBlank();
        if (m_at == m_body.size())
            return wrongCount(0, data, {});
        if (m_body[m_at] == '"')
            return readHex(data);
        if (m_body[m_at] == '[')
            return readList(data);
        std::string bytes;
        if (!readElement(bytes))
            return false;
        setSplat(data, std::move(bytes));
        skipBlank();
        return m_at == m_body.size() || fail("more than one value; write a list in brackets");
    }

private:
    bool fail(const std::string& message, std::string fix = {})
    {
        return m_problems.report("MW1327", m_offset + m_at, message, std::move(fix));
    }

    void skipBlank()
    {
        while (
            m_at < m_body.size() && (m_body[m_at] == ' ' || m_body[m_at] == '\n' || m_body[m_at] == '\t' || m_body[m_at] == '\r'))
            ++m_at;
    }

    void setSplat(ConstantData& data, std::string element) const
    {
        if (isComplex(m_type.dtype)) {
            data.value = std::make_shared<const std::string>(std::move(element));
            return;
        }
        std::uint64_t bits = 0;
        for (std::size_t i = m_bytes; i-- > 0;)
            bits = bits << 8 | static_cast<unsigned char>(element[i]);
        if (isFloating(m_type.dtype)) {
            data.value = floatFromBits(bits, m_type.dtype);
            return;
        }
        const auto unused = static_cast<unsigned>(64 - 8 * m_bytes);
        const bool isSigned = isInteger(m_type.dtype) && !isUnsigned(m_type.dtype);
        data.value = isSigned ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits);
    }

    /// Takes the bytes when there are as many as the type needs.
    bool wrongCount(std::size_t elements, ConstantData& data, std::string bytes)
    {
        if (static_cast<std::int64_t>(bytes.size()) != m_type.bytes())
            return fail(fmt::format("{} elements for {}", elements, typeText(m_type)));
        data.value = std::make_shared<const std::string>(std::move(bytes));
        return true;
    }

    /// `"0x0000803F.."`: the bytes of the elements, or of one for all of them; truth values also as bits, eight to a byte.
    bool readHex(ConstantData& data)
    {
        const std::string_view digits = m_body.substr(m_at + 1, m_body.find('"', m_at + 1) - m_at - 1);
        if (!digits.starts_with("0x") || digits.size() % 2 != 0) {
            if (digits.find("elided") == std::string_view::npos)
                return fail("expected hexadecimal digits in pairs after 0x");
            data.value = std::shared_ptr<const std::string>(); // left out of the text
            return true;
        }
        std::string bytes;
        bytes.reserve(digits.size() / 2);
        for (std::size_t i = 2; i < digits.size(); i += 2) {
            unsigned value = 0;
            const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
            if (error != std::errc() || end != digits.data() + i + 2)
                return fail("expected hexadecimal digits");
            bytes += static_cast<char>(value);
        }
        const std::int64_t elements = m_type.elements();
        const auto count = static_cast<std::int64_t>(bytes.size());
        if (m_type.dtype == DType::Pred && count != elements && elements >= 0
            && count == elements / 8 + (elements % 8 != 0 ? 1 : 0)) {
            std::string unpacked;
            for (std::int64_t i = 0; i < elements; ++i)
                unpacked
                    += static_cast<char>((static_cast<unsigned char>(bytes[static_cast<std::size_t>(i / 8)]) >> (i % 8)) & 1);
            bytes = std::move(unpacked);
        } else if (bytes.size() == m_bytes && elements != 1) {
            setSplat(data, std::move(bytes));
            return true;
        }
        const std::size_t given = bytes.size() / m_bytes;
        return wrongCount(given, data, std::move(bytes));
    }

    /// `[[1, 2], [3, 4]]`, as deep as the type has dimensions.
    bool readList(ConstantData& data)
    {
        std::string bytes;
        std::vector<std::int64_t> counts; // of what stands in each open bracket so far
        std::size_t elements = 0;
        const std::size_t rank = m_type.shape.size();
        do {
            skipBlank();
            if (m_at == m_body.size())
                return fail("the list has no end");
            if (m_body[m_at] == '[') {
                if (counts.size() == rank)
                    return fail(fmt::format("the list is nested deeper than {} has dimensions", typeText(m_type)));
                counts.push_back(0);
                ++m_at;
                continue;
            }
            if (m_body[m_at] == ']') {
                if (counts.back() != m_type.shape[counts.size() - 1])
                    return fail(fmt::format("{} entries for dim {} of {}", counts.back(), counts.size() - 1, typeText(m_type)));
                counts.pop_back();
                ++m_at;
            } else {
                if (counts.size() != rank)
                    return fail(fmt::format("the list is less deep than {} has dimensions", typeText(m_type)));
                if (!readElement(bytes))
                    return false;
                ++elements;
            }
            if (counts.empty())
                break;
            ++counts.back();
            skipBlank();
            if (m_at < m_body.size() && m_body[m_at] == ',')
                ++m_at;
            else if (m_at < m_body.size() && m_body[m_at] != ']')
                return fail("expected ',' or ']'");
        } while (true);
        skipBlank();
        if (m_at != m_body.size())
            return fail("unexpected text after the list");
        return wrongCount(elements, data, std::move(bytes));
    }

    /// Appends the bytes of one element.
    bool readElement(std::string& bytes)
    {
        if (!isComplex(m_type.dtype))
            return readNumber(bytes, m_type.dtype);
        if (m_body[m_at] != '(')
            return fail("expected a complex number: (1.0,2.0)");
        ++m_at;
        skipBlank();
        if (!readNumber(bytes, realType(m_type.dtype)))
            return false;
        skipBlank();
        if (m_at == m_body.size() || m_body[m_at] != ',')
            return fail("expected ',' and the imaginary part");
        ++m_at;
        skipBlank();
        if (!readNumber(bytes, realType(m_type.dtype)))
            return false;
        skipBlank();
        if (m_at == m_body.size() || m_body[m_at] != ')')
            return fail("expected ')'");
        ++m_at;
        return true;
    }

    bool readNumber(std::string& bytes, DType dtype)
    {
        const std::size_t end = std::min(m_body.find_first_of(",)] \n\t\r", m_at), m_body.size());
        const std::string_view word = m_body.substr(m_at, end - m_at);
        if (word.starts_with("..."))
            return fail(
                "the data of the constant were left out of the text", "write the program without eliding large constants");
        std::uint64_t bits = 0;
        const auto size = static_cast<std::size_t>(byteSize(dtype));
        const bool good = isFloating(dtype) ? readFloat(word, bits, dtype) : readInteger(word, bits);
        if (!good)
            return fail(fmt::format("{} is not {}", word.substr(0, 40), dtypeName(dtype)));
        bytes.append(reinterpret_cast<const char*>(&bits), size);
        m_at = end;
        return true;
    }

    static bool readFloat(std::string_view word, std::uint64_t& bits, DType dtype)
    {
        const std::int64_t size = byteSize(dtype);
        const char* last = word.data() + word.size();
        if (word.starts_with("0x")) {
            const auto [end, error] = std::from_chars(word.data() + 2, last, bits, 16);
            return error == std::errc() && end == last && (size == 8 || bits >> (8 * size) == 0);
        }
        double value = 0.0;
        const auto [end, error] = std::from_chars(word.data(), last, value);
        if (end != last || (error != std::errc() && error != std::errc::result_out_of_range)
            || word.find_first_not_of("0123456789+-.eE") != std::string_view::npos)
            return false;
        if (error == std::errc::result_out_of_range)
            return false;
        bits = floatBits(value, dtype);
        return true;
    }

    /// Signless integers may be written as signed or unsigned ones.
    bool readInteger(std::string_view word, std::uint64_t& bits) const
    {
        if (word == "true" || word == "false") {
            bits = word == "true" ? 1 : 0;
            return m_type.dtype == DType::Pred;
        }
        const bool negative = word.starts_with("-");
        const std::string_view digits = word.substr(negative ? 1 : 0);
        const bool hex = digits.starts_with("0x");
        const char* last = word.data() + word.size();
        std::uint64_t magnitude = 0;
        const auto [end, error] = std::from_chars(digits.data() + (hex ? 2 : 0), last, magnitude, hex ? 16 : 10);
        if (error != std::errc() || end != last)
            return false;
        const auto width = static_cast<unsigned>(m_type.dtype == DType::Pred ? 1 : 8 * m_bytes);
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
        if (negative && (isUnsigned(m_type.dtype) || magnitude > (mask >> 1) + 1))
            return false;
        if (!negative && magnitude > mask)
            return false;
        bits = (negative ? ~magnitude + 1 : magnitude) & mask;
        return true;
    }

    std::string_view m_body;
    std::size_t m_offset;
    const TensorType& m_type;
    TextProblems& m_problems;
    std::size_t m_bytes;
    std::size_t m_at = 0;
};

} // namespace

bool parseDenseBody(std::string_view body, std::size_t offset, const TensorType& type, ConstantData& data, TextProblems& problems)
{
    return DenseReader(body, offset, type, problems).read(data);
}

} // namespace meshwright
