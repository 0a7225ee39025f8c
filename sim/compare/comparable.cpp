// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/comparable.h"

#include "core/program/type.h"
#include "core/sharding/partition_spec.h"
#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

/// An object of MaxText's named shardings: its members have a spec each.
bool isNamedShardings(const Json& json)
{
    return json.is_object() && !json.empty() && std::all_of(json.begin(), json.end(), [](const Json& one) {
        return one.is_object() && one.contains("partition_spec");
    });
}

/// "f32[784,8192]" taken apart; nothing when the text has another form.
std::optional<TensorType> typeOf(std::string_view text)
{
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || !text.ends_with(']'))
        return std::nullopt;
    const auto dtype = parseDType(text.substr(0, open));
    if (!dtype)
        return std::nullopt;
    TensorType type{*dtype, {}};
    const std::string_view sizes = text.substr(open + 1, text.size() - open - 2);
    if (sizes.empty())
        return type;
    for (const std::string& size : split(sizes, ',')) {
        const auto number = parseInteger(trimmed(size));
        if (!number || *number < 0)
            return std::nullopt;
        type.shape.push_back(*number);
    }
    return type;
}

class ResultReader {
public:
    ResultReader(const Json& json, const std::string& file)
        : m_json(json)
        , m_reader("MW1812", file)
    {
        m_result.file = file;
    }

    Result<Comparable> read(const std::string& kind)
    {
        m_result.kind = kind;
        if (kind == "simulation")
            readSimulation();
        else if (kind == "training")
            readTraining();
        else if (kind == "search")
            readSearch();
        else if (kind == "sweep")
            readSweep();
        else if (kind == "problems")
            readProblems();
        else if (kind == "propagation")
            readPropagation();
        else if (kind == "partition")
            readPartition();
        else
            readNamedShardings();
        if (!m_reader.problems().empty())
            return m_reader.problems();
        return std::move(m_result);
    }

private:
    // ---- what several results have

    /// `[["data", 4], ["model", 2]]`, `{"data": 4}` or `data=4,model=2`.
    std::optional<std::vector<MeshAxis>> meshOf(const Json& value, const std::string& path)
    {
        std::vector<MeshAxis> axes;
        if (value.is_string()) {
            const std::string text = value.get<std::string>();
            const auto mesh = parseMesh(text == "one device" ? std::string() : text);
            if (mesh)
                return mesh->axes();
        } else if (value.is_object()) {
            for (const auto& [name, size] : value.items())
                axes.push_back({name, m_reader.integerOf(size, path + "." + name, 1)});
            return axes;
        } else if (value.is_array()) {
            bool good = true;
            for (const Json& axis : value) {
                good = good && axis.is_array() && axis.size() == 2 && axis[0].is_string() && axis[1].is_number_integer();
                if (good)
                    axes.push_back({axis[0].get<std::string>(), m_reader.integerOf(axis[1], path, 1)});
            }
            if (good)
                return axes;
        }
        m_reader.wrong(path, "expected a mesh: data=4,model=2 or [[\"data\", 4], ...]");
        return std::nullopt;
    }

    void readMesh(const Json& object, const std::string& path)
    {
        if (const Json* mesh = m_reader.member(object, "mesh", path, true))
            m_result.mesh = meshOf(*mesh, JsonReader<Json>::join(path, "mesh"));
    }

    void readCollectives(const Json& object, const std::string& path, const char* member = "collectives")
    {
        if (!m_result.collectives)
            m_result.collectives.emplace();
        m_reader.list(object, member, path, true, [&](const Json& one, const std::string& where) {
            ComparedCollective use;
            use.op = m_reader.text(one, "op", where);
            use.axes = m_reader.text(one, "axes", where);
            use.phase = m_reader.text(one, "phase", where, true);
            if (const Json* cause = m_reader.member(one, "cause", where, true)) {
                use.value = m_reader.text(*cause, "value", where + ".cause", true);
                use.reason = m_reader.text(*cause, "reason", where + ".cause", true);
                use.annotation = m_reader.text(*cause, "annotation", where + ".cause", true);
            }
            use.calls = m_reader.integer(one, "count", where);
            if (m_reader.member(one, "stage", where, true) != nullptr)
                use.stage = m_reader.integer(one, "stage", where);
            // Doubles hold what no machine reaches, and products of two counts do not overflow in them.
            use.bytes = static_cast<std::int64_t>(std::min(
                9e18, static_cast<double>(use.calls) * static_cast<double>(m_reader.integer(one, "bytes_per_device", where))));
            m_result.collectives->push_back(std::move(use));
        });
    }

    void readFigures(const Json& object, const std::string& path)
    {
        if (m_reader.member(object, "step_time_s", path, true) != nullptr)
            m_result.figures.push_back(stepTimeFigure(m_reader.number(object, "step_time_s", path)));
        else if (m_reader.member(object, "model_time_s", path, true) != nullptr)
            m_result.figures.push_back(
                {"model_time_s", "time by the model", Quantity::Seconds, m_reader.number(object, "model_time_s", path)});
        for (const auto& [key, name, quantity] : {std::tuple("compute_s", "compute", Quantity::Seconds),
                 std::tuple("exposed_communication_s", "exposed communication", Quantity::Seconds),
                 std::tuple("bubble_s", "bubble", Quantity::Seconds)}) {
            if (m_reader.member(object, key, path, true) != nullptr)
                m_result.figures.push_back({key, name, quantity, m_reader.number(object, key, path)});
        }
        if (m_reader.member(object, "peak_bytes_per_device", path, true) != nullptr)
            m_result.figures.push_back(peakBytesFigure(m_reader.number(object, "peak_bytes_per_device", path)));
        if (m_reader.member(object, "fits", path, true) != nullptr)
            m_result.fits = m_reader.truth(object, "fits", path);
        m_result.boundBy = m_reader.text(object, "bound_by", path, true);
    }

    void addArray(ComparedArray array)
    {
        if (m_names.insert(array.name).second)
            m_result.arrays->push_back(std::move(array));
    }

    // ---- results

    void readSimulation()
    {
        readMesh(m_json, {});
        readFigures(m_json, {});
        readCollectives(m_json, {});
        readCollectives(m_json, {}, "other_stages");
        if (m_reader.member(m_json, "arrays", {}, true) == nullptr)
            return; // of an earlier version
        m_result.arrays.emplace();
        m_reader.list(m_json, "arrays", {}, false, [&](const Json& one, const std::string& where) {
            ComparedArray array;
            array.name = m_reader.text(one, "name", where);
            array.spec = m_reader.text(one, "spec", where);
            array.pieceBytes = m_reader.integer(one, "bytes_per_device", where);
            setType(array, m_reader.text(one, "type", where));
            m_reader.list(one, "stages", where, true,
                [&](const Json& stage, const std::string& at) { array.stages.push_back(m_reader.integerOf(stage, at)); });
            addArray(std::move(array));
        });
    }

    static void setType(ComparedArray& array, const std::string& text)
    {
        if (const auto type = typeOf(text)) {
            array.dtype = dtypeName(type->dtype);
            array.shape = type->shape;
            if (array.pieceBytes && byteSize(type->dtype) > 0)
                array.pieceElements = *array.pieceBytes / byteSize(type->dtype);
        } else {
            array.dtype = text;
        }
    }

    void readTraining()
    {
        if (const Json* times = m_reader.member(m_json, "step_time_s", {}))
            m_result.figures.push_back(stepTimeFigure(m_reader.number(*times, "median", "step_time_s")));
        m_result.figures.push_back(peakBytesFigure(m_reader.number(m_json, "peak_bytes_per_device", {})));
        bool first = true;
        m_reader.list(m_json, "phases", {}, true, [&](const Json& phase, const std::string& where) {
            if (std::exchange(first, false))
                readMesh(phase, where);
        });
        readCollectives(m_json, {});
    }

    void readSearch()
    {
        bool first = true;
        m_reader.list(m_json, "plans", {}, false, [&](const Json& plan, const std::string& where) {
            if (!std::exchange(first, false))
                return;
            readMesh(plan, where);
            readFigures(plan, where);
            if (m_reader.member(plan, "collectives", where, true) != nullptr)
                readCollectives(plan, where);
            const Json* specs = m_reader.member(plan, "specs", where, true);
            if (specs == nullptr || !specs->is_object())
                return;
            m_result.arrays.emplace();
            for (const auto& [name, spec] : specs->items()) {
                ComparedArray array;
                array.name = name;
                array.spec = spec.is_string() ? spec.get<std::string>() : jsonLine(spec);
                addArray(std::move(array));
            }
        });
        if (first && m_reader.problems().empty())
            m_reader.wrong("plans", "the search found no plan");
    }

    void readSweep()
    {
        const Json* best = m_reader.member(m_json, "best", {});
        if (best == nullptr)
            return;
        if (best->is_null()) {
            m_reader.wrong("best", "no point of the sweep fits");
            return;
        }
        const std::int64_t wanted = m_reader.integerOf(*best, "best");
        std::int64_t index = 0;
        bool found = false;
        m_reader.list(m_json, "rows", {}, false, [&](const Json& row, const std::string& where) {
            if (index++ != wanted)
                return;
            found = true;
            readMesh(row, where);
            readFigures(row, where);
        });
        if (!found && m_reader.problems().empty())
            m_reader.wrong("best", "there is no such row");
    }

    void readProblems()
    {
        m_result.problems.emplace();
        m_reader.list(m_json, "problems", {}, false, [&](const Json& one, const std::string& where) {
            Problem problem;
            problem.id = m_reader.text(one, "id", where);
            problem.message = m_reader.text(one, "message", where);
            problem.fix = m_reader.text(one, "fix", where, true);
            problem.place = {m_reader.text(one, "file", where, true), 0, 0, m_reader.text(one, "path", where, true)};
            const std::string severity = m_reader.text(one, "severity", where, true);
            problem.severity = severity == "note" ? Severity::Note : severity == "warning" ? Severity::Warning : Severity::Error;
            m_result.problems->push_back(std::move(problem));
        });
    }

    void readPropagation()
    {
        m_result.arrays.emplace();
        m_reader.list(m_json, "functions", {}, false, [&](const Json& function, const std::string& where) {
            const std::string prefix = m_reader.text(function, "name", where) + ": ";
            m_reader.list(function, "values", where, true, [&](const Json& value, const std::string& at) {
                ComparedArray array;
                const std::string name = m_reader.text(value, "name", at, true);
                array.name = prefix + (name.empty() ? m_reader.text(value, "value", at) : name);
                if (const Json* spec = m_reader.member(value, "spec", at); spec != nullptr && spec->is_string())
                    array.spec = spec->get<std::string>();
                setType(array, m_reader.text(value, "type", at));
                addArray(std::move(array));
            });
        });
    }

    void readPartition()
    {
        m_reader.list(m_json, "functions", {}, false,
            [&](const Json& function, const std::string& where) { readCollectives(function, where); });
    }

    // ---- MaxText

    std::vector<std::string> axesOf(const Json& entry, const std::string& path)
    {
        std::vector<std::string> axes;
        if (entry.is_null())
            return axes;
        if (entry.is_string())
            return {entry.get<std::string>()};
        if (!entry.is_array()) {
            m_reader.wrong(path, "expected the axes of a dimension: null, a name or a list of names");
            return axes;
        }
        for (const Json& axis : entry) {
            if (axis.is_string())
                axes.push_back(axis.get<std::string>());
            else
                m_reader.wrong(path, "expected the name of an axis");
        }
        return axes;
    }

    std::optional<std::vector<MeshAxis>> maxtextMesh(const Json& one, const std::string& path)
    {
        const Json* mesh = m_reader.member(one, "mesh", path, true);
        if (mesh == nullptr)
            return std::nullopt; // logical_shardings.json has none
        const Json* sizes = m_reader.member(*mesh, "shape", path + ".mesh");
        if (sizes == nullptr || !sizes->is_object()) {
            m_reader.wrong(path + ".mesh", "expected the sizes of the axes");
            return std::nullopt;
        }
        std::vector<MeshAxis> axes;
        m_reader.list(*mesh, "axis_names", path + ".mesh", false, [&](const Json& name, const std::string& where) {
            if (!name.is_string() || !sizes->contains(name.get<std::string>()))
                m_reader.wrong(where, "expected the name of an axis that has a size");
            else
                axes.push_back({name.get<std::string>(), m_reader.integerOf((*sizes)[name.get<std::string>()], where, 1)});
        });
        return axes;
    }

    void readNamedShardings()
    {
        m_result.arrays.emplace();
        for (const auto& [name, one] : m_json.items()) {
            if (m_reader.tooMany())
                return;
            ComparedArray array;
            array.name = name;
            PartitionSpec spec;
            m_reader.list(one, "partition_spec", name, false,
                [&](const Json& entry, const std::string& where) { spec.dims.push_back(axesOf(entry, where)); });
            array.spec = specText(spec);
            if (m_reader.member(one, "shape", name, true) != nullptr) {
                array.shape.emplace();
                m_reader.list(one, "shape", name, false,
                    [&](const Json& size, const std::string& where) { array.shape->push_back(m_reader.integerOf(size, where)); });
            }
            const auto axes = maxtextMesh(one, name);
            if (axes && !m_result.mesh)
                m_result.mesh = axes;
            if (axes && array.shape)
                setPiece(array, spec, *axes);
            addArray(std::move(array));
        }
    }

    static void setPiece(ComparedArray& array, const PartitionSpec& spec, const std::vector<MeshAxis>& axes)
    {
        const auto mesh = Mesh::create(axes);
        if (!mesh)
            return;
        const auto piece = shardShape(*array.shape, spec, *mesh, Uneven::Pad);
        if (piece)
            array.pieceElements = elementCount(*piece);
    }

    const Json& m_json;
    JsonReader<Json> m_reader;
    Comparable m_result;
    std::set<std::string> m_names;
};

/// The kind and the version of a schema: "meshwright.simulation/1".
std::optional<std::pair<std::string, std::int64_t>> schemaOf(const Json& json)
{
    constexpr std::string_view kPrefix = "meshwright.";
    if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string())
        return std::nullopt;
    const std::string schema = json["schema"].get<std::string>();
    const std::size_t slash = schema.find('/');
    if (!schema.starts_with(kPrefix) || slash == std::string::npos)
        return std::nullopt;
    return std::pair(schema.substr(kPrefix.size(), slash - kPrefix.size()), parseInteger(schema.substr(slash + 1)).value_or(0));
}

Json parsed(std::string_view text)
{
    if (!isWithinJsonLimits(text))
        return Json(Json::value_t::discarded);
    return parsedJson(text);
}

} // namespace

ComparedFigure stepTimeFigure(double seconds)
{
    return {"step_time_s", "step time", Quantity::Seconds, seconds};
}

ComparedFigure peakBytesFigure(double bytes)
{
    return {"peak_bytes_per_device", "peak memory a device", Quantity::Bytes, bytes};
}

bool isComparableResult(std::string_view text)
{
    const std::string_view first = trimmed(text.substr(0, 64));
    if (!first.starts_with('{') && !first.starts_with('['))
        return false;
    const Json json = parsed(text);
    return json.is_array() || schemaOf(json) || isNamedShardings(json);
}

Result<Comparable> readComparable(std::string_view text, const std::string& file)
{
    constexpr std::array kKinds = {"simulation", "training", "search", "sweep", "problems", "propagation", "partition"};
    const Json json = parsed(text);
    if (json.is_array())
        return Problem{"MW1811", fmt::format("a list of {} results cannot be compared", json.size()),
            "compare one result with another: simulate one study", Place{file}};
    if (isNamedShardings(json))
        return ResultReader(json, file).read("named shardings");
    const auto schema = schemaOf(json);
    if (!schema || std::find(kKinds.begin(), kKinds.end(), schema->first) == kKinds.end())
        return Problem{"MW1811",
            json.is_discarded() ? std::string("the text is not JSON")
                : schema        ? fmt::format("a result of the kind \"{}\" cannot be compared", schema->first)
                                : std::string("the JSON is not a result of Meshwright, nor named shardings"),
            "give studies, programs, JSON of simulate, train, search, sweep, check, propagate or partition, or MaxText's "
            "named_shardings.json",
            Place{file}};
    const int newest = schema->first == "search" ? 2 : 1;
    if (schema->second < 1 || schema->second > newest)
        return Problem{"MW1813",
            fmt::format("the result is of version {} of its schema; this program knows version {}", schema->second, newest),
            "use a newer Meshwright", Place{file}};
    return ResultReader(json, file).read(schema->first);
}

} // namespace meshwright::sim
