# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.monitoring: nothing here tells of events; listeners hear only what the page itself records."""
_listeners = {"event": [], "duration": [], "scalar": []}


def _kind(kind):
    def register(callback):
        _listeners[kind].append(callback)

    def record(event, *value, **more):
        for callback in _listeners[kind]:
            callback(event, *value, **more)
    return register, record


register_event_listener, record_event = _kind("event")
register_event_duration_secs_listener, record_event_duration_secs = _kind("duration")
register_scalar_listener, record_scalar = _kind("scalar")


def clear_event_listeners():
    for listeners in _listeners.values():
        listeners.clear()
