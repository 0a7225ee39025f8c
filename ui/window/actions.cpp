// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/actions.h"

#include <QAction>
#include <QMenu>
#include <QMenuBar>

namespace meshwright::ui {

namespace {

QString plain(QString text)
{
    return text.remove(QLatin1Char('&'));
}

void collect(const QList<QAction*>& actions, const QString& menu, std::vector<MenuAction>& found)
{
    for (QAction* action : actions) {
        if (action->menu() != nullptr) {
            const QString name = plain(action->text());
            collect(action->menu()->actions(), menu.isEmpty() ? name : menu + QStringLiteral(": ") + name, found);
        } else if (!action->isSeparator()) {
            found.push_back({action, menu});
        }
    }
}

} // namespace

QString MenuAction::text() const
{
    return plain(action->text());
}

QString MenuAction::keys() const
{
    QStringList keys;
    for (const QKeySequence& sequence : action->shortcuts())
        keys << sequence.toString(QKeySequence::NativeText);
    return keys.join(QStringLiteral(", "));
}

std::vector<MenuAction> menuActions(const QMenuBar& menus)
{
    std::vector<MenuAction> found;
    collect(menus.actions(), {}, found);
    return found;
}

std::optional<int> matchScore(const QString& query, const QString& text)
{
    constexpr int kBegin = 4; // of a word
    constexpr int kNext = 3; // to the letter before
    constexpr int kWhole = 50; // the text has it as it is typed
    int score = 0;
    qsizetype at = 0;
    bool isNext = false;
    for (const QChar letter : query) {
        if (letter.isSpace()) {
            isNext = false;
            continue;
        }
        // Where the letter stands next to the one before, else at the beginning of a word, else anywhere.
        qsizetype found = -1;
        for (qsizetype i = at; i < text.size() && found < 0; ++i) {
            const bool begins = i == 0 || !text[i - 1].isLetterOrNumber();
            if (text[i].toCaseFolded() == letter.toCaseFolded() && (begins || (isNext && i == at)))
                found = i;
        }
        if (found < 0)
            found = text.indexOf(letter, at, Qt::CaseInsensitive);
        if (found < 0)
            return std::nullopt;
        const bool begins = found == 0 || !text[found - 1].isLetterOrNumber();
        score += 1 + (begins ? kBegin : 0) + (isNext && found == at ? kNext : 0);
        at = found + 1;
        isNext = true;
    }
    const QString whole = query.trimmed();
    return score + (!whole.isEmpty() && text.contains(whole, Qt::CaseInsensitive) ? kWhole : 0);
}

} // namespace meshwright::ui
