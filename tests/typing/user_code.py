"""What mypy and pyright know of a program that uses pullback.

Both must agree with every `assert_type`, and both must find every mistake in `wrong`: an ignore that is not
needed is an error of theirs. `right` also runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import pullback as pb
from pullback.checker import Report
from pullback.wrapping.cache import Cache

Array = NDArray[np.float64]
Grad = Callable[[Array], Array]


@pb.custom_gradient
def power(x: Array, n: int = 2) -> tuple[Array, Grad]:
    def grad(dy: Array) -> Array:
        return dy * n * x ** (n - 1)

    return x**n, grad


@power.pushforward
def push(dx: Array, x: Array, n: int = 2) -> Array:
    return dx * n * x ** (n - 1)


@pb.custom_gradient(order=1, differs="the gradient is that of the sum")
@pb.example(np.ones(3))
def both(x: Array) -> tuple[tuple[Array, Array], Callable[[Array, Array], Array]]:
    def grad(dy: Array, dz: Array) -> Array:
        return dy + dz

    return (x, 2 * x), grad


@pb.custom_gradient
def three(x: Array) -> tuple[Array, Array, Array, Callable[..., Array]]:
    def grad(dy: Array, dz: Array, dw: Array) -> Array:
        return dy + dz + dw

    return x, x, x, grad


@pb.custom_gradient
def loose(x: Any, n: int) -> Any:
    def grad(dy: Any) -> Any:
        return {"x": dy * n}

    return x * n, grad


@pb.custom_gradient
def unknown(x: Any) -> tuple[Any, Callable[..., Any]]:
    def grad(dy: Any) -> Any:
        return dy

    return x, grad


@pb.custom_gradient
def untyped(x, n=2):
    def grad(dy):
        return dy * n

    return x * n, grad


class Layer:
    @pb.custom_gradient
    def call(self, x: Array) -> tuple[Array, Grad]:
        def grad(dy: Array) -> Array:
            return dy

        return x, grad


@pb.elementwise(partials=np.cos)
def sine(x: Array) -> Array:
    return np.sin(x)


@pb.external(output=lambda x: x, cache=4)
def cube(x: Array, *, scale: float = 1.0) -> Array:
    return scale * x**3


@cube.pullback
def back(dy: Array, x: Array, *, scale: float = 1.0) -> Array:
    return dy * scale * 3 * x**2


@cube.pushforward
def forth(dx: Array, x: Array, *, scale: float = 1.0) -> Array:
    return dx * scale * 3 * x**2


def rounded(x: Array, digits: int = 0) -> Array:
    return np.round(x, digits)


def slope(dy: Array, x: Array) -> Array:
    return dy


def identity(x: Array, digits: int = 0) -> Array:
    return x


def right(x: Array) -> None:
    assert_type(power(x), Array)
    assert_type(power(x, n=3), Array)
    assert_type(power.rule, pb.Rule)
    assert_type(power.__name__, str)
    assert_type(push(x, x), Array)
    assert_type(both(x), tuple[Array, Array])
    assert_type(three(x), Any)
    assert_type(loose(x, 2), Any)
    assert_type(loose.rule, pb.Rule)
    assert_type(unknown(x), Any)
    assert_type(untyped.rule, pb.Rule)
    assert_type(Layer().call(x), Array)
    assert_type(Layer().call.rule, pb.Rule)
    assert_type(Layer.call(Layer(), x), Array)
    function: Callable[[Array], Array] = power
    assert_type(function(x), Array)

    assert_type(sine(x), Array)
    assert_type(sine.rule, pb.Rule)
    assert_type(pb.elementwise(np.sin, np.cos).rule, pb.Rule)
    assert_type(pb.unbroadcast(x, like=x), Array)

    assert_type(cube(x, scale=2.0), Array)
    assert_type(cube.cache, Cache | Any)
    assert_type(cube.rule, pb.Rule)
    assert_type(back(x, x), Array)
    assert_type(forth(x, x, scale=2.0), Array)

    straight = pb.straight_through(rounded)
    assert_type(straight(x, digits=1), Array)
    assert_type(straight.rule, pb.Rule)
    assert_type(pb.surrogate(rounded, like=identity)(x, 1), Array)
    kept = pb.with_gradient(rounded, slope)
    assert_type(kept(x), Array)
    kept.pushforward(slope)

    assert_type(pb.clip_gradient(x, norm=1.0), Array)
    assert_type(pb.finite_gradient(x, label="x"), Array)
    assert_type(pb.finite_gradient.rule, pb.Rule)
    assert_type(pb.forbid_gradient(x, reason="no parameter"), Array)
    assert_type(pb.map_gradient(x, np.sign), Array)
    assert_type(pb.reverse_gradient(x, 0.5), Array)
    assert_type(pb.scale_gradient(x, 0.5), Array)
    assert_type(pb.scale_gradient.rule, pb.Rule)
    assert_type(pb.stop_gradient(x), Array)
    assert_type(pb.heaviside(x, slope="arctan"), Array)
    assert_type(pb.round(x), Array)
    assert_type(pb.sign(x), Array)
    assert_type(pb.argmax_one_hot(x, axis=0), Array)
    assert_type(pb.argmax_one_hot.rule.intent, pb.Intent)


class Module:
    def state_dict(self) -> dict[str, Array]:
        return {}

    def __call__(self, x: Array) -> Array:
        return x


class Tensor:
    """What a framework calls its arrays."""


def with_a_framework(x: Array, tensor: Tensor) -> None:
    assert_type(pb.stop_gradient(tensor), Tensor)
    assert_type(cube(tensor), Any)
    assert_type(pb.check(power, x), Report)
    assert_type(pb.testing.assert_gradient(power, x), Report)
    assert_type(pb.override(rounded, {"Round": slope})(x, digits=2), Array)
    assert_type(pb.override(rounded, {"Round": slope}).replaced, Mapping[str, int])
    assert_type(pb.override(Module(), {"Round": slope}), Module)
    with pb.override({"Round": slope}) as context:
        assert_type(context.replaced, Mapping[str, int])
    squared = pb.loss(lambda y_true, y_pred: y_pred - y_true, lambda y_true, y_pred: y_pred)
    assert_type(squared.rule, pb.Rule)
    assert_type(squared(x, x), Any)


def wrong(x: Array) -> None:
    power("a word")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    power(x, m=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    print(power.pullback)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    print(power.rule.nothing)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    print(power(x).nothing)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    both(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    loose(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    untyped(x, m=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Layer().call()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Layer().call(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sine(x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    print(cube.cache.hit)  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    print(cube.pull)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    pb.straight_through(rounded)(x, figures=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    print(pb.straight_through(rounded).pushforward)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    pb.surrogate(rounded, like=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pb.with_gradient(rounded, slope)("a word")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pb.clip_gradient(x, norm="large")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pb.clip_gradient(x, size=1.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    pb.argmax_one_hot(x, like=2)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pb.override(rounded, {"Round": slope})(x, figures=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    pb.external(rounded, output=x, gradient=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    pb.external(cached=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    pb.elementwise(rounded)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    pb.loss(rounded, gradient=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pb.custom_gradient(rounded)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    pb.custom_gradient(differs=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    pb.check(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
