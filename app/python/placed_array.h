// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/python/placement.h"
#include "core/kernels/host_array.h"

#include <memory>
#include <vector>

namespace meshwright::python {

class PlacedArray;
using ArrayPointer = std::shared_ptr<PlacedArray>;
/// One device's part of an array. Replicas are one object: pieces are never written to.
using Piece = std::shared_ptr<const HostArray>;
/// The pieces of an array by position of its mesh.
using Pieces = std::vector<Piece>;

/// What makes arrays of arrays: a program, or a move into another layout.
class Work {
public:
    virtual ~Work() = default;
    /// The pieces of each result. The arguments have their pieces. Problems: those of running.
    virtual Result<std::vector<Pieces>> run(const std::vector<ArrayPointer>& arguments) = 0;
    /// Floating-point operations of a run, on all devices together, as far as they matter for whether to begin it.
    virtual double flops() const = 0;
};

inline constexpr std::int64_t kFewElements = 1 << 14; ///< arrays of so few are computed at once, by the caller
inline constexpr double kFewFlops = 1e6;

/// Work that was asked for and not done: its results were handed out. Its arguments keep their pieces until it is, deleted or not.
class Pending {
public:
    Pending(std::shared_ptr<Work> work, std::vector<ArrayPointer> arguments, const std::vector<ArrayPointer>& results);
    ~Pending() { release(); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

    /// Problems: those of `Work::run`.
    Result<Done> run();

    const Work& work() const { return *m_work; }
    const std::vector<ArrayPointer>& arguments() const { return m_arguments; }

private:
    void release();

    std::shared_ptr<Work> m_work;
    std::vector<ArrayPointer> m_arguments;
    std::vector<std::weak_ptr<PlacedArray>> m_results;
};

/// An array outside of a program: its type, where it lies, and its pieces as soon as somebody looks at them.
class PlacedArray {
public:
    /// With all pieces: of a whole array, one device's.
    static ArrayPointer of(HostArray whole, DeviceId device);
    PlacedArray(TensorType type, PlacementPointer placement, bool committed);
    /// Gives back a long chain of work that was never done without recursion.
    ~PlacedArray();
    PlacedArray(const PlacedArray&) = delete;
    PlacedArray& operator=(const PlacedArray&) = delete;

    const TensorType& type() const { return m_type; }
    const PlacementPointer& placement() const { return m_placement; }
    bool isCommitted() const { return m_committed; }
    bool isReady() const { return !m_pieces.empty(); }
    bool isDeleted() const { return m_deleted; }
    void markDeleted(); ///< the pieces are given back, as soon as no work waits for them: the array was donated

    /// The same for all arrays that a program cannot tell apart.
    std::uint64_t key() const { return m_key; }

    const Pieces& pieces() const { return m_pieces; }
    void setPieces(Pieces pieces);
    void setPending(std::shared_ptr<Pending> pending) { m_pending = std::move(pending); }
    const std::shared_ptr<Pending>& pending() const { return m_pending; }

    /// The whole array; the piece itself where one device holds all. Precondition: isReady().
    Piece whole() const;

private:
    friend class Pending;
    HostArray wholePart(std::int64_t part) const; ///< of an array that is a sum: one of its parts

    TensorType m_type;
    PlacementPointer m_placement;
    bool m_committed;
    bool m_deleted = false;
    std::int64_t m_waiting = 0; ///< works that will read it
    std::uint64_t m_key;
    Pieces m_pieces;
    std::shared_ptr<Pending> m_pending;
};

/// Floating-point operations that are left to do until the array is there.
double pendingFlops(const ArrayPointer& array);

/// Does what is left to do. Problems: those of `Work::run`; MW1560 more than `mostFlops` would have to be done.
Result<Done> compute(const ArrayPointer& array, double mostFlops);

/// Asks for work whose results have these types and places. Work of few elements whose arguments are there is done at once.
Result<std::vector<ArrayPointer>> ask(std::shared_ptr<Work> work, std::vector<ArrayPointer> arguments,
    const std::vector<TensorType>& types, const std::vector<PlacementPointer>& placements, bool committed);

/// The same array elsewhere; nothing moves where it lies so already.
Result<ArrayPointer> moved(const ArrayPointer& array, const PlacementPointer& placement, bool committed);

/// An array's pieces under another placement.
Pieces piecesUnder(const PlacedArray& array, const Placement& placement);

} // namespace meshwright::python
