"""The report as one page to look at: self-contained, made of a run alone, readable without scripts.

Jinja2 escapes every text; no text of a user's is ever marked safe. The pictures are small SVG of our own: no
charting library is needed for four kinds of picture, nothing is fetched or run to draw them, each point says
its values by a <title>, and 200 rules open in under two seconds.

A page of very many findings is folded: the worst rules are shown in full, the rest is counted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.report.entry import Entry, Run
from pullback.report.html.card import KINDS, ORDER, card_of, severity
from pullback.report.printable import printable
from pullback.report.text import counts

if TYPE_CHECKING:
    import jinja2

RULES = 1000  # that a page shows; the worst are among them
MISSING = "the page needs Jinja2: pip install 'pullback[see]'"


class NoTemplatesError(Exception):
    """Jinja2 is not installed; the text is one sentence for the user."""


@functools.cache
def environment() -> jinja2.Environment:
    """Give the templates; everything that is put into one is escaped."""
    try:
        import jinja2
    except ImportError:
        raise NoTemplatesError(MISSING) from None
    loader = jinja2.PackageLoader("pullback.report.html", "templates")
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.undefined = jinja2.StrictUndefined
    return found


def page(run: Run, *, version: str = "", said: Sequence[str] = ()) -> str:
    """Write a run as a page; `said` are sentences about the findings themselves."""
    groups = sorted(run.rules(), key=severity)
    shown = [card_of(group, i) for i, group in enumerate(groups[:RULES], 1)]
    return rendered(
        "page.html",
        cards=shown,
        anchors=True,
        counts=sorted(
            ((*count, KINDS[count[0]]) for count in counts(groups)), key=lambda c: ORDER.index(c[0])
        ),
        total=len(groups),
        folded=len(groups) - len(shown),
        targets=[printable(target) for target in run.targets],
        seed=run.seed,
        version=printable(version),
        problems=[*map(printable, said), *map(printable, run.problems)],
        notes=[printable(note) for note in run.notes],
    )


def fragment(entries: Sequence[Entry], said: Sequence[str] = ()) -> str:
    """Write rules as a part of another page, such as a notebook: no script, and no style but its own."""
    groups = sorted(Run(seed=0, entries=list(entries)).rules(), key=severity)
    shown = [card_of(group, i) for i, group in enumerate(groups[:RULES], 1)]
    return rendered("fragment.html", cards=shown, anchors=False, said=[printable(line) for line in said])


def rendered(name: str, **data: Any) -> str:
    """Fill a template."""
    return environment().get_template(name).render(**data)
