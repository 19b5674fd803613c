"""What the losses are called with, brought into one form: tensors of one host, tokens in one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback import hosts
from pullback.errors import HostError, InputError, OptionError
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.specs import same_shape, show_shape
from pullback.namespace import namespace
from pullback.ops.linear.kernels import Array, Kernels, kernels_of


@dataclass(frozen=True)
class Call:
    """One call of a loss: its name, its host, and the kernels of it."""

    name: str
    host: Host
    kernels: Kernels

    def shape(self, a: Array) -> tuple[int | None, ...]:
        shape = self.host.spec(a).shape
        if shape is None:
            raise self.refused("a tensor of unknown rank", "a known number of axes", "x.set_shape(…)")
        return shape

    def refused(self, found: str, expected: str, fix: str, why: str = "") -> InputError:
        return InputError.about(self.name, found=found, expected=expected, why=why, fix=fix)

    def stop(self, a: Array) -> Array:
        """Cut a tensor off from what it was computed from."""
        return a if self.host is NUMPY else self.host.arrays.stop(a)

    def reduced(self, losses: Array, reduction: str, shape: Sequence[int | None]) -> Array:
        """Sum the losses of tokens, or give them the shape that the tokens had."""
        xp = namespace(losses)
        if reduction != "none":
            return xp.sum(losses)
        return losses if len(shape) == 1 else xp.reshape(losses, [-1 if n is None else n for n in shape])

    def tokens(self, x: Array, width: int) -> Array:
        """Lay all axes in front of the last `width` ones in one."""
        shape = self.shape(x)
        kept = shape[len(shape) - width :]
        if len(shape) == width + 1:
            return x
        return namespace(x).reshape(x, (-1 if 0 not in shape else 0, *kept))


def called(name: str, **given: Array | None) -> tuple[Call, list[Array | None]]:
    """Find the host of a call, and make what it was given tensors of it."""
    found: dict[str, Host] = {}
    for argument, value in given.items():
        role = hosts.role(type(value))
        if role is Role.SYMBOL:
            raise InputError.about(
                name, found=f"`{argument}` is a symbol of Keras", expected="tensors", fix="a layer's `call`"
            )
        if not isinstance(role, Role):
            found[argument] = role
    owner = next(iter(found), "")
    host = found[owner] if owner else NUMPY
    for argument, other in found.items():
        if other is not host:
            raise HostError.about(
                name,
                found=f"`{owner}` is a {host.name} tensor and `{argument}` a {other.name} tensor",
                expected="tensors of one framework in one call",
                fix="convert one of them first",
            )
    tensors = [
        None if value is None else host.tensor(value, where=name, argument=argument)
        for argument, value in given.items()
    ]
    first = next(tensor for tensor in tensors if tensor is not None)
    return Call(name, host, kernels_of(first)), tensors


def require_matrices(call: Call, x: Array, w: Array, bias: Array | None, names: str = "x w bias") -> None:
    """Refuse hidden states, an output matrix and a bias that do not belong together."""
    a, b, c = names.split()
    for argument, value in ((a, x), (b, w)):
        if not call.host.differentiable(value) or call.host.spec(value).kind != "floating":
            raise call.refused(
                f"`{argument}` has dtype {call.host.spec(value).dtype}",
                "real floating numbers",
                f"{argument} of float32",
            )
    xs, ws = call.shape(x), call.shape(w)
    if len(xs) < 1 or len(ws) != 2 or not same_shape(xs[-1:], ws[-1:]):
        raise call.refused(
            f"`{a}` of shape {show_shape(xs)} and `{b}` of shape {show_shape(ws)}",
            f"`{a}` of shape (…, D) and `{b}` of shape (V, D)",
            f"{b}.T, if its classes are its columns",
        )
    if ws[0] == 0:
        raise call.refused(f"`{b}` has no rows", "at least one class", f"{b} of shape (V, D), V ≥ 1")
    if bias is not None and not same_shape(call.shape(bias), ws[:1]):
        raise call.refused(
            f"`{c}` of shape {show_shape(call.shape(bias))}", "one number a class", f"{c} of shape (V,)"
        )


def require_tokens(call: Call, argument: str, value: Array | None, shape: Sequence[int | None]) -> None:
    """Refuse what has not one number a token."""
    if value is not None and not same_shape(call.shape(value), tuple(shape)):
        raise call.refused(
            f"`{argument}` of shape {show_shape(call.shape(value))} for tokens of shape "
            f"{show_shape(tuple(shape))}",
            "one of each a token",
            f"{argument}.reshape({show_shape(tuple(shape))})",
        )


def require_labels(call: Call, labels: Array, count: Any, counted: Array) -> Array:
    """Refuse labels that are no class; give where they are none, as far as nobody can be told now."""
    xp = namespace(labels)
    classes = count if isinstance(count, int) else call.kernels.index(count)
    outside = counted & ((labels < 0) | (labels >= classes))
    if call.host.readable(outside):
        if bool(xp.any(outside)):
            raise call.refused(
                f"a label outside the {int(count)} classes",
                f"labels from 0 to {int(count) - 1}, or ignore_index",
                "look at labels.min() and labels.max()",
                why="it has no logit",
            )
    else:
        call.kernels.assert_none(outside, f"{call.name}: a label is outside the classes")
    return outside


def coefficients(c: Array, reduction: str) -> Array:
    """Give the weight that each token has in the result; nothing weighs anything if the sum is 0."""
    if reduction != "mean":
        return c
    xp = namespace(c)
    weight = xp.sum(c)
    nothing = weight == 0
    return xp.where(nothing, xp.zeros_like(c), c / xp.where(nothing, xp.ones_like(weight), weight))


def require_option(name: str, option: str, value: Any, least: float, below: float, *, above: bool) -> None:
    """Refuse an option that is no number of its range."""
    good = isinstance(value, (int, float, np.number)) and (
        least < value < below or (value == least and not above)
    )
    if not good:
        edge = "greater than" if above else "not less than"
        raise OptionError.about(
            name,
            found=f"{option}={value!r}",
            expected=f"a number {edge} {least:g}" + (f" and less than {below:g}" if below < 1e300 else ""),
            fix=f"leave {option} out",
        )
