"""How a gradient is lost: one kind each, what it means, and what to write instead.

A kind is found from a node, what it does and what was measured on the edges around it; nothing here knows a
framework but by its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pullback.graphs.parts import Edge, Node

INTEGERS = ("int", "uint", "bool", "long")
STEPS = ("round", "sign", "floor", "argmax", "compare")
# The kind of loss at an operation that passes no gradient on whatever the values are, by what it does.
ENDS = {"stop": "stop", "rebuild": "rebuild", "leave": "numpy", **dict.fromkeys(STEPS, "zero derivative")}
# … and at one that passes zeros on.
FLAT = {"loop": "zero in a loop", "where": "where"}
FLAT |= dict.fromkeys(("clamp", "sigmoid", "tanh", "softmax", "exp"), "saturated")
STEEP = ("sqrt", "log", "divide", "pow", "norm", "acos")  # what has an infinite slope somewhere


@dataclass(frozen=True)
class Loss:
    """Say in words what happens to a gradient, and what to do; `{name}` is the operation."""

    means: str
    fix: str


LOSSES = {
    "stop": Loss(
        "{name} cuts the value off from what it was computed from, on purpose.",
        "Take {name} away, or ask for the gradient of what comes after it.",
    ),
    "rebuild": Loss(
        "{name} makes a new tensor of numbers, which knows nothing of what they were computed from.",
        "Put tensors together by torch.stack or torch.cat; one that is a tensor already needs nothing.",
    ),
    "integer": Loss(
        "{name} makes whole numbers, and those have no derivative.",
        "Keep it floating; where whole numbers are meant, pb.straight_through and pb.round pass one on.",
    ),
    "integer source": Loss("It is made of whole numbers, and those have no derivative.", "Pass floats."),
    "zero derivative": Loss(
        "{name} is constant between its steps: its derivative is zero everywhere.",
        "Use pb.round, pb.sign or pb.heaviside, pb.straight_through, or a smooth function in its place.",
    ),
    "numpy": Loss(
        "The value leaves the framework at {name}, and what comes back is a constant.",
        "Use the framework's own functions there, on tensors; or wrap the NumPy function: pb.external.",
    ),
    "stored": Loss(
        "{name} writes the value into a variable, and no gradient goes back through what is read from one.",
        "Go on with the value itself, beside the variable: y = w * 2, v.assign(y), and then y.",
    ),
    "captured": Loss(
        "{name} reads a tensor that it is not handed, and its gradient answers for its arguments alone.",
        "Make that tensor an argument of the rule.",
    ),
    "unused": Loss(
        "No operation on the way to the result reads it.",
        "Look where the function gets its values from: a copy, or a name of the same spelling outside.",
    ),
    "no history": Loss(
        "The source is not in the graph of the target. It was not used, or cut off: detach, .data, no_grad, "
        "NumPy; autograd records no operation that does not pass a gradient on.",
        "Pass the function, and the operation is named: pb.why(lambda x: loss(x), x).",
    ),
    "elsewhere": Loss(
        "The function does not read what it is handed: the result comes from {name}, which is captured.",
        "Use the argument inside the function, or ask for the gradient of what is captured.",
    ),
    "unwatched": Loss(
        "The variable is not trained, and a tape watches only those that are.",
        "tf.Variable(..., trainable=True), or tape.watch(variable) right after the tape is opened.",
    ),
    "not required": Loss(
        "It does not require a gradient, so nothing that is computed from it is recorded.",
        "x.requires_grad_() before the target is computed.",
    ),
    "no_grad": Loss(
        "{name} ran while nothing was recorded, as under torch.no_grad(), or has no derivative.",
        "Call it outside of torch.no_grad() and torch.inference_mode().",
    ),
    "while": Loss(
        "{name} decides as it runs how many rounds it makes; JAX goes backward through no such loop, and "
        "jax.grad raises.",
        "Use lax.scan, or fori_loop with bounds that are Python's; pb.implicit for a solver.",
    ),
    "no gradient": Loss(
        "{name} has no derivative in this framework.",
        "Give it one: pb.custom_gradient, or pb.with_gradient around the function.",
    ),
    "rule": Loss(
        "{name} is a custom gradient, and this is what its gradient returned.",
        "Check the rule: pb.check({name}, x).",
    ),
    "where": Loss(
        "{name} does not select this branch at any entry, so its gradient is zero.",
        "Look at the condition: it is the same everywhere.",
    ),
    "where 0·inf": Loss(
        "The derivative of {name} is not finite at entries that `where` does not select; the gradient there "
        "is zero times that, which is NaN.",
        "Make the operand safe before: x_safe = where(ok, x, 1.0), then where(ok, f(x_safe), 0.0).",
    ),
    "0·inf": Loss(
        "The derivative of {name} is infinite here, and the gradient that comes to it is zero: 0·inf is NaN.",
        "Keep the operand away from that point (an epsilon, a clamp), or give it a rule: pb.custom_gradient.",
    ),
    "singular": Loss(
        "The derivative of {name} is not finite here.",
        "Keep the operand away from that point (an epsilon, a clamp), or give it a rule: pb.custom_gradient.",
    ),
    "overflow": Loss(
        "The gradient that comes to {name} is finite, and what it passes on is too large for its dtype.",
        "Scale the loss down, or compute here in a dtype that holds more: bfloat16, float32.",
    ),
    "broken in a loop": Loss(
        "A finite gradient comes to {name}, and it is not finite any more after its rounds.",
        'Look at each round: h = pb.watch(h, "round") inside; it grows, or an operation has no finite slope.',
    ),
    "forward": Loss(
        "The value itself is not finite from {name} on; no gradient can be.",
        "Mend the forward there first.",
    ),
    "forward after inf": Loss(
        "The value itself is NaN from {name} on; no gradient can be. It is infinite before, from {before} "
        "on.",
        "Mend the forward there first: keep an operand away from that point, or a value from growing.",
    ),
    "dead": Loss(
        "Every entry that comes to {name} is negative or zero, where its derivative is zero.",
        "Use a leaky activation, another initialisation, or a smaller step.",
    ),
    "saturated": Loss(
        "Every entry that comes to {name} lies where it is flat.",
        "Scale what goes in, use a loss on logits, or clip with a gradient: pb.straight_through.",
    ),
    "underflow": Loss(
        "The gradient that comes to {name} is so small that what it passes on is zero in its dtype.",
        "Scale the loss up (a GradScaler, a LossScaleOptimizer), or compute here in float32; over many "
        "layers or steps, normalise or skip some: pb.watch shows where it shrinks.",
    ),
    "corner": Loss(
        "All that comes to {name} is zero, or the same: it has a corner there, and its slope is set to zero.",
        "Start from other values, or round the corner off: sqrt(sum(x²) + epsilon).",
    ),
    "zero factor": Loss(
        "{name} multiplies by zeros, and so does its derivative.",
        "Look at the other factor: a mask, an initialisation with zeros, or a weight of zero.",
    ),
    "cancels": Loss(
        "Gradients arrive along several paths, and their sum is zero.",
        "The result does not depend on it here: look at the paths.",
    ),
    "zero": Loss(
        "{name} passes zeros on, though what comes to it is not zero.",
        "Look at the values that come to it.",
    ),
    "zero in a loop": Loss(
        "{name} passes zeros on, though what comes to it is not zero, and no operation inside stops it.",
        'Look at each round: h = pb.watch(h, "round") inside; it shrinks to nothing, or something is flat.',
    ),
    "flows": Loss("The gradient flows.", ""),
    "unknown": Loss(
        "It could not be measured.", "Mend what is said of it, or ask for a part of the function."
    ),
}  # fmt: skip


def passes_nothing(node: Node, before: Sequence[Edge], after: Sequence[Edge]) -> bool:
    """Tell an operation through which no gradient comes, whatever the values are."""
    floats = any(not e.dtype.startswith(INTEGERS) for e in before)
    integers = bool(after) and all(e.dtype.startswith(INTEGERS) for e in after)
    return node.rule is None and (node.does in ENDS or (floats and integers))


def of_none(node: Node, before: Sequence[Edge], after: Sequence[Edge], host: str) -> str:
    """Name why an operation passes no gradient on."""
    if any(e.place == -1 and e.state == "none" for e in before) and node.rule is not None:
        return "captured"
    if node.rule is not None:
        return _of_rule(node)
    if node.does in ENDS:
        return ENDS[node.does]
    if host == "jax" and node.operation == "while":
        return "while"
    if after and all(e.dtype.startswith(INTEGERS) for e in after):
        return "integer"
    return "no_grad" if host == "torch" else "no gradient"


def _of_rule(node: Node) -> str:
    """Tell the rules of this library that stop a gradient from those that lose it."""
    stops = node.rule is not None and node.rule.maker == "pullback" and node.name == "stop_gradient"
    return "stop" if stops else "rule"


def of_zero(node: Node, before: Sequence[Edge], arriving: Sequence[Edge], operands: Sequence[Edge]) -> str:
    """Name why an operation passes zeros on; `operands` are all that it reads, `before` those asked for."""
    if node.rule is not None:
        return _of_rule(node)
    if node.does in ENDS:
        return ENDS[node.does]
    if node.does == "relu":
        return _of_relu(node, before)
    if node.does not in ("loop", "where", "clamp") and _is_tiny(arriving, before):
        return "underflow"
    if node.does in FLAT:
        return FLAT[node.does]
    if node.does == "multiply":
        known = [e.value for e in operands if e.value is not None]
        filled = len(known) > 1 and all(value.zero < value.size for value in known)
        return "cancels" if filled else "zero factor"
    if node.does == "norm" and all(e.value is not None and e.value.low == e.value.high for e in before):
        return "corner"
    return "zero"


def _largest(arriving: Sequence[Edge]) -> float:
    flows = [e.gradient for e in arriving if e.gradient is not None]
    return max((max(abs(g.low), abs(g.high)) for g in flows), default=1.0)


def _range(edge: Edge) -> tuple[float, float]:
    """Give between which sizes a factor keeps a gradient in the dtype of an edge; bfloat16 has float32's."""
    wide = edge.dtype in ("float64", "complex128")
    known = np.finfo("float64" if wide else "float16" if edge.dtype == "float16" else "float32")
    eps = float(known.eps)
    return float(known.tiny) / eps, float(known.max) * eps


def _is_tiny(arriving: Sequence[Edge], before: Sequence[Edge]) -> bool:
    return any(_largest(arriving) < _range(e)[0] for e in before)


def _is_huge(arriving: Sequence[Edge], before: Sequence[Edge]) -> bool:
    return any(_largest(arriving) > _range(e)[1] for e in before)


def _of_relu(node: Node, before: Sequence[Edge]) -> str:
    """Tell an activation that is fed nothing positive from a maximum that takes the other operand."""
    if all(e.value is None or e.value.high <= 0 for e in before):
        return "dead"
    return "where" if "max" in node.operation.lower() else "saturated"


def of_broken(node: Node, before: Sequence[Edge], arriving: Sequence[Edge], selected: bool) -> str:
    """Name why an operation makes a finite gradient NaN or infinite."""
    if node.rule is not None:
        return "rule"
    zeros = any(e.gradient is not None and e.gradient.zero for e in arriving)
    if zeros and any(e.state == "nan" for e in before):
        return "where 0·inf" if selected else "0·inf"
    if node.does == "loop":
        return "broken in a loop"
    if node.does not in STEEP and _is_huge(arriving, before):
        return "overflow"
    return "singular"
