// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/models/training_program.h"
#include "core/program/transform.h"
#include "core/program/verify.h"

#include "tests/gradient_check.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_training {

using namespace meshwright;
using namespace meshwright::tests;

namespace {

Program programOf(const MlpModel& model, const TrainingOptions& options)
{
    return valueOf(buildMlpTraining(model, options));
}

std::vector<std::string> parameterNames(const MlpModel& model)
{
    std::vector<std::string> names;
    for (const ModelArray& array : mlpParameters(model))
        names.push_back(array.name);
    return names;
}

TrainingOptions optionsOf(Optimizer optimizer, std::int64_t batch = 2)
{
    TrainingOptions options;
    options.batch = batch;
    options.optimizer = std::move(optimizer);
    return options;
}

/// Parameters, states and a batch that fit a function: ramps, with one-hot labels in y.
std::vector<Array> argumentsOf(const Function& f)
{
    std::vector<Array> arguments;
    for (const ValueId id : f.arguments()) {
        const Value& value = f[id];
        arguments.push_back(ramp(value.type.shape, static_cast<double>(arguments.size()), 0.7));
        if (value.name == "y") {
            std::fill(arguments.back().data.begin(), arguments.back().data.end(), 0.0);
            const std::int64_t classes = value.type.shape[1];
            for (std::int64_t row = 0; row < value.type.shape[0]; ++row)
                arguments.back().data[static_cast<std::size_t>(row * classes + (row + 1) % classes)] = 1.0;
        }
        if (value.role == Role::OptimizerState)
            std::fill(arguments.back().data.begin(), arguments.back().data.end(), 0.0);
    }
    return arguments;
}

QStringList namesOf(const Function& f, const std::vector<ValueId>& values)
{
    QStringList names;
    for (const ValueId value : values)
        names << text(f[value].name);
    return names;
}

QString joined(const std::vector<std::string>& names)
{
    QStringList list;
    for (const std::string& name : names)
        list << text(name);
    return list.join(' ');
}

std::map<Phase, int> opsByPhase(const Function& f)
{
    std::map<Phase, int> counts;
    forEachOp(f, [&](OpId id) { ++counts[f[id].phase]; });
    return counts;
}

int countOf(const Function& f, OpKind kind)
{
    int count = 0;
    forEachOp(f, [&](OpId id) { count += f[id].kind == kind ? 1 : 0; });
    return count;
}

/// The gradients of a program's loss at these parameters, by "loss.fwd" and "loss.bwd".
std::vector<Array> lossGradients(const Program& program, const std::vector<Array>& arguments)
{
    return gradientsOf({*program.find("loss.fwd"), *program.find("loss.bwd")}, arguments, {Array{{}, {1.0}}});
}

} // namespace

class TestTraining : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void functions_data();
    void functions();
    void lossNames();
    void stepNames();
    void adamNames();
    void opCounts();
    void donations();
    void groups();
    void leavingGroups();
    void initProgram();
    void keys();
    void gradients_data();
    void gradients();
    void sumSquaredByHand();
    void meanSquared();
    void crossEntropyByHand();
    void crossEntropyIsStable();
    void accuracy();
    void stepIsSgd();
    void stepWithMomentum();
    void stepIsAdam();
    void stepIsAdamW();
    void decayOfSgd();
    void decayFollowsTheSchedule_data();
    void decayFollowsTheSchedule();
    void schedules_data();
    void schedules();
    void clipping_data();
    void clipping();
    void stepWithoutOptimizer();
    void training();
    void constraints();
    void constraintProblems();
    void evaluateEqualsStep();
};

void TestTraining::functions_data()
{
    QTest::addColumn<DType>("type");
    QTest::addColumn<bool>("bias");
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<int>("layers");

    for (const DType type : {DType::F32, DType::BF16, DType::F64}) {
        for (const bool bias : {false, true}) {
            for (int optimizer = 0; optimizer < 4; ++optimizer)
                QTest::newRow(qPrintable(QString("%1 bias %2 optimizer %3").arg(dtypeName(type)).arg(bias).arg(optimizer)))
                    << type << bias << optimizer << 1 + optimizer % 3;
        }
    }
}

/// Everything that is built is well formed, has no dead ops, and lies in the phases that it should.
void TestTraining::functions()
{
    QFETCH(DType, type);
    QFETCH(bool, bias);
    QFETCH(int, optimizer);
    QFETCH(int, layers);
    const std::vector<Optimizer> optimizers = {SgdOptimizer{}, SgdOptimizer{0.1, 0.9}, AdamOptimizer{}, NoOptimizer{}};
    MlpModel model;
    model.layers = {5, 4, 3, 6};
    model.layers.resize(static_cast<std::size_t>(layers) + 1);
    model.bias = bias;
    TrainingOptions options = optionsOf(optimizers[static_cast<std::size_t>(optimizer)]);
    options.parameterType = type;
    const Program program = programOf(model, options);
    QVERIFY2(verify(program).empty(), qPrintable(text(describe(verify(program)))));
    QStringList names;
    for (const Function& f : program.functions) {
        names << text(f.name);
        Function pruned = f;
        QVERIFY2(eraseDeadOps(pruned) == 0, f.name.c_str());
        QCOMPARE(f.resultNames.size(), f.results().size());
    }
    QCOMPARE(names.join(' '), QString("init loss loss.fwd loss.bwd step evaluate"));
    const auto initPhases = opsByPhase(*program.find("init"));
    QVERIFY(initPhases.size() == 1 && initPhases.contains(Phase::Init));
    const auto phases = opsByPhase(*program.find("step"));
    QVERIFY(phases.contains(Phase::Forward) && phases.contains(Phase::Backward) && phases.contains(Phase::Metrics));
    QCOMPARE(phases.contains(Phase::Update), optimizer != 3);
    // The first layer's input gets no gradient: two products for each layer and one for the first.
    QCOMPARE(countOf(*program.find("step"), OpKind::DotGeneral), 3 * layers - 1);
    QCOMPARE(countOf(*program.find("step"), OpKind::Transpose), 0);
}

void TestTraining::lossNames()
{
    MlpModel model;
    model.layers = {784, 32, 10};
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 8));
    const Function& loss = *program.find("loss");
    QCOMPARE(namesOf(loss, loss.arguments()).join(' '), QString("layers.0.w layers.0.b layers.1.w layers.1.b x y"));
    QCOMPARE(joined(loss.resultNames), QString("loss predictions"));
    QCOMPARE(joined(parameterNames(model)), QString("layers.0.w layers.0.b layers.1.w layers.1.b"));
    for (const auto& [name, type] : {std::pair{"act.layers.0", "f32[8,32]"}, std::pair{"act.layers.0.activated", "f32[8,32]"},
             std::pair{"act.layers.1", "f32[8,10]"}, std::pair{"loss", "f32[]"}, std::pair{"layers.0.w", "f32[784,32]"},
             std::pair{"layers.1.b", "f32[10]"}, std::pair{"x", "f32[8,784]"}, std::pair{"y", "f32[8,10]"}}) {
        const auto value = loss.findValue(name);
        QVERIFY2(value.has_value(), name);
        QCOMPARE(text(typeText(loss[*value].type)), QString(type));
    }
    QVERIFY(!loss.findValue("act.layers.1.activated"));
    QVERIFY(loss[*loss.findValue("x")].role == Role::Input && loss[*loss.findValue("layers.0.w")].role == Role::Parameter
        && loss[*loss.findValue("loss")].role == Role::Metric);
}

void TestTraining::stepNames()
{
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(SgdOptimizer{0.1, 0.5}));
    const Function& step = *program.find("step");
    QCOMPARE(namesOf(step, step.arguments()).join(' '), QString("layers.0.w layers.0.b opt.m.layers.0.w opt.m.layers.0.b x y"));
    QCOMPARE(joined(step.resultNames),
        QString("new.layers.0.w new.layers.0.b new.opt.m.layers.0.w new.opt.m.layers.0.b loss accuracy"));
    QCOMPARE(namesOf(step, step.results()).join(' '), joined(step.resultNames));
    for (const auto& [name, role] : {std::pair{"grad.layers.0.w", Role::Gradient}, std::pair{"new.layers.0.w", Role::Parameter},
             std::pair{"new.opt.m.layers.0.b", Role::OptimizerState}, std::pair{"act.layers.0", Role::Activation},
             std::pair{"accuracy", Role::Metric}}) {
        QVERIFY2(step.findValue(name).has_value(), name);
        QVERIFY2(step[*step.findValue(name)].role == role, name);
    }
}

void TestTraining::adamNames()
{
    MlpModel model;
    model.layers = {4, 3};
    QCOMPARE(joined(optimizerStateNames(parameterNames(model), AdamOptimizer{})),
        QString("opt.m.layers.0.w opt.m.layers.0.b opt.v.layers.0.w opt.v.layers.0.b opt.step"));
    QCOMPARE(joined(optimizerStateNames(parameterNames(model), SgdOptimizer{})), QString());
    QCOMPARE(joined(optimizerStateNames(parameterNames(model), NoOptimizer{})), QString());
    const Program program = programOf(model, optionsOf(AdamOptimizer{}));
    const Function& init = *program.find("init");
    QCOMPARE(joined(init.resultNames),
        QString("layers.0.w layers.0.b opt.m.layers.0.w opt.m.layers.0.b opt.v.layers.0.w opt.v.layers.0.b opt.step"));
    const Function& step = *program.find("step");
    QCOMPARE(text(typeText(step[*step.findValue("opt.step")].type)), QString("f32[]"));
    for (std::size_t i = 0; i < init.results().size(); ++i)
        QVERIFY(init[init.results()[i]].type == step[step.arguments()[i]].type);
}

// The step stays lean: what each phase of the seed's MLP (four layers, sum of squares, SGD) takes.
void TestTraining::opCounts()
{
    MlpModel model;
    model.layers = {784, 8192, 8192, 8192, 10};
    model.loss = LossKind::SumSquared;
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 8192));
    const auto phases = opsByPhase(*program.find("step"));
    // 4 x (product, broadcast, add), 3 x (zero, compare, select), and subtract, square, sum, divisor, divide.
    QCOMPARE(phases.at(Phase::Forward), 4 * 3 + 3 * 3 + 5);
    // 7 products, 4 bias sums, 3 x (zero, select), and seed, divisor, divide, spread, multiply, add.
    QCOMPARE(phases.at(Phase::Backward), 7 + 4 + 3 * 2 + 6);
    // 8 x (rate, multiply, subtract)
    QCOMPARE(phases.at(Phase::Update), 8 * 3);
    // 3 maxima, spread, compare, lowest, select, compare; convert, sum, divisor, divide
    QCOMPARE(phases.at(Phase::Metrics), 12);
}

void TestTraining::donations()
{
    MlpModel model;
    model.layers = {4, 5, 3};
    const Program program = programOf(model, optionsOf(AdamOptimizer{}));
    const Function& step = *program.find("step");
    QCOMPARE(step.donations.size(), std::size_t{13}); // 4 parameters, 8 moments, the count
    for (const Donation& donation : step.donations) {
        const Value& argument = step[step.arguments()[donation.argument]];
        const Value& result = step[step.results()[donation.result]];
        QCOMPARE(text(result.name), "new." + text(argument.name));
        QVERIFY(result.type == argument.type && result.role == argument.role);
    }
    QVERIFY(programOf(model, optionsOf(NoOptimizer{})).find("step")->donations.empty());
}

void TestTraining::groups()
{
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(AdamOptimizer{}));
    const Function& step = *program.find("step");
    QCOMPARE(step.shardingGroups.size(), std::size_t{2});
    QStringList names = namesOf(step, step.shardingGroups[0]);
    names.sort();
    QCOMPARE(names.join(' '),
        QString("grad.layers.0.w layers.0.w new.layers.0.w new.opt.m.layers.0.w new.opt.v.layers.0.w opt.m.layers.0.w "
                "opt.v.layers.0.w"));
}

void TestTraining::leavingGroups()
{
    MlpModel model;
    model.layers = {4, 3};
    Program program = programOf(model, optionsOf(SgdOptimizer{0.1, 0.9}));
    Function& step = *program.find("step");
    const auto groupOf = [&](const char* name) {
        for (const auto& group : step.shardingGroups) {
            if (std::find(group.begin(), group.end(), *step.findValue(name)) != group.end()) {
                QStringList names = namesOf(step, group);
                names.sort();
                return names.join(' ');
            }
        }
        return QString();
    };
    const auto leave = [&](const char* name) { leaveShardingGroups(step, std::vector{*step.findValue(name)}); };
    leave("opt.m.layers.0.w");
    QCOMPARE(groupOf("opt.m.layers.0.w"), QString("new.opt.m.layers.0.w opt.m.layers.0.w"));
    QCOMPARE(groupOf("layers.0.w"), QString("grad.layers.0.w layers.0.w new.layers.0.w"));
    leave("grad.layers.0.w");
    QCOMPARE(groupOf("layers.0.w"), QString("layers.0.w new.layers.0.w"));
    QCOMPARE(groupOf("grad.layers.0.w"), QString());
    leave("new.layers.0.w");
    QCOMPARE(groupOf("layers.0.w"), QString());
    const std::size_t before = step.shardingGroups.size();
    leave("act.layers.0"); // in none
    QCOMPARE(step.shardingGroups.size(), before);
}

void TestTraining::initProgram()
{
    MlpModel model;
    model.layers = {100, 80, 10};
    TrainingOptions options = optionsOf(AdamOptimizer{});
    options.weightInit = Initializer::NormalOverSqrtFanIn;
    options.biasInit = Initializer::Normal;
    const Program program = programOf(model, options);
    const Function& init = *program.find("init");
    QCOMPARE(namesOf(init, init.arguments()).join(' '), QString("key.layers.0.w key.layers.0.b key.layers.1.w key.layers.1.b"));
    std::vector<Array> keys;
    for (const auto& [name, key] : initKeys(model, options, keyOfSeed(0)))
        keys.push_back({{2}, {static_cast<double>(key[0]), static_cast<double>(key[1])}});
    QCOMPARE(keys.size(), std::size_t{4});
    const std::vector<Array> results = evaluatePlainly(init, keys);
    QCOMPARE(results.size(), init.resultNames.size());
    double squares = 0.0;
    for (const double w : results[0].data)
        squares += w * w;
    QVERIFY(std::abs(squares / 80.0 - 1.0) < 0.06); // 8000 draws of variance 1/100
    QVERIFY(results[0].data[0] != results[2].data[0]);
    for (std::size_t i = 4; i < results.size(); ++i)
        QVERIFY(std::all_of(results[i].data.begin(), results[i].data.end(), [](double x) { return x == 0.0; }));

    options.biasInit = Initializer::Zeros;
    const Program zeroBias = programOf(model, options);
    QCOMPARE(
        namesOf(*zeroBias.find("init"), zeroBias.find("init")->arguments()).join(' '), QString("key.layers.0.w key.layers.1.w"));
    QCOMPARE(initKeys(model, options, keyOfSeed(0)).size(), std::size_t{2});
}

// `_, *keys = split(key, 3)`; `k1, k2 = split(keys[i])`.
void TestTraining::keys()
{
    MlpModel model;
    model.layers = {4, 5, 3};
    TrainingOptions options;
    options.biasInit = Initializer::Normal;
    for (const bool partitionable : {false, true}) {
        options.partitionableRandom = partitionable;
        const auto drawn = initKeys(model, options, keyOfSeed(5));
        const auto split = splitKey(keyOfSeed(5), 3, partitionable);
        QCOMPARE(drawn.size(), std::size_t{4});
        QCOMPARE(text(drawn[3].first), QString("key.layers.1.b"));
        QCOMPARE(drawn[3].second, splitKey(split[2], 2, partitionable)[1]);
        QCOMPARE(drawn[0].second, splitKey(split[1], 2, partitionable)[0]);
    }
}

void TestTraining::gradients_data()
{
    QTest::addColumn<LossKind>("loss");
    QTest::addColumn<Activation>("activation");
    QTest::addColumn<bool>("bias");

    for (const auto& [name, loss] : {std::pair{"sum squared", LossKind::SumSquared},
             std::pair{"mean squared", LossKind::MeanSquared}, std::pair{"cross entropy", LossKind::CrossEntropy}}) {
        for (const Activation activation : {Activation::Relu, Activation::Tanh})
            QTest::newRow(qPrintable(QString("%1, %2").arg(name, activation == Activation::Relu ? "relu" : "tanh")))
                << loss << activation << (activation == Activation::Relu);
    }
}

void TestTraining::gradients()
{
    QFETCH(LossKind, loss);
    QFETCH(Activation, activation);
    QFETCH(bool, bias);
    MlpModel model;
    model.layers = {5, 7, 6, 4};
    model.loss = loss;
    model.activation = activation;
    model.bias = bias;
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 3));
    const Function& function = *program.find("loss");
    std::vector<std::size_t> wrt(mlpParameters(model).size() + 1); // and x
    std::iota(wrt.begin(), wrt.end(), std::size_t{0});
    const QString fault = gradientFault(function, argumentsOf(function), wrt, {0, 1});
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

// One layer: predictions [1 2] w + b = [1*1+2*3+1, 1*2+2*4-1] = [8, 9] and [0 1] w + b = [4, 3]; y = [7 7], [4 1].
// Squares: 1 + 4 and 0 + 4; the mean over the batch of the sums is 4.5. Gradient of b: 2/2 * [1 + 0, 2 + 2] = [1, 4].
void TestTraining::sumSquaredByHand()
{
    MlpModel model;
    model.layers = {2, 2};
    model.loss = LossKind::SumSquared;
    const Program program = programOf(model, optionsOf(SgdOptimizer{0.5, 0.0}));
    const std::vector<Array> arguments = {{{2, 2}, {1, 2, 3, 4}}, {{2}, {1, -1}}, {{2, 2}, {1, 2, 0, 1}}, {{2, 2}, {7, 7, 4, 1}}};
    const auto results = evaluatePlainly(*program.find("loss"), arguments);
    QCOMPARE(results[0].scalar(), 4.5);
    QCOMPARE(results[1].data, (std::vector<double>{8, 9, 4, 3}));
    const auto gradients = lossGradients(program, arguments);
    QCOMPARE(gradients[0].data, (std::vector<double>{1, 2, 2, 6}));
    QCOMPARE(gradients[1].data, (std::vector<double>{1, 4}));
    const auto step = evaluatePlainly(*program.find("step"), arguments);
    QCOMPARE(step[0].data, (std::vector<double>{0.5, 1, 2, 1}));
    QCOMPARE(step[1].data, (std::vector<double>{0.5, -3}));
    QCOMPARE(step[2].scalar(), 4.5);
}

void TestTraining::meanSquared()
{
    MlpModel model;
    model.layers = {2, 2};
    model.loss = LossKind::MeanSquared;
    const std::vector<Array> arguments = {{{2, 2}, {1, 2, 3, 4}}, {{2}, {1, -1}}, {{2, 2}, {1, 2, 0, 1}}, {{2, 2}, {7, 7, 4, 1}}};
    QCOMPARE(evaluatePlainly(*programOf(model, optionsOf(SgdOptimizer{})).find("loss"), arguments)[0].scalar(), 2.25);
}

// One input of 1 and no bias: the weights are the logits. -log softmax([0, log 3])[0] = log 4, softmax - y = [1/4 - 1, 3/4].
void TestTraining::crossEntropyByHand()
{
    MlpModel model;
    model.layers = {1, 2};
    model.bias = false;
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 1));
    const std::vector<Array> arguments = {{{1, 2}, {0.0, std::log(3.0)}}, {{1, 1}, {1.0}}, {{1, 2}, {1.0, 0.0}}};
    QVERIFY(std::abs(evaluatePlainly(*program.find("loss"), arguments)[0].scalar() - std::log(4.0)) < 1e-14);
    const auto gradients = lossGradients(program, arguments);
    QVERIFY(std::abs(gradients[0].data[0] + 0.75) < 1e-14 && std::abs(gradients[0].data[1] - 0.75) < 1e-14);

    // Probabilities as labels: -(0.25 log 1/4 + 0.75 log 3/4), and the gradient vanishes.
    const std::vector<Array> soft = {arguments[0], arguments[1], {{1, 2}, {0.25, 0.75}}};
    QVERIFY(
        std::abs(evaluatePlainly(*program.find("loss"), soft)[0].scalar() - (0.25 * std::log(4.0) + 0.75 * std::log(4.0 / 3.0)))
        < 1e-14);
    QVERIFY(std::abs(lossGradients(program, soft)[0].data[0]) < 1e-14);
}

void TestTraining::crossEntropyIsStable()
{
    MlpModel model;
    model.layers = {1, 3};
    model.bias = false;
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 1));
    const std::vector<Array> arguments = {{{1, 3}, {5000.5, 4000.0, -5000.0}}, {{1, 1}, {1.0}}, {{1, 3}, {0.0, 1.0, 0.0}}};
    QCOMPARE(evaluatePlainly(*program.find("loss"), arguments)[0].scalar(), 1000.5);
    QCOMPARE(lossGradients(program, arguments)[0].data, (std::vector<double>{1, -1, 0}));
    // No gradient flows through the shift: the backward run has no comparison with the row's maximum.
    QCOMPARE(countOf(*program.find("loss.bwd"), OpKind::Compare), 0);
}

// Predictions are the inputs' products with the identity.
void TestTraining::accuracy()
{
    MlpModel model;
    model.layers = {3, 3};
    model.bias = false;
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 4));
    const Array identity{{3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    const Array x{{4, 3}, {3, 1, 2, /**/ 1, 3, 2, /**/ -3, -2, -1, /**/ 2, 2, 0}};
    const Array y{{4, 3}, {1, 0, 0, /**/ 0, 0, 1, /**/ 0.1, 0.1, 0.8, /**/ 0, 1, 0}};
    const auto results = evaluatePlainly(*program.find("evaluate"), {identity, x, y});
    QCOMPARE(results[1].scalar(), 0.75); // right, wrong, right, a tie
    Array broken = x;
    broken.data[0] = std::nan("");
    QVERIFY(evaluatePlainly(*program.find("evaluate"), {identity, broken, y})[1].scalar() <= 0.75);
}

void TestTraining::stepIsSgd()
{
    MlpModel model;
    model.layers = {4, 5, 3};
    const Program program = programOf(model, optionsOf(SgdOptimizer{0.3, 0.0}));
    const Function& step = *program.find("step");
    const auto arguments = argumentsOf(step);
    const auto gradients = lossGradients(program, arguments);
    const auto results = evaluatePlainly(step, arguments);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        for (std::size_t j = 0; j < gradients[i].data.size(); ++j)
            QCOMPARE(results[i].data[j], arguments[i].data[j] - 0.3 * gradients[i].data[j]);
    }
    QCOMPARE(results[4].scalar(), evaluatePlainly(*program.find("loss"), arguments)[0].scalar());
}

void TestTraining::stepWithMomentum()
{
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(SgdOptimizer{0.3, 0.9}));
    const Function& step = *program.find("step");
    auto arguments = argumentsOf(step);
    std::fill(arguments[2].data.begin(), arguments[2].data.end(), 2.0);
    const auto gradients = lossGradients(program, {arguments[0], arguments[1], arguments[4], arguments[5]});
    const auto results = evaluatePlainly(step, arguments);
    for (std::size_t j = 0; j < gradients[0].data.size(); ++j) {
        const double moment = 0.9 * 2.0 + gradients[0].data[j];
        QCOMPARE(results[2].data[j], moment);
        QCOMPARE(results[0].data[j], arguments[0].data[j] - 0.3 * moment);
    }
}

// Two steps of Adam against its formula.
void TestTraining::stepIsAdam()
{
    const AdamOptimizer adam{0.01, 0.8, 0.95, 1e-6};
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(adam));
    const Function& step = *program.find("step");
    auto arguments = argumentsOf(step); // w b m.w m.b v.w v.b step x y
    std::vector<double> m(12, 0.0);
    std::vector<double> v(12, 0.0);
    for (int t = 1; t <= 2; ++t) {
        const auto gradients = lossGradients(program, {arguments[0], arguments[1], arguments[7], arguments[8]});
        const auto results = evaluatePlainly(step, arguments);
        for (std::size_t j = 0; j < 12; ++j) {
            const double g = gradients[0].data[j];
            m[j] = adam.beta1 * m[j] + (1 - adam.beta1) * g;
            v[j] = adam.beta2 * v[j] + (1 - adam.beta2) * g * g;
            const double direction
                = m[j] / (1 - std::pow(adam.beta1, t)) / (std::sqrt(v[j] / (1 - std::pow(adam.beta2, t))) + adam.epsilon);
            QVERIFY(std::abs(results[0].data[j] - (arguments[0].data[j] - adam.learningRate * direction)) < 1e-12);
            QVERIFY(std::abs(results[2].data[j] - m[j]) < 1e-15 && std::abs(results[4].data[j] - v[j]) < 1e-15);
        }
        QCOMPARE(results[6].scalar(), static_cast<double>(t));
        for (std::size_t i = 0; i < 7; ++i)
            arguments[i] = results[i];
    }
}

// Two steps of AdamW against the paper's algorithm 2, the decay outside of the moments and times the learning rate.
void TestTraining::stepIsAdamW()
{
    AdamOptimizer adam = AdamOptimizer::adamW();
    QCOMPARE(adam.update.weightDecay, 1e-4);
    adam.learningRate = 0.02;
    adam.update.weightDecay = 0.1;
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(adam));
    const Function& step = *program.find("step");
    auto arguments = argumentsOf(step); // w b m.w m.b v.w v.b step x y
    std::vector<double> m(12, 0.0);
    std::vector<double> v(12, 0.0);
    for (int t = 1; t <= 2; ++t) {
        const auto gradients = lossGradients(program, {arguments[0], arguments[1], arguments[7], arguments[8]});
        const auto results = evaluatePlainly(step, arguments);
        for (std::size_t j = 0; j < 12; ++j) {
            const double g = gradients[0].data[j];
            m[j] = 0.9 * m[j] + 0.1 * g;
            v[j] = 0.999 * v[j] + 0.001 * g * g;
            const double direction = m[j] / (1 - std::pow(0.9, t)) / (std::sqrt(v[j] / (1 - std::pow(0.999, t))) + 1e-8);
            const double p = arguments[0].data[j];
            QVERIFY(std::abs(results[0].data[j] - (p - 0.02 * direction - 0.02 * 0.1 * p)) < 1e-9);
        }
        for (std::size_t i = 0; i < 7; ++i)
            arguments[i] = results[i];
    }
}

void TestTraining::decayOfSgd()
{
    SgdOptimizer sgd{0.3, 0.9};
    sgd.update.weightDecay = 0.05;
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(sgd));
    const Function& step = *program.find("step");
    auto arguments = argumentsOf(step); // w b m.w m.b x y
    std::fill(arguments[2].data.begin(), arguments[2].data.end(), 2.0);
    const auto gradients = lossGradients(program, {arguments[0], arguments[1], arguments[4], arguments[5]});
    const auto results = evaluatePlainly(step, arguments);
    for (std::size_t j = 0; j < 12; ++j) {
        const double p = arguments[0].data[j];
        const double moment = 0.9 * 2.0 + gradients[0].data[j];
        QCOMPARE(results[2].data[j], moment); // no decay in it
        QVERIFY(std::abs(results[0].data[j] - (p - 0.3 * moment - 0.3 * 0.05 * p)) < 1e-14);
    }
}

void TestTraining::decayFollowsTheSchedule_data()
{
    QTest::addColumn<bool>("isAdam");
    QTest::newRow("sgd") << false;
    QTest::newRow("adamw") << true;
}

/// A step takes the scheduled rate times the decay of a parameter, not the peak times it.
void TestTraining::decayFollowsTheSchedule()
{
    QFETCH(bool, isAdam);
    constexpr double kPeak = 0.5;
    constexpr double kStep = 1.0; // of 4 that warm up: a quarter of the peak
    const auto updated = [&](double decay) {
        AdamOptimizer adam = AdamOptimizer::adamW();
        adam.learningRate = kPeak;
        Optimizer optimizer = isAdam ? Optimizer(adam) : Optimizer(SgdOptimizer{kPeak, 0.0});
        UpdateChoices& choices = *updateChoices(optimizer);
        choices.schedule = {LearningRateSchedule::Kind::Constant, 4, 0, 0.0};
        choices.weightDecay = decay;
        MlpModel model;
        model.layers = {1, 1};
        model.bias = false;
        model.loss = LossKind::SumSquared;
        const Program program = programOf(model, optionsOf(optimizer, 1));
        const Function& step = *program.find("step");
        auto arguments = argumentsOf(step); // w, moments, step, x, y
        arguments.front().data = {2.0};
        for (std::size_t i = 1; i <= momentsOf(optimizer); ++i)
            arguments[i].data = {0.0};
        arguments[1 + momentsOf(optimizer)].data = {kStep};
        return evaluatePlainly(step, arguments)[0].data[0];
    };
    constexpr double kDecay = 0.1;
    QVERIFY(std::abs(updated(0.0) - updated(kDecay) - kPeak * kStep / 4.0 * kDecay * 2.0) < 1e-12);
}

void TestTraining::schedules_data()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("warmup");
    QTest::addColumn<int>("decay");
    QTest::addColumn<double>("final");
    QTest::addColumn<int>("step");
    QTest::addColumn<double>("expected"); // of a peak of 0.5

    const auto row
        = [](const char* name, LearningRateSchedule::Kind kind, int warmup, int decay, double final, int step, double expected) {
              QTest::addRow("%s, step %d", name, step) << static_cast<int>(kind) << warmup << decay << final << step << expected;
          };
    using Kind = LearningRateSchedule::Kind;
    row("warm-up", Kind::Constant, 4, 0, 0.0, 0, 0.0);
    row("warm-up", Kind::Constant, 4, 0, 0.0, 3, 0.375);
    row("warm-up", Kind::Constant, 4, 0, 0.0, 4, 0.5);
    row("warm-up", Kind::Constant, 4, 0, 0.0, 1000, 0.5);
    row("linear", Kind::Linear, 0, 10, 0.1, 0, 0.5);
    row("linear", Kind::Linear, 0, 10, 0.1, 5, 0.3);
    row("linear", Kind::Linear, 0, 10, 0.1, 10, 0.1);
    row("linear", Kind::Linear, 0, 10, 0.1, 12, 0.1);
    row("linear, warm", Kind::Linear, 2, 10, 0.1, 1, 0.25);
    row("linear, warm", Kind::Linear, 2, 10, 0.1, 6, 0.3);
    row("cosine", Kind::Cosine, 0, 6, 0.0, 2, 0.375); // (1 + cos 60 deg) / 2 = 3/4
    row("cosine", Kind::Cosine, 0, 6, 0.0, 3, 0.25);
    row("cosine", Kind::Cosine, 0, 6, 0.0, 6, 0.0);
    row("cosine", Kind::Cosine, 0, 6, 0.1, 100, 0.1);
    row("cosine, warm", Kind::Cosine, 3, 9, 0.1, 2, 1.0 / 3);
    row("cosine, warm", Kind::Cosine, 3, 9, 0.1, 5, 0.1 + 0.4 * 0.75);
}

/// The number on the host, and the one that the program makes of its count of steps.
void TestTraining::schedules()
{
    QFETCH(int, kind);
    QFETCH(int, warmup);
    QFETCH(int, decay);
    QFETCH(double, final);
    QFETCH(int, step);
    QFETCH(double, expected);
    SgdOptimizer sgd{0.5, 0.0};
    sgd.update.schedule = {static_cast<LearningRateSchedule::Kind>(kind), warmup, decay, final};
    QVERIFY(std::abs(learningRateAt(sgd, step) - expected) < 1e-15);
    MlpModel model;
    model.layers = {1, 1}; // one parameter with a moment or none is not a count of steps
    model.bias = false;
    model.loss = LossKind::SumSquared;
    const Program program = programOf(model, optionsOf(sgd, 1));
    QCOMPARE(joined(optimizerStateNames(parameterNames(model), sgd)), QString("opt.step"));
    // (1 * 2 - 1)^2: the gradient is 2 (2 - 1) = 2.
    const auto results = evaluatePlainly(
        *program.find("step"), {{{1, 1}, {2.0}}, {{}, {static_cast<double>(step)}}, {{1, 1}, {1.0}}, {{1, 1}, {1.0}}});
    QVERIFY2(
        std::abs(results[0].data[0] - (2.0 - 2.0 * expected)) < 1e-13, qPrintable(QString::number(results[0].data[0], 'g', 17)));
    QCOMPARE(results[1].scalar(), step + 1.0);
}

void TestTraining::clipping_data()
{
    QTest::addColumn<double>("most");
    QTest::addColumn<bool>("clips");
    QTest::newRow("far below") << 0.01 << true;
    QTest::newRow("just below") << 0.999 << true; // of the norm
    QTest::newRow("just above") << 1.001 << false;
    QTest::newRow("far above") << 1e6 << false;
}

/// The norm is over all parameters together, and every gradient shrinks by the same factor.
void TestTraining::clipping()
{
    QFETCH(double, most);
    QFETCH(bool, clips);
    MlpModel model;
    model.layers = {4, 5, 3};
    const Program plain = programOf(model, optionsOf(SgdOptimizer{0.3, 0.0}));
    const auto arguments = argumentsOf(*plain.find("step"));
    const auto gradients = lossGradients(plain, arguments);
    double squares = 0.0;
    for (const Array& gradient : gradients) {
        for (const double g : gradient.data)
            squares += g * g;
    }
    const double norm = std::sqrt(squares);
    SgdOptimizer sgd{0.3, 0.0};
    sgd.update.clipNorm = most * norm;
    TrainingOptions options = optionsOf(sgd);
    options.gradientNorm = true;
    const Program program = programOf(model, options);
    const Function& step = *program.find("step");
    QCOMPARE(text(step.resultNames.back()), QString("grad_norm"));
    const auto results = evaluatePlainly(step, arguments);
    QVERIFY(std::abs(results.back().scalar() - norm) < 1e-13 * norm); // before it is clipped
    const double factor = clips ? most : 1.0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        for (std::size_t j = 0; j < gradients[i].data.size(); ++j)
            QVERIFY(std::abs(results[i].data[j] - (arguments[i].data[j] - 0.3 * factor * gradients[i].data[j])) < 1e-13);
    }
}

void TestTraining::stepWithoutOptimizer()
{
    MlpModel model;
    model.layers = {4, 3};
    const Program program = programOf(model, optionsOf(NoOptimizer{}));
    const Function& step = *program.find("step");
    QCOMPARE(joined(step.resultNames), QString("grad.layers.0.w grad.layers.0.b loss accuracy"));
    const auto arguments = argumentsOf(step);
    const auto gradients = lossGradients(program, arguments);
    const auto results = evaluatePlainly(step, arguments);
    QCOMPARE(results[0].data, gradients[0].data);
    QCOMPARE(results[1].data, gradients[1].data);
    QCOMPARE(step.shardingGroups.size(), std::size_t{2});
}

// It learns: sixteen rows of four classes are told apart after some steps of Adam.
void TestTraining::training()
{
    MlpModel model;
    model.layers = {6, 12, 4};
    const Program program = programOf(model, optionsOf(AdamOptimizer{0.05, 0.9, 0.999, 1e-8}, 16));
    const Function& step = *program.find("step");
    auto arguments = argumentsOf(step);
    const std::size_t states = arguments.size() - 2;
    for (std::size_t i = 0; i < arguments[states].data.size(); ++i)
        arguments[states].data[i] = randomWord(keyOfSeed(1), i, 96, true) / 4294967296.0 - 0.5;
    double first = 0.0;
    std::vector<Array> results;
    for (int i = 0; i < 150; ++i) {
        results = evaluatePlainly(step, arguments);
        if (i == 0)
            first = results[states].scalar();
        std::copy_n(results.begin(), states, arguments.begin());
    }
    QVERIFY2(results[states].scalar() < 0.1 * first, qPrintable(QString::number(results[states].scalar())));
    QCOMPARE(results[states + 1].scalar(), 1.0);
}

void TestTraining::constraints()
{
    const Mesh mesh = meshOf("data=2,model=2");
    MlpModel model;
    model.layers = {4, 6, 4};
    TrainingOptions options = optionsOf(SgdOptimizer{}, 4);
    const TensorSharding both = shardingOf("P('data', 'model')", 2, mesh);
    options.constraints["act.layers.0"] = {both, "sharding.layers.0.out"};
    options.constraints["act.layers.0.activated"] = {both, "sharding.layers.0.activated"};
    Program program = programOf(model, options);
    program.meshes = {{"mesh", mesh}};
    QVERIFY2(verify(program).empty(), qPrintable(text(describe(verify(program)))));
    const Function& step = *program.find("step");
    QCOMPARE(countOf(step, OpKind::ShardingConstraint), 4); // forward and backward
    const Value& value = step[*step.findValue("act.layers.0")];
    QVERIFY(value.sharding == both);
    QCOMPARE(text(value.annotation), QString("sharding.layers.0.out"));
    const Function& loss = *program.find("loss");
    const QString fault = gradientFault(loss, argumentsOf(loss), {0, 1, 2, 3}, {0}, 2e-6, program.meshes);
    QVERIFY2(fault.isEmpty(), qPrintable(fault));
}

void TestTraining::constraintProblems()
{
    MlpModel model;
    model.layers = {4, 6, 4};
    TrainingOptions options;
    options.constraints["act.layer.0"] = {TensorSharding::replicatedOf(2), "sharding.layer.0.out"};
    options.constraints["act.layers.1"] = {TensorSharding::replicatedOf(3), "sharding.layers.1.out"};
    options.constraints["act.layers.1.activated"] = {TensorSharding::replicatedOf(2), {}};
    const auto program = buildMlpTraining(model, options);
    QCOMPARE(idsOf(program), QString("MW1312 MW1308 MW1312"));
    QCOMPARE(text(program.error()[0].message), QString("there is no activation \"act.layer.0\" in the model"));
    QCOMPARE(text(program.error()[0].fix), QString("did you mean \"act.layers.0\"?"));
    QCOMPARE(text(program.error()[0].place.path), QString("sharding.layer.0.out"));
}

void TestTraining::evaluateEqualsStep()
{
    MlpModel model;
    model.layers = {4, 5, 3};
    const Program program = programOf(model, optionsOf(SgdOptimizer{}, 6));
    const Function& step = *program.find("step");
    const auto arguments = argumentsOf(step);
    const auto stepped = evaluatePlainly(step, arguments);
    const auto evaluated = evaluatePlainly(*program.find("evaluate"), arguments);
    QCOMPARE(evaluated[0].scalar(), stepped[4].scalar());
    QCOMPARE(evaluated[1].scalar(), stepped[5].scalar());
}

MESHWRIGHT_TEST(TestTraining)

} // namespace tst_training

#include "tst_training.moc"
