// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/program/builder.h"

#include <cstdint>
#include <string>

namespace meshwright {

enum class Initializer : std::uint8_t {
    NormalOverSqrtFanIn, ///< standard normal, divided by sqrt(fan-in)
    LecunNormal, ///< truncated normal of variance 1 / fan-in (jax.nn.initializers.lecun_normal)
    HeNormal, ///< truncated normal of variance 2 / fan-in (jax.nn.initializers.he_normal)
    Normal, ///< standard normal (jax.random.normal)
    Zeros,
    Ones,
};

/// True when the initialiser draws random numbers, and so needs a key.
bool isRandom(Initializer initializer);

/// One of equal stretches of an array's numbers, [count, shape..]. None: the numbers are of an array of their own.
struct Stretch {
    std::int64_t count = 0; ///< 0: none
    ValueId number; ///< s32
};

/// Random words ui32 of a shape, as `jax.random.bits(key, shape)`.
ValueId randomWords(Builder& builder, ValueId key, const Shape& shape, bool partitionable, const Stretch& stretch = {});

/// `jax.random.uniform(key, shape, minval=low, maxval=high)` in f32: 23 random bits as the fraction of a number in [1, 2).
/// Precondition: key is ui32[2].
ValueId uniform(
    Builder& builder, ValueId key, const Shape& shape, double low, double high, bool partitionable, const Stretch& stretch = {});

/// `jax.random.normal(key, shape)` in f32: sqrt(2) erf_inv(u), u uniform in (-1, 1).
ValueId normal(Builder& builder, ValueId key, const Shape& shape, bool partitionable, const Stretch& stretch = {});

/// A tensor of this type; random ones are drawn in f32 and converted. `key` (ui32[2]) is not read for Zeros and Ones and may be invalid then.
ValueId initialized(Builder& builder, Initializer initializer, ValueId key, const TensorType& type, std::int64_t fanIn,
    bool partitionable, const Stretch& stretch = {});

} // namespace meshwright
