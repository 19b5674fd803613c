"""What a child process is told to do; a value that travels as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pullback.checker.settings import Settings
from pullback.record.target import Target


@dataclass(frozen=True)
class Options:
    """Hold what one run of the command was told, the same for every target."""

    settings: Settings
    arguments: tuple[str, ...] = ()  # of the script
    seconds: float | None = None
    calls: int | None = None
    everything: bool = False  # the frameworks' own rules too
    budget: float | None = None  # CPU seconds for all checks of the run
    jobs: int = 1
    configuration: str = ""  # the file that was found
    repeated: bool = False  # the target was checked before: it prints nothing, and an interrupt is not for it


@dataclass(frozen=True)
class Job:
    """Hold one target, and how it is to be checked.

    `skip` lists modules that an earlier child did or died of, `mine` what it had begun; `done` lists rules
    that were finished, or died of. `rules` is their order in the script. `again` says that the script has
    run in another child, and that only the samples in `folder` are to be checked; `helps` that the other
    child is still at it.
    """

    target: Target
    folder: str
    options: Options
    skip: tuple[str, ...] = ()
    mine: tuple[str, ...] = ()
    done: tuple[Any, ...] = ()
    rules: tuple[Any, ...] = ()
    again: bool = False
    helps: bool = False

    def dumps(self) -> str:
        """Write the job."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Job:
        """Read a job."""
        data = json.loads(text)
        target, options = Target(**data.pop("target")), data.pop("options")
        options["settings"] = Settings(**options["settings"])
        options["arguments"] = tuple(options["arguments"])
        for name in ("skip", "mine", "done", "rules"):
            data[name] = tuple(tuple(v) if isinstance(v, list) else v for v in data[name])
        return Job(target, options=Options(**options), **data)
