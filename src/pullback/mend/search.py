"""The search: from a wrong rule to edits of its source that the checker finds right.

Candidates run in this process: a forked one would hang in a framework's threads, and a new one would have to
run the user's program again. What keeps that safe: only code that looks pure is run, on small copies of the
inputs, with a timer for each candidate, and for all of them a budget in CPU seconds and a limit of memory;
nothing is printed or written. In the command `pullback check` this process is the child in which a rule is
checked already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from types import CodeType, ModuleType
from typing import Any

from pullback import hosts, tree
from pullback.checker.budget import Budget, Spent
from pullback.checker.finding import Report
from pullback.checker.settings import Settings
from pullback.checker.space import roundoff
from pullback.checker.within import placed, within
from pullback.mend.bench import Bench, Tried
from pullback.mend.complexity import complexity
from pullback.mend.edit import Edit, kinds
from pullback.mend.edits.sizes import written
from pullback.mend.moment import Moment, moment, recorded
from pullback.mend.patch import Mending, Patch
from pullback.mend.points import described, finest, moments, otherwise, resized, shrunk
from pullback.mend.prove import Prover
from pullback.mend.pure import impurity
from pullback.mend.region import Region
from pullback.mend.saved import saved
from pullback.mend.seat import Way, followed, ways
from pullback.mend.source import RefusedError
from pullback.mend.spelling import Spelling, spelling
from pullback.mend.tree import alike
from pullback.mend.watch import Watch
from pullback.view import subject_of
from pullback.view.subject import Arrays, Opened, Subject

CHECKS = 8  # proofs that are attempted
PROOF = 10.0  # CPU seconds for one of them
SHOWN = 2  # patches that are handed over
NEAR = 10  # variants that get a second edit
SIZED = 60  # sizes that are tried in the places of numbers


def mend(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    report: Report,
    *,
    budget: float,
    domain: Any = None,
) -> Mending:
    """Search edits that make a wrong rule right; the user's files and objects stay as they are."""
    start = time.process_time()
    search: Search | None = None
    spent = False
    try:
        search = Search(function, tuple(args), dict(kwargs), report, Budget(budget), domain)
        with search.watch.around(), search.prover.host.alone():
            patches = search.run() or search.partly
        refused = None
    except RefusedError as reason:
        patches, refused = (), str(reason)
    except Spent:
        found = () if search is None else tuple(search.patches) or search.partly
        patches, refused, spent = found, None, True
    except Exception as error:  # a user's function may fail in any way it likes
        patches, refused = (), f"it could not be searched: {type(error).__name__}: {str(error)[:120]}"
    used = time.process_time() - start
    if search is None:
        return Mending(seconds=used, refused=refused, spent=spent)
    return Mending(tuple(patches), search.tried, used, refused, tuple(search.kinds), spent)


class Search:
    """Hold one search."""

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        report: Report,
        budget: Budget,
        domain: Any = None,
    ) -> None:
        self.report, self.budget = report, budget
        self.patches: list[Patch] = []
        self.proven: list[Tried] = []
        self.partly: tuple[Patch, ...] = ()  # right at first order, where no edit is at second, too
        self.kinds: list[str] = []
        self.bench: Bench | None = None
        self.benches: list[Bench] = []
        self.found: list[Moment] = []
        self.watch = Watch()
        host = hosts.among(tree.flatten([args, kwargs])[0], function, report.name)
        given = within(placed(subject_of(host, function, args, kwargs), domain))
        self.framework = hosts.framework_of(host) or ""
        if given.intent.kind != "exact":
            raise RefusedError(
                f"its gradient is declared to be {given.intent}: what is declared is not mended"
            )
        if given.opened is None or given.is_builtin:
            raise RefusedError("it is not a rule whose gradient can be called by itself")
        self.subject: Subject = finest(given)
        if self.subject.pushed is not None and {f.probe for f in report.failures} == {"forward_mode"}:
            self.subject = replace(self.subject, opened=self.subject.pushed)
        unit = roundoff([x for x, d in zip(given.inputs, given.differentiable) if d])
        self.settings = Settings(seed=report.seed, xla=False, export=False, shipped=unit)
        self.other = otherwise(self.subject, host, function, args, kwargs)
        opened, ran = self._recorded()
        self.grad = opened.grad
        self.ways = ways(self.grad, ran)
        if not self.ways:
            raise RefusedError(
                "nothing that its gradient runs is its own: it is used elsewhere too, or has no source"
            )
        self.prover = Prover(self._region(self.ways[0]), given, host, args, kwargs, self.settings, function)

    @property
    def tried(self) -> int:
        """Count the candidates."""
        return sum(bench.tried for bench in self.benches)

    def _recorded(self) -> tuple[Opened, dict[CodeType, dict[str, Any]]]:
        from pullback.checker.draw import cotangents

        inputs = shrunk(self.subject, self.subject.inputs)
        return recorded(self.subject, inputs, cotangents(self.subject.at(inputs), self.settings.rng(40)))

    def _region(self, way: Way) -> Region:
        return Region.of(followed(self.grad, way), alone=bool(way))

    def run(self) -> tuple[Patch, ...]:
        """Search, and give what was proven."""
        self.found = moments(self.subject, self.report, self.settings, self.other)
        if not self.found:
            raise RefusedError("no point was found at which its true gradient can be measured")
        places: list[tuple[Prover, Bench, Tried]] = []
        refused: list[RefusedError] = []
        for way in self.ways:
            try:
                region = self._region(way)
                beside = saved(region.source, region.grad) if not way else None
                at = [m.at(way).beside(beside, region.grad) for m in self.found]
                self.prover = replace(self.prover, region=region, saved=beside, unsaved=at[0].unsaved)
                bench = self.bench = self._bench(at)
                base = self._base(bench)
            except RefusedError as reason:
                refused.append(reason)
                continue
            places.append((self.prover, bench, base))
            (self._second if base.is_right else self._single)(bench, base)
            if self.patches:
                return tuple(self.patches)
        if not places:
            raise refused[0]
        for self.prover, self.bench, base in places:
            if not base.is_right and not self.patches:
                self._pairs(self.bench, base)
        return tuple(self.patches)

    def _base(self, bench: Bench) -> Tried:
        """Judge what stands there, and refuse what must not be run with edits, or cannot be."""
        first, tree = bench.moments[0], bench.region.tree
        reason = impurity(tree, first.space)
        if reason is not None:
            raise RefusedError(f"its gradient does not look pure: {reason}")
        base = bench.judge(tree)
        code = bench.region.compiled(tree, telling=True)
        if base is None or all(bench.guarded(m.told, code) is None for m in bench.moments):
            raise RefusedError("its gradient cannot be run apart from its forward")
        if not base.right:
            raise RefusedError("it gives no gradient to judge")
        reached = bench.guarded(first.reached, bench.region.compiled(tree)) if first.way else None
        wrong = [k for k, right in zip(bench.asked, base.right) if not right]
        if reached is not None and wrong and not any(reached[k] for k in wrong):
            raise RefusedError(f"what is wrong does not come from `{first.open.__name__}`")
        self.benches.append(bench)
        return base

    def _bench(self, found: list[Moment]) -> Bench:
        region, first = self.prover.region, found[0]
        bench = Bench(region, found, Spelling({}, ""), self.budget, self.watch, self.prover.saved)
        tensor = next(iter(region.parameters()), "")
        bench.spelling = spelling(bench.spaces[0], first.names, self.framework, tensor)
        return bench

    def _second(self, bench: Bench, base: Tried) -> None:
        """Try edits that keep the first order, where only the second is wrong."""
        inputs = next((m.inputs for m in bench.moments if not m.bounds), None)
        if inputs is None:
            return
        for kind in kinds():
            if not getattr(kind, "KEEPS", False):
                continue
            for edit in self._edits(kind, bench, base):
                tried = bench.attempt(base, edit)
                allowed = min(PROOF, self.budget.left)
                if tried is None or not bench.guarded(self.prover.twice, tried, inputs, seconds=allowed):
                    continue
                if self._proven([tried]):
                    return

    def _single(self, bench: Bench, base: Tried) -> None:
        """Try every kind of edit; put together what mends one input each."""
        partial: list[Tried] = []
        joined = 0
        for found in self._tried(bench, base, partial):
            if found and self._proven(found):
                return
            if len(partial) > joined and all(
                any(t.right[i] for t in partial) for i in range(len(base.right))
            ):
                joined = len(partial)
                self._together(bench, base, partial)
                if self.patches:
                    return

    def _tried(self, bench: Bench, base: Tried, partial: list[Tried]) -> Iterator[list[Tried]]:
        for kind in kinds():
            for _ in range(4 if getattr(kind, "LEARNS", False) else 1):
                known = len(bench.moments)
                survivors: list[Tried] = []
                for edit in self._edits(kind, bench, base):
                    tried = bench.attempt(base, edit)
                    if tried is not None:
                        (survivors if tried.is_right else partial).append(tried)
                yield sorted(survivors, key=complexity)
                if len(bench.moments) == known:
                    break

    def _edits(self, kind: ModuleType, bench: Bench, base: Tried) -> Iterator[Edit]:
        """List the edits of a kind, and remember that they were tried."""
        for edit in kind.edits(bench, base):
            if kind.WORDS not in self.kinds:
                self.kinds.append(kind.WORDS)
            explains = getattr(kind, "EXPLAINS", None)
            yield edit if edit.explains is not None else replace(edit, explains=explains)

    def _proven(self, survivors: list[Tried]) -> bool:
        """Prove survivors, the smallest first; what fails teaches a new moment."""
        for tried in survivors:
            if self.prover.checks >= CHECKS or len(self.patches) >= SHOWN:
                break
            if self.proven and not self._is_another(tried):
                continue
            self.budget.look()
            assert self.bench is not None
            again = self.bench.judge(tried.tree, tried.edits)
            if again is None or not again.is_right:  # by a moment that was learnt since
                continue
            allowed = min(PROOF, self.budget.left)
            proof = self.bench.guarded(self.prover.prove, tried, allowed, seconds=allowed)
            if proof is None:
                continue
            if proof.holds:
                points = tuple(map(described, self.bench.moments))
                self.patches.append(self.prover.patch(tried, proof, points))
                self.proven.append(tried)
            elif proof.sized:
                self._sized(again)
            elif proof.failing is not None:
                self._learn(*proof.failing)
            elif proof.report.failures and all(f.probe == "second_order" for f in proof.report.failures):
                self._second(self.bench, again)
                if not self.patches and not self.partly:
                    self._first(again)
        return bool(self.patches)

    def _first(self, tried: Tried) -> None:
        """Keep a variant that is right at first order; it is shown if no other is right at second, too."""
        assert self.bench is not None
        once = replace(self.prover, settings=replace(self.settings, order=1))
        allowed = min(PROOF, self.budget.left)
        proof = self.bench.guarded(once.prove, tried, allowed, seconds=allowed)
        if proof is not None and proof.holds:
            patch = once.patch(tried, proof, tuple(map(described, self.bench.moments)))
            self.partly = (replace(patch, rest="its second order stays wrong"),)

    def _sized(self, tried: Tried) -> None:
        """Put sizes in the places of numbers, where a variant is right at the given shapes only."""
        before = self.bench
        assert before is not None
        longer = [self._opened(m, before) for m in resized(self.subject, self.settings)]
        bench = self._bench([*before.moments, *longer])
        base = bench.judge(tried.tree)
        if base is None or base.is_right:
            return
        self.benches.append(bench)
        self.bench = bench
        base = replace(base, edits=tried.edits)
        found = (bench.attempt(base, edit) for edit in written(bench, base))
        self._proven([t for t in islice(found, SIZED) if t is not None and t.is_right][:2])
        self.bench = before

    def _is_another(self, tried: Tried) -> bool:
        """Tell whether a variant is as small as the one that was proven, and says something else."""
        first = self.proven[0]
        said = [edit.words for edit in tried.edits]
        same = alike(tried.tree, first.tree) or said == [edit.words for edit in first.edits]
        return complexity(tried) == complexity(first) and not same

    def _learn(self, label: str, inputs: Arrays) -> None:
        """Make a moment of the point that a survivor failed at."""
        assert self.bench is not None
        made = moment(self.subject, label, inputs, self.settings, 200 + len(self.bench.moments))
        if made is not None:
            self.found.append(made)
            self.bench.learn(self._opened(made, self.bench))

    def _opened(self, made: Moment, bench: Bench) -> Moment:
        """Open what is edited at a moment, with the names that may be read there."""
        return made.at(bench.moments[0].way).beside(self.prover.saved, bench.region.grad)

    def _together(self, bench: Bench, base: Tried, partial: list[Tried]) -> None:
        """Put edits together that mend one input each."""
        ordered = sorted(partial, key=complexity)
        states = ordered[:12]
        for _ in range(len(base.right)):
            grown: list[Tried] = []
            for state in states[:6]:
                missing = next((i for i, right in enumerate(state.right) if not right), 0)
                for tried in [t for t in ordered if t.right[missing]][:6]:
                    found = bench.attempt(state, tried.edits[-1])
                    if found is not None:
                        grown.append(found)
            done = [t for t in grown if t.is_right]
            if done and self._proven(sorted(done, key=complexity)):
                return
            states = [t for t in grown if not t.is_right]
            if not states:
                return

    def _pairs(self, bench: Bench, base: Tried) -> None:
        """Try one more edit on the variants that are nearest."""
        nearest = [t for _, _, t in sorted(bench.nearest)[:NEAR]]
        for state in nearest:
            ranked = Tried(state.tree, state.edits, base.right)
            for found in self._tried(bench, ranked, []):
                if found and self._proven(found):
                    return
