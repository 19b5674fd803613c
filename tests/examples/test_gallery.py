"""The gallery holds what it claims: programs run, their rules are right, pages and pictures are there."""

import ast
import importlib.util
from pathlib import Path

import pytest

import pullback as pb
from pullback.example import MARK

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def program(request):
    spec = importlib.util.spec_from_file_location(request.param.stem, request.param)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_runs_and_its_assertions_hold(program):
    assert program.main(), "what the picture shows"


def test_its_rules_are_right(program):
    examples = {name: getattr(value, MARK) for name, value in vars(program).items() if hasattr(value, MARK)}
    for name, marks in examples.items():
        for args, kwargs, domain in marks:
            report = pb.check(
                getattr(program, name), *args, **kwargs, domain=domain, seed=1, xla=False, export=False
            )
            assert report.verdict == "right", f"{name}\n{report}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_short_and_shown(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") < 120
    assert "?" in ast.get_docstring(tree).splitlines()[0], "the first line is a question"
    functions = {node.name: ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "assert " in functions["main"]
    assert "matplotlib" in functions["picture"], "who only runs it needs no matplotlib"
    assert "matplotlib" not in functions["main"]
    assert f"examples/gallery/{path.name}" in PAGE
    assert (ROOT / "docs" / "images" / "gallery" / f"{path.stem}.png").exists()
    assert f"images/gallery/{path.stem}.png" in PAGE
