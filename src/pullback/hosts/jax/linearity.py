"""Whether a traced function is linear in its arguments: proven from its program, for every value.

Each variable is followed from the arguments on. It is linear in them, or known without them. An operation
that takes a linear variable must be one that is linear in it, and nothing but a zero may be added to it. What
is measured at one value may be clipped at another, so nothing is measured.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from pullback.hosts.jax import kinds, tracing
from pullback.hosts.jax.programs import walk
from pullback.hosts.linear import LINEAR, NOT_LINEAR

# linear in everything they take that is no index
# fmt: off
_MAPS = {
    "all_gather", "all_gather_invariant", "all_to_all", "broadcast", "broadcast_in_dim", "conj",
    "convert_element_type", "copy", "copy_p", "cumsum", "device_put", "dynamic_slice", "expand_dims",
    "fft", "gather", "imag", "mesh_cast", "neg", "optimization_barrier", "pbroadcast", "pcast",
    "ppermute", "psum", "psum2", "psum_invariant", "psum_scatter", "pvary", "real", "reduce_precision",
    "reduce_scatter", "reduce_sum", "reduce_window_sum", "reshape", "reshard", "rev",
    "sharding_constraint", "slice", "split", "squeeze", "transpose", "unreduced_psum",
}
# fmt: on
# linear in all of these together: which of their operands are no indices
_SUMS = {
    "add": slice(None),
    "add_any": slice(None),
    "complex": slice(None),
    "concatenate": slice(None),
    "dynamic_update_slice": slice(0, 2),
    "pad": slice(None),
    "scatter": slice(0, None, 2),
    "scatter-add": slice(0, None, 2),
    "scatter-sub": slice(0, None, 2),
    "select_n": slice(1, None),
    "stack": slice(None),
    "sub": slice(None),
}
# linear in one of these while the others are known
_PRODUCTS = {
    "conv_general_dilated": (0, 1),
    "div": (0,),
    "dot_general": (0, 1),
    "mul": (0, 1),
    "ragged_dot_general": (0, 1),
    "triangular_solve": (1,),
}
CALLS = (*kinds.JITTED, "checkpoint", "remat", "remat2", "shard_map")
RULES = (*kinds.NATIVE, "pullback_call", "pullback_output")


class UnprovenError(Exception):
    """A function is not linear, or nothing tells that it is."""


class Known:
    """A variable that does not depend on the arguments."""

    def __init__(self, zero: Callable[[], bool]) -> None:
        self.is_zero = zero


Flow = Known | None  # None: linear in the arguments
_SOMETHING = Known(lambda: False)


def judge(jaxpr: Any, consts: Sequence[Any]) -> tuple[str, bool]:
    """Tell whether a program is linear in what follows its constants, or why that is not known.

    Tells also whether a rule stands in it, which JAX differentiates and does not transpose.
    """
    rules: list[str] = []
    flows: list[Flow] = [*map(_constant, consts)]
    flows += [None] * (len(jaxpr.invars) - len(consts))
    try:
        for flow in _follow(jaxpr, flows, rules):
            _joined([None, flow])
    except UnprovenError as found:
        return str(found), bool(rules)
    return LINEAR, bool(rules)


def _constant(value: Any) -> Known:
    return _SOMETHING if isinstance(value, jax.core.Tracer) else Known(lambda: _is_zero(value))


def _is_zero(value: Any) -> bool:
    kind = getattr(value, "dtype", None)
    if kind is not None and not jnp.issubdtype(kind, np.number):
        return False
    return not np.any(np.asarray(value))


def _joined(flows: Sequence[Flow]) -> Flow:
    """Give what a variable is that may be either of these: nothing but a zero goes with what is linear."""
    known = [flow for flow in flows if flow is not None]
    if len(known) == len(flows):
        return Known(lambda: all(flow.is_zero() for flow in known))
    if not all(flow.is_zero() for flow in known):
        raise UnprovenError(NOT_LINEAR)
    return None


def _follow(program: Any, flows: Sequence[Flow], rules: list[str]) -> list[Flow]:
    """Follow the variables of a program from its arguments to its results."""
    jaxpr = getattr(program, "jaxpr", program)
    consts = getattr(program, "consts", None) or [None] * len(jaxpr.constvars)
    known = [_SOMETHING if value is None else _constant(value) for value in consts]
    return walk(jaxpr, [*known, *flows], functools.partial(_through, rules=rules), _constant)


def _through(equation: Any, flows: list[Flow], rules: list[str]) -> Sequence[Flow]:
    name, count = equation.primitive.name, len(equation.outvars)
    moving = [i for i, flow in enumerate(flows) if flow is None]
    if name in _SUMS:
        return [_joined(flows[_SUMS[name]])]
    if not moving:
        factors = [flow for flow in flows if flow is not None]
        some = any if name in _PRODUCTS else all
        follows = name in _MAPS or name in _PRODUCTS
        return [Known(lambda: follows and some(flow.is_zero() for flow in factors))] * count
    if name in _MAPS:
        if moving != [0] and len(flows) > 1 and name not in ("optimization_barrier", "psum"):
            raise UnprovenError(NOT_LINEAR)
        if not all(jnp.issubdtype(variable.aval.dtype, np.inexact) for variable in equation.outvars):
            raise UnprovenError(NOT_LINEAR)  # a rounding
        return flows if count == len(flows) else [None] * count
    if name in _PRODUCTS:
        if len(moving) > 1 or moving[0] not in _PRODUCTS[name]:
            raise UnprovenError(NOT_LINEAR)
        return [None]
    inner = next(_inner(equation, flows, rules), None)
    if inner is None:
        opaque = equation.primitive not in ad.primitive_jvps or "callback" in name or "foreign" in name
        raise UnprovenError(f"not known to be linear (it goes through `{name}`)" if opaque else NOT_LINEAR)
    return inner


def _inner(equation: Any, flows: list[Flow], rules: list[str]) -> Iterator[Sequence[Flow]]:
    """Follow variables through the programs inside an operation, if it is one that has them."""
    name, params = equation.primitive.name, equation.params
    if name in CALLS:
        yield _follow(kinds.function(equation), flows, rules)
    elif name in RULES:
        rules.append(name)
        yield _through_rule(equation, flows, rules)
    elif name == "cond" and flows[0] is not None:
        branches = [_follow(branch, flows[1:], rules) for branch in params["branches"]]
        yield [_joined(results) for results in zip(*branches)]
    elif name == "scan":
        first, count = tracing.loop_counts(params)
        last = first + count
        carried = flows[first:last]
        while True:  # until a step changes nothing: each goes once from zero to something, or to linear
            results = _follow(params["jaxpr"], [*flows[:first], *carried, *flows[last:]], rules)
            after = [_joined([a, b]) for a, b in zip(carried, results)]
            if [a and a.is_zero() for a in after] == [a and a.is_zero() for a in carried]:
                break
            carried = after
        yield [*after, *results[len(after) :]]
    elif name == "custom_linear_solve" and None not in flows[: sum(params["const_lengths"])]:
        yield [_joined([None, *flows[sum(params["const_lengths"]) :]])] * len(equation.outvars)
    elif name == "pullback_linear":
        yield _derivative(equation, flows, rules)


def _derivative(equation: Any, flows: list[Flow], rules: list[str]) -> Sequence[Flow]:
    """Follow variables through a derivative: linear in its tangents, and whatever it is in its residuals."""
    derivative = equation.params["derivative"]
    if all(flow is not None for flow in flows[: derivative.count]):
        for flow in flows[derivative.count :]:
            _joined([None, flow])
        return [None] * len(equation.outvars)
    rules.append(equation.primitive.name)
    return _through_rule(equation, flows, rules)


def _through_rule(equation: Any, flows: list[Flow], rules: list[str]) -> Sequence[Flow]:
    if equation.primitive.name == "pullback_output":
        return flows[: equation.params["counts"][0]]
    program, consts = rule_program(equation)
    return _follow(program, [*map(_constant, consts), *flows], rules)


def rule_program(equation: Any) -> tuple[Any, Sequence[Any]]:
    """Give the program of what a rule computes, and what it takes before its operands."""
    name, params = equation.primitive.name, equation.params
    types = [atom.aval for atom in equation.invars]
    if name == "pullback_call":
        return params["program"].of_types(types, params["name"])[:2]
    if name == "pullback_linear":
        derivative = params["derivative"]
        return tracing.trace(derivative, types, derivative.operation.name)[:2]
    return kinds.function(equation), ()
