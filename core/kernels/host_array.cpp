// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/host_array.h"

#include "core/kernels/narrow_float.h"

#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

namespace meshwright {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;

std::size_t alignmentOf(std::int64_t size)
{
    return static_cast<std::size_t>(size) >= 2 * kLargePage ? kLargePage : kAlignment;
}

std::byte* allocated(std::int64_t size)
{
    if (size <= 0)
        return nullptr;
    const auto bytes = static_cast<std::size_t>(size);
    auto* memory = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{alignmentOf(size)}));
#ifdef MADV_HUGEPAGE
    if (alignmentOf(size) == kLargePage)
        madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE); // advice: it does not matter when it is not taken
#endif
    return memory;
}

template <typename T>
T loadAs(const std::byte* at)
{
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}

template <typename T>
void storeAs(std::byte* at, T value)
{
    std::memcpy(at, &value, sizeof(T));
}

double loadElement(DType dtype, const std::byte* at)
{
    switch (dtype) {
    case DType::Pred:
    case DType::U8:
        return static_cast<double>(loadAs<std::uint8_t>(at));
    case DType::S8:
        return static_cast<double>(loadAs<std::int8_t>(at));
    case DType::S16:
        return static_cast<double>(loadAs<std::int16_t>(at));
    case DType::S32:
        return static_cast<double>(loadAs<std::int32_t>(at));
    case DType::S64:
        return static_cast<double>(loadAs<std::int64_t>(at));
    case DType::U16:
        return static_cast<double>(loadAs<std::uint16_t>(at));
    case DType::U32:
        return static_cast<double>(loadAs<std::uint32_t>(at));
    case DType::U64:
        return static_cast<double>(loadAs<std::uint64_t>(at));
    case DType::F16:
        return static_cast<double>(fromHalf(loadAs<std::uint16_t>(at)));
    case DType::BF16:
        return static_cast<double>(fromBfloat16(loadAs<std::uint16_t>(at)));
    case DType::F8E4M3FN:
        return static_cast<double>(fromE4m3(loadAs<std::uint8_t>(at)));
    case DType::F8E5M2:
        return static_cast<double>(fromE5m2(loadAs<std::uint8_t>(at)));
    case DType::F32:
        return static_cast<double>(loadAs<float>(at));
    case DType::F64:
        return loadAs<double>(at);
    default: // not computed with
        break;
    }
    return 0.0;
}

/// Cut towards zero, held at the type's bounds; NaN becomes 0.
template <typename T>
T held(double value)
{
    using Bounds = std::numeric_limits<T>;
    constexpr double kBeyond = 2.0 * static_cast<double>(std::uint64_t{1} << (Bounds::digits - 1));
    if (std::isnan(value))
        return 0;
    return value < static_cast<double>(Bounds::min()) ? Bounds::min() : value >= kBeyond ? Bounds::max() : static_cast<T>(value);
}

void storeElement(DType dtype, std::byte* at, double value)
{
    switch (dtype) {
    case DType::Pred:
        return storeAs(at, static_cast<std::uint8_t>(value != 0.0 ? 1 : 0));
    case DType::S8:
        return storeAs(at, held<std::int8_t>(value));
    case DType::S16:
        return storeAs(at, held<std::int16_t>(value));
    case DType::S32:
        return storeAs(at, held<std::int32_t>(value));
    case DType::S64:
        return storeAs(at, held<std::int64_t>(value));
    case DType::U8:
        return storeAs(at, held<std::uint8_t>(value));
    case DType::U16:
        return storeAs(at, held<std::uint16_t>(value));
    case DType::U32:
        return storeAs(at, held<std::uint32_t>(value));
    case DType::U64:
        return storeAs(at, held<std::uint64_t>(value));
    case DType::F16:
        return storeAs(at, halfBits(static_cast<float>(value)));
    case DType::BF16:
        return storeAs(at, bfloat16Bits(static_cast<float>(value)));
    case DType::F8E4M3FN:
        return storeAs(at, e4m3Bits(static_cast<float>(value)));
    case DType::F8E5M2:
        return storeAs(at, e5m2Bits(static_cast<float>(value)));
    case DType::F32:
        return storeAs(at, static_cast<float>(value));
    case DType::F64:
        return storeAs(at, value);
    default: // not computed with
        break;
    }
}

/// Calls `body` with the type as a constant, so that its loops are compiled for each type.
template <typename Body>
void withType(DType dtype, Body body)
{
    switch (dtype) {
    case DType::Pred:
        return body(std::integral_constant<DType, DType::Pred>{});
    case DType::S8:
        return body(std::integral_constant<DType, DType::S8>{});
    case DType::S16:
        return body(std::integral_constant<DType, DType::S16>{});
    case DType::S32:
        return body(std::integral_constant<DType, DType::S32>{});
    case DType::S64:
        return body(std::integral_constant<DType, DType::S64>{});
    case DType::U8:
        return body(std::integral_constant<DType, DType::U8>{});
    case DType::U16:
        return body(std::integral_constant<DType, DType::U16>{});
    case DType::U32:
        return body(std::integral_constant<DType, DType::U32>{});
    case DType::U64:
        return body(std::integral_constant<DType, DType::U64>{});
    case DType::F16:
        return body(std::integral_constant<DType, DType::F16>{});
    case DType::BF16:
        return body(std::integral_constant<DType, DType::BF16>{});
    case DType::F8E4M3FN:
        return body(std::integral_constant<DType, DType::F8E4M3FN>{});
    case DType::F8E5M2:
        return body(std::integral_constant<DType, DType::F8E5M2>{});
    case DType::F32:
        return body(std::integral_constant<DType, DType::F32>{});
    case DType::F64:
        return body(std::integral_constant<DType, DType::F64>{});
    default: // not computed with
        break;
    }
}

} // namespace

AlignedBytes::AlignedBytes(std::int64_t size)
    : m_data(allocated(size), Free{alignmentOf(size)})
    , m_size(size)
{
}

AlignedBytes::AlignedBytes(const AlignedBytes& other)
    : AlignedBytes(other.m_size)
{
    if (m_size > 0)
        std::memcpy(m_data.get(), other.m_data.get(), static_cast<std::size_t>(m_size));
}

AlignedBytes& AlignedBytes::operator=(const AlignedBytes& other)
{
    if (this != &other)
        *this = AlignedBytes(other);
    return *this;
}

void AlignedBytes::Free::operator()(std::byte* bytes) const
{
    ::operator delete[](bytes, std::align_val_t{alignment});
}

HostArray::HostArray()
    : HostArray(filled({}, 0.0))
{
}

HostArray::HostArray(TensorType type)
    : m_type(std::move(type))
    , m_bytes(m_type.bytes())
{
}

HostArray HostArray::of(TensorType type, std::span<const double> values)
{
    HostArray array(std::move(type));
    assert(static_cast<std::int64_t>(values.size()) == array.m_type.elements());
    withType(array.m_type.dtype, [&](auto dtype) {
        const std::int64_t width = byteSize(dtype);
        for (std::size_t i = 0; i < values.size(); ++i)
            storeElement(dtype, array.data() + static_cast<std::int64_t>(i) * width, values[i]);
    });
    return array;
}

HostArray HostArray::filled(TensorType type, double value)
{
    HostArray array(std::move(type));
    const std::int64_t width = byteSize(array.m_type.dtype);
    for (std::int64_t at = 0; at < array.bytes(); at += width)
        storeElement(array.m_type.dtype, array.data() + at, value);
    return array;
}

HostArray HostArray::fromBytes(TensorType type, std::span<const std::byte> bytes)
{
    HostArray array(std::move(type));
    assert(static_cast<std::int64_t>(bytes.size()) == array.bytes());
    if (!bytes.empty())
        std::memcpy(array.data(), bytes.data(), bytes.size());
    return array;
}

double HostArray::at(std::int64_t flatIndex) const
{
    assert(flatIndex >= 0 && flatIndex < m_type.elements());
    return loadElement(m_type.dtype, data() + flatIndex * byteSize(m_type.dtype));
}

std::vector<double> HostArray::values() const
{
    std::vector<double> result(static_cast<std::size_t>(m_type.elements()));
    withType(m_type.dtype, [&](auto dtype) {
        const std::int64_t width = byteSize(dtype);
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = loadElement(dtype, data() + static_cast<std::int64_t>(i) * width);
    });
    return result;
}

HostArray HostArray::converted(DType dtype) const
{
    if (dtype == m_type.dtype)
        return *this;
    return of({dtype, m_type.shape}, values());
}

HostArray HostArray::slice(const IndexBox& box) const
{
    HostArray part(TensorType{m_type.dtype, extentsOf(box)});
    const Shape origin(box.size(), 0);
    const Shape start = startsOf(box);
    copyBox(part.data(), {part.m_type.shape, origin}, data(), {m_type.shape, start}, part.m_type.shape, byteSize(m_type.dtype));
    return part;
}

void HostArray::assign(const IndexBox& box, const HostArray& part)
{
    assert(part.m_type.dtype == m_type.dtype && part.m_type.shape == extentsOf(box));
    const Shape origin(box.size(), 0);
    const Shape start = startsOf(box);
    copyBox(data(), {m_type.shape, start}, part.data(), {part.m_type.shape, origin}, part.m_type.shape, byteSize(m_type.dtype));
}

bool operator==(const HostArray& a, const HostArray& b)
{
    return a.m_type == b.m_type && (a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0);
}

void copyBox(std::byte* to, const CopyEnd& target, const std::byte* from, const CopyEnd& source,
    std::span<const std::int64_t> extent, std::int64_t elementBytes)
{
    const std::size_t rank = extent.size();
    assert(
        target.shape.size() == rank && target.start.size() == rank && source.shape.size() == rank && source.start.size() == rank);
    for (const std::int64_t size : extent) {
        if (size == 0)
            return;
    }
    // Trailing dimensions that are whole at both ends form one run with the dimension before them.
    std::int64_t runBytes = elementBytes;
    std::size_t outer = rank;
    std::int64_t targetStep = elementBytes;
    std::int64_t sourceStep = elementBytes;
    while (outer > 0) {
        const std::size_t dim = outer - 1;
        runBytes *= extent[dim];
        to += target.start[dim] * targetStep;
        from += source.start[dim] * sourceStep;
        targetStep *= target.shape[dim];
        sourceStep *= source.shape[dim];
        outer = dim;
        if (extent[dim] != target.shape[dim] || extent[dim] != source.shape[dim])
            break;
    }
    std::array<std::int64_t, 16> targetSteps{};
    std::array<std::int64_t, 16> sourceSteps{};
    std::array<std::int64_t, 16> index{};
    assert(outer <= index.size());
    for (std::size_t dim = outer; dim-- > 0;) {
        targetSteps[dim] = targetStep;
        sourceSteps[dim] = sourceStep;
        to += target.start[dim] * targetStep;
        from += source.start[dim] * sourceStep;
        targetStep *= target.shape[dim];
        sourceStep *= source.shape[dim];
    }
    for (;;) {
        std::memcpy(to, from, static_cast<std::size_t>(runBytes));
        std::size_t dim = outer;
        while (dim > 0) {
            --dim;
            to += targetSteps[dim];
            from += sourceSteps[dim];
            if (++index[dim] < extent[dim])
                break;
            to -= targetSteps[dim] * extent[dim];
            from -= sourceSteps[dim] * extent[dim];
            index[dim] = 0;
            if (dim == 0)
                return;
        }
        if (outer == 0)
            return;
    }
}

IndexBox wholeBox(const Shape& shape)
{
    IndexBox box;
    for (const std::int64_t size : shape)
        box.push_back({0, size});
    return box;
}

} // namespace meshwright
