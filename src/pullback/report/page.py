"""The page of a document: the JSON findings in, HTML out, whether they are new or were read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pullback.report import html
from pullback.report.findings import run_of


def page(document: Mapping[str, Any], said: Sequence[str] = ()) -> tuple[str, list[str]]:
    """Write a document as a page, and give the sentences on what of it could not be shown."""
    run, more = run_of(document)
    said = [*said, *more]
    return html.page(run, version=str(document.get("pullback", "")), said=said), said
