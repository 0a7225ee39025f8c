// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study.h"

#include "core/study/study_parts.h"

#include <algorithm>

namespace meshwright {

namespace {

template <typename T>
const char* nameIn(const Words<T>& words, T value)
{
    for (const auto& [name, meaning] : words) {
        if (meaning == value)
            return name;
    }
    return "";
}

} // namespace

Place Study::placeOf(std::string_view path) const
{
    std::string_view around = path;
    for (;;) {
        const auto found = places.at.find(std::string(around));
        if (found != places.at.end()) {
            Place place = found->second;
            place.path = std::string(path);
            return place;
        }
        const std::size_t cut = around.find_last_of(".[");
        if (around.empty() || cut == std::string_view::npos)
            return Place{places.file, 0, 0, std::string(path)};
        around = around.substr(0, cut);
    }
}

std::filesystem::path Study::resolved(const std::string& namedFile) const
{
    const std::filesystem::path named(namedFile);
    return named.is_absolute() ? named : std::filesystem::path(places.file).parent_path() / named;
}

Result<Mesh> meshOf(const Study& study)
{
    return Mesh::create(study.mesh, study.deviceOrder);
}

namespace {

/// Steps of the whole training.
std::int64_t allSteps(const Study& study)
{
    std::int64_t steps = study.phases.empty() ? study.train.steps : 0;
    for (const StudyPhase& phase : study.phases)
        steps = std::min(steps, kLargestDimension) + std::clamp<std::int64_t>(phase.steps, 0, kLargestDimension);
    return steps;
}

} // namespace

Study phaseStudy(const Study& study, std::size_t index)
{
    Study part = study;
    part.phases.clear();
    if (UpdateChoices* update = updateChoices(part.optimizer)) {
        LearningRateSchedule& schedule = update->schedule;
        if (schedule.kind != LearningRateSchedule::Kind::Constant && schedule.decaySteps == 0)
            schedule.decaySteps = allSteps(study);
    }
    if (study.phases.empty())
        return part;
    const StudyPhase& phase = study.phases[index];
    part.mesh = phase.mesh;
    part.deviceOrder = phase.deviceOrder;
    part.train.steps = phase.steps;
    const auto addMissing = [&](const std::vector<MeshAxis>& axes) {
        for (const MeshAxis& axis : axes) {
            if (std::none_of(part.mesh.begin(), part.mesh.end(), [&](const MeshAxis& a) { return a.name == axis.name; }))
                part.mesh.push_back({axis.name, 1});
        }
    };
    addMissing(study.mesh);
    for (const StudyPhase& other : study.phases)
        addMissing(other.mesh);
    return part;
}

const Words<Activation>& activationWords()
{
    static const Words<Activation> words = {{"relu", Activation::Relu}, {"tanh", Activation::Tanh}};
    return words;
}

const Words<LossKind>& lossWords()
{
    static const Words<LossKind> words
        = {{"sum_squared", LossKind::SumSquared}, {"mse", LossKind::MeanSquared}, {"cross_entropy", LossKind::CrossEntropy}};
    return words;
}

const Words<Initializer>& initializerWords()
{
    static const Words<Initializer> words = {{"normal/sqrt(fan_in)", Initializer::NormalOverSqrtFanIn},
        {"lecun_normal", Initializer::LecunNormal}, {"he_normal", Initializer::HeNormal}, {"normal", Initializer::Normal},
        {"zeros", Initializer::Zeros}, {"ones", Initializer::Ones}};
    return words;
}

const Words<LearningRateSchedule::Kind>& rateScheduleWords()
{
    using Kind = LearningRateSchedule::Kind;
    static const Words<Kind> words = {{"constant", Kind::Constant}, {"linear", Kind::Linear}, {"cosine", Kind::Cosine}};
    return words;
}

const Words<PipelineOrder>& scheduleWords()
{
    static const Words<PipelineOrder> words = {{"1f1b", PipelineOrder::OneForwardOneBackward}, {"gpipe", PipelineOrder::GPipe},
        {"interleaved", PipelineOrder::Interleaved}, {"zb_h1", PipelineOrder::ZeroBubbleH1},
        {"zb_h2", PipelineOrder::ZeroBubbleH2}};
    return words;
}

const Words<Fp8Recipe>& fp8Words()
{
    static const Words<Fp8Recipe> words = {{"none", Fp8Recipe::None}, {"delayed", Fp8Recipe::Delayed},
        {"current", Fp8Recipe::Current}, {"rowwise", Fp8Recipe::Rowwise}, {"blockwise", Fp8Recipe::Blockwise}};
    return words;
}

const Words<DType>& dtypeWords()
{
    static const Words<DType> words = {{"f32", DType::F32}, {"bf16", DType::BF16}, {"f16", DType::F16}, {"f64", DType::F64}};
    return words;
}

const char* activationName(Activation activation)
{
    return nameIn(activationWords(), activation);
}

const char* lossName(LossKind loss)
{
    return nameIn(lossWords(), loss);
}

const char* initializerName(Initializer initializer)
{
    return nameIn(initializerWords(), initializer);
}

const char* rateScheduleName(LearningRateSchedule::Kind kind)
{
    return nameIn(rateScheduleWords(), kind);
}

const char* scheduleName(PipelineOrder order)
{
    return nameIn(scheduleWords(), order);
}

std::optional<PipelineOrder> scheduleNamed(std::string_view name)
{
    const Words<PipelineOrder>& words = scheduleWords();
    const auto found = std::ranges::find_if(words, [&](const auto& word) { return word.first == name; });
    return found == words.end() ? std::nullopt : std::optional(found->second);
}

const char* fp8RecipeName(Fp8Recipe recipe)
{
    return nameIn(fp8Words(), recipe);
}

} // namespace meshwright
