"""The page of causes knows every cause, shows code that earns its name, and code that is mended.

What the snippets print is held by the test of all pages.
"""

import re
from pathlib import Path

from pullback.checker.cause import causes

PAGE = (Path(__file__).parents[2] / "docs" / "causes.md").read_text(encoding="utf-8")


def sections():
    parts = re.split(r"^## (\S+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def test_every_cause_has_a_section_and_every_section_is_a_cause():
    assert set(sections()) == {module.SLUG for module in causes()}


def test_wrong_code_is_called_by_its_name_and_mended_code_is_right():
    for slug, text in sections().items():
        wrong, mended = re.findall(r"```text\n(.*?)\n```", text, flags=re.DOTALL)
        assert wrong.startswith(f"{slug}: "), slug
        assert mended == "right", slug
        assert len(re.findall(r"^```python$", text, flags=re.MULTILINE)) == 2, slug
