"""TensorFlow's own rules.

Every spelling, `tf.custom_gradient`, `keras.ops.custom_gradient`, `tf.grad_pass_through` and
`tf.recompute_grad`, under every alias and however early it was imported, runs through two functions of one
module of TensorFlow. Those two are patched, so that no object of the program is replaced.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pullback.hosts.base import Meeting
from pullback.patched import patched
from pullback.rule import Intent
from pullback.view.native import ByHand, Keeps, Listen, Listener, Native, collecting, is_bypassed
from pullback.view.tensorflow import generated
from pullback.view.tensorflow.pulled import listening as pulled

MODULE = "tensorflow.python.ops.custom_gradient"
RUNNERS = ("_eager_mode_decorator", "_graph_mode_decorator")  # each takes the body, args and kwargs
# The functions through which TensorFlow's two makers of rules hold the user's function in their closures.
WRAPPERS = {
    (MODULE, "grad_pass_through.<locals>._grad_pass_through_op"): "tf.grad_pass_through",
    (MODULE, "recompute_grad.<locals>.inner"): "tf.recompute_grad",
}
MAKERS = {"custom_gradient", "grad_pass_through", "recompute_grad"}


class Made(Native):
    """What a maker gave to the user."""

    framework = "tensorflow"

    def __init__(self, function: Any, maker: str) -> None:
        super().__init__(function)
        self.kind = f"tf.{maker}"

    def parts(self) -> dict[str, Any]:
        return {"function": self.user._tf_decorator.decorated_target, "line": None}

    def by_hand(self) -> ByHand | None:
        if self.kind != "tf.custom_gradient":
            return None
        body = self.user._tf_decorator.decorated_target
        return lambda args, kwargs, cotangents: (body(*args, **kwargs)[1], cotangents, lambda found: found)

    def remade(self, parts: Mapping[Any, Any]) -> Any:
        import tensorflow as tf

        body = parts.get(self.user._tf_decorator.decorated_target)
        return None if body is None or self.kind != "tf.custom_gradient" else tf.custom_gradient(body)


class Seen(Native):
    """The body of a rule, which is all that is seen when one is made or called.

    `site` is the line that made a rule of a function which itself stands elsewhere, perhaps in TensorFlow.
    """

    framework = "tensorflow"
    kind = "tf.custom_gradient"

    def __init__(self, body: Any, site: tuple[str, int] | None = None) -> None:
        self.body = body
        self.site = site
        maker = _wrapper_of(body)
        if maker is None:
            super().__init__(body)
            code = generated.code_of(body)
            if code is not None:
                self.name = generated.source_name(self.name)
                self.location = generated.source_location(code)
            return
        super().__init__(dict(zip(body.__code__.co_freevars, body.__closure__))["f"].cell_contents)
        self.kind = maker
        self.module = ""  # the function may be TensorFlow's, the rule is the user's
        self.name = f"{maker}({self.name})"
        self.location = site or self.location
        if maker == "tf.grad_pass_through":
            self.intent = Intent("differs", reason=maker)

    @property
    def anchor(self) -> Any:
        return self.body

    @property
    def qualified(self) -> str:
        return generated.source_name(super().qualified)

    def parts(self) -> dict[str, Any]:
        return {"function": self.user, "line": self.site}

    def kept(self) -> tuple[Any, Any]:
        import tensorflow as tf

        return tf.custom_gradient(self.body), self.user


def _wrapper_of(body: Any) -> str | None:
    return WRAPPERS.get((getattr(body, "__module__", ""), getattr(body, "__qualname__", "")))


# ── recognising ──────────────────────────────────────────────────────────────────────────────────────────


def found(value: Any) -> Native | None:
    """Recognise a rule that stands in a module.

    What the other makers made is known by the line that made it, which only a listener saw.
    """
    native = named(value)
    return native if native is not None and native.kind == "tf.custom_gradient" else None


def named(value: Any) -> Native | None:
    """Recognise what one of TensorFlow's makers made."""
    maker = str(getattr(getattr(value, "_tf_decorator", None), "decorator_name", ""))
    return Made(value, maker) if maker in MAKERS else None


def written(function: Any) -> Any:
    """Give what the user wrote: TensorFlow's decorators show it themselves."""
    return function


# ── bypassing ────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def bypassed(keeps: Keeps | None = None) -> Iterator[Meeting]:
    """Run rules as their plain bodies, recorded operation by operation."""
    from pullback.hosts.tensorflow import HOST, private

    def run_by(native: Callable[..., Any]) -> Callable[..., Any]:
        def run(body: Any, args: Any, kwargs: Any) -> Any:
            if not is_bypassed(lambda: Seen(body)):
                return native(body, args, kwargs)
            return body(*args, **kwargs)[0]

        return run

    rules = private.native_rules  # None in another TensorFlow than we know: its rules stay what they are
    running = contextlib.nullcontext() if rules is None else _run_by(rules, run_by)
    with collecting(HOST, keeps) as met, running:
        yield met


def _run_by(module: Any, how: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """Wrap both functions that run a rule."""
    return patched(module, **{name: how(getattr(module, name)) for name in RUNNERS})


# ── listening ────────────────────────────────────────────────────────────────────────────────────────────


def listeners(listener: Listener) -> dict[str, Listen]:
    """Say how to listen, by module."""
    return {MODULE: lambda module: _listening(module, listener)}


@contextlib.contextmanager
def _listening(module: Any, listener: Listener) -> Iterator[None]:
    # The bodies known, each with the line that made a rule of it; who listens makes another one of it.
    sites: weakref.WeakKeyDictionary[Any, tuple[str, int] | None] = weakref.WeakKeyDictionary()
    init = module.Bind.__init__

    def seen(body: Any) -> Seen:
        try:
            return Seen(body, sites.get(body))
        except TypeError:  # a callable that takes no weak reference
            return Seen(body)

    def telling(native: Callable[..., Any]) -> Callable[..., Any]:
        def run(f: Any, args: Any, kwargs: Any) -> Any:
            listener.called(lambda: seen(f), lambda: (args, kwargs))
            return native(f, args, kwargs)

        return run

    def bind(self: Any, f: Any, d: Any) -> None:
        init(self, f, d)
        with contextlib.suppress(TypeError):
            if not hasattr(f, "__func__") and f not in sites:  # a method is bound anew at every call
                sites[f] = _caller() if _wrapper_of(f) else None
                listener.made(lambda: seen(f))

    with _run_by(module, telling), patched(module.Bind, __init__=bind), pulled(listener, module, seen):
        yield


def _caller() -> tuple[str, int]:
    """Find the line of the program from which we are called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        "__autograph_generated_file" in frame.f_code.co_filename
        or str(frame.f_globals.get("__name__", "")).startswith((__name__, "tensorflow."))
    ):
        frame = frame.f_back
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno
