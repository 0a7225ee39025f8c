// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_batches.h"

#include <utility>
#include <vector>

namespace meshwright {

namespace {

HostArray arrayOf(const TensorType& type, const std::vector<float>& values)
{
    if (type.dtype == DType::F32)
        return HostArray::fromBytes(type, std::as_bytes(std::span(values)));
    const std::vector<double> wide(values.begin(), values.end());
    return HostArray::of(type, wide);
}

const TensorType& argumentType(const Function& function, std::string_view name)
{
    return function[function.arguments()[argumentIndexOf(function, name)]].type;
}

} // namespace

Result<TrainingBatches> TrainingBatches::make(const Dataset& data, const Function& step, std::uint64_t seed)
{
    const TensorType& inputs = argumentType(step, "x");
    auto plan = BatchPlan::make(data.trainingRows, inputs.shape.front(), seed);
    if (!plan)
        return plan.error();
    return TrainingBatches(data, *std::move(plan), inputs, argumentType(step, "y"));
}

TrainingBatches::TrainingBatches(const Dataset& data, BatchPlan plan, TensorType inputType, TensorType targetType)
    : m_data(&data)
    , m_plan(std::move(plan))
    , m_inputType(std::move(inputType))
    , m_targetType(std::move(targetType))
{
}

Result<Done> TrainingBatches::Batch::writeTo(TrainingFunction& function, const Function& program) const
{
    if (auto written = function.writeArgument(argumentIndexOf(program, "x"), inputs); !written)
        return written;
    return function.writeArgument(argumentIndexOf(program, "y"), targets);
}

Result<TrainingBatches::Batch> TrainingBatches::ofStep(std::int64_t step)
{
    return of(*m_data, m_plan.rowsOf(step));
}

Result<TrainingBatches::Batch> TrainingBatches::of(const Dataset& data, std::span<const std::int64_t> rows) const
{
    const auto inputs = readInputs(data, rows);
    if (!inputs)
        return inputs.error();
    const auto targets = isFloating(m_targetType.dtype) ? readTargets(data, rows)
        : m_targetType.shape.size() == 1                ? Result<std::vector<float>>(labelsOf(data, rows))
                                                        : readFollowing(data, rows);
    if (!targets)
        return targets.error();
    return Batch{arrayOf(m_inputType, *inputs), arrayOf(m_targetType, *targets)};
}

} // namespace meshwright
