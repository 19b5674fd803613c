"""One cotangent against its input: its dtype, its shape, and the words when they do not agree."""

from __future__ import annotations

from typing import Any, cast

from pullback import hosts
from pullback.errors import CotangentDtypeError, CotangentShapeError
from pullback.hosts import Role
from pullback.hosts.base import Host, Spec, Tensor, Traces, broadcast_axes, show_shape


def conform(cotangent: Any, like: Tensor, host: Host, where: str, what: str) -> Tensor:
    """Check one cotangent against its input, and cast it to the input's dtype."""
    want = host.spec(like)
    if hosts.role(type(cotangent)) is Role.STATIC and not isinstance(cotangent, (int, float)):
        raise CotangentDtypeError.about(
            where,
            found=f"`grad` returned a {type(cotangent).__name__} for {what}",
            expected=f"a tensor: {want}",
            fix="return a tensor, or None for no gradient",
        )
    have = want._replace(shape=()) if isinstance(cotangent, (int, float)) else host.spec(cotangent)
    _check_dtype(have, want, where, what)
    _check_shape(have, want, where, what)
    conformed = host.conform(cotangent, like)
    if _known(have.shape) and _known(want.shape):
        return conformed
    return cast(Traces, host).require_shape(
        conformed, like, _said_later(where, what), f"cotangent of {what.split('`')[1]} of {where.split()[0]}"
    )


def _check_dtype(have: Spec, want: Spec, where: str, what: str) -> None:
    if have.kind == "complex" and want.kind == "floating":
        raise CotangentDtypeError.about(
            where,
            found=f"`grad` returned {have.dtype} for {what}, which is {want.dtype}",
            expected="a real cotangent for a real input",
            why="the imaginary part would be thrown away",
            fix="take the real part in `grad`",
        )
    if have.kind not in ("floating", "complex"):
        raise CotangentDtypeError.about(
            where,
            found=f"`grad` returned {have.dtype} for {what}, which is {want.dtype}",
            expected=f"{want.dtype}, or a floating dtype that can be cast to it",
            fix="cast it, or return None for no gradient",
        )


def _check_shape(have: Spec, want: Spec, where: str, what: str) -> None:
    if have.shape is None or want.shape is None or _same(have.shape, want.shape):
        return
    name = what.split("`")[1]
    axes = broadcast_axes(have.shape, want.shape)
    if axes is not None:
        plural = "axis" if len(axes) == 1 else "axes"
        listed = ", ".join(map(str, axes))
        why = f"`{name}` was broadcast along {plural} {listed}: its cotangent is summed there"
        fix = f"return pb.unbroadcast(d{name}, like={name})"
    elif broadcast_axes(want.shape, have.shape) is not None:
        why = "it would be broadcast later into plausible wrong numbers"
        fix = "multiply by the cotangent that `grad` was given; do not sum or average over it"
    elif sorted(have.shape, key=str) == sorted(want.shape, key=str):
        why, fix = "the axes are in another order", f"transpose it back to the order of `{name}`"
    else:
        why, fix = "", f"return a cotangent of shape {show_shape(want.shape)}"
    raise CotangentShapeError.about(
        where,
        found=f"`grad` returned shape {show_shape(have.shape)} for {what} of shape {show_shape(want.shape)}",
        expected=f"shape {show_shape(want.shape)}: a cotangent has its input's shape",
        why=why,
        fix=fix,
    )


def _known(shape: tuple[int | None, ...] | None) -> bool:
    return shape is not None and None not in shape


def _said_later(where: str, what: str) -> str:
    """Say what will be wrong, if the shapes turn out to differ when the program runs."""
    name = what.split("`")[1]
    return str(
        CotangentShapeError.about(
            where,
            found=f"`grad` returned another shape for {what} than the shape of `{name}`",
            expected="a cotangent has its input's shape",
            fix=f"return pb.unbroadcast(d{name}, like={name}), if `{name}` was broadcast",
        )
    )


def _same(a: tuple[int | None, ...], b: tuple[int | None, ...]) -> bool:
    return len(a) == len(b) and all(m is None or n is None or m == n for m, n in zip(a, b))
