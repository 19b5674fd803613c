"""A focal loss of images, and an essential matrix of eight correspondences."""

import kornia
import torch

torch.manual_seed(0)
scores = torch.randn(2, 3, 4, 4, requires_grad=True)
labels = torch.randint(3, (2, 4, 4))
points = torch.rand(1, 8, 2, dtype=torch.float64, requires_grad=True)
moved = points.detach() + 0.1 * torch.rand(1, 8, 2, dtype=torch.float64)
weights = torch.ones(1, 8, dtype=torch.float64)
for _step in range(2):
    loss = kornia.losses.focal_loss(scores, labels, alpha=None, gamma=2.0, reduction="mean")
    found = kornia.geometry.epipolar.find_essential(points, moved, weights)
    (loss + found.abs().sum()).backward()
print(loss.item(), found.shape)
