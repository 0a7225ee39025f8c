// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace meshwright::sim {

/// How the value of a field is written. The format is a page of rules, less than what libprotobuf, its compiler and generated sources would
/// add to the build; and so lengths are checked by us before anything is kept.
/// Source: Protocol Buffers, "Encoding" (protobuf.dev/programming-guides/encoding).
enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

/// Appends fields of a message.
class WireWriter {
public:
    void varint(std::uint32_t field, std::uint64_t value);
    void fixed64(std::uint32_t field, double value);
    void bytes(std::uint32_t field, std::string_view value); ///< texts and messages

    /// A message with its length before it, as files have them one after the other.
    static void appendDelimited(std::string& to, std::string_view message);

    const std::string& text() const { return m_text; }

private:
    void key(std::uint32_t field, WireType type);

    std::string m_text;
};

/// One field of a message.
struct WireField {
    std::uint32_t number = 0;
    WireType type = WireType::Varint;
    std::uint64_t value = 0; ///< varints; of the fixed ones the bits
    std::string_view bytes = {};

    double real() const; ///< of Fixed64 and Fixed32
};

/// Takes fields off a message, or messages off a file. Nothing is read beyond the end, whatever the bytes are.
class WireReader {
public:
    explicit WireReader(std::string_view bytes)
        : m_rest(bytes)
    {
    }

    bool atEnd() const { return m_rest.empty(); }
    std::size_t left() const { return m_rest.size(); }

    /// Nothing where the bytes do not make a field: cut short, a type that is not known, a number too long or a field 0.
    std::optional<WireField> field();

    /// A message with its length before it. Nothing where it is cut short.
    std::optional<std::string_view> delimited();

    std::optional<std::uint64_t> varint();

private:
    std::optional<std::string_view> take(std::uint64_t count);

    std::string_view m_rest;
};

} // namespace meshwright::sim
