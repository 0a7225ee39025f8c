// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/partition/one_mesh.h"

#include "core/program/body_collective.h"
#include "core/program/every_sharding.h"
#include "core/program/transform.h"
#include "core/reshard/reshard_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace meshwright {

namespace {

/// A run of positions of the common mesh: those that differ in their coordinate along the axis of `size` whose neighbours are `stride` apart.
struct Run {
    std::int64_t stride = 1;
    std::int64_t size = 1;

    std::int64_t end() const { return stride * size; }
};
using Runs = std::vector<Run>; ///< major to minor

/// Where the axes of the common mesh end: distances between positions, each a multiple of the one before it.
class Cuts {
public:
    explicit Cuts(const Mesh& mesh)
    {
        for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
            m_ends.insert({mesh.stride(axis), mesh.stride(axis) * mesh.axes()[axis].size});
        m_ends.insert({1, mesh.deviceCount()});
    }

    /// Cuts at both ends of each run; false, and nothing is cut, when the places do not divide each other.
    bool add(const std::vector<Runs>& axes)
    {
        std::set<std::int64_t> ends = m_ends;
        for (const Runs& runs : axes) {
            for (const Run& run : runs)
                ends.insert({run.stride, run.end()});
        }
        for (auto end = ends.begin(); std::next(end) != ends.end(); ++end) {
            if (*std::next(end) % *end != 0)
                return false;
        }
        m_ends = std::move(ends);
        return true;
    }

    void cutToPrimes()
    {
        std::set<std::int64_t> ends = {1};
        for (const Run& run : runsBetween(1, *m_ends.rbegin())) {
            std::int64_t end = run.stride;
            std::int64_t rest = run.size;
            for (std::int64_t prime = 2; rest > 1; prime = prime * prime > rest ? rest : prime + 1) {
                for (; rest % prime == 0; rest /= prime)
                    ends.insert(end *= prime);
            }
        }
        m_ends = std::move(ends);
    }

    /// The axes between two distances, major to minor.
    Runs runsBetween(std::int64_t low, std::int64_t high) const
    {
        Runs runs;
        for (auto end = m_ends.begin(); end != m_ends.end() && *end < high; ++end) {
            if (*end >= low)
                runs.insert(runs.begin(), {*end, *std::next(end) / *end});
        }
        return runs;
    }

private:
    std::set<std::int64_t> m_ends;
};

std::vector<DeviceId> sortedDevices(const Mesh& mesh)
{
    std::vector<DeviceId> devices = mesh.deviceOrder();
    std::sort(devices.begin(), devices.end());
    return devices;
}

std::size_t splittingAxes(const Mesh& mesh)
{
    return static_cast<std::size_t>(
        std::count_if(mesh.axes().begin(), mesh.axes().end(), [](const MeshAxis& axis) { return axis.size > 1; }));
}

/// The runs of each axis of a mesh, as if its devices were in the order of their positions.
std::vector<Runs> naturalRuns(const Mesh& mesh)
{
    std::vector<Runs> axes;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        axes.emplace_back();
        if (mesh.axes()[axis].size > 1)
            axes.back().push_back({mesh.stride(axis), mesh.axes()[axis].size});
    }
    return axes;
}

/// The runs of each axis of a mesh whose position p is position `at[p]` of the common mesh; nothing when some axis does not go along such runs.
std::optional<std::vector<Runs>> runsOf(const Mesh& mesh, const std::vector<std::int64_t>& at)
{
    if (at.front() != 0)
        return std::nullopt;
    std::vector<Runs> axes;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
        Runs& runs = axes.emplace_back();
        std::int64_t step = mesh.stride(axis);
        for (std::int64_t rest = mesh.axes()[axis].size; rest > 1;) {
            const std::int64_t stride = at[static_cast<std::size_t>(step)];
            std::int64_t size = 1;
            while (size < rest && at[static_cast<std::size_t>(size * step)] == size * stride)
                ++size;
            while (rest % size != 0)
                --size;
            if (size < 2)
                return std::nullopt;
            runs.insert(runs.begin(), {stride, size});
            step *= size;
            rest /= size;
        }
    }
    for (std::int64_t position = 0; position < mesh.deviceCount(); ++position) {
        std::int64_t sum = 0;
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            std::int64_t coordinate = mesh.coordinate(position, axis);
            for (auto run = axes[axis].rbegin(); run != axes[axis].rend(); ++run) {
                sum += coordinate % run->size * run->stride;
                coordinate /= run->size;
            }
        }
        if (sum != at[static_cast<std::size_t>(position)])
            return std::nullopt;
    }
    return axes;
}

/// Gives each axis of a mesh axes of the common mesh of the same sizes, which is cut into primes.
std::vector<Runs> runsOfPrimes(const Mesh& mesh, const Cuts& primes)
{
    Runs free = primes.runsBetween(1, mesh.deviceCount());
    std::vector<Runs> axes;
    for (const MeshAxis& axis : mesh.axes()) {
        Runs& runs = axes.emplace_back();
        std::int64_t rest = axis.size;
        for (auto run = free.begin(); run != free.end();) {
            if (rest % run->size != 0) {
                ++run;
                continue;
            }
            rest /= run->size;
            runs.push_back(*run);
            run = free.erase(run);
        }
        assert(rest == 1);
    }
    return axes;
}

class OneMesh {
public:
    explicit OneMesh(Program& program)
        : m_program(program)
        , m_named(program.meshes.size(), false)
        , m_manual(program.meshes.size(), false)
        , m_runs(program.meshes.size())
        , m_place(program.meshes.size(), 0)
    {
    }

    Result<std::vector<BorderOrders>> run()
    {
        findNamed();
        m_base = base();
        if (Problems problems = otherDevices(); !problems.empty())
            return problems;
        findRuns();
        for (std::size_t mesh = 0; mesh < m_named.size(); ++mesh) {
            if (m_manual[mesh] && m_place[mesh] != 0)
                return Problem{"MW1214",
                    fmt::format("manual computations are on @{} and @{}, which have the same devices in different orders",
                        nameOf(m_base), nameOf(mesh)),
                    "give both meshes one order of devices"};
        }
        std::vector<BorderOrders> orders;
        for (const Function& function : m_program.functions)
            orders.push_back(ordersOf(function));
        rewrite();
        if (!m_problems.empty())
            return m_problems;
        return orders;
    }

private:
    const Mesh& meshAt(std::size_t index) const { return m_program.meshes[index].mesh; }
    const std::string& nameOf(std::size_t index) const { return m_program.meshes[index].name; }
    bool hasAxes(std::size_t index) const { return !meshAt(index).axes().empty(); }
    static std::size_t indexOf(const TensorSharding& sharding) { return static_cast<std::size_t>(sharding.mesh); }

    void findNamed()
    {
        forEachSharding(m_program, [&](TensorSharding& sharding) { m_named[indexOf(sharding)] = true; });
        for (const Function& function : m_program.functions) {
            for (const Op& op : function.ops) {
                const auto* computation = std::get_if<ComputationAttributes>(&op.attributes);
                if (computation == nullptr || !isManual(op))
                    continue;
                noteUnitAxes(*computation);
                for (const auto* shardings : {&computation->inShardings, &computation->outShardings}) {
                    for (const TensorSharding& sharding : *shardings)
                        m_manual[indexOf(sharding)] = m_manual[indexOf(sharding)] || hasAxes(indexOf(sharding));
                }
            }
        }
    }

    void noteUnitAxes(const ComputationAttributes& computation)
    {
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        if (shardings.empty())
            return;
        const std::vector<MeshAxis>& axes = meshAt(indexOf(shardings.front())).axes();
        const auto& manual = computation.manualAxes;
        if (std::all_of(
                manual.begin(), manual.end(), [&](std::int32_t axis) { return axes[static_cast<std::size_t>(axis)].size == 1; }))
            m_unitName = axes[static_cast<std::size_t>(manual.front())].name;
    }

    /// The mesh whose axes and order are the common ones.
    std::size_t base() const
    {
        std::optional<std::size_t> first;
        for (const auto& isWanted : {m_manual, m_named}) {
            for (std::size_t mesh = 0; mesh < isWanted.size() && !first; ++mesh) {
                if (isWanted[mesh] && hasAxes(mesh))
                    first = mesh;
            }
        }
        for (std::size_t mesh = 0; mesh < m_named.size() && !first; ++mesh) {
            if (hasAxes(mesh))
                first = mesh;
        }
        for (std::size_t mesh = 0; mesh < m_named.size() && !first; ++mesh) {
            if (m_named[mesh])
                first = mesh;
        }
        std::size_t finest = first.value_or(0);
        const std::vector<DeviceId> order = meshAt(finest).deviceOrder();
        for (std::size_t mesh = 0; mesh < m_named.size(); ++mesh) {
            if (m_named[mesh] && splittingAxes(meshAt(mesh)) > splittingAxes(meshAt(finest))
                && meshAt(mesh).deviceOrder() == order)
                finest = mesh;
        }
        return finest;
    }

    Problems otherDevices() const
    {
        Problems problems;
        const std::vector<DeviceId> devices = sortedDevices(meshAt(m_base));
        for (std::size_t mesh = 0; mesh < m_named.size(); ++mesh) {
            const NamedMesh& named = m_program.meshes[mesh];
            const bool saysNoDevice = !hasAxes(mesh) && !named.isMaximal;
            if (!m_named[mesh] || saysNoDevice)
                continue;
            const std::vector<DeviceId> others = sortedDevices(named.mesh);
            if (named.isMaximal ? std::binary_search(devices.begin(), devices.end(), others.front()) : others == devices)
                continue;
            problems.push_back({"MW1120",
                fmt::format("arrays are on different devices: the mesh @{} has {}, and @{} has {}", nameOf(m_base),
                    devicesText(devices), named.name, devicesText(others)),
                "place all arrays of the program on meshes of the same devices", {}, Severity::Error,
                "committed arrays of one computation need the same devices"});
        }
        return problems;
    }

    static std::string devicesText(const std::vector<DeviceId>& devices)
    {
        if (devices.size() == 1)
            return fmt::format("device {}", devices.front());
        const bool isRange = devices.back() - devices.front() + 1 == static_cast<DeviceId>(devices.size());
        return isRange ? fmt::format("devices {} to {}", devices.front(), devices.back())
                       : fmt::format("{} devices from {} to {}", devices.size(), devices.front(), devices.back());
    }

    /// The runs of every axis, the cuts that they need, and the meshes whose order needs a mesh of its own.
    void findRuns()
    {
        const Mesh& base = meshAt(m_base);
        Cuts cuts(base);
        m_runs[m_base] = naturalRuns(base);
        std::map<DeviceId, std::int64_t> positionOf;
        std::vector<std::size_t> inOtherOrder;
        for (std::size_t mesh = 0; mesh < m_named.size(); ++mesh) {
            if (!m_named[mesh] || mesh == m_base || !hasAxes(mesh))
                continue;
            if (positionOf.empty()) {
                for (std::int64_t position = 0; position < base.deviceCount(); ++position)
                    positionOf[base.deviceAt(position)] = position;
            }
            std::vector<std::int64_t> at;
            for (std::int64_t position = 0; position < base.deviceCount(); ++position)
                at.push_back(positionOf[meshAt(mesh).deviceAt(position)]);
            if (auto runs = runsOf(meshAt(mesh), at); runs && cuts.add(*runs)) {
                m_runs[mesh] = *std::move(runs);
                continue;
            }
            m_runs[mesh] = naturalRuns(meshAt(mesh));
            if (!cuts.add(m_runs[mesh])) {
                cuts.cutToPrimes();
                m_runs[mesh] = runsOfPrimes(meshAt(mesh), cuts);
            }
            inOtherOrder.push_back(mesh);
        }
        m_meshes.push_back({nameOf(m_base), cutMesh(cuts), m_program.meshes[m_base].isMaximal});
        for (const std::size_t mesh : inOtherOrder) {
            const Mesh ordered = inItsOrder(mesh);
            if (ordered == m_meshes.front().mesh)
                continue;
            m_place[mesh] = static_cast<std::int32_t>(m_meshes.size());
            m_meshes.push_back({nameOf(mesh), ordered, false});
        }
    }

    /// The common mesh: the axes of the base, cut. An axis keeps its name where it is whole.
    Mesh cutMesh(const Cuts& cuts)
    {
        const Mesh& base = meshAt(m_base);
        const std::vector<std::string> names = base.axisNames();
        std::vector<MeshAxis> axes;
        for (std::size_t axis = 0; axis < base.axes().size(); ++axis) {
            const MeshAxis& whole = base.axes()[axis];
            const Runs runs = cuts.runsBetween(base.stride(axis), base.stride(axis) * whole.size);
            m_baseAxis.push_back(static_cast<std::int32_t>(axes.size()));
            if (runs.size() <= 1) {
                axes.push_back(whole);
                m_axes.push_back({base.stride(axis), whole.size});
                continue;
            }
            for (std::size_t part = 0; part < runs.size(); ++part) {
                std::string name = fmt::format("{}_{}", whole.name, part);
                while (std::find(names.begin(), names.end(), name) != names.end())
                    name += "_";
                axes.push_back({std::move(name), runs[part].size});
                m_axes.push_back(runs[part]);
            }
        }
        addUnitAxis(axes);
        return valueOf(Mesh::create(std::move(axes), base.hasDefaultOrder() ? std::vector<DeviceId>() : base.deviceOrder()));
    }

    /// An axis of size 1, for computations that are manual over such axes only: without one they would not be manual.
    void addUnitAxis(std::vector<MeshAxis>& axes)
    {
        const auto known = std::find_if(axes.begin(), axes.end(), [](const MeshAxis& axis) { return axis.size == 1; });
        m_unitAxis = static_cast<std::int32_t>(known - axes.begin());
        if (known != axes.end() || m_unitName.empty())
            return;
        const auto isTaken = [&](const MeshAxis& axis) { return axis.name == m_unitName; };
        while (std::any_of(axes.begin(), axes.end(), isTaken))
            m_unitName += "_";
        axes.push_back({m_unitName, 1});
        m_axes.push_back({});
    }

    /// The common axes in the order of devices of a mesh.
    Mesh inItsOrder(std::size_t mesh) const
    {
        const Mesh& own = meshAt(mesh);
        std::vector<DeviceId> order(static_cast<std::size_t>(own.deviceCount()));
        for (std::int64_t position = 0; position < own.deviceCount(); ++position) {
            std::int64_t place = 0;
            for (std::size_t axis = 0; axis < own.axes().size(); ++axis) {
                std::int64_t coordinate = own.coordinate(position, axis);
                for (auto run = m_runs[mesh][axis].rbegin(); run != m_runs[mesh][axis].rend(); ++run) {
                    place += coordinate % run->size * run->stride;
                    coordinate /= run->size;
                }
            }
            order[static_cast<std::size_t>(place)] = own.deviceAt(position);
        }
        return valueOf(Mesh::create(m_meshes.front().mesh.axes(), std::move(order)));
    }

    BorderOrders ordersOf(const Function& function) const
    {
        const auto placeOf
            = [&](const std::optional<TensorSharding>& sharding) { return sharding ? m_place[indexOf(*sharding)] : 0; };
        BorderOrders orders;
        for (const ValueId argument : function.arguments())
            orders.arguments.push_back(placeOf(function[argument].sharding));
        for (std::size_t i = 0; i < function.results().size(); ++i) {
            const bool isAsked = i < function.resultShardings.size() && function.resultShardings[i];
            orders.results.push_back(placeOf(isAsked ? function.resultShardings[i] : function[function.results()[i]].sharding));
        }
        return orders;
    }

    // ---- rewriting

    void rewrite()
    {
        for (Function& function : m_program.functions) {
            for (Op& op : function.ops) {
                if (auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
                    rewriteCollective(*collective, meshOfCollective(function, op));
                if (auto* computation = std::get_if<ComputationAttributes>(&op.attributes))
                    rewriteManualAxes(*computation);
            }
        }
        forEachSharding(m_program, [&](TensorSharding& sharding) {
            const std::size_t mesh = indexOf(sharding);
            for (DimSharding& dim : sharding.dims)
                dim.axes = rewritten(dim.axes, mesh);
            sharding.replicated = inMeshOrder(rewritten(sharding.replicated, mesh));
            sharding.unreduced = inMeshOrder(rewritten(sharding.unreduced, mesh));
            sharding.mesh = 0;
        });
        m_program.meshes = std::move(m_meshes);
    }

    static std::size_t meshOfCollective(const Function& function, const Op& op)
    {
        for (const auto* values : {&op.results, &op.operands}) {
            for (const ValueId value : *values) {
                if (function[value].sharding)
                    return indexOf(*function[value].sharding);
            }
        }
        return 0;
    }

    void rewriteCollective(CollectiveAttributes& collective, std::size_t mesh)
    {
        collective.axes = rewritten(collective.axes, mesh);
        for (AxisRefs& axes : collective.perDim)
            axes = rewritten(axes, mesh);
        for (AxisMove& move : collective.moves)
            move.axes = rewritten(move.axes, mesh);
    }

    /// An axis that is manual is one or more whole axes of the common mesh.
    void rewriteManualAxes(ComputationAttributes& computation)
    {
        const auto& shardings = computation.inShardings.empty() ? computation.outShardings : computation.inShardings;
        if (shardings.empty())
            return;
        const std::size_t mesh = indexOf(shardings.front());
        std::set<std::int32_t> manual;
        for (const std::int32_t axis : computation.manualAxes) {
            if (mesh == m_base && meshAt(mesh).axes()[static_cast<std::size_t>(axis)].size == 1)
                manual.insert(m_baseAxis[static_cast<std::size_t>(axis)]);
            for (const AxisRef& ref : rewritten({wholeAxis(meshAt(mesh), static_cast<std::size_t>(axis))}, mesh))
                manual.insert(ref.axis);
        }
        if (manual.empty() && !computation.manualAxes.empty())
            manual.insert(m_unitAxis);
        computation.manualAxes.assign(manual.begin(), manual.end());
    }

    AxisRefs rewritten(const AxisRefs& axes, std::size_t mesh)
    {
        AxisRefs result;
        for (const AxisRef& axis : axes) {
            if (axis.size == 1) {
                if (mesh == m_base)
                    result.push_back({m_baseAxis[static_cast<std::size_t>(axis.axis)], 1, 1});
                continue;
            }
            if (!appendPart(axis, mesh, result))
                reportPart(axis, mesh);
        }
        return result;
    }

    void reportPart(const AxisRef& axis, std::size_t mesh)
    {
        Problem problem{"MW1213",
            fmt::format("{} of the mesh @{} ends inside an axis of @{}, in the middle of one of its pieces",
                axisText(axis, meshAt(mesh)), nameOf(mesh), nameOf(m_base)),
            "use one mesh for all values of the program"};
        const bool isKnown = std::any_of(
            m_problems.begin(), m_problems.end(), [&](const Problem& known) { return known.message == problem.message; });
        if (!isKnown)
            m_problems.push_back(std::move(problem));
    }

    /// A part of an axis as parts of the common axes; false when it is none.
    bool appendPart(const AxisRef& axis, std::size_t mesh, AxisRefs& result) const
    {
        // The major part of the runs before `pre`, and then `size`.
        std::int64_t before = 1;
        for (const Run& run : m_runs[mesh][static_cast<std::size_t>(axis.axis)]) {
            const std::int64_t low = std::max(before, axis.pre);
            const std::int64_t high = std::min(before * run.size, axis.pre * axis.size);
            if (low < high) {
                if (low % before != 0 || high % low != 0 || before * run.size % high != 0
                    || !appendRun({run.stride * (before * run.size / high), high / low}, result))
                    return false;
            }
            before *= run.size;
        }
        return true;
    }

    bool appendRun(const Run& run, AxisRefs& result) const
    {
        for (std::size_t i = 0; i < m_axes.size(); ++i) {
            const Run& whole = m_axes[i];
            const std::int64_t low = std::max(whole.stride, run.stride);
            const std::int64_t high = std::min(whole.end(), run.end());
            if (low >= high)
                continue;
            if (low % whole.stride != 0 || high % low != 0 || whole.end() % high != 0)
                return false;
            appendMerging(result, {static_cast<std::int32_t>(i), whole.end() / high, high / low});
        }
        return true;
    }

    Program& m_program;
    std::vector<bool> m_named; ///< by mesh: a sharding is on it
    std::vector<bool> m_manual; ///< by mesh: a manual computation is on it
    std::size_t m_base = 0;
    std::vector<std::vector<Runs>> m_runs; ///< by mesh and axis
    std::vector<std::int32_t> m_place; ///< by mesh: among m_meshes, in whose order it is
    std::vector<NamedMesh> m_meshes; ///< the common one, and other orders of its devices
    Runs m_axes; ///< of the common mesh
    std::vector<std::int32_t> m_baseAxis; ///< where each axis of the base begins in the common mesh
    std::string m_unitName; ///< of an axis of size 1 that some computation is manual over, and over no larger one; empty: none
    std::int32_t m_unitAxis = 0; ///< of the common mesh
    Problems m_problems;
};

} // namespace

Result<std::vector<BorderOrders>> ontoOneMesh(Program& program)
{
    if (program.meshes.empty()) {
        std::vector<BorderOrders> orders;
        for (const Function& function : program.functions)
            orders.push_back(
                {std::vector<std::int32_t>(function.arguments().size()), std::vector<std::int32_t>(function.results().size())});
        return orders;
    }
    return OneMesh(program).run();
}

} // namespace meshwright
