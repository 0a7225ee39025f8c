// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace meshwright {

/// The SHA-256 digest of `bytes` as 64 hexadecimal digits in lower case. Source: NIST FIPS 180-4.
std::string sha256Text(std::string_view bytes);

} // namespace meshwright
