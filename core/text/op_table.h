// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// How an op of the text is written, where it is not in the generic form.
enum class OpSyntax : std::uint8_t { Items, Constant, Reduce, While, Return, Collective, Computation };

/// True for the ops whose own form can be read, under their full names. All others are kept as they stand.
bool isReadableOp(std::string_view name);
std::vector<std::string> readableOps();

OpSyntax opSyntax(std::string_view name);

/// The kind that a name stands for when the op is one of ours: `stablehlo.add`, `chlo.erf_inv`, `sdy.all_gather`.
std::optional<OpKind> opKindOf(std::string_view name);

/// True for attributes that are read from the ops that have a kind of their own; their others are kept as they stand.
bool isReadAttribute(std::string_view name);

/// What an enumerator of an op names, and its words.
struct Enumerators {
    const char* what = ""; ///< "a kind of Fourier transform"
    std::vector<std::string_view> words;
};

/// Those of an attribute that is an enumerator, or a list of such, under its name in either form of the op; null for all others.
const Enumerators* enumeratorsOf(std::string_view op, std::string_view attribute);

/// True for attributes that belong to values and phases, whatever op they stand at.
bool isNote(std::string_view name);

} // namespace meshwright
