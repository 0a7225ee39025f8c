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

} // namespace meshwright::ui
