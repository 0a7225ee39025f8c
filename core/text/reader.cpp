// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/body_collective.h"
#include "core/program/transform.h"
#include "core/program/varying_results.h"
#include "core/support/counted.h"
#include "core/support/text.h"
#include "core/text/function_reader.h"
#include "core/text/manual_import.h"
#include "core/text/notation.h"
#include "core/text/op_table.h"
#include "core/text/parser.h"
#include "core/text/program_text.h"
#include "core/text/tile_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>
#include <utility>

namespace meshwright {

namespace {

using Kind = SyntaxAttribute::Kind;

constexpr std::size_t kDeepestCall = 100;
constexpr std::size_t kMostOps = 1'000'000;

/// True when an argument's name says something, other than `arg0`, `0` and what MLIR itself makes up.
bool isDescriptive(std::string_view name)
{
    const bool numbered = name.find_first_not_of("0123456789") == std::string_view::npos;
    return !numbered && !(name.starts_with("arg") && name.find_first_not_of("0123456789_", 3) == std::string_view::npos);
}

} // namespace

namespace {

/// The attributes of a dictionary that `isRead` does not name, as they stand.
template <typename IsRead>
KeptAttributes keptOf(const SyntaxAttribute& dictionary, std::string_view text, const IsRead& isRead)
{
    KeptAttributes kept;
    for (std::size_t i = 0; i < dictionary.keys.size(); ++i) {
        if (isRead(dictionary.keys[i]))
            continue;
        const SyntaxAttribute& value = dictionary.items[i];
        KeptAttribute& attribute = kept.emplace_back();
        attribute.name = dictionary.keys[i];
        if (value.kind != Kind::Unit)
            attribute.text = singleLine(text.substr(value.offset, std::max(value.end, value.offset) - value.offset));
    }
    return kept;
}

bool isCall(const SyntaxOp& op)
{
    return op.name == "call" || op.name == "func.call" || op.name == "stablehlo.composite";
}

const SyntaxAttribute* calledName(const SyntaxOp& op)
{
    return op.find(op.name == "stablehlo.composite" ? "decomposition" : "callee");
}

/// Counts what functions are with their calls inlined, without inlining them: a few lines can call for more ops than fit 64 bits.
class InlinedSizes {
public:
    explicit InlinedSizes(const SyntaxModule& module)
    {
        for (const SyntaxFunction& function : module.functions)
            m_functions.emplace(function.name, &function);
    }

    /// Where the function becomes too large to read: at a call.
    std::optional<std::size_t> tooLargeAt(const SyntaxFunction& function)
    {
        std::optional<std::size_t> at;
        count(function.body, 0, &at);
        return at;
    }

private:
    /// At most one more than is allowed. What calls itself, or is nested too deep, is refused where it is read: it counts nothing here.
    std::size_t count(const SyntaxRegion& region, std::size_t depth, std::optional<std::size_t>* tooLarge = nullptr)
    {
        std::size_t ops = std::max<std::size_t>(region.ops.size(), 1) - 1; // its return is none
        for (const SyntaxOp& op : region.ops) {
            for (const SyntaxRegion& inner : op.regions)
                ops += count(inner, depth, tooLarge);
            const SyntaxAttribute* name = isCall(op) ? calledName(op) : nullptr;
            const auto callee = name == nullptr ? m_functions.end() : m_functions.find(name->text);
            if (callee == m_functions.end() || depth >= kDeepestCall)
                continue;
            const bool isNew = m_counts.emplace(callee->second, 0).second;
            if (isNew)
                m_counts[callee->second] = count(callee->second->body, depth + 1);
            ops += m_counts[callee->second];
            if (ops > kMostOps && tooLarge != nullptr && !*tooLarge)
                *tooLarge = op.offset;
            if (ops > kMostOps)
                break;
        }
        return std::min(ops, kMostOps + 1);
    }

    std::unordered_map<std::string_view, const SyntaxFunction*> m_functions;
    std::unordered_map<const SyntaxFunction*, std::size_t> m_counts;
};

/// Functions that are called by name only, from what is kept, and those that they call.
void keepCalled(const SyntaxModule& module, std::string_view text, Program& program)
{
    std::vector<std::string_view> texts{program.rest, program.aliases};
    const auto addTexts = [&](const KeptAttributes& attributes) {
        for (const KeptAttribute& attribute : attributes)
            texts.push_back(attribute.text);
    };
    for (const Function& function : program.functions) {
        for (const Op& op : function.ops) {
            if (const auto* other = std::get_if<OtherAttributes>(&op.attributes))
                addTexts(other->attributes);
            if (op.kept != nullptr)
                addTexts(op.kept->attributes);
        }
    }
    std::set<const SyntaxFunction*> kept;
    std::string rest;
    for (std::size_t i = 0; i < texts.size(); ++i) { // grows
        for (std::size_t at = texts[i].find('@'); at != std::string_view::npos; at = texts[i].find('@', at + 1)) {
            for (const SyntaxFunction& function : module.functions) {
                const std::string symbol = symbolText(function.name);
                const std::string_view found = texts[i].substr(at, symbol.size());
                const char behind = at + symbol.size() < texts[i].size() ? texts[i][at + symbol.size()] : ' ';
                const bool ends
                    = std::isalnum(static_cast<unsigned char>(behind)) == 0 && behind != '_' && behind != '.' && behind != '$';
                if (!function.isPrivate || found != symbol || !ends || !kept.insert(&function).second)
                    continue;
                const std::string_view whole = text.substr(function.start, function.end - function.start);
                rest += std::string(whole) + "\n";
                texts.push_back(whole);
            }
        }
    }
    program.rest += rest;
}

} // namespace

Result<Program> readProgram(std::string_view text, const std::string& file, Problems* warnings, ProgramPlaces* places)
{
    TextProblems problems(text, file);
    const SyntaxArena arena;
    if (text.size() >= std::size_t{1} << 31) {
        problems.report("MW1320", 0, "the text is larger than 2 GiB");
        return problems.take();
    }
    SyntaxModule module = Parser(text, problems).parseModule();
    addTileMesh(module, problems);
    Program program;
    program.moduleName = std::move(module.name);
    program.kept
        = keptOf(module.attributes, text, [](std::string_view name) { return name == "mw.version" || name == "sym_name"; });
    program.aliases = std::move(module.aliases);
    program.rest = std::move(module.rest);
    program.trailer = std::move(module.trailer);
    program.meshes = module.meshes;
    std::map<std::string, FunctionReader::UnknownOp> unknown;
    std::optional<TextLines> lines;
    if (places != nullptr)
        lines.emplace(text, file);
    InlinedSizes sizes(module);
    for (const SyntaxFunction& syntax : module.functions) {
        if (syntax.isPrivate)
            continue;
        if (const auto at = sizes.tooLargeAt(syntax)) {
            problems.report("MW1329", *at, fmt::format("with all calls inlined the program has more than {} ops", kMostOps),
                "keep what is repeated in a loop (`stablehlo.while`)");
            continue;
        }
        FunctionReader reader(module, text, problems);
        program.functions.push_back(reader.read(syntax));
        if (places != nullptr) {
            std::vector<std::size_t> arguments;
            for (const SyntaxType& type : syntax.body.argumentTypes)
                arguments.push_back(type.offset);
            places->functions.push_back({lines->placesOf(reader.opOffsets()), lines->placesOf(arguments)});
        }
        for (const auto& [name, op] : reader.unknownOps()) {
            FunctionReader::UnknownOp& all = unknown[name];
            all.offset = all.count == 0 ? op.offset : std::min(all.offset, op.offset);
            all.count += op.count;
        }
    }
    if (program.functions.empty() && problems.empty() && !module.functions.empty())
        problems.report("MW1320", module.functions.front().offset, "all functions are private",
            "write 'func.func public' for what is to be run");
    if (!problems.empty())
        return problems.take();
    keepCalled(module, text, program);
    if (warnings != nullptr) {
        const std::vector<std::string> ops = readableOps();
        for (const auto& [name, op] : unknown)
            problems.warn("MW1331", op.offset,
                fmt::format("{} is not known: it is kept as it is, and no sharding goes through it{}", name,
                    op.count > 1 ? fmt::format(" ({} times)", op.count) : ""),
                nearestName(name, ops) ? suggestion(name, ops) : "write it with StableHLO's ops");
        append(*warnings, problems.takeWarnings());
    }
    return program;
}

Function FunctionReader::read(const SyntaxFunction& syntax)
{
    m_function.name = syntax.name;
    m_function.values.reserve(static_cast<std::size_t>(syntax.valueCount));
    m_function.ops.reserve(syntax.body.ops.size());
    Bindings bindings(static_cast<std::size_t>(syntax.valueCount));
    m_calls.push_back(&syntax);
    readArguments(syntax, bindings);
    readResults(syntax, readRegion(syntax.body, bindings, syntax.offset));
    readDonations(syntax);
    m_function.kept = keptOf(syntax.attributes, m_text, isNote);
    for (auto& [id, members] : m_groups)
        m_function.shardingGroups.push_back(std::move(members));
    if (!m_problems.empty())
        return std::move(m_function);
    m_opOffsets.resize(m_function.ops.size(), m_opOffset); // the function's return may make ops too
    if (m_module.tileMesh >= 0 && m_function.shardingGroups.empty())
        importManualComputations(m_function, {m_module.meshes, m_module.tileMesh, m_opOffsets, m_consumed, m_problems});
    eraseConsumed();
    std::vector<std::size_t> left;
    forEachOp(m_function, [&](OpId op) { left.push_back(m_opOffsets[op.at()]); });
    Function result = compacted(std::move(m_function));
    // Compaction keeps the order of the ops, not their numbers.
    m_opOffsets.assign(result.ops.size(), 0);
    std::size_t next = 0;
    forEachOp(result, [&](OpId op) { m_opOffsets[op.at()] = left[next++]; });
    if (!m_module.isOurs) // derivatives of ours return what is equal though it was made of pieces
        checkVariance(result);
    return result;
}

/// Results of manual computations that differ where their out_shardings say that they do not.
void FunctionReader::checkVariance(const Function& function)
{
    forEachOp(function, [&](OpId id) {
        const Op& op = function[id];
        if (!isManual(op))
            return;
        const auto& computation = op.as<ComputationAttributes>();
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        if (shardings.empty())
            return;
        const Mesh& mesh = m_module.meshes[static_cast<std::size_t>(shardings.front().mesh)].mesh;
        if (Problems problems = varyingResults(function, op, mesh); !problems.empty())
            m_problems.report(problems, m_opOffsets[id.at()]);
    });
}

Place ProgramPlaces::ofOp(std::size_t function, OpId op) const
{
    return op.valid() && function < functions.size() && op.at() < functions[function].ops.size()
        ? functions[function].ops[op.at()]
        : Place();
}

Place ProgramPlaces::ofValue(const Program& program, std::size_t function, ValueId value) const
{
    const Value& known = program.functions[function][value];
    if (known.producer.valid())
        return ofOp(function, known.producer);
    const bool isArgument = known.block == BlockId(std::int32_t{0}) && function < functions.size()
        && known.index < functions[function].arguments.size();
    return isArgument ? functions[function].arguments[known.index] : Place();
}

void FunctionReader::readArguments(const SyntaxFunction& syntax, Bindings& bindings)
{
    std::set<std::string> names;
    for (std::size_t i = 0; i < syntax.arguments.size(); ++i) {
        const SyntaxFunction::Argument& argument = syntax.arguments[i];
        const SyntaxType& type = syntax.body.argumentTypes[i];
        if (!type.unsupported.empty()) {
            m_problems.report("MW1322", type.offset, fmt::format("arguments of type {} are not supported", type.unsupported));
            continue;
        }
        const ValueId value = m_builder.argument(type.type());
        bindings[static_cast<std::size_t>(syntax.body.arguments[i])] = bind(value);
        if (const SyntaxAttribute* sharding = argument.attributes.find("sdy.sharding");
            sharding != nullptr && sharding->shardings.size() == 1)
            setSharding(value, sharding->shardings.front(), sharding->offset);
        const bool isTiled = readTiles(argument.attributes, value);
        if (const SyntaxAttribute* frontend = argument.attributes.find("mhlo.frontend_attributes");
            frontend != nullptr && frontend->find("xla.sdy.sharding") != nullptr && !m_function[value].sharding)
            m_problems.report("MW1364", frontend->offset,
                fmt::format("the sharding of %{} is only in mhlo.frontend_attributes, which are not read", argument.name),
                kPrintAsLowered);
        readNotes(argument.attributes, value);
        if (KeptAttributes kept = keptOf(argument.attributes, m_text,
                [isTiled](std::string_view name) {
                    return isNote(name) || name == "tf.aliasing_output" || (isTiled && name == "mhlo.sharding");
                });
            !kept.empty())
            m_function[value].kept = std::make_shared<const KeptText>(KeptText{std::move(kept), {}});
        if (m_module.isOurs)
            continue;
        Value& made = m_function[value];
        if (made.name.empty())
            made.name = !argument.location.empty() ? argument.location
                : isDescriptive(argument.name)     ? std::string(argument.name)
                                                   : std::string();
        if (!made.name.empty() && !names.insert(made.name).second)
            made.name.clear();
        if (made.sharding && made.annotation.empty())
            made.annotation = fmt::format("{} of %{}", isTiled ? "mhlo.sharding" : "sdy.sharding", argument.name);
    }
}

/// Takes over a sharding in XLA's tiled form, to a value that has none; true when it did.
bool FunctionReader::readTiles(const SyntaxAttribute& attributes, ValueId value)
{
    const SyntaxAttribute* tiles = attributes.find("mhlo.sharding");
    if (tiles == nullptr || m_function[value].sharding)
        return false;
    m_function[value].sharding = tiledSharding(m_module, *tiles, m_function[value].type.shape.size(), m_problems);
    return m_function[value].sharding.has_value();
}

void FunctionReader::readResults(const SyntaxFunction& syntax, const std::optional<Bindings>& results)
{
    if (!results)
        return;
    if (results->size() != syntax.resultTypes.size()) {
        m_problems.report("MW1325", syntax.offset,
            fmt::format("@{} returns {} values but declares {}", syntax.name, results->size(), syntax.resultTypes.size()));
        return;
    }
    std::vector<ValueId> values;
    bool anyName = false;
    bool anySharding = false;
    std::vector<std::string> names(results->size());
    std::vector<std::optional<TensorSharding>> shardings(results->size());
    std::vector<KeptAttributes> kept(results->size());
    bool anyKept = false;
    for (std::size_t i = 0; i < results->size(); ++i) {
        const ValueId value = use((*results)[i], syntax.resultTypes[i].offset);
        if (!value.valid())
            continue;
        checkType(syntax.resultTypes[i], m_function[value].type, fmt::format("result {}", i));
        values.push_back(value);
        if (const SyntaxAttribute* info = syntax.resultAttributes[i].find("jax.result_info");
            info != nullptr && info->kind == Kind::String) {
            anyName = true;
            names[i] = info->text;
        }
        if (const SyntaxAttribute* sharding = syntax.resultAttributes[i].find("sdy.sharding");
            sharding != nullptr && sharding->shardings.size() == 1) {
            anySharding = true;
            shardings[i] = sharding->shardings.front();
            fillMaximal(*shardings[i], m_function[value].type);
            if (shardings[i]->dims.size() != m_function[value].type.shape.size())
                m_problems.report("MW1330", sharding->offset,
                    fmt::format(
                        "a sharding of {} dimensions for {}", shardings[i]->dims.size(), typeText(m_function[value].type)),
                    entriesFix(m_function[value].type.shape.size()));
        }
        const SyntaxAttribute* tiles = shardings[i] ? nullptr : syntax.resultAttributes[i].find("mhlo.sharding");
        if (tiles != nullptr)
            shardings[i] = tiledSharding(m_module, *tiles, m_function[value].type.shape.size(), m_problems);
        const bool isTiled = tiles != nullptr && shardings[i];
        anySharding = anySharding || isTiled;
        kept[i] = keptOf(syntax.resultAttributes[i], m_text, [isTiled](std::string_view name) {
            return isNote(name) || name == "jax.result_info" || (isTiled && name == "mhlo.sharding");
        });
        anyKept = anyKept || !kept[i].empty();
    }
    if (anyKept)
        m_function.resultsKept = std::move(kept);
    m_function.body().results = std::move(values);
    if (anyName)
        m_function.resultNames = std::move(names);
    if (anySharding)
        m_function.resultShardings = std::move(shardings);
}

void FunctionReader::readDonations(const SyntaxFunction& syntax)
{
    const auto addDonation = [&](std::int64_t argument, std::int64_t result, std::size_t offset) {
        const auto arguments = static_cast<std::int64_t>(syntax.arguments.size());
        const auto results = static_cast<std::int64_t>(syntax.resultTypes.size());
        if (argument < 0 || argument >= arguments || result < 0 || result >= results)
            m_problems.report("MW1326", offset,
                fmt::format("argument {} cannot give its memory to result {} of {}", argument, result, results));
        else
            m_function.donations.push_back({static_cast<std::size_t>(argument), static_cast<std::size_t>(result)});
    };
    for (std::size_t i = 0; i < syntax.arguments.size(); ++i) {
        if (const SyntaxAttribute* alias = syntax.arguments[i].attributes.find("tf.aliasing_output");
            alias != nullptr && alias->kind == Kind::Integer)
            addDonation(static_cast<std::int64_t>(i), alias->integer, alias->offset);
    }
    if (const SyntaxAttribute* pairs = syntax.attributes.find("mw.donations")) {
        for (std::size_t i = 0; i + 1 < pairs->items.size(); i += 2)
            addDonation(pairs->items[i].integer, pairs->items[i + 1].integer, pairs->offset);
    }
}

/// Reads the ops of a region and gives what its last op returns; nothing when there is no such op.
std::optional<FunctionReader::Bindings> FunctionReader::readRegion(
    const SyntaxRegion& region, Bindings& bindings, std::size_t offset)
{
    for (const SyntaxOp& op : region.ops) {
        if (opSyntax(op.name) != OpSyntax::Return || op.broken) {
            readOp(op, bindings);
            continue;
        }
        if (&op != &region.ops.back()) {
            m_problems.report("MW1320", (&op + 1)->offset, "nothing may follow the return");
            return std::nullopt;
        }
        Bindings results;
        std::vector<TensorType> types;
        for (const SyntaxUse& operand : op.operands) {
            results.push_back(operand.value < 0 ? Binding() : bindings[static_cast<std::size_t>(operand.value)]);
            types.push_back(typeOf(results.back()));
        }
        for (std::size_t i = 0; i < results.size() && i < op.operandTypes.size(); ++i) {
            if (results[i].kind != Binding::Kind::Unknown)
                checkType(op.operandTypes[i], types[i], textOf(op.operands[i]));
        }
        if (results.size() != op.operandTypes.size())
            m_problems.report("MW1325", op.offset,
                fmt::format("{} values are returned but {} types are given", results.size(), op.operandTypes.size()));
        return results;
    }
    if (m_problems.empty())
        m_problems.report("MW1320", offset, "expected a return at the end of the block");
    return std::nullopt;
}

void FunctionReader::readOp(const SyntaxOp& op, Bindings& bindings)
{
    if (op.broken || m_problems.full())
        return;
    // What was made since the last op is of the op around this one.
    m_opOffsets.resize(m_function.ops.size(), m_opOffset);
    const std::size_t around = std::exchange(m_opOffset, op.offset);
    readKnown(op, bindings);
    m_opOffsets.resize(m_function.ops.size(), m_opOffset);
    m_opOffset = around;
}

void FunctionReader::readKnown(const SyntaxOp& op, Bindings& bindings)
{
    if (++m_opsRead > kMostOps) {
        if (m_opsRead == kMostOps + 1)
            m_problems.report(
                "MW1329", op.offset, fmt::format("with all calls inlined the program has more than {} ops", kMostOps));
        return;
    }
    Phase phase = Phase::Forward;
    if (const SyntaxAttribute* attribute = op.find("mw.phase"))
        phase = parsePhaseKeyword(attribute->text).value_or(Phase::Forward);
    m_builder.setPhase(phase);

    if (op.isVerbatim)
        return readOther(op, bindings);
    if (!checkEnumerators(op))
        return;
    if (op.name == "stablehlo.dynamic_slice")
        return readSlice(op, bindings);
    if (op.name == "stablehlo.dynamic_update_slice")
        return readUpdate(op, bindings);
    if (op.name == "stablehlo.scatter")
        return readScatter(op, bindings);
    if (const auto kind = opKindOf(op.name))
        return readKind(op, *kind, bindings);
    if (op.name == "stablehlo.while")
        return readWhile(op, bindings);
    if (op.name == "stablehlo.case" || op.name == "stablehlo.if")
        return readCase(op, bindings);
    if (opSyntax(op.name) == OpSyntax::Computation)
        return readComputation(op, bindings);
    if (op.name == "sdy.sharding_group")
        return readGroup(op, bindings);
    if (op.name == "sdy.data_flow_edge" || op.name == "sdy.func_data_flow_edge")
        return readDataFlowEdge(op, bindings);
    if (isCall(op))
        return readCall(op, bindings);
    if (op.name != "stablehlo.custom_call" || !readCustomCall(op, bindings))
        readOther(op, bindings);
}

void FunctionReader::readCall(const SyntaxOp& op, Bindings& bindings)
{
    const SyntaxAttribute* name = calledName(op);
    if (name == nullptr || name->kind != Kind::Symbol) {
        m_problems.report("MW1326", op.offset, "the call names no function");
        return;
    }
    const auto found = m_functions.find(name->text);
    if (found == m_functions.end()) {
        std::vector<std::string> names;
        for (const SyntaxFunction& function : m_module.functions)
            names.push_back(function.name);
        m_problems.report("MW1329", name->offset, fmt::format("unknown function @{}", name->text), suggestion(name->text, names));
        return;
    }
    const SyntaxFunction& callee = *found->second;
    if (std::find(m_calls.begin(), m_calls.end(), &callee) != m_calls.end()) {
        m_problems.report("MW1329", name->offset, fmt::format("@{} calls itself, directly or through others", name->text));
        return;
    }
    if (m_calls.size() >= kDeepestCall) {
        m_problems.report("MW1329", name->offset, fmt::format("calls are nested more than {} deep", kDeepestCall));
        return;
    }
    if (op.operands.size() != callee.body.arguments.size()
        || op.resultCount != static_cast<std::int32_t>(callee.resultTypes.size())) {
        m_problems.report("MW1325", op.offset,
            fmt::format("@{} takes {} operands and gives {} results, the call has {} and {}", name->text,
                callee.body.arguments.size(), callee.resultTypes.size(), op.operands.size(), op.resultCount));
        return;
    }
    Bindings own(static_cast<std::size_t>(callee.valueCount));
    bool good = true;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i].value < 0)
            continue;
        const Binding& operand = bindings[static_cast<std::size_t>(op.operands[i].value)];
        if (operand.kind != Binding::Kind::Unknown && typeOf(operand) != callee.body.argumentTypes[i].type()) {
            good = m_problems.report("MW1325", op.operands[i].offset,
                fmt::format("{} is {}, @{} takes {}", textOf(op.operands[i]), typeText(typeOf(operand)), name->text,
                    typeText(callee.body.argumentTypes[i].type())));
        }
        own[static_cast<std::size_t>(callee.body.arguments[i])] = operand;
    }
    if (!good)
        return;
    m_calls.push_back(&callee);
    const auto results = readRegion(callee.body, own, callee.offset);
    m_calls.pop_back();
    std::vector<ValueId> values(static_cast<std::size_t>(op.resultCount));
    for (std::size_t i = 0; results && i < results->size() && i < values.size(); ++i) {
        const Binding& result = (*results)[i];
        bindings[static_cast<std::size_t>(op.firstResult) + i] = result;
        if (result.kind == Binding::Kind::Value && result.frame == depth() && m_function[result.value].producer.valid())
            values[i] = result.value;
    }
    setShardings(op, values, "results");
}

void FunctionReader::readNotes(const SyntaxAttribute& notes, ValueId value)
{
    Value& made = m_function[value];
    if (const SyntaxAttribute* name = notes.find("mw.name"))
        made.name = name->text;
    if (const SyntaxAttribute* annotation = notes.find("mw.annotation"))
        made.annotation = annotation->text;
    if (const SyntaxAttribute* role = notes.find("mw.role")) {
        if (const auto known = parseRoleKeyword(role->text))
            made.role = *known;
        else
            m_problems.report("MW1326", role->offset, fmt::format("\"{}\" is not a role of a value", role->text));
    }
}

/// On one device, `[]` stands for all dimensions.
void FunctionReader::fillMaximal(TensorSharding& sharding, const TensorType& type) const
{
    if (m_module.meshes[static_cast<std::size_t>(sharding.mesh)].isMaximal && sharding.dims.empty())
        sharding.dims.resize(type.shape.size());
}

std::string entriesFix(std::size_t rank)
{
    if (rank == 0)
        return "write [], since a scalar has no dimensions";
    std::string entries = "{}";
    constexpr std::size_t kMostShown = 8;
    for (std::size_t i = 1; i < std::min(rank, kMostShown); ++i)
        entries += ", {}";
    return fmt::format("write an entry for each of the {}, as in [{}{}]; {{}} leaves a dimension whole",
        counted(static_cast<std::int64_t>(rank), "dimension"), entries, rank > kMostShown ? ", .." : "");
}

void FunctionReader::setSharding(ValueId value, TensorSharding sharding, std::size_t offset)
{
    const TensorType& type = m_function[value].type;
    fillMaximal(sharding, type);
    if (sharding.dims.size() != type.shape.size())
        m_problems.report("MW1330", offset,
            fmt::format("a sharding of {} dimensions for {}", sharding.dims.size(), typeText(type)),
            entriesFix(type.shape.size()));
    else
        m_function[value].sharding = std::move(sharding);
}

// Values -----------------------------------------------------------------------------------------------------------------------

TensorType FunctionReader::typeOf(const Binding& binding) const
{
    return binding.kind == Binding::Kind::Value ? m_function[binding.value].type : binding.type;
}

Binding FunctionReader::bind(ValueId value) const
{
    Binding binding;
    binding.kind = Binding::Kind::Value;
    binding.frame = depth();
    binding.value = value;
    return binding;
}

/// The value, in the innermost block; invalid when it is unknown or cannot be had.
ValueId FunctionReader::use(const Binding& binding, std::size_t offset)
{
    switch (binding.kind) {
    case Binding::Kind::Unknown:
        return {};
    case Binding::Kind::Value:
        return imported(binding.value, binding.frame);
    case Binding::Kind::Index:
        return useIndex(binding);
    case Binding::Kind::Truth:
        return m_builder.add(OpKind::Constant, {}, ConstantAttributes{{DType::Pred, {}}, {binding.offset}});
    case Binding::Kind::Slice: {
        const ValueId slice = imported(binding.value, binding.frame);
        return slice.valid() ? m_builder.reshape(slice, binding.type.shape) : slice;
    }
    case Binding::Kind::Buffer:
    case Binding::Kind::Written:
        m_frames[static_cast<std::size_t>(binding.frame) - 1].mustCarry = true; // it is not a stacked result after all
        return {};
    case Binding::Kind::Stacked:
        break;
    }
    m_problems.report("MW1328", offset, "the loop uses a stacked array other than by the slice of one step");
    return {};
}

ValueId FunctionReader::useIndex(const Binding& binding)
{
    const TensorType& type = binding.type;
    const auto constant = [&](std::int64_t value) {
        return m_builder.add(OpKind::Constant, {}, ConstantAttributes{type, {value}});
    };
    if (binding.scale == 0)
        return constant(binding.offset);
    Frame& frame = m_frames[static_cast<std::size_t>(binding.frame) - 1];
    if (!frame.counter.valid()) { // the slices of a stacked operand 0, 1, 2 and so on, which finishLoop makes
        const BlockId current = m_builder.block();
        m_builder.setBlock(frame.body);
        frame.counter
            = m_builder.argument({frame.count <= std::numeric_limits<std::int32_t>::max() ? DType::S32 : DType::S64, {}});
        m_builder.setBlock(current);
        frame.counterPosition = frame.stackedOperands.size();
        frame.stackedOperands.emplace_back();
        frame.stackedArguments.push_back(frame.counter);
    }
    ValueId value = imported(frame.counter, binding.frame);
    if (!value.valid())
        return value;
    value = m_builder.convert(value, type.dtype);
    if (binding.scale != 1)
        value = m_builder.binary(OpKind::Multiply, value, constant(binding.scale));
    return binding.offset == 0 ? value : m_builder.binary(OpKind::Add, value, constant(binding.offset));
}

/// A value of the loop `frame` (0: of the function) inside the innermost loop: small constants are made anew (in text of others), all else
/// goes in as an invariant operand.
ValueId FunctionReader::imported(ValueId value, int frame)
{
    if (frame == depth())
        return value;
    const OpId producer = m_function[value].producer;
    if (!m_module.isOurs && producer.valid() && m_function[producer].kind == OpKind::Constant
        && m_function[producer].as<ConstantAttributes>().data.isSplat()) {
        std::map<ValueId, ValueId>& known = m_frames.back().invariants;
        if (const auto found = known.find(value); found != known.end())
            return found->second;
        const ConstantAttributes constant = m_function[producer].as<ConstantAttributes>();
        const ValueId copy = m_builder.add(OpKind::Constant, {}, constant);
        consume(value);
        known.emplace(value, copy);
        return copy;
    }
    for (int inner = frame; inner < depth() && value.valid(); ++inner)
        value = importInto(m_frames[static_cast<std::size_t>(inner)], value);
    return value;
}

ValueId FunctionReader::importInto(Frame& frame, ValueId value)
{
    if (const auto found = frame.invariants.find(value); found != frame.invariants.end())
        return found->second;
    if (frame.isIsolated) {
        m_problems.report("MW1323", frame.offset, "the block uses a value from outside, which it cannot see",
            "give it to the computation as an operand");
        return {};
    }
    const BlockId current = m_builder.block();
    m_builder.setBlock(frame.body);
    const ValueId argument = m_builder.argument(m_function[value].type);
    m_builder.setBlock(current);
    frame.invariants.emplace(value, argument);
    frame.invariantOperands.push_back(value);
    frame.invariantArguments.push_back(argument);
    return argument;
}

/// Drops the ops that were only read (a loop's bounds, the initial value of a reduction) and what nothing but them needed.
void FunctionReader::eraseConsumed()
{
    std::vector<bool> consumed(m_function.values.size(), false);
    for (const ValueId value : m_consumed)
        consumed[value.at()] = true;
    std::vector<std::size_t> uses = useCounts(m_function);
    const auto eraseIn = [&](const auto& self, BlockId block) -> void {
        std::vector<OpId> kept;
        for (auto at = m_function[block].ops.rbegin(); at != m_function[block].ops.rend(); ++at) {
            const Op& op = m_function[*at];
            bool erased = !op.results.empty() && op.bodies.empty();
            for (const ValueId result : op.results)
                erased = erased && consumed[result.at()] && uses[result.at()] == 0;
            if (!erased) {
                kept.push_back(*at);
                for (const BlockId body : op.bodies)
                    self(self, body);
                continue;
            }
            for (const ValueId operand : op.operands) {
                --uses[operand.at()];
                consumed[operand.at()] = true;
            }
        }
        m_function[block].ops.assign(kept.rbegin(), kept.rend());
    };
    eraseIn(eraseIn, BlockId(std::int32_t{0}));
}

} // namespace meshwright
