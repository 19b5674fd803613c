"""Drawing a jaxpr, equation by equation."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pullback.graphs import marks
from pullback.graphs.framework import MEASURED, Asked, Marked, Sketch, is_user, location_in, sentence
from pullback.graphs.jax.step import OWN, Step, is_float
from pullback.graphs.parts import Body, Flow
from pullback.hosts.jax.programs import walk
from pullback.view.native import Given

OPENED = ("jit", "pjit", "closed_call", "core_call", "xla_call", "checkpoint", "remat", "remat2")
CUSTOM = {"custom_vjp_call": "jax.custom_vjp", "custom_jvp_call": "jax.custom_jvp"}


class Drawing:
    """Draw one jaxpr, running it equation by equation."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.sketch = Sketch()
        self.rules: dict[str, Marked] = {}  # those that were called, by name
        self.steps: list[Step] = []
        self.count = 0

    def end(self, name: str, kind: Any = "input") -> tuple[int, int]:
        return self.sketch.node(kind, name=name, kind=kind), 0

    def walk(self, jaxpr: Any, consts: Sequence[Any], ends: Sequence[Any], inputs: Sequence[Any]) -> None:
        """Draw the program, its outputs and its measures."""
        self.count = _count(jaxpr)
        measured = self.count <= MEASURED
        if not measured:
            self.sketch.notes.append(
                f"{self.count} operations are too many to run one by one: their gradients are not measured."
            )
        known = [
            (self.end(f"captured {np.shape(c)}", "captured") if _is_tensor(c) else None, c) for c in consts
        ]
        outputs = self._walk(jaxpr, [*known, *zip(ends, inputs)], (), measured)
        shares = self._seeds(jaxpr.outvars, outputs) if measured else {}
        for place, ((origin, value), variable) in enumerate(zip(outputs, jaxpr.outvars)):
            if origin is None and len(outputs) > 1:
                continue  # a constant among others is not drawn
            name = "output" if len(outputs) == 1 else f"output {place}"
            out = self.sketch.node("output", name=name, kind="output")
            if origin is not None:
                drawn = self._edge(origin, out, variable.aval, value, 0)
                if measured and place in shares:
                    self.sketch.measure(drawn, shares[place])
                    self._give(origin, shares[place])
        if measured:
            self._pull()

    def _walk(
        self, jaxpr: Any, given: Sequence[Any], scope: tuple[str, ...], measured: bool, at: str = ""
    ) -> list[Any]:
        """Draw the equations; `at` is the line that calls them, where they have none of the user's."""

        def through(eqn: Any, operands: list[Any]) -> list[Any]:
            inner = next((eqn.params[k] for k in ("jaxpr", "call_jaxpr") if k in eqn.params), None)
            stack = (*scope, *(part for part in str(eqn.source_info.name_stack).split("/") if part))
            if eqn.primitive.name not in OPENED or inner is None:
                return self._step(eqn, operands, stack, measured, at)
            label = str(eqn.params.get("name", "")).strip("_<>")
            inside = getattr(inner, "jaxpr", inner)
            held = [(None, c) for c in getattr(inner, "consts", ())]
            deeper = (*stack, label) if label else stack
            return self._walk(inside, [*held, *operands], deeper, measured, _location(eqn) or at)

        return walk(jaxpr, given, through, lambda value: (None, value))

    def _step(
        self, eqn: Any, operands: Sequence[Any], scope: tuple[str, ...], measured: bool, at: str
    ) -> list[Any]:
        origins = [origin for origin, _ in operands]
        values = [value for _, value in operands]
        live = any(origin is not None for origin in origins)
        step = Step(eqn, values, [o is not None for o in origins]) if measured else None
        if step is not None and not live:
            step.run()
            return [(None, value) for value in step.outputs]
        if not live:
            return [(None, None) for _ in eqn.outvars]
        drawn, name, rule = self._named(eqn)
        new = self.sketch.node(drawn, name=name, scope=scope, rule=rule, location=_location(eqn) or at)
        if self.asked.inside:
            self.sketch.told(new, bodies=self._bodies(eqn, values))
        if step is not None:
            step.node = new
            step.run()
            self._said(step)
            self.sketch.told(new, kept=step.kept)
            self.steps.append(step)
        for place, (origin, value) in enumerate(operands):
            if origin is not None:
                edge = self._edge(origin, new, eqn.invars[place].aval, value, place)
                if step is not None:
                    step.edges[place] = edge
                    step.sources[place] = origin
        outputs = step.outputs if step is not None else [None] * len(eqn.outvars)
        return [((new, port), value) for port, value in enumerate(outputs)]

    def _bodies(self, eqn: Any, values: Sequence[Any]) -> tuple[Body, ...]:
        """Draw what runs inside of a loop or a condition; of its branches the one that ran, if known."""
        params, name = eqn.params, eqn.primitive.name
        if name == "scan":
            first, count = params["num_consts"], params["num_carry"]
            return (self._body(params["jaxpr"], 0, {i: first + i for i in range(count)}),)
        if name == "while":
            skipped, first = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
            carried = {i: first + i for i in range(len(eqn.outvars))}
            return (self._body(params["body_jaxpr"], skipped, carried),)
        if name == "cond":
            branches = params["branches"]
            which = None if values[0] is None else int(np.clip(int(values[0]), 0, len(branches) - 1))
            ran = branches if which is None else [branches[which]]
            return tuple(self._body(branch, 1, {}) for branch in ran)
        return ()

    def _body(self, program: Any, first: int, again: dict[int, int]) -> Body:
        """Draw a jaxpr whose operands begin at a place of the operation's."""
        inner = Drawing(self.asked)
        inner.rules = self.rules
        ends = [inner.end(str(v)) for v in program.jaxpr.invars]
        given = [*((None, c) for c in program.consts), *((end, None) for end in ends)]
        outputs = inner._walk(program.jaxpr, given, (), False)
        exits = {}
        for port, ((origin, _), variable) in enumerate(zip(outputs, program.jaxpr.outvars)):
            out = inner.sketch.node("output", kind="output")
            exits[out] = port
            if origin is not None:
                inner._edge(origin, out, variable.aval, None, 0)
        entries = {first + i: end for i, (end, _) in enumerate(ends)}
        return Body(tuple(inner.sketch.nodes), tuple(inner.sketch.edges), entries, exits, again)

    def _said(self, step: Step) -> None:
        if step.problem:
            name = self.sketch.nodes[step.node].name
            self.sketch.notes.append(f"{name} has no derivative in JAX: {step.problem}")

    def _edge(self, origin: tuple[int, int], target: int, aval: Any, value: Any, place: int) -> int:
        floating = is_float(aval.dtype)
        is_number = getattr(aval.dtype, "kind", "") in "fciubV" and hasattr(aval.dtype, "kind")
        flow = Flow.of(value) if value is not None and is_number else None
        return self.sketch.edge(
            origin[0], target,
            shape=tuple(aval.shape), dtype=str(aval.dtype), value=flow, port=origin[1], place=place,
            state="unmeasured" if floating else "still",
        )  # fmt: skip

    def _named(self, eqn: Any) -> tuple[str, str, Any]:
        """Say what an equation is: its primitive, a name, and the mark of a rule."""
        primitive = eqn.primitive.name
        if primitive == OWN:
            program = eqn.params["program"]
            operation = getattr(program, "operation", None) or program.derivative.operation
            return eqn.params["name"], eqn.params["name"], marks.of_operation(operation)
        if primitive not in CUSTOM:
            return primitive, "", None
        name = str(getattr(eqn.params["call_jaxpr"].jaxpr.debug_info, "func_name", "") or primitive)
        made = eqn.params.get("jvp_jaxpr_fun") or eqn.params.get("bwd")
        module = str(getattr(getattr(made, "f", None), "__module__", "") or "")
        if name not in self.rules and module.partition(".")[0] in ("jax", "jaxlib"):
            return name, name, None
        mark = self.rules[name]() if name in self.rules else marks.of_maker(CUSTOM[primitive])
        return name, name, mark

    def called(self, name: str, mark: Marked, given: Given) -> None:
        """Note a rule that was called."""
        self.rules[name] = mark

    # ── backward ─────────────────────────────────────────────────────────────────────────────────────────

    def _seeds(self, variables: Sequence[Any], outputs: Sequence[Any]) -> dict[int, Any]:
        """Give the cotangents of the outputs: ones, or what was asked for."""
        places = [i for i, v in enumerate(variables) if is_float(v.aval.dtype)]
        given = self.asked.cotangents
        cotangents = [jnp.ones_like(outputs[i][1]) for i in places] if given is None else list(given)
        self.totals: dict[tuple[int, int], Any] = {}
        return dict(zip(places, cotangents))

    def _give(self, origin: tuple[int, int], share: Any) -> None:
        if share is not None:
            self.totals[origin] = self.totals[origin] + share if origin in self.totals else share

    def _pull(self) -> None:
        for step in reversed(self.steps):
            cotangents = [self.totals.get((step.node, port)) for port in range(len(step.outputs))]
            self._told(step.node, cotangents)
            shares = step.pull(cotangents)
            self._said(step)
            for place, edge in step.edges.items():
                if self.sketch.edges[edge].state == "still" or step.answers:
                    self.sketch.calm(edge)
                    continue
                self.sketch.measure(edge, shares.get(place))
                self._give(step.sources[place], shares.get(place))
        for node in self.sketch.nodes:
            if node.kind in ("input", "variable"):
                self._told(node.id, [self.totals.get((node.id, 0))])

    def _told(self, node: int, cotangents: Sequence[Any]) -> None:
        first = next((c for c in cotangents if c is not None), None)
        if first is not None:
            self.sketch.told(node, gradient=Flow.of(first))

    def untraced(self, run: Any, inputs: Sequence[Any], ends: Sequence[Any], error: Exception) -> Sketch:
        """Draw one box for a function that cannot be traced, with the gradients that it has all the same."""
        location = location_in(error)
        self.sketch.problem = f"{self.asked.name} cannot be traced: {sentence(error)}"
        whole = self.sketch.node("call", name=self.asked.name, location=location)
        if "Concretization" in type(error).__name__ or "Conversion" in type(error).__name__:
            self.sketch.told(whole, does="leave")
        shares: dict[int, Any] = {}
        with contextlib.suppress(Exception):
            moving = [i for i, x in enumerate(inputs) if is_float(x.dtype)]
            rest = list(inputs)

            def part(*given: Any) -> list[Any]:
                for i, x in zip(moving, given):
                    rest[i] = x
                return [y for y in run(rest) if is_float(jax.numpy.result_type(y))]

            outputs, pull = jax.vjp(part, *(inputs[i] for i in moving))
            shares = dict(zip(moving, pull([jax.numpy.ones_like(y) for y in outputs])))
            for y in outputs:
                out = self.sketch.node("output", name="output", kind="output")
                edge = self._edge((whole, 0), out, jax.typeof(y), y, 0)
                self.sketch.measure(edge, jax.numpy.ones_like(y))
        for i, ((end, _), x) in enumerate(zip(ends, inputs)):
            edge = self._edge((end, 0), whole, jax.typeof(x), x, i)
            if i in shares:
                self.sketch.measure(edge, shares[i])
                self.sketch.told(end, gradient=Flow.of(shares[i]))
        return self.sketch


def _is_tensor(const: Any) -> bool:
    return np.ndim(const) > 0 and is_float(const.dtype)


def _count(jaxpr: Any) -> int:
    inner = (
        getattr(e.params["jaxpr"], "jaxpr", e.params["jaxpr"])
        for e in jaxpr.eqns
        if e.primitive.name in OPENED and "jaxpr" in e.params
    )
    return len(jaxpr.eqns) + sum(map(_count, inner))


def _location(eqn: Any) -> str:
    frames = getattr(eqn.source_info.traceback, "frames", ())
    found = next((f for f in frames if is_user(f.file_name)), None)
    line = getattr(found, "start_line", None) or getattr(found, "line_num", 0)
    return "" if found is None else f"{os.path.basename(found.file_name)}:{line}"
