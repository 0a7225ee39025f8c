// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace meshwright {

namespace {

/// Each row without its first token, and its label behind it.
std::vector<float> shifted(const Dataset& dataset, std::span<const std::int64_t> rows, std::vector<float> tokens)
{
    const auto features = static_cast<std::ptrdiff_t>(dataset.features);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(i) * features;
        std::copy(first + 1, first + features, first);
        first[features - 1] = static_cast<float>(dataset.labels[static_cast<std::size_t>(rows[i])]);
    }
    return tokens;
}

/// Rows of a file as they are, rows that follow each other in one go.
Result<std::vector<float>> fileRowsOf(const Dataset& dataset, const RowFile& file, std::span<const std::int64_t> rows)
{
    const auto rowOf
        = [&](std::size_t i) { return dataset.fileRows.empty() ? rows[i] : dataset.fileRows[static_cast<std::size_t>(rows[i])]; };
    const auto columns = static_cast<std::size_t>(file.columns());
    std::vector<float> values(rows.size() * columns);
    for (std::size_t i = 0; i < rows.size();) {
        std::size_t end = i + 1;
        while (end < rows.size() && rowOf(end) == rowOf(end - 1) + 1)
            ++end;
        auto read = file.read(
            rowOf(i), static_cast<std::int64_t>(end - i), std::span(values).subspan(i * columns, (end - i) * columns));
        if (!read)
            return read.error();
        i = end;
    }
    return values;
}

} // namespace

Result<std::vector<float>> readInputs(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    if (dataset.inputFile == nullptr)
        return inputsOf(dataset, rows);
    auto values = fileRowsOf(dataset, *dataset.inputFile, rows);
    if (values && dataset.fileScale != 1.0) {
        for (float& value : *values)
            value = static_cast<float>(static_cast<double>(value) * dataset.fileScale);
    }
    return values;
}

Result<std::vector<float>> readTargets(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    return dataset.targetFile == nullptr ? targetsOf(dataset, rows) : fileRowsOf(dataset, *dataset.targetFile, rows);
}

Result<std::vector<float>> readFollowing(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    auto tokens = readInputs(dataset, rows);
    if (!tokens)
        return tokens;
    return shifted(dataset, rows, *std::move(tokens));
}

std::vector<float> labelsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    std::vector<float> values;
    for (const std::int64_t row : rows)
        values.push_back(static_cast<float>(dataset.labels[static_cast<std::size_t>(row)]));
    return values;
}

Result<BatchPlan> BatchPlan::make(std::int64_t trainingRows, std::int64_t batch, std::uint64_t seed)
{
    if (batch < 1 || batch > trainingRows)
        return Problem{"MW1606",
            fmt::format("a batch of {} does not fit a data set with {} rows to train on", batch, trainingRows),
            fmt::format("the largest batch is {}", trainingRows)};
    BatchPlan plan;
    plan.m_trainingRows = trainingRows;
    plan.m_batch = batch;
    plan.m_seed = seed;
    return plan;
}

std::span<const std::int64_t> BatchPlan::rowsOf(std::int64_t step)
{
    assert(step >= 0);
    const std::int64_t epoch = step / stepsPerEpoch();
    if (m_epoch != epoch) {
        m_epoch = epoch;
        if (m_batch < m_trainingRows) {
            m_order = randomPermutation(foldIn(keyOfSeed(m_seed), static_cast<std::uint32_t>(epoch)), m_trainingRows, true);
        } else {
            m_order.resize(static_cast<std::size_t>(m_trainingRows));
            std::iota(m_order.begin(), m_order.end(), std::int64_t{0});
        }
    }
    const std::int64_t first = (step % stepsPerEpoch()) * m_batch;
    return std::span<const std::int64_t>(m_order).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(m_batch));
}

std::vector<float> inputsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    std::vector<float> values;
    values.reserve(rows.size() * static_cast<std::size_t>(dataset.features));
    for (const std::int64_t row : rows) {
        const auto first = dataset.inputs.begin() + row * dataset.features;
        values.insert(values.end(), first, first + dataset.features);
    }
    return values;
}

std::vector<float> targetsOf(const Dataset& dataset, std::span<const std::int64_t> rows)
{
    const auto classes = static_cast<std::size_t>(dataset.classes);
    std::vector<float> values(rows.size() * classes, 0.0F);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<std::size_t>(rows[i]);
        if (dataset.targets.empty())
            values[i * classes + static_cast<std::size_t>(dataset.labels[row])] = 1.0F;
        else
            std::copy_n(dataset.targets.begin() + static_cast<std::ptrdiff_t>(row * classes), classes,
                values.begin() + static_cast<std::ptrdiff_t>(i * classes));
    }
    return values;
}

} // namespace meshwright
