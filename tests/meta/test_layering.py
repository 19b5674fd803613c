"""A framework's name stands only where the plan of the house allows it."""

import ast
from pathlib import Path

import pytest

import pullback
from pullback import hosts

SOURCE = Path(pullback.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
FRAMEWORKS = {"tensorflow", "jax", "torch", "keras", "flax"}
NICKNAMES = FRAMEWORKS | {"tf", "jnp", "K"}
LIMIT = 450  # lines; about 120 is what a file should have


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def may_name_a_framework(path: Path) -> bool:
    return place(path).startswith(("hosts/", "view/", "record/", "keras/", "namespace.py"))


def imports(tree: ast.AST) -> list[str]:
    """List the modules that a file imports, wherever in it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def framework_names(code: str) -> set[str]:
    """List the frameworks that a file imports or names, outside of strings."""
    tree = ast.parse(code)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name.split(".")[0] for name in imports(tree)} & FRAMEWORKS | named & NICKNAMES


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import tensorflow as tf", {"tensorflow"}),
        ("def f():\n    from jax import numpy", {"jax"}),
        ("y = tf.exp(x)", {"tf"}),
        ("fix = 'import tensorflow as tf'", set()),
        ("from pullback.keras import place", set()),
    ],
)
def test_the_test_sees_frameworks(code, names):
    assert framework_names(code) == names


@pytest.mark.parametrize("path", FILES, ids=place)
def test_frameworks_are_named_only_in_hosts(path):
    if not may_name_a_framework(path):
        assert framework_names(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("path", FILES, ids=place)
def test_a_host_is_imported_by_nobody_else(path):
    modules = imports(ast.parse(path.read_text(encoding="utf-8")))
    for host in hosts.SUPPORTED:
        if not place(path).startswith((f"hosts/{host}", f"view/{host}")):
            assert not [module for module in modules if module.startswith(f"pullback.hosts.{host}")]


@pytest.mark.parametrize("path", FILES, ids=place)
def test_private_functions_of_tensorflow_are_imported_in_one_file(path):
    modules = imports(ast.parse(path.read_text(encoding="utf-8")))
    private = [module for module in modules if module.startswith("tensorflow.python")]
    assert not private or place(path) == "hosts/tensorflow/recording.py"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_no_monster_file(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LIMIT


@pytest.mark.parametrize("path", FILES, ids=place)
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
