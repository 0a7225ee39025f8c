// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/python/placed_array.h"

#include "core/runtime/device_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace meshwright::python {

namespace {

/// Numbers types with their shapes, for keys.
std::uint64_t numberOf(const TensorType& type)
{
    static std::mutex mutex;
    static std::map<std::pair<DType, Shape>, std::uint64_t> known;
    const std::lock_guard lock(mutex);
    return known.try_emplace({type.dtype, type.shape}, known.size()).first->second;
}

/// Adds the elements of an array to those of another, of complex ones both parts.
void addTo(HostArray& sum, const HostArray& array)
{
    const DType dtype = sum.type().dtype;
    if (!isComplex(dtype))
        return combineInto(sum, array, ReduceKind::Sum);
    const TensorType parts{realType(dtype), {2 * sum.type().elements()}};
    const auto bytesOf = [](const HostArray& one) { return std::span(one.data(), static_cast<std::size_t>(one.bytes())); };
    HostArray made = HostArray::fromBytes(parts, bytesOf(sum));
    combineInto(made, HostArray::fromBytes(parts, bytesOf(array)), ReduceKind::Sum);
    sum = HostArray::fromBytes(sum.type(), bytesOf(made));
}

/// A move of an array into another layout.
class Move : public Work {
public:
    explicit Move(PlacementPointer target)
        : m_target(std::move(target))
    {
    }
    Result<std::vector<Pieces>> run(const std::vector<ArrayPointer>& arguments) override
    {
        return std::vector<Pieces>{piecesUnder(*arguments.front(), *m_target)};
    }
    double flops() const override { return 0.0; }

private:
    PlacementPointer m_target;
};

/// Calls `visit` for each work that is left to do until the array is there, what others need first.
void forEachPending(const ArrayPointer& array, const std::function<bool(Pending&)>& visit)
{
    std::vector<std::pair<ArrayPointer, bool>> stack{{array, false}};
    std::set<const Pending*> seen;
    while (!stack.empty()) {
        auto [at, argumentsDone] = stack.back();
        stack.pop_back();
        const std::shared_ptr<Pending> pending = at->pending();
        if (pending == nullptr || at->isReady())
            continue;
        if (argumentsDone) {
            if (!visit(*pending))
                return;
            continue;
        }
        if (!seen.insert(pending.get()).second)
            continue;
        stack.emplace_back(at, true);
        for (const ArrayPointer& argument : pending->arguments())
            stack.emplace_back(argument, false);
    }
}

} // namespace

Pending::Pending(std::shared_ptr<Work> work, std::vector<ArrayPointer> arguments, const std::vector<ArrayPointer>& results)
    : m_work(std::move(work))
    , m_arguments(std::move(arguments))
    , m_results(results.begin(), results.end())
{
    for (const ArrayPointer& argument : m_arguments)
        ++argument->m_waiting;
}

void Pending::release()
{
    for (const ArrayPointer& argument : m_arguments) {
        if (--argument->m_waiting == 0 && argument->m_deleted)
            argument->m_pieces.clear();
    }
    m_arguments.clear();
}

Result<Done> Pending::run()
{
    auto made = m_work->run(m_arguments);
    if (!made)
        return made.error();
    for (std::size_t i = 0; i < made->size(); ++i) {
        if (const ArrayPointer result = m_results[i].lock(); result != nullptr)
            result->setPieces(std::move((*made)[i]));
    }
    release();
    return Done{};
}

PlacedArray::PlacedArray(TensorType type, PlacementPointer placement, bool committed)
    : m_type(std::move(type))
    , m_placement(std::move(placement))
    , m_committed(committed)
    , m_key((numberOf(m_type) << 32) | (static_cast<std::uint64_t>(m_placement->number) << 1) | (committed ? 1U : 0U))
{
}

PlacedArray::~PlacedArray()
{
    // A chain of a thousand steps would end in a thousand nested destructors.
    std::vector<std::shared_ptr<Pending>> chain;
    if (m_pending != nullptr)
        chain.push_back(std::move(m_pending));
    while (!chain.empty()) {
        const std::shared_ptr<Pending> last = std::move(chain.back());
        chain.pop_back();
        if (last.use_count() > 1)
            continue;
        for (const ArrayPointer& argument : last->arguments()) {
            if (argument.use_count() == 1 && argument->m_pending != nullptr)
                chain.push_back(std::move(argument->m_pending));
        }
    }
}

ArrayPointer PlacedArray::of(HostArray whole, DeviceId device)
{
    auto array = std::make_shared<PlacedArray>(whole.type(), onDevice(device, whole.type().shape.size()), false);
    array->setPieces({std::make_shared<const HostArray>(std::move(whole))});
    return array;
}

void PlacedArray::markDeleted()
{
    m_deleted = true;
    if (m_waiting == 0)
        m_pieces.clear();
}

void PlacedArray::setPieces(Pieces pieces)
{
    m_pending.reset();
    if (!m_deleted || m_waiting > 0)
        m_pieces = std::move(pieces);
}

Piece PlacedArray::whole() const
{
    if (m_placement->sharding.isReplicated())
        return m_pieces.front();
    HostArray whole = wholePart(0);
    for (std::int64_t part = 1; part < m_placement->partCount(); ++part)
        addTo(whole, wholePart(part));
    return std::make_shared<const HostArray>(std::move(whole));
}

HostArray PlacedArray::wholePart(std::int64_t part) const
{
    HostArray whole(m_type);
    std::set<IndexBox> done; // not of pieces: of a constant, one may lie in several places
    for (std::size_t at = 0; at < m_pieces.size(); ++at) {
        const auto position = static_cast<std::int64_t>(at);
        const IndexBox box = m_placement->boxAt(m_type.shape, position);
        if (m_placement->partAt(position) == part && done.insert(box).second)
            whole.assign(box, *m_pieces[at]);
    }
    return whole;
}

double pendingFlops(const ArrayPointer& array)
{
    double flops = 0.0;
    forEachPending(array, [&](const Pending& pending) {
        flops += pending.work().flops();
        return true;
    });
    return flops;
}

Result<Done> compute(const ArrayPointer& array, double mostFlops)
{
    if (array->isReady())
        return Done{};
    if (const double flops = pendingFlops(array); flops > mostFlops) {
        const double digit = std::pow(10.0, std::floor(std::log10(flops)));
        return Problem{"MW1560", fmt::format("the value takes {:.2g} FLOPs, the limit is {:.2g}", flops, mostFlops),
            fmt::format("allow it with --flops {:g}", std::ceil(flops / digit) * digit)};
    }
    Result<Done> done = Done{};
    forEachPending(array, [&](Pending& pending) {
        done = pending.run();
        return done.has_value();
    });
    return done;
}

Result<std::vector<ArrayPointer>> ask(std::shared_ptr<Work> work, std::vector<ArrayPointer> arguments,
    const std::vector<TensorType>& types, const std::vector<PlacementPointer>& placements, bool committed)
{
    bool isSmall = work->flops() <= kFewFlops;
    for (const ArrayPointer& argument : arguments)
        isSmall = isSmall && argument->isReady() && argument->type().elements() <= kFewElements;
    std::vector<ArrayPointer> results;
    for (std::size_t i = 0; i < types.size(); ++i) {
        results.push_back(std::make_shared<PlacedArray>(types[i], placements[i], committed));
        isSmall = isSmall && types[i].elements() <= kFewElements;
    }
    const auto pending = std::make_shared<Pending>(std::move(work), std::move(arguments), results);
    for (const ArrayPointer& result : results)
        result->setPending(pending);
    if (isSmall) {
        if (const auto done = pending->run(); !done)
            return done.error();
    }
    return results;
}

Result<ArrayPointer> moved(const ArrayPointer& array, const PlacementPointer& placement, bool committed)
{
    auto results = ask(std::make_shared<Move>(placement), {array}, {array->type()}, {placement}, committed);
    if (!results)
        return results.error();
    return results->front();
}

Pieces piecesUnder(const PlacedArray& array, const Placement& placement)
{
    if (&placement == array.placement().get())
        return array.pieces();
    const Shape& shape = array.type().shape;
    std::map<std::pair<std::int64_t, IndexBox>, Piece>
        made; // by the part of a sum, of which the first one is the array and the others are nothing
    if (array.placement()->partCount() == 1) {
        for (std::size_t i = 0; i < array.pieces().size(); ++i)
            made.try_emplace({0, array.placement()->boxAt(shape, static_cast<std::int64_t>(i))}, array.pieces()[i]);
    }
    Pieces pieces;
    Piece whole;
    for (std::int64_t position = 0; position < placement.deviceCount(); ++position) {
        const IndexBox box = placement.boxAt(shape, position);
        const std::int64_t part = placement.partAt(position);
        Piece& piece = made[{part, box}];
        if (piece == nullptr && part > 0) {
            piece = std::make_shared<const HostArray>(HostArray::filled({array.type().dtype, extentsOf(box)}, 0.0));
        } else if (piece == nullptr) {
            if (whole == nullptr)
                whole = array.whole();
            piece = box == wholeBox(shape) ? whole : std::make_shared<const HostArray>(whole->slice(box));
        }
        pieces.push_back(piece);
    }
    return pieces;
}

} // namespace meshwright::python
