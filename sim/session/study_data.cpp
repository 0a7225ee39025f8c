// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/study_data.h"

#include "core/support/counted.h"
#include "core/support/resources.h"
#include "core/support/threefry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace meshwright::sim {

namespace {

/// How the study's files are read; `classes` that the model has.
DatasetOptions datasetOptions(const Study& study, std::int64_t classes)
{
    const TrainingData& wanted = study.train.data;
    DatasetOptions options;
    options.scale = wanted.scale;
    options.classes = classes;
    options.heldOut = wanted.heldOut;
    if (wanted.shuffle)
        options.shuffleSeed = static_cast<std::uint64_t>(study.train.seed);
    return options;
}

Result<Dataset> readNamed(const Study& study, const std::string& file, const std::string& labels, const DatasetOptions& options)
{
    return readDataset(study.resolved(file), labels.empty() ? std::filesystem::path{} : study.resolved(labels), options);
}

/// Whether rows suit the model: of so many inputs and classes, or tokens.
Problems misfits(const Study& study, const Dataset& data)
{
    Problems problems;
    if (const TransformerModel* transformer = study.transformer()) {
        problems = tokenProblems(data, transformer->sequence);
        for (Problem& problem : problems)
            problem.place = study.placeOf("train.data");
        return problems;
    }
    const std::vector<std::int64_t>& layers = study.mlp()->layers;
    const auto misfit = [&](std::string message, std::string fix) {
        problems.push_back({"MW1436", std::move(message), std::move(fix), study.placeOf("model.mlp.layers")});
    };
    if (data.features != layers.front())
        misfit(fmt::format("{} has rows of {}, the model takes {}", data.name, counted(data.features, "input"), layers.front()),
            fmt::format("begin model.mlp.layers with {}", data.features));
    if (data.classes != layers.back() && data.labels.empty())
        misfit(fmt::format("the labels of {} are rows of {}, the model gives {}", data.name, counted(data.classes, "number"),
                   layers.back()),
            fmt::format("end model.mlp.layers with {}, or give one class for each row: labels of rank 1", data.classes));
    else if (data.classes != layers.back())
        misfit(fmt::format("{} has {} classes, the model {}", data.name, data.classes, layers.back()),
            fmt::format("end model.mlp.layers with {}", data.classes));
    return problems;
}

/// Adds the rows to measure on that the study names; what is held out otherwise is no longer.
Result<Done> addEvaluation(const Study& study, Dataset& data, std::int64_t classes)
{
    const EvaluationChoice& evaluate = study.train.evaluate;
    if (evaluate.file.empty())
        return Done{};
    DatasetOptions options = datasetOptions(study, classes);
    options.heldOut = 0;
    options.shuffleSeed.reset();
    auto rows = readNamed(study, evaluate.file, evaluate.labels, options);
    if (!rows)
        return rows.error();
    if (study.transformer() != nullptr)
        rows->classes = classes;
    if (Problems problems = misfits(study, *rows); !problems.empty())
        return problems;
    rows->trainingRows = 0;
    data.evaluation = std::make_shared<Dataset>(*std::move(rows));
    return Done{};
}

/// Rows of tokens: the sequence, and the token that follows it.
Result<Dataset> tokensOf(const Study& study)
{
    const TransformerModel& model = *study.transformer();
    const TrainingData& wanted = study.train.data;
    const std::int64_t classes = model.config.vocabulary;
    if (wanted.kind == TrainingData::Kind::Random)
        return randomTokens(study.batch, model.sequence, classes, keyOfSeed(static_cast<std::uint64_t>(study.train.seed)));
    auto data = wanted.kind == TrainingData::Kind::Digits
        ? readDigitTokens(resourcesDirectory() / "data" / "digits.csv.gz")
        : readNamed(study, wanted.file, wanted.labels, datasetOptions(study, classes));
    if (!data)
        return data.error();
    data->classes = classes;
    return data;
}

/// Makes normal targets labels: of each row its largest. All classes are as likely.
void labelByLargest(Dataset& data)
{
    for (auto row = data.targets.begin(); row != data.targets.end(); row += data.classes)
        data.labels.push_back(static_cast<std::int32_t>(std::max_element(row, row + data.classes) - row));
    data.targets.clear();
}

Result<Dataset> rowsOf(const Study& study, const std::stop_token& stop)
{
    if (study.transformer() != nullptr)
        return tokensOf(study);
    const MlpModel& model = *study.mlp();
    const TrainingData& wanted = study.train.data;
    if (wanted.kind == TrainingData::Kind::Random) {
        const RandomKey key // the first of the split that `initKeys` takes the others of
            = splitKey(keyOfSeed(static_cast<std::uint64_t>(study.train.seed)), model.layers.size(), study.partitionableRandom)
                  .front();
        Dataset data
            = randomDataset(study.batch, model.layers.front(), model.layers.back(), key, study.partitionableRandom, stop);
        if (model.loss == LossKind::CrossEntropy)
            labelByLargest(data);
        return data;
    }
    if (wanted.kind == TrainingData::Kind::Digits)
        return readDigits(resourcesDirectory() / "data" / "digits.csv.gz");
    return readNamed(study, wanted.file, wanted.labels, datasetOptions(study, model.layers.back()));
}

} // namespace

Result<Dataset> datasetOf(const Study& study, const std::stop_token& stop)
{
    auto data = rowsOf(study, stop);
    if (!data || study.train.data.kind == TrainingData::Kind::Random)
        return data;
    if (Problems problems = misfits(study, *data); !problems.empty())
        return problems;
    const std::int64_t classes
        = study.transformer() != nullptr ? study.transformer()->config.vocabulary : study.mlp()->layers.back();
    if (auto added = addEvaluation(study, *data, classes); !added)
        return added.error();
    if (const auto plan = BatchPlan::make(data->trainingRows, study.batch, static_cast<std::uint64_t>(study.train.seed)); !plan) {
        Problems problems = plan.error();
        for (Problem& problem : problems)
            problem.place = study.placeOf("batch");
        return problems;
    }
    return data;
}

} // namespace meshwright::sim
