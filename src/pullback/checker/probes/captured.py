"""Does the function capture tensors, to which no gradient can flow?"""

from __future__ import annotations

from pullback.checker.finding import Finding
from pullback.checker.probe import probe
from pullback.checker.settings import Settings
from pullback.view.subject import Subject


@probe(rank=60)
def question(subject: Subject, settings: Settings) -> list[Finding]:
    """Name the captured tensors of a rule."""
    if not subject.is_rule or not subject.captured:
        return []
    names = ", ".join(f"`{n}`" for n in subject.captured)
    return [
        Finding(
            "captured",
            "note",
            f"the rule captures {names} from outside: a gradient with respect to it is silently None",
            edit="pass it as an argument",
            where=names,
        )
    ]
