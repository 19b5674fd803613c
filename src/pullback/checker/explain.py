"""Explain one failure: its cause, or at least where the gradient is wrong; and code that shows it.

A cause is searched on a small input, where every question is cheap, and said only if it holds at the point
that failed. Where none holds, the report says which inputs and entries are wrong, with the numbers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from pullback.checker.cause import Match, listed, search
from pullback.checker.causes.wrong_region import indexed
from pullback.checker.evidence import Evidence
from pullback.checker.finding import Finding
from pullback.checker.reproduce import reproduced
from pullback.checker.second import second_subject
from pullback.checker.settings import Settings
from pullback.checker.shrink import shrunk
from pullback.view.subject import Array, Subject

ROWS = 6  # of the table of entries


def explained(subject: Subject, findings: list[Finding], settings: Settings) -> list[Finding]:
    """Give every failure its cause and its reproducer."""
    explained = []
    if any(f.probe == "derivative" and f.verdict == "wrong" for f in findings):
        findings = blamed(subject, findings, settings)
    first_order_fails = any(f.verdict == "wrong" and f.probe != "second_order" for f in findings)
    for finding in findings:
        if finding.verdict != "wrong":
            explained.append(finding)
            continue
        if finding.probe == "second_order" and first_order_fails:
            continue  # a wrong first order explains it
        if finding.probe == "linearity" and any(
            f.probe == "derivative" and f.verdict == "wrong" for f in findings
        ):
            continue
        explained.append(with_cause(subject, finding, settings))
    return explained


def blamed(subject: Subject, findings: list[Finding], settings: Settings) -> list[Finding]:
    """Blame a wrong derivative on the shape that the host put right in silence, if that explains it."""
    if not any(f.mended for f in findings) or not shape_explains(Evidence(subject, settings)):
        return findings
    rest = [f for f in findings if f.probe != "derivative" or f.verdict != "wrong"]
    return [replace(f, verdict="wrong") if f.mended else f for f in rest]


def shape_explains(evidence: Evidence) -> bool:
    """Tell whether what `grad` itself returned, summed over some axes, is the derivative."""
    subject, problem, true = evidence.subject, evidence.problem, evidence.true
    if true is None or subject.direct_pullback is None:
        return True
    for v, t in zip(evidence.vs, true):
        raw = subject.direct_pullback(subject.inputs, problem.codomain.unpack(v))
        for p in evidence.wrong_inputs:
            g, truth = raw[problem.chosen[p]], evidence.shaped(t, p)
            if g is None or not any(evidence.close(s, truth, 10) for s in _sums(g, truth)):
                return False
    return True


def _sums(g: Array, like: Array) -> list[Array]:
    """Sum an array over every set of axes that leaves the size of another."""
    sums = [g.sum(over) for n in range(g.ndim + 1) for over in combinations(range(g.ndim), n)]
    return [s.reshape(like.shape) for s in sums if s.size == like.size]


def with_cause(subject: Subject, finding: Finding, settings: Settings) -> Finding:
    """Search the cause of one failure, and write the code that shows it."""
    here = subject.at(finding.inputs or subject.inputs)
    small = shrunk(here, settings) if finding.probe == "derivative" and finding.cause is None else here
    if finding.cause is None:
        match, whole = cause_of(small, here, finding, settings)
        if finding.resized and (match is None or match.slug == "constant-factor"):
            # Right at the given shape, off by a factor at another: a size is written into the rule.
            return replace(
                finding,
                verdict="note",
                sentence="a size seems to be written into the rule: it fits the given shapes only",
            )
        if match is not None:
            finding = replace(
                finding,
                cause=match.slug,
                sentence=_second(finding, match.sentence)
                + _shapes(match, small)
                + _inside(small)
                + _at(finding),
                edit=match.edit,
                where=match.where,
            )
        elif whole is not None:
            said, table = located(whole)
            finding = replace(finding, sentence=finding.sentence + said, where=table)
    return reproduced(here, small, finding, settings)


def cause_of(
    small: Subject, here: Subject, finding: Finding, settings: Settings
) -> tuple[Match | None, Evidence | None]:
    """Ask the causes on the small input, and confirm the answer at the failing point."""
    try:
        if finding.probe == "second_order":
            whole = Evidence(second_subject(here, settings.rng(8)), settings, order=2).sifted()
            return search(whole), whole
        whole = Evidence(here, settings).sifted()
        if finding.probe == "linearity":
            return search(whole, explaining="linearity"), whole
        found = search(whole) if small is here else search(Evidence(small, settings).sifted(), whole)
        return found, whole
    except Exception:  # a user's function may fail in any way where nobody ran it before
        return None, None


def located(evidence: Evidence) -> tuple[str, str]:
    """Say which inputs and which of their entries are wrong, and set claims beside the truth."""
    if evidence.true is None:
        names = [evidence.name(p) for p in range(evidence.count) if evidence.fails(p)]
        return (f": that of {listed(names)} is wrong" if names else ""), ""
    said, rows = [], []
    for p in evidence.wrong_inputs:
        mask = evidence.wrong_entries(p)
        name = evidence.name(p)
        if not mask.any():
            continue
        said.append(f"that of `{name}` is wrong in {_entries(mask)}")
        truth, claim = (evidence.shaped(g[0], p) for g in (evidence.true, evidence.claimed))
        worst = sorted(np.argwhere(mask).tolist(), key=lambda i: -abs(truth[tuple(i)] - claim[tuple(i)]))
        for index in sorted(worst[:ROWS]):
            entry = f"{name}[{', '.join(map(str, index))}]" if index else name
            rows.append((entry, f"{claim[tuple(index)]:.6g}", f"{truth[tuple(index)]:.6g}"))
    if not said:
        return "", ""
    return f": {'; '.join(said)}", _table([("entry", "claimed", "measured"), *rows[:ROWS]])


def _entries(mask: Array) -> str:
    count, size = int(mask.sum()), mask.size
    if count == size:
        return "its only entry" if size == 1 else f"all {size} entries"
    where = indexed(mask)
    if where is None:
        for axis in range(mask.ndim):
            lines = np.flatnonzero(mask.any(tuple(a for a in range(mask.ndim) if a != axis)))
            if len(lines) == 1 and mask.ndim > 1:
                where = f"index {int(lines[0])} of axis {axis}"
                break
    return f"{count} of {size} entries" + (f", all at {where}" if where else "")


def _table(rows: list[tuple[str, str, str]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)


def _second(finding: Finding, sentence: str) -> str:
    if finding.probe != "second_order" or "second derivative" in sentence:
        return sentence
    return f"of the second order: {sentence}"


def _shapes(match: Match, small: Subject) -> str:
    return f" (seen at the shapes {', '.join(str(x.shape) for x in small.inputs)})" if match.small else ""


def _inside(subject: Subject) -> str:
    return " (compared with what autodiff makes of the surrogate inside)" if subject.believes else ""


def _at(finding: Finding) -> str:
    return "" if finding.point == "given" else f" (seen at a point of the checker's own: {finding.point})"
