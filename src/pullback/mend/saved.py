"""What a forward keeps for its backward, where the two are functions of their own: PyTorch's and JAX's.

A backward may need what the forward computed and did not keep. Its names are open to edits all the same; an
edit that uses one of them gets a second hunk, in which the forward keeps it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pullback.mend.patch import Span
from pullback.mend.region import own
from pullback.mend.source import Function, Source


@dataclass(frozen=True)
class Saved:
    """Hold where a forward keeps, and where the backward takes what was kept."""

    source: Source
    forward: ast.FunctionDef
    context: str  # what PyTorch's backward calls its context; nothing in JAX
    keeps: ast.Call | ast.Tuple | None  # where one more can be kept; None: nothing is kept yet
    takes: ast.Tuple | ast.List | None  # where names are given to what was kept; None: it is taken by number

    def names(self, seen: Mapping[Any, dict[str, Any]], known: Collection[str]) -> dict[str, Any]:
        """Give what the forward left behind in a run, without what the backward has."""
        first = min([self.forward.lineno, *(d.lineno for d in self.forward.decorator_list)])
        where = (self.source.file, self.forward.name, first)
        ran = (v for c, v in seen.items() if (c.co_filename, c.co_name, c.co_firstlineno) == where)
        lasting = self.lasting()
        return {
            n: v
            for n, v in next(ran, {}).items()
            if n not in known and not n.startswith("_") and (lasting is None or n in lasting)
        }

    def lasting(self) -> set[str] | None:
        """Name what can be kept and differentiated again: in PyTorch arguments and outputs, and no others."""
        if not self.context or self.is_setup:
            return None
        returned = [n.value for n in own(self.forward.body) if isinstance(n, ast.Return)]
        parts = [p for v in returned for p in (v.elts if isinstance(v, ast.Tuple) else [v])]
        given = [a.arg for a in ast.walk(self.forward.args) if isinstance(a, ast.arg)]
        return {*given, *(p.id for p in parts if isinstance(p, ast.Name))}

    def hunk(
        self, tree: ast.Module, values: Mapping[str, Any]
    ) -> tuple[dict[int, ast.AST], list[Span]] | None:
        """Give the changes by which a variant of the backward finds these values, and the forward's."""
        tensors = [n for n, v in values.items() if not self.context or hasattr(v, "detach")]
        changes: dict[int, ast.AST] = {}
        spans: list[Span] = []
        kept = len(
            self.keeps.args if isinstance(self.keeps, ast.Call) else self.keeps.elts if self.keeps else ()
        )
        if tensors and self.takes is not None:
            more = [ast.Name(n, ast.Store()) for n in tensors]
            changes[id(self.takes)] = type(self.takes)([*self.takes.elts, *more], ast.Store())
        for node in _reads(tree, values):
            if node.id not in tensors:
                changes[id(node)] = ast.parse(f"{self.context}.{node.id}", mode="eval").body
            elif self.takes is None:
                text = f"{self.context}.saved_tensors[{kept + tensors.index(node.id)}]"
                changes[id(node)] = ast.parse(text, mode="eval").body
        context = self.forward.args.args[0].arg
        there = {ast.unparse(n) for n in ast.walk(self.forward) if isinstance(n, ast.Assign)}
        lines = [f"{context}.{n} = {n}" for n in values if n not in tensors]
        lines = [line for line in lines if line not in there]
        if tensors and self.keeps is None:
            lines.append(f"{context}.save_for_backward({', '.join(tensors)})")
        elif tensors:
            inside = self.keeps.args if isinstance(self.keeps, ast.Call) else self.keeps.elts  # type: ignore[union-attr]
            stop = self.source.span(inside[-1])[1]
            spans.append(Span(stop, stop, "".join(f", {n}" for n in tensors)))
        if lines:
            last = self.forward.body[-1]
            start, newline = self.source.place(last.lineno, last.col_offset), self.source.newline
            if not isinstance(last, ast.Return) and not self.is_setup:
                return None
            try:
                indent = self.source.indent(last)
            except ValueError:
                return None
            if isinstance(last, ast.Return):
                spans.append(Span(start, start, "".join(f"{line}{newline}{indent}" for line in lines)))
            else:
                stop = self.source.span(last)[1]
                spans.append(Span(stop, stop, "".join(f"{newline}{indent}{line}" for line in lines)))
        return changes, spans

    @property
    def is_setup(self) -> bool:
        """Tell whether the forward is the function that PyTorch calls behind it."""
        return self.forward.name == "setup_context"


def saved(source: Source, backward: Function) -> Saved | None:
    """Find the forward of a backward, and what goes from one to the other; None where that cannot be told."""
    if not isinstance(backward, ast.FunctionDef) or not backward.args.args:
        return None
    for found in (_torch(source, backward), _jax(source, backward)):
        if found is not None:
            return found
    return None


def _torch(source: Source, backward: ast.FunctionDef) -> Saved | None:
    classes = (n for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef) and backward in n.body)
    beside = {n.name: n for c in classes for n in c.body if isinstance(n, ast.FunctionDef)}
    forward = beside.get("setup_context") or beside.get("forward")
    if backward.name != "backward" or forward is None or not forward.args.args:
        return None
    calls = [
        n
        for n in ast.walk(forward)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "save_for_backward"
    ]
    context = backward.args.args[0].arg
    taken = [
        n
        for n in ast.walk(backward)
        if isinstance(n, ast.Attribute) and n.attr in ("saved_tensors", "saved_variables")
    ]
    takes = _unpacked(backward, taken)
    numbered = {
        id(n.value)
        for n in ast.walk(backward)
        if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant)
    }
    told = takes is not None or all(id(n) in numbered for n in taken)
    starred = any(isinstance(a, ast.Starred) for call in calls for a in call.args)
    if not told or starred or len(calls) > 1 or any(not call.args for call in calls):
        return None
    return Saved(source, forward, context, calls[0] if calls else None, takes)


def _jax(source: Source, backward: ast.FunctionDef) -> Saved | None:
    pairs = [
        [getattr(a, "id", "") for a in n.args[:2]]
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "defvjp"
    ]
    named = [pair[0] for pair in pairs if len(pair) == 2 and pair[1] == backward.name]
    forwards = [n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef) and n.name in named]
    if len(forwards) != 1 or len(backward.args.args) < 2:
        return None
    returns = [n for n in own(forwards[0].body) if isinstance(n, ast.Return)]
    residual = backward.args.args[-2].arg
    taken = [n for n in ast.walk(backward) if isinstance(n, ast.Name) and n.id == residual]
    takes = _unpacked(backward, taken)
    both = returns[0].value if len(returns) == 1 else None
    kept = both.elts[1] if isinstance(both, ast.Tuple) and len(both.elts) == 2 else None
    if takes is None or len(taken) != 1 or not isinstance(kept, ast.Tuple) or not kept.elts:
        return None
    return Saved(source, forwards[0], "", kept, takes)


def _unpacked(backward: ast.FunctionDef, taken: list[Any]) -> ast.Tuple | ast.List | None:
    """Find the one assignment that gives names to all that was kept."""
    found = [
        s.targets[0]
        for s in backward.body
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and any(s.value is n for n in taken)
    ]
    if len(found) != 1 or len(taken) != 1 or not isinstance(found[0], (ast.Tuple, ast.List)):
        return None
    return None if any(isinstance(e, ast.Starred) for e in found[0].elts) else found[0]


def _reads(tree: ast.Module, names: Collection[str]) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            yield node
