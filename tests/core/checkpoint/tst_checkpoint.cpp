// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint_reader.h"
#include "core/checkpoint/safetensors.h"
#include "core/sharding/notation.h"
#include "core/sharding/shardy_text.h"
#include "core/support/file.h"
#include "tests/json_schema.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <random>

namespace tst_checkpoint {

using namespace meshwright;
namespace fs = std::filesystem;

namespace {

/// 0, 1, 2 .. in row-major order.
HostArray counting(const TensorType& type)
{
    std::vector<double> values(static_cast<std::size_t>(type.elements()));
    std::iota(values.begin(), values.end(), 0.0);
    return HostArray::of(type, values);
}

struct Sharded {
    const char* mesh;
    const char* spec;
};

ArrayToSave arrayToSave(const std::string& name, const TensorType& type, const Sharded& sharded)
{
    const Mesh mesh = valueOf(parseMesh(sharded.mesh));
    const TensorSharding sharding = valueOf(toTensorSharding(valueOf(parseSpec(sharded.spec)), type.shape.size(), mesh));
    ArrayToSave array{name, type, shardyText(sharding, mesh), {}};
    std::map<IndexBox, std::vector<std::int64_t>> holders;
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position)
        holders[shardBox(type.shape, sharding, mesh, position)].push_back(position);
    for (auto& [box, devices] : holders)
        array.pieces.push_back(
            {box, devices, [type, box = box](std::int64_t) -> Result<HostArray> { return counting(type).slice(box); }});
    return array;
}

const std::vector<ArrayToSave>& someArrays()
{
    static const std::vector<ArrayToSave> arrays = {
        arrayToSave("w", {DType::F32, {48, 20}}, {"a=4,b=2", "P('a', 'b')"}),
        arrayToSave("b", {DType::BF16, {20}}, {"a=4,b=2", "P('b')"}),
        arrayToSave("big", {DType::F32, {256, 300}}, {"a=4,b=2", "P(None, 'a')"}), // pieces of more than one checksum block
        arrayToSave("count", {DType::F32, {}}, {"a=4,b=2", "P()"}),
        arrayToSave("uneven", {DType::F32, {9, 3}}, {"a=4,b=2", "P('a')"}), // 3, 3, 3, 0 rows
    };
    return arrays;
}

SavedState stateOf(std::int64_t step)
{
    SavedState state{step, std::numeric_limits<std::uint64_t>::max(), "a=4,b=2", "adam", {}, {}};
    for (std::int64_t i = 0; i < step; ++i) {
        state.losses.push_back(1.0 / static_cast<double>(i + 3));
        state.accuracies.push_back(0.1 * static_cast<double>(i));
    }
    return state;
}

Result<fs::path> writeTo(const QTemporaryDir& folder, std::int64_t step, const std::vector<ArrayToSave>& arrays = someArrays())
{
    const auto into = CheckpointFolder::open(folder.path().toStdString());
    if (!into)
        return into.error();
    return into->write(stateOf(step), arrays);
}

fs::path written(const QTemporaryDir& folder, std::int64_t step = 2)
{
    const auto path = writeTo(folder, step);
    if (!path)
        qFatal("%s", describe(path.error()).c_str());
    return *path;
}

QString idsOf(const Problems& problems)
{
    QStringList ids;
    for (const Problem& problem : problems)
        ids << QString::fromStdString(problem.id);
    return ids.join(' ');
}

void overwrite(const fs::path& file, const std::function<void(QByteArray&)>& change)
{
    QFile device(QString::fromStdString(file.string()));
    QVERIFY(device.open(QIODevice::ReadWrite));
    QByteArray bytes = device.readAll();
    change(bytes);
    device.seek(0);
    device.resize(bytes.size());
    QCOMPARE(device.write(bytes), bytes.size());
}

} // namespace

class TestCheckpoint : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wholeArraysComeBack();
    void manifestFitsItsSchema();
    void replicasAreWrittenOnceAndEvenly();
    void filesAreSafetensors();
    void otherLayouts_data();
    void otherLayouts();
    void onlyTheBytesThatAreNeeded();
    void newestCompleteOne();
    void damagedOnesArePassedOver();
    void sameStepAgain();
    void oldOnesGo();
    void aFlippedBitIsFound_data();
    void aFlippedBitIsFound();
    void cutOff_data();
    void cutOff();
    void refusesFalseManifests_data();
    void refusesFalseManifests();
    void nothingThere();
    void fullDisk();
    void whatIsNotOursStays_data();
    void whatIsNotOursStays();
    void linksAreNotFollowed();
    void notOverWhatIsNotOurs();
    void unfinishedOnesOfOthersStay();
    void oneWriterAtATime();
    void typesThatSafetensorsLacks();
};

void TestCheckpoint::wholeArraysComeBack()
{
    const QTemporaryDir folder;
    const auto reader = valueOf(CheckpointReader::open(written(folder)));
    QVERIFY(reader->checkpoint().state == stateOf(2));
    QCOMPARE(reader->checkpoint().arrays.size(), someArrays().size());
    for (std::size_t i = 0; i < someArrays().size(); ++i) {
        const ArrayToSave& array = someArrays()[i];
        QCOMPARE(reader->find(array.name), std::optional(i));
        QCOMPARE(reader->checkpoint().arrays[i].sharding, array.sharding);
        QVERIFY(valueOf(reader->read(i, wholeBox(array.type.shape))) == counting(array.type));
    }
    QVERIFY(!reader->find("nobody"));
}

void TestCheckpoint::manifestFitsItsSchema()
{
    const QTemporaryDir folder;
    QFile file(QString::fromStdString((written(folder) / kManifestName).string()));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QFile schema(QString(MESHWRIGHT_SOURCE_DIR) + "/resources/schemas/checkpoint-1.json");
    QVERIFY(schema.open(QIODevice::ReadOnly));
    const QJsonDocument manifest = QJsonDocument::fromJson(file.readAll());
    QVERIFY(manifest.isObject());
    QCOMPARE(tests::schemaErrors(manifest.object(), QJsonDocument::fromJson(schema.readAll()).object()), QStringList());
}

void TestCheckpoint::replicasAreWrittenOnceAndEvenly()
{
    const QTemporaryDir folder;
    const TensorType type{DType::F32, {64, 64}};
    const auto path = valueOf(writeTo(
        folder, 0, {arrayToSave("first", type, {"a=4,b=2", "P('a')"}), arrayToSave("second", type, {"a=4,b=2", "P('a')"})}));
    const auto reader = valueOf(CheckpointReader::open(path));
    std::int64_t payload = 0;
    std::map<std::size_t, std::int64_t> byFile;
    for (const CheckpointArray& array : reader->checkpoint().arrays) {
        for (const CheckpointPiece& piece : array.pieces) {
            payload += boxElements(piece.box) * 4;
            byFile[piece.file] += boxElements(piece.box) * 4;
        }
    }
    QCOMPARE(payload, 2 * type.bytes());
    QCOMPARE(byFile.size(), std::size_t{8}); // both replicas of each piece have something to write
    for (const auto& [file, bytes] : byFile)
        QCOMPARE(bytes, type.bytes() / 4);
}

/// Read as the format's own description says, without our reader.
void TestCheckpoint::filesAreSafetensors()
{
    const QTemporaryDir folder;
    const fs::path path = written(folder);
    int tensors = 0;
    for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.path().extension() != ".safetensors")
            continue;
        QFile file(QString::fromStdString(entry.path().string()));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray bytes = file.readAll();
        const auto length = qFromLittleEndian<quint64>(bytes.constData());
        QCOMPARE((8 + length) % 8, quint64{0});
        const QJsonObject header = QJsonDocument::fromJson(bytes.mid(8, static_cast<int>(length)).trimmed()).object();
        QVERIFY(header.contains("__metadata__"));
        for (const auto& value : header["__metadata__"].toObject())
            QVERIFY(value.isString());
        std::map<int, int> stretches;
        for (auto tensor = header.begin(); tensor != header.end(); ++tensor) {
            if (tensor.key() == "__metadata__")
                continue;
            ++tensors;
            const QJsonObject entryOf = tensor->toObject();
            const QJsonArray offsets = entryOf["data_offsets"].toArray();
            int elements = 1;
            for (const auto& size : entryOf["shape"].toArray())
                elements *= size.toInt();
            const int width = entryOf["dtype"] == "BF16" ? 2 : 4;
            QVERIFY(entryOf["dtype"] == "BF16" || entryOf["dtype"] == "F32");
            QCOMPARE(offsets[1].toInt() - offsets[0].toInt(), elements * width);
            stretches[offsets[0].toInt()] = offsets[1].toInt();
        }
        int end = 0; // no gaps, as the format asks
        for (const auto& [start, stop] : stretches) {
            QCOMPARE(start, end);
            end = stop;
        }
        QCOMPARE(static_cast<quint64>(bytes.size()), 8 + length + static_cast<quint64>(end));
    }
    QCOMPARE(tensors, 8 + 2 + 4 + 1 + 3);
}

void TestCheckpoint::otherLayouts_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<QString>("spec");
    QTest::newRow("the same") << "a=4,b=2"
                              << "P('a', 'b')";
    QTest::newRow("transposed") << "a=4,b=2"
                                << "P('b', 'a')";
    QTest::newRow("columns") << "m=4"
                             << "P(None, 'm')";
    QTest::newRow("three") << "m=3"
                           << "P('m')";
    QTest::newRow("both in one") << "a=4,b=3"
                                 << "P(('a', 'b'))";
    QTest::newRow("whole") << "m=1"
                           << "P()";
}

void TestCheckpoint::otherLayouts()
{
    QFETCH(QString, mesh);
    QFETCH(QString, spec);
    const QTemporaryDir folder;
    const auto reader = valueOf(CheckpointReader::open(written(folder)));
    for (const char* name : {"w", "big", "uneven"}) {
        const std::size_t index = reader->find(name).value();
        const TensorType type = reader->checkpoint().arrays[index].type;
        for (const PieceToSave& piece : arrayToSave(name, type, {qPrintable(mesh), qPrintable(spec)}).pieces) {
            QVERIFY(valueOf(reader->read(index, piece.box)) == counting(type).slice(piece.box));
            std::int64_t needed = 0;
            for (const ReadFromFile& read : reader->needs(index, piece.box))
                needed += read.bytes;
            QCOMPARE(needed, boxElements(piece.box) * 4);
        }
    }
}

void TestCheckpoint::onlyTheBytesThatAreNeeded()
{
    const QTemporaryDir folder;
    const TensorType type{DType::F32, {4096, 64}}; // 1 MiB: 16 blocks, in two pieces
    const auto path = valueOf(writeTo(folder, 0, {arrayToSave("w", type, {"a=2", "P('a')"})}));
    const auto reader = valueOf(CheckpointReader::open(path));
    QVERIFY(valueOf(reader->read(0, {{0, 256}, {0, 64}})) == counting(type).slice({{0, 256}, {0, 64}}));
    QCOMPARE(reader->bytesRead(), kChecksumBlockBytes);
    QCOMPARE(reader->needs(0, {{0, 256}, {0, 64}}), (std::vector<ReadFromFile>{{0, 1, kChecksumBlockBytes}}));
    // Rows of both pieces, half of each: a stretch for each row.
    QCOMPARE(reader->needs(0, {{2040, 2056}, {0, 32}}), (std::vector<ReadFromFile>{{0, 8, 1024}, {1, 8, 1024}}));
}

void TestCheckpoint::newestCompleteOne()
{
    const QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    written(folder, 2);
    const fs::path newest = written(folder, 10);
    fs::create_directory(root / "step-000000011.4711.part"); // what a crash leaves
    fs::create_directory(root / "steps");
    QCOMPARE(valueOf(CheckpointReader::open(root))->checkpoint().state.step, std::int64_t{10});

    fs::remove(newest / "device-00000.safetensors");
    const auto reader = valueOf(CheckpointReader::open(root));
    QCOMPARE(reader->checkpoint().state.step, std::int64_t{2});
    QCOMPARE(idsOf(reader->passedOver()), QString("MW1645"));
    QCOMPARE(reader->passedOver().front().severity, Severity::Warning);
    QCOMPARE(idsOf(CheckpointReader::open(newest).error()), QString("MW1645"));

    written(folder, 12);
    QVERIFY(!fs::exists(root / "step-000000011.4711.part"));
}

/// Of a folder, one whose bytes have changed is passed over too, where its content is asked for; its header always counts.
void TestCheckpoint::damagedOnesArePassedOver()
{
    for (const bool inHeader : {false, true}) {
        const QTemporaryDir folder;
        const fs::path root = folder.path().toStdString();
        written(folder, 2);
        const fs::path newest = written(folder, 10);
        overwrite(newest / "device-00000.safetensors", [&](QByteArray& bytes) {
            const qsizetype at = inHeader ? 20 : bytes.size() - 3;
            bytes[at] = static_cast<char>(bytes[at] ^ 4);
        });
        const auto reader = valueOf(CheckpointReader::open(root, CheckpointCheck::Content));
        QCOMPARE(reader->checkpoint().state.step, std::int64_t{2});
        QCOMPARE(reader->bytesRead(), std::int64_t{0});
        QCOMPARE(idsOf(reader->passedOver()), QString("MW1642"));
        QVERIFY(reader->passedOver().front().message.starts_with("step-000000010 is skipped: "));
        QCOMPARE(valueOf(CheckpointReader::open(root))->checkpoint().state.step, std::int64_t{inHeader ? 2 : 10});
        if (inHeader)
            QCOMPARE(idsOf(CheckpointReader::open(newest).error()), QString("MW1642"));
    }
}

void TestCheckpoint::sameStepAgain()
{
    const QTemporaryDir folder;
    const fs::path first = written(folder, 3);
    overwrite(first / kManifestName, [](QByteArray& bytes) { bytes[40] = static_cast<char>(bytes[40] ^ 1); });
    QCOMPARE(written(folder, 3), first);
    QCOMPARE(valueOf(CheckpointReader::open(first))->checkpoint().state.step, std::int64_t{3});
    QCOMPARE(std::distance(fs::directory_iterator(fs::path(folder.path().toStdString())), fs::directory_iterator()),
        std::ptrdiff_t{1});
}

void TestCheckpoint::oldOnesGo()
{
    const QTemporaryDir folder;
    fs::path last;
    for (const std::int64_t step : {1, 2, 30, 3, 4})
        last = written(folder, step);
    valueOf(CheckpointFolder::open(folder.path().toStdString()))
        .removeOld(last, 2); // a run that went on from step 2: what 30 has is another's, and no reason to lose 3
    QStringList left;
    for (const fs::path& path : checkpointsIn(folder.path().toStdString()))
        left << QString::fromStdString(path.filename().string());
    QCOMPARE(left, (QStringList{"step-000000030", "step-000000004", "step-000000003"}));
}

void TestCheckpoint::aFlippedBitIsFound_data()
{
    tests::addSeeds({5, 6});
}

/// Any bit of any file: the damage is found when the checkpoint is opened or when what it hit is read.
void TestCheckpoint::aFlippedBitIsFound()
{
    const QTemporaryDir folder;
    const fs::path path = written(folder);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    QFETCH(quint64, seed);
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    int found = 0;
    for (int round = 0; round < 60; ++round) {
        const fs::path file = files[random() % files.size()];
        qsizetype at = 0;
        const auto flip = [&](QByteArray& bytes) { bytes[at] = static_cast<char>(bytes[at] ^ 4); };
        const bool isTensors = file.extension() == ".safetensors";
        overwrite(file, [&](QByteArray& bytes) {
            at = static_cast<qsizetype>(random() % static_cast<std::size_t>(bytes.size()));
            flip(bytes);
        });
        auto reader = CheckpointReader::open(path);
        bool isFound = !reader;
        for (std::size_t i = 0; !isFound && i < (*reader)->checkpoint().arrays.size(); ++i) {
            const auto read = (*reader)->read(i, wholeBox((*reader)->checkpoint().arrays[i].type.shape));
            isFound = !read;
            if (isFound)
                QCOMPARE(idsOf(read.error()), QString("MW1642"));
        }
        // White space, "meshwright" and the name of the version are not what the checkpoint says.
        const bool sameMeaning = !isFound && !isTensors && (*reader)->checkpoint().state == stateOf(2);
        QVERIFY2(isFound || sameMeaning, qPrintable(QString("%1 at %2").arg(QString::fromStdString(file.string())).arg(at)));
        found += isFound ? 1 : 0;
        overwrite(file, flip);
    }
    QVERIFY(found >= 50);
}

void TestCheckpoint::cutOff_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("id");
    QTest::newRow("manifest") << kManifestName << "MW1641";
    QTest::newRow("tensors") << "device-00003.safetensors"
                             << "MW1645";
}

void TestCheckpoint::cutOff()
{
    QFETCH(QString, file);
    QFETCH(QString, id);
    const QTemporaryDir folder;
    const fs::path path = written(folder);
    overwrite(path / file.toStdString(), [](QByteArray& bytes) { bytes.chop(17); });
    QCOMPARE(idsOf(CheckpointReader::open(path).error()), id);
}

void TestCheckpoint::refusesFalseManifests_data()
{
    QTest::addColumn<QString>("id");
    QTest::addColumn<std::function<void(Checkpoint&)>>("change");
    const auto row = [](const char* name, const char* id, std::function<void(Checkpoint&)> change) {
        QTest::newRow(name) << QString(id) << std::move(change);
    };
    row("a box outside", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].box[1].stop = 21; });
    row("an empty box", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].box[0] = {5, 4}; });
    row("another rank", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].box.pop_back(); });
    row("a piece is missing", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces.pop_back(); });
    row("no such file", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].file = 99; });
    row("beyond the file", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].offset = std::int64_t{1} << 62; });
    row("a checksum too few", "MW1641", [](Checkpoint& c) { c.arrays[0].pieces[0].checksums.clear(); });
    row("2^63 bytes", "MW1641", [](Checkpoint& c) { c.arrays[0].type.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40}; });
    row("a file elsewhere", "MW1641", [](Checkpoint& c) { c.files[0].name = "../../passwd"; });
    row("a header beyond its file", "MW1641", [](Checkpoint& c) { c.files[0].headerBytes = c.files[0].bytes + 1; });
    row("a loss too many", "MW1641", [](Checkpoint& c) { c.state.losses.push_back(1.0); });
}

void TestCheckpoint::refusesFalseManifests()
{
    QFETCH(QString, id);
    QFETCH(std::function<void(Checkpoint&)>, change);
    const QTemporaryDir folder;
    const fs::path path = written(folder);
    Checkpoint checkpoint = valueOf(CheckpointReader::open(path))->checkpoint();
    QVERIFY(valueOf(readManifest(manifestText(checkpoint), "m")) == checkpoint);
    change(checkpoint);
    const auto read = readManifest(manifestText(checkpoint), "m");
    QVERIFY(!read);
    QCOMPARE(QString::fromStdString(read.error().front().id), id);
}

void TestCheckpoint::nothingThere()
{
    const QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    QCOMPARE(idsOf(CheckpointReader::open(root / "nowhere").error()), QString("MW1001"));
    QCOMPARE(idsOf(CheckpointReader::open(root).error()), QString("MW1644"));
    QCOMPARE(idsOf(readManifest("[]", "m").error()), QString("MW1641"));
    QCOMPARE(idsOf(readManifest(std::string(100'000, '['), "m").error()), QString("MW1641"));
    QCOMPARE(idsOf(readManifest(R"({"schema": "meshwright.checkpoint/2"})", "m").error()), QString("MW1643"));
    QCOMPARE(idsOf(readManifest(R"({"schema": "meshwright.checkpoint/1", "crc32": 1, "checkpoint": {}})", "m").error()),
        QString("MW1642"));
}

/// A limit on the size of files stands for a disk that is full: writing fails in the middle of a file.
void TestCheckpoint::fullDisk()
{
    const QTemporaryDir folder;
    const fs::path before = written(folder, 1);
    rlimit old{};
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &old), 0);
    const auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit small = old;
    small.rlim_cur = 20'000;
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto path = writeTo(folder, 2);
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, oldHandler);
    QVERIFY(!path);
    QCOMPARE(idsOf(path.error()), QString("MW1640"));
    QCOMPARE(std::distance(fs::directory_iterator(fs::path(folder.path().toStdString())), fs::directory_iterator()),
        std::ptrdiff_t{1});
    QCOMPARE(valueOf(CheckpointReader::open(fs::path(folder.path().toStdString())))->path(), before);
}

void TestCheckpoint::whatIsNotOursStays_data()
{
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("file");
    QTest::addColumn<bool>("isCheckpoint"); // there is one of ours beside the file

    QTest::newRow("a name that only looks like ours") << "step-2"
                                                      << "thesis.txt" << false;
    QTest::newRow("no manifest") << "step-000000002"
                                 << "thesis.txt" << false;
    QTest::newRow("data of somebody else") << "step-000000002"
                                           << "device-00000.safetensors" << false;
    QTest::newRow("notes beside a checkpoint") << "step-000000002"
                                               << "notes.txt" << true;
    QTest::newRow("a file that the manifest does not name") << "step-000000002"
                                                            << "device-00077.safetensors" << true;
    QTest::newRow("a manifest of something else") << "step-000000002"
                                                  << "checkpoint.json.bak" << false;
}

/// Old checkpoints go, and nothing else, whatever its name.
void TestCheckpoint::whatIsNotOursStays()
{
    QFETCH(QString, folder);
    QFETCH(QString, file);
    QFETCH(bool, isCheckpoint);
    const QTemporaryDir root;
    if (isCheckpoint)
        written(root, 2);
    const fs::path theirs = fs::path(root.path().toStdString()) / folder.toStdString();
    fs::create_directories(theirs);
    QVERIFY(writeFileAtomically(theirs / file.toStdString(), "precious"));
    for (const std::int64_t step : {1, 3, 4})
        written(root, step);
    const fs::path last = written(root, 5);
    valueOf(CheckpointFolder::open(root.path().toStdString())).removeOld(last, 1);
    QCOMPARE(valueOf(readFile(theirs / file.toStdString())), std::string("precious"));
    QVERIFY(!fs::exists(fs::path(root.path().toStdString()) / "step-000000003"));
    QVERIFY(fs::exists(last));
}

/// A link with a step's name is neither removed nor followed: what it leads to may be anybody's.
void TestCheckpoint::linksAreNotFollowed()
{
    const QTemporaryDir elsewhere;
    const fs::path theirs = written(elsewhere, 2);
    const QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    fs::create_directory_symlink(theirs, root / "step-000000002");
    fs::create_directory_symlink(theirs, root / "step-000000001.4711.part");
    const fs::path last = written(folder, 5);
    valueOf(CheckpointFolder::open(root)).removeOld(last, 1);
    QVERIFY(fs::is_symlink(root / "step-000000002"));
    QVERIFY(fs::is_symlink(root / "step-000000001.4711.part"));
    QCOMPARE(valueOf(CheckpointReader::open(theirs))->checkpoint().state.step, std::int64_t{2});
    QCOMPARE(idsOf(writeTo(folder, 2).error()), QString("MW1649"));
}

/// A checkpoint replaces a checkpoint only; that another thing is in the way is known before the training.
void TestCheckpoint::notOverWhatIsNotOurs()
{
    const QTemporaryDir folder;
    const fs::path theirs = fs::path(folder.path().toStdString()) / "step-000000007";
    fs::create_directory(theirs);
    QVERIFY(writeFileAtomically(theirs / "thesis.txt", "precious"));
    QCOMPARE(idsOf(writeTo(folder, 7).error()), QString("MW1649"));
    QCOMPARE(valueOf(readFile(theirs / "thesis.txt")), std::string("precious"));
    const auto into = valueOf(CheckpointFolder::open(folder.path().toStdString()));
    QCOMPARE(idsOf(into.checkPlaces(0, 10).error()), QString("MW1649"));
    QVERIFY(into.checkPlaces(0, 6));
    QVERIFY(into.checkPlaces(8, 10));
}

/// What only has the name of an unfinished checkpoint keeps its files; what a killed writer left goes.
void TestCheckpoint::unfinishedOnesOfOthersStay()
{
    const QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    for (const char* name : {"step-000000003.part", "step-3.1.part", "step-000000003.1.part"}) {
        fs::create_directory(root / name);
        QVERIFY(writeFileAtomically(root / name / "thesis.txt", "precious"));
    }
    fs::create_directory(root / "step-000000004.1.part");
    QVERIFY(writeFileAtomically(root / "step-000000004.1.part" / "device-00000.safetensors", "half"));
    written(folder, 5);
    for (const char* name : {"step-000000003.part", "step-3.1.part", "step-000000003.1.part"})
        QCOMPARE(valueOf(readFile(root / name / "thesis.txt")), std::string("precious"));
    QVERIFY(!fs::exists(root / "step-000000004.1.part"));
}

void TestCheckpoint::oneWriterAtATime()
{
    const QTemporaryDir folder;
    {
        const auto first = CheckpointFolder::open(folder.path().toStdString());
        QVERIFY(first);
        const auto second = CheckpointFolder::open(folder.path().toStdString());
        QVERIFY(!second);
        QCOMPARE(idsOf(second.error()), QString("MW1008"));
        QVERIFY(second.error().front().message.find(fmt::format("process {} on ", ::getpid())) != std::string::npos);
    }
    QVERIFY(CheckpointFolder::open(folder.path().toStdString())); // it is free again, and nothing is left in it
    QVERIFY(fs::is_empty(folder.path().toStdString()));
}

void TestCheckpoint::typesThatSafetensorsLacks()
{
    const QTemporaryDir folder;
    ArrayToSave array = someArrays().front();
    array.type.dtype = DType::C64;
    QCOMPARE(idsOf(writeTo(folder, 0, {array}).error()), QString("MW1640"));
}

MESHWRIGHT_TEST(TestCheckpoint)

} // namespace tst_checkpoint

#include "tst_checkpoint.moc"
