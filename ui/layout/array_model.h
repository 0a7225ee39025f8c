// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/session/session.h"

#include <QAbstractItemModel>

#include <memory>
#include <vector>

namespace meshwright::ui {

/// The arrays of a study's program, grouped by what they are: parameters, optimiser states, gradients, inputs, activations, metrics.
/// Groups are the rows of the root, arrays the rows of a group; a group without arrays is not there.
class ArrayModel : public QAbstractItemModel {
    Q_OBJECT

public:
    enum Column { Name, Spec, Sizes, Bytes, ColumnCount };

    /// Of the spec column: whether something is split or partial, so that the chip stands out.
    static constexpr int kIsShardedRole = Qt::UserRole;

    using QAbstractItemModel::QAbstractItemModel;

    /// An analysis with the same names in the same groups changes data only: what is expanded, selected and scrolled to stays.
    void setAnalysis(std::shared_ptr<const sim::Analysis> analysis);

    /// The array in a row; null for a group and for no row.
    const sim::ProgramArray* arrayAt(const QModelIndex& index) const;

    /// The row of the array of this name; invalid when there is none.
    QModelIndex indexOf(const QString& name) const;

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    struct Group {
        Role role = Role::Activation;
        bool isUpdated = false; ///< what the step makes of parameters and states
        std::vector<std::size_t> arrays; ///< indices into the analysis's
    };

    static std::vector<Group> groupsOf(const sim::Analysis& analysis);
    bool hasSameRows(const sim::Analysis& analysis, const std::vector<Group>& groups) const;
    QVariant groupData(const Group& group, int column, int role) const;
    QVariant arrayData(const sim::ProgramArray& array, int column, int role) const;

    std::shared_ptr<const sim::Analysis> m_analysis; ///< null: none yet
    std::vector<Group> m_groups;
};

/// "Parameters", "Optimizer states" and so on.
QString groupTitle(Role role);

/// The piece that one device keeps of an array, padding included; of a pipeline, of what its stage has at a time.
Shape shardShapeOf(const sim::ProgramArray& array, const sim::Analysis& analysis);
std::int64_t shardBytes(const sim::ProgramArray& array, const sim::Analysis& analysis);

} // namespace meshwright::ui
