"""The command `pullback`. It parses, asks and prints; everything heavy is imported when it is needed."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.record.job import Options

# click would run the lines together without the mark in front of them.
COMPLETION = (
    '\b\nCompletion, in bash: eval "$(_PULLBACK_COMPLETE=bash_source pullback)"\n'
    "Other shells: zsh_source, fish_source."
)
MISSING = "pullback: the command needs click and rich: pip install click rich"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError:
        print(MISSING, file=sys.stderr)
        raise SystemExit(2) from None
    given = list(sys.argv[1:] if arguments is None else arguments)
    # What follows `--` is the script's; click would take it for more targets.
    at = given.index("--") if "--" in given else len(given)
    command()(args=given[:at], obj=tuple(given[at + 1 :]), prog_name="pullback")


def command() -> Any:
    """Build the command."""
    import click

    from pullback import __version__
    from pullback.hosts import SUPPORTED

    @click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=COMPLETION)
    @click.version_option(__version__, prog_name="pullback")
    def pullback() -> None:
        """Custom gradients you can trust."""

    file = click.Path(dir_okay=False, writable=True)
    seconds, count = click.FloatRange(min=0, min_open=True), click.IntRange(min=1)
    epilog = (
        "Exit codes: 0 every claim holds, 1 something is wrong, 2 a target could not be run, "
        "128 + n a signal ended it."
    )

    @pullback.command(epilog=epilog, short_help="Check the custom gradients of a program.")
    @click.argument("targets", nargs=-1, required=True, metavar="TARGET... [-- ARGS...]")
    @click.option("--for", "seconds", type=seconds, help="Stop a script after so many seconds.")
    @click.option("--calls", type=count, help="Stop a script after so many calls of its rules.")
    @click.option("--budget", type=seconds, help="CPU seconds for all checks together; a rule has 60.")
    @click.option(
        "-j", "--jobs", type=count, default=1, show_default=True, help="Check in so many processes."
    )
    @click.option("--seed", type=click.IntRange(min=0), help="Repeat an earlier run.")
    @click.option(
        "--order",
        type=click.IntRange(1, 2),
        default=2,
        show_default=True,
        help="Highest derivative to check.",
    )
    @click.option("--baseline", type=click.Path(dir_okay=False), help="Known findings: fail on what is new.")
    @click.option("--write-baseline", is_flag=True, help="Write what is found as known, to --baseline.")
    @click.option(
        "--config",
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=configured,
        help="A pullback.toml or pyproject.toml, in the place of the one found upward from here.",
    )
    @click.option("--html", "html_file", type=file, help="Write the report as a page to look at.")
    @click.option("--json", "json_file", type=file, help="Write the report as JSON.")
    @click.option("--junit", "junit_file", type=file, help="Write the report as JUnit XML.")
    @click.option("--github", is_flag=True, help="Print annotations for GitHub Actions.")
    @click.option("--strict", is_flag=True, help="Let an undecided rule fail, too.")
    @click.option("--mend", is_flag=True, help="Search an edit that makes a wrong rule right, and prove it.")
    @click.option("--mend-budget", type=seconds, help="CPU seconds for each search; it has 10.")
    @click.option("--write", is_flag=True, help="With --mend: write the edits, and check again after each.")
    @click.option(
        "--allow-uncommitted", is_flag=True, help="Let --write change files that git cannot restore."
    )
    @click.option("--all", "everything", is_flag=True, help="Check the frameworks' own rules as well.")
    @click.pass_obj
    def check(
        arguments: tuple[str, ...],
        targets: tuple[str, ...],
        seconds: float | None,
        calls: int | None,
        seed: int | None,
        order: int,
        everything: bool,
        budget: float | None,
        jobs: int,
        mend: bool,
        mend_budget: float | None,
        **outputs: Any,
    ) -> None:
        """Check custom gradients: of scripts (train.py), functions (mylib.losses:focal), folders, modules.

        A script runs in a child process, and every custom gradient it uses is checked at the values it saw.
        What stands after -- goes to the script.
        """
        from pullback import configuration
        from pullback.checker.settings import MEND, Settings
        from pullback.record.job import Options

        # Pictures cost a few evaluations of each rule: they are made where somebody keeps them.
        pictures = any(outputs[name] is not None for name in ("html_file", "json_file"))
        seed = secrets.randbelow(2**31) if seed is None else seed
        if outputs["write"] and not mend:
            raise click.UsageError("--write needs --mend: it writes the edits that were found.")
        settings = Settings(
            seed=seed,
            order=order,
            pictures=pictures,
            mend=(mend_budget or MEND) if mend else 0.0,
            folder=os.getcwd(),
        )
        options = Options(settings, arguments, seconds, calls, everything, budget, jobs)
        options = replace(options, configuration=configuration.current().path)
        raise SystemExit(check_targets(targets, options, **outputs))

    @pullback.command(
        epilog="Exit codes: 0 all of it is shown, 2 some of it could not be.",
        short_help="Make a page of findings, later and elsewhere.",
    )
    @click.argument("findings", type=click.Path(dir_okay=False))
    @click.option("--html", "html_file", type=file, required=True, help="The page to write.")
    def report(findings: str, html_file: str) -> None:
        """Make the page of findings that --json wrote, later and elsewhere: nothing is run."""
        raise SystemExit(shown(findings, html_file))

    @pullback.command(
        epilog="Exit codes: 0 at least one host works, 1 none does.",
        short_help="Say which frameworks work here, and how well.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def doctor(as_json: bool) -> None:
        """Say which hosts work here, why others do not, and what each can do.

        Each framework is loaded in a process of its own, and a small rule is run on it in every way.
        """
        raise SystemExit(examine(as_json=as_json))

    @pullback.command(
        epilog="Exit codes: 0 it is drawn, 2 the target could not be traced or found.",
        short_help="Draw a function, forward and backward.",
    )
    @click.argument("target")
    @click.option("-o", "--output", type=file, help="Write a file: .svg, .png, .dot, .mmd or .txt.")
    def graph(target: str, output: str | None) -> None:
        """Draw a function (mylib.losses:focal) at its @pb.example arguments, forward and backward.

        Without a file the graph is printed, with the norm of the gradient on every edge.
        """
        from pullback.graphs.command import draw

        raise SystemExit(draw(target, output))

    def known(context: Any, parameter: Any, typed: str) -> list[str]:
        from pullback.explain import names

        return [name for found in names().values() for name in found.values() if name.startswith(typed)]

    @pullback.command(epilog="Exit codes: 0 it is explained, 2 nothing is called so.")
    @click.argument("name", required=False, shell_complete=known)
    def explain(name: str | None) -> None:
        """Explain a cause (upstream-ignored) or an error.

        Without a name, all of them are listed.
        """
        from pullback.explain import explain as explained

        raise SystemExit(explained(name))

    @pullback.command(epilog="Exit codes: 0 it is written, 2 the name does not do, or a file exists.")
    @click.argument("name")
    @click.option(
        "--framework",
        type=click.Choice(list(SUPPORTED)),
        help="What the test runs on; without it, what is installed.",
    )
    def new(name: str, framework: str | None) -> None:
        """Write a rule to start from, and its test.

        They are NAME.py and test_NAME.py, in this folder; nothing is overwritten.
        """

        from pullback.new import new as written

        raise SystemExit(written(name, framework, Path.cwd()))

    return pullback


def configured(context: Any, parameter: Any, path: str | None) -> None:
    """Let the configuration fill in what the command line does not say."""
    from pullback import configuration
    from pullback.errors import ConfigurationError

    try:
        context.default_map = dict(configuration.use(path).options)
    except ConfigurationError as error:
        print(f"pullback: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def examine(*, as_json: bool = False) -> int:
    """Diagnose, print, and give the exit code."""
    from pullback.doctor import diagnose
    from pullback.doctor.show import show
    from pullback.progress import waiting

    with waiting("asking each framework"):
        diagnosis = diagnose()
    if as_json:
        print(diagnosis.dumps())
    else:
        show(diagnosis)
    return diagnosis.exit_code


def shown(findings: str, html_file: str) -> int:
    """Write findings of a file as a page, and give the exit code: 2 where not all of them could be shown."""
    from pullback.report.findings import FindingsError, load
    from pullback.report.html import NoTemplatesError
    from pullback.report.page import page
    from pullback.report.printable import printable

    try:
        document, problems = load(findings)
        text, said = page(document, problems)
    except (FindingsError, NoTemplatesError) as error:
        print(f"pullback: {printable(str(error))}", file=sys.stderr)
        return 2
    for line in said:
        print(f"pullback: {printable(line)}", file=sys.stderr)
    return 2 if not _written(html_file, text) or said else 0


def check_targets(
    targets: tuple[str, ...],
    options: Options,
    *,
    html_file: str | None = None,
    json_file: str | None = None,
    junit_file: str | None = None,
    github: bool = False,
    strict: bool = False,
    baseline: str | None = None,
    write_baseline: bool = False,
    write: bool = False,
    allow_uncommitted: bool = False,
) -> int:
    """Check targets, print and write the reports, and give the exit code."""
    from pullback.mend.write import write as write_edits
    from pullback.progress import progress
    from pullback.record.launch import launch_all
    from pullback.report import github as annotations
    from pullback.report import json, junit, page, terminal
    from pullback.report.baseline import Baseline, BaselineError
    from pullback.report.entry import Run
    from pullback.report.html import NoTemplatesError, environment
    from pullback.report.printable import printable
    from pullback.report.stale import stale

    try:
        known = Baseline(baseline, writes=write_baseline, strict=strict)
        if html_file is not None:
            environment()  # before anything runs: a page that cannot be made is told at once
    except (BaselineError, NoTemplatesError) as error:
        print(f"pullback: {printable(str(error))}", file=sys.stderr)
        return 2
    run = Run(seed=options.settings.seed, targets=tuple(map(printable, targets)))
    with progress() as told:
        launch_all(targets, run, told, options)
    found = write and not run.signal  # it is shown before it is mended
    changed = False
    if found:
        with contextlib.suppress(OSError):
            terminal.show(run)
        with progress() as told:
            changed = write_edits(run, targets, told, options, uncommitted=allow_uncommitted)
    run.notes.extend(stale(run))
    known.settle(run)
    with contextlib.suppress(OSError):  # the terminal may be gone: that is how the signal came
        if changed:
            terminal.say("", sys.stdout)
        if changed or not found:
            terminal.show(run, blocks=not found)
        for line in annotations.lines(run) if github else ():
            terminal.say(line, sys.stdout)
        for line in (*run.notes, *run.problems):
            terminal.say(f"pullback: {line}", sys.stderr)

    def as_page(run: Run, *, strict: bool) -> str:
        return page.page(json.document(run, strict=strict))[0]

    for path, writer in ((json_file, json.dumps), (junit_file, junit.dumps), (html_file, as_page)):
        if path is not None and not _written(path, writer(run, strict=strict)):
            return 2
    return run.exit_code(strict=strict)


def _written(path: str, text: str) -> bool:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"pullback: {path} cannot be written: {error.strerror}", file=sys.stderr)
        return False
    return True
