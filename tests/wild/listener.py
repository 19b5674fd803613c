"""Run a program and write down which custom gradients it called, without pullback.

It must not share a way of listening with what it judges: the makers and the calls are replaced before the
program starts, by name, and a rule is the place where its function was written. Rules of the frameworks
themselves are left out.

    python listener.py OUT.json PROGRAM.py
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import runpy
import sys
from typing import Any

OWN = ("torch", "jax", "jaxlib", "tensorflow", "keras", "tf_keras", "equinox")
called: dict[tuple[str, int, str], dict[str, Any]] = {}


def note(function: Any) -> None:
    """Write down one call of a function, or of a class, that has a gradient of its own."""
    function = inspect.unwrap(getattr(function, "func", function))
    function = getattr(function, "__func__", function)
    if str(getattr(function, "__module__", "")).partition(".")[0] in OWN:
        return
    try:
        path = os.path.realpath(inspect.getsourcefile(function) or "?")
        line = inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        path, line = "", 0
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "")
    if "__autograph_generated_file" in path:  # the file is gone when the program ends: the name must do
        path, line = "", 0
        name = re.sub(r"^(outer_factory\.inner_factory\.)+|\btf__", "", name)
    key = (path, line, "" if path else name)
    called.setdefault(key, {"path": path, "line": line, "name": name, "calls": 0})["calls"] += 1


def listen_to_torch() -> None:
    """Count the calls of every `torch.autograd.Function`."""
    import torch

    plain = torch.autograd.Function.__dict__["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        note(cls)
        return plain(cls, *args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)


def counted(kind: Any, name: str) -> None:
    """Count the calls of the instances of a class, each of which holds a function."""
    plain = kind.__call__

    @functools.wraps(plain)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        held = getattr(self, name)
        inside = getattr(held, "fun", None)  # Equinox may hold a rule of JAX's that it made of the function
        note(held if inside is None else inspect.getclosurevars(inside).nonlocals["fn"])
        return plain(self, *args, **kwargs)

    kind.__call__ = call


def listen_to_jax() -> None:
    """Count the calls of `jax.custom_jvp` and `jax.custom_vjp`, and of what Equinox makes of them."""
    import equinox
    import jax

    for kind in (jax.custom_jvp, jax.custom_vjp):
        counted(kind, "fun")
    for kind in (equinox.filter_custom_jvp, equinox.filter_custom_vjp):
        counted(kind, "fn")
    plain = jax.custom_gradient  # what it makes is a rule of JAX's own around the function

    def custom_gradient(f: Any) -> Any:
        made = plain(f)

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            note(f)
            return made(*args, **kwargs)

        return call

    jax.custom_gradient = custom_gradient


def listen_to_tensorflow() -> None:
    """Count the calls of what `tf.custom_gradient` made: of its body, since a rule may be a method."""
    import tensorflow as tf

    plain = tf.custom_gradient
    importlib.import_module("tensorflow.compat.v2")

    def custom_gradient(f: Any = None) -> Any:
        if f is None:
            return custom_gradient

        @functools.wraps(f)
        def body(*args: Any, **kwargs: Any) -> Any:
            note(f)
            return f(*args, **kwargs)

        return plain(body)

    for name, module in list(sys.modules.items()):  # TensorFlow is there under several names
        public = not re.search(r"\.python\b", name)
        if name.startswith("tensorflow") and public and vars(module).get("custom_gradient") is plain:
            module.custom_gradient = custom_gradient
    tf.custom_gradient = custom_gradient


LISTEN = {"torch": listen_to_torch, "jax": listen_to_jax, "tensorflow": listen_to_tensorflow}


def main(out: str, program: str) -> None:
    """Run a program and write what it called."""
    with open(program, encoding="utf-8") as file:
        text = file.read()
    if "TF_USE_LEGACY_KERAS" in text:  # which TensorFlow reads when it is imported
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    for framework, listen in LISTEN.items():
        if f"import {framework}" in text:
            listen()
    sys.argv = [program]
    runpy.run_path(program, run_name="__main__")
    with open(out, "w", encoding="utf-8") as file:
        json.dump(list(called.values()), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
