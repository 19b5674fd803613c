"""PyTorch's words for the edits and the code that a report prints."""

from __future__ import annotations

from dataclasses import dataclass

from pullback.view.words import Shown, Words


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

    def example(self, shown: Shown) -> list[str]:
        """Write a call of `torch.autograd.grad`."""
        moving = ", ".join(shown.moving)
        call = shown.call
        scope = self.scope(shown)
        if shown.parameters and not scope:
            function, _, rest = call.partition("(")
            weights = ", ".join(f"{place!r}: {name}" for place, name in shown.parameters)
            call = f"torch.func.functional_call({function}, {{{weights}}}, ({rest[:-1]},))"
        upstream = (
            "[torch.ones_like(o) for o in outputs]"
            if shown.cotangents is None
            else f"[{', '.join(shown.cotangents)}]"
        )
        return [
            f"for x in [{moving}]:",
            "    x.requires_grad_()",
            *scope,
            f"{'    ' if scope else ''}y = {call}",
            "outputs = [o for o in torch.utils._pytree.tree_leaves(y) if o.requires_grad]",
            f"print(torch.autograd.grad(outputs, [{moving}], {upstream}, allow_unused=True))",
        ]
