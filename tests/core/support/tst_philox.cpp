// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/philox.h"
#include "tests/test_class.h"

namespace tst_philox {

using namespace meshwright;

using Key = std::array<std::uint32_t, 2>;
using Block = std::array<std::uint32_t, 4>;

class TestPhilox : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void knownAnswers_data();
    void knownAnswers();
};

// The known answers of Random123 (kat_vectors) for philox4x32 with 10 rounds.
void TestPhilox::knownAnswers_data()
{
    QTest::addColumn<Key>("key");
    QTest::addColumn<Block>("counter");
    QTest::addColumn<Block>("expected");

    constexpr std::uint32_t kOnes = 0xffffffff;
    QTest::newRow("zeros") << Key{} << Block{} << Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    QTest::newRow("ones") << Key{kOnes, kOnes} << Block{kOnes, kOnes, kOnes, kOnes}
                          << Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    QTest::newRow("pi") << Key{0xa4093822, 0x299f31d0} << Block{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}
                        << Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
}

void TestPhilox::knownAnswers()
{
    QFETCH(Key, key);
    QFETCH(Block, counter);
    QFETCH(Block, expected);
    QCOMPARE(philox4x32(key, counter), expected);
}

MESHWRIGHT_TEST(TestPhilox)

} // namespace tst_philox

#include "tst_philox.moc"
