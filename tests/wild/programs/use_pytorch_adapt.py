"""Domain adaptation: a discriminator behind a reversed gradient."""

import torch
from pytorch_adapt.layers import GradientReversal

torch.manual_seed(0)
features, classifier = torch.nn.Linear(4, 6), torch.nn.Linear(6, 2)
discriminator = torch.nn.Sequential(GradientReversal(0.5), torch.nn.Linear(6, 1))
x, y, domain = torch.randn(8, 4), torch.randint(0, 2, (8,)), (torch.arange(8) % 2).float()
parameters = [*features.parameters(), *classifier.parameters(), *discriminator.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    hidden = torch.tanh(features(x))
    loss = torch.nn.functional.cross_entropy(classifier(hidden), y)
    loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(discriminator(hidden)[:, 0], domain)
    loss.backward()
    optimizer.step()
