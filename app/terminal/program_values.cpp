// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal/program_values.h"

#include "core/support/text.h"
#include "core/text/program_text.h"

#include <fmt/format.h>

namespace meshwright::cli {

ProgramValues::ProgramValues(const Program& program)
    : m_program(program)
{
    for (const Function& function : program.functions)
        m_texts.push_back(valueNames(program, function));
}

std::optional<ProgramValues::Found> ProgramValues::find(const std::string& wanted) const
{
    for (std::size_t f = 0; f < m_program.functions.size(); ++f) {
        if (const auto named = m_program.functions[f].findValue(wanted))
            return Found{f, *named};
    }
    for (std::size_t f = 0; f < m_texts.size(); ++f) {
        for (std::size_t value = 0; value < m_texts[f].size(); ++value) {
            const std::string& text = m_texts[f][value];
            if (!text.empty() && (text == wanted || text.substr(1) == wanted))
                return Found{f, ValueId(value)};
        }
    }
    return std::nullopt;
}

Problem ProgramValues::noSuchValue(const std::string& wanted) const
{
    std::vector<std::string> names;
    for (std::size_t f = 0; f < m_program.functions.size(); ++f) {
        for (const Value& value : m_program.functions[f].values) {
            if (!value.name.empty())
                names.push_back(value.name);
        }
        for (const std::string& text : m_texts[f]) {
            if (!text.empty())
                names.push_back(text);
        }
    }
    const auto near = nearestName(wanted, names);
    return {"MW1923", fmt::format("the program has no value \"{}\"", wanted),
        near ? fmt::format("did you mean \"{}\"?", *near)
             : "use a name of the written program, such as %arg0 or %3, or the value's own name"};
}

std::string ProgramValues::title(std::size_t function, ValueId value) const
{
    const std::string& name = m_program.functions[function][value].name;
    const std::string& called = text(function, value);
    return name.empty() ? called : called.empty() ? name : fmt::format("{} ({})", name, called);
}

} // namespace meshwright::cli
