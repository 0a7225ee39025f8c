// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeView>

namespace meshwright::ui {

/// The list of arrays. Its columns share the width that it has: specs and names come first, sizes and bytes are there when all names have room.
class ArrayTree : public QTreeView {
    Q_OBJECT

public:
    explicit ArrayTree(QWidget* parent = nullptr);

public Q_SLOTS:
    /// Gives each column its width. For who changes the model.
    void fitColumns();

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
};

} // namespace meshwright::ui
