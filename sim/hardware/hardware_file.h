// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sim/hardware/machine.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace meshwright::sim {

/// A machine that a user describes, as YAML; resources/schemas/hardware-1.json is its schema and resources/hardware/example.yaml an
/// example:
///
///     meshwright_hardware: 1
///     chip: {base: h100, name: H100 at 600 W, memory_bytes: 80e9, memory_bytes_per_s: 3e12, flops: {bf16: 800e12}}
///     topology:                       # outermost first
///       - {name: host, kind: network, length: 4, bytes_per_s: 50e9, latency_s: 9e-6, per_leaf: 2, oversubscription: 2}
///       - {name: gpu, kind: switch, length: 8, bytes_per_s: 360e9, latency_s: 3e-6, in_switch_bytes_per_s: 260e9}
///     faults:
///       slow: [{device: 3, speed: 0.8}]
///       links: [{device: 5, axis: gpu, share: 0.5}]
///
/// `class: cpu` (or gpu, tpu) says what kind of chip it is. `host` and `links`, as `meshwright calibrate` writes them, are not looked at here.
///
/// `dollars_per_hour` of a chip is what searches and sweeps reckon prices with; without it there are none.
///
/// Axes are of kind torus (with `wraps`), switch, full_mesh or network. Devices count as JAX does: the last axis runs fastest. Without
/// `base` a chip needs name, memory_bytes, memory_bytes_per_s and flops; with it what is given replaces the figures of the catalogue.
///
/// Problems, each with its place: those of `parseDocument`; MW1742 a value of the wrong kind; MW1743 a key that is not known; MW1744 a
/// value out of range; MW1745 something is missing; MW1701 no chip `base` in the catalogue; MW1707 too many devices.
Result<Machine> parseHardware(std::string_view text, const std::string& file, const Catalogue& catalogue);

/// The same from a file. Problems: also those of `readFile`.
Result<Machine> readHardware(const std::filesystem::path& path, const Catalogue& catalogue);

} // namespace meshwright::sim
