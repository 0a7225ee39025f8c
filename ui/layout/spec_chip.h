// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>
#include <QWidget>

namespace meshwright::ui {

/// A layout as a small framed text: `P('data', None)`. What splits an array stands out from what leaves it whole.
class SpecChip : public QWidget {
    Q_OBJECT

public:
    explicit SpecChip(QWidget* parent = nullptr);

    void setSpec(const QString& text, bool isSharded);

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString m_text;
    bool m_isSharded = false;
};

/// Draws cells that have ArrayModel::kIsShardedRole as chips, others as usual; all are as high as a chip.
class SpecChipDelegate : public QStyledItemDelegate {
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

} // namespace meshwright::ui
