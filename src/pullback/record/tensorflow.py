"""TensorFlow's custom gradients as the recorder sees them.

Every spelling, `tf.custom_gradient`, `keras.ops.custom_gradient`, `tf.grad_pass_through` and
`tf.recompute_grad`, under every alias and however early it was imported, runs through two functions of one
module of TensorFlow. Those two are listened to, so that no object of the program is replaced.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.record.place import Source, caller, name_of, place_of
from pullback.record.sample import Recorded, Spec
from pullback.rule import Intent

if TYPE_CHECKING:
    from pullback.record.recorder import Recorder

MODULE = "tensorflow.python.ops.custom_gradient"
# The functions through which TensorFlow's two makers of rules hold the user's function in their closures.
WRAPPERS = {
    "grad_pass_through.<locals>._grad_pass_through_op": "tf.grad_pass_through",
    "recompute_grad.<locals>.inner": "tf.recompute_grad",
}
MAKERS = {"custom_gradient", "grad_pass_through", "recompute_grad"}


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────────────


def owns(leaf: Any) -> bool:
    """Tell whether a leaf is a dense tensor or a variable."""
    tf = sys.modules.get("tensorflow")
    if tf is None or not hasattr(tf, "is_tensor"):  # it may be half imported
        return False
    if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)):
        return False
    return bool(tf.is_tensor(leaf) or isinstance(leaf, tf.Variable))


def freeze(tensor: Any) -> Any:
    """Copy a tensor to an array, or its shape and dtype to a spec."""
    try:
        return np.array(tensor.numpy())
    except (AttributeError, NotImplementedError):  # a graph is being traced: there is no value yet
        return spec(tensor)


def spec(tensor: Any) -> Spec:
    """Take the shape and dtype of a tensor."""
    return Spec(None if tensor.shape.rank is None else tuple(tensor.shape.as_list()), tensor.dtype.name)


def device(tensor: Any) -> str:
    """Name the place that a tensor must be put to again: TensorFlow finds it by itself."""
    return ""


def thaw(array: Any, device: str) -> Any:
    """Make a tensor of an array again."""
    import tensorflow as tf

    return tf.constant(array)


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> Recorded | None:
    """Make the record of a rule that stands in a module; None for anything else.

    What the other makers made is known by the line that made it, which only the recorder saw.
    """
    return named(value) if maker_of(value) == "custom_gradient" else None


def named(function: Any) -> Recorded | None:
    """Make the record of a function that one of TensorFlow's makers made."""
    maker = maker_of(function)
    if not maker:
        return None
    path, line = place_of(function)
    module = str(getattr(function, "__module__", ""))
    return Recorded(function, name_of(function), f"tf.{maker}", module, path, line, "tensorflow")


def maker_of(function: Any) -> str:
    """Name the function of TensorFlow's that made this one a rule, or nothing."""
    decorator = getattr(function, "_tf_decorator", None)
    name = str(getattr(decorator, "decorator_name", ""))
    return name if name in MAKERS else ""


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
    name = name_of(user) if kind == "tf.custom_gradient" else f"{kind}({name_of(user)})"
    path, line = site or place_of(user)
    module = str(getattr(user, "__module__", ""))
    rule = Recorded(tf.custom_gradient(body), name, kind, module, path, line, "tensorflow")
    if kind == "tf.grad_pass_through":
        rule.intent = Intent("differs", reason=kind)
    return rule


def listeners(recorder: Recorder) -> dict[str, Callable[[Any], Callable[[], None]]]:
    """Give what is done when a module of TensorFlow's is imported; each gives what undoes it."""
    return {MODULE: lambda module: _listen(module, recorder)}


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
            recorder.called(lambda: _source(f, _get(sites, f)), lambda: (args, kwargs), lambda: rule(f))
            return inner(f, args, kwargs)

        return run

    def bind(self: Any, f: Any, d: Any) -> None:
        init(self, f, d)
        if busy[0] or hasattr(f, "__func__"):  # a method, bound anew at every call
            return
        if described(f)[1] != "tf.custom_gradient":
            sites[f] = caller("tensorflow.")
        recorder.made(lambda: _source(f, _get(sites, f)), lambda: rule(f))

    for name in names:
        setattr(module, name, listening(kept[name]))
    module.Bind.__init__ = bind

    def undo() -> None:
        for name in names:
            setattr(module, name, kept[name])
        module.Bind.__init__ = init

    return undo


def _source(body: Any, site: tuple[str, int] | None) -> Source:
    user, kind = described(body)
    if kind == "tf.custom_gradient":
        return Source.of(body)
    # A rule that a user made of a function which may be TensorFlow's: the rule is the user's.
    return Source((kind, site, getattr(user, "__code__", None) or id(user)), "")


def _get(sites: weakref.WeakKeyDictionary[Any, tuple[str, int]], body: Any) -> tuple[str, int] | None:
    try:
        return sites.get(body)
    except TypeError:  # a callable that takes no weak reference
        return None
