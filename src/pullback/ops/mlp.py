"""mlp: act(x·up)·down, kept as its inputs alone; the gradient replays the first product, and not the last.

    h = x·up + b,   a = act(h),   y = a·down + c
    da = dy·downᵀ,   dh = da·act′(h),   dx = dh·upᵀ
    dup = xᵀ·dh,   ddown = aᵀ·dy,   db = Σ dh,   dc = Σ dy
    with a gate:   g = x·gate + e,   a = act(g)·h,   dg = da·h·act′(g),   dh = da·act(g),   dx += dg·gateᵀ

Kept: x and the weights. A plain block keeps h and a, each as wide as the block is inside. A checkpoint around
it keeps as little as this, and runs the last product again too, unless a compiler drops it: eight products,
where these are seven, and six if all is kept. A compiler would take the second h for the first one, and keep
it: so it is computed of an x that waits for dy. `torch.compile` chooses itself what it keeps.

Domain: every finite x. Edges: no tokens give gradients 0; relu has slope 0 at 0; NaN stays NaN. 16-bit inputs
are multiplied and summed in float32 as in `linear/`, and rounded once.
After T. Dao et al., QuACK, 2025, and N. Shazeer, GLU variants improve transformer, 2020 (arXiv:2002.05202).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback import hosts
from pullback.define import custom_gradient
from pullback.errors import UnsupportedInputError
from pullback.example import example
from pullback.hosts.operation import Function
from pullback.hosts.specs import same_shape, show_shape
from pullback.namespace import namespace
from pullback.ops.gelu import gelu_both, gelu_of
from pullback.ops.linear.kernels import Array, Kernels, kernels_of
from pullback.ops.reduced import narrow
from pullback.ops.silu import silu_both, silu_of
from pullback.options import require_word
from pullback.typed import T


class Activation(NamedTuple):
    """A function of each number; and the same with what takes a cotangent of it to one of its input."""

    of: Callable[[Array], Array]
    both: Callable[[Array], tuple[Array, Callable[[Array], Array]]]


def _relu(h: Array) -> Array:
    return namespace(h).where(h <= 0, 0.0, h)


def _relu_both(h: Array) -> tuple[Array, Callable[[Array], Array]]:
    return _relu(h), lambda da: namespace(h).where(h <= 0, 0.0, da)


def _gelu(approximate: str) -> Activation:
    return Activation(lambda h: gelu_of(h, approximate), lambda h: gelu_both(h, approximate))


ACTIVATIONS = {
    "gelu": _gelu("none"),
    "gelu_tanh": _gelu("tanh"),
    "relu": Activation(_relu, _relu_both),
    "silu": Activation(silu_of, silu_both),
}
_X = np.array([[0.7, -1.3], [0.4, 0.9], [-2.1, 0.2]])
_UP, _GATE = np.cos(np.arange(8.0)).reshape(2, 4), np.sin(np.arange(8.0)).reshape(2, 4)
_DOWN = np.cos(np.arange(12.0) / 2).reshape(4, 3)


@custom_gradient
@example(_X, _UP, _DOWN, up_bias=np.array([0.1, -0.2, 0.3, 0.4]), down_bias=np.array([0.5, 0.0, -0.5]))
@example(_X[None], _UP, _DOWN, gate=_GATE, gate_bias=np.array([0.3, 0.2, -0.1, 0.6]), activation="silu")
def mlp(
    x: T,
    up: Any,
    down: Any,
    *,
    gate: Any = None,
    up_bias: Any = None,
    down_bias: Any = None,
    gate_bias: Any = None,
    activation: str = "gelu",
) -> tuple[T, Function]:
    """Give act(x·up)·down, or (act(x·gate)∘(x·up))·down, and keep nothing but x and the weights.

    Args:
        x: Hidden states, of shape (…, D).
        up: The first matrix, of shape (D, F).
        down: The last matrix, of shape (F, E).
        gate: A matrix of the shape of `up`: what of x goes through the activation, and is multiplied with the
            rest. With "silu" that is a swiglu, with "gelu" a geglu.
        up_bias: One number for each of F, added before the activation.
        down_bias: One number for each of E.
        gate_bias: One number for each of F, added to x·gate.
        activation: "gelu", "gelu_tanh", "relu" or "silu".

    Example:
        >>> import numpy as np, pullback as pb
        >>> pb.ops.mlp(np.eye(2), np.eye(2), 3 * np.eye(2), activation="relu").tolist()
        [[3.0, 0.0], [0.0, 3.0]]

    Do not use it where memory is no matter: it computes a product more than a block that keeps all.
    """
    require_word("mlp", "activation", activation, tuple(ACTIVATIONS))
    _require(x=x, up=up, down=down, gate=gate, up_bias=up_bias, gate_bias=gate_bias, down_bias=down_bias)
    act, ends = ACTIVATIONS[activation], down_bias is not None
    h, g = _first(_rows(x, up, 0), up, up_bias, gate, gate_bias)

    def grad(dy: Any) -> Any:
        k, xp = kernels_of(x), namespace(x)
        (again,) = hosts.of(x).arrays.held([x], [dy, x])
        rows, dy = _rows(again, up, 0), _rows(dy, down, 1)
        h, g = _first(rows, up, up_bias, gate, gate_bias)
        a, pull = act.both(h if g is None else g)
        found = {"down": k.across(a if g is None else a * h, dy)}  # first, so that what it needs is let go of
        if g is None:
            a = h = None
        da = k.product(dy, down)
        dh, dg = (pull(da), None) if g is None else (da * a, pull(da * h))
        del a, h, g, da, pull
        dx = k.product(dh, up) if dg is None else k.product(dh, up) + k.product(dg, gate)
        found["x"] = hosts.of(x).arrays.shaped(dx, x)
        found["up"] = xp.matrix_transpose(k.across(dh, rows))
        if gate is not None:
            found["gate"] = xp.matrix_transpose(k.across(dg, rows))
        sums = (("up_bias", up_bias is not None, dh), ("gate_bias", gate_bias is not None, dg))
        for name, there, slopes in (*sums, ("down_bias", ends, dy)):
            if there:
                found[name] = xp.sum(k.wide(slopes), axis=0)
        return found

    return _last(_joined(act, h, g), x, down, down_bias), grad


@mlp.pushforward
def _pushed(*given: Any, activation: str = "gelu", **named: Any) -> Any:
    """h′ = x′·up + x·up′ + b′,   a′ = h′·act′(h),   y′ = a′·down + a·down′ + c′"""
    *tangents, x, up, down = given
    named = {name: value for name, value in named.items() if value is not None}
    t = dict(zip(("x", "up", "down", *(name for name in _NAMED if name in named)), tangents))
    k, act, rows = kernels_of(x), ACTIVATIONS[activation], _rows(x, up, 0)
    h, g = _first(rows, up, named.get("up_bias"), named.get("gate"), named.get("gate_bias"))

    def moved(name: str, w: Array) -> Array:
        return _plus(k, k.into(_rows(t["x"], up, 0), w) + k.into(rows, t[name]), t.get(f"{name}_bias"))

    dh = moved("up", up)
    a, pull = act.both(h if g is None else g)
    da = pull(dh) if g is None else a * dh + pull(moved("gate", named["gate"]) * h)
    return _last(a if g is None else a * h, x, t["down"], t.get("down_bias")) + _last(da, x, down, None)


_NAMED = ("gate", "up_bias", "down_bias", "gate_bias")  # in the order of the signature


def _rows(x: Array, w: Array, axis: int) -> Array:
    """Lay all axes but the last in one; the last is as long as this one of a matrix."""
    lead = (hosts.of(x).spec(x).shape or ())[:-1]
    count = -1 if None in lead else math.prod(n for n in lead if n is not None)
    return namespace(x).reshape(x, (count, int(w.shape[axis])))


def _plus(k: Kernels, y: Array, bias: Array | None) -> Array:
    return y if bias is None else y + k.wide(bias)


def _first(rows: Array, up: Array, up_bias: Any, gate: Any, gate_bias: Any) -> tuple[Array, Array | None]:
    """Give h, and g if there is a gate, in the wide dtype."""
    k = kernels_of(rows)
    h = _plus(k, k.into(rows, up), up_bias)
    return h, None if gate is None else _plus(k, k.into(rows, gate), gate_bias)


def _joined(act: Activation, h: Array, g: Array | None) -> Array:
    return act.of(h) if g is None else act.of(g) * h


def _last(a: Array, x: Array, down: Array, bias: Array | None) -> Array:
    """Give a·down + bias in the dtype of x, and with its leading axes."""
    k, (*lead, width), last = kernels_of(x), hosts.of(x).spec(x).shape or (), int(down.shape[1])
    y = narrow(_plus(k, k.into(a, down), bias), x)
    if lead.count(None) < 2:
        return namespace(y).reshape(y, (*(-1 if n is None else n for n in lead), last))
    # A graph that knows few lengths: a tensor of the shape that is meant tells it.
    return hosts.of(x).arrays.shaped(y, x if width == last else x[..., :1] + down[0])


def _require(**given: Any) -> None:
    """Refuse what does not fit together."""
    host = hosts.of(given["x"])
    specs = {name: host.spec(value) for name, value in given.items() if value is not None}
    if len({spec.dtype for spec in specs.values()}) > 1 or specs["x"].kind != "floating":
        raise UnsupportedInputError.about(
            "mlp",
            found=", ".join(f"`{name}` of {spec.dtype}" for name, spec in specs.items()),
            expected="real floating numbers of one dtype",
            fix="cast them to that of x",
        )
    if "gate_bias" in specs and "gate" not in specs:
        raise UnsupportedInputError.about(
            "mlp",
            found="`gate_bias` without `gate`",
            expected="both, or none of them",
            fix="up_bias=gate_bias",
        )
    shapes = {name: spec.shape or () for name, spec in specs.items()}
    d, f, e = shapes["up"][:1], shapes["up"][1:], shapes["down"][1:]
    meant = {"x": shapes["x"][:-1] + d, "up": d + f, "down": f + e, "gate": d + f}
    meant |= {"up_bias": f, "gate_bias": f, "down_bias": e}
    wrong = [name for name, shape in shapes.items() if not shape or not same_shape(shape, meant[name])]
    if wrong or len(d + f + e) != 3 or None in d + f + e:
        raise UnsupportedInputError.about(
            "mlp",
            found=", ".join(f"`{name}` of shape {show_shape(s) if s else s}" for name, s in shapes.items()),
            expected="x (…, D), up (D, F), down (F, E), gate (D, F), up_bias and gate_bias (F,), "
            "down_bias (E,), and D, F and E known",
            fix="up=linear.weight.T for the weight of a torch.nn.Linear, whose rows are its outputs",
        )
