// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/search/search_job.h"

#include <QAbstractTableModel>

namespace meshwright::ui {

/// A row for each plan, the quickest first, then one for each layout with a name that does not fit, greyed, with the reason.
class PlansModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Mesh, Step, Memory, Mfu, Recompute, Pipeline, BoundBy, Note, ColumnCount };

    /// The value to sort by: a number or a text.
    static constexpr int kSortRole = Qt::UserRole;

    using QAbstractTableModel::QAbstractTableModel;

    void setPlans(std::shared_ptr<const FoundPlans> found); ///< null: none

    /// The plan of a row, as an index into `FoundPlans::plans`; -1: what does not fit has none.
    int planOf(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    QString text(int row, int column) const;
    QVariant sortValue(int row, int column) const;
    const sim::TemplateScore& unfit(int row) const;

    std::shared_ptr<const FoundPlans> m_found;
    std::vector<const sim::TemplateScore*> m_unfit;
};

/// "fsdp=32 tensor=2"; "one device".
std::string meshWords(const std::vector<MeshAxis>& mesh);

/// The simulated step where there is one, else the estimate.
double stepSecondsOf(const sim::FoundPlan& plan);

} // namespace meshwright::ui
