// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diagnose/explain_message.h"
#include "core/diagnose/log_text.h"
#include "core/sharding/jax_spec.h"

#include <span>

/// What the kinds of messages share; no face to others.
namespace meshwright {

/// One kind of message: the words by which it is known, and what is said of it.
struct MessageKind {
    const char* kind;
    const char* source;
    const char* title;
    /// Any of these, without white space and in small letters.
    std::vector<const char*> words;
    /// Adds what the message itself says. `at` is where the words are in `part`. False: it is no such message after all. Null: nothing to add.
    bool (*explain)(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out) = nullptr;
    std::size_t reach = 0; ///< how far behind its words, at most, the message goes on with words of its own or of a like kind
    std::size_t says = 0; ///< so much of the message, from its words on, is the fact "says"
    const char* meaning = ""; ///< where it is the same for all messages of the kind, as are the ways out
    std::vector<Remedy> remedies = {};
    bool wholeLine = false; ///< the words are all there is in the line
};

/// The kinds, the more telling ones first: of two in one line the first counts.
std::span<const MessageKind> layoutMessageKinds(); ///< JAX's, XLA's and Shardy's of shardings
std::span<const MessageKind> typeMessageKinds(); ///< JAX's of the types that ops make of their operands
std::span<const MessageKind> deviceMessageKinds(); ///< of devices and processes
std::span<const MessageKind> degreeMessageKinds(); ///< of parallel degrees, sizes of meshes and batches that do not go together
std::span<const MessageKind> memoryMessageKinds();
std::span<const MessageKind> checkpointMessageKinds(); ///< of arrays that a checkpoint has in another form
std::span<const MessageKind> torchMessageKinds();
std::span<const MessageKind> nameMessageKinds(); ///< of names and arguments that other versions of JAX have

/// The message with spaces from its words on, for facts: up to `behind`, or 300 characters.
std::string clause(const MessagePart& part, std::size_t from, std::size_t to);

/// An array's sharding as a message of JAX names it.
struct NamedInMessage {
    Mesh mesh;
    JaxSpec spec;
};
/// The first `NamedSharding(mesh=Mesh('x': 4), spec=P('x'))` from `from` on, in the form of any version of JAX.
std::optional<NamedInMessage> namedShardingIn(const MessagePart& part, std::size_t from = 0);

/// Where the message whose words are at `at` begins: behind "ValueError:" or the like, also where a terminal broke the line since, or with its line.
std::size_t beginOf(const MessagePart& part, std::size_t at);

/// The meshes from `from` on, at most two, whatever form JAX gives them; `at` is where each begins.
struct MeshInMessage {
    std::size_t at = 0;
    TypedMesh typed;
};
std::vector<MeshInMessage> meshesIn(const MessagePart& part, std::size_t from);

/// The mesh that shard_map's messages name: "The mesh given has shape (4, 2) with corresponding axis names ('i', 'j')."
std::optional<Mesh> meshGiven(const MessagePart& part, std::size_t from);

/// The axes that the line at `at` and those behind it name.
struct AxesInMessage {
    std::vector<std::string> names; ///< of the first mesh in its order, else as they appear in specs and types
    std::optional<Mesh> mesh; ///< where the message has a whole mesh
};
AxesInMessage axesIn(const MessagePart& part, std::size_t at);

/// That the reader's mesh is not the message's: "a=16 has 16 devices, and the message 8: it is not used".
std::string meshDisagrees(const Mesh& given, std::int64_t devices);

/// Code whose examples name the axes 'data' and 'model', with the given axes instead; those of the two that are among the given ones stay.
std::string withAxes(std::string code, const AxesInMessage& axes);

/// `(8, 3)` or `[8,3]` as a shape.
std::optional<Shape> shapeIn(std::string_view bracketed);
/// The type that `f32[16,16]` or `float32[16,16]` at the end of a text or at `at` is.
std::optional<TensorType> typeAt(std::string_view text, std::size_t at);
/// "f32[16,16] (1.00 KiB)"
std::string typeFact(const TensorType& type);

/// The spec without the axes that keep it from splitting dimension `dim` evenly; the minor ones go first.
PartitionSpec withoutAxesOf(const PartitionSpec& spec, std::size_t dim, std::int64_t size, const Mesh& mesh);
/// Our spec, unconstrained dimensions as whole ones.
PartitionSpec placedSpec(const JaxSpec& spec);

} // namespace meshwright
