// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/perspective_bar.h"

#include "ui/theme/theme.h"

#include <QAbstractButton>
#include <QApplication>
#include <QBoxLayout>
#include <QButtonGroup>
#include <QPainter>
#include <QPainterPath>

namespace meshwright::ui {

namespace {

constexpr int kWidth = 68;
constexpr int kSide = 20; ///< of a sign
constexpr int kMark = 3; ///< width of the mark of the current one

/// Draws a sign of 20 x 20 with its corner at the origin, in the painter's pen.
void paintSign(QPainter& painter, Sign sign)
{
    const QBrush solid(painter.pen().color());
    switch (sign) {
    case Sign::Design: // an array in four pieces, one of them one's own
        painter.drawRect(QRectF(3, 3, 14, 14));
        painter.drawLine(QPointF(10, 3), QPointF(10, 17));
        painter.drawLine(QPointF(3, 10), QPointF(17, 10));
        painter.fillRect(QRectF(3, 3, 7, 7), solid);
        return;
    case Sign::Time: // slices on three rows
        painter.fillRect(QRectF(2, 3, 9, 4), solid);
        painter.drawRect(QRectF(7.5, 8.5, 7, 3));
        painter.fillRect(QRectF(12, 13, 6, 4), solid);
        return;
    case Sign::Memory: { // use under its limit
        painter.drawLine(QPointF(2, 4), QPointF(18, 4));
        QPainterPath use(QPointF(2, 17));
        use.lineTo(6, 13);
        use.lineTo(11, 7);
        use.lineTo(14, 10);
        use.lineTo(18, 15);
        use.lineTo(18, 17);
        use.closeSubpath();
        painter.fillPath(use, solid);
        return;
    }
    case Sign::Why: // a figure, and the parts that make it
        painter.fillRect(QRectF(3, 3, 5, 14), solid);
        painter.drawRect(QRectF(12, 3, 5, 5));
        painter.drawRect(QRectF(12, 11, 5, 6));
        return;
    case Sign::Search:
        painter.drawEllipse(QPointF(8.5, 8.5), 5.5, 5.5);
        painter.drawLine(QPointF(12.5, 12.5), QPointF(17, 17));
        return;
    case Sign::Train: { // a loss that falls
        painter.drawPolyline(QPolygonF({{3, 3}, {3, 17}, {17, 17}}));
        QPainterPath loss(QPointF(5, 5));
        loss.cubicTo(7, 13, 11, 13, 17, 14);
        painter.drawPath(loss);
        return;
    }
    case Sign::Explain:
        painter.drawPolygon(QPolygonF({{10, 3}, {18, 17}, {2, 17}}));
        painter.drawLine(QPointF(10, 8), QPointF(10, 12));
        painter.drawPoint(QPointF(10, 14.5));
        return;
    case Sign::Pages: // cells, one of which has run
        painter.fillRect(QRectF(3, 3, 14, 4), solid);
        painter.drawRect(QRectF(3.5, 9.5, 13, 3));
        painter.drawLine(QPointF(3, 16), QPointF(13, 16));
        return;
    case Sign::Report:
        painter.drawRect(QRectF(4, 2.5, 12, 15));
        for (const double y : {6.5, 10.0, 13.5})
            painter.drawLine(QPointF(7, y), QPointF(13, y));
        return;
    }
}

class PerspectiveButton : public QAbstractButton {
public:
    PerspectiveButton(const QString& name, Sign sign, QWidget* parent)
        : QAbstractButton(parent)
        , m_sign(sign)
    {
        setText(name);
        setCheckable(true);
        setFocusPolicy(Qt::TabFocus);
        setAttribute(Qt::WA_Hover);
        QFont small = font();
        small.setPointSizeF(small.pointSizeF() * 0.88);
        setFont(small);
        setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    }

    QSize sizeHint() const override
    {
        return {std::max(kWidth, fontMetrics().horizontalAdvance(text()) + 12), kSide + fontMetrics().height() + 12};
    }

protected:
    void paintEvent(QPaintEvent*) override
    {
        const Theme theme = themeOf(palette());
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        if (isChecked() || underMouse())
            painter.fillRect(rect(), palette().color(isChecked() ? QPalette::Base : QPalette::Midlight));
        const QColor accent = qtColour(ColourRole::Accent, theme);
        if (isChecked())
            painter.fillRect(QRect(0, 0, kMark, height()), accent);
        if (hasFocus()) {
            painter.setPen(QPen(accent, 1.0));
            painter.drawRect(QRectF(rect()).adjusted(1.5, 1.5, -1.5, -1.5));
        }
        const QColor ink = isChecked() ? accent : palette().color(QPalette::PlaceholderText);
        painter.save();
        painter.translate((width() - kSide) / 2.0, 5.0);
        painter.setPen(QPen(ink, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        paintSign(painter, m_sign);
        painter.restore();
        painter.setPen(isChecked() ? palette().color(QPalette::WindowText) : ink);
        painter.drawText(rect().adjusted(0, 5 + kSide, 0, -3), Qt::AlignCenter, text());
    }

private:
    Sign m_sign;
};

} // namespace

PerspectiveBar::PerspectiveBar(QWidget* parent)
    : QWidget(parent)
    , m_buttons(new QButtonGroup(this))
{
    setAccessibleName(tr("Perspectives"));
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Preferred);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addStretch();
    connect(m_buttons, &QButtonGroup::idClicked, this, &PerspectiveBar::chosen);
}

void PerspectiveBar::addPerspective(const QString& name, const QString& meaning, Sign sign)
{
    auto* button = new PerspectiveButton(name, sign, this);
    button->setAccessibleName(name);
    button->setAccessibleDescription(meaning);
    button->setToolTip(meaning);
    m_buttons->addButton(button, static_cast<int>(m_buttons->buttons().size()));
    auto* column = static_cast<QVBoxLayout*>(layout());
    column->insertWidget(column->count() - 1, button);
}

void PerspectiveBar::setCurrent(int index)
{
    QAbstractButton* current = m_buttons->button(index);
    current->setChecked(true);
    if (isAncestorOf(QApplication::focusWidget()))
        current->setFocus();
}

QSize PerspectiveBar::sizeHint() const
{
    return {std::max(kWidth, QWidget::sizeHint().width()), 0};
}

} // namespace meshwright::ui

#include "moc_perspective_bar.cpp"
