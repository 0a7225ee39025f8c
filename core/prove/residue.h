// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// A number modulo the prime 2^61 - 1, below it.
using Residue = std::uint64_t;
inline constexpr Residue kPrime = (Residue{1} << 61) - 1;

/// Precondition: x < 2^64.
constexpr Residue reduced(std::uint64_t x)
{
    const std::uint64_t folded = (x & kPrime) + (x >> 61);
    return folded >= kPrime ? folded - kPrime : folded;
}

constexpr Residue residueOf(std::int64_t number)
{
    return number >= 0 ? reduced(static_cast<std::uint64_t>(number)) : kPrime - 1 - reduced(~static_cast<std::uint64_t>(number));
}

constexpr Residue plus(Residue a, Residue b)
{
    return reduced(a + b);
}

constexpr Residue minus(Residue a, Residue b)
{
    return reduced(a + kPrime - b);
}

constexpr Residue times(Residue a, Residue b)
{
    // By halves of 32 bits, as not every compiler has numbers of 128: 2^64 is 8, and 2^61 is 1.
    const std::uint64_t aHigh = a >> 32;
    const std::uint64_t aLow = a & 0xffffffff;
    const std::uint64_t bHigh = b >> 32;
    const std::uint64_t bLow = b & 0xffffffff;
    const std::uint64_t middle = reduced(aHigh * bLow) + reduced(aLow * bHigh); // times 2^32
    const Residue shifted = plus(reduced((middle << 32) & kPrime), reduced(middle >> 29));
    return plus(plus(reduced(aHigh * bHigh * 8), shifted), reduced(aLow * bLow));
}

/// Of 2 raised to a power: multiplication turns the 61 bits round.
constexpr Residue timesPowerOfTwo(Residue a, int power)
{
    const int turn = ((power % 61) + 61) % 61;
    return turn == 0 ? a : reduced(((a << turn) & kPrime) | (a >> (61 - turn)));
}

/// Hashes a list of words to a residue. Stands for the value of an unknown function: the words are the function's name, then its operands, and different lists
/// have independent, uniform residues but for a chance of 2^-61 each.
class Hash {
public:
    explicit Hash(std::uint64_t seed)
        : m_state(mixed(seed))
    {
    }

    Hash& add(std::uint64_t word)
    {
        m_state = mixed(m_state ^ mixed(word + kStep));
        return *this;
    }

    Residue residue() const { return reduced(mixed(m_state + kStep)); }

private:
    static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

    /// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 (variant 13 of its mixing functions).
    static constexpr std::uint64_t mixed(std::uint64_t x)
    {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }

    std::uint64_t m_state;
};

} // namespace meshwright
