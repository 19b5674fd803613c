"""Running the user's code, with words for the errors that PyTorch cannot explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.hosts import refusals

_VECTOR = ("Boolean value of Tensor with", "pred to be bool or tensor, but got")


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
    """Call a body or a `grad`."""
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        explain(error, where)
        raise


def explain(error: RuntimeError, where: str) -> None:
    """Raise an error that says more, if there is one."""
    if type(error).__module__.startswith("pullback.") or not any(text in str(error) for text in _VECTOR):
        return
    raise refusals.vector_condition(where, "torch.cond", "torch.where", "torch.all") from error
