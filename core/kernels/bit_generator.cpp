// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/kernels/strides.h"
#include "core/program/other_op.h"
#include "core/support/checked.h"
#include "core/support/philox.h"
#include "core/support/threefry.h"

#include <algorithm>
#include <cstring>

namespace meshwright {

namespace {

using RandomWords = std::array<std::uint32_t, 4>;

/// `rng_bit_generator`: bits of a counter, and the counter behind the last one used. StableHLO leaves both to the implementation; these are XLA's.
/// The state is a key, then the counter: one word of 64 bits for Threefry; for Philox two (the lower first), or one whose upper half is the key.
/// The same element of the whole array gets the same bits on whichever device it lies.
/// Source: openxla/xla, xla/hlo/builder/lib/prng.cc and xla/service/rng_bit_generator_expander.cc.
class BitGeneratorKernel final : public Kernel {
public:
    BitGeneratorKernel(const KernelSite& site, const Op& op, bool isPhilox)
        : m_state(op.operands[0])
        , m_newState(op.results[0])
        , m_bits(op.results[1])
        , m_shape(site.function[m_bits].type.shape)
        , m_piece(site.pieceOf(m_bits))
        , m_width(byteSize(site.function[m_bits].type.dtype))
        , m_stateSize(static_cast<std::size_t>(site.function[m_state].type.shape[0]))
        , m_isPhilox(isPhilox)
        , m_counted(m_piece.whole)
    {
        if (isPhilox || m_width == 8 || m_counted.empty())
            return;
        // Both words of a Threefry block lie side by side along the first even dimension, or else the largest.
        const auto isEven = [](std::int64_t size) { return size % 2 == 0; };
        auto paired = std::find_if(m_counted.begin(), m_counted.end(), isEven);
        if (paired == m_counted.end())
            paired = std::max_element(m_counted.begin(), m_counted.end());
        m_paired = static_cast<std::size_t>(paired - m_counted.begin());
        *paired = ceilDiv(*paired, std::int64_t{2});
    }

    void run(Addresses addresses, Scratch&, const StopFlag& stop) const override
    {
        std::array<std::uint64_t, 3> state{};
        std::memcpy(state.data(), addresses[m_state.at()], m_stateSize * 8);
        const std::array<std::uint64_t, 2> counter = m_stateSize == 3 ? std::array{state[1], state[2]}
            : m_isPhilox                                              ? std::array{state[1], state[0]}
                                                                      : std::array{state[1], std::uint64_t{0}};
        const Shape strides = stridesOf(m_counted);
        const std::int64_t total = elementCount(m_shape);
        const std::uint64_t perBlock = 16 / std::max<std::uint64_t>(4, static_cast<std::uint64_t>(m_width)); // of Philox
        std::uint64_t last = 0;
        RandomWords block = blockAt(state[0], counter, last);
        std::byte* out = addresses[m_bits.at()];
        for (std::int64_t i = 0; i < total; ++i, out += m_width) {
            if (i % 1024 == 0 && stop.isSet())
                return;
            std::uint64_t flat = 0; // a padded shard reaches beyond the whole; what is there does not matter
            std::size_t word = 0;
            for (std::int64_t rest = i, dim = std::ssize(m_shape) - 1; dim >= 0; --dim) {
                const auto d = static_cast<std::size_t>(dim);
                std::int64_t at = rest % m_shape[d] + m_piece.start[d];
                rest /= m_shape[d];
                if (d == m_paired) {
                    word = static_cast<std::size_t>(at % 2);
                    at /= 2;
                }
                flat += static_cast<std::uint64_t>(at * strides[d]);
            }
            if (m_isPhilox) {
                word = static_cast<std::size_t>(flat % perBlock * 4 / perBlock);
                flat /= perBlock;
            }
            if (flat != last)
                block = blockAt(state[0], counter, last = flat);
            // The lower word first; a narrow element is the lower part of a word.
            const std::uint64_t bits = block[word] | std::uint64_t{block[(word + 1) % 4]} << 32;
            std::memcpy(out, &bits, static_cast<std::size_t>(m_width));
        }
        const std::uint64_t all = static_cast<std::uint64_t>(elementCount(m_isPhilox ? m_piece.whole : m_counted));
        const std::array<std::uint64_t, 2> next
            = plus(counter, m_isPhilox ? all / perBlock + (all % perBlock != 0 ? 1U : 0U) : all);
        std::copy_n(next.begin(), m_stateSize - 1, state.begin() + 1);
        std::memcpy(addresses[m_newState.at()], state.data(), m_stateSize * 8);
    }

private:
    static std::array<std::uint64_t, 2> plus(std::array<std::uint64_t, 2> counter, std::uint64_t blocks)
    {
        counter[0] += blocks;
        counter[1] += counter[0] < blocks ? 1U : 0U;
        return counter;
    }

    static std::array<std::uint32_t, 2> halves(std::uint64_t number)
    {
        return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
    }

    RandomWords blockAt(std::uint64_t key, const std::array<std::uint64_t, 2>& counter, std::uint64_t number) const
    {
        const auto [low, high] = plus(counter, number);
        if (m_isPhilox)
            return philox4x32(halves(key), {halves(low)[0], halves(low)[1], halves(high)[0], halves(high)[1]});
        const RandomKey words = threefry2x32(halves(key), halves(low));
        return {words[0], words[1]};
    }

    ValueId m_state;
    ValueId m_newState;
    ValueId m_bits;
    Shape m_shape; ///< of the bits on this device
    PieceOfWhole m_piece;
    std::int64_t m_width; ///< bytes of an element
    std::size_t m_stateSize;
    bool m_isPhilox;
    Shape m_counted; ///< what the counter counts: the whole array's elements, or pairs of them
    std::size_t m_paired = static_cast<std::size_t>(-1); ///< the dimension of these pairs
};

} // namespace

std::unique_ptr<const Kernel> makeBitGeneratorKernel(const KernelSite& site, OpId id)
{
    const Op& op = site.function[id];
    const TensorType& state = site.function[op.operands[0]].type;
    const TensorType& bits = site.function[op.results[1]].type;
    const std::string_view algorithm = wordAt(op.as<OtherAttributes>().attributes, "rng_algorithm");
    const bool isThreefry = algorithm == "THREE_FRY";
    const bool isStateGood
        = state.dtype == DType::U64 && state.shape.size() == 1 && (state.shape[0] == 2 || (state.shape[0] == 3 && !isThreefry));
    const bool areBitsGood
        = isInteger(bits.dtype) && isComputable(bits.dtype); // evaluated in double, floating numbers have others
    if (algorithm.empty() || !isStateGood || !areBitsGood)
        return nullptr;
    return std::make_unique<BitGeneratorKernel>(site, op, !isThreefry);
}

} // namespace meshwright
