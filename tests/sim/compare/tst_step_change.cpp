// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/compare/step_change.h"

#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/session/session.h"
#include "tests/test_class.h"

namespace tst_step_change {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

SimulatedCollective collective(OpKind kind, const std::string& axes, const std::string& value, double exposedSeconds,
    std::int64_t bytes = 1024, std::int64_t groupSize = 2)
{
    SimulatedCollective made;
    made.use.kind = kind;
    made.use.axes = axes;
    made.use.payloadBytes = bytes;
    made.use.groupSize = groupSize;
    made.use.phase = Phase::Backward;
    made.use.cause.value = value;
    made.seconds = made.exposedSeconds = exposedSeconds;
    return made;
}

/// A step of 20 ms of computing, 15 of them products, and these collectives.
Simulation step(std::vector<SimulatedCollective> collectives)
{
    Simulation s;
    s.computeSeconds = 20e-3;
    s.productSeconds = 15e-3;
    s.productFlopsPerDevice = 1e12;
    s.otherTrafficBytes = 4.0 * 1024 * 1024;
    s.peakFlopsPerSecond = 197e12;
    for (const SimulatedCollective& c : collectives)
        s.exposedSeconds += c.exposedSeconds;
    s.collectives = std::move(collectives);
    s.stepSeconds = s.computeSeconds + s.exposedSeconds;
    return s;
}

Simulation withProducts(double seconds, double flops, double peak = 197e12)
{
    Simulation s = step({});
    s.stepSeconds += seconds - s.productSeconds;
    s.computeSeconds += seconds - s.productSeconds;
    s.productSeconds = seconds;
    s.productFlopsPerDevice = flops;
    s.peakFlopsPerSecond = peak;
    return s;
}

Simulation withOther(double seconds, double bytes)
{
    Simulation s = step({});
    s.stepSeconds += seconds - 5e-3;
    s.computeSeconds += seconds - 5e-3;
    s.otherTrafficBytes = bytes;
    return s;
}

double sumOf(const StepChange& change)
{
    double sum = 0.0;
    for (const StepDifference& part : change.parts)
        sum += part.seconds();
    return sum;
}

/// The study's simulations on all meshes of 8 devices over its axes, as settings name them; those that the study refuses are left out.
std::vector<std::pair<QString, Simulation>> onAllMeshes(Session& session, const QString& example)
{
    const std::filesystem::path file = resourcesDirectory() / "examples" / (example.toStdString() + ".yaml");
    const std::string text = *readFile(file);
    const auto original = session.analyse({text, file.string(), {}});
    std::vector<std::string> axes;
    for (const MeshAxis& axis : original->mesh().axes())
        axes.push_back(axis.name);
    std::vector<std::pair<QString, Simulation>> found;
    const auto visit = [&](const auto& self, std::size_t axis, std::int64_t left, std::vector<std::string> settings) -> void {
        if (axis + 1 == axes.size()) {
            settings.push_back(fmt::format("mesh.{}={}", axes[axis], left));
            const auto analysis = session.analyse({text, file.string(), settings});
            if (analysis->simulated)
                found.emplace_back(QString::fromStdString(join(settings, " ")), analysis->simulated->simulation);
            return;
        }
        for (std::int64_t size = 1; size <= left; size *= 2) {
            std::vector<std::string> more = settings;
            more.push_back(fmt::format("mesh.{}={}", axes[axis], size));
            self(self, axis + 1, left / size, more);
        }
    };
    visit(visit, 0, 8, {});
    return found;
}

} // namespace

class TestStepChange : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sentences_data();
    void sentences();
    void partsAddUp_data();
    void partsAddUp();
    void notebookSlider();
    void words_data();
    void words();
};

void TestStepChange::sentences_data()
{
    QTest::addColumn<Simulation>("before");
    QTest::addColumn<Simulation>("after");
    QTest::addColumn<QString>("sentence");

    constexpr auto kReduce = OpKind::AllReduce;
    constexpr auto kGather = OpKind::AllGather;
    const Simulation plain = step({});
    QTest::newRow("the same") << plain << plain << "no change";
    QTest::newRow("too little to say") << plain << step({collective(kReduce, "data", "x", 9e-6)}) << "no change";
    QTest::newRow("new") << plain << step({collective(kReduce, "model", "act.layers.2.product", 3.1e-3)})
                         << "+3.1 ms: all-reduce of layers.2's output over model";
    QTest::newRow("gone") << step({collective(kGather, "data", "layers.1.w", 1.2e-3)}) << plain
                          << "-1.2 ms: layers.1.w is no longer gathered over data";
    QTest::newRow("gone, several") << step({collective(kReduce, "data", "grad.layers.0.w", 1e-3),
        collective(kReduce, "data", "grad.layers.1.w", 2e-3), collective(kReduce, "data", "grad.layers.1.b", 1e-6)})
                                   << plain
                                   << "-3.0 ms: the gradients of layers.1.w and layers.0.w are no longer all-reduced over data";
    QTest::newRow("several") << plain
                             << step({collective(kReduce, "data", "grad.layers.0.w", 1e-3),
                                    collective(kReduce, "data", "grad.layers.1.w", 1e-3),
                                    collective(kReduce, "data", "grad.layers.2.w", 1e-3)})
                             << "+3.0 ms: all-reduce of the gradients of layers.0.w and 2 more over data";
    QTest::newRow("more bytes")
        << step({collective(kReduce, "data", "grad.layers.0.w", 1e-3, 1 << 20)})
        << step({collective(kReduce, "data", "grad.layers.0.w", 2e-3, 2 << 20)})
        << "+1.0 ms: all-reduce of the gradient of layers.0.w over data moves more (1.00 MiB -> 2.00 MiB a "
           "device)";
    QTest::newRow("a smaller group") << step({collective(kReduce, "data", "x", 3e-3, 1024, 8)})
                                     << step({collective(kReduce, "data", "x", 1e-3, 1024, 2)})
                                     << "-2.0 ms: all-reduce of x over data has groups of 2 devices instead of 8";
    QTest::newRow("a short message over more hops")
        << step({collective(kReduce, "data", "x", 2e-3, 640, 2)}) << step({collective(kReduce, "data", "x", 6e-3, 768, 4)})
        << "+4.0 ms: all-reduce of x over data has groups of 4 devices instead of 2";
    QTest::newRow("other links") << step({collective(kReduce, "data", "x", 3e-3)})
                                 << step({collective(kReduce, "data", "x", 5e-3)})
                                 << "+2.0 ms: all-reduce of x over data takes longer (3.00 ms -> 5.00 ms)";
    Simulation hidden = step({collective(kReduce, "data", "x", 1e-3)});
    hidden.collectives.front().seconds = 3e-3;
    QTest::newRow("hidden") << step({collective(kReduce, "data", "x", 3e-3)}) << hidden
                            << "-2.0 ms: more of the all-reduce of x over data is hidden behind computing";
    QTest::newRow("not hidden any more") << hidden << step({collective(kReduce, "data", "x", 3e-3)})
                                         << "+2.0 ms: less of the all-reduce of x over data is hidden behind computing";
    QTest::newRow("other axes") << step({collective(kReduce, "data", "x", 1e-3)})
                                << step({collective(kReduce, "data,model", "x", 2e-3)})
                                << "+1.0 ms: all-reduce of x over data and model instead of data";
    QTest::newRow("another op on the same value")
        << step({collective(kReduce, "data", "grad.layers.0.w", 4e-3)})
        << step({collective(OpKind::ReduceScatter, "data", "grad.layers.0.w", 2e-3)})
        << "-2.0 ms: the gradient of layers.0.w is no longer all-reduced over data (-4.0 ms), reduce-scatter of the gradient of "
           "layers.0.w over data (+2.0 ms)";
    QTest::newRow("against the whole")
        << step({collective(kGather, "data", "layers.1.w", 4e-3)}) << step({collective(kReduce, "model", "act.layers.1", 5e-3)})
        << "+1.0 ms: all-reduce of layers.1's output over model (+5.0 ms), layers.1.w is no longer "
           "gathered over data (-4.0 ms)";
    QTest::newRow("less efficient") << plain << withProducts(15.4e-3, 1e12)
                                    << "+0.4 ms: products run less efficiently (15.0 ms -> 15.4 ms)";
    QTest::newRow("less efficient on a faster chip")
        << plain << withProducts(15.4e-3, 1e12, 394e12) << "+0.4 ms: products run less efficiently (15.0 ms -> 15.4 ms)";
    QTest::newRow("more to multiply") << plain << withProducts(30e-3, 2e12)
                                      << "+15.0 ms: each device multiplies more (1.00 TFLOP -> 2.00 TFLOP)";
    QTest::newRow("another chip") << plain << withProducts(7.5e-3, 1e12, 394e12)
                                  << "-7.5 ms: products are faster here (197 TFLOP/s -> 394 TFLOP/s at best)";
    QTest::newRow("memory") << plain << withOther(7e-3, 8.0 * 1024 * 1024)
                            << "+2.0 ms: element-wise work touches more memory (4.00 MiB -> 8.00 MiB a device)";
    QTest::newRow("slower memory") << plain << withOther(7e-3, 4.0 * 1024 * 1024)
                                   << "+2.0 ms: element-wise work takes longer (5.00 ms -> 7.00 ms)";
    Simulation bubble = plain;
    bubble.bubbleSeconds = 1e-3;
    bubble.stepSeconds += 1e-3;
    QTest::newRow("pipeline") << plain << bubble << "+1.0 ms: waiting for other pipeline stages";
}

void TestStepChange::sentences()
{
    QFETCH(Simulation, before);
    QFETCH(Simulation, after);
    const StepChange change = explainStepChange(before, after);
    QTEST(QString::fromStdString(change.sentence), "sentence");
    QVERIFY(std::fabs(sumOf(change) - change.seconds()) < 1e-12);
    for (std::size_t i = 1; i < change.parts.size(); ++i)
        QVERIFY(std::fabs(change.parts[i].seconds()) <= std::fabs(change.parts[i - 1].seconds()));
}

void TestStepChange::partsAddUp_data()
{
    QTest::addColumn<QString>("example");
    for (const char* example :
        {"data_parallel", "fsdp", "fsdp_small_batch", "tensor_parallel", "three_d", "two_d", "wide_mlp", "zero1"})
        QTest::newRow(example) << example;
}

/// From every mesh of 8 devices to every other one: the parts are the whole, and there is a reason whenever the time changed.
void TestStepChange::partsAddUp()
{
    QFETCH(QString, example);
    Session session(valueOf(defaultCatalogue()));
    const auto simulations = onAllMeshes(session, example);
    QVERIFY(!simulations.empty());
    for (const auto& [from, before] : simulations) {
        for (const auto& [to, after] : simulations) {
            const StepChange change = explainStepChange(before, after);
            const QString where = QStringLiteral("%1 to %2: %3").arg(from, to, change.sentence.c_str());
            if (qEnvironmentVariableIsSet("MESHWRIGHT_PRINT"))
                qInfo().noquote() << where;
            QVERIFY2(std::fabs(sumOf(change) - change.seconds()) < 1e-9 * before.stepSeconds, qPrintable(where));
            QCOMPARE(from == to, change.parts.empty());
            QVERIFY2(change.sentence == "no change" || change.sentence.find(": ") != std::string::npos, qPrintable(where));
        }
    }
}

/// What the start page says while its slider moves from 8x1 to 1x8.
void TestStepChange::notebookSlider()
{
    Session session(valueOf(defaultCatalogue()));
    const auto simulations = onAllMeshes(session, "wide_mlp");
    QCOMPARE(simulations.size(), std::size_t{4}); // 1x8, 2x4, 4x2, 8x1
    const auto without = [](QString sentence) { return sentence.replace(QRegularExpression("[0-9.]+ "), "N "); };
    QStringList sentences;
    for (std::size_t i = simulations.size() - 1; i > 0; --i)
        sentences << without(
            QString::fromStdString(explainStepChange(simulations[i].second, simulations[i - 1].second).sentence));
    const QString more
        = "+N ms: all-reduce of the gradient of layers.0's output over model moves more (N MiB -> N %1 a device) (+N ms), "
          "all-reduce of layers.2's output over model moves more (N MiB -> N %1 a device) (+N ms)";
    QCOMPARE(sentences.value(0), QString("+N ms: all-reduce of layers.2's output over model"));
    QCOMPARE(sentences.value(1), more.arg("MiB"));
    QVERIFY2(sentences.value(2).contains("over model moves more (N MiB -> N GiB a device)"), qPrintable(sentences.value(2)));
}

void TestStepChange::words_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("words");
    QTest::newRow("parameter") << "layers.1.w"
                               << "layers.1.w";
    QTest::newRow("input") << "x"
                           << "x";
    QTest::newRow("output") << "act.layers.2"
                            << "layers.2's output";
    QTest::newRow("product") << "act.layers.2.product"
                             << "layers.2's output";
    QTest::newRow("activated") << "act.layers.2.activated"
                               << "layers.2's output";
    QTest::newRow("gradient") << "grad.layers.0.w"
                              << "the gradient of layers.0.w";
    QTest::newRow("gradient of an output") << "grad.act.layers.0.activated"
                                           << "the gradient of layers.0's output";
    QTest::newRow("updated") << "new.layers.0.w"
                             << "the updated layers.0.w";
    QTest::newRow("moment") << "new.opt.m.layers.0.w"
                            << "the updated momentum of layers.0.w";
    QTest::newRow("second moment") << "opt.v.layers.0.w"
                                   << "the second moment of layers.0.w";
    QTest::newRow("loss") << "loss.sum"
                          << "the loss";
    QTest::newRow("accuracy") << "accuracy.count"
                              << "the accuracy";
    QTest::newRow("no name") << "add(x, ..)"
                             << "add(x, ..)";
    QTest::newRow("only a prefix") << "grad."
                                   << "grad.";
}

void TestStepChange::words()
{
    QFETCH(QString, name);
    QTEST(QString::fromStdString(valueInWords(name.toStdString())), "words");
}

MESHWRIGHT_TEST(TestStepChange)

} // namespace tst_step_change

#include "tst_step_change.moc"
