"""What a rule can do: reverse, forward, second order, compiled, batched, in each dtype, exported."""

from __future__ import annotations

from pullback.checker.finding import Finding
from pullback.checker.settings import Settings
from pullback.dtypes import COMPUTING
from pullback.view.subject import Subject


def capabilities(subject: Subject, findings: list[Finding], settings: Settings) -> dict[str, str]:
    """Read the table off the findings: yes, no, refused, or untested."""
    table = {
        "reverse": "no"
        if any(f.probe in ("contract", "derivative") and f.verdict == "wrong" for f in findings)
        else "yes"
    }
    if any(f.cause == "pullback-raises" and f.verdict == "undecided" for f in findings):
        table["reverse"] = "refused"
    if subject.order == 1:
        table["second order"] = "refused"
    for f in findings:
        if f.capability and f.answer is not None:
            table[f.capability] = f.answer
    # Somebody asked for certain probes and not for the whole table; or what a wrong rule can do is of no use.
    if settings.probes is not None or any(f.verdict == "wrong" for f in findings):
        return table
    for name in COMPUTING if table["reverse"] == "yes" else ():
        if name != "float64" and name not in table:
            table[name] = runs_in(subject, name)
    if settings.export and subject.exports is not None:
        table["export"] = "yes" if subject.exports() else "no"
    return table


def runs_in(subject: Subject, name: str) -> str:
    """Tell whether forward and pullback run in a dtype."""
    if any(x.dtype.name == name for x, d in zip(subject.inputs, subject.differentiable) if d):
        return "yes"
    if subject.astype is None or (any(x.dtype.kind == "c" for x in subject.inputs) and name != "float32"):
        return "untested"
    return "refused" if subject.astype(name) is None else "yes"
