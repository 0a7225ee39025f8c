// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"
#include "core/timeline/timeline.h"

#include <QPixmap>
#include <QWidget>

#include <vector>

namespace meshwright::ui {

/// A small square in the colour and hatch of a category.
QPixmap categorySwatch(SliceCategory category, Theme theme);

/// Names of categories beside their swatches, in as many lines as the width needs.
class Legend : public QWidget {
    Q_OBJECT

public:
    explicit Legend(QWidget* parent = nullptr);

    void setCategories(std::vector<SliceCategory> categories);
    const std::vector<SliceCategory>& categories() const { return m_categories; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    /// Where the names begin for a width; the last point's y is the top of the last line.
    std::vector<QPoint> places(int width) const;

    std::vector<SliceCategory> m_categories;
};

} // namespace meshwright::ui
