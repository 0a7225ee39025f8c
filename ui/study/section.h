// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/study/study_facts.h"

#include <QVBoxLayout>
#include <QWidget>

class QLabel;

namespace meshwright::ui {

/// A part of the panel under a heading: shows its share of the facts and says what the user changes.
class Section : public QWidget {
    Q_OBJECT

public:
    explicit Section(const QString& heading, QWidget* parent = nullptr);

    virtual void show(const std::shared_ptr<const StudyFacts>& facts) = 0;
    using QWidget::show;

    /// Brings the keyboard to what edits this path ("mesh.data"); false when nothing here does.
    virtual bool focusField(const QString& path);

Q_SIGNALS:
    /// One edit: `path=value` each.
    void edited(const QStringList& settings);

protected:
    QVBoxLayout& body() { return *m_body; }
    void setHeading(const QString& text);

private:
    QLabel* m_heading;
    QVBoxLayout* m_body;
};

/// Lets the wheel through to what is around a widget, unless the widget has the keyboard.
void keepWheelForFocus(QWidget* widget);

/// "path=value" from parts.
QString setting(const QString& path, const QString& value);
QStringList settingList(const std::vector<std::string>& settings);

} // namespace meshwright::ui
