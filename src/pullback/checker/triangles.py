"""Functions of symmetric matrices: they look at one triangle only, or give a gradient that is symmetric, too.

What such a gradient is away from symmetric matrices, and in a triangle that is not read, is a convention. So
the question is asked where all conventions agree.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np

from pullback.checker.directions import floor_of
from pullback.checker.problem import Problem
from pullback.checker.promises import structure
from pullback.dtypes import is_complex
from pullback.view.subject import Array, Arrays, Cotangents, Subject


def square_inputs(problem: Problem, *, anything: bool) -> list[int]:
    """List the inputs that are symmetric, or `anything` that is square."""
    kinds = {"symmetric", "positive definite"}
    square = [k for k in problem.chosen if problem.inputs[k].ndim > 1 and _is_square(problem.inputs[k])]
    return [k for k in square if anything or structure(problem.inputs[k]) in kinds]


def _is_square(x: Array) -> bool:
    return bool(x.shape[-1] == x.shape[-2] > 1)


def triangle_unread(problem: Problem, k: int) -> Array | None:
    """Give the triangle of an input that the function does not look at: moved, it moves nothing."""
    x = problem.inputs[k]
    step = 0.37 * (np.abs(x) + floor_of(np.abs(x).astype(np.float64).reshape(-1)))
    for triangle in (np.triu(np.ones(x.shape), 1), np.tril(np.ones(x.shape), -1)):
        moved = [
            (x + step * triangle).astype(x.dtype) if i == k else problem.inputs[i] for i in problem.chosen
        ]
        if np.array_equal(problem.evaluate(problem.domain.pack(moved))[1], problem.y):
            return triangle
    return None


def one_triangle(problem: Problem, *, anything: bool = False) -> Problem | None:
    """Give the problem at symmetric inputs, if the function looks at one triangle only of some."""
    inputs = list(problem.inputs)
    found = False
    for k in square_inputs(problem, anything=anything):
        triangle = triangle_unread(problem, k)
        if triangle is not None:
            x = inputs[k]
            inputs[k] = np.where(triangle > 0, np.conj(np.swapaxes(x, -1, -2)), x).astype(x.dtype)
            found = True
    if not found:
        return None
    return Problem(problem.forward, problem.pullback, tuple(inputs), problem.differentiable)


def unread(problem: Problem) -> Array:
    """Mark the reals of the triangles that the function does not look at."""
    masks = []
    for k in problem.chosen:
        x = problem.inputs[k]
        triangle = triangle_unread(problem, k) if k in square_inputs(problem, anything=True) else None
        mask = np.zeros(x.shape) if triangle is None else triangle
        masks.append(mask * (1 + 1j) if is_complex(x.dtype) else mask)
    return np.asarray(problem.domain.pack(masks) != 0)


def mirrored_claims(problem: Problem, v: Array | None) -> list[int]:
    """List the symmetric inputs whose claimed gradient is symmetric, too, whatever the cotangent."""
    if v is None:
        return []
    claimed = dict(zip(problem.chosen, problem.domain.unpack(problem.gradient(v))))
    allowed = 2.0**10 * problem.unit

    def mirrored(a: Array) -> bool:
        return bool((np.abs(a - np.conj(np.swapaxes(a, -1, -2))) <= allowed * np.abs(a).max()).all())

    return [k for k in square_inputs(problem, anything=False) if mirrored(claimed[k])]


def _halves(arrays: Cotangents, which: Container[int]) -> tuple[Array | None, ...]:
    """Take the symmetric part of some arrays."""
    return tuple(
        a if a is None or k not in which else ((a + np.conj(np.swapaxes(a, -1, -2))) / 2).astype(a.dtype)
        for k, a in enumerate(arrays)
    )


def _even(inputs: Arrays, which: Container[int]) -> Arrays:
    return tuple(a for a in _halves(inputs, which) if a is not None)


def symmetric(problem: Problem, inputs: Sequence[int] | None = None) -> Problem:
    """Ask the same of symmetric directions only: there every convention of a factorisation agrees."""
    which = set(square_inputs(problem, anything=False) if inputs is None else inputs)

    def forward(inputs: Arrays) -> Arrays:
        return problem.forward(_even(inputs, which))

    def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        return _halves(problem.pullback(inputs, cotangents), which)

    return Problem(forward, pullback, problem.inputs, problem.differentiable)


def symmetrised(subject: Subject) -> Subject:
    """Give the function of the symmetric part of what it is handed, with both orders of its gradient."""
    which = square_inputs(Problem.of(subject), anything=False)
    outer = subject.second
    assert outer is not None

    def forward(inputs: Arrays) -> Arrays:
        return subject.forward(_even(inputs, which))

    def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        return _halves(subject.pullback(_even(inputs, which), cotangents), which)

    def second(inputs: Arrays, cotangents: Arrays, weights: Cotangents) -> tuple[Cotangents, Cotangents]:
        found, others = outer(_even(inputs, which), cotangents, _halves(weights, which))
        return _halves(found, which), others

    return replace(subject, forward=forward, pullback=pullback, second=second)
