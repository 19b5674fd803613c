"""Whoever shows the graph shows the user's function."""

import gc
import weakref

import pytest
import torch

import pullback as pb


@pb.custom_gradient
def square(x):
    def grad(dy):
        return 2 * x * dy

    return x * x, grad


@pb.custom_gradient
def halves(x):
    return x / 2, x / 3, lambda da, db: da / 2 + db / 3


@pb.custom_gradient
def broken(x):
    return x * 1, lambda dy: dy * float("nan")


def leaf():
    return torch.ones(3, requires_grad=True)


def test_the_node_of_a_call_has_the_name_of_the_function():
    x = leaf()
    for _ in range(3):  # listened to, and not
        assert square(x).grad_fn.name() == "squareBackward"
        assert [y.grad_fn.name() for y in halves(x)] == ["halvesBackward"] * 2
    assert pb.clip_gradient(x, value=1.0).grad_fn.name() == "clip_gradientBackward"
    assert "squareBackward" in str(square(x))


def test_every_name_has_its_own_node_and_one_only():
    x = leaf()
    assert type(square(x).grad_fn) is type(square(x).grad_fn)
    assert type(square(x).grad_fn) is not type(broken(x).grad_fn)

    def made():
        @pb.custom_gradient
        def f(x):
            return x * 3, lambda dy: dy * 3

        return f

    assert type(made()(x).grad_fn) is type(made()(x).grad_fn)


def test_a_node_holds_no_rule():
    f = pb.custom_gradient(lambda x: (x * 3, lambda dy: dy * 3))
    for _ in range(3):
        f(leaf())
    rule = weakref.ref(f.rule)
    del f
    gc.collect()
    assert rule() is None


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("calls", [0, 2])
def test_anomaly_mode_names_the_function(calls):
    for _ in range(calls):
        broken(leaf())
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'brokenBackward' returned nan"):
        broken(leaf()).sum().backward()


def test_a_profiler_names_the_function():
    x = leaf()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        square(x).sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert {"square", "squareBackward"} <= names


def test_transforms_name_the_function():
    seen = []

    def f(x):
        y = square(x)
        seen.append(y.grad_fn.name())
        return y.sum()

    torch.func.grad(f)(torch.ones(3))
    assert seen == ["squareBackward"]
