"""Custom gradients you can trust: define, replace, wrap, check and see them."""

from pullback import errors
from pullback.define import custom_gradient
from pullback.elementwise import elementwise, unbroadcast
from pullback.rule import Intent, Rule

__version__ = "0.1.0"

__all__ = ["Intent", "Rule", "custom_gradient", "elementwise", "errors", "unbroadcast"]
