// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QFontMetricsF>
#include <QHash>
#include <QString>
#include <QStringList>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace meshwright::ui {

/// Measures and breaks text in the font in which pages are painted: the application's, at a size in pixels. Remembers the widths of words.
class PageText {
public:
    /// The width of one line, pixels.
    double width(const std::string& text, int pixels, bool bold = false);

    /// `text` in lines of at most `room` pixels, broken at spaces; a word that is longer than a line is broken anywhere. Newlines stay; there is
    /// at least one line. After kMostLines in all, texts are cut off: nobody prints as many.
    std::vector<std::string> lines(const std::string& text, int pixels, bool bold, double room);

    static constexpr std::size_t kMostLines = 100'000;

private:
    struct Face {
        explicit Face(const QFont& font)
            : metrics(font)
        {
        }
        QFontMetricsF metrics;
        QHash<QString, double> words;
    };

    Face& face(int pixels, bool bold);
    static double wordWidth(Face& face, const QString& word);
    bool isFull(const std::vector<std::string>& lines) const { return m_lines + lines.size() >= kMostLines; }
    double addBroken(Face& face, const QString& word, double room, std::vector<std::string>& lines, QString& line);

    std::map<std::pair<int, bool>, Face> m_faces;
    std::size_t m_lines = 0; ///< that were broken so far
};

} // namespace meshwright::ui
