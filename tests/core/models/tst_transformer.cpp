// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer.h"
#include "core/models/transformer_layers.h"
#include "core/program/transform.h"
#include "core/program/verify.h"
#include "core/runtime/evaluate.h"

#include "tests/test_class.h"
#include "tests/values.h"

#include <cmath>
#include <random>

namespace tst_transformer {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

/// Two layers that a test can afford.
TransformerConfig smallConfig()
{
    TransformerConfig c;
    c.name = "small";
    c.layers = 2;
    c.hidden = 8;
    c.heads = c.keyValueHeads = 2;
    c.headDim = 4;
    c.ffn = 12;
    c.vocabulary = 7;
    c.maxPositions = 6;
    return c;
}

/// States of four heads that two heads of keys write, over two and more chunks.
void recur(TransformerModel& m, MixerKind mixer)
{
    m.sequence = 12;
    m.config.mixer = mixer;
    m.config.stateHeads = 4;
    m.config.stateKeyHeads = 2;
    m.config.stateKeyDim = 3;
    m.config.stateValueDim = 5;
    m.config.convolution = 3;
}

struct Case {
    const char* name;
    void (*change)(TransformerModel&);
};

/// Every part that a model may have, in few models.
const std::vector<Case>& cases()
{
    static const std::vector<Case> all = {
        {"llama", [](TransformerModel& m) { m.config.gatedFfn = true; }},
        {"grouped queries", [](TransformerModel& m) { m.config.keyValueHeads = 1; }},
        {"gpt2",
            [](TransformerModel& m) {
                m.config.norm = NormKind::LayerNorm;
                m.config.position = PositionKind::Learned;
                m.config.activation = TransformerActivation::GeluTanh;
                m.config.attentionBias = m.config.outputBias = m.config.ffnBias = m.config.tiedEmbeddings = true;
            }},
        {"neox",
            [](TransformerModel& m) {
                m.config.norm = NormKind::LayerNorm;
                m.config.parallelBlock = true;
                m.config.rotaryFraction = 0.5;
                m.config.activation = TransformerActivation::Relu;
            }},
        {"gemma2",
            [](TransformerModel& m) {
                m.config.gatedFfn = m.config.postNorms = m.config.embeddingScale = m.config.tiedEmbeddings = true;
                m.config.attentionSoftcap = 5.0;
                m.config.logitSoftcap = 3.0;
                m.config.queryScale = 9.0;
                m.config.slidingWindow = 2;
                m.config.slidingWindowLayers = 1;
            }},
        {"qwen3, one-hot look-up",
            [](TransformerModel& m) {
                m.config.queryKeyNorm = true;
                m.lookup = TokenLookup::Product;
            }},
        {"deepseek",
            [](TransformerModel& m) {
                m.config.gatedFfn = true;
                m.config.queryRank = 6;
                m.config.keyValueRank = 5;
                m.config.latentRotaryDim = 2;
                m.config.valueHeadDim = 3;
            }},
        {"latents without positions",
            [](TransformerModel& m) {
                m.config.position = PositionKind::None;
                m.config.keyValueRank = 4;
            }},
        {"plain attention",
            [](TransformerModel& m) {
                m.attention = AttentionOp::Plain;
                m.config.keyValueHeads = 1;
            }},
        {"a loss in chunks",
            [](TransformerModel& m) {
                m.lossChunks = 5;
                m.config.logitSoftcap = 3.0;
            }},
        {"chunks of tied embeddings",
            [](TransformerModel& m) {
                m.lossChunks = 5;
                m.config.tiedEmbeddings = true;
            }},
        {"a loss in place", [](TransformerModel& m) { m.lossKernels = LossKernels::InPlace; }},
        {"a loss by separate kernels",
            [](TransformerModel& m) {
                m.lossKernels = LossKernels::Separate;
                m.config.logitSoftcap = 3.0;
            }},
        {"separate kernels in chunks",
            [](TransformerModel& m) {
                m.lossKernels = LossKernels::Separate;
                m.lossChunks = 5;
            }},
        {"last token", [](TransformerModel& m) { m.predict = Prediction::LastToken; }},
        {"experts",
            [](TransformerModel& m) {
                m.config.experts = 3;
                m.config.expertsPerToken = 2;
                m.config.expertFfn = 5;
                m.config.gatedFfn = true;
                m.config.sharedExperts = 1;
                m.config.denseLayers = 1;
            }},
        {"every expert",
            [](TransformerModel& m) {
                m.config.experts = 3;
                m.config.expertsPerToken = 1;
                m.config.expertFfn = 5;
                m.config.ffnBias = true;
                m.capacityFactor = 0.0;
            }},
        {"expert biases",
            [](TransformerModel& m) {
                m.config.experts = 2;
                m.config.expertsPerToken = 1;
                m.config.expertFfn = 5;
                m.config.ffnBias = true;
            }},
        {"experts beside a block, keys as values",
            [](TransformerModel& m) {
                m.config.experts = 2;
                m.config.expertsPerToken = 1;
                m.config.expertFfn = 5;
                m.config.ffnBesideExperts = m.config.keysAsValues = m.config.queryKeyNorm = true;
            }},
        {"experts of latents, a gate",
            [](TransformerModel& m) {
                m.config.experts = 2;
                m.config.expertsPerToken = 1;
                m.config.expertFfn = 5;
                m.config.expertHidden = 3;
                m.config.outputGate = true;
            }},
        {"delta rule", [](TransformerModel& m) { recur(m, MixerKind::DeltaRule); }},
        {"state space", [](TransformerModel& m) { recur(m, MixerKind::StateSpace); }},
        {"kinds",
            [](TransformerModel& m) {
                recur(m, MixerKind::Attention);
                TransformerConfig base = m.config;
                base.layers = 1;
                for (const MixerKind mixer :
                    {MixerKind::StateSpace, MixerKind::DeltaRule, MixerKind::None, MixerKind::Attention}) {
                    base.mixer = mixer;
                    base.ffn = mixer == MixerKind::StateSpace ? 0 : 12;
                    m.config.kinds.push_back(base);
                }
                m.config.kinds[3].headDim = 6;
                m.config.kinds[3].slidingWindow = 3;
                m.config.kinds[1].layers = 2;
                m.config.pattern = {0, 1, 1, 2, 3};
                m.config.layers = 5;
            }},
        {"kinds in turn",
            [](TransformerModel& m) {
                recur(m, MixerKind::Attention);
                TransformerConfig base = m.config;
                base.layers = 2;
                m.config.kinds = {base, base, base};
                m.config.kinds[0].mixer = MixerKind::DeltaRule;
                m.config.kinds[1].headDim = 6; // so its tables are others
                m.config.kinds[1].slidingWindow = 3;
                m.config.kinds[2].layers = 1;
                m.config.pattern = {0, 1, 0, 1, 2};
                m.config.layers = 5;
            }},
    };
    return all;
}

TransformerModel modelOf(const char* name)
{
    TransformerModel model;
    model.config = smallConfig();
    model.sequence = 5;
    for (const Case& each : cases()) {
        if (std::string_view(each.name) == name)
            each.change(model);
    }
    return model;
}

TrainingOptions optionsOf(Optimizer optimizer = SgdOptimizer{})
{
    TrainingOptions options;
    options.batch = 3;
    options.optimizer = std::move(optimizer);
    return options;
}

Program programOf(const TransformerModel& model, const TrainingOptions& options = optionsOf())
{
    return valueOf(buildTransformerTraining(model, options));
}

/// Parameters and tokens drawn from a seed; states are zero.
std::vector<HostArray> argumentsOf(const Function& f, std::int64_t vocabulary, unsigned seed = 1)
{
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal(0.0, 0.5);
    std::vector<HostArray> arguments;
    for (const ValueId id : f.arguments()) {
        const Value& value = f[id];
        std::vector<double> values(static_cast<std::size_t>(value.type.elements()), 0.0);
        for (double& number : values) {
            if (value.role == Role::Input)
                number = static_cast<double>(engine() % static_cast<unsigned>(vocabulary));
            else if (value.role == Role::Parameter)
                number = normal(engine) + (value.name.ends_with("scale") ? 1.0 : 0.0);
        }
        arguments.push_back(HostArray::of(value.type, values));
    }
    return arguments;
}

std::vector<HostArray> evaluated(const Function& f, const std::vector<HostArray>& arguments)
{
    return valueOf(evaluate(f, arguments, {.inDouble = true}));
}

/// The gradients by all parameters, of "loss.fwd" and "loss.bwd".
std::vector<HostArray> gradientsOf(const Program& program, const std::vector<HostArray>& arguments)
{
    std::vector<HostArray> inputs = evaluated(*program.find("loss.fwd"), arguments);
    inputs.erase(inputs.begin(), inputs.begin() + std::ssize(program.find("loss")->results()));
    inputs.push_back(HostArray::filled({DType::F32, {}}, 1.0));
    return evaluated(*program.find("loss.bwd"), inputs);
}

double lossOf(const Program& program, const std::vector<HostArray>& arguments)
{
    return evaluated(*program.find("loss"), arguments).front().at(0);
}

double difference(const HostArray& a, const HostArray& b)
{
    double most = 0.0;
    for (std::int64_t i = 0; i < a.type().elements(); ++i)
        most = std::max(most, std::abs(a.at(i) - b.at(i)));
    return most;
}

double difference(const std::vector<HostArray>& a, const std::vector<HostArray>& b)
{
    double most = a.size() == b.size() ? 0.0 : HUGE_VAL;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        most = std::max(most, difference(a[i], b[i]));
    return most;
}

std::int64_t residualBytes(const Program& program)
{
    const Function& forward = *program.find("loss.fwd");
    std::int64_t bytes = 0;
    for (std::size_t i = program.find("loss")->results().size(); i < forward.results().size(); ++i) {
        const ValueId result = forward.results()[i];
        if (forward[result].producer.valid())
            bytes += forward[result].type.bytes();
    }
    return bytes;
}

int countOf(const Function& f, OpKind kind)
{
    int count = 0;
    forEachOp(f, [&](OpId id) { count += f[id].kind == kind ? 1 : 0; });
    return count;
}

int dotsOf(const Function& f)
{
    return countOf(f, OpKind::DotGeneral);
}

} // namespace

class TestTransformer : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wellFormed_data();
    void wellFormed();
    void parameters_data();
    void parameters();
    void gradients_data();
    void gradients();
    void fusedEqualsPlain_data();
    void fusedEqualsPlain();
    void chunksEqualTheWhole();
    void lossKernelsEqualOne();
    void zigzagEqualsTheOrder_data();
    void zigzagEqualsTheOrder();
    void trainsAlike();
    void loops_data();
    void loops();
    void unrolledEqualsLoop_data();
    void unrolledEqualsLoop();
    void recurrencesAgain_data();
    void recurrencesAgain();
    void recomputation_data();
    void recomputation();
    void nothingIsMadeAgain_data();
    void nothingIsMadeAgain();
    void lossKeepsLogits_data();
    void lossKeepsLogits();
    void keepsWhatKernelsRead();
    void causal();
    void windows();
    void chunksOfStates();
    void groupedQueriesShareKeys();
    void expertsWithRoom();
    void rotaryIsRelative();
    void latentsAsPlainAttention();
    void mixedPrecision();
    void untrainedLoss();
    void learns();
    void constraints();
    void problems_data();
    void problems();
};

void TestTransformer::wellFormed_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("unrolled");
    for (const Case& each : cases()) {
        for (const bool unrolled : {false, true})
            QTest::newRow(qPrintable(QString("%1%2").arg(each.name, unrolled ? ", unrolled" : "")))
                << QString(each.name) << unrolled;
    }
}

void TestTransformer::wellFormed()
{
    QFETCH(QString, name);
    QFETCH(bool, unrolled);
    TransformerModel model = modelOf(qPrintable(name));
    model.unrolled = unrolled;
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
        model.recompute = recompute;
        Program program = programOf(model, optionsOf(AdamOptimizer{}));
        for (Function& function : program.functions) {
            const Problems found = verify(function, {});
            QVERIFY2(found.empty(), found.empty() ? "" : describe(found).c_str());
            QVERIFY2(eraseDeadOps(function) == 0 || function.name == "loss.fwd", function.name.c_str());
        }
    }
}

void TestTransformer::parameters_data()
{
    wellFormed_data();
}

// The arrays hold what the counts say; init draws each random one from a key of its own.
void TestTransformer::parameters()
{
    QFETCH(QString, name);
    QFETCH(bool, unrolled);
    TransformerModel model = modelOf(qPrintable(name));
    model.unrolled = unrolled;
    std::int64_t elements = 0;
    std::size_t random = 0;
    for (const ModelArray& array : transformerParameters(model)) {
        elements += elementCount(array.shape);
        random += array.kind == ModelArray::Kind::Weight ? 1 : 0;
        QCOMPARE(array.meaning.size(), array.shape.size());
    }
    QCOMPARE(elements, parameterCounts(model.config).total);
    const auto keys = initKeys(model, optionsOf(), keyOfSeed(0));
    QCOMPARE(keys.size(), random);
    const Program program = programOf(model);
    const Function& init = *program.find("init");
    QCOMPARE(init.arguments().size(), random);
    for (std::size_t i = 0; i < random; ++i)
        QCOMPARE(text(init[init.arguments()[i]].name), text(keys[i].first));
}

void TestTransformer::gradients_data()
{
    QTest::addColumn<QString>("name");
    for (const Case& each : cases())
        QTest::newRow(each.name) << QString(each.name);
}

// Along one direction for each parameter, against central differences.
void TestTransformer::gradients()
{
    QFETCH(QString, name);
    const TransformerModel model = modelOf(qPrintable(name));
    const Program program = programOf(model);
    const Function& loss = *program.find("loss");
    const std::vector<HostArray> arguments = argumentsOf(loss, model.config.vocabulary);
    const std::vector<HostArray> gradients = gradientsOf(program, arguments);
    std::mt19937 engine(5);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
        std::vector<double> direction(static_cast<std::size_t>(gradients[p].type().elements()));
        double along = 0.0;
        for (std::size_t i = 0; i < direction.size(); ++i) {
            direction[i] = engine() % 2 == 0 ? 1.0 : -1.0;
            along += direction[i] * gradients[p].at(static_cast<std::int64_t>(i));
        }
        constexpr double kStep = 1e-6;
        const auto moved = [&](double step) {
            std::vector<double> values = arguments[p].values();
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] += step * direction[i];
            std::vector<HostArray> changed = arguments;
            changed[p] = HostArray::of({DType::F64, arguments[p].type().shape}, values);
            return lossOf(program, changed);
        };
        const double expected = (moved(kStep) - moved(-kStep)) / (2.0 * kStep);
        const std::string& parameter = loss[loss.arguments()[p]].name;
        QVERIFY2(std::abs(along - expected) < 1e-6 * (1.0 + std::abs(expected)),
            qPrintable(QString("%1: %2, differences %3").arg(text(parameter)).arg(along).arg(expected)));
    }
}

void TestTransformer::fusedEqualsPlain_data()
{
    gradients_data();
}

// Loss, logits and gradients; no program but the plain one has scores of a whole row.
void TestTransformer::fusedEqualsPlain()
{
    QFETCH(QString, name);
    TransformerModel model = modelOf(qPrintable(name));
    model.attention = AttentionOp::Plain;
    const Program plain = programOf(model);
    model.attention = AttentionOp::Fused;
    const Program fused = programOf(model);
    const std::vector<HostArray> arguments = argumentsOf(*plain.find("loss"), model.config.vocabulary);
    const std::vector<HostArray> expected = evaluated(*plain.find("loss"), arguments);
    const std::vector<HostArray> found = evaluated(*fused.find("loss"), arguments);
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY(difference(expected[i], found[i]) < 1e-12);
    const std::vector<HostArray> gradients = gradientsOf(plain, arguments);
    const std::vector<HostArray> fusedGradients = gradientsOf(fused, arguments);
    for (std::size_t i = 0; i < gradients.size(); ++i)
        QVERIFY(difference(gradients[i], fusedGradients[i]) < 1e-11);
    QCOMPARE(countOf(*plain.find("step"), OpKind::Attention), 0);
    if (model.config.isRecurrent())
        return; // it has no attention
    QVERIFY(countOf(*fused.find("step"), OpKind::AttentionGrad) > 0);
    QVERIFY(residualBytes(fused) < residualBytes(plain));
}

void TestTransformer::zigzagEqualsTheOrder_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name : {"llama", "gpt2", "gemma2", "a loss in chunks", "last token", "deepseek"})
        QTest::newRow(name) << name;
}

// Loss, accuracy, the logits behind the last token and gradients, whatever order tokens are computed in.
void TestTransformer::zigzagEqualsTheOrder()
{
    QFETCH(QString, name);
    TransformerModel model = modelOf(qPrintable(name));
    model.sequence = 12;
    model.config.maxPositions = std::max<std::int64_t>(model.config.maxPositions, 13);
    if (model.lossChunks > 1)
        model.lossChunks = 4;
    const Program plain = programOf(model);
    model.zigzag = 3;
    const Program zigzag = programOf(model);
    const std::vector<HostArray> arguments = argumentsOf(*plain.find("loss"), model.config.vocabulary);
    QVERIFY(std::abs(lossOf(zigzag, arguments) - lossOf(plain, arguments)) < 1e-12);
    const std::vector<HostArray> expected = gradientsOf(plain, arguments);
    const std::vector<HostArray> found = gradientsOf(zigzag, arguments);
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY(difference(expected[i], found[i]) < 1e-11);
    const std::vector<HostArray> before = evaluated(*plain.find("evaluate"), arguments);
    const std::vector<HostArray> after = evaluated(*zigzag.find("evaluate"), arguments);
    for (std::size_t i = 0; i < before.size(); ++i)
        QVERIFY(difference(before[i], after[i]) < 1e-11);
}

// The same loss, accuracy and gradients, and no value is as large as the logits are.
void TestTransformer::chunksEqualTheWhole()
{
    for (const char* name : {"a loss in chunks", "chunks of tied embeddings"}) {
        TransformerModel model = modelOf(name);
        model.config.vocabulary = 100; // more than anything else is large
        const Program parts = programOf(model);
        model.lossChunks = 1;
        const Program whole = programOf(model);
        const std::vector<HostArray> arguments = argumentsOf(*whole.find("loss"), 100);
        QVERIFY(std::abs(lossOf(parts, arguments) - lossOf(whole, arguments)) < 1e-12);
        const std::vector<HostArray> expected = gradientsOf(whole, arguments);
        const std::vector<HostArray> found = gradientsOf(parts, arguments);
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY(difference(expected[i], found[i]) < 1e-12);
        const auto evaluation = [&](const Program& program) { return evaluated(*program.find("evaluate"), arguments); };
        for (std::size_t i = 0; i < 3; ++i) // loss, accuracy, logits behind the last token
            QVERIFY(difference(evaluation(parts)[i], evaluation(whole)[i]) < 1e-12);
        const auto largest = [](const Function& f) {
            std::int64_t most = 0;
            for (const Value& value : f.values) {
                const bool isOfTokens = value.role != Role::Parameter && value.type.shape.size() >= 3;
                most = std::max(most, isOfTokens ? value.type.elements() : 0);
            }
            return most;
        };
        QCOMPARE(largest(*whole.find("step")), std::int64_t{3 * 5 * 100});
        QVERIFY2(largest(*parts.find("step")) < 3 * 5 * 100, qPrintable(QString::number(largest(*parts.find("step")))));
    }
}

void TestTransformer::lossKernelsEqualOne()
{
    for (const char* name : {"a loss in place", "a loss by separate kernels", "separate kernels in chunks"}) {
        TransformerModel model = modelOf(name);
        const Program apart = programOf(model);
        model.lossKernels = LossKernels::Fused;
        const Program fused = programOf(model);
        const std::vector<HostArray> arguments = argumentsOf(*fused.find("loss"), model.config.vocabulary);
        QCOMPARE(lossOf(apart, arguments), lossOf(fused, arguments));
        const std::vector<HostArray> expected = gradientsOf(fused, arguments);
        const std::vector<HostArray> found = gradientsOf(apart, arguments);
        for (std::size_t i = 0; i < expected.size(); ++i)
            QCOMPARE(difference(expected[i], found[i]), 0.0);
    }
}

// A few steps in f32: losses of fused and plain attention, and of a loss in chunks, part by no more than rounding.
void TestTransformer::trainsAlike()
{
    const auto losses = [](AttentionOp attention, std::int64_t chunks) {
        TransformerModel model = modelOf("gemma2");
        model.attention = attention;
        model.lossChunks = chunks;
        const Program program = programOf(model, optionsOf(AdamOptimizer{0.01, 0.9, 0.999, 1e-8}));
        const Function& step = *program.find("step");
        std::vector<HostArray> arguments = argumentsOf(step, 7);
        std::vector<double> curve;
        for (int i = 0; i < 20; ++i) {
            const std::vector<HostArray> results = valueOf(evaluate(step, arguments));
            curve.push_back(results[results.size() - 2].at(0));
            std::copy(results.begin(), results.end() - 2, arguments.begin());
        }
        return curve;
    };
    const std::vector<double> plain = losses(AttentionOp::Plain, 1);
    QVERIFY(plain.back() < 0.8 * plain.front());
    for (const std::vector<double>& other : {losses(AttentionOp::Fused, 1), losses(AttentionOp::Fused, 5)}) {
        for (std::size_t i = 0; i < plain.size(); ++i)
            QVERIFY2(std::abs(other[i] - plain[i]) < 2e-4 * plain[i],
                qPrintable(QString("step %1: %2 and %3").arg(i).arg(other[i]).arg(plain[i])));
    }
}

void TestTransformer::loops_data()
{
    QTest::addColumn<QByteArray>("pattern"); // a letter a layer
    QTest::addColumn<QList<int>>("cuts");
    QTest::addColumn<QString>("loops"); // prefix x iterations, the layers of a body in brackets
    QTest::newRow("runs") << QByteArray("AABBB") << QList<int>{} << "layers.0-1x2 layers.2-4x3";
    QTest::newRow("one of each") << QByteArray("ABC") << QList<int>{} << "layers.0-0x1 layers.1-1x1 layers.2-2x1";
    QTest::newRow("turns") << QByteArray("AABAABAAB") << QList<int>{} << "[layers.0-8.0x3 layers.0-8.1x3 layers.0-8.2x3]";
    QTest::newRow("a part of a turn is left")
        << QByteArray("ABABA") << QList<int>{} << "[layers.0-3.0x2 layers.0-3.1x2] layers.4-4x1";
    QTest::newRow("one before turns") << QByteArray("CABAB") << QList<int>{} << "layers.0-0x1 [layers.1-4.0x2 layers.1-4.1x2]";
    QTest::newRow("two kinds of turns") << QByteArray("ABABACAC") << QList<int>{}
                                        << "[layers.0-3.0x2 layers.0-3.1x2] [layers.4-7.0x2 layers.4-7.1x2]";
    QTest::newRow("cut between turns") << QByteArray("ABABABAB") << QList<int>{3}
                                       << "[layers.0-3.0x2 layers.0-3.1x2] [layers.4-7.0x2 layers.4-7.1x2]";
    QTest::newRow("a turn is cut") << QByteArray("ABABABAB") << QList<int>{2}
                                   << "[layers.0-1.0x1 layers.0-1.1x1] layers.2-2x1 layers.3-3x1 [layers.4-7.0x2 layers.4-7.1x2]";
    QTest::newRow("cut often") << QByteArray("AABAAB") << QList<int>{0, 1, 4}
                               << "layers.0-0x1 layers.1-1x1 layers.2-2x1 layers.3-3x1 layers.4-4x1 layers.5-5x1";
}

// Each layer of the model is in one loop, after the layer before it, and its kind is the pattern's.
void TestTransformer::loops()
{
    QFETCH(QByteArray, pattern);
    QFETCH(QList<int>, cuts);
    QFETCH(QString, loops);
    TransformerModel model;
    model.config = smallConfig();
    model.config.layers = pattern.size();
    for (std::int64_t kind = 0; kind < 3; ++kind) {
        model.config.kinds.push_back(smallConfig());
        model.config.kinds.back().ffn = 10 + kind;
    }
    for (const char letter : pattern)
        model.config.pattern.push_back(letter - 'A');
    model.cuts.assign(cuts.begin(), cuts.end());
    QStringList found;
    std::int64_t next = 0;
    for (const LayerLoop& loop : layerLoops(model)) {
        QStringList body;
        for (const LayerRun& run : loop)
            body << QString("%1x%2").arg(text(run.prefix)).arg(run.count);
        found << (loop.size() > 1 ? "[" + body.join(' ') + "]" : body.front());
        for (std::int64_t i = 0; i < loop.front().count; ++i) {
            for (const LayerRun& run : loop) {
                QCOMPARE(run.at(i), next);
                QVERIFY(run.has(next));
                QCOMPARE(run.layer.ffn, std::int64_t{10 + pattern.at(next) - 'A'});
                ++next;
            }
        }
    }
    QCOMPARE(next, std::int64_t{pattern.size()});
    QCOMPARE(found.join(' '), loops);
}

void TestTransformer::unrolledEqualsLoop_data()
{
    gradients_data();
}

void TestTransformer::unrolledEqualsLoop()
{
    QFETCH(QString, name);
    TransformerModel model = modelOf(qPrintable(name));
    const Program looped = programOf(model);
    const std::vector<HostArray> stacked = argumentsOf(*looped.find("loss"), model.config.vocabulary);
    model.unrolled = true;
    const Program unrolled = programOf(model);
    const Function& loss = *unrolled.find("loss");
    const Function& loopedLoss = *looped.find("loss");
    std::vector<HostArray> single;
    for (const ValueId id : loss.arguments()) {
        // "layers.1.ffn.up.w" is slice 1 of "layers.ffn.up.w"
        std::string wanted = loss[id].name;
        std::int64_t index = -1;
        for (const LayerRun& run : layerRuns(model)) {
            for (std::int64_t i = 0; i < run.count && index < 0; ++i) {
                const std::string one = layerName(model, run, i) + ".";
                if (wanted.starts_with(one)) {
                    index = i;
                    wanted = run.prefix + "." + wanted.substr(one.size());
                }
            }
        }
        for (std::size_t i = 0; i < stacked.size(); ++i) {
            if (loopedLoss[loopedLoss.arguments()[i]].name != wanted)
                continue;
            const std::vector<double> all = stacked[i].values();
            const auto count = static_cast<std::ptrdiff_t>(loss[id].type.elements());
            const auto from = all.begin() + (index < 0 ? 0 : index * count);
            single.push_back(HostArray::of(loss[id].type, std::vector<double>(from, from + count)));
        }
    }
    QCOMPARE(single.size(), loss.arguments().size());
    QVERIFY(std::abs(lossOf(looped, stacked) - lossOf(unrolled, single)) < 1e-12);
}

void TestTransformer::recurrencesAgain_data()
{
    QTest::addColumn<MixerKind>("mixer");
    QTest::addColumn<Recompute>("recompute");
    QTest::addColumn<bool>("unrolled");
    for (const bool unrolled : {false, true}) {
        for (const auto& [name, mixer] :
            {std::pair("delta rule", MixerKind::DeltaRule), std::pair("state space", MixerKind::StateSpace)}) {
            for (const auto& [policy, recompute] :
                {std::pair("none", Recompute::None), std::pair("dots", Recompute::Dots), std::pair("full", Recompute::Full)})
                QTest::newRow(qPrintable(QString("%1, %2%3").arg(name, policy, unrolled ? ", unrolled" : "")))
                    << mixer << recompute << unrolled;
        }
    }
}

/// Whatever is kept of a layer, the loop through a recurrence's chunks runs again in the derivative: the states of chunks are not kept.
void TestTransformer::recurrencesAgain()
{
    QFETCH(MixerKind, mixer);
    QFETCH(Recompute, recompute);
    QFETCH(bool, unrolled);
    TransformerModel model = modelOf("llama");
    recur(model, mixer);
    model.unrolled = unrolled;
    const std::vector<HostArray> arguments = argumentsOf(*programOf(model).find("loss"), model.config.vocabulary);
    const std::vector<HostArray> expected = gradientsOf(programOf(model), arguments);
    model.recompute = recompute;
    const Program program = programOf(model);
    const std::vector<HostArray> gradients = gradientsOf(program, arguments);
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY(difference(expected[i], gradients[i]) < 1e-12);

    constexpr std::int64_t kChunks = 3;
    constexpr std::int64_t kBatch = 3;
    const std::int64_t states
        = kChunks * kBatch * model.config.stateHeads * model.config.stateKeyDim * model.config.stateValueDim;
    const Function& forward = *program.find("loss.fwd");
    std::int64_t kept = 0;
    for (const ValueId result : forward.results()) {
        const std::int64_t elements = forward[result].type.elements();
        QVERIFY2(elements != states && elements != model.config.layers * states, valueText(forward, result).c_str());
        if (forward[result].producer.valid() && forward[forward[result].producer].kind == OpKind::Repeat)
            kept += forward[result].type.bytes();
    }
    // Forward, again and back.
    const int loops = unrolled ? static_cast<int>(model.config.layers) : 1;
    QCOMPARE(countOf(*program.find("loss.bwd"), OpKind::Repeat), (unrolled ? 0 : 1) + 2 * loops);
    if (recompute == Recompute::Full && !unrolled)
        QCOMPARE(kept, (model.config.layers + 1) * kBatch * model.sequence * model.config.hidden * 4);
}

void TestTransformer::recomputation_data()
{
    QTest::addColumn<Recompute>("recompute");
    QTest::addColumn<bool>("unrolled");
    QTest::addColumn<AttentionOp>("attention");
    QTest::addColumn<bool>("constrained"); // what attention makes of the values
    constexpr AttentionOp kPlain = AttentionOp::Plain;
    for (const bool unrolled : {false, true}) {
        const char* form = unrolled ? ", unrolled" : "";
        QTest::newRow(qPrintable(QString("selective%1").arg(form))) << Recompute::Selective << unrolled << kPlain << false;
        QTest::newRow(qPrintable(QString("full%1").arg(form))) << Recompute::Full << unrolled << kPlain << false;
        QTest::newRow(qPrintable(QString("layer%1").arg(form))) << Recompute::Layer << unrolled << kPlain << false;
        QTest::newRow(qPrintable(QString("layer, fused%1").arg(form)))
            << Recompute::Layer << unrolled << AttentionOp::Fused << false;
        QTest::newRow(qPrintable(QString("dots%1").arg(form))) << Recompute::Dots << unrolled << kPlain << false;
        QTest::newRow(qPrintable(QString("dots without batch%1").arg(form)))
            << Recompute::DotsWithoutBatch << unrolled << kPlain << false;
        QTest::newRow(qPrintable(QString("full, fused%1").arg(form)))
            << Recompute::Full << unrolled << AttentionOp::Fused << false;
        QTest::newRow(qPrintable(QString("dots, fused%1").arg(form)))
            << Recompute::Dots << unrolled << AttentionOp::Fused << false;
        QTest::newRow(qPrintable(QString("all but dots and attention%1").arg(form)))
            << Recompute::DotsAndAttention << unrolled << AttentionOp::Fused << false;
        QTest::newRow(qPrintable(QString("all but what is named%1").arg(form)))
            << Recompute::Named << unrolled << AttentionOp::Fused << false;
        QTest::newRow(qPrintable(QString("all but what is named, behind a constraint%1").arg(form)))
            << Recompute::Named << unrolled << AttentionOp::Fused << true;
    }
}

// The same gradients from fewer residuals, for more products in the backward run.
void TestTransformer::recomputation()
{
    QFETCH(Recompute, recompute);
    QFETCH(bool, unrolled);
    QFETCH(AttentionOp, attention);
    QFETCH(bool, constrained);
    TransformerModel model = modelOf("llama");
    model.unrolled = unrolled;
    model.attention = attention;
    TrainingOptions options = optionsOf();
    for (const ModelArray& array : transformerActivations(model, options.batch)) {
        if (constrained && array.name.ends_with(".mixed"))
            options.constraints[array.name] = {TensorSharding::replicatedOf(array.shape.size()), "sharding." + array.name};
    }
    const Program all = programOf(model, options);
    model.recompute = recompute;
    if (recompute == Recompute::Named)
        model.kept = {"attention.mixed", "ffn.hidden"};
    const Program program = programOf(model, options);
    const std::vector<HostArray> arguments = argumentsOf(*all.find("loss"), model.config.vocabulary);
    QVERIFY(difference(gradientsOf(all, arguments), gradientsOf(program, arguments)) < 1e-12);
    QVERIFY(residualBytes(program) < residualBytes(all));
    const int dots = dotsOf(*program.find("loss.bwd"));
    const int without = dotsOf(*all.find("loss.bwd"));
    if (recompute == Recompute::Dots || recompute == Recompute::DotsAndAttention)
        QCOMPARE(dots, without);
    else
        QVERIFY(dots > without);
    const bool isWhole = recompute == Recompute::Full || recompute == Recompute::Layer;
    const bool isAgain = attention == AttentionOp::Fused && (recompute == Recompute::Dots || isWhole);
    QCOMPARE(countOf(*program.find("loss.bwd"), OpKind::Attention), !isAgain ? 0 : unrolled ? 2 : 1);
    if (recompute == Recompute::Named) { // what attention makes of the values, its sums, and the width of the other block
        std::int64_t kept = 3 * 5 * (8 + 2 + 12) * 4 * 2;
        model.kept = {};
        kept += residualBytes(programOf(model, options));
        QCOMPARE(residualBytes(program), kept);
    }
    if (!isWhole)
        return;
    if (recompute == Recompute::Layer) { // and the last product of each layer, which nobody reads
        model.recompute = Recompute::Full;
        QCOMPARE(dots, dotsOf(*programOf(model).find("loss.bwd")) + (unrolled ? 2 : 1));
    }
    // Of a layer only its input is left.
    const std::int64_t stream = 3 * 5 * 8 * 4;
    const Function& forward = *program.find("loss.fwd");
    std::int64_t kept = 0;
    for (const ValueId result : forward.results()) {
        if (forward[result].producer.valid() && forward[forward[result].producer].kind == OpKind::Repeat)
            kept += forward[result].type.bytes();
    }
    if (!unrolled)
        QCOMPARE(kept, 3 * stream); // two layers' inputs, and what leaves the last
}

void TestTransformer::nothingIsMadeAgain_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<std::int64_t>("more"); // numbers of a token and layer: 8 wide, 12 in the feed-forward block
    QTest::newRow("llama") << QString("llama")
                           << std::int64_t{2 * 8 + 2 * 12}; // what norms scale; the gate's sigmoid and product
    QTest::newRow("gpt2") << QString("gpt2") << std::int64_t{2 * (8 - 1) + 2 * 12}; // in place of a mean each; parts of the GELU
}

/// The same gradients from more residuals: of a norm its parts, of an activation what it multiplies.
void TestTransformer::nothingIsMadeAgain()
{
    QFETCH(QString, name);
    QFETCH(std::int64_t, more);
    TransformerModel model = modelOf(qPrintable(name));
    const Program fused = programOf(model);
    model.recompute = Recompute::Nothing;
    const Program program = programOf(model);
    const std::vector<HostArray> arguments = argumentsOf(*fused.find("loss"), model.config.vocabulary);
    QVERIFY(difference(gradientsOf(fused, arguments), gradientsOf(program, arguments)) < 1e-12);
    QVERIFY(program.find("loss.bwd")->ops.size() < fused.find("loss.bwd")->ops.size());
    QCOMPARE(residualBytes(program) - residualBytes(fused), 3 * 5 * 2 * 4 * more);
}

void TestTransformer::lossKeepsLogits_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("unrolled");
    QTest::addColumn<std::int64_t>("chunks");
    QTest::addColumn<int>("kept"); // values of the vocabulary's width
    QTest::newRow("llama") << QString("llama") << false << std::int64_t{1} << 1;
    QTest::newRow("tied") << QString("gpt2") << false << std::int64_t{1} << 1;
    QTest::newRow("capped") << QString("gemma2") << false << std::int64_t{1} << 1;
    QTest::newRow("unrolled") << QString("llama") << true << std::int64_t{1} << 1;
    QTest::newRow("in chunks") << QString("llama") << false << std::int64_t{5} << 0;
}

/// Neither exponentials nor a mask of labels, whatever layers keep: those are made again of the logits and the labels.
void TestTransformer::lossKeepsLogits()
{
    QFETCH(QString, name);
    QFETCH(bool, unrolled);
    QFETCH(std::int64_t, chunks);
    QFETCH(int, kept);
    TransformerModel model = modelOf(qPrintable(name));
    model.unrolled = unrolled;
    model.lossChunks = chunks;
    for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full, Recompute::Dots}) {
        model.recompute = recompute;
        const Program program = programOf(model);
        const Function& forward = *program.find("loss.fwd");
        int found = 0;
        for (std::size_t i = program.find("loss")->results().size(); i < forward.results().size(); ++i) {
            const TensorType& type = forward[forward.results()[i]].type;
            found += type.shape.size() > 2 && type.shape.back() == model.config.vocabulary ? 1 : 0;
        }
        QCOMPARE(found, kept);
    }
}

/// A layer of GPT keeps what Korthikanti et al. 2022 (arXiv:2205.05198, table 2) count, 34 s b h bytes without dropout's masks of 2 s b h: inputs of norms and
/// products and what attention makes, in 16 bits; here one sum for each query and head, and two for each row of a norm, in 32.
void TestTransformer::keepsWhatKernelsRead()
{
    TransformerModel model;
    TransformerConfig& config = model.config;
    config.layers = 2;
    config.hidden = 12;
    config.heads = config.keyValueHeads = 3;
    config.headDim = 4;
    config.ffn = 48;
    config.vocabulary = 10;
    config.maxPositions = 5;
    config.norm = NormKind::LayerNorm;
    config.position = PositionKind::Learned;
    config.activation = TransformerActivation::GeluTanh;
    config.attentionBias = config.outputBias = config.ffnBias = true;
    model.sequence = 5;
    model.unrolled = true;
    TrainingOptions options = optionsOf();
    options.activationType = options.matmulType = DType::BF16;
    const std::int64_t two = residualBytes(programOf(model, options));
    config.layers = 4;
    const std::int64_t four = residualBytes(programOf(model, options));
    const std::int64_t rows = options.batch * model.sequence;
    QCOMPARE(four - two, 2 * rows * (32 * 12 + 4 * 3 + 2 * 2 * 4));
}

/// "predictions" of "loss": the logits [batch, sequence, vocabulary].
HostArray logitsOf(const TransformerModel& model, const std::vector<HostArray>& arguments)
{
    return evaluated(*programOf(model).find("loss"), arguments)[1];
}

/// The largest change of the logits at each position when the token at `changed` is another.
std::vector<double> changesOf(const TransformerModel& model, std::int64_t changed)
{
    const Program program = programOf(model);
    const Function& loss = *program.find("loss");
    std::vector<HostArray> arguments = argumentsOf(loss, model.config.vocabulary);
    const HostArray before = logitsOf(model, arguments);
    std::vector<double> tokens = arguments[arguments.size() - 2].values();
    double& token = tokens[static_cast<std::size_t>(changed)]; // of the first row
    token = token == 0.0 ? 1.0 : 0.0;
    arguments[arguments.size() - 2] = HostArray::of({DType::S32, {3, model.sequence}}, tokens);
    const HostArray after = logitsOf(model, arguments);
    std::vector<double> changes;
    for (std::int64_t position = 0; position < model.sequence; ++position) {
        double most = 0.0;
        for (std::int64_t v = 0; v < model.config.vocabulary; ++v) {
            const std::int64_t at = position * model.config.vocabulary + v;
            most = std::max(most, std::abs(after.at(at) - before.at(at)));
        }
        changes.push_back(most);
    }
    return changes;
}

void TestTransformer::causal()
{
    for (const char* name : {"llama", "gpt2", "neox", "experts", "delta rule", "state space", "kinds"}) {
        const std::vector<double> changes = changesOf(modelOf(name), 2);
        QVERIFY2(changes[0] == 0.0 && changes[1] == 0.0, name);
        QVERIFY2(changes[2] > 1e-6 && changes[3] > 1e-9 && changes[4] > 1e-9, name);
    }
}

// A query that sees two keys in each of two layers is reached by a token two places before it, not by one three places before.
void TestTransformer::windows()
{
    TransformerModel model = modelOf("llama");
    model.config.slidingWindow = 2;
    const std::vector<double> changes = changesOf(model, 0);
    QVERIFY(changes[1] > 1e-9 && changes[2] > 1e-9);
    QVERIFY(changes[3] == 0.0 && changes[4] == 0.0);
    model.config.slidingWindowLayers = 1; // the other layer sees all
    QVERIFY(changesOf(model, 0)[4] > 1e-9);
}

// Chunks are only a way to write the sum: rows of 12 tokens are taken in chunks of 4, and of 13 token by token.
void TestTransformer::chunksOfStates()
{
    for (const char* name : {"delta rule", "state space"}) {
        TransformerModel model = modelOf(name);
        model.predict = Prediction::EveryToken;
        const HostArray inChunks = logitsOf(model, argumentsOf(*programOf(model).find("loss"), model.config.vocabulary));
        std::vector<HostArray> arguments = argumentsOf(*programOf(model).find("loss"), model.config.vocabulary);
        for (std::size_t i = arguments.size() - 2; i < arguments.size(); ++i) { // a token more in each row of x and y
            std::vector<double> rows = arguments[i].values();
            for (int row = 3; row > 0; --row)
                rows.insert(rows.begin() + row * 12, 0.0);
            arguments[i] = HostArray::of({DType::S32, {3, 13}}, rows);
        }
        model.sequence = 13;
        const HostArray oneByOne = logitsOf(model, arguments);
        double most = 0.0;
        for (std::int64_t row = 0; row < 3; ++row) {
            for (std::int64_t at = 0; at < 12 * 7; ++at)
                most = std::max(most, std::abs(inChunks.at(row * 12 * 7 + at) - oneByOne.at(row * 13 * 7 + at)));
        }
        QVERIFY2(most < 1e-12, qPrintable(QString("%1: %2").arg(name).arg(most)));
    }
}

// One key and value head for two query heads is the same as two equal ones.
void TestTransformer::groupedQueriesShareKeys()
{
    const TransformerModel grouped = modelOf("grouped queries");
    TransformerModel full = grouped;
    full.config.keyValueHeads = 2;
    const Program groupedProgram = programOf(grouped);
    const Program fullProgram = programOf(full);
    std::vector<HostArray> arguments = argumentsOf(*groupedProgram.find("loss"), grouped.config.vocabulary);
    const double expected = lossOf(groupedProgram, arguments);
    const Function& loss = *fullProgram.find("loss");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Value& value = loss[loss.arguments()[i]];
        if (value.type.shape == arguments[i].type().shape)
            continue;
        QCOMPARE(value.type.shape, (Shape{2, 8, 2, 4}));
        std::vector<double> doubled;
        const std::vector<double> once = arguments[i].values();
        for (std::size_t at = 0; at < once.size(); at += 4) {
            for (int copy = 0; copy < 2; ++copy)
                doubled.insert(doubled.end(), once.begin() + static_cast<std::ptrdiff_t>(at),
                    once.begin() + static_cast<std::ptrdiff_t>(at) + 4);
        }
        arguments[i] = HostArray::of(value.type, doubled);
    }
    QVERIFY(std::abs(lossOf(fullProgram, arguments) - expected) < 1e-12);
}

// With room for every token, sending tokens to experts equals computing all of them everywhere.
void TestTransformer::expertsWithRoom()
{
    for (const char* name : {"experts", "every expert", "expert biases"}) {
        TransformerModel model = modelOf(name);
        model.capacityFactor = 0.0;
        const Program everywhere = programOf(model);
        model.capacityFactor = 100.0;
        const Program sent = programOf(model);
        const std::vector<HostArray> arguments = argumentsOf(*sent.find("loss"), model.config.vocabulary);
        QVERIFY2(std::abs(lossOf(everywhere, arguments) - lossOf(sent, arguments)) < 1e-12, name);
    }
}

// Rotary positions see distances only: with one token in all places, every position that sees all-equal keys gives the same logits.
void TestTransformer::rotaryIsRelative()
{
    const TransformerModel model = modelOf("llama");
    std::vector<HostArray> arguments = argumentsOf(*programOf(model).find("loss"), model.config.vocabulary);
    arguments[arguments.size() - 2] = HostArray::filled({DType::S32, {3, 5}}, 4.0);
    const HostArray logits = logitsOf(model, arguments);
    for (std::int64_t i = 0; i < 7; ++i)
        QVERIFY(std::abs(logits.at(i) - logits.at(4 * 7 + i)) < 1e-12);
}

/// Latents as wide as the residual, made by the identity, are what plain attention reads: the normalised residual. Then keys and queries are those of
/// plain attention with the turned dims in front, where all heads' keys have the same.
void TestTransformer::latentsAsPlainAttention()
{
    constexpr std::int64_t kTurned = 2;
    TransformerModel latent = modelOf("llama");
    latent.config.normEpsilon = 0.0;
    latent.config.valueHeadDim = 3;
    TransformerModel plain = latent;
    latent.config.keyValueRank = latent.config.hidden;
    latent.config.latentRotaryDim = kTurned;
    plain.config.headDim += kTurned;
    plain.config.rotaryFraction = static_cast<double>(kTurned) / static_cast<double>(plain.config.headDim);

    const Program latentProgram = programOf(latent);
    const Function& latentLoss = *latentProgram.find("loss");
    std::vector<HostArray> latentArguments = argumentsOf(latentLoss, latent.config.vocabulary);
    const auto set = [](std::vector<HostArray>& arguments, const Function& f, const std::string& name, const auto& value) {
        const std::size_t at = static_cast<std::size_t>(
            std::find(f.arguments().begin(), f.arguments().end(), *f.findValue(name)) - f.arguments().begin());
        const Shape shape = arguments[at].type().shape;
        std::vector<double> values(static_cast<std::size_t>(arguments[at].type().elements()));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = value(static_cast<std::int64_t>(i), shape);
        arguments[at] = HostArray::of(arguments[at].type(), values);
    };
    const auto of = [&](const std::string& name) -> const HostArray& {
        const auto& ids = latentLoss.arguments();
        return latentArguments[static_cast<std::size_t>(
            std::find(ids.begin(), ids.end(), *latentLoss.findValue(name)) - ids.begin())];
    };
    const std::int64_t hidden = latent.config.hidden;
    const std::int64_t dims = latent.config.headDim;
    for (const char* name : {"layers.attention.norm.scale", "layers.attention.kv_norm.scale"})
        set(latentArguments, latentLoss, name, [](std::int64_t, const Shape&) { return 1.0; });
    const HostArray drawn = of("layers.attention.kv_down.w");
    set(latentArguments, latentLoss, "layers.attention.kv_down.w", [&](std::int64_t i, const Shape& shape) {
        const std::int64_t column = i % shape[2];
        const std::int64_t row = i / shape[2] % shape[1];
        return column < hidden ? (row == column ? 1.0 : 0.0) : drawn.at(i);
    });

    const Program plainProgram = programOf(plain);
    const Function& plainLoss = *plainProgram.find("loss");
    std::vector<HostArray> plainArguments = argumentsOf(plainLoss, plain.config.vocabulary);
    for (std::size_t i = 0; i < plainLoss.arguments().size(); ++i) {
        const std::string& name = plainLoss[plainLoss.arguments()[i]].name;
        if (name == "layers.attention.q.w") { // [layers, hidden, heads, dims]: the turned ones last, and first
            const HostArray q = of(name);
            set(plainArguments, plainLoss, name, [&](std::int64_t at, const Shape& shape) {
                const std::int64_t dim = at % shape[3];
                return q.at(at - dim + (dim + dims) % shape[3]);
            });
        } else if (name == "layers.attention.k.w") {
            const HostArray k = of(name);
            const HostArray down = of("layers.attention.kv_down.w");
            set(plainArguments, plainLoss, name, [&](std::int64_t at, const Shape& shape) {
                const std::int64_t dim = at % shape[3];
                const std::int64_t row = at / (shape[2] * shape[3]); // of layers and hidden
                return dim < kTurned ? down.at(row * (hidden + kTurned) + hidden + dim)
                                     : k.at(at / shape[3] * dims + dim - kTurned);
            });
        } else {
            plainArguments[i] = of(name);
        }
    }
    const auto expected = evaluated(plainLoss, plainArguments);
    const auto found = evaluated(latentLoss, latentArguments);
    QVERIFY2(difference(found[0], expected[0]) < 1e-12, qPrintable(QString::number(difference(found[0], expected[0]))));
    QVERIFY(difference(found[1], expected[1]) < 1e-11);
    QVERIFY(difference(found[1], evaluated(latentLoss, argumentsOf(latentLoss, latent.config.vocabulary))[1]) > 1e-3);
}

void TestTransformer::mixedPrecision()
{
    TrainingOptions options = optionsOf(AdamOptimizer{});
    options.activationType = options.matmulType = DType::BF16;
    TransformerModel model = modelOf("llama");
    const Program program = programOf(model, options);
    const Function& loss = *program.find("loss");
    QVERIFY(verify(*program.find("step"), {}).empty());
    const auto stream = loss.findValue("act.layers");
    QVERIFY(stream);
    QVERIFY(loss[*stream].type.dtype == DType::BF16);
    QVERIFY(loss[*loss.findValue("act.logits")].type.dtype == DType::BF16); // they are kept so; the loss is taken of wide ones
    QVERIFY(loss[*loss.findValue("loss.sum")].type.dtype == DType::F32);
    QVERIFY(loss[loss.arguments().front()].type.dtype == DType::F32);
    const std::vector<HostArray> arguments = argumentsOf(loss, model.config.vocabulary);
    const double exact = lossOf(programOf(model), arguments);
    const double rounded = valueOf(evaluate(loss, arguments)).front().at(0);
    QVERIFY(std::abs(rounded - exact) < 0.05 * exact && rounded != exact);
}

// With all weights zero every token is as likely as any other.
void TestTransformer::untrainedLoss()
{
    for (const char* name : {"llama", "last token", "experts"}) {
        const TransformerModel model = modelOf(name);
        const Program program = programOf(model);
        std::vector<HostArray> arguments = argumentsOf(*program.find("loss"), 7);
        for (HostArray& argument : arguments) {
            if (argument.type().dtype == DType::F32)
                argument = HostArray::filled(argument.type(), 0.0);
        }
        QVERIFY2(std::abs(lossOf(program, arguments) - std::log(7.0)) < 1e-12, name);
    }
}

// A few steps on one batch bring the loss down, also through the optimiser's states and in f32.
void TestTransformer::learns()
{
    const TransformerModel model = modelOf("llama");
    const Program program = programOf(model, optionsOf(AdamOptimizer{0.01, 0.9, 0.999, 1e-8}));
    const Function& step = *program.find("step");
    std::vector<HostArray> arguments = argumentsOf(step, 7);
    double first = 0.0;
    double last = 0.0;
    for (int i = 0; i < 30; ++i) {
        const std::vector<HostArray> results = valueOf(evaluate(step, arguments));
        last = results[results.size() - 2].at(0);
        first = i == 0 ? last : first;
        std::copy(results.begin(), results.end() - 2, arguments.begin());
    }
    QVERIFY2(last < 0.5 * first, qPrintable(QString("%1 to %2").arg(first).arg(last)));
}

void TestTransformer::constraints()
{
    const Mesh mesh = meshOf("data=2,model=2");
    TrainingOptions options = optionsOf();
    const TransformerModel model = modelOf("llama");
    for (const ModelArray& array : transformerActivations(model, options.batch))
        options.constraints[array.name] = {TensorSharding::replicatedOf(array.shape.size()), "sharding." + array.name};
    const auto program = buildTransformerTraining(model, options);
    QVERIFY2(program, qPrintable(described(program)));
    int found = 0;
    forEachOp(*program->find("loss"),
        [&](OpId id) { found += (*program->find("loss"))[id].kind == OpKind::ShardingConstraint ? 1 : 0; });
    QCOMPARE(found, static_cast<int>(options.constraints.size()));

    options.constraints = {{"act.layers.atention", {TensorSharding::replicatedOf(3), "sharding.a"}},
        {"act.logits", {TensorSharding::replicatedOf(2), "sharding.b"}}};
    const auto wrong = buildTransformerTraining(model, options);
    QCOMPARE(idsOf(wrong), QString("MW1312 MW1308"));
    QVERIFY(described(wrong).contains("did you mean \"act.layers.attention\"?"));
}

void TestTransformer::problems_data()
{
    QTest::addColumn<TransformerModel>("model");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* name, auto change, const char* expected) {
        TransformerModel model = modelOf("gpt2");
        change(model);
        QTest::newRow(name) << model << QString(expected);
    };
    row(
        "good", [](TransformerModel&) {}, "");
    row(
        "no sequence", [](TransformerModel& m) { m.sequence = 0; }, "MW1352: sequence must be 1 to 2^30, got: 0");
    row(
        "positions", [](TransformerModel& m) { m.sequence = 7; },
        "MW1355: a sequence of 7 tokens, but only 6 positions are learned");
    row(
        "capacity", [](TransformerModel& m) { m.capacityFactor = -1.0; }, "MW1352: capacityFactor must be at least 0");
    row(
        "chunks", [](TransformerModel& m) { m.lossChunks = 2; },
        "MW1352: lossChunks must be a number that divides the sequence of 5, got: 2");
    row(
        "keys of many tokens", [](TransformerModel& m) { m.config.compression = 4; },
        "MW1358: small has layers of compressed keys: they are counted, but their program is not built");
    row(
        "states without heads", [](TransformerModel& m) { m.config.mixer = MixerKind::StateSpace; },
        "MW1352: stateHeads must be 1 to 2^40, got: 0");
    row(
        "a pattern of other layers",
        [](TransformerModel& m) {
            m.config.kinds = {m.config};
            m.config.pattern = {0};
        },
        "MW1353: the pattern has 1 layers, and the model 2");
    row(
        "chunks of one token",
        [](TransformerModel& m) {
            m.lossChunks = 5;
            m.predict = Prediction::LastToken;
        },
        "MW1352: lossChunks must be 1 where only the last token is predicted, got: 5");
    row(
        "latents of shared keys",
        [](TransformerModel& m) {
            m.config.keyValueRank = 4;
            m.config.keyValueHeads = 1;
        },
        "MW1353: latent attention has a key and a value for each of its 2 heads, got: 1");
    row(
        "latents with norms of heads",
        [](TransformerModel& m) {
            m.config.keyValueRank = 4;
            m.config.queryKeyNorm = true;
        },
        "MW1353: latent attention normalises its latents");
    row(
        "latents turned by half a pair",
        [](TransformerModel& m) {
            m.config.position = PositionKind::Rotary;
            m.config.keyValueRank = 4;
            m.config.latentRotaryDim = 3;
        },
        "MW1353: rotary positions rotate pairs, but 3 dims of a head are rotated");
    row(
        "sizes", [](TransformerModel& m) { m.config.heads = 0; }, "MW1352: heads must be 1 to 2^40, got: 0");
}

void TestTransformer::problems()
{
    QFETCH(TransformerModel, model);
    QFETCH(QString, expected);
    const Problems found = sizeProblems(model);
    const QString words = found.empty() ? QString() : text(describe(found));
    QVERIFY2(expected.isEmpty() ? words.isEmpty() : words.contains(expected), qPrintable(words));
    for (const Problem& problem : found)
        QVERIFY2(problem.id != "MW1352" || !problem.fix.empty(), problem.message.c_str());
}

MESHWRIGHT_TEST(TestTransformer)

} // namespace tst_transformer

#include "tst_transformer.moc"
