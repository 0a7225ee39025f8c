// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diagnose/lints.h"

#include "core/models/array_name.h"
#include "core/partition/axis_use.h"
#include "core/partition/device_program.h"
#include "core/program/transform.h"
#include "core/propagate/rule.h"
#include "core/reshard/reshard_steps.h"
#include "core/sharding/layout.h"
#include "core/support/counted.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

namespace meshwright {

namespace {

bool hasAxis(const AxisRefs& axes, std::int32_t axis)
{
    return std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return ref.axis == axis; });
}

/// True when the axis, or a part of it, splits a dimension or is left unreduced.
bool usesAxis(const TensorSharding& sharding, std::int32_t axis)
{
    return hasAxis(sharding.unreduced, axis)
        || std::any_of(
            sharding.dims.begin(), sharding.dims.end(), [&](const DimSharding& dim) { return hasAxis(dim.axes, axis); });
}

double bytesOf(const TensorType& type)
{
    return static_cast<double>(type.bytes());
}

double localBytesOf(const Value& value)
{
    return static_cast<double>(elementCount(localShape(value.type.shape, *value.sharding)) * byteSize(value.type.dtype));
}

/// "params['w1']" and "result[0]['w1']" are the same leaf of two trees; "layers.0.w" is a leaf itself.
std::string leafOf(const std::string& name)
{
    const std::size_t key = name.find("['");
    return key == std::string::npos ? std::string() : name.substr(key);
}

/// True for what bears a parameter's name in the programs that JAX prints, and for what is one.
bool isParameter(const Value& value)
{
    if (value.role == Role::Parameter)
        return true;
    const std::string& name = value.name;
    const bool isState = name.starts_with("opt") || name.find("opt_state") != std::string::npos;
    return !isState
        && (name.find("param") != std::string::npos || name.find("weight") != std::string::npos
            || name.find("kernel") != std::string::npos);
}

/// True for a moment of the optimiser, by its name.
bool isOptimizerState(const Value& value)
{
    const std::string& name = value.name;
    return value.role == Role::OptimizerState || name.starts_with("opt") || name.find("opt_state") != std::string::npos
        || name.find(".mu[") != std::string::npos || name.find(".nu[") != std::string::npos;
}

class Linter {
public:
    explicit Linter(const LintedFunction& linted)
        : m_function(linted.propagated)
        , m_deviceFunction(linted.device)
        , m_device(linted.device.function)
        , m_mesh(linted.meshes.front().mesh)
    {
    }

    std::vector<Lint> lint()
    {
        findUses();
        lintAxes();
        lintConstraints();
        lintDrift();
        lintStates();
        lintParameters();
        lintReducedGathers();
        lintReshapes();
        lintWholeBatch();
        lintStackedDims();
        lintOpenLoops();
        return std::move(m_lints);
    }

private:
    void warn(const char* id, std::string message, std::string rule, std::string fix, const std::string& path, ProgramEdit edit)
    {
        std::vector<ProgramEdit> edits;
        if (!edit.empty())
            edits.push_back(std::move(edit));
        warn(id, std::move(message), std::move(rule), std::move(fix), path, std::move(edits), {});
    }
    void warn(const char* id, std::string message, std::string rule, std::string fix, const std::string& path,
        std::vector<ProgramEdit> edits, std::string noEdit)
    {
        m_lints.push_back(
            {{id, std::move(message), std::move(fix), Place{{}, 0, 0, path}, Severity::Warning, std::move(rule), {}},
                std::move(edits), std::move(noEdit)});
    }

    /// An argument, and the result that takes its place where that has a layout of its own, in this one.
    ProgramEdit placed(ValueId argument, const TensorSharding& layout) const
    {
        ProgramEdit edit;
        const std::size_t index = m_function[argument].index;
        edit.arguments.emplace_back(index, layout);
        for (const Donation& pair : turnover()) {
            const bool isAsked = pair.result < m_function.resultShardings.size() && m_function.resultShardings[pair.result];
            if (pair.argument == index && isAsked)
                edit.results.emplace_back(pair.result, layout);
        }
        return edit;
    }

    std::string layoutOfValue(ValueId value) const { return layoutText(*m_function[value].sharding, m_mesh); }

    // ---- axes: MW1270, MW1271 (core/partition/axis_use.h)

    void findUses()
    {
        m_users.resize(m_function.values.size());
        forEachOp(m_function, [&](OpId id) {
            for (const ValueId operand : m_function[id].operands)
                m_users[operand.at()].push_back(id);
        });
    }

    void lintAxes()
    {
        for (const AxisWork& work : axisWork(m_deviceFunction, m_mesh)) {
            auto problem = axisProblem(work, m_mesh);
            if (!problem)
                continue;
            Lint& lint = m_lints.emplace_back(Lint{*std::move(problem), {}, {}});
            if (work.isUsed) {
                lint.noEdit = "which dimension to split is a choice between memory and communication";
                continue;
            }
            lint.noEdit = "no argument is split along a batch that the axis divides too";
            if (ProgramEdit edit = batchOver(static_cast<std::int32_t>(work.axis)); !edit.empty())
                lint.edits.push_back(std::move(edit));
        }
    }

    /// The axes that split the batch: those of dimension 0 of the largest argument that is fed in, no parameter and no state.
    std::optional<AxisRefs> batchAxes() const
    {
        const AxisRefs* axes = nullptr;
        double largest = 0.0;
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            const bool isFedIn
                = !isParameter(value) && !isOptimizerState(value) && value.sharding && !value.sharding->dims.empty();
            if (!isFedIn || value.sharding->dims.front().axes.empty() || bytesOf(value.type) <= largest)
                continue;
            axes = &value.sharding->dims.front().axes;
            largest = bytesOf(value.type);
        }
        return axes == nullptr ? std::nullopt : std::optional(*axes);
    }

    /// The batch split over one more axis, everywhere where the program says how it lies; empty when it does not divide.
    ProgramEdit batchOver(std::int32_t axis) const
    {
        const std::optional<AxisRefs> batch = batchAxes();
        if (!batch)
            return {};
        bool divides = true;
        const auto isBatch = [&](const TensorSharding& sharding, const Shape& shape) {
            const bool same = !shape.empty() && sharding.dims.front().axes == *batch;
            divides = divides
                && (!same || shape.front() % (shardCount(*batch) * m_mesh.axes()[static_cast<std::size_t>(axis)].size) == 0);
            return same;
        };
        const auto wider = [&](TensorSharding sharding) {
            sharding.dims.front().axes.push_back(wholeAxis(m_mesh, static_cast<std::size_t>(axis)));
            std::erase_if(sharding.replicated, [&](const AxisRef& ref) { return ref.axis == axis; });
            return sharding;
        };
        ProgramEdit edit;
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            if (!isParameter(value) && !isOptimizerState(value) && value.sharding && isBatch(*value.sharding, value.type.shape))
                edit.arguments.emplace_back(value.index, wider(*value.sharding));
        }
        std::size_t number = 0;
        forEachOp(m_function, [&](OpId id) {
            const Op& op = m_function[id];
            if (op.kind != OpKind::ShardingConstraint)
                return;
            const TensorSharding& asked = op.as<ConstraintAttributes>().sharding;
            if (isBatch(asked, m_function[op.results[0]].type.shape))
                edit.layouts.emplace_back(number, wider(asked));
            ++number;
        });
        const std::vector<Donation> pairs = turnover();
        for (std::size_t i = 0; i < m_function.resultShardings.size(); ++i) {
            const auto& asked = m_function.resultShardings[i];
            const bool comesBack
                = std::any_of(pairs.begin(), pairs.end(), [&](const Donation& pair) { return pair.result == i; });
            if (asked && !comesBack && isBatch(*asked, m_function[m_function.results()[i]].type.shape))
                edit.results.emplace_back(i, wider(*asked));
        }
        return divides ? edit : ProgramEdit();
    }

    // ---- constraints: MW1272

    void lintConstraints()
    {
        std::size_t number = 0;
        forEachOp(m_function, [&](OpId id) {
            const Op& op = m_function[id];
            if (op.kind != OpKind::ShardingConstraint)
                return;
            if (m_function[op.operands[0]].sharding && m_function[op.results[0]].sharding)
                lintConstraint(op, number);
            ++number;
        });
    }

    void lintConstraint(const Op& op, std::size_t number)
    {
        const ValueId result = op.results[0];
        const TensorSharding& before = *m_function[op.operands[0]].sharding;
        const TensorSharding& after = *m_function[result].sharding;
        const auto& results = m_function.results();
        const auto& users = m_users[result.at()];
        if (users.empty() || std::find(results.begin(), results.end(), result) != results.end())
            return;
        for (std::size_t i = 0; i < m_mesh.axes().size(); ++i) {
            const auto axis = static_cast<std::int32_t>(i);
            for (std::size_t dim = 0; dim < before.dims.size() && !usesAxis(after, axis); ++dim) {
                const bool had = hasAxis(before.dims[dim].axes, axis) || isMadeSplit(op.operands[0], dim, axis);
                const bool again = had
                    && std::all_of(users.begin(), users.end(), [&](OpId user) { return shardsAgain(user, result, dim, axis); });
                if (again)
                    reportConstraint(op, m_mesh.axes()[i], number);
            }
        }
    }

    /// True when the op that makes a value has its dimension split by the axis in its operands.
    bool isMadeSplit(ValueId value, std::size_t dim, std::int32_t axis) const
    {
        const OpId producer = m_function[value].producer;
        const auto rule = producer.valid() ? shardingRule(m_function, producer) : std::nullopt;
        if (!rule)
            return false;
        const Op& op = m_function[producer];
        const auto& made = rule->results[m_function[value].index][dim];
        return splits(op.operands, rule->operands, value, {made.begin(), made.end()}, axis);
    }

    /// True when one of the values, but for `except`, has a dimension of one of the factors split by the axis.
    bool splits(const std::vector<ValueId>& values, const std::vector<DimFactors>& dims, ValueId except,
        const std::set<std::size_t>& factors, std::int32_t axis) const
    {
        for (std::size_t i = 0; i < values.size() && i < dims.size(); ++i) {
            const auto& sharding = m_function[values[i]].sharding;
            for (std::size_t d = 0; values[i] != except && sharding && d < dims[i].size() && d < sharding->dims.size(); ++d) {
                const bool same = std::any_of(
                    dims[i][d].begin(), dims[i][d].end(), [&](std::size_t factor) { return factors.contains(factor); });
                if (same && hasAxis(sharding->dims[d].axes, axis))
                    return true;
            }
        }
        return false;
    }

    /// True when an op has the dimension of this operand split by the axis in its other tensors.
    bool shardsAgain(OpId user, ValueId operand, std::size_t dim, std::int32_t axis) const
    {
        const Op& op = m_function[user];
        if (op.kind == OpKind::ShardingConstraint)
            return m_function[op.results[0]].sharding && hasAxis(m_function[op.results[0]].sharding->dims[dim].axes, axis);
        const auto rule = shardingRule(m_function, user);
        if (!rule)
            return false;
        std::set<std::size_t> factors;
        for (std::size_t i = 0; i < op.operands.size(); ++i) {
            if (op.operands[i] == operand && dim < rule->operands[i].size())
                factors.insert(rule->operands[i][dim].begin(), rule->operands[i][dim].end());
        }
        return splits(op.results, rule->results, operand, factors, axis)
            || splits(op.operands, rule->operands, operand, factors, axis);
    }

    void reportConstraint(const Op& op, const MeshAxis& axis, std::size_t number)
    {
        const std::string& origin = op.as<ConstraintAttributes>().origin;
        const ValueId result = op.results[0];
        const std::string name
            = m_function[result].name.empty() ? valueText(m_function, op.operands[0]) : m_function[result].name;
        const double gathered = localBytesOf(m_function[result]);
        warn("MW1272",
            fmt::format("the constraint {} on \"{}\" gathers it over \"{}\", and the next op splits it by that axis again",
                layoutOfValue(result), name, axis.name),
            fmt::format("every device gathers {} and keeps {} of it", formatBytes(gathered),
                formatBytes(gathered / static_cast<double>(axis.size))),
            fmt::format("leave the constraint out, or let it keep \"{}\"", axis.name), origin.empty() ? name : origin,
            ProgramEdit{{number}, {}, {}, {}});
    }

    // ---- from step to step: MW1273

    /// Arguments and the results that take their place in the next step.
    std::vector<Donation> turnover() const
    {
        if (!m_function.donations.empty())
            return m_function.donations;
        std::vector<Donation> pairs;
        const auto& arguments = m_function.arguments();
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const std::string leaf = leafOf(m_function[arguments[i]].name);
            if (leaf.empty() || !isParameter(m_function[arguments[i]]))
                continue;
            std::vector<std::size_t> found;
            for (std::size_t j = 0; j < m_function.resultNames.size(); ++j) {
                const bool same = leafOf(m_function.resultNames[j]) == leaf;
                if (same && m_function[m_function.results()[j]].type == m_function[arguments[i]].type)
                    found.push_back(j);
            }
            if (found.size() == 1)
                pairs.push_back({i, found.front()});
        }
        return pairs;
    }

    void lintDrift()
    {
        for (const Donation& pair : turnover()) {
            const ValueId argument = m_function.arguments()[pair.argument];
            const ValueId result = m_function.results()[pair.result];
            const auto& wanted
                = pair.result < m_function.resultShardings.size() ? m_function.resultShardings[pair.result] : std::nullopt;
            const auto& after = wanted ? wanted : m_function[result].sharding;
            const auto& before = m_function[argument].sharding;
            if (!before || !after || before->mesh != after->mesh
                || equivalent(m_function[argument].type.shape, *before, m_mesh, *after, m_mesh))
                continue;
            const std::string name = valueText(m_function, argument);
            warn("MW1273",
                fmt::format(
                    "\"{}\" goes in as {} and comes out as {}", name, layoutText(*before, m_mesh), layoutText(*after, m_mesh)),
                fmt::format(
                    "{} a device before the step and {} after it: the next step must move it back, or is compiled again for "
                    "the other layout",
                    formatBytes(localBytesOf(m_function[argument])),
                    formatBytes(localBytes(m_function[argument].type.shape, byteSize(m_function[argument].type.dtype), *after))),
                fmt::format("give the result the layout of the argument: {}", layoutText(*before, m_mesh)), name,
                ProgramEdit{{}, {}, {}, {{pair.result, *before}}});
        }
    }

    // ---- states and parameters: MW1274, MW1275

    /// The parameter that a state belongs to.
    std::optional<ValueId> parameterOf(const Value& state) const
    {
        const ArrayName name = arrayNameOf(state.name);
        const std::string leaf = leafOf(state.name);
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            const bool same = (name.isState() && value.name == name.base) || (!leaf.empty() && leafOf(value.name) == leaf);
            if (same && isParameter(value) && value.type.shape == state.type.shape)
                return argument;
        }
        return std::nullopt;
    }

    void lintStates()
    {
        for (const ValueId argument : m_function.arguments()) {
            const Value& state = m_function[argument];
            if (!isOptimizerState(state) || isParameter(state) || state.annotation.empty() || !state.sharding
                || !state.sharding->isReplicated())
                continue;
            const auto parameter = parameterOf(state);
            if (!parameter || !m_function[*parameter].sharding || m_function[*parameter].sharding->isReplicated())
                continue;
            const Value& value = m_function[*parameter];
            warn("MW1274",
                fmt::format("\"{}\" is pinned whole on every device, its parameter \"{}\" is sharded as {}", state.name,
                    value.name, layoutOfValue(*parameter)),
                fmt::format("{} of state a device instead of {}", formatBytes(bytesOf(state.type)),
                    formatBytes(localBytesOf(value) / static_cast<double>(byteSize(value.type.dtype))
                        * static_cast<double>(byteSize(state.type.dtype)))),
                fmt::format("leave its spec out, or give it the parameter's: {}", layoutOfValue(*parameter)), state.name,
                placed(argument, *value.sharding));
        }
    }

    /// The largest dimension that divides, split by the axes that split the largest parameter.
    ProgramEdit likeTheLargest(ValueId argument) const
    {
        AxisRefs axes;
        double largest = 0.0;
        for (const ValueId other : m_function.arguments()) {
            const Value& value = m_function[other];
            if (!isParameter(value) || isOptimizerState(value) || !value.sharding || bytesOf(value.type) <= largest)
                continue;
            const auto split = std::find_if(value.sharding->dims.begin(), value.sharding->dims.end(),
                [](const DimSharding& dim) { return !dim.axes.empty(); });
            if (split == value.sharding->dims.end())
                continue;
            largest = bytesOf(value.type);
            axes = split->axes;
        }
        const Shape& shape = m_function[argument].type.shape;
        std::size_t best = shape.size();
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (shape[dim] % shardCount(axes) == 0 && (best == shape.size() || shape[dim] > shape[best]))
                best = dim;
        }
        if (best == shape.size() || axes.empty())
            return {};
        TensorSharding layout = *m_function[argument].sharding;
        layout.dims[best].axes = axes;
        layout.replicated.clear();
        return placed(argument, layout);
    }

    void lintParameters()
    {
        std::vector<ValueId> whole;
        double largestSharded = 0.0;
        double held = 0.0;
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            if (!isParameter(value) || isOptimizerState(value) || !value.sharding)
                continue;
            held += localBytesOf(value);
            if (value.sharding->isReplicated())
                whole.push_back(argument);
            else
                largestSharded = std::max(largestSharded, bytesOf(value.type));
        }
        constexpr double kNearlyAsLarge = 0.75; // of the largest one that is sharded
        constexpr double kMost = 0.5; // of all that a device holds
        constexpr double kLeast = 0.1; // of that: below it nobody cares
        for (const ValueId argument : whole) {
            const Value& value = m_function[argument];
            const double bytes = bytesOf(value.type);
            const bool large = bytes >= kNearlyAsLarge * largestSharded || bytes >= kMost * held;
            if (largestSharded == 0.0 || !large || bytes < kLeast * held)
                continue;
            warn("MW1275",
                fmt::format("\"{}\" ({}) is whole on each of the {} devices while others are sharded", value.name,
                    typeText(value.type), m_mesh.deviceCount()),
                fmt::format("it takes {} of the {} of parameters on a device", formatBytes(bytes), formatBytes(held)),
                "split it over an axis that its sharded neighbours use", value.name, likeTheLargest(argument));
        }
    }

    // ---- gathers: MW1276

    /// Where an array goes that was gathered along a dimension.
    struct Destiny {
        bool elsewhere = false; ///< it is used as a whole
        bool summed = false; ///< reduced over the dimension by a sum
        bool maximised = false;
    };

    /// Follows a value through ops that work element by element.
    void follow(ValueId value, std::size_t dim, std::set<std::size_t>& seen, Destiny& destiny) const
    {
        if (!seen.insert(value.at()).second)
            return;
        const auto& results = m_device.results();
        destiny.elsewhere = destiny.elsewhere || std::find(results.begin(), results.end(), value) != results.end();
        forEachOp(m_device, [&](OpId id) {
            const Op& op = m_device[id];
            if (std::find(op.operands.begin(), op.operands.end(), value) == op.operands.end())
                return;
            if (op.kind == OpKind::Reduce) {
                const auto& reduce = op.as<ReduceAttributes>();
                const bool over = std::find(reduce.dims.begin(), reduce.dims.end(), dim) != reduce.dims.end();
                destiny.elsewhere = destiny.elsewhere || !over;
                destiny.summed = destiny.summed || (over && reduce.kind == ReduceKind::Sum);
                destiny.maximised = destiny.maximised || (over && reduce.kind == ReduceKind::Max);
            } else if (isElementwise(op.kind) || op.kind == OpKind::Select || op.kind == OpKind::Clamp
                || op.kind == OpKind::Compare) {
                if (op.phase == Phase::Forward || op.phase == Phase::Metrics)
                    follow(op.results.front(), dim, seen, destiny);
            } else if (op.phase == Phase::Forward || op.phase == Phase::Metrics) {
                destiny.elsewhere = true;
            }
        });
    }

    void lintReducedGathers()
    {
        forEachOp(m_device, [&](OpId id) {
            const Op& op = m_device[id];
            if (op.kind != OpKind::AllGather || op.phase != Phase::Forward)
                return;
            const auto& gather = op.as<CollectiveAttributes>();
            const std::size_t rank = gather.perDim.size();
            if (rank < 2 || gather.perDim[rank - 1].empty())
                return;
            Destiny destiny;
            std::set<std::size_t> seen;
            follow(op.results[0], rank - 1, seen, destiny);
            // A softmax takes the maximum and the sum; its result may go on to a backward pass.
            const bool softmax = destiny.summed && destiny.maximised;
            if (softmax || (destiny.summed && !destiny.elsewhere))
                reportGather(id, gather);
        });
    }

    void reportGather(OpId id, const CollectiveAttributes& gather)
    {
        const Op& op = m_device[id];
        const Shape& shape = m_device[op.results[0]].type.shape;
        const std::string& annotation = gather.cause.annotation;
        const std::string& result = m_device[op.results[0]].name;
        const std::string name = !result.empty() ? result
            : gather.cause.value.empty()         ? valueText(m_device, op.operands[0])
                                                 : gather.cause.value;
        const double whole = static_cast<double>(payloadBytes(m_device, id));
        warn("MW1276",
            fmt::format("\"{}\" is gathered over \"{}\" along its last dimension ({} elements), only to be reduced over it", name,
                axesText(gather.axes, m_mesh), shape.back()),
            fmt::format("the gather makes {} on each device; the reduced values are {}", formatBytes(whole),
                formatBytes(whole / static_cast<double>(std::max<std::int64_t>(1, shape.back())))),
            "leave that dimension sharded up to the loss: the maximum and the sum of the pieces need an all-reduce of one number "
            "for each row",
            annotation.empty() ? name : annotation, ungathered(gather, shape),
            "no constraint asks for the gather; the layouts before and behind it do not agree");
    }

    /// What may undo a gather along the last dimension: a constraint there that asks for it keeps the axes, or goes.
    std::vector<ProgramEdit> ungathered(const CollectiveAttributes& gather, const Shape& shape) const
    {
        std::vector<ProgramEdit> edits;
        std::size_t number = 0;
        forEachOp(m_function, [&](OpId id) {
            const Op& op = m_function[id];
            if (op.kind != OpKind::ShardingConstraint)
                return;
            const Shape& constrained = m_function[op.results[0]].type.shape;
            TensorSharding kept = op.as<ConstraintAttributes>().sharding;
            const AxisRefs& lost = gather.perDim.back();
            const bool isFree
                = std::none_of(lost.begin(), lost.end(), [&](const AxisRef& ref) { return usesAxis(kept, ref.axis); });
            if (constrained.size() == shape.size() && constrained.back() == shape.back() && isFree) {
                kept.dims.back().axes.insert(kept.dims.back().axes.end(), lost.begin(), lost.end());
                edits.push_back({{}, {{number, std::move(kept)}}, {}, {}});
                edits.push_back({{number}, {}, {}, {}});
            }
            ++number;
        });
        return edits;
    }

    // ---- reshapes: MW1278

    void lintReshapes()
    {
        forEachOp(m_device, [&](OpId id) {
            const Op& op = m_device[id];
            const bool isLoss = op.kind == OpKind::AllGather && op.phase == Phase::Forward;
            if (!isLoss || op.as<CollectiveAttributes>().cause.op != opName(OpKind::Reshape))
                return;
            const auto& gather = op.as<CollectiveAttributes>();
            ValueId from = op.operands[0]; // through the shape of the reshape's factors
            while (m_device[from].producer.valid() && m_device[m_device[from].producer].kind == OpKind::Reshape)
                from = m_device[m_device[from].producer].operands[0];
            const std::string& name = m_device[from].name.empty() ? gather.cause.value : m_device[from].name;
            warn("MW1278", fmt::format("{} is gathered over {} only to be reshaped", name, axesText(gather.axes, m_mesh)),
                fmt::format("the gather makes {} on each device; the reshaped dimensions have no pieces in the same places",
                    formatBytes(payloadBytes(m_device, id))),
                "leave the dimension unsharded, or split one that begins in the same place on both sides of the reshape",
                gather.cause.annotation.empty() ? name : gather.cause.annotation, {}, "another sharding is a choice");
        });
    }

    // ---- loops: MW1279

    void lintOpenLoops()
    {
        const std::size_t loops = openLoops(m_device);
        if (loops == 0)
            return;
        warn("MW1279",
            fmt::format(
                "how often {} {} depends on values: one turn is counted", counted(loops, "loop"), loops == 1 ? "runs" : "run"),
            "times, calls and bytes that are not measured are those of one turn",
            "count from a constant to a constant, as lax.scan and lax.fori_loop do, or multiply by the turns that you expect",
            opName(OpKind::While), {}, "the program does not say how many turns there are");
    }

    // ---- loops over a dimension that is split: MW1280

    /// The argument that a value is, perhaps in another type or under a constraint; invalid when it is computed.
    ValueId argumentOf(ValueId value) const
    {
        while (m_function[value].producer.valid()) {
            const Op& op = m_function[m_function[value].producer];
            if (op.kind != OpKind::Convert && op.kind != OpKind::ShardingConstraint)
                return {};
            value = op.operands.front();
        }
        const std::vector<ValueId>& arguments = m_function.arguments();
        return std::ranges::find(arguments, value) == arguments.end() ? ValueId() : value;
    }

    /// A turn takes its slice of each stacked array: of an array that is split along the loop, from the devices that hold it.
    void lintStackedDims()
    {
        struct Split {
            std::vector<std::string> names;
            double bytes = 0.0;
            ValueId first;
            std::int64_t turns = 0;
        };
        std::map<std::string, Split> splits; // by the axes
        std::set<std::size_t> seen;
        forEachOp(m_function, [&](OpId id) {
            const Op& op = m_function[id];
            if (op.kind != OpKind::Repeat)
                return;
            const auto& loop = op.as<RepeatAttributes>();
            for (std::size_t i = loop.carries; i < loop.carries + loop.stacked; ++i) {
                const ValueId array = argumentOf(op.operands[i]);
                if (!array.valid() || !m_function[array].sharding || m_function[array].sharding->dims.empty()
                    || m_function[array].sharding->dims.front().axes.empty() || !seen.insert(array.at()).second)
                    continue;
                Split& split = splits[axesText(m_function[array].sharding->dims.front().axes, m_mesh)];
                if (split.names.empty()) {
                    split.first = array;
                    split.turns = loop.count;
                }
                const Value& value = m_function[array];
                split.names.push_back(value.name.empty() ? valueText(m_function, array) : value.name);
                split.bytes += bytesOf(m_function[array].type);
            }
        });
        for (const auto& [axes, split] : splits) {
            constexpr std::size_t kMostNamed = 4;
            std::string names = join(std::span(split.names).first(std::min(kMostNamed, split.names.size())), ", ");
            if (split.names.size() > kMostNamed)
                names += fmt::format(" and {} more", split.names.size() - kMostNamed);
            const Value& value = m_function[split.first];
            const std::string& written = value.annotation;
            warn("MW1280",
                fmt::format("{} {} split over {} along dim 0, over which a loop of {} turns runs: {}",
                    counted(split.names.size(), "array"), split.names.size() == 1 ? "is" : "are", axes, split.turns, names),
                fmt::format(
                    "each turn needs its slice of dim 0 on all devices, which one part of them holds: {} in all are moved "
                    "before the loops",
                    formatBytes(split.bytes)),
                "leave dim 0 whole and split another dimension: P(None, ...)", written.empty() ? value.name : written,
                std::vector<ProgramEdit>(), "which other dimension is split is the author's decision");
        }
    }

    // ---- the batch: MW1277

    /// The batch where no input is split by it.
    std::optional<std::int64_t> wholeBatch() const
    {
        std::optional<std::int64_t> batch;
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            if (value.role != Role::Input || value.type.shape.empty() || !value.sharding)
                continue;
            if (!value.sharding->dims.front().axes.empty())
                return std::nullopt;
            batch = value.type.shape.front();
        }
        return batch;
    }

    void lintWholeBatch()
    {
        constexpr double kNearlyAll = 1.1; // small arrays may be whole
        constexpr double kMuchMore = 2.0;
        const auto devices = static_cast<double>(m_mesh.deviceCount());
        double parameters = 0.0;
        double held = 0.0;
        for (const ValueId argument : m_function.arguments()) {
            const Value& value = m_function[argument];
            if (value.role != Role::Parameter || !value.sharding)
                continue;
            parameters += bytesOf(value.type);
            held += localBytesOf(value);
        }
        const auto batch = wholeBatch();
        if (!batch || *batch % m_mesh.deviceCount() != 0 || devices == 1.0 || parameters == 0.0
            || held > kNearlyAll * parameters / devices)
            return;
        double moved = 0.0;
        for (const CollectiveUse& use : collectivesOf(m_deviceFunction, m_mesh)) {
            if (use.phase == Phase::Forward || use.phase == Phase::Backward)
                moved += static_cast<double>(use.count * use.payloadBytes);
        }
        // Split by the batch instead: parameters are gathered forward and backward, gradients scattered.
        const double needed = 3.0 * parameters;
        if (moved <= kMuchMore * needed)
            return;
        warn("MW1277",
            fmt::format("every device has the whole batch of {}, and 1/{} of all parameters", *batch, m_mesh.deviceCount()),
            fmt::format(
                "collectives move {} on each device in a step; with the batch split over all axes they would move about {}",
                formatBytes(moved), formatBytes(needed)),
            "split the batch over the axes that split the parameters", "x", ProgramEdit{});
    }

    const Function& m_function;
    const DeviceFunction& m_deviceFunction;
    const Function& m_device;
    const Mesh& m_mesh;
    std::vector<std::vector<OpId>> m_users;
    std::vector<Lint> m_lints;
};

} // namespace

std::size_t openLoops(const Function& function)
{
    std::size_t loops = 0;
    forEachOp(function, [&](OpId id) {
        if (function[id].kind == OpKind::While)
            ++loops;
    });
    return loops;
}

std::vector<Lint> lintsOf(const LintedFunction& linted)
{
    return Linter(linted).lint();
}

Problems lintFunction(const LintedFunction& linted)
{
    Problems problems;
    for (Lint& lint : lintsOf(linted))
        problems.push_back(std::move(lint.problem));
    append(problems, linted.device.warnings);
    return problems;
}

} // namespace meshwright
