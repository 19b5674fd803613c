"""TensorFlow's table means by every name what NumPy means by it, and differentiates it rightly."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

XP = pb.namespace(tf.ones(1))

A = np.array([[0.7, -1.3, 2.1], [-0.4, 0.9, -2.6]])
B = np.array([[1.1, 0.3, -0.8], [2.0, -1.5, 0.6]])
P = np.abs(A) + 0.25  # positive
U = A / 3  # within ±1
N = np.array([[3, 1, 2], [-4, 0, 6]])
M = np.array([[2, 2, 1], [1, 3, 2]])
T = np.array([[True, False, True], [False, False, True]])
Z = A + 1j * B
ODD = np.array([-np.inf, -0.0, 0.0, 1.5, np.inf, np.nan])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])
V = np.array([1.0, -2.0, 0.5])
SORTED = np.array([-2.0, 0.0, 1.0, 3.0])

# name → calls: positional arguments, then keywords
CALLS = {
    "abs": [((A,), {}), ((N,), {}), ((Z,), {})],
    "acos": [((U,), {})],
    "acosh": [((P + 1,), {})],
    "add": [((A, B), {}), ((A, 2.0), {}), ((2, N), {}), ((A.astype("float32"), B), {}), ((N, N[:1]), {})],
    "all": [((T,), {}), ((T,), {"axis": 1}), ((N,), {"axis": (0, 1), "keepdims": True})],
    "any": [((T,), {}), ((T,), {"axis": -1}), ((N,), {"axis": 0, "keepdims": True})],
    "arange": [
        ((5,), {}),
        ((1, 7, 2), {}),
        ((0.0, 1.0, 0.25), {"dtype": "float64"}),
        ((3,), {"dtype": "float32"}),
    ],
    "argmax": [
        ((A,), {}),
        ((A,), {"axis": 1}),
        ((N,), {"axis": -2, "keepdims": True}),
        ((T.astype(int),), {}),
    ],
    "argmin": [((A,), {}), ((A,), {"axis": 0}), ((A,), {"keepdims": True})],
    "argsort": [((A,), {}), ((A,), {"axis": 0}), ((M,), {"stable": True})],
    "asarray": [((A,), {}), (([1.0, 2.0],), {"dtype": "float64"}), ((N,), {"dtype": "float32"})],
    "asin": [((U,), {})],
    "asinh": [((A,), {})],
    "astype": [((A, "float32"), {}), ((N, "float64"), {}), ((T, "int32"), {})],
    "atan": [((A,), {})],
    "atan2": [((A, B), {}), ((A, 1.0), {})],
    "atanh": [((U,), {})],
    "bitwise_and": [((N, M), {})],
    "bitwise_invert": [((N,), {})],
    "bitwise_left_shift": [((M, M), {})],
    "bitwise_or": [((N, M), {})],
    "bitwise_right_shift": [((M, M), {})],
    "bitwise_xor": [((N, M), {})],
    "broadcast_arrays": [((A, V), {}), ((A, A[:1], V), {})],
    "broadcast_to": [((V, (2, 3)), {})],
    "can_cast": [(("float32", "float64"), {}), (("float64", "float32"), {}), (("int32", "float64"), {})],
    "ceil": [((A,), {}), ((N,), {})],
    "clip": [((A, -1.0, 1.0), {}), ((A,), {"min": 0.0}), ((A,), {"max": V}), ((N, -1, 2), {})],
    "concat": [(([A, B],), {}), (([A, B],), {"axis": -1}), (([A, V],), {"axis": None})],
    "conj": [((Z,), {}), ((A,), {})],
    "copysign": [((A, B), {}), ((P, ODD[:3]), {}), ((A, -1.0), {})],
    "cos": [((A,), {}), ((Z,), {})],
    "cosh": [((A,), {})],
    "count_nonzero": [((N,), {}), ((N,), {"axis": 1}), ((N,), {"axis": 0, "keepdims": True})],
    "cumulative_sum": [
        ((V,), {}),
        ((A,), {"axis": 1}),
        ((N,), {"axis": 0, "include_initial": True}),
        ((A,), {"axis": -1, "dtype": "float32"}),
    ],
    "diff": [((A,), {}), ((A,), {"axis": 0}), ((V,), {"n": 2}), ((A,), {"prepend": A[:, :1]})],
    "divide": [((A, P), {}), ((1.0, P), {}), ((A, V), {})],
    "equal": [((N, M), {}), ((A, 0.7), {}), ((ODD, ODD), {})],
    "exp": [((A,), {}), ((Z,), {})],
    "expand_dims": [((A,), {"axis": 0}), ((A,), {"axis": -1}), ((A,), {"axis": 1})],
    "expm1": [((A / 1e9,), {})],
    "eye": [
        ((3,), {"dtype": "float64"}),
        ((2, 4), {"k": 1, "dtype": "float64"}),
        ((4, 2), {"k": -1, "dtype": "float64"}),
    ],
    "flip": [((A,), {}), ((A,), {"axis": 1}), ((A,), {"axis": (0, -1)})],
    "floor": [((A,), {}), ((N,), {})],
    "floor_divide": [((A, P), {}), ((N, M), {}), ((N, 2), {})],
    "full": [(((2, 3), 1.5), {"dtype": "float64"}), ((4, 2), {}), (((2,), True), {})],
    "full_like": [
        ((A, 2), {}),
        ((A, 0.1), {}),
        ((A, 1e-300), {}),
        ((N, 7), {}),
        ((A, 2), {"dtype": "float32"}),
    ],
    "greater": [((A, B), {}), ((A, 0), {})],
    "greater_equal": [((A, B), {}), ((0.7, A), {})],
    "hypot": [((A, B), {}), ((A * 1e200, B * 1e200), {}), ((np.zeros(2), np.array([0.0, np.inf])), {})],
    "imag": [((Z,), {})],
    "isdtype": [
        (("float32", "real floating"), {}),
        (("int8", "integral"), {}),
        (("bool", "numeric"), {}),
        (("complex64", ("real floating", "complex floating")), {}),
        (("uint8", "unsigned integer"), {}),
    ],
    "isfinite": [((ODD,), {})],
    "isinf": [((ODD,), {})],
    "isnan": [((ODD,), {})],
    "less": [((A, B), {})],
    "less_equal": [((A, B), {})],
    "linspace": [
        ((0.0, 1.0, 5), {"dtype": "float64"}),
        ((0.0, 1.0, 4), {"dtype": "float64", "endpoint": False}),
    ],
    "log": [((P,), {}), ((Z,), {})],
    "log10": [((P,), {})],
    "log1p": [((P / 1e9,), {})],
    "log2": [((P,), {})],
    "logaddexp": [
        ((A, B), {}),
        ((A * 1e3, B * 1e3), {}),
        ((np.array([-np.inf, 0.0]), np.array([-np.inf, -46.0])), {}),
    ],
    "logical_and": [((T, T[::-1]), {})],
    "logical_not": [((T,), {})],
    "logical_or": [((T, T[::-1]), {})],
    "logical_xor": [((T, T[::-1]), {})],
    "matmul": [
        ((A, S), {}),
        ((A, V), {}),
        ((V, S), {}),
        ((V, V), {}),
        ((np.stack([S, S]), A.T), {}),
        ((np.stack([S, S]), V), {}),
    ],
    "matrix_transpose": [((A,), {}), ((np.stack([A, B]),), {})],
    "max": [((A,), {}), ((A,), {"axis": 1}), ((N,), {"axis": (0, 1), "keepdims": True})],
    "maximum": [((A, B), {}), ((A, 0.0), {}), ((0, N), {})],
    "mean": [((A,), {}), ((A,), {"axis": -1, "keepdims": True}), ((A,), {"axis": (0, 1)})],
    "meshgrid": [((V, SORTED), {}), ((V, SORTED), {"indexing": "ij"})],
    "min": [((A,), {}), ((A,), {"axis": 0})],
    "minimum": [((A, B), {}), ((A, 0.0), {})],
    "moveaxis": [((np.stack([A, B]), 0, -1), {}), ((np.stack([A, B]), (0, 1), (2, 0)), {})],
    "multiply": [((A, B), {}), ((2, A), {})],
    "negative": [((A,), {})],
    "not_equal": [((N, M), {})],
    "ones": [(((2, 3),), {"dtype": "float64"}), ((4,), {"dtype": "int32"})],
    "ones_like": [((A,), {}), ((N,), {}), ((A,), {"dtype": "float32"})],
    "permute_dims": [((np.stack([A, B]), (2, 0, 1)), {})],
    "positive": [((A,), {})],
    "pow": [((P, B), {}), ((A, 2), {}), ((2.0, A), {}), ((M, M), {})],
    "prod": [
        ((A,), {}),
        ((A,), {"axis": 1}),
        ((N,), {"axis": 0}),
        ((A,), {"axis": (0, 1), "keepdims": True}),
    ],
    "real": [((Z,), {})],
    "reciprocal": [((P,), {})],
    "remainder": [((A, P), {}), ((N, M), {}), ((N, -4), {})],
    "repeat": [((A, 2), {}), ((A, 3), {"axis": 1}), ((V, np.array([1, 0, 2])), {})],
    "reshape": [((A, (3, 2)), {}), ((A, (-1,)), {}), ((A, (1, 6)), {})],
    "result_type": [(("float32", "float64"), {}), (("int8", "int32"), {}), (("float16", "float32"), {})],
    "roll": [
        ((A, 1), {}),
        ((A, -1), {"axis": 1}),
        ((A, (1, 2)), {"axis": (0, 1)}),
        ((A, 1), {"axis": (0, 1)}),
    ],
    "round": [((np.array([0.5, 1.5, -0.5, 2.4]),), {}), ((N,), {})],
    "searchsorted": [
        ((SORTED, A), {}),
        ((SORTED, V), {"side": "right"}),
        ((SORTED[::-1].copy(), V), {"sorter": np.array([3, 2, 1, 0])}),
    ],
    "sign": [((A,), {}), ((N,), {}), ((Z,), {})],
    "signbit": [((ODD[:5],), {}), ((A.astype("float32"),), {})],
    "sin": [((A,), {}), ((Z,), {})],
    "sinh": [((A,), {})],
    "sort": [((A,), {}), ((A,), {"axis": 0}), ((N,), {})],
    "sqrt": [((P,), {}), ((Z,), {})],
    "square": [((A,), {})],
    "squeeze": [((A[None],), {"axis": 0}), ((A[None, ..., None],), {"axis": (0, -1)})],
    "stack": [(([A, B],), {}), (([A, B],), {"axis": -1})],
    "std": [((A,), {}), ((A,), {"axis": 1, "correction": 1.0, "keepdims": True})],
    "subtract": [((A, B), {}), ((1, A), {})],
    "sum": [
        ((A,), {}),
        ((A,), {"axis": 1}),
        ((N.astype("int32"),), {"axis": -1}),
        ((A,), {"axis": (0, 1), "keepdims": True}),
        ((A,), {"dtype": "float32"}),
        ((np.arange(3, dtype="uint8"),), {}),
    ],
    "take": [
        ((A, np.array([2, 0, -1])), {"axis": 1}),
        ((V, np.array([1, 1])), {}),
        ((A, np.array([-1])), {"axis": 0}),
    ],
    "take_along_axis": [
        ((A, np.argsort(A, -1)), {}),
        ((A, np.array([[0, 1, 0]])), {"axis": 0}),
        ((A, np.array([[-1], [0]])), {"axis": 1}),
    ],
    "tan": [((A,), {})],
    "tanh": [((A,), {})],
    "tensordot": [((A, S), {"axes": 1}), ((A, B), {}), ((A, B), {"axes": ((0,), (0,))})],
    "tile": [((A, (2, 1)), {}), ((V, (2, 2)), {}), ((A, (2,)), {})],
    "tril": [((S,), {}), ((A,), {"k": 1}), ((np.stack([S, S]),), {"k": -1})],
    "triu": [((S,), {}), ((A,), {"k": -1})],
    "trunc": [((A,), {}), ((N,), {})],
    "unstack": [((A,), {}), ((A,), {"axis": 1})],
    "var": [((A,), {}), ((A,), {"axis": (0, 1), "correction": 1.0}), ((A,), {"axis": 0, "keepdims": True})],
    "vecdot": [((A, B), {}), ((Z, Z[::-1]), {}), ((A, B), {"axis": 0})],
    "where": [((T, A, B), {}), ((T, A, 0.0), {}), ((T, 1, N), {}), ((T, A.astype("float32"), B), {})],
    "zeros": [(((2, 3),), {"dtype": "float64"}), ((4,), {"dtype": "bool"})],
    "zeros_like": [((A,), {}), ((T,), {})],
}
CALLS |= {
    "linalg.cholesky": [((S,), {}), ((S,), {"upper": True})],
    "linalg.det": [((S,), {}), ((np.stack([S, 2 * S]),), {})],
    "linalg.diagonal": [((S,), {}), ((A,), {"offset": 1})],
    "linalg.eigvalsh": [((S,), {})],
    "linalg.inv": [((S,), {})],
    "linalg.matmul": [((A, S), {})],
    "linalg.matrix_norm": [((A,), {}), ((A,), {"keepdims": True})],
    "linalg.matrix_transpose": [((A,), {})],
    "linalg.outer": [((V, SORTED), {})],
    "linalg.slogdet": [((S,), {}), ((-S,), {})],
    "linalg.solve": [((S, V), {}), ((S, A.T), {})],
    "linalg.svdvals": [((A,), {})],
    "linalg.tensordot": [((A, S), {"axes": 1})],
    "linalg.trace": [((S,), {}), ((A,), {"offset": 1})],
    "linalg.vecdot": [((A, B), {})],
    "linalg.vector_norm": [
        ((A,), {"ord": ord, "axis": axis}) for ord in (0, 1, 2, 3, math.inf, -math.inf) for axis in (None, 1)
    ],
}
# compared through what they are for, because signs of vectors are a choice
FACTORED = {"linalg.eigh", "linalg.qr", "linalg.svd"}
CONSTANTS = {"e", "inf", "nan", "newaxis", "pi"}
DTYPES = [name for name in XP.__all__ if isinstance(getattr(XP, name), tf.DType)]
LIMITS = {"finfo", "iinfo"}


def named(space, name):
    for part in name.split("."):
        space = getattr(space, part)
    return space


def tensors(value):
    if isinstance(value, np.ndarray):
        return tf.constant(value)
    return [tensors(part) for part in value] if isinstance(value, list) else value


def dtypes(space, value):
    """Write a dtype as a namespace has it."""
    return getattr(space, value) if isinstance(value, str) and value in DTYPES else value


def arguments(space, args, kwargs, convert):
    given = [dtypes(space, convert(arg)) for arg in args]
    return given, {key: dtypes(space, convert(value)) for key, value in kwargs.items()}


def leaves(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


ROWS = [(name, i) for name, calls in CALLS.items() for i in range(len(calls))]


@pytest.mark.parametrize(("name", "i"), ROWS, ids=lambda part: str(part))
def test_a_name_means_what_it_means_in_numpy(name, i):
    args, kwargs = CALLS[name][i]
    given, named_args = arguments(np, args, kwargs, lambda value: value)
    expected = named(np, name)(*given, **named_args)
    given, named_args = arguments(XP, args, kwargs, tensors)
    found = named(XP, name)(*given, **named_args)
    assert len(leaves(found)) == len(leaves(expected))
    for mine, theirs in zip(leaves(found), leaves(expected)):
        if isinstance(mine, tf.DType):
            assert mine.as_numpy_dtype == theirs
            continue
        theirs = np.asarray(theirs)
        assert np.shape(mine) == theirs.shape
        if tf.is_tensor(mine):
            assert mine.dtype.as_numpy_dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(mine), theirs, rtol=1e-12 if theirs.dtype != "f4" else 1e-6, atol=1e-15
        )


@pytest.mark.parametrize("name", sorted(FACTORED))
def test_factors_give_the_matrix_again(name):
    if name == "linalg.eigh":
        values, vectors = XP.linalg.eigh(tf.constant(S))
        again = vectors @ tf.linalg.diag(values) @ tf.linalg.adjoint(vectors)
        assert np.all(np.diff(values) > 0)
    elif name == "linalg.qr":
        q, r = XP.linalg.qr(tf.constant(S))
        again = q @ r
        assert np.allclose(np.tril(r, -1), 0)
    else:
        u, s, vh = XP.linalg.svd(tf.constant(S), full_matrices=False)
        again = u @ tf.linalg.diag(s) @ vh
        np.testing.assert_allclose(s, np.linalg.svd(S)[1])
    np.testing.assert_allclose(again, S, atol=1e-12)


def test_constants_and_limits():
    assert (XP.e, XP.pi, XP.inf, XP.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(XP.nan)
    assert XP.finfo(XP.float32).eps == np.finfo(np.float32).eps
    assert XP.finfo(tf.ones(1, tf.float64)).max == np.finfo(np.float64).max
    assert float(XP.finfo(XP.bfloat16).eps) == 2.0**-7
    assert XP.iinfo(XP.int8).max == 127


def test_every_name_of_the_table_is_tested():
    here = {name for name in CALLS if "." not in name}
    assert here | CONSTANTS | set(DTYPES) | LIMITS | {"linalg"} == set(XP.__all__)
    functions = {n for n, f in vars(XP.linalg).items() if callable(f) and not n.startswith("_")}
    outside = {"both", "pair", "Any", "NamedTuple"} | {n for n in functions if n.endswith("Result")}
    assert {f"linalg.{n}" for n in functions - outside} == {n for n in CALLS if "." in n} | FACTORED


@pytest.mark.parametrize("name", XP._ELSEWHERE)
def test_a_name_of_the_standard_that_is_not_here_says_where_to_look(name):
    assert hasattr(np, name)
    with pytest.raises(AttributeError, match=f"TensorFlow tensors has no '{name}': .*(tf|xp)\\."):
        getattr(XP, name)


def test_a_name_that_is_no_array_api_name_says_so():
    with pytest.raises(AttributeError, match="'relu': it is no name of the array API"):
        XP.relu  # noqa: B018
    assert not hasattr(XP, "softmax")


# no derivative, or none at the points of these calls
STEPS = {"signbit", "sign", "full_like", "zeros_like", "ones_like", "floor", "ceil", "trunc", "round", "all"}
STEPS |= {"any", "argmax", "argmin", "argsort", "isfinite", "isinf", "isnan", "searchsorted", "count_nonzero"}
STEPS |= {"equal", "greater", "greater_equal", "less", "less_equal", "not_equal"}
SYMMETRIC = {"linalg.cholesky", "linalg.eigvalsh"}


def smooth(name, i):
    x = CALLS[name][i][0][0]
    if name in STEPS or not isinstance(x, np.ndarray) or x.dtype != np.float64:
        return False
    return np.all(np.isfinite(x)) and 0 < np.max(np.abs(x)) < 1e2


def weights(kind, shape, offset):
    return kind(np.arange(math.prod(shape), dtype=float).reshape(shape) + offset)


def total(space, name, i, x, convert):
    """Give one number that depends on every output."""
    args, kwargs = CALLS[name][i]
    given, named_args = arguments(space, args, kwargs, convert)
    x = (x + space.matrix_transpose(x)) / 2 if name in SYMMETRIC else x
    outputs = [o for o in leaves(named(space, name)(x, *given[1:], **named_args)) if "float" in str(o.dtype)]
    return sum(
        space.sum(o * o * space.astype(convert(weights(np.cos, o.shape, 1)), o.dtype)) for o in outputs
    )


@pytest.mark.parametrize(("name", "i"), [row for row in ROWS if smooth(*row)], ids=str)
def test_a_function_is_differentiated_twice_as_in_jax(name, i):
    x = tf.constant(CALLS[name][i][0][0])
    turn = weights(np.sin, x.shape, 1)

    def jax_total(x):
        return total(jnp, name, i, x, lambda v: jnp.asarray(v) if isinstance(v, np.ndarray) else v)

    def derivatives(x):
        slope = jax.grad(jax_total)
        return slope(x), jax.grad(lambda x: jnp.sum(slope(x) * turn))(x)

    # One program, where eager mode compiles every operation; how often to repeat is no constant in it.
    once = derivatives if name == "repeat" else jax.jit(derivatives)
    with jax.enable_x64(True):
        expected, expected_second = once(jnp.asarray(x.numpy()))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = total(XP, name, i, x, tensors)
        first = tf.convert_to_tensor(inner.gradient(y, x, unconnected_gradients="zero"))
        turned = tf.reduce_sum(first * turn)
    second = tf.convert_to_tensor(outer.gradient(turned, x, unconnected_gradients="zero"))
    tolerance = 1e-6 if CALLS[name][i][1].get("dtype") != "float32" and name != "astype" else 1e-4
    np.testing.assert_allclose(first, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(second, expected_second, rtol=tolerance, atol=tolerance)
