"""Poses that are optimised: rotations, rigid motions and scalings act on points."""

import pypose as pp
import torch

torch.manual_seed(0)
points = torch.randn(5, 3)
for algebra in (pp.randn_so3, pp.randn_se3, pp.randn_sim3, pp.randn_rxso3):
    small = algebra(2, sigma=0.3, requires_grad=True)
    pose = small.Exp() @ algebra(2, sigma=0.3).Exp()
    moved = pose.unsqueeze(1).Act(points)
    loss = moved.square().mean() + pose.Inv().Log().tensor().square().mean()
    loss = loss + pose.Adj(small).tensor().square().sum()
    loss.backward()
    print(loss.item(), small.grad.shape)
