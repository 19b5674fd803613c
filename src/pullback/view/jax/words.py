"""JAX's words for the edits and the code that a report prints."""

from __future__ import annotations

from dataclasses import dataclass

from pullback.dtypes import LONG
from pullback.view.words import Shown, Words


@dataclass(frozen=True)
class JaxWords(Words):
    """Speak JAX."""

    host: str = "JAX"
    sum: str = "jnp.sum({g}, axis={axis})"
    broadcast: str = "jnp.broadcast_to({g}, {x}.shape)"
    reshape: str = "{g}.reshape({x}.shape)"
    accumulate: str = "`zeros.at[index].add(…)` or `jax.ops.segment_sum`"
    convention: str = (
        "a pullback rule gives `dy * jnp.conj(f'(z))`; a jax.custom_vjp, whose cotangents are conjugated, "
        "`dy * f'(z)`"
    )
    unused: str = "call the function that has the rule, and not its body"
    batching: str = "vmap"
    imports: tuple[str, ...] = ("import jax", "import jax.numpy as jnp")
    tensor: str = "jnp.array({values}, dtype={dtype!r})"

    def head(self, dtypes: frozenset[str]) -> list[str]:
        """Switch 64 bits on where an input has them."""
        wide = ['jax.config.update("jax_enable_x64", True)'] if dtypes & LONG else []
        return [*self.imports, *wide]

    def example(self, shown: Shown) -> list[str]:
        """Write a vjp; JAX's complex cotangents are the conjugates of the checker's."""
        moving = ", ".join(shown.moving)
        call, lines = shown.call, []
        scope = [f"    {line}" for line in self.scope(shown)]
        if shown.parameters and not scope:
            function, _, rest = call.partition("(")
            lines = [f"    leaves, structure = jax.tree.flatten({function})"]
            lines += [f"    leaves[{place}] = {name}" for place, name in shown.parameters]
            call = f"jax.tree.unflatten(structure, leaves)({rest}"
        cotangents = shown.cotangents
        upstream = (
            "[jnp.ones_like(o) for o in y]"
            if cotangents is None
            else f"[{', '.join(f'{c}.conj()' if 'complex' in c else c for c in cotangents)}]"
        )
        conjugated = any("complex" in dtype for dtype in shown.dtypes)
        return [
            f"def outputs({moving}):",
            *lines,
            *scope,
            f"    {'    ' if scope else ''}return jax.tree.leaves({call})",
            f"y, pull = jax.vjp(outputs, {moving})",
            f"print([g.conj() for g in pull({upstream})])" if conjugated else f"print(pull({upstream}))",
        ]
