// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/logical_axes.h"

#include "tests/test_class.h"
#include "tests/values.h"

namespace tst_logical_axes {

using namespace meshwright;
using namespace meshwright::tests;

class TestLogicalAxes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void reading();
    void readingProblems_data();
    void readingProblems();
    void linen_data();
    void linen();
    void trace();
    void linenProblems();
    void nnx();
    void sameTableTwoAnswers();
    void stackedLayers();
    void meshesWithFewerAxes();
    void builtInLists();
    void maxText_data();
    void maxText();
};

namespace {

LogicalNames namesOf(std::string_view written)
{
    return valueOf(parseLogicalNames(written));
}

LogicalRules rulesOf(std::string_view written)
{
    return valueOf(parseLogicalRules(written));
}

} // namespace

void TestLogicalAxes::reading()
{
    const char* written = "[['batch', ['data', 'fsdp']], ['embed', 'model'], ['heads', None], ['kv', UNCONSTRAINED]]";
    const auto rules = parseLogicalRules(written);
    QVERIFY2(rules, described(rules).toUtf8());
    QCOMPARE(rules->size(), std::size_t{4});
    QCOMPARE(rules->front(), (LogicalRule{"batch", LogicalTarget{{"data", "fsdp"}, false}}));
    QCOMPARE(rules->back().target.unconstrained, true);
    QCOMPARE(rulesOf("((\"batch\", (\"data\", \"fsdp\",),), ('embed', 'model'), (heads, []), ('kv', P.UNCONSTRAINED),)"), *rules);
    QCOMPARE(namesOf("('batch', None, P.UNCONSTRAINED)"), (LogicalNames{{"batch", false}, {}, {{}, true}}));
    QCOMPARE(namesOf("[batch, null]"), (LogicalNames{{"batch", false}, {}}));
}

void TestLogicalAxes::readingProblems_data()
{
    QTest::addColumn<QString>("written");
    QTest::addColumn<int>("column");
    QTest::newRow("empty") << "" << 1;
    QTest::newRow("no list") << "['batch']" << 2;
    QTest::newRow("no target") << "[['batch']]" << 10;
    QTest::newRow("None as a name") << "[[None, 'x']]" << 7;
    QTest::newRow("nested") << "[['a', [['x']]]]" << 9;
    QTest::newRow("three") << "[['a', 'x', 'y']]" << 13;
    QTest::newRow("separator") << "[['a', 'x'] ['b', 'x']]" << 13;
    QTest::newRow("rest") << "[['a', 'x']] x" << 14;
    QTest::newRow("list separator") << "[['a', ['x' 'y']]]" << 13;
}

void TestLogicalAxes::readingProblems()
{
    QFETCH(QString, written);
    QFETCH(int, column);
    const auto rules = parseLogicalRules(written.toStdString());
    QCOMPARE(idsOf(rules), QString("MW1180"));
    QCOMPARE(rules.error().front().place.column, column);
    for (const char* names : {"", "batch", "('batch' 'embed')", "('batch') x", "('', )"})
        QCOMPARE(idsOf(parseLogicalNames(names)), QString("MW1180"));
}

void TestLogicalAxes::linen_data()
{
    QTest::addColumn<QString>("names");
    QTest::addColumn<QString>("rules");
    QTest::addColumn<QString>("spec");
    // Precedence is the order of the rules; an axis is used once; a second rule for a name is a fallback.
    QTest::newRow("first rule wins") << "(a, b)"
                                     << "[(b, x), (a, x)]"
                                     << "P(None, 'x')";
    QTest::newRow("second choice") << "(a, b)"
                                   << "[(a, x), (b, x), (b, y)]"
                                   << "P('x', 'y')";
    QTest::newRow("all or nothing") << "(a, b)"
                                    << "[(a, x), (b, (y, x)), (b, y)]"
                                    << "P('x', 'y')";
    QTest::newRow("None ends it") << "(a,)"
                                  << "[(a, None), (a, x)]"
                                  << "P(None,)";
    QTest::newRow("unconstrained") << "(a, None, UNCONSTRAINED)"
                                   << "[(a, UNCONSTRAINED), (a, x)]"
                                   << "P(UNCONSTRAINED, None, UNCONSTRAINED)";
    QTest::newRow("flax's own example") << "(batch, length, heads, features)"
                                        << "[(batch, X), (features, X), (heads, Y), (batch, Z)]"
                                        << "P('X', None, 'Y', None)";
}

void TestLogicalAxes::linen()
{
    QFETCH(QString, names);
    QFETCH(QString, rules);
    QFETCH(QString, spec);
    const auto decision = linenAxes(namesOf(names.toStdString()), rulesOf(rules.toStdString()));
    QVERIFY2(decision, described(decision).toUtf8());
    QCOMPARE(text(jaxSpecText(decision->spec)), spec);
}

void TestLogicalAxes::trace()
{
    const auto decision
        = valueOf(linenAxes(namesOf("(batch, length, embed)"), rulesOf("[(batch, x), (embed, [y, x]), (batch, y), (heads, z)]")));
    QStringList steps;
    for (const LogicalStep& step : decision.trace)
        steps += text(step.text);
    QCOMPARE(steps,
        (QStringList{"rule 1 (batch -> x): dim 0 (batch) gets x",
            "rule 2 (embed -> [y, x]): refused for dim 2 (embed), x is used by dim 0 (batch)",
            "rule 3 (batch -> y): dim 0 (batch) has its axes already", "rule 4 (heads -> z): the array has no such dimension",
            "dim 1 (length) is not sharded: no rule applied to it", "dim 2 (embed) is not sharded: no rule applied to it"}));
    QCOMPARE(decision.trace[1].verdict, LogicalVerdict::AxisTaken);
    QCOMPARE(decision.trace[1].otherDim, std::optional<std::size_t>(0));
    QCOMPARE(decision.unmatched, (std::vector<std::size_t>{1, 2}));
}

void TestLogicalAxes::linenProblems()
{
    QCOMPARE(idsOf(linenAxes(namesOf("(a, a, None, None)"), {})), QString("MW1181"));
}

void TestLogicalAxes::nnx()
{
    const auto decision
        = nnxAxes(namesOf("(row, col, z, None, UNCONSTRAINED)"), rulesOf("[(col, y)]"), rulesOf("[(row, [x, w]), (col, y)]"));
    QVERIFY2(decision, described(decision).toUtf8());
    QCOMPARE(text(jaxSpecText(decision->spec)), QString("P(('x', 'w'), 'y', 'z', None, UNCONSTRAINED)"));
    QCOMPARE(decision->trace.back().verdict, LogicalVerdict::Kept);
    QCOMPARE(idsOf(nnxAxes(namesOf("(a,)"), rulesOf("[(a, x)]"), rulesOf("[(a, y)]"))), QString("MW1183"));
}

void TestLogicalAxes::sameTableTwoAnswers()
{
    // Linen gives an axis to one dimension only; NNX renames both, and the spec then names an axis twice.
    const LogicalNames names = namesOf("(a, b)");
    const LogicalRules rules = rulesOf("[(a, x), (b, x)]");
    QCOMPARE(text(jaxSpecText(valueOf(linenAxes(names, rules)).spec)), QString("P('x', None)"));
    const JaxSpec spec = valueOf(nnxAxes(names, rules)).spec;
    QCOMPARE(text(jaxSpecText(spec)), QString("P('x', 'x')"));
    QCOMPARE(idsOf(onMesh(spec, 2, meshOf("x=2"))), QString("MW1103"));
}

void TestLogicalAxes::stackedLayers()
{
    const LogicalNames names = namesOf("(embed, mlp)");
    QCOMPARE(stackedNames(names, "layers", 0), namesOf("(layers, embed, mlp)"));
    QCOMPARE(stackedNames(names, "layers", 1), namesOf("(embed, layers, mlp)"));
    QCOMPARE(stackedNames(names, "layers", -1), namesOf("(embed, mlp, layers)"));
    QCOMPARE(text(jaxSpecText(
                 valueOf(linenAxes(stackedNames(names, "layers", 0), rulesOf("[(layers, stage), (embed, fsdp), (mlp, tensor)]")))
                     .spec)),
        QString("P('stage', 'fsdp', 'tensor')"));
}

void TestLogicalAxes::meshesWithFewerAxes()
{
    // Rules in the manner of MaxText, for more axes than this mesh has.
    const LogicalRules rules = rulesOf("[['activation_batch', ['data', 'fsdp', 'expert']], ['mlp', ['tensor', "
                                       "'tensor_sequence']], ['embed', ['fsdp', 'sequence']]]");
    const Mesh mesh = meshOf("data=2,fsdp=4,tensor=2");
    JaxSpec spec = valueOf(linenAxes(namesOf("(embed, mlp)"), rules)).spec;
    QCOMPARE(dropAbsentAxes(spec, mesh), (std::vector<std::string>{"sequence", "tensor_sequence"}));
    QCOMPARE(text(jaxSpecText(spec)), QString("P('fsdp', 'tensor')"));
    QVERIFY(dropAbsentAxes(spec, mesh).empty());

    // An axis that the mesh lacks is still used once only.
    JaxSpec taken
        = valueOf(linenAxes(namesOf("(a, b)"), rulesOf("[(a, [expert, data]), (b, [expert, fsdp]), (b, tensor)]"))).spec;
    dropAbsentAxes(taken, mesh);
    QCOMPARE(text(jaxSpecText(taken)), QString("P('data', 'tensor')"));
}

void TestLogicalAxes::builtInLists()
{
    QCOMPARE(findLogicalRuleList("none"), nullptr);
    for (const std::string& name : logicalRuleListNames()) {
        const LogicalRuleList* list = findLogicalRuleList(name);
        QVERIFY(list != nullptr && !list->title.empty() && !list->rules.empty());
        for (const LogicalRule& rule : list->rules) {
            for (const std::string& axis : rule.target.axes)
                QVERIFY2(std::find(list->meshAxes.begin(), list->meshAxes.end(), axis) != list->meshAxes.end(), axis.c_str());
        }
    }
}

void TestLogicalAxes::maxText_data()
{
    QTest::addColumn<QString>("names");
    QTest::addColumn<QString>("full"); // on MaxText's mesh, which has all axes
    QTest::addColumn<QString>("onMesh"); // data=2,fsdp=4,tensor=2
    // By hand from base.yml's rules, in their order.
    QTest::newRow("up projection")
        << "(embed, mlp)" // mlp comes first and takes fsdp_transpose: the second rule of embed
        << "P(('fsdp', 'sequence', 'tensor_transpose', 'context', 'expert'), ('fsdp_transpose', 'tensor', "
           "'tensor_sequence', 'autoregressive'))"
        << "P('fsdp', 'tensor')";
    QTest::newRow("embedding") // vocab takes tensor_transpose: the third rule of embed
        << "(vocab, embed)"
        << "P(('tensor', 'tensor_transpose', 'tensor_sequence', 'autoregressive'), ('fsdp', 'fsdp_transpose', 'sequence', "
           "'context', "
           "'expert'))"
        << "P('tensor', 'fsdp')";
    QTest::newRow("query") << "(embed, q_heads, kv)"
                           << "P(('fsdp', 'fsdp_transpose', 'sequence', 'context', 'expert'), ('tensor', 'tensor_transpose', "
                              "'tensor_sequence', 'autoregressive'), None)"
                           << "P('fsdp', 'tensor', None)";
    QTest::newRow("activation") // the batch takes expert, so that the length's rules with it are refused
        << "(activation_batch, activation_length, activation_embed)"
        << "P(('data', 'fsdp', 'fsdp_transpose', 'expert'), None, ('tensor', 'tensor_transpose'))"
        << "P(('data', 'fsdp'), None, 'tensor')";
    QTest::newRow("norm") << "(norm,)"
                          << "P(('tensor', 'tensor_transpose'),)"
                          << "P('tensor',)";
    QTest::newRow("logits") << "(activation_embed_and_logits_batch, activation_length_no_exp, activation_vocab)"
                            << "P(('data', 'stage', 'fsdp', 'fsdp_transpose', 'expert'), ('sequence', 'context'), ('tensor', "
                               "'tensor_transpose', 'tensor_sequence'))"
                            << "P(('data', 'fsdp'), None, 'tensor')";
    QTest::newRow("stacked")
        << "(embed, layers, mlp)"
        << "P(('fsdp', 'sequence', 'tensor_transpose', 'context', 'expert'), 'stage', ('fsdp_transpose', 'tensor', "
           "'tensor_sequence', 'autoregressive'))"
        << "P('fsdp', None, 'tensor')";
}

void TestLogicalAxes::maxText()
{
    QFETCH(QString, names);
    QFETCH(QString, full);
    QFETCH(QString, onMesh);
    auto decision = linenAxes(namesOf(names.toStdString()), findLogicalRuleList("maxtext")->rules);
    QVERIFY2(decision, described(decision).toUtf8());
    QCOMPARE(text(jaxSpecText(decision->spec)), full);
    dropAbsentAxes(decision->spec, meshOf("data=2,fsdp=4,tensor=2"));
    QCOMPARE(text(jaxSpecText(decision->spec)), onMesh);
}

MESHWRIGHT_TEST(TestLogicalAxes)

} // namespace tst_logical_axes

#include "tst_logical_axes.moc"
