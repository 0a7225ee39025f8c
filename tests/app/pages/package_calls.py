# SPDX-License-Identifier: GPL-3.0-or-later
"""The package `meshwright`: results as the command line gives them, problems as exceptions. Prints what is wrong; the last line counts."""
import os
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import meshwright as mw
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

EXAMPLES = os.path.join(os.environ["MESHWRIGHT_SOURCES"], "resources", "examples")
STUDY = {"meshwright": 1, "hardware": {"chip": "v3", "topology": [2, 2]}, "mesh": {"data": 8}, "batch": 64,
         "model": {"mlp": {"layers": [784, 1024, 10], "activation": "relu", "bias": True, "loss": "sum_squared"}},
         "sharding": {"x": mw.P("data", None), "y": mw.P("data")}}


def problems_of(call):
    try:
        call()
    except mw.Problems as error:
        return [one.id for one in error.problems]
    return []


class Lowered:
    """As jax.jit(f).lower(..) gives it."""

    def as_text(self):
        with open(os.path.join(EXAMPLES, "fsdp_matmul.mlir")) as file:
            return file.read()


def of_compiled():
    """The collectives that `explain` reads in the text of a compiled function with a loop over a product that is summed over four devices."""
    mesh = jax.make_mesh((2, 4), ("x", "y"))
    put = lambda shape, *spec: jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))
    function = jax.jit(lambda x, w: lax.scan(lambda c, _: (jnp.tanh(c @ w) @ w.T, None), x, None, length=3)[0].sum())
    compiled = function.lower(put((8, 16), "x"), put((16, 8), None, "y")).compile()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(compiled.as_text())
        file.flush()
        return [(one.op, one.group_size, one.count, one.bytes_per_device) for one in mw.explain(file.name).collectives], mw.check(compiled)


def main():
    by_words = subprocess.run([os.environ["MESHWRIGHT"], "simulate", os.path.join(EXAMPLES, "fsdp_matmul.mlir"), "--hw=v5e-8", "--format=json"],
                              capture_output=True, text=True, check=True).stdout
    split = dict(STUDY, mesh={"data": 5})
    rows = {
        "study": (mw.check(STUDY), []),
        "study with mistakes": ([one.id for one in mw.check(split)], ["MW1104", "MW1104"]),
        "mistakes raise": (problems_of(lambda: mw.simulate(split)), ["MW1104", "MW1104"]),
        "no file": (problems_of(lambda: mw.simulate("nowhere.yaml")), ["MW1001"]),
        "no option": (problems_of(lambda: mw.simulate(STUDY, nonsense=1)), ["MW1901"]),
        "settings": (mw.simulate(STUDY, set={"mesh.data": 4}).mesh, [["data", 4]]),
        "mesh": (mw.simulate(STUDY, mesh=mw.Mesh(data=2)).mesh, [["data", 2]]),
        "lowered program": (str(mw.simulate(Lowered(), hw="v5e-8").step_time_s) in by_words, True),
        "layout": (mw.layout((8, 6), mw.P(None, "model"), mw.Mesh(data=4, model=2)).shard_shape, [8, 3]),
        "axis that is not there": (problems_of(lambda: mw.layout((8, 6), mw.P("dat"), {"data": 4})), ["MW1102"]),
        "explanation": (mw.explain("MW1104").id, "MW1104"),
        "compiled function": (of_compiled(), ([("all_reduce", 4, 3, 256), ("all_reduce", 2, 1, 4)], [])),
        "search": (mw.search(STUDY, top=1, time_limit=5).plans[0].step_time_s > 0, True),
        "field that is not there": (hasattr(mw.explain("MW1104"), "nothing"), False),
        "texts": ((repr(mw.P("data")), str(mw.Mesh(a=4, b=2)), mw.Mesh(a=4, b=2).size), ("P('data')", "a=4,b=2", 8)),
    }
    wrong = {name: row for name, row in rows.items() if row[0] != row[1]}
    for name, (found, expected) in wrong.items():
        print(name, found, "is not", expected)
    print(len(wrong), "of", len(rows), "differ")


main()
