"""Outside judges on every rule: PyTorch's `gradcheck` and `gradgradcheck`, JAX's `check_grads`.

They compare a gradient with differences of the same function. So a rule that claims to be the derivative is
judged as it is; one that claims to be that of another function has the values of that function put in place
of its own, and keeps its gradient; one that differs on purpose claims nothing that could be judged.

`opcheck` judges operators of `torch.library`. A rule is none: it is recorded by autograd, and inlined by
`torch.compile`. So it has nothing to judge here.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import known
import pytest
import torch
from conformance_cases import CASES
from conformance_hosts import HOSTS, Only
from jax.test_util import check_jvp, check_vjp

# their gradients are None for an argument that the values depend on
CUT = {"stop_gradient", "scale_gradient-1"}
JUDGED = [
    name for name, case in CASES.items() if case.intent.kind != "differs" and not name.startswith(tuple(CUT))
]
ONCE = {name for name in JUDGED if CASES[name].rule.order == 1}


def subject(name: str, host: str) -> Only:
    """Give the rule with the values of the function whose derivative it claims to be."""
    case, asked = CASES[name], HOSTS[host]
    rule = case.flat(case.function(host))
    if case.intent.kind == "exact":
        return asked.only(rule, case.arrays, case.moving)
    like = case.flat(case.intent.function)

    def judged(*tensors):
        # the gradient of y, the value of `like`: y + (like − y), the bracket cut off
        return [y + stop(z - y) for y, z in zip(rule(*tensors), like(*tensors))]

    def stop(x):
        from pullback import hosts

        return hosts.of(x).arrays.stop(x)

    return asked.only(judged, case.arrays, case.moving)


@pytest.mark.parametrize("name", JUDGED)
def test_gradcheck_of_pytorch(name):
    only = subject(name, "torch")
    if CASES[name].intent.kind != "exact":
        # `gradcheck` would follow the cut in forward mode too; backward is what it judges
        assert torch.autograd.gradcheck(lambda *xs: tuple(only(*xs)), HOSTS["torch"].leaves(only))
        return
    assert torch.autograd.gradcheck(
        lambda *xs: tuple(only(*xs)), HOSTS["torch"].leaves(only), check_forward_ad=name not in ONCE
    )


@pytest.mark.parametrize("name", [name for name in JUDGED if name not in ONCE])
def test_gradgradcheck_of_pytorch(name):
    only = subject(name, "torch")
    known.hold(
        "torch",
        name,
        "gradgradcheck",
        lambda: torch.autograd.gradgradcheck(lambda *xs: tuple(only(*xs)), HOSTS["torch"].leaves(only)),
    )


def in_one_program(functions):
    """Compile functions together, each with arguments that it may take: one by one costs twice as much."""
    together = jax.jit(lambda given: [f(*args) for (f, _), args in zip(functions, given)])
    given = [args for _, args in functions]

    def alone(place):
        return lambda *args: together([*given[:place], args, *given[place + 1 :]])[place]

    return [alone(place) for place in range(len(functions))]


def pushed(f):
    return lambda args, moved: jax.jvp(f, args, moved)


def pulled(f):
    return lambda args, dys: jax.vjp(f, *args)[1](dys)


def of_values(f, pull):
    """Give the function that `check_grads` differentiates again: the pullback of the values themselves."""
    return lambda *xs: pull(xs, f(*xs))


def with_pullback(f, pull, *xs):
    return f(*xs), functools.partial(pull, xs)


def check_grads(f, xs, order):
    """Judge as JAX's `check_grads` does in both modes; at order 2, what both modes give is judged again."""
    ys = jax.eval_shape(f, *xs)
    judged = [(f, xs, ys)]
    if order == 2:
        judged += [(pushed(f), (xs, xs), (ys, ys)), (of_values(f, pulled(f)), xs, xs)]
    asked = [(f, xs)]
    for g, args, outputs in judged:
        dys = jax.tree.map(lambda y: jnp.zeros(y.shape, y.dtype), outputs)
        asked += [(pushed(g), (args, args)), (pulled(g), (args, dys))]
    f, *derivatives = in_one_program(asked)
    values = [f, derivatives[0], of_values(f, derivatives[1])]
    for g, push, pull, (_, args, _) in zip(values, derivatives[::2], derivatives[1::2], judged):
        check_jvp(g, push, args)
        check_vjp(g, functools.partial(with_pullback, g, pull), args)


@pytest.mark.parametrize("name", [name for name in JUDGED if CASES[name].intent.kind == "exact"])
def test_check_grads_of_jax(name):
    only = subject(name, "jax")
    order = 1 if name in ONCE else 2
    HOSTS["jax"].checked(lambda: check_grads(lambda *xs: only(*xs), tuple(only.moving), order))
