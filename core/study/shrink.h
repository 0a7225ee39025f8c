// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

namespace meshwright {

/// A study of the same structure that is soon trained here (`shrink: true`): each axis of more than one device has two (at most five do: 32 devices), and
/// sizes are small multiples of the devices, so that whatever an axis splits still divides. Stages, chunks, kinds of layers, experts, parts of the loss
/// and what is kept survive; each piece of a pipeline has two layers at most, or two turns of layers of several kinds. Data are
/// random, faults and the order of devices are left out.
/// A program file has the sizes that it has: nothing changes then.
Study shrunk(Study study);

} // namespace meshwright
