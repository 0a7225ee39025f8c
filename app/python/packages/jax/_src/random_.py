# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX's random numbers: threefry, in the form of the page's age. Keys that are known stay known."""
import functools
import inspect
import math

import _meshwright as core
import numpy as np

from . import dtypes, ops
from .arrays import Array, ConcreteArray, Scope, asarray, astype, bind, from_numpy
from .machine import machine
from .trees import register_pytree_node, tree_flatten, tree_map, tree_unflatten
from .options import refuse as _refuse


class KeyType:
    """The element type of keys."""
    name, itemsize, kind = "key<fry>", 8, "V"

    def __eq__(self, other):
        return str(other) == "key<fry>"

    def __hash__(self):
        return hash("key<fry>")

    def __repr__(self):
        return "key<fry>"


class KeyArray:
    """Keys of `jax.random.key`: an array whose elements are keys."""
    is_key_array = True

    def __init__(self, data):
        self._data = data

    shape = property(lambda self: self._data.shape[:-1])
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = KeyType()
    sharding = property(lambda self: self._data.sharding)

    def __getitem__(self, index):
        return KeyArray(self._data[index])

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return KeyArray(self._data.reshape(tuple(shape) + (2,)))

    def flatten(self):
        return self.reshape(-1)

    ravel = flatten
    squeeze = lambda self, axis=None: of_keys(ops.squeeze)(self, axis)
    transpose = lambda self, *axes: of_keys(ops.transpose)(self, *axes)
    swapaxes = lambda self, a, b: of_keys(ops.swapaxes)(self, a, b)
    take = lambda self, indices, axis=None: of_keys(ops.take)(self, indices, axis)
    at = property(lambda self: _At(self))
    engine_dtype = property(lambda self: "key<fry>")
    nbytes = property(lambda self: self._data.nbytes)
    itemsize = 8
    weak_type = False
    T = property(transpose)

    def block_until_ready(self):
        return self

    def __eq__(self, other):
        return ops.reduce("and", ops.equal(self._data, other._data), -1) if isinstance(other, KeyArray) else NotImplemented

    __hash__ = None

    def __array__(self, *_, **__):
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if you wish to extract the underlying integer array.")

    def __repr__(self):
        if not isinstance(self._data, ConcreteArray):
            return f"JitTracer(key<fry>[{','.join(map(str, self.shape))}])"
        return f"Array({self.shape}, dtype=key<fry>) overlaying:\n{np.asarray(self._data)}"


def of_keys(function):
    """A function that moves elements, of keys too: it moves both words of each."""
    is_key = lambda value: isinstance(value, KeyArray)

    def is_of_keys(value):
        if not isinstance(value, (list, tuple)) or not any(map(is_key, value)):
            return is_key(value)
        if not all(map(is_key, value)):
            raise TypeError(f"{function.__name__} takes keys or arrays of numbers, got both: {', '.join(str(getattr(one, 'dtype', type(one).__name__)) for one in value)}")
        return True

    @functools.wraps(function)
    def called(*args, **kwargs):
        if not any([is_of_keys(value) for value in (*args, *kwargs.values())]):
            return function(*args, **kwargs)
        leaves, form = tree_flatten((args, kwargs), is_key)
        words = [function(*given, **named) for given, named in (
            tree_unflatten(form, [leaf._data[..., number] if is_key(leaf) else leaf for leaf in leaves]) for number in (0, 1))]
        return tree_map(lambda *both: KeyArray(ops.stack(both, -1)), *words)
    return called


class _At:
    """`keys.at[index]`, with `get` and `set`."""

    def __init__(self, keys, index=None):
        self._keys, self._index = keys, index

    def __getitem__(self, index):
        return _At(self._keys, index)

    def get(self, **options):
        return of_keys(lambda x: x.at[self._index].get(**options))(self._keys)

    def set(self, values, **options):
        if not isinstance(values, KeyArray):
            raise TypeError(f"keys.at[..].set takes keys, got {values!r}")
        return of_keys(lambda x, values: x.at[self._index].set(values, **options))(self._keys, values)


register_pytree_node(KeyArray, lambda key: ([key._data], None), lambda _, children: KeyArray(children[0]))


def _data(key):
    """The words of keys. Source of the texts: jax-ml/jax, jax/_src/random/prng.py (_check_prng_key_data)."""
    if isinstance(key, KeyArray):
        return key._data
    if not isinstance(key, (Array, np.ndarray)):
        raise TypeError(f"unexpected PRNG key type {type(key)}")
    data = asarray(key)
    wrong = "JAX encountered invalid PRNG key data: expected "
    if data.ndim < 1:
        raise TypeError(f"{wrong}key_data.ndim >= 1; got ndim={data.ndim}")
    if data.shape[-1] != 2:
        raise TypeError(f"{wrong}key_data.shape to end with (2,); got shape={data.shape}")
    if data.engine_dtype != "ui32":
        raise TypeError(f"{wrong}key_data.dtype = uint32; got dtype={data.dtype}")
    return data


def _known(key):
    """The two words of a key that is not traced."""
    data = _data(key)
    return [int(word) for word in np.asarray(data)] if isinstance(data, ConcreteArray) else None


def _like(key, words):
    return KeyArray(words) if isinstance(key, KeyArray) else words


def only_threefry(impl):
    """Refuses other generators: their numbers are others."""
    if impl not in (None, "threefry2x32", "fry") and str(impl) not in ("threefry2x32", "fry", "key<fry>"):
        raise NotImplementedError(f"random numbers by jax.random's generator {impl!r}: only threefry2x32 is known")


def _words(name, seed):
    """The words that a seed makes: its upper and its lower half. Source of the rules and texts: jax-ml/jax, jax/_src/random (_key, random_seed, _threefry_seed)."""
    if isinstance(seed, KeyArray):
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if np.ndim(seed):
        raise TypeError(f"{name} accepts a scalar seed, but was given an array of shape {np.shape(seed)} != (). Use jax.vmap for batching")
    seed = asarray(np.int64(seed) if isinstance(seed, int) else seed)
    if not dtypes.is_integer(seed.engine_dtype):
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r}")
    is_wide = seed.engine_dtype in ("i64", "ui64")
    if isinstance(seed, ConcreteArray):
        return from_numpy(np.array(core.key_of_seed(int(seed) & (2**64 - 1 if is_wide else 2**32 - 1)), np.uint32))
    low = astype(seed, "ui32")
    high = astype(bind("shift_right_logical", seed, asarray(32, seed.engine_dtype)), "ui32") if is_wide else ops.zeros_like(low)
    return ops.stack([high, low])


def PRNGKey(seed, *, impl=None):
    only_threefry(impl)
    return _words("PRNGKey", seed)


def key(seed, *, impl=None):
    only_threefry(impl)
    return KeyArray(_words("key", seed))


def key_data(key):
    return _data(key)


def wrap_key_data(data, *, impl=None):
    only_threefry(impl)
    return KeyArray(_data(data))


def _threefry(data, high, low):
    """Blocks of threefry-2x32 of a key that is traced; counters ui32."""
    rotate = lambda x, by: bind("or", bind("shift_left", x, asarray(by, "ui32")), bind("shift_right_logical", x, asarray(32 - by, "ui32")))
    first, second = data[0], data[1]
    keys = [first, second, bind("xor", bind("xor", first, second), asarray(0x1BD11BDA, "ui32"))]
    x, y = ops.add(high, keys[0]), ops.add(low, keys[1])
    for group in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = ops.add(x, y)
            y = bind("xor", rotate(y, by), x)
        x = ops.add(x, keys[(group + 1) % 3])
        y = ops.add(y, ops.add(keys[(group + 2) % 3], asarray(group + 1, "ui32")))
    return x, y


# ---- of many keys, whose words are (count, 2), at once

def split_each(keys, num=2):
    """(num, count, 2): what `split` makes of each key."""
    at = ops.expand_dims(ops.iota("ui32", (num,)), 1)
    high, low = (at, ops.add(at, asarray(num, "ui32"))) if machine.legacy_random else (ops.zeros_like(at), at)
    first, second = _threefry(ops.transpose(keys), high, low)
    if machine.legacy_random:  # the first words of all blocks come before the second ones
        both = ops.concatenate([first, second], 0)
        first, second = (ops.stack([both[2 * number + which] for number in range(num)]) for which in (0, 1))
    return ops.stack([first, second], -1)


def bits_of_each(keys, shape=()):
    """(count, *shape): what `bits` makes of each key."""
    count = math.prod(shape)
    keys = ops.expand_dims(ops.transpose(keys), -1)
    if machine.legacy_random:
        half = (count + 1) // 2
        at = ops.iota("ui32", (half,))
        rest = ops.add(at, asarray(half, "ui32"))
        blocks = _threefry(keys, at, ops.where(ops.less(rest, asarray(count, "ui32")), rest, ops.zeros_like(rest)))
        made = ops.concatenate(list(blocks), -1)[:, :count]
    else:
        at = ops.iota("ui32", (count,))
        made = bind("xor", *_threefry(keys, ops.zeros_like(at), at))
    return ops.reshape(made, (keys.shape[1],) + tuple(shape))


def uniform_of_each(keys, shape=(), low=0.0, high=1.0):
    mantissa = bind("or", bind("shift_right_logical", bits_of_each(keys, shape), asarray(9, "ui32")), asarray(0x3F800000, "ui32"))
    drawn = ops.subtract(bind("bitcast_convert", mantissa, dtype="f32"), asarray(1.0, "f32"))
    low, high = np.float32(low), np.float32(high)
    return ops.maximum(asarray(low, "f32"), ops.add(ops.multiply(drawn, asarray(high - low, "f32")), asarray(low, "f32")))


def normal_of_each(keys, shape=()):
    return ops.multiply(asarray(np.float32(math.sqrt(2)), "f32"), ops.erf_inv(uniform_of_each(keys, shape, np.nextafter(np.float32(-1), np.float32(0)))))


def split(key, num=2):
    _checked(key, "split")
    shape = (num,) if isinstance(num, int) else tuple(num)
    count, known = math.prod(shape), _known(key)
    if known is not None:
        words = from_numpy(np.array(core.split_key(known, count, not machine.legacy_random), np.uint32).reshape(shape + (2,)))
    elif machine.legacy_random:
        words = bind("random_bits", _data(key), shape=(2 * count,), partitionable=False).reshape(shape + (2,))
    else:
        low = ops.iota("ui32", (count,))
        words = ops.stack(list(_threefry(_data(key), ops.zeros_like(low), low)), 1).reshape(shape + (2,))
    return _like(key, words)


def fold_in(key, data):
    _checked(key, "fold_in")
    if np.ndim(data):
        raise TypeError(f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). Use jax.vmap for batching.")
    dtypes.check_integers(data, "ui32")
    known = _known(key)
    if known is not None and not (isinstance(data, Array) and not isinstance(data, ConcreteArray)):
        return _like(key, from_numpy(np.array(core.fold_in(known, int(data) & 0xFFFFFFFF), np.uint32)))
    low = astype(asarray(data), "ui32")
    return _like(key, ops.stack(list(_threefry(_data(key), ops.zeros_like(low), low))))


def _checked(key, name):
    """The words of one key. Source of the text: jax-ml/jax, jax/_src/random/core.py (_check_prng_key)."""
    data = _data(key)
    if data.ndim > 1:
        raise ValueError(f"{name} accepts a single key, but was given a key array of shape {data.shape[:-1]} != (). Use jax.vmap for batching.")
    return data


def of_one_key(name, function):
    """The function, which refuses many keys by its own name."""
    @functools.wraps(function)
    def drawn(key, *args, **kwargs):
        _checked(key, name)
        return function(key, *args, **kwargs)
    return drawn


def check_types(name, function, said, kinds):
    """The function, which takes a dtype of these kinds. Source of the text: jax-ml/jax, jax/_src/random/core.py."""
    place = list(inspect.signature(function).parameters).index("dtype")

    @functools.wraps(function)
    def checked(*args, **kwargs):
        dtype = args[place] if len(args) > place else kwargs.get("dtype")
        if dtype is not None and not any(_IS_KIND[kind](dtypes.named(dtype)) for kind in kinds):
            raise ValueError(f"dtype argument to `{name}` must be {said}, got {dtypes.shown(dtypes.named(dtype)).name}")
        return function(*args, **kwargs)
    return checked


_IS_KIND = {"float": dtypes.is_float, "complex": dtypes.is_complex, "unsigned": lambda engine: engine.startswith("ui"),
            "int": lambda engine: dtypes.is_integer(engine) and not engine.startswith("ui")}


def _draw(op, key, shape, dtype, **attributes):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    data, shape = _checked(key, op), ops._shape(shape)
    if engine != "f32":
        return _of_type(engine, op, data, shape, **attributes)
    return bind(op, data, shape=shape, partitionable=not machine.legacy_random, **attributes)


_FRACTION = {"f64": 52, "f16": 10, "bf16": 7, "f8E4M3FN": 3, "f8E5M2": 2}  # bits of it


def _of_type(engine, op, data, shape, low=0.0, high=1.0):
    """Numbers of another type than f32, in the arithmetic of jax.random: random bits as the fraction of a number from 1 to 2."""
    width, fraction = 8 * dtypes.shown(engine).itemsize, _FRACTION[engine]
    drawn = 8 if fraction < 8 else width
    words = astype(_bits(data, shape, drawn), f"ui{width}")
    one = bind("bitcast_convert", asarray(1.0, engine), dtype=f"ui{width}")
    mantissa = bind("or", bind("shift_right_logical", words, asarray(drawn - fraction, f"ui{width}")), one)
    made = ops.subtract(bind("bitcast_convert", mantissa, dtype=engine), asarray(1.0, engine))
    if op == "normal":
        low, high = 2.0**(-fraction - 1) - 1.0, 1.0  # the next number above -1
    low, high = asarray(low, engine), asarray(high, engine)
    made = ops.maximum(low, ops.add(ops.multiply(made, ops.subtract(high, low)), low))
    return ops.multiply(asarray(math.sqrt(2), engine), ops.erf_inv(made)) if op == "normal" else made


def _bits(data, shape, width):
    """Random words of 8, 16, 32 or 64 bits. Source of the order: jax-ml/jax, jax/_src/random/threefry2x32.py (threefry_random_bits)."""
    count, engine = math.prod(shape), f"ui{width}"
    words = lambda size: bind("random_bits", data, shape=size, partitionable=not machine.legacy_random)
    if width == 32:
        return words(shape)
    if width == 64:
        if machine.legacy_random:
            both = words((2 * count,))
            high, low = both[:count], both[count:]
        else:
            at = ops.iota("ui32", (count,))
            high, low = _threefry(data, ops.zeros_like(at), at)
        return ops.reshape(bind("or", bind("shift_left", astype(high, engine), asarray(32, engine)), astype(low, engine)), shape)
    if not machine.legacy_random:
        return astype(words(shape), engine)
    each = 32 // width  # parts of a word, the lowest first
    whole = words((-(-count // each),))
    parts = ops.stack([bind("shift_right_logical", whole, asarray(width * part, "ui32")) for part in range(each)], 1)
    return ops.reshape(astype(ops.reshape(parts, (-1,))[:count], engine), shape)


def bits(key, shape=(), dtype=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("ui32")
    return _bits(_checked(key, "bits"), ops._shape(shape), int(engine[2:]))


@ops.placeable
def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return _draw("uniform", key, shape, dtype, low=float(minval), high=float(maxval))
    drawn = _draw("uniform", key, shape, dtype, low=0.0, high=1.0)
    low, high = astype(asarray(minval), drawn.engine_dtype), astype(asarray(maxval), drawn.engine_dtype)
    return ops.maximum(low, ops.add(ops.multiply(drawn, ops.subtract(high, low)), low))


@ops.placeable
def normal(key, shape=(), dtype=None):
    if dtype is not None and dtypes.is_complex(engine := dtypes.named(dtype)):
        part = "float32" if engine == "complex<f32>" else "float64"
        return ops.divide(ops.complex_(*[normal(own, shape, part) for own in split(key)]), math.sqrt(2))
    return _draw("normal", key, shape, dtype)


def truncated_normal(key, lower, upper, shape=None, dtype=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    own = np.float64 if engine == "f64" else np.float32
    root = own(np.sqrt(2))
    if any(np.ndim(bound) or isinstance(bound, Array) and not isinstance(bound, ConcreteArray) for bound in (lower, upper)):
        from ..lax import stop_gradient
        lower, upper = (astype(bound, dtypes.named(own)) for bound in (lower, upper))
        shape = np.broadcast_shapes(lower.shape, upper.shape) if shape is None else shape
        low, high = (ops.erf(ops.divide(bound, float(root))) for bound in (lower, upper))
        made = ops.multiply(float(root), ops.erf_inv(uniform(key, shape, own, low, high)))
        end = lambda bound, to: bind("next_after", stop_gradient(bound), asarray(to, bound.engine_dtype))
        return astype(ops.clip(made, end(lower, math.inf), end(upper, -math.inf)), engine)
    low, high = (own(math.erf(float(own(bound) / root))) for bound in (lower, upper))
    drawn = _draw("uniform", key, shape or (), own, low=float(low), high=float(high))
    made = ops.multiply(float(root), ops.erf_inv(drawn))
    inside = [float(np.nextafter(own(bound), own(to))) for bound, to in ((lower, np.inf), (upper, -np.inf))]
    return astype(ops.clip(made, *inside), engine)


def bernoulli(key, p=0.5, shape=None, mode="low"):
    _refuse("jax.random.bernoulli", {"mode": None if mode == 'low' else mode})
    return ops.less(uniform(key, shape if shape is not None else np.shape(p)), p)


def randint(key, shape, minval, maxval, dtype=None):
    """Two words for each number: the remainder of twice as many random bits as it has, by the span. Source of the steps: jax-ml/jax,
    jax/_src/random/core.py (_randint)."""
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("i32")
    if not dtypes.is_integer(engine):
        raise TypeError(f"randint only accepts integer dtypes, got {dtypes.shown(engine)}")
    asarray(minval), asarray(maxval)  # an integer that JAX's integers do not hold is refused
    drawn = engine if dtypes._bits(engine) >= 32 else "i32"
    limits, width, unsigned = np.iinfo(dtypes.shown(drawn)), dtypes._bits(drawn), f"ui{dtypes._bits(drawn)}"
    if drawn != engine:
        own = np.iinfo(dtypes.shown(engine))
        minval, maxval = _clipped(minval, own.min, own.max), _clipped(maxval, own.min, own.max + 1)
    is_known = all(isinstance(bound, (int, np.integer)) for bound in (minval, maxval))
    if is_known:
        low, high = (min(max(int(bound), limits.min), limits.max) for bound in (minval, maxval))
        span = (high - low + (maxval > limits.max)) % 2**width if high > low else 1
        low, factor, span = asarray(low, drawn), asarray((2**(width // 2) % span)**2 % 2**width % span if span else 0, unsigned), asarray(span, unsigned)
    else:
        given = [asarray(bound) for bound in (minval, maxval)]
        given = [bound if dtypes.is_integer(bound.engine_dtype) else astype(bound, dtypes.default("i32")) for bound in given]
        low, high = (astype(_clipped(bound, limits.min, limits.max), drawn) for bound in given)
        is_above, is_over = ops.greater(high, low), ops.greater(given[1], asarray(min(limits.max, np.iinfo(given[1].dtype).max), given[1].engine_dtype))
        span = ops.where(is_above, astype(ops.subtract(high, low), unsigned), asarray(1, unsigned))
        span = ops.add(span, astype(ops.logical_and(is_above, is_over), unsigned))
        factor = _rest(asarray(2**(width // 2), unsigned), span)
        factor = _rest(ops.multiply(factor, factor), span)
    upper, lower = (_bits(_data(one), ops._shape(shape), width) for one in split(key))
    if not is_known or int(span):  # of all numbers of the type, the words themselves
        lower = _rest(ops.add(ops.multiply(_rest(upper, span), factor), _rest(lower, span)), span)
    return astype(ops.add(low, astype(lower, drawn)), engine)


def _rest(x, span):
    """By 0, x itself."""
    return bind("remainder", x, span)


def _clipped(x, low, high):
    """Integers within limits that their own type may not have."""
    if isinstance(x, (int, np.integer)):
        return min(max(int(x), int(low)), int(high))
    x = asarray(x)
    own = np.iinfo(x.dtype) if dtypes.is_integer(x.engine_dtype) else np.iinfo(np.int32)
    x = x if int(low) <= own.min else ops.maximum(x, asarray(int(low), x.engine_dtype))
    return x if int(high) >= own.max else ops.minimum(x, asarray(int(high), x.engine_dtype))


def permutation(key, x, axis=0, independent=False):
    is_count = isinstance(x, (int, np.integer))
    count = int(x) if is_count else asarray(x).shape[axis]
    known = _known(key)
    if independent and not is_count and asarray(x).ndim > 1:
        return _shuffled(key, asarray(x), axis)
    if known is not None:
        order = from_numpy(np.array(core.permutation(known, count, not machine.legacy_random), np.int32))
    else:
        order = _shuffled(key, ops.arange(count), 0)
    return order if is_count else ops.take(x, order, axis)


def _shuffled(key, x, axis):
    """Rounds of sorting by random words. Source: jax-ml/jax, jax/_src/random.py (_shuffle)."""
    from ..numpy import argsort, take_along_axis
    for _ in range(math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))):
        key, own = split(key)
        x = take_along_axis(x, argsort(bits(own, x.shape, "uint32"), axis), axis)
    return x


def shuffle(key, x, axis=0):
    return permutation(key, x, axis)


def exponential(key, shape=(), dtype=None):
    return ops.negative(ops.log1p(ops.negative(uniform(key, shape, dtype))))


def _above_zero(key, shape, dtype, maxval=1.0, minval=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    return uniform(key, shape, dtype, minval=float(np.finfo(dtypes.shown(engine)).tiny) if minval is None else minval, maxval=maxval)


def gumbel(key, shape=(), dtype=None, mode=None):
    _refuse("jax.random.gumbel", {"mode": mode})
    drawn = _above_zero(key, shape, dtype)
    return ops.negative(ops.log(ops.negative(ops.log(drawn))))


def laplace(key, shape=(), dtype=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    drawn = uniform(key, shape, dtype, minval=-1.0 + float(np.finfo(dtypes.shown(engine)).epsneg), maxval=1.0)
    return ops.multiply(ops.sign(drawn), ops.log1p(ops.negative(ops.absolute(drawn))))


def logistic(key, shape=(), dtype=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    drawn = uniform(key, shape, dtype, minval=float(np.finfo(dtypes.shown(engine)).eps), maxval=1.0)
    return ops.log(ops.divide(drawn, ops.subtract(1.0, drawn)))


def cauchy(key, shape=(), dtype=None):
    engine = dtypes.named(dtype) if dtype is not None else dtypes.default("f32")
    drawn = uniform(key, shape, dtype, minval=float(np.finfo(dtypes.shown(engine)).eps), maxval=1.0)
    return ops.tan(ops.multiply(math.pi, ops.subtract(drawn, 0.5)))


def rademacher(key, shape=(), dtype=None):
    made = ops.subtract(ops.multiply(2, astype(bernoulli(key, 0.5, shape), "i32")), 1)
    return astype(made, dtypes.named(dtype) if dtype is not None else dtypes.default("i32"))


def pareto(key, b, shape=None, dtype=None):
    return ops.exp(ops.divide(exponential(key, np.shape(b) if shape is None else shape, dtype), b))


def weibull_min(key, scale, concentration, shape=(), dtype=None):
    drawn = uniform(key, shape, dtype)
    return ops.multiply(scale, ops.power(ops.negative(ops.log1p(ops.negative(drawn))), ops.divide(1.0, concentration)))


def rayleigh(key, scale, shape=None, dtype=None):
    drawn = uniform(key, np.shape(scale) if shape is None else shape, dtype)
    return ops.multiply(ops.sqrt(ops.multiply(-2.0, ops.log(drawn))), scale)


def lognormal(key, sigma=1.0, shape=None, dtype=None):
    return ops.exp(ops.multiply(normal(key, np.shape(sigma) if shape is None else shape, dtype), sigma))


def maxwell(key, shape=(), dtype=None):
    return ops.sqrt(ops.sum_(ops.square(normal(key, tuple(ops._shape(shape)) + (3,), dtype)), -1))


def multivariate_normal(key, mean, cov, shape=None, dtype=None, method="cholesky"):
    from ..numpy import linalg
    mean, cov = asarray(mean), asarray(cov)
    front = tuple(ops._shape(shape)) if shape is not None else np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    if method == "cholesky":
        factor = linalg.cholesky(cov)
    else:
        values, vectors = linalg.eigh(cov)
        factor = ops.multiply(vectors, ops.expand_dims(ops.sqrt(values), -2))
    drawn = normal(key, front + mean.shape[-1:], dtype)
    return ops.add(mean, ops.einsum("...ij,...j->...i", factor, drawn))


def orthogonal(key, n, shape=(), dtype=None, m=None):
    from ..numpy import linalg, diagonal
    rows = n if m is None else m
    q, r = linalg.qr(normal(key, tuple(ops._shape(shape)) + (max(n, rows), min(n, rows)), dtype))
    d = ops.sign(diagonal(r, 0, -2, -1))
    made = ops.multiply(q, ops.expand_dims(d, -2))
    return made if n >= rows else ops.swapaxes(made, -1, -2)


def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None):
    _refuse("jax.random.categorical", {"mode": mode})
    logits = asarray(logits)
    front = list(logits.shape)
    del front[axis]
    if shape is None:
        return ops.argmax(ops.add(gumbel(key, logits.shape), logits), axis)
    shape = tuple(ops._shape(shape))
    more = shape[:len(shape) - len(front)]
    at = ops.dimension(axis, logits.ndim)
    if not replace:
        from ..lax import top_k
        count = math.prod(more)
        return ops.moveaxis(top_k(ops.add(gumbel(key, logits.shape), logits), count, axis=at)[1], at, 0).reshape(shape)
    whole = list(shape[len(more):])
    whole.insert(at, logits.shape[at])
    return ops.argmax(ops.add(gumbel(key, more + tuple(whole)), logits), at + len(more))


def choice(key, a, shape=(), replace=True, p=None, axis=0, mode=None):
    """Source: jax-ml/jax, jax/_src/random.py (choice)."""
    _refuse("jax.random.choice", {"mode": mode})
    is_count = isinstance(a, (int, np.integer))
    count = int(a) if is_count else asarray(a).shape[axis]
    drawn = math.prod(ops._shape(shape))
    if not replace and drawn > count:
        raise ValueError(f"Number of samples to be drawn without replacement ({drawn}) exceeds number of elements to sample from ({count})")
    if p is not None and asarray(p).shape != (count,):
        raise ValueError(f"p must be None or a 1D vector with the same size as a.shape[axis]. p has shape {asarray(p).shape} and a.shape[axis] is {count}.")
    if p is None:
        chosen = randint(key, shape, 0, count) if replace else permutation(key, count)[:drawn].reshape(shape)
    elif replace:
        from ..numpy import searchsorted
        sums = ops.cumulative(asarray(p))
        chosen = searchsorted(sums, ops.multiply(sums[-1], ops.subtract(1.0, uniform(key, shape, sums.dtype))))
    else:
        from ..lax import top_k
        chosen = top_k(ops.add(gumbel(key, (count,)), ops.log(p)), drawn)[1].reshape(shape)
    return chosen if is_count else ops.take(a, chosen, axis)


def key_impl(keys):
    return "threefry2x32" if not isinstance(keys, KeyArray) else PRNGSpec("fry")


class PRNGSpec:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"PRNGSpec({self._name!r})"


def clone(key):
    return key
