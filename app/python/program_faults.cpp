// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/program_faults.h"

#include "core/program/transform.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace meshwright::python {

namespace {

bool isSplitOver(const std::optional<TensorSharding>& sharding, std::int32_t axis)
{
    const auto isOf = [&](const AxisRef& ref) { return ref.axis == axis; };
    return !sharding || std::any_of(sharding->unreduced.begin(), sharding->unreduced.end(), isOf)
        || std::any_of(sharding->dims.begin(), sharding->dims.end(),
            [&](const DimSharding& dim) { return std::any_of(dim.axes.begin(), dim.axes.end(), isOf); });
}

/// The axes that split a dimension of a value; none where nothing is known.
AxisRefs axesAt(const Function& function, ValueId value, std::size_t dim)
{
    const auto& sharding = function[value].sharding;
    return sharding && dim < sharding->dims.size() ? sharding->dims[dim].axes : AxisRefs();
}

bool contains(const AxisRefs& axes, const AxisRef& axis)
{
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// What a value is made of element by element: an argument, or the result of a constraint; nothing when it is neither.
std::optional<ValueId> originOf(const Function& function, ValueId value)
{
    std::vector<ValueId> open = {value};
    std::set<ValueId> seen;
    while (!open.empty()) {
        const ValueId one = open.back();
        open.pop_back();
        const OpId producer = function[one].producer;
        if (!producer.valid() || function[producer].kind == OpKind::ShardingConstraint)
            return one;
        const Op& op = function[producer];
        for (const ValueId operand : isElementwise(op.kind) ? op.operands : std::vector<ValueId>()) {
            if (function[operand].type.shape == function[one].type.shape && seen.insert(operand).second)
                open.push_back(operand);
        }
    }
    return std::nullopt;
}

/// The operand of a product, and its dimension, that a dimension of the result is.
std::pair<ValueId, std::size_t> sourceOf(const Function& function, const Op& product, std::size_t dim)
{
    const auto& dot = product.as<DotAttributes>();
    if (dim < dot.lhsBatch.size())
        return {product.operands[0], dot.lhsBatch[dim]};
    dim -= dot.lhsBatch.size();
    for (const bool isLeft : {true, false}) {
        const ValueId operand = product.operands[isLeft ? 0 : 1];
        const auto& batch = isLeft ? dot.lhsBatch : dot.rhsBatch;
        const auto& contracting = isLeft ? dot.lhsContracting : dot.rhsContracting;
        for (std::size_t own = 0; own < function[operand].type.shape.size(); ++own) {
            const bool isFree = std::find(batch.begin(), batch.end(), own) == batch.end()
                && std::find(contracting.begin(), contracting.end(), own) == contracting.end();
            if (isFree && dim-- == 0)
                return {operand, own};
        }
    }
    return {product.operands[1], 0};
}

/// True when the devices along an axis make different parts of a value, whatever its sharding says: a constraint behind it reaches back.
bool isMadeSplit(const Function& function, ValueId value, std::size_t dim, const AxisRef& axis)
{
    while (!contains(axesAt(function, value, dim), axis)) {
        const OpId producer = function[value].producer;
        if (!producer.valid())
            return false;
        const Op& op = function[producer];
        if (op.kind == OpKind::DotGeneral) {
            const auto [operand, own] = sourceOf(function, op, dim);
            return contains(axesAt(function, operand, own), axis);
        }
        const auto next = std::find_if(op.operands.begin(), op.operands.end(),
            [&](ValueId operand) { return function[operand].type.shape == function[value].type.shape; });
        if (!isElementwise(op.kind) || next == op.operands.end())
            return false;
        value = *next;
    }
    return true;
}

/// Calls `visit` with the origin of each operand of a product, where it is whole along a dimension along which an axis splits the other operand.
void forEachTakenApart(const Function& function, const std::function<void(ValueId, std::size_t, const AxisRef&)>& visit)
{
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (op.kind != OpKind::DotGeneral)
            return;
        const auto& dot = op.as<DotAttributes>();
        for (std::size_t i = 0; i < dot.lhsContracting.size(); ++i) {
            for (const bool isLeft : {true, false}) {
                const ValueId own = op.operands[isLeft ? 0 : 1];
                const std::size_t dim = isLeft ? dot.lhsContracting[i] : dot.rhsContracting[i];
                const auto origin = originOf(function, own);
                for (const AxisRef& axis :
                    axesAt(function, op.operands[isLeft ? 1 : 0], isLeft ? dot.rhsContracting[i] : dot.lhsContracting[i])) {
                    if (origin && !contains(axesAt(function, *origin, dim), axis))
                        visit(*origin, dim, axis);
                }
            }
        }
    });
}

void addOnce(std::vector<DimOverAxis>& all, DimOverAxis one)
{
    if (std::find(all.begin(), all.end(), one) == all.end())
        all.push_back(std::move(one));
}

std::string nameOf(const AxisRef& axis, const std::vector<NamedMesh>& meshes)
{
    return meshes.front().mesh.axes()[static_cast<std::size_t>(axis.axis)].name;
}

} // namespace

std::vector<std::pair<std::string, std::int64_t>> repeatedAxes(const Function& function, const std::vector<NamedMesh>& meshes)
{
    std::vector<std::pair<std::string, std::int64_t>> repeated;
    const std::vector<MeshAxis>& axes = meshes.front().mesh.axes();
    for (std::size_t i = 0; meshes.size() == 1 && i < axes.size(); ++i) {
        const auto isSplit = [&](ValueId value) { return isSplitOver(function[value].sharding, static_cast<std::int32_t>(i)); };
        bool hasProducts = false;
        bool isUsed = false;
        forEachOp(function, [&](OpId id) {
            const Op& op = function[id];
            if (op.kind != OpKind::DotGeneral)
                return;
            hasProducts = true;
            isUsed = isUsed || isSplit(op.results.front()) || std::any_of(op.operands.begin(), op.operands.end(), isSplit);
        });
        if (axes[i].size > 1 && hasProducts && !isUsed
            && std::any_of(function.arguments().begin(), function.arguments().end(), isSplit))
            repeated.emplace_back(axes[i].name, axes[i].size);
    }
    return repeated;
}

std::vector<DimOverAxis> gatheredResults(const Function& function, const std::vector<NamedMesh>& meshes)
{
    std::vector<DimOverAxis> gathered;
    for (std::size_t i = 0; meshes.size() == 1 && i < function.resultShardings.size(); ++i) {
        const auto& asked = function.resultShardings[i];
        for (std::size_t dim = 0; asked && dim < asked->dims.size(); ++dim) {
            for (const AxisRef& axis : axesAt(function, function.results()[i], dim)) {
                if (!contains(asked->dims[dim].axes, axis))
                    addOnce(gathered, {i, dim, nameOf(axis, meshes)});
            }
        }
    }
    return gathered;
}

std::vector<DimOverAxis> argumentsTakenApart(const Function& function, const std::vector<NamedMesh>& meshes)
{
    std::vector<DimOverAxis> taken;
    const auto& arguments = function.arguments();
    if (meshes.size() != 1)
        return taken;
    forEachTakenApart(function, [&](ValueId origin, std::size_t dim, const AxisRef& axis) {
        const auto argument = std::find(arguments.begin(), arguments.end(), origin);
        if (argument != arguments.end())
            addOnce(taken, {static_cast<std::size_t>(argument - arguments.begin()), dim, nameOf(axis, meshes)});
    });
    return taken;
}

std::vector<std::pair<std::string, std::string>> gatheredAndTakenApart(
    const Function& function, const std::vector<NamedMesh>& meshes)
{
    std::vector<std::pair<std::string, std::string>> found;
    if (meshes.size() != 1)
        return found;
    forEachTakenApart(function, [&](ValueId origin, std::size_t dim, const AxisRef& axis) {
        const OpId producer = function[origin].producer;
        if (!producer.valid() || !isMadeSplit(function, function[producer].operands.front(), dim, axis))
            return;
        const std::pair<std::string, std::string> one{typeText(function[origin].type), nameOf(axis, meshes)};
        if (std::find(found.begin(), found.end(), one) == found.end())
            found.push_back(one);
    });
    return found;
}

} // namespace meshwright::python
