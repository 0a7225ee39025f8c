// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/support/file.h"
#include "core/support/resources.h"
#include "sim/plan/launch_commands.h"
#include "sim/search/search_request.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <algorithm>
#include <array>

namespace tst_launch_commands {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// Plans in the options of launchers. The options are those of the launchers' own sources (launch_commands.cpp names them).
class TestLaunchCommands : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void commands_data();
    void commands();
    void refused_data();
    void refused();
};

namespace {

struct Wanted {
    std::string model;
    std::string chip;
    std::int64_t chips = 1; ///< of each slice
    std::int64_t slices = 1;
    std::vector<MeshAxis> mesh;
    std::string recompute = "full";
    int zeroStage = 3;
    double microbatch = 1.0;
    PipelinePlan pipeline = {1, 1, 1.0, "1f1b"};
    bool sequenceParallel = false;
    std::int64_t lossChunks = 1;
    LaunchChoices choices = {};
    std::int64_t sequence = 4096;
    bool exchangesHeads = false;
    bool gathersContext = false;
    std::string stack = {};
};

LaunchCommand commandOf(const Wanted& wanted, const std::string& framework)
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    const std::string file = wanted.model + ".json";
    SearchWork work;
    work.model = valueOf(readTransformerConfig(valueOf(readFile(resourcesDirectory() / "models" / file)), file));
    work.sequence = wanted.sequence;
    work.globalBatch = 256;
    FoundPlan plan;
    plan.mesh = wanted.mesh;
    plan.recompute = wanted.recompute;
    plan.zeroStage = wanted.zeroStage;
    plan.microbatch = wanted.microbatch;
    plan.pipeline = wanted.pipeline;
    plan.sequenceParallel = wanted.sequenceParallel;
    plan.lossChunks = wanted.lossChunks;
    plan.exchangesHeads = wanted.exchangesHeads;
    plan.gathersContext = wanted.gathersContext;
    const Chip& chip = *valueOf(catalogue.find(wanted.chip)).chip;
    const auto machine = valueOf(machineOf(chip, wanted.chips, wanted.slices, valueOf(defaultCalibration()), wanted.stack));
    const auto commands = launchCommands(plan, work, machine, wanted.choices);
    const auto found = std::ranges::find(commands, framework, &LaunchCommand::framework);
    return found == commands.end() ? LaunchCommand{framework, {}, "no such framework"} : *found;
}

void addColumns()
{
    QTest::addColumn<Wanted>("wanted");
    QTest::addColumn<QString>("framework");
    QTest::addColumn<QString>("words");
}

} // namespace

void TestLaunchCommands::commands_data()
{
    addColumns();
    const std::string sizes
        = "base_num_decoder_layers=32 base_emb_dim=4096 base_num_query_heads=32 base_num_kv_heads=8 head_dim=128 "
          "base_mlp_dim=14336 vocab_size=128256 rope_max_timescale=500000 ";
    QTest::newRow("MaxText, one slice") << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 32}, {"tensor", 2}}, "full", 3, 1.0,
        {1, 1, 4.0, "1f1b"}} << "maxtext"
                                        << QString::fromStdString("python3 -m maxtext.trainers.pre_train.train " + sizes
                                               + "ici_fsdp_parallelism=32 ici_tensor_parallelism=2 max_target_length=4096 "
                                                 "per_device_batch_size=1 gradient_accumulation_steps=4 remat_policy=full");
    QTest::newRow("MaxText, two slices, which the outermost axis joins")
        << Wanted{"llama3_8b", "v5e", 64, 2, {{"data", 4}, {"fsdp", 32}}} << "maxtext"
        << "dcn_data_parallelism=2 ici_data_parallelism=2 ici_fsdp_parallelism=32 max_target_length=4096 per_device_batch_size=2 "
           "remat_policy=full";
    QTest::newRow("MaxText, hosts of GPUs") << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 64}}} << "maxtext"
                                            << "hardware=gpu dcn_fsdp_parallelism=8 ici_fsdp_parallelism=8 ";
    QTest::newRow("MaxText, data alone") << Wanted{"llama3_8b", "v5p", 64, 1, {{"data", 64}}, "full", 0} << "maxtext"
                                         << "ici_data_parallelism=64 ici_fsdp_parallelism=1 ";
    QTest::newRow("MaxText, experts as Mixtral has them")
        << Wanted{"mixtral_8x7b", "v5p", 64, 1, {{"fsdp", 8}, {"expert", 8}}} << "maxtext"
        << "base_mlp_dim=14336 vocab_size=32000 rope_max_timescale=1000000 decoder_block=mixtral num_experts=8 "
           "num_experts_per_tok=2 base_moe_mlp_dim=14336 "
           "ici_fsdp_parallelism=8 ici_expert_parallelism=8 ";
    QTest::newRow("MaxText, other blocks") << Wanted{"gemma_7b", "v5p", 64, 1, {{"fsdp", 64}}} << "maxtext"
                                           << "pre_train.train model_name=MODEL ici_fsdp_parallelism=64 ";
    QTest::newRow("MaxText, GPipe: all layers of a stage at once")
        << Wanted{"llama3_8b", "v5e", 64, 1, {{"pipeline", 4}, {"fsdp", 16}}, "full", 3, 1.0, {4, 1, 16.0, "gpipe"}} << "maxtext"
        << "ici_pipeline_parallelism=4 ici_fsdp_parallelism=16 max_target_length=4096 per_device_batch_size=4 "
           "num_pipeline_microbatches=16 "
           "num_layers_per_pipeline_stage=8 remat_policy=full";
    QTest::newRow("torchtitan, a registered model")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"data", 2}, {"fsdp", 32}}, "selective", 3, 2.0} << "torchtitan"
        << "torchrun --nnodes 8 --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "
           "--parallelism.data_parallel_replicate_degree 2 "
           "--parallelism.data_parallel_shard_degree 32 --parallelism.tensor_parallel_degree 1 "
           "--parallelism.context_parallel_degree 1 "
           "--parallelism.pipeline_parallel_degree 1 --training.max_context_length 4096 "
           "--training.num_tokens_per_microbatch_per_dp_rank 8192 "
           "--training.num_tokens_per_train_step 1048576 --loss.num_chunks 1 activation-checkpoint:selective";
    QTest::newRow("torchtitan, another model") << Wanted{"mistral_7b", "h100", 64, 1, {{"fsdp", 64}}} << "torchtitan"
                                               << "--module MODULE --config CONFIG ";
    QTest::newRow("torchtitan, tensors without sequences")
        << Wanted{"llama3_70b", "h100", 64, 1, {{"fsdp", 8}, {"tensor", 8}}} << "torchtitan"
        << "--config llama3_70b --parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 8 "
           "--parallelism.tensor_parallel_degree 8 --parallelism.context_parallel_degree 1 "
           "--parallelism.pipeline_parallel_degree 1 "
           "--parallelism.no-enable-sequence-parallel ";
    QTest::newRow("torchtitan, a pipeline")
        << Wanted{"llama3_405b", "h100", 512, 1, {{"pipeline", 8}, {"fsdp", 8}, {"tensor", 8}}, "full", 3, 1.0,
               {8, 1, 32.0, "1f1b"}, true}
        << "torchtitan"
        << "--parallelism.pipeline_parallel_schedule 1F1B --parallelism.num_pp_microbatches 32 --training.disable_cuda_graphs "
           "--training.max_context_length 4096 --training.num_tokens_per_microbatch_per_dp_rank 4096 ";
    QTest::newRow("torchtitan, experts")
        << Wanted{"deepseek_v3", "h100", 512, 1, {{"fsdp", 64}, {"expert", 8}}} << "torchtitan"
        << "--module deepseek_v3 --config deepseek_v3_671b --parallelism.data_parallel_replicate_degree 1 "
           "--parallelism.data_parallel_shard_degree 512 ";
    QTest::newRow("Megatron-LM, replicas of a split model")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"data", 2}, {"fsdp", 32}}, "none"} << "megatron"
        << "--use-megatron-fsdp --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy optim_grads_params "
           "--num-distributed-optimizer-instances 2";
    QTest::newRow("Megatron-LM's FSDP with several connections")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 32}, {"tensor", 2}}, "none", 3, 1.0, {1, 1, 1.0, "1f1b"}, true}
        << "megatron"
        << "CUDA_DEVICE_MAX_CONNECTIONS=8 torchrun ";
    QTest::newRow("Megatron-LM's tensors with one connection")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"data", 32}, {"tensor", 2}}, "none", 1} << "megatron"
        << "CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun ";
    QTest::newRow("Megatron-LM's latent heads are no groups")
        << Wanted{"deepseek_v2_lite", "h100", 64, 1, {{"data", 64}}, "none", 1} << "megatron"
        << "--untie-embeddings-and-output-weights --disable-bias-linear --multi-latent-attention ";
    QTest::newRow("torchtitan, the loss in chunks")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 64}}, "selective_op", 3, 1.0, {1, 1, 1.0, "1f1b"}, false, 16}
        << "torchtitan"
        << " --loss.num_chunks 16 activation-checkpoint:selective";
    QTest::newRow("torchtitan, three chunks a stage")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"pipeline", 2}, {"fsdp", 32}}, "full", 3, 1.0, {2, 3, 8.0, "interleaved"}}
        << "torchtitan"
        << "--parallelism.pipeline_parallel_layers_per_stage 6 "; // 32 layers and 2 for the ends in 6 pieces
    QTest::newRow("MaxText, the logits in tiles")
        << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}, "minimal_with_context", 3, 1.0, {1, 1, 1.0, "1f1b"}, false, 4}
        << "maxtext"
        << " num_vocab_tiling=4 remat_policy=minimal_with_context";
    for (const char* policy :
        {"save_dot_with_context_except_mlp", "save_dot_except_mlpwi", "save_out_proj", "qkv_proj_offloaded", "minimal_offloaded"})
        QTest::addRow("MaxText, %s", policy)
            << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}, policy} << "maxtext" << QString(" remat_policy=%1").arg(policy);
    QTest::newRow("MaxText, what attention makes alone")
        << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}, "save_context"} << "maxtext"
        << " remat_policy=custom context=device";
    QTest::newRow("Megatron-LM, norms and dense blocks again")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"data", 64}}, "save_dot_with_context_except_mlp", 1} << "megatron"
        << " --recompute-granularity selective --recompute-modules layernorm mlp";
    QTest::newRow("MaxText, values by name")
        << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}, "custom", 3, 1.0, {1, 1, 1.0, "1f1b"}, false, 1,
               {0.0, {}, {"attention.mixed", "ffn.gate"}, {"input", "attention.q"}}}
        << "maxtext"
        << " remat_policy=custom context=device mlpwi_0=device decoder_layer_input=offload query_proj=offload";
    Wanted ofContext{"llama3_8b", "h100", 64, 1, {{"data", 32}, {"context", 2}}, "none", 1};
    QTest::newRow("MaxText, a ring") << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 32}, {"context", 2}}} << "maxtext"
                                     << " context_parallel_strategy=ring ";
    ofContext.exchangesHeads = true;
    QTest::newRow("Megatron-LM, heads over context ranks") << ofContext << "megatron"
                                                           << " --cp-comm-type a2a";
    ofContext.exchangesHeads = false;
    ofContext.gathersContext = true;
    QTest::newRow("Megatron-LM, keys and values gathered") << ofContext << "megatron"
                                                           << " --cp-comm-type all_gather";
    Wanted ofStack{"llama3_8b", "h100", 64, 1, {{"data", 64}}, "none", 1};
    ofStack.stack = "megatron";
    QTest::newRow("Megatron-LM, its own layers") << ofStack << "megatron"
                                                 << " --transformer-impl local";
    Wanted ofOptimizer{"llama3_8b", "h100", 64, 1, {{"data", 64}}, "full", 0};
    AdamOptimizer adam;
    adam.beta2 = 0.95;
    adam.update = {.weightDecay = 0.1, .clipNorm = 0.5};
    ofOptimizer.choices.optimizer = adam;
    QTest::newRow("Megatron-LM, what Adam says") << ofOptimizer << "megatron"
                                                 << " --clip-grad 0.5 --weight-decay 0.1 --adam-beta2 0.95 ";
    ofOptimizer.choices.narrowWeights = true;
    QTest::newRow("MaxText, what Adam says")
        << ofOptimizer << "maxtext"
        << " weight_dtype=bfloat16 gradient_clipping_threshold=0.5 adam_weight_decay=0.1 adam_b2=0.95 ";
    QTest::newRow("torchtitan, what Adam says") << ofOptimizer << "torchtitan"
                                                << " --training.dtype bfloat16 --training.max_norm 0.5 ";
    ofOptimizer.choices.optimizer = SgdOptimizer{};
    QTest::newRow("MaxText, another optimizer") << ofOptimizer << "maxtext"
                                                << " opt_type=sgd ";
    QTest::newRow("Megatron-LM, interleaved") << Wanted{"llama3_70b", "h100", 64, 1,
        {{"pipeline", 4}, {"data", 2}, {"tensor", 8}}, "full", 1, 1.0, {4, 5, 16.0, "interleaved"}, true}
                                              << "megatron"
                                              << "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 "
                                                 "--context-parallel-size 1 --micro-batch-size 1 --global-batch-size 256 --bf16 "
                                                 "--attention-dropout 0 --hidden-dropout 0 "
                                                 "--sequence-parallel --use-distributed-optimizer "
                                                 "--num-layers-per-virtual-pipeline-stage 4 --recompute-granularity full ";
    QTest::newRow("accelerate, fully sharded")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 64}}, "full", 3, 2.0, {1, 1, 2.0, "1f1b"}} << "accelerate"
        << "accelerate launch --num_machines 8 --num_processes 64 --mixed_precision bf16 --use_fsdp "
           "--fsdp_sharding_strategy FULL_SHARD --fsdp_activation_checkpointing true train.py "
           "--per_device_train_batch_size 2 --gradient_accumulation_steps 2";
}

void TestLaunchCommands::commands()
{
    QFETCH(Wanted, wanted);
    QFETCH(QString, framework);
    QFETCH(QString, words);
    const LaunchCommand launch = commandOf(wanted, framework.toStdString());
    QVERIFY2(launch.command.find(words.toStdString()) != std::string::npos, (launch.command + launch.whyNot).c_str());
    QVERIFY(launch.whyNot.empty() && launch.command.find('\n') == std::string::npos);
}

void TestLaunchCommands::refused_data()
{
    addColumns();
    const Wanted fsdp{"llama3_8b", "h100", 64, 1, {{"fsdp", 64}}, "none"};
    QTest::newRow("MaxText keeps something always") << fsdp << "maxtext"
                                                    << "no remat_policy that is \"none\"";
    QTest::newRow("MaxText, axes that do not fall on hosts")
        << Wanted{"llama3_8b", "h100", 24, 1, {{"fsdp", 4}, {"tensor", 6}}} << "maxtext"
        << "do not divide into 3 hosts";
    QTest::newRow("MaxText's states") << Wanted{"llama3_8b", "v5e", 64, 1, {{"data", 64}}, "full", 1} << "maxtext"
                                      << "together";
    QTest::newRow("MaxText's pipelines") << Wanted{"llama3_8b", "v5e", 64, 1, {{"pipeline", 4}, {"fsdp", 16}}, "full", 3, 1.0,
        {4, 1, 16.0, "1f1b"}} << "maxtext"
                                         << "\"1f1b\"";
    QTest::newRow("torchtitan on TPUs") << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}} << "torchtitan"
                                        << "GPUs";
    QTest::newRow("torchtitan, ZeRO-1") << Wanted{"llama3_8b", "h100", 64, 1, {{"data", 64}}, "full", 1} << "torchtitan"
                                        << "ZeRO-2";
    QTest::newRow("Megatron-LM, split weights in a pipeline")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"pipeline", 4}, {"fsdp", 16}}, "full", 3, 1.0, {4, 1, 16.0, "1f1b"}} << "megatron"
        << "without a pipeline";
    QTest::newRow("MaxText, a value without a name") << Wanted{"llama3_8b", "v5e", 64, 1, {{"fsdp", 64}}, "custom", 3, 1.0,
        {1, 1, 1.0, "1f1b"}, false, 1, {0.0, {}, {"ffn.hidden"}, {}}}
                                                     << "maxtext"
                                                     << "no name for the value ffn.hidden";
    QTest::newRow("Megatron-LM, experts and tensors without sequences")
        << Wanted{"mixtral_8x7b", "h100", 64, 1, {{"data", 4}, {"expert", 8}, {"tensor", 2}}, "full", 1} << "megatron"
        << "experts beside tensor 2";
    QTest::newRow("torchtitan, experts of ranks that share no weights")
        << Wanted{"deepseek_v3", "h100", 64, 1, {{"data", 8}, {"expert", 8}}, "full", 0} << "torchtitan"
        << "expert 8 does not divide 1";
    QTest::newRow("torchtitan, 34 layers in 8 pieces")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"pipeline", 2}, {"fsdp", 32}}, "full", 3, 1.0, {2, 4, 8.0, "interleaved"}}
        << "torchtitan"
        << "does not divide 32 layers among 8 pieces";
    QTest::newRow("torchtitan, 8 heads for 16 ranks")
        << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 4}, {"tensor", 16}}, "full", 3} << "torchtitan"
        << "16 does not divide 8";
    for (const char* framework : {"maxtext", "torchtitan", "megatron"})
        QTest::addRow("parts of sequences that are not equal, %s", framework)
            << Wanted{"gpt2", "h100", 24, 1, {{"data", 8}, {"tensor", 3}}, "full", 0, 1.0, {1, 1, 1.0, "1f1b"}, true} << framework
            << "sequence parallelism over tensor 3 does not divide sequences of 4096 tokens";
    Wanted ulysses{"llama3_8b", "h100", 64, 1, {{"fsdp", 32}, {"context", 2}}};
    ulysses.exchangesHeads = true;
    QTest::newRow("torchtitan, heads over context ranks") << ulysses << "torchtitan"
                                                          << "does not exchange heads";
    QTest::newRow("MaxText, heads over context ranks of GPUs") << ulysses << "maxtext"
                                                               << "on TPUs only";
    QTest::newRow("accelerate, tensors") << Wanted{"llama3_8b", "h100", 64, 1, {{"fsdp", 8}, {"tensor", 8}}} << "accelerate"
                                         << "splits data";
}

void TestLaunchCommands::refused()
{
    QFETCH(Wanted, wanted);
    QFETCH(QString, framework);
    QFETCH(QString, words);
    const LaunchCommand launch = commandOf(wanted, framework.toStdString());
    QVERIFY2(launch.whyNot.find(words.toStdString()) != std::string::npos, (launch.command + launch.whyNot).c_str());
    QVERIFY(launch.command.empty());
}

MESHWRIGHT_TEST(TestLaunchCommands)

} // namespace tst_launch_commands

#include "tst_launch_commands.moc"
