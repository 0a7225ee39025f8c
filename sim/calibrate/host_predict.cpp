// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/calibrate/host_predict.h"

#include "core/schedule/label.h"
#include "core/support/table.h"
#include "core/support/text.h"
#include "sim/simulate/instruction_work.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace meshwright::sim {

namespace {

using Json = nlohmann::ordered_json;

constexpr HostClass kClasses[] = {HostClass::Products, HostClass::Elementwise, HostClass::Reductions, HostClass::Optimizer,
    HostClass::Collectives, HostClass::Waiting};

/// Of arithmetic in cache, where a pass of several ops keeps its data.
double secondsPerElement(OpKind kind, const HostProfile& profile)
{
    switch (kind) {
    case OpKind::Exp:
    case OpKind::Log:
    case OpKind::Log1p:
    case OpKind::Tanh:
    case OpKind::Logistic:
    case OpKind::Sine:
    case OpKind::Cosine:
    case OpKind::ErfInv:
    case OpKind::Power:
        return profile.mathSecondsPerElement;
    case OpKind::Sqrt:
    case OpKind::Rsqrt:
    case OpKind::Divide:
        return profile.divideSecondsPerElement;
    default:
        return isElementwise(kind) ? profile.simpleSecondsPerElement : 0.0;
    }
}

HostClass classOf(const Function& function, const Instruction& instruction)
{
    bool reduces = false;
    for (const OpId id : instruction.ops) {
        const Op& op = function[id];
        if (isCollective(op.kind))
            return HostClass::Collectives;
        if (op.kind == OpKind::DotGeneral)
            return HostClass::Products;
        reduces = reduces || op.kind == OpKind::Reduce;
    }
    if (function[instruction.ops.back()].phase == Phase::Update)
        return HostClass::Optimizer;
    return reduces ? HostClass::Reductions : HostClass::Elementwise;
}

class Predictor {
public:
    Predictor(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile)
        : m_function(scheduled.device.function)
        , m_profile(profile)
    {
        for (const CollectiveUse& use : collectivesOf(scheduled.device, mesh))
            m_uses.emplace(use.op, use);
    }

    HostSeconds run(const std::vector<Instruction>& instructions)
    {
        add(instructions, 1.0);
        // Who meets others waits for the slowest of them.
        double computing = 0.0;
        for (const HostClass kind : {HostClass::Products, HostClass::Elementwise, HostClass::Reductions, HostClass::Optimizer})
            computing += m_result.of(kind);
        if (!m_uses.empty())
            m_result.byClass[static_cast<std::size_t>(HostClass::Waiting)] = m_profile.spread * computing;
        for (const double seconds : m_result.byClass)
            m_result.total += seconds;
        return m_result;
    }

private:
    void add(const std::vector<Instruction>& instructions, double times)
    {
        for (const Instruction& instruction : instructions) {
            if (instruction.kind == InstructionKind::Loop) {
                const auto& repeat = m_function[instruction.ops.front()].as<RepeatAttributes>();
                add(instruction.body, times * static_cast<double>(repeat.count));
            } else if (instruction.kind == InstructionKind::Blocks) {
                for (const auto& block : instruction.blocks)
                    add(block, times);
            } else if (instruction.kind == InstructionKind::CollectiveDone) {
                m_result.byClass[static_cast<std::size_t>(HostClass::Collectives)] += times * update(instruction);
            } else {
                const HostClass kind = classOf(m_function, instruction);
                m_result.byClass[static_cast<std::size_t>(kind)]
                    += times * (kind == HostClass::Collectives ? collective(instruction) : compute(instruction));
            }
        }
    }

    double collective(const Instruction& instruction) const
    {
        const auto use = m_uses.find(instruction.ops.back());
        if (use == m_uses.end())
            return m_profile.kernelSeconds; // a slice of what the device has
        const auto bytes = static_cast<double>(use->second.bytesPerDevice);
        switch (use->second.kind) {
        case OpKind::AllReduce:
            return secondsFor(m_profile.allReduce, bytes);
        case OpKind::ReduceScatter:
            // The adding of an all-reduce, without the gathering of the sums.
            return std::max(secondsFor(m_profile.allReduce, bytes) - secondsFor(m_profile.allGather, bytes),
                0.5 * secondsFor(m_profile.allReduce, bytes));
        default:
            return secondsFor(m_profile.allGather, bytes);
        }
    }

    double compute(const Instruction& instruction) const
    {
        const OpWork work = workOf(m_function, instruction);
        const double bytes = static_cast<double>(work.bytesRead + work.bytesWritten);
        if (work.matmul) {
            const MatmulDims& dims = *work.matmul;
            const auto count = static_cast<double>(dims.batch);
            const double rate
                = m_profile.productRate(static_cast<double>(dims.m), static_cast<double>(dims.n), static_cast<double>(dims.k));
            return dims.flops() <= 0.0 ? 0.0 : dims.flops() / count / rate * count;
        }
        double arithmetic = 0.0;
        for (const OpId id : instruction.ops) {
            const Op& op = m_function[id];
            if (op.results.empty())
                continue;
            const auto made = static_cast<double>(m_function[op.results.front()].type.elements());
            if (op.kind == OpKind::Reduce)
                arithmetic += reduction(op);
            else
                arithmetic += secondsPerElement(op.kind, m_profile) * made;
        }
        const double moving = bytes > 0.0 ? secondsFor(m_profile.streams, bytes) : 0.0;
        return m_profile.kernelSeconds + std::max(moving - m_profile.kernelSeconds, arithmetic);
    }

    double reduction(const Op& op) const
    {
        const TensorType& operand = m_function[op.operands.front()].type;
        const auto& dims = op.as<ReduceAttributes>().dims;
        const bool rows = !dims.empty() && dims.back() + 1 == operand.shape.size();
        return (rows ? m_profile.reduceSecondsPerElement : m_profile.reduceColumnsSecondsPerElement)
            * static_cast<double>(operand.elements());
    }

    /// What an all-reduce goes on to do with the sum: one device of the group does a part for all.
    double update(const Instruction& instruction) const
    {
        const auto use = m_uses.find(instruction.ops.back());
        if (instruction.update.empty() || use == m_uses.end())
            return 0.0;
        double bytes = 0.0;
        for (const ValueId value : instruction.reads)
            bytes += static_cast<double>(m_function[value].type.bytes());
        for (const ValueId value : instruction.writes)
            bytes += static_cast<double>(m_function[value].type.bytes());
        // Sums are counted with the all-reduce, and every device's copy of the result is written by who made it.
        bytes -= 2.0 * static_cast<double>(use->second.bytesPerDevice);
        return std::max(0.0, bytes) / static_cast<double>(use->second.groupSize) * m_profile.streams.back().seconds
            / m_profile.streams.back().bytes;
    }

    const Function& m_function;
    const HostProfile& m_profile;
    std::map<OpId, CollectiveUse> m_uses;
    HostSeconds m_result;
};

void labels(const Function& function, const std::vector<Instruction>& instructions, std::map<std::string, HostClass>& classes)
{
    for (const Instruction& instruction : instructions) {
        if (instruction.kind == InstructionKind::Loop)
            labels(function, instruction.body, classes);
        for (const auto& block : instruction.blocks)
            labels(function, block, classes);
        if (instruction.kind != InstructionKind::Loop && instruction.kind != InstructionKind::Blocks)
            classes.emplace(instructionLabel(function, instruction), classOf(function, instruction));
    }
}

} // namespace

const char* hostClassName(HostClass hostClass)
{
    switch (hostClass) {
    case HostClass::Products:
        return "products";
    case HostClass::Elementwise:
        return "element-wise";
    case HostClass::Reductions:
        return "reductions";
    case HostClass::Optimizer:
        return "optimizer";
    case HostClass::Collectives:
        return "collectives";
    case HostClass::Waiting:
        return "waiting";
    }
    return "";
}

double HostComparison::error() const
{
    return measured.total > 0.0 ? std::abs(predicted.total / measured.total - 1.0) : 0.0;
}

HostSeconds predictHost(const ScheduledFunction& scheduled, const Mesh& mesh, const HostProfile& profile)
{
    return Predictor(scheduled, mesh, profile).run(scheduled.instructions);
}

HostSeconds measuredHost(const ScheduledFunction& scheduled, const Timeline& virtualTime)
{
    std::map<std::string, HostClass> classes;
    labels(scheduled.device.function, scheduled.instructions, classes);
    HostSeconds result;
    std::int64_t devices = 1;
    for (const TimelineRow& row : virtualTime.rows())
        devices = std::max(devices, row.device + 1);
    for (const Slice& slice : virtualTime.slices()) {
        if (slice.category == SliceCategory::Wait || slice.category == SliceCategory::WaitForCore)
            continue;
        HostClass kind = HostClass::Elementwise;
        if (const auto found = classes.find(virtualTime.text(slice.name)); found != classes.end())
            kind = found->second;
        result.byClass[static_cast<std::size_t>(kind)] += slice.durationSeconds / static_cast<double>(devices);
    }
    result.total = virtualTime.endSeconds();
    // Waits of a collective that goes on beside the computing are no loss: what counts is the time in which a device does nothing else.
    double busy = 0.0;
    for (const double seconds : result.byClass)
        busy += seconds;
    result.byClass[static_cast<std::size_t>(HostClass::Waiting)] = std::max(0.0, result.total - busy);
    return result;
}

std::string hostComparisonText(const HostComparison& comparison)
{
    using Align = TextTable::Align;
    TextTable table(
        {{"virtual time of a step"}, {"predicted", Align::Right}, {"measured", Align::Right}, {"error", Align::Right}});
    const auto row = [&](const std::string& name, double predicted, double measured) {
        table.addRow({name, formatSeconds(predicted), formatSeconds(measured),
            measured > 0.0 ? fmt::format("{:+.1f} %", 100.0 * (predicted / measured - 1.0)) : "-"});
    };
    for (const HostClass kind : kClasses) {
        if (comparison.predicted.of(kind) > 0.0 || comparison.measured.of(kind) > 0.0)
            row(hostClassName(kind), comparison.predicted.of(kind), comparison.measured.of(kind));
    }
    row("in total", comparison.predicted.total, comparison.measured.total);
    return fmt::format("\n{}\n{}", comparison.mesh, table.text(2));
}

std::string hostComparisonJson(const HostComparison& comparison)
{
    Json json = {{"mesh", comparison.mesh}, {"classes", Json::array()}, {"predicted_s", comparison.predicted.total},
        {"measured_s", comparison.measured.total}, {"error", comparison.error()}};
    for (const HostClass kind : kClasses)
        json["classes"].push_back({{"class", hostClassName(kind)}, {"predicted_s", comparison.predicted.of(kind)},
            {"measured_s", comparison.measured.of(kind)}});
    return json.dump();
}

} // namespace meshwright::sim
