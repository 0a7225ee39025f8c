// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/plan/launch_options.h"
#include "sim/plan/launch_plan.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright::sim {

/// What a framework's options come to.
struct LaunchedTraining {
    TransformerConfig model;
    std::int64_t sequence = 1;
    std::int64_t microbatch = 1;
    std::int64_t globalBatch = 0; ///< sequences; 0: one microbatch of each data rank
    MathFormat format = MathFormat::Bf16;
    Fp8Recipe recipe = Fp8Recipe::None;
    bool masters = false;
    std::int64_t tensor = 1;
    std::int64_t pipeline = 1;
    std::int64_t context = 1;
    std::int64_t expert = 1;
    std::int64_t shards = 1; ///< data ranks over which weights are split; below 0: all of them, in so many copies
    int zero = 0;
    std::int64_t chunks = 1;
    std::optional<std::int64_t> layersToShare = {}; ///< evenly among the pieces; none: the model's layers
    std::string schedule = "1f1b";
    std::string recompute = "none";
    std::int64_t lossChunks = 1; ///< parts of a sequence whose logits are made one after the other
    bool sequenceParallel = false;
    bool exchangesHeads = false;
    bool gathersContext = false;
    std::optional<double> sgdMomentum = {}; ///< nothing: the optimizer is Adam
};

/// Reads a launch line, each framework in a source of its own, into what a plan is made of.
class LaunchReader {
public:
    /// The line and the machine must live as long.
    LaunchReader(const LaunchLine& launch, const std::string& file, const SearchMachine& machine, const std::string& model)
        : m_launch(launch)
        , m_file(file)
        , m_machine(machine)
        , m_modelFile(model)
        , m_options(launch, file)
        , m_devices(machine.cluster.devices)
    {
    }

    /// Problems: those of `planOf`.
    Result<LaunchedPlan> read();

private:
    void readMegatron();
    void readMegatronModel();
    void readMegatronExperts();
    void readMegatronModules(const LaunchOption& option);
    void readMegatronContext();
    void readTorchtitan();
    void readMaxText();
    void readMaxTextModel();
    void overrideMaxTextModel(const LaunchOption& name);
    void readMaxTextPolicy();
    std::string word(std::string_view name, std::initializer_list<std::string_view> words);
    void readTitanPipeline();
    void readTitanLoss(bool isRegistered);
    /// The option that names the optimizer: Adam by one of two words, or "sgd" with this momentum.
    void readOptimizer(std::string_view option, std::string_view adam, std::string_view otherAdam, double momentum);
    /// So many parts of a sequence for the loss, or fewer that divide it, of which a note is made.
    void takeLossChunks(std::int64_t chunks);
    std::map<std::string, std::int64_t> maxTextMesh();
    /// One that comes with Meshwright, by its name there; the option that names it.
    void takeModel(const std::string& name, const LaunchOption& option);
    void readModel(const std::string& nameOrFile);
    void addSgd(const FoundPlan& plan);
    void checkTensor();
    void checkFrameworkRules();
    Result<LaunchedPlan> planned();
    void impossible(std::string message, std::string fix)
    {
        m_options.problems.push_back({"MW1496", std::move(message), std::move(fix), m_options.place()});
    }

    const LaunchLine& m_launch;
    std::string m_file;
    const SearchMachine& m_machine;
    std::string m_modelFile;
    LaunchOptions m_options;
    std::int64_t m_devices;
    LaunchedTraining m_asked;
    std::vector<std::string> m_settings; ///< of the plan's study
    std::vector<std::string> m_notes;
    Problems m_warnings;
};

} // namespace meshwright::sim
