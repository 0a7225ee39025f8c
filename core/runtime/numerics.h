// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/kernel.h"
#include "core/schedule/schedule.h"
#include "core/sharding/layout.h"

#include <functional>
#include <optional>
#include <string>

namespace meshwright {

/// Looks, on one device, for the instruction that first makes a value that is not a finite number. NaN is always reported; infinity only where
/// nothing that the instruction reads is infinite already (a mask of -inf is meant so). Padding is left out.
class NumericsCheck {
public:
    /// The part of a whole array that a value's piece on this device stands for; of a value without a layout the piece itself.
    using PartOf = std::function<IndexBox(ValueId)>;

    /// `function` must outlive this.
    NumericsCheck(const Function& function, PartOf partOf);

    /// What is wrong with the arguments: "layers.0.w is NaN at [0, 3]".
    std::optional<std::string> checkArguments(Addresses addresses) const;

    /// Around an instruction that is not a loop. The text names the value, and the first index in the device's piece and in the whole.
    void before(const Instruction& instruction, Addresses addresses);
    std::optional<std::string> after(const Instruction& instruction, Addresses addresses) const;

private:
    std::optional<std::string> problemOf(ValueId value, Addresses addresses, bool infinityIsMeant) const;
    bool readsInfinity(const Instruction& instruction, Addresses addresses) const;
    bool isInfiniteConstant(ValueId value) const;
    Shape extentsOf(ValueId value) const;

    const Function& m_function;
    PartOf m_partOf;
    bool m_infinityIsMeant = false;
};

/// The values that an instruction leaves in memory.
std::vector<ValueId> valuesMadeBy(const Function& function, const Instruction& instruction);

} // namespace meshwright
