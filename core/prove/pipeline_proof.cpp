// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/pipeline_proof.h"

#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/schedule/pipeline_tasks.h"
#include "core/schedule/stage_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace meshwright {

namespace {

using Kind = StageArray::Kind;

bool isOfMicrobatch(Kind kind)
{
    switch (kind) {
    case Kind::Batch:
    case Kind::Metric:
    case Kind::Input:
    case Kind::Output:
    case Kind::InputGradient:
    case Kind::OutputGradient:
    case Kind::Residual:
    case Kind::WeightResidual:
    case Kind::DropoutPart:
        return true;
    default:
        return false;
    }
}

/// What the tasks of one step and their functions compute, as one function over one stage's mesh and one more axis, along which the microbatches
/// lie: what each of them is given is a piece of the batch, and what they add up is reduced over that axis. So every function is there once.
class JoinedPipeline {
public:
    JoinedPipeline(const Program& source, const Function& function, const ScheduledProgram& pipeline)
        : m_pipeline(pipeline)
        , m_joined{function, {}, {}, {}}
        , m_builder(m_joined.device.function)
    {
        const ScheduledStage& first = pipeline.stages.front();
        std::vector<MeshAxis> axes = first.mesh().axes();
        std::string name = "microbatch";
        while (first.mesh().findAxis(name))
            name += "_";
        axes.push_back({name, pipeline.pipeline.microbatches});
        auto mesh = Mesh::create(std::move(axes));
        if (source.meshes.size() != 1 || first.meshes.size() != 1)
            refuse("the program has several meshes");
        const auto isLikeFirst
            = [&](const ScheduledStage& stage) { return stage.meshes.size() == 1 && stage.mesh().axes() == first.mesh().axes(); };
        if (!std::ranges::all_of(pipeline.stages, isLikeFirst))
            refuse("the stages' meshes have different axes");
        if (!mesh)
            refuse("a stage's devices and the microbatches are more than one mesh has");
        if (!m_joined.obstacle.empty())
            return;
        m_microbatches = wholeAxis(*mesh, mesh->axes().size() - 1);
        m_joined.calls = m_microbatches.axis;
        m_joined.meshes.push_back({first.meshes.front().name, *std::move(mesh)});
        m_joined.device.function.name = function.name;
        for (Value& value : m_joined.source.values) {
            if (stageArrayOf(value.name).kind == Kind::Batch)
                value.sharding.reset(); // the study's layout is that of one microbatch
        }
        takeArguments();
    }

    /// "init", "evaluate" or "step".
    JoinedFunction joined()
    {
        if (!m_joined.obstacle.empty())
            return std::move(m_joined);
        const std::string& name = m_joined.source.name;
        if (name == "init") {
            for (std::size_t stage = 0; stage < m_pipeline.stages.size(); ++stage)
                call(stage, 0, "init");
        } else {
            callPieces(name == "step");
            if (name == "step")
                callUpdates();
        }
        takeResults();
        if (name == "evaluate") // what it leaves to a backward run is shown in the step
            eraseDeadOps(function());
        m_joined.device.globalShapes.resize(m_joined.device.function.values.size());
        return std::move(m_joined);
    }

private:
    struct Place {
        std::size_t of = 0; ///< the piece of what a microbatch has, else the stage
        StageArray array;
        friend bool operator<(const Place& a, const Place& b)
        {
            return std::tie(a.of, a.array.kind, a.array.name, a.array.number)
                < std::tie(b.of, b.array.kind, b.array.name, b.array.number);
        }
    };

    void refuse(std::string why)
    {
        if (m_joined.obstacle.empty())
            m_joined.obstacle = std::move(why);
    }

    Function& function() { return m_joined.device.function; }
    std::size_t lastPiece() const { return static_cast<std::size_t>(m_pipeline.pipeline.pieces()) - 1; }
    std::size_t stageOf(std::size_t piece) const { return piece % m_pipeline.stages.size(); }

    void note(ValueId value, const Shape& whole)
    {
        m_joined.device.globalShapes.resize(std::max(m_joined.device.globalShapes.size(), function().values.size()));
        m_joined.device.globalShapes[value.at()] = whole;
    }

    /// The layout with the microbatches along the first dimension.
    TensorSharding overMicrobatches(TensorSharding layout) const
    {
        layout.dims.front().axes.insert(layout.dims.front().axes.begin(), m_microbatches);
        return layout;
    }

    /// The arguments of all functions that are called, by name; of several stages' the first.
    std::map<std::string_view, std::pair<const DeviceFunction*, ValueId>> stageArguments() const
    {
        std::map<std::string_view, std::pair<const DeviceFunction*, ValueId>> arguments;
        for (const ScheduledStage& stage : m_pipeline.stages) {
            for (const ScheduledFunction& scheduled : stage.functions) {
                const Function& device = scheduled.device.function;
                if ((device.name == "init") != (m_joined.source.name == "init"))
                    continue;
                for (const ValueId argument : device.arguments())
                    arguments.try_emplace(device[argument].name, &scheduled.device, argument);
            }
        }
        return arguments;
    }

    void takeArguments()
    {
        const auto held = stageArguments();
        for (const ValueId id : m_joined.source.arguments()) {
            const Value& wanted = m_joined.source[id];
            const auto found = held.find(wanted.name);
            const auto [device, value] = found != held.end() ? found->second : std::pair<const DeviceFunction*, ValueId>();
            const TensorType type = device != nullptr ? device->function[value].type : wanted.type;
            const ValueId argument = m_builder.argument(type, wanted.name, wanted.role);
            TensorSharding layout = TensorSharding::replicatedOf(type.shape.size());
            if (device != nullptr)
                layout = *device->function[value].sharding;
            else if (wanted.sharding)
                m_joined.source[id].sharding.reset(); // nothing reads it
            if (device != nullptr && stageArrayOf(wanted.name).kind == Kind::Batch)
                layout = overMicrobatches(std::move(layout));
            function()[argument].sharding = std::move(layout);
            note(argument, wanted.type.shape);
            m_arguments[wanted.name] = argument;
        }
    }

    // ---- calls

    /// One for all microbatches, and one for all stages' copies.
    std::optional<ValueId> known(std::size_t stage, std::size_t piece, StageArray array) const
    {
        if (const auto argument = m_arguments.find(array.text()); argument != m_arguments.end())
            return argument->second;
        Place place{isOfMicrobatch(array.kind) ? piece : stage, std::move(array)};
        switch (place.array.kind) {
        case Kind::Input:
            place = {piece - 1, {Kind::Output}};
            break;
        case Kind::OutputGradient:
            place = {piece + 1, {Kind::InputGradient}};
            break;
        case Kind::SharedCopy:
            place = {place.array.number, {Kind::SharedPart, place.array.name}};
            break;
        case Kind::NormSquared:
            return m_normSquared;
        default:
            break;
        }
        const auto found = m_known.find(place);
        return found == m_known.end() ? std::nullopt : std::optional(found->second);
    }

    /// What a function takes in as this argument.
    std::optional<ValueId> given(std::size_t stage, std::size_t piece, const DeviceFunction& device, ValueId argument)
    {
        const Value& wanted = device.function[argument];
        const StageArray array = stageArrayOf(wanted.name);
        if (const auto value = known(stage, piece, array)) {
            const Value& held = function()[*value];
            const bool isBatch = array.kind == Kind::Batch && m_arguments.contains(wanted.name);
            const TensorSharding layout = isBatch ? overMicrobatches(*wanted.sharding) : *wanted.sharding;
            if (held.type == wanted.type && held.sharding == layout) {
                if (!isBatch)
                    return value;
                const ValueId rows = m_builder.add(OpKind::Reshape, {*value}, ReshapeAttributes{wanted.type.shape});
                function()[rows].sharding = wanted.sharding; // as the stage says it of one microbatch
                note(rows, device.globalShapes[argument.at()]);
                return rows;
            }
            refuse(fmt::format(
                "{} of stage {} takes {} laid out otherwise than it is given", device.function.name, stage, wanted.name));
            return std::nullopt;
        }
        std::optional<ValueId> made;
        if (array.kind == Kind::Model && m_joined.source.name == "evaluate") { // what evaluating passes by, whatever it is
            Value& free = m_joined.source[Builder(m_joined.source).argument({wanted.type.dtype, wanted.type.shape}, wanted.name)];
            made = m_builder.argument(wanted.type, free.name);
            m_arguments[free.name] = *made;
        } else if (array.kind == Kind::GradientSum || array.kind == Kind::DropoutOn) {
            made = m_builder.splat(wanted.type, array.kind == Kind::DropoutOn && m_joined.source.name == "step" ? 1.0 : 0.0);
        } else if (array.kind == Kind::DropoutPart && wanted.type.shape.empty()) {
            const ValueId counted = m_builder.iota({wanted.type.dtype, {1}}, 0);
            function()[counted].sharding = overMicrobatches(TensorSharding::replicatedOf(1));
            note(counted, {m_pipeline.pipeline.microbatches});
            made = m_builder.reshape(counted, {});
        }
        if (!made) {
            refuse(fmt::format("{} of stage {} takes {}, which nothing gives it", device.function.name, stage, wanted.name));
            return std::nullopt;
        }
        function()[*made].sharding = wanted.sharding;
        note(*made, device.globalShapes[argument.at()]);
        return made;
    }

    void call(std::size_t stage, std::size_t piece, const std::string& name)
    {
        const ScheduledFunction* scheduled = m_pipeline.stages[stage].find(name);
        if (scheduled == nullptr)
            return refuse(fmt::format("stage {} has no function \"{}\"", stage, name));
        const DeviceFunction& device = scheduled->device;
        const Function& source = device.function;
        std::vector<ValueId> mapping(source.values.size());
        for (const ValueId argument : source.arguments()) {
            const auto value = given(stage, piece, device, argument);
            if (!value)
                return;
            mapping[argument.at()] = *value;
        }
        const std::size_t before = function().ops.size();
        const std::size_t valuesBefore = function().values.size();
        for (const OpId op : source.body().ops)
            copyOp(m_builder, source, op, mapping);
        for (std::size_t op = before; op < function().ops.size(); ++op)
            spreadTable(function().ops[op]);
        for (std::size_t value = 0; value < mapping.size(); ++value) {
            if (mapping[value].valid() && mapping[value].at() >= valuesBefore)
                note(mapping[value], device.globalShapes[value]);
        }
        for (std::size_t i = 0; i < source.results().size(); ++i) {
            if (!isAddedTo(source, i))
                return refuse(fmt::format("{} of stage {} does not add to {}", name, stage, source.resultNames[i]));
            StageArray array = stageArrayOf(source.resultNames[i]);
            if (array.kind == Kind::GradientSum)
                addToNothing(mapping[source.results()[i].at()]);
            const std::size_t of = isOfMicrobatch(array.kind) ? piece : stage;
            m_known.insert_or_assign(Place{of, std::move(array)}, mapping[source.results()[i].at()]);
        }
    }

    /// True unless the result is a sum of gradients that is something else than the sum so far, which serves nothing else, and one term more:
    /// calls follow each other, and here each is the first one. A loop may add row by row.
    static bool isAddedTo(const Function& function, std::size_t result)
    {
        if (stageArrayOf(function.resultNames[result]).kind != Kind::GradientSum)
            return true;
        const ValueId sum = function.results()[result];
        const OpId producer = function[sum].producer;
        if (!producer.valid())
            return false;
        const bool isInLoop = function[producer].kind == OpKind::Repeat;
        const std::size_t row = isInLoop ? rowOfSum(function, sum) : 0;
        if (isInLoop && row == function[producer].operands.size())
            return false;
        const ValueId before = isInLoop ? function[producer].operands[row] : addedTo(function, sum);
        return before.valid() && usesOf(function, before) == 1 && !function[before].producer.valid()
            && function[before].name == function.resultNames[result];
    }

    /// Which stacked operand of its loop a stacked result adds to row by row; the number of operands: none.
    static std::size_t rowOfSum(const Function& function, ValueId sum)
    {
        const Op& loop = function[function[sum].producer];
        const auto& attributes = loop.as<RepeatAttributes>();
        const Block& body = function[loop.bodies.front()];
        const std::size_t result = function[sum].index;
        const ValueId row = result < attributes.carries ? ValueId() : addedTo(function, body.results[result]);
        for (std::size_t i = attributes.carries; row.valid() && i < attributes.carries + attributes.stacked; ++i) {
            if (body.arguments[i] == row)
                return i;
        }
        return loop.operands.size();
    }

    /// A loop whose rows are added to those of a sum that is nothing so far is one that makes them.
    void addToNothing(ValueId sum)
    {
        Op& loop = function()[function()[sum].producer];
        if (loop.kind != OpKind::Repeat)
            return;
        const std::size_t row = rowOfSum(function(), sum);
        Block& body = function()[loop.bodies.front()];
        ValueId& made = body.results[function()[sum].index];
        const OpId add = function()[made].producer;
        made = function()[add].operands.back();
        std::erase(body.ops, add);
        body.arguments.erase(body.arguments.begin() + static_cast<std::ptrdiff_t>(row));
        for (std::size_t i = row; i < body.arguments.size(); ++i)
            function()[body.arguments[i]].index = i;
        loop.operands.erase(loop.operands.begin() + static_cast<std::ptrdiff_t>(row));
        auto attributes = loop.as<RepeatAttributes>();
        --attributes.stacked;
        loop.attributes = attributes;
    }

    /// What a sum adds a term to, where that serves nothing else; invalid: it is not a sum.
    static ValueId addedTo(const Function& function, ValueId sum)
    {
        const OpId producer = function[sum].producer;
        if (!producer.valid() || function[producer].kind != OpKind::Add)
            return {};
        const ValueId before = function[producer].operands.front();
        return usesOf(function, before) == 1 ? before : ValueId();
    }

    static std::size_t usesOf(const Function& function, ValueId value)
    {
        std::size_t uses = 0;
        for (const Op& op : function.ops)
            uses += static_cast<std::size_t>(std::count(op.operands.begin(), op.operands.end(), value));
        for (const Block& block : function.blocks)
            uses += static_cast<std::size_t>(std::count(block.results.begin(), block.results.end(), value));
        return uses;
    }

    /// The microbatches are the last axis of the mesh: each has a table of its own.
    void spreadTable(Op& op) const
    {
        if (op.kind != OpKind::CollectivePermute)
            return;
        auto& sources = op.as<CollectiveAttributes>().sources;
        const std::int64_t count = m_pipeline.pipeline.microbatches;
        std::vector<std::int64_t> spread;
        for (const std::int64_t source : sources) {
            for (std::int64_t microbatch = 0; microbatch < count; ++microbatch)
                spread.push_back(source < 0 ? source : source * count + microbatch);
        }
        sources = std::move(spread);
    }

    void callPieces(bool trains)
    {
        const auto chunkOf = [&](std::size_t piece) { return piece / m_pipeline.stages.size(); };
        for (std::size_t piece = 0; piece <= lastPiece(); ++piece)
            call(stageOf(piece), piece, functionOf(TaskKind::Forward, chunkOf(piece)));
        for (std::size_t piece = lastPiece() + 1; trains && piece-- > 0;)
            call(stageOf(piece), piece, functionOf(TaskKind::Backward, chunkOf(piece)));
        for (std::size_t piece = 0; trains && splitsBackward(m_pipeline.pipeline.order) && piece <= lastPiece(); ++piece)
            call(stageOf(piece), piece, functionOf(TaskKind::BackwardWeight, chunkOf(piece)));
    }

    ValueId summed(ValueId value)
    {
        if (m_pipeline.pipeline.microbatches == 1)
            return value;
        CollectiveAttributes over;
        over.axes = {m_microbatches};
        const Shape whole = m_joined.device.globalShapes[value.at()];
        const std::optional<TensorSharding> layout = function()[value].sharding;
        const ValueId sum = m_builder.add(OpKind::AllReduce, {value}, over);
        function()[sum].sharding = layout;
        note(sum, whole);
        return sum;
    }

    bool hasTask(std::size_t stage, TaskKind kind) const
    {
        return std::ranges::any_of(m_pipeline.tasks, [&](const Task& task) { return task.stage == stage && task.kind == kind; });
    }

    void callUpdates()
    {
        for (auto& [place, value] : m_known) {
            if (place.array.kind == Kind::GradientSum)
                value = summed(value);
        }
        for (const TaskKind kind : {TaskKind::ShareGradients, TaskKind::TotalGradients, TaskKind::ShareNorm, TaskKind::Update}) {
            for (std::size_t stage = 0; stage < m_pipeline.stages.size(); ++stage) {
                if (hasTask(stage, kind))
                    call(stage, 0, functionOf(kind));
            }
            if (kind == TaskKind::ShareNorm)
                addNorms();
        }
        for (std::size_t stage = 0; stage < m_pipeline.stages.size(); ++stage)
            checkReplaced(stage);
    }

    /// What a stage's update makes of an array lies where the next step finds it: in the place of the array that the source gives away for it.
    void checkReplaced(std::size_t stage)
    {
        const ScheduledFunction* update = m_pipeline.stages[stage].find(functionOf(TaskKind::Update));
        for (const Donation& donation : m_joined.source.donations) {
            if (update == nullptr)
                return;
            const Function& made = update->device.function;
            const std::string& array = m_joined.source[m_joined.source.arguments()[donation.argument]].name;
            const auto result = std::ranges::find(made.resultNames, m_joined.source.resultNames[donation.result]);
            if (result == made.resultNames.end()) // of another stage
                continue;
            const auto index = static_cast<std::size_t>(result - made.resultNames.begin());
            const bool isInPlace = std::ranges::any_of(made.donations,
                [&](const Donation& own) { return own.result == index && made[made.arguments()[own.argument]].name == array; });
            if (!isInPlace)
                refuse(fmt::format("the update of stage {} leaves {} as it was: {} lies somewhere else", stage, array, *result));
        }
    }

    void addNorms()
    {
        for (const auto& [place, value] : m_known) {
            if (place.array.kind != Kind::NormPart)
                continue;
            const Shape whole = m_joined.device.globalShapes[value.at()];
            const auto layout = function()[value].sharding;
            m_normSquared = m_normSquared ? m_builder.binary(OpKind::Add, *m_normSquared, value) : value;
            function()[*m_normSquared].sharding = layout;
            note(*m_normSquared, whole);
        }
    }

    // ---- results

    /// The mean over the microbatches, or all their rows.
    ValueId ofAllMicrobatches(ValueId value, const Shape& whole)
    {
        if (!whole.empty()) {
            const TensorSharding layout = overMicrobatches(*function()[value].sharding);
            const ValueId rows = m_builder.add(OpKind::Reshape, {value}, ReshapeAttributes{function()[value].type.shape});
            function()[rows].sharding = layout;
            note(rows, whole);
            return rows;
        }
        const ValueId sum = summed(value);
        const ValueId share = m_builder.splat(function()[sum].type, 1.0 / static_cast<double>(m_pipeline.pipeline.microbatches));
        note(share, whole);
        const ValueId mean = m_builder.binary(OpKind::Multiply, sum, share);
        function()[share].sharding = function()[sum].sharding;
        function()[mean].sharding = function()[sum].sharding;
        note(mean, whole);
        return mean;
    }

    /// Every stage's copy of a result has to be the source's.
    void takeResults()
    {
        Function& source = m_joined.source;
        std::multimap<std::string, std::pair<bool, ValueId>> given; ///< by name, of the last piece's metrics and of all else
        for (const auto& [place, value] : m_known) {
            const bool isMetric = place.array.kind == Kind::Metric;
            if (!isMetric || place.of == lastPiece())
                given.emplace(place.array.text(), std::pair(isMetric, value));
        }
        const std::vector<ValueId> wanted = source.results();
        std::vector<ValueId> sources;
        std::vector<ValueId> results;
        std::vector<std::string> names;
        std::vector<std::optional<TensorSharding>> declared;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const std::string name = source.resultNames[i];
            const auto [first, last] = given.equal_range(name);
            if (first == last)
                refuse(fmt::format("no stage gives {}", name));
            for (auto at = first; at != last; ++at) {
                const auto [isMetric, value] = at->second;
                sources.push_back(wanted[i]);
                results.push_back(isMetric ? ofAllMicrobatches(value, source[wanted[i]].type.shape) : value);
                names.push_back(name);
                declared.push_back(isMetric || source.resultShardings.empty() ? std::nullopt : source.resultShardings[i]);
            }
        }
        source.body().results = std::move(sources);
        source.resultNames = names;
        source.resultShardings = std::move(declared);
        source.donations.clear();
        m_builder.setResults(std::move(results), std::move(names));
    }

    const ScheduledProgram& m_pipeline;
    JoinedFunction m_joined;
    Builder m_builder;
    AxisRef m_microbatches;
    std::map<std::string, ValueId> m_arguments;
    std::map<Place, ValueId> m_known; ///< the latest value of each array
    std::optional<ValueId> m_normSquared;
};

// ---- the tasks

/// What the tasks that a stage has to take before it can take another one have left behind.
class TaskRun {
public:
    explicit TaskRun(const ScheduledProgram& pipeline)
        : m_pipeline(pipeline)
        , m_stages(pipeline.stages.size())
        , m_slots(slotPlan(pipeline.pipeline, pipeline.tasks))
    {
        for (const Task& task : pipeline.tasks)
            m_stages[task.stage].push_back(&task);
    }

    /// Empty: every stage takes all its tasks, each in its turn.
    std::string fault()
    {
        const PipelineShape& shape = m_pipeline.pipeline;
        std::vector<std::size_t> next(m_stages.size(), 0);
        for (bool moves = true; moves;) {
            moves = false;
            for (std::size_t stage = 0; stage < m_stages.size(); ++stage) {
                while (next[stage] < m_stages[stage].size() && canTake(*m_stages[stage][next[stage]], next)) {
                    if (std::string why = take(*m_stages[stage][next[stage]]); !why.empty())
                        return why;
                    ++next[stage];
                    moves = true;
                }
            }
        }
        for (std::size_t stage = 0; stage < m_stages.size(); ++stage) {
            if (next[stage] < m_stages[stage].size())
                return fmt::format("stage {} waits for ever in {}", stage, text(*m_stages[stage][next[stage]]));
        }
        for (std::int64_t piece = 0; piece < shape.pieces(); ++piece) {
            for (std::int64_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
                for (const TaskKind kind : kinds()) {
                    if (!m_done.contains({kind, piece, microbatch}))
                        return fmt::format("microbatch {} has no {} task on piece {}", microbatch, functionOf(kind), piece);
                }
            }
        }
        return {};
    }

private:
    using Key
        = std::tuple<TaskKind, std::int64_t, std::int64_t>; ///< piece (of what is done once in a step: stage) and microbatch

    bool splits() const { return splitsBackward(m_pipeline.pipeline.order); }
    TaskKind backward() const { return splits() ? TaskKind::BackwardInput : TaskKind::Backward; }
    std::vector<TaskKind> kinds() const
    {
        return splits() ? std::vector{TaskKind::Forward, TaskKind::BackwardInput, TaskKind::BackwardWeight}
                        : std::vector{TaskKind::Forward, TaskKind::Backward};
    }

    Key keyOf(const Task& task) const
    {
        return isOncePerStep(task.kind)
            ? Key{task.kind, static_cast<std::int64_t>(task.stage), 0}
            : Key{task.kind, m_pipeline.pipeline.pieceOf(task), static_cast<std::int64_t>(task.microbatch)};
    }

    static std::string text(const Task& task)
    {
        return isOncePerStep(task.kind) ? fmt::format("\"{}\"", task.function)
                                        : fmt::format("\"{}\" of microbatch {}", task.function, task.microbatch);
    }

    /// What others send has been sent. Sums that all stages share are sent by each when it gets there.
    bool canTake(const Task& task, const std::vector<std::size_t>& next) const
    {
        const auto microbatch = static_cast<std::int64_t>(task.microbatch);
        if (task.kind == TaskKind::ShareGradients || task.kind == TaskKind::ShareNorm) {
            for (std::size_t other = 0; other < m_stages.size(); ++other) {
                const auto& tasks = m_stages[other];
                const auto shares
                    = std::find_if(tasks.begin(), tasks.end(), [&](const Task* its) { return its->kind == task.kind; });
                if (shares != tasks.end() && next[other] < static_cast<std::size_t>(shares - tasks.begin()))
                    return false;
            }
            return true;
        }
        if (isOncePerStep(task.kind))
            return true;
        const std::int64_t piece = m_pipeline.pipeline.pieceOf(task);
        if (task.passesActivations())
            return piece == 0 || m_done.contains({TaskKind::Forward, piece - 1, microbatch});
        return !task.passesGradients() || piece + 1 == m_pipeline.pipeline.pieces()
            || m_done.contains({backward(), piece + 1, microbatch});
    }

    /// Takes the task; why it may not, if so.
    std::string take(const Task& task)
    {
        const auto is = [&](TaskKind kind) {
            return m_done.contains({kind, m_pipeline.pipeline.pieceOf(task), static_cast<std::int64_t>(task.microbatch)});
        };
        if (m_done.contains(keyOf(task)))
            return fmt::format("stage {} takes {} twice", task.stage, text(task));
        if (task.function != functionOf(task.kind, isOncePerStep(task.kind) ? 0 : task.chunk))
            return fmt::format("stage {} runs {} for another task", task.stage, text(task));
        if (m_updated.contains(task.stage))
            return fmt::format("stage {} takes {} after its update", task.stage, text(task));
        if ((task.kind == TaskKind::Backward || task.kind == TaskKind::BackwardInput) && !is(TaskKind::Forward))
            return fmt::format("stage {} takes {} before the forward task", task.stage, text(task));
        if (task.kind == TaskKind::BackwardWeight && !is(TaskKind::BackwardInput))
            return fmt::format("stage {} takes {} before the gradient of its input", task.stage, text(task));
        if (isOncePerStep(task.kind)) {
            TaskKind& last = m_begun.try_emplace(task.stage, task.kind).first->second;
            if (task.kind < last)
                return fmt::format("stage {} takes {} too late", task.stage, text(task));
            last = task.kind;
            if (task.kind == TaskKind::Update)
                m_updated.insert(task.stage);
        } else if (m_begun.contains(task.stage)) {
            return fmt::format("stage {} takes {} after its gradients were added up", task.stage, text(task));
        } else if (std::string why = keep(task); !why.empty()) {
            return why;
        }
        m_done.insert(keyOf(task));
        return {};
    }

    /// A microbatch's values stay in their slot from its forward task to its last one.
    std::string keep(const Task& task)
    {
        const auto piece = static_cast<std::size_t>(m_pipeline.pipeline.pieceOf(task));
        const std::pair slot{piece, m_slots.slotOf[piece][task.microbatch]};
        if (task.kind == TaskKind::Forward && !m_held.insert(slot).second)
            return fmt::format("stage {} overwrites in {} what another microbatch still needs", task.stage, text(task));
        if (task.kind == kinds().back())
            m_held.erase(slot);
        return {};
    }

    const ScheduledProgram& m_pipeline;
    std::vector<std::vector<const Task*>> m_stages;
    SlotPlan m_slots;
    std::set<Key> m_done;
    std::map<std::size_t, TaskKind> m_begun; ///< stages whose microbatches are all done, and their last task
    std::set<std::size_t> m_updated;
    std::set<std::pair<std::size_t, std::int64_t>> m_held; ///< piece and slot
};

} // namespace

JoinedFunction joinedPipeline(const Program& source, const Function& function, const ScheduledProgram& pipeline)
{
    return JoinedPipeline(source, function, pipeline).joined();
}

std::vector<bool> variesByCall(const Function& function, std::int32_t axis)
{
    const auto isOfCalls = [&](const AxisRef& one) { return one.axis == axis; };
    std::vector<bool> varies(function.values.size());
    bool grows = false;
    const auto take = [&](ValueId value, bool does) {
        grows = grows || (does && !varies[value.at()]);
        varies[value.at()] = varies[value.at()] || does;
    };
    for (std::size_t i = 0; i < function.values.size(); ++i) {
        const auto& layout = function.values[i].sharding;
        varies[i] = layout && std::ranges::any_of(layout->dims, [&](const DimSharding& dim) {
            return std::ranges::any_of(dim.axes, isOfCalls);
        });
    }
    do { // again for what loops carry
        grows = false;
        forEachOp(function, [&](OpId id) {
            const Op& op = function[id];
            const bool isReduced = isCollective(op.kind) && std::ranges::any_of(op.as<CollectiveAttributes>().axes, isOfCalls);
            const bool ofOperands
                = !isReduced && std::ranges::any_of(op.operands, [&](ValueId operand) { return varies[operand.at()]; });
            for (const BlockId body : op.bodies) {
                const std::vector<ValueId>& arguments = function[body].arguments;
                for (std::size_t i = 0; i < arguments.size(); ++i)
                    take(arguments[i], op.kind == OpKind::Repeat ? varies[op.operands[i].at()] : ofOperands);
            }
            for (std::size_t i = 0; i < op.results.size(); ++i) {
                const bool isLoop = op.kind == OpKind::Repeat;
                const bool made = isLoop ? varies[function[op.bodies[0]].results[i].at()] : ofOperands;
                take(op.results[i], made);
                if (isLoop && i < op.as<RepeatAttributes>().carries)
                    take(function[op.bodies[0]].arguments[i], made);
            }
        });
    } while (grows);
    return varies;
}

std::string taskFault(const ScheduledProgram& pipeline)
{
    return TaskRun(pipeline).fault();
}

} // namespace meshwright
