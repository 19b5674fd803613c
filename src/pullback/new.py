"""`pullback new`: a rule to start from, and its test.

What is written must be right before anybody has changed it, must not take the place of a file that exists,
and must have a name under which Python finds it and nothing else.
"""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
import sys
from pathlib import Path

from pullback.hosts import SUPPORTED
from pullback.report.printable import printable

RULE = '''"""{name}: say here what it computes."""

{imports}


# Write the function, and then its gradient term by term:
#   y  = x²
#   dx = 2·x·dy
@pb.example({tensor}([0.5, -1.5, 2.0]))
@pb.custom_gradient
def {name}(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad
'''

TEST = '''"""The gradient of {name} is its derivative."""

{framework}
from {name} import {name}


def test_the_gradient_of_{name}(check_gradient):
    check_gradient({name}, {tensor}([0.5, -1.5, 2.0]))
'''


class NewError(Exception):
    """Say why nothing is written."""


def new(name: str, framework: str | None, folder: Path) -> int:
    """Write a rule and its test, say what to do next, and give the exit code: 2 where nothing is written."""
    try:
        files = texts(name, framework or installed())
        for file in files:
            if (folder / file).exists():
                raise NewError(f"{file} exists: it is not overwritten")
        for file, text in files.items():
            with open(folder / file, "x", encoding="utf-8") as opened:
                opened.write(text)
    except (NewError, OSError) as error:
        print(f"pullback: {printable(str(error))}", file=sys.stderr)
        return 2
    print(f"wrote {' and '.join(files)}")
    pytest = "pytest" if importlib.util.find_spec("pytest") else "pip install pytest, and pytest"
    print(f"next: pullback check {name}.py:{name}\n      {pytest} test_{name}.py")
    return 0


def installed() -> str:
    """Name the framework to write for: the first that is installed; it is not imported."""
    return next((name for name in SUPPORTED if importlib.util.find_spec(name)), "tensorflow")


def texts(name: str, framework: str) -> dict[str, str]:
    """Give the files by their names."""
    line, tensor = SUPPORTED[framework].written, SUPPORTED[framework].constant
    imports = "\n".join(sorted([line, "import pullback as pb"]))
    check(name, RULE.format(name="_", imports=imports, tensor=tensor))
    parts = {"name": name, "imports": imports, "framework": line, "tensor": tensor}
    return {f"{name}.py": RULE.format(**parts), f"test_{name}.py": TEST.format(**parts)}


def check(name: str, code: str) -> None:
    """Refuse a name that is none, or that stands for something else."""
    if not name.isidentifier() or keyword.iskeyword(name):
        better = re.sub(r"\W+", "_", name.removesuffix(".py")).strip("_")
        fits = better.isidentifier() and not keyword.iskeyword(better)
        raise NewError(f"{name!r} is no name of a function" + (f": write {better}" if fits else ""))
    if name.startswith("test"):
        raise NewError(f"{name}: pytest would take the rule for a test")
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    if name in used | {"x", "dy", "grad"}:
        raise NewError(f"{name}: the rule uses this name for something else")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name):
        raise NewError(f"{name}: a module of this name is installed, and {name}.py would hide it")
