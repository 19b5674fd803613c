"""A small language model of reversible layers."""

import torch
from reformer_pytorch import ReformerLM

torch.manual_seed(0)
tokens = torch.randint(0, 16, (1, 16))
model = ReformerLM(
    num_tokens=16,
    dim=8,
    depth=2,
    max_seq_len=16,
    heads=2,
    bucket_size=4,
    n_hashes=2,
    causal=True,
    ff_chunks=1,
)
optimiser = torch.optim.Adam(model.parameters(), 1e-3)
for _step in range(2):
    logits = model(tokens)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
