"""Callables of a framework as subjects of the checker: what all hosts have in common.

A host says how a tensor becomes an array and back, how it differentiates, batches and compiles; the rest is
here. `run` is a flat function: sources (arguments, weights) in, floating and complex outputs out.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.declare import NOTHING, Declaration
from pullback.dtypes import is_real_or_complex
from pullback.errors import NoTensorError
from pullback.hosts import keras as layers
from pullback.hosts.operation import Tensor
from pullback.rule import Rule, shown_signature, source_of, written
from pullback.view import rules, switches, unasked
from pullback.view.arguments import EVERYTHING, Arguments, Asked, is_array
from pullback.view.definition import reached
from pullback.view.export import survives_export
from pullback.view.framework import Framework, Function, Run, Vjp
from pullback.view.rules import Bodies, How
from pullback.view.subject import Arrays, Cotangents, Forward, Pullback, Subject
from pullback.view.text import text_of

_NOTHING = "no argument is a tensor or an array"
_COMPLEX = {"float64": "complex128", "float32": "complex64"}  # of entries of a precision


def itself(function: Function) -> Function:
    """Run the callable itself."""
    return function


class Adapter(Framework):
    """Adapt one callable and its example arguments."""

    variables: Sequence[Any] = ()  # of a Keras layer
    said: Declaration = NOTHING  # of the callable, from outside
    by_steps: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    bodies: Bodies
    silent: frozenset[int] = frozenset()  # inputs whose gradient is None where the host cannot say so
    unasked: Mapping[int, str]  # outputs that are not judged, by name

    def __init__(
        self,
        function: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dtype: str | None = None,
        original: Adapter | None = None,
        *,
        asked: Asked = EVERYTHING,
    ) -> None:
        self.function = function
        self.dtype = dtype
        self.asked = asked
        self.original = original  # what this is a copy of, in another precision
        self.runs: dict[How, Run] = {}
        self.measuring: dict[Any, bool] = {}  # by dtype: whether it has the digits for that
        self.copies: dict[tuple[str, bool], Subject | None] = {}
        self.native = self.natives.named(function)
        self.fixed = [] if self.native is None else self.native.passed_over(args, kwargs)
        rule = getattr(function, "rule", None)
        self.rule: Rule | None = rule if isinstance(rule, Rule) else None
        self.arguments = Arguments(args, kwargs, self.is_input, asked)
        with self.surroundings():
            named = zip(self.arguments.inputs, self.arguments.names(self.signature(), self.native))
            self.tensors = [self.cast(self.tensor(leaf, name)) for leaf, name in named]
            self.parameters = {name: self.cast(value) for name, value in self.weights().items()}
            if not self.tensors and not self.parameters:
                raise NoTensorError(f"{self.name}: {_NOTHING}; there is nothing to differentiate")
            self.inputs: Arrays = tuple(map(self.array, (*self.tensors, *self.parameters.values())))
        wanted = [*map(all, zip(self.arguments.wanted, self.requested(self.arguments.inputs)))]
        wanted += [True] * len(self.parameters)
        self.differentiable = tuple(w and is_real_or_complex(a.dtype) for a, w in zip(self.inputs, wanted))
        self.unasked = unasked.unasked(self)

    # ── what a host may say otherwise ────────────────────────────────────────────────────────────────────

    def requested(self, leaves: Sequence[Any]) -> list[bool]:
        """Tell of each argument whether its gradient is asked for, where the arguments say so."""
        return [True] * len(leaves)

    def is_input(self, leaf: Any) -> bool:
        """Tell whether a leaf is an input."""
        return is_array(leaf) or self.host.is_tensor(leaf)

    def cast(self, tensor: Tensor) -> Tensor:
        """Give a floating or complex tensor the precision of `dtype`, if there is one."""
        kind = None if self.dtype is None else self.host.spec(tensor).kind
        wanted = {"floating": self.dtype, "complex": _COMPLEX.get(str(self.dtype))}.get(str(kind))
        return tensor if wanted is None else self.converted(tensor, wanted)

    def weights(self) -> dict[str, Any]:
        """Give the parameters of the callable itself by name."""
        self.variables = layers.variables_of(self.function, self.arguments.args, self.arguments.kwargs)
        names = layers.numbered([str(v.path) for v in self.variables])
        return {name: self.tensor(v, name) for name, v in zip(names, self.variables)}

    def bound(self, parameters: Sequence[Any]) -> Function:
        """Give the callable with these parameters."""
        found = self.variables
        return layers.with_values(self.function, found, parameters) if found else self.function

    def surroundings(self) -> contextlib.AbstractContextManager[Any]:
        """Prepare the framework for a call."""
        return contextlib.nullcontext()

    def tried(self, run: Run) -> None:
        """Run a function at the example, for what it meets on the way."""
        run(self.sources(self.inputs))

    def values(self, run: Run, sources: Sequence[Any]) -> list[Tensor | None]:
        """Give the outputs, and the gradient of their sum."""
        outputs = run(sources)
        ones = self.constants(tuple(np.ones_like(self.array(output)) for output in outputs))
        return [*outputs, *self.vjp(run, sources, ones)]

    def native_pullback(self) -> Callable[..., Any] | None:
        """Give (args, kwargs, cotangents) ↦ the gradient of a native rule, to be called; None for none."""
        return None if self.native is None else self.native.by_hand()

    def definition(self) -> Any:
        """Give what the user wrote: where its source, its name and its package are read."""
        return self.natives.written(self.function)

    def parts(self) -> list[Any]:
        """List what the user wrote of it: the function, and its gradient."""
        native = () if self.native is None else (self.native.user, *self.native.parts().values())
        return [*native, *(reached(self.function) if self.rule is not None else ()), self.definition()]

    def signature(self) -> inspect.Signature | None:
        """Give the parameters that the arguments are bound to, where they can be told."""
        if self.native is not None and self.native.signature is not None:
            return self.native.signature
        known = self.function.call if layers.is_layer(self.function) else self.definition()  # type: ignore[attr-defined]
        return shown_signature(known)

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────

    def run(self, how: How = itself) -> Run:
        """Give the flat function: sources ↦ outputs that can be differentiated; the same one each time."""
        if how in self.runs:
            return self.runs[how]

        def run(sources: Sequence[Any]) -> list[Tensor]:
            args, kwargs = self.arguments.filled(sources[: len(self.tensors)])
            function = self.bound(sources[len(self.tensors) :])
            return unasked.kept(self.flat(how(function)(*args, **kwargs)), self.loose)

        self.runs[how] = run
        return run

    @property
    def loose(self) -> frozenset[int]:
        """Give the outputs that are not judged."""
        return frozenset(self.unasked)

    def flat(self, returned: Any) -> list[Tensor]:
        """List the outputs that can be differentiated."""
        return [tensor for _, tensor in unasked.placed(self, returned)]

    def output(self, leaf: Any) -> Tensor | None:
        """Make a tensor of an output that is none; None for what cannot be one."""
        return self.tensor(leaf)

    def among(self, sources: Sequence[Any]) -> list[Any]:
        """Pick the differentiable sources."""
        return [source for source, yes in zip(sources, self.differentiable) if yes]

    def along(self, found: Sequence[Any], silent: frozenset[int] = frozenset()) -> Cotangents:
        """Lay what was found for the differentiable sources along all of them, as arrays."""
        rest = iter(found)
        parts = [next(rest) if yes else None for yes in self.differentiable]
        return tuple(
            None if part is None or k in silent else self.array(part) for k, part in enumerate(parts)
        )

    def forward_of(self, run: Run) -> Forward:
        def forward(inputs: Arrays) -> Arrays:
            with self.surroundings():
                return tuple(map(self.array, run(self.sources(inputs))))

        return forward

    def pullback_of(self, vjp: Vjp) -> Pullback:
        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            with self.surroundings():
                return self.along(vjp(self.sources(inputs), self.constants(cotangents)), self.silent)

        return pullback

    def forward(self, how: How = itself) -> Forward:
        return self.forward_of(self.run(how))

    def pullback(self, how: How = itself) -> Pullback:
        return self.pullback_of(functools.partial(self.vjp, self.run(how)))

    def second_pullback(
        self, inputs: Arrays, cotangents: Arrays, weights: Cotangents
    ) -> tuple[Cotangents, Cotangents]:
        with self.surroundings():
            wanted = [None if w is None else self.constants((w,))[0] for w in self.among(weights)]
            by_input, by_cotangent = self.second(
                self.run(), self.sources(inputs), self.constants(cotangents), wanted
            )
            found = tuple(None if g is None else self.array(g) for g in by_cotangent)
            return self.along(by_input), found

    def pushforward(self, inputs: Arrays, tangents: Arrays) -> Cotangents:
        with self.surroundings():
            moving = [self.constants((t,))[0] if d else None for t, d in zip(tangents, self.differentiable)]
            pushed = self.jvp(self.run(), self.sources(inputs), moving)
            return tuple(None if t is None else self.array(t) for t in pushed)

    def jacobian(self, how: How, inputs: Arrays) -> tuple[Cotangents, ...]:
        with self.surroundings():
            return tuple(map(self.along, self.rows(self.run(how), self.sources(inputs))))

    def astype(self, name: str, pulled: bool = True) -> Subject | None:
        """Give the same subject in another precision; None where it, `pulled` or not, does not run there."""
        if (name, pulled) not in self.copies:  # a layer has a dtype of its own
            self.copies[name, pulled] = None if self.variables else self._copy(name, pulled)
        return self.copies[name, pulled]

    def _copy(self, name: str, pulled: bool) -> Subject | None:
        args, kwargs = self.arguments.args, self.arguments.kwargs
        try:
            other = type(self)(self.function, args, kwargs, name, self, asked=self.asked)
            other.said = self.said
            made, outputs = other.subject(), self.forward()(self.inputs)
            return made if other.ran(pulled) == [output.shape for output in outputs] else None
        except Exception:  # the function may refuse another dtype in any way it likes
            return None

    def ran(self, pulled: bool) -> list[tuple[int, ...]]:
        """Run the function and its pullback, which may be written for one dtype; give the outputs' shapes."""
        outputs = self.forward()(self.inputs)
        if pulled:
            self.pullback()(self.inputs, outputs)
        return [output.shape for output in outputs]

    # ── the subject ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        if self.rule is not None:
            return self.rule.name
        known = self.definition()
        return str(getattr(known, "__name__", None) or getattr(known, "name", None) or type(known).__name__)

    def captured(self) -> tuple[str, ...]:
        """Name the floating tensors in the closure of the function."""
        try:
            cells = inspect.getclosurevars(written(self.definition())).nonlocals
        except (TypeError, ValueError):
            return ()
        return tuple(n for n, v in cells.items() if self.host.is_tensor(v) and self.host.differentiable(v))

    def draws(self) -> bool:
        """Tell whether a call draws random numbers of the host's, where that can be told."""
        return False

    def sharing(self) -> Pullback | None:
        """Give the pullback that works on the very arrays, for a host whose tensors can be changed."""
        return None

    def subject(self) -> Subject:
        """Put it together."""
        self.bodies = rules.bodies(self) if self.original is None else self.original.bodies
        body, met, meant = self.bodies
        intent = rules.claim(self.rule, meant, self.said)
        like, chosen = intent.function if intent.kind == "like" else None, intent.chosen
        target: How | None = None if like is None else (lambda _: like)
        oracle = target or body
        pushes = rules.pushes(self)
        return Subject(
            name=self.name,
            inputs=self.inputs,
            names=(*self.arguments.names(self.signature(), self.native), *self.parameters),
            differentiable=self.differentiable,
            forward=self.forward(),
            pullback=self.pullback(),
            target=self.forward(target) if target else None,
            chosen=self.forward(lambda _: chosen) if chosen else None,
            body_forward=self.forward(body) if body else None,
            body_pullback=self.pullback(oracle) if oracle else None,
            direct_pullback=rules.by_hand(self),
            opened=rules.opened(self),
            pushed=rules.pushed(self),
            remade=functools.partial(rules.remade, self),
            sharing_pullback=self.sharing(),
            second=self.second_pullback,
            pushforward=self.pushforward,
            jacobian=functools.partial(self.jacobian, itself),
            body_jacobian=functools.partial(self.jacobian, oracle) if oracle else None,
            variants={
                name: (self.forward_of(run), self.pullback_of(vjp))
                for name, (run, vjp) in self.compiled().items()
            },
            slow=self.slow,
            exports=functools.partial(survives_export, self),
            by_steps=self.by_steps,
            opaque=self.opaque,
            switches=switches.of(self, self.run(oracle or itself)),
            repeats=switches.repeats(self, self.run(oracle or itself)),
            explicit=functools.partial(rules.says_second, self),
            astype=self.astype,
            intent=intent,
            believes=meant is not None,
            accuracy=self.rule.accuracy if self.rule is not None else None,
            order=self.said.order or (self.rule.order if self.rule is not None else None),
            domain=self.said.domain,
            declared=self.said.origin,
            is_rule=bool(met) or self.rule is not None,
            is_builtin=str(getattr(self.definition(), "__module__", "")).partition(".")[0] in self.builtin,
            draws=self.draws(),
            forward_mode_claimed=self.rule is not None or pushes,
            pushes=pushes,
            captured=self.captured(),
            source=self.rule.source if self.rule is not None else source_of(self.definition()),
            text=lambda: text_of(self.parts()),
            unasked=tuple(self.unasked.values()),
            words=self.words,
            mends_shapes=self.mends_shapes,
            parameters=tuple(self.written_parameters()),
            imports=functools.partial(self.arguments.imports, self.function, self.written_name()),
            call=unasked.written(self, functools.partial(self.arguments.written, self.written_name())),
        )

    def written_name(self) -> str:
        """Name the callable as code does."""
        if self.native is not None and self.native.spelled:
            return self.native.spelled
        return self.name if self.name.isidentifier() and inspect.isroutine(self.function) else "f"

    def written_parameters(self) -> list[str]:
        """Name the parameters as code does."""
        many = range(len(self.variables))
        return [f"{self.written_name()}.trainable_variables[{i}]" for i in many] or list(self.parameters)
