// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/ui/window/window_fixture.h"

#include <QMessageBox>
#include <QRandomGenerator>

namespace tst_random_events {

using namespace meshwright;
using tests::WindowFixture;

/// The whole window under thousands of random clicks, keys, wheels, resizes and edits: nothing crashes, and in the end it still works.
class TestRandomEvents : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void survives_data();
    void survives();
};

namespace {

/// For each seed; in the environment: MESHWRIGHT_RANDOM_EVENTS=20000 for a long run.
int eventCount()
{
    constexpr int kUsual = 1500;
    const int wanted = qEnvironmentVariableIntValue("MESHWRIGHT_RANDOM_EVENTS");
    return wanted > 0 ? wanted : kUsual;
}

class Monkey {
public:
    Monkey(WindowFixture& fixture, quint32 seed)
        : m_fixture(fixture)
        , m_random(seed)
    {
        // What opens a dialog waits in it: only a timer runs there.
        QObject::connect(&m_closer, &QTimer::timeout, [this] { closeDialogs(); });
        m_closer.start(5);
    }

    /// From here on edits are thrown away where a dialog asks, those too that were half typed.
    void discardEdits() { m_discards = true; }

    void act()
    {
        switch (m_random.bounded(13)) {
        case 12:
            return look();
        case 0:
            return edit();
        case 1:
            return resize();
        case 2:
        case 3:
            return wheel();
        case 4:
        case 5:
        case 6:
            return press();
        default:
            return mouse();
        }
    }

private:
    void closeDialogs()
    {
        QWidget* dialog = QApplication::activeModalWidget();
        const auto* question = qobject_cast<QMessageBox*>(dialog);
        if (QWidget* popup = QApplication::activePopupWidget())
            popup->close();
        else if (QAbstractButton* discard = question && m_discards ? question->button(QMessageBox::Discard) : nullptr)
            discard->click();
        else if (dialog)
            dialog->close();
    }

    QWidget* anyWidget()
    {
        QList<QWidget*> visible;
        for (QWidget* widget : m_fixture.window.findChildren<QWidget*>()) {
            if (widget->isVisible() && !widget->inherits("QMenuBar")) // File, Quit would end the test
                visible << widget;
        }
        return visible.isEmpty() ? nullptr : visible[m_random.bounded(static_cast<int>(visible.size()))];
    }

    QPoint anyPoint(const QWidget& widget)
    {
        return {m_random.bounded(std::max(1, widget.width())), m_random.bounded(std::max(1, widget.height()))};
    }

    Qt::KeyboardModifiers anyModifiers()
    {
        static constexpr std::array<Qt::KeyboardModifiers, 4> kAll
            = {Qt::NoModifier, Qt::NoModifier, Qt::ShiftModifier, Qt::ControlModifier};
        return kAll[m_random.bounded(4U)];
    }

    void mouse()
    {
        QWidget* widget = anyWidget();
        if (!widget)
            return;
        const QPoint from = anyPoint(*widget);
        switch (m_random.bounded(4)) {
        case 0:
            QTest::mouseMove(widget, from);
            break;
        case 1:
            QTest::mouseDClick(widget, Qt::LeftButton, anyModifiers(), from);
            break;
        case 2:
            QTest::mousePress(widget, Qt::LeftButton, anyModifiers(), from);
            QTest::mouseMove(widget, anyPoint(*widget));
            QTest::mouseRelease(widget, Qt::LeftButton, {}, anyPoint(*widget));
            break;
        default:
            QTest::mouseClick(widget, Qt::LeftButton, anyModifiers(), from);
        }
    }

    void wheel()
    {
        QWidget* widget = anyWidget();
        if (!widget)
            return;
        const QPoint at = anyPoint(*widget);
        QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, 120 * (m_random.bounded(5) - 2)}, Qt::NoButton, anyModifiers(),
            Qt::NoScrollPhase, false);
        QApplication::sendEvent(widget, &event);
    }

    void press()
    {
        static constexpr std::array kKeys = {Qt::Key_W, Qt::Key_A, Qt::Key_S, Qt::Key_D, Qt::Key_F, Qt::Key_0, Qt::Key_Period,
            Qt::Key_Comma, Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Tab, Qt::Key_Backtab, Qt::Key_Return,
            Qt::Key_Space, Qt::Key_Escape, Qt::Key_Backspace, Qt::Key_Home, Qt::Key_End, Qt::Key_PageDown, Qt::Key_7,
            Qt::Key_ParenLeft, Qt::Key_M};
        QWidget* widget = m_random.bounded(2) && QApplication::focusWidget() ? QApplication::focusWidget() : anyWidget();
        if (widget)
            QTest::keyClick(widget, kKeys[m_random.bounded(static_cast<quint32>(kKeys.size()))]);
    }

    void look()
    {
        ui::Workbench& workbench = m_fixture.window.workbench();
        const std::vector<ui::View*> views = workbench.views();
        workbench.showView(views[m_random.bounded(static_cast<quint32>(views.size()))]);
    }

    void resize() { m_fixture.window.resize(800 + m_random.bounded(1100), 480 + m_random.bounded(600)); }

    void edit()
    {
        static const QStringList kEdits = {"mesh={data: 8, model: 1}", "mesh={data: 1, model: 8}", "mesh={data: 2, model: 2}",
            "mesh={}", "batch=0", "batch=100", "batch=99", "sharding.x=P('model')", "sharding.x=", "sharding.layers.2.w=P(",
            "sharding.layers.2.w=P('data', 'model')", "model.mlp.layers=[64, 10]", "model.mlp.layers=[784, 8192, 10]",
            "model.mlp.layers=[64, 256, 256, 10]", "hardware=", "hardware={chip: h100, hosts: 1}",
            "hardware={chip: v5e, topology: [4, 2]}", "hardware.chip=none", "optimizer={adam: {}}", "name=\"\"", "train.steps=-1",
            "train.steps=3"};
        ui::StudyDocument& document = m_fixture.window.document();
        switch (m_random.bounded(6)) {
        case 0:
            return document.undoStack().undo();
        case 1:
            return document.undoStack().redo();
        default:
            document.change({kEdits[m_random.bounded(static_cast<int>(kEdits.size()))]}, "Edit");
        }
    }

    WindowFixture& m_fixture;
    QRandomGenerator m_random;
    QTimer m_closer;
    bool m_discards = false;
};

} // namespace

void TestRandomEvents::survives_data()
{
    meshwright::tests::addSeeds({1, 2});
}

void TestRandomEvents::survives()
{
    QFETCH(quint64, seed);
    WindowFixture fixture;
    fixture.window.show();
    fixture.window.openExample(fixture.example("digits.yaml"));
    QTRY_VERIFY(fixture.isShown());
    Monkey monkey(fixture, static_cast<quint32>(seed));
    const int events = eventCount();
    for (int i = 0; i < events; ++i) {
        monkey.act();
        if (i % 10 == 0)
            QApplication::processEvents();
    }
    monkey.discardEdits();
    fixture.window.openExample(fixture.example("digits.yaml"));
    fixture.window.document().change({"mesh={data: 2, model: 4}"}, "Edit the mesh");
    QTRY_VERIFY(fixture.isShown());
    const auto analysis = fixture.analysis();
    QVERIFY2(analysis->simulated != nullptr, (analysis->source.text + describe(analysis->problems)).c_str());
}

MESHWRIGHT_TEST(TestRandomEvents)

} // namespace tst_random_events

#include "tst_random_events.moc"
