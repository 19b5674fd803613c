"""Checking what was recorded: one entry per rule and signature.

Every rule ends in an entry: one that cannot be run at its own values is undecided, and says why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import hosts, tree
from pullback.checker.budget import Budget
from pullback.checker.finding import Finding, Report
from pullback.checker.inquiry import check_subject
from pullback.checker.settings import Settings
from pullback.example import examples_of
from pullback.mend.suggest import mended
from pullback.record import frameworks
from pullback.record.asking import call_of
from pullback.record.frameworks import FRAMEWORKS
from pullback.record.holding import CHANGING, may_change
from pullback.record.sample import Recorded, Sample
from pullback.record.values import filled, like_data, tried
from pullback.report.entry import NOT_RECORDED, NOT_RUN, Entry
from pullback.view import subject_of
from pullback.view.subject import KnownAs


class NoInputsError(Exception):
    """No arguments were found with which a function can be called."""


RAISES, STATEFUL = "pullback-raises", "stateful-forward"
# Kinds of rules whose gradients are listened to, wherever they are asked for.
HEARD = ("jax.custom_gradient", "jax.custom_vjp", "tf.custom_gradient", "torch.autograd.Function")
Told = Callable[[Entry], None]
Filled = Callable[[Sample, np.random.Generator], Iterator[Sample]]
Searching = Callable[[], contextlib.AbstractContextManager[None]]


def checked(
    rule: Recorded,
    *,
    target: str,
    settings: Settings,
    told: Told = lambda entry: None,
    searching: Searching = contextlib.nullcontext,
) -> Iterator[Entry]:
    """Check a rule at every call kept of it; `told` hears what is known of one before it is done.

    An edit is searched once a rule, at the first call where it is wrong, in a block of `searching`.
    """
    reason = rule.said().skip
    if reason:
        report = unchecked(rule, reason, settings, reason="skipped")
        yield Entry(report, target, rule.path, rule.line, "", rule.calls, rule.qualified, "skipped")
        return
    samples = list(rule.samples.values())
    budget = Budget(settings.budget)
    for i, sample in enumerate(samples):
        share = (budget.limit - budget.seconds) / (len(samples) - i)
        allowed = replace(settings, budget=max(share, 1e-3))
        entry = entry_of(rule, sample, target=target, settings=allowed, told=told, searching=searching)
        if entry.report.mending is not None:
            settings = replace(settings, mend=0.0)
            budget.limit += entry.report.mending.seconds  # the search has one of its own
        yield entry
    for why, count in rule.lost.items():
        calls = "a call" if count == 1 else f"{count} calls"
        report = unchecked(rule, f"{calls} of it could not be recorded: {why}", settings, reason=NOT_RECORDED)
        yield Entry(report, target, rule.path, rule.line, "", rule.calls, rule.qualified)


def entry_of(
    rule: Recorded,
    sample: Sample,
    *,
    target: str,
    settings: Settings,
    told: Told = lambda entry: None,
    searching: Searching = contextlib.nullcontext,
) -> Entry:
    """Check a rule at one call."""
    described, sample = sample.describe(), rule.asked(sample)
    rule = replace(rule, function=sample.function or rule.function)  # the closure that saw these values

    def entry(report: Report) -> Entry:
        named = replace(report, name=rule.shown or rule.name)
        return Entry(named, target, rule.path, rule.line, described, rule.calls, rule.qualified)

    def heard(report: Report) -> None:
        if not by_itself(rule, sample, report):
            told(entry(report))

    try:
        why = "it was only traced, and no values were found at which it works"
        for made in [sample] if sample.has_values else made_up(rule, sample, settings):
            report = report_of(rule, made, settings, heard, searching)
            unfair = by_itself(rule, sample, report)
            if not unfair:
                break
            why = unfair if sample.has_values else why
        else:
            raise NoInputsError(why)
        others = made_up(rule, sample, settings, like_data) if report.verdict == "wrong" else ()
        for made in others:
            found = report_of(rule, made, settings, heard, searching)
            if found.verdict == "right":  # of what is no data there, nothing is said
                report = found
                break
    except Exception as error:  # a user's function may fail in any way it likes
        report = unchecked(rule, _sentence(error), settings)
    return entry(report)


def made_up(rule: Recorded, sample: Sample, settings: Settings, kinds: Filled = filled) -> Iterator[Sample]:
    """Give a call that was only traced values with which the rule works."""
    candidates = () if sample.has_values else kinds(sample, settings.rng(90))
    return (made for made in candidates if works(rule.function, made))


def by_itself(rule: Recorded, sample: Sample, report: Report) -> str:
    """Say why a failure tells nothing of a rule: it comes of calling by itself what the program did not.

    A gradient that raises here and did not there lacks what the program had: other values, or what another
    call left in an object. And whoever never asks for a gradient may make the forward as it likes.
    """
    raised = next((f for f in report.failures if f.probe == "contract" and f.cause == RAISES), None)
    if raised is not None and rule.used:
        shared = [kind for kind in sample.emptied() if issubclass(kind, CHANGING)]
        shared += [type(leaf) for leaf in sample.leaves if may_change(leaf)]
        if not sample.has_values or shared:
            left = f", with what others leave in its `{shared[0].__name__}`" if shared else ""
            return f"{raised.sentence}; in the program it does not{left}"
    stateful = any(f.cause == STATEFUL for f in report.failures)
    if stateful and not rule.used and rule.kind in HEARD:
        return "its value changes from call to call, and the program asks for no gradient of it"
    return ""


def report_of(
    rule: Recorded,
    sample: Sample,
    settings: Settings,
    told: Callable[[Report], None] = lambda report: None,
    searching: Searching = contextlib.nullcontext,
) -> Report:
    """Run the checker, and the search of an edit where that is asked for."""
    framework = FRAMEWORKS.get(sample.framework)
    with call_of(sample, framework, frameworks.thawed(sample)) as (args, kwargs, asked):
        asked = replace(asked, used=rule.used)
        if sample.framework:
            host = hosts.host(sample.framework)
        else:
            host = hosts.among(tree.flatten([args, kwargs])[0], rule.function, rule.name)
        function, values = rule.function, args
        if rule.fixed:
            function, values = moving(rule, args)
        subject = replace(
            subject_of(host, function, values, kwargs, rule.said(), asked),
            name=rule.name,
            known_as=KnownAs(rule.declared_as, rule.kind, rule.name),
        )
        if rule.kind != "tf.custom_gradient":  # the function may be a framework's, the rule made of it is not
            subject = replace(subject, is_builtin=False)
        if framework is not None and not framework.compiles():
            # Loading a compiler that the program does not use would cost more than all the rest.
            settings = replace(settings, xla=False, export=False)
        report = check_subject(subject, settings, told)
        told(report)  # whatever the search does
        return mended(report, rule.function, args, kwargs, settings, searching)


def moving(rule: Recorded, args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Give a rule as a function of the arguments that it differentiates, and those arguments."""
    places = [i for i in range(len(args)) if i not in rule.fixed]

    def function(*values: Any) -> Any:
        given = dict(zip(places, values))
        return rule.function(*(given.get(i, value) for i, value in enumerate(args)))

    if rule.signature is not None:
        parameters = list(rule.signature.parameters.values())
        vars(function)["__signature__"] = rule.signature.replace(parameters=[parameters[i] for i in places])
    return function, tuple(args[i] for i in places)


def unchecked(rule: Recorded, sentence: str, settings: Settings, reason: str = NOT_RUN) -> Report:
    """Report that a rule could not be checked."""
    finding = Finding("run", "undecided", sentence, reason=reason)
    return Report(
        name=rule.shown or rule.name, verdict="undecided", findings=(finding,), resolution=None, oracle="",
        capabilities={}, seed=settings.seed,
    )  # fmt: skip


def with_inputs(rule: Recorded, settings: Settings) -> Recorded:
    """Give a rule that was never called its inputs: its examples, else the first that work."""
    rule.framework = rule.framework or frameworks.naming(rule.function)
    marked = _examples(rule)
    for given in marked:
        rule.keep(frameworks.sample(given, rule.framework), len(marked))
    if marked:
        return rule
    last: Exception | None = None
    for given in tried(rule.function, settings.rng(91), rule.signature):
        sample = frameworks.sample(given, rule.framework)
        try:
            if works(rule.function, sample, silent=False):
                rule.keep(sample, 1)
                return rule
        except Exception as error:
            last = error
    said = f" (the last attempt: {_sentence(last)})" if last is not None else ""
    raise NoInputsError(f"no inputs were found with which `{rule.name}` works{said}")


def works(function: Callable[..., Any], sample: Sample, *, silent: bool = True) -> bool:
    """Tell whether a call gives finite numbers."""
    args, kwargs = frameworks.thaw(sample)
    try:
        outputs, _ = tree.flatten(function(*args, **kwargs))
    except Exception:
        if silent:
            return False
        raise
    arrays = [
        a for a in map(frameworks.freeze, outputs) if isinstance(a, np.ndarray) and a.dtype.kind in "fcV"
    ]
    return bool(arrays) and all(np.isfinite(a.astype(np.complex128)).all() for a in arrays)


def _examples(rule: Recorded) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """List the examples given to a rule: the mark may stand on what was made, or on what the user wrote."""
    marked = (rule.function, rule.user, getattr(rule.user, "forward", None))
    return next((found for value in marked if (found := examples_of(value))), [])


def _sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    text = lines[0][:200] if lines else ""
    return text if isinstance(error, NoInputsError) else f"{type(error).__name__}: {text}"
