// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/attention.h"
#include "tests/random_programs/program_generator.h"

/// Fourier transforms, matrix decompositions and batch norms, whose numbers are not exact.
namespace meshwright::tests::draw {

/// Complex numbers from two arrays, transformed, and their parts.
inline void fourier(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.within(generator.converted(generator.number(random), DType::F32), 9);
    const TensorType type = generator.type(a);
    if (type.shape.empty() || elementCount(type.shape) == 0 || generator.depth() > 0)
        return;
    const ValueId b = generator.within(generator.like(random, type), 9);
    const TensorType pairs{DType::C64, type.shape};
    const auto transformed
        = static_cast<std::size_t>(pick(random, 1, std::min<std::int64_t>(2, static_cast<std::int64_t>(type.shape.size()))));
    const Shape lengths(type.shape.end() - static_cast<std::ptrdiff_t>(transformed), type.shape.end());
    const bool isInverse = chance(random, 40);
    const ValueId made = generator.builder.add(OpKind::Other, {generator.builder.binary(OpKind::Complex, a, b)},
        OtherAttributes{"stablehlo.fft",
            {keptList("fft_length", lengths),
                keptAttribute("fft_type", isInverse ? "#stablehlo<fft_type IFFT>" : "#stablehlo<fft_type FFT>", {})},
            {pairs}, 0});
    const double most = 9.0 * static_cast<double>(elementCount(lengths));
    generator.keep(generator.builder.unary(OpKind::Real, made), most, false);
    if (chance(random, 50))
        generator.keep(generator.builder.unary(OpKind::Imag, made), most, false);
}

/// A batch of positive definite matrices a^T a + n I, and the solution of equations with the triangles that they are made of.
inline void decomposition(ProgramGenerator& generator, Random& random)
{
    const std::int64_t n = chance(random, 40) ? std::min<std::int64_t>(generator.size(random), 8) : pick(random, 1, 6);
    Shape shape{n, n};
    if (chance(random, 60))
        shape.insert(shape.begin(), generator.size(random));
    const TensorType type{DType::F32, shape};
    if (!ProgramGenerator::isSmall(shape) || n == 0)
        return;
    Builder& builder = generator.builder;
    const ValueId a = generator.within(generator.shaped(random, type), 3);
    const std::size_t row = shape.size() - 2;
    DotAttributes attributes;
    attributes.resultType = attributes.operandType = DType::F32;
    attributes.lhsContracting = attributes.rhsContracting = {row};
    if (row == 1)
        attributes.lhsBatch = attributes.rhsBatch = {0};
    const ValueId square = builder.dot(a, a, attributes);
    const TensorType places{DType::S32, shape};
    const ValueId isDiagonal = builder.compare(CompareDirection::Equal, builder.iota(places, row), builder.iota(places, row + 1));
    const ValueId diagonal = builder.select(isDiagonal, generator.splat(type, 10), generator.splat(type, 0));
    const ValueId positive = builder.binary(OpKind::Add, square, diagonal);
    const bool isLower = chance(random, 50);
    const ValueId root
        = builder.add(OpKind::Other, {positive}, OtherAttributes{"stablehlo.cholesky", {keptTruth("lower", isLower)}, {type}, 0});
    // The other triangle holds anything.
    const ValueId triangle
        = builder.select(builder.compare(isLower ? CompareDirection::GreaterEqual : CompareDirection::LessEqual,
                             builder.iota(places, row), builder.iota(places, row + 1)),
            root, generator.splat(type, 0));
    generator.keep(triangle, 20, false);
    if (chance(random, 30))
        return;
    const bool isLeft = chance(random, 50);
    TensorType right = type;
    right.shape[isLeft ? row + 1 : row] = generator.size(random);
    if (!ProgramGenerator::isSmall(right.shape))
        return;
    const ValueId b = generator.within(generator.like(random, right), 5);
    const char* const transpose = chance(random, 50) ? "#stablehlo<transpose TRANSPOSE>" : "#stablehlo<transpose NO_TRANSPOSE>";
    generator.keep(builder.add(OpKind::Other, {triangle, b},
                       OtherAttributes{"stablehlo.triangular_solve",
                           {keptTruth("left_side", isLeft), keptTruth("lower", isLower),
                               keptAttribute("transpose_a", transpose, {}), keptTruth("unit_diagonal", false)},
                           {right}, 0}),
        20, false);
}

/// Numbers of each feature as its mean and variance, or given ones, make them; or the gradients of that.
inline void batchNorm(ProgramGenerator& generator, Random& random)
{
    const ValueId x
        = generator.within(generator.converted(generator.number(random), chance(random, 80) ? DType::F32 : DType::F64), 9);
    const TensorType type = generator.type(x);
    if (type.shape.empty() || elementCount(type.shape) == 0)
        return;
    const std::size_t feature = ProgramGenerator::anyOf(random, type.shape.size());
    const TensorType ofFeatures{type.dtype, {type.shape[feature]}};
    const auto given = [&](const TensorType& of) { return generator.within(generator.like(random, of), 5); };
    const auto variance = [&] { return generator.builder.unary(OpKind::Abs, given(ofFeatures)); };
    const auto make = [&](const char* name, std::vector<ValueId> operands, std::vector<TensorType> results, const char* epsilon) {
        const KeptAttributes attributes{
            keptAttribute("epsilon", epsilon, {}), keptInteger("feature_index", static_cast<std::int64_t>(feature))};
        return generator.builder.addMany(
            OpKind::Other, std::move(operands), OtherAttributes{name, attributes, std::move(results), 0});
    };
    const std::vector<TensorType> three{type, ofFeatures, ofFeatures};
    std::vector<ValueId> made;
    switch (pick(random, 0, 2)) {
    case 0:
        made = make("stablehlo.batch_norm_training", {x, given(ofFeatures), given(ofFeatures)}, three, "5.000000e-01 : f32");
        break;
    case 1:
        made = make("stablehlo.batch_norm_inference", {x, given(ofFeatures), given(ofFeatures), given(ofFeatures), variance()},
            {type}, "5.000000e-01 : f32");
        break;
    default:
        made = make("stablehlo.batch_norm_grad", {x, given(ofFeatures), given(ofFeatures), variance(), given(type)}, three,
            "1.000000e+00 : f32");
    }
    for (const ValueId result : made) {
        if (result == made.front() || chance(random, 60))
            generator.keep(result, 1e6, false);
    }
}

/// Fused attention of few heads, or its gradients.
inline void attention(ProgramGenerator& generator, Random& random)
{
    Builder& builder = generator.builder;
    Shape batch;
    if (chance(random, 50))
        batch.push_back(generator.size(random));
    const auto shape = [&](std::initializer_list<std::int64_t> rest) {
        Shape whole = batch;
        whole.insert(whole.end(), rest);
        return whole;
    };
    const std::int64_t queries = generator.size(random);
    const std::int64_t keys = chance(random, 60) ? queries : generator.size(random);
    const std::int64_t groups = generator.size(random);
    const std::int64_t shares = chance(random, 50) ? 1 : generator.size(random);
    const std::int64_t dims = pick(random, 1, 3);
    const std::int64_t valueDims = chance(random, 60) ? dims : pick(random, 1, 3);
    const TensorType query{DType::F32, shape({queries, groups, shares, dims})};
    const TensorType made{DType::F32, shape({queries, groups, shares, valueDims})};
    if (std::max(elementCount(query.shape), elementCount(made.shape)) > ProgramGenerator::kMostElements || keys == 0)
        return;
    const auto given = [&](const TensorType& of, double most) { return generator.within(generator.shaped(random, of), most); };
    std::vector<ValueId> operands{given(query, 3), given({DType::F32, shape({keys, groups, dims})}, 2),
        given({DType::F32, shape({keys, groups, valueDims})}, 9)};
    AttentionForm form{0.5, chance(random, 30) ? 2.0 : 0.0, chance(random, 60), false, chance(random, 20), DType::F32};
    form.windowed = form.causal && chance(random, 40);
    form.context = static_cast<ContextExchange>(pick(random, 0, 2));
    if (form.causal) {
        operands.push_back(builder.iota({DType::S32, {queries}}, 0));
        operands.push_back(builder.iota({DType::S32, {keys}}, 0));
    }
    if (form.windowed)
        operands.push_back(generator.index(pick(random, 1, keys)));
    if (form.segmented) {
        operands.push_back(generator.within(generator.like(random, {DType::S32, shape({queries})}), 1));
        operands.push_back(generator.within(generator.like(random, {DType::S32, shape({keys})}), 1));
    }
    const auto add = [&](OpKind kind) {
        std::vector<TensorType> types;
        for (const ValueId operand : operands)
            types.push_back(generator.type(operand));
        return builder.addMany(OpKind::Other, operands, attentionAttributes(kind, form, types));
    };
    const std::vector<ValueId> forward = add(OpKind::Attention);
    if (chance(random, 50)) {
        generator.keep(forward[0], 9, false);
        if (!form.segmented && chance(random, 50)) // of a row that sees nothing it is infinite
            generator.keep(forward[1], 1e3, false);
        return;
    }
    operands.insert(operands.end(), {forward[0], forward[1], given(made, 5)});
    for (const ValueId result : add(OpKind::AttentionGrad)) {
        if (chance(random, 70))
            generator.keep(result, 1e6, false);
    }
}

inline constexpr DrawOp kMatrixOps[] = {fourier, decomposition, batchNorm, batchNorm, attention, attention};

} // namespace meshwright::tests::draw
