# SPDX-License-Identifier: GPL-3.0-or-later
"""What pages ask of JAX's backends."""


from .machine import machine


def backends_are_initialized():
    return False


class Backend:
    """The devices of the page's machine."""
    platform = property(lambda self: machine.platform)

    def devices(self):
        return list(machine.devices)

    def device_count(self):
        return len(machine.devices)

    local_devices, local_device_count = devices, device_count


def get_backend(platform=None):
    return Backend()
