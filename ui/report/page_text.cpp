// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/report/page_text.h"

#include <QGuiApplication>

namespace meshwright::ui {

PageText::Face& PageText::face(int pixels, bool bold)
{
    const auto found = m_faces.find({pixels, bold});
    if (found != m_faces.end())
        return found->second;
    QFont font = QGuiApplication::font();
    font.setPixelSize(pixels);
    font.setBold(bold);
    return m_faces.emplace(std::pair(pixels, bold), Face(font)).first->second;
}

double PageText::wordWidth(Face& face, const QString& word)
{
    constexpr qsizetype kMostLetters = 256; // more do not make a word, and shaping them takes much memory for each
    if (word.size() > kMostLetters) {
        double width = 0.0;
        for (qsizetype i = 0; i < word.size(); i += kMostLetters)
            width += wordWidth(face, word.mid(i, kMostLetters));
        return width;
    }
    const auto known = face.words.constFind(word);
    if (known != face.words.constEnd())
        return *known;
    const double width = face.metrics.horizontalAdvance(word);
    face.words.insert(word, width);
    return width;
}

double PageText::width(const std::string& text, int pixels, bool bold)
{
    return wordWidth(face(pixels, bold), QString::fromStdString(text));
}

/// Puts a word that no line holds on lines of its own, as many letters as fit each; the last one stays open. Returns its width.
double PageText::addBroken(Face& face, const QString& word, double room, std::vector<std::string>& lines, QString& line)
{
    double used = wordWidth(face, line);
    for (qsizetype i = 0; i < word.size() && !isFull(lines); ++i) {
        const qsizetype length = word[i].isHighSurrogate() && i + 1 < word.size() ? 2 : 1;
        const QString letter = word.mid(i, length);
        const double width = wordWidth(face, letter);
        if (!line.isEmpty() && used + width > room) {
            lines.push_back(line.toStdString());
            line.clear();
            used = 0.0;
        }
        line += letter;
        used += width;
        i += length - 1;
    }
    return used;
}

std::vector<std::string> PageText::lines(const std::string& text, int pixels, bool bold, double room)
{
    Face& one = face(pixels, bold);
    const double space = wordWidth(one, QStringLiteral(" "));
    std::vector<std::string> lines;
    const QString whole = QString::fromStdString(text);
    for (const QStringView paragraph : qTokenize(whole, QLatin1Char('\n'))) {
        if (!lines.empty() && isFull(lines))
            break;
        QString line;
        double used = 0.0;
        for (const QStringView view : qTokenize(paragraph, QLatin1Char(' '))) {
            const QString word = view.toString();
            const double width = wordWidth(one, word);
            if (!line.isEmpty() && used + space + width > room) {
                lines.push_back(line.toStdString());
                line.clear();
                if (isFull(lines))
                    break;
            }
            if (width > room) {
                if (!line.isEmpty())
                    line += QLatin1Char(' ');
                used = addBroken(one, word, room, lines, line);
            } else if (line.isEmpty()) {
                line = word.isEmpty() ? QStringLiteral(" ") : word; // spaces at the start of a line are indentation
                used = word.isEmpty() ? space : width;
            } else {
                line += QLatin1Char(' ') + word;
                used += space + width;
            }
        }
        lines.push_back(line.toStdString());
    }
    m_lines += lines.size();
    return lines;
}

} // namespace meshwright::ui
