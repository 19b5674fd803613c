"""A loss of Keras from its value and its gradient with respect to the predictions: what `pb.loss` gives.

dy is the cotangent of one loss per example, g the gradient of that loss:   d y_pred = dy · g

Nothing is broadcast: g has the shape of the predictions, and the losses lie along their first axes, so that a
reduction and the weights of Keras mean the same for both. Only `reduction="none"`, which leaves a batch to
the user, may have one loss for the whole batch; g is its gradient then, and it has no weights.
"""

from __future__ import annotations

import inspect
import threading
from typing import Any

import keras

from pullback import hosts
from pullback.define import function_of, intent_of
from pullback.errors import (
    CotangentDtypeError,
    CotangentShapeError,
    DefinitionError,
    OptionError,
    OutputError,
)
from pullback.hosts import Role
from pullback.hosts.base import Host
from pullback.hosts.operation import Function, Tensor
from pullback.hosts.specs import show_shape
from pullback.options import require_functions
from pullback.outputs import accepts
from pullback.rule import Rule, name_of, source_of, where_of, word_for


@keras.saving.register_keras_serializable(package="pullback")
class RuleLoss(keras.losses.Loss):
    """A loss with a gradient of its own, made by `pb.loss`."""

    def __init__(
        self,
        value: Any,
        gradient: Any,
        *,
        like: Any = None,
        differs: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        value, gradient, like = (
            keras.saving.deserialize_keras_object(f) if isinstance(f, dict) else f
            for f in (value, gradient, like)
        )
        reduction = options.get("reduction", "sum_over_batch_size")
        self.function = loss_rule(value, gradient, like, differs, reduction)
        self.rule: Rule = self.function.rule  # type: ignore[attr-defined]
        self.parts = {"value": value, "gradient": gradient, "like": like}
        self.differs = differs
        super().__init__(name=name or word_for(value), **options)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        reduced = super().__call__(y_true, y_pred, sample_weight)
        if _called.whole and len(reduced.shape):
            raise weighted_whole(self.rule.where)
        return reduced

    def call(self, y_true: Any, y_pred: Any) -> Any:
        losses = self.function(*_same_rank(y_true, y_pred))
        _called.whole = hosts.of(losses).spec(losses).shape == ()
        return losses

    def get_config(self) -> dict[str, Any]:
        parts = {
            name: None if part is None else keras.saving.serialize_keras_object(part)
            for name, part in self.parts.items()
        }
        return {**super().get_config(), **parts, "differs": self.differs, "dtype": self._dtype}


_called = threading.local()  # whether the last loss of this thread was one for a whole batch


def _same_rank(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Give labels and predictions the same rank, as Keras does for every loss that is a plain function.

    One may have a last axis of length one that the other lacks, and (B, 1) less (B,) would be (B, B).
    """
    ranks = len(y_true.shape), len(y_pred.shape)
    if ranks == (1, 2) and y_pred.shape[-1] == 1:
        return keras.ops.expand_dims(y_true, -1), y_pred
    if ranks == (2, 1) and y_true.shape[-1] == 1:
        return y_true, keras.ops.expand_dims(y_pred, -1)
    if ranks[0] == ranks[1] + 1 and y_true.shape[-1] == 1:
        return keras.ops.squeeze(y_true, -1), y_pred
    if ranks[1] == ranks[0] + 1 and y_pred.shape[-1] == 1:
        return y_true, keras.ops.squeeze(y_pred, -1)
    return y_true, y_pred


def loss_rule(
    value: Function, gradient: Function, like: Any, differs: str | None, reduction: Any
) -> Function:
    """Make the rule of a loss: one value per example, whose gradient is given."""
    require_functions("loss", "pb.loss(value, gradient)", value=value, gradient=gradient)
    for part in (value, gradient):
        takes = accepts(part)
        if not takes.least <= 2 <= takes.most:
            raise DefinitionError.about(
                where_of(part),
                found=f"`{name_of(part)}` cannot take two arguments",
                expected="a function of the labels and the predictions",
                fix=f"def {word_for(part)}(y_true, y_pred):",
            )
    where = where_of(value)

    def body(y_true: Any, y_pred: Any) -> Any:
        host = hosts.of(y_pred)

        def grad(dy: Any) -> Any:
            slope = host.run(gradient, [y_true, y_pred], {}, where_of(gradient))
            return {
                "y_pred": host.arrays.trail(dy, y_pred)
                * _slope(slope, y_pred, host, name_of(gradient), where)
            }

        losses = host.run(value, [y_true, y_pred], {}, where)
        _require_losses(losses, y_pred, host, value, reduction)
        return losses, grad

    body.__name__ = name_of(value)
    body.__wrapped__ = value  # type: ignore[attr-defined]
    return function_of(
        Rule(
            body=body,
            name=name_of(value),
            signature=inspect.signature(body, follow_wrapped=False),
            intent=intent_of(where, like, differs),
            source=source_of(value),
        )
    )


def _slope(slope: Any, y_pred: Tensor, host: Host, name: str, where: str) -> Tensor:
    """Give the gradient as it was returned, if it is one number per prediction."""
    want = host.spec(y_pred)
    have = want._replace(shape=()) if isinstance(slope, (int, float)) else None
    if have is None and hosts.role(type(slope)) is not Role.STATIC:
        have = host.spec(slope)
    if have is None or have.kind not in ("floating", "integer"):
        raise CotangentDtypeError.about(
            where,
            found=f"`{name}` returned {'a ' + type(slope).__name__ if have is None else have.dtype} "
            "as the gradient with respect to `y_pred`",
            expected=f"a tensor: {want}",
            fix=f"return a real tensor in `{name}`",
        )
    if not _match(have.shape, want.shape):
        raise CotangentShapeError.about(
            where,
            found=f"`{name}` returned shape {_show(have.shape)} for `y_pred` of shape {_show(want.shape)}",
            expected=f"shape {_show(want.shape)}: one derivative per prediction",
            why="it would be broadcast into plausible wrong numbers",
            fix=f"in `{name}`, do not sum, average or pick over an axis of `y_pred`: "
            "the reduction of the loss does that",
        )
    return slope if host.fit([slope], [y_pred]) else host.conform(slope, y_pred)


def _require_losses(losses: Any, y_pred: Tensor, host: Host, value: Function, reduction: Any) -> None:
    """Refuse losses that are not one per example, or per element, of the predictions."""
    if hosts.role(type(losses)) is Role.STATIC:
        return  # the contract of every rule has words for it
    have, want = host.spec(losses).shape, host.spec(y_pred).shape
    if have is None or want is None:
        return
    unreduced = reduction in (None, "none")  # Keras reduces nothing
    if (have == () and (unreduced or want == ())) or (0 < len(have) <= len(want) and _leads(have, want)):
        return
    name, over = name_of(value), "" if unreduced else f", and reduction={reduction!r} is taken over examples"
    raise OutputError.about(
        where_of(value),
        found=f"`{name}` returned shape {_show(have)} for `y_pred` of shape {_show(want)}",
        expected=f"one loss per example, shape {_show(want[:1])}"
        + (", or one per element" if len(want) > 1 else ""),
        why=f"a gradient and a sample weight belong to one example{over}",
        fix=f"reduce over the axes behind the first only in `{name}` (axis=-1);\n"
        'for a loss of a whole batch: reduction="none", a value of shape (), and the gradient of that value',
    )


def weighted_whole(name: str) -> OptionError:
    """Say that the weights of examples have no meaning for a loss of the whole batch."""
    return OptionError.about(
        name,
        found="sample weights, or a mask, for a loss of the whole batch",
        expected="one loss per example, which a weight can belong to",
        why="Keras would count the whole loss once per example",
        fix="return one loss per example, or weigh the examples in the value and in the gradient",
    )


def _leads(have: tuple[int | None, ...], want: tuple[int | None, ...]) -> bool:
    """Tell whether losses lie along the first axes; behind the first, one may be kept with length one."""
    return _match(have[:1], want[:1]) and all(
        m == 1 or _match((m,), (n,)) for m, n in zip(have[1:], want[1:])
    )


def _match(have: tuple[int | None, ...] | None, want: tuple[int | None, ...] | None) -> bool:
    """Compare shapes; a length of one is not taken for one that is not known yet: it would be broadcast."""
    if have is None or want is None:
        return True
    return len(have) == len(want) and all(
        m == n or m is None or (n is None and m != 1) for m, n in zip(have, want)
    )


def _show(shape: tuple[int | None, ...] | None) -> str:
    return "unknown" if shape is None else show_shape(shape)
