// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/partition.h"
#include "core/program/builder.h"
#include "core/propagate/propagate.h"
#include "core/propagate/uneven_borders.h"
#include "core/text/program_text.h"
#include "tests/seeds.h"
#include "tests/test_class.h"
#include "tests/values.h"

#include <QTest>

#include <random>

namespace tst_uneven_borders {

using namespace meshwright;
using namespace meshwright::tests;

/// What propagation writes of a program's arguments and results is what the other verbs accept.
class TestUnevenBorders : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void opened();
    void propagatedProgramsAreAccepted();
};

namespace {

const Mesh& mesh()
{
    static const Mesh mesh = valueOf(Mesh::create({{"x", 4}, {"y", 2}}));
    return mesh;
}

/// Slices, sums and transposes of matrices that axes of the mesh divide; what is cut they mostly do not.
Function randomProgram(std::mt19937& random)
{
    Function function;
    function.name = "main";
    Builder b(function);
    std::vector<ValueId> values;
    for (int i = 0; i < 2; ++i) {
        values.push_back(b.argument({DType::F32, {8, 16}}, "x" + std::to_string(i)));
        TensorSharding sharding = TensorSharding::openOf(2);
        for (std::size_t axis = 0; axis < 2; ++axis) {
            if (const std::size_t dim = random() % 3; dim < 2)
                sharding.dims[dim].axes.push_back(wholeAxis(mesh(), axis));
        }
        function[values.back()].sharding = sharding;
        function[values.back()].annotation = "sdy.sharding";
    }
    for (int i = 0; i < 8; ++i) {
        const ValueId any = values[random() % values.size()];
        const Shape shape = function[any].type.shape;
        const std::size_t dim = random() % 2;
        switch (random() % 4) {
        case 0: {
            if (shape[dim] < 3)
                break;
            Shape starts = {0, 0};
            Shape limits = shape;
            starts[dim] = static_cast<std::int64_t>(random() % 2);
            limits[dim] -= 1 - starts[dim];
            values.push_back(b.add(OpKind::Slice, {any}, SliceAttributes{starts, limits, {1, 1}}));
            break;
        }
        case 1:
            values.push_back(b.transpose(any, {1, 0}));
            break;
        case 2:
            values.push_back(b.binary(OpKind::Add, any, any));
            break;
        default:
            values.push_back(b.unary(OpKind::Tanh, any));
            break;
        }
    }
    b.setResults({values.back(), values[values.size() - 2]});
    return function;
}

} // namespace

/// A result of 15 rows in 4 pieces stays open, one of 16 keeps its sharding, and so does what the user wrote.
void TestUnevenBorders::opened()
{
    Function function;
    Builder b(function);
    const ValueId x = b.argument({DType::F32, {16}}, "x");
    const ValueId cut = b.add(OpKind::Slice, {x}, SliceAttributes{{0}, {15}, {1}});
    b.setResults({cut, x});
    TensorSharding split = TensorSharding::replicatedOf(1);
    split.dims[0].axes.push_back(wholeAxis(mesh(), 0));
    function[x].sharding = split;
    function.resultShardings = {split, split};
    const std::vector<std::string> said = openUnevenBorders(function);
    QCOMPARE(said, std::vector<std::string>{"result 0 is left open: dim 0 of size 15 is not divisible by 4"});
    QVERIFY(!function.resultShardings[0] && function.resultShardings[1] == split && function[x].sharding == split);
}

void TestUnevenBorders::propagatedProgramsAreAccepted()
{
    std::size_t openedBorders = 0;
    for (const std::uint32_t seed : seedRange(1, 60)) {
        std::mt19937 random(seed);
        Program program;
        program.meshes = {{"mesh", mesh()}};
        program.functions = {randomProgram(random)};
        const auto asked = program.functions.front().resultShardings;
        const auto report = propagate(program.functions.front(), program.meshes, PropagationStrategy::Pipeline);
        QVERIFY2(report, qPrintable(described(report)));
        openedBorders += openUnevenBorders(program.functions.front(), asked).size();
        const std::string written = writeProgram(program);
        auto read = readProgram(written, "written.mlir");
        QVERIFY2(read, qPrintable(described(read)));
        const auto partitioned = propagateAndPartition(*std::move(read));
        QVERIFY2(partitioned, qPrintable(QString("seed %1: ").arg(seed) + described(partitioned) + text(written)));
    }
    QVERIFY(openedBorders > 0);
}

MESHWRIGHT_TEST(TestUnevenBorders)

} // namespace tst_uneven_borders

#include "tst_uneven_borders.moc"
