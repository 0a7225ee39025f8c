// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/support/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace meshwright {

/// Where the elements of an NPY file are.
struct NpyLayout {
    TensorType type;
    bool columnsFirst = false;
    bool isForeign = false; ///< bytes in the other order than this machine's
    std::size_t offset = 0; ///< of the first element
};

/// What the header at the beginning of an NPY file of `fileBytes` bytes says. Problems: MW1530 to MW1533, as parseNpy.
Result<NpyLayout> npyLayout(std::string_view begin, std::uint64_t fileBytes, const std::string& file);

/// The array in the bytes of an NPY file: versions 1 to 3, any order of bytes, rows or columns first. Elements are truth values, integers
/// of 1 to 8 bytes, floating values of 2 to 8, pairs of floating values, and what NumPy writes for ml_dtypes' narrow ones: `V2` is bfloat16,
/// `V1` float8_e4m3fn, `f1` float8_e5m2.
///
/// Problems, with `file`: MW1530 it is not an NPY file, MW1531 its header is damaged, MW1532 elements of a type that there is no other name
/// for here, MW1533 it has more or fewer bytes than its shape needs.
/// Source: numpy/numpy, numpy/lib/_format_impl.py.
Result<HostArray> parseNpy(std::string_view bytes, const std::string& file);

/// The same, from a file. Problems: also those of `readFile`.
Result<HostArray> readNpy(const std::filesystem::path& path);

/// The bytes of an NPY file of version 1 (2 for a header that is too long for it), rows first, in the machine's order of bytes.
/// Precondition: the type is computable or complex, and not one of 4 bits.
std::string npyBytes(const HostArray& array);

} // namespace meshwright
