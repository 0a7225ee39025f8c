// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtTest>

#include <initializer_list>
#include <random>
#include <vector>

namespace meshwright::tests {

/// A seed that is another each time; MESHWRIGHT_SEED in the environment takes its place, to see again what it showed.
inline quint64 freshSeed()
{
    return qEnvironmentVariableIsSet("MESHWRIGHT_SEED") ? qEnvironmentVariable("MESHWRIGHT_SEED").toULongLong()
                                                        : quint64{std::random_device()()};
}

/// `count` seeds from the first one on, and a quarter as many fresh ones, which are printed.
inline std::vector<std::uint32_t> seedRange(std::uint32_t first, std::uint32_t count)
{
    std::vector<std::uint32_t> seeds(count + (count + 3) / 4);
    const auto fresh = static_cast<std::uint32_t>(freshSeed());
    qInfo("fresh seeds from %u", fresh);
    for (std::uint32_t i = 0; i < seeds.size(); ++i)
        seeds[i] = i < count ? first + i : fresh + i - count;
    return seeds;
}

/// The rows of a test that draws at random, whose column is `seed`: the given seeds, and a fresh one, which stands in its row's name.
inline void addSeeds(std::initializer_list<quint64> seeds)
{
    QTest::addColumn<quint64>("seed");
    for (const quint64 seed : seeds)
        QTest::addRow("seed %llu", seed) << seed;
    const quint64 fresh = freshSeed();
    QTest::addRow("fresh seed %llu", fresh) << fresh;
}

} // namespace meshwright::tests
