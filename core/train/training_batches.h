// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/support/result.h"
#include "core/train/dataset.h"
#include "core/train/training_function.h"

#include <cstdint>
#include <span>

namespace meshwright {

/// Rows of a data set as the arrays "x" and "y" that a training's functions take: inputs, and labels, tokens that follow or probabilities.
class TrainingBatches {
public:
    /// `step` says the arrays' types, `seed` the order of the rows; `data` must outlive this. Problems: those of `BatchPlan::make`.
    static Result<TrainingBatches> make(const Dataset& data, const Function& step, std::uint64_t seed);

    std::int64_t rows() const { return m_inputType.shape.front(); } ///< of a batch

    struct Batch {
        HostArray inputs;
        HostArray targets;

        /// Gives `function`, which computes `program`, both of them.
        Result<Done> writeTo(TrainingFunction& function, const Function& program) const;
    };

    /// Of step 0, 1, .. Problems: those of `RowFile::read`.
    Result<Batch> ofStep(std::int64_t step);

    /// Of any data of this kind. Precondition: as many as `rows`. Problems: the same.
    Result<Batch> of(const Dataset& data, std::span<const std::int64_t> rows) const;

private:
    TrainingBatches(const Dataset& data, BatchPlan plan, TensorType inputType, TensorType targetType);

    const Dataset* m_data;
    BatchPlan m_plan;
    TensorType m_inputType;
    TensorType m_targetType;
};

} // namespace meshwright
