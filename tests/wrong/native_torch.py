"""Rules written with PyTorch's own classes: code that never heard of pullback."""

import numpy as np
import torch
from table import Table

torch.set_num_threads(1)  # many small calls: more threads only wait for each other
zoo = Table(torch.as_tensor)
X, Y = zoo.normal(5), zoo.positive(5, seed=1)
M, B = zoo.normal(4, 3), zoo.normal(3, seed=2)
Z = zoo.complexes(4)


def function(forward, backward):
    """Make an autograd.Function that keeps its inputs: the modern style, with `setup_context`."""

    class Function(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

    Function.forward = staticmethod(forward)
    Function.backward = staticmethod(lambda ctx, *d: backward(ctx.saved_tensors, *d))
    return Function.apply


def unary(forward, backward):
    return function(lambda x: forward(x), lambda kept, d: backward(kept[0], d))


def old_style(forward, backward):
    """Make an autograd.Function whose forward takes `ctx`, and keeps what it likes."""

    class Function(torch.autograd.Function):
        pass

    Function.forward = staticmethod(forward)
    Function.backward = staticmethod(backward)
    return Function.apply


def sine_keeping_cosine(ctx, x):
    ctx.save_for_backward(torch.cos(x))
    return torch.sin(x)


def double_in_place(ctx, x):
    x.mul_(2)
    return x * 1


def sine(ctx, x):
    ctx.save_for_backward(x)
    return torch.sin(x)


def upstream_in_place(ctx, d):
    (x,) = ctx.saved_tensors
    return d.mul_(torch.cos(x))


def square_of_numpy(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def in_numpy(ctx, d):
    (x,) = ctx.saved_tensors
    return torch.from_numpy(np.asarray(2 * x.detach().numpy())) * d


# ── wrong ────────────────────────────────────────────────────────────────────────────────────────────────

zoo.wrong("upstream ignored", unary(torch.sin, lambda x, d: torch.cos(x)), X, cause="upstream-ignored")
zoo.wrong(
    "upstream squared", unary(torch.exp, lambda x, d: d * d * torch.exp(x)), X, cause="upstream-nonlinear"
)
zoo.wrong(
    "weight decay in the gradient",
    unary(torch.tanh, lambda x, d: d * (1 - torch.tanh(x) ** 2) + 0.01 * x),
    X,
    cause="upstream-additive",
)
zoo.wrong(
    "upstream averaged", unary(torch.square, lambda x, d: d.mean() * 2 * x), X, cause="upstream-replaced"
)
zoo.wrong("sign of the cosine", unary(torch.cos, lambda x, d: d * torch.sin(x)), X, cause="sign")
zoo.wrong("two forgotten", unary(torch.square, lambda x, d: d * x), X, cause="constant-factor")
zoo.wrong("square forgotten", unary(lambda x: x**3, lambda x, d: d * 3 * x), X, cause="missing-factor")
zoo.wrong(
    "tanh of the input", unary(torch.tanh, lambda x, d: d * (1 - x * x)), X, cause="evaluated-at-output"
)
zoo.wrong("branch turned round", unary(torch.relu, lambda x, d: d * (x < 0)), X, cause="wrong-region")
zoo.wrong(
    "straight through", unary(torch.exp, lambda x, d: d), X, cause=("straight-through", "missing-factor")
)
zoo.wrong(
    "product swapped",
    function(lambda x, y: x * y, lambda kept, d: (d * kept[0], d * kept[1])),
    X,
    Y,
    cause="inputs-swapped",
)
zoo.wrong(
    "bias of the first row",
    function(lambda x, b: x + b, lambda kept, d: (d, d[0])),
    M,
    B,
    cause="broadcast-not-reduced",
)
zoo.wrong(
    # PyTorch sums the extra axis in silence: the number is wrong, and only the rule itself shows why
    "scale not summed, and doubled",
    function(lambda x, w: x * w, lambda kept, d: (d * kept[1], 2 * d * kept[0])),
    M,
    B,
    cause="constant-factor",
)
zoo.wrong(
    "matrix transposed",
    function(lambda a, b: a @ b, lambda kept, d: ((d @ kept[1].T).T, kept[0].T @ d)),
    M,
    zoo.normal(3, 2, seed=3),
    cause="transposed",
)
zoo.wrong(
    "softmax without its sum",
    unary(lambda x: torch.softmax(x, -1), lambda x, d: d * torch.softmax(x, -1)),
    M,
    cause="missing-term",
)
zoo.wrong("conjugate missing", unary(lambda z: z * z, lambda z, d: d * 2 * z), Z, cause="conjugate-missing")
zoo.wrong(
    "saved intermediate",
    old_style(sine_keeping_cosine, lambda ctx, d: d * ctx.saved_tensors[0]),
    X,
    cause="residual-constant",
)
zoo.wrong("input changed in place", old_style(double_in_place, lambda ctx, d: 2 * d), X, cause="mutation")
zoo.wrong("upstream changed in place", old_style(sine, upstream_in_place), X, cause="mutation")
zoo.wrong(
    "second output forgotten",
    function(lambda x: (torch.sin(x), torch.exp(x)), lambda kept, a, b: a * torch.cos(kept[0])),
    X,
    cause="output-cotangent",
)
zoo.wrong(
    "repeated index overwritten",
    function(
        lambda x, i: x[i],
        lambda kept, d: (torch.zeros_like(kept[0]).index_copy(0, kept[1], d), None),
    ),
    X,
    torch.tensor([0, 2, 2, 4]),
    cause="repeated-index",
)
zoo.wrong("another number of gradients", unary(torch.sin, lambda x, d: (d, d)), X, cause="pullback-raises")
_half = unary(torch.square, lambda x, d: d * x)
zoo.wrong("inside a loss", lambda x: torch.sum(_half(x)) / 5, X, cause="constant-factor")


class Scale(torch.nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.weight = torch.nn.Parameter(zoo.normal(5, seed=4))
        self.rule = function(lambda x, y: x * y, lambda kept, d: (d * kept[1], factor * d * kept[0]))

    def forward(self, x):
        return self.rule(x, self.weight)


zoo.wrong("the weight of a module", Scale(2.0), X, cause="constant-factor")


@torch.library.custom_op("zoo::third", mutates_args=())
def third(x: torch.Tensor) -> torch.Tensor:
    return x**3


third.register_autograd(
    lambda ctx, d: d * 3 * ctx.x, setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0])
)
zoo.wrong("an operator of a library", third, X, cause="missing-factor")

# ── right ────────────────────────────────────────────────────────────────────────────────────────────────

zoo.right(
    "softplus", unary(lambda x: torch.logaddexp(x, torch.zeros_like(x)), lambda x, d: d * torch.sigmoid(x)), X
)
zoo.right("relu", unary(torch.relu, lambda x, d: d * (x > 0)), X)
zoo.right("bias", function(lambda x, b: x + b, lambda kept, d: (d, d.sum(0))), M, B)
zoo.right("bias summed by PyTorch", function(lambda x, b: x + b, lambda kept, d: (d, d)), M, B)
zoo.right(
    "matmul", function(lambda a, b: a @ b, lambda k, d: (d @ k[1].T, k[0].T @ d)), M, zoo.normal(3, 2, seed=3)
)
zoo.right("complex square", unary(lambda z: z * z, lambda z, d: d * 2 * z.conj()), Z)
zoo.right("modulus", unary(lambda z: (z * z.conj()).real, lambda z, d: d * 2 * z), Z)
zoo.right(
    "gather",
    function(lambda x, i: x[i], lambda k, d: (torch.zeros_like(k[0]).index_add(0, k[1], d), None)),
    X,
    torch.tensor([0, 2, 2, 4]),
)
zoo.right("no gradient for a mask", function(lambda x, y: x * y, lambda k, d: (d * k[1], None)), X, Y)
zoo.right("older style", old_style(sine, lambda ctx, d: d * torch.cos(ctx.saved_tensors[0])), X)
zoo.right("two outputs", function(lambda x: (x * x, -x), lambda k, a, b: 2 * k[0] * a - b), X)
zoo.right(
    "first order only",
    old_style(
        sine_keeping_cosine,
        torch.autograd.function.once_differentiable(lambda ctx, d: d * ctx.saved_tensors[0]),
    ),
    X,
)
zoo.right("through NumPy", old_style(square_of_numpy, in_numpy), X)
zoo.right("inside a loss", lambda x: torch.sum(unary(torch.exp, lambda x, d: d * torch.exp(x))(x)), X)
zoo.right("a module", Scale(), X)
zoo.right("batch normalisation", torch.nn.BatchNorm1d(3), M)
zoo.right("a plain function of a tree", lambda p, x: x * p["w"] + p["b"][0], {"w": Y, "b": (X,)}, X)
zoo.right("a builtin", torch.nn.functional.silu, X)
