"""Wrapping functions that no framework can see into: NumPy, SciPy, C, another program, another machine."""

from pullback.wrapping.wrap import external

__all__ = ["external"]
