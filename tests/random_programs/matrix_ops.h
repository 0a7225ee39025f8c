// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

inline constexpr DrawOp kMatrixOps[] = {fourier, decomposition, batchNorm, batchNorm};

} // namespace meshwright::tests::draw
