// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/runtime/evaluate.h"

#include "core/program/transform.h"
#include "core/runtime/kernel.h"
#include "core/runtime/virtual_devices.h"

#include <fmt/format.h>

#include <cstring>
#include <map>

namespace meshwright {

namespace {

void promote(DType& dtype)
{
    if (isFloating(dtype))
        dtype = DType::F64;
}

void promoteConstant(ConstantAttributes& constant)
{
    if (!isFloating(constant.type.dtype))
        return;
    if (!constant.data.isSplat()) {
        const auto& blob = *std::get<std::shared_ptr<const std::string>>(constant.data.value);
        const HostArray wide = HostArray::fromBytes(constant.type, std::as_bytes(std::span(blob))).converted(DType::F64);
        constant.data.value = std::make_shared<const std::string>(
            reinterpret_cast<const char*>(wide.data()), static_cast<std::size_t>(wide.bytes()));
    }
    constant.type.dtype = DType::F64;
}

/// The same function with f64 in the place of every floating type. A BitcastConvert keeps the type that it names: its kernel converts.
Function promoted(Function function)
{
    for (Value& value : function.values)
        promote(value.type.dtype);
    for (Op& op : function.ops) {
        if (op.kind == OpKind::Constant)
            promoteConstant(op.as<ConstantAttributes>());
        else if (op.kind == OpKind::Iota)
            promote(op.as<IotaAttributes>().type.dtype);
        else if (op.kind == OpKind::Convert)
            promote(op.as<ConvertAttributes>().dtype);
        else if (op.kind == OpKind::DotGeneral) {
            promote(op.as<DotAttributes>().resultType);
            promote(op.as<DotAttributes>().operandType);
        }
    }
    return function;
}

class Evaluation {
public:
    Evaluation(const Function& function, const StopFlag& stop)
        : m_function(function)
        , m_stop(stop)
        , m_site{function, [&function](ValueId value) { return wholePiece(function[value].type.shape); }}
        , m_memory(function.values.size())
        , m_addresses(function.values.size(), nullptr)
    {
    }

    /// The results; undefined when stopped.
    std::vector<HostArray> run(std::span<const HostArray> arguments)
    {
        for (std::size_t i = 0; i < arguments.size() && !m_stop.isSet(); ++i)
            hold(m_function.arguments()[i], arguments[i]);
        return runBlock(BlockId(std::int32_t{0}));
    }

private:
    void hold(ValueId value, HostArray array)
    {
        m_memory[value.at()] = std::move(array);
        m_addresses[value.at()] = m_memory[value.at()]->data();
    }

    void release(ValueId value)
    {
        m_memory[value.at()].reset();
        m_addresses[value.at()] = nullptr;
    }

    /// The block's results; everything that the block made is given back.
    std::vector<HostArray> runBlock(BlockId id)
    {
        const Block& block = m_function[id];
        std::map<ValueId, std::size_t> uses; // of this block's values within it, left to come
        for (const OpId op : block.ops) {
            for (const ValueId operand : m_function[op].operands)
                ++uses[operand];
            for (const BlockId body : m_function[op].bodies)
                countUses(body, uses);
        }
        for (const ValueId result : block.results)
            ++uses[result];
        for (const OpId op : block.ops) {
            if (m_stop.isSet())
                return {};
            runOp(op);
            for (const ValueId operand : m_function[op].operands)
                releaseIfLast(operand, id, uses);
            for (const ValueId result : m_function[op].results) {
                if (!uses.contains(result))
                    release(result);
            }
        }
        if (m_stop.isSet()) // a Repeat that was stopped has no results
            return {};
        std::vector<HostArray> results;
        for (const ValueId result : block.results)
            results.push_back(*m_memory[result.at()]);
        for (const auto& [value, count] : uses) {
            if (m_function[value].block == id)
                release(value);
        }
        for (const ValueId argument : block.arguments)
            release(argument);
        return results;
    }

    void countUses(BlockId id, std::map<ValueId, std::size_t>& uses) const
    {
        for (const OpId op : m_function[id].ops) {
            for (const ValueId operand : m_function[op].operands)
                ++uses[operand];
            for (const BlockId body : m_function[op].bodies)
                countUses(body, uses);
        }
    }

    void releaseIfLast(ValueId value, BlockId block, std::map<ValueId, std::size_t>& uses)
    {
        if (--uses[value] == 0 && m_function[value].block == block)
            release(value);
    }

    void runOp(OpId id)
    {
        const Op& op = m_function[id];
        if (op.kind == OpKind::Repeat)
            return runRepeat(op);
        for (const ValueId result : op.results)
            hold(result, HostArray(m_function[result].type));
        auto& kernel = m_kernels[id];
        if (kernel == nullptr)
            kernel = makeKernel(m_site, std::span(&id, 1), op.results, [](ValueId) { return true; });
        kernel->run(m_addresses, m_scratch, m_stop);
    }

    void runRepeat(const Op& op)
    {
        const auto& attributes = op.as<RepeatAttributes>();
        const BlockId bodyId = op.bodies.front();
        const auto& bodyArguments = m_function[bodyId].arguments;
        std::vector<HostArray> carries;
        for (std::size_t i = 0; i < attributes.carries; ++i)
            carries.push_back(*m_memory[op.operands[i].at()]);
        std::vector<HostArray> stacks;
        for (std::size_t i = attributes.carries; i < op.results.size(); ++i)
            stacks.emplace_back(m_function[op.results[i]].type);
        for (std::int64_t round = 0; round < attributes.count; ++round) {
            const std::int64_t at = attributes.reversed ? attributes.count - 1 - round : round;
            for (std::size_t i = 0; i < op.operands.size(); ++i) {
                if (i < attributes.carries)
                    hold(bodyArguments[i], std::move(carries[i]));
                else if (i < attributes.carries + attributes.stacked)
                    hold(bodyArguments[i], sliceOf(*m_memory[op.operands[i].at()], at, m_function[bodyArguments[i]].type));
                else
                    hold(bodyArguments[i], *m_memory[op.operands[i].at()]);
            }
            std::vector<HostArray> yielded = runBlock(bodyId);
            if (m_stop.isSet())
                return;
            for (std::size_t i = 0; i < yielded.size(); ++i) {
                if (i < attributes.carries)
                    carries[i] = std::move(yielded[i]);
                else if (yielded[i].bytes() > 0)
                    std::memcpy(stacks[i - attributes.carries].data() + at * yielded[i].bytes(), yielded[i].data(),
                        static_cast<std::size_t>(yielded[i].bytes()));
            }
        }
        for (std::size_t i = 0; i < op.results.size(); ++i)
            hold(op.results[i], i < attributes.carries ? std::move(carries[i]) : std::move(stacks[i - attributes.carries]));
    }

    static HostArray sliceOf(const HostArray& stack, std::int64_t at, const TensorType& type)
    {
        return HostArray::fromBytes(type, std::span(stack.data() + at * type.bytes(), static_cast<std::size_t>(type.bytes())));
    }

    const Function& m_function;
    const StopFlag& m_stop;
    KernelSite m_site;
    std::vector<std::optional<HostArray>> m_memory;
    std::vector<std::byte*> m_addresses;
    std::map<OpId, std::unique_ptr<const Kernel>> m_kernels;
    Scratch m_scratch;
};

Problems checkArguments(const Function& function, std::span<const HostArray> arguments, bool inDouble)
{
    Problems problems = checkRunnable(function);
    forEachOp(function, [&](OpId op) {
        if (isCollective(function[op].kind) && function[op].kind != OpKind::Reshard)
            problems.push_back({"MW1504",
                fmt::format(
                    "{} in function \"{}\" needs devices; one thread cannot run it", opName(function[op].kind), function.name)});
    });
    if (arguments.size() != function.arguments().size()) {
        problems.push_back({"MW1503",
            fmt::format(
                "function \"{}\" takes {} arguments, got {}", function.name, function.arguments().size(), arguments.size())});
        return problems;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const ValueId id = function.arguments()[i];
        const TensorType& wanted = function[id].type;
        const TensorType& given = arguments[i].type();
        const bool sameKind = wanted.dtype == given.dtype || (inDouble && isFloating(wanted.dtype) && isFloating(given.dtype));
        if (!sameKind || wanted.shape != given.shape)
            problems.push_back({"MW1503",
                fmt::format("argument {} ({}) is {}, got {}", i, valueText(function, id), typeText(wanted), typeText(given))});
    }
    return problems;
}

} // namespace

Result<std::vector<HostArray>> evaluate(const Function& function, std::span<const HostArray> arguments, EvaluateOptions options)
{
    if (Problems problems = checkArguments(function, arguments, options.inDouble); !problems.empty())
        return problems;
    StopFlag stop;
    const std::stop_callback onStop(options.stop, [&stop] { stop.set(); });
    const auto resultsOf
        = [&stop](const Function& evaluated, std::span<const HostArray> values) -> Result<std::vector<HostArray>> {
        std::vector<HostArray> results = Evaluation(evaluated, stop).run(values);
        if (stop.isSet())
            return VirtualDevices::interrupted();
        return results;
    };
    if (!options.inDouble)
        return resultsOf(function, arguments);

    const Function wide = promoted(function);
    std::vector<HostArray> wideArguments;
    for (const HostArray& argument : arguments) {
        if (stop.isSet())
            return VirtualDevices::interrupted();
        wideArguments.push_back(isFloating(argument.type().dtype) ? argument.converted(DType::F64) : argument);
    }
    return resultsOf(wide, wideArguments);
}

} // namespace meshwright
