// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace meshwright {

namespace {

/// A name of JAX that is gone or has moved, and what one writes today.
/// Source: jax-ml/jax, CHANGELOG.md and the release notes of the versions named.
struct OldName {
    const char* module; ///< "jax.sharding"
    const char* name; ///< "PositionalSharding"
    const char* fate; ///< a sentence
    const char* remedy; ///< a sentence that ends in a colon
    const char* code;
};

constexpr OldName kNames[] = {
    {"jax.sharding", "PositionalSharding", "JAX 0.6.0 deprecated it and 0.7.0 removed it: NamedSharding does all that it did.",
        "Give the dimensions of its device array names, and say for each dimension of the array which of them splits it; a "
        "dimension that was "
        "replicated (`replicate`) gets None:",
        "# sharding = PositionalSharding(devices).reshape(4, 2).replicate(1)\n"
        "auto = (jax.sharding.AxisType.Auto,) * 2\n"
        "mesh = jax.make_mesh((4, 2), ('x', 'y'), axis_types=auto)\n"
        "sharding = jax.NamedSharding(mesh, jax.P('x', None))\n"},
    {"jax.sharding", "GSPMDSharding",
        "JAX 0.6.0 deprecated it and 0.7.0 removed it: since then Shardy is the default partitioner.",
        "Write the tile string as a spec on a mesh; `meshwright convert` translates it:",
        "meshwright convert '{devices=[4,2]<=[8]}' --to jax --mesh x=4,y=2\n"},
    {"jax.sharding", "OpShardingSharding", "It was an early name of GSPMDSharding, which is gone as well since JAX 0.7.0.",
        "Use NamedSharding:", "sharding = jax.NamedSharding(mesh, jax.P('x', None))\n"},
    {"jax.sharding", "MeshPspecSharding", "It is called NamedSharding now.",
        "Use the new name, the arguments are the same:", "sharding = jax.NamedSharding(mesh, jax.P('x', None))\n"},
    {"jax.sharding", "XLACompatibleSharding", "JAX 0.4.29 deprecated it: every Sharding is one.",
        "Use its base class:", "isinstance(s, jax.sharding.Sharding)\n"},
    {"jax.sharding", "PmapSharding",
        "jax.pmap is made of jit and shard_map since JAX 0.8.0, and gives arrays with a NamedSharding.",
        "Split the leading dimension over a mesh with one axis:",
        "auto = (jax.sharding.AxisType.Auto,)\n"
        "mesh = jax.make_mesh((jax.device_count(),), ('i',), axis_types=auto)\n"
        "sharding = jax.NamedSharding(mesh, jax.P('i'))\n"},
    {"jax.sharding", "use_mesh", "It is called jax.set_mesh now, which works as a context manager and by itself.",
        "Use the new name:", "with jax.set_mesh(mesh):\n    y = step(state, batch)\n"},
    {"jax.experimental", "maps", "JAX 0.4.26 deprecated the module with xmap in it, and later versions do not have it.",
        "xmap's named axes become a mesh's, and its in_axes become specs:",
        "# f = xmap(f, in_axes=['i', ...], axis_resources={'i': 'data'})\n"
        "f = jax.shard_map(f, mesh=mesh, in_specs=jax.P('data'),\n"
        "                  out_specs=jax.P('data'))\n"
        "from jax.sharding import Mesh  # jax.experimental.maps.Mesh\n"},
    {"jax.experimental.maps", "xmap", "JAX 0.4.26 deprecated it, and later versions do not have it.",
        "Use shard_map with a mesh's axes in the place of named ones:",
        "# f = xmap(f, in_axes=['i', ...], axis_resources={'i': 'data'})\n"
        "f = jax.shard_map(f, mesh=mesh, in_specs=jax.P('data'),\n"
        "                  out_specs=jax.P('data'))\n"},
    {"jax.experimental.maps", "Mesh", "The module is gone; the mesh is in jax.sharding.",
        "Import it from there:", "from jax.sharding import Mesh\n"},
    {"jax.experimental", "shard_map", "It is jax.shard_map now; JAX 0.8.0 deprecated the experimental module.",
        "Call the new one. Its arguments go by name, check_rep is called check_vma, and `auto` became axis_names, which lists "
        "the axes that are "
        "manual instead:",
        "# shard_map(f, mesh, in_specs, out_specs, check_rep=False,\n"
        "#           auto={'model'})\n"
        "f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,\n"
        "                  axis_names={'data'}, check_vma=False)\n"},
    {"jax.experimental", "shard", "JAX 0.7.0 moved what was in it to jax.sharding.",
        "Import from there:", "from jax.sharding import reshard, auto_axes, explicit_axes\n"},
    {"jax.experimental.pjit", "with_sharding_constraint", "It is a function of jax.lax.", "Import it from there:",
        "sharding = jax.NamedSharding(mesh, jax.P('data', None))\n"
        "x = jax.lax.with_sharding_constraint(x, sharding)\n"},
    {"jax.experimental", "PartitionSpec", "It is in jax.sharding, and since JAX 0.7.0 also jax.P.",
        "Import it from there:", "from jax.sharding import PartitionSpec as P\n"},
    {"jax.experimental.pjit", "PartitionSpec", "It is in jax.sharding, and since JAX 0.7.0 also jax.P.",
        "Import it from there:", "from jax.sharding import PartitionSpec as P\n"},
    {"jax.interpreters", "sharded_jit", "It is gone: jax.jit takes shardings.",
        "Give them to jit:", "f = jax.jit(f, in_shardings=jax.NamedSharding(mesh, jax.P('x')))\n"},
    {"jax.experimental", "global_device_array", "GlobalDeviceArray is gone: every jax.Array may span processes.",
        "Make the array from what each process has:", "x = jax.make_array_from_process_local_data(sharding, local_batch)\n"},
    {"jax.experimental.global_device_array", "GlobalDeviceArray", "It is gone: every jax.Array may span processes.",
        "Make the array from what each process has:", "x = jax.make_array_from_process_local_data(sharding, local_batch)\n"},
    {"jax", "shard_map", "This version of JAX is older than jax.shard_map.",
        "Update JAX, or import the old function, whose check_vma is check_rep:",
        "from jax.experimental.shard_map import shard_map\n"},
    {"jax", "P", "jax.P came with JAX 0.7.0.",
        "Update JAX, or import the long name:", "from jax.sharding import PartitionSpec as P\n"},
    {"jax", "set_mesh", "This version of JAX is older than jax.set_mesh.",
        "Update JAX, or enter the mesh as older versions do:", "with mesh:\n    y = step(state, batch)\n"},
    {"jax", "linear_util", "It was moved to jax.extend, for libraries built on JAX's inside.",
        "Import it from there:", "from jax.extend import linear_util\n"},
    {"jax", "device_put_sharded", "JAX 0.8.1 deprecated it.", "Stack the pieces, and split the new dimension over a mesh:",
        "auto = (jax.sharding.AxisType.Auto,)\n"
        "mesh = jax.make_mesh((len(shards),), ('i',), axis_types=auto)\n"
        "x = jax.device_put(jnp.stack(shards), jax.NamedSharding(mesh, jax.P('i')))\n"},
    {"jax", "device_put_replicated", "JAX 0.8.1 deprecated it.",
        "Place the array with a spec that names no axis:", "x = jax.device_put(x, jax.NamedSharding(mesh, jax.P()))\n"},
    {"jax", "tree_map", "It is in the module jax.tree; JAX 0.4.26 deprecated the old name.", "Use the new one:",
        "whole = jax.NamedSharding(mesh, jax.P())\n"
        "shardings = jax.tree.map(lambda x: whole, state)\n"},
};

/// An argument of a function that has another name now.
struct OldArgument {
    const char* name;
    const char* function; ///< that takes it, in the message too
    const char* fate;
    const char* remedy;
    const char* code;
};

constexpr OldArgument kArguments[] = {
    {"check_rep", "shard_map", "jax.shard_map calls it check_vma.", "Use the new name, the values mean the same:",
        "f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,\n"
        "                  check_vma=False)\n"},
    {"check_vma", "shard_map", "jax.experimental.shard_map and older versions of JAX call it check_rep.",
        "Call jax.shard_map, or use the old name with the old function:",
        "f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,\n"
        "                  check_vma=False)\n"},
    {"auto", "shard_map",
        "jax.shard_map has axis_names instead, which lists the axes that are manual; JAX 0.8.0 took `auto` from the old function "
        "too.",
        "Name all other axes of the mesh:",
        "# auto={'model'} on a mesh ('data', 'model')\n"
        "f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,\n"
        "                  axis_names={'data'})\n"},
    {"axis_names", "shard_map", "jax.experimental.shard_map has `auto` instead, which lists the axes that are not manual.",
        "Call jax.shard_map:",
        "f = jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,\n"
        "                  axis_names={'data'})\n"},
    {"in_axis_resources", "jit", "pjit and jit call it in_shardings.", "Give shardings, or specs under jax.set_mesh(mesh):",
        "f = jax.jit(f, in_shardings=jax.NamedSharding(mesh, jax.P('data')))\n"},
    {"out_axis_resources", "jit", "pjit and jit call it out_shardings.", "Give shardings, or specs under jax.set_mesh(mesh):",
        "f = jax.jit(f, out_shardings=jax.NamedSharding(mesh, jax.P('data')))\n"},
    {"axis_resources", "", "with_sharding_constraint calls it shardings.", "Give it as the second argument:",
        "sharding = jax.NamedSharding(mesh, jax.P('data'))\n"
        "x = jax.lax.with_sharding_constraint(x, sharding)\n"},
    {"axis_types", "make_mesh", "This version of JAX is older than axis types (0.5.0): all axes are Auto.",
        "Leave it out, or use a newer JAX:", "mesh = jax.make_mesh((4, 2), ('data', 'model'))\n"},
};

/// The ways in which Python and JAX say that a name is gone.
std::vector<std::string> phrasesOf(const OldName& old)
{
    const std::string name = lowerCase(old.name);
    const std::string full = lowerCase(old.module) + "." + name;
    std::vector<std::string> phrases{"hasnoattribute'" + name + "'", "cannotimportname'" + name + "'",
        "nomodulenamed'" + full + "'", "nomodulenamed'" + full + "."};
    for (const char* what : {"wasdeprecated", "isdeprecated", "wasremoved", "hasbeenremoved", "hasbeendeprecated"})
        phrases.push_back(full + what);
    return phrases;
}

std::string phraseOf(const OldArgument& old)
{
    return fmt::format("unexpectedkeywordargument'{}'", old.name);
}

/// Keeps the words of kinds, which are plain pointers.
std::vector<const char*> kept(std::vector<std::string> phrases)
{
    static std::deque<std::string> texts;
    std::vector<const char*> words;
    for (std::string& phrase : phrases)
        words.push_back(texts.emplace_back(std::move(phrase)).c_str());
    return words;
}

/// The message's own line, in small letters and without white space.
std::string_view lineOf(const MessagePart& part, std::size_t at)
{
    const LogText& log = part.log();
    const std::size_t begin = log.lineBegin(part.begin() + at);
    return std::string_view(log.lower()).substr(begin, log.lineEnd(part.begin() + at) - begin);
}

/// True when the line speaks of the name's module, or names none.
bool isOfModule(std::string_view line, const OldName& old)
{
    for (const std::string_view before : {"module'", "from'"}) {
        const std::size_t at = line.find(before);
        if (at == std::string_view::npos)
            continue;
        const std::string_view rest = line.substr(at + before.size());
        return rest.substr(0, rest.find('\'')) == lowerCase(old.module);
    }
    return line.find("jax") != std::string_view::npos;
}

bool explainOldName(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string_view text = std::string_view(part.log().lower()).substr(part.begin() + at);
    const std::string_view line = lineOf(part, at);
    for (const OldName& old : kNames) {
        const std::vector<std::string> phrases = phrasesOf(old);
        const bool isMeant
            = std::any_of(phrases.begin(), phrases.end(), [&](const std::string& p) { return text.starts_with(p); });
        if (!isMeant || !isOfModule(line, old))
            continue;
        out.fact("name", fmt::format("{}.{}", old.module, old.name));
        out.meaning = fmt::format("The program was written for another version of JAX. {}", old.fate);
        out.remedy(old.remedy, old.code);
        return true;
    }
    return false;
}

bool explainOldArgument(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string_view text = std::string_view(part.log().lower()).substr(part.begin() + at);
    const std::string_view line = lineOf(part, at);
    for (const OldArgument& old : kArguments) {
        if (!text.starts_with(phraseOf(old)) || line.find(old.function) == std::string_view::npos)
            continue;
        out.fact("argument", old.name);
        out.meaning = fmt::format("The call was written for another version of JAX. {}", old.fate);
        out.remedy(old.remedy, old.code);
        return true;
    }
    return false;
}

} // namespace

std::span<const MessageKind> nameMessageKinds()
{
    static const std::vector<MessageKind> kKinds = [] {
        std::vector<std::string> names;
        for (const OldName& old : kNames) {
            for (std::string& phrase : phrasesOf(old)) {
                if (std::find(names.begin(), names.end(), phrase) == names.end())
                    names.push_back(std::move(phrase));
            }
        }
        std::vector<std::string> arguments;
        for (const OldArgument& old : kArguments)
            arguments.push_back(phraseOf(old));
        std::sort(arguments.begin(), arguments.end());
        arguments.erase(std::unique(arguments.begin(), arguments.end()), arguments.end());
        return std::vector<MessageKind>{
            {"old-name", "JAX", "a name that JAX has removed or moved", kept(std::move(names)), explainOldName},
            {"old-argument", "JAX", "an argument that has another name now", kept(std::move(arguments)), explainOldArgument},
            {"axis-types-default", "JAX", "the default type of mesh axes changes",
                {"thedefaultaxis_typeswillchange", "thedefaultaxistypeswillchange"}, nullptr, 0, 0,
                "Without axis_types, jax.make_mesh makes Auto axes up to JAX 0.8 and Explicit ones from 0.9.0 on. On Auto axes "
                "the compiler chooses how values inside jit are sharded, and constraints guide it; on Explicit axes a value's "
                "sharding is part of its type, and JAX asks where it would have to guess.",
                {{"To keep the program as it is, say Auto:",
                     "auto = (jax.sharding.AxisType.Auto,) * 2\nmesh = jax.make_mesh((4, 2), ('data', 'model'), "
                     "axis_types=auto)\n"},
                    {"To move to explicit mode, say Explicit, and see beforehand which ops will ask:",
                        "explicit = (jax.sharding.AxisType.Explicit,) * 2\nmesh = jax.make_mesh((4, 2), ('data', 'model'), "
                        "axis_types=explicit)\nmeshwright propagate program.mlir --mode explicit\n"}}},
        };
    }();
    return kKinds;
}

} // namespace meshwright
