"""The rule: a forward function and what is claimed of its gradient.

A rule is a frozen value that knows no framework. Hosts turn it into a native operation, the checker
verifies the claim it makes. `body` is the function as the user wrote it: it returns its outputs and `grad`.
"""

from __future__ import annotations

import dis
import functools
import inspect
import keyword
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal


@dataclass(frozen=True)
class Intent:
    """State what a pullback claims to be.

    `exact`: the derivative of the forward. `like`: the derivative of another function. `differs`: something
    else on purpose, for the reason given. `chosen` says which slope stands where the derivative is a choice:
    called as the function is, it gives the gradient of the sum of its outputs there, and NaN elsewhere; its
    docstring says it in words.
    """

    kind: Literal["exact", "like", "differs"] = "exact"
    function: Callable[..., Any] | None = None
    reason: str = ""
    chosen: Callable[..., Any] | None = None

    def __str__(self) -> str:
        words = (inspect.getdoc(self.chosen) or "").partition("\n")[0].rstrip(".") if self.chosen else ""
        return f"{self._claim()}; chosen: {words}" if words else self._claim()

    def _claim(self) -> str:
        if self.kind == "like":
            return f"the derivative of {getattr(self.function, '__name__', repr(self.function))}"
        if self.kind == "differs":
            return f"different on purpose: {self.reason}"
        return "the derivative"


EXACT = Intent()
_ANY = inspect.signature(lambda *args, **kwargs: None)


@dataclass(frozen=True, eq=False)
class Rule:
    """Hold everything that is known of one custom gradient."""

    body: Callable[..., Any]
    name: str
    signature: inspect.Signature
    intent: Intent = EXACT
    order: int | None = None
    pushforward: Callable[..., Any] | None = None
    source: str = ""
    bare: bool = False  # whether the body gives its outputs alone, and the gradient comes from elsewhere
    accuracy: float | None = None  # relative, that the gradient claims to have; None: all digits of the dtype
    # The host's own operation in the place of a call: plan and tensors ↦ result, or None where there is none.
    own: Callable[[Any, Sequence[Any]], Any] | None = None
    # What a value of its own remembers: what hosts have measured of it, and the plans of its calls.
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    plans: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    # Where a host that has learned enough of a plan puts a shorter way: tensors ↦ result, or None for a call
    # that must go the long one. The key is `Plan.way`.
    shortcuts: dict[Any, Callable[[Sequence[Any]], Any]] = field(default_factory=dict, init=False, repr=False)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """Give the function that the user wrote, without the decorators around it."""
        function: Callable[..., Any] = inspect.unwrap(self.body)
        return function

    @functools.cached_property
    def identity(self) -> Any:
        """Name the code that runs: rules made anew in every call of a factory share it."""
        return getattr(self.function, "__code__", self)

    @functools.cached_property
    def has_pushforward(self) -> bool:
        return self.pushforward is not None

    def captured(self) -> Iterator[tuple[str, Any]]:
        """List what the body can reach by name without being handed it: closure cells and globals."""
        return reach(self.function)

    @functools.cached_property
    def where(self) -> str:
        """Name the user's function and its source line, as every error does."""
        return at(self.name, self.source)

    def __repr__(self) -> str:
        parameters = ", ".join(self.signature.parameters)
        parts = [f"{self.name}({parameters})", str(self.intent)]
        if self.order is not None:
            parts.append(f"order {self.order} only")
        if self.pushforward is not None:
            parts.append("with a pushforward")
        if self.source:
            parts.append(self.source)
        return f"<rule {' · '.join(parts)}>"


def cells(function: Any) -> list[tuple[str, Any]]:
    """List what the closure of a function holds, by name."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # a cell that is not filled yet
            continue
    return found


def reach(function: Any) -> Iterator[tuple[str, Any]]:
    """List what a function can reach by name without being handed it: closure cells and globals."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    if function.__closure__:
        yield from cells(function)
    space = function.__globals__
    for name in global_names(code):
        if name in space:
            yield name, space[name]


def written(function: Any) -> Any:
    """Give the function that the user wrote, behind a rule or a decorator."""
    rule = getattr(function, "rule", None)
    return rule.function if isinstance(rule, Rule) else inspect.unwrap(function)


def filled_in(f: Any) -> Any:
    """Give the function that a partial one fills in."""
    return filled_in(f.func) if isinstance(f, functools.partial) else f


def name_of(f: Any) -> str:
    """Name a callable: by its own name, or that of its class; a partial one by the function in it."""
    f = f if hasattr(f, "__name__") else filled_in(f)
    name = getattr(f, "__name__", None) or getattr(f, "name", None)
    return name if isinstance(name, str) else type(f).__name__


def at(name: str, source: str) -> str:
    """Name a function and where it stands."""
    return f"{name} ({source})" if source else name


def source_of(function: Any) -> str:
    """Give `file.py:line` of a function, or nothing when it has no source of the user's."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    # A function inside a `tf.function` is compiled from a file of AutoGraph's, which the user never sees.
    if code is None or "__autograph_generated_file" in code.co_filename:
        return ""
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def rule_of(f: Any, intent: Intent) -> Rule:
    """Describe any callable: a function, a compiled one, a layer, a function of a loaded model."""
    return Rule(f, name_of(f), signature_of(f), intent=intent, source=source_of(f), bare=True)


def where_of(f: Any) -> str:
    """Name a function and its source line."""
    return at(name_of(f), source_of(filled_in(f)))


def word_for(f: Any) -> str:
    """Name a callable by a word: what a framework takes for a name. `<lambda>` becomes `lambda_`."""
    word = re.sub(r"\W+", "", name_of(f))
    return f"{word}_" if keyword.iskeyword(word) or not word else word


def shown_signature(f: Any) -> inspect.Signature | None:
    """Give the signature of a callable; None of a builtin, or a restored function, that has none to show."""
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):
        return None


def signature_of(f: Any) -> inspect.Signature:
    """Give the signature of a callable; any arguments where it has none to show."""
    return shown_signature(f) or _ANY


@functools.lru_cache(maxsize=4096)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Name the globals that a function and the functions inside it look up."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(global_names(constant))
    return tuple(sorted(names))


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> frozenset[str]:
    """Name the attributes and globals that a function and the functions inside it look up."""
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*map(names_in, inside))
