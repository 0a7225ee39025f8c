// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/hlo/collectives.h"

#include "core/hlo/loops.h"
#include "core/program/body_collective.h"
#include "core/sharding/notation.h"
#include "core/support/text.h"
#include "core/text/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace meshwright {

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;
using Kind = HloCollectiveKind;

struct KindRow {
    Kind kind;
    const char* opcode;
    const char* name;
};
constexpr std::array kKinds = {
    KindRow{Kind::AllReduce, "all-reduce", "all_reduce"},
    KindRow{Kind::AllGather, "all-gather", "all_gather"},
    KindRow{Kind::ReduceScatter, "reduce-scatter", "reduce_scatter"},
    KindRow{Kind::AllToAll, "all-to-all", "all_to_all"},
    KindRow{Kind::RaggedAllToAll, "ragged-all-to-all", "ragged_all_to_all"},
    KindRow{Kind::CollectivePermute, "collective-permute", "collective_permute"},
    KindRow{Kind::CollectiveBroadcast, "collective-broadcast", "collective_broadcast"},
};

/// Which ids the groups of a collective have.
enum class Ids : std::uint8_t { Replicas, Partitions, ReplicasOfAllPartitions, Devices };

Ids idsOf(Kind kind, const HloInstruction& instruction)
{
    const bool hasChannel = !instruction.find("channel_id").empty();
    const bool mayBeGlobal = kind == Kind::AllReduce || kind == Kind::AllGather || kind == Kind::ReduceScatter;
    if (instruction.find("use_global_device_ids") == "true")
        return Ids::Devices;
    return !hasChannel ? Ids::Replicas : mayBeGlobal ? Ids::ReplicasOfAllPartitions : Ids::Partitions;
}

bool isSend(const HloInstruction& instruction)
{
    return instruction.opcode == "send" && !instruction.find("frontend_attributes").empty()
        && instruction.find("frontend_attributes").find("_xla_send_recv_source_target_pairs") != std::string_view::npos;
}

/// The collective that an instruction starts or is; a done and an update are none.
const KindRow* kindOf(const HloInstruction& instruction)
{
    if (isSend(instruction))
        return &kKinds[5];
    std::string_view opcode = instruction.opcode;
    if (opcode.ends_with("-start"))
        opcode.remove_suffix(6);
    const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindRow& row) { return opcode == row.opcode; });
    return found == kKinds.end() ? nullptr : &*found;
}

/// `{{0,1},{2,3}}`; nothing for another text.
std::optional<Groups> listedGroups(std::string_view text)
{
    Groups groups;
    std::size_t at = 0;
    const auto take = [&](char c) {
        while (at < text.size() && (text[at] == ' ' || text[at] == '\n'))
            ++at;
        const bool comes = at < text.size() && text[at] == c;
        at += comes ? 1 : 0;
        return comes;
    };
    if (!take('{'))
        return std::nullopt;
    while (!take('}')) {
        if (!take('{'))
            return std::nullopt;
        groups.emplace_back();
        while (!take('}')) {
            const std::size_t start = at;
            while (at < text.size() && text[at] >= '0' && text[at] <= '9')
                ++at;
            const auto id = parseInteger(text.substr(start, at - start));
            if (!id)
                return std::nullopt;
            groups.back().push_back(*id);
            take(',');
        }
        take(',');
    }
    return groups;
}

/// `[4,2]<=[2,4]T(1,0)`: so many groups of so many.
std::optional<Groups> tiledGroups(std::string_view text)
{
    const auto tiles = parseTileSharding(fmt::format("{{devices={}}}", text));
    if (!tiles || tiles->kind != TileKind::Tiled || tiles->tiles.dims().size() != 2)
        return std::nullopt;
    const std::vector<DeviceId> devices = tiles->tiles.devices();
    const auto size = static_cast<std::size_t>(tiles->tiles.dims()[1]);
    Groups groups;
    for (std::size_t first = 0; first < devices.size(); first += size)
        groups.emplace_back(
            devices.begin() + static_cast<std::ptrdiff_t>(first), devices.begin() + static_cast<std::ptrdiff_t>(first + size));
    return groups;
}

struct NamedGroups {
    Mesh mesh;
    Groups groups;
};

/// `mesh['x'=4,'y'=2] {'x'}`: over axes of a mesh of their own.
std::optional<NamedGroups> namedGroups(std::string_view text)
{
    const std::size_t axes = text.find(" {");
    if (!text.starts_with("mesh[") || axes == std::string_view::npos)
        return std::nullopt;
    const auto sharding = parseSharding(fmt::format("{{{}, [{}]}}", text.substr(0, axes), text.substr(axes + 1)));
    if (!sharding || sharding->sharding.dims.size() != 1)
        return std::nullopt;
    Groups groups = deviceGroups(sharding->sharding.dims.front().axes, sharding->mesh);
    for (std::vector<std::int64_t>& group : groups) {
        for (std::int64_t& member : group)
            member = sharding->mesh.deviceAt(member);
    }
    return NamedGroups{sharding->mesh, std::move(groups)};
}

/// The parts of the devices that pairs join, each in the order in which it passes on where it is a chain or a ring.
Groups joinedBy(const Groups& pairs)
{
    std::map<std::int64_t, std::int64_t> next;
    std::set<std::int64_t> targets;
    for (const auto& pair : pairs) {
        next[pair[0]] = pair[1];
        targets.insert(pair[1]);
    }
    Groups groups;
    std::set<std::int64_t> seen;
    const auto follow = [&](std::int64_t device) {
        std::vector<std::int64_t> group;
        while (seen.insert(device).second) {
            group.push_back(device);
            const auto found = next.find(device);
            if (found == next.end())
                break;
            device = found->second;
        }
        if (!group.empty())
            groups.push_back(std::move(group));
    };
    for (const auto& [source, target] : next) {
        if (!targets.contains(source))
            follow(source); // the head of a chain
    }
    for (const auto& [source, target] : next)
        follow(source);
    return groups;
}

class Collector {
public:
    Collector(const HloModule& module, std::string_view text, const std::string& file, const std::optional<Mesh>& mesh)
        : m_module(module)
        , m_problems(text, file)
        , m_lines(text, file)
        , m_given(mesh)
    {
    }

    Result<HloCollectives> run()
    {
        m_result.module = m_module.name;
        m_result.isPart = m_module.isCut;
        if (!ordered() || !counted() || !placed())
            return m_problems.take();
        for (std::size_t i = 0; i < m_result.collectives.size(); ++i)
            m_result.collectives[i].line = static_cast<std::size_t>(m_lines.placesOf({m_offsets[i]}).front().line);
        for (const auto& [offset, name] : m_unknownLoops)
            m_result.unknownLoops.push_back(name);
        return std::move(m_result);
    }

private:
    struct Call {
        std::size_t computation = 0;
        std::int64_t turns = 1;
        bool isUnknown = false; ///< a loop that does not say its turns
        bool isBranch = false;
        const HloInstruction* caller = nullptr;
    };

    bool fail(const char* id, const HloInstruction& at, std::string message, std::string fix = {})
    {
        return m_problems.report(id, at.offset, std::move(message), std::move(fix));
    }

    bool addCall(std::vector<Call>& calls, const HloInstruction& caller, std::string_view name, Call call)
    {
        const HloComputation* computation = hloCalled(m_module, name);
        if (computation == nullptr)
            return m_result.isPart
                || fail("MW1361", caller,
                    fmt::format("%{} names the computation {}, which the module does not have", caller.name, name));
        call.computation = static_cast<std::size_t>(computation - m_module.computations.data());
        call.caller = &caller;
        calls.push_back(call);
        return true;
    }

    /// The computations that an instruction runs, and how often.
    bool callsOf(const HloComputation& computation, const HloInstruction& instruction, std::vector<Call>& calls)
    {
        if (instruction.opcode == "while") {
            const auto turns = hloTripCount(m_module, computation, instruction);
            const bool isUnknown = !turns;
            return addCall(calls, instruction, instruction.find("body"), {0, turns.value_or(1), isUnknown})
                && addCall(calls, instruction, instruction.find("condition"),
                    {0, turns ? turns.value() + (*turns < INT64_MAX ? 1 : 0) : 1, isUnknown});
        }
        if (instruction.opcode == "async-update" || instruction.opcode == "async-done")
            return true; // the start has called it
        for (const char* key :
            {"calls", "called_computations", "branch_computations", "true_computation", "false_computation", "to_apply"}) {
            if (std::string_view(key) == "to_apply" && instruction.opcode != "call")
                continue; // a reduction of two elements
            std::string_view names = instruction.find(key);
            const bool isBranch = instruction.opcode == "conditional";
            if (names.starts_with('{') && names.ends_with('}'))
                names = names.substr(1, names.size() - 2);
            for (const std::string& name : split(names, ',')) {
                if (!trimmed(name).empty() && !addCall(calls, instruction, trimmed(name), {0, 1, false, isBranch}))
                    return false;
            }
        }
        return true;
    }

    /// Puts the computations in an order in which each comes after all that call it.
    bool ordered()
    {
        const std::size_t size = m_module.computations.size();
        m_calls.resize(size);
        std::vector<bool> isCalled(size, false);
        for (std::size_t i = 0; i < size; ++i) {
            for (const HloInstruction& instruction : m_module.computations[i].instructions) {
                if (!callsOf(m_module.computations[i], instruction, m_calls[i]))
                    return false;
            }
            for (const Call& call : m_calls[i])
                isCalled[call.computation] = true;
        }
        enum class State : std::uint8_t { New, Open, Done };
        std::vector<State> states(size, State::New);
        const auto visit = [&](std::size_t start) {
            std::vector<std::pair<std::size_t, std::size_t>> path = {{start, 0}};
            states[start] = State::Open;
            while (!path.empty()) {
                const std::size_t at = path.back().first;
                if (path.back().second == m_calls[at].size()) {
                    states[at] = State::Done;
                    m_order.push_back(at);
                    path.pop_back();
                    continue;
                }
                const Call& call = m_calls[at][path.back().second++];
                if (states[call.computation] == State::Open)
                    return fail("MW1361", *call.caller,
                        fmt::format("the computation {} calls itself", m_module.computations[call.computation].name));
                if (states[call.computation] == State::New) {
                    states[call.computation] = State::Open;
                    path.emplace_back(call.computation, 0);
                }
            }
            return true;
        };
        if (m_module.entry) {
            m_roots = {*m_module.entry};
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                if (!isCalled[i])
                    m_roots.push_back(i);
            }
            // Where all are called, one of them calls itself: the visit below finds it.
            for (std::size_t i = 0; i < size && m_roots.empty(); ++i)
                m_roots.push_back(i);
        }
        for (const std::size_t root : m_roots) {
            if (states[root] == State::New && !visit(root))
                return false;
        }
        std::reverse(m_order.begin(), m_order.end());
        return true;
    }

    static std::int64_t product(std::int64_t a, std::int64_t b)
    {
        std::int64_t result = 0;
        return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
    }

    static void add(std::int64_t& sum, std::int64_t more)
    {
        if (__builtin_add_overflow(sum, more, &sum))
            sum = INT64_MAX;
    }

    /// Lists the collectives of every computation that runs.
    bool counted()
    {
        struct Runs {
            std::int64_t count = 0;
            bool isUnknown = false;
            bool isConditional = false;
            std::set<const HloInstruction*> loops = {};
        };
        std::vector<Runs> runs(m_module.computations.size());
        for (const std::size_t root : m_roots)
            runs[root].count = 1;
        for (const std::size_t at : m_order) {
            const Runs here = runs[at];
            for (const Call& call : m_calls[at]) {
                Runs& called = runs[call.computation];
                add(called.count, product(here.count, call.turns));
                called.isUnknown = called.isUnknown || here.isUnknown || call.isUnknown;
                called.isConditional = called.isConditional || here.isConditional || call.isBranch;
                called.loops.insert(here.loops.begin(), here.loops.end());
                if (call.isUnknown)
                    called.loops.insert(call.caller);
            }
        }
        for (std::size_t i = 0; i < runs.size(); ++i) {
            for (const HloInstruction& instruction : m_module.computations[i].instructions) {
                m_result.beforePartitioning = m_result.beforePartitioning || isUnpartitioned(instruction);
                const KindRow* row = kindOf(instruction);
                if (row == nullptr || runs[i].count == 0)
                    continue;
                HloCollective collective;
                collective.count = runs[i].count;
                collective.isConditional = runs[i].isConditional;
                collective.isInUnknownLoop = runs[i].isUnknown;
                if (!read(*row, m_module.computations[i], instruction, collective))
                    return false;
                m_result.collectives.push_back(std::move(collective));
                m_offsets.push_back(instruction.offset);
                for (const HloInstruction* loop : runs[i].loops)
                    m_unknownLoops.emplace(loop->offset, loop->name);
                m_instructions.push_back(&instruction);
            }
        }
        return true;
    }

    /// Shardings are taken away when the partitioner is done; parameters and results may keep theirs.
    bool isUnpartitioned(const HloInstruction& instruction) const
    {
        const bool mayKeep = instruction.opcode == "parameter" || instruction.isRoot;
        const std::string_view target = instruction.find("custom_call_target");
        return !m_module.isScheduled && m_module.partitions > 1
            && ((!mayKeep && instruction.find("sharding").starts_with("{devices=")) || target == "\"Sharding\""
                || target == "\"SPMDFullToShardShape\"");
    }

    bool read(const KindRow& row, const HloComputation& computation, const HloInstruction& instruction, HloCollective& collective)
    {
        collective.kind = row.kind;
        collective.name = instruction.name;
        collective.isAsync
            = instruction.opcode.ends_with("-start") || instruction.opcode == "send" || computation.name.starts_with("async");
        metadata(instruction.find("metadata"), collective);
        if (row.kind == Kind::AllGather) {
            const HloShape& shape = instruction.shape;
            const bool hasBoth = instruction.opcode == "all-gather-start" && shape.isTuple && shape.elements.size() >= 2;
            collective.payloadBytes = hasBoth ? shape.elements[1].bytes : shape.bytes;
            return true;
        }
        for (const std::string_view name : instruction.operands) {
            const HloInstruction* operand = computation.find(name);
            if (operand == nullptr)
                return fail("MW1361", instruction,
                    fmt::format("%{} has the operand %{}, which {} does not define", instruction.name, name, computation.name));
            add(collective.payloadBytes, operand->shape.bytes);
            if (row.kind == Kind::RaggedAllToAll || instruction.opcode == "send"
                || (row.kind == Kind::CollectivePermute && instruction.operands.size() > 2))
                break; // the others say where the data goes
        }
        return true;
    }

    void metadata(std::string_view text, HloCollective& collective) const
    {
        const auto quoted = [&](std::string_view key) {
            const std::size_t at = text.find(key);
            if (at == std::string_view::npos)
                return std::string();
            const std::size_t start = at + key.size();
            std::size_t end = start;
            while (end < text.size() && text[end] != '"')
                end += text[end] == '\\' ? 2U : 1U;
            return std::string(text.substr(start, std::min(end, text.size()) - start));
        };
        const auto number = [&](std::string_view key) -> std::int64_t {
            const std::size_t at = text.find(key);
            if (at == std::string_view::npos)
                return 0;
            const std::string_view digits = text.substr(at + key.size());
            return parseInteger(digits.substr(0, digits.find_first_not_of("0123456789"))).value_or(0);
        };
        collective.operation = quoted("op_name=\"");
        collective.source = quoted("source_file=\"");
        if (!collective.source.empty())
            collective.source += fmt::format(":{}", number("source_line="));
        else if (const auto frame = m_module.frames.find(number("stack_frame_id=")); frame != m_module.frames.end())
            collective.source = frame->second;
    }

    static std::string_view groupsTextOf(Kind kind, const HloInstruction& instruction)
    {
        if (instruction.opcode == "send") {
            constexpr std::string_view kKey = "_xla_send_recv_source_target_pairs=";
            std::string_view pairs = instruction.find("frontend_attributes");
            pairs.remove_prefix(std::min(pairs.find(kKey) + kKey.size(), pairs.size()));
            if (pairs.starts_with('"'))
                pairs.remove_prefix(1);
            const std::size_t end = pairs.find("}}");
            return end == std::string_view::npos ? pairs : pairs.substr(0, end + 2);
        }
        return instruction.find(kind == Kind::CollectivePermute ? "source_target_pairs" : "replica_groups");
    }

    /// Finds the devices of the module, the mesh, and the groups of every collective.
    bool placed()
    {
        std::map<std::string_view, std::pair<Groups, std::optional<Mesh>>> texts;
        std::int64_t largest = 0;
        for (std::size_t i = 0; i < m_result.collectives.size(); ++i) {
            const Kind kind = m_result.collectives[i].kind;
            const std::string_view said = groupsTextOf(kind, *m_instructions[i]);
            if (said.empty() || texts.contains(said))
                continue;
            std::pair<Groups, std::optional<Mesh>> read;
            if (auto named = namedGroups(said))
                read = {std::move(named->groups), std::move(named->mesh)};
            else if (auto tiled = said.starts_with('[') ? tiledGroups(said) : listedGroups(said))
                read.first = *std::move(tiled);
            else
                return fail("MW1362", *m_instructions[i],
                    fmt::format("the groups of %{} cannot be read: {}", m_instructions[i]->name, said.substr(0, 80)),
                    "groups are {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=2,'y'=2] {'x'}");
            for (const auto& group : read.first) {
                for (const std::int64_t id : group)
                    largest = std::max(largest, id);
            }
            texts.emplace(said, std::move(read));
        }
        if (!countDevices(largest))
            return false;
        m_result.meshKnown = m_given.has_value();
        if (m_given)
            m_result.mesh = *m_given;
        for (const auto& [said, read] : texts) {
            if (!m_result.meshKnown && read.second && read.second->deviceCount() == m_result.devices) {
                m_result.mesh = *read.second;
                m_result.meshKnown = true;
            }
        }
        std::map<std::tuple<std::string_view, Ids, bool>, std::shared_ptr<const HloGroups>> known;
        for (std::size_t i = 0; i < m_result.collectives.size(); ++i) {
            HloCollective& collective = m_result.collectives[i];
            const HloInstruction& instruction = *m_instructions[i];
            const std::string_view said = groupsTextOf(collective.kind, instruction);
            const Ids ids = idsOf(collective.kind, instruction);
            const bool isPermute = collective.kind == Kind::CollectivePermute;
            auto& groups = known[{said, ids, isPermute}];
            if (!groups) {
                groups = groupsOf(instruction, said.empty() ? Groups() : texts.at(said).first, said, ids, isPermute);
                if (!groups)
                    return false;
            }
            collective.groups = groups;
        }
        return true;
    }

    bool countDevices(std::int64_t largest)
    {
        m_partitions = m_module.partitions;
        m_replicas = m_module.replicas;
        // Parts of dumps and texts written by hand do not say how many devices there are: as many as the groups name, or as the mesh has.
        if (!m_module.saysDevices)
            m_partitions = m_given ? m_given->deviceCount() : std::min(largest, kMostHloDevices) + 1;
        const std::int64_t devices = product(m_partitions, m_replicas);
        if (devices > kMostHloDevices)
            return m_problems.report("MW1362", 0,
                fmt::format("the module is for {} devices; the most that are read are {}", devices, kMostHloDevices));
        m_result.devices = devices;
        if (m_given && m_given->deviceCount() != devices)
            return m_problems.report("MW1363", 0,
                fmt::format("the mesh {} has {} devices; the module {} is for {}", m_given->text(), m_given->deviceCount(),
                    m_module.name, devices),
                "give the mesh of the program that was compiled");
        return true;
    }

    /// The devices that the ids of one group mean, one group for each copy.
    Groups onDevices(const std::vector<std::int64_t>& group, Ids ids) const
    {
        const std::int64_t copies = ids == Ids::Replicas && m_module.saysDevices ? m_partitions
            : ids == Ids::Partitions                                             ? m_replicas
                                                                                 : 1;
        Groups all;
        for (std::int64_t copy = 0; copy < copies; ++copy) {
            std::vector<std::int64_t> devices;
            for (const std::int64_t id : group) {
                if (ids == Ids::ReplicasOfAllPartitions && m_module.saysDevices) {
                    for (std::int64_t partition = 0; partition < m_partitions; ++partition)
                        devices.push_back(id * m_partitions + partition);
                } else if (ids == Ids::Replicas && m_module.saysDevices)
                    devices.push_back(id * m_partitions + copy);
                else
                    devices.push_back(ids == Ids::Partitions ? copy * m_partitions + id : id);
            }
            all.push_back(std::move(devices));
        }
        return all;
    }

    std::shared_ptr<const HloGroups> groupsOf(
        const HloInstruction& instruction, Groups listed, std::string_view said, Ids ids, bool isPermute)
    {
        const auto wrong = [&](std::string why) -> std::shared_ptr<const HloGroups> {
            fail("MW1362", instruction,
                fmt::format("the groups of %{} do not fit {} devices: {}", instruction.name, m_result.devices, why));
            return nullptr;
        };
        const std::int64_t idCount = !m_module.saysDevices || ids == Ids::Devices ? m_result.devices
            : ids == Ids::Partitions                                              ? m_partitions
                                                                                  : m_replicas;
        auto result = std::make_shared<HloGroups>();
        result->text = said;
        if (isPermute) {
            for (const auto& pair : listed) {
                if (pair.size() != 2)
                    return wrong("a pair of a permute does not have two devices");
            }
        } else if (listed.empty()) {
            listed.emplace_back(static_cast<std::size_t>(idCount));
            std::iota(listed.front().begin(), listed.front().end(), 0);
            result->text = fmt::format("all {}", m_result.devices);
        }
        std::vector<bool> seen(static_cast<std::size_t>(idCount), false);
        for (const auto& group : listed) {
            for (const std::int64_t id : group) {
                if (id < 0 || id >= idCount)
                    return wrong(fmt::format("{} is not among 0 to {}", id, idCount - 1));
                if (!isPermute && seen[static_cast<std::size_t>(id)])
                    return wrong(fmt::format("{} is in two groups", id));
                seen[static_cast<std::size_t>(id)] = true;
            }
        }
        for (const auto& group : listed) {
            for (auto& devices : onDevices(group, ids))
                result->groups.push_back(std::move(devices));
        }
        if (isPermute)
            result->groups = joinedBy(result->groups);
        std::erase_if(result->groups, [](const auto& group) { return group.empty(); });
        std::int64_t members = 0;
        bool areAlike = !result->groups.empty();
        for (const auto& group : result->groups) {
            result->size = std::max(result->size, static_cast<std::int64_t>(group.size()));
            members += static_cast<std::int64_t>(group.size());
            areAlike = areAlike && group.size() == result->groups.front().size();
        }
        if (m_result.meshKnown && areAlike && members == m_result.devices)
            result->axes = axesOf(result->groups, isPermute);
        return result;
    }

    /// A permute over axes may pass its groups in any order.
    std::optional<AxisRefs> axesOf(Groups groups, bool isPermute) const
    {
        if (isPermute) {
            for (auto& group : groups)
                std::sort(group.begin(), group.end());
        }
        return axesOfGroups(groups, m_result.mesh);
    }

    const HloModule& m_module;
    TextProblems m_problems;
    TextLines m_lines;
    const std::optional<Mesh>& m_given;
    HloCollectives m_result;
    std::vector<std::vector<Call>> m_calls; ///< of each computation
    std::vector<std::size_t> m_roots;
    std::vector<std::size_t> m_order; ///< callers first
    std::vector<std::size_t> m_offsets; ///< of the collectives
    std::vector<const HloInstruction*> m_instructions; ///< likewise
    std::map<std::size_t, std::string> m_unknownLoops; ///< by offset
    std::int64_t m_partitions = 1;
    std::int64_t m_replicas = 1;
};

} // namespace

const char* hloCollectiveName(HloCollectiveKind kind)
{
    return kKinds[static_cast<std::size_t>(kind)].name;
}

Result<HloCollectives> hloCollectives(
    const HloModule& module, std::string_view text, const std::string& file, const std::optional<Mesh>& mesh)
{
    return Collector(module, text, file, mesh).run();
}

} // namespace meshwright
