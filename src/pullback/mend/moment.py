"""A moment: one point and one cotangent, with the names that the forward left there, and what is right there.

The truth is that of the checker: the plain gradient of the body where differences confirm it, else the
differences. At a kink no single answer is right: there the one-sided slopes bound every honest one.
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback import tree
from pullback.checker.directions import signed
from pullback.checker.evidence import COLUMNS, differences
from pullback.checker.numeric import derivative_test
from pullback.checker.oracle import body_gradient
from pullback.checker.problem import Problem
from pullback.checker.settings import Settings
from pullback.checker.space import SINGLE, Space
from pullback.dtypes import double
from pullback.mend.bounds import Bound, bounds
from pullback.mend.pure import COMPUTING, stored, writes
from pullback.mend.region import written
from pullback.mend.saved import Saved
from pullback.mend.seat import Way, followed, seated
from pullback.rule import cells
from pullback.view.subject import Array, Arrays, Opened, Subject

EXACT, MEASURED = 1e-9, 2e-6  # relative, of a truth by autodiff and by differences
ROUNDED = 300  # roundoffs of a rule and of its body together, where no finer dtype is to be had


@dataclass
class Moment:
    """Hold one point, one cotangent, and what is right there."""

    label: str
    inputs: Arrays
    opened: Opened
    space: dict[str, Any]  # every name in reach of the gradient
    names: list[str]  # those that the forward gave a value to
    problem: Problem
    wanted: tuple[Array | None, ...]  # per input; None where nothing is asked
    tolerance: float
    bounds: tuple[Bound, ...] = ()  # at a kink
    measured: tuple[Array, ...] = field(default=(), repr=False)
    seen: dict[CodeType, dict[str, Any]] = field(default_factory=dict, repr=False)  # what the forward ran
    jacobian: Callable[[], Array] | None = None  # the true one, whole
    way: Way = ()  # from the gradient to what is open
    unsaved: dict[str, Any] = field(
        default_factory=dict, repr=False
    )  # what the forward has, and does not keep
    writes: bool = False  # in place: a variant may write into what it is handed, and gets copies

    @property
    def open(self) -> FunctionType:
        """Give the function that is open to edits here."""
        return followed(self.opened.grad, self.way)

    def at(self, way: Way) -> Moment:
        """Open another function, that the gradient reaches in this way."""
        space, names = surroundings(followed(self.opened.grad, way), self.seen)
        return replace(self, way=way, space=space, names=names)

    def beside(self, saved: Saved | None, grad: ast.AST) -> Moment:
        """Let the names of a forward that is a function of its own be read, too.

        A value of the module, as a script leaves behind, takes no name away that the gradient does not use.
        """
        used = {*stored(grad), *(n.id for n in ast.walk(grad) if isinstance(n, ast.Name)), *self.names}
        used |= {n for n, v in self.space.items() if callable(v) or isinstance(v, ModuleType)}
        more = {} if saved is None else saved.names(self.seen, used)
        space, names = {**self.space, **more}, [*self.names, *more]
        return replace(self, unsaved=more, space=space, names=names, writes=writes(grad))

    def run(self, code: CodeType) -> list[Any]:
        """Run a variant of what is open, and give what the gradient returns for each input."""
        function = self._made(code)
        return self.opened.lay(self._called(self._apart(function) if self.writes else function))

    def _apart(self, function: FunctionType) -> Callable[..., Any]:
        """Let a function work on copies of its arguments, and of what the forward left behind."""
        function.__globals__.update({n: _copied(function.__globals__[n]) for n in self.names})

        @functools.wraps(function)
        def on_copies(*args: Any, **kwargs: Any) -> Any:
            return function(*map(_copied, args), **kwargs)

        return on_copies

    def told(self, code: CodeType) -> dict[str, Any]:
        """Run a variant that tells its names; give those of its first run."""
        function = self._made(code)
        heard: list[dict[str, Any]] = []

        @functools.wraps(function)  # who calls it may ask for its signature
        def listening(*args: Any, **kwargs: Any) -> Any:
            returned, names = function(*args, **kwargs)
            heard.append(names)
            return returned

        self._called(listening)
        return heard[0]

    def left(self, code: CodeType) -> dict[str, Any]:
        """Give the names of a variant that tells them; of one that fails, those that it had until then."""
        try:
            return self.told(code)
        except Exception as error:  # what stands there may fail at another shape
            frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
            return next((dict(frame.f_locals) for frame in frames if frame.f_code is code), {})

    def reached(self, code: CodeType) -> list[bool]:
        """Tell of each input whether what is open decides anything of its cotangent."""
        function = self._made(code)

        @functools.wraps(function)
        def doubled(*args: Any, **kwargs: Any) -> Any:
            parts, structure = tree.flatten(function(*args, **kwargs))
            return tree.unflatten(structure, [x + x if hasattr(x, "dtype") else x for x in parts])

        def arrays(parts: list[Any]) -> list[Array | None]:
            return [None if part is None else self.opened.array(part) for part in parts]

        pairs = zip(arrays(self.run(code)), arrays(self.opened.lay(self._called(doubled))))
        return [a is not None and (b is None or not np.array_equal(a, b)) for a, b in pairs]

    def _made(self, code: CodeType) -> FunctionType:
        opened: Any = self.open
        space = dict(self.space) if self.writes else self.space
        function = FunctionType(code, space, "grad", opened.__defaults__)
        function.__kwdefaults__ = opened.__kwdefaults__
        return function

    def _called(self, function: Callable[..., Any]) -> Any:
        """Call the gradient with another function in the place of what is open."""
        grad = self.opened.grad
        return self.opened.call(_bound(grad, seated(written(grad), self.way, function)))

    def judged(self, parts: Sequence[Any]) -> list[bool | None]:
        """Tell of each input whether its cotangent is right; None where nothing is asked."""
        arrays = [None if part is None else self.opened.array(part) for part in parts]
        if self.bounds:
            return self._bounded(arrays)
        return [None if w is None else self.is_right(a, w) for a, w in zip(arrays, self.wanted)]

    def is_right(self, array: Array | None, wanted: Array) -> bool:
        """Compare a cotangent with the truth."""
        if array is None or array.shape != wanted.shape or array.dtype.kind not in "fc":
            return False
        if array.dtype.kind == "c" and wanted.dtype.kind != "c":
            return False
        return bool(self.distance(array, wanted) <= self.tolerance)

    def distance(self, array: Array, wanted: Array) -> float:
        """Give the largest relative difference."""
        if not np.isfinite(array).all():
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(wanted)
            typical = max(float(size.max(initial=0.0)), self.typical)
            gap = np.abs(array - wanted) / (0.3 * size + 0.1 * typical + 1e-300)
        return float(gap.max(initial=0.0))

    @property
    def typical(self) -> float:
        """Give a size below which a cotangent counts as zero."""
        return 1e-6 * max(
            (float(np.abs(w).max(initial=0.0)) for w in self.wanted if w is not None), default=0.0
        )

    def _bounded(self, arrays: list[Array | None]) -> list[bool | None]:
        """Judge at a kink: each input along its own directions, and all of them along common ones."""
        domain, chosen = self.problem.domain, self.problem.chosen
        found: list[bool | None] = [None] * len(self.wanted)
        for place, k in enumerate(chosen):
            wanted, array = self.wanted[k], arrays[k]
            if wanted is None:
                continue
            found[k] = array is not None and array.shape == wanted.shape and bool(np.isfinite(array).all())
            if found[k]:
                vector = domain.pack([array if p == place else None for p in range(len(chosen))])
                outside = np.ones(vector.size, bool)
                outside[domain.part(place)] = False
                own = [bound for bound in self.bounds if not bound.u[outside].any()]
                found[k] = all(bound.holds(vector) for bound in own)
        if all(f is not False for f in found):
            whole = domain.pack([arrays[k] if self.wanted[k] is not None else None for k in chosen])
            if not all(bound.holds(whole) for bound in self.bounds):
                return [None if f is None else False for f in found]
        return found


def _copied(value: Any) -> Any:
    """Copy the arrays in a value that can be written into."""
    if tree.is_container(value):
        parts, structure = tree.flatten(value)
        return tree.unflatten(structure, [_copied(part) for part in parts])
    if type(value).__name__ == "Context":
        made = copy.copy(value)
        vars(made).update({name: _copied(part) for name, part in vars(value).items()})
        return made
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.detach().clone() if hasattr(value, "copy_") else value


def _bound(grad: Any, function: Any) -> Any:
    """Hand on the arguments that were filled in before."""
    if isinstance(grad, functools.partial):
        return functools.partial(function, *grad.args, **grad.keywords)
    return function


def truth(subject: Subject, problem: Problem, v: Array, settings: Settings) -> tuple[Array, float] | None:
    """Give the true gradient of ⟨v, f⟩ and its relative error; None where it cannot be had."""
    if subject.body_pullback is not None:
        probe = Problem(
            subject.oracle_forward, subject.body_pullback, subject.inputs, subject.differentiable,
            limits=subject.limits,
        )  # fmt: skip
        try:
            proven = (
                derivative_test(probe, settings.rng(31), settings).verdict == "right" and not probe.silent
            )
        except Exception:  # the body need not be differentiable
            proven = False
        found = body_gradient(subject, problem, v) if proven else None
        if found is not None and np.isfinite(found).all():
            # What only a finer dtype than the shipped one can see is no fault of the rule.
            return found, max(EXACT, 6 * settings.shipped, ROUNDED * problem.unit)
    if problem.x.size > COLUMNS:
        return None
    measured = v @ differences(problem)
    tolerance = MEASURED if problem.unit < 1e-12 else 30 * problem.unit**0.5
    return (measured, tolerance) if np.isfinite(measured).all() else None


def recorded(subject: Subject, inputs: Arrays, v: Arrays) -> tuple[Opened, dict[CodeType, dict[str, Any]]]:
    """Run a rule forward, and keep the names of every function that a user wrote."""
    assert subject.opened is not None
    seen: dict[CodeType, dict[str, Any]] = {}

    def listen(frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and str(frame.f_globals.get("__name__")).partition(".")[0] not in COMPUTING:
            seen[frame.f_code] = dict(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        opened = subject.opened(inputs, v)
    finally:
        sys.setprofile(before)
    return opened, seen


def moment(
    subject: Subject, label: str, inputs: Arrays, settings: Settings, salt: int, given: Arrays | None = None
) -> Moment | None:
    """Make a moment of a point; None where the function or the truth is not to be had there."""
    subject = subject.at(inputs)
    try:
        problem = Problem.of(subject)
        if not problem.x.size or not np.isfinite(problem.y).all():
            return None
        rng = settings.rng(40, salt)
        v = signed(rng, problem.y.size) if given is None else problem.codomain.pack(given)
        limits = bounds(problem, v)
        found = truth(subject, problem, v, settings)
        if found is not None and problem.unit >= SINGLE and found[1] <= max(EXACT, ROUNDED * problem.unit):
            limits = ()  # in few digits noise looks like a kink, and the body's own gradient is proven
        if found is None and not limits:
            return None
        opened, seen = recorded(subject, inputs, problem.codomain.unpack(v))
    except Exception:  # a user's function may refuse a point in any way it likes
        return None
    vector, tolerance = found if found is not None else (np.zeros(problem.x.size), 1e-3)
    domain = problem.domain
    wide = Space(domain.shapes, tuple(map(double, domain.dtypes))).unpack(vector)
    wanted: list[Array | None] = [None] * len(inputs)
    for k, part in zip(problem.chosen, wide):
        wanted[k] = part
    space, names = surroundings(opened.grad, seen)

    @functools.cache
    def jacobian() -> Array:
        rows = [truth(subject, problem, e, settings) for e in np.eye(problem.y.size)]
        return np.stack([vector if row is None else row[0] for row in rows])

    return Moment(
        label, inputs, opened, space, names, problem, tuple(wanted), tolerance, limits, seen=seen,
        jacobian=jacobian,
    )  # fmt: skip


def surroundings(
    grad: Callable[..., Any], seen: dict[CodeType, dict[str, Any]]
) -> tuple[dict[str, Any], list[str]]:
    """Collect the names in reach of a gradient: of its module, of its closure, and of the forward's run."""
    function = written(grad)
    space = dict(function.__globals__)
    enclosed = dict(cells(function))
    around = next((names for code, names in seen.items() if function.__code__ in code.co_consts), {})
    space |= around
    space |= enclosed
    return space, [*dict.fromkeys((*around, *enclosed))]


def leaves(value: Any) -> list[Any]:
    """List the leaves of what a gradient returned."""
    return tree.flatten(value)[0]
