"""A reversible block that keeps no activations, coupled by sums and by products."""

import memcnn
import torch

torch.manual_seed(0)


def branch():
    """Half of a block."""
    return torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, padding=1), torch.nn.Tanh())


images = torch.randn(2, 4, 5, 5, requires_grad=True)
additive = memcnn.AdditiveCoupling(branch(), branch())
block = memcnn.InvertibleModuleWrapper(additive, keep_input=True, keep_input_inverse=True)
affine = memcnn.AffineCoupling(branch(), branch(), adapter=memcnn.AffineAdapterSigmoid)
coupled = memcnn.InvertibleModuleWrapper(affine, keep_input=True, keep_input_inverse=True)
optimizer = torch.optim.SGD([*block.parameters(), *coupled.parameters()], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    coupled(block(images)).square().mean().backward()
    optimizer.step()
