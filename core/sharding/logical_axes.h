// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/jax_spec.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// What a rule gives to a logical axis: mesh axes, nothing, or no constraint. Also the spelling of a dimension that has no logical name.
struct LogicalTarget {
    std::vector<std::string> axes; ///< several: all or none of them; empty: not sharded
    bool unconstrained = false;

    friend bool operator==(const LogicalTarget&, const LogicalTarget&) = default;
};

/// `("embed", "model")`: logical axis `name` may lie over these mesh axes.
struct LogicalRule {
    std::string name;
    LogicalTarget target;

    friend bool operator==(const LogicalRule&, const LogicalRule&) = default;
};
using LogicalRules = std::vector<LogicalRule>; ///< in order of precedence

/// The name of a dimension of an array: a logical axis, or None (the empty name), or UNCONSTRAINED.
struct LogicalName {
    std::string name;
    bool unconstrained = false;

    friend bool operator==(const LogicalName&, const LogicalName&) = default;
};
using LogicalNames = std::vector<LogicalName>;

/// Reads rules as MaxText's configuration and Flax write them: `[['batch', 'data'], ['embed', ['fsdp', 'model']], ['heads', null]]`, with
/// brackets or parentheses, None, null or [] for nothing, UNCONSTRAINED.
/// Problems, with a column: MW1180 the text is not a list of rules.
Result<LogicalRules> parseLogicalRules(std::string_view text);

/// Reads `('batch', None, 'embed')`. Problems, with a column: MW1180.
Result<LogicalNames> parseLogicalNames(std::string_view text);

/// Why a rule was or was not applied, or a name was left as it is.
enum class LogicalVerdict : std::uint8_t {
    Applied,
    NameAbsent, ///< the array has no such dimension; only in full traces
    AlreadyAssigned, ///< an earlier rule gave the dimension its axes
    AxisTaken, ///< a mesh axis of the rule is used by another dimension
    NoRule, ///< of a name: no rule applied to it
    Renamed, ///< NNX: the name stands for a mesh axis
    Kept, ///< NNX: a name without a rule is a mesh axis itself
};

/// One step of a decision, in the order in which they are taken.
struct LogicalStep {
    LogicalVerdict verdict = LogicalVerdict::Applied;
    std::optional<std::size_t> rule = {}; ///< index into the rules; nothing for the names that are left over
    std::optional<std::size_t> dim = {}; ///< of the array
    std::optional<std::size_t> otherDim = {}; ///< of AxisTaken: the dimension that uses the axis
    std::string text; ///< `rule 2 (embed -> model): dim 1 stays whole, model is used by dim 0 (batch)`

    friend bool operator==(const LogicalStep&, const LogicalStep&) = default;
};

/// The spec, and how it came about.
struct LogicalDecision {
    JaxSpec spec;
    std::vector<std::size_t> unmatched; ///< dimensions whose names no rule was applied to
    std::vector<LogicalStep> trace;
};

/// Linen: goes through the rules in order; a rule applies if its name occurs, that dimension has nothing yet, and none of its mesh axes is
/// used by another dimension (several axes: all or nothing). Names that are left over are not sharded.
///
/// Problems: MW1181 a name occurs twice.
/// Source: google/flax, flax/linen/spmd.py (`_logical_to_mesh_axes`).
Result<LogicalDecision> linenAxes(const LogicalNames& names, const LogicalRules& rules);

/// NNX: the rules of the context and of the variable are one dictionary, and every name that it has is replaced; other names stay, as mesh
/// axes. No order, and no axis counts as taken.
///
/// Problems: MW1183 the same name with two targets in `context` and `local`.
/// Source: google/flax, flax/core/spmd.py (`composite_rules`, `from_sharding_rules`).
Result<LogicalDecision> nnxAxes(const LogicalNames& names, const LogicalRules& context, const LogicalRules& local = {});

/// The names of a parameter that is stacked over layers by a scan: the layers' axis `layerName` is inserted at dimension `at` (negative: from
/// the end of the longer list), as `nn.scan(.., variable_axes, metadata_params={PARTITION_NAME: layerName})` does.
/// Precondition: -rank - 1 <= at <= rank.
LogicalNames stackedNames(const LogicalNames& names, const std::string& layerName, std::int64_t at);

/// Takes the axes that the mesh has not out of a spec, as if they were of size 1, and gives them back. A decision comes first: rules that share such an
/// axis still exclude each other, as they do on the mesh that has all of them.
std::vector<std::string> dropAbsentAxes(JaxSpec& spec, const Mesh& mesh);

/// The rules of a program that many use, by a name.
struct LogicalRuleList {
    std::string name; ///< "maxtext"
    std::string title; ///< "MaxText's base.yml"
    std::vector<std::string> meshAxes; ///< all axes of the meshes that the rules are for, those that are not used having size 1
    LogicalRules rules;
};

/// The list of this name ("maxtext"); null when there is none. It lives as long as the program.
const LogicalRuleList* findLogicalRuleList(std::string_view name);
std::vector<std::string> logicalRuleListNames();

} // namespace meshwright
