// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/message_kind.h"

#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace meshwright {

namespace {

/// The smallest power of two that brings `needed` below `there`; nothing when it is too large to be of use.
std::optional<std::int64_t> splitsNeeded(double needed, double there)
{
    if (there <= 0 || needed <= there)
        return std::nullopt;
    std::int64_t splits = 2;
    constexpr std::int64_t kMost = 65536;
    while (needed / static_cast<double>(splits) > there && splits < kMost)
        splits *= 2;
    return splits < kMost ? std::optional(splits) : std::nullopt;
}

constexpr const char* kShardStates = "w = jax.device_put(w, NamedSharding(mesh, P('data', 'model')))\n";

/// What helps against too little memory on an accelerator, the cheapest first.
void addRecomputation(Explanation& out)
{
    out.remedies.push_back(
        {"Compute activations again in the backward pass instead of keeping them, or take a smaller batch per device:",
            "layer = jax.checkpoint(layer)\n"});
}

void addSimulation(Explanation& out)
{
    out.remedy("See before a launch what a device holds, and for how long:", "meshwright simulate study.yaml\n");
}

void addSize(const char* name, const std::optional<double>& bytes, Explanation& out)
{
    if (bytes)
        out.fact(name, formatBytes(*bytes));
}

// ---- buffers that XLA lists ----------------------------------------------------------------------------------------------------

/// A buffer of a list that a message ends with.
struct ListedBuffer {
    double bytes = 0.0;
    std::optional<double> unpadded;
    std::optional<TensorType> type;
    std::string op;
};

/// "1. Size: 8.00G Operator: op_name=".." Shape: f32[..] Unpadded size: 7.00G .." and so on, or "Buffer 1: Size: ..", from `from` on.
std::vector<ListedBuffer> buffersIn(const MessagePart& part, std::size_t from, const char* numbered)
{
    constexpr std::size_t kMostRead = 64;
    constexpr std::size_t kFurthest = 3000; ///< from one to the next
    constexpr std::size_t kNowhere = std::string_view::npos;
    const auto placeOf = [&](std::size_t number, std::size_t behind) {
        return part.find(fmt::format(fmt::runtime(numbered), number), behind).value_or(kNowhere);
    };
    std::vector<ListedBuffer> buffers;
    for (std::size_t start = placeOf(1, from); start != kNowhere && buffers.size() < kMostRead;) {
        const std::size_t following = placeOf(buffers.size() + 2, start);
        const std::size_t next = following <= start + kFurthest ? following : kNowhere;
        const std::size_t end = std::min({next, start + kFurthest, part.text().size()});
        const MessagePart own(part.log(), part.begin() + start, part.begin() + end);
        const auto size = own.bytes("size:");
        if (!size)
            break;
        ListedBuffer buffer{*size, own.bytes("unpaddedsize:"), {}, {}};
        if (const auto shape = own.after("shape:"))
            buffer.type = typeAt(own.text(), *shape);
        if (const auto op = own.between("op_name=\"", "\"", 0, 600))
            buffer.op = *op;
        buffers.push_back(std::move(buffer));
        start = next;
    }
    return buffers;
}

void addBuffers(const std::vector<ListedBuffer>& buffers, Explanation& out)
{
    constexpr std::size_t kMost = 6;
    for (std::size_t i = 0; i < std::min(kMost, buffers.size()); ++i) {
        const ListedBuffer& buffer = buffers[i];
        const bool isPadded = buffer.unpadded && buffer.bytes > 1.1 * *buffer.unpadded;
        out.fact(fmt::format("buffer {}", i + 1),
            formatBytes(buffer.bytes) + (isPadded ? fmt::format(" ({} without padding)", formatBytes(*buffer.unpadded)) : "")
                + (buffer.type ? ": " + typeText(*buffer.type) : "") + (buffer.op.empty() ? "" : ", " + buffer.op));
    }
    if (buffers.size() > kMost)
        out.fact("more", fmt::format("{} more of at most {} each", buffers.size() - kMost, formatBytes(buffers[kMost].bytes)));
}

/// A spec that cuts the first and the last dimension of an array of this rank.
std::string specOfRank(std::size_t rank)
{
    std::vector<std::string> entries(rank, "None");
    if (rank > 0)
        entries.front() = "'data'";
    if (rank > 1)
        entries.back() = "'model'";
    return fmt::format("P({}{})", join(entries, ", "), rank == 1 ? "," : "");
}

/// How the buffers of the program itself become small enough: `excess` bytes must go.
void addBufferCut(const std::vector<ListedBuffer>& buffers, double excess, Explanation& out)
{
    if (buffers.empty())
        return;
    const ListedBuffer& largest = buffers.front();
    const std::string which = fmt::format("the largest buffer{}{}", largest.type ? ", " + typeText(*largest.type) : "",
        largest.op.empty() ? "" : " of " + largest.op);
    const std::string code = fmt::format("x = jax.lax.with_sharding_constraint(\n    x, NamedSharding(mesh, {}))\n",
        specOfRank(largest.type ? largest.type->shape.size() : 2));
    double all = 0.0;
    for (const ListedBuffer& buffer : buffers)
        all += buffer.bytes;
    for (const bool isAlone : {true, false}) {
        const double bytes = isAlone ? largest.bytes : all;
        const auto splits = excess > 0 && bytes > excess ? splitsNeeded(bytes, bytes - excess) : std::nullopt;
        if (!splits)
            continue;
        out.remedy(fmt::format("Cut {}, {} ways more where {} made. This frees up to {}, and {} must go:",
                       isAlone ? which : "all listed buffers", *splits, isAlone ? "it is" : "they are",
                       formatBytes(bytes - bytes / static_cast<double>(*splits)), formatBytes(excess)),
            code);
        return;
    }
    out.remedy(fmt::format("Cut {} over more devices where it is made:", which), code);
}

/// True when a buffer takes much more memory than its elements, because the chip's tiles pad its last dimensions.
void addPaddingAdvice(const std::vector<ListedBuffer>& buffers, Explanation& out)
{
    const auto padded = std::find_if(buffers.begin(), buffers.end(),
        [](const ListedBuffer& buffer) { return buffer.unpadded && buffer.bytes >= 2 * *buffer.unpadded; });
    if (padded != buffers.end())
        out.remedy(
            fmt::format("Padding makes {} take {} instead of {}: a TPU stores the last two dimensions in tiles of 8 x 128. "
                        "Let the last dimension be a multiple of 128.",
                padded->type ? typeText(*padded->type) : std::string("a buffer"), formatBytes(padded->bytes),
                formatBytes(*padded->unpadded)));
}

void explainOnChip(Explanation& out)
{
    out.meaning = "A kernel needs more of the chip's small fast memory than there is. That is a matter of one kernel's block "
                  "sizes, not of how arrays are sharded.";
    out.remedies.clear();
    out.remedy("Take smaller blocks in the kernel, or another attention or matmul kernel.");
}

/// "Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G."
bool explainCompiledMemory(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    std::string space = lowerCase(part.name("inmemoryspace", at)); // "hbm.used21.95g": what follows has no space before it
    space.resize(std::min(space.find('.'), space.size()));
    const auto usedAt = part.find("used", at);
    const auto used = part.bytes("used", at);
    const auto there = usedAt ? part.bytes("of", *usedAt) : std::nullopt;
    const std::size_t totals = part.find("totalhbmusage", at).value_or(part.text().size());
    const auto program = part.bytes("program", totals);
    const auto arguments = part.bytes("arguments", totals);
    addSize("needed", used, out);
    addSize("there is", there, out);
    addSize("too much by", part.bytes("capacityby", at), out);
    addSize("program", program, out);
    addSize("arguments", arguments, out);
    const std::vector<ListedBuffer> buffers
        = buffersIn(part, part.find("largestprogramallocationsin" + space, at).value_or(at), "{}.size:");
    addBuffers(buffers, out);
    if (space == "vmem" || space == "smem") {
        explainOnChip(out);
        return true;
    }
    out.meaning = "The compiler counted what one device must hold at once: its pieces of parameters and optimiser states, the "
                  "activations that the backward pass needs, and buffers of collectives. It is more than the device's memory, so "
                  "the program was not even started.";
    const double needed = used.value_or(0);
    const double capacity = there.value_or(0);
    const auto splits = splitsNeeded(needed, capacity);
    const std::string times = splits ? fmt::format("It needs {:.2f} times what there is", needed / capacity) : std::string();
    constexpr double kSmallPart = 0.25;
    const bool isProgram = program && arguments && *arguments < kSmallPart * (*program + *arguments);
    if (isProgram) {
        out.meaning += fmt::format(" {}Most of it, {}, are buffers of the program itself, and its arguments (parameters, "
                                   "optimiser states, the batch) take {}.",
            times.empty() ? times : times + ". ", formatBytes(*program), formatBytes(*arguments));
        addBufferCut(buffers, needed - capacity, out);
        addPaddingAdvice(buffers, out);
        addRecomputation(out);
        if (capacity > 0 && *program > capacity)
            out.remedy("Sharding the parameters and optimiser states further is not enough: the buffers alone are too large.");
        else
            out.remedy("Shard parameters and optimiser states over the data axis too (FSDP, ZeRO):", kShardStates);
    } else {
        out.remedy(splits ? fmt::format("{}: cutting the largest arrays {} ways more is enough if they are most of it. Shard "
                                        "parameters and optimiser states over the data axis too (FSDP):",
                       times, *splits)
                          : std::string("Shard parameters and optimiser states over the data axis too (FSDP, ZeRO):"),
            kShardStates);
        addPaddingAdvice(buffers, out);
        if (arguments && capacity > 0 && *arguments > capacity)
            out.remedy("Recomputing activations is not enough: the arguments alone are too large.");
        else
            addRecomputation(out);
    }
    addSimulation(out);
    return true;
}

/// "Can't reduce memory use below 14.16GiB (15204352000 bytes) by rematerialization; only reduced to 18.03GiB (.. bytes), down from .. originally"
bool explainLimit(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto limit = part.bytes("memoryusebelow", at);
    const auto reached = part.bytes("onlyreducedto", at);
    addSize("limit", limit, out);
    addSize("reached", reached, out);
    addSize("at first", part.bytes("downfrom", at), out);
    out.meaning
        = "XLA computes some values twice instead of keeping them, so that the program fits its limit of memory. This was "
          "not enough here: the program runs out of memory unless the limit is below what the device has.";
    addRecomputation(out);
    const auto splits = limit && reached ? splitsNeeded(*reached, *limit) : std::nullopt;
    out.remedy(splits ? fmt::format("Shard what a device holds {} ways more: the program needs {:.2f} times its limit.", *splits,
                   *reached / *limit)
                      : std::string("Shard what a device holds further."),
        kShardStates);
    addSimulation(out);
    return true;
}

// ---- allocations that fail -----------------------------------------------------------------------------------------------------

/// One buffer is larger than all memory of a device: how many devices at least must share it.
void explainTooLarge(double wanted, double total, const char* array, const char* device, Explanation& out)
{
    const double devices = std::max(2.0, std::ceil(wanted / total));
    out.meaning = wanted > total
        ? fmt::format("One {} alone asks for {}, {} times the whole memory of the {} ({}): it can never fit there, whatever else "
                      "is freed.",
            array, formatBytes(wanted), fmt::format("{:.{}f}", wanted / total, wanted < 100 * total ? 2 : 0), device,
            formatBytes(total))
        : fmt::format("One {} alone asks for {}, the whole memory of the {}: it can never fit there beside anything else.", array,
            formatBytes(wanted), device);
    out.remedies.clear();
    out.remedy(
        fmt::format("Find the line that makes the {} and print the shapes of its operands. Scores of attention with the square "
                    "of the sequence, a broadcast of (n, 1) with (n,), and a size read from wrong data are the usual reasons.",
            array));
    out.remedy(
        fmt::format("If the size is right, compute the {} in parts, or shard it over at least {:.0f} devices.", array, devices));
}

/// "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", "Attempting to allocate 4.00G. That was not possible. There
/// are 2.11G free.; (0x0x0_HBM0)", "Allocation (size=17179869184) would exceed memory (size=17179869184) :: #allocation7 [.. space=hbm"
bool explainXlaAllocation(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    std::optional<double> wanted;
    for (const char* words :
        {"tryingtoallocate", "outofmemoryallocating", "attemptingtoallocate", "attemptingtoreserve", "allocation(size="}) {
        if (!wanted)
            wanted = part.bytes(words, at);
    }
    const auto free = part.bytes("thereare", at);
    const auto total = part.bytes("exceedmemory(size=", at);
    constexpr std::size_t kNear = 1500;
    const auto isNear = [&](const char* words) {
        const auto found = part.find(words, at - std::min<std::size_t>(at, 200));
        return found && *found < at + kNear;
    };
    const bool isTpu
        = isNear("_hbm") || isNear("space=hbm") || isNear("xla:tpu") || isNear("xla_tpu") || isNear("atthebottomofmemory");
    addSize("asked for", wanted, out);
    addSize("memory", total, out);
    addSize("free", free, out);
    const auto arguments = part.bytes("parameterallocation:", at);
    const auto temporaries = part.bytes("preallocatedtempallocation:", at);
    addSize("arguments", arguments, out);
    addSize("results", part.bytes("maybe_live_outallocation:", at), out);
    addSize("temporaries", temporaries, out);
    std::vector<ListedBuffer> buffers;
    if (const auto peak = part.find("peakbuffers:", at))
        buffers = buffersIn(part, *peak, "buffer{}:size:");
    addBuffers(buffers, out);
    if (isNear("space=vmem") || isNear("space=smem")) {
        explainOnChip(out);
        return true;
    }
    if (wanted && total && *total > 0 && *wanted >= *total) {
        explainTooLarge(*wanted, *total, "buffer", "device", out);
        return true;
    }
    if (wanted && free && *free >= *wanted) {
        out.meaning = fmt::format("A buffer of {} does not fit although {} are free: the free memory is in pieces, each smaller "
                                  "than the buffer.",
            formatBytes(*wanted), formatBytes(*free));
        out.remedy("Make the large arrays first, or shard the buffer over more devices, so that a smaller piece is enough.");
    } else if (wanted && free) {
        const bool isProgram = part.has("attemptingtoreserve");
        const auto splits = isProgram ? std::nullopt : splitsNeeded(*wanted, *free);
        out.remedy(fmt::format("{} more must be free for {}{}", formatBytes(*wanted - *free),
                       isProgram ? "the buffers of the program" : "this buffer",
                       splits ? fmt::format(", or the array must be cut {} ways more:", *splits) : std::string(".")),
            splits ? "x = jax.device_put(x, NamedSharding(mesh, P('data')))\n" : "");
    }
    const bool isArguments = arguments && temporaries && *arguments > *temporaries;
    if (isArguments)
        out.remedy("Shard parameters and optimiser states over the data axis too (FSDP, ZeRO): the arguments take more than the "
                   "temporaries.",
            kShardStates);
    addBufferCut(buffers, 0.0, out);
    out.remedy(
        "See what is there already. An old state beside the new one, or results of an earlier cell, stay as long as a name "
        "has them; a donated argument makes room for the result:",
        "for a in jax.live_arrays():\n    print(a.shape, a.dtype, a.sharding)\nstep = jax.jit(step, donate_argnums=0)\n");
    if (!isTpu)
        out.remedy("On a GPU, end other processes and earlier runs that hold memory (nvidia-smi shows them). JAX takes 75 % of "
                   "the GPU when it starts; let it take more:",
            "export XLA_PYTHON_CLIENT_MEM_FRACTION=0.9\n");
    if (!isArguments)
        out.remedy("Shard parameters and optimiser states over the data axis too (FSDP, ZeRO):", kShardStates);
    addRecomputation(out);
    addSimulation(out);
    return true;
}

/// What PyTorch's devices of one kind have of their own.
struct TorchDevices {
    const char* name; ///< as messages begin
    const char* device;
    const char* setting; ///< of the allocator
    const char* library; ///< of collectives
    const char* monitor;
};

TorchDevices torchDevicesAt(const MessagePart& part, std::size_t at)
{
    static constexpr TorchDevices kKnown[]
        = {{"cuda", "GPU", "PYTORCH_CUDA_ALLOC_CONF", "NCCL and the CUDA context", "nvidia-smi\n"},
            {"hip", "GPU", "PYTORCH_HIP_ALLOC_CONF", "RCCL and the HIP context", "rocm-smi --showpids\n"},
            {"xpu", "GPU", "PYTORCH_ALLOC_CONF", "oneCCL and the driver", "xpu-smi ps\n"},
            {"npu", "NPU", "PYTORCH_NPU_ALLOC_CONF", "HCCL and the driver", "npu-smi info\n"}};
    for (const TorchDevices& devices : kKnown) {
        if (part.find(devices.name, at) == at)
            return devices;
    }
    return kKnown[0];
}

/// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.13 GiB is free. .."
bool explainTorchMemory(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    constexpr std::size_t kFar = 1500;
    const TorchDevices devices = torchDevicesAt(part, at);
    const auto wanted = part.bytes("triedtoallocate", at);
    auto total = part.bytes("totalcapacityof", at);
    if (!total)
        total = part.bytes("totalcapactyof", at); // as PyTorch 2.0 and 2.1 spell it
    auto free = part.bytes("ofwhich", at);
    auto allocated = part.bytes("oftheallocatedmemory", at);
    auto reserved = part.bytesBefore("isreservedbypytorch", at, kFar);
    if (!total) { // (GPU 0; 15.78 GiB total capacity; 14.57 GiB already allocated; 4.44 MiB free; 14.70 GiB reserved in total by PyTorch)
        total = part.bytesBefore("totalcapacity", at, kFar);
        allocated = part.bytesBefore("alreadyallocated", at, kFar);
        free = part.bytesBefore("free;", at, kFar);
        const auto all = part.bytesBefore("reservedintotal", at, kFar);
        if (all && allocated)
            reserved = std::max(0.0, *all - *allocated);
    }
    if (const auto device = part.integer(lowerCase(devices.device), part.after("outofmemory", at).value_or(at)))
        out.fact("device", fmt::format("{} {}", devices.device, *device));
    addSize("asked for", wanted, out);
    addSize("memory", total, out);
    addSize("free", free, out);
    addSize("in tensors", allocated, out);
    addSize("in private pools", part.bytesBefore("allocatedinprivatepools", at, kFar), out);
    addSize("reserved, unused", reserved, out);
    if (wanted && total && *total > 0 && *wanted > *total) {
        explainTooLarge(*wanted, *total, "tensor", devices.device, out);
        return true;
    }
    const bool fragmented = wanted && reserved && *reserved > *wanted;
    const bool others = total && free && allocated && *total - *free - *allocated - reserved.value_or(0) > 0.1 * *total;
    out.meaning = fmt::format("PyTorch's allocator found no free piece of this size on the {}.", devices.device);
    if (fragmented)
        out.meaning += " It holds more than that itself, but in pieces that are too small: the memory is fragmented.";
    if (others)
        out.meaning += fmt::format(" About {} of the {} is in use outside PyTorch's tensors: another process, or {}.",
            formatBytes(*total - *free - *allocated - reserved.value_or(0)), devices.device, devices.library);
    if (fragmented)
        out.remedy("Let the allocator grow its segments:", fmt::format("export {}=expandable_segments:True\n", devices.setting));
    if (others)
        out.remedy("See who holds it, and end what is left from an earlier run:", devices.monitor);
    out.remedy("Shard parameters, gradients and optimiser states over the data-parallel ranks:",
        "for layer in model.layers:\n    fully_shard(layer, mesh=mesh['dp'])\nfully_shard(model, mesh=mesh['dp'])\n");
    out.remedy("Recompute activations in the backward pass, or take a smaller micro-batch:",
        "out = checkpoint(layer, x, use_reentrant=False)\n");
    addSimulation(out);
    return true;
}

bool explainHostMemory(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    if (const auto process = part.bracketed("killedprocess", at))
        out.fact("process", std::string(*process));
    else if (const auto id = part.integer("killedprocess", at)) {
        const auto name = part.bracketed(fmt::format("killedprocess{}", *id), at);
        out.fact("process", fmt::format("{} {}", *id, name ? std::string(*name) : std::string()));
    }
    addSize("held", part.bytes("anon-rss:", at), out);
    addSize("address space", part.bytes("total-vm:", at), out);
    out.meaning = "The computer's own memory, not the accelerator's, was used up, or a limit of the job (cgroup, Slurm, "
                  "container) was reached. The system ended the process at once, so there "
                  "is no Python traceback; the other ranks then report a lost peer or a timeout.";
    out.remedy("Ask for more memory per process, or start fewer processes on a host:",
        "sbatch --mem=0 job.sh  # Slurm: all of the node's memory\n");
    out.remedy("Load parameters piece by piece instead of whole on each rank: restore a checkpoint straight into "
               "its shardings (Orbax, DCP), make them on the devices with jit and out_shardings, and use fewer data "
               "loader workers.");
    return true;
}

/// A shell's or a launcher's word for a process that was killed.
bool explainKilled(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    if (const auto rank = part.integer("local_rank:", at))
        out.fact("local rank", fmt::format("{}", *rank));
    explainHostMemory(part, at, context, out);
    out.meaning = "A process was ended by signal 9, which it cannot catch. Without another reason this is the system's way out "
                  "when the host's memory is used up, or a limit of the job is "
                  "reached; `dmesg` or the job's log shows it (\"Out of memory: Killed process\").";
    return true;
}

bool explainPythonMemory(const MessagePart& part, std::size_t at, const ExplainContext& context, Explanation& out)
{
    addSize("asked for", part.bytes("unabletoallocate", at), out);
    explainHostMemory(part, at, context, out);
    return true;
}

} // namespace

std::span<const MessageKind> memoryMessageKinds()
{
    static const std::vector<MessageKind> kKinds = {
        {"out-of-memory-compiled", "XLA", "the program needs more memory than a device has", {"ranoutofmemoryinmemoryspace"},
            explainCompiledMemory, 400},
        {"out-of-memory", "PyTorch", "the GPU's memory is used up", {"cudaoutofmemory", "hipoutofmemory", "xpuoutofmemory"},
            explainTorchMemory, 400},
        {"out-of-memory", "PyTorch", "the NPU's memory is used up", {"npuoutofmemory"}, explainTorchMemory, 400},
        {"out-of-memory", "XLA", "a device's memory is used up",
            {"outofmemorywhiletryingtoallocate", "outofmemoryallocating",
                "resource_exhausted:", "resourceexhausted:", "resourceexhaustederror"},
            explainXlaAllocation, 400, 0,
            "A device has no room for one more buffer. A single very large buffer is often an array that should be sharded and "
            "is whole on every device: logits of a large vocabulary, an array gathered by a constraint, a batch that was not "
            "split."},
        {"memory-limit-not-reached", "XLA", "the program cannot be made small enough", {"can'treducememoryusebelow"},
            explainLimit},
        {"host-out-of-memory", "the system", "the host's memory is used up",
            {"outofmemory:killedprocess", "memorycgroupoutofmemory", "oom-killevent", "oom_killevent", "oom-kill:constraint",
                "invokedoom-killer", "oomkilled"},
            explainHostMemory, 200},
        {"host-out-of-memory", "Python", "the host's memory is used up",
            {"memoryerror:unabletoallocate", "cannotallocatememory", "_arraymemoryerror:"}, explainPythonMemory, 200, 0,
            "An array was to be made in the computer's own memory, and there is not that much. Often a whole global array is "
            "made on every process before it is sharded.",
            {}},
        {"killed", "the system", "a process was killed",
            {"exitcode:-9", "signal9(sigkill)", "sigkillreceived", "exitedwithexitcode137", "diedwith<signals.sigkill"},
            explainKilled},
        {"killed", "the system", "a process was killed", {"killed"}, explainKilled, 0, 0, "", {}, true},
    };
    return kKinds;
}

} // namespace meshwright
