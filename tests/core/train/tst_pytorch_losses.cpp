// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training.h"
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "tests/test_class.h"

#include <map>
#include <set>
#include <thread>

namespace tst_pytorch_losses {

using namespace meshwright;

namespace {

const std::vector<std::int64_t> kLayers{8, 16, 12, 4};
constexpr std::int64_t kBatch = 16;

/// The numbers of pytorch_losses.py.
HostArray numbers(const TensorType& type, std::int64_t seed, double scale)
{
    std::vector<double> values;
    for (std::int64_t i = 0; i < type.elements(); ++i)
        values.push_back(scale * static_cast<double>((i * 37 + seed * 11 + i * i * 5) % 127 - 63) / 64.0);
    return HostArray::of(type, values);
}

HostArray startOf(const std::string& name, const TensorType& type, LossKind loss)
{
    if (name == "x")
        return numbers(type, 20, 1.0);
    if (name == "y" && loss == LossKind::CrossEntropy) {
        std::vector<double> oneHot(static_cast<std::size_t>(type.elements()), 0.0);
        for (std::int64_t row = 0; row < type.shape[0]; ++row)
            oneHot[static_cast<std::size_t>(row * type.shape[1] + row % type.shape[1])] = 1.0;
        return HostArray::of(type, oneHot);
    }
    if (name == "y")
        return numbers(type, 21, 1.0);
    if (name.starts_with("opt."))
        return HostArray::filled(type, 0.0);
    const std::int64_t layer = name[std::string("layers.").size()] - '0';
    return name.ends_with(".w") ? numbers(type, 2 * layer, 0.5) : numbers(type, 2 * layer + 1, 0.25);
}

/// FNV-1a.
std::uint64_t hashOf(const LoadedFunction& step)
{
    std::uint64_t hash = 14695981039346656037ULL;
    for (std::size_t i = 0; i < step.function().arguments().size(); ++i) {
        const HostArray array = step.readArgument(i);
        const auto* bytes = array.data();
        for (std::int64_t b = 0; b < array.bytes(); ++b)
            hash = (hash ^ static_cast<std::uint64_t>(bytes[b])) * 1099511628211ULL;
    }
    return hash;
}

struct Trained {
    std::vector<double> losses;
    std::uint64_t hash = 0; ///< of all parameters and states
};

/// A step of training on devices of its own.
struct Step {
    LossKind loss = LossKind::SumSquared;
    std::unique_ptr<VirtualDevices> devices;
    std::unique_ptr<LoadedFunction> loaded;

    /// From the starting numbers.
    Trained train(std::size_t steps)
    {
        const Function& function = loaded->function();
        for (std::size_t i = 0; i < function.arguments().size(); ++i) {
            const ValueId id = function.arguments()[i];
            const TensorType whole{function[id].type.dtype, loaded->scheduled().device.globalShapes[id.at()]};
            (void)valueOf(loaded->writeArgument(i, startOf(function[id].name, whole, loss)));
        }
        const auto& names = function.resultNames;
        const auto lossAt = static_cast<std::size_t>(std::find(names.begin(), names.end(), "loss") - names.begin());
        Trained trained;
        for (std::size_t i = 0; i < steps; ++i) {
            (void)valueOf(loaded->run());
            trained.losses.push_back(loaded->readResult(lossAt).at(0));
        }
        trained.hash = hashOf(*loaded);
        return trained;
    }
};

Step stepOf(const Optimizer& optimizer, LossKind loss, const std::string& meshText,
    const std::map<std::string, std::string>& specs, int permits = 0, EngineKind engine = EngineKind::Auto)
{
    MlpModel model;
    model.layers = kLayers;
    model.loss = loss;
    TrainingOptions options;
    options.batch = kBatch;
    options.optimizer = optimizer;
    Program program = valueOf(buildMlpTraining(model, options));
    const Mesh mesh = valueOf(parseMesh(meshText));
    program.meshes = {{"mesh", mesh}};
    for (Function& function : program.functions) {
        for (const ValueId argument : function.arguments()) {
            if (const auto spec = specs.find(function[argument].name); spec != specs.end())
                function[argument].sharding
                    = valueOf(toTensorSharding(valueOf(parseSpec(spec->second)), function[argument].type.shape.size(), mesh));
        }
    }
    const PartitionedProgram partitioned = valueOf(propagateAndPartition(std::move(program)));
    const DeviceStage& stage = partitioned.device.stages.front();
    Step step{loss, valueOf(VirtualDevices::create(mesh.deviceCount(), {.permits = permits, .engine = engine})), nullptr};
    step.loaded = valueOf(LoadedFunction::load(schedule(*stage.find("step"), SchedulePolicy::Host), stage.meshes, *step.devices));
    return step;
}

std::vector<EngineKind> engines()
{
    return hasFibers() ? std::vector{EngineKind::Threads, EngineKind::Fibers} : std::vector{EngineKind::Threads};
}

const std::map<std::string, std::string> kData{{"x", "P('data')"}, {"y", "P('data')"}};
const std::map<std::string, std::string> kMegatron{{"x", "P('data')"}, {"y", "P('data')"}, {"layers.0.w", "P(None, 'model')"},
    {"layers.0.b", "P('model')"}, {"layers.1.w", "P('model', None)"}, {"layers.2.w", "P(None, 'model')"}};

} // namespace

/// Training on devices against PyTorch, from the same numbers; and against itself, by hash.
class TestPyTorchLosses : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void agrees_data();
    void agrees();
    void bitsDoNotDependOnWorkers_data();
    void bitsDoNotDependOnWorkers();
    void manyDevicesTrain_data();
    void manyDevicesTrain();
};

/// Printed by pytorch_losses.py with PyTorch 1.13.0.
void TestPyTorchLosses::agrees_data()
{
    QTest::addColumn<Optimizer>("optimizer");
    QTest::addColumn<int>("loss");
    QTest::addColumn<QList<double>>("expected");
    const auto squared = static_cast<int>(LossKind::SumSquared);
    const auto entropy = static_cast<int>(LossKind::CrossEntropy);
    QTest::newRow("sgd, sum squared") << Optimizer(SgdOptimizer{0.01, 0.0}) << squared
                                      << QList<double>{1.77916849, 1.71146393, 1.65047216, 1.59406734, 1.54285312, 1.49628019,
                                             1.45443904, 1.4166429};
    QTest::newRow("sgd, cross entropy") << Optimizer(SgdOptimizer{0.01, 0.0}) << entropy
                                        << QList<double>{1.43432593, 1.43248892, 1.43075264, 1.42903042, 1.42731774, 1.42561841,
                                               1.42393231, 1.42225909};
    QTest::newRow("momentum, sum squared") << Optimizer(SgdOptimizer{0.01, 0.9}) << squared
                                           << QList<double>{1.77916849, 1.71146393, 1.59535277, 1.45475411, 1.31339204,
                                                  1.18480158, 1.08323872, 1.00972235};
    QTest::newRow("momentum, cross entropy")
        << Optimizer(SgdOptimizer{0.01, 0.9}) << entropy
        << QList<double>{1.43432593, 1.43248892, 1.42915702, 1.4244808, 1.41865575, 1.41187, 1.40444458, 1.39642024};
    QTest::newRow("adam, sum squared") << Optimizer(AdamOptimizer{.learningRate = 0.01}) << squared
                                       << QList<double>{1.77916849, 1.4990443, 1.29585826, 1.15526438, 1.05291712, 0.975343883,
                                              0.912103415, 0.854235709};
    QTest::newRow("adam, cross entropy") << Optimizer(AdamOptimizer{.learningRate = 0.01}) << entropy
                                         << QList<double>{1.43432593, 1.3806529, 1.33368969, 1.29416025, 1.25909901, 1.22538221,
                                                1.19118726, 1.15908754};
}

void TestPyTorchLosses::agrees()
{
    QFETCH(Optimizer, optimizer);
    QFETCH(int, loss);
    QFETCH(QList<double>, expected);
    for (const auto& [mesh, specs] :
        {std::pair{std::string("data=1"), kData}, {"data=8", kData}, {"data=4,model=2", kMegatron}}) {
        const Trained trained
            = stepOf(optimizer, static_cast<LossKind>(loss), mesh, specs).train(static_cast<std::size_t>(expected.size()));
        for (qsizetype i = 0; i < expected.size(); ++i) {
            const double got = trained.losses[static_cast<std::size_t>(i)];
            QVERIFY2(std::abs(got - expected[i]) <= 1e-5 * expected[i],
                qPrintable(QString("%1, step %2: %3").arg(QString::fromStdString(mesh)).arg(i).arg(got, 0, 'g', 9)));
        }
    }
}

void TestPyTorchLosses::bitsDoNotDependOnWorkers_data()
{
    QTest::addColumn<bool>("loaded");
    QTest::newRow("quiet") << false;
    QTest::newRow("beside threads that compute") << true;
}

/// Ten runs with each engine and number of workers.
void TestPyTorchLosses::bitsDoNotDependOnWorkers()
{
    QFETCH(bool, loaded);
    std::vector<std::jthread> load;
    for (int i = 0; loaded && i < 2; ++i) {
        load.emplace_back([](const std::stop_token& stop) {
            volatile double sum = 0.0;
            while (!stop.stop_requested())
                sum = sum + 1.0;
        });
    }
    for (const auto& [mesh, specs] : {std::pair{std::string("data=8"), kData}, {"data=4,model=2", kMegatron}}) {
        std::set<std::uint64_t> hashes;
        for (const EngineKind engine : engines()) {
            for (const int permits : loaded ? std::vector<int>{2} : std::vector<int>{1, 2, 3, 8}) {
                Step step = stepOf(AdamOptimizer{.learningRate = 0.01}, LossKind::SumSquared, mesh, specs, permits, engine);
                QCOMPARE(step.devices->engine(), engine);
                for (int run = 0; run < 10; ++run)
                    hashes.insert(step.train(2).hash);
            }
        }
        QCOMPARE(hashes.size(), std::size_t{1});
    }
}

void TestPyTorchLosses::manyDevicesTrain_data()
{
    QTest::addColumn<QString>("mesh");
    QTest::addColumn<int>("engine");
    for (const EngineKind engine : engines()) {
        QTest::addRow("256 %s", engineName(engine).c_str())
            << "data=16,model=2,rest=8" << static_cast<int>(engine); // under the thread sanitizer, too
        QTest::addRow("1024 %s", engineName(engine).c_str()) << "data=16,model=2,rest=32" << static_cast<int>(engine);
    }
}

/// 16 ways of data, two of model, and replicas of each, which change nothing.
void TestPyTorchLosses::manyDevicesTrain()
{
    QFETCH(QString, mesh);
    QFETCH(int, engine);
    const Optimizer sgd = SgdOptimizer{0.01, 0.0};
    const Trained many
        = stepOf(sgd, LossKind::SumSquared, mesh.toStdString(), kMegatron, 0, static_cast<EngineKind>(engine)).train(2);
    const Trained few = stepOf(sgd, LossKind::SumSquared, "data=16,model=2", kMegatron).train(2);
    QCOMPARE(many.losses, few.losses);
    QVERIFY(std::abs(many.losses[1] - 1.71146393) <= 1e-5 * 1.71146393);
}

MESHWRIGHT_TEST(TestPyTorchLosses)

} // namespace tst_pytorch_losses

#include "tst_pytorch_losses.moc"
