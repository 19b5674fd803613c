"""A foreign function behaves the same on every host: eager, compiled, mapped."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from foreign import Recorded, failing, floats, mixed

from pullback import hosts
from pullback.errors import DerivativeError, ExternalError
from pullback.hosts.numpy.callback import original
from pullback.hosts.specs import Spec

MAKE = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.as_tensor}
COMPILE = {
    "tensorflow": tf.function,
    "jax": jax.jit,
    "torch": functools.partial(torch.compile, fullgraph=True, backend="aot_eager"),
}
ADDRESS = {
    "tensorflow": lambda x: x._numpy().ctypes.data,
    "jax": lambda x: x.unsafe_buffer_pointer(),
    "torch": lambda x: x.data_ptr(),
}


def tensorflow_map(function, axes):
    def mapped(*args):
        moving = [a for a, axis in zip(args, axes) if axis is not None]

        def one(parts):
            parts = iter(parts)
            return function(*(a if axis is None else next(parts) for a, axis in zip(args, axes)))

        return tf.vectorized_map(one, moving, fallback_to_while_loop=False)

    return mapped


MAP = {"tensorflow": tensorflow_map, "jax": jax.vmap, "torch": torch.func.vmap}


class Surroundings:
    """One framework, in the words of the tests."""

    def __init__(self, name):
        self.make = MAKE[name]
        self.compile = COMPILE[name]
        self.map = MAP[name]
        self.address = ADDRESS[name]
        self.host = hosts.of(self.make([1.0]))

    def bind(self, foreign, *outputs):
        """Make a function of tensors of a foreign function with one output."""
        return lambda *tensors: self.host.callback(foreign, tensors, outputs or [floats(3)])[0]


@pytest.fixture(params=list(MAKE))
def on(request):
    torch.compiler.reset()  # the same lambda is compiled more often than PyTorch allows
    return Surroundings(request.param)


@pytest.fixture
def x(on):
    return on.make(np.array([1.0, 2.0, 3.0], np.float32))


@pytest.fixture
def y(on):
    return on.make(np.array([10.0, 20.0], np.float32))


@pytest.fixture(params=[False, True], ids=["eager", "compiled"])
def wrap(request, on):
    return on.compile if request.param else (lambda function: function)


def test_it_runs_once(on, wrap, x, y):
    foreign = Recorded(mixed)
    result = wrap(on.bind(foreign))(x, y)
    assert type(result) is type(x)
    assert np.array_equal(np.asarray(result), [32.0, 34.0, 36.0])
    assert len(foreign.calls) == 1


def test_arguments_are_read_only(on, wrap, x, y):
    foreign = Recorded(mixed)
    wrap(on.bind(foreign))(x, y)
    with pytest.raises(ValueError, match="read-only"):
        foreign.calls[0][0][0] = 0.0


def test_arguments_are_views_in_eager_mode(on):
    x = on.make(np.arange(1 << 16, dtype=np.float32))
    foreign = Recorded(lambda x: [np.float32(x.sum())])
    on.bind(foreign, floats())(x)
    assert foreign.calls[0][0].ctypes.data == on.address(x)


@pytest.mark.parametrize("size", [3, 1 << 18])
def test_a_workspace_that_is_used_again_changes_no_result(on, wrap, size):
    workspace = np.zeros(size, np.float32)

    def simulate(x):
        workspace[:] = x
        return [workspace]

    call = wrap(on.bind(Recorded(simulate), floats(size)))
    first = call(on.make(np.full(size, 1, np.float32)))
    call(on.make(np.full(size, 2, np.float32)))
    workspace[:] = 3
    assert np.all(np.asarray(first) == 1)


def test_an_argument_can_be_the_result(on, wrap, x):
    result = wrap(on.bind(Recorded(lambda x: [x])))(x)
    assert np.array_equal(np.asarray(result), np.asarray(x))
    assert on.address(result) != on.address(x)


def test_several_results_of_several_dtypes(on, wrap, x):
    foreign = Recorded(lambda x: [x.astype("int32"), x > 1, np.float32(x.sum())])
    outputs = [Spec((3,), "int32", "integer"), Spec((3,), "bool", "other"), floats()]
    results = wrap(lambda x: list(on.host.callback(foreign, [x], outputs)))(x)
    assert [np.asarray(r).tolist() for r in results] == [[1, 2, 3], [False, True, True], 6.0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64", "uint8", "bool"])
def test_dtypes_arrive_and_leave_as_they_are(on, wrap, dtype):
    if dtype == "float64" and on.host.name == "JAX":
        dtype = "float32"  # what JAX makes of it
    ones = on.host.arrays.cast(on.make([1.0, 0.0]), on.host.conform([1.0], like(on, dtype)))
    foreign = Recorded(lambda x: [x])
    result = wrap(on.bind(foreign, Spec((2,), dtype, "other")))(ones)
    assert on.host.spec(result).dtype == dtype
    assert foreign.calls[0][0].dtype.name == dtype
    assert foreign.calls[0][0].tolist() == [1, 0]


def like(on, dtype):
    if on.host.name == "PyTorch":
        return torch.zeros(1, dtype=getattr(torch, dtype))
    return tf.zeros([1], dtype) if on.host.name == "TensorFlow" else jnp.zeros(1, dtype)


def test_scalars_and_empty_arrays(on, wrap):
    foreign = Recorded(lambda x, empty: [x + np.float32(empty.size), empty])
    outputs = [floats(), floats(0, 2)]
    call = wrap(lambda *tensors: list(on.host.callback(foreign, tensors, outputs)))
    scalar, empty = call(on.make(np.float32(2.0)), on.make(np.zeros((0, 2), np.float32)))
    assert np.asarray(scalar).tolist() == 2.0
    assert np.asarray(empty).shape == (0, 2)


# ── maps ─────────────────────────────────────────────────────────────────────────────────────────────────

OUTER, INNER = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(8, dtype=np.float32).reshape(4, 2)
WANTED = np.stack([[mixed(a, b)[0] for b in INNER] for a in OUTER])


def test_a_map_is_one_call_of_the_batch(on, wrap, y):
    foreign = Recorded(mixed)
    result = wrap(on.map(on.bind(foreign), (0, None)))(on.make(OUTER), y)
    assert np.array_equal(np.asarray(result), 2 * OUTER + 30)
    assert foreign.calls == []
    ((arrays, mapped),) = foreign.batches
    assert mapped == [True, False]
    assert [a.shape for a in arrays] == [(2, 3), (2,)]


def test_a_map_of_a_map_is_one_call(on, wrap):
    foreign = Recorded(mixed)
    nested = on.map(on.map(on.bind(foreign), (None, 0)), (0, None))
    result = wrap(nested)(on.make(OUTER), on.make(INNER))
    assert np.array_equal(np.asarray(result), WANTED)
    assert foreign.calls == []
    assert len(foreign.batches) == 1


def test_an_empty_map_runs_nothing(on, y):
    foreign = Recorded(mixed)
    result = on.map(on.bind(foreign), (0, None))(on.make(np.zeros((0, 3), np.float32)), y)
    assert tuple(result.shape) == (0, 3)
    assert foreign.batches == []


@pytest.mark.parametrize("host", ["jax", "torch"])
def test_an_axis_in_any_place(host):
    on = Surroundings(host)
    foreign = Recorded(mixed)
    result = on.map(on.map(on.bind(foreign), (None, 1)), (1, None))(on.make(OUTER.T), on.make(INNER.T))
    assert np.array_equal(np.asarray(result), WANTED)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────


def test_an_exception_of_the_user_comes_out_as_it_is(on, x):
    with pytest.raises(KeyError, match="the solver diverged") as caught:
        on.bind(Recorded(failing))(x)
    assert caught.traceback[-1].name == "failing"


def test_an_exception_in_a_map_comes_out(on):
    with pytest.raises(Exception, match="the solver diverged"):
        on.map(on.bind(Recorded(failing)), (0,))(on.make(OUTER))


def test_a_compiled_program_tells_of_the_exception(on, x):
    def guarded(x):
        try:
            failing(x)
        except KeyError as error:
            raise ExternalError("simulate: the function failed") from error

    with pytest.raises(Exception, match="simulate: the function failed") as caught:
        np.asarray(on.compile(on.bind(Recorded(guarded)))(x))
    error = caught.value
    if not isinstance(error, ExternalError):  # the framework made text of it
        assert "in failing" in str(error)
        assert "the solver diverged" in str(error)
        error = original(error)
    assert isinstance(error, ExternalError)
    assert isinstance(error.__cause__, KeyError)


def test_a_wrong_result_is_refused(on, wrap, x):
    with pytest.raises(Exception, match=r"the result is float32 \(2,\)"):
        np.asarray(wrap(on.bind(Recorded(lambda x: [x[:2]])))(x))


def gradient(on, function, x):
    if on.host.name == "TensorFlow":
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)
    return (jax.grad if on.host.name == "JAX" else torch.func.grad)(lambda x: function(x).sum())(x)


def test_nobody_gets_a_derivative_by_accident(on, x):
    with pytest.raises(DerivativeError, match="a derivative of `simulate` was asked for"):
        gradient(on, on.bind(Recorded(lambda x: [x])), x)


def test_a_derivative_in_a_compiled_program_is_refused(on, x):
    call = on.bind(Recorded(lambda x: [x]))
    with pytest.raises(Exception, match="a derivative of `simulate` was asked for"):
        on.compile(lambda x: gradient(on, call, x))(x)


def test_a_value_that_no_derivative_goes_through_is_no_error(on, x):
    call = on.bind(Recorded(lambda x: [x]))
    result = gradient(on, lambda x: x * on.host.arrays.stop(call(x)), x)
    assert np.array_equal(np.asarray(result), np.asarray(x))
