// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>

#include <vector>

namespace meshwright::ui {

/// One figure of a result: what it is, its value, and a remark under it.
struct Figure {
    QString title;
    QString value;
    QString remark = {};
    bool isAlarming = false; ///< drawn in the colour of errors

    friend bool operator==(const Figure&, const Figure&) = default;
};

/// Figures side by side, in as many rows as the width asks for.
class Figures : public QWidget {
    Q_OBJECT

public:
    explicit Figures(QWidget* parent = nullptr);

    void setFigures(std::vector<Figure> figures);
    const std::vector<Figure>& figures() const { return m_figures; }

    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    int columns(int width) const;
    int rowHeight() const;
    int columnWidth() const;
    QFont valueFont() const;
    QFont remarkFont() const;

    std::vector<Figure> m_figures;
};

} // namespace meshwright::ui
