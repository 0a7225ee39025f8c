// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"
#include "ui/models/grouped_model.h"

#include <memory>

namespace meshwright::ui {

/// The arrays of a study's program, grouped by what they are: parameters, optimiser states, gradients, inputs, activations, metrics.
class ArrayModel : public GroupedModel {
    Q_OBJECT

public:
    enum Column { Name, Spec, Sizes, Bytes, ColumnCount };

    /// Of the spec column: whether something is split or partial, so that the chip stands out.
    static constexpr int kIsShardedRole = Qt::UserRole;

    using GroupedModel::GroupedModel;

    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis);

    /// The array in a row; null for a group and for no row.
    const sim::ProgramArray* arrayAt(const QModelIndex& index) const;

    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QVariant arrayData(const sim::ProgramArray& array, int column, int role) const;

    std::shared_ptr<const sim::Analysis> m_analysis; ///< null: none yet
};

/// The piece that one device keeps of an array, padding included; of a pipeline, of what its stage has at a time.
Shape shardShapeOf(const sim::ProgramArray& array, const sim::Analysis& analysis);
std::int64_t shardBytes(const sim::ProgramArray& array, const sim::Analysis& analysis);

} // namespace meshwright::ui
