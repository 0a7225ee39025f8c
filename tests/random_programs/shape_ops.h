// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/program_generator.h"

/// Ops that give the same elements another shape, and those that put arrays together and take parts of them.
namespace meshwright::tests::draw {

/// One dimension more, or one of size 1 made larger.
inline void broadcast(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    Shape shape = generator.shapeOf(a);
    std::vector<std::size_t> dims(shape.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    const auto single = std::find(shape.begin(), shape.end(), 1);
    if (single != shape.end() && chance(random, 60)) {
        *single = generator.size(random);
    } else {
        const std::size_t at = ProgramGenerator::anyOf(random, shape.size() + 1);
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), generator.size(random));
        for (std::size_t dim = at; dim < dims.size(); ++dim)
            ++dims[dim];
    }
    if (ProgramGenerator::isSmall(shape))
        generator.keepMoved(generator.builder.broadcast(a, shape, dims), {a});
}

/// As JAX writes x + b: b first gets dimensions of size 1, which are then made larger.
inline void broadcastTwice(ProgramGenerator& generator, Random& random)
{
    const ValueId b = generator.number(random);
    Shape thin = generator.shapeOf(b);
    std::vector<std::size_t> dims(thin.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    const std::size_t at = chance(random, 60) ? 0 : ProgramGenerator::anyOf(random, thin.size() + 1);
    thin.insert(thin.begin() + static_cast<std::ptrdiff_t>(at), 1);
    for (std::size_t dim = at; dim < dims.size(); ++dim)
        ++dims[dim];
    Shape full = thin;
    full[at] = generator.size(random);
    if (!ProgramGenerator::isSmall(full))
        return;
    const ValueId once = chance(random, 50) ? generator.builder.reshape(b, thin) : generator.builder.broadcast(b, thin, dims);
    std::vector<std::size_t> all(full.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const ValueId twice = generator.note(generator.builder.broadcast(once, full, all), generator.largest(b));
    const double half = ProgramGenerator::room(generator.dtypeOf(b)) / 2;
    const ValueId x = generator.within(generator.like(random, TensorType(generator.type(twice))), half);
    const ValueId bias = generator.within(twice, half);
    generator.keep(generator.builder.binary(OpKind::Add, x, bias), generator.largest(x) + generator.largest(bias));
}

/// Merges neighbouring dimensions, splits one in two, or regroups all elements.
inline void reshape(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    Shape shape = generator.shapeOf(a);
    const auto insert = [&](std::size_t at, std::int64_t n) { shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), n); };
    if (chance(random, 40)) {
        std::vector<std::int64_t> primes;
        std::int64_t rest = elementCount(shape);
        for (std::int64_t prime = 2; prime <= rest; ++prime) {
            for (; rest % prime == 0; rest /= prime)
                primes.push_back(prime);
        }
        if (elementCount(shape) == 0)
            return;
        shape.assign(static_cast<std::size_t>(pick(random, 1, 4)), 1);
        for (const std::int64_t prime : primes)
            shape[ProgramGenerator::anyOf(random, shape.size())] *= prime;
    } else if (shape.empty() || chance(random, 15)) {
        insert(ProgramGenerator::anyOf(random, shape.size() + 1), 1);
    } else {
        const std::size_t dim = ProgramGenerator::anyOf(random, shape.size());
        if (dim + 1 < shape.size() && chance(random, 50)) {
            shape[dim] *= shape[dim + 1];
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
        } else {
            std::vector<std::int64_t> factors;
            for (std::int64_t factor = 1; factor <= shape[dim]; ++factor) {
                if (shape[dim] % factor == 0)
                    factors.push_back(factor);
            }
            if (factors.empty())
                return;
            const std::int64_t factor = factors[ProgramGenerator::anyOf(random, factors.size())];
            shape[dim] /= factor;
            insert(dim + (chance(random, 50) ? 1 : 0), factor);
        }
    }
    if (ProgramGenerator::isSmall(shape))
        generator.keepMoved(generator.builder.reshape(a, shape), {a});
}

inline void transpose(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    std::vector<std::size_t> permutation(generator.shapeOf(a).size());
    std::iota(permutation.begin(), permutation.end(), std::size_t{0});
    std::shuffle(permutation.begin(), permutation.end(), random);
    generator.keepMoved(generator.builder.transpose(a, permutation), {a});
}

inline ValueId sliceOf(ProgramGenerator& generator, ValueId a, std::size_t dim, std::int64_t start, std::int64_t limit)
{
    const Shape shape = generator.shapeOf(a);
    SliceAttributes attributes{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    attributes.starts[dim] = start;
    attributes.limits[dim] = limit;
    return generator.builder.add(OpKind::Slice, {a}, attributes);
}

inline void slice(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    SliceAttributes attributes;
    for (const std::int64_t n : generator.shapeOf(a)) {
        const bool isWhole = chance(random, 40);
        const std::int64_t start = isWhole ? 0 : pick(random, 0, n / 2);
        attributes.starts.push_back(start);
        attributes.limits.push_back(isWhole ? n : pick(random, std::min(start + 1, n), n));
        attributes.strides.push_back(isWhole ? 1 : pick(random, 1, 3));
    }
    generator.keepMoved(generator.builder.add(OpKind::Slice, {a}, attributes), {a});
}

/// Elements before and behind, or taken away there, sometimes between.
inline void pad(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    PadAttributes attributes;
    Shape shape = generator.shapeOf(a);
    for (std::int64_t& n : shape) {
        const bool isWhole = n == 0 || chance(random, 50);
        attributes.low.push_back(isWhole ? 0 : pick(random, -(n / 3), n));
        attributes.high.push_back(isWhole ? 0 : chance(random, 30) ? -(n / 3) : n - attributes.low.back());
        attributes.interior.push_back(!isWhole && chance(random, 15) ? 1 : 0);
        n += attributes.low.back() + attributes.high.back() + attributes.interior.back() * (n - 1);
    }
    if (!ProgramGenerator::isSmall(shape) || std::any_of(shape.begin(), shape.end(), [](std::int64_t n) { return n < 0; }))
        return;
    const ValueId between = generator.like(random, {generator.dtypeOf(a), {}});
    generator.keepMoved(generator.builder.add(OpKind::Pad, {a, between}, attributes), {a, between});
}

/// Two or three arrays after each other, or the ends of one the other way round, which is how a shift is written.
inline void concatenate(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    Shape shape = generator.shapeOf(a);
    if (shape.empty())
        return;
    const std::size_t dim = ProgramGenerator::anyOf(random, shape.size());
    if (shape[dim] > 1 && chance(random, 40)) {
        const std::int64_t by = pick(random, 1, shape[dim] - 1);
        const ValueId end = sliceOf(generator, a, dim, by, shape[dim]);
        const ValueId begin = sliceOf(generator, a, dim, 0, by);
        generator.keepMoved(generator.builder.add(OpKind::Concatenate, {end, begin}, ConcatenateAttributes{dim}), {a});
        return;
    }
    const ValueId b = generator.like(random, TensorType(generator.type(a)));
    std::vector<ValueId> parts{a, b};
    if (chance(random, 30))
        parts.push_back(sliceOf(generator, b, dim, 0, (shape[dim] + 1) / 2));
    if (chance(random, 30))
        std::reverse(parts.begin(), parts.end());
    shape[dim] *= 3;
    if (ProgramGenerator::isSmall(shape))
        generator.keepMoved(generator.builder.add(OpKind::Concatenate, std::move(parts), ConcatenateAttributes{dim}), {a, b});
}

inline void reverse(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    std::vector<std::size_t> dims;
    for (std::size_t dim = 0; dim < generator.shapeOf(a).size(); ++dim) {
        if (chance(random, 60))
            dims.push_back(dim);
    }
    if (!dims.empty())
        generator.keepMoved(generator.builder.add(OpKind::Reverse, {a}, ReverseAttributes{dims}), {a});
}

/// Sizes of a part of an array, and where it begins along each dimension.
struct Part {
    Shape sizes;
    std::vector<ValueId> starts;
};

inline Part partOf(ProgramGenerator& generator, Random& random, const Shape& shape)
{
    Part part;
    for (const std::int64_t n : shape) {
        part.sizes.push_back(chance(random, 45) ? n : std::min<std::int64_t>(n, pick(random, 1, std::max<std::int64_t>(n, 1))));
        part.starts.push_back(generator.place(random, n));
    }
    return part;
}

inline void dynamicSlice(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    Part part = partOf(generator, random, Shape(generator.shapeOf(a)));
    part.starts.insert(part.starts.begin(), a);
    generator.keepMoved(
        generator.builder.add(OpKind::DynamicSlice, std::move(part.starts), DynamicSliceAttributes{part.sizes}), {a});
}

inline void dynamicUpdateSlice(ProgramGenerator& generator, Random& random)
{
    const ValueId a = generator.any(random);
    Part part = partOf(generator, random, Shape(generator.shapeOf(a)));
    const ValueId update = generator.like(random, {generator.dtypeOf(a), part.sizes});
    part.starts.insert(part.starts.begin(), {a, update});
    generator.keepMoved(generator.builder.add(OpKind::DynamicUpdateSlice, std::move(part.starts)), {a, update});
}

inline constexpr DrawOp kShapeOps[] = {
    broadcast, broadcastTwice, reshape, reshape, transpose, slice, pad, concatenate, reverse, dynamicSlice, dynamicUpdateSlice};

} // namespace meshwright::tests::draw
