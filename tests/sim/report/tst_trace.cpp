// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/trace.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace tst_trace {

using namespace meshwright;
using namespace meshwright::sim;

class TestTrace : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void allTimesAreMicroseconds();
};

/// Of slices and of the memory counter alike: a viewer draws both over one axis.
void TestTrace::allTimesAreMicroseconds()
{
    Timeline timeline(Clock::Wall);
    const std::uint32_t row = timeline.addRow(0, "compute");
    timeline.add({.startSeconds = 0.25, .durationSeconds = 0.5, .cpuSeconds = 0.125, .row = row});
    timeline.addMemory({0.75, 0, 4096});
    const QJsonDocument json = QJsonDocument::fromJson(QByteArray::fromStdString(traceJson({{"a run", &timeline}})));
    QJsonObject slice;
    QJsonObject counter;
    for (const QJsonValue event : json["traceEvents"].toArray()) {
        if (event["ph"].toString() == "X")
            slice = event.toObject();
        else if (event["ph"].toString() == "C")
            counter = event.toObject();
    }
    QCOMPARE(slice["ts"].toDouble(), 250'000.0);
    QCOMPARE(slice["dur"].toDouble(), 500'000.0);
    QCOMPARE(slice["args"].toObject()["cpu_us"].toDouble(), 125'000.0);
    QCOMPARE(counter["ts"].toDouble(), 750'000.0);
    QCOMPARE(counter["args"].toObject()["bytes"].toInt(), 4096);
    QCOMPARE(counter["pid"].toInt(), slice["pid"].toInt());
}

MESHWRIGHT_TEST(TestTrace)

} // namespace tst_trace

#include "tst_trace.moc"
