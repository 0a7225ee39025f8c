// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/partition/device_program.h"
#include "core/sharding/named_sharding.h"
#include "core/support/checked.h"
#include "core/support/counted.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace meshwright {

namespace {

/// Where `words` last begin before `before`.
std::optional<std::size_t> lastBefore(const MessagePart& part, std::string_view words, std::size_t before)
{
    const std::string_view text = std::string_view(part.log().lower()).substr(part.begin(), before);
    const std::size_t at = text.rfind(words);
    return at == std::string_view::npos ? std::nullopt : std::optional(at);
}

/// A text between quotes right behind the words.
std::string quotedAfter(const MessagePart& part, std::string_view words, std::size_t from)
{
    const auto value = part.between(words, "\"", from, 500);
    return value ? std::string(*value) : std::string();
}

/// The word that begins at a position, up to the next white space; what ends a sentence is not a part of it.
std::string wordAt(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 100;
    const std::string text = part.log().spaced(part.begin() + at, part.begin() + std::min(part.text().size(), at + kMost));
    std::string word = text.substr(0, text.find(' '));
    while (!word.empty() && std::string_view(".,:").find(word.back()) != std::string_view::npos)
        word.pop_back();
    return word;
}

/// The last part of a path.
std::string fileName(const std::string& path)
{
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

// ---- involuntary full rematerialization ----------------------------------------------------------------------------------------

/// The op of XLA's program that needs the other layout: its type, what made it, and where in the user's program.
void addOp(const MessagePart& part, std::size_t at, Explanation& out, std::optional<TensorType>& type)
{
    const auto op = part.after("forhlooperation", at);
    if (!op)
        return;
    const std::string_view text = part.text();
    const std::size_t equals = text.find('=', *op);
    if (equals == std::string_view::npos || equals > *op + 200)
        return;
    type = typeAt(text, equals + 1);
    if (type)
        out.fact("array", typeFact(*type));
    std::string name(text.substr(*op, equals - *op));
    name.erase(0, name.find_first_not_of(":%"));
    const std::string made = quotedAfter(part, "op_name=\"", *op);
    out.fact("made by",
        made.empty() ? fmt::format("%{} of XLA's program", name) : fmt::format("{} (%{} of XLA's program)", made, name));
    const std::string file = quotedAfter(part, "source_file=\"", *op);
    const auto line = part.integer("source_line=", *op);
    if (!file.empty() && line)
        out.fact("written at", fmt::format("{}:{}", fileName(file), *line));
}

/// The constraints that lead over the layouts on the way, as JAX code.
std::string wayAsCode(const LayoutChange& change)
{
    const Mesh& mesh = change.layouts.mesh;
    std::string code;
    for (const ReshardStep& step : change.cheapest.steps) {
        const auto spec = specCode(step.result, mesh);
        if (!spec)
            return {};
        code += fmt::format("x = wsc(x, NamedSharding(mesh, {}))\n", *spec);
    }
    return code.empty() ? code : "wsc = jax.lax.with_sharding_constraint\n" + code;
}

/// Where the two layouts lie, drawn side by side if 80 columns have room for both.
void addPictures(const LayoutChange& change, Explanation& out)
{
    const LayoutPair& layouts = change.layouts;
    constexpr std::int64_t kMostDrawn = 256;
    if (layouts.mesh.deviceCount() > kMostDrawn)
        return;
    constexpr std::size_t kWidth = 72;
    for (const auto& [when, sharding] : {std::pair("before", &layouts.from), std::pair("after", &layouts.to)})
        out.pictures.push_back({fmt::format("{}: {}", when, fullLayoutText(*sharding, layouts.mesh)),
            pictureOf(change.type.shape, *sharding, layouts.mesh, "dev", kWidth),
            PicturedLayout{change.type.shape, *sharding, layouts.mesh}});
}

/// The way on a mesh whose axes are not cut, where a PartitionSpec cannot name the layouts on the reader's own.
void addFinerMesh(std::string_view from, std::string_view to, const LayoutChange& change, Explanation& out)
{
    const auto layouts = layoutsOfTiles(from, to, std::nullopt);
    const auto finer
        = layouts ? planChange(*layouts, change.typeKnown ? std::optional(change.type) : std::nullopt) : std::nullopt;
    const std::string code = finer ? wayAsCode(*finer) : std::string();
    if (code.empty())
        return;
    std::vector<std::string> sizes;
    for (const MeshAxis& axis : layouts->mesh.axes())
        sizes.push_back(fmt::format("{}", axis.size));
    const char* comma = sizes.size() == 1 ? "," : "";
    out.remedy(
        fmt::format(
            "The steps above split parts of axes, which a PartitionSpec cannot name. On a mesh {} of the same devices they "
            "have names:",
            layouts->mesh.text()),
        fmt::format("mesh = jax.make_mesh(({}{}), ('{}'{}))\n{}", join(sizes, ", "), comma,
            join(layouts->mesh.axisNames(), "', '"), comma, code));
}

bool explainRematerialization(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    out.meaning
        = "An op needs an array in another layout than it has, and XLA's partitioner found no direct way from one to the other. "
          "As a "
          "last resort every device gathers the whole array and then cuts its own part out. It is a warning, not an error: the "
          "program is right, but this step costs the time and the memory of the full array.";
    const auto from = part.bracketed("fromsharding", at);
    const auto end
        = from ? std::optional(static_cast<std::size_t>(from->data() - part.text().data()) + from->size()) : std::nullopt;
    const auto to = end ? part.bracketed("to", *end) : std::nullopt;
    std::optional<TensorType> type;
    addOp(part, at, out, type);
    if (!type && context.shape)
        type = TensorType{DType::F32, *context.shape};
    if (!to) {
        out.remedy("Paste the whole message: the two shardings in it are what the better way is found from.");
        return true;
    }
    const auto layouts = layoutsOfTiles(*from, *to, context.mesh);
    out.fact("tiles before", std::string(*from));
    out.fact("tiles after", std::string(*to));
    if (!layouts) {
        out.remedies.push_back(
            {"The two tilings are of different ranks or on different devices (a reshape, or data that was never sharded, is "
             "between them). Give the array its layout where it is made: with_sharding_constraint right after the op "
             "that makes it, or out_shardings of the function that does."});
        return true;
    }
    const Mesh& mesh = layouts->mesh;
    const bool isUnused = layouts->meshInvented && context.mesh;
    out.fact("mesh",
        mesh.text()
            + (layouts->meshInvented && !isUnused ? " (the message has no names: --mesh or an open study gives yours)" : ""));
    if (isUnused)
        out.fact("given mesh",
            context.mesh->deviceCount() != mesh.deviceCount()
                ? meshDisagrees(*context.mesh, mesh.deviceCount())
                : fmt::format("{} does not have these tiles: it is not used", context.mesh->text()));
    auto change = planChange(*layouts, type && type->shape.size() == layouts->from.dims.size() ? type : std::nullopt);
    const bool uneven = type && !change;
    if (!change)
        change = planChange(*layouts, std::nullopt);
    if (!change)
        return true;
    if (!type)
        out.fact("array", "not in the message: drawn with sizes that divide; --shape gives them");
    else if (uneven)
        out.fact("sizes", "they do not divide evenly: drawn and counted with sizes that do");
    addPictures(*change, out);
    const std::string code = wayAsCode(*change);
    if (!code.empty() && change->cheapest.steps.size() > 1)
        out.remedy("Name the layouts on the way. Each of these steps is one collective that XLA knows:", code);
    else if (!code.empty())
        out.remedy("Constrain the array to the layout that is needed where it is made:", code);
    if (code.empty() && !change->cheapest.steps.empty())
        addFinerMesh(*from, *to, *change, out);
    out.remedies.push_back(
        {"Or let both ends agree: give the op that makes the array the layout that its reader needs, and nothing moves."});
    out.change = std::move(change);
    return true;
}

// ---- a dimension that does not divide -------------------------------------------------------------------------------------------

/// A dimension that its pieces do not divide.
struct UnevenDim {
    std::size_t dim = 0;
    std::int64_t size = 0;
    std::int64_t pieces = 0;
};

/// What of an array does not divide, as far as the message says.
struct Indivisible {
    std::vector<UnevenDim> dims;
    std::optional<Shape> shape;
    std::optional<NamedInMessage> sharding;
    std::string name = {}; ///< args[1]['tokens']
    std::string variable = "x"; ///< batch['tokens']
};

bool hasDim(const Indivisible& what, std::size_t dim)
{
    return std::any_of(what.dims.begin(), what.dims.end(), [dim](const UnevenDim& uneven) { return uneven.dim == dim; });
}

/// Adds the dimensions that the message does not get to, where the array's shape and sharding say them.
void addOtherDims(Indivisible& what)
{
    if (!what.shape || !what.sharding)
        return;
    const PartitionSpec spec = placedSpec(what.sharding->spec);
    for (std::size_t dim = 0; dim < std::min(spec.dims.size(), what.shape->size()); ++dim) {
        std::int64_t pieces = 1;
        for (const std::string& axis : spec.dims[dim])
            pieces = checkedMultiply(pieces, what.sharding->mesh.axisSize(axis).value_or(1)).value_or(1);
        if (pieces > 1 && (*what.shape)[dim] % pieces != 0 && !hasDim(what, dim))
            what.dims.push_back({dim, (*what.shape)[dim], pieces});
    }
    std::sort(what.dims.begin(), what.dims.end(), [](const UnevenDim& a, const UnevenDim& b) { return a.dim < b.dim; });
}

std::string remainderText(const UnevenDim& uneven)
{
    return fmt::format("{} = {} x {} + {}", uneven.size, uneven.pieces, uneven.size / uneven.pieces, uneven.size % uneven.pieces);
}

/// "dimension 0 of size 8 or 12 and dimension 1 of size 2 or 4"
std::string sizesThatFit(const Indivisible& what)
{
    std::string text;
    for (std::size_t i = 0; i < what.dims.size(); ++i)
        text += fmt::format("{}dimension {} of size {}",
            i == 0                          ? ""
                : i + 1 == what.dims.size() ? " and "
                                            : ", ",
            what.dims[i].dim, divisibleSizesText(what.dims[i].size, what.dims[i].pieces));
    return text;
}

/// `x = jnp.pad(x, ((0, 2), (0, 0)))  # 10 -> 12`; empty where the shape is not known.
std::string paddingOf(const Indivisible& what)
{
    const auto isOutside = [&](const UnevenDim& uneven) { return uneven.dim >= what.shape->size(); };
    if (!what.shape || std::any_of(what.dims.begin(), what.dims.end(), isOutside))
        return {};
    std::vector<std::string> widths(what.shape->size(), "(0, 0)");
    std::vector<std::string> changes;
    for (const UnevenDim& uneven : what.dims) {
        const auto padded = checkedMultiply(ceilDiv(uneven.size, uneven.pieces), uneven.pieces);
        if (!padded)
            return {};
        widths[uneven.dim] = fmt::format("(0, {})", *padded - uneven.size);
        changes.push_back(fmt::format("{} -> {}", uneven.size, *padded));
    }
    const std::string padding = fmt::format("({}{})", join(widths, ", "), widths.size() == 1 ? "," : "");
    const std::string comment = "  # " + join(changes, ", ");
    constexpr std::size_t kWidest = 66;
    const std::string line = fmt::format("{0} = jnp.pad({0}, {1}){2}\n", what.variable, padding, comment);
    return line.size() <= kWidest ? line : fmt::format("{0} = jnp.pad(\n    {0}, {1}){2}\n", what.variable, padding, comment);
}

/// The spec without the axes that do not divide.
PartitionSpec fittingSpec(const Indivisible& what)
{
    PartitionSpec fitting = placedSpec(what.sharding->spec);
    for (const UnevenDim& uneven : what.dims)
        fitting = withoutAxesOf(fitting, uneven.dim, uneven.size, what.sharding->mesh);
    return fitting;
}

void addPadding(const Indivisible& what, Explanation& out)
{
    const std::string code = paddingOf(what);
    out.remedy(fmt::format("Make {}{}", sizesThatFit(what), code.empty() ? "." : "; padding is one way:"), code);
}

/// The nearest layout that works, drawn; `code` has a place for its spec.
void addFitting(const Indivisible& what, const char* code, Explanation& out)
{
    const Mesh& mesh = what.sharding->mesh;
    const PartitionSpec asked = placedSpec(what.sharding->spec);
    const PartitionSpec fitting = fittingSpec(what);
    if (fitting == asked)
        return;
    out.remedy("Or leave axes out that do not divide it:", fmt::format(fmt::runtime(code), specText(fitting)));
    constexpr std::int64_t kMostDrawn = 256;
    if (!what.shape || what.shape->empty() || mesh.deviceCount() > kMostDrawn)
        return;
    const auto addDrawn = [&](const std::string& title, const PartitionSpec& spec) {
        constexpr std::size_t kWidth = 72;
        const auto sharding = toTensorSharding(spec, what.shape->size(), mesh);
        const std::string drawing = sharding ? pictureOf(*what.shape, *sharding, mesh, "dev", kWidth) : std::string();
        if (sharding && widestLine(drawing) <= kWidth)
            out.pictures.push_back({title, drawing, PicturedLayout{*what.shape, *sharding, mesh}});
    };
    addDrawn(fmt::format("asked: {} (the last pieces would be short or empty)", specText(asked)), asked);
    if (placedLayout(*what.shape, {mesh, fitting}))
        addDrawn("works: " + specText(fitting), fitting);
}

/// True where the numbers are those of a division.
bool areDivisions(const Indivisible& what)
{
    return !what.dims.empty() && std::all_of(what.dims.begin(), what.dims.end(), [](const UnevenDim& uneven) {
        return uneven.pieces >= 1 && uneven.size >= 0;
    });
}

bool explainIndivisible(Indivisible what, Explanation& out, const char* code = "sharding = NamedSharding(mesh, {})\n")
{
    if (!areDivisions(what))
        return false;
    addOtherDims(what);
    const UnevenDim& first = what.dims.front();
    out.meaning = fmt::format("The sharding cuts dimension {} into {} equal pieces, but its size is {}: {}.", first.dim,
        first.pieces, first.size, remainderText(first));
    for (std::size_t i = 1; i < what.dims.size(); ++i)
        out.meaning += fmt::format(" Dimension {} is cut into {}, and its size is {}: {}.", what.dims[i].dim, what.dims[i].pieces,
            what.dims[i].size, remainderText(what.dims[i]));
    out.meaning += " Arrays that a user places (arguments, parameters, results) must divide evenly; only values inside a jitted "
                   "function may be padded.";
    out.fact("argument", what.name);
    if (what.shape)
        out.fact("array", shapeText(*what.shape));
    if (what.sharding) {
        out.fact("mesh", what.sharding->mesh.text());
        out.fact("spec", jaxSpecText(what.sharding->spec));
    }
    addPadding(what, out);
    if (what.sharding)
        addFitting(what, code, out);
    return true;
}

/// "One of device_put args was given the sharding of .., which implies that the global size of its dimension 0 should be divisible by 4,
/// but it is equal to 10 (full shape: (10, 4))"
bool explainPlaced(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto dim = part.integer("impliesthattheglobalsizeofitsdimension", at);
    const auto pieces = part.integer("shouldbedivisibleby", at);
    const auto size = part.integer("itisequalto", at);
    if (!dim || !pieces || !size || *dim < 0)
        return false;
    Indivisible what{{{static_cast<std::size_t>(*dim), *size, *pieces}}, {}, {}};
    if (const auto shape = part.bracketed("(fullshape:", at))
        what.shape = shapeIn(*shape);
    if (const auto given = lastBefore(part, "wasgiventhesharding", at))
        what.sharding = namedShardingIn(part, *given);
    if (const auto who = lastBefore(part, "oneof", at); who && at - *who < 3000) {
        if (const auto given = part.find("wasgiven", *who); given && *given < at)
            out.fact("which", clause(part, *who, *given));
    }
    return explainIndivisible(what, out);
}

/// "Sharding .. implies that array axis 1 is partitioned 2 times, but the dimension size is 3 (full shape: (8, 3), ..)"
bool explainAxis(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto dim = part.integer("impliesthatarrayaxis", at);
    const auto pieces = part.integer("ispartitioned", at);
    auto size = part.integer("thedimensionsizeis", at);
    if (!size)
        size = part.integer("doesnotevenlydividethedimensionsize", at);
    if (!dim || !pieces || !size || *dim < 0)
        return false;
    Indivisible what{{{static_cast<std::size_t>(*dim), *size, *pieces}}, {}, {}};
    auto shape = part.bracketed("(fullshape:", at);
    if (!shape)
        shape = part.bracketed("gotshape:", at);
    if (shape)
        what.shape = shapeIn(*shape);
    const auto before = lastBefore(part, "namedsharding(", at);
    what.sharding = before ? namedShardingIn(part, *before) : namedShardingIn(part, at);
    return explainIndivisible(what, out);
}

/// The name of the function that shard_map was applied to.
void addFunction(const MessagePart& part, std::size_t at, Explanation& out)
{
    const auto start = lastBefore(part, "appliedtothefunction'", at + 1);
    const auto name = start ? part.between("appliedtothefunction'", "'", *start, 200) : std::nullopt;
    if (name)
        out.fact("function", std::string(*name));
}

/// The integer that ends right before a position.
std::int64_t integerUpTo(const MessagePart& part, std::size_t end)
{
    const std::string_view text = part.text().substr(0, end);
    const std::size_t before = text.find_last_not_of("0123456789");
    return parseInteger(text.substr(before + 1)).value_or(0);
}

/// The argument that a message of shard_map describes between two positions: "args[1]['tokens'] of shape i32[12,8] where args[1] is bound to
/// f's parameter 'batch', corresponds to in_specs[1]['tokens'] of value P('x',)", or only the spec: "P('x', 'y') maps array axis .."
Indivisible argumentOf(const MessagePart& part, std::size_t from, std::size_t to)
{
    Indivisible what;
    const MessagePart own(part.log(), part.begin() + from, part.begin() + to);
    std::size_t open = std::string_view::npos;
    for (const std::string_view words : {"p(", "partitionspec("}) { // the spec alone
        if (const auto name = lastBefore(own, words, own.text().size()); name && open == std::string_view::npos)
            open = *name + words.size() - 1;
    }
    if (const auto shape = own.find("ofshape")) {
        constexpr std::string_view kArguments = "args";
        const auto name = lastBefore(own, kArguments, *shape);
        const std::string key(name ? own.text().substr(*name, *shape - *name) : std::string_view());
        const std::size_t index = key.find(']');
        what.name = key;
        if (const auto type = typeAt(own.text(), *shape + std::string_view("ofshape").size()))
            what.shape = type->shape;
        const auto parameter = own.between("parameter'", "'", *shape, 100);
        if (parameter && index != std::string::npos) {
            const auto component = own.integer("istheindex", *shape); // of *args
            what.variable
                = std::string(*parameter) + (component ? fmt::format("[{}]", *component) : std::string()) + key.substr(index + 1);
        }
        const auto value = own.find("value", *shape);
        open = value ? own.text().find('(', *value) : std::string_view::npos;
    }
    const auto entries = bracketedAt(own.text(), open);
    auto spec = entries ? parseJaxSpec(fmt::format("P{}", *entries)) : Result<JaxSpec>(Problem{});
    if (spec)
        what.sharding = NamedInMessage{Mesh(), *std::move(spec)};
    return what;
}

/// Meshwright's own note behind the message: "dim 1 of size 3 is not divisible by 2".
std::optional<UnevenDim> dimOfNote(const MessagePart& part, std::size_t note, std::int64_t pieces)
{
    constexpr std::size_t kLongest = 60;
    const std::size_t word = lastBefore(part, "dim", note).value_or(0);
    const std::int64_t dim = part.integer("dim", word).value_or(-1);
    const std::int64_t size = integerUpTo(part, note);
    if (note - word > kLongest || dim < 0 || pieces < 1)
        return std::nullopt;
    return UnevenDim{static_cast<std::size_t>(dim), size, pieces};
}

/// All dimensions that a message of shard_map names, by arguments.
std::vector<Indivisible> unevenArguments(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 32;
    constexpr std::string_view kAxis = "arrayaxis";
    constexpr std::string_view kDivide = "doesnotevenlydivide";
    std::vector<Indivisible> arguments;
    std::size_t before = at;
    for (auto axis = part.find(kAxis, at); axis && arguments.size() < kMost;) {
        const auto next = part.find(kAxis, *axis + kAxis.size());
        const auto dim = part.integer(kAxis, *axis);
        const auto size = part.integer("(ofsize", *axis);
        const auto divide = part.find(kDivide, *axis);
        if (dim && *dim >= 0 && size && divide && (!next || *divide < *next)) {
            Indivisible argument = argumentOf(part, before, *axis);
            if (arguments.empty() || !argument.name.empty()) {
                if (arguments.empty() || arguments.back().name != argument.name)
                    arguments.push_back(std::move(argument));
            }
            if (!hasDim(arguments.back(), static_cast<std::size_t>(*dim)))
                arguments.back().dims.push_back({static_cast<std::size_t>(*dim), *size, integerUpTo(part, *divide)});
            before = *divide + kDivide.size();
        }
        axis = next;
    }
    constexpr std::string_view kNote = "isnotdivisibleby";
    for (auto note = part.find(kNote, before); note && arguments.size() == 1; note = part.find(kNote, *note + kNote.size())) {
        const auto uneven = dimOfNote(part, *note, part.integer(kNote, *note).value_or(0));
        if (uneven && !hasDim(arguments[0], uneven->dim))
            arguments[0].dims.push_back(*uneven);
    }
    return arguments;
}

/// Several arguments: a line for each.
void explainSeveral(const std::vector<Indivisible>& arguments, Explanation& out)
{
    std::string padding;
    std::string specs;
    out.meaning = "Arguments of shard_map must divide evenly: each device gets pieces of one size, as in_specs cut them.";
    if (arguments.front().sharding && arguments.front().sharding->mesh.deviceCount() > 1)
        out.fact("mesh", arguments.front().sharding->mesh.text());
    for (const Indivisible& what : arguments) {
        std::vector<std::string> texts;
        for (const UnevenDim& uneven : what.dims)
            texts.push_back(fmt::format("dimension {} in {} pieces: {}", uneven.dim, uneven.pieces, remainderText(uneven)));
        out.fact(
            what.name.empty() ? "argument" : what.name, (what.shape ? shapeText(*what.shape) + ", " : "") + join(texts, ", "));
        padding += paddingOf(what);
        if (what.sharding && what.sharding->mesh.deviceCount() > 1 && fittingSpec(what) != placedSpec(what.sharding->spec))
            specs += fmt::format("{}  # {}\n", specText(fittingSpec(what)), what.name);
    }
    out.remedy("Make the sizes multiples of the pieces; padding is one way:", padding);
    if (!specs.empty())
        out.remedy("Or leave axes out of in_specs that do not divide:", specs);
}

bool explainShardMapSizes(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    addFunction(part, at, out);
    std::vector<Indivisible> arguments = unevenArguments(part, at);
    if (arguments.empty()) {
        out.meaning = "An argument of shard_map has a dimension that its in_specs cut into pieces that do not divide it.";
        out.remedy("Paste the lines that follow too: they name the argument, the dimension and both sizes.");
        return true;
    }
    const auto given = meshGiven(part, at);
    const auto& mesh = given ? given : context.mesh;
    for (Indivisible& what : arguments) {
        if (!what.shape)
            what.shape = context.shape;
        if (what.sharding && mesh)
            what.sharding->mesh = *mesh;
        else
            what.sharding.reset();
        if (!areDivisions(what))
            return false;
        addOtherDims(what);
    }
    if (arguments.size() == 1)
        return explainIndivisible(std::move(arguments.front()), out, "in_specs={}\n");
    explainSeveral(arguments, out);
    return true;
}

// ---- rank, axes ----------------------------------------------------------------------------------------------------------------

bool explainRank(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto least = part.integer("rankatleast", at);
    const auto rank = part.integer("toavalueofrank", at);
    if (!least || !rank || *rank < 0 || *rank > 32)
        return false;
    out.meaning = fmt::format(
        "The spec has {} entries, one for each dimension, but the array has {}. Often the spec was written for another array: "
        "labels and biases have one dimension, so the spec of a matrix cannot be theirs.",
        *least, *rank == 0 ? std::string("none: it is a scalar") : counted(*rank, "dimension"));
    const auto before = lastBefore(part, "namedsharding(", at);
    const auto sharding = before ? namedShardingIn(part, *before) : std::nullopt;
    if (sharding) {
        PartitionSpec cut = placedSpec(sharding->spec);
        out.fact("mesh", sharding->mesh.text());
        out.fact("spec", jaxSpecText(sharding->spec));
        cut.dims.resize(std::min(cut.dims.size(), static_cast<std::size_t>(*rank)));
        out.remedy("Give at most one entry for each dimension; the first of yours are:",
            fmt::format("sharding = NamedSharding(mesh, {})\n", specText(cut)));
    } else {
        out.remedies.push_back(
            {fmt::format("Give a spec of at most {} entr{}{}", *rank, *rank == 1 ? "y" : "ies", *rank == 0 ? ":" : "."),
                *rank == 0 ? "sharding = NamedSharding(mesh, P())\n" : ""});
    }
    out.remedy("Or the argument has lost a dimension on the way: print its shape where it is made.");
    return true;
}

bool explainShardMapRank(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    addFunction(part, at, out);
    const auto length = part.integer("whichhaslength", at);
    const auto rank = part.integer("whichhasrank", at);
    const bool ofResult = part.find("out_specs", at).has_value() && !part.find("in_specs", at);
    out.meaning = length && rank
        ? fmt::format("The spec has {} entries, but the {} has rank {}: shard_map cannot {} a dimension that is not there.",
            *length, ofResult ? "result" : "argument", *rank, ofResult ? "put results together along" : "split")
        : "A spec of shard_map has more entries than its array has dimensions.";
    if (rank && *rank == 0)
        out.remedies.push_back(
            {"A scalar has no dimension to shard. If it is equal on all devices (after a psum or pmean), say so:",
                "out_specs=P()\n"});
    else
        out.remedies.push_back(
            {"Give one entry for each dimension at most, or let the function keep the dimension (keepdims=True, x[None])."});
    return true;
}

bool explainShardyRank(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto entries = part.integer("shardingdoesn'tmatchtensorrank:", at);
    const auto rank = part.integer("!=", at);
    if (!entries || !rank)
        return false;
    out.meaning = fmt::format("A Shardy sharding has exactly one {{..}} for each dimension. This one has {}, the tensor has {}.",
        *entries, counted(*rank, "dimension"));
    std::string dims;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(*rank, 8); ++i)
        dims += i == 0 ? "{}" : ", {}";
    out.remedy("Write as many as the tensor has:", fmt::format("#sdy.sharding<@mesh, [{}]>\n", dims));
    return true;
}

bool explainDuplicate(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    std::string axis(part.name("hasduplicateentriesfor`", at));
    if (axis.empty())
        axis = part.name("duplicateaxisref:\"", at);
    if (axis.empty())
        return false;
    out.meaning = fmt::format("A mesh axis can split one dimension of an array only: '{}' is used twice. The devices "
                              "along it would have to hold "
                              "the diagonal blocks only, and the others would be nowhere.",
        axis);
    out.fact("axis", axis);
    const std::size_t but = lastBefore(part, "but", at).value_or(at);
    std::optional<std::size_t> open;
    for (const std::string_view words : {"partitionspec(", "p("}) { // alone, or within the text of a sharding
        const auto name = part.find(words, but);
        if (!open && name && *name < at)
            open = *name + words.size() - 1;
    }
    const auto arguments = open ? bracketedAt(part.text(), *open) : std::nullopt;
    const auto spec = arguments ? parseJaxSpec(fmt::format("P{}", *arguments)) : Result<JaxSpec>(JaxSpec());
    if (arguments && spec) {
        PartitionSpec once = placedSpec(*spec);
        out.fact("spec", jaxSpecText(*spec));
        bool seen = false;
        for (auto& axes : once.dims) {
            std::erase_if(axes, [&](const std::string& name) { return name == axis && std::exchange(seen, true); });
        }
        out.remedy("Keep it where it helps most:", fmt::format("spec = {}\n", specText(once)));
    }
    out.remedy("Or split the second dimension by another axis of the mesh.");
    return true;
}

/// The mesh with one axis more: those that it has keep their sizes, where they are known.
void addMissingAxis(const std::string& axis, std::vector<std::string> names, const ExplainContext& context, Explanation& out)
{
    if (names.empty())
        names = {"data"};
    std::string sizes = "n";
    if (context.mesh && context.mesh->axisNames() == names) {
        sizes.clear();
        for (const MeshAxis& known : context.mesh->axes())
            sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", known.size);
    } else if (names.size() > 1) {
        sizes = "*mesh.axis_sizes"; // of the axes that are there
    }
    names.push_back(axis);
    out.remedy("Or add the axis to the mesh (an axis of size 1 costs nothing):",
        fmt::format("{}mesh = jax.make_mesh(({}, 1), ('{}'))\n", sizes == "n" ? "n = jax.device_count()\n" : "", sizes,
            join(names, "', '")));
}

bool explainUnknownAxis(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    std::string axis(part.name("unknownaxisname:\"", at));
    for (const std::string_view words : {"resourceaxis:", "unboundaxisname:"}) {
        if (const auto behind = part.after(words, at); behind && *behind == at + words.size())
            axis = wordAt(part, *behind);
    }
    if (axis.empty())
        return false;
    out.fact("axis", axis);
    std::vector<std::string> names;
    if (const auto listed = part.bracketed("isnotfoundinmesh:", at)) {
        if (const auto spec = parseJaxSpec(fmt::format("P{}", *listed))) {
            for (const JaxSpec::Entry& entry : spec->dims)
                names.insert(names.end(), entry.axes.begin(), entry.axes.end());
        }
    }
    if (names.empty() && context.mesh)
        names = context.mesh->axisNames();
    const bool unbound = part.find("unboundaxisname", at).value_or(at + 1) == at;
    out.meaning = unbound
        ? fmt::format("A collective (psum, all_gather, axis_index ..) names the axis '{}', but no shard_map, pmap or vmap around "
                      "it has an axis of that "
                      "name. Under jit alone there are no axis names: the compiler puts in the collectives.",
            axis)
        : fmt::format(
            "The spec names the mesh axis '{}', but the mesh does not have it. A logical name (batch, embed, heads) that no "
            "rule turned into a mesh axis is the usual reason; another is a mesh of another context.",
            axis);
    if (!names.empty()) {
        out.fact("mesh axes", join(names, ", "));
        const auto near = nearestName(axis, names);
        out.remedy(
            near ? fmt::format("Did you mean '{}'?", *near) : fmt::format("Use one of the mesh's axes: {}.", join(names, ", ")));
    }
    if (unbound)
        out.remedy("Put the collective inside a shard_map over the mesh:",
            fmt::format("f = jax.shard_map(f, mesh=mesh, in_specs=P('{0}'),\n                  out_specs=P('{0}'))\n", axis));
    else
        addMissingAxis(axis, names, context, out);
    return true;
}

// ---- shard_map and explicit mode ----------------------------------------------------------------------------------------------

bool explainReplication(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    addFunction(part, at, out);
    if (const auto mesh = meshGiven(part, at))
        out.fact("mesh", mesh->text());
    std::string axes;
    if (const auto missing = part.between("andnot{", "}", at, 200))
        axes = *missing;
    else if (const auto one = part.between("replicatedacrossmeshaxis'", "'", at, 100))
        axes = *one;
    out.meaning = "An out_spec that does not mention a mesh axis says: the result is equal on all devices along it, take any "
                  "copy. shard_map "
                  "follows which axes a value varies over, and found that this result may differ.";
    if (!axes.empty()) {
        std::vector<std::string> names = split(axes, ',');
        out.fact("axes", axes + " (the result may differ along them, the spec says it does not)");
        for (std::string& name : names)
            name = fmt::format("'{}'", name);
        const std::string axis = names.size() == 1 ? names.front() : fmt::format("({})", join(names, ", "));
        out.remedy("If the result is a part of a sum or a mean, add the devices' parts up:",
            fmt::format("y = jax.lax.psum(y, {0})  # or pmean\n", axis));
        out.remedies.push_back({"If every device has its own piece, say along which dimension they are concatenated:",
            fmt::format("out_specs=P({})\n", axis)});
    } else {
        out.remedies.push_back(
            {"Sum it up (jax.lax.psum, pmean) over the axes that out_specs leave out, or mention them in out_specs."});
    }
    out.remedy("If it is equal in a way that cannot be seen (all_gather, then a sort), switch the check off:",
        "jax.shard_map(f, mesh=mesh, in_specs=P('data'), out_specs=P(),\n              check_vma=False)\n");
    return true;
}

/// "Contracting dimensions are sharded and it is ambiguous .. Got lhs_contracting_spec=('x',) and rhs_contracting_spec=('x',)"
bool explainAmbiguous(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    for (const auto& [name, words] :
        {std::pair("left, contracted", "lhs_contracting_spec="), {"right, contracted", "rhs_contracting_spec="}}) {
        if (const auto spec = part.bracketed(words, at))
            out.fact(name, std::string(*spec));
    }
    AxesInMessage axes = axesIn(part, at);
    if (axes.names.empty() && context.mesh)
        axes.names = context.mesh->axisNames();
    const std::string axis = axes.names.empty() ? "data" : axes.names.front();
    out.remedy("Give the sharding of the result. P() makes it whole on every device, and an entry splits it over an axis:",
        fmt::format("y = jnp.einsum('ij,jk->ik', x, w, out_sharding=P())\n# or P('{}', None), where the size divides\n", axis));
    out.remedy("Or make the contracted dimension of an operand whole first:", "w = jax.sharding.reshard(w, P())\n");
    return true;
}

bool explainDonation(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    if (const auto list = part.between("notusable:", ".see", at, 600)) {
        const std::size_t start = static_cast<std::size_t>(list->data() - part.text().data());
        out.fact("buffers", clause(part, start, start + list->size()));
    }
    return true;
}

} // namespace

std::span<const MessageKind> layoutMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"full-rematerialization", "XLA", "involuntary full rematerialization", {"involuntaryfullrematerialization"},
            explainRematerialization},
        {"not-divisible", "JAX", "a dimension does not divide", {"impliesthattheglobalsizeofitsdimension"}, explainPlaced},
        {"not-divisible", "JAX", "a dimension does not divide", {"impliesthatarrayaxis"}, explainAxis},
        {"not-divisible", "JAX", "a dimension does not divide (shard_map)", {"axissizesthatarenotevenlydivisibleby"},
            explainShardMapSizes, 600},
        {"rank-too-small", "JAX", "the spec is longer than the array's rank", {"isonlyvalidforvaluesofrankatleast"}, explainRank},
        {"rank-too-small", "JAX", "the spec is longer than the array's rank (shard_map)", {"entrywhichistoolongtobecompatible"},
            explainShardMapRank, 600},
        {"rank-mismatch", "Shardy", "the sharding is for another rank", {"shardingdoesn'tmatchtensorrank:"}, explainShardyRank},
        {"duplicate-axis", "JAX", "an axis is used twice", {"hasduplicateentriesfor`"}, explainDuplicate},
        {"duplicate-axis", "Shardy", "an axis is used twice", {"duplicateaxisref:"}, explainDuplicate},
        {"unknown-axis", "JAX", "unknown mesh axis", {"resourceaxis:"}, explainUnknownAxis},
        {"unknown-axis", "Shardy", "unknown mesh axis", {"unknownaxisname:"}, explainUnknownAxis},
        {"unbound-axis", "JAX", "a collective over an axis that is not there", {"unboundaxisname:"}, explainUnknownAxis},
        {"axis-both-sharded-and-unreduced", "JAX", "an axis both splits and is left unreduced",
            {"partitionscannotoverlapwithunreduced", "partitionscannotoverlapwithreduced"}, nullptr, 0, 0,
            "An axis is both in the entries of the spec, where it splits a dimension, and in its unreduced (or reduced) axes, "
            "where every device holds a full-size partial sum. It cannot do both.",
            {{"Take the axis out of one of them: P('x', unreduced={'y'}) is a sum over y of arrays split by x."}}},
        {"replication-not-inferred", "JAX", "shard_map cannot see that a result is replicated",
            {"whichrequirereplicationwhichcan'tbestatically", "couldnotinferreplicationoverany"}, explainReplication, 1500},
        {"carry-varies", "JAX", "a loop's carry starts to differ between devices",
            {"varyingmanualaxesdonotmatch", "mismatchedvaryingmanualaxes", "differencesinvaryingmanualaxes"}, nullptr, 0, 0,
            "Inside shard_map the type of a value says over which mesh axes it differs. A loop's carry must keep its type, and "
            "here it begins equal on all devices (zeros, a constant) and differs after the first round.",
            {{"Mark the first value as differing too:",
                "init = jax.lax.pcast(init, 'data', to='varying')\n# before JAX 0.8: jax.lax.pvary(init, 'data')\n"}}},
        {"ambiguous-sharding", "JAX", "the result's sharding is ambiguous",
            {"contractingdimensionsaresharded", "ambiguoushowtheoutputshouldbesharded", "producesanambiguouslyshardedresult"},
            explainAmbiguous, 300, 220,
            "In explicit mode a value's sharding is part of its type, and JAX does not guess. Here the operands allow more than "
            "one sharding of the result (a contracted dimension is sharded: the result is a sum over devices), so it asks."},
        {"no-mesh", "JAX", "no mesh is in use", {"requiresanon-emptymesh", "pleasesetameshvia", "notunderameshcontext"}, nullptr,
            0, 0, "A bare PartitionSpec names mesh axes, but no mesh is in use at this place, so the names mean nothing.",
            {{"Use a mesh for the whole program:", "jax.set_mesh(jax.make_mesh((4, 2), ('data', 'model')))\n"},
                {"Or give the mesh with the spec:", "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n"}}},
        {"nested-tuple", "JAX", "a tuple in a tuple of a spec", {"atupleinsidepartitionspeccannotcontain"}, nullptr, 0, 0,
            "An entry of a PartitionSpec is an axis, or a tuple of axes that split one dimension together. Tuples in it mean "
            "nothing.",
            {{"Write the axes of a dimension side by side:", "P(('data', 'model'), None)\n"}}},
        {"permuted-axes", "JAX", "ppermute over axes in another order than the mesh's",
            {"makesurethattheaxis_namepassedtojax.lax.ppermute"}, nullptr, 0, 0,
            "ppermute numbers the devices along several axes in the mesh's order. With the axes in another order the pairs mean "
            "other devices "
            "than they seem to.",
            {{"Name the axes in the mesh's order, and number the pairs by it:",
                "x = jax.lax.ppermute(x, ('x', 'y'), [(0, 1), (1, 2), (2, 3), (3, 0)])\n"}}},
        {"donation-not-usable", "JAX", "donated memory was not reused", {"somedonatedbufferswerenotusable"}, explainDonation, 0,
            0,
            "You allowed the memory of an argument to be reused for a result (donate_argnums), but no result has the same shape, "
            "type and layout per device. The program is right; it needs the memory twice. Often an updated parameter comes out "
            "in another layout than it went in.",
            {{"Give the results the layouts of the arguments that they replace:",
                "step = jax.jit(step, donate_argnums=0,\n               out_shardings=(state_shardings, None))\n"}}},
        {"unsharded-parameters", "MaxText", "parameters are not sharded",
            {"unshardedparameterpercentage", "unshardedparamperc", "parameterswerenotsharded"}, nullptr, 0, 200,
            "Large parameters are whole on every device although the mesh has axes that could split them: their logical axes "
            "lead to no mesh axis, or to one that does not divide them.",
            {{"See which rule caught which parameter, and what stays whole:", "meshwright check study.yaml\n"}}},
    };
    return kKinds;
}

} // namespace meshwright
