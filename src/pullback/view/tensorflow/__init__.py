"""Callables of TensorFlow as the checker sees them."""
