// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/colour.h"
#include "tests/test_class.h"

#include <array>

namespace tst_colour {

using namespace meshwright;

class TestColour : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void hex();
    void contrastOfKnownPairs();
    void readableTextHasContrast();
    void blending();
    void terminalColours_data();
    void terminalColours();
};

void TestColour::hex()
{
    QCOMPARE(hexText(colourFromHex(0x1b9e77)), std::string("#1b9e77"));
    QCOMPARE(hexText(kBlack), std::string("#000000"));
    QCOMPARE(colourFromHex(0x010203), (Colour{1, 2, 3}));
}

void TestColour::contrastOfKnownPairs()
{
    QCOMPARE(contrast(kBlack, kWhite), 21.0);
    QCOMPARE(contrast(kWhite, kBlack), 21.0);
    QCOMPARE(contrast(kWhite, kWhite), 1.0);
    // #767676 is the lightest grey with 4.5 on white: L = ((0x76/255 + 0.055) / 1.055)^2.4 = 0.1812, 1.05 / 0.2312 = 4.54.
    QVERIFY(std::abs(contrast(colourFromHex(0x767676), kWhite) - 4.54) < 0.005);
    QVERIFY(contrast(colourFromHex(0x777777), kWhite) < 4.5);
}

void TestColour::readableTextHasContrast()
{
    for (unsigned r = 0; r <= 255; r += 17) {
        for (unsigned g = 0; g <= 255; g += 17) {
            for (unsigned b = 0; b <= 255; b += 17) {
                const Colour back = colourFromHex(r << 16U | g << 8U | b);
                QVERIFY2(contrast(readableOn(back), back) >= 4.5, hexText(back).c_str());
            }
        }
    }
}

void TestColour::blending()
{
    QCOMPARE(blend(kBlack, kWhite, 0.0), kBlack);
    QCOMPARE(blend(kBlack, kWhite, 1.0), kWhite);
    QCOMPARE(blend(kBlack, {100, 200, 50}, 0.5), (Colour{50, 100, 25}));
    const std::array scale = {kBlack, kWhite, kBlack};
    QCOMPARE(onScale(scale, 0.5), kWhite);
    QCOMPARE(onScale(scale, 1.0), kBlack);
    QCOMPARE(onScale(scale, 0.25), (Colour{128, 128, 128}));
    QCOMPARE(onScale(scale, 7.0), kBlack);
}

void TestColour::terminalColours_data()
{
    QTest::addColumn<uint>("rgb");
    QTest::addColumn<int>("index");

    QTest::newRow("black") << 0x000000U << 16;
    QTest::newRow("white") << 0xffffffU << 231;
    QTest::newRow("red") << 0xff0000U << 196; // 16 + 36 * 5
    QTest::newRow("on the cube") << 0x5f87afU << 67; // 16 + 36 * 1 + 6 * 2 + 3
    QTest::newRow("grey ramp") << 0x767676U << 243; // 8 + 10 * 11 = 118 = 0x76
}

void TestColour::terminalColours()
{
    QFETCH(uint, rgb);
    QFETCH(int, index);
    QCOMPARE(nearestTerminalColour(colourFromHex(rgb)), index);
}

MESHWRIGHT_TEST(TestColour)

} // namespace tst_colour

#include "tst_colour.moc"
