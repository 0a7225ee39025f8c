// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/tile_kernel.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>

namespace meshwright::tile {

namespace {

template <typename T>
void gather(T* out, const T* source, const Strides& strides, std::int64_t first, std::int64_t count)
{
    const std::size_t rank = strides.sizes.size();
    std::vector<std::int64_t> index(rank);
    std::int64_t at = 0;
    for (std::size_t dim = rank; dim-- > 0;) {
        index[dim] = first % strides.sizes[dim];
        first /= strides.sizes[dim];
        at += index[dim] * strides.steps[dim];
    }
    const std::int64_t innerSize = strides.sizes.back();
    const std::int64_t innerStep = strides.steps.back();
    while (count > 0) {
        const std::int64_t run = std::min(count, innerSize - index.back());
        if (innerStep == 0)
            std::fill_n(out, run, source[at]);
        else if (innerStep == 1)
            std::copy_n(source + at, run, out);
        else {
            for (std::int64_t i = 0; i < run; ++i)
                out[i] = source[at + i * innerStep];
        }
        out += run;
        count -= run;
        at += run * innerStep;
        index.back() += run;
        for (std::size_t dim = rank; dim-- > 0 && index[dim] == strides.sizes[dim];) {
            at -= strides.sizes[dim] * strides.steps[dim];
            index[dim] = 0;
            if (dim > 0) {
                ++index[dim - 1];
                at += strides.steps[dim - 1];
            }
        }
    }
}

void gatherBytes(
    std::byte* out, const std::byte* source, const Strides& strides, std::int64_t first, std::int64_t count, std::int64_t width)
{
    if (width == 1)
        gather(reinterpret_cast<std::uint8_t*>(out), reinterpret_cast<const std::uint8_t*>(source), strides, first, count);
    else if (width == 2)
        gather(reinterpret_cast<std::uint16_t*>(out), reinterpret_cast<const std::uint16_t*>(source), strides, first, count);
    else if (width == 4)
        gather(reinterpret_cast<std::uint32_t*>(out), reinterpret_cast<const std::uint32_t*>(source), strides, first, count);
    else
        gather(reinterpret_cast<std::uint64_t*>(out), reinterpret_cast<const std::uint64_t*>(source), strides, first, count);
}

bool overlap(const std::byte* a, std::int64_t aBytes, const std::byte* b, std::int64_t bBytes)
{
    return std::less<>{}(a, b + bBytes) && std::less<>{}(b, a + aBytes);
}

} // namespace

std::vector<std::byte*> TileKernel::places(Addresses addresses, Scratch& scratch) const
{
    std::vector<std::byte*> at(memories.size());
    for (std::size_t i = 0; i < memories.size(); ++i) {
        const Memory& memory = memories[i];
        if (memory.kind == Memory::Kind::Value)
            at[i] = addresses[memory.value.at()];
        else if (memory.kind == Memory::Kind::Table)
            at[i] = const_cast<std::byte*>(memory.table.data()); // never written
        else
            at[i] = scratch.allocate(memory.type.bytes());
    }
    return at;
}

void TileKernel::run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const
{
    std::vector<std::byte*> at = places(addresses, scratch);
    for (std::size_t i = 0; i < memories.size(); ++i)
        assert(at[i] != nullptr || memories[i].type.bytes() == 0);
    // An input whose place a result takes is safe only where both move along with the same tiles; else the input is saved first.
    for (std::size_t i = 0; i < memories.size(); ++i) {
        if (memories[i].writtenIn != kNone || memories[i].kind != Memory::Kind::Value)
            continue;
        for (std::size_t o = 0; o < memories.size(); ++o) {
            const Memory& written = memories[o];
            if (written.writtenIn == kNone || written.kind != Memory::Kind::Value
                || !overlap(at[i], memories[i].type.bytes(), at[o], written.type.bytes()))
                continue;
            bool inStep = at[i] == at[o] && byteSize(memories[i].type.dtype) == byteSize(written.type.dtype);
            for (std::size_t s = 0; s < stages.size() && inStep; ++s) {
                const bool readsLinearly = std::any_of(stages[s].inputs.begin(), stages[s].inputs.end(),
                    [&](std::size_t slot) { return stages[s].slots[slot].memory == i; });
                const bool gathers = std::any_of(
                    stages[s].gathers.begin(), stages[s].gathers.end(), [&](const Gather& g) { return g.memory == i; });
                inStep = !gathers && (!readsLinearly || s == written.writtenIn);
            }
            if (!inStep) {
                std::byte* saved = scratch.allocate(memories[i].type.bytes());
                std::memcpy(saved, at[i], static_cast<std::size_t>(memories[i].type.bytes()));
                at[i] = saved;
                break;
            }
        }
    }
    for (std::size_t s = 0; s < stages.size(); ++s)
        runStage(stages[s], s, at, scratch, stop, {0, stages[s].elements, kNone});
    scratch.reset();
}

void TileKernel::runStage(const TileStage& stage, std::size_t index, std::span<std::byte* const> at, Scratch& scratch,
    const StopFlag& stop, const Stretch& stretch) const
{
    if (stretch.first == stretch.last)
        return;
    std::byte* registers = scratch.allocate(stage.registerBytes);
    std::vector<std::byte*> base(stage.slots.size());
    std::vector<std::int64_t> advance(stage.slots.size(), 0); // bytes for each element
    std::vector<std::int64_t> origin(stage.slots.size(), 0); // the element that lies at the base
    for (std::size_t i = 0; i < stage.slots.size(); ++i) {
        const Slot& slot = stage.slots[i];
        base[i] = slot.memory == kNone ? registers + slot.offset : at[slot.memory];
        advance[i] = slot.memory == kNone ? 0 : slot.width;
        origin[i] = slot.memory != kNone && slot.memory == stretch.windowed ? stretch.first : 0;
    }
    // A result is computed in its place, unless that place is an operand which a later step still reads.
    std::vector<bool> deferred(stage.outputs.size(), true);
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
        const Output& output = stage.outputs[i];
        if (output.step == kNone || output.store != nullptr || memories[output.memory].writtenIn != index)
            continue;
        deferred[i] = std::any_of(stage.inputs.begin(), stage.inputs.end(),
            [&](std::size_t slot) { return base[slot] == at[output.memory] && stage.slots[slot].lastRead > output.step; });
        if (!deferred[i]) {
            base[output.slot] = at[output.memory];
            advance[output.slot] = stage.slots[output.slot].width;
        }
    }
    const auto gatherTile = [&](const Gather& g, std::int64_t first, std::int64_t count) {
        gatherBytes(base[g.slot], at[g.memory], g.strides, first, count, stage.slots[g.slot].width);
    };
    for (const Gather& g : stage.gathers) {
        const std::int64_t count = std::min(stage.tile, stage.elements);
        if (g.strides.isScalar())
            tileTable().fill(stage.slots[g.slot].width)(base[g.slot], at[g.memory], nullptr, nullptr, count);
        else if (g.once)
            gatherTile(g, 0, count);
    }

    std::vector<std::byte*> cursor = base;
    for (std::int64_t first = stretch.first; first < stretch.last && !stop.isSet();) {
        std::int64_t count = std::min(stage.tile, stretch.last - first);
        if (stage.runLength > 0)
            count = std::min(count, stage.runLength - first % stage.runLength);
        for (std::size_t i = 0; i < base.size(); ++i)
            cursor[i] = base[i] + advance[i] * (first - origin[i]);
        for (const Gather& g : stage.gathers) {
            if (g.direct) {
                std::int64_t rest = first;
                std::int64_t offset = 0;
                for (std::size_t dim = g.strides.sizes.size(); dim-- > 0; rest /= g.strides.sizes[dim])
                    offset += rest % g.strides.sizes[dim] * g.strides.steps[dim];
                cursor[g.slot] = at[g.memory] + offset * stage.slots[g.slot].width;
            } else if (!g.once) {
                gatherTile(g, first, count);
            }
        }
        const auto runStep = [&](const Step& step) {
            const auto operand
                = [&](std::size_t i) -> const std::byte* { return step.in[i] == kNone ? nullptr : cursor[step.in[i]]; };
            step.function(cursor[step.out], operand(0), operand(1), operand(2), count);
        };
        for (const Step& step : stage.loads)
            runStep(step);
        for (const Step& step : stage.steps)
            runStep(step);
        for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
            if (!deferred[i])
                continue;
            const Output& output = stage.outputs[i];
            const std::int64_t width = byteSize(memories[output.memory].type.dtype);
            std::byte* target = at[output.memory] + first * width;
            if (output.store != nullptr)
                output.store(target, cursor[output.slot], nullptr, nullptr, count);
            else if (target != cursor[output.slot])
                std::memcpy(target, cursor[output.slot], static_cast<std::size_t>(count * width));
        }
        first += count;
    }
}

} // namespace meshwright::tile
