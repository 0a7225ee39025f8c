// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/draw_memory.h"
#include "ui/widgets/picture_view.h"

#include <optional>

namespace meshwright::ui {

/// The picture of a device's memory, as large as the widget, with a guide at the moment that the pointer is at. Left and Right move the guide from
/// moment to moment, Up and Down go from part to part of the picture.
class MemoryChart : public PictureView {
    Q_OBJECT

public:
    explicit MemoryChart(QWidget* parent = nullptr);

    void setMemory(MemoryDrawing memory);
    const MemoryDrawing& memory() const { return m_memory; }

    /// The moment of the guide; nothing while there is no guide.
    std::optional<std::size_t> moment() const { return m_moment; }

    /// Where the guide is, in seconds from the start of the step. Precondition: moment().
    double seconds() const { return m_seconds; }

    QSize sizeHint() const override { return {760, 300}; }
    QSize minimumSizeHint() const override { return {320, 160}; }

Q_SIGNALS:
    void momentChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void redraw();
    void setGuide(std::optional<double> seconds);
    void stepGuide(int step);

    MemoryDrawing m_memory;
    std::optional<std::size_t> m_moment;
    double m_seconds = 0.0;
};

} // namespace meshwright::ui
