// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/display_list.h"

#include <QTreeWidget>

#include <span>

class QAbstractProxyModel;
class QTableView;

namespace meshwright::ui {

/// A table of rows under headings, the first column words, the others figures unless said otherwise.
class Table : public QTreeWidget {
    Q_OBJECT

public:
    Table(const QStringList& columns, const QString& accessibleName, QWidget* parent = nullptr);

    /// A heading over rows, bold and open.
    QTreeWidgetItem* addGroup(const QStringList& cells);

    /// Every column as wide as what is in it; the first has what is left.
    void fitColumns();

protected:
    void resizeEvent(QResizeEvent* event) override;
};

/// A table that shows the rows of a model: no grid nor frame, one row can be selected.
void setUpRows(QTableView& table);

/// A column of a model.
struct Heading {
    const char* name;
    const char* meaning = nullptr; ///< for who points at it
    bool isFigures = false; ///< figures stand on the right
};

/// The `headerData` of a model that says the headings in its own words; the alignment is that of the cells too.
QVariant headingData(
    const QAbstractItemModel& model, std::span<const Heading> headings, int section, Qt::Orientation orientation, int role);

/// The row that is selected, in the model behind the proxy; -1: none. A view that gets the focus has a current row, which nobody selected.
int selectedRow(const QAbstractItemView& view, const QAbstractProxyModel& proxy);

/// The rows that are open, as a picture. Empty: `nothing` is said.
DisplayList tablePicture(const Table& table, const std::string& title, const std::string& nothing);

} // namespace meshwright::ui
