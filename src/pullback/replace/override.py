"""`override`: other gradients for the operations and layers inside a function or a model.

An occurrence is one operation of a matching kind. Its gradient is what the user's function says; everything
around it stays as it is. How a host finds them is its own affair; here is what happens at one of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, overload

import numpy as np

from pullback import hosts, tree
from pullback.application import Application
from pullback.errors import OverrideError
from pullback.hosts import overrides
from pullback.hosts.base import Host
from pullback.hosts.keras import is_layer
from pullback.hosts.operation import Cotangents, Derived, Function, Pullback, Tensor, filled
from pullback.outputs import LONE, TENSOR, Outputs
from pullback.plan import plan
from pullback.replace.stand_in import gradient_of, is_rule, not_standing
from pullback.replace.with_gradient import pulled, with_gradient
from pullback.rule import Intent, Rule, name_of, source_of
from pullback.typed import M, OverriddenFunction, Overriding, P, Y
from pullback.unconverted import unconverted


@overload
def override(target: Mapping[Any, Function], /) -> Overriding: ...
@overload
def override(target: M, gradients: Mapping[Any, Function]) -> M: ...
@overload
def override(target: Callable[P, Y], gradients: Mapping[Any, Function]) -> OverriddenFunction[P, Y]: ...
@unconverted
def override(target: Any, gradients: Mapping[Any, Function] | None = None) -> Any:
    """Replace the gradient of every operation or layer of a kind, wherever it occurs in a function or model.

    With a function, gives the same function with other gradients; with a Keras model or a module, that model:
    of the same class, with the same layers and weights, to be trained and saved as any other. The original is
    not changed. With gradients alone, gives a context: what is computed inside it, in eager mode or while a
    function is traced, has those gradients. `replaced` tells how many of them there were; a kind without any
    is an error. Second order: derived, by differentiating the given gradients. Forward mode: derived where
    they are linear, refused elsewhere.

    Args:
        target: A function, compiled or not, a Keras model, a module, a function of a loaded model; or the
            gradients, for a context.
        gradients: By kind, which is a function of the framework (`tf.nn.relu`, `jax.nn.relu`, `torch.relu`),
            the class of a layer or module, or a name (`"Dense"`, `"Relu"`): a function that gives one
            cotangent per tensor the operation takes. It is handed what it names, as in `with_gradient`:
            `dy`, the inputs, `output`. A rule, such as `pb.ops.softmax`, gives its own gradient.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> def guided(dy, x):
        ...     return tf.where((x > 0) & (dy > 0), dy, 0.0)
        >>> f = pb.override(lambda x: tf.nn.relu(x) * -2.0, {tf.nn.relu: guided})
        >>> x = tf.constant([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = f(x)
        >>> tape.gradient(y, x).numpy().tolist(), f.replaced
        ([0.0, 0.0], {'relu': 1})

    Do not use it to change a function that you can edit: `with_gradient` says it where it happens.
    """
    chosen = target if gradients is None else gradients
    if not isinstance(chosen, Mapping) or not chosen or (gradients is not None and not callable(target)):
        raise OverrideError.about(
            "override",
            found=f"it was given a {type(target).__name__}"
            + ("" if gradients is None else f" and gradients of type {type(gradients).__name__}"),
            expected="a function or model and the gradients by kind, or the gradients alone",
            fix="pb.override(model, {relu: guided})",
        )
    for kind, gradient in chosen.items():
        if not callable(gradient):
            raise OverrideError.about(
                "override",
                found=f"the gradient of {name_of(kind)} is {gradient!r}",
                expected="a function from cotangents to cotangents",
                fix="def guided(dy, x):\n    return …",
            )
    host = _host(None if gradients is None else target, chosen)
    given = overrides.Gradients(chosen, functools.partial(_placed, host, chosen), _overridden, require_places)
    if is_layer(target):
        from pullback.hosts.keras.model import overridden

        import_module("pullback.keras")  # Keras must know our rules: it has functions of the same names
        return overridden(target, given, host)
    return host.override(None if gradients is None else target, given)


overrides.Override.again = override

# The recorder's way in: each is told of every place that is found. Empty in any other program.
listeners: list[Callable[..., None]] = []


def _placed(
    host: Host,
    chosen: Mapping[Any, Function],
    kind: str,
    names: Sequence[str],
    inputs: Sequence[Tensor],
    gradient: Function,
    options: Mapping[str, Any] | None = None,
) -> Occurrence:
    """Make the operation of one place; `options` are those of the call, where the host tells of them."""
    for listen in listeners:
        listen(host, chosen, kind, names, inputs, gradient)
    if is_rule(gradient):
        gradient = gradient_of(gradient, kind, len(inputs), options)
    return Occurrence(kind, names, inputs, gradient)


def _overridden(function: Function, gradient: Function) -> Function:
    """Give a function that runs a layer or module another gradient."""
    if is_rule(gradient):
        raise not_standing(
            name_of(function), gradient, "a layer or module", "it may have weights and options"
        )
    return with_gradient(function, gradient, differs=f"overridden by {name_of(gradient)}")


def _host(target: Any, gradients: Mapping[Any, Function]) -> Host:
    """Find the framework that the kinds belong to, or that the function and the gradients name."""
    for named in (gradients, [target], gradients.values()):
        host = hosts.naming(named)
        if host is not None:
            return host
    known = hosts.loaded()
    if len(known) != 1:
        raise OverrideError.about(
            "override",
            found=f"the kinds {', '.join(map(repr, gradients))}, and no word of which framework they are of",
            expected="a kind that is a function of a framework, or one framework in the program",
            fix="pb.override(model, {relu: guided})",
        )
    return known[0]


class Occurrence(Derived):
    """The operation inputs ↦ outputs of one place, which has run already."""

    def __init__(self, kind: str, names: Sequence[str], inputs: Sequence[Tensor], gradient: Function) -> None:
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        rule = Rule(
            body=gradient,
            name=kind,
            signature=inspect.Signature(parameters),
            intent=Intent("differs", reason=f"overridden by {name_of(gradient)}"),
            source=source_of(gradient),
        )
        made, self.inputs = plan(rule, tuple(inputs), {})
        super().__init__(Application(made))
        self.name = kind
        self.gradient = gradient
        self.identity = Occurrence  # there is no body to listen to
        self.outputs: list[Tensor] = []
        self.form = LONE

    def ran(self, outputs: Sequence[Tensor]) -> PlacePullback:
        """Take note of the outputs."""
        self.outputs = list(outputs)
        count = len(self.outputs)
        if count != 1:
            self.form = Outputs(tree.flatten((None,) * count)[1], (TENSOR,) * count, "each")
        return PlacePullback(self, self.inputs)

    def let_go(self) -> None:
        """Keep no tensor: for a host that keeps them elsewhere."""
        self.inputs, self.outputs = [], []

    def pulled(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor], output: Callable[[], Any]
    ) -> Cotangents:
        """Run the user's gradient."""
        return Cotangents(pulled(self.gradient, self.plan, self.form, inputs, cotangents, output), [])

    def forward(self, tensors: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
        outputs = self.outputs
        if not all(a is b for a, b in zip(tensors, self.inputs)):
            outputs = [self._stand_in(output) for output in outputs]  # asked whether the gradient is linear
        return outputs, PlacePullback(self, tensors, outputs)

    def _stand_in(self, output: Tensor) -> Tensor:
        """Make a value of an output's shape: the operation itself cannot be run again on other inputs."""
        shape = [3 if length is None else length for length in self.host.spec(output).shape or (3,)]
        value = self.host.tensor(np.full(shape, 0.7, np.float32), where=self.where, argument="output")
        return self.host.arrays.cast(value, output)


class PlacePullback(Pullback):
    """Run the user's gradient at one place."""

    def __init__(
        self, occurrence: Occurrence, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | None = None
    ) -> None:
        self.occurrence = occurrence
        self.inputs = inputs
        self._outputs = outputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        return self.occurrence.outputs if self._outputs is None else self._outputs

    def zeros(self) -> list[Tensor]:
        host = self.occurrence.host
        return [host.zeros(host.outline(output)) for output in self.outputs]

    def __call__(self, cotangents: Sequence[Tensor | None], variables: Sequence[Any] = ()) -> Cotangents:
        occurrence = self.occurrence

        def output() -> Any:
            return occurrence.form.filled(self.outputs)

        return occurrence.pulled(self.inputs, filled(self, cotangents), output)


def require_places(replaced: Mapping[str, int], seen: Sequence[str], where: str) -> None:
    """Refuse an override that found no place for one of its kinds, and list what is there."""
    for kind, count in replaced.items():
        if not count:
            raise OverrideError.about(
                where,
                found=f"nothing in it is of the kind {kind!r}",
                expected=f"one of what is there: {', '.join(sorted(set(seen))) or 'nothing'}",
                why="an override that matches nothing would silently change nothing",
                fix="name one of these, or leave the kind out",
            )
