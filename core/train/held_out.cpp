// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/held_out.h"

#include <algorithm>
#include <vector>

namespace meshwright {

namespace {

/// "evaluate" and what it takes.
class Evaluation {
public:
    Evaluation(TrainingFunction& function, const Function& evaluate, const TrainingBatches& batches, const Dataset& data,
        const std::stop_token& stop)
        : m_function(function)
        , m_evaluate(evaluate)
        , m_batches(batches)
        , m_data(data)
        , m_stop(stop)
    {
    }

    /// The mean over these rows.
    Result<double> lossOf(const std::vector<std::int64_t>& rows)
    {
        const auto batch = m_batches.of(m_data, rows);
        if (!batch)
            return batch.error();
        if (auto done = evaluateBatch(m_function, m_evaluate, *batch, m_stop); !done)
            return done.error();
        return scalarResultOf(m_function, m_evaluate, "loss");
    }

    /// How many of the first `count` rows were told right.
    std::int64_t right(const std::vector<std::int64_t>& rows, std::int64_t count) const
    {
        const std::vector<double> predictions = m_function.readResult(resultIndexOf(m_evaluate, "predictions")).values();
        std::int64_t right = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const auto row = predictions.begin() + i * m_data.classes;
            const auto best = std::max_element(row, row + m_data.classes) - row;
            right += best == m_data.labels[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])] ? 1 : 0;
        }
        return right;
    }

private:
    TrainingFunction& m_function;
    const Function& m_evaluate;
    const TrainingBatches& m_batches;
    const Dataset& m_data;
    const std::stop_token& m_stop;
};

} // namespace

Result<Done> evaluateBatch(
    TrainingFunction& evaluation, const Function& evaluate, const TrainingBatches::Batch& batch, const std::stop_token& stop)
{
    if (auto written = batch.writeTo(evaluation, evaluate); !written)
        return written;
    return evaluation.run({.stop = stop});
}

Result<HeldOutMeasure> measureHeldOut(TrainingFunction& function, const Function& evaluate, const TrainingBatches& batches,
    const Dataset& data, const std::stop_token& stop)
{
    Evaluation evaluation(function, evaluate, batches, data, stop);
    const std::int64_t count = data.heldOutRows();
    const std::int64_t batch = batches.rows();
    std::int64_t right = 0;
    double loss = 0.0; // added up over the rows
    for (std::int64_t first = 0; first < count; first += batch) {
        std::vector<std::int64_t> rows;
        for (std::int64_t i = 0; i < batch; ++i)
            rows.push_back(data.trainingRows + std::min(first + i, count - 1));
        const auto mean = evaluation.lossOf(rows);
        if (!mean)
            return mean.error();
        loss += static_cast<double>(batch) * *mean;
        right += evaluation.right(rows, std::min(batch, count - first));
    }
    if (const std::int64_t fill = (batch - count % batch) % batch; fill > 0) {
        // The mean of a batch counts the rows that fill it up, all of them the last one: what that costs is the loss of a batch of it alone.
        const std::vector<std::int64_t> last(static_cast<std::size_t>(batch), data.trainingRows + count - 1);
        const auto mean = evaluation.lossOf(last);
        if (!mean)
            return mean.error();
        loss -= static_cast<double>(fill) * *mean;
    }
    const auto all = static_cast<double>(count);
    return HeldOutMeasure{.accuracy = static_cast<double>(right) / all, .loss = loss / all};
}

} // namespace meshwright
