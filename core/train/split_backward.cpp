// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/split_backward.h"

#include "core/schedule/stage_array.h"
#include "core/train/function_slice.h"

#include <algorithm>

namespace meshwright {

namespace {

/// Which results a value serves: none, a single gradient (its number), or more than that.
constexpr std::int32_t kNoResult = -1;
constexpr std::int32_t kShared = -2;

std::int32_t together(std::int32_t a, std::int32_t b)
{
    return a == kNoResult || a == b ? b : b == kNoResult ? a : kShared;
}

bool isGradient(const std::string& result)
{
    return stageArrayOf(result).kind == StageArray::Kind::Gradient;
}

/// Calls `take` with all values of the outer block that an op reads, in its bodies too.
template <typename Take>
void forReads(const Function& function, const Op& op, const Take& take)
{
    for (const ValueId operand : op.operands)
        take(operand);
    for (const BlockId body : op.bodies) {
        for (const OpId inner : function[body].ops)
            forReads(function, function[inner], take);
        for (const ValueId result : function[body].results)
            take(result);
    }
}

class Splitter {
public:
    explicit Splitter(const Function& backward)
        : m_backward(backward)
        , m_serves(backward.values.size(), kNoResult)
    {
    }

    SplitBackward split()
    {
        findServices();
        if (!anyShared()) {
            for (const OpId op : m_backward.body().ops)
                setServices(m_backward[op], kShared);
        }
        SplitBackward made;
        const std::vector<ValueId> passed = passedOn();
        std::vector<ValueId> firstResults;
        std::vector<std::string> firstNames;
        std::vector<ValueId> gradients;
        std::vector<std::string> gradientNames;
        for (std::size_t i = 0; i < m_backward.results().size(); ++i) {
            const bool later = isGradient(m_backward.resultNames[i]);
            (later ? gradients : firstResults).push_back(m_backward.results()[i]);
            (later ? gradientNames : firstNames).push_back(m_backward.resultNames[i]);
        }
        for (std::size_t i = 0; i < passed.size(); ++i) {
            firstResults.push_back(passed[i]);
            firstNames.push_back(StageArray{StageArray::Kind::WeightResidual, {}, i}.text());
        }
        made.input = sliced(m_backward, {}, firstResults).function;
        made.input.resultNames = std::move(firstNames);
        FunctionSlice weight = sliced(m_backward, passed, gradients);
        for (std::size_t i = 0; i < weight.arguments.size(); ++i) {
            const auto place = std::ranges::find(passed, weight.arguments[i]);
            if (place == passed.end())
                continue;
            Value& argument = weight.function[weight.function.arguments()[i]];
            argument.name
                = StageArray{StageArray::Kind::WeightResidual, {}, static_cast<std::size_t>(place - passed.begin())}.text();
            argument.role = Role::Activation;
        }
        made.weight = std::move(weight.function);
        made.weight.resultNames = std::move(gradientNames);
        return made;
    }

private:
    void setServices(const Op& op, std::int32_t service)
    {
        for (const ValueId result : op.results)
            m_serves[result.at()] = service;
    }

    std::int32_t serviceOf(const Op& op) const
    {
        std::int32_t service = kNoResult;
        for (const ValueId result : op.results)
            service = together(service, m_serves[result.at()]);
        return service;
    }

    /// From the results back to what they are made of.
    void findServices()
    {
        for (std::size_t i = 0; i < m_backward.results().size(); ++i) {
            std::int32_t& service = m_serves[m_backward.results()[i].at()];
            service = together(service, isGradient(m_backward.resultNames[i]) ? static_cast<std::int32_t>(i) : kShared);
        }
        const std::vector<OpId>& ops = m_backward.body().ops;
        for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
            const std::int32_t service = serviceOf(m_backward[*op]);
            forReads(m_backward, m_backward[*op],
                [&](ValueId value) { m_serves[value.at()] = together(m_serves[value.at()], service); });
        }
    }

    bool anyShared() const
    {
        const std::vector<OpId>& ops = m_backward.body().ops;
        return std::ranges::any_of(ops, [this](OpId op) { return serviceOf(m_backward[op]) == kShared; });
    }

    /// What the first part makes and the second reads, or returns.
    std::vector<ValueId> passedOn() const
    {
        std::vector<bool> isMade(m_backward.values.size(), false);
        std::vector<bool> isPassed(m_backward.values.size(), false);
        for (const OpId op : m_backward.body().ops) {
            const bool first = serviceOf(m_backward[op]) == kShared;
            if (first) {
                for (const ValueId result : m_backward[op].results)
                    isMade[result.at()] = true;
            } else if (serviceOf(m_backward[op]) != kNoResult) {
                forReads(m_backward, m_backward[op], [&](ValueId value) { isPassed[value.at()] = isMade[value.at()]; });
            }
        }
        for (std::size_t i = 0; i < m_backward.results().size(); ++i) {
            const ValueId result = m_backward.results()[i];
            if (isGradient(m_backward.resultNames[i]) && isMade[result.at()])
                isPassed[result.at()] = true;
        }
        std::vector<ValueId> passed;
        for (std::size_t value = 0; value < isPassed.size(); ++value) {
            if (isPassed[value])
                passed.push_back(ValueId{value});
        }
        return passed;
    }

    const Function& m_backward;
    std::vector<std::int32_t> m_serves; ///< by value
};

} // namespace

SplitBackward splitBackward(const Function& backward)
{
    return Splitter(backward).split();
}

} // namespace meshwright
