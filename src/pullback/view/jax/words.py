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
    numpy: str = "np.asarray({t})"
    leaves: str = "jax.tree.leaves({y})"

    def head(self, dtypes: frozenset[str]) -> list[str]:
        """Switch 64 bits on where an input has them."""
        wide = ['jax.config.update("jax_enable_x64", True)'] if dtypes & LONG else []
        return [*self.imports, *wide]

    def example(self, shown: Shown, *, second: bool = False) -> list[str]:
        """Write a vjp; JAX's complex cotangents are the conjugates of the checker's."""
        moving, names = ", ".join(shown.moving), ", ".join(shown.names)
        call, lines = shown.call, []
        scope = [f"    {line}" for line in self.scope(shown)]
        if shown.parameters and not scope:
            function, _, rest = call.partition("(")
            lines = [f"    leaves, structure = jax.tree.flatten({function})"]
            lines += [f"    leaves[{path}] = {name}" for path, name in shown.parameters]
            call = f"jax.tree.unflatten(structure, leaves)({rest}"
        conj = ".conj()" if any("complex" in dtype for dtype in shown.dtypes) else ""
        given = "[jnp.ones_like(o) for o in y]" if shown.cotangents is None else "v"
        if shown.cotangents is not None and any("complex" in c for c in (*shown.cotangents, conj)):
            given = "[c.conj() for c in v]"
        last = f"g = gradient({names})"
        if second:
            total = f"sum(t.sum().real for t in gradient({names}))"
            numbers = "".join(f"{k}, " for k in range(len(shown.moving)))
            last = f"g = jax.grad(lambda {moving}: {total}, ({numbers}))({moving})"
            last = f"g = [t.conj() for t in {last[4:]}]" if conj else last
        return [
            *self.upstream(shown),
            f"def outputs({names}):",
            *lines,
            *scope,
            f"    {'    ' if scope else ''}y = {self.leaves.format(y=call)}",
            "    return [o for o in y if jnp.issubdtype(o.dtype, jnp.inexact)]",
            f"def gradient({names}):",
            f"    y, pull = jax.vjp(lambda {moving}: outputs({names}), {moving})",
            f"    return [t{conj} for t in pull({given})]",
            last,
            "print(g)",
        ]
