// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/row_file.h"

#include "core/kernels/host_array.h"
#include "core/kernels/npy.h"
#include "core/support/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace meshwright {

namespace {

constexpr std::size_t kLongestHeader = std::size_t{1} << 20;

constexpr std::array<std::pair<unsigned char, DType>, 6> kIdxTypes
    = {{{0x08, DType::U8}, {0x09, DType::S8}, {0x0b, DType::S16}, {0x0c, DType::S32}, {0x0d, DType::F32}, {0x0e, DType::F64}}};

bool looksLikeIdx(std::string_view begin)
{
    return begin.size() >= 4 && begin[0] == '\0' && begin[1] == '\0';
}

template <typename T>
void convertRow(const char* bytes, bool isForeign, std::span<float> into)
{
    for (std::size_t i = 0; i < into.size(); ++i) {
        std::array<char, sizeof(T)> element;
        std::memcpy(element.data(), bytes + i * sizeof(T), sizeof(T));
        if (isForeign)
            std::reverse(element.begin(), element.end());
        into[i] = static_cast<float>(std::bit_cast<T>(element));
    }
}

/// Any type, through HostArray.
void convertAnyRow(DType dtype, std::string& bytes, bool isForeign, std::span<float> into)
{
    const auto width = static_cast<std::size_t>(byteSize(dtype));
    for (std::size_t at = 0; isForeign && at < bytes.size(); at += width)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
    const HostArray array
        = HostArray::fromBytes({dtype, {static_cast<std::int64_t>(into.size())}}, std::as_bytes(std::span(bytes)));
    for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = static_cast<float>(array.at(static_cast<std::int64_t>(i)));
}

} // namespace

RowFile::RowFile(std::shared_ptr<OpenFile> file, std::int64_t rows, std::int64_t columns)
    : m_file(std::move(file))
    , m_name(m_file->name())
    , m_rows(rows)
    , m_columns(columns)
{
}

Result<std::optional<RowFile>> RowFile::open(const std::filesystem::path& path)
{
    auto file = openUnpacked(path);
    if (!file)
        return file.error();
    std::string begin(kLongestHeader, '\0');
    const auto got = (*file)->read(0, begin.data(), begin.size());
    if (!got)
        return got.error();
    begin.resize(*got);
    const bool isNpy = begin.starts_with("\x93NUMPY");
    if (!isNpy && !looksLikeIdx(begin))
        return std::optional<RowFile>{};
    auto rows = isNpy ? npy(*std::move(file), path.string(), begin) : idx(*std::move(file), path.string());
    if (!rows)
        return inFile(rows.error(), path.string());
    return std::optional<RowFile>(*std::move(rows));
}

/// Splits the shape into rows and what is in a row.
Result<Done> RowFile::setShape(const Shape& shape)
{
    if (shape.empty() || isComplex(m_dtype))
        return Problem{"MW1611", fmt::format("it holds {}, which has no rows of real numbers", typeText({m_dtype, shape})),
            "give an array of at least one dimension: the rows come first"};
    m_rank = shape.size();
    m_rows = shape.front();
    std::optional<std::int64_t> columns = 1;
    for (std::size_t dim = 1; dim < shape.size(); ++dim)
        columns = columns ? checkedMultiply(*columns, shape[dim]) : std::nullopt;
    auto bytes = columns ? checkedMultiply(*columns, m_rows) : std::nullopt;
    bytes = bytes ? checkedMultiply(*bytes, byteSize(m_dtype)) : std::nullopt;
    const std::uint64_t there = m_file->bytes() - std::min(m_file->bytes(), m_offset);
    if (!bytes || static_cast<std::uint64_t>(*bytes) != there)
        return Problem{"MW1612",
            fmt::format("{} needs {} bytes, the file has {}", typeText({m_dtype, shape}),
                bytes ? std::to_string(*bytes) : "too many", there),
            "get the file again: it was cut or changed"};
    m_columns = *columns;
    if (m_rows == 0 || m_columns == 0)
        return Problem{"MW1602", "there are no rows", "give a file with one row for each example"};
    return Done{};
}

Result<RowFile> RowFile::idx(std::shared_ptr<OpenFile> file, const std::string& name)
{
    RowFile rows;
    rows.m_file = std::move(file);
    rows.m_name = name;
    rows.m_isForeign = std::endian::native == std::endian::little;
    std::array<unsigned char, 4 + 4 * 255> header = {};
    const auto got = rows.m_file->read(0, reinterpret_cast<char*>(header.data()), header.size());
    if (!got)
        return got.error();
    const auto* type
        = std::find_if(kIdxTypes.begin(), kIdxTypes.end(), [&](const auto& known) { return known.first == header[2]; });
    if (type == kIdxTypes.end())
        return Problem{"MW1610", fmt::format("0x{:02x} is not an element type of the IDX format", header[2]),
            "is this an IDX file? It begins with two zeros, the type and the number of dimensions"};
    const std::size_t rank = header[3];
    rows.m_offset = 4 + 4 * rank;
    if (*got < rows.m_offset)
        return Problem{"MW1610", fmt::format("the file ends in its header of {} dimensions", rank), "get the file again"};
    rows.m_dtype = type->second;
    Shape shape;
    for (std::size_t dim = 0; dim < rank; ++dim) {
        std::int64_t size = 0;
        for (std::size_t i = 0; i < 4; ++i)
            size = size << 8 | header[4 + 4 * dim + i];
        shape.push_back(size);
    }
    if (auto good = rows.setShape(shape); !good)
        return good.error();
    return rows;
}

Result<RowFile> RowFile::npy(std::shared_ptr<OpenFile> file, const std::string& name, std::string_view begin)
{
    RowFile rows;
    rows.m_file = std::move(file);
    rows.m_name = name;
    const auto layout = npyLayout(begin, rows.m_file->bytes(), name);
    if (!layout)
        return layout.error();
    rows.m_dtype = layout->type.dtype;
    rows.m_offset = layout->offset;
    rows.m_isForeign = layout->isForeign;
    if (auto good = rows.setShape(layout->type.shape); !good)
        return good.error();
    if (layout->columnsFirst && rows.m_rank > 1)
        return Problem{"MW1611", "its columns come first (Fortran's order), so rows are not contiguous",
            "save it as numpy.ascontiguousarray(array)"};
    return rows;
}

Result<Done> RowFile::read(std::int64_t first, std::int64_t count, std::span<float> into) const
{
    assert(first >= 0 && count >= 0 && first + count <= m_rows && static_cast<std::int64_t>(into.size()) == count * m_columns);
    const auto rowBytes = static_cast<std::uint64_t>(m_columns * byteSize(m_dtype));
    std::string bytes(static_cast<std::size_t>(count) * rowBytes, '\0');
    const auto got = m_file->read(m_offset + static_cast<std::uint64_t>(first) * rowBytes, bytes.data(), bytes.size());
    if (!got)
        return got.error();
    if (*got < bytes.size())
        return Problem{
            "MW1612", fmt::format("the file ends before row {}: it was cut while it was read", first + count), {}, Place{m_name}};
    if (m_dtype == DType::U8)
        convertRow<std::uint8_t>(bytes.data(), false, into);
    else if (m_dtype == DType::F32)
        convertRow<float>(bytes.data(), m_isForeign, into);
    else if (m_dtype == DType::F64)
        convertRow<double>(bytes.data(), m_isForeign, into);
    else
        convertAnyRow(m_dtype, bytes, m_isForeign, into);
    return Done{};
}

} // namespace meshwright
