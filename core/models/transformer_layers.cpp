// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/models/transformer_layers.h"

#include <fmt/format.h>

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
                addFfn("ffn", {m_c.ffn, "ffn"});
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
        const char* meaning;
    };

    void add(const std::string& name, const std::vector<Dim>& dims, Kind kind, std::int64_t fanIn = 1)
    {
        ModelArray array{name, {}, {}, fanIn, kind};
        for (const Dim& dim : dims) {
            array.shape.push_back(dim.size);
            array.meaning.emplace_back(dim.meaning);
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
        add(name + ".scale", {{m_c.hidden, "hidden"}}, Kind::Scale);
        if (m_c.norm == NormKind::LayerNorm)
            add(name + ".bias", {{m_c.hidden, "hidden"}}, Kind::Bias);
    }

    void addAttention()
    {
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim heads{m_c.heads, "heads"};
        const Dim keyHeads{m_c.keyValueHeads, "key and value heads"};
        const Dim head{m_c.headDim, "head size"};
        const Dim values{m_c.valueHeadDim > 0 ? m_c.valueHeadDim : m_c.headDim, "head size"};
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
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim heads{m_c.stateHeads, "heads"};
        const Dim keyHeads{m_c.stateKeyHeads, "key and value heads"};
        const Dim keys{m_c.stateKeyDim, "head size"};
        const Dim values{m_c.stateValueDim, "head size"};
        const auto projected = [&](const std::string& name, Dim of, Dim size) {
            addWeight(name, {hidden, of, size}, m_c.hidden, {}, false);
            if (m_c.convolution > 0)
                addWeight(name + "_conv", {{m_c.convolution, "tokens"}, of, size}, m_c.convolution, {of, size}, !isDelta);
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
        const Dim queryRank{m_c.queryRank, "query rank"};
        const Dim rank{m_c.keyValueRank, "key and value rank"};
        const Dim queries{m_c.headDim + m_c.latentRotaryDim, "head size"};
        const Dim source = m_c.queryRank > 0 ? queryRank : hidden;
        if (m_c.queryRank > 0) {
            addWeight("attention.q_down", {hidden, queryRank}, m_c.hidden, {}, false);
            add("attention.q_norm.scale", {queryRank}, Kind::Scale);
        }
        addWeight("attention.q", {source, heads, queries}, source.size, {}, false);
        addWeight(
            "attention.kv_down", {hidden, {m_c.keyValueRank + m_c.latentRotaryDim, "key and value rank"}}, m_c.hidden, {}, false);
        add("attention.kv_norm.scale", {rank}, Kind::Scale);
        addWeight("attention.k", {rank, heads, head}, m_c.keyValueRank, {}, false);
        addWeight("attention.v", {rank, heads, values}, m_c.keyValueRank, {}, false);
    }

    void addFfn(const std::string& name, Dim width)
    {
        const Dim hidden{m_c.hidden, "hidden"};
        addWeight(name + ".up", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight(name + ".gate", {hidden, width}, m_c.hidden, {width}, m_c.ffnBias);
        addWeight(name + ".down", {width, hidden}, width.size, {hidden}, m_c.ffnBias);
    }

    void addExperts()
    {
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim experts{m_c.experts, "experts"};
        const Dim width{m_c.expertFfn, "ffn of an expert"};
        const Dim around = m_c.expertHidden > 0 ? Dim{m_c.expertHidden, "hidden"} : hidden;
        const Dim latent{m_c.expertHidden, "hidden of experts"};
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
            addFfn("experts.shared", {m_c.sharedExperts * m_c.expertFfn, "ffn of the shared experts"});
    }

    const TransformerConfig& m_c;
    std::vector<ModelArray> m_arrays;
};

/// The parts of a run between the layers behind which it is cut.
std::vector<LayerRun> partsOf(const LayerRun& run, const std::vector<std::int64_t>& cuts)
{
    std::vector<LayerRun> parts = {run};
    for (const std::int64_t cut : cuts) {
        const std::int64_t behind = cut + 1 - parts.back().first;
        if (behind <= 0 || behind >= parts.back().count)
            continue;
        LayerRun rest = parts.back();
        rest.first += behind;
        rest.count -= behind;
        parts.back().count = behind;
        parts.push_back(std::move(rest));
    }
    return parts;
}

/// `row`: of the first one in what the numbers count.
void numberPrefix(LayerRun& run, std::int64_t row)
{
    run.prefix = fmt::format("{}.{}-{}", run.prefix, row, row + run.count - 1);
}

} // namespace

std::vector<LayerRun> layerRuns(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    std::vector<LayerRun> whole;
    for (std::size_t i = 0; i < c.pattern.size(); ++i) {
        if (i == 0 || c.pattern[i] != c.pattern[i - 1])
            whole.push_back({"layers", static_cast<std::int64_t>(i), 0, c.kinds[static_cast<std::size_t>(c.pattern[i])]});
        ++whole.back().count;
    }
    if (c.pattern.empty()) {
        std::int64_t first = 0;
        for (const TransformerConfig& group : layerGroups(c)) {
            whole.push_back({c.experts > 0 && group.experts == 0 ? "dense_layers" : "layers", first, group.layers, group});
            first += group.layers;
        }
    }
    std::vector<LayerRun> runs;
    for (const LayerRun& run : whole) {
        std::vector<LayerRun> parts = partsOf(run, model.cuts);
        const bool isNumbered = parts.size() > 1 || !c.pattern.empty();
        for (LayerRun& part : parts) {
            if (isNumbered)
                numberPrefix(part, part.first - (c.pattern.empty() ? run.first : 0));
            runs.push_back(std::move(part));
        }
    }
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
    return model.config.pattern.empty() ? fmt::format("{}.{}", run.prefix, index) : fmt::format("layers.{}", run.first + index);
}

} // namespace meshwright
