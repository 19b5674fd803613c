"""What mending hands over: edits of a file's text, with the words that name the bug and the proof."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    start: int  # characters of the file's text, read with its newlines kept
    stop: int
    new: str  # what stands there afterwards


@dataclass(frozen=True)
class Patch:
    file: str  # the file that is edited
    text: str  # its whole text, as it was verified
    spans: tuple[Span, ...]  # in order, apart from each other
    words: str  # the bug, named by the edit: "`y` stands where `x` is meant (line 12)"
    points: tuple[str, ...]  # where it was right, each as words: shape, dtype, which point
    order: int  # to which order it was proven
    explains: tuple[str, ...] | None = None  # the causes that may be measured where it mends; None: any
    rest: str = ""  # what stays wrong, in words


@dataclass(frozen=True)
class Mending:
    patches: tuple[Patch, ...] = ()  # smallest first
    tried: int = 0  # candidates
    seconds: float = 0.0  # of CPU
    refused: str | None = None  # why nothing was searched, in one sentence
    edits: tuple[str, ...] = ()  # which kinds of edits were tried, in words
    spent: bool = False  # whether the budget ended the search
    instead: str | None = None  # the last resort, verified: delete the rule; what it costs
