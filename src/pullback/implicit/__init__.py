"""Gradients of what is found and not computed: roots, fixed points, minima, solutions of linear systems.

State the condition, give any solver, and the derivatives are those of the condition: in both modes, at every
order that it has, with the memory of one step.
"""

from pullback.implicit.argmin import argmin
from pullback.implicit.fixed_point import fixed_point
from pullback.implicit.linear_solve import linear_solve
from pullback.implicit.root import root

__all__ = ["argmin", "fixed_point", "linear_solve", "root"]
