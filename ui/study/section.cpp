// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/section.h"

#include <QEvent>
#include <QLabel>

namespace meshwright::ui {

namespace {

class WheelFilter : public QObject {
public:
    using QObject::QObject;

    bool eventFilter(QObject* watched, QEvent* event) override
    {
        if (event->type() != QEvent::Wheel || static_cast<QWidget*>(watched)->hasFocus())
            return false;
        event->ignore();
        return true;
    }
};

} // namespace

Section::Section(const QString& heading, QWidget* parent)
    : QWidget(parent)
    , m_heading(new QLabel(heading))
    , m_body(new QVBoxLayout(this))
{
    QFont font = m_heading->font();
    font.setBold(true);
    m_heading->setFont(font);
    m_body->setContentsMargins(0, 0, 0, 0);
    m_body->setSpacing(6);
    m_body->addWidget(m_heading);
}

void Section::setHeading(const QString& text)
{
    m_heading->setText(text);
}

bool Section::focusField(const QString&)
{
    return false;
}

void keepWheelForFocus(QWidget* widget)
{
    widget->setFocusPolicy(Qt::StrongFocus);
    widget->installEventFilter(new WheelFilter(widget));
}

QString setting(const QString& path, const QString& value)
{
    return path + QLatin1Char('=') + value;
}

QStringList settingList(const std::vector<std::string>& settings)
{
    QStringList list;
    for (const std::string& one : settings)
        list << QString::fromStdString(one);
    return list;
}

} // namespace meshwright::ui

#include "moc_section.cpp"
