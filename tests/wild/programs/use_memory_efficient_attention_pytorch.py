"""A causal layer of attention by tiles, trained a few steps."""

import torch
from memory_efficient_attention_pytorch.flash_attention import FlashAttention

torch.manual_seed(0)
attention = FlashAttention(dim=8, heads=2, dim_head=4, causal=True, q_bucket_size=4, k_bucket_size=4)
crossed = FlashAttention(dim=8, heads=2, dim_head=4, q_bucket_size=4, k_bucket_size=4)
x, target = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
mask = torch.ones(2, 6, dtype=torch.bool)
mask[1, 4:] = False
parameters = [*attention.parameters(), *crossed.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    hidden = attention(x)
    ((crossed(hidden, context=x, mask=mask) - target) ** 2).mean().backward()
    optimizer.step()
