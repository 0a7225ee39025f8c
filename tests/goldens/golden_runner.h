// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/mesh/mesh.h"
#include "core/sharding/partition_spec.h"
#include "core/support/file.h"

#include <nlohmann/json.hpp>

#include <QByteArray>
#include <QTest>

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

/// Runs files of golden cases (README.md beside this file): every case is a named row, and one line at the end counts them.
///
///     void cases_data() { m_file.addRows(); }
///     void cases() { settleCase(m_file, run); } // run: const Json& -> Outcome
///     void cleanupTestCase() { m_file.printSummary(); }
///     GoldenFile m_file{"layout.json"};
namespace meshwright::goldens {

using Json = nlohmann::json;

/// What became of a case. A case that the engine cannot express needs a reason, and its line in unsupported.txt: any other fails.
struct Outcome {
    enum class Kind : std::uint8_t { Passed, Failed, Unsupported };
    Kind kind = Kind::Passed;
    std::string reason = {};
};

inline Outcome passed()
{
    return {};
}

inline Outcome failed(std::string reason)
{
    return {Outcome::Kind::Failed, std::move(reason)};
}

inline Outcome unsupported(std::string reason)
{
    return {Outcome::Kind::Unsupported, std::move(reason)};
}

/// Passed when both are equal; otherwise failed, with both in the reason.
template <typename A, typename B>
Outcome same(const std::string& what, const A& found, const B& expected)
{
    return found == expected ? passed()
                             : failed(fmt::format("{}: found {}, expected {}", what, Json(found).dump(), Json(expected).dump()));
}

/// The first outcome that is not a pass, or a pass.
inline Outcome all(const std::vector<Outcome>& outcomes)
{
    for (const Outcome& outcome : outcomes) {
        if (outcome.kind != Outcome::Kind::Passed)
            return outcome;
    }
    return passed();
}

/// The cases that may be unsupported, as `FILE ID`: the lines of unsupported.txt.
inline const std::set<std::string>& mayBeUnsupported()
{
    static const std::set<std::string> listed = [] {
        std::set<std::string> lines;
        std::ifstream in(std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "tests/goldens/unsupported.txt");
        for (std::string line; std::getline(in, line);) {
            if (!line.empty() && line.front() != '#')
                lines.insert(line);
        }
        return lines;
    }();
    return listed;
}

/// The cases of one file, from the folder that the environment variable MESHWRIGHT_GOLDENS names, or from the source tree.
class GoldenFile {
public:
    explicit GoldenFile(std::string name)
        : m_name(std::move(name))
    {
        const QByteArray folder = qgetenv("MESHWRIGHT_GOLDENS");
        const std::filesystem::path path = (folder.isEmpty() ? std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "tests" / "goldens"
                                                             : std::filesystem::path(folder.toStdString()))
            / m_name;
        const auto text = readFile(path);
        if (!text) {
            m_problem = describe(text.error());
            return;
        }
        const Json document = Json::parse(*text, nullptr, false);
        if (!document.is_object() || !document.contains("cases") || document["cases"].empty())
            m_problem = path.string() + " has no cases";
        else
            m_cases = document["cases"];
    }

    /// Adds a row for each case, named by its id. Adds a column; call it in the `_data` function.
    void addRows() const
    {
        QTest::addColumn<int>("caseIndex");
        if (!m_problem.empty())
            QTest::newRow("file") << -1;
        for (std::size_t i = 0; i < m_cases.size(); ++i)
            QTest::newRow(m_cases[i].at("id").get<std::string>().c_str()) << static_cast<int>(i);
    }

    /// Whether the case with this id may be unsupported.
    bool mayBeUnsupported(const std::string& id) const { return goldens::mayBeUnsupported().contains(m_name + " " + id); }

    /// Why there are no cases; empty when there are.
    const std::string& problem() const { return m_problem; }

    const Json& at(int index) const { return m_cases[static_cast<std::size_t>(index)]; }

    void count(const Outcome& outcome) { ++m_counts[static_cast<std::size_t>(outcome.kind)]; }

    /// `layout.json: 70 passed, 0 failed, 0 unsupported`
    void printSummary() const
    {
        fmt::print("{}: {} passed, {} failed, {} unsupported\n", m_name, m_counts[0], m_counts[1], m_counts[2]);
    }

private:
    std::string m_name;
    std::string m_problem;
    Json m_cases = Json::array();
    std::array<int, 3> m_counts{};
};

/// Runs the current row of `file` through `run` (Json -> Outcome) and tells Qt Test what became of it.
template <typename Run>
void settleCase(GoldenFile& file, Run run)
{
    QFETCH(int, caseIndex);
    QVERIFY2(caseIndex >= 0, file.problem().c_str());
    Outcome outcome;
    try {
        outcome = run(file.at(caseIndex));
    } catch (const std::exception& error) {
        outcome = failed(std::string("the case is not of the expected form: ") + error.what());
    }
    if (outcome.kind == Outcome::Kind::Unsupported && outcome.reason.empty())
        outcome = failed("unsupported without a reason");
    const bool listed = file.mayBeUnsupported(QTest::currentDataTag());
    if (outcome.kind == Outcome::Kind::Unsupported && !listed)
        outcome = failed("unsupported, and not in unsupported.txt: " + outcome.reason);
    else if (outcome.kind != Outcome::Kind::Unsupported && listed)
        outcome = failed("is supported: take it out of unsupported.txt");
    file.count(outcome);
    if (outcome.kind == Outcome::Kind::Unsupported)
        QSKIP(("unsupported: " + outcome.reason).c_str());
    QVERIFY2(outcome.kind == Outcome::Kind::Passed, outcome.reason.c_str());
}

/// The mesh of a case: `{"axes": [[name, size], ..], "device_ids": [..]?}`.
inline Result<Mesh> meshOf(const Json& json)
{
    std::vector<MeshAxis> axes;
    for (const Json& axis : json.at("axes"))
        axes.push_back({axis.at(0).get<std::string>(), axis.at(1).get<std::int64_t>()});
    return Mesh::create(std::move(axes), json.value("device_ids", std::vector<DeviceId>{}));
}

/// A spec: one entry for each dimension, null, a name or a list of names. Throws Json::exception for anything else, such as a nested list.
inline PartitionSpec specOf(const Json& json)
{
    PartitionSpec spec;
    for (const Json& entry : json) {
        if (entry.is_null())
            spec.dims.emplace_back();
        else if (entry.is_string())
            spec.dims.push_back({entry.get<std::string>()});
        else
            spec.dims.push_back(entry.get<std::vector<std::string>>());
    }
    return spec;
}

} // namespace meshwright::goldens
