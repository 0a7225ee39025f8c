// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/layout/spec_chip.h"

#include "ui/layout/array_model.h"
#include "ui/theme/theme.h"

#include <QApplication>
#include <QPainter>

namespace meshwright::ui {

namespace {

constexpr int kPadding = 6; ///< left and right of the text
constexpr int kMargin = 2; ///< above and below

QSize chipSize(const QFont& font, const QString& text)
{
    const QFontMetrics metrics(font);
    return {metrics.horizontalAdvance(text) + 2 * kPadding + 2, metrics.height() + 2 * kMargin};
}

/// In a rectangle at least as high as the chip; the text is elided when it is narrower.
void paintChip(QPainter& painter, const QRect& room, const QString& text, bool isSharded, const QPalette& palette)
{
    const Theme theme = themeOf(palette);
    const QFontMetrics metrics(painter.font());
    const QSize size = chipSize(painter.font(), text);
    const QRectF frame(
        room.left(), room.center().y() - size.height() / 2 + 1, std::min(size.width(), room.width()), size.height());
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(qtColour(ColourRole::Surface, theme));
    painter.setPen(qtColour(isSharded ? ColourRole::Accent : ColourRole::Grid, theme));
    painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), 4.0, 4.0);
    painter.setPen(qtColour(isSharded ? ColourRole::Text : ColourRole::MutedText, theme));
    const int textRoom = static_cast<int>(frame.width()) - 2 * kPadding;
    painter.drawText(frame, Qt::AlignCenter, metrics.elidedText(text, Qt::ElideRight, textRoom));
    painter.restore();
}

} // namespace

SpecChip::SpecChip(QWidget* parent)
    : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void SpecChip::setSpec(const QString& text, bool isSharded)
{
    m_text = text;
    m_isSharded = isSharded;
    setAccessibleName(text);
    setToolTip(text);
    updateGeometry();
    update();
}

QSize SpecChip::sizeHint() const
{
    return m_text.isEmpty() ? QSize(0, chipSize(font(), m_text).height()) : chipSize(font(), m_text);
}

QSize SpecChip::minimumSizeHint() const
{
    return {std::min(sizeHint().width(), 60), sizeHint().height()};
}

void SpecChip::paintEvent(QPaintEvent*)
{
    if (m_text.isEmpty())
        return;
    QPainter painter(this);
    paintChip(painter, rect(), m_text, m_isSharded, palette());
}

void SpecChipDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const QVariant isSharded = index.data(ArrayModel::kIsShardedRole);
    if (!isSharded.isValid()) {
        QStyledItemDelegate::paint(painter, option, index);
        return;
    }
    QStyleOptionViewItem cell = option;
    initStyleOption(&cell, index);
    const QString text = cell.text;
    cell.text.clear();
    cell.showDecorationSelected = true; // without text nothing would show that the row is selected
    const QStyle* style = cell.widget ? cell.widget->style() : QApplication::style();
    style->drawControl(QStyle::CE_ItemViewItem, &cell, painter, cell.widget);
    painter->save();
    painter->setFont(cell.font);
    paintChip(*painter, option.rect.adjusted(2, 0, -2, 0), text, isSharded.toBool(), option.palette);
    painter->restore();
}

QSize SpecChipDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const QSize plain = QStyledItemDelegate::sizeHint(option, index);
    const bool isChip = index.data(ArrayModel::kIsShardedRole).isValid();
    const QSize chip = chipSize(option.font, isChip ? index.data().toString() : QString());
    return {isChip ? chip.width() + 6 : plain.width(), std::max(plain.height(), chip.height() + 4)};
}

} // namespace meshwright::ui

#include "moc_spec_chip.cpp"
