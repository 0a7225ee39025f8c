// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/checked.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace meshwright {

namespace {

/// The integers of a list such as `[4, 0, 4]` or `4x2`, in a text without white space; others are left out.
std::vector<std::int64_t> integersIn(std::string_view text)
{
    constexpr std::size_t kMost = 32;
    std::vector<std::int64_t> numbers;
    for (std::size_t at = text.find_first_of("0123456789"); at != std::string_view::npos && numbers.size() < kMost;) {
        const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
        if (const auto number = parseInteger(text.substr(at, end - at)))
            numbers.push_back(*number);
        at = text.find_first_of("0123456789", end);
    }
    return numbers;
}

/// The products of some of these numbers, in increasing order.
std::vector<std::int64_t> subsetProducts(const std::vector<std::int64_t>& numbers)
{
    constexpr std::size_t kMostNumbers = 8;
    std::vector<std::int64_t> products = {1};
    for (std::size_t i = 0; i < std::min(numbers.size(), kMostNumbers); ++i) {
        const std::vector<std::int64_t> before = products;
        for (const std::int64_t product : before) {
            if (const auto larger = checkedMultiply(product, std::max<std::int64_t>(1, numbers[i])))
                products.push_back(*larger);
        }
    }
    std::ranges::sort(products);
    products.erase(std::unique(products.begin(), products.end()), products.end());
    return products;
}

/// "Failed to find assignment for logical_axis_index 1 of size 8 with remaining assignable mesh [4, 4, 4]. .."
bool explainAssignment(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto index = part.integer("logical_axis_index", at);
    const auto size = part.integer("ofsize", at);
    const auto list = part.bracketed("assignablemesh", at);
    const std::vector<std::int64_t> left = list ? integersIn(*list) : std::vector<std::int64_t>{};
    if (index && size)
        out.fact("mesh axis", fmt::format("number {} (from 0), of size {}", *index, *size));
    if (!left.empty())
        out.fact("left of the machine", fmt::format("{}", fmt::join(left, "x"))); // 0: the axis is taken
    out.meaning = "create_device_mesh lays each mesh axis on whole axes of the machine's torus, so that its neighbours have "
                  "links of their own. An "
                  "axis must have the size of one of those, or of a product of several that no other mesh axis has taken.";
    if (size && !left.empty()) {
        std::vector<std::int64_t> sizes = subsetProducts(left);
        out.meaning += fmt::format(" Of what is left no axes multiply to {}: they make {}.", *size, fmt::join(sizes, ", "));
    }
    out.remedy("Choose sizes that are products of the machine's axes. meshwright draws which ones go:",
        "meshwright mesh --hw v4 --topology 4x4x4 --mesh data=16,model=4\n");
    out.remedy("Or let an axis of the machine be cut, whose parts then share links:",
        "mesh_utils.create_device_mesh(shape, allow_split_physical_axes=True)\n");
    return true;
}

/// ".. but got devices.ndim == 1 and len(axis_names) == 2."
bool explainMeshRank(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto dims = part.integer("devices.ndim==", at);
    const auto names = part.integer("len(axis_names)==", at);
    out.meaning = "Mesh takes an array of devices with one dimension for each name of an axis.";
    if (dims && names) {
        out.fact("devices", fmt::format("{} dimension{}", *dims, *dims == 1 ? "" : "s"));
        out.fact("names", fmt::format("{}", *names));
        if (*dims == 1 && *names > 1)
            out.meaning += " The array is a plain list, as jax.devices() gives it: it must be reshaped to the sizes of the axes.";
    }
    out.remedy("Let JAX order and reshape the devices; the sizes multiply to their number:",
        "mesh = jax.make_mesh((4, 2), ('data', 'model'))\n");
    out.remedy("Or reshape the list:", "mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ('data', 'model'))\n");
    return true;
}

/// The number in brackets right before these words: 8 of "worldsize(8)isnotdivisibleby".
std::optional<std::int64_t> inBracketsBefore(const MessagePart& part, std::size_t at)
{
    const std::string_view text = part.text().substr(0, at);
    const std::size_t open = text.rfind('(');
    constexpr std::size_t kMost = 24;
    if (open == std::string_view::npos || !text.ends_with(')') || at - open > kMost)
        return std::nullopt;
    return parseInteger(text.substr(open + 1, text.size() - open - 2));
}

/// What the sizes right behind a position make: 16 of "(total_model_size=16)", 8 of "(encoder_model_size=0+decoder_model_size=8)", 12 of
/// "tensor_model_parallel_size(3)xpipeline_model_parallel_size(4)".
std::optional<std::int64_t> sizesBehind(std::string_view text)
{
    constexpr std::size_t kMost = 160;
    constexpr std::string_view kDigits = "0123456789";
    constexpr std::int64_t kMostRanks = std::int64_t{1} << 40;
    text = text.substr(0, kMost);
    std::optional<std::int64_t> made;
    char sign = '+';
    for (std::size_t at = text.find_first_of(kDigits); at != std::string_view::npos; at = text.find_first_of(kDigits, at)) {
        const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
        const auto size = parseInteger(text.substr(at, end - at));
        if (!size)
            return std::nullopt;
        if (sign == '+' && *size > kMostRanks)
            return std::nullopt;
        made = sign == '+' ? made.value_or(0) + *size : checkedMultiply(*made, *size);
        at = std::min(text.find_first_not_of(')', end), text.size());
        if (!made || at == text.size() || std::string_view("+*x").find(text[at]) == std::string_view::npos)
            return made;
        sign = text[at];
    }
    return made;
}

/// The numbers of ranks from which one may choose: multiples of what the degrees make, below and above.
std::string multiplesNear(std::int64_t ranks, std::int64_t degrees)
{
    const std::int64_t below = ranks / degrees * degrees;
    return below == 0 ? fmt::format("{}", degrees) : fmt::format("{} or {}", below, below + degrees);
}

/// "world size (8) is not divisible by total_model_size (total_model_size=16)", "world_size (64) is not divisible by
/// expert_tensor_model_pipeline_parallel size (128)", "world_size (8) is not divisible by 16".
bool explainRanksOfMegatron(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto words = part.find("isnotdivisibleby", at);
    constexpr std::size_t kNear = 40;
    if (!words || *words > at + kNear)
        return false;
    const auto ranks = inBracketsBefore(part, *words);
    const std::string_view behind = part.text().substr(*words, 160);
    const bool isExpert = behind.find("expert") != std::string_view::npos;
    const auto degrees = sizesBehind(behind);
    if (!ranks || !degrees || *degrees < 1 || *ranks < 1)
        return false;
    out.fact("ranks", fmt::format("{}", *ranks));
    out.fact(isExpert ? "expert tensor x expert x pipeline" : "tensor x pipeline x context", fmt::format("{}", *degrees));
    out.meaning = isExpert ? fmt::format("Experts have groups of their own: expert tensor x expert x pipeline parallelism takes "
                                         "{} ranks, and the {} that were started are "
                                         "not a multiple of that.",
                      *degrees, *ranks)
                           : fmt::format("One copy of the model takes tensor x pipeline x context parallelism = {} ranks, and "
                                         "data parallelism makes whole copies: the {} that "
                                         "were started are not a multiple of that.",
                               *degrees, *ranks);
    out.remedy(fmt::format("Start a multiple of {} ranks: {}.", *degrees, multiplesNear(*ranks, *degrees)));
    const std::int64_t most = std::gcd(*ranks, *degrees);
    out.remedy(fmt::format("Or make the degrees smaller, so that they multiply to a divisor of {}, such as {}:", *ranks, most),
        isExpert ? "--expert-model-parallel-size N --expert-tensor-parallel-size 1\n"
                 : "--tensor-model-parallel-size N --pipeline-model-parallel-size M\n");
    return true;
}

/// "global batch size (256) is not divisible by micro batch size (3) times data parallel size (8)"
bool explainBatchOfMegatron(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kNear = 60;
    const auto words = part.find("isnotdivisibleby", at);
    if (!words || *words > at + kNear)
        return false;
    const auto batch = part.integer("globalbatchsize(", at);
    const auto micro = part.integer("microbatchsize(", at);
    const auto data = part.integer("dataparallelsize(", at);
    out.meaning
        = "Each data parallel rank takes the same number of microbatches in a step, so the batch must be a multiple of one "
          "microbatch on every rank.";
    const auto round = micro && data ? checkedMultiply(*micro, *data) : std::nullopt;
    if (batch && round && *round >= 1 && *batch >= 1) {
        out.fact("batch", fmt::format("{} sequences", *batch));
        out.fact("one microbatch on all ranks", fmt::format("{} x {} = {}", *micro, *data, *round));
        out.remedy(fmt::format("Take a batch that is a multiple of {}: {}.", *round, multiplesNear(*batch, *round)));
        std::vector<std::int64_t> fitting;
        for (std::int64_t size = 1; size <= 64 && *batch % *data == 0; ++size) {
            if (*batch / *data % size == 0)
                fitting.push_back(size);
        }
        if (!fitting.empty())
            out.remedy(fmt::format("Or keep the batch: with {} ranks microbatches of {} go.", *data, fmt::join(fitting, ", ")));
    } else {
        out.remedy("Take a batch that is a multiple of the two.");
    }
    return true;
}

/// ".. world_size 256 != 4 * 8 * 16": of a step, of a microbatch, of microbatches, of ranks
bool explainBatchOfDeepSpeed(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto unequal = part.find("!=", at);
    constexpr std::size_t kNear = 120;
    out.meaning = "train_batch_size must be train_micro_batch_size_per_gpu x gradient_accumulation_steps x the number of ranks.";
    const auto second = unequal ? part.after("*", *unequal) : std::nullopt;
    const std::int64_t batch = part.integer("world_size", at).value_or(0);
    const std::int64_t micro = unequal ? part.integer("!=", at).value_or(0) : 0;
    const std::int64_t steps = unequal ? part.integer("*", *unequal).value_or(0) : 0;
    const std::int64_t ranks = second ? part.integer("*", *second).value_or(0) : 0;
    if (batch >= 1 && micro >= 1 && steps >= 1 && ranks >= 1 && *unequal < at + kNear) {
        out.fact("batch", fmt::format("{} sequences", batch));
        out.fact("microbatch x accumulation x ranks", fmt::format("{} x {} x {}", micro, steps, ranks));
        const std::int64_t round = checkedMultiply(micro, ranks).value_or(0);
        if (round > 0 && batch % round == 0)
            out.remedy(fmt::format("Accumulate {} microbatches, or leave the key out: DeepSpeed fills in the third of the three.",
                           batch / round),
                fmt::format("\"gradient_accumulation_steps\": {}\n", batch / round));
        else if (round > 0)
            out.remedy(fmt::format("Take a batch that is a multiple of {}: {}.", round, multiplesNear(batch, round)));
        if (ranks == 1)
            out.remedy("DeepSpeed counts one rank: where more were started, it was set up before torch.distributed.",
                "deepspeed --num_gpus 8 train.py\n");
    }
    out.remedy("Give two of the three sizes only; DeepSpeed computes the other.");
    return true;
}

/// "Invalid parallel dims: dp_replicate(1) * dp_shard(4) * cp(1) * tp(4) * pp(1) != WORLD_SIZE(8)"
bool explainTitanDims(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    std::int64_t product = 1;
    std::int64_t others = 1; // without dp_shard
    std::vector<std::string> degrees;
    for (const char* name : {"dp_replicate", "dp_shard", "cp", "tp", "pp"}) {
        const auto degree = part.integer(std::string(name) + "(", at);
        if (!degree || *degree < 1)
            continue;
        degrees.push_back(fmt::format("{} {}", name, *degree));
        product = checkedMultiply(product, *degree).value_or(0);
        if (std::string_view(name) != "dp_shard")
            others = checkedMultiply(others, *degree).value_or(0);
    }
    const auto ranks = part.integer("world_size(", at);
    out.meaning = "torchtitan's degrees must multiply to the number of ranks.";
    if (ranks && product > 0) {
        out.fact("degrees", fmt::format("{} = {}", join(degrees, " x "), product));
        out.fact("ranks", fmt::format("{}", *ranks));
        out.meaning += fmt::format(" These make {}, and {} were started.", product, *ranks);
    }
    if (ranks && others > 0 && *ranks >= 1 && *ranks % others == 0)
        out.remedy(fmt::format("Let the shards take what is left, which are {}:", *ranks / others),
            "--parallelism.data_parallel_shard_degree -1\n");
    else if (ranks && others > 0)
        out.remedy(fmt::format(
            "Without shards the degrees make {}, which does not divide {}: make one of them smaller.", others, *ranks));
    out.remedy("Or start as many ranks as the degrees make:",
        product > 0 ? fmt::format("NGPU={} ./run_train.sh\n", product) : "NGPU=8 ./run_train.sh\n");
    return true;
}

/// "Number of devices per slice 64 does not match the product of the ICI parallelism 128", "Number of slices 2 does not match .. DCN parallelism 4"
bool explainMaxTextDims(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kNear = 60;
    const auto words = part.find("doesnotmatchtheproductofthe", at);
    if (!words || *words > at + kNear)
        return false;
    const bool isSlices = part.find("numberofslices", at) == at;
    const std::string axes = isSlices ? "dcn" : "ici";
    const std::string parts = isSlices ? "slices" : "devices of a slice";
    const auto there = part.integer(isSlices ? "numberofslices" : "numberofdevicesperslice", at);
    const auto asked = part.integer(axes + "parallelism", *words);
    out.meaning = fmt::format("MaxText's {}_*_parallelism must multiply to the number of {}.", axes, parts);
    if (there && asked) {
        out.fact(parts, fmt::format("{}", *there));
        out.fact(fmt::format("the {} axes", axes), fmt::format("{}", *asked));
        out.meaning += fmt::format(" They make {}, and there are {}.", *asked, *there);
    }
    out.remedy("Let one axis take what is left. The others must then multiply to a divisor of that number:",
        isSlices ? "dcn_data_parallelism=-1\n" : "ici_fsdp_parallelism=-1\n");
    out.remedy(isSlices
            ? "If there are more slices than JAX sees, check that all of them have started."
            : "If more devices were meant, check the machine. ici_* are axes within a slice; dcn_* are axes across slices.");
    return true;
}

} // namespace

std::span<const MessageKind> degreeMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"mesh-axis-not-assigned", "JAX", "a mesh axis that the machine's axes do not make",
            {"failedtofindassignmentforlogical_axis_index"}, explainAssignment, 400},
        {"mesh-names-and-dims-differ", "JAX", "devices of another rank than the names of the mesh",
            {"meshrequiresthendimofitsfirstargument"}, explainMeshRank, 300},
        {"degrees-and-ranks-differ", "Megatron", "parallel degrees that do not divide the ranks", {"worldsize(", "world_size("},
            explainRanksOfMegatron},
        {"batch-and-ranks-differ", "Megatron", "a batch that the data parallel ranks do not divide", {"globalbatchsize("},
            explainBatchOfMegatron, 120},
        {"batch-and-ranks-differ", "DeepSpeed", "a batch that is not what the ranks take", {"train_batch_sizeisnotequalto"},
            explainBatchOfDeepSpeed, 160},
        {"layers-and-stages-differ", "Megatron", "layers that the stages of the pipeline do not divide",
            {"layersshouldbedivisiblebythepipeline", "layersshouldbedivisiblebypipeline"}, nullptr, 0, 160,
            "Pipeline parallelism gives each stage the same number of layers, and with virtual stages each of its chunks: the "
            "layers must be divisible by the stages.",
            {{"Take a pipeline size that divides the layers:", "--pipeline-model-parallel-size N\n"},
                {"Or give the first and the last stage fewer layers:",
                    "--decoder-first-pipeline-num-layers N \\\n  --decoder-last-pipeline-num-layers M\n"}}},
        {"degrees-and-ranks-differ", "torchtitan", "parallel degrees that do not make the ranks", {"invalidparalleldims:"},
            explainTitanDims, 200},
        {"degrees-and-ranks-differ", "MaxText", "parallel degrees that do not make the devices",
            {"numberofdevicesperslice", "numberofslices"}, explainMaxTextDims, 160},
        {"degrees-and-ranks-differ", "MaxText", "a parallel degree of -1 that cannot be computed",
            {"foundunspecifiedvalues(-1)formorethanone", "unspecifiedvalueunabletobedetermined"}, nullptr, 160, 160,
            "An axis of -1 takes the devices (ici) or the slices (dcn) that the other axes leave. Only one axis of each kind "
            "can be -1, and the others must leave at least 1.",
            {{"Give all axes but one a size:", "ici_fsdp_parallelism=-1 ici_tensor_parallelism=4\n"}}},
        {"sequence-and-ranks-differ", "Megatron", "a sequence that context parallelism does not divide",
            {"seq-lengthshouldbeamultipleof2*context-parallel-size"}, nullptr, 120, 0,
            "Context parallelism gives each rank two pieces of every sequence, one from the front and one from the back, so that "
            "under the causal mask all ranks have as much attention to compute.",
            {{"Take a --seq-length that is a multiple of 2 x --context-parallel-size."},
                {"Or use less context parallelism, and leave the ranks to data parallelism:", "--context-parallel-size N\n"}}},
        {"experts-and-ranks-differ", "Megatron", "experts that expert parallelism does not divide",
            {"numberofexpertsshouldbeamultipleofexpert"}, nullptr, 80, 0,
            "Expert parallelism gives each rank of its group the same number of experts, so --num-experts must divide by it.",
            {{"Take a size that divides the experts:", "--expert-model-parallel-size N\n"}}},
    };
    return kKinds;
}

} // namespace meshwright
