// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/view.h"

#include "core/program/spoken_op.h"
#include "core/support/text.h"
#include "sim/compare/alike_collectives.h"

#include <QRegularExpression>

namespace meshwright::ui {

void View::present(std::shared_ptr<const sim::Analysis> analysis)
{
    m_waiting = std::move(analysis);
    if (isVisible())
        bringUpToDate();
}

void View::beginStudy()
{
    m_waiting.reset();
    forgetStudy();
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

bool View::focusNextPrevChild(bool next)
{
    const auto canHaveIt = [this](const QWidget* widget) {
        return isAncestorOf(widget) && widget->isEnabled() && widget->isVisible() && (widget->focusPolicy() & Qt::TabFocus);
    };
    QWidget* now = window()->focusWidget();
    if (now == nullptr || !isAncestorOf(now) || (now->isEnabled() && now->isVisible()))
        return QWidget::focusNextPrevChild(next); // by the Tab key
    QWidget* to = focusProxy() != nullptr && canHaveIt(focusProxy()) ? focusProxy() : now->nextInFocusChain();
    while (to != now && !canHaveIt(to))
        to = to->nextInFocusChain();
    if (to == now)
        return QWidget::focusNextPrevChild(next);
    to->setFocus(Qt::OtherFocusReason);
    return true;
}

QString writtenCause(const std::string& annotation)
{
    return QString::fromStdString(sim::writtenCause(annotation));
}

QString shownSentence(const std::string& sentence)
{
    static const QRegularExpression kMinus(QStringLiteral("(?<![\\w.\\-])-(?=\\d)"));
    static const QRegularExpression kCollective(
        QStringLiteral("\\b(?:all_gather|all_reduce|all_to_all|reduce_scatter|collective_permute)\\b"));
    QString text = QString::fromStdString(sentence)
                       .replace(QLatin1String(" -> "), QStringLiteral(" \u2192 "))
                       .replace(kMinus, QStringLiteral("\u2212"));
    for (auto match = kCollective.match(text); match.hasMatch(); match = kCollective.match(text))
        text.replace(
            match.capturedStart(), match.capturedLength(), QString::fromStdString(spokenOp(match.captured().toStdString())));
    return text;
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

#include "moc_view.cpp"
