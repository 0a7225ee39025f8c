// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/verify.h"

#include "core/runtime/evaluate.h"
#include "core/runtime/virtual_devices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {

namespace {

double epsilonOf(DType dtype)
{
    switch (dtype) {
    case DType::F64:
        return std::numeric_limits<double>::epsilon();
    case DType::BF16:
        return 1.0 / 128.0;
    case DType::F16:
        return 1.0 / 1024.0;
    default:
        return static_cast<double>(std::numeric_limits<float>::epsilon());
    }
}

/// The largest absolute difference; infinite where one is finite and the other is not, or they are different infinities.
double largestDifference(const std::vector<double>& values, const std::vector<double>& reference)
{
    double largest = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool alike = values[i] == reference[i] || (std::isnan(values[i]) && std::isnan(reference[i]));
        if (alike)
            continue;
        const double difference = std::fabs(values[i] - reference[i]);
        largest = std::isfinite(difference) ? std::max(largest, difference) : std::numeric_limits<double>::infinity();
    }
    return largest;
}

double largestFinite(const std::vector<double>& values)
{
    double largest = 0.0;
    for (const double value : values) {
        if (std::isfinite(value))
            largest = std::max(largest, std::fabs(value));
    }
    return largest;
}

} // namespace

double Verification::maxAbsError() const
{
    double largest = 0.0;
    for (const VerifiedTensor& tensor : tensors)
        largest = std::max(largest, tensor.shardedError);
    return largest;
}

double Verification::maxRelError() const
{
    double largest = 0.0;
    for (const VerifiedTensor& tensor : tensors)
        largest = std::max(largest, tensor.scale > 0.0 ? tensor.shardedError / tensor.scale : tensor.shardedError);
    return largest;
}

void Verification::add(std::int64_t step, const std::vector<VerifiedTensor>& outcome)
{
    checkedSteps.push_back(step);
    const auto share = [](const VerifiedTensor& tensor) {
        return tensor.shardedError == 0.0 ? 0.0
                                          : tensor.shardedError / std::max(tensor.tolerance, std::numeric_limits<double>::min());
    };
    for (const VerifiedTensor& tensor : outcome) {
        passed = passed && tensor.passed;
        const auto known = std::find_if(
            tensors.begin(), tensors.end(), [&](const VerifiedTensor& other) { return other.name == tensor.name; });
        if (known == tensors.end())
            tensors.push_back(tensor);
        else if (share(tensor) > share(*known))
            *known = tensor;
    }
}

Result<std::vector<VerifiedTensor>> verifyStep(const Function& function, std::span<const HostArray> arguments,
    std::span<const HostArray> sharded, std::int64_t devices, const std::stop_token& stop,
    std::span<const NamedMesh> meshes)
{
    const auto unsharded = evaluate(function, arguments, {.stop = stop, .meshes = meshes});
    if (!unsharded)
        return unsharded.error();
    const auto reference = evaluate(function, arguments, {.inDouble = true, .stop = stop, .meshes = meshes});
    if (!reference)
        return reference.error();

    std::vector<VerifiedTensor> outcome;
    for (std::size_t i = 0; i < sharded.size(); ++i) {
        if (stop.stop_requested())
            return VirtualDevices::interrupted();
        const std::vector<double> exact = (*reference)[i].values();
        VerifiedTensor tensor;
        tensor.name = i < function.resultNames.size() ? function.resultNames[i] : "result " + std::to_string(i);
        tensor.shardedError = largestDifference(sharded[i].values(), exact);
        tensor.unshardedError = largestDifference((*unsharded)[i].values(), exact);
        tensor.scale = largestFinite(exact);
        tensor.tolerance
            = 4.0 * tensor.unshardedError + static_cast<double>(devices) * epsilonOf(sharded[i].type().dtype) * tensor.scale;
        // Where one device overflows too, the sharded run must overflow alike.
        tensor.passed = std::isfinite(tensor.tolerance)
            ? tensor.shardedError <= tensor.tolerance
            : std::isfinite(largestDifference(sharded[i].values(), (*unsharded)[i].values()));
        outcome.push_back(std::move(tensor));
    }
    return outcome;
}

} // namespace meshwright
