"""One cotangent against its input: its framework, dtype and shape, and the words when they do not agree.

The words name the function that returned it, whatever it is called: a user of `with_gradient` has no `grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pullback import hosts
from pullback.errors import CotangentDtypeError, CotangentShapeError, HostError
from pullback.hosts import Role
from pullback.hosts.base import Host, Traces
from pullback.hosts.numpy import HOST as NUMPY
from pullback.hosts.operation import Tensor
from pullback.hosts.refusals import no_numbers
from pullback.hosts.specs import Spec, broadcast_axes, same_shape, show_shape
from pullback.rule import at, name_of, shown_signature, source_of


def conform(
    cotangent: Any,
    like: Tensor,
    host: Host,
    where: str,
    what: str,
    grad: Callable[..., Any],
    optional: bool = True,
) -> Tensor:
    """Check one cotangent, which `grad` returned, against its input, and cast it to the input's dtype.

    `optional` says whether there could have been none.
    """
    want, who = host.spec(like), shown(grad)
    number = require_tensor(cotangent, host, where, who, what, f"a tensor: {want}", optional)
    have = want._replace(shape=()) if number else host.spec(cotangent)
    _check_dtype(have, want, where, what, who, optional)
    _check_shape(have, want, where, what, grad)
    conformed = host.conform(cotangent, like)
    if _known(have.shape) and _known(want.shape):
        return conformed
    label = f"cotangent of {what.split('`')[1]} of {where.split()[0]}"
    return cast(Traces, host).require_shape(conformed, like, _said_later(where, what, grad), label)


def require_tensor(
    value: Any, host: Host, where: str, who: str, what: str, expected: str, optional: bool
) -> bool:
    """Refuse what is neither a tensor of the host, an array of numbers nor a number; tell the last."""
    role = hosts.role(type(value))
    if not isinstance(role, Role) and role is not host and host is not NUMPY:  # all are arrays to it
        raise HostError.about(
            where,
            found=f"{who} returned a {role.name} tensor for {what}, among {host.name} tensors",
            expected="tensors of the framework that the arguments are of",
            fix=f"compute it with {host.name}, or convert it",
        )
    own = host is NUMPY and role is Role.ARRAY and value.dtype.kind in "fc"
    words = no_numbers(value) if role is Role.ARRAY and not own else ""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if words or (role in (Role.STATIC, Role.SYMBOL) and not number):
        raise CotangentDtypeError.about(
            where,
            found=f"{who} returned {f'an array of {words}' if words else described(value)} for {what}",
            expected=expected,
            fix="return a tensor" + (", or None for no gradient" if optional else ""),
        )
    return number


def shown(function: Callable[..., Any]) -> str:
    """Name a function in a sentence; one without a name by its place."""
    name = name_of(function)
    return f"`{name}`" if name != "<lambda>" else f"the {at('lambda', source_of(function))}"


def described(value: Any) -> str:
    """Say what a value is that is no tensor."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def cotangent_names(arguments: Iterable[str], grad: Callable[..., Any]) -> list[str]:
    """Choose names for the cotangents of arguments, none of which means something else in `grad`."""
    spelled = [argument.replace("[", "_").replace("]", "") for argument in arguments]
    known = shown_signature(grad)
    taken = {"dy", *(known.parameters if known else ())}
    prefix = "grad_" if taken & {f"d{name}" for name in spelled} else "d"
    return [prefix + name for name in spelled]


def _check_dtype(have: Spec, want: Spec, where: str, what: str, who: str, optional: bool) -> None:
    if have.kind == "complex" and want.kind == "floating":
        raise CotangentDtypeError.about(
            where,
            found=f"{who} returned {have.dtype} for {what}, which is {want.dtype}",
            expected="a real cotangent for a real input",
            why="the imaginary part would be thrown away",
            fix="take its real part",
        )
    if have.kind not in ("floating", "complex"):
        raise CotangentDtypeError.about(
            where,
            found=f"{who} returned {have.dtype} for {what}, which is {want.dtype}",
            expected=f"{want.dtype}, or a floating dtype that can be cast to it",
            fix="cast it" + (", or return None for no gradient" if optional else ""),
        )


def _check_shape(have: Spec, want: Spec, where: str, what: str, grad: Callable[..., Any]) -> None:
    if have.shape is None or want.shape is None or same_shape(have.shape, want.shape):
        return
    name = what.split("`")[1]
    axes = broadcast_axes(have.shape, want.shape)
    if axes is not None:
        plural = "axis" if len(axes) == 1 else "axes"
        listed = ", ".join(map(str, axes))
        why = f"`{name}` was broadcast along {plural} {listed}: its cotangent is summed there"
        fix = f"return pb.unbroadcast({cotangent_names([name], grad)[0]}, like={name})"
    elif broadcast_axes(want.shape, have.shape) is not None:
        why = "it would be broadcast later into plausible wrong numbers"
        fix = "multiply by the cotangent that it was given; do not sum or average over it"
    elif sorted(have.shape, key=str) == sorted(want.shape, key=str):
        why, fix = "the axes are in another order", f"transpose it back to the order of `{name}`"
    else:
        why, fix = "", f"return a cotangent of shape {show_shape(want.shape)}"
    raise CotangentShapeError.about(
        where,
        found=f"{shown(grad)} returned shape {show_shape(have.shape)} for {what} of shape "
        f"{show_shape(want.shape)}",
        expected=f"shape {show_shape(want.shape)}: a cotangent has its input's shape",
        why=why,
        fix=fix,
    )


def _known(shape: tuple[int | None, ...] | None) -> bool:
    return shape is not None and None not in shape


def _said_later(where: str, what: str, grad: Callable[..., Any]) -> str:
    """Say what will be wrong, if the shapes turn out to differ when the program runs."""
    name = what.split("`")[1]
    (given,) = cotangent_names([name], grad)
    return str(
        CotangentShapeError.about(
            where,
            found=f"{shown(grad)} returned another shape for {what} than the shape of `{name}`",
            expected="a cotangent has its input's shape",
            fix=f"return pb.unbroadcast({given}, like={name}), if `{name}` was broadcast",
        )
    )
