// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/program/type_names.h"
#include "core/sharding/partition_spec.h"
#include "core/support/checked.h"
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
