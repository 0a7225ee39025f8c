// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/parts.h"

#include "core/mesh/mesh.h"
#include "core/support/text.h"
#include "sim/collective/network_cost.h"
#include "sim/transformer/step.h"
#include "sim/validate/step_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace meshwright::sim {

namespace {

Result<ChipMatch> partChip(const Record& record, const Catalogue& catalogue)
{
    // `tpu-v7x-device (half a chip)`
    std::string name = record.text("system");
    if (const auto found = catalogue.find(name))
        return *found;
    if (const auto open = name.find(" ("); open != std::string::npos)
        name = name.substr(0, open);
    if (const auto found = catalogue.find(name))
        return *found;
    if (name.ends_with("-device")) {
        if (auto found = catalogue.find(name.substr(0, name.size() - 7))) {
            found->devices = 1;
            return *found;
        }
    }
    return lacking(fmt::format("the catalogue has no chip \"{}\"", record.text("system")));
}

MathFormat partFormat(const std::string& dtype)
{
    return mathFormatNamed(dtype).value_or(MathFormat::Bf16);
}

Result<std::vector<PredictedFigure>> compareCollective(const Record& record, const Chip& chip, const Catalogue& catalogue)
{
    const std::string operation = record.text("operation");
    const std::map<std::string, OpKind> kinds = {{"all_reduce", OpKind::AllReduce}, {"all_gather", OpKind::AllGather},
        {"reduce_scatter", OpKind::ReduceScatter}, {"all_to_all", OpKind::AllToAll}};
    const auto kind = kinds.find(operation);
    if (kind == kinds.end())
        return lacking(fmt::format("the engine has no operation \"{}\"", operation));
    const auto chips = static_cast<std::int64_t>(record.numberOr("chips", 0.0));
    if (chips < 2)
        return lacking("the source gives fewer than two chips");
    HardwareChoice choice{chip.key, {}, 0, 0};
    if (chip.interconnect.kind == InterconnectKind::Torus) {
        const auto slices = sizesIn(record.text("topology"));
        if (slices.empty())
            return lacking("the source gives no topology");
        choice.topology = slices.front();
    } else {
        const std::int64_t domain = chip.fastDomain.value_or(8);
        choice.hosts = (chips + domain - 1) / domain;
        choice.perHost = chips / choice.hosts;
    }
    auto machine = buildMachine(catalogue, choice);
    if (!machine)
        return lacking(machine.error().front().message);
    const auto degree = static_cast<std::int64_t>(record.numberOr("gather_degree", static_cast<double>(machine->deviceCount())));
    if (degree < 2 || machine->deviceCount() % degree != 0)
        return lacking("the group does not divide the devices");
    std::vector<MeshAxis> axes = {{"group", degree}};
    if (machine->deviceCount() > degree)
        axes.push_back({"rest", machine->deviceCount() / degree});
    const auto mesh = Mesh::create(axes);
    if (!mesh)
        return lacking(mesh.error().front().message);
    const auto placement = placeMesh(*mesh, *machine);
    if (!placement)
        return lacking(placement.error().front().message);
    ForcedAlgorithms forced;
    // `Ring (NVLS off)`
    std::string stated = record.text("algorithm");
    stated = lowerCase(stated.substr(0, stated.find(' ')));
    if (const auto algorithm = findAlgorithm(stated))
        forced[CollectiveKind::AllReduce] = *algorithm;
    std::vector<PredictedFigure> comparisons;
    for (const Record::Point& point : record.points) {
        if (!(point.seconds > 0.0))
            continue;
        const double seconds = collectiveSeconds(
            requestOn(*placement, kind->second, {AxisRef{0, 1, degree}}, static_cast<std::int64_t>(point.bytes), forced));
        comparisons.push_back({record.id, seconds, point.seconds, point.bytes});
    }
    if (comparisons.empty())
        return lacking("the source gives no times");
    return comparisons;
}

Result<std::vector<PredictedFigure>> compareProduct(const Record& record, const ChipMatch& match, const StackConstants& constants)
{
    const DeviceCost curve(*match.chip, {.constants = constants});
    const MatmulDims product{1.0, record.numberOr("m", 0.0), record.numberOr("n", 0.0), record.numberOr("k", 0.0)};
    const double flops = 2.0 * product.m * product.n * product.k;
    const auto rate = record.number("measured.flops_per_s");
    const auto seconds = record.number("measured.time_s");
    if (!(flops > 0.0) || (!rate && !seconds))
        return lacking("the source gives no sizes or no time");
    const double predicted = curve.productSeconds(product, partFormat(record.text("dtype"))) + curve.kernelSeconds();
    return std::vector<PredictedFigure>{{record.id, predicted, seconds ? *seconds : flops / *rate}};
}

Result<std::vector<PredictedFigure>> compareMemory(const Record& record, const ChipMatch& match, const StackConstants& constants)
{
    const DeviceCost curve(*match.chip, {.constants = constants});
    if (const auto bytes = record.number("bytes")) {
        const auto rate = record.number("measured.bytes_per_s_per_device");
        if (!rate)
            return lacking("the source gives no rate of one device");
        return std::vector<PredictedFigure>{{record.id, curve.streamSeconds(*bytes) + curve.kernelSeconds(), *bytes / *rate}};
    }
    const auto elements = record.numberOr("rows", 0.0) * record.numberOr("columns", 0.0);
    const auto rate = record.number("measured.elements_per_s");
    if (!(elements > 0.0) || !rate)
        return lacking("the source gives no shape or no rate");
    const double bytes = 2.0 * bytesPerElement(partFormat(record.text("dtype"))) * elements;
    return std::vector<PredictedFigure>{{record.id, curve.streamSeconds(bytes) + curve.kernelSeconds(), elements / *rate}};
}

/// A plan of one GPT layer, or of a few, from the fields that records of parts have.
TrainingPlan planOf(const Record& record, const StackTraits& traits)
{
    TrainingPlan plan;
    const auto count
        = [&](const char* path, double otherwise) { return static_cast<std::int64_t>(record.numberOr(path, otherwise)); };
    TransformerConfig& model = plan.model;
    model.layers = count("model.layers", 1.0);
    model.hidden = count("model.hidden", 0.0);
    model.heads = model.keyValueHeads = count("model.heads", 1.0);
    model.headDim = count(
        "model.head_dim", static_cast<double>(model.hidden) / static_cast<double>(std::max<std::int64_t>(1, model.heads)));
    model.ffn = count("model.ffn", 4.0 * static_cast<double>(model.hidden));
    model.vocabulary = 51200;
    model.tiedEmbeddings = true;
    model.norm = NormKind::LayerNorm;
    model.position = PositionKind::Learned;
    model.activation = TransformerActivation::GeluTanh; // as Megatron fuses it
    model.attentionBias = model.outputBias = model.ffnBias = true;
    plan.details.dropout = true;
    plan.work.sequence = count("model.seq", record.numberOr("sequence_in", 2048.0));
    model.maxPositions = plan.work.sequence;
    plan.work.microbatch = record.numberOr("microbatch_sequences", record.numberOr("batch", 1.0));
    plan.work.globalBatch = std::max<std::int64_t>(1, static_cast<std::int64_t>(plan.work.microbatch));
    plan.work.format = plan.work.activationFormat = MathFormat::Fp16;
    plan.work.attention = traits.attention;
    plan.work.recompute = recomputationInWords(record.text("recompute")).value_or(Recomputation{});
    plan.layout.tp = count("parallel.tp", 1.0);
    plan.layout.pp = count("parallel.pp", 1.0);
    plan.layout.virtualStages = count("parallel.interleave", 1.0);
    if (plan.layout.virtualStages > 1)
        plan.layout.schedule = PipelineOrder::Interleaved;
    plan.layout.sequenceParallel
        = record.numberOr("parallel.sequence_parallel", record.numberOr("parallel.megatron_sequence_parallel", 0.0)) != 0.0;
    return plan;
}

Result<std::vector<PredictedFigure>> compareLayer(
    const Record& record, const ChipMatch& match, const StackConstants& constants, const StackTraits& traits)
{
    TrainingPlan plan = planOf(record, traits);
    if (plan.work.attention != AttentionKernel::Unfused)
        plan.work.attention = AttentionKernel::FusedSoftmax; // the records are older than fused attention
    const auto checked = checkPlan(plan);
    if (!checked)
        return checked.error();
    const DeviceCost curve(*match.chip, {.constants = constants});
    ClusterChoice choice;
    choice.devices = plan.layout.tp;
    const Cluster cluster(*match.chip, choice, constants);
    const LayerCost layer = layerCost(plan, curve, cluster, constants);
    std::vector<PredictedFigure> comparisons;
    PassCost backward = layer.backward;
    backward += layer.again;
    for (const auto& [path, predicted] : {std::pair{"measured.forward_time_s", passSeconds(layer.forward, curve)},
             std::pair{"measured.backward_time_s", passSeconds(backward, curve)},
             std::pair{"measured.layer_time_s", passSeconds(layer.forward, curve)}}) {
        if (const auto measured = record.number(path))
            comparisons.push_back({record.id, predicted, *measured});
    }
    if (comparisons.empty())
        return lacking("the source gives no times");
    return comparisons;
}

Result<std::vector<PredictedFigure>> compareActivations(const Record& record, const Catalogue& catalogue)
{
    StackTraits traits;
    traits.attention = AttentionKernel::FusedSoftmax;
    TrainingPlan plan = planOf(record, traits);
    plan.work.globalBatch = static_cast<std::int64_t>(plan.work.microbatch) * std::max<std::int64_t>(1, plan.layout.pp);
    const auto checked = checkPlan(plan);
    if (!checked)
        return checked.error();
    const auto chip = catalogue.find("a100");
    if (!chip)
        return chip.error();
    const DeviceCost curve(*chip->chip);
    ClusterChoice choice;
    choice.devices = plan.layout.tp;
    const Cluster cluster(*chip->chip, choice, {});
    const LayerCost layer = layerCost(plan, curve, cluster, {});
    const double pp = static_cast<double>(plan.layout.pp);
    const double chunks = static_cast<double>(plan.layout.virtualStages);
    const double layers = static_cast<double>(plan.model.layers) / pp;
    const double held = heldChunks(plan.layout.schedule, pp, 0.0, chunks, 4.0 * pp) / chunks;
    std::vector<PredictedFigure> comparisons;
    if (const auto answer = record.number("answer.activation_bytes"))
        comparisons.push_back({record.id, layers * layer.keptBytes * held, *answer});
    if (comparisons.empty())
        return lacking("the source gives no bytes");
    return comparisons;
}

} // namespace

Result<std::vector<PredictedFigure>> comparePart(const Record& record, const Catalogue& catalogue, const Calibration& calibration)
{
    static constexpr std::array kKinds{"activation_memory", "collective", "gemm", "memory_op", "layer_time", "op_times"};
    if (std::ranges::find(kKinds, record.kind) == kKinds.end())
        return lacking(fmt::format("\"{}\" is not a kind of record that can be predicted", record.kind));
    if (record.kind == "activation_memory")
        return compareActivations(record, catalogue);
    const auto match = partChip(record, catalogue);
    if (!match)
        return match.error();
    if (record.kind == "collective")
        return compareCollective(record, *match->chip, catalogue);
    const std::string stack = calibration.stackOf(record.file, record.text("software"));
    const StackConstants& constants = calibration.constants(stack, *match->chip);
    if (record.kind == "gemm")
        return compareProduct(record, *match, constants);
    if (record.kind == "memory_op")
        return compareMemory(record, *match, constants);
    return compareLayer(record, *match, constants, calibration.traits(stack));
}

} // namespace meshwright::sim
