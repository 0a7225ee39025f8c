// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/colour.h"
#include "tests/test_class.h"
#include "ui/theme/theme.h"

#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include <memory>

namespace tst_palettes {

using namespace meshwright;

/// Text can be read on what it stands on, in both themes; and both can be had at run time.
class TestPalettes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void textCanBeRead_data();
    void textCanBeRead();
    void everyRoleIsSet();
    void switchesAtRunTime();
    void fieldsHaveEdgesInHighContrast_data();
    void fieldsHaveEdgesInHighContrast();
};

namespace {

Colour plain(const QColor& colour)
{
    return Colour{static_cast<std::uint8_t>(colour.red()), static_cast<std::uint8_t>(colour.green()),
        static_cast<std::uint8_t>(colour.blue())};
}

} // namespace

void TestPalettes::textCanBeRead_data()
{
    QTest::addColumn<QPalette::ColorRole>("text");
    QTest::addColumn<QPalette::ColorRole>("ground");
    QTest::newRow("window") << QPalette::WindowText << QPalette::Window;
    QTest::newRow("base") << QPalette::Text << QPalette::Base;
    QTest::newRow("alternate rows") << QPalette::Text << QPalette::AlternateBase;
    QTest::newRow("buttons") << QPalette::ButtonText << QPalette::Button;
    QTest::newRow("selection") << QPalette::HighlightedText << QPalette::Highlight;
    QTest::newRow("tool tips") << QPalette::ToolTipText << QPalette::ToolTipBase;
    QTest::newRow("placeholders") << QPalette::PlaceholderText << QPalette::Base;
    QTest::newRow("notes on windows") << QPalette::PlaceholderText << QPalette::Window;
    QTest::newRow("links") << QPalette::Link << QPalette::Window;
    QTest::newRow("links on base") << QPalette::Link << QPalette::Base;
    QTest::newRow("errors") << QPalette::BrightText << QPalette::Window;
}

void TestPalettes::textCanBeRead()
{
    QFETCH(QPalette::ColorRole, text);
    QFETCH(QPalette::ColorRole, ground);
    for (const Theme theme : kAllThemes) {
        const QPalette palette = ui::paletteOf(theme);
        for (const QPalette::ColorGroup group : {QPalette::Active, QPalette::Inactive}) {
            const double ratio = contrast(plain(palette.color(group, text)), plain(palette.color(group, ground)));
            QVERIFY2(ratio >= 4.5, qPrintable(QString::number(ratio)));
        }
    }
}

void TestPalettes::everyRoleIsSet()
{
    // Two themes that share the colour of a role have forgotten it; accents may agree, backgrounds and texts must not.
    const QPalette light = ui::paletteOf(Theme::Light);
    const QPalette dark = ui::paletteOf(Theme::Dark);
    for (int role = 0; role < QPalette::NColorRoles; ++role) {
        if (role == QPalette::NoRole)
            continue;
        const auto colorRole = static_cast<QPalette::ColorRole>(role);
        QVERIFY2(light.color(colorRole) != dark.color(colorRole), qPrintable(QString::number(role)));
    }
}

void TestPalettes::switchesAtRunTime()
{
    QLabel label("text");
    label.resize(200, 60);
    label.show();
    ui::applyTheme(*qApp, ui::ThemeChoice::Dark);
    QCOMPARE(ui::themeOf(label.palette()), Theme::Dark);
    ui::applyTheme(*qApp, ui::ThemeChoice::HighContrast);
    QCOMPARE(ui::themeOf(label.palette()), Theme::HighContrast);
    ui::applyTheme(*qApp, ui::ThemeChoice::Light);
    QCOMPARE(ui::themeOf(label.palette()), Theme::Light);
    QCOMPARE(label.grab().toImage().pixel(190, 55), ui::qtColour(ColourRole::Surface, Theme::Light).rgb());
}

void TestPalettes::fieldsHaveEdgesInHighContrast_data()
{
    QTest::addColumn<int>("kind");
    QTest::newRow("button") << 0;
    QTest::newRow("line") << 1;
    QTest::newRow("choice") << 2;
    QTest::newRow("number") << 3;
}

/// WCAG 2.1, 1.4.11: what one must see to use a field has at least 3.
void TestPalettes::fieldsHaveEdgesInHighContrast()
{
    QFETCH(int, kind);
    ui::applyTheme(*qApp, ui::ThemeChoice::HighContrast);
    std::unique_ptr<QWidget> widget;
    if (kind == 0)
        widget = std::make_unique<QPushButton>("text");
    else if (kind == 1)
        widget = std::make_unique<QLineEdit>("text");
    else if (kind == 2)
        widget = std::make_unique<QComboBox>();
    else
        widget = std::make_unique<QSpinBox>();
    widget->resize(120, 30);
    const QImage image = widget->grab().toImage();
    const QColor edge = image.pixelColor(0, image.height() / 2);
    ui::applyTheme(*qApp, ui::ThemeChoice::Light);
    QVERIFY2(contrast(plain(edge), colourOf(ColourRole::Surface, Theme::HighContrast)) >= 3.0, qPrintable(edge.name()));
}

MESHWRIGHT_TEST(TestPalettes)

} // namespace tst_palettes

#include "tst_palettes.moc"
