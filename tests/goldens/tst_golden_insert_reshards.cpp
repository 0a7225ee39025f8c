// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/explicit_reshards.h"
#include "core/program/other_op.h"
#include "core/program/verify.h"
#include "tests/goldens/case_reader.h"
#include "tests/test_class.h"

#include <set>

namespace tst_golden_insert_reshards {

namespace {

using namespace meshwright;
using namespace meshwright::goldens;

/// The ops of an output body beside the ops that a case expects.
class Matcher {
public:
    Matcher(const CaseReader& reader, const Function& output, const Json& json)
        : m_reader(reader)
        , m_output(output)
        , m_expect(json.at("expect"))
    {
        for (const Json& op : json.at("program").at("ops")) {
            if (op.at("op") == "constant")
                m_constants.insert(op.at("results")[0].get<std::string>());
        }
        for (const OpId op : output.body().ops) {
            if (output[op].kind != OpKind::Constant)
                m_found.push_back(op);
        }
        for (const Json& op : m_expect.at("ops"))
            m_wanted.push_back(&op);
    }

    Outcome run()
    {
        const bool exact = m_expect.at("match") == "exact";
        for (const Json& absent : m_expect.at("absent_ops")) {
            for (const OpId op : m_found) {
                if (nameOf(m_output[op]) == absent)
                    return failed(fmt::format("there is a {}: {}", absent.dump(), text()));
            }
        }
        // Results that no label names go by the output's numbers.
        Labels labels;
        for (const ValueId argument : m_output.arguments())
            labels[m_output[argument].name] = argument;
        for (const OpId op : m_found) {
            for (const ValueId result : m_output[op].results)
                labels[fmt::format("{}", labels.size() - m_output.arguments().size())] = result;
        }
        if (!match(0, 0, labels, exact))
            return failed(fmt::format("found {}, expected {}", text(), Json(m_expect.at("ops")).dump()));
        return passed();
    }

private:
    using Labels = std::map<std::string, ValueId>;

    static std::string nameOf(const Op& op)
    {
        if (op.kind == OpKind::Reshard) {
            const auto& attributes = op.as<CollectiveAttributes>();
            if (!attributes.perDim.empty())
                return "sharded_to_unreduced";
            if (!attributes.axes.empty())
                return "replicated_to_unreduced";
        }
        return std::string(baseName(opName(op)));
    }

    /// The expected ops from `wanted` on stand in this order among those from `found` on; when exact, nothing else does.
    bool match(std::size_t wanted, std::size_t found, const Labels& labels, bool exact)
    {
        if (wanted == m_wanted.size())
            return !exact || found == m_found.size();
        const Json& expected = *m_wanted[wanted];
        if (expected.at("op") == "return") {
            if (exact)
                return found == m_found.size() && areOperands(expected, m_output.results(), labels);
            // Some name what is returned before its last change of layout: of those lines only the peer's reader sees that they are not checks.
            std::vector<ValueId> made = m_output.results();
            for (ValueId& value : made)
                value = beforeChanges(value);
            return areOperands(expected, m_output.results(), labels) || areOperands(expected, made, labels);
        }
        if (expected.at("op") == "constant")
            return match(wanted + 1, found, labels, exact);
        for (std::size_t i = found; i < m_found.size() && (i == found || !exact); ++i) {
            Labels extended = labels;
            if (isThisOp(expected, m_output[m_found[i]], extended) && match(wanted + 1, i + 1, extended, exact))
                return true;
        }
        return false;
    }

    ValueId beforeChanges(ValueId value) const
    {
        OpId producer = m_output[value].producer;
        while (producer.valid() && isCollective(m_output[producer].kind)) {
            value = m_output[producer].operands.front();
            producer = m_output[value].producer;
        }
        return value;
    }

    bool isThisOp(const Json& expected, const Op& op, Labels& labels)
    {
        const auto name = expected.at("op").get<std::string>();
        if (nameOf(op) != (name == "dot" ? "dot_general" : name) || !areOperands(expected, op.operands, labels))
            return false;
        if (expected.contains("axes") && axesText(op) != expected.at("axes").get<std::string>())
            return false;
        if (expected.contains("out") && layout(op.results.front()) != layout(expected.at("out")))
            return false;
        if (m_expect.value("no_sharding_attributes", false) && !isCollective(op.kind) && m_output[op.results.front()].sharding)
            return false;
        const Json shardings = expected.value("shardings", Json::array());
        for (std::size_t i = 0; i < shardings.size(); ++i) {
            if (i >= op.results.size() || layout(op.results[i]) != layout(shardings[i]))
                return false;
        }
        const Json results = expected.value("results", Json::array());
        for (std::size_t i = 0; i < results.size() && i < op.results.size(); ++i)
            labels[results[i].get<std::string>()] = op.results[i];
        return true;
    }

    /// Our reductions need no constants; they are named `cst` and `c`, or as before.
    bool areOperands(const Json& expected, const std::vector<ValueId>& found, const Labels& labels) const
    {
        const auto isConstant = [&](ValueId value) {
            const OpId producer = m_output[value].producer;
            return producer.valid() && m_output[producer].kind == OpKind::Constant;
        };
        std::size_t next = 0;
        for (const Json& operand : expected.value("operands", Json::array())) {
            const auto name = operand.get<std::string>();
            if (name.starts_with("cst") || name == "c" || m_constants.contains(name)) {
                next += next < found.size() && isConstant(found[next]) ? 1U : 0U;
                continue;
            }
            const auto label = labels.find(name);
            if (next >= found.size() || label == labels.end() || found[next++] != label->second)
                return false;
        }
        // Some lines end before the scalars.
        while (next < found.size() && m_output[found[next]].type.shape.empty())
            ++next;
        return next == found.size() || !expected.contains("operands");
    }

    std::string axesText(const Op& op) const
    {
        const auto& attributes = op.as<CollectiveAttributes>();
        const Mesh& mesh = m_reader.meshes[static_cast<std::size_t>(m_output[op.results.front()].sharding->mesh)].mesh;
        const auto list = [&](const std::vector<AxisRefs>& dims) {
            TensorSharding sharding;
            for (const AxisRefs& axes : dims)
                sharding.dims.push_back({axes, false, 0});
            return shardyText(sharding, mesh);
        };
        if (!attributes.perDim.empty())
            return list(attributes.perDim);
        const std::string text = list({attributes.axes});
        return text.substr(1, text.size() - 2);
    }

    std::string layout(ValueId value) const
    {
        const auto& sharding = m_output[value].sharding;
        if (!sharding)
            return "none";
        return textOf(*sharding);
    }

    std::string layout(const Json& json) const
    {
        if (json.is_null())
            return "none";
        return textOf(m_reader.shardingOf(json));
    }

    std::string textOf(const TensorSharding& sharding) const
    {
        const NamedMesh& mesh = m_reader.meshes[static_cast<std::size_t>(sharding.mesh)];
        return mesh.name + " " + (mesh.isMaximal ? std::string("[]") : shardyText(sharding, mesh.mesh));
    }

    std::string text() const
    {
        std::string all;
        for (const OpId id : m_found) {
            const Op& op = m_output[id];
            std::vector<std::string> operands;
            for (const ValueId operand : op.operands)
                operands.push_back(valueText(m_output, operand));
            all += fmt::format("{} = {}({}) {}{}; ", valueText(m_output, op.results.front()), nameOf(op),
                fmt::join(operands, ", "), isCollective(op.kind) ? axesText(op) + " " : "", layout(op.results.front()));
        }
        for (const ValueId result : m_output.results())
            all += " return " + valueText(m_output, result);
        return all;
    }

    const CaseReader& m_reader;
    const Function& m_output;
    const Json& m_expect;
    std::set<std::string> m_constants; ///< of the program before
    std::vector<OpId> m_found;
    std::vector<const Json*> m_wanted;
};

/// What `summary` says of a program of one op: which operands are moved and to where, what is summed, and how the results end up.
class SummaryMatcher {
public:
    SummaryMatcher(const Function& output, const std::vector<NamedMesh>& meshes)
        : m_output(output)
        , m_meshes(meshes)
    {
    }

    Outcome run(const Json& summary, std::size_t made) const
    {
        const Op& op = m_output[OpId(made)];
        Json operands = Json::object();
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (isReshard(op.operands[i]))
                operands[std::to_string(i)] = text(op.operands[i]);
        }
        Json reduced = Json::array();
        Json results = Json::object();
        Json shardings = Json::array();
        for (std::size_t i = 0; i < op.results.size(); ++i) {
            shardings.push_back(text(op.results[i]));
            for (ValueId value = op.results[i]; value.valid(); value = userOf(value)) {
                const OpId producer = m_output[value].producer;
                if (m_output[producer].kind == OpKind::AllReduce)
                    reduced.push_back({{"result", i}, {"axes", axes(m_output[producer])}});
                else if (isReshard(value))
                    results[std::to_string(i)] = text(value);
            }
        }
        const auto compare = [&](const char* name, const Json& found) {
            return !summary.contains(name) || summary.at(name) == found
                ? std::string()
                : fmt::format("{}: found {}, expected {}; ", name, found.dump(), summary.at(name).dump());
        };
        const std::string wrong = compare("operand_reshards", operands) + compare("all_reduce_axes", reduced)
            + compare("result_reshards", results) + compare("op_result_shardings", shardings);
        return wrong.empty() ? passed() : failed(wrong);
    }

private:
    bool isReshard(ValueId value) const
    {
        const OpId producer = m_output[value].producer;
        return producer.valid() && m_output[producer].kind == OpKind::Reshard;
    }

    /// What the next change of a value's layout makes of it; invalid: there is none.
    ValueId userOf(ValueId value) const
    {
        for (const OpId id : m_output.body().ops) {
            const Op& op = m_output[id];
            if (isCollective(op.kind) && op.operands.front() == value)
                return op.results.front();
        }
        return {};
    }

    std::string text(ValueId value) const
    {
        const auto& sharding = m_output[value].sharding;
        return sharding ? shardyText(*sharding, m_meshes[static_cast<std::size_t>(sharding->mesh)].mesh) : "none";
    }

    std::string axes(const Op& reduce) const
    {
        TensorSharding sharding;
        sharding.dims.push_back({reduce.as<CollectiveAttributes>().axes, false, 0});
        const auto mesh = static_cast<std::size_t>(m_output[reduce.results.front()].sharding->mesh);
        const std::string text = shardyText(sharding, m_meshes[mesh].mesh);
        return text.substr(1, text.size() - 2);
    }

    const Function& m_output;
    const std::vector<NamedMesh>& m_meshes;
};

/// The only op of the output that is neither a constant nor a change of layout; nothing when there are more.
std::optional<std::size_t> onlyOp(const Function& output)
{
    std::optional<std::size_t> only;
    for (const OpId id : output.body().ops) {
        if (output[id].kind == OpKind::Constant || isCollective(output[id].kind))
            continue;
        if (only)
            return std::nullopt;
        only = id.at();
    }
    return only;
}

bool hasScalarBounds(const Json& json, const Json& clamp)
{
    for (const Json& arg : json.at("program").at("args")) {
        if (arg.at("name") == clamp.at("operands")[0])
            return arg.contains("shape") && arg.at("shape").empty();
    }
    return false;
}

Outcome run(const Json& json)
{
    for (const Json& op : json.at("program").at("ops")) {
        if (op.at("op") == "custom_call" && !op.contains("rule") && !op.value("attrs", Json::object()).contains("target"))
            return unsupported("the case does not name what is called");
        if (op.at("op") == "clamp" && typeOf(op.at("result_types")[0])->shape.size() > 0 && hasScalarBounds(json, op))
            return unsupported("scalar bounds of a clamp are spread when they are read, and then are arrays like others");
    }
    CaseReader reader(json);
    reader.read();
    if (const Problems problems = verify(reader.function, reader.meshes); !problems.empty())
        return failed(describe(problems));
    const Function output = insertExplicitReshards(
        reader.function, reader.meshes, json.at("full_version").get<bool>() ? ReshardDepth::Full : ReshardDepth::Light);
    if (const Problems problems = verify(output, reader.meshes); !problems.empty())
        return failed(describe(problems));
    const Outcome matched = Matcher(reader, output, json).run();
    const auto only = json.contains("summary") ? onlyOp(output) : std::nullopt;
    return matched.kind == Outcome::Kind::Passed && only ? SummaryMatcher(output, reader.meshes).run(json.at("summary"), *only)
                                                         : matched;
}

} // namespace

class TestGoldenInsertReshards : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cases_data() { m_file.addRows(); }
    void cases() { settleCase(m_file, run); }
    void cleanupTestCase() { m_file.printSummary(); }

private:
    GoldenFile m_file{"insert_reshards.json"};
};

MESHWRIGHT_TEST(TestGoldenInsertReshards)

} // namespace tst_golden_insert_reshards

#include "tst_golden_insert_reshards.moc"
