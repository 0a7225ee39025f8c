// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_kernel.h"
#include "core/support/checked.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace meshwright {

namespace tile {

namespace {

Strides stridesOf(const Shape& source, const Shape& result, const std::vector<std::size_t>& dims)
{
    std::vector<std::int64_t> steps(result.size(), 0);
    std::int64_t step = 1;
    for (std::size_t i = source.size(); i-- > 0;) {
        if (source[i] != 1)
            steps[dims[i]] = step;
        step *= source[i];
    }
    Strides strides;
    for (std::size_t dim = 0; dim < result.size(); ++dim) {
        if (result[dim] == 1)
            continue;
        if (!strides.sizes.empty() && strides.steps.back() == steps[dim] * result[dim]) {
            strides.sizes.back() *= result[dim];
            strides.steps.back() = steps[dim];
        } else {
            strides.sizes.push_back(result[dim]);
            strides.steps.push_back(steps[dim]);
        }
    }
    return strides;
}

/// Compiles a chain of ops into stages.
class TileCompiler {
public:
    TileCompiler(const KernelSite& site, std::span<const OpId> ops, std::span<const ValueId> writes,
        const std::function<bool(ValueId)>& isInMemory)
        : m_site(site)
        , m_function(site.function)
        , m_isInMemory(isInMemory)
    {
        for (const OpId op : ops)
            m_inside.insert(m_inside.end(), m_function[op].results.begin(), m_function[op].results.end());
        for (const ValueId value : writes)
            m_isWritten[value] = true;
        for (const OpId op : ops)
            addOp(op);
        for (const ValueId value : writes)
            addOutput(value);
        finish();
    }

    std::unique_ptr<const TileKernel> take() { return std::move(m_kernel); }

private:
    struct Home {
        std::size_t stage = 0;
        std::size_t slot = 0;
        std::size_t step = kNone; ///< that computes it
    };

    const TensorType& typeOf(ValueId value) const { return m_function[value].type; }
    bool isInside(ValueId value) const { return std::find(m_inside.begin(), m_inside.end(), value) != m_inside.end(); }

    /// A stage whose result something needs.
    struct Needed {
        std::size_t stage = 0;
        bool wholly = false; ///< spread: the result is read only when the stage has made all of it
    };

    /// The stage that computes results of `shape` from what the stages in `needed` make. Results of one shape share a stage unless
    /// that would make two stages wait for each other, or one for its own end.
    std::size_t stageFor(const Shape& shape, const std::vector<Needed>& needed)
    {
        std::set<std::size_t> sources;
        for (const Needed& each : needed)
            sources.insert(each.stage);
        for (std::size_t i = stages().size(); i-- > 0;) {
            const bool fits = stages()[i].shape == shape && std::none_of(needed.begin(), needed.end(), [&](const Needed& source) {
                return source.stage == i ? source.wholly : waitsFor(source.stage, i);
            });
            if (fits) {
                m_sources[i].insert(sources.begin(), sources.end());
                m_sources[i].erase(i);
                return i;
            }
        }
        TileStage stage;
        stage.shape = shape;
        stage.elements = elementCount(shape);
        stages().push_back(std::move(stage));
        m_sources.push_back(std::move(sources));
        return stages().size() - 1;
    }

    bool waitsFor(std::size_t stage, std::size_t other) const
    {
        return m_sources[stage].contains(other)
            || std::any_of(
                m_sources[stage].begin(), m_sources[stage].end(), [&](std::size_t source) { return waitsFor(source, other); });
    }

    std::vector<TileStage>& stages() { return m_kernel->stages; }

    std::size_t addSlot(std::size_t stage, std::int64_t width, std::size_t memory)
    {
        stages()[stage].slots.push_back({width, memory, 0, 0});
        return stages()[stage].slots.size() - 1;
    }

    std::size_t addMemory(Memory memory)
    {
        m_kernel->memories.push_back(std::move(memory));
        return m_kernel->memories.size() - 1;
    }

    std::size_t valueMemory(ValueId value)
    {
        const auto [at, isNew] = m_valueMemory.try_emplace(value, 0);
        if (isNew) {
            Memory memory;
            memory.value = value;
            memory.type = typeOf(value);
            at->second = addMemory(std::move(memory));
        }
        return at->second;
    }

    std::size_t tableMemory(HostArray table)
    {
        Memory memory;
        memory.kind = Memory::Kind::Table;
        memory.type = table.type();
        memory.table = std::move(table);
        return addMemory(std::move(memory));
    }

    /// A result of an earlier stage that a later one reads goes through memory: its own, or a temporary.
    std::size_t throughMemory(ValueId value)
    {
        if (const auto known = m_spilled.find(value); known != m_spilled.end())
            return known->second;
        const Home home = m_homes.at(value);
        std::size_t memory = 0;
        if (m_isWritten.contains(value)) {
            memory = valueMemory(value);
        } else {
            Memory temporary;
            temporary.kind = Memory::Kind::Temporary;
            temporary.type = typeOf(value);
            memory = addMemory(std::move(temporary));
        }
        store(value, home, memory);
        m_spilled[value] = memory;
        return memory;
    }

    void store(ValueId value, const Home& home, std::size_t memory)
    {
        const DType dtype = typeOf(value).dtype;
        m_kernel->memories[memory].writtenIn = home.stage;
        TileStage& stage = stages()[home.stage];
        const bool shared
            = std::any_of(stage.outputs.begin(), stage.outputs.end(), [&](const Output& o) { return o.slot == home.slot; });
        const bool isCopy = shared || home.step == kNone;
        if (isCopy)
            stage.slots[home.slot].lastRead = kNone; // read at the end of the tile
        const Output output{home.slot, memory, isCopy ? kNone : home.step, isNarrow(dtype) ? tileTable().store(dtype) : nullptr};
        stage.outputs.insert(
            isCopy ? stage.outputs.begin() : stage.outputs.end(), output); // before a result can take the place of a source
    }

    void addOutput(ValueId value)
    {
        if (!m_spilled.contains(value))
            m_spilled[value] = throughMemory(value);
    }

    std::size_t addStep(std::size_t stage, TileStep function, Lane result, std::array<std::size_t, 3> in)
    {
        assert(function != nullptr);
        const std::size_t out = addSlot(stage, laneBytes(result), kNone);
        for (const std::size_t slot : in) {
            if (slot != kNone)
                stages()[stage].slots[slot].lastRead = stages()[stage].steps.size();
        }
        stages()[stage].steps.push_back({function, out, in});
        return out;
    }

    /// A narrow type's elements, widened to their lane.
    std::size_t widened(std::size_t stage, DType dtype, std::size_t slot)
    {
        if (!isNarrow(dtype))
            return slot;
        const std::size_t wide = addSlot(stage, laneBytes(laneOf(dtype)), kNone);
        stages()[stage].loads.push_back({tileTable().load(dtype), wide, {slot, kNone, kNone}});
        return wide;
    }

    /// After every op a narrow type's elements are rounded to what its memory would hold.
    std::size_t rounded(std::size_t stage, DType dtype, std::size_t slot)
    {
        if (!isNarrow(dtype))
            return slot;
        return reinterpreted(stage, dtype, dtype, slot);
    }

    /// The bits that `from` stores, read as `to`. Both have the same size.
    std::size_t reinterpreted(std::size_t stage, DType from, DType to, std::size_t slot)
    {
        if (isNarrow(from)) {
            const std::size_t bits = addStep(stage, tileTable().store(from), Lane::Pred, {slot, kNone, kNone});
            stages()[stage].slots[bits].width = byteSize(from);
            slot = bits;
        }
        if (isNarrow(to))
            return addStep(stage, tileTable().load(to), laneOf(to), {slot, kNone, kNone});
        return slot;
    }

    /// A slot whose elements come from `memory` (of element type `dtype`) by `strides`.
    std::size_t gathered(std::size_t stage, std::size_t memory, DType dtype, Strides strides)
    {
        if (strides.isLinear() && elementCount(m_kernel->memories[memory].type.shape) == stages()[stage].elements)
            return linear(stage, memory, dtype);
        const std::size_t slot = addSlot(stage, byteSize(dtype), kNone);
        stages()[stage].gathers.push_back({slot, memory, std::move(strides), false, false});
        return widened(stage, dtype, slot);
    }

    std::size_t linear(std::size_t stage, std::size_t memory, DType dtype)
    {
        const auto key = std::pair(stage, memory);
        if (const auto known = m_linear.find(key); known != m_linear.end())
            return known->second;
        const std::size_t slot = addSlot(stage, byteSize(dtype), memory);
        stages()[stage].inputs.push_back(slot);
        return m_linear[key] = widened(stage, dtype, slot);
    }

    static HostArray splatTable(DType dtype, const ConstantData& data)
    {
        const double value = std::holds_alternative<double>(data.value) ? std::get<double>(data.value) : 0.0;
        if (std::holds_alternative<double>(data.value))
            return HostArray::filled({dtype, {}}, value);
        const std::int64_t integer = std::get<std::int64_t>(data.value);
        if (dtype == DType::S64 || dtype == DType::U64) // may not fit a double
            return HostArray::fromBytes({dtype, {}}, std::as_bytes(std::span(&integer, 1)));
        return HostArray::filled({dtype, {}}, static_cast<double>(integer));
    }

    /// The slot of a leaf or of a broadcast of one in a stage; these are made wherever they are needed.
    std::optional<std::size_t> leafSlot(std::size_t stage, ValueId value)
    {
        const OpId producer = m_function[value].producer;
        if (!producer.valid())
            return std::nullopt;
        const Op& op = m_function[producer];
        const TensorType& type = typeOf(value);
        if (op.kind == OpKind::Constant) {
            const auto& constant = op.as<ConstantAttributes>();
            if (constant.data.isSplat())
                return gathered(
                    stage, tableMemory(splatTable(type.dtype, constant.data)), type.dtype, stridesOf({}, type.shape, {}));
            return linear(stage, constantMemory(value), type.dtype);
        }
        if (op.kind == OpKind::Iota) {
            const std::size_t dim = op.as<IotaAttributes>().dim;
            const std::int64_t start = m_site.pieceOf(value).start[dim];
            std::vector<double> numbers(static_cast<std::size_t>(type.shape[dim]));
            for (std::size_t i = 0; i < numbers.size(); ++i)
                numbers[i] = static_cast<double>(start + static_cast<std::int64_t>(i));
            HostArray table = HostArray::of({type.dtype, {type.shape[dim]}}, numbers);
            return gathered(stage, tableMemory(std::move(table)), type.dtype, stridesOf({type.shape[dim]}, type.shape, {dim}));
        }
        if (op.kind == OpKind::BroadcastInDim)
            return broadcastSlot(stage, op, type);
        return std::nullopt;
    }

    std::size_t constantMemory(ValueId value)
    {
        const auto& constant = m_function[m_function[value].producer].as<ConstantAttributes>();
        const auto& blob = *std::get<std::shared_ptr<const std::string>>(constant.data.value);
        const auto [at, isNew] = m_tables.try_emplace(value, 0);
        if (isNew)
            at->second = tableMemory(HostArray::fromBytes(constant.type, std::as_bytes(std::span(blob))));
        return at->second;
    }

    std::size_t broadcastSlot(std::size_t stage, const Op& op, const TensorType& type)
    {
        const ValueId source = op.operands[0];
        const TensorType& sourceType = typeOf(source);
        const auto& dims = op.as<BroadcastAttributes>().dims;
        const Strides strides = stridesOf(sourceType.shape, type.shape, dims);
        if (isReadFromMemory(source))
            return gathered(stage, valueMemory(source), type.dtype, strides);
        // A broadcast of something that is made in here: of a constant directly, of anything else through memory.
        const OpId producer = m_function[source].producer;
        if (m_function[producer].kind == OpKind::Constant) {
            const auto& data = m_function[producer].as<ConstantAttributes>().data;
            if (data.isSplat())
                return gathered(stage, tableMemory(splatTable(type.dtype, data)), type.dtype, stridesOf({}, type.shape, {}));
            return gathered(stage, constantMemory(source), type.dtype, strides);
        }
        return gathered(stage, throughMemory(source), type.dtype, strides);
    }

    bool isLeaf(ValueId value) const
    {
        const OpId producer = m_function[value].producer;
        if (!producer.valid())
            return false;
        const OpKind kind = m_function[producer].kind;
        return kind == OpKind::Constant || kind == OpKind::Iota || kind == OpKind::BroadcastInDim;
    }

    bool isReadFromMemory(ValueId value) const
    {
        return !isInside(value) && (m_isInMemory(value) || !m_function[value].producer.valid());
    }

    /// The stages whose results the computation of `value` reads from memory, or goes on with. Makes what is not made yet.
    void addNeeded(ValueId value, std::vector<Needed>& needed)
    {
        if (isReadFromMemory(value))
            return;
        const OpId producer = m_function[value].producer;
        const Op& op = m_function[producer];
        if (op.kind == OpKind::Constant || op.kind == OpKind::Iota)
            return;
        if (op.kind != OpKind::BroadcastInDim) {
            addOp(producer);
            needed.push_back({m_homes.at(value).stage});
            return;
        }
        const ValueId source = op.operands[0];
        if (isReadFromMemory(source) || m_function[m_function[source].producer].kind == OpKind::Constant)
            return;
        addOp(m_function[source].producer); // broadcast through memory
        needed.push_back({m_homes.at(source).stage, true});
    }

    /// The slot in `stage` that holds an operand, widened.
    std::size_t operandSlot(std::size_t stage, ValueId value)
    {
        if (isReadFromMemory(value))
            return linear(stage, valueMemory(value), typeOf(value).dtype);
        if (isLeaf(value)) { // made in every stage that needs it
            const auto key = std::pair(stage, value);
            if (const auto known = m_leaves.find(key); known != m_leaves.end())
                return known->second;
            return m_leaves[key] = *leafSlot(stage, value);
        }
        const Home home = m_homes.at(value);
        return home.stage == stage ? home.slot : linear(stage, throughMemory(value), typeOf(value).dtype);
    }

    void addOp(OpId id)
    {
        const Op& op = m_function[id];
        const ValueId result = op.results[0];
        if (m_homes.contains(result))
            return;
        const TensorType& type = typeOf(result);
        std::vector<Needed> needed;
        if (isLeaf(result)) {
            addNeeded(result, needed);
            const std::size_t stage = stageFor(type.shape, needed);
            m_homes[result] = {stage, operandSlot(stage, result), kNone};
            return;
        }
        for (const ValueId operand : op.operands)
            addNeeded(operand, needed);
        const std::size_t stage = stageFor(type.shape, needed);
        std::array<std::size_t, 3> in{kNone, kNone, kNone};
        for (std::size_t i = 0; i < op.operands.size(); ++i)
            in[i] = operandSlot(stage, op.operands[i]);
        const std::size_t before = stages()[stage].steps.size();
        const std::size_t slot = compute(stage, op, type.dtype, in);
        const std::size_t after = stages()[stage].steps.size();
        m_homes[result] = {stage, slot, after > before && stages()[stage].steps.back().out == slot ? after - 1 : kNone};
    }

    std::size_t compute(std::size_t stage, const Op& op, DType dtype, std::array<std::size_t, 3> in)
    {
        const TileTable& table = tileTable();
        const DType operandType = typeOf(op.operands[0]).dtype;
        const Lane lane = laneOf(operandType);
        switch (op.kind) {
        case OpKind::ShardingConstraint:
        case OpKind::PropagationBarrier:
            return in[0];
        case OpKind::Clamp: {
            const std::size_t raised
                = addStep(stage, table.op(OpKind::Maximum, operandType), laneOf(dtype), {in[0], in[1], kNone});
            return rounded(
                stage, dtype, addStep(stage, table.op(OpKind::Minimum, operandType), laneOf(dtype), {raised, in[2], kNone}));
        }
        case OpKind::Convert:
            return converted(stage, operandType, dtype, in[0]);
        case OpKind::BitcastConvert:
            return bitcast(stage, operandType, op.as<ConvertAttributes>().dtype, dtype, in[0]);
        case OpKind::Compare:
            return addStep(stage, table.compare(op.as<CompareAttributes>(), lane), Lane::Pred, in);
        case OpKind::Select:
            return addStep(stage, table.select(laneBytes(laneOf(dtype))), laneOf(dtype), in);
        case OpKind::ShiftRightLogical: // zeros come in, so the sign of narrow numbers may not be extended
            if (dtype == DType::S8 || dtype == DType::S16)
                return shiftedAs(dtype == DType::S8 ? DType::U8 : DType::U16, stage, op.kind, dtype, in);
            break;
        case OpKind::ShiftRightArithmetic: // the first bit comes in, which narrow unsigned numbers have not in front
            if (dtype == DType::U8 || dtype == DType::U16)
                return shiftedAs(dtype == DType::U8 ? DType::S8 : DType::S16, stage, op.kind, dtype, in);
            break;
        default:
            break;
        }
        std::size_t next = op.operands.size();
        forEachNumber(op.attributes, [&](const auto&, std::int64_t number) {
            in[next++] = gathered(
                stage, tableMemory(splatTable(DType::S32, {number})), DType::S32, stridesOf({}, stages()[stage].shape, {}));
        });
        return rounded(stage, dtype, addStep(stage, table.op(op.kind, operandType), laneOf(dtype), in));
    }

    std::size_t shiftedAs(DType bits, std::size_t stage, OpKind shift, DType dtype, const std::array<std::size_t, 3>& in)
    {
        const std::size_t shifted = addStep(stage, tileTable().op(shift, bits), laneOf(bits),
            {reinterpreted(stage, dtype, bits, in[0]), reinterpreted(stage, dtype, bits, in[1]), kNone});
        return reinterpreted(stage, bits, dtype, shifted);
    }

    std::size_t converted(std::size_t stage, DType from, DType to, std::size_t slot)
    {
        if (from == to)
            return slot;
        if (laneOf(from) != laneOf(to))
            slot = addStep(stage, tileTable().convert(laneOf(from), to), laneOf(to), {slot, kNone, kNone});
        return rounded(stage, to, slot);
    }

    /// `named` is the type that the op says. In the double-precision reference floating values are f64 on either side of it.
    std::size_t bitcast(std::size_t stage, DType from, DType named, DType result, std::size_t slot)
    {
        if (byteSize(from) != byteSize(named)) {
            assert(from == DType::F64);
            const DType single = byteSize(named) == 4 ? DType::F32 : DType::BF16;
            slot = converted(stage, from, single, slot);
            from = single;
        }
        return converted(stage, named, result, reinterpreted(stage, from, named, slot));
    }

    void finish()
    {
        std::vector<std::size_t> order;
        while (order.size() < stages().size()) {
            for (std::size_t i = 0; i < stages().size(); ++i) {
                const auto isDone
                    = [&](std::size_t stage) { return std::find(order.begin(), order.end(), stage) != order.end(); };
                if (!isDone(i) && std::all_of(m_sources[i].begin(), m_sources[i].end(), isDone))
                    order.push_back(i);
            }
        }
        std::vector<std::size_t> place(order.size());
        std::vector<TileStage> sorted;
        for (std::size_t i = 0; i < order.size(); ++i) {
            place[order[i]] = i;
            sorted.push_back(std::move(stages()[order[i]]));
        }
        stages() = std::move(sorted);
        for (Memory& memory : m_kernel->memories) {
            if (memory.writtenIn != kNone)
                memory.writtenIn = place[memory.writtenIn];
        }
        for (TileStage& stage : stages()) {
            chooseTile(stage);
            placeRegisters(stage);
        }
    }

    static void chooseTile(TileStage& stage)
    {
        const bool hasPatterns
            = std::any_of(stage.gathers.begin(), stage.gathers.end(), [](const Gather& g) { return !g.strides.isScalar(); });
        const std::int64_t row = stage.shape.empty() ? 1 : stage.shape.back();
        if (hasPatterns && row > 1 && stage.elements > kTile) {
            if (row >= kTile) {
                stage.runLength = row;
                stage.tile = ceilDiv(ceilDiv(row, ceilDiv(row, kTile)), 16) * 16;
            } else {
                stage.tile = kTile / row * row;
            }
        }
        for (Gather& g : stage.gathers) {
            const bool isSingleTile = stage.elements <= stage.tile;
            const std::int64_t period = g.strides.period();
            g.once = isSingleTile || g.strides.isScalar() || (stage.runLength == 0 && period > 0 && stage.tile % period == 0);
            g.direct
                = !g.once && g.strides.steps.back() == 1 && stage.runLength > 0 && g.strides.sizes.back() % stage.runLength == 0;
        }
    }

    /// Registers whose content is no longer needed are used again.
    static void placeRegisters(TileStage& stage)
    {
        std::vector<bool> pinned(stage.slots.size(), true);
        for (const Step& step : stage.steps)
            pinned[step.out] = false;
        for (const Output& output : stage.outputs)
            pinned[output.slot] = true;
        std::map<std::int64_t, std::vector<std::int64_t>> freeByWidth;
        const auto take = [&](Slot& slot) {
            auto& free = freeByWidth[slot.width];
            if (free.empty()) {
                slot.offset = stage.registerBytes;
                stage.registerBytes
                    += ceilDiv(std::min(stage.tile, std::max<std::int64_t>(stage.elements, 1)) * slot.width, 64) * 64;
            } else {
                slot.offset = free.back();
                free.pop_back();
            }
        };
        for (std::size_t i = 0; i < stage.slots.size(); ++i) {
            if (pinned[i] && stage.slots[i].memory == kNone)
                take(stage.slots[i]);
        }
        for (std::size_t i = 0; i < stage.steps.size(); ++i) {
            const Step& step = stage.steps[i];
            // The result may take the place of an operand that is read here for the last time, if it is as wide.
            for (std::size_t k = 0; k < step.in.size(); ++k) {
                const std::size_t slot = step.in[k];
                const bool again = std::find(step.in.begin(), step.in.begin() + static_cast<std::ptrdiff_t>(k), slot)
                    != step.in.begin() + static_cast<std::ptrdiff_t>(k);
                if (slot != kNone && !again && !pinned[slot] && stage.slots[slot].memory == kNone
                    && stage.slots[slot].lastRead == i)
                    freeByWidth[stage.slots[slot].width].push_back(stage.slots[slot].offset);
            }
            if (!pinned[step.out])
                take(stage.slots[step.out]);
        }
    }

    const KernelSite& m_site;
    const Function& m_function;
    const std::function<bool(ValueId)>& m_isInMemory;
    std::unique_ptr<TileKernel> m_kernel = std::make_unique<TileKernel>();
    std::vector<std::set<std::size_t>> m_sources; ///< for each stage: those whose results it reads from memory
    std::vector<ValueId> m_inside;
    std::map<ValueId, bool> m_isWritten;
    std::map<ValueId, Home> m_homes;
    std::map<ValueId, std::size_t> m_valueMemory;
    std::map<ValueId, std::size_t> m_tables;
    std::map<ValueId, std::size_t> m_spilled;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> m_linear;
    std::map<std::pair<std::size_t, ValueId>, std::size_t> m_leaves;
};

class TileStretchKernel final : public StretchKernel {
public:
    TileStretchKernel(std::unique_ptr<const TileKernel> kernel, ValueId windowed)
        : m_kernel(std::move(kernel))
    {
        // A scalar constant that is spread has a stage of its own, which stores nothing.
        while (m_stage + 1 < m_kernel->stages.size() && m_kernel->stages[m_stage].outputs.empty())
            ++m_stage;
        for (std::size_t i = 0; i < m_kernel->memories.size(); ++i) {
            const Memory& memory = m_kernel->memories[i];
            if (memory.kind == Memory::Kind::Value && memory.value == windowed)
                m_windowed = i;
        }
    }

    /// Patterns that repeat in every tile need whole tiles before the stretch.
    std::int64_t grain() const override
    {
        const TileStage& stage = m_kernel->stages[m_stage];
        const bool repeats = std::any_of(
            stage.gathers.begin(), stage.gathers.end(), [](const Gather& g) { return g.once && !g.strides.isScalar(); });
        return repeats ? stage.tile : 64;
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop, const Window& window) const override
    {
        std::vector<std::byte*> at = m_kernel->places(addresses, scratch);
        if (m_windowed != kNone)
            at[m_windowed] = const_cast<std::byte*>(window.data); // never written
        m_kernel->runStage(m_kernel->stages[m_stage], m_stage, at, scratch, stop, {window.first, window.last, m_windowed});
        scratch.reset();
    }

private:
    std::unique_ptr<const TileKernel> m_kernel;
    std::size_t m_stage = 0; ///< that stores the results
    std::size_t m_windowed = kNone;
};

} // namespace

} // namespace tile

std::unique_ptr<const Kernel> makeTileKernel(const KernelSite& site, std::span<const OpId> ops, std::span<const ValueId> writes,
    const std::function<bool(ValueId)>& isInMemory)
{
    return tile::TileCompiler(site, ops, writes, isInMemory).take();
}

std::unique_ptr<const StretchKernel> makeStretchKernel(const KernelSite& site, std::span<const OpId> ops,
    std::span<const ValueId> writes, const std::function<bool(ValueId)>& isInMemory, ValueId windowed)
{
    const auto isThere = [&](ValueId value) { return value == windowed || isInMemory(value); };
    return std::make_unique<tile::TileStretchKernel>(tile::TileCompiler(site, ops, writes, isThere).take(), windowed);
}

} // namespace meshwright
