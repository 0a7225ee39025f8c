// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/study/resolve.h"

#include "core/models/array_name.h"
#include "core/models/training_program.h"
#include "core/program/every_sharding.h"
#include "core/study/spec_findings.h"
#include "core/support/stop_scope.h"
#include "core/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace meshwright {

namespace {

/// A spec on its way to the values of a name.
struct NamedSpec {
    PartitionSpec spec;
    std::string path;
    int priority = 0; ///< of propagation: the batch is laid out first, parameters and their states find their place round it
};

int priorityOf(StudyArray::Kind kind)
{
    return kind == StudyArray::Kind::Input || kind == StudyArray::Kind::Activation ? 0 : 1;
}

void placeAll(Problems& problems, const Place& place)
{
    for (Problem& problem : problems)
        problem.place = place;
}

/// The specs by name: those of the study's own arrays, or (other programs) of every named value that an entry catches.
std::map<std::string, NamedSpec> specsByName(
    const Study& study, const std::vector<AssignedSpec>& assigned, const Program& program)
{
    std::map<std::string, NamedSpec> specs;
    for (const AssignedSpec& one : assigned) {
        if (one.array.kind != StudyArray::Kind::Activation) // those are constraints, built into the program
            specs.emplace(one.array.name, NamedSpec{one.spec, one.path, priorityOf(one.array.kind)});
    }
    if (study.trains())
        return specs;
    for (const Function& function : program.functions) {
        for (const ValueId argument : function.arguments()) {
            const std::string& name = function[argument].name;
            const auto& entries = study.sharding.entries;
            auto entry = std::find_if(entries.begin(), entries.end(), [&](const ShardingEntry& e) { return e.name == name; });
            if (entry == entries.end())
                entry = std::find_if(
                    entries.begin(), entries.end(), [&](const ShardingEntry& e) { return globMatches(e.name, name); });
            if (!name.empty() && entry != entries.end())
                specs.emplace(name, NamedSpec{entry->spec, entry->path, 0});
        }
    }
    return specs;
}

bool isOwnFamily(std::string_view name)
{
    const ArrayName array = arrayNameOf(name);
    return array.isState() || array.family == ArrayName::Family::Gradient;
}

class Resolver {
public:
    Resolver(const Study& study, Program& program, std::map<std::string, NamedSpec> specs)
        : m_study(study)
        , m_program(program)
        , m_mesh(program.meshes.front().mesh)
        , m_specs(std::move(specs))
    {
    }

    Problems resolve()
    {
        for (Function& function : m_program.functions)
            resolve(function);
        if (!m_study.trains())
            reportUnused();
        return std::move(m_problems);
    }

private:
    void resolve(Function& function)
    {
        heedStop();
        const std::vector<ValueId> arguments = function.arguments();
        for (const ValueId argument : arguments) {
            if (const NamedSpec* spec = specOf(function[argument].name))
                place(function, argument, *spec);
        }
        // Gradients are values inside; the program names them.
        for (std::size_t i = 0; i < function.values.size(); ++i) {
            const ValueId value{i};
            const std::string& name = function[value].name;
            const NamedSpec* spec = arrayNameOf(name).family == ArrayName::Family::Gradient ? specOf(name) : nullptr;
            if (spec != nullptr && std::find(arguments.begin(), arguments.end(), value) == arguments.end())
                place(function, value, *spec);
        }
        resolveResults(function, arguments);
        leaveShardingGroups(function, std::exchange(m_leaving, {}));
    }

    /// A result has the layout of the argument whose place it takes, or of the array whose name it bears.
    void resolveResults(Function& function, const std::vector<ValueId>& arguments)
    {
        const std::vector<ValueId> results = function.results();
        std::vector<std::optional<TensorSharding>> shardings(results.size());
        bool any = false;
        const auto set = [&](std::size_t result, const TensorSharding& sharding) {
            shardings[result] = sharding;
            any = true;
        };
        for (std::size_t i = 0; i < results.size() && i < function.resultNames.size(); ++i) {
            const NamedSpec* spec = specOf(function.resultNames[i]);
            if (spec == nullptr)
                continue;
            if (const auto sharding = shardingOf(function[results[i]].type.shape, *spec))
                set(i, *sharding);
        }
        for (const Donation& donation : function.donations) {
            const Value& argument = function[arguments[donation.argument]];
            if (!argument.sharding)
                continue;
            set(donation.result, *argument.sharding);
            if (isOwnFamily(argument.name))
                m_leaving.push_back(results[donation.result]);
        }
        if (!any)
            return;
        if (function.resultShardings.empty())
            function.resultShardings.resize(results.size());
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (shardings[i])
                function.resultShardings[i] = shardings[i];
        }
    }

    const NamedSpec* specOf(const std::string& name)
    {
        const auto found = m_specs.find(name);
        if (name.empty() || found == m_specs.end())
            return nullptr;
        m_used.insert(found->second.path);
        return &found->second;
    }

    std::optional<TensorSharding> shardingOf(const Shape& shape, const NamedSpec& spec)
    {
        auto local = shardShape(shape, spec.spec, m_mesh, Uneven::Refuse);
        auto sharding = toTensorSharding(spec.spec, shape.size(), m_mesh);
        if (local && sharding) {
            for (DimSharding& dim : sharding->dims)
                dim.priority = dim.axes.empty() ? 0 : spec.priority;
            return *std::move(sharding);
        }
        if (m_refused.insert(spec.path).second) {
            Problems problems = local ? sharding.error() : local.error();
            placeAll(problems, m_study.placeOf(spec.path));
            for (Problem& problem : problems)
                problem.fixSettings = {
                    fmt::format("{}={}", spec.path, specText(withFittingAxes(spec.spec, shape, std::span(&m_mesh.axes(), 1))))};
            append(m_problems, std::move(problems));
        }
        return std::nullopt;
    }

    void place(Function& function, ValueId value, const NamedSpec& spec)
    {
        auto sharding = shardingOf(function[value].type.shape, spec);
        if (!sharding)
            return;
        if (isOwnFamily(function[value].name))
            m_leaving.push_back(value);
        function[value].sharding = std::move(sharding);
        function[value].annotation = spec.path;
    }

    void reportUnused()
    {
        std::vector<std::string> names;
        for (const Function& function : m_program.functions) {
            for (const ValueId argument : function.arguments()) {
                const std::string& name = function[argument].name;
                if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
                    names.push_back(name);
            }
        }
        for (const ShardingEntry& entry : m_study.sharding.entries) {
            if (!m_used.contains(entry.path))
                m_problems.push_back({"MW1429", fmt::format("no array has the name \"{}\"", entry.name),
                    suggestion(entry.name, names), m_study.placeOf(entry.path)});
        }
    }

    std::vector<ValueId> m_leaving; ///< the groups that the function gave them
    const Study& m_study;
    Program& m_program;
    const Mesh m_mesh;
    std::map<std::string, NamedSpec> m_specs;
    std::set<std::string> m_used;
    std::set<std::string> m_refused;
    Problems m_problems;
};

} // namespace

namespace {

std::optional<SharedScale> sharedScaleOf(Fp8Recipe recipe)
{
    switch (recipe) {
    case Fp8Recipe::None:
        break;
    case Fp8Recipe::Delayed: // with scales of this step's values
    case Fp8Recipe::Current:
        return SharedScale::Array;
    case Fp8Recipe::Rowwise:
        return SharedScale::Row;
    case Fp8Recipe::Blockwise:
        return SharedScale::Block;
    }
    return std::nullopt;
}

} // namespace

DType arrayType(const Study& study, const StudyArray& array)
{
    const bool isTransformer = study.transformer() != nullptr;
    switch (array.kind) {
    case StudyArray::Kind::OptimizerState:
        return array.shape.empty() ? DType::F32 : updatedType(study.parameterType, study.optimizer);
    case StudyArray::Kind::Gradient:
        return study.gradientType.value_or(updatedType(study.parameterType, study.optimizer));
    case StudyArray::Kind::Input:
        return isTransformer ? DType::S32 : study.parameterType; // tokens
    case StudyArray::Kind::Activation:
        return isTransformer ? study.activationType.value_or(study.parameterType) : study.parameterType;
    case StudyArray::Kind::Parameter:
        break;
    }
    return study.parameterType;
}

Result<TrainingOptions> trainingOptions(const Study& study, const std::vector<AssignedSpec>& all)
{
    const auto mesh = meshOf(study);
    if (!mesh)
        return mesh.error();
    TrainingOptions options;
    options.batch = study.batch;
    options.gradientNorm = study.train.gradientNorm;
    options.parameterType = study.parameterType;
    options.matmulType = study.matmulType;
    options.eightBits = sharedScaleOf(study.fp8);
    options.activationType = study.activationType.value_or(study.parameterType);
    options.gradientType = study.gradientType;
    options.weightInit = study.weightInit;
    options.biasInit = study.biasInit;
    options.partitionableRandom = study.partitionableRandom;
    options.optimizer = study.optimizer;
    options.dropout = study.dropout;
    options.dropoutSeed = static_cast<std::uint64_t>(study.train.seed);

    Problems problems;
    for (const AssignedSpec& assigned : all) {
        if (assigned.array.kind != StudyArray::Kind::Activation)
            continue;
        auto sharding = toTensorSharding(assigned.spec, assigned.array.shape.size(), *mesh);
        if (sharding) {
            options.constraints[assigned.array.name] = ConstraintAttributes{*std::move(sharding), assigned.path};
            continue;
        }
        Problems more = sharding.error();
        placeAll(more, study.placeOf(assigned.path));
        append(problems, std::move(more));
    }
    if (!problems.empty())
        return problems;
    return options;
}

Result<TrainingOptions> trainingOptions(const Study& study)
{
    return trainingOptions(study, assignedSpecs(study));
}

namespace {

/// Moves the shardings that a program's own text has to the study's mesh, by the names of the axes.
class MeshExchange {
public:
    MeshExchange(const Mesh& from, const Mesh& to)
        : m_from(from)
        , m_to(to)
    {
    }

    Problems run(Program& program)
    {
        for (const Function& function : program.functions)
            refuseManualSizes(function);
        forEachSharding(program, [this](TensorSharding& sharding) {
            if (sharding.mesh != 0)
                return;
            for (DimSharding& dim : sharding.dims)
                exchange(dim.axes);
            exchange(sharding.replicated);
            exchange(sharding.unreduced);
        });
        return std::move(m_problems);
    }

private:
    void report(const std::string& axis, const std::string& what)
    {
        if (m_reported.insert(axis).second)
            m_problems.push_back(
                {"MW1232", fmt::format("the program's text splits arrays over \"{}\" of {}; {}", axis, m_from.text(), what),
                    "give the study a mesh that has the program's axes"});
    }

    void exchange(AxisRefs& axes)
    {
        for (AxisRef& axis : axes) {
            const MeshAxis& old = m_from.axes()[static_cast<std::size_t>(axis.axis)];
            const auto& all = m_to.axes();
            const auto found
                = std::find_if(all.begin(), all.end(), [&](const MeshAxis& other) { return other.name == old.name; });
            if (found == all.end()) {
                report(old.name, fmt::format("the study's mesh is {}", m_to.text()));
                continue;
            }
            const bool isWhole = axis.pre == 1 && axis.size == old.size;
            if (!isWhole && found->size != old.size) {
                report(old.name, fmt::format("it names parts of the axis, which only has them with the size {}", old.size));
                continue;
            }
            axis.axis = static_cast<std::int32_t>(found - all.begin());
            if (isWhole)
                axis.size = found->size;
        }
    }

    /// The shapes inside of a manual computation are those of its text.
    void refuseManualSizes(const Function& function)
    {
        for (const Op& op : function.ops) {
            const auto* computation = std::get_if<ComputationAttributes>(&op.attributes);
            if (computation != nullptr && !computation->manualAxes.empty())
                report(m_from.axes()[static_cast<std::size_t>(computation->manualAxes.front())].name,
                    "inside of its manual computations (shard_map) shapes are those of that mesh");
        }
    }

    const Mesh& m_from;
    const Mesh& m_to;
    std::set<std::string> m_reported;
    Problems m_problems;
};

} // namespace

Result<Done> resolveShardings(const Study& study, const std::vector<AssignedSpec>& assigned, Program& program)
{
    auto mesh = meshOf(study);
    if (!mesh)
        return mesh.error();
    if (program.meshes.empty()) {
        program.meshes.push_back({"mesh", *mesh});
    } else {
        const Mesh own = std::exchange(program.meshes.front().mesh, *mesh);
        if (!own.axes().empty() && own.axes() != mesh->axes()) {
            if (Problems problems = MeshExchange(own, *mesh).run(program); !problems.empty()) {
                placeAll(problems, study.placeOf("mesh"));
                return problems;
            }
        }
    }
    Problems problems = Resolver(study, program, specsByName(study, assigned, program)).resolve();
    if (!problems.empty())
        return problems;
    return Done{};
}

} // namespace meshwright
