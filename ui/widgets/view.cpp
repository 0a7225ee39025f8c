// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/view.h"

#include <QRegularExpression>

namespace meshwright::ui {

QString shellQuoted(const QString& word)
{
    static const QRegularExpression kPlain(QStringLiteral("^[A-Za-z0-9_@%+=:,./-]+$"));
    if (kPlain.match(word).hasMatch())
        return word;
    static const QRegularExpression kSpecialInDoubleQuotes(QStringLiteral("[\"$`\\\\!]"));
    if (word.contains(QLatin1Char('\'')) && !word.contains(kSpecialInDoubleQuotes))
        return QLatin1Char('"') + word + QLatin1Char('"');
    QString quoted = word;
    return QLatin1Char('\'') + quoted.replace(QLatin1Char('\''), QLatin1String("'\\''")) + QLatin1Char('\'');
}

QString studyArguments(const sim::StudySource& source)
{
    QString text = source.file.empty() ? QStringLiteral("study.yaml") : shellQuoted(QString::fromStdString(source.file));
    for (const std::string& setting : source.settings)
        text += QStringLiteral(" --set ") + shellQuoted(QString::fromStdString(setting));
    return text;
}

} // namespace meshwright::ui
