"""The rule of a callable, as the checker needs it: run as its body, judged by its claim, called by hand."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback import contract, outputs, tree
from pullback.application import Application, RulePullback
from pullback.declare import Declaration
from pullback.define import function_of
from pullback.hosts.base import Met
from pullback.hosts.operation import Tensor
from pullback.plan import Plan, plan
from pullback.rule import EXACT, Intent, Rule, signature_of
from pullback.tangent import settle
from pullback.view import unasked
from pullback.view.declared import claimed
from pullback.view.native import ByHand, Opening
from pullback.view.subject import Array, Arrays, Cotangents, Opened, Pullback
from pullback.wrapping import anew

if TYPE_CHECKING:
    from pullback.view.adapter import Adapter

Function = Callable[..., Any]
How = Callable[[Function], Function]  # gives the function that is run in the place of the callable itself


class Bodies(NamedTuple):
    """How every rule is run as its plain body, and the rules that were met.

    A surrogate inside of what says nothing of itself is no rule to pass over: its gradient is what the
    function has there, on purpose. It stays, and what is around it is still to be compared.
    """

    how: How | None
    met: Sequence[Met] = ()
    meant: Met | None = None  # the first that stays


def bodies(adapter: Adapter) -> Bodies:
    """Give the way to run every rule as its plain body."""
    rule = adapter.rule
    if rule is not None and _fits(rule, adapter):
        return Bodies(lambda _: functools.partial(_outputs, rule), [Met(rule.name, rule.intent, rule)])
    try:
        with adapter.surroundings(), adapter.natives.bypassed() as met:
            adapter.tried(adapter.run())
    except Exception:  # the function itself is at fault, or cannot run at its example
        return Bodies(None)
    says_nothing = rule is None and adapter.said.intent is None
    meant = next(filter(_is_meant, met), None) if says_nothing else None
    keeps = None if meant is None else _is_meant

    def without_rules(function: Function) -> Function:
        def run(*args: Any, **kwargs: Any) -> Any:
            with adapter.natives.bypassed(keeps):
                return function(*args, **kwargs)

        return run

    return Bodies(without_rules if met else None, met, meant)


def _is_meant(met: Met) -> bool:
    return claimed(met).kind != "exact"


def _outputs(rule: Rule, *args: Any, **kwargs: Any) -> Any:
    """Run the body of a rule for its outputs; a replacement returns no `grad`."""
    returned = rule.body(*args, **kwargs)
    return returned if rule.bare else outputs.split(returned, rule)[0]


def _fits(rule: Rule, adapter: Adapter) -> bool:
    """Tell whether the body is what the callable runs, and takes what that takes, and not a part of it.

    An object does something of its own around the rule: a loss reduces and weighs.
    """
    if not inspect.isroutine(adapter.function):
        return False
    try:
        rule.signature.bind(*adapter.arguments.args, **adapter.arguments.kwargs)
    except TypeError:
        return False
    return True


def claim(rule: Rule | None, meant: Met | None, said: Declaration) -> Intent:
    """Say what the gradient claims to be: what is declared, what its rule says, or what those inside make."""
    if said.intent is not None:
        return said.intent
    if rule is not None:
        return rule.intent
    if meant is None:
        return EXACT
    return Intent("differs", reason=f"it uses {meant.name}, whose gradient is {claimed(meant)}")


def by_hand(adapter: Adapter) -> Pullback | None:
    """Give the user's pullback called by hand, when the function itself is a rule, native or not."""
    run = None if adapter.parameters else _opening(adapter, adapter.native_pullback())
    if run is None:
        return None

    def pull(sources: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        grad, handed, lay = run(sources, given)
        return lay(adapter.host.run(grad, handed, {}, adapter.name))

    pull_at_once = adapter.as_program(pull)

    def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
        with adapter.surroundings():
            parts = pull_at_once(adapter.sources(inputs), adapter.constants(cotangents))
            return tuple(None if part is None else adapter.array(part) for part in parts)

    return pullback


def opened(adapter: Adapter) -> Callable[[Arrays, Arrays], Opened] | None:
    """Give the way to run a rule forward, and to leave its gradient to whoever asks."""
    native = None if adapter.native is None else adapter.native.opened()
    replaced = adapter.rule is not None and adapter.rule.bare
    return _opened(adapter, _through(adapter) if replaced else _opening(adapter, native))


def pushed(adapter: Adapter) -> Callable[[Arrays, Arrays], Opened] | None:
    """Give the same for the pushforward of a rule: the gradient that it makes, once it is transposed."""
    rule = adapter.rule
    if rule is None or rule.pushforward is None or rule.bare or not _fits(rule, adapter):
        return None
    return None if adapter.parameters or adapter.asked.built else _opened(adapter, _transposed(adapter, rule))


def pushes(adapter: Adapter) -> bool:
    """Tell whether somebody wrote forward mode beside the gradient."""
    rule = adapter.rule
    if rule is None:
        return adapter.native is not None and adapter.native.pushes
    return rule.pushforward is not None and not rule.bare


def _opened(
    adapter: Adapter, run: Callable[[Sequence[Any], Sequence[Any]], Opening] | None
) -> Callable[[Arrays, Arrays], Opened] | None:
    if run is None:
        return None

    def at(inputs: Arrays, cotangents: Arrays) -> Opened:
        with adapter.surroundings():
            sources = adapter.sources(inputs)
            grad, given, lay = run(sources, adapter.constants(cotangents))
        count = len(adapter.tensors)
        own = dict(zip(map(id, sources[count:]), inputs[count:]))  # variables, which have other values soon

        def laid(returned: Any) -> list[Any]:
            return list(lay(returned))

        def called(function: Function) -> Any:
            with adapter.surroundings(), adapter.host.stepwise(function):
                if own:
                    adapter.sources(inputs)
                return adapter.host.run(function, given, {}, adapter.name)

        def array(value: Any) -> Array:
            if id(value) in own:
                return own[id(value)]
            return value if isinstance(value, np.ndarray) else adapter.array(value)

        return Opened(grad, tuple(given), called, laid, array)

    return at


def _opening(
    adapter: Adapter, native: ByHand | None
) -> Callable[[Sequence[Any], Sequence[Any]], Opening] | None:
    rule = adapter.rule
    if rule is None:
        rule = Rule(adapter.function, adapter.name, adapter.signature() or signature_of(None))
    elif rule.bare or not _fits(rule, adapter):
        return None
    if adapter.asked.built or (adapter.rule is None and native is None):
        return None
    if adapter.parameters and adapter.rule is not None:
        return None

    def run(sources: Sequence[Any], given: Sequence[Any]) -> Opening:
        given = unasked.laid_out(adapter, sources, given)
        args, kwargs = adapter.arguments.filled(sources)
        made, tensors = plan(rule, tuple(args), kwargs)
        own = list(sources[len(adapter.tensors) :])  # variables that a native rule reads
        if adapter.rule is not None or native is None:
            grad, handed, laid = _pulled(made, tensors, given)
        else:
            grad, handed, by_argument = native(args, kwargs, given)
            if own:
                grad = functools.partial(grad, variables=own)

            def laid(returned: Any) -> list[Any]:
                by_input, by_variable = returned if own else (returned, ())
                return [*_laid(by_argument(by_input), made, tensors), *tree.flatten(list(by_variable))[0]]

        def lay(returned: Any) -> list[Any]:
            found = dict(zip(map(id, (*tensors, *own)), laid(returned)))
            return [found.get(id(x)) if d else None for x, d in zip(sources, adapter.differentiable)]

        return grad, handed, lay

    return run


def _through(adapter: Adapter) -> Callable[[Sequence[Any], Sequence[Any]], Opening] | None:
    """Give the gradient of a replacement as the framework takes it: the callable stands in its closure."""
    call = adapter.function
    if adapter.parameters or adapter.asked.built or not inspect.isfunction(call):
        return None
    if hasattr(call, "external"):
        return _outside(adapter, call)

    def opening(sources: Sequence[Any], given: Sequence[Any]) -> Opening:
        args, kwargs = adapter.arguments.filled(sources)
        call(*args, **kwargs)  # once, for who listens to the forward

        def pull(*cotangents: Any) -> Sequence[Any]:
            def run(moved: Sequence[Any]) -> list[Any]:
                args, kwargs = adapter.arguments.filled(moved)
                return unasked.kept(adapter.flat(call(*args, **kwargs)), adapter.loose)

            return adapter.vjp(run, sources, cotangents)

        return pull, given, functools.partial(_along_inputs, adapter)

    return opening


def _along_inputs(adapter: Adapter, returned: Any) -> list[Any]:
    """Lay what a pullback gave along all inputs, None for those that are not differentiated."""
    rest = iter(returned)
    return [next(rest) if moves else None for moves in adapter.differentiable]


def _transposed(adapter: Adapter, rule: Rule) -> Callable[[Sequence[Any], Sequence[Any]], Opening]:
    """Give the gradient that a pushforward makes; the function stands in its closure."""
    push: Any = rule.pushforward

    def opening(sources: Sequence[Any], given: Sequence[Any]) -> Opening:
        args, kwargs = adapter.arguments.filled(sources)
        made, tensors = plan(rule, tuple(args), kwargs)
        application = Application(made)
        values, _ = application.forward(tensors)  # for who listens, too
        named = {"output": application.outputs.filled(values)} if application.pushes_output else {}
        places = {id(x): n for n, x in enumerate(sources)}
        like = [adapter.array(x) for x in sources]
        some = adapter.sources(
            tuple(np.cos(np.arange(x.size)).reshape(x.shape).astype(x.dtype) for x in like)
        )

        def linear(tangents: Sequence[Any]) -> list[Any]:
            args, kwargs = made.arguments(tensors)
            along = [tangents[places[id(x)]] for x in tensors]
            moved = (slot.filled(along) for slot in made.moving)
            returned = made.host.run(push, [*moved, *args], {**kwargs, **named}, made.where)
            return settle(returned, application.outputs, rule, push, made.host)

        def pull(*cotangents: Any) -> Sequence[Any]:
            linear(some)  # once with numbers, for who listens
            return adapter.vjp(linear, some, cotangents)

        return pull, given, functools.partial(_along_inputs, adapter)

    return opening


def _outside(adapter: Adapter, call: Any) -> Callable[[Sequence[Any], Sequence[Any]], Opening]:
    """Give the gradient of an external function as it runs outside of the framework: on arrays."""

    def opening(sources: Sequence[Any], given: Sequence[Any]) -> Opening:
        args, kwargs = adapter.arguments.filled(sources)
        made, tensors = plan(call.rule, tuple(args), kwargs)
        moving = [id(x) for x in tensors if made.host.differentiable(x)]

        def lay(returned: Any) -> list[Any]:
            found = dict(zip(moving, returned))
            return [found.get(id(x)) if moves else None for x, moves in zip(sources, adapter.differentiable)]

        return anew.opening(call, made, tensors, adapter.array), [adapter.array(x) for x in given], lay

    return opening


def remade(adapter: Adapter, parts: Mapping[Any, Any]) -> Any:
    """Give the callable made of other functions in the places of these; None where that cannot be."""
    rule = adapter.rule
    if rule is None:
        return None if adapter.native is None else adapter.native.remade(parts)
    if hasattr(adapter.function, "external"):
        return anew.anew(adapter.function, lambda part: parts.get(part, part))
    if rule.bare:  # a replacement: what it does stands in the closure of the callable
        made = parts.get(adapter.function)
        if made is not None:
            made.rule = dataclasses.replace(rule)  # one that remembers nothing
        return made
    body = parts.get(rule.body)
    if body is None:
        return None
    push = parts.get(rule.pushforward, rule.pushforward)
    return function_of(dataclasses.replace(rule, body=body, pushforward=push, own=None))


def says_second(adapter: Adapter) -> bool:
    """Tell whether the rule says its own second order: `grad` returns `dx, gradgrad`."""
    rule = adapter.rule
    if rule is None or rule.bare or adapter.parameters or not _fits(rule, adapter):
        return False
    try:
        with adapter.surroundings():
            args, kwargs = adapter.arguments.filled(adapter.constants(adapter.inputs))
            made, tensors = plan(rule, tuple(args), kwargs)
            values, pull = Application(made).forward(tensors)
            given = [value if made.host.differentiable(value) else None for value in values]
            return pull(given).second is not None
    except Exception:  # a rule that fails says nothing
        return False


def _pulled(made: Plan, tensors: list[Tensor], cotangents: Sequence[Tensor]) -> Opening:
    """Run a rule: its `grad`, what it is handed, and how what that returns lies along the tensors."""
    values, pull = Application(made).forward(tensors)
    rest = iter(cotangents)
    assert isinstance(pull, RulePullback)
    return pull.opened([next(rest) if made.host.differentiable(value) else None for value in values])


def _laid(given: Any, made: Plan, tensors: Sequence[Tensor]) -> list[Any]:
    """Lay what a native rule returned along the tensors: one by one, as TensorFlow has it, or by argument."""
    leaves = tree.flatten(given)[0]
    if len(leaves) == made.count and not isinstance(given, Mapping):
        return leaves
    return contract.laid(given, made, tensors, made.rule.body)[0]
