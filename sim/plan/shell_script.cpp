// SPDX-License-Identifier: GPL-3.0-or-later
#include "sim/plan/shell_script.h"

#include "core/support/text.h"
#include "sim/plan/shell_arithmetic.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace meshwright::sim {

namespace {

/// The length of the name at the beginning; 0: none.
std::size_t nameLength(std::string_view text)
{
    if (text.empty() || (text.front() >= '0' && text.front() <= '9'))
        return 0;
    return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), isNameLetter) - text.begin());
}

class ShellReader {
public:
    explicit ShellReader(std::string_view text)
        : m_text(text)
        , m_shell(&m_own)
    {
    }
    ShellReader(const ShellReader&) = delete;
    ShellReader& operator=(const ShellReader&) = delete;

    ShellScript read()
    {
        while (m_at < m_text.size())
            readCommand();
        for (const auto& [name, value] : m_shell->variables)
            m_script.variables[name] = join(value, " ");
        return std::move(m_script);
    }

private:
    using Fields = std::vector<std::string>;

    struct Shell {
        std::map<std::string, Fields> variables;
        std::size_t budget = std::size_t{1} << 24; ///< letters that variables may still expand to: `A=$A$A` doubles it each time
    };
    /// A text inside of an expansion.
    ShellReader(std::string_view text, Shell& shell, std::size_t depth)
        : m_text(text)
        , m_shell(&shell)
        , m_depth(depth)
    {
    }

    /// A part of the script that may be left out: of an `if`, or the body of a loop.
    struct Branch {
        bool isReached = false; ///< it stands where commands count
        bool isTaken = false; ///< the part that is read now is the one that counts
        bool wasTaken = false; ///< one of its parts was
    };

    /// The commands that are read now count.
    bool isActive() const { return m_branches.empty() || (m_branches.back().isReached && m_branches.back().isTaken); }
    char at(std::size_t ahead = 0) const { return m_at + ahead < m_text.size() ? m_text[m_at + ahead] : '\0'; }
    void step()
    {
        if (m_text[m_at] == '\n')
            ++m_line;
        ++m_at;
    }

    void readCommand();
    bool skipLineEnd();
    void skipBlanks();
    void readComment();
    void skipRedirection();
    void skipHereDocuments();
    bool readAssignment();
    Fields readWord(bool splits);
    void readQuoted(char quote, Fields& fields, bool& isOpen);
    Fields readArray();
    Fields expansion(bool isQuoted);
    Fields expandBraces(std::string_view inside);
    std::string expandText(std::string_view text);
    std::string_view upTo(char open, char close);
    bool takesKeyword(const std::string& word);
    bool holds(const Fields& test) const;

    static constexpr std::size_t kMostDepth = 32; ///< of expansions in expansions

    std::string_view m_text;
    std::size_t m_at = 0;
    std::int64_t m_line = 1;
    Shell m_own;
    Shell* m_shell;
    std::size_t m_depth = 0;
    bool m_meetsUnknown = false; ///< the word that is read has parts that are known only when the script runs
    std::vector<Branch> m_branches;
    std::vector<std::string> m_hereEnds; ///< of documents that begin in the next line
    ShellScript m_script;
};

/// A backslash at the end of a line, and the end. False: there is none.
bool ShellReader::skipLineEnd()
{
    const std::size_t length = at(1) == '\n' ? 2 : at(1) == '\r' && at(2) == '\n' ? 3 : 0;
    if (at() != '\\' || length == 0)
        return false;
    for (std::size_t i = 0; i < length; ++i)
        step();
    return true;
}

void ShellReader::skipBlanks()
{
    while (skipLineEnd() || at() == ' ' || at() == '\t' || at() == '\r') {
        if (at() == ' ' || at() == '\t' || at() == '\r')
            step();
    }
}

void ShellReader::readComment()
{
    const std::size_t length = std::min(m_text.substr(m_at).find('\n'), m_text.size() - m_at);
    std::string comment(m_text.substr(m_at, length));
    m_at += length;
    if (!comment.starts_with("#SBATCH"))
        return;
    std::replace(comment.begin(), comment.end(), '=', ' ');
    std::vector<std::string> words = split(comment, ' ');
    std::erase_if(words, [](const std::string& word) { return trimmed(word).empty(); });
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& name = words[i];
        if (name == "--nodes" || name == "-N") {
            for (const char* variable : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
                m_shell->variables[variable] = {words[i + 1]};
        } else if (name == "--ntasks-per-node")
            m_shell->variables["SLURM_NTASKS_PER_NODE"] = {words[i + 1]};
        else if (name == "--ntasks" || name == "-n")
            m_shell->variables["SLURM_NTASKS"] = {words[i + 1]};
        else if (name == "--gpus-per-node")
            m_shell->variables["SLURM_GPUS_ON_NODE"] = {words[i + 1].substr(words[i + 1].rfind(':') + 1)};
    }
}

/// `2>&1`, `> file`, `<<EOF`: from the sign on.
void ShellReader::skipRedirection()
{
    const bool isHere = at() == '<' && at(1) == '<' && at(2) != '<';
    while (m_at < m_text.size() && std::string_view("<>&|-").find(at()) != std::string_view::npos)
        step();
    skipBlanks();
    const Fields target = readWord(false);
    if (isHere && !target.empty())
        m_hereEnds.push_back(target.front());
}

void ShellReader::skipHereDocuments()
{
    for (const std::string& end : std::exchange(m_hereEnds, {})) {
        while (m_at < m_text.size()) {
            const std::size_t length = std::min(m_text.substr(m_at).find('\n'), m_text.size() - m_at);
            const std::string_view line = trimmed(m_text.substr(m_at, length));
            m_at += length;
            if (m_at < m_text.size())
                step();
            if (line == end)
                break;
        }
    }
}

/// The text up to the closing letter, behind an opening one that was read; what stands between them may have such pairs, and quotes, itself.
std::string_view ShellReader::upTo(char open, char close)
{
    const std::size_t begin = m_at;
    std::size_t depth = 1;
    while (m_at < m_text.size()) {
        if (at() == close && --depth == 0)
            break;
        if (at() == open)
            ++depth;
        step();
    }
    const std::string_view inside = m_text.substr(begin, m_at - begin);
    if (m_at < m_text.size())
        step();
    return inside;
}

std::string ShellReader::expandText(std::string_view text)
{
    if (m_depth >= kMostDepth)
        return {};
    ShellReader inner(text, *m_shell, m_depth + 1);
    std::string expanded;
    while (inner.m_at < inner.m_text.size()) {
        const char letter = inner.at();
        if (letter == '$')
            expanded += join(inner.expansion(true), " ");
        else if (letter == '"' || letter == '\'')
            inner.step();
        else {
            expanded += letter;
            inner.step();
        }
    }
    m_meetsUnknown = m_meetsUnknown || inner.m_meetsUnknown;
    return expanded;
}

/// What `${..}` stands for.
ShellReader::Fields ShellReader::expandBraces(std::string_view inside)
{
    if (inside.starts_with('#')) {
        m_meetsUnknown = true;
        return {};
    }
    const std::size_t length = std::max<std::size_t>(nameLength(inside), inside.empty() ? 0 : 1);
    const std::string name(inside.substr(0, length));
    std::string_view rest = inside.substr(length);
    if (rest.starts_with("[@]") || rest.starts_with("[*]"))
        rest.remove_prefix(3);
    const auto found = m_shell->variables.find(name);
    const bool isSet = found != m_shell->variables.end() && !(found->second.empty() || found->second == Fields{""});
    const bool isDefault = rest.starts_with(":-") || rest.starts_with(":=") || rest.starts_with('-') || rest.starts_with('=');
    if (isDefault && !isSet)
        return {expandText(rest.substr(rest.find_first_of("-=") + 1))};
    m_meetsUnknown = m_meetsUnknown || found == m_shell->variables.end() || !(isDefault || rest.empty());
    return isSet && (isDefault || rest.empty()) ? found->second : Fields{};
}

/// What `$..` stands for, at the sign.
ShellReader::Fields ShellReader::expansion(bool isQuoted)
{
    step();
    if (at() == '(' && at(1) == '(') {
        step();
        step();
        const std::string_view inside = upTo('(', ')');
        if (at() == ')')
            step();
        std::string text;
        for (std::size_t i = 0; i < inside.size();) { // names need no sign here
            const std::size_t length = nameLength(inside.substr(i));
            text += length > 0 && (i == 0 || (inside[i - 1] != '$' && inside[i - 1] != '{'))
                ? "$" + std::string(inside.substr(i, length))
                : std::string(inside.substr(i, std::max<std::size_t>(1, length)));
            i += std::max<std::size_t>(1, length);
        }
        const auto value = valueOfArithmetic(expandText(text));
        return value ? Fields{std::to_string(*value)} : Fields{};
    }
    if (at() == '(') {
        step();
        upTo('(', ')');
        m_meetsUnknown = true;
        return {};
    }
    Fields fields;
    if (at() == '{') {
        step();
        fields = expandBraces(upTo('{', '}'));
    } else {
        const std::size_t length = nameLength(m_text.substr(m_at));
        const auto found = m_shell->variables.find(std::string(m_text.substr(m_at, length)));
        m_meetsUnknown = m_meetsUnknown || found == m_shell->variables.end();
        fields = found == m_shell->variables.end() ? Fields{} : found->second;
        m_at += length;
        if (length == 0 && m_at < m_text.size() && at() != '"' && at() != ' ' && at() != '\n')
            step(); // $1, $@, $?
    }
    std::size_t size = fields.size();
    for (const std::string& field : fields)
        size += field.size();
    if (size > m_shell->budget)
        return {};
    m_shell->budget -= size;
    if (isQuoted)
        return fields;
    Fields words;
    for (std::string field : fields) {
        std::replace_if(
            field.begin(), field.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
        for (std::string& word : split(field, ' ')) {
            if (!word.empty())
                words.push_back(std::move(word));
        }
    }
    return words;
}

/// Appends fields to a word: the first of them goes on with what is open, and the last stays open.
void addFields(std::vector<std::string>& word, std::vector<std::string> fields, bool& isOpen)
{
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (i == 0 && isOpen)
            word.back() += fields[i];
        else
            word.push_back(std::move(fields[i]));
        isOpen = true;
    }
}

void ShellReader::readQuoted(char quote, Fields& fields, bool& isOpen)
{
    addFields(fields, {""}, isOpen);
    step();
    while (m_at < m_text.size() && at() != quote) {
        if (quote == '"' && at() == '$') {
            addFields(fields, expansion(true), isOpen);
            continue;
        }
        if (quote == '"' && at() == '`') {
            step();
            upTo('\0', '`');
            m_meetsUnknown = true;
            continue;
        }
        if (quote == '"' && at() == '\\' && std::string_view("\"\\$`\n").find(at(1)) != std::string_view::npos) {
            step();
            if (at() == '\n') {
                step();
                continue;
            }
        }
        if (m_at >= m_text.size())
            break;
        fields.back() += at();
        step();
    }
    if (m_at < m_text.size())
        step();
}

/// The fields of one word; none where all of it expands to nothing. `splits`: outside of quotes, what variables have is split at blanks.
ShellReader::Fields ShellReader::readWord(bool splits)
{
    Fields fields;
    bool isOpen = false;
    while (m_at < m_text.size()) {
        const char letter = at();
        if (std::string_view(" \t\r\n;&|<>()").find(letter) != std::string_view::npos)
            break;
        if (skipLineEnd())
            continue;
        if (letter == '\\') {
            step();
            if (m_at < m_text.size()) {
                addFields(fields, {std::string(1, at())}, isOpen);
                step();
            }
        } else if (letter == '"' || letter == '\'')
            readQuoted(letter, fields, isOpen);
        else if (letter == '`') {
            step();
            upTo('\0', '`');
            m_meetsUnknown = true;
        } else if (letter == '$') {
            Fields expanded = expansion(!splits);
            addFields(fields, splits ? std::move(expanded) : Fields{join(expanded, " ")}, isOpen);
        } else {
            addFields(fields, {std::string(1, letter)}, isOpen);
            step();
        }
    }
    return fields;
}

/// `( .. )` behind an equals sign.
ShellReader::Fields ShellReader::readArray()
{
    Fields fields;
    step();
    while (m_at < m_text.size() && at() != ')') {
        skipBlanks();
        if (at() == '#') {
            readComment();
        } else if (at() == '\n') {
            step();
        } else if (at() != ')' && m_at < m_text.size()) {
            const std::size_t before = m_at;
            Fields more = readWord(true);
            fields.insert(fields.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
            if (m_at == before)
                step();
        }
    }
    if (m_at < m_text.size())
        step();
    return fields;
}

/// `X=..`, `X+=..`, `X=(..)`. False: the word is none.
bool ShellReader::readAssignment()
{
    const std::size_t length = nameLength(m_text.substr(m_at));
    const bool adds = at(length) == '+' && at(length + 1) == '=';
    if (length == 0 || (!adds && at(length) != '='))
        return false;
    const std::string name(m_text.substr(m_at, length));
    m_at += length + (adds ? 2 : 1);
    const bool isArray = at() == '(';
    m_meetsUnknown = false;
    Fields value = isArray ? readArray() : readWord(false);
    if (!isActive())
        return true;
    if (m_meetsUnknown && !adds && std::ranges::all_of(value, [](const std::string& field) { return field.empty(); })) {
        m_shell->variables.erase(name); // known only when the script runs
        return true;
    }
    if (!isArray && value.empty())
        value = {""};
    Fields& variable = m_shell->variables[name];
    if (adds && isArray)
        variable.insert(variable.end(), value.begin(), value.end());
    else if (adds && !variable.empty())
        variable.back() += value.front();
    else
        variable = std::move(value);
    return true;
}

/// `[ .. ]`, `[[ .. ]]` and `test ..` of words and numbers; what cannot be known does not hold.
bool ShellReader::holds(const Fields& test) const
{
    constexpr std::size_t kLongest = 100; // words, each of which may be a step down
    if (test.size() > kLongest)
        return false;
    Fields words = test;
    if (!words.empty() && words.front() == "!") {
        words.erase(words.begin());
        return !holds(words);
    }
    if (words.empty() || (words.front() != "[" && words.front() != "[[" && words.front() != "test"))
        return false;
    words.erase(words.begin());
    if (!words.empty() && words.back().starts_with("]"))
        words.pop_back();
    for (const char* both : {"||", "&&"}) {
        if (const auto found = std::find(words.begin(), words.end(), both); found != words.end()) {
            Fields left(words.begin(), found);
            Fields right(found + 1, words.end());
            left.insert(left.begin(), "test");
            right.insert(right.begin(), "test");
            return *both == '|' ? holds(left) || holds(right) : holds(left) && holds(right);
        }
    }
    if (!words.empty() && words.front() == "!") {
        words.front() = "test";
        return !holds(words);
    }
    if (!words.empty() && (words.front() == "-z" || words.front() == "-n"))
        return (words.size() < 2 || words[1].empty()) == (words.front() == "-z");
    if (words.size() == 1)
        return !words.front().starts_with('-') && !words.front().empty();
    if (words.size() != 3)
        return false;
    if (words[1] == "=" || words[1] == "==")
        return words[0] == words[2];
    if (words[1] == "!=")
        return words[0] != words[2];
    const auto a = parseInteger(words[0]);
    const auto b = parseInteger(words[2]);
    if (!a || !b)
        return false;
    return words[1] == "-eq" ? *a == *b
        : words[1] == "-ne"  ? *a != *b
        : words[1] == "-lt"  ? *a < *b
        : words[1] == "-le"  ? *a <= *b
        : words[1] == "-gt"  ? *a > *b
        : words[1] == "-ge"  ? *a >= *b
                             : false;
}

/// The words of branches and loops, at the beginning of a command.
bool ShellReader::takesKeyword(const std::string& word)
{
    if (word == "then" || word == "do" || word == "{" || word == "}")
        return true;
    if (word == "fi" || word == "done" || word == "esac") {
        if (!m_branches.empty())
            m_branches.pop_back();
        return true;
    }
    if (word == "else") {
        if (!m_branches.empty()) {
            Branch& branch = m_branches.back();
            branch.isTaken = !branch.wasTaken;
            branch.wasTaken = true;
        }
        return true;
    }
    return false;
}

void ShellReader::readCommand()
{
    std::vector<ShellWord> words;
    std::vector<Fields> conditions; // of `if` and `elif`
    std::vector<bool> areOr; // how each condition but the first is joined to those before it
    std::string branch; // the word that began it
    bool isFirst = true;
    bool inTest = false;
    Fields test;
    const auto endTest = [&] {
        conditions.push_back(std::exchange(test, {}));
        inTest = false;
    };
    while (true) {
        skipBlanks();
        if (m_at >= m_text.size())
            break;
        const char letter = at();
        if (letter == '#') {
            readComment();
            continue;
        }
        const bool isBoth = (letter == '&' && at(1) == '&') || (letter == '|' && at(1) == '|');
        if (inTest && isBoth) {
            test.push_back({letter, letter});
            m_at += 2;
            continue;
        }
        if (!branch.empty() && isBoth) {
            endTest();
            areOr.push_back(letter == '|');
            m_at += 2;
            continue;
        }
        if (letter == '\n' || letter == ';' || letter == '&' || letter == '|' || letter == '(' || letter == ')') {
            const bool isRedirection = letter == '&' && at(1) == '>';
            step();
            if (isRedirection) {
                skipRedirection();
                continue;
            }
            if (letter == '\n')
                skipHereDocuments();
            break;
        }
        if (letter == '<' || letter == '>') {
            skipRedirection();
            continue;
        }
        if (isFirst && branch.empty() && readAssignment())
            continue;
        const std::int64_t line = m_line;
        const std::size_t before = m_at;
        m_meetsUnknown = false;
        Fields fields = readWord(branch.empty());
        if (m_at == before) // a letter that no word begins with
            step();
        const std::string_view written = m_text.substr(before, m_at - before);
        const bool isEmpty = std::ranges::all_of(fields, [](const std::string& field) { return field.empty(); });
        if (isEmpty && m_meetsUnknown && branch.empty())
            words.push_back({std::string(written), line, false});
        if (!branch.empty()) {
            if (fields.empty())
                fields = {""};
            inTest = inTest || fields.front() == "[[";
            inTest = inTest && fields.front() != "]]";
            test.insert(test.end(), fields.begin(), fields.end());
            continue;
        }
        for (std::string& field : fields) {
            if (isFirst && takesKeyword(field))
                continue;
            if (isFirst
                && (field == "if" || field == "elif" || field == "for" || field == "while" || field == "until"
                    || field == "case")) {
                branch = field;
                continue;
            }
            if (isFirst && (field == "export" || field == "local" || field == "declare" || field == "readonly"))
                continue; // what is assigned follows
            isFirst = false;
            if (!field.empty())
                words.push_back({std::move(field), line});
        }
        // Number before a redirection: `2> file`.
        if ((at() == '<' || at() == '>') && !words.empty() && parseInteger(words.back().text))
            words.pop_back();
    }
    if (branch == "if" || branch == "elif") {
        endTest();
        bool result = holds(conditions.front());
        for (std::size_t i = 1; i < conditions.size(); ++i)
            result = areOr[i - 1] ? result || holds(conditions[i]) : result && holds(conditions[i]);
        if (branch == "if")
            m_branches.push_back({isActive(), result, result});
        else if (!m_branches.empty()) {
            m_branches.back().isTaken = result && !m_branches.back().wasTaken;
            m_branches.back().wasTaken = m_branches.back().wasTaken || result;
        }
    } else if (!branch.empty()) {
        m_branches.push_back({isActive(), false, true});
    }
    if (!words.empty() && isActive())
        m_script.commands.push_back(std::move(words));
}

} // namespace

ShellScript readShellScript(std::string_view text)
{
    return ShellReader(text).read();
}

} // namespace meshwright::sim
