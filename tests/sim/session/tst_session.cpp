// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/label.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/session/analysis_state.h"
#include "sim/session/session.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <functional>
#include <thread>

namespace tst_session {

using namespace meshwright;

/// What windows and reports are made from: one analysis of a study, as far as the study allows, remembered by content.
class TestSession : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void goesAsFarAsTheStudyAllows_data();
    void goesAsFarAsTheStudyAllows();
    void lintsAreProblems();
    void arraysHaveSpecsAndReasons();
    void argumentsWithoutNamesAreNumbered();
    void eightBitProductsAreBuilt();
    void eightBitPartsHaveNames();
    void instructionsHaveNames_data();
    void instructionsHaveNames();
    void loopsShowWhatTheyHoldAtThePeak();
    void remembersByContent();
    void forgetsTheOldest();
    void stops();
    void answersManyThreads();

private:
    sim::Session m_session{valueOf(sim::defaultCatalogue())};
};

namespace {

sim::StudySource example(const std::string& name, std::vector<std::string> settings = {})
{
    const auto path = resourcesDirectory() / "examples" / name;
    return {valueOf(readFile(path)), path.string(), std::move(settings)};
}

} // namespace

void TestSession::goesAsFarAsTheStudyAllows_data()
{
    QTest::addColumn<QString>("setting");
    QTest::addColumn<QString>("parts"); ///< what is there: study, machine, built, placed, simulated
    QTest::addColumn<QString>("problem");

    QTest::newRow("all is well") << "batch=8192"
                                 << "smbpt"
                                 << "";
    QTest::newRow("no study") << "batch=none"
                              << ""
                              << "MW1422";
    QTest::newRow("no hardware") << "hardware="
                                 << "sb"
                                 << "";
    QTest::newRow("unknown chip") << "hardware.chip=v99"
                                  << "sb"
                                  << "MW1701";
    QTest::newRow("mesh larger than the machine") << "mesh.data=64"
                                                  << "smb"
                                                  << "MW1430";
    QTest::newRow("a spec that does not divide") << "sharding.layers.3.w=P(None, 'data')"
                                                 << ""
                                                 << "MW1104";
}

void TestSession::goesAsFarAsTheStudyAllows()
{
    QFETCH(QString, setting);
    QFETCH(QString, parts);
    QFETCH(QString, problem);
    const auto analysis = m_session.analyse(example("notebook_mlp.yaml", {setting.toStdString()}));
    QVERIFY(analysis != nullptr);
    QCOMPARE(analysis->study != nullptr, parts.contains('s'));
    QCOMPARE(analysis->machine != nullptr, parts.contains('m'));
    QCOMPARE(analysis->built != nullptr, parts.contains('b'));
    QCOMPARE(analysis->scheduled != nullptr, parts.contains('b'));
    QCOMPARE(analysis->arrays.empty(), !parts.contains('b'));
    QCOMPARE(analysis->placement != nullptr, parts.contains('p'));
    QCOMPARE(analysis->simulated != nullptr, parts.contains('t'));
    if (problem.isEmpty())
        QCOMPARE(QString::fromStdString(describe(analysis->problems)), QString());
    else
        QCOMPARE(QString::fromStdString(analysis->problems.at(0).id), problem);
}

/// What the layouts waste is said with the other problems, with what fixes it.
void TestSession::lintsAreProblems()
{
    const auto analysis = m_session.analyse(example("replicated.yaml"));
    QVERIFY(analysis != nullptr && analysis->simulated != nullptr);
    const auto lint = std::find_if(
        analysis->problems.begin(), analysis->problems.end(), [](const Problem& problem) { return problem.id == "MW1270"; });
    QVERIFY2(lint != analysis->problems.end(), describe(analysis->problems).c_str());
    QCOMPARE(lint->severity, Severity::Warning);
    QVERIFY(lint->place.line > 0 && !lint->fixSettings.empty());
    sim::StudySource fixed = analysis->source;
    fixed.settings.insert(fixed.settings.end(), lint->fixSettings.begin(), lint->fixSettings.end());
    const auto again = m_session.analyse(fixed);
    QVERIFY(std::none_of(
        again->problems.begin(), again->problems.end(), [](const Problem& problem) { return problem.id == "MW1270"; }));

    // A transformer's step too.
    const auto transformer = m_session.analyse(example("transformer_digits.yaml", {"mesh.idle=2"}));
    QVERIFY(std::any_of(transformer->problems.begin(), transformer->problems.end(),
        [](const Problem& problem) { return problem.id == "MW1270" && problem.place.path == "mesh.idle"; }));
}

/// As the text of most programs calls them: a study can say where they lie.
void TestSession::argumentsWithoutNamesAreNumbered()
{
    const QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(name).toStdString(); };
    QVERIFY(writeFileAtomically(path("step.mlir"),
        "func.func @main(%arg0: tensor<8x4xf32>, %w: tensor<4x6xf32>, %arg2: tensor<8x6xf32>) -> tensor<8x6xf32> {\n"
        "  %0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> "
        "tensor<8x6xf32>\n"
        "  %1 = stablehlo.add %0, %arg2 : tensor<8x6xf32>\n  return %1 : tensor<8x6xf32>\n}\n"));
    const auto analysis = m_session.analyse({"meshwright: 1\nhardware: {chip: v5e, topology: [2, 2]}\nmesh: {data: 4}\n"
                                             "model: {program: step.mlir}\nsharding: {arg2: \"P('data')\"}\n",
        path("study.yaml"), {}});
    QVERIFY2(!analysis->arrays.empty(), describe(analysis->problems).c_str());
    for (const auto& [name, spec] : {std::pair{"arg0", "P('data',)"}, {"w", "P()"}, {"arg2", "P('data',)"}}) {
        const sim::ProgramArray* array = analysis->findArray(name);
        QVERIFY2(array != nullptr, name);
        QCOMPARE(array->spec, std::string(spec));
    }
}

/// A step with 8-bit products is built, proved and simulated as any other.
void TestSession::eightBitProductsAreBuilt()
{
    const auto on64 = [&](const std::string& fp8) {
        return m_session.analyse(example("transformer_64.yaml",
            {"hardware=h100x64", "dtype={parameters: f32, matmul: bf16, activations: bf16, fp8: " + fp8 + "}"}));
    };
    const auto wide = on64("none");
    const auto analysis = on64("current");
    QVERIFY(analysis != nullptr && analysis->simulated != nullptr && analysis->built && !hasErrors(analysis->problems));
    QVERIFY(sim::whyNotBuilt(*analysis) == nullptr && analysis->proof->isProved());
    const sim::Simulation& s = analysis->simulated->simulation;
    QVERIFY(
        std::abs(s.stepSeconds - s.computeSeconds - s.launchSeconds - s.exposedSeconds - s.bubbleSeconds) < 1e-9 * s.stepSeconds);
    const double inSixteen = wide->simulated->simulation.productSeconds;
    QVERIFY2(s.productSeconds < 0.85 * inSixteen,
        qPrintable(QString("%1 s of products, %2 s in 16 bits").arg(s.productSeconds).arg(inSixteen)));
    const auto warned = [&](const char* recipe) {
        const auto of = on64(recipe);
        return std::any_of(
            of->problems.begin(), of->problems.end(), [](const Problem& problem) { return problem.id == "MW1465"; });
    };
    QVERIFY(warned("delayed") && !warned("blockwise"));
}

/// What is made on the way to 8 bits is called by the array that it is of.
void TestSession::eightBitPartsHaveNames()
{
    const auto analysis = m_session.analyse(example("transformer_64.yaml",
        {"hardware=h100x64", "model.transformer.layers=2", "sharding.layers.ffn.up.w=P(None, 'data', 'model')",
            "dtype={parameters: f32, matmul: bf16, activations: bf16, fp8: current}"}));
    QVERIFY(analysis && analysis->simulated);
    QStringList moved;
    for (const sim::SimulatedCollective& collective : analysis->simulated->simulation.collectives)
        moved << QString::fromStdString(collective.use.cause.value) << QString::fromStdString(collective.label);
    for (const char* name :
        {"largest of act.layers.ffn.input", "all_reduce largest of act.layers.ffn.input", "layers.ffn.up.w in 8 bits"})
        QVERIFY2(moved.contains(name), qPrintable(QString(name) + " of " + moved.join(", ")));
    QVERIFY2(moved.filter("the result of convert").isEmpty(), qPrintable(moved.join(", ")));
}

/// Timelines and messages call what nobody named by what makes it, of what: a number says nothing to a person.
void TestSession::instructionsHaveNames_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("one"); ///< of the names
    QTest::newRow("an MLP") << "notebook_mlp.yaml"
                            << "reduce(y, ..)";
    QTest::newRow("a loop of layers") << "sequence_parallel_transformer.yaml"
                                      << "dot_general(act.layers.attention.mixed, ..)";
    QTest::newRow("a program") << "jax_product.yaml"
                               << "dot_general(y, ..)";
}

void TestSession::instructionsHaveNames()
{
    QFETCH(QString, file);
    QFETCH(QString, one);
    const auto analysis = m_session.analyse(example(file.toStdString()));
    QVERIFY(analysis && analysis->scheduled);
    const ScheduledFunction& step = *analysis->scheduled;
    QStringList names;
    const std::function<void(const std::vector<Instruction>&)> collect = [&](const std::vector<Instruction>& instructions) {
        for (const Instruction& instruction : instructions) {
            names << QString::fromStdString(instructionLabel(step.device.function, instruction));
            collect(instruction.body);
        }
    };
    collect(step.instructions);
    QVERIFY2(names.filter("%").isEmpty(), qPrintable(names.filter("%").join(", ")));
    QVERIFY2(names.contains(one), qPrintable(names.join(", ")));
}

/// What a loop needs at the peak is listed array by array, and all adds up to the peak.
void TestSession::loopsShowWhatTheyHoldAtThePeak()
{
    const auto analysis = m_session.analyse(example("sequence_parallel_transformer.yaml"));
    QVERIFY(analysis && analysis->simulated);
    QStringList names;
    std::int64_t listed = 0;
    std::int64_t room = 0;
    for (const sim::LiveValue& value : analysis->simulated->liveAtPeak) {
        listed += value.bytes;
        names << QString::fromStdString(value.name);
        room += value.name.starts_with("room between") ? value.bytes : 0;
    }
    const sim::Simulation& simulation = analysis->simulated->simulation;
    QCOMPARE(listed, simulation.memory[simulation.peakInstruction].total);
    QVERIFY2(room >= 0 && 20 * room < listed, qPrintable(QString::number(room)));
    for (const char* name : {"act.layers.ffn.hidden", "act.layers.ffn.hidden, one turn", "grad.layers.ffn.up.w.each, one turn"})
        QVERIFY2(names.contains(name), qPrintable(names.join(" | ")));
}

void TestSession::arraysHaveSpecsAndReasons()
{
    const auto analysis = m_session.analyse(example("notebook_mlp.yaml"));
    const sim::ProgramArray* weight = analysis->findArray("layers.1.w");
    QVERIFY(weight != nullptr);
    QCOMPARE(weight->spec, std::string("P(None, 'model')"));
    QCOMPARE(weight->annotation, std::string("sharding.layers.1.w"));
    QCOMPARE(weight->role, Role::Parameter);

    const sim::ProgramArray* gradient = analysis->findArray("grad.layers.1.w");
    QVERIFY(gradient != nullptr);
    QCOMPARE(gradient->spec, std::string("P(None, 'model')"));
    QVERIFY(gradient->annotation.empty());
    QVERIFY(QString::fromStdString(analysis->reasonOf(*gradient)).contains("sharding.layers.1.w"));
    QVERIFY(analysis->findArray("layers.9.w") == nullptr);

    // Parameters come first.
    QCOMPARE(analysis->arrays.front().role, Role::Parameter);
}

void TestSession::remembersByContent()
{
    const auto first = m_session.analyse(example("digits.yaml"));
    QCOMPARE(m_session.analyse(example("digits.yaml")).get(), first.get());
    QVERIFY(m_session.analyse(example("digits.yaml", {"batch=200"})).get() != first.get());
}

void TestSession::forgetsTheOldest()
{
    sim::Session session(valueOf(sim::defaultCatalogue()));
    const auto numbered = [](std::size_t number) { return sim::StudySource{"nothing " + std::to_string(number), "f.yaml", {}}; };
    const auto first = session.analyse(numbered(0));
    const auto second = session.analyse(numbered(1));
    for (std::size_t i = 2; i < sim::Session::kRememberedAnalyses; ++i)
        session.analyse(numbered(i));
    QCOMPARE(session.analyse(numbered(0)).get(), first.get()); // used again: not the oldest any more
    session.analyse(numbered(1000));
    QCOMPARE(session.analyse(numbered(0)).get(), first.get());
    QVERIFY(session.analyse(numbered(1)).get() != second.get());
}

void TestSession::stops()
{
    std::stop_source stop;
    stop.request_stop();
    QVERIFY(m_session.analyse(example("fsdp.yaml", {"batch=512"}), stop.get_token()) == nullptr);
    QVERIFY(m_session.analyse(example("fsdp.yaml", {"batch=512"})) != nullptr);
}

void TestSession::answersManyThreads()
{
    std::vector<double> seconds(8);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < seconds.size(); ++i)
            threads.emplace_back([&, i] {
                const auto analysis
                    = m_session.analyse(example("two_d.yaml", {"batch=" + std::to_string(i % 2 == 0 ? 64 : 65536)}));
                seconds[i] = analysis->simulated->simulation.stepSeconds;
            });
    }
    for (std::size_t i = 2; i < seconds.size(); ++i)
        QCOMPARE(seconds[i], seconds[i % 2]);
    QVERIFY(seconds[0] < seconds[1]);
}

MESHWRIGHT_TEST(TestSession)

} // namespace tst_session

#include "tst_session.moc"
