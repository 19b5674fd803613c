"""The text of every error is stored, for each host, and the same in eager mode and inside a tf.function.

`UPDATE_SNAPSHOTS=1 pytest tests/text` writes the snapshots anew: read the difference before it is committed.
"""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
import tensorflow as tf
import torch

import pullback
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
WITHOUT_DATA = ["host-not-imported", "host-too-old"]  # raised in a process of its own
# These carry the traceback of the function that ran: tests/unit/external/ asks what they say.
TRACED = {"ExternalOutputError", "ExternalMutationError", "ExternalTimeoutError"}
NUMBERS = {"SolutionError"}  # tells numbers, which a graph has when it runs: tests/unit/implicit/ asks for it
LEAVES = [c for c in CLASSES if not c.__subclasses__() and c.__name__ not in TRACED | NUMBERS]


def normal(text: str) -> str:
    """Remove what may change without a change of the text: line numbers, addresses, the class of a tensor."""
    text = re.sub(r"(\w+\.py):\d+", r"\1:LINE", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return re.sub(r"\b(Eager|Symbolic)Tensor\b", "Tensor", text)


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
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


HOSTS = {"jax": lambda: jnp.asarray([1.0, -2.0, 3.0]), "torch": lambda: torch.tensor([1.0, -2.0, 3.0])}
SHARED = [(name, host) for host in HOSTS for name in CASES if name not in BROKEN.IMPOSSIBLE[host]]
# the functions and dtypes that an error names in each framework's own way
OWN = {
    r"tf\.stop_gradient\([\w.]+\)|jax\.lax\.stop_gradient\([\w.]+\)|[\w.]+\.detach\(\)": "STOPPED",
    r"tf\.cond|jax\.lax\.cond|torch\.cond": "COND",
    r"tf\.where|jnp\.where|torch\.where": "WHERE",
    r"tf\.reduce_all|jnp\.all|torch\.all": "ALL",
    r"int(32|64)": "INT",  # of an argmax
}


def same_words(text: str) -> str:
    for own, word in OWN.items():
        text = re.sub(own, word, text)
    return text


@pytest.mark.parametrize(("name", "host"), SHARED)
def test_text_on_the_other_hosts(name, host):
    expected, case = CASES[name]
    with pytest.raises(errors.PullbackError) as caught:
        case(HOSTS[host]())
    assert caught.type is expected
    compare(f"{host}/{name}", str(caught.value))


@pytest.mark.parametrize(("name", "host"), [case for case in SHARED if case[0] not in BROKEN.OWN_WORDS])
def test_the_same_mistake_has_the_same_words_on_every_host(name, host):
    there, here = (
        (SNAPSHOTS / f"{path}.txt").read_text(encoding="utf-8") for path in (f"{host}/{name}", name)
    )
    assert same_words(there) == same_words(here)


@pytest.mark.parametrize(("name", "host"), [case for case in SHARED if case[0] in BROKEN.OWN_WORDS])
def test_what_differs_is_what_is_found_and_how_it_is_mended(name, host):
    there, here = (
        (SNAPSHOTS / f"{path}.txt").read_text(encoding="utf-8").splitlines()
        for path in (f"{host}/{name}", name)
    )
    assert [line.split(":")[0] for line in there[1:]] == [line.split(":")[0] for line in here[1:]]
    assert [line for line in there if line.startswith(("  why:", "  read:"))] == [
        line for line in here if line.startswith(("  why:", "  read:"))
    ]


# AutoGraph takes seconds to convert JAX and what reads TOML, and nobody calls them in a function
UNCONVERTED = {"configuration", "external-gradient-sparsity", "host"}


@pytest.mark.parametrize("name", CASES)
def test_text_inside_a_function(name, x):
    expected, case = CASES[name]
    with pytest.raises(errors.PullbackError) as caught:
        tf.function(case, autograph=name not in UNCONVERTED)(x)
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


def printed(program: str, *path: str) -> str:
    """Run a program in a process of its own, and give the text of the error that it prints."""
    source = str(Path(pullback.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": os.pathsep.join([*path, source]), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.rstrip("\n").replace("<string>", "string.py")


def test_text_without_a_framework():
    program = (
        "import numpy as np, pullback as pb\n"
        "f = pb.custom_gradient(lambda x: (x, lambda dy: dy))\n"
        "try:\n    pb.check(f, np.ones(3))\n"
        "except pb.errors.HostError as error:\n    print(error)\n"
    )
    compare("host-not-imported", printed(program))


def test_text_of_a_framework_that_is_too_old(tmp_path):
    """A stub of the package is enough: the version is looked at before anything else of it."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("__version__ = '0.3.0'\nclass Array: pass\n")
    program = (
        "import jax, pullback as pb\n"
        "f = pb.custom_gradient(lambda x: (x, lambda dy: dy))\n"
        "try:\n    f(jax.Array())\n"
        "except pb.errors.HostError as error:\n    print(error)\n"
    )
    compare("host-too-old", printed(program, str(tmp_path)))


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_snapshot(kind):
    assert kind.anchor() in CASES
    assert CASES[kind.anchor()][0] is kind


def test_every_snapshot_has_a_case():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == {*CASES, *WITHOUT_DATA}
    for host in HOSTS:
        assert {path.stem for path in (SNAPSHOTS / host).glob("*.txt")} == {n for n, h in SHARED if h == host}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_section(kind):
    title = rf"^##+ .* \{{#{kind.anchor()}\}}$"
    assert len(re.findall(title, INDEX, re.MULTILINE)) == 1
    assert f"`{kind.__name__}`" in INDEX


@pytest.mark.parametrize("name", [*CASES, *WITHOUT_DATA])
def test_every_text_says_what_to_do_and_where_to_read(name):
    text = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")
    assert "\n  expected: " in text
    assert "\n  fix: " in text
    (kind,) = re.findall(r"^  read: pullback explain (\w+)$", text, re.MULTILINE)
    assert f"{{#{getattr(errors, kind).anchor()}}}" in INDEX


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_the_index_shows_the_text(kind):
    stored = (SNAPSHOTS / f"{kind.anchor()}.txt").read_text(encoding="utf-8")
    section = INDEX.split(f"{{#{kind.anchor()}}}")[1].split("\n## ")[0]
    assert stored.replace("broken.py:LINE", "model.py:12") in section, "docs/errors.md shows another text"
