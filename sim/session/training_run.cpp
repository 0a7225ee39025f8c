// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/training_run.h"

#include "core/support/host_memory.h"
#include "core/train/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>

namespace meshwright::sim {

/// One of the two runs. The phases come first: the trainer refers to them.
struct TrainingRun::Side {
    std::vector<TrainingPhase> phases;
    std::unique_ptr<Trainer> trainer;
};

bool isOver(TrainingState state)
{
    return state == TrainingState::Finished || state == TrainingState::Cancelled || state == TrainingState::Failed;
}

TrainingRun::TrainingRun(std::shared_ptr<const Study> study, TrainingRunOptions options)
    : m_study(std::move(study))
    , m_options(std::move(options))
    , m_thread([this](const std::stop_token& stop) { work(stop); })
{
}

TrainingRun::~TrainingRun()
{
    cancel();
}

void TrainingRun::pause()
{
    const std::lock_guard lock(m_mutex);
    m_pauseWanted = true;
}

void TrainingRun::resume()
{
    const std::lock_guard lock(m_mutex);
    m_pauseWanted = false;
    m_changed.notify_all();
}

void TrainingRun::cancel()
{
    {
        const std::lock_guard lock(m_mutex);
        m_cancelWanted = true;
    }
    m_thread.request_stop();
}

TrainingState TrainingRun::stateLocked() const
{
    if (m_end)
        return *m_end;
    if (m_cancelWanted)
        return TrainingState::Cancelling;
    if (m_waiting)
        return TrainingState::Paused;
    if (m_pauseWanted)
        return TrainingState::Pausing;
    return m_prepared ? TrainingState::Running : TrainingState::Preparing;
}

double TrainingRun::elapsedLocked() const
{
    const auto until = m_waiting || m_end ? m_stoodStill : SteadyClock::now();
    return std::chrono::duration<double>(until - m_start - m_paused).count();
}

TrainingSnapshot TrainingRun::snapshot() const
{
    const std::lock_guard lock(m_mutex);
    TrainingSnapshot snapshot = m_figures;
    snapshot.state = stateLocked();
    snapshot.elapsedSeconds = elapsedLocked();
    if (const auto done = snapshot.step - snapshot.firstStep; done > 0 && !m_end)
        snapshot.secondsLeft
            = snapshot.elapsedSeconds * static_cast<double>(snapshot.steps - snapshot.step) / static_cast<double>(done);
    return snapshot;
}

void TrainingRun::extend(TrainingCurves& curves) const
{
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
        assert(to.size() <= from.size());
        to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(to.size()), from.end());
    };
    const std::lock_guard lock(m_mutex);
    append(curves.loss, m_curves.loss);
    append(curves.accuracy, m_curves.accuracy);
    append(curves.oneDeviceLoss, m_curves.oneDeviceLoss);
    append(curves.oneDeviceAccuracy, m_curves.oneDeviceAccuracy);
}

std::shared_ptr<const TrainingResult> TrainingRun::result() const
{
    const std::lock_guard lock(m_mutex);
    return m_result;
}

std::shared_ptr<const TrainingResult> TrainingRun::oneDeviceResult() const
{
    const std::lock_guard lock(m_mutex);
    return m_oneDeviceResult;
}

void TrainingRun::wait() const
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_end.has_value(); });
}

/// What the run needs is given back after it is over, so that nobody waits for that.
void TrainingRun::work(const std::stop_token& stop)
{
    Dataset data;
    Side sharded;
    Side oneDevice;
    try {
        Result<Done> done = prepare(sharded, oneDevice, data, stop);
        if (done)
            done = runSteps(sharded, oneDevice, stop);
        if (done)
            done = finish(sharded, oneDevice, stop);
        if (!done)
            end(TrainingState::Failed, done.error());
    } catch (const std::bad_alloc&) {
        end(TrainingState::Failed, {notEnoughMemory()});
    } catch (const std::exception& error) {
        end(TrainingState::Failed, {Problem{"MW1508", fmt::format("training failed: {}", error.what())}});
    }
}

Result<Done> TrainingRun::prepare(Side& sharded, Side& oneDevice, Dataset& data, const std::stop_token& stop)
{
    auto phases = trainingPhases(*m_study);
    if (!phases)
        return phases.error();
    sharded.phases = *std::move(phases);
    const auto options = trainerOptions(*m_study,
        {.verify = m_options.verify,
            .record = true,
            .permits = m_options.permits,
            .checkpoints = m_options.checkpoints,
            .faults = m_options.faults,
            .resume = m_options.resume});
    if (!options)
        return options.error();
    const std::int64_t planned = plannedTrainingBytes(sharded.phases, m_study->train.evaluate.every > 0);
    const auto memory = m_options.memoryBytes ? m_options.memoryBytes : availableMemoryBytes();
    if (auto fits = checkMemory(planned, memory); !fits)
        return fits;
    auto rows = datasetOf(*m_study, stop);
    if (!rows)
        return rows.error();
    data = *std::move(rows);
    auto trainer = Trainer::create(sharded.phases, data, *options);
    if (!trainer)
        return trainer.error();
    sharded.trainer = *std::move(trainer);
    std::vector<LayoutSwitch> changes = layoutSwitches(sharded.phases, options->resumed.get());
    if (m_options.besideOneDevice && !stop.stop_requested())
        prepareOneDevice(oneDevice, data, memory ? std::optional(*memory - planned) : std::nullopt);

    const std::lock_guard lock(m_mutex);
    m_prepared = true;
    m_figures.steps = sharded.trainer->steps();
    m_figures.batch = m_study->batch;
    m_figures.devices = sharded.trainer->result().devices;
    for (const TrainingPhase& phase : sharded.phases)
        m_figures.stepArenaBytes = std::max(m_figures.stepArenaBytes, plannedStepBytes(phase));
    m_figures.besideOneDevice = oneDevice.trainer != nullptr;
    m_figures.firstStep = sharded.trainer->stepsDone();
    m_figures.step = m_figures.firstStep;
    append(m_figures.problems, sharded.trainer->result().warnings);
    m_figures.layoutSwitches = std::move(changes);
    m_curves.loss = sharded.trainer->result().losses;
    m_curves.accuracy = sharded.trainer->result().accuracies;
    if (oneDevice.trainer != nullptr) { // what the checkpoint has is of its run alone
        const double notRun = std::numeric_limits<double>::quiet_NaN();
        m_curves.oneDeviceLoss.assign(oneDevice.trainer->result().losses.size(), notRun);
        m_curves.oneDeviceAccuracy.assign(oneDevice.trainer->result().accuracies.size(), notRun);
    }
    return Done{};
}

/// Nothing that goes wrong here keeps the sharded run from going on.
void TrainingRun::prepareOneDevice(Side& side, const Dataset& data, std::optional<std::int64_t> memoryBytes)
{
    const Study study = unshardedStudy(*m_study);
    const auto attempt = [&]() -> Result<Done> {
        auto phases = trainingPhases(study);
        if (!phases)
            return phases.error();
        side.phases = *std::move(phases);
        if (auto fits = checkMemory(plannedTrainingBytes(side.phases), memoryBytes); !fits)
            return fits;
        const auto options = trainerOptions(study, {.permits = m_options.permits, .resume = m_options.resume});
        if (!options)
            return options.error();
        auto trainer = Trainer::create(side.phases, data, *options);
        if (!trainer)
            return trainer.error();
        side.trainer = *std::move(trainer);
        return Done{};
    };
    if (const auto done = attempt(); !done)
        leaveOutOneDevice(side, done.error());
}

void TrainingRun::leaveOutOneDevice(Side& side, const Problems& why)
{
    side.trainer.reset();
    Problem warning{"MW1631", fmt::format("nothing to compare with on one device: {}", why.front().message), why.front().fix};
    warning.severity = Severity::Warning;
    const std::lock_guard lock(m_mutex);
    m_figures.besideOneDevice = false;
    m_figures.problems.push_back(std::move(warning));
}

Result<Done> TrainingRun::runSteps(Side& sharded, Side& oneDevice, const std::stop_token& stop)
{
    while (sharded.trainer->stepsDone() < sharded.trainer->steps() && waitWhilePaused(stop)) {
        const auto stepped = sharded.trainer->step(stop);
        if (!stepped)
            return stepped.error();
        if (!*stepped)
            return Done{};
        {
            const TrainingProgress progress = sharded.trainer->progress();
            const std::lock_guard lock(m_mutex);
            m_curves.loss.push_back(progress.loss);
            m_curves.accuracy.push_back(progress.accuracy);
            m_figures.step = progress.step;
            m_figures.samplesPerSecond = progress.samplesPerSecond;
        }
        if (oneDevice.trainer != nullptr && waitWhilePaused(stop))
            stepOnOneDevice(oneDevice, stop);
    }
    return Done{};
}

void TrainingRun::stepOnOneDevice(Side& side, const std::stop_token& stop)
{
    const auto stepped = side.trainer->step(stop);
    if (!stepped)
        return leaveOutOneDevice(side, stepped.error());
    if (!*stepped)
        return;
    const TrainingProgress progress = side.trainer->progress();
    const std::lock_guard lock(m_mutex);
    m_curves.oneDeviceLoss.push_back(progress.loss);
    m_curves.oneDeviceAccuracy.push_back(progress.accuracy);
}

Result<Done> TrainingRun::finish(Side& sharded, Side& oneDevice, const std::stop_token& stop)
{
    auto result = sharded.trainer->finish(stop);
    if (!result)
        return result.error();
    std::shared_ptr<const TrainingResult> alone;
    if (oneDevice.trainer != nullptr) {
        auto finished = oneDevice.trainer->finish(stop);
        if (!finished)
            leaveOutOneDevice(oneDevice, finished.error());
        else if (!finished->interrupted)
            alone = std::make_shared<const TrainingResult>(*std::move(finished));
    }
    const bool cancelled = result->interrupted;
    {
        const std::lock_guard lock(m_mutex);
        m_result = std::make_shared<const TrainingResult>(*std::move(result));
        m_oneDeviceResult = std::move(alone);
        if (!cancelled)
            m_curves.loss.push_back(m_result->losses.back());
        if (m_oneDeviceResult)
            m_curves.oneDeviceLoss.push_back(m_oneDeviceResult->losses.back());
    }
    end(cancelled ? TrainingState::Cancelled : TrainingState::Finished);
    return Done{};
}

/// False when stopped.
bool TrainingRun::waitWhilePaused(const std::stop_token& stop)
{
    std::unique_lock lock(m_mutex);
    if (m_pauseWanted && !stop.stop_requested()) {
        m_waiting = true;
        m_stoodStill = SteadyClock::now();
        m_changed.wait(lock, stop, [this] { return !m_pauseWanted; });
        m_waiting = false;
        m_paused += SteadyClock::now() - m_stoodStill;
    }
    return !stop.stop_requested();
}

void TrainingRun::end(TrainingState state, Problems problems)
{
    const std::lock_guard lock(m_mutex);
    append(m_figures.problems, std::move(problems));
    m_stoodStill = SteadyClock::now();
    m_end = state;
    m_changed.notify_all();
}

} // namespace meshwright::sim
