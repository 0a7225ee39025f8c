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


def start_server(port):
    pass


def stop_server():
    pass


def device_memory_profile(backend=None):
    return b""


def save_device_memory_profile(filename, backend=None):
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))
