// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/report/memory_picture.h"

#include "sim/session/session.h"
#include "tests/test_class.h"

#include <set>

namespace tst_memory_picture {

using namespace meshwright;
using namespace meshwright::sim;

class TestMemoryPicture : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void kindsLookTheirOwn();
    void fromASimulatedStudy();
    void sentences_data();
    void sentences();
};

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Simulation simulationWith(double peakGib)
{
    Simulation simulation;
    simulation.capacityBytes = 16 * kGiB;
    simulation.reserveBytes = 2 * kGiB;
    simulation.peakBytes = static_cast<std::int64_t>(peakGib * static_cast<double>(kGiB));
    return simulation;
}

} // namespace

void TestMemoryPicture::kindsLookTheirOwn()
{
    std::set<std::pair<ColourRole, Hatch>> looks;
    for (int kind = 0; kind <= static_cast<int>(MemoryKind::Temporary); ++kind) {
        const DrawnMemoryKind drawn = drawnMemoryKind(static_cast<MemoryKind>(kind));
        QCOMPARE(drawn.name, std::string(memoryKindName(static_cast<MemoryKind>(kind))));
        looks.insert({drawn.role, drawn.hatch});
    }
    QCOMPARE(looks.size(), std::size_t{7});
}

void TestMemoryPicture::fromASimulatedStudy()
{
    QFile file(MESHWRIGHT_SOURCE_DIR "/resources/examples/wide_mlp.yaml");
    QVERIFY(file.open(QIODevice::ReadOnly));
    Session session(valueOf(defaultCatalogue()));
    const auto analysis = session.analyse({file.readAll().toStdString(), "wide_mlp.yaml", {"batch=8192"}});
    QVERIFY(analysis->simulated != nullptr);
    const Simulation& simulation = analysis->simulated->simulation;
    const MemoryDrawing drawing = memoryPicture(simulation);

    QCOMPARE(drawing.kinds.front().name, std::string("parameters")); // what stays is at the bottom
    QVERIFY(drawing.kinds.size() >= 4 && drawing.kinds.size() <= 7);
    QCOMPARE(drawing.moments.size(), simulation.memory.size());
    for (std::size_t i = 0; i < drawing.moments.size(); ++i) {
        QCOMPARE(drawing.moments[i].bytesByKind.size(), drawing.kinds.size());
        QCOMPARE(totalBytes(drawing.moments[i]), simulation.memory[i].total); // no kind was lost
    }
    QVERIFY(drawing.peakMoment.has_value());
    for (const DrawnMemoryMoment& moment : drawing.moments)
        QVERIFY(totalBytes(moment) <= totalBytes(drawing.moments[*drawing.peakMoment]));
    QVERIFY(!drawMemory(drawing).items.empty());
}

void TestMemoryPicture::sentences_data()
{
    QTest::addColumn<double>("peakGib");
    QTest::addColumn<QString>("expected");
    QTest::newRow("fits") << 9.0 << "Peak 9.00 GiB of 14.0 GiB usable (16.0 GiB − 2.00 GiB reserve): fits, 5.00 GiB free";
    QTest::newRow("just") << 14.0 << "Peak 14.0 GiB of 14.0 GiB usable (16.0 GiB − 2.00 GiB reserve): fits, 0 B free";
    QTest::newRow("too much")
        << 17.25 << "Peak 17.2 GiB of 14.0 GiB usable (16.0 GiB − 2.00 GiB reserve): does not fit, 3.25 GiB too much";
}

void TestMemoryPicture::sentences()
{
    QFETCH(double, peakGib);
    QFETCH(QString, expected);
    QCOMPARE(QString::fromStdString(memorySentence(simulationWith(peakGib))), expected);
}

MESHWRIGHT_TEST(TestMemoryPicture)

} // namespace tst_memory_picture

#include "tst_memory_picture.moc"
