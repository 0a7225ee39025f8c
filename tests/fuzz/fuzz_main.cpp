// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/targets.h"

#include <cstddef>
#include <cstdint>

/// libFuzzer's entry; MESHWRIGHT_FUZZ_TARGET is one of the functions of targets.h.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    meshwright::fuzz::MESHWRIGHT_FUZZ_TARGET(std::string_view(reinterpret_cast<const char*>(data), size));
    return 0;
}
