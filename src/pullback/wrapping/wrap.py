"""`external`: the decorator, and the function that comes out of it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from pullback.define import function_of, intent_of
from pullback.errors import DefinitionError
from pullback.options import require_number, require_word
from pullback.plan import plan
from pullback.rule import Rule, at, name_of, rule_of, signature_of, source_of
from pullback.typed import Decorator, ExternalFunction, F, P, Y
from pullback.unconverted import unconverted
from pullback.wrapping import buffers
from pullback.wrapping.differences import SCHEMES, Scheme
from pullback.wrapping.function import External, Options
from pullback.wrapping.task import Function

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Given(TypedDict, total=False):
        """The options of `external`, for its overloads."""

        output: Any
        jacobian: Function | None
        partials: Function | Sequence[Function] | None
        gradient: str | None
        second: str | None
        step: float | None
        samples: int
        seed: int
        sparsity: Any
        batched: bool
        executor: Any
        timeout: float | None
        retries: int
        cache: int
        nan: str
        cast: bool
        accuracy: float | None
        like: Function | None
        differs: str | None


@overload
def external(function: Callable[P, Y], /, **options: Unpack[Given]) -> ExternalFunction[P, Y]: ...
@overload
def external(**options: Unpack[Given]) -> Callable[[Callable[P, Y]], ExternalFunction[P, Y]]: ...
@unconverted
def external(
    function: Function | None = None,
    /,
    *,
    output: Any = None,
    jacobian: Function | None = None,
    partials: Function | Sequence[Function] | None = None,
    gradient: str | None = None,
    second: str | None = None,
    step: float | None = None,
    samples: int = 1,
    seed: int = 0,
    sparsity: Any = None,
    batched: bool = False,
    executor: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    cache: int = 0,
    nan: str = "error",
    cast: bool = False,
    accuracy: float | None = None,
    like: Function | None = None,
    differs: str | None = None,
) -> Any:
    """Wrap a function of NumPy arrays as a differentiable operation of every framework.

    The function is called with read-only arrays where it was given tensors, and may do anything: call SciPy,
    C, another program, another machine. Its gradient is, in this order: `@f.pullback`, `@f.pushforward`,
    `jacobian`, `partials`, `gradient`. Without any, its value is there, and differentiating it is an error.

    Args:
        function: The function. It must be pure: compiled programs may call it more or less often.
        output: What it returns: a function of the arguments' specs (`lambda x, y: x` for "like x"), anything
            with a shape and a dtype, or a structure of these. Left out, the function is run once to see.
        jacobian: Called as the function is, and with `output` if it names it. Gives one block per argument:
            an array, a sparse matrix of SciPy, or an operator with `matvec` and `rmatvec`.
        partials: The partial derivatives of an elementwise function: one function, or one per argument.
        gradient: A difference scheme: `"central"`, `"forward"`, `"complex-step"` or `"spsa"`.
        second: `"central"` or `"forward"`: the second derivative by differences of the first. Left out, a
            second derivative is refused, unless the pullback is itself an external function.
        step: The relative step of differences, instead of one that follows from the measured noise.
        samples: The number of random directions of `"spsa"`.
        seed: Their seed.
        sparsity: Which outputs (rows) depend on which elements of the arguments (columns): a matrix, or a
            function of the arguments' specs that gives one. Differences then move many columns at a time; a
            pattern that misses an entry is found along a random direction, and refused.
        batched: Whether the function, its pullback and its pushforward take a leading batch axis on every
            array: a batch is then one call.
        executor: A `concurrent.futures.Executor`, or a function that makes one, for batches and differences.
        timeout: Seconds that one call may take, here and in a worker; half a minute more where a worker does
            not answer.
        retries: How often a call that failed or took too long is tried again.
        cache: How many results are remembered by the content of the arguments, and by the numbers, strings
            and functions that it reads by name; `f.cache` counts the hits. It does not see a list, an array
            or an object that is read by name (`f.cache.unseen` lists them), nor what other functions read:
            `f.cache.clear()` when such a thing changes. An object without a value is no argument for it.
        nan: `"error"` or `"allow"`.
        cast: Whether an output of another dtype is cast instead of refused.
        accuracy: How exact the gradient claims to be, relatively, for the checker: an adjoint that is solved
            to a tolerance has no more digits than that. Differences claim theirs of themselves.
        like: The function whose derivative the gradient is, when it is not that of the function.
        differs: Why the gradient is another one on purpose.

    Example:
        >>> import numpy as np, pullback as pb, tensorflow as tf
        >>> @pb.external(output=lambda x: x)
        ... def cube(x):
        ...     return x**3
        >>> @cube.pullback
        ... def _(dy, x):
        ...     return dy * 3 * x**2
        >>> x = tf.constant([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = cube(x)
        >>> tape.gradient(y, x).numpy().tolist()
        [3.0, 12.0]

    Do not use it for what the framework can compute itself: that is faster, and compiles.
    """
    if function is None:
        given = {k: v for k, v in locals().items() if k != "function"}
        return functools.partial(external, **given)
    where = at(name_of(function), source_of(function))
    _check(where, function, jacobian, partials, sparsity, gradient)
    for word, value, known in (("gradient", gradient, SCHEMES), ("second", second, SCHEMES[:2])):
        if value is not None:
            require_word(where, word, value, known)
    require_word(where, "nan", nan, ("error", "allow"))
    require_number(where, "samples", samples, least=1, fix="samples=8")
    require_number(where, "retries", retries, least=0, fix="retries=2")
    require_number(where, "step", step, least=0, above=True, fix="leave it out, or 1e-4")
    require_number(where, "accuracy", accuracy, least=0, above=True, fix="leave it out, or 1e-6")
    require_number(where, "timeout", timeout, least=0, above=True, fix="leave it out, or 60.0")
    intent = intent_of(where, like, differs)
    if second is not None and intent.kind == "differs":
        raise DefinitionError.about(
            where,
            found="second= and differs=",
            expected="a gradient that is a derivative",
            why="differences of it along one direction are its second derivative only if that is symmetric",
            fix="give the pullback as an external function with a pullback of its own",
        )
    roles: dict[str, Function] = {}
    if jacobian is not None:
        roles["jacobian"] = jacobian
    if partials is not None:
        roles["partials"] = partials if callable(partials) else AllPartials(list(partials))
    options = Options(
        output=output,
        scheme=None if gradient is None else Scheme(gradient, step, samples, seed),
        second=None if second is None else Scheme(second, step),
        sparsity=sparsity,
        batched=batched,
        executor=executor,
        timeout=timeout,
        retries=retries,
        cache=cache,
        allow_nan=nan == "allow",
        cast=cast,
    )
    held = External(function, roles, options, where)
    claimed = held.accuracy if accuracy is None else accuracy
    rule = dataclasses.replace(rule_of(function, held.intent(intent)), accuracy=claimed)
    return external_of(held, rule, intent)


def _body(held: External, function: Function) -> Function:
    """Make what runs the function on tensors, without its gradient."""

    @functools.wraps(function, updated=())
    def body(*args: Any, **kwargs: Any) -> Any:
        from pullback.wrapping.operation import bare

        made, tensors = plan(held.rule, args, kwargs)
        values, layout = bare(held.site(made), made.host, tensors)
        return layout.outputs.filled(values)

    return body


def external_of(held: External, rule: Rule, declared: Any) -> ExternalFunction[..., Any]:
    """Make the function that users call, with the decorators for its gradient."""
    rule = dataclasses.replace(rule, body=_body(held, held.role("function")), order=held.order)
    made = cast("ExternalFunction[..., Any]", function_of(rule, held.apply))
    held.rule = rule

    def taking(role: str) -> Decorator:
        def take(function: F) -> F:
            if not callable(function):
                raise DefinitionError.about(
                    rule.where,
                    found=f"its {role} is a {type(function).__name__}",
                    expected="a function of NumPy arrays",
                    fix=f"@{rule.name}.{role}\ndef _({'dy' if role == 'pullback' else 'dx'}, x):\n"
                    "    return …",
                )
            held.take(role, function)
            held.rule = dataclasses.replace(rule, order=held.order, intent=held.intent(declared))
            made.rule = held.rule
            return function

        return take

    vars(made)["external"] = held
    made.cache = held.cache
    made.pullback = taking("pullback")
    made.pushforward = taking("pushforward")
    return made


class AllPartials:
    """Several partial derivatives as one function."""

    def __init__(self, partials: list[Function]) -> None:
        self.partials = partials
        names = list(dict.fromkeys(n for p in partials for n in signature_of(p).parameters))
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        given = self.__signature__.bind_partial(*args, **kwargs).arguments
        begun = buffers.begin()
        return tuple(
            buffers.own([p(*(given[n] for n in signature_of(p).parameters))], begun) for p in self.partials
        )


def _check(
    where: str, function: Any, jacobian: Any, partials: Any, sparsity: Any, gradient: str | None
) -> None:
    listed = list(partials) if isinstance(partials, (list, tuple)) else [partials]
    wrong = [
        (name, value)
        for name, value in [
            ("function", function),
            ("jacobian", jacobian),
            *(("partials", p) for p in listed),
        ]
        if not callable(value) and not (value is None and name != "function")
    ]
    if wrong:
        name, value = wrong[0]
        raise DefinitionError.about(
            "external" if name == "function" else where,
            found=f"{name} is a {type(value).__name__}",
            expected="a function of NumPy arrays",
            fix="@pb.external(output=lambda x: x)\ndef f(x):\n    return …",
        )
    if sparsity is not None and gradient in (None, "spsa"):
        raise DefinitionError.about(
            where,
            found="sparsity= without a difference scheme that measures columns",
            expected='gradient="central", "forward" or "complex-step" beside it',
            fix='gradient="central"',
        )
