"""The report as JUnit XML for CI: a rule is a test, wrong is a failure, undecided is skipped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pullback.report.block import block, reason
from pullback.report.entry import Run, worst
from pullback.report.text import row

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def dumps(run: Run, *, strict: bool = False) -> str:
    """Write a run as JUnit XML."""
    suite = ElementTree.Element("testsuite", name="pullback check")
    failures = skipped = 0
    for group in run.rules():
        entry = worst(group)
        report = entry.report
        case = ElementTree.SubElement(
            suite, "testcase", name=_clean(report.name), classname=_clean(entry.target or "pullback")
        )
        if entry.path:
            case.set("file", _clean(entry.where.rpartition(":")[0]))
            case.set("line", str(entry.line))
        text = _clean(block(report, where=entry.where, signature=entry.signature))
        if entry.excused:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=_clean(row(group)[1])).text = text
        elif report.verdict == "wrong" or (strict and report.verdict == "undecided"):
            failures += 1
            shown = report.failures[0].sentence if report.failures else f"undecided: {reason(report)}"
            ElementTree.SubElement(
                case, "failure", message=_clean(shown), type=", ".join(report.causes) or report.verdict
            ).text = text
        elif report.verdict == "undecided":
            skipped += 1
            mark = ElementTree.SubElement(case, "skipped", message=_clean(f"undecided: {reason(report)}"))
            mark.text = text
    for problem in run.problems:
        case = ElementTree.SubElement(suite, "testcase", name="target", classname="pullback")
        ElementTree.SubElement(case, "error", message=_clean(problem))
    for name, number in (
        ("tests", len(suite)), ("failures", failures), ("errors", len(run.problems)), ("skipped", skipped)
    ):  # fmt: skip
        suite.set(name, str(number))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Replace what XML cannot hold: a target's error message may hold anything."""
    return FORBIDDEN.sub("�", text)
