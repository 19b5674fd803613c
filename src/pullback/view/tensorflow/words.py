"""TensorFlow's words for the edits and the code that a report prints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pullback.view.words import Shown, Words


@dataclass(frozen=True)
class TensorFlowWords(Words):
    """Speak TensorFlow."""

    host: str = "TensorFlow"
    sum: str = "tf.reduce_sum({g}, axis={axis})"
    broadcast: str = "tf.broadcast_to({g}, tf.shape({x}))"
    reshape: str = "tf.reshape({g}, tf.shape({x}))"
    accumulate: str = "`tf.math.unsorted_segment_sum` or `tf.tensor_scatter_nd_add`"
    convention: str = (
        "TensorFlow's gradient of f is `dy * tf.math.conj(f'(z))`, of a matrix product `dy @ bᴴ`"
    )
    unused: str = "pass tensors by position; TensorFlow bypasses rules called with keywords"
    frozen: str = "look for Python values, NumPy or `.numpy()` in the body: they are frozen at tracing"
    imports: tuple[str, ...] = ("import tensorflow as tf",)
    tensor: str = "tf.constant({values}, dtype={dtype!r})"
    numpy: str = "tf.convert_to_tensor({t}).numpy()"
    leaves: str = "tf.nest.flatten({y})"

    def example(self, shown: Shown, *, second: bool = False) -> list[str]:
        """Write a tape, or two."""
        weights = [path for path, _ in shown.parameters]
        watched = ", ".join(n for n in shown.moving if n in shown.inputs)
        held = [f"{w}.value" if ".trainable_variables[" in w else w for w in weights]  # Keras's hold one
        moving = ", ".join([*(n for n in shown.moving if n in shown.inputs), *held])
        names = ", ".join(shown.names)
        given = "" if shown.cotangents is None else ", output_gradients=v"
        floating = "o.dtype.is_floating or o.dtype.is_complex"
        last = ["g = gradient(NAMES)", "print(g)"]
        if second:
            last = [
                "with tf.GradientTape() as outer:",
                "    outer.watch([WATCHED])",
                "    total = [t for t in gradient(NAMES) if t is not None]",
                "g = outer.gradient(total, [MOVING])",
                "print(g)",
            ]
        lines = [
            *self.upstream(shown),
            "def outputs(NAMES):",
            *(f"    {w}.assign({name})" for w, (_, name) in zip(weights, shown.parameters)),
            f"    return [o for o in {self.leaves.format(y=shown.call)} if {floating}]",
            "def gradient(NAMES):",
            "    with tf.GradientTape() as tape:",
            "        tape.watch([WATCHED])",
            "        y = outputs(NAMES)",
            f"    return tape.gradient(y, [MOVING]{given})",
            *last,
        ]
        said = {"NAMES": names, "WATCHED": watched, "MOVING": moving}
        return [re.sub("NAMES|WATCHED|MOVING", lambda m: said[m[0]], line) for line in lines]
