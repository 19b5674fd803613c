"""Callables of JAX as the checker sees them."""
