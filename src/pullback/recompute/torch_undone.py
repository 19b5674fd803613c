"""A chain of half-steps in PyTorch: recorded as it is, but for what it saves, which is computed again.

A half-step that is recorded saves a number in the place of each tensor. When the first of them is asked for,
the chain is undone from its outputs down to that block, and the block's functions run as they ran, to save
the tensors. So the graph is that of the chain itself, with its parameters, its higher orders and its hooks,
and it holds the states of one block at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import torch
from torch.autograd.graph import saved_tensors_hooks

from pullback.errors import DerivativeError
from pullback.hosts.base import Host
from pullback.hosts.torch import state, surroundings
from pullback.recompute.chain import Chain


class _Ran(NamedTuple):
    """How a half-step ran: with which autocast and random numbers, and whether its input was recorded."""

    autocast: Any
    drawn: Any
    recorded: bool


class Undone:
    """One call of a chain."""

    def __init__(self, host: Host, chain: Chain) -> None:
        self._host = host
        self._chain = chain
        self._ran: list[_Ran] = []
        self._lowest = len(chain.rules)  # the first half-step that saves anything

    def run(self, tensors: list[Any]) -> list[Any]:
        """Run the chain, recorded. What it returns holds this object, and must not be held by it."""
        self._given = [(x.detach(), x._version) for x in tensors]
        found = self._chain.through(tensors, self._first)
        self._ends = [(y.detach(), y._version) for y in found]
        self._rewind()
        return found

    def _first(self, k: int, x: Any) -> Any:
        """Run a half-step, and save numbers."""
        before, numbers = surroundings.states(), list[tuple[int, int]]()

        def number(tensor: Any) -> tuple[int, int]:
            self._lowest = min(self._lowest, k)
            numbers.append((k, len(numbers)))
            return numbers[-1]

        with saved_tensors_hooks(number, self._unpacked):
            added = self._chain.rules[k].body(x)
        drawn = before if surroundings.moved(before) else None
        self._ran.append(_Ran(surroundings.autocast(), drawn, x.requires_grad))
        return added

    def _rewind(self) -> None:
        """Stand behind the last half-step, with nothing computed again yet."""
        self._place, self._state = len(self._ran), [y for y, _ in self._ends]
        self._saved: dict[int, dict[int, Any]] = {}

    def _unpacked(self, number: tuple[int, int]) -> Any:
        k, i = number
        if i not in self._saved.get(k, {}):
            if self._place <= k:
                self._rewind()
            for y, version in self._ends:
                if y._version != version:
                    self._refuse("an output of the chain was changed in place")
            while self._place > k:
                self._undo()
        if i not in self._saved[k]:
            self._refuse(f"{self._chain.rules[k].where} records other operations when it runs again")
        return self._saved[k].pop(i)

    def _undo(self) -> None:
        """Run one half-step again, save what it saves, and take away what it added."""
        self._place -= 1
        k, saved = self._place, dict[int, Any]()
        for later in [j for j in self._saved if j // 2 != k // 2]:
            del self._saved[later]
        self._state[k % 2] = self._state[k % 2] - self._again(k, self._state[1 - k % 2], saved)
        self._saved[k] = saved
        if k == self._lowest and self._chain.drift is not None:
            self._compare(k)

    def _again(self, k: int, x: Any, saved: dict[int, Any]) -> Any:
        """Give what a half-step adds, and what it saves."""
        ran = self._ran[k]

        def save(tensor: Any) -> int:
            saved[len(saved)] = tensor.detach()
            return 0

        with (
            torch.enable_grad(),
            surroundings.autocast_as(ran.autocast),
            surroundings.drawing(ran.drawn),
            state.put_back(),
            saved_tensors_hooks(save, _never),
        ):
            return self._chain.rules[k].body(x.detach().requires_grad_(ran.recorded)).detach()

    def _compare(self, place: int) -> None:
        """Undo what is left, which nothing is recorded of, and hold it against what was given."""
        if any(x._version != version for x, version in self._given):
            return  # they were changed since: nothing is known of what they were
        found = list(self._state)
        for k in reversed(range(place)):
            found[k % 2] = found[k % 2] - self._again(k, found[1 - k % 2], {})
        with torch.no_grad():
            holds, number = self._chain.strayed(self._host, [x for x, _ in self._given], found)
        if not holds:
            self._chain.warn(number)

    def _refuse(self, found: str) -> NoReturn:
        raise DerivativeError.about(
            "reversible",
            found=found,
            expected="outputs that stay as they are, and functions that run again as they ran",
            why="the backward pass undoes the chain from its outputs",
            fix="write y = y + 1 for y += 1",
        )


def _never(_: Any) -> NoReturn:
    raise AssertionError("what is run again is not differentiated")
