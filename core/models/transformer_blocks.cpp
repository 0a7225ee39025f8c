// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_blocks.h"

#include "core/models/training_program.h"
#include "core/program/attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>

namespace meshwright {

TransformerBlocks::TransformerBlocks(Builder& builder, const TransformerModel& model, const TrainingOptions& options)
    : m_builder(builder)
    , m_model(model)
    , m_c(model.config)
    , m_options(options)
    , m_activation(options.activationType)
    , m_wide(byteSize(options.parameterType) < byteSize(DType::F32) ? DType::F32 : options.parameterType)
{
}

void TransformerBlocks::enter(Region region)
{
    m_regions.emplace_back(m_builder.function().ops.size(), region);
}

TransformerBlocks::Region TransformerBlocks::regionOf(OpId op) const
{
    const auto after = std::upper_bound(
        m_regions.begin(), m_regions.end(), op.at(), [](std::size_t at, const auto& entry) { return at < entry.first; });
    return after == m_regions.begin() ? Region::Outside : std::prev(after)->second;
}

ValueId TransformerBlocks::scaled(ValueId value, double factor)
{
    return times(value, m_builder.splat(TensorType(m_builder.type(value)), factor));
}

ValueId TransformerBlocks::along(ValueId value, ValueId like, Dims dims)
{
    return m_builder.broadcast(value, Shape(shape(like)), std::move(dims));
}

ValueId TransformerBlocks::biased(ValueId value, const Parameters& parameters, const std::string& name)
{
    const auto bias = parameters.find(name);
    if (bias == parameters.end())
        return value;
    Dims dims(shape(bias->second).size());
    std::iota(dims.begin(), dims.end(), shape(value).size() - dims.size());
    return plus(value, along(m_builder.convert(bias->second, m_builder.type(value).dtype), value, std::move(dims)));
}

ValueId TransformerBlocks::named(ValueId value, const std::string& name)
{
    const ValueId made = value;
    if (const auto found = m_options.constraints.find(name); found != m_options.constraints.end())
        value = m_builder.constrain(value, found->second.sharding, found->second.origin);
    // The derivative of attention reads all its results: those are kept, and the constraint on one of them is repeated.
    const OpId producer = m_builder.function()[made].producer;
    const bool isAttention = producer.valid() && m_builder.function()[producer].kind == OpKind::Attention;
    noteKept(isAttention ? made : value, name);
    return m_builder.named(value, name);
}

void TransformerBlocks::noteKept(ValueId value, const std::string& name)
{
    const auto isAmong = [&](const std::vector<std::string>& names) {
        return std::any_of(
            names.begin(), names.end(), [&](const std::string& one) { return one != kLayerInput && name.ends_with("." + one); });
    };
    const OpId producer = m_builder.function()[value].producer;
    if (producer.valid() && isAmong(m_model.kept))
        m_kept.insert(producer);
    if (producer.valid() && isAmong(m_model.offloaded))
        m_offloaded.insert(producer);
}

void TransformerBlocks::offloadInput(OpId op)
{
    if (op.valid() && std::ranges::find(m_model.offloaded, kLayerInput) != m_model.offloaded.end())
        m_offloaded.insert(op);
}

DType TransformerBlocks::productType() const
{
    return byteSize(m_activation) < byteSize(m_options.matmulType) ? m_activation : m_options.matmulType;
}

ValueId TransformerBlocks::product(ValueId lhs, ValueId rhs, DotAttributes attributes)
{
    attributes.operandType = productType();
    return m_builder.dot(m_builder.convert(lhs, m_activation), m_builder.convert(rhs, m_activation), std::move(attributes));
}

ValueId TransformerBlocks::wideDot(
    ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch, Dims rhsBatch)
{
    return product(lhs, rhs,
        {std::move(lhsBatch), std::move(rhsBatch), std::move(lhsContracting), std::move(rhsContracting), m_wide, m_wide});
}

ValueId TransformerBlocks::dot(ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch, Dims rhsBatch)
{
    return product(lhs, rhs,
        {std::move(lhsBatch), std::move(rhsBatch), std::move(lhsContracting), std::move(rhsContracting), m_activation,
            m_activation});
}

ValueId TransformerBlocks::projection(
    ValueId x, ValueId weight, const Dims& contracting, const Dims& weightContracting, Dims batch, Dims weightBatch)
{
    const auto rounded = [&](ValueId value, const Dims& contracted, OperandOf operand) {
        if (!m_options.eightBits)
            return value;
        ValueId& made = m_eightBits[{value, contracted}];
        if (!made.valid())
            made = roundedToEightBits(
                m_builder, m_builder.convert(value, m_activation), contracted, *m_options.eightBits, operand);
        return made;
    };
    return dot(rounded(x, contracting, OperandOf::Activation), rounded(weight, weightContracting, OperandOf::Weight), contracting,
        weightContracting, std::move(batch), std::move(weightBatch));
}

ValueId TransformerBlocks::norm(ValueId value, NormKind kind, ValueId scale, ValueId bias)
{
    ValueId x = m_builder.convert(value, m_wide);
    const std::size_t last = shape(x).size() - 1;
    Dims rows(last);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    const auto mean = [&](ValueId of) {
        return scaled(m_builder.reduce(ReduceKind::Sum, of, {last}), 1.0 / static_cast<double>(shape(of)[last]));
    };
    if (kind == NormKind::LayerNorm)
        x = m_builder.binary(OpKind::Subtract, x, along(mean(x), x, rows));
    const ValueId square = mean(times(x, x));
    const ValueId root
        = m_builder.unary(OpKind::Rsqrt, plus(square, m_builder.splat(TensorType(m_builder.type(square)), m_c.normEpsilon)));
    ValueId result = times(times(x, along(root, x, rows)), along(m_builder.convert(scale, m_wide), x, {last}));
    if (bias.valid())
        result = plus(result, along(m_builder.convert(bias, m_wide), x, {last}));
    return m_builder.convert(result, m_activation);
}

ValueId TransformerBlocks::blockNorm(ValueId value, const Parameters& parameters, const std::string& name)
{
    const auto bias = parameters.find(name + ".bias");
    return norm(value, m_c.norm, parameters.at(name + ".scale"), bias == parameters.end() ? ValueId{} : bias->second);
}

ValueId TransformerBlocks::activated(ValueId x)
{
    switch (m_c.activation) {
    case TransformerActivation::Relu: {
        const ValueId zero = m_builder.splat(TensorType(m_builder.type(x)), 0.0);
        return m_builder.select(m_builder.compare(CompareDirection::Greater, x, zero), x, zero);
    }
    case TransformerActivation::Silu:
        return times(x, m_builder.unary(OpKind::Logistic, x));
    case TransformerActivation::Gelu: { // x / 2 (1 + erf(x / sqrt 2))
        const ValueId half = scaled(x, 0.5);
        return plus(half, times(half, m_builder.unary(OpKind::Erf, scaled(x, 1.0 / std::numbers::sqrt2))));
    }
    case TransformerActivation::GeluTanh:
        break;
    }
    // x / 2 (1 + tanh(z)) = x / (1 + exp(-2 z)) with z = sqrt(2 / pi) (x + 0.044715 x^3)
    const ValueId cube = times(times(x, x), x);
    const ValueId z = scaled(plus(x, scaled(cube, 0.044715)), 2.0 * std::sqrt(2.0 / std::numbers::pi));
    return times(x, m_builder.unary(OpKind::Logistic, z));
}

ValueId TransformerBlocks::softcapped(ValueId value, double cap)
{
    return cap > 0.0 ? scaled(m_builder.unary(OpKind::Tanh, scaled(value, 1.0 / cap)), cap) : value;
}

ValueId TransformerBlocks::sliced(Builder& builder, ValueId value, std::size_t dim, std::int64_t start, std::int64_t limit)
{
    const Shape whole = builder.type(value).shape;
    SliceAttributes attributes{Shape(whole.size(), 0), whole, Shape(whole.size(), 1)};
    attributes.starts[dim] = start;
    attributes.limits[dim] = limit;
    return builder.add(OpKind::Slice, {value}, std::move(attributes));
}

ValueId TransformerBlocks::lastPosition(Builder& builder, ValueId value) const
{
    const Shape whole = builder.type(value).shape;
    const std::int64_t end = m_model.zigzag > 0 ? whole[1] / m_model.zigzag : whole[1]; // the first device has the last chunk
    return builder.reshape(sliced(builder, value, 1, end - 1, end), {whole[0], whole[2]});
}

ValueId TransformerBlocks::positions(Builder& builder) const
{
    const TensorType type{DType::S32, {m_model.sequence}};
    const ValueId place = builder.iota(type, 0);
    if (m_model.zigzag == 0)
        return place;
    const auto number = [&](std::int64_t value) { return builder.splat(type, static_cast<double>(value)); };
    const auto binary = [&](OpKind kind, ValueId a, ValueId b) { return builder.binary(kind, a, b); };
    const std::int64_t chunk = m_model.sequence / (2 * m_model.zigzag);
    const ValueId device = binary(OpKind::Divide, place, number(2 * chunk));
    const ValueId rest = binary(OpKind::Subtract, place, binary(OpKind::Multiply, device, number(2 * chunk)));
    const ValueId late
        = binary(OpKind::Subtract, number(2 * m_model.zigzag - 2), device); // the chunk that its second part follows
    const ValueId chunks = builder.select(builder.compare(CompareDirection::Less, rest, number(chunk)), device, late);
    return binary(OpKind::Add, binary(OpKind::Multiply, chunks, number(chunk)), rest);
}

ValueId TransformerBlocks::inOrder(Builder& builder, ValueId value, std::size_t dim) const
{
    if (m_model.zigzag == 0)
        return value;
    GatherAttributes attributes;
    attributes.sliceSizes = builder.type(value).shape;
    attributes.sliceSizes[dim] = 1;
    for (std::size_t other = 0; other < attributes.sliceSizes.size(); ++other) {
        if (other != dim)
            attributes.dims.window.push_back(other);
    }
    attributes.dims.collapsed = {dim};
    attributes.dims.indexMap = {dim};
    attributes.dims.indexVectorDim = 1;
    const ValueId ordered = builder.add(OpKind::Gather, {value, positions(builder)}, std::move(attributes));
    builder.function().shardingGroups.push_back({value, ordered}); // a gather says nothing of what it goes through
    return ordered;
}

TransformerBlocks::Shared TransformerBlocks::sharedParts()
{
    Shared shared;
    if (m_c.position != PositionKind::Rotary || rotaryDims(m_c) == 0)
        return shared;
    const std::int64_t rotated = rotaryDims(m_c);
    const TensorType type{m_wide, {m_model.sequence, rotated / 2}};
    const double step = -2.0 * std::log(m_c.rotaryBase) / static_cast<double>(rotated);
    const ValueId frequency = m_builder.unary(OpKind::Exp, scaled(m_builder.iota(type, 1), step));
    const ValueId place = m_model.zigzag == 0
        ? m_builder.iota(type, 0)
        : m_builder.broadcast(m_builder.convert(positions(m_builder), m_wide), type.shape, {0});
    const ValueId angle = times(place, frequency);
    shared.cosine = m_builder.unary(OpKind::Cosine, angle);
    shared.sine = m_builder.unary(OpKind::Sine, angle);
    return shared;
}

ValueId TransformerBlocks::rotated(ValueId value, const Shared& shared)
{
    if (!shared.cosine.valid())
        return value;
    const ValueId x = m_builder.convert(value, m_wide);
    const std::int64_t all = rotaryDims(m_c);
    const ValueId first = sliced(m_builder, x, 3, 0, all / 2);
    const ValueId second = sliced(m_builder, x, 3, all / 2, all);
    const ValueId cosine = along(shared.cosine, first, {1, 3});
    const ValueId sine = along(shared.sine, first, {1, 3});
    std::vector<ValueId> parts = {m_builder.binary(OpKind::Subtract, times(first, cosine), times(second, sine)),
        plus(times(second, cosine), times(first, sine))};
    if (all < shape(x)[3])
        parts.push_back(sliced(m_builder, x, 3, all, shape(x)[3]));
    return m_builder.convert(m_builder.add(OpKind::Concatenate, parts, ConcatenateAttributes{3}), m_activation);
}

ValueId TransformerBlocks::visible(ValueId window)
{
    const TensorType type{DType::S32, {m_model.sequence, m_model.sequence}};
    const ValueId query = m_builder.iota(type, 0);
    const ValueId key = m_builder.iota(type, 1);
    const ValueId before = m_builder.compare(CompareDirection::GreaterEqual, query, key);
    if (!window.valid())
        return before;
    const ValueId distance = m_builder.binary(OpKind::Subtract, query, key);
    const ValueId near = m_builder.compare(CompareDirection::Less, distance, m_builder.broadcastScalar(window, type.shape));
    return m_builder.binary(OpKind::And, before, near);
}

TransformerBlocks::Heads TransformerBlocks::heads(ValueId x, const Parameters& p, const Shared& shared, const std::string& act)
{
    const auto projected = [&](const std::string& name) {
        return named(biased(projection(x, p.at(name + ".w"), {2}, {0}), p, name + ".b"), act + "." + name);
    };
    ValueId q = projected("attention.q");
    ValueId k = projected("attention.k");
    const ValueId v = m_c.keysAsValues ? k : projected("attention.v");
    if (m_c.queryKeyNorm) {
        q = norm(q, NormKind::RmsNorm, p.at("attention.q_norm.scale"), {});
        k = norm(k, NormKind::RmsNorm, p.at("attention.k_norm.scale"), {});
    }
    return {rotated(q, shared), rotated(k, shared), v};
}

TransformerBlocks::Heads TransformerBlocks::latentHeads(
    ValueId x, const Parameters& p, const Shared& shared, const std::string& act)
{
    const std::int64_t dims = m_c.headDim;
    const std::int64_t turned = m_c.latentRotaryDim;
    const auto product = [&](ValueId value, const char* name) { return projection(value, p.at(name), {2}, {0}); };
    const auto latent = [&](ValueId value, const char* scale) { return norm(value, NormKind::RmsNorm, p.at(scale), {}); };
    const auto behind = [&](ValueId first, ValueId second) {
        return m_builder.add(OpKind::Concatenate, {first, second}, ConcatenateAttributes{3});
    };
    const ValueId source = m_c.queryRank > 0 ? latent(product(x, "attention.q_down.w"), "attention.q_norm.scale") : x;
    const ValueId q = named(product(source, "attention.q.w"), act + ".attention.q");
    const ValueId down = product(x, "attention.kv_down.w");
    const ValueId both = latent(sliced(m_builder, down, 2, 0, m_c.keyValueRank), "attention.kv_norm.scale");
    const ValueId keys = product(both, "attention.k.w");
    const ValueId values = named(product(both, "attention.v.w"), act + ".attention.v");
    if (turned == 0)
        return {q, named(keys, act + ".attention.k"), values};
    const Shape one = {m_options.batch, m_model.sequence, 1, turned};
    const ValueId place = sliced(m_builder, down, 2, m_c.keyValueRank, m_c.keyValueRank + turned);
    const ValueId placed = m_builder.reshape(rotated(m_builder.reshape(place, one), shared), Shape(shape(place)));
    const ValueId ofAll = m_builder.broadcast(placed, {one[0], one[1], m_c.heads, turned}, {0, 1, 3});
    const ValueId turnedQueries = rotated(sliced(m_builder, q, 3, dims, dims + turned), shared);
    return {behind(sliced(m_builder, q, 3, 0, dims), turnedQueries), named(behind(keys, ofAll), act + ".attention.k"), values};
}

ValueId TransformerBlocks::attention(ValueId x, const Parameters& p, const Shared& shared, ValueId window, const std::string& act)
{
    const Heads made = m_c.keyValueRank > 0 ? latentHeads(x, p, shared, act) : heads(x, p, shared, act);
    const std::int64_t groups = shape(made.keys)[2];
    const std::int64_t shares = m_c.heads / groups;
    const std::int64_t dims = shape(made.queries)[3];
    const double scale = 1.0 / std::sqrt(m_c.queryScale > 0.0 ? m_c.queryScale : static_cast<double>(dims));
    const Shape grouped = {m_options.batch, m_model.sequence, groups, shares, dims};
    const bool isFused = m_model.attention == AttentionOp::Fused;
    const ValueId mixed
        = named(isFused ? fusedAttention(m_builder.reshape(made.queries, grouped), made.keys, made.values, window, scale)
                        : plainAttention(m_builder.reshape(scaled(made.queries, scale), grouped), made.keys, made.values, window),
            act + ".attention.mixed"); // [b, s, groups, shares, d]
    const ValueId out = m_builder.reshape(p.at("attention.o.w"), {groups, shares, shape(mixed)[4], m_c.hidden});
    ValueId passed = mixed;
    if (m_c.outputGate) {
        const ValueId gate = m_builder.reshape(projection(x, p.at("attention.gate.w"), {2}, {0}), Shape(shape(mixed)));
        passed = times(mixed, m_builder.unary(OpKind::Logistic, gate));
    }
    return biased(projection(passed, out, {2, 3, 4}, {0, 1, 2}), p, "attention.o.b");
}

ValueId TransformerBlocks::fusedAttention(ValueId q, ValueId keys, ValueId values, ValueId window, double scale)
{
    std::vector<ValueId> operands;
    for (const ValueId operand : {q, keys, values})
        operands.push_back(m_builder.convert(operand, m_activation));
    for (int i = 0; i < 2; ++i) // of queries and of keys
        operands.push_back(positions(m_builder));
    if (window.valid())
        operands.push_back(window);
    const AttentionForm form{
        scale, m_c.attentionSoftcap, true, window.valid(), false, productType(), m_model.context, m_model.zigzag > 0};
    std::vector<TensorType> types;
    for (const ValueId operand : operands)
        types.push_back(m_builder.type(operand));
    return m_builder.addMany(OpKind::Attention, std::move(operands), attentionAttributes(OpKind::Attention, form, types)).front();
}

ValueId TransformerBlocks::plainAttention(ValueId q, ValueId keys, ValueId values, ValueId window)
{
    enter(Region::AttentionCore);
    ValueId scores = softcapped(wideDot(q, keys, {4}, {3}, {0, 2}, {0, 2}), m_c.attentionSoftcap); // [b, groups, s, shares, t]
    const ValueId hidden = m_builder.splat(TensorType(m_builder.type(scores)), -std::numeric_limits<double>::infinity());
    scores = m_builder.select(along(visible(window), scores, {2, 4}), scores, hidden);
    const ValueId shift = m_builder.unary(OpKind::Floor, m_builder.reduce(ReduceKind::Max, scores, {4}));
    const ValueId weights
        = m_builder.unary(OpKind::Exp, m_builder.binary(OpKind::Subtract, scores, along(shift, scores, {0, 1, 2, 3})));
    const ValueId sum = m_builder.reduce(ReduceKind::Sum, weights, {4});
    const ValueId probabilities
        = m_builder.convert(m_builder.binary(OpKind::Divide, weights, along(sum, weights, {0, 1, 2, 3})), m_activation);
    enter(Region::Layer);

    return m_builder.transpose(dot(probabilities, values, {4}, {1}, {0, 1}, {0, 2}), {0, 2, 1, 3, 4});
}

ValueId TransformerBlocks::ffn(ValueId x, const Parameters& p, const std::string& block, const std::string& act)
{
    const ValueId hidden = ffnHidden(
        [&](const std::string& name) {
            return biased(projection(x, p.at(block + name + ".w"), {2}, {0}), p, block + name + ".b");
        },
        act);
    return biased(projection(hidden, p.at(block + ".down.w"), {2}, {0}), p, block + ".down.b");
}

ValueId TransformerBlocks::ffnHidden(const std::function<ValueId(const std::string&)>& into, const std::string& act)
{
    const auto product = [&](const std::string& name) {
        const ValueId made = into(name);
        if (!act.empty())
            noteKept(made, act + ".ffn" + name);
        return made;
    };
    const ValueId up = product(".up");
    const ValueId hidden = m_c.gatedFfn ? times(activated(product(".gate")), up) : activated(up);
    return act.empty() ? hidden : named(hidden, act + ".ffn.hidden");
}

TransformerBlocks::Routes TransformerBlocks::routes(ValueId x, const Parameters& p)
{
    Routes routes;
    const ValueId logits = wideDot(x, p.at("experts.router.w"), {2}, {0});
    const ValueId probabilities = m_builder.unary(OpKind::Exp, logSoftmax(m_builder, logits));
    const TensorType type = m_builder.type(probabilities);
    const ValueId none = m_builder.splat(TensorType(type), -1.0);
    const ValueId number = m_builder.iota({DType::S32, type.shape}, 2);
    const ValueId last = m_builder.splat({DType::S32, type.shape}, static_cast<double>(m_c.experts));
    ValueId left = probabilities;
    for (std::int64_t i = 0; i < m_c.expertsPerToken; ++i) { // the largest that is left, of equal ones the first
        const ValueId best = along(m_builder.reduce(ReduceKind::Max, left, {2}), left, {0, 1});
        const ValueId isBest = m_builder.compare(CompareDirection::Equal, left, best);
        const ValueId first = m_builder.reduce(ReduceKind::Min, m_builder.select(isBest, number, last), {2});
        routes.picks.push_back(m_builder.compare(CompareDirection::Equal, number, along(first, number, {0, 1})));
        left = m_builder.select(routes.picks.back(), none, left);
    }
    routes.chosen = m_builder.compare(CompareDirection::Less, left, m_builder.splat(TensorType(type), 0.0));
    const ValueId kept = m_builder.select(routes.chosen, probabilities, m_builder.splat(TensorType(type), 0.0));
    routes.weights = m_builder.binary(OpKind::Divide, kept, along(m_builder.reduce(ReduceKind::Sum, kept, {2}), kept, {0, 1}));
    return routes;
}

ValueId TransformerBlocks::experts(ValueId x, const Parameters& p, const std::string& act)
{
    const Routes routed = routes(x, p);
    const ValueId in = m_c.expertHidden > 0 ? projection(x, p.at("experts.in.w"), {2}, {0}) : x;
    ValueId result = m_model.capacityFactor > 0.0 ? dispatched(in, p, routed, act) : everyExpert(in, p, routed.weights, act);
    if (m_c.expertHidden > 0)
        result = projection(result, p.at("experts.out.w"), {2}, {0});
    if (m_c.sharedExperts > 0)
        result = plus(result, ffn(x, p, "experts.shared", {}));
    return result;
}

ValueId TransformerBlocks::everyExpert(ValueId x, const Parameters& p, ValueId weights, const std::string& act)
{
    const auto into = [&](const std::string& name) { // [b, s, experts, width]
        return biased(projection(x, p.at("experts" + name + ".w"), {2}, {1}), p, "experts" + name + ".b");
    };
    const ValueId hidden = ffnHidden(into, act);
    const ValueId weighted = times(hidden, along(m_builder.convert(weights, m_activation), hidden, {0, 1, 2}));
    const ValueId result = projection(weighted, p.at("experts.down.w"), {2, 3}, {0, 1});
    if (!m_c.ffnBias)
        return result;
    return plus(result, dot(weights, p.at("experts.down.b"), {2}, {0}));
}

/// Counted in short parts, then over the parts: products with triangles of ones.
ValueId TransformerBlocks::countAlongRow(ValueId chosen)
{
    const Shape whole = shape(chosen); // b groups t experts
    constexpr std::int64_t kMost = 64;
    const std::int64_t part = std::gcd(whole[2], kMost);
    const Shape inParts = {whole[0], whole[1], whole[2] / part, part, whole[3]};
    const auto triangle = [&](std::int64_t size, CompareDirection direction) {
        const TensorType square{DType::S32, {size, size}};
        return m_builder.convert(m_builder.compare(direction, m_builder.iota(square, 0), m_builder.iota(square, 1)), m_wide);
    };
    const ValueId ones = m_builder.reshape(m_builder.convert(chosen, m_wide), Shape(inParts));
    const ValueId inside
        = exactDot(ones, triangle(part, CompareDirection::LessEqual), {3}, {0}, {}, {}); // b groups parts experts part
    const ValueId before = exactDot(m_builder.reduce(ReduceKind::Sum, ones, {3}), triangle(inParts[2], CompareDirection::Less),
        {2}, {0}, {}, {}); // b groups experts parts
    const ValueId count = m_builder.binary(
        OpKind::Add, m_builder.transpose(inside, {0, 1, 2, 4, 3}), m_builder.broadcast(before, Shape(inParts), {0, 1, 4, 2}));
    return m_builder.convert(m_builder.reshape(count, Shape(whole)), DType::S32);
}

ValueId TransformerBlocks::dispatched(ValueId x, const Parameters& p, const Routes& routes, const std::string& act)
{
    const Shape stream = shape(x); // b s hidden
    const std::int64_t groups = m_model.dispatchGroups;
    const std::int64_t tokens = stream[1] / groups;
    const std::int64_t capacity = expertCapacity(m_model, m_c);
    const std::int64_t places = m_c.experts * capacity;
    const std::int64_t picks = m_c.expertsPerToken;
    const Shape choices = {stream[0], groups, tokens, m_c.experts};
    const auto grouped = [&](ValueId value) { return m_builder.reshape(value, {stream[0], groups, tokens, shape(value)[2]}); };
    const auto whole = [&](std::int64_t number) { return m_builder.splat({DType::S32, choices}, static_cast<double>(number)); };
    // The place of each token at each expert, were it sent there: behind all others where there is no room.
    const ValueId count = countAlongRow(grouped(routes.chosen));
    const ValueId first = m_builder.binary(OpKind::Multiply, m_builder.iota({DType::S32, choices}, 3), whole(capacity));
    const ValueId hasRoom = m_builder.compare(CompareDirection::LessEqual, count, whole(capacity));
    const ValueId place = m_builder.select(
        hasRoom, m_builder.binary(OpKind::Subtract, m_builder.binary(OpKind::Add, first, count), whole(1)), whole(places));
    const ValueId weights = grouped(routes.weights);
    const ValueId weight = m_builder.select(hasRoom, weights, m_builder.splat(TensorType(m_builder.type(weights)), 0.0));
    const auto ofPicks = [&](ValueId value) { // [b, groups, t, picks]
        std::vector<ValueId> each;
        for (const ValueId pick : routes.picks) {
            const ValueId none = m_builder.splat(TensorType(m_builder.type(value)), 0.0);
            const ValueId one = m_builder.reduce(ReduceKind::Sum, m_builder.select(grouped(pick), value, none), {3});
            each.push_back(m_builder.reshape(one, {stream[0], groups, tokens, 1}));
        }
        return each.size() == 1 ? each.front() : m_builder.add(OpKind::Concatenate, std::move(each), ConcatenateAttributes{3});
    };
    const ValueId placeOfPick = m_builder.reshape(ofPicks(place), {stream[0], groups, tokens * picks, 1});

    // Which token is at each place: the first one where there is none.
    IndexingDims byPlace;
    byPlace.collapsed = byPlace.indexMap = {2};
    byPlace.operandBatch = byPlace.indicesBatch = {0, 1};
    byPlace.indexVectorDim = 3;
    const TensorType ofPick{DType::S32, {stream[0], groups, tokens * picks}};
    const ValueId number = m_builder.binary(
        OpKind::Divide, m_builder.iota(ofPick, 2), m_builder.splat(TensorType(ofPick), static_cast<double>(picks)));
    ScatterAttributes put;
    put.dims = byPlace;
    const ValueId token = m_builder.add(
        OpKind::Scatter, {m_builder.splat({DType::S32, {stream[0], groups, places}}, 0.0), placeOfPick, number}, std::move(put));
    const auto pickedRows = [&](ValueId from, ValueId indices) { // [b, groups, indices, hidden]
        GatherAttributes take;
        take.dims = byPlace;
        take.dims.window = {3};
        take.sliceSizes = {1, 1, 1, stream[2]};
        return m_builder.add(OpKind::Gather, {from, indices}, std::move(take));
    };
    const ValueId rows = pickedRows(grouped(x), m_builder.reshape(token, {stream[0], groups, places, 1}));
    const ValueId sent
        = named(m_builder.reshape(rows, {stream[0], groups, m_c.experts, capacity, stream[2]}), act + ".experts.sent");
    const ValueId received = named(m_builder.transpose(sent, {2, 0, 1, 3, 4}), act + ".experts.received");

    const auto into = [&](const std::string& name) { // [experts, b, groups, capacity, width]
        return expertBiased(projection(received, p.at("experts" + name + ".w"), {4}, {1}, {0}, {0}), p, "experts" + name + ".b");
    };
    const ValueId hidden = ffnHidden(into, act);
    const ValueId made = named(
        expertBiased(projection(hidden, p.at("experts.down.w"), {4}, {1}, {0}, {0}), p, "experts.down.b"), act + ".experts.made");
    const ValueId returned = named(m_builder.transpose(made, {1, 2, 0, 3, 4}), act + ".experts.returned");
    const ValueId back
        = m_builder.reshape(pickedRows(m_builder.reshape(returned, {stream[0], groups, places, stream[2]}), placeOfPick),
            {stream[0], groups, tokens, picks, stream[2]});
    return m_builder.reshape(dot(ofPicks(weight), back, {3}, {3}, {0, 1, 2}, {0, 1, 2}), Shape(stream));
}

ValueId TransformerBlocks::expertBiased(ValueId value, const Parameters& p, const std::string& name)
{
    const auto bias = p.find(name);
    return bias == p.end() ? value : plus(value, along(m_builder.convert(bias->second, m_activation), value, {0, 4}));
}

ValueId TransformerBlocks::layer(
    ValueId x, const Parameters& p, const Shared& shared, ValueId window, const Masks& masks, const std::string& name)
{
    const std::string act = "act." + name;
    enter(Region::Layer);
    ValueId attended;
    if (m_c.mixer != MixerKind::None) {
        const ValueId input = named(blockNorm(x, p, "attention.norm"), act + ".attention.input");
        attended = m_c.isRecurrent() ? recurrence(input, p, act) : attention(input, p, shared, window, act);
        if (m_c.postNorms)
            attended = blockNorm(attended, p, "attention.post_norm");
        attended = named(passedOn(attended, masks, 0), act + ".attention");
    }
    const auto withAttended = [&](ValueId stream) { return attended.valid() ? plus(stream, attended) : stream; };
    const bool readsBoth = !m_c.parallelBlock || !m_c.hasFeedForward();
    ValueId sum = readsBoth ? withAttended(x) : x;
    ValueId made;
    if (m_c.hasFeedForward()) {
        const ValueId input = named(blockNorm(sum, p, "ffn.norm"), act + ".ffn.input");
        if (m_c.experts == 0 || m_c.ffnBesideExperts)
            made = ffn(input, p, "ffn", m_c.experts == 0 ? act : std::string());
        if (m_c.experts > 0) {
            const ValueId routed = experts(input, p, act);
            made = made.valid() ? plus(made, routed) : routed;
        }
        if (m_c.postNorms)
            made = blockNorm(made, p, "ffn.post_norm");
        made = named(passedOn(made, masks, 1), act + ".ffn");
        if (!readsBoth)
            sum = withAttended(sum);
    }
    enter(Region::Outside); // the residual stream between layers is always kept
    if (!made.valid())
        return named(sum, act);
    sum = plus(sum, made);
    m_ends.insert(m_builder.function()[sum].producer);
    return named(sum, act);
}

ValueId TransformerBlocks::passedOn(ValueId made, const Masks& masks, std::int64_t block)
{
    return masks.keys.valid() ? dropped(m_builder, made, masks, block, m_options) : made;
}

} // namespace meshwright
