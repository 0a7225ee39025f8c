// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"

#include <span>
#include <string_view>

namespace meshwright {

/// A function of one real number that a kept op (OpKind::Other) applies to each element. One row here is all that such an op needs: it is
/// sharded as every element-wise op is, and runs, and has its derivative by what the row says.
struct ElementFunction {
    std::string_view name; ///< without its dialect: "atan"
    double (*value)(double);
    ValueId (*slope)(Builder& builder, ValueId x); ///< the derivative at x, of x's type; nullptr: none is known
};

std::span<const ElementFunction> elementFunctions();

/// The function of this op; nullptr for an op that is none.
const ElementFunction* elementFunction(const OtherAttributes& other);

} // namespace meshwright
