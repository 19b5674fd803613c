"""`with_gradient`: keep a function, and take its gradient from the output of another one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback import contract, outputs, takes
from pullback.cotangent import shown
from pullback.define import function_of, intent_of
from pullback.errors import GradSignatureError
from pullback.hosts.operation import Function, Tensor
from pullback.options import require_functions
from pullback.outputs import Outputs
from pullback.plan import Plan, plan
from pullback.replace.graft import Graft, made_of, values_of
from pullback.rule import Rule, name_of, rule_of, where_of
from pullback.typed import DefinedFunction, P, Y
from pullback.unconverted import unconverted


@unconverted
def with_gradient(
    f: Callable[P, Y], grad: Function, *, like: Function | None = None, differs: str | None = None
) -> DefinedFunction[P, Y]:
    """Keep a function as it is, and take its gradient from another function.

    Variables that `f` reads, such as a layer's weights, and tensors it closes over keep the gradients of
    automatic differentiation. Second order: derived, by differentiating `grad`. Forward mode: derived when
    `grad` is linear in `dy`, refused otherwise.

    Args:
        f: Any callable: a function, compiled or not, a layer or module, a function of a loaded model.
        grad: Gives one cotangent per tensor argument of `f`. It is handed what it names: first one cotangent
            per output, then arguments of `f` by their names, or all of them by position; `output`; and
            `variables`, if it gives the gradients of captured variables too: `return dx, [dv]`.
        like: The function whose derivative this gradient is, when it is not that of `f`.
        differs: Why the gradient is another one on purpose.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> def stable(dy, x, output):
        ...     return dy * (1 - tf.exp(-output))
        >>> log1pexp = pb.with_gradient(tf.math.softplus, stable)

    Do not use it for a function that you write yourself: `custom_gradient` shares what both halves compute.
    """
    require_functions("with_gradient", "pb.with_gradient(f, grad)", f=f, grad=grad)
    rule = rule_of(f, intent_of(where_of(f), like, differs))
    _refuse_argument(grad, 1, list(rule.signature.parameters), rule)  # known of every function: one output
    if any(parameter.name == "variables" for parameter in _parameters(grad)):
        return made_of(function_of(dataclasses.replace(rule, body=_body(f, grad, rule), bare=False)), f)

    def pull(graft: Graft, tensors: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
        sources, output = tensors[graft.count :], functools.partial(graft.output, tensors)
        # What reaches the values goes on to the variables of `f`, and to nothing else.
        return [*cotangents, *pulled(grad, graft.plan, graft.outputs, sources, cotangents, output)]

    def apply(plan: Plan, tensors: list[Tensor]) -> Any:
        form, values = values_of(plan, tensors)
        return Graft(plan, form, len(values), pull).applied(values, tensors)

    return made_of(function_of(rule, apply), f)


def _body(f: Function, grad: Function, rule: Rule) -> Function:
    """Make the body of a rule whose `grad` answers for the captured variables too."""

    def body(*args: Any, **kwargs: Any) -> Any:
        made, tensors = plan(rule, args, kwargs)
        returned = made.host.run(f, args, kwargs, rule.where)
        form, _ = outputs.of_values(returned, rule, made.host, tensors)

        def pull(*dys: Any, variables: Any = ()) -> Any:
            given, named = chosen(grad, made, tensors, form.arranged(dys), lambda: returned)
            got = _run(grad, made, given, {**named, "variables": variables}, len(dys))
            if got is None:
                contract.require_return(
                    grad, rule.where, "the cotangents, and a list for the variables", "dx, [dv]"
                )
            split = contract.split_variables(got, variables, made, grad)
            return split if variables else split[0]

        pull.__name__ = name_of(grad)
        return returned, pull

    body.__wrapped__ = f  # type: ignore[attr-defined]
    return body


def pulled(
    grad: Function,
    plan: Plan,
    form: Outputs,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    output: Callable[[], Any],
) -> list[Tensor | None]:
    """Run a `grad` that is handed what it names; give one cotangent, or None, per tensor of the call."""
    args, kwargs = chosen(grad, plan, inputs, form.arranged(cotangents), output)
    returned = _run(grad, plan, args, kwargs, len(cotangents))
    return contract.settle(returned, plan, inputs, (), grad).inputs


def _run(grad: Function, plan: Plan, args: list[Any], kwargs: dict[str, Any], count: int) -> Any:
    """Call a `grad` with what was chosen; one that shows no signature may not take it."""

    def refusal(found: str) -> GradSignatureError:
        return _signature_error(
            grad, count, [slot.name for slot in plan.slots], plan.rule, "cotangent", found
        )

    return takes.run(plan.host, grad, args, kwargs, plan.where, refusal)


def chosen(
    grad: Function,
    plan: Plan,
    inputs: Sequence[Tensor],
    dys: list[Any],
    output: Callable[[], Any],
    word: str = "cotangent",
) -> tuple[list[Any], dict[str, Any]]:
    """Give a function what must come first, which `word` names, and then what its signature names."""
    args, kwargs = plan.arguments(inputs)
    names = [slot.name for slot in plan.slots]
    known = {**dict(zip((n for n in names if n not in kwargs), args)), **kwargs}
    _refuse_argument(grad, len(dys), list(known), plan.rule, word)
    parameters = _parameters(grad)
    wanted: dict[str, Any] = {}
    special = {"output", "variables"} - set(known)  # an argument of that name is meant by it
    if "output" in special and any(p.name == "output" for p in parameters):
        wanted["output"] = output()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    positions = [p for p in positional if p.name not in special]
    wanted |= {p.name: known[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in known}
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return [*dys, *args], wanted | {n: v for n, v in kwargs.items() if n in wanted}
    extra = positions[len(dys) :]
    if len(positions) >= len(dys) and all(p.name in known for p in extra):
        return [*dys, *(known[p.name] for p in extra)], wanted
    if len(extra) == len(args) + len(kwargs):
        return [*dys, *args, *kwargs.values()], wanted
    raise _signature_error(
        grad, len(dys), list(known), plan.rule, word, f"{shown(grad)} takes ({_listed(parameters)})"
    )


def _refuse_argument(
    grad: Function, count: int, arguments: list[str], rule: Rule, word: str = "cotangent"
) -> None:
    """Refuse a function that names an argument where it is handed a cotangent: `dy` was forgotten."""
    kinds = {p.kind for p in rule.signature.parameters.values()}
    names = {"output", "variables", *arguments}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.POSITIONAL_ONLY in kinds:
        names |= {"x", "input"}  # what users call the argument of a function whose names they do not see
    positions = [p for p in _parameters(grad) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for parameter in positions[:count]:
        if parameter.name in names:
            raise _signature_error(
                grad,
                count,
                arguments,
                rule,
                word,
                f"{shown(grad)} takes ({_listed(positions)}): `{parameter.name}` would be handed the {word}",
                f"a {word} that is taken for an argument gives a wrong number without a word",
            )


def _signature_error(
    grad: Function, count: int, arguments: list[str], rule: Rule, word: str, found: str, why: str = ""
) -> GradSignatureError:
    """Say what a function must take: cotangents or tangents first, then arguments."""
    first = "dy" if word == "cotangent" else "dx"
    if first in arguments:
        first = word
    firsts = [first] if count == 1 else [f"{first}{i}" for i in range(count)]
    named = [name if name.isidentifier() else f"*{name.partition('[')[0]}" for name in arguments]
    listed = ", ".join([*firsts, *dict.fromkeys(named)])
    name = name_of(grad)
    return GradSignatureError.about(
        rule.where,
        found=found,
        expected=f"{count} {word}{'' if count == 1 else 's'} first, then arguments of the function: "
        f"{', '.join(f'`{name}`' for name in arguments)}",
        why=why,
        fix=f"lambda {listed}: …"
        if name == "<lambda>"
        else f"def {name}({listed}{'' if '*' in listed else ', *'}, output):",
    )


def _listed(parameters: Sequence[inspect.Parameter]) -> str:
    return ", ".join(p.name for p in parameters)


def _parameters(grad: Function) -> list[inspect.Parameter]:
    try:
        return list(takes.signature(grad).parameters.values())
    except (TypeError, ValueError):  # a builtin: let it take what it can
        return list(inspect.signature(lambda *everything: None).parameters.values())
