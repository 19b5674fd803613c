"""PyTorch's words for the edits and the code that a report prints."""

from __future__ import annotations

from dataclasses import dataclass

from pullback.view.words import Shown, Words

DATA = ".data"  # the end of what sets a parameter that is read by its name


@dataclass(frozen=True)
class TorchWords(Words):
    """Speak PyTorch."""

    host: str = "PyTorch"
    sum: str = "{g}.sum(dim={axis})"
    broadcast: str = "{g}.expand_as({x})"
    reshape: str = "{g}.reshape({x}.shape)"
    accumulate: str = "`torch.index_add` or `scatter_add`"
    convention: str = "PyTorch's gradient of f is `dy * f'(z).conj()`, of a matrix product `dy @ b.mH`"
    unused: str = "call `apply`, and not `forward`"
    batching: str = "vmap"
    frozen: str = "look for Python values, NumPy or `.item()` in the body: they are frozen at tracing"
    mends: str = "PyTorch sums it in silence"
    imports: tuple[str, ...] = ("import torch",)
    tensor: str = "torch.tensor({values}, dtype=torch.{dtype})"
    numpy: str = "{t}.detach().numpy()"
    leaves: str = "torch.utils._pytree.tree_leaves({y})"

    def example(self, shown: Shown, *, second: bool = False) -> list[str]:
        """Write a call of `torch.autograd.grad`, or two."""
        moving, names = ", ".join(shown.moving), ", ".join(shown.names)
        call = shown.call
        scope = self.scope(shown)
        read = {name: path for path, name in shown.parameters if path.endswith(DATA)}
        # A parameter that is read by its name is set, and is itself what a gradient is asked of.
        set_first = [f"{path} = {name}.detach()" for name, path in read.items()]
        asked = ", ".join(read[name].removesuffix(DATA) if name in read else name for name in shown.moving)
        if shown.parameters and not scope and not read:
            function, _, rest = call.partition("(")
            weights = ", ".join(f"{path!r}: {name}" for path, name in shown.parameters)
            call = f"torch.func.functional_call({function}, {{{weights}}}, ({rest[:-1]},))"
        given = "[torch.ones_like(o) for o in y]" if shown.cotangents is None else "v"
        kept = ", create_graph=True" if second else ""
        last = [f"g = gradient({names})", "print(g)"]
        if second:
            last = [
                f"total = sum(t.sum().real for t in gradient({names}) if t is not None)",
                f"g = torch.autograd.grad(total, [{asked}], allow_unused=True)",
                "print(g)",
            ]
        return [
            f"for x in [{moving}]:",
            "    x.requires_grad_()",
            *self.upstream(shown),
            f"def outputs({names}):",
            *(f"    {line}" for line in (*set_first, *scope)),
            f"    {'    ' if scope else ''}y = {self.leaves.format(y=call)}",
            "    return [o for o in y if o.is_floating_point() or o.is_complex()]",
            f"def gradient({names}):",
            f"    y = outputs({names})",
            f"    y, c = zip(*((o, c) for o, c in zip(y, {given}) if o.requires_grad))",
            f"    return torch.autograd.grad(y, [{asked}], c, allow_unused=True{kept})",
            *last,
        ]
