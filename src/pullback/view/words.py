"""What a host calls things, in the edits that a report suggests and in the code it prints.

The checker itself knows no framework; it fills these templates. The defaults speak NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Shown(NamedTuple):
    """Hold what code to paste shows: the call, the names of its inputs and outputs, and cotangents."""

    call: str
    names: Sequence[str]  # of all inputs, parameters last
    inputs: Sequence[str]  # names, in the order of the call
    moving: Sequence[str]  # those that a gradient can flow to
    parameters: Sequence[tuple[str, str]]  # of the callable itself: what the host calls them, and their names
    cotangents: Sequence[str] | None  # as code; None for ones
    dtypes: frozenset[str]


@dataclass(frozen=True)
class Words:
    """Hold the templates of one host; `{g}` is a gradient, `{x}` an input, `{axis}` an axis."""

    host: str = "the host"
    sum: str = "np.sum({g}, axis={axis})"
    broadcast: str = "np.broadcast_to({g}, np.shape({x}))"
    reshape: str = "np.reshape({g}, np.shape({x}))"
    accumulate: str = "`np.add.at`"
    convention: str = "the gradient of f is `dy * conj(f'(z))`"
    unused: str = "call the rule itself"
    batching: str = "jacobian"  # the row of the table that tells of batched cotangents
    frozen: str = "look for Python values or NumPy in the body: they are frozen at tracing"
    mends: str = "it is put right in silence"  # a cotangent of a wrong shape, where the host does that
    imports: tuple[str, ...] = ()
    tensor: str = "np.array({values}, dtype={dtype!r})"
    numpy: str = "np.asarray({t})"
    leaves: str = "list({y})"  # all that is inside of what was returned

    def head(self, dtypes: frozenset[str]) -> list[str]:
        """Write the lines that come before the inputs."""
        return list(self.imports)

    @staticmethod
    def scope(shown: Shown) -> list[str]:
        """Write the scope in which a Keras layer has other weights; nothing where it is none."""
        if not any(".trainable_variables[" in path for path, _ in shown.parameters):
            return []
        pairs = ", ".join(f"({path}, {name})" for path, name in shown.parameters)
        return [f"with keras.StatelessScope(state_mapping=[{pairs}]):"]

    def example(self, shown: Shown, *, second: bool = False) -> list[str]:
        """Write `outputs` and `gradient` as functions of the inputs, and print the gradient `g`.

        With `second`, `g` is the gradient of the sum of all entries of `gradient`.
        """
        return [f"print({shown.call})"]

    @staticmethod
    def upstream(shown: Shown) -> list[str]:
        """Write the cotangents, where they are not ones."""
        return [] if shown.cotangents is None else [f"v = [{', '.join(shown.cotangents)}]"]
