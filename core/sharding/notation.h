// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/sharding/jax_spec.h"
#include "core/sharding/positional_sharding.h"
#include "core/sharding/tensor_sharding.h"
#include "core/sharding/tile_assignment.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The ways in which people and programs write shardings.
enum class Notation : std::uint8_t {
    Jax, ///< `P('data', None)`
    JaxNamed, ///< `NamedSharding(mesh=Mesh('data': 4), spec=P('data', None))`
    JaxType, ///< `f32[8@data,4]`
    Hlo, ///< `{devices=[4,1]<=[4]}`
    HloNamed, ///< `{mesh['data'=4], [{'data'}, {}]}`
    Shardy, ///< `[{"data"}, {}]`
    DTensor, ///< `[Shard(0), Replicate()]`
    DTensorShort, ///< `S(0)R`
    Book, ///< `A[I_X, J]`
    Positional, ///< `PositionalSharding([[{TPU 0}] ..], shape=(4, 1))`
};

/// "jax", "named", "types", "hlo", "hlo-named", "sdy", "dtensor", "dtensor-short", "book", "positional": as users name them.
const char* notationName(Notation notation);
/// "JAX's PartitionSpec" and the like.
const char* notationTitle(Notation notation);
/// All of them, in order.
std::span<const Notation> allNotations();
/// Problems: MW1159 there is no notation of this name.
Result<Notation> notationOf(std::string_view name);

/// What a text alone may leave open.
struct SpellingContext {
    std::optional<Mesh> mesh = {}; ///< whose axes are meant; a mesh in the text goes before it
    std::optional<std::size_t> rank = {}; ///< of the array; a text may say less than that
};

/// A sharding that was read, and what else its text said.
struct ParsedSharding {
    Notation notation = Notation::Shardy;
    Mesh mesh = {};
    bool meshInvented = false; ///< no mesh was given: it has the axes that the tiles need, named axis_0 and so on
    TensorSharding sharding = {};
    std::vector<AxisType> axisTypes = {}; ///< of the mesh's axes; empty: not said, as if all were Auto
    std::string memoryKind = {}; ///< "device", "pinned_host"; empty: not said
    AxisRefs manual = {}; ///< axes over which the program itself distributes
    AxisRefs reduced = {}; ///< JAX's reduced axes: replicated, with cotangents that are partial sums
    std::optional<Shape> shape = {}; ///< of the array, where the notation states it
    std::string dtype = {}; ///< where the notation states it
    std::string arrayName = {}; ///< where the notation states it
    std::vector<std::string> dimNames = {}; ///< where the notation states them
};

/// Reads a sharding in whatever notation it is written; the text itself tells which.
///
/// Besides the notations above: `GSPMDSharding({..})`, `#sdy.sharding<@mesh, [..]>` with the name of a mesh or `mesh<["a"=2]>`, operations
/// on a positional sharding (`PositionalSharding(8).reshape(4, 2).replicate(1).T`), and specs as bare tuples or lists.
/// Problems: MW1158 the text is in none of the notations, MW1157 it names axes and no mesh is known; and those of the notation.
Result<ParsedSharding> parseSharding(std::string_view text, const SpellingContext& context = {});

/// A sharding in a notation, and what the text does not say although the sharding does: hints to propagation, such as openness.
struct Spelling {
    std::string text;
    std::vector<std::string> notes;
};

/// Writes a sharding in a notation.
///
/// Problems: MW1161 the meaning does not exist in the notation (parts of axes, partial sums, manual axes, a shape that is not known);
/// the message says why and what would help.
Result<Spelling> printSharding(const ParsedSharding& sharding, Notation notation);
Result<Spelling> printSharding(const TensorSharding& sharding, const Mesh& mesh, Notation notation);

/// Reads the printed form of a positional sharding, or the operations that make one.
/// Problems: MW1134 the text is not a positional sharding, and those of the operations.
Result<PositionalSharding> parsePositional(std::string_view text);

} // namespace meshwright
