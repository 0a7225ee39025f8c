// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/builder.h"
#include "core/program/shape_rules.h"
#include "core/program/verify.h"
#include "core/text/number.h"
#include "core/text/program_text.h"
#include "tests/core/text/compare_programs.h"
#include "tests/seeds.h"
#include "tests/test_class.h"

#include <random>

namespace tst_program_round_trip {

using namespace meshwright;

/// What is written reads back as it was: random programs of all op kinds, with names, phases, roles, shardings, groups, loops.
class TestProgramRoundTrip : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void random();
    void everyKindOccurs();
    void emptyProgram();
    void oddNames();
    void controlCharactersInStrings();
    void donationsInAnyOrder();
    void groups();
    void send();
    void loopWithoutSlices();
    void reductionsOfEveryType_data();
    void reductionsOfEveryType();
    void mutatedTextNeverCrashes_data();
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
        m_program.meshes.push_back({"one", Mesh(), true});
        if (chance(2)) {
            m_program.moduleName = "jit_step";
            m_program.kept = {{"mhlo.num_partitions", "8 : i32", false, {}, {}}, {"unit", "", false, {}, {}}};
            m_program.aliases = "#map = affine_map<(d0) -> (d0)>\n#call = #test.call<@less>\n";
            m_program.rest = "func.func private @less(%arg0: tensor<f32>) -> tensor<f32> {\n  return %arg0 : tensor<f32>\n}\n";
            m_program.trailer = "#loc = loc(\"x.py\":3:4)\n";
        }
        for (const char* name : {"init", "step"}) {
            Function function;
            function.name = name;
            Builder builder(function);
            m_builder = &builder;
            std::vector<ValueId> known;
            for (int i = 0; i < 4; ++i) {
                known.push_back(builder.argument(
                    {pick({DType::F32, DType::F32, DType::BF16, DType::S32, DType::C64, DType::F8E5M2, DType::S4}), shape()}));
                addNotes(known.back(), fmt::format("argument.{}", i));
                if (chance(4))
                    function[known.back()].kept = kept();
            }
            known.push_back(builder.argument({DType::Token, {}}));
            known.push_back(builder.argument({DType::U32, {2}}, "key"));
            fill(known, 12, 2);
            builder.setResults({known.back(), known[known.size() / 2]}, {"first", "second"});
            if (chance(2))
                function.resultShardings = {sharding(builder.type(known.back()).shape.size()), std::nullopt};
            if (chance(2))
                function.donations = {{0, 1}, {2, 0}};
            if (chance(2))
                function.kept = kept()->attributes;
            if (chance(2))
                function.resultsKept = {{}, {{"test.unit", "", false, {}, {}}}};
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

    std::shared_ptr<const KeptText> kept()
    {
        KeptText made;
        if (chance(2))
            made.attributes = {{"backend_config", "\"a \\22b\"", false, {}, {}},
                {"mhlo.frontend_attributes", "{a = \"x\", b = [1, 2]}", false, {}, {}},
                {"odd name", "#foo.bar<1, x>", false, {}, {}}, {"test.unit", "", false, {}, {}}};
        return std::make_shared<const KeptText>(std::move(made));
    }

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
        if (chance(20)) {
            made = TensorSharding::replicatedOf(rank);
            made.mesh = 2;
            return made;
        }
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
        ConstantAttributes made{
            {pick({DType::F32, DType::BF16, DType::F16, DType::F64, DType::S32, DType::S8, DType::U8, DType::U32, DType::S64,
                 DType::U64, DType::Pred, DType::F8E4M3FN, DType::F8E5M2, DType::U4, DType::C64, DType::C128}),
                shape()},
            {}};
        const auto bits = m_random();
        if (chance(8)) {
            made.data.value = std::shared_ptr<const std::string>();
            return made;
        }
        if (chance(2) && !isComplex(made.type.dtype)) {
            if (isFloating(made.type.dtype))
                made.data.value
                    = floatFromBits(floatBits(static_cast<double>(bits % 1000) / 7.0, made.type.dtype), made.type.dtype);
            else
                made.data.value = static_cast<std::int64_t>(bits
                    % (made.type.dtype == DType::Pred      ? 2
                            : made.type.dtype == DType::U4 ? 16
                                                           : 100));
            return made;
        }
        if (chance(4))
            made.type.shape = {101 + static_cast<std::int64_t>(below(3))};
        std::string bytes;
        const std::int64_t count = isComplex(made.type.dtype) && chance(2) ? byteSize(made.type.dtype) : made.type.bytes();
        for (std::int64_t i = 0; i < count; ++i)
            bytes += static_cast<char>(
                made.type.dtype == DType::Pred ? m_random() % 2 : m_random() % (made.type.dtype == DType::U4 ? 16 : 64));
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
            return CompareAttributes{static_cast<CompareDirection>(below(6)), isFloating(type.dtype) && chance(4)};
        case OpKind::ReducePrecision:
            return ReducePrecisionAttributes{1 + static_cast<std::int64_t>(below(11)), static_cast<std::int64_t>(below(53))};
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
        case OpKind::Slice: {
            SliceAttributes made;
            for (const std::int64_t size : type.shape) {
                made.starts.push_back(static_cast<std::int64_t>(below(static_cast<std::size_t>(size) + 1)));
                made.limits.push_back(made.starts.back()
                    + static_cast<std::int64_t>(below(static_cast<std::size_t>(size - made.starts.back()) + 1)));
                made.strides.push_back(pick<std::int64_t>({1, 1, 2}));
            }
            return made;
        }
        case OpKind::Pad: {
            PadAttributes made;
            for (std::size_t i = 0; i < rank; ++i) {
                made.low.push_back(pick<std::int64_t>({0, 1, -1}));
                made.high.push_back(pick<std::int64_t>({0, 2, 1}));
                made.interior.push_back(pick<std::int64_t>({0, 0, 1}));
            }
            return made;
        }
        case OpKind::Concatenate:
            return ConcatenateAttributes{rank == 0 ? 0 : below(rank)};
        case OpKind::Reverse:
            return ReverseAttributes{rank == 0 ? std::vector<std::size_t>{} : std::vector<std::size_t>{below(rank)}};
        case OpKind::DynamicSlice: {
            DynamicSliceAttributes made{type.shape};
            if (rank > 0)
                made.sizes.back() = 1;
            return made;
        }
        case OpKind::Gather: {
            GatherAttributes made{rows(rank), type.shape, chance(2)};
            if (rank > 0)
                made.sliceSizes.front() = 1;
            return made;
        }
        case OpKind::Scatter: {
            ScatterAttributes made{rows(rank), std::nullopt, chance(2), chance(2)};
            if (chance(2))
                made.combiner = pick({ReduceKind::Sum, ReduceKind::Max, ReduceKind::Product});
            return made;
        }
        case OpKind::PropagationBarrier:
            return BarrierAttributes{chance(2), chance(2)};
        case OpKind::Receive:
            return TransferAttributes{
                {DType::F32, shape()}, static_cast<std::int32_t>(below(4)), static_cast<std::int32_t>(below(99))};
        default:
            return isCollective(kind) ? OpAttributes(collective(kind, type)) : OpAttributes();
        }
    }

    /// Rows of an array by their numbers.
    static IndexingDims rows(std::size_t rank)
    {
        IndexingDims dims;
        for (std::size_t i = 1; i < rank; ++i)
            dims.window.push_back(i);
        dims.collapsed = {0};
        dims.indexMap = {0};
        dims.indexVectorDim = 1;
        return dims;
    }

    std::vector<ValueId> operandsOf(OpKind kind, ValueId first, const std::vector<ValueId>& known)
    {
        const TensorType type = m_builder->type(first);
        const std::size_t rank = type.shape.size();
        const auto starts = [&](std::vector<ValueId> operands) {
            for (std::size_t i = 0; i < rank; ++i)
                operands.push_back(m_builder->splat({DType::S32, {}}, static_cast<double>(i)));
            return operands;
        };
        switch (kind) {
        case OpKind::RandomBits:
            return {m_builder->function().arguments().back()};
        case OpKind::Clamp:
            return {first, first, first};
        case OpKind::Pad:
            return isComplex(type.dtype) || type.dtype == DType::Token
                ? std::vector<ValueId>{}
                : std::vector<ValueId>{first, m_builder->splat({type.dtype, {}}, 1.0)};
        case OpKind::Concatenate:
            return {first, first};
        case OpKind::DynamicSlice:
            return starts({first});
        case OpKind::DynamicUpdateSlice:
            return starts({first, first});
        case OpKind::Gather:
        case OpKind::Scatter: {
            if (rank == 0 || type.shape.front() == 0)
                return {};
            const ValueId indices = m_builder->iota({DType::S32, {3, 1}}, 0);
            if (kind == OpKind::Gather)
                return {first, indices};
            GatherAttributes gather{rows(rank), type.shape, false};
            gather.sliceSizes.front() = 1;
            return {first, indices, m_builder->add(OpKind::Gather, {first, indices}, gather)};
        }
        case OpKind::OptimizationBarrier:
            return {first, any(known)};
        case OpKind::DotGeneral:
            return {first, chance(2) ? first : any(known)};
        case OpKind::Select:
            return isComplex(type.dtype) || type.dtype == DType::Token
                ? std::vector<ValueId>{}
                : std::vector<ValueId>{m_builder->compare(CompareDirection::Less, first, first), first, first};
        default:
            break;
        }
        switch (opInfo(kind).opClass) {
        case OpClass::Binary:
            return {first, chance(2) ? first : any(known)};
        case OpClass::Leaf:
        case OpClass::Transfer:
            return {};
        default:
            return {first};
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
            if (kind == OpKind::Repeat || kind == OpKind::Send || (kind == OpKind::RandomBits && m_builder->block().index != 0))
                continue;
            const ValueId first = last(known);
            if (opInfo(kind).opClass == OpClass::Control) {
                if (loops > 0)
                    withBlocks(kind, known, first, loops - 1);
                continue;
            }
            if (isKept(kind)) {
                other(known, first, loops);
                continue;
            }
            const std::vector<ValueId> operands = operandsOf(kind, first, known);
            OpAttributes made = attributes(kind, m_builder->type(first));
            std::vector<TensorType> types;
            for (const ValueId operand : operands)
                types.push_back(m_builder->type(operand));
            const auto results = resultTypes(kind, made, types);
            if (!results || results->front().elements() > 4096)
                continue;
            const std::vector<ValueId> values = m_builder->addMany(kind, operands, made);
            for (const ValueId result : values)
                addNotes(result, fmt::format("value.{}", result.index));
            auto& resultSharding = m_builder->function()[values.front()].sharding;
            if (isCollective(kind) && resultSharding
                && resultSharding->mesh != 0) // axes of collectives are of their result's mesh
                resultSharding.reset();
            if (kind == OpKind::ShardingConstraint && chance(2))
                resultSharding = std::get<ConstraintAttributes>(made).sharding;
            if (kind != OpKind::Reduce) // of which two lines are written
                keepSome(values.front());
            known.insert(known.end(), values.begin(), values.end());
        }
    }

    void keepSome(ValueId result)
    {
        Function& function = m_builder->function();
        if (!chance(4))
            return;
        KeptText text = *kept();
        if (chance(2))
            text.location = "loc(\"f\"(\"x.py\":3:4))";
        if (text != KeptText())
            function[function[result].producer].kept = std::make_shared<const KeptText>(std::move(text));
    }

    /// A block that yields values of the types of some arguments of its, computed or not.
    void fillBlock(const std::vector<ValueId>& arguments, std::size_t yields, int loops, bool isSingle = false)
    {
        std::vector<ValueId> inside = arguments;
        if (inside.empty())
            inside.push_back(m_builder->splat({DType::F32, {}}, 2.0));
        if (!isSingle)
            fill(inside, 3, loops);
        std::vector<ValueId> yielded;
        for (std::size_t i = 0; i < yields; ++i) {
            ValueId next = arguments[i];
            for (const ValueId value : inside) {
                if (m_builder->type(value) == m_builder->type(next) && chance(2))
                    next = value;
            }
            yielded.push_back(next);
        }
        m_builder->setResults(yielded);
    }

    std::vector<TensorType> typesOf(const std::vector<ValueId>& values)
    {
        std::vector<TensorType> types;
        for (const ValueId value : values)
            types.push_back(m_builder->type(value));
        return types;
    }

    void withBlocks(OpKind kind, std::vector<ValueId>& known, ValueId first, int loops)
    {
        const BlockId outer = m_builder->block();
        std::vector<ValueId> operands{first, any(known)};
        OpId op;
        std::vector<TensorType> results{m_builder->type(first)};
        if (kind == OpKind::While) {
            op = m_builder->beginOp(kind, operands, WhileAttributes{operands.size()});
            m_builder->beginBody(op, typesOf(operands));
            m_builder->setResults(
                {m_builder->add(OpKind::Constant, {}, ConstantAttributes{{DType::Pred, {}}, {std::int64_t{0}}})});
            m_builder->setBlock(outer);
            fillBlock(m_builder->beginBody(op, typesOf(operands)), operands.size(), loops);
            results = typesOf(operands);
        } else if (kind == OpKind::Case) {
            const bool isIf = chance(2);
            if (operands[0] == operands[1]) // what is used twice is one operand in the text
                operands.pop_back();
            const std::vector<TensorType> used = typesOf(operands);
            operands.insert(operands.begin(), m_builder->splat({isIf ? DType::Pred : DType::S32, {}}, 1.0));
            op = m_builder->beginOp(kind, operands, {});
            for (std::size_t i = 0; i < (isIf ? 2 : 1 + below(3)); ++i) {
                m_builder->setBlock(outer);
                // What no branch uses is not an operand in the text.
                const std::vector<ValueId> arguments = m_builder->beginBody(op, used);
                const ValueId both = m_builder->addMany(OpKind::OptimizationBarrier, arguments).front();
                m_builder->setResults({both});
            }
        } else {
            if (m_builder->type(first).shape.empty() || m_builder->type(first).shape[0] % 2 != 0)
                return;
            TensorSharding split = TensorSharding::replicatedOf(m_builder->type(first).shape.size());
            split.dims[0].axes = {{0, 1, 2}};
            ComputationAttributes made{chance(2) ? "named" : "", {split}, {split}, {}};
            TensorType piece = m_builder->type(first);
            if (made.name.empty()) {
                made.manualAxes = {0};
                piece.shape[0] /= 2;
            } else if (chance(2)) {
                made.inShardings.clear();
            }
            op = m_builder->beginOp(kind, {first}, made);
            // A random key is seen in the function only.
            fillBlock(m_builder->beginBody(op, {{piece}}), 1, loops);
        }
        for (const ValueId result : m_builder->endOp(op, results)) {
            addNotes(result, fmt::format("blocks.{}", result.index));
            known.push_back(result);
        }
        keepSome(m_builder->function()[op].results.front());
    }

    void other(std::vector<ValueId>& known, ValueId first, int loops)
    {
        const TensorType type = m_builder->type(first);
        const BlockId outer = m_builder->block();
        OtherAttributes made;
        made.results = {type};
        std::vector<ValueId> operands{first};
        std::size_t blocks = 0;
        std::vector<TensorType> arguments;
        const auto property = [](const char* name, const char* value) { return KeptAttribute{name, value, true, {}, {}}; };
        switch (below(type.dtype == DType::Token ? 2 : 9)) {
        case 0:
            made.name = "test.thing";
            made.attributes = {property("a", "1 : i64"), property("b", "#test.c<1>"), {"d", "", false, {}, {}}};
            made.results = {type, type, {DType::Token, {}}};
            blocks = loops > 0 ? below(3) : 0;
            arguments = {type};
            break;
        case 1:
            made.name = "stablehlo.custom_call";
            made.attributes
                = {{"backend_config", "\"x\"", false, {}, {}}, {"call_target_name", "\"Some.Target\"", false, {}, {}}};
            made.results = {type, {DType::Token, {}}};
            break;
        case 2:
            made.name = "chlo.bessel_i1e";
            break;
        case 3:
            made.name = "chlo.zeta";
            break;
        case 4:
            made.name = "stablehlo.uniform_quantize";
            made.attributes = {{"exponent_bits", "5 : i32", true, {5}, {}}, {"mantissa_bits", "10 : i32", true, {10}, {}}};
            break;
        case 5:
            made.name = "stablehlo.rng_bit_generator";
            made.attributes = {{"rng_algorithm", "#stablehlo<rng_algorithm THREE_FRY>", true, {}, {}}};
            made.results = {type, {DType::U32, {4}}};
            break;
        case 6:
            made.name = "stablehlo.map";
            made.attributes = {{"odd", "1 : i64", false, {}, {}}};
            break;
        case 7: {
            made.name = "test.pretty";
            made.attributes = {{"", fmt::format(" \x01 by [1, \"2\"] : {}", tensorOf(type)), false, {}, {}}};
            break;
        }
        default:
            if ((isComplex(type.dtype) && type.elements() != 1) || type.dtype == DType::Token)
                return; // there is no scalar of its type to start from
            made.name = "stablehlo.reduce";
            made.attributes = {{"dimensions", "array<i64>", true, {}, {}}};
            made.results = {type, {DType::F32, type.shape}};
            operands
                = {first, m_builder->broadcast(m_builder->splat({DType::F32, {}}, 1.0), type.shape, {}), ValueId(), ValueId()};
            operands[2] = isComplex(type.dtype) ? m_builder->reshape(first, {}) : m_builder->splat({type.dtype, {}}, 0.0);
            operands[3] = m_builder->splat({DType::F32, {}}, 0.0);
            arguments = {{type.dtype, {}}, {DType::F32, {}}, {type.dtype, {}}, {DType::F32, {}}};
            blocks = 1;
        }
        const bool isVerbatim = made.name == "test.pretty"; // in whose text nothing of ours can stand
        if (isVerbatim)
            m_builder->setPhase(Phase::Forward);
        const OpId op = m_builder->beginOp(OpKind::Other, operands, made);
        for (std::size_t i = 0; i < blocks; ++i) {
            m_builder->setBlock(outer);
            const bool isReducer = made.name == "stablehlo.reduce";
            fillBlock(m_builder->beginBody(op, arguments), isReducer ? 2 : 1, isReducer ? 0 : loops - 1, isReducer);
        }
        for (const ValueId result : m_builder->endOp(op, made.results)) {
            if (!isVerbatim)
                addNotes(result, fmt::format("other.{}", result.index));
            known.push_back(result);
        }
        if (chance(4))
            m_builder->function()[op].kept = std::make_shared<const KeptText>(KeptText{{}, "loc(unknown)"});
    }

    static std::string tensorOf(const TensorType& type)
    {
        std::string text = "tensor<";
        for (const std::int64_t size : type.shape)
            text += fmt::format("{}x", size);
        return text + dtypeName(type.dtype) + ">";
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
            ValueId value = any(known);
            if (m_builder->type(value).dtype == DType::Token) // is in no array
                value = m_builder->splat({DType::F32, {}}, 2.0);
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
        while (chance(2)) {
            const ValueId value = any(inside);
            if (m_builder->type(value).dtype != DType::Token)
                yielded.push_back(value);
        }
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

void TestProgramRoundTrip::reductionsOfEveryType_data()
{
    QTest::addColumn<int>("dtype");
    QTest::addColumn<int>("kind");
    QTest::addColumn<QString>("start");
    const auto row = [](DType dtype, ReduceKind kind, const char* start) {
        QTest::addRow("%s %d", dtypeName(dtype), static_cast<int>(kind))
            << static_cast<int>(dtype) << static_cast<int>(kind) << start;
    };
    row(DType::F32, ReduceKind::Max, "0xFF800000");
    row(DType::F8E5M2, ReduceKind::Min, "0x7C");
    row(DType::F8E4M3FN, ReduceKind::Min, "4.480000e+02"); // has no infinity: 0x7F is not a number
    row(DType::F8E4M3FN, ReduceKind::Max, "-4.480000e+02");
    row(DType::S4, ReduceKind::Max, "-8");
    row(DType::U4, ReduceKind::Min, "15");
    row(DType::S64, ReduceKind::Max, "-9223372036854775808");
    row(DType::C64, ReduceKind::Sum, "(0.000000e+00,0.000000e+00)");
    row(DType::C64, ReduceKind::Product, "(1.000000e+00,0.000000e+00)");
    row(DType::C128, ReduceKind::Product, "(1.000000e+00,0.000000e+00)");
}

/// With the identity of the type as StableHLO's readers take it, which is not a part of the reduction when it is read back.
void TestProgramRoundTrip::reductionsOfEveryType()
{
    QFETCH(int, dtype);
    QFETCH(int, kind);
    QFETCH(QString, start);
    Program program;
    Function function;
    function.name = "main";
    Builder builder(function);
    const ValueId x = builder.argument({static_cast<DType>(dtype), {4}}, "x");
    builder.setResults({builder.add(OpKind::Reduce, {x}, ReduceAttributes{static_cast<ReduceKind>(kind), {0}})}, {"y"});
    program.functions.push_back(std::move(function));
    const QString text = QString::fromStdString(writeProgram(program));
    QVERIFY2(text.contains("dense<" + start + ">"), qPrintable(text));
    const std::string difference = roundTripDifference(program);
    QVERIFY2(difference.empty(), difference.c_str());
}

void TestProgramRoundTrip::random()
{
    for (const std::uint32_t seed : tests::seedRange(0, 300)) {
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
    std::set<std::string> kept;
    for (const std::uint32_t seed : tests::seedRange(0, 300)) {
        for (const Function& function : RandomProgram(seed).make().functions)
            forEachOp(function, [&](OpId op) {
                seen.insert(function[op].kind);
                kept.insert(std::string(opName(function[op])));
            });
    }
    for (const char* name :
        {"test.thing", "test.pretty", "stablehlo.reduce", "stablehlo.custom_call", "stablehlo.rng_bit_generator"})
        QVERIFY2(kept.contains(name), name);
    for (const OpInfo& info : kOpTable) // kept ones by name, above
        QVERIFY2(isKept(info.kind) || seen.contains(info.kind), info.name());
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

/// What is kept as text says the same when it is read again, whatever its strings have: control characters are escaped.
void TestProgramRoundTrip::controlCharactersInStrings()
{
    using namespace std::string_literals;
    const std::string text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                             "  %0 = test.thing %x {note = \"a\0\x01\\\x02\\\"b\\\\\"} : (tensor<4xf32>) -> tensor<4xf32>\n"
                             "  return %0 : tensor<4xf32>\n}\n"s;
    const std::string written = writeProgram(valueOf(readProgram(text, "x.mlir")));
    QVERIFY2(written.find("note = \"a\\00\\01\\02\\\"b\\\\\"") != std::string::npos, written.c_str());
    QCOMPARE(writeProgram(valueOf(readProgram(written, "again.mlir"))), written);
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

void TestProgramRoundTrip::mutatedTextNeverCrashes_data()
{
    tests::addSeeds({11, 12});
}

void TestProgramRoundTrip::mutatedTextNeverCrashes()
{
    QFETCH(quint64, seed);
    std::mt19937_64 random(seed);
    const std::string text = writeProgram(RandomProgram(5).make()) + writeProgram(RandomProgram(8).make());
    const std::string_view pieces[] = {"{", "}", "(", ")", "[", "]", "<", ">", "\"", "%", "#", "@", "->", "9223372036854775808",
        "tensor<", "dense<", "?", "-", ":", "\n", std::string_view("\0", 1), "loc("};
    for (int i = 0; i < 2500; ++i) {
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

MESHWRIGHT_TEST(TestProgramRoundTrip)

} // namespace tst_program_round_trip

#include "tst_program_round_trip.moc"
