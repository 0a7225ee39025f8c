// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/legend.h"

#include "core/draw/draw_timeline.h"
#include "ui/theme/theme.h"
#include "ui/widgets/painter.h"

#include <QGuiApplication>
#include <QPainter>

namespace meshwright::ui {

namespace {

constexpr int kSwatch = 12;
constexpr int kGap = 6;
constexpr int kBetween = 16;
constexpr int kLine = 20;

DisplayItem swatchItem(SliceCategory category, Point at)
{
    const SliceLook look = sliceLook(category);
    ShapeStyle style;
    style.fill = look.role;
    style.hatch = look.hatch;
    style.hatchPaint = hatchPaintOn(look.role);
    style.outline = ColourRole::Outline;
    style.outlineWidth = 0.5;
    return {RectShape{at, kSwatch, kSwatch, style}};
}

} // namespace

QPixmap categorySwatch(SliceCategory category, Theme theme)
{
    const double ratio = qGuiApp->devicePixelRatio();
    QPixmap pixmap(QSize(kSwatch + 2, kSwatch + 2) * ratio);
    pixmap.setDevicePixelRatio(ratio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paintItems(painter, {swatchItem(category, {1.0, 1.0})}, theme);
    return pixmap;
}

Legend::Legend(QWidget* parent)
    : QWidget(parent)
{
    setAccessibleName(tr("Legend"));
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void Legend::setCategories(std::vector<SliceCategory> categories)
{
    if (categories == m_categories)
        return;
    m_categories = std::move(categories);
    QStringList names;
    for (const SliceCategory category : m_categories)
        names << QString::fromUtf8(categoryName(category));
    setAccessibleDescription(names.join(QStringLiteral(", ")));
    updateGeometry();
    update();
}

std::vector<QPoint> Legend::places(int width) const
{
    std::vector<QPoint> places;
    QPoint at;
    for (const SliceCategory category : m_categories) {
        const int needed = kSwatch + kGap + fontMetrics().horizontalAdvance(QString::fromUtf8(categoryName(category)));
        if (at.x() > 0 && at.x() + needed > width)
            at = QPoint(0, at.y() + kLine);
        places.push_back(at);
        at.rx() += needed + kBetween;
    }
    return places;
}

int Legend::heightForWidth(int width) const
{
    const std::vector<QPoint> all = places(width);
    return all.empty() ? 0 : all.back().y() + kLine;
}

QSize Legend::sizeHint() const
{
    return {400, heightForWidth(400)};
}

QSize Legend::minimumSizeHint() const
{
    return {120, m_categories.empty() ? 0 : kLine};
}

void Legend::paintEvent(QPaintEvent*)
{
    const Theme theme = themeOf(palette());
    QPainter painter(this);
    const std::vector<QPoint> all = places(width());
    for (std::size_t i = 0; i < m_categories.size(); ++i) {
        const QPoint at = all[i];
        paintItems(painter, {swatchItem(m_categories[i], {at.x() + 0.5, at.y() + (kLine - kSwatch) / 2.0})}, theme);
        painter.setPen(qtColour(ColourRole::Text, theme));
        painter.drawText(QRect(at.x() + kSwatch + kGap, at.y(), width(), kLine), Qt::AlignLeft | Qt::AlignVCenter,
            QString::fromUtf8(categoryName(m_categories[i])));
    }
}

} // namespace meshwright::ui

#include "moc_legend.cpp"
