// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/sweep/sweep_file.h"

#include "core/study/document.h"
#include "core/study/yaml_text.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::sim {

namespace {

const std::vector<std::string> kKeys = {"sweep", "study", "set", "vary"};

class SweepReader {
public:
    explicit SweepReader(const Document& document)
        : m_root(document.root)
        , m_problems(document.problems)
    {
    }

    Result<SweepFile> read()
    {
        if (m_root.kind != DocNode::Kind::Map) {
            wrong(m_root.place(),
                fmt::format("a sweep is a mapping with the keys {}, not {}", join(kKeys, ", "), m_root.kindText()));
            return m_problems;
        }
        for (const DocEntry& entry : m_root.entries) {
            if (std::find(kKeys.begin(), kKeys.end(), entry.key) == kKeys.end())
                wrong(entry.place(entry.key), fmt::format("unknown key \"{}\"", entry.key), suggestion(entry.key, kKeys));
        }
        readVersion();
        readStudy();
        readSettings();
        readParameters();
        if (hasErrors(m_problems))
            return m_problems;
        return std::move(m_file);
    }

private:
    void wrong(Place place, std::string message, std::string fix = {})
    {
        m_problems.push_back({"MW1779", std::move(message), std::move(fix), std::move(place)});
    }

    const DocNode* needed(const char* key, const char* example)
    {
        const DocNode* node = m_root.find(key);
        if (node == nullptr)
            wrong(m_root.place(), fmt::format("\"{}\" is missing", key), fmt::format("add {}", example));
        return node;
    }

    void readVersion()
    {
        const DocNode* node = needed("sweep", "sweep: 1");
        if (node == nullptr)
            return;
        const auto version = node->kind == DocNode::Kind::Scalar ? parseInteger(node->text) : std::nullopt;
        if (!version || *version < 1)
            wrong(node->place("sweep"), "the version of a sweep is a number", "write sweep: 1");
        else if (*version > 1)
            m_problems.push_back({"MW1780", fmt::format("the sweep is of version {}; this program knows version 1", *version),
                "use a newer Meshwright", node->place("sweep")});
    }

    void readStudy()
    {
        const DocNode* node = needed("study", "study: FILE.yaml");
        if (node == nullptr)
            return;
        if (node->kind == DocNode::Kind::Scalar && !node->text.empty())
            m_file.study = node->text;
        else
            wrong(node->place("study"), fmt::format("the study is the name of a file, not {}", node->kindText()));
    }

    void readSettings()
    {
        const DocNode* node = m_root.find("set");
        if (node == nullptr)
            return;
        if (node->kind != DocNode::Kind::Map) {
            wrong(node->place("set"), fmt::format("\"set\" is a mapping of paths to values, not {}", node->kindText()),
                "write set: {batch: 1024}");
            return;
        }
        for (const DocEntry& entry : node->entries)
            m_file.settings.push_back(entry.key + "=" + valueText(entry.value, YamlStyle{}));
    }

    void readParameters()
    {
        const DocNode* node = needed("vary", "vary: {batch: [1k, 4k]}");
        if (node == nullptr)
            return;
        if (node->kind != DocNode::Kind::Map || node->entries.empty()) {
            wrong(node->place("vary"),
                fmt::format(
                    "\"vary\" is a mapping of paths to values, not {}", node->entries.empty() ? "empty" : node->kindText()),
                "write vary: {batch: [1k, 4k]}");
            return;
        }
        for (const DocEntry& entry : node->entries)
            readParameter(entry);
        SweepPlan plan;
        plan.parameters = m_file.parameters;
        if (!plan.parameters.empty())
            placed(checkPlan(plan), node->place("vary"));
    }

    void readParameter(const DocEntry& entry)
    {
        const std::string path = "vary." + entry.key;
        if (entry.key.empty()) {
            wrong(entry.place("vary"), "a path is empty");
            return;
        }
        if (entry.value.kind == DocNode::Kind::Scalar) {
            keep(parseVary(entry.key + "=" + entry.value.text), entry.value.place(path));
            return;
        }
        if (entry.value.kind != DocNode::Kind::List || entry.value.entries.empty()) {
            wrong(entry.place(path),
                fmt::format("{} takes a value or a list of values, not {}", entry.key,
                    entry.value.entries.empty() && entry.value.kind == DocNode::Kind::List ? "an empty list"
                                                                                           : entry.value.kindText()));
            return;
        }
        std::vector<std::string> texts;
        for (const DocEntry& value : entry.value.entries)
            texts.push_back(value.value.kind == DocNode::Kind::Scalar ? value.value.text : valueText(value.value, YamlStyle{}));
        auto values = sweepValues(entry.key, texts);
        if (values)
            m_file.parameters.push_back({entry.key, *std::move(values)});
        else
            placed(values.error(), entry.place(path));
    }

    void keep(Result<SweepParameter> parameter, const Place& place)
    {
        if (parameter)
            m_file.parameters.push_back(*std::move(parameter));
        else
            placed(parameter.error(), place);
    }

    void placed(Problems problems, const Place& place)
    {
        for (Problem& problem : problems)
            problem.place = place;
        append(m_problems, std::move(problems));
    }

    const DocNode& m_root;
    Problems m_problems;
    SweepFile m_file;
};

} // namespace

bool isSweepFile(std::string_view text)
{
    if (text.find("sweep") == std::string_view::npos && text.find("vary") == std::string_view::npos)
        return false;
    const Document document = parseDocument(text, {});
    // No study has a key of these names: with one of them and another head a sweep was meant.
    return document.root.kind == DocNode::Kind::Map
        && (document.root.find("sweep") != nullptr || document.root.find("vary") != nullptr);
}

Result<SweepFile> readSweepFile(std::string_view text, const std::string& fileName)
{
    const Document document = parseDocument(text, fileName);
    if (!document.readable)
        return document.problems;
    return SweepReader(document).read();
}

} // namespace meshwright::sim
