// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/goldens/golden_runner.h"

#include "core/sharding/logical_axes.h"
#include "tests/test_class.h"

#include <map>

namespace tst_golden_logical_axes {

using namespace meshwright;
using namespace meshwright::goldens;

class TestGoldenLogicalAxes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases();
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"logical_axes.json"};
};

namespace {

const std::map<std::string, std::string> kProblemOfKind
    = {{"duplicate_logical_name", "MW1181"}, {"inconsistent_rules", "MW1183"}};

LogicalNames namesOf(const Json& json)
{
    LogicalNames names;
    for (const Json& name : json)
        names.push_back(name.is_null()    ? LogicalName{}
                : name == "UNCONSTRAINED" ? LogicalName{{}, true}
                                          : LogicalName{name.get<std::string>(), false});
    return names;
}

LogicalTarget targetOf(const Json& json)
{
    if (json == "UNCONSTRAINED")
        return {{}, true};
    if (json.is_null())
        return {};
    return {json.is_string() ? std::vector{json.get<std::string>()} : json.get<std::vector<std::string>>(), false};
}

LogicalRules rulesOf(const Json& json)
{
    LogicalRules rules;
    for (const Json& rule : json)
        rules.push_back({rule.at(0).get<std::string>(), targetOf(rule.at(1))});
    return rules;
}

Outcome check(const Result<LogicalDecision>& decision, const Json& expect)
{
    if (expect.contains("error")) {
        const std::string kind = expect.at("error").at("kind").get<std::string>();
        const auto id = kProblemOfKind.find(kind);
        if (id == kProblemOfKind.end())
            return failed("no problem of ours is known to mean " + kind);
        return decision ? failed("accepted, expected " + kind) : same("problem", decision.error().front().id, id->second);
    }
    if (!decision)
        return failed(describe(decision.error()));
    JaxSpec expected;
    for (const Json& entry : expect.at("spec")) {
        const LogicalTarget target = targetOf(entry);
        expected.dims.push_back({target.axes, target.unconstrained});
    }
    return same("spec", jaxSpecText(decision->spec), jaxSpecText(expected));
}

Outcome run(const Json& golden)
{
    const std::string kind = golden.value("kind", "linen");
    const LogicalNames names = namesOf(golden.at("names"));
    if (kind == "linen")
        return check(linenAxes(names, rulesOf(golden.at("rules"))), golden.at("expect"));
    if (kind == "nnx_alias")
        return check(nnxAxes(names, rulesOf(golden.value("context_rules", Json::array())),
                         rulesOf(golden.value("local_rules", Json::array()))),
            golden.at("expect"));
    return failed("unknown kind " + kind);
}

} // namespace

void TestGoldenLogicalAxes::cases()
{
    settleCase(m_file, run);
}

MESHWRIGHT_TEST(TestGoldenLogicalAxes)

} // namespace tst_golden_logical_axes

#include "tst_golden_logical_axes.moc"
