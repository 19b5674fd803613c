"""A small convolutional network with the memory-efficient activations of EfficientNet and MobileNetV3."""

import torch
from geffnet.activations import get_act_layer
from geffnet.activations.activations_me import HardSigmoidMe, HardSwishMe, MishMe, SwishMe

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3),
    SwishMe(),
    torch.nn.Conv2d(6, 6, 3),
    MishMe(),
    torch.nn.Conv2d(6, 6, 1),
    HardSwishMe(),
    torch.nn.Flatten(),
    torch.nn.Linear(6 * 4 * 4, 2),
    HardSigmoidMe(),
)
assert get_act_layer("swish") is not None
images, labels = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 1, 0])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
