"""Running the user's code: AutoGraph where a graph is built, and words for the errors it cannot explain.

A body or a `grad` is converted whenever a graph is being built, also under Keras, which switches AutoGraph
off around its own code: a tensor `if` that works in eager mode works everywhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pullback.hosts import refusals
from pullback.hosts.tensorflow import private

ERRORS = (ValueError, TypeError, tf.errors.InvalidArgumentError)  # in which TensorFlow says such things
_VECTOR = (
    "truth value of an array",  # `if` and tf.cond in eager mode
    "Non-scalar tensor",  # an eager tensor as a Python bool
    "condition of if statement expected to be `tf.bool` scalar",  # `if` under AutoGraph
    "Shape must be rank 0",  # tf.cond in a graph
    "pred must be a scalar",
    "must be a scalar",
    "The rank of `pred`",
)


def explain(error: Exception, where: str) -> None:
    """Raise an error that says more, if there is one."""
    if type(error).__module__.startswith("pullback."):
        return
    if "branch must also have a return statement" in str(error):
        raise refusals.one_branch(where) from error
    if any(text in str(error) for text in _VECTOR):
        raise vector_condition(where) from error


def trace(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
    """Call a function while a graph is built, and look at the conditions it builds."""
    vectors = []

    def look(op_type: str | bytes, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any) -> Any:
        # A graph takes a vector for a condition, and fails only when it runs.
        if op_type in ("If", "StatelessIf", b"If", b"StatelessIf") and inputs[0].shape.rank not in (0, None):
            vectors.append(op_type)
        return outputs  # the next callback sees them, and may replace them

    function = converted(function)
    if not private.AVAILABLE:
        return function(*args, **kwargs)
    private.add_op_callback(look)
    try:
        result = function(*args, **kwargs)
    finally:
        private.remove_op_callback(look)
    if vectors:
        raise vector_condition(where)
    return result


def vector_condition(where: str) -> Exception:
    """Say that a condition was asked of a whole vector."""
    return refusals.vector_condition(where, "tf.cond", "tf.where", "tf.reduce_all")


@functools.lru_cache(maxsize=4096)
def _has_source(code: Any) -> bool:
    try:
        inspect.getsource(code)
    except (OSError, TypeError):  # typed at a prompt, or compiled from a string
        return False
    return True


def _convertible(function: Callable[..., Any]) -> bool:
    if hasattr(function, "autograph_info__") or (getattr(function, "__module__", None) or "").startswith(
        "pullback."
    ):
        return False
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    return code is not None and _has_source(code)


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a function of the user's that has source; leave anything else as it is."""
    return _convert(function) if _convertible(function) else function


def _convert(function: Callable[..., Any]) -> Callable[..., Any]:
    status = tf.__internal__.autograph.control_status_ctx()
    enabled = type(status)(status=type(status.status).ENABLED, options=status.options)
    return tf.__internal__.autograph.tf_convert(function, enabled)
