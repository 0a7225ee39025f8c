// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer.h"

#include "core/devices/virtual_devices.h"
#include "core/runtime/pipeline.h"
#include "core/support/clock.h"
#include "core/train/held_out.h"
#include "core/train/training_batches.h"
#include "core/train/training_checkpoint.h"
#include "core/train/training_function.h"
#include "core/train/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

namespace meshwright {

namespace fs = std::filesystem;

namespace {

using SteadyClock = std::chrono::steady_clock;

Spread spreadOf(std::vector<double> values)
{
    if (values.empty())
        return {};
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back()};
}

} // namespace

class Trainer::Implementation {
public:
    Implementation(const std::vector<TrainingPhase>& phases, const Dataset& data, TrainerOptions options, TrainingBatches batches,
        std::optional<CheckpointFolder> checkpoints, std::unique_ptr<VirtualDevices> devices, Problems warnings)
        : m_phases(phases)
        , m_data(data)
        , m_options(std::move(options))
        , m_batches(std::move(batches))
        , m_checkpoints(std::move(checkpoints))
        , m_devices(std::move(devices))
    {
        for (const TrainingPhase& phase : phases)
            m_totalSteps += phase.steps;
        m_result.devices = m_devices->count();
        m_result.mostBytes = plannedDevicePeak(phases, m_options.evaluateEvery > 0);
        m_result.engine = m_devices->engine();
        if (m_options.resumed != nullptr) {
            const SavedState& state = m_options.resumed->checkpoint().state;
            m_step = m_result.firstStep = m_lastSaved = m_lastTried = state.step;
            m_result.losses = state.losses;
            m_result.accuracies = state.accuracies;
            m_result.warnings = m_options.resumed->passedOver();
        }
        append(m_result.warnings, std::move(warnings));
        if (m_options.verify && isFirst())
            m_result.verification.emplace();
    }

    std::int64_t steps() const { return m_totalSteps; }
    std::int64_t stepsDone() const { return m_step; }
    const TrainingResult& result() const { return m_result; }

    /// A failure of the devices, with what there is to go on from.
    Problems withCheckpoint(Problems problems) const
    {
        const auto isOfTheDevices = [](const std::string& id) { return id.starts_with("MW15") || id == "MW1620"; };
        std::optional<fs::path> last = lastCheckpoint();
        std::int64_t steps = m_lastSaved;
        if (!isFirst() && m_options.checkpoints) { // the first process writes them
            if (const auto written = CheckpointReader::open(m_options.checkpoints->folder)) {
                last = (*written)->path();
                steps = (*written)->checkpoint().state.step;
            }
        }
        for (Problem& problem : problems) {
            if (last && isOfTheDevices(problem.id))
                problem.fix += fmt::format("{}the last complete checkpoint is {} (after {} steps)",
                    problem.fix.empty() ? "" : "; ", last->string(), steps);
            if (!m_result.warnings.empty() && m_result.warnings.back().id == "MW1650" && isOfTheDevices(problem.id))
                problem.fix += fmt::format("{}{}", problem.fix.empty() ? "" : "; ", m_result.warnings.back().message);
        }
        return problems;
    }

    Result<bool> step(const std::stop_token& asked)
    {
        assert(m_step < m_totalSteps && !m_interrupted);
        const auto isStopped = agreed(asked);
        if (!isStopped)
            return withCheckpoint(isStopped.error());
        m_interrupted = isStopped->stops;
        if (m_interrupted)
            return false;
        const std::stop_token& stop = isStopped->within;
        Result<Done> done = openPhases(stop);
        if (done)
            done = runStep(stop);
        if (!done && !stop.stop_requested())
            return withCheckpoint(done.error());
        m_interrupted = !done;
        if (m_interrupted)
            return false;
        if (m_options.checkpoints && m_options.checkpoints->every > 0 && m_step % m_options.checkpoints->every == 0) {
            if (auto saved = save(); !saved)
                return withCheckpoint(saved.error());
        }
        if (m_options.evaluateEvery > 0 && m_step % m_options.evaluateEvery == 0 && m_step < m_totalSteps) {
            // A stop leaves it unmeasured: the step itself is complete.
            if (auto measured = measureBetweenSteps(stop); !measured && !stop.stop_requested())
                return withCheckpoint(measured.error());
        }
        return true;
    }

    TrainingProgress progress() const
    {
        assert(m_step > 0);
        TrainingProgress now{m_step, m_totalSteps, m_result.losses.back(), m_result.accuracies.back(), samplesPerSecond()};
        now.learningRate = m_learningRate ? *m_learningRate : m_options.learningRate ? m_options.learningRate(m_step - 1) : 0.0;
        now.gradientNorm = m_gradientNorm;
        now.lossScale = m_lossScale;
        now.skipped = m_skipped;
        if (!m_result.heldOut.empty() && m_result.heldOut.back().step == m_step)
            now.heldOut = m_result.heldOut.back();
        return now;
    }

    Result<TrainingResult> finish(const std::stop_token& asked)
    {
        const auto isStopped = agreed(asked);
        if (!isStopped)
            return withCheckpoint(isStopped.error());
        const std::stop_token& stop = isStopped->within;
        m_interrupted = m_interrupted || m_step < m_totalSteps || isStopped->stops || stop.stop_requested();
        if (!m_interrupted) {
            Result<Done> done = openPhases(stop);
            if (done)
                done = evaluate(stop);
            if (!done && !stop.stop_requested())
                return withCheckpoint(done.error());
            m_interrupted = !done;
        }
        const bool isNew = m_step > m_lastTried || (m_totalSteps == 0 && m_options.resumed == nullptr); // initial values too
        if (m_options.checkpoints && m_function != nullptr && !m_stateIsLost && isNew) {
            if (auto saved = save(); !saved)
                return withCheckpoint(saved.error());
        }
        if (m_function != nullptr)
            closePhase();
        if (m_options.typical && !m_interrupted && m_function != nullptr && m_phaseSteps > m_phaseFirst) {
            if (auto repeated = repeatLastStep(stop); !repeated && !stop.stop_requested())
                return withCheckpoint(repeated.error());
        }
        if (auto sound = heardOfAll(); !sound)
            return withCheckpoint(sound.error());
        m_result.interrupted = m_interrupted;
        m_result.stepSeconds = spreadOf(m_stepSeconds);
        m_result.samplesPerSecond = samplesPerSecond();
        return std::move(m_result);
    }

private:
    bool isFirst() const { return m_options.ranks == nullptr || m_options.ranks->isFirst(); }

    /// What becomes of a wish to stop.
    struct Stop {
        bool stops = false; ///< now: all processes agree
        std::stop_token within; ///< for what comes next: of several processes none stops by itself
    };
    Result<Stop> agreed(const std::stop_token& asked) const
    {
        if (m_options.ranks == nullptr)
            return Stop{false, asked};
        const auto stops = m_options.ranks->any(asked.stop_requested());
        if (!stops)
            return stops.error();
        return Stop{*stops, {}};
    }

    /// What was read of the devices is right unless another process has gone.
    Result<Done> heardOfAll() const
    {
        if (const auto why = m_options.ranks != nullptr ? m_options.ranks->failure() : std::nullopt)
            return *why;
        return Done{};
    }

    const Function& stepOf(std::size_t phase) const { return *m_phases[phase].program.find("step"); }
    const Function& evaluateOf(std::size_t phase) const { return *m_phases[phase].program.find("evaluate"); }

    double samplesPerSecond() const
    {
        const std::int64_t steps = m_step - m_result.firstStep;
        return steps == 0 ? 0.0 : static_cast<double>(steps * m_batches.rows()) / std::max(m_trainingSeconds, 1e-9);
    }

    /// The functions of a pipelined phase share one pipeline, which goes when they have gone.
    Result<std::unique_ptr<TrainingFunction>> load(std::size_t phase, std::string_view name) const
    {
        std::shared_ptr<LoadedPipeline> pipeline = m_pipelinePhase == phase ? m_pipeline.lock() : nullptr;
        auto loaded = TrainingFunction::load(m_phases[phase], name, *m_devices, pipeline);
        m_pipelinePhase = phase;
        m_pipeline = pipeline;
        return loaded;
    }

    /// Goes on to the phase that the next step belongs to, or to the last one.
    Result<Done> openPhases(const std::stop_token& stop)
    {
        while (m_function == nullptr || (m_phaseSteps == m_phases[m_phase].steps && m_phase + 1 < m_phases.size())) {
            const auto [next, stepsDone] = m_function == nullptr ? firstPhase() : PhaseStart{m_phase + 1, 0};
            auto loaded = load(next, "step");
            if (!loaded)
                return loaded.error();
            const auto moved = fillState(next, **loaded, stop);
            if (!moved)
                return moved.error();
            if (m_function != nullptr)
                closePhase();
            m_function = *std::move(loaded);
            m_phase = next;
            m_phaseSteps = m_phaseFirst = stepsDone;
            m_movedBytes = *moved;
            m_toCheck = stepsToCheck(m_phases[next].steps);
            m_result.stepArenaBytes = std::max(m_result.stepArenaBytes, m_function->arenaBytes());
        }
        return Done{};
    }

    struct PhaseStart {
        std::size_t phase = 0;
        std::int64_t stepsDone = 0; ///< of the phase
    };

    /// Where a run begins: a resumed one in the phase that takes its next step.
    PhaseStart firstPhase() const
    {
        if (m_options.resumed == nullptr)
            return {};
        std::int64_t step = m_step;
        std::size_t phase = 0;
        while (phase + 1 < m_phases.size() && step >= m_phases[phase].steps)
            step -= m_phases[phase++].steps;
        return {phase, step};
    }

    /// Says that the last step's state is not written, since nobody could go on from it.
    void leaveOutCheckpoint(const std::string& what)
    {
        const std::optional<fs::path> last = lastCheckpoint();
        Problem warning{"MW1650", fmt::format("no checkpoint is written after step {}: {} are not finite", m_step, what),
            last ? fmt::format("the last good checkpoint is {}; try a smaller learning rate", last->string())
                 : std::string("try a smaller learning rate, or another initialisation")};
        warning.severity = Severity::Warning;
        m_result.warnings.push_back(std::move(warning));
    }

    /// That this run has written, or went on from.
    std::optional<fs::path> lastCheckpoint() const
    {
        if (m_result.checkpoint || m_options.resumed == nullptr)
            return m_result.checkpoint;
        return m_options.resumed->path();
    }

    /// Writes the state of the open phase, unless it is not finite.
    Result<Done> save()
    {
        const CheckpointPlan& plan = *m_options.checkpoints;
        m_lastTried = m_step;
        if (m_gradientNorm && !std::isfinite(*m_gradientNorm) && !m_skipped && m_step > m_result.firstStep) {
            leaveOutCheckpoint("the gradients");
            return Done{};
        }
        std::string spoiled; // an array that nobody could go on from
        const std::vector<ArrayToSave> arrays = arraysToSave(
            stepOf(m_phase), *m_function, [this] { return heardOfAll(); },
            [&spoiled](const std::string& name) { spoiled = spoiled.empty() ? name : spoiled; });
        if (!isFirst()) {
            m_lastSaved = m_step;
            return readAsWritten(arrays);
        }
        SavedState state{m_step, m_options.seed, wholeMesh(m_phases[m_phase]).text(), m_options.optimizer, m_result.losses,
            m_result.accuracies, m_options.settings};
        state.losses.resize(static_cast<std::size_t>(m_step)); // the loss after the last update is not a step's
        const auto path = m_checkpoints->write(
            state, arrays, [&spoiled]() -> Result<Done> { return spoiled.empty() ? Result<Done>(Done{}) : Problem{}; });
        if (!path && !spoiled.empty()) {
            leaveOutCheckpoint(spoiled);
            return Done{};
        }
        if (!path)
            return path.error();
        m_lastSaved = m_step;
        m_result.checkpoint = *path;
        if (plan.kept > 0)
            m_checkpoints->removeOld(*path, plan.kept);
        return Done{};
    }

    /// Fills the state of the first phase from "init" or a checkpoint, that of a later one from the phase before. Returns the bytes that changed
    /// device.
    Result<std::int64_t> fillState(std::size_t phase, TrainingFunction& step, const std::stop_token& stop)
    {
        std::int64_t moved = 0;
        const std::size_t count = stateCount(stepOf(phase));
        if (m_function != nullptr) {
            for (std::size_t i = 0; i < count; ++i) {
                const auto bytes = step.copyFromArgument(i, *m_function, i, stop);
                if (!bytes)
                    return bytes.error();
                moved += *bytes;
            }
            return moved;
        }
        if (m_options.resumed != nullptr) {
            if (auto restored = restoreState(*m_options.resumed, stepOf(phase), step, stop); !restored)
                return restored.error();
            return std::int64_t{0};
        }
        const auto init = load(phase, "init");
        if (!init)
            return init.error();
        m_result.initArenaBytes = (*init)->arenaBytes();
        for (std::size_t i = 0; i < m_options.initKeys.size(); ++i) {
            const RandomKey& key = m_options.initKeys[i];
            const std::array<double, 2> words = {static_cast<double>(key[0]), static_cast<double>(key[1])};
            if (auto written = (*init)->writeArgument(i, HostArray::of({DType::U32, {2}}, words)); !written)
                return written.error();
        }
        if (auto done = (*init)->run({.record = m_options.record, .stop = stop}); !done)
            return done.error();
        if (m_options.record && !isPipelined(m_phases[phase].scheduled))
            m_result.initialisation = (*init)->measured();
        for (std::size_t i = 0; i < count; ++i) {
            if (const auto bytes = step.copyFromResult(i, **init, i, stop); !bytes)
                return bytes.error();
        }
        return std::int64_t{0};
    }

    /// What there is to say of the open phase.
    void closePhase()
    {
        PhaseResult result;
        result.mesh = wholeMesh(m_phases[m_phase]).text();
        result.steps = m_phaseSteps - m_phaseFirst;
        result.movedBytes = m_movedBytes;
        result.arenaBytes = m_function->arenaBytes();
        result.collectives = m_function->collectives();
        m_result.phases.push_back(std::move(result));
        if (m_options.record && m_phaseSteps > m_phaseFirst) {
            m_result.wall = m_function->measured();
            m_result.virtualTime = m_function->virtualTimeline();
            for (Timeline* timeline : {&m_result.wall, &m_result.virtualTime})
                timeline->setStep(static_cast<std::int32_t>(m_recordedStep));
        }
        if (m_options.typical && m_phaseSteps > m_phaseFirst)
            m_result.typicalTime = m_function->typicalTimeline();
    }

    /// A few steps say little of a typical one. What the repeated ones do to the state is seen by nobody.
    Result<Done> repeatLastStep(const std::stop_token& stop)
    {
        constexpr double kMostSeconds = 1.0;
        constexpr std::size_t kBesides = 8;
        if (m_options.ranks != nullptr || m_options.faults.any()) // ranks would have to agree on how often
            return Done{};
        const auto start = SteadyClock::now();
        for (std::size_t i = 0; i < LoadedFunction::kTypicalRuns && secondsSince(start) < kMostSeconds; ++i) {
            if (m_options.besides && i % kBesides == 0)
                m_options.besides();
            if (auto written = m_batch.writeTo(*m_function, stepOf(m_phase)); !written)
                return written;
            if (auto done = m_function->run({.record = true, .keep = true, .stop = stop}); !done)
                return done;
        }
        m_result.typicalTime = m_function->typicalTimeline();
        return Done{};
    }

    Result<Done> takeBatch(std::int64_t step)
    {
        auto batch = m_batches.ofStep(step);
        if (!batch)
            return batch.error();
        m_batch = *std::move(batch);
        return Done{};
    }

    /// The steps of a phase that are verified.
    std::set<std::int64_t> stepsToCheck(std::int64_t steps) const
    {
        if (!m_options.verify || steps == 0)
            return {};
        return {0, steps / 3, 2 * steps / 3, steps - 1};
    }

    bool isRecorded() const
    {
        const auto next = static_cast<std::uint64_t>(m_phaseSteps + 1);
        return isKept() || (m_options.record && (std::has_single_bit(next) || m_phaseSteps + 1 == m_phases[m_phase].steps));
    }

    /// One of the last steps of its phase: memory and caches are as they stay by then.
    bool isKept() const
    {
        const std::int64_t steps = m_phases[m_phase].steps;
        const std::int64_t kept = std::min<std::int64_t>(LoadedFunction::kTypicalRuns, (steps + 1) / 2);
        return m_options.typical && m_phaseSteps + kept >= steps;
    }

    Result<Done> runStep(const std::stop_token& stop)
    {
        const Function& function = stepOf(m_phase);
        if (auto taken = takeBatch(m_step); !taken)
            return taken;
        std::vector<HostArray> arguments;
        const bool check = m_toCheck.contains(m_phaseSteps);
        if (check) {
            for (std::size_t i = 0; i < stateCount(function); ++i) {
                if (stop.stop_requested())
                    return VirtualDevices::interrupted();
                arguments.push_back(m_function->readArgument(i));
            }
            arguments.push_back(m_batch.inputs);
            arguments.push_back(m_batch.targets);
        }
        if (auto written = m_batch.writeTo(*m_function, stepOf(m_phase)); !written)
            return written.error();

        const auto start = SteadyClock::now();
        // A step that stops in its middle leaves nothing to keep: where a checkpoint is to be written, it ends first.
        const std::stop_token within = m_options.checkpoints ? std::stop_token() : stop;
        m_stateIsLost = true;
        if (auto done = m_function->run(
                {.record = isRecorded(), .keep = isKept(), .stop = within, .faults = &m_options.faults, .step = m_step});
            !done)
            return done.error();
        m_stateIsLost = false;
        const double seconds = secondsSince(start);
        if (isRecorded())
            m_recordedStep = m_step;

        const double loss = scalarResultOf(*m_function, function, "loss");
        const double accuracy = scalarResultOf(*m_function, function, "accuracy");
        if (auto sound = heardOfAll(); !sound)
            return sound;
        if (!std::isfinite(loss))
            return Problem{"MW1620", fmt::format("the loss of step {} is not finite ({})", m_step + 1, std::abs(loss)),
                "try a smaller learning rate, or another initialisation"};
        const auto measured = [&](const char* name) -> std::optional<double> {
            const auto& names = function.resultNames;
            if (std::find(names.begin(), names.end(), name) == names.end())
                return std::nullopt;
            return scalarResultOf(*m_function, function, name);
        };
        m_gradientNorm = measured("grad_norm");
        m_learningRate = measured("learning_rate");
        m_lossScale = measured("loss_scale");
        m_skipped = measured("skipped") > 0.0;
        m_result.skippedSteps += m_skipped ? 1 : 0;
        m_stepSeconds.push_back(seconds);
        m_trainingSeconds += seconds;
        m_result.losses.push_back(loss);
        m_result.accuracies.push_back(accuracy);
        ++m_phaseSteps;
        ++m_step;
        return check ? verify(function, arguments, stop) : Result<Done>(Done{});
    }

    /// Checks the step that was just done. A stop leaves it unchecked: the step itself is complete.
    Result<Done> verify(const Function& function, const std::vector<HostArray>& arguments, const std::stop_token& stop)
    {
        std::vector<HostArray> sharded;
        for (std::size_t i = 0; i < function.results().size() && !stop.stop_requested(); ++i)
            sharded.push_back(m_function->readResult(i));
        if (stop.stop_requested() || !isFirst())
            return heardOfAll();
        const auto outcome = verifyStep(function, arguments, sharded, m_result.devices, stop);
        if (outcome)
            m_result.verification->add(m_step - 1, *outcome);
        else if (!stop.stop_requested())
            return outcome.error();
        return Done{};
    }

    /// "evaluate" of the open phase, with the parameters as they are.
    Result<std::unique_ptr<TrainingFunction>> evaluation(const std::stop_token& stop) const
    {
        const Function& function = evaluateOf(m_phase);
        auto loaded = load(m_phase, "evaluate");
        for (std::size_t i = 0; loaded && i < stateCount(function); ++i) {
            const std::size_t from = argumentIndexOf(stepOf(m_phase), function[function.arguments()[i]].name);
            if (auto copied = (*loaded)->copyFromArgument(i, *m_function, from, stop); !copied)
                return copied.error();
        }
        return loaded;
    }

    Result<Done> measureBetweenSteps(const std::stop_token& stop)
    {
        if (heldOutCount() == 0)
            return Done{};
        const auto loaded = evaluation(stop);
        if (!loaded)
            return loaded.error();
        return measureOn(**loaded, stop);
    }

    /// The loss of the last batch after the last update, the accuracy on held-out rows, the parameters.
    Result<Done> evaluate(const std::stop_token& stop)
    {
        if (m_step == m_result.firstStep) {
            if (auto taken = takeBatch(std::max<std::int64_t>(m_step - 1, 0)); !taken)
                return taken;
        }
        const Function& function = evaluateOf(m_phase);
        const auto loaded = this->evaluation(stop);
        if (!loaded)
            return loaded.error();
        TrainingFunction& evaluation = **loaded;
        if (auto done = evaluateBatch(evaluation, function, m_batch, stop); !done)
            return done.error();
        const double loss = scalarResultOf(evaluation, function, "loss");
        if (auto done = measureOn(evaluation, stop); !done)
            return done.error();
        for (std::size_t i = 0; i < stateCount(function) && m_options.keepParameters; ++i)
            m_result.parameters.push_back(evaluation.readArgument(i));
        m_result.losses.push_back(loss);
        return Done{};
    }

    const Dataset& heldOutData() const { return m_data.evaluation != nullptr ? *m_data.evaluation : m_data; }
    std::int64_t heldOutCount() const { return heldOutData().hasLabels() ? heldOutData().heldOutRows() : 0; }

    Result<Done> measureOn(TrainingFunction& evaluation, const std::stop_token& stop)
    {
        if (heldOutCount() == 0)
            return Done{};
        const auto measured = measureHeldOut(evaluation, evaluateOf(m_phase), m_batches, heldOutData(), stop);
        if (!measured)
            return measured.error();
        m_result.heldOutExamples = heldOutCount();
        m_result.heldOut.push_back({m_step, measured->accuracy, measured->loss});
        if (m_step == m_totalSteps)
            m_result.heldOutAccuracy = measured->accuracy;
        return Done{};
    }

    const std::vector<TrainingPhase>& m_phases;
    const Dataset& m_data;
    TrainerOptions m_options;
    TrainingBatches m_batches;
    std::optional<CheckpointFolder> m_checkpoints; ///< of the process that writes them
    std::unique_ptr<VirtualDevices> m_devices; ///< before all that lives on them
    TrainingResult m_result;
    TrainingBatches::Batch m_batch; ///< of the last step
    std::int64_t m_step = 0;
    std::int64_t m_totalSteps = 0;
    std::vector<double> m_stepSeconds;
    double m_trainingSeconds = 0.0;
    std::optional<double> m_gradientNorm; ///< of the last step
    std::optional<double> m_learningRate; ///< the same, where the program measures it
    std::optional<double> m_lossScale;
    bool m_skipped = false;
    bool m_interrupted = false;
    bool m_stateIsLost = false; ///< a step was stopped in its middle
    std::int64_t m_lastSaved = 0; ///< step of the last checkpoint
    std::int64_t m_lastTried = 0; ///< of the last that was to be written

    mutable std::weak_ptr<LoadedPipeline> m_pipeline; ///< of `m_pipelinePhase`, while a function of it is loaded
    mutable std::size_t m_pipelinePhase = 0;
    std::unique_ptr<TrainingFunction> m_function; ///< "step" of the open phase; none before the first
    std::size_t m_phase = 0;
    std::int64_t m_phaseSteps = 0; ///< done in it
    std::int64_t m_phaseFirst = 0; ///< of these, done before this run
    std::int64_t m_recordedStep = 0; ///< the last one, counted from 0
    std::int64_t m_movedBytes = 0; ///< to open it
    std::set<std::int64_t> m_toCheck; ///< steps of it
};

Trainer::Trainer(std::unique_ptr<Implementation> implementation)
    : m_implementation(std::move(implementation))
{
}

Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::create(
    const std::vector<TrainingPhase>& phases, const Dataset& data, TrainerOptions options)
{
    auto batches = TrainingBatches::make(data, *phases.front().program.find("step"), options.seed);
    if (!batches)
        return batches.error();
    if (options.resumed != nullptr) {
        const SavedState own{0, options.seed, {}, options.optimizer, {}, {}, options.settings};
        if (Problems problems = resumeProblems(phases, *options.resumed, own); !problems.empty())
            return problems;
    }
    std::int64_t count = 1; // a phase may leave some of them out
    for (const TrainingPhase& phase : phases)
        count = std::max(count, wholeMesh(phase).deviceCount());
    const auto addSteps = [](std::int64_t sum, const TrainingPhase& phase) { return sum + phase.steps; };
    const std::int64_t steps = std::accumulate(phases.begin(), phases.end(), std::int64_t{0}, addSteps);
    if (Problems problems = options.faults.problems(count, steps); !problems.empty())
        return problems;
    std::optional<CheckpointFolder> checkpoints;
    Problems warnings;
    if (options.checkpoints && (options.ranks == nullptr || options.ranks->isFirst())) {
        auto folder = CheckpointFolder::open(options.checkpoints->folder);
        if (!folder)
            return folder.error();
        const std::int64_t first = options.resumed != nullptr ? options.resumed->checkpoint().state.step + 1 : 0;
        if (const auto free = folder->checkPlaces(first, steps); !free)
            return free.error();
        const std::int64_t done = options.resumed != nullptr ? options.resumed->checkpoint().state.step : -1;
        if (const std::vector<std::int64_t> there = folder->steps(); !there.empty() && there.front() > done) {
            Problem warning{"MW1651",
                fmt::format("\"{}\" has checkpoints of another training, up to step {}", options.checkpoints->folder.string(),
                    there.front()),
                fmt::format("name another folder, or remove them: --resume {} goes on from the checkpoint of most steps",
                    options.checkpoints->folder.string())};
            warning.severity = Severity::Warning;
            warnings.push_back(std::move(warning));
        }
        checkpoints.emplace(*std::move(folder));
    }
    auto devices = VirtualDevices::create(count,
        {.permits = options.permits, .stallSeconds = options.stallSeconds, .ranks = options.ranks, .engine = options.engine});
    if (!devices)
        return devices.error();
    return std::unique_ptr<Trainer>(new Trainer(std::make_unique<Implementation>(phases, data, std::move(options),
        *std::move(batches), std::move(checkpoints), *std::move(devices), std::move(warnings))));
}

std::int64_t Trainer::steps() const
{
    return m_implementation->steps();
}

std::int64_t Trainer::stepsDone() const
{
    return m_implementation->stepsDone();
}

Result<bool> Trainer::step(const std::stop_token& stop)
{
    return m_implementation->step(stop);
}

TrainingProgress Trainer::progress() const
{
    return m_implementation->progress();
}

const TrainingResult& Trainer::result() const
{
    return m_implementation->result();
}

Result<TrainingResult> Trainer::finish(const std::stop_token& stop)
{
    return m_implementation->finish(stop);
}

Result<TrainingResult> train(const std::vector<TrainingPhase>& phases, const Dataset& data, const TrainerOptions& options,
    const std::function<void(const TrainingProgress&)>& progress, const std::stop_token& stop)
{
    auto trainer = Trainer::create(phases, data, options);
    if (!trainer)
        return trainer.error();
    const bool isAlone = options.ranks == nullptr; // of several processes each waits for what all of them agree on
    while ((*trainer)->stepsDone() < (*trainer)->steps() && !(isAlone && stop.stop_requested())) {
        const auto stepped = (*trainer)->step(stop);
        if (!stepped)
            return stepped.error();
        if (!*stepped)
            break;
        if (progress)
            progress((*trainer)->progress());
    }
    return (*trainer)->finish(stop);
}

} // namespace meshwright
