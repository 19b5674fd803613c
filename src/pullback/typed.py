"""What the decorators return, for editors and type checkers: the signature stays, the attributes are known.

At run time these are plain functions. A body returns `y, grad` and its function `y`; where a body returns
more, or what it returns is not known, the result is anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from pullback.rule import Rule

if TYPE_CHECKING:
    import inspect

    from typing_extensions import Self, TypedDict, Unpack

    from pullback.wrapping.cache import Cache

    Grad = Callable[..., Any]
    # No pair: a pair that matched twice would lose its signature in mypy.
    Longer = tuple[Any, Any, Unpack[tuple[Any, ...]], Grad] | list[Any]

    class Claims(TypedDict, total=False):
        """What a decorator lets a rule claim, for its overloads."""

        like: Grad | None
        differs: str | None
        chosen: Grad | None


P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T", bound=Any)  # a tensor, whatever it can do
Y = TypeVar("Y")
Y_co = TypeVar("Y_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])


class Decorator(Protocol):
    """Take a function, and give it back."""

    def __call__(self, function: F, /) -> F: ...


class RuleFunction(Protocol[P, Y_co]):
    """A function that carries its rule."""

    __name__: str
    __qualname__: str
    __signature__: inspect.Signature
    rule: Rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y_co: ...

    @overload
    def __get__(self, instance: None, owner: Any, /) -> Self: ...
    @overload
    def __get__(
        self: RuleFunction[Concatenate[Any, Q], Y_co], instance: object, owner: Any, /
    ) -> RuleFunction[Q, Y_co]: ...


class DefinedFunction(RuleFunction[P, Y_co], Protocol[P, Y_co]):
    """A function whose forward mode can be given: `@f.pushforward`."""

    pushforward: Decorator


class ExternalFunction(DefinedFunction[P, Y_co], Protocol[P, Y_co]):
    """A function of NumPy arrays. What it is written for, it is called with; tensors give tensors."""

    pullback: Decorator
    cache: Cache | Any  # None where none was asked for

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y_co: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class OverriddenFunction(Protocol[P, Y_co]):
    """A function with other gradients inside, and how many places there were."""

    __name__: str
    original: Callable[..., Any]
    replaced: Mapping[str, int]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y_co: ...


class Overriding(Protocol):
    """A context in which gradients are others, and how many places there were."""

    replaced: Mapping[str, int]

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: Any) -> None: ...


class Loss(Protocol):
    """A loss of Keras, with its rule."""

    name: str
    rule: Rule

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any: ...


class KerasModel(Protocol):
    """A layer or model of Keras, by one of its methods."""

    def get_weights(self) -> Any: ...


class TorchModule(Protocol):
    """A module of PyTorch, by one of its methods."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any: ...


M = TypeVar("M", bound="KerasModel | TorchModule")


class Definition(Protocol):
    """`custom_gradient` with its options given."""

    @overload
    def __call__(self, body: Callable[P, tuple[Y, Grad]], /) -> DefinedFunction[P, Y]: ...
    @overload
    def __call__(self, body: Callable[P, Longer], /) -> DefinedFunction[P, Any]: ...


def carrying(rule: Rule) -> Callable[[Callable[P, Y]], RuleFunction[P, Y]]:
    """Give a function a rule that is another one's."""

    def carry(function: Callable[P, Y]) -> RuleFunction[P, Y]:
        made = cast("RuleFunction[P, Y]", function)
        made.rule = rule
        return made

    return carry


def defined(function: Callable[P, Y]) -> DefinedFunction[P, Y]:
    """Say that a function is given the attributes of one with a rule."""
    return cast("DefinedFunction[P, Y]", function)
