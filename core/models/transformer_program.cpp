// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/training_program.h"
#include "core/models/transformer_blocks.h"
#include "core/models/transformer_layers.h"
#include "core/program/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <span>

namespace meshwright {

namespace {

/// True for the layers with a window: `windowed` of `layers`, spread evenly, the first among them.
bool isWindowed(std::int64_t layer, std::int64_t windowed, std::int64_t layers)
{
    return ((layer + 1) * windowed + layers - 1) / layers > (layer * windowed + layers - 1) / layers;
}

/// True for what is a kernel of its own, whose operands lie in memory. Reductions read what element-wise work makes on the way.
bool isKernel(OpKind kind)
{
    return kind == OpKind::DotGeneral || opInfo(kind).opClass == OpClass::Other;
}

class TransformerTraining {
public:
    TransformerTraining(const TransformerModel& model, const TrainingOptions& options)
        : m_model(model)
        , m_c(model.config)
        , m_options(options)
        , m_builder(m_loss)
        , m_blocks(m_builder, model, options)
    {
    }

    Result<Program> build()
    {
        if (Problems problems = constraintProblems(transformerActivations(m_model, m_options.batch), m_options);
            !problems.empty())
            return problems;
        TrainedModel trained = described();
        addLoss(trained, trained.masks > 0 ? MaskRows::All : MaskRows::None);
        trained.loss = std::move(m_loss);
        if (trained.masks > 0)
            trained.evaluated = TransformerTraining(m_model, m_options).lossWith(trained, MaskRows::None);
        if (trained.masks > 0 && m_options.pipelineMicrobatches > 0)
            trained.part = TransformerTraining(m_model, m_options).lossWith(trained, MaskRows::Part);
        if (m_model.lossChunks == 1) {
            trained.accuracy = [this](Builder& builder, ValueId logits, ValueId y) {
                const ValueId count = rightCount(builder, widened(builder, logits), labels(builder, y));
                return accuracyOf(builder, builder.named(count, "accuracy.count"));
            };
            trained.shown = [this](Builder& builder, ValueId logits) {
                return widened(builder, everyToken() ? m_blocks.lastPosition(builder, logits) : logits);
            };
        }
        trained.residualOf = [all = residualsOfOps(trained.loss)](OpId op) { return all[op.at()]; };
        return trainingProgram(trained, m_options);
    }

    /// See residualsOf.
    std::vector<Residual> residuals()
    {
        const TrainedModel trained = described();
        addLoss(trained, trained.masks > 0 ? MaskRows::Part : MaskRows::None);
        const std::vector<Residual> all = residualsOfOps(m_loss);
        std::vector<Residual> inOrder;
        forEachOp(m_loss, [&](OpId op) { inOrder.push_back(all[op.at()]); });
        return inOrder;
    }

private:
    using Dims = TransformerBlocks::Dims;
    using Shared = TransformerBlocks::Shared;
    using Parameters = TransformerBlocks::Parameters;

    bool everyToken() const { return m_model.predict == Prediction::EveryToken; }

    /// Its parameters and batch.
    TrainedModel described() const
    {
        TrainedModel trained;
        trained.parameters = modelParameters(transformerParameters(m_model), m_options);
        if (m_model.unrolled && m_model.beginsAsLoop)
            reportRows(trained.parameters);
        trained.x = {DType::S32, {m_options.batch, m_model.sequence}};
        trained.y = everyToken() ? trained.x : TensorType{DType::S32, {m_options.batch}};
        trained.lossType = m_blocks.wide();
        if (m_options.dropout > 0.0)
            trained.masks = 1 + 2 * m_c.layers;
        return trained;
    }

    /// Says of which stacked arrays layers' parameters are rows.
    void reportRows(std::vector<ModelParameter>& parameters) const
    {
        std::map<std::string, ModelParameter*> byName;
        for (ModelParameter& parameter : parameters)
            byName[parameter.name] = &parameter;
        for (const LayerRun& run : layerRuns(m_model)) {
            for (const ModelArray& array : layerArrays(run.layer)) {
                for (std::int64_t i = 0; i < run.count; ++i) {
                    ModelParameter& parameter = *byName.at(fmt::format("{}.{}", layerName(m_model, run, i), array.name));
                    parameter.rowOf = fmt::format("{}.{}", run.prefix, array.name);
                    parameter.row = i;
                    parameter.rows = run.count;
                }
            }
        }
    }

    Function lossWith(const TrainedModel& trained, MaskRows rows)
    {
        addLoss(trained, rows);
        return std::move(m_loss);
    }

    /// The product that an op is, or rounds to the activations' type: then that is kept, and the wide sums are not.
    static const DotAttributes* productOf(const Function& loss, const Op& op)
    {
        if (op.kind == OpKind::DotGeneral)
            return &op.as<DotAttributes>();
        const OpId rounded = op.kind == OpKind::Convert ? loss[op.operands.front()].producer : OpId();
        return rounded.valid() && loss[rounded].kind == OpKind::DotGeneral ? &loss[rounded].as<DotAttributes>() : nullptr;
    }

    /// Of each value whether a kernel reads it from memory, whether it is made of parameters alone, and whether it is numbers that were drawn.
    struct ValueUses {
        std::vector<bool> inMemory;
        std::vector<bool> ofParameters;
        std::vector<bool> isDrawn;
    };

    static ValueUses usesOf(const Function& loss)
    {
        const std::vector<bool> none(loss.values.size());
        ValueUses uses{none, none, none};
        for (const ValueId argument : loss.arguments())
            uses.ofParameters[argument.at()] = loss[argument].role == Role::Parameter;
        for (const Op& op : loss.ops) {
            for (const ValueId operand : op.operands)
                uses.inMemory[operand.at()] = uses.inMemory[operand.at()] || isKernel(op.kind);
            if (isEightBits(loss, op)) { // what is rounded is read for its scale, and then once more
                ValueId rounded = loss[loss[op.operands.front()].producer].operands.front();
                while (loss[rounded].producer.valid() && loss[loss[rounded].producer].kind == OpKind::Reshape)
                    rounded = loss[loss[rounded].producer].operands.front();
                uses.inMemory[rounded.at()] = uses.inMemory[op.results.front().at()] = true;
            }
            const auto isOfParameters = [&](ValueId operand) { return bool(uses.ofParameters[operand.at()]); };
            const bool keepsDrawn = isCheap(op.kind) || op.kind == OpKind::DynamicSlice;
            if (op.kind == OpKind::RandomBits || (keepsDrawn && uses.isDrawn[op.operands.front().at()]))
                uses.isDrawn[op.results.front().at()] = true;
            if (op.kind == OpKind::Repeat) {
                const std::vector<ValueId>& inside = loss[op.bodies.front()].arguments;
                for (std::size_t i = op.as<RepeatAttributes>().carries; i < inside.size(); ++i)
                    uses.ofParameters[inside[i].at()] = isOfParameters(op.operands[i]);
            } else if (isCheap(op.kind) || op.kind == OpKind::Reduce || op.kind == OpKind::Constant) {
                uses.ofParameters[op.results.front().at()] = std::all_of(op.operands.begin(), op.operands.end(), isOfParameters);
            }
        }
        return uses;
    }

    /// By op, also of blocks.
    std::vector<Residual> residualsOfOps(const Function& loss) const
    {
        const ValueUses uses = usesOf(loss);
        std::vector<Residual> all(loss.ops.size());
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = isOffloaded(loss, OpId{i})                                        ? Residual::Offloaded
                : m_model.recompute == Recompute::Layer && m_blocks.endsLayer(OpId{i}) ? Residual::Whole
                : isAgain(loss, OpId{i}, uses)                                         ? Residual::Again
                                                                                       : Residual::Kept;
        return all;
    }

    bool isOffloaded(const Function& loss, OpId id) const
    {
        if (m_model.recompute != Recompute::OffloadedDots)
            return m_blocks.isOffloaded(id);
        using enum TransformerBlocks::Region;
        const TransformerBlocks::Region region = m_blocks.regionOf(id);
        return region != Outside && region != Loss && region != LossChunk && isProductWithoutBatch(loss, loss[id]);
    }

    static bool isProductWithoutBatch(const Function& loss, const Op& op)
    {
        const DotAttributes* product = productOf(loss, op);
        return product != nullptr && product->lhsBatch.empty();
    }

    /// A rounding to 8 bits.
    static bool isEightBits(const Function& loss, const Op& op)
    {
        if (op.kind != OpKind::Convert || !loss[op.operands.front()].producer.valid())
            return false;
        const DType type = loss[op.results.front()].type.dtype;
        return isFloating(type) && byteSize(type) == 1;
    }

    static bool isCheap(OpKind kind)
    {
        const OpClass opClass = opInfo(kind).opClass;
        return (isElementwise(kind) && opClass != OpClass::Constraint) || opClass == OpClass::Shaping;
    }

    /// True for what a kernel makes on its way from operands to result: element by element, and nothing else reads it from memory; and for what is
    /// made of parameters, which are there anyway. Not for a mask of drawn numbers: kernels of dropout keep its byte for each element.
    static bool isInsideKernel(const Function& loss, const Op& op, const ValueUses& uses)
    {
        if (!isCheap(op.kind) || (op.kind == OpKind::Compare && uses.isDrawn[op.operands.front().at()]))
            return false;
        const ValueId result = op.results.front();
        return uses.ofParameters[result.at()] || (productOf(loss, op) == nullptr && !uses.inMemory[result.at()]);
    }

    bool isAgain(const Function& loss, OpId id, const ValueUses& uses) const
    {
        const Op& op = loss[id];
        const TransformerBlocks::Region region = m_blocks.regionOf(id);
        if (region == TransformerBlocks::Region::Outside)
            return false;
        if (region == TransformerBlocks::Region::Loss) // kernels of a loss keep the logits, not their exponentials
            return isInsideKernel(loss, op, uses);
        // Kernels of recurrences keep what they are given and go through its chunks again (mamba_ssm's ssd_combined, FLA's chunk_gated_delta_rule).
        if (region == TransformerBlocks::Region::LossChunk || region == TransformerBlocks::Region::States)
            return true;
        switch (m_model.recompute) {
        case Recompute::None:
            return isInsideKernel(loss, op, uses);
        case Recompute::Nothing:
            return uses.ofParameters[op.results.front().at()] && isCheap(op.kind);
        case Recompute::Selective:
            return region == TransformerBlocks::Region::AttentionCore || isInsideKernel(loss, op, uses);
        case Recompute::Full:
        case Recompute::Layer:
            return true;
        case Recompute::Dots:
            return productOf(loss, op) == nullptr;
        case Recompute::DotsWithoutBatch:
        case Recompute::OffloadedDots:
            return !isProductWithoutBatch(loss, op);
        case Recompute::DotsAndAttention:
            return productOf(loss, op) == nullptr && op.kind != OpKind::Attention;
        case Recompute::Named:
            return !m_blocks.isKept(id);
        }
        return false;
    }

    ValueId embedded(ValueId tokens, ValueId table)
    {
        const ValueId rows = m_builder.convert(table, m_blocks.activation());
        if (m_model.lookup == TokenLookup::Product) {
            const Shape spread = {m_options.batch, m_model.sequence, m_c.vocabulary};
            const ValueId isToken = m_builder.compare(
                CompareDirection::Equal, m_builder.broadcast(tokens, spread, {0, 1}), m_builder.iota({DType::S32, spread}, 2));
            return m_blocks.dot(m_builder.convert(isToken, m_blocks.activation()), rows, {2}, {0});
        }
        GatherAttributes attributes;
        attributes.dims.window = {2};
        attributes.dims.collapsed = {0};
        attributes.dims.indexMap = {0};
        attributes.dims.indexVectorDim = 2;
        attributes.sliceSizes = {1, m_c.hidden};
        return m_builder.add(OpKind::Gather, {rows, tokens}, std::move(attributes));
    }

    /// The masks of some layers, two each.
    Masks masksOf(std::int64_t layer, std::int64_t count)
    {
        Masks masks = m_masks;
        if (masks.keys.valid())
            masks.keys = m_blocks.sliced(m_builder, masks.keys, 0, 1 + 2 * layer, 1 + 2 * (layer + count));
        return masks;
    }

    /// What the layers of a run have with others in common. It is made where it is first asked for: outside of loops.
    Shared sharedBy(const LayerRun& run)
    {
        if (run.layer.mixer != MixerKind::Attention)
            return {};
        const auto [found, isNew] = m_shared.try_emplace({rotaryDims(run.layer), run.layer.rotaryBase});
        if (isNew) {
            m_blocks.become(run.layer);
            found->second = m_blocks.sharedParts();
        }
        return found->second;
    }

    /// The window of each layer of a run as i32[count], where layers differ; a whole row where a layer has none.
    std::vector<std::int64_t> windowsOf(const LayerRun& run) const
    {
        std::vector<std::int64_t> windows;
        if (run.layer.slidingWindow == 0 || run.layer.mixer != MixerKind::Attention)
            return windows;
        const std::int64_t windowed = m_c.slidingWindowLayers > 0 ? m_c.slidingWindowLayers : m_c.layers;
        for (std::int64_t i = 0; i < run.count; ++i)
            windows.push_back(isWindowed(run.at(i), windowed, m_c.layers) ? std::min(run.layer.slidingWindow, m_model.sequence)
                                                                          : m_model.sequence);
        if (*std::min_element(windows.begin(), windows.end()) == m_model.sequence)
            windows.clear();
        return windows;
    }

    ValueId windowConstant(const std::vector<std::int64_t>& windows)
    {
        std::string bytes(windows.size() * sizeof(std::int32_t), '\0');
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const auto window = static_cast<std::int32_t>(windows[i]);
            std::memcpy(bytes.data() + i * sizeof window, &window, sizeof window);
        }
        return m_builder.add(OpKind::Constant, {},
            ConstantAttributes{{DType::S32, {static_cast<std::int64_t>(windows.size())}},
                {std::make_shared<const std::string>(std::move(bytes))}});
    }

    /// One layer of a run, whose parameters are the next ones.
    ValueId layer(ValueId x, const LayerRun& run, std::span<const ValueId>& parameters, const Shared& shared, ValueId window,
        const Masks& masks, std::int64_t index)
    {
        m_blocks.become(run.layer);
        const std::vector<ModelArray> arrays = layerArrays(run.layer);
        Parameters p;
        for (std::size_t i = 0; i < arrays.size(); ++i)
            p.emplace(arrays[i].name, parameters[i]);
        parameters = parameters.subspan(arrays.size());
        return m_blocks.layer(x, p, shared, window, masks, layerName(m_model, run, index));
    }

    ValueId unrolledLoop(ValueId x, const LayerLoop& loop, std::span<const ValueId>& parameters)
    {
        for (std::int64_t i = 0; i < loop.front().count; ++i) {
            for (const LayerRun& run : loop) {
                const std::vector<std::int64_t> windows = windowsOf(run);
                ValueId window;
                if (!windows.empty())
                    window = m_builder.splat({DType::S32, {}}, static_cast<double>(windows[static_cast<std::size_t>(i)]));
                m_blocks.offloadInput(m_loss[x].producer);
                x = layer(x, run, parameters, sharedBy(run), window, masksOf(run.at(i), 1), i);
            }
        }
        return x;
    }

    /// A loop over the stacked parameters, which carries the residual stream.
    ValueId loopedLoop(ValueId x, const LayerLoop& loop, std::span<const ValueId>& parameters)
    {
        const std::int64_t count = loop.front().count;
        const auto period = static_cast<std::int64_t>(loop.size());
        std::vector<ValueId> operands = {x};
        const auto add = [&operands](ValueId operand) {
            operands.push_back(operand);
            return operands.size() - 1;
        };
        std::size_t arrays = 0;
        for (const LayerRun& run : loop)
            arrays += layerArrays(run.layer).size();
        operands.insert(operands.end(), parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(arrays));
        parameters = parameters.subspan(arrays);
        std::vector<std::size_t> windowAt(loop.size()); // 0: none
        for (std::size_t i = 0; i < loop.size(); ++i) {
            if (const std::vector<std::int64_t> windows = windowsOf(loop[i]); !windows.empty())
                windowAt[i] = add(windowConstant(windows));
        }
        const bool drops = m_masks.keys.valid();
        std::size_t keysAt = 0;
        if (drops)
            keysAt = add(m_builder.reshape(masksOf(loop.front().first, count * period).keys, {count, 2 * period, 2}));
        const RepeatAttributes attributes{count, 1, operands.size() - 1, false};
        std::map<ValueId, std::size_t> cosineAt; // the sine behind it
        for (const LayerRun& run : loop) {
            const Shared shared = sharedBy(run);
            if (shared.cosine.valid() && cosineAt.try_emplace(shared.cosine, operands.size()).second)
                operands.insert(operands.end(), {shared.cosine, shared.sine});
        }
        const std::size_t partAt = operands.size(); // whether the masks are on stands behind it
        if (m_masks.part.valid())
            operands.insert(operands.end(), {m_masks.part, m_masks.isOn});

        const OpId repeat = m_builder.beginRepeat(attributes, std::move(operands));
        m_blocks.offloadInput(repeat);
        const std::vector<ValueId> arguments = m_loss[m_builder.block()].arguments;
        std::span<const ValueId> own = std::span(arguments).subspan(1, arrays);
        ValueId inside = arguments.front();
        for (std::size_t i = 0; i < loop.size(); ++i) {
            if (i > 0)
                m_blocks.offloadInput(m_loss[inside].producer);
            const auto block = 2 * static_cast<std::int64_t>(i);
            Masks masks;
            if (drops)
                masks.keys = m_blocks.sliced(m_builder, arguments[keysAt], 0, block, block + 2);
            if (m_masks.part.valid()) {
                masks.part = arguments[partAt];
                masks.isOn = arguments[partAt + 1];
            }
            Shared shared;
            if (const ValueId cosine = sharedBy(loop[i]).cosine; cosine.valid())
                shared = {arguments[cosineAt.at(cosine)], arguments[cosineAt.at(cosine) + 1]};
            const ValueId window = windowAt[i] > 0 ? arguments[windowAt[i]] : ValueId{};
            inside = layer(inside, loop[i], own, shared, window, masks, 0);
        }
        m_builder.setResults({inside});
        const ValueId passed = m_builder.endRepeat(repeat).front();
        const std::int64_t last = loop.back().at(count - 1);
        return std::ranges::binary_search(m_model.cuts, last) ? m_builder.named(passed, layerOutput(m_model, last)) : passed;
    }

    void addLoss(const TrainedModel& trained, MaskRows rows)
    {
        m_loss.name = "loss";
        const std::vector<ValueId> parameters = parameterArguments(m_builder, trained.parameters);
        const auto [tokens, given] = batchArguments(m_builder, trained.x, trained.y);
        const ValueId y = labels(m_builder, given);
        std::size_t next = 0;
        const ValueId table = parameters[next++];
        ValueId x = embedded(m_blocks.inOrder(m_builder, tokens, 1), table);
        if (m_c.embeddingScale)
            x = m_blocks.scaled(x, std::sqrt(static_cast<double>(m_c.hidden)));
        if (m_c.position == PositionKind::Learned) {
            ValueId positions = m_builder.convert(parameters[next++], m_blocks.activation());
            if (m_c.maxPositions > m_model.sequence)
                positions = m_blocks.sliced(m_builder, positions, 0, 0, m_model.sequence);
            x = m_blocks.plus(x, m_blocks.along(m_blocks.inOrder(m_builder, positions, 0), x, {1, 2}));
        }
        m_masks = maskArguments(m_builder, rows, trained.masks);
        if (m_masks.keys.valid())
            x = dropped(m_builder, x, m_masks, 0, m_options);
        x = m_blocks.named(x, "act.embedding");

        std::span<const ValueId> ofLayers = std::span(parameters).subspan(next);
        const std::size_t behindTable = ofLayers.size();
        for (const LayerLoop& loop : layerLoops(m_model))
            x = m_model.unrolled ? unrolledLoop(x, loop, ofLayers) : loopedLoop(x, loop, ofLayers);
        next += behindTable - ofLayers.size();

        m_blocks.enter(TransformerBlocks::Region::Loss);
        const ValueId scale = parameters[next++];
        x = m_blocks.norm(x, m_c.norm, scale, m_c.norm == NormKind::LayerNorm ? parameters[next++] : ValueId{});
        if (!everyToken())
            x = m_blocks.lastPosition(m_builder, x);
        const ValueId head = m_c.tiedEmbeddings ? table : parameters[next++];
        if (m_model.lossChunks > 1)
            return addLossInChunks(x, head, y);
        const ValueId logits = m_blocks.named(logitsOf(x, head), "act.logits");
        const ValueId loss = lossOf(m_builder.named(likelihoodSum(widened(m_builder, logits), y), "loss.sum"));
        m_builder.setResults({loss, logits}, {"loss", "predictions"});
    }

    /// y beside the logits.
    ValueId labels(Builder& builder, ValueId y) const { return everyToken() ? m_blocks.inOrder(builder, y, 1) : y; }

    /// In the type of activations, as frameworks keep them.
    ValueId logitsOf(ValueId x, ValueId head)
    {
        const std::size_t hidden = m_blocks.shape(x).size() - 1;
        return m_blocks.softcapped(
            m_blocks.dot(x, head, {hidden}, {m_c.tiedEmbeddings ? std::size_t{1} : std::size_t{0}}), m_c.logitSoftcap);
    }

    /// The type in which losses are taken.
    ValueId widened(Builder& builder, ValueId logits) const { return builder.convert(logits, m_blocks.wide()); }

    /// [batch, sequence, ..] -> [chunks, batch, sequence / chunks, ..], where chunk i has the tokens i, i + chunks, ..: a split sequence stays split.
    ValueId inChunks(ValueId value)
    {
        Shape shape = m_blocks.shape(value);
        shape[1] /= m_model.lossChunks;
        shape.insert(shape.begin() + 2, m_model.lossChunks);
        Dims order(shape.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::rotate(order.begin(), order.begin() + 2, order.begin() + 3);
        return m_builder.transpose(m_builder.reshape(value, std::move(shape)), std::move(order));
    }

    /// A loop over parts of the sequence: the logits of one take the place of those of the last, forward and, made again, backward. Accuracy is counted
    /// beside the loss.
    void addLossInChunks(ValueId x, ValueId head, ValueId y)
    {
        const ValueId zero = m_builder.splat({m_blocks.wide(), {}}, 0.0);
        const ValueId last = widened(m_builder, logitsOf(m_blocks.lastPosition(m_builder, x), head));
        m_blocks.enter(TransformerBlocks::Region::LossChunk);
        const OpId repeat
            = m_builder.beginRepeat({m_model.lossChunks, 2, 2, false}, {zero, zero, inChunks(x), inChunks(y), head});
        const std::vector<ValueId> inside = m_loss[m_builder.block()].arguments;
        const ValueId logits = widened(m_builder, m_blocks.named(logitsOf(inside[2], inside[4]), "act.logits"));
        m_builder.setResults({m_blocks.plus(inside[0], m_builder.named(likelihoodSum(logits, inside[3]), "loss.chunk")),
            m_blocks.plus(inside[1], m_builder.named(rightCount(m_builder, logits, inside[3]), "accuracy.chunk"))});
        const std::vector<ValueId> sums = m_builder.endRepeat(repeat);
        m_blocks.enter(TransformerBlocks::Region::Outside);
        const ValueId accuracy = accuracyOf(m_builder, m_builder.named(sums[1], "accuracy.count"));
        const ValueId loss = lossOf(m_builder.named(sums[0], "loss.sum")); // the last op, see residualsOf
        m_builder.setResults({loss, last, accuracy}, {"loss", "predictions", "accuracy"});
    }

    /// True at the token that is right: as large as the logits.
    static ValueId atLabel(Builder& builder, ValueId logits, ValueId y)
    {
        const Shape whole = builder.type(logits).shape;
        Dims dims(whole.size() - 1);
        std::iota(dims.begin(), dims.end(), std::size_t{0});
        return builder.compare(
            CompareDirection::Equal, builder.broadcast(y, whole, dims), builder.iota({DType::S32, whole}, whole.size() - 1));
    }

    double predictedTokens() const
    {
        return static_cast<double>(m_options.batch) * (everyToken() ? static_cast<double>(m_model.sequence) : 1.0);
    }

    /// Of the right tokens, all added up.
    ValueId likelihoodSum(ValueId logits, ValueId y)
    {
        const ValueId likelihood = inMemory(LossKernels::Separate, logSoftmax(m_builder, inMemory(LossKernels::InPlace, logits)));
        const ValueId none = m_builder.splat(TensorType(m_builder.type(likelihood)), 0.0);
        const ValueId terms = m_builder.select(atLabel(m_builder, logits, y), likelihood, none);
        Dims all(m_blocks.shape(terms).size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        return m_builder.reduce(ReduceKind::Sum, terms, all);
    }

    /// The value, and its gradient, as arrays of their own where the loss is taken by these kernels or more.
    ValueId inMemory(LossKernels kernels, ValueId value)
    {
        if (m_model.lossKernels < kernels)
            return value;
        const ValueId kept = m_builder.add(OpKind::OptimizationBarrier, {value}, {});
        setStaysOnDevices(m_loss[m_loss[kept].producer]);
        return kept;
    }

    ValueId lossOf(ValueId sum)
    {
        const ValueId loss = m_builder.binary(OpKind::Divide, sum, m_builder.splat({m_blocks.wide(), {}}, -predictedTokens()));
        m_loss[loss].role = Role::Metric;
        return m_builder.named(loss, "loss");
    }

    /// How many predicted tokens have the largest logit of their row; a tie for the largest counts as right.
    ValueId rightCount(Builder& builder, ValueId logits, ValueId y) const
    {
        const TensorType type = builder.type(logits);
        const std::size_t last = type.shape.size() - 1;
        const ValueId lowest = builder.splat(TensorType(type), -std::numeric_limits<double>::infinity());
        const ValueId right
            = builder.reduce(ReduceKind::Max, builder.select(atLabel(builder, logits, y), logits, lowest), {last});
        const ValueId isRight = builder.compare(CompareDirection::Equal, right, builder.reduce(ReduceKind::Max, logits, {last}));
        Dims all(last);
        std::iota(all.begin(), all.end(), std::size_t{0});
        return builder.reduce(ReduceKind::Sum, builder.convert(isRight, m_blocks.wide()), all);
    }

    ValueId accuracyOf(Builder& builder, ValueId count) const
    {
        const ValueId fraction = builder.binary(OpKind::Divide, count, builder.splat({m_blocks.wide(), {}}, predictedTokens()));
        builder.function()[fraction].role = Role::Metric;
        return builder.named(fraction, "accuracy");
    }

    const TransformerModel& m_model;
    const TransformerConfig& m_c;
    const TrainingOptions& m_options;
    Function m_loss;
    Builder m_builder;
    TransformerBlocks m_blocks;
    Masks m_masks; ///< of dropout: of the embedding, then of each layer's attention and of its other block
    std::map<std::pair<std::int64_t, double>, Shared> m_shared; ///< by rotated dims and base
};

} // namespace

Result<Program> buildTransformerTraining(const TransformerModel& model, const TrainingOptions& options)
{
    assert(sizeProblems(model).empty() && options.batch >= 1 && isFloating(options.parameterType)
        && isFloating(options.activationType));
    return TransformerTraining(model, options).build();
}

std::vector<Residual> residualsOf(const TransformerModel& model, const TrainingOptions& options)
{
    return TransformerTraining(model, options).residuals();
}

} // namespace meshwright
