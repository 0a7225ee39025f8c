# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of JAX's calls of tests/goldens/errors.json, as a page that breaks them meets them: the class of what is raised, and its key phrase. The engine's
own checks of the same cases are in tst_golden_errors. Prints what differs; the last line counts."""
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

GOLDENS = os.path.join(os.environ["MESHWRIGHT_SOURCES"], "tests", "goldens", "errors.json")


def spec_of(entries, **rest):
    def entry(value):
        return tuple(entry(one) for one in value) if isinstance(value, list) else value
    return P(*(entry(value) for value in entries), **rest)


def mesh_of(case, types=None):
    names = [name for name, _ in case["mesh"]["axes"]]
    sizes = [size for _, size in case["mesh"]["axes"]]
    ids = case["mesh"].get("device_ids", range(int(np.prod(sizes))))
    return Mesh(np.array([jax.devices()[i] for i in ids]).reshape(sizes), names, axis_types=types)


def sharding_of(case):
    return NamedSharding(mesh_of(case), spec_of(case["spec"]))


def pieces(case):
    devices = [jax.devices()[i] for i in case.get("given_devices", range(mesh_of(case).size))]
    shape = case.get("given_shard_shape") or sharding_of(case).shard_shape(tuple(case["shape"]))
    return [jax.device_put(jnp.ones(shape), device) for device in devices]


def shaped(case):
    return jnp.ones(case["shape"])


def spec(case):
    unreduced = {"unreduced": set(case["unreduced"])} if "unreduced" in case else {}
    made = spec_of(case["spec"], **unreduced)
    if "mesh" in case:
        mesh = mesh_of(case, (jax.sharding.AxisType.Explicit,) * len(case["mesh"]["axes"]) if unreduced else None)
        NamedSharding(mesh, made)


def context(case, phrase):
    if "device_put" in phrase:
        jax.device_put(shaped(case), spec_of(case["spec"]))
    else:
        jax.jit(lambda x: jax.lax.with_sharding_constraint(x, spec_of(case["spec"])))(shaped(case))


# What JAX says since the case was written: of an eager operation what it says of any compiled one.
SAID_SINCE = {
    "Got array device ids [0, 1, 2, 3] on platform TPU and another array's device ids [4, 5, 6, 7] on platform TPU":
        "Received incompatible devices for jitted computation. Got argument x of add with shape float32[8] and device ids [0, 1, 2, 3] on platform CPU and "
        "argument y of add with shape float32[8] and device ids [4, 5, 6, 7] on platform CPU",
}


def combine(case):
    sides = [jax.device_put(jnp.ones(8), NamedSharding(Mesh(np.array(jax.devices())[ids], "x"), P("x")))
             for ids in (case["a_devices"], case["b_devices"])]
    return jnp.add(*sides)


def on_pieces(case):
    mesh = mesh_of(case)
    body = {"x*2": lambda x: x * 2, "2*x": lambda x: 2 * x, "psum(x,'x')": lambda x: jax.lax.psum(x, "x")}
    if "body" in case:
        inputs = spec_of(case["in_spec"])
        return jax.shard_map(body[case["body"]], mesh=mesh, in_specs=inputs, out_specs=spec_of(case["out_spec"]))(
            jnp.ones((8,) * len(case["in_spec"])))
    return jax.shard_map(lambda: jnp.ones(case["shape"]), mesh=mesh, in_specs=(), out_specs=spec_of(case["spec"]))()


def exchange(case):
    def body(x):
        return jax.lax.ppermute(x, tuple(case["axis_name"]), [tuple(pair) for pair in case["perm"]])
    return jax.shard_map(body, mesh=mesh_of(case), in_specs=P("x", "y"), out_specs=P("x", "y"))(jnp.ones((4, 4)))


class Chip:
    """A device of a pod, as mesh_utils looks at it."""
    platform, device_kind, process_index, slice_index, core_on_chip = "tpu", "TPU v4", 0, 0, 0

    def __init__(self, number, coords):
        self.id, self.coords = number, coords


def device_mesh(case):
    choices = {"contiguous_submeshes": True} if case.get("contiguous_submeshes") else {}
    if "topology" in case:
        x, y, z = case["topology"]
        choices["devices"] = [Chip(n, (n % x, n // x % y, n // x // y)) for n in range(x * y * z)]
    mesh_utils.create_device_mesh(case["mesh_shape"], **choices)


CHECKS = {
    "shard_shape": lambda case: sharding_of(case).shard_shape(tuple(case["shape"])),
    "device_slices": lambda case: sharding_of(case).devices_indices_map(tuple(case["shape"])),
    "place": lambda case: jax.device_put(shaped(case), sharding_of(case)),
    "type": lambda case: jax.core.ShapedArray(case["shape"], jnp.float32, sharding=NamedSharding(
        mesh_of(case, (jax.sharding.AxisType.Explicit,)), spec_of(case["spec"]))),
    "rank": lambda case: jax.jit(lambda x: x, in_shardings=sharding_of(case))(shaped(case)),
    "abstract": lambda case: jax.ShapeDtypeStruct(case["shape"], jnp.float32, sharding=sharding_of(case)),
    "shard_map_in_spec": lambda case: jax.shard_map(
        lambda x: x, mesh=mesh_of(case), in_specs=spec_of(case["spec"]), out_specs=spec_of(case["spec"]))(shaped(case)),
    "shard_map_out_spec": on_pieces,
    "spec": spec,
    "assemble": lambda case: jax.make_array_from_single_device_arrays(tuple(case["shape"]), sharding_of(case), pieces(case)),
    "combine": combine,
    "collective": exchange,
    "create_device_mesh": device_mesh,
}

wrong = compared = 0
for golden in json.load(open(GOLDENS))["cases"]:
    if golden["system"] != "jax":
        continue
    compared += 1
    expect = golden["expect"]
    try:
        if golden["check"] == "context":
            context(golden["input"], expect["phrase"])
        else:
            check = "abstract" if "test_sds" in golden["from"] else golden["check"]
            jax.block_until_ready(CHECKS[check](golden["input"]))
        found, said = "none", ""
    except Exception as error:
        found, said = " ".join(base.__name__ for base in type(error).__mro__), str(error)
    right = found == "none" if expect["kind"] == "none" else (
        expect["exception"] in found.split() and SAID_SINCE.get(expect["phrase"], expect["phrase"]) in said)
    if not right:
        wrong += 1
        print(f"{golden['from'].split('#')[-1]}, {golden['check']}: {found}: {said!r} is not {expect}")
print(f"{wrong} of {compared} differ")
