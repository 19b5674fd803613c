"""TensorFlow's words for the edits and the code that a report prints."""

from __future__ import annotations

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

    def example(self, shown: Shown) -> list[str]:
        """Write a tape."""
        weights = [place for place, _ in shown.parameters]
        moving = [*(n for n in shown.moving if n in shown.inputs), *(f"{w}.value" for w in weights)]
        upstream = "" if shown.cotangents is None else f", output_gradients=[{', '.join(shown.cotangents)}]"
        watched = ", ".join(n for n in shown.moving if n in shown.inputs)
        return [
            *(f"{w}.assign({name})" for w, (_, name) in zip(weights, shown.parameters)),
            "with tf.GradientTape() as tape:",
            f"    tape.watch([{watched}])",
            f"    y = {shown.call}",
            f"print(tape.gradient(tf.nest.flatten(y), [{', '.join(moving)}]{upstream}))",
        ]
