// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/manual_import.h"

#include "core/program/builder.h"
#include "core/program/other_op.h"
#include "core/program/shape_rules.h"
#include "core/program/transform.h"
#include "core/sharding/tile_assignment.h"
#include "core/support/text.h"
#include "core/text/parser.h"
#include "core/text/tile_import.h"

#include <boost/iterator/counting_iterator.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace meshwright {

namespace {

constexpr std::string_view kEnter = "SPMDFullToShardShape";
constexpr std::string_view kLeave = "SPMDShardToFullShape";
constexpr std::string_view kSharding = "Sharding";

/// What a value of a block is made of.
enum class Origin : std::uint8_t {
    Nothing, ///< constants, iotas, the device's id, and what is made of them
    Wholes,
    Pieces,
};

std::string_view targetOf(const Op& op)
{
    const auto* other = std::get_if<OtherAttributes>(&op.attributes);
    return other == nullptr ? std::string_view() : callTarget(*other);
}

bool isCall(const Op& op, std::string_view target)
{
    return op.operands.size() == 1 && op.results.size() == 1 && targetOf(op) == target;
}

bool isBorder(const Op& op)
{
    return isCall(op, kEnter) || isCall(op, kLeave);
}

/// The ops of one shard_map, in the block's order.
struct Region {
    std::vector<OpId> enters;
    std::vector<OpId> leaves;
    std::vector<OpId> inside;
};

class BlockImport {
public:
    BlockImport(Function& function, BlockId block, const ManualImport& import)
        : m_function(function)
        , m_block(block)
        , m_import(import)
        , m_mesh(import.meshes[static_cast<std::size_t>(import.mesh)].mesh)
    {
    }

    void run()
    {
        const std::vector<OpId> ops = m_function[m_block].ops;
        if (std::any_of(ops.begin(), ops.end(), [&](OpId id) { return isBorder(m_function[id]); })) {
            m_origin.assign(m_function.values.size(), Origin::Wholes);
            m_region.assign(m_function.values.size(), kNone);
            m_joined = boost::disjoint_sets_with_storage<>(ops.size());
            for (const OpId id : ops)
                classify(id);
            for (const ValueId result : m_function[m_block].results) {
                if (m_origin[result.at()] == Origin::Pieces)
                    spoil(m_region[result.at()], m_function[result].producer,
                        "a piece leaves the block without @SPMDShardToFullShape");
            }
            for (const auto& [root, region] : regions()) {
                if (!isSpoilt(root))
                    build(region);
            }
        }
        for (const OpId id : std::vector<OpId>(m_function[m_block].ops)) {
            if (m_function[id].kind == OpKind::Computation)
                continue;
            for (const BlockId body : std::vector<BlockId>(m_function[id].bodies))
                BlockImport(m_function, body, m_import).run();
        }
    }

private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    // ---- which ops belong together

    bool isSpoilt(std::size_t region)
    {
        return std::any_of(m_spoilt.begin(), m_spoilt.end(),
            [&](std::size_t each) { return m_joined.find_set(each) == m_joined.find_set(region); });
    }

    /// Says why the region of an op stays as it is; once for each.
    void spoil(std::size_t region, OpId op, const std::string& why)
    {
        if (isSpoilt(region))
            return;
        m_spoilt.push_back(region);
        if (!op.valid())
            return;
        m_import.problems.warn("MW1356", m_import.offsets[op.at()],
            fmt::format("this shard_map in the form before Shardy is not understood: {}", why), kPrintWithShardy);
    }

    void classify(OpId id)
    {
        const Op& op = m_function[id];
        const bool leaves = isCall(op, kLeave);
        Origin made = op.operands.empty() && op.bodies.empty() ? Origin::Nothing : Origin::Wholes;
        std::size_t region = kNone;
        if (isCall(op, kEnter)) {
            made = Origin::Pieces;
            region = m_regions++;
            if (const ValueId operand = op.operands.front(); m_origin[operand.at()] == Origin::Pieces) {
                m_joined.union_set(region, m_region[operand.at()]);
                spoil(region, id, "a piece is cut once more");
            }
        } else {
            bool anyWhole = false;
            for (const ValueId operand : op.operands) {
                anyWhole = anyWhole || m_origin[operand.at()] == Origin::Wholes;
                if (m_origin[operand.at()] != Origin::Pieces)
                    continue;
                if (region != kNone)
                    m_joined.union_set(region, m_region[operand.at()]);
                region = m_region[operand.at()];
            }
            if (leaves && region == kNone && !anyWhole)
                region = m_regions++; // of what each device makes from nothing
            if (region != kNone && anyWhole)
                spoil(region, id, fmt::format("{} takes a piece and a whole array", opName(op)));
            if (region != kNone)
                made = leaves ? Origin::Wholes : Origin::Pieces;
            else if (!op.operands.empty() && !anyWhole)
                made = Origin::Nothing;
        }
        if (region != kNone)
            m_members.emplace_back(region, id);
        for (const ValueId result : op.results) {
            m_origin[result.at()] = made;
            m_region[result.at()] = region;
        }
    }

    std::map<std::size_t, Region> regions()
    {
        const boost::counting_iterator<std::size_t> first(0), end(m_regions);
        m_joined.compress_sets(first, end);
        m_joined.normalize_sets(first, end); // the first one stands for those that are joined
        std::map<std::size_t, Region> regions;
        for (const auto& [member, id] : m_members) {
            Region& region = regions[m_joined.find_set(member)];
            const Op& op = m_function[id];
            (isCall(op, kEnter) ? region.enters : isCall(op, kLeave) ? region.leaves : region.inside).push_back(id);
        }
        return regions;
    }

    // ---- what the strings say

    std::optional<TileSharding> tilesOf(const Op& op) const
    {
        const KeptAttribute* attribute = findAttribute(op.as<OtherAttributes>().attributes, "mhlo.sharding");
        if (attribute == nullptr || attribute->text.size() < 2 || attribute->text.front() != '"')
            return std::nullopt;
        const auto parsed = parseTileSharding(unescaped(attribute->text));
        return parsed ? std::optional(*parsed) : std::nullopt;
    }

    /// The sharding over the mesh that the op's string says for an array of this rank.
    std::optional<NamedTiles> namedOf(const Op& op, std::size_t rank) const
    {
        const auto tiles = tilesOf(op);
        if (!tiles || tiles->kind == TileKind::Manual)
            return std::nullopt;
        auto named = fromTiles(*tiles, rank, m_mesh);
        if (!named)
            return std::nullopt;
        named->sharding.mesh = m_import.mesh;
        openUnspecified(op, named->sharding);
        return *std::move(named);
    }

    /// `unspecified_dims=[0,1]`: propagation may split these along the axes that are not manual.
    static void openUnspecified(const Op& op, TensorSharding& sharding)
    {
        constexpr std::string_view kOpen = "unspecified_dims=[";
        const KeptAttribute* config = findAttribute(op.as<OtherAttributes>().attributes, "backend_config");
        const std::size_t at = config == nullptr ? std::string::npos : config->text.find(kOpen);
        if (at == std::string::npos)
            return;
        const std::size_t start = at + kOpen.size();
        for (const std::string& dim : split(config->text.substr(start, config->text.find(']', start) - start), ',')) {
            const auto index = parseInteger(trimmed(dim));
            if (index && *index >= 0 && *index < static_cast<std::int64_t>(sharding.dims.size()))
                sharding.dims[static_cast<std::size_t>(*index)].open = true;
        }
    }

    /// The axes that a string makes manual: all, or those of its subgroup.
    std::optional<std::vector<std::int32_t>> manualAxesOf(const Op& op) const
    {
        const auto tiles = tilesOf(op);
        std::vector<std::int32_t> axes(m_mesh.axes().size());
        std::iota(axes.begin(), axes.end(), std::int32_t{0});
        if (tiles && tiles->kind == TileKind::Manual)
            return axes;
        const auto named = namedOf(op, m_function[op.results.front()].type.shape.size());
        if (!named || named->manual.empty())
            return std::nullopt;
        axes.clear();
        for (const AxisRef& axis : named->manual) {
            if (axis != wholeAxis(m_mesh, static_cast<std::size_t>(axis.axis)))
                return std::nullopt;
            axes.push_back(axis.axis);
        }
        std::sort(axes.begin(), axes.end());
        return axes;
    }

    /// How a whole array lies before it is cut: what a constraint right before says, or the argument that it is.
    std::optional<TensorSharding> layoutOf(ValueId whole) const
    {
        const Value& value = m_function[whole];
        if (value.producer.valid() && m_function[value.producer].kind == OpKind::ShardingConstraint)
            return m_function[value.producer].as<ConstraintAttributes>().sharding;
        return value.sharding;
    }

    // ---- the computation

    /// What the region is called and how its arrays lie; nothing, and said, when that cannot be told.
    std::optional<ComputationAttributes> attributesOf(const Region& region)
    {
        ComputationAttributes made;
        const auto refuse = [&](OpId op, const std::string& why) {
            m_import.problems.warn("MW1356", m_import.offsets[op.at()],
                fmt::format("this shard_map in the form before Shardy is not understood: {}", why), kPrintWithShardy);
            return std::nullopt;
        };
        if (region.leaves.empty())
            return refuse(region.enters.front(), "no @SPMDShardToFullShape gives its results back");
        std::optional<std::vector<std::int32_t>> manual;
        for (const OpId id : region.enters.empty() ? region.leaves : region.enters) {
            std::optional<std::vector<std::int32_t>> axes;
            if (!region.enters.empty()) {
                axes = manualAxesOf(m_function[id]);
            } else {
                const OpId before = m_function[m_function[id].operands.front()].producer;
                const bool says = before.valid() && isCall(m_function[before], kSharding);
                axes = says ? manualAxesOf(m_function[before]) : std::nullopt;
            }
            if (!axes)
                return refuse(id, "its manual axes are not given by {manual} or last_tile_dims={manual, ..}");
            if (manual && *manual != *axes)
                return refuse(id, "not all its operands have the same manual axes");
            manual = axes;
        }
        made.manualAxes = *manual;
        for (const OpId id : region.enters) {
            const Op& op = m_function[id];
            auto layout = layoutOf(op.operands.front());
            const TensorType& whole = m_function[op.operands.front()].type;
            const TensorType& piece = m_function[op.results.front()].type;
            if (!layout && whole == piece) {
                layout = TensorSharding::replicatedOf(whole.shape.size());
                layout->mesh = m_import.mesh;
            }
            if (!layout)
                return refuse(id, "no mhlo.sharding states the sharding of the array");
            openUnspecified(op, *layout);
            if (manualPiece(whole, *layout, made.manualAxes) != std::optional(piece))
                return refuse(id, fmt::format("its sharding does not make {} of {}", typeText(piece), typeText(whole)));
            made.inShardings.push_back(*std::move(layout));
        }
        for (const OpId id : region.leaves) {
            const Op& op = m_function[id];
            const TensorType& whole = m_function[op.results.front()].type;
            const TensorType& piece = m_function[op.operands.front()].type;
            const auto named = namedOf(op, whole.shape.size());
            if (!named || manualPiece(whole, named->sharding, made.manualAxes) != std::optional(piece))
                return refuse(id, fmt::format("its sharding does not make {} of {}", typeText(whole), typeText(piece)));
            made.outShardings.push_back(named->sharding);
        }
        return made;
    }

    void build(const Region& region)
    {
        const std::vector<OpId> ops = m_function[m_block].ops;
        const auto placeOf = [&](OpId id) { return std::find(ops.begin(), ops.end(), id) - ops.begin(); };
        auto attributes = attributesOf(region);
        if (!attributes)
            return;
        const OpId first = region.leaves.front();
        if (!region.enters.empty() && placeOf(region.enters.back()) > placeOf(first)) {
            m_import.problems.warn("MW1356", m_import.offsets[region.enters.back().at()],
                "this shard_map in the form before Shardy is not understood: a piece is cut after one that is put back",
                kPrintWithShardy);
            return;
        }
        const std::set<OpId> copies = madeFromNothing(region);
        const Function source = copies.empty() ? Function() : m_function; // copies are made from it
        std::vector<ValueId> mapping(m_function.values.size());
        std::vector<ValueId> operands;
        std::vector<TensorType> pieces;
        for (const OpId id : region.enters) {
            operands.push_back(m_function[id].operands.front());
            pieces.push_back(m_function[m_function[id].results.front()].type);
        }
        Builder builder(m_function);
        builder.setPhase(m_function[first].phase);
        builder.setBlock(m_block);
        const OpId computation = builder.beginOp(OpKind::Computation, operands, *std::move(attributes));
        const std::vector<ValueId> arguments = builder.beginBody(computation, pieces);
        const BlockId body = builder.block();
        for (std::size_t i = 0; i < region.enters.size(); ++i)
            mapping[m_function[region.enters[i]].results.front().at()] = arguments[i];

        const std::set<OpId> inside(region.inside.begin(), region.inside.end());
        for (const OpId id : ops) {
            if (copies.contains(id)) {
                copyOp(builder, source, id, mapping);
                m_import.offsets.resize(m_function.ops.size(), m_import.offsets[id.at()]);
                m_import.unneeded.insert(m_import.unneeded.end(), source[id].results.begin(), source[id].results.end());
            } else if (inside.contains(id)) {
                move(id, body, mapping);
            }
        }
        std::vector<ValueId> yielded;
        std::vector<TensorType> results;
        for (const OpId id : region.leaves) {
            yielded.push_back(mapping[m_function[id].operands.front().at()]);
            results.push_back(m_function[m_function[id].results.front()].type);
        }
        builder.setResults(yielded);
        const std::vector<ValueId> made = builder.endOp(computation, results);
        m_import.offsets.resize(m_function.ops.size(), m_import.offsets[first.at()]);
        for (std::size_t i = 0; i < made.size(); ++i) {
            const ValueId before = m_function[region.leaves[i]].results.front();
            m_function[made[i]].name = m_function[before].name;
            replaceUses(m_function, before, made[i]);
        }
        std::vector<OpId>& kept = m_function[m_block].ops;
        kept.pop_back(); // the computation, which goes to its place
        std::replace(kept.begin(), kept.end(), first, computation);
        std::erase_if(kept, [&](OpId id) {
            return inside.contains(id) || std::find(region.enters.begin(), region.enters.end(), id) != region.enters.end()
                || std::find(region.leaves.begin(), region.leaves.end(), id) != region.leaves.end();
        });
    }

    /// The ops that make what the region uses from nothing.
    std::set<OpId> madeFromNothing(const Region& region) const
    {
        std::set<OpId> ops;
        const auto add = [&](const auto& self, ValueId value) -> void {
            const OpId producer = m_function[value].producer;
            if (m_origin[value.at()] != Origin::Nothing || !producer.valid() || !ops.insert(producer).second)
                return;
            for (const ValueId operand : m_function[producer].operands)
                self(self, operand);
        };
        for (const auto* list : {&region.inside, &region.leaves}) {
            for (const OpId id : *list) {
                for (const ValueId operand : m_function[id].operands)
                    add(add, operand);
            }
        }
        return ops;
    }

    /// Moves an op into the body; what is said of how pieces lie is left out, or becomes a constraint along the other axes.
    void move(OpId id, BlockId body, std::vector<ValueId>& mapping)
    {
        Op& op = m_function[id];
        for (ValueId& operand : op.operands)
            operand = mapping[operand.at()];
        if (isCall(op, kSharding)) {
            const auto named = namedOf(op, m_function[op.results.front()].type.shape.size());
            if (!named || named->sharding.isReplicated()) {
                mapping[op.results.front().at()] = op.operands.front();
                return;
            }
            op.kind = OpKind::ShardingConstraint;
            op.attributes = ConstraintAttributes{named->sharding, "mhlo.sharding"};
            op.kept = nullptr;
            m_function[op.results.front()].sharding = named->sharding;
            m_function[op.results.front()].annotation = "mhlo.sharding";
        }
        op.block = body;
        for (const ValueId result : op.results) {
            m_function[result].block = body;
            mapping[result.at()] = result;
        }
        m_function[body].ops.push_back(id);
    }

    Function& m_function;
    BlockId m_block;
    const ManualImport& m_import;
    const Mesh& m_mesh;
    std::vector<Origin> m_origin; ///< by value
    std::vector<std::size_t> m_region; ///< by value
    std::size_t m_regions = 0;
    boost::disjoint_sets_with_storage<> m_joined; ///< regions that are one
    std::vector<std::pair<std::size_t, OpId>> m_members;
    std::vector<std::size_t> m_spoilt;
};

} // namespace

void importManualComputations(Function& function, const ManualImport& import)
{
    BlockImport(function, BlockId(std::int32_t{0}), import).run();
}

} // namespace meshwright
