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

    std::vector<ModelArray> of(bool hasExperts)
    {
        const Dim hidden{m_c.hidden, "hidden"};
        const Dim heads{m_c.heads, "heads"};
        const Dim keyHeads{m_c.keyValueHeads, "key and value heads"};
        const Dim head{m_c.headDim, "head size"};
        const Dim values{m_c.valueHeadDim > 0 ? m_c.valueHeadDim : m_c.headDim, "head size"};
        addNorm("attention.norm");
        if (m_c.keyValueRank > 0) {
            addLatents(hidden, heads, head, values);
        } else {
            addWeight("attention.q", {hidden, heads, head}, m_c.hidden, {heads, head}, m_c.attentionBias);
            addWeight("attention.k", {hidden, keyHeads, head}, m_c.hidden, {keyHeads, head}, m_c.attentionBias);
            addWeight("attention.v", {hidden, keyHeads, values}, m_c.hidden, {keyHeads, values}, m_c.attentionBias);
        }
        if (m_c.queryKeyNorm) {
            add("attention.q_norm.scale", {head}, Kind::Scale);
            add("attention.k_norm.scale", {head}, Kind::Scale);
        }
        addWeight("attention.o", {heads, values, hidden}, heads.size * values.size, {hidden}, m_c.outputBias);
        if (m_c.postNorms)
            addNorm("attention.post_norm");
        addNorm("ffn.norm");
        if (hasExperts)
            addExperts();
        else
            addFfn("ffn", {m_c.ffn, "ffn"});
        if (m_c.postNorms)
            addNorm("ffn.post_norm");
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
        add("experts.router.w", {hidden, experts}, Kind::Weight, m_c.hidden);
        addWeight("experts.up", {experts, hidden, width}, m_c.hidden, {experts, width}, m_c.ffnBias);
        if (m_c.gatedFfn)
            addWeight("experts.gate", {experts, hidden, width}, m_c.hidden, {experts, width}, m_c.ffnBias);
        addWeight("experts.down", {experts, width, hidden}, m_c.expertFfn, {experts, hidden}, m_c.ffnBias);
        if (m_c.sharedExperts > 0)
            addFfn("experts.shared", {m_c.sharedExperts * m_c.expertFfn, "ffn of the shared experts"});
    }

    const TransformerConfig& m_c;
    std::vector<ModelArray> m_arrays;
};

} // namespace

namespace {

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
    for (std::size_t i = 0; parts.size() > 1 && i < parts.size(); ++i) {
        const std::int64_t row = parts[i].first - run.first;
        parts[i].prefix = fmt::format("{}.{}-{}", run.prefix, row, row + parts[i].count - 1);
    }
    return parts;
}

} // namespace

std::vector<LayerRun> layerRuns(const TransformerModel& model)
{
    const TransformerConfig& c = model.config;
    const std::int64_t dense = c.experts == 0 ? 0 : c.denseLayers;
    std::vector<LayerRun> runs;
    if (dense > 0)
        runs = partsOf({"dense_layers", 0, dense, false}, model.cuts);
    if (c.layers > dense) {
        for (LayerRun& part : partsOf({"layers", dense, c.layers - dense, c.experts > 0}, model.cuts))
            runs.push_back(std::move(part));
    }
    return runs;
}

std::vector<ModelArray> layerArrays(const TransformerConfig& config, bool hasExperts)
{
    return LayerArrays(config).of(hasExperts);
}

std::string layerName(const TransformerModel& model, const LayerRun& run, std::int64_t index)
{
    return model.unrolled ? fmt::format("{}.{}", run.prefix, index) : run.prefix;
}

} // namespace meshwright
