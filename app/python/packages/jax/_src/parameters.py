# SPDX-License-Identifier: GPL-3.0-or-later
"""What JAX calls the parameters of its functions, where the functions here have other words for them: pages give arguments by these names.
Source of the names: jax-ml/jax, google-deepmind/optax and google/flax, their documentation."""
import functools

# By module: the leading parameters, then the functions that have them.
_NAMES = {
    "jax": """
        fun: eval_shape jit
        x: block_until_ready device_get
        xs: reshard
        """,
    "jax.numpy": """
        A reps: tile
        M beta: kaiser
        a: all amax amin any argmax argmin argpartition argsort argwhere average choose copy count_nonzero cumprod cumsum diagonal diff expand_dims flatnonzero
          histogram histogram_bin_edges max mean median min nanargmax nanargmin nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar nonzero partition percentile prod
          ptp quantile repeat roll rollaxis sort sort_complex squeeze std sum take trace var
        a axes: permute_dims transpose
        a axis1 axis2: swapaxes
        a b: cross dot kron matmul outer tensordot
        a ind v: put
        a new_shape: resize
        a shape: reshape
        a source destination: moveaxis
        a val: fill_diagonal
        a1 a2: array_equal array_equiv
        ar: unique
        ar1 ar2: intersect1d setdiff1d setxor1d union1d
        arg1 arg2: issubdtype
        arr: append clip diag_indices_from put_along_axis take_along_axis tril_indices_from triu_indices_from
        arr mask vals: place
        arr obj: delete insert
        array: broadcast_to
        array pad_width: pad
        ary: ediff1d
        ary indices_or_sections: array_split dsplit hsplit split vsplit
        condlist choicelist: select
        element: isscalar
        element test_elements: isin
        f: gradient
        func a: apply_over_axes
        func1d axis arr: apply_along_axis
        indices: unravel_index
        m: flip fliplr flipud rot90 tril triu
        prototype: empty_like
        pyfunc: vectorize
        subscripts: einsum
        tup: column_stack dstack hstack vstack
        v: diag diagflat
        val: imag real
        x: logical_not
        x condlist funclist: piecewise
        x dtype: astype
        x y: logical_and logical_or logical_xor
        x1 x2: arctan2 atan2 bitwise_right_shift copysign divide divmod floor_divide fmax fmin fmod gcd heaviside hypot lcm ldexp logaddexp logaddexp2 matvec mod
          pow power remainder right_shift true_divide vecdot vecmat
        """,
    "jax.numpy.linalg": """
        M: matrix_rank
        a rtol: pinv
        x: diagonal matrix_norm matrix_transpose svdvals trace vector_norm
        x1 x2: cross matmul outer tensordot vecdot
        """,
    "jax.lax": """
        array: expand_dims
        array dimensions: squeeze
        lhs rhs: batch_matmul dot dot_general
        min x max: clamp
        operand: argmax argmin broadcast broadcast_in_dim collapse cumlogsumexp cummax cummin cumprod cumsum dynamic_index_in_dim dynamic_update_index_in_dim
          index_in_dim optimization_barrier pad reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum rev slice slice_in_dim split
        operand new_dtype: bitcast_convert_type convert_element_type
        operand new_sizes: reshape
        operand permutation: transpose
        operand start_index slice_size: dynamic_slice_in_dim
        operand start_indices slice_sizes: dynamic_slice
        operand update start_index: dynamic_update_slice_in_dim
        operand update start_indices: dynamic_update_slice
        pred: select
        x: abs acos acosh asin asinh atan atanh bitwise_not cbrt ceil clz cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p
          logistic neg population_count reciprocal rsqrt sign sin sinh sqrt square tan tanh
        x y: add atan2 bitwise_and bitwise_or bitwise_xor div eq ge gt integer_pow le lt max min mul ne rem shift_left shift_right_arithmetic shift_right_logical
          sub
        x1 x2: nextafter
        """,
    "jax.nn": """
        a: logsumexp
        """,
    "jax.random": """
        key_bits_array: wrap_key_data
        keys: key_data
        """,
    "jax.tree": """
        prefix_tree full_tree: broadcast
        """,
    "jax.tree_util": """
        iterable: all_leaves
        keys: keystr
        nodetype: register_dataclass
        nodetype flatten_with_keys unflatten_func flatten_func: register_pytree_with_keys
        prefix_tree full_tree: tree_broadcast
        treedef: treedef_children treedef_is_leaf
        treedefs: treedef_tuple
        """,
    "jax.scipy.linalg": """
        A: expm
        """,
    "jax.debug": """
        arr: visualize_array_sharding
        value: inspect_array_sharding
        """,
    "jax.experimental.multihost_utils": """
        in_tree: assert_equal broadcast_one_to_all process_allgather
        """,
    "optax": """
        f: stateless
        """,
    "optax.tree_utils": """
        condition tree_x tree_y: tree_where
        rng_key target_tree: tree_split_key_like
        tree_x scalar tree_y: tree_add_scale
        tree_x tree_y: tree_add tree_div tree_mul tree_sub tree_vdot
        """,
    "flax.traverse_util": """
        xs: flatten_dict unflatten_dict
        """,
    "flax.nnx": """
        a: logsumexp
        f: grad value_and_grad
        f state: map_state
        module: iter_modules
        pytree: check_pytree
        state: replace_by_pure_dict to_pure_dict
        type_: register_data_type
        """,
}


def _called(function, parameters):
    """A function that takes its leading arguments by JAX's names, too."""
    @functools.wraps(function)
    def named(*args, **kwargs):
        if kwargs:
            args = list(args)
            for name in parameters[len(args):]:
                if name not in kwargs:
                    break
                args.append(kwargs.pop(name))
        return function(*args, **kwargs)
    return named


def _lines(text):
    """The table's lines; those that begin with more room go on."""
    made = []
    for line in text.rstrip().strip("\n").split("\n"):
        if line.startswith(" " * 10):
            made[-1] += " " + line.strip()
        else:
            made.append(line.strip())
    return made


def name_parameters(module):
    """Gives the functions of a module, {name: function}, JAX's names of their parameters."""
    for line in _lines(_NAMES[module["__name__"]]):
        parameters, names = line.split(":")
        for name in names.split():
            if hasattr(module[name], "rename"):  # a function with methods of its own
                module[name].rename(lambda function: _called(function, tuple(parameters.split())))
            else:
                module[name] = _called(module[name], tuple(parameters.split()))
