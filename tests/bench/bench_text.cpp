// SPDX-License-Identifier: GPL-3.0-or-later
// bench_text [MB] [ops|constants|locations]: reads a module of that size (50, ops) and prints MB/s, seconds and the peak resident memory;
// then writes it. `ops` are layers of a transformer's training step as JAX prints them, `constants` long lists of numbers, `locations`
// the layers with debug information. With a file's name instead of a size, that file is read.

#include "core/support/file.h"
#include "core/text/program_text.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>

namespace {

using namespace meshwright;

double secondsSince(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// VmHWM or VmRSS of this process, in bytes; 0 where the system does not say.
double memoryOf(const char* key)
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(key))
            return std::strtod(line.c_str() + std::strlen(key) + 1, nullptr) * 1024.0;
    }
    return 0.0;
}

/// One layer: attention without its softmax's details and a feed-forward block, from %x to %x.
class Layers {
public:
    Layers(bool locations, bool constants)
        : m_locations(locations)
        , m_constants(constants)
    {
    }

    std::string module(std::size_t bytes)
    {
        m_text = "module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
                 "  sdy.mesh @mesh = <[\"data\"=4, \"model\"=2]>\n"
                 "  func.func public @main(%arg0: tensor<32x128x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"data\"}, {}, "
                 "{}]>}, "
                 "%arg1: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {\"model\"}]>}, %arg2: "
                 "tensor<2048x512xf32>) "
                 "-> (tensor<32x128x512xf32> {jax.result_info = \"result\"}) {\n";
        std::string last = "%arg0";
        while (m_text.size() < bytes)
            last = layer(last);
        m_text += fmt::format("    return {} : tensor<32x128x512xf32>\n  }}\n}}\n", last);
        if (m_locations)
            m_text += "#loc1 = loc(\"model.py\":12:8)\n";
        return std::move(m_text);
    }

private:
    std::string line(const std::string& op)
    {
        std::string name = fmt::format("%{}", m_next++);
        m_text += fmt::format("    {} = {}{}\n", name, op, m_locations ? " loc(\"jit(step)/dot_general\"(#loc1))" : "");
        return name;
    }

    std::string layer(const std::string& x)
    {
        const std::string wide = "tensor<32x128x2048xf32>";
        const std::string narrow = "tensor<32x128x512xf32>";
        if (m_constants) {
            std::string numbers;
            for (int i = 0; i < 512; ++i)
                numbers += fmt::format("{}{:e}", i == 0 ? "" : ", ", 0.001 * i - 0.3);
            const std::string bias = line(fmt::format("stablehlo.constant dense<[{}]> : tensor<512xf32>", numbers));
            const std::string spread
                = line(fmt::format("stablehlo.broadcast_in_dim {}, dims = [2] : (tensor<512xf32>) -> {}", bias, narrow));
            return line(fmt::format("stablehlo.add {}, {} : {}", x, spread, narrow));
        }
        const std::string zero = line("stablehlo.constant dense<0.000000e+00> : tensor<f32>");
        const std::string sum
            = line(fmt::format("stablehlo.reduce({} init: {}) applies stablehlo.add across dimensions = [2] : ({}, "
                               "tensor<f32>) -> tensor<32x128xf32>",
                x, zero, narrow));
        const std::string mean
            = line(fmt::format("stablehlo.broadcast_in_dim {}, dims = [0, 1] : (tensor<32x128xf32>) -> {}", sum, narrow));
        const std::string centred = line(fmt::format("stablehlo.subtract {}, {} : {}", x, mean, narrow));
        const std::string up = line(
            fmt::format("stablehlo.dot_general {}, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : ({}, "
                        "tensor<512x2048xf32>) -> {}",
                centred, narrow, wide));
        const std::string pinned
            = line(fmt::format("sdy.sharding_constraint {} <@mesh, [{{\"data\"}}, {{}}, {{\"model\"}}]> : {}", up, wide));
        const std::string curve = line(fmt::format("stablehlo.tanh {} : {}", pinned, wide));
        const std::string down = line(
            fmt::format("stablehlo.dot_general {}, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : ({}, "
                        "tensor<2048x512xf32>) -> {}",
                curve, wide, narrow));
        const std::string turned
            = line(fmt::format("stablehlo.transpose {}, dims = [1, 0, 2] : ({}) -> tensor<128x32x512xf32>", down, narrow));
        const std::string back
            = line(fmt::format("stablehlo.transpose {}, dims = [1, 0, 2] : (tensor<128x32x512xf32>) -> {}", turned, narrow));
        return line(fmt::format("stablehlo.add {}, {} : {}", x, back, narrow));
    }

    bool m_locations;
    bool m_constants;
    std::string m_text;
    int m_next = 0;
};

} // namespace

int main(int argc, char** argv)
{
    const std::string first = argc > 1 ? argv[1] : "50";
    const std::string kind = argc > 2 ? argv[2] : "ops";
    double megabytes = 0.0;
    const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), megabytes);
    std::string text;
    if (error == std::errc() && end == first.data() + first.size()) {
        text = Layers(kind == "locations", kind == "constants").module(static_cast<std::size_t>(megabytes * 1e6));
    } else {
        auto read = readFile(first);
        if (!read) {
            fmt::print(stderr, "{}\n", describe(read.error()));
            return 3;
        }
        text = *std::move(read);
    }
    const double before = memoryOf("VmRSS");
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t worked = std::clock();
    const auto program = readProgram(text, "bench.mlir");
    const double seconds = secondsSince(start);
    const double cpuSeconds = static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC;
    if (!program) {
        fmt::print(stderr, "{}\n", describe(program.error()));
        return 3;
    }
    const double size = static_cast<double>(text.size()) / 1e6;
    std::size_t ops = 0;
    for (const Function& function : program->functions)
        ops += function.ops.size();
    fmt::print(
        "read: {:.1f} MB, {} ops, {:.2f} s ({:.2f} s of CPU), {:.1f} MB/s; peak {:.0f} MB above the text ({:.1f} times it)\n",
        size, ops, seconds, cpuSeconds, size / seconds, (memoryOf("VmHWM") - before) / 1e6,
        (memoryOf("VmHWM") - before) / 1e6 / size);
    const auto writing = std::chrono::steady_clock::now();
    const std::string written = writeProgram(*program);
    const double writeSeconds = secondsSince(writing);
    const double writtenSize = static_cast<double>(written.size()) / 1e6;
    fmt::print("write: {:.1f} MB, {:.2f} s, {:.1f} MB/s\n", writtenSize, writeSeconds, writtenSize / writeSeconds);
    return 0;
}
