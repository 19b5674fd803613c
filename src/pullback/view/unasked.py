"""Outputs that are not judged: a rule gives no gradient by them, and the recorded program asks for none.

A rule may return what it only reports, as a solver does its state beside its solution. Nobody relies on the
gradient of that. It is left out only if both hold: a cotangent of it alone gives nothing but zeros, and in
no call of the program there was one. A gradient that is given is judged, whoever asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import tree
from pullback.dtypes import ROUNDOFF
from pullback.hosts.operation import Tensor
from pullback.view.arguments import paths
from pullback.view.subject import Array

if TYPE_CHECKING:
    from pullback.view.adapter import Adapter


def unasked(adapter: Adapter) -> Mapping[int, str]:
    """Name the outputs that are left out, by their index among those that can be differentiated."""
    if not adapter.asked.used:
        return {}
    if adapter.original is not None:
        return adapter.original.unasked
    try:
        with adapter.surroundings():
            return _found(adapter)
    except Exception:  # it cannot run at its example, or cannot be differentiated: the first probes say so
        return {}


def _found(adapter: Adapter) -> dict[int, str]:
    sources = adapter.sources(adapter.inputs)
    returned = _called(adapter, sources)
    named = [
        name for name, leaf in zip(paths("output", returned), tree.flatten(returned)[0]) if leaf is not None
    ]
    used = adapter.asked.used.get(len(named))
    if not used:  # no call that returned so many was differentiated
        return {}
    outputs = placed(adapter, returned)
    found: dict[int, str] = {}
    for k, (place, output) in enumerate(outputs):
        quiet = place not in used and adapter.connected(output)
        if quiet and not _given(adapter, sources, k, adapter.array(output)):
            found[k] = named[place]
    return found if len(found) < len(outputs) else {}


def _called(adapter: Adapter, sources: Sequence[Any]) -> Any:
    args, kwargs = adapter.arguments.filled(sources[: len(adapter.tensors)])
    return adapter.bound(sources[len(adapter.tensors) :])(*args, **kwargs)


def _given(adapter: Adapter, sources: Sequence[Any], k: int, output: Array) -> bool:
    """Tell whether any gradient comes from one output."""

    def alone(sources: Sequence[Any]) -> list[Tensor]:
        return [adapter.flat(_called(adapter, sources))[k]]

    size = max(output.size, 1)
    cotangent = np.cos(np.arange(size)).reshape(output.shape).astype(output.dtype)
    pulled = adapter.vjp(alone, sources, adapter.constants((cotangent,)))
    return any(g is not None and bool(np.any(adapter.array(g))) for g in pulled)


def placed(adapter: Adapter, returned: Any) -> list[tuple[int, Tensor]]:
    """List the outputs that can be differentiated, each with its place among all."""
    host = adapter.host
    leaves = [leaf for leaf in tree.flatten(returned)[0] if leaf is not None]
    tensors = [leaf if host.is_tensor(leaf) else adapter.output(leaf) for leaf in leaves]
    kept = [(k, t) for k, t in enumerate(tensors) if t is not None and host.differentiable(t)]
    # A dtype that numbers are only kept in has too few digits to measure anything by.
    for _, t in kept:
        if t.dtype not in adapter.measuring:
            adapter.measuring[t.dtype] = host.spec(t).dtype in ROUNDOFF
    return [(k, t) for k, t in kept if adapter.measuring[t.dtype]]


def kept(outputs: Sequence[Tensor], loose: frozenset[int]) -> list[Tensor]:
    """Give the outputs that are judged."""
    if not loose or max(loose) >= len(outputs):
        return list(outputs)
    return [output for k, output in enumerate(outputs) if k not in loose]


def laid_out(adapter: Adapter, sources: Sequence[Any], given: Sequence[Tensor]) -> list[Tensor]:
    """Lay cotangents of the outputs that are judged along all that can be differentiated, zeros elsewhere."""
    if not adapter.unasked:
        return list(given)
    rest = iter(given)
    outputs = adapter.flat(_called(adapter, sources))
    zeros = adapter.constants(tuple(np.zeros_like(adapter.array(output)) for output in outputs))
    return [zero if k in adapter.unasked else next(rest) for k, zero in enumerate(zeros)]


def written(adapter: Adapter, call: Callable[[Sequence[str]], str]) -> Callable[[Sequence[str]], str]:
    """Write the call as code: with some left out, the list of its other outputs."""
    if not adapter.unasked:
        return call
    names = set(adapter.unasked.values())
    with adapter.surroundings():
        named = paths("output", _called(adapter, adapter.sources(adapter.inputs)))
    places = ", ".join(str(k) for k, name in enumerate(named) if name not in names)
    return lambda inputs: f"[{adapter.words.leaves.format(y=call(inputs))}[k] for k in [{places}]]"
