// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/session/engine.h"

#include "core/kernels/products.h"
#include "core/support/resources.h"
#include "tests/test_class.h"

#include <QTemporaryDir>

#include <bit>
#include <cmath>

namespace tst_notebook {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

using Matrix = std::vector<double>; ///< row-major

/// The nearest bf16, ties to even.
double asBf16(double value)
{
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return static_cast<double>(std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U));
}

double same(double value)
{
    return value;
}

/// The notebook's network as a NumPy user would write it, in double precision; products round their operands.
class Model {
public:
    Model(std::vector<std::int64_t> layers, std::int64_t batch, double (*rounded)(double))
        : m_layers(std::move(layers))
        , m_batch(batch)
        , m_rounded(rounded)
    {
    }

    std::vector<Matrix> w;
    std::vector<Matrix> b;

    /// The loss; with a rate also one step of gradient descent.
    double step(const Matrix& x, const Matrix& y, double rate)
    {
        std::vector<Matrix> inputs = {x};
        Matrix outputs;
        for (std::size_t i = 0; i < w.size(); ++i) {
            outputs = product(inputs[i], w[i], m_batch, m_layers[i], m_layers[i + 1]);
            for (std::size_t at = 0; at < outputs.size(); ++at)
                outputs[at] += b[i][at % static_cast<std::size_t>(m_layers[i + 1])];
            Matrix positive = outputs;
            for (double& value : positive)
                value = std::max(value, 0.0);
            inputs.push_back(std::move(positive));
        }
        double loss = 0.0;
        Matrix ct(outputs.size());
        for (std::size_t at = 0; at < outputs.size(); ++at) {
            const double off = outputs[at] - y[at];
            loss += off * off / static_cast<double>(m_batch);
            ct[at] = 2.0 * off / static_cast<double>(m_batch);
        }
        for (std::size_t i = w.size(); rate > 0.0 && i-- > 0;)
            back(i, inputs[i], ct, rate);
        return loss;
    }

private:
    Matrix product(const Matrix& a, const Matrix& c, std::int64_t rows, std::int64_t inner, std::int64_t columns) const
    {
        Matrix result(static_cast<std::size_t>(rows * columns), 0.0);
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t k = 0; k < inner; ++k) {
                const double left = m_rounded(a[static_cast<std::size_t>(i * inner + k)]);
                for (std::int64_t j = 0; j < columns; ++j)
                    result[static_cast<std::size_t>(i * columns + j)]
                        += left * m_rounded(c[static_cast<std::size_t>(k * columns + j)]);
            }
        }
        return result;
    }

    static Matrix transposed(const Matrix& a, std::int64_t rows, std::int64_t columns)
    {
        Matrix result(a.size());
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j)
                result[static_cast<std::size_t>(j * rows + i)] = a[static_cast<std::size_t>(i * columns + j)];
        }
        return result;
    }

    /// Updates layer i; `ct` becomes the cotangent of the layer before.
    void back(std::size_t i, const Matrix& input, Matrix& ct, double rate)
    {
        const std::int64_t in = m_layers[i];
        const std::int64_t out = m_layers[i + 1];
        const Matrix gradient = product(transposed(input, m_batch, in), ct, in, m_batch, out);
        Matrix before = product(ct, transposed(w[i], in, out), m_batch, out, in);
        for (std::size_t at = 0; at < ct.size(); ++at)
            b[i][at % static_cast<std::size_t>(out)] -= rate * ct[at];
        for (std::size_t at = 0; at < gradient.size(); ++at)
            w[i][at] -= rate * gradient[at];
        for (std::size_t at = 0; at < before.size(); ++at)
            before[at] = input[at] > 0.0 ? before[at] : 0.0;
        ct = std::move(before);
    }

    std::vector<std::int64_t> m_layers;
    std::int64_t m_batch;
    double (*m_rounded)(double);
};

constexpr std::int64_t kBatch = 64;

/// The example, scaled down; the rate is scaled up, so that as much is learnt.
Study notebook(std::vector<std::string> settings = {})
{
    settings.insert(settings.begin(),
        {"model.mlp.layers=[24, 64, 64, 64, 10]", "batch=64", "phases[0].steps=6", "phases[1].steps=4",
            "optimizer.sgd.learning_rate=0.0005"});
    auto study = loadStudy(resourcesDirectory() / "examples" / "jax_notebook.yaml", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *std::move(study);
}

TrainingResult trained(const Study& study, const TrainChoices& choices = {})
{
    auto result = trainStudy(study, choices, {}, {});
    if (!result)
        qFatal("%s", describe(result.error()).c_str());
    return *std::move(result);
}

Model modelOf(const Study& study, double (*rounded)(double))
{
    TrainChoices keeping;
    keeping.keepParameters = true;
    const TrainingResult start = trained(notebook({"phases[0].steps=0", "phases[1].steps=0"}), keeping);
    Model model(study.mlp()->layers, kBatch, rounded);
    for (std::size_t i = 0; i < start.parameters.size(); i += 2) {
        model.w.push_back(start.parameters[i].values());
        model.b.push_back(start.parameters[i + 1].values());
    }
    return model;
}

} // namespace

/// JAX's notebook on distributed arrays, as resources/examples/jax_notebook.yaml has it.
class TestNotebook : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void isTheNotebooks();
    void lossesAreAModels_data();
    void lossesAreAModels();
    void workersChangeNoBit();
    void layoutKeepsTheLoss();
    void goesOnFromACheckpoint();
};

void TestNotebook::isTheNotebooks()
{
    const Study study = valueOf(loadStudy(resourcesDirectory() / "examples" / "jax_notebook.yaml"));
    QVERIFY(study.mlp()->layers == (std::vector<std::int64_t>{784, 8192, 8192, 8192, 10}));
    QCOMPARE(study.batch, 8192);
    QVERIFY(study.matmulType == DType::BF16 && study.parameterType == DType::F32 && !study.partitionableRandom);
    QVERIFY(study.optimizer == (Optimizer{SgdOptimizer{1e-5, 0.0}}));
    QCOMPARE(study.phases.size(), std::size_t{2});
    // Eight devices hold all parameters, then a pair of them halves the middle layers: what 16 GiB hold in both.
    const auto phases = trainingPhases(study);
    QVERIFY2(phases, phases ? "" : describe(phases.error()).c_str());
    for (const TrainingPhase& phase : *phases)
        QVERIFY(phase.scheduled.stages.front().find("step")->buffers.arenaBytes < std::int64_t{16} << 30);
}

void TestNotebook::lossesAreAModels_data()
{
    QTest::addColumn<QByteArray>("products");
    for (const char* name : {"", "amx", "panels", "eigen"}) // the fastest first; only one of them multiplies bf16 itself
        QTest::addRow("%s", *name == 0 ? "the fastest" : name) << QByteArray(name);
}

/// Products of bf16 operands and sums in f32 give, over ten steps and two layouts, what double precision with the same rounding gives; without the
/// rounding the losses are others.
void TestNotebook::lossesAreAModels()
{
    QFETCH(QByteArray, products);
    if (!chooseProducts(products.toStdString()))
        QSKIP("this computer cannot");
    qputenv(kProductsVariable, products);
    const auto restore = qScopeGuard([] { qunsetenv(kProductsVariable); });
    const Study study = notebook();
    TrainChoices verifying;
    verifying.verify = true;
    const TrainingResult result = trained(study, verifying);
    QVERIFY(result.verification->passed);
    const Dataset data = valueOf(datasetOf(study));
    const Matrix x(data.inputs.begin(), data.inputs.end());
    const Matrix y(data.targets.begin(), data.targets.end());
    Model model = modelOf(study, asBf16);
    Model exact = modelOf(study, same);
    QCOMPARE(result.losses.size(), std::size_t{11});
    double largest = 0.0;
    for (std::size_t i = 0; i < result.losses.size(); ++i) {
        const double rate = i < 10 ? 0.0005 : 0.0;
        const double expected = model.step(x, y, rate);
        const double unrounded = exact.step(x, y, rate);
        QVERIFY2(std::abs(result.losses[i] - expected) <= 2e-5 * expected,
            qPrintable(
                QString("step %1: %2, the model has %3").arg(i).arg(result.losses[i], 0, 'g', 9).arg(expected, 0, 'g', 9)));
        largest = std::max(largest, std::abs(unrounded - expected) / expected);
    }
    QVERIFY2(largest > 1e-4, qPrintable(QString::number(largest)));
    QVERIFY(result.losses.back() < 0.8 * result.losses.front());
}

void TestNotebook::workersChangeNoBit()
{
    const TrainingResult alone = trained(notebook(), {.permits = 1});
    QCOMPARE(trained(notebook(), {.permits = 8}).losses, alone.losses);
}

void TestNotebook::layoutKeepsTheLoss()
{
    const TrainingResult before = trained(notebook({"phases[1].steps=0"}));
    const TrainingResult both = trained(notebook());
    QCOMPARE(both.phases.size(), std::size_t{2});
    QCOMPARE(QString::fromStdString(both.phases[0].mesh), QString("data=8,model=1"));
    QCOMPARE(QString::fromStdString(both.phases[1].mesh), QString("data=4,model=2"));
    const TrainingResult first = trained(notebook({"phases=[{steps: 6, mesh: {data: 8}}]"}));
    for (std::size_t i = 0; i < 6; ++i)
        QCOMPARE(both.losses[i], first.losses[i]);
    const double loss = first.losses[6]; // as 8x1 has it
    QVERIFY(std::abs(before.losses[6] - loss) <= 1e-6 * loss);
    QVERIFY(std::abs(both.losses[6] - loss) <= 1e-6 * loss);
}

/// A run of hours is cut short now and then.
void TestNotebook::goesOnFromACheckpoint()
{
    const QTemporaryDir folder;
    const TrainingResult whole = trained(notebook());
    const CheckpointPlan plan{folder.path().toStdString(), 2, 2};
    std::stop_source stop;
    const auto cut = trainStudy(
        notebook(), {.checkpoints = plan},
        [&](const TrainingProgress& progress) {
            if (progress.step == 7)
                stop.request_stop();
        },
        stop.get_token());
    QVERIFY(cut && cut->interrupted && cut->checkpoint);
    TrainChoices resuming;
    resuming.resume = folder.path().toStdString();
    const TrainingResult rest = trained(notebook(), resuming);
    QVERIFY(rest.firstStep > 0);
    QCOMPARE(rest.losses, whole.losses);
}

MESHWRIGHT_TEST(TestNotebook)

} // namespace tst_notebook

#include "tst_notebook.moc"
