"""The documentation speaks of the software, and of files that exist."""

import re
from pathlib import Path

import pytest

import pullback

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCE = Path(pullback.__file__).parent


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_path_of_somebodys_machine(path):
    assert not re.search(r"(?<![\w.])/(tmp|home|work|root|Users)/", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            page, _, anchor = target.partition("#")
            file = path.parent / page if page else path
            assert file.exists(), target
            # behind a picture stands the theme that shows it
            assert file.suffix != ".md" or not anchor or f"{{#{anchor}}}" in file.read_text(encoding="utf-8")
            assert file.suffix == ".md" or anchor in ("", "only-light", "only-dark"), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_files_that_are_named_exist(path):
    folders = "benchmarks|docs|examples|src|tests"
    for name in re.findall(rf"`((?:{folders})/[\w./]*)`", path.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in config


def test_the_plan_of_the_house_names_every_part():
    plan = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = {path.name for path in SOURCE.glob("*.py")}
    folders = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    hosts = {path.name for path in (SOURCE / "hosts").rglob("[!_]*.py")}
    missing = {part for part in files | folders | hosts if f"{part}`" not in plan and f"`{part}" not in plan}
    assert not missing, "add a row to docs/architecture.md"


def test_the_plan_of_the_house_names_only_files_that_exist():
    plan = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = {path.name for path in SOURCE.rglob("*.py")}
    assert set(re.findall(r"`(?:[\w/]*/)?(\w+\.py)`", plan)) <= names
