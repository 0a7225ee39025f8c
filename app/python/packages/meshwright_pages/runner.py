# SPDX-License-Identifier: GPL-3.0-or-later
"""Cells as a notebook runs them: magics, the value of the last expression, what was printed, what was raised."""
import __future__
import ast
import inspect
import io
import itertools
import linecache
import math
import os
import re
import sys
import time
import traceback
import types
import warnings

import jax
from jax._src import arrays, trees
from jax._src.shardings import NamedSharding, PartitionSpec, SingleDeviceSharding

from jax._src.machine import machine

from . import older_random, questions, timing
from .findings import Findings
from .left_out import Finder, Nothing

_MOST_OUTPUT = 100_000  # characters of a cell
_FLAX_0_12 = re.compile(r"\bnnx\.(List|Dict|Pytree|Data|Static|data|static|dataclass|is_data|has_data|check_pytree|register_data_type|capture|view|with_rngs)\b")
_TYPED_MESHES = re.compile(r"\bjax\.(P|set_mesh|shard_map|typeof|reshard)\(|\bAxisType\b|\bout_sharding=|\b(auto|explicit)_axes\b|"
                           r"\bfrom jax import .*\b(shard_map|set_mesh|typeof|P)\b")
_EXPLICIT_AXES = re.compile(r"\bjax\.(sharding\.)?reshard\(|\b(auto|explicit)_axes\b|\bAxisType\.Auto\b|^Auto = ", re.M)
_PARTIAL_SUMS = re.compile(r"\bP(artitionSpec)?\(.*\b(un)?reduced=")  # which only meshes with explicit axes have
_SILENT_MAGICS = ("matplotlib", "load_ext", "reload_ext", "autoreload", "config")
_MOST_VALUES = 12  # arrays that are listed for a cell


def import_all():
    """What pages may import, while its files can still be read."""
    import flax.nnx, optax, orbax.checkpoint, jax.experimental.mesh_utils, jax.experimental.shard_map  # noqa: E401, F401
    import jax.experimental.maps, jax.experimental.pjit, meshwright_lessons  # noqa: E401, F401
    machine.there  # reads the catalogue


def _layout(array, rank):
    """Of its first dimensions: those behind them are the words of keys."""
    sharding = array.sharding
    if isinstance(sharding, NamedSharding):
        mesh = ", ".join(f"{name}={size}" for name, size in sharding.mesh.shape_tuple)
        spec = sharding.spec.of_rank(array.ndim)
        return f"{(spec if rank == array.ndim else PartitionSpec(*spec[:rank])).text} on {mesh}"
    if isinstance(sharding, SingleDeviceSharding):
        return f"on device {sharding.device_list[0].id}"
    return array._handle.placement.text("hlo")


def _without_prompts(lines):
    """The code of a session of Python's terminal; what it printed becomes blank lines."""
    is_input = False
    for line in lines:
        is_input = line.startswith(">>>") or is_input and line.startswith("...")
        yield line[4:] if is_input else ""


def _is_shown_to_raise(lines, part, error):
    """Whether a session of Python's terminal shows behind a statement that it raises an error of this kind."""
    last = max((node.end_lineno for node in ast.walk(part) if hasattr(node, "end_lineno")), default=0)
    behind = [line for line in itertools.takewhile(lambda line: not line.startswith(">>>"), lines[last:]) if line.strip() and not line.startswith("...")]
    if not behind or not behind[0].startswith("Traceback (most recent call last)"):
        return False
    said = {match[1].split(".")[-1] for line in behind[1:] if (match := re.match(r"([A-Za-z_][\w.]*)(:|$)", line))}
    return bool(said & {kind.__name__ for kind in type(error).__mro__ if kind not in (Exception, BaseException, object)})


def _parts_of(tree, shows_all, is_silent):
    """What of a cell runs as one, and the expressions whose values are shown: the last. Of a session of Python's terminal, each statement and all values."""
    if shows_all:
        for part in tree.body:
            yield ast.Expression(part.value) if isinstance(part, ast.Expr) and not is_silent else ast.Module([part], tree.type_ignores)
        return
    is_shown = tree.body and isinstance(tree.body[-1], ast.Expr) and not is_silent
    together = []  # statements that run as one; each import runs alone
    for part in tree.body[:len(tree.body) - bool(is_shown)]:
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            yield ast.Module(together, tree.type_ignores)
            yield ast.Module([part], tree.type_ignores)
            together = []
        else:
            together.append(part)
    yield ast.Module(together, tree.type_ignores)
    if is_shown:
        yield ast.Expression(tree.body[-1].value)


def _awaits(node):
    """Whether something is awaited outside of functions."""
    return any(isinstance(child, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or getattr(child, "is_async", False) or _awaits(child)
               for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


class _Output(io.StringIO):
    """What a cell prints, up to a length."""

    def write(self, text):
        room = _MOST_OUTPUT - self.tell()
        if room > 0:
            super().write(text[:room] + ("\n[cut]\n" if len(text) > room else ""))
        return len(text)


class _Warnings(io.TextIOBase):
    """What a cell writes to sys.stderr: shown in its place among what it prints, and kept apart."""

    def __init__(self, out):
        self._out, self._spans = out, []

    def write(self, text):
        start = self._out.tell()
        self._out.write(text)
        self._spans.append((start, self._out.tell()))
        return len(text)

    def left_out(self):
        """What the cell prints, without these."""
        text, end = self._out.getvalue(), 0
        kept = []
        for start, after in self._spans:
            kept.append(text[end:start])
            end = after
        return "".join(kept) + text[end:]


class Page:
    """The cells, and the names that they share."""

    def __init__(self, cells, after):
        module = types.ModuleType("__main__")
        module.display = self._display
        module._timeit, module._time = timing.Timeit(module.__dict__), timing.timed(module.__dict__)
        sys.modules["__main__"] = module
        sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "stand_ins"))  # behind what is installed
        self._names = module.__dict__
        self._number = 0
        self._leaves_out = False  # whether lines of the cell that print are not run
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # and those of features of Python that the page imports from __future__
        self._notes, self._first_notes = [], []
        sys.meta_path.append(Finder(lambda name: self._notes.append(f"{name} is not installed here: what it would show is left out")))
        self._cells = cells
        self._sources = [self._shown(cell["source"]) for cell in cells]
        machine.older_flax = not any(_FLAX_0_12.search(source) for source in self._sources)
        named = "\n".join(self._sources)
        machine.has_typed_meshes = bool(_TYPED_MESHES.search(named))
        machine.makes_explicit = bool(_EXPLICIT_AXES.search(named)) and "AxisType.Explicit" not in named or bool(_PARTIAL_SUMS.search(named))
        if not machine.legacy_random and "threefry_partitionable" not in named and older_random.is_older(cells):
            machine.legacy_random = True
            self._first_notes.append("random numbers as before JAX 0.5, which the page printed")
        if re.search(r"\basyncio\b", named):
            from . import events
            events.install()
        self._findings = Findings(self._sources, [cell["text"] for cell in cells], after)

    def _shown(self, source):
        """A cell as Python, without what measures it; one that is not Python as it is: it raises when it runs."""
        try:
            return self._plain(source, False)
        except SyntaxError:
            return source

    def change(self, number, source):
        """Gives a cell another source, from its next run on."""
        self._cells[number]["source"] = source
        self._sources[number] = self._shown(source)
        self._findings.change(number)

    def _display(self, *values):
        for value in values:
            print(repr(value))
            if hasattr(value, "_repr_svg_"):
                self._pictures.append(value._repr_svg_())

    def findings(self):
        """Those that need the whole page, when all cells have run."""
        return self._findings.of_page()

    def run(self, number):
        self._number = number + 1
        self._notes, self._first_notes = self._first_notes, []
        arrays.refused.clear()
        arrays.lost.clear()
        arrays.regathered.clear()
        out = _Output()
        arrays.calls.clear()
        had = {name: id(value) for name, value in self._names.items()}
        before, began = (sys.stdout, sys.stderr), time.perf_counter()
        self._leaves_out, warned = False, _Warnings(out)
        sys.stdout, sys.stderr = out, warned
        answer, raised, self._pictures = {"status": "ran", "error": None}, None, []
        try:
            with warnings.catch_warnings():
                self._show_warnings()
                cell = self._cells[number]
                if "question" in cell:
                    self._tell_answer(cell["source"], cell["question"])
                else:
                    self._execute(self._plain(cell["source"]), cell["source"].split("\n") if self._has_prompts(cell["source"]) else ())
        except BaseException as error:  # also SystemExit and KeyboardInterrupt of a cell
            raised = error
            answer["status"] = "not computed" if isinstance(error, arrays.NotComputed) else "raised"
            answer["error"] = self._told(error)
        finally:
            sys.stdout, sys.stderr = before
        if arrays.refused and raised is None:
            self._notes.append("not computed: " + arrays.refused[0])
        answer.update(output=out.getvalue(), printed=warned.left_out(), leaves_out=self._leaves_out, seconds=time.perf_counter() - began, notes=self._notes,
                      collectives=self._collectives(), values=self._values(had),
                      findings=self._findings.of_cell(number, answer["status"], raised, arrays.calls))
        answer.update(pictures=self._pictures, simulated=self._simulated())
        return answer

    # ---- questions

    def _tell_answer(self, source, question):
        """Prints the answer, and why it is."""
        value = eval(source, self._names)
        print(questions.text_of(value))
        if question["check"] and not eval(question["check"], {**self._names, "answer": value}):
            raise AssertionError(f"{source} does not pass {question['check']}")
        if question["why"]:
            print("\n" + re.sub(r"\{([^{}]+)\}", lambda match: questions.text_of(eval(match[1], self._names)), question["why"]))

    def judge(self, number, text):
        """Whether a person's answer to a question is right, whether it could be read, and what it raised."""
        cell = self._cells[number]
        check = cell["question"]["check"]
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = _Output()
        try:
            answer = eval(cell["source"], self._names)
            said = questions.read(answer, text, self._names)
            is_right = bool(eval(check, {**self._names, "answer": said})) if check else questions.is_same(answer, said)
            return {"right": is_right, "read": True, "said": ""}
        except questions.NotRead as error:
            return {"right": False, "read": False, "said": str(error)}
        except Exception as error:
            return {"right": False, "read": True, "said": "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])}
        finally:
            sys.stdout, sys.stderr = before

    def _simulated(self):
        """Seconds that the programs of the cell take on the page's machine, one after the other; None: there is no machine, or one cannot be simulated."""
        if machine.there is None or not arrays.calls:
            return None
        try:
            return sum(machine.seconds(program) for program in arrays.calls)
        except Exception as error:
            self._notes.append(f"no simulated time: {error}")
            return None

    @staticmethod
    def _show_warnings():
        """As notebooks do: those for users, and of deprecations those that a cell itself is told."""
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")

    def _values(self, had):
        """Where the arrays lie that names stand for which the cell gave."""
        rows, more = [], 0
        for name, value in self._names.items():
            if had.get(name) == id(value) or name.startswith("_"):
                continue
            try:
                leaves = trees.tree_flatten_with_path(value, is_leaf=lambda one: isinstance(one, jax.random.KeyArray))[0]
            except Exception:  # a container of the page's own that is not a tree, such as a dict whose keys have no order
                continue
            for path, leaf in leaves:
                array = leaf._data if isinstance(leaf, jax.random.KeyArray) else leaf
                if not isinstance(array, arrays.ConcreteArray) or array._handle.is_deleted:
                    continue
                if len(rows) == _MOST_VALUES:
                    more += 1
                    continue
                piece = math.prod(array.sharding.shard_shape(array.shape)) if array.shape else 1
                rows.append({"name": name + trees.keystr(path), "type": arrays.type_text(leaf), "layout": _layout(array, leaf.ndim),
                             "bytes_per_device": piece * array.dtype.itemsize})
        if more:
            self._notes.append(f"{more} more array{'s are' if more > 1 else ' is'} not listed")
        return rows

    # ---- magics

    def _plain(self, source, times=True):
        """The cell as Python: lines that only notebooks know become calls, `%timeit f(x)` a call of `_timeit`; or `f(x)`, unless `times`."""
        lines = source.split("\n")
        if self._has_prompts(source):
            return "\n".join(_without_prompts(lines))
        first = next((i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")), None)
        if first is not None and lines[first].startswith("%%"):
            name = lines[first].split()[0]
            body = "\n" + "\n".join(lines[first + 1:])
            if name in ("%%time", "%%timeit") and times:
                return "\n" * first + self._timed(name[2:], lines[first][len(name):].lstrip() + body)
            if name in ("%%time", "%%timeit", "%%capture"):
                return "\n" * first + body
            raise SyntaxError(f"{name} cells are not run")
        made = []
        for line in lines:
            stripped = line.lstrip()
            indent = line[:len(line) - len(stripped)]
            magic = re.match(r"%(\w+)\s*(.*)", stripped)
            kept = re.match(r"(\w+\s*=\s*|)%(timeit|time)\s+(.*)", stripped)
            if stripped.startswith("!"):
                made.append(indent + self._not_run(stripped))
            elif kept:
                made.append(indent + kept[1] + (self._timed(kept[2], kept[3]) if times else kept[3]))
            elif magic and not self._is_python(source):
                made.append(indent + self._not_run(stripped))
            else:
                made.append(line)
        return "\n".join(made)

    def _not_run(self, line):
        self._notes.append(f"not run: {line}")
        self._leaves_out |= not line.lstrip("%").startswith(_SILENT_MAGICS)
        return "pass"

    def _timed(self, magic, statement):
        """A magic that measures, as a call of what does it here."""
        if machine.there is None and not machine.measures:
            self._notes.append(f"%{magic} runs its statement once: --hw names a machine to simulate it on, --measure measures here")
        options = re.match(r"(-[a-z] *\d*\s+)*", statement)[0] if statement.startswith("-") else ""
        return f"_{magic}({statement[len(options):]!r}, {options!r})"

    @staticmethod
    def _has_prompts(source):
        """Whether a cell is a session of Python's terminal."""
        return source.lstrip().startswith(">>>")

    @staticmethod
    def _is_python(source):
        try:
            ast.parse(source)
            return True
        except SyntaxError:
            return False

    # ---- running

    def _execute(self, source, session=()):
        """`session`: the lines of a session of Python's terminal, which goes on behind a statement that it shows to raise."""
        name = f"<cell {self._number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        tree = ast.parse(source, name)
        for part in tree.body:  # notebooks take them anywhere, from then on in all cells
            if isinstance(part, ast.ImportFrom) and part.module == "__future__":
                for alias in part.names:
                    self._flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
        running = self._execute_parts(_parts_of(tree, bool(session), source.rstrip().endswith(";")), name, session)
        if _awaits(tree):
            from . import events
            error = events.run(running)
        else:
            try:
                running.send(None)
            except StopIteration as end:
                error = end.value
        if error is not None:
            raise error

    async def _execute_parts(self, parts, name, session):
        """Gives what they raise."""
        missing = None  # the first import that could not be carried out: what stands behind it runs nevertheless
        for part in parts:
            try:
                value, is_awaited = self._evaluated(part, name)
                value = await value if is_awaited else value
                if isinstance(part, ast.Expression) and value is not None and not isinstance(value, Nothing):
                    self._names["_"] = value
                    self._display(value)
            except Exception as error:
                if isinstance(error, ImportError) and isinstance(part, ast.Module) and isinstance(part.body[-1], (ast.Import, ast.ImportFrom)):
                    missing = missing or error
                    self._import_others(part, name)
                elif not session or not _is_shown_to_raise(session, part, error):
                    return missing or error
                else:
                    print("Traceback (most recent call last):\n" + "".join(traceback.format_exception_only(error)).rstrip())
        return missing

    def _import_others(self, part, name):
        """Of an import of several names, those that can be had."""
        for alias in part.body[-1].names:
            statement = part.body[-1]
            one = ast.Import([alias]) if isinstance(statement, ast.Import) else ast.ImportFrom(statement.module, [alias], statement.level)
            try:
                self._evaluated(ast.Module([ast.copy_location(one, statement)], []), name)
            except ImportError:
                pass

    def _evaluated(self, part, name):
        """The value of a part, and whether it is to be awaited."""
        code = compile(part, name, "exec" if isinstance(part, ast.Module) else "eval", self._flags)
        return eval(code, self._names), bool(code.co_flags & inspect.CO_COROUTINE)

    def _told(self, error):
        """The error's class and text, the line of the cell, and the notes that say what Meshwright knows of it."""
        line = None
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.startswith("<cell "):
                line = frame.lineno if frame.filename == f"<cell {self._number}>" else line
        if isinstance(error, SyntaxError):
            line = error.lineno
        missing = not hasattr(error, "is_raised_by_jax") and (isinstance(error, NotImplementedError) or isinstance(error, (AttributeError, ImportError)) and any(
            word in str(error) for word in ("jax", "flax", "optax", "orbax")))
        message = re.sub(r" \((/[^)]*|unknown location)\)$", "", str(error)) if isinstance(error, ImportError) else str(error)
        return {"class": type(error).__name__, "message": message, "line": line,
                "notes": list(getattr(error, "__notes__", [])), "missing": missing}

    @staticmethod
    def _collectives():
        rows = {}
        for program in arrays.calls:
            for call in program.collectives:
                key = (program.name, call["op"], call["axes"], call["bytes_per_device"], call["value"])
                row = rows.setdefault(key, dict(call, program=program.name, count=0))
                row["count"] += call["count"]
        return list(rows.values())
