// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/pipeline_program.h"

#include "core/autodiff/differentiate.h"
#include "core/models/array_name.h"
#include "core/models/training_program.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/schedule/stage_array.h"
#include "core/support/timed_stop.h"
#include "core/train/alike_functions.h"
#include "core/train/function_slice.h"
#include "core/train/gradient_sums.h"
#include "core/train/split_backward.h"
#include "core/train/training_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace meshwright {

namespace {

using Kind = StageArray::Kind;
using Layouts = std::map<std::string, TensorSharding>;

std::string nameOf(Kind kind, std::string name = {}, std::size_t number = 0)
{
    return StageArray{kind, std::move(name), number}.text();
}

std::string gradientOf(const std::string& parameter)
{
    return nameOf(Kind::Gradient, parameter);
}

std::string sumOf(const std::string& parameter)
{
    return nameOf(Kind::GradientSum, parameter);
}

std::vector<std::string> argumentNames(const Function& function)
{
    std::vector<std::string> names;
    for (const ValueId argument : function.arguments())
        names.push_back(function[argument].name);
    return names;
}

/// Over how many devices the elements lie.
std::int64_t pieceCount(const TensorSharding& layout)
{
    std::int64_t count = 1;
    for (const DimSharding& dim : layout.dims)
        count *= shardCount(dim.axes);
    return count;
}

/// As of forEachOp.
std::vector<OpId> opsOf(const Function& function)
{
    std::vector<OpId> ops;
    forEachOp(function, [&](OpId op) { ops.push_back(op); });
    return ops;
}

/// Gives arguments and results of these names these layouts.
void pin(Function& function, const Layouts& layouts)
{
    for (const ValueId id : function.arguments()) {
        Value& argument = function[id];
        if (const auto layout = layouts.find(argument.name); layout != layouts.end())
            argument.sharding = layout->second;
        if (argument.name == nameOf(Kind::Input) || argument.name == nameOf(Kind::OutputGradient))
            argument.annotation = "pipeline"; // where the study cuts the model
    }
    // A sum that is still in parts lies like nothing else of its group: a moment of the optimizer is whole.
    for (std::vector<ValueId>& group : function.shardingGroups) {
        std::erase_if(
            group, [&](ValueId value) { return function[value].sharding && !function[value].sharding->unreduced.empty(); });
    }
    std::erase_if(function.shardingGroups, [](const std::vector<ValueId>& group) { return group.size() < 2; });
    function.resultShardings.resize(function.results().size());
    for (std::size_t i = 0; i < function.resultNames.size(); ++i) {
        if (const auto layout = layouts.find(function.resultNames[i]); layout != layouts.end())
            function.resultShardings[i] = layout->second;
    }
}

/// The layouts that a device function's arguments and results have.
void learn(const Function& device, Layouts& layouts)
{
    for (const ValueId argument : device.arguments())
        layouts[device[argument].name] = *device[argument].sharding;
    for (std::size_t i = 0; i < device.resultNames.size(); ++i)
        layouts[device.resultNames[i]] = *device[device.results()[i]].sharding;
}

/// The two functions of one piece.
struct Piece {
    Function forward;
    Function backward;
    std::vector<std::string> parameters;
};

/// A piece, and what it was cut out of.
struct KnownPiece {
    Function source;
    std::vector<Residual> residuals; ///< of its ops, as of forEachOp
    std::vector<DType> gradients; ///< of its parameters
    Piece piece;
};

/// A function of a stage, and what its devices run.
struct KnownFunction {
    Function source;
    bool accumulates = false;
    ScheduledFunction scheduled;
};

class PipelineBuilder {
public:
    PipelineBuilder(const Program& program, const PipelineCut& cut)
        : m_program(program)
        , m_cut(cut)
        , m_model(program.find("microbatch") != nullptr ? *program.find("microbatch") : *program.find("evaluate"))
        , m_step(*program.find("step"))
        , m_layouts(static_cast<std::size_t>(cut.shape.stages))
    {
        markResiduals();
        for (std::size_t i = 0; i < m_step.values.size(); ++i) {
            if (const StageArray array = stageArrayOf(m_step.values[i].name); array.kind == Kind::Gradient)
                m_gradients.emplace(array.name, i);
        }
        for (const ValueId argument : m_step.arguments()) {
            const Value& array = m_step[argument];
            const ArrayName name = arrayNameOf(array.name);
            if (array.role != Role::OptimizerState || !name.isState() || !array.sharding)
                continue;
            TensorSharding& layout = m_moments.try_emplace(name.base, *array.sharding).first->second;
            if (pieceCount(*array.sharding) > pieceCount(layout))
                layout = *array.sharding;
        }
        const std::vector<std::string>& made = program.find("init")->resultNames;
        for (std::size_t i = 0; i < made.size(); ++i)
            m_initOf.emplace(made[i], i);
    }

    Result<ScheduledProgram> build()
    {
        if (m_step.donations.empty())
            return Problem{"MW1545", "a pipeline trains, and the study has no optimizer",
                "name one, such as optimizer: {sgd: {learning_rate: 0.01}}"};
        m_scheduled.policy = m_cut.policy;
        m_scheduled.pipeline = m_cut.shape;
        for (std::int64_t stage = 0; stage < m_cut.shape.stages; ++stage) {
            ScheduledStage& made = m_scheduled.stages.emplace_back();
            made.meshes.push_back({m_program.meshes.front().name, stageMesh(stage)});
        }
        for (std::size_t piece = 0; piece < pieces(); ++piece) {
            if (m_cut.stop.stop_requested())
                return stoppedProblem();
            if (auto added = addPiece(piece); !added)
                return added.error();
        }
        for (std::size_t stage = 0; stage < m_scheduled.stages.size(); ++stage) {
            if (m_cut.stop.stop_requested())
                return stoppedProblem();
            if (auto added = addUpdate(stage); !added)
                return added.error();
        }
        if (!m_problems.empty())
            return m_problems;
        std::vector<std::size_t> sharing;
        for (std::size_t stage = 0; stage < m_scheduled.stages.size(); ++stage) {
            if (std::ranges::any_of(m_shared, [&](const auto& entry) { return isOn(entry.first, stage); }))
                sharing.push_back(stage);
        }
        m_scheduled.tasks = pipelineTasks(m_cut.shape, squaredNorm().has_value(), sharing);
        return std::move(m_scheduled);
    }

private:
    std::size_t pieces() const { return static_cast<std::size_t>(m_cut.shape.pieces()); }
    std::size_t stageOf(std::size_t piece) const { return piece % m_scheduled.stages.size(); }
    std::size_t chunkOf(std::size_t piece) const { return piece / m_scheduled.stages.size(); }
    bool isLast(std::size_t piece) const { return piece + 1 == pieces(); }

    /// The mesh with the stage's devices: its axes keep their places, the pipeline's has size 1.
    Mesh stageMesh(std::int64_t stage) const
    {
        const Mesh& whole = m_program.meshes.front().mesh;
        const auto axis = whole.findAxis(m_cut.axis);
        if (!axis)
            return whole;
        std::vector<MeshAxis> axes = whole.axes();
        axes[*axis].size = 1;
        std::vector<DeviceId> devices;
        for (std::int64_t position = 0; position < whole.deviceCount(); ++position) {
            if (whole.coordinate(position, *axis) == stage)
                devices.push_back(whole.deviceAt(position));
        }
        auto mesh = Mesh::create(std::move(axes), std::move(devices));
        assert(mesh);
        return *std::move(mesh);
    }

    /// Adds what the devices of a stage run of a function: `accumulates`, of one that adds up its gradients. Stages' meshes differ in nothing but their
    /// devices, so what one learnt of a function holds for a like one of another.
    Result<const Function*> add(std::size_t stage, Function function, bool accumulates = false)
    {
        std::vector<ScheduledFunction>& functions = m_scheduled.stages[stage].functions;
        for (const KnownFunction& known : m_knownFunctions) {
            const auto names = known.accumulates == accumulates ? renamingOf(known.source, function) : std::nullopt;
            if (!names)
                continue;
            ScheduledFunction& made = functions.emplace_back(known.scheduled);
            made.device = renamed(std::move(made.device), *names);
            made.device.function.name = function.name;
            return &made.device.function;
        }
        Program program;
        program.meshes = m_scheduled.stages[stage].meshes;
        program.functions.push_back(function);
        auto partitioned = propagateAndPartition(std::move(program));
        if (!partitioned)
            return partitioned.error();
        m_scheduled.collectiveCost = partitioned->device.collectiveCost;
        DeviceFunction& device = partitioned->device.stages.front().functions.front();
        const bool isAlikeWithOtherNames = device.warnings.empty(); // their texts name values
        functions.push_back(schedule(accumulates ? accumulating(device) : std::move(device), m_cut.policy));
        if (isAlikeWithOtherNames)
            m_knownFunctions.push_back({std::move(function), accumulates, functions.back()});
        return &functions.back().device.function;
    }

    Result<ValueId> cutValue(std::size_t piece) const
    {
        const std::string& name = m_cut.after[piece];
        if (const auto value = m_model.findValue(name))
            return *value;
        return Problem{"MW1543", fmt::format("the model has no value \"{}\" to be cut at", name), "report it with the study"};
    }

    /// Finds the ops of the model's loss among those of the function that is cut: they end with the op that makes "loss".
    void markResiduals()
    {
        if (m_cut.residuals.empty())
            return;
        const std::vector<OpId> ops = opsOf(m_model);
        const OpId last = m_model[m_model.results()[resultIndexOf(m_model, "loss")]].producer;
        const auto end = std::find(ops.begin(), ops.end(), last) + 1;
        assert(end - ops.begin() >= static_cast<std::ptrdiff_t>(m_cut.residuals.size()));
        const auto begin = end - static_cast<std::ptrdiff_t>(m_cut.residuals.size());
        for (std::size_t i = 0; i < m_cut.residuals.size(); ++i) {
            m_residuals.emplace(*(begin + static_cast<std::ptrdiff_t>(i)), m_cut.residuals[i]);
        }
    }

    Residual residualOf(OpId op) const
    {
        const auto found = m_residuals.find(op);
        return found == m_residuals.end() ? Residual::Kept : found->second;
    }

    /// Cuts a piece out of the model and differentiates it.
    Result<Piece> pieceOf(std::size_t piece)
    {
        std::vector<ValueId> from;
        std::vector<ValueId> to;
        std::vector<std::string> names;
        if (piece > 0) {
            const auto value = cutValue(piece - 1);
            if (!value)
                return value.error();
            from.push_back(*value);
        }
        if (isLast(piece)) {
            names = {"loss", "accuracy", "predictions"};
            for (const std::string& name : names)
                to.push_back(m_model.results()[resultIndexOf(m_model, name)]);
        } else {
            const auto value = cutValue(piece);
            if (!value)
                return value.error();
            to.push_back(*value);
            names = {nameOf(Kind::Output)};
        }
        FunctionSlice slice = sliced(m_model, from, to);
        Function& whole = slice.function;
        whole.name = functionOf(TaskKind::Forward, chunkOf(piece));
        whole.resultNames = names;
        Piece made;
        std::vector<std::size_t> wrt;
        for (std::size_t i = 0; i < whole.arguments().size(); ++i) {
            Value& argument = whole[whole.arguments()[i]];
            const bool isIn = piece > 0 && i == 0;
            if (isIn) {
                argument.name = nameOf(Kind::Input);
                argument.role = Role::Activation;
            } else if (argument.role == Role::Parameter) {
                made.parameters.push_back(argument.name);
            } else {
                const bool isInput = (argument.name == "x" && piece == 0) || (argument.name == "y" && isLast(piece))
                    || argument.name == "opt.step" || argument.name.starts_with("dropout.");
                if (!isInput)
                    return Problem{"MW1544",
                        fmt::format("piece {} of the pipeline needs {}, which only the {} piece has", piece, argument.name,
                            argument.name == "x" ? "first" : "last"),
                        "cut the model at other places"};
                continue;
            }
            wrt.push_back(i);
        }
        std::vector<Residual> residuals;
        for (const OpId taken : slice.ops)
            forEachOp(m_model, taken, [&](OpId op) { residuals.push_back(residualOf(op)); });
        std::vector<DType> gradients;
        for (const std::string& parameter : made.parameters)
            gradients.push_back(gradientType(parameter).dtype);
        for (const KnownPiece& known : m_knownPieces) {
            const bool isAlike = known.residuals == residuals && known.gradients == gradients;
            if (const auto renaming = isAlike ? renamingOf(known.source, whole) : std::nullopt) {
                made.forward = renamed(known.piece.forward, *renaming);
                made.forward.name = functionOf(TaskKind::Forward, chunkOf(piece));
                made.backward = renamed(known.piece.backward, *renaming);
                made.backward.name = functionOf(TaskKind::Backward, chunkOf(piece));
                return made;
            }
        }
        std::map<OpId, Residual> residualsOfOps;
        std::size_t next = 0;
        forEachOp(whole, [&](OpId op) { residualsOfOps.emplace(op, residuals[next++]); });
        auto derivative = differentiate(whole, wrt, {0}, [&](OpId op) { return residualsOfOps.at(op); });
        if (!derivative)
            return derivative.error();
        finishPiece(*derivative, made, names, piece);
        m_knownPieces.push_back({std::move(whole), std::move(residuals), std::move(gradients), made});
        return made;
    }

    /// Names what passes from the forward to the backward function; what both can read in one place passes once.
    void finishPiece(const Differentiated& derivative, Piece& made, std::vector<std::string> names, std::size_t piece) const
    {
        const Function& forward = derivative.forward;
        const std::vector<std::string> arguments = argumentNames(forward);
        std::vector<std::size_t> kept;
        for (std::size_t i = 0; i < names.size(); ++i)
            kept.push_back(i);
        std::vector<std::string> residuals;
        for (std::size_t i = names.size(); i < forward.results().size(); ++i) {
            const ValueId value = forward.results()[i];
            const auto argument = std::find(forward.arguments().begin(), forward.arguments().end(), value);
            const auto result
                = std::find(forward.results().begin(), forward.results().begin() + static_cast<std::ptrdiff_t>(i), value);
            const auto before = static_cast<std::size_t>(result - forward.results().begin());
            if (argument != forward.arguments().end()) {
                residuals.push_back(arguments[static_cast<std::size_t>(argument - forward.arguments().begin())]);
            } else if (before < names.size()) {
                residuals.push_back(names[before]);
            } else {
                residuals.push_back(nameOf(Kind::Residual, valueText(forward, value), residuals.size()));
                kept.push_back(i);
            }
        }
        std::vector<std::string> keptNames = std::move(names);
        for (std::size_t i = keptNames.size(); i < kept.size(); ++i)
            keptNames.push_back(residuals[kept[i] - derivativeResults(piece)]);
        made.forward = restrictedTo(forward, kept);
        made.forward.resultNames = std::move(keptNames);
        made.forward.name = functionOf(TaskKind::Forward, chunkOf(piece));

        Builder builder(made.backward);
        made.backward.name = functionOf(TaskKind::Backward, chunkOf(piece));
        builder.setPhase(Phase::Backward);
        const Function& backward = derivative.backward;
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < residuals.size(); ++i) {
            const Value& old = backward[backward.arguments()[i]];
            operands.push_back(builder.argument(old.type, residuals[i], old.role));
        }
        const TensorType seed = backward[backward.arguments().back()].type;
        operands.push_back(
            isLast(piece) ? seedOfLoss(builder, seed) : builder.argument(seed, nameOf(Kind::OutputGradient), Role::Activation));
        std::vector<ValueId> results = inlineCall(builder, backward, operands);
        std::vector<std::string> resultNames = backward.resultNames;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const StageArray array = stageArrayOf(resultNames[i]);
            if (array.kind == Kind::Gradient && m_gradients.contains(array.name))
                results[i] = convertedWhereMade(builder, results[i], gradientType(array.name).dtype);
        }
        std::ranges::replace(resultNames, gradientOf(nameOf(Kind::Input)), nameOf(Kind::InputGradient));
        builder.setResults(std::move(results), std::move(resultNames));
    }

    /// What the last piece's backward run begins with: a microbatch's share of the mean, times the loss scale.
    ValueId seedOfLoss(Builder& builder, const TensorType& type) const
    {
        const ValueId share = builder.splat(type, 1.0 / static_cast<double>(m_cut.shape.microbatches));
        if (m_cut.lossScale.isPlain())
            return share;
        const ValueId scale = m_cut.lossScale.isDynamic()
            ? builder.argument({DType::F32, {}}, "opt.loss_scale", Role::OptimizerState)
            : builder.splat({DType::F32, {}}, m_cut.lossScale.scale);
        return builder.binary(OpKind::Multiply, share, builder.convert(scale, type.dtype));
    }

    std::size_t derivativeResults(std::size_t piece) const { return isLast(piece) ? 3 : 1; }

    Result<Done> addPiece(std::size_t piece)
    {
        auto made = pieceOf(piece);
        if (!made)
            return made.error();
        const std::size_t stage = stageOf(piece);
        Layouts layouts;
        if (piece > 0)
            layouts[nameOf(Kind::Input)] = m_between;
        for (const std::string& parameter : made->parameters) { // alike on all stages that have it
            if (const auto owner = m_owner.find(parameter); owner != m_owner.end())
                layouts[parameter] = m_layouts[owner->second].at(parameter);
        }
        pin(made->forward, layouts);
        const auto forward = add(stage, std::move(made->forward));
        if (!forward)
            return forward.error();
        learn(**forward, layouts);
        if (!isLast(piece))
            layouts[nameOf(Kind::OutputGradient)] = m_between = layouts.at(nameOf(Kind::Output));
        if (piece > 0)
            layouts[nameOf(Kind::InputGradient)] = layouts.at(nameOf(Kind::Input));
        for (const std::string& parameter : made->parameters) {
            const auto [owner, isNew] = m_owner.emplace(parameter, stage);
            if (!isNew && (owner->second == stage || !m_shared[parameter].insert(stage).second))
                m_problems.push_back({"MW1544", fmt::format("two pieces on stage {} use {}", stage, parameter),
                    "let each stage have one of them (chunks: 1), or give each a parameter of its own (a transformer: tied: "
                    "false)"});
            m_layouts[stage][parameter] = layouts.at(parameter);
            layouts[gradientOf(parameter)] = gradientLayout(parameter).value_or(layouts.at(parameter));
            m_layouts[stage][gradientOf(parameter)] = reducedLayout(parameter, layouts.at(gradientOf(parameter)));
        }
        Function gradients = std::move(made->backward);
        if (splitsBackward(m_cut.shape.order)) {
            auto split = addInputGradient(piece, gradients, layouts);
            if (!split)
                return split.error();
            gradients = *std::move(split);
        }
        pin(gradients, layouts);
        const auto backward = add(stage, std::move(gradients), true);
        if (!backward)
            return backward.error();
        for (std::size_t i = 0; i < (*backward)->results().size(); ++i) {
            const std::string& name = (*backward)->resultNames[i];
            if (stageArrayOf(name).kind == Kind::GradientSum)
                m_layouts[stage][name] = *(**backward)[(*backward)->results()[i]].sharding;
        }
        return Done{};
    }

    /// Adds the part of a backward function that others wait for, and returns the other part.
    Result<Function> addInputGradient(std::size_t piece, const Function& whole, Layouts& layouts)
    {
        SplitBackward split = splitBackward(whole);
        split.input.name = whole.name;
        split.weight.name = functionOf(TaskKind::BackwardWeight, chunkOf(piece));
        pin(split.input, layouts);
        const auto input = add(stageOf(piece), std::move(split.input));
        if (!input)
            return input.error();
        learn(**input, layouts);
        return std::move(split.weight);
    }

    /// Where the study says how a gradient lies.
    std::optional<TensorSharding> gradientLayout(const std::string& parameter) const
    {
        const auto gradient = m_gradients.find(parameter);
        return gradient != m_gradients.end() && !m_step[gradient->second].annotation.empty() ? m_step[gradient->second].sharding
                                                                                             : std::nullopt;
    }

    /// How a gradient lies that is reduced once: as the study says, else like a moment that more devices share than the parameter (ZeRO-1).
    TensorSharding reducedLayout(const std::string& parameter, const TensorSharding& each) const
    {
        const auto moment = m_moments.find(parameter);
        const bool isMoreSplit = moment != m_moments.end() && pieceCount(moment->second) > pieceCount(each);
        return isMoreSplit && !gradientLayout(parameter) ? moment->second : each;
    }

    /// The parameter that an array of "step" belongs to: itself, or that of a moment; none of what all share.
    std::string parameterOf(const std::string& array) const
    {
        const std::string name = arrayNameOf(array).base;
        return m_owner.contains(name) ? name : "";
    }

    /// The sum of squares that the norm of all gradients is the root of; nothing where nobody asks for it.
    std::optional<ValueId> squaredNorm() const
    {
        const auto norm = m_step.findValue("grad_norm");
        if (!norm)
            return std::nullopt;
        OpId root = m_step[*norm].producer;
        if (m_step[root].kind == OpKind::Divide) // by the loss scale
            root = m_step[m_step[root].operands.front()].producer;
        return m_step[root].operands.front();
    }

    bool isOn(const std::string& parameter, std::size_t stage) const
    {
        const auto others = m_shared.find(parameter);
        return m_owner.at(parameter) == stage || (others != m_shared.end() && others->second.contains(stage));
    }

    TensorType gradientType(const std::string& parameter) const { return m_step[m_gradients.at(parameter)].type; }

    /// Reduces the stage's gradients of parameters that other stages have too, and adds up what all of these made.
    Result<Done> addShared(std::size_t stage)
    {
        Function shared;
        Function total;
        shared.name = functionOf(TaskKind::ShareGradients);
        total.name = functionOf(TaskKind::TotalGradients);
        Builder sharing(shared);
        Builder adding(total);
        std::vector<ValueId> parts;
        std::vector<ValueId> sums;
        Layouts layouts = m_layouts[stage];
        for (const auto& [parameter, others] : m_shared) {
            if (!isOn(parameter, stage))
                continue;
            const TensorType type = gradientType(parameter);
            const TensorSharding& layout = layouts.at(gradientOf(parameter));
            parts.push_back(sharing.argument(type, sumOf(parameter), Role::Gradient));
            shared.resultNames.push_back(nameOf(Kind::SharedPart, parameter));
            ValueId sum;
            for (std::size_t other = 0; other < m_scheduled.stages.size(); ++other) {
                if (!isOn(parameter, other))
                    continue;
                const std::string name
                    = other == stage ? nameOf(Kind::SharedPart, parameter) : nameOf(Kind::SharedCopy, parameter, other);
                layouts.insert_or_assign(name, layout);
                const ValueId part = adding.argument(type, name, Role::Gradient);
                sum = sum.valid() ? adding.binary(OpKind::Add, sum, part) : part;
            }
            total[sum].role = Role::Gradient;
            sums.push_back(sum);
            total.resultNames.push_back(gradientOf(parameter));
        }
        if (parts.empty())
            return Done{};
        for (auto [builder, results] : {std::pair(&sharing, &parts), std::pair(&adding, &sums)}) {
            Function& function = builder->function();
            builder->setResults(*results, std::vector<std::string>(function.resultNames));
            pin(function, layouts);
            if (const auto added = add(stage, std::move(function)); !added)
                return added.error();
        }
        return Done{};
    }

    /// Reduces the stage's gradients, and adds up their squares: its part of the norm of all.
    Result<Done> addNorm(std::size_t stage)
    {
        Function norm;
        norm.name = functionOf(TaskKind::ShareNorm);
        Builder builder(norm);
        builder.setPhase(Phase::Update);
        std::vector<ValueId> gradients;
        std::vector<ValueId> results;
        std::vector<std::string> names;
        for (const auto& [parameter, owner] : m_owner) {
            if (owner != stage)
                continue;
            const bool isReduced = m_shared.contains(parameter);
            gradients.push_back(
                builder.argument(gradientType(parameter), isReduced ? gradientOf(parameter) : sumOf(parameter), Role::Gradient));
            if (isReduced)
                continue;
            gradients.back() = builder.constrain(gradients.back(), m_layouts[stage].at(gradientOf(parameter)), {});
            results.push_back(gradients.back());
            names.push_back(gradientOf(parameter));
        }
        results.push_back(sumOfSquares(builder, gradients, m_step[*squaredNorm()].type.dtype));
        names.push_back(nameOf(Kind::NormPart));
        builder.setResults(std::move(results), std::move(names));
        pin(norm, m_layouts[stage]);
        if (const auto added = add(stage, std::move(norm)); !added)
            return added.error();
        return Done{};
    }

    Result<Done> addUpdate(std::size_t stage)
    {
        if (auto added = addShared(stage); !added)
            return added;
        const auto squared = squaredNorm();
        if (squared) {
            if (auto added = addNorm(stage); !added)
                return added;
        }
        std::vector<ValueId> gradients;
        for (const auto& [parameter, gradient] : m_gradients)
            gradients.push_back(gradient);
        std::vector<ValueId> results;
        std::vector<std::string> names;
        std::vector<std::string> arrays;
        std::vector<ValueId> replaced; // of the step: what the new array takes the place of
        std::vector<std::optional<TensorSharding>> shardings;
        for (const Donation& donation : m_step.donations) {
            const ValueId before = m_step.arguments()[donation.argument];
            const std::string& array = m_step[before].name;
            const std::string parameter = parameterOf(array);
            if (!parameter.empty() && !isOn(parameter, stage))
                continue;
            results.push_back(m_step.results()[donation.result]);
            names.push_back("new." + array);
            arrays.push_back(array);
            replaced.push_back(before);
            shardings.push_back(m_step.resultShardings.empty() ? std::nullopt : m_step.resultShardings[donation.result]);
        }
        if (squared)
            gradients.push_back(*squared);
        for (std::size_t i = 0; squared && i < m_step.results().size(); ++i) { // metrics made of the norm
            const std::string& name = m_step.resultNames[i];
            if (arrayNameOf(name).family == ArrayName::Family::Updated || name == "loss" || name == "accuracy")
                continue;
            results.push_back(m_step.results()[i]);
            names.push_back(name);
            shardings.emplace_back();
        }
        FunctionSlice slice = sliced(m_step, gradients, results);
        Function update = std::move(slice.function);
        for (std::size_t i = 0; i < slice.arguments.size(); ++i) {
            Value& argument = update[update.arguments()[i]];
            const StageArray array = stageArrayOf(argument.name);
            if (slice.arguments[i] == squared)
                argument.name = nameOf(Kind::NormSquared);
            else if (array.kind == Kind::Gradient && !squared && !m_shared.contains(array.name))
                argument.name = sumOf(array.name);
        }
        update.name = functionOf(TaskKind::Update);
        update.resultNames = names;
        for (const std::string& argument : argumentNames(update)) {
            const StageArray array = stageArrayOf(argument);
            const bool isGradient = array.kind == Kind::Gradient || array.kind == Kind::GradientSum;
            const std::string parameter = isGradient ? array.name : parameterOf(argument);
            if (!parameter.empty() && !isOn(parameter, stage))
                return Problem{"MW1544",
                    fmt::format("the update of stage {} needs {}, which is on stage {}", stage, argument, m_owner.at(parameter)),
                    "leave out what needs arrays of all stages at once"};
        }
        Layouts layouts = m_layouts[stage];
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            if (const auto known = layouts.find(arrays[i]); known != layouts.end())
                shardings[i] = known->second;
        }
        pin(update, layouts);
        update.resultShardings = shardings;
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            std::vector<std::string> arguments = argumentNames(update);
            auto argument = std::find(arguments.begin(), arguments.end(), arrays[i]);
            if (argument == arguments.end()) { // made without the old one: a parameter of its master
                const Value& before = m_step[replaced[i]];
                const ValueId place = Builder(update).argument(before.type, before.name, before.role);
                update[place].sharding = shardings[i];
                arguments.push_back(arrays[i]);
                argument = arguments.end() - 1;
            }
            update.donations.push_back({static_cast<std::size_t>(argument - arguments.begin()), i});
        }
        const auto added = add(stage, std::move(update));
        if (!added)
            return added.error();
        learn(**added, layouts);
        return addInit(stage, arrays, layouts);
    }

    Result<Done> addInit(std::size_t stage, const std::vector<std::string>& arrays, const Layouts& layouts)
    {
        const Function& whole = *m_program.find("init");
        std::vector<ValueId> results;
        for (const std::string& array : arrays)
            results.push_back(whole.results()[m_initOf.at(array)]);
        Function init = sliced(whole, {}, results).function;
        init.name = "init";
        init.resultNames = arrays;
        for (Value& value : init.values)
            value.sharding.reset();
        pin(init, layouts);
        if (const auto added = add(stage, std::move(init)); !added)
            return added.error();
        return Done{};
    }

    const Program& m_program;
    const PipelineCut& m_cut;
    const Function& m_model; ///< what is cut
    std::map<OpId, Residual> m_residuals; ///< of its loss' ops
    const Function& m_step;
    std::map<std::string, ValueId> m_gradients; ///< of it, by parameter
    Layouts m_moments; ///< of the optimizer's moments, by parameter: where they lie on most devices
    std::map<std::string, std::size_t> m_initOf; ///< the result of "init" by array
    ScheduledProgram m_scheduled;
    std::vector<KnownPiece> m_knownPieces;
    std::vector<KnownFunction> m_knownFunctions;
    std::vector<Layouts> m_layouts; ///< by stage: of parameters, gradients and their sums
    std::map<std::string, std::size_t> m_owner; ///< the stage of each parameter: of several the first
    std::map<std::string, std::set<std::size_t>> m_shared; ///< the other stages of those that several have
    TensorSharding m_between; ///< of the last piece's result
    Problems m_problems;
};

} // namespace

Result<ScheduledProgram> pipelineOf(const Program& microbatch, const PipelineCut& cut)
{
    assert(static_cast<std::int64_t>(cut.after.size()) + 1 == cut.shape.pieces());
    return PipelineBuilder(microbatch, cut).build();
}

} // namespace meshwright
