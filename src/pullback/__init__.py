"""Custom gradients you can trust: define, replace, wrap, check and see them."""

from pullback import errors

__version__ = "0.1.0"

__all__ = ["errors"]
