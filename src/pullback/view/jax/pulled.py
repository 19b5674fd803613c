"""Listening to the gradients of JAX's own rules: with which cotangents a `custom_vjp` is transposed.

JAX knows which cotangents are nothing but zeros, and fills those in before it calls the user's function. So
both are listened to: the transposition, which knows the zeros, and what it calls, which knows the rule. What
calls the user's function forward is told which arguments a gradient flows to. A `custom_jvp` is transposed
operation by operation, and nobody can tell.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.patched import patched
from pullback.view.native import Listener, Native

TRANSPOSES = "jax._src.interpreters.ad"


class _Zeros(threading.local):
    """Hold which cotangents of the transposition that runs here are zeros, as JAX knows it."""

    known: Sequence[bool] = ()


_zeros = _Zeros()


@contextlib.contextmanager
def transposing(module: Any) -> Iterator[None]:
    """Take note of the zeros of each transposition."""
    table, key = module.primitive_transposes, getattr(module, "custom_lin_p", None)
    transpose = table.get(key)
    if transpose is None:  # another version, built otherwise
        yield
        return

    @functools.wraps(transpose)
    def noting(cts_out: Any, *args: Any, **params: Any) -> Any:
        before, _zeros.known = _zeros.known, [type(ct) is module.Zero for ct in cts_out]
        try:
            return transpose(cts_out, *args, **params)
        finally:
            _zeros.known = before

    table[key] = noting
    try:
        yield
    finally:
        table[key] = transpose


def listening(
    listener: Listener, module: Any, who: Callable[[Any], Native]
) -> contextlib.AbstractContextManager[None]:
    """Tell of every transposition of a rule; `who` describes it."""
    flatten, ahead = (getattr(module, name, None) for name in ("_flatten_bwd", "_flatten_fwd"))
    if flatten is None or ahead is None:
        return contextlib.nullcontext()

    def heard(bwd: Any, rule: Any, out_trees: Any, *args: Any) -> Any:
        count = out_trees()[0].num_leaves
        zeros = _zeros.known if len(_zeros.known) == count else [False] * count
        given = [None if zero else ct for zero, ct in zip(zeros, args[len(args) - count :])]
        listener.pulled(lambda: who(rule), lambda: given)
        return bwd(*args)

    @functools.wraps(flatten)
    def flatten_bwd(bwd: Any, in_tree: Any, in_avals: Any, out_trees: Any) -> Any:
        rule = sys._getframe(1).f_locals.get("self")
        flat = flatten(bwd, in_tree, in_avals, out_trees)
        return flat if rule is None else flat.wrap(heard, (rule, out_trees), None)

    def told(fwd: Any, rule: Any, *args: Any) -> Any:
        moves = [bool(moves) for moves in args[1::2]]  # beside each argument
        listener.moved(lambda: who(rule), lambda: moves)
        return fwd(*args)

    @functools.wraps(ahead)
    def flatten_fwd(*args: Any) -> Any:
        rule = sys._getframe(1).f_locals.get("self")
        flat, trees = ahead(*args)
        return (flat if rule is None else flat.wrap(told, (rule,), None)), trees

    return patched(module, _flatten_bwd=flatten_bwd, _flatten_fwd=flatten_fwd)
