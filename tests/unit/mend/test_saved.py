"""A backward that needs what its forward did not keep: the hunk by which it is kept, or none."""

import ast

import numpy as np
import pytest

from pullback.mend.diff import edited
from pullback.mend.saved import saved
from pullback.mend.source import Source, functions
from pullback.mend.tree import exchanged, spans

TORCH = """class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        {keeps}
        return x * w

    @staticmethod
    def backward(ctx, d):
        {takes}
        return d * w, None
"""
SETUP = """class F(torch.autograd.Function):
    def forward(x, w):
        return x * w

    def setup_context(ctx, inputs, output):
        x, w = inputs

    def backward(c, d):
        return d * w, None
"""
JAX = """def fwd(x, w):
    return x * w, (x,{more})

def backward(kept, d):
    {takes} = kept
    return d * w, d * x

f.defvjp(fwd, backward)
"""


class Tensor:
    """Stand for one of PyTorch's."""

    detach = None


def torch_text(keeps, takes):
    return TORCH.format(keeps=keeps, takes=takes)


def found(text):
    source = Source("rules.py", text, ast.parse(text))
    backward = next(f for f in functions(source.tree) if getattr(f, "name", "") == "backward")
    return source, backward, saved(source, backward)


def mended(text, value):
    source, backward, known = found(text)
    tree = ast.Module([backward], [])
    changes, more = known.hunk(tree, {"w": value})
    every = (*spans(tree, exchanged(tree, changes), source), *more)
    return edited(text, tuple(sorted(every, key=lambda span: span.start)))


SAVE, TAKE = "ctx.save_for_backward(x)", "(x,) = ctx.saved_tensors"
CASES = {
    "one more name": (
        torch_text(SAVE, TAKE),
        Tensor(),
        ["ctx.save_for_backward(x, w)", "(x, w) = ctx.saved_tensors", "d * w,"],
    ),
    "no brackets": (
        torch_text(SAVE, "x, = ctx.saved_tensors"),
        Tensor(),
        ["        x, w = ctx.saved_tensors"],
    ),
    "taken by number": (
        torch_text(SAVE, "x = ctx.saved_tensors[0]"),
        Tensor(),
        ["backward(x, w)", "d * ctx.saved_tensors[1],"],
    ),
    "nothing kept": (
        torch_text("pass", "pass"),
        Tensor(),
        ["        ctx.save_for_backward(w)\n        return x * w", "d * ctx.saved_tensors[0],"],
    ),
    "a number": (torch_text(SAVE, TAKE), 3.0, ["        ctx.w = w\n        return x * w", "d * ctx.w,"]),
    "behind the forward": (
        SETUP,
        Tensor(),
        ["x, w = inputs\n        ctx.save_for_backward(w)\n", "d * c.saved_tensors[0],"],
    ),
    "Windows' newlines": (
        torch_text(SAVE, TAKE).replace("\n", "\r\n"),
        3.0,
        ["ctx.w = w\r\n        return x * w\r\n"],
    ),
    "residuals": (
        JAX.format(more="", takes="(x,)"),
        np.ones(2),
        ["x * w, (x, w,)", "(x, w) = kept", "d * w,"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_kept_too(name):
    text, value, parts = CASES[name]
    new = mended(text, value)
    ast.parse(new)
    assert all(part in new for part in parts), new


@pytest.mark.parametrize(
    "text",
    [
        torch_text("ctx.save_for_backward(*x)", TAKE),
        torch_text(SAVE, "f(*ctx.saved_tensors)"),
        torch_text(SAVE, "x, *rest = ctx.saved_tensors"),
        torch_text(f"{SAVE}; {SAVE}", TAKE),
        JAX.format(more="", takes="all"),
        JAX.format(more="", takes="(x,)").replace("(x,)\n", "x\n"),
        "def backward(d):\n    return d",
    ],
)
def test_what_is_not_plain_has_no_hunk(text):
    assert found(text)[2] is None


def test_of_pytorchs_forward_only_arguments_and_outputs_can_be_kept():
    text = torch_text("y = x * w; z = y + 1", "pass").replace("return x * w", "return y, x")
    source, _, known = found(text)
    space = {"torch": None}
    exec(compile(text.replace("torch.autograd.Function", "object"), source.file, "exec"), space)
    seen = {space["F"].forward.__code__: {"ctx": 0, "x": 1, "w": 2, "y": 3, "z": 4, "_": 5}}
    assert known.names(seen, {"ctx"}) == {"x": 1, "w": 2, "y": 3}
