"""TensorFlow callables as subjects of the checker.

A pullback rule, a `tf.custom_gradient` function, a Keras layer or loss, a plain function: all become
NumPy callables. Tensors, variables and arrays are inputs; numbers, strings, callables and None stay
fixed. The trainable variables of a Keras layer are inputs too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pullback.check.space import is_real_or_complex
from pullback.check.subject import Array, Arrays, Cotangents, Subject
from pullback.errors import NoTensorError
from pullback.hosts.base import Met
from pullback.hosts.tensorflow.bypass import bypassed
from pullback.hosts.tensorflow.export import survives_export
from pullback.hosts.tensorflow.leaves import (
    array_of,
    array_or_none,
    captured_by,
    is_number_list,
    is_tensor,
    paths_of,
    quiet,
    tensor_of,
    variable_of,
)
from pullback.rule import EXACT, Intent, Rule, source_of


def subject(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Subject:
    """Adapt a TensorFlow callable and its example arguments."""
    return _Adapter(function, args, kwargs).subject()


def outputs_of(returned: Any) -> Any:
    """Take the outputs from what a body returns: `y, grad`, `y, z, grad`; a replacement returns no `grad`."""
    if not isinstance(returned, (tuple, list)) or not callable(returned[-1]):
        return returned
    *outputs, _ = returned
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _Adapter:
    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        args = tuple(np.asarray(a) if is_number_list(a) else a for a in args)
        self.function = function
        self.rule: Rule | None = (
            getattr(function, "rule", None) if isinstance(getattr(function, "rule", None), Rule) else None
        )
        self.structure = (args, kwargs)
        leaves = tf.nest.flatten(self.structure)
        if not any(map(is_tensor, leaves)):  # a number is an input if nothing else is one
            leaves = [tf.constant(leaf) if isinstance(leaf, (float, complex)) else leaf for leaf in leaves]
        self.leaves = leaves
        self.slots = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        self.tensors = [tensor_of(leaves[i]) for i in self.slots]
        self.variables: list[tf.Variable] = []
        if hasattr(function, "trainable_variables"):
            function(*args, **kwargs)  # builds the weights
            self.variables = [variable_of(v) for v in function.trainable_variables]
        if not self.tensors and not self.variables:
            raise NoTensorError(
                f"{self.name}: no argument is a tensor or an array; there is nothing to differentiate"
            )

    @property
    def name(self) -> str:
        if self.rule is not None:
            return self.rule.name
        return str(
            getattr(self.function, "__name__", None)
            or getattr(self.function, "name", None)
            or type(self.function).__name__
        )

    def names(self) -> tuple[str, ...]:
        args, kwargs = self.structure
        labels: list[str] = []
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
            tops = list(bound.arguments)
        except (TypeError, ValueError):
            tops = []
        for i, value in enumerate(args):
            labels += paths_of(
                tops[i] if i < len(tops) and len(tops) >= len(args) else f"argument {i}", value
            )
        for key in sorted(kwargs):
            labels += paths_of(key, kwargs[key])
        chosen = [labels[i] for i in self.slots]
        return tuple(chosen + [str(getattr(v, "name", "variable")).split(":")[0] for v in self.variables])

    # calling

    def call(self, function: Callable[..., Any], tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        leaves = list(self.leaves)
        for slot, tensor in zip(self.slots, tensors):
            leaves[slot] = tensor
        args, kwargs = tf.nest.pack_sequence_as(self.structure, leaves)
        return self.flat(function(*args, **kwargs))

    def flat(self, returned: Any) -> list[tf.Tensor]:
        outputs = [tf.convert_to_tensor(o) for o in tf.nest.flatten(returned) if o is not None]
        return [o for o in outputs if o.dtype.is_floating or o.dtype.is_complex]

    def split(self, inputs: Arrays) -> list[tf.Tensor]:
        """Make tensors of the inputs and set the variables."""
        count = len(self.slots)
        for variable, value in zip(self.variables, inputs[count:]):
            variable.assign(value)
        return [tf.constant(a) for a in inputs[:count]]

    def sources(self, tensors: list[tf.Tensor]) -> list[Any]:
        return [*tensors, *self.variables]

    def forward(self, function: Callable[..., Any]) -> Callable[[Arrays], Arrays]:
        def forward(inputs: Arrays) -> Arrays:
            return tuple(array_of(o) for o in self.call(function, self.split(inputs)))

        return forward

    def pullback(self, function: Callable[..., Any]) -> Callable[[Arrays, Arrays], Cotangents]:
        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            tensors = self.split(inputs)
            watched = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
            with tf.GradientTape() as tape:
                tape.watch(watched)
                outputs = self.call(function, tensors)
            sources = [t for t in self.sources(tensors) if t.dtype.is_floating or t.dtype.is_complex]
            found = iter(
                tape.gradient(outputs, sources, output_gradients=[tf.constant(c) for c in cotangents])
            )
            return tuple(array_or_none(next(found)) if d else None for d in self.differentiable)

        return pullback

    def second(
        self, inputs: Arrays, cotangents: Arrays, weights: Cotangents
    ) -> tuple[Cotangents, Cotangents]:
        tensors = self.split(inputs)
        sources = [t for t in self.sources(tensors) if t.dtype.is_floating or t.dtype.is_complex]
        cots = [tf.constant(c) for c in cotangents]
        ws = [w for w, d in zip(weights, self.differentiable) if d]
        with tf.GradientTape() as outer:
            outer.watch([s for s in sources if not isinstance(s, tf.Variable)] + cots)
            with tf.GradientTape() as inner:
                inner.watch([s for s in sources if not isinstance(s, tf.Variable)])
                outputs = self.call(self.function, tensors)
            grads = inner.gradient(outputs, sources, output_gradients=cots)
            terms = [
                tf.cast(
                    tf.math.real(tf.reduce_sum(tf.math.conj(tf.constant(w)) * tf.convert_to_tensor(g))),
                    tf.float64,
                )
                for w, g in zip(ws, grads)
                if g is not None and w is not None
            ]
            total = tf.add_n(terms) if terms else tf.constant(0.0, tf.float64)
        found = outer.gradient(total, sources + cots)
        first = iter(found[: len(sources)])
        by_input = tuple(array_or_none(next(first)) if d else None for d in self.differentiable)
        return by_input, tuple(array_or_none(g) for g in found[len(sources) :])

    def pushforward(self, inputs: Arrays, tangents: Arrays) -> Cotangents:
        tensors = self.split(inputs)
        pairs = [
            (s, tf.constant(t)) for s, t, d in zip(self.sources(tensors), tangents, self.differentiable) if d
        ]
        if any(not p.dtype.is_floating for p, _ in pairs):
            raise TypeError("TensorFlow's forward mode takes floating tensors only")
        with tf.autodiff.ForwardAccumulator([p for p, _ in pairs], [t for _, t in pairs]) as accumulator:
            outputs = self.call(self.function, tensors)
        return tuple(array_or_none(accumulator.jvp(o)) for o in outputs)

    def jacobian(self, inputs: Arrays) -> tuple[tuple[Array | None, ...], ...]:
        tensors = self.split(inputs)
        sources = [s for s, d in zip(self.sources(tensors), self.differentiable) if d]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([s for s in sources if not isinstance(s, tf.Variable)])
            outputs = self.call(self.function, tensors)
        rows = []
        for output in outputs:
            with quiet():
                found = iter(tape.jacobian(output, sources))
            rows.append(tuple(array_or_none(next(found)) if d else None for d in self.differentiable))
        return tuple(rows)

    # variants

    def compiled(
        self, jit: bool
    ) -> tuple[Callable[[Arrays], Arrays], Callable[[Arrays, Arrays], Cotangents]]:
        def run(tensors: list[tf.Tensor]) -> list[tf.Tensor]:
            return self.call(self.function, tensors)

        def grads(tensors: list[tf.Tensor], cotangents: list[tf.Tensor]) -> list[Any]:
            watched = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
            with tf.GradientTape() as tape:
                tape.watch(watched)
                outputs = self.call(self.function, tensors)
            sources = [s for s, d in zip(self.sources(tensors), self.differentiable) if d]
            return list(tape.gradient(outputs, sources, output_gradients=cotangents))

        traced = tf.function(run, jit_compile=jit, autograph=False)
        traced_grads = tf.function(grads, jit_compile=jit, autograph=False)

        def forward(inputs: Arrays) -> Arrays:
            with quiet():
                return tuple(array_of(o) for o in traced(self.split(inputs)))

        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            with quiet():
                found = iter(traced_grads(self.split(inputs), [tf.constant(c) for c in cotangents]))
            return tuple(array_or_none(next(found)) if d else None for d in self.differentiable)

        return forward, pullback

    def opaque(self) -> bool:
        """Look for Python callbacks in the traced gradient."""

        def grads(*tensors: tf.Tensor) -> list[Any]:
            with tf.GradientTape() as tape:
                watched = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
                tape.watch(watched)
                outputs = self.call(self.function, list(tensors))
            return [g for g in tape.gradient(outputs, watched) if g is not None]

        try:
            graph = tf.function(grads, autograph=False).get_concrete_function(*self.tensors).graph
        except Exception:  # what cannot be traced is not opaque for that reason
            return False
        return any("PyFunc" in op.type for op in graph.get_operations())

    def exports(self) -> bool:
        """Tell whether the function and its gradient survive a SavedModel."""
        if self.opaque():
            return False  # a Python callback is found again in this process, and in no other

        def run(*tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return tuple(self.call(self.function, list(tensors)))

        with quiet():
            return survives_export(run, self.tensors, self.variables)

    def astype(self, name: str) -> Subject | None:
        real = tf.as_dtype(name)
        wide = {"float64": tf.complex128, "float32": tf.complex64}.get(name)

        def cast(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            tensor = tensor_of(leaf)
            if tensor.dtype.is_floating:
                return tf.cast(tensor, real)
            if tensor.dtype.is_complex:
                return tf.cast(tensor, wide) if wide is not None else tensor
            return tensor

        if self.variables:
            return None
        args, kwargs = tf.nest.map_structure(cast, self.structure)
        try:
            other = subject(self.function, *args, **kwargs)
            outputs = other.forward(other.inputs)
            other.pullback(other.inputs, outputs)  # a pullback may be written for one dtype
            expected = self.forward(self.function)(tuple(array_of(t) for t in self.tensors))
        except Exception:  # the function may refuse another dtype in any way it likes
            return None
        if [o.shape for o in outputs] != [o.shape for o in expected]:
            return None
        return other

    # rules

    def bodies(self) -> tuple[Callable[..., Any] | None, list[Met]]:
        """Give the function with every rule bypassed, and the rules that were met."""
        rule = self.rule
        if rule is not None and self.fits(rule):
            return (lambda *a, **k: outputs_of(rule.body(*a, **k))), [Met(rule.name, rule.intent)]
        try:
            with bypassed() as met:
                self.call(self.function, self.tensors)
        except Exception:  # the function itself is at fault, or cannot run at its example
            return None, []
        if not met:
            return None, []

        def body(*args: Any, **kwargs: Any) -> Any:
            with bypassed():
                return self.function(*args, **kwargs)

        return body, met

    def fits(self, rule: Rule) -> bool:
        """Tell whether the body takes what the function takes, and not what a wrapper makes of it."""
        args, kwargs = self.structure
        try:
            rule.signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def claim(self, met: list[Met]) -> Intent:
        """Say what the gradient claims to be: what its rule says, or what the rules inside make of it."""
        if self.rule is not None:
            return self.rule.intent
        for rule in met:
            if rule.intent.kind != "exact":
                return Intent("differs", reason=f"it uses {rule.name}, whose gradient is {rule.intent}")
        return EXACT

    def direct(self) -> Callable[[Arrays, Arrays], Cotangents] | None:
        """Give the user's `grad` called by hand, when the function itself is a rule."""
        body: Any = None
        if self.rule is not None:
            body = self.rule.body if self.fits(self.rule) else None
        else:
            decorator = getattr(self.function, "_tf_decorator", None)
            if decorator is not None and decorator.decorator_name == "custom_gradient":
                body = decorator.decorated_target
        if body is None or self.variables:
            return None
        written = body

        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            leaves = list(self.leaves)
            for slot, tensor in zip(self.slots, self.split(inputs)):
                leaves[slot] = tensor
            args, kwargs = tf.nest.pack_sequence_as(self.structure, leaves)
            returned = written(*args, **kwargs)
            if not isinstance(returned, (tuple, list)) or not callable(returned[-1]):
                raise ValueError("a replacement has no `grad` of its own")
            given = returned[-1](*[tf.constant(c) for c in cotangents])
            if isinstance(given, dict):  # by the names of the arguments
                given = [given.get(name) for name in self.names()]
            flat = list(given) if isinstance(given, (list, tuple)) else [given]
            if len(flat) == len(leaves):
                flat = [flat[i] for i in self.slots]
            if len(flat) != len(self.slots):
                raise ValueError("the cotangents cannot be matched to the inputs")
            return tuple(array_or_none(g) if d else None for g, d in zip(flat, self.differentiable))

        return pullback

    def subject(self) -> Subject:
        """Put it together."""
        inputs = tuple(array_of(t) for t in self.sources(self.tensors))
        self.differentiable = tuple(is_real_or_complex(a.dtype) for a in inputs)
        body, met = self.bodies()
        intent = self.claim(met)
        oracle = intent.function if intent.kind == "like" else body
        return Subject(
            name=self.name,
            inputs=inputs,
            names=self.names(),
            differentiable=self.differentiable,
            forward=self.forward(self.function),
            pullback=self.pullback(self.function),
            target=self.forward(intent.function) if intent.kind == "like" and intent.function else None,
            body_forward=self.forward(body) if body else None,
            body_pullback=self.pullback(oracle) if oracle else None,
            direct_pullback=self.direct(),
            second=self.second,
            pushforward=self.pushforward,
            jacobian=self.jacobian,
            variants={"tf.function": self.compiled(False), "XLA": self.compiled(True)},
            exports=self.exports,
            opaque=self.opaque,
            astype=self.astype,
            intent=intent,
            order=self.rule.order if self.rule is not None else None,
            is_rule=bool(met) or self.rule is not None,
            is_builtin=str(getattr(self.function, "__module__", "")).startswith(("tensorflow", "keras")),
            forward_mode_claimed=self.rule is not None,
            captured=captured_by(self.function),
            source=self.rule.source
            if self.rule is not None
            else source_of(self.function)
            if inspect.isroutine(self.function)
            else "",
        )
