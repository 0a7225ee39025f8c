// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/fitting_choice.h"
#include "tests/test_class.h"

namespace tst_fitting_choice {

using namespace meshwright;
using namespace meshwright::sim;

/// Another chip, or more devices, and the topology or the hosts that go with them.
class TestFittingChoice : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void choices_data();
    void choices();
    void everyChipHasOne();
};

namespace {

using Sizes = std::vector<std::int64_t>;

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

QString joined(const std::vector<std::string>& settings)
{
    QStringList list;
    for (const std::string& setting : settings)
        list << QString::fromStdString(setting);
    return list.join(' ');
}

} // namespace

void TestFittingChoice::choices_data()
{
    QTest::addColumn<HardwareChoice>("wanted");
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("settings"); // "-": nothing fits

    const HardwareChoice v5e{"v5e", {4, 2}};
    QTest::newRow("as it is") << v5e << 8 << "";
    QTest::newRow("more than needed") << v5e << 4 << "";
    QTest::newRow("more devices") << v5e << 16 << "hardware.topology=[4, 4]";
    QTest::newRow("a name that is near") << HardwareChoice{"v5f", {4, 2}} << 8 << "hardware.chip=v5e";
    QTest::newRow("a name that is like none") << HardwareChoice{"abacus", {4, 2}} << 8 << "-";
    QTest::newRow("a torus of three axes") << HardwareChoice{"v4", {4, 2}} << 8 << "hardware.topology=[2, 2, 2]";
    QTest::newRow("two devices a chip") << HardwareChoice{"v3", {}} << 8 << "hardware.topology=[2, 2]";
    QTest::newRow("GPUs for a torus") << HardwareChoice{"h100", {4, 2}} << 8
                                      << "hardware.topology= hardware.hosts=1 hardware.per_host=8";
    QTest::newRow("GPUs of many hosts") << HardwareChoice{"h100", {8, 8}} << 64
                                        << "hardware.topology= hardware.hosts=8 hardware.per_host=8";
    QTest::newRow("fewer than a host") << HardwareChoice{"h100", {2, 2}} << 4
                                       << "hardware.topology= hardware.hosts=1 hardware.per_host=4";
    QTest::newRow("a torus for GPUs") << HardwareChoice{"v5e", {}, 2, 8} << 16
                                      << "hardware.topology=[4, 4] hardware.hosts= hardware.per_host=";
    QTest::newRow("no size below 1") << HardwareChoice{"v5e", {4, 0}} << 8 << "hardware.topology=[4, 2]";
    QTest::newRow("too many in a host") << HardwareChoice{"h100", {}, 1, 16} << 16 << "hardware.hosts=2 hardware.per_host=8";
    QTest::newRow("a part of a chip") << HardwareChoice{"tpu-v3-core", {2, 2}} << 8 << "hardware.topology=";
    QTest::newRow("more than the largest slice") << v5e << 1000 << "-";
}

void TestFittingChoice::choices()
{
    QFETCH(HardwareChoice, wanted);
    QFETCH(int, devices);
    QFETCH(QString, settings);

    const auto choice = fittingChoice(catalogue(), wanted, devices);
    QCOMPARE(choice ? joined(hardwareSettings(wanted, *choice)) : QStringLiteral("-"), settings);
    if (choice)
        QVERIFY(buildMachine(catalogue(), *choice));
}

/// Whatever chip is picked in place of another, eight devices of it can be had, unless the catalogue lacks its figures.
void TestFittingChoice::everyChipHasOne()
{
    int fitting = 0;
    for (const Chip& chip : catalogue().chips()) {
        const auto choice = fittingChoice(catalogue(), {chip.key, {4, 2}}, 8);
        if (!choice)
            continue;
        ++fitting;
        const auto machine = buildMachine(catalogue(), *choice);
        QVERIFY(machine);
        QVERIFY(machine->deviceCount() >= 8);
    }
    QVERIFY2(fitting + 3 >= static_cast<int>(catalogue().chips().size()), std::to_string(fitting).c_str());
}

MESHWRIGHT_TEST(TestFittingChoice)

} // namespace tst_fitting_choice

#include "tst_fitting_choice.moc"
