// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeView>

namespace meshwright::ui {

/// The list of arrays. Its columns share the width that it has: specs and names come first, sizes and bytes are there when all names have room.
class ArrayTree : public QTreeView {
    Q_OBJECT

public:
    explicit ArrayTree(QWidget* parent = nullptr);

    /// For all columns in full.
    int wantedWidth() const { return m_wantedWidth; }

public Q_SLOTS:
    /// Gives each column its width. For who changes the model.
    void fitColumns();

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;

private:
    int m_wantedWidth = 0;
};

} // namespace meshwright::ui
