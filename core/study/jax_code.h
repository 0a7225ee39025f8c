// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/study/study.h"

#include <string>
#include <utility>
#include <vector>

namespace meshwright {

/// Arrays by name with their specs as JAX writes them: {"layers.1.w", "P(None, 'model')"}.
using SpecTexts = std::vector<std::pair<std::string, std::string>>;

/// Python: the mesh as `mesh`, and `specs`, a dictionary by the names of arrays. An empty mesh is one device.
std::string jaxSpecs(const std::vector<MeshAxis>& mesh, const std::vector<DeviceId>& order, const SpecTexts& specs);

/// Python that trains an MLP as the study does: mesh, specs, types, initial values, random data, loss and optimizer (optax). It prints the losses that
/// `train` reports. What it leaves out of the study stands in its head. `specs` are those of parameters, their moments ("opt.m."), x, y and the activations
/// that the study constrains. Precondition: study.mlp(), which has a valid training.
std::string jaxTraining(const Study& study, const SpecTexts& specs);

/// The same with a module of flax.nnx, which draws initial values of its own.
std::string flaxTraining(const Study& study, const SpecTexts& specs);

} // namespace meshwright
