// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>
#include <QWidget>

#include <vector>

namespace meshwright::tests {

/// A text that a widget draws, and the pixels that its letters take, those that are cut off left out.
struct DrawnText {
    QString text;
    QRectF where;
    QColor ink = {};
};

/// Takes the texts out of whatever is painted.
class TextEngine : public QPaintEngine {
public:
    TextEngine()
        : QPaintEngine(AllFeatures)
    {
    }

    bool begin(QPaintDevice*) override { return true; }
    bool end() override { return true; }
    Type type() const override { return User; }
    void updateState(const QPaintEngineState& changed) override
    {
        if (changed.state() & DirtyTransform)
            m_transform = changed.transform();
    }
    void drawPixmap(const QRectF&, const QPixmap&, const QRectF&) override { }
    void drawImage(const QRectF&, const QImage&, const QRectF&, Qt::ImageConversionFlags) override { }
    void drawPath(const QPainterPath&) override { }
    void drawPolygon(const QPointF*, int, PolygonDrawMode) override { }

    void drawTextItem(const QPointF& at, const QTextItem& item) override
    {
        const QRectF letters = QFontMetricsF(item.font()).tightBoundingRect(item.text()).translated(at);
        QRectF seen = m_transform.mapRect(letters);
        if (!systemClip().isEmpty())
            seen &= QRectF(systemClip().boundingRect());
        if (painter()->hasClipping())
            seen &= m_transform.mapRect(painter()->clipBoundingRect());
        if (!item.text().trimmed().isEmpty() && !seen.isEmpty()) {
            QColor ink = painter()->pen().color();
            ink.setAlphaF(static_cast<float>(ink.alphaF() * painter()->opacity()));
            texts.push_back({item.text(), seen, ink});
        }
    }

    std::vector<DrawnText> texts;

private:
    QTransform m_transform; ///< from what is painted to the device
};

/// As large as a widget, for its `render`.
class TextRecorder : public QPaintDevice {
public:
    explicit TextRecorder(QSize size)
        : m_size(size)
    {
    }

    QPaintEngine* paintEngine() const override { return &m_engine; }
    const std::vector<DrawnText>& texts() const { return m_engine.texts; }

protected:
    int metric(PaintDeviceMetric metric) const override
    {
        switch (metric) {
        case PdmWidth:
            return m_size.width();
        case PdmHeight:
            return m_size.height();
        case PdmDpiX:
        case PdmDpiY:
        case PdmPhysicalDpiX:
        case PdmPhysicalDpiY:
            return 96;
        case PdmDevicePixelRatio:
            return 1;
        case PdmDevicePixelRatioScaled:
            return qRound(devicePixelRatioFScale());
        case PdmDepth:
            return 32;
        default:
            return 0;
        }
    }

private:
    QSize m_size;
    mutable TextEngine m_engine;
};

inline std::vector<DrawnText> textsOf(QWidget& widget)
{
    TextRecorder recorder(widget.size());
    widget.render(&recorder);
    return recorder.texts();
}

} // namespace meshwright::tests
