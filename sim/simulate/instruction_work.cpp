// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/simulate/instruction_work.h"

#include "core/program/attention.h"
#include "core/program/eight_bits.h"
#include "core/program/transform.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

namespace meshwright::sim {

MatmulDims productDims(const DotAttributes& attributes, const TensorType& lhs, const TensorType& rhs)
{
    enum class Role : std::uint8_t { Batch, Contracting, Free };
    const auto has = [](const std::vector<std::size_t>& dims, std::size_t dim) {
        return std::find(dims.begin(), dims.end(), dim) != dims.end();
    };
    // The product of the sizes of each role, and of the last dims of one role: a row in memory.
    const auto sizesOf = [&](const TensorType& type, const auto& batch, const auto& contracting) {
        const auto roleOf = [&](std::size_t dim) {
            return has(batch, dim) ? Role::Batch : has(contracting, dim) ? Role::Contracting : Role::Free;
        };
        std::array<std::int64_t, 3> sizes{1, 1, 1};
        std::int64_t row = 1;
        bool isInRow = true;
        for (std::size_t dim = type.shape.size(); dim-- > 0;) {
            const Role role = roleOf(dim);
            sizes[static_cast<std::size_t>(role)] *= type.shape[dim];
            isInRow = isInRow && role == roleOf(type.shape.size() - 1);
            row *= isInRow ? type.shape[dim] : 1;
        }
        return std::pair(sizes, row);
    };
    const auto [left, leftRow] = sizesOf(lhs, attributes.lhsBatch, attributes.lhsContracting);
    const auto [right, rightRow] = sizesOf(rhs, attributes.rhsBatch, attributes.rhsContracting);
    const auto size = [](std::int64_t elements) { return static_cast<double>(elements); };
    const std::int64_t resultRow = right[2] > 1 ? right[2] : left[2];
    return {size(left[0]), size(left[2]), size(right[2]), size(left[1]), size(std::gcd(std::gcd(leftRow, rightRow), resultRow))};
}

namespace {

/// The sum over the last `queries` of as many positions as there are keys of how many keys each sees.
double keysSeen(std::int64_t queries, std::int64_t keys, std::int64_t window)
{
    const auto sumTo = [](std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2.0; };
    const std::int64_t before = std::max<std::int64_t>(0, keys - queries); // positions without a query here
    const std::int64_t near = std::clamp(window, before, keys); // positions that see all before them
    return sumTo(near) - sumTo(before) + static_cast<double>(window) * static_cast<double>(keys - near);
}

/// The same for the device whose queries see the most. In zigzag order all see as many keys of each part, of which a window leaves out the far ones.
double mostKeysSeen(const AttentionForm& form, const AttentionSizes& sizes, std::int64_t window)
{
    const std::int64_t before
        = std::max<std::int64_t>(0, form.part) * sizes.keys; // of all keys up to these queries, the first part
    const double seen
        = keysSeen(sizes.queries, before + sizes.keys, window) - (before > 0 ? keysSeen(sizes.queries, before, window) : 0.0);
    if (!form.isBalanced)
        return seen;
    return std::min(
        seen, keysSeen(sizes.keys, sizes.keys, window) * static_cast<double>(sizes.queries) / static_cast<double>(sizes.keys));
}

/// The numbers that a scalar, an i32, is: one, or in a loop one for each round. Empty: they are not known.
std::vector<double> knownScalars(const Function& function, ValueId scalar)
{
    OpId producer = function[scalar].producer;
    if (!producer.valid()) { // of a loop's body
        forEachOp(function, [&](OpId id) {
            const Op& op = function[id];
            if (op.kind != OpKind::Repeat || op.bodies.front() != function[scalar].block)
                return;
            const ValueId whole = op.operands[function[scalar].index];
            producer = function[whole].producer;
        });
    }
    if (!producer.valid() || function[producer].kind != OpKind::Constant)
        return {};
    const auto& constant = function[producer].as<ConstantAttributes>();
    if (const auto* number = std::get_if<std::int64_t>(&constant.data.value))
        return {static_cast<double>(*number)};
    if (const auto* number = std::get_if<double>(&constant.data.value))
        return {*number};
    if (constant.data.isElided() || constant.type.dtype != DType::S32)
        return {};
    const auto& bytes = *std::get<std::shared_ptr<const std::string>>(constant.data.value);
    std::vector<double> numbers;
    for (std::size_t at = 0; at + sizeof(std::int32_t) <= bytes.size(); at += sizeof(std::int32_t)) {
        std::int32_t number = 0;
        std::memcpy(&number, bytes.data() + at, sizeof number);
        numbers.push_back(number);
    }
    return numbers;
}

} // namespace

AttentionWork attentionWork(const Function& function, const Op& op, std::span<const TensorType> operands)
{
    const AttentionForm form = *attentionForm(op.as<OtherAttributes>());
    const AttentionSizes sizes(operands);
    const auto queries = static_cast<double>(std::max<std::int64_t>(1, sizes.queries));
    AttentionWork work;
    work.headDim = static_cast<double>(sizes.dims);
    work.isBackward = op.kind == OpKind::AttentionGrad;
    work.keys = static_cast<double>(sizes.keys);
    if (form.causal) {
        std::vector<double> windows;
        if (form.windowed)
            windows = knownScalars(function, op.operands[AttentionPlaces(form, op.kind).window]);
        if (windows.empty())
            windows = {work.keys * static_cast<double>(form.part + 2)}; // none
        double seen = 0.0;
        for (const double window : windows)
            seen += mostKeysSeen(form, sizes, static_cast<std::int64_t>(window));
        work.keys = seen / static_cast<double>(windows.size()) / queries;
    }
    const auto rows = static_cast<double>(sizes.batches() * sizes.groups * sizes.shares) * queries;
    const auto dims = static_cast<double>(sizes.dims);
    const auto valueDims = static_cast<double>(sizes.valueDims);
    work.shape = {static_cast<double>(sizes.batches() * sizes.groups * sizes.shares), queries, static_cast<double>(sizes.keys),
        dims, valueDims};
    work.flops = 2.0 * rows * work.keys * (work.isBackward ? 3.0 * dims + 2.0 * valueDims : dims + valueDims);
    return work;
}

std::optional<MathFormat> mathFormatOf(DType dtype)
{
    switch (dtype) {
    case DType::F32:
        return MathFormat::Fp32;
    case DType::BF16:
        return MathFormat::Bf16;
    case DType::F16:
        return MathFormat::Fp16;
    case DType::F8E4M3FN:
    case DType::F8E5M2:
        return MathFormat::Fp8;
    case DType::S8:
    case DType::U8:
        return MathFormat::Int8;
    default:
        return std::nullopt;
    }
}

DType productType(const Function& function, const Op& dot)
{
    return isEightBitProduct(function, dot) ? DType::F8E4M3FN : dot.as<DotAttributes>().operandType;
}

MatmulPrecision precisionOf(const Op& op, DType operandType, MatmulPrecision unstated)
{
    if (operandType != DType::F32)
        return MatmulPrecision::Default;
    const KeptAttribute* stated = op.kept == nullptr ? nullptr : findAttribute(op.kept->attributes, "precision");
    if (stated == nullptr)
        return unstated;
    return stated->text.find("HIGHEST") != std::string::npos ? MatmulPrecision::Highest
        : stated->text.find("HIGH") != std::string::npos     ? MatmulPrecision::High
                                                             : unstated;
}

namespace {

/// The bytes that a gather takes out of its operand, or that a scatter reads there before it adds; where slices are single rows, of the tiles that they
/// lie in.
std::int64_t pickedBytes(const TensorType& slices, const IndexingDims& dims, double pickedRowShare)
{
    bool areRows = !dims.window.empty();
    for (std::size_t i = 0; i + 1 < dims.window.size(); ++i)
        areRows = areRows && slices.shape[dims.window[i]] == 1;
    return static_cast<std::int64_t>(static_cast<double>(slices.bytes()) * (areRows ? pickedRowShare : 1.0));
}

std::int64_t bytesReadBy(const Function& function, const Instruction& instruction, double pickedRowShare)
{
    const Op* alone = instruction.ops.size() == 1 ? &function[instruction.ops.front()] : nullptr;
    const OpKind kind = alone != nullptr ? alone->kind : OpKind::Other;
    const bool takesPart = kind == OpKind::Slice || kind == OpKind::DynamicSlice;
    std::int64_t bytes = 0;
    for (const ValueId value : takesPart ? instruction.writes : instruction.reads)
        bytes += function[value].type.bytes();
    const auto bytesOf = [&](ValueId value) { return function[value].type.bytes(); };
    if (kind == OpKind::Gather)
        bytes = bytesOf(alone->operands[1])
            + pickedBytes(function[alone->results.front()].type, alone->as<GatherAttributes>().dims, pickedRowShare);
    if (kind == OpKind::Scatter) {
        const std::size_t arrays = alone->results.size();
        for (std::size_t i = 0; i < arrays; ++i)
            bytes += pickedBytes(
                function[alone->operands[arrays + 1 + i]].type, alone->as<ScatterAttributes>().dims, pickedRowShare);
    }
    return bytes;
}

} // namespace

OpWork workOf(const Function& function, const Instruction& instruction, MatmulPrecision unstated, double pickedRowShare)
{
    OpWork work;
    work.bytesRead = bytesReadBy(function, instruction, pickedRowShare);
    for (const ValueId value : instruction.writes)
        work.bytesWritten += function[value].type.bytes();
    for (const OpId id : instruction.ops) {
        const Op& op = function[id];
        if (op.kind == OpKind::Attention || op.kind == OpKind::AttentionGrad) {
            std::vector<TensorType> operands;
            for (const ValueId operand : op.operands)
                operands.push_back(function[operand].type);
            const DType type = attentionForm(op.as<OtherAttributes>())->operandType;
            work.attention = attentionWork(function, op, operands);
            work.format = mathFormatOf(type).value_or(MathFormat::Fp32);
            work.precision = precisionOf(op, type, unstated);
        }
        if (op.kind != OpKind::DotGeneral)
            continue;
        const auto& attributes = op.as<DotAttributes>();
        work.matmul = productDims(attributes, function[op.operands[0]].type, function[op.operands[1]].type);
        const DType type = productType(function, op);
        work.format = mathFormatOf(type).value_or(MathFormat::Fp32);
        work.precision = precisionOf(op, type, unstated);
    }
    return work;
}

InstructionTimes::InstructionTimes(const ScheduledFunction& scheduled, const DeviceCost& cost, MatmulPrecision unstated)
    : m_function(scheduled.device.function)
    , m_cost(cost)
    , m_unstated(unstated)
    , m_groups(scheduled, cost)
    , m_hasKernel(m_function.values.size(), false)
    , m_isKept(m_function.values.size(), false)
{
    forEachOp(m_function, [&](OpId id) {
        const Op& op = m_function[id];
        const bool computes = isElementwise(op.kind) || op.kind == OpKind::Reduce || op.kind == OpKind::Attention
            || op.kind == OpKind::AttentionGrad || (opInfo(op.kind).opClass == OpClass::Shaping && !isView(m_function, op, cost));
        for (const ValueId value : op.operands)
            (computes ? m_hasKernel : m_isKept)[value.at()] = true;
    });
}

/// True for element-wise work whose bytes take less time than a kernel's start, and whose results only go into kernels that can compute them.
bool InstructionTimes::isPartOfReaders(const Instruction& instruction, const OpTime& time) const
{
    return time.memorySeconds < time.overheadSeconds && !instruction.writes.empty()
        && std::ranges::all_of(instruction.ops,
            [&](OpId id) {
                const OpKind kind = m_function[id].kind;
                return isElementwise(kind) || kind == OpKind::BroadcastInDim || opInfo(kind).opClass == OpClass::Leaf;
            })
        && std::ranges::all_of(
            instruction.writes, [&](ValueId value) { return m_hasKernel[value.at()] && !m_isKept[value.at()]; });
}

/// True for what adds to one array in memory.
bool InstructionTimes::addsToOne(const Instruction& instruction) const
{
    return instruction.reads.size() == 2 && instruction.writes.size() == 1 && onlyAdds(m_function, instruction)
        && std::ranges::count_if(instruction.ops, [&](OpId id) { return m_function[id].kind == OpKind::Add; }) == 1;
}

/// The product's result that an element-wise pass takes, if it takes one and does nothing that needs a whole row or column.
std::optional<ValueId> InstructionTimes::fusedInto(const Instruction& instruction) const
{
    for (const OpId id : instruction.ops) {
        const OpKind kind = m_function[id].kind;
        if (!isElementwise(kind) && kind != OpKind::BroadcastInDim && kind != OpKind::Constant)
            return std::nullopt;
    }
    for (const ValueId value : instruction.reads) {
        if (m_idle.contains(value))
            return value;
    }
    return std::nullopt;
}

/// A pass takes the time of the bytes that it adds to its kernel.
void InstructionTimes::joinPass(const KernelGroups::Member& member, Kernel& kernel) const
{
    const auto bytesOf = [&](const std::vector<ValueId>& values) {
        std::int64_t bytes = 0;
        for (const ValueId value : values)
            bytes += m_function[value].type.bytes();
        return bytes;
    };
    kernel.work.bytesRead = bytesOf(member.reads);
    kernel.work.bytesWritten = bytesOf(member.writes);
    kernel.time = m_cost.time(kernel.work);
    kernel.formula = "first pass of a kernel: " + m_cost.formula(kernel.work);
    if (member.isFirst)
        return;
    kernel.time = {.seconds = kernel.time.memorySeconds, .memorySeconds = kernel.time.memorySeconds, .bound = OpBound::Memory};
    kernel.formula = fmt::format("in one kernel with the pass before it: {} of other operands and results in {}",
        formatBytes(kernel.work.bytesRead + kernel.work.bytesWritten), formatSeconds(kernel.time.seconds));
}

/// That an op moves to read a value: what is repeated along dimensions is read where it comes from, and constants are in the kernel.
std::int64_t InstructionTimes::bytesTaken(ValueId value) const
{
    const OpId producer = m_function[value].producer;
    if (producer.valid() && opInfo(m_function[producer].kind).opClass == OpClass::Leaf)
        return 0;
    if (producer.valid() && m_function[producer].kind == OpKind::BroadcastInDim)
        return bytesTaken(m_function[producer].operands.front());
    return m_function[value].type.bytes();
}

/// Each op of a pass is a kernel that reads its operands and writes its result.
void InstructionTimes::splitPass(const Instruction& instruction, Kernel& kernel) const
{
    kernel = {};
    for (const OpId id : instruction.ops) {
        const Op& op = m_function[id];
        if (isView(m_function, op, m_cost) || op.kind == OpKind::BroadcastInDim || opInfo(op.kind).opClass == OpClass::Leaf)
            continue;
        OpWork work;
        const std::set<ValueId> operands(op.operands.begin(), op.operands.end());
        for (const ValueId operand : operands)
            work.bytesRead += bytesTaken(operand);
        for (const ValueId result : op.results)
            work.bytesWritten += m_function[result].type.bytes();
        const OpTime time = m_cost.time(work);
        kernel.work.bytesRead += work.bytesRead;
        kernel.work.bytesWritten += work.bytesWritten;
        kernel.time.seconds += time.seconds;
        kernel.time.memorySeconds += time.memorySeconds;
        kernel.time.overheadSeconds += time.overheadSeconds;
        kernel.time.kernels += time.kernels;
    }
    kernel.time.bound = kernel.time.memorySeconds >= kernel.time.overheadSeconds ? OpBound::Memory : OpBound::Overhead;
    kernel.formula = fmt::format("a kernel for each of its {:.0f} ops: {} read and written in {}", kernel.time.kernels,
        formatBytes(kernel.work.bytesRead + kernel.work.bytesWritten), formatSeconds(kernel.time.seconds));
}

/// A product in one kernel with those before it takes the time by which that grows.
void InstructionTimes::growProduct(OpWork& before, const OpWork& whole, Kernel& kernel) const
{
    const OpTime of = m_cost.time(whole);
    const OpTime without = m_cost.time(before);
    before = whole;
    kernel.time.seconds = std::max(0.0, of.seconds - without.seconds);
    kernel.time.computeSeconds = std::max(0.0, of.computeSeconds - without.computeSeconds);
    kernel.time.memorySeconds = std::max(0.0, of.memorySeconds - without.memorySeconds);
    kernel.time.overheadSeconds = kernel.time.kernels = 0.0;
    kernel.formula = fmt::format("one kernel with products before it, which so grows from {} to {}: {}",
        formatSeconds(without.seconds), formatSeconds(of.seconds), m_cost.formula(whole));
}

void InstructionTimes::mergeProduct(const Instruction& instruction, Kernel& kernel)
{
    if (const Instruction* sum = m_groups.sumOf(instruction)) {
        const auto [before, isFirst] = m_summed.try_emplace(sum, kernel.work);
        if (isFirst)
            return;
        OpWork whole = before->second;
        whole.matmul->k += kernel.work.matmul->k;
        whole.bytesRead += kernel.work.bytesRead;
        return growProduct(before->second, whole, kernel);
    }
    const auto product
        = std::ranges::find_if(instruction.ops, [&](OpId id) { return m_function[id].kind == OpKind::DotGeneral; });
    const Op& op = m_function[*product];
    const auto& attributes = op.as<DotAttributes>();
    const std::array shared{Shared{op.operands[0], false, attributes.lhsContracting, kernel.work.format},
        Shared{op.operands[1], true, attributes.rhsContracting, kernel.work.format}};
    for (const Shared& one : shared) {
        const bool isRight = std::get<bool>(one);
        const auto [before, isFirst] = m_merged.try_emplace(one, kernel.work);
        if (isFirst)
            continue;
        OpWork whole = before->second;
        (isRight ? whole.matmul->m : whole.matmul->n) += isRight ? kernel.work.matmul->m : kernel.work.matmul->n;
        const bool isRead = std::ranges::find(instruction.reads, std::get<ValueId>(one)) != instruction.reads.end();
        whole.bytesRead += kernel.work.bytesRead - (isRead ? m_function[std::get<ValueId>(one)].type.bytes() : 0);
        whole.bytesWritten += kernel.work.bytesWritten;
        return growProduct(before->second, whole, kernel);
    }
}

InstructionTimes::Kernel InstructionTimes::of(const Instruction& instruction)
{
    if (isOnlyView(m_function, instruction, m_cost))
        return {{}, {}, "its operand where it is: nothing is moved"};
    if (m_groups.isInProducts(instruction))
        return {{}, {}, "added by the kernel of its products: nothing is moved"};
    Kernel kernel{workOf(m_function, instruction, m_unstated, m_cost.pickedRowShare()), {}, {}};
    kernel.time = m_cost.time(kernel.work);
    kernel.formula = m_cost.formula(kernel.work);
    const KernelGroups::Member* member = m_groups.memberOf(instruction);
    if (m_groups.isSplit(instruction)) {
        splitPass(instruction, kernel);
        return kernel;
    }
    if (member != nullptr) {
        joinPass(*member, kernel);
    } else if (isPartOfReaders(instruction, kernel.time)) {
        kernel.time
            = {.seconds = kernel.time.memorySeconds, .memorySeconds = kernel.time.memorySeconds, .bound = OpBound::Memory};
        kernel.formula = fmt::format("part of the kernels that read it: {} moved in {}",
            formatBytes(kernel.work.bytesRead + kernel.work.bytesWritten), formatSeconds(kernel.time.seconds));
        return kernel;
    }
    if (!kernel.work.matmul && !m_cost.fusesIntoProducts() && !(m_cost.addsInProducts() && addsToOne(instruction)))
        return kernel;
    if (kernel.work.matmul) {
        if (m_cost.mergesProducts())
            mergeProduct(instruction, kernel);
        for (const ValueId value : instruction.writes)
            m_idle[value] = std::max(0.0, kernel.time.computeSeconds - kernel.time.memorySeconds);
        return kernel;
    }
    const auto product = fusedInto(instruction);
    if (!product || (member != nullptr && std::ranges::find(member->reads, *product) == member->reads.end()))
        return kernel;
    // The product's result never leaves the chip on its way here.
    kernel.work.bytesRead -= m_function[*product].type.bytes();
    const double moving = m_cost.time(kernel.work).memorySeconds;
    double& idle = m_idle[*product];
    const double hidden = std::min(idle, moving);
    idle -= hidden;
    kernel.time = {};
    kernel.time.memorySeconds = kernel.time.seconds = moving - hidden;
    kernel.time.bound = OpBound::Memory;
    kernel.formula
        = fmt::format("fused into the product of its operand: {} of other operands and results in {}, of which {} while the "
                      "product computes",
            formatBytes(kernel.work.bytesRead + kernel.work.bytesWritten), formatSeconds(moving), formatSeconds(hidden));
    return kernel;
}

} // namespace meshwright::sim
