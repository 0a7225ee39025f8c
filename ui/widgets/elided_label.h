// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace meshwright::ui {

/// One line of plain text in whatever width it is given: what does not fit ends in "…", and the tool tip has all.
class ElidedLabel : public QLabel {
    Q_OBJECT

public:
    explicit ElidedLabel(QWidget* parent = nullptr);

    void setWhole(const QString& text);
    const QString& whole() const { return m_whole; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void fit();

    QString m_whole;
};

} // namespace meshwright::ui
