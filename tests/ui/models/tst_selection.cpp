// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/test_class.h"
#include "ui/models/selection.h"

namespace tst_selection {

using namespace meshwright;

/// Views hear of every change of the selection, and of nothing else.
class TestSelection : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void signalsChangesOnly();
};

void TestSelection::signalsChangesOnly()
{
    ui::Selection selection;
    QSignalSpy arrays(&selection, &ui::Selection::arrayChanged);
    QSignalSpy devices(&selection, &ui::Selection::devicesChanged);
    QSignalSpy axes(&selection, &ui::Selection::hoveredAxisChanged);
    QSignalSpy operations(&selection, &ui::Selection::operationChanged);
    for (int i = 0; i < 2; ++i) {
        selection.setArray("layers.1.w");
        selection.setDevices({1, 2});
        selection.setHoveredAxis("data");
        selection.setOperation("all_reduce loss.sum");
    }
    QCOMPARE(arrays.count(), 1);
    QCOMPARE(devices.count(), 1);
    QCOMPARE(axes.count(), 1);
    QCOMPARE(operations.count(), 1);
    QCOMPARE(arrays.at(0).at(0).toString(), QString("layers.1.w"));
    QCOMPARE(selection.devices(), (std::set<DeviceId>{1, 2}));
}

MESHWRIGHT_TEST(TestSelection)

} // namespace tst_selection

#include "tst_selection.moc"
