// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace meshwright {

// Layers with a state S [keys, values] for each head, which decays by a_t and is read by a query: y_t = S_t' q_t. A state space adds k_t v_t' to
// a_t S; the delta rule with writing strength b_t makes it a_t (1 - b_t k_t k_t') S + b_t k_t v_t'. A row is taken in chunks, so that all but the
// states is products: with G_t the sum of log a up to t in its chunk, D_ts = exp(G_t - G_s) for s <= t, and S the state before the chunk,
//   y_t = exp(G_t) S' q_t + sum over s of (q_t . k_s) D_ts w_s,   S next = exp(G_C) S + sum over s of exp(G_C - G_s) k_s w_s'.
// Of a state space w = v. Of the delta rule w = T (b v) - T (b exp(G) k) S with T = 1 / (1 + lower part of b_t (k_t . k_s) D_ts).
// Sources: Dao and Gu 2024 (arXiv:2405.21060, section 6); Yang et al. 2024 (arXiv:2406.06484, section 3; arXiv:2412.06464, section 3.3).

/// In chunks, heads as [key heads, heads of each] and written out as dims n (chunks), b, c (tokens of a chunk), g, r, k (keys), v (values).
struct TransformerBlocks::Chunked {
    ValueId queries; ///< n b c g k
    ValueId keys; ///< n b c g k
    ValueId values; ///< n b c g r v
    ValueId logDecay; ///< n b c g r, wide
    ValueId strength; ///< n b c g r, wide; invalid: of a state space
};

std::int64_t TransformerBlocks::chunkTokens() const
{
    constexpr std::int64_t kMost = 64;
    return std::gcd(m_model.sequence, kMost);
}

ValueId TransformerBlocks::inChunks(ValueId value)
{
    Shape split = shape(value);
    const std::int64_t tokens = chunkTokens();
    split[1] = tokens;
    split.insert(split.begin() + 1, m_model.sequence / tokens);
    Dims order(split.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::swap(order[0], order[1]);
    return m_builder.transpose(m_builder.reshape(value, std::move(split)), std::move(order));
}

ValueId TransformerBlocks::exactDot(
    ValueId lhs, ValueId rhs, Dims lhsContracting, Dims rhsContracting, Dims lhsBatch, Dims rhsBatch)
{
    DotAttributes attributes{
        std::move(lhsBatch), std::move(rhsBatch), std::move(lhsContracting), std::move(rhsContracting), m_wide, m_wide};
    attributes.operandType = m_wide;
    return m_builder.dot(m_builder.convert(lhs, m_wide), m_builder.convert(rhs, m_wide), std::move(attributes));
}

ValueId TransformerBlocks::softplus(ValueId value)
{
    const ValueId zero = m_builder.splat(TensorType(m_builder.type(value)), 0.0);
    const ValueId small = m_builder.unary(OpKind::Exp, m_builder.unary(OpKind::Negate, m_builder.unary(OpKind::Abs, value)));
    return plus(m_builder.binary(OpKind::Maximum, value, zero), m_builder.unary(OpKind::Log1p, small));
}

ValueId TransformerBlocks::normalised(ValueId value)
{
    const ValueId x = m_builder.convert(value, m_wide);
    const std::size_t last = shape(x).size() - 1;
    Dims rows(last);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    constexpr double kLeast = 1e-6;
    const ValueId square = m_builder.reduce(ReduceKind::Sum, times(x, x), {last});
    const ValueId root
        = m_builder.unary(OpKind::Rsqrt, plus(square, m_builder.splat(TensorType(m_builder.type(square)), kLeast)));
    return m_builder.convert(times(x, along(root, x, rows)), m_activation);
}

ValueId TransformerBlocks::isBelow(ValueId like, bool isWithDiagonal)
{
    const TensorType type{DType::S32, shape(like)};
    const std::size_t rank = type.shape.size();
    return m_builder.compare(isWithDiagonal ? CompareDirection::GreaterEqual : CompareDirection::Greater,
        m_builder.iota(type, rank - 2), m_builder.iota(type, rank - 1));
}

ValueId TransformerBlocks::inverseOfOnePlus(ValueId lower)
{
    const TensorType type = m_builder.type(lower);
    const TensorType place{DType::S32, type.shape};
    const std::size_t rank = type.shape.size();
    const std::int64_t size = type.shape.back();
    Dims batch(rank - 2);
    std::iota(batch.begin(), batch.end(), std::size_t{0});
    const auto block = [&](std::size_t dim, std::int64_t of) {
        return m_builder.binary(OpKind::Divide, m_builder.iota(place, dim), m_builder.splat(place, static_cast<double>(of)));
    };
    const ValueId none = m_builder.splat(type, 0.0);
    // Inverses of the blocks on the diagonal, of 1, 2, 4 .. rows: of two beside each other, with the part P of the matrix below the first one,
    // X becomes X - X P X.
    ValueId inverse = m_builder.convert(
        m_builder.compare(CompareDirection::Equal, m_builder.iota(place, rank - 2), m_builder.iota(place, rank - 1)), m_wide);
    for (std::int64_t rows = 1; rows < size; rows *= 2) {
        const ValueId isSamePair
            = m_builder.compare(CompareDirection::Equal, block(rank - 2, 2 * rows), block(rank - 1, 2 * rows));
        const ValueId isOther = m_builder.compare(CompareDirection::Greater, block(rank - 2, rows), block(rank - 1, rows));
        const ValueId part = m_builder.select(m_builder.binary(OpKind::And, isSamePair, isOther), lower, none);
        const ValueId change = rows == 1 ? part
                                         : exactDot(exactDot(inverse, part, {rank - 1}, {rank - 2}, batch, batch), inverse,
                                             {rank - 1}, {rank - 2}, batch, batch);
        inverse = m_builder.binary(OpKind::Subtract, inverse, change);
    }
    return inverse;
}

ValueId TransformerBlocks::convolved(ValueId x, const Parameters& p, const std::string& name, const std::string& act)
{
    ValueId value = named(projection(x, p.at(name + ".w"), {2}, {0}), act + "." + name);
    if (m_c.convolution == 0)
        return value;
    const ValueId weights = m_builder.convert(p.at(name + "_conv.w"), m_activation); // [tokens, heads, size]
    const Shape whole = shape(value);
    Shape begin = whole;
    begin[1] = m_c.convolution - 1;
    ValueId padded = value;
    if (m_c.convolution > 1)
        padded
            = m_builder.add(OpKind::Concatenate, {m_builder.splat({m_activation, begin}, 0.0), value}, ConcatenateAttributes{1});
    ValueId sum;
    for (std::int64_t i = 0; i < m_c.convolution; ++i) {
        const ValueId weight = m_builder.reshape(sliced(m_builder, weights, 0, i, i + 1), {whole[2], whole[3]});
        const ValueId term = times(sliced(m_builder, padded, 1, i, i + whole[1]), along(weight, value, {2, 3}));
        sum = sum.valid() ? plus(sum, term) : term;
    }
    sum = biased(sum, p, name + "_conv.b");
    return times(sum, m_builder.unary(OpKind::Logistic, sum));
}

ValueId TransformerBlocks::throughStates(const Chunked& c)
{
    enter(Region::States);
    const Shape whole = shape(c.values); // n b c g r v
    const std::int64_t tokens = whole[2];
    const std::int64_t keys = shape(c.keys)[4];
    // G [n, b, g, r, c]: a product with a triangle of ones.
    const TensorType square{DType::S32, {tokens, tokens}};
    const ValueId upTo = m_builder.convert(
        m_builder.compare(CompareDirection::LessEqual, m_builder.iota(square, 0), m_builder.iota(square, 1)), m_wide);
    const ValueId sums = exactDot(c.logDecay, upTo, {2}, {0}, {}, {});
    const Shape pairs = {whole[0], whole[1], whole[3], whole[4], tokens, tokens};
    const ValueId distance = m_builder.binary(
        OpKind::Subtract, m_builder.broadcast(sums, pairs, {0, 1, 2, 3, 4}), m_builder.broadcast(sums, pairs, {0, 1, 2, 3, 5}));
    const ValueId never = m_builder.splat({m_wide, pairs}, -std::numeric_limits<double>::infinity());
    const ValueId decay = m_builder.unary(OpKind::Exp, m_builder.select(isBelow(distance, true), distance, never));
    const ValueId last
        = m_builder.reshape(sliced(m_builder, sums, 4, tokens - 1, tokens), {whole[0], whole[1], whole[3], whole[4]});
    const ValueId toEnd = m_builder.unary(OpKind::Exp, m_builder.binary(OpKind::Subtract, along(last, sums, {0, 1, 2, 3}), sums));
    const ValueId fromBegin = m_builder.unary(OpKind::Exp, sums);
    const auto scoresOf = [&](ValueId rows) { // [n, b, g, r, c, c]
        return m_builder.broadcast(wideDot(rows, c.keys, {4}, {4}, {0, 1, 3}, {0, 1, 3}), pairs, {0, 1, 2, 4, 5});
    };
    ValueId written = m_builder.transpose(c.values, {0, 1, 3, 4, 2, 5}); // n b g r c v
    ValueId read; // what the states' values are taken out by: n b g r c k
    if (c.strength.valid()) {
        const ValueId strength = m_builder.transpose(c.strength, {0, 1, 3, 4, 2}); // n b g r c
        const ValueId below = times(times(scoresOf(c.keys), decay), m_builder.broadcast(strength, pairs, {0, 1, 2, 3, 4}));
        const ValueId none = m_builder.splat({m_wide, pairs}, 0.0);
        const ValueId inverse = inverseOfOnePlus(m_builder.select(isBelow(below, false), below, none));
        const auto weighted = [&](ValueId rows, ValueId factor) { // n b g r c, ..
            return times(rows, along(m_builder.convert(factor, m_activation), rows, {0, 1, 2, 3, 4}));
        };
        const auto through = [&](ValueId rows) { return dot(inverse, rows, {5}, {4}, {0, 1, 2, 3}, {0, 1, 2, 3}); };
        const ValueId spread
            = m_builder.broadcast(c.keys, {whole[0], whole[1], whole[3], whole[4], tokens, keys}, {0, 1, 4, 2, 5});
        read = through(weighted(spread, times(strength, fromBegin)));
        written = through(weighted(written, strength));
    }
    // The states, one chunk after the other: [b, g, k, r, v].
    const Shape state = {whole[1], whole[3], keys, whole[4], whole[5]};
    std::vector<ValueId> operands
        = {m_builder.splat({m_wide, state}, 0.0), c.keys, written, toEnd, m_builder.unary(OpKind::Exp, last)};
    if (read.valid())
        operands.push_back(read);
    const RepeatAttributes loop{whole[0], 1, operands.size() - 1, false};
    const OpId repeat = m_builder.beginRepeat(loop, std::move(operands));
    const std::vector<ValueId> in = m_builder.function()[m_builder.block()].arguments;
    const ValueId before = in[0];
    ValueId values = in[2]; // b g r c v
    if (read.valid())
        values = m_builder.binary(OpKind::Subtract, values, dot(in[5], before, {4}, {2}, {0, 1, 2}, {0, 1, 3}));
    const ValueId kept = times(values, along(m_builder.convert(in[3], m_activation), values, {0, 1, 2, 3}));
    const ValueId added = wideDot(in[1], kept, {1}, {3}, {0, 2}, {0, 1}); // b g k r v
    const ValueId next = plus(times(before, along(in[4], before, {0, 1, 3})), added);
    m_builder.setResults({next, m_builder.convert(before, m_activation), values});
    const std::vector<ValueId> states = m_builder.endRepeat(repeat);

    const ValueId weights = m_builder.convert(times(scoresOf(c.queries), decay), m_activation);
    const ValueId inside = dot(weights, states[2], {5}, {4}, {0, 1, 2, 3}, {0, 1, 2, 3}); // n b g r c v
    const ValueId outside // n b g c r v -> n b g r c v
        = m_builder.transpose(dot(c.queries, states[1], {4}, {3}, {0, 1, 3}, {0, 1, 2}), {0, 1, 2, 4, 3, 5});
    const ValueId all = plus(inside, times(outside, along(m_builder.convert(fromBegin, m_activation), outside, {0, 1, 2, 3, 4})));
    enter(Region::Layer);
    return all;
}

ValueId TransformerBlocks::recurrence(ValueId x, const Parameters& p, const std::string& act)
{
    const bool isDelta = m_c.mixer == MixerKind::DeltaRule;
    const std::int64_t groups = m_c.stateKeyHeads;
    const std::int64_t shares = m_c.stateHeads / groups;
    const Shape stream = shape(x);
    const Shape ofHeads = {stream[0], stream[1], groups, shares};
    const Shape grouped = {stream[0], stream[1], groups, shares, m_c.stateValueDim};
    ValueId queries = convolved(x, p, "attention.q", act);
    ValueId keys = convolved(x, p, "attention.k", act);
    const ValueId values = m_builder.reshape(convolved(x, p, "attention.v", act), grouped);
    const auto ofToken = [&](const char* name) { // [b, s, heads]
        return biased(wideDot(x, p.at(std::string(name) + ".w"), {2}, {0}), p, std::string(name) + ".b");
    };
    const ValueId step = softplus(ofToken("attention.decay"));
    const ValueId rate = m_builder.unary(OpKind::Exp, m_builder.convert(p.at("attention.rate.b"), m_wide));
    const ValueId logDecay = m_builder.unary(OpKind::Negate, times(step, along(rate, step, {2})));
    Chunked chunked;
    ValueId written = values;
    if (isDelta) {
        queries = scaled(normalised(queries), 1.0 / std::sqrt(static_cast<double>(m_c.stateKeyDim)));
        keys = normalised(keys);
        chunked.strength
            = inChunks(m_builder.reshape(m_builder.unary(OpKind::Logistic, ofToken("attention.write")), Shape(ofHeads)));
    } else {
        const ValueId factor = m_builder.convert(m_builder.reshape(step, Shape(ofHeads)), m_activation);
        written = times(values, along(factor, values, {0, 1, 2, 3}));
    }
    chunked.queries = inChunks(queries);
    chunked.keys = inChunks(keys);
    chunked.values = inChunks(written);
    chunked.logDecay = inChunks(m_builder.reshape(logDecay, Shape(ofHeads)));
    // n b g r c v -> b n c g r v -> b s g r v
    ValueId mixed = m_builder.reshape(m_builder.transpose(throughStates(chunked), {1, 0, 4, 2, 3, 5}), Shape(grouped));
    if (!isDelta) {
        const ValueId pass = m_builder.convert(m_builder.reshape(p.at("attention.pass.scale"), {groups, shares}), m_activation);
        mixed = plus(mixed, times(values, along(pass, values, {2, 3})));
    }
    mixed = named(mixed, act + ".attention.mixed");
    const ValueId gate = m_builder.reshape(projection(x, p.at("attention.gate.w"), {2}, {0}), Shape(grouped));
    const ValueId opened = times(gate, m_builder.unary(OpKind::Logistic, gate));
    const ValueId scale = p.at("attention.out_norm.scale");
    if (isDelta) {
        mixed = times(norm(mixed, NormKind::RmsNorm, scale, {}), opened);
    } else { // over all heads
        const std::int64_t inner = m_c.stateHeads * m_c.stateValueDim;
        const ValueId flat = m_builder.reshape(times(mixed, opened), {stream[0], stream[1], inner});
        mixed = m_builder.reshape(norm(flat, NormKind::RmsNorm, m_builder.reshape(scale, {inner}), {}), Shape(grouped));
    }
    const ValueId out = m_builder.reshape(p.at("attention.o.w"), {groups, shares, m_c.stateValueDim, m_c.hidden});
    return projection(mixed, out, {2, 3, 4}, {0, 1, 2});
}

} // namespace meshwright
