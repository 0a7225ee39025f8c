// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace meshwright {

/// A task of a stage whose backward pass is two.
struct SplitTask {
    enum class Kind : std::uint8_t {
        Forward,
        Input,
        Weight
    }; ///< forward, the gradient of the input, the gradients of the weights
    Kind kind = Kind::Forward;
    std::int64_t microbatch = 0;
};

/// The order of a stage (from 0) under ZB-H1, or ZB-H2 with `moreMemory`.
///
/// Stage i of p begins with p - i forward tasks (H2: 2 (p - i) - 1) and then takes one backward and one forward task alternately; a microbatch's weights follow its input gradient when i
/// (H2: 2 i) later ones are done. So every stage holds p (H2: 2p - 1) microbatches at most, and with equal stages that take F, B and W for the three
/// tasks a stage is idle for (p - 1)(F + B - W) from its first task to its last, H2 for (p - 1)(F + B - 2 W) or not at all.
/// Preconditions: 0 <= stage < stages, microbatches >= 0.
/// Source: P. Qi, X. Wan, G. Huang, M. Lin, "Zero Bubble Pipeline Parallelism", ICLR 2024 (arXiv:2401.10241), section 2 and table 1.
std::vector<SplitTask> zeroBubbleOrder(std::int64_t stages, std::int64_t stage, std::int64_t microbatches, bool moreMemory);

} // namespace meshwright
