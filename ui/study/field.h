// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/tone_label.h"

#include <QWidget>

class QLabel;

namespace meshwright::ui {

/// A label, what edits a value, and a line below for what is wrong with it.
class Field : public QWidget {
    Q_OBJECT

public:
    /// `editor` becomes a child, the label's buddy, and accessible by the label's text.
    Field(const QString& label, QWidget* editor, QWidget* parent = nullptr);

    /// What is wrong with what is being typed: stands before what is wrong with the document's value.
    void setTyped(const QString& problem);

    /// What is wrong with the document's value.
    void setProblem(const QString& problem, ColourRole tone = ColourRole::Error);

    /// A plain remark, when nothing is wrong.
    void setRemark(const QString& remark);

    QString note() const { return m_note->text(); }

    /// The width of labels, in pixels at the font of the panel, so that editors stand under each other.
    static int labelWidth(const QWidget& widget);

private:
    void update();

    ToneLabel* m_note;
    QString m_typed;
    QString m_problem;
    QString m_remark;
    ColourRole m_tone = ColourRole::Error;
};

} // namespace meshwright::ui
