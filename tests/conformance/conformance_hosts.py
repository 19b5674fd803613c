"""Each framework asked the same questions in its own words: NumPy in, NumPy out.

A question takes a flat function of the framework and arrays, and the places that are differentiated. `dy` is
dL/d conj(y) on every host, as in a rule; JAX's own cotangents are the conjugate of that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

from pullback import errors, hosts

Array = Any
Flat = Callable[..., list[Any]]


def ramp(like: Any, offset: float) -> np.ndarray:
    """Give numbers of a shape that are neither constant nor symmetric."""
    shape = tuple(like.shape)
    values = np.sin(offset + 0.7 * np.arange(math.prod(shape))).reshape(shape)
    return values + 0.5j * np.cos(values) if "complex" in str(like.dtype) else values


def smooth(outputs: Sequence[Any]) -> list[Any]:
    """Keep the outputs that have a gradient."""
    return [y for y in outputs if "float" in str(y.dtype) or "complex" in str(y.dtype)]


class Only:
    """A function of the differentiated arrays alone."""

    def __init__(self, flat: Flat, tensors: Sequence[Any], places: Sequence[int]) -> None:
        self.flat, self.tensors, self.places = flat, list(tensors), list(places)

    def __call__(self, *moving: Any) -> list[Any]:
        return smooth(self.flat(*self.at(moving).tensors))

    @property
    def moving(self) -> list[Any]:
        return [self.tensors[place] for place in self.places]

    def at(self, moving: Sequence[Any]) -> Only:
        """Give the same function around other arrays."""
        filled = list(self.tensors)
        for place, tensor in zip(self.places, moving):
            filled[place] = tensor
        return Only(self.flat, filled, self.places)


class TensorFlow:
    name = "tensorflow"

    def only(self, flat: Flat, arrays: Sequence[Array], places: Sequence[int]) -> Only:
        return Only(flat, [tf.constant(a) for a in arrays], places)

    def run(self, question: Callable[[], Any]) -> list[np.ndarray]:
        return [np.asarray(tf.convert_to_tensor(y)) for y in question()]

    def checked(self, check: Callable[[], Any]) -> Any:
        return check()

    def pull(self, f: Only, xs: Sequence[Any], offset: float = 1.0) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            ys = f(*xs)
        dys = [tf.constant(ramp(y, offset + k), y.dtype) for k, y in enumerate(ys)]
        got = tape.gradient(ys, xs, output_gradients=dys, unconnected_gradients="zero")
        return [tf.convert_to_tensor(g) for g in got]

    def value(self, f: Only) -> list[Any]:
        return f(*f.moving)

    def gradient(self, f: Only) -> list[Any]:
        return self.pull(f, f.moving)

    def second_order(self, f: Only) -> list[Any]:
        xs = f.moving
        with tf.GradientTape() as tape:
            tape.watch(xs)
            first = self.pull(f, xs)
        dys = [tf.constant(ramp(y, 2.0 + k), y.dtype) for k, y in enumerate(first)]
        got = tape.gradient(first, xs, output_gradients=dys, unconnected_gradients="zero")
        return [tf.convert_to_tensor(g) for g in got]

    def forward_mode(self, f: Only) -> list[Any]:
        xs = f.moving
        moved = [tf.constant(ramp(x, 3.0 + k), x.dtype) for k, x in enumerate(xs)]
        with tf.autodiff.ForwardAccumulator(xs, moved) as forward:
            ys = f(*xs)
        return [forward.jvp(y, unconnected_gradients="zero") for y in ys]

    def forward_over_reverse(self, f: Only) -> list[Any]:
        xs = f.moving
        moved = [tf.constant(ramp(x, 3.0 + k), x.dtype) for k, x in enumerate(xs)]
        with tf.autodiff.ForwardAccumulator(xs, moved) as forward:
            first = self.pull(f, xs)
        return [forward.jvp(g, unconnected_gradients="zero") for g in first]

    def jacobian(self, f: Only) -> list[Any]:
        xs = f.moving
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(xs)
            ys = f(*xs)
        return [j for y in ys for j in tape.jacobian(y, xs, unconnected_gradients="zero")]

    def compiled(self, f: Only) -> list[Any]:
        return tf.function(lambda *xs: self.pull(f, list(xs)), jit_compile=True)(*f.moving)

    def batched(self, f: Only) -> list[Any]:
        batch = [tf.stack([x, x * 0.9]) for x in f.moving]
        return tf.vectorized_map(lambda xs: self.pull(f, list(xs)), batch)


PROGRAM: dict[str, Callable[..., list[Any]]] = {}  # by name, what JAX is asked in one program


def in_one_program(question: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Ask JAX all of these at once: to trace, lower and compile is nearly all that an answer costs."""
    PROGRAM[question.__name__] = question

    @functools.wraps(question)
    def ask(self: Any, f: Only) -> list[Any]:
        answers = _answers(f)
        return question(self, f) if answers is None else answers[question.__name__]

    return ask


@functools.lru_cache(maxsize=4)  # the questions about one function follow each other
def _answers(f: Only) -> dict[str, list[Any]] | None:
    """Answer them all; give None where one is refused, and each has to be asked by itself."""
    host = HOSTS["jax"]
    try:
        return jax.jit(lambda xs: {name: ask(host, f.at(xs)) for name, ask in PROGRAM.items()})(f.moving)
    except errors.PullbackError:
        return None


class Jax:
    name = "jax"

    def only(self, flat: Flat, arrays: Sequence[Array], places: Sequence[int]) -> Only:
        with jax.enable_x64(True):
            return Only(flat, [jnp.asarray(a) for a in arrays], places)

    def run(self, question: Callable[[], Any]) -> list[np.ndarray]:
        with jax.enable_x64(True):
            return [np.asarray(y) for y in question()]

    def checked(self, check: Callable[[], Any]) -> Any:
        with jax.enable_x64(True):
            return check()

    def pull(self, f: Only, xs: Sequence[Any], offset: float = 1.0) -> list[Any]:
        ys, pull = jax.vjp(lambda *xs: f(*xs), *xs)
        got = pull([jnp.conj(jnp.asarray(ramp(y, offset + k), y.dtype)) for k, y in enumerate(ys)])
        return [jnp.conj(g) for g in got]

    def value(self, f: Only) -> list[Any]:
        return f(*f.moving)

    def gradient(self, f: Only) -> list[Any]:
        return self.pull(f, f.moving)

    @in_one_program
    def second_order(self, f: Only) -> list[Any]:
        return self.pull(lambda *xs: self.pull(f, xs), f.moving, 2.0)  # type: ignore[arg-type]

    @in_one_program
    def forward_mode(self, f: Only) -> list[Any]:
        moved = [jnp.asarray(ramp(x, 3.0 + k), x.dtype) for k, x in enumerate(f.moving)]
        return jax.jvp(lambda *xs: f(*xs), f.moving, moved)[1]

    @in_one_program
    def forward_over_reverse(self, f: Only) -> list[Any]:
        moved = [jnp.asarray(ramp(x, 3.0 + k), x.dtype) for k, x in enumerate(f.moving)]
        return jax.jvp(lambda *xs: self.pull(f, xs), f.moving, moved)[1]

    @in_one_program
    def jacobian(self, f: Only) -> list[Any]:
        # By rows, as `jacrev` does it; written out because that takes no function from complex to real.
        ys, pull = jax.vjp(lambda *xs: f(*xs), *f.moving)
        rows = []
        for k, y in enumerate(ys):
            units = jnp.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
            found = jax.vmap(lambda dy, k=k: pull([dy if i == k else 0 * z for i, z in enumerate(ys)]))(units)
            rows += [jnp.conj(j).reshape(y.shape + j.shape[1:]) for j in found]
        return rows

    @in_one_program
    def compiled(self, f: Only) -> list[Any]:
        return jax.jit(lambda *xs: self.pull(f, xs))(*f.moving)

    @in_one_program
    def batched(self, f: Only) -> list[Any]:
        batch = [jnp.stack([x, x * 0.9]) for x in f.moving]
        return jax.vmap(lambda *xs: self.pull(f, xs))(*batch)


class Torch:
    name = "torch"

    def only(self, flat: Flat, arrays: Sequence[Array], places: Sequence[int]) -> Only:
        tensors = [torch.tensor(a) for a in arrays]
        hosts.of(tensors[0])  # Dynamo reads `flat`: what that imports at its first use is there before
        return Only(flat, tensors, places)

    def run(self, question: Callable[[], Any]) -> list[np.ndarray]:
        return [y.detach().resolve_conj().numpy() for y in question()]

    def checked(self, check: Callable[[], Any]) -> Any:
        return check()

    def leaves(self, f: Only) -> list[Any]:
        return [x.detach().clone().requires_grad_() for x in f.moving]

    def pull(self, f: Only, xs: Sequence[Any], offset: float = 1.0) -> list[Any]:
        """Differentiate by autograd itself."""
        ys = f(*xs)
        dys = [torch.tensor(ramp(y, offset + k), dtype=y.dtype) for k, y in enumerate(ys)]
        pairs = [(y, dy) for y, dy in zip(ys, dys) if y.requires_grad]
        if not pairs:
            return [torch.zeros_like(x) for x in xs]
        got = torch.autograd.grad(
            [y for y, _ in pairs], xs, [dy for _, dy in pairs], create_graph=True, allow_unused=True
        )
        return [torch.zeros_like(x) if g is None else g for g, x in zip(got, xs)]

    def pull_func(self, f: Only, xs: Sequence[Any], offset: float = 1.0) -> list[Any]:
        """Differentiate by torch.func."""
        ys, pull = torch.func.vjp(lambda *xs: tuple(f(*xs)), *xs)
        return list(pull(tuple(torch.tensor(ramp(y, offset + k), dtype=y.dtype) for k, y in enumerate(ys))))

    def value(self, f: Only) -> list[Any]:
        return f(*f.moving)

    def gradient(self, f: Only) -> list[Any]:
        return self.pull(f, self.leaves(f))

    def second_order(self, f: Only) -> list[Any]:
        xs = self.leaves(f)
        return self.pull(lambda *xs: self.pull(f, xs), xs, 2.0)  # type: ignore[arg-type]

    def forward_mode(self, f: Only) -> list[Any]:
        moved = tuple(torch.tensor(ramp(x, 3.0 + k), dtype=x.dtype) for k, x in enumerate(f.moving))
        return torch.func.jvp(lambda *xs: tuple(f(*xs)), tuple(f.moving), moved)[1]

    def forward_over_reverse(self, f: Only) -> list[Any]:
        moved = tuple(torch.tensor(ramp(x, 3.0 + k), dtype=x.dtype) for k, x in enumerate(f.moving))
        return torch.func.jvp(lambda *xs: tuple(self.pull_func(f, xs)), tuple(f.moving), moved)[1]

    def jacobian(self, f: Only) -> list[Any]:
        # By rows, as `jacrev` does it; written out because that takes no complex numbers.
        ys, pull = torch.func.vjp(lambda *xs: tuple(f(*xs)), *f.moving)
        rows = []
        for k, y in enumerate(ys):
            units = torch.eye(y.numel(), dtype=y.dtype).reshape(y.numel(), *y.shape)
            found = torch.func.vmap(
                lambda dy, k=k: pull(tuple(dy if i == k else torch.zeros_like(z) for i, z in enumerate(ys)))
            )(units)
            rows += [j.reshape(y.shape + j.shape[1:]) for j in found]
        return rows

    def compiled(self, f: Only) -> list[Any]:
        torch.compiler.reset()
        run = torch.compile(lambda *xs: tuple(f(*xs)), fullgraph=True, backend="aot_eager")
        return self.pull(lambda *xs: list(run(*xs)), self.leaves(f))  # type: ignore[arg-type]

    def batched(self, f: Only) -> list[Any]:
        batch = [torch.stack([x, x * 0.9]) for x in f.moving]
        return torch.func.vmap(lambda *xs: tuple(self.pull_func(f, xs)))(*batch)


HOSTS = {host.name: host for host in (TensorFlow(), Jax(), Torch())}
QUESTIONS = [
    name
    for name, question in vars(TensorFlow).items()
    if callable(question) and not name.startswith("_") and name not in ("only", "run", "checked", "pull")
]
