// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "tests/ui/window/drawn_texts.h"
#include "tests/ui/window/window_fixture.h"
#include "ui/explain/explain_view.h"
#include "ui/pages/page_view.h"
#include "ui/search/search_view.h"
#include "ui/widgets/elided_label.h"
#include "ui/window/headline.h"
#include "ui/window/view_frame.h"

#include <QAbstractButton>
#include <QLabel>

#include <map>

namespace tst_perspectives {

using namespace meshwright;
using tests::WindowFixture;

/// Every perspective at every size: no text lies on another, none is cut off, the headline stays on its strip. With MESHWRIGHT_PICTURES=FOLDER
/// the pictures are kept.
class TestPerspectives : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { ui::applyTheme(*qApp, ui::ThemeChoice::Light); }
    void findsTextsThatOverlap();
    void nothingOverlaps_data();
    void nothingOverlaps();
    void viewsHaveTheRoomThatTheyNeed_data() { nothingOverlaps_data(); }
    void viewsHaveTheRoomThatTheyNeed();
    void textCanBeRead_data();
    void textCanBeRead();
};

namespace {

/// Letters may touch: a pixel of a rounded position is not seen.
constexpr double kTouch = 1.5;

constexpr QPalette::ColorRole kDisabled[] = {QPalette::WindowText, QPalette::Text, QPalette::ButtonText};

QStringList overlapsOf(const std::vector<tests::DrawnText>& texts)
{
    QStringList found;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        for (std::size_t j = i + 1; j < texts.size(); ++j) {
            const QRectF common = texts[i].where & texts[j].where;
            if (common.width() > kTouch && common.height() > kTouch)
                found << QString("\"%1\" on \"%2\" at %3,%4").arg(texts[j].text, texts[i].text).arg(common.x()).arg(common.y());
        }
    }
    return found;
}

/// Labels and buttons that get less room than their text needs.
QStringList cutOff(const QWidget& window)
{
    QStringList found;
    for (const QWidget* widget : window.findChildren<QWidget*>()) {
        const auto* label = qobject_cast<const QLabel*>(widget);
        const bool isButton = widget->inherits("QPushButton") || widget->inherits("QToolButton") || widget->inherits("QCheckBox");
        if (!widget->isVisible() || (!isButton && !label) || qobject_cast<const ui::ElidedLabel*>(widget)
            || widget->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored)
            continue;
        const bool wraps = label && label->wordWrap();
        const int needs = wraps ? widget->heightForWidth(widget->width()) : widget->sizeHint().width();
        if (needs > (wraps ? widget->height() : widget->width()) + 1)
            found << QString("%1 \"%2\" has %3x%4 and needs %5")
                         .arg(widget->metaObject()->className(),
                             label ? label->text() : static_cast<const QAbstractButton*>(widget)->text())
                         .arg(widget->width())
                         .arg(widget->height())
                         .arg(needs);
    }
    return found;
}

/// What a text lies on: the colour that most pixels around its letters have.
QColor groundOf(const QImage& picture, const QRectF& where)
{
    std::map<QRgb, int> counts;
    const QRect area = where.toAlignedRect().adjusted(-2, -2, 2, 2) & picture.rect();
    for (int y = area.top(); y <= area.bottom(); ++y) {
        for (int x = area.left(); x <= area.right(); ++x)
            ++counts[picture.pixel(x, y)];
    }
    const auto most
        = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == counts.end() ? QColor() : QColor(most->first);
}

Colour plain(const QColor& colour)
{
    return {static_cast<std::uint8_t>(colour.red()), static_cast<std::uint8_t>(colour.green()),
        static_cast<std::uint8_t>(colour.blue())};
}

/// Texts with less contrast than 4.5, but for those of what is disabled. Source: WCAG 2.1, 1.4.3.
QStringList unreadable(QWidget& window)
{
    QStringList found;
    const QImage picture = window.grab().toImage().convertToFormat(QImage::Format_RGB32);
    if (picture.size() != window.size()) // at scale 2 the colours are the same
        return found;
    const QPalette palette = window.palette();
    for (const tests::DrawnText& text : tests::textsOf(window)) {
        const bool isDisabled = std::any_of(std::begin(kDisabled), std::end(kDisabled),
            [&](QPalette::ColorRole role) { return palette.color(QPalette::Disabled, role) == text.ink; });
        const QColor ground = groundOf(picture, text.where);
        const double share = text.ink.alphaF();
        const auto seen = [&](int ink, int under) { return qRound(under + (ink - under) * share); };
        const QColor ink(
            seen(text.ink.red(), ground.red()), seen(text.ink.green(), ground.green()), seen(text.ink.blue(), ground.blue()));
        const double ratio = contrast(plain(ink), plain(ground));
        if (!isDisabled && ratio < 4.5)
            found << QString("\"%1\" in %2 on %3 at %4,%5: %6")
                         .arg(text.text, ink.name(), ground.name())
                         .arg(text.where.x())
                         .arg(text.where.y())
                         .arg(ratio);
    }
    return found;
}

/// A page that is read and not run: it needs no Python.
void openPage(WindowFixture& fixture)
{
    QFile page(fixture.folder.filePath("page.md"));
    QVERIFY(page.open(QIODevice::WriteOnly));
    page.write(
        "# A page with a long heading about arrays that lie on eight devices of a mesh\n\nWords before a cell, with `code`.\n\n"
        "```python\nimport jax\nmesh = jax.make_mesh((4, 2), ('data', 'model'))  # a long line that goes on and on and on and on "
        "and on\n"
        "```\n");
    page.close();
    fixture.window.workbench().pages().openPage(page.fileName());
    QTRY_VERIFY(fixture.window.workbench().pages().page() != nullptr);
}

void show(WindowFixture& fixture, QSize size)
{
    fixture.window.resize(size);
    fixture.window.show();
    fixture.window.openExample(fixture.example("notebook_mlp.yaml"));
    QTRY_VERIFY(fixture.isShown());
}

} // namespace

/// The measure sees what it is to see.
void TestPerspectives::findsTextsThatOverlap()
{
    QWidget window;
    window.resize(300, 100);
    QLabel first("the first text", &window);
    QLabel second("the second text", &window);
    second.move(10, 5);
    QCOMPARE(overlapsOf(tests::textsOf(window)).size(), qsizetype{1});
    second.move(10, 60);
    QCOMPARE(overlapsOf(tests::textsOf(window)), QStringList());
    QCOMPARE(tests::textsOf(window).size(), std::size_t{2});
}

void TestPerspectives::nothingOverlaps_data()
{
    QTest::addColumn<QSize>("size");

    QTest::newRow("1024x700") << QSize(1024, 700);
    QTest::newRow("1366x768") << QSize(1366, 768);
    QTest::newRow("1920x1080") << QSize(1920, 1080);
    QTest::newRow("1920x1080 at 200 %") << QSize(960, 540);
    QTest::newRow("3840x2160") << QSize(3840, 2160);
}

void TestPerspectives::nothingOverlaps()
{
    QFETCH(QSize, size);
    WindowFixture fixture;
    show(fixture, size);
    QCOMPARE(fixture.window.size(), size);
    ui::Workbench& workbench = fixture.window.workbench();
    QCOMPARE(workbench.headline().height(), 44);
    workbench.pinBaseline();
    fixture.window.document().change({"batch=4096"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    workbench.showPerspective("search");
    workbench.search().search();
    QTRY_VERIFY_WITH_TIMEOUT(!workbench.search().job().isBusy(), 60'000);
    workbench.explain().explainText("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.");
    QTRY_VERIFY(workbench.explain().explained() != nullptr);
    openPage(fixture);
    for (const ui::View* view : workbench.views()) {
        workbench.showView(view);
        for (const bool showsStudy : {false, true}) {
            workbench.setStudyShown(showsStudy);
            QTest::qWait(20);
            // What is still being simulated may change a text and so ask for a new layout.
            QTRY_VERIFY2(
                cutOff(fixture.window).isEmpty(), qPrintable(view->objectName() + ": " + cutOff(fixture.window).join("; ")));
            if (const QString folder = qEnvironmentVariable("MESHWRIGHT_PICTURES"); !folder.isEmpty())
                fixture.window.grab().save(QString("%1/%2-%3x%4%5.png")
                                               .arg(folder, view->objectName())
                                               .arg(size.width())
                                               .arg(size.height())
                                               .arg(showsStudy ? "-study" : ""));
            const auto texts = tests::textsOf(fixture.window);
            QVERIFY2(texts.size() > 20, qPrintable(view->objectName()));
            const QStringList overlaps = overlapsOf(texts);
            QVERIFY2(overlaps.isEmpty(), qPrintable(view->objectName() + ": " + overlaps.join("; ")));
        }
    }
}

/// Where there is less room the frame scrolls.
void TestPerspectives::viewsHaveTheRoomThatTheyNeed()
{
    QFETCH(QSize, size);
    WindowFixture fixture;
    show(fixture, size);
    for (const ui::View* view : fixture.window.workbench().views()) {
        fixture.window.workbench().showView(view);
        const QSize least = view->minimumSizeHint();
        QVERIFY2(view->width() >= least.width() && view->height() >= least.height(), qPrintable(view->objectName()));
        const QRect page = view->parentWidget()->rect();
        QVERIFY2(page.height() >= 90 && page.width() >= 300, qPrintable(view->objectName()));
    }
}

void TestPerspectives::textCanBeRead_data()
{
    QTest::addColumn<int>("theme");

    QTest::newRow("light") << static_cast<int>(ui::ThemeChoice::Light);
    QTest::newRow("dark") << static_cast<int>(ui::ThemeChoice::Dark);
    QTest::newRow("high contrast") << static_cast<int>(ui::ThemeChoice::HighContrast);
}

/// In each theme, switched to while the window is there.
void TestPerspectives::textCanBeRead()
{
    QFETCH(int, theme);
    WindowFixture fixture;
    show(fixture, {1366, 768});
    ui::Workbench& workbench = fixture.window.workbench();
    workbench.pinBaseline();
    workbench.explain().explainText("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.");
    QTRY_VERIFY(workbench.explain().explained() != nullptr);
    openPage(fixture);
    fixture.window.document().change({"batch=4100"}, "Edit the batch"); // an error
    QTRY_VERIFY(fixture.isShown());
    fixture.window.document().change({"batch=4096"}, "Edit the batch");
    QTRY_VERIFY(fixture.isShown());
    for (const ui::View* view : workbench.views()) // drawn in another theme before
        workbench.showView(view);
    ui::applyTheme(*qApp, static_cast<ui::ThemeChoice>(theme));
    QStringList wrong;
    for (const ui::View* view : workbench.views()) {
        workbench.showView(view);
        workbench.setStudyShown(view->objectName() == "layout");
        QTest::qWait(30);
        if (const QString folder = qEnvironmentVariable("MESHWRIGHT_PICTURES"); !folder.isEmpty())
            fixture.window.grab().save(QString("%1/%2-%3.png").arg(folder, view->objectName(), QTest::currentDataTag()));
        for (const QString& one : unreadable(fixture.window))
            wrong << view->objectName() + ": " + one;
    }
    ui::applyTheme(*qApp, ui::ThemeChoice::Light);
    QVERIFY2(wrong.isEmpty(), qPrintable("\n" + wrong.join('\n')));
}

MESHWRIGHT_TEST(TestPerspectives)

} // namespace tst_perspectives

#include "tst_perspectives.moc"
