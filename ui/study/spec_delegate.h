// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPersistentModelIndex>
#include <QStyledItemDelegate>

class QPushButton;

namespace meshwright::ui {

class SpecEdit;
class ToneLabel;

/// Draws specs, with what is wrong underlined, and edits them in place. While a spec is typed, what is wrong with it stands below the line, with the nearest
/// right spec on a button.
class SpecDelegate : public QStyledItemDelegate {
    Q_OBJECT

public:
    /// `view` is the table; messages lie over its parent.
    explicit SpecDelegate(QAbstractItemView& view);

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QWidget* createEditor(QWidget* parent, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void setEditorData(QWidget* editor, const QModelIndex& index) const override;
    void setModelData(QWidget* editor, QAbstractItemModel* model, const QModelIndex& index) const override;
    void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

private:
    void showMessage(SpecEdit& editor) const;

    QAbstractItemView& m_view;
    QFrame* m_message;
    ToneLabel* m_text;
    QPushButton* m_use;
};

} // namespace meshwright::ui
