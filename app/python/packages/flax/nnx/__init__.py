# SPDX-License-Identifier: GPL-3.0-or-later
"""flax.nnx: modules are Python objects whose variables are found by walking them."""
from jax.nn import (celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu, log_sigmoid, log_softmax, logsumexp, one_hot, relu,
                    relu6, selu, sigmoid, silu, soft_sign, softmax, softplus, standardize, swish, tanh)
from jax.nn import initializers

from ._graph import (GraphDef, GraphState, State, Variable, VariableMetadata, VariableState, clone, find_duplicates, from_flat_state, graphdef, iter_graph, map_state, merge, merge_state, pop, pure, recursive_map,
                     replace_by_pure_dict, restore_int_paths, split, split_state, state, to_flat_state, to_pure_dict, update, variables)
from ._pytree import Data, Object, Pytree, Static, check_pytree, data, dataclass, has_data, is_data, register_data_type, static
from ._convolution import Conv, ConvTranspose, avg_pool, max_pool, min_pool
from ._attention import MultiHeadAttention, combine_masks, dot_product_attention, make_attention_mask, make_causal_mask
from ._layers import (BatchNorm, Dropout, Einsum, Embed, GroupNorm, Identity, InstanceNorm, LayerNorm, Linear, LinearGeneral, LoRA, LoRALinear, LoRAParam, Module,
                      PReLU, RMSNorm, iter_children, iter_modules, view, view_info, with_attributes)
from ._containers import Dict, List, Sequential
from ._recurrent import GRUCell, LSTMCell, OptimizedLSTMCell, RNN, RNNCellBase, SimpleCell
from . import filterlib, graph, traversals
from .filterlib import All, Any, Everything, Not, Nothing, OfType, PathContains, PathIn, WithTag
from ._random import RngCount, RngKey, RngState, RngStream, Rngs, fork_rngs, reseed, restore_rngs, split_rngs, with_rngs
from ._spmd import (PARTITION_NAME, get_named_sharding, get_partition_spec, logical_axis_rules, use_eager_sharding, using_eager_sharding,
                    with_metadata, with_partitioning, with_sharding_constraint)
from . import _metrics as metrics
from ._metrics import Metric, MultiMetric
from ._lifted import Carry, StateAxes, checkpoint, cond, fori_loop, prefix, remat, scan, switch, vmap, while_loop
from ._training import EMA, ModelAndOptimizer, Optimizer
from ._summary import tabulate
from ._transforms import DiffState, cached_partial, custom_vjp, eval_shape, get_abstract_model, grad, jit, jvp, shard_map, value_and_grad, vjp
from ._capture import capture
from ._variables import A, VarDefaults, BatchStat, Cache, Intermediate, OptArray, OptVariable, Param, Perturbation, var_defaults


class nn:
    """Where newer pages look for the defaults of layers."""

    class linear:
        default_kernel_init = staticmethod(initializers.lecun_normal())
        default_bias_init = staticmethod(initializers.zeros)


def display(*values):
    """Prints the values: this is no notebook with folding trees."""
    for value in values:
        print(value)


# What pages print of a class: the module that Flax has it in.
for _home, _names in {
        "variablelib": "BatchStat Cache Intermediate Param Perturbation Variable", "statelib": "State", "graphlib": "GraphDef", "pytreelib": "Object Pytree",
        "module": "Module", "rnglib": "RngCount RngKey RngState RngStream Rngs", "helpers": "Dict List Sequential", "nn.activations": "PReLU",
        "nn.attention": "MultiHeadAttention", "nn.linear": "Conv ConvTranspose Einsum Embed Linear LinearGeneral", "nn.lora": "LoRA LoRALinear LoRAParam",
        "nn.normalization": "BatchNorm GroupNorm InstanceNorm LayerNorm RMSNorm", "nn.recurrent": "GRUCell LSTMCell OptimizedLSTMCell RNN SimpleCell",
        "nn.stochastic": "Dropout", "training.metrics": "Metric MultiMetric", "training.optimizer": "ModelAndOptimizer OptArray OptVariable Optimizer"}.items():
    for _name in _names.split():
        globals()[_name].__module__ = f"flax.nnx.{_home}"

from jax._src.parameters import name_parameters as _name_parameters

_name_parameters(globals())
