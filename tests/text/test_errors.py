"""The text of every error is stored, and the same in eager mode and inside a tf.function.

`UPDATE_SNAPSHOTS=1 pytest tests/text` writes the snapshots anew: read the difference before it is committed.
"""

import importlib.util
import inspect
import os
import re
from pathlib import Path

import pytest
import tensorflow as tf

from pullback import errors

HERE = Path(__file__).parent
SNAPSHOTS = HERE / "snapshots"
INDEX = (HERE.parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BROKEN = _load(HERE / "broken.py")
CASES = BROKEN.CASES
CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.PullbackError)]
LEAVES = [c for c in CLASSES if not c.__subclasses__()]


def normal(text: str) -> str:
    """Remove what may change without a change of the text: line numbers, addresses, the class of a tensor."""
    text = re.sub(r"(\w+\.py):\d+", r"\1:LINE", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"\b(Eager|Symbolic)Tensor\b", "Tensor", text)


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(normal(text) + "\n", encoding="utf-8")
    assert path.exists(), f"no snapshot: UPDATE_SNAPSHOTS=1 pytest {HERE.name}"
    assert normal(text) + "\n" == path.read_text(encoding="utf-8")


def contains(shown: str, name: str) -> bool:
    stored = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")
    # AutoGraph shows the user's lines first, and sets the text in by four spaces
    return stored in normal(shown) or stored.replace("\n", "\n    ") in normal(shown)


@pytest.fixture
def x():
    return tf.constant([1.0, -2.0, 3.0])


@pytest.mark.parametrize("name", CASES)
def test_text_in_eager_mode(name, x):
    expected, case = CASES[name]
    with pytest.raises(errors.PullbackError) as caught:
        case(x)
    assert caught.type is expected
    compare(name, str(caught.value))


@pytest.mark.parametrize("name", CASES)
def test_text_inside_a_function(name, x):
    expected, case = CASES[name]
    with pytest.raises(errors.PullbackError) as caught:
        tf.function(case)(x)
    assert caught.type is expected
    assert contains(str(caught.value), name)


@pytest.mark.parametrize("name", BROKEN.DIFFERENTIATED)
def test_text_from_a_tape_outside_a_function(name, x, monkeypatch):
    expected, case = CASES[name]
    monkeypatch.setattr(BROKEN, "around", tf.function)
    with pytest.raises(errors.PullbackError) as caught:
        case(x)
    assert caught.type is expected
    assert contains(str(caught.value), name)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_snapshot(kind):
    assert kind.anchor() in CASES
    assert CASES[kind.anchor()][0] is kind


def test_every_snapshot_has_a_case():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_section(kind):
    title = rf"^##+ .* \{{#{kind.anchor()}\}}$"
    assert len(re.findall(title, INDEX, re.MULTILINE)) == 1
    assert f"`{kind.__name__}`" in INDEX


@pytest.mark.parametrize("name", CASES)
def test_every_text_says_what_to_do_and_where_to_read(name):
    text = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")
    assert "\n  expected: " in text
    assert "\n  fix: " in text
    (anchor,) = re.findall(r"^  read: docs/errors\.md#(\S+)$", text, re.MULTILINE)
    assert f"{{#{anchor}}}" in INDEX


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_the_index_shows_the_text(kind):
    stored = (SNAPSHOTS / f"{kind.anchor()}.txt").read_text(encoding="utf-8")
    section = INDEX.split(f"{{#{kind.anchor()}}}")[1].split("\n## ")[0]
    assert stored.replace("broken.py:LINE", "model.py:12") in section, "docs/errors.md shows another text"
