// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/verify.h"
#include "core/propagate/propagate.h"
#include "tests/goldens/case_reader.h"
#include "tests/test_class.h"

namespace tst_golden_propagation {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;

PropagationStrategy strategyOf(const std::string& name)
{
    const std::map<std::string, PropagationStrategy> names
        = {{"basic", PropagationStrategy::Basic}, {"basic_conservative", PropagationStrategy::BasicConservative},
            {"aggressive", PropagationStrategy::Aggressive}, {"op_priority", PropagationStrategy::OpPriority},
            {"user_priority", PropagationStrategy::UserPriority}, {"pipeline", PropagationStrategy::Pipeline}};
    return names.at(name);
}

Outcome compare(const CaseReader& reader, bool pipeline, const std::string& what, const std::optional<TensorSharding>& found,
    const Json& expected)
{
    const auto text = [&](const std::optional<TensorSharding>& sharding) {
        // All dimensions open and nothing else: as good as none.
        const bool saysNothing = sharding && sharding->replicated.empty() && sharding->unreduced.empty()
            && std::all_of(sharding->dims.begin(), sharding->dims.end(),
                [](const DimSharding& dim) { return dim.open && dim.axes.empty(); });
        if (!sharding || saysNothing || (pipeline && sharding->isReplicated()))
            return std::string("none");
        return reader.meshes[static_cast<std::size_t>(sharding->mesh)].mesh.text() + " "
            + shardyText(*sharding, reader.meshes[static_cast<std::size_t>(sharding->mesh)].mesh);
    };
    return same(what, text(found), text(expected.is_null() ? std::nullopt : std::optional(reader.shardingOf(expected))));
}

Outcome compareOp(const CaseReader& reader, bool pipeline, const Json& entry)
{
    const OpResults* op = nullptr;
    if (entry.contains("op_index")) {
        op = &reader.ops[entry.at("op_index").get<std::size_t>()];
    } else {
        op = &reader.ops[entry.at("op_path")[0].get<std::size_t>()];
        op = &op->body[entry.at("op_path")[2].get<std::size_t>()];
    }
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < op->values.size(); ++i) {
        const Json expected = entry.at("shardings").is_null() ? Json() : entry.at("shardings")[i];
        outcomes.push_back(compare(reader, pipeline, fmt::format("op {} result {}", entry.dump().substr(0, 40), i),
            reader.function[op->values[i]].sharding, expected));
    }
    return all(outcomes);
}

/// True when the answer has a sharding for the op that makes a result: if the result itself is said to have none, that is its callers' matter.
bool isStatedOf(const Json& json, std::size_t result)
{
    const Json& ops = json.at("program").at("ops");
    const auto name = ops.back().at("operands")[result].get<std::string>();
    for (const Json& entry : json.at("expect").value("ops", Json::array())) {
        if (!entry.contains("op_index") || entry.at("shardings").is_null())
            continue;
        const Json results = ops.at(entry.at("op_index").get<std::size_t>()).value("results", Json::array());
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (results[i] == name && !entry.at("shardings")[i].is_null())
                return true;
        }
    }
    return false;
}

Outcome run(const Json& json)
{
    CaseReader reader(json);
    reader.read();
    if (const Problems problems = verify(reader.function, reader.meshes); !problems.empty())
        return failed(describe(problems));
    const PropagationStrategy strategy = strategyOf(json.at("strategy").get<std::string>());
    const auto report = propagate(reader.function, reader.meshes, strategy);
    if (!report)
        return failed(describe(report.error()));

    const bool pipeline = strategy == PropagationStrategy::Pipeline;
    const Json& expect = json.at("expect");
    std::vector<Outcome> outcomes;
    for (const auto& [name, sharding] : expect.at("args").items()) {
        const ValueId value = *reader.function.findValue(name);
        outcomes.push_back(compare(reader, pipeline, name, reader.function[value].sharding, sharding));
    }
    if (expect.contains("results") && !expect.at("results").is_null()) {
        for (std::size_t i = 0; i < expect.at("results").size(); ++i) {
            const bool isCallers = expect.at("results")[i].is_null() && isStatedOf(json, i);
            if (reader.resultIndex[i] && !isCallers)
                outcomes.push_back(compare(reader, pipeline, fmt::format("result {}", i),
                    reader.function.resultShardings[*reader.resultIndex[i]], expect.at("results")[i]));
        }
    }
    // Some ops are stated twice (before and after the pass); one of the two is the answer.
    std::map<std::string, std::vector<Outcome>> byOp;
    for (const Json& entry : expect.value("ops", Json::array()))
        byOp[(entry.contains("op_index") ? entry.at("op_index") : entry.at("op_path")).dump()].push_back(
            compareOp(reader, pipeline, entry));
    for (const auto& [op, answers] : byOp) {
        const auto good = std::find_if(
            answers.begin(), answers.end(), [](const Outcome& outcome) { return outcome.kind == Outcome::Kind::Passed; });
        outcomes.push_back(good == answers.end() ? answers.front() : *good);
    }
    return all(outcomes);
}

} // namespace

class TestGoldenPropagation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"propagation.json"};
};

MESHWRIGHT_TEST(TestGoldenPropagation)

} // namespace tst_golden_propagation

#include "tst_golden_propagation.moc"
