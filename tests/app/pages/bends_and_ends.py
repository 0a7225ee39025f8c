# SPDX-License-Identifier: GPL-3.0-or-later
"""Derivatives where functions bend, meet or are flat, and values at the ends of types: beside the numbers that JAX gives. Prints what differs; the last line counts."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

g = jax.grad

MEETING, VALUES, AT = jnp.array([1., 5., 2.]), jnp.array([3., 5., 5., 2., 9.]), jnp.array([0, 1, 1, 2, 7])  # two values that meet another, one behind the end


def raised(function):
    try:
        function()
    except NotImplementedError as error:
        return "unique_indices=True" in str(error)


ROWS = [  # a name, what is computed, what JAX gives
    ("abs0", lambda: g(jnp.abs)(0.), 1.),
    ("abs-", lambda: g(jnp.abs)(-2.), -1.),
    ("max tie", lambda: g(lambda x: jnp.maximum(x, 0.))(0.), .5),
    ("max tie2", lambda: g(lambda x: jnp.maximum(x, x*2), )(0.), 1.5),
    ("min tie", lambda: g(lambda x: jnp.minimum(x, 0.))(0.), .5),
    ("relu0", lambda: g(jax.nn.relu)(0.), 0.),
    ("reduce max tie", lambda: g(lambda x: x.max())(jnp.array([1., 3., 3.])), [0, .5, .5]),
    ("reduce min tie", lambda: g(lambda x: x.min())(jnp.array([1., 1., 3.])), [.5, .5, 0]),
    ("clip tie", lambda: g(lambda x: jnp.clip(x, 0., 1.))(0.), .5),
    ("clip", lambda: g(lambda x: jnp.clip(x, 0., 1.))(2.), 0.),
    ("sqrt0", lambda: g(jnp.sqrt)(0.), np.inf),
    ("pow00", lambda: g(lambda x: x**0)(0.), 0.),
    ("pow0 2", lambda: g(lambda x: x**2)(0.), 0.),
    ("powf", lambda: g(lambda x: jnp.power(x, 2.))(0.), 0.),
    ("powf1", lambda: g(lambda x: jnp.power(x, 1.))(0.), 1.),
    ("pow y", lambda: g(lambda y: jnp.power(0., y))(2.), 0.),
    ("pow y2", lambda: g(lambda y: jnp.power(2., y))(3.), 8*np.log(2)),
    ("norm0", lambda: g(jnp.linalg.norm)(jnp.zeros(2)), [np.nan, np.nan]),
    ("sign", lambda: g(jnp.sign)(0.), 0.),
    ("floor", lambda: g(jnp.floor)(1.5), 0.),
    ("round", lambda: g(jnp.round)(1.5), 0.),
    ("mod", lambda: g(lambda x: x%2.)(3.5), 1.),
    ("mody", lambda: g(lambda y: 7.5%y)(2.), -3.),
    ("logsumexp -inf", lambda: g(lambda x: jax.nn.logsumexp(jnp.array([x, -jnp.inf])))(1.), 1.),
    ("sort", lambda: g(lambda x: (jnp.sort(x)*jnp.arange(3.)).sum())(jnp.array([3., 1., 2.])), [2, 0, 1]),
    ("cumprod0", lambda: g(lambda x: jnp.cumprod(x).sum())(jnp.array([2., 0., 3.])), [1., 8., 0.]),
    ("prod0", lambda: g(lambda x: jnp.prod(x))(jnp.array([2., 0., 3.])), [0., 6., 0.]),
    ("prod00", lambda: g(lambda x: jnp.prod(x))(jnp.array([0., 0., 3.])), [0., 0., 0.]),
    ("cummax", lambda: g(lambda x: lax.cummax(x).sum())(jnp.array([2., 1., 3.])), [2., 0., 1.]),
    ("where", lambda: g(lambda x: jnp.where(x>0, x, 0.))(0.), 0.),
    ("tanh", lambda: g(jnp.tanh)(0.5), 1-np.tanh(.5)**2),
    ("leaky0", lambda: g(jax.nn.leaky_relu)(0.), 1.),
    ("elu0", lambda: g(jax.nn.elu)(0.), 1.),
    ("softplus", lambda: g(jax.nn.softplus)(0.), .5),
    ("gelu0", lambda: g(jax.nn.gelu)(0.), .5),
    ("relu6", lambda: g(jax.nn.relu6)(6.), 0.),
    ("relu6 0", lambda: g(jax.nn.relu6)(0.), 0.),
    ("hard_tanh", lambda: g(jax.nn.hard_tanh)(1.), 1.),
    ("logaddexp", lambda: g(lambda x: jnp.logaddexp(x, 0.))(0.), .5),
    ("relu hess", lambda: g(g(lambda x: jax.nn.relu(x)**2))(1.), 2.),
    ("relu vmap", lambda: jax.vmap(g(jax.nn.relu))(jnp.array([0., 1., -1.])), [0, 1, 0]),
    ("relu jvp", lambda: jax.jvp(jax.nn.relu, (0., ), (1., ))[1], 0.),
    ("relu jit", lambda: jax.jit(g(lambda x: jax.nn.relu(x).sum()))(jnp.zeros(3)), [0, 0, 0]),
    ("silu", lambda: g(jax.nn.silu)(0.), .5),
    ("atan2", lambda: g(lambda y: jnp.arctan2(y, 1.))(0.), 1.),
    ("hypot", lambda: g(lambda y: jnp.hypot(y, 1.))(0.), 0.),
    ("xlogy", lambda: g(lambda y: jax.scipy.special.xlogy(0., y))(0.5), 0.),
    ("log1p", lambda: g(jnp.log1p)(0.), 1.),
    ("sinc0", lambda: g(jnp.sinc)(0.), 0.),
    ("std0", lambda: g(jnp.std)(jnp.ones(3)), [np.nan]*3),
    ("var", lambda: g(jnp.var)(jnp.array([1., 2.])), [-.5, .5]),
    ("median", lambda: g(jnp.median)(jnp.array([1., 5., 2.])), [0, 0, 1.]),
    ("argmax", lambda: g(lambda x: x[jnp.argmax(x)])(jnp.array([1., 5., 2.])), [0, 1., 0]),
    ("topk", lambda: g(lambda x: lax.top_k(x, 2)[0].sum())(jnp.array([1., 5., 2.])), [0, 1., 1.]),
    ("dynslice", lambda: g(lambda x: lax.dynamic_slice(x, (1, ), (2, )).sum())(jnp.array([1., 5., 2.])), [0, 1., 1.]),
    ("at set", lambda: g(lambda x: (x.at[0].set(2.)**2).sum())(jnp.array([1., 5., 2.])), [0, 10., 4.]),
    ("at add", lambda: g(lambda x: (jnp.zeros(3).at[jnp.array([0, 0])].add(x)**2).sum())(jnp.array([1., 5.])), [12., 12.]),
    ("at max, by what was there", lambda: g(lambda x: (jnp.arange(1., 4.)*x.at[AT].max(VALUES)).sum())(MEETING), [0, 2/3, 1.5]),
    ("at max, by what came", lambda: g(lambda v: (jnp.arange(1., 4.)*MEETING.at[AT].max(v)).sum())(VALUES), [1, 2/3, 2/3, 1.5, 0]),
    ("at max, forward", lambda: jax.jvp(MEETING.at[AT].max, (VALUES, ), (jnp.arange(5.), ))[1], [0, 1, 1.5]),
    ("at max, many", lambda: jax.vmap(g(lambda v: MEETING.at[AT].max(v).sum()))(jnp.stack([VALUES, 2*VALUES])), [[1, 1/3, 1/3, .5, 0], [1, .5, .5, 1, 0]]),
    ("at max in a loop", lambda: g(lambda v: lax.scan(lambda c, _: (c.at[AT].max(c[0]*v), None), MEETING, None, length=2)[0].sum())(VALUES), [13, 1.5, 1.5, 3, 0]),
    ("at min, twice", lambda: jax.hessian(lambda v: (MEETING.at[AT].min(v)**2).sum())(VALUES)[1], [0, 2/9, 2/9, 0, 0]),
    ("segment max", lambda: g(lambda x: jax.ops.segment_max(x, jnp.array([0, 1, 1]), 2).sum())(jnp.array([1., 2., 3.])), [1, 0, 1]),
    ("segment min tie", lambda: g(lambda x: jax.ops.segment_min(x, jnp.array([0, 1, 1]), 2).sum())(jnp.array([1., 2., 2.])), [1, .5, .5]),
    ("at multiply", lambda: g(lambda x: x.at[AT].multiply(VALUES).sum())(MEETING), [3, 25, 2]),
    ("at multiply, forward", lambda: jax.jvp(lambda x: x.at[AT].multiply(VALUES), (MEETING, ), (jnp.ones(3), ))[1], [3, 25, 2]),
    ("at multiply, by the factors", lambda: g(lambda v: MEETING.at[AT[:2]].multiply(v, unique_indices=True).sum())(VALUES[:2]), [1, 5]),
    ("at divide", lambda: g(lambda x: x.at[AT[:2]].divide(VALUES[:2]).sum())(MEETING), [1/3, .2, 1]),
    ("segment prod of one each", lambda: g(lambda v: jax.ops.segment_prod(v, AT[:2], 3, unique_indices=True).sum())(VALUES[:2]), [1, 1]),
    ("segment prod", lambda: raised(lambda: g(lambda v: jax.ops.segment_prod(v, AT, 3).sum())(VALUES)), True),
    ("dup gather", lambda: g(lambda x: (x[jnp.array([0, 0, 1])]).sum())(jnp.array([1., 5.])), [2., 1.]),
    ("stopgrad", lambda: g(lambda x: lax.stop_gradient(x)*x)(3.), 3.),
    ("hessian", lambda: jax.hessian(lambda x: (x**3).sum())(jnp.array([1., 2.])), np.diag([6., 12.])),
    ("det", lambda: g(jnp.linalg.det)(jnp.array([[1., 2.], [3., 4.]])), [[4, -3], [-2, 1]]),
    ("inv", lambda: g(lambda a: jnp.linalg.inv(a)[0, 0])(jnp.eye(2)), [[-1, 0], [0, 0]]),
    ("chol", lambda: g(lambda a: jnp.linalg.cholesky(a).sum())(jnp.eye(2)*4), [[.25, .25], [.25, .25]]),
    ("complex", lambda: g(lambda x: jnp.abs(x+1j*x))(1.), np.sqrt(2)),
    ("erf", lambda: g(jax.scipy.special.erf)(0.), 2/np.sqrt(np.pi)),
    ("cbrt", lambda: g(jnp.cbrt)(8.), 1/12),
    ("expit", lambda: g(jax.nn.sigmoid)(0.), .25),
    ("scan", lambda: g(lambda x: lax.scan(lambda c, a: (c*a, c), x, jnp.array([1., 2., 3.]))[0])(2.), 6.),
    ("softmax", lambda: jax.jacobian(jax.nn.softmax)(jnp.zeros(2)), [[.25, -.25], [-.25, .25]]),
    ("logsoftmax mask", lambda: g(lambda x: jax.nn.log_softmax(jnp.where(jnp.array([1, 0])==1, x, -jnp.inf))[0])(jnp.zeros(2)), [0, 0]),
    ("custom", lambda: g(jax.nn.log_sigmoid)(0.), .5),
    ("nan_to_num", lambda: g(lambda x: jnp.nan_to_num(x*2))(1.), 2.),
    ("sum where", lambda: g(lambda x: x.sum(where=jnp.array([True, False])))(jnp.ones(2)), [1, 0]),
    ("interp", lambda: g(lambda x: jnp.interp(x, jnp.array([0., 1.]), jnp.array([0., 2.])))(.5), 2.),
    ("conv", lambda: g(lambda k: jnp.convolve(jnp.array([1., 2., 3.]), k).sum())(jnp.ones(2)), [6, 6]),
    ("rem neg", lambda: (jnp.remainder(-7, 3), jnp.fmod(-7, 3), lax.rem(-7, 3)), [2, -1, -1]),
    ("round half", lambda: jnp.round(jnp.array([.5, 1.5, 2.5, -.5])), [0, 2, 2, 0]),
    ("argsort stable", lambda: jnp.argsort(jnp.array([1, 0, 1, 0])), [1, 3, 0, 2]),
    ("argmax nan", lambda: jnp.argmax(jnp.array([1., jnp.nan, 3.])), 1),
    ("max nan", lambda: jnp.max(jnp.array([1., jnp.nan, 3.])), np.nan),
    ("sign nan", lambda: jnp.sign(jnp.nan), np.nan),
    ("int sum overflow", lambda: jnp.array([2**31-1, 1]).sum(), -2**31),
    ("mean int", lambda: jnp.array([1, 2]).mean(), 1.5),
    ("bf16 sum", lambda: jnp.ones(1000, jnp.bfloat16).sum().astype(float), 1000),
    ("f16 mean", lambda: jnp.full(10000, 10., jnp.float16).mean().astype(float), 10),
    ("x64 off", lambda: np.float64(jnp.float64(1.1)), np.float32(1.1)),
    ("ceil log", lambda: jnp.log2(8.), 3.),
    ("cumsum bool", lambda: jnp.cumsum(jnp.array([True, True])), [1, 2]),
    ("diff", lambda: jnp.diff(jnp.array([1, 4, 9])), [3, 5]),
    ("segment", lambda: jax.ops.segment_sum(jnp.arange(4.), jnp.array([0, 1, 0, 5]), 3), [2, 1, 0]),
    ("searchsorted", lambda: jnp.searchsorted(jnp.array([1., 2., 2., 3.]), 2., side='right'), 3),
    ("bincount", lambda: jnp.bincount(jnp.array([0, 1, 1]), length=4), [1, 2, 0, 0]),
    ("unique size", lambda: jnp.unique(jnp.array([3, 1, 1]), size=4, fill_value=-1), [1, 3, -1, -1]),
    ("nonzero size", lambda: jnp.nonzero(jnp.array([0, 1, 1]), size=3)[0], [1, 2, 0]),
    ("one_hot oob", lambda: jax.nn.one_hot(jnp.array([0, 5, -1]), 2), [[1, 0], [0, 0], [0, 0]]),
    ("take oob", lambda: jnp.take(jnp.array([1., 2.]), jnp.array([0, 5, -1])), [1, np.nan, 2]),
    ("top_k int", lambda: lax.top_k(jnp.array([3, 1, 2]), 2)[1], [0, 2]),
    ("linspace int", lambda: jnp.linspace(0, 5, 3, dtype=int), [0, 2, 5]),
    ("arange f", lambda: jnp.arange(0, 1, .3), np.arange(0, 1, .3)),
    ("exp2", lambda: jnp.exp2(3.), 8),
    ("f32 matmul", lambda: jnp.ones((2, 3), int)@jnp.ones((3, ), int), [3, 3]),
]


def main():
    wrong = 0
    for name, function, expected in ROWS:
        try:
            found = np.asarray(function())
            is_right = np.allclose(found, expected, 1e-5, 1e-6, equal_nan=True)
        except Exception as error:
            found, is_right = f"{type(error).__name__}: {error}", False
        if not is_right:
            wrong += 1
            print(f"{name}: {found} is not {expected}")
    print(f"{wrong} of {len(ROWS)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
