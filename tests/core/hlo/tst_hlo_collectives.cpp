// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/hlo/collectives.h"
#include "core/hlo/loops.h"
#include "core/partition/device_program.h"
#include "tests/test_class.h"

#include <fstream>
#include <iterator>

namespace tst_hlo_collectives {

using namespace meshwright;

namespace {

std::string contentOf(const char* path)
{
    std::ifstream in(std::string(MESHWRIGHT_SOURCE_DIR) + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A module of 8 devices whose ENTRY has `instructions`; `others` are its other computations.
std::string module(const QString& instructions, const QString& others = {}, const QString& header = ", num_partitions=8")
{
    return QString(
        "HloModule m%1\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n%2\n"
        "ENTRY main {\n  x = f32[8,16]{1,0} parameter(0)\n  %3\n}\n")
        .arg(header, others, instructions)
        .toStdString();
}

Result<HloCollectives> read(const std::string& text, const std::optional<Mesh>& mesh = {})
{
    const auto module = readHloModule(text, "dump.txt");
    if (!module)
        return module.error();
    return hloCollectives(*module, text, "dump.txt", mesh);
}

/// "all_reduce data x12 512".
QString said(const HloCollective& one, const Mesh& mesh)
{
    return QString("%1 %2 x%3 %4")
        .arg(hloCollectiveName(one.kind),
            one.groups->axes ? QString::fromStdString(axesText(*one.groups->axes, mesh))
                             : QString::fromStdString(one.groups->text))
        .arg(one.count)
        .arg(one.payloadBytes);
}

} // namespace

/// The collectives of HLO text: kinds, bytes, groups in every form, turns of loops, and what is refused.
class TestHloCollectives : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wholeStep();
    void recognised_data();
    void recognised();
    void collectives_data();
    void collectives();
    void turns_data();
    void turns();
    void cutOff();
    void beforePartitioning();
    void refused_data();
    void refused();
};

/// Twelve layers: a gather in a loop that is written as a start and a done of a computation, and what follows the loop.
void TestHloCollectives::wholeStep()
{
    std::string text = contentOf("/tests/fuzz/corpus/hlo/training_step");
    text = text.substr(text.find('\n') + 1);
    const auto mesh = parseMesh("data=4,model=2");
    const auto found = read(text, *mesh);
    QVERIFY2(found, found ? "" : found.error().front().message.c_str());
    QCOMPARE(found->devices, 8);
    QVERIFY(found->unknownLoops.empty() && !found->isPart && !found->beforePartitioning);
    QStringList all;
    for (const HloCollective& one : found->collectives)
        all << said(one, *mesh);
    // By hand: 16*16 bf16 are 512 bytes; 8*16 f32 are 512.
    QCOMPARE(all,
        (QStringList{"all_gather data x12 512", "all_reduce model x12 512", "reduce_scatter data x1 512",
            "all_gather data x1 512", "collective_permute data x1 512"}));
    QCOMPARE(found->collectives[0].source, "src/model.py:41");
    QCOMPARE(found->collectives[1].source, "src/train.py:7");
    QCOMPARE(found->collectives[2].source, "src/train.py:12");
    QCOMPARE(found->collectives[0].operation, "jit(step)/while/body/dot_general");
    QVERIFY(found->collectives[2].isAsync && !found->collectives[1].isAsync);
    QCOMPARE(text.substr(0, text.find("ROOT %ag")).size() > 0 ? found->collectives[0].line : 0,
        static_cast<std::size_t>(
            std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find("%ag =")), '\n') + 1));
}

void TestHloCollectives::recognised_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<bool>("expected");

    QTest::newRow("a dump") << "HloModule jit_f, is_scheduled=true\n" << true;
    QTest::newRow("after comments") << "// made by hand\n\n  HloModule m\n" << true;
    QTest::newRow("another word") << "HloModules are fun\n" << false;
    QTest::newRow("in a log") << "I0101 compiling HloModule jit_f\n" << false;
    QTest::newRow("StableHLO") << "module @jit_f {\n" << false;
    QTest::newRow("nothing") << "" << false;
}

void TestHloCollectives::recognised()
{
    QFETCH(QString, text);
    QTEST(isHloText(text.toStdString()), "expected");
}

void TestHloCollectives::collectives_data()
{
    QTest::addColumn<QString>("instructions");
    QTest::addColumn<QString>("header");
    QTest::addColumn<QString>("expected"); ///< on data=2,model=4

    const QString spmd = ", num_partitions=8";
    QTest::newRow("all devices")
        << "ROOT r = f32[8,16] all-reduce(x), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=sum" << spmd
        << "all_reduce data,model x1 512";
    QTest::newRow("no groups at all")
        << "ROOT r = f32[8,16] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=sum" << spmd
        << "all_reduce data,model x1 512";
    QTest::newRow("a list") << "ROOT r = f32[32,16] all-gather(x), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, "
                               "dimensions={0}, use_global_device_ids=true"
                            << spmd << "all_gather model x1 2048";
    QTest::newRow("tiles") << "ROOT r = f32[32,16] all-gather(x), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, "
                              "use_global_device_ids=true"
                           << spmd << "all_gather model x1 2048";
    QTest::newRow("transposed tiles") << "ROOT r = f32[16,16] all-gather(x), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), "
                                         "dimensions={0}, use_global_device_ids=true"
                                      << spmd << "all_gather data x1 1024";
    QTest::newRow("axes") << "ROOT r = f32[16,16] all-gather(x), channel_id=1, replica_groups=mesh['a'=2,'b'=4] {'a'}, "
                             "dimensions={0}, use_global_device_ids=true"
                          << spmd << "all_gather data x1 1024";
    QTest::newRow("part of an axis") << "ROOT r = f32[16,16] all-gather(x), channel_id=1, "
                                        "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}, use_global_device_ids=true"
                                     << spmd << "all_gather {{0,1},{2,3},{4,5},{6,7}} x1 1024";
    QTest::newRow("replicas") << "ROOT r = f32[8,16] all-reduce(x), replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=sum"
                              << ", replica_count=8"
                              << "all_reduce data x1 512";
    QTest::newRow("partitions of each replica")
        << "ROOT r = f32[8,16] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}"
        << ", replica_count=2, num_partitions=4"
        << "all_to_all model x1 512";
    QTest::newRow("replicas of each partition") << "ROOT r = f32[8,16] all-reduce(x), replica_groups={{0,1}}, to_apply=sum"
                                                << ", replica_count=2, num_partitions=4"
                                                << "all_reduce data x1 512";
    QTest::newRow("replicas with their partitions")
        << "ROOT r = f32[8,16] all-reduce(x), channel_id=1, replica_groups={{0},{1}}, to_apply=sum"
        << ", replica_count=2, num_partitions=4"
        << "all_reduce model x1 512";
    QTest::newRow("several operands")
        << "ROOT r = (f32[8,16], f32[8,16]) all-reduce(x, x), channel_id=1, use_global_device_ids=true, to_apply=sum" << spmd
        << "all_reduce data,model x1 1024";
    QTest::newRow("reduce-scatter") << "ROOT r = f32[2,16] reduce-scatter(x), channel_id=1, replica_groups=[2,4]<=[8], "
                                       "dimensions={0}, use_global_device_ids=true, to_apply=sum"
                                    << spmd << "reduce_scatter model x1 512";
    QTest::newRow("operand with its shape")
        << "ROOT r = f32[8,16] all-reduce(f32[8,16]{1,0:T(8,128)} %x), channel_id=1, use_global_device_ids=true, to_apply=%sum"
        << spmd << "all_reduce data,model x1 512";
    QTest::newRow("types below a byte")
        << "i = s4[3] constant({1, 2, 3})\n  ROOT r = s4[3] all-reduce(i), channel_id=1, use_global_device_ids=true, to_apply=sum"
        << spmd << "all_reduce data,model x1 2";
    QTest::newRow("start and done are one")
        << "s = (f32[8,16], f32[32,16]) all-gather-start(x), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, "
           "use_global_device_ids=true\n  ROOT r = f32[32,16] all-gather-done(s)"
        << spmd << "all_gather model x1 2048";
    QTest::newRow("a permute and its done")
        << "s = (f32[8,16], f32[8,16], u32[], u32[]) collective-permute-start(x), channel_id=1, "
           "source_target_pairs={{0,4},{4,0},{1,5},{5,1},{2,6},{6,2},{3,7},{7,3}}\n  ROOT r = f32[8,16] "
           "collective-permute-done(s)"
        << spmd << "collective_permute data x1 512";
    QTest::newRow("one way only")
        << "ROOT r = f32[8,16] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{4,5},{5,6},{6,7}}"
        << spmd << "collective_permute model x1 512";
    QTest::newRow("a send with pairs")
        << "t = token[] after-all()\n  ROOT s = (f32[8,16], u32[], token[]) send(x, t), channel_id=1, "
           "frontend_attributes={_xla_send_recv_source_target_pairs={{0,4},{1,5},{2,6},{3,7}}}"
        << spmd << "collective_permute data x1 512";
    QTest::newRow("in a fusion") << "ROOT r = f32[8,16] fusion(x), kind=kCustom, calls=inner" << spmd
                                 << "all_reduce data,model x1 512";
    QTest::newRow("called twice") << "y = f32[8,16] call(x), to_apply=inner\n  ROOT r = f32[8,16] call(y), to_apply=inner" << spmd
                                  << "all_reduce data,model x2 512";
    QTest::newRow("a branch")
        << "q = s32[] constant(0)\n  ROOT r = f32[8,16] conditional(q, x, x), branch_computations={inner, %same}" << spmd
        << "all_reduce data,model x1 512";
    QTest::newRow("not called") << "ROOT r = f32[8,16] copy(x)" << spmd << "";
}

void TestHloCollectives::collectives()
{
    QFETCH(QString, instructions);
    QFETCH(QString, header);
    const QString others = "inner {\n  v = f32[8,16] parameter(0)\n  ROOT g = f32[8,16] all-reduce(v), channel_id=9, "
                           "use_global_device_ids=true, to_apply=sum\n}\n"
                           "same {\n  ROOT u = f32[8,16] parameter(0)\n}\n";
    const auto mesh = parseMesh("data=2,model=4");
    const auto found = read(module(instructions, others, header), *mesh);
    QVERIFY2(found, found ? "" : found.error().front().message.c_str());
    QStringList all;
    for (const HloCollective& one : found->collectives)
        all << said(one, *mesh);
    QTEST(all.join("; "), "expected");
}

void TestHloCollectives::turns_data()
{
    QTest::addColumn<QString>("next"); ///< what the body makes of the counter i
    QTest::addColumn<QString>("test"); ///< what the condition makes of it
    QTest::addColumn<QString>("start");
    QTest::addColumn<QString>("config");
    QTest::addColumn<qlonglong>("expected"); ///< -1: not known

    const QString one = "k = s32[] constant(1)\n  n = s32[] add(i, k)";
    const QString below = "k = s32[] constant(12)\n  ROOT c = pred[] compare(i, k), direction=LT";
    const QString zero = "constant(0)";
    QTest::newRow("the bound") << one << below << zero << "" << 12LL;
    QTest::newRow("said by the compiler")
        << one << "ROOT c = pred[] constant(true)" << zero
        << ", backend_config={\"known_trip_count\":{\"n\":\"7\"},\"known_init_step\":{\"init\":\"0\",\"step\":\"1\"}}" << 7LL;
    QTest::newRow("said in a string") << one << "ROOT c = pred[] constant(true)" << zero
                                      << ", backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"5\\\"}}\"" << 5LL;
    QTest::newRow("bound on the left") << one << "k = s32[] constant(12)\n  ROOT c = pred[] compare(k, i), direction=GT" << zero
                                       << "" << 12LL;
    QTest::newRow("with the bound") << one << "k = s32[] constant(12)\n  ROOT c = pred[] compare(i, k), direction=LE" << zero
                                    << "" << 13LL;
    QTest::newRow("a start") << one << below << "constant(4)"
                             << "" << 8LL;
    QTest::newRow("steps of 5") << "k = s32[] constant(5)\n  n = s32[] add(k, i)" << below << zero << "" << 3LL;
    QTest::newRow("down") << "k = s32[] constant(1)\n  n = s32[] subtract(i, k)"
                          << "k = s32[] constant(0)\n  ROOT c = pred[] compare(i, k), direction=GT"
                          << "constant(6)"
                          << "" << 6LL;
    QTest::newRow("none") << one << below << "constant(99)"
                          << "" << 0LL;
    QTest::newRow("through a fusion") << "k = s32[] constant(1)\n  n = s32[] fusion(i, k), kind=kLoop, calls=plus"
                                      << "k = s32[] constant(12)\n  ROOT c = pred[] fusion(k, i), kind=kLoop, calls=more" << zero
                                      << "" << 12LL;
    QTest::newRow("copies") << "k = s32[] constant(1)\n  j = s32[] copy(i)\n  n = s32[] add(j, k)" << below << zero << "" << 12LL;
    QTest::newRow("start from outside") << one << below << "get-tuple-element(z), index=0"
                                        << "" << -1LL;
    QTest::newRow("up past the end") << "k = s32[] constant(-1)\n  n = s32[] add(i, k)" << below << zero << "" << -1LL;
    QTest::newRow("no counter") << "n = s32[] multiply(i, i)" << below << zero << "" << -1LL;
    QTest::newRow("far too many") << one
                                  << "k = s64[] constant(9223372036854775807)\n  ROOT c = pred[] compare(i, k), direction=LE"
                                  << zero << "" << -1LL;
}

/// A collective in the body counts once a turn, and once where the turns are not known.
void TestHloCollectives::turns()
{
    QFETCH(QString, next);
    QFETCH(QString, test);
    QFETCH(QString, start);
    QFETCH(QString, config);
    QFETCH(qlonglong, expected);
    const QString others
        = QString("plus {\n  p = s32[] parameter(0)\n  q = s32[] parameter(1)\n  ROOT t = s32[] add(p, q)\n}\n"
                  "more {\n  p = s32[] parameter(0)\n  q = s32[] parameter(1)\n  ROOT t = pred[] compare(p, q), direction=GT\n}\n"
                  "body {\n  z = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(z), index=0\n  v = f32[8] "
                  "get-tuple-element(z), index=1\n  %1\n"
                  "  r = f32[8] all-reduce(v), channel_id=1, use_global_device_ids=true, to_apply=sum\n  ROOT o = (s32[], "
                  "f32[8]) tuple(n, r)\n}\n"
                  "condition {\n  z = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(z), index=0\n  %2\n}\n")
              .arg(next, test);
    const std::string text = module(
        QString("z = (s32[], f32[8]) parameter(1)\n  b = s32[] %1\n  v = f32[8] get-tuple-element(z), index=1\n"
                "  w = (s32[], f32[8]) tuple(b, v)\n  ROOT l = (s32[], f32[8]) while(w), condition=condition, body=body%2")
            .arg(start, config),
        others);
    const auto found = read(text);
    QVERIFY2(found, found ? "" : found.error().front().message.c_str());
    if (expected == 0) {
        QVERIFY(found->collectives.empty());
        return;
    }
    QCOMPARE(found->collectives.size(), 1U);
    QCOMPARE(found->collectives[0].count, expected < 0 ? 1 : expected);
    QCOMPARE(found->collectives[0].isInUnknownLoop, expected < 0);
    QCOMPARE(found->unknownLoops, expected < 0 ? std::vector<std::string>{"l"} : std::vector<std::string>{});
}

/// What is kept of a dump that was cut after some computations is read, and says so.
void TestHloCollectives::cutOff()
{
    std::string text = module("ROOT r = f32[8,16] copy(x)",
        "body {\n  v = f32[8] parameter(0)\n  ROOT r = f32[8] all-reduce(v), channel_id=1, use_global_device_ids=true, "
        "to_apply=sum\n}\n");
    text = text.substr(0, text.find("ENTRY"));
    const auto found = read(text);
    QVERIFY2(found, found ? "" : found.error().front().message.c_str());
    QVERIFY(found->isPart);
    QCOMPARE(found->collectives.size(), 1U);
    const auto inside = read(text.substr(0, text.rfind('}')));
    QVERIFY(inside && inside->isPart && inside->collectives.size() == 1U);
}

void TestHloCollectives::beforePartitioning()
{
    const auto found = read(module("ROOT r = f32[8,16] add(x, x)", {}, ", num_partitions=8"));
    QVERIFY(found && !found->beforePartitioning);
    const auto before = read(module("y = f32[8,16] add(x, x), sharding={devices=[8,1]<=[8]}\n  ROOT r = f32[8,16] copy(y)"));
    QVERIFY(before && before->beforePartitioning);
}

void TestHloCollectives::refused_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("id");
    QTest::addColumn<int>("line");
    QTest::addColumn<QString>("said");

    const auto whole = [](const QString& instructions, const QString& others = {}) {
        return QString::fromStdString(module(instructions, others));
    };
    QTest::newRow("no module") << "ENTRY main { }"
                               << "MW1360" << 1 << "expected HloModule and a name, found \"ENTRY main { }\"";
    QTest::newRow("nothing in it") << "HloModule m\n"
                                   << "MW1361" << 1 << "the module m has no computation";
    QTest::newRow("two modules") << "HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\nHloModule n\n"
                                 << "MW1360" << 5 << "a second module begins here";
    QTest::newRow("no op") << whole("ROOT r = f32[8,16]") << "MW1360" << 13 << "expected an op and its operands";
    QTest::newRow("no shape") << whole("ROOT r = add(x, x)") << "MW1360" << 12
                              << "expected a shape such as f32[8,128], found \"add(x, x)\"";
    QTest::newRow("open bracket") << whole("ROOT r = f32[8,16] add(x, x") << "MW1360" << 13 << "expected \")\", found \"}\"";
    QTest::newRow("huge") << whole("r = f32[4611686018427387904,4611686018427387904] copy(x)") << "MW1360" << 12
                          << "do not fit 64 bits";
    QTest::newRow("twice") << whole("x = f32[8] copy(x)") << "MW1361" << 12 << "%x is defined twice in main";
    QTest::newRow("no partitions") << "HloModule m, num_partitions=0\nENTRY e {\n}\n"
                                   << "MW1360" << 1 << "num_partitions is \"0\"";
    QTest::newRow("unknown computation") << whole("ROOT r = f32[8,16] call(x), to_apply=other") << "MW1361" << 12
                                         << "the computation other, which the module does not have";
    QTest::newRow("calls itself") << whole("ROOT r = f32[8,16] call(x), to_apply=again",
        "again {\n  v = f32[8,16] parameter(0)\n  ROOT r = f32[8,16] call(v), to_apply=again\n}\n")
                                  << "MW1361" << 11 << "the computation again calls itself";
    QTest::newRow("unknown operand") << whole("ROOT r = f32[8,16] all-reduce(y), to_apply=sum") << "MW1361" << 12
                                     << "the operand %y, which main does not define";
    QTest::newRow("device beyond") << whole(
        "ROOT r = f32[8,16] all-reduce(x), channel_id=1, replica_groups={{0,8}}, use_global_device_ids=true, to_apply=sum")
                                   << "MW1362" << 12 << "do not fit 8 devices: 8 is not among 0 to 7";
    QTest::newRow("device twice") << whole(
        "ROOT r = f32[8,16] all-reduce(x), channel_id=1, replica_groups={{0,1},{1,2}}, use_global_device_ids=true, to_apply=sum")
                                  << "MW1362" << 12 << "1 is in two groups";
    QTest::newRow("groups of another form") << whole("ROOT r = f32[8,16] all-reduce(x), replica_groups=ring, to_apply=sum")
                                            << "MW1362" << 12 << "cannot be read: ring";
    QTest::newRow("too many devices") << "HloModule m, num_partitions=9000000\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n"
                                      << "MW1362" << 1 << "for 9000000 devices";
}

void TestHloCollectives::refused()
{
    QFETCH(QString, text);
    const auto found = read(text.toStdString());
    QVERIFY(!found);
    const Problem& problem = found.error().front();
    QTEST(QString::fromStdString(problem.id), "id");
    QTEST(problem.place.line, "line");
    QFETCH(QString, said);
    QVERIFY2(problem.message.find(said.toStdString()) != std::string::npos, problem.message.c_str());

    const std::string good = module("ROOT r = f32[8,16] copy(x)");
    const auto wrongMesh = read(good, *parseMesh("data=4"));
    QVERIFY(!wrongMesh);
    QCOMPARE(wrongMesh.error().front().id, "MW1363");
}

MESHWRIGHT_TEST(TestHloCollectives)

} // namespace tst_hlo_collectives

#include "tst_hlo_collectives.moc"
