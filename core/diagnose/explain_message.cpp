// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/explain_message.h"

#include "core/diagnose/log_text.h"
#include "core/diagnose/message_kind.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

namespace meshwright {

namespace {

constexpr std::size_t kLookBack = 3000; ///< what a message says before the words by which it is known
constexpr std::size_t kLookAhead = 20000;

/// All kinds; the index is the precedence.
const std::vector<const MessageKind*>& allKinds()
{
    static const std::vector<const MessageKind*> kAll = [] {
        std::vector<const MessageKind*> all;
        for (const auto& kinds : {layoutMessageKinds(), typeMessageKinds(), degreeMessageKinds(), deviceMessageKinds(),
                 memoryMessageKinds(), checkpointMessageKinds(), torchMessageKinds(), nameMessageKinds()}) {
            for (const MessageKind& kind : kinds)
                all.push_back(&kind);
        }
        return all;
    }();
    return kAll;
}

/// A place where the words of a kind stand.
struct Hit {
    std::size_t at = 0;
    std::size_t length = 0;
    std::size_t kind = 0;
};

std::vector<Hit> hitsIn(const LogText& log)
{
    constexpr std::size_t kMostOfWords = 20000;
    const std::string& text = log.lower();
    const auto& kinds = allKinds();
    std::vector<Hit> hits;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        for (const std::string_view words : kinds[kind]->words) {
            std::size_t found = 0;
            for (std::size_t at = text.find(words); at != std::string::npos && found < kMostOfWords;
                 at = text.find(words, at + 1)) {
                const bool isLine = log.lineBegin(at) == at && log.lineEnd(at) == at + words.size();
                if (kinds[kind]->wholeLine && !isLine)
                    continue;
                hits.push_back({at, words.size(), kind});
                ++found;
            }
        }
    }
    std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.at < b.at; });
    return hits;
}

/// True when the second hit belongs to the message of the first: its words are in the same line or within its kind's reach. What another program says,
/// and the same words again in a later line, are another message.
bool belongsTo(const Hit& hit, const Hit& first, const LogText& log)
{
    const auto& kinds = allKinds();
    const MessageKind& kind = *kinds[first.kind];
    const std::string_view family = std::string_view(kind.kind).substr(0, 13); // out-of-memory and out-of-memory-compiled
    const bool isOfOneProgram = std::string_view(kinds[hit.kind]->source) == kind.source;
    const std::string_view words = std::string_view(log.lower()).substr(hit.at, hit.length);
    const bool isAgain = hit.at >= log.lineEnd(first.at) && std::string_view(log.lower()).substr(first.at, first.length) == words;
    const bool alike = std::string_view(kinds[hit.kind]->kind).substr(0, 13) == family && isOfOneProgram && !isAgain;
    const bool sameLine = hit.at < log.lineEnd(first.at) && hit.at < first.at + 300;
    return hit.at < first.at + first.length || (alike && hit.at < first.at + first.length + kind.reach) || (!alike && sameLine);
}

/// The facts that tell two messages of one kind apart.
std::string keyOf(const Explanation& explanation)
{
    std::string key = explanation.kind + '\n' + explanation.source;
    for (const MessageFact& fact : explanation.facts) {
        if (fact.name != "said by")
            key += '\n' + fact.name + '\n' + fact.value;
    }
    return key;
}

/// Who else said the same.
void addSpeakers(Explanation& into, const Explanation& more)
{
    const auto speaker = [](const MessageFact& fact) { return fact.name == "said by"; };
    const auto known = std::find_if(into.facts.begin(), into.facts.end(), speaker);
    const auto other = std::find_if(more.facts.begin(), more.facts.end(), speaker);
    constexpr std::size_t kMost = 60;
    if (known == into.facts.end() || other == more.facts.end() || known->value.size() > kMost)
        return;
    const std::string name = other->value.substr(other->value.find(' ') + 1);
    std::string padded = ", " + known->value.substr(known->value.find(' ') + 1) + ",";
    if (padded.find(", " + name + ",") == std::string::npos)
        known->value = "ranks " + known->value.substr(known->value.find(' ') + 1) + ", " + name;
}

/// The kind of which most of the words' groups of four letters are in the text.
std::string nearestKind(const LogText& log)
{
    constexpr std::size_t kMost = 20000;
    constexpr std::size_t kLetters = 4;
    const std::string_view text = std::string_view(log.lower()).substr(0, kMost);
    std::set<std::string_view> groups;
    for (std::size_t i = 0; i + kLetters <= text.size(); ++i)
        groups.insert(text.substr(i, kLetters));
    double best = 0.6;
    std::string nearest;
    for (const MessageKind* kind : allKinds()) {
        for (const std::string_view words : kind->words) {
            if (words.size() < 12)
                continue;
            std::size_t shared = 0;
            for (std::size_t i = 0; i + kLetters <= words.size(); ++i)
                shared += groups.contains(words.substr(i, kLetters)) ? 1U : 0U;
            const double part = static_cast<double>(shared) / static_cast<double>(words.size() - kLetters + 1);
            if (part > best) {
                best = part;
                nearest = std::string(kind->source) + ": " + kind->title;
            }
        }
    }
    return nearest;
}

/// Collects explanations, equal ones once.
class Collector {
public:
    Collector(const LogText& log, const ExplainContext& context, ExplainedText& out)
        : m_log(log)
        , m_context(context)
        , m_out(out)
    {
    }

    /// True when it is a message indeed.
    bool add(const Hit& hit, std::size_t begin, std::size_t end)
    {
        const MessageKind& kind = *allKinds()[hit.kind];
        const MessagePart part(m_log, begin, end);
        Explanation explanation;
        explanation.kind = kind.kind;
        explanation.source = kind.source;
        explanation.title = kind.title;
        explanation.meaning = kind.meaning;
        explanation.remedies = kind.remedies;
        if (kind.says > 0)
            explanation.fact("says", clause(part, hit.at - begin, hit.at - begin + kind.says));
        if (kind.explain != nullptr && !kind.explain(part, hit.at - begin, m_context, explanation))
            return false;
        nameAxes(part, hit.at - begin, explanation);
        beginRemedies(explanation);
        explanation.quote = quoteOf(part, hit);
        explanation.lines = {m_log.lineAt(hit.at)};
        keep(std::move(explanation));
        return true;
    }

private:
    /// The first way out stands alone, whatever came before it for other messages of the kind.
    static void beginRemedies(Explanation& explanation)
    {
        constexpr std::string_view kOr = "Or ";
        if (explanation.remedies.empty() || !explanation.remedies.front().text.starts_with(kOr))
            return;
        std::string& text = explanation.remedies.front().text;
        text.erase(0, kOr.size());
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    }

    /// Code that is the same for all messages of a kind names the axes of this one, or of the reader's mesh.
    void nameAxes(const MessagePart& part, std::size_t at, Explanation& explanation) const
    {
        AxesInMessage axes;
        if (explanation.source == "JAX")
            axes = axesIn(part, at);
        if (axes.mesh && m_context.mesh && axes.mesh->deviceCount() != m_context.mesh->deviceCount())
            explanation.fact("given mesh", meshDisagrees(*m_context.mesh, axes.mesh->deviceCount()));
        if (axes.names.empty() && m_context.mesh)
            axes = {m_context.mesh->axisNames(), m_context.mesh};
        for (Remedy& remedy : explanation.remedies)
            remedy.code = withAxes(std::move(remedy.code), axes);
    }

    /// The line of the message, and the lines after it where a terminal seems to have broken it.
    std::string quoteOf(const MessagePart& part, const Hit& hit) const
    {
        constexpr std::size_t kMost = 260;
        constexpr std::size_t kEnough = 150;
        constexpr std::size_t kNarrowest = 50; // of a terminal's line, without its spaces
        const std::size_t begin = std::max(m_log.lineBegin(hit.at), part.begin());
        std::size_t end = m_log.lineEnd(hit.at);
        const auto isBroken = [&] { // ends of sentences are not places where terminals break lines
            return end - m_log.lineBegin(end - 1) >= kNarrowest
                && std::string_view(".!)").find(m_log.squeezed()[end - 1]) == std::string_view::npos;
        };
        while (end < part.end() && end - begin < kEnough && isBroken())
            end = m_log.lineEnd(end);
        const MessagePart quoted(m_log, begin, std::max(std::min(end, part.end()), hit.at + hit.length));
        return quoted.quote(0, kMost);
    }

    void keep(Explanation explanation)
    {
        const std::string key = keyOf(explanation);
        const auto known = m_indexOf.find(key);
        if (known != m_indexOf.end()) {
            if (known->second == kLeftOut)
                return;
            Explanation& same = m_out.messages[known->second];
            ++same.times;
            if (same.lines.size() < Explanation::kMostLines)
                same.lines.push_back(explanation.lines.front());
            addSpeakers(same, explanation);
            return;
        }
        const bool room = m_out.messages.size() < ExplainedText::kMostMessages;
        m_indexOf[key] = room ? m_out.messages.size() : kLeftOut;
        if (room)
            m_out.messages.push_back(std::move(explanation));
        else
            ++m_out.leftOut;
    }

    static constexpr std::size_t kLeftOut = ~std::size_t{0};
    const LogText& m_log;
    const ExplainContext& m_context;
    ExplainedText& m_out;
    std::unordered_map<std::string, std::size_t> m_indexOf;
};

} // namespace

ExplainedText explainText(std::string_view text, const ExplainContext& context)
{
    ExplainedText explained;
    explained.cut = text.size() > kMostExplainedBytes;
    const LogText log(text.substr(0, kMostExplainedBytes));
    explained.lineCount = log.lineCount();
    const std::vector<Hit> hits = hitsIn(log);
    Collector collector(log, context, explained);
    std::size_t claimed = 0;
    for (std::size_t i = 0; i < hits.size();) {
        // Of the hits that belong to one message the most telling kind counts.
        std::size_t last = i + 1;
        while (last < hits.size() && belongsTo(hits[last], hits[i], log))
            ++last;
        std::vector<Hit> group(hits.begin() + static_cast<std::ptrdiff_t>(i), hits.begin() + static_cast<std::ptrdiff_t>(last));
        std::stable_sort(group.begin(), group.end(), [](const Hit& a, const Hit& b) { return a.kind < b.kind; });
        const std::size_t next = last < hits.size() ? log.lineBegin(hits[last].at) : log.squeezed().size();
        for (const Hit& hit : group) {
            const std::size_t begin = std::max(claimed, hit.at - std::min(hit.at, kLookBack));
            const std::size_t end = std::min({next, hit.at + kLookAhead, log.squeezed().size()});
            if (collector.add(hit, begin, std::max(end, hit.at + hit.length)))
                break;
        }
        claimed = std::max(hits[last - 1].at + hits[last - 1].length, claimed);
        i = last;
    }
    if (explained.messages.empty())
        explained.nearest = nearestKind(log);
    return explained;
}

std::vector<KnownMessage> knownMessages()
{
    std::vector<KnownMessage> known;
    for (const MessageKind* kind : allKinds())
        known.push_back({kind->kind, kind->source, kind->title});
    return known;
}

} // namespace meshwright
