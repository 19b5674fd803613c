"""The words for one report: its row, and the block of what is wrong. It imports nothing of the checker's.

`print(report)` and the command say the same, in the same order: what is wrong first, the table last.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.report.printable import printable

if TYPE_CHECKING:
    from pullback.checker.finding import Finding, Report

LEFT = ("budget", "died")  # why a rule was left before all was asked
HEADINGS = ("rule", "verdict", "claim", "resolution", "oracle", "can do", "where")
ON_PURPOSE = "different on purpose"
MEND = "mend"  # the probe of a finding that tells of an edit
NOTHING = "nothing to differentiate"  # why a rule is right before it is measured


def written(report: Report) -> str:
    """Write a whole report, as the command would."""
    parts = [] if report.verdict == "right" and not unfinished(report) else [block(report)]
    return "\n\n".join([*parts, table([cells(report)]), f"seed {report.seed}"])


def verdict(report: Report) -> str:
    """Say the verdict in a word or two, with its causes or its reason."""
    if looks_meant(report):
        return "surrogate? declare it"
    if report.verdict == "wrong" and report.causes:
        return f"wrong: {', '.join(report.causes)}"
    named = [f.sentence for f in mendings(report) if f.patch]
    if report.verdict == "wrong" and named:  # where no cause is measured, the edit names the bug
        return f"wrong: {named[0]}"
    if report.verdict == "undecided":
        return f"undecided: {reason(report)}"
    if any(f.reason == NOTHING for f in report.findings):
        return f"{report.verdict}: {NOTHING}"
    word = "as declared" if report.verdict == "right" and declared(report) else report.verdict
    said = ", mended" if report.verdict == "right" and mendings(report) else ""
    return f"{word}{said}, not finished" if unfinished(report) else f"{word}{said}"


def declared(report: Report) -> bool:
    """Tell whether the rule says that it is different on purpose."""
    return report.intent.startswith(ON_PURPOSE)


def looks_meant(report: Report) -> bool:
    """Tell whether all that is wrong looks like a surrogate that nobody declared."""
    return report.verdict == "wrong" and report.causes == ["surrogate"]


def unfinished(report: Report) -> list[Finding]:
    """List the findings that say why not everything was asked."""
    return [f for f in report.findings if f.verdict == "note" and f.reason in LEFT]


def mendings(report: Report) -> list[Finding]:
    """List the findings that tell of an edit that was searched."""
    return [f for f in report.findings if f.probe == MEND]


def cells(report: Report, where: str = "") -> tuple[str, ...]:
    """Sum one rule up: its name, verdict, claim, resolution, oracle, capabilities and place."""
    resolution = "" if report.resolution is None else f"{report.resolution:.0e}"
    row = (report.name, verdict(report), report.intent, resolution, report.oracle, abilities(report))
    return tuple(map(printable, (*row, where or report.source)))


def table(rows: Sequence[Sequence[str]]) -> str:
    """Write rows under their headings; a column that is empty everywhere is left out."""
    kept = [i for i in range(len(HEADINGS)) if any(r[i] for r in rows)]
    return aligned([[r[i] for i in kept] for r in (HEADINGS, *rows)], ruled=True)


def aligned(rows: Sequence[Sequence[str]], *, ruled: bool = False) -> str:
    """Write rows in columns; `ruled` draws a line under the first."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(r, widths)).rstrip() for r in rows]
    if ruled:
        lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def reason(report: Report) -> str:
    """Say in a word why a report is undecided."""
    found = [f for f in report.findings if f.verdict == "undecided"]
    return found[0].reason or found[0].sentence if found else "nothing could be compared"


def abilities(report: Report) -> str:
    """Sum the capability table up: everything, or what is missing."""
    known = {name: state for name, state in report.capabilities.items() if state}
    if not known or known.get("reverse") == "no":
        return ""
    missing = [f"{name} ({state})" for name, state in known.items() if state != "yes"]
    return f"all but {', '.join(missing)}" if missing else f"all {len(known)}"


def block(report: Report, *, where: str = "", signature: str = "") -> str:
    """Write what is wrong with a rule, or why it is undecided, and how to see it."""
    where = where or report.source
    head = f"{report.name} ({where})" if where else report.name
    at = f" at {signature}" if signature else ""
    lines = [printable(f"{head}: {report.verdict}{at}")]
    shown = report.failures or [f for f in report.findings if f.verdict == "undecided"]
    for finding in [*shown, *unfinished(report)]:
        lines += ["", *_finding(finding, report)]
    for finding in mendings(report):
        lines += ["", *_mending(finding)]
    return "\n".join(lines)


def _finding(finding: Finding, report: Report) -> list[str]:
    label, claim = finding.cause or finding.reason or finding.probe, printable(report.intent)
    lines = [f"  {label}: {_long(finding.sentence)}"]
    if finding.where:
        lines.append(f"  where: {_long(finding.where)}")
    if finding.measured is not None and finding.claimed is not None:
        lines.append(f"  measured {finding.measured:.9g}, claimed {finding.claimed:.9g} (claim: {claim})")
    if finding.edit:
        lines.append(f"  edit: {_long(finding.edit)}")
    if finding.reproducer:
        code = printable(finding.reproducer, lines=True)
        lines += ["  to see it:", "", textwrap.indent(code, "    ")]
    return lines


def _mending(finding: Finding) -> list[str]:
    lines = [f"  {MEND}: {_long(finding.sentence)}"]
    if finding.where:
        lines.append(textwrap.indent(printable(finding.where, lines=True), "  "))
    if finding.patch:  # from the first column on, so that what is copied applies
        lines += ["", printable(finding.patch, lines=True).removesuffix("\n")]
    return lines


def _long(text: str) -> str:
    """Indent what follows a first line, so that it cannot be taken for a line of ours."""
    return textwrap.indent(printable(text, lines=True), "        ").lstrip()
