// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/hlo/module.h"

#include "core/support/checked.h"
#include "core/support/element_names.h"
#include "core/support/text.h"
#include "core/text/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace meshwright {

namespace {

constexpr int kDeepest = 100; ///< tuples in tuples

bool isBlank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

bool endsName(char c)
{
    return isBlank(c) || std::string_view("=,(){}[]\"").find(c) != std::string_view::npos;
}

char closingOf(char opening)
{
    return opening == '(' ? ')' : opening == '[' ? ']' : opening == '{' ? '}' : '\0';
}

/// Bits of an element; nothing for what is not a type.
std::optional<std::int64_t> bitsOf(std::string_view type)
{
    const auto found = findElementName(type, {TypeSpelling::Hlo});
    return found ? std::optional(elementNames()[*found].bits) : std::nullopt;
}

std::optional<std::int64_t> bytesOf(const Shape& dims, std::int64_t bits)
{
    const auto elements = checkedProduct(dims);
    const auto all = elements ? checkedMultiply(*elements, bits) : std::nullopt;
    return all ? std::optional(ceilDiv(*all, 8)) : std::nullopt;
}

/// Walks over the text once. Every function that returns false has reported why.
class HloReader {
public:
    HloReader(std::string_view text, const std::string& file)
        : m_text(text)
        , m_problems(text, file)
    {
    }

    Result<HloModule> run()
    {
        if (!header() || !rest() || !entryIsThere())
            return m_problems.take();
        return std::move(m_module);
    }

private:
    void skipBlank()
    {
        while (m_at < m_text.size()) {
            const std::string_view left = m_text.substr(m_at);
            if (isBlank(left.front()))
                ++m_at;
            else if (left.starts_with("//"))
                m_at = std::min(m_text.find('\n', m_at), m_text.size());
            else if (left.starts_with("/*")) {
                const std::size_t end = m_text.find("*/", m_at + 2);
                m_at = end == std::string_view::npos ? m_text.size() : end + 2;
            } else
                return;
        }
    }

    bool atEnd()
    {
        skipBlank();
        return m_at == m_text.size();
    }

    bool peek(char c)
    {
        skipBlank();
        return m_at < m_text.size() && m_text[m_at] == c;
    }

    bool take(char c)
    {
        const bool comes = peek(c);
        m_at += comes ? 1 : 0;
        return comes;
    }

    bool expected(std::string_view what)
    {
        skipBlank();
        constexpr std::size_t kMostShown = 24;
        std::string_view found = m_text.substr(m_at, kMostShown);
        found = found.substr(0, found.find_first_of("\r\n"));
        return m_problems.report("MW1360", m_at,
            found.empty() ? fmt::format("expected {}, found the end of the text", what)
                          : fmt::format("expected {}, found \"{}\"", what, found),
            "give the whole text of one module, as a dump (*.txt) or compiled.as_text() has it");
    }

    std::string_view name()
    {
        skipBlank();
        if (m_at < m_text.size() && m_text[m_at] == '%')
            ++m_at;
        const std::size_t start = m_at;
        while (m_at < m_text.size() && !endsName(m_text[m_at]))
            ++m_at;
        return m_text.substr(start, m_at - start);
    }

    /// Steps over a string in double quotes that begins here.
    bool skipString()
    {
        const std::size_t start = m_at++;
        while (m_at < m_text.size() && m_text[m_at] != '"')
            m_at += m_text[m_at] == '\\' ? 2U : 1U;
        if (m_at >= m_text.size()) {
            m_at = start;
            return expected("a string that ends");
        }
        ++m_at;
        return true;
    }

    /// What stands in the brackets that open here; brackets nest, strings protect.
    std::optional<std::string_view> bracketed()
    {
        const std::size_t start = m_at;
        std::string open;
        do {
            if (m_at >= m_text.size()) {
                m_at = start;
                expected("brackets that are closed");
                return std::nullopt;
            }
            const char c = m_text[m_at];
            if (c == '"') {
                if (!skipString())
                    return std::nullopt;
                continue;
            }
            if (m_text.substr(m_at).starts_with("/*")) {
                skipBlank();
                continue;
            }
            if (const char closing = closingOf(c))
                open.push_back(closing);
            else if (c == ')' || c == ']' || c == '}') {
                if (c != open.back()) {
                    expected(fmt::format("\"{}\"", open.back()));
                    return std::nullopt;
                }
                open.pop_back();
            }
            ++m_at;
        } while (!open.empty());
        return m_text.substr(start + 1, m_at - start - 2);
    }

    /// The value of an attribute: up to a comma or white space outside brackets. `mesh['x'=8] {'x'}` has a space.
    std::optional<std::string_view> value()
    {
        skipBlank();
        const std::size_t start = m_at;
        while (m_at < m_text.size() && m_text[m_at] != ',' && m_text[m_at] != '}' && m_text[m_at] != ')') {
            const char c = m_text[m_at];
            if (isBlank(c)) {
                const bool goesOn = m_text.substr(start).starts_with("mesh[") && m_text.substr(m_at).starts_with(" {");
                if (!goesOn)
                    break;
                ++m_at;
            } else if (c == '"') {
                if (!skipString())
                    return std::nullopt;
            } else if (closingOf(c) != '\0') {
                if (!bracketed())
                    return std::nullopt;
            } else
                ++m_at;
        }
        return m_text.substr(start, m_at - start);
    }

    bool attributes(std::vector<std::pair<std::string_view, std::string_view>>& found)
    {
        while (take(',')) {
            const std::string_view key = name();
            if (key.empty() || !take('='))
                return expected("an attribute such as channel_id=1");
            const auto text = value();
            if (!text)
                return false;
            found.emplace_back(key, *text);
        }
        return true;
    }

    bool dims(HloShape& shape)
    {
        while (!take(']')) {
            skipBlank();
            if (m_text.substr(m_at).starts_with("<="))
                m_at += 2;
            const std::size_t start = m_at;
            while (m_at < m_text.size() && (isDigit(m_text[m_at]) || m_text[m_at] == '?'))
                ++m_at;
            const std::string_view size = m_text.substr(start, m_at - start);
            const auto number = size == "?" ? std::optional<std::int64_t>(0) : parseInteger(size);
            if (!number || (!peek(']') && !take(',')))
                return expected("the sizes of an array, such as f32[8,128]");
            shape.dims.push_back(*number);
        }
        return true;
    }

    bool tuple(HloShape& shape, int depth)
    {
        shape.isTuple = true;
        while (!take(')')) {
            HloShape element;
            if (!this->shape(element, depth + 1))
                return false;
            if (__builtin_add_overflow(shape.bytes, element.bytes, &shape.bytes))
                return m_problems.report("MW1360", m_at, "the bytes of this tuple do not fit 64 bits");
            shape.elements.push_back(std::move(element));
            if (!peek(')') && !take(','))
                return expected("\",\" or \")\" in a tuple's shape");
        }
        return true;
    }

    bool shape(HloShape& shape, int depth = 0)
    {
        if (depth > kDeepest)
            return m_problems.report("MW1360", m_at, fmt::format("tuples are nested more than {} deep", kDeepest));
        if (take('('))
            return tuple(shape, depth);
        skipBlank();
        const std::size_t start = m_at;
        const std::string_view type = name();
        if (type == "b" && take('(')) // a buffer: b(f32[8])
            return this->shape(shape, depth + 1) && (take(')') || expected("\")\" after a buffer's shape"));
        const auto bits = bitsOf(type);
        if (!bits || m_at >= m_text.size() || m_text[m_at] != '[') {
            m_at = start;
            return expected("a shape such as f32[8,128]");
        }
        ++m_at;
        if (!dims(shape))
            return false;
        const auto bytes = bytesOf(shape.dims, *bits);
        if (!bytes)
            return m_problems.report("MW1360", start, "the bytes of this array do not fit 64 bits");
        shape.bytes = *bytes;
        // A layout stands right behind the sizes; the brace of a body does not.
        return m_at >= m_text.size() || m_text[m_at] != '{' || bracketed().has_value();
    }

    void splitOperands(std::string_view text, HloInstruction& instruction) const
    {
        if (instruction.opcode == "constant") {
            instruction.operands = {trimmed(text)};
            return;
        }
        std::size_t start = 0;
        int depth = 0;
        for (std::size_t i = 0; i <= text.size(); ++i) {
            const char c = i < text.size() ? text[i] : ',';
            if (text.substr(i).starts_with("/*"))
                start = i = std::min(text.find("*/", i), text.size() - 1) + 1;
            else if (closingOf(c) != '\0')
                ++depth;
            else if (c == ')' || c == ']' || c == '}')
                --depth;
            else if (c == ',' && (depth == 0 || i == text.size())) {
                // `f32[8]{0} %x`: the name stands last.
                std::string_view operand = trimmed(text.substr(std::min(start, i), i - std::min(start, i)));
                operand = operand.substr(std::min(operand.find_last_of(" \t\n") + 1, operand.size()));
                if (operand.starts_with('%'))
                    operand.remove_prefix(1);
                if (!operand.empty())
                    instruction.operands.push_back(operand);
                start = i + 1;
            }
        }
    }

    bool instruction(HloComputation& computation)
    {
        HloInstruction read;
        skipBlank();
        read.offset = m_at;
        read.name = name();
        if (read.name == "ROOT" && !peek('=')) {
            read.isRoot = true;
            skipBlank();
            read.offset = m_at;
            read.name = name();
        }
        if (read.name.empty() || !take('='))
            return expected("an instruction such as %x = f32[8] add(%a, %b)");
        if (!shape(read.shape))
            return false;
        read.opcode = name();
        if (read.opcode.empty() || !peek('('))
            return expected("an op and its operands");
        const auto operands = bracketed();
        if (!operands)
            return false;
        splitOperands(*operands, read);
        if (!attributes(read.attributes))
            return false;
        if (!computation.index.emplace(read.name, computation.instructions.size()).second)
            return m_problems.report(
                "MW1361", read.offset, fmt::format("%{} is defined twice in {}", read.name, computation.name));
        computation.instructions.push_back(std::move(read));
        return true;
    }

    bool computation(std::string_view named, bool isEntry)
    {
        HloComputation read;
        read.name = named;
        const std::size_t start = m_at;
        if (peek('(')) {
            HloShape result;
            if (!bracketed())
                return false;
            skipBlank();
            if (!m_text.substr(m_at).starts_with("->"))
                return expected("\"->\" and the shape of the result");
            m_at += 2;
            if (!shape(result))
                return false;
        }
        if (!take('{'))
            return expected("a computation such as %main (x: f32[8]) -> f32[8] {");
        while (!take('}') && !(m_isCut = atEnd())) {
            if (!instruction(read))
                return false;
        }
        std::vector<std::pair<std::string_view, std::string_view>> ignored;
        if (!attributes(ignored))
            return false;
        if (isEntry)
            m_entry = m_module.computations.size();
        if (!m_module.index.emplace(named, m_module.computations.size()).second)
            return m_problems.report("MW1361", start, fmt::format("the computation {} is defined twice", named));
        m_module.computations.push_back(std::move(read));
        return true;
    }

    /// `FileNames`, `FunctionNames`, `FileLocations` and `StackFrames`: a number and what it stands for on each line.
    bool table(std::map<std::int64_t, std::string_view>& rows)
    {
        while (!atEnd() && isDigit(m_text[m_at])) {
            const auto number = parseInteger(name());
            skipBlank();
            const std::size_t start = m_at;
            const bool isString = peek('"');
            if (!number || (!isString && !peek('{')))
                return expected("a row such as 1 \"model.py\"");
            if (isString ? !skipString() : !bracketed())
                return false;
            rows[*number] = m_text.substr(start + 1, m_at - start - 2);
        }
        return true;
    }

    static std::int64_t field(std::string_view row, std::string_view key)
    {
        const std::size_t at = row.find(key);
        if (at == std::string_view::npos)
            return 0;
        const std::string_view digits = row.substr(at + key.size());
        return parseInteger(digits.substr(0, digits.find_first_not_of("0123456789"))).value_or(0);
    }

    bool header()
    {
        if (name() != "HloModule") {
            m_at = 0;
            return expected("HloModule and a name");
        }
        m_module.name = name();
        std::vector<std::pair<std::string_view, std::string_view>> found;
        if (m_module.name.empty())
            return expected("the name of the module");
        if (!attributes(found))
            return false;
        for (const auto& [key, text] : found) {
            m_module.isScheduled = m_module.isScheduled || (key == "is_scheduled" && text == "true");
            if (key != "num_partitions" && key != "replica_count")
                continue;
            const auto count = parseInteger(text);
            if (!count || *count < 1)
                return m_problems.report("MW1360", 0, fmt::format("{} is \"{}\", not a number of at least 1", key, text));
            (key == "num_partitions" ? m_module.partitions : m_module.replicas) = *count;
            m_module.saysDevices = true;
        }
        return true;
    }

    bool rest()
    {
        std::map<std::string_view, std::map<std::int64_t, std::string_view>> tables
            = {{"FileNames", {}}, {"FunctionNames", {}}, {"FileLocations", {}}, {"StackFrames", {}}};
        while (!atEnd()) {
            std::string_view word = name();
            if (const auto found = tables.find(word); found != tables.end()) {
                if (!table(found->second))
                    return false;
                continue;
            }
            if (word == "HloModule")
                return m_problems.report("MW1360", m_at, "a second module begins here", "give each module in a file of its own");
            const bool isEntry = word == "ENTRY";
            if (isEntry)
                word = name();
            if (word.empty())
                return expected("a computation such as %main (x: f32[8]) -> f32[8] {");
            if (!computation(word, isEntry))
                return false;
        }
        for (const auto& [frame, row] : tables["StackFrames"]) {
            const std::string_view location = tables["FileLocations"][field(row, "file_location_id=")];
            const std::string_view file = tables["FileNames"][field(location, "file_name_id=")];
            if (!file.empty())
                m_module.frames[frame] = fmt::format("{}:{}", file, field(location, " line="));
        }
        return true;
    }

    bool entryIsThere()
    {
        if (m_module.computations.empty())
            return m_problems.report("MW1361", 0, fmt::format("the module {} has no computation", m_module.name));
        if (!m_entry && m_module.computations.size() == 1)
            m_entry = 0;
        m_module.isCut = m_isCut || !m_entry;
        m_module.entry = m_entry;
        return true;
    }

    std::string_view m_text;
    TextProblems m_problems;
    HloModule m_module;
    std::optional<std::size_t> m_entry;
    std::size_t m_at = 0;
    bool m_isCut = false;
};

} // namespace

std::string_view HloInstruction::find(std::string_view key) const
{
    const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const auto& one) { return one.first == key; });
    return found == attributes.end() ? std::string_view() : found->second;
}

const HloInstruction* HloComputation::find(std::string_view instruction) const
{
    const auto found = index.find(instruction);
    return found == index.end() ? nullptr : &instructions[found->second];
}

const HloInstruction* HloComputation::root() const
{
    const auto marked = std::find_if(instructions.begin(), instructions.end(), [](const auto& one) { return one.isRoot; });
    return marked != instructions.end() ? &*marked : instructions.empty() ? nullptr : &instructions.back();
}

bool isHloText(std::string_view text)
{
    constexpr std::string_view kFirst = "HloModule";
    while (!text.empty()) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        if (!text.starts_with("//"))
            break;
        text.remove_prefix(std::min(text.find('\n'), text.size()));
    }
    return text.starts_with(kFirst) && text.size() > kFirst.size() && isBlank(text[kFirst.size()]);
}

Result<HloModule> readHloModule(std::string_view text, const std::string& file)
{
    return HloReader(text, file).run();
}

} // namespace meshwright
