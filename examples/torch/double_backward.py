"""Why is my double backward wrong, and how is it made right?

A `torch.autograd.Function` that keeps an intermediate result on `ctx` treats it as a constant: the second
derivative is wrong, and nothing says so. In a rule, what `grad` keeps is differentiated too.
"""

import torch

import pullback as pb


# y  = exp(−x²)
# dx = dy · (−2x·y)
@pb.example(torch.tensor([0.5, -1.0, 2.0]))
@pb.custom_gradient
def bell(x):
    y = torch.exp(-(x**2))

    def grad(dy):
        return dy * -2 * x * y

    return y, grad


class Native(torch.autograd.Function):  # pullback: skip="what the example warns of"
    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.y = x, torch.exp(-(x**2))
        return ctx.y.clone()

    @staticmethod
    def backward(ctx, dy):
        return dy * -2 * ctx.x * ctx.y  # ctx.y is a constant here


def curvature(f, x):
    """Give the second derivative, element by element."""
    x = x.clone().requires_grad_(True)
    (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


if __name__ == "__main__":
    x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    true = (4 * x**2 - 2) * torch.exp(-(x**2))
    right, wrong = curvature(bell, x), curvature(Native.apply, x)
    print("true ", true.numpy().round(4))
    print("rule ", right.numpy().round(4))
    print("class", wrong.numpy().round(4), "and no error")
    assert torch.allclose(right, true)
    assert not torch.allclose(wrong, true)
