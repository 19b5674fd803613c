"""Trees of code that share what is not changed, and the spans in which two of them differ.

An edit gives a new tree in which all other parts are the very nodes of the file. So any number of edits is
shown in the same way: the smallest nodes that differ, each written with the text of the nodes it kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from pullback.mend.patch import Span
from pullback.mend.source import Source

TOKENS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)


def bracketed(parent: ast.AST, child: ast.AST) -> bool:
    """Tell whether an expression needs brackets where it stands: as Python itself writes it."""
    if not isinstance(parent, (ast.expr, ast.keyword)):
        return False
    if isinstance(child, (ast.Tuple, ast.NamedExpr, ast.Yield)):  # Python writes these in brackets anywhere
        return not (isinstance(parent, ast.Subscript) and parent.slice is child)
    bare = ast.unparse(exchanged(parent, {id(child): ast.Name("__child__", ast.Load())}))
    return bare.replace("__child__", f"({ast.unparse(child)})") == ast.unparse(parent)


def children(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """List the nodes directly inside, with the field and the index in it (-1 for a lone one)."""
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            yield name, -1, value
        elif isinstance(value, list):
            for i, part in enumerate(value):
                if isinstance(part, ast.AST):
                    yield name, i, part


def size(node: ast.AST) -> int:
    """Count the nodes that say something."""
    return sum(not isinstance(part, (ast.expr_context, ast.operator, ast.unaryop)) for part in ast.walk(node))


def alike(a: ast.AST, b: ast.AST) -> bool:
    """Tell whether two trees multiply, divide and add the same, in whatever order."""
    return _ordered(a) == _ordered(b)


def _ordered(node: Any) -> str:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        terms = _terms(node)
        if len(set(terms)) > 1:
            return f"Add({', '.join(sorted(terms))})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.Div)):
        number, over, under = _factors(node)
        return f"Mult({number:.9g}, {', '.join(sorted(over))} / {', '.join(sorted(under))})"
    if not isinstance(node, ast.AST):
        return repr([_ordered(part) for part in node]) if isinstance(node, list) else repr(node)
    return f"{type(node).__name__}({', '.join(_ordered(getattr(node, f, None)) for f in node._fields)})"


def _terms(node: ast.expr) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _terms(node.left) + _terms(node.right)
    return [_ordered(node)]


def _factors(node: ast.expr) -> tuple[float, list[str], list[str]]:
    """Give the number in a product, and what else is multiplied and divided by."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        a, over, under = _factors(node.left)
        b, more, less = _factors(node.right)
        if isinstance(node.op, ast.Mult):
            return a * b, over + more, under + less
        return (a / b, over + less, under + more) if b else (1.0, [ast.dump(node)], [])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and len(set(_terms(node))) == 1:
        return float(len(_terms(node))), _terms(node)[:1], []
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value), [], []  # type: ignore[arg-type]
    return 1.0, [_ordered(node)], []


def exchanged(node: Any, new: Mapping[int, ast.AST]) -> Any:
    """Give a tree with other nodes in the places of some, told by identity; the rest is shared."""
    if id(node) in new:
        return new[id(node)]
    changed: dict[str, Any] = {}
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            other = exchanged(value, new)
            if other is not value:
                changed[name] = other
        elif isinstance(value, list):
            parts = [exchanged(part, new) if isinstance(part, ast.AST) else part for part in value]
            if any(a is not b for a, b in zip(parts, value)):
                changed[name] = parts
    if not changed:
        return node
    return _with(node, changed)


def _with(node: Any, changed: Mapping[str, Any]) -> Any:
    """Give a node with other fields."""
    fields = {name: getattr(node, name, None) for name in node._fields}
    made = ast.copy_location(type(node)(**{**fields, **changed}), node)
    if hasattr(node, "inserted"):
        made.inserted = True
    return made


def inserted(node: ast.FunctionDef, at: int, statement: ast.stmt) -> ast.FunctionDef:
    """Give a function with one more statement, before that of a number."""
    statement.inserted = True  # type: ignore[attr-defined]  # what tells it from one that was changed
    made: ast.FunctionDef = _with(node, {"body": [*node.body[:at], statement, *node.body[at:]]})
    return made


def differences(old: ast.AST, new: ast.AST, parent: ast.AST | None = None) -> Iterator[Any]:
    """List the smallest parts that differ: the old node, the new one, and what that stands in."""
    if old is new:
        return
    if isinstance(old, ast.FunctionDef) and isinstance(new, ast.FunctionDef):
        before = [(i, part) for i, part in enumerate(new.body) if hasattr(part, "inserted")]
        for n, (i, part) in enumerate(before):
            yield old.body[i - n], part, new
        new = _with(new, {"body": [part for part in new.body if not hasattr(part, "inserted")]})
    inner_old, inner_new = list(children(old)), list(children(new))
    same_kind = type(old) is type(new) and [c[:2] for c in inner_old] == [c[:2] for c in inner_new]
    same_shape = same_kind and all(
        getattr(old, f, None) == getattr(new, f, None)
        for f in old._fields
        if not isinstance(getattr(old, f, None), (ast.AST, list))
    )
    same_shape = same_shape and all(
        type(a) is type(b) for (*_, a), (*_, b) in zip(inner_old, inner_new) if isinstance(a, TOKENS)
    )
    changed = [
        (a, b) for a, b in zip(inner_old, inner_new) if a[2] is not b[2] and not isinstance(a[2], TOKENS)
    ]
    if same_shape and changed and not isinstance(old, ast.JoinedStr):
        for (*_, a), (*_, b) in changed:
            yield from differences(a, b, new)
    elif not same_shape or ast.dump(old) != ast.dump(new):
        yield old, new, parent


def rendered(node: ast.AST, source: Source, known: set[int]) -> str:
    """Write a node, with the text of the file for what was there before."""
    if id(node) in known:
        return source.segment(node)
    held: dict[str, str] = {}

    def hollow(part: Any) -> Any:
        if not isinstance(part, ast.AST):
            return part
        fields: dict[str, Any] = {}
        for name in part._fields:
            value = getattr(part, name, None)
            fields[name] = [put(v, part) for v in value] if isinstance(value, list) else put(value, part)
        return type(part)(**fields)

    def put(value: Any, parent: ast.AST) -> Any:
        if not isinstance(value, ast.expr) or id(value) not in known:
            return hollow(value)
        text = source.segment(value)
        brackets = bracketed(parent, value) and not text.startswith("(")
        if isinstance(value, ast.Tuple) and text.startswith("("):
            brackets = False
        mark = f"__kept{len(held)}__"
        held[mark] = f"({text})" if brackets or _splits(value, text) else text
        return ast.Name(mark, ast.Load())

    text = ast.unparse(ast.fix_missing_locations(hollow(node)))
    for mark, kept in held.items():
        text = text.replace(mark, kept)
    return text


def _splits(node: ast.AST, text: str) -> bool:
    """Tell whether a text has a newline that its own brackets do not hold."""
    return "\n" in text and isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp))


def spans(old: ast.AST, new: ast.AST, source: Source) -> tuple[Span, ...]:
    """Give the spans of the file's text that turn one tree into the other."""
    known = {id(node) for node in ast.walk(old) if hasattr(node, "lineno")}
    found = []
    for before, after, parent in differences(old, new):
        text = rendered(after, source, known)
        start, stop = source.span(before)
        if hasattr(after, "inserted"):
            found.append(Span(start, start, f"{text}{source.newline}{source.indent(before)}"))
            continue
        if isinstance(after, ast.Tuple) and isinstance(before, ast.Tuple) and source.text[start] != "(":
            text = text.removeprefix("(").removesuffix(")")
        held = source.text[:start].rstrip().endswith("(") and source.text[stop:].lstrip().startswith(")")
        loose = parent is not None and bracketed(parent, after)
        if (loose or _splits(after, text)) and not (held and isinstance(parent, (ast.BinOp, ast.UnaryOp))):
            text = f"({text})"
        found.append(Span(start, stop, text))
    return tuple(sorted(found, key=lambda span: span.start))
