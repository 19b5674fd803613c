"""What the API reference does to a docstring: `Example:`, with one example in it, is shown as code."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Spell the section as griffe knows it."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of anything that has one."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
