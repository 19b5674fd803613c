"""Rules of JAX's and PyTorch's own makers are mended in their own words."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import WRONG, loaded

from pullback.mend.diff import edited
from pullback.mend.search import mend
from pullback.mend.seat import followed, ways

RULES = loaded(Path(__file__).with_name("native.py"))


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


CASES = {
    "matrix and bias": (
        RULES.Linear.apply,
        [torch.tensor(normal(*s)) for s in ((4, 3), (2, 3), (2,))],
        ["grad_w.transpose(-1, -2)", "d.sum(0)"],
    ),
    "a number that only ctx holds": (RULES.Scaled.apply, [torch.tensor(normal(5)), 3.0], ["ctx.k"]),
    "what the forward did not keep": (
        RULES.Grown.apply,
        [torch.tensor(normal(4)), torch.tensor(normal(5)[:4])],
        ["save_for_backward(w, x)", "(w, x) = ctx.saved_tensors", "d * torch.exp(x) * w, d * torch.exp(x)"],
    ),
    "residuals exchanged": (
        RULES.wave,
        [jnp.asarray(normal(4)), jnp.asarray(normal(5)[:4])],
        ["sin_y * d, x * cos_y * d"],
    ),
    "what a maker was handed": (
        RULES.handed,
        [torch.tensor(normal(4))],
        ["lambda x, d: d * (1 - torch.tanh(x) ** 2))"],
    ),
    "a function that backward calls": (RULES.Called.apply, [torch.tensor(normal(4))], ["return 1 - y * y"]),
    "a forward that calls its own rule": (RULES.norm, [jnp.asarray(normal(4))], ["return (d * x / y,)"]),
    "what the forward keeps is between input and output": (
        RULES.Between.apply,
        [torch.tensor(normal(5)), 3.0],
        [
            "save_for_backward(t, x)",
            "t = torch.tanh(x / ctx.scale)\n        return d * (1 - t * t),",
        ],
    ),
    "a number where ctx has a name": (
        RULES.Elu.apply,
        [torch.tensor(normal(6)), 1.5],
        ["d * (y + ctx.alpha)"],
    ),
    "a factor of one tangent among several": (
        RULES.grown,
        [jnp.asarray(normal(4)), jnp.asarray(normal(5)[:4])],
        ["x, p), dx * jnp.exp(p) + ", " * jnp.exp(p)"],
    ),
    "a divisor inside of a call": (
        RULES.ScatterMean.apply,
        [torch.tensor(normal(5, 2)), torch.tensor([0, 1, 0, 2, 1])],
        ["(d / count[..., None]).index_select(0, index)"],
    ),
    "an operator": (RULES.cubed, [torch.tensor(normal(4))], ["return d * 3 * x * x"]),
    "a shift in the other direction": (
        RULES.Rolled.apply,
        [torch.tensor(normal(2, 5)), 2],
        ["torch.roll(d, -ctx.steps, dims=-1)"],
    ),
    "an index twice": (
        RULES.Rows.apply,
        [torch.tensor(normal(4, 3)), torch.tensor([1, 3, 1])],
        ["out.index_put_((index,), d, accumulate=True)"],
    ),
    "two names in one line of the forward": (
        RULES.Cosine.apply,
        [torch.tensor(normal(3, 4)), torch.tensor(normal(4, 3).reshape(3, 4))],
        ["na = a.norm(dim=-1, keepdim=True)", "nb = b.norm(dim=-1, keepdim=True)"],
    ),
    "what the forward changed in place stays kept": (
        RULES.Smoothed.apply,
        [torch.tensor(normal(4, 3)), torch.tensor([0, 2, 1, 1])],
        ["logp = torch.log_softmax(logits, -1)", "torch.exp(logp)"],
    ),
    "no second order is promised": (
        RULES.Once.apply,
        [torch.tensor(normal(4))],
        ["ctx.save_for_backward(s)", " / s.numel()"],
    ),
    "a value of the module has the name of an argument": (
        RULES.Apart.apply,
        [torch.tensor(normal(4)), torch.tensor(normal(5)[:4])],
        ["save_for_backward(gap, a, b)", "gap = a - b", "3 * -d * gap**2"],
    ),
    "a sum from the other end": (
        RULES.Running.apply,
        [torch.tensor(normal(4)), torch.tensor(normal(5)[:4])],
        ["back = torch.cumsum(d.flip(0), -1).flip(0)"],
    ),
    "one triangle": (
        RULES.Whitened.apply,
        [torch.tensor([[1.5, 0, 0], [0.3, 1.2, 0], [-0.4, 0.2, 0.9]]), torch.tensor(normal(3, 2))],
        ["torch.tril(-db @ x.mT), db"],
    ),
    "a first order, and what it keeps": (
        RULES.Focal.apply,
        [torch.tensor(normal(4, 3)), torch.tensor([0, 2, 1, 1])],
        ["p = torch.softmax(logits, -1)", "save_for_backward(p, pt, target, logits)", " / p.shape[0]"],
    ),
    "a size that is written into it, of many examples": (
        RULES.Largest.apply,
        [torch.tensor(normal(2000, 3))],
        ["return d[:, None] * torch.nn.functional.one_hot(i, x.shape[1])"],
    ),
    "a shape in a context that is written beside": (
        RULES.Pooled.apply,
        [torch.tensor(normal(2, 6))],
        ["out.scatter_(-1, i.unsqueeze(-1), d.unsqueeze(-1))"],
    ),
    "a size that is written into it, beside what is wrong": (
        RULES.Largest.apply,
        [torch.tensor(normal(2, 3))],
        ["return d[:, None] * torch.nn.functional.one_hot(i, x.shape[1])", "save_for_backward(i, x)"],
    ),
    "the step of a loop": (
        RULES.Decayed.apply,
        [torch.tensor(normal(4))],
        ["return carried * 0.25 + part"],
    ),
    "a part along one axis": (RULES.Padded.apply, [torch.tensor(normal(3, 4))], ["d[:, 2:-1]"]),
    "a scan in the other direction": (
        RULES.halved,
        [jnp.asarray(normal(4))],
        ["jax.lax.scan(lambda y, part: (0.5 * y + part,) * 2, 0.0, d, reverse=True)[1]"],
    ),
    "a number of the forward": (RULES.Swish.apply, [torch.tensor(normal(5))], ["1.7 * x)\n        return d"]),
    "factor": (RULES.square, [jnp.asarray(normal(4))], ["d * 2 * x"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_native_rule_is_mended(name):
    function, at, parts = CASES[name]
    found = mend(function, tuple(at), {}, WRONG, budget=20.0)
    assert found.patches, (found.refused, found.tried)
    text = edited(found.patches[0].text, found.patches[0].spans)
    assert all(part in text for part in parts), text


def test_an_edit_that_mends_the_first_order_alone_says_so():
    found = mend(RULES.Rooted.apply, (torch.tensor(normal(4)),), {}, WRONG, budget=4.0)
    (patch,) = found.patches
    assert patch.order == 1
    assert patch.rest == "its second order stays wrong"


def test_an_edit_that_overflows_where_the_rule_does_not_is_no_patch():
    found = mend(RULES.Softened.apply, (torch.tensor(normal(4)),), {}, WRONG, budget=10.0)
    assert not any("cosh" in edited(patch.text, patch.spans) for patch in found.patches)


def opened(function, *ran):
    return [followed(function, way).__name__ for way in ways(function, ran)]


def test_what_a_maker_was_handed_is_open_and_the_maker_is_not():
    assert opened(RULES.handed.__self__.backward) == ["<lambda>"]
    # … unless the forward ran it: then it is no gradient.
    assert opened(RULES.Twice.__self__.backward, RULES.backward_of_two.__code__) == ["backward"]


def test_a_function_is_open_beside_the_gradient_only_if_nothing_else_uses_it():
    assert opened(RULES.Called.backward) == ["backward", "slope"]
    assert opened(RULES.Other.backward) == ["backward"]
    assert opened(RULES.Twice.__self__.backward) == []
