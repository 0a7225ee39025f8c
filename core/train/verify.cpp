// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/verify.h"

#include "core/devices/virtual_devices.h"
#include "core/program/builder.h"
#include "core/program/transform.h"
#include "core/runtime/evaluate.h"
#include "core/support/counted.h"
#include "core/train/function_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>

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

/// Of the narrowest type of 16 bits and more that a function computes in.
double coarsestEpsilon(const Function& function)
{
    double coarsest = 0.0;
    for (const Value& value : function.values) {
        if (isFloating(value.type.dtype) && byteSize(value.type.dtype) > 1)
            coarsest = std::max(coarsest, epsilonOf(value.type.dtype));
    }
    return coarsest;
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

/// A function's results on one device, in its own types and in double precision.
struct References {
    const Function& function;
    std::span<const NamedMesh> meshes;
    const std::stop_token& stop;

    struct Runs {
        std::vector<HostArray> unsharded;
        std::vector<HostArray> reference;
    };

    Result<Runs> run(std::span<const HostArray> arguments) const
    {
        auto unsharded = evaluate(function, arguments, {.stop = stop, .meshes = meshes});
        if (!unsharded)
            return unsharded.error();
        auto reference = evaluate(function, arguments, {.inDouble = true, .stop = stop, .meshes = meshes});
        if (!reference)
            return reference.error();
        return Runs{*std::move(unsharded), *std::move(reference)};
    }
};

VerifiedTensor judged(
    const HostArray& sharded, const HostArray& unsharded, const HostArray& reference, std::int64_t devices, double coarsest)
{
    const std::vector<double> exact = reference.values();
    VerifiedTensor tensor;
    tensor.shardedError = largestDifference(sharded.values(), exact);
    tensor.unshardedError = largestDifference(unsharded.values(), exact);
    tensor.scale = largestFinite(exact);
    const std::vector<double> plain = unsharded.values();
    for (std::size_t i = 0; i < exact.size(); ++i)
        tensor.proved += std::isfinite(exact[i]) && std::isfinite(plain[i]) ? 1 : 0;
    tensor.tolerance = (coarsest > epsilonOf(DType::F32) ? 8.0 : 4.0) * tensor.unshardedError
        + static_cast<double>(devices) * epsilonOf(sharded.type().dtype) * tensor.scale;
    // Where one device overflows too, the sharded run must overflow alike.
    tensor.passed = std::isfinite(tensor.tolerance) ? tensor.shardedError <= tensor.tolerance
                                                    : std::isfinite(largestDifference(sharded.values(), unsharded.values()));
    return tensor;
}

/// True of a result that nothing is rounded for: integers, made of no others.
bool isExact(const Function& function, std::size_t result)
{
    const ValueId value = function.results()[result];
    const auto rounds = [](const Value& made) { return isFloating(made.type.dtype) || isComplex(made.type.dtype); };
    return !rounds(function[value]) && std::ranges::none_of(sliced(function, {}, {value}).function.values, rounds);
}

VerifiedTensor judgedExactly(const HostArray& sharded, const HostArray& unsharded)
{
    VerifiedTensor tensor;
    tensor.passed = sharded == unsharded;
    tensor.shardedError = largestDifference(sharded.values(), unsharded.values());
    if (!tensor.passed && tensor.shardedError == 0.0)
        tensor.shardedError = 1.0; // integers of 64 bits that are one double
    tensor.scale = largestFinite(unsharded.values());
    tensor.proved = unsharded.type().elements();
    return tensor;
}

/// The arguments with each number one rounding off, up or down by chance: the same for one seed. What is computed with in 16 bits is rounded so, whatever
/// the type in which it is kept.
std::vector<HostArray> oneRoundingOff(const Function& function, std::span<const HostArray> arguments, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    const double computing = 0.5 * coarsestEpsilon(function);
    std::vector<HostArray> made;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const DType dtype = arguments[i].type().dtype;
        if (!isFloating(dtype) || byteSize(dtype) < 2) {
            made.push_back(arguments[i]);
            continue;
        }
        const Role role = function[function.arguments()[i]].role;
        const bool isComputedWith = role == Role::Parameter || role == Role::Input;
        const double rounding = isComputedWith ? std::max(epsilonOf(dtype), computing) : epsilonOf(dtype);
        std::vector<double> values = arguments[i].values();
        for (double& value : values)
            value *= (random() & 1U) != 0 ? 1.0 + rounding : 1.0 - rounding;
        made.push_back(HostArray::of(arguments[i].type(), values));
    }
    return made;
}

/// How far each result may be from the exact one by rounding: what it moves when the arguments are one rounding off, in double precision, and how far runs
/// of the program's own types from such arguments are from it; the largest of four draws. Over many steps roundings grow, and one run may be lucky in all.
Result<std::vector<double>> movedByRounding(
    const References& references, std::span<const HostArray> arguments, const std::vector<HostArray>& exact)
{
    constexpr std::uint64_t kSeeds[] = {1, 2, 3, 4};
    std::vector<double> moved(exact.size(), 0.0);
    for (const std::uint64_t seed : kSeeds) {
        const std::vector<HostArray> drawn = oneRoundingOff(references.function, arguments, seed);
        for (const bool inDouble : {true, false}) {
            const auto results = evaluate(
                references.function, drawn, {.inDouble = inDouble, .stop = references.stop, .meshes = references.meshes});
            if (!results)
                return results.error();
            for (std::size_t i = 0; i < exact.size(); ++i) {
                const double difference = largestDifference((*results)[i].values(), exact[i].values());
                if (std::isfinite(difference))
                    moved[i] = std::max(moved[i], difference);
            }
        }
    }
    return moved;
}

/// Of a result that counts rows in which a number is the largest one: what it would be if it counted those in which another one is next to
/// the largest, by this part of the row's largest size. Rounding may turn as many. Nothing where it counts no such rows.
Result<std::optional<double>> nearTies(
    const References& references, std::size_t result, std::span<const HostArray> arguments, double slack)
{
    const Function& whole = references.function;
    FunctionSlice slice = sliced(whole, {}, {whole.results()[result]});
    Function& function = slice.function;
    const auto largestOf = [&](const Op& op) {
        const OpId made = op.operands.empty() ? OpId() : function[op.operands.back()].producer;
        const bool isLargest = op.kind == OpKind::Compare && op.as<CompareAttributes>().direction == CompareDirection::Equal
            && made.valid() && function[made].kind == OpKind::Reduce
            && function[made].as<ReduceAttributes>().kind == ReduceKind::Max
            && isFloating(function[op.operands.back()].type.dtype);
        return isLargest ? made : OpId();
    };
    std::vector<OpId> counted;
    forEachOp(function, [&](OpId id) {
        if (largestOf(function[id]).valid())
            counted.push_back(id);
    });
    for (const OpId id : counted) {
        const BlockId block = function[id].block;
        const std::size_t before = function[block].ops.size();
        const Op largest = function[largestOf(function[id])];
        const ValueId rows = largest.operands.front();
        const std::vector<std::size_t> along = largest.as<ReduceAttributes>().dims;
        Builder builder(function);
        builder.setBlock(block);
        const Shape shape = builder.type(rows).shape;
        std::vector<std::size_t> kept;
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            if (std::ranges::find(along, dim) == along.end())
                kept.push_back(dim);
        }
        const ValueId size = builder.reduce(ReduceKind::Max, builder.unary(OpKind::Abs, rows), along);
        const ValueId room = builder.binary(OpKind::Multiply, size, builder.splat(TensorType(builder.type(size)), slack));
        const ValueId least = builder.binary(OpKind::Subtract, largest.results.front(), room);
        const ValueId isNear = builder.compare(CompareDirection::GreaterEqual, rows, builder.broadcast(least, shape, kept));
        const ValueId near = builder.reduce(ReduceKind::Sum, builder.convert(isNear, DType::F32), along);
        const ValueId one = builder.splat(TensorType(builder.type(near)), 1.0);
        function[id].operands = {near, one};
        function[id].attributes = CompareAttributes{CompareDirection::Greater};
        std::vector<OpId>& ops = function[block].ops;
        std::rotate(std::ranges::find(ops, id), ops.begin() + static_cast<std::ptrdiff_t>(before), ops.end());
    }
    if (counted.empty())
        return std::optional<double>();
    std::vector<HostArray> given;
    for (const ValueId value : slice.arguments)
        given.push_back(
            arguments[static_cast<std::size_t>(std::ranges::find(whole.arguments(), value) - whole.arguments().begin())]);
    const auto made = evaluate(function, given, {.inDouble = true, .stop = references.stop, .meshes = references.meshes});
    if (!made)
        return made.error();
    return std::optional(made->front().values().front());
}

/// The projection of a change on the exact one: 1 is all of it, 0 is none. Nothing where there is none, or too few numbers for noise to cancel out.
std::optional<double> shareOfChange(
    const std::vector<double>& before, const std::vector<double>& after, const std::vector<double>& exact)
{
    constexpr std::size_t kFewest = 64;
    double along = 0.0;
    double whole = 0.0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        along += (after[i] - before[i]) * (exact[i] - before[i]);
        whole += (exact[i] - before[i]) * (exact[i] - before[i]);
    }
    return exact.size() >= kFewest && whole > 0.0 && std::isfinite(along / whole) ? std::optional(along / whole) : std::nullopt;
}

/// The part of the change that the sharded run made, where it is not the whole; nothing where it is, or where one device's rounding hides that.
std::optional<double> wrongChange(
    const HostArray& before, const HostArray& sharded, const HostArray& unsharded, const HostArray& reference)
{
    const std::vector<double> old = before.values();
    const std::vector<double> exact = reference.values();
    const auto own = shareOfChange(old, unsharded.values(), exact);
    const auto made = shareOfChange(old, sharded.values(), exact);
    const bool isClear = own && made && std::fabs(*own - 1.0) <= 0.1;
    return isClear && std::fabs(*made - 1.0) > 0.5 ? made : std::nullopt;
}

/// One result on one device, given the others as the sharded run has them.
struct FromResults {
    HostArray unsharded;
    HostArray reference;
    double coarsest = 0.0; ///< epsilon of what makes it of them
    double moved = 0.0; ///< by rounding of what it is made of: see movedByRounding
};

/// Nothing when it is made of none of them.
Result<std::optional<FromResults>> fromResults(const Function& function, std::size_t result, std::span<const HostArray> arguments,
    std::span<const HostArray> sharded, const std::stop_token& stop, std::span<const NamedMesh> meshes)
{
    std::map<std::size_t, std::size_t> known; // results that an op made, by value
    for (std::size_t i = 0; i < function.results().size(); ++i) {
        const ValueId value = function.results()[i];
        if (value != function.results()[result] && function[value].producer.valid())
            known.emplace(value.at(), i);
    }
    std::vector<ValueId> from;
    for (const auto& [value, index] : known)
        from.push_back(function.results()[index]);
    const FunctionSlice slice = sliced(function, from, {function.results()[result]});
    std::vector<HostArray> given;
    bool isMadeOfResults = false;
    for (const ValueId value : slice.arguments) {
        const auto other = known.find(value.at());
        isMadeOfResults = isMadeOfResults || other != known.end();
        const auto& all = function.arguments();
        given.push_back(other != known.end()
                ? sharded[other->second]
                : arguments[static_cast<std::size_t>(std::find(all.begin(), all.end(), value) - all.begin())]);
    }
    if (!isMadeOfResults)
        return std::optional<FromResults>();
    const References references{slice.function, meshes, stop};
    auto runs = references.run(given);
    if (!runs)
        return runs.error();
    const auto moved = movedByRounding(references, given, runs->reference);
    if (!moved)
        return moved.error();
    return std::optional(FromResults{
        std::move(runs->unsharded.front()), std::move(runs->reference.front()), coarsestEpsilon(slice.function), moved->front()});
}

} // namespace

std::size_t Verification::unproved() const
{
    return static_cast<std::size_t>(
        std::count_if(tensors.begin(), tensors.end(), [](const VerifiedTensor& tensor) { return tensor.proved == 0; }));
}

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
    for (const VerifiedTensor& tensor : tensors) {
        if (tensor.scale > 0.0 && (tensor.counts ? !tensor.passed : tensor.proved > 0 || !tensor.passed))
            largest = std::max(largest, tensor.shardedError / tensor.scale);
    }
    return largest;
}

std::string Verification::text() const
{
    if (passed && !provesAnything())
        return "nothing was proved (on one device nothing is finite and larger than its rounding)";
    std::string text
        = fmt::format("{} (largest error {:.2e} of the tensor's scale)", passed ? "equal" : "DIFFERENT", maxRelError());
    if (unproved() > 0)
        text += fmt::format(", but for {} of {}, where rounding on one device is as large as the values", unproved(),
            counted(tensors.size(), "tensor"));
    return text;
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
        if (known == tensors.end()) {
            tensors.push_back(tensor);
        } else {
            const std::int64_t proved = std::max(known->proved, tensor.proved);
            if (known->passed == tensor.passed ? share(tensor) > share(*known) : known->passed)
                *known = tensor;
            known->proved = proved;
        }
    }
}

Result<std::vector<VerifiedTensor>> verifyStep(const Function& function, std::span<const HostArray> arguments,
    std::span<const HostArray> sharded, std::int64_t devices, const std::stop_token& stop, std::span<const NamedMesh> meshes)
{
    const References whole{function, meshes, stop};
    const auto runs = whole.run(arguments);
    if (!runs)
        return runs.error();
    const double coarsest = coarsestEpsilon(function);
    std::vector<VerifiedTensor> outcome;
    constexpr double kRoundings = 4.0; // as often as one device's error counts
    std::optional<std::vector<double>> moved;
    for (std::size_t i = 0; i < sharded.size(); ++i) {
        if (stop.stop_requested())
            return VirtualDevices::interrupted();
        const std::string name = i < function.resultNames.size() ? function.resultNames[i] : "result " + std::to_string(i);
        if (isExact(function, i)) {
            outcome.push_back(judgedExactly(sharded[i], runs->unsharded[i]));
            outcome.back().name = name;
            continue;
        }
        const bool counts = name == "accuracy";
        VerifiedTensor tensor = judged(sharded[i], runs->unsharded[i], runs->reference[i], devices, coarsest);
        if (sharded[i].type().elements() == 1) {
            tensor.tolerance += 0.5 * coarsest * (counts ? 1.0 : tensor.scale);
            tensor.passed = tensor.passed || tensor.shardedError <= tensor.tolerance;
        }
        if (counts && !tensor.passed) {
            const auto tied = nearTies(whole, i, arguments, kRoundings * coarsest);
            if (!tied)
                return tied.error();
            tensor.tolerance += tied->value_or(0.0);
            tensor.passed = tensor.shardedError <= tensor.tolerance;
        }
        const auto donation = std::ranges::find(function.donations, i, &Donation::result);
        const HostArray* before = tensor.passed && donation != function.donations.end() && isFloating(sharded[i].type().dtype)
            ? &arguments[donation->argument]
            : nullptr;
        const auto wrong
            = before != nullptr ? wrongChange(*before, sharded[i], runs->unsharded[i], runs->reference[i]) : std::nullopt;
        if (wrong || !tensor.passed) {
            const auto again = fromResults(function, i, arguments, sharded, stop, meshes);
            if (!again)
                return again.error();
            if (wrong) {
                const auto still = *again ? wrongChange(*before, sharded[i], (*again)->unsharded, (*again)->reference) : wrong;
                tensor.change = still.value_or(1.0);
                tensor.passed = !still;
            } else if (*again) {
                tensor = judged(sharded[i], (*again)->unsharded, (*again)->reference, devices, (*again)->coarsest);
                if (!tensor.passed && std::isfinite(tensor.tolerance)) {
                    tensor.tolerance += kRoundings * (*again)->moved;
                    tensor.passed = tensor.shardedError <= tensor.tolerance;
                }
            } else if (isFloating(sharded[i].type().dtype) && std::isfinite(tensor.tolerance)) {
                if (!moved) {
                    auto found = movedByRounding(whole, arguments, runs->reference);
                    if (!found)
                        return found.error();
                    moved = *std::move(found);
                }
                tensor.tolerance += kRoundings * (*moved)[i];
                tensor.passed = tensor.shardedError <= tensor.tolerance;
            }
        }
        tensor.name = name;
        tensor.counts = counts;
        if (tensor.shardedError > 0.0 && tensor.scale > 0.0 && tensor.tolerance >= tensor.scale)
            tensor.proved = 0;
        outcome.push_back(std::move(tensor));
    }
    return outcome;
}

} // namespace meshwright
