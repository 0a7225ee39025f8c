# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshwright in Python: plans, checks, simulates and explains sharded training.

    import meshwright as mw
    mw.check("study.yaml")                                  # a list of problems
    mw.simulate("study.yaml", hw="v5e-64").step_time_s      # seconds
    mw.simulate(jax.jit(step).lower(*arguments), hw="h100x8", mesh=mw.Mesh(data=8))
    mw.layout((8192, 8192), mw.P("data", None), mw.Mesh(data=4, model=2)).shard_shape

Each function runs the verb of `meshwright` with the same name and gives its JSON: see `meshwright VERB --help` for what an option means. Options are
keywords: `set={"mesh.data": 8}` is `--set mesh.data=8`, `time_limit=10` is `--time-limit 10`. A study is the name of a file or a dict; a program is the
name of a file, StableHLO text, or what `jax.jit(f).lower(..)` gives. What cannot be done raises `Problems`."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

__all__ = ["Mesh", "P", "Problems", "Result", "check", "explain", "layout", "plan", "search", "simulate"]


class P(tuple):
    """How each dimension of an array is split over mesh axes, as jax.sharding.PartitionSpec: P("data", None), P(("data", "model"))."""

    def __new__(cls, *entries):
        return tuple.__new__(cls, entries)

    def __repr__(self):
        return "P" + (tuple.__repr__(self) if len(self) != 1 else f"({self[0]!r})")


class Mesh(dict):
    """Axes with their sizes, major to minor: Mesh(data=4, model=2)."""

    @property
    def size(self):
        """The number of devices."""
        count = 1
        for size in self.values():
            count *= size
        return count

    def __str__(self):
        return ",".join(f"{name}={size}" for name, size in self.items())

    def __repr__(self):
        return "Mesh(" + ", ".join(f"{name}={size}" for name, size in self.items()) + ")"


class Result(dict):
    """A result as the design of the JSON names its fields, which are attributes too: `result.step_time_s`."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the result has no {name}; it has {', '.join(self)}") from None


class Problems(ValueError):
    """What is wrong: `problems` lists results with id, message, fix, file and line."""

    def __init__(self, problems, text=""):
        self.problems = problems
        super().__init__(text or "\n".join(f"{one.id} {one.message}" + (f"\n  fix: {one.fix}" if one.fix else "") for one in problems))


def _program():
    """The command line: $MESHWRIGHT, that of the build or installation around this package, or the one on the path."""
    here = pathlib.Path(__file__).resolve()
    around = [os.environ.get("MESHWRIGHT"), *(parent / "bin" / "meshwright" for parent in here.parents)]
    around += sorted(here.parents[3].glob("build/*/bin/meshwright"), key=os.path.getmtime, reverse=True) if len(here.parents) > 3 else []
    for found in around:
        if found and os.access(found, os.X_OK):
            return str(found)
    found = shutil.which("meshwright")
    if found is None:
        raise FileNotFoundError("no program meshwright: put it on the path, or name it in the variable MESHWRIGHT")
    return found


def _words(options):
    """Keywords as flags; what is None or False is not given."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, dict) and not isinstance(value, Mesh):
            value = [f"{key}={one}" for key, one in value.items()]
        if value is None or value is False:
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [flag] if one is True else [f"{flag}={one}"]
    return words


def _run(verb, words, source=None, fails_from=2):
    """Runs a verb. `source` is a study or a program. Exit codes below `fails_from` are results too."""
    with tempfile.TemporaryDirectory(prefix="meshwright-") as folder:
        given = None
        if source is not None:
            source = getattr(source, "lower", lambda: source)() if hasattr(source, "as_text") else source  # of a compiled function, what it was lowered from
            source = source.as_text() if hasattr(source, "as_text") else source
            if isinstance(source, dict):
                given, source = json.dumps(source, default=str), "-"
            elif isinstance(source, str) and "\n" in source:
                file = pathlib.Path(folder) / "program.mlir"
                file.write_text(source)
                source = file
            words = [str(source), *words]
        done = subprocess.run([_program(), verb, *words, "--format=json", "--quiet"], input=given, capture_output=True, text=True)
    try:
        result = json.loads(done.stdout, object_hook=Result)
    except json.JSONDecodeError:
        raise Problems([], done.stderr.strip() or f"meshwright {verb} ended with exit code {done.returncode}") from None
    if done.returncode >= fails_from and result.get("schema") == "meshwright.problems/1":
        raise Problems(result.problems)
    return result


def check(source, **options):
    """Every mistake in a study or a program, each with its place and a fix; an empty list: there is none."""
    return _run("check", _words(options), source, fails_from=128).problems


def simulate(source, **options):
    """A step on hardware: `step_time_s`, `fits`, `bound_by`, `collectives` and more. Options: hw, mesh, set, stack, fidelity."""
    return _run("simulate", _words(options), source)


def plan(model, *, on, tokens, **options):
    """What training a model on a cluster takes: `plans`, `days`, `cost_usd`. `model` is a built-in one or a config.json; `on` is 512xH100."""
    return _run("plan", _words(dict(options, on=on, tokens=tokens)), model)


def search(source=None, **options):
    """The fastest layouts of a training step: `plans`, each with its step time and why it wins or loses. A study or a program, or model= and hw=."""
    return _run("search", _words(options), source)


def explain(what, **options):
    """What a problem id or a message of JAX, XLA or PyTorch means."""
    return _run("explain", [what, *_words(options)])


def layout(shape, spec, mesh, **options):
    """Where the pieces of an array lie: `shard_shape`, `shards`, `fully_replicated`."""
    sizes = "x".join(map(str, shape)) or "scalar"
    return _run("show", _words(dict(options, shape=sizes, spec=repr(spec) if isinstance(spec, tuple) else spec, mesh=Mesh(mesh))))
