// SPDX-License-Identifier: GPL-3.0-or-later
// bench_prove [FOLDER]: partitions and proves every study and program of a folder (the examples), and then a transformer of 126 layers on meshes of
// 16 to 16,384 devices. Prints the seconds of both and the ops. A proof is to take less than 0.3 of the time of partitioning.

#include "core/partition/partition.h"
#include "core/prove/prove.h"
#include "core/study/study.h"
#include "core/support/file.h"
#include "core/text/program_text.h"
#include "sim/session/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace meshwright;

double secondsSince(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Sums {
    double partition = 0.0;
    double proof = 0.0;
    int proved = 0;
    int all = 0;
};

void measure(const std::string& name, const PartitionedProgram& partitioned, double partitionSeconds, Sums& sums)
{
    const auto start = std::chrono::steady_clock::now();
    const Proof proof = prove(partitioned.propagated, partitioned.device);
    const double seconds = secondsSince(start);
    sums.partition += partitionSeconds;
    sums.proof += seconds;
    sums.proved += proof.isProved() ? 1 : 0;
    ++sums.all;
    fmt::print("{:<44} {:>6} devices {:>6} ops  partition {:8.4f} s  prove {:8.4f} s  {}\n", name, proof.devices, proof.ops(),
        partitionSeconds, seconds, proof.isProved() ? "proved" : "not proved");
}

void measureStudy(const std::string& name, const Study& study, Sums& sums)
{
    const auto start = std::chrono::steady_clock::now();
    const auto built = sim::buildPhase(study, 0);
    if (built)
        measure(name, built->partitioned, secondsSince(start), sums);
    else
        fmt::print("{:<44} {}\n", name, built.error().front().message);
}

void measureProgram(const std::string& name, const std::string& text, Sums& sums)
{
    auto program = readProgram(text, name);
    if (!program || program->meshes.empty())
        return;
    const auto start = std::chrono::steady_clock::now();
    const auto partitioned = propagateAndPartition(*std::move(program));
    if (partitioned)
        measure(name, *partitioned, secondsSince(start), sums);
}

/// A study of 126 layers in a loop, data parallel with tensor parallel layers.
std::string deepStudy(std::int64_t data)
{
    return fmt::format(R"yaml(meshwright: 1
name: 126 layers
hardware: {{chip: h100, hosts: {}, per_host: 8}}
mesh: {{data: {}, tensor: 8}}
model: {{transformer: {{config: llama3_405b}}}}
sequence: 8192
batch: {}
dtype: {{parameters: f32, matmul: bf16, activations: bf16}}
sharding:
  x: P('data', None)
  y: P('data', None)
  embedding.w: P('tensor', None)
  head.w: P(None, 'tensor')
  match:
    - {{path: "*.o.w", spec: [null, tensor, null, null]}}
    - {{path: "*.down.w", spec: [null, tensor, null]}}
    - {{path: "*.up.w", spec: [null, null, tensor]}}
    - {{path: "*.gate.w", spec: [null, null, tensor]}}
    - {{path: "*attention.*.w", spec: [null, null, tensor, null]}}
    - {{path: "*", spec: []}}
optimizer: {{adam: {{learning_rate: 8.0e-5}}}}
train: {{steps: 1, seed: 0, data: random}}
)yaml",
        data, data, 2 * data);
}

} // namespace

int main(int count, char** arguments)
{
    const std::filesystem::path folder = count > 1 ? arguments[1] : MESHWRIGHT_EXAMPLES;
    std::vector<std::filesystem::path> files(std::filesystem::directory_iterator{folder}, {});
    std::sort(files.begin(), files.end());
    Sums examples;
    for (const std::filesystem::path& file : files) {
        const std::string name = file.filename().string();
        if (file.extension() == ".mlir") {
            if (const auto text = readFile(file.string()))
                measureProgram(name, *text, examples);
        } else if (const auto study = loadStudy(file)) {
            measureStudy(name, *study, examples);
        }
    }
    fmt::print("{} of {} proved, in {:.3f} of the time of partitioning\n", examples.proved, examples.all,
        examples.proof / std::max(1e-9, examples.partition));
    Sums deep;
    for (const std::int64_t data : {2, 16, 128, 2048}) {
        const auto study = readStudy(deepStudy(data), "126 layers");
        if (study)
            measureStudy("126 layers", *study, deep);
        else
            fmt::print("{}\n", study.error().front().message);
    }
    return 0;
}
