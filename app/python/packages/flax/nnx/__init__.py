# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx: modules are Python objects whose variables are found by walking them."""
from jax.nn import (elu, gelu, glu, leaky_relu, log_softmax, one_hot, relu, sigmoid, silu, softmax, softplus, swish, tanh)
from jax.nn import initializers

from ._graph import (GraphDef, Object, State, Variable, VariableState, clone, graphdef, iter_graph, merge, pop, split, state, update)
from ._convolution import Conv, ConvTranspose, avg_pool, max_pool, min_pool
from ._layers import (BatchNorm, Dropout, Embed, LayerNorm, Linear, Module, RMSNorm, Sequential, view)
from ._random import RngCount, RngKey, RngState, RngStream, Rngs
from ._spmd import (PARTITION_NAME, get_named_sharding, get_partition_spec, logical_axis_rules, use_eager_sharding, using_eager_sharding, vmap,
                    with_metadata, with_partitioning, with_sharding_constraint)
from . import _metrics as metrics
from ._metrics import Metric, MultiMetric
from ._scan import Carry, scan
from ._training import Optimizer
from ._transforms import eval_shape, get_abstract_model, grad, jit, value_and_grad
from ._variables import BatchStat, Cache, Intermediate, Param


class nn:
    """Where newer pages look for the defaults of layers."""

    class linear:
        default_kernel_init = staticmethod(initializers.lecun_normal())
        default_bias_init = staticmethod(initializers.zeros)


def display(*values):
    """Prints the values: this is no notebook with folding trees."""
    for value in values:
        print(value)
