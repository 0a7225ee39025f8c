// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/model_file.h"
#include "core/support/checked.h"
#include "core/support/file.h"
#include "core/support/resources.h"
#include "core/support/text.h"
#include "sim/plan/launch_commands.h"
#include "sim/plan/launch_plan.h"
#include "sim/search/search_request.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QTemporaryDir>

#include <algorithm>
#include <array>

namespace tst_launch_line {

using namespace meshwright;
using namespace meshwright::sim;
using namespace meshwright::tests;

/// Launch lines of other frameworks, read into plans. The options and their defaults are those of the frameworks' own sources (the readers name them).
class TestLaunchLine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void recognised_data();
    void recognised();
    void options_data();
    void options();
    void plans_data();
    void plans();
    void models_data();
    void models();
    void settings_data();
    void settings();
    void refused_data();
    void refused();
    void refusedBySomeReleases_data();
    void refusedBySomeReleases();
    void configBesideTheScript();
    void ownCommandsComeBack_data();
    void ownCommandsComeBack();
    void unevenStagesComeBack_data();
    void unevenStagesComeBack();
};

namespace {

const Catalogue& catalogue()
{
    static const Catalogue catalogue = valueOf(Catalogue::load(resourcesDirectory() / "hardware/catalogue.json"));
    return catalogue;
}

SearchMachine machineOfChips(const std::string& chip, std::int64_t chips, std::int64_t slices = 1)
{
    return valueOf(machineOf(*valueOf(catalogue().find(chip)).chip, chips, slices, valueOf(defaultCalibration())));
}

Result<LaunchedPlan> planned(
    const QString& line, std::int64_t chips = 64, const std::string& file = "run.sh", const std::string& chip = "h100")
{
    const auto launch = readLaunchLine(file, line.toStdString());
    return launch ? planOf(*launch, file, machineOfChips(chip, chips)) : launch.error();
}

/// "data=4 tensor=2, 256 x 4096, 1F1B 8 x 2, full, ZeRO 1".
QString layoutOf(const LaunchedPlan& launched)
{
    const FoundPlan& plan = launched.plan;
    QStringList words;
    for (const MeshAxis& axis : plan.mesh)
        words << QString("%1=%2").arg(text(axis.name)).arg(axis.size);
    QString said = words.join(' ') + QString(", %1 x %2, ").arg(launched.work.globalBatch).arg(launched.work.sequence);
    if (plan.pipeline.stages > 1)
        said += QString("%1%2 ")
                    .arg(text(plan.pipeline.schedule))
                    .arg(plan.pipeline.chunks > 1 ? QString("/%1").arg(plan.pipeline.chunks) : QString());
    said += QString("%1 x %2, %3, ZeRO %4")
                .arg(plan.pipeline.microbatches)
                .arg(plan.microbatch)
                .arg(text(plan.recompute))
                .arg(plan.zeroStage);
    return said + (plan.sequenceParallel ? ", SP" : "") + (plan.exchangesHeads ? ", Ulysses" : "")
        + (plan.gathersContext ? ", gather" : "");
}

const QString kGpt = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --vocab-size 50304 --bf16 --hidden-dropout 0 "
                     "--attention-dropout 0 ";
const QString kBatch = "--seq-length 4096 --micro-batch-size 1 --global-batch-size 256 ";
const QString kMegatron = "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py " + kGpt + kBatch;
const QString kTitan = "torchrun --nnodes 8 --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b ";
const QString kMaxText = "python3 -m MaxText.train src/maxtext/configs/base.yml model_name=llama3.1-8b ";

} // namespace

void TestLaunchLine::recognised_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("text");
    QTest::addColumn<bool>("isLaunch");

    QTest::newRow("Megatron-LM") << "run.sh"
                                 << "torchrun pretrain_gpt.py --bf16" << true;
    QTest::newRow("Megatron-LM's Mamba") << "run.sh"
                                         << "python ../pretrain_mamba.py" << true;
    QTest::newRow("by a variable") << "run.sh"
                                   << "P=/opt/megatron/pretrain_gpt.py\nsrun python $P ${ARGS}" << true;
    QTest::newRow("torchtitan") << "job.slurm"
                                << "srun torchrun -m torchtitan.train" << true;
    QTest::newRow("torchtitan's script") << ""
                                         << "NGPU=8 ./run_train.sh" << true;
    QTest::newRow("torchtitan's TOML") << "llama3_8b.toml"
                                       << "[model]\nname = 'llama3'\n"
                                       << true;
    QTest::newRow("its text") << ""
                              << "[job]\n[training]\nseq_len = 8192\n[parallelism]\n"
                              << true;
    QTest::newRow("MaxText") << ""
                             << "python3 -m MaxText.train configs/base.yml run_name=a" << true;
    QTest::newRow("MaxText by its file") << "x.sh"
                                         << "python3 MaxText/train.py MaxText/configs/base.yml" << true;
    QTest::newRow("accelerate, of which it is said that it does not say enough") << ""
                                                                                 << "accelerate launch train.py" << true;
    QTest::newRow("settings of DeepSpeed, likewise") << "ds.json"
                                                     << R"({"zero_optimization": {"stage": 3}})" << true;
    QTest::newRow("settings of accelerate, likewise") << "a.yaml"
                                                      << "distributed_type: FSDP\nnum_processes: 8\n"
                                                      << true;
    QTest::newRow("words about it") << ""
                                    << "the pretrained model is in MaxText" << false;
    QTest::newRow("a comment") << ""
                               << "# python pretrain_gpt.py\nls" << false;
    QTest::newRow("a study") << ""
                             << "meshwright: 1\nmodel: {mlp: {layers: [2, 2]}}" << false;
    QTest::newRow("a study by its name") << "torchrun.yaml"
                                         << "torchrun pretrain_gpt.py" << false;
    QTest::newRow("a page") << "a.py"
                            << "pretrain_gpt.py" << false;
    QTest::newRow("the study of one") << "run.sh"
                                      << "# made from run.sh\nmeshwright: 1\n# torchrun pretrain_gpt.py" << false;
    QTest::newRow("a message of torchrun") << ""
                                           << "ChildFailedError:\n=====\npretrain_gpt.py FAILED\n=====" << false;
    QTest::newRow("words of a launcher's name") << ""
                                                << "use deepspeed to accelerate your training, or torchrun" << false;
    QTest::newRow("what a script prints") << ""
                                          << "echo \"python pretrain_gpt.py is not here\"" << false;
    QTest::newRow("any script") << "run.sh"
                                << "ls" << true;
    QTest::newRow("nothing") << ""
                             << "" << false;
}

void TestLaunchLine::recognised()
{
    QFETCH(const QString, file);
    QFETCH(const QString, text);
    QFETCH(const bool, isLaunch);
    QCOMPARE(isLaunchText(file.toStdString(), text.toStdString()), isLaunch);
}

void TestLaunchLine::options_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("said");

    QTest::newRow("with an equals sign and without")
        << "a.sh"
        << "torchrun --nproc_per_node=4 --nnodes 2 pretrain_gpt.py --a 1 --b=2 --c --d 3 4"
        << "megatron on 8: a=1 b=2 c= d=3 4";
    QTest::newRow("by variables, as scripts have them") << "a.sh"
                                                        << R"(
GPUS=8
NODES=${NODES:-4}
ARGS=(--a $((2 * 3)) "--b x")
DIST="--nproc_per_node $GPUS --nnodes $NODES"
torchrun $DIST pretrain_gpt.py "${ARGS[@]}" \
    --c 'd'
)"
                                                        << "megatron on 32: a=6 b=x c=d";
    QTest::newRow("Slurm's nodes and tasks")
        << "a.sh"
        << "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\nsrun python -u pretrain_gpt.py --a 1"
        << "megatron on 32: a=1";
    QTest::newRow("MPI's processes") << "a.sh"
                                     << "mpirun -np 16 python pretrain_gpt.py --a 1"
                                     << "megatron on 16: a=1";
    QTest::newRow("a command in quotes") << "a.sh"
                                         << "OPTS=\"--a 1 --b\"\nCMD=\"python pretrain_gpt.py $OPTS\"\nsrun sh -c \"$CMD\""
                                         << "megatron: a=1 b=";
    QTest::newRow("MaxText") << "a.sh"
                             << "export LIBTPU_INIT_ARGS=\"--x=1\"\npython3 -m MaxText.train base.yml a=1 b=x=y steps=5"
                             << "maxtext: a=1 b=x=y steps=5";
    QTest::newRow("MaxText's axes")
        << "a.sh"
        << "python3 -m MaxText.train base.yml ici_fsdp_parallelism=16 ici_tensor_parallelism=4 dcn_data_parallelism=2"
        << "maxtext on 128: ici_fsdp_parallelism=16 ici_tensor_parallelism=4 dcn_data_parallelism=2";
    QTest::newRow("an axis that takes what is left") << "a.sh"
                                                     << "python3 -m MaxText.train base.yml ici_tensor_parallelism=4"
                                                     << "maxtext: ici_tensor_parallelism=4";
    QTest::newRow("torchtitan's dashes")
        << "a.sh"
        << "torchrun --nproc-per-node 8 -m torchtitan.train --job.config-file '' --training.seq-len 4096"
        << "torchtitan on 8: job.config_file= training.seq_len=4096";
    QTest::newRow("torchtitan's script") << "a.sh"
                                         << "NGPU=4 MODULE=llama3 CONFIG=\"mine\" ./run_train.sh --training.steps 10"
                                         << "torchtitan on 4: module=llama3 config=mine training.steps=10";
    QTest::newRow("TOML")
        << "a.toml"
        << "[model]\nname = \"llama3\" # it\nflavor='8B'\n[training]\nseq_len = 8_192\ncompile = true\n[float8]\nfilter = ['a', "
           "\"b\"]\n"
        << "torchtitan: float8.filter=a b model.flavor=8B model.name=llama3 training.compile=true training.seq_len=8192";
}

void TestLaunchLine::options()
{
    QFETCH(const QString, file);
    QFETCH(const QString, text);
    QFETCH(const QString, said);
    const auto launch = readLaunchLine(file.toStdString(), text.toStdString());
    QVERIFY2(launch, qPrintable(described(launch)));
    QStringList words;
    for (const LaunchOption& option : launch->options)
        words << tests::text(option.name + "=" + option.value);
    QCOMPARE(tests::text(launch->framework) + (launch->devices ? QString(" on %1").arg(*launch->devices) : QString()) + ": "
            + words.join(' '),
        said);
}

void TestLaunchLine::plans_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("layout");

    QTest::newRow("Megatron-LM, data alone") << kMegatron << "data=64, 256 x 4096, 4 x 1, none, ZeRO 0";
    QTest::newRow("its optimizer") << kMegatron + "--use-distributed-optimizer"
                                   << "data=64, 256 x 4096, 4 x 1, none, ZeRO 1";
    QTest::newRow("three axes") << kMegatron
            + "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --sequence-parallel --recompute-activations"
                                << "pipeline=2 data=8 tensor=4, 256 x 4096, 1f1b 32 x 1, selective, ZeRO 0, SP";
    QTest::newRow("interleaved") << kMegatron
            + "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --recompute-granularity full"
                                 << "pipeline=4 data=16, 256 x 4096, interleaved/4 16 x 1, full, ZeRO 0";
    QTest::newRow("virtual stages") << kMegatron + "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2"
                                    << "pipeline=4 data=16, 256 x 4096, interleaved/2 16 x 1, none, ZeRO 0";
    QTest::newRow("context") << kMegatron + "--context-parallel-size 2"
                             << "data=32 context=2, 256 x 4096, 8 x 1, none, ZeRO 0";
    QTest::newRow("context by heads") << kMegatron + "--context-parallel-size 2 --cp-comm-type a2a"
                                      << "data=32 context=2, 256 x 4096, 8 x 1, none, ZeRO 0, Ulysses";
    QTest::newRow("context by gathering") << kMegatron + "--context-parallel-size 2 --cp-comm-type all_gather"
                                          << "data=32 context=2, 256 x 4096, 8 x 1, none, ZeRO 0, gather";
    QTest::newRow("MaxText's context") << kMaxText + "ici_context_parallelism=4"
                                       << "fsdp=16 context=4, 768 x 2048, 1 x 48, full, ZeRO 3, gather";
    QTest::newRow("MaxText's context by a ring") << kMaxText + "ici_context_parallelism=4 context_parallel_strategy=ring"
                                                 << "fsdp=16 context=4, 768 x 2048, 1 x 48, full, ZeRO 3";
    QTest::newRow("Megatron's FSDP") << kMegatron + "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"
                                     << "fsdp=64, 256 x 4096, 4 x 1, none, ZeRO 3";
    QTest::newRow("DeepSpeed's weights") << kMegatron
            + "--deepspeed --deepspeed_config ds.json --zero-stage 3 --checkpoint-activations "
              "--deepspeed-activation-checkpointing"
                                         << "fsdp=64, 256 x 4096, 4 x 1, full, ZeRO 3";
    QTest::newRow("DeepSpeed's moments") << kMegatron + "--deepspeed --zero-stage 1"
                                         << "data=64, 256 x 4096, 4 x 1, none, ZeRO 1";
    QTest::newRow("the last counts") << kMegatron + "--micro-batch-size 2 --micro-batch-size=4"
                                     << "data=64, 256 x 4096, 1 x 4, none, ZeRO 0";
    QTest::newRow("experts") << kMegatron + "--num-experts 8 --expert-model-parallel-size 8 --moe-router-topk 2"
                             << "data=8 expert=8, 256 x 4096, 4 x 1, none, ZeRO 0";
    QTest::newRow("torchtitan, its registry") << kTitan << "fsdp=64, 64 x 8192, 1 x 1, selective_op, ZeRO 3";
    QTest::newRow("another of it") << QString(kTitan).replace("8b", "70b")
                                   << "fsdp=8 tensor=8, 64 x 8192, 1 x 8, full, ZeRO 3, SP";
    QTest::newRow("an older option beside its registry") << QString(kTitan).replace("8b", "70b") + "--training.local_batch_size 2"
                                                         << "fsdp=8 tensor=8, 16 x 8192, 1 x 2, full, ZeRO 3, SP";
    QTest::newRow("replicas and tensors") << kTitan
            + "--parallelism.data_parallel_replicate_degree 2 --parallelism.tensor_parallel_degree 8 "
              "--training.max_context_length 8192 --training.num_tokens_per_microbatch_per_dp_rank 8192"
                                          << "data=2 fsdp=4 tensor=8, 8 x 8192, 1 x 1, selective_op, ZeRO 3, SP";
    QTest::newRow("nothing kept, by tokens") << kTitan
            + "activation-checkpoint:full --training.max_context_length 4096 --training.num_tokens_per_microbatch_per_dp_rank "
              "4096 "
              "--training.num_tokens_per_train_step 1048576"
                                             << "fsdp=64, 256 x 4096, 4 x 1, full, ZeRO 3";
    QTest::newRow("its older options") << "torchrun -m torchtitan.train --model.name llama3 --model.flavor 8B --training.seq_len "
                                          "8192 --training.local_batch_size 1 "
                                          "--activation_checkpoint.mode none"
                                       << "fsdp=64, 64 x 8192, 1 x 1, none, ZeRO 3";
    QTest::newRow("its pipeline") << kTitan
            + "--parallelism.pipeline_parallel_degree 4 --parallelism.pipeline_parallel_schedule Interleaved1F1B "
              "--parallelism.num_pp_microbatches 8 "
              "--training.max_context_length 8192 --training.num_tokens_per_microbatch_per_dp_rank 8192"
                                  << "pipeline=4 data=16, 128 x 8192, interleaved/2 8 x 1, selective_op, ZeRO 2";
    QTest::newRow("its pipeline of one microbatch") << kTitan + "--parallelism.pipeline_parallel_degree 2"
                                                    << "pipeline=2 data=32, 32 x 8192, 1f1b 1 x 1, selective_op, ZeRO 2";
    QTest::newRow("its older pipeline") << "torchrun -m torchtitan.train --model.name llama3 --model.flavor 8B "
                                           "--training.seq_len 8192 --training.local_batch_size 8 "
                                           "--parallelism.pipeline_parallel_degree 2 --activation_checkpoint.mode full"
                                        << "pipeline=2 data=32, 256 x 8192, 1f1b 8 x 1, full, ZeRO 2";
    QTest::newRow("its registry's schedule without a pipeline") << "torchrun -m torchtitan.train --module deepseek_v3 --config "
                                                                   "deepseek_v3_16b --training.num_tokens_per_train_step 2097152"
                                                                << "fsdp=8 expert=8, 512 x 4096, 2 x 4, selective_op, ZeRO 3";
    QTest::newRow("three pieces a stage") << kTitan
            + "--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B "
              "--parallelism.pipeline_parallel_layers_per_stage 6 --parallelism.num_pp_microbatches 8"
                                          << "pipeline=2 data=32, 256 x 8192, interleaved/3 8 x 1, selective_op, ZeRO 2";
    QTest::newRow("a policy of MaxText's") << kMaxText + "remat_policy=save_dot_with_context_except_mlp"
                                           << "fsdp=64, 768 x 2048, 1 x 12, save_dot_with_context_except_mlp, ZeRO 3";
    QTest::newRow("a policy's older name") << kMaxText + "remat_policy=minimal_flash"
                                           << "fsdp=64, 768 x 2048, 1 x 12, minimal_with_context, ZeRO 3";
    QTest::newRow("two axes of weights") << kMaxText + "ici_fsdp_parallelism=16 ici_fsdp_transpose_parallelism=4"
                                         << "fsdp=64, 768 x 2048, 1 x 12, full, ZeRO 3";
    QTest::newRow("MaxText, its defaults") << kMaxText << "fsdp=64, 768 x 2048, 1 x 12, full, ZeRO 3";
    QTest::newRow("two axes") << kMaxText
            + "ici_fsdp_parallelism=16 ici_tensor_parallelism=4 per_device_batch_size=2 max_target_length=8192 "
              "remat_policy=minimal"
                              << "fsdp=16 tensor=4, 128 x 8192, 1 x 8, minimal, ZeRO 3, SP";
    QTest::newRow("replicas") << kMaxText + "ici_data_parallelism=4 ici_fsdp_parallelism=-1 per_device_batch_size=1"
                              << "data=4 fsdp=16, 64 x 2048, 1 x 1, full, ZeRO 3";
    QTest::newRow("parts of a sequence a device")
        << kMaxText + "per_device_batch_size=0.5 ici_tensor_parallelism=2 gradient_accumulation_steps=4"
        << "fsdp=32 tensor=2, 128 x 2048, 4 x 1, full, ZeRO 3, SP";
}

void TestLaunchLine::plans()
{
    QFETCH(const QString, line);
    QFETCH(const QString, layout);
    const auto launched = planned(line, 64, "run.sh", line.contains("MaxText") ? "v5p" : "h100");
    QVERIFY2(launched, qPrintable(described(launched)));
    QCOMPARE(layoutOf(*launched), layout);
}

void TestLaunchLine::models_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<double>("parameters"); // of the models' own papers, in thousand millions
    QTest::addColumn<std::int64_t>("vocabulary");

    // GPT-3: Brown et al. 2020, table 2.1. Its vocabulary of 50,257 is padded to a multiple of 128 x tensor ranks.
    QTest::newRow("GPT-3") << "torchrun pretrain_gpt.py --num-layers 96 --hidden-size 12288 --num-attention-heads 96 "
                              "--seq-length 2048 --max-position-embeddings 2048 "
                              "--micro-batch-size 1 --vocab-file gpt2-vocab.json --fp16 --tensor-model-parallel-size 8"
                           << 174.6 << std::int64_t{51200};
    // Llama 3 8B: Dubey et al. 2024, table 3.
    QTest::newRow("Llama 3") << "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 "
                                "--num-attention-heads 32 --group-query-attention "
                                "--num-query-groups 8 --kv-channels 128 --seq-length 8192 --max-position-embeddings 8192 "
                                "--micro-batch-size 1 --vocab-size 128256 --swiglu "
                                "--normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights "
                                "--position-embedding-type rope --bf16"
                             << 8.03 << std::int64_t{128256};
    // Mixtral 8x7B: Jiang et al. 2024.
    QTest::newRow("Mixtral")
        << "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
           "--group-query-attention "
           "--num-query-groups 8 --seq-length 4096 --micro-batch-size 1 --vocab-size 32000 --swiglu --normalization RMSNorm "
           "--disable-bias-linear "
           "--untie-embeddings-and-output-weights --position-embedding-type rope --bf16 --num-experts 8 --moe-router-topk 2"
        << 46.7 << std::int64_t{32000};
    // DeepSeek-V3: DeepSeek-AI 2024, section 4.2, without the module of multi-token prediction.
    QTest::newRow("DeepSeek-V3") << "torchrun pretrain_gpt.py --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 "
                                    "--num-attention-heads 128 --kv-channels 128 "
                                    "--seq-length 4096 --micro-batch-size 1 --vocab-size 129280 --swiglu --normalization RMSNorm "
                                    "--disable-bias-linear --bf16 "
                                    "--untie-embeddings-and-output-weights --position-embedding-type rope "
                                    "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 "
                                    "--qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --num-experts 256 "
                                    "--moe-router-topk 8 --moe-ffn-hidden-size 2048 "
                                    "--moe-shared-expert-intermediate-size 2048 --moe-layer-freq '([0]*3+[1]*58)'"
                                 << 671.0 << std::int64_t{129280};
    QTest::newRow("MaxText, Llama 3.1") << kMaxText << 8.03 << std::int64_t{128256};
    QTest::newRow("MaxText, by sizes") << "python3 -m MaxText.train base.yml base_num_decoder_layers=32 base_emb_dim=4096 "
                                          "base_num_query_heads=32 base_num_kv_heads=32 head_dim=128 "
                                          "base_mlp_dim=11008 vocab_size=32000"
                                       << 6.74 << std::int64_t{32000};
    // MaxText's own: 2 x 64 x 4 layers of 16, 8 x the width of heads and blocks, 4 x that of the model (configs/types.py, get_individual_scales).
    QTest::newRow("MaxText, scaled") << "python3 -m MaxText.train base.yml global_parameter_scale=128" << 125.08
                                     << std::int64_t{32000};
    QTest::newRow("MaxText, other sizes of a named model")
        << kMaxText + "override_model_config=true base_num_decoder_layers=16" << 4.54 << std::int64_t{128256};
    // Llama 2: Touvron et al. 2023; Gemma 3: Gemma Team 2025, without the vision encoder.
    QTest::newRow("MaxText, Llama 2 70B") << QString(kMaxText).replace("llama3.1-8b", "llama2-70b") << 68.98
                                          << std::int64_t{32000};
    QTest::newRow("MaxText, GPT-3") << QString(kMaxText).replace("llama3.1-8b", "gpt3-175b") << 174.8 << std::int64_t{50304};
    QTest::newRow("MaxText, Gemma 3") << QString(kMaxText).replace("llama3.1-8b", "gemma3-27b") << 27.0 << std::int64_t{262144};
    QTest::newRow("torchtitan") << kTitan << 8.03 << std::int64_t{128256};
}

void TestLaunchLine::models()
{
    QFETCH(const QString, line);
    QFETCH(const double, parameters);
    QFETCH(const std::int64_t, vocabulary);
    const auto launched = planned(line);
    QVERIFY2(launched, qPrintable(described(launched)));
    const double counted = asDouble(parameterCounts(launched->work.model).total) / 1e9;
    QVERIFY2(std::abs(counted - parameters) < 0.005 * parameters, qPrintable(QString::number(counted)));
    QCOMPARE(launched->work.model.vocabulary, vocabulary);
}

void TestLaunchLine::settings_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("settings");
    QTest::addColumn<QString>("notes"); // the last of them

    QTest::newRow("gradients of Megatron-LM") << kMegatron << "dtype.gradients=f32"
                                              << "";
    QTest::newRow("in 16 bits") << kMegatron + "--grad-reduce-in-bf16"
                                << "dtype.gradients=bf16"
                                << "";
    QTest::newRow("its dropout") << QString(kMegatron).replace("--hidden-dropout 0 ", "") << "dtype.gradients=f32"
                                 << "dropout is left out: 0.1, unless --hidden-dropout and --attention-dropout say another";
    QTest::newRow("what is not read") << kMegatron + "--num_layers 3 --fancy --lr 1 --save x"
                                      << "dtype.gradients=f32"
                                      << "not read, though it may change the step: --fancy, --num_layers; not read: 2 options of "
                                         "data, logs, checkpoints and the learning rate";
    QTest::newRow("what is known only when it runs")
        << kMegatron + "$(cat args.txt) \"$@\" ${EXTRA_ARGS[@]} --save $OUT"
        << "dtype.gradients=f32"
        << "not read: 1 option of data, logs, checkpoints and the learning rate; what $(cat "
           "args.txt), \"$@\", ${EXTRA_ARGS[@]} adds to the line "
           "is known only when the script runs";
    QTest::newRow("several trainings") << kMegatron + "\n" + kMegatron << "dtype.gradients=f32"
                                       << "the first of 2 trainings in the file";
    QTest::newRow("weights of MaxText in 16 bits") << kMaxText + "weight_dtype=bfloat16 attention=dot_product steps=3"
                                                   << "dtype.parameters=bf16 model.transformer.attention=plain"
                                                   << "not read: 1 option of data, logs, checkpoints and the learning rate";
    QTest::newRow("weights of torchtitan in 16 bits")
        << kTitan + "--training.dtype bfloat16"
        << "dtype.parameters=bf16"
        << "assumed: the loss in 8 chunks of a sequence, as torchtitan's registry has it";
    QTest::newRow("an older option of torchtitan for another") << kTitan + "--training.seq_len 4096"
                                                               << ""
                                                               << "assumed: the loss in 8 chunks of a sequence, as torchtitan's "
                                                                  "registry has it";
    QTest::newRow("another optimizer") << kMegatron + "--optimizer sgd --sgd-momentum 0.5"
                                       << "dtype.gradients=f32 optimizer={sgd: {momentum: 0.5, masters: true}}"
                                       << "";
    QTest::newRow("chunks of the loss that the line says") << kTitan + "--loss.num_chunks 4"
                                                           << ""
                                                           << "";
    QTest::newRow("chunks that do not divide")
        << kTitan + "--training.max_context_length 8100"
        << ""
        << "assumed: the loss in 8 chunks of a sequence, as torchtitan's registry has it; the loss is taken in 4 chunks of a "
           "sequence: 8 do not divide its 8100 tokens";
    QTest::newRow("an option of the registry before 2026")
        << "torchrun -m torchtitan.train --model.name llama3 --model.flavor 8B "
           "--training.seq_len 8192 --training.local_batch_size 1"
        << ""
        << "";
    QTest::newRow("modules of Megatron-LM that are made again")
        << kMegatron + "--swiglu --recompute-granularity selective --recompute-modules mlp layernorm"
        << "dtype.gradients=f32 recompute={keep: [attention, attention.q, attention.k, attention.v, attention.mixed]}"
        << "";
    QTest::newRow("all experts of Megatron-LM")
        << kMegatron + "--num-experts 8 --recompute-granularity selective --recompute-modules moe core_attn"
        << "dtype.gradients=f32 recompute={keep: [attention, attention.input, ffn.input, attention.q, attention.k, attention.v]}"
        << "";
    QTest::newRow("MaxText's values by name")
        << kMaxText + "remat_policy=custom context=device mlpwi=device mlpwo=offload qkv_proj=remat decoder_layer_input=offload"
        << "recompute={keep: [attention.mixed, ffn.gate, ffn.up], offload: [input, ffn]}"
        << "";
    QTest::newRow("MaxText's values on the device")
        << kMaxText + "remat_policy=custom qkv_proj=device decoder_layer_input=device mla_q=device"
        << "recompute={keep: [attention.q, attention.k, attention.v]}"
        << "mla_q=device is not read: no layer here has such a value";
    QTest::newRow("MaxText without a policy")
        << kMaxText + "remat_policy=none"
        << ""
        << "remat_policy=none: MaxText wraps each layer all the same, and makes all of it again, as with full";
    QTest::newRow("MaxText's second axis of weights") << kMaxText + "ici_fsdp_parallelism=16 ici_fsdp_transpose_parallelism=4"
                                                      << ""
                                                      << "fsdp_transpose 4 is taken as a part of fsdp: weights are split as far";
}

/// What a plan has no word for goes into its study, and what is left is said.
void TestLaunchLine::settings()
{
    QFETCH(const QString, line);
    QFETCH(const QString, settings);
    QFETCH(const QString, notes);
    const auto launched = planned(line, 64, "run.sh", line.contains("MaxText") ? "v5p" : "h100");
    QVERIFY2(launched, qPrintable(described(launched)));
    QCOMPARE(text(join(launched->settings, " ")), settings);
    const std::vector<std::string> others(launched->notes.begin() + 1, launched->notes.end());
    QCOMPARE(text(join(others, "; ")), notes);
}

void TestLaunchLine::refused_data()
{
    QTest::addColumn<QString>("line");
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("words");

    QTest::newRow("accelerate") << "accelerate launch train.py"
                                << "MW1494"
                                << "does not say which model";
    QTest::newRow("DeepSpeed") << "deepspeed train.py --deepspeed ds.json"
                               << "MW1494"
                               << "does not say which model";
    QTest::newRow("DeepSpeed's settings") << R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}})"
                                          << "MW1494"
                                          << "these are settings of DeepSpeed";
    QTest::newRow("accelerate's settings") << "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"
                                           << "MW1494"
                                           << "these are settings of accelerate";
    QTest::newRow("no training") << "ls"
                                 << "MW1494"
                                 << "nothing here starts a training";
    QTest::newRow("no model") << "torchrun pretrain_gpt.py " + kBatch << "MW1494 MW1494 MW1494 MW1494"
                              << "--num-layers";
    QTest::newRow("no vocabulary") << "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 " + kBatch
                                   << "MW1494"
                                   << "--vocab-size";
    QTest::newRow("no batch") << "torchrun pretrain_gpt.py --seq-length 4096 " + kGpt << "MW1494"
                              << "--micro-batch-size";
    QTest::newRow("a stage in another file") << kMegatron + "--deepspeed --deepspeed_config ds.json"
                                             << "MW1495"
                                             << "the stage of ZeRO is in DeepSpeed's own configuration";
    QTest::newRow("no such stage") << kMegatron + "--deepspeed --zero-stage 4"
                                   << "MW1495"
                                   << "4 is not a stage of ZeRO";
    QTest::newRow("a word for a number") << kMegatron + "--tensor-model-parallel-size two"
                                         << "MW1495"
                                         << "\"two\" is not a whole number";
    QTest::newRow("no ranks") << kMegatron + "--tensor-model-parallel-size 0"
                              << "MW1495"
                              << "\"0\" is not a whole number";
    QTest::newRow("below 0") << kMegatron + "--pipeline-model-parallel-size -2"
                             << "MW1495"
                             << "\"-2\" is not a whole number";
    QTest::newRow("beyond all numbers") << kMegatron + "--num-layers 99999999999999999999"
                                        << "MW1495"
                                        << "is not a whole number";
    QTest::newRow("a variable of nothing") << kMegatron + "--tensor-model-parallel-size $TP"
                                           << "MW1494"
                                           << "is known only when the script runs";
    QTest::newRow("nothing for a number") << kMegatron + "--tensor-model-parallel-size"
                                          << "MW1494"
                                          << "--tensor-model-parallel-size has no value";
    QTest::newRow("an unknown exchange") << kMegatron + "--context-parallel-size 2 --cp-comm-type bogus"
                                         << "MW1495"
                                         << "\"bogus\" is not known";
    QTest::newRow("two activations") << kMegatron + "--swiglu --squared-relu"
                                     << "MW1495"
                                     << "--squared-relu: beside --swiglu";
    QTest::newRow("heads that do not divide the width") << kMegatron + "--num-attention-heads 15"
                                                        << "MW1495"
                                                        << "15 heads do not divide the hidden size 4096";
    QTest::newRow("weights of no format") << kMaxText + "weight_dtype=bogus"
                                          << "MW1495"
                                          << "\"bogus\" is not known";
    QTest::newRow("products of no format") << kMaxText + "quantization=bogus"
                                           << "MW1495"
                                           << "\"bogus\" is not known";
    QTest::newRow("no sequences") << kMaxText + "per_device_batch_size=0"
                                  << "MW1495"
                                  << "0 sequences on each of 64 devices";
    QTest::newRow("devices that are no multiple") << kMegatron + "--tensor-model-parallel-size 3"
                                                  << "MW1496"
                                                  << "do not divide 64 devices";
    QTest::newRow("degrees beyond all numbers") << kMegatron
            + "--tensor-model-parallel-size 2147483648 --pipeline-model-parallel-size 2147483648 --context-parallel-size "
              "2147483648"
                                                << "MW1496"
                                                << "do not divide 64 devices";
    QTest::newRow("a batch that is no multiple") << kMegatron + "--global-batch-size 100"
                                                 << "MW1496"
                                                 << "a batch of 100 sequences";
    QTest::newRow("experts on other ranks") << kMegatron + "--num-experts 6 --expert-model-parallel-size 4"
                                            << "MW1496"
                                            << "expert 4";
    QTest::newRow("chunks that are no divisor")
        << kMegatron + "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3"
        << "MW1496"
        << "32 layers";
    QTest::newRow("an unknown recomputation") << kMegatron + "--recompute-granularity half"
                                              << "MW1495"
                                              << "\"half\" is not known";
    QTest::newRow("a model that is not here") << "torchrun -m torchtitan.train --module flux --config flux_dev"
                                              << "MW1494"
                                              << "flux_dev";
    QTest::newRow("no model of torchtitan") << "torchrun -m torchtitan.train --training.steps 4"
                                            << "MW1494"
                                            << "neither --config nor --model.flavor";
    QTest::newRow("shards that are not the devices") << kTitan + "--parallelism.data_parallel_shard_degree 8"
                                                     << "MW1496"
                                                     << "are not the 64 devices";
    QTest::newRow("an unknown model of MaxText") << "python3 -m MaxText.train base.yml model_name=gpt5"
                                                 << "MW1494"
                                                 << "gpt5";
    QTest::newRow("an axis without a plan") << kMaxText + "ici_sequence_parallelism=4"
                                            << "MW1495"
                                            << "sequence";
    QTest::newRow("an unknown policy") << kMaxText + "remat_policy=all"
                                       << "MW1495"
                                       << "\"all\" is not known";
    QTest::newRow("another kind of model") << "torchrun pretrain_t5.py " + kGpt + kBatch << "MW1494"
                                           << "pretrain_t5.py trains another kind of model";
    QTest::newRow("what changes the step without a plan") << kMegatron + "--mtp-num-layers 1"
                                                          << "MW1495"
                                                          << "--mtp-num-layers: it changes the step";
    QTest::newRow("two formats") << kMegatron + "--fp16"
                                 << "MW1495"
                                 << "beside --bf16";
    QTest::newRow("layers that stages do not divide") << kMegatron + "--num-layers 30 --pipeline-model-parallel-size 4"
                                                      << "MW1496"
                                                      << "30 layers are not divided among 4 stages";
    QTest::newRow("experts over more than data ranks")
        << kMegatron + "--num-experts 8 --tensor-model-parallel-size 2 --context-parallel-size 8 --expert-model-parallel-size 8"
        << "MW1496"
        << "expert 8 goes over more than the 4 data ranks";
    QTest::newRow("a mode that is none") << kTitan + "--activation_checkpoint.mode banana"
                                         << "MW1495"
                                         << "\"banana\" is not known";
    QTest::newRow("every second layer") << kTitan + "--activation_checkpoint.selective_ac_option 2"
                                        << "MW1495"
                                        << "every layer of 2";
    QTest::newRow("experts over tensor ranks")
        << "torchrun -m torchtitan.train --module deepseek_v3 --config deepseek_v3_16b --parallelism.tensor_parallel_degree 4"
        << "MW1495"
        << "experts go over ranks of tensors";
    QTest::newRow("settings that are not here") << "python3 -m MaxText.train configs/models/gpu/llama2_7b.yml run_name=x"
                                                << "MW1494"
                                                << "the settings in configs/models/gpu/llama2_7b.yml";
    QTest::newRow("sizes beside a named model") << kMaxText + "base_emb_dim=64"
                                                << "MW1495"
                                                << "model_name=llama3.1-8b says it too";
    QTest::newRow("a value in a place that is none") << kMaxText + "remat_policy=custom mlpwo=disk"
                                                     << "MW1495"
                                                     << "\"disk\" is not known";
    QTest::newRow("parts of sequences that are not equal")
        << kMegatron + "--tensor-model-parallel-size 4 --sequence-parallel --seq-length 4098"
        << "MW1496"
        << "tensor 4 does not divide sequences of 4098 tokens";
    QTest::newRow("heads that tensors do not divide") << kMegatron + "--tensor-model-parallel-size 64"
                                                      << "MW1496"
                                                      << "tensor 64 does not divide the heads";
    QTest::newRow("a width that tensors do not divide") << kMegatron + "--tensor-model-parallel-size 4 --ffn-hidden-size 16386"
                                                        << "MW1496"
                                                        << "tensor 4 does not divide the feed-forward width (16386)";
    QTest::newRow("query groups beside tensors") << kMegatron
            + "--group-query-attention --num-query-groups 6 --num-attention-heads 48 --hidden-size 6144 "
              "--tensor-model-parallel-size 4"
                                                 << "MW1496"
                                                 << "6 query groups are neither a multiple nor a divisor of tensor 4";
    QTest::newRow("query groups that torchtitan does not copy") << kTitan + "--parallelism.tensor_parallel_degree 16"
                                                                << "MW1496"
                                                                << "tensor 16 does not divide the 8 key and value heads";
    QTest::newRow("pieces from both ends of a sequence")
        << kMegatron + "--context-parallel-size 4 --seq-length 4100 --max-position-embeddings 8192"
        << "MW1496"
        << "4100 tokens of a sequence are not divided by 2 x context 4";
    QTest::newRow("heads that contexts do not share")
        << kMegatron + "--context-parallel-size 8 --cp-comm-type a2a --group-query-attention --num-query-groups 4"
        << "MW1496"
        << "context 8, which does not divide 32 heads and 4 query groups";
    QTest::newRow("experts beside tensors") << kMegatron + "--num-experts 8 --tensor-model-parallel-size 2"
                                            << "MW1496"
                                            << "experts beside tensor 2 without sequence parallelism";
    QTest::newRow("more tokens than positions") << kMegatron + "--position-embedding-type rope --max-position-embeddings 2048"
                                                << "MW1496"
                                                << "--max-position-embeddings 2048 is less than the 4096 tokens of --seq-length";
    QTest::newRow("a module that is none") << kMegatron + "--recompute-granularity selective --recompute-modules mlp moe_act"
                                           << "MW1495"
                                           << "the module \"moe_act\" is not known";
    QTest::newRow("experts that are kept") << kMegatron
            + "--num-experts 8 --recompute-granularity selective --recompute-modules layernorm"
                                           << "MW1495"
                                           << "of experts only all of them";
    QTest::newRow("pieces without a pipeline") << kMegatron + "--num-virtual-stages-per-pipeline-rank 2"
                                               << "MW1496"
                                               << "without a pipeline";
    QTest::newRow("pieces that stages do not share") << kTitan
            + "--parallelism.pipeline_parallel_degree 4 --parallelism.pipeline_parallel_schedule Interleaved1F1B "
              "--parallelism.pipeline_parallel_layers_per_stage 7"
                                                     << "MW1496"
                                                     << "make 5 pieces of 7";
    QTest::newRow("a scale between powers of two") << "python3 -m MaxText.train base.yml global_parameter_scale=3"
                                                   << "MW1495"
                                                   << "not a power of two";
    QTest::newRow("fsdp that is no divisor") << kMaxText + "ici_fsdp_parallelism=48"
                                             << "MW1496"
                                             << "the ici axes make 48";
}

void TestLaunchLine::refused()
{
    QFETCH(const QString, line);
    QFETCH(const QString, id);
    QFETCH(const QString, words);
    const auto launched = planned(line, 64, "run.sh", line.contains("MaxText") ? "v5p" : "h100");
    QVERIFY(!launched);
    QCOMPARE(idsOf(launched), id);
    QVERIFY2(described(launched).contains(words), qPrintable(described(launched)));
    for (const Problem& problem : launched.error())
        QVERIFY2(!problem.fix.empty() && problem.place.file == "run.sh", qPrintable(described(launched)));
}

void TestLaunchLine::refusedBySomeReleases_data()
{
    QTest::addColumn<QString>("options");
    QTest::addColumn<QString>("said"); // of the warnings

    const QString groups = "--group-query-attention --num-query-groups 4 --tensor-model-parallel-size ";
    QTest::newRow("a group for each rank") << groups + "4"
                                           << "";
    QTest::newRow("two groups for each rank") << groups + "2"
                                              << "";
    QTest::newRow("two ranks share a group") << groups + "8"
                                             << "MW1497 4 query groups are not a multiple of tensor 8";
    QTest::newRow("one group for all") << "--group-query-attention --num-query-groups 1 --tensor-model-parallel-size 2"
                                       << "MW1497 1 query group is not a multiple of tensor 2";
    QTest::newRow("a group for each head") << "--tensor-model-parallel-size 8"
                                           << "";
}

void TestLaunchLine::refusedBySomeReleases()
{
    QFETCH(const QString, options);
    QFETCH(const QString, said);
    const LaunchedPlan launched = valueOf(planned(kMegatron + options));
    QStringList warnings;
    for (const Problem& problem : launched.warnings) {
        QCOMPARE(problem.severity, Severity::Warning);
        QCOMPARE(problem.place.file, std::string("run.sh"));
        warnings << QString::fromStdString(problem.id + " " + problem.message);
    }
    QCOMPARE(warnings.size(), said.isEmpty() ? 0 : 1);
    QCOMPARE(warnings.join(' ').left(said.size()), said);
}

/// A script names its TOML from beside itself; what the line says counts.
void TestLaunchLine::configBesideTheScript()
{
    const QTemporaryDir folder;
    const std::filesystem::path at = folder.path().toStdString();
    const std::string script = "torchrun -m torchtitan.train --job.config_file conf/a.toml --training.seq_len 2048\n";
    const std::string file = (at / "run.sh").string();
    const auto missing = readLaunchLine(file, script);
    QCOMPARE(idsOf(missing), "MW1001");

    std::filesystem::create_directory(at / "conf");
    const std::string toml = "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nseq_len = 8192\nlocal_batch_size = 2\n";
    QVERIFY(writeFileAtomically((at / "conf/a.toml").string(), toml));
    const auto launch = readLaunchLine(file, script);
    QVERIFY2(launch, qPrintable(described(launch)));
    const auto launched = planOf(*launch, file, machineOfChips("h100", 64));
    QVERIFY2(launched, qPrintable(described(launched)));
    QCOMPARE(layoutOf(*launched), "fsdp=64, 128 x 2048, 1 x 2, selective_op, ZeRO 3");

    for (const char* wrong : {"[model\n", "[\nodel]\n", "a ! b\n", "a = \n", "[[a]]\n[a]\n", "a = {b = 1\n", "a = 1\na = 2\n",
             "\"a\n", "a\xC2\xBC = 1\n"}) {
        QVERIFY(writeFileAtomically((at / "conf/a.toml").string(), std::string(wrong)));
        const auto broken = readLaunchLine(file, script);
        QCOMPARE(idsOf(broken), "MW1495");
        QVERIFY(broken.error().front().place.file.ends_with("a.toml"));
    }
}

void TestLaunchLine::ownCommandsComeBack_data()
{
    QTest::addColumn<QString>("model");
    for (const std::string& model : shippedModels())
        QTest::newRow(model.c_str()) << text(model);
}

/// What Meshwright writes for a plan, it reads back as the same plan of the same model.
void TestLaunchLine::ownCommandsComeBack()
{
    QFETCH(const QString, model);
    struct Layout {
        const char* chip;
        std::vector<MeshAxis> mesh;
        int zero;
        const char* recompute;
        PipelinePlan pipeline;
        bool sequenceParallel;
        bool exchangesHeads;
    };
    const std::array layouts = {
        Layout{"h100", {{"data", 64}}, 0, "none", {1, 1, 4.0, "1f1b"}, false, false},
        Layout{"h100", {{"data", 64}}, 1, "selective", {1, 1, 2.0, "1f1b"}, false, false},
        Layout{"h100", {{"fsdp", 64}}, 3, "full", {1, 1, 4.0, "1f1b"}, false, false},
        Layout{"h100", {{"data", 4}, {"fsdp", 8}, {"tensor", 2}}, 3, "full", {1, 1, 8.0, "1f1b"}, true, false},
        Layout{"h100", {{"data", 32}, {"tensor", 2}}, 2, "full", {1, 1, 4.0, "1f1b"}, false, false},
        Layout{"h100", {{"pipeline", 2}, {"data", 16}, {"tensor", 2}}, 1, "full", {2, 1, 16.0, "1f1b"}, true, false},
        Layout{"h100", {{"pipeline", 2}, {"data", 32}}, 0, "none", {2, 2, 8.0, "interleaved"}, false, false},
        Layout{"h100", {{"fsdp", 32}, {"context", 2}}, 3, "full", {1, 1, 8.0, "1f1b"}, false, false},
        Layout{"h100", {{"fsdp", 8}, {"expert", 8}}, 3, "full", {1, 1, 4.0, "1f1b"}, false, false},
        Layout{"h100", {{"fsdp", 64}}, 3, "selective_op", {1, 1, 4.0, "1f1b"}, false, false},
        Layout{"v5p", {{"fsdp", 64}}, 3, "full", {1, 1, 1.0, "1f1b"}, false, false},
        Layout{"v5p", {{"data", 4}, {"fsdp", 8}, {"tensor", 2}}, 3, "minimal", {1, 1, 2.0, "1f1b"}, true, false},
        Layout{"v5p", {{"fsdp", 32}, {"expert", 2}}, 3, "full", {1, 1, 2.0, "1f1b"}, false, false},
        Layout{"v5p", {{"fsdp", 64}}, 3, "save_dot_with_context_except_mlp", {1, 1, 1.0, "1f1b"}, false, false},
        Layout{"v5p", {{"fsdp", 64}}, 3, "minimal_offloaded", {1, 1, 1.0, "1f1b"}, false, false},
        Layout{"v5p", {{"pipeline", 2}, {"fsdp", 32}}, 3, "full", {2, 1, 8.0, "gpipe"}, false, false},
    };
    std::vector<std::string> ignored;
    SearchWork work;
    work.model = valueOf(modelNamed(model.toStdString(), nullptr, ignored));
    work.sequence = 2048;
    work.masters = true;
    int read = 0;
    for (const Layout& layout : layouts) {
        const auto axis = [&](std::string_view name) {
            const auto found = std::ranges::find(layout.mesh, name, &MeshAxis::name);
            return found == layout.mesh.end() ? std::int64_t{1} : found->size;
        };
        if (axis("expert") > 1 && work.model.experts == 0)
            continue;
        if (work.model.layers % (layout.pipeline.stages * layout.pipeline.chunks) != 0)
            continue;
        FoundPlan plan;
        plan.mesh = layout.mesh;
        plan.zeroStage = layout.zero;
        plan.recompute = layout.recompute;
        plan.pipeline = layout.pipeline;
        plan.microbatch = 1.0;
        plan.lossChunks = 4;
        plan.sequenceParallel = layout.sequenceParallel;
        plan.exchangesHeads = layout.exchangesHeads;
        const std::int64_t ranks = axis("data") * axis("fsdp") * axis("expert");
        work.globalBatch = ranks * static_cast<std::int64_t>(layout.pipeline.microbatches);
        const SearchMachine machine = machineOfChips(layout.chip, 64);
        for (const LaunchCommand& command : launchCommands(plan, work, machine)) {
            if (command.command.empty() || command.framework == "accelerate" || command.command.find("MODEL") != std::string::npos
                || command.command.find("CONFIG") != std::string::npos)
                continue;
            const QByteArray said = QByteArray::fromStdString(command.command);
            const auto launch = readLaunchLine("run.sh", command.command);
            QVERIFY2(launch, said);
            QCOMPARE(launch->framework, command.framework);
            if (command.framework != "maxtext")
                QCOMPARE(launch->devices, std::optional<std::int64_t>(64));
            const auto back = planOf(*launch, "run.sh", machine);
            QVERIFY2(back, (said + "\n" + described(back).toUtf8()).constData());
            LaunchedPlan wanted{work, plan, {}, {}, {}};
            const bool picksOps = command.framework == "torchtitan" && wanted.plan.recompute == "selective";
            if (picksOps)
                wanted.plan.recompute = "selective_op";
            if (command.framework == "torchtitan" && axis("tensor") == 1)
                wanted.plan.sequenceParallel = false;
            if (command.framework == "maxtext")
                wanted.plan.sequenceParallel = axis("tensor") > 1;
            if (command.framework != "megatron") // which has no option for it
                QCOMPARE(back->plan.lossChunks, std::int64_t{4});
            QVERIFY2(layoutOf(*back) == layoutOf(wanted),
                (said + "\n" + layoutOf(*back).toUtf8() + "\n" + layoutOf(wanted).toUtf8()).constData());
            TransformerConfig same = back->work.model;
            same.name = work.model.name;
            same.maxPositions = work.model.maxPositions;
            same.normEpsilon = work.model.normEpsilon;
            if (work.model.activation == TransformerActivation::GeluTanh && same.activation == TransformerActivation::Gelu)
                same.activation = work.model.activation; // of which one option is both
            if (command.framework == "megatron"
                && same.vocabulary == ceilDiv(work.model.vocabulary, 128 * axis("tensor")) * 128 * axis("tensor"))
                same.vocabulary = work.model.vocabulary; // padded
            QVERIFY2(same == work.model, said);
            ++read;
        }
    }
    static const QStringList kOthers = {"gemma_7b", "gemma3_27b", "gpt_neox_20b"}; // whose blocks no framework's options state
    QCOMPARE(read == 0, kOthers.contains(model));
}

void TestLaunchLine::unevenStagesComeBack_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("stages");
    QTest::addColumn<int>("chunks");
    QTest::addColumn<QString>("says"); // empty: Megatron-LM has no options for it
    QTest::newRow("ends count as layers") << "llama3_405b" << 16 << 1
                                          << "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
    QTest::newRow("ends count, interleaved")
        << "llama3_405b" << 16 << 8 << "--num-layers-per-virtual-pipeline-stage 1 --account-for";
    QTest::newRow("a shorter last stage") << "llama3_8b" << 3 << 1 << "--decoder-last-pipeline-num-layers 10";
    QTest::newRow("a shorter last piece") << "llama3_8b" << 3 << 2 << "";
    QTest::newRow("two kinds of stages") << "llama3_8b" << 12 << 1 << "";
}

/// Layers that stages do not share evenly, as Megatron-LM has options for.
void TestLaunchLine::unevenStagesComeBack()
{
    QFETCH(QString, model);
    QFETCH(int, stages);
    QFETCH(int, chunks);
    QFETCH(QString, says);
    std::vector<std::string> ignored;
    SearchWork work;
    work.model = valueOf(modelNamed(model.toStdString(), nullptr, ignored));
    work.sequence = 2048;
    work.masters = true;
    work.globalBatch = 4L * stages;
    FoundPlan plan;
    plan.mesh = {{"pipeline", stages}, {"data", 4}};
    plan.recompute = "full";
    plan.pipeline = {stages, chunks, static_cast<double>(stages), chunks > 1 ? "interleaved" : "1f1b"};
    plan.microbatch = 1.0;
    const SearchMachine machine = machineOfChips("h100", 4L * stages);
    const auto commands = launchCommands(plan, work, machine);
    const auto megatron = std::ranges::find(commands, std::string("megatron"), &LaunchCommand::framework);
    QVERIFY(megatron != commands.end());
    const QByteArray said = QByteArray::fromStdString(megatron->command);
    QVERIFY2(says.isEmpty() ? said.isEmpty() : said.contains(says.toUtf8()), said);
    if (says.isEmpty())
        return;
    const auto launch = readLaunchLine("run.sh", megatron->command);
    QVERIFY2(launch, said);
    const auto back = planOf(*launch, "run.sh", machine);
    QVERIFY2(back, (said + "\n" + described(back).toUtf8()).constData());
    QCOMPARE(layoutOf(*back), layoutOf(LaunchedPlan{work, plan, {}, {}, {}}));
}

MESHWRIGHT_TEST(TestLaunchLine)

} // namespace tst_launch_line

#include "tst_launch_line.moc"
