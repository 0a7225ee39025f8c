// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/prove/identity.h"

#include "core/prove/array_index.h"
#include "core/prove/identity_run.h"
#include "core/sharding/layout.h"

#include <algorithm>

namespace meshwright {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20; ///< of all values on all devices, which are held at once
constexpr std::int64_t kMostWork = std::int64_t{1} << 22; ///< steps of a trial, each of some nanoseconds
constexpr BlockId kBody(std::int32_t{0});
constexpr std::array<std::uint64_t, 2> kSeeds = {0x6d657368, 0x77726967};

/// Of the values of a function; nothing when there are too many, or some of a kind that is not followed.
std::optional<std::int64_t> elementsOf(const Function& function)
{
    std::int64_t elements = 0;
    for (const Value& value : function.values) {
        if (isComplex(value.type.dtype) || elements > kMostElements)
            return std::nullopt;
        elements += value.type.elements();
    }
    return elements;
}

/// The first places along each dimension, as many as the box has; the rest of a piece is padding.
IndexBox fromZero(const IndexBox& box)
{
    IndexBox moved;
    for (const IndexRange& range : box)
        moved.push_back({0, range.size()});
    return moved;
}

} // namespace

/// Both functions at one point.
class Identities::Trial {
public:
    Trial(const Walk& source, const Walk& device, std::uint64_t seed, const std::stop_token& stop)
        : m_source(source)
        , m_device(device)
        , m_algebra(seed)
        , m_ofSource(m_algebra, source.function, source.meshes, nullptr, m_work, stop)
        , m_ofDevices(m_algebra, device.function, device.meshes, device.wholes, m_work, stop)
    {
        std::vector<IdentityRun::Arrays> whole;
        std::vector<IdentityRun::Arrays> pieces;
        for (std::size_t i = 0; i < source.function.arguments().size(); ++i) {
            const ValueId argument = device.function.arguments()[i];
            whole.push_back({m_algebra.fresh(source.function[source.function.arguments()[i]].type.elements())});
            pieces.push_back(laidOut(whole.back().front(), argument, *device.function[argument].sharding));
        }
        m_ofSource.begin(std::move(whole));
        m_ofSource.goOn();
        m_ofDevices.begin(std::move(pieces));
        const Block& body = source.function.body();
        m_sourceValues = body.arguments;
        for (const OpId op : body.ops)
            m_sourceValues.insert(m_sourceValues.end(), source.function[op].results.begin(), source.function[op].results.end());
        std::erase_if(m_sourceValues, [&](ValueId value) { return source.standings[value.at()].empty(); });
        for (const ValueId value : m_sourceValues) {
            const Standing& standing = source.standings[value.at()].front();
            if (standing.dims == wholeDims(source.globals[standing.global].shape.size()))
                m_valueOf.try_emplace(standing.global, value);
        }
    }

    bool stands(ValueId value, const Standing& wanted, const TensorSharding& layout)
    {
        const auto found = std::find_if(m_sourceValues.begin(), m_sourceValues.end(),
            [&](ValueId other) { // copies of one thing differ in their number only
                return m_source.standings[other.at()].front() == wanted && m_source.function[other].type.shape == wholeOf(value);
            });
        if (found == m_sourceValues.end() || typeOf(value).shape != localShape(wholeOf(value), layout))
            return false;
        goOn(value);
        const IdentityRun::Arrays* whole = m_ofSource.find(*found);
        const IdentityRun::Arrays* pieces = m_ofDevices.find(value);
        return whole != nullptr && pieces != nullptr && !m_ofDevices.isOver()
            && isLaidOut(*pieces, whole->front(), value, layout);
    }

    bool takesOneWay(OpId op)
    {
        goOn(m_device.function[op].results.front());
        return !m_ofDevices.isOver() && m_ofDevices.takesOneWay(op);
    }

private:
    void goOn(ValueId last)
    {
        m_ofDevices.goOn(last, [&](ValueId made, IdentityRun::Arrays& arrays) { replace(made, arrays); });
    }

    const Mesh& mainMesh() const { return m_device.mesh(); }
    const TensorType& typeOf(ValueId value) const { return m_device.function[value].type; }
    const Shape& wholeOf(ValueId value) const { return (*m_device.wholes)[value.at()]; }

    static std::vector<StandingDim> wholeDims(std::size_t rank)
    {
        std::vector<StandingDim> dims(rank);
        for (std::size_t dim = 0; dim < rank; ++dim)
            dims[dim].from = static_cast<int>(dim);
        return dims;
    }

    const Elements* ofSource(GlobalId global) const
    {
        const auto value = m_valueOf.find(global);
        const IdentityRun::Arrays* arrays = value == m_valueOf.end() ? nullptr : m_ofSource.find(value->second);
        return arrays == nullptr ? nullptr : &arrays->front();
    }

    IndexBox boxOf(ValueId value, const TensorSharding& layout, std::int64_t position) const
    {
        return shardBox(wholeOf(value), layout, m_device.mesh(layout.mesh), m_ofDevices.positionOn(layout.mesh, position));
    }

    /// Groups of devices that differ along the axes of a partial value only, by position of the first mesh.
    std::vector<std::vector<std::int64_t>> groupsOf(const TensorSharding& layout) const
    {
        std::vector<std::vector<std::int64_t>> groups = deviceGroups(layout.unreduced, m_device.mesh(layout.mesh));
        std::vector<std::int64_t> onMain(static_cast<std::size_t>(mainMesh().deviceCount()));
        for (std::int64_t position = 0; position < mainMesh().deviceCount(); ++position)
            onMain[static_cast<std::size_t>(m_ofDevices.positionOn(layout.mesh, position))] = position;
        for (std::vector<std::int64_t>& group : groups) {
            for (std::int64_t& position : group)
                position = onMain[static_cast<std::size_t>(position)];
        }
        return groups;
    }

    IdentityRun::Arrays laidOut(const Elements& whole, ValueId argument, const TensorSharding& layout)
    {
        const TensorType& type = typeOf(argument);
        IdentityRun::Arrays made;
        for (std::int64_t position = 0; position < mainMesh().deviceCount(); ++position) {
            const IndexBox box = boxOf(argument, layout, position);
            putPiece(made.emplace_back(m_algebra.fresh(type.elements())), type.shape, fromZero(box),
                pieceOf(whole, wholeOf(argument), box));
        }
        if (layout.unreduced.empty())
            return made;
        for (const std::vector<std::int64_t>& group : groupsOf(layout)) { // random parts, and one that makes up for them
            Elements& first = made[static_cast<std::size_t>(group.front())];
            for (std::size_t i = 1; i < group.size(); ++i) {
                Elements& part = made[static_cast<std::size_t>(group[i])] = m_algebra.fresh(type.elements());
                for (std::size_t at = 0; at < part.size(); ++at)
                    first[at] = layout.unreducedKind == ReduceKind::Sum ? m_algebra.subtract(first[at], part[at], type.dtype)
                                                                        : m_algebra.fresh();
            }
        }
        return made;
    }

    bool isLaidOut(const IdentityRun::Arrays& arrays, const Elements& wanted, ValueId value, const TensorSharding& layout)
    {
        const TensorType& type = typeOf(value);
        for (const std::vector<std::int64_t>& group : groupsOf(layout)) {
            Elements whole = arrays[static_cast<std::size_t>(group.front())];
            for (std::size_t at = 0; group.size() > 1 && at < whole.size(); ++at) {
                Elements parts;
                for (const std::int64_t position : group)
                    parts.push_back(arrays[static_cast<std::size_t>(position)][at]);
                whole[at] = m_algebra.combined(layout.unreducedKind, parts, type.dtype);
            }
            const IndexBox box = boxOf(value, layout, group.front());
            const Elements own = pieceOf(whole, type.shape, fromZero(box));
            const Elements piece = pieceOf(wanted, wholeOf(value), box);
            const auto areEqual = [](const Element& a, const Element& b) { return a.residue == b.residue; };
            if (!std::equal(own.begin(), own.end(), piece.begin(), piece.end(), areEqual))
                return false;
        }
        return true;
    }

    /// The elements of a value that a lemma knows are those of the source.
    void replace(ValueId value, IdentityRun::Arrays& arrays) const
    {
        for (const Standing& standing : m_device.standings[value.at()]) {
            const Elements* whole = standing.isWhole() ? ofSource(standing.global) : nullptr;
            const bool hasWindow = std::any_of(
                standing.dims.begin(), standing.dims.end(), [](const StandingDim& dim) { return dim.window != nullptr; });
            if (whole == nullptr || hasWindow)
                continue;
            const Shape& shape = m_device.globals[standing.global].shape;
            const Mesh& mesh = m_device.mesh(standing.mesh);
            for (std::size_t lane = 0; lane < arrays.size(); ++lane) {
                const std::int64_t position = m_ofDevices.positionOn(standing.mesh, static_cast<std::int64_t>(lane));
                forEachIndex(typeOf(value).shape, [&](const Shape& index) {
                    Shape at(shape.size(), 0);
                    for (std::size_t dim = 0; dim < index.size(); ++dim) {
                        const StandingDim& along = standing.dims[dim];
                        if (along.from >= 0)
                            at[static_cast<std::size_t>(along.from)]
                                = shardIndex(position, along.axes, mesh) * typeOf(value).shape[dim] + index[dim];
                    }
                    if (isWithin(at, shape))
                        arrays[lane][flatIndex(index, typeOf(value).shape)] = (*whole)[flatIndex(at, shape)];
                });
            }
            return;
        }
    }

    const Walk& m_source;
    const Walk& m_device;
    Algebra m_algebra;
    std::int64_t m_work = kMostWork;
    IdentityRun m_ofSource;
    IdentityRun m_ofDevices;
    std::vector<ValueId> m_sourceValues; ///< of the source's body
    std::map<GlobalId, ValueId> m_valueOf; ///< those of them that are a global value as it is
};

Identities::Identities(const Walk& source, const Walk& device, std::stop_token stop)
    : m_source(source)
    , m_device(device)
    , m_stop(std::move(stop))
{
}

Identities::~Identities() = default;

bool Identities::stands(ValueId value, const Standing& wanted, const TensorSharding& layout)
{
    return m_device.function[value].block == kBody && layout.dims.size() == (*m_device.wholes)[value.at()].size()
        && inAllTrials([&](Trial& trial) { return trial.stands(value, wanted, layout); });
}

bool Identities::takesOneWay(OpId op)
{
    return m_device.function[op].block == kBody && !m_device.function[op].results.empty()
        && inAllTrials([&](Trial& trial) { return trial.takesOneWay(op); });
}

template <typename Holds>
bool Identities::inAllTrials(const Holds& holds)
{
    if (!m_isMade && !m_device.calls) {
        const auto whole = elementsOf(m_source.function);
        const auto pieces = elementsOf(m_device.function);
        if (whole && pieces && *whole + *pieces * m_device.mesh().deviceCount() <= kMostElements) {
            for (const std::uint64_t seed : kSeeds)
                m_trials.push_back(std::make_unique<Trial>(m_source, m_device, seed, m_stop));
        }
    }
    m_isMade = true;
    return !m_trials.empty() && std::all_of(m_trials.begin(), m_trials.end(), [&](const auto& trial) { return holds(*trial); });
}

} // namespace meshwright
