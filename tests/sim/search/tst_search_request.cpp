// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/resources.h"
#include "sim/search/search_request.h"
#include "tests/test_class.h"

namespace tst_search_request {

using namespace meshwright;
using namespace meshwright::sim;

/// What the command line says of a search.
class TestSearchRequest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void counts_data();
    void counts();
    void machines_data();
    void machines();
    void slices_data();
    void slices();
    void lists();
    void work_data();
    void work();
    void hosts_data();
    void hosts();
    void fixed_data();
    void fixed();
};

namespace {

std::string firstId(const Problems& problems)
{
    return problems.front().id;
}

} // namespace

void TestSearchRequest::counts_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<qint64>("count"); // 0: a problem

    QTest::newRow("plain") << "4096" << qint64{4096};
    QTest::newRow("k") << "4k" << qint64{4096};
    QTest::newRow("M") << "1M" << qint64{1048576};
    QTest::newRow("G") << "2G" << qint64{2147483648};
    QTest::newRow("half a million") << "0.5M" << qint64{524288};
    QTest::newRow("a fraction of k") << "1.5k" << qint64{1536};
    QTest::newRow("1T is the most") << "1T" << qint64{1099511627776};
    QTest::newRow("a whole training's") << "15T" << qint64{0};
    QTest::newRow("a fraction that is left") << "0.3k" << qint64{0};
    QTest::newRow("none") << "" << qint64{0};
    QTest::newRow("zero") << "0" << qint64{0};
    QTest::newRow("negative") << "-1" << qint64{0};
    QTest::newRow("NaN") << "nan" << qint64{0};
    QTest::newRow("2^63") << "9223372036854775808" << qint64{0};
    QTest::newRow("overflow by its unit") << "9223372036854775807G" << qint64{0};
    QTest::newRow("unit alone") << "k" << qint64{0};
}

void TestSearchRequest::counts()
{
    QFETCH(QString, text);
    QFETCH(qint64, count);
    const auto read = parseCount(text.toStdString(), "--tokens");
    QCOMPARE(read.has_value(), count > 0);
    if (read)
        QCOMPARE(qint64{*read}, count);
    else
        QCOMPARE(firstId(read.error()), std::string("MW1935"));
}

void TestSearchRequest::machines_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("chips");
    QTest::addColumn<QString>("price");
    QTest::addColumn<qint64>("devices");
    QTest::addColumn<QString>("id"); // of the problem

    QTest::newRow("GPUs") << "h100x64"
                          << ""
                          << "" << qint64{64} << "";
    QTest::newRow("chips of a TPU") << "v5e-64"
                                    << ""
                                    << "" << qint64{64} << "";
    QTest::newRow("cores of a TPU") << "v5p-256"
                                    << ""
                                    << "" << qint64{128} << "";
    QTest::newRow("two devices a chip") << "v3-32"
                                        << ""
                                        << "" << qint64{32} << "";
    QTest::newRow("slices") << "v5e-256x2"
                            << ""
                            << "" << qint64{512} << "";
    QTest::newRow("apart") << "h100"
                           << "16"
                           << "" << qint64{16} << "";
    QTest::newRow("instances") << "p5.48xlarge x 64"
                               << ""
                               << "" << qint64{512} << "";
    QTest::newRow("an instance alone is one") << "a3-mega"
                                              << ""
                                              << "" << qint64{8} << "";
    QTest::newRow("racks") << "GB200 NVL72 x 4"
                           << ""
                           << "" << qint64{288} << "";
    QTest::newRow("slices in words") << "2 slices of v5e-256"
                                     << ""
                                     << "" << qint64{512} << "";
    QTest::newRow("instances by their chips") << "p5.48xlarge"
                                              << "64"
                                              << "" << qint64{64} << "";
    QTest::newRow("half an instance") << "p5.48xlarge"
                                      << "12"
                                      << "" << qint64{0} << "MW1937";
    QTest::newRow("unknown") << "h1000x64"
                             << ""
                             << "" << qint64{0} << "MW1701";
    QTest::newRow("no number") << "h100"
                               << ""
                               << "" << qint64{0} << "MW1937";
    QTest::newRow("no chips") << "h100x0"
                              << ""
                              << "" << qint64{0} << "MW1914";
    QTest::newRow("2^63") << "h100x9223372036854775808"
                          << ""
                          << "" << qint64{0} << "MW1914";
    QTest::newRow("NaN") << "h100xnan"
                         << ""
                         << "" << qint64{0} << "MW1914";
    QTest::newRow("odd cores") << "v4-7"
                               << ""
                               << "" << qint64{0} << "MW1914";
    QTest::newRow("range backwards") << "h100"
                                     << "64..16"
                                     << "" << qint64{0} << "MW1937";
    QTest::newRow("hosts without a network") << "16xL40S"
                                             << ""
                                             << "" << qint64{0} << "MW1709";
    QTest::newRow("no slice") << "v5e-17"
                              << ""
                              << "" << qint64{0} << "MW1914";
    QTest::newRow("machine types of a TPU") << "ct5lp-hightpu-4t x 16"
                                            << ""
                                            << "" << qint64{64} << "";
    QTest::newRow("thousands apart") << "16,384 H100"
                                     << ""
                                     << "" << qint64{16384} << "";
    QTest::newRow("larger than a slice") << "v5e-512"
                                         << ""
                                         << "" << qint64{0} << "MW1747";
    QTest::newRow("far too many") << "h100x9000000"
                                  << ""
                                  << "" << qint64{0} << "MW1747";
    QTest::newRow("price") << "h100x8"
                           << ""
                           << "cheap" << qint64{0} << "MW1939";
    QTest::newRow("price below 0") << "h100x8"
                                   << ""
                                   << "-1" << qint64{0} << "MW1939";
}

void TestSearchRequest::machines()
{
    QFETCH(QString, name);
    QFETCH(QString, chips);
    QFETCH(QString, price);
    QFETCH(qint64, devices);
    QFETCH(QString, id);
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    static const Calibration kCalibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    SearchWords words;
    words.hardware = {name.toStdString()};
    words.chips = chips.toStdString();
    if (!price.isEmpty())
        words.prices = {price.toStdString()};
    std::vector<std::string> notes;
    const auto read = machinesOf(words, kCatalogue, kCalibration, notes);
    QCOMPARE(read ? std::string{} : firstId(read.error()), id.toStdString());
    if (read)
        QCOMPARE(qint64{read->front().cluster.devices}, devices);
}

void TestSearchRequest::slices_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("chips");
    QTest::addColumn<QString>("said"); // the last note, or the fix of a problem

    // v4's names count cores, two a chip; its largest slice has 4096 chips.
    QTest::newRow("two slices, counted in cores") << "v4-12288"
                                                  << ""
                                                  << "join slices: v4-6144x2";
    QTest::newRow("cores that leave a part") << "v4-10000"
                                             << ""
                                             << "join slices: v4-5120x2"; // 5000 chips in cubes of 64
    QTest::newRow("two of v5p") << "v5p-24576"
                                << ""
                                << "join slices: v5p-12288x2";
    QTest::newRow("two whole slices") << "v5e-512"
                                      << ""
                                      << "join slices: v5e-256x2";
    QTest::newRow("a part of a slice more") << "v6e-300"
                                            << ""
                                            << "join slices: v6e-256x2";
    QTest::newRow("flat, and not sold") << "v5e-100"
                                        << ""
                                        << "v5e-100 is read as a slice of 10x10: 10x10 chips of TPU v5e are not a slice that is "
                                           "sold: each side is a power of two; slices of 64 or 128 chips are";
    QTest::newRow("cubes, and not sold") << "v5p-100"
                                         << ""
                                         << "v5p-100 is read as a slice of 5x5x2: 5x5x2 chips of TPU v5p are not a slice that is "
                                            "sold: each side is 1, 2 or a multiple of 4; slices of 32 or 64 chips are";
    QTest::newRow("an odd number, and not sold")
        << "v5e-7"
        << ""
        << "v5e-7 is read as a slice of 7x1: 7x1 chips of TPU v5e are not a slice that is "
           "sold: each side is a power of two; slices of 4 or 8 chips are";
    QTest::newRow("hosts that are not full") << "h100x100"
                                             << ""
                                             << "100 H100 SXM 80GB are taken as 20 hosts of 5: usual hosts have 8, which 96 or "
                                                "104 chips fill";
    QTest::newRow("hosts of one") << "13xH100"
                                  << ""
                                  << "13 H100 SXM 80GB are taken as 13 hosts of 1: usual hosts have 8, which 8 or 16 chips fill";
    QTest::newRow("racks that are not full")
        << "gb200x100"
        << ""
        << "100 GB200 NVL72 (per GPU) are taken as 2 racks of 50: usual racks have 72, which "
           "72 or 144 chips fill";
    QTest::newRow("hosts that are named") << "20 nodes of 5 H100"
                                          << ""
                                          << "";
    QTest::newRow("a part of a host") << "h100x5"
                                      << ""
                                      << "";
    QTest::newRow("sold") << "v5e-128"
                          << ""
                          << "";
    QTest::newRow("cubes that are sold") << "v4-4x4x12"
                                         << ""
                                         << "";
    QTest::newRow("chips of the name and others") << "h100x64"
                                                  << "32"
                                                  << "--chips 32 replaces the 64 chips of h100x64";
    QTest::newRow("chips of no name") << "h100"
                                      << "32"
                                      << "";
}

void TestSearchRequest::slices()
{
    QFETCH(QString, name);
    QFETCH(QString, chips);
    QFETCH(QString, said);
    static const Catalogue kCatalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    static const Calibration kCalibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    SearchWords words;
    words.hardware = {name.toStdString()};
    words.chips = chips.toStdString();
    std::vector<std::string> notes;
    const auto read = machinesOf(words, kCatalogue, kCalibration, notes);
    QCOMPARE(QString::fromStdString(!read ? read.error().front().fix : notes.empty() ? std::string() : notes.back()), said);
    if (!read) { // what the fix names is a machine
        words.hardware = {read.error().front().fix.substr(std::string_view("join slices: ").size())};
        QVERIFY(machinesOf(words, kCatalogue, kCalibration, notes));
    }
}

/// Commas stand between machines, and in numbers.
void TestSearchRequest::lists()
{
    using Names = std::vector<std::string>;
    QCOMPARE(machineTexts({"64xH100,512xH100", "v5e-64"}), (Names{"64xH100", "512xH100", "v5e-64"}));
    QCOMPARE(machineTexts({"16,384 H100"}), Names{"16,384 H100"});
    QCOMPARE(machineTexts({"4 nodes, 8 H100 each,v5e-64"}), (Names{"4 nodes, 8 H100 each", "v5e-64"}));
    QCOMPARE(machineTexts({"H100, 64"}), Names{"H100, 64"});
    QCOMPARE(machineTexts({"h100,,v5p"}), (Names{"h100", "", "v5p"}));
}

void TestSearchRequest::work_data()
{
    QTest::addColumn<QString>("tokens");
    QTest::addColumn<QString>("sequence");
    QTest::addColumn<QString>("batch");
    QTest::addColumn<QString>("format");
    QTest::addColumn<qint64>("sequences");
    QTest::addColumn<QString>("id");

    QTest::newRow("tokens") << "1M"
                            << "4k"
                            << ""
                            << "bf16" << qint64{256} << "";
    QTest::newRow("batch") << ""
                           << "4096"
                           << "192"
                           << "fp8" << qint64{192} << "";
    QTest::newRow("both") << "1M"
                          << "4k"
                          << "256"
                          << "bf16" << qint64{0} << "MW1936";
    QTest::newRow("neither") << ""
                             << "4k"
                             << ""
                             << "bf16" << qint64{0} << "MW1936";
    QTest::newRow("part of a sequence") << "5000"
                                        << "4096"
                                        << ""
                                        << "bf16" << qint64{0} << "MW1936";
    QTest::newRow("format") << "1M"
                            << "4k"
                            << ""
                            << "b16" << qint64{0} << "MW1903";
}

void TestSearchRequest::work()
{
    QFETCH(QString, tokens);
    QFETCH(QString, sequence);
    QFETCH(QString, batch);
    QFETCH(QString, format);
    QFETCH(qint64, sequences);
    QFETCH(QString, id);
    SearchWords words;
    words.model = "llama3_8b";
    words.tokens = tokens.toStdString();
    words.sequence = sequence.toStdString();
    words.globalBatch = batch.toStdString();
    words.format = format.toStdString();
    const auto read = workOf(words);
    QCOMPARE(read ? std::string{} : firstId(read.error()), id.toStdString());
    if (read)
        QCOMPARE(qint64{read->globalBatch}, sequences);
    words.model = "no/such/config.json";
    QCOMPARE(firstId(workOf(words).error()), std::string("MW1001"));
}

/// As many chips as may share the fast links and divide them all alike.
void TestSearchRequest::hosts_data()
{
    QTest::addColumn<std::int64_t>("chips");
    QTest::addColumn<std::int64_t>("fastDomain");
    QTest::addColumn<std::int64_t>("ofHost");
    QTest::newRow("hosts of eight") << std::int64_t{512} << std::int64_t{8} << std::int64_t{8};
    QTest::newRow("a part of one") << std::int64_t{4} << std::int64_t{8} << std::int64_t{4};
    QTest::newRow("racks of 72 that 256 do not fill") << std::int64_t{256} << std::int64_t{72} << std::int64_t{64};
    QTest::newRow("racks of 72 that are full") << std::int64_t{288} << std::int64_t{72} << std::int64_t{72};
    QTest::newRow("twelve on hosts of eight") << std::int64_t{12} << std::int64_t{8} << std::int64_t{6};
    QTest::newRow("a prime number") << std::int64_t{73} << std::int64_t{72} << std::int64_t{1};
}

void TestSearchRequest::hosts()
{
    QFETCH(std::int64_t, chips);
    QFETCH(std::int64_t, fastDomain);
    QTEST(chipsOfHost(chips, fastDomain), "ofHost");
}

void TestSearchRequest::fixed_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("count"); // below 0: a problem

    QTest::newRow("none") << "tensor=8" << 1;
    QTest::newRow("two") << "tensor=8,zero=0" << 2;
    QTest::newRow("words") << "recompute=full,schedule=1f1b" << 2;
    QTest::newRow("short names") << "tp=8 pp=4 dp=16" << 3;
    QTest::newRow("FSDP: all other axes are 1") << "FSDP" << 6;
    QTest::newRow("HSDP") << "HSDP" << 6;
    QTest::newRow("with tensors") << "ZeRO-1 + TP 8" << 5;
    QTest::newRow("Megatron: three axes are free") << "Megatron" << 3;
    QTest::newRow("PyTorch's second FSDP") << "FSDP2" << 6;
    QTest::newRow("without a dash") << "ZeRO3" << 6;
    QTest::newRow("two axes") << "2D" << 5;
    QTest::newRow("three axes") << "3D" << 3;
    QTest::newRow("in words") << "data parallel" << 5;
    QTest::newRow("numbers at their names") << "TP8 PP4" << 2;
    QTest::newRow("in one word") << "dp8tp4" << 2;
    QTest::newRow("a plan and a degree") << "FSDP+TP8" << 6;
    QTest::newRow("options of torchtitan") << "dp_shard=8,tp=8" << 2;
    QTest::newRow("options of Megatron-LM") << "--tensor-model-parallel-size=8" << 1;
    QTest::newRow("spaces around the sign") << "tp = 8 pp =4" << 2;
    QTest::newRow("colons") << "tp:8, pp: 4" << 2;
    QTest::newRow("an unknown name with a number") << "tq8" << -1;
    QTest::newRow("two plans") << "FSDP + HSDP" << -1;
    QTest::newRow("unknown") << "tensr=8" << -1;
    QTest::newRow("like no name") << "unknown=1" << -1;
    QTest::newRow("no value") << "tensor" << -1;
    QTest::newRow("zero") << "tensor=0" << -1;
    QTest::newRow("ZeRO 4") << "zero=4" << -1;
    QTest::newRow("policy") << "recompute=some" << -1;
    QTest::newRow("twice") << "tensor=1,tensor=2" << -1;
}

void TestSearchRequest::fixed()
{
    QFETCH(QString, text);
    QFETCH(int, count);
    const std::vector<std::string> texts = {text.toStdString()};
    const auto read = parseFixed(texts);
    QCOMPARE(read ? static_cast<int>(read->size()) : -1, count);
    if (!read)
        QCOMPARE(firstId(read.error()), std::string("MW1938"));
    if (text == "unknown=1")
        QCOMPARE(QString::fromStdString(read.error().front().fix).count(" fsdp,"), 1);
    if (text == "recompute=some") // each that may be asked for
        QVERIFY(QString::fromStdString(read.error().front().fix).contains("minimal_with_context"));
}

MESHWRIGHT_TEST(TestSearchRequest)

} // namespace tst_search_request

#include "tst_search_request.moc"
