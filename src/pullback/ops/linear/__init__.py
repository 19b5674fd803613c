"""Losses of hidden states and an output matrix that never hold all the logits.

Logits are z = x·wᵀ: N tokens by V classes, the largest array of a language model. A loss needs a few numbers
of each row of them, and so does its gradient. So the logits are computed chunk by chunk, used, and forgotten.

streamed.py      chunks of the vocabulary: row sums in one pass, log-sum-exp kept, logits computed again.
accumulated.py   chunks of tokens, for a scalar: the gradient is made while the logits are there.
kernels.py       what is asked of a host; one file a host answers. For GPUs PyTorch's has a kernel in
                 `triton.py`, JAX's in `pallas.py`.
"""
