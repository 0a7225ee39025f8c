// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/shape.h"
#include "core/support/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

/// The shape of a value in HLO text: one array, or a tuple of shapes.
struct HloShape {
    Shape dims; ///< of an array; a bounded dynamic dimension has its bound
    std::vector<HloShape> elements; ///< of a tuple
    bool isTuple = false;
    std::int64_t bytes = 0; ///< of the array or of all elements; types below a byte are packed; tokens have none
};

/// `%name = shape opcode(operands), key=value, ..`. The texts are parts of the text that was read.
struct HloInstruction {
    std::string_view name; ///< without %
    std::string_view opcode;
    HloShape shape;
    std::vector<std::string_view> operands; ///< names without %; of a constant its value
    std::vector<std::pair<std::string_view, std::string_view>> attributes; ///< values with their braces and quotes
    std::size_t offset = 0; ///< of its name in the text
    bool isRoot = false;

    /// The value of an attribute; empty: it has none of this name.
    std::string_view find(std::string_view key) const;
};

struct HloComputation {
    std::string_view name; ///< without %
    std::vector<HloInstruction> instructions;
    std::map<std::string_view, std::size_t> index; ///< of the instructions by name

    const HloInstruction* find(std::string_view instruction) const;
    /// The instruction that is marked as ROOT, else the last; null: there is none.
    const HloInstruction* root() const;
};

/// A module of XLA as its dumps have it (`HloModule jit_step, is_scheduled=true, ..`), before or after any pass.
struct HloModule {
    std::string_view name;
    std::int64_t partitions = 1; ///< `num_partitions`, >= 1
    std::int64_t replicas = 1; ///< `replica_count`, >= 1
    bool saysDevices = false; ///< the header has at least one of the two
    bool isScheduled = false; ///< `is_scheduled=true`: after all passes
    std::vector<HloComputation> computations;
    std::map<std::string_view, std::size_t> index; ///< of the computations by name
    std::optional<std::size_t> entry = {}; ///< index of the ENTRY computation
    bool isCut = false; ///< the text ends before the module does: after an instruction, or before its ENTRY
    std::map<std::int64_t, std::string> frames; ///< `file:line` of each stack frame, where the module has those tables
};

/// True when the text is one of HLO: its first word, after comments, is HloModule.
bool isHloText(std::string_view text);

/// Reads a module. The text must outlive it.
///
/// Problems, with line and column: MW1360 what was expected instead of what is there; a second module; a shape whose bytes do not fit 64 bits;
/// MW1361 no computation, or a name that is used twice.
/// Source: openxla/xla, docs/operation_semantics.md and xla/hlo/parser/hlo_parser.cc (the grammar).
Result<HloModule> readHloModule(std::string_view text, const std::string& file);

} // namespace meshwright
