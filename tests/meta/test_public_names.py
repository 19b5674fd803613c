"""What users can rely on is listed here: a change of it is a change of this file."""

import inspect
import re
from pathlib import Path

import pytest

import pullback
from pullback import errors

ROOT = Path(__file__).parents[2]
PUBLIC = [
    "Intent",
    "Rule",
    "argmax_one_hot",
    "check",
    "checkpoint",
    "checkpoint_scan",
    "clip_gradient",
    "custom_gradient",
    "declare",
    "elementwise",
    "errors",
    "example",
    "external",
    "finite_gradient",
    "forbid_gradient",
    "graph",
    "heaviside",
    "implicit",
    "loss",
    "map_gradient",
    "namespace",
    "operator",
    "ops",
    "override",
    "reverse_gradient",
    "reversible",
    "round",
    "scale_gradient",
    "sign",
    "stop_gradient",
    "straight_through",
    "surrogate",
    "testing",
    "unbroadcast",
    "watch",
    "why",
    "with_gradient",
]
FUNCTIONS = {name: getattr(pullback, name) for name in PUBLIC if inspect.isfunction(getattr(pullback, name))}
FUNCTIONS |= {f"ops.{name}": getattr(pullback.ops, name) for name in pullback.ops.__all__}


def test_public_names():
    assert sorted(pullback.__all__) == sorted(PUBLIC)
    for name in PUBLIC:
        assert hasattr(pullback, name)


def test_nothing_else_looks_public():
    modules = {name for name, value in vars(pullback).items() if inspect.ismodule(value)}
    names = {name for name in vars(pullback) if not name.startswith("_")} - modules
    assert names <= set(PUBLIC)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_is_explained(name):
    text = inspect.getdoc(FUNCTIONS[name])
    assert re.match(r"[A-Z][a-z]+ .*\.$", text.splitlines()[0]), "one sentence that starts with a verb"
    assert ">>> " in text, "an example that runs"
    assert "Do not use it" in text, "when not to use it"
    for parameter in inspect.signature(FUNCTIONS[name]).parameters:
        assert re.search(rf"^ +{parameter}: |^{parameter}: ", text, re.MULTILINE), (
            f"`{parameter}` is explained"
        )


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(getattr(pullback, name))])
def test_public_class_is_explained(name):
    assert inspect.getdoc(getattr(pullback, name))


def drawn(text: str) -> list[tuple[int, str]]:
    """Read a tree drawn with lines: the depth and the name of each class."""
    found = []
    for line in text.splitlines():
        match = re.match(r"    ((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+Error)\b", line)
        if match:
            found.append((len(match[1]) // 4 + ("──" in line), match[2]))
    return found


def real(kind: type = errors.PullbackError, depth: int = 0) -> list[tuple[int, str]]:
    """List the classes of errors as they are, in the order of their definition."""
    found = [(depth, kind.__name__)]
    for child in kind.__subclasses__():
        found += real(child, depth + 1)
    return found


def test_the_drawn_tree_of_errors_is_the_real_one():
    assert drawn(errors.__doc__) == real()


def test_every_error_is_explained_and_has_its_own_anchor():
    kinds = [getattr(errors, name) for _, name in real()]
    assert all(kind.__doc__ for kind in kinds)
    assert len({kind.anchor() for kind in kinds}) == len(kinds)


def test_versions_agree():
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r"^## \[([^\]]+)\]", log, re.MULTILINE)[1] == pullback.__version__
    assert re.search(r'^version = "([^"]+)"', project, re.MULTILINE)[1] == pullback.__version__
