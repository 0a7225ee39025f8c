// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/jax_spec.h"
#include "core/sharding/tile_assignment.h"

#include "tests/fuzz/targets.h"

namespace meshwright::fuzz {

/// A mesh in all the ways that meshes are written, and orders of devices.
void feedMesh(std::string_view text)
{
    if (const auto mesh = parseMesh(text); mesh && !mesh->axes().empty()) {
        const auto again = parseMesh(mesh->text());
        require(again && *again == *mesh, "a mesh that is written reads as itself");
    }
    if (const auto mesh = parseJaxMesh(text)) {
        const auto again = parseJaxMesh(jaxMeshText(*mesh));
        require(again && again->axes() == mesh->axes(), "a mesh that is written as JAX does reads as itself");
    }
    if (const auto order = parseDeviceOrder(text))
        require(!order->empty(), "an order has devices");
    (void)parseDeviceIds(text);
}

} // namespace meshwright::fuzz
