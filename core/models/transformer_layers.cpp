// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace meshwright {

namespace {

using Kind = ModelArray::Kind;

/// The arrays of one layer, without the dimension of layers.
class LayerArrays {
public:
    explicit LayerArrays(const TransformerConfig& c)
        : m_c(c)
    {
    }

    std::vector<ModelArray> all()
    {
        if (m_c.mixer != MixerKind::None) {
            addNorm("attention.norm");
            if (m_c.isRecurrent())
                addRecurrence();
            else
                addAttention();
            if (m_c.postNorms)
                addNorm("attention.post_norm");
        }
        if (m_c.hasFeedForward()) {
            addNorm("ffn.norm");
            if (m_c.experts == 0 || m_c.ffnBesideExperts)
                addFfn("ffn", {m_c.ffn, DimRole::Ffn});
            if (m_c.experts > 0)
                addExperts();
            if (m_c.postNorms)
                addNorm("ffn.post_norm");
        }
        return std::move(m_arrays);
    }

private:
    struct Dim {
        std::int64_t size;
        DimRole role;
    };

    void add(const std::string& name, const std::vector<Dim>& dims, Kind kind, std::int64_t fanIn = 1)
    {
        ModelArray array{name, {}, {}, fanIn, kind};
        for (const Dim& dim : dims) {
            array.shape.push_back(dim.size);
            array.meaning.emplace_back(dim.role);
        }
        m_arrays.push_back(std::move(array));
    }

    void addWeight(
        const std::string& name, const std::vector<Dim>& dims, std::int64_t fanIn, const std::vector<Dim>& outputs, bool hasBias)
    {
        add(name + ".w", dims, Kind::Weight, fanIn);
        if (hasBias)
            add(name + ".b", outputs, Kind::Bias, fanIn);
    }

    void addNorm(const std::string& name)
    {
        add(name + ".scale", {{m_c.hidden, DimRole::Hidden}}, Kind::Scale);
        if (m_c.norm == NormKind::LayerNorm)
            add(name + ".bias", {{m_c.hidden, DimRole::Hidden}}, Kind::Bias);
    }

    void addAttention()
    {
        const Dim hidden{m_c.hidden, DimRole::Hidden};
        const Dim heads{m_c.heads, DimRole::Heads};
        const Dim keyHeads{m_c.keyValueHeads, DimRole::KeyValueHeads};
        const Dim head{m_c.headDim, DimRole::HeadSize};
        const Dim values{m_c.valueHeadDim > 0 ? m_c.valueHeadDim : m_c.headDim, DimRole::HeadSize};
        if (m_c.keyValueRank > 0) {
            addLatents(hidden, heads, head, values);
        } else {
            addWeight("attention.q", {hidden, heads, head}, m_c.hidden, {heads, head}, m_c.attentionBias);
            addWeight("attention.k", {hidden, keyHeads, head}, m_c.hidden, {keyHeads, head}, m_c.attentionBias);
            if (!m_c.keysAsValues)
                addWeight("attention.v", {hidden, keyHeads, values}, m_c.hidden, {keyHeads, values}, m_c.attentionBias);
        }
        if (m_c.queryKeyNorm) {
            add("attention.q_norm.scale", {head}, Kind::Scale);
            add("attention.k_norm.scale", {head}, Kind::Scale);
        }
        if (m_c.outputGate)
            addWeight("attention.gate", {hidden, heads, values}, m_c.hidden, {}, false);
        addWeight("attention.o", {heads, values, hidden}, heads.size * values.size, {hidden}, m_c.outputBias);
    }

    void addRecurrence()
    {
        const bool isDelta = m_c.mixer == MixerKind::DeltaRule;
        const Dim hidden{m_c.hidden, DimRole::Hidden};
        const Dim heads{m_c.stateHeads, DimRole::Heads};
        const Dim keyHeads{m_c.stateKeyHeads, DimRole::KeyValueHeads};
        const Dim keys{m_c.stateKeyDim, DimRole::HeadSize};
        const Dim values{m_c.stateValueDim, DimRole::HeadSize};
        const auto projected = [&](const std::string& name, Dim of, Dim size) {
            addWeight(name, {hidden, of, size}, m_c.hidden, {}, false);
            if (m_c.convolution > 0)
                addWeight(name + "_conv", {{m_c.convolution, DimRole::Tokens}, of, size}, m_c.convolution, {of, size}, !isDelta);
        };
        projected("attention.q", keyHeads, keys);
        projected("attention.k", keyHeads, keys);
        projected("attention.v", heads, values);
        addWeight("attention.gate", {hidden, heads, values}, m_c.hidden, {}, false);
        addWeight("attention.decay", {hidden, heads}, m_c.hidden, {heads}, true);
        add("attention.rate.b", {heads}, Kind::Bias);
        if (isDelta) {
            addWeight("attention.write", {hidden, heads}, m_c.hidden, {}, false);
            add("attention.out_norm.scale", {values}, Kind::Scale);
        } else {
            add("attention.pass.scale", {heads}, Kind::Scale);
            add("attention.out_norm.scale", {heads, values}, Kind::Scale);
        }
        addWeight("attention.o", {heads, values, hidden}, heads.size * values.size, {}, false);
    }

    /// Products down to the latents, their norms, and products up to the heads. The part of a key that carries positions is one for all heads.
    void addLatents(Dim hidden, Dim heads, Dim head, Dim values)
    {
        const Dim queryRank{m_c.queryRank, DimRole::QueryRank};
        const Dim rank{m_c.keyValueRank, DimRole::KeyValueRank};
        const Dim queries{m_c.headDim + m_c.latentRotaryDim, DimRole::HeadSize};
        const Dim source = m_c.queryRank > 0 ? queryRank : hidden;
        if (m_c.queryRank > 0) {
            addWeight("attention.q_down", {hidden, queryRank}, m_c.hidden, {}, false);
            add("attention.q_norm.scale", {queryRank}, Kind::Scale);
        }
        addWeight("attention.q", {source, heads, queries}, source.size, {}, false);
        addWeight("attention.kv_down", {hidden, {m_c.keyValueRank + m_c.latentRotaryDim, DimRole::KeyValueRank}}, m_c.hidden, {},
            false);
        add("attention.kv_norm.scale", {rank}, Kind::Scale);
        addWeight("attention.k", {rank, heads, head}, m_c.keyValueRank, {}, false);
        addWeight("attention.v", {rank, heads, values}, m_c.keyValueRank, {}, false);
    }

    void addFfn(const std::string& name, Dim width)
    {
        const Dim hidden{m_c.hidden, DimRole::Hidden};
        addWeight(name + ".up", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight(name + ".gate", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        addWeight(name + ".down", {width, hidden}, width.size, {hidden}, m_c.ffnBias);
    }

    void addExperts()
    {
        const Dim hidden{m_c.hidden, DimRole::Hidden};
        const Dim experts{m_c.experts, DimRole::Experts};
        const Dim width{m_c.expertFfn, DimRole::ExpertFfn};
        const Dim around = m_c.expertHidden > 0 ? Dim{m_c.expertHidden, DimRole::Hidden} : hidden;
        const Dim latent{m_c.expertHidden, DimRole::ExpertHidden};
        add("experts.router.w", {hidden, experts}, Kind::Weight, m_c.hidden);
        if (m_c.expertHidden > 0)
            addWeight("experts.in", {hidden, latent}, m_c.hidden, {}, false);
        addWeight("experts.up", {experts, around, width}, around.size, {experts, width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight("experts.gate", {experts, around, width}, around.size, {experts, width}, m_c.ffnBias);
        addWeight("experts.down", {experts, width, around}, m_c.expertFfn, {experts, around}, m_c.ffnBias);
        if (m_c.expertHidden > 0)
            addWeight("experts.out", {latent, hidden}, latent.size, {}, false);
        if (m_c.sharedExperts > 0)
            addFfn("experts.shared", {m_c.sharedExperts * m_c.expertFfn, DimRole::SharedFfn});
    }

    const TransformerConfig& m_c;
    std::vector<ModelArray> m_arrays;
};

/// Layers of a pattern that take turns, a loop of them.
struct Turns {
    std::size_t period = 1; ///< layers of one turn
    std::size_t count = 1;
};

/// The loops of a pattern, whose bodies have as few layers as may be, each loop as long as it can be.
std::vector<Turns> turnsOf(const std::vector<std::int64_t>& pattern)
{
    constexpr std::size_t kLongestTurn = 64;
    const std::size_t layers = pattern.size();
    std::vector<std::size_t> written(layers + 1); // layers in the bodies of all loops from here on
    std::vector<Turns> best(layers);
    std::vector<std::size_t> alike(
        std::min(kLongestTurn, layers) + 1); // by period: so many layers from here on are as those a period behind
    for (std::size_t at = layers; at-- > 0;) {
        written[at] = layers + 1;
        for (std::size_t period = 1; period < alike.size() && at + period <= layers; ++period) {
            const bool isAlike = at + period < layers && pattern[at] == pattern[at + period];
            alike[period] = isAlike ? alike[period] + 1 : 0;
            const Turns turns{period, 1 + alike[period] / period};
            const std::size_t all = period + written[at + period * turns.count];
            const bool isLonger = turns.count > 1 && period * turns.count > best[at].period * best[at].count;
            if (all < written[at] || (all == written[at] && isLonger)) {
                written[at] = all;
                best[at] = turns;
            }
        }
    }
    std::vector<Turns> loops;
    for (std::size_t at = 0; at < layers; at += loops.back().period * loops.back().count)
        loops.push_back(best[at]);
    return loops;
}

/// Some iterations of a loop, and of their turns some layers.
LayerLoop partOf(const LayerLoop& loop, std::int64_t firstTurn, std::int64_t turns, std::size_t from, std::size_t to)
{
    LayerLoop part(loop.begin() + static_cast<std::ptrdiff_t>(from), loop.begin() + static_cast<std::ptrdiff_t>(to));
    for (LayerRun& run : part) {
        run.first = run.at(firstTurn);
        run.count = turns;
    }
    return part;
}

/// The parts of a loop between the layers behind which it is cut. A turn that is cut is each of its layers by itself.
std::vector<LayerLoop> partsOf(const LayerLoop& loop, const std::vector<std::int64_t>& cuts)
{
    std::vector<LayerLoop> parts = {loop};
    for (const std::int64_t cut : cuts) {
        const LayerLoop last = parts.back();
        const auto period = static_cast<std::int64_t>(last.size());
        const std::int64_t count = last.front().count;
        const std::int64_t behind = cut + 1 - last.front().first;
        if (behind <= 0 || behind >= count * period)
            continue;
        parts.pop_back();
        const auto add = [&](std::int64_t firstTurn, std::int64_t turns, std::size_t from, std::size_t to) {
            if (turns > 0)
                parts.push_back(partOf(last, firstTurn, turns, from, to));
        };
        add(0, behind / period, 0, last.size());
        for (std::size_t i = 0; behind % period != 0 && i < last.size(); ++i)
            add(behind / period, 1, i, i + 1);
        const std::int64_t rest = (behind + period - 1) / period;
        add(rest, count - rest, 0, last.size());
    }
    return parts;
}

/// `row`: of the first one in what the numbers count.
void numberPrefixes(LayerLoop& loop, std::int64_t row)
{
    const auto layers = loop.front().count * static_cast<std::int64_t>(loop.size());
    for (std::size_t i = 0; i < loop.size(); ++i) {
        loop[i].prefix += fmt::format(".{}-{}", row, row + layers - 1);
        if (loop.size() > 1)
            loop[i].prefix += fmt::format(".{}", i);
    }
}

} // namespace

std::vector<LayerLoop> layerLoops(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<LayerLoop> whole;
    std::int64_t first = 0;
    for (const Turns& turns : turnsOf(c.pattern)) {
        const auto period = static_cast<std::int64_t>(turns.period);
        const auto count = static_cast<std::int64_t>(turns.count);
        LayerLoop& loop = whole.emplace_back();
        for (std::int64_t i = first; i < first + period; ++i)
            loop.push_back(
                {"layers", i, count, c.kinds[static_cast<std::size_t>(c.pattern[static_cast<std::size_t>(i)])], period});
        first += period * count;
    }
    if (c.pattern.empty()) {
        for (const TransformerConfig& group : layerGroups(c)) {
            whole.push_back({{c.experts > 0 && group.experts == 0 ? "dense_layers" : "layers", first, group.layers, group}});
            first += group.layers;
        }
    }
    std::vector<LayerLoop> loops;
    for (const LayerLoop& loop : whole) {
        std::vector<LayerLoop> parts = partsOf(loop, model.cuts);
        const bool isNumbered = parts.size() > 1 || !c.pattern.empty();
        for (LayerLoop& part : parts) {
            if (isNumbered)
                numberPrefixes(part, part.front().first - (c.pattern.empty() ? loop.front().first : 0));
            loops.push_back(std::move(part));
        }
    }
    return loops;
}

std::vector<LayerRun> layerRuns(const TransformerModel& model)
{
    std::vector<LayerRun> runs;
    for (LayerLoop& loop : layerLoops(model))
        runs.insert(runs.end(), std::move_iterator(loop.begin()), std::move_iterator(loop.end()));
    return runs;
}

std::vector<ModelArray> layerArrays(const TransformerConfig& layer)
{
    return LayerArrays(layer).all();
}

std::string layerName(const TransformerModel& model, const LayerRun& run, std::int64_t index)
{
    if (!model.unrolled)
        return run.prefix;
    return model.config.pattern.empty() ? fmt::format("{}.{}", run.prefix, index) : fmt::format("layers.{}", run.at(index));
}

} // namespace meshwright
