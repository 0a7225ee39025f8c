# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a page, as far as its sources, its words and its programs show it. A finding is a dict with the `id` of a problem, `line`
(of the cell; 0: none), `message` and `fix`."""
import ast
import builtins
import importlib
import importlib.util
import math
import re

from jax._src import arrays, shardings

# Older names, and what today's JAX says.
_RENAMED = {
    "jax.experimental.maps": "jax.sharding.Mesh, and jax.shard_map for xmap",
    "jax.experimental.pjit": "jax.jit, which takes in_shardings and out_shardings",
    "jax.experimental.shard_map": "jax.shard_map",
    "jax.experimental.global_device_array": "jax.Array",
    "jax.experimental.host_callback": "jax.pure_callback or jax.experimental.io_callback",
    "jax.experimental.optimizers": "jax.example_libraries.optimizers",
    "jax.experimental.stax": "jax.example_libraries.stax",
    "jax.config.config": "jax.config",
    "jax.host_count": "jax.process_count",
    "jax.host_id": "jax.process_index",
    "jax.numpy.DeviceArray": "jax.Array",
    **{f"jax.ops.index_{name}": f"x.at[index].{method}" for name, method in (("update", "set"), ("add", "add"), ("mul", "multiply"), ("min", "min"), ("max", "max"))},
    "jax.experimental.PartitionSpec": "jax.sharding.PartitionSpec",
    "jax.interpreters.pxla": "jax.sharding",
    "jax.interpreters.sharded_jit": "jax.jit",
    "jax.sharding.PositionalSharding": "jax.sharding.NamedSharding with a mesh and a PartitionSpec",
    **{f"jax.tree_{name}": f"jax.tree.{name}" for name in ("map", "flatten", "unflatten", "leaves", "structure", "reduce", "transpose")},
    "jax.tree_multimap": "jax.tree.map",
    "jax.device_put_replicated": "jax.device_put with a NamedSharding",
    "jax.device_put_sharded": "jax.device_put with a NamedSharding",
}
_DRAWS = ("normal", "uniform", "truncated_normal", "bernoulli", "randint", "bits", "exponential", "gumbel", "categorical", "choice",
          "permutation")
_COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")


def _finding(id_, message, fix="", line=0):
    return {"id": id_, "line": line, "message": message, "fix": fix}


def _parsed(source):
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _assigned(tree):
    """Names that a cell gives values to, at its own level."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return names


def _values_returned(function):
    """How many values a function returns, as its return statements say; None: they do not, or differ."""
    counts, open_ = set(), list(function.body)
    while open_:
        node = open_.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return None
        if isinstance(node, ast.Return):
            is_told = isinstance(node.value, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in node.value.elts)
            counts.add(len(node.value.elts) if is_told else None)
        open_ += ast.iter_child_nodes(node)
    return counts.pop() if len(counts) == 1 else None


class Findings:
    """Looks at the cells of a page as they run. `cells` are their sources as Python, `words` the page's words before each."""

    def __init__(self, cells, words, after):
        self._sources, self._returns = cells, None
        self._trees = [_parsed(cell) for cell in cells]
        self._words, self._after = words, after
        self._status = {}  # by cell
        self._aliases = {}  # what a name stands for: {"P": "jax.sharding.PartitionSpec"}
        self._told = {}  # the cell that an older name was told of
        self._meshes = {}  # the cell in which a program first computed on a mesh
        self._weights = {}  # arguments of programs on several devices that are called weights: whether one was ever split
        self._with_weights = None  # the cell that first ran such a program

    def change(self, number):
        """A cell has another source."""
        self._trees[number], self._returns = _parsed(self._sources[number]), None

    def of_cell(self, number, status, error, programs):
        """Findings of a cell that ran, by what it raised (or nothing) and the programs that it ran."""
        self._status[number] = status
        tree = self._trees[number]
        found = self._older_names(number, tree) + self._same_key(tree)
        if isinstance(error, NameError) and getattr(error, "name", None):
            found += self._name_that_is_missing(number, error.name)
        for mesh in shardings.used:
            if any(mesh.core == one for program in programs for one in program.meshes):
                self._meshes.setdefault(mesh, number)
        self._note_weights(number, programs)
        return (found + self._lost_changes() + self._repeated_products(programs) + self._gathered_in_vain(programs) + self._unpacked_wrong(number)
                + self._other_collective(number, programs) + self._memory_of_weights(number))

    def of_page(self):
        """Findings that need the whole page, each with the number of its cell."""
        found = []
        if len(self._status) == len(self._trees) and all(status == "ran" for status in self._status.values()):
            for mesh, number in self._meshes.items():
                found += [dict(finding, cell=number) for finding in self._idle_axes(mesh)]
        found += [dict(finding, cell=self._with_weights) for finding in self._whole_weights()]
        for number, words in enumerate(self._words[1:] + [self._after]):
            found += [dict(finding, cell=number) for finding in self._denied_names(words)]
        return found

    # ---- names

    def _dotted(self, node):
        """The full name of an expression, jax.sharding.Mesh; empty when it is none of a module's."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._aliases.get(node.id, node.id)] + parts[::-1])

    def _older_names(self, number, tree):
        uses, told = [], set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    uses.append((alias.name, node.lineno))
                    self._aliases[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    uses.append((f"{node.module}.{alias.name}", node.lineno))
                    self._aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        uses += [(self._dotted(node), node.lineno) for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))]
        found = []
        for use, line in uses:
            for old, new in _RENAMED.items():
                if (use == old or use.startswith(old + ".")) and self._told.setdefault(old, number) == number and old not in told:
                    told.add(old)
                    found.append(_finding("MW1570", f"line {line}: {old} is an older name", f"write {new}", line))
        return found

    def _name_that_is_missing(self, number, name):
        makers = [at for at, tree in enumerate(self._trees) if at != number and name in _assigned(tree)]
        before = [at for at in makers if at < number]
        if before:
            return [_finding("MW1572", f"{name} is made in cell {before[-1] + 1}, which {self._status.get(before[-1], 'was not run')}", f"fix cell {before[-1] + 1}")]
        if makers:
            return [_finding("MW1572", f"{name} is made further down, in cell {makers[0] + 1}", "run that cell first")]
        if hasattr(builtins, name):
            return []
        try:
            is_module = name in ("jnp", "np") or importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            is_module = False
        wanted = {"jnp": "import jax.numpy as jnp", "np": "import numpy as np"}.get(name, f"import {name}")
        return [_finding("MW1572", f"no cell of the page makes {name}", wanted if is_module else f"give {name} a value in a cell before")]

    def _denied_names(self, words):
        """Names that the page says do not exist, and do."""
        found = []
        denial = r"(?:non-?existent|(?:do(?:es)? not|doesn't|don't) exist|not (?:a )?(?:real|existing) \w+|no such (?:function|module|name|API))"
        for match in re.finditer(rf"{denial}[^.\n`]{{0,60}}`([\w.]+)`|`([\w.]+)`[^.,;\n`]{{0,30}}{denial}|there is no `([\w.]+)`", words, re.I):
            name = next(group for group in match.groups() if group)
            parts = name.split(".")
            if parts[0] not in ("jax", "flax", "optax", "orbax") or name in _RENAMED:  # an older name is gone from today's JAX
                continue
            thing = None
            for part in range(1, len(parts) + 1):
                try:
                    thing = importlib.import_module(".".join(parts[:part]))
                except ImportError:
                    thing = getattr(thing, parts[part - 1], None)
            if thing is not None:
                found.append(_finding("MW1575", f"the page says that {name} does not exist: it does", f"use {name}"))
        return found

    # ---- keys

    def _same_key(self, tree):
        """Draws in one list of statements with one key that is not renewed between them, where both results are kept: pages that show what a
        key does print them."""
        found = []
        for node in ast.walk(tree):
            for body in (getattr(node, field, None) for field in ("body", "orelse")):
                if isinstance(body, list):
                    found += self._same_key_in(body)
        return found[:1]

    def _same_key_in(self, body):
        used = {}
        for statement in body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
                for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                    name = self._dotted(call.func)
                    if not (name.startswith("jax.random.") and name.split(".")[-1] in _DRAWS and call.args):
                        continue
                    key = ast.unparse(call.args[0])
                    is_made_here = isinstance(call.args[0], ast.Call) and self._dotted(call.args[0].func) in ("jax.random.PRNGKey", "jax.random.key")
                    if not (isinstance(call.args[0], (ast.Name, ast.Subscript)) or is_made_here):
                        continue
                    first = used.setdefault(key, call)
                    if first is not call:
                        return [_finding("MW1571", f"lines {first.lineno} and {call.lineno} draw from the same key, {key}: what they draw is not independent",
                                         "split it, and draw each array from a key of its own: k1, k2 = jax.random.split(key)", call.lineno)]
            for name in (node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                used = {key: call for key, call in used.items() if not re.search(rf"\b{re.escape(name)}\b", key)}
        return []

    # ---- what programs do

    @staticmethod
    def _repeated_products(programs):
        """Axes over which arguments are split and no product is."""
        rows = sorted({(program.name, axis, size) for program in programs for axis, size in program.repeated_axes})
        return [_finding("MW1577", f"all {size} devices along {axis} compute the same products of {name}: what is split over {axis} is gathered first",
                         f"split the batch over {axis} too") for name, axis, size in rows]

    def _note_weights(self, number, programs):
        for program in programs:
            if any(len(mesh.order) > 1 for mesh in program.meshes):
                for name, rank, is_split in program.arguments:
                    if rank > 1 and re.search(r"(?i)\b(params?|parameters|weights?|kernel|w_?\d*)\b", name):
                        self._weights[name] = self._weights.get(name, False) or is_split
                        self._with_weights = number if self._with_weights is None else self._with_weights

    def _whole_weights(self):
        """Words that say model parallelism, in a page that never splits a weight, neither itself nor within a function."""
        claim = re.search(r"\b(model|tensor)[- ]parallel(ism)?\b", "\n".join([*self._words, self._after]), re.I)
        axis = next((name for mesh in shardings.used for name in mesh.axis_names if re.match(r"(?i)(model|mdl|tensor|tp|mp|hidden|feature)", str(name))), None)
        if not claim or axis is None or not self._weights or any(self._weights.values()) or re.search(
                r"\b(shard_map|with_sharding_constraint|with_partitioning|with_logical_partitioning|pmap|reshard)\b", "\n".join(self._sources)):
            return []
        names = sorted(self._weights)
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return [_finding("MW1581", f"the page says {claim[0]}, and splits no weight: each device has all of {listed}",
                         f"split weights over an axis: {names[0]} = jax.device_put({names[0]}, NamedSharding(mesh, P(None, {axis!r})))")]

    @staticmethod
    def _gathered_in_vain(programs):
        """Values that are gathered over an axis, and that the next product wants split over it."""
        rows = sorted({(program.name, *row) for program in programs for row in program.gathered_and_taken_apart})
        found = [_finding("MW1578", f"{name} gathers {type_} over {axis}, and the next product wants it split over {axis}: each device throws away what it "
                          "received", f"keep {axis} in the spec of that array") for name, type_, axis in rows]
        return found + [_finding("MW1578", f"{function} gathers its result over {axis} (out_shardings), and the program that takes it as {argument} wants "
                                 f"it split over {axis}", f"keep {axis} in the result's out_shardings")
                        for function, axis, argument in sorted(set(arrays.regathered))]

    # ---- results and memory

    def _functions(self):
        """The functions of the page by name: the cell of each, the names of its parameters, and how many values it returns (None: not known). Names that
        the page gives to something else too are left out, unless a function that makes the one of this name gives it."""
        if self._returns is None:
            self._returns, makers, others = {}, {}, set()
            for number, tree in enumerate(self._trees):
                for node in ast.walk(tree):
                    if isinstance(node, ast.FunctionDef) and all(self._keeps_results(decorator) for decorator in node.decorator_list):
                        self._returns.setdefault(node.name, []).append((number, [argument.arg for argument in node.args.args], _values_returned(node)))
                        makers.setdefault(node.name, set()).update(inner.name for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef))
            for node in (node for tree in self._trees for node in ast.walk(tree)):
                made = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and makers.get(ast.unparse(node.value.func), ())
                for target in ast.walk(node) if isinstance(node, ast.Assign) else ():
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store) and not (made and target.id in made):
                        others.add(target.id)
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    others |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            for name in others:
                self._returns.pop(name, None)
        return self._returns

    def _keeps_results(self, decorator):
        text = ast.unparse(decorator)
        return re.match(r"(functools\.)?partial\(", text) is not None and "jit" in text or text.split("(")[0].split(".")[-1] == "jit"

    def _unpacked_wrong(self, number):
        """Calls of the page's own functions whose results are taken apart into more or fewer names than they return."""
        found = []
        for node in ast.walk(self._trees[number]):
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call)
                    and isinstance(node.value.func, ast.Name)) or any(isinstance(part, ast.Starred) for part in node.targets[0].elts):
                continue
            name, wanted = node.value.func.id, len(node.targets[0].elts)
            before = [row for row in self._functions().get(name, ()) if row[0] <= number]
            arguments = [argument.id for argument in node.value.args if isinstance(argument, ast.Name)]
            meant = [row for row in before if row[1] == arguments] or before[-1:]
            if meant and all(row[2] not in (None, wanted) for row in meant):
                found.append(_finding("MW1579", f"line {node.lineno} takes {wanted} values from {name}, which returns {meant[-1][2]}",
                                      f"write {meant[-1][2]} names before the = sign", node.lineno))
        return found

    def _memory_of_weights(self, number):
        """Words or comments that give the memory of a device as that of the weights, in a page that trains."""
        if not any(re.search(r"\b(optax\.|Optimizer\b|value_and_grad|jax\.grad\b|nnx\.grad\b)", source) for source in self._sources):
            return []
        comments = "\n".join(re.findall(r"#[^\n]*", self._sources[number]))
        last = [part for part in self._words[number].split("\n\n") if part.strip()]
        text = " ".join(last[-1:]) + "\n" + comments
        amount = re.search(r"\d+(?:\.\d+)?\s?[MGT]i?B\b[^.\n]{0,40}\b(?:per|each|every|a) (?:device|chip|GPU|TPU|accelerator|core)", text, re.I)
        if (amount and re.search(r"\b(memory|needs?|requires?|fits?)\b", text, re.I) and re.search(r"\b(model|weights?|parameters?)\b", text, re.I)
                and not re.search(r"gradient|optimi[sz]er|moment|adam\b|activation|cache", text, re.I)):
            return [_finding("MW1580", f'"{amount[0].strip()}" counts the weights only: training also keeps their gradients and the optimizer\'s state, with Adam four '
                             "times as much in all", "say that it is the memory of the weights, or count gradients, moments and activations too")]
        return []

    @staticmethod
    def _lost_changes():
        """Arguments that a jitted function changes in place and does not return."""
        by_function = {}
        for function, path in arrays.lost:
            by_function.setdefault(function, []).append(path)
        return [_finding("MW1576", f"{function} changes {paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''} of its arguments and does "
                         "not return it: jax.jit works on a copy, and the change is lost", "return what is changed, or use nnx.jit")
                for function, paths in by_function.items()]

    def _other_collective(self, number, programs):
        """Words before a cell, or its comments, that name a collective which does not run, where another one does."""
        ran = {call["op"].replace("_", "-") for program in programs for call in program.collectives}
        last = [part for part in self._words[number].split("\n\n") if part.strip()]
        named = {name for name in _COLLECTIVES if re.search(name.replace("-", "[- ]?"), " ".join(last[-2:]), re.I)}
        if len(ran) == 1 and len(named) == 1 and ran != named and ran <= set(_COLLECTIVES):
            said, is_real = named.pop(), ran.pop()
            return [_finding("MW1574", f"the words before this cell name {said}: what runs is {is_real}", f"write {is_real}")]
        return []

    @staticmethod
    def _idle_axes(mesh):
        found = []
        used = shardings.used[mesh]
        for axis, size in mesh.shape_tuple:
            if size > 1 and axis not in used and any(other in used for other in mesh.axis_names):
                rest = math.prod(count for name, count in mesh.shape_tuple if name != axis)
                found.append(_finding("MW1573", f"no array of the page is split over {axis} of {mesh}: the {size} devices along it do the same work, "
                                      f"so {rest} of {rest * size} devices would do",
                                      f"split an array over {axis}, for example weights by P(None, {axis!r}), or give its devices to another axis"))
        return found
