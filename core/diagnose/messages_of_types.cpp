// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/sharding/partition_spec.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The bracketed texts of a list from `from` on: `P('x', None), P('y',).` or `(8, 128), (16, 128).`, as they stand.
std::vector<std::string> listedAt(const MessagePart& part, std::size_t from)
{
    constexpr std::size_t kMost = 4;
    constexpr std::size_t kFurthest = 40; ///< to the next one
    const std::string_view text = part.text();
    std::vector<std::string> items;
    while (items.size() < kMost) {
        const std::size_t open = text.find('(', from);
        const auto bracketed = open == std::string_view::npos ? std::nullopt : bracketedAt(text, open);
        if (!bracketed || open > from + kFurthest)
            break;
        const std::size_t end = open + bracketed->size();
        items.push_back(clause(part, items.empty() ? open : from, end));
        std::string& item = items.back();
        item.erase(0, item.find_first_not_of(", "));
        if (item.starts_with("and "))
            item.erase(0, 4);
        for (const std::string_view name : {"PartitionSpec", "P"}) {
            if (item.starts_with(name))
                item.erase(0, name.size());
        }
        from = end;
        if (from >= text.size() || (text[from] != ',' && text.substr(from, 3) != "and"))
            break;
    }
    return items;
}

/// The word right before a position: the op that a message of JAX begins with.
std::string wordBefore(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 200;
    const std::string before = clause(part, at > kMost ? at - kMost : 0, at);
    const std::string_view text = trimmed(before);
    const std::size_t space = text.find_last_of(" :`'");
    return std::string(space == std::string_view::npos ? text : text.substr(space + 1));
}

constexpr const char* kExplicit = "In explicit mode a value's sharding is part of its type, and JAX does not guess: ";

/// "add got incompatible shardings for broadcasting: P('x', None), P('y', None)."
bool explainOperands(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string op = wordBefore(part, at);
    if (part.find("gotincompatibleshardings", at).value_or(at + 1) == at)
        out.fact("op", op);
    const auto list = part.after("broadcasting:", at);
    const auto got = list ? list : part.after("got", at);
    const std::vector<std::string> specs = got ? listedAt(part, *got) : std::vector<std::string>();
    for (std::size_t i = 0; i < specs.size(); ++i)
        out.fact(fmt::format("operand {}", i), "P" + specs[i]);
    out.meaning = std::string(kExplicit)
        + "operands that go together element by element must have the same sharding, or one of them none. These are split in "
          "different ways, so one has to move, and you choose which one.";
    out.remedy("Bring the smaller operand into the other's layout first:",
        fmt::format("b = jax.sharding.reshard(b, P{})\n", specs.empty() ? "('data', None)" : specs.front()));
    out.remedy("If the layouts were never meant, see where the operand gets its own: jax.typeof(b) prints it.");
    return true;
}

/// "dot_general requires contracting dimensions to have consistent sharding, got ('data',) and ('model',)."
bool explainContraction(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("op", wordBefore(part, at));
    const auto got = part.after("got", at);
    const std::vector<std::string> specs = got ? listedAt(part, *got) : std::vector<std::string>();
    for (std::size_t i = 0; i < specs.size(); ++i)
        out.fact(fmt::format("operand {}", i), "P" + specs[i]);
    out.meaning = std::string(kExplicit)
        + "a product adds up over the contracting dimension, of which each device needs the same piece of both operands. Here "
          "they are "
          "split over different axes.";
    out.remedy("Bring the smaller operand into the other's layout along that dimension:",
        specs.empty() ? std::string("b = jax.sharding.reshard(b, P('data', None))\n")
                      : fmt::format("b = jax.sharding.reshard(b, P{})  # others as they are\n", specs.front()));
    out.remedy("Or make that dimension whole, and split another one:", "a = jax.sharding.reshard(a, P('data', None))\n");
    return true;
}

/// "mul got incompatible shapes for broadcasting: (8, 128), (16, 128)."
bool explainShapes(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("op", wordBefore(part, at));
    const auto list = part.after("broadcasting:", at);
    const auto got = list ? list : part.after("got", at);
    std::vector<Shape> shapes;
    for (const std::string& text : got ? listedAt(part, *got) : std::vector<std::string>()) {
        std::string squeezed = text;
        std::erase(squeezed, ' ');
        if (const auto shape = shapeIn(squeezed))
            shapes.push_back(*shape);
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
        out.fact(fmt::format("operand {}", i), shapeText(shapes[i]));
    out.meaning = "Two arrays that go together dimension by dimension have different sizes.";
    if (shapes.size() == 2 && shapes[0].size() == shapes[1].size()) {
        for (std::size_t dim = 0; dim < shapes[0].size(); ++dim) {
            const std::int64_t large = std::max(shapes[0][dim], shapes[1][dim]);
            const std::int64_t small = std::min(shapes[0][dim], shapes[1][dim]);
            if (small < 2 || large == small || large % small != 0)
                continue;
            out.meaning += fmt::format(" In dimension {} one is {} times the other: inside a shard_map that is a piece beside a "
                                       "whole array, where the mesh axis that splits it has size {}.",
                dim, large / small, large / small);
            out.remedy("Give both the same entry in in_specs; or gather the piece:",
                fmt::format("b = jax.lax.all_gather(b, 'data', axis={}, tiled=True)\n", dim));
            break;
        }
    }
    out.remedy("Print both shapes where they are made. Under jit arrays have their whole shapes, inside shard_map those of one "
               "device's piece.");
    return true;
}

/// "This reshape is not supported. Please specify the sharding of the output .. Got operand shape: (4, 6, 8), new sizes: (24, 8) .."
bool explainReshape(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto brackets = [&](const char* words) {
        const auto list = part.bracketed(words, at);
        const auto shape = list ? shapeIn(*list) : std::nullopt;
        return shape ? shapeText(*shape) : std::string();
    };
    out.fact("operand", brackets("operandshape:"));
    out.fact("new sizes", brackets("newsizes:"));
    return true;
}

/// "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing .."
bool explainIndexing(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const bool isUpdate = part.find("scatterupdate", at).has_value();
    if (const auto operands = part.after("got", at))
        out.fact("arrays", clause(part, *operands, *operands + 240));
    out.meaning = std::string(kExplicit)
        + (isUpdate ? "an update at indices does not determine the sharding of its result, because the array that is indexed, "
                      "the indices or "
                      "the updates are split."
                    : "a look-up does not determine the sharding of its result, because the indexed dimension of the table or "
                      "the indices "
                      "are split. A table that is split by rows, for example, gives each device a part of the rows that were "
                      "asked for.");
    out.remedy("Give the sharding of the result:",
        isUpdate ? "table = table.at[ids].add(rows, out_sharding=P('model', None))\n"
                 : "rows = table.at[ids].get(out_sharding=P('data', None, None))\n");
    out.remedy("Or make the indexed dimension whole first:", "table = jax.sharding.reshard(table, P(None, 'model'))\n");
    return true;
}

/// "slicing on sharded dims where out dim (3) is not divisible by mesh axes (4) with spec (x, y) is not implemented."
bool explainResized(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("op", wordBefore(part, at));
    const auto size = part.integer("outdim(", at);
    const auto pieces = part.integer("meshaxes(", at);
    if (size && pieces) {
        out.fact("size", fmt::format("{} in {} pieces", *size, *pieces));
    }
    out.meaning = std::string(kExplicit)
        + "the op changes the size of a dimension that is split, and the new size is not divisible by the number of pieces.";
    out.remedy("Make that dimension whole first, and split the result again:", "x = jax.sharding.reshard(x, P(None, None))\n");
    if (size && pieces && *pieces > 1)
        out.remedy(fmt::format("Or let the new size be {}.", divisibleSizesText(*size, *pieces)));
    return true;
}

bool explainTreePrefix(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto given = part.integer("tupleorlistoflength", at);
    const auto wanted = part.integer("argstupleoflength", at);
    if (given && wanted)
        out.fact("entries", fmt::format("{} for {} arguments", *given, *wanted));
    return true;
}

bool explainNoRule(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kMostName = 60;
    const auto end = part.find("isnotimplemented", at);
    const auto name = part.after("shardingrulefor", at);
    if (!end || !name || *end > *name + kMostName)
        return false;
    out.fact("op", clause(part, *name, *end));
    return true;
}

} // namespace

std::span<const MessageKind> typeMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"operand-shardings-differ", "JAX", "operands are sharded in different ways",
            {"gotincompatibleshardingsforbroadcasting", "alloperandsshouldhavethesamesharding",
                "selectcasesmusthavethesameshardings", "operandshardingmustbeequaltoupdatesharding",
                "rhsbatchdimensionstohavethesamesharding", "rhsbatchdimensionstohavetheconsistentsharding"},
            explainOperands, 300},
        {"contracted-shardings-differ", "JAX", "the contracted dimension is split in different ways",
            {"requirescontractingdimensionstohaveconsistentsharding"}, explainContraction, 300},
        {"operand-shapes-differ", "JAX", "the shapes of two arrays do not fit",
            {"gotincompatibleshapesforbroadcasting", "requirescontractingdimensionstohavethesameshape"}, explainShapes},
        {"reshape-of-shards", "JAX", "a reshape across shards", {"thisreshapeisnotsupported.pleasespecifythesharding"},
            explainReshape, 300, 0,
            "In explicit mode a value's sharding is part of its type, and JAX does not guess: a reshape puts dimensions "
            "together, or cuts them, so that the pieces of the operand are not pieces of the result. Only a split of the first "
            "of the dimensions that become one, and axes whose sizes divide the new dimensions in turn, go through by "
            "themselves.",
            {{"Give the sharding of the result; JAX moves the data:",
                 "y = jnp.reshape(x, sizes, out_sharding=P('data', None))\n"},
                {"Or make the dimensions whole before the reshape:", "x = jax.sharding.reshard(x, P('data', None, None))\n"}}},
        {"indexing-of-shards", "JAX", "indexing whose result has several possible shardings",
            {"toprovideoutputpartitionspecforthe", "outshardingcouldnotberesolvedunambiguously"}, explainIndexing, 300},
        {"sharded-dimension-resized", "JAX", "a split dimension changes its size", {"onshardeddimswhereoutdim"}, explainResized,
            300},
        {"jax-meshes-differ", "JAX", "two meshes in one computation",
            {"meshforallinputsshouldbeequal", "shouldmatchtheavalmesh", "shouldmatchthemeshpassedto",
                "shouldmatchthemeshofsharding"},
            nullptr, 300, 240,
            "The arrays of one computation, the mesh in use (jax.set_mesh) and that of a shard_map must be one and the same "
            "mesh: the same axes with the same sizes in the same order. Two meshes over the same devices with other names or "
            "another order are different ones.",
            {{"Make one mesh and use it everywhere:", "mesh = jax.make_mesh((4, 2), ('data', 'model'))\njax.set_mesh(mesh)\n"},
                {"Or move the array over first:", "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n"}}},
        {"axis-type", "JAX", "a mesh axis of another type than the call wants", {"axisnamesthatareoftype"}, nullptr, 300, 200,
            "Each axis of a mesh has a type: Auto axes are the compiler's (with_sharding_constraint hints at them), Explicit "
            "ones are part of every value's type (reshard, out_sharding), Manual ones are shard_map's. The call and the types of "
            "the axes that its spec names do not fit.",
            {{"For Auto axes:", "x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P('data')))\n"},
                {"For Explicit axes:", "x = jax.sharding.reshard(x, P('data'))\n"},
                {"Or make the mesh with the types that the code wants:",
                    "t = (jax.sharding.AxisType.Auto,) * 2\nmesh = jax.make_mesh((4, 2), ('data', 'model'), axis_types=t)\n"}}},
        {"argument-in-other-layout", "JAX", "an argument is not sharded as the function was compiled for",
            {"doesnotmatchtheshardingontherespectivearg", "thesharding(s)thecomputationwascompiledwith"}, nullptr, 600, 260,
            "The function was compiled for arguments in certain layouts (in_shardings, or those of the first call of a compiled "
            "object), and an argument has another one. JAX moves no committed array by itself.",
            {{"Move the argument to the layout that the function has:",
                 "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n"},
                {"Or leave in_shardings out: jit then takes the layouts that its arguments have. An argument that drifts is "
                 "often a state whose new layout differs from its old one; give it out_shardings."}}},
        {"shardings-tree", "JAX", "not one sharding for each argument", {"specificationmustbeatreeprefix"}, explainTreePrefix,
            600, 0,
            "in_shardings and out_shardings are one sharding for everything, or a tuple with one entry for each positional "
            "argument (result), where an entry is a sharding for all arrays of that argument or a tree of its form.",
            {{"Write one entry for each argument:", "f = jax.jit(f, in_shardings=(state_shardings, batch_sharding))\n"},
                {"Build trees of shardings from the values themselves:",
                    "shardings = jax.tree.map(lambda x: NamedSharding(mesh, P()), state)\n"}}},
        {"no-type-rule", "JAX", "an op without a rule in explicit mode", {"shardingrulefor"}, explainNoRule, 0, 0,
            "In explicit mode a value's sharding is part of its type, and JAX does not guess: for this op it has no rule that "
            "derives the result's sharding from the operands'.",
            {{"Let the compiler choose inside, and give the sharding of the result:",
                "f = jax.sharding.auto_axes(f)\ny = f(x, out_sharding=P('data', None))\n"}}},
    };
    return kKinds;
}

} // namespace meshwright
