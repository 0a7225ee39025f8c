# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.profiler: accepted; a page's programs are looked at in the page itself."""
import contextlib


def trace(*_, **__):
    return contextlib.nullcontext()


TraceAnnotation = StepTraceAnnotation = annotate_function = trace


def start_trace(*_, **__):
    pass


def stop_trace():
    pass
