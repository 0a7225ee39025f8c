// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/rule.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/op_json.h"
#include "tests/rule_text.h"
#include "tests/test_class.h"

#include <map>
#include <numeric>
#include <set>

namespace tst_golden_rules {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;
using namespace meshwright::tests;

/// Factors numbered in the order in which they are met, so that rules compare whatever their factors are called.
class Canonical {
public:
    template <typename Name, typename Describe>
    void add(const std::vector<std::vector<Name>>& dims, const Describe& describeFactor)
    {
        for (const auto& dim : dims) {
            m_text += '[';
            for (const Name& name : dim) {
                const std::string key = fmt::format("{}", name);
                const auto [at, isNew] = m_numbers.try_emplace(key, m_numbers.size());
                m_text += fmt::format(" f{}", at->second);
                if (isNew)
                    m_text += fmt::format("({})", describeFactor(name));
            }
            m_text += ']';
        }
        m_text += "; ";
    }
    const std::string& text() const { return m_text; }

private:
    std::map<std::string, std::size_t> m_numbers;
    std::string m_text;
};

std::string canonical(const OpShardingRule& rule)
{
    const auto describeFactor = [&](std::size_t index) {
        constexpr std::array kKinds = {"", " reduction", " permutation", " need_replication"};
        const Factor& factor = rule.factors[index];
        return fmt::format(
            "{}{}{}", factor.size, kKinds[static_cast<std::size_t>(factor.kind)], factor.blocked ? " blocked" : "");
    };
    Canonical text;
    for (const DimFactors& dims : rule.operands)
        text.add(dims, describeFactor);
    for (const DimFactors& dims : rule.results)
        text.add(dims, describeFactor);
    return text.text();
}

std::string canonical(const Json& factors, const std::vector<std::size_t>& operands)
{
    const auto has = [&](const char* list, const std::string& name) {
        const auto names = factors.at(list).get<std::vector<std::string>>();
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const auto describeFactor = [&](const std::string& name) {
        return fmt::format("{}{}{}{}{}", factors.at("sizes").at(name).get<std::int64_t>(),
            has("reduction", name) ? " reduction" : "", has("permutation", name) ? " permutation" : "",
            has("need_replication", name) ? " need_replication" : "", has("blocked_propagation", name) ? " blocked" : "");
    };
    Canonical text;
    for (const std::size_t operand : operands)
        text.add(factors.at("operands").at(operand).get<std::vector<std::vector<std::string>>>(), describeFactor);
    for (const Json& result : factors.at("results"))
        text.add(result.get<std::vector<std::vector<std::string>>>(), describeFactor);
    return text.text();
}

/// The types of some values; a token counts as a scalar.
std::vector<TensorType> typesOf(const Json& list)
{
    std::vector<TensorType> types;
    for (const Json& type : list)
        types.push_back(typeOf(type).value_or(TensorType{}));
    return types;
}

/// A function of the case's op and of those around it. The value `probe` is the op's first result.
class CaseText {
public:
    explicit CaseText(const Json& json)
    {
        const auto op = json.at("op").get<std::string>();
        const std::vector<TensorType> operands = typesOf(json.at("operand_types"));
        const std::vector<TensorType> results = typesOf(json.at("result_types"));
        std::vector<std::string> names = namesOf(json, "operands", operands.size(), "in");
        const std::vector<std::string> made = namesOf(json, "results", results.size(), "out");
        const Json context = json.value("context_ops", Json::array());
        for (std::size_t i = 0; i < operands.size(); ++i) {
            if (op == "reduce" && 2 * i >= operands.size()) { // the value that a reduction starts with
                names[i] = fmt::format("start{}", i);
                m_body += startText(valueName(names[i]), operands[i]);
            }
            m_types[names[i]] = operands[i];
        }
        for (const Json& other : context) {
            if (!uses(other, made) && other.at("op") != "constant")
                add(other);
        }
        std::string notes = results.size() == 1 ? "mw.name = \"probe\"" : "mw.results = [{mw.name = \"probe\"}";
        for (std::size_t i = 1; i < results.size(); ++i)
            notes += i + 1 == results.size() ? ", {}]" : ", {}";
        define(made, results, opText(op, json.at("attrs"), Json(), valuesOf(names), operands, results, notes));
        for (const Json& other : context) {
            if (uses(other, made))
                add(other);
        }
    }

    std::string text() const
    {
        std::vector<std::string> arguments;
        for (const auto& [name, type] : m_types) {
            if (!m_defined.contains(name) && m_body.find(valueName(name) + " = ") == std::string::npos)
                arguments.push_back(fmt::format("{}: {}", valueName(name), tensorText(type)));
        }
        return fmt::format("func.func @main({}) {{\n{}return\n}}\n", fmt::join(arguments, ", "), m_body);
    }

private:
    static std::vector<std::string> namesOf(const Json& json, const char* key, std::size_t count, const char* title)
    {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count; ++i)
            names.push_back(json.contains(key) ? json.at(key).at(i).get<std::string>() : fmt::format("{}{}", title, i));
        return names;
    }
    static std::vector<std::string> valuesOf(const std::vector<std::string>& names)
    {
        std::vector<std::string> values;
        for (const std::string& name : names)
            values.push_back(valueName(name));
        return values;
    }
    static bool uses(const Json& op, const std::vector<std::string>& names)
    {
        const Json operands = op.value("operands", Json::array());
        return std::any_of(operands.begin(), operands.end(), [&](const Json& operand) {
            return std::find(names.begin(), names.end(), operand.get<std::string>()) != names.end();
        });
    }
    void define(const std::vector<std::string>& names, const std::vector<TensorType>& types, const std::string& text)
    {
        m_body += fmt::format("{}{}{}\n", fmt::join(valuesOf(names), ", "), names.empty() ? "" : " = ", text);
        for (std::size_t i = 0; i < names.size(); ++i) {
            m_types[names[i]] = types[i];
            m_defined.insert(names[i]);
        }
    }
    void add(const Json& op)
    {
        const auto results = op.value("results", std::vector<std::string>());
        const auto operands = op.value("operands", std::vector<std::string>());
        std::vector<TensorType> operandTypes;
        for (const std::string& operand : operands) {
            // Of the arguments of neighbours only what they do with them is known.
            const Json attrs = op.value("attrs", Json::object());
            if (!m_types.contains(operand)) {
                TensorType type = typesOf(op.at("result_types")).front();
                for (std::size_t dim = 0; attrs.contains("ranges") && dim < type.shape.size(); ++dim)
                    type.shape[dim] = std::max(type.shape[dim], attrs.at("ranges").at(dim).at(1).get<std::int64_t>());
                m_types[operand] = type;
            }
            operandTypes.push_back(m_types[operand]);
        }
        define(results, typesOf(op.at("result_types")),
            opText(op.at("op").get<std::string>(), op.value("attrs", Json::object()), Json(), valuesOf(operands), operandTypes,
                typesOf(op.at("result_types"))));
    }

    std::map<std::string, TensorType> m_types;
    std::set<std::string> m_defined;
    std::string m_body;
};

/// True when no two tensors have a factor in common: nothing goes through the op.
bool joinsNothing(const OpShardingRule& rule)
{
    std::vector<int> tensors(rule.factors.size(), 0);
    for (const auto* list : {&rule.operands, &rule.results}) {
        for (const DimFactors& dims : *list) {
            std::set<std::size_t> own;
            for (const auto& factors : dims)
                own.insert(factors.begin(), factors.end());
            for (const std::size_t factor : own)
                ++tensors[factor];
        }
    }
    return std::all_of(tensors.begin(), tensors.end(), [](int count) { return count < 2; });
}

Outcome compare(const Json& json, const std::optional<OpShardingRule>& rule)
{
    if (json.at("rule").is_null())
        return !rule || joinsNothing(*rule) ? passed() : failed("a rule: " + ruleText(*rule));
    if (!rule)
        return same("a rule", std::string("none"), json.at("rule").get<std::string>());
    std::vector<std::size_t> operands(rule->operands.size()); // a reduction's start is part of the op here
    std::iota(operands.begin(), operands.end(), std::size_t{0});
    return same(ruleText(*rule), canonical(*rule), canonical(json.at("factors"), operands));
}

Outcome run(const Json& json)
{
    const auto name = json.at("op").get<std::string>();
    const auto kind = parseOpKind(name);
    if (kind && isElementwise(*kind) && *kind != OpKind::BitcastConvert
        && !json.contains("context_ops")) // scalars may stand for arrays
        return compare(json, shardingRule(*kind, {}, typesOf(json.at("operand_types")), typesOf(json.at("result_types"))));
    if (name == "custom_call" && !json.at("attrs").contains("target"))
        return unsupported("the case does not name what is called");
    const std::string text = CaseText(json).text();
    const auto program = readProgram(text, "case.mlir");
    if (!program)
        return failed(describe(program.error()) + "\n" + text);
    const Function& function = program->functions.front();
    const OpId op = function[*function.findValue("probe")].producer;
    return compare(json, shardingRule(function, op, json.value("conservative", false)));
}

} // namespace

class TestGoldenRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"sharding_rules.json"};
};

MESHWRIGHT_TEST(TestGoldenRules)

} // namespace tst_golden_rules

#include "tst_golden_rules.moc"
