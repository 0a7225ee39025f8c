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

/// The first axis of the type right behind the words: model of "operand=ShapedArray(float32[32000@model,512])"; `otherwise` without one.
std::string axisOfType(const MessagePart& part, std::string_view words, std::size_t from, const char* otherwise)
{
    const auto start = part.after(words, from);
    const std::size_t end = start ? part.text().find(']', *start) : std::string_view::npos;
    const auto sign = start ? part.find("@", *start) : std::nullopt;
    if (end == std::string_view::npos || !sign || *sign > end)
        return otherwise;
    const std::string axis(part.name(part.find("@(", *sign) == sign ? "@(" : "@", *sign));
    return axis.empty() ? otherwise : axis;
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
    const std::string ofTable = axisOfType(part, "operand=", at, "model");
    const std::string ofIndices = axisOfType(part, "indices=", at, "data");
    out.remedy("Give the sharding of the result:",
        isUpdate ? fmt::format("table = table.at[ids].add(rows, out_sharding=P('{}', None))\n", ofTable)
                 : fmt::format("rows = table.at[ids].get(out_sharding=P('{}', None, None))\n", ofIndices));
    out.remedy("Or make the indexed dimension whole first:",
        fmt::format("table = jax.sharding.reshard(table, P(None, '{}'))\n", ofTable));
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

// ---- two meshes ----------------------------------------------------------------------------------------------------------------

/// Whose mesh it is that begins at a position.
std::string ownerOf(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 40;
    const std::string before = lowerCase(part.text().substr(at - std::min(at, kMost), std::min(at, kMost)));
    for (const auto& [words, owner] : {std::pair("contextmesh", "in use"), {"avalmesh", "of the array"},
             {"shard_map", "of shard_map"}, {"meshofsharding", "of the sharding"}, {"anothermesh:", "another"}}) {
        if (before.find(words) != std::string::npos)
            return owner;
    }
    return "one";
}

/// What two meshes differ in.
std::string differenceOf(const TypedMesh& a, const TypedMesh& b)
{
    std::vector<std::string> first = a.mesh.axisNames();
    std::vector<std::string> second = b.mesh.axisNames();
    if (a.mesh.axes() == b.mesh.axes())
        return a.types == b.types ? "Their axes agree, so their devices or their order do not."
                                  : "Their axes agree, and the types of the axes (Auto, Explicit, Manual) do not.";
    std::vector<std::string> sizes;
    for (const MeshAxis& axis : a.mesh.axes()) {
        if (const auto other = b.mesh.axisSize(axis.name); other && *other != axis.size)
            sizes.push_back(fmt::format("'{}' has size {} in one and {} in the other", axis.name, axis.size, *other));
    }
    if (!sizes.empty())
        return join(sizes, ", ") + ".";
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    return first == second ? "They have the same axes in another order." : "Their axes have other names.";
}

/// A spec that cuts the first dimension of a shape, if an axis of the mesh divides it: `P('x')`.
std::string placementOn(const Mesh& mesh, const std::optional<TensorType>& type)
{
    if (type && !type->shape.empty()) {
        for (const MeshAxis& axis : mesh.axes()) {
            if (axis.size > 1 && type->shape.front() % axis.size == 0)
                return fmt::format("P('{}')", axis.name);
        }
    }
    return "P()";
}

/// "context mesh AbstractMesh('x': 4, 'y': 2) should match the aval mesh AbstractMesh('x': 8) for shape float32[8,4]"
bool explainMeshes(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::vector<MeshInMessage> meshes = meshesIn(part, beginOf(part, at));
    for (const MeshInMessage& mesh : meshes)
        out.fact("mesh " + ownerOf(part, mesh.at), jaxMeshText(mesh.typed.mesh, mesh.typed.types));
    if (meshes.size() < 2) {
        out.remedy(
            "Make one mesh and use it everywhere:", "mesh = jax.make_mesh((4, 2), ('data', 'model'))\njax.set_mesh(mesh)\n");
        out.remedy("Or move the array over first:", "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n");
        return true;
    }
    out.meaning += " " + differenceOf(meshes[0].typed, meshes[1].typed);
    const TypedMesh& used = meshes[0].typed;
    const bool isExplicit = !used.types.empty()
        && std::all_of(used.types.begin(), used.types.end(), [](AxisType type) { return type == AxisType::Explicit; });
    std::vector<std::string> sizes;
    for (const MeshAxis& axis : used.mesh.axes())
        sizes.push_back(fmt::format("{}", axis.size));
    const char* comma = sizes.size() == 1 ? "," : "";
    out.remedy("Make one mesh and use it everywhere:",
        fmt::format("{}mesh = jax.make_mesh(({}{}), ('{}'{}){})\njax.set_mesh(mesh)\n",
            isExplicit ? fmt::format("t = (jax.sharding.AxisType.Explicit,) * {}\n", sizes.size()) : "", join(sizes, ", "), comma,
            join(used.mesh.axisNames(), "', '"), comma, isExplicit ? ", axis_types=t" : ""));
    const auto shape = part.after("forshape", at);
    const auto type = shape ? typeAt(part.text(), *shape) : std::nullopt;
    out.remedy("Or move the array over to that mesh first:",
        fmt::format("x = jax.device_put(x, NamedSharding(mesh, {}))\n", placementOn(used.mesh, type)));
    return true;
}

// ---- arguments in other layouts ------------------------------------------------------------------------------------------------

/// An argument of a compiled function, as far as the message says.
struct ArgumentLayout {
    std::string name;
    std::optional<TensorType> type;
    std::optional<NamedInMessage> has;
    std::optional<NamedInMessage> wanted;
};

/// The first word of a text that begins at a position; empty where it is not a name.
std::string argumentAt(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 120;
    const std::string text = clause(part, at, at + kMost);
    const std::string word = text.substr(0, text.find(' '));
    return word.find_first_of(":,(") == std::string::npos ? word : std::string();
}

/// The type behind "with shape" or "arg type" in a range.
std::optional<TensorType> argumentTypeIn(const MessagePart& part, std::size_t from, std::size_t to)
{
    for (const std::string_view words : {"withshape:", "withshape", "argtype:"}) {
        if (const auto found = part.after(words, from); found && *found < to)
            return typeAt(part.text(), *found);
    }
    return std::nullopt;
}

/// "Argument params['w'] with shape float32[8]:" before a sharding
void addNameBefore(const MessagePart& part, std::size_t from, std::size_t to, ArgumentLayout& argument)
{
    constexpr std::string_view kWord = "argument";
    std::optional<std::size_t> last;
    for (auto found = part.find(kWord, from); found && *found < to; found = part.find(kWord, *found + 1))
        last = *found + kWord.size();
    const auto shape = last ? part.find("withshape", *last) : std::nullopt;
    if (!shape || *shape > to)
        return;
    argument.name = argumentAt(part, *last);
    argument.type = argumentTypeIn(part, *last, to);
}

/// "for arg x with shape: float32[64,128]", "for arg number 0 with shape float32[8,8]", "for arg type: float32[8]" behind a sharding
void addNameBehind(const MessagePart& part, std::size_t from, std::size_t to, ArgumentLayout& argument)
{
    const auto words = part.after("forarg", from);
    if (!words || *words > to)
        return;
    const auto number = part.integer("forargnumber", from);
    argument.type = argumentTypeIn(part, *words - std::string_view("arg").size(), to);
    if (number)
        argument.name = fmt::format("args[{}]", *number);
    else if (part.find("type:", *words) != words)
        argument.name = argumentAt(part, *words);
}

/// The arguments of "Got jit sharding: A, arg sharding: B for arg x with shape ..", "Compiled with: A and called with B. for arg x ..",
/// "Argument x with shape ..: Passed sharding: B Required sharding: A".
std::vector<ArgumentLayout> argumentsIn(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMostArguments = 8;
    constexpr std::size_t kFurthest = 1500;
    constexpr std::size_t kWords = 24;
    constexpr std::string_view kName = "namedsharding(";
    std::vector<ArgumentLayout> arguments;
    std::size_t before = at; // where what is said of this argument begins
    for (auto found = part.find(kName, at); found && arguments.size() < kMostArguments; found = part.find(kName, before)) {
        if (*found > before + kFurthest)
            break;
        const std::string words = lowerCase(part.text().substr(*found - kWords, kWords));
        const bool isHas = words.ends_with("argsharding:") || words.ends_with("passedsharding:")
            || words.find("calledwith") != std::string::npos;
        const auto layout = namedShardingIn(part, *found);
        const auto inner = bracketedAt(part.text(), *found + kName.size() - 1);
        const std::size_t end = inner ? *found + kName.size() - 1 + inner->size() : *found + kName.size();
        const bool isOther = arguments.empty() || (isHas ? arguments.back().has : arguments.back().wanted).has_value();
        if (isOther)
            arguments.push_back({});
        ArgumentLayout& argument = arguments.back();
        (isHas ? argument.has : argument.wanted) = layout;
        if (isOther)
            addNameBefore(part, before, *found, argument);
        const std::size_t next = part.find(kName, end).value_or(part.text().size());
        if (argument.name.empty())
            addNameBehind(part, end, std::min(next, end + kFurthest), argument);
        before = end;
    }
    return arguments;
}

/// A name of the argument for code: as it is where it is one of Python's.
std::string variableOf(const std::string& name)
{
    const bool isName = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || std::string_view("_[]'.\"").find(static_cast<char>(c)) != std::string_view::npos;
    });
    constexpr std::size_t kLongest = 24;
    return isName && name.size() <= kLongest && !name.starts_with("args[") ? name : std::string("x");
}

/// A device_put on lines that fit a terminal.
std::string movedTo(const std::string& variable, const std::string& spec)
{
    constexpr std::size_t kWidest = 66;
    const std::string line = fmt::format("{0} = jax.device_put({0}, NamedSharding(mesh, {1}))\n", variable, spec);
    return line.size() <= kWidest ? line
                                  : fmt::format("{0} = jax.device_put(\n    {0}, NamedSharding(mesh, {1}))\n", variable, spec);
}

bool explainArgument(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::vector<ArgumentLayout> arguments = argumentsIn(part, at);
    std::string move;
    std::string take;
    std::optional<Mesh> shown;
    for (const ArgumentLayout& argument : arguments) {
        const std::string name = argument.name.empty() ? "argument" : argument.name;
        if (argument.type)
            out.fact(name, typeFact(*argument.type));
        for (const auto& [what, layout] : {std::pair("has", &argument.has), {"wanted", &argument.wanted}}) {
            if (!*layout)
                continue;
            if (shown != (*layout)->mesh)
                out.fact("mesh", (*layout)->mesh.text());
            shown = (*layout)->mesh;
            out.fact(arguments.size() == 1 ? std::string(what) : fmt::format("{} {}", name, what), jaxSpecText((*layout)->spec));
        }
        const std::string variable = variableOf(argument.name);
        if (argument.wanted)
            move += movedTo(variable, jaxSpecText(argument.wanted->spec));
        if (argument.has && arguments.size() == 1)
            take = fmt::format("f = jax.jit(f, in_shardings=NamedSharding(mesh, {}))\n", jaxSpecText(argument.has->spec));
    }
    const bool isEqual = arguments.size() == 1 && arguments[0].has && arguments[0].wanted
        && arguments[0].has->mesh == arguments[0].wanted->mesh && arguments[0].has->spec == arguments[0].wanted->spec;
    const bool isOtherMesh = std::any_of(arguments.begin(), arguments.end(), [](const ArgumentLayout& argument) {
        return argument.has && argument.wanted && argument.has->mesh.axes() != argument.wanted->mesh.axes();
    });
    if (arguments.empty())
        out.fact("says", clause(part, at, at + 260));
    if (isEqual)
        out.remedy(
            "Both layouts have the same axes and entries, so their meshes list the devices in different orders, or the kinds of "
            "memory differ. Make one mesh and use it for both.");
    if (move.empty() || isEqual)
        out.remedy("Move the argument to the sharding that the function was given, the same object:",
            "x = jax.device_put(x, in_shardings[0])\n");
    else
        out.remedy(isOtherMesh ? "Move the argument to the layout that the function has, on the function's mesh:"
                               : "Move the argument to the layout that the function has:",
            move);
    if (!take.empty() && !isEqual)
        out.remedy("Or compile the function for the layout that the argument has:", take);
    out.remedy(
        "Or leave in_shardings out: jit then takes the layouts that its arguments have. An argument that drifts is often a "
        "state whose new layout differs from its old one; give it out_shardings.");
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
            explainMeshes, 300, 240,
            "The arrays of one computation, the mesh in use (jax.set_mesh) and that of a shard_map must be one and the same "
            "mesh: the same axes with the same sizes in the same order. Two meshes over the same devices with other names or "
            "another order are different ones."},
        {"axis-type", "JAX", "a mesh axis of another type than the call wants", {"axisnamesthatareoftype"}, nullptr, 300, 200,
            "Each axis of a mesh has a type: Auto axes are the compiler's (with_sharding_constraint hints at them), Explicit "
            "ones are part of every value's type (reshard, out_sharding), Manual ones are shard_map's. The call and the types of "
            "the axes that its spec names do not fit.",
            {{"For Auto axes:", "x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P('data')))\n"},
                {"For Explicit axes:", "x = jax.sharding.reshard(x, P('data'))\n"},
                {"Or make the mesh with the types that the code wants:",
                    "t = (jax.sharding.AxisType.Auto,) * 2\nmesh = jax.make_mesh((4, 2), ('data', 'model'), axis_types=t)\n"}}},
        {"argument-in-other-layout", "JAX", "an argument is not sharded as the function was compiled for",
            {"doesnotmatchtheshardingontherespectivearg", "thesharding(s)thecomputationwascompiledwith",
                "disagreewiththeshardingsofarguments"},
            explainArgument, 600, 0,
            "The function was compiled for arguments in certain layouts (in_shardings, or those of the first call of a compiled "
            "object), and an argument has another one. JAX moves no committed array by itself."},
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
