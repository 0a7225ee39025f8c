// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/models/fp8_recipe.h"
#include "core/models/training.h"
#include "core/models/transformer.h"
#include "core/program/pipeline_order.h"
#include "core/sharding/logical_axes.h"
#include "core/sharding/partition_spec.h"
#include "core/support/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace meshwright {

/// The largest size of a dimension, and the largest batch.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;

/// The hardware a study asks for, as text: what the names mean is the catalogue's business.
struct HardwareChoice {
    std::string chip = {}; ///< catalogue key or alias; empty when a profile is named
    std::vector<std::int64_t> topology = {}; ///< chips along each axis of a torus; empty: not given
    std::optional<std::int64_t> hosts = {};
    std::optional<std::int64_t> chipsPerHost = {};
    std::string profile = {}; ///< file of a measured machine, relative to the study
    std::optional<std::int64_t> slices = {}; ///< of a torus, each of that topology, joined by the data centre's network

    friend bool operator==(const HardwareChoice&, const HardwareChoice&) = default;
};

/// A program in StableHLO text.
struct ProgramFile {
    std::string file = {}; ///< relative to the study
    std::string function = {}; ///< empty: the only public one

    friend bool operator==(const ProgramFile&, const ProgramFile&) = default;
};

/// Nothing: the model could not be read.
using StudyModel = std::variant<std::monostate, MlpModel, ProgramFile, TransformerModel>;

/// A spec for the arrays of one name, or of all names that a glob matches.
struct ShardingEntry {
    std::string name = {}; ///< of an array, such as "layers.1.w", "opt.m.*"
    PartitionSpec spec = {};
    std::string path = {}; ///< where it stands in the study: "sharding.layers.1.w"

    friend bool operator==(const ShardingEntry&, const ShardingEntry&) = default;
};

/// A spec for whatever arrays a rule catches; the first rule that catches an array decides.
///
/// What a glob reaches: see `globCatches` (arrays.h).
struct MatchRule {
    std::string glob = "*";
    std::int64_t minElements = 0; ///< smaller arrays are not caught
    /// The axes of the spec's only entry split the largest dimension that they divide (of equal ones the first); an array
    /// without such a dimension is not caught.
    bool largestDivisibleDim = false;
    PartitionSpec spec = {};

    friend bool operator==(const MatchRule&, const MatchRule&) = default;
};

struct StudySharding {
    std::vector<ShardingEntry> entries = {}; ///< in file order; they come before all rules
    std::vector<MatchRule> match = {};
    LogicalRules rules = {}; ///< for what neither an entry nor a rule above caught, by the names of the arrays' dimensions
    std::string ruleList = {}; ///< the built-in list that the rules are ("maxtext"); empty: they are written out

    friend bool operator==(const StudySharding&, const StudySharding&) = default;
};

/// What is learned from.
struct TrainingData {
    enum class Kind : std::uint8_t {
        Random, ///< standard normal inputs and targets, one batch
        Digits, ///< the handwritten digits that come with Meshwright: 1500 to train on, 297 held out
        File, ///< a CSV file, its last column the label; or a file of inputs (IDX, NPY) beside one of labels
    };
    Kind kind = Kind::Random;
    // Of files only:
    std::string file = {}; ///< relative to the study
    std::string labels = {}; ///< the file of labels or targets (IDX, NPY); empty: they are in `file`
    double scale = 1.0; ///< every input is multiplied by this; not 0
    std::int64_t heldOut = 0; ///< the last so many rows are for measuring accuracy; >= 0
    bool shuffle = false; ///< rows are shuffled, by the seed, before they are divided

    friend bool operator==(const TrainingData&, const TrainingData&) = default;
};

/// What accuracy is measured on, and when.
struct EvaluationChoice {
    std::int64_t every = 0; ///< steps between two measurements; 0: only after the last step
    std::string file = {}; ///< rows of their own, of the kind and scale of the training data's; empty: the rows held out
    std::string labels = {}; ///< as TrainingData::labels

    friend bool operator==(const EvaluationChoice&, const EvaluationChoice&) = default;
};

struct TrainChoice {
    std::int64_t steps = 10; ///< >= 0; phases, if there are any, count instead
    std::int64_t seed = 0; ///< >= 0
    TrainingData data = {};
    std::int64_t accumulate = 1; ///< microbatches whose gradients are added up before each update; they divide the batch
    bool gradientNorm = false; ///< the gradients' global norm is measured at every step
    EvaluationChoice evaluate = {};

    friend bool operator==(const TrainChoice&, const TrainChoice&) = default;
};

/// A part of the run on a mesh of its own.
struct StudyPhase {
    std::int64_t steps = 0;
    std::vector<MeshAxis> mesh = {};
    std::vector<DeviceId> deviceOrder = {};

    friend bool operator==(const StudyPhase&, const StudyPhase&) = default;
};

struct PipelineChoice {
    std::string axis = {}; ///< mesh axis over which the stages lie; empty with one stage
    std::int64_t stages = 1;
    std::int64_t microbatches = 1;
    PipelineOrder schedule = PipelineOrder::OneForwardOneBackward;
    std::int64_t chunks = 1; ///< of each stage; more than one only when interleaved
    std::vector<std::int64_t> layers
        = {}; ///< of each stage, or of each chunk in the order of the layers; empty: the same everywhere

    friend bool operator==(const PipelineChoice&, const PipelineChoice&) = default;
};

/// What is wrong with the machine that a study is simulated on: devices count as JAX does.
struct FaultsChoice {
    struct Slow {
        std::int64_t device = 0;
        double speed = 1.0; ///< of the others'; above 0, at most 1

        friend bool operator==(const Slow&, const Slow&) = default;
    };
    struct Link {
        std::int64_t device = 0;
        std::string axis = {}; ///< of the machine: x, gpu, host
        double share = 0.0; ///< of the bandwidth that is left, both ways; 0: failed

        friend bool operator==(const Link&, const Link&) = default;
    };
    std::vector<Slow> slow = {};
    std::vector<Link> links = {};

    friend bool operator==(const FaultsChoice&, const FaultsChoice&) = default;
};

/// How collectives are simulated, and what a cluster's network is like where the catalogue takes it to be a full tree.
struct NetworkChoice {
    std::string fidelity = {}; ///< "closed", "fluid" or "message"; empty: fluid
    std::vector<std::pair<std::string, std::string>> algorithms
        = {}; ///< kind of collective ("all_reduce"; empty: every kind) and algorithm ("ring")
    std::optional<double> oversubscription = {}; ///< of the leaf switches' up-links, >= 1
    std::optional<std::int64_t> perLeaf = {}; ///< hosts on a leaf switch, >= 1

    friend bool operator==(const NetworkChoice&, const NetworkChoice&) = default;
};

/// Where the parts of a study were written. No part of its value: all are equal.
struct StudyPlaces {
    std::string file = {}; ///< the study's; empty when it was not read from one
    std::map<std::string, Place> at = {}; ///< by path in the document: "mesh.data", "model.mlp.layers.1"

    friend bool operator==(const StudyPlaces&, const StudyPlaces&) { return true; }
};

/// A study: what to train or simulate, on which mesh, with which layouts, on what hardware. A plain value that the GUI and
/// the command line share.
struct Study {
    std::string name = {};
    std::optional<HardwareChoice> hardware = {};
    std::vector<MeshAxis> mesh = {}; ///< in file order; counts devices; empty: one device
    std::vector<DeviceId> deviceOrder = {}; ///< empty: 0, 1, 2 and so on
    StudyModel model = {};
    Initializer weightInit = Initializer::LecunNormal;
    Initializer biasInit = Initializer::Zeros;
    bool partitionableRandom = true; ///< JAX's threefry mode; false: legacy
    std::int64_t batch = 1; ///< examples; of a transformer, sequences
    DType parameterType = DType::F32;
    DType matmulType = DType::F32;
    std::optional<DType> activationType = {}; ///< of transformers; nothing: the parameter type
    std::optional<DType> gradientType = {}; ///< as in TrainingOptions
    Fp8Recipe fp8 = Fp8Recipe::None; ///< of transformers; such a step is simulated, not run
    StudySharding sharding = {};
    Optimizer optimizer = SgdOptimizer{};
    double dropout = 0.0; ///< as in TrainingOptions; where it is not 0 the optimizer counts steps
    TrainChoice train = {};
    std::vector<StudyPhase> phases = {};
    PipelineChoice pipeline = {};
    FaultsChoice faults = {};
    NetworkChoice network = {};
    std::string stack = {}; ///< the software that predictions are for, one of stackWords; empty: the usual one on the chip
    StudyPlaces places = {};

    const MlpModel* mlp() const { return std::get_if<MlpModel>(&model); }
    const TransformerModel* transformer() const { return std::get_if<TransformerModel>(&model); }
    bool trains() const { return mlp() != nullptr || transformer() != nullptr; } ///< a program file does not

    /// Where the part at `path` was written, or the nearest part around it that was.
    Place placeOf(std::string_view path) const;

    /// A file that the study names, relative to the study's own folder.
    std::filesystem::path resolved(const std::string& namedFile) const;

    friend bool operator==(const Study&, const Study&) = default;
};

/// Reads a study and checks it, each setting (`path=value`, see `applySettings`) applied first.
///
/// Problems: those of `parseDocument`, `applySettings` and `checkStudy`; MW1401 an integer beyond 64 bits, MW1420 an unknown key,
/// MW1421 a key that is missing, MW1422 a value of the wrong kind, MW1423 an unknown name, MW1424 a number that is not finite,
/// MW1426 a version that this program does not know, MW1427 not exactly one of several choices,
/// MW1490 a key of transformers in a study of another model, MW1001 to MW1004, MW1350 to MW1355 a transformer's config and its sizes,
/// MW1437 far more axes, layers, rules or phases than any study has, MW1105 a text that is not a PartitionSpec. All are reported, in the order of the file.
Result<Study> readStudy(std::string_view text, const std::string& fileName, std::span<const std::string> settings = {});

/// As `readStudy`, from a file (`-`: standard input). Problems: those, of `readFile` and of `checkFiles`.
Result<Study> loadStudy(const std::filesystem::path& path, std::span<const std::string> settings = {});

/// As much of a study as could be read, and all that is wrong with it.
struct StudyReading {
    Study study; ///< what could not be read is left at its default
    Problems problems; ///< as `examineStudy` has them
    bool readable = false; ///< false: the text is not a document at all
};

/// As `readStudy`, for whoever shows a study while it is being written.
StudyReading readStudyInPart(std::string_view text, const std::string& fileName, std::span<const std::string> settings = {});

/// What `readStudy` finds, warnings included; empty when all is well.
Problems examineStudy(std::string_view text, const std::string& fileName, std::span<const std::string> settings = {});

/// Everything that is wrong with a study, however it came about. Where a program can know a remedy, the problem's `fixSettings` have it:
/// with them in place the problem is gone.
///
/// Problems: MW1401 sizes (fewer than two layers, a size below 1 or above kLargestDimension), MW1425 another number out of its range,
/// MW1429 a name that no array has, MW1431 (warning) a rule that catches nothing,
/// MW1434 (warning) train.steps beside phases, MW1441 microbatches that do not divide the batch, MW1442 (warning) a setting that has no effect
/// beside the others, MW1435 an array too large to count, MW1436 the model does not fit the data;
/// MW1101 to MW1104 of specs, MW1110 to MW1115 of meshes.
Problems checkStudy(const Study& study);

/// Whether the files that the study names are there. Problems: MW1001 there is no such file, MW1002 it is a directory.
Problems checkFiles(const Study& study);

/// What `checkStudy` cannot know: whether the hardware has as many devices as the mesh and the phases need.
/// Problems: MW1430.
Problems checkMeshFits(const Study& study, std::int64_t hardwareDevices);

/// The optimiser as a value in a study: "none" or {sgd: {learning_rate: 0.01, ..}}. Without `withUsual`, values that are as always are left out.
std::string optimizerValue(const Optimizer& optimizer, bool withUsual);

/// The study's types as a value of its `dtype`: {parameters: f32, matmul: bf16, ..}. Those that it leaves to others are left out.
std::string dtypeValue(const Study& study);

/// The study as YAML: reading it gives an equal study. Precondition: it has a model.
std::string writeStudy(const Study& study);

/// The study of one phase: its mesh and steps, no phases. Axes of the study's mesh that the phase lacks have size 1 there.
/// A study without phases has one, itself. In both the learning rate's schedule ends when the whole training does, unless it says when. Precondition: index < max(1, phases).
Study phaseStudy(const Study& study, std::size_t index);

/// The mesh. Problems: MW1110 to MW1115.
Result<Mesh> meshOf(const Study& study);

/// Words that `network` takes; what they mean is sim/network's business.
const std::vector<std::string>& fidelityWords(); ///< "closed", "fluid", "message"
const std::vector<std::string>& stackWords(); ///< "jax", "maxtext", "megatron" .., "plain": no stack's own constants
const std::vector<std::string>& collectiveWords(); ///< "all_reduce" and so on
const std::vector<std::string>& algorithmWords(); ///< "auto", "ring" and so on

/// The words of the study file.
const char* activationName(Activation activation); ///< "relu"
const char* lossName(LossKind loss); ///< "sum_squared", "mse", "cross_entropy"
const char* initializerName(Initializer initializer); ///< "normal/sqrt(fan_in)" and so on
const char* rateScheduleName(LearningRateSchedule::Kind kind); ///< "constant", "linear", "cosine"
const char* scheduleName(PipelineOrder order); ///< "gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2"
std::optional<PipelineOrder> scheduleNamed(std::string_view name);
const char* fp8RecipeName(Fp8Recipe recipe); ///< "none", "delayed", "current", "rowwise", "blockwise"

} // namespace meshwright
