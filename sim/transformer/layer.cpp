// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/transformer/layer.h"

#include "core/support/checked.h"

#include <algorithm>
#include <cmath>

namespace meshwright::sim {

namespace {

/// Of the rate of products with a scale a tensor that those with a scale a row reach, through CUTLASS: LLaMA 3 8B on 8 H100 makes 7,690 tokens/s a GPU
/// with the first and 6,768 with the second (torchao, torchao/float8/README.md); the casts are less than half of the difference.
constexpr double kRowwiseShare = 0.85;
constexpr double kCollectiveStarts = 1.5; ///< what a collective costs the host, in kernels: the kernel, events of both streams

constexpr double kVocabularyTile = 128.0;
constexpr double kDepthStep = 128.0;

constexpr double kScaleShare = 4.0 / 128.0; ///< a 32-bit scale for 128 values

/// What products' gradients read is kept in 8 bits.
bool keepsNarrow(const TrainingWork& work)
{
    return bytesPerElement(work.format) < 2.0 && (work.recipe == Fp8Recipe::Delayed || work.recipe == Fp8Recipe::Blockwise);
}

/// Sizes of one rank that the costs of a layer are made of.
struct Sizes {
    explicit Sizes(const TrainingPlan& plan)
        : model(plan.model)
        , tp(asDouble(plan.layout.tp))
        , cp(asDouble(plan.layout.cp))
        , hidden(asDouble(plan.model.hidden))
        , tokens(plan.work.microbatch * asDouble(plan.work.sequence) / cp)
        , spreadTokens(plan.layout.sequenceParallel ? tokens / tp : tokens)
        , keys(asDouble(plan.work.sequence))
        , heads(asDouble(plan.model.heads) / tp)
        , keyHeads(std::max(1.0, asDouble(plan.model.keyValueHeads) / tp))
        , queryDim(asDouble(plan.model.headDim + plan.details.ropeHeadDim))
        , valueDim(asDouble(plan.details.valueHeadDim > 0 ? plan.details.valueHeadDim : plan.model.headDim))
        , bytes(bytesPerElement(plan.work.activationFormat))
        , inputBytes(keepsNarrow(plan.work) ? 1.0 + kScaleShare : bytes)
    {
    }

    const TransformerConfig& model;
    double tp;
    double cp;
    double hidden;
    double tokens; ///< of a microbatch, after cp
    double spreadTokens; ///< where sequence parallelism splits them
    double keys; ///< of the whole sequence
    double heads;
    double keyHeads;
    double queryDim;
    double valueDim;
    double bytes; ///< of an activation
    double inputBytes; ///< of one that is kept because a product's gradient reads it
};

/// A gated or plain feed-forward width as the number of its products' columns.
double inner(const TransformerConfig& model, double width)
{
    return model.gatedFfn ? 2.0 * width : width;
}

double sharedWidth(const TrainingPlan& plan)
{
    return plan.details.sharedFfn > 0 ? asDouble(plan.details.sharedFfn)
                                      : asDouble(plan.model.sharedExperts * plan.model.expertFfn);
}

double attentionParameters(const TrainingPlan& plan)
{
    const Sizes size(plan);
    if (plan.details.keyValueRank > 0) {
        const double latent = asDouble(plan.details.keyValueRank);
        const double queries = plan.details.queryRank > 0
            ? asDouble(plan.details.queryRank) * (size.hidden + size.heads * size.queryDim)
            : size.hidden * size.heads * size.queryDim;
        return queries + size.hidden * (latent + asDouble(plan.details.ropeHeadDim))
            + latent * size.heads * (asDouble(plan.model.headDim) + size.valueDim) + size.heads * size.valueDim * size.hidden;
    }
    return size.hidden * (size.heads * size.queryDim + size.keyHeads * (size.queryDim + size.valueDim))
        + size.heads * size.valueDim * size.hidden;
}

/// Of queries, keys, values and the output; latents have products of their own.
double attentionMatrices(const ModelDetails& details)
{
    return 4.0 + (details.keyValueRank > 0 ? 1.0 : 0.0) + (details.queryRank > 0 ? 1.0 : 0.0);
}

/// The layer's cost is added up part by part; each part knows what share of it is computed again.
class LayerBuilder {
public:
    LayerBuilder(const TrainingPlan& plan, const DeviceCost& curve, const Cluster& cluster, const StackConstants& constants)
        : m_plan(plan)
        , m_work(plan.work)
        , m_again(plan.work.recompute)
        , m_curve(curve)
        , m_cluster(cluster)
        , m_constants(constants)
        , m_size(plan)
    {
    }

    LayerCost build();

private:
    double productSeconds(const MatmulDims& product) const;
    void product(const MatmulDims& product, double again);
    void stream(double forwardBytes, double backwardBytes, double kernels, double again);
    void keep(double bytes, double again);
    void projections();
    void core(double keys, double share);
    void norms();
    void feedForward(double width, double share);
    void experts(double share);
    void tensorCollectives();
    void contextCollectives();
    void narrowCasts(const MatmulDims& product);
    void dispatchByProduct();
    double namedBytes() const;

    const TrainingPlan& m_plan;
    const TrainingWork& m_work;
    const Recomputation& m_again;
    const DeviceCost& m_curve;
    const Cluster& m_cluster;
    const StackConstants& m_constants;
    const Sizes m_size;
    LayerCost m_cost;
    double m_share = 1.0; ///< of the layers that have the part in hand
    double m_agreeing = 0.0; ///< seconds of a pass: scales of 8-bit products that ranks share
};

double LayerBuilder::productSeconds(const MatmulDims& product) const
{
    const double seconds = m_share * m_curve.productSeconds(product, m_work.format);
    return m_work.recipe == Fp8Recipe::Rowwise && bytesPerElement(m_work.format) < 2.0 ? seconds / kRowwiseShare : seconds;
}

/// Forward, the gradient of the input and the gradient of the weight.
void LayerBuilder::product(const MatmulDims& product, double again)
{
    const double forward = productSeconds(product);
    // Tokens are the depth of the weight's gradient: their number is not a length of a row, and is padded to whole steps.
    const double depth = std::ceil(product.m / kDepthStep) * kDepthStep;
    const double weights = productSeconds({product.batch, product.k, product.n, depth});
    const double backward = productSeconds({product.batch, product.m, product.k, product.n}) + weights;
    m_cost.forward.products += forward;
    m_cost.forward.kernels += m_share;
    m_cost.backward.products += backward;
    m_cost.backward.kernels += 2.0 * m_share;
    m_cost.weights.products += weights;
    m_cost.weights.kernels += m_share;
    m_cost.again.products += again * forward;
    m_cost.again.kernels += again * m_share;
    narrowCasts(product);
    // Gradients of weights are added to those of the passes before.
    if (m_plan.layout.zeroStage < 3 && m_plan.microbatches() > 1.0) {
        const double added = m_share * m_curve.streamSeconds(6.0 * product.batch * product.n * product.k);
        m_cost.backward.elementwise += added;
        m_cost.weights.elementwise += added;
    }
}

/// What narrowing takes, in bytes read and written for each value.
struct NarrowCost {
    double operand = 4.0; ///< of an input or a weight, in the forward pass: 2 read, 1 written, and the transposed 1
    double again = 0.0; ///< of an input, once more in the backward pass
    double weightAgain = 0.0; ///< of a weight, once more in the backward pass
    double gradient = 4.0;
    double kernels = 2.0; ///< started in each pass
};

NarrowCost narrowCost(Fp8Recipe recipe)
{
    switch (recipe) {
    case Fp8Recipe::None:
    case Fp8Recipe::Delayed:
        return {};
    case Fp8Recipe::Current: // read once more for the largest value
        return {6.0, 0.0, 0.0, 6.0, 4.0};
    case Fp8Recipe::Rowwise: // the backward products, along other dimensions, cast all three operands again
        return {4.0, 4.0, 4.0, 8.0, 2.0};
    case Fp8Recipe::Blockwise: // along tokens for the weights' gradients: from the 8 bits kept, and beside those along columns
        return {3.0 + kScaleShare, 2.0 + 2.0 * kScaleShare, 0.0, 4.0 + 2.0 * kScaleShare, 3.0};
    }
    return {};
}

/// Operands in 8 bits and less are made from 16 bits; the weights once a step only.
void LayerBuilder::narrowCasts(const MatmulDims& product)
{
    if (bytesPerElement(m_work.format) >= 2.0)
        return;
    const double weights = product.batch * product.n * product.k / m_plan.microbatches();
    const double inputs = product.batch * product.m * product.k;
    const double outputs = product.batch * product.m * product.n;
    const NarrowCost cost = narrowCost(m_work.recipe);
    stream(m_share * cost.operand * (inputs + weights),
        m_share * (cost.gradient * outputs + cost.again * inputs + cost.weightAgain * weights), cost.kernels * m_share,
        m_again.ffnIn);
    // Ranks that split a tensor agree on its largest value.
    if (m_work.recipe == Fp8Recipe::Current && m_plan.layout.tp > 1)
        m_agreeing += m_share * m_cluster.allReduceSeconds(4.0, m_cluster.group(m_plan.layout.tp, 1));
}

void LayerBuilder::stream(double forwardBytes, double backwardBytes, double kernels, double again)
{
    const double forward = m_curve.streamSeconds(forwardBytes);
    m_cost.forward.elementwise += forward;
    m_cost.forward.kernels += kernels;
    m_cost.backward.elementwise += m_curve.streamSeconds(backwardBytes);
    m_cost.backward.kernels += kernels;
    m_cost.again.elementwise += again * forward;
    m_cost.again.kernels += again * kernels;
}

void LayerBuilder::keep(double bytes, double again)
{
    m_cost.fullBytes += m_share * bytes;
    m_cost.keptBytes += m_share * bytes * (1.0 - again);
}

void LayerBuilder::projections()
{
    const Sizes& size = m_size;
    const double rows = size.tokens;
    if (m_plan.details.keyValueRank > 0) {
        const double latent = asDouble(m_plan.details.keyValueRank);
        const double rope = asDouble(m_plan.details.ropeHeadDim);
        const double rank = asDouble(m_plan.details.queryRank);
        if (rank > 0.0) {
            product({1.0, rows, rank, size.hidden}, m_again.qkv);
            product({1.0, rows, size.heads * size.queryDim, rank}, m_again.qkv);
        } else {
            product({1.0, rows, size.heads * size.queryDim, size.hidden}, m_again.qkv);
        }
        product({1.0, rows, latent + rope, size.hidden}, m_again.qkv);
        product({1.0, rows, size.heads * (asDouble(size.model.headDim) + size.valueDim), latent}, m_again.qkv);
        // Norms of the latents, the assembly of keys from both parts.
        stream(8.0 * rows * (latent + rank) + 8.0 * rows * size.heads * size.queryDim,
            12.0 * rows * (latent + rank) + 8.0 * rows * size.heads * size.queryDim, 5.0, m_again.elementwise);
        keep(size.bytes * rows * (latent + rope + rank), m_again.qkv);
        keep(size.bytes * rows * size.heads * (2.0 * size.queryDim + size.valueDim), m_again.qkv);
    } else {
        product(
            {1.0, rows, size.heads * size.queryDim + size.keyHeads * (size.queryDim + size.valueDim), size.hidden}, m_again.qkv);
        keep(size.bytes * rows * (size.heads * size.queryDim + size.keyHeads * (size.queryDim + size.valueDim)), m_again.qkv);
    }
    product({1.0, rows, size.hidden, size.heads * size.valueDim}, m_again.attentionOut);
    keep(size.bytes * rows * size.heads * size.valueDim, std::min(m_again.attention, m_again.elementwise));
    if (size.model.position == PositionKind::Rotary) {
        const double elements = rows * (size.heads + size.keyHeads) * size.queryDim;
        if (m_work.fusedRotary)
            stream(2.0 * size.bytes * elements, 2.0 * size.bytes * elements, 2.0, m_again.elementwise);
        else {
            stream(9.0 * size.bytes * elements, 9.0 * size.bytes * elements, 10.0, m_again.elementwise);
            keep(2.0 * size.bytes * elements, m_again.elementwise);
        }
    }
}

/// Scores, softmax and weighted sum. `keys` that a query sees on average when masked ones are skipped.
void LayerBuilder::core(double keys, double share)
{
    const Sizes& size = m_size;
    const double rows = size.tokens;
    if (!keepsScores(m_work.attention)) {
        const double flops = 2.0 * rows * size.heads * (size.queryDim + size.valueDim) * keys;
        // A ring computes with one rank's keys at a time, half of which a query sees where there is no window.
        const bool isRing = !m_plan.layout.ulysses && !m_plan.layout.gathersContext;
        const double met = isRing ? std::min(keys, size.keys / 2.0 / size.cp) : keys;
        const double forward = share * m_curve.fusedAttentionSeconds(flops, size.queryDim, met, m_work.attention, false);
        // Backward: five products for the two of forward, the scores among them again.
        const double backward = share * m_curve.fusedAttentionSeconds(2.5 * flops, size.queryDim, met, m_work.attention, true);
        m_cost.forward.attention += forward;
        m_cost.backward.attention += backward;
        m_cost.again.attention += m_again.attention * forward;
        m_cost.forward.kernels += share;
        m_cost.backward.kernels += 3.0 * share;
        m_cost.again.kernels += m_again.attention * share;
        m_cost.fullBytes += share * 4.0 * rows * size.heads;
        m_cost.keptBytes += share * 4.0 * rows * size.heads * (1.0 - m_again.attention);
        return;
    }
    const double queries = size.keys / size.cp;
    const AttentionShape shape{rows / queries * size.heads, queries, size.keys, size.queryDim, size.valueDim};
    const bool dropout = m_plan.details.dropout;
    const auto made = [&](bool isBackward) {
        return m_curve.scoredAttention(shape, m_work.activationFormat, m_work.attention, dropout, isBackward);
    };
    const ScoredAttention forward = made(false);
    const ScoredAttention backward = made(true);
    constexpr double kForwardProducts = 2.0;
    constexpr double kBackwardProducts = 4.0;
    m_cost.forward.attention += share * forward.productSeconds;
    m_cost.backward.attention += share * backward.productSeconds;
    m_cost.again.attention += share * m_again.attention * forward.productSeconds;
    m_cost.forward.kernels += kForwardProducts * share;
    m_cost.backward.kernels += kBackwardProducts * share;
    m_cost.again.kernels += kForwardProducts * share * m_again.attention;
    stream(share * forward.bytes, share * backward.bytes, share * (forward.kernels - kForwardProducts), m_again.attention);
    const bool eager = m_work.attention == AttentionKernel::Unfused;
    const double scores = shape.batch * shape.queries * shape.keys;
    const double kept = scores * ((eager ? 4.0 : 2.0) + (dropout ? 3.0 : 0.0));
    m_cost.fullBytes += share * kept;
    m_cost.keptBytes += share * kept * (1.0 - m_again.attention);
    m_cost.workingBytes = std::max(m_cost.workingBytes, scores * (eager ? 12.0 : 4.0));
}

void LayerBuilder::norms()
{
    const Sizes& size = m_size;
    const double elements = size.spreadTokens * size.hidden;
    // Fused: 2 in, 2 out. Eager: to 32 bits (2 in, 4 out), square (4, 4), mean (4), scale (4, 4), back (4, 2), weight (2, 2).
    const double count = m_plan.details.parallelBlock ? 1.0 : 2.0;
    const double norms = m_work.fusedNorms ? 4.0 : 36.0;
    const double backward = m_work.fusedNorms ? 6.0 : 54.0;
    stream(count * norms * elements, count * backward * elements, count * (m_work.fusedNorms ? 1.0 : 6.0), m_again.elementwise);
    const double residual = m_plan.details.dropout ? (m_work.fusedElementwise ? 7.0 : 15.0) : 6.0;
    stream(count * residual * elements, count * (m_plan.details.dropout ? 5.0 : 6.0) * elements,
        count * (m_work.fusedElementwise ? 1.0 : 3.0), m_again.elementwise);
    const double inputs = 2.0 * size.bytes * elements; // of both norms: the residual stream
    m_cost.fullBytes += inputs;
    m_cost.keptBytes += m_again.layerInputOnly ? inputs / 2.0 : inputs;
    // A gradient of a split product reads its whole input again, unless it gathers it anew.
    keep(2.0 * size.inputBytes * elements, m_again.elementwise);
    if (m_plan.details.dropout)
        keep(2.0 * elements, m_again.elementwise);
    if (!m_work.fusedNorms)
        keep(2.0 * 8.0 * elements, m_again.elementwise);
    m_cost.workingBytes = std::max(m_cost.workingBytes, 4.0 * size.bytes * size.tokens * size.hidden);
}

void LayerBuilder::feedForward(double width, double share)
{
    const Sizes& size = m_size;
    const double columns = inner(size.model, width / size.tp);
    const double rows = size.tokens;
    m_share = share;
    product({1.0, rows, columns, size.hidden}, m_again.ffnIn);
    product({1.0, rows, size.hidden, width / size.tp}, m_again.ffnOut);
    const double elements = share * rows * width / size.tp;
    const double forward = size.model.gatedFfn ? (m_work.fusedElementwise ? 6.0 : 10.0) : (m_work.fusedElementwise ? 4.0 : 8.0);
    const double backward
        = size.model.gatedFfn ? (m_work.fusedElementwise ? 10.0 : 18.0) : (m_work.fusedElementwise ? 6.0 : 10.0);
    stream(forward * elements, backward * elements, share * (m_work.fusedElementwise ? 1.0 : 2.0), m_again.elementwise);
    keep(size.bytes * rows * columns, m_again.ffnIn);
    keep(size.inputBytes * rows * width / size.tp, m_again.elementwise);
    if (size.model.gatedFfn && !m_work.fusedElementwise)
        keep(size.bytes * rows * width / size.tp, m_again.elementwise);
    m_cost.workingBytes = std::max(m_cost.workingBytes, 2.0 * size.bytes * rows * columns);
    m_share = 1.0;
}

/// Routed experts: tokens are exchanged over ep, each rank multiplies what came for its experts, and they go back.
void LayerBuilder::experts(double share)
{
    const Sizes& size = m_size;
    const TransformerConfig& model = size.model;
    const ParallelLayout& layout = m_plan.layout;
    m_share = share;
    // Tokens that this rank sends: tensor-parallel ranks each send their own part.
    const double sent = size.tokens / size.tp * asDouble(model.expertsPerToken);
    const double own = asDouble(model.experts) / asDouble(layout.ep);
    // Where every rank has all experts none gets more rows than another; a capacity is computed in full, filled or not.
    const double capacity = m_plan.details.expertCapacity;
    const double most = capacity > 0.0 ? capacity : layout.ep > 1 ? layout.expertImbalance : 1.0;
    const double each = sent * most * asDouble(layout.ep) / asDouble(model.experts);
    const double computed = capacity > 0.0 ? each : m_curve.groupedRows(own, each);
    const double width = asDouble(model.expertFfn);
    product({1.0, size.tokens / size.tp, asDouble(model.experts), size.hidden}, 0.0);
    product({own, computed, inner(model, width), size.hidden}, m_again.ffnIn);
    product({own, computed, size.hidden, width}, m_again.ffnOut);
    const double rows = own * each;
    const double activation = model.gatedFfn ? 6.0 : 4.0;
    stream(share * rows * activation * width, share * rows * 1.6 * activation * width, 2.0 * share, m_again.elementwise);
    if (m_plan.details.dispatchesByProduct && capacity > 0.0)
        dispatchByProduct();
    else {
        // Rows are sorted by expert, and put back and added up: of each pass the picked side, then the other.
        const double pass = size.bytes * (m_curve.pickedRowShare() + 1.0);
        stream(share * rows * 2.0 * pass * size.hidden, share * rows * (2.0 * pass + 2.0 * size.bytes) * size.hidden, 6.0 * share,
            m_again.elementwise);
    }
    keep(rows * (size.bytes * inner(model, width) + size.inputBytes * size.hidden), m_again.ffnIn);
    keep(size.inputBytes * rows * width, m_again.elementwise);
    const double bytes = size.bytes * sent * size.hidden * most;
    const std::int64_t stride = layout.expertStride > 0 ? layout.expertStride : layout.ep > layout.dp * layout.cp ? 1 : layout.tp;
    const RankGroup group = m_cluster.group(layout.ep, stride);
    // Distinct hosts among those of k experts drawn evenly: o (1 - (1 - 1/o)^k).
    const double copies = asDouble(model.expertsPerToken);
    const double distinct = group.outer * (1.0 - std::pow(1.0 - 1.0 / group.outer, copies));
    const double once = layout.dispatchesOnceAHost ? distinct / copies : 1.0;
    const double narrowed
        = m_work.recipe == Fp8Recipe::Blockwise ? size.inputBytes / size.bytes : 1.0; // on the way to the products
    const double exchange
        = m_cluster.allToAllSeconds(narrowed * bytes, group, once) + m_cluster.allToAllSeconds(bytes, group, once);
    m_cost.forward.expert += share * exchange;
    m_cost.backward.expert += share * exchange;
    if (m_again.communication)
        m_cost.again.expert += share * exchange;
    m_cost.workingBytes = std::max(m_cost.workingBytes, 2.0 * bytes + 2.0 * size.bytes * rows * inner(model, width));
    m_share = 1.0;
}

/// A mask of [tokens, experts x capacity] for each sequence takes tokens to experts, a weighted one brings them back: forward both, backward the
/// gradients of what they were applied to and of the weights.
void LayerBuilder::dispatchByProduct()
{
    const Sizes& size = m_size;
    const double tokens = size.keys / size.cp;
    const double slots = tokens * asDouble(size.model.expertsPerToken) * m_plan.details.expertCapacity;
    const MatmulDims there{size.tokens / size.tp / tokens, slots, size.hidden, tokens};
    const MatmulDims back{there.batch, tokens, size.hidden, slots};
    const MathFormat format = m_work.activationFormat;
    const double forward = m_share * (m_curve.productSeconds(there, format) + m_curve.productSeconds(back, format));
    m_cost.forward.products += forward;
    m_cost.forward.kernels += 2.0 * m_share;
    m_cost.backward.products += forward + m_share * m_curve.productSeconds({there.batch, tokens, slots, size.hidden}, format);
    m_cost.backward.kernels += 3.0 * m_share;
    m_cost.again.products += m_again.elementwise * forward;
    m_cost.again.kernels += 2.0 * m_again.elementwise * m_share;
}

void LayerBuilder::tensorCollectives()
{
    const Sizes& size = m_size;
    const ParallelLayout& layout = m_plan.layout;
    if (layout.tp > 1) {
        const RankGroup group = m_cluster.group(layout.tp, 1);
        const double bytes = size.bytes * size.tokens * size.hidden;
        const double parts = m_plan.details.parallelBlock ? 1.0 : 2.0;
        const double width = bytesPerElement(m_work.format);
        const bool narrow = layout.gathersNarrow && m_work.recipe != Fp8Recipe::Rowwise && width < size.bytes;
        const double gathered = m_cluster.allGatherSeconds(narrow ? bytes * width / size.bytes : bytes, group);
        const double sums = parts
            * (layout.sequenceParallel ? gathered + m_cluster.allGatherSeconds(bytes, group)
                                       : m_cluster.allReduceSeconds(bytes, group));
        const double regather = layout.sequenceParallel ? parts * gathered : 0.0;
        const double overlap = layout.asyncTensorParallel ? std::max(0.7, m_constants.tensorOverlap) : m_constants.tensorOverlap;
        m_cost.forward.tensor = sums * (layout.asyncTensorParallel ? 1.0 - overlap : 1.0);
        // Beside the gradients of the weights.
        const double behind = std::min(m_cost.backward.products / 2.0, overlap * (sums + regather));
        m_cost.backward.tensor = sums + regather - behind;
        m_cost.again.tensor = m_again.communication ? m_cost.forward.tensor : 0.0;
        m_cost.forward.kernels += kCollectiveStarts * parts;
        m_cost.backward.kernels += kCollectiveStarts * parts;
        m_cost.again.kernels += m_again.communication ? kCollectiveStarts * parts : 0.0;
    }
    if (layout.cp > 1)
        contextCollectives();
    m_cost.forward.tensor += m_agreeing;
    m_cost.backward.tensor += m_agreeing;
    const double shown = 1.0 - m_constants.expertOverlap;
    m_cost.forward.expert *= shown;
    m_cost.backward.expert *= shown;
    m_cost.again.expert *= shown;
    if (size.model.experts > 0) {
        // A third forward, as of the kernels.
        const double waits
            = m_constants.expertLayerSeconds * (1.0 - asDouble(size.model.denseLayers) / asDouble(size.model.layers));
        m_cost.forward.expert += waits / 3.0;
        m_cost.backward.expert += waits * 2.0 / 3.0;
    }
}

/// What attention over cp ranks waits for, beyond what its own parts hide. A ring passes keys and values on while a part is computed, and backward
/// their gradients too.
void LayerBuilder::contextCollectives()
{
    const Sizes& size = m_size;
    const ParallelLayout& layout = m_plan.layout;
    const RankGroup group = m_cluster.group(layout.cp, layout.tp);
    const std::int64_t stride = layout.tp * (group.outer > 1.0 ? layout.cp : 1);
    const double steps = size.cp - 1.0;
    const double keyBytes = size.bytes * size.tokens * size.keyHeads * (size.queryDim + size.valueDim);
    double forward = 0.0;
    double backward = 0.0;
    if (layout.ulysses) {
        const double sent = size.bytes * size.tokens * size.heads * size.queryDim;
        forward = m_cluster.allToAllSeconds(2.0 * sent, group)
            + m_cluster.allToAllSeconds(2.0 * sent * size.keyHeads / size.heads, group);
        backward = forward;
    } else if (layout.gathersContext) {
        // The gather hides behind the first part only; gradients, in 32 bits, go round behind a part each.
        const double repeated = keyBytes * size.heads / size.keyHeads;
        const double gather = m_cluster.allGatherSeconds(size.cp * repeated, group);
        const double passed = m_cluster.sendSeconds(4.0 / size.bytes * repeated, stride);
        const double part = m_cost.backward.attention / size.cp;
        forward = std::max(0.0, gather - m_cost.forward.attention / size.cp);
        backward = std::max(0.0, gather - part) + steps * std::max(0.0, passed - part);
    } else {
        const double all = steps * m_cluster.sendSeconds(keyBytes, stride);
        forward = std::max(0.0, all - m_cost.forward.attention * steps / size.cp);
        backward = std::max(0.0, 2.0 * all - m_cost.backward.attention * steps / size.cp);
    }
    m_cost.forward.context = forward;
    m_cost.backward.context = backward;
    m_cost.again.context = m_again.communication ? forward : 0.0;
}

/// What a policy that keeps outputs by their names keeps: the layer's input, and of products and attention's core what is not computed again.
double LayerBuilder::namedBytes() const
{
    const Sizes& size = m_size;
    const TransformerConfig& model = size.model;
    const auto saved = [](double again, double columns) { return (1.0 - again) * columns; };
    const double routed = model.experts > 0 ? 1.0 - asDouble(model.denseLayers) / asDouble(model.layers) : 0.0;
    const double copies = asDouble(model.expertsPerToken);
    const double width
        = (1.0 - routed) * inner(model, asDouble(model.ffn)) + routed * copies * inner(model, asDouble(model.expertFfn));
    const double outputs = (1.0 - routed) + routed * copies;
    const double columns = saved(m_again.qkv, size.heads * size.queryDim + size.keyHeads * (size.queryDim + size.valueDim))
        + saved(m_again.attention, size.heads * size.valueDim) + saved(m_again.attentionOut, size.hidden)
        + saved(m_again.ffnIn, width / size.tp) + saved(m_again.ffnOut, outputs * size.hidden);
    return size.bytes * (size.spreadTokens * size.hidden + size.tokens * columns);
}

LayerCost LayerBuilder::build()
{
    const TransformerConfig& model = m_plan.model;
    const double layers = asDouble(model.layers);
    projections();
    const double window = asDouble(model.slidingWindow);
    const bool windowed = window > 0.0 && window < m_size.keys;
    const double windowShare = !windowed  ? 0.0
        : m_plan.details.windowLayers > 0 ? asDouble(m_plan.details.windowLayers) / layers
                                          : 1.0;
    if (windowShare < 1.0)
        core(m_size.keys / 2.0, 1.0 - windowShare);
    if (windowShare > 0.0)
        core(window - window * window / (2.0 * m_size.keys), windowShare);
    norms();
    if (model.experts > 0) {
        const double dense = asDouble(model.denseLayers) / layers;
        if (dense > 0.0)
            feedForward(asDouble(model.ffn), dense);
        experts(1.0 - dense);
        const double shared = sharedWidth(m_plan);
        if (shared > 0.0)
            feedForward(shared, 1.0 - dense);
    } else {
        feedForward(asDouble(model.ffn), 1.0);
    }
    tensorCollectives();
    m_cost.hostBytes = m_again.offloaded * namedBytes();
    m_cost.keptBytes *= 1.0 - m_again.offloaded;
    if (m_again.layerInputOnly)
        m_cost.keptBytes = m_size.bytes * m_size.spreadTokens * m_size.hidden * (1.0 - m_again.offloaded);
    return m_cost;
}

} // namespace

PassCost& PassCost::operator+=(const PassCost& other)
{
    products += other.products;
    attention += other.attention;
    elementwise += other.elementwise;
    tensor += other.tensor;
    context += other.context;
    expert += other.expert;
    kernels += other.kernels;
    return *this;
}

double passSeconds(const PassCost& pass, const DeviceCost& curve)
{
    return std::max(
        pass.computing() + pass.communicating() + pass.kernels * curve.kernelSeconds(), pass.kernels * curve.hostKernelSeconds());
}

void PassCost::scaleComputing(double factor)
{
    products *= factor;
    attention *= factor;
    elementwise *= factor;
    kernels *= factor;
}

PassCost operator*(double factor, const PassCost& pass)
{
    return {factor * pass.products, factor * pass.attention, factor * pass.elementwise, factor * pass.tensor,
        factor * pass.context, factor * pass.expert, factor * pass.kernels};
}

namespace {

/// True where the formulas below do not know all of a model's layers by themselves.
bool hasOtherLayers(const TransformerConfig& model)
{
    return !model.kinds.empty() || model.mixer != MixerKind::Attention || model.expertHidden > 0 || model.ffnBesideExperts;
}

/// One kind of layers in the words of the formulas: a recurrence is attention over a chunk by the heads of its states, a block that a layer lacks one
/// as small as can be, a dense block beside experts a shared one, and experts of latents as many times narrower as the latents.
TrainingPlan planOfKind(const TrainingPlan& plan, const TransformerConfig& kind)
{
    constexpr std::int64_t kChunk = 64;
    TrainingPlan own{kind, plan.details, plan.work, plan.layout};
    TransformerConfig& model = own.model;
    model.kinds.clear();
    model.mixer = MixerKind::Attention;
    own.details.windowLayers = kind.slidingWindowLayers;
    own.details.queryRank = kind.queryRank;
    own.details.keyValueRank = kind.keyValueRank;
    own.details.ropeHeadDim = kind.latentRotaryDim;
    own.details.valueHeadDim = kind.valueHeadDim;
    if (kind.mixer != MixerKind::Attention) {
        const bool isNone = kind.mixer == MixerKind::None;
        model.heads = isNone ? 1 : kind.stateHeads;
        model.keyValueHeads = isNone ? 1 : kind.stateKeyHeads;
        model.headDim = isNone ? 1 : kind.stateKeyDim;
        own.details.valueHeadDim = isNone ? 1 : kind.stateValueDim;
        own.details.queryRank = own.details.keyValueRank = own.details.ropeHeadDim = 0;
        own.details.windowLayers = 0;
        model.slidingWindow = isNone ? 1 : kChunk;
    }
    if (kind.experts > 0)
        own.details.sharedFfn = kind.sharedExperts * kind.expertFfn + (kind.ffnBesideExperts ? kind.ffn : 0);
    if (kind.experts > 0 && kind.expertHidden > 0)
        model.expertFfn = std::max<std::int64_t>(1, kind.expertFfn * kind.expertHidden / kind.hidden);
    model.expertHidden = 0;
    model.ffnBesideExperts = false;
    model.ffn = std::max<std::int64_t>(1, kind.ffn);
    return own;
}

/// Calls `use` with a plan of each kind of layers and its share of them.
template <typename Use>
void forEachKind(const TrainingPlan& plan, Use use)
{
    if (plan.model.kinds.empty())
        use(planOfKind(plan, plan.model), 1.0);
    for (const TransformerConfig& kind : plan.model.kinds)
        use(planOfKind(plan, kind), asDouble(kind.layers) / asDouble(plan.model.layers));
}

} // namespace

RankParameters rankParameters(const TrainingPlan& plan)
{
    if (hasOtherLayers(plan.model)) {
        RankParameters mean;
        forEachKind(plan, [&mean](const TrainingPlan& own, double share) {
            const RankParameters one = rankParameters(own);
            mean.layer += share * one.layer;
            mean.experts += share * one.experts;
            mean.layerMatrices += share * one.layerMatrices;
            mean.expertMatrices += share * one.expertMatrices;
            mean.embedding = one.embedding;
            mean.head = one.head;
        });
        return mean;
    }
    const TransformerConfig& model = plan.model;
    const double hidden = asDouble(model.hidden);
    const double tp = asDouble(plan.layout.tp);
    const double matrices = model.gatedFfn ? 3.0 : 2.0;
    const double normSize = model.norm == NormKind::LayerNorm ? 2.0 : 1.0;
    RankParameters parameters;
    const double dense = model.experts > 0 ? asDouble(model.denseLayers) / asDouble(model.layers) : 1.0;
    parameters.layer = attentionParameters(plan) + 2.0 * normSize * hidden + dense * matrices * hidden * asDouble(model.ffn) / tp;
    if (model.attentionBias)
        parameters.layer += (asDouble(model.heads) + 2.0 * asDouble(model.keyValueHeads)) * asDouble(model.headDim) / tp;
    if (model.outputBias)
        parameters.layer += hidden;
    if (model.ffnBias)
        parameters.layer += dense * (inner(model, asDouble(model.ffn)) / tp + hidden);
    if (model.experts > 0) {
        parameters.layer += (1.0 - dense) * (hidden * asDouble(model.experts) + matrices * hidden * sharedWidth(plan) / tp);
        parameters.experts
            = (1.0 - dense) * matrices * hidden * asDouble(model.expertFfn) * asDouble(model.experts) / asDouble(plan.layout.ep);
        parameters.expertMatrices = (1.0 - dense) * matrices;
    }
    parameters.layerMatrices
        = attentionMatrices(plan.details) + dense * matrices + (1.0 - dense) * (1.0 + (sharedWidth(plan) > 0.0 ? matrices : 0.0));
    parameters.embedding = asDouble(model.vocabulary) * hidden / tp;
    if (model.position == PositionKind::Learned)
        parameters.embedding += asDouble(model.maxPositions) * hidden;
    if (!model.tiedEmbeddings || plan.layout.pp > 1)
        parameters.head = asDouble(model.vocabulary) * hidden / tp;
    return parameters;
}

LayerCost layerCost(const TrainingPlan& plan, const DeviceCost& curve, const Cluster& cluster, const StackConstants& constants)
{
    if (hasOtherLayers(plan.model)) {
        LayerCost mean;
        forEachKind(plan, [&](const TrainingPlan& own, double share) {
            const LayerCost one = layerCost(own, curve, cluster, constants);
            mean.forward += share * one.forward;
            mean.again += share * one.again;
            mean.backward += share * one.backward;
            mean.weights += share * one.weights;
            mean.keptBytes += share * one.keptBytes;
            mean.hostBytes += share * one.hostBytes;
            mean.fullBytes = std::max(mean.fullBytes, one.fullBytes);
            mean.workingBytes = std::max(mean.workingBytes, one.workingBytes);
        });
        return mean;
    }
    LayerCost cost = LayerBuilder(plan, curve, cluster, constants).build();
    for (PassCost* pass : {&cost.forward, &cost.again, &cost.backward, &cost.weights})
        pass->scaleComputing(plan.details.layerFactor);
    return cost;
}

EndCost endCost(const TrainingPlan& plan, const DeviceCost& curve, const Cluster& cluster, const StackTraits& traits)
{
    const Sizes size(plan);
    // Tables are padded so that every rank's part is whole tiles.
    const double columns = std::ceil(asDouble(plan.model.vocabulary) / size.tp / kVocabularyTile) * kVocabularyTile;
    EndCost cost;
    const double lookedUp = size.tokens * size.hidden * size.bytes;
    cost.embeddingForward.elementwise = curve.streamSeconds(3.0 * lookedUp);
    cost.embeddingForward.kernels = 4.0;
    cost.embeddingBackward.elementwise = curve.streamSeconds(3.0 * lookedUp + 2.0 * columns * size.hidden);
    cost.embeddingBackward.kernels = 4.0;
    const MathFormat format = plan.work.activationFormat;
    cost.headForward.products = curve.productSeconds({1.0, size.tokens, columns, size.hidden}, format);
    cost.headWeights.products = curve.productSeconds({1.0, size.hidden, columns, size.tokens}, format);
    cost.headWeights.kernels = 1.0;
    cost.headBackward.products
        = curve.productSeconds({1.0, size.tokens, size.hidden, columns}, format) + cost.headWeights.products;
    // To 32 bits (2 in, 4 out), maximum, subtraction, exponential and sum; back: gradient of the loss, to 16 bits.
    const double logits = size.tokens * (traits.parallelLogits ? columns : asDouble(plan.model.vocabulary));
    cost.headForward.elementwise = curve.streamSeconds(26.0 * logits);
    cost.headBackward.elementwise = curve.streamSeconds(14.0 * logits);
    cost.headForward.kernels = 12.0;
    cost.headBackward.kernels = 8.0;
    if (plan.layout.tp > 1) {
        const RankGroup group = cluster.group(plan.layout.tp, 1);
        const double bytes = size.bytes * size.tokens * size.hidden;
        cost.embeddingForward.tensor = cluster.allReduceSeconds(bytes, group);
        cost.headForward.tensor = 3.0 * cluster.allReduceSeconds(4.0 * size.tokens, group);
        cost.headBackward.tensor = cluster.allReduceSeconds(bytes, group);
        if (!traits.parallelLogits)
            cost.headForward.tensor = cluster.allGatherSeconds(2.0 * logits, group);
    }
    const std::int64_t chunks = plan.work.lossChunks;
    if (chunks > 1) {
        cost.headBackward.products += cost.headForward.products;
        cost.headBackward.elementwise += cost.headForward.elementwise;
    }
    // In 16 bits with their gradient, or beside 32 bits of each array that the loss's kernels keep.
    const double bytesOfLogit = plan.work.lossKernels == LossKernels::Fused ? 4.0
        : plan.work.lossKernels == LossKernels::InPlace                     ? 10.0
                                                                            : 14.0;
    cost.logitBytes = bytesOfLogit * logits / asDouble(chunks);
    return cost;
}

} // namespace meshwright::sim
