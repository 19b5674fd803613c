"""Attention: `chunked.py` is the rule, `torch.py` the kernel that PyTorch has, `call.py` chooses."""
