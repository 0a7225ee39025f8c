// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/verify.h"
#include "core/study/resolve.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <algorithm>

namespace tst_resolve {

using namespace meshwright;

/// The study's specs on the functions of its program.
class TestResolve : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void argumentsAndResults();
    void statesLeaveTheirGroup();
    void gradients();
    void typesOfArrays_data();
    void typesOfArrays();
    void constraints();
    void otherPrograms_data();
    void otherPrograms();
    void programsWithAMesh();
    void problems();
};

namespace {

Study read(const std::string& text)
{
    auto study = readStudy(
        "meshwright: 1\nmesh: {data: 4, model: 2}\nmodel: {mlp: {layers: [16, 32, 32, 8]}}\nbatch: 8\noptimizer: adam\n" + text,
        "s.yaml");
    if (!study)
        qFatal("%s", describe(study.error()).c_str());
    return *study;
}

Program build(const Study& study)
{
    Program program = valueOf(buildMlpTraining(*study.mlp(), valueOf(trainingOptions(study))));
    if (auto resolved = resolveShardings(study, assignedSpecs(study), program); !resolved)
        qFatal("%s", describe(resolved.error()).c_str());
    return program;
}

/// `P('data',) sharding.x`; `-` for a value without annotation.
QString layoutOf(const Program& program, const char* function, const std::string& name)
{
    const Function& f = *program.find(function);
    const Value& value = f[*f.findValue(name)];
    if (!value.sharding)
        return value.annotation.empty() ? "-" : "?";
    return tests::text(layoutText(*value.sharding, program.meshes[0].mesh) + " " + value.annotation);
}

QString resultLayout(const Program& program, const char* function, std::size_t result)
{
    const Function& f = *program.find(function);
    if (f.resultShardings.empty() || !f.resultShardings[result])
        return "-";
    return tests::text(layoutText(*f.resultShardings[result], program.meshes[0].mesh));
}

std::size_t groupSize(const Function& function, const std::string& member)
{
    const ValueId value = *function.findValue(member);
    for (const auto& group : function.shardingGroups) {
        if (std::find(group.begin(), group.end(), value) != group.end())
            return group.size();
    }
    return 0;
}

} // namespace

void TestResolve::argumentsAndResults()
{
    const Program program = build(
        read("sharding: {x: \"P('data', None)\", layers.1: {w: \"P(None, 'model')\"}, match: [{path: '*.0.w', spec: []}]}\n"));
    QCOMPARE(tests::text(program.meshes.at(0).mesh.text()), "data=4,model=2");
    QCOMPARE(tests::text(describe(verify(program))), QString());
    for (const char* function : {"step", "evaluate", "loss"}) {
        QCOMPARE(layoutOf(program, function, "x"), "P('data',) sharding.x");
        QCOMPARE(layoutOf(program, function, "y"), "-");
        QCOMPARE(layoutOf(program, function, "layers.0.w"), "P() sharding.match[0]"); // committed, though whole
        QCOMPARE(layoutOf(program, function, "layers.1.w"), "P(None, 'model') sharding.layers.1.w");
        QCOMPARE(layoutOf(program, function, "layers.2.w"), "-");
    }
    // init gives parameters where step wants them; step gives them back there. Arguments: w0 b0 w1 b1 ..
    QCOMPARE(resultLayout(program, "init", 2), "P(None, 'model')");
    QCOMPARE(resultLayout(program, "step", 2), "P(None, 'model')");
    QCOMPARE(resultLayout(program, "step", 1), "-");
    QCOMPARE(groupSize(*program.find("step"), "opt.m.layers.1.w"), groupSize(*program.find("step"), "layers.1.w"));
}

void TestResolve::statesLeaveTheirGroup()
{
    const Program program = build(read("sharding: {opt.m.*: \"P('data')\", match: [{path: '*', spec: []}]}\n"));
    const Function& step = *program.find("step");
    QCOMPARE(layoutOf(program, "step", "opt.m.layers.1.w"), "P('data',) sharding.opt.m.*");
    QCOMPARE(layoutOf(program, "step", "opt.v.layers.1.w"), "-");
    const ValueId parameter = *step.findValue("layers.1.w");
    const ValueId state = *step.findValue("opt.m.layers.1.w");
    for (const auto& group : step.shardingGroups)
        QVERIFY(std::find(group.begin(), group.end(), parameter) == group.end()
            || std::find(group.begin(), group.end(), state) == group.end());
    // The new state lies where the old one did.
    for (const Donation& donation : step.donations) {
        if (step.arguments()[donation.argument] == state)
            QCOMPARE(resultLayout(program, "step", donation.result), "P('data',)");
    }
    QCOMPARE(tests::text(describe(verify(program))), QString());
}

void TestResolve::gradients()
{
    const Program program = build(read("sharding: {grad.layers.1.w: \"P('data')\"}\n"));
    QCOMPARE(layoutOf(program, "step", "grad.layers.1.w"), "P('data',) sharding.grad.layers.1.w");
    QCOMPARE(layoutOf(program, "step", "layers.1.w"), "-");
    QCOMPARE(groupSize(*program.find("step"), "grad.layers.1.w"), std::size_t{0});
}

void TestResolve::typesOfArrays_data()
{
    QTest::addColumn<QString>("lines");
    const QString mlp = "model: {mlp: {layers: [16, 32, 32, 8]}}\n";
    const QString transformer = "model: {transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 64}}\nsequence: 16\n";
    for (const auto& [name, model] : {std::pair("mlp", mlp), std::pair("transformer", transformer)}) {
        const auto row = [&](const char* what, const QString& lines) {
            QTest::newRow(qPrintable(QString("%1: %2").arg(name, what))) << model + lines;
        };
        row("f32", "optimizer: adam\n");
        row("bf16", "dtype: {parameters: bf16, matmul: bf16}\noptimizer: adam\n");
        row("masters", "dtype: {parameters: bf16, matmul: bf16}\noptimizer: {adam: {masters: true}}\n");
        row("masters of SGD", "dtype: {parameters: f16, matmul: f16}\noptimizer: {sgd: {masters: true, loss_scale: dynamic}}\n");
        row("gradients", "dtype: {gradients: bf16}\noptimizer: adam\n");
        row("microbatches", "dtype: {parameters: bf16, gradients: f32}\noptimizer: adam\ntrain: {accumulate: 2}\n");
    }
    QTest::newRow("activations") << transformer + "dtype: {activations: bf16}\noptimizer: adam\n";
}

void TestResolve::typesOfArrays()
{
    QFETCH(QString, lines);
    const Study study = valueOf(readStudy("meshwright: 1\nmesh: {data: 4}\nbatch: 8\n" + lines.toStdString(), "s.yaml"));
    const TrainingOptions options = valueOf(trainingOptions(study));
    const Program program = study.mlp() != nullptr ? valueOf(buildMlpTraining(*study.mlp(), options))
                                                   : valueOf(buildTransformerTraining(*study.transformer(), options));
    const Function& step = *program.find("step");
    for (const StudyArray& array : studyArrays(study)) {
        const std::optional<ValueId> value = step.findValue(array.name);
        QVERIFY2(value, array.name.c_str());
        QVERIFY2(arrayType(study, array) == step[*value].type.dtype, array.name.c_str());
    }
}

void TestResolve::constraints()
{
    const Study study = read("sharding: {layers.1: {out: \"P('data', 'model')\"}}\n");
    const TrainingOptions options = valueOf(trainingOptions(study));
    QCOMPARE(options.batch, 8);
    QCOMPARE(options.constraints.size(), std::size_t{1});
    const ConstraintAttributes& constraint = options.constraints.at("act.layers.1");
    QCOMPARE(tests::text(constraint.origin), "sharding.layers.1.out");
    QVERIFY(constraint.sharding == tests::shardingOf("P('data', 'model')", 2, tests::meshOf("data=4,model=2")));
    const Program program = build(study);
    const Function& step = *program.find("step");
    QVERIFY(std::any_of(step.ops.begin(), step.ops.end(), [](const Op& op) { return op.kind == OpKind::ShardingConstraint; }));
    QCOMPARE(tests::text(describe(verify(program))), QString());
}

void TestResolve::otherPrograms_data()
{
    QTest::addColumn<QString>("entries");
    QTest::newRow("the name first") << "arg0: \"P('a')\", arg*: \"P(None, 'b')\"";
    QTest::newRow("the pattern first") << "arg*: \"P(None, 'b')\", arg0: \"P('a')\"";
}

void TestResolve::otherPrograms()
{
    QFETCH(QString, entries);
    auto study
        = readStudy(fmt::format("meshwright: 1\nmesh: {{a: 2, b: 2}}\nmodel: {{program: p.mlir}}\nsharding: {{{}, other: P()}}\n",
                        entries.toStdString()),
            "s.yaml");
    QVERIFY2(study, qPrintable(tests::described(study)));
    Program program;
    program.functions.push_back(Function{});
    Function& function = program.functions.back();
    function.name = "main";
    function.blocks.push_back(Block{});
    for (int i = 0; i < 2; ++i) {
        Value value;
        value.type = {DType::F32, {4, 6}};
        value.name = fmt::format("arg{}", i);
        value.block = BlockId(0);
        value.index = static_cast<std::size_t>(i);
        function.values.push_back(value);
        function.body().arguments.push_back(ValueId(i));
    }
    const auto resolved = resolveShardings(*study, assignedSpecs(*study), program);
    QCOMPARE(tests::idsOf(resolved), "MW1429"); // nothing is named "other"
    QCOMPARE(resolved.error()[0].place.line, 4);
    QCOMPARE(layoutOf(program, "main", "arg0"), "P('a',) sharding.arg0");
    QCOMPARE(layoutOf(program, "main", "arg1"), "P(None, 'b') sharding.arg*");
}

/// Axes go by their names, not by their places, and a whole axis stays whole.
void TestResolve::programsWithAMesh()
{
    const auto resolved = [](const std::string& mesh, const AxisRef& axis) -> Result<Program> {
        const auto study = readStudy("meshwright: 1\nmesh: " + mesh + "\nmodel: {program: p.mlir}\n", "s.yaml");
        if (!study)
            return study.error();
        Program program;
        program.meshes = {{"mesh", valueOf(parseMesh("x=4,y=2"))}};
        Function& function = program.functions.emplace_back();
        function.name = "main";
        function.blocks.emplace_back();
        Value value;
        value.type = {DType::F32, {8}};
        value.name = "a";
        value.block = BlockId(0);
        value.sharding = TensorSharding::replicatedOf(1);
        value.sharding->dims[0].axes = {axis};
        function.values.push_back(value);
        function.body().arguments.push_back(ValueId(0));
        if (auto done = resolveShardings(*study, assignedSpecs(*study), program); !done)
            return done.error();
        return program;
    };
    const AxisRef x{0, 1, 4};
    const AxisRef halfOfX{0, 1, 2};
    const auto other = resolved("{data: 3, x: 8}", x);
    QVERIFY2(other, qPrintable(tests::described(other)));
    QCOMPARE((*other).functions[0].values[0].sharding->dims[0].axes, (AxisRefs{{1, 1, 8}}));
    const auto half = resolved("{data: 3, x: 4}", halfOfX);
    QVERIFY2(half, qPrintable(tests::described(half)));
    QCOMPARE((*half).functions[0].values[0].sharding->dims[0].axes, (AxisRefs{{1, 1, 2}}));
    QCOMPARE(tests::idsOf(resolved("{data: 3, x: 8}", halfOfX)), "MW1232");
    const auto lacking = resolved("{data: 8}", x);
    QCOMPARE(tests::idsOf(lacking), "MW1232");
    QCOMPARE(lacking.error()[0].place.line, 2);
}

void TestResolve::problems()
{
    // The study fits its own arrays, but is put on another program.
    const Study study = read("sharding: {x: \"P('data')\"}\n");
    TrainingOptions options = valueOf(trainingOptions(study));
    options.batch = 6;
    Program program = valueOf(buildMlpTraining(*study.mlp(), options));
    const auto resolved = resolveShardings(study, assignedSpecs(study), program);
    QCOMPARE(tests::idsOf(resolved), "MW1104"); // once, though three functions take x
    QCOMPARE(tests::text(resolved.error()[0].place.path), "sharding.x");

    Study wrong = study;
    wrong.mesh = {{"data", 0}};
    QCOMPARE(tests::idsOf(resolveShardings(wrong, {}, program)), "MW1112");
    QCOMPARE(tests::idsOf(trainingOptions(wrong)), "MW1112");
    wrong = read("");
    wrong.sharding.entries = {{"act.layers.0", {{{"nope"}}}, "sharding.layers.0.out"}};
    QCOMPARE(tests::idsOf(trainingOptions(wrong)), "MW1102");
}

MESHWRIGHT_TEST(TestResolve)

} // namespace tst_resolve

#include "tst_resolve.moc"
