// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/support/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace meshwright::sim {

/// What a node stands for; numbers as in the format.
enum class ChakraNodeType : std::uint8_t {
    Invalid = 0,
    Metadata = 1,
    MemoryLoad = 2,
    MemoryStore = 3,
    Compute = 4,
    Send = 5,
    Receive = 6,
    Collective = 7,
};

/// What a collective does; numbers as in the format.
enum class ChakraCollective : std::uint8_t {
    AllReduce = 0,
    Reduce = 1,
    AllGather = 2,
    Gather = 3,
    Scatter = 4,
    Broadcast = 5,
    AllToAll = 6,
    ReduceScatter = 7,
    ReduceScatterBlock = 8,
    Barrier = 9,
};

/// A named value. Lists and other kinds than these are passed over by the reader.
struct ChakraAttribute {
    using Value = std::variant<bool, std::int32_t, std::int64_t, std::uint64_t, double, std::string>;
    std::string name;
    Value value;

    friend bool operator==(const ChakraAttribute&, const ChakraAttribute&) = default;
};

struct ChakraNode {
    std::uint64_t id = 0;
    std::string name;
    ChakraNodeType type = ChakraNodeType::Invalid;
    std::vector<std::uint64_t> controlDependencies;
    std::vector<std::uint64_t> dataDependencies;
    std::uint64_t startMicros = 0;
    std::uint64_t durationMicros = 0;
    std::vector<ChakraAttribute> attributes;
    std::string inputs; ///< values, of Metadata nodes only: PyTorch's process groups are there

    /// The attribute as a whole number; nothing where it is missing, a text or no whole number.
    std::optional<std::int64_t> integer(std::string_view attribute) const;
    std::optional<double> number(std::string_view attribute) const;
    std::optional<std::string> text(std::string_view attribute) const;
    bool flag(std::string_view attribute, bool absent) const;

    friend bool operator==(const ChakraNode&, const ChakraNode&) = default;
};

/// The execution trace of one rank: a graph of what it computes and communicates.
struct ChakraTrace {
    std::string version = "0.0.4";
    std::vector<ChakraAttribute> attributes;
    std::vector<ChakraNode> nodes;

    friend bool operator==(const ChakraTrace&, const ChakraTrace&) = default;
};

/// An attribute that Meshwright adds to what Chakra names; other programs pass over it.
inline constexpr const char* kChakraPicoseconds = "duration_ps";

/// The bytes of a file: a GlobalMetadata message and a Node message after the other, each with its length before it.
/// Source: mlcommons/chakra, schema/protobuf/et_def.proto.
std::string writeChakra(const ChakraTrace& trace);

/// One node without its length, and an attribute as it may be appended to it: for writing many that differ in a few attributes.
std::string chakraNodeBytes(const ChakraNode& node);
std::string chakraAttributeField(const ChakraAttribute& attribute);
/// The time of computing, to be appended likewise: in microseconds, rounded, and exactly in kChakraPicoseconds.
void appendChakraDuration(std::string& node, std::int64_t picoseconds);
/// A message with its length before it.
void appendChakraMessage(std::string& file, std::string_view message);

/// Of all files of a step together. A node is a few bytes in a file and some hundred in memory.
inline constexpr std::size_t kMostChakraNodes = 4'000'000;

/// Reads such a file; inputs but those of metadata, outputs and storage are passed over.
/// Problems: MW1766 it is no such file: cut short, a message or a field that is none, two nodes of one number, a dependence on a node that is
/// not there; MW1767 more than `mostNodes`.
Result<ChakraTrace> readChakra(std::string_view bytes, const std::string& file, std::size_t mostNodes = kMostChakraNodes);

} // namespace meshwright::sim
