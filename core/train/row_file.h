// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/train/byte_stream.h"

#include <optional>
#include <span>

namespace meshwright {

/// An array in a file, whose first dimension counts rows. Rows are read when they are asked for: a RowFile holds
/// none of them, however large the file.
class RowFile {
public:
    /// An IDX file (MNIST's format: http://yann.lecun.com/exdb/mnist) or an NPY file with its rows first, either also compressed with gzip (then
    /// it is unpacked once into a temporary file). Nothing: it is neither, by its first bytes.
    ///
    /// Problems: those of `openUnpacked`; MW1610 a damaged IDX header; MW1611 elements that are not real numbers, or no dimension; MW1612 the
    /// file has more or fewer bytes than its header says; MW1531 to MW1533 of NPY; MW1602 there are no rows.
    static Result<std::optional<RowFile>> open(const std::filesystem::path& path);

    /// Numbers of type f32 that were appended to a temporary file, row by row. Precondition: it has rows * columns of them.
    RowFile(std::shared_ptr<OpenFile> file, std::int64_t rows, std::int64_t columns);

    const std::string& name() const { return m_name; }
    std::int64_t rows() const { return m_rows; }
    std::int64_t columns() const { return m_columns; } ///< elements of a row
    std::size_t rank() const { return m_rank; }
    DType dtype() const { return m_dtype; }

    /// Rows that follow each other, as the nearest f32. Preconditions: the rows exist, `into` has `count` rows of columns().
    /// Problems: MW1003, MW1612 the file became shorter.
    Result<Done> read(std::int64_t first, std::int64_t count, std::span<float> into) const;

private:
    RowFile() = default;
    static Result<RowFile> idx(std::shared_ptr<OpenFile> file, const std::string& name);
    static Result<RowFile> npy(std::shared_ptr<OpenFile> file, const std::string& name, std::string_view begin);
    Result<Done> setShape(const Shape& shape);

    std::shared_ptr<OpenFile> m_file;
    std::string m_name;
    DType m_dtype = DType::F32;
    std::uint64_t m_offset = 0;
    std::int64_t m_rows = 0;
    std::int64_t m_columns = 1;
    std::size_t m_rank = 2;
    bool m_isForeign = false; ///< bytes in the other order than this machine's
};

} // namespace meshwright
