// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shardy_text.h"

#include "core/sharding/tile_assignment.h"
#include "core/support/text.h"
#include "core/support/text_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

constexpr const char* kShardyFix = "write [{\"data\"}, {}] with one entry in braces for each dimension";

void checkList(const AxisRefs& axes, const Mesh& mesh, Problems& problems)
{
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
        // Parts that are wrong may be of any size.
        if (std::max({axes[i].pre, axes[i].size, axes[i + 1].size}) > kLargestMesh)
            continue;
        if (axes[i].axis >= 0 && axes[i].axis == axes[i + 1].axis && axes[i].pre * axes[i].size == axes[i + 1].pre
            && axes[i + 1].size > 1)
            problems.push_back({"MW1144",
                fmt::format(
                    "two consecutive sub-axes can be merged: {}, {}", axisText(axes[i], mesh), axisText(axes[i + 1], mesh)),
                fmt::format("write {}", axisText({axes[i].axis, axes[i].pre, axes[i].size * axes[i + 1].size}, mesh))});
    }
}

class ShardyReader {
public:
    ShardyReader(std::string_view text, const Mesh& mesh)
        : m_cursor(text)
        , m_mesh(mesh)
    {
    }

    Result<TensorSharding> read()
    {
        TensorSharding sharding;
        const bool complete = readAll(sharding);
        if (!complete && m_problems.empty())
            m_problems.push_back(m_cursor.expected("MW1140", "Shardy sharding", m_wanted, kShardyFix));
        // Parts that are wrong may also continue each other; what else is wrong with the whole needs sound parts.
        Problems more;
        if (m_problems.empty()) {
            more = shardingProblems(sharding, m_mesh);
        } else if (complete) {
            for (const DimSharding& dim : sharding.dims)
                checkList(dim.axes, m_mesh, more);
            checkList(sharding.replicated, m_mesh, more);
            checkList(sharding.unreduced, m_mesh, more);
        }
        for (Problem& problem : more)
            problem.place = TextCursor::placeAt(0);
        append(m_problems, std::move(more));
        if (!m_problems.empty())
            return m_problems;
        return sharding;
    }

private:
    bool want(const char* token)
    {
        m_wanted = fmt::format("\"{}\"", token);
        return m_cursor.take(token);
    }

    bool fail(const char* wanted)
    {
        m_wanted = wanted;
        return false;
    }

    bool readAll(TensorSharding& sharding)
    {
        if (!want("["))
            return false;
        while (!m_cursor.take("]")) {
            DimSharding dim;
            if (!want("{") || !readAxes(dim.axes, &dim.open) || !readPriority(dim))
                return false;
            sharding.dims.push_back(std::move(dim));
            if (!m_cursor.take(",") && !m_cursor.peek("]"))
                return fail("\",\" or \"]\"");
        }
        bool hasReplicated = false;
        bool hasUnreduced = false;
        while (m_cursor.take(",")) {
            if (!hasReplicated && m_cursor.take("replicated")) {
                hasReplicated = true;
                if (!want("=") || !want("{") || !readAxes(sharding.replicated, nullptr))
                    return false;
            } else if (!hasUnreduced && m_cursor.take("unreduced")) {
                hasUnreduced = true;
                if (!want("="))
                    return false;
                for (const ReduceKind kind :
                    {ReduceKind::Max, ReduceKind::Min, ReduceKind::Product, ReduceKind::And, ReduceKind::Or}) {
                    if (m_cursor.take(reduceKindName(kind)))
                        sharding.unreducedKind = kind; // without a word: a sum
                }
                if (!want("{") || !readAxes(sharding.unreduced, nullptr))
                    return false;
            } else {
                return fail("replicated={..} or unreduced={..}");
            }
        }
        return m_cursor.atEnd() || fail("the end of the sharding");
    }

    bool readPriority(DimSharding& dim)
    {
        if (!m_cursor.take("p"))
            return true;
        const auto priority = m_cursor.integer();
        if (!priority || *priority < 0 || *priority > 1'000'000)
            return fail("a priority: p0, p1 and so on");
        dim.priority = static_cast<int>(*priority);
        return true;
    }

    /// The axes up to the closing brace; `open` becomes true at a question mark, where one may stand.
    bool readAxes(AxisRefs& axes, bool* open)
    {
        while (!m_cursor.take("}")) {
            if (open != nullptr && m_cursor.take("?")) {
                *open = true;
                return want("}");
            }
            if (!readAxis(axes))
                return false;
            if (!m_cursor.take(",") && !m_cursor.peek("}"))
                return fail("\",\" or \"}\"");
        }
        return true;
    }

    bool readAxis(AxisRefs& axes)
    {
        m_cursor.atEnd();
        const std::size_t at = m_cursor.at();
        const auto quoted = m_cursor.quoted();
        const std::string name = quoted ? *quoted : std::string(m_cursor.word());
        if (name.empty())
            return fail("the name of an axis");
        const auto index = m_mesh.findAxis(name);
        if (!index)
            m_problems.push_back({"MW1102", fmt::format("unknown axis name: \"{}\"", name), suggestion(name, m_mesh.axisNames()),
                TextCursor::placeAt(at)});
        AxisRef axis = index ? wholeAxis(m_mesh, *index) : AxisRef{-1, 1, 1};
        if (m_cursor.take(":")) {
            if (!want("("))
                return false;
            const auto pre = m_cursor.integer();
            if (!pre)
                return fail("the size before the part");
            if (!want(")"))
                return false;
            const auto size = m_cursor.integer();
            if (!size)
                return fail("the size of the part");
            if (index)
                checkPart(*index, *pre, *size, at);
            axis.pre = *pre;
            axis.size = *size;
        }
        axes.push_back(axis);
        return true;
    }

    /// A part that is written like a part but is the whole cannot be reported from the whole later on.
    void checkPart(std::size_t index, std::int64_t pre, std::int64_t size, std::size_t at)
    {
        const MeshAxis& axis = m_mesh.axes()[index];
        const std::string text = fmt::format("\"{}\":({}){}", axis.name, pre, size);
        const auto problem = [&](const std::string& what) {
            m_problems.push_back({"MW1141", fmt::format("{}: {}", what, text),
                fmt::format("write (pre)size with pre * size dividing {} and a size from 2 to {}", axis.size, axis.size / 2),
                TextCursor::placeAt(at)});
        };
        if (pre < 1)
            problem("sub-axis pre-size must be at least 1");
        else if (size < 2)
            problem("sub-axis sizes must be greater than 1");
        else if (pre > axis.size || size > axis.size || axis.size % (pre * size) != 0)
            problem(fmt::format("sub-axis next pre-size {} doesn't divide the size of the full axis {}",
                pre > kLargestMesh || size > kLargestMesh ? "of more than the largest mesh" : std::to_string(pre * size),
                axis.size));
        else if (size == axis.size)
            problem("sub-axis size is equal to the full axis size");
    }

    TextCursor m_cursor;
    const Mesh& m_mesh;
    Problems m_problems;
    std::string m_wanted;
};

void checkPairs(const AxisRefs& all, const Mesh& mesh, Problems& problems)
{
    std::set<std::string> reported;
    const auto report = [&](Problem problem) {
        if (reported.insert(problem.message).second)
            problems.push_back(std::move(problem));
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = i + 1; j < all.size(); ++j) {
            if (all[i].axis != all[j].axis)
                continue;
            const AxisRef& first = std::min(all[i], all[j]);
            const AxisRef& second = std::max(all[i], all[j]);
            const AxisRef whole = wholeAxis(mesh, static_cast<std::size_t>(first.axis));
            const std::string& name = mesh.axes()[static_cast<std::size_t>(first.axis)].name;
            if (first == second)
                report({"MW1103", fmt::format("duplicate axis ref: {}", axisText(first, mesh)), "use each axis once"});
            else if (first == whole || second == whole)
                report({"MW1142", fmt::format("both sub-axis and full-axis are used for axis name: \"{}\"", name),
                    "use parts of the axis that do not overlap, or the whole axis once"});
            else if (overlaps(first, second))
                report({"MW1142", fmt::format("overlapping sub-axes: {}, {}", axisText(first, mesh), axisText(second, mesh)),
                    "use parts of the axis that do not overlap"});
            else if (!areIndependent(first, second))
                report({"MW1142", fmt::format("sub-axes {} and {} cannot coexist", axisText(first, mesh), axisText(second, mesh)),
                    "use parts that are digits of one way to factor the axis"});
        }
    }
}

/// The part is one: for shardings that were not read from a text.
void checkParts(const AxisRefs& axes, const Mesh& mesh, Problems& problems)
{
    for (const AxisRef& axis : axes) {
        const AxisRef whole = wholeAxis(mesh, static_cast<std::size_t>(axis.axis));
        if (axis != whole
            && (axis.pre < 1 || axis.size < 2 || axis.pre > whole.size || axis.size > whole.size
                || whole.size % (axis.pre * axis.size) != 0))
            problems.push_back({"MW1141", fmt::format("{} is not a part of an axis of size {}", axisText(axis, mesh), whole.size),
                "give a pre-size and a size whose product divides the axis"});
    }
}

} // namespace

Problems shardingProblems(const TensorSharding& sharding, const Mesh& mesh, std::optional<std::size_t> rank)
{
    Problems problems;
    if (mesh.axes().empty()) {
        // A mesh of one device: XLA's maximal sharding, whatever the rank of the array. A sharding of ours may list whole dimensions.
        const bool plain
            = std::all_of(sharding.dims.begin(), sharding.dims.end(), [](const DimSharding& dim) { return dim.axes.empty(); });
        if (!plain || !sharding.replicated.empty() || !sharding.unreduced.empty())
            problems.push_back(
                {"MW1146", "a maximal sharding can only have a sharding with rank 0 and no replicated or unreduced axes",
                    "write [] for a mesh without axes"});
        return problems;
    }
    if (rank && sharding.dims.size() != *rank)
        problems.push_back({"MW1145", fmt::format("sharding doesn't match tensor rank: {} != {}", sharding.dims.size(), *rank),
            fmt::format("give {} entries", *rank)});

    AxisRefs all;
    for (std::size_t dim = 0; dim < sharding.dims.size(); ++dim) {
        const DimSharding& entry = sharding.dims[dim];
        all.insert(all.end(), entry.axes.begin(), entry.axes.end());
        if (entry.priority != 0 && entry.axes.empty() && !entry.open)
            problems.push_back({"MW1147", fmt::format("dim {} is empty and closed but has a priority ({})", dim, entry.priority),
                "drop the priority, or open the dimension with ?"});
    }
    all.insert(all.end(), sharding.replicated.begin(), sharding.replicated.end());
    all.insert(all.end(), sharding.unreduced.begin(), sharding.unreduced.end());
    checkParts(all, mesh, problems);
    if (!problems.empty())
        return problems;
    checkPairs(all, mesh, problems);
    for (const DimSharding& dim : sharding.dims)
        checkList(dim.axes, mesh, problems);
    for (const auto& [name, axes] :
        {std::pair{"replicated", &sharding.replicated}, std::pair{"unreduced", &sharding.unreduced}}) {
        if (!std::is_sorted(axes->begin(), axes->end()))
            problems.push_back({"MW1143", fmt::format("{} axes are not ordered w.r.t. mesh", name),
                fmt::format("list them in the order {}", mesh.text())});
        checkList(*axes, mesh, problems);
    }
    return problems;
}

Result<TensorSharding> parseShardy(std::string_view text, const Mesh& mesh)
{
    return parseShardy(text, mesh, mesh.axes().empty());
}

Result<TensorSharding> parseShardy(std::string_view text, const Mesh& mesh, bool isMaximal)
{
    if (isMaximal && trimmed(text) != "[]")
        return Problem{"MW1146", "a maximal sharding can only have a sharding with rank 0 and no replicated or unreduced axes",
            "write [] for a mesh without axes", TextCursor::placeAt(0)};
    return ShardyReader(text, mesh).read();
}

Result<ShardyMesh> parseShardyMesh(std::string_view text)
{
    TextCursor cursor(text);
    std::vector<MeshAxis> axes;
    std::vector<DeviceId> order;
    const auto wrong
        = [&](const char* wanted) { return cursor.expected("MW1119", "mesh", wanted, "write mesh<[\"a\"=2, \"b\"=4]>"); };
    const auto closes = [&] { return cursor.take(",") || cursor.peek("]"); };
    if (!cursor.take("["))
        return wrong("\"[\"");
    while (!cursor.take("]")) {
        auto name = cursor.quoted();
        if (!name || !cursor.take("="))
            return wrong("an axis such as \"a\"=2");
        const auto size = cursor.integer();
        if (!size)
            return wrong("the size of the axis");
        axes.push_back({*std::move(name), *size});
        if (!closes())
            return wrong("\",\" or \"]\"");
    }
    const bool hasIds = cursor.take(",");
    if (hasIds) {
        if (!cursor.take("device_ids") || !cursor.take("=") || !cursor.take("["))
            return wrong("\"device_ids=[\"");
        while (!cursor.take("]")) {
            const auto id = cursor.integer();
            if (!id)
                return wrong("a device id");
            order.push_back(*id);
            if (!closes())
                return wrong("\",\" or \"]\"");
        }
    }
    if (!cursor.atEnd())
        return wrong("the end of the mesh");
    const bool isMaximal = axes.empty() && hasIds;
    auto mesh = Mesh::create(std::move(axes), std::move(order));
    if (!mesh)
        return mesh.error();
    return ShardyMesh{*std::move(mesh), isMaximal};
}

std::string xlaNamedText(const TensorSharding& sharding, const Mesh& mesh)
{
    if (mesh.axes().empty())
        return fmt::format("{{maximal_mesh[device_id={}], []}}", mesh.deviceAt(0));
    std::vector<std::string> axes;
    for (const MeshAxis& axis : mesh.axes())
        axes.push_back(fmt::format("'{}'={}", axis.name, axis.size));
    std::string body = shardyText(sharding, mesh);
    std::replace(body.begin(), body.end(), '"', '\'');
    const std::string devices
        = mesh.hasDefaultOrder() ? "" : fmt::format(", device_ids=({})", fmt::join(mesh.deviceOrder(), ","));
    return fmt::format("{{mesh[{}]{}, {}}}", join(axes, ","), devices, body);
}

namespace {

/// The problems of a part of a text in the columns of the whole.
Problems movedRight(Problems problems, std::size_t offset)
{
    for (Problem& problem : problems) {
        if (problem.place.column > 0)
            problem.place.column += static_cast<int>(offset);
    }
    return problems;
}

} // namespace

Result<MeshedSharding> parseXlaNamed(std::string_view text)
{
    const auto subject = "sharding with a mesh";
    const auto fix = "write {mesh['data'=4,'model'=2], [{'data'}, {}]}";
    TextCursor cursor(text);
    if (!cursor.take("{"))
        return cursor.expected("MW1140", subject, "\"{\"", fix);
    std::vector<MeshAxis> axes;
    std::vector<DeviceId> order;
    if (cursor.take("maximal_mesh[device_id=")) {
        const auto device = cursor.integer();
        if (!device || !cursor.take("]"))
            return cursor.expected("MW1140", subject, "a device id and \"]\"", fix);
        order.push_back(*device);
    } else {
        if (!cursor.take("mesh["))
            return cursor.expected("MW1140", subject, "\"mesh[\"", fix);
        while (!cursor.take("]")) {
            const auto quoted = cursor.quoted();
            const std::string name = quoted ? *quoted : std::string(cursor.word());
            if (name.empty() || !cursor.take("="))
                return cursor.expected("MW1140", subject, "an axis with its size", fix);
            const auto size = cursor.integer();
            if (!size)
                return cursor.expected("MW1140", subject, "the size of the axis", fix);
            axes.push_back({name, *size});
            if (!cursor.take(",") && !cursor.peek("]"))
                return cursor.expected("MW1140", subject, "\",\" or \"]\"", fix);
        }
        const std::size_t before = cursor.at();
        if (cursor.take(",") && cursor.take("device_ids") && cursor.take("=") && cursor.take("(")) {
            const auto inside = cursor.untilClosed();
            if (!inside)
                return cursor.expected("MW1140", subject, "\")\" after the device ids", fix);
            auto ids = parseDeviceIds(*inside);
            if (!ids)
                return movedRight(ids.error(), static_cast<std::size_t>(inside->data() - text.data()));
            order = *std::move(ids);
        } else {
            cursor.goTo(before);
        }
    }
    const auto mesh = Mesh::create(std::move(axes), std::move(order));
    if (!mesh)
        return mesh.error();
    std::string_view rest = trimmed(cursor.rest());
    if (!rest.starts_with(',') || !rest.ends_with('}'))
        return cursor.expected("MW1140", subject, "\", [..]}\"", fix);
    rest = rest.substr(1, rest.size() - 2);
    const std::size_t offset = static_cast<std::size_t>(rest.data() - text.data());
    auto sharding = parseShardy(rest, *mesh);
    if (!sharding)
        return movedRight(sharding.error(), offset);
    return MeshedSharding{*mesh, *std::move(sharding)};
}

} // namespace meshwright
