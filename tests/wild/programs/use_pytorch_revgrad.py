"""Domain adaptation: features that a discriminator cannot tell apart."""

import torch
from pytorch_revgrad import RevGrad

torch.manual_seed(0)
x, labels, domain = torch.randn(12, 5), torch.randint(0, 3, (12,)), torch.randint(0, 2, (12,)).float()
features = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU())
classify = torch.nn.Linear(8, 3)
discriminate = torch.nn.Sequential(RevGrad(alpha=0.5), torch.nn.Linear(8, 1))
optimiser = torch.optim.Adam([*features.parameters(), *classify.parameters(), *discriminate.parameters()])
for _step in range(3):
    hidden = features(x)
    loss = torch.nn.functional.cross_entropy(classify(hidden), labels)
    told = discriminate(hidden)[:, 0]
    loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(told, domain)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
