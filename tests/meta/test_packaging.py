"""What is packaged is there: the files that the wheel takes from elsewhere."""

import re
from pathlib import Path

from pullback.explain import PAGES

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_wheel_takes_every_page_that_is_explained():
    taken = dict(re.findall(r'^"(docs/[^"]+)" = "([^"]+)"$', PROJECT, re.MULTILINE))
    assert taken == {f"docs/{page}": f"pullback/pages/{page}" for page in PAGES.values()}
    assert all((ROOT / file).is_file() for file in taken)
