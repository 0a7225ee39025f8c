// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/op.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

/// What the members of a group must agree on when they meet in a collective, in so few bytes, always the same number, that it goes before
/// what processes send each other.
struct CollectiveAgreement {
    enum Part : std::uint8_t { Op, ElementType, Shape, Attributes, Order, PartCount };
    std::array<std::uint64_t, PartCount> hashes{};
    std::array<char, 216> description{}; ///< for people; what does not fit is left out
};

/// `attributes`' cause does not count. `text` says which collective it is: "all_reduce of loss".
CollectiveAgreement agreementOf(OpKind kind, const TensorType& operand, const TensorType& result,
    const CollectiveAttributes& attributes, std::string_view text, std::string_view description);

/// In what they differ, in a word; empty when they agree.
std::string differenceOf(const CollectiveAgreement& a, const CollectiveAgreement& b);

std::string descriptionOf(const CollectiveAgreement& agreement);

} // namespace meshwright
