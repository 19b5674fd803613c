"""pytorch-tabnet 4.1.0: its sparsemax subtracts the largest value from its argument in place."""

import torch
from pytorch_tabnet.sparsemax import sparsemax

logits = torch.tensor([[1.0, 3.0, 2.5]])
print("before", logits.tolist())
sparsemax(logits, -1)
print("after ", logits.tolist())
