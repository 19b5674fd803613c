"""linear_kl_divergence and linear_js_divergence: losses of a student beside a teacher, without their logits.

Both come from hidden states and output matrices; `divergence.py` has the derivation and the edges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pullback.example import example
from pullback.namespace import namespace
from pullback.ops.linear.arguments import (
    called,
    coefficients,
    require_matrices,
    require_option,
    require_tokens,
)
from pullback.ops.linear.chunks import classes_of
from pullback.ops.linear.divergence import divergence
from pullback.ops.linear.kernels import Array
from pullback.ops.whole import whole
from pullback.options import require_word
from pullback.rule import Intent
from pullback.typed import carrying

DISTILLING = replace(divergence.rule, intent=Intent("differs", reason="no gradient goes to the teacher"))
X, W = np.arange(6.0).reshape(2, 3) / 7, np.cos(np.arange(15.0)).reshape(5, 3)
TEACHER = np.sin(np.arange(4.0)).reshape(2, 2), np.sin(np.arange(10.0)).reshape(5, 2)


@whole
@carrying(DISTILLING)
@example(X, W, *TEACHER)
def linear_kl_divergence(
    x: Array,
    w: Array,
    teacher_x: Array,
    teacher_w: Array,
    *,
    bias: Array | None = None,
    teacher_bias: Array | None = None,
    weights: Array | None = None,
    direction: str = "forward",
    temperature: float = 1.0,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Any:
    """Give the Kullback–Leibler divergence of softmax(x·wᵀ) and a teacher's, without holding either's logits.

    Args:
        x: Hidden states of the student, of shape (…, D).
        w: Its output matrix, of shape (V, D).
        teacher_x: Hidden states of the teacher, of shape (…, E). No gradient goes to the teacher.
        teacher_w: Its output matrix, of shape (V, E).
        bias: One number a class, of the student.
        teacher_bias: The same of the teacher.
        weights: One number a token; 0 leaves one out.
        direction: "forward" for KL(teacher ‖ student), "reverse" for KL(student ‖ teacher).
        temperature: What the logits of both are divided by.
        reduction: "mean", "sum" or "none".
        chunk: How many classes are computed at a time.

    Example:
        >>> import numpy as np, pullback as pb
        >>> x, w = np.ones((2, 3)), np.eye(4, 3)
        >>> float(pb.ops.linear_kl_divergence(x, w, 2 * x, w / 2).round(3))
        0.0

    Do not use it to train the teacher: it is a constant.
    """
    require_word("linear_kl_divergence", "direction", direction, ("forward", "reverse"))
    given = x, w, teacher_x, teacher_w, bias, teacher_bias, weights
    return _distilled("linear_kl_divergence", given, direction, 0.5, temperature, reduction, chunk)


@whole
@carrying(DISTILLING)
@example(X, W, *TEACHER)
def linear_js_divergence(
    x: Array,
    w: Array,
    teacher_x: Array,
    teacher_w: Array,
    *,
    bias: Array | None = None,
    teacher_bias: Array | None = None,
    weights: Array | None = None,
    beta: float = 0.5,
    temperature: float = 1.0,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Any:
    """Give the Jensen–Shannon divergence of softmax(x·wᵀ) and a teacher's, without holding either's logits.

    With M = β·teacher + (1 − β)·student it is β·KL(teacher ‖ M) + (1 − β)·KL(student ‖ M).

    Args:
        x: Hidden states of the student, of shape (…, D).
        w: Its output matrix, of shape (V, D).
        teacher_x: Hidden states of the teacher, of shape (…, E). No gradient goes to the teacher.
        teacher_w: Its output matrix, of shape (V, E).
        bias: One number a class, of the student.
        teacher_bias: The same of the teacher.
        weights: One number a token; 0 leaves one out.
        beta: The share of the teacher, between 0 and 1.
        temperature: What the logits of both are divided by.
        reduction: "mean", "sum" or "none".
        chunk: How many classes are computed at a time.

    Example:
        >>> import numpy as np, pullback as pb
        >>> x, w = np.ones((2, 3)), np.eye(4, 3)
        >>> float(pb.ops.linear_js_divergence(x, w, 2 * x, w / 2).round(3))
        0.0

    Do not use it to train the teacher: it is a constant.
    """
    require_option("linear_js_divergence", "beta", beta, 0, 1, above=True)
    given = x, w, teacher_x, teacher_w, bias, teacher_bias, weights
    return _distilled("linear_js_divergence", given, "js", beta, temperature, reduction, chunk)


def _distilled(
    name: str, given: Any, kind: str, beta: float, temperature: float, reduction: str, chunk: int | None
) -> Any:
    names = ("x", "w", "teacher_x", "teacher_w", "bias", "teacher_bias", "weights")
    call, tensors = called(name, **dict(zip(names, given)))
    x, w, teacher_x, teacher_w, bias, teacher_bias, weights = tensors
    k, stop = call.kernels, call.stop
    require_matrices(call, x, w, bias)
    require_matrices(call, teacher_x, teacher_w, teacher_bias, "teacher_x teacher_w teacher_bias")
    require_option(name, "temperature", temperature, 0, np.inf, above=True)
    require_word(name, "reduction", reduction, ("mean", "sum", "none"))
    shape = call.shape(x)[:-1]
    require_tokens(call, "teacher_x", teacher_x, (*shape, call.shape(teacher_x)[-1]))
    require_tokens(call, "weights", weights, shape)
    if call.shape(w)[0] != call.shape(teacher_w)[0]:
        found = f"{call.shape(w)[0]} classes, and {call.shape(teacher_w)[0]} of the teacher"
        raise call.refused(found, "the same classes", "w and teacher_w with as many rows")
    x, teacher_x = call.tokens(x, 1), call.tokens(teacher_x, 1)
    if temperature != 1:
        x, teacher_x = x / temperature, teacher_x / temperature
        bias, teacher_bias = (None if b is None else b / temperature for b in (bias, teacher_bias))
    size = classes_of(name, chunk, call.shape(x)[0], call.shape(w)[0], near=k.is_near(x))
    teacher = [None if t is None else stop(t) for t in (teacher_x, teacher_w, teacher_bias)]
    apart = divergence(x, w, bias, *teacher, kind=kind, beta=beta, chunk=size)
    c = k.zeros(x) + 1 if weights is None else k.wide(call.tokens(weights, 0))
    weighted = coefficients(c, reduction) * namespace(x).where(c == 0, k.zeros(x), apart)
    return call.reduced(weighted, reduction, shape)
