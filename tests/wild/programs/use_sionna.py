"""Bits through a channel that flips some of them."""

import torch
from sionna.phy.channel import BinarySymmetricChannel

torch.manual_seed(0)
flips = torch.tensor(0.1, requires_grad=True)
bits = torch.randint(0, 2, (4, 8)).float().requires_grad_()
BinarySymmetricChannel()(bits, flips).sum().backward()
