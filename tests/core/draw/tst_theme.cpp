// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/theme.h"
#include "tests/test_class.h"

#include <cmath>
#include <set>

namespace tst_theme {

using namespace meshwright;

class TestTheme : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void tableIsInOrder();
    void textHasContrast();
    void marksHaveContrast();
    void categoriesDifferInColour_data();
    void categoriesDifferInColour();
};

namespace {

struct Linear {
    double r, g, b;
};

Linear linear(Colour c)
{
    const auto channel = [](std::uint8_t value) { return std::pow(value / 255.0, 2.2); };
    return {channel(c.red), channel(c.green), channel(c.blue)};
}

/// How a person without one kind of cone sees a colour. Source: F. Viénot, H. Brettel, J. Mollon, "Digital video colourmaps for checking the
/// legibility of displays by dichromats", Color Research and Application 24(4), 1999: red and green coincide.
Linear seen(Colour colour, const QString& vision)
{
    const Linear c = linear(colour);
    if (vision == "protanopia")
        return {0.11238 * c.r + 0.88762 * c.g, 0.11238 * c.r + 0.88762 * c.g, 0.00401 * c.r - 0.00401 * c.g + c.b};
    if (vision == "deuteranopia")
        return {0.29275 * c.r + 0.70725 * c.g, 0.29275 * c.r + 0.70725 * c.g, -0.02234 * c.r + 0.02234 * c.g + c.b};
    return c;
}

/// In display values, 0 to 255 a channel.
double distance(const Linear& a, const Linear& b)
{
    const auto shown = [](double value) { return 255.0 * std::pow(std::clamp(value, 0.0, 1.0), 1.0 / 2.2); };
    return std::hypot(shown(a.r) - shown(b.r), shown(a.g) - shown(b.g), shown(a.b) - shown(b.b));
}

} // namespace

void TestTheme::tableIsInOrder()
{
    std::set<std::string> names;
    for (const ColourRole role : kAllRoles)
        names.insert(colourRoleName(role));
    QCOMPARE(names.size(), kAllRoles.size());
    QCOMPARE(std::string(colourRoleName(ColourRole::Background)), std::string("background"));
    QCOMPARE(std::string(colourRoleName(ColourRole::AllToAll)), std::string("all-to-all"));
    QCOMPARE(std::string(colourRoleName(ColourRole::Idle)), std::string("idle"));
}

void TestTheme::textHasContrast()
{
    for (const Theme theme : kAllThemes) {
        for (const ColourRole text : kTextRoles) {
            for (const ColourRole backdrop : kBackdropRoles) {
                const double ratio = contrast(colourOf(text, theme), colourOf(backdrop, theme));
                QVERIFY2(ratio >= (theme == Theme::HighContrast ? 7.0 : 4.5),
                    qPrintable(QString("%1 on %2: %3").arg(colourRoleName(text), colourRoleName(backdrop)).arg(ratio)));
            }
        }
        for (const ColourRole category : kCategoryRoles) {
            const Colour back = colourOf(category, theme);
            QVERIFY(contrast(readableOn(back), back) >= 4.5);
        }
    }
}

void TestTheme::marksHaveContrast()
{
    // WCAG 2.1, 1.4.11: what one must see to understand a picture has at least 3.
    for (const Theme theme : kAllThemes) {
        for (const ColourRole mark : {ColourRole::Outline, ColourRole::Accent})
            QVERIFY2(contrast(colourOf(mark, theme), colourOf(ColourRole::Background, theme)) >= 3.0, colourRoleName(mark));
    }
}

void TestTheme::categoriesDifferInColour_data()
{
    QTest::addColumn<QString>("vision");
    for (const char* vision : {"full", "protanopia", "deuteranopia"})
        QTest::newRow(vision) << QString(vision);
}

void TestTheme::categoriesDifferInColour()
{
    QFETCH(QString, vision);
    for (const Theme theme : kAllThemes) {
        for (std::size_t i = 0; i < kCategoryRoles.size(); ++i) {
            for (std::size_t j = i + 1; j < kCategoryRoles.size(); ++j) {
                const double apart = distance(
                    seen(colourOf(kCategoryRoles[i], theme), vision), seen(colourOf(kCategoryRoles[j], theme), vision));
                QVERIFY2(apart >= 25.0,
                    qPrintable(QString("%1 and %2 in theme %3: %4")
                                   .arg(colourRoleName(kCategoryRoles[i]), colourRoleName(kCategoryRoles[j]))
                                   .arg(int(theme))
                                   .arg(apart)));
            }
        }
    }
}

MESHWRIGHT_TEST(TestTheme)

} // namespace tst_theme

#include "tst_theme.moc"
