# SPDX-License-Identifier: GPL-3.0-or-later
"""jax.ad_checkpoint: what is kept for the derivative, and what is made again, changes memory and no values."""
import functools


class _Policies:
    """Names of what is kept."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: name


checkpoint_policies = _Policies()


def checkpoint(fun=None, *, prevent_cse=True, policy=None, static_argnums=(), concrete=False):
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)

    @functools.wraps(fun)
    def called(*args, **kwargs):
        return fun(*args, **kwargs)
    return called


remat = checkpoint


def checkpoint_name(x, name):
    return x


def print_saved_residuals(fun, *args, **kwargs):
    raise NotImplementedError("jax.ad_checkpoint.print_saved_residuals: what a derivative keeps is chosen when its program is planned")
