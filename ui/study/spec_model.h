// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/grouped_model.h"
#include "ui/study/study_facts.h"

namespace meshwright::ui {

/// The arrays of a study in groups (inputs, parameters, ...), each with its spec and what one device holds of it.
///
/// Editing a spec changes nothing here: `specEdited` asks for it, and new facts show it.
class SpecModel : public GroupedModel {
    Q_OBJECT

public:
    enum Column { Name, Spec, PerDevice, kColumns };

    using GroupedModel::GroupedModel;

    void setFacts(std::shared_ptr<const StudyFacts> facts);
    const StudyFacts* facts() const { return m_facts.get(); }

    /// Null for groups.
    const ArrayFacts* arrayAt(const QModelIndex& index) const;

    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

Q_SIGNALS:
    void factsChanged(); ///< once for all groups, where the rows are as they were

    /// An empty text: the array is to have no spec of its own.
    void specEdited(const QString& path, const QString& text);

private:
    std::shared_ptr<const StudyFacts> m_facts;
};

} // namespace meshwright::ui
