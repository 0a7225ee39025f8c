// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"
#include "core/study/check_pipeline.h"
#include "core/study/check_sharding.h"
#include "core/study/legal_sizes.h"
#include "core/study/pipeline_choice.h"
#include "core/study/study_files.h"
#include "core/study/study_parts.h"
#include "core/study/transformer_keys.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// The digits that come with Meshwright: 8 x 8 pixels, ten classes.
constexpr std::int64_t kDigitsInputs = 64;
constexpr std::int64_t kDigitsClasses = 10;
constexpr std::int64_t kDigitsTokens = 27; // 17 shades and 10 classes

/// Of the speed of a device, or of a link's bandwidth: what is slower is not a machine that trains.
constexpr double kLeastShare = 1e-3;

class Checker : StudyFindings {
public:
    Checker(const Study& study, const ReadGaps& gaps)
        : StudyFindings{study, {}}
        , m_gaps(gaps)
        , m_axisNames(axisNames())
    {
    }

    Problems check()
    {
        checkHardware();
        checkMesh(m_study.mesh, m_study.deviceOrder, "mesh");
        for (std::size_t i = 0; i < m_study.phases.size(); ++i) {
            const std::string path = fmt::format("phases[{}]", i);
            checkSize(m_study.phases[i].steps, 0, "steps", path + ".steps");
            checkMesh(m_study.phases[i].mesh, m_study.phases[i].deviceOrder, path + ".mesh");
        }
        checkModel();
        checkOptimizer();
        checkTrain();
        checkPipeline();
        checkFaults();
        checkNetwork();
        append(m_problems, checkSharding(m_study, {m_gaps, m_axisNames, arrays(), canAssign() ? &assigned() : nullptr}));
        return std::move(m_problems);
    }

private:
    /// True when the size is in its range. A size that is too small is fixed by the least one.
    bool checkSize(std::int64_t size, std::int64_t least, const std::string& what, const std::string& path,
        std::int64_t most = kLargestDimension)
    {
        if (checkWorkSize(size, least, what, path, most))
            return true;
        if (size < least)
            m_problems.back().fixSettings = {fmt::format("{}={}", path, least)};
        return false;
    }

    /// As `checkSize`, for sizes of the model: what they should be nobody else can know.
    bool checkWorkSize(std::int64_t size, std::int64_t least, const std::string& what, const std::string& path,
        std::int64_t most = kLargestDimension)
    {
        if (size >= least && size <= most)
            return true;
        report("MW1401",
            fmt::format(
                "{} must be {} {}, got {}", what, size < least ? "at least" : "at most", size < least ? least : most, size),
            fmt::format("give a number from {} to {}", least, most), path);
        return false;
    }

    void checkRange(bool good, double value, const char* range, const std::string& path, double standard)
    {
        if (!good)
            report("MW1425", fmt::format("{} is out of range, got {}", path, value), fmt::format("give {}", range), path,
                fmt::format("{} is {}", path, range))
                .fixSettings
                = {fmt::format("{}={}", path, standard)};
    }

    void checkHardware();
    void checkMesh(const std::vector<MeshAxis>& axes, const std::vector<DeviceId>& order, const std::string& path);
    void checkModel();
    void checkElementCounts();
    void checkDigits();
    void checkDigitsBatch();
    void checkOptimizer();
    void checkSchedule(const LearningRateSchedule& schedule, const std::string& path);
    void checkTrain();
    std::int64_t trainingSteps() const;
    void checkPipeline();
    void checkFaults();
    void checkNetwork();
    void checkWord(const std::string& word, const std::vector<std::string>& words, const std::string& path);
    std::vector<std::string> axisNames() const;

    const std::vector<StudyArray>& arrays()
    {
        if (!m_arrays)
            m_arrays = studyArrays(m_study);
        return *m_arrays;
    }

    bool canAssign() const { return m_sizesGood && !m_gaps.sizes && !m_gaps.axes; }

    /// Precondition: canAssign().
    const std::vector<AssignedSpec>& assigned()
    {
        if (!m_assigned)
            m_assigned = assignedSpecs(m_study, arrays());
        return *m_assigned;
    }

    const ReadGaps& m_gaps;
    const std::vector<std::string> m_axisNames;
    std::optional<std::vector<StudyArray>> m_arrays; ///< derived when they are first needed
    std::optional<std::vector<AssignedSpec>> m_assigned;
    bool m_sizesGood = true; ///< of the model, the batch and all meshes
};

void Checker::checkHardware()
{
    if (!m_study.hardware)
        return;
    const HardwareChoice& hardware = *m_study.hardware;
    if (hardware.chip.empty() == hardware.profile.empty())
        report("MW1427",
            hardware.chip.empty() ? "the hardware has neither a chip nor a profile"
                                  : "the hardware has both a chip and a profile",
            "give exactly one of: chip, profile", "hardware");
    if (!hardware.topology.empty() && (hardware.hosts || hardware.chipsPerHost))
        report("MW1427", "the hardware has a topology and hosts at once",
            "give a topology (TPU slices) or hosts and per_host (GPUs)", "hardware");
    if (hardware.slices && (hardware.hosts || hardware.chipsPerHost))
        report("MW1427", "the hardware has slices and hosts at once",
            "give slices of a topology (TPU) or hosts and per_host (GPUs)", "hardware");
    for (std::size_t i = 0; i < hardware.topology.size(); ++i)
        checkSize(hardware.topology[i], 1, "a side of the topology", fmt::format("hardware.topology[{}]", i));
    if (hardware.hosts)
        checkSize(*hardware.hosts, 1, "the number of hosts", "hardware.hosts");
    if (hardware.chipsPerHost)
        checkSize(*hardware.chipsPerHost, 1, "the number of chips in a host", "hardware.per_host");
    if (hardware.slices)
        checkSize(*hardware.slices, 1, "the number of slices", "hardware.slices");
}

/// Which devices and axes there are is known where the hardware is.
void Checker::checkFaults()
{
    for (std::size_t i = 0; i < m_study.faults.slow.size(); ++i) {
        const FaultsChoice::Slow& slow = m_study.faults.slow[i];
        const std::string path = fmt::format("faults.slow[{}]", i);
        checkSize(slow.device, 0, "the device", path + ".device");
        checkRange(slow.speed >= kLeastShare && slow.speed <= 1.0, slow.speed, "a number from 0.001 to 1", path + ".speed", 1.0);
    }
    for (std::size_t i = 0; i < m_study.faults.links.size(); ++i) {
        const FaultsChoice::Link& link = m_study.faults.links[i];
        const std::string path = fmt::format("faults.links[{}]", i);
        checkSize(link.device, 0, "the device", path + ".device");
        checkRange(link.share == 0.0 || (link.share >= kLeastShare && link.share <= 1.0), link.share,
            "0 (the link has failed) or a number from 0.001 to 1", path + ".share", 0.0);
    }
    if (!m_study.hardware && m_study.faults != FaultsChoice{})
        report("MW1442", "faults have no effect: the study names no hardware",
            "name it, such as hardware: {chip: v5e, topology: [4, 2]}", "faults", {}, Severity::Warning);
}

void Checker::checkWord(const std::string& word, const std::vector<std::string>& words, const std::string& path)
{
    if (std::find(words.begin(), words.end(), word) != words.end())
        return;
    Problem& problem = report("MW1423", fmt::format("unknown name \"{}\"", word), suggestion(word, words), path);
    if (const auto near = nearestName(word, words))
        problem.fixSettings = {path + "=" + *near};
}

void Checker::checkNetwork()
{
    const NetworkChoice& network = m_study.network;
    if (!m_study.stack.empty())
        checkWord(m_study.stack, stackWords(), "stack");
    if (!network.fidelity.empty())
        checkWord(network.fidelity, fidelityWords(), "network.fidelity");
    for (const auto& [kind, algorithm] : network.algorithms) {
        const std::string path = kind.empty() ? "network.algorithms" : "network.algorithms." + kind;
        if (!kind.empty() && std::find(collectiveWords().begin(), collectiveWords().end(), kind) == collectiveWords().end())
            report("MW1423", fmt::format("unknown kind of collective \"{}\"", kind), suggestion(kind, collectiveWords()), path);
        checkWord(algorithm, algorithmWords(), path);
    }
    if (network.oversubscription)
        checkRange(*network.oversubscription >= 1.0 && *network.oversubscription <= 1e6, *network.oversubscription,
            "a number from 1 to 1000000", "network.oversubscription", 1.0);
    if (network.oversubscription && !network.perLeaf)
        report("MW1421", "\"network.per_leaf\" is missing beside oversubscription",
            "say how many hosts share a leaf switch: per_leaf: 4", "network.oversubscription");
    if (network.perLeaf)
        checkSize(*network.perLeaf, 1, "the number of hosts on a leaf switch", "network.per_leaf");
}

void Checker::checkMesh(const std::vector<MeshAxis>& axes, const std::vector<DeviceId>& order, const std::string& path)
{
    const bool unknownSizes = m_gaps.sizes || m_gaps.axes;
    const auto mesh = Mesh::create(axes, unknownSizes ? std::vector<DeviceId>{} : order);
    if (mesh)
        return;
    m_sizesGood = false;
    for (Problem problem : mesh.error()) {
        std::string at = path;
        for (std::size_t i = 0; i < axes.size(); ++i) {
            if (problem.place.path == fmt::format("mesh.axes[{}]", i))
                at = fmt::format("{}.{}", path, axes[i].name);
        }
        if (problem.place.path == "mesh.device_order") {
            const std::string beside = path == "mesh" ? "device_order" : path.substr(0, path.rfind('.')) + ".device_order";
            at = path + ".device_order";
            if (!m_study.places.at.contains(at) && m_study.places.at.contains(beside))
                at = beside;
            problem.fixSettings = {at + "="}; // in the order of their numbers
        }
        problem.place = m_study.placeOf(at);
        if (problem.id == "MW1112")
            problem.fixSettings = {at + "=1"};
        m_problems.push_back(std::move(problem));
    }
}

void Checker::checkModel()
{
    if (const auto* program = std::get_if<ProgramFile>(&m_study.model)) {
        if (program->file.empty())
            report("MW1421", "the program has no file", "name a file of StableHLO text", "model.program");
        return;
    }
    m_sizesGood = m_sizesGood && checkWorkSize(m_study.batch, 1, "the batch", "batch");
    if (const TransformerModel* transformer = m_study.transformer()) {
        if (m_gaps.sizes && transformer->sequence == 1)
            return; // one that could not be read
        for (Problem problem : sizeProblems(*transformer)) {
            problem = inStudyWords(std::move(problem));
            problem.place = m_study.placeOf(problem.place.path);
            m_problems.push_back(std::move(problem));
            m_sizesGood = false;
        }
        checkElementCounts();
        return;
    }
    const MlpModel* mlp = m_study.mlp();
    if (mlp == nullptr)
        return;
    if (mlp->layers.size() < 2) {
        report("MW1401", fmt::format("an MLP needs at least two layer sizes, got {}", mlp->layers.size()),
            "give inputs and outputs: layers: [64, 10]", "model.mlp.layers");
        m_sizesGood = false;
    }
    bool layersGood = true;
    for (std::size_t i = 0; i < mlp->layers.size(); ++i)
        layersGood = checkWorkSize(mlp->layers[i], 1, "a layer's size", fmt::format("model.mlp.layers[{}]", i)) && layersGood;
    m_sizesGood = m_sizesGood && layersGood;
    checkElementCounts();
}

void Checker::checkElementCounts()
{
    if (!m_sizesGood)
        return;

    // All bytes of all arrays are counted in 63 bits: the widest type, moments and gradients included.
    constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
    for (const StudyArray& array : arrays()) {
        const auto count = checkedProduct(array.shape);
        if (count && *count <= kMostElements)
            continue;
        const bool withBatch = array.kind == StudyArray::Kind::Input || array.kind == StudyArray::Kind::Activation;
        m_sizesGood = false;
        if (array.kind == StudyArray::Kind::Parameter || withBatch)
            report("MW1435", fmt::format("\"{}\" of shape {} has more than 2^56 elements", array.name, shapeText(array.shape)),
                "use smaller sizes",
                withBatch                      ? "batch"
                    : m_study.mlp() != nullptr ? "model.mlp.layers"
                                               : "model.transformer");
    }
}

void Checker::checkOptimizer()
{
    const UpdateChoices* update = updateChoices(m_study.optimizer);
    if (update == nullptr)
        return;
    const std::string path = fmt::format("optimizer.{}.", optimizerName(m_study.optimizer));
    if (const auto* sgd = std::get_if<SgdOptimizer>(&m_study.optimizer)) {
        const SgdOptimizer standard;
        checkRange(sgd->learningRate > 0, sgd->learningRate, "a number above 0", path + "learning_rate", standard.learningRate);
        checkRange(sgd->momentum >= 0 && sgd->momentum < 1, sgd->momentum, "a number of at least 0 and below 1",
            path + "momentum", standard.momentum);
    } else if (const auto* adam = std::get_if<AdamOptimizer>(&m_study.optimizer)) {
        const AdamOptimizer standard;
        checkRange(adam->learningRate > 0, adam->learningRate, "a number above 0", path + "learning_rate", standard.learningRate);
        checkRange(adam->beta1 >= 0 && adam->beta1 < 1, adam->beta1, "a number of at least 0 and below 1", path + "beta1",
            standard.beta1);
        checkRange(adam->beta2 >= 0 && adam->beta2 < 1, adam->beta2, "a number of at least 0 and below 1", path + "beta2",
            standard.beta2);
        checkRange(adam->epsilon > 0, adam->epsilon, "a number above 0", path + "epsilon", standard.epsilon);
    }
    if (update->masters && byteSize(m_study.parameterType) != 2)
        report("MW1425", fmt::format("{}masters: parameters of {} need no wider copy", path, dtypeName(m_study.parameterType)),
            "leave masters out, or write dtype: {parameters: bf16}", path + "masters")
            .fixSettings
            = {path + "masters="};
    checkRange(update->weightDecay >= 0, update->weightDecay, "a number of at least 0", path + "weight_decay", 0.0);
    checkRange(
        update->clipNorm >= 0, update->clipNorm, "a number of at least 0, where 0 is never to clip", path + "clip_norm", 0.0);
    const LossScale& loss = update->lossScale;
    if (loss.isDynamic())
        checkRange(loss.scale >= 0x1p-126 && loss.scale <= 0x1p127, loss.scale, "a number from 2^-126 to 2^127",
            path + "loss_scale.first", LossScale::kUsualFirst);
    else // squares of scaled gradients stay within f32
        checkRange(
            loss.scale >= 0x1p-32 && loss.scale <= 0x1p32, loss.scale, "a number from 2^-32 to 2^32", path + "loss_scale", 1.0);
    if (m_study.places.at.contains(path + "loss_scale.growth_steps"))
        checkSize(loss.growthSteps, 1, "the good steps after which the scale doubles", path + "loss_scale.growth_steps");
    checkSchedule(update->schedule, path);
}

void Checker::checkSchedule(const LearningRateSchedule& schedule, const std::string& path)
{
    checkRange(schedule.finalRate >= 0, schedule.finalRate, "a number of at least 0", path + "final_learning_rate", 0.0);
    const bool good = checkSize(schedule.warmupSteps, 0, "the steps of the warm-up", path + "warmup_steps")
        && checkSize(schedule.decaySteps, 0, "the steps of the decay", path + "decay_steps");
    if (!good)
        return;
    if (schedule.kind == LearningRateSchedule::Kind::Constant) {
        for (const char* key : {"decay_steps", "final_learning_rate"}) {
            if (m_study.places.at.contains(path + key) && (schedule.decaySteps != 0 || schedule.finalRate != 0.0))
                report("MW1442", fmt::format("{}{} has no effect: the learning rate does not decay", path, key),
                    "add schedule: cosine or linear", path + key, {}, Severity::Warning)
                    .fixSettings
                    = {fmt::format("{}schedule=cosine", path)};
        }
    } else if (schedule.decaySteps != 0) {
        checkRange(schedule.decaySteps > schedule.warmupSteps, static_cast<double>(schedule.decaySteps),
            "a number above the steps of the warm-up, which it includes", path + "decay_steps",
            static_cast<double>(schedule.warmupSteps + 1));
    } else if (const std::int64_t steps = trainingSteps(); steps > 0 && schedule.warmupSteps >= steps) {
        report("MW1442",
            fmt::format("{}schedule has no effect: the warm-up takes {} steps, and the training has {}", path,
                schedule.warmupSteps, steps),
            fmt::format("warm up for fewer steps than {}, or train for longer", steps), path + "warmup_steps", {},
            Severity::Warning);
    }
}

/// Of all phases together.
std::int64_t Checker::trainingSteps() const
{
    if (m_study.phases.empty())
        return m_study.train.steps;
    std::int64_t total = 0;
    for (const StudyPhase& phase : m_study.phases)
        total += std::clamp<std::int64_t>(phase.steps, 0, kLargestDimension);
    return total;
}

void Checker::checkTrain()
{
    const TrainChoice& train = m_study.train;
    checkRange(
        m_study.dropout >= 0 && m_study.dropout < 1, m_study.dropout, "a number of at least 0 and below 1", "dropout", 0.0);
    if (m_study.dropout > 0 && updateChoices(m_study.optimizer) == nullptr)
        report("MW1648", "dropout leaves out other elements in each step, and without an optimizer no steps are counted",
            "name an optimizer, or leave dropout out", "dropout")
            .fixSettings
            = {"dropout="};
    checkSize(train.steps, 0, "steps", "train.steps");
    checkSize(train.seed, 0, "the seed", "train.seed");
    checkSize(train.evaluate.every, 0, "the steps between two evaluations", "train.evaluate.every");
    if (checkSize(train.accumulate, 1, "the number of microbatches", "train.accumulate", kMostStepMicrobatches) && !m_gaps.sizes
        && m_study.batch >= 1 && m_study.batch % train.accumulate != 0)
        report("MW1441", fmt::format("a batch of {} is not divisible by {} microbatches", m_study.batch, train.accumulate),
            "use a number that divides the batch", "train.accumulate", "train.accumulate must divide the batch")
            .fixSettings
            = {fmt::format("train.accumulate={}", std::gcd(m_study.batch, train.accumulate))};
    if (train.data.kind == TrainingData::Kind::File) {
        checkSize(train.data.heldOut, 0, "the number of rows held out", "train.data.held_out");
        checkRange(train.data.scale != 0, train.data.scale, "any number but 0", "train.data.scale", 1.0);
    }
    if (train.data.kind == TrainingData::Kind::Random && !train.evaluate.file.empty())
        report("MW1442", "train.evaluate.file has no effect: random data has nothing to learn that another file could show",
            "name the data to train on: train.data", "train.evaluate.file", {}, Severity::Warning)
            .fixSettings
            = {"train.evaluate.file="};
    const bool holdsNoneOut = train.data.kind == TrainingData::Kind::Random
        || (train.data.kind == TrainingData::Kind::File && train.data.heldOut == 0);
    if (train.evaluate.every > 0 && train.evaluate.file.empty() && holdsNoneOut)
        report("MW1442", "train.evaluate has no effect: no rows are held out of the training",
            train.data.kind == TrainingData::Kind::Random ? "name the data to train on: train.data"
                                                          : "hold rows out (train.data.held_out), or name a file of others "
                                                            "(train.evaluate.file)",
            "train.evaluate", {}, Severity::Warning);
    if (!m_study.phases.empty() && m_study.places.at.contains("train.steps")) {
        const std::int64_t total = trainingSteps();
        if (total != train.steps)
            report("MW1434",
                fmt::format("train.steps is {}, but the phases have {} steps together: the phases count", train.steps, total),
                "remove train.steps, or make them agree", "train.steps", {}, Severity::Warning)
                .fixSettings
                = {fmt::format("train.steps={}", total)};
    }

    if (train.data.kind == TrainingData::Kind::Digits)
        checkDigits();
}

/// Whether the digits fit the model.
void Checker::checkDigits()
{
    if (const TransformerModel* transformer = m_study.transformer()) {
        const std::string rule = "a digit is a row of 64 tokens, 0 to 16 for its pixels, and 17 to 26 for its class";
        if (transformer->sequence != kDigitsInputs && !m_gaps.sizes)
            report("MW1436",
                fmt::format("the digits are rows of {} tokens, the sequence has {}", kDigitsInputs, transformer->sequence),
                "write sequence: 64", "sequence", rule)
                .fixSettings
                = {fmt::format("sequence={}", kDigitsInputs)};
        if (transformer->config.vocabulary < kDigitsTokens)
            report("MW1436",
                fmt::format("the digits have {} tokens, the vocabulary {}", kDigitsTokens, transformer->config.vocabulary),
                "use a vocabulary of at least 27", "model.transformer.vocabulary", rule)
                .fixSettings
                = {fmt::format("model.transformer.vocabulary={}", kDigitsTokens)};
        checkDigitsBatch();
        return;
    }
    const MlpModel* mlp = m_study.mlp();
    if (mlp == nullptr || mlp->layers.size() < 2)
        return;
    const std::string rule = "a digit is an image of 8 x 8 = 64 pixels in one of 10 classes";
    if (mlp->layers.front() != kDigitsInputs)
        report("MW1436", fmt::format("the digits have {} inputs, the first layer takes {}", kDigitsInputs, mlp->layers.front()),
            "begin the layers with 64", "model.mlp.layers[0]", rule)
            .fixSettings
            = {fmt::format("model.mlp.layers[0]={}", kDigitsInputs)};
    const std::string last = fmt::format("model.mlp.layers[{}]", mlp->layers.size() - 1);
    if (mlp->layers.back() != kDigitsClasses)
        report("MW1436", fmt::format("the digits have {} classes, the last layer gives {}", kDigitsClasses, mlp->layers.back()),
            "end the layers with 10", last, rule)
            .fixSettings
            = {fmt::format("{}={}", last, kDigitsClasses)};
    checkDigitsBatch();
}

void Checker::checkDigitsBatch()
{
    if (!m_gaps.sizes && m_study.batch > kDigitsTrainingRows && m_study.batch <= kLargestDimension) {
        Problem& problem = report("MW1436",
            fmt::format("a batch of {} is more than the {} digits that are for training", m_study.batch, kDigitsTrainingRows),
            fmt::format("use a batch of at most {}", kDigitsTrainingRows), "batch");
        if (const auto batch = canAssign() ? fittingBatch(m_study, assigned()) : std::nullopt)
            problem.fixSettings = {fmt::format("batch={}", *batch)};
    }
}

void Checker::checkPipeline()
{
    const PipelineChoice& pipeline = m_study.pipeline;
    const bool sizesGood = checkSize(pipeline.stages, 1, "the number of stages", "pipeline.stages", kLargestMesh)
        && checkSize(pipeline.microbatches, 1, "the number of microbatches", "pipeline.microbatches", kMostStepMicrobatches)
        && checkSize(pipeline.chunks, 1, "the number of chunks", "pipeline.chunks", kMostTransformerLayers);
    const std::vector<std::string>& names = m_axisNames;
    if (!pipeline.axis.empty() && !m_gaps.axes && std::find(names.begin(), names.end(), pipeline.axis) == names.end()) {
        Problem& problem = report(
            "MW1102", fmt::format("unknown axis name: \"{}\"", pipeline.axis), suggestion(pipeline.axis, names), "pipeline.axis");
        if (const auto near = nearestName(pipeline.axis, names))
            problem.fixSettings = {"pipeline.axis=" + *near};
    } else if (sizesGood && m_sizesGood && !m_gaps.axes && !m_gaps.sizes) {
        append(m_problems, checkPipelineFits(m_study));
    }
}

/// The axes of the mesh and of all phases' meshes.
std::vector<std::string> Checker::axisNames() const
{
    std::vector<std::string> names;
    const auto add = [&](const std::vector<MeshAxis>& axes) {
        for (const MeshAxis& axis : axes) {
            if (std::find(names.begin(), names.end(), axis.name) == names.end())
                names.push_back(axis.name);
        }
    };
    add(m_study.mesh);
    for (const StudyPhase& phase : m_study.phases)
        add(phase.mesh);
    return names;
}

} // namespace

Problems checkStudyParts(const Study& study, const ReadGaps& gaps)
{
    return Checker(study, gaps).check();
}

Problems checkStudy(const Study& study)
{
    Problems problems = checkStudyParts(study, ReadGaps{});
    if (std::holds_alternative<std::monostate>(study.model))
        problems.push_back(
            {"MW1421", "\"model\" is missing", "add one: model: {mlp: {layers: [64, 256, 10]}}", study.placeOf("")});
    return problems;
}

std::vector<StudyFile> filesOf(const Study& study)
{
    std::vector<StudyFile> files;
    const auto add = [&](const std::string& named, const char* path) {
        if (!named.empty())
            files.push_back({study.resolved(named), path});
    };
    if (const auto* program = std::get_if<ProgramFile>(&study.model))
        files.push_back({study.resolved(program->file), "model.program"});
    if (study.train.data.kind == TrainingData::Kind::File)
        files.push_back({study.resolved(study.train.data.file), "train.data"});
    add(study.train.data.labels, "train.data.labels");
    add(study.train.evaluate.file, "train.evaluate.file");
    add(study.train.evaluate.labels, "train.evaluate.labels");
    if (study.hardware)
        add(study.hardware->profile, "hardware.profile");
    return files;
}

Problems checkFiles(const Study& study)
{
    Problems problems;
    for (const auto& [file, path] : filesOf(study)) {
        std::error_code error;
        const auto status = std::filesystem::status(file, error);
        if (!std::filesystem::exists(status))
            problems.push_back({"MW1001", fmt::format("no such file: \"{}\"", file.string()), "paths are relative to the study",
                study.placeOf(path)});
        else if (std::filesystem::is_directory(status))
            problems.push_back({"MW1002", fmt::format("\"{}\" is a directory, not a file", file.string()), "name a file in it",
                study.placeOf(path)});
    }
    return problems;
}

Problems checkMeshFits(const Study& study, std::int64_t hardwareDevices)
{
    Problems problems;
    const auto check = [&](const std::vector<MeshAxis>& axes, const std::string& path) {
        const std::int64_t needed = devicesIn(axes);
        if (needed <= hardwareDevices)
            return;
        std::vector<std::string> names;
        for (const MeshAxis& axis : axes)
            names.push_back(fmt::format("{}={}", axis.name, axis.size));
        problems.push_back({"MW1430",
            fmt::format("the mesh {} needs {} devices, the hardware has {}", join(names, ","), needed, hardwareDevices),
            "use smaller axes, or more hardware", study.placeOf(path), Severity::Error,
            "a mesh has at most as many devices as the hardware"});
        Study part = study;
        part.mesh = axes;
        if (const auto mesh = nearestMesh(part, hardwareDevices))
            problems.back().fixSettings = meshSettings(axes, *mesh, path);
    };
    check(study.mesh, "mesh");
    for (std::size_t i = 0; i < study.phases.size(); ++i)
        check(study.phases[i].mesh, fmt::format("phases[{}].mesh", i));
    return problems;
}

} // namespace meshwright
