// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/view.h"

#include "core/support/text.h"

namespace meshwright::ui {

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
