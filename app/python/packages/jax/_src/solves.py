# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots and solutions that a function of the page finds: how they are found has no derivative, what they are has. Source of the rules: jax-ml/jax,
jax/_src/lax/control_flow/solves.py."""
from . import custom, ops
from .arrays import asarray
from .transforms import linear_transpose, linearize
from .trees import tree_flatten, tree_map, tree_structure, tree_unflatten


def _check_tree(name, found, wanted, said):
    if tree_structure(found) != tree_structure(wanted):
        raise TypeError(f"{name}() output pytree structure must match {said}, got {tree_structure(found)} and {tree_structure(wanted)}.")


def _fixed(tree):
    from ..lax import stop_gradient
    return stop_gradient(tree)


def _moving(tree):
    """Zeros, with the derivatives of a tree."""
    return tree_map(lambda x: ops.subtract(x, _fixed(x)), tree)


def _order():
    """How many derivatives are being taken."""
    return max(0, len(custom._derivatives()) - custom._rules_under_way())


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """The root of f that `solve` finds. One of Newton's steps from it has its first derivative, and each further one twice as many."""
    found = solve(f, _fixed(initial_guess))
    root, aux = found if has_aux else (found, None)
    _check_tree("solve", root, initial_guess, "initial_guess")
    root, aux = _fixed(tree_map(asarray, root)), _fixed(aux)
    for _ in range(_order()):
        rest = f(root)
        _check_tree("f", rest, initial_guess, "initial_guess")
        root = tree_map(ops.subtract, root, tangent_solve(linearize(f, root)[1], _moving(rest)))
    return (root, aux) if has_aux else root


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """What `solve` finds for `matvec` and b: its derivative is that of b and of the matrix, solved for again."""
    found = solve(matvec, _fixed(b))
    x, aux = found if has_aux else (found, None)
    _check_tree("solve", x, b, "b")
    x, aux = _fixed(tree_map(asarray, x)), _fixed(aux)
    if _order() > 1:
        raise NotImplementedError("second derivatives of jax.lax.custom_linear_solve: differentiate jnp.linalg.solve")
    if _order():
        leaves, form = tree_flatten(_moving(tree_map(ops.subtract, b, matvec(x))))
        transpose_solve = solve if symmetric and transpose_solve is None else transpose_solve
        back = matvec if symmetric else lambda y: linear_transpose(matvec, b)(y)[0]

        def solved(how, of):
            def apply(given):
                made = how(of, tree_unflatten(form, given))
                return tree_flatten(made[0] if has_aux else made)[0]
            return apply
        is_forward = custom._derivatives()[0].is_forward
        if transpose_solve is None and not is_forward:
            raise TypeError("transpose_solve required for backwards mode automatic differentiation of custom_linear_solve")
        # Of what goes back along tangents only the derivative is looked at, see control._while_along.
        transposed = solved(transpose_solve, back) if transpose_solve is not None else lambda given: [ops.zeros_like(one) for one in given]
        backward = lambda _, cotangents: custom._with_rule(lambda given: (transposed(given), []), lambda _, steps: solved(solve, matvec)(steps), cotangents)
        made = custom._with_rule(lambda given: ([ops.zeros_like(one) for one in given], []), backward, leaves)
        x = tree_map(ops.add, x, tree_unflatten(form, made))
    return (x, aux) if has_aux else x
