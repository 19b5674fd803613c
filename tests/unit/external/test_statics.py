"""A call runs with its own statics, however equal those of an earlier one are."""

from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from frameworks import EVERYWHERE, vjp

import pullback as pb
from pullback.errors import OptionError

X = np.arange(3.0)


@dataclass(frozen=True)
class Settings:
    size: int
    label: str = field(default="", compare=False)


class Pair(NamedTuple):
    a: object
    b: object


EQUAL = {
    "a flag": ((1,), (True,)),
    "a number of another type": ((1, (2.0,)), (1, (2,))),
    "a field that is not compared": (Settings(1, "first"), Settings(1, "second")),
    "more digits": (Decimal("1.0"), Decimal("1.00")),
    "a zero with a sign": ((0.0,), (-0.0,)),
    "a number of NumPy": (Settings(1.0), Settings(np.float64(1.0))),
    "a named tuple": ((1, 2), Pair(1, 2)),
    "a set": (frozenset({1}), frozenset({True})),
}
# PyTorch compiles what it can guard: numbers, strings and tuples of them, a zero without its sign.
COMPILED = ("a flag", "a number of another type")


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_a_call_runs_with_its_own_statics(framework, compiled, name):
    if framework == "torch" and compiled and name not in COMPILED:
        return
    seen = []

    def f(x, static):
        seen.append(repr(static))
        return 2 * x

    f = pb.external(f, output=lambda x: x)

    @f.pullback
    def _(dy, static):
        seen.append(repr(static))
        return 2 * dy

    for static in EQUAL[name]:
        seen.clear()
        vjp(framework, lambda x, static=static: f(x, static), X, compiled=compiled)
        assert set(seen) == {repr(static)}


@pytest.mark.parametrize("name", EQUAL)
def test_results_are_not_remembered_for_equal_statics(name):
    seen = []
    f = pb.external(lambda x, static: seen.append(repr(static)) or x, output=lambda x: x, cache=4)
    for static in EQUAL[name]:
        f(X, static), f(X, static)
    assert seen == [repr(static) for static in EQUAL[name]]


@pytest.mark.parametrize(
    "make",
    [lambda: (float("nan"),), lambda: Settings(1, "a"), lambda: Decimal("NaN"), lambda: (1, Pair("a", None))],
    ids=["nan", "dataclass", "decimal", "tuples"],
)
def test_statics_of_one_content_are_one_kind_of_call(make):
    f = pb.external(lambda x, static: x, output=lambda x: x)
    for _ in range(3):
        f(X, make())
    assert len(f.external._sites) == 1


def test_an_object_is_seen_as_it_is_now():
    class Grid:
        scale = 2.0

    grid = Grid()
    f = pb.external(lambda x, grid: x * grid.scale, output=lambda x: x)
    assert f(X, grid).tolist() == (2 * X).tolist()
    grid.scale = 3.0
    assert f(X, grid).tolist() == (3 * X).tolist()


@pytest.mark.parametrize("output", [None, lambda x, grid: x.replace(shape=(grid.size,))])
def test_an_object_says_anew_what_is_returned(output):
    class Grid:
        size = 3

    grid = Grid()
    f = pb.external(lambda x, grid: np.full(grid.size, x.sum()), output=output)
    assert f(X, grid).shape == (3,)
    grid.size = 5
    assert f(X, grid).shape == (5,)
    assert f(tf.constant(X), grid).shape == (5,)


def test_an_object_says_anew_where_zeros_are():
    class Order:
        columns = (0, 1, 2)

    order = Order()
    f = pb.external(
        lambda x, order: x[list(order.columns)] ** 2,
        output=lambda x: x,
        gradient="central",
        sparsity=lambda x, order: np.eye(3)[list(order.columns)],
    )
    assert vjp("tensorflow", lambda x: f(x, order)[0], X)[1][0].round(6).tolist() == [0, 0, 0]
    order.columns = (2, 1, 0)
    np.testing.assert_allclose(vjp("tensorflow", lambda x: f(x, order)[0], X)[1][0], [0, 0, 4], atol=1e-6)


def test_a_list_that_changed_is_another_static():
    f = pb.external(lambda x, powers: sum(x**p for p in powers), output=lambda x: x, cache=4)
    powers = [1]
    assert f(X, powers).tolist() == X.tolist()
    powers.append(2)
    assert f(X, powers).tolist() == (X + X**2).tolist()
    assert f.cache.misses == 2


@partial(jax.tree_util.register_dataclass, data_fields=["weight"], meta_fields=["power"])
@dataclass
class Layer:
    weight: object
    power: int


def test_what_a_registered_class_holds_beside_its_arrays_is_that_of_the_call():
    f = pb.external(lambda x, layer: x**layer.power, output=lambda x: x)
    for power in (1, 2, 3):
        y = f(jnp.arange(3.0), Layer(jnp.ones(1), power))
        assert y.tolist() == (X**power).tolist()


def test_a_module_is_that_of_the_call():
    f = pb.external(lambda x, module: x * module.scale, output=lambda x: x)
    for scale in (2.0, 3.0):
        module = torch.nn.Linear(1, 1)
        module.scale = scale
        assert f(torch.ones(2), module).tolist() == [scale, scale]


def test_a_structure_that_depends_on_the_shape_reaches_the_pullback_as_it_is():
    @pb.external
    def f(x):
        return (x, 2 * x) if x.ndim == 1 else [x, 2 * x]

    seen = []

    @f.pullback
    def _(da, db, output):
        seen.append(type(output))
        return da + 2 * db

    for shape in ((2,), (2, 2)):
        x = tf.ones(shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)[1]
        assert tape.gradient(y, x).numpy().tolist() == np.full(shape, 2.0).tolist()
    assert seen == [tuple, list]


# ── what a cache sees ────────────────────────────────────────────────────────────────────────────────────

GAIN = 1.0


def amplified(x):
    return GAIN * x


def test_a_cache_sees_the_numbers_that_its_function_reads(monkeypatch):
    bias = 0.0

    def f(x):
        return amplified(x) + GAIN + bias

    f = pb.external(f, output=lambda x: x, cache=4)
    assert f(X).tolist() == (X + 1).tolist()
    bias = 5.0
    assert f(X).tolist() == (X + 6).tolist()
    monkeypatch.setitem(globals(), "GAIN", 2.0)
    assert f(X).tolist() == (2 * X + 7).tolist()
    f(X)
    assert f.cache.hits == 1


def test_what_a_function_writes_itself_does_not_make_each_call_another_one():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x

    f = pb.external(f, output=lambda x: x, cache=4)
    f(X), f(X)
    assert calls == 1


@pytest.mark.parametrize(
    "static", [object(), (1, object()), {"a": [object()]}], ids=["bare", "tuple", "dict"]
)
def test_a_cache_refuses_an_object_that_has_no_value(static):
    f = pb.external(lambda x, static: x, output=lambda x: x, cache=4)
    with pytest.raises(OptionError, match="cache=4, and `static` is or holds an object of class object"):
        f(X, static)


def test_a_cache_refuses_a_module():
    f = pb.external(lambda x, module: x, output=lambda x: x, cache=4)
    with pytest.raises(OptionError, match="`module` is or holds a module or another registered class"):
        f(torch.ones(2), torch.nn.Linear(1, 1))


def test_functions_have_a_value():
    f = pb.external(lambda x, g: g(x), output=lambda x: x, cache=4)
    f(X, np.sin), f(X, np.sin), f(X, np.cos), f(X, np.cos)
    assert (f.cache.hits, f.cache.misses) == (2, 2)


class Model:
    gain = 2.0

    def run(self, x):
        return self.gain * x * TABLE


TABLE = np.ones(3)


def test_a_cache_says_what_it_does_not_see():
    calls = []
    f = pb.external(lambda x: calls.append(1) or GAIN * x * TABLE, output=lambda x: x, cache=4)
    assert f.cache.unseen == ["TABLE", "calls"]
    assert repr(f.cache).endswith("it does not see `TABLE`, `calls`>")
    assert pb.external(Model().run, output=lambda x: x, cache=4).cache.unseen == ["self", "TABLE"]
    assert pb.external(amplified, output=lambda x: x, cache=4).cache.unseen == []
