"""How the checker looks inside a function of PyTorch: a function mode hears every call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pullback.view.framework import Run
from pullback.view.switches import Gaps, gaps_of

_NAMES = {
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "clip": "clamp", "hardtanh": "clamp", "relu_": "relu", "absolute": "abs", "sgn": "sign",
    "true_divide": "div", "divide": "div", "truediv": "div", "fmod": "remainder", "mod": "remainder",
    "clamp_min": "maximum", "clamp_max": "minimum", "fmax": "maximum", "fmin": "minimum",
    "leaky_relu": "relu", "celu": "elu", "selu": "elu", "norm": "abs", "xlogy": "log",
}  # fmt: skip


TRACES = False  # a mode does not reach into the engine that runs backward


class _Listening(TorchFunctionMode):
    """Note the gaps of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: Gaps = []
        self.counted: Counter[Any] = Counter()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        spelled = str(getattr(func, "__name__", "")).strip("_")
        name = _NAMES.get(spelled, spelled)
        bounds = [(kwargs or {}).get(key) for key in ("min", "max", "min_val", "max_val", "other")]
        operands = [*args[:3], *(b for b in bounds if b is not None)]
        if any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in operands):
            with torch.no_grad():
                self.gaps += [(spelled, gap) for gap in _safe(name, operands)]
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.counted[spelled, made.shape] += 1
        return made


def _safe(name: str, operands: Sequence[Any]) -> list[Any]:
    try:
        found = gaps_of(name, operands, torch.floor)
    except Exception:  # operands of another kind: a flag, an axis
        return []
    return [g.detach().clone() for g in found if isinstance(g, torch.Tensor) and g.is_floating_point()]


def look(run: Run) -> Callable[[Sequence[Any]], Gaps]:
    """Give the gaps of a function as a function of its sources."""

    def gaps(sources: Sequence[Any]) -> Gaps:
        with _Listening() as listening:
            run(sources)
        return listening.gaps

    return gaps


def repeats(run: Run, sources: Sequence[Any]) -> int:
    """Count how often the most frequent operation runs, on one shape."""
    with _Listening() as listening:
        run(sources)
    return max(listening.counted.values(), default=0)
