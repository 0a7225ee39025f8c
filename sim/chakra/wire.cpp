// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/chakra/wire.h"

#include "core/support/text.h"

#include <bit>
#include <limits>

namespace meshwright::sim {

namespace {

void appendVarint(std::string& to, std::uint64_t value)
{
    constexpr std::uint64_t kLow = 0x7f;
    for (; value > kLow; value >>= 7U)
        to.push_back(static_cast<char>((value & kLow) | 0x80U));
    to.push_back(static_cast<char>(value));
}

} // namespace

void WireWriter::key(std::uint32_t field, WireType type)
{
    appendVarint(m_text, std::uint64_t{field} << 3U | static_cast<std::uint64_t>(type));
}

void WireWriter::varint(std::uint32_t field, std::uint64_t value)
{
    key(field, WireType::Varint);
    appendVarint(m_text, value);
}

void WireWriter::fixed64(std::uint32_t field, double value)
{
    key(field, WireType::Fixed64);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8)
        m_text.push_back(static_cast<char>(bits >> shift & 0xffU));
}

void WireWriter::bytes(std::uint32_t field, std::string_view value)
{
    key(field, WireType::Bytes);
    appendVarint(m_text, value.size());
    m_text += value;
}

void WireWriter::appendDelimited(std::string& to, std::string_view message)
{
    appendVarint(to, message.size());
    to += message;
}

double WireField::real() const
{
    return type == WireType::Fixed32 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value)))
                                     : std::bit_cast<double>(value);
}

std::optional<std::uint64_t> WireReader::varint()
{
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !m_rest.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(m_rest.front());
        m_rest.remove_prefix(1);
        const std::uint64_t part = byte & 0x7fU;
        if (shift == 63 && part > 1)
            return std::nullopt; // beyond 64 bits
        value |= part << shift;
        if (byte < 0x80U)
            return value;
    }
    return std::nullopt;
}

std::optional<std::string_view> WireReader::take(std::uint64_t count)
{
    if (count > m_rest.size())
        return std::nullopt;
    const std::string_view taken = m_rest.substr(0, static_cast<std::size_t>(count));
    m_rest.remove_prefix(taken.size());
    return taken;
}

std::optional<std::string_view> WireReader::delimited()
{
    const auto length = varint();
    return length ? take(*length) : std::nullopt;
}

std::optional<WireField> WireReader::field()
{
    const auto key = varint();
    if (!key || *key >> 3U == 0 || *key >> 3U > std::numeric_limits<std::uint32_t>::max())
        return std::nullopt;
    WireField field;
    field.number = static_cast<std::uint32_t>(*key >> 3U);
    field.type = static_cast<WireType>(*key & 7U);
    std::optional<std::string_view> taken;
    switch (field.type) {
    case WireType::Varint: {
        const auto value = varint();
        if (!value)
            return std::nullopt;
        field.value = *value;
        return field;
    }
    case WireType::Fixed64:
        taken = take(8);
        break;
    case WireType::Fixed32:
        taken = take(4);
        break;
    case WireType::Bytes:
        taken = delimited();
        break;
    }
    if (!taken)
        return std::nullopt;
    if (field.type == WireType::Bytes)
        field.bytes = *taken;
    else
        field.value = littleEndian(*taken);
    return field;
}

} // namespace meshwright::sim
