"""Generated rules of further shapes, as users write them; the truth is known as in `generator`.

Every shape is one function in a file `shapes_*.py`, with the mutations of its own.
"""

from __future__ import annotations

import numpy as np
import shapes_arguments  # noqa: F401  (they enter their shapes)
import shapes_domains  # noqa: F401
import shapes_matrices  # noqa: F401
import shapes_values  # noqa: F401
from generator import Generated, apart, chain, composed
from kit import KINDS, Kit

NATIVE = 0.4  # the part of the rules that is made by the framework's own maker, where one can


def wider(seed):
    """Make one rule of a wider kind."""
    rng = np.random.default_rng([2027, seed])
    name = str(rng.choice(list(KINDS)))
    made, mutations = KINDS[name]
    names, dtype = composed(rng), ("float32", "float64")[rng.integers(2)]
    wrong = str(rng.choice(mutations)) if rng.random() < 0.5 else ""
    drawn = int(rng.integers(2**31))
    bodies = []
    for mutation in dict.fromkeys((wrong, "")):
        value, pull = chain(names, mutation if mutation in ("missing term", "branch") else "")
        kit = Kit(np.random.default_rng(drawn), dtype, value, pull, mutation)
        body, args, kwargs = made(kit)
        bodies.append(body)
    bodies[0].__name__ = f"wider_{seed}"
    said = f"{name} of {' of '.join(reversed(names))} in {dtype}" + (f", {wrong}" if wrong else "")
    native = ("forward" if name == "diagonal" else "reverse") if not kwargs and rng.random() < NATIVE else ""
    shows = bool(wrong) and apart(bodies[0], bodies[1], args, kwargs)
    return Generated(bodies[0], args, kwargs, said, not wrong, shows, native)
