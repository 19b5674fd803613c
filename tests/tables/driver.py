"""Tables of a framework's own functions, checked one by one: `python tests/tables/driver.py --help`.

A table names every function with a gradient, the arguments that it is checked at, and what is left out, with
the reason. A function that is called wrong must be listed among the known ones, with a reproduction there.
The checks run in a process of their own: one that dies or never returns costs its call and no other.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import inspect
import itertools
import json
import multiprocessing
import pathlib
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pullback.checker import check
from pullback.errors import NoTensorError

TABLES = ("opinfo", "jax_table", "tensorflow_table", "keras_table")
VERDICTS = ("right", "undecided", "wrong", "crash")
CHUNK = 200  # functions a process: what compilers keep is freed with it
PATIENCE = 10  # how much longer a call may wait than it may compute
OPTIONS = set(inspect.signature(check).parameters)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tables.md"


@dataclasses.dataclass(frozen=True)
class Call:
    """Hold one function and the arguments to check it at."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Table:
    """Hold the functions of a framework by name, each with the calls to check."""

    title: str
    version: str
    calls: Mapping[str, Callable[[], Iterator[Call]]]
    known: Mapping[str, Callable[[], tuple[Any, Any]]]
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)


def as_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function as a user calls it, in one of their own: nothing is excused as the framework's."""

    def operator(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return operator


def judged(call: Call, seed: int = 0, budget: float = 60.0) -> dict[str, Any]:
    """Check one call; a crash is a row, too."""
    start = time.process_time()
    bound = {name: value for name, value in call.kwargs.items() if name in OPTIONS}  # a seed of its own
    named = {name: value for name, value in call.kwargs.items() if name not in OPTIONS}
    found: dict[str, Any]
    try:
        report = check(
            as_called(functools.partial(call.function, **bound)),
            *call.args,
            seed=seed,
            budget=budget,
            xla=False,
            export=False,
            **named,
        )
    except NoTensorError as error:
        found = {"verdict": "undecided", "said": str(error)}
    except Exception as error:
        found = {"verdict": "crash", "said": "".join(traceback.format_exception(error)[-3:])}
    else:
        told = [(f.verdict, f"{f.probe}[{f.point}]: {f.sentence}") for f in report.findings]
        found = {
            "verdict": report.verdict,
            "causes": report.causes,
            "said": "; ".join(f"{verdict} {said}" for verdict, said in told if verdict != "note"),
            "notes": [said for verdict, said in told if verdict == "note"],
            "left": any(f.reason == "budget" for f in report.findings),
        }
    return {**found, "seconds": round(time.process_time() - start, 2)}


@dataclasses.dataclass(frozen=True)
class Head:
    """Hold what is said of a table beside its rows."""

    title: str
    version: str
    names: tuple[str, ...]
    functions: int  # of the whole table
    left_out: Mapping[str, str]
    known: frozenset[str]

    def counts(self, found: Mapping[str, Any]) -> dict[str, int]:
        """Count the rows by verdict; what is wrong and known is counted apart."""
        counts = {v: sum(row["verdict"] == v for row in found.values()) for v in VERDICTS}
        known = [key for key, row in found.items() if row["verdict"] == "wrong" and self.knows(key)]
        return {**counts, "wrong": counts["wrong"] - len(known), "known": len(known)}

    def knows(self, key: str) -> bool:
        """Tell whether what is wrong with a function is shown among the known ones."""
        return key.split("#")[0] in self.known


def functions_of(calls: Iterable[str]) -> int:
    """Count the functions among calls."""
    return len({name.split("#")[0].split("(")[0] for name in calls})


def rows(given: argparse.Namespace, known: set[str], ended: list[str], out: Any) -> None:
    """Check calls that are not known, and send each row as it is, behind the head of the table."""
    table = importlib.import_module(given.table).table()
    names = tuple(name for name in table.calls if is_named(name, given.only))[:: given.every]
    functions = functions_of(table.calls)
    out.send(Head(table.title, table.version, names, functions, table.left_out, frozenset(table.known)))
    left = [] if given.list else [name for name in names if name not in ended]
    for name in left[:CHUNK]:
        for i, call in enumerate(itertools.islice(table.calls[name](), given.samples or None)):
            key = f"{name}#{i}" if i else name
            if key not in known:
                out.send((key, None))
                limit_to(given.timeout)
                row = judged(call, given.seed, given.budget)
                out.send((key, row))
                if row.get("left"):
                    out.send(False)  # what was left may go on computing in this process
                    return
        out.send(name)
    out.send(len(left) <= CHUNK)


def limit_to(seconds: float) -> None:
    """End this process after so much more CPU time: a busy machine is no hang."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))


def apart(given: argparse.Namespace, known: set[str]) -> Iterator[Any]:
    """Give the head of a table and its rows, from processes of their own: one that ends is a crash."""
    context = multiprocessing.get_context("fork")  # no framework is imported here: nothing is copied
    ended: list[str] = []
    while True:
        mine, its = context.Pipe(duplex=False)
        process = context.Process(target=rows, args=(given, known, ended, its))
        process.start()
        its.close()
        done, said, begun = None, "", ""
        try:
            while done is None and not said:
                if not mine.poll(PATIENCE * given.timeout):
                    said = f"no answer for {PATIENCE * given.timeout:g} s"
                    continue
                message = mine.recv()
                if isinstance(message, bool):
                    done = message
                elif isinstance(message, str):
                    ended.append(message)
                elif isinstance(message, tuple) and message[1] is None:
                    begun = message[0]
                    known.add(begun)
                else:
                    begun = ""
                    yield message
        except EOFError:
            process.join()
            said = f"the process ended: exit code {process.exitcode}"
        process.kill()
        process.join()
        if said and not begun:
            raise RuntimeError(said)
        if said:
            yield begun, {"verdict": "crash", "said": said}
        if done:
            return


def written(page: str, head: Head, found: Mapping[str, Any]) -> str:
    """Put the line of a table into the page of all tables."""
    named = f"| {head.title} "
    counts = head.counts(found)
    cells = [counts[key] for key in ("right", "undecided", "known", "wrong", "crash")]
    total = [f"{functions_of(found)} of {head.functions}", sum(cells), *cells]
    line = f"{named}| {head.version} | {' | '.join(map(str, total))} |"
    lines = page.splitlines()
    old = [i for i, other in enumerate(lines) if other.startswith(named)]
    if old:
        lines[old[0]] = line
    else:
        lines.insert(max(i for i, other in enumerate(lines) if other.startswith("|")) + 1, line)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run a table from the command line; non-zero for a false alarm or a crash."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="a file of this folder: " + ", ".join(TABLES))
    parser.add_argument("--only", nargs="+", help="functions by name or pattern")
    parser.add_argument("--every", type=int, default=1, help="one function of so many, for a quick look")
    parser.add_argument("--list", action="store_true", help="show the functions, and what is left out")
    parser.add_argument("--samples", type=int, default=0, help="calls a function; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds that a check may take")
    parser.add_argument("--timeout", type=float, default=300.0, help="CPU seconds after which it is a hang")
    parser.add_argument("--json", type=pathlib.Path, help="where to write every row, a line each")
    parser.add_argument("--resume", action="store_true", help="keep the rows of that file, and go on")
    parser.add_argument("--write", action="store_true", help="put the counts into docs/tables.md")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    if given.json and not given.resume:
        given.json.unlink(missing_ok=True)
    if given.json and given.json.exists():
        kept = map(json.loads, given.json.read_text().splitlines())
        found = {row.pop("call"): row for row in kept}
    answers = apart(given, set(found))
    head = next(answers)
    if given.list:
        print(*head.names, sep="\n")
        print(*(f"left out: {name}: {why}" for name, why in head.left_out.items()), sep="\n")
        return 0
    for answer in answers:
        if isinstance(answer, Head):
            continue
        key, row = answer
        found[key] = row
        if row["verdict"] != "right":
            print(f"{row['verdict']:9} {key}: {row['said'][-600:]}", flush=True)
        if given.json:
            with given.json.open("a") as lines:
                lines.write(json.dumps({"call": key, **row}) + "\n")
    counts = head.counts(found)
    checked = f"{functions_of(found)} of {head.functions} functions"
    print(f"{checked}, {len(found)} calls: {counts}; {len(head.left_out)} left out")
    if given.write:
        PAGE.write_text(written(PAGE.read_text(), head, found))
    return int(counts["wrong"] + counts["crash"] > 0)


def is_named(name: str, wanted: Sequence[str] | None) -> bool:
    """Tell whether a function is among those asked for."""
    bare = name.split("(")[0]
    return not wanted or any(
        bare.startswith(w[:-1]) if w.endswith("*") else w in (bare, name) for w in wanted
    )


if __name__ == "__main__":
    sys.modules["driver"] = sys.modules["__main__"]  # the tables import this very file
    sys.exit(main())
