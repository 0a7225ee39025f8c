// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/document.h"
#include "core/study/study_parts.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Bounds that no study reaches, so that the work of reading a file is bounded by its size.
inline constexpr std::size_t kMostAxes = 64;
inline constexpr std::size_t kMostLayers = 10'000;
inline constexpr std::size_t kMostRules = 1'000;
inline constexpr std::size_t kMostFaults = 100'000;

/// True for a value that is absent or null.
inline bool isNull(const DocNode* node)
{
    return node == nullptr || node->kind == DocNode::Kind::Null;
}

template <typename T>
std::vector<std::string> namesOf(const Words<T>& words)
{
    std::vector<std::string> names;
    for (const auto& [name, value] : words)
        names.emplace_back(name);
    return names;
}

/// Fills a study from a document: `read`, once. What is wrong is in `problems`, in no order.
class StudyReader {
public:
    void read(const DocNode& root);

    Study study;
    Problems problems;
    ReadGaps gaps;
    bool shrinks = false; ///< the study is to be made small (shrink.h)

private:
    /// The keys of one mapping. What is not asked for by the time it is closed is unknown.
    class Fields {
    public:
        Fields(StudyReader& reader, const DocNode& node, std::string path)
            : m_reader(reader)
            , m_node(node)
            , m_path(std::move(path))
        {
            m_isMap = node.kind == DocNode::Kind::Map;
            if (!m_isMap)
                reader.wrongKind(node, m_path, "a mapping (keys with values)");
        }

        bool isMap() const { return m_isMap; }
        std::string pathOf(std::string_view key) const
        {
            return m_path.empty() ? std::string(key) : fmt::format("{}.{}", m_path, key);
        }

        /// The value of a key; null when it is absent or has none.
        const DocNode* take(const char* key)
        {
            if (std::ranges::find(m_known, key) == m_known.end())
                m_known.emplace_back(key);
            const DocNode* value = m_isMap ? m_node.find(key) : nullptr;
            if (value != nullptr)
                m_reader.study.places.at[pathOf(key)] = value->place(pathOf(key));
            return isNull(value) ? nullptr : value;
        }

        /// As `take`; a problem when it is absent.
        const DocNode* require(const char* key, const char* fix)
        {
            const DocNode* value = take(key);
            if (value == nullptr && m_isMap)
                m_reader.report("MW1421", fmt::format("\"{}\" is missing", pathOf(key)), fix, m_node.place(m_path));
            return value;
        }

        void close()
        {
            if (!m_isMap)
                return;
            for (const DocEntry& entry : m_node.entries) {
                if (std::find(m_known.begin(), m_known.end(), entry.key) == m_known.end())
                    m_reader.m_unknownKeys.push_back({entry.key, m_path, entry.place(pathOf(entry.key)), &m_node});
            }
            m_reader.m_keys[m_path] = std::move(m_known);
        }

    private:
        StudyReader& m_reader;
        const DocNode& m_node;
        std::string m_path;
        bool m_isMap = false;
        std::vector<std::string> m_known;
    };

    struct UnknownKey {
        std::string key;
        std::string around; ///< the path of its mapping
        Place place;
        const DocNode* mapping;
    };
    void reportUnknownKeys();
    std::string fixOf(const UnknownKey& unknown) const;
    std::vector<std::string> renamed(const UnknownKey& unknown) const;

    Problem& report(const char* id, std::string message, std::string fix, Place place, std::string rule = {})
    {
        return problems.emplace_back(
            Problem{id, std::move(message), std::move(fix), std::move(place), Severity::Error, std::move(rule), {}});
    }

    /// A name that is none of those that may be chosen; fixed by the nearest one.
    Problem& unknownName(const DocNode& node, const std::string& path, const std::vector<std::string>& names)
    {
        Problem& problem
            = report("MW1423", fmt::format("unknown name \"{}\"", node.text), suggestion(node.text, names), node.place(path));
        if (const auto near = nearestName(node.text, names)) {
            problem.fix += " The names are " + join(names, ", ");
            problem.fixSettings = {path + "=" + *near};
        }
        return problem;
    }

    void wrongKind(const DocNode& node, const std::string& path, const char* expected, std::string fix = {})
    {
        report("MW1422", fmt::format("expected {}, found {}", expected, node.kindText()),
            fix.empty() ? fmt::format("give {}", expected) : fix, node.place(path));
    }

    /// True, with a problem, when the list or mapping has more than `most` entries.
    bool tooMany(const DocNode& node, const std::string& path, std::size_t most, const char* what)
    {
        if (node.entries.size() <= most)
            return false;
        report("MW1437", fmt::format("{} {}, at most {} are read", node.entries.size(), what, most), "is this the right file?",
            node.place(path));
        return true;
    }

    std::optional<std::int64_t> integer(const DocNode& node, const std::string& path);
    std::optional<double> number(const DocNode& node, const std::string& path);
    std::optional<bool> truth(const DocNode& node, const std::string& path);
    std::optional<std::string> text(const DocNode& node, const std::string& path, const char* expected);
    std::optional<std::vector<std::int64_t>> integers(const DocNode& node, const std::string& path, const char* expected);
    std::optional<PartitionSpec> spec(const DocNode& node, const std::string& path);
    std::optional<std::vector<std::string>> axesOf(const DocNode& node, const std::string& path);

    template <typename T>
    void word(const DocNode* node, const std::string& path, const Words<T>& words, T& target)
    {
        if (node == nullptr)
            return;
        const auto name = text(*node, path, "a name");
        if (!name)
            return;
        const auto found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return *name == w.first; });
        if (found != words.end())
            target = found->second;
        else
            unknownName(*node, path, namesOf(words));
    }

    void setInteger(const DocNode* node, const std::string& path, std::int64_t& target)
    {
        if (node != nullptr)
            target = integer(*node, path).value_or(target);
    }
    void setNumber(const DocNode* node, const std::string& path, double& target)
    {
        if (node != nullptr)
            target = number(*node, path).value_or(target);
    }
    void setText(const DocNode* node, const std::string& path, std::string& target)
    {
        if (node != nullptr)
            target = text(*node, path, "a text").value_or(target);
    }

    /// For a mapping with one key that says which kind it is: that key's value. A plain name stands for the key without values.
    struct Choice {
        std::string kind;
        const DocNode* value = nullptr;
    };
    std::optional<Choice> choice(const DocNode& node, const std::string& path, const std::vector<std::string>& kinds);

    void readHardware(const DocNode& node);
    void readMesh(const DocNode& node, const std::string& path, std::vector<MeshAxis>& axes, std::vector<DeviceId>& order);
    void readOrder(const DocNode* node, const std::string& path, std::vector<DeviceId>& order);
    void readModel(const DocNode& node);
    void readMlp(const DocNode& node);
    void readLoss(const DocNode& node, const std::string& path, TransformerModel& model);
    void readTransformer(const DocNode& node);
    bool readConfig(const DocNode& node, TransformerConfig& config);
    bool readSizes(Fields& fields, TransformerConfig& config);
    void passToKinds(Fields& fields, TransformerConfig& config);
    bool readKinds(Fields& fields, TransformerConfig& config);
    void completeSizes(Fields& fields, TransformerConfig& config);
    void readTransformerChoices(Fields& fields);
    void readAttention(const DocNode& node, const std::string& path, TransformerModel& model);
    std::vector<std::string> keptNames(const DocNode& names, const std::string& path, const std::vector<std::string>& known);
    void readRecompute(const DocNode& node, TransformerModel& model);
    void readInit(const DocNode& node);
    void readDtype(const DocNode& node);
    void readSharding(const DocNode& node);
    void readShardingEntry(const std::string& name, const DocEntry& entry, const std::string& path);
    void readMatch(const DocNode& node);
    void readRules(const DocNode& node);
    void readOptimizer(const DocNode& node);
    void readLossScale(const DocNode& node, const std::string& path, LossScale& scale);
    void readTrain(const DocNode& node);
    void readData(const DocNode& node, const std::string& path);
    void readEvaluation(const DocNode& node, const std::string& path);
    void readPhases(const DocNode& node);
    void readPipeline(const DocNode& node);
    void readStages(const DocNode* node);
    void readFaults(const DocNode& node);
    void readSlowDevice(const DocNode& node, const std::string& path);
    void readLinkFault(const DocNode& node, const std::string& path);
    void readNetwork(const DocNode& node);
    void readAlgorithms(const DocNode& node);

    std::map<std::string, std::vector<std::string>> m_keys; ///< that a mapping may have, by its path
    std::vector<UnknownKey> m_unknownKeys;
    std::set<std::string> m_sharded; ///< arrays that have a spec of their own
    std::size_t m_wildcards = 0;
};

} // namespace meshwright
