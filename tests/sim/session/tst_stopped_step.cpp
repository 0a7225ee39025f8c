// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_config.h"
#include "core/support/resources.h"
#include "sim/search/search_request.h"
#include "sim/session/search_study.h"
#include "tests/test_class.h"

#include <chrono>
#include <ctime>
#include <stop_token>
#include <thread>

namespace tst_stopped_step {

using namespace meshwright;
using namespace meshwright::sim;

/// A step that nobody needs any more is given up at once, whatever it is doing: a search keeps its time limit by it. What is counted is the time of
/// processors, as it is the same on a busy computer.
class TestStoppedStep : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void endsAtAnyMoment_data();
    void endsAtAnyMoment();
};

namespace {

double processorSeconds()
{
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Layers of three kinds without a pattern that repeats: a program as long as the model is deep.
SearchWork unlikeLayers()
{
    const char* json = R"({"name": "hybrid", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2,
        "head_dim": 128, "intermediate_size": 2688, "vocab_size": 131072, "n_routed_experts": 64, "num_experts_per_tok": 4,
        "moe_intermediate_size": 2688, "n_shared_experts": 1, "hidden_act": "relu2", "ssm_state_size": 128, "mamba_num_heads": 128,
        "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4, "num_hidden_layers": 36,
        "hybrid_override_pattern": "MEMEM*EMEMEMM*EMEMEMEM*EMEMMEM*EMEME"})";
    SearchWork work;
    work.model = valueOf(readTransformerConfig(json, "config.json"));
    work.sequence = 4096;
    work.globalBatch = 64;
    return work;
}

} // namespace

void TestStoppedStep::endsAtAnyMoment_data()
{
    QTest::addColumn<int>("stages");
    QTest::newRow("one program") << 1;
    QTest::newRow("a pipeline's pieces beside it") << 2;
}

void TestStoppedStep::endsAtAnyMoment()
{
    QFETCH(int, stages);
    const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    const Calibration calibration = valueOf(Calibration::load(resourcesDirectory() / "hardware/calibration.json"));
    const SearchWork work = unlikeLayers();
    const SearchMachine machine = valueOf(machineOf(*valueOf(catalogue.find("h100")).chip, 8, 1, calibration));
    FoundPlan plan;
    plan.mesh
        = stages > 1 ? std::vector<MeshAxis>{{"pipeline", stages}, {"data", 8 / stages}} : std::vector<MeshAxis>{{"data", 8}};
    plan.specs = {{"x", "P('data', None)"}, {"y", "P('data', None)"}};
    plan.recompute = "none";
    plan.pipeline.stages = stages;
    plan.pipeline.microbatches = stages > 1 ? 4.0 : 1.0;
    plan.pipeline.schedule = stages > 1 ? "1f1b" : "none";

    const double begin = processorSeconds();
    const auto whole = simulatedPlan(plan, work, machine, {}, catalogue, {});
    const double all = processorSeconds() - begin;
    QVERIFY2(whole, whole ? "" : describe(whole.error()).c_str());

    constexpr int kMoments = 8;
    for (int moment = 1; moment < kMoments; ++moment) {
        std::stop_source source;
        double stopped = 0.0;
        std::jthread clock([&](const std::stop_token& ends) {
            const double until = processorSeconds() + all * moment / kMoments;
            while (processorSeconds() < until && !ends.stop_requested())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            stopped = processorSeconds();
            source.request_stop();
        });
        const auto simulated = simulatedPlan(plan, work, machine, {}, catalogue, source.get_token());
        const double end = processorSeconds();
        clock.request_stop();
        clock.join();
        if (simulated)
            continue; // done before
        QVERIFY(simulated.error().front().id.empty());
        QVERIFY2(end - stopped < 0.05 + all / 4.0,
            qPrintable(
                QString("stopped after %1 of %2 of its time: ended %3 s later").arg(moment).arg(kMoments).arg(end - stopped)));
    }
}

MESHWRIGHT_TEST(TestStoppedStep)

} // namespace tst_stopped_step

#include "tst_stopped_step.moc"
