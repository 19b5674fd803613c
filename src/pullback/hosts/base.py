"""What a host offers, job by job.

A host executes; all thinking about forms, names and errors happens in front of it, in `plan.py` and
`contract.py`. Executing and the facts of a tensor are what every host must offer; what it leaves out of the
other jobs is refused in words.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pullback.errors import HostError
from pullback.hosts.claims import Claim
from pullback.hosts.foreign import Foreign
from pullback.hosts.fused import Fused
from pullback.hosts.operation import Function, Operation, Tensor
from pullback.hosts.overrides import Gradients
from pullback.hosts.specs import Spec
from pullback.patched import patched
from pullback.rule import Intent

# takes a structure apart: its parts, and what puts such parts together
Opener = Callable[[Any], "tuple[list[Any], Callable[[Sequence[Any]], Any]]"]

Linear = Callable[[Sequence[Any]], "list[Any]"]  # a linear map of lists of tensors


class Met(NamedTuple):
    """A rule that was met inside a function: its name, what it claims to be, and how it is known."""

    name: str
    intent: Intent
    known: Any = None  # the rule itself, or what a framework's own rule is recognised by


class Meeting(list[Met]):
    """Collect the rules that are met while bodies run without them, but for those that are kept."""

    def __init__(self, keeps: Callable[[Met], bool] | None = None) -> None:
        super().__init__()
        self.keeps = keeps

    def passes(self, met: Met) -> bool:
        """Take note of a rule, and tell whether it is passed over: its plain body runs."""
        self.append(met)
        return self.keeps is None or not self.keeps(met)


class Facts(ABC):
    """Know a framework's tensors."""

    name: str
    silent = False  # whether operations say nothing of values that they cannot be done with

    @abstractmethod
    def owns(self, kind: type) -> bool:
        """Tell whether values of this type are tensors of the framework."""

    @abstractmethod
    def tensor(self, value: Any, *, where: str, argument: str) -> Tensor:
        """Turn a variable, an array or a number into a tensor; refuse what has no arithmetic."""

    @abstractmethod
    def spec(self, tensor: Tensor) -> Spec:
        """Describe a tensor."""

    @abstractmethod
    def conform(self, cotangent: Any, like: Tensor) -> Tensor:
        """Cast a cotangent that passed the contract to its input's dtype."""

    @abstractmethod
    def zeros(self, like: Any) -> Tensor:
        """Make the zeros that stand for a missing cotangent, from what `outline` kept."""

    def opener(self, value: Any) -> Opener | None:
        """Give what takes structures of a value's type apart, if the framework knows it; None for a leaf."""
        return None

    def is_tensor(self, value: Any) -> bool:
        """Tell whether a value is a tensor, and needs no conversion."""
        return self.owns(type(value))

    def differentiable(self, tensor: Tensor) -> bool:
        """Tell whether a gradient can flow to this tensor."""
        return self.spec(tensor).kind in ("floating", "complex")

    def outline(self, output: Tensor) -> Any:
        """Keep what `zeros` needs to know of an output, and not the output itself."""
        return self.spec(output)

    def device(self, tensor: Tensor) -> Any:
        """Give where new tensors must be made to meet a tensor; None if the framework sees to that."""
        return None

    # Answers that are true as they stand; a host that can tell more, quickly, spares a call the long way.

    def readable(self, tensor: Tensor) -> bool:
        """Tell whether the values of a tensor are there to be read, without waiting for another device."""
        return False

    def ready(self, values: Sequence[Any]) -> bool:
        """Tell quickly whether all of these are floating tensors, which need no conversion."""
        return False

    def fit(self, cotangents: Sequence[Any], likes: Sequence[Tensor]) -> bool:
        """Tell quickly whether cotangents are tensors of their inputs' known shapes and dtypes."""
        return False

    def lone(self, output: Any) -> Any:
        """Give the outline of an output that is a floating tensor, and None for anything else, quickly."""
        return None


class Executing(ABC):
    """Run operations natively."""

    bypassed: Meeting | None = None  # while the checker runs bodies without their rules: the rules met

    @abstractmethod
    def apply(self, operation: Operation, tensors: list[Tensor]) -> list[Tensor]:
        """Run an operation so that the framework differentiates it by its own pullback."""

    def bypasses(self, operation: Operation) -> bool:
        """Tell whether an operation runs as its plain body now, without its rule."""
        met = self.bypassed
        return met is not None and met.passes(Met(operation.name, operation.intent, operation.rule))

    def run(self, function: Function, args: Sequence[Any], kwargs: dict[str, Any], where: str) -> Any:
        """Call the user's code."""
        return function(*args, **kwargs)

    def idle(self, tensors: Sequence[Tensor]) -> bool:
        """Tell quickly whether values are all that is wanted: nobody differentiates, traces or listens."""
        return False

    def recording(self, tensors: Sequence[Tensor]) -> bool:
        """Tell whether somebody records what is done with these, now or later, to differentiate it."""
        return False

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Compute in one thread for a while, if the framework can: small tensors only wake the others."""
        return contextlib.nullcontext()

    def stepwise(self, function: Function) -> contextlib.AbstractContextManager[None]:
        """Run what a function does once step by step, if that takes less time than compiling it."""
        return contextlib.nullcontext()


class Arrays(Protocol):
    """Offer the array functions that host-neutral rules are written in, beside Python's own operators."""

    abs: Function
    arctan: Function
    argmax: Function
    clip: Function
    erfc: Function
    floor: Function
    isfinite: Function
    maximum: Function
    round: Function
    sigmoid: Function
    sign: Function
    softmax: Function
    sqrt: Function
    stop: Function
    tanh: Function
    where: Function
    zeros_like: Function

    def cast(self, value: Any, like: Tensor) -> Any:
        """Give a tensor the dtype of another; leave a Python number alone."""

    def times(self, x: Tensor, weight: Tensor) -> Tensor:
        """Multiply by a weight that is 0 where x is −∞, and so is the product."""

    def wide(self, x: Tensor) -> Tensor:
        """Give a tensor the precision that a sum of its squares needs."""

    def square_sum(self, x: Tensor, keep: int | None) -> Tensor:
        """Sum the squared sizes over all axes, or over all but one, which is kept with its place."""

    def one_hot(self, index: Tensor, like: Tensor, axis: int) -> Tensor:
        """Put a one in the place of each index along an axis of a tensor shaped like another."""

    def put(self, rows: Tensor, place: Tensor, x: Tensor) -> Tensor:
        """Put a tensor into the place of a row. The rows as they were are used up: their memory may be."""

    def first(self, rows: Tensor, place: Tensor) -> Tensor:
        """Give the rows before a place; all of them where its value is not known, or would cost more."""

    def shaped(self, x: Tensor, like: Tensor) -> Tensor:
        """Give a tensor the shape of another with as many elements."""

    def trail(self, x: Tensor, like: Tensor) -> Tensor:
        """Add axes of length one behind the last, up to the rank of another tensor."""

    def held(self, inputs: Sequence[Tensor], after: Sequence[Tensor]) -> list[Tensor]:
        """Give tensors again, once others are computed: no compiler takes what comes of them for the same."""

    def report(self, bad: Tensor, text: str, counter: Any, result: Tensor) -> Tensor:
        """Add the number of places in `bad` to a counter, or say it; give the result back."""


class Traces(Protocol):
    """What a host offers beside the rest that traces programs whose lengths it does not know."""

    def require_shape(self, cotangent: Tensor, like: Tensor, text: str, label: str) -> Tensor:
        """Give a cotangent that has its input's shape, or is an error when it is computed.

        It says the text, or where only a name can be said, the label.
        """


class Host(Facts, Executing):
    """Execute operations natively in one framework."""

    # ── array functions ──────────────────────────────────────────────────────────────────────────────────

    @property
    def arrays(self) -> Arrays:
        """The array functions of the framework."""
        raise self.refused("arrays")

    @property
    def fused(self) -> Mapping[str, Fused]:
        """The operations of the framework's own that ready rules run, by the names of the rules."""
        return {}

    def stopped(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Cut tensors off: no gradient goes through them."""
        return [self.arrays.stop(x) if self.differentiable(x) else x for x in tensors]

    def unbroadcast(self, cotangent: Tensor, like: Tensor) -> Tensor:
        """Sum a cotangent over the axes that broadcasting added."""
        raise self.refused("unbroadcast")

    def conjugate(self, tensor: Tensor) -> Tensor:
        """Conjugate a complex tensor; leave a real one alone."""
        raise self.refused("conjugate")

    # ── callbacks ────────────────────────────────────────────────────────────────────────────────────────

    def callback(self, foreign: Foreign, tensors: Sequence[Tensor], outputs: Sequence[Spec]) -> list[Tensor]:
        """Run a foreign function as one operation, eagerly, compiled and batched; it has no derivative."""
        raise self.refused("external")

    # ── what stands in a program already ─────────────────────────────────────────────────────────────────

    def pullback(self, function: Function, inputs: Sequence[Tensor]) -> Linear:
        """Differentiate a function by the framework itself: what takes cotangents back, more than once."""
        raise self.refused("vjp")

    def vjp(self, function: Function, inputs: Sequence[Tensor], cotangents: Sequence[Any]) -> list[Any]:
        """Take cotangents back through a function at its inputs, once."""
        return self.pullback(function, inputs)(cotangents)

    def pushforward(self, function: Function, inputs: Sequence[Tensor]) -> Linear:
        """Give the pushforward of a function at its inputs, by two vjps, which every framework has.

        A vjp is linear in its cotangents, so its own vjp is the pushforward, wherever those cotangents are.
        """
        pull = self.pullback(function, inputs)
        zeros = [self.arrays.zeros_like(self.arrays.stop(y)) for y in function(*inputs)]
        return self.pullback(lambda *dys: pull(list(dys)), zeros)

    # ── loops, and what must hold ────────────────────────────────────────────────────────────────────────

    def loop(
        self,
        going: Callable[[list[Tensor]], Tensor],
        step: Callable[[list[Tensor]], list[Tensor]],
        state: list[Tensor],
    ) -> list[Tensor]:
        """Repeat a step on a list of tensors while a condition holds; also where values are not known."""
        while going(state):
            state = step(state)
        return state

    def repeat(
        self, count: int, step: Callable[[Any, list[Tensor]], list[Tensor]], state: list[Tensor]
    ) -> list[Tensor]:
        """Repeat a step a number of times; it is handed the number of those before it."""
        for i in range(count):
            state = step(i, state)
        return state

    def require(
        self, claim: Claim, holds: Tensor, numbers: Sequence[Tensor], values: list[Tensor]
    ) -> list[Tensor]:
        """Give values of which a claim holds; where it does not, raise, now or when they are computed."""
        if not holds:
            raise claim.error(numbers)
        return values

    # ── gradients by kind ────────────────────────────────────────────────────────────────────────────────

    def override(self, function: Any, gradients: Gradients) -> Any:
        """Give a function again, or a context where there is none, with other gradients by kind."""
        raise self.refused("override")

    def refused(self, job: str, found: str = "a host that does not offer it") -> HostError:
        """Say that a job is not done here."""
        return HostError.about(
            job,
            found=f"{self.name} arrays: {found}",
            expected="tensors of TensorFlow, JAX or PyTorch",
            fix="tf.constant(x), jnp.asarray(x) or torch.as_tensor(x)",
        )


@contextlib.contextmanager
def meeting(host: Host, keeps: Callable[[Met], bool] | None = None) -> Iterator[Meeting]:
    """Let a host run the bodies of rules without the rules; the list collects those that it meets."""
    with patched(host, bypassed=(met := Meeting(keeps))):
        yield met
