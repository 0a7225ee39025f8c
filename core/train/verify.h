// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/host_array.h"
#include "core/program/program.h"
#include "core/support/result.h"

#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace meshwright {

/// How a checked tensor compares with the reference in double precision.
struct VerifiedTensor {
    std::string name;
    double shardedError = 0.0; ///< largest absolute error of the sharded run
    double unshardedError = 0.0; ///< of the run on one device, in the same types
    double tolerance
        = 0.0; ///< 4 * unshardedError + devices * eps * scale; more in 16 bits and of a single number, see verifyStep
    double scale = 0.0; ///< largest absolute value of the reference
    std::int64_t proved = 0; ///< elements that are finite on one device; none where zeros would be within the tolerance too
    double change
        = 1.0; ///< of an array that is replaced: the part of the reference's change that the sharded run made; 1 where no change can tell
    bool counts = false; ///< an accuracy: its errors are rows that rounding has turned
    bool passed = true;
};

/// Every checked step starts from the state of the sharded run, so errors of different steps do not add up.
struct Verification {
    std::vector<std::int64_t> checkedSteps;
    std::vector<VerifiedTensor> tensors; ///< for each tensor its worst checked step
    bool passed = true;

    /// False where no tensor proves anything, or there was none: then nothing is known of the sharded run.
    bool provesAnything() const { return unproved() < tensors.size(); }
    std::size_t unproved() const; ///< tensors that prove nothing
    double maxAbsError() const;
    double maxRelError()
        const; ///< error over the tensor's scale, of those that prove something and do not count; and of those that differ
    /// `equal (largest error 1.2e-07 of the tensor's scale)`, with the count of tensors that prove nothing, or that nothing was proved.
    std::string text() const;

    /// Adds the outcome of one more step.
    void add(std::int64_t step, const std::vector<VerifiedTensor>& outcome);
};

/// Compares what a sharded run of `function` made of `arguments` with two runs of it on one device: one in the program's own types, one in double
/// precision. Integers that are made of integers alone have to be the same. Another tensor passes when its error against the latter is at most 4 times that of the former (8 times in 16 bits, where devices round parts of
/// sums that one device does not have) plus `devices` roundings of its largest value; what is not finite in the reference must be so, alike, in the sharded run. A single number, whose error on one device may be small
/// by chance, has a rounding of the narrowest type (of 16 bits and more) besides: of its value, or for accuracy, where a token more or less is right, of 1. An accuracy that is more than that apart may be so
/// by the rows in which another number is within 4 such roundings of the largest one.
///
/// A tensor that is more than that apart is allowed 4 times as much besides as runs from arguments that are one rounding off are from the reference, in
/// double precision and in the program's own types, four of each: a sum of many numbers that is next to nothing has one device's error only by chance, and
/// another order of the sum has another one; and in a loop roundings grow with the steps, so that one run says little of another.
///
/// A tensor that is more than that apart and is made of other results (Adam's new parameter of its new moments) is judged by what was made of
/// those: all runs on one device take them as the sharded run has them, and they are judged by themselves. Adam divides a gradient's moments by each other, so that
/// where the true gradient is next to nothing its rounding alone says how far, and which way, a parameter goes.
///
/// An array that takes the place of an argument (`donations`) has to move as well: a change of less than a rounding of the largest value would be within
/// the tolerance if nothing moved at all. Where one device in the program's own types goes along with the reference's change, by the projection on it and
/// to a tenth, the sharded run has to go by a half of it and by one and a half at most, by the moments that it has itself.
///
/// `meshes` are those of the function's program; only manual computations need them.
///
/// Problems: those of `evaluate`, MW1507 included.
Result<std::vector<VerifiedTensor>> verifyStep(const Function& function, std::span<const HostArray> arguments,
    std::span<const HostArray> sharded, std::int64_t devices, const std::stop_token& stop = {},
    std::span<const NamedMesh> meshes = {});

} // namespace meshwright
