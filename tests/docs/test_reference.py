"""The reference is whole: every public name, key and difference has its place, and every place its name."""

import importlib
import inspect
import re
from pathlib import Path

import pullback
from pullback.configuration import OPTIONS
from pullback.declare import KEYS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def page(name):
    return (REFERENCE / name).read_text(encoding="utf-8")


def documented():
    """List what mkdocstrings is asked for, on every page."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md")))
    return re.findall(r"^::: (\S+)$", text, re.MULTILINE)


def test_every_public_name_is_documented_once():
    names = [target.rpartition(".")[2] for target in documented()]
    assert len(set(names)) == len(names)
    public = {name for name in pullback.__all__ if not inspect.ismodule(getattr(pullback, name))}
    assert public - set(names) == set()
    # a module that is public is documented as a whole, or by what it offers
    for name in set(pullback.__all__) - public:
        whole = f"pullback.{name}"
        offered = {f"{whole}.{part}.{part}" for part in getattr(getattr(pullback, name), "__all__", ())}
        assert any(target.startswith(whole) for target in documented()), whole
        assert whole in documented() or offered <= set(documented()), whole


def test_everything_that_is_documented_exists():
    for target in documented():
        module, _, name = target.rpartition(".")
        if module == "pullback":
            assert inspect.ismodule(importlib.import_module(target))
        else:
            assert hasattr(importlib.import_module(module), name), target


def keys(text, heading):
    """List the first cells of the table under a heading."""
    section = text.split(f"{{#{heading}}}")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_key_of_the_configuration_is_explained():
    text = page("configuration.md")
    assert keys(text, "options") == set(OPTIONS)
    assert keys(text, "rules") == set(KEYS)


def test_what_is_shown_whole_exists():
    shown = [
        file
        for path in REFERENCE.glob("*.md")
        for file in re.findall(r'^--8<-- "(.+)"$', page(path.name), re.M)
    ]
    assert len(shown) == 2
    assert all((ROOT / file).is_file() for file in shown)


def test_the_numbered_decisions_are_in_order():
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
