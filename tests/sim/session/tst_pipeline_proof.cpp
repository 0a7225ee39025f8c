// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/prove.h"
#include "core/study/study.h"
#include "sim/session/engine.h"
#include "tests/test_class.h"

#include <functional>

namespace tst_pipeline_proof {

using namespace meshwright;
using namespace meshwright::sim;

namespace {

using Settings = std::vector<std::string>;

constexpr const char* kTransformer = R"yaml(meshwright: 1
mesh: {pipe: 2, data: 2, model: 2}
model: {transformer: {layers: 4, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, vocabulary: 64, unroll: true}}
sequence: 16
batch: 24
sharding:
  x: P('data')
  y: P('data')
  embedding.w: P('model', None)
  layers.*.attention: {q.w: "P(None, 'model', None)", k.w: "P(None, 'model', None)", v.w: "P(None, 'model', None)", o.w: "P('model', None, None)"}
  layers.*.ffn: {up.w: "P(None, 'model')", down.w: "P('model', None)"}
optimizer: {adam: {learning_rate: 0.001}}
train: {steps: 1, seed: 0, data: random}
pipeline: {axis: pipe, stages: 2, microbatches: 4}
)yaml";

/// The same, where each piece has a loop over its layers.
std::string looped()
{
    std::string study = kTransformer;
    const auto replace = [&study](const std::string& from, const std::string& to) {
        for (std::size_t at = study.find(from); at != std::string::npos; at = study.find(from, at + to.size()))
            study.replace(at, from.size(), to);
    };
    replace(", unroll: true", "");
    replace("layers.*.", "layers.");
    replace("w: \"P(", "w: \"P(None, ");
    return study;
}

constexpr const char* kMlp = R"yaml(meshwright: 1
mesh: {pipe: 2, data: 2}
model: {mlp: {layers: [16, 32, 32, 32, 8], activation: tanh, loss: mse}}
batch: 24
sharding: {x: [data], y: [data], match: [{path: '*', spec: []}]}
optimizer: {sgd: {learning_rate: 0.1, momentum: 0.9}}
train: {steps: 4, seed: 0, data: random}
pipeline: {axis: pipe, stages: 2, microbatches: 4}
)yaml";

TrainingPhase phaseOf(const char* text, const Settings& settings)
{
    const auto study = readStudy(text, "study", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    auto phases = trainingPhases(*study);
    if (!phases)
        qFatal("%s", describe(phases.error()).c_str());
    return phases->front();
}

/// As it is simulated.
TrainingPhase simulatedPhaseOf(const char* text, const Settings& settings)
{
    const auto study = readStudy(text, "study", settings);
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    const auto built = buildPhase(*study);
    if (!built)
        qFatal("%s", describe(built.error()).c_str());
    const auto phase = pipelineOfPhase(*built);
    if (!phase)
        qFatal("%s", describe(phase.error()).c_str());
    return **phase;
}

DeviceFunction& functionOf(ScheduledProgram& pipeline, std::size_t stage, const char* name)
{
    for (ScheduledFunction& function : pipeline.stages[stage].functions) {
        if (function.device.function.name == name)
            return function.device;
    }
    qFatal("stage %zu has no function %s", stage, name);
}

/// The tasks of one stage, in its order.
std::vector<Task*> tasksOf(ScheduledProgram& pipeline, std::size_t stage)
{
    std::vector<Task*> tasks;
    for (Task& task : pipeline.tasks) {
        if (task.stage == stage)
            tasks.push_back(&task);
    }
    return tasks;
}

Op& lastOp(Function& function, OpKind kind)
{
    for (std::size_t i = function.body().ops.size(); i-- > 0;) {
        Op& op = function[function.body().ops[i]];
        if (op.kind == kind)
            return op;
    }
    qFatal("no such op");
}

/// Two stages have a gradient of the embedding each, of 16 bits, which are added up in 32.
const Settings kTiedMasters
    = {"model.transformer.tied=true", "optimizer={sgd: {learning_rate: 0.01, masters: true}}", "dtype={parameters: bf16}"};

const Settings kChunks = {"model.transformer.predict=every_token", "model.transformer.loss={cross_entropy: {chunks: 4}}"};

/// The loop through the loss of a microbatch, in the function that its value comes from.
Op& lossLoop(Function& function)
{
    return lastOp(function, OpKind::Repeat);
}

constexpr const char* kLooped = "looped"; ///< `looped()`, as it is simulated

using Fault = std::function<void(ScheduledProgram&)>;

} // namespace

class TestPipelineProof : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void pipelinesAreProved_data()
    {
        QTest::addColumn<std::string>("study");
        QTest::addColumn<Settings>("settings");
        for (const char* schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2"}) {
            const std::string set = std::string("pipeline.schedule=") + schedule;
            QTest::addRow("transformer, %s", schedule) << std::string(kTransformer) << Settings{set};
            QTest::addRow("mlp, %s", schedule) << std::string(kMlp) << Settings{set};
        }
        const Settings interleaved = {"pipeline.schedule=interleaved", "pipeline.chunks=2"};
        QTest::newRow("interleaved") << std::string(kTransformer) << interleaved;
        const Settings split
            = {"sharding={x: [data], y: [data], layers.*.attention.q.w: \"P(None, 'model', None)\", "
               "layers.*.attention.o.w: \"P('model', None, None)\", layers.*.ffn.up.w: \"P(None, 'model')\", "
               "layers.*.ffn.down.w: \"P('model', None)\", opt.*.layers.*.ffn.up.w: \"P('data', 'model')\", "
               "act.embedding: \"P('data', 'model', None)\", act.layers.*: \"P('data', 'model', None)\", "
               "act.layers.*.attention: \"P('data', 'model', None)\", act.layers.*.ffn: \"P('data', 'model', None)\", "
               "act.layers.*.ffn.hidden: \"P('data', None, 'model')\"}",
                "dtype={parameters: f32, matmul: bf16, activations: bf16}"};
        QTest::newRow("parts of the sequence, ZeRO-1") << std::string(kTransformer) << split;
        const Settings gradients
            = {"sharding={x: [data], layers.*.ffn.up.w: \"P(None, 'model')\", layers.*.ffn.down.w: \"P('model', None)\", "
               "match: [{path: 'grad.*', divisible: largest_dim, spec: [data]}]}"};
        QTest::newRow("ZeRO-2") << std::string(kTransformer) << gradients;
        QTest::newRow("one microbatch") << std::string(kTransformer) << Settings{"pipeline.microbatches=1"};
        QTest::newRow("three microbatches") << std::string(kTransformer) << Settings{"pipeline.microbatches=3"};
        QTest::newRow("one stage") << std::string(kTransformer)
                                   << Settings{"pipeline={stages: 1, microbatches: 4}", "mesh={data: 2, model: 2}"};
        QTest::newRow("masters") << std::string(kTransformer)
                                 << Settings{"optimizer={adam: {learning_rate: 0.001, masters: true}}",
                                        "dtype={parameters: bf16, matmul: bf16}"};
        QTest::newRow("clipped gradients") << std::string(kTransformer)
                                           << Settings{"optimizer={adam: {learning_rate: 0.001, clip_norm: 1.0}}"};
        QTest::newRow("tied embedding, clipped") << std::string(
            kTransformer) << Settings{"model.transformer.tied=true", "optimizer={adam: {learning_rate: 0.001, clip_norm: 1.0}}"};
        QTest::newRow("tied embedding, masters") << std::string(kTransformer) << kTiedMasters;
        QTest::newRow("dynamic loss scale") << std::string(kTransformer)
                                            << Settings{"optimizer={adam: {learning_rate: 0.001, loss_scale: dynamic}}"};
        std::string experts = kTransformer; // instead of dense blocks
        experts.erase(experts.find("  layers.*.ffn"), experts.find("optimizer:") - experts.find("  layers.*.ffn"));
        QTest::newRow("experts") << experts << Settings{"model.transformer.experts=4", "model.transformer.experts_per_token=2"};
        QTest::newRow("recomputed") << std::string(kTransformer) << Settings{"recompute=full"};
        QTest::newRow("bf16") << std::string(kTransformer)
                              << Settings{"dtype={parameters: f32, matmul: bf16, activations: bf16}"};
        QTest::newRow("a loss in chunks") << std::string(kTransformer) << kChunks;
        QTest::newRow("dropout") << std::string(kTransformer) << Settings{"dropout=0.25"};
        QTest::newRow("dropout, one microbatch, legacy random numbers")
            << std::string(kTransformer) << Settings{"dropout=0.25", "pipeline.microbatches=1", "init.random=legacy"};
        QTest::newRow("dropout, interleaved")
            << std::string(kMlp) << Settings{"dropout=0.25", "pipeline.schedule=interleaved", "pipeline.chunks=2"};
        QTest::newRow("learned positions in zigzag order")
            << std::string(kTransformer)
            << Settings{"model.transformer.position=learned", "model.transformer.attention={context: ring, zigzag: 2}"};
        QTest::newRow("states, kept and made again")
            << std::string(kTransformer)
            << Settings{"model={transformer: {layers: 4, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, vocabulary: 64, kinds: "
                        "[{mixer: delta_rule, state_heads: 4, state_key_heads: 2, state_key_dim: 4, state_value_dim: 4, "
                        "convolution: 2}, {}, {mixer: state_space, state_heads: 4, state_key_heads: 2, state_key_dim: 4, "
                        "state_value_dim: 4}], pattern: [0, 0, 1, 2]}}",
                   "sequence=192", "sharding={x: [data], y: [data]}"};
    }

    void pipelinesAreProved()
    {
        QFETCH(std::string, study);
        QFETCH(Settings, settings);
        const TrainingPhase phase = phaseOf(study.c_str(), settings);
        const Proof proof = prove(phase.program, phase.scheduled);
        QVERIFY2(proof.isProved(), firstObstacle(proof).c_str());
        QCOMPARE(proof.functions.size(), std::size_t{3});
        QCOMPARE(proof.devices, study == kMlp ? 4 : phase.scheduled.stages.size() == 1 ? 4 : 8);
    }

    void loopsAreProved_data()
    {
        QTest::addColumn<Settings>("settings");
        for (const char* schedule : {"gpipe", "1f1b", "zb_h1"})
            QTest::newRow(schedule) << Settings{std::string("pipeline.schedule=") + schedule};
        QTest::newRow("interleaved") << Settings{"pipeline.schedule=interleaved", "pipeline.chunks=2"};
        QTest::newRow("uneven stages") << Settings{"pipeline.layers=[3, 1]"};
        QTest::newRow("one stage") << Settings{"pipeline={stages: 1, microbatches: 4}", "mesh={data: 2, model: 2}"};
        QTest::newRow("tied embedding, clipped")
            << Settings{"model.transformer.tied=true", "optimizer={adam: {learning_rate: 0.001, clip_norm: 1.0}}"};
        QTest::newRow("tied embedding, masters") << kTiedMasters;
        QTest::newRow("dynamic loss scale") << Settings{"optimizer={adam: {learning_rate: 0.001, loss_scale: dynamic}}"};
        QTest::newRow("recomputed") << Settings{"recompute=full"};
        QTest::newRow("bf16") << Settings{"dtype={parameters: f32, matmul: bf16, activations: bf16}"};
        QTest::newRow("a loss in chunks") << kChunks;
        QTest::newRow("dropout") << Settings{"dropout=0.25"};
        QTest::newRow("states of each optimizer part on data")
            << Settings{"sharding={x: [data], y: [data], opt.*.layers.ffn.up.w: \"P(None, 'data', 'model')\", "
                        "layers.ffn.up.w: \"P(None, None, 'model')\", layers.ffn.down.w: \"P(None, 'model', None)\"}"};
        QTest::newRow("parameters split over data")
            << Settings{"sharding={x: [data], y: [data], match: [{path: \"layers.*.w\", spec: [null, data]}]}"};
        const std::string kinds
            = "kv_heads: 2, ffn: 64, vocabulary: 64, kinds: [{mixer: delta_rule, state_heads: 4, state_key_heads: "
              "2, state_key_dim: 4, state_value_dim: 4, convolution: 2}, {}], pattern: ";
        QTest::newRow("kinds in turn") << Settings{"model={transformer: {layers: 8, hidden: 32, heads: 4, " + kinds + "[0, 1]}}",
            "sequence=128", "sharding={x: [data], y: [data]}"};
        QTest::newRow("a turn that is cut") << Settings{
            "model={transformer: {layers: 6, hidden: 32, heads: 4, " + kinds + "[0, 0, 1]}}", "pipeline.layers=[2, 4]",
            "sharding={x: [data], y: [data]}"};
    }

    /// Where layers are a loop, each turn adds its row to the sums of gradients.
    void loopsAreProved()
    {
        QFETCH(Settings, settings);
        const TrainingPhase phase = simulatedPhaseOf(looped().c_str(), settings);
        const Proof proof = prove(phase.program, phase.scheduled);
        QVERIFY2(proof.isProved(), firstObstacle(proof).c_str());
        QCOMPARE(proof.functions.size(), std::size_t{3});
    }

    /// Right in every function and wrong as a whole, or wrong in one function of one stage.
    void faultsAreRejected_data()
    {
        QTest::addColumn<std::string>("study");
        QTest::addColumn<Settings>("settings");
        QTest::addColumn<Fault>("fault");
        QTest::addColumn<QString>("words");
        const Settings none;
        const Settings clipped = {"optimizer={adam: {learning_rate: 0.001, clip_norm: 1.0}}"};
        const auto add = [](const char* name, const char* study, const Settings& settings, const char* words, Fault fault) {
            QTest::newRow(name) << std::string(study) << settings << fault << QString(words);
        };
        const Settings masters
            = {"optimizer={sgd: {learning_rate: 0.1, masters: true}}", "dtype={parameters: bf16, matmul: bf16}"};
        add("a parameter that lies where no step looks for it", kMlp, masters, "leaves layers.0.w as it was",
            [](ScheduledProgram& pipeline) {
                Function& update = functionOf(pipeline, 0, "update").function;
                const auto result = std::ranges::find(update.resultNames, "new.layers.0.w") - update.resultNames.begin();
                std::erase_if(update.donations,
                    [&](const Donation& donation) { return donation.result == static_cast<std::size_t>(result); });
            });
        add("a microbatch that is never taken backward", kMlp, none, "has no backward.0 task", [](ScheduledProgram& pipeline) {
            std::erase_if(pipeline.tasks,
                [](const Task& task) { return task.stage == 0 && task.kind == TaskKind::Backward && task.microbatch == 3; });
        });
        add("a microbatch that is counted twice", kMlp, none, "twice",
            [](ScheduledProgram& pipeline) { tasksOf(pipeline, 1)[3]->microbatch = 0; });
        add("backward before forward", kMlp, none, "before the forward task", [](ScheduledProgram& pipeline) {
            const auto tasks = tasksOf(pipeline, 1);
            std::swap(*tasks[0], *tasks[1]);
        });
        add("stages that wait for each other", kMlp, none, "waits for ever", [](ScheduledProgram& pipeline) {
            const auto tasks = tasksOf(pipeline, 0); // the last microbatch goes forward when it has come back
            std::vector<Task> order;
            for (const Task* task : tasks)
                order.push_back(*task);
            std::stable_sort(order.begin(), order.end(), [](const Task& a, const Task& b) {
                const auto place = [](const Task& task) {
                    return task.kind == TaskKind::Update ? 2 : task.kind == TaskKind::Forward && task.microbatch == 3 ? 1 : 0;
                };
                return place(a) < place(b);
            });
            for (std::size_t i = 0; i < order.size(); ++i)
                *tasks[i] = order[i];
        });
        add("an update before the last gradient", kMlp, none, "after its update", [](ScheduledProgram& pipeline) {
            const auto tasks = tasksOf(pipeline, 0);
            std::swap(*tasks[tasks.size() - 1], *tasks[tasks.size() - 2]);
        });
        add("a norm that one stage does not share", kTransformer, clipped, "", [](ScheduledProgram& pipeline) {
            std::erase_if(pipeline.tasks, [](const Task& task) { return task.stage == 0 && task.kind == TaskKind::ShareNorm; });
        });
        add("stages on meshes of other axes", kMlp, none, "different axes", [](ScheduledProgram& pipeline) {
            std::vector<MeshAxis> axes = pipeline.stages[1].mesh().axes();
            axes.front().size *= 2;
            pipeline.stages[1].meshes.front().mesh = valueOf(Mesh::create(axes));
        });
        add("a norm that is shared before the gradients are summed", kTransformer,
            {"model.transformer.tied=true", "optimizer={adam: {learning_rate: 0.001, clip_norm: 1.0}}"}, "too late",
            [](ScheduledProgram& pipeline) {
                const auto tasks = tasksOf(pipeline, 0);
                const auto at = [&](TaskKind kind) {
                    return *std::find_if(tasks.begin(), tasks.end(), [&](const Task* task) { return task->kind == kind; });
                };
                std::swap(*at(TaskKind::TotalGradients), *at(TaskKind::ShareNorm));
            });
        add("all microbatches drop what the first one does", kMlp, {"dropout=0.25"}, "", [](ScheduledProgram& pipeline) {
            Op& mask = lastOp(functionOf(pipeline, 0, "forward.0").function, OpKind::DynamicSlice);
            mask.operands[1] = mask.operands[2];
        });
        add("a loss that is not divided by the microbatches", kMlp, none, "the source computes no such value",
            [](ScheduledProgram& pipeline) {
                for (Op& op : functionOf(pipeline, 1, "backward.0").function.ops) {
                    if (op.kind != OpKind::Constant)
                        continue;
                    auto& constant = op.as<ConstantAttributes>();
                    if (constant.data == ConstantData{0.25})
                        constant.data.value = 1.0;
                }
            });
        add("gradients that are not reduced", kMlp, none, "partial", [](ScheduledProgram& pipeline) {
            Op& op = lastOp(functionOf(pipeline, 0, "update").function, OpKind::AllReduce);
            op.kind = OpKind::OptimizationBarrier;
            op.attributes = {};
        });
        add("a sum that forgets the microbatches before", kMlp, none, "does not add to acc.", [](ScheduledProgram& pipeline) {
            Function& backward = functionOf(pipeline, 0, "backward.0").function;
            ValueId& sum = backward.body().results.front();
            sum = backward[backward[sum].producer].operands.back();
        });
        add("a loop that forgets the microbatches before", kLooped, none, "does not add to acc.", [](ScheduledProgram& pipeline) {
            Function& backward = functionOf(pipeline, 0, "backward.0").function;
            Op& loop = lastOp(backward, OpKind::Repeat);
            ValueId& sum = backward[loop.bodies.front()].results.back();
            sum = backward[backward[sum].producer].operands.back();
        });
        add("a loop that adds to another sum", kLooped, none, "does not add to acc.", [](ScheduledProgram& pipeline) {
            Function& backward = functionOf(pipeline, 0, "backward.0").function;
            Op& loop = lastOp(backward, OpKind::Repeat);
            const auto sumOf = [&](const char* name) {
                return std::find(loop.operands.begin(), loop.operands.end(), *backward.findValue(name));
            };
            std::iter_swap(sumOf("acc.layers.0-1.attention.k.w"), sumOf("acc.layers.0-1.attention.v.w"));
        });
        add("a loop that adds twice", kLooped, none, "", [](ScheduledProgram& pipeline) {
            Function& backward = functionOf(pipeline, 0, "backward.0").function;
            Op& loop = lastOp(backward, OpKind::Repeat);
            const ValueId sum = backward[loop.bodies.front()].results.back();
            Op& twice = backward[backward[sum].producer];
            twice.operands.back() = twice.operands.front();
        });
        add("an update by the wrong sign", kMlp, none, "the source computes no such value", [](ScheduledProgram& pipeline) {
            lastOp(functionOf(pipeline, 0, "update").function, OpKind::Subtract).kind = OpKind::Add;
        });
        add("a loss of the last chunk alone", kTransformer, kChunks, "", [](ScheduledProgram& pipeline) {
            Function& forward = functionOf(pipeline, 1, "forward.0").function;
            ValueId& sum = forward[lossLoop(forward).bodies.front()].results.front();
            sum = forward[forward[sum].producer].operands.back();
        });
        add("a loss that begins at one", kTransformer, kChunks, "", [](ScheduledProgram& pipeline) {
            Function& forward = functionOf(pipeline, 1, "forward.0").function;
            Op& begin = forward[forward[lossLoop(forward).operands.front()].producer];
            begin.as<ConstantAttributes>().data.value = 1.0;
        });
        add("a loss with a chunk less", kTransformer, kChunks, "", [](ScheduledProgram& pipeline) {
            Function& forward = functionOf(pipeline, 1, "forward.0").function;
            lossLoop(forward).as<RepeatAttributes>().count = 3;
        });
        add("layers in the wrong order", kTransformer, none, "", [](ScheduledProgram& pipeline) {
            Function& forward = functionOf(pipeline, 1, "forward.0").function;
            std::swap(
                forward[*forward.findValue("layers.2.ffn.up.w")].name, forward[*forward.findValue("layers.3.ffn.up.w")].name);
        });
        add("a tied gradient that one stage keeps to itself", kTransformer, {"model.transformer.tied=true"}, "",
            [](ScheduledProgram& pipeline) {
                Op& op = lastOp(functionOf(pipeline, 0, "total").function, OpKind::Add);
                op.operands[1] = op.operands[0];
            });
    }

    void faultsAreRejected()
    {
        QFETCH(std::string, study);
        QFETCH(Settings, settings);
        QFETCH(Fault, fault);
        QFETCH(QString, words);
        TrainingPhase phase = study == kLooped ? simulatedPhaseOf(looped().c_str(), settings) : phaseOf(study.c_str(), settings);
        fault(phase.scheduled);
        const Proof proof = prove(phase.program, phase.scheduled);
        QVERIFY(!proof.isProved());
        QString all;
        for (const FunctionProof& function : proof.functions) {
            for (const ProofObstacle& obstacle : function.obstacles)
                all += QString::fromStdString(obstacle.reason) + "\n";
        }
        QVERIFY2(all.contains(words), qPrintable(all));
    }
};

MESHWRIGHT_TEST(TestPipelineProof)

} // namespace tst_pipeline_proof

#include "tst_pipeline_proof.moc"
