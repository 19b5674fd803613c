"""What is said of a rule, put together: by its maker, an example, a comment, `pb.declare`, the configuration.

This is the one place where a declaration is looked for, whoever checks. What stands later in that list
counts, key by key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pullback import configuration
from pullback.comment import commented
from pullback.declare import NOTHING, Declaration, Named, declared
from pullback.domain import Domain
from pullback.example import domain_of
from pullback.hosts.base import Met
from pullback.rule import Intent, Rule
from pullback.view.definition import Definition, location_of, qualified_name
from pullback.view.subject import KnownAs

if TYPE_CHECKING:
    from pullback.view.adapter import Adapter


def said_of(
    function: Any,
    user: Any,
    *,
    name: str,
    location: tuple[str, int],
    maker: Intent | None = None,
    facts: configuration.Facts = (),
) -> Declaration:
    """Give what is said of a rule: what is called, what the user wrote, its qualified name, and where."""
    found = Declaration(intent=maker) if maker is not None else NOTHING
    for said in (
        Declaration(domain=_domain(function, user, getattr(user, "forward", None))),
        commented(*location),
        declared(function, user),
        configuration.current().declaration(name, facts),
    ):
        if said is not NOTHING:
            found = said.over(found)
    if found.intent is not None and isinstance(found.intent.function, Named):
        # Now: where it is called, an exception would be taken for one of the function's own.
        found = replace(found, intent=replace(found.intent, function=found.intent.function.function))
    return found


def said_of_definition(known: Definition, called: Any) -> Declaration:
    """Give what is said of something that was recognised."""
    return said_of(called, known.user, name=known.qualified, location=known.location, maker=known.intent)


def said_of_callable(function: Any, written: Any) -> Declaration:
    """Give what is said of any callable."""
    location = location_of(written)
    return said_of(function, written, name=qualified_name(written, location[0]), location=location)


def said_of_adapted(adapter: Adapter) -> Declaration:
    """Give what is said of the callable of an adapter."""
    if adapter.native is not None:
        return said_of_definition(adapter.native, adapter.function)
    return said_of_callable(adapter.function, _user(adapter))


def known_as(adapter: Adapter) -> KnownAs:
    """Say how a declaration names the callable of an adapter."""
    if adapter.native is not None:
        return KnownAs(adapter.native.qualified, adapter.native.kind, adapter.native.name)
    user = _user(adapter)
    kind = "pullback" if adapter.rule is not None else ""
    return KnownAs(qualified_name(user, location_of(user)[0]), kind, adapter.name)


def _user(adapter: Adapter) -> Any:
    return adapter.function if adapter.rule is not None else adapter.definition()


def claimed(met: Met) -> Intent:
    """Give the claim of a rule that was met inside a function: what is said from outside, or its own."""
    if isinstance(met.known, Definition):
        said = said_of_definition(met.known, getattr(met.known, "called", met.known.user))
    elif isinstance(met.known, Rule):
        said = said_of_callable(met.known, met.known.body)
    else:
        said = NOTHING
    return met.intent if said.intent is None else said.intent


def _domain(*marked: Any) -> Domain | None:
    return next((domain for thing in marked if (domain := domain_of(thing)) is not None), None)
