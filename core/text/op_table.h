// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// How an op of the text is written, where it is not in the generic form.
enum class OpSyntax : std::uint8_t { Items, Constant, Reduce, While, Return, Collective };

/// True for the ops that can be read, under their full names.
bool isReadableOp(std::string_view name);
std::vector<std::string> readableOps();

OpSyntax opSyntax(std::string_view name);

/// The kind that a name stands for when the op is one of ours: `stablehlo.add`, `chlo.erf_inv`, `sdy.all_gather`.
std::optional<OpKind> opKindOf(std::string_view name);

/// The name of an attribute that is read somewhere, as a view that lives for ever; empty for all others, which are skipped.
std::string_view attributeName(std::string_view name);

} // namespace meshwright
