// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/notation.h"
#include "core/text/program_text.h"
#include "core/text/write_function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace meshwright {

namespace {

std::string meshLine(const NamedMesh& named)
{
    std::vector<std::string> axes;
    for (const MeshAxis& axis : named.mesh.axes())
        axes.push_back(fmt::format("{}={}", quoted(axis.name), axis.size));
    std::string text = fmt::format("  sdy.mesh {} = <[{}]", symbolText(named.name), fmt::join(axes, ", "));
    if (!named.mesh.hasDefaultOrder() || named.isMaximal)
        text += fmt::format(", device_ids=[{}]", fmt::join(named.mesh.deviceOrder(), ", "));
    return text + ">\n";
}

} // namespace

std::string writeProgram(const Program& program)
{
    AttributeList attributes;
    attributes.add("mw.version", "1 : i64");
    attributes.add(program.kept);
    std::string out = program.aliases;
    out += fmt::format(
        "module{} attributes {} {{\n", program.moduleName.empty() ? "" : " " + symbolText(program.moduleName), attributes.text());
    for (const NamedMesh& named : program.meshes)
        out += meshLine(named);
    for (const Function& function : program.functions)
        writeFunction(out, program, function);
    out += program.rest;
    out += "}\n";
    return out + program.trailer;
}

std::vector<std::string> valueNames(const Program& program, const Function& function)
{
    return namesInText(program, function);
}

} // namespace meshwright
