// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/document.h"

#include "core/study/flow_specs.h"
#include "core/study/yaml_text.h"
#include "core/support/escape.h"
#include "core/support/text.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace meshwright {

const DocNode* DocNode::find(std::string_view key) const
{
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const DocEntry& e) { return e.key == key; });
    return kind == Kind::Map && entry != entries.end() ? &entry->value : nullptr;
}

DocNode* DocNode::find(std::string_view key)
{
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const DocEntry& e) { return e.key == key; });
    return kind == Kind::Map && entry != entries.end() ? &entry->value : nullptr;
}

Place DocNode::place(std::string path) const
{
    return Place{file ? *file : std::string(), line, column, std::move(path)};
}

Place DocEntry::place(std::string path) const
{
    return Place{value.file ? *value.file : std::string(), line, column, std::move(path)};
}

std::string DocNode::kindText() const
{
    switch (kind) {
    case Kind::Null:
        return "nothing";
    case Kind::List:
        return "a list";
    case Kind::Map:
        return "a mapping";
    case Kind::Scalar:
        break;
    }
    constexpr std::size_t kMostShown = 40;
    std::string shown = text.substr(0, kMostShown);
    while (!shown.empty() && shown.size() < text.size() && (static_cast<unsigned char>(text[shown.size()]) & 0xC0U) == 0x80U)
        shown.pop_back(); // no half of a character
    if (shown.size() < text.size())
        shown += "...";
    return fmt::format("\"{}\"", shown);
}

namespace {

/// Thrown through the parser when the document is refused; never leaves this file.
struct Refusal {
    Problem problem;
};

/// Builds the tree from the parser's events, within the limits.
class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(std::shared_ptr<const std::string> file, const QuotedSpecs& quoted, Document& document)
        : m_file(std::move(file))
        , m_quoted(quoted)
        , m_document(document)
    {
    }

    void OnDocumentStart(const YAML::Mark& mark) override
    {
        if (m_started)
            refuse("MW1407", "a second document begins here",
                "keep one study in a file: remove everything from the second \"---\" on", mark);
        m_started = true;
    }
    void OnDocumentEnd() override { }

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(node(DocNode::Kind::Null, mark), anchor, 1); }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override
    {
        refuseTag(tag, mark);
        DocNode scalar = node(DocNode::Kind::Scalar, mark);
        scalar.text = value;
        scalar.quoted = tag == "!";
        m_hasTornSpecs = m_hasTornSpecs || (!scalar.quoted && isTornSpec(value));
        add(std::move(scalar), anchor, 1);
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override
    {
        const auto anchored = m_anchored.find(anchor);
        if (anchored == m_anchored.end())
            refuse("MW1405", "this alias refers to a value that contains it", "write the value out instead of the alias", mark);
        const Anchored& target = anchored->second;
        if (static_cast<int>(m_frames.size()) + target.height > kDeepestDocument)
            refuseDepth(mark);
        DocNode copy = target.node;
        copy.line = line(mark);
        copy.column = column(mark);
        count(target.nodes, mark);
        add(std::move(copy), YAML::NullAnchor, target.nodes, target.height);
    }

    void OnSequenceStart(
        const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override
    {
        open(DocNode::Kind::List, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override
    {
        open(DocNode::Kind::Map, mark, tag, anchor);
    }
    void OnMapEnd() override { close(); }

    bool hasTornSpecs() const { return m_hasTornSpecs; }

    Place placeOf(const YAML::Mark& mark) const { return Place{*m_file, line(mark), column(mark), {}}; }

private:
    struct Frame {
        DocNode node;
        YAML::anchor_t anchor = YAML::NullAnchor;
        std::size_t nodes = 1;
        int height = 1; ///< levels of nesting in the node, itself included
        bool wantsKey = false;
        DocEntry pending; ///< of a mapping: the key whose value comes next
        bool keyIsQuoted = false;
        std::unordered_set<std::string> keys = {};
    };
    struct Anchored {
        DocNode node;
        std::size_t nodes = 1;
        int height = 0;
    };

    int line(const YAML::Mark& mark) const { return mark.line + 1; }
    int column(const YAML::Mark& mark) const { return m_quoted.originalColumn(mark.line + 1, mark.column + 1); }

    [[noreturn]] void refuse(const char* id, std::string message, std::string fix, const YAML::Mark& mark) const
    {
        throw Refusal{Problem{id, std::move(message), std::move(fix), placeOf(mark)}};
    }

    [[noreturn]] void refuseDepth(const YAML::Mark& mark) const
    {
        refuse("MW1404", fmt::format("nested more than {} levels deep", kDeepestDocument),
            "a study needs no more than six levels", mark);
    }

    void refuseTag(const std::string& tag, const YAML::Mark& mark) const
    {
        if (!tag.empty() && tag != "?" && tag != "!")
            refuse("MW1411", fmt::format("the tag \"{}\" has no meaning in a study", tag), "remove the tag", mark);
    }

    DocNode node(DocNode::Kind kind, const YAML::Mark& mark) const
    {
        DocNode made;
        made.kind = kind;
        made.line = line(mark);
        made.column = column(mark);
        made.file = m_file;
        return made;
    }

    void count(std::size_t nodes, const YAML::Mark& mark)
    {
        m_nodes += nodes;
        if (m_nodes > kMostDocumentNodes)
            refuse("MW1406", fmt::format("more than {} values, with the aliases written out", kMostDocumentNodes),
                "use fewer aliases of aliases", mark);
    }

    void open(DocNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor)
    {
        refuseTag(tag, mark);
        if (static_cast<int>(m_frames.size()) >= kDeepestDocument)
            refuseDepth(mark);
        count(1, mark);
        Frame frame;
        frame.node = node(kind, mark);
        frame.anchor = anchor;
        frame.wantsKey = kind == DocNode::Kind::Map;
        m_frames.push_back(std::move(frame));
    }

    void close()
    {
        Frame frame = std::move(m_frames.back());
        m_frames.pop_back();
        add(std::move(frame.node), frame.anchor, frame.nodes, frame.height);
    }

    /// Puts a finished node where it belongs: into the list or mapping that is open.
    void add(DocNode done, YAML::anchor_t anchor, std::size_t nodes, int height = 0)
    {
        const YAML::Mark mark = markOf(done);
        if (done.kind == DocNode::Kind::Null || done.kind == DocNode::Kind::Scalar)
            count(1, mark);
        if (anchor != YAML::NullAnchor) {
            count(nodes, mark); // the copy that aliases are made from
            m_anchored[anchor] = Anchored{done, nodes, height};
        }
        if (m_frames.empty()) {
            m_document.root = std::move(done);
            return;
        }
        Frame& frame = m_frames.back();
        frame.nodes += nodes;
        frame.height = std::max(frame.height, height + 1);
        if (frame.node.kind == DocNode::Kind::List) {
            frame.node.entries.push_back(DocEntry{{}, done.line, done.column, std::move(done)});
        } else if (frame.wantsKey) {
            addKey(frame, std::move(done));
        } else {
            frame.pending.value = std::move(done);
            if (!frame.keyIsQuoted)
                refuseJoined(frame.pending);
            if (frame.keys.insert(frame.pending.key).second)
                frame.node.entries.push_back(std::move(frame.pending));
            else
                m_document.problems.push_back({"MW1408", fmt::format("\"{}\" is given twice", frame.pending.key),
                    "remove one of the two", frame.pending.place()});
            frame.wantsKey = true;
        }
    }

    /// `pipe:2` is one word in YAML, and so a key without a value.
    void refuseJoined(const DocEntry& entry) const
    {
        const std::size_t colon = entry.key.find(':');
        if (entry.value.kind != DocNode::Kind::Null || colon == 0 || colon == std::string::npos || colon + 1 == entry.key.size())
            return;
        throw Refusal{Problem{"MW1402", fmt::format("\"{}\" is one word: YAML needs a space behind the colon", entry.key),
            fmt::format("write {}: {}", entry.key.substr(0, colon), entry.key.substr(colon + 1)), entry.place()}};
    }

    void addKey(Frame& frame, DocNode key)
    {
        if (key.kind != DocNode::Kind::Scalar)
            throw Refusal{Problem{
                "MW1411", fmt::format("{} cannot be a key", key.kindText()), "write a name before the colon", key.place()}};
        if (key.text == "<<" && !key.quoted)
            throw Refusal{Problem{"MW1411", "merge keys (<<) are not supported",
                "write the keys of the merged mapping out; an alias can stand for a whole value: layers.1: *a", key.place()}};
        frame.keyIsQuoted = key.quoted;
        frame.pending = DocEntry{std::move(key.text), key.line, key.column, {}};
        frame.wantsKey = false;
    }

    static YAML::Mark markOf(const DocNode& node)
    {
        YAML::Mark mark;
        mark.line = node.line - 1;
        mark.column = node.column - 1;
        return mark;
    }

    std::shared_ptr<const std::string> m_file;
    const QuotedSpecs& m_quoted;
    Document& m_document;
    std::vector<Frame> m_frames;
    std::unordered_map<YAML::anchor_t, Anchored> m_anchored;
    std::size_t m_nodes = 0;
    bool m_started = false;
    bool m_hasTornSpecs = false;
};

/// The first byte that is not text, if any.
std::optional<Problem> byteProblem(std::string_view text, const std::string& fileName)
{
    int line = 1;
    int column = 1;
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const std::size_t length = characterLength(text, at);
        const bool control = (byte < 0x20U && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7FU;
        if (length == 0 || control)
            return Problem{"MW1403", fmt::format("the byte 0x{:02x} is not text{}", byte, length == 0 ? " in UTF-8" : ""),
                "save the file as UTF-8 text", Place{fileName, line, column, {}}};
        if (byte == '\n') {
            ++line;
            column = 0;
        }
        ++column;
        at += length;
    }
    return std::nullopt;
}

/// The first line, up to `lastLine`, that is indented with a tab.
std::optional<Place> tabIndentation(std::string_view text, int lastLine, const std::string& fileName)
{
    int number = 0;
    for (const std::string& line : split(text, '\n')) {
        if (++number > lastLine)
            break;
        const std::size_t content = std::min(line.find_first_not_of(" \t\r"), line.size());
        const std::size_t tab = line.find('\t');
        if (tab < content && content < line.size() && line[content] != '#')
            return Place{fileName, number, static_cast<int>(tab) + 1, {}};
    }
    return std::nullopt;
}

Problem syntaxProblem(const YAML::Exception& error, const Place& at, std::string_view text)
{
    if (dynamic_cast<const YAML::DeepRecursion*>(&error) != nullptr)
        return Problem{"MW1404", fmt::format("nested more than {} levels deep", kDeepestDocument),
            "a study needs no more than six levels", at};
    if (error.msg.starts_with("the referenced anchor is not defined"))
        return Problem{"MW1405", "this alias has no value: nothing before it has that anchor", "write the value out", at};
    if (const auto tab = tabIndentation(text, at.line > 0 ? at.line : 1 << 30, at.file))
        return Problem{"MW1410", "a tab in the indentation", "indent with spaces", *tab, Severity::Error,
            "YAML is indented with spaces only"};
    Place where = at;
    // A bracket that nothing closes: the parser has lost the place, which is the end.
    if (error.msg.starts_with("end of ") && at.column <= 1) {
        where.line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
        where.column = static_cast<int>(text.size() - (text.rfind('\n') + 1)) + 1;
    }
    return Problem{"MW1402", fmt::format("this is not YAML: {}", error.msg), "fix the syntax here or just before", where};
}

/// What is said of a program where a study is wanted: more than that it is not YAML.
Problem programProblem(const std::string& fileName)
{
    return Problem{"MW1402", "this is a program in StableHLO text, not a study",
        "`run`, `propagate`, `partition` and `check` take programs; a "
        "study names one as model: {program: FILE}",
        Place{fileName, 1, 1, {}}};
}

/// One pass of the parser over `quoted.text`; false when the document was refused.
bool parseOnce(const QuotedSpecs& quoted, const std::shared_ptr<const std::string>& file, Document& document, bool& hasTornSpecs)
{
    TreeBuilder builder(file, quoted, document);
    try {
        std::istringstream stream(quoted.text);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) { }
        hasTornSpecs = builder.hasTornSpecs();
        return true;
    } catch (const Refusal& refusal) {
        document.problems.push_back(refusal.problem);
    } catch (const YAML::Exception& error) {
        const Place at = error.mark.is_null() ? Place{*file, 0, 0, {}} : builder.placeOf(error.mark);
        document.problems.push_back(syntaxProblem(error, at, quoted.text));
    } catch (const std::bad_alloc&) {
        throw; // says nothing of the document
    } catch (const std::exception& error) {
        document.problems.push_back(
            {"MW1402", fmt::format("this is not YAML: {}", error.what()), "fix the syntax", Place{*file}});
    }
    document.root = DocNode{};
    document.root.file = file;
    document.readable = false;
    return false;
}

Problem unquotedProblem(const UnquotedSpec& spec, const std::string& fileName)
{
    const char quote = spec.text.find('"') == std::string::npos ? '"' : '\'';
    return Problem{"MW1409", fmt::format("{} needs quotes here: inside {{...}} and [...] its commas end the value", spec.text),
        fmt::format("write {}{}{}", quote, spec.text, quote), Place{fileName, spec.line, spec.column, {}}};
}

} // namespace

bool looksLikeProgram(std::string_view text)
{
    while (!text.empty()) {
        const std::string_view line = trimmed(text.substr(0, text.find('\n')));
        if (!line.empty() && !line.starts_with("//") && !line.starts_with('#'))
            return line == "module" || line.starts_with("module {") || line.starts_with("module @")
                || line.starts_with("module attributes") || line.starts_with("func.func ") || line.starts_with("sdy.mesh ")
                || line.starts_with("\"builtin.module\"");
        text.remove_prefix(std::min(text.size(), text.find('\n') == std::string_view::npos ? text.size() : text.find('\n') + 1));
    }
    return false;
}

bool sameContent(const DocNode& a, const DocNode& b)
{
    if (a.kind != b.kind || a.text != b.text || a.entries.size() != b.entries.size())
        return false;
    if (a.kind == DocNode::Kind::Scalar && a.quoted != b.quoted && isMoreThanText(a.text))
        return false;
    return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(),
        [](const DocEntry& x, const DocEntry& y) { return x.key == y.key && sameContent(x.value, y.value); });
}

Document parseDocument(std::string_view text, const std::string& fileName)
{
    const auto file = std::make_shared<const std::string>(fileName);
    Document refused;
    refused.root.file = file;
    refused.readable = false;
    if (text.size() > kLargestDocumentBytes) {
        refused.problems.push_back(
            {"MW1406", fmt::format("the document has {} bytes, at most {} are read", text.size(), kLargestDocumentBytes),
                "is this the right file? A study has a few kilobytes", Place{fileName}});
        return refused;
    }
    if (const auto problem = byteProblem(text, fileName)) {
        refused.problems.push_back(*problem);
        return refused;
    }

    if (looksLikeProgram(text)) {
        refused.problems.push_back(programProblem(fileName));
        return refused;
    }

    Document document;
    bool hasTornSpecs = false;
    const QuotedSpecs asWritten{std::string(text), {}};
    const bool parsed = parseOnce(asWritten, file, document, hasTornSpecs);
    if (!parsed || hasTornSpecs) {
        const QuotedSpecs quoted = quoteSpecs(text);
        if (!quoted.specs.empty()) {
            document = Document{};
            const bool parsesWithQuotes = parseOnce(quoted, file, document, hasTornSpecs);
            for (const UnquotedSpec& spec : quoted.specs) {
                // In a document that is still broken, a bracket from lines before may only seem to be open.
                if (parsesWithQuotes || spec.bracketLine == spec.line)
                    document.problems.push_back(unquotedProblem(spec, fileName));
            }
        }
    }
    if (document.readable && document.root.kind == DocNode::Kind::Null) {
        document.problems.push_back({"MW1412", "the document is empty",
            "begin with \"meshwright: 1\"; `meshwright list examples` names studies to start from", Place{fileName, 1, 1, {}}});
        document.root.file = file;
        document.readable = false;
    }
    return document;
}

} // namespace meshwright
