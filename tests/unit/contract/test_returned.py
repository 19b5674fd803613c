"""What `grad` returned is judged alike on every host, eagerly and compiled."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb


def by_tape(function, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return tape.gradient(y, inputs)


def by_tape_inside(function, *inputs):
    return tf.function(functools.partial(by_tape, function))(*inputs)


def by_tape_outside(function, *inputs):
    return by_tape(tf.function(function), *inputs)


def by_vjp(function, *inputs):
    y, pull = jax.vjp(function, *inputs)
    return pull(jnp.ones_like(y))


def by_jit(function, *inputs):
    return jax.jit(functools.partial(by_vjp, function))(*inputs)


def by_backward(function, *inputs):
    inputs = [x.detach().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*inputs).sum(), inputs, allow_unused=True)


def by_backward_again(function, *inputs):
    """The first call of a rule is listened to; the next takes a shorter way."""
    function(*[x.detach().requires_grad_() for x in inputs])
    return by_backward(function, *inputs)


def by_func(function, *inputs):
    y, pull = torch.func.vjp(function, *inputs)
    return pull(torch.ones_like(y))


MODES = {
    by_tape: tf.constant,
    by_tape_inside: tf.constant,
    by_tape_outside: tf.constant,
    by_vjp: jnp.asarray,
    by_jit: jnp.asarray,
    by_backward: torch.tensor,
    by_backward_again: torch.tensor,
    by_func: torch.tensor,
}


@pytest.fixture(params=MODES, ids=lambda mode: mode.__name__)
def gradient(request):
    """Give a function's gradients at the same numbers, by each way to differentiate."""

    def gradient(function, count=1):
        inputs = [MODES[request.param]([1.0, -2.0, 3.0]) for _ in range(count)]
        return [None if g is None else np.asarray(g).tolist() for g in request.param(function, *inputs)]

    return gradient


NOTHING = ([None], [[0.0, 0.0, 0.0]])  # as each framework says it


def doubled(grad):
    """Make a rule of a gradient."""

    @pb.custom_gradient
    def double(x):
        return 2 * x, grad

    return double


def ends_in_a_branch(dy):  # noqa: RET503 (the mistake)
    if dy.shape[0] == 7:
        return 2 * dy


def ends_behind_a_loop(dy):  # noqa: RET503 (the mistake)
    for length in dy.shape:
        if length == 7:
            return 2 * dy


def none_in_a_branch(dy):
    if dy.shape[0] == 7:
        return 2 * dy
    return None


def none_behind_a_loop(dy):
    for length in dy.shape:
        if length == 7:
            return 2 * dy
    return None


def bare_in_a_branch(dy):
    if dy.shape[0] == 3:
        return None
    return 2 * dy


@pytest.mark.parametrize("grad", [ends_in_a_branch, ends_behind_a_loop])
def test_a_path_without_a_return_is_refused(gradient, grad):
    with pytest.raises(pb.errors.CotangentCountError, match=rf"`{grad.__name__}` returned nothing"):
        gradient(doubled(grad))


@pytest.mark.parametrize("grad", [none_in_a_branch, none_behind_a_loop, bare_in_a_branch, lambda dy: None])
def test_none_that_was_written_is_no_gradient(gradient, grad):
    assert gradient(doubled(grad)) in NOTHING


def test_a_gradient_that_is_made_inside_the_traced_function_is_read_too(gradient):
    def refused(x):
        @pb.custom_gradient
        def double(x):
            def grad(dy):  # noqa: RET503 (the mistake)
                if dy.shape[0] == 7:
                    return 2 * dy

            return 2 * x, grad

        return double(x)

    def allowed(x):
        @pb.custom_gradient
        def double(x):
            def grad(dy):
                if dy.shape[0] == 7:
                    return 2 * dy
                return None

            return 2 * x, grad

        return double(x)

    with pytest.raises(pb.errors.CotangentCountError, match="without a return statement"):
        gradient(refused)
    assert gradient(allowed) in NOTHING


def test_none_for_one_of_two_arguments_is_no_mistake(gradient):
    @pb.custom_gradient
    def product(a, b):
        def grad(dy):
            return None, dy * a

        return a * b, grad

    assert gradient(product, 2)[1] == [1.0, -2.0, 3.0]


@pytest.mark.parametrize("replace", [pb.with_gradient, pb.elementwise])
def test_a_replacement_whose_gradient_runs_off_is_refused(gradient, replace):
    def nothing(v):
        print(v)

    with pytest.raises(pb.errors.CotangentCountError, match="`nothing` returned nothing"):
        gradient(replace(lambda x: 2 * x, nothing))


@pytest.mark.parametrize("function", [ends_in_a_branch, none_in_a_branch, print])
def test_a_mapped_gradient_is_never_none(gradient, function):
    with pytest.raises(pb.errors.CotangentCountError, match=rf"`{function.__name__}` returned nothing"):
        gradient(lambda x: pb.map_gradient(2 * x, function))


class Thing:
    pass


WRONG = {
    "a str": "2x",
    "an array of Python objects": np.array([1, None, 2], object),
    "an array of strings": np.array(["a", "b", "c"]),
    "the class Thing": Thing,
    "a Thing": Thing(),
    "a bool": True,
    np.dtype(np.longdouble).name: np.ones(3, np.longdouble),
    "a set": {1.0},
}


@pytest.mark.parametrize("found", WRONG)
def test_what_is_no_tensor_is_refused_by_name(gradient, found):
    def grad(dy):
        return WRONG[found]

    with pytest.raises(pb.errors.CotangentDtypeError, match=rf"`grad` returned .*{found} for argument `x`"):
        gradient(doubled(grad))


@pytest.mark.parametrize("foreign", [np.ones, torch.ones, jnp.ones, tf.ones])
def test_a_cotangent_of_another_framework_is_refused_and_numpy_is_none(gradient, foreign):
    with tf.init_scope():
        ones = foreign(3)

    def grad(dy):
        return ones

    rule = doubled(grad)
    own = pb.hosts.of(ones)
    hosts = []

    @pb.custom_gradient
    def asked(x):
        hosts.append(pb.hosts.of(x))
        return x * 1.0, lambda dy: dy

    gradient(asked)
    if own in (hosts[0], pb.hosts.NUMPY):
        assert gradient(rule) == [[1.0, 1.0, 1.0]]
    else:
        text = f"`grad` returned a {own.name} tensor for argument `x`, among {hosts[0].name} tensors"
        with pytest.raises(pb.errors.HostError, match=text):
            gradient(rule)


@pytest.mark.parametrize("kind", [Thing, int, tf.Module])
def test_a_class_in_the_place_of_grad_is_refused(gradient, kind):
    with pytest.raises(pb.errors.MissingGradError, match=f"the last the class {kind.__name__}"):
        gradient(doubled(kind))


def test_a_fix_never_uses_the_name_of_the_incoming_cotangent(gradient):
    @pb.custom_gradient
    def product(x, y):
        def grad(dy):
            return dy * y

        return x * y, grad

    with pytest.raises(pb.errors.CotangentCountError, match="fix: return grad_x, grad_y "):
        gradient(product, 2)


def test_an_if_on_a_tensor_returns_in_both_branches():
    """Eagerly the branch is left open only where it is not taken; a graph has both."""

    @pb.custom_gradient
    def double(x):
        def grad(dy):  # noqa: RET503 (the mistake)
            if tf.reduce_sum(dy) > 0:
                return 2 * dy

        return 2 * x, grad

    x = tf.constant([1.0, 2.0])
    with pytest.raises(pb.errors.CotangentCountError, match="without a return statement"):
        by_tape(lambda x: -double(x), x)
    for mode in (by_tape_inside, by_tape_outside):
        with pytest.raises(pb.errors.CotangentCountError, match="in one of its branches only"):
            mode(double, x)
