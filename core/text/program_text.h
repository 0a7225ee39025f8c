// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"
#include "core/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// A program as MLIR text: StableHLO and Shardy's dialect in the forms that MLIR itself prints, so that other tools read it.
///
/// What those dialects have no place for is kept in attributes of our own: `mw.name`, `mw.role`, `mw.annotation` and `mw.phase`
/// of ops and arguments, `mw.origin` of a constraint, `mw.cause`, `mw.axes`, `mw.reduction`, `mw.sources`, `mw.pieces` and
/// `mw.groups` of collectives.
/// What a program keeps of the text that it was read from (KeptText and so on) is written as it stood.
/// Repeat is a counted `stablehlo.while` with `mw.carries` and `mw.stacked`; random bits and transfers between stages are
/// `stablehlo.custom_call @meshwright.random_bits`, `@meshwright.send` and `@meshwright.recv`. `mw.version` on the module says
/// that nothing is to be guessed: `readProgram(writeProgram(p))` is `p`, compacted, with floating constants rounded to their type.
/// Collectives in programs on shards change the local type, which Shardy's text cannot say: they carry `(operand) -> result`.
///
/// Preconditions: `verify(program)` finds no error; axes of collectives are of the mesh of the result's sharding (or mesh 0).
std::string writeProgram(const Program& program);

/// What each of a function's values is called in that text: `%arg0`, `%3`, `%5#1`; empty for values of dead ops.
std::vector<std::string> valueNames(const Program& program, const Function& function);

/// Where the ops and arguments of a program stand in its text.
struct ProgramPlaces {
    struct FunctionPlaces {
        std::vector<Place> ops; ///< of each op; of one in a function that was inlined, where it stands there
        std::vector<Place> arguments; ///< of the body: their types
    };
    std::vector<FunctionPlaces> functions;

    Place ofOp(std::size_t function, OpId op) const;
    /// Of its op, or of the argument; unknown for arguments of other blocks.
    Place ofValue(const Program& program, std::size_t function, ValueId value) const;
};

/// Reads MLIR text: what `writeProgram` writes, what JAX prints (`jax.jit(f).lower(...).as_text()`), and the generic form
/// `"stablehlo.add"(%0, %1) : (...) -> ...`. Ops that have no kind of their own are kept as they are (OpKind::Other); `warnings` get an
/// MW1331 for each name of which nothing is known. Attributes, locations and functions that are not used are kept too. Private functions
/// are inlined; counted loops become Repeat, slices by their counter its stacked operands and results; other loops are kept. In text
/// without `mw.version` arguments get their names from their locations or from a `%name` of the author's, and a sharding counts as the
/// user's annotation.
///
/// Problems, each with `file`, line and column, as many as can be found: MW1320 what was expected instead of what is there (also
/// truncated text), MW1321 an op that cannot even be kept, MW1322 a type that is not supported, MW1323 an undefined value, MW1324
/// a second definition, MW1325 a type that is not the one the op makes or takes, MW1326 a missing or wrong attribute, MW1327 wrong
/// constant data, MW1328 a loop that contradicts itself, MW1329 a call that cannot be inlined, MW1330 a sharding that does not fit;
/// MW1301 to MW1304 as the shape rules, MW1110 to MW1115 as `Mesh::create`.
Result<Program> readProgram(
    std::string_view text, const std::string& file, Problems* warnings = nullptr, ProgramPlaces* places = nullptr);

} // namespace meshwright
