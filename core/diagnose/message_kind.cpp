// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/program/type_names.h"
#include "core/sharding/partition_spec.h"
#include "core/support/checked.h"
#include "core/support/counted.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace meshwright {

std::string clause(const MessagePart& part, std::size_t from, std::size_t to)
{
    constexpr std::size_t kMost = 300;
    const std::size_t end = std::min({to, from + kMost, part.text().size()});
    return from < end ? part.log().spaced(part.begin() + from, part.begin() + end) : std::string();
}

std::optional<NamedInMessage> namedShardingIn(const MessagePart& part, std::size_t from)
{
    const auto start = part.after("namedsharding", from);
    if (!start)
        return std::nullopt;
    const auto inner = bracketedAt(part.text(), *start);
    if (!inner)
        return std::nullopt;
    const auto valueOf = [&](std::string_view name) -> std::string_view {
        const std::size_t key = inner->find(name);
        return key == std::string_view::npos ? std::string_view() : inner->substr(key + name.size());
    };
    std::string_view mesh = valueOf("mesh=");
    std::string_view spec = valueOf("spec=");
    const std::size_t meshOpen = mesh.find_first_of("({");
    const std::size_t specOpen = spec.find('(');
    if (meshOpen == std::string_view::npos || specOpen == std::string_view::npos)
        return std::nullopt;
    const auto meshArguments = bracketedAt(mesh, meshOpen);
    const auto specArguments = bracketedAt(spec, specOpen);
    if (!meshArguments || !specArguments)
        return std::nullopt;
    const std::string meshText = mesh[meshOpen] == '{'
        ? fmt::format("Mesh({})", meshArguments->substr(1, meshArguments->size() - 2))
        : std::string(mesh.substr(0, meshOpen + meshArguments->size()));
    auto readMesh = parseJaxMesh(meshText);
    auto readSpec = parseJaxSpec(fmt::format("P{}", *specArguments));
    if (!readMesh || !readSpec)
        return std::nullopt;
    return NamedInMessage{*std::move(readMesh), *std::move(readSpec)};
}

std::size_t beginOf(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 800;
    constexpr std::string_view kError = "error:";
    const std::size_t line = part.log().lineBegin(part.begin() + at);
    const std::size_t begin = line > part.begin() ? line - part.begin() : 0;
    const std::size_t least = at - std::min(at, kMost);
    const std::string_view before = std::string_view(part.log().lower()).substr(part.begin() + least, at - least);
    const std::size_t error = before.rfind(kError);
    return error == std::string_view::npos ? begin : std::min(begin, least + error + kError.size());
}

std::vector<MeshInMessage> meshesIn(const MessagePart& part, std::size_t from)
{
    constexpr std::string_view kWords = "mesh(";
    constexpr std::size_t kFurthest = 3000;
    std::vector<MeshInMessage> meshes;
    for (auto found = part.find(kWords, from); found && *found < from + kFurthest && meshes.size() < 2;
         found = part.find(kWords, *found + 1)) {
        const auto arguments = bracketedAt(part.text(), *found + kWords.size() - 1);
        auto mesh = arguments ? parseTypedMesh(fmt::format("Mesh{}", *arguments)) : Result<TypedMesh>(Problem{});
        if (arguments && mesh)
            meshes.push_back({*found, *std::move(mesh)});
    }
    return meshes;
}

namespace {

void addName(std::string name, std::vector<std::string>& names)
{
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
}

/// The axes of specs: `P('x', None)`, `spec=('x',)`, `mesh: ('x', 'y')`.
void addAxesOfSpecs(const MessagePart& part, std::size_t from, std::size_t to, std::vector<std::string>& names)
{
    constexpr std::size_t kLongestSpec = 300;
    for (std::size_t open = part.text().find('(', from); open < to; open = part.text().find('(', open + 1)) {
        const auto arguments = bracketedAt(part.text().substr(0, open + kLongestSpec), open);
        if (!arguments || arguments->find('\'') == std::string_view::npos)
            continue;
        const auto spec = parseJaxSpec(fmt::format("P{}", *arguments));
        if (!spec)
            continue;
        for (const JaxSpec::Entry& entry : spec->dims) {
            for (const std::string& axis : entry.axes)
                addName(axis, names);
        }
    }
}

/// The axes of types: `f32[8@x,4@(y,z)]`, `{V:i}`.
void addAxesOfTypes(const MessagePart& part, std::size_t from, std::size_t to, std::vector<std::string>& names)
{
    for (const std::string_view sign : {"@", "{v:"}) {
        for (auto at = part.find(sign, from); at && *at < to; at = part.find(sign, *at + 1)) {
            const std::size_t start = *at + sign.size();
            if (const auto several = bracketedAt(part.text(), start)) {
                for (const std::string& axis : split(several->substr(1, several->size() - 2), ','))
                    addName(axis, names);
            } else {
                addName(std::string(part.name(sign, *at)), names);
            }
        }
    }
}

/// The end of a bracketed list without brackets in it that begins at `open`.
std::size_t endOfList(const std::string& code, std::size_t open)
{
    return open < code.size() && code[open] == '(' ? code.find(')', open) : std::string::npos;
}

/// `(4, 2), ('data', 'model')` in a call of make_mesh becomes the mesh; other numbers of axes and sizes that are computed stay.
void replaceMesh(std::string& code, const AxesInMessage& axes)
{
    constexpr std::string_view kCall = "make_mesh(";
    const std::size_t call = code.find(kCall);
    const std::size_t open = call + kCall.size();
    const std::size_t sizesEnd = call == std::string::npos ? call : endOfList(code, open);
    if (sizesEnd == std::string::npos || code.find_first_not_of("0123456789, ", open + 1) != sizesEnd)
        return;
    const std::size_t end = endOfList(code, sizesEnd + 3); // behind "), "
    if (end == std::string::npos)
        return;
    std::string squeezed = code.substr(open, sizesEnd + 1 - open);
    std::erase(squeezed, ' ');
    const Shape sizes = shapeIn(squeezed).value_or(Shape());
    std::vector<std::string> texts;
    if (axes.mesh) {
        for (const MeshAxis& axis : axes.mesh->axes())
            texts.push_back(fmt::format("{}", axis.size));
    } else if (axes.names.size() < sizes.size()) {
        texts.push_back(fmt::format("{}", checkedProduct(sizes).value_or(1)));
    }
    if (texts.empty())
        return;
    const std::size_t count = texts.size();
    std::vector<std::string> names(axes.names.begin(), axes.names.begin() + static_cast<std::ptrdiff_t>(count));
    const char* comma = count == 1 ? "," : "";
    code.replace(open, end + 1 - open, fmt::format("({}{}), ('{}'{})", join(texts, ", "), comma, join(names, "', '"), comma));
    const std::string types = fmt::format(",) * {}", sizes.size()); // a tuple with a type for each axis
    if (const std::size_t at = code.find(types); at != std::string::npos)
        code.replace(at, types.size(), fmt::format(",) * {}", count));
}

} // namespace

std::optional<Mesh> meshGiven(const MessagePart& part, std::size_t from)
{
    const auto sizes = part.bracketed("themeshgivenhasshape", from);
    const auto names = part.bracketed("correspondingaxisnames", from);
    const auto shape = sizes ? shapeIn(*sizes) : std::nullopt;
    const auto spec = names ? parseJaxSpec(fmt::format("P{}", *names)) : Result<JaxSpec>(JaxSpec());
    if (!shape || !spec || spec->dims.size() != shape->size())
        return std::nullopt;
    std::vector<MeshAxis> axes;
    for (std::size_t i = 0; i < shape->size(); ++i) {
        if (spec->dims[i].axes.size() != 1)
            return std::nullopt;
        axes.push_back({spec->dims[i].axes.front(), (*shape)[i]});
    }
    auto mesh = Mesh::create(std::move(axes));
    return mesh ? std::optional(*std::move(mesh)) : std::nullopt;
}

AxesInMessage axesIn(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kFurthest = 3000;
    const std::size_t from = beginOf(part, at);
    const std::size_t to = std::min(at + kFurthest, part.text().size());
    AxesInMessage axes;
    const auto meshes = meshesIn(part, from);
    const auto given = meshes.empty() ? meshGiven(part, from) : std::nullopt;
    if (!meshes.empty() || given) {
        axes.mesh = given ? *given : meshes.front().typed.mesh;
        axes.names = axes.mesh->axisNames();
    } else {
        addAxesOfSpecs(part, from, to, axes.names);
        addAxesOfTypes(part, from, to, axes.names);
    }
    return axes;
}

std::string meshDisagrees(const Mesh& given, std::int64_t devices)
{
    return fmt::format(
        "{} has {}, and the message {}: it is not used", given.text(), counted(given.deviceCount(), "device"), devices);
}

std::string withAxes(std::string code, const AxesInMessage& axes)
{
    const auto isNamed
        = [&](const char* name) { return std::find(axes.names.begin(), axes.names.end(), name) != axes.names.end(); };
    if (axes.names.empty() || isNamed("data") || isNamed("model"))
        return code;
    replaceMesh(code, axes);
    if (axes.names.size() < 2 && code.find("'data', 'model'") != std::string::npos && code.find("make_mesh") != std::string::npos)
        return code; // the sizes of a mesh of two axes are computed
    const std::string second = axes.names.size() > 1 ? fmt::format("'{}'", axes.names[1]) : std::string("None");
    for (const auto& [example, name] : {std::pair(std::string_view("'data'"), fmt::format("'{}'", axes.names.front())),
             std::pair(std::string_view("'model'"), second)}) {
        for (std::size_t at = code.find(example); at != std::string::npos; at = code.find(example, at + name.size()))
            code.replace(at, example.size(), name);
    }
    return code;
}

std::optional<Shape> shapeIn(std::string_view bracketed)
{
    if (bracketed.size() < 2)
        return std::nullopt;
    Shape shape;
    for (const std::string& part : split(bracketed.substr(1, bracketed.size() - 2), ',')) {
        if (part.empty()) // (8,)
            continue;
        const auto size = parseInteger(part);
        constexpr std::size_t kMostDims = 32;
        if (!size || *size < 0 || shape.size() >= kMostDims)
            return std::nullopt;
        shape.push_back(*size);
    }
    return shape;
}

std::optional<TensorType> typeAt(std::string_view text, std::size_t at)
{
    std::size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0))
        ++end;
    const auto sizes = bracketedAt(text, end);
    if (end == at || !sizes || text[end] != '[')
        return std::nullopt;
    const std::string name(text.substr(at, end - at));
    const auto dtype = parseDType(name, {TypeSpelling::Hlo, TypeSpelling::StableHlo, TypeSpelling::Jax});
    const auto shape = shapeIn(*sizes);
    if (!dtype || !shape)
        return std::nullopt;
    return TensorType{*dtype, *shape};
}

std::string typeFact(const TensorType& type)
{
    const auto elements = checkedProduct(type.shape);
    const auto bytes = elements ? checkedMultiply(*elements, byteSize(type.dtype)) : std::nullopt;
    return bytes ? fmt::format("{} ({})", typeText(type), formatBytes(*bytes)) : typeText(type);
}

PartitionSpec withoutAxesOf(const PartitionSpec& spec, std::size_t dim, std::int64_t size, const Mesh& mesh)
{
    PartitionSpec fitting = spec;
    if (dim >= fitting.dims.size())
        return fitting;
    std::vector<std::string>& axes = fitting.dims[dim];
    const auto pieces = [&] {
        std::int64_t count = 1;
        for (const std::string& axis : axes)
            count *= mesh.axisSize(axis).value_or(1);
        return count;
    };
    while (!axes.empty() && size % pieces() != 0)
        axes.pop_back();
    return fitting;
}

PartitionSpec placedSpec(const JaxSpec& spec)
{
    PartitionSpec placed;
    for (const JaxSpec::Entry& entry : spec.dims)
        placed.dims.push_back(entry.axes);
    return placed;
}

} // namespace meshwright
