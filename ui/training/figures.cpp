// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/training/figures.h"

#include "ui/theme/theme.h"

#include <QPainter>

#include <algorithm>

namespace meshwright::ui {

namespace {

constexpr int kPadding = 6; ///< pixels around the text of a figure
constexpr int kLeading = 2; ///< between its lines
constexpr int kGap = 6; ///< between rows

} // namespace

Figures::Figures(QWidget* parent)
    : QWidget(parent)
{
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred); // Fixed would keep it at one row
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void Figures::setFigures(std::vector<Figure> figures)
{
    if (figures == m_figures)
        return;
    m_figures = std::move(figures);
    QStringList said;
    for (const Figure& figure : m_figures)
        said << QStringLiteral("%1: %2 %3").arg(figure.title, figure.value, figure.remark).trimmed();
    setAccessibleDescription(said.join(QStringLiteral("; ")));
    updateGeometry();
    update();
}

QFont Figures::valueFont() const
{
    QFont larger = tabularFont(font());
    larger.setPointSizeF(font().pointSizeF() * 1.25);
    larger.setWeight(QFont::DemiBold);
    return larger;
}

QFont Figures::remarkFont() const
{
    QFont smaller = font();
    smaller.setPointSizeF(font().pointSizeF() * 0.9);
    return smaller;
}

int Figures::rowHeight() const
{
    return 2 * kPadding + 2 * kLeading + QFontMetrics(font()).height() + QFontMetrics(valueFont()).height()
        + QFontMetrics(remarkFont()).height();
}

int Figures::columnWidth() const
{
    int widest = QFontMetrics(font()).averageCharWidth() * 14;
    for (const Figure& figure : m_figures) {
        widest = std::max({widest, QFontMetrics(font()).horizontalAdvance(figure.title),
            QFontMetrics(valueFont()).horizontalAdvance(figure.value),
            QFontMetrics(remarkFont()).horizontalAdvance(figure.remark)});
    }
    return widest + 2 * kPadding;
}

int Figures::columns(int width) const
{
    const int count = static_cast<int>(m_figures.size());
    const int fitting = std::clamp(width / columnWidth(), 1, std::max(1, count));
    const int rows = (count + fitting - 1) / std::max(1, fitting);
    return rows == 0 ? 1 : (count + rows - 1) / rows; // rows of equal length
}

int Figures::heightForWidth(int width) const
{
    if (m_figures.empty())
        return 0;
    const int count = static_cast<int>(m_figures.size());
    const int rows = (count + columns(width) - 1) / columns(width);
    return rows * rowHeight() + (rows - 1) * kGap;
}

QSize Figures::sizeHint() const
{
    const int width = static_cast<int>(m_figures.size()) * columnWidth();
    return {width, heightForWidth(width)};
}

QSize Figures::minimumSizeHint() const
{
    return m_figures.empty() ? QSize(0, 0) : QSize(2 * columnWidth(), rowHeight());
}

void Figures::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme theme = themeOf(palette());
    const int inRow = columns(width());
    const int extent = width() / inRow;
    for (std::size_t i = 0; i < m_figures.size(); ++i) {
        const Figure& figure = m_figures[i];
        const int column = static_cast<int>(i) % inRow;
        const int row = static_cast<int>(i) / inRow;
        const QRect cell(column * extent, row * (rowHeight() + kGap), extent, rowHeight());
        if (column > 0) {
            painter.setPen(qtColour(ColourRole::Grid, theme));
            painter.drawLine(cell.left(), cell.top() + kPadding, cell.left(), cell.bottom() - kPadding);
        }
        QRect line = cell.adjusted(column == 0 ? 0 : kPadding + 2, kPadding, -kPadding, 0);
        const auto write = [&](const QFont& font, ColourRole role, const QString& text) {
            const QFontMetrics metrics(font);
            painter.setFont(font);
            painter.setPen(qtColour(role, theme));
            line.setHeight(metrics.height());
            painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(text, Qt::ElideRight, line.width()));
            line.translate(0, metrics.height() + kLeading);
        };
        write(font(), ColourRole::MutedText, figure.title);
        write(valueFont(), figure.isAlarming ? ColourRole::Error : ColourRole::Text, figure.value);
        write(remarkFont(), ColourRole::MutedText, figure.remark);
    }
}

void Figures::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::FontChange)
        updateGeometry();
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        update();
    QWidget::changeEvent(event);
}

} // namespace meshwright::ui

#include "moc_figures.cpp"
