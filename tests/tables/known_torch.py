"""What is truly wrong in PyTorch's own operators, shown without this library.

Each reproduction gives what PyTorch claims and what is true. One that agrees again is to be taken out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def chunked_cross_entropy():
    """The gradient of the chunked loss is a constant: there is no second derivative, and no error."""
    from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

    x = torch.tensor([0.3, -1.0, 0.5], dtype=torch.float64, requires_grad=True)
    w = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    options = LinearCrossEntropyOptions(allow_retain_graph=True, batch_chunk_size=2)
    target = torch.tensor(2)

    def second(loss):
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)[0] if g.requires_grad else torch.zeros_like(x)

    claimed = second(F.linear_cross_entropy(x, w, target, options=options))
    return claimed, second(F.cross_entropy(F.linear(x, w), target))


def strided_scatter():
    """A scalar that overwrites the only entry: what was there still gets a gradient."""
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    y = torch.as_strided_scatter(x, torch.tensor(2.0, dtype=torch.float64), (), (), 0)
    return torch.autograd.grad(y.sum(), x)[0], torch.zeros_like(x)


def unnormalised_ctc():
    """The loss of one step is minus one entry; what the others get is right behind a log_softmax only."""
    x = torch.tensor([[[-0.5, -1.5]]], dtype=torch.float64, requires_grad=True)
    loss = F.ctc_loss(x, torch.tensor([[1]]), [1], [1], reduction="sum")
    return torch.autograd.grad(loss, x)[0], torch.tensor([[[0.0, -1.0]]], dtype=torch.float64)


def unpooled_twice():
    """Two entries for one place: the last one wins, and both get its gradient."""
    x = torch.tensor([[[1.0, 2.0]]], requires_grad=True)
    y = F.max_unpool1d(x, torch.zeros(1, 1, 2, dtype=torch.long), 2)
    return torch.autograd.grad(y.sum(), x)[0], torch.tensor([[[0.0, 1.0]]])


def norm_at_zero():
    """The gradient at zero is zero times the upstream one, and so is its derivative by that."""
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    v = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.linalg.norm(x, 4.0), x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), v)[0], torch.zeros_like(v)


def masked_entry():
    """An entry that is masked out moves nothing, and its gradient has a derivative of NaN, not of zero."""
    x, y = (torch.tensor([a], dtype=torch.float64, requires_grad=True) for a in (-1.0, 2.0))
    z = torch.masked.logaddexp(x, y, input_mask=torch.tensor([False]))
    (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), y)[0], torch.zeros_like(y)


KNOWN = {
    "nn.functional.linear_cross_entropy/chunked": chunked_cross_entropy,
    "as_strided_scatter": strided_scatter,
    "linalg.norm/subgradients_at_zero": norm_at_zero,
    "masked.logaddexp": masked_entry,
    "nn.functional.ctc_loss": unnormalised_ctc,
    "nn.functional.max_unpool1d": unpooled_twice,
    "nn.functional.max_unpool2d": unpooled_twice,
    "nn.functional.max_unpool3d": unpooled_twice,
}
