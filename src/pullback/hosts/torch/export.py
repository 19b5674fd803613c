"""`torch.export`: an artifact holds the operations of a body, and no gradient of anybody's.

PyTorch drops the backward of a `torch.autograd.Function` in the same way. So there is a word about it, once
for each rule.
"""

from __future__ import annotations

import warnings

from pullback.errors import HostError
from pullback.hosts.operation import Operation
from pullback.hosts.torch import private

exporting = private.exporting


def warn(operation: Operation) -> None:
    """Say that the gradient of a rule stays behind, if it is being exported."""
    if exporting():
        text = HostError.about(
            operation.where,
            found="torch.export keeps what it computes, and not its gradient",
            expected="a model that is not trained after it is exported",
            why="through what is exported no gradient flows to the inputs of the rule",
            fix="train the model first; export it under torch.no_grad() to say that this is meant",
        )
        warnings.warn(str(text), stacklevel=2)
