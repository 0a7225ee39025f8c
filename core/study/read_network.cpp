// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/study_reader.h"

namespace meshwright {

const std::vector<std::string>& fidelityWords()
{
    static const std::vector<std::string> kWords = {"closed", "fluid", "message"};
    return kWords;
}

const std::vector<std::string>& stackWords()
{
    static const std::vector<std::string> kWords
        = {"jax", "maxtext", "megatron", "torchtitan", "deepspeed", "nemo", "oneflow", "plain"};
    return kWords;
}

const std::vector<std::string>& collectiveWords()
{
    static const std::vector<std::string> kWords
        = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"};
    return kWords;
}

const std::vector<std::string>& algorithmWords()
{
    static const std::vector<std::string> kWords = {"auto", "ring", "both_ways", "all_axes", "tree", "in_switch",
        "halving_doubling", "recursive_doubling", "direct", "pairwise", "bruck", "chain", "binomial", "nvls", "sharp"};
    return kWords;
}

void StudyReader::readFaults(const DocNode& node)
{
    Fields fields(*this, node, "faults");
    if (!fields.isMap())
        return;
    const auto each = [&](const char* key, const char* expected, auto read) {
        const DocNode* list = fields.take(key);
        if (list == nullptr)
            return;
        const std::string path = fields.pathOf(key);
        if (list->kind != DocNode::Kind::List) {
            wrongKind(*list, path, expected);
            return;
        }
        if (tooMany(*list, path, kMostFaults, "faults"))
            return;
        for (std::size_t i = 0; i < list->entries.size(); ++i)
            read(list->entries[i].value, fmt::format("{}[{}]", path, i));
    };
    each("slow", "a list such as [{device: 3, speed: 0.8}]",
        [&](const DocNode& entry, const std::string& path) { readSlowDevice(entry, path); });
    each("links", "a list such as [{device: 5, axis: x}]",
        [&](const DocNode& entry, const std::string& path) { readLinkFault(entry, path); });
    fields.close();
}

void StudyReader::readSlowDevice(const DocNode& node, const std::string& path)
{
    study.places.at[path] = node.place(path);
    Fields fields(*this, node, path);
    FaultsChoice::Slow slow;
    setInteger(fields.require("device", "say which: {device: 3, speed: 0.8}"), path + ".device", slow.device);
    setNumber(
        fields.require("speed", "say how fast, as a share of the others: {device: 3, speed: 0.8}"), path + ".speed", slow.speed);
    fields.close();
    study.faults.slow.push_back(slow);
}

void StudyReader::readLinkFault(const DocNode& node, const std::string& path)
{
    study.places.at[path] = node.place(path);
    Fields fields(*this, node, path);
    FaultsChoice::Link link;
    setInteger(fields.require("device", "say which: {device: 5, axis: x}"), path + ".device", link.device);
    setText(fields.require("axis", "say along which axis of the machine: {device: 5, axis: x}"), path + ".axis", link.axis);
    setNumber(fields.take("share"), path + ".share", link.share);
    fields.close();
    study.faults.links.push_back(std::move(link));
}

void StudyReader::readNetwork(const DocNode& node)
{
    Fields fields(*this, node, "network");
    if (!fields.isMap())
        return;
    NetworkChoice& network = study.network;
    setText(fields.take("fidelity"), "network.fidelity", network.fidelity);
    if (const DocNode* algorithms = fields.take("algorithms"))
        readAlgorithms(*algorithms);
    if (const DocNode* tree = fields.take("oversubscription"))
        network.oversubscription = number(*tree, "network.oversubscription");
    if (const DocNode* leaf = fields.take("per_leaf"))
        network.perLeaf = integer(*leaf, "network.per_leaf");
    fields.close();
}

/// One name for every kind of collective, or a name for each.
void StudyReader::readAlgorithms(const DocNode& node)
{
    const std::string path = "network.algorithms";
    const auto add = [&](const std::string& kind, const DocNode& value, const std::string& at) {
        if (const auto name = text(value, at, "the name of an algorithm"))
            study.network.algorithms.emplace_back(kind, *name);
    };
    if (node.kind != DocNode::Kind::Map) {
        add("", node, path);
        return;
    }
    for (const DocEntry& entry : node.entries) {
        const std::string at = path + "." + entry.key;
        study.places.at[at] = entry.value.place(at);
        add(entry.key, entry.value, at);
    }
}

} // namespace meshwright
