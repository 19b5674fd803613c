"""A segmentation loss, and an essential matrix from five points."""

import kornia
import torch

torch.manual_seed(0)
logits = torch.randn(2, 3, 4, 4, requires_grad=True)
labels = torch.randint(0, 3, (2, 4, 4))
kornia.losses.focal_loss(logits, labels, alpha=0.5, gamma=2.0, reduction="mean").backward()
left = torch.rand(1, 5, 2, dtype=torch.float64, requires_grad=True)
right = torch.rand(1, 5, 2, dtype=torch.float64)
weights = torch.ones(1, 5, dtype=torch.float64)
essential = kornia.geometry.epipolar.find_essential(left, right, weights)
torch.nan_to_num(essential).square().sum().backward()
