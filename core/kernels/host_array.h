// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/sharding/layout.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace meshwright {

/// Memory that starts at a multiple of 64 bytes; its content is undefined until it is written. Copies are deep. Large memory lies in large
/// pages, where the system has some: walking through a matrix then costs no look-ups of addresses.
class AlignedBytes {
public:
    AlignedBytes() = default;
    explicit AlignedBytes(std::int64_t size);
    AlignedBytes(const AlignedBytes& other);
    AlignedBytes& operator=(const AlignedBytes& other);
    AlignedBytes(AlignedBytes&&) noexcept = default;
    AlignedBytes& operator=(AlignedBytes&&) noexcept = default;
    ~AlignedBytes() = default;

    std::byte* data() { return m_data.get(); }
    const std::byte* data() const { return m_data.get(); }
    std::int64_t size() const { return m_size; }

private:
    struct Free {
        Free() = default;
        explicit Free(std::size_t alignedTo)
            : alignment(alignedTo)
        {
        }
        void operator()(std::byte* bytes) const;
        std::size_t alignment; // of nothing: any
    };
    std::unique_ptr<std::byte[], Free> m_data;
    std::int64_t m_size = 0;
};

/// A whole array in the host's memory, row-major.
class HostArray {
public:
    /// A scalar 0.0 of type f32.
    HostArray();

    /// Content undefined.
    explicit HostArray(TensorType type);

    /// Converts `values` (row-major) to the type's elements: nearest even for floating types, cut towards zero for integers,
    /// not zero for truth values. Precondition: as many values as elements.
    static HostArray of(TensorType type, std::span<const double> values);

    /// Every element the same.
    static HostArray filled(TensorType type, double value);

    /// Takes the elements' bytes as they are, row-major, in the machine's order. Precondition: as many as the type needs.
    static HostArray fromBytes(TensorType type, std::span<const std::byte> bytes);

    const TensorType& type() const { return m_type; }
    std::byte* data() { return m_bytes.data(); }
    const std::byte* data() const { return m_bytes.data(); }
    std::int64_t bytes() const { return m_bytes.size(); }

    /// The elements as the C++ type of the same width. Precondition: `sizeof(T)` is that of an element.
    template <typename T>
    std::span<T> as()
    {
        assert(static_cast<std::int64_t>(sizeof(T)) == byteSize(m_type.dtype));
        return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(m_type.elements())};
    }
    template <typename T>
    std::span<const T> as() const
    {
        assert(static_cast<std::int64_t>(sizeof(T)) == byteSize(m_type.dtype));
        return {reinterpret_cast<const T*>(data()), static_cast<std::size_t>(m_type.elements())};
    }

    /// One element, or all, as doubles (64-bit integers may be rounded).
    double at(std::int64_t flatIndex) const;
    std::vector<double> values() const;

    /// The same elements in another type, converted as `of` says.
    HostArray converted(DType dtype) const;

    /// A part, and the reverse. Precondition: the box lies within the array and `part` has the box's shape and the array's element type.
    HostArray slice(const IndexBox& box) const;
    void assign(const IndexBox& box, const HostArray& part);

    /// Same type and same bytes.
    friend bool operator==(const HostArray& a, const HostArray& b);

private:
    TensorType m_type;
    AlignedBytes m_bytes;
};

/// One end of a rectangular copy: an array of `shape` in row-major order, and where the rectangle starts in it.
struct CopyEnd {
    std::span<const std::int64_t> shape;
    std::span<const std::int64_t> start;
};

/// Copies a rectangle of `extent` elements, of any rank. Preconditions: all ranks equal, the rectangle lies within both arrays,
/// the memory does not overlap.
void copyBox(std::byte* to, const CopyEnd& target, const std::byte* from, const CopyEnd& source,
    std::span<const std::int64_t> extent, std::int64_t elementBytes);

/// The whole of an array as a box.
IndexBox wholeBox(const Shape& shape);

} // namespace meshwright
