"""TensorFlow's custom gradients as the recorder sees them.

Every spelling, `tf.custom_gradient`, `keras.ops.custom_gradient`, `tf.grad_pass_through` and
`tf.recompute_grad`, under every alias and however early it was imported, runs through two functions of one
module of TensorFlow. Those two are listened to, so that no object of the program is replaced.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback import define
from pullback.record.imports import when_imported
from pullback.record.recorder import Recorder, place_of
from pullback.record.sample import Recorded, Spec

MODULE = "tensorflow.python.ops.custom_gradient"
# The functions through which TensorFlow's two makers of rules hold the user's function in their closures.
WRAPPERS = {
    "grad_pass_through.<locals>._grad_pass_through_op": "tf.grad_pass_through",
    "recompute_grad.<locals>.inner": "tf.recompute_grad",
}


def freeze(leaf: Any) -> Any:
    """Copy a tensor to an array, or its shape and dtype to a spec; leave anything else as it is."""
    if isinstance(leaf, np.ndarray):
        return leaf.copy() if leaf.dtype.kind not in "OSU" else leaf
    tensor = _tensor(leaf)
    if tensor is None:
        return leaf
    try:
        return np.array(tensor.numpy())
    except (AttributeError, NotImplementedError):  # a graph is being traced: there is no value yet
        return spec(tensor)


def spec(leaf: Any) -> Any:
    """Take the shape and dtype of a tensor; leave anything else as it is."""
    if isinstance(leaf, np.ndarray):
        return Spec(leaf.shape, leaf.dtype.name)
    tensor = _tensor(leaf)
    if tensor is None:
        return leaf
    return Spec(None if tensor.shape.rank is None else tuple(tensor.shape.as_list()), tensor.dtype.name)


def _tensor(leaf: Any) -> Any:
    """Give the tensor or variable that a leaf is, or None."""
    tf = sys.modules.get("tensorflow")
    if tf is None or not hasattr(tf, "is_tensor"):
        return None
    if type(leaf).__module__.startswith("keras") and hasattr(leaf, "assign") and hasattr(leaf, "value"):
        leaf = leaf.value
    if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
        return None
    return leaf if tf.is_tensor(leaf) or isinstance(leaf, tf.Variable) else None


def thaw(leaf: Any) -> Any:
    """Make a tensor of an array again."""
    import tensorflow as tf

    return tf.constant(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "OSU" else leaf


def described(body: Any) -> tuple[Any, str]:
    """Give the user's function behind a rule of TensorFlow's, and who made the rule."""
    kind = WRAPPERS.get(getattr(body, "__qualname__", ""))
    if kind is None or getattr(body, "__module__", "") != MODULE:
        return body, "tf.custom_gradient"
    cells = dict(zip(body.__code__.co_freevars, body.__closure__ or ()))
    return cells["f"].cell_contents, kind


def rule_of(body: Any, site: tuple[str, int] | None = None) -> Recorded:
    """Make the record of a body: the function to check is the body under `tf.custom_gradient` again.

    `site` is the line that made a rule of a function which itself stands elsewhere.
    """
    import tensorflow as tf

    user, kind = described(body)
    function = tf.custom_gradient(body)
    name = str(getattr(user, "__name__", None) or type(user).__name__)
    if kind != "tf.custom_gradient":
        name = f"{kind}({name})"
    path, line = site or place_of(user)
    return Recorded(function, name, kind, str(getattr(user, "__module__", "")), path, line)


def own_rule(function: Any) -> Recorded:
    """Make the record of one of pullback's own rules."""
    path, line = place_of(function.rule.function)
    return Recorded(function, function.rule.name, "pullback", str(function.__module__), path, line)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Listen to every rule, TensorFlow's and pullback's own, until the block ends."""
    restore: list[Callable[[], None]] = []

    def listen(module: Any) -> None:
        restore.append(_listen(module, recorder))

    def own_made(function: Any) -> None:
        recorder.made(function, lambda: own_rule(function))

    def own_called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not any(type(leaf).__name__ == "KerasTensor" for leaf in (*args, *kwargs.values())):
            recorder.called(function, args, kwargs, lambda: own_rule(function))

    withdraw = when_imported(MODULE, listen)
    define.makers.append(own_made)
    define.listeners.append(own_called)
    try:
        yield recorder
    finally:
        withdraw()
        define.makers.remove(own_made)
        define.listeners.remove(own_called)
        for undo in restore:
            undo()


def _listen(module: Any, recorder: Recorder) -> Callable[[], None]:
    names = ("_eager_mode_decorator", "_graph_mode_decorator")
    kept = {name: getattr(module, name) for name in names}
    init = module.Bind.__init__
    sites: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
    busy = [False]  # a record is itself made of such a rule

    def rule(body: Any) -> Recorded:
        busy[0] = True
        try:
            return rule_of(body, _get(sites, body))
        finally:
            busy[0] = False

    def listening(inner: Callable[..., Any]) -> Callable[..., Any]:
        def run(f: Any, args: Any, kwargs: Any) -> Any:
            recorder.called(_owned(f, _get(sites, f)), args, kwargs, lambda: rule(f))
            return inner(f, args, kwargs)

        return run

    def bind(self: Any, f: Any, d: Any) -> None:
        init(self, f, d)
        if busy[0] or hasattr(f, "__func__"):  # a method, bound anew at every call
            return
        if described(f)[1] != "tf.custom_gradient":
            sites[f] = _site()
        recorder.made(_owned(f, _get(sites, f)), lambda: rule(f))

    for name in names:
        setattr(module, name, listening(kept[name]))
    module.Bind.__init__ = bind

    def undo() -> None:
        for name in names:
            setattr(module, name, kept[name])
        module.Bind.__init__ = init

    return undo


class _Owned:
    """Stand for a rule that a user made of a function which may be TensorFlow's: the rule is the user's."""

    def __init__(self, user: Any, kind: str, site: tuple[str, int] | None) -> None:
        self.__module__ = ""
        self.__code__ = (kind, site, getattr(user, "__code__", None) or id(user))


def _owned(body: Any, site: tuple[str, int] | None) -> Any:
    user, kind = described(body)
    return body if kind == "tf.custom_gradient" else _Owned(user, kind, site)


def _get(sites: weakref.WeakKeyDictionary[Any, tuple[str, int]], body: Any) -> tuple[str, int] | None:
    try:
        return sites.get(body)
    except TypeError:  # a callable that takes no weak reference
        return None


def _site() -> tuple[str, int]:
    """Find the line of the user's from which we are called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename == __file__
        or "__autograph_generated_file" in frame.f_code.co_filename
        or frame.f_globals.get("__name__", "").startswith("tensorflow.")
    ):
        frame = frame.f_back
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno
