// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

namespace meshwright::ui {

/// A line in the colour of warnings or errors of the theme; hidden while it is empty.
class Notice : public QLabel {
    Q_OBJECT

public:
    enum class Level { Plain, Warning, Error };

    explicit Notice(QWidget* parent = nullptr);

    void show(const QString& text, Level level = Level::Warning);

protected:
    void changeEvent(QEvent* event) override;

private:
    void applyColour();

    Level m_level = Level::Warning;
};

/// Greys what a widget shows, because it is of an older state of the study.
void setStale(QWidget& widget, bool isStale);

} // namespace meshwright::ui
