"""PyTorch callables as subjects of the checker.

A pullback rule, the `apply` of a `torch.autograd.Function`, an operator of `torch.library`, an `nn.Module`, a
plain function. The parameters of a module are inputs too: they are handed over with each call, and so are
copies of its buffers, so that the module stays as it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from pullback.hosts.keras import is_layer
from pullback.hosts.torch import HOST
from pullback.hosts.torch.private import tracing_backend
from pullback.patched import patched
from pullback.view.adapter import Adapter, itself
from pullback.view.arguments import EVERYTHING, Asked, is_array
from pullback.view.framework import Run, Vjp
from pullback.view.rules import How
from pullback.view.subject import Array, Arrays, Cotangents, Pullback, Subject
from pullback.view.torch import leaves, native
from pullback.view.torch.drawing import Draws, settled
from pullback.view.torch.parameters import Read, bound, read_by
from pullback.view.torch.recorded import refuse_first_order_only
from pullback.view.torch.words import TorchWords


class TorchAdapter(Adapter):
    """Run a callable of PyTorch on arrays."""

    host = HOST
    natives = native
    words = TorchWords()
    mends_shapes = True
    builtin = ("torch", "keras")
    slow = frozenset({"torch.compile"})
    apart: frozenset[int] = frozenset()  # outputs that are said to have no gradient
    seeded = False  # whether every call draws the same numbers
    read = Read()  # what it reads beside its arguments

    def __init__(self, function: Any, args: Any, kwargs: Any, *copy: Any, asked: Asked = EVERYTHING) -> None:
        function, args, asked = bound(function, args, asked)
        super().__init__(function, args, kwargs, *copy, asked=asked)

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        numbers = settled(self.device) if self.seeded else contextlib.nullcontext()
        with torch.enable_grad(), warnings.catch_warnings(), numbers, self.read.kept():
            # asked of outputs that no gradient reaches, and of functions that are compiled once each
            warnings.filterwarnings("ignore", module=r"torch\.")
            yield

    def is_input(self, leaf: Any) -> bool:
        if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided and self.asked.is_still(leaf):
            return False
        return is_array(leaf) or isinstance(leaf, torch.Tensor) or HOST.owns(type(leaf))

    def requested(self, leaves: Sequence[Any]) -> list[bool]:
        """Take the flags of the arguments, once one is set: as PyTorch itself does."""
        flags = [bool(getattr(leaf, "requires_grad", False)) for leaf in leaves]
        return flags if any(flags) else [True] * len(flags)

    def tensor(self, leaf: Any, name: str = "an output") -> Any:
        value: Any = (
            getattr(leaf, "value", leaf) if not isinstance(leaf, (torch.Tensor, np.generic)) else leaf
        )
        if self.rule is None and leaves.is_sparse(value):
            return leaves.values_of(value.detach())
        if isinstance(value, torch.Tensor):
            return HOST.tensor(value.detach(), where=self.name, argument=name)
        return leaves.tensor_of(np.asarray(value)) if is_array(value) else torch.as_tensor(value)

    def output(self, leaf: Any) -> Any:
        return leaves.tensor_of(np.asarray(leaf)) if is_array(leaf) else None

    def array(self, tensor: Any) -> Array:
        return leaves.array_of(tensor)

    def converted(self, tensor: Any, dtype: str) -> Any:
        return tensor.to(getattr(torch, dtype))

    def constants(self, arrays: Arrays) -> list[Any]:
        # Memory of PyTorch's own: a rule may give it back, and take it again.
        return [leaves.tensor_of(a).to(self.device, copy=True) for a in arrays]

    def subject(self) -> Subject:
        self.seeded = True  # until it is known
        self.apart = self.unconnected()
        subject = super().subject()
        self.seeded = subject.draws and subject.is_rule
        if self.read.parameters:  # they are no arguments, and a transform moves nothing else
            subject = dataclasses.replace(subject, pushforward=None, jacobian=None, body_jacobian=None)
        if any(map(leaves.is_sparse, self.arguments.inputs)):
            # PyTorch's gradients of sparse tensors are constants, without a word.
            return dataclasses.replace(subject, second=None)
        return subject

    def unconnected(self) -> frozenset[int]:
        """List the outputs that are said to have no gradient, beside others that have one."""
        try:
            with self.surroundings():
                flags = [o.requires_grad for o in self.run()(self.sources(self.inputs))]
        except Exception:  # it cannot run at its example: the first probe says so
            return frozenset()
        places = [k for k in range(len(flags) + len(self.unasked)) if k not in self.unasked]
        return frozenset(k for k, yes in zip(places, flags) if not yes) if any(flags) else frozenset()

    def connected(self, output: Any) -> bool:
        return bool(output.requires_grad)

    @property
    def loose(self) -> frozenset[int]:
        return super().loose | self.apart

    def draws(self) -> bool:
        with self.surroundings(), Draws() as seen, contextlib.suppress(Exception):
            self.run()(self.sources(self.inputs))
        return seen.random

    def sources(self, inputs: Arrays) -> list[Any]:
        return self.watched(self.placed(self.constants(inputs)))

    def placed(self, tensors: list[Any]) -> list[Any]:
        """Put values into the parameters that are read by name: those themselves are the inputs."""
        count = len(tensors) - len(self.read.parameters)
        return tensors[:count] + self.read.set(tensors[count:])

    def watched(self, tensors: Sequence[Any]) -> list[Any]:
        """Mark the differentiable ones."""
        return [t.requires_grad_(d) for t, d in zip(tensors, self.differentiable)]

    @functools.cached_property
    def device(self) -> Any:
        known = [*self.tensors, *self.parameters.values()]
        return next((t.device for t in known if t.device.type != "cpu"), torch.device("cpu"))

    # ── modules ──────────────────────────────────────────────────────────────────────────────────────────

    def weights(self) -> dict[str, Any]:
        found = super().weights()
        if self.variables:
            return found
        self.read = read_by(self.function, self.arguments, self.parts() if self.rule is not None else [])
        named = self.read.parameters.items()
        if not named and isinstance(self.function, torch.nn.Module):
            named = dict(self.function.named_parameters()).items()
        return {name: parameter.detach() for name, parameter in named if parameter.requires_grad}

    def written_parameters(self) -> list[str]:
        return self.read.written(self.written_name()) or super().written_parameters()

    def bound(self, parameters: Sequence[Any]) -> Callable[..., Any]:
        module = self.function
        if self.read.parameters:
            return module
        if self.variables or not isinstance(module, torch.nn.Module):
            return super().bound(parameters)
        state = {
            name: self.cast(value.detach().clone())
            for name, value in (*module.named_buffers(), *module.named_parameters())
        }
        state.update(zip(self.parameters, parameters))

        def call(*args: Any, **kwargs: Any) -> Any:
            return torch.func.functional_call(module, state, args, kwargs)

        return call

    def run(self, how: How = itself) -> Run:
        run = super().run(how)
        sparse = {k: leaf for k, leaf in enumerate(self.arguments.inputs) if leaves.is_sparse(leaf)}

        def copied(sources: Sequence[Any]) -> list[Any]:
            # A function may work in place on what it is given, but not on a leaf.
            copies = [source.clone() for source in sources]
            return run([leaves.filled(sparse[k], c) if k in sparse else c for k, c in enumerate(copies)])

        return copied

    def flat(self, returned: Any) -> list[Any]:
        return [t.to_dense() if leaves.is_sparse(t) else t for t in super().flat(returned)]

    # ── derivatives ──────────────────────────────────────────────────────────────────────────────────────

    def vjp(self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        try:
            return self.gradient(run(sources), self.among(sources), cotangents)
        except RuntimeError as error:
            # One that runs a backward inside its own refuses `torch.autograd.grad`, as checkpoints do.
            try:
                return self.accumulated(run(sources), self.among(sources), cotangents)
            except RuntimeError:
                raise error from None

    @staticmethod
    def accumulated(outputs: Sequence[Any], moving: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """Pull back as a training loop does, with `.backward()`."""
        ends, given = zip(*[(o, c.to(o.device)) for o, c in zip(outputs, cotangents) if o.requires_grad])
        torch.autograd.backward(ends, given)
        found = [source.grad for source in moving]
        for source in moving:
            source.grad = None
        return found

    @staticmethod
    def gradient(
        outputs: Sequence[Any], moving: Sequence[Any], cotangents: Sequence[Any], **options: Any
    ) -> list[Any]:
        """Pull back through the outputs that are connected at all."""
        pairs = [(o, c.to(o.device)) for o, c in zip(outputs, cotangents) if o.requires_grad]
        if not pairs or not moving:
            return [None] * len(moving)
        ends, given = zip(*pairs)
        return list(torch.autograd.grad(ends, moving, given, allow_unused=True, **options))

    def second(
        self, run: Run, sources: Sequence[Any], cotangents: Sequence[Any], weights: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        moving = self.among(sources)
        cots = [c.requires_grad_() for c in cotangents]
        grads = self.gradient(run(sources), moving, cots, create_graph=True)
        refuse_first_order_only(grads)
        terms = [
            torch.real((w.conj() * g.to_dense()).sum()).to(torch.float64)
            for w, g in zip(weights, grads)
            if g is not None and w is not None and g.requires_grad
        ]
        total = [sum(terms[1:], start=terms[0])] if terms else []
        found = self.gradient(total, [*moving, *cots], [torch.ones_like(t) for t in total])
        return found[: len(moving)], found[len(moving) :]

    def jvp(self, run: Run, sources: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        with forward_ad.dual_level():
            duals = [s if t is None else forward_ad.make_dual(s, t) for s, t in zip(sources, tangents)]
            return [forward_ad.unpack_dual(o).tangent for o in run(duals)]

    def rows(self, run: Run, sources: Sequence[Any]) -> list[Sequence[Any]]:
        cut = [s.detach() for s in sources]

        def function(*moving: Any) -> tuple[Any, ...]:
            rest = iter(moving)
            return tuple(run([next(rest) if d else s for s, d in zip(cut, self.differentiable)]))

        outputs, pull = torch.func.vjp(function, *self.among(cut))[:2]
        found: list[Sequence[Any]] = []
        for k, y in enumerate(outputs):
            zeros = [torch.zeros_like(o) for o in outputs]
            basis = torch.eye(y.numel(), dtype=y.dtype, device=y.device).reshape(-1, *y.shape)
            rows = torch.vmap(lambda c, k=k, zeros=zeros: pull((*zeros[:k], c, *zeros[k + 1 :])))(basis)
            found.append([g.reshape((*y.shape, *g.shape[1:])) for g in rows])
        return found

    def compiled(self) -> Mapping[str, tuple[Run, Vjp]]:
        # Copied inside: what works in place on an input of the compiled program is not differentiated. A
        # tensor that another argument holds, too, stays the one that it holds.
        alone = self.arguments.asked.built is None

        def how(function: Callable[..., Any]) -> Callable[..., Any]:
            def copied(*args: Any, **kwargs: Any) -> Any:
                return function(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args], **kwargs)

            return torch.compile(copied if alone else function, backend=tracing_backend())

        run = self.run(how)
        return {"torch.compile": (run, lambda sources, cots: self.vjp(run, sources, cots))}

    def sharing(self) -> Pullback:
        """Give the pullback on the memory of the arrays themselves, where changes in place are seen."""

        run = super().run()

        def pullback(inputs: Arrays, cotangents: Arrays) -> Cotangents:
            with self.surroundings():
                sources = self.watched(self.placed([leaves.tensor_of(a) for a in inputs]))
                given = [leaves.tensor_of(c) for c in cotangents]
                return self.along(self.gradient(run(sources), self.among(sources), given))

        return pullback

    # ── what the host can see ────────────────────────────────────────────────────────────────────────────

    def opaque(self) -> bool:
        """See whether a tensor leaves for NumPy on the way."""
        sources = self.sources(self.inputs)
        with self.surroundings(), _leaving() as left:
            try:
                outputs = self.run()(sources)
                self.gradient(outputs, self.among(sources), list(map(torch.ones_like, outputs)))
            except Exception:  # what cannot be run is not opaque for that reason
                return False
        return bool(left)

    def exported(self) -> tuple[Run, Run, Sequence[Any]]:
        run, sources = self.run(), self.sources(self.inputs)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # the answer says it
            warnings.simplefilter("ignore")
            saved = torch.export.export(_Module(run), tuple(sources), strict=False)
        file = io.BytesIO()
        torch.export.save(saved, file)
        file.seek(0)
        loaded = torch.export.load(file).module()
        return run, lambda given: list(loaded(*given)), sources

    def signature(self) -> inspect.Signature | None:
        if isinstance(self.function, torch.nn.Module) and not is_layer(self.function):
            return inspect.signature(self.function.forward)
        return super().signature()


class _Module(torch.nn.Module):
    """Hold a flat function as a module: `torch.export` takes nothing else."""

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.run = run

    def forward(self, *sources: Any) -> tuple[Any, ...]:
        return tuple(self.run(sources))


@contextlib.contextmanager
def _leaving() -> Iterator[list[str]]:
    """Watch for tensors that become NumPy arrays, in the pullbacks too, where no mode of PyTorch reaches."""
    left: list[str] = []
    native, kept = torch.Tensor.numpy, torch.Tensor.__array__

    def numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
        left.append("numpy")
        return native(self, *args, **kwargs)

    def array(self: Any, *args: Any, **kwargs: Any) -> Any:
        left.append("__array__")
        return kept(self, *args, **kwargs)

    with patched(torch.Tensor, numpy=numpy, __array__=array):
        yield left


ADAPTER = TorchAdapter
