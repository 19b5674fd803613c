"""Every error that pullback raises.

    PullbackError
    ├── DefinitionError          what the decorator was given
    ├── ContractError            what the body or `grad` returned
    │   ├── MissingGradError         the body returned no `grad`
    │   ├── GradSignatureError       `grad` cannot take the cotangents
    │   ├── CotangentCountError      one too few, one too many, or an unknown argument name
    │   ├── CotangentShapeError      not the shape of its input
    │   ├── CotangentDtypeError      complex for real, or no number at all
    │   ├── CapturedTensorError      a differentiated tensor came in through a closure
    │   ├── CapturedVariableError    a captured variable, and `grad` takes no `variables=`
    │   ├── OutputError              an output that no gradient can flow through
    │   ├── VectorConditionError     one condition for a whole vector
    │   ├── SurrogateError           the surrogate has other outputs than the function
    │   └── SolutionError            a solution does not satisfy its condition, or has no derivative
    ├── InputError               what the rule was called with
    │   ├── NoTensorError            no tensor among the arguments
    │   ├── UnsupportedInputError    ragged, sparse, or a dtype without arithmetic
    │   └── OptionError              a number or a word that an option cannot be
    ├── DerivativeError          a derivative that does not exist
    │   ├── SecondOrderError         refused by `order=1`, or not derivable
    │   ├── ForwardModeError         the pullback is not linear
    │   └── ForbiddenGradientError   refused by `forbid_gradient`
    │       └── ExternalGradientError    an external function without a gradient, or with one that fails
    ├── ConfigurationError       a configuration or a comment that cannot be read
    ├── WrongGradientError       a check found that a gradient is not what it claims to be
    ├── HostError                a framework that is missing, too old, or mixed with another
    ├── OverrideError            nothing to override, or no operation
    └── ExternalError            a function outside the framework failed, or cannot run there
        ├── ExternalOutputError      it returned something else than it said, or a NaN
        ├── ExternalMutationError    it wrote to its arguments
        └── ExternalTimeoutError     it took too long

One class is one section of `docs/errors.md`; `anchor` names it, and `pullback explain` shows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

_Error = TypeVar("_Error", bound="PullbackError")


class PullbackError(Exception):
    """Base of all errors of pullback."""

    if not TYPE_CHECKING:  # of a class whose `__init__` is a variable mypy knows nothing
        # AutoGraph re-creates an exception from its text, and keeps its class only if `__init__` is this very
        # object. Without this line the built-in bases below would bring their own.
        __init__ = Exception.__init__

    @classmethod
    def anchor(cls) -> str:
        """Name the section of `docs/errors.md` that explains this error."""
        words = re.findall(r"[A-Z][a-z]*", cls.__name__.removesuffix("Error"))
        return "-".join(words).lower()

    @classmethod
    def about(
        cls: type[_Error], where: str, *, found: str, expected: str, why: str = "", fix: str = ""
    ) -> _Error:
        """Build the error from its parts, always in the same order.

        `where` names the user's function and its source line.
        """
        lines = [f"{where}: {found}", f"  expected: {expected}"]
        if why:
            lines.append(f"  why: {why}")
        if fix:
            lines.append("  fix: " + fix.replace("\n", "\n       "))
        lines.append(f"  read: pullback explain {cls.__name__}")
        return cls("\n".join(lines))


class DefinitionError(PullbackError, TypeError):
    """The decorator was given something that is no rule."""


class ContractError(PullbackError):
    """The body or `grad` broke the contract."""


class MissingGradError(ContractError, TypeError):
    """The body returned no `grad`."""


class GradSignatureError(ContractError, TypeError):
    """`grad` cannot take one cotangent per output."""


class CotangentCountError(ContractError, ValueError):
    """`grad` returned another number of cotangents than there are arguments."""


class CotangentShapeError(ContractError, ValueError):
    """A cotangent has not the shape of its input."""


class CotangentDtypeError(ContractError, TypeError):
    """A cotangent cannot be a number of its input's kind."""


class CapturedTensorError(ContractError, ValueError):
    """A tensor that is being differentiated reaches the body through a closure."""


class CapturedVariableError(ContractError, TypeError):
    """The body uses a trainable variable, and `grad` has no place for its gradient."""


class OutputError(ContractError, TypeError):
    """The body returned an output that no gradient can flow through."""


class VectorConditionError(ContractError, ValueError):
    """One condition was asked of a whole vector."""


class SurrogateError(ContractError, ValueError):
    """The surrogate has other outputs than the function that it stands for."""


class SolutionError(ContractError, ArithmeticError):
    """A solution does not satisfy its condition, or a linear system of its derivative has none."""


class InputError(PullbackError):
    """The rule was called with something it cannot take."""


class NoTensorError(InputError, TypeError):
    """No argument is a tensor."""


class UnsupportedInputError(InputError, TypeError):
    """An argument is ragged, sparse or of a dtype without arithmetic."""


class OptionError(InputError, ValueError):
    """An option was given a number or a word that it cannot be."""


class DerivativeError(PullbackError):
    """A derivative was asked for that does not exist."""


class SecondOrderError(DerivativeError, NotImplementedError):
    """The second derivative is refused or cannot be derived."""


class ForwardModeError(DerivativeError, NotImplementedError):
    """Forward mode is refused: the pullback is not linear."""


class ForbiddenGradientError(DerivativeError, RuntimeError):
    """Somebody differentiated what `forbid_gradient` guards."""


class ExternalGradientError(ForbiddenGradientError):
    """An external function was differentiated that has no gradient, or whose scheme cannot give one."""


class ConfigurationError(PullbackError, ValueError):
    """A configuration file, or a declaration in a comment, says what cannot be meant."""


class WrongGradientError(PullbackError, AssertionError):
    """A gradient is not what it claims to be."""


class HostError(PullbackError, RuntimeError):
    """A framework is missing, too old, or mixed with another."""


class OverrideError(PullbackError, ValueError):
    """An override matched nothing, or names something that is no operation."""


class ExternalError(PullbackError, RuntimeError):
    """A function that runs outside the framework failed, or cannot run where it was put."""


class ExternalOutputError(ExternalError, ValueError):
    """An external function returned another structure, shape or dtype than it said, or a NaN."""


class ExternalMutationError(ExternalError, ValueError):
    """An external function wrote to its arguments."""


class ExternalTimeoutError(ExternalError, TimeoutError):
    """An external function gave no result within its time."""


class DriftWarning(UserWarning):
    """A chain of reversible blocks did not recover its inputs: its gradients go wrong."""
