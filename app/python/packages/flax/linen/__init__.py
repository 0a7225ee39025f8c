# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.linen: modules whose variables are handed over at each call."""
import sys as _sys

from jax.nn import (celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, initializers, leaky_relu, log_sigmoid, log_softmax, logsumexp, one_hot,
                    relu, relu6, selu, sigmoid, silu, soft_sign, softmax, softplus, standardize, swish, tanh)
from jax.nn.initializers import ones, ones_init, zeros, zeros_init

from ..core import DenyList, FrozenDict, meta
from ..core.meta import PARTITION_NAME, Partitioned, get_partition_spec, get_sharding, unbox, with_partitioning
from ..nnx._attention import combine_masks, make_attention_mask, make_causal_mask
from ..nnx._convolution import avg_pool, max_pool, min_pool
from ._layers import (BatchNorm, Conv, ConvTranspose, Dense, DenseGeneral, Dropout, Einsum, Embed, GroupNorm, InstanceNorm, LayerNorm, MultiHeadAttention,
                      MultiHeadDotProductAttention, PReLU, RMSNorm, SelfAttention, Sequential, dot_product_attention, dot_product_attention_weights)
from ._lifted import add_metadata_axis, broadcast, checkpoint, cond, jit, map_variables, remat, scan, switch, vmap, while_loop
from ._module import Module, Variable, apply, compact, init, init_with_output, merge_param, nowrap
from ._partitioning import (LogicallyPartitioned, RulesFallback, get_logical_axis_rules, logical_axis_rules, logical_to_mesh, logical_to_mesh_axes,
                            logical_to_mesh_sharding, set_logical_axis_rules, with_logical_constraint, with_logical_partitioning)
from ._recurrent import Bidirectional, GRUCell, LSTMCell, OptimizedLSTMCell, RNN, RNNCellBase, SimpleCell
from ._reparametrized import SpectralNorm, WeightNorm
from ._summary import tabulate

# Where Flax defines them: pages name these modules, too.
for _name in ("activation", "attention", "combinators", "linear", "module", "normalization", "pooling", "recurrent", "spmd", "stochastic", "transforms"):
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _sys.modules[__name__]
_sys.modules[f"{__name__}.initializers"] = initializers
