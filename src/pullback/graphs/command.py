"""What `pullback graph` does: find the function, draw it at its example arguments, print it or write a file.

Whatever goes wrong is one sentence on standard error; what could be drawn is drawn all the same.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pullback.errors import PullbackError
from pullback.example import examples_of
from pullback.graphs.text import told as told_of
from pullback.graphs.trace import graph
from pullback.record.modules import load
from pullback.record.script import beside, told
from pullback.record.target import Target, TargetError, parse
from pullback.report.printable import printable


def draw(text: str, output: str | None) -> int:
    """Draw a target, and give the exit code."""
    try:
        function = found(text)
        examples = examples_of(function)
        if not examples:
            raise TargetError(f"{text} has no example arguments: mark it with @pb.example(...)")
        args, kwargs = examples[0]
        drawn = graph(function, *args, **kwargs)
        if output is None:
            print(printable(str(drawn), lines=True))
        else:
            drawn.save(output)
            for line in told_of(drawn):
                print(f"pullback: {printable(line)}", file=sys.stderr)
    except (TargetError, PullbackError) as error:
        print(f"pullback: {printable(str(error), lines=True)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"pullback: {output} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 2 if drawn.problem else 0


def found(text: str) -> Any:
    """Import the function that a target names."""
    target: Target = parse(text)
    if target.kind != "function":
        raise TargetError(f"{text} is a {target.kind}: name a function of it, as in {text}:loss")
    with beside(os.getcwd(), set(sys.modules)):
        try:
            value: Any = load(target.module)
        except (Exception, SystemExit) as error:  # importing runs the user's code
            raise TargetError(f"{target.text} could not be imported: {told(error)}") from None
    for part in target.function.split("."):
        if not hasattr(value, part):
            raise TargetError(f"{text.rpartition(':')[0]} has no {target.function}")
        value = getattr(value, part)
    if not callable(value):
        raise TargetError(f"{text} is no function but a {type(value).__name__}")
    return value
