"""What goes wrong in a user's function is said in the user's own words, in every framework."""

import ctypes
import traceback

import numpy as np
import pytest
import tensorflow as tf
from frameworks import EVERYWHERE, vjp

import pullback as pb
from pullback.errors import ExternalError, ExternalMutationError, ExternalOutputError

X = np.array([1.0, 2.0, 3.0])


class UnstableError(Exception):
    pass


def raises(kind, framework, compiled, match="."):
    """Expect an error; compiled, two frameworks have a class of their own for it, with our text."""
    if compiled and framework != "torch":
        return pytest.raises(Exception, match=f"(?s){kind.__name__}.*{match}")
    return pytest.raises(kind, match=match)


def with_pullback(function, pullback=lambda dy, x: dy, **options):
    f = pb.external(function, **({"output": lambda x: x} | options))
    f.pullback(pullback)
    return f


def deep_down(x):
    raise UnstableError("the pressure is negative")


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_an_exception_crosses_the_border_with_its_traceback(framework, compiled):
    f = with_pullback(lambda x: deep_down(x))
    with raises(ExternalError, framework, compiled) as caught:
        vjp(framework, f, X, compiled=compiled)
    text = str(caught.value)
    assert "UnstableError: the pressure is negative" in text
    assert "in deep_down" in text
    assert "test_guard.py" in text
    if not compiled:
        assert "site-packages" not in text
        assert "pullback/external" not in text


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_an_exception_in_a_pullback_crosses_it_too(framework):
    with pytest.raises(ExternalError, match="UnstableError"):
        vjp(framework, with_pullback(lambda x: x * 2, lambda dy, x: deep_down(x)), X)


def test_the_exception_itself_is_the_cause():
    with pytest.raises(ExternalError) as caught:
        with_pullback(deep_down)(X)
    assert isinstance(caught.value.__cause__, UnstableError)
    assert any(
        frame.name == "deep_down" for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)
    )


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
def test_writing_to_an_argument_is_refused(framework, compiled):
    def f(x):
        x[0] = 7.0
        return x

    with raises(ExternalMutationError, framework, compiled, match=r"x\.copy\(\)"):
        vjp(framework, with_pullback(f), X, compiled=compiled)


def test_code_that_ignores_the_flag_is_caught_at_its_first_call():
    def f(x):
        address = x.__array_interface__["data"][0]
        ctypes.cast(address, ctypes.POINTER(ctypes.c_double))[0] = 7.0
        return x * 2

    with pytest.raises(ExternalMutationError, match="`x`"):
        with_pullback(f)(X.copy())


@pytest.mark.parametrize(("framework", "compiled"), EVERYWHERE)
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x[:2], r"shape \(2,\)"),
        (lambda x: x.astype(np.float32), "float32"),
        (lambda x: (x, x), "a tuple of 2"),
        (lambda x: None, "nothing"),
        (lambda x: np.where(x > 1, x, np.nan), "is NaN at index 0"),
    ],
)
def test_a_wrong_output_is_refused(framework, compiled, function, words):
    with raises(ExternalOutputError, framework, compiled, match=words):
        vjp(framework, with_pullback(function), X, compiled=compiled)


def test_an_output_is_cast_when_that_is_asked_for():
    assert with_pullback(lambda x: x.astype(np.float32), cast=True)(X).dtype == np.float64


def test_a_complex_output_is_never_cast_to_a_real_one():
    with pytest.raises(ExternalOutputError, match="complex128"):
        with_pullback(lambda x: x + 1j, cast=True)(X)


def test_a_python_number_has_any_dtype():
    f = pb.external(lambda x: float(x.sum()), output=lambda x: x.replace(shape=()))
    assert f(tf.constant([1.0, 2.0])).dtype == tf.float32


def test_nan_is_let_through_when_that_is_asked_for():
    assert np.isnan(with_pullback(lambda x: x * np.nan, nan="allow")(X)).all()


def test_a_nan_that_came_in_is_told_apart():
    with pytest.raises(ExternalOutputError, match="so is one of its inputs"):
        with_pullback(lambda x: x * 2)(np.array([np.nan]))


def test_a_nan_in_a_gradient_is_refused():
    with pytest.raises(ExternalOutputError, match="pullback"):
        vjp("tensorflow", with_pullback(lambda x: x, lambda dy, x: dy * np.nan), X)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_arguments_are_the_memory_of_the_framework(framework):
    import jax.numpy as jnp
    import torch

    make = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.tensor}[framework]
    tensor = make(np.ones(1000, np.float32))
    seen = []
    f = pb.external(lambda x: seen.append(x) or x.sum(), output=lambda x: x.replace(shape=()))
    f(tensor)
    assert not seen[0].flags.writeable
    assert np.shares_memory(seen[0], np.asarray(tensor))


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_a_workspace_that_is_used_again_does_not_change_results(framework):
    workspace = np.empty(1000)

    def f(x):
        np.multiply(x, 2, out=workspace)
        return workspace

    g = with_pullback(f)
    first, _ = vjp(framework, g, np.ones(1000))
    second, _ = vjp(framework, g, np.full(1000, 2.0))
    assert first[0] == 2
    assert second[0] == 4
