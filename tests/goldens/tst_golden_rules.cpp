// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/rule.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/op_json.h"

#include <map>

namespace {

using namespace meshwright;
using namespace meshwright::goldens;

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

Outcome run(const Json& json)
{
    const auto name = json.at("op").get<std::string>();
    std::vector<TensorType> operands;
    std::vector<TensorType> results;
    for (const Json& type : json.at("operand_types"))
        operands.push_back(typeOf(type).value_or(TensorType{}));
    for (const Json& type : json.at("result_types"))
        results.push_back(typeOf(type).value_or(TensorType{}));
    const auto parts = opOf(name, json.at("attrs"), operands, results);
    if (!parts)
        return unsupported(fmt::format("op {} comes with the text reader", name));

    std::vector<TensorType> taken;
    for (const std::size_t operand : parts->operands)
        taken.push_back(operands[operand]);
    const auto rule = shardingRule(parts->kind, parts->attributes, taken, results);
    if (!rule)
        return same("a rule", std::string("none"), std::string("one"));
    return same(ruleText(*rule), canonical(*rule), canonical(json.at("factors"), parts->operands));
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

QTEST_APPLESS_MAIN(TestGoldenRules)
#include "tst_golden_rules.moc"
