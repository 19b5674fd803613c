"""How generated rules are checked on a host, and held against what is known of them."""

import importlib

import numpy as np
from generator import generated

import pullback as pb
from pullback import tree
from pullback.checker import check

HOSTS = {
    "TensorFlow": ("tensorflow", "constant"),
    "JAX": ("jax.numpy", "asarray"),
    "PyTorch": ("torch", "as_tensor"),
}
QUICK = {"xla": False, "export": False}


def of_torch(body):
    """Make a `torch.autograd.Function` of a body, which is run again for its gradient."""
    import torch

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx, structure, *leaves):
            ctx.structure = structure
            ctx.save_for_backward(*leaves)
            *outputs, _ = body(*tree.unflatten(structure, list(leaves)))
            return tuple(outputs) if len(outputs) > 1 else outputs[0]

        @staticmethod
        def backward(ctx, *upstream):
            *_, grad = body(*tree.unflatten(ctx.structure, list(ctx.saved_tensors)))
            found = grad(*upstream)
            flat = found_leaves(found if isinstance(found, tuple) else (found,))
            needed = ctx.needs_input_grad[1:]
            return None, *(g if need else None for g, need in zip(flat, needed))

    def function(*args):
        leaves, structure = tree.flatten(list(args))
        return Rule.apply(structure, *leaves)

    function.__name__ = body.__name__
    return function


def found_leaves(found):
    """Flatten what a `grad` returned, with a None for each input that has none."""
    return [g for part in found for g in ([None] if part is None else tree.flatten(part)[0])]


def of_jax(body):
    """Make a `jax.custom_vjp` of a body, with the conjugates of JAX's convention."""
    import jax

    def conjugate(found):
        return jax.tree.map(lambda g: g.conj(), found)

    @jax.custom_vjp
    def function(*args):
        *outputs, _ = body(*args)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def backward(args, upstream):
        *outputs, grad = body(*args)
        found = grad(*conjugate(upstream if len(outputs) > 1 else (upstream,)))
        return conjugate(found if isinstance(found, tuple) else (found,))

    function.defvjp(lambda *args: (function(*args), args), backward)
    function.__name__ = body.__name__
    return function


def forward_of_jax(body):
    """Make a `jax.custom_jvp` of a body whose gradient is its own transpose."""
    import jax

    @jax.custom_jvp
    def function(x):
        return body(x)[0]

    @function.defjvp
    def tangent(primals, tangents):
        y, grad = body(*primals)
        return y, grad(*tangents)

    function.__name__ = body.__name__
    return function


def of_tensorflow(body):
    """Make a `tf.custom_gradient` of a body."""
    import tensorflow as tf

    @tf.custom_gradient
    def function(*args):
        *outputs, grad = body(*args)
        return (tuple(outputs) if len(outputs) > 1 else outputs[0]), grad

    function.__name__ = body.__name__
    return function


NATIVE = {
    "PyTorch": {"reverse": of_torch},
    "JAX": {"reverse": of_jax, "forward": forward_of_jax},
    "TensorFlow": {"reverse": of_tensorflow},
}


def judged(seed, host, made=generated):
    """Check one generated rule; give the rule and its report."""
    module, name = HOSTS[host]
    tensor = getattr(importlib.import_module(module), name)
    rule = made(seed)
    leaves, structure = tree.flatten([list(rule.args), rule.kwargs])
    tensors = [tensor(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    args, kwargs = tree.unflatten(structure, tensors)
    makers = NATIVE[host] if rule.native else {}
    function = makers.get(rule.native, makers.get("reverse", pb.custom_gradient))(rule.body)
    return rule, check(function, *args, seed=seed, **QUICK, **kwargs)


def mistake(seed, host, *, made=generated, seen=None):
    """Say what the checker got wrong about one generated rule, or nothing; count the verdict in `seen`."""
    rule, report = judged(seed, host, made)
    if seen is not None:
        seen["right" if rule.right else "wrong" if rule.shows else "hidden", report.verdict] += 1
    if rule.right and report.verdict == "wrong":
        return f"{seed}: {rule.made}: a false alarm: {[f.sentence for f in report.failures]}"
    if not rule.right and rule.shows and report.verdict != "wrong":
        return f"{seed}: {rule.made}: missed, {report.verdict}"
    return ""
