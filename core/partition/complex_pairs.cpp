// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/complex_pairs.h"

#include "core/program/builder.h"
#include "core/program/other_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace meshwright {

namespace {

/// What stands for a value: its parts, or a real value itself.
struct Parts {
    ValueId real;
    ValueId imaginary; ///< invalid: the value is real

    bool isPair() const { return imaginary.valid(); }
};

/// Complex arithmetic, written as ops on parts.
class PairMath {
public:
    explicit PairMath(Builder& builder)
        : m_builder(builder)
    {
    }

    ValueId add(ValueId a, ValueId b) { return m_builder.binary(OpKind::Add, a, b); }
    ValueId subtract(ValueId a, ValueId b) { return m_builder.binary(OpKind::Subtract, a, b); }
    ValueId multiply(ValueId a, ValueId b) { return m_builder.binary(OpKind::Multiply, a, b); }
    ValueId divide(ValueId a, ValueId b) { return m_builder.binary(OpKind::Divide, a, b); }
    ValueId negate(ValueId a) { return m_builder.unary(OpKind::Negate, a); }
    ValueId unary(OpKind kind, ValueId a) { return m_builder.unary(kind, a); }

    ValueId constant(ValueId like, double value)
    {
        const TensorType type = m_builder.type(like);
        return m_builder.broadcastScalar(m_builder.splat({type.dtype, {}}, value), type.shape);
    }

    /// `chosen` where a is zero, else `otherwise`.
    ValueId whereZero(ValueId a, ValueId chosen, ValueId otherwise)
    {
        return m_builder.select(m_builder.compare(CompareDirection::Equal, a, constant(a, 0.0)), chosen, otherwise);
    }

    Parts complete(Parts z) { return z.isPair() ? z : Parts{z.real, constant(z.real, 0.0)}; }
    Parts scaled(Parts z, ValueId by) { return {multiply(z.real, by), multiply(z.imaginary, by)}; }

    Parts multiply(Parts a, Parts b)
    {
        return {subtract(multiply(a.real, b.real), multiply(a.imaginary, b.imaginary)),
            add(multiply(a.real, b.imaginary), multiply(a.imaginary, b.real))};
    }

    /// With the divisor's parts brought near 1 first, so that their squares neither overflow nor vanish.
    Parts divide(Parts a, Parts b)
    {
        const ValueId scale = larger(b);
        const Parts near{divide(b.real, scale), divide(b.imaginary, scale)};
        const ValueId square = add(multiply(near.real, near.real), multiply(near.imaginary, near.imaginary));
        const Parts product = multiply(a, {near.real, negate(near.imaginary)});
        const ValueId by = multiply(square, scale);
        return {divide(product.real, by), divide(product.imaginary, by)};
    }

    ValueId larger(Parts z)
    {
        return m_builder.binary(OpKind::Maximum, unary(OpKind::Abs, z.real), unary(OpKind::Abs, z.imaginary));
    }
    ValueId smaller(Parts z)
    {
        return m_builder.binary(OpKind::Minimum, unary(OpKind::Abs, z.real), unary(OpKind::Abs, z.imaginary));
    }

    ValueId magnitude(Parts z)
    {
        const ValueId larger = this->larger(z);
        const ValueId ratio = divide(smaller(z), larger);
        const ValueId length = multiply(larger, unary(OpKind::Sqrt, add(constant(ratio, 1.0), multiply(ratio, ratio))));
        return whereZero(larger, larger, length);
    }

    /// Of a real number it is real, where the size is infinite too.
    Parts exponential(Parts z)
    {
        const ValueId size = unary(OpKind::Exp, z.real);
        return {multiply(size, unary(OpKind::Cosine, z.imaginary)), turned(size, z.imaginary)};
    }

    /// e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2): nothing is lost next to zero.
    Parts exponentialMinusOne(Parts z)
    {
        const ValueId sine = unary(OpKind::Sine, halfOf(z.imaginary));
        const ValueId square = multiply(sine, sine);
        return {subtract(multiply(unary(OpKind::Expm1, z.real), unary(OpKind::Cosine, z.imaginary)), add(square, square)),
            turned(unary(OpKind::Exp, z.real), z.imaginary)};
    }

    Parts logarithm(Parts z)
    {
        // Next to a length of 1: log sqrt(m^2 + n^2) = log1p((m - 1) (m + 1) + n^2) / 2.
        const ValueId larger = this->larger(z);
        const ValueId smaller = this->smaller(z);
        const ValueId one = constant(larger, 1.0);
        const ValueId over = add(multiply(subtract(larger, one), add(larger, one)), multiply(smaller, smaller));
        const ValueId isNear = m_builder.compare(CompareDirection::Less, unary(OpKind::Abs, over), constant(over, 0.5));
        return {m_builder.select(isNear, halfOf(unary(OpKind::Log1p, over)), unary(OpKind::Log, magnitude(z))), angle(z)};
    }

    /// Next to zero: log |1 + z| = log1p(a (a + 2) + b^2) / 2.
    Parts logarithmOfOnePlus(Parts z)
    {
        const ValueId over = add(multiply(z.real, add(z.real, constant(z.real, 2.0))), multiply(z.imaginary, z.imaginary));
        const ValueId isNear = m_builder.compare(CompareDirection::Less, unary(OpKind::Abs, over), constant(over, 0.5));
        const Parts far = logarithm(plusOne(z));
        return {m_builder.select(isNear, halfOf(unary(OpKind::Log1p, over)), far.real), far.imaginary};
    }

    /// The root with a real part that is not negative.
    Parts root(Parts z)
    {
        const ValueId half = halfOf(add(magnitude(z), unary(OpKind::Abs, z.real)));
        const ValueId larger = unary(OpKind::Sqrt, half);
        const ValueId smaller = whereZero(larger, larger, divide(z.imaginary, add(larger, larger)));
        const ValueId isLeft = isNegative(z.real);
        // The reciprocal of -0 is negative.
        const ValueId isBelow
            = m_builder.binary(OpKind::Or, isNegative(z.imaginary), isNegative(divide(constant(z.imaginary, 1.0), z.imaginary)));
        return {m_builder.select(isLeft, unary(OpKind::Abs, smaller), larger),
            m_builder.select(isLeft, m_builder.select(isBelow, negate(larger), larger), smaller)};
    }

    Parts power(Parts base, Parts exponent)
    {
        const Parts made = exponential(multiply(exponent, logarithm(base)));
        const ValueId size = magnitude(base);
        const ValueId none = magnitude(exponent);
        const ValueId ofZero = whereZero(none, constant(size, 1.0), constant(size, 0.0));
        return {whereZero(size, ofZero, made.real), whereZero(size, constant(size, 0.0), made.imaginary)};
    }

    /// sin z = sin a cosh b + i cos a sinh b, cos z = cos a cosh b - i sin a sinh b.
    Parts sine(Parts z) { return {turned(even(z.imaginary), z.real), multiply(unary(OpKind::Cosine, z.real), odd(z.imaginary))}; }
    Parts cosine(Parts z)
    {
        return {multiply(unary(OpKind::Cosine, z.real), even(z.imaginary)), negate(turned(odd(z.imaginary), z.real))};
    }

    /// With t = exp(-2 |a|): (sign(a) (1 - t^2) + 2 i t sin 2b) / (1 + t^2 + 2 t cos 2b).
    Parts hyperbolicTangent(Parts z)
    {
        const ValueId size = unary(OpKind::Abs, z.real);
        const ValueId t = unary(OpKind::Exp, multiply(constant(size, -2.0), size));
        const ValueId above = negate(unary(OpKind::Expm1, multiply(constant(size, -4.0), size)));
        const ValueId twice = add(z.imaginary, z.imaginary);
        const ValueId below = add(add(constant(t, 1.0), multiply(t, t)), multiply(add(t, t), unary(OpKind::Cosine, twice)));
        return {divide(multiply(unary(OpKind::Sign, z.real), above), below),
            divide(multiply(add(t, t), unary(OpKind::Sine, twice)), below)};
    }

    /// With w = e^-|a| e^(ib), turned back where a is not negative: w / (1 + w) of a negative a, else 1 / (1 + w).
    Parts logistic(Parts z)
    {
        const ValueId isLeft = isNegative(z.real);
        const Parts w
            = exponential({negate(unary(OpKind::Abs, z.real)), m_builder.select(isLeft, z.imaginary, negate(z.imaginary))});
        const ValueId one = constant(z.real, 1.0);
        return divide(
            {m_builder.select(isLeft, w.real, one), m_builder.select(isLeft, w.imaginary, constant(one, 0.0))}, plusOne(w));
    }

    /// Of length 1, or zero.
    Parts sign(Parts z)
    {
        const ValueId size = magnitude(z);
        return {whereZero(size, size, divide(z.real, size)), whereZero(size, size, divide(z.imaginary, size))};
    }

    /// A value of its own, which may have another name and sharding.
    ValueId same(ValueId value)
    {
        return m_builder.add(OpKind::Reshape, {value}, ReshapeAttributes{Shape(m_builder.type(value).shape)});
    }
    Parts inverse(Parts z) { return divide(complete({constant(z.real, 1.0), {}}), z); }
    Parts plusOne(Parts z) { return {add(z.real, constant(z.real, 1.0)), z.imaginary}; }

private:
    ValueId angle(Parts z) { return m_builder.binary(OpKind::Atan2, z.imaginary, z.real); }
    ValueId isNegative(ValueId a) { return m_builder.compare(CompareDirection::Less, a, constant(a, 0.0)); }

    /// size sin(angle), and zero where the angle is, whatever the size.
    ValueId turned(ValueId size, ValueId angle) { return whereZero(angle, angle, multiply(size, unary(OpKind::Sine, angle))); }

    /// cosh and sinh.
    ValueId even(ValueId b) { return halfOf(add(unary(OpKind::Exp, b), unary(OpKind::Exp, negate(b)))); }
    ValueId odd(ValueId b) { return halfOf(subtract(unary(OpKind::Expm1, b), unary(OpKind::Expm1, negate(b)))); }
    ValueId halfOf(ValueId a) { return multiply(a, constant(a, 0.5)); }

    Builder& m_builder;
};

/// Element-wise ops of complex numbers; all others are refused.
struct ElementwiseRow {
    OpKind kind;
    Parts (*write)(PairMath& m, Parts a, Parts b);
};
constexpr ElementwiseRow kElementwise[] = {
    {OpKind::Multiply, [](PairMath& m, Parts a, Parts b) { return m.multiply(a, b); }},
    {OpKind::Square, [](PairMath& m, Parts a, Parts) { return m.multiply(a, a); }},
    {OpKind::Divide, [](PairMath& m, Parts a, Parts b) { return m.divide(a, b); }},
    {OpKind::Power, [](PairMath& m, Parts a, Parts b) { return m.power(a, b); }},
    {OpKind::Abs,
        [](PairMath& m, Parts a, Parts) {
            return Parts{m.magnitude(a), {}};
        }},
    {OpKind::Exp, [](PairMath& m, Parts a, Parts) { return m.exponential(a); }},
    {OpKind::Expm1, [](PairMath& m, Parts a, Parts) { return m.exponentialMinusOne(a); }},
    {OpKind::Log, [](PairMath& m, Parts a, Parts) { return m.logarithm(a); }},
    {OpKind::Log1p, [](PairMath& m, Parts a, Parts) { return m.logarithmOfOnePlus(a); }},
    {OpKind::Sqrt, [](PairMath& m, Parts a, Parts) { return m.root(a); }},
    {OpKind::Rsqrt, [](PairMath& m, Parts a, Parts) { return m.inverse(m.root(a)); }},
    {OpKind::Sine, [](PairMath& m, Parts a, Parts) { return m.sine(a); }},
    {OpKind::Cosine, [](PairMath& m, Parts a, Parts) { return m.cosine(a); }},
    {OpKind::Tanh, [](PairMath& m, Parts a, Parts) { return m.hyperbolicTangent(a); }},
    {OpKind::Logistic, [](PairMath& m, Parts a, Parts) { return m.logistic(a); }},
    {OpKind::Sign, [](PairMath& m, Parts a, Parts) { return m.sign(a); }},
    {OpKind::Real,
        [](PairMath& m, Parts a, Parts) {
            return Parts{m.same(a.real), {}};
        }},
    {OpKind::Imag,
        [](PairMath& m, Parts a, Parts) {
            return Parts{m.same(a.imaginary), {}};
        }},
    {OpKind::Conjugate,
        [](PairMath& m, Parts a, Parts) {
            return Parts{m.same(a.real), m.negate(a.imaginary)};
        }},
};

/// True for ops that do with each part what they do with the whole.
bool isDoneByParts(const Op& op)
{
    switch (op.kind) {
    case OpKind::Negate:
    case OpKind::Add:
    case OpKind::Subtract:
    case OpKind::Select:
    case OpKind::BroadcastInDim:
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Slice:
    case OpKind::Pad:
    case OpKind::Concatenate:
    case OpKind::Reverse:
    case OpKind::DynamicSlice:
    case OpKind::DynamicUpdateSlice:
    case OpKind::Gather:
    case OpKind::ShardingConstraint:
    case OpKind::PropagationBarrier:
    case OpKind::OptimizationBarrier:
    case OpKind::Reshard:
    case OpKind::OwnAllGather:
    case OpKind::OwnAllToAll:
    case OpKind::OwnPermute:
        return true;
    case OpKind::Scatter:
        return !op.as<ScatterAttributes>().combiner || op.as<ScatterAttributes>().combiner == ReduceKind::Sum;
    case OpKind::Reduce:
        return op.as<ReduceAttributes>().kind == ReduceKind::Sum;
    case OpKind::AllReduce:
    case OpKind::ReduceScatter:
        return op.as<CollectiveAttributes>().kind == ReduceKind::Sum;
    default:
        return isCollective(op.kind);
    }
}

/// Writes the function anew.
class PairWriter {
public:
    explicit PairWriter(const Function& source)
        : m_source(source)
        , m_builder(m_made)
        , m_math(m_builder)
        , m_partsOf(source.values.size())
    {
        m_made.name = source.name;
        m_made.kept = source.kept;
    }

    Result<Function> run()
    {
        for (const ValueId argument : m_source.arguments())
            addArgument(argument);
        writeOps(m_source.body());
        if (!m_problems.empty())
            return m_problems;
        m_builder.setResults(flat(m_source.results()), resultNames());
        for (std::size_t i = 0; i < m_source.resultShardings.size(); ++i)
            m_made.resultShardings.insert(
                m_made.resultShardings.end(), partCount(m_source.results()[i]), m_source.resultShardings[i]);
        for (const std::vector<ValueId>& group : m_source.shardingGroups)
            m_made.shardingGroups.push_back(flat(group));
        for (const Donation& donation : m_source.donations) {
            for (std::size_t part = 0; part < partCount(m_source.results()[donation.result]); ++part)
                m_made.donations.push_back({placeOf(m_source.arguments(), donation.argument) + part,
                    placeOf(m_source.results(), donation.result) + part});
        }
        return std::move(m_made);
    }

private:
    bool isComplexValue(ValueId value) const { return isComplex(m_source[value].type.dtype); }
    std::size_t partCount(ValueId value) const { return isComplexValue(value) ? 2 : 1; }
    const Parts& parts(ValueId value) const { return m_partsOf[value.at()]; }

    std::vector<ValueId> flat(const std::vector<ValueId>& values) const
    {
        std::vector<ValueId> all;
        for (const ValueId value : values) {
            all.push_back(parts(value).real);
            if (parts(value).isPair())
                all.push_back(parts(value).imaginary);
        }
        return all;
    }

    /// Where value i of a list is among the parts of all of them.
    std::size_t placeOf(const std::vector<ValueId>& values, std::size_t i) const
    {
        std::size_t place = 0;
        for (std::size_t before = 0; before < i; ++before)
            place += partCount(values[before]);
        return place;
    }

    std::vector<std::string> resultNames() const
    {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < m_source.resultNames.size(); ++i) {
            const std::string& name = m_source.resultNames[i];
            const bool isPair = isComplexValue(m_source.results()[i]);
            names.push_back(isPair && !name.empty() ? name + ".real" : name);
            if (isPair)
                names.push_back(name.empty() ? name : name + ".imag");
        }
        return names;
    }

    void note(ValueId from, ValueId to, const char* suffix)
    {
        const Value& source = m_source[from];
        Value& value = m_made[to];
        if (!source.name.empty())
            value.name = source.name + suffix;
        value.role = source.role;
        value.sharding = source.sharding;
        value.annotation = source.annotation;
    }

    void keep(ValueId value, Parts made)
    {
        m_partsOf[value.at()] = made;
        note(value, made.real, made.isPair() ? ".real" : "");
        if (made.isPair())
            note(value, made.imaginary, ".imag");
    }

    void addArgument(ValueId value)
    {
        TensorType type = m_source[value].type;
        type.dtype = realType(type.dtype);
        Parts made{m_builder.argument(type), {}};
        if (isComplexValue(value))
            made.imaginary = m_builder.argument(type);
        keep(value, made);
    }

    void writeOps(const Block& block)
    {
        for (const OpId id : block.ops) {
            const Op& op = m_source[id];
            m_builder.setPhase(op.phase);
            writeOp(op);
            if (!op.results.empty() && !parts(op.results.front()).real.valid())
                return; // reported
        }
    }

    void refuse(const Op& op)
    {
        if (m_refused.insert(std::string(opName(op))).second)
            m_problems.push_back(
                {"MW1231", fmt::format("{} on complex numbers in function \"{}\" is not run", opName(op), m_source.name),
                    "write it with the real and the imaginary parts: jnp.real(x), jnp.imag(x)"});
    }

    void writeOp(const Op& op)
    {
        const auto isComplexOne = [this](ValueId value) { return isComplexValue(value); };
        const bool isReal = std::none_of(op.operands.begin(), op.operands.end(), isComplexOne)
            && std::none_of(op.results.begin(), op.results.end(), isComplexOne);
        if (!op.bodies.empty() && (isReal || opInfo(op.kind).opClass == OpClass::Control))
            return writeWithBodies(op);
        if (isReal)
            return keepAll(op, m_builder.addMany(op.kind, flat(op.operands), op.attributes));
        if (isDoneByParts(op) && op.bodies.empty())
            return writeByParts(op);
        if (op.kind == OpKind::Constant)
            return writeConstant(op);
        if (op.kind == OpKind::Fft)
            return writeFft(op);
        if (op.kind == OpKind::DotGeneral)
            return writeDot(op);
        if (op.kind == OpKind::Convert)
            return writeConvert(op);
        if (op.kind == OpKind::Compare)
            return writeCompare(op);
        if (op.kind == OpKind::Complex)
            return keep(op.results.front(), {m_math.same(parts(op.operands[0]).real), m_math.same(parts(op.operands[1]).real)});
        if (isElementwise(op.kind))
            return writeElementwise(op);
        refuse(op);
    }

    void keepAll(const Op& op, const std::vector<ValueId>& made)
    {
        std::size_t next = 0;
        for (const ValueId result : op.results) {
            Parts both{made[next++], {}};
            if (isComplexValue(result))
                both.imaginary = made[next++];
            keep(result, both);
        }
    }

    /// Operands that are real (indices, a predicate) are those of both parts.
    void writeByParts(const Op& op)
    {
        OpAttributes attributes = op.attributes;
        if (auto* other = std::get_if<OtherAttributes>(&attributes)) {
            for (TensorType& type : other->results)
                type.dtype = realType(type.dtype);
        }
        std::vector<ValueId> real;
        std::vector<ValueId> imaginary;
        for (const ValueId operand : op.operands) {
            real.push_back(parts(operand).real);
            imaginary.push_back(parts(operand).isPair() ? parts(operand).imaginary : parts(operand).real);
        }
        const std::vector<ValueId> reals = m_builder.addMany(op.kind, real, attributes);
        const std::vector<ValueId> imaginaries = m_builder.addMany(op.kind, imaginary, attributes);
        for (std::size_t i = 0; i < op.results.size(); ++i)
            keep(op.results[i], {reals[i], isComplexValue(op.results[i]) ? imaginaries[i] : ValueId()});
    }

    void writeConstant(const Op& op)
    {
        const auto& constant = op.as<ConstantAttributes>();
        const TensorType type{realType(constant.type.dtype), constant.type.shape};
        const auto part = [&](std::size_t which) {
            ConstantAttributes made{type, constant.data};
            if (constant.data.isElided())
                return made;
            const std::string& blob = *std::get<std::shared_ptr<const std::string>>(constant.data.value);
            const auto width = static_cast<std::size_t>(byteSize(type.dtype));
            std::string bytes;
            for (std::size_t at = which * width; at < blob.size(); at += 2 * width)
                bytes += blob.substr(at, width);
            if (bytes.size() == width) // one for all
                made.data.value
                    = type.dtype == DType::F32 ? static_cast<double>(numberAt<float>(bytes)) : numberAt<double>(bytes);
            else
                made.data.value = std::make_shared<const std::string>(std::move(bytes));
            return made;
        };
        keep(op.results.front(), {m_builder.add(OpKind::Constant, {}, part(0)), m_builder.add(OpKind::Constant, {}, part(1))});
    }

    template <typename T>
    static T numberAt(const std::string& bytes)
    {
        T number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        return number;
    }

    void writeFft(const Op& op)
    {
        const ValueId result = op.results.front();
        OtherAttributes attributes{"mw.fft_of_pairs", op.as<OtherAttributes>().attributes, {}, 0};
        for (std::size_t part = 0; part < partCount(result); ++part)
            attributes.results.push_back({realType(m_source[result].type.dtype), m_source[result].type.shape});
        keepAll(op, m_builder.addMany(OpKind::Other, flat(op.operands), std::move(attributes)));
    }

    void writeDot(const Op& op)
    {
        DotAttributes attributes = op.as<DotAttributes>();
        attributes.resultType = realType(attributes.resultType);
        attributes.operandType = realType(attributes.operandType);
        const Parts a = parts(op.operands[0]);
        const Parts b = parts(op.operands[1]);
        const auto dot = [&](ValueId x, ValueId y) { return m_builder.dot(x, y, attributes); };
        keep(op.results.front(),
            {m_math.subtract(dot(a.real, b.real), dot(a.imaginary, b.imaginary)),
                m_math.add(dot(a.real, b.imaginary), dot(a.imaginary, b.real))});
    }

    void writeConvert(const Op& op)
    {
        const Parts from = parts(op.operands.front());
        const DType to = op.as<ConvertAttributes>().dtype;
        const auto part = [&](ValueId value) { return m_builder.add(OpKind::Convert, {value}, ConvertAttributes{realType(to)}); };
        Parts made{part(from.real), {}};
        if (isComplex(to))
            made.imaginary = from.isPair() ? part(from.imaginary) : m_math.constant(made.real, 0.0);
        keep(op.results.front(), made);
    }

    void writeCompare(const Op& op)
    {
        const CompareDirection direction = op.as<CompareAttributes>().direction;
        if (direction != CompareDirection::Equal && direction != CompareDirection::NotEqual)
            return refuse(op);
        const Parts a = parts(op.operands[0]);
        const Parts b = parts(op.operands[1]);
        const OpKind both = direction == CompareDirection::Equal ? OpKind::And : OpKind::Or;
        keep(op.results.front(),
            {m_builder.binary(
                 both, m_builder.compare(direction, a.real, b.real), m_builder.compare(direction, a.imaginary, b.imaginary)),
                {}});
    }

    void writeElementwise(const Op& op)
    {
        const Parts a = m_math.complete(parts(op.operands.front()));
        const Parts b = op.operands.size() > 1 ? m_math.complete(parts(op.operands[1])) : Parts();
        const auto row = std::ranges::find(kElementwise, op.kind, &ElementwiseRow::kind);
        if (row == std::end(kElementwise))
            return refuse(op);
        keep(op.results.front(), row->write(m_math, a, b));
    }

    void writeWithBodies(const Op& op)
    {
        const OpId made = m_builder.beginOp(op.kind, flat(op.operands), attributesOf(op));
        for (const BlockId body : op.bodies) {
            m_builder.beginBody(made, {});
            for (const ValueId argument : m_source[body].arguments)
                addArgument(argument);
            writeOps(m_source[body]);
            if (!m_problems.empty())
                return;
            m_builder.setResults(flat(m_source[body].results));
        }
        std::vector<TensorType> types;
        for (const ValueId result : op.results)
            types.insert(types.end(), partCount(result), {realType(m_source[result].type.dtype), m_source[result].type.shape});
        keepAll(op, m_builder.endOp(made, types));
    }

    /// Numbers of operands, and what is said of each, are those of the parts.
    OpAttributes attributesOf(const Op& op) const
    {
        OpAttributes attributes = op.attributes;
        if (auto* repeat = std::get_if<RepeatAttributes>(&attributes)) {
            const std::size_t carries = placeOf(op.operands, repeat->carries);
            repeat->stacked = placeOf(op.operands, repeat->carries + repeat->stacked) - carries;
            repeat->carries = carries;
        } else if (auto* loop = std::get_if<WhileAttributes>(&attributes)) {
            loop->carries = placeOf(op.operands, loop->carries);
        } else if (auto* computation = std::get_if<ComputationAttributes>(&attributes)) {
            computation->inShardings = ofParts(op.operands, computation->inShardings);
            computation->outShardings = ofParts(op.results, computation->outShardings);
        }
        return attributes;
    }

    std::vector<TensorSharding> ofParts(const std::vector<ValueId>& values, const std::vector<TensorSharding>& shardings) const
    {
        std::vector<TensorSharding> all;
        for (std::size_t i = 0; i < shardings.size(); ++i)
            all.insert(all.end(), partCount(values[i]), shardings[i]);
        return all;
    }

    const Function& m_source;
    Function m_made;
    Builder m_builder;
    PairMath m_math;
    std::vector<Parts> m_partsOf; ///< by value of the source
    std::set<std::string> m_refused;
    Problems m_problems;
};

} // namespace

bool hasComplexValues(const Function& function)
{
    return std::any_of(
        function.values.begin(), function.values.end(), [](const Value& value) { return isComplex(value.type.dtype); });
}

Result<Function> withComplexPairs(const Function& function)
{
    return PairWriter(function).run();
}

} // namespace meshwright
