// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/shell_arithmetic.h"
#include "sim/plan/shell_script.h"
#include "tests/test_class.h"

#include <QElapsedTimer>

namespace tst_shell_script {

using namespace meshwright::sim;

/// The commands of a shell script as POSIX and Bash have them, of what is read without running anything.
class TestShellScript : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void commands_data();
    void commands();
    void lines();
    void slurmVariables();
    void arithmetic_data();
    void arithmetic();
    void endsOnAnything_data();
    void endsOnAnything();
};

namespace {

/// A command a line, its words in brackets; of those that are not known as they are written, behind a question mark.
QString textOf(const ShellScript& script)
{
    QStringList lines;
    for (const auto& command : script.commands) {
        QString line;
        for (const ShellWord& word : command)
            line += (word.isKnown ? "[" : "?[") + QString::fromStdString(word.text) + ']';
        lines << line;
    }
    return lines.join('\n');
}

} // namespace

void TestShellScript::commands_data()
{
    QTest::addColumn<QString>("script");
    QTest::addColumn<QString>("commands");

    QTest::newRow("words") << "a  b\tc\n"
                           << "[a][b][c]";
    QTest::newRow("a line that goes on") << "a \\\n  b\\\nc \\\r\n d"
                                         << "[a][bc][d]";
    QTest::newRow("a comment between") << "a b # c\n# d\ne"
                                       << "[a][b]\n[e]";
    QTest::newRow("a comment in an array") << "A=(\n  x # y\n  # z\n  w\n)\nrun ${A[@]}"
                                           << "[run][x][w]";
    QTest::newRow("a number sign in a word") << "a b#c"
                                             << "[a][b#c]";
    QTest::newRow("several on a line") << "a; b && c || d | e & f"
                                       << "[a]\n[b]\n[c]\n[d]\n[e]\n[f]";
    QTest::newRow("a subshell") << "(a b)"
                                << "[a][b]";
    QTest::newRow("quotes") << R"(a 'b $X c' "d \"e\" \$f" g"h i"'j')"
                            << R"([a][b $X c][d "e" $f][gh ij])";
    QTest::newRow("variables") << "X=1\nY=$X${X}2\na $Y \"$Y\" '$Y'"
                               << "[a][112][112][$Y]";
    QTest::newRow("a variable that is split") << "X='a b'\nc $X \"$X\" d${X}e"
                                              << "[c][a][b][a b][da][be]";
    QTest::newRow("assignments before a command") << "X=4 Y=5 run a"
                                                  << "[run][a]";
    QTest::newRow("export") << "export X=4\nlocal Y=5\nrun $X $Y"
                            << "[run][4][5]";
    QTest::newRow("arrays") << "A=(a 'b c' \"d\")\nB=(\"${A[@]}\" e)\nA+=(f)\nrun ${B[@]} ${A[*]}"
                            << "[run][a][b][c][d][e][a][b][c][d][f]";
    QTest::newRow("text that is added") << "X='a'\nX+=\" b\"\nrun $X"
                                        << "[run][a][b]";
    QTest::newRow("defaults") << "A=1\nrun ${A:-2} ${B:-3} ${C:-$A} ${D-4} ${E:=5} x${F:-}"
                              << "[run][1][3][1][4][5][x]";
    QTest::newRow("a default within one") << "run ${A:-${B:-\"c d\"}}"
                                          << "[run][c][d]";
    QTest::newRow("arguments") << "run $1 ${2:-8} $@ \"$#\" x"
                               << "[run]?[$1][8]?[$@]?[\"$#\"][x]";
    QTest::newRow("sums") << "A=8\nrun $((A * 2)) $(( $A*(2+1) )) $((${A}/3)) $((7 % 4 - 1))"
                          << "[run][16][24][2][2]";
    QTest::newRow("what is known only when it runs") << "A=$(date)\nB=\nrun $(date) `date` \"$(cat x)\" $A $B $X a$Y \"${Z[@]}\""
                                                     << "[run]?[$(date)]?[`date`]?[\"$(cat x)\"]?[$A]?[$X][a]?[\"${Z[@]}\"]";
    QTest::newRow("redirections") << "run a > b 2>&1 < c &> d e >> f"
                                  << "[run][a][e]";
    QTest::newRow("a document") << "cat > x <<EOF\nrun it\nEOF\nrun that"
                                << "[cat]\n[run][that]";
    QTest::newRow("an if that holds") << "X=a\nif [ \"$X\" = a ]; then\n  run 1\nelse\n  run 2\nfi\nrun 3"
                                      << "[run][1]\n[run][3]";
    QTest::newRow("an if that does not") << "X=a\nif [[ $X == b ]]; then\n  run 1\nelse\n  run 2\nfi"
                                         << "[run][2]";
    QTest::newRow("elif")
        << "X=2\nif [ $X -eq 1 ]; then run 1\nelif [ $X -gt 1 ]; then run 2\nelif [ $X -gt 0 ]; then run 3\nelse run 4\nfi"
        << "[run][2]";
    QTest::newRow("an if in an if") << "if [ a = b ]; then\n if [ a = a ]; then run 1\n fi\n run 2\nfi\nrun 3"
                                    << "[run][3]";
    QTest::newRow("an empty variable") << "if [ -z \"$X\" ]; then X=4; fi\nif [ -n \"$X\" ]; then run $X; fi"
                                       << "[run][4]";
    QTest::newRow("tests that are joined") << "X=1\nif [ $X = 1 ] && [[ $X = 2 || $X = 1 ]]; then run 1; fi"
                                           << "[run][1]";
    QTest::newRow("a file's test") << "if [ -f x ]; then run 1; else run 2; fi"
                                   << "[run][2]";
    QTest::newRow("not") << "if ! [ a = b ]; then run 1; fi\nif [ ! -z a ]; then run 2; fi"
                         << "[run][1]\n[run][2]";
    QTest::newRow("loops are left out") << "for i in 1 2; do\n  run $i\ndone\nwhile true; do run 3; done\nrun 4"
                                        << "[run][4]";
    QTest::newRow("case is left out") << "case $X in\n  a) run 1 ;;\n  *) run 2 ;;\nesac\nrun 3"
                                      << "[run][3]";
}

void TestShellScript::commands()
{
    QFETCH(const QString, script);
    QFETCH(const QString, commands);
    QCOMPARE(textOf(readShellScript(script.toStdString())), commands);
}

void TestShellScript::lines()
{
    const ShellScript script = readShellScript("# first\nX=\"a\n b\"\nrun $X \\\n  c\n\nrun d");
    QCOMPARE(script.commands.size(), 2U);
    QCOMPARE(script.commands[0].front().line, 4);
    QCOMPARE(script.commands[0].back().line, 5);
    QCOMPARE(script.commands[1].front().line, 7);
}

void TestShellScript::slurmVariables()
{
    const ShellScript script = readShellScript("#SBATCH --nodes=4\n#SBATCH --ntasks-per-node 8\n#SBATCH "
                                               "--gpus-per-node=gpu:8\nrun $((SLURM_NNODES * SLURM_GPUS_ON_NODE))");
    QCOMPARE(textOf(script), "[run][32]");
    QCOMPARE(script.variables.at("SLURM_NTASKS_PER_NODE"), "8");
}

void TestShellScript::arithmetic_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("value");

    QTest::newRow("a number") << " 12 "
                              << "12";
    QTest::newRow("products before sums") << "2+3*4-1"
                                          << "13";
    QTest::newRow("brackets") << "(2+3)*(4-1)"
                              << "15";
    QTest::newRow("whole division") << "7/2*2+7%2"
                                    << "7";
    QTest::newRow("by nothing") << "7/0"
                                << "";
    QTest::newRow("too large") << "9223372036854775807+1"
                               << "";
    QTest::newRow("a product too large") << "4611686018427387904*2"
                                         << "";
    QTest::newRow("a number too large") << "9223372036854775808"
                                        << "";
    QTest::newRow("nothing") << ""
                             << "";
    QTest::newRow("words") << "a+1"
                           << "";
    QTest::newRow("half") << "2+"
                          << "";
    QTest::newRow("open") << "(2"
                          << "";
    QTest::newRow("deep") << QString(1000, '(') + "1" + QString(1000, ')') << "";
}

void TestShellScript::arithmetic()
{
    QFETCH(const QString, text);
    QFETCH(const QString, value);
    const auto found = valueOfArithmetic(text.toStdString());
    QCOMPARE(found ? QString::number(*found) : QString(), value);
}

void TestShellScript::endsOnAnything_data()
{
    QTest::addColumn<QByteArray>("script");

    for (const char* text :
        {"\"", "'", "`", "\\", "$", "${", "$((", "$(", "A=(", "A+=", "<<", "<<E", ">", "&", "if", "if [", "if [[ a ||", "fi",
            "done", "else", "then", "case", ")", "#SBATCH --nodes", "#SBATCH -N", "${A[", "${:-", "${#A}", "a\\", "\"\\", "2>"})
        QTest::newRow(text) << QByteArray(text);
    // Each line would be twice as long as the one before.
    QByteArray doubling = "A=xxxxxxxx\n";
    for (int i = 0; i < 100; ++i)
        doubling += "A=$A$A\n";
    QTest::newRow("doubling") << doubling + "run $A";
    QTest::newRow("defaults in defaults") << QByteArray("${A:-").repeated(100'000);
    QTest::newRow("branches in branches") << QByteArray("if a\n").repeated(100'000);
    QTest::newRow("a long test") << "if [ " + QByteArray("! ").repeated(100'000) + "]\n";
    QTest::newRow("brackets") << "$((" + QByteArray("(").repeated(100'000);
    QTest::newRow("documents") << QByteArray("<<a ").repeated(100'000) + "\n";
}

/// Half a script, and one that is made to be long: it is read, quickly.
void TestShellScript::endsOnAnything()
{
    QFETCH(const QByteArray, script);
    QElapsedTimer timer;
    timer.start();
    const ShellScript read = readShellScript(script.toStdString());
    QVERIFY(read.commands.size() <= static_cast<std::size_t>(script.size()) + 1);
    QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed())));
}

MESHWRIGHT_TEST(TestShellScript)

} // namespace tst_shell_script

#include "tst_shell_script.moc"
