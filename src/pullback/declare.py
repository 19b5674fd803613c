"""Saying of a rule what it claims, from outside: `pb.declare`, and the value that every way of it makes.

A surrogate in somebody else's package cannot be decorated. `pb.declare`, a comment on the line of its
definition and a table of the configuration all make a `Declaration`; who checks asks for one. What was
declared in Python is kept beside the thing, weakly, so that no foreign object is changed.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pullback.domain import EXPECTED, Domain, DomainError
from pullback.errors import DefinitionError, PullbackError
from pullback.rule import Intent, Rule, name_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Said(TypedDict, total=False):
        """What `declare` takes, for its overloads."""

        differs: str | None
        like: Callable[..., Any] | None
        order: int | None
        domain: Any


T = TypeVar("T")
KEYS = ("differs", "like", "order", "domain", "skip")
APART = ("defvjp", "defjvp", "def_bwd", "def_jvp")  # by which a rule is given its gradient later
FIXES = {
    "differs": 'differs="straight-through"',
    "like": 'like="package.module.function"',
    "order": "order=1",
    "domain": "domain=(0.0, 1.0)",
    "skip": 'skip="needs a GPU"',
}


@dataclass(frozen=True)
class Declaration:
    """Hold what is said of a rule from outside; what is not said is None, or empty."""

    intent: Intent | None = None
    order: int | None = None
    domain: Domain | None = None
    skip: str = ""  # why it is not to be checked
    origin: str = ""  # where its intent was said

    def over(self, other: Declaration) -> Declaration:
        """Put this above another one: what it says counts, key by key."""
        said = {f.name: getattr(self, f.name) or getattr(other, f.name) for f in fields(self)}
        said["origin"] = self.origin if self.intent is not None else other.origin
        return Declaration(**said)


NOTHING = Declaration()


def read(
    table: Mapping[str, Any], *, where: str, origin: str, error: type[PullbackError] = DefinitionError
) -> Declaration:
    """Read what was said, key by key; `where` names the place in an error."""

    def wrong(found: str, expected: str, key: str, why: str = "") -> PullbackError:
        return error.about(where, found=found, expected=expected, why=why, fix=FIXES[key])

    for key, value in table.items():
        if key not in KEYS:
            raise error.about(
                where, found=f"{key}={value!r}", expected=f"one of {', '.join(KEYS)}", fix=_nearest(key)
            )
    if "like" in table and "differs" in table:
        raise wrong(
            "both like and differs",
            "one of them: a gradient is that of another function, or none at all",
            "differs",
        )
    for key in ("differs", "skip"):
        if key in table and (not isinstance(table[key], str) or not table[key].strip()):
            raise wrong(f"{key}={table[key]!r}", "the reason, in words", key)
    order = table.get("order")
    if "order" in table and (order not in (1, 2) or isinstance(order, bool)):
        raise wrong(
            f"order={order!r}",
            "1 or 2, the highest derivative that is claimed",
            "order",
            "higher ones are not tested",
        )
    intent: Intent | None = None
    if "differs" in table:
        intent = Intent("differs", reason=table["differs"])
    elif "like" in table:
        like = table["like"]
        if not callable(like) and not (isinstance(like, str) and _is_dotted(like)):
            raise wrong(f"like={like!r}", "a function, or its dotted name", "like")
        intent = Intent("like", function=like if callable(like) else Named(like, where, error))
    try:
        domain = Domain.of(table["domain"]) if "domain" in table else None
    except DomainError as problem:
        raise wrong(str(problem), EXPECTED, "domain") from None
    return Declaration(intent, order, domain, table.get("skip", ""), origin)


def _nearest(key: str) -> str:
    import difflib

    return FIXES[(difflib.get_close_matches(key, KEYS, 1) or ["differs"])[0]]


def _is_dotted(text: str) -> bool:
    return "." in text and all(part.isidentifier() for part in text.split("."))


class Named:
    """A function by its dotted name, which is imported when it is called for the first time."""

    def __init__(self, name: str, where: str, error: type[PullbackError]) -> None:
        self.__name__ = name
        self.where = where
        self.error = error

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """Import it."""
        parts = self.__name__.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:cut])
            try:
                value: Any = importlib.import_module(module)
            except ModuleNotFoundError as error:
                if f"{module}.".startswith(f"{error.name}."):
                    continue  # that part is no module
                raise
            for part in parts[cut:]:
                value = getattr(value, part, None)
            if callable(value):
                return value  # type: ignore[no-any-return]
            break
        raise self.error.about(
            self.where,
            found=f"like={self.__name__!r}",
            expected="the dotted name of a function that can be imported here",
            fix=FIXES["like"],
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


# ── in Python ────────────────────────────────────────────────────────────────────────────────────────────

# By identity: a foreign object may be equal to another, or have no hash.
_said: dict[int, tuple[Callable[[], Any], Declaration]] = {}


@overload
def declare(thing: T, /, **said: Unpack[Said]) -> T: ...
@overload
def declare(**said: Unpack[Said]) -> Callable[[T], T]: ...
def declare(
    thing: Any = None,
    /,
    *,
    differs: str | None = None,
    like: Callable[..., Any] | None = None,
    order: int | None = None,
    domain: Any = None,
) -> Any:
    """Say what the gradient of a rule claims to be, without changing the rule.

    The checker reads it wherever it meets the rule. What is said later counts, key by key; the
    configuration counts more. See `docs/declare.md`.

    Args:
        thing: A `torch.autograd.Function`, a `jax.custom_vjp`, a function under `tf.custom_gradient`, or
            any callable; left out, a decorator is given.
        differs: Why the gradient is another one than the derivative on purpose.
        like: The function whose derivative the gradient is.
        order: 1 where only the first derivative is claimed.
        domain: Where the function means something: `(low, high)`, `{"x": (low, high)}`, or a predicate.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> @pb.declare(differs="straight-through")
        ... @tf.custom_gradient
        ... def quantise(x):
        ...     return tf.round(x), lambda dy: dy
        >>> pb.check(quantise, tf.constant([0.3, 1.2]), seed=0).intent
        'different on purpose: straight-through'

    Do not use it for a rule of your own that can say it itself: `pb.custom_gradient(differs=…)`.
    """
    given = {"differs": differs, "like": like, "order": order, "domain": domain}
    said = {key: value for key, value in given.items() if value is not None}
    if thing is None:
        return functools.partial(_declared, said=said)
    return _declared(thing, said)


def _declared(thing: T, said: Mapping[str, Any]) -> T:
    where = f"declare({name_of(thing)})" if callable(thing) else "declare"
    if not callable(thing):
        raise DefinitionError.about(
            where,
            found=f"it was given a {type(thing).__name__}",
            expected="a rule: a class, a function, or anything else that is called",
            fix='pb.declare(Quantise, differs="straight-through")',
        )
    if not said:
        raise DefinitionError.about(
            where,
            found="nothing is said of it",
            expected="one of differs=, like=, order=, domain=",
            fix=f'pb.declare({name_of(thing)}, differs="straight-through")',
        )
    made = read(said, where=where, origin="pb.declare")
    for held in _stored(thing):
        _keep(held, made.over(_kept(held)))
    return thing


def _stored(thing: Any) -> Iterator[Any]:
    """List what a declaration is kept beside: the thing, and the functions that it wraps.

    A rule that is given its gradient apart is not its function, of which another rule may be made.
    """
    thing = _lasting(thing)
    yield thing
    if isinstance(getattr(thing, "rule", None), Rule):
        yield thing.rule  # which is all that is seen of it inside another function
    if type(thing).__module__.startswith("equinox."):  # JAX sees what it holds, and never the thing
        yield vars(thing).get("fn", thing)
    while hasattr(thing, "__wrapped__") and not any(hasattr(thing, name) for name in APART):
        thing = thing.__wrapped__
        yield thing


def _lasting(thing: Any) -> Any:
    """Give what outlives a bound method, which is made anew every time: the class of an `apply`."""
    if not inspect.ismethod(thing):
        return thing
    return thing.__self__ if inspect.isclass(thing.__self__) else thing.__func__


def _keep(thing: Any, said: Declaration) -> None:
    key = id(thing)
    try:
        held: Callable[[], Any] = weakref.ref(thing, lambda _: _said.pop(key, None))
    except TypeError:  # it takes no weak reference: it stays
        held = functools.partial(_itself, thing)
    _said[key] = (held, said)


def _itself(thing: Any) -> Any:
    return thing


def _kept(thing: Any) -> Declaration:
    held, said = _said.get(id(thing), (lambda: None, NOTHING))
    return said if held() is thing else NOTHING


def declared(*things: Any) -> Declaration:
    """Find what was said of a rule: of what is called, of what is inside it, or of what the user wrote."""
    if not _said:
        return NOTHING
    for thing in things:
        for step in _inward(thing):
            if id(step) in _said and (found := _kept(step)) is not NOTHING:
                return found
    return NOTHING


def _inward(thing: Any) -> Iterator[Any]:
    """List a callable and what it was made of, as far as it shows."""
    for _ in range(32):
        if thing is None:
            return
        thing = _lasting(thing)
        yield thing
        rule = thing if isinstance(thing, Rule) else getattr(thing, "rule", None)
        if isinstance(rule, Rule):
            thing = rule.body
        elif isinstance(thing, functools.partial):
            thing = thing.func
        else:
            thing = getattr(thing, "__wrapped__", None)
