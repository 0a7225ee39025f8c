// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/view.h"

#include "core/support/text.h"

namespace meshwright::ui {

void View::present(std::shared_ptr<const sim::Analysis> analysis)
{
    m_waiting = std::move(analysis);
    if (isVisible())
        bringUpToDate();
}

void View::bringUpToDate()
{
    if (auto analysis = std::exchange(m_waiting, nullptr))
        setAnalysis(std::move(analysis));
}

void View::showEvent(QShowEvent* event)
{
    bringUpToDate();
    QWidget::showEvent(event);
}

QString shellQuoted(const QString& word)
{
    return QString::fromStdString(meshwright::shellQuoted(word.toStdString()));
}

QString studyArguments(const sim::StudySource& source)
{
    QString text = source.file.empty() ? QStringLiteral("study.yaml") : shellQuoted(QString::fromStdString(source.file));
    for (const std::string& setting : source.settings)
        text += QStringLiteral(" --set ") + shellQuoted(QString::fromStdString(setting));
    return text;
}

} // namespace meshwright::ui
