"""pullback in a notebook: `%load_ext pullback`, then `%%check` at the top of a cell.

The cell runs as it would without us, in this process and once. The rules that it used are then checked at the
values they saw, and shown below it: as the page shows them, or as text where there is no page.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Iterator
from typing import Any

from pullback.checker.check import chosen
from pullback.checker.settings import MEND, Settings
from pullback.record.checking import checked
from pullback.record.listening import recording
from pullback.record.naming import name_apart, own_words
from pullback.record.quiet import quiet
from pullback.record.recorder import Recorder
from pullback.report.entry import Run
from pullback.report.html import NoTemplatesError, fragment
from pullback.report.terminal import as_text


class Shown:
    """Show a run: as text in a terminal, as part of a page in a notebook."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def reports(self) -> list[Any]:
        """List the reports, one a rule and call signature."""
        return [entry.report for entry in self.run.entries]

    def __repr__(self) -> str:
        return "\n\n".join(part for part in (as_text(self.run), *self.run.problems, *self.run.notes) if part)

    def _repr_html_(self) -> str | None:
        try:
            return fragment(self.run.entries, [*self.run.problems, *self.run.notes])
        except NoTemplatesError:
            return None


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook `%%check`."""
    words: Any = importlib.import_module("IPython.core.magic_arguments")

    def check(line: str, cell: str) -> Shown:
        """Run the cell, and check the custom gradients that it used."""
        asked = words.parse_argstring(check, line)
        settings = Settings(
            chosen(asked.seed),
            order=asked.order,
            budget=asked.budget,
            pictures=True,
            mend=MEND if asked.mend else 0.0,
        )
        return run_cell(shell, cell, settings, everything=asked.everything)

    for option in (
        words.argument(
            "--all", dest="everything", action="store_true", help="The frameworks' own rules too."
        ),
        words.argument("--budget", type=float, default=Settings.budget, help="CPU seconds for each rule."),
        words.argument("--mend", action="store_true", help="Search an edit that makes a wrong rule right."),
        words.argument("--order", type=int, choices=(1, 2), default=2, help="Highest derivative to check."),
        words.argument("--seed", type=int, help="Repeat an earlier check."),
        words.magic_arguments(),
    ):
        option(check)
    shell.register_magic_function(check, "cell", "check")


def run_cell(shell: Any, cell: str, settings: Settings, *, everything: bool = False) -> Shown:
    """Run a cell with the recorder on, then check what it used."""
    recorder = Recorder(everything=everything)
    with recording(recorder):
        done = shell.run_cell(cell)
        recorder.on = False
    run = Run(seed=settings.seed, targets=("cell",))
    rules = list(recorder.rules.values())
    name_apart(rules)
    own = own_words(recorder).replace("`--all`", "`%%check --all`")
    if not rules:
        said = "stopped before it used one" if done.error_in_exec or done.error_before_exec else "uses none"
        said += f" of its own ({own})" if own else ""
        run.problems.append(f"no custom gradient to check: the cell {said}")
    elif own:
        run.notes.append(f"the cell uses others too: {own}")
    run.problems += [f"a rule could not be recorded: {type(e).__name__}: {e}" for e in recorder.errors]
    with said_once():
        for rule in rules:
            run.entries += checked(rule, target="cell", settings=settings)
    return Shown(run)


@contextlib.contextmanager
def said_once() -> Iterator[None]:
    """Pass on what rules print while they are checked, each line once: they run hundreds of times."""
    kept, errors = io.StringIO(), io.StringIO()
    try:
        with quiet(), contextlib.redirect_stdout(kept), contextlib.redirect_stderr(errors):
            yield
    finally:
        for text, stream in ((kept, sys.stdout), (errors, sys.stderr)):
            stream.write("".join(dict.fromkeys(text.getvalue().splitlines(keepends=True))))
