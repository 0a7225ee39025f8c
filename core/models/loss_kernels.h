// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace meshwright {

/// Which arrays as large as the logits a cross entropy has in memory beside them and their gradient, both in the type of activations.
enum class LossKernels : std::uint8_t {
    Fused, ///< none: what is wide is made where it is read (XLA, torch.compile, Liger)
    InPlace, ///< the logits in 32 bits, in whose place their gradient is made (Megatron-LM's vocab_parallel_cross_entropy)
    Separate, ///< and their log-softmax and its gradient: each op is a kernel (PyTorch's cross_entropy)
};

} // namespace meshwright
