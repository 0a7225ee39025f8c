// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/validate/worked.h"

#include "core/models/transformer_config.h"
#include "sim/hardware/machine.h"
#include "sim/network/collective.h"
#include "sim/network/ring.h"
#include "sim/transformer/rooflines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>

namespace meshwright::sim {

namespace {

constexpr double kSecondsPerDay = 86400.0;
constexpr double kManyElements = 1e9; ///< "large" of a question

class WorkedProblem {
public:
    WorkedProblem(const Record& record, const Catalogue& catalogue)
        : m_record(record)
        , m_catalogue(catalogue)
    {
    }

    std::map<std::string, double> answers();

private:
    bool asks(const char* answer, std::initializer_list<const char*> inputs) const;
    double in(const char* name) const { return *m_record.number(std::string("inputs.") + name); }
    std::int64_t whole(const char* name) const { return static_cast<std::int64_t>(std::clamp(in(name), 1.0, 0x1p40)); }
    const Chip* chip() const;
    void collectives();
    void rooflines();
    void counts();
    void models();
    void put(const char* answer, double value) { m_answers[answer] = value; }

    const Record& m_record;
    const Catalogue& m_catalogue;
    std::map<std::string, double> m_answers;
};

/// The record asks for this and gives exactly these.
bool WorkedProblem::asks(const char* answer, std::initializer_list<const char*> inputs) const
{
    if (!m_record.has(std::string("answer.") + answer))
        return false;
    std::size_t given = 0;
    for (const auto& [path, value] : m_record.numbers)
        given += path.starts_with("inputs.") ? 1U : 0U;
    return given == inputs.size() && std::all_of(inputs.begin(), inputs.end(), [&](const char* name) {
        return m_record.number(std::string("inputs.") + name).has_value();
    });
}

/// The first word of the question that names a chip.
const Chip* WorkedProblem::chip() const
{
    std::string word;
    for (const char letter : m_record.text("question") + " ") {
        if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
            word += letter;
            continue;
        }
        if (word.size() > 1 && word[0] == 'v') {
            if (const auto found = m_catalogue.find(word))
                return found->chip;
        }
        word.clear();
    }
    return nullptr;
}

void WorkedProblem::collectives()
{
    const auto shards = [&] { return whole("shards"); };
    if (asks("time_s", {"hops", "hop_latency_s"}) || asks("time_s", {"bytes", "hops", "hop_latency_s"}))
        put("time_s", in("hops") * in("hop_latency_s"));
    // By the bandwidth alone, as a ring of many would take it; then along a line, with hops of no latency.
    if (asks("time_s", {"bytes_gathered", "shards", "ici_bidirectional_bytes_per_s"}))
        put("time_s", in("bytes_gathered") / in("ici_bidirectional_bytes_per_s"));
    if (asks("time_s", {"bytes_gathered", "shards", "ici_oneway_bytes_per_s"}))
        put("time_s", lineAllGatherSeconds(in("bytes_gathered"), shards(), {in("ici_oneway_bytes_per_s"), 0.0}));
    if (asks("time_s", {"bytes_gathered", "shards", "hop_latency_s"}))
        put("time_s", lineAllGatherSeconds(0.0, shards(), {1.0, in("hop_latency_s")}));
    // Measured: on a line of the chip's links, with hops and the start of a call.
    if (const Chip* named = chip();
        asks("time_s", {"bytes_gathered", "shards"}) && named != nullptr && named->interconnect.linkBytesPerSecond) {
        const Interconnect& net = named->interconnect;
        GroupAxis line;
        line.size = shards();
        line.link = {net.linkBytesPerSecond->value, net.hopLatencySeconds ? net.hopLatencySeconds->value : kAssumedIciHopSeconds};
        put("time_s",
            collectiveSeconds({CollectiveKind::AllGather, whole("bytes_gathered"), {line}, PermutePattern::Shift,
                CollectiveAlgorithm::Automatic, net.library.get()}));
    }
    if (asks("ratio", {})) {
        constexpr std::int64_t kRing = 4096;
        constexpr double kBytes = 1e12;
        const LinkSpec link{1e9, 0.0};
        put("ratio",
            ringAllToAllSeconds(kBytes / static_cast<double>(kRing), kRing, link, Directions::Both)
                / ringAllGatherSeconds(kBytes, kRing, link, Directions::Both));
    }
    if (asks("time_s", {"bytes", "axis_bidirectional_bytes_per_s"}))
        put("time_s", in("bytes") / in("axis_bidirectional_bytes_per_s"));
}

void WorkedProblem::rooflines()
{
    if (asks("batch_tokens", {"flops_per_s_int8", "hbm_bytes_per_s"}))
        put("batch_tokens", computeBoundRows(in("flops_per_s_int8"), in("hbm_bytes_per_s"), bytesPerElement(MathFormat::Int8)));
    if (asks("batch_tokens", {"flops_per_s_bf16", "hbm_bytes_per_s", "weight_bytes"}))
        put("batch_tokens", computeBoundRows(in("flops_per_s_bf16"), in("hbm_bytes_per_s"), in("weight_bytes")));
    if (asks("D", {"flops_per_s", "ici_bytes_per_s"}))
        put("D", computeBoundSplitDepth(in("flops_per_s"), in("ici_bytes_per_s")));
    if (asks("flops_per_byte", {"bytes_per_element"}))
        put("flops_per_byte", batchedRowIntensity(kManyElements, kManyElements, in("bytes_per_element")));
    if (asks("tokens_per_chip", {"flops_per_s", "ici_bidirectional_bytes_per_s"}))
        put("tokens_per_chip", computeBoundTokens(in("flops_per_s"), in("ici_bidirectional_bytes_per_s")));
    if (asks("tokens_per_pod", {"pod_flops_per_s", "pod_dcn_bytes_per_s"}))
        put("tokens_per_pod", computeBoundTokens(in("pod_flops_per_s"), in("pod_dcn_bytes_per_s")));
    const Chip* named = chip();
    if (asks("tp_degree", {"F"}) && named != nullptr && named->interconnect.linkBytesPerSecond) {
        const auto rate = matmulRate(*named, MathFormat::Bf16);
        if (rate)
            put("tp_degree",
                computeBoundTensorDegree(in("F"), rate->flopsPerSecond * static_cast<double>(named->devicesPerChip),
                    2.0 * named->interconnect.linkBytesPerSecond->value));
    }
    if (asks("fsdp_degree", {"B", "N", "F"}))
        put("fsdp_degree", bestShardDegree(in("B"), in("N"), in("F")));
    if (asks("time_s", {"hbm_bytes", "hbm_bytes_per_s"}))
        put("time_s", in("hbm_bytes") / in("hbm_bytes_per_s"));
    if (asks("time_s", {"flops", "cores", "flops_per_s_per_core"}))
        put("time_s", trainingSeconds(in("flops"), in("cores"), in("flops_per_s_per_core"), 1.0));
}

void WorkedProblem::counts()
{
    if (asks("bytes", {"params", "bytes_per_param"}))
        put("bytes", in("params") * in("bytes_per_param"));
    if (asks("chips", {"tokens", "tokens_per_chip"}))
        put("chips", in("tokens") / in("tokens_per_chip"));
    if (asks("bytes_per_chip", {"bytes", "chips"}))
        put("bytes_per_chip", in("bytes") / in("chips"));
    if (asks("tokens_per_chip", {"tokens", "chips"}))
        put("tokens_per_chip", in("tokens") / in("chips"));
    if (asks("hosts", {"chips", "flops_per_s", "hbm_bytes", "chips_per_host"})) {
        put("hosts", in("chips") / in("chips_per_host"));
        put("flops_per_s", in("chips") * in("flops_per_s"));
        put("hbm_bytes", in("chips") * in("hbm_bytes"));
    }
    // 6 FLOPs a parameter and token.
    if (asks("flops", {"params"}))
        put("flops", 6.0 * in("params"));
    if (asks("flops", {"params", "tokens"}))
        put("flops", 6.0 * in("params") * in("tokens"));
    if (asks("days", {"flops", "chips", "flops_per_s", "mfu"}))
        put("days", trainingSeconds(in("flops"), in("chips"), in("flops_per_s"), in("mfu")) / kSecondsPerDay);
    if (asks("utilisation", {"gpu_hours", "tokens", "active_params", "flops_per_s"}))
        put("utilisation",
            trainingSeconds(6.0 * in("active_params") * in("tokens"), 1.0, in("flops_per_s"), 1.0) / (3600.0 * in("gpu_hours")));
}

void WorkedProblem::models()
{
    TransformerConfig config;
    const auto size = [&](const char* name) { return whole(name); };
    config.gatedFfn = true;
    if (asks("params", {"D", "F", "L", "V"})) {
        config.layers = size("L");
        config.hidden = size("D");
        config.heads = config.keyValueHeads = std::max<std::int64_t>(1, config.hidden / 128);
        config.headDim = 128;
        config.ffn = size("F");
        config.vocabulary = size("V");
        put("params", static_cast<double>(parameterCounts(config).total));
    }
    if (asks("params", {"D", "F", "H", "K", "L", "N", "V"})) {
        config.layers = size("L");
        config.hidden = size("D");
        config.heads = size("N");
        config.keyValueHeads = size("K");
        config.headDim = size("H");
        config.ffn = size("F");
        config.vocabulary = size("V");
        config.tiedEmbeddings = true;
        put("params", static_cast<double>(parameterCounts(config).total));
    }
    // Keys and values of a token, a byte each.
    if (asks("bytes", {"L", "D"}))
        put("bytes", 2.0 * in("L") * in("D"));
    if (asks("T", {"D"}))
        put("T", attentionEqualsProjections(in("D")));
}

std::map<std::string, double> WorkedProblem::answers()
{
    collectives();
    rooflines();
    counts();
    models();
    return m_answers;
}

} // namespace

std::optional<std::string> impossibleInput(const Record& record)
{
    for (const auto& [path, value] : record.numbers) {
        if (path.starts_with("inputs.") && !(value > 0.0 && std::isfinite(value)))
            return fmt::format("{} is {}: a size, a rate or a time is above 0", path, value);
    }
    return std::nullopt;
}

std::map<std::string, double> workedAnswers(const Record& record, const Catalogue& catalogue)
{
    return WorkedProblem(record, catalogue).answers();
}

} // namespace meshwright::sim
