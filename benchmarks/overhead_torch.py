"""What a custom gradient costs on PyTorch: pullback against a `torch.autograd.Function` of the same body.

Eager mode on 8 numbers, where nothing but overhead is measured; one step of a small network compiled by
inductor, where both should cost nothing; and how long it takes to find the host of a call.
"""

from __future__ import annotations

import torch
from side_by_side import floors, judge

import pullback as pb
from pullback import hosts

torch.set_num_threads(1)
X = torch.arange(1.0, 9.0) / 10


def sine(x):
    def grad(dy):
        return dy * torch.cos(x)

    return torch.sin(x), grad


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * torch.cos(x)


def log1pexp(x):
    e = torch.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return torch.log(1 + e), grad


class Log1pexp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(e)
        return torch.log(1 + e)

    @staticmethod
    def backward(ctx, dy):
        (e,) = ctx.saved_tensors
        return dy * (1 - 1 / (1 + e))


def product(x, y):
    def grad(dz):
        return dz * y, dz * x

    return x * y, grad


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return dz * y, dz * x


def scaled(x, factor):
    def grad(dy):
        return dy * factor

    return x * factor, grad


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.factor, None


OPERATIONS = {
    "sine": (Sine.apply, sine, [X], []),
    "log1pexp": (Log1pexp.apply, log1pexp, [X], []),
    "product": (Product.apply, product, [X, X + 1], []),
    "scaled, by an option": (Scaled.apply, scaled, [X], [0.5]),
}


def both(f, inputs, options):
    inputs = [x.clone().requires_grad_() for x in inputs]

    def run():
        for x in inputs:
            x.grad = None
        f(*inputs, *options).sum().backward()

    return run


def eager() -> list[tuple[str, float, float]]:
    results = []
    for name, (native, body, *given) in OPERATIONS.items():
        arms = {"native": both(native, *given), "pullback": both(pb.custom_gradient(body), *given)}
        t = floors(arms, calls=60, rounds=40)
        print(f"eager {name}: autograd.Function {t['native']:.1f} µs, pullback {t['pullback']:.1f} µs")
        bar = 1.25 if given[-1] else 1.15  # the plan of a call with options is looked for
        results.append((f"eager {name}: forward + backward / native's", t["pullback"] / t["native"], bar))
    return results


def network(activation):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(128, 128, generator=generator).div(12).requires_grad_() for _ in range(4)]
    x = torch.randn(64, 128, generator=generator)

    @torch.compile(fullgraph=True)
    def loss(*weights):
        y = x
        for w in weights:
            y = activation(y @ w)
        return (y * y).sum()

    def step():
        return torch.autograd.grad(loss(*weights), weights)

    return step


def compiled() -> list[tuple[str, float, float]]:
    arms = {"native": network(Sine.apply), "pullback": network(pb.custom_gradient(sine))}
    t = floors(arms, calls=10, rounds=60)
    print(f"compiled step: autograd.Function {t['native']:.0f} µs, pullback {t['pullback']:.0f} µs")
    return [("torch.compile: step / native's", t["pullback"] / t["native"], 1.02)]


def discovery() -> list[tuple[str, float, float]]:
    hosts.role(torch.Tensor)
    args = (X,)

    def find():
        return hosts.role(type(args[0])).ready(args)

    t = floors({"nothing": lambda: None, "find": find}, calls=1000, rounds=15)
    return [("finding the host of a call, µs", t["find"] - t["nothing"], 0.5)]


if __name__ == "__main__":
    judge(eager() + compiled() + discovery())
