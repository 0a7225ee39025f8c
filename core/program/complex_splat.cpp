// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/complex_splat.h"

#include <complex>
#include <memory>
#include <string>

namespace meshwright {

ConstantData complexSplat(DType dtype, double real)
{
    const std::complex<double> wide = real;
    const std::complex<float> narrow(wide);
    const void* bytes = dtype == DType::C64 ? static_cast<const void*>(&narrow) : &wide;
    return {std::make_shared<const std::string>(static_cast<const char*>(bytes), static_cast<std::size_t>(byteSize(dtype)))};
}

} // namespace meshwright
