// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/mesh/axis_bar.h"

#include "ui/theme/theme.h"

#include <QPainter>

namespace meshwright::ui {

namespace {

constexpr int kPadding = 8;
constexpr int kStripe = 4; ///< the width of the mark at the left edge of a card
constexpr int kSpacing = 6;
constexpr int kLeastWidth = 150;

} // namespace

AxisCard::AxisCard(const DrawnMeshAxis& axis, QWidget* parent)
    : QAbstractButton(parent)
    , m_axis(QString::fromStdString(axis.name))
    , m_title(tr("%1 = %2").arg(m_axis).arg(axis.size))
    , m_needsLinks(axis.bytesPerSecond > 0.0)
{
    if (m_needsLinks) {
        m_links = tr("%1: %2 %3 each way")
                      .arg(QString::fromStdString(axis.where), QString::fromStdString(axis.kind),
                          QString::fromStdString(bandwidthText(axis.bytesPerSecond)));
        QStringList notes;
        notes << (axis.groups == 1 ? tr("1 group") : tr("%1 groups").arg(axis.groups));
        if (axis.wraps)
            notes << tr("wraps round");
        if (!axis.sharesWith.empty()) {
            QStringList others;
            for (const std::string& other : axis.sharesWith)
                others << QString::fromStdString(other);
            notes << tr("shares links with %1").arg(others.join(QLatin1String(", ")));
        }
        m_notes = notes.join(QLatin1String(", "));
    } else {
        m_links = tr("needs no links");
    }
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setAccessibleName(tr("Mesh axis %1").arg(m_title));
    setAccessibleDescription(m_links + QLatin1String(". ") + m_notes);
    setToolTip(tr("Hover over it, or focus it, to see the links of %1").arg(m_axis));
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void AxisCard::setLit(bool isLit)
{
    if (m_isLit == isLit)
        return;
    m_isLit = isLit;
    update();
}

QFont AxisCard::titleFont() const
{
    QFont bold = font();
    bold.setBold(true);
    return bold;
}

QSize AxisCard::sizeHint() const
{
    const QFontMetrics plain(font());
    const int width = std::max({QFontMetrics(titleFont()).horizontalAdvance(m_title), plain.horizontalAdvance(m_links),
        plain.horizontalAdvance(m_notes), kLeastWidth});
    const int lines = m_notes.isEmpty() ? 2 : 3;
    return {width + kStripe + 2 * kPadding + 2, lines * plain.height() + 2 * kPadding};
}

void AxisCard::paintEvent(QPaintEvent*)
{
    const Theme theme = themeOf(palette());
    const bool isDim = !isEnabled() || !m_needsLinks;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QColor accent = qtColour(ColourRole::Accent, theme);
    const QRectF frame = QRectF(rect()).adjusted(1.0, 1.0, -1.0, -1.0);
    painter.setPen(QPen(m_isLit || hasFocus() ? accent : qtColour(ColourRole::Grid, theme), m_isLit || hasFocus() ? 2.0 : 1.0));
    painter.setBrush(qtColour(ColourRole::Background, theme));
    painter.drawRoundedRect(frame, 4.0, 4.0);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_isLit ? accent : qtColour(isDim ? ColourRole::Grid : ColourRole::Outline, theme));
    painter.drawRoundedRect(QRectF(5.0, 7.0, kStripe - 1.0, height() - 14.0), 1.5, 1.5);

    const int left = kStripe + kPadding;
    const int line = QFontMetrics(font()).height();
    const auto write = [&](int row, const QString& text, ColourRole role) {
        painter.setPen(qtColour(role, theme));
        painter.drawText(
            QRect(left, kPadding + row * line, width() - left - kPadding, line), Qt::AlignLeft | Qt::AlignVCenter, text);
    };
    painter.setFont(titleFont());
    write(0, m_title, isDim ? ColourRole::MutedText : ColourRole::Text);
    painter.setFont(font());
    write(1, m_links, isDim ? ColourRole::MutedText : ColourRole::Text);
    write(2, m_notes, ColourRole::MutedText);
}

void AxisCard::enterEvent(QEnterEvent* event)
{
    QAbstractButton::enterEvent(event);
    Q_EMIT attended();
}

void AxisCard::leaveEvent(QEvent* event)
{
    QAbstractButton::leaveEvent(event);
    Q_EMIT left();
}

void AxisCard::focusInEvent(QFocusEvent* event)
{
    QAbstractButton::focusInEvent(event);
    Q_EMIT attended();
}

void AxisCard::focusOutEvent(QFocusEvent* event)
{
    QAbstractButton::focusOutEvent(event);
    Q_EMIT left();
}

AxisBar::AxisBar(QWidget* parent)
    : QWidget(parent)
{
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum); // Fixed would be the height of one row
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void AxisBar::setAxes(const std::vector<DrawnMeshAxis>& axes)
{
    if (axes == m_axes && !m_cards.empty())
        return;
    const QString focused = focusedAxis();
    for (AxisCard* card : m_cards) {
        card->disconnect(this);
        card->hide();
        card->deleteLater();
    }
    m_cards.clear();
    m_axes = axes;
    for (const DrawnMeshAxis& axis : axes) {
        auto* card = new AxisCard(axis, this);
        connect(card, &AxisCard::attended, this, [this, card] { Q_EMIT attended(card->axis()); });
        connect(card, &AxisCard::left, this, &AxisBar::left);
        if (!m_cards.empty())
            setTabOrder(m_cards.back(), card);
        m_cards.push_back(card);
        card->show();
        if (card->axis() == focused)
            card->setFocus();
    }
    arrange(width(), true);
    updateGeometry();
}

void AxisBar::setLit(const QString& axis)
{
    for (AxisCard* card : m_cards)
        card->setLit(card->axis() == axis);
}

QString AxisBar::focusedAxis() const
{
    for (const AxisCard* card : m_cards) {
        if (card->hasFocus())
            return card->axis();
    }
    return {};
}

AxisCard* AxisBar::card(const QString& axis) const
{
    const auto found = std::find_if(m_cards.begin(), m_cards.end(), [&](const AxisCard* card) { return card->axis() == axis; });
    return found == m_cards.end() ? nullptr : *found;
}

QSize AxisBar::sizeHint() const
{
    int width = 0;
    for (const AxisCard* card : m_cards)
        width += card->sizeHint().width() + kSpacing;
    return {std::max(0, width - kSpacing), heightForWidth(std::max(1, width))};
}

QSize AxisBar::minimumSizeHint() const
{
    return {kLeastWidth, 0};
}

void AxisBar::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange(width(), true);
}

/// Places the cards for a width, or only says how high they are then.
int AxisBar::arrange(int width, bool moves) const
{
    int x = 0;
    int y = 0;
    int rowHeight = 0;
    for (AxisCard* card : m_cards) {
        const QSize size(std::min(card->sizeHint().width(), std::max(width, kLeastWidth)), card->sizeHint().height());
        if (x > 0 && x + size.width() > width) {
            x = 0;
            y += rowHeight + kSpacing;
            rowHeight = 0;
        }
        if (moves)
            card->setGeometry(QRect(QPoint(x, y), size));
        x += size.width() + kSpacing;
        rowHeight = std::max(rowHeight, size.height());
    }
    return y + rowHeight;
}

} // namespace meshwright::ui

#include "moc_axis_bar.cpp"
