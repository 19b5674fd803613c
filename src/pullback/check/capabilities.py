"""What a rule can do: reverse, forward, second order, compiled, batched, in each dtype, exported."""

from __future__ import annotations

from pullback.check.finding import Finding
from pullback.check.settings import Settings
from pullback.check.subject import Subject


def capabilities(subject: Subject, findings: list[Finding], settings: Settings) -> dict[str, str]:
    """Read the table off the findings: yes, no, refused, or untested."""
    table = {"reverse": "no" if any(f.probe in ("contract", "derivative") and f.verdict == "wrong" for f in findings) else "yes"}
    second = [f for f in findings if f.probe == "second_order"]
    if subject.order == 1 or any(f.reason == "refused" for f in second):
        table["second order"] = "refused"
    elif second:
        table["second order"] = "no" if second[0].verdict == "wrong" else "yes" if second[0].reason == "right" else "undecided"
    for f in findings:
        if f.probe in ("forward_mode", "compiled", "batching", "precision") and f.where:
            table[f.where] = f.reason
    return table
