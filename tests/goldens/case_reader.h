// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/sharding/shardy_text.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/op_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

/// Reads the programs that golden cases of propagation and partitioning hold.
namespace meshwright::goldens {

/// True when nothing in the case's program has a sharding: what is then known of a function that others call are its callers' words, which
/// are in functions that the case does not hold. They are taken from the answer, and what follows from them is checked.
inline bool isSaidByCallers(const Json& program)
{
    const auto has = [](const Json& holder, const char* key) { return holder.contains(key) && !holder.at(key).is_null(); };
    const auto anyIn = [&](const Json& list) {
        return std::any_of(list.begin(), list.end(), [&](const Json& entry) { return has(entry, "sharding"); });
    };
    const auto anyOp = [&](const auto& self, const Json& ops) -> bool {
        return std::any_of(ops.begin(), ops.end(), [&](const Json& op) {
            return has(op, "shardings") || has(op, "to") || (op.contains("body") && self(self, op.at("body").at("ops")));
        });
    };
    return !anyIn(program.at("args")) && !anyIn(program.at("results")) && !anyOp(anyOp, program.at("ops"));
}

using Names = std::map<std::string, ValueId>;
/// The results of each op of a block in the order of the case, and of the ops of its body.
struct OpResults {
    std::vector<ValueId> values;
    std::vector<OpResults> body;
};

class CaseReader {
public:
    explicit CaseReader(const Json& json)
        : m_json(json)
        , m_builder(function)
    {
        for (const auto& [name, mesh] : json.at("meshes").items()) {
            const bool isMaximal = mesh.value("device_ids", Json::array()).size() == 1 && mesh.at("axes").empty();
            meshes.push_back({name, valueOf(meshOf(mesh)), isMaximal});
        }
    }

    void read()
    {
        const Json& program = m_json.at("program");
        Names names;
        for (const Json& arg : program.at("args")) {
            const auto type = typeOf(arg);
            if (!type)
                continue;
            const auto name = arg.at("name").get<std::string>();
            names[name] = m_builder.argument(*type, name);
            annotate(names[name], arg, "sharding", "args." + name);
            adoptFromCaller(names[name], name);
        }
        ops = readOps(program.at("ops"), names);
        std::vector<ValueId> results;
        std::vector<std::size_t> kept; // tokens are left out
        const auto& back = program.at("ops").back();
        for (std::size_t i = 0; i < back.at("operands").size(); ++i) {
            const auto found = names.find(back.at("operands")[i].get<std::string>());
            resultIndex.push_back(found == names.end() ? std::nullopt : std::optional(results.size()));
            if (found == names.end())
                continue;
            results.push_back(found->second);
            kept.push_back(i);
        }
        m_builder.setResults(results);
        for (const std::size_t i : kept) {
            const Json& result = program.at("results")[i];
            function.resultShardings.push_back(result.contains("sharding") && !result.at("sharding").is_null()
                    ? std::optional(shardingOf(result.at("sharding")))
                    : std::nullopt);
        }
        for (auto& [id, members] : m_groups)
            function.shardingGroups.push_back(members);
    }

    TensorSharding shardingOf(const Json& json) const
    {
        auto name = json.at("mesh").get<std::string>();
        auto text = json.at("sharding").get<std::string>();
        // Of one op that is written on several lines, some cases have the whole attribute as the mesh: `sdy.sharding<@mesh, [{"x"}]`.
        if (constexpr std::string_view kWhole = "sdy.sharding<@"; name.starts_with(kWhole)) {
            const std::size_t comma = name.find(", ");
            text = name.substr(std::min(comma + 2, name.size()));
            name = name.substr(kWhole.size(), comma - kWhole.size());
        }
        const auto found = std::find_if(meshes.begin(), meshes.end(), [&](const NamedMesh& known) { return known.name == name; });
        if (found == meshes.end())
            throw std::runtime_error("there is no mesh " + name);
        const auto mesh = static_cast<std::size_t>(found - meshes.begin());
        if (meshes[mesh].isMaximal) {
            TensorSharding sharding;
            sharding.mesh = static_cast<std::int32_t>(mesh);
            return sharding;
        }
        const auto parsed = parseShardy(text, meshes[mesh].mesh, false);
        if (!parsed)
            throw std::runtime_error(text + ": " + describe(parsed.error()));
        TensorSharding sharding = *parsed;
        sharding.mesh = static_cast<std::int32_t>(mesh);
        return sharding;
    }

    Function function;
    std::vector<NamedMesh> meshes;
    std::vector<OpResults> ops;
    std::vector<std::optional<std::size_t>> resultIndex; ///< of each result of the case, which of ours

private:
    /// What callers ask of an argument is not in the case but in its answer.
    void adoptFromCaller(ValueId value, const std::string& name)
    {
        if (!isSaidByCallers(m_json.at("program")) || function[value].sharding || !m_json.at("expect").contains("args"))
            return;
        const Json& given = m_json.at("expect").at("args");
        if (!given.contains(name) || given.at(name).is_null())
            return;
        function[value].sharding = shardingOf(given.at(name));
        function[value].annotation = "a caller";
    }

    /// On one device, `[]` stands for all dimensions.
    void setSharding(ValueId value, const Json& json)
    {
        TensorSharding sharding = shardingOf(json);
        if (meshes[static_cast<std::size_t>(sharding.mesh)].isMaximal)
            sharding.dims.resize(function[value].type.shape.size());
        function[value].sharding = std::move(sharding);
    }

    void annotate(ValueId value, const Json& holder, const char* key, const std::string& annotation)
    {
        if (!holder.contains(key) || holder.at(key).is_null())
            return;
        setSharding(value, holder.at(key));
        function[value].annotation = annotation;
    }

    /// Constants of loop counters are left out of the cases.
    ValueId find(Names& names, const std::string& name)
    {
        const auto found = names.find(name);
        if (found != names.end())
            return found->second;
        return names[name] = m_builder.splat({DType::S32, {}}, 1.0);
    }

    std::vector<OpResults> readOps(const Json& list, Names& names)
    {
        std::vector<OpResults> results;
        for (const Json& op : list)
            results.push_back(readOp(op, names));
        return results;
    }

    OpResults readOp(const Json& op, Names& names)
    {
        const auto name = op.at("op").get<std::string>();
        OpResults results;
        if (name == "return")
            return results;
        if (name == "while")
            return readWhile(op, names);
        std::vector<ValueId> operands;
        for (const Json& operand : op.at("operands"))
            operands.push_back(find(names, operand.get<std::string>()));
        if (name == "sharding_group") {
            m_groups[op.value("group_id", 0)].push_back(operands.front());
            return results;
        }
        if (name == "reshard") {
            CollectiveAttributes attributes;
            attributes.resultShape = function[operands.front()].type.shape;
            results.values = {m_builder.add(OpKind::Reshard, operands, attributes)};
            function[results.values.front()].sharding = shardingOf(op.at("to"));
            names[op.at("results")[0].get<std::string>()] = results.values.front();
            return results;
        }
        if (name == "sharding_constraint") {
            results.values = {m_builder.constrain(operands.front(), shardingOf(op.at("to")), "constraint")};
            names[op.at("results")[0].get<std::string>()] = results.values.front();
            return results;
        }
        std::vector<TensorType> operandTypes;
        std::vector<TensorType> resultTypes;
        for (const ValueId operand : operands)
            operandTypes.push_back(function[operand].type);
        for (const Json& type : op.at("result_types"))
            resultTypes.push_back(typeOf(type).value_or(TensorType{}));
        Json attrs = op.value("attrs", Json::object());
        if (op.contains("allowed_direction"))
            attrs["allowed_direction"] = op.at("allowed_direction");
        results.values = makeOp(name, attrs, op.value("rule", Json()), operands, operandTypes, resultTypes);
        for (std::size_t i = 0; i < results.values.size(); ++i) {
            const auto result = op.at("results")[i].get<std::string>();
            names[result] = results.values[i];
            if (op.contains("shardings") && !op.at("shardings")[i].is_null()) {
                setSharding(results.values[i], op.at("shardings")[i]);
                function[results.values[i]].annotation = "op " + result;
            }
        }
        return results;
    }

    /// The op, read from text in a function of its own.
    std::vector<ValueId> makeOp(const std::string& name, const Json& attrs, const Json& rule,
        const std::vector<ValueId>& operands, const std::vector<TensorType>& operandTypes,
        const std::vector<TensorType>& resultTypes)
    {
        if (name == "constant")
            return {m_builder.splat(resultTypes.front(), 1.0)};
        std::string body;
        std::vector<std::string> arguments;
        std::vector<std::string> values;
        std::vector<ValueId> taken;
        for (std::size_t i = 0; i < operands.size(); ++i) {
            values.push_back(fmt::format("%a{}", i));
            if (name == "reduce" && 2 * i >= operands.size()) {
                body += startText(values.back(), operandTypes[i]);
                continue;
            }
            arguments.push_back(fmt::format("{}: {}", values.back(), tensorText(operandTypes[i])));
            taken.push_back(operands[i]);
        }
        std::vector<std::string> made;
        std::vector<std::string> types;
        for (std::size_t i = 0; i < resultTypes.size(); ++i) {
            made.push_back(fmt::format("%out{}", i));
            types.push_back(tensorText(resultTypes[i]));
        }
        const std::string names = fmt::format("{}", fmt::join(made, ", "));
        const std::string text = fmt::format("func.func @op({}) -> {} {{\n{}{}{}{}\nreturn {}{}{}\n}}\n",
            fmt::join(arguments, ", "), typeList(resultTypes), body, names, made.empty() ? "" : " = ",
            opText(name == "custom_call" && attrs.value("target", std::string()).starts_with("opaque") ? "test.opaque" : name,
                attrs, rule, values, operandTypes, resultTypes),
            names, made.empty() ? "" : " : ", fmt::join(types, ", "));
        const auto program = readProgram(text, "op.mlir");
        if (!program)
            throw std::runtime_error(describe(program.error()) + "\n" + text);
        return inlineCall(m_builder, program->functions.front(), taken);
    }

    OpResults readWhile(const Json& op, Names& names)
    {
        std::vector<ValueId> operands;
        for (const Json& operand : op.at("operands"))
            operands.push_back(find(names, operand.get<std::string>()));
        RepeatAttributes attributes;
        attributes.count = 2;
        attributes.carries = operands.size();
        const OpId repeat = m_builder.beginRepeat(attributes, operands);
        const Json& body = op.at("body");
        Names inner;
        const auto& arguments = function[m_builder.block()].arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i)
            inner[body.at("args")[i].get<std::string>()] = arguments[i];
        OpResults results;
        results.body = readOps(body.at("ops"), inner);
        std::vector<ValueId> yielded;
        for (const Json& operand : body.at("ops").back().at("operands"))
            yielded.push_back(find(inner, operand.get<std::string>()));
        m_builder.setResults(yielded);
        results.values = m_builder.endRepeat(repeat);
        for (std::size_t i = 0; i < results.values.size(); ++i)
            names[op.at("results")[i].get<std::string>()] = results.values[i];
        return results;
    }

    const Json& m_json;
    Builder m_builder;
    std::map<int, std::vector<ValueId>> m_groups;
};

} // namespace meshwright::goldens
