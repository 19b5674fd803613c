"""What a child process is told to do; a value that travels as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

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
    configuration: str = ""  # the file that was found


@dataclass(frozen=True)
class Job:
    """Hold one target, and how it is to be checked.

    `skip` lists modules that an earlier child has done, or died of. `again` says that an earlier child died
    while the script ran, and that only the samples it left in `folder` are to be checked.
    """

    target: Target
    folder: str
    options: Options
    skip: tuple[str, ...] = ()
    again: bool = False

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
        return Job(target, data["folder"], Options(**options), tuple(data["skip"]), data["again"])
