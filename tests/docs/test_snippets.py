"""Every Python snippet of the documentation runs, in the order of its page, and prints what the page shows.

The snippets of a page make one program, with each line where it stands on the page. A `text` block right
behind a snippet is its output.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import warm

import pullback
from pullback import define, elementwise, errors, replace, rule
from pullback.wrapping import wrap

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = "\x1e"


def program(page: str) -> tuple[str, dict[int, str]]:
    """Give the program of a page, and the outputs it shows, by the line where their snippet ends."""
    code: list[str] = []
    shown: dict[int, str] = {}
    kind, ended = "", 0  # the block we are in, and the line where the last snippet ended
    block: list[str] = []
    for number, line in enumerate(page.splitlines(), start=1):
        fence = re.match(r"```(\w*)", line)
        if fence and kind:
            if kind == "python":
                code.append(f"print('{MARK}{number}')")
                ended = number
            else:
                code.append("")
                if kind == "text" and ended:
                    shown[ended] = "\n".join(block)
                ended = 0
            kind = ""
        elif fence:
            kind, block = fence[1] or "plain", []
            code.append("")
        elif kind:
            block.append(line)
            code.append(line if kind == "python" else "")
        else:
            code.append("")
            ended = ended if not line.strip() else 0
    return "\n".join(code) + "\n", shown


def test_program_keeps_lines_and_finds_outputs():
    page = "# Title\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n```text\nno output\n```\n"
    code, shown = program(page)
    assert code.splitlines()[3] == "print(1)"
    assert shown == {5: "1"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_runs_and_prints_what_it_shows(path, tmp_path):
    code, shown = program(path.read_text(encoding="utf-8"))
    script = tmp_path / f"{path.stem}.py"
    script.write_text(code, encoding="utf-8")
    done = warm.run(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    parts = re.split(f"{MARK}(\\d+)\n", done.stdout)
    printed = {int(line): text.rstrip("\n") for text, line in zip(parts[::2], parts[1::2])}
    for line, expected in shown.items():
        assert _normal(printed[line]) == _normal(expected), f"{path.name}:{line}"


def _normal(text: str) -> str:
    return re.sub(r"(\.py:|\(line )\d+", r"\1LINE", text)


REPLACEMENTS = [
    importlib.import_module(f"pullback.replace.{found.name}")
    for found in pkgutil.iter_modules(replace.__path__)
]


@pytest.mark.parametrize(
    "module", [define, elementwise, errors, rule, wrap, *REPLACEMENTS], ids=lambda module: module.__name__
)
def test_docstring_examples_hold(module):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(recurse=True).find(module):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize(
    ("room", "name"),
    [
        (room, name)
        for room in (pullback, pullback.ops, pullback.implicit)
        for name in room.__all__
        if inspect.isfunction(getattr(room, name))
    ],
)
def test_examples_of_public_functions_hold(room, name):
    """A rule is called through a function of another module, where the search by module does not see it."""
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(getattr(room, name), name, module=False, globs={})
    assert test.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
