// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/spec_model.h"

#include <QTreeView>

namespace meshwright::ui {

/// The table of arrays, as tall as its rows. A click on a spec, Return and F2 edit it in place, with what is wrong right below.
class SpecTree : public QTreeView {
    Q_OBJECT

public:
    explicit SpecTree(SpecModel& model, QWidget* parent = nullptr);

    /// Puts the keyboard on the row of an array, opening its group; false when there is none.
    bool showArray(const QString& name);

    /// As `showArray`, and begins to edit its spec.
    bool editSpec(const QString& name);

    /// Drops what is half typed.
    void leaveEdit();

    /// False when the column is too narrow for the spec of an array.
    bool showsWholeSpec(const ArrayFacts& array) const;

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    /// The row that the keyboard is on; empty: none.
    void currentArrayChanged(const QString& name);

protected:
    void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void openGroups();
    void removeOwnSpec(const QModelIndex& index);
    int visibleRows() const;
    void layOutColumns();

    SpecModel& m_model;
    std::map<QString, bool> m_open; ///< groups by title, as the user left them
};

} // namespace meshwright::ui
