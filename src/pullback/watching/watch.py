"""`watch`: what flows backward, at a place or in a model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

from pullback import hosts
from pullback.errors import OptionError
from pullback.hosts import Role
from pullback.hosts.dynamo import PROGRAM, is_tracing
from pullback.typed import T
from pullback.watching import framework, watchpoints
from pullback.watching.hearing import HEARING
from pullback.watching.log import Log
from pullback.watching.sinks import Sink, sinks


@overload
def watch(x: T, name: str) -> T: ...
@overload
def watch(x: Any = None, *, every: int = 1, to: str | Path | Sink | Iterable[Any] = ()) -> Log: ...
def watch(
    x: Any = None, name: str | None = None, *, every: int = 1, to: str | Path | Sink | Iterable[Any] = ()
) -> Any:
    """Look at the gradients that flow backward, at a place or in a model.

    `watch(x, "name")` gives `x` as it is, and whichever log is open hears of its gradient. `with watch(…) as
    log:` opens a log. Outside of any log nothing is looked at.

    Args:
        x: A tensor; or a model of Keras or a module of PyTorch, whose layers and weights are looked at. A log
            without a model hears the named places only.
        name: What to call the place.
        every: Look at each n-th step of a place: at each n-th gradient that arrives there.
        to: Where the log goes while it is written: a file `….jsonl`, a folder for TensorBoard, `"live"` for
            the terminal, or several of these.

    Example:
        >>> import pullback as pb, torch
        >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> with pb.watch() as log:
        ...     loss = (pb.watch(x, "squared") ** 2).sum() / 2
        ...     loss.backward()
        >>> log["squared"][0].norm
        5.0

    Do not use it to change a gradient: that is what `pb.map_gradient` and its relatives do.
    """
    if name is None:
        _require_count(every)
        return Log(x, every, sinks(to))
    if is_tracing(PROGRAM):
        return HEARING.compiled(x, name) if HEARING.open and HEARING.compiled is not None else x
    if hosts.role(type(x)) is Role.SYMBOL:
        from pullback.keras.layer import RuleLayer

        return RuleLayer(watch, [{"tensor": 0}, name])(x)
    return framework.of(x).seen(x, watchpoints.number(name))


def _require_count(every: Any) -> None:
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise OptionError.about(
            "watch", found=f"every={every!r}", expected="a whole number of steps, at least 1", fix="every=10"
        )
