// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/search/transformer_search.h"
#include "sim/session/search_study.h"
#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_estimates {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

/// Eight layers of queries in groups.
TransformerConfig plainModel()
{
    TransformerConfig c;
    c.name = "plain";
    c.layers = 8;
    c.hidden = 2048;
    c.heads = 16;
    c.keyValueHeads = 8;
    c.headDim = 128;
    c.ffn = 6144;
    c.gatedFfn = true;
    c.vocabulary = 32768;
    c.maxPositions = 8192;
    return c;
}

TransformerConfig withExperts(std::int64_t experts = 64)
{
    TransformerConfig c = plainModel();
    c.experts = experts;
    c.expertsPerToken = 8;
    c.expertFfn = 768;
    return c;
}

TransformerConfig withStates(MixerKind mixer)
{
    TransformerConfig c = plainModel();
    c.mixer = mixer;
    c.stateHeads = 32;
    c.stateKeyHeads = 16;
    c.stateKeyDim = c.stateValueDim = 128;
    c.convolution = 4;
    return c;
}

} // namespace

/// What a search orders layouts by, beside what simulations of their programs say.
class TestEstimates : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nearTheSimulation_data();
    void nearTheSimulation();
};

void TestEstimates::nearTheSimulation_data()
{
    QTest::addColumn<TransformerConfig>("model");
    QTest::addColumn<QString>("fixed");
    QTest::addColumn<int>("devices");
    QTest::newRow("dense") << plainModel() << "zero=3,fsdp=32" << 32;
    QTest::newRow("dense on many hosts") << plainModel() << "zero=3,fsdp=512" << 512;
    QTest::newRow("dense, copies on many hosts") << plainModel() << "zero=3,fsdp=64,data=8" << 512;
    QTest::newRow("states on many hosts") << plainModel() << "zero=1,data=512" << 512;
    QTest::newRow("experts in a host") << withExperts() << "zero=3,fsdp=4,expert=8" << 32;
    QTest::newRow("small experts of few tokens") << withExperts(256) << "zero=3,fsdp=4,expert=8" << 32;
    QTest::newRow("experts over hosts") << withExperts() << "zero=3,fsdp=1,expert=32" << 32;
    QTest::newRow("experts outside of contexts") << withExperts() << "zero=3,fsdp=2,expert=8,context=2" << 32;
    QTest::newRow("experts everywhere") << withExperts() << "zero=3,fsdp=32,expert=1" << 32;
    QTest::newRow("delta rule") << withStates(MixerKind::DeltaRule) << "zero=3,fsdp=32" << 32;
    QTest::newRow("state space") << withStates(MixerKind::StateSpace) << "zero=1,tensor=2" << 32;
}

/// Within a third of each other: nearer than two kinds of layouts are.
void TestEstimates::nearTheSimulation()
{
    QFETCH(TransformerConfig, model);
    QFETCH(QString, fixed);
    QFETCH(int, devices);
    SearchWork work;
    work.model = model;
    work.sequence = 4096;
    work.globalBatch = 4 * devices;
    const Catalogue& catalogue = valueOf(defaultCatalogue());
    const SearchMachine machine
        = valueOf(machineOf(*valueOf(catalogue.find("h100")).chip, devices, 1, valueOf(defaultCalibration()), {}));
    SearchOptions options;
    options.top = 1;
    options.threads = 2;
    options.simulate = planSimulator(work, catalogue);
    options.layerTime = layerTimer(catalogue);
    const std::vector<std::string> choices = {fixed.toStdString(), "pipeline=1"};
    const SearchResult result = searchTransformer(work, {machine}, valueOf(parseFixed(choices)), options);
    QVERIFY(!result.plans.empty() && result.plans.front().simulatedSeconds);
    const FoundPlan& plan = result.plans.front();
    const double ratio = *plan.simulatedSeconds / plan.modelSeconds;
    QVERIFY2(ratio > 0.75 && ratio < 1.34,
        qPrintable(QString("simulated %1 s, estimated %2 s").arg(*plan.simulatedSeconds).arg(plan.modelSeconds)));
}

MESHWRIGHT_TEST(TestEstimates)

} // namespace tst_estimates

#include "tst_estimates.moc"
