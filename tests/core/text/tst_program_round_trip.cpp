// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/shape_rules.h"
#include "core/program/verify.h"
#include "core/text/number.h"
#include "core/text/program_text.h"
#include "tests/core/text/compare_programs.h"

#include <QtTest>

#include <random>

using namespace meshwright;

/// What is written reads back as it was: random programs of all op kinds, with names, phases, roles, shardings, groups, loops.
class TestProgramRoundTrip : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void random();
    void everyKindOccurs();
    void emptyProgram();
    void oddNames();
    void donationsInAnyOrder();
    void groups();
    void send();
    void loopWithoutSlices();
    void mutatedTextNeverCrashes();
};

namespace {

/// Makes valid programs at random.
class RandomProgram {
public:
    explicit RandomProgram(std::uint64_t seed)
        : m_random(seed)
    {
    }

    Program make()
    {
        m_program = Program();
        m_program.meshes.push_back({"mesh", valueOf(Mesh::create({{"x", 2}, {"y", 4}, {"one", 1}}))});
        m_program.meshes.push_back({"other mesh", valueOf(Mesh::create({{"z", 4}}, {2, 1, 0, 3}))});
        for (const char* name : {"init", "step"}) {
            Function function;
            function.name = name;
            Builder builder(function);
            m_builder = &builder;
            std::vector<ValueId> known;
            for (int i = 0; i < 4; ++i) {
                known.push_back(builder.argument({pick({DType::F32, DType::F32, DType::BF16, DType::S32}), shape()}));
                addNotes(known.back(), fmt::format("argument.{}", i));
            }
            known.push_back(builder.argument({DType::U32, {2}}, "key"));
            fill(known, 12, 2);
            builder.setResults({known.back(), known[known.size() / 2]}, {"first", "second"});
            if (chance(2))
                function.resultShardings = {sharding(builder.type(known.back()).shape.size()), std::nullopt};
            if (chance(2))
                function.donations = {{0, 1}, {2, 0}};
            m_program.functions.push_back(std::move(function));
        }
        return std::move(m_program);
    }

private:
    std::size_t below(std::size_t limit) { return m_random() % limit; }
    bool chance(std::size_t in) { return below(in) == 0; }
    template <typename T>
    T pick(std::initializer_list<T> values)
    {
        return values.begin()[below(values.size())];
    }
    ValueId any(const std::vector<ValueId>& known) { return known[below(known.size())]; }
    ValueId last(const std::vector<ValueId>& known) { return chance(2) ? known.back() : any(known); }

    Shape shape()
    {
        Shape made(below(3));
        for (std::int64_t& size : made)
            size = pick<std::int64_t>({4, 8, 1, 3});
        return made;
    }

    TensorSharding sharding(std::size_t rank)
    {
        TensorSharding made = chance(3) ? TensorSharding::openOf(rank) : TensorSharding::replicatedOf(rank);
        if (chance(8)) {
            made.mesh = 1;
            if (rank > 0)
                made.dims.back().axes = {{0, 2, 2}};
            return made;
        }
        std::vector<AxisRef> free = {{0, 1, 2}, {1, 1, 2}, {1, 2, 2}, {2, 1, 1}};
        for (const AxisRef& axis : free) {
            const std::size_t where = below(rank + 3);
            if (where < rank)
                appendMerging(made.dims[where].axes, axis);
            else if (where == rank)
                appendMerging(made.replicated, axis);
            else if (where == rank + 1 && axis.size > 1)
                appendMerging(made.unreduced, axis);
        }
        if (rank > 0 && !made.dims[0].axes.empty())
            made.dims[0].priority = static_cast<int>(below(3));
        if (!made.unreduced.empty())
            made.unreducedKind = pick({ReduceKind::Sum, ReduceKind::Max, ReduceKind::And});
        return made;
    }

    void addNotes(ValueId id, const std::string& name)
    {
        Value& value = m_builder->function()[id];
        if (chance(3))
            value.name = name;
        if (chance(4))
            value.role = pick({Role::Parameter, Role::Gradient, Role::OptimizerState, Role::Input, Role::Metric});
        if (chance(3)) {
            value.sharding = sharding(value.type.shape.size());
            if (chance(2))
                value.annotation = "sharding." + name;
        }
    }

    ConstantAttributes constant()
    {
        ConstantAttributes made{{pick({DType::F32, DType::BF16, DType::F16, DType::F64, DType::S32, DType::S8, DType::U8,
                                     DType::U32, DType::S64, DType::U64, DType::Pred}),
                                    shape()},
            {}};
        const auto bits = m_random();
        if (chance(2)) {
            if (isFloating(made.type.dtype))
                made.data.value
                    = floatFromBits(floatBits(static_cast<double>(bits % 1000) / 7.0, made.type.dtype), made.type.dtype);
            else
                made.data.value = static_cast<std::int64_t>(bits % (made.type.dtype == DType::Pred ? 2 : 100));
            return made;
        }
        if (chance(4))
            made.type.shape = {101 + static_cast<std::int64_t>(below(3))};
        std::string bytes;
        for (std::int64_t i = 0; i < made.type.bytes(); ++i)
            bytes += static_cast<char>(made.type.dtype == DType::Pred ? m_random() % 2 : m_random() % 64);
        made.data.value = std::make_shared<const std::string>(std::move(bytes));
        return made;
    }

    OpAttributes attributes(OpKind kind, const TensorType& type)
    {
        const std::size_t rank = type.shape.size();
        switch (kind) {
        case OpKind::Constant:
            return constant();
        case OpKind::Iota:
            return IotaAttributes{{pick({DType::S32, DType::F32, DType::U32}), {3, 4}}, below(2)};
        case OpKind::RandomBits:
            return RandomBitsAttributes{{DType::U32, shape()}, chance(2)};
        case OpKind::Convert:
            return ConvertAttributes{pick({DType::F32, DType::BF16, DType::S32, DType::F64})};
        case OpKind::BitcastConvert:
            return ConvertAttributes{pick({DType::S32, DType::U32, DType::F32})};
        case OpKind::Compare:
            return CompareAttributes{static_cast<CompareDirection>(below(6))};
        case OpKind::BroadcastInDim: {
            BroadcastAttributes made{type.shape, {}};
            made.shape.insert(made.shape.begin(), 2);
            for (std::size_t i = 0; i < rank; ++i)
                made.dims.push_back(i + 1);
            return made;
        }
        case OpKind::Reshape:
            return ReshapeAttributes{chance(2) ? Shape{type.elements()} : Shape{1, type.elements()}};
        case OpKind::Transpose: {
            TransposeAttributes made;
            for (std::size_t i = rank; i-- > 0;)
                made.permutation.push_back(i);
            return made;
        }
        case OpKind::Reduce:
            return ReduceAttributes{static_cast<ReduceKind>(below(6)),
                rank == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{below(rank)}};
        case OpKind::DotGeneral: {
            DotAttributes made;
            if (rank > 0)
                made.lhsContracting = made.rhsContracting = {rank - 1};
            if (rank > 1 && chance(2))
                made.lhsBatch = made.rhsBatch = {0};
            made.resultType = chance(3) ? DType::F64 : type.dtype;
            made.operandType = chance(3) ? DType::BF16 : type.dtype;
            return made;
        }
        case OpKind::ShardingConstraint:
            return ConstraintAttributes{sharding(rank), chance(2) ? "sharding.here" : ""};
        case OpKind::Receive:
            return TransferAttributes{
                {DType::F32, shape()}, static_cast<std::int32_t>(below(4)), static_cast<std::int32_t>(below(99))};
        default:
            return isCollective(kind) ? OpAttributes(collective(kind, type)) : OpAttributes();
        }
    }

    CollectiveAttributes collective(OpKind kind, const TensorType& type)
    {
        const std::size_t rank = type.shape.size();
        const AxisRef x{0, 1, 2};
        const AxisRef y{1, 2, 2};
        CollectiveAttributes made;
        if (kind == OpKind::AllReduce) {
            made.axes = chance(2) ? AxisRefs{x} : AxisRefs{y, x};
        } else if (kind == OpKind::AllToAll) {
            if (rank > 1)
                made.moves = {{{x, y}, 0, rank - 1}};
            made.axes = rank > 1 ? AxisRefs{x, y} : AxisRefs{};
        } else if (kind == OpKind::CollectivePermute || kind == OpKind::Reshard) {
            made.resultShape = type.shape;
            if (rank > 0 && chance(2))
                made.resultShape[0] += 4;
            if (kind == OpKind::CollectivePermute)
                made.sources = {1, 0, 3, 2, 5, 4, 7, 6};
            else if (chance(3)) // a partial sum made of replicas, or of pieces
                made.axes = {y, x};
            else if (rank > 0 && chance(3)) {
                made.perDim.resize(rank);
                made.perDim.back() = {x, y};
                made.axes = {x, y};
            }
        } else {
            made.perDim.resize(rank);
            if (rank > 0) {
                made.perDim.back() = {x, y};
                made.axes = chance(2) ? AxisRefs{x, y} : AxisRefs{y, x};
            }
        }
        if (kind == OpKind::AllReduce || kind == OpKind::ReduceScatter)
            made.kind = pick({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Product});
        if (chance(2))
            made.cause = {"grad.w", "dot_general", "because \"x\" is\na reason", chance(2) ? "sharding.x" : ""};
        return made;
    }

    void fill(std::vector<ValueId>& known, int count, int loops)
    {
        for (int i = 0; i < count; ++i) {
            m_builder->setPhase(static_cast<Phase>(below(5)));
            if (loops > 0 && chance(5)) {
                repeat(known, loops - 1);
                continue;
            }
            const auto kind = static_cast<OpKind>(below(kOpKindCount));
            if (kind == OpKind::Repeat || kind == OpKind::Send)
                continue;
            const ValueId first = last(known);
            const TensorType type = m_builder->type(first);
            std::vector<ValueId> operands;
            const OpClass opClass = opInfo(kind).opClass;
            if (kind == OpKind::RandomBits)
                operands = {m_key};
            else if (opClass == OpClass::Binary || kind == OpKind::DotGeneral)
                operands = {first, chance(2) ? first : any(known)};
            else if (opClass == OpClass::Ternary)
                operands = {any(known), first, any(known)};
            else if (opClass != OpClass::Leaf && opClass != OpClass::Transfer)
                operands = {first};
            if (kind == OpKind::RandomBits) {
                if (m_builder->block().index != 0)
                    continue;
                operands = {m_builder->function().arguments().back()};
            }
            if (kind == OpKind::Select && chance(1)) {
                const ValueId predicate = m_builder->compare(CompareDirection::Less, first, first);
                operands = {predicate, first, first};
            }
            OpAttributes made = attributes(kind, type);
            std::vector<TensorType> types;
            for (const ValueId operand : operands)
                types.push_back(m_builder->type(operand));
            const auto results = resultTypes(kind, made, types);
            if (!results || results->front().elements() > 4096)
                continue;
            const ValueId result = m_builder->add(kind, operands, made);
            addNotes(result, fmt::format("value.{}", result.index));
            auto& resultSharding = m_builder->function()[result].sharding;
            if (isCollective(kind) && resultSharding
                && resultSharding->mesh != 0) // axes of collectives are of their result's mesh
                resultSharding.reset();
            if (kind == OpKind::ShardingConstraint && chance(2))
                m_builder->function()[result].sharding = std::get<ConstraintAttributes>(made).sharding;
            known.push_back(result);
        }
    }

    void repeat(std::vector<ValueId>& known, int loops)
    {
        RepeatAttributes made;
        made.count = pick<std::int64_t>({1, 3, 5});
        made.reversed = chance(2);
        std::vector<ValueId> operands;
        for (made.carries = 0; made.carries < below(3); ++made.carries)
            operands.push_back(any(known));
        for (made.stacked = 0; made.stacked < below(3); ++made.stacked) {
            const ValueId value = any(known);
            Shape stacked = m_builder->type(value).shape;
            stacked.insert(stacked.begin(), made.count);
            std::vector<std::size_t> dims(stacked.size() - 1);
            std::iota(dims.begin(), dims.end(), 1);
            operands.push_back(m_builder->broadcast(value, stacked, dims));
        }
        while (chance(2))
            operands.push_back(any(known));
        const OpId op = m_builder->beginRepeat(made, operands);
        Function& function = m_builder->function();
        std::vector<ValueId> inside = function[m_builder->block()].arguments;
        for (const ValueId argument : inside)
            addNotes(argument, fmt::format("inside.{}", argument.index));
        if (inside.empty())
            inside.push_back(m_builder->splat({DType::F32, {}}, 2.0));
        const std::vector<ValueId> arguments = function[m_builder->block()].arguments;
        fill(inside, 5, loops);
        std::vector<ValueId> yielded;
        for (std::size_t i = 0; i < made.carries; ++i) {
            ValueId next = arguments[i];
            for (const ValueId value : inside) {
                if (m_builder->type(value) == m_builder->type(next) && chance(2))
                    next = value;
            }
            yielded.push_back(next);
        }
        while (chance(2))
            yielded.push_back(any(inside));
        m_builder->setResults(yielded);
        for (const ValueId result : m_builder->endRepeat(op)) {
            addNotes(result, fmt::format("loop.{}", result.index));
            known.push_back(result);
        }
    }

    std::mt19937_64 m_random;
    Program m_program;
    Builder* m_builder = nullptr;
    ValueId m_key;
};

std::string roundTripDifference(const Program& program)
{
    const std::string text = writeProgram(program);
    const auto read = readProgram(text, "test.mlir");
    if (!read)
        return describe(read.error()) + "\n" + text;
    if (const std::string difference = differenceOf(program, *read); !difference.empty())
        return difference + "\n" + text + "\n----\n" + writeProgram(*read);
    if (const Problems problems = verify(*read); !problems.empty())
        return describe(problems);
    return writeProgram(*read) == text ? std::string() : "the text differs:\n" + text;
}

} // namespace

void TestProgramRoundTrip::random()
{
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Program program = RandomProgram(seed).make();
        QVERIFY2(verify(program).empty(),
            qPrintable(QString("seed %1: ").arg(seed) + QString::fromStdString(describe(verify(program)))));
        const std::string difference = roundTripDifference(program);
        if (!difference.empty())
            fmt::print(stderr, "{}\n", difference); // Qt cuts long messages
        QVERIFY2(difference.empty(), qPrintable(QString("seed %1").arg(seed)));
    }
}

void TestProgramRoundTrip::everyKindOccurs()
{
    std::set<OpKind> seen{OpKind::Send}; // has a test of its own
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        for (const Function& function : RandomProgram(seed).make().functions)
            forEachOp(function, [&](OpId op) { seen.insert(function[op].kind); });
    }
    for (std::size_t i = 0; i < kOpKindCount; ++i)
        QVERIFY2(seen.contains(static_cast<OpKind>(i)), opName(static_cast<OpKind>(i)));
}

void TestProgramRoundTrip::emptyProgram()
{
    QCOMPARE(roundTripDifference(Program()), std::string());
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "nothing";
    Builder builder(function);
    builder.setResults({});
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::oddNames()
{
    Program program;
    program.meshes.push_back({"a mesh \"x\"", valueOf(Mesh::create({{"x", 2}}))});
    Function& function = program.functions.emplace_back();
    function.name = "größe -> {";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4}}, "a\\b\n\"\x01\" é");
    function[x].sharding = TensorSharding::replicatedOf(1);
    function[x].sharding->dims[0].axes = {{0, 1, 2}};
    builder.setResults({builder.named(builder.unary(OpKind::Sine, x), "// no comment")}, {"} {"});
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::donationsInAnyOrder()
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4}});
    const ValueId y = builder.argument({DType::F32, {4}});
    builder.setResults({x, y, x});
    function.donations = {{1, 1}, {0, 0}, {0, 2}};
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::groups()
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4}});
    const ValueId y = builder.unary(OpKind::Sine, x);
    const ValueId z = builder.unary(OpKind::Cosine, y);
    builder.setResults({z, builder.unary(OpKind::Tanh, z)});
    function.shardingGroups = {{x, z}, {y, function.results()[1]}};
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::send()
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4}});
    builder.setPhase(Phase::Backward);
    builder.addMany(OpKind::Send, {x}, TransferAttributes{{}, 3, 12});
    builder.setResults({x});
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::loopWithoutSlices()
{
    Program program;
    Function& function = program.functions.emplace_back();
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({DType::F32, {4}});
    const OpId repeat = builder.beginRepeat({std::int64_t{1} << 40, 1, 0, true}, {x, x, x});
    const std::vector<ValueId> arguments = function[builder.block()].arguments;
    builder.setResults({builder.binary(OpKind::Add, arguments[0], arguments[2])});
    builder.setResults(builder.endRepeat(repeat));
    QCOMPARE(roundTripDifference(program), std::string());
}

void TestProgramRoundTrip::mutatedTextNeverCrashes()
{
    std::mt19937_64 random(11); // seed: fixed, any would do
    const std::string text = writeProgram(RandomProgram(5).make()) + writeProgram(RandomProgram(8).make());
    const std::string_view pieces[] = {"{", "}", "(", ")", "[", "]", "<", ">", "\"", "%", "#", "@", "->", "9223372036854775808",
        "tensor<", "dense<", "?", "-", ":", "\n", std::string_view("\0", 1), "loc("};
    for (int i = 0; i < 1500; ++i) {
        std::string mutated = text;
        for (std::size_t n = 1 + random() % 3; n > 0; --n) {
            const std::size_t at = random() % mutated.size();
            switch (random() % 4) {
            case 0:
                mutated.resize(at + 1);
                break;
            case 1:
                mutated.erase(at, 1 + random() % 12);
                break;
            case 2:
                mutated.insert(at, pieces[random() % std::size(pieces)]);
                break;
            default:
                mutated[at] = static_cast<char>(random() % 256);
            }
            if (mutated.empty())
                mutated = "x";
        }
        const auto read = readProgram(mutated, "mutated.mlir");
        if (!read) {
            for (const Problem& problem : read.error())
                QVERIFY2(problem.place.line > 0 && problem.place.column > 0 && !problem.message.empty(),
                    qPrintable(QString::fromStdString(describe(problem))));
        } else {
            QVERIFY(verify(*read).empty());
        }
    }
}

QTEST_APPLESS_MAIN(TestProgramRoundTrip)
#include "tst_program_round_trip.moc"
