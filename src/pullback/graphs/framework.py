"""What is asked of a framework: a function and its inputs, traced and measured once.

A framework is one file beside this one, with a `TRACER` in it. It fills a `Sketch`: the nodes and edges as
they are met, with their measures. What cannot be traced or measured is said in `notes`, and what was drawn
until then stays.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pullback import define
from pullback.graphs import marks, words
from pullback.graphs.order import ahead, behind, beside, ordered, reached
from pullback.graphs.parts import Edge, Flow, Kind, Mark, Node, State
from pullback.report.printable import printable
from pullback.rule import name_of, shown_signature
from pullback.view.arguments import Arguments, is_array
from pullback.view.definition import HERE, PACKAGES, Definition
from pullback.view.native import Given, Native, Natives

Marked = Callable[[], "Mark | None"]  # makes the mark of a rule; None for one of a framework's own
MEASURED = 3000  # operations; beyond, measuring one by one would take longer than anybody waits


@dataclass(frozen=True)
class Asked:
    """Hold what is to be drawn: a function, its arguments, and the cotangents of its outputs, if given."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    cotangents: Sequence[Any] | None = None
    inside: bool = False  # whether what runs inside of loops and branches is drawn, too

    @property
    def name(self) -> str:
        return name_of(self.function)

    def arguments(self, is_input: Callable[[Any], bool]) -> Arguments:
        """See the arguments flat."""
        return Arguments(self.args, self.kwargs, is_input)

    def names(self, arguments: Arguments) -> list[str]:
        """Name the inputs after the parameters of the function."""
        written = self.function
        if not inspect.isroutine(written):  # a module or a layer takes what its own method takes
            written = getattr(written, "forward", None) or getattr(written, "call", None) or written
        return arguments.names(shown_signature(written))


@dataclass
class Sketch:
    """Collect a graph while it is traced."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problem: str = ""
    # what stands for an object that a user can name, by id
    origins: dict[int, int] = field(default_factory=dict)

    def node(
        self,
        operation: str,
        *,
        name: str = "",
        kind: Kind = "operation",
        scope: Sequence[str] = (),
        rule: Mark | None = None,
        location: str = "",
    ) -> int:
        """Add a node, and give its id."""
        does = words.does(operation) if kind == "operation" and rule is None else ""
        new = len(self.nodes)
        shown = printable(name or words.shown(operation))  # users name scopes, variables and functions
        self.nodes.append(Node(new, operation, shown, kind, does, tuple(scope), rule, None, location))
        return new

    def edge(self, source: int, target: int, **known: Any) -> int:
        """Add an edge, and give its place in the list."""
        self.edges.append(Edge(source, target, **known))
        return len(self.edges) - 1

    def measure(self, edge: int, gradient: Any, value: Any = None) -> None:
        """Note the gradient that came back along an edge; None where nothing did."""
        flow = None if gradient is None else Flow.of(gradient)
        state: State = "none" if flow is None else flow.state
        known = None if value is None else Flow.of(value)
        old = self.edges[edge]
        self.edges[edge] = replace(old, gradient=flow, state=state, value=known or old.value)

    def calm(self, edge: int) -> None:
        """Note that no gradient is expected along an edge."""
        self.edges[edge] = replace(self.edges[edge], state="still")

    def told(self, node: int, **known: Any) -> None:
        """Note more of a node."""
        self.nodes[node] = replace(self.nodes[node], **known)

    def pruned(self, ends: Sequence[str] = ("leave",)) -> Sketch:
        """Leave what leads from a source to an output, or to where a value ends otherwise.

        What no input or variable reaches is no part of a gradient: constants, shapes, random numbers.
        """
        after, before = beside(self.edges)
        targets = ahead(after)
        outputs = [n.id for n in self.nodes if n.kind == "output"]
        live = reached([n.id for n in self.nodes if n.is_source], targets)
        if not live.intersection(outputs):  # then what they come from is all that there is to see
            live |= reached([n.id for n in self.nodes if n.kind == "captured"], targets)
        last = [n.id for n in self.nodes if n.kind == "output" or n.does in ends or self.problem]
        wanted = reached(last, behind(before))
        kept = {
            n.id for n in self.nodes if (n.id in live and n.id in wanted) or n.kind in ("input", "output")
        }
        kept |= {
            n.id for n in self.nodes if n.kind == "captured" and any(t in kept for t in targets.get(n.id, ()))
        }
        pairs = [(e.source, e.target) for e in self.edges]
        nodes = [self.nodes[i] for i in ordered(len(self.nodes), pairs) if i in kept]
        new = {node.id: i for i, node in enumerate(nodes)}
        edges = [
            replace(e, source=new[e.source], target=new[e.target])
            for e in self.edges
            if e.source in kept and e.target in kept
        ]
        edges = [e if nodes[e.source].kind != "captured" else replace(e, state="still") for e in edges]
        origins = {key: new[node] for key, node in self.origins.items() if node in new}
        nodes = [replace(node, id=new[node.id]) for node in nodes]
        return replace(self, nodes=nodes, edges=edges, origins=origins)


class Tracer(ABC):
    """Trace and measure on one framework."""

    @abstractmethod
    def owns(self, value: Any) -> bool:
        """Tell whether a value is a tensor or a variable of the framework."""

    @abstractmethod
    def trace(self, asked: Asked) -> Sketch:
        """Draw a function at its inputs."""

    def recorded(self, target: Any, sources: Sequence[Any], names: Sequence[str]) -> Sketch | None:
        """Draw what a tensor was computed from; None where a tensor keeps no history."""
        return None

    def variable(self, value: Any) -> bool:
        """Tell whether a value keeps a place of its own that functions read without being handed it."""
        return False

    def is_input(self, leaf: Any) -> bool:
        """Tell whether an argument is one that gradients are asked of."""
        return is_array(leaf) or (self.owns(leaf) and not self.variable(leaf))

    def key(self, variable: Any) -> int:
        """Give what `origins` knows a variable by."""
        return id(variable)

    def name(self, variable: Any, function: Callable[..., Any]) -> str:
        """Name a variable, as a function that reads it does; nothing where it has no name."""
        return str(getattr(variable, "path", "") or getattr(variable, "name", "") or "").split(":")[0]

    def trained(self, variable: Any) -> bool:
        """Tell whether the framework records what is computed from a variable unasked."""
        return True

    untrained = "unwatched"  # the kind of loss where it does not


@contextlib.contextmanager
def heard(natives: Natives, told: Callable[[str, Marked, Given], None]) -> Iterator[None]:
    """Be told of every rule that is called, before it runs: its name, its mark and its arguments."""

    class Ear:
        def made(self, who: Callable[[], Definition]) -> None:
            pass

        def called(self, who: Callable[[], Definition], given: Callable[[], Given]) -> None:
            known = who()
            if isinstance(known, Native) and known.owner != "pullback":
                is_user = not known.owner  # those of a framework are what its functions are made of
                name = known.name.rpartition(".")[2]
                told(name, lambda: marks.of_native(known) if is_user else None, given())

        def pulled(self, who: Callable[[], Definition], given: Callable[[], Sequence[Any]]) -> None:
            pass

        def moved(self, who: Callable[[], Definition], given: Callable[[], Sequence[bool]]) -> None:
            pass

    def own(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        told(function.rule.name, lambda: marks.of_rule(function.rule), (args, kwargs))

    with contextlib.ExitStack() as stack:
        for name, listen in natives.listeners(Ear()).items():
            if name in sys.modules:
                stack.enter_context(listen(sys.modules[name]))
        define.listeners.append(own)
        stack.callback(define.listeners.remove, own)
        yield


def is_user(path: str) -> bool:
    """Tell a file of the user's from those of this library, of frameworks and of Python."""
    if not path or path.startswith(("<", HERE)) or "__autograph_generated_file" in path:
        return False
    parts = path.replace(os.sep, "/").split("/")
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py") not in (*PACKAGES, *_ARRAYS)
    return not path.startswith(_PYTHON)


_ARRAYS = ("numpy", "scipy", "einops", "opt_einsum")  # what users call with arrays in hand
_PYTHON = os.path.dirname(os.__file__) + os.sep


def location_now() -> str:
    """Find the line of the user's that is running."""
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        if is_user(frame.f_code.co_filename):
            return f"{os.path.basename(frame.f_code.co_filename)}:{line}"
    return ""


def location_in(error: BaseException) -> str:
    """Find the line of the user's at which an exception was raised."""
    # AutoGraph runs other code than the user's, and tells the lines in the text.
    told = [(path, int(line)) for path, line in _TOLD.findall(str(error)) if is_user(path)]
    frames = [
        (f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__) if is_user(f.filename)
    ]
    found = told or frames
    return f"{os.path.basename(found[-1][0])}:{found[-1][1]}" if found else ""


_TOLD = re.compile(r'File "([^"]+)", line (\d+)')


def sentence(error: BaseException) -> str:
    """Give the line of an exception that says something; AutoGraph puts those of the program before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines[:1] == ["in user code:"]:
        named = [line for line in lines if line.startswith(f"{type(error).__name__}: ")]
        return (named or lines)[-1][:200]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
