// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/autodiff/differentiate.h"
#include "core/models/training.h"
#include "core/runtime/evaluate.h"
#include "core/train/dataset.h"

#include "tests/plain_evaluator.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_trained_programs {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

const std::filesystem::path kDigits = std::filesystem::path(MESHWRIGHT_SOURCE_DIR) / "resources/data/digits.csv.gz";

HostArray keyArray(const RandomKey& key)
{
    const std::array<double, 2> words = {static_cast<double>(key[0]), static_cast<double>(key[1])};
    return HostArray::of({DType::U32, {2}}, words);
}

std::vector<HostArray> keysOf(const MlpModel& model, const TrainingOptions& options, std::uint64_t seed)
{
    std::vector<HostArray> keys;
    for (const auto& [name, key] : initKeys(model, options, keyOfSeed(seed)))
        keys.push_back(keyArray(key));
    return keys;
}

HostArray arrayOf(Shape shape, const std::vector<float>& values)
{
    return HostArray::of({DType::F32, std::move(shape)}, std::vector<double>(values.begin(), values.end()));
}

} // namespace

/// The training programs as core/runtime runs them.
class TestTrainedPrograms : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void drawsAsJax();
    void agreesWithPlainMeaning_data();
    void agreesWithPlainMeaning();
    void loopsAgree();
    void leavesOutAsJax();
    void digitsAreLearnt();
};

// To the digits that JAX's documentation prints (see tst_initializers).
void TestTrainedPrograms::drawsAsJax()
{
    for (const auto& [seed, shape, partitionable, expected] :
        {std::tuple{42, Shape{}, true, -0.028304616F}, std::tuple{0, Shape{1}, false, -0.20584226F}}) {
        Function f;
        Builder b(f);
        b.setResults({normal(b, b.argument({DType::U32, {2}}), shape, partitionable)});
        const std::vector<HostArray> keys = {keyArray(keyOfSeed(static_cast<std::uint64_t>(seed)))};
        const auto drawn = evaluate(f, keys);
        QVERIFY2(drawn, qPrintable(described(drawn)));
        const auto value = static_cast<float>(drawn->front().at(0));
        QVERIFY2(std::abs(value - expected) <= 2e-7F * std::abs(expected),
            qPrintable(QString::number(static_cast<double>(value), 'g', 9)));
    }
}

void TestTrainedPrograms::agreesWithPlainMeaning_data()
{
    QTest::addColumn<LossKind>("loss");
    QTest::addColumn<Activation>("activation");
    QTest::addColumn<int>("optimizer");

    QTest::newRow("sum squared, relu, sgd") << LossKind::SumSquared << Activation::Relu << 0;
    QTest::newRow("cross entropy, relu, adam") << LossKind::CrossEntropy << Activation::Relu << 2;
    QTest::newRow("mean squared, tanh, momentum") << LossKind::MeanSquared << Activation::Tanh << 1;
    QTest::newRow("cross entropy, tanh, gradients") << LossKind::CrossEntropy << Activation::Tanh << 3;
}

void TestTrainedPrograms::agreesWithPlainMeaning()
{
    QFETCH(LossKind, loss);
    QFETCH(Activation, activation);
    QFETCH(int, optimizer);
    const std::vector<Optimizer> optimizers = {SgdOptimizer{0.1, 0.0}, SgdOptimizer{0.1, 0.9}, AdamOptimizer{}, NoOptimizer{}};
    MlpModel model;
    model.layers = {9, 17, 12, 5};
    model.loss = loss;
    model.activation = activation;
    TrainingOptions options;
    options.batch = 7;
    options.optimizer = optimizers[static_cast<std::size_t>(optimizer)];
    const Program program = valueOf(buildMlpTraining(model, options));
    const Function& step = *program.find("step");

    std::vector<Array> plain;
    std::vector<HostArray> arrays;
    for (const ValueId id : step.arguments()) {
        const TensorType& type = step[id].type;
        plain.push_back(
            ramp(type.shape, static_cast<double>(plain.size()), 0.5, step[id].role == Role::OptimizerState ? 0.6 : 0.0));
        for (double& x : plain.back().data)
            x = static_cast<double>(static_cast<float>(x)); // the same number in f32 and f64
        arrays.push_back(HostArray::of(type, plain.back().data));
    }
    const std::vector<Array> expected = evaluatePlainly(step, plain);
    for (const bool inDouble : {true, false}) {
        const auto results = evaluate(step, arrays, {inDouble});
        QVERIFY2(results, qPrintable(described(results)));
        for (std::size_t i = 0; i < expected.size(); ++i) {
            for (std::size_t j = 0; j < expected[i].data.size(); ++j) {
                const double got = (*results)[i].at(static_cast<std::int64_t>(j));
                const double tolerance = (inDouble ? 1e-12 : 2e-5) * std::max(1.0, std::abs(expected[i].data[j]));
                QVERIFY2(std::abs(got - expected[i].data[j]) <= tolerance,
                    qPrintable(QString("%1[%2]: %3, expected %4")
                                   .arg(text(step.resultNames[i]))
                                   .arg(j)
                                   .arg(got)
                                   .arg(expected[i].data[j])));
            }
        }
    }
}

// A loop's forward and backward programs mean the same to the runtime and to the plain evaluator.
void TestTrainedPrograms::loopsAgree()
{
    Function f;
    f.name = "loop";
    Builder b(f);
    const std::vector<Array> plain = {ramp({4, 3}), ramp({5, 3, 3}, 1.0), ramp({3}, 2.0)};
    std::vector<ValueId> arguments;
    std::vector<HostArray> arrays;
    for (const Array& array : plain) {
        arguments.push_back(b.argument({DType::F64, array.shape}));
        arrays.push_back(HostArray::of({DType::F64, array.shape}, array.data));
    }
    const OpId loop = b.beginRepeat({5, 1, 1, false}, arguments);
    const std::vector<ValueId> inner = f[b.block()].arguments;
    const ValueId product = b.matmul(inner[0], inner[1], DType::F64);
    b.setResults({b.unary(OpKind::Tanh, b.binary(OpKind::Add, product, b.broadcast(inner[2], {4, 3}, {1})))});
    b.setResults(b.endRepeat(loop));
    const auto derivative = differentiate(f, {0, 1, 2}, {0});
    QVERIFY(derivative);

    const auto plainForward = evaluatePlainly(derivative->forward, plain);
    const auto forward = evaluate(derivative->forward, arrays);
    QVERIFY2(forward, qPrintable(described(forward)));
    std::vector<Array> plainInputs(plainForward.begin() + 1, plainForward.end());
    std::vector<HostArray> inputs(forward->begin() + 1, forward->end());
    plainInputs.push_back(ramp({4, 3}, 0.3));
    inputs.push_back(HostArray::of({DType::F64, {4, 3}}, plainInputs.back().data));
    const auto plainGradients = evaluatePlainly(derivative->backward, plainInputs);
    const auto gradients = evaluate(derivative->backward, inputs);
    QVERIFY2(gradients, qPrintable(described(gradients)));
    for (std::size_t i = 0; i < plainGradients.size(); ++i) {
        for (std::size_t j = 0; j < plainGradients[i].data.size(); ++j)
            QVERIFY(std::abs((*gradients)[i].at(static_cast<std::int64_t>(j)) - plainGradients[i].data[j]) < 1e-12);
    }
}

// The mask of key(42) over 24 elements: uniform(key(42), (24,)) begins 0.4887 0.6798 0.6163 0.5610 0.4506 0.5656 and ends 0.0263 0.6392.
void TestTrainedPrograms::leavesOutAsJax()
{
    MlpModel model;
    model.layers = {24, 24, 24};
    model.bias = false;
    TrainingOptions options;
    options.dropout = 0.4;
    SgdOptimizer sgd;
    sgd.update.countsSteps = true;
    options.optimizer = sgd;
    const Program program = valueOf(buildMlpTraining(model, options));
    std::vector<float> identity(24 * 24, 0.0F);
    for (std::size_t i = 0; i < 24; ++i)
        identity[25 * i] = 1.0F;
    const std::vector<float> ones(24, 1.0F);
    const HostArray weight = arrayOf({24, 24}, identity);
    const std::vector<HostArray> arguments = {weight, weight, arrayOf({1, 24}, ones), arrayOf({1, 24}, ones),
        HostArray::of({DType::U32, {1, 2}}, std::array{0.0, 42.0})};
    const auto dropped = evaluate(*program.find("loss"), arguments);
    QVERIFY2(dropped, qPrintable(described(dropped)));
    for (const auto& [element, stays] :
        {std::pair{0, true}, {1, false}, {2, false}, {3, true}, {4, true}, {5, true}, {22, true}, {23, false}})
        QCOMPARE((*dropped)[1].at(element), stays ? static_cast<double>(1.0F / 0.6F) : 0.0);
    const auto evaluated = evaluate(*program.find("evaluate"), std::span(arguments).first(4));
    QVERIFY2(evaluated, qPrintable(described(evaluated)));
    for (std::int64_t i = 0; i < 24; ++i)
        QCOMPARE((*evaluated)[2].at(i), 1.0);
}

// Everything together: after 300 steps of Adam (twenty epochs) the training digits are known, and most of those by hands never seen.
void TestTrainedPrograms::digitsAreLearnt()
{
    const auto digits = readDigits(kDigits);
    QVERIFY(digits);
    MlpModel model;
    model.layers = {64, 32, 10};
    TrainingOptions options;
    options.batch = 100;
    options.optimizer = AdamOptimizer{0.01, 0.9, 0.999, 1e-8};
    const Program program = valueOf(buildMlpTraining(model, options));
    auto state = valueOf(evaluate(*program.find("init"), keysOf(model, options, 0)));
    auto plan = valueOf(BatchPlan::make(digits->trainingRows, options.batch, 0));
    const std::size_t states = state.size();
    for (std::int64_t i = 0; i < 300; ++i) {
        const auto rows = plan.rowsOf(i);
        state.resize(states);
        state.push_back(arrayOf({100, 64}, inputsOf(*digits, rows)));
        state.push_back(arrayOf({100, 10}, targetsOf(*digits, rows)));
        state = valueOf(evaluate(*program.find("step"), state));
    }
    std::vector<HostArray> arguments(state.begin(), state.begin() + 4);
    std::vector<std::int64_t> heldOut;
    for (std::int64_t row = digits->trainingRows; row < digits->trainingRows + 100; ++row)
        heldOut.push_back(row);
    arguments.push_back(arrayOf({100, 64}, inputsOf(*digits, heldOut)));
    arguments.push_back(arrayOf({100, 10}, targetsOf(*digits, heldOut)));
    const auto evaluated = valueOf(evaluate(*program.find("evaluate"), arguments));
    QVERIFY2(evaluated[1].at(0) >= 0.93, qPrintable(QString::number(evaluated[1].at(0))));
    QVERIFY(state[states].at(0) < 0.2); // the last batch's loss; it began at 2.3
    QVERIFY(state[states + 1].at(0) >= 0.95); // its accuracy
}

MESHWRIGHT_TEST(TestTrainedPrograms)

} // namespace tst_trained_programs

#include "tst_trained_programs.moc"
