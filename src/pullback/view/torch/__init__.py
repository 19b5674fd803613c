"""Callables of PyTorch as the checker sees them."""
