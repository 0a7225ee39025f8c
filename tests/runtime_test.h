// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"
#include "core/runtime/evaluate.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace meshwright::test {

/// Numbers between -2 and 2 from a small generator (splitmix64), the same on every machine.
inline std::vector<double> numbers(std::int64_t count, std::uint64_t seed)
{
    std::vector<double> result;
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (std::int64_t i = 0; i < count; ++i) {
        state += 0x9e3779b97f4a7c15ULL;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        z ^= z >> 31;
        result.push_back(static_cast<double>(z >> 11) * 0x1p-53 * 4.0 - 2.0);
    }
    return result;
}

/// An array of such numbers; integers get -8 .. 8 (0 .. 16 when unsigned), truth values 0 and 1.
inline HostArray randomArray(const TensorType& type, std::uint64_t seed)
{
    std::vector<double> values = numbers(type.elements(), seed);
    for (double& value : values) {
        if (type.dtype == DType::Pred)
            value = value > 0.0 ? 1.0 : 0.0;
        else if (!isFloating(type.dtype))
            value = std::round(value * 4.0) + (isUnsigned(type.dtype) ? 8.0 : 0.0);
    }
    return HostArray::of(type, values);
}

/// A function of arguments of these types, whose result `build` makes.
inline Function functionOf(
    const std::vector<TensorType>& arguments, const std::function<ValueId(Builder&, const std::vector<ValueId>&)>& build)
{
    Function function;
    function.name = "f";
    Builder builder(function);
    std::vector<ValueId> values;
    for (const TensorType& type : arguments)
        values.push_back(builder.argument(type));
    builder.setResults({build(builder, values)});
    return function;
}

inline std::string problemsText(const Problems& problems)
{
    return describe(problems);
}

/// "" when every element of `actual` is within `tolerance` (relative to the larger of 1 and the expected one) of `expected`; NaN equals NaN.
inline std::string difference(const HostArray& actual, const std::vector<double>& expected, double tolerance)
{
    const std::vector<double> values = actual.values();
    if (values.size() != expected.size())
        return fmt::format("{} elements instead of {}", values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const bool same = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
        if (!same && !(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i]))))
            return fmt::format("element {}: {} instead of {}", i, values[i], expected[i]);
    }
    return "";
}

/// The steps of a row-major array, and the multi-index of an element.
inline Shape indexOf(const Shape& shape, std::int64_t flat)
{
    Shape index(shape.size());
    for (std::size_t dim = shape.size(); dim-- > 0; flat /= shape[dim])
        index[dim] = flat % shape[dim];
    return index;
}

inline std::int64_t flatOf(const Shape& shape, const Shape& index)
{
    std::int64_t flat = 0;
    for (std::size_t dim = 0; dim < shape.size(); ++dim)
        flat = flat * shape[dim] + index[dim];
    return flat;
}

} // namespace meshwright::test
