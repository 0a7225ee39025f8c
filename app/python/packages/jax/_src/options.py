# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that JAX's functions have and Meshwright's have not."""


def refuse(function, options, harmless=()):
    """Raises for an option that asks for something else than what is done. `harmless`: those that change no value."""
    for name, value in options.items():
        if name not in harmless and value is not None and value is not False:
            raise NotImplementedError(f"{function} with {name}={value!r}")
