// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/manifest.h"

#include "core/kernels/host_array.h"
#include "core/support/checked.h"
#include "core/support/json_reader.h"
#include "core/support/json_text.h"
#include "core/support/text.h"
#include "core/support/version.h"

#include <nlohmann/json.hpp>
#include <zlib.h>

#include <algorithm>

namespace meshwright {

namespace {

using Json = nlohmann::ordered_json;
using Reader = JsonReader<Json>;

constexpr std::string_view kSchemaName = "meshwright.checkpoint/";
constexpr std::string_view kSchema = "meshwright.checkpoint/1";

std::uint32_t checksumOf(const std::string& text)
{
    return static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<z_size_t>(text.size()))); // NOLINT: zlib's bytes
}

Json boxJson(const IndexBox& box)
{
    Json ranges = Json::array();
    for (const IndexRange& range : box)
        ranges.push_back({range.start, range.stop});
    return ranges;
}

Json bodyOf(const Checkpoint& checkpoint)
{
    const SavedState& state = checkpoint.state;
    Json body;
    body["state"] = {{"step", state.step}, {"random", {{"generator", "threefry2x32"}, {"seed", state.seed}}},
        {"mesh", state.mesh}, {"optimizer", state.optimizer}, {"losses", state.losses}, {"accuracies", state.accuracies}};
    if (!state.settings.empty())
        body["state"]["settings"] = state.settings;
    body["files"] = Json::array();
    for (const CheckpointFile& file : checkpoint.files)
        body["files"].push_back({{"name", file.name}, {"bytes", file.bytes},
            {"header", {{"bytes", file.headerBytes}, {"crc32", file.headerChecksum}}}});
    body["arrays"] = Json::array();
    for (const CheckpointArray& array : checkpoint.arrays) {
        Json pieces = Json::array();
        for (const CheckpointPiece& piece : array.pieces)
            pieces.push_back(
                {{"index", boxJson(piece.box)}, {"file", piece.file}, {"offset", piece.offset}, {"crc32", piece.checksums}});
        body["arrays"].push_back({{"name", array.name}, {"dtype", dtypeName(array.type.dtype)}, {"shape", array.type.shape},
            {"sharding", array.sharding}, {"pieces", std::move(pieces)}});
    }
    return body;
}

/// Reads the part that the checksum covers.
class BodyReader {
public:
    explicit BodyReader(const std::string& file)
        : m_reader("MW1641", file)
    {
    }

    Result<Checkpoint> read(const Json& body)
    {
        if (const Json* state = m_reader.member(body, "state", ""))
            readState(*state);
        m_reader.list(body, "files", "", false, [this](const Json& file, const std::string& path) {
            const std::string name = m_reader.text(file, "name", path);
            if (name.empty() || name.find('/') != std::string::npos)
                m_reader.wrong(path, fmt::format("\"{}\" is not a file of this folder", name));
            m_checkpoint.files.push_back({name, m_reader.integer(file, "bytes", path)});
            if (file.is_object() && file.contains("header"))
                readHeader(file["header"], path + ".header");
        });
        m_reader.list(body, "arrays", "", false, [this](const Json& array, const std::string& path) { readArray(array, path); });
        if (!m_reader.problems().empty())
            return m_reader.problems();
        return std::move(m_checkpoint);
    }

private:
    /// Of the file that was read last.
    void readHeader(const Json& header, const std::string& path)
    {
        CheckpointFile& file = m_checkpoint.files.back();
        file.headerBytes = m_reader.integer(header, "bytes", path);
        file.headerChecksum = static_cast<std::uint32_t>(m_reader.integer(header, "crc32", path));
        if (file.headerBytes > file.bytes)
            m_reader.wrong(path, fmt::format("a header of {} bytes in a file of {}", file.headerBytes, file.bytes));
    }

    void readState(const Json& state)
    {
        SavedState& to = m_checkpoint.state;
        to.step = m_reader.integer(state, "step", "state");
        to.mesh = m_reader.text(state, "mesh", "state");
        to.optimizer = m_reader.text(state, "optimizer", "state");
        if (const Json* random = m_reader.member(state, "random", "state")) {
            const Json* seed = m_reader.member(*random, "seed", "state.random");
            if (seed != nullptr && seed->is_number_unsigned())
                to.seed = seed->get<std::uint64_t>();
            else if (seed != nullptr)
                m_reader.wrong("state.random.seed", "expected an integer from 0 on");
        }
        if (const auto settings = state.find("settings"); settings != state.end() && settings->is_object()) {
            for (const auto& [path, value] : settings->items())
                to.settings[path] = m_reader.text(*settings, path.c_str(), "state.settings");
        }
        readNumbers(state, "losses", to.losses);
        readNumbers(state, "accuracies", to.accuracies);
        if (to.losses.size() != static_cast<std::size_t>(to.step) || to.accuracies.size() != to.losses.size())
            m_reader.wrong("state.losses",
                fmt::format("{} losses and {} accuracies for {} steps", to.losses.size(), to.accuracies.size(), to.step));
    }

    void readNumbers(const Json& state, const char* key, std::vector<double>& to)
    {
        m_reader.list(state, key, "state", false,
            [&](const Json& number, const std::string& path) { to.push_back(m_reader.measuredOf(number, path)); });
    }

    void readArray(const Json& json, const std::string& path)
    {
        CheckpointArray array;
        array.name = m_reader.text(json, "name", path);
        array.sharding = m_reader.text(json, "sharding", path);
        const auto dtype = parseDType(m_reader.text(json, "dtype", path));
        if (!dtype || !isComputable(*dtype))
            m_reader.wrong(path, "expected the type of an array in \"dtype\"");
        array.type.dtype = dtype.value_or(DType::F32);
        m_reader.list(json, "shape", path, false, [&](const Json& size, const std::string& sizePath) {
            array.type.shape.push_back(m_reader.integerOf(size, sizePath));
        });
        const auto elements = checkedProduct(array.type.shape);
        if (!elements || !checkedMultiply(*elements, byteSize(array.type.dtype))) {
            m_reader.wrong(path, "the array is larger than 2^63 bytes");
            return;
        }
        std::int64_t covered = 0;
        bool tooMany = false;
        m_reader.list(json, "pieces", path, false, [&](const Json& piece, const std::string& piecePath) {
            array.pieces.push_back(readPiece(piece, piecePath, array.type));
            tooMany = __builtin_add_overflow(covered, boxElements(array.pieces.back().box), &covered) || tooMany;
        });
        if (tooMany || covered != *elements)
            m_reader.wrong(path,
                fmt::format(
                    "the pieces have {} elements, the array has {}", tooMany ? "too many" : std::to_string(covered), *elements));
        m_checkpoint.arrays.push_back(std::move(array));
    }

    CheckpointPiece readPiece(const Json& json, const std::string& path, const TensorType& whole)
    {
        CheckpointPiece piece;
        m_reader.list(json, "index", path, false, [&](const Json& range, const std::string& rangePath) {
            if (!range.is_array() || range.size() != 2)
                return m_reader.wrong(rangePath, "expected [start, stop]");
            piece.box.push_back({m_reader.integerOf(range[0], rangePath), m_reader.integerOf(range[1], rangePath)});
        });
        m_reader.list(json, "crc32", path, false, [&](const Json& sum, const std::string& sumPath) {
            piece.checksums.push_back(static_cast<std::uint32_t>(m_reader.integerOf(sum, sumPath)));
        });
        piece.file = static_cast<std::size_t>(m_reader.integer(json, "file", path));
        piece.offset = m_reader.integer(json, "offset", path);
        bool isInside = piece.box.size() == whole.shape.size();
        for (std::size_t dim = 0; isInside && dim < piece.box.size(); ++dim)
            isInside = piece.box[dim].start <= piece.box[dim].stop && piece.box[dim].stop <= whole.shape[dim];
        if (!isInside) {
            m_reader.wrong(path, fmt::format("{} is outside an array of {}", boxText(piece.box), typeText(whole)));
            piece.box = IndexBox(whole.shape.size());
            return piece;
        }
        const std::int64_t bytes = boxElements(piece.box) * byteSize(whole.dtype);
        if (piece.file >= m_checkpoint.files.size() || bytes > m_checkpoint.files[piece.file].bytes - piece.offset)
            m_reader.wrong(path, "no file has the piece");
        else if (static_cast<std::int64_t>(piece.checksums.size()) != ceilDiv(bytes, kChecksumBlockBytes))
            m_reader.wrong(path, fmt::format("{} checksums for {} bytes", piece.checksums.size(), bytes));
        return piece;
    }

    Reader m_reader;
    Checkpoint m_checkpoint;
};

} // namespace

std::string manifestText(const Checkpoint& checkpoint)
{
    Json body = bodyOf(checkpoint);
    const std::uint32_t sum = checksumOf(jsonLine(body));
    Json manifest = {{"schema", kSchema}, {"meshwright", kVersion}, {"crc32", sum}};
    manifest["checkpoint"] = std::move(body);
    return jsonText(manifest, 1);
}

Result<Checkpoint> readManifest(std::string_view text, const std::string& file)
{
    const Place place{file};
    if (trimmed(text).empty())
        return Problem{"MW1641", "the manifest is empty", kRestore, place};
    if (!isWithinJsonLimits(text, text.size()))
        return Problem{
            "MW1641", "the manifest is damaged or cut off: its JSON does not end, or nests too deeply", kRestore, place};
    const Json manifest = parsedJson(text);
    if (manifest.is_discarded() || !manifest.is_object())
        return Problem{"MW1641", "the manifest is not a JSON object: it is damaged or cut off", kRestore, place};
    const std::string schema
        = manifest.value("schema", Json()).is_string() ? manifest["schema"].get<std::string>() : std::string();
    if (schema != kSchema) {
        if (schema.starts_with(kSchemaName))
            return Problem{"MW1643", fmt::format("the checkpoint has schema \"{}\", this version reads \"{}\"", schema, kSchema),
                "use the newer version of Meshwright", place};
        return Problem{
            "MW1641", fmt::format("this is not a manifest of a checkpoint: the schema is \"{}\"", schema), kRestore, place};
    }
    const auto body = manifest.find("checkpoint");
    const auto sum = manifest.find("crc32");
    if (body == manifest.end() || sum == manifest.end() || !sum->is_number_unsigned())
        return Problem{"MW1641", "the manifest lacks \"checkpoint\" or \"crc32\"", kRestore, place};
    if (const std::uint32_t found = checksumOf(body->dump()); found != sum->get<std::uint64_t>())
        return Problem{"MW1642",
            fmt::format("the manifest is damaged: its checksum is {:08x}, it should be {:08x}", found, sum->get<std::uint64_t>()),
            kRestore, place};
    return BodyReader(file).read(*body);
}

} // namespace meshwright
