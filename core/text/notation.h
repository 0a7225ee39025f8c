// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

// The small pieces of MLIR's notation, shared by the writer's files.

/// A string literal with MLIR's escapes: `"a\22b"`.
std::string quoted(std::string_view text);

/// `@name`, or `@"na me"` when it is not a bare identifier.
std::string symbolText(std::string_view name);

/// `tensor<64x256xf32>`.
std::string tensorText(const TensorType& type);

/// `<@mesh, [{"data"}, {}]>`, as after `#sdy.sharding`. A kind other than sum stands before the unreduced axes: `unreduced=max{"x"}`.
std::string shardingText(const TensorSharding& sharding, const std::vector<NamedMesh>& meshes);

/// `{"x", "y":(1)2}`.
std::string axisListText(const AxisRefs& axes, const Mesh& mesh);

/// The literal of a constant: `dense<0.000000e+00>`, a nested list, or for many elements a string of hexadecimal digits.
std::string denseText(const ConstantAttributes& constant);

/// Text that is kept, on one line, without comments and control characters.
std::string singleLine(std::string_view text);
/// The same, appended; blanks at the ends stay.
void appendSingleLine(std::string& out, std::string_view text);

/// The name of an attribute, in quotes when it is not a bare word.
std::string attributeKey(std::string_view name);

/// A dictionary of attributes; MLIR prints them ordered by their names.
class AttributeList {
public:
    void add(std::string name, std::string value) { m_entries.emplace_back(std::move(name), std::move(value)); }
    void add(const KeptAttributes& kept);
    /// An attribute without a value.
    void addUnit(std::string name) { m_entries.emplace_back(std::move(name), std::string()); }
    bool empty() const { return m_entries.empty(); }
    /// `{a = 1 : i64, b}`; `{}` when empty.
    std::string text() const;
    /// ` {a = 1 : i64, b}`, or nothing when empty.
    std::string optionalText() const { return empty() ? std::string() : " " + text(); }

private:
    std::vector<std::pair<std::string, std::string>> m_entries;
};

/// The names of enumerators in the text, and back.
const char* roleKeyword(Role role);
std::optional<Role> parseRoleKeyword(std::string_view text);
std::optional<Phase> parsePhaseKeyword(std::string_view text);
std::optional<ReduceKind> parseReduceKindKeyword(std::string_view text);

/// The StableHLO op that combines two elements: "add", "maximum" and so on.
OpKind combinerOf(ReduceKind kind);

/// The collective's axes when the text does not list them: what its dimensions or moves name, in that order.
AxisRefs impliedAxes(OpKind kind, const CollectiveAttributes& attributes);

/// "stablehlo.add", "chlo.erf_inv", "sdy.all_gather"; nothing for kinds without a form of their own (repeat, custom calls).
std::string dialectName(OpKind kind);

} // namespace meshwright
