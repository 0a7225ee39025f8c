// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "sim/chakra/folder.h"
#include "sim/chakra/trace.h"
#include "sim/chakra/wire.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <limits>
#include <random>

namespace tst_chakra {

using namespace meshwright;
using namespace meshwright::sim;
using namespace std::string_literals;

/// The files of Chakra: their bytes, what is read back, and what is said of damaged ones.
class TestChakra : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void bytesAreProtobuf();
    void numbersEndAt64Bits();
    void whatIsWrittenIsRead_data();
    void whatIsWrittenIsRead();
    void otherWritersAreRead();
    void attributes();
    void reportsEveryCut();
    void damaged_data();
    void damaged();
    void noMoreNodesThanAllowed();
    void groups();
    void groupsDamaged_data();
    void groupsDamaged();
    void folders();
};

namespace {

QString firstProblem(const Problems& problems)
{
    return QString::fromStdString(problems.front().id + " " + problems.front().message);
}

/// A file with metadata "0.0.4" and the given nodes, each the bytes of a message.
std::string fileOf(const std::vector<std::string>& nodes)
{
    std::string file = "\x07\x0a\x05"
                       "0.0.4"s;
    for (const std::string& node : nodes)
        WireWriter::appendDelimited(file, node);
    return file;
}

ChakraTrace sample()
{
    ChakraTrace trace;
    trace.attributes = {{"generator", "a test"s}};
    trace.nodes.push_back({0, "load", ChakraNodeType::Compute, {}, {}, 0, 12,
        {{"is_cpu_op", false}, {"num_ops", std::int64_t{1} << 40}, {"tensor_size", std::uint64_t{300}}}, {}});
    trace.nodes.push_back({7, "sum", ChakraNodeType::Collective, {0}, {0}, 3, 0,
        {{"comm_type", std::int64_t{0}}, {"comm_size", std::int64_t{1'000'000}}, {"pg_name", "2"s}}, {}});
    trace.nodes.push_back({300, "", ChakraNodeType::Send, {}, {0, 7}, 0, 0, {{"comm_dst", std::int32_t{-3}}, {"x", 2.5}}, {}});
    return trace;
}

} // namespace

/// By hand from protobuf's rules: a key is field << 3 | type; lengths, numbers and keys are varints; repeated numbers are packed.
void TestChakra::bytesAreProtobuf()
{
    ChakraTrace trace;
    trace.nodes.push_back({1, "", ChakraNodeType::Invalid, {}, {}, 0, 0, {}, {}});
    trace.nodes.push_back({300, "ab", ChakraNodeType::Compute, {1}, {1, 300}, 0, 5, {{"n", std::int64_t{-1}}}, {}});
    const std::string expected = "\x07\x0a\x05"
                                 "0.0.4" // metadata: field 1, 5 bytes
                                 "\x02\x08\x01" // field 1: 1
                                 "\x29"
                                 "\x08\xac\x02" // 300 in seven bits each
                                 "\x12\x02"
                                 "ab"
                                 "\x18\x04" // COMP_NODE
                                 "\x22\x01\x01" // ctrl_deps
                                 "\x2a\x03\x01\xac\x02" // data_deps
                                 "\x38\x05" // duration_micros
                                 "\x52\x0e\x0a\x01n\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s; // int64_val = 9
    std::string exact = expected;
    exact[11] = static_cast<char>(exact.size() - 12); // the length of the second node
    QCOMPARE(QByteArray::fromStdString(writeChakra(trace)).toHex(), QByteArray::fromStdString(exact).toHex());
}

/// Ten bytes of seven bits each have room for 70: the last may only be 1.
void TestChakra::numbersEndAt64Bits()
{
    const std::string full(9, '\xff');
    QCOMPARE(WireReader(full + "\x01").varint().value_or(0), ~std::uint64_t{0});
    QVERIFY(!WireReader(full + "\x02").varint());
    QVERIFY(!WireReader(full + "\x81\x01").varint());
}

void TestChakra::whatIsWrittenIsRead_data()
{
    tests::addSeeds({1, 2});
}

void TestChakra::whatIsWrittenIsRead()
{
    QVERIFY(valueOf(readChakra(writeChakra(sample()), "a")) == sample());
    QVERIFY(valueOf(readChakra(writeChakra(ChakraTrace{}), "a")) == ChakraTrace{});
    QFETCH(quint64, seed);
    std::mt19937_64 random(seed);
    const auto number = [&] { return random() >> (random() % 64); };
    for (int round = 0; round < 200; ++round) {
        ChakraTrace trace;
        trace.version = std::string(number() % 5, 'v');
        for (std::uint64_t i = 0; i < 1 + random() % 20; ++i) {
            ChakraNode node;
            node.id = i == 0 ? number() : trace.nodes.back().id + 1 + random() % 1000;
            node.name = std::string(number() % 200, 'n');
            node.type = static_cast<ChakraNodeType>(random() % 8);
            node.startMicros = number();
            node.durationMicros = number();
            for (auto* list : {&node.controlDependencies, &node.dataDependencies}) {
                for (std::uint64_t d = 0; d < random() % 4 && !trace.nodes.empty(); ++d)
                    list->push_back(trace.nodes[random() % trace.nodes.size()].id);
            }
            if (node.type == ChakraNodeType::Metadata)
                node.inputs = std::string(random() % 30, 'i');
            const ChakraAttribute::Value values[] = {random() % 2 == 0, static_cast<std::int32_t>(number()),
                static_cast<std::int64_t>(number()), number(), static_cast<double>(number()), std::string(number() % 99, '\0')};
            for (const auto& value : values)
                node.attributes.push_back({"a" + std::to_string(random() % 9), value});
            trace.nodes.push_back(std::move(node));
        }
        QVERIFY(valueOf(readChakra(writeChakra(trace), "a")) == trace);
    }
}

/// Numbers that are not packed, fields and attributes that are not known, floats: all allowed.
void TestChakra::otherWritersAreRead()
{
    WireWriter node;
    node.varint(1, 5);
    node.varint(5, 4);
    node.varint(5, 5); // itself: a circle is not the format's business
    node.bytes(8, "\x0a\x06inputs");
    node.varint(3, 9); // BATCH_NODE
    node.bytes(99, "what is to come");
    const std::string floating = "\x0a\x01"
                                 "f\x2d\x00\x00\x20\x40"s; // float_val 2.5
    node.bytes(10, floating);
    node.bytes(10,
        "\x0a\x01"
        "l\x52\x02\x08\x01"s); // int64_list
    WireWriter other;
    other.varint(1, 4);
    const ChakraTrace trace = valueOf(readChakra(fileOf({other.text(), node.text()}), "a"));
    QCOMPARE(trace.nodes.size(), std::size_t(2));
    const ChakraNode& read = trace.nodes[1];
    QVERIFY(read.dataDependencies == (std::vector<std::uint64_t>{4, 5}));
    QVERIFY(read.type == ChakraNodeType::Metadata);
    QCOMPARE(read.attributes.size(), std::size_t(1));
    QCOMPARE(read.number("f").value_or(0.0), 2.5);
    QVERIFY(!read.integer("f").has_value());
}

void TestChakra::attributes()
{
    ChakraNode node;
    node.attributes = {{"big", std::numeric_limits<std::uint64_t>::max()}, {"two63", std::uint64_t{1} << 63}, {"text", "4"s},
        {"nan", std::numeric_limits<double>::quiet_NaN()}, {"whole", 4.0}, {"flag", true}};
    QVERIFY(
        !node.integer("big") && !node.integer("two63") && !node.integer("text") && !node.integer("nan") && !node.integer("-"));
    QCOMPARE(node.integer("whole").value_or(0), std::int64_t(4));
    QCOMPARE(node.text("text").value_or(""), "4"s);
    QVERIFY(node.flag("flag", false) && node.flag("-", true) && !node.flag("-", false));
}

/// Cut off anywhere a file is refused, or it ended between two nodes.
void TestChakra::reportsEveryCut()
{
    ChakraTrace trace = sample();
    for (ChakraNode& node : trace.nodes)
        node.dataDependencies.clear();
    trace.nodes[1].controlDependencies.clear();
    const std::string whole = writeChakra(trace);
    std::size_t good = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto read = readChakra(std::string_view(whole).substr(0, size), "cut.et");
        if (read)
            ++good;
        else
            QCOMPARE(read.error().front().id, "MW1766"s);
    }
    QCOMPARE(good, trace.nodes.size()); // after the metadata, and after each node but the last
}

void TestChakra::damaged_data()
{
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("said");
    const auto row = [](const char* name, const std::string& bytes, const char* said) {
        QTest::newRow(name) << QByteArray::fromStdString(bytes) << QString(said);
    };
    WireWriter one;
    one.varint(1, 1);
    WireWriter waits;
    waits.varint(1, 2);
    waits.varint(5, 77);
    const std::string longest = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s; // 2^64 - 1
    row("empty", "", "MW1766 the file is empty");
    row("a text", "{\"nodes\": []}", "MW1766 the file ends in the middle of a message");
    row("longer than the file", fileOf({}) + "\x05\x08\x01"s, "MW1766 the file ends in the middle of a message, at byte 8");
    row("a length of 2^64 - 1", longest, "MW1766 the file ends in the middle");
    row("a length of 65 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s, "MW1766 the file ends in the middle");
    row("a length of eleven bytes", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "MW1766 the file ends in the middle");
    row("metadata that is none", "\x02\x0a\x09"s, "MW1766 the first message is not metadata");
    row("version that is a number", "\x02\x08\x01"s, "MW1766 the first message is not metadata");
    row("field 0", fileOf({"\x00\x01"s}), "MW1766 message 1 is not a node, at byte 8");
    row("a group", fileOf({"\x0b\x0c"s}), "MW1766 message 1 is not a node");
    row("a name beyond its node",
        fileOf({"\x12\x7f"
                "a"s}),
        "MW1766 message 1 is not a node");
    row("a name of 2^64 - 1", fileOf({"\x12" + longest}), "MW1766 message 1 is not a node");
    row("an id that is a text",
        fileOf({"\x0a\x01"
                "a"s}),
        "MW1766 message 1 is not a node");
    row("numbers cut off", fileOf({"\x2a\x01\x80"s}), "MW1766 message 1 is not a node");
    row("an attribute cut off", fileOf({"\x52\x02\x0a\x09"s}), "MW1766 message 1 is not a node");
    row("two of one number", fileOf({one.text(), one.text()}), "MW1766 two nodes have the number 1");
    row("waits for nothing", fileOf({one.text(), waits.text()}), "MW1766 node 2 waits for node 77, which is not there");
}

void TestChakra::damaged()
{
    QFETCH(QByteArray, bytes);
    QFETCH(QString, said);
    const auto read = readChakra(bytes.toStdString(), "bad.et");
    QVERIFY(!read);
    QVERIFY2(firstProblem(read.error()).startsWith(said), qPrintable(firstProblem(read.error())));
    QCOMPARE(read.error().front().place.file, "bad.et"s);
}

/// An empty node is one byte of a file: memory is bounded by their number.
void TestChakra::noMoreNodesThanAllowed()
{
    std::vector<std::string> nodes;
    for (std::uint64_t id = 1; id <= 11; ++id) {
        WireWriter node;
        node.varint(1, id);
        nodes.push_back(node.text());
    }
    QVERIFY(readChakra(fileOf(nodes), "a", 11).has_value());
    const auto many = readChakra(fileOf(nodes), "a", 10);
    QVERIFY(!many && many.error().front().id == "MW1767");
}

void TestChakra::groups()
{
    const auto groups = valueOf(readProcessGroups("{\"1\": [0, 2], \"b\": [3]}", "g"));
    QVERIFY(groups == (ProcessGroups{{"1", {0, 2}}, {"b", {3}}}));
    QVERIFY(valueOf(readProcessGroups("{}", "g")).empty());
    ProcessGroups torch{{"1", {5}}};
    addPyTorchGroups(
        R"(['[{"pg_name": "1", "ranks": [0]}, {"pg_name": "2", "ranks": [2, 0]}, {"pg_name": "3", "ranks": []}]'])", torch);
    QVERIFY(torch == (ProcessGroups{{"1", {5}}, {"2", {2, 0}}, {"3", {}}}));
    for (const char* other : {"", "[{", "}][{", "[1, [{}]]", R"([{"pg_name": 4, "ranks": [1]}])",
             R"([{"pg_name": "4", "ranks": [-1]}])", R"([{"pg_name": "4"}])"})
        addPyTorchGroups(other, torch);
    QCOMPARE(torch.size(), std::size_t(3));
}

void TestChakra::groupsDamaged_data()
{
    QTest::addColumn<QString>("text");
    QTest::newRow("empty") << "";
    QTest::newRow("a list") << "[1]";
    QTest::newRow("no list") << "{\"1\": 4}";
    QTest::newRow("no ranks") << "{\"1\": []}";
    QTest::newRow("a text") << "{\"1\": [\"0\"]}";
    QTest::newRow("half a rank") << "{\"1\": [0.5]}";
    QTest::newRow("below 0") << "{\"1\": [-1]}";
    QTest::newRow("2^63") << "{\"1\": [9223372036854775808]}";
    QTest::newRow("twice") << "{\"1\": [3, 3]}";
    QTest::newRow("deep") << QString("[").repeated(100'000);
}

void TestChakra::groupsDamaged()
{
    QFETCH(QString, text);
    const auto read = readProcessGroups(text.toStdString(), "comm_groups.json");
    QVERIFY(!read && read.error().front().id == "MW1783" && read.error().front().place.file == "comm_groups.json");
}

void TestChakra::folders()
{
    QTemporaryDir directory;
    const std::filesystem::path folder = directory.path().toStdString();
    const auto said = [&](const std::filesystem::path& path) {
        const auto found = findChakraFolder(path);
        return found ? QString("found %1").arg(found->files.size()) : firstProblem(found.error());
    };
    QCOMPARE(said(folder), "MW1783 there are no Chakra traces");
    QCOMPARE(said(folder / "nowhere" / "step"), "MW1783 there are no Chakra traces");
    const std::string bytes = writeChakra(sample());
    for (const char* name :
        {"step.0.et", "step.1.et", "step.10.et", "step.x.et", "step.et", "step.-1.et", "step.01.et", "step.3"})
        QVERIFY(writeFileAtomically(folder / name, bytes));
    QCOMPARE(said(folder), "MW1783 the trace of rank 2 is missing");
    for (int rank = 2; rank < 10; ++rank)
        QVERIFY(writeFileAtomically(folder / ("step." + std::to_string(rank) + ".et"), bytes));
    QCOMPARE(said(folder), "found 11");
    QCOMPARE(valueOf(findChakraFolder(folder)).files[10].filename().string(), "step.10.et"s); // by number, not by letter
    QVERIFY(writeFileAtomically(folder / "other.0.et", bytes));
    QCOMPARE(said(folder), "MW1783 there are traces of several steps: other and step");
    QCOMPARE(said(folder / "step"), "found 11");
    QCOMPARE(said(folder / "other"), "found 1");
    QVERIFY(writeFileAtomically(folder / "comm_groups.json", "{\"1\": [0, 1]}"));
    QCOMPARE(valueOf(findChakraFolder(folder / "step")).groups.size(), std::size_t(1));
    QVERIFY(writeFileAtomically(folder / "comm_groups.json", "no"));
    QCOMPARE(said(folder / "step"), "MW1783 this is not a JSON object");
}

MESHWRIGHT_TEST(TestChakra)

} // namespace tst_chakra

#include "tst_chakra.moc"
