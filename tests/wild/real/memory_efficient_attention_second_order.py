"""memory-efficient-attention-pytorch 0.1.6: at second order the gradient of its attention is a constant.

The backward runs without recording, so a penalty on the gradient adds nothing, and says nothing.
"""

import torch
from memory_efficient_attention_pytorch.flash_attention import FlashAttentionFunction

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 4, 2).requires_grad_() for _ in range(3))
parts = (None, False, 4, 4)


def penalty(q):
    """The squared gradient by the queries, and a term beside it."""
    out = FlashAttentionFunction.apply(q, k, v, *parts)
    (g,) = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    return g.square().sum() + 0 * q.sum()


(claimed,) = torch.autograd.grad(penalty(q), q)
step = 1e-2 * torch.ones_like(q)
measured = (penalty(q + step) - penalty(q - step)).item() / 2e-2
print("measured", measured, "claimed", claimed.sum().item())
