"""Does the pullback return one cotangent of the right shape and dtype for every input?"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from pullback.checker.draw import cotangents
from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.dtypes import is_complex, is_real_or_complex
from pullback.errors import DerivativeError
from pullback.hosts.specs import broadcast_axes
from pullback.view.subject import Array, Arrays, Cotangents, Subject
from pullback.view.words import Words


@probe(rank=20)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Call the pullback once and look at what comes back."""
    return look(subject, settings, "given")


def is_refusal(error: BaseException | None) -> bool:
    """Tell whether there is no gradient on purpose: whoever wrote the rule or an operation in it says so."""
    while error is not None:
        if isinstance(error, (DerivativeError, NotImplementedError)):
            return True
        error = error.__cause__
    return False


def look(subject: Subject, settings: Settings, label: str, original: Arrays = ()) -> list[Finding]:
    """Check shapes and dtypes at one point; a size written into the rule (that of `original`) is excused."""
    given = cotangents(subject, settings.rng(2))
    raised: Finding | None = None
    claimed: Cotangents | None
    try:
        claimed = subject.pullback(subject.inputs, given)
    # A user's pullback may fail in any way it likes, and a host may refuse what it gives.
    except Exception as error:
        text = str(error).splitlines()[0][:200] if str(error) else ""
        refused = is_refusal(error)
        raised = Finding(
            "contract",
            "wrong" if subject.is_rule and not refused else "undecided",
            f"the {'gradient is refused:' if refused else 'pullback raises'} {type(error).__name__}: {text}",
            "pullback-raises",
            reason="refused" if refused else "",
            point=label,
            inputs=subject.inputs,
            cotangents=given,
        )
        claimed = by_hand(subject, given)
    if claimed is None:
        return [raised] if raised else []
    findings = shapes(subject, claimed, given, label, original)
    if subject.mends_shapes and raised is None:
        findings += mended(subject, claimed, given, label, original)
    # A refused shape has its own name; anything else is said as it was raised.
    if raised is not None and not any(f.verdict == "wrong" for f in findings):
        return [raised]
    return findings


def by_hand(subject: Subject, given: Arrays) -> Cotangents | None:
    """Call the user's `grad` without the host in between."""
    if subject.direct_pullback is None:
        return None
    try:
        return subject.direct_pullback(subject.inputs, given)
    except Exception:  # it fails by itself: the host is not to blame
        return None


def mended(
    subject: Subject, claimed: Cotangents, given: Arrays, label: str, original: Arrays
) -> list[Finding]:
    """Tell of shapes that the host put right in silence: a note, unless the gradient is wrong too."""
    direct = by_hand(subject, given)
    if direct is None or any(g is not None and g.shape != x.shape for g, x in zip(claimed, subject.inputs)):
        return []
    return [
        replace(f, verdict="note", sentence=f"{f.sentence}; {subject.words.mends}", mended=True)
        for f in shapes(subject, direct, given, label, original)
        if f.verdict == "wrong"
    ]


def shapes(
    subject: Subject, claimed: Cotangents, given: Arrays, label: str, original: Arrays
) -> list[Finding]:
    """Compare shapes and dtypes of cotangents with those of the inputs."""
    findings = []
    for k, (name, x, g) in enumerate(zip(subject.names, subject.inputs, claimed)):
        if not subject.differentiable[k]:
            if is_real_or_complex(x.dtype):
                said = f"no gradient was asked of `{name}`: it was not checked"
                findings.append(Finding("contract", "note", said, where=name, point=label))
            continue
        if g is None:
            findings.append(
                Finding("contract", "note", f"no gradient flows to `{name}` (None)", where=name, point=label)
            )
        elif original and g.shape == original[k].shape != x.shape:
            continue
        elif g.shape != x.shape:
            cause, sentence, edit = misshapen(name, x, g, subject.words, summed(subject, k, g, given))
            findings.append(
                Finding(
                    "contract",
                    "wrong",
                    sentence,
                    cause,
                    edit,
                    where=name,
                    point=label,
                    inputs=subject.inputs,
                    cotangents=given,
                )
            )
        elif is_complex(g.dtype) and not is_complex(x.dtype):
            sentence = f"the gradient of `{name}` is complex, the input is real"
            findings.append(
                Finding(
                    "contract",
                    "wrong",
                    sentence,
                    "conjugate-missing",
                    "take the real part",
                    name,
                    point=label,
                    inputs=subject.inputs,
                )
            )
        elif g.dtype != x.dtype:
            findings.append(
                Finding(
                    "contract",
                    "note",
                    f"the gradient of `{name}` is {g.dtype.name}, the input {x.dtype.name}",
                    where=name,
                )
            )
    return findings


def summed(subject: Subject, k: int, g: Array, given: Arrays) -> tuple[int, ...] | None:
    """Say over which axes a gradient must be summed; where several fit the shape, the function tells."""
    x = subject.inputs[k]
    known = broadcast_axes(g.shape, x.shape) if x.size < g.size else None
    fitting = [
        axes
        for axes in combinations(range(g.ndim), max(g.ndim - x.ndim, 0))
        if tuple(n for i, n in enumerate(g.shape) if i not in axes) == x.shape
    ]
    if len(fitting) < 2 or is_complex(x.dtype):
        return None if known is None else tuple(known)
    u = np.linspace(1.0, 2.0, x.size).reshape(x.shape) * (np.abs(x).mean() or 1.0)
    h = roundoff([x]) ** (1 / 3)

    def along(step: float) -> float:
        moved = tuple((x + step * u).astype(x.dtype) if i == k else y for i, y in enumerate(subject.inputs))
        return sum(float(np.sum(c * y)) for c, y in zip(given, subject.oracle_forward(moved)))

    measured = (along(h) - along(-h)) / (2 * h)
    claims = [float(np.sum(g.sum(axes) * u)) for axes in fitting]
    near = [a for a, claim in zip(fitting, claims) if np.isclose(claim, measured, rtol=1e-2)]
    return near[0] if len(near) == 1 else ()


def misshapen(
    name: str, x: Array, g: Array, words: Words, axes: tuple[int, ...] | None
) -> tuple[str, str, str]:
    """Say what a wrong shape comes from; `axes` are those that were broadcast, none if it is not known."""
    found = f"the gradient of `{name}` has shape {g.shape}, the input {x.shape}"
    if axes == ():
        return (
            "broadcast-not-reduced",
            f"{found}: an axis was broadcast and must be summed",
            f"sum it over the axis along which `{name}` was repeated",
        )
    if axes is not None:
        which = "axis" if len(axes) == 1 else "axes"
        said = ", ".join(map(str, axes))
        return (
            "broadcast-not-reduced",
            f"{found}: {which} {said} was broadcast and must be summed",
            f"`{words.sum.format(g='g', axis=list(axes))}`, or `pb.unbroadcast(g, like={name})`",
        )
    if g.ndim == x.ndim and sorted(g.shape) == sorted(x.shape):
        return "transposed", f"{found}: it is transposed", f"transpose the gradient of `{name}` back"
    if g.size < x.size and broadcast_axes(x.shape, g.shape) is not None:
        return (
            "wrong-shape",
            f"{found}: it was reduced too far, or is still to be broadcast",
            f"broadcast it: `{words.broadcast.format(g='g', x=name)}`",
        )
    if g.size == x.size:
        return (
            "wrong-shape",
            f"{found}: the entries are there, the shape is not",
            f"`{words.reshape.format(g='g', x=name)}`",
        )
    return "wrong-shape", found, f"return a gradient of the shape of `{name}`"
