"""PyTorch's custom gradients as the recorder sees them: Functions, and operators of `torch.library`."""

from pullback.record.torch.leaves import device, freeze, owns, spec, thaw
from pullback.record.torch.listening import listeners
from pullback.record.torch.rules import found, named

__all__ = ["device", "found", "freeze", "listeners", "named", "owns", "spec", "thaw"]
