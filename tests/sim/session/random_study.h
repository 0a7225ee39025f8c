// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

/// Studies as people write them, right and wrong: the examples and a few small ones, with a handful of values changed.
namespace meshwright::tests {

class StudyDraw {
public:
    /// `folder`: for the files that studies name; `examples`: texts of studies with the files they came from.
    StudyDraw(std::uint64_t seed, const std::filesystem::path& folder, std::vector<sim::StudySource> examples)
        : m_random(seed)
        , m_bases(std::move(examples))
    {
        const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
        std::string rows;
        for (int row = 0; row < 24; ++row)
            rows += std::to_string(row % 5) + ",1,0.5,2," + std::to_string(row % 3) + "\n";
        write("rows.csv", rows);
        write("bad.csv", "1,2,3,4,0\n1,2\nx,y\n");
        write("product.mlir",
            "module {\n  func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {\n"
            "    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> "
            "tensor<8x6xf32>\n    return %0 : tensor<8x6xf32>\n  }\n}\n");
        write("torn.mlir", "module { func.func @main(%x: tensor<8x4xf32>) -> ");
        const auto add = [&](const std::string& text) {
            m_bases.push_back({"meshwright: 1\n" + text, (folder / "study.yaml").string(), {}});
        };
        const std::string machine = "hardware: {chip: v5e, topology: [4, 2]}\nmesh: {data: 4, model: 2}\n";
        const std::string small = "batch: 16\noptimizer: {adam: {learning_rate: 0.001}}\ntrain: {steps: 1}\n";
        add("name: plain\n" + machine + "model: {mlp: {layers: [16, 32, 8], loss: cross_entropy}}\n" + small
            + "sharding:\n  x: P('data')\n  layers.0: {w: \"P(None, 'model')\"}\n");
        add("name: rows\n" + machine + "model: {mlp: {layers: [4, 8, 3], loss: cross_entropy}}\n"
            + "batch: 8\noptimizer: {sgd: {learning_rate: 0.1}}\ntrain: {steps: 1, data: {file: rows.csv, held_out: 4}}\n");
        add("name: stages\n" + machine + "model: {mlp: {layers: [16, 16, 16, 16, 8], loss: mse}}\n" + small
            + "pipeline: {axis: model, stages: 2, microbatches: 2}\n");
        add("name: tokens\n" + machine
            + "model: {transformer: {layers: 2, hidden: 16, heads: 4, ffn: 32, vocabulary: 32, position: learned}}\nsequence: "
              "16\n"
            + small + "sharding: {x: \"P('data')\", y: \"P('data')\", layers.attention.q.w: \"P(None, None, 'model')\"}\n");
        add("name: a loop in stages\n" + machine
            + "model: {transformer: {layers: 4, hidden: 16, heads: 4, ffn: 32, vocabulary: 32}}\nsequence: 16\n" + small
            + "sharding: {x: \"P('data')\", y: \"P('data')\"}\npipeline: {axis: model, stages: 2, microbatches: 2}\n");
        add("name: a program\n" + machine + "model: {program: product.mlir}\nsharding: {x: \"P('data')\"}\n");
    }

    sim::StudySource draw()
    {
        sim::StudySource source = oneOf(m_bases);
        for (int changes = static_cast<int>(below(3)); changes > 0; --changes)
            source.settings.push_back(change());
        return source;
    }

    std::uint64_t below(std::uint64_t count) { return m_random() % count; }

private:
    template <typename T>
    const T& oneOf(const std::vector<T>& all)
    {
        return all[static_cast<std::size_t>(below(all.size()))];
    }

    std::string size()
    {
        static const std::vector<std::string> kSizes = {"1", "2", "3", "4", "5", "6", "8", "16", "24", "60", "64", "96", "100",
            "128", "0", "-1", "4096", "16777217", "1099511627776", "99999999999999999999"};
        return oneOf(kSizes);
    }

    std::string smallSize() { return std::to_string(1 + below(below(3) == 0 ? 16 : 5)); }

    std::string axis()
    {
        static const std::vector<std::string> kAxes = {"data", "model", "pipe", "fsdp", "tensor", "a", "b", "replica"};
        return oneOf(kAxes);
    }

    std::string spec()
    {
        std::string text = "P(";
        for (std::uint64_t dim = below(4); dim > 0; --dim)
            text += below(2) == 0 ? "None," : below(4) == 0 ? "('" + axis() + "','" + axis() + "')," : "'" + axis() + "',";
        return text + ")";
    }

    std::string array()
    {
        static const std::vector<std::string> kArrays = {"x", "y", "layers.0.w", "layers.1.w", "layers.0.b", "layers.9.w",
            "opt.m.layers.0.w", "grad.layers.0.w", "act.layers.0", "embedding.w", "head.w", "layers.attention.q.w",
            "layers.attention.k.w", "layers.ffn.up.w", "layers.*.w", "opt.*", "z", "norm.scale"};
        return oneOf(kArrays);
    }

    std::string change()
    {
        static const std::vector<std::string> kFixed = {"hardware={chip: v3, topology: [2, 2]}",
            "hardware={chip: h100, hosts: 2}", "hardware={chip: h100, hosts: 2, per_host: 4}",
            "hardware={chip: v4, topology: [2, 2, 1]}", "hardware.chip=v9", "hardware.chip=h100",
            "hardware={chip: v5e, topology: [2, 2, 2]}", "hardware={chip: v5e, topology: [512, 2]}",
            "hardware={chip: b200, hosts: 1}", "hardware={chip: tpu7x, topology: [2, 2, 1]}",
            "hardware={chip: a100, per_host: 3}", "hardware={chip: a100, per_host: 9}", "hardware={profile: none.json}",
            "hardware=", "hardware={chip: cpu}", "hardware={chip: v2, topology: [2, 2]}",
            "hardware={chip: v6e, topology: [2, 2], hosts: 1}", "dtype.parameters=f16", "dtype.parameters=f64",
            "dtype.parameters=bf16", "dtype.matmul=bf16", "dtype.matmul=f16", "dtype.matmul=f64", "dtype.activations=f16",
            "dtype.fp8=delayed", "dtype.fp8=rowwise", "dtype.fp8=blockwise", "dtype.matmul=i8", "optimizer=none",
            "optimizer={sgd: {momentum: 0.9}}", "optimizer={adam: {clip_norm: 1.0}}", "optimizer={sgd: {loss_scale: 1024}}",
            "optimizer={adam: {loss_scale: dynamic}}", "optimizer={adam: {weight_decay: 0.1, schedule: cosine, warmup_steps: 2}}",
            "optimizer={adamax: {}}", "dropout=0.1", "dropout=1.5", "train.data=digits", "train.data=random",
            "train.data={file: rows.csv}", "train.data={file: bad.csv}", "train.data={file: rows.csv, held_out: 23}",
            "train.data={file: nowhere.csv}", "train.gradient_norm=true", "train.evaluate={every: 1}",
            "train.evaluate={file: rows.csv}", "init.w=zeros", "init.random=legacy", "recompute=full", "recompute=selective",
            "recompute=none", "recompute=dots_saveable", "model.program=torn.mlir", "model={program: product.mlir}",
            "model={program: nowhere.mlir}", "model={program: {file: product.mlir, function: f}}",
            "model.transformer.unroll=true", "model.transformer.tied=true", "model.transformer.predict=last_token",
            "model.transformer.experts=4", "model.transformer.experts_per_token=2", "model.transformer.position=learned",
            "model.transformer.activation=gelu", "model.mlp.loss=mse", "model.mlp.loss=cross_entropy", "model.mlp.bias=false",
            "model.mlp.activation=tanh", "pipeline.schedule=gpipe", "pipeline.schedule=interleaved", "pipeline.schedule=zb_h1",
            "pipeline.schedule=zb_h2", "pipeline.schedule=1f1b", "pipeline.chunks=2", "pipeline=", "network.fidelity=message",
            "network.fidelity=closed", "network.fidelity=fuzzy", "network.algorithms=ring", "network.algorithms=tree",
            "network.algorithms={all_reduce: in_switch}", "network.algorithms={all_gather: bruck, all_reduce: halving_doubling}",
            "network.oversubscription=4", "network={oversubscription: 2, per_leaf: 4}", "device_order=[0, 1]",
            "device_order=[7, 6, 5, 4, 3, 2, 1, 0]", "device_order=[8, 1, 2, 3, 4, 5, 6, 0]",
            "phases=[{steps: 1, mesh: {data: 8}}, {steps: 1, mesh: {data: 4, model: 2}}]",
            "phases=[{steps: 1, mesh: {data: 2}}, {steps: 1, mesh: {data: 4}}]",
            "phases=[{steps: 1, mesh: {data: 16}}, {steps: 0, mesh: {model: 3}}]", "sharding={match: [{path: \"*\", spec: []}]}",
            "sharding={match: [{path: \"*\", divisible: largest_dim, spec: [data]}]}",
            "sharding={match: [{path: \"*.w\", min_elements: 100, divisible: largest_dim, spec: [data, model]}]}",
            "sharding=", "sharding.rules=[[batch, data], [hidden, model], [embed, null]]", "sharding.rules=maxtext"};
        switch (below(14)) {
        case 0:
            return "batch=" + size();
        case 1:
            return "mesh=" + axis() + "=" + smallSize();
        case 2:
            return "mesh={" + axis() + ": " + smallSize() + ", " + axis() + ": " + smallSize() + "}";
        case 3:
            return "mesh." + axis() + "=" + (below(4) == 0 ? size() : smallSize());
        case 4:
        case 5:
            return "sharding." + array() + "=" + spec();
        case 6:
            return "pipeline={axis: " + axis() + ", stages: " + smallSize() + ", microbatches: " + smallSize() + "}";
        case 7: {
            static const std::vector<std::string> kPaths = {"pipeline.stages", "pipeline.microbatches", "pipeline.chunks",
                "train.accumulate", "train.steps", "train.seed", "sequence"};
            return oneOf(kPaths) + "=" + (below(3) == 0 ? size() : smallSize());
        }
        case 8: {
            static const std::vector<std::string> kPaths = {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",
                "vocabulary", "max_positions", "window", "experts", "dense_layers"};
            return "model.transformer." + oneOf(kPaths) + "=" + (below(4) == 0 ? size() : smallSize());
        }
        case 9:
            return "faults.slow=[{device: " + smallSize() + ", speed: " + (below(3) == 0 ? "1e-9" : "0.5") + "}]";
        case 10: {
            static const std::vector<std::string> kAxes = {"x", "y", "z", "gpu", "host"};
            static const std::vector<std::string> kShares = {"0", "0.5", "1e-15", "0.001", "1"};
            return "faults.links=[{device: " + std::to_string(below(10)) + ", axis: " + oneOf(kAxes)
                + ", share: " + oneOf(kShares) + "}]";
        }
        default:
            return oneOf(kFixed);
        }
    }

    std::mt19937_64 m_random;
    std::vector<sim::StudySource> m_bases;
};

} // namespace meshwright::tests
