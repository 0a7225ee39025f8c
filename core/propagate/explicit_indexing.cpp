// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/propagate/explicit_rules.h"

#include "core/program/other_op.h"
#include "core/propagate/explicit_reshape.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace meshwright {

ExplicitRules::Indexing ExplicitRules::indexingOf(
    const IndexingDims& dims, std::size_t operandRank, std::size_t indicesRank, std::size_t sliceRank)
{
    Indexing indexing;
    for (std::size_t dim = 0; dim < operandRank; ++dim) {
        if (!contains(dims.collapsed, dim) && !contains(dims.operandBatch, dim))
            indexing.operandWindow.push_back(dim);
    }
    for (std::size_t dim = 0; dim < sliceRank; ++dim) {
        if (!contains(dims.window, dim))
            indexing.sliceBatch.push_back(dim);
    }
    for (std::size_t dim = 0; dim < indicesRank; ++dim) {
        if (dim != dims.indexVectorDim)
            indexing.indexDims.push_back(dim);
    }
    return indexing;
}

/// True when all that say something say the same.
bool ExplicitRules::resolves(std::initializer_list<const AxisRefs*> axes)
{
    const AxisRefs* one = nullptr;
    for (const AxisRefs* each : axes) {
        if (each->empty())
            continue;
        if (one != nullptr && *one != *each)
            return false;
        one = each;
    }
    return true;
}

/// JAX's `_gather_spec_computation`.
std::optional<DimAxes> ExplicitRules::gatherResult(const DimAxes& operand, const DimAxes& indices) const
{
    const auto& attributes = *std::get_if<GatherAttributes>(&m_op.attributes);
    const IndexingDims& dims = attributes.dims;
    const std::size_t rank = m_op.resultTypes[0].shape.size();
    const Indexing indexing = indexingOf(dims, operand.size(), indices.size(), rank);
    for (const std::size_t dim : dims.indexMap) {
        if (attributes.sliceSizes[dim] != m_op.operandTypes[0].shape[dim] && !operand[dim].empty())
            return std::nullopt;
    }
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
        if (!resolves({&operand[dims.operandBatch[i]], &indices[dims.indicesBatch[i]]}))
            return std::nullopt;
    }
    for (std::size_t dim = 0; dim < indices.size(); ++dim) {
        if (!contains(dims.indicesBatch, dim) && !indices[dim].empty())
            return std::nullopt;
    }
    DimAxes result(rank);
    for (std::size_t i = 0; i < dims.window.size() && i < indexing.operandWindow.size(); ++i)
        result[dims.window[i]] = operand[indexing.operandWindow[i]];
    for (std::size_t i = 0; i < indexing.sliceBatch.size() && i < indexing.indexDims.size(); ++i)
        result[indexing.sliceBatch[i]] = indices[indexing.indexDims[i]];
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
        const auto at = std::find(indexing.indexDims.begin(), indexing.indexDims.end(), dims.indicesBatch[i]);
        if (at == indexing.indexDims.end())
            continue;
        AxisRefs& axes = result[indexing.sliceBatch[static_cast<std::size_t>(at - indexing.indexDims.begin())]];
        if (axes.empty())
            axes = operand[dims.operandBatch[i]];
    }
    return result;
}

void ExplicitRules::gather()
{
    const DimAxes operand = operandAxes(0);
    const DimAxes indices = operandAxes(1);
    if (auto result = gatherResult(operand, indices))
        return give(*std::move(result));
    fail("MW1257",
        fmt::format(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could "
            "not be resolved unambiguously (or would require collectives on inputs). Got operand={} {}, indices={} {}",
            typeText(m_op.operandTypes[0]), specOf(operand), typeText(m_op.operandTypes[1]), specOf(indices)),
        "give the indexing an out_sharding, or reshard what is indexed");
    chooseByRule();
}

/// JAX's `_scatter_spec_computation`.
std::optional<DimAxes> ExplicitRules::scatterResult(const DimAxes& operand, const DimAxes& indices, const DimAxes& updates) const
{
    const IndexingDims& dims = std::get_if<ScatterAttributes>(&m_op.attributes)->dims;
    const Indexing indexing = indexingOf(dims, operand.size(), indices.size(), updates.size());
    const auto updateDimOf = [&](std::size_t indicesDim) {
        const auto at = std::find(indexing.indexDims.begin(), indexing.indexDims.end(), indicesDim);
        return indexing.sliceBatch[static_cast<std::size_t>(at - indexing.indexDims.begin())];
    };
    DimAxes result = operand;
    std::vector<std::size_t> updateBatch;
    for (std::size_t i = 0; i < dims.operandBatch.size(); ++i) {
        const std::size_t updateDim = updateDimOf(dims.indicesBatch[i]);
        updateBatch.push_back(updateDim);
        AxisRefs& own = result[dims.operandBatch[i]];
        if (!resolves({&own, &indices[dims.indicesBatch[i]], &updates[updateDim]}))
            return std::nullopt;
        for (const AxisRefs* more : {&indices[dims.indicesBatch[i]], &updates[updateDim]}) {
            if (own.empty())
                own = *more;
        }
    }
    for (std::size_t i = 0; i < dims.window.size() && i < indexing.operandWindow.size(); ++i) {
        const AxisRefs& update = updates[dims.window[i]];
        const AxisRefs& own = operand[indexing.operandWindow[i]];
        const bool full = m_op.operandTypes[2].shape[dims.window[i]] == m_op.operandTypes[0].shape[indexing.operandWindow[i]];
        if (!(full && update == own) && !(update.empty() && own.empty()))
            return std::nullopt;
    }
    for (const std::size_t dim : dims.collapsed) {
        if (!operand[dim].empty())
            return std::nullopt;
    }
    for (std::size_t dim = 0; dim < updates.size(); ++dim) {
        if (!contains(updateBatch, dim) && !contains(dims.window, dim) && !updates[dim].empty())
            return std::nullopt;
    }
    for (std::size_t dim = 0; dim < indices.size(); ++dim) {
        if (!contains(dims.indicesBatch, dim) && !indices[dim].empty())
            return std::nullopt;
    }
    return result;
}

void ExplicitRules::scatter()
{
    const DimAxes operand = operandAxes(0);
    if (auto result = scatterResult(operand, operandAxes(1), operandAxes(2)))
        return give(*std::move(result));
    fail("MW1257",
        fmt::format("Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out "
                    "sharding could not be resolved unambiguously (or would require collectives on inputs). Got operand={}, "
                    "indices={}, updates={}",
            specOf(operand), specOf(operandAxes(1)), specOf(operandAxes(2))),
        "give the update an out_sharding, or reshard what it works on");
    chooseByRule();
}

void ExplicitRules::convolution()
{
    const auto dims = convolutionDims(std::get_if<OtherAttributes>(&m_op.attributes)->attributes);
    if (!dims)
        return unknown();
    const DimAxes kernel = operandAxes(1);
    const bool kernelWhole = std::all_of(kernel.begin(), kernel.end(), [](const AxisRefs& axes) { return axes.empty(); });
    if (kernelWhole && operandAxes(0)[dims->input.inner].empty()) {
        std::vector<std::size_t> dimOf(operandAxes(0).size());
        dimOf[dims->input.outer] = dims->result.outer;
        dimOf[dims->input.inner] = dims->result.inner;
        for (std::size_t i = 0; i < dims->input.spatial.size(); ++i)
            dimOf[dims->input.spatial[i]] = dims->result.spatial[i];
        return resized("conv_general_dilated", dimOf);
    }
    fail("MW1257",
        fmt::format("Please specify out_sharding to conv_general_dilated: only a kernel that is replicated and an input "
                    "whose features "
                    "are whole are without doubt. Got lhs {} and rhs {}",
            specOf(operandAxes(0)), specOf(kernel)),
        "give the convolution an out_sharding, or reshard its operands");
    chooseByRule();
}

void ExplicitRules::unknown()
{
    const bool anySharded = std::any_of(m_op.operands.begin(), m_op.operands.end(), [](const ExplicitSharding& one) {
        return one && std::any_of(one->dims.begin(), one->dims.end(), [](const DimSharding& dim) { return !dim.axes.empty(); });
    });
    if (!anySharded) {
        for (const TensorType& type : m_op.resultTypes)
            m_answer.results.push_back(shardingWith(DimAxes(type.shape.size()), m_mesh));
        return;
    }
    fail("MW1257", fmt::format("sharding rule for {} is not implemented: its operands are {}", opText(), operandSpecs()),
        "make its operands whole, or work around it with jax.sharding.auto_axes(.., out_sharding=..)");
    if (m_op.resultTypes.size() == 1)
        chooseByRule();
}

/// By the dimensions that go together: each operand as it is where that is possible, and whole where it is not; sums over what is
/// contracted. One choice with the sums, one without, and everything whole.
void ExplicitRules::chooseByRule()
{
    const auto rule = shardingRule(m_op.kind, m_op.attributes, m_op.operandTypes, m_op.resultTypes);
    if (rule) {
        chooseByRule(*rule, true);
        chooseByRule(*rule, false);
    }
    std::vector<ExplicitSharding> whole;
    for (const TensorType& type : m_op.operandTypes)
        whole.push_back(shardingWith(DimAxes(type.shape.size()), m_mesh));
    choose(DimAxes(m_op.resultTypes.front().shape.size()), std::move(whole));
}

void ExplicitRules::chooseByRule(const OpShardingRule& rule, bool sums)
{
    DimAxes axes(rule.factors.size()); // of each factor
    AxisRefs used;
    for (std::size_t i = 0; i < m_op.operands.size() && i < rule.operands.size(); ++i) {
        const DimAxes own = operandAxes(i);
        for (std::size_t dim = 0; dim < own.size(); ++dim) {
            const auto& factors = rule.operands[i][dim];
            if (factors.size() != 1 || own[dim].empty() || overlapAny(used, own[dim]) || !axes[factors.front()].empty())
                continue;
            const Factor& factor = rule.factors[factors.front()];
            const bool allowed = factor.kind == FactorKind::PassThrough || (sums && factor.kind == FactorKind::Reduction);
            if (!allowed || factor.size % shardCount(own[dim]) != 0)
                continue;
            axes[factors.front()] = own[dim];
            used.insert(used.end(), own[dim].begin(), own[dim].end());
        }
    }
    const auto dimsOf = [&](const DimFactors& factors) {
        DimAxes dims;
        for (const auto& dim : factors)
            dims.push_back(dim.size() == 1 ? axes[dim.front()] : AxisRefs());
        return dims;
    };
    std::vector<ExplicitSharding> operands;
    for (const DimFactors& factors : rule.operands)
        operands.push_back(shardingWith(dimsOf(factors), m_mesh));
    TensorSharding computed = shardingWith(dimsOf(rule.results.front()), m_mesh);
    for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
        if (rule.factors[factor].kind == FactorKind::Reduction)
            computed.unreduced.insert(computed.unreduced.end(), axes[factor].begin(), axes[factor].end());
    }
    std::sort(computed.unreduced.begin(), computed.unreduced.end());
    operands.resize(m_op.operands.size());
    choose(axesOf(computed), std::move(operands), computed);
}

} // namespace meshwright
