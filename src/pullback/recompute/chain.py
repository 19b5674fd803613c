"""A chain of additive couplings as half-steps, forward and back.

Half-step k adds a function of one half of the state to the other half: to the first where k is even. So it is
undone by the same function, subtracted. `grafted` is the way of hosts that run functions again by
themselves: the chain is one operation, of its inputs and of all that its functions read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from pullback import hosts, outputs
from pullback.errors import DerivativeError, DriftWarning, UnsupportedInputError
from pullback.hosts.base import Host
from pullback.hosts.claims import Claim
from pullback.hosts.operation import Tensor
from pullback.hosts.specs import same_shape
from pullback.outputs import Outputs
from pullback.plan import Plan, plan
from pullback.replace.graft import Graft
from pullback.rule import Rule
from pullback.tree import flatten

Tensors = list[Tensor]
Again = Callable[[Tensor, Sequence[Tensor], Tensor], "tuple[Tensor, Any, Sequence[Any]]"]


class First(NamedTuple):
    """A half-step that ran: what it adds, what it read, and how it is run again.

    `again` takes the input, what was read and a cotangent; it gives what is added, and the cotangents.
    """

    added: Tensor
    reads: Tensors
    again: Again


Warn = Callable[["Chain", Host, Any, Any, Tensors], Tensors]


class Chain:
    """The half-steps of a chain, and how far its recovered inputs may be from the given ones."""

    def __init__(self, rules: Sequence[Rule], drift: float | None) -> None:
        self.rules = rules
        self.drift = drift

    def run(self, *state: Tensor) -> tuple[Tensor, ...]:
        """Run the chain as it stands."""
        return tuple(self.through(state, lambda k, x: self.rules[k].body(x)))

    def through(self, state: Sequence[Tensor], half: Callable[[int, Tensor], Tensor]) -> Tensors:
        """Go through the chain with a function that runs one half-step."""
        state, host = list(state), hosts.of(state[0])
        for k in range(len(self.rules)):
            onto = state[k % 2]
            state[k % 2] = onto + self.require_like(k, host, half(k, state[1 - k % 2]), onto)
        return state

    def planned(self, k: int, x: Tensor) -> Plan:
        """Give the plan of one half-step."""
        return plan(self.rules[k], (x,), {})[0]

    def require_like(self, k: int, host: Host, added: Any, onto: Tensor) -> Tensor:
        """Refuse what cannot be added to its half and taken away again."""
        if not host.is_tensor(added):
            self._refuse(k, f"it returned a {type(added).__name__}", str(host.spec(onto)))
        have, want = host.spec(added), host.spec(onto)
        shaped = have.shape is None or want.shape is None or same_shape(have.shape, want.shape)
        if have.dtype != want.dtype or not shaped:
            self._refuse(k, f"it returned {have}", str(want))
        return added

    def _refuse(self, k: int, found: str, like: str) -> NoReturn:
        raise UnsupportedInputError.about(
            self.rules[k].where,
            found=found,
            expected=f"{like}: a tensor like the half of the state that it is added to",
            why="what is added is taken away again in the backward pass",
            fix="return one tensor of that shape and dtype",
        )

    def strayed(self, host: Host, given: Sequence[Tensor], recovered: Sequence[Tensor]) -> tuple[Any, Any]:
        """Tell whether recovered inputs are the given ones, and how far from them they are."""
        xp = host.arrays
        size = sum(xp.square_sum(xp.wide(xp.stop(x)), None) for x in given)
        off = sum(xp.square_sum(xp.wide(xp.stop(r) - xp.stop(x)), None) for r, x in zip(recovered, given))
        assert self.drift is not None
        return off <= self.drift**2 * size, xp.sqrt(off / size)

    def warn(self, number: Any) -> None:
        """Warn of a drift."""
        warnings.warn(str(self.words(f"{float(number):.1e}")), DriftWarning, stacklevel=2)

    def words(self, number: str) -> DerivativeError:
        """Say that inputs were not recovered."""
        return DerivativeError.about(
            f"reversible, from {self.rules[0].where} to {self.rules[-1].where}",
            found=f"the inputs that {len(self.rules) // 2} blocks recover are off by {number} of their norm",
            expected=f"at most {self.drift:g}, as drift= says",
            why="what a block adds is rounded off what it adds to, and the gradients go wrong with it",
            fix="scale down what the blocks add, use float64, fewer blocks, or pb.checkpoint; "
            "drift=None asks nothing",
        )

    @property
    def claim(self) -> Claim:
        """Give what must hold where nobody can be warned."""
        return Claim("reversible", self.rules[0].where, self.words)


def grafted(
    plan: Plan, chain: Chain, tensors: Tensors, first: Callable[[Plan, Tensor], First], warn: Warn
) -> Tensors:
    """Run a chain, and undo it in the pullback of one operation."""
    host = plan.host
    runs: list[tuple[Again, int]] = []
    sources = list(tensors)
    state = [host.arrays.stop(x) for x in tensors]
    for k in range(len(chain.rules)):
        x, onto = state[1 - k % 2], state[k % 2]
        ran = first(chain.planned(k, x), x)
        sources += ran.reads
        runs.append((ran.again, len(ran.reads)))
        state[k % 2] = host.arrays.stop(onto + chain.require_like(k, host, ran.added, onto))

    def pull(graft: Graft, given: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
        state, slopes = graft.again(given), list(cotangents)
        reads, found = list(given[2:]), list[Any]()
        for k in reversed(range(len(runs))):
            again, count = runs[k]
            onto, x = k % 2, 1 - k % 2
            read = reads[len(reads) - count :]
            del reads[len(reads) - count :]
            added, slope, more = again(state[x], read, slopes[onto])
            found[:0] = more
            state[onto] = state[onto] - added
            if slope is not None:
                slopes[x] = slopes[x] + slope
        if chain.drift is not None:
            slopes = warn(chain, host, *chain.strayed(host, reads, state), slopes)
        return [None, None, *slopes, *found]

    form = Outputs(flatten((0, 0))[1], (outputs.TENSOR, outputs.TENSOR))
    return list(Graft(plan, form, 2, pull).applied(state, sources))
