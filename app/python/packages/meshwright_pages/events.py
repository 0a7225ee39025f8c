# SPDX-License-Identifier: GPL-3.0-or-later
"""The event loop of a page, for cells that await and for asyncio.run: without sockets, which pages may not open."""
import asyncio
import os


class _Loop(asyncio.SelectorEventLoop):
    """Other threads wake it through a pipe."""

    def _make_self_pipe(self):
        self._awake, self._wake = os.pipe()
        os.set_blocking(self._awake, False), os.set_blocking(self._wake, False)
        self._internal_fds += 1
        self._add_reader(self._awake, self._read_from_self)

    def _close_self_pipe(self):
        self._remove_reader(self._awake)
        os.close(self._awake), os.close(self._wake)
        self._internal_fds -= 1

    def _read_from_self(self):
        try:
            os.read(self._awake, 4096)
        except BlockingIOError:
            pass

    def _write_to_self(self):
        try:
            os.write(self._wake, b"\0")
        except OSError:  # full, or closed
            pass


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = _Loop


def install():
    if not isinstance(asyncio.get_event_loop_policy(), _Policy):
        asyncio.set_event_loop_policy(_Policy())


_own = []


def run(coroutine):
    """Runs what a cell awaits. The loop is the same in all cells: their tasks go on while a later cell awaits."""
    install()
    if not _own or _own[0].is_closed():
        _own[:] = [asyncio.new_event_loop()]
    asyncio.set_event_loop(_own[0])
    return _own[0].run_until_complete(coroutine)
