"""A network with quantised weights and activations."""

import brevitas.nn as quantised
import torch
from brevitas.ops import autograd_ste_ops as straight
from brevitas.quant import Int8WeightPerTensorFloat

torch.manual_seed(0)
x, labels = torch.randn(8, 6), torch.randint(0, 3, (8,))
network = torch.nn.Sequential(
    quantised.QuantIdentity(bit_width=8),
    quantised.QuantLinear(6, 5, bias=True, weight_bit_width=4, weight_quant=Int8WeightPerTensorFloat),
    quantised.QuantReLU(bit_width=4),
    quantised.QuantLinear(5, 3, bias=True, weight_bit_width=4),
)
optimiser = torch.optim.SGD(network.parameters(), 0.1)
for _step in range(2):
    logits = network(x)
    logits = logits + straight.ternary_sign_ste_impl(logits) + straight.ceil_ste_impl(logits)
    loss = torch.nn.functional.cross_entropy(straight.scalar_clamp_ste_impl(logits, -4.0, 4.0), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
