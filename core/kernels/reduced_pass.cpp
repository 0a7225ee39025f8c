// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/host_array.h"
#include "core/kernels/kernel.h"
#include "core/kernels/tile_table.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace meshwright {

namespace {

/// Elements that are made and reduced at once: 256 of `reduceRow`'s blocks, whose partial result is a whole branch of its tree.
constexpr std::int64_t kStretch = std::int64_t{256} * 256;

class ReducedPassKernel final : public Kernel {
public:
    ReducedPassKernel(
        std::unique_ptr<const StretchKernel> pass, ValueId made, const TensorType& type, ReduceKind kind, ValueId result)
        : m_pass(std::move(pass))
        , m_made(made)
        , m_result(result)
        , m_elements(type.elements())
        , m_lane(laneOf(type.dtype))
        , m_kind(kind)
    {
    }

    void run(Addresses addresses, Scratch& scratch, const StopFlag& stop) const override
    {
        using Number = std::array<std::byte, sizeof(std::uint64_t)>;
        const std::int64_t width = laneBytes(m_lane);
        const auto reduce = tileTable().reduceRow(m_kind, m_lane);
        const auto combine = tileTable().combine(m_kind, m_lane);
        AlignedBytes stretch(kStretch * width);
        std::vector<std::byte*> places(addresses.begin(), addresses.end());
        alignas(64) std::array<Number, 64> waiting; // branches, the largest first, as in reduceRow
        alignas(64) Number sum;
        std::size_t height = 0;
        std::uint64_t branches = 0;
        for (std::int64_t first = 0; first < m_elements && !stop.isSet(); first += kStretch, ++branches) {
            const std::int64_t last = std::min(m_elements, first + kStretch);
            places[m_made.at()] = reinterpret_cast<std::byte*>( // so that element `first` comes to the stretch's begin
                reinterpret_cast<std::uintptr_t>(stretch.data()) - static_cast<std::uintptr_t>(first * width));
            m_pass->run(places, scratch, stop, {first, last, nullptr});
            reduce(sum.data(), stretch.data(), last - first);
            for (std::uint64_t carry = branches; (carry & 1U) != 0; carry >>= 1U)
                combine(sum.data(), waiting[--height].data(), sum.data(), nullptr, 1);
            waiting[height++] = sum;
        }
        if (height == 0)
            return;
        sum = waiting[--height];
        while (height > 0)
            combine(sum.data(), waiting[--height].data(), sum.data(), nullptr, 1);
        std::copy_n(sum.data(), width, addresses[m_result.at()]);
    }

private:
    std::unique_ptr<const StretchKernel> m_pass;
    ValueId m_made;
    ValueId m_result;
    std::int64_t m_elements;
    Lane m_lane;
    ReduceKind m_kind;
};

} // namespace

std::unique_ptr<const Kernel> makeReducedPassKernel(
    const KernelSite& site, OpId pass, OpId reduce, const std::function<bool(ValueId)>& isInMemory)
{
    const Function& function = site.function;
    const Op& made = function[pass];
    const Op& sum = function[reduce];
    if (!isElementwise(made.kind) || made.results.size() != 1 || sum.kind != OpKind::Reduce
        || sum.operands != std::vector<ValueId>{made.results.front()} || !isInMemory(sum.results.front()))
        return nullptr;
    const ValueId value = made.results.front();
    const TensorType& type = function[value].type;
    const bool isPlain = std::all_of(made.operands.begin(), made.operands.end(),
        [&](ValueId operand) { return isInMemory(operand) && function[operand].type.shape == type.shape; });
    if (!isPlain || laneType(laneOf(type.dtype)) != type.dtype || type.elements() <= kStretch
        || function[sum.results.front()].type.elements() != 1)
        return nullptr;
    return std::make_unique<ReducedPassKernel>(
        makeStretchKernel(site, std::span(&pass, 1), std::span(&value, 1), isInMemory, ValueId{}), value, type,
        sum.as<ReduceAttributes>().kind, sum.results.front());
}

} // namespace meshwright
