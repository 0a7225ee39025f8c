# SPDX-License-Identifier: GPL-3.0-or-later
"""What `%timeit` and `%time` say: the simulated time of the page's machine, or what was measured here."""
import ast
import math
import re
import statistics
import sys
import time

from jax._src import arrays, trees
from jax._src.machine import machine

_LEAST_SECONDS = 0.2  # of all loops of a run, as IPython has it


def time_text(seconds):
    """Three digits and a unit, as IPython writes times."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _run(code, names):
    """Runs a statement, and gives its value, computed where it is measured."""
    exec(code[0], names)
    value = eval(code[1], names)
    if machine.measures:
        for leaf in trees.tree_flatten(value)[0]:
            if isinstance(leaf, arrays.ConcreteArray) and not leaf._handle.is_deleted:
                leaf._computed()
    return value


def _compiled(statement):
    """A statement as code, and the expression at its end, with the places of the cell that has it."""
    cell = sys._getframe(2)
    name = cell.f_code.co_filename
    tree = ast.parse("\n" * (cell.f_lineno - 1) + statement, name)
    has_value = tree.body and isinstance(tree.body[-1], ast.Expr)
    last = tree.body.pop().value if has_value else ast.Constant(None, lineno=1, col_offset=0)
    return compile(tree, name, "exec"), compile(ast.Expression(last), name, "eval")


def _simulated(programs):
    """Seconds that programs take on the page's machine, one after the other; None: there is none, or it cannot run one of them."""
    try:
        return None if machine.there is None else sum(machine.seconds(program) for program in programs)
    except RuntimeError:
        return None


class Result:
    """What `%timeit -o` gives."""

    def __init__(self, runs, loops, text):
        self.all_runs, self.timings, self.loops, self.repeat = [run * loops for run in runs], runs, loops, len(runs)
        self.average, self.best, self.worst, self.stdev = statistics.fmean(runs), min(runs), max(runs), statistics.pstdev(runs)
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__


class Timeit:
    """`%timeit STATEMENT` in a page's names."""

    def __init__(self, names):
        self._names = names

    def __call__(self, statement, options=""):
        code = _compiled(statement)
        result = self._measured(code, options) if machine.measures else self._predicted(code)
        if result is not None and "-q" not in options:
            print(result)
        return None if "-o" not in options else Result([math.nan], 1, "") if result is None else result

    def _predicted(self, code):
        before = len(arrays.calls)
        _run(code, self._names)
        seconds = _simulated(arrays.calls[before:])
        return None if seconds is None else Result([seconds], 1, f"{time_text(seconds)} per loop (simulated on {machine.hardware})")

    def _measured(self, code, options):
        said = {name: int(number) for name, number in re.findall(r"-([nr])\s*(\d+)", options)}
        _run(code, self._names)  # compiles
        called = len(arrays.calls)
        loops, repeats = said.get("n"), said.get("r", 7)
        if loops is None:
            loops = 1
            while self._seconds(code, loops) < _LEAST_SECONDS and loops < 10**7:
                loops *= 10
        runs = [self._seconds(code, loops) / loops for _ in range(repeats)]
        del arrays.calls[called:]  # the cell is said to have called its programs once
        return Result(runs, loops, f"{time_text(statistics.fmean(runs))} ± {time_text(statistics.pstdev(runs))} per loop (mean ± std. dev. of "
                      f"{repeats} run{'s' if repeats > 1 else ''}, {loops:,} loop{'s' if loops > 1 else ''} each)")

    def _seconds(self, code, loops):
        began = time.perf_counter()
        for _ in range(loops):
            _run(code, self._names)
        return time.perf_counter() - began


def timed(names):
    """`%time STATEMENT` in a page's names."""
    def time_(statement, options=""):
        code, before, began = _compiled(statement), len(arrays.calls), time.perf_counter()
        value = _run(code, names)
        if machine.measures:
            print(f"Wall time: {time_text(time.perf_counter() - began)}")
        elif (seconds := _simulated(arrays.calls[before:])) is not None:
            print(f"Wall time: {time_text(seconds)} (simulated on {machine.hardware})")
        return value
    return time_
