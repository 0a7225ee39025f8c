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

/// What helps against too little memory on an accelerator, the cheapest first.
void addSavings(double needed, double there, Explanation& out)
{
    if (const auto splits = splitsNeeded(needed, there))
        out.remedy(fmt::format("It needs {:.2f} times what there is: cutting the largest arrays {} ways more is "
                               "enough if they are most of it. Shard parameters and optimiser states "
                               "over the data axis too (FSDP):",
                       needed / there, *splits),
            "w = jax.device_put(w, NamedSharding(mesh, P('data', 'model')))\n");
    else
        out.remedy("Shard parameters and optimiser states over the data axis too (FSDP, ZeRO):",
            "w = jax.device_put(w, NamedSharding(mesh, P('data', 'model')))\n");
    out.remedies.push_back(
        {"Compute activations again in the backward pass instead of keeping them, or take a smaller batch per device:",
            "layer = jax.checkpoint(layer)\n"});
    out.remedy("See before a launch what a device holds, and for how long:", "meshwright simulate study.yaml\n");
}

void addSize(const char* name, const std::optional<double>& bytes, Explanation& out)
{
    if (bytes)
        out.fact(name, formatBytes(*bytes));
}

/// "Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G."
bool explainCompiledMemory(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const std::string_view space = part.name("inmemoryspace", at);
    const auto used = part.bytes("used", at);
    const auto usedAt = part.find("used", at);
    const auto there = usedAt ? part.bytes("of", *usedAt) : std::nullopt;
    const bool onChip = space.starts_with("vmem") || space.starts_with("smem");
    addSize("needed", used, out);
    addSize("there is", there, out);
    addSize("too much by", part.bytes("capacityby", at), out);
    addSize("program", part.bytes("program", part.find("totalhbmusage", at).value_or(part.text().size())), out);
    addSize("arguments", part.bytes("arguments", part.find("totalhbmusage", at).value_or(part.text().size())), out);
    const auto largest = part.find("1.size:", at);
    if (largest) {
        const auto shape = part.after("shape:", *largest);
        const auto type = shape ? typeAt(part.text(), *shape) : std::nullopt;
        const auto op = part.between("op_name=\"", "\"", *largest, 600);
        const auto size = part.bytes("1.size:", at);
        if (size)
            out.facts.push_back(
                {"largest", formatBytes(*size) + (type ? ": " + typeText(*type) : "") + (op ? ", " + std::string(*op) : "")});
    }
    out.meaning = onChip ? "A kernel needs more of the chip's small fast memory than there is. That is a matter of one kernel's "
                           "block sizes, not of how arrays are sharded."
                         : "The compiler counted what one device must hold at once: its pieces of parameters and optimiser "
                           "states, the activations that the backward pass needs, and "
                           "buffers of collectives. It is more than the device's memory, so the program was not even started.";
    if (onChip)
        out.remedy("Take smaller blocks in the kernel, or another attention or matmul kernel.");
    else
        addSavings(used.value_or(0), there.value_or(0), out);
    return true;
}

/// "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
bool explainXlaAllocation(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    auto wanted = part.bytes("tryingtoallocate", at);
    if (!wanted)
        wanted = part.bytes("outofmemoryallocating", at);
    if (!wanted)
        wanted = part.bytes("attemptingtoallocate", at);
    if (!wanted)
        wanted = part.bytes("attemptingtoreserve", at);
    const auto free = part.bytes("thereare", at);
    addSize("asked for", wanted, out);
    addSize("free", free, out);
    if (const auto peak = part.find("peakbuffers:", at)) { // the largest comes first
        const auto op = part.between("op_name=\"", "\"", *peak, 400);
        const auto shape = part.after("shape:", *peak);
        const auto type = shape ? typeAt(part.text(), *shape) : std::nullopt;
        if (const auto size = part.bytes("size:", *peak))
            out.fact("largest at the peak",
                formatBytes(*size) + (type ? ": " + typeText(*type) : "") + (op ? ", " + std::string(*op) : ""));
    }
    addSavings(wanted.value_or(0), free.value_or(0), out);
    return true;
}

/// "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.13 GiB is free. .."
bool explainCudaMemory(const MessagePart& part, std::size_t at, const ExplainContext&, Explanation& out)
{
    const auto wanted = part.bytes("triedtoallocate", at);
    auto total = part.bytes("totalcapacityof", at);
    auto free = part.bytes("ofwhich", at);
    auto allocated = part.bytes("oftheallocatedmemory", at);
    auto reserved = part.bytes("allocatedbypytorch,and", at);
    if (!total) { // (GPU 0; 15.78 GiB total capacity; 14.57 GiB already allocated; 4.44 MiB free; 14.70 GiB reserved in total by PyTorch)
        const auto gpu = part.find("(gpu", at);
        const auto first = gpu ? part.find(";", *gpu) : std::nullopt;
        const auto second = first ? part.find("totalcapacity;", *first) : std::nullopt;
        const auto third = second ? part.find("allocated;", *second) : std::nullopt;
        const auto fourth = third ? part.find("free;", *third) : std::nullopt;
        total = first ? part.bytes(";", *first) : std::nullopt;
        allocated = second ? part.bytes("totalcapacity;", *second) : std::nullopt;
        free = third ? part.bytes("allocated;", *third) : std::nullopt;
        const auto all = fourth ? part.bytes("free;", *fourth) : std::nullopt;
        if (all && allocated)
            reserved = std::max(0.0, *all - *allocated);
    }
    if (const auto gpu = part.integer("gpu", at))
        out.fact("device", fmt::format("GPU {}", *gpu));
    addSize("asked for", wanted, out);
    addSize("memory", total, out);
    addSize("free", free, out);
    addSize("in tensors", allocated, out);
    addSize("reserved, unused", reserved, out);
    const bool fragmented = wanted && reserved && *reserved > *wanted;
    const bool others = total && free && allocated && *total - *free - *allocated - reserved.value_or(0) > 0.1 * *total;
    out.meaning = "PyTorch's allocator found no free piece of this size on the GPU.";
    if (fragmented)
        out.meaning += " It holds more than that itself, but in pieces that are too small: the memory is fragmented.";
    if (others)
        out.meaning += fmt::format(
            " About {} of the GPU is in use outside PyTorch's tensors: another process, or NCCL and the CUDA context.",
            formatBytes(*total - *free - *allocated - reserved.value_or(0)));
    if (fragmented)
        out.remedies.push_back(
            {"Let the allocator grow its segments:", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"});
    if (others)
        out.remedy("See who holds it, and end what is left from an earlier run:", "nvidia-smi\n");
    out.remedy("Shard parameters, gradients and optimiser states over the data-parallel ranks:",
        "for layer in model.layers:\n    fully_shard(layer, mesh=mesh['dp'])\nfully_shard(model, mesh=mesh['dp'])\n");
    out.remedy("Recompute activations in the backward pass, or take a smaller micro-batch:",
        "out = checkpoint(layer, x, use_reentrant=False)\n");
    out.remedy("See before a launch what a device holds, and for how long:", "meshwright simulate study.yaml\n");
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
        {"out-of-memory", "PyTorch", "the GPU's memory is used up", {"cudaoutofmemory", "hipoutofmemory"}, explainCudaMemory,
            400},
        {"out-of-memory", "XLA", "a device's memory is used up",
            {"outofmemorywhiletryingtoallocate", "outofmemoryallocating",
                "resource_exhausted:", "resourceexhausted:", "resourceexhaustederror"},
            explainXlaAllocation, 400, 0,
            "A device has no room for one more buffer. A single very large buffer is often an array that should be sharded and "
            "is whole on every device: logits of a large vocabulary, an array gathered by a constraint, a batch that was not "
            "split.",
            {{"If another process or an earlier run still holds the memory (nvidia-smi shows it), end that one. JAX takes 75 % "
              "of a GPU when it starts:",
                "export XLA_PYTHON_CLIENT_MEM_FRACTION=0.9\n"}}},
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
