// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/verbs/study_file.h"
#include "app/verbs/verbs.h"

#include "core/support/file.h"
#include "core/support/json_text.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "core/support/version.h"
#include "core/train/training_checkpoint.h"
#include "core/train/training_function.h"
#include "sim/session/engine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <numeric>

namespace meshwright::cli {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t bytesOf(const RestoreShare& share)
{
    return std::accumulate(share.files.begin(), share.files.end(), std::int64_t{0},
        [](std::int64_t sum, const ReadFromFile& file) { return sum + file.bytes; });
}

std::int64_t totalBytes(const std::vector<RestoreShare>& shares)
{
    return std::accumulate(shares.begin(), shares.end(), std::int64_t{0},
        [](std::int64_t sum, const RestoreShare& share) { return sum + bytesOf(share); });
}

std::int64_t storedBytes(const Checkpoint& checkpoint)
{
    return std::accumulate(checkpoint.arrays.begin(), checkpoint.arrays.end(), std::int64_t{0},
        [](std::int64_t sum, const CheckpointArray& array) { return sum + array.type.bytes(); });
}

std::string restoreJson(const CheckpointReader& reader, const Mesh& mesh, const std::vector<RestoreShare>& shares,
    const std::optional<std::filesystem::path>& written)
{
    const Checkpoint& checkpoint = reader.checkpoint();
    Json devices = Json::array();
    for (const RestoreShare& share : shares) {
        Json files = Json::array();
        for (const ReadFromFile& file : share.files)
            files.push_back({{"file", checkpoint.files[file.file].name}, {"ranges", file.ranges}, {"bytes", file.bytes}});
        devices.push_back({{"device", share.device}, {"bytes", bytesOf(share)}, {"files", std::move(files)}});
    }
    const Json document = {{"schema", "meshwright.restore/1"}, {"meshwright", kVersion}, {"checkpoint", reader.path().string()},
        {"step", checkpoint.state.step}, {"from_mesh", checkpoint.state.mesh}, {"to_mesh", mesh.text()},
        {"stored_bytes", storedBytes(checkpoint)}, {"read_bytes", totalBytes(shares)}, {"devices", std::move(devices)},
        {"written", written ? Json(written->string()) : Json(nullptr)}};
    return jsonText(document);
}

std::string restoreText(const CheckpointReader& reader, const Mesh& mesh, const std::vector<RestoreShare>& shares,
    const std::optional<std::filesystem::path>& written)
{
    const Checkpoint& checkpoint = reader.checkpoint();
    using Align = TextTable::Align;
    TextTable table({{"device", Align::Right}, {"file"}, {"ranges", Align::Right}, {"bytes", Align::Right}});
    for (const RestoreShare& share : shares) {
        for (const ReadFromFile& file : share.files)
            table.addRow({&file == share.files.data() ? std::to_string(share.device) : "", checkpoint.files[file.file].name,
                std::to_string(file.ranges), formatBytes(file.bytes)});
    }
    std::string text = fmt::format("{} (step {}, {}) to {}\n{}all devices together read {}; the checkpoint has {}\n",
        reader.path().string(), checkpoint.state.step, checkpoint.state.mesh, mesh.text(), table.text(2),
        formatBytes(totalBytes(shares)), formatBytes(storedBytes(checkpoint)));
    if (written)
        text += fmt::format("written to {}\n", written->string());
    return text;
}

} // namespace

bool isCheckpointReshard(const ReshardOptions& options)
{
    std::error_code error;
    const bool isArray = !options.shape.empty();
    return options.dryRun || (!options.result.empty() && !isArray) || std::filesystem::is_directory(options.from, error);
}

int runCheckpointReshard(const ReshardOptions& options, Output& output)
{
    if (!options.dryRun && options.result.empty()) {
        fail({Problem{"MW1904", "the folder for the new checkpoint is missing",
                 "name a folder with -o, or only list what each device reads: --dry-run"}},
            output);
        return kExitUsage;
    }
    if (const auto good = checkFolderWritable(options.result); !good)
        return fail(good.error(), output);
    const auto reader = CheckpointReader::open(options.from, CheckpointCheck::Content);
    if (!reader)
        return fail(reader.error(), output);
    if (!(*reader)->passedOver().empty())
        output.warn((*reader)->passedOver());
    const auto study = readStudyFile(options.to, options.settings, output);
    if (!study)
        return fail(study.error(), output);
    const auto phases = sim::trainingPhases(*study);
    if (!phases)
        return fail(phases.error(), output);
    const TrainingPhase& phase = phases->front();
    const Problems problems = options.dryRun ? Problems{} : otherTrainingProblems(phase, **reader, sim::trainedAs(*study));
    if (!problems.empty()) // nothing that train --resume refuses is written
        return fail(problems, output);
    const auto shares = restorePlan(**reader, phase);
    if (!shares)
        return fail(shares.error(), output);
    std::optional<std::filesystem::path> written;
    if (!options.dryRun) {
        const auto path = convertCheckpoint(**reader, phase, options.result);
        if (!path)
            return fail(path.error(), output);
        written = *path;
    }
    const Mesh& mesh = wholeMesh(phase);
    output.result(output.format == Format::Json ? restoreJson(**reader, mesh, *shares, written)
                                                : restoreText(**reader, mesh, *shares, written));
    return kExitOk;
}

} // namespace meshwright::cli
