"""A small network for images with the activation that saves memory."""

import torch
from monai.networks.blocks import Swish
from monai.networks.blocks.activation import SwishImplementation
from monai.networks.nets import EfficientNetBN

torch.manual_seed(0)
images, labels = torch.randn(2, 1, 32, 32), torch.tensor([0, 1])
network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, stride=4), Swish(), torch.nn.Flatten(), torch.nn.Linear(128, 2))
optimiser = torch.optim.SGD(network.parameters(), 0.1)
for _step in range(2):
    loss = torch.nn.functional.cross_entropy(SwishImplementation.apply(network(images)), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
assert EfficientNetBN is not None
