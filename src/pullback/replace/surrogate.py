"""`surrogate`: the value of one function, the gradient of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import takes, tree
from pullback.define import function_of
from pullback.errors import SurrogateError
from pullback.hosts.operation import Function, Tensor
from pullback.hosts.specs import same_shape, show_shape
from pullback.options import require_functions
from pullback.outputs import TENSOR, Outputs
from pullback.plan import Plan
from pullback.replace.graft import Graft, made_of, values_of, without_pushforward
from pullback.rule import Intent, name_of, rule_of
from pullback.typed import P, RuleFunction, Y
from pullback.unconverted import unconverted


@unconverted
def surrogate(f: Callable[P, Y], like: Function) -> RuleFunction[P, Y]:
    """Give a function the gradient of another one.

    Second order and forward mode: derived, those of `like`. So are the gradients of variables and closures.

    Args:
        f: The function whose value is wanted: a step, a quantiser, an argmax.
        like: The function whose gradient is used. It takes the same arguments, and its outputs have the
            shapes of those of `f`.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> spike = pb.surrogate(lambda v: tf.cast(v > 0, v.dtype), like=tf.sigmoid)

    Do not use it where `f` has a useful derivative of its own.
    """
    require_functions("surrogate", "pb.surrogate(round, like=identity)", f=f, like=like)

    rule = rule_of(f, Intent("like", function=like))

    def refusal(found: str) -> SurrogateError:
        names = ", ".join(rule.signature.parameters)
        return SurrogateError.about(
            rule.where,
            found=found,
            expected=f"the arguments of the function: ({names})",
            why="both are called with the same arguments",
            fix=f"pb.surrogate(f, like=lambda {names}: {name_of(like)}(…))",
        )

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        host = plan.host
        outputs, values = values_of(plan, tensors)
        args, kwargs = plan.arguments(tensors)
        smooth = takes.run(host, like, args, kwargs, plan.where, refusal)
        _require_structure(plan, outputs, smooth, name_of(like))
        sources = [leaf for leaf in tree.flatten(smooth)[0] if host.is_tensor(leaf)]
        require_same(plan, values, sources, f"that of `{name_of(like)}`", like)
        return Graft(plan, outputs, len(values), pass_on).applied(values, sources)

    return without_pushforward(made_of(function_of(rule, apply), f, like))


def _require_structure(plan: Plan, outputs: Outputs, smooth: Any, like: str) -> None:
    """Refuse a surrogate that returns another structure than the function."""
    leaves, structure = tree.flatten(smooth)
    have = tree.unflatten(structure, [plan.host.is_tensor(leaf) for leaf in leaves])
    want = tree.unflatten(outputs.tree, [static is TENSOR for static in outputs.statics])
    if have != want:
        raise SurrogateError.about(
            plan.where,
            found=f"`{like}` returns {_shown(have)}, the function {_shown(want)}",
            expected="the same outputs of both",
            fix="choose the outputs inside `like`",
        )


def _shown(outputs: Any) -> str:
    if not tree.is_container(outputs):
        return "one tensor" if outputs else "no tensor"
    return f"a {type(outputs).__name__} of {len(outputs)}"


def require_same(
    plan: Plan,
    values: Sequence[Tensor],
    sources: Sequence[Tensor],
    source: str,
    like: Function | None = None,
) -> None:
    """Refuse a source, which is an argument or what `like` gives, that cannot take a value's cotangent."""
    host = plan.host
    for value, other in zip(values, sources):
        have, want = host.spec(other), host.spec(value)
        known = have.shape is not None and want.shape is not None
        if not host.differentiable(value):
            fix = f"cast the output to {have.dtype}"
        elif known and not same_shape(have.shape or (), want.shape or ()):
            fix = "pb.surrogate(f, like=…), with a function that has the shape of the output"
            if like is not None:
                fix = f"make `{name_of(like)}` return shape {show_shape(want.shape or ())}"
        else:
            continue
        raise SurrogateError.about(
            plan.where,
            found=f"its output is {want}, and {source} is {have}",
            expected="both floating, and of one shape",
            why="the cotangent of the one is handed to the other",
            fix=fix,
        )


def pass_on(graft: Graft, tensors: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
    """Hand the cotangents of the values to the sources, one to one."""
    host, sources = graft.host, tensors[graft.count :]
    handed = [c if host.fit([c], [x]) else host.conform(c, x) for c, x in zip(cotangents, sources)]
    return [None] * graft.count + handed
