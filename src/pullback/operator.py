"""`operator`: a function with a gradient, as an operator of `torch.library`."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pullback import hosts
from pullback.errors import DefinitionError, HostError
from pullback.example import examples_of
from pullback.hosts.operation import Function
from pullback.options import require_functions
from pullback.rule import Rule, where_of


def operator(f: Function, name: str, *, outputs: int = 1) -> Any:
    """Register a function with a gradient as an operator of PyTorch.

    `torch.export` keeps an operator whole, with its gradient, and `torch.compile` does not look into it.
    PyTorch only. Second order: derived. The body is run again for the gradient.

    Args:
        f: A rule, or a replacement. Its arguments are tensors, numbers, bools and strings: by their
            annotations, their defaults, or its `example`. What is not said is a tensor.
        name: The name of the operator, `"library::name"`.
        outputs: How many tensors it returns.

    Example:
        >>> import pullback as pb, torch
        >>> @pb.custom_gradient
        ... def twice(x):
        ...     return 2 * x, lambda dy: 2 * dy
        >>> op = pb.operator(twice, "docs::twice")
        >>> op(torch.ones(2))
        tensor([2., 2.])

    Do not use it where nothing is exported: `torch.compile` sees more of the function itself.
    """
    fix = 'pb.operator(f, "mylib::f")'
    require_functions("operator", fix, f=f)
    rule = getattr(f, "rule", None)
    where = rule.where if isinstance(rule, Rule) else where_of(f)
    if not isinstance(name, str) or not re.fullmatch(r"\w+::\w+", name):
        raise DefinitionError.about(
            where, found=f"name={name!r}", expected='a name of torch.library, "library::name"', fix=fix
        )
    if type(outputs) is not int or outputs < 1:
        raise DefinitionError.about(
            where, found=f"outputs={outputs!r}", expected="how many tensors it returns: 1 or more", fix=fix
        )
    named = hosts.naming([f])
    known = [named] if named is not None else hosts.loaded()
    registered = next((host.operator for host in known if hasattr(host, "operator")), None)
    if registered is None:
        raise HostError.about(
            where,
            found=f"its body names {named.name}" if named is not None else "PyTorch is not imported",
            expected="a function of PyTorch: other frameworks have no operators of torch.library",
            fix="xp = pb.namespace(x), in a program that imports torch",
        )
    example: dict[str, Any] = {}
    for args, kwargs in examples_of(f)[:1]:
        example = dict(inspect.signature(f).bind(*args, **kwargs).arguments)
    return registered(f, name, outputs, example, where)
