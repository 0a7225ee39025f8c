// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright {

std::optional<ValueId> Function::findValue(std::string_view wanted) const
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i].name == wanted)
            return ValueId(i);
    }
    return std::nullopt;
}

std::string_view opName(const Op& op)
{
    return isKept(op.kind) ? std::string_view(op.as<OtherAttributes>().name) : std::string_view(opName(op.kind));
}

std::string valueText(const Function& function, ValueId value)
{
    const std::string& name = function[value].name;
    return name.empty() ? fmt::format("%{}", value.index) : name;
}

const Function* Program::find(std::string_view name) const
{
    const auto found = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
    return found == functions.end() ? nullptr : &*found;
}

Function* Program::find(std::string_view name)
{
    return const_cast<Function*>(std::as_const(*this).find(name));
}

} // namespace meshwright
