// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/cli/program_process.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

#include <array>

namespace tst_open_verb {

using namespace meshwright;
using tests::Outcome;

/// `open`: pages run as they are, and what no page can do.
class TestOpenVerb : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void pages_data();
    void pages();
    void refused_data();
    void refused();
    void ended_data();
    void ended();
    void exitCodes_data();
    void exitCodes();
    void formats();
    void comparesWithThePage();
    void findings_data();
    void findings();
    void wholeWeights();
    void idleAxis();
    void simulatedTimes();
    void measuredTimes();
    void keepsFilesOfItsFolder();
    void saysOnceWhatAPageIs();
    void notInstalled();
    void programs_data();
    void programs();

private:
    QJsonArray m_found; ///< the cells of the page whose rows are tested
    QString file(const QString& name, const QString& text) const;
    Outcome open(const QStringList& arguments) const;
    QTemporaryDir m_folder;
};

namespace {

QJsonArray cellsOf(const Outcome& outcome)
{
    return QJsonDocument::fromJson(outcome.out).object()["cells"].toArray();
}

QString said(const Outcome& outcome)
{
    return QString::fromUtf8(outcome.out + outcome.err);
}

const QString kStart = R"py(
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ('a', 'b'))
put = lambda x, *spec: jax.device_put(x, NamedSharding(mesh, P(*spec)))
)py";

} // namespace

void TestOpenVerb::initTestCase()
{
    QVERIFY(m_folder.isValid());
    if (said(open({file("page.py", "1")})).contains("MW1562"))
        QSKIP("this kernel cannot confine pages, so they are only read");
}

QString TestOpenVerb::file(const QString& name, const QString& text) const
{
    QFile file(m_folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0)
        qFatal("cannot write %s", qPrintable(name));
    return file.fileName();
}

Outcome TestOpenVerb::open(const QStringList& arguments) const
{
    QProcessEnvironment environment = tests::plainEnvironment();
    environment.insert("XDG_STATE_HOME", m_folder.filePath("state"));
    return tests::runProgram(MESHWRIGHT_PROGRAM, QStringList{"open"} + arguments, {}, environment);
}

void TestOpenVerb::pages_data()
{
    QTest::addColumn<int>("cell");
    QTest::addColumn<QString>("status");
    QTest::addColumn<QString>("output"); // words of it, or of what was raised
    QTest::addColumn<QString>("collectives"); // op axes calls bytes, separated by semicolons; -: any
    // Name, cell of one page after kStart, status, output, collectives.
    const std::vector<std::array<const char*, 5>> rows = {
        {"value of the last line", "jnp.arange(6).reshape(2, 3) * 2", "ran",
            "Array([[ 0,  2,  4],\n       [ 6,  8, 10]], dtype=int32)", ""},
        {"semicolon", "jnp.ones(3);", "ran", "", ""},
        {"layout", "x = put(jnp.ones((8, 4)), 'a', 'b')\nprint(x.sharding.spec, x.addressable_shards[0].data.shape)", "ran",
            "PartitionSpec('a', 'b') (2, 2)", ""},
        {"drawing", "jax.debug.visualize_array_sharding(put(jnp.ones((8, 4)), 'b'))", "ran", "CPU 0,2,4,6", ""},
        {"product of sharded operands", "print(float((put(jnp.ones((8, 4)), None, 'b') @ put(jnp.ones((4, 2)), 'b')).sum()))",
            "ran", "64.0", "all_reduce b 1 64"},
        {"jit and grad",
            "f = jax.jit(jax.value_and_grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))))\n"
            "v, g = f(put(jnp.zeros((4, 2))), put(jnp.ones((8, 4)), 'a'))\nprint(v, g.shape, float(g[0, 0]))",
            "ran", "0.0 (4, 2) 8.0", "all_reduce a 1 4;all_reduce a 1 32"},
        {"shard_map",
            "from jax.experimental.shard_map import shard_map\n"
            "f = shard_map(lambda x: jax.lax.psum(x, 'a'), mesh=mesh, in_specs=P('a'), out_specs=P())\n"
            "print(f(jnp.arange(8.0)))",
            "ran", "[12. 16.]", "all_reduce a 1 8"},
        {"positional sharding of more dimensions",
            "from jax.sharding import PositionalSharding\n"
            "s = PositionalSharding(jax.devices()).reshape(4, 2).replicate(0)\n"
            "print(jax.device_put(jnp.ones(8), s).addressable_shards[0].data.shape)",
            "ran", "(4,)", ""},
        {"mesh of the first devices", "print(jax.make_mesh((2,), ('i',)).device_ids)", "ran", "[0 1]", ""},
        {"result placed by out_sharding",
            "with jax.set_mesh(mesh): print(jnp.dot(jnp.ones((8, 4)), jnp.ones((4, 4)), out_sharding=P('a')).sharding.spec)",
            "ran", "PartitionSpec('a', None)", "-"},
        {"index behind the end", "print(jnp.arange(10)[11], jnp.arange(10)[-12])", "ran", "9 0", ""},
        {"derivative along a direction", "print(jax.jvp(jnp.sin, (0.0,), (2.0,)))", "ran", "2.", ""},
        {"function jitted twice",
            "n = []\ndef g(x):\n    n.append(1)\n    return x\njax.jit(g)(1.0), jax.jit(g)(2.0)\nprint('traced', len(n))", "ran",
            "traced 1", ""},
        {"import that is missing", "import of_nowhere\nfrom functools import partial, of_no_name\nn = 7", "raised",
            "No module named 'of_nowhere'", ""},
        {"what stands behind it", "print(partial(int, n)())", "ran", "7", ""},
        {"import from the future", "from __future__ import annotations", "ran", "", ""},
        {"holds for later cells", "class A: x: of_nobody\nprint(A.__annotations__)", "ran", "{'x': 'of_nobody'}", ""},
        {"packages beside JAX",
            "import einops, ml_collections\nfrom etils import epath\n"
            "print(einops.rearrange(jnp.ones((2, 3, 4)), 'b h w -> b (h w)').shape, ml_collections.ConfigDict({'a': {'b': "
            "3}}).a.b)\n"
            "print(epath.Path('of/x').name)",
            "ran", "(2, 12) 3\nx", ""},
        {"a program of absl",
            "from absl import app, flags\nsteps = flags.DEFINE_integer('steps', 3, 'how many')\n"
            "def main(argv):\n    print(len(argv), steps.value + flags.FLAGS.steps)\nif __name__ == '__main__':\n    "
            "app.run(main)",
            "ran", "1 6", ""},
        {"scalar", "jnp.sqrt(2.0)", "ran", "Array(1.4142135, dtype=float32, weak_type=True)", ""},
        {"assignment", "jnp.ones(3)[0] = 1", "raised", "immutable. Instead of ``x[idx] = y``", ""},
        {"other devices", "a = jax.device_put(jnp.ones(4), jax.devices()[0])\na + jax.device_put(jnp.ones(4), jax.devices()[1])",
            "raised", "Received incompatible devices", ""},
        {"mesh of too few dimensions", "Mesh(jax.devices(), ('a', 'b'))", "raised", "devices.ndim == 1", ""},
        {"axis that the mesh lacks", "NamedSharding(mesh, P('z'))", "raised", "z", ""},
        {"size that does not divide", "put(jnp.ones(6), 'a')", "raised", "6", ""},
        {"error in the page", "x = 1\nx +", "raised", "SyntaxError", ""},
        {"the page leaves", "import sys\nsys.exit(3)", "raised", "SystemExit", ""},
        {"what a cell awaits",
            "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\ntask = asyncio.create_task(f(3))\n"
            "print(await task, await asyncio.to_thread(lambda: 4), [await f(i) for i in range(2)])",
            "ran", "3 4 [0, 1]", ""},
        {"and runs itself", "asyncio.run(f(6)) * 7", "ran", "42", ""},
        {"a session that shows an error",
            ">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n>>> 6 * 7\n42", "ran",
            "Traceback (most recent call last):\nZeroDivisionError: division by zero\n42", ""},
        {"a session that shows another",
            ">>> 1 / nowhere\nTraceback (most recent call last):\nZeroDivisionError: division by zero", "raised", "NameError",
            ""},
        {"a session that shows none", ">>> 1 / 0\n1\n>>> 6 * 7\n42", "raised", "ZeroDivisionError", ""},
        {"a dict whose keys have no order", "own = {int: jnp.ones(2), str: jnp.ones(3)}\nprint(len(own))", "ran", "2", ""},
        {"a compiled program and other types",
            "c = jax.jit(lambda n, x: n * x, static_argnums=0).lower(3, "
            "jnp.ones(2)).compile()\nprint(c(jnp.arange(2.0)))\nc(jnp.ones(3))",
            "raised", "Argument 'x' compiled with float32[2] and called with float32[3]", ""},
        {"a callback of one device",
            "jax.shard_map(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct.like(x), x), mesh=mesh,\n"
            "    in_specs=P('a'), out_specs=P('a'))(jnp.ones(8))",
            "raised", "call it outside, with the whole arrays", ""},
        {"a variable that jit changes", "from flax import nnx\nnnx.Variable(jnp.zeros(()), hijax=True)", "raised",
            "use jax.new_ref", ""},
        {"value too large", "print(np.asarray(jnp.ones((30000, 30000)) @ jnp.ones((30000, 30000))))", "raised", "MW1560", ""},
        {"op unknown to the engine", "import _meshwright\n_meshwright.Trace('f').add('no_such_op', [], {})", "raised", "MW1561",
            ""},
        {"one folder for temporary files", R"py(
import os, pathlib
import orbax.checkpoint as ocp
ocp.StandardCheckpointer().save('/tmp/of-a-page/one', {'a': jnp.ones(2)})
os.makedirs('/tmp/of-a-page/two')
np.save('/tmp/of-a-page/two/three.npy', np.arange(3))
os.rename('/tmp/of-a-page/two', '/tmp/of-a-page/four')
print(sorted(os.listdir('/tmp/of-a-page')), pathlib.Path('/tmp/of-a-page/four/three.npy').exists(), np.load('/tmp/of-a-page/four/three.npy'))
try:
    open('/tmp/of-a-page/none')
except OSError as error:
    print(error)
)py",
            "ran", "['four', 'one'] True [0 1 2]\n[Errno 2] No such file or directory: '/tmp/of-a-page/none'", ""},
        {"modules of variables", R"py(
from flax import nnx
import optax
class Net(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.Linear(4, 8, kernel_init=nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, 'b')), rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros(()))
    def __call__(self, x):
        self.calls.value += 1
        return self.one(x)
@nnx.jit
def made():
    net = Net(nnx.Rngs(0))
    state = nnx.state(net)
    nnx.update(net, jax.lax.with_sharding_constraint(state, nnx.get_partition_spec(state)))
    return net
with mesh:
    net = made()
optimizer = nnx.Optimizer(net, optax.adam(1e-1))
@nnx.jit
def step(net, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda n: jnp.mean((n(x) - 1) ** 2))(net)
    optimizer.update(grads)
    return loss
losses = [float(step(net, optimizer, put(jnp.ones((8, 4)), 'a'))) for _ in range(3)]
print(net.one.kernel.value.sharding.spec, losses == sorted(losses, reverse=True), int(net.calls.value), int(optimizer.step.value))
definition, state = nnx.split(net)
print(bool(jnp.allclose(nnx.merge(definition, state)(jnp.ones((1, 4))), net(jnp.ones((1, 4))))))
)py",
            "ran", "PartitionSpec(None, 'b') True 3 3\nTrue", "-"},
        {"checkpoint below the system's temporary files", R"py(
import orbax.checkpoint as ocp
path = ocp.test_utils.erase_and_create_empty('/tmp/checkpoints-of-a-page/')
saver = ocp.StandardCheckpointer()
saver.save(path / 'one', {'w': jnp.arange(8.0)})
like = {'w': jax.ShapeDtypeStruct((8,), jnp.float32, sharding=NamedSharding(mesh, P('a')))}
back = saver.restore(path / 'one', like)
print(back['w'].sharding.spec, np.asarray(back['w'])[-1])
)py",
            "ran", "PartitionSpec('a',) 7.0", ""},
    };
    QString page = "# %%" + kStart;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        page += QString("# %%\n%1\n").arg(rows[i][1]);
        QTest::newRow(rows[i][0]) << static_cast<int>(i) + 1 << QString(rows[i][2]) << QString(rows[i][3]) << QString(rows[i][4]);
    }
    const Outcome outcome = open({file("page.py", page), "--format", "json"});
    QCOMPARE(tests::errorsAgainst("page-1.json", outcome.out), QStringList());
    m_found = cellsOf(outcome);
}

void TestOpenVerb::pages()
{
    QFETCH(int, cell);
    QFETCH(QString, status);
    QFETCH(QString, output);
    QFETCH(QString, collectives);
    const QJsonObject found = m_found[cell].toObject();
    const QJsonObject error = found["error"].toObject();
    QStringList words = {found["output"].toString(), error["class"].toString(), error["message"].toString()};
    for (const auto& note : error["notes"].toArray())
        words << note.toString();
    QVERIFY2(found["status"].toString() == status && words.join('\n').contains(output), QJsonDocument(found).toJson());
    QStringList rows;
    const QJsonArray collectiveRows = found["collectives"].toArray();
    for (const QJsonValue row : collectiveRows)
        rows << QString("%1 %2 %3 %4")
                    .arg(row["op"].toString(), row["axes"].toString())
                    .arg(row["count"].toInt())
                    .arg(row["bytes_per_device"].toInt());
    if (collectives != "-")
        QCOMPARE(rows.join(';'), collectives);
}

/// What the kernel refuses, cell by cell of one page, and then goes on.
void TestOpenVerb::refused_data()
{
    QTest::addColumn<int>("cell");
    QTest::addColumn<QString>("words");
    const std::vector<std::array<const char*, 3>> rows = {
        {"fork bomb", "import os\nwhile True: os.fork()", "Operation not permitted"},
        {"another program", "import subprocess\nsubprocess.run(['/bin/true'])", "PermissionError"},
        {"array of a TB", "import numpy\nnumpy.ones(1 << 37)", "MemoryError"},
        {"jax array of a TB", "import jax.numpy as jnp\nprint(jnp.ones((1 << 19, 1 << 19)))", "MW1521"},
        {"file outside", "print(open('/etc/passwd').read())", "Permission denied"},
        {"writing outside", "open('/var/tmp/of-a-page', 'w')", "Permission denied"},
        {"socket", "import socket\nsocket.socket()", "Operation not permitted"},
        {"signal to its parent", "import os\nos.kill(os.getppid(), 9)", "Operation not permitted"},
        {"more memory", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 50, 1 << 50))", "raised"},
        {"file of a PB", "open('big', 'wb').truncate(1 << 50)", "File too large"},
        {"endless output", "for _ in range(100000): print('x' * 100)", "[cut]"},
        {"confined again without descriptors",
            "import os, _meshwright\ntaken = []\ntry:\n    while True: taken.append(os.dup(0))\nexcept OSError: pass\n"
            "try:\n    _meshwright.confine([], [])\nfinally:\n    for one in taken: os.close(one)",
            "MW1562"},
        {"goes on", "print('aft' + 'er')", "after"},
    };
    QString page;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        page += QString("# %%\n%1\n").arg(rows[i][1]);
        QTest::newRow(rows[i][0]) << static_cast<int>(i) << QString(rows[i][2]);
    }
    m_found = cellsOf(open({file("page.py", page), "--flops", "1e15", "--format", "json"}));
}

void TestOpenVerb::refused()
{
    QFETCH(int, cell);
    QFETCH(QString, words);
    const QByteArray found = QJsonDocument(m_found[cell].toObject()).toJson();
    QVERIFY2(found.contains(words.toUtf8()), found);
}

/// What ends a page's process loses nothing of the cells before.
void TestOpenVerb::ended_data()
{
    QTest::addColumn<QString>("cell");
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<QString>("words");
    QTest::newRow("endless loop") << "while True: pass" << QStringList{"--timeout", "2"} << "MW1566";
    QTest::newRow("its process ends") << "import os\nos._exit(3)" << QStringList() << "MW1567";
    QTest::newRow("its process fails") << "import os\nos.write(2, b'a fault')\nos.abort()" << QStringList()
                                       << "signal 6 (Aborted): a fault\n  fix: leave the cell out with --cells\n";
}

void TestOpenVerb::ended()
{
    QFETCH(QString, cell);
    QFETCH(QStringList, options);
    QFETCH(QString, words);
    const QString page = file("page.py", "# %%\nprint('bef' + 'ore')\n# %%\n" + cell + "\n# %%\nprint('aft' + 'er')\n");
    const Outcome outcome = open(QStringList{page} + options);
    QVERIFY2(outcome.code == 6 && said(outcome).contains(words), qPrintable(said(outcome)));
    QVERIFY(said(outcome).contains("before") && !said(outcome).contains("after"));
}

void TestOpenVerb::exitCodes_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("words");

    QTest::newRow("runs") << "a.py"
                          << "x = 1" << QStringList{"--check"} << 0 << "1 of 1 cells ran";
    QTest::newRow("raises") << "a.py"
                            << "x = y" << QStringList() << 0 << "NameError: name 'y' is not defined in line 1 of the cell";
    QTest::newRow("raises, checked") << "a.py"
                                     << "x = y" << QStringList{"--check"} << 1 << "NameError";
    QTest::newRow("no cells") << "a.md"
                              << "words" << QStringList() << 3 << "MW1563";
    QTest::newRow("no notebook") << "a.ipynb"
                                 << "words" << QStringList() << 3 << "MW1564";
    QTest::newRow("cells that are not there") << "a.py"
                                              << "x = 1" << QStringList{"--cells", "1-2"} << 2 << "the page has cells 1 to 1";
    QTest::newRow("cells that are no numbers") << "a.py"
                                               << "x = 1" << QStringList{"--cells", "one"} << 2 << "MW1903";
    QTest::newRow("one cell") << "a.py"
                              << "# %%\nx = 1\n# %%\nx + 1" << QStringList{"--cells", "2"} << 0 << "1 not run";
    QTest::newRow("unknown machine") << "a.py"
                                     << "x = 1" << QStringList{"--hw", "z99"} << 3 << "MW1701";
    QTest::newRow("machine") << "a.py"
                             << "import jax\nprint(jax.devices()[3])" << QStringList{"--hw", "v3-8"} << 0 << "TPU_3";
    QTest::newRow("no folder") << "a.py"
                               << "x = 1" << QStringList{"--folder", "/nowhere"} << 3 << "MW1001";
    QTest::newRow("unknown ending") << "a.py"
                                    << "x = 1" << QStringList{"-o", "out.xyz"} << 2 << "MW1903";
    QTest::newRow("many arrays") << "a.py"
                                 << "import jax.numpy as jnp\nw = [jnp.ones(i) for i in range(20)]" << QStringList() << 0
                                 << "8 more arrays are not listed";
    QTest::newRow("keys") << "a.py"
                          << "import jax\nk = jax.random.split(jax.random.key(0), 3)" << QStringList() << 0
                          << "k      key<fry>[3]  on device 0          24 B";
    QTest::newRow("no time") << "a.py"
                             << "x = 1" << QStringList{"--timeout", "0"} << 2 << "above 0";
}

void TestOpenVerb::exitCodes()
{
    QFETCH(QString, name);
    QFETCH(QString, text);
    QFETCH(QStringList, options);
    QFETCH(int, code);
    QFETCH(QString, words);
    const Outcome outcome = open(QStringList{file(name, text)} + options);
    QVERIFY2(outcome.code == code && said(outcome).contains(words), qPrintable(QString::number(outcome.code) + said(outcome)));
}

void TestOpenVerb::formats()
{
    const QString page = file("page.md", "```python\nprint('<b>' + 'bold')\n```\n```python\n1 / 0\n```\n");
    const QString html = m_folder.filePath("page.html");
    QCOMPARE(open({page, "-o", html}).code, 0);
    QFile written(html);
    QVERIFY(written.open(QIODevice::ReadOnly));
    const QByteArray text = written.readAll();
    QVERIFY2(text.contains("&lt;b&gt;bold") && !text.contains("<b>") && text.contains("ZeroDivisionError"), text);

    // A notebook that was written is a page again, whose outputs are those that it says.
    const QString notebook = m_folder.filePath("page.ipynb");
    QCOMPARE(open({page, "-o", notebook}).code, 0);
    const Outcome again = open({notebook, "--format", "json"});
    QCOMPARE(cellsOf(again).at(0)["agrees"].toString(), QString("equal"));
    QCOMPARE(cellsOf(again).at(1)["status"].toString(), QString("raised"));

    // Warnings are shown and not compared; a cell with lines that are not run, and would print, is not compared.
    const QString kept = file("kept.ipynb",
        R"({"cells": [
        {"cell_type": "code", "source": "import sys\nprint('a'); print('w', file=sys.stderr); print('b') ", "outputs":
         [{"output_type": "stream", "name": "stdout", "text": "a\nb\n"}]},
        {"cell_type": "code", "source": "!pip install jax", "outputs": [{"output_type": "stream", "name": "stdout", "text": "Done"}]},
        {"cell_type": "code", "source": "%matplotlib inline\n1", "outputs": [{"output_type": "execute_result", "data": {"text/plain": "2"}}]}]})");
    const QJsonArray cells = cellsOf(open({kept, "--format", "json"}));
    QCOMPARE(cells.at(0)["output"].toString(), QString("a\nw\nb\n"));
    QCOMPARE(cells.at(0)["agrees"].toString(), QString("equal"));
    QCOMPARE(cells.at(1)["agrees"].toString(), QString("none"));
    QCOMPARE(cells.at(2)["agrees"].toString(), QString("different"));
}

void TestOpenVerb::comparesWithThePage()
{
    const QString page
        = file("page.txt", "In [1]:\nprint(0.1 + 0.2)\nOut[1]:\n0.30001\nIn [2]:\n2\nOut[2]:\n3\nIn [3]:\n'a'\nOut[3]:\n'a'\n");
    const Outcome outcome = open({page, "--check"});
    QCOMPARE(outcome.code, 1);
    QVERIFY2(said(outcome).contains("outputs: 1 equal, 1 close, 1 different"), qPrintable(said(outcome)));
    // Random numbers are of the time that the page printed them.
    const QString draws = "In [1]:\nimport jax\nprint(jax.random.normal(jax.random.key(0), (5, 3))[0])\nOut[1]:\n";
    for (const char* numbers : {"[0.08482574 1.9097648  0.29561743]", "[ 1.622642    2.0252647  -0.43359444]"}) {
        const Outcome drawn = open({file("draws.txt",
            draws + numbers + "\nIn [2]:\nprint(jax.random.normal(jax.random.key(0), (4,)))\nOut[2]:\n"
                + (numbers[1] == '0' ? "[ 1.8160863  -0.75488514  0.33988908 -0.53483534]"
                                     : "[ 1.622642    2.0252647  -0.43359444 -0.07861735]\n"))});
        QVERIFY2(said(drawn).contains("outputs: 2 equal"), qPrintable(said(drawn)));
    }
}

/// What is wrong with each cell of one page, and what is not: cells without fault have none.
void TestOpenVerb::findings_data()
{
    QTest::addColumn<int>("cell");
    QTest::addColumn<QString>("words"); // empty: nothing is wrong
    const std::vector<std::array<const char*, 4>> rows = {
        {"start",
            "import jax, numpy as np, jax.numpy as jnp\nfrom jax import random\n"
            "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\nmesh = jax.make_mesh((4, 2), ('data', 'model'))",
            "", ""},
        {"list of devices", "Mesh(jax.devices(), ('data', 'model'))", "make_mesh((4, 2), ('data', 'model'))", ""},
        {"bare spec", "jax.device_put(jnp.ones(8), P('data'))", "NamedSharding(mesh, P('data',))", ""},
        {"spec of labels", "jax.device_put(jnp.ones(8), NamedSharding(mesh, P('data', 'model')))", "MW1101", ""},
        {"name that the mesh lacks", "NamedSharding(mesh, P('dat'))", "did you mean \"data\"", ""},
        {"size", "jax.device_put(jnp.ones(6), NamedSharding(mesh, P('data')))", "make it 4 or 8", ""},
        {"same key", "key = random.key(0)\na = random.normal(key, (4, 8))\nb = random.normal(key, (8, 4))", "MW1571", ""},
        {"key that is renewed", "a = random.normal(key, (4, 8))\nkey, other = random.split(key)\nb = random.normal(key, (8, 4))",
            "", ""},
        {"key that is shown", "print(random.normal(other, (2,)))\nprint(random.normal(other, (2,)))", "", ""},
        {"older name", "from jax.experimental.maps import Mesh as M\nfrom jax.sharding import PositionalSharding", "MW1570", ""},
        {"older name again", "s = PositionalSharding(jax.devices())", "", ""},
        {"no array under jit", "class Net:\n    pass\njax.jit(lambda net: 1)(Net())", "static_argnums", ""},
        {"lost change",
            "from flax import nnx\nimport optax\nclass Net(nnx.Module):\n    def __init__(self):\n        self.w = "
            "nnx.Param(jnp.ones(4))\n"
            "net = Net()\noptimizer = nnx.Optimizer(net, optax.adam(0.1), wrt=nnx.Param)\n@jax.jit\ndef step(net, optimizer):\n"
            "    optimizer.update(net, jax.grad(lambda n: jnp.sum(n.w.value))(net))\n    return net\nnet = step(net, optimizer)",
            "MW1576", ""},
        {"change that is returned",
            "@jax.jit\ndef step(net, optimizer):\n    optimizer.update(net, jax.grad(lambda n: jnp.sum(n.w.value))(net))\n"
            "    return net, optimizer\nnet, optimizer = step(net, optimizer)",
            "", ""},
        {"change under nnx.jit",
            "@nnx.jit\ndef step(net, optimizer):\n    optimizer.update(net, nnx.grad(lambda n: jnp.sum(n.w.value))(net))\n"
            "step(net, optimizer)",
            "", ""},
        {"placed otherwise",
            "x = jax.device_put(jnp.ones(8), NamedSharding(mesh, P('data')))\n"
            "jax.jit(lambda x: x + 1, in_shardings=NamedSharding(mesh, P()))(x)",
            "write the sharding that the argument has", ""},
        {"no value", "nowhere(x)", "MW1572", ""},
        {"value of a cell that raised", "made = 1 / 0", "ZeroDivisionError", ""},
        {"which raised", "made + 1", "made is made in cell 18, which raised", ""},
        {"another collective", "y = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P(None, 'data')))\n(y @ y.T).sum()",
            "MW1574", "Each sum is a reduce-scatter over data."},
        {"the named collective", "(y @ y.T).sum()", "", "Each sum is an all-reduce over data."},
        {"one of two",
            "jax.jit(jax.shard_map(lambda y: jax.lax.psum(jax.lax.ppermute(y, 'data', [(0, 1)]), 'data'), mesh=mesh, "
            "in_specs=P(None, 'data'), out_specs=P()))(y);",
            "", "It is an all-gather over data."},
        {"weights split, batch whole",
            "w = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P('data')))\nwhole = jax.device_put(jnp.ones((8, 64)), "
            "NamedSharding(mesh, P()))\n@jax.jit\ndef layer(w, x):\n    w = jax.lax.with_sharding_constraint(w, "
            "NamedSharding(mesh, P()))\n"
            "    return x @ w\nlayer(w, whole);",
            "MW1577", ""},
        {"weights and batch split", "layer(w, jax.device_put(whole, NamedSharding(mesh, P('data'))));", "", ""},
        {"left out",
            "import matplotlib.pyplot as plt\nfrom tqdm import tqdm\nfigure, axes = plt.subplots()\n"
            "for i in tqdm(range(2)): axes.plot(i)\nassert i == 1",
            "", ""},
        {"gathered by a constraint and taken apart",
            "at = lambda *spec: NamedSharding(mesh, P(*spec))\none = jax.device_put(jnp.ones((64, 64)), at(None, 'model'))\n"
            "two = jax.device_put(jnp.ones((64, 64)), at('model', None))\n@jax.jit\ndef pair(x, one, two):\n"
            "    h = jax.lax.with_sharding_constraint(x @ one, at())\n    return jax.nn.relu(h) @ two\npair(whole, one, two);",
            "MW1578", ""},
        {"kept split", "jax.jit(lambda x, one, two: jax.nn.relu(x @ one) @ two)(whole, one, two);", "", ""},
        {"gathered by out_shardings and taken apart",
            "first = jax.jit(lambda x, one: x @ one, out_shardings=at())\nsecond = jax.jit(lambda h, two: h @ two)\n"
            "second(first(whole, one), two);",
            "takes it as h wants it split over model", ""},
        {"gathered to be printed", "first(whole, one) + 1;", "", ""},
        {"results unpacked wrong", "def both(x):\n    return x, 2 * x\na, b, c = both(1)", "MW1579", ""},
        {"results unpacked right", "a, b = both(1)", "", ""},
        {"memory of the weights", "2  # 400 MB / 8 = 50 MB per device", "MW1580", "Memory of the model:"},
        {"memory of all", "2  # 200 MB per device, with gradients and moments", "", "Memory of the model:"},
        {"memory that a model needs", "2", "MW1580", "The model needs 28 GB / 8 = 3.5 GB per device."},
        {"a function that the words behind it deny", "2", "jax.lax.scan does not exist: it does", ""},
        {"an older name that is gone, by the words behind it", "2", "", "`jax.lax.scan` does not exist; use a loop."},
        {"words about an older name", "2", "", "`jax.tree_map` does not exist any more."},
        {"lost change of a dict",
            "@jax.jit\ndef change(state, x):\n    state['x'] = x + 1\n    return x\nchange({'x': 1.0}, 2.0);", "MW1576", ""},
        {"change of a state that the function makes itself",
            "@jax.jit\ndef renew(state, x):\n    state['x'] = x\n    return {'x': state['x'] + 1.0}, x\nrenew({'x': 1.0}, 2.0);",
            "", ""},
        {"progress that is taken apart",
            "steps = tqdm(range(3))\nfor i in steps: steps.set_postfix_str('step')\nfrom tqdm import trange\n"
            "with trange(2) as bar:\n    for j in bar: bar.update()\nassert (i, j, len(steps)) == (2, 1, 3)",
            "", ""},
        {"import of the future behind others", "import sys\nfrom __future__ import annotations\nsys.path is not None;", "", ""},
        {"name that is said to be none", "1", "MW1575", ""},
    };
    QString page;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        page += QString("\n%1\n\n```python\n%2\n```\n").arg(rows[i][3], rows[i][1]);
        QTest::newRow(rows[i][0]) << static_cast<int>(i) << QString(rows[i][2]);
    }
    m_found
        = cellsOf(open({file("page.md", page + "\nIt uses non-existent modules like `jax.sharding`.\n"), "--format", "json"}));
}

void TestOpenVerb::findings()
{
    QFETCH(int, cell);
    QFETCH(QString, words);
    const QJsonObject found = m_found[cell].toObject();
    const QString wrong = QJsonDocument({{"error", found["error"]}, {"findings", found["findings"]}}).toJson();
    QCOMPARE(found["findings"].toArray().isEmpty() && found["error"].isNull(), words.isEmpty());
    QVERIFY2(QString(wrong).replace("\\\"", "\"").contains(words), qPrintable(wrong));
}

/// A page that says model parallelism and splits no weight; one that splits one, and one that says nothing of the kind.
void TestOpenVerb::wholeWeights()
{
    const QString start = "```python" + kStart
        + "mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ('data', "
          "'model'))\n"
          "x = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P('data', 'model')))\nw = jnp.ones((64, 64))\n"
          "forward = jax.jit(lambda params, x: x @ params['w'])\n```\n\nWith %1 each device has a part of the model.\n\n"
          "```python\nforward({'w': %2}, x);\n```\n";
    const QString split = "jax.device_put(w, NamedSharding(mesh, P(None, 'model')))";
    for (const auto& [words, weight, isFound] :
        {std::tuple(QString("model parallelism"), QString("w"), true), std::tuple(QString("model parallelism"), split, false),
            std::tuple(QString("data parallelism"), QString("w"), false)}) {
        const Outcome outcome = open({file("page.md", start.arg(words, weight)), "--check"});
        QVERIFY2(said(outcome).contains(
                     "MW1581 the page says model parallelism, and splits no weight: each device has all of params['w']")
                == isFound,
            qPrintable(said(outcome)));
        QCOMPARE(outcome.code, isFound ? 1 : 0);
    }
}

void TestOpenVerb::idleAxis()
{
    const QString start = kStart + "x = put(jnp.ones((64, 64)), 'a')\n";
    for (const auto& [cell, isIdle] :
        {std::pair("x @ x", true), std::pair("x @ put(x, None, 'b')", false), std::pair("x.shape", false)}) {
        const Outcome outcome = open({file("page.py", start + cell), "--check"});
        QVERIFY2(said(outcome).contains("MW1573 no array of the page is split over b") == isIdle, qPrintable(said(outcome)));
        QCOMPARE(outcome.code, isIdle ? 1 : 0);
    }
}

/// On the machine of --hw a product over eight devices takes less time than on one; without it nothing is said of times there.
void TestOpenVerb::simulatedTimes()
{
    const QString page = file("page.py",
        "# %%" + kStart
            + "x = jnp.ones((8192, 8192))\ny = put(x, 'a')\nz = put(x, None, 'b')\n# %%\nx @ x;\n"
              "# %%\ny @ z;\n# %%\nfor _ in range(3): y @ z\n# %%\n1 + 1\n# %%\n%timeit -n 5 y @ z\n# %%\n%time w = y @ "
              "z\nw.shape\n");
    const QJsonArray cells = cellsOf(open({page, "--hw", "v3-8", "--format", "json"}));
    // What %timeit says is the same time, and whose it is.
    const QString timed = cells[5].toObject()["output"].toString();
    QVERIFY2(timed.endsWith("ms per loop (simulated on v3-8)\n"), qPrintable(timed));
    const double simulated = cells[5].toObject()["simulated_s"].toDouble();
    QVERIFY(std::abs(timed.section(' ', 0, 0).toDouble() / 1e3 - simulated) < 0.01 * simulated); // three digits
    QVERIFY(cells[6].toObject()["output"].toString().contains("Wall time: "));
    const double alone = cells[1].toObject()["simulated_s"].toDouble();
    const double together = cells[2].toObject()["simulated_s"].toDouble();
    // 2 * 8192^3 FLOPs at the peak of a core, 61.5e12 FLOP/s, take 17.9 ms.
    QVERIFY2(alone > 17.9e-3 && alone < 25e-3, qPrintable(QString::number(alone)));
    QVERIFY2(together > alone / 8 && together < alone / 4, qPrintable(QString::number(together)));
    QCOMPARE(cells[3].toObject()["simulated_s"].toDouble(), 3 * together);
    QVERIFY(cells[4].toObject()["simulated_s"].isNull());
    QVERIFY(cellsOf(open({page, "--format", "json"}))[1].toObject()["simulated_s"].isNull());
}

/// With --measure the line is IPython's, of what was measured here.
void TestOpenVerb::measuredTimes()
{
    const QString page = file("page.py", "# %%" + kStart + "x = put(jnp.ones((64, 64)), 'a')\n# %%\n%timeit -n 3 -r 2 x @ x\n");
    const QString timed = cellsOf(open({page, "--measure", "--format", "json"}))[1].toObject()["output"].toString();
    const QRegularExpression line(
        R"(^[\d.]+ (s|ms|µs) ± [\d.]+ (s|ms|µs|ns) per loop \(mean ± std\. dev\. of 2 runs, 3 loops each\)\n$)");
    QVERIFY2(line.match(timed).hasMatch(), qPrintable(timed));
}

void TestOpenVerb::keepsFilesOfItsFolder()
{
    const QString page = file("page.py", "open('made.txt', 'w').write('of the page')");
    QVERIFY(QDir(m_folder.path()).mkpath("own"));
    QCOMPARE(open({page, "--check", "--folder", m_folder.filePath("own")}).code, 0);
    QVERIFY(QFile::exists(m_folder.filePath("own/made.txt")));
    QCOMPARE(open({page, "--check"}).code, 0); // in a folder that is gone
    QVERIFY(!QFile::exists("made.txt"));
    file("own/beside_it.py", "value = 42");
    const QString importing = file("own/page.py", "import beside_it\nprint(beside_it.value)");
    QCOMPARE(
        cellsOf(open({importing, "--format", "json", "--folder", m_folder.filePath("own")}))[0].toObject()["output"], "42\n");
    QCOMPARE(open({importing, "--check"}).code, 1); // which may not read what lies beside it
}

void TestOpenVerb::saysOnceWhatAPageIs()
{
    const QString page = file("page.py", "x = 'a page that nobody has seen'");
    QVERIFY(said(open({page})).contains("a page runs code"));
    QVERIFY(said(open({page, "--trust"})).contains("a page runs code"));
    QVERIFY(!said(open({page})).contains("a page runs code"));
    QVERIFY(said(open({file("page.py", "x = 'another'")})).contains("a page runs code"));
}

void TestOpenVerb::notInstalled()
{
    QVERIFY(QDir(m_folder.path()).mkpath("empty/resources"));
    QVERIFY(QFile::copy(
        QString(MESHWRIGHT_SOURCE_DIR) + "/resources/problems.yaml", m_folder.filePath("empty/resources/problems.yaml")));
    QProcessEnvironment environment = tests::plainEnvironment();
    environment.insert("MESHWRIGHT_RESOURCES", m_folder.filePath("empty/resources"));
    const Outcome outcome = tests::runProgram(MESHWRIGHT_PROGRAM, {"open", file("page.py", "x = 1")}, {}, environment);
    QCOMPARE(outcome.code, 6);
    QVERIFY2(outcome.err.contains("MW1565"), outcome.err);
}

/// Random expressions beside NumPy, gradients beside finite differences, vmap beside loops, on eight devices; the package beside the program.
void TestOpenVerb::programs_data()
{
    QTest::addColumn<QString>("script");
    QTest::addColumn<QStringList>("counts");
    QTest::newRow("expressions and gradients") << "eager_expressions.py" << QStringList{"300", "200"};
    QTest::newRow("vmap") << "batched_functions.py" << QStringList();
    QTest::newRow("loops and windows") << "loops_and_windows.py" << QStringList();
    QTest::newRow("array functions") << "array_functions.py" << QStringList();
    QTest::newRow("rules of calls") << "golden_errors.py" << QStringList();
    QTest::newRow("rules of functions") << "function_rules.py" << QStringList();
    QTest::newRow("functions as classes, and checked ones") << "function_classes.py" << QStringList();
    QTest::newRow("mutable arrays") << "mutable_arrays.py" << QStringList();
    QTest::newRow("rules of objects") << "object_rules.py" << QStringList();
    QTest::newRow("scientific functions") << "scientific_functions.py" << QStringList();
    QTest::newRow("functions of packages") << "package_functions.py" << QStringList();
    QTest::newRow("modules of linen") << "linen_modules.py" << QStringList();
    QTest::newRow("named parameters") << "named_parameters.py" << QStringList();
    QTest::newRow("random draws") << "random_draws.py" << QStringList();
    QTest::newRow("types on explicit meshes") << "explicit_types.py" << QStringList();
    QTest::newRow("functions of pieces") << "pieces.py" << QStringList();
    QTest::newRow("derivatives where functions bend") << "bends_and_ends.py" << QStringList();
    QTest::newRow("package") << "package_calls.py" << QStringList();
    QTest::newRow("answers") << "answers.py" << QStringList();
}

void TestOpenVerb::programs()
{
    QFETCH(QString, script);
    QFETCH(QStringList, counts);
    const std::uint64_t seed = tests::freshSeed() % 1'000'000'000;
    QProcessEnvironment environment = tests::plainEnvironment();
    const QString source = MESHWRIGHT_SOURCE_DIR;
    environment.insert("PYTHONPATH",
        source + "/app/python:" + source + "/app/python/packages:" + QFileInfo(MESHWRIGHT_PROGRAM).path() + "/python");
    environment.insert("PYTHONDONTWRITEBYTECODE", "1");
    environment.insert("MESHWRIGHT", MESHWRIGHT_PROGRAM);
    environment.insert("MESHWRIGHT_SOURCES", source);
    environment.insert("XLA_FLAGS", "--xla_force_host_platform_device_count=8");
    const Outcome outcome = tests::runProgram(
        MESHWRIGHT_PYTHON, QStringList{source + "/tests/app/pages/" + script, QString::number(seed)} + counts, {}, environment);
    QVERIFY2(outcome.code == 0 && outcome.out.trimmed().split('\n').last().startsWith("0 of "),
        qPrintable(QString("seed %1\n").arg(seed) + said(outcome)));
}

MESHWRIGHT_TEST(TestOpenVerb)

} // namespace tst_open_verb

#include "tst_open_verb.moc"
