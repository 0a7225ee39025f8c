# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.core: dicts that nothing changes, and what else of variables is no module."""
from . import meta
from .frozen_dict import FrozenDict, copy, freeze, pop, pretty_repr, unfreeze
from .scope import DenyList
