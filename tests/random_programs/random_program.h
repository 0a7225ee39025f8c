// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/random_programs/block_ops.h"

namespace meshwright::tests {

/// What a random program is made from: numbers for the meshes, each argument, each op and the results. Every list of numbers makes a sound
/// program, so numbers can be left out one by one.
struct Recipe {
    std::uint64_t meshes = 0;
    std::vector<std::uint64_t> arguments;
    std::vector<std::uint64_t> ops;
    std::uint64_t results = 0;
};

inline Recipe randomRecipe(std::uint64_t seed)
{
    Random random(seed);
    Recipe recipe;
    recipe.meshes = random();
    for (std::int64_t i = pick(random, 1, 4); i > 0; --i)
        recipe.arguments.push_back(random());
    for (std::int64_t i = pick(random, 3, 16); i > 0; --i)
        recipe.ops.push_back(random());
    recipe.results = random();
    return recipe;
}

/// One to four axes, 1 to 64 devices, most often few; sometimes a second mesh of the same devices in another order or form.
inline std::vector<NamedMesh> drawMeshes(std::uint64_t seed)
{
    Random random(seed);
    const std::int64_t limits[] = {8, 8, 8, 12, 12, 16, 24, 64};
    const std::int64_t limit = limits[pick(random, 0, 7)];
    const std::int64_t sizes[] = {1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8};
    const auto axesOf = [&](const char* const* names, std::int64_t count, std::int64_t devices) {
        std::vector<MeshAxis> axes;
        for (std::int64_t axis = 0; axis < count; ++axis) {
            const std::int64_t size = axis + 1 == count && devices > 0 ? devices : sizes[pick(random, 0, 12)];
            if (devices > 0 ? devices % size != 0 : elementCount({size, axes.empty() ? 1 : 1}) * 1 > limit)
                continue;
            axes.push_back({names[axis], size});
            devices = devices > 0 ? devices / size : devices;
        }
        return axes;
    };
    const char* const first[] = {"x", "y", "z", "w"};
    const char* const second[] = {"p", "q", "r"};
    std::vector<MeshAxis> axes;
    std::int64_t devices = 1;
    for (const MeshAxis& axis : axesOf(first, pick(random, 1, 4), 0)) {
        if (devices * axis.size <= limit) {
            axes.push_back(axis);
            devices *= axis.size;
        }
    }
    if (axes.empty())
        axes.push_back({"x", 1});
    const auto orderOf = [&](int percent) {
        std::vector<DeviceId> order;
        if (chance(random, percent)) {
            order.resize(static_cast<std::size_t>(devices));
            std::iota(order.begin(), order.end(), DeviceId{0});
            std::shuffle(order.begin(), order.end(), random);
        }
        return order;
    };
    std::vector<NamedMesh> meshes{{"mesh", valueOf(Mesh::create(axes, orderOf(12)))}};
    if (chance(random, 12)) {
        const bool isSame = chance(random, 40);
        std::vector<MeshAxis> others = isSame ? axes : axesOf(second, pick(random, 1, 3), devices);
        meshes.push_back({"other", valueOf(Mesh::create(std::move(others), orderOf(isSame ? 100 : 30)))});
    }
    return meshes;
}

/// Builds a recipe's program: arguments with random shardings that divide them, ops on whatever values there are, and results of which some
/// have declared shardings.
inline Program programOf(const Recipe& recipe)
{
    Program program;
    program.meshes = drawMeshes(recipe.meshes);
    Function& function = program.functions.emplace_back();
    function.name = "main";
    ProgramGenerator generator(function, program.meshes);
    for (const std::uint64_t seed : recipe.arguments) {
        Random random(seed);
        const DType types[] = {DType::S32, DType::S32, DType::S32, DType::F32, DType::F32, DType::S64, DType::F64, DType::S16,
            DType::S8, DType::BF16, DType::F16, DType::Pred, DType::U8};
        const TensorType type{types[pick(random, 0, 12)], generator.shape(random)};
        const ValueId argument = generator.builder.argument(type, "", Role::Input);
        if (chance(random, 85))
            function[argument].sharding = ProgramGenerator::dividing(
                chance(random, 50) ? generator.sharding(random, type.shape.size()) : generator.splitting(random, type.shape),
                type.shape);
        generator.keep(argument, isUnsigned(type.dtype) ? 16 : 8);
    }
    if (generator.isEmpty())
        generator.keep(generator.splat({DType::S32, {program.meshes.front().mesh.deviceCount()}}, 1), 1);
    for (const std::uint64_t seed : recipe.ops) {
        Random random(seed);
        draw::drawOp(generator, random);
    }
    // The last values are results: what they use is alive.
    Random random(recipe.results);
    const std::vector<ValueId>& values = generator.values();
    const std::size_t count = std::min(values.size(), static_cast<std::size_t>(pick(random, 1, 3)));
    std::vector<ValueId> results(values.end() - static_cast<std::ptrdiff_t>(count), values.end());
    for (ValueId& result : results) {
        std::optional<TensorSharding>& declared = function.resultShardings.emplace_back();
        const Shape shape = generator.shapeOf(result);
        if (chance(random, 40))
            declared = ProgramGenerator::dividing(generator.sharding(random, shape.size()), shape);
        // What the user places must divide where it leaves the function.
        const OpId producer = function[result].producer;
        if (producer.valid() && function[producer].kind == OpKind::ShardingConstraint)
            result = generator.builder.binary(
                generator.dtypeOf(result) == DType::Pred ? OpKind::Or : OpKind::Maximum, result, result);
    }
    if (std::none_of(
            function.resultShardings.begin(), function.resultShardings.end(), [](const auto& s) { return s.has_value(); }))
        function.resultShardings.clear();
    generator.builder.setResults(std::move(results));
    return program;
}

} // namespace meshwright::tests
