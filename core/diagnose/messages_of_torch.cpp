// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

namespace {

/// The name of the op that a message of torch's dispatcher begins with: "aten.mm.default".
std::string opBefore(const MessagePart& part, std::size_t at)
{
    const std::string_view text = part.text();
    std::size_t end = at;
    while (end > 0 && (text[end - 1] == ':'))
        --end;
    std::size_t begin = end;
    const auto isPart = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    while (begin > 0 && end - begin < 100 && isPart(text[begin - 1]))
        --begin;
    const std::string op(text.substr(begin, end - begin));
    return op.find('.') != std::string::npos && op.back() != '.' ? op : std::string();
}

/// "mat1 and mat2 shapes cannot be multiplied (64x784 and 512x10)"
bool explainProduct(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto sizes = part.bracketed("cannotbemultiplied", at);
    std::vector<std::int64_t> numbers;
    if (sizes) {
        std::string text(sizes->substr(1, sizes->size() - 2));
        for (std::size_t with = text.find("and"); with != std::string::npos; with = text.find("and"))
            text.replace(with, 3, "x");
        for (const std::string& number : split(text, 'x')) {
            if (const auto value = parseInteger(number))
                numbers.push_back(*value);
        }
    }
    if (numbers.size() != 4 || numbers[1] <= 0 || numbers[2] <= 0) {
        out.meaning = "In a product A B the second size of A and the first of B must be equal.";
        return true;
    }
    const std::int64_t inner = numbers[1];
    const std::int64_t rows = numbers[2];
    out.fact("left", fmt::format("{} x {}", numbers[0], inner));
    out.fact("right", fmt::format("{} x {}", rows, numbers[3]));
    out.meaning = fmt::format(
        "In a product A B the second size of A and the first of B are the same dimension. Here they are {} and {}.", inner, rows);
    const std::int64_t large = std::max(inner, rows);
    const std::int64_t small = std::min(inner, rows);
    if (large % small == 0) {
        out.meaning += fmt::format(" One is {} times the other: with tensor parallelism of {} this is a weight or an activation "
                                   "that is sharded along this dimension while the other is whole.",
            large / small, large / small);
        out.remedies.push_back(
            {inner > rows ? "The weight is a shard of the rows, the input is whole. Give the layer its piece of the input "
                            "(RowwiseParallel does):"
                          : "The input is a piece, the weight is whole. Let the layer take sharded input, or gather it first:",
                inner > rows
                    ? "plan = {'w1': ColwiseParallel(), 'w2': RowwiseParallel()}\nparallelize_module(block, mesh['tp'], plan)\n"
                    : "plan = {'w2': RowwiseParallel(input_layouts=Shard(-1))}\nparallelize_module(block, mesh['tp'], plan)\n"});
    } else {
        out.remedies.push_back(
            {"Neither divides the other, so sharding is not the reason: the layer was made for inputs of another size.",
                fmt::format("# in_features is the last size of the input\nnn.Linear({}, {})\n", inner, numbers[3])});
    }
    return true;
}

/// "mat1 and mat2 must have the same dtype, but got Float and BFloat16", ".. to have the same dtype, but got: float != c10::BFloat16"
bool explainProductTypes(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kMost = 60;
    if (const auto got = part.after("butgot", at); got && *got < at + 2 * kMost) {
        const std::size_t line = part.log().lineEnd(part.begin() + *got) - part.begin();
        std::string types = clause(part, *got, std::min(line, *got + kMost));
        types.erase(0, types.find_first_not_of(": "));
        out.fact("types", types);
    }
    return true;
}

bool explainMixed(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("op", opBefore(part, at));
    return true;
}

bool explainCrossMesh(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    out.fact("op", opBefore(part, at));
    if (const auto meshes = part.find("gotmeshes:", at)) {
        const auto end = part.find(").", *meshes);
        out.fact("meshes", clause(part, *meshes + 10, end ? *end + 1 : *meshes + 240));
    }
    return true;
}

bool explainPlacementCount(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto found = part.integer("foundplacementslength:", at);
    const auto needed = part.integer("device_mesh.ndim:", at);
    if (found && needed) {
        out.fact("placements", fmt::format("{}", *found));
        out.fact("mesh dimensions", fmt::format("{}", *needed));
    }
    return true;
}

bool explainNoStrategy(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string_view op = part.name("operator", at);
    if (!op.empty())
        out.fact("op", std::string(op.substr(0, op.find("doesnot"))));
    return true;
}

/// "Sharding propagation failed for aten.view.default(Spec(f32[16, 100, 64](S(1))), [1600, 64]) on DeviceMesh(..)"
bool explainPropagation(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    if (const auto op = part.after("shardingpropagationfailedfor", at)) {
        const std::string said = clause(part, *op, *op + 220);
        out.fact("op", said.substr(0, said.find_first_of("( ")));
        out.fact("on", said.find('(') == std::string::npos ? std::string() : said.substr(said.find('(')));
    }
    return true;
}

/// The last integer before a position.
std::optional<std::int64_t> integerBefore(const MessagePart& part, std::size_t at)
{
    constexpr std::size_t kMost = 80;
    const std::string_view text = part.text().substr(0, at);
    const std::size_t last = text.find_last_of("0123456789");
    if (last == std::string_view::npos || last + kMost < at)
        return std::nullopt;
    const std::size_t before = text.find_last_not_of("0123456789", last);
    return parseInteger(text.substr(before + 1, last - before));
}

/// "num_attention_heads (12) must be divisible by tensor_model_parallel_size (8)"
bool explainParallelSize(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kMostBetween = 80;
    const auto got = part.find("got", at);
    const bool isListed = got && *got < at + kMostBetween; // ".., got 12 and 8"
    const std::int64_t size = (isListed ? part.integer("got", at) : integerBefore(part, at)).value_or(0);
    const std::size_t digits = part.text().find_first_of("0123456789", at);
    std::int64_t pieces = 0;
    if (isListed)
        pieces = part.integer("and", *got).value_or(0);
    else if (digits != std::string_view::npos && digits < at + kMostBetween)
        pieces
            = parseInteger(part.text().substr(digits, part.text().find_first_not_of("0123456789", digits) - digits)).value_or(0);
    out.meaning
        = "Tensor parallelism gives every rank the same number of heads (columns of a matrix, rows of the vocabulary), so the "
          "number must divide by its size.";
    if (size > 0 && pieces > 0) {
        out.fact("sizes", fmt::format("{} over {} ranks", size, pieces));
        std::vector<std::string> fitting;
        for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(size, 64) && fitting.size() < 8; ++ranks) {
            if (size % ranks == 0)
                fitting.push_back(std::to_string(ranks));
        }
        out.remedy(fmt::format("Sizes of tensor parallelism that fit {}: {}.", size, join(fitting, ", ")));
    }
    if (const auto groups = part.find("query_groups", at - std::min<std::size_t>(at, kMostBetween)); groups && *groups < at)
        out.remedy("The size must divide both the heads (--num-attention-heads) and their groups (--num-query-groups).");
    out.remedy(
        "Give the ranks that are left to data or pipeline parallelism: their product is what must be the number of GPUs. A "
        "vocabulary may be padded (Megatron's --make-vocab-size-divisible-by).");
    return true;
}

bool explainTwoDevices(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    if (const auto devices = part.after("atleasttwodevices,", at))
        out.fact("devices", clause(part, *devices, part.find("!", *devices).value_or(*devices + 60)));
    return true;
}

bool explainWorldSize(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto world = part.integer("defaultworldsize", at);
    const auto found = part.integer("butfound", at);
    if (world && found) {
        out.fact("ranks", fmt::format("{}", *world));
        out.fact("mesh", fmt::format("{} ranks", *found));
    }
    out.meaning = "The device mesh has more ranks than were started.";
    out.remedy("Start as many processes as the mesh's sizes multiply to, or make the mesh smaller:",
        found ? fmt::format("torchrun --nproc-per-node {} train.py\n", *found) : "torchrun --nproc-per-node 8 train.py\n");
    return true;
}

bool explainSizes(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto a = part.integer("(", at);
    const auto second = part.find("mustmatch", at);
    const auto b = second ? part.integer("(", *second) : std::nullopt;
    const auto dim = part.integer("non-singletondimension", at);
    if (!a || !b || *a <= 0 || *b <= 0)
        return false;
    out.fact("sizes", fmt::format("{} and {}{}", *a, *b, dim ? fmt::format(" in dimension {}", *dim) : ""));
    const std::int64_t large = std::max(*a, *b);
    const std::int64_t small = std::min(*a, *b);
    out.meaning = large % small == 0 && small > 1
        ? fmt::format("Two tensors are combined element by element, and their sizes differ by a factor of {}: one is probably a "
                      "shard and the other whole.",
            large / small)
        : "Two tensors are combined element by element, and their sizes differ.";
    out.remedy("Print both shapes and where they are made; with tensor or sequence parallelism, gather the sharded "
               "one or shard the other alike.");
    return true;
}

} // namespace

std::span<const MessageKind> torchMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"product-sizes-differ", "PyTorch", "the sizes of a matrix product do not fit", {"mat1andmat2shapescannotbemultiplied"},
            explainProduct},
        {"product-types-differ", "PyTorch", "the operands of a matrix product have different types",
            {"mat1andmat2musthavethesamedtype", "mat1andmat2tohavethesamedtype"}, explainProductTypes, 120, 0,
            "A matrix product takes two operands of one type. One is f32, often an activation behind a norm, a rotary embedding "
            "or a loss in f32, and the other has 16 bits, or the other way round.",
            {{"Let PyTorch choose the type of each product:",
                 "with torch.autocast('cuda', dtype=torch.bfloat16):\n    y = model(x)\n"},
                {"With FSDP, let the wrapped modules cast their inputs too:",
                    "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)\nfully_shard(block, mp_policy=policy)\n"},
                {"Or cast the operand that is alone:", "x = x.to(layer.weight.dtype)\n"}}},
        {"mixed-tensors", "PyTorch", "DTensor beside plain tensors", {"gotmixedtorch.tensoranddtensor"}, explainMixed, 0, 0,
            "An op got a DTensor, which is sharded over a mesh, and a plain tensor, of which nobody knows whether it is a piece "
            "or a whole. DTensor does not guess.",
            {{"If the plain tensor is equal on all ranks, say so:",
                 "t = DTensor.from_local(t, mesh, [Replicate()] * mesh.ndim)\n"},
                {"If it is each rank's piece, say of which dimension:", "t = DTensor.from_local(t, mesh, [Shard(0)])\n"},
                {"If the DTensor's own piece is meant (in a kernel that knows no DTensor):",
                    "local = d.to_local()  # full_tensor() gathers all of it\n"}}},
        {"meshes-differ", "PyTorch", "DTensors on different meshes", {"dtensordoesnotsupportcross-meshoperation"},
            explainCrossMesh, 0, 0,
            "The DTensors of one op are on different device meshes, for example parameters that are sharded by FSDP only beside "
            "others that are sharded by FSDP and tensor parallelism.",
            {{"Bring them onto one mesh, replicated over the dimension that they lack:",
                 "placements = [Shard(0), Replicate()]\nd = DTensor.from_local(d.to_local(), mesh, placements)\n"},
                {"In clip_grad_norm_ and foreach optimisers: handle the two kinds of parameters apart, or switch foreach off.",
                    "torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=False)\n"}}},
        {"placements-and-mesh-differ", "PyTorch", "not one placement for each mesh dimension",
            {"musthavethesamelengthas`device_mesh.ndim`", "foundplacementslength:"}, explainPlacementCount, 200, 0,
            "DTensor has one placement for each dimension of the mesh, not of the tensor: [Shard(0), Replicate()] on a mesh (dp, "
            "tp) splits tensor dimension 0 over dp and copies over tp. JAX's PartitionSpec is the other way round, one entry for "
            "each dimension of the array.",
            {{"Write one placement for each mesh dimension:", "distribute_tensor(t, mesh, [Shard(0), Replicate()])\n"},
                {"Or convert from a PartitionSpec:", "meshwright convert \"P('dp')\" --mesh dp=4,tp=2 --to dtensor\n"}}},
        {"no-sharding-rule", "PyTorch", "an op without a rule for DTensor", {"doesnothaveashardingstrategyregistered"},
            explainNoStrategy, 0, 0, "DTensor has a rule for each op that gives the sharding of its result; this op has no rule.",
            {{"Run the op on each rank's piece where that is right (element by element, or along dimensions that are whole):",
                 "y = op(x.to_local())\ny = DTensor.from_local(y, x.device_mesh, x.placements)\n"},
                {"Or register a rule: torch.distributed.tensor.experimental.register_sharding."}}},
        {"flattened-shard", "PyTorch", "a reshape over a sharded dimension",
            {"attemptedtoflattenshardeddimension", "attemptedtoflattenmultipledimensions",
                "cannotunflattenunevenlyshardedtensor"},
            nullptr, 0, 200,
            "A reshape puts dimensions together of which one that is not the first is sharded: the result's pieces would be "
            "strided, which no placement can say.",
            {{"Gather that dimension first, or move the sharding to the first of the dimensions:",
                "x = x.redistribute(placements=[Shard(0)])\n"}}},
        {"placement-not-inferred", "PyTorch", "DTensor cannot derive the placements of a result",
            {"shardingpropagationfailedfor"}, explainPropagation, 400, 0,
            "DTensor derives the placements of a result from those of the op's operands. For these it cannot: a view over a "
            "dimension that is split, sizes that do not divide, or operands on different meshes. S(1) in the message means "
            "Shard(1), R Replicate and P a partial sum.",
            {{"Bring the operand into a layout in which the op's dimensions are whole:",
                 "x = x.redistribute(placements=[Replicate()])\n"},
                {"Or run the op on each rank's piece where that is right:",
                    "y = DTensor.from_local(op(x.to_local()), x.device_mesh, x.placements)\n"}}},
        {"heads-and-ranks-differ", "Megatron, vLLM", "a size that tensor parallelism does not divide",
            {"divisiblebytensor", "divisiblebytheworldsize", "divisiblebytp_size", "divisiblebytpsize", "multipleoftensor",
                "multipleoftheworldsize", "multipleoftp_size", "multipleoftpsize"},
            explainParallelSize},
        {"two-devices", "PyTorch", "tensors on different devices", {"expectedalltensorstobeonthesamedevice"}, explainTwoDevices,
            0, 0,
            "The tensors of one op are on different devices, and PyTorch moves none by itself. A tensor made inside forward (a "
            "mask, positions) without a device, or a rank that did not call torch.cuda.set_device, is the usual reason.",
            {{"Make it where the other one is:", "mask = torch.ones(n, n, device=x.device)\n"},
                {"Once at the start of every rank:", "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"}}},
        {"mesh-and-ranks-differ", "PyTorch", "the mesh has more ranks than were started",
            {"meshshouldnotbebiggerthandefaultworldsize"}, explainWorldSize},
        {"sizes-differ", "PyTorch", "the sizes of two tensors do not fit", {"thesizeoftensora("}, explainSizes},
    };
    return kKinds;
}

} // namespace meshwright
