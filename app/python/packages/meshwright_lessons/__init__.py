# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lessons (resources/lessons) show of programs: collectives, bytes, times, and pictures that move. Pages can use it too."""
import jax
import numpy as np
from jax._src import transforms
from jax._src.machine import machine


def _program(function, arguments):
    lowered = function if isinstance(function, transforms.Lowered) else jax.jit(function).lower(*arguments)
    return lowered._program


def collectives(function, *arguments):
    """The collectives that a program runs, each kind once: ["all-reduce over data"]."""
    return sorted({f"{call['op'].replace('_', '-')} over {call['axes']}" for call in _program(function, arguments).collectives})


def collective_bytes(function, *arguments):
    """Bytes per device of each kind of collective: {"all-reduce over data": 64}; of an all-gather those that a device has before it."""
    total = {}
    for call in _program(function, arguments).collectives:
        name = f"{call['op'].replace('_', '-')} over {call['axes']}"
        total[name] = total.get(name, 0) + call["count"] * call["bytes_per_device"]
    return total


def bytes_per_device(tree):
    """Of the arrays of a tree, with the pieces as the first device has them."""
    return sum(int(np.prod(leaf.sharding.shard_shape(leaf.shape))) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def seconds(function, *arguments):
    """Of a call on the page's machine, as the simulator predicts it."""
    return machine.seconds(_program(function, arguments))


def raises(function):
    """Whether a call raises."""
    try:
        function()
    except Exception:
        return True
    return False


class Frames:
    """What devices hold, step by step: arrays of devices x pieces, 0 where a device has nothing. Shown as a table, and as a picture that moves."""
    _SIZE, _SECONDS = 46, 1.5

    def __init__(self, frames, titles=None):
        self._frames = [np.asarray(frame) for frame in frames]
        self._titles = titles or [f"step {step}" if step else "before" for step in range(len(frames))]

    def __repr__(self):
        width = max(len(f"{value:g}") for frame in self._frames for value in frame.flat)
        rows = []
        for title, frame in zip(self._titles, self._frames):
            rows.append(title)
            for device, pieces in enumerate(frame):
                rows.append(f"  device {device}: " + "  ".join(f"{value:g}".rjust(width) if value else ".".rjust(width) for value in pieces))
        return "\n".join(rows)

    def _repr_svg_(self):
        devices, pieces = self._frames[0].shape
        size, count = self._SIZE, len(self._frames)
        width, height, total = 90 + pieces * size, 34 + devices * (size + 8), count * self._SECONDS
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
                 'font-family="sans-serif" font-size="13" text-anchor="middle"><rect width="100%" height="100%" fill="#fff"/>']
        for device in range(devices):
            y = 30 + device * (size + 8)
            parts.append(f'<text x="40" y="{y + size / 2 + 4}">device {device}</text>')
        for number, (title, frame) in enumerate(zip(self._titles, self._frames)):
            shown = ";".join("1" if step == number else "0" for step in range(count))
            parts.append(f'<g opacity="{1 if number == 0 else 0}"><animate attributeName="opacity" calcMode="discrete" values="{shown}" '
                         f'dur="{total}s" repeatCount="indefinite"/><text x="{width / 2}" y="18">{title}</text>')
            before = self._frames[number - 1] if number else frame
            for device, row in enumerate(frame):
                for piece, value in enumerate(row):
                    x, y = 80 + piece * size, 30 + device * (size + 8)
                    is_new = value != before[device, piece]
                    colour = "#f2b134" if is_new else f"hsl({piece * 360 // pieces},55%,80%)" if value else "#eee"
                    text = f'<text x="{x + size / 2}" y="{y + size / 2 + 4}">{value:g}</text>' if value else ""
                    parts.append(f'<g>{self._arrival(device, piece, number) if is_new else ""}<rect x="{x + 2}" y="{y}" width="{size - 4}" '
                                 f'height="{size}" rx="5" fill="{colour}" stroke="#999"/>{text}</g>')
            parts.append("</g>")
        return "".join(parts) + "</svg>"

    def _arrival(self, device, piece, number):
        """The piece comes from the device that had it before: the nearest one around the ring."""
        before, devices = self._frames[number - 1], len(self._frames[0])
        source = next((at for at in ((device - k) % devices for k in range(1, devices)) if before[at, piece]), device)
        way, start = (source - device) * (self._SIZE + 8), number / len(self._frames)
        end = start + 0.5 / len(self._frames)
        return (f'<animateTransform attributeName="transform" type="translate" values="0 {way};0 {way};0 0;0 0" keyTimes="0;{start:.4f};{end:.4f};1" '
                f'dur="{len(self._frames) * self._SECONDS}s" repeatCount="indefinite"/>')
