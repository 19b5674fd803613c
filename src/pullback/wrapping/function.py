"""An external function: what the user gave, and what follows from it.

One object a decorated function. It finds the site of a call, and for the site what its derivative is
computed by, in the order of what the user said: a pullback, a pushforward, a Jacobian, partial derivatives,
a difference scheme. It can be sent to another process, and runs there on its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from pullback.errors import ExternalGradientError, ForwardModeError
from pullback.hosts.operation import Tensor
from pullback.plan import Plan
from pullback.rule import Intent, Rule
from pullback.wrapping import derivatives, differences, same
from pullback.wrapping.cache import cache_of
from pullback.wrapping.executors import Pool, Runner
from pullback.wrapping.shapes import Layout
from pullback.wrapping.site import Site, statics
from pullback.wrapping.task import Function, Task

DIFFERENCES = 1e-6  # what any difference in double precision reaches
_SITES = 128  # kinds of calls that are remembered


@dataclass
class Options:
    """What the decorator was given."""

    output: Any
    scheme: differences.Scheme | None
    second: differences.Scheme | None
    sparsity: Any
    batched: bool
    executor: Any
    timeout: float | None
    retries: int
    cache: int
    allow_nan: bool
    cast: bool


class External:
    """Hold a user's function, what is known of its derivative, and how it is run."""

    rule: Rule  # of the decorated function, as it is now

    def __init__(self, function: Function, roles: dict[str, Function], options: Options, where: str) -> None:
        self.roles = {"function": function} | roles
        self.options = options
        self.where = where
        self.cache = cache_of(function, options.cache, where)
        self.runner = Runner(Pool(options.executor, where), options.retries, where)
        self._sites: OrderedDict[Any, Site] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"roles": self.roles, "options": replace(self.options, executor=None), "where": self.where}

    def __setstate__(self, state: dict[str, Any]) -> None:
        roles = dict(state["roles"])
        External.__init__(self, roles.pop("function"), roles, state["options"], state["where"])

    # ── the user's functions ─────────────────────────────────────────────────────────────────────────────

    def role(self, name: str) -> Function:
        """Give the user's function of a role."""
        return self.roles[name]

    def task(self, role: str) -> Task:
        """Give it ready to be run anywhere."""
        function = self.roles["function"]
        name = getattr(function, "__qualname__", "")
        address = (getattr(function, "__module__", None) or "", name, role)
        return Task(self.roles[role], self.options.timeout, address if name and "<" not in name else None)

    def take(self, role: str, function: Function) -> None:
        """Add what the user says of the derivative."""
        self.roles[role] = function
        with self._lock:
            self._sites.clear()

    @property
    def has_gradient(self) -> bool:
        """Whether a derivative was given in any way."""
        return len(self.roles) > 1 or self.options.scheme is not None

    @property
    def pull_is_external(self) -> bool:
        """Whether the pullback is an external function, with a derivative of its own."""
        return hasattr(self.roles.get("pullback"), "external")

    @property
    def order(self) -> int | None:
        """1 where a second derivative is refused."""
        return None if self.pull_is_external or self.options.second is not None else 1

    def intent(self, declared: Intent) -> Intent:
        """Say what the gradient claims to be: an estimate is not the derivative."""
        exact = any(role in self.roles for role in ("pullback", "pushforward", "jacobian", "partials"))
        scheme = self.options.scheme
        if declared.kind == "exact" and scheme is not None and scheme.name == "spsa" and not exact:
            return Intent(
                "differs", reason=f"an estimate by simultaneous perturbation, {scheme.samples} samples"
            )
        return declared

    @property
    def accuracy(self) -> float | None:
        """Tell how exact the derivatives claim to be, where differences are among them."""
        schemes = [s for s in (self.options.scheme, self.options.second) if s and s.name != "complex-step"]
        coarse = [8 * (s.step if s.name == "forward" else s.step**2) for s in schemes if s.step is not None]
        return max([DIFFERENCES, *coarse]) if schemes else None

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────

    def site(self, plan: Plan) -> Site:
        """Find the site of a call, the same for calls of the same kind."""
        objects: list[Any] = []
        key = (plan.count,) if plan.flat else _kind(plan, objects)
        site = None if key is None else self._sites.get(key)
        if objects and site is not None:
            site.ask_again()
        if site is None or site.rule is not plan.rule:
            site = Site(self, plan)
            if self.cache is not None:
                site.content()  # refuses now what has no value, and not when a program runs
            if key is None:  # statics that may change
                return site
            with self._lock:
                self._sites[key] = site
                while len(self._sites) > _SITES:
                    self._sites.popitem(last=False)
        return site

    def apply(self, plan: Plan, tensors: list[Tensor]) -> Any:
        """Run one call in the framework of its tensors."""
        from pullback.wrapping.operation import run

        return run(self.site(plan), plan, tensors)

    # ── derivatives ──────────────────────────────────────────────────────────────────────────────────────

    def back(self, site: Site, layout: Layout) -> Any:
        """Find what a pullback is computed by."""
        return self._remembered(site, "back", layout, self._back)

    def forth(self, site: Site, layout: Layout) -> Any:
        """Find what a pushforward is computed by."""
        return self._remembered(site, "forth", layout, self._forth)

    def _remembered(self, site: Site, name: Any, layout: Layout, make: Any) -> Any:
        key = (name, layout.form)
        found = site.routines.get(key)
        if found is None:
            found = site.routines[key] = make(site, layout)
        return found

    def _back(self, site: Site, layout: Layout) -> Any:
        if "pullback" in self.roles:
            return derivatives.Pullback(site, layout)
        if "pushforward" in self.roles:
            push = derivatives.Pushforward(site, layout)
            return derivatives.FromPushforward(site, layout, push)
        if "jacobian" in self.roles:
            return derivatives.Jacobian(site, layout, back=True)
        if "partials" in self.roles:
            return derivatives.Partials(site, layout, back=True)
        if self.options.scheme is not None:
            return self._differences(site, layout, self.options.scheme)
        raise self.refused()

    def _forth(self, site: Site, layout: Layout) -> Any:
        if "pushforward" in self.roles:
            return derivatives.Pushforward(site, layout)
        if "jacobian" in self.roles:
            return derivatives.Jacobian(site, layout, back=False)
        if "partials" in self.roles:
            return derivatives.Partials(site, layout, back=False)
        scheme = self.options.scheme or self.options.second
        if scheme is not None:
            return differences.Directional(site, layout, self._differences(site, layout, scheme))
        if "pullback" not in self.roles:
            raise self.refused()
        raise ForwardModeError.about(
            self.where,
            found="forward mode was asked for, and only a pullback is given",
            expected="a pushforward, a Jacobian, or a difference scheme",
            why="a pullback that no framework can see into cannot be transposed",
            fix=f"@{self.name}.pushforward\ndef _(dx, x):\n    return …",
        )

    def _differences(self, site: Site, layout: Layout, scheme: differences.Scheme) -> Any:
        def make(site: Site, layout: Layout) -> Any:
            return differences.Differences(site, layout, scheme)

        return self._remembered(site, ("differences", scheme), layout, make)

    @property
    def name(self) -> str:
        """The name of the function, as one would write it in a program."""
        name = str(getattr(self.roles["function"], "__name__", type(self.roles["function"]).__name__))
        return name if name.isidentifier() else "f"

    def refused(self) -> ExternalGradientError:
        """Say that there is no gradient, and what can be given."""
        return ExternalGradientError.about(
            self.where,
            found="its gradient was asked for, and none was given",
            expected="one of the ways to give it",
            why="no framework can see into it, and differences are never taken by accident",
            fix=f"@{self.name}.pullback      def _(dy, x, output): return dx    the adjoint\n"
            f"@{self.name}.pushforward   def _(dx, x, output): return dy    one column at a time\n"
            "jacobian=lambda x: …       dense, sparse, or an operator\n"
            "partials=lambda x: …       of an elementwise function\n"
            'gradient="central"         differences: 2 evaluations for each element of the arguments\n'
            'gradient="forward"         1 for each, half the digits\n'
            'gradient="complex-step"    1 for each, all digits, if it takes complex numbers\n'
            'gradient="spsa"            2 for each sample, a random estimate\n'
            "pb.stop_gradient(x)        if nothing should flow",
        )


def _kind(plan: Plan, objects: list[Any]) -> Any:
    """Name a call up to the values of its tensors; None where its statics may change.

    Objects among them stay the same, but not what is in them: they are listed.
    """
    try:
        return statics(plan.slots, lambda leaf: same.lasting(leaf, objects))
    except same.MutableError:
        return None
