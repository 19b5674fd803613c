"""The page on mending shows ten bugs, each with where it stood and an edit of one of its lines.

What the snippets print is held by the test of all pages.
"""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "mend.md").read_text(encoding="utf-8")
BUGS = re.split(r"^### .+$", PAGE.split("## Ten bugs of public history")[1], flags=re.MULTILINE)[1:]


def test_there_are_ten_bugs_each_with_its_place_and_its_edit():
    assert len(BUGS) == 10
    for bug in BUGS:
        assert "](https://github.com/" in bug
        (code,) = re.findall(r"```python\n(.*?)\n```", bug, flags=re.DOTALL)
        (shown,) = re.findall(r"```text\n(.*?)\n```", bug, flags=re.DOTALL)
        words, *lines = shown.splitlines()
        removed = [line[1:] for line in lines if line.startswith("-")]
        added = [line[1:] for line in lines if line.startswith("+")]
        for number in map(int, re.findall(r"\(line (\d+)\)", words)):
            assert code.splitlines()[number - 1] in removed, words
        assert added
        assert all(line not in code for line in added)
