// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/kernel.h"
#include "core/partition/partition.h"
#include "core/runtime/executor.h"
#include "tests/runtime_test.h"
#include "tests/test_class.h"

#include <algorithm>

namespace tst_parts {

using namespace meshwright;
using namespace meshwright::test;

namespace {

using Arrays = std::vector<HostArray>;
using Numbers = std::vector<double>;

/// An op beside its meaning, written element by element.
struct Case {
    std::vector<TensorType> arguments;
    std::function<ValueId(Builder&, const std::vector<ValueId>&)> build;
    std::function<Numbers(const Arrays&, const Shape& result)> reference;
    std::vector<std::string> specs; ///< of the arguments, on the mesh a=2,b=2
};

/// The elements of an array of this shape, each from its index.
Numbers each(const Shape& shape, const std::function<double(const Shape&)>& element)
{
    Numbers all;
    for (std::int64_t flat = 0; flat < elementCount(shape); ++flat)
        all.push_back(element(indexOf(shape, flat)));
    return all;
}

double at(const HostArray& array, const Shape& index)
{
    return array.at(flatOf(array.type().shape, index));
}

bool isInside(const Shape& index, const Shape& shape)
{
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (index[dim] < 0 || index[dim] >= shape[dim])
            return false;
    }
    return true;
}

TensorType f32(Shape shape)
{
    return {DType::F32, std::move(shape)};
}

TensorType s32(Shape shape)
{
    return {DType::S32, std::move(shape)};
}

bool contains(const std::vector<std::size_t>& dims, std::size_t dim)
{
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

/// Where an element of the slices' array lies in the operand: the start of its slice, and its place in it.
struct Place {
    Shape start;
    Shape offset;
};

Place placeOf(const IndexingDims& dims, std::size_t rank, const HostArray& indices, const Shape& index)
{
    Shape batch;
    Shape window;
    for (std::size_t dim = 0; dim < index.size(); ++dim)
        (contains(dims.window, dim) ? window : batch).push_back(index[dim]);
    Place place{Shape(rank, 0), Shape(rank, 0)};
    for (std::size_t i = 0; i < dims.indexMap.size(); ++i) {
        Shape where = batch;
        if (dims.indexVectorDim < indices.type().shape.size())
            where.insert(where.begin() + static_cast<std::ptrdiff_t>(dims.indexVectorDim), static_cast<std::int64_t>(i));
        place.start[dims.indexMap[i]] = static_cast<std::int64_t>(at(indices, where));
    }
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i)
        place.start[dims.operandBatch[i]] = batch[dims.indicesBatch[i] - (dims.indicesBatch[i] > dims.indexVectorDim ? 1 : 0)];
    std::size_t next = 0;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        if (!contains(dims.collapsed, dim) && !contains(dims.operandBatch, dim))
            place.offset[dim] = window[next++];
    }
    return place;
}

Case gatherCase(TensorType operand, TensorType indices, const GatherAttributes& gather, std::vector<std::string> specs)
{
    return {{std::move(operand), std::move(indices)},
        [gather](Builder& b, const auto& a) {
            return b.add(OpKind::Gather, {a[0], a[1]}, gather);
        },
        [gather](const Arrays& a, const Shape& result) {
            const Shape& shape = a[0].type().shape;
            return each(result, [&](const Shape& index) {
                Place place = placeOf(gather.dims, shape.size(), a[1], index);
                for (std::size_t dim = 0; dim < shape.size(); ++dim)
                    place.start[dim]
                        = std::clamp<std::int64_t>(place.start[dim], 0, shape[dim] - gather.sliceSizes[dim]) + place.offset[dim];
                return at(a[0], place.start);
            });
        },
        std::move(specs)};
}

Case scatterCase(std::vector<TensorType> arguments, const ScatterAttributes& scatter, std::vector<std::string> specs)
{
    return {std::move(arguments),
        [scatter](Builder& b, const auto& a) {
            return b.add(OpKind::Scatter, {a[0], a[1], a[2]}, scatter);
        },
        [scatter](const Arrays& a, const Shape& result) {
            Numbers values = a[0].values();
            each(a[2].type().shape, [&](const Shape& index) {
                const Place place = placeOf(scatter.dims, result.size(), a[1], index);
                Shape target = place.start;
                for (std::size_t dim = 0; dim < result.size(); ++dim)
                    target[dim] += place.offset[dim];
                if (isInside(target, result)) {
                    double& value = values[static_cast<std::size_t>(flatOf(result, target))];
                    const double update = at(a[2], index);
                    value = !scatter.combiner                 ? update
                        : scatter.combiner == ReduceKind::Sum ? value + update
                                                              : std::max(value, update);
                }
                return 0.0;
            });
            return values;
        },
        std::move(specs)};
}

Case sliceCase(Shape shape, const SliceAttributes& slice, std::vector<std::string> specs)
{
    return {{f32(std::move(shape))}, [slice](Builder& b, const auto& a) { return b.add(OpKind::Slice, {a[0]}, slice); },
        [slice](const Arrays& a, const Shape& result) {
            return each(result, [&](Shape index) {
                for (std::size_t dim = 0; dim < index.size(); ++dim)
                    index[dim] = slice.starts[dim] + index[dim] * slice.strides[dim];
                return at(a[0], index);
            });
        },
        std::move(specs)};
}

Case padCase(Shape shape, const PadAttributes& pad, std::vector<std::string> specs)
{
    return {{f32(std::move(shape)), f32({})},
        [pad](Builder& b, const auto& a) {
            return b.add(OpKind::Pad, {a[0], a[1]}, pad);
        },
        [pad](const Arrays& a, const Shape& result) {
            return each(result, [&](Shape index) {
                for (std::size_t dim = 0; dim < index.size(); ++dim) {
                    const std::int64_t step = pad.interior[dim] + 1;
                    const std::int64_t place = index[dim] - pad.low[dim];
                    index[dim] = place >= 0 && place % step == 0 ? place / step : -1;
                }
                return isInside(index, a[0].type().shape) ? at(a[0], index) : a[1].at(0);
            });
        },
        std::move(specs)};
}

Case dynamicSliceCase(Shape shape, Shape sizes, std::vector<std::string> specs)
{
    std::vector<TensorType> arguments{f32(std::move(shape))};
    arguments.resize(1 + sizes.size(), s32({}));
    return {std::move(arguments),
        [sizes](Builder& b, const auto& a) { return b.add(OpKind::DynamicSlice, a, DynamicSliceAttributes{sizes}); },
        [sizes](const Arrays& a, const Shape& result) {
            return each(result, [&](Shape index) {
                for (std::size_t dim = 0; dim < index.size(); ++dim)
                    index[dim] += std::clamp<std::int64_t>(
                        static_cast<std::int64_t>(a[1 + dim].at(0)), 0, a[0].type().shape[dim] - sizes[dim]);
                return at(a[0], index);
            });
        },
        std::move(specs)};
}

Case updateCase(Shape shape, Shape part, std::vector<std::string> specs)
{
    std::vector<TensorType> arguments{f32(std::move(shape)), f32(part)};
    arguments.resize(2 + part.size(), s32({}));
    return {std::move(arguments), [](Builder& b, const auto& a) { return b.add(OpKind::DynamicUpdateSlice, a); },
        [part](const Arrays& a, const Shape& result) {
            return each(result, [&](const Shape& index) {
                Shape inPart = index;
                for (std::size_t dim = 0; dim < index.size(); ++dim)
                    inPart[dim]
                        -= std::clamp<std::int64_t>(static_cast<std::int64_t>(a[2 + dim].at(0)), 0, result[dim] - part[dim]);
                return isInside(inPart, part) ? at(a[1], inPart) : at(a[0], index);
            });
        },
        std::move(specs)};
}

Case concatenateCase(std::vector<Shape> shapes, std::size_t along, std::vector<std::string> specs)
{
    std::vector<TensorType> arguments;
    for (Shape& shape : shapes)
        arguments.push_back(f32(std::move(shape)));
    return {std::move(arguments),
        [along](Builder& b, const auto& a) { return b.add(OpKind::Concatenate, a, ConcatenateAttributes{along}); },
        [along](const Arrays& a, const Shape& result) {
            return each(result, [&](Shape index) {
                std::size_t from = 0;
                while (index[along] >= a[from].type().shape[along])
                    index[along] -= a[from++].type().shape[along];
                return at(a[from], index);
            });
        },
        std::move(specs)};
}

Case reverseCase(Shape shape, std::vector<std::size_t> dims, std::vector<std::string> specs)
{
    return {{f32(std::move(shape))},
        [dims](Builder& b, const auto& a) { return b.add(OpKind::Reverse, {a[0]}, ReverseAttributes{dims}); },
        [dims](const Arrays& a, const Shape& result) {
            return each(result, [&](Shape index) {
                for (const std::size_t dim : dims)
                    index[dim] = result[dim] - 1 - index[dim];
                return at(a[0], index);
            });
        },
        std::move(specs)};
}

Case clampCase(DType dtype)
{
    const TensorType type{dtype, {4, 6}};
    return {{type, type, type}, [](Builder& b, const auto& a) { return b.add(OpKind::Clamp, a); },
        [](const Arrays& a, const Shape& result) {
            return each(result,
                [&](const Shape& index) { return std::min(std::max(at(a[1], index), at(a[0], index)), at(a[2], index)); });
        },
        {"P('a', 'b')", "P()", "P('b')"}};
}

Arrays argumentsOf(const Case& given, std::uint64_t seed)
{
    Arrays arguments;
    for (const TensorType& type : given.arguments)
        arguments.push_back(randomArray(type, seed++));
    return arguments;
}

/// The result on four devices, with the arguments laid out as the case says.
HostArray onDevices(Function function, const Case& given, const Arrays& arguments)
{
    const Mesh mesh = valueOf(parseMesh("a=2,b=2"));
    const std::vector<NamedMesh> meshes{{"mesh", mesh}};
    for (std::size_t i = 0; i < given.specs.size(); ++i) {
        const ValueId argument = function.arguments()[i];
        function[argument].sharding
            = valueOf(toTensorSharding(valueOf(parseSpec(given.specs[i])), function[argument].type.shape.size(), mesh));
    }
    if (const auto report = propagate(function, meshes); !report)
        qFatal("%s", describe(report.error()).c_str());
    const auto device = partition(function, meshes);
    if (!device)
        qFatal("%s", describe(device.error()).c_str());
    const auto devices = valueOf(VirtualDevices::create(mesh.deviceCount(), {0}));
    const auto loaded = LoadedFunction::load(schedule(*device, SchedulePolicy::Host), meshes, *devices);
    if (!loaded)
        qFatal("%s", describe(loaded.error()).c_str());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (const auto done = (*loaded)->writeArgument(i, arguments[i]); !done)
            qFatal("%s", describe(done.error()).c_str());
    }
    if (const auto done = (*loaded)->run(); !done)
        qFatal("%s", describe(done.error()).c_str());
    return (*loaded)->readResult(0);
}

} // namespace

/// Ops that take arrays apart and put them together.
class TestParts : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ops_data();
    void ops();
    void unsignedIndices_data();
    void unsignedIndices();
    void barrier();
    void whatIsNotComputed();
};

void TestParts::ops_data()
{
    QTest::addColumn<Case>("given");
    const auto row = [](const char* name, const Case& given) { QTest::newRow(name) << given; };

    row("slice", sliceCase({4, 8, 6}, {{0, 2, 1}, {4, 6, 6}, {1, 1, 2}}, {"P('a', None, 'b')"}));
    row("slice of what is split", sliceCase({8, 4}, {{1, 0}, {7, 4}, {3, 1}}, {"P('a', 'b')"}));
    row("slice of nothing", sliceCase({8, 4}, {{3, 0}, {3, 4}, {1, 1}}, {"P(None, 'b')"}));
    row("pad", padCase({4, 6}, {{1, 0}, {2, 0}, {1, 0}}, {"P('a', 'b')"}));
    row("negative padding", padCase({7, 4}, {{-3, 1}, {-1, -1}, {1, 0}}, {"P(None, 'b')"}));
    row("more taken than there is", padCase({4, 4}, {{-9, 0}, {9, 0}, {0, 0}}, {"P('a', 'b')"}));
    row("concatenate", concatenateCase({{4, 3}, {4, 5}, {4, 1}}, 1, {"P('a')", "P('b')", "P()"}));
    row("concatenate what is split", concatenateCase({{4, 3}, {8, 3}}, 0, {"P('a')", "P('a')"}));
    row("reverse", reverseCase({4, 6, 2}, {0, 2}, {"P('a', 'b')"}));
    row("dynamic slice", dynamicSliceCase({8, 6}, {3, 6}, {"P('a', 'b')"}));
    row("dynamic slice of all", dynamicSliceCase({8, 6}, {8, 6}, {"P('a', 'b')"}));
    row("dynamic update", updateCase({8, 6}, {3, 6}, {"P('a', 'b')", "P(None, 'b')"}));
    row("dynamic update of a part", updateCase({8, 6}, {3, 2}, {"P('a', 'b')", "P(None, 'b')"}));
    row("clamp", clampCase(DType::F32));
    row("clamp of integers", clampCase(DType::S32));

    // Rows of a table, as an embedding takes them.
    const IndexingDims rows{{1}, {0}, {}, {}, {0}, 1};
    row("rows", gatherCase(f32({10, 4}), s32({8, 1}), {rows, {1, 4}}, {"P(None, 'b')", "P('a')"}));
    row("rows of a split table", gatherCase(f32({10, 4}), s32({8, 1}), {rows, {1, 4}}, {"P('a', 'b')", "P('a')"}));
    const IndexingDims elements{{}, {0, 1}, {}, {}, {0, 1}, 0};
    row("elements of a table split both ways", gatherCase(f32({6, 4}), s32({2, 9}), {elements, {1, 1}}, {"P('a', 'b')"}));
    const IndexingDims scalars{{2}, {0}, {}, {}, {0}, 2};
    row("indices of their own", gatherCase(f32({10, 4}), s32({2, 3}), {scalars, {1, 4}}, {"P(None, 'a')", "P('b')"}));
    const IndexingDims windows{{0, 2}, {}, {}, {}, {1, 0}, 0};
    row("windows", gatherCase(f32({9, 8}), s32({2, 4}), {windows, {3, 2}}, {"P(None, 'a')", "P(None, 'b')"}));
    row("windows over all of a dim", gatherCase(f32({9, 8}), s32({2, 4}), {windows, {3, 8}}, {"P(None, 'a')", "P(None, 'b')"}));
    const IndexingDims batched{{2}, {1}, {0}, {0}, {1}, 2};
    row("batches", gatherCase(f32({4, 9, 6}), s32({4, 3, 1}), {batched, {1, 1, 6}}, {"P('a', None, 'b')", "P('a')"}));

    for (const DType dtype : {DType::F32, DType::BF16, DType::S32}) {
        row(fmt::format("rows are added, {}", dtypeName(dtype)).c_str(),
            scatterCase(
                {{dtype, {10, 4}}, s32({8, 1}), {dtype, {8, 4}}}, {rows, ReduceKind::Sum}, {"P('a', 'b')", "P('a')", "P('b')"}));
    }
    row("rows to a split table",
        scatterCase({f32({10, 4}), s32({8, 1}), f32({8, 4})}, {rows, ReduceKind::Sum}, {"P('a')", "P()", "P()"}));
    row("elements to a table split both ways",
        scatterCase({f32({6, 4}), s32({2, 9}), f32({9})}, {elements, ReduceKind::Sum}, {"P('a', 'b')"}));
    // No index counts along dimension 0: its first element is meant, which only the first piece has.
    const IndexingDims firstRow{{}, {0, 1}, {}, {}, {1}, 1};
    row("elements of the first row of a split table",
        scatterCase({f32({6, 4}), s32({5, 1}), f32({5})}, {firstRow, ReduceKind::Sum}, {"P('a', 'b')"}));
    row("elements put in the first row of a split table",
        scatterCase({f32({6, 4}), s32({5, 1}), f32({5})}, {firstRow, std::nullopt}, {"P('a')"}));
    row("elements of the first row, looked up", gatherCase(f32({6, 4}), s32({5, 1}), {firstRow, {1, 1}}, {"P('a', 'b')"}));
    row("the larger", scatterCase({f32({9, 8}), s32({2, 4}), f32({3, 4, 2})}, {windows, ReduceKind::Max}, {"P('b', 'a')"}));
    row("put in batches",
        scatterCase({f32({4, 9, 6}), s32({4, 3, 1}), f32({4, 3, 6})}, {batched, std::nullopt},
            {"P('a', None, 'b')", "P('a')", "P('a')"}));
    row("windows that reach over all",
        scatterCase({f32({9, 8}), s32({2, 4}), f32({9, 4, 8})}, {windows, ReduceKind::Sum}, {"P(None, 'a')"}));
}

void TestParts::ops()
{
    QFETCH(Case, given);
    const Function function = test::functionOf(given.arguments, given.build);
    const bool isNarrow = given.arguments.front().dtype == DType::BF16;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Arrays arguments = argumentsOf(given, 10 * seed);
        const auto whole = evaluate(function, arguments);
        QVERIFY2(whole, whole ? "" : describe(whole.error()).c_str());
        const HostArray& result = whole->front();
        const Numbers expected = given.reference(arguments, result.type().shape);
        const std::string wrong = difference(result, expected, isNarrow ? 0.01 : 1e-6);
        QVERIFY2(wrong.empty(), wrong.c_str());
        const HostArray pieces = onDevices(function, given, arguments);
        const std::string other = difference(pieces, result.values(), 1e-6);
        QVERIFY2(other.empty(), ("on devices: " + other).c_str());
    }
}

void TestParts::unsignedIndices_data()
{
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<double>("large"); // would be negative if it were signed
    QTest::newRow("u8") << DType::U8 << 200.0;
    QTest::newRow("u16") << DType::U16 << 40'000.0;
    QTest::newRow("u32") << DType::U32 << 3e9;
}

/// A large unsigned index is moved to the end, as one that reaches over it, and not to the beginning.
void TestParts::unsignedIndices()
{
    QFETCH(DType, dtype);
    QFETCH(double, large);
    constexpr std::int64_t kCount = 150;
    const IndexingDims elements{{}, {0}, {}, {}, {0}, 1};
    const Function function = test::functionOf({f32({kCount}), {dtype, {3, 1}}, {dtype, {}}}, [&](Builder& b, const auto& a) {
        const ValueId gathered = b.add(OpKind::Gather, {a[0], a[1]}, GatherAttributes{elements, {1}, false});
        const ValueId sliced = b.add(OpKind::DynamicSlice, {a[0], a[2]}, DynamicSliceAttributes{{1}});
        return b.add(OpKind::Concatenate, {gathered, sliced}, ConcatenateAttributes{0});
    });
    const Arrays arguments{
        HostArray::of(f32({kCount}), each({kCount}, [](const Shape& index) { return static_cast<double>(index[0]); })),
        HostArray::of({dtype, {3, 1}}, Numbers{large, 130, 3}), HostArray::of({dtype, {}}, Numbers{large})};
    const auto results = evaluate(function, arguments);
    QVERIFY2(results, results ? "" : describe(results.error()).c_str());
    QCOMPARE(results->front().values(), (Numbers{kCount - 1, 130, 3, kCount - 1}));
}

void TestParts::barrier()
{
    const TensorType type = f32({4});
    const Function function = test::functionOf({type, type}, [](Builder& b, const auto& a) {
        const std::vector<ValueId> kept = b.addMany(OpKind::OptimizationBarrier, {a[0], a[1]});
        return b.binary(OpKind::Subtract, kept[0], kept[1]);
    });
    const Arrays arguments{HostArray::of(type, Numbers{4, 3, 2, 1}), HostArray::of(type, Numbers{1, 1, 2, 2})};
    const auto results = evaluate(function, arguments);
    QVERIFY(results);
    QCOMPARE(results->front().values(), (Numbers{3, 2, 0, -1}));
}

void TestParts::whatIsNotComputed()
{
    const TensorType type{DType::C64, {4}};
    const Function function = test::functionOf({type}, [](Builder& b, const auto& a) { return b.unary(OpKind::Negate, a[0]); });
    const Problems problems = checkRunnable(function);
    QCOMPARE(problems.size(), std::size_t{1});
    QCOMPARE(problems.front().id, std::string("MW1501"));
    QVERIFY(problems.front().message.find("negate on elements of type") != std::string::npos);
}

MESHWRIGHT_TEST(TestParts)

} // namespace tst_parts

#include "tst_parts.moc"
