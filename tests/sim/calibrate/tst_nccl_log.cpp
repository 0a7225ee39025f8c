// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/nccl_log.h"

#include "sim/hardware/catalogue.h"
#include "sim/hardware/hardware_file.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <random>

namespace tst_nccl_log {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// What all_reduce_perf of nccl-tests 2.13 prints for 4 ranks.
constexpr const char* kText
    = R"(# nThread 1 nGpus 4 minBytes 8 maxBytes 134217728 step: 128(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  70012 on     node-a device  0 [0x07] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  70012 on     node-a device  1 [0x0b] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid  70012 on     node-a device  2 [0x48] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid  70012 on     node-a device  3 [0x4c] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    20.00    0.05    0.08      0    19.80    0.05    0.08      0
      131072         32768     float     sum      -1    30.10    4.35    6.53      0    30.00    4.37    6.55      0
    16777216       4194304     float     sum      -1    160.0   104.9   157.3      0    159.0   105.5   158.3      0
   134217728      33554432     float     sum      -1   1020.0   131.6   197.4      0   1019.0   131.7   197.6      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 90.3
#
)";

/// The same with -J, two ranks on two hosts.
constexpr const char* kJson = R"({
"version": 1, "args": ["./all_gather_perf", "-J", "out.json"], "nccl_version": 22703,
"config": {"nthreads": 1, "ngpus": 1, "devices": [
  {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0, "device_hex": "0000:07:00", "device_info": "NVIDIA H100 80GB HBM3"},
  {"rank": 1, "group": 0, "pid": 2, "hostname": "b", "device": 0, "device_hex": "0000:07:00", "device_info": "NVIDIA H100 80GB HBM3"}]},
"results": [
  {"size": 4096, "count": 512, "type": "float", "redop": "none", "root": "    -1", "out_of_place": {"time": 25.0, "alg_bw": 0.16, "bus_bw": 0.08, "nwrong": 0}, "in_place": {"time": 24.0, "alg_bw": 0.17, "bus_bw": 0.09, "nwrong": 3}},
  {"size": 1073741824, "count": 134217728, "type": "float", "redop": "none", "root": "    -1", "out_of_place": null, "in_place": {"cpu_time": 12000.0, "alg_bw": 89.5, "bus_bw": 44.7, "nwrong": null}}],
"average_bus_bandwidth": {"bandwidth": 22.4, "okay": "unchecked"}})";

QString firstId(const Result<NcclLog>& result)
{
    return result ? QString() : QString::fromStdString(result.error().front().id);
}

} // namespace

class TestNcclLog : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void text();
    void json();
    void olderText();
    void foreignLines_data();
    void foreignLines();
    void tags_data();
    void tags();
    void collectiveOfTheRows_data();
    void collectiveOfTheRows();
    void fit();
    void lines_data();
    void linksThatCannotBe_data();
    void linksThatCannotBe();
    void lines();
    void chipOfTheLog();
    void profileIsAMachine();
    void brokenLogs_data();
    void brokenLogs();
    void cutAnywhere_data();
    void cutAnywhere();
};

void TestNcclLog::text()
{
    const NcclLog log = valueOf(parseNcclLog(kText, "all_reduce_perf.txt"));
    QCOMPARE(log.operation, CollectiveKind::AllReduce);
    QCOMPARE(log.ranks, 4);
    QCOMPARE(log.hosts, 1);
    QCOMPARE(log.device, std::string("NVIDIA A100-SXM4-80GB"));
    QCOMPARE(log.points.size(), std::size_t(4));
    QCOMPARE(log.points[1].bytes, 131072);
    QCOMPARE(*log.points[1].outOfPlaceSeconds, 30.1e-6);
    QCOMPARE(*log.points[1].inPlaceSeconds, 30.0e-6);
    QCOMPARE(log.wrong, 0);
}

void TestNcclLog::json()
{
    const NcclLog log = valueOf(parseNcclLog(kJson, "out.json"));
    QCOMPARE(log.operation, CollectiveKind::AllGather);
    QCOMPARE(log.ranks, 2);
    QCOMPARE(log.hosts, 2);
    QCOMPARE(log.points.size(), std::size_t(2));
    QVERIFY(!log.points[1].outOfPlaceSeconds);
    QCOMPARE(log.points[1].seconds(), 0.012);
    QCOMPARE(log.wrong, 3);
}

/// No column for the root, one for errors in place of the count; ranks from the header; a root that is a rank.
void TestNcclLog::olderText()
{
    const NcclLog gather = valueOf(parseNcclLog("# nThread 2 nGpus 4 minBytes 8\n"
                                                "#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error\n"
                                                "  65536  2048  float  15.0  4.4  3.8  0e+00  14.0  4.7  4.1  0e+00\n",
        "/logs/all_gather_perf.log"));
    QCOMPARE(gather.ranks, 8);
    QCOMPARE(gather.points.front().seconds(), 15e-6);
    QCOMPARE(*gather.points.front().inPlaceSeconds, 14e-6);
    const NcclLog broadcast = valueOf(parseNcclLog("# Collective test starting: broadcast_perf\n# nThread 1 nGpus 8\n"
                                                   "  65536  16384  float  none  0  15.0  4.4  4.4  0  14.0  4.7  4.7  0\n",
        "x"));
    QCOMPARE(broadcast.operation, CollectiveKind::Broadcast);
    QCOMPARE(broadcast.points.front().seconds(), 15e-6);
}

void TestNcclLog::foreignLines_data()
{
    QTest::addColumn<QString>("line");
    QTest::newRow("mpirun") << "8 more processes have sent help message help-mtl-ofi.txt / OFI call fail";
    QTest::newRow("a warning") << "node-a:56543:56543 [0] NCCL INFO Bootstrap : Using eth0";
    QTest::newRow("a date") << "2026 11 30 run of all_reduce_perf begins on node-a with 4 GPUs and a log";
    QTest::newRow("a count") << "0 1 of 4 ranks reported errors in the last interval of this run";
    QTest::newRow("a number") << "4096";
}

/// What a launcher or a library writes between the rows is not a row.
void TestNcclLog::foreignLines()
{
    QFETCH(QString, line);
    std::string text = kText;
    const NcclLog plain = valueOf(parseNcclLog(text, "all_reduce_perf.txt"));
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
        text.insert(at + 1, line.toStdString() + "\n");
        at += static_cast<std::size_t>(line.size()) + 1;
    }
    const NcclLog log = valueOf(parseNcclLog(text, "all_reduce_perf.txt"));
    QCOMPARE(log.ranks, plain.ranks);
    QCOMPARE(log.points.size(), plain.points.size());
    for (std::size_t i = 0; i < log.points.size(); ++i)
        QCOMPARE(log.points[i].seconds(), plain.points[i].seconds());
}

void TestNcclLog::tags_data()
{
    QTest::addColumn<QString>("tag");
    QTest::newRow("none") << "";
    QTest::newRow("mpirun --tag-output") << "[1,0]<stdout>:";
    QTest::newRow("Open MPI 5") << "[prterun-node-a-70012@1,0]<stdout>: ";
    QTest::newRow("with the time") << "Mon Nov  2 10:00:00 2026[1,3]<stdout>:";
    QTest::newRow("srun --label") << "0: ";
    QTest::newRow("srun of many tasks") << " 12: ";
}

/// Launchers put the rank before each line that a process prints.
void TestNcclLog::tags()
{
    QFETCH(QString, tag);
    QString tagged;
    for (const QString& line : QString(kText).split('\n'))
        tagged += tag + line + '\n';
    const NcclLog log = valueOf(parseNcclLog(tagged.toStdString(), "all_reduce_perf.txt"));
    QCOMPARE(log.ranks, 4);
    QCOMPARE(log.hosts, 1);
    QCOMPARE(log.device, std::string("NVIDIA A100-SXM4-80GB"));
    QCOMPARE(log.points.size(), std::size_t(4));
    QCOMPARE(*log.points[1].inPlaceSeconds, 30.0e-6);
}

void TestNcclLog::collectiveOfTheRows_data()
{
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("redop");
    QTest::addColumn<double>("factor"); // busbw over algbw
    QTest::addColumn<int>("operation"); // -1: MW1713
    QTest::addColumn<QString>("said");
    const auto kind = [](CollectiveKind one) { return static_cast<int>(one); };
    QTest::newRow("2 x 7/8") << 8 << "sum -1" << 1.75 << kind(CollectiveKind::AllReduce) << "";
    QTest::newRow("7/8 of a reduction") << 8 << "sum -1" << 0.875 << kind(CollectiveKind::ReduceScatter) << "";
    QTest::newRow("a root") << 8 << "none 3" << 1.0 << kind(CollectiveKind::Broadcast) << "";
    QTest::newRow("no root") << 6 << "none -1" << 1.0 << kind(CollectiveKind::Permute) << "";
    QTest::newRow("two collectives have it")
        << 4 << "none -1" << 0.75 << -1 << "busbw is 0.75 times algbw, which of 4 ranks all-gather and all-to-all have";
    QTest::newRow("none has it") << 4 << "sum -1" << 1.9 << -1 << "busbw is 1.9 times algbw, which no collective of 4 ranks has";
}

/// A log that names no collective is identified by its rows, if one collective has the factor between the bandwidths that they print.
void TestNcclLog::collectiveOfTheRows()
{
    QFETCH(int, ranks);
    QFETCH(QString, redop);
    QFETCH(double, factor);
    QFETCH(int, operation);
    QFETCH(QString, said);
    const QString row
        = QString("  1048576 262144 float %1 45.2 %2 %3 0 44.9 %2 %3 0\n").arg(redop).arg(23.19).arg(23.19 * factor);
    const auto log = parseNcclLog(QString("# nThread 1 nGpus %1\n").arg(ranks).toStdString() + row.toStdString(), "a.txt");
    QCOMPARE(log ? static_cast<int>(log->operation) : -1, operation);
    if (!log) {
        QCOMPARE(firstId(log), "MW1713");
        QVERIFY2(log.error().front().message.find(said.toStdString()) != std::string::npos, log.error().front().message.c_str());
    }
}

void TestNcclLog::lines_data()
{
    QTest::addColumn<QList<double>>("microseconds"); // of 1, 2, 4 .. MiB
    QTest::addColumn<double>("latency"); // microseconds
    QTest::addColumn<double>("perMiB"); // microseconds
    QTest::addColumn<bool>("isDoubtful");
    QTest::newRow("no latency") << QList<double>{500, 1000, 2000, 4000} << 0.0 << 500.0 << false;
    QTest::newRow("a line") << QList<double>{630, 1130, 2130, 4130} << 130.0 << 500.0 << false;
    QTest::newRow("a slow first row") << QList<double>{9012, 1130, 2130, 4130} << 130.0 << 500.0 << true;
    QTest::newRow("a slow row in the middle") << QList<double>{630, 1130, 9012, 4130} << 130.0 << 500.0 << true;
    QTest::newRow("below the origin") << QList<double>{90, 200, 400, 800} << 0.0 << 100.0 << false;
    QTest::newRow("one size") << QList<double>{700} << 0.0 << 700.0 << false;
    // All latency: the bandwidth is taken as if 1 % of the time were its.
    QTest::newRow("flat") << QList<double>{50, 50, 50, 50} << 49.5 << 0.0625 << false;
}

/// The line with the least sum of relative errors: exact where all points but one lie on it.
void TestNcclLog::lines()
{
    QFETCH(QList<double>, microseconds);
    QFETCH(double, latency);
    QFETCH(double, perMiB);
    QFETCH(bool, isDoubtful);
    NcclLog log;
    log.operation = CollectiveKind::AllToAll;
    log.ranks = 2;
    for (qsizetype i = 0; i < microseconds.size(); ++i)
        log.points.push_back({std::int64_t{1 << 20} << i, microseconds[i] * 1e-6, {}});
    const NcclFit fit = fitNccl(log);
    const double seconds = fit.seconds(1048576.0) - fit.latencySeconds;
    QVERIFY2(qAbs(fit.latencySeconds * 1e6 - latency) < 0.02 * latency + 1e-6, qPrintable(QString::number(fit.latencySeconds)));
    QVERIFY2(qAbs(seconds * 1e6 - perMiB) < 0.02 * perMiB, qPrintable(QString::number(seconds)));
    const Problems doubts = doubtfulFit(log, "a.txt");
    QCOMPARE(!doubts.empty(), isDoubtful);
    if (isDoubtful) {
        QCOMPARE(doubts.front().id, std::string("MW1716"));
        QCOMPARE(doubts.front().severity, Severity::Warning);
    }
}

void TestNcclLog::linksThatCannotBe_data()
{
    QTest::addColumn<QString>("device");
    QTest::addColumn<QString>("base");
    QTest::addColumn<int>("operation");
    QTest::addColumn<double>("bandwidth"); // GB/s, of the bus
    QTest::addColumn<bool>("isOneSize");
    QTest::addColumn<QString>("said"); // of the warnings

    const int allReduce = static_cast<int>(CollectiveKind::AllReduce);
    const int allGather = static_cast<int>(CollectiveKind::AllGather);
    // An H100 has 450 GB/s one way. Its switch adds up: 8 ranks send each byte once, of which nccl-tests counts 1.75.
    QTest::newRow("what H100 reaches") << "NVIDIA H100 80GB HBM3"
                                       << "" << allReduce << 480.0 << false << "";
    QTest::newRow("twice what H100 has")
        << "NVIDIA H100 80GB HBM3"
        << "" << allReduce << 900.0 << false
        << "MW1717 a bus bandwidth of 900 GB/s is more than the 787.5 GB/s that the links of H100 SXM 80GB allow";
    QTest::newRow("nothing is added up in an all-gather")
        << "NVIDIA H100 80GB HBM3"
        << "" << allGather << 480.0 << false
        << "MW1717 a bus bandwidth of 480 GB/s is more than the 450 GB/s that the links of H100 SXM 80GB allow";
    QTest::newRow("PCIe") << "NVIDIA L40S"
                          << "" << allReduce << 352.0 << false
                          << "MW1717 a bus bandwidth of 352 GB/s is more than the 31 GB/s that the links of L40S 48GB allow";
    QTest::newRow("the chip that is named") << ""
                                            << "a100" << allGather << 480.0 << false << "MW1717 a bus bandwidth of 480 GB/s";
    QTest::newRow("a GPU that is not known") << "NVIDIA X1"
                                             << "" << allReduce << 9000.0 << false << "";
    QTest::newRow("one size") << "NVIDIA H100 80GB HBM3"
                              << "" << allReduce << 100.0 << true
                              << "MW1718 all rows are of one size, 1.00 MiB: a latency cannot be fitted, and 0 s is taken";
}

void TestNcclLog::linksThatCannotBe()
{
    QFETCH(const QString, device);
    QFETCH(const QString, base);
    QFETCH(const int, operation);
    QFETCH(const double, bandwidth);
    QFETCH(const bool, isOneSize);
    QFETCH(const QString, said);
    static const Catalogue kCatalogue = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    NcclLog log;
    log.operation = static_cast<CollectiveKind>(operation);
    log.ranks = 8;
    log.hosts = 1;
    log.device = device.toStdString();
    const double factor = log.operation == CollectiveKind::AllReduce ? 1.75 : 0.875;
    for (int i = 0; i < (isOneSize ? 1 : 3); ++i) {
        const std::int64_t bytes = std::int64_t{1 << 20} << i;
        log.points.push_back({bytes, factor * static_cast<double>(bytes) / (1e9 * bandwidth), {}});
    }
    const Problems doubts = doubtfulLinks(log, "a.txt", base.toStdString(), kCatalogue);
    QCOMPARE(doubts.size(), std::size_t(said.isEmpty() ? 0 : 1));
    if (doubts.empty())
        return;
    const QString words = QString::fromStdString(doubts.front().id + " " + doubts.front().message);
    QVERIFY2(words.startsWith(said), qPrintable(words));
    QCOMPARE(doubts.front().severity, Severity::Warning);
    QCOMPARE(doubts.front().place.file, std::string("a.txt"));
}

void TestNcclLog::fit()
{
    const NcclFit fit = fitNccl(valueOf(parseNcclLog(kText, "x_all_reduce_perf")));
    QCOMPARE(fit.busFactor, 1.5);
    // The line through the smallest and the largest size: 1000 us more for 134216704 bytes more.
    QVERIFY(qAbs(fit.latencySeconds - (20e-6 - 1024 * 1000e-6 / 134216704)) < 1e-12);
    QVERIFY(qAbs(fit.busBytesPerSecond / (134216704 * 1.5 / 1000e-6) - 1.0) < 1e-9);
    QCOMPARE(fit.worstBytes, 131072);
    QVERIFY(qAbs(fit.seconds(fit.kneeBytes) - 2.0 * fit.latencySeconds) < 1e-12);
    QVERIFY(fit.slower.empty());
    QVERIFY(fit.worstError > 0.05 && fit.worstError < 0.5);

    NcclLog bent = valueOf(parseNcclLog(kText, "x_all_reduce_perf"));
    bent.points[1].outOfPlaceSeconds = 200e-6; // longer than 16 MiB takes
    QCOMPARE(fitNccl(bent).slower, std::vector<std::int64_t>{131072});
}

/// The longest name of a GPU that is a word of what its driver says; none is a problem, not another GPU.
void TestNcclLog::chipOfTheLog()
{
    const Catalogue catalogue = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    const auto keyOf = [&](const char* device) {
        const Chip* chip = catalogue.ofDevice(device);
        return chip == nullptr ? std::string() : chip->key;
    };
    QCOMPARE(keyOf("NVIDIA A100-SXM4-80GB"), std::string("nvidia-a100-sxm-80gb"));
    QCOMPARE(keyOf("NVIDIA A100-PCIE-40GB"), std::string("nvidia-a100-pcie-40gb"));
    QCOMPARE(keyOf("NVIDIA H100 80GB HBM3"), std::string("nvidia-h100-sxm-80gb"));
    QCOMPARE(keyOf("NVIDIA GH200 480GB"), std::string("nvidia-gh200-141gb"));
    QCOMPARE(keyOf("Tesla V100-SXM2-32GB"), std::string("nvidia-v100-sxm2"));
    QCOMPARE(keyOf("NVIDIA GeForce GT 1030"), std::string());
    QCOMPARE(keyOf("NVIDIA RTX A1000"), std::string());
    NcclLog log = valueOf(parseNcclLog(kText, "all_reduce_perf.txt"));
    log.device = "NVIDIA GeForce GT 1030";
    QCOMPARE(ncclProfileJson({log}, "", catalogue).error().front().id, std::string("MW1715"));
    QCOMPARE(ncclProfileJson({log}, "h9000", catalogue).error().front().id, std::string("MW1701"));
}

/// A study can name the profile; a collective of the largest size takes what was measured.
void TestNcclLog::profileIsAMachine()
{
    const Catalogue catalogue = valueOf(Catalogue::load(MESHWRIGHT_SOURCE_DIR "/resources/hardware/catalogue.json"));
    const NcclLog log = valueOf(parseNcclLog(kText, "all_reduce_perf.txt"));
    const Machine machine = valueOf(parseHardware(valueOf(ncclProfileJson({log}, "", catalogue)), "links.json", catalogue));
    QCOMPARE(machine.deviceCount(), 4);
    QCOMPARE(machine.chip.key, std::string("nvidia-a100-sxm-80gb"));
    const PhysicalAxis& axis = machine.topology.axes().front();
    GroupAxis group;
    group.size = 4;
    group.kind = GroupKind::Switch;
    group.link = axis.link;
    const double seconds
        = estimateCollective({CollectiveKind::AllReduce, 134217728, {group}, PermutePattern::Shift, CollectiveAlgorithm::Ring})
              .seconds;
    QVERIFY(qAbs(seconds / 1020e-6 - 1.0) < 1e-6);
    const NcclLog two = valueOf(parseNcclLog(kJson, "out.json"));
    QCOMPARE(
        valueOf(parseHardware(valueOf(ncclProfileJson({two, log}, "h100", catalogue)), "links.json", catalogue)).deviceCount(),
        4);
    QCOMPARE(valueOf(parseHardware(valueOf(ncclProfileJson({two}, "", catalogue)), "links.json", catalogue)).deviceCount(), 2);
    QVERIFY(ncclText({log, two}).find("elements were wrong") != std::string::npos);
}

void TestNcclLog::brokenLogs_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    const QString header = "# all_reduce_perf\n# nThread 1 nGpus 4\n";
    QTest::newRow("empty") << QString() << "MW1712";
    QTest::newRow("only a header") << header << "MW1712";
    QTest::newRow("something else") << QString("hello\nworld\n") << "MW1712";
    QTest::newRow("JSON cut short") << QString("{\"results\": [{\"size\": 4") << "MW1712";
    QTest::newRow("JSON without results") << QString("{}") << "MW1712";
    QTest::newRow("no operation") << QString("# nThread 1 nGpus 4\n 8 2 float sum -1 9.5 0 0 0 9.5 0 0 0\n") << "MW1713";
    QTest::newRow("no operation, no ranks") << QString(" 1024 256 float sum -1 9.5 2 4 0 9.5 2 4 0\n") << "MW1713";
    QTest::newRow("no ranks") << QString("# all_reduce_perf\n 8 2 float sum -1 9.5 0 0 0 9.5 0 0 0\n") << "MW1713";
    QTest::newRow("row cut short") << header + " 8 2 float sum -1 9.5 0 0\n"
                                   << "MW1714";
    QTest::newRow("no number") << header + " 8 2 float sum -1 N/A 0 0 0 9.5 0 0 0\n"
                               << "MW1714";
    QTest::newRow("no time") << header + " 8 2 float sum -1 0 0 0 0 0 0 0 0\n"
                             << "MW1714";
    QTest::newRow("JSON row without times") << QString("{\"args\": [\"all_reduce_perf\"], \"results\": [{\"size\": 4}]}")
                                            << "MW1714";
    QTest::newRow("JSON row of words") << QString("{\"results\": [3, \"x\"]}") << "MW1714";
}

void TestNcclLog::brokenLogs()
{
    QFETCH(QString, text);
    QFETCH(QString, id);
    QCOMPARE(firstId(parseNcclLog(text.toStdString(), "x.txt")), id);
}

void TestNcclLog::cutAnywhere_data()
{
    tests::addSeeds({7, 8});
}

/// A log cut or spoiled anywhere is read or refused.
void TestNcclLog::cutAnywhere()
{
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    for (const std::string& whole : {std::string(kText), std::string(kJson)}) {
        for (std::size_t length = 0; length < whole.size(); length += 7) {
            std::string text = whole.substr(0, length);
            const auto cut = parseNcclLog(text, "x");
            QVERIFY(cut || !cut.error().empty());
            for (int i = 0; i < 3 && !text.empty(); ++i)
                text[random() % text.size()] = static_cast<char>(random() % 128);
            if (const auto spoiled = parseNcclLog(text, "all_reduce_perf"); spoiled)
                QVERIFY(fitNccl(*spoiled).busBytesPerSecond > 0.0);
        }
    }
}

MESHWRIGHT_TEST(TestNcclLog)

} // namespace tst_nccl_log

#include "tst_nccl_log.moc"
