// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/arrays.h"
#include "core/study/study_parts.h"
#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace meshwright {

namespace {

/// The digits that come with Meshwright: 8 x 8 pixels, ten classes.
constexpr std::int64_t kDigitsInputs = 64;
constexpr std::int64_t kDigitsClasses = 10;
constexpr std::int64_t kDigitsTrainingRows = 1500;

class Checker {
public:
    Checker(const Study& study, const ReadGaps& gaps)
        : m_study(study)
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
        checkSharding();
        return std::move(m_problems);
    }

private:
    void report(const char* id, std::string message, std::string fix, const std::string& path, std::string rule = {},
        Severity severity = Severity::Error)
    {
        m_problems.push_back({id, std::move(message), std::move(fix), m_study.placeOf(path), severity, std::move(rule)});
    }

    /// True when the size is in its range.
    bool checkSize(std::int64_t size, std::int64_t least, const std::string& what, const std::string& path)
    {
        if (size >= least && size <= kLargestDimension)
            return true;
        report("MW1401",
            fmt::format("{} must be {} {}, got {}", what, size < least ? "at least" : "at most",
                size < least ? least : kLargestDimension, size),
            fmt::format("give a number from {} to {}", least, kLargestDimension), path);
        return false;
    }

    void checkRange(bool good, double value, const char* range, const std::string& path)
    {
        if (!good)
            report("MW1425", fmt::format("{} is out of range, got {}", path, value), fmt::format("give {}", range), path,
                fmt::format("{} is {}", path, range));
    }

    void checkHardware();
    void checkMesh(const std::vector<MeshAxis>& axes, const std::vector<DeviceId>& order, const std::string& path);
    void checkModel();
    void checkOptimizer();
    void checkTrain();
    void checkPipeline();
    void checkSharding();
    void checkNames(const std::vector<StudyArray>& arrays);
    void checkRuleUse(const std::vector<AssignedSpec>& assigned);
    bool checkAxes(const PartitionSpec& spec, const std::string& path);
    void checkAssigned(const AssignedSpec& assigned);
    void checkDivisible(const AssignedSpec& assigned, const std::vector<MeshAxis>& mesh, const std::string& meshPath);
    std::vector<std::string> axisNames() const;

    const Study& m_study;
    const ReadGaps& m_gaps;
    const std::vector<std::string> m_axisNames;
    Problems m_problems;
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
    for (std::size_t i = 0; i < hardware.topology.size(); ++i)
        checkSize(hardware.topology[i], 1, "a side of the topology", fmt::format("hardware.topology[{}]", i));
    if (hardware.hosts)
        checkSize(*hardware.hosts, 1, "the number of hosts", "hardware.hosts");
    if (hardware.chipsPerHost)
        checkSize(*hardware.chipsPerHost, 1, "the number of chips in a host", "hardware.per_host");
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
            at = path + ".device_order";
            if (!m_study.places.at.contains(at) && m_study.places.at.contains("device_order"))
                at = "device_order";
        }
        problem.place = m_study.placeOf(at);
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
    const MlpModel* mlp = m_study.mlp();
    m_sizesGood = m_sizesGood && checkSize(m_study.batch, 1, "the batch", "batch");
    if (mlp == nullptr)
        return;
    if (mlp->layers.size() < 2) {
        report("MW1401", fmt::format("an MLP needs at least two layer sizes, got {}", mlp->layers.size()),
            "give inputs and outputs: layers: [64, 10]", "model.mlp.layers");
        m_sizesGood = false;
    }
    bool layersGood = true;
    for (std::size_t i = 0; i < mlp->layers.size(); ++i)
        layersGood = checkSize(mlp->layers[i], 1, "a layer's size", fmt::format("model.mlp.layers[{}]", i)) && layersGood;
    m_sizesGood = m_sizesGood && layersGood;
    if (!m_sizesGood)
        return;

    // All bytes of all arrays are counted in 63 bits: the widest type, moments and gradients included.
    constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
    for (const StudyArray& array : studyArrays(m_study)) {
        const auto count = checkedProduct(array.shape);
        if (count && *count <= kMostElements)
            continue;
        const bool withBatch = array.kind == StudyArray::Kind::Input || array.kind == StudyArray::Kind::Activation;
        m_sizesGood = false;
        if (array.kind == StudyArray::Kind::Parameter || withBatch)
            report("MW1435", fmt::format("\"{}\" of shape {} has more than 2^56 elements", array.name, shapeText(array.shape)),
                "use smaller sizes", withBatch ? "batch" : "model.mlp.layers");
    }
}

void Checker::checkOptimizer()
{
    if (const auto* sgd = std::get_if<SgdOptimizer>(&m_study.optimizer)) {
        checkRange(sgd->learningRate > 0, sgd->learningRate, "above 0", "optimizer.sgd.learning_rate");
        checkRange(sgd->momentum >= 0 && sgd->momentum < 1, sgd->momentum, "at least 0 and below 1", "optimizer.sgd.momentum");
    } else if (const auto* adam = std::get_if<AdamOptimizer>(&m_study.optimizer)) {
        checkRange(adam->learningRate > 0, adam->learningRate, "above 0", "optimizer.adam.learning_rate");
        checkRange(adam->beta1 >= 0 && adam->beta1 < 1, adam->beta1, "at least 0 and below 1", "optimizer.adam.beta1");
        checkRange(adam->beta2 >= 0 && adam->beta2 < 1, adam->beta2, "at least 0 and below 1", "optimizer.adam.beta2");
        checkRange(adam->epsilon > 0, adam->epsilon, "above 0", "optimizer.adam.epsilon");
    }
}

void Checker::checkTrain()
{
    const TrainChoice& train = m_study.train;
    checkSize(train.steps, 0, "steps", "train.steps");
    checkSize(train.seed, 0, "the seed", "train.seed");
    if (train.data.kind == TrainingData::Kind::File) {
        checkSize(train.data.heldOut, 0, "the number of rows held out", "train.data.held_out");
        checkRange(train.data.scale != 0, train.data.scale, "any number but 0", "train.data.scale");
        const std::string suffix = std::filesystem::path(train.data.file).extension().string();
        if (suffix == ".npy" || suffix == ".npz" || suffix == ".idx" || train.data.file.ends_with("ubyte"))
            report("MW1428", fmt::format("\"{}\": IDX and NPY files are not read in this version", train.data.file),
                "write the rows as CSV, the label in the last column", "train.data");
    }
    if (!m_study.phases.empty() && m_study.places.at.contains("train.steps")) {
        std::int64_t total = 0;
        for (const StudyPhase& phase : m_study.phases)
            total += std::clamp<std::int64_t>(phase.steps, 0, kLargestDimension);
        if (total != train.steps)
            report("MW1434",
                fmt::format("train.steps is {}, but the phases have {} steps together: the phases count", train.steps, total),
                "remove train.steps, or make them agree", "train.steps", {}, Severity::Warning);
    }

    const MlpModel* mlp = m_study.mlp();
    if (train.data.kind != TrainingData::Kind::Digits || mlp == nullptr || mlp->layers.size() < 2)
        return;
    const std::string rule = "a digit is an image of 8 x 8 = 64 pixels in one of 10 classes";
    if (mlp->layers.front() != kDigitsInputs)
        report("MW1436", fmt::format("the digits have {} inputs, the first layer takes {}", kDigitsInputs, mlp->layers.front()),
            "begin the layers with 64", "model.mlp.layers[0]", rule);
    if (mlp->layers.back() != kDigitsClasses)
        report("MW1436", fmt::format("the digits have {} classes, the last layer gives {}", kDigitsClasses, mlp->layers.back()),
            "end the layers with 10", fmt::format("model.mlp.layers[{}]", mlp->layers.size() - 1), rule);
    if (!m_gaps.sizes && m_study.batch > kDigitsTrainingRows && m_study.batch <= kLargestDimension)
        report("MW1436",
            fmt::format("a batch of {} is more than the {} digits that are for training", m_study.batch, kDigitsTrainingRows),
            fmt::format("use a batch of at most {}", kDigitsTrainingRows), "batch");
}

void Checker::checkPipeline()
{
    const PipelineChoice& pipeline = m_study.pipeline;
    const bool sizesGood = checkSize(pipeline.stages, 1, "the number of stages", "pipeline.stages")
        && checkSize(pipeline.microbatches, 1, "the number of microbatches", "pipeline.microbatches");
    if (sizesGood && pipeline.stages > 1)
        report("MW1428", fmt::format("{} pipeline stages: this version runs one", pipeline.stages),
            "write stages: 1; a mesh axis may still shard arrays", "pipeline.stages");
    if (sizesGood && pipeline.microbatches > 1)
        report("MW1428", fmt::format("{} microbatches: this version runs one", pipeline.microbatches), "write microbatches: 1",
            "pipeline.microbatches");
    const std::vector<std::string>& names = m_axisNames;
    if (!pipeline.axis.empty() && !m_gaps.axes && std::find(names.begin(), names.end(), pipeline.axis) == names.end())
        report(
            "MW1102", fmt::format("unknown axis name: \"{}\"", pipeline.axis), suggestion(pipeline.axis, names), "pipeline.axis");
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

/// True when the axes of a spec are known, each used once.
bool Checker::checkAxes(const PartitionSpec& spec, const std::string& path)
{
    if (m_gaps.axes)
        return false;
    const std::vector<std::string>& names = m_axisNames;
    std::set<std::string> seen;
    bool good = true;
    for (const auto& axes : spec.dims) {
        for (const std::string& axis : axes) {
            if (std::find(names.begin(), names.end(), axis) == names.end())
                report("MW1102", fmt::format("unknown axis name: \"{}\"", axis),
                    names.empty() ? fmt::format("add the axis to the mesh: mesh: {{{}: 2}}", axis) : suggestion(axis, names),
                    path, names.empty() ? "the study has no mesh axes" : "the mesh has the axes " + join(names, ", "));
            else if (!seen.insert(axis).second)
                report("MW1103", fmt::format("axis \"{}\" is used twice in the spec {}", axis, specText(spec)),
                    "use each axis for one dimension only", path);
            else
                continue;
            good = false;
        }
    }
    return good;
}

void Checker::checkSharding()
{
    std::set<std::string> badSpecs; // paths of specs whose axes are wrong: nothing more is said of them
    for (const ShardingEntry& entry : m_study.sharding.entries) {
        if (!checkAxes(entry.spec, entry.path))
            badSpecs.insert(entry.path);
    }
    for (std::size_t i = 0; i < m_study.sharding.match.size(); ++i) {
        const std::string path = fmt::format("sharding.match[{}]", i);
        const MatchRule& rule = m_study.sharding.match[i];
        if (rule.minElements < 0)
            checkSize(rule.minElements, 0, "min_elements", path + ".min_elements");
        if (rule.largestDivisibleDim && rule.spec.dims.size() != 1)
            report("MW1427",
                fmt::format("{} has {} entries, but \"divisible: largest_dim\" puts one entry on one dimension",
                    specText(rule.spec), rule.spec.dims.size()),
                "give one entry: spec: [data]", path + ".spec");
        else if (checkAxes(rule.spec, path + ".spec"))
            continue;
        badSpecs.insert(path);
    }
    for (std::size_t i = 0; i < m_study.sharding.rules.size(); ++i) {
        const LogicalRule& rule = m_study.sharding.rules[i];
        checkAxes(PartitionSpec{{rule.axes}}, fmt::format("sharding.rules[{}]", i));
    }

    const std::vector<StudyArray> arrays = studyArrays(m_study);
    if (arrays.empty())
        return;
    checkNames(arrays);
    if (!m_sizesGood || m_gaps.sizes || m_gaps.axes)
        return;
    const std::vector<AssignedSpec> assigned = assignedSpecs(m_study);
    for (const AssignedSpec& one : assigned) {
        if (!badSpecs.contains(one.path))
            checkAssigned(one);
    }
    checkRuleUse(assigned);
}

void Checker::checkNames(const std::vector<StudyArray>& arrays)
{
    std::vector<std::string> names;
    for (const StudyArray& array : arrays)
        names.push_back(array.name);
    const std::set<std::string> known(names.begin(), names.end());
    const std::size_t layers = m_study.mlp()->layers.size() - 1;
    int searched = 0; // comparing with all names takes its time: the first wrong names say enough
    for (const ShardingEntry& entry : m_study.sharding.entries) {
        const bool isGlob = entry.name.find_first_of("*?") != std::string::npos;
        if (known.contains(entry.name) || (isGlob && std::any_of(arrays.begin(), arrays.end(), [&](const StudyArray& array) {
                return globCatches(entry.name, array);
            })))
            continue;
        constexpr int kMostSearched = 20;
        const auto near = searched++ < kMostSearched ? nearestName(entry.name, names) : std::nullopt;
        report("MW1429", fmt::format("no array has the name \"{}\"", entry.name),
            near ? fmt::format("did you mean \"{}\"?", *near)
                 : fmt::format("names are x, y, layers.0.w to layers.{}.w, opt.m.NAME, grad.NAME, act.layers.N", layers - 1),
            entry.path);
    }
}

void Checker::checkRuleUse(const std::vector<AssignedSpec>& assigned)
{
    for (std::size_t i = 0; i < m_study.sharding.match.size(); ++i) {
        if (std::any_of(assigned.begin(), assigned.end(), [&](const AssignedSpec& one) { return one.rule == i; }))
            continue;
        const std::string& glob = m_study.sharding.match[i].glob;
        report("MW1431", fmt::format("the rule for \"{}\" catches nothing", glob),
            "remove it, or put it before the rule that takes its arrays", fmt::format("sharding.match[{}]", i),
            "the first rule that catches an array decides; specs by name come before all rules", Severity::Warning);
    }
}

void Checker::checkAssigned(const AssignedSpec& assigned)
{
    const StudyArray& array = assigned.array;
    if (assigned.spec.dims.size() > array.shape.size()) {
        report("MW1101",
            fmt::format("the spec {} has {} entries, but \"{}\" has rank {} ({})", specText(assigned.spec),
                assigned.spec.dims.size(), array.name, array.shape.size(),
                array.shape.empty() ? "a scalar" : join(array.meaning, ", ")),
            fmt::format("give at most {} entries", array.shape.size()), assigned.path, "at most one entry for each dimension");
        return;
    }
    checkDivisible(assigned, m_study.mesh, "");
    for (std::size_t i = 0; i < m_study.phases.size(); ++i)
        checkDivisible(assigned, m_study.phases[i].mesh, fmt::format("phases[{}]", i));
}

void Checker::checkDivisible(const AssignedSpec& assigned, const std::vector<MeshAxis>& mesh, const std::string& phase)
{
    const StudyArray& array = assigned.array;
    for (std::size_t dim = 0; dim < assigned.spec.dims.size(); ++dim) {
        std::int64_t pieces = 1;
        for (const std::string& name : assigned.spec.dims[dim]) {
            const auto axis = std::find_if(mesh.begin(), mesh.end(), [&](const MeshAxis& a) { return a.name == name; });
            if (axis != mesh.end())
                pieces *= axis->size; // a mesh is small: checked
        }
        const std::int64_t size = array.shape[dim];
        if (size % pieces == 0)
            continue;
        const std::int64_t below = size / pieces * pieces;
        const std::string sizes = below > 0 ? fmt::format("{} or {}", below, below + pieces) : fmt::format("{}", pieces);
        report("MW1104",
            fmt::format("\"{}\": dim {} ({}) of size {} is not divisible by {}{}", array.name, dim, array.meaning[dim], size,
                pieces, phase.empty() ? "" : fmt::format(" in {}", phase)),
            fmt::format("make it {}, or leave the dimension whole", sizes), assigned.path,
            fmt::format("mesh {} ({}) cuts the dimension into {} equal pieces",
                assigned.spec.dims[dim].size() == 1 ? "axis" : "axes", join(assigned.spec.dims[dim], ", "), pieces));
    }
}

std::int64_t devicesIn(const std::vector<MeshAxis>& axes)
{
    std::int64_t count = 1;
    for (const MeshAxis& axis : axes)
        count *= axis.size;
    return count;
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

Problems checkFiles(const Study& study)
{
    Problems problems;
    const auto check = [&](const std::string& named, const char* path) {
        std::error_code error;
        const std::filesystem::path file = study.resolved(named);
        const auto status = std::filesystem::status(file, error);
        if (!std::filesystem::exists(status))
            problems.push_back({"MW1001", fmt::format("there is no file \"{}\"", file.string()),
                "paths are relative to the study", study.placeOf(path)});
        else if (std::filesystem::is_directory(status))
            problems.push_back({"MW1002", fmt::format("\"{}\" is a directory, not a file", file.string()), "name a file in it",
                study.placeOf(path)});
    };
    if (const auto* program = std::get_if<ProgramFile>(&study.model))
        check(program->file, "model.program");
    if (study.train.data.kind == TrainingData::Kind::File)
        check(study.train.data.file, "train.data");
    if (study.hardware && !study.hardware->profile.empty())
        check(study.hardware->profile, "hardware.profile");
    return problems;
}

Problems checkMeshFits(const Study& study, std::int64_t hardwareDevices)
{
    Problems problems;
    const auto check = [&](const std::vector<MeshAxis>& axes, const std::string& path) {
        const std::int64_t needed = devicesIn(axes);
        if (needed > hardwareDevices)
            problems.push_back({"MW1430", fmt::format("the mesh needs {} devices, the hardware has {}", needed, hardwareDevices),
                "use smaller axes, or a larger slice", study.placeOf(path), Severity::Error,
                "a mesh has at most as many devices as the hardware"});
    };
    check(study.mesh, "mesh");
    for (std::size_t i = 0; i < study.phases.size(); ++i)
        check(study.phases[i].mesh, fmt::format("phases[{}].mesh", i));
    return problems;
}

} // namespace meshwright
