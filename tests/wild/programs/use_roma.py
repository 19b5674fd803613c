"""Align two clouds of points by a rotation, and regress a rotation from a matrix."""

import roma
import torch

torch.manual_seed(0)
source, target = torch.randn(4, 10, 3, requires_grad=True), torch.randn(4, 10, 3)
R, t = roma.rigid_points_registration(source, target)
((source @ R.transpose(-1, -2) + t[:, None]) - target).square().mean().backward()

net = torch.nn.Linear(6, 9)
R = roma.special_procrustes(net(torch.randn(8, 6)).view(-1, 3, 3))
loss = roma.rotmat_geodesic_distance(R, roma.random_rotmat(8)).mean()
near = roma.procrustes(net(torch.randn(8, 6)).view(-1, 3, 3), regularization=0.1)
(loss + near[:, 0].sum()).backward()
