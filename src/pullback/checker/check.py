"""The entry: what a user asks of the checker."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from pullback import configuration
from pullback.checker.finding import Report
from pullback.checker.inquiry import check_call
from pullback.checker.settings import MEND, Settings
from pullback.errors import DefinitionError, OptionError
from pullback.mend.suggest import mended
from pullback.options import require_number


def check(
    f: Callable[..., Any],
    *args: Any,
    seed: int | None = None,
    order: int = 2,
    rtol: float | None = None,
    probes: Sequence[str] | None = None,
    own_points: bool = True,
    xla: bool = True,
    export: bool = True,
    domain: Any = None,
    budget: float = Settings.budget,
    pictures: bool = False,
    mend: bool = False,
    mend_budget: float = MEND,
    **kwargs: Any,
) -> Report:
    """Check the gradient of any differentiable callable at example arguments.

    It need not know of pullback: a rule of a framework's own, a layer, a loss and a plain function are
    checked alike. The report says whether the gradient is right, and if not, which inputs, where, and why.

    Args:
        f: The callable.
        args: Its arguments; tensors and arrays among them are its inputs.
        kwargs: Its arguments by name. Those named below are the checker's: give a function that has one of
            them by `functools.partial(f, seed=3)`.
        seed: Fixes the points and directions that are drawn; else the configuration does, if there is one.
        order: The highest derivative that is tested, 1 or 2.
        rtol: Loosens what counts as equal; a rule may say it of itself.
        probes: The names of the questions to ask; all of them if not given.
        own_points: Whether to look at other points than the arguments, too.
        xla: Whether slow compilers (XLA, torch.compile) are among the capabilities.
        export: Whether the export is.
        domain: Where the function means something: `(low, high)`, `{"x": (low, high)}`, or a function of the
            inputs that tells whether they are inside. Nothing outside is asked of it.
        budget: The CPU seconds that it may take. What is not asked by then is said; a body that never
            returns at a point of the checker's own is left, and what was proven at the given one stays.
        pictures: Whether to add what a notebook shows of the report: pictures, and the source.
        mend: Whether to search an edit of the source that makes a wrong rule right: `report.patch`.
        mend_budget: The CPU seconds that the search may take.

    Example:
        >>> import pullback as pb, tensorflow as tf
        >>> pb.check(tf.nn.softplus, tf.constant([0.3, -1.2]), seed=0).verdict
        'right'

    Do not use it inside a training step: it runs the function many times. In a test, `pb.testing` says it in
    one line.
    """
    if not callable(f):
        raise DefinitionError.about(
            "check",
            found=f"it was given a {type(f).__name__}",
            expected="a function, a rule, a layer or a loss, and then its arguments",
            fix="pb.check(f, x)",
        )
    if order not in (1, 2):
        raise OptionError.about(
            "check",
            found=f"order={order!r}",
            expected="1 or 2, the highest derivative that is tested",
            why="higher ones would be passed without a look",
            fix="order=2, on the gradient of the function",
        )
    require_number("check", "budget", budget, least=0, fix="budget=60", above=True)
    require_number("check", "mend_budget", mend_budget, least=0, fix="mend_budget=10", above=True)
    settings = Settings(
        seed=chosen(seed),
        order=order,
        rtol=rtol,
        probes=None if probes is None else tuple(probes),
        own_points=own_points,
        xla=xla,
        export=export,
        budget=budget,
        pictures=pictures,
        mend=mend_budget if mend else 0.0,
    )
    report = check_call(f, args, kwargs, settings, domain)
    return mended(report, f, args, kwargs, settings, domain=domain)


def chosen(seed: int | None) -> int:
    """Give the seed: the one that was asked for, that of the configuration, or any."""
    if seed is None:
        seed = configuration.current().seed
    return secrets.randbelow(2**31) if seed is None else seed
