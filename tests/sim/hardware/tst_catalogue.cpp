// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/hardware/catalogue.h"
#include "tests/test_class.h"

namespace tst_catalogue {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

const Catalogue& catalogue()
{
    static const Catalogue loaded = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    return loaded;
}

const Chip& chip(const char* name)
{
    return *valueOf(catalogue().find(name)).chip;
}

} // namespace

class TestCatalogue : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyChipIsUsable();
    void everyInstanceIsUsable();
    void find_data();
    void find();
    void unknownName();
    void figures();
    void matmulRate_data();
    void matmulRate();
    void badFiles_data();
    void badFiles();
    void allFaultsAreReported();
    void missingFile();
};

void TestCatalogue::everyChipIsUsable()
{
    QVERIFY(catalogue().chips().size() >= 20);
    for (const Chip& each : catalogue().chips()) {
        QVERIFY2(each.hbmBytes && each.hbmBytesPerSecond, each.key.c_str());
        QVERIFY2(!each.hbmBytesPerSecond->source.empty(), each.key.c_str());
        QVERIFY2(!each.name.empty() && !each.vendor.empty(), each.key.c_str());
        for (const MathFormat format : {MathFormat::Fp32, MathFormat::Tf32, MathFormat::Bf16, MathFormat::Fp16, MathFormat::Fp8,
                 MathFormat::Int8, MathFormat::Fp4}) {
            const auto rate = sim::matmulRate(each, format);
            QVERIFY2(rate && rate->flopsPerSecond > 1e12 && !rate->how.empty(), each.key.c_str());
        }
        if (each.interconnect.kind == InterconnectKind::Torus)
            QVERIFY2(each.interconnect.wrapRule != WrapRule::Never, each.key.c_str());
    }
}

void TestCatalogue::everyInstanceIsUsable()
{
    QVERIFY(catalogue().instances().size() >= 20);
    for (const Chip& each : catalogue().instances()) {
        QVERIFY2(
            each.instanceChips >= 1 && each.nicBytesPerSecond && !each.nicBytesPerSecond->source.empty(), each.instance.c_str());
        QVERIFY2(*each.fastDomain % each.instanceChips == 0, each.instance.c_str());
        const auto match = catalogue().find(each.instance);
        QVERIFY2(match && match->chip == &each, each.instance.c_str());
        QVERIFY2(catalogue().find(each.key)->chip->instance.empty(), each.instance.c_str());
    }
    // A driver's name for a device is a chip's, not a machine's.
    QCOMPARE(catalogue().ofDevice("NVIDIA GB200 NVL72")->instance, std::string());
    QCOMPARE(catalogue().ofDevice("NVIDIA L40S")->key, std::string("nvidia-l40s"));
    QCOMPARE(catalogue().ofDevice("NVIDIA GeForce RTX 5090")->key, std::string("nvidia-rtx-5090"));
    QCOMPARE(catalogue().ofDevice("NVIDIA GeForce RTX 4090")->key, std::string("nvidia-rtx-4090"));
    QCOMPARE(catalogue().ofDevice("NVIDIA L4")->key, std::string("nvidia-l4"));
    QCOMPARE(catalogue().ofDevice("NVIDIA A10")->key, std::string("nvidia-a10"));
    QVERIFY(catalogue().ofDevice("NVIDIA A10G") == nullptr); // another part
    QCOMPARE(catalogue().ofDevice("NVIDIA H100 NVL")->key, std::string("nvidia-h100-nvl"));
}

void TestCatalogue::find_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("key");
    QTest::addColumn<int>("devices");
    QTest::addColumn<bool>("approximate");

    QTest::newRow("key") << "tpu-v3"
                         << "tpu-v3" << 0 << false;
    QTest::newRow("short") << "v5e"
                           << "tpu-v5e" << 0 << false;
    QTest::newRow("case") << "Trillium"
                          << "tpu-v6e" << 0 << false;
    QTest::newRow("capitals") << "H100"
                              << "nvidia-h100-sxm-80gb" << 0 << false;
    QTest::newRow("spaces around") << " v4 "
                                   << "tpu-v4" << 0 << false;
    QTest::newRow("one core") << "tpu-v3-core"
                              << "tpu-v3" << 1 << false;
    QTest::newRow("spaces inside") << "tpu-v7x-device (half a chip)"
                                   << "tpu-v7x" << 1 << false;
    QTest::newRow("open name") << "a100"
                               << "nvidia-a100-sxm-80gb" << 0 << true;
}

void TestCatalogue::find()
{
    QFETCH(QString, name);
    QFETCH(QString, key);
    QFETCH(int, devices);
    QFETCH(bool, approximate);

    const auto match = catalogue().find(name.toStdString());
    QVERIFY(match);
    QCOMPARE(QString::fromStdString(match->chip->key), key);
    QCOMPARE(int(match->devices.value_or(0)), devices);
    QCOMPARE(!match->approximation.empty(), approximate);
}

void TestCatalogue::unknownName()
{
    const auto match = catalogue().find("v5ee");
    QVERIFY(!match);
    QCOMPARE(match.error().front().id, std::string("MW1701"));
    QCOMPARE(match.error().front().message, std::string("unknown chip: \"v5ee\""));
    QVERIFY2(match.error().front().fix.find("v5e") != std::string::npos, match.error().front().fix.c_str());
}

void TestCatalogue::figures()
{
    const Chip& v3 = chip("v3");
    QCOMPARE(v3.devicesPerChip, 2);
    QCOMPARE(v3.peakFlopsPerSecond.at(MathFormat::Bf16).value, 123e12);
    QVERIFY(v3.peakFlopsPerSecond.at(MathFormat::Bf16).source.find("TPU v3") != std::string::npos);
    QVERIFY(!v3.peakFlopsPerSecond.contains(MathFormat::Fp32)); // unknown
    QCOMPARE(v3.interconnect.linkBytesPerSecond->value, 82e9);
    QCOMPARE(v3.maxSlice, (std::vector<std::int64_t>{32, 32}));
    QVERIFY(v3.interconnect.wrapRule == WrapRule::FullPod);

    QCOMPARE(chip("v6e").matrixUnit->value, 256.0);
    QVERIFY(!chip("v2").interconnect.hopLatencySeconds);
    QCOMPARE(*chip("v7x").maxSliceChips, 9216);
    QCOMPARE(chip("v7x").interconnect.onChipLinkBytesPerSecond->value, 540e9);

    const Chip& h100 = chip("h100");
    QCOMPARE(h100.multiprocessors->value, 132.0);
    QCOMPARE(h100.onchipBytes->value, 52428800.0);
    QCOMPARE(h100.achievableMatmulFraction->value, 0.8);
    QVERIFY(h100.interconnect.reducesInSwitch);
    QVERIFY(!chip("a100").interconnect.reducesInSwitch);
    QCOMPARE(*h100.kernels.fillDepth, 144.0);
    QCOMPARE(chip("a100").kernels.attention.at("flash2").forward, 0.62);
    QVERIFY(!chip("v100").kernels.fillDepth);
    QVERIFY(chip("v100").unsupported.contains(MathFormat::Bf16));
}

void TestCatalogue::matmulRate_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<MathFormat>("format");
    QTest::addColumn<MatmulPrecision>("precision");
    QTest::addColumn<double>("flopsPerSecond");

    using enum MathFormat;
    using enum MatmulPrecision;
    // TPU v3: 123e12 a chip, two devices.
    QTest::newRow("v3 bf16") << "v3" << Bf16 << Default << 61.5e12;
    QTest::newRow("v3 f32 default: one bf16 pass") << "v3" << Fp32 << Default << 61.5e12;
    QTest::newRow("v3 f32 high: three passes") << "v3" << Fp32 << High << 20.5e12;
    QTest::newRow("v3 f32 highest: six passes") << "v3" << Fp32 << Highest << 10.25e12;
    QTest::newRow("v3 f16 as bf16") << "v3" << Fp16 << Default << 61.5e12;
    QTest::newRow("v5e int8") << "v5e" << Int8 << Default << 394e12;
    QTest::newRow("v5e fp8 as bf16") << "v5e" << Fp8 << Default << 197e12;
    QTest::newRow("v7x fp8, half a chip") << "v7x" << Fp8 << Default << 2307e12;
    QTest::newRow("h100 f32 default: tf32") << "h100" << Fp32 << Default << 494.5e12;
    QTest::newRow("h100 f32 highest") << "h100" << Fp32 << Highest << 67e12;
    QTest::newRow("v100 bf16: as fp32") << "v100" << Bf16 << Default << 15.7e12;
    QTest::newRow("v100 f32: no tf32") << "v100" << Fp32 << Default << 15.7e12;
    QTest::newRow("a100 fp8 as bf16") << "a100" << Fp8 << Default << 312e12;
    QTest::newRow("mi250x bf16, one of two") << "mi250x" << Bf16 << Default << 191.5e12;
}

void TestCatalogue::matmulRate()
{
    QFETCH(QString, name);
    QFETCH(MathFormat, format);
    QFETCH(MatmulPrecision, precision);
    QFETCH(double, flopsPerSecond);

    const auto rate = sim::matmulRate(chip(name.toStdString().c_str()), format, precision);
    QVERIFY(rate);
    QCOMPARE(rate->flopsPerSecond, flopsPerSecond);
}

void TestCatalogue::badFiles_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("message");
    QTest::addColumn<QString>("path");

    const QString head = R"({"chips": {"c": {"name": "C", "vendor": "V", "class": "gpu", )";
    const QString net = R"("interconnect": {"kind": "pcie"}}}})";
    QTest::newRow("not JSON") << "{"
                              << "the hardware catalogue is not valid JSON"
                              << "";
    QTest::newRow("no chips") << "{}"
                              << "the hardware catalogue has no \"chips\""
                              << "";
    QTest::newRow("chips a list") << R"({"chips": []})"
                                  << "the hardware catalogue has no \"chips\""
                                  << "";
    QTest::newRow("chip no object") << R"({"chips": {"c": 1}})"
                                    << "chip \"c\" is not an object"
                                    << "chips.c";
    const QString whole = head + R"("peak_flops_per_s": {}, "interconnect": {"kind": "pcie"}}}, "instances": {"m": )";
    QTest::newRow("instance of nothing") << whole + R"({"chip": "d"}}})"
                                         << "instance \"m\" names no chip of the catalogue: \"d\""
                                         << "instances.m";
    QTest::newRow("instance without a number") << whole + R"({"chip": "c"}}})"
                                               << "instance \"m\" does not say how many chips it has"
                                               << "instances.m.chips";
    QTest::newRow("instance with the name of a chip") << whole + R"({"chip": "c", "also": ["C"], "chips": {"use": 8}}}})"
                                                      << "\"C\" is the name of something else, too"
                                                      << "instances.m";
    QTest::newRow("no peaks") << head + net << "chip \"c\" has no \"peak_flops_per_s\""
                              << "chips.c";
    QTest::newRow("no interconnect") << head + R"("peak_flops_per_s": {}}}})"
                                     << "chip \"c\" has no \"interconnect\""
                                     << "chips.c";
    QTest::newRow("negative") << head + R"("peak_flops_per_s": {"bf16": {"use": -1}}, )" + net
                              << "\"use\" of \"bf16\" must be a number above 0, got: -1"
                              << "chips.c.peak_flops_per_s.bf16";
    QTest::newRow("a bare number") << head + R"("peak_flops_per_s": {}, "hbm_bytes": 5, )" + net
                                   << "\"hbm_bytes\" is not a figure: it has no \"use\""
                                   << "chips.c.hbm_bytes";
    QTest::newRow("half a device") << head + R"("peak_flops_per_s": {}, "devices_per_chip": {"use": 1.5}, )" + net
                                   << "\"devices_per_chip\" must be a whole number, got: 1.5"
                                   << "chips.c.devices_per_chip";
    QTest::newRow("class") << R"({"chips": {"c": {"class": "npu", "peak_flops_per_s": {}, )" + net
                           << "\"class\" must be tpu, gpu or cpu, got: \"npu\""
                           << "chips.c.class";
    QTest::newRow("kind") << head + R"("peak_flops_per_s": {}, "interconnect": {"kind": "hypercube"}}}})"
                          << "unknown kind of interconnect: \"hypercube\""
                          << "chips.c.interconnect.kind";
    QTest::newRow("wrap rule") << head + R"("peak_flops_per_s": {}, "interconnect": {"kind": "torus_2d", "wrap_rule": "odd"}}}})"
                               << "unknown wrap rule: \"odd\""
                               << "chips.c.interconnect.wrap_rule";
    QTest::newRow("slice") << head + R"("peak_flops_per_s": {}, "max_slice": {"use": [4, 0]}, )" + net
                           << "\"max_slice\" must list whole numbers above 0, got: 0"
                           << "chips.c.max_slice";
    QTest::newRow("kernels") << head + R"("peak_flops_per_s": {}, "kernel_generation": {"use": "new"}, )" + net
                             << "\"kernel_generations\" has no \"new\""
                             << "chips.c.kernel_generation";
    QTest::newRow("attention")
        << R"({"kernel_generations": {"g": {"attention_share": {"flash1": {"forward": {"use": 1.5}, "backward": {"use": 0.5}}}}}, )"
            + head.mid(1) + R"("peak_flops_per_s": {}, )" + net
        << "\"forward\" must be a share of the peak, above 0 and at most 1"
        << "kernel_generations.g.attention_share.flash1.forward";
    QTest::newRow("alias") << R"({"aliases": {"a": {"chip": "b"}}, "chips": {"c": {"class": "gpu", "peak_flops_per_s": {}, )"
            + net << "alias \"a\" names no chip of the catalogue: \"b\""
                           << "aliases.a";
    QTest::newRow("alias devices")
        << R"({"aliases": {"a": {"chip": "c", "devices": 2}}, "chips": {"c": {"class": "gpu", "peak_flops_per_s": {}, )" + net
        << "alias \"a\" means 2 devices of a chip that has 1"
        << "aliases.a";
}

void TestCatalogue::badFiles()
{
    QFETCH(QString, text);
    QFETCH(QString, message);
    QFETCH(QString, path);

    const auto result = Catalogue::parse(text.toStdString(), "hw.json");
    QVERIFY(!result);
    const Problem& problem = result.error().front();
    QCOMPARE(problem.id, std::string("MW1702"));
    QCOMPARE(QString::fromStdString(problem.message), message);
    QCOMPARE(QString::fromStdString(problem.place.path), path);
    QCOMPARE(problem.place.file, std::string("hw.json"));
}

void TestCatalogue::allFaultsAreReported()
{
    const auto result = Catalogue::parse(R"({"chips": {"a": 1, "b": 2}, "aliases": {"x": {}}})", "hw.json");
    QVERIFY(!result);
    QCOMPARE(result.error().size(), std::size_t(3));
}

void TestCatalogue::missingFile()
{
    const auto result = Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/none.json");
    QVERIFY(!result);
    QCOMPARE(result.error().front().id, std::string("MW1001"));
}

MESHWRIGHT_TEST(TestCatalogue)

} // namespace tst_catalogue

#include "tst_catalogue.moc"
