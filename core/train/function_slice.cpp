// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/function_slice.h"

#include "core/program/builder.h"
#include "core/program/transform.h"

namespace meshwright {

FunctionSlice sliced(const Function& source, const std::vector<ValueId>& from, const std::vector<ValueId>& to)
{
    std::vector<bool> needed(source.values.size(), false);
    std::vector<bool> given(source.values.size(), false);
    for (const ValueId value : from)
        given[value.at()] = true;
    for (const ValueId value : to)
        needed[value.at()] = true;
    const std::vector<OpId>& ops = source.body().ops;
    std::vector<OpId> taken;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
        const auto& results = source[*op].results;
        if (std::none_of(
                results.begin(), results.end(), [&](ValueId result) { return needed[result.at()] && !given[result.at()]; }))
            continue;
        taken.push_back(*op);
        const auto need = [&](const Op& one) {
            for (const ValueId operand : one.operands)
                needed[operand.at()] = true;
        };
        need(source[*op]);
        const auto needBodies = [&](const auto& self, const Op& one) -> void {
            for (const BlockId body : one.bodies) {
                for (const OpId inner : source[body].ops) {
                    need(source[inner]);
                    self(self, source[inner]);
                }
                for (const ValueId result : source[body].results)
                    needed[result.at()] = true;
            }
        };
        needBodies(needBodies, source[*op]);
    }
    FunctionSlice made;
    Function& slice = made.function;
    Builder builder(slice);
    std::vector<ValueId> mapping(source.values.size());
    const auto addArgument = [&](ValueId value) {
        const Value& old = source[value];
        mapping[value.at()] = builder.argument(old.type, old.name, old.role);
        slice[mapping[value.at()]].sharding = old.sharding;
        slice[mapping[value.at()]].annotation = old.annotation;
        made.arguments.push_back(value);
    };
    for (const ValueId value : from) {
        if (needed[value.at()])
            addArgument(value);
    }
    for (const ValueId argument : source.arguments()) {
        if (needed[argument.at()] && !given[argument.at()])
            addArgument(argument);
    }
    for (auto op = taken.rbegin(); op != taken.rend(); ++op)
        copyOp(builder, source, *op, mapping);
    made.ops.assign(taken.rbegin(), taken.rend());
    std::vector<ValueId> results;
    for (const ValueId value : to)
        results.push_back(mapping[value.at()]);
    builder.setResults(std::move(results));
    for (const auto& group : source.shardingGroups) {
        std::vector<ValueId> members;
        for (const ValueId member : group) {
            if (mapping[member.at()].valid())
                members.push_back(mapping[member.at()]);
        }
        if (members.size() > 1)
            slice.shardingGroups.push_back(std::move(members));
    }
    return made;
}

} // namespace meshwright
