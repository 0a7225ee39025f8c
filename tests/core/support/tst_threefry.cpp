// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/threefry.h"
#include "tests/test_class.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tst_threefry {

using namespace meshwright;

class TestThreefry : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void knownAnswers_data();
    void knownAnswers();
    void legacySplit();
    void legacyWords();
    void partitionable();
    void fold();
    void permutation();
    void permutationSortsByWords();
};

// The known answers of Random123 (kat_vectors) for threefry2x32 with 20 rounds.
void TestThreefry::knownAnswers_data()
{
    QTest::addColumn<RandomKey>("key");
    QTest::addColumn<RandomKey>("counter");
    QTest::addColumn<RandomKey>("expected");

    QTest::newRow("zeros") << RandomKey{0, 0} << RandomKey{0, 0} << RandomKey{0x6b200159, 0x99ba4efe};
    QTest::newRow("ones") << RandomKey{0xffffffff, 0xffffffff} << RandomKey{0xffffffff, 0xffffffff}
                          << RandomKey{0x1cb996fc, 0xbb002be7};
    QTest::newRow("pi") << RandomKey{0x13198a2e, 0x03707344} << RandomKey{0x243f6a88, 0x85a308d3}
                        << RandomKey{0xc4923a9c, 0x483df7a0};
}

void TestThreefry::knownAnswers()
{
    QFETCH(RandomKey, key);
    QFETCH(RandomKey, counter);
    QFETCH(RandomKey, expected);
    QCOMPARE(threefry2x32(key, counter), expected);
}

// What JAX answers for `split(PRNGKey(0), 4)` without the partitionable mode (its tests/random_test.py, testPRNGValues).
void TestThreefry::legacySplit()
{
    const std::vector<RandomKey> expected
        = {{2285895361, 1501764800}, {1518642379, 4090693311}, {433833334, 4221794875}, {839183663, 3740430601}};
    QCOMPARE(splitKey(keyOfSeed(0), 4, false), expected);
    QCOMPARE(splitKey(keyOfSeed(42), 2, false), (std::vector<RandomKey>{{2465931498, 3679230171}, {255383827, 267815257}}));
    QCOMPARE(splitKey(keyOfSeed(0), 2, false), (std::vector<RandomKey>{{4146024105, 967050713}, {2718843009, 1272950319}}));
}

// `random_bits(PRNGKey(1701), 32, (3,))`: an odd count (its testRngRandomBits).
void TestThreefry::legacyWords()
{
    const std::array<std::uint32_t, 3> expected = {56197195, 4200222568, 961309823};
    for (std::size_t i = 0; i < expected.size(); ++i)
        QCOMPARE(randomWord(keyOfSeed(1701), i, 3, false), expected[i]);
}

void TestThreefry::partitionable()
{
    const RandomKey key = keyOfSeed(7);
    // An element depends on its index only, and the index has 64 bits.
    QCOMPARE(randomWord(key, 5, 6, true), randomWord(key, 5, 1000, true));
    const std::uint64_t large = (std::uint64_t{3} << 32) + 5;
    const RandomKey words = threefry2x32(key, {3, 5});
    QCOMPARE(randomWord(key, large, large + 1, true), words[0] ^ words[1]);
    const std::vector<RandomKey> two = splitKey(key, 2, true);
    const std::vector<RandomKey> five = splitKey(key, 5, true);
    QCOMPARE(two[1], five[1]);
    QCOMPARE(five[4], threefry2x32(key, {0, 4}));
}

// `fold_in(PRNGKey(0), 4)` in JAX's testPRNGValues.
void TestThreefry::fold()
{
    QCOMPARE(foldIn(keyOfSeed(0), 4), (RandomKey{2285895361, 433833334}));
}

void TestThreefry::permutation()
{
    const auto order = randomPermutation(keyOfSeed(5), 1000, true);
    std::vector<std::int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < 1000; ++i)
        QCOMPARE(sorted[static_cast<std::size_t>(i)], i);
    QVERIFY(order != sorted);
    QVERIFY(order != randomPermutation(keyOfSeed(6), 1000, true));
    QVERIFY(order != randomPermutation(keyOfSeed(5), 1000, false));
    QCOMPARE(randomPermutation(keyOfSeed(0), 1, true), std::vector<std::int64_t>{0});
    QVERIFY(randomPermutation(keyOfSeed(0), 0, true).empty());

    // Every place is about equally likely: element 0 of 4 over 4000 keys.
    std::array<int, 4> counts = {};
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        const auto four = randomPermutation(keyOfSeed(seed), 4, seed % 2 == 0);
        ++counts[static_cast<std::size_t>(std::find(four.begin(), four.end(), 0) - four.begin())];
    }
    for (const int count : counts)
        QVERIFY(count > 850 && count < 1150);
}

/// One round sorts up to 1625 numbers (3 ln n <= ln(2^32 - 1)), two rounds more.
void TestThreefry::permutationSortsByWords()
{
    for (const bool partitionable : {false, true}) {
        for (const std::int64_t count : {5LL, 1625LL, 1626LL}) {
            std::vector<std::int64_t> expected(static_cast<std::size_t>(count));
            std::iota(expected.begin(), expected.end(), 0);
            RandomKey key = keyOfSeed(42);
            for (int round = 0; round < (count > 1625 ? 2 : 1); ++round) {
                const auto keys = splitKey(key, 2, partitionable);
                key = keys[0];
                std::multimap<std::uint32_t, std::int64_t> byWord; // equal words keep their order
                for (std::size_t i = 0; i < expected.size(); ++i)
                    byWord.emplace(randomWord(keys[1], i, expected.size(), partitionable), expected[i]);
                std::size_t next = 0;
                for (const auto& [word, number] : byWord)
                    expected[next++] = number;
            }
            QCOMPARE(randomPermutation(keyOfSeed(42), count, partitionable), expected);
        }
    }
}

MESHWRIGHT_TEST(TestThreefry)

} // namespace tst_threefry

#include "tst_threefry.moc"
