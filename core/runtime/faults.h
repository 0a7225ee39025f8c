// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/type.h"
#include "core/support/result.h"
#include "core/support/stop_flag.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// Something that is to go wrong on purpose, on one device. It strikes in the middle of the step.
struct InjectedFault {
    enum class Kind : std::uint8_t {
        Fail, ///< something is thrown
        Memory, ///< memory runs out
        Nan, ///< the first element that the next instruction makes becomes NaN
        Stall, ///< the device stands still until the run is stopped
        Slow, ///< every instruction takes `factor` times as long, in each step
    };
    Kind kind = Kind::Fail;
    std::int64_t device = 0;
    std::int64_t step = 0; ///< counted from 0
    double factor = 1.0; ///< >= 1

    friend bool operator==(const InjectedFault&, const InjectedFault&) = default;
};

/// Reads `fail:device=3,step=10`; also `memory:`, `nan:` and `stall:` of the same form, and `slow:device=2,factor=3`. The step is 0 when it is
/// not given. Problems: MW1520 the text is not of these forms.
Result<InjectedFault> parseInjectedFault(std::string_view text);

/// What devices look out for, and what is to go wrong on them.
struct FaultOptions {
    std::vector<InjectedFault> injected = {};
    bool checkNumerics = false; ///< a value that is not finite where the operands were is a problem: MW1523

    bool any() const { return checkNumerics || !injected.empty(); }

    /// Nothing, or the faults on devices, or in steps, that there are not. Problems: MW1520.
    Problems problems(std::int64_t devices, std::int64_t steps) const;
};

/// The faults that are injected into one device's part of one step.
class DeviceFaults {
public:
    /// `options` and `stop` must outlive this.
    DeviceFaults(const FaultOptions& options, std::int64_t device, std::int64_t step, const StopFlag& stop);

    /// In the middle of the step: throws what a failing device throws.
    void strike();

    /// True when the device is to stand still from there on, until the run has failed or was stopped.
    bool stalls() const { return strikes(InjectedFault::Kind::Stall); }

    /// True after `strike`, until `hasNan`: the next result is to become NaN.
    bool wantsNan() const { return m_wantsNan; }
    void hasNan() { m_wantsNan = false; }

    /// Keeps the core busy as long as a device that is so much slower would after `cpuSeconds` of work.
    void lag(double cpuSeconds) const;
    bool lags() const { return m_factor > 1.0; }

private:
    bool strikes(InjectedFault::Kind kind) const;

    const FaultOptions& m_options;
    std::int64_t m_device;
    std::int64_t m_step;
    const StopFlag& m_stop;
    double m_factor = 1.0;
    bool m_wantsNan = false;
};

/// An element that is not a finite number.
struct NotFinite {
    Shape index;
    bool isNan = false; ///< else infinite
};

/// The first such element in the part of an array that begins at its origin and has these extents, row-major: NaN before infinity.
/// Nothing for elements of a type that has neither.
std::optional<NotFinite> firstNotFinite(const std::byte* data, const TensorType& type, const Shape& extents);

/// Makes the first element NaN. False when the type has none, or there is no element.
bool writeNan(std::byte* data, const TensorType& type);

} // namespace meshwright
