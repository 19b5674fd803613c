"""What replacements promise beyond numbers, in JAX and PyTorch; the numbers are in the conformance suite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import pullback as pb


def torch_gradient(function, x):
    x = torch.as_tensor(x).detach().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


GRADIENTS = {
    "jax": (jnp.asarray, lambda f, x: jax.grad(lambda x: f(x).sum())(x)),
    "torch": (lambda x: torch.as_tensor(np.asarray(x)), torch_gradient),
}


@pytest.fixture(params=GRADIENTS)
def host(request):
    return GRADIENTS[request.param]


def test_nan_and_infinity_are_taken_out_and_said(host, capsys):
    make, gradient = host
    bad = make(np.array([1.0, np.nan, np.inf], np.float32))
    got = gradient(lambda x: pb.finite_gradient(x, label="weights") * bad, make(np.ones(3, np.float32)))
    assert np.asarray(got).tolist() == [1.0, 0.0, 0.0]
    assert "in the gradient of weights to zero: 2 of 3 values" in capsys.readouterr().err


def test_nan_is_counted_in_jax_eagerly_and_compiled():
    lost = np.zeros((), int)

    def f(x):
        return (pb.finite_gradient(x, counter=lost) * jnp.array([1.0, jnp.nan, jnp.inf])).sum()

    jax.grad(f)(jnp.ones(3))
    jax.effects_barrier()
    assert lost == 2
    jax.jit(jax.grad(f))(jnp.ones(3)).block_until_ready()
    jax.effects_barrier()
    assert lost == 4


def test_a_counter_that_cannot_count_is_refused_in_jax():
    with pytest.raises(pb.errors.OptionError, match="counter is a "):
        jax.grad(lambda x: pb.finite_gradient(x, counter=jnp.zeros((), int)).sum())(jnp.ones(3))


def test_nan_is_counted_in_torch():
    lost = torch.zeros((), dtype=torch.int64)
    bad = torch.tensor([1.0, torch.nan, torch.inf])
    torch_gradient(lambda x: pb.finite_gradient(x, counter=lost) * bad, torch.ones(3))
    assert lost == 2


def test_a_forbidden_gradient_raises_with_its_reason(host):
    make, gradient = host
    with pytest.raises(pb.errors.ForbiddenGradientError, match="why: labels are no parameters"):
        gradient(
            lambda x: pb.forbid_gradient(x, reason="labels are no parameters"), make(np.ones(3, np.float32))
        )


def test_a_value_that_is_forbidden_to_differentiate_can_be_used(host):
    make, _ = host
    assert np.asarray(pb.forbid_gradient(make(np.ones(2)))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("strength", [2.0, lambda: 2.0], ids=["number", "schedule"])
def test_a_reversed_gradient(host, strength):
    make, gradient = host
    got = gradient(lambda x: pb.reverse_gradient(x, strength) * 3.0, make(np.ones(2, np.float32)))
    assert np.asarray(got).tolist() == [-6.0, -6.0]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "options", [{"value": 0.5}, {"norm": 1.0}, {"adaptive": 0.1, "each": "unit"}], ids=str
)
def test_a_clipped_gradient_keeps_its_dtype(host, dtype, options):
    make, gradient = host
    x = make(np.ones((2, 3), dtype))
    got = gradient(lambda x: pb.clip_gradient(x, **options) * 4.0, x)
    assert got.dtype == x.dtype
    assert float(abs(np.asarray(got, np.float32)).max()) < 4.0


def test_the_weights_of_a_module_keep_their_gradients_under_with_gradient():
    layer = torch.nn.Linear(2, 1)
    f = pb.with_gradient(layer, lambda dy, output: dy @ layer.weight.detach() * 10, differs="ten times")
    x = torch.ones(3, 2, requires_grad=True)
    f(x).sum().backward()
    torch.testing.assert_close(x.grad, 10 * layer.weight.detach().expand(3, 2))
    torch.testing.assert_close(layer.weight.grad, torch.full((1, 2), 3.0))


def test_the_weights_of_a_module_are_trained_through_a_straight_through_function():
    layer = torch.nn.Linear(2, 1, bias=False)
    quantise = pb.straight_through(torch.round)
    quantise(layer(torch.ones(1, 2))).sum().backward()
    torch.testing.assert_close(layer.weight.grad, torch.ones(1, 2))


def test_a_surrogate_closes_over_what_is_differentiated_in_jax():
    def loss(k):
        spike = pb.surrogate(lambda v: jnp.where(v > 0, 1.0, 0.0), like=lambda v: jax.nn.sigmoid(k * v))
        return spike(jnp.asarray(2.0))

    s = jax.nn.sigmoid(3.0 * 2.0)
    np.testing.assert_allclose(jax.grad(loss)(3.0), 2.0 * s * (1 - s), rtol=1e-6)


def test_replacements_in_a_scanned_and_compiled_loop_of_jax():
    def step(v, x):
        spike = pb.heaviside(v - 1.0)
        return v * 0.5 + x - spike, spike

    def count(xs):
        return jax.lax.scan(step, jnp.asarray(0.0), xs)[1].sum()

    xs = jnp.array([0.5, 1.0, 1.5])
    eager = jax.grad(count)(xs)
    assert np.all(np.isfinite(eager))
    assert np.any(np.asarray(eager) != 0)
    np.testing.assert_allclose(jax.jit(jax.grad(count))(xs), eager, rtol=1e-6)
