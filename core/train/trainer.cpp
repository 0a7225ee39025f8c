// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer.h"

#include "core/runtime/executor.h"
#include "core/runtime/virtual_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

namespace meshwright {

namespace {

using SteadyClock = std::chrono::steady_clock;

double secondsSince(SteadyClock::time_point start)
{
    return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

HostArray arrayOf(const TensorType& type, const std::vector<float>& values)
{
    const std::vector<double> wide(values.begin(), values.end());
    return HostArray::of(type, wide);
}

std::size_t indexOf(const Function& function, std::string_view name)
{
    const auto& arguments = function.arguments();
    const auto found = std::find_if(arguments.begin(), arguments.end(), [&](ValueId id) { return function[id].name == name; });
    assert(found != arguments.end());
    return static_cast<std::size_t>(found - arguments.begin());
}

std::size_t resultIndexOf(const Function& function, std::string_view name)
{
    const auto found = std::find(function.resultNames.begin(), function.resultNames.end(), name);
    assert(found != function.resultNames.end());
    return static_cast<std::size_t>(found - function.resultNames.begin());
}

/// The arguments that come before x and y: parameters and states in "step", parameters in "evaluate".
std::size_t stateCount(const Function& function)
{
    return indexOf(function, "x");
}

double scalarResult(const LoadedFunction& loaded, const Function& function, std::string_view name)
{
    return loaded.readResult(resultIndexOf(function, name)).at(0);
}

Spread spreadOf(std::vector<double> values)
{
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back()};
}

class Trainer {
public:
    Trainer(const std::vector<TrainingPhase>& phases, const Dataset& data, const TrainerOptions& options,
        const std::function<void(const TrainingProgress&)>& progress, std::stop_token stop)
        : m_phases(phases)
        , m_data(data)
        , m_options(options)
        , m_progress(progress)
        , m_stop(std::move(stop))
    {
        for (const TrainingPhase& phase : phases)
            m_totalSteps += phase.steps;
        const Function& step = *phases.front().program.find("step");
        m_inputType = step[step.arguments()[indexOf(step, "x")]].type;
        m_targetType = step[step.arguments()[indexOf(step, "y")]].type;
    }

    Result<TrainingResult> run()
    {
        auto plan = BatchPlan::make(m_data.trainingRows, m_inputType.shape.front(), m_options.seed);
        if (!plan)
            return plan.error();
        auto devices = VirtualDevices::create(stageOf(0).mesh().deviceCount(), {.permits = m_options.permits});
        if (!devices)
            return devices.error();
        m_result.devices = stageOf(0).mesh().deviceCount();
        if (m_options.verify)
            m_result.verification.emplace();

        std::unique_ptr<LoadedFunction> before;
        for (std::size_t phase = 0; phase < m_phases.size() && (phase == 0 || !m_stop.stop_requested()); ++phase) {
            auto done = runPhase(phase, **devices, *plan, before);
            if (!done)
                return done.error();
        }
        if (m_step == 0)
            takeBatch(*plan);
        auto done = finish(**devices, *before);
        if (!done)
            return done.error();
        return std::move(m_result);
    }

private:
    const ScheduledStage& stageOf(std::size_t phase) const { return m_phases[phase].scheduled.stages.front(); }
    const Function& stepOf(std::size_t phase) const { return *m_phases[phase].program.find("step"); }

    Result<std::unique_ptr<LoadedFunction>> load(VirtualDevices& devices, std::size_t phase, std::string_view name) const
    {
        const ScheduledStage& stage = stageOf(phase);
        return LoadedFunction::load(*stage.find(name), stage.meshes, devices);
    }

    /// Fills the state of the first phase from "init", that of a later one from the phase before. Returns the bytes that changed device.
    Result<std::int64_t> fillState(std::size_t phase, VirtualDevices& devices, LoadedFunction& step, const LoadedFunction* before)
    {
        std::int64_t moved = 0;
        const std::size_t count = stateCount(stepOf(phase));
        if (before != nullptr) {
            for (std::size_t i = 0; i < count; ++i) {
                const auto bytes = step.copyFromArgument(i, *before, i);
                if (!bytes)
                    return bytes.error();
                moved += *bytes;
            }
            return moved;
        }
        const auto init = load(devices, phase, "init");
        if (!init)
            return init.error();
        for (std::size_t i = 0; i < m_options.initKeys.size(); ++i) {
            const RandomKey& key = m_options.initKeys[i];
            const std::array<double, 2> words = {static_cast<double>(key[0]), static_cast<double>(key[1])};
            if (auto written = (*init)->writeArgument(i, HostArray::of({DType::U32, {2}}, words)); !written)
                return written.error();
        }
        if (auto done = (*init)->run(); !done)
            return done.error();
        for (std::size_t i = 0; i < count; ++i) {
            if (const auto bytes = step.copyFromResult(i, **init, i); !bytes)
                return bytes.error();
        }
        return std::int64_t{0};
    }

    /// The rows of the next step.
    void takeBatch(BatchPlan& plan)
    {
        const auto rows = plan.rowsOf(m_step);
        m_inputs = arrayOf(m_inputType, inputsOf(m_data, rows));
        m_targets = arrayOf(m_targetType, targetsOf(m_data, rows));
    }

    /// The steps of a phase that are verified.
    std::set<std::int64_t> stepsToCheck(std::int64_t steps) const
    {
        if (!m_options.verify || steps == 0)
            return {};
        return {0, steps / 3, 2 * steps / 3, steps - 1};
    }

    Result<Done> runPhase(std::size_t phase, VirtualDevices& devices, BatchPlan& plan, std::unique_ptr<LoadedFunction>& before)
    {
        auto loaded = load(devices, phase, "step");
        if (!loaded)
            return loaded.error();
        std::unique_ptr<LoadedFunction> step = *std::move(loaded);
        auto moved = fillState(phase, devices, *step, before.get());
        if (!moved)
            return moved.error();
        before.reset();

        const Function& function = stepOf(phase);
        const std::set<std::int64_t> toCheck = stepsToCheck(m_phases[phase].steps);
        std::int64_t done = 0;
        for (; done < m_phases[phase].steps && !m_stop.stop_requested(); ++done) {
            auto stepped = runStep(*step, function, plan, toCheck.contains(done));
            if (!stepped)
                return stepped.error();
        }

        PhaseResult result;
        result.mesh = stageOf(phase).mesh().text();
        result.steps = done;
        result.movedBytes = *moved;
        result.arenaBytes = stageOf(phase).find("step")->buffers.arenaBytes;
        const std::vector<CountedCalls> counted = step->countedCalls();
        for (const CollectiveUse& use : collectivesOf(stageOf(phase).find("step")->device, stageOf(phase).mesh())) {
            const auto calls
                = std::find_if(counted.begin(), counted.end(), [&](const CountedCalls& c) { return c.op == use.op; });
            if (calls != counted.end())
                result.collectives.push_back({use, calls->calls, calls->bytesPerDevice});
        }
        m_result.peakBytesPerDevice = std::max(m_result.peakBytesPerDevice, result.arenaBytes);
        m_result.phases.push_back(std::move(result));
        if (m_options.record) {
            m_result.wall = step->measured();
            m_result.virtualTime = step->virtualTimeline();
        }
        before = std::move(step);
        return Done{};
    }

    Result<Done> runStep(LoadedFunction& step, const Function& function, BatchPlan& plan, bool check)
    {
        takeBatch(plan);
        const std::size_t x = indexOf(function, "x");
        std::vector<HostArray> arguments;
        if (check) {
            for (std::size_t i = 0; i < x; ++i)
                arguments.push_back(step.readArgument(i));
            arguments.push_back(m_inputs);
            arguments.push_back(m_targets);
        }
        if (auto written = writeBatch(step, x, m_inputs, m_targets); !written)
            return written.error();

        const auto start = SteadyClock::now();
        auto done = step.run({.record = m_options.record}); // a stop is heeded between steps, so that the state stays whole
        if (!done)
            return done.error();
        m_stepSeconds.push_back(secondsSince(start));
        m_trainingSeconds += m_stepSeconds.back();

        const double loss = scalarResult(step, function, "loss");
        const double accuracy = scalarResult(step, function, "accuracy");
        if (!std::isfinite(loss))
            return Problem{"MW1620", fmt::format("the loss of step {} is not finite ({})", m_step, loss),
                "try a smaller learning rate, or another initialisation"};
        m_result.losses.push_back(loss);
        m_result.accuracies.push_back(accuracy);
        if (check) {
            auto verified = verify(step, function, arguments);
            if (!verified)
                return verified.error();
        }
        ++m_step;
        if (m_progress) {
            const auto samples = static_cast<double>(m_step * m_inputType.shape.front());
            m_progress({m_step, m_totalSteps, loss, accuracy, samples / std::max(m_trainingSeconds, 1e-9)});
        }
        return Done{};
    }

    static Result<Done> writeBatch(LoadedFunction& function, std::size_t x, const HostArray& inputs, const HostArray& targets)
    {
        if (auto written = function.writeArgument(x, inputs); !written)
            return written;
        return function.writeArgument(x + 1, targets);
    }

    Result<Done> verify(LoadedFunction& step, const Function& function, const std::vector<HostArray>& arguments)
    {
        std::vector<HostArray> sharded;
        for (std::size_t i = 0; i < function.results().size(); ++i)
            sharded.push_back(step.readResult(i));
        const auto outcome = verifyStep(function, arguments, sharded, m_result.devices);
        if (!outcome)
            return outcome.error();
        m_result.verification->add(m_step, *outcome);
        return Done{};
    }

    /// The loss of the last batch after the last update, the accuracy on held-out rows, the parameters.
    Result<Done> finish(VirtualDevices& devices, LoadedFunction& step)
    {
        const std::size_t last = m_result.phases.size() - 1;
        const Function& function = *m_phases[last].program.find("evaluate");
        const auto loaded = load(devices, last, "evaluate");
        if (!loaded)
            return loaded.error();
        const auto& evaluate = *loaded;
        for (std::size_t i = 0; i < stateCount(function); ++i) {
            const std::size_t from = indexOf(stepOf(last), function[function.arguments()[i]].name);
            if (auto copied = evaluate->copyFromArgument(i, step, from); !copied)
                return copied.error();
            m_result.parameters.push_back(evaluate->readArgument(i));
        }
        if (auto done = runEvaluate(*evaluate, function, m_inputs, m_targets); !done)
            return done.error();
        m_result.losses.push_back(scalarResult(*evaluate, function, "loss"));
        auto done = measureHeldOut(*evaluate, function);
        if (!done)
            return done.error();
        m_result.interrupted = m_step < m_totalSteps;
        m_result.stepSeconds = spreadOf(m_stepSeconds);
        if (m_trainingSeconds > 0.0)
            m_result.samplesPerSecond = static_cast<double>(m_step * m_inputType.shape.front()) / m_trainingSeconds;
        return Done{};
    }

    Result<Done> runEvaluate(
        LoadedFunction& evaluate, const Function& function, const HostArray& inputs, const HostArray& targets)
    {
        if (auto written = writeBatch(evaluate, stateCount(function), inputs, targets); !written)
            return written;
        return evaluate.run();
    }

    /// Runs the held-out rows batch by batch; the last batch is filled up with rows that are not counted.
    Result<Done> measureHeldOut(LoadedFunction& evaluate, const Function& function)
    {
        const std::int64_t count = m_data.labels.empty() ? 0 : m_data.heldOutRows();
        if (count == 0)
            return Done{};
        const std::int64_t batch = m_inputType.shape.front();
        std::int64_t right = 0;
        for (std::int64_t first = 0; first < count; first += batch) {
            std::vector<std::int64_t> rows;
            for (std::int64_t i = 0; i < batch; ++i)
                rows.push_back(m_data.trainingRows + std::min(first + i, count - 1));
            auto done = runEvaluate(
                evaluate, function, arrayOf(m_inputType, inputsOf(m_data, rows)), arrayOf(m_targetType, targetsOf(m_data, rows)));
            if (!done)
                return done.error();
            const std::vector<double> predictions = evaluate.readResult(resultIndexOf(function, "predictions")).values();
            for (std::int64_t i = 0; i < std::min(batch, count - first); ++i) {
                const auto row = predictions.begin() + i * m_data.classes;
                const auto best = std::max_element(row, row + m_data.classes) - row;
                right += best == m_data.labels[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])] ? 1 : 0;
            }
        }
        m_result.heldOutExamples = count;
        m_result.heldOutAccuracy = static_cast<double>(right) / static_cast<double>(count);
        return Done{};
    }

    const std::vector<TrainingPhase>& m_phases;
    const Dataset& m_data;
    const TrainerOptions& m_options;
    const std::function<void(const TrainingProgress&)>& m_progress;
    std::stop_token m_stop;
    TrainingResult m_result;
    TensorType m_inputType;
    TensorType m_targetType;
    HostArray m_inputs; ///< of the last step
    HostArray m_targets;
    std::int64_t m_step = 0;
    std::int64_t m_totalSteps = 0;
    std::vector<double> m_stepSeconds;
    double m_trainingSeconds = 0.0;
};

} // namespace

Result<TrainingResult> train(const std::vector<TrainingPhase>& phases, const Dataset& data, const TrainerOptions& options,
    const std::function<void(const TrainingProgress&)>& progress, std::stop_token stop)
{
    return Trainer(phases, data, options, progress, std::move(stop)).run();
}

} // namespace meshwright
