// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/study/study_facts.h"

#include "core/study/document.h"
#include "core/study/resolve.h"
#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace meshwright::ui {

namespace {

/// A spec as the study writes it.
struct WrittenSpec {
    std::string path;
    std::string text;
};

/// The specs of arrays by name, also those that cannot be read. Lists are written as specs are.
class WrittenSpecs {
public:
    explicit WrittenSpecs(const DocNode& root)
    {
        const DocNode* sharding = root.find("sharding");
        for (const DocEntry& entry : sharding != nullptr ? sharding->entries : std::vector<DocEntry>{}) {
            if (entry.key != "match" && entry.key != "rules")
                add(entry.key, "sharding." + entry.key, entry.value);
        }
    }

    const WrittenSpec* find(const std::string& name) const
    {
        const auto found = m_specs.find(name);
        return found == m_specs.end() ? nullptr : &found->second;
    }

private:
    void add(const std::string& name, const std::string& path, const DocNode& node)
    {
        if (node.kind == DocNode::Kind::Map) {
            for (const DocEntry& entry : node.entries)
                add(name + "." + entry.key, path + "." + entry.key, entry.value);
            return;
        }
        m_specs.emplace(arrayOfEntry(name), WrittenSpec{path, node.kind == DocNode::Kind::Scalar ? node.text : listText(node)});
    }

    static std::string listText(const DocNode& list)
    {
        PartitionSpec spec;
        for (const DocEntry& entry : list.entries) {
            spec.dims.emplace_back();
            if (entry.value.kind == DocNode::Kind::Scalar)
                spec.dims.back().push_back(entry.value.text);
            for (const DocEntry& axis : entry.value.entries)
                spec.dims.back().push_back(axis.value.text);
        }
        return specText(spec);
    }

    std::map<std::string, WrittenSpec> m_specs;
};

Role roleOf(StudyArray::Kind kind)
{
    switch (kind) {
    case StudyArray::Kind::Parameter:
        return Role::Parameter;
    case StudyArray::Kind::OptimizerState:
        return Role::OptimizerState;
    case StudyArray::Kind::Gradient:
        return Role::Gradient;
    case StudyArray::Kind::Input:
        return Role::Input;
    case StudyArray::Kind::Activation:
        break;
    }
    return Role::Activation;
}

StudyArray::Kind kindOf(Role role)
{
    switch (role) {
    case Role::Parameter:
        return StudyArray::Kind::Parameter;
    case Role::OptimizerState:
        return StudyArray::Kind::OptimizerState;
    case Role::Gradient:
        return StudyArray::Kind::Gradient;
    case Role::Input:
        return StudyArray::Kind::Input;
    case Role::Activation:
    case Role::Metric:
        break;
    }
    return StudyArray::Kind::Activation;
}

/// The arrays that a spec may name, with types: an MLP's by the study itself, a program's as the last analysis has them.
std::vector<ArrayFacts> namedArrays(const StudyFacts& facts)
{
    std::vector<ArrayFacts> arrays;
    for (StudyArray& array : studyArrays(facts.shown)) {
        ArrayFacts one;
        one.role = roleOf(array.kind);
        one.dtype = arrayType(facts.shown, array);
        one.array = std::move(array);
        arrays.push_back(std::move(one));
    }
    if (facts.shown.trains() || !facts.built)
        return arrays;
    for (const sim::ProgramArray& known : facts.built->arrays) {
        ArrayFacts one;
        one.role = known.role;
        one.dtype = known.type.dtype;
        one.array = {known.name, kindOf(known.role), known.type.shape, {}};
        arrays.push_back(std::move(one));
    }
    return arrays;
}

/// True when every size is one that arrays and meshes can have.
bool hasSoundSizes(const StudyFacts& facts)
{
    constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
    const auto isSound = [](const ArrayFacts& one) {
        const Shape& shape = one.array.shape;
        const auto count = checkedProduct(shape);
        return count && *count <= kMostElements
            && std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 1; });
    };
    return meshOf(facts.shown) && std::all_of(facts.arrays.begin(), facts.arrays.end(), isSound);
}

class Joiner {
public:
    explicit Joiner(StudyFacts& facts, const DocNode& root)
        : m_facts(facts)
        , m_written(root)
    {
        if (auto mesh = meshOf(facts.shown); mesh && facts.sizesAreSound)
            m_mesh = *std::move(mesh);
        if (facts.sizesAreSound) {
            for (AssignedSpec& assigned : assignedSpecs(facts.shown)) {
                std::string name = assigned.array.name;
                m_assigned.emplace(std::move(name), std::move(assigned));
            }
        }
        if (facts.built) {
            for (const sim::ProgramArray& array : facts.built->arrays)
                m_known.emplace(array.name, &array);
        }
    }

    void join(ArrayFacts& facts) const
    {
        const std::string& name = facts.array.name;
        if (name.find('=') == std::string::npos)
            facts.path = ownSpecPath(m_facts.study, name);
        if (const WrittenSpec* written = m_written.find(name)) {
            facts.isOwn = true;
            facts.path = written->path;
            facts.spec = written->text;
            facts.problems = checkSpecText(facts.spec, facts.array, m_facts.shown.mesh);
            if (const auto spec = parseTypedSpec(facts.spec, m_facts.shown.mesh); spec && facts.problems.empty())
                cut(facts, *spec);
            return;
        }
        if (const auto assigned = m_assigned.find(name); assigned != m_assigned.end()) {
            facts.spec = specText(assigned->second.spec);
            facts.givenBy = giver(assigned->second);
            cut(facts, assigned->second.spec);
            return;
        }
        const auto known = m_known.find(name);
        if (known == m_known.end() || known->second->type.shape != facts.array.shape)
            return;
        const sim::ProgramArray& array = *known->second;
        facts.spec = array.spec;
        facts.shard = localShape(array.type.shape, array.sharding);
        std::int64_t pieces = 1;
        for (const DimSharding& dim : array.sharding.dims)
            pieces *= shardCount(dim.axes);
        facts.copies = m_facts.built->mesh().deviceCount() / pieces;
    }

private:
    void cut(ArrayFacts& facts, const PartitionSpec& spec) const
    {
        const auto local = m_mesh ? shardShape(facts.array.shape, spec, *m_mesh, Uneven::Pad) : Problems{Problem{}};
        if (!local)
            return;
        facts.shard = *local;
        std::int64_t pieces = 1;
        for (const auto& axes : spec.dims) {
            for (const std::string& axis : axes)
                pieces *= m_mesh->axisSize(axis).value_or(1);
        }
        facts.copies = m_mesh->deviceCount() / pieces;
    }

    /// What gives a spec to an array that has none of its own.
    std::string giver(const AssignedSpec& assigned) const
    {
        if (assigned.rule)
            return fmt::format("the rule for \"{}\"", m_facts.shown.sharding.match[*assigned.rule].glob);
        if (!assigned.trace.empty())
            return "the logical axis rules";
        const std::string_view path = assigned.path;
        return fmt::format("the spec of \"{}\"", path.substr(path.find('.') + 1));
    }

    StudyFacts& m_facts;
    WrittenSpecs m_written;
    std::optional<Mesh> m_mesh;
    std::map<std::string, AssignedSpec> m_assigned;
    std::map<std::string, const sim::ProgramArray*> m_known;
};

/// Of a pipeline, what the devices of a stage have.
void takeShare(ArrayFacts& facts, const Study& study)
{
    facts.share = stageShareOf(study, facts.array.name, facts.array.shape);
    facts.shard = facts.share.pieceOf(*std::move(facts.shard));
    facts.copies = std::max<std::int64_t>(1, facts.copies / facts.share.stages);
}

/// What the engine finds later, found now, so that it neither comes late nor blinks: hardware that cannot be, a mesh that is too large.
void addHardware(StudyFacts& facts, const sim::Catalogue& catalogue)
{
    const auto& hardware = facts.study.hardware;
    if (!hardware || hardware->chip.empty())
        return;
    auto machine = sim::machineOf(facts.study, catalogue);
    if (machine)
        facts.machine = std::make_shared<const sim::Machine>(*std::move(machine));
    if (facts.isCurrent || hasErrors(facts.problems))
        return;
    append(facts.problems, machine ? checkMeshFits(facts.study, facts.machine->deviceCount()) : machine.error());
}

} // namespace

std::int64_t StudyFacts::meshDevices() const
{
    std::int64_t count = 1;
    for (const MeshAxis& axis : shown.mesh) // wrong sizes are shown too
        count = std::min(count * std::clamp<std::int64_t>(axis.size, 1, kLargestMesh), kLargestMesh);
    return count;
}

const Problem* StudyFacts::findProblem(std::string_view path) const
{
    const auto found = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) {
        const std::string_view at = problem.place.path;
        return at.starts_with(path) && (at.size() == path.size() || at[path.size()] == '.' || at[path.size()] == '[');
    });
    return found == problems.end() ? nullptr : &*found;
}

std::string StudyFacts::reasonOf(const ArrayFacts& array) const
{
    if (array.isOwn)
        return fmt::format("Set in the study: {}.", array.path);
    if (!array.givenBy.empty())
        return fmt::format("It has no spec of its own; {} sets it.", array.givenBy);
    const sim::ProgramArray* known = built ? built->findArray(array.array.name) : nullptr;
    if (known == nullptr || array.spec.empty())
        return {};
    if (!known->annotation.empty() && !known->annotation.starts_with("sharding"))
        return fmt::format("The program sets it: {}.", known->annotation);
    return fmt::format("It follows from other arrays. {}", built->reasonOf(*known));
}

StudyFacts factsOf(const sim::StudySource& source, const std::shared_ptr<const sim::Analysis>& latest,
    const std::shared_ptr<const sim::Analysis>& built, const sim::Catalogue& catalogue)
{
    StudyFacts facts;
    facts.source = source;
    StudyReading reading = readStudyInPart(source.text, source.file, source.settings);
    facts.readable = reading.readable;
    facts.study = std::move(reading.study);
    facts.shown = phaseStudy(facts.study, 0);
    if (!facts.study.phases.empty())
        facts.meshPath = "phases[0].mesh";
    facts.isCurrent = latest && latest->source == source;
    facts.problems = facts.isCurrent ? latest->problems : std::move(reading.problems);
    facts.built = built;
    addHardware(facts, catalogue);

    Document document = parseDocument(source.text, source.file);
    applySettings(document.root, source.settings);
    if (const DocNode* model = document.root.find("model"); model != nullptr && !model->entries.empty())
        facts.modelKind = model->entries.front().key;
    facts.arrays = namedArrays(facts);
    facts.sizesAreSound = hasSoundSizes(facts);
    const Joiner joiner(facts, document.root);
    for (ArrayFacts& array : facts.arrays) {
        joiner.join(array);
        if (facts.sizesAreSound && array.shard)
            takeShare(array, facts.shown);
    }
    constexpr std::array kOrder
        = {Role::Input, Role::Parameter, Role::Activation, Role::OptimizerState, Role::Gradient, Role::Metric};
    std::stable_sort(facts.arrays.begin(), facts.arrays.end(), [&](const ArrayFacts& a, const ArrayFacts& b) {
        return std::find(kOrder.begin(), kOrder.end(), a.role) < std::find(kOrder.begin(), kOrder.end(), b.role);
    });
    return facts;
}

} // namespace meshwright::ui
