// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/theme.h"

#include <QLabel>

namespace meshwright::ui {

/// Lets long words end a line after dots, equals signs, underscores and slashes: what studies are made of has no spaces.
QString breakable(const QString& text);

/// A label in the colour of a role, in both themes; its lines wrap, long words too.
class ToneLabel : public QLabel {
    Q_OBJECT

public:
    explicit ToneLabel(ColourRole tone, QWidget* parent = nullptr);

    void setTone(ColourRole tone);
    ColourRole tone() const { return m_tone; }

    /// Shows a text, or nothing at all: an empty one hides the label.
    void setNote(const QString& text, ColourRole tone);

protected:
    void changeEvent(QEvent* event) override;

private:
    void applyTone();

    ColourRole m_tone;
};

} // namespace meshwright::ui
