// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/program.h"

#include <QAbstractItemModel>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace meshwright::ui {

/// Arrays in groups by what they are: groups are the rows of the root, arrays the rows of a group; a group without arrays is not there.
class GroupedModel : public QAbstractItemModel {
public:
    using QAbstractItemModel::QAbstractItemModel;

    /// The row of the array of this name; invalid when there is none.
    QModelIndex indexOf(const QString& name, int column = 0) const;

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

protected:
    struct Group {
        QString title;
        std::size_t first = 0; ///< the number of its first array among all arrays
        std::vector<std::string> names;

        friend bool operator==(const Group&, const Group&) = default;
    };

    /// The next array, into the last group where that has this title.
    static void append(std::vector<Group>& groups, const QString& title, const std::string& name);

    /// `take` replaces what the rows show. The same names in the same groups change data only: what is expanded, selected and scrolled to stays.
    /// False: there are other rows.
    bool setGroups(std::vector<Group> groups, const std::function<void()>& take);

    /// Of a valid index: the group that it is, or that it is in.
    const Group& groupOf(const QModelIndex& index) const;

    /// The number of the array in a row; none for a group and for no row.
    std::optional<std::size_t> arrayNumber(const QModelIndex& index) const;

private:
    std::vector<Group> m_groups;
};

/// "Parameters", "Optimizer states" and so on.
QString groupTitle(Role role);

} // namespace meshwright::ui
