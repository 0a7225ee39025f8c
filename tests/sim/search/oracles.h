// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/search/elimination.h"

#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace meshwright::tests {

using sim::Assignment;
using sim::ChoiceGraph;

/// Every assignment within the budget that no other beats: (seconds, bytes), the quickest first.
inline std::vector<std::pair<double, double>> bruteForce(const ChoiceGraph& graph, double budget)
{
    std::vector<std::pair<double, double>> all;
    std::vector<std::uint32_t> choices(graph.variables.size(), 0);
    while (true) {
        const Assignment one = costOf(graph, choices);
        if (one.seconds < std::numeric_limits<double>::infinity() && one.bytes <= budget)
            all.emplace_back(one.seconds, one.bytes);
        std::size_t at = 0;
        while (at < choices.size() && ++choices[at] == graph.variables[at].size())
            choices[at++] = 0;
        if (at == choices.size())
            break;
    }
    std::sort(all.begin(), all.end());
    std::vector<std::pair<double, double>> front;
    for (const auto& point : all) {
        if (front.empty() || point.second < front.back().second)
            front.push_back(point);
    }
    return front;
}

/// COIN-OR's cbc as an oracle: independent integer programs in one file, whose optima add up.
class Solver {
public:
    static QString program() { return QStandardPaths::findExecutable("cbc"); }

    /// The least seconds of a choice graph within a budget: one-hot choices, and for each edge the tight local polytope.
    void add(const ChoiceGraph& graph, double budgetBytes)
    {
        const int g = m_count++;
        const auto name = [&](std::size_t v, std::size_t c) { return QString("s%1_%2_%3").arg(g).arg(v).arg(c); };
        QString bytes;
        for (std::size_t v = 0; v < graph.variables.size(); ++v) {
            QString one;
            for (std::size_t c = 0; c < graph.variables[v].size(); ++c) {
                m_objective += QString("\n + %1 %2").arg(graph.variables[v][c].seconds, 0, 'g', 15).arg(name(v, c));
                bytes += QString(" + %1 %2").arg(graph.variables[v][c].bytes, 0, 'g', 15).arg(name(v, c));
                one += " + " + name(v, c);
                m_binaries += ' ' + name(v, c) + '\n';
            }
            m_rows += one + " = 1\n";
        }
        if (budgetBytes < std::numeric_limits<double>::infinity())
            m_rows += bytes + QString(" <= %1\n").arg(budgetBytes, 0, 'g', 15);
        for (std::size_t e = 0; e < graph.edges.size(); ++e) {
            const auto& edge = graph.edges[e];
            const std::size_t width = graph.variables[edge.to].size();
            const auto pair = [&](std::size_t p, std::size_t q) { return QString("e%1_%2_%3_%4").arg(g).arg(e).arg(p).arg(q); };
            for (std::size_t p = 0; p < graph.variables[edge.from].size(); ++p) {
                QString row;
                for (std::size_t q = 0; q < width; ++q) {
                    const double seconds = edge.seconds[p * width + q];
                    if (seconds == std::numeric_limits<double>::infinity())
                        m_rows += ' ' + pair(p, q) + " = 0\n";
                    else
                        m_objective += QString("\n + %1 %2").arg(seconds, 0, 'g', 15).arg(pair(p, q));
                    row += " + " + pair(p, q);
                }
                m_rows += row + " - " + name(edge.from, p) + " = 0\n";
            }
            for (std::size_t q = 0; q < width; ++q) {
                QString column;
                for (std::size_t p = 0; p < graph.variables[edge.from].size(); ++p)
                    column += " + " + pair(p, q);
                m_rows += column + " - " + name(edge.to, q) + " = 0\n";
            }
        }
    }

    /// The sum of the optima; nothing when the solver does not say that it is optimal.
    std::optional<double> optimum() const
    {
        QTemporaryDir folder;
        QFile file(folder.filePath("graphs.lp"));
        if (!file.open(QIODevice::WriteOnly))
            return std::nullopt;
        file.write((m_objective + m_rows + m_binaries + "End\n").toUtf8());
        file.close();
        QProcess process;
        process.start(
            program(), {file.fileName(), "ratio", "0", "allow", "0", "solve", "solution", folder.filePath("solution.txt")});
        QFile solution(folder.filePath("solution.txt"));
        if (!process.waitForFinished(60'000) || !solution.open(QIODevice::ReadOnly))
            return std::nullopt;
        const QString first = solution.readLine(); // "Optimal - objective value 1234.00000000"
        return first.startsWith("Optimal") ? std::optional(first.section(' ', -1).trimmed().toDouble()) : std::nullopt;
    }

private:
    int m_count = 0;
    QString m_objective = "Minimize\n obj: 0 zero";
    QString m_rows = "\nSubject To\n fixed: zero = 0\n";
    QString m_binaries = "\nBinary\n";
};

} // namespace meshwright::tests
