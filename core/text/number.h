// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"

#include <cstdint>
#include <string>

namespace meshwright {

/// The bits of `value`, rounded to the nearest (ties to even) element of a floating type; too large values become infinite.
/// Precondition: isFloating(dtype).
std::uint64_t floatBits(double value, DType dtype);

/// The value that bits of a floating type stand for. Precondition: isFloating(dtype).
double floatFromBits(std::uint64_t bits, DType dtype);

/// A floating value as MLIR prints it: `1.000000e+00` where six digits say it all, else the shortest of its usual digits
/// (`0.333333343`, `9.99999974E-6`), else the bits (`0x7F800000`).
/// Source: llvm/llvm-project, mlir/lib/IR/AsmPrinter.cpp (printFloatValue) and llvm/lib/Support/APFloat.cpp (toString).
std::string floatText(double value, DType dtype);

/// Appends an element of an integer type (truth values as `true` and `false`), whose bits are the low ones of `value`.
void appendIntegerText(std::string& out, std::int64_t value, DType dtype);

} // namespace meshwright
