"""The words of a report: what a row says, what a failure's block says. The terminal adds colour only."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pullback.checker.finding import Finding, Report
from pullback.report.entry import Entry, Run, worst

HEADINGS = ("rule", "verdict", "claim", "resolution", "oracle", "can do", "where")


def row(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Sum one rule up: its name, verdict, claim, resolution, oracle, capabilities and place."""
    entry = worst(entries)
    report = entry.report
    verdict: str = report.verdict
    if verdict == "wrong" and report.causes:
        verdict = f"wrong: {', '.join(report.causes)}"
    elif verdict == "right" and entry.declared:
        verdict = "as declared"
    elif verdict == "undecided":
        verdict = f"undecided: {reason(report)}"
    resolution = "" if report.resolution is None else f"{report.resolution:.0e}"
    return (report.name, verdict, report.intent, resolution, report.oracle, abilities(report), entry.where)


def reason(report: Report) -> str:
    """Say in a word why a report is undecided."""
    found = [f for f in report.findings if f.verdict == "undecided"]
    return found[0].reason or found[0].sentence if found else "nothing could be compared"


def abilities(report: Report) -> str:
    """Sum the capability table up: everything, or what is missing."""
    table = {name: state for name, state in report.capabilities.items() if state}
    if not table or table.get("reverse") == "no":
        return ""
    missing = [f"{name} ({state})" for name, state in table.items() if state != "yes"]
    return f"all but {', '.join(missing)}" if missing else f"all {len(table)}"


def block(report: Report, *, where: str = "", signature: str = "") -> str:
    """Write what is wrong with a rule, or why it is undecided, and how to see it."""
    place = where or report.source
    head = f"{report.name} ({place})" if place else report.name
    at = f" at {signature}" if signature else ""
    lines = [f"{head}: {report.verdict}{at}"]
    shown = report.failures or [f for f in report.findings if f.verdict == "undecided"]
    for finding in shown:
        lines += ["", *_finding(finding, report)]
    return "\n".join(lines)


def _finding(finding: Finding, report: Report) -> list[str]:
    label = finding.cause or finding.reason or finding.probe
    lines = [f"  {label}: {finding.sentence}"]
    if finding.where:
        lines.append("  where: " + textwrap.indent(finding.where, "         ").lstrip())
    if finding.measured is not None and finding.claimed is not None:
        lines.append(
            f"  measured {finding.measured:.9g}, claimed {finding.claimed:.9g} (claim: {report.intent})"
        )
    if finding.edit:
        lines.append("  edit: " + textwrap.indent(finding.edit, "        ").lstrip())
    if finding.reproducer:
        lines += ["  to see it:", "", textwrap.indent(finding.reproducer, "    ")]
    return lines


def summary(run: Run) -> str:
    """Count the rules by verdict, in one sentence."""
    verdicts = [worst(group) for group in run.rules()]
    counts = {
        "right": sum(e.report.verdict == "right" and not e.declared for e in verdicts),
        "as declared": sum(e.report.verdict == "right" and e.declared for e in verdicts),
        "wrong": sum(e.report.verdict == "wrong" for e in verdicts),
        "undecided": sum(e.report.verdict == "undecided" for e in verdicts),
    }
    said = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
    rules = "1 rule" if len(verdicts) == 1 else f"{len(verdicts)} rules"
    return f"{rules}: {said or 'nothing checked'}; seed {run.seed}"


def blocks(run: Run) -> list[tuple[Entry, str]]:
    """Give a block per wrong rule and cause, then per undecided rule; the same cause is told once."""
    told: list[tuple[Entry, str]] = []
    for verdict in ("wrong", "undecided"):
        for group in run.rules():
            causes: set[tuple[str, ...]] = set()
            if worst(group).report.verdict != verdict:
                continue
            for entry in group:
                key = tuple(entry.report.causes) or (reason(entry.report),)
                if entry.report.verdict == verdict and key not in causes:
                    causes.add(key)
                    told.append((entry, block(entry.report, where=entry.where, signature=entry.signature)))
    return told
