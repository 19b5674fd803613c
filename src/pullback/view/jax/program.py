"""A function and its pullback as one compiled program a shape.

JAX compiles every operation by itself when a function is called as it stands, and again for each shape and
dtype: a check would spend nearly all its time there. So outputs and cotangents are computed by one program,
where that gives what the function gives: if it can be traced, and two traces of it are the same. A body that
draws numbers, keeps state or looks at values is called as it stands, and so is one that leaves JAX. A body
for which JAX has no pullback, as a loop that ends when it likes, is a program of its outputs alone.

A program is run a few times on small arrays, so compiling it well takes longer than running it badly. It
takes arrays of NumPy's as they are: to make JAX's of them first costs more than to run it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

Outputs = Callable[[Sequence[Any]], list[Any]]
Linear = Callable[[Sequence[Any]], "tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]"]

# A loop that is unrolled takes longer to compile than to run.
LONGEST = 2000
# From here on the gradient that nobody asked for costs more than a second program.
LARGE = 2**16
# Options of the compiler for the CPU; no version promises them.
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
CALLBACK = re.compile(r"\b(pure|io|debug)_(?:callback|print)\[")
ADDRESS = re.compile(r"0x[0-9a-f]+")
# What a trace says of a function that looks at values.
VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.UnexpectedTracerError,
)


class Steps:
    """Say whether operations run one by one, for the time of a block."""

    def __init__(self) -> None:
        self.alone = False

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        before, self.alone = self.alone, True
        try:
            yield
        finally:
            self.alone = before


class Program:
    """Hold a flat function with its pullback, compiled where that is the same."""

    def __init__(
        self, run: Outputs, linear: Linear, steps: Steps, *, plain: bool = False, known: Program | None = None
    ) -> None:
        self.run, self.linear, self.steps = run, linear, steps
        self.plain = plain  # no rule is met: the pullback is JAX's own, and looks at no values
        self.refusal: Exception | None = known.refusal if known else None
        # Whether a program gives what the function gives; if that is not known, the first call asks.
        self.same: bool | None = known.same if known else None
        self.same_outputs: bool | None = known.same_outputs if known else None
        self.zeros: dict[Any, list[Any]] = {}
        self.both = quick(self._both)
        self.alone = quick(run)

    def _both(self, sources: Sequence[Any], cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outputs, pull = self.linear(sources)
        return outputs, pull(cotangents)

    def outputs(self, sources: Sequence[Any]) -> list[Any]:
        """Run the function."""
        if self.is_compiled(sources):
            return self.compiled_outputs(sources)
        return list(self.alone(sources)) if self.has_compiled_outputs(sources) else self.run(placed(sources))

    def differentiated(self, sources: Sequence[Any]) -> list[Any]:
        """Run the function as it is run where somebody differentiates it: its rule may give another value."""
        if self.is_compiled(sources):
            return list(self.both(sources, self.nothing(sources))[0])
        sources = placed(sources)
        try:
            return self.linear(sources)[0]
        except Exception:  # there is nothing to differentiate, or what is wrong is said elsewhere
            return self.run(sources)

    def cotangents(self, sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Run the function and its pullback."""
        if self.is_compiled(sources):
            return self.compiled_cotangents(sources, cotangents)
        if self.refusal is not None:
            raise self.refusal
        return self.linear(placed(sources))[1](placed(cotangents))

    def compiled_outputs(self, sources: Sequence[Any]) -> list[Any]:
        """Run the compiled function."""
        if sum(source.size for source in sources) > LARGE:
            return list(self.alone(sources))
        return list(self.both(sources, self.nothing(sources))[0])

    def compiled_cotangents(self, sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Run the compiled function and its pullback."""
        return list(self.both(sources, cotangents)[1])

    def lower(self, sources: Sequence[Any]) -> list[Any]:
        """Hand the program to the compiler, which refuses what a dtype does not have; give zeros."""
        zeros = self.nothing(sources)
        if self.is_compiled(sources):
            self.both.lower(sources, zeros)
        else:
            self.cotangents(sources, zeros)
        return zeros

    def nothing(self, sources: Sequence[Any]) -> list[Any]:
        """Give zeros in the form of the outputs."""
        key = tuple((source.shape, source.dtype) for source in sources)
        if key not in self.zeros:
            outputs = jax.eval_shape(self.run, sources)
            self.zeros[key] = [np.zeros(output.shape, output.dtype) for output in outputs]
        return self.zeros[key]

    def is_compiled(self, sources: Sequence[Any]) -> bool:
        """Tell whether the compiled program stands for the function."""
        if self.steps.alone:
            return False
        if self.same is None:
            try:
                self.same = traces_alike(self.both, sources, self.nothing(sources))
            except Exception as error:
                # What cannot be traced is called as it stands, and says there what is wrong.
                self.same = False
                if self.plain and not isinstance(error, VALUES):
                    self.refusal = error
        return self.same

    def has_compiled_outputs(self, sources: Sequence[Any]) -> bool:
        """Tell whether the compiled program of the outputs stands for the function."""
        if self.steps.alone:
            return False
        if self.same_outputs is None:
            try:
                self.same_outputs = traces_alike(self.alone, sources)
            except Exception:  # it is called as it stands, and says there what is wrong
                self.same_outputs = False
        return self.same_outputs


def placed(arrays: Sequence[Any]) -> list[Any]:
    """Make arrays of JAX's, which is what a function expects that is called as it stands."""
    return [jax.device_put(array) for array in arrays]


def traces_alike(program: Any, *given: Any) -> bool:
    """Trace a program twice, and compare; it keeps the first trace, and is compiled from that."""
    first = program.trace(*given).jaxpr
    second = jax.make_jaxpr(lambda *args: program.__wrapped__(*args))(*given)
    text = ADDRESS.sub("", str(first))
    return (
        text.count("\n") < LONGEST
        and not callbacks(text)
        and text == ADDRESS.sub("", str(second))
        and all(map(_equal, first.consts, second.consts))
    )


def callbacks(traced: str) -> set[str]:
    """Name the kinds of callbacks into Python in a traced program."""
    return set(CALLBACK.findall(traced))


def quick(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function in little time, when it is called."""
    return jax.jit(function, compiler_options=_quick_options(), **options)


@functools.cache
def _quick_options() -> dict[str, Any] | None:
    try:
        jax.jit(lambda: 0, compiler_options=QUICK).lower().compile()
    except Exception:  # another compiler than the one that they are for
        return None
    return QUICK


def _equal(a: Any, b: Any) -> bool:
    return a is b or bool(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True))
