// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/jax_spec.h"

#include "core/sharding/spec_reader.h"
#include "core/support/element_names.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace meshwright {

namespace {

std::string setText(const std::vector<std::string>& axes)
{
    return fmt::format("{{'{}'}}", fmt::join(axes, "', '"));
}

} // namespace

std::string jaxSpecText(const JaxSpec& spec)
{
    std::vector<std::string> parts;
    for (const JaxSpec::Entry& entry : spec.dims) {
        if (entry.unconstrained)
            parts.emplace_back("UNCONSTRAINED");
        else if (entry.axes.empty())
            parts.emplace_back("None");
        else if (entry.axes.size() == 1)
            parts.push_back("'" + entry.axes.front() + "'");
        else
            parts.push_back("('" + join(entry.axes, "', '") + "')");
    }
    const bool alone = parts.size() == 1 && spec.unreduced.empty() && spec.reduced.empty();
    if (!spec.unreduced.empty())
        parts.push_back("unreduced=" + setText(spec.unreduced));
    if (!spec.reduced.empty())
        parts.push_back("reduced=" + setText(spec.reduced));
    if (!spec.unreduced.empty())
        parts.push_back(fmt::format("unreduced_kind={}", reduceKindName(spec.unreducedKind)));
    return fmt::format("P({}{})", join(parts, ", "), alone ? "," : "");
}

namespace {

Problems doubles(const JaxSpec& spec)
{
    std::set<std::string> inDims;
    for (const JaxSpec::Entry& entry : spec.dims)
        inDims.insert(entry.axes.begin(), entry.axes.end());
    Problems problems;
    std::set<std::string> seen;
    const auto check = [&](const char* set, const std::vector<std::string>& axes) {
        for (const std::string& axis : axes) {
            if (inDims.contains(axis))
                problems.push_back({"MW1103", fmt::format("partitions cannot overlap with {} axes: \"{}\" is in both", set, axis),
                    "use each axis in one place", TextCursor::placeAt(0)});
            else if (!seen.insert(axis).second)
                problems.push_back({"MW1103", fmt::format("axis \"{}\" is used twice in the {} axes", axis, set), "name it once",
                    TextCursor::placeAt(0)});
        }
    };
    check("unreduced", spec.unreduced);
    check("reduced", spec.reduced);
    return problems;
}

/// The named axes that are larger than 1, in mesh order.
AxisRefs axesOf(const std::vector<std::string>& names, const char* set, const Mesh& mesh, Problems& problems)
{
    AxisRefs axes;
    for (const std::string& name : names) {
        const auto index = mesh.findAxis(name);
        if (!index)
            problems.push_back({"MW1102", fmt::format("{} axis \"{}\" is not found in the mesh {}", set, name, mesh.text()),
                suggestion(name, mesh.axisNames())});
        else if (mesh.axes()[*index].size > 1)
            axes.push_back(wholeAxis(mesh, *index));
    }
    std::sort(axes.begin(), axes.end());
    return axes;
}

} // namespace

Result<JaxSpec> parseJaxSpec(std::string_view text)
{
    auto read = readSpecText(text);
    if (!read)
        return read.error();
    Problems problems = doubles(read->spec);
    if (!problems.empty())
        return problems;
    return std::move(read->spec);
}

Result<SpecSharding> onMesh(const JaxSpec& spec, std::optional<std::size_t> rank, const Mesh& mesh)
{
    PartitionSpec placed;
    for (const JaxSpec::Entry& entry : spec.dims)
        placed.dims.push_back(entry.axes);
    Problems problems;
    SpecSharding found;
    auto sharding = toTensorSharding(placed, rank.value_or(spec.dims.size()), mesh);
    if (!sharding)
        problems = sharding.error();
    else
        found.sharding = *std::move(sharding);
    found.sharding.unreduced = axesOf(spec.unreduced, "unreduced", mesh, problems);
    found.sharding.unreducedKind = spec.unreducedKind;
    found.reduced = axesOf(spec.reduced, "reduced", mesh, problems);
    if (!problems.empty())
        return problems;
    for (std::size_t dim = 0; dim < spec.dims.size(); ++dim)
        found.sharding.dims[dim].open = spec.dims[dim].unconstrained;
    return found;
}

Problem noNameForPart(const AxisRef& part, const Mesh& mesh, std::string_view notation)
{
    const MeshAxis& axis = mesh.axes()[static_cast<std::size_t>(part.axis)];
    const std::int64_t post = axis.size / (part.pre * part.size);
    std::vector<std::string> axes;
    for (const std::int64_t size : {part.pre, part.size, post}) {
        if (size > 1)
            axes.push_back(fmt::format("{}_{}={}", axis.name, axes.size(), size));
    }
    return {"MW1161", fmt::format("{} has no name for a part of a mesh axis: {}", notation, axisText(part, mesh)),
        fmt::format("split the axis {}={} of the mesh into {}", axis.name, axis.size, join(axes, ",")), {}, Severity::Error,
        "only whole axes have names there"};
}

Result<JaxSpec> jaxSpecOf(const TensorSharding& sharding, const AxisRefs& reduced, const Mesh& mesh)
{
    Problems problems;
    const auto namesOf = [&](const AxisRefs& axes) {
        std::vector<std::string> names;
        for (const AxisRef& axis : axes) {
            const auto index = static_cast<std::size_t>(axis.axis);
            if (axis != wholeAxis(mesh, index))
                problems.push_back(noNameForPart(axis, mesh, "a PartitionSpec"));
            names.push_back(mesh.axes()[index].name);
        }
        return names;
    };
    JaxSpec spec;
    for (const DimSharding& dim : sharding.dims)
        spec.dims.push_back({namesOf(dim.axes), dim.open && dim.axes.empty()});
    spec.unreduced = namesOf(sharding.unreduced);
    spec.unreducedKind = sharding.unreducedKind;
    spec.reduced = namesOf(reduced);
    if (!problems.empty())
        return problems;
    return spec;
}

namespace {

constexpr std::array<std::string_view, 3> kAxisTypeNames = {"Auto", "Explicit", "Manual"};

} // namespace

std::string jaxMeshText(const Mesh& mesh, std::span<const AxisType> types)
{
    std::vector<std::string> axes;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
        axes.push_back(fmt::format("'{}': {}", mesh.axes()[i].name, mesh.axes()[i].size));
        names.emplace_back(kAxisTypeNames[static_cast<std::size_t>(i < types.size() ? types[i] : AxisType::Auto)]);
    }
    if (axes.empty())
        return "Mesh()";
    return fmt::format("Mesh({}, axis_types=({}{}))", join(axes, ", "), join(names, ", "), names.size() == 1 ? "," : "");
}

namespace {

/// Reads the printed forms of a mesh: entries `'x': 2` or keywords.
class JaxMeshReader {
public:
    explicit JaxMeshReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<TypedMesh> read()
    {
        m_cursor.take("jax.sharding.");
        m_cursor.take("Abstract");
        const bool isTorch = m_cursor.take("DeviceMesh(");
        const bool good = isTorch ? readTorch() : m_cursor.take("Mesh") && m_cursor.take("(") && readArguments();
        if (!good || !m_cursor.atEnd())
            return problem();
        auto mesh = made();
        if (!mesh)
            return mesh.error();
        if (!m_types.empty() && m_types.size() != mesh->axes().size())
            return Problem{"MW1119", fmt::format("the mesh has {} axes and {} axis types", mesh->axes().size(), m_types.size()),
                "give one of Auto, Explicit and Manual for each axis"};
        return TypedMesh{*std::move(mesh), std::move(m_types)};
    }

private:
    Result<Mesh> made()
    {
        std::vector<MeshAxis> axes = std::move(m_axes);
        if (axes.empty() && m_names.size() == m_sizes.size()) {
            for (std::size_t i = 0; i < m_names.size(); ++i)
                axes.push_back({m_names[i], m_sizes[i]});
        } else if (m_names.size() != m_sizes.size()) {
            return Mesh::fromArray(m_sizes, std::move(m_devices), m_names);
        }
        return Mesh::create(std::move(axes), std::move(m_devices));
    }

    Problem problem()
    {
        return m_cursor.expected("MW1119", "mesh", "an entry such as 'x': 2", "write Mesh('x': 2, 'y': 4), or x=2,y=4");
    }

    /// What stands in the brackets of PyTorch's `DeviceMesh(..)`: the kind of device and an array of ranks with the names of its dimensions, or
    /// `(x=2, y=4)` with or without names.
    bool readTorch()
    {
        m_cursor.quoted(); // the kind of device
        m_cursor.take(",");
        const bool isTensor = m_cursor.take("tensor(");
        if (m_cursor.peek("[")) {
            if (!readDevices() || (isTensor && !m_cursor.take(")")))
                return false;
        } else if (!m_cursor.take("(") || !readTorchSizes()) {
            return false;
        }
        while (m_cursor.take(",")) {
            if (m_cursor.take("mesh_dim_names=")) {
                if (!readNames())
                    return false;
            } else if (m_cursor.quoted()) {
                continue; // the kind of device
            } else {
                m_cursor.word(); // device, stride and whatever else
                if (!m_cursor.take("=") && !m_cursor.take(":"))
                    return false;
                if (m_cursor.take("(") ? !m_cursor.untilClosed() : !m_cursor.quoted() && m_cursor.word().empty())
                    return false;
            }
        }
        if (m_axes.empty() && m_names.empty()) {
            for (std::size_t i = 0; i < m_sizes.size(); ++i)
                m_names.push_back(fmt::format("dim_{}", i));
        }
        return m_cursor.take(")");
    }

    /// `x=2, y=4)` or `2, 4)`.
    bool readTorchSizes()
    {
        while (!m_cursor.take(")")) {
            if (const auto size = m_cursor.integer()) {
                m_sizes.push_back(*size);
            } else {
                const auto quoted = m_cursor.quoted();
                std::string name = quoted ? *quoted : std::string(m_cursor.word());
                if ((!m_cursor.take("=") && !m_cursor.take(":")) || !readAxis(std::move(name)))
                    return false;
            }
            if (!m_cursor.take(",") && !m_cursor.peek(")"))
                return false;
        }
        return m_axes.empty() || m_sizes.empty();
    }

    bool readArguments()
    {
        m_cursor.take("OrderedDict(");
        while (!m_cursor.take(")")) {
            if (auto name = m_cursor.quoted()) {
                if (!m_cursor.take(":") || !readAxis(*std::move(name)))
                    return false;
            } else if (m_cursor.take("[") || m_cursor.take("{")) {
                if (!readPairs())
                    return false;
            } else if (!readKeyword()) {
                return false;
            }
            if (!m_cursor.take(",") && !m_cursor.peek(")"))
                return false;
        }
        m_cursor.take(")"); // of OrderedDict
        return true;
    }

    bool readAxis(std::string name)
    {
        const auto size = m_cursor.integer();
        if (size)
            m_axes.push_back({std::move(name), *size});
        return size.has_value();
    }

    /// `('x', 2), ('y', 4)]` or `'x': 2, 'y': 4}`.
    bool readPairs()
    {
        while (!m_cursor.take("]") && !m_cursor.take("}")) {
            const bool tuple = m_cursor.take("(");
            auto name = m_cursor.quoted();
            if (!name || !m_cursor.take(tuple ? "," : ":") || !readAxis(*std::move(name)) || (tuple && !m_cursor.take(")")))
                return false;
            m_cursor.take(",");
        }
        return true;
    }

    bool readKeyword()
    {
        const std::size_t at = m_cursor.at();
        const std::string_view word = m_cursor.word();
        if (!m_cursor.take("=")) {
            m_cursor.goTo(at);
            return false;
        }
        if (word == "axis_names")
            return readNames();
        if (word == "axis_sizes") {
            std::int64_t depth = 0;
            return readNested(m_sizes, depth);
        }
        if (word == "device_ids" || word == "devices") {
            const bool isArray = m_cursor.take("array(");
            return readDevices() && (!isArray || m_cursor.take(")"));
        }
        if (word == "axis_types" && m_cursor.take("("))
            return readTypes();
        if (word != "axis_types" && word != "abstract_device" && word != "device_kind" && word != "num_cores") {
            m_cursor.goTo(at);
            return false;
        }
        if (m_cursor.take("{"))
            return m_cursor.untilClosed().has_value();
        if (m_cursor.quoted())
            return true;
        if (m_cursor.word().empty())
            return false;
        return !m_cursor.take("(") || m_cursor.untilClosed();
    }

    /// `Auto, AxisType.Explicit)`.
    bool readTypes()
    {
        while (!m_cursor.take(")")) {
            std::string_view name = m_cursor.name();
            name.remove_prefix(std::min(name.rfind('.') + 1, name.size()));
            const auto type = std::find(kAxisTypeNames.begin(), kAxisTypeNames.end(), name);
            if (type == kAxisTypeNames.end())
                return false;
            m_types.push_back(static_cast<AxisType>(type - kAxisTypeNames.begin()));
            if (!m_cursor.take(",") && !m_cursor.peek(")"))
                return false;
        }
        return true;
    }

    bool readNames()
    {
        const bool list = m_cursor.take("(") || m_cursor.take("[");
        do {
            auto name = m_cursor.quoted();
            if (!name)
                break;
            m_names.push_back(*std::move(name));
        } while (m_cursor.take(","));
        return !list || m_cursor.take(")") || m_cursor.take("]");
    }

    /// `(2, 4)` or `(2,)`.
    bool readNested(std::vector<std::int64_t>& values, std::int64_t& depth)
    {
        if (!m_cursor.take("(") && !m_cursor.take("["))
            return false;
        ++depth;
        while (!m_cursor.take(")") && !m_cursor.take("]")) {
            const auto value = m_cursor.integer();
            if (!value)
                return false;
            values.push_back(*value);
            m_cursor.take(",");
        }
        return true;
    }

    /// Nested lists of ids, with commas or without as NumPy prints them. The number of lists at each depth gives the shape.
    bool readDevices()
    {
        std::vector<std::int64_t> lists; // at each depth
        std::size_t depth = 0;
        do {
            if (m_cursor.take("[")) {
                ++depth;
                if (lists.size() < depth)
                    lists.push_back(0);
                ++lists[depth - 1];
            } else if (depth > 0 && m_cursor.take("]")) {
                --depth;
            } else if (const auto id = m_cursor.integer(); id && depth > 0) {
                m_devices.push_back(*id);
            } else if (!m_cursor.take(",")) {
                return false;
            }
        } while (depth > 0);
        lists.push_back(static_cast<std::int64_t>(m_devices.size()));
        m_sizes.clear();
        for (std::size_t i = 0; i + 1 < lists.size(); ++i)
            m_sizes.push_back(lists[i] == 0 ? 0 : lists[i + 1] / lists[i]);
        return true;
    }

    TextCursor m_cursor;
    std::vector<MeshAxis> m_axes;
    std::vector<std::string> m_names;
    std::vector<std::int64_t> m_sizes;
    std::vector<DeviceId> m_devices;
    std::vector<AxisType> m_types;
};

} // namespace

Result<TypedMesh> parseTypedMesh(std::string_view text)
{
    const std::string_view inside = trimmed(text);
    if (inside.find('(') != std::string_view::npos)
        return JaxMeshReader(inside).read();
    auto mesh = parseMesh(inside);
    if (!mesh)
        return mesh.error();
    return TypedMesh{*std::move(mesh), {}};
}

Result<Mesh> parseJaxMesh(std::string_view text)
{
    auto mesh = parseTypedMesh(text);
    if (!mesh)
        return mesh.error();
    return std::move(mesh->mesh);
}

JaxSpec specInType(const JaxSpec& spec, const Mesh& mesh, std::span<const AxisType> types, std::size_t rank)
{
    const auto isExplicit = [&](const std::string& name) {
        const auto index = mesh.findAxis(name);
        return index && *index < types.size() && types[*index] == AxisType::Explicit;
    };
    JaxSpec kept = spec;
    kept.dims.resize(std::max(rank, spec.dims.size()));
    for (JaxSpec::Entry& entry : kept.dims) {
        std::erase_if(entry.axes, [&](const std::string& name) { return !isExplicit(name); });
        entry.unconstrained = false;
    }
    std::erase_if(kept.unreduced, [&](const std::string& name) { return !isExplicit(name); });
    std::erase_if(kept.reduced, [&](const std::string& name) { return !isExplicit(name); });
    return kept;
}

bool isDtypeName(std::string_view name)
{
    const auto found = findElementName(name, {TypeSpelling::Hlo, TypeSpelling::Jax, TypeSpelling::JaxShort});
    return found && !elementNames()[*found].jax.empty();
}

std::string jaxTypeText(const JaxType& type)
{
    std::vector<std::string> dims;
    for (std::size_t dim = 0; dim < type.shape.size(); ++dim) {
        std::string text = std::to_string(type.shape[dim]);
        if (dim < type.spec.dims.size()) {
            const auto& axes = type.spec.dims[dim].axes;
            if (axes.size() == 1)
                text += "@" + axes.front();
            else if (axes.size() > 1)
                text += fmt::format("@({})", join(axes, ","));
        }
        dims.push_back(std::move(text));
    }
    std::vector<std::string> sets;
    const auto add = [&](const std::string& prefix, const std::vector<std::string>& axes) {
        if (axes.size() == 1)
            sets.push_back(prefix + ":" + axes.front());
        else if (axes.size() > 1)
            sets.push_back(fmt::format("{}:({})", prefix, join(axes, ",")));
    };
    add("V", type.varying);
    add(type.spec.unreducedKind == ReduceKind::Sum ? "U" : fmt::format("U_{}", reduceKindName(type.spec.unreducedKind)),
        type.spec.unreduced);
    add("R", type.spec.reduced);
    return fmt::format("{}{}[{}]{}", type.dtype, type.memorySpace.empty() ? "" : "<" + type.memorySpace + ">", join(dims, ","),
        sets.empty() ? "" : "{" + join(sets, ", ") + "}");
}

namespace {

class JaxTypeReader {
public:
    explicit JaxTypeReader(std::string_view text)
        : m_cursor(text)
    {
    }

    Result<JaxType> read()
    {
        JaxType type;
        if (!readAll(type))
            return m_cursor.expected("MW1167", "type", m_wanted, "write f32[8@x,4]: each size with the axes that split it");
        std::set<std::string> seen;
        Problems problems;
        const auto check = [&](const std::vector<std::string>& axes) {
            for (const std::string& axis : axes) {
                if (!seen.insert(axis).second)
                    problems.push_back({"MW1103", fmt::format("axis \"{}\" is used twice in the type", axis),
                        "use each axis in one place", TextCursor::placeAt(0)});
            }
        };
        for (const JaxSpec::Entry& entry : type.spec.dims)
            check(entry.axes);
        check(type.spec.unreduced);
        check(type.spec.reduced);
        check(type.varying);
        if (!problems.empty())
            return problems;
        return type;
    }

private:
    bool fail(const char* wanted)
    {
        m_wanted = wanted;
        return false;
    }

    bool readAll(JaxType& type)
    {
        type.dtype = std::string(m_cursor.word());
        if (!isDtypeName(type.dtype)) {
            m_cursor.goTo(0);
            return fail("an element type such as f32");
        }
        if (m_cursor.take("<")) { // the memory space
            type.memorySpace = std::string(m_cursor.word());
            if (!m_cursor.take(">"))
                return fail("\">\"");
        }
        if (!m_cursor.take("["))
            return fail("\"[\"");
        while (!m_cursor.take("]")) {
            const auto size = m_cursor.integer();
            if (!size || *size < 0)
                return fail("the size of a dimension");
            type.shape.push_back(*size);
            JaxSpec::Entry entry;
            if (m_cursor.take("@") && !readAxes(entry.axes))
                return false;
            type.spec.dims.push_back(std::move(entry));
            if (!m_cursor.take(",") && !m_cursor.peek("]"))
                return fail("\"@\", \",\" or \"]\"");
        }
        if (m_cursor.take("{") && !readSets(type))
            return false;
        return m_cursor.atEnd() || fail("the end of the type");
    }

    bool readAxes(std::vector<std::string>& axes)
    {
        const bool several = m_cursor.take("(");
        do {
            const auto quoted = m_cursor.quoted();
            std::string name = quoted ? *quoted : std::string(m_cursor.name());
            if (name.empty())
                return fail("the name of an axis");
            axes.push_back(std::move(name));
        } while (several && m_cursor.take(","));
        return !several || m_cursor.take(")") || fail("\")\"");
    }

    bool readSets(JaxType& type)
    {
        while (!m_cursor.take("}")) {
            const std::string_view set = m_cursor.word();
            std::vector<std::string>* axes = nullptr;
            if (set == "V") {
                axes = &type.varying;
            } else if (set == "R") {
                axes = &type.spec.reduced;
            } else if (set.starts_with('U')) {
                const auto kind = set == "U" ? ReduceKind::Sum : reduceKindOf(set.starts_with("U_") ? set.substr(2) : set);
                if (!kind)
                    return fail("U, or U_ and the kind of reduction");
                type.spec.unreducedKind = *kind;
                axes = &type.spec.unreduced;
            }
            if (axes == nullptr)
                return fail("V, U or R");
            if (!m_cursor.take(":"))
                return fail("\":\"");
            if (!readAxes(*axes))
                return false;
            if (!m_cursor.take(",") && !m_cursor.peek("}"))
                return fail("\",\" or \"}\"");
        }
        return true;
    }

    TextCursor m_cursor;
    const char* m_wanted = "";
};

} // namespace

Result<JaxType> parseJaxType(std::string_view text)
{
    return JaxTypeReader(text).read();
}

} // namespace meshwright
