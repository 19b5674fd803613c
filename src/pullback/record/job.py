"""What a child process is told to do; a value that travels as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pullback.record.target import Target


@dataclass(frozen=True)
class Job:
    """Hold one target and the options of its check.

    `skip` lists modules that an earlier child has done, or died of. `again` says that an earlier child died
    while the script ran, and that only the samples it left in `folder` are to be checked.
    """

    target: Target
    folder: str
    seed: int
    arguments: tuple[str, ...] = ()
    seconds: float | None = None
    calls: int | None = None
    order: int = 2
    everything: bool = False
    skip: tuple[str, ...] = ()
    again: bool = False

    def dumps(self) -> str:
        """Write the job."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Job:
        """Read a job."""
        data = json.loads(text)
        target = Target(**data.pop("target"))
        return Job(target, **{**data, "arguments": tuple(data["arguments"]), "skip": tuple(data["skip"])})
