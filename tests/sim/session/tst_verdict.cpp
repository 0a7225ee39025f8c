// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/timed_stop.h"
#include "core/text/program_text.h"
#include "core/train/training_memory.h"
#include "sim/session/search_study.h"
#include "sim/session/sweep_engine.h"
#include "sim/session/verdict.h"
#include "tests/sim/session/random_study.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QTemporaryDir>

#include <set>

namespace tst_verdict {

using namespace meshwright;
using namespace meshwright::sim;

/// One verdict: what `check` passes every verb takes, and what a verb refuses `check` names, with the same id and place.
class TestVerdict : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void found_data();
    void found();
    void studies_data();
    void studies();
    void programs_data();
    void programs();
    void examplesAreGood_data();
    void examplesAreGood();

private:
    QString judged(const StudySource& source);

    std::optional<Catalogue> m_catalogue;
    std::optional<Calibration> m_calibration;
    QTemporaryDir m_folder;
    std::map<std::string, int> m_refused; ///< by id
    int m_passed = 0;
};

namespace {

/// What this computer cannot do, and where training leads to, is not a verdict on the study.
bool isOfTheRun(const Problem& problem)
{
    static const std::set<std::string> kIds = {"MW1509", "MW1515", "MW1521", "MW1620", "MW1630"};
    return kIds.contains(problem.id);
}

QString placed(const Problem& problem)
{
    return tests::text(problem.id + " " + problem.place.file + ":" + std::to_string(problem.place.line) + ":"
        + std::to_string(problem.place.column) + " [" + problem.place.path + "] " + problem.message);
}

QString listed(const Problems& problems)
{
    QString text;
    for (const Problem& problem : problems)
        text += QString("  %1 ").arg(severityName(problem.severity)) + placed(problem) + "\n";
    return text;
}

QString shown(const StudySource& source)
{
    QString text = tests::text(source.file);
    for (const std::string& setting : source.settings)
        text += " --set '" + tests::text(setting) + "'";
    return text;
}

Problems errorsOf(const Problems& problems)
{
    Problems errors;
    for (const Problem& problem : problems) {
        if (problem.severity == Severity::Error && !isOfTheRun(problem))
            errors.push_back(problem);
    }
    return errors;
}

/// Empty, or what a verb refuses that the check does not name.
QString unnamed(const char* verb, const Problems& refused, const Problems& checked)
{
    QString text;
    for (const Problem& problem : errorsOf(refused)) {
        const bool isNamed = std::ranges::any_of(
            checked, [&](const Problem& other) { return other.id == problem.id && other.place == problem.place; });
        if (!isNamed)
            text += QString("%1 refuses %2\n").arg(verb, placed(problem));
    }
    return text;
}

/// All that `check` names.
Problems named(Verdict verdict)
{
    append(verdict.problems, std::move(verdict.notFor));
    return std::move(verdict.problems);
}

/// A verb's way to a study: its text is read, and its files are there.
Result<Study> opened(const StudySource& source)
{
    auto study = readStudy(source.text, source.file, source.settings);
    if (study) {
        if (Problems missing = checkFiles(*study); !missing.empty())
            return missing;
    }
    return study;
}

/// Trains for a step where that is soon done; else goes as far as is known to be good before the first one.
Problems refusedByTraining(Study study)
{
    constexpr std::int64_t kMostBytes = 32 << 20;
    constexpr std::int64_t kMostDevices = 16;
    study.train.steps = std::min<std::int64_t>(study.train.steps, 1);
    for (StudyPhase& phase : study.phases)
        phase.steps = std::min<std::int64_t>(phase.steps, 1);
    const auto phases = trainingPhases(study);
    if (!phases)
        return phases.error();
    if (const auto options = trainerOptions(study, {}); !options)
        return options.error();
    const bool isSmall = plannedTrainingBytes(*phases) <= kMostBytes
        && std::ranges::all_of(
            *phases, [](const TrainingPhase& phase) { return wholeMesh(phase).deviceCount() <= kMostDevices; });
    if (!isSmall) {
        const auto data = study.train.data.kind == TrainingData::Kind::Random ? Result<Dataset>(Dataset()) : datasetOf(study);
        return data ? Problems{} : data.error();
    }
    const auto trained = trainStudy(study, {.permits = 2}, {}, {});
    return trained ? Problems{} : trained.error();
}

Problems refusedBySearch(const Study& study, const Catalogue& catalogue, const Calibration& calibration)
{
    const TimedStop stop({}, 0.01);
    const auto found = searchStudy(study, catalogue, calibration, {}, {.top = 1, .threads = 1, .stop = stop.token()});
    return found ? Problems{} : found.error();
}

int drawsOf(int usual)
{
    return qEnvironmentVariableIsSet("MESHWRIGHT_VERDICTS") ? qEnvironmentVariableIntValue("MESHWRIGHT_VERDICTS") : usual;
}

/// Two seeds that stay, and one of the moment.
void addSeeds()
{
    QTest::addColumn<quint64>("seed");
    if (qEnvironmentVariableIsSet("MESHWRIGHT_SEED")) { // one that was printed, again
        QTest::newRow("the seed asked for") << quint64(qgetenv("MESHWRIGHT_SEED").toULongLong());
        return;
    }
    const quint64 fresh = static_cast<quint64>(std::random_device()()) << 16;
    QTest::newRow("seed 1") << quint64(1);
    QTest::newRow("seed 2") << quint64(2);
    QTest::newRow(qPrintable(QString("fresh seed %1").arg(fresh))) << fresh;
}

} // namespace

void TestVerdict::initTestCase()
{
    m_catalogue = valueOf(defaultCatalogue());
    m_calibration = valueOf(Calibration::load(valueOf(findResource("hardware/calibration.json"))));
}

// ---- each thing that a verb refused and `check` passed

namespace {

const std::string kStudy = "meshwright: 1\n"
                           "hardware: {chip: v5e, topology: [4, 2]}\n"
                           "mesh: {data: 4, model: 2}\n"
                           "model: {mlp: {layers: [16, 32, 32, 8], loss: cross_entropy}}\n"
                           "batch: 16\n"
                           "sharding: {x: \"P('data', None)\"}\n"
                           "optimizer: {sgd: {learning_rate: 0.1}}\n"
                           "train: {steps: 1}\n";
const std::string kTokens = "model={transformer: {layers: 4, hidden: 16, heads: 4, ffn: 32, vocabulary: 32}}";

} // namespace

void TestVerdict::found_data()
{
    QTest::addColumn<QStringList>("settings");
    QTest::addColumn<QString>("expected"); ///< severity, id and path

    const QString tokens = tests::text(kTokens);
    QTest::newRow("an unknown chip") << QStringList{"hardware.chip=v55"} << "error MW1701 hardware.chip";
    QTest::newRow("a mesh larger than the slice") << QStringList{"mesh={data: 16}"} << "error MW1430 mesh";
    QTest::newRow("a topology of another rank") << QStringList{"hardware.topology=[4, 2, 1]"} << "error MW1703 hardware";
    QTest::newRow("8-bit products on a chip without them")
        << QStringList{tokens, "sequence=16", "dtype.fp8=delayed", "sharding=", "mesh={data: 8}", "sharding.x=P('data')"}
        << "error MW1763 dtype.fp8";
    QTest::newRow("a fault of a device that is not there")
        << QStringList{"faults.slow=[{device: 9, speed: 0.5}]"} << "error MW1746 faults.slow[0].device";
    QTest::newRow("no stages as many as devices")
        << QStringList{"pipeline={axis: model, stages: 16777217, microbatches: 1}"} << "error MW1401 pipeline.stages";
    QTest::newRow("more tasks than a step has") << QStringList{"batch=1048576",
        "pipeline={axis: model, stages: 2, microbatches: 32768, chunks: 32, schedule: interleaved}"}
                                                << "error MW1467 pipeline.microbatches";
    QTest::newRow("heads that do not divide the hidden size")
        << QStringList{"model={transformer: {layers: 2, hidden: 32, heads: 5, ffn: 32, vocabulary: 32}}", "sequence=16"}
        << "error MW1353 model.transformer.heads";
    QTest::newRow("more layers than any model has") << QStringList{
        "model={transformer: {layers: 1000000, hidden: 16, heads: 4, ffn: 32, vocabulary: 32, unroll: true}}",
        "sequence=16"} << "error MW1352 model.transformer.layers";
    QTest::newRow("chunks of a loop in one stage") << QStringList{tokens, "sequence=16", "sharding={x: \"P('data')\"}",
        "pipeline.chunks=4"} << "error MW1463 pipeline.chunks";
    QTest::newRow("more copies of layers than memory can hold") << QStringList{
        "model={transformer: {layers: 600, hidden: 16, heads: 4, ffn: 32, vocabulary: 32, unroll: true}}",
        "sequence=16"} << "error MW1352 model.transformer.layers";
    QTest::newRow("a loop of layers in stages, its layers split over another axis")
        << QStringList{tokens, "sequence=16", "pipeline={axis: model, stages: 2, microbatches: 2}",
               "sharding={x: \"P('data')\", y: \"P('data')\", layers.ffn.up.w: \"P('data')\"}"}
        << "error MW1546 sharding.layers.ffn.up.w";
    QTest::newRow("a pipeline without an optimizer")
        << QStringList{"pipeline={axis: model, stages: 2, microbatches: 2}", "model.mlp.layers=[16, 16, 8]", "optimizer=none"}
        << "error MW1545 pipeline";
    QTest::newRow("a link that is all but failed")
        << QStringList{"faults.links=[{device: 0, axis: x, share: 1e-15}]"} << "error MW1425 faults.links[0].share";
    QTest::newRow("a step of weeks") << QStringList{"batch=1099511627776", "model.mlp.layers=[65536, 65536, 8]"}
                                     << "error MW1751 hardware";
    QTest::newRow("too large for a device") << QStringList{"model.mlp.layers=[65536, 65536, 65536, 8]"}
                                            << "warning MW1757 hardware";
    QTest::newRow("half the chips idle") << QStringList{"hardware.topology=[4, 4]"} << "warning MW1753 mesh";
    QTest::newRow("a tensor axis between hosts") << QStringList{"hardware={chip: h100, hosts: 2, per_host: 4}", "mesh={model: 8}",
        "model.mlp.layers=[1024, 4096, 1024, 8]", "batch=1024",
        "sharding={x: P(), layers.0.w: \"P(None, 'model')\", layers.1.w: \"P('model', None)\"}"}
                                                 << "warning MW1752 mesh.model";
    QTest::newRow("a whole batch with sharded parameters") << QStringList{"mesh={data: 8}", "model.mlp.layers=[64, 64, 64]",
        "batch=4096", "model.mlp.loss=mse", "sharding={x: P(), match: [{path: \"*\", divisible: largest_dim, spec: [data]}]}"}
                                                           << "warning MW1277 sharding.x";
    QTest::newRow("no hardware") << QStringList{"hardware="} << "note MW1731 hardware";
    QTest::newRow("an axis that no stage uses") << QStringList{tokens, "sequence=16", "mesh={pipe: 2, other: 4}",
        "sharding={x: P()}", "pipeline={axis: pipe, stages: 2, microbatches: 2}"}
                                                << "warning MW1270 mesh.other";
    QTest::newRow("a loop of layers in stages that take other layers") << QStringList{tokens, "sequence=16",
        "sharding={x: \"P('data')\"}", "pipeline={axis: model, stages: 2, microbatches: 2, layers: [1, 7]}"}
                                                                       << "error MW1462 pipeline.layers";
}

void TestVerdict::found()
{
    QFETCH(QStringList, settings);
    QFETCH(QString, expected);

    StudySource source{kStudy, "study.yaml", {}};
    for (const QString& setting : settings)
        source.settings.push_back(setting.toStdString());
    const Problems problems = named(verdictOf(source, *m_catalogue));
    const bool isFound = std::ranges::any_of(problems, [&](const Problem& problem) {
        return expected
            == QString("%1 %2 %3").arg(severityName(problem.severity), tests::text(problem.id), tests::text(problem.place.path));
    });
    QVERIFY2(isFound, qPrintable(listed(problems)));
    const QString wrong = judged(source);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
}

// ---- drawn studies

void TestVerdict::studies_data()
{
    addSeeds();
}

/// Where the verdicts of the verbs on one study are not that of the check; empty when they are.
QString TestVerdict::judged(const StudySource& source)
{
    const Problems checked = named(verdictOf(source, *m_catalogue));
    QString wrong;
    std::set<std::string> refused;
    const auto take = [&](const char* verb, const Problems& problems) {
        wrong += unnamed(verb, problems, checked);
        for (const Problem& problem : errorsOf(problems))
            refused.insert(problem.id);
    };
    const auto study = opened(source);
    if (!study) {
        take("every verb", study.error());
    } else {
        const auto simulated = simulateStudy(*study, *m_catalogue);
        take("simulate", simulated ? Problems{} : simulated.error());
        if (simulated && !(simulated->simulation.stepSeconds > 0.0 && std::isfinite(simulated->simulation.stepSeconds)))
            wrong += QString("a step of %1 s\n").arg(simulated->simulation.stepSeconds);
        take("search", refusedBySearch(*study, *m_catalogue, *m_calibration));
        take("train", refusedByTraining(*study));
    }
    Problems reported = analysed(source, *m_catalogue)->problems;
    take("report", reported);
    for (const Problem& problem : errorsOf(checked)) {
        ++m_refused[problem.id];
        if (!refused.contains(problem.id) && problem.place.path.find("phases[") == std::string::npos)
            wrong += "no verb refuses " + placed(problem) + "\n";
    }
    m_passed += hasErrors(checked) ? 0 : 1;
    return wrong.isEmpty() ? wrong : shown(source) + "\n" + wrong + "check says\n" + listed(checked);
}

void TestVerdict::studies()
{
    QFETCH(quint64, seed);
    std::vector<StudySource> examples;
    const std::filesystem::path folder = resourcesDirectory() / "examples";
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        // Its 126 layers take seconds to be cut into stages; a smaller loop in stages is among the drawn ones.
        const bool isLarge = entry.path().stem() == "llama3_405b_h100";
        if (entry.path().extension() == ".yaml" && !isLarge)
            files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files)
        examples.push_back({valueOf(readFile(file)), file.string(), {}});
    tests::StudyDraw draws(seed, m_folder.path().toStdString(), std::move(examples));
    m_refused.clear();
    m_passed = 0;
    int failed = 0;
    const int count = drawsOf(25);
    for (int i = 0; i < count; ++i) {
        const StudySource source = draws.draw();
        if (qEnvironmentVariableIsSet("MESHWRIGHT_PRINT"))
            qInfo("%d %s", i, qPrintable(shown(source)));
        const QString wrong = judged(source);
        if (!wrong.isEmpty())
            qWarning("%s", qPrintable(wrong));
        failed += wrong.isEmpty() ? 0 : 1;
    }
    QCOMPARE(failed, 0);
    QVERIFY2(m_passed > 0 && m_passed < count, "only good studies, or only bad ones, are drawn");
    if (qEnvironmentVariableIsSet("MESHWRIGHT_VERDICTS")) {
        QString ids;
        for (const auto& [id, times] : m_refused)
            ids += QString(" %1 x %2").arg(tests::text(id)).arg(times);
        qInfo("%d of %d good; refused:%s", m_passed, count, qPrintable(ids));
    }
}

// ---- programs

void TestVerdict::programs_data()
{
    addSeeds();
}

void TestVerdict::programs()
{
    QFETCH(quint64, seed);
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(resourcesDirectory() / "examples")) {
        if (entry.path().extension() == ".mlir")
            texts.push_back(valueOf(readFile(entry.path())));
    }
    std::ranges::sort(texts);
    std::mt19937_64 random(seed);
    const int count = drawsOf(25);
    for (int i = 0; i < count; ++i) {
        std::string text = texts[random() % texts.size()];
        for (std::uint64_t changes = random() % 3; changes > 0; --changes) {
            // An axis, a size or an element type for another one.
            static const std::vector<std::pair<std::string, std::string>> kChanges = {{"\"a\"", "\"b\""},
                {"\"data\"", "\"model\""}, {"=4", "=2"}, {"=2", "=3"}, {"=8", "=6"}, {"f32", "f16"}, {"f32", "i32"},
                {"x4x", "x6x"}, {"8x", "10x"}, {"{}", "{\"a\"}"}, {"{\"data\"}", "{}"}, {"stablehlo.add", "stablehlo.multiply"},
                {"f32", "f8E4M3FN"}, {"contracting_dims = [1] x [0]", "contracting_dims = [0] x [0]"}, {"f32", "complex<f32>"}};
            const auto& [from, to] = kChanges[random() % kChanges.size()];
            const bool everywhere = random() % 2 == 0;
            for (std::size_t at = text.find(from); at != std::string::npos;
                 at = everywhere ? text.find(from, at + to.size()) : std::string::npos)
                text.replace(at, from.size(), to);
        }
        Problems checked;
        const auto program = readProgram(text, "drawn.mlir", &checked);
        if (!program || program->functions.empty())
            continue; // all verbs read it alike
        append(checked, named(verdictOf(*program, "drawn.mlir")));
        QString wrong;
        bool isRefused = false;
        for (const Function& function : program->functions) {
            std::int64_t elements = 0;
            for (const Value& value : function.values)
                elements = std::max(elements, value.type.elements());
            const bool isSmall
                = elements <= (1 << 16) && (program->meshes.empty() || program->meshes.front().mesh.deviceCount() <= 16);
            const auto prepared = prepareRun(*program, function.name);
            Problems refused = prepared ? Problems{} : prepared.error();
            if (prepared && isSmall) {
                const auto run = runProgram(*program, function.name, {.permits = 2}, {});
                refused = run ? Problems{} : run.error();
                for (const Problem& warning : run ? run->warnings : Problems{}) {
                    // Values that differ are known of a run only.
                    if (warning.id != "MW1536" && std::ranges::find(checked, warning.id, &Problem::id) == checked.end())
                        wrong += "run warns of " + placed(warning) + "\n";
                }
            }
            wrong += unnamed("run", inFile(refused, "drawn.mlir"), checked);
            isRefused = isRefused || !errorsOf(refused).empty();
        }
        const auto partitioned
            = program->meshes.empty() ? Result<PartitionedProgram>(noMesh("drawn.mlir")) : propagateAndPartition(*program);
        if (!partitioned) {
            wrong += unnamed("partition", inFile(partitioned.error(), "drawn.mlir"), checked);
            isRefused = isRefused || !program->meshes.empty();
        }
        if (hasErrors(checked) && !isRefused)
            wrong += "no verb refuses it\n";
        QVERIFY2(wrong.isEmpty(), qPrintable(tests::text(text) + "\n" + wrong + "check says\n" + listed(checked)));
    }
}

// ---- the examples

void TestVerdict::examplesAreGood_data()
{
    QTest::addColumn<QString>("path");
    for (const auto& entry : std::filesystem::directory_iterator(resourcesDirectory() / "examples")) {
        if (entry.path().extension() == ".yaml")
            QTest::newRow(entry.path().filename().c_str()) << QString(entry.path().c_str());
    }
}

/// No false alarm: nothing is wrong with them, and one of them alone wastes something, on purpose.
void TestVerdict::examplesAreGood()
{
    QFETCH(QString, path);
    const StudySource source{valueOf(readFile(path.toStdString())), path.toStdString(), {}};
    QStringList ids;
    for (const Problem& problem : verdictOf(source, *m_catalogue).problems)
        ids << tests::text(problem.id);
    const QString expected = path.endsWith("replicated.yaml") ? "MW1270" : "";
    QCOMPARE(ids.join(' '), expected);
}

MESHWRIGHT_TEST(TestVerdict)

} // namespace tst_verdict

#include "tst_verdict.moc"
