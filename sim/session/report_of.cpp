// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/report_of.h"

#include "core/models/layer_names.h"
#include "core/study/arrays.h"
#include "core/study/pipeline_choice.h"
#include "core/study/study_parts.h"
#include "core/study/transformer_keys.h"
#include "core/support/text.h"
#include "sim/session/pipeline_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace meshwright::sim {

namespace {

constexpr std::size_t kMostMeshes = 12;
constexpr std::size_t kMostSpecs = 2; ///< causes of waiting that are tried without
constexpr int kMostHalvings = 24;

/// All ways to write `devices` as a product of as many sizes as there are axes.
void addFactorings(
    std::int64_t devices, std::size_t axes, std::vector<std::int64_t>& sizes, std::vector<std::vector<std::int64_t>>& all)
{
    constexpr std::size_t kMost = 4096;
    if (all.size() >= kMost)
        return;
    if (axes == 1) {
        sizes.push_back(devices);
        all.push_back(sizes);
        sizes.pop_back();
        return;
    }
    for (std::int64_t size = 1; size <= devices; ++size) {
        if (devices % size != 0)
            continue;
        sizes.push_back(size);
        addFactorings(devices / size, axes - 1, sizes, all);
        sizes.pop_back();
    }
}

class Trials {
public:
    Trials(const Analysis& analysis, std::size_t most, const std::stop_token& stop,
        const std::function<void(const ReportTrial&)>& found)
        : m_analysis(analysis)
        , m_study(*analysis.study)
        , m_phase(phaseStudy(*analysis.study, 0))
        , m_now(analysis.simulated->simulation)
        , m_most(most)
        , m_stop(stop)
        , m_found(found)
    {
    }

    std::vector<ReportTrial> run()
    {
        tryMeshes();
        trySpecs();
        if (m_phase.trains())
            tryRuns();
        if (!m_now.fits && m_phase.trains())
            trySplitting();
        if (m_phase.trains())
            m_now.fits ? tryLargerBatch() : trySmallerBatch();
        tryProductType();
        return std::move(m_trials);
    }

private:
    void add(ReportTrial trial)
    {
        m_trials.push_back(std::move(trial));
        if (m_found)
            m_found(m_trials.back());
    }

    bool full() const { return m_trials.size() >= m_most || m_stop.stop_requested(); }

    /// Simulates the study with some settings more.
    ReportTrial simulated(ReportTrial::Kind kind, std::string what, std::vector<std::string> settings) const
    {
        ReportTrial trial;
        trial.kind = kind;
        trial.what = std::move(what);
        trial.settings = std::move(settings);
        const StudySource& source = m_analysis.source;
        const std::vector<std::string> all = withSettings(source.settings, trial.settings);
        const auto fail = [&](const Problems& problems) {
            trial.whyNot = problems.front().message;
            return trial;
        };
        const auto study = readStudy(source.text, source.file, all);
        if (!study)
            return fail(study.error());
        const auto built = buildPhase(*study);
        if (!built)
            return fail(built.error());
        const auto pipeline = pipelineOfPhase(*built);
        if (!pipeline)
            return fail(pipeline.error());
        const auto result = simulateStep(*built, scheduleStep(*built), pipeline->get(), *m_analysis.machine);
        if (!result)
            return fail(result.error());
        trial.batch = built->study.batch;
        trial.stepSeconds = result->simulation.stepSeconds;
        trial.exposedSeconds = result->simulation.exposedSeconds;
        trial.peakBytes = result->simulation.peakBytes;
        trial.fits = result->simulation.fits;
        trial.boundBy = result->simulation.boundBy;
        return trial;
    }

    void tryMeshes()
    {
        const std::vector<MeshAxis>& axes = m_phase.mesh;
        if (axes.size() < 2)
            return;
        std::vector<std::int64_t> now;
        for (const MeshAxis& axis : axes)
            now.push_back(axis.size);
        std::vector<std::vector<std::int64_t>> all;
        std::vector<std::int64_t> sizes;
        addFactorings(m_analysis.mesh().deviceCount(), axes.size(), sizes, all);
        std::erase(all, now);
        const auto stages
            = std::find_if(axes.begin(), axes.end(), [&](const MeshAxis& axis) { return axis.name == m_study.pipeline.axis; });
        if (stages != axes.end()) { // their number is the pipeline's
            const auto at = static_cast<std::size_t>(stages - axes.begin());
            std::erase_if(all, [&](const std::vector<std::int64_t>& other) { return other[at] != now[at]; });
        }
        const auto distance = [&](const std::vector<std::int64_t>& other) {
            double sum = 0.0;
            for (std::size_t i = 0; i < other.size(); ++i)
                sum += std::fabs(std::log2(static_cast<double>(other[i]) / static_cast<double>(now[i])));
            return sum;
        };
        std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
        if (all.size() > kMostMeshes)
            all.resize(kMostMeshes);
        const std::string prefix = m_study.phases.empty() ? "mesh." : "phases[0].mesh.";
        for (const std::vector<std::int64_t>& mesh : all) {
            if (full())
                return;
            std::vector<std::string> settings;
            std::vector<std::string> words;
            for (std::size_t i = 0; i < axes.size(); ++i) {
                settings.push_back(fmt::format("{}{}={}", prefix, axes[i].name, mesh[i]));
                words.push_back(fmt::format("{}={}", axes[i].name, mesh[i]));
            }
            add(simulated(ReportTrial::Kind::Mesh, "mesh " + join(words, ", "), std::move(settings)));
        }
    }

    /// The specs of single arrays behind the longest waits, left out one by one.
    void trySpecs()
    {
        std::vector<SimulatedCollective> byWait = m_now.collectives;
        std::stable_sort(byWait.begin(), byWait.end(),
            [](const SimulatedCollective& a, const SimulatedCollective& b) { return a.exposedSeconds > b.exposedSeconds; });
        std::set<std::string> tried;
        for (const SimulatedCollective& collective : byWait) {
            const std::string& path = collective.use.cause.annotation;
            const bool named = std::any_of(m_phase.sharding.entries.begin(), m_phase.sharding.entries.end(),
                [&](const ShardingEntry& entry) { return entry.path == path && entry.name != "x" && entry.name != "y"; });
            if (full() || tried.size() >= kMostSpecs || collective.exposedSeconds < 0.02 * m_now.stepSeconds)
                return;
            if (named && tried.insert(path).second)
                add(simulated(ReportTrial::Kind::Spec, path + ": P()", {path + "=P()"}));
        }
    }

    /// The same layout with another recomputation, number of microbatches or order of the pipeline.
    void tryRuns()
    {
        const auto tryRun = [&](std::string what, std::vector<std::string> settings) {
            if (!full())
                add(simulated(ReportTrial::Kind::Run, std::move(what), std::move(settings)));
        };
        if (const TransformerModel* transformer = m_study.transformer()) {
            // Software that runs layers to their end has no other full recomputation, and what does not fuse ops keeps what they read.
            const bool runsLayers = transformer->recompute == Recompute::Layer;
            const bool keepsAll = transformer->recompute == Recompute::Nothing;
            for (const char* policy : {keepsAll ? "everything_saveable" : "none", "selective", runsLayers ? "layer" : "full"}) {
                if (recomputeText(*transformer) != policy)
                    tryRun(fmt::format("recompute {}", policy), {fmt::format("recompute={}", policy)});
            }
            trySequences();
        }
        const PipelineChoice& pipeline = m_study.pipeline;
        if (!isPipelined(pipeline))
            return;
        for (const std::int64_t microbatches : {2 * pipeline.microbatches, pipeline.microbatches / 2}) {
            if (microbatches > 0 && m_phase.batch % microbatches == 0)
                tryRun(fmt::format("{} microbatch{}", microbatches, microbatches == 1 ? "" : "es"),
                    {fmt::format("pipeline.microbatches={}", microbatches)});
        }
        for (const auto& [name, order] : scheduleWords()) {
            if (pipeline.stages == 1) // microbatches one after the other have no order of stages
                break;
            if (order == pipeline.schedule)
                continue;
            std::vector<std::string> settings = {fmt::format("pipeline.schedule={}", name)};
            const bool isInterleaved = order == PipelineOrder::Interleaved;
            if (isInterleaved != (pipeline.chunks > 1))
                settings.push_back(fmt::format("pipeline.chunks={}", isInterleaved ? 2 : 1));
            tryRun(fmt::format("schedule {}", name), std::move(settings));
        }
    }

    /// Sequence parallelism, or none where the study has it: between its tensor parallel blocks each device has a part of every sequence
    /// (arXiv:2205.05198, section 4.2.2). What a block makes of its input keeps its layout, said as a spec, so that the parts meet where blocks begin and end.
    void trySequences()
    {
        struct Value {
            const StudyArray* array;
            PartitionSpec spec;
        };
        std::vector<Value> stream; // between blocks
        std::vector<Value> inner;
        std::string tensor; // the axis that splits the blocks
        const std::vector<StudyArray> arrays = studyArrays(m_phase);
        for (const StudyArray& array : arrays) {
            const ProgramArray* known = array.kind == StudyArray::Kind::Activation ? m_analysis.findArray(array.name) : nullptr;
            auto spec = known == nullptr ? std::nullopt : toSpec(known->sharding, m_analysis.mesh());
            const bool isPart = dimOf(DimRole::Sequence, array.meaning).has_value();
            if (!spec || !isPart || array.name.ends_with(".input"))
                continue;
            spec->dims.resize(array.shape.size());
            if (array.meaning.back().role == DimRole::Hidden) {
                stream.push_back({&array, *std::move(spec)});
                continue;
            }
            const auto width = dimOf(DimRole::Ffn, array.meaning);
            if (width && !spec->dims[*width].empty())
                tensor = spec->dims[*width].front();
            inner.push_back({&array, *std::move(spec)});
        }
        if (stream.empty() || tensor.empty())
            return;
        bool isSplit = false;
        for (const Value& value : stream) {
            for (const std::vector<std::string>& axes : value.spec.dims)
                isSplit |= std::ranges::find(axes, tensor) != axes.end();
        }
        std::vector<std::string> settings;
        const auto set = [&](const Value& value) {
            settings.push_back(fmt::format("{}={}", ownSpecPath(m_study, value.array->name), specText(value.spec)));
        };
        for (Value& value : stream) {
            for (std::vector<std::string>& axes : value.spec.dims)
                std::erase(axes, tensor);
            if (!isSplit)
                value.spec.dims[*dimOf(DimRole::Sequence, value.array->meaning)].push_back(tensor);
            set(value);
        }
        if (!isSplit)
            std::ranges::for_each(inner, set);
        if (!full())
            add(simulated(ReportTrial::Kind::Run,
                isSplit ? std::string("no sequence parallelism") : fmt::format("sequence parallelism over {}", tensor),
                std::move(settings)));
    }

    /// Every weight that is large and not fully split: split by the axes that it lacks, along the largest dimension that they divide.
    void trySplitting()
    {
        if (full())
            return;
        std::vector<std::string> settings;
        const Mesh& mesh = m_analysis.mesh();
        std::set<std::string> axesAdded;
        for (const StudyArray& parameter : studyArrays(m_phase)) {
            if (parameter.kind != StudyArray::Kind::Parameter || parameter.shape.size() < 2)
                continue;
            const ProgramArray* array = m_analysis.findArray(parameter.name);
            auto spec = array == nullptr ? std::nullopt : toSpec(array->sharding, mesh);
            if (!spec)
                continue;
            spec->dims.resize(parameter.shape.size());
            bool added = false;
            for (const MeshAxis& axis : mesh.axes()) {
                const bool used = std::any_of(spec->dims.begin(), spec->dims.end(),
                    [&](const auto& dim) { return std::find(dim.begin(), dim.end(), axis.name) != dim.end(); });
                if (used || axis.size == 1)
                    continue;
                if (const auto dim = bestDim(parameter.shape, *spec, mesh, axis.size)) {
                    spec->dims[*dim].push_back(axis.name);
                    axesAdded.insert(axis.name);
                    added = true;
                }
            }
            if (added)
                settings.push_back(fmt::format("sharding.{}={}", parameter.name, specText(*spec)));
        }
        if (settings.empty())
            return;
        const std::vector<std::string> axes(axesAdded.begin(), axesAdded.end());
        add(simulated(ReportTrial::Kind::Spec, "weights split over " + join(axes, " and ") + " too", std::move(settings)));
    }

    static std::optional<std::size_t> bestDim(
        const Shape& shape, const PartitionSpec& spec, const Mesh& mesh, std::int64_t pieces)
    {
        std::optional<std::size_t> best;
        std::int64_t largest = 0;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            std::int64_t already = 1;
            for (const std::string& axis : spec.dims[dim])
                already *= mesh.axisSize(axis).value_or(1);
            if (shape[dim] % (already * pieces) == 0 && shape[dim] / already > largest) {
                largest = shape[dim] / already;
                best = dim;
            }
        }
        return best;
    }

    ReportTrial withBatch(std::int64_t batch) const
    {
        return simulated(ReportTrial::Kind::Batch, fmt::format("batch {}", batch), {fmt::format("batch={}", batch)});
    }

    void tryLargerBatch()
    {
        if (full() || m_phase.batch > kLargestDimension / 2 || m_phase.train.data.kind != TrainingData::Kind::Random)
            return; // a data set may have no more rows
        add(withBatch(2 * m_phase.batch));
    }

    /// The largest half, quarter and so on that fits.
    void trySmallerBatch()
    {
        std::int64_t batch = m_phase.batch;
        for (int i = 0; i < kMostHalvings && batch % 2 == 0 && !full(); ++i) {
            batch /= 2;
            ReportTrial trial = withBatch(batch);
            if (!trial.whyNot.empty())
                return;
            if (trial.fits) {
                add(std::move(trial));
                return;
            }
        }
    }

    void tryProductType()
    {
        if (full() || !m_phase.trains() || m_phase.matmulType != DType::F32
            || m_analysis.machine->chip.chipClass == ChipClass::Cpu)
            return;
        add(simulated(ReportTrial::Kind::ProductType, "products of bf16", {"dtype.matmul=bf16"}));
    }

    const Analysis& m_analysis;
    const Study& m_study;
    Study m_phase; ///< the first
    const Simulation& m_now;
    std::size_t m_most;
    const std::stop_token& m_stop;
    const std::function<void(const ReportTrial&)>& m_found;
    std::vector<ReportTrial> m_trials;
};

/// What a pipeline's stages have, with the values of the whole step that they are parts of.
std::vector<ReportedArray> reportedArrays(const ScheduledProgram& pipeline, const Function& whole)
{
    std::vector<ReportedArray> reported;
    for (PipelineArray& array : arraysOf(pipeline)) {
        auto value = whole.findValue(array.name);
        if (!value)
            value = whole.findValue(ofWholeLoop(array.name));
        reported.push_back({std::move(array.name), array.role, std::move(array.type), std::move(array.sharding),
            std::move(array.spec), std::move(array.annotation), value.value_or(ValueId()), array.mesh, {}});
        if (pipeline.stages.size() > 1)
            reported.back().stages = std::move(array.stages);
    }
    std::ranges::stable_sort(
        reported, [](const ReportedArray& a, const ReportedArray& b) { return rankOf(a.role) < rankOf(b.role); });
    return reported;
}

std::vector<ReportedArray> reportedArrays(const std::vector<ProgramArray>& arrays)
{
    std::vector<ReportedArray> reported;
    reported.reserve(arrays.size());
    for (const ProgramArray& array : arrays)
        reported.push_back(
            {array.name, array.role, array.type, array.sharding, array.spec, array.annotation, array.value, nullptr, {}});
    return reported;
}

} // namespace

std::vector<ReportTrial> trialsOf(
    const Analysis& analysis, std::size_t most, const std::stop_token& stop, const std::function<void(const ReportTrial&)>& found)
{
    if (!analysis.simulated || !analysis.built || most == 0)
        return {};
    return Trials(analysis, most, stop, found).run();
}

namespace {

/// All but the trials and the training.
ReportInputs inputsOf(const Analysis& analysis)
{
    ReportInputs inputs;
    inputs.studyText = analysis.source.text;
    inputs.studyFile = analysis.source.file;
    inputs.settings = analysis.source.settings;
    inputs.problems = analysis.problems;
    inputs.machine = analysis.machine.get();
    inputs.placement = analysis.placement.get();
    if (analysis.built) {
        inputs.study = &analysis.built->study;
        inputs.partitioned = &analysis.built->partitioned;
        inputs.mainFunction = analysis.built->mainFunction;
    } else {
        inputs.study = analysis.study.get();
    }
    if (analysis.study)
        inputs.phases = std::max<std::size_t>(1, analysis.study->phases.size());
    inputs.scheduled = analysis.scheduled.get();
    inputs.simulated = analysis.simulated.get();
    inputs.pipeline = analysis.pipeline ? &analysis.pipeline->scheduled : nullptr;
    inputs.arrays = analysis.pipeline
        ? reportedArrays(*inputs.pipeline, *analysis.built->partitioned.propagated.find(inputs.mainFunction))
        : reportedArrays(analysis.arrays);
    inputs.proof = analysis.proof.get();
    return inputs;
}

} // namespace

bool measuresAnotherStudy(const Analysis& analysis, const MeasuredTraining& training)
{
    if (!analysis.scheduled)
        return false;
    ReportInputs inputs = inputsOf(analysis);
    inputs.training = training;
    return measuresAnotherStudy(inputs);
}

Report reportOf(const Analysis& analysis, const ReportChoices& choices, const std::stop_token& stop)
{
    ReportInputs inputs = inputsOf(analysis);
    inputs.trials = trialsOf(analysis, choices.mostTrials, stop, choices.found);
    inputs.training = choices.training;
    return buildReport(inputs);
}

MeasuredTraining measuredTraining(const TrainingResult& result)
{
    return valueOf(readTrainingResult(trainingJson(result), "result"));
}

} // namespace meshwright::sim
