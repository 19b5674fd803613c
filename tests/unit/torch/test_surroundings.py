"""Where PyTorch runs its own operations, a rule runs as one of them: modes, hooks, checkpoints, devices."""

import gc
import weakref

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import pullback as pb


@pb.custom_gradient
def square(x):
    y = x * x

    def grad(dy):
        return 2 * x * dy

    return y, grad


@pb.custom_gradient
def exp(x):
    y = torch.exp(x)

    def grad(dy):
        return dy * y

    return y, grad


def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()


def test_nothing_is_recorded_where_nobody_differentiates():
    x = leaf(3)
    with torch.no_grad():
        assert square(x).grad_fn is None
    with torch.inference_mode():
        assert square(x).is_inference()
    assert square(x.detach()).grad_fn is None


def test_hooks_see_the_gradients():
    x = leaf(3)
    y = square(x)
    y.register_hook(lambda dy: 10 * dy)
    x.register_hook(lambda dx: dx + 1)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 20 * x.detach() + 1)


def test_retained_gradients_and_two_passes():
    x = leaf(3)
    y = exp(x)
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    torch.testing.assert_close(y.grad, torch.full_like(x, 2))
    torch.testing.assert_close(x.grad, 2 * torch.exp(x).detach())


@pytest.mark.parametrize("f", [square, exp])
def test_a_graph_that_was_gone_through_is_freed(f):
    x = leaf(3)
    y = f(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_residuals_are_freed_with_the_backward_pass():
    kept = []

    @pb.custom_gradient
    def f(x):
        residual = torch.cos(x)
        kept.append(weakref.ref(residual))

        def grad(dy):
            return dy * residual

        return torch.sin(x), grad

    x = leaf(3)
    y = f(x).sum()
    assert kept[0]() is not None
    y.backward()
    assert kept[0]() is None


@pytest.mark.parametrize("f", [square, exp, pb.elementwise(torch.exp, lambda x, output: output)])
def test_an_output_that_is_let_go_is_freed_at_once(f):
    gc.collect()
    gc.disable()
    try:
        y = f(leaf(3))
        known = weakref.ref(y)
        del y
        assert known() is None
    finally:
        gc.enable()


def test_saved_tensors_go_through_the_hooks():
    packed = []

    def pack(x):
        packed.append(tuple(x.shape))
        return x

    x = leaf(5)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = exp(x)
    assert packed == [(5,), (5,)]  # the input, and the output that `grad` keeps
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.exp(x).detach())


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_gives_the_same_gradients(reentrant):
    x = leaf(3)
    y = checkpoint(lambda x: exp(square(x)), x, use_reentrant=reentrant)
    y.sum().backward()
    torch.testing.assert_close(x.grad, (2 * x * torch.exp(x**2)).detach())


def test_a_checkpoint_keeps_no_residual():
    alive = []

    @pb.custom_gradient
    def f(x):
        residual = torch.cos(x)
        alive.append(weakref.ref(residual))
        return torch.sin(x), lambda dy: dy * residual

    x = leaf(3)
    y = checkpoint(lambda x: f(f(x)), x, use_reentrant=False)
    assert [known() for known in alive] == [None, None]
    y.sum().backward()
    torch.testing.assert_close(x.grad, (torch.cos(torch.sin(x)) * torch.cos(x)).detach())


@pb.custom_gradient
def matmul(a, b):
    def grad(dy):
        return dy @ b.T, a.T @ dy

    return a @ b, grad


def test_autocast_reaches_the_body_and_the_pullback():
    a, b = leaf(2, 3), leaf(3, 2)
    with torch.autocast("cpu", torch.bfloat16):
        y = matmul(a, b)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert a.grad.dtype == b.grad.dtype == torch.float32
    torch.testing.assert_close(a.grad, (torch.ones(2, 2) @ b.T).detach(), rtol=2e-2, atol=2e-2)


def test_autocast_around_the_backward_pass_only_changes_nothing():
    a, b = leaf(2, 3), leaf(3, 2)
    y = matmul(a, b)
    with torch.autocast("cpu", torch.bfloat16):
        y.sum().backward()
    torch.testing.assert_close(a.grad, (torch.ones(2, 2) @ b.T).detach())


def test_autocast_at_second_order():
    a, b = leaf(2, 3), leaf(3, 2)
    with torch.autocast("cpu", torch.bfloat16):
        y = (matmul(a, b).float() ** 2).sum()
    (da,) = torch.autograd.grad(y, a, create_graph=True)
    (db,) = torch.autograd.grad(da.sum(), b)
    want = torch.func.grad(lambda b: torch.func.grad(lambda a: ((a @ b) ** 2).sum())(a).sum())(b.detach())
    torch.testing.assert_close(db, want, rtol=0.1, atol=0.3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_every_floating_dtype(dtype):
    x = leaf(3, dtype=dtype)
    y = pb.custom_gradient(lambda x: (x * 3, lambda dy: 3 * dy))(x)
    y.backward(torch.ones_like(y))
    assert x.grad.dtype == dtype
    torch.testing.assert_close(x.grad, torch.full_like(x, 3))


def test_the_meta_device_knows_shapes_only():
    x = torch.empty(3, 4, device="meta", requires_grad=True)
    y = exp(x)
    y.sum().backward()
    assert y.is_meta
    assert x.grad.is_meta
    assert x.grad.shape == (3, 4)


class Labelled(torch.Tensor):
    pass


def test_a_subclass_stays_what_it_is():
    x = torch.ones(3).as_subclass(Labelled).requires_grad_()
    y = square(x)
    assert isinstance(y, Labelled)
    y.sum().backward()
    torch.testing.assert_close(torch.Tensor(x.grad), torch.full([3], 2.0))


def test_anomaly_mode_and_a_profiler():
    x = leaf(3)
    with torch.autograd.detect_anomaly(check_nan=True):
        square(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


test_anomaly_mode_and_a_profiler = pytest.mark.filterwarnings("ignore:Anomaly Detection")(
    test_anomaly_mode_and_a_profiler
)


def test_a_graph_shared_by_threads():
    import concurrent.futures

    x = leaf(64)
    y = exp(x).sum()

    def gradient(_):
        return torch.autograd.grad(y, x, retain_graph=True)[0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for g in pool.map(gradient, range(50)):
            torch.testing.assert_close(g, torch.exp(x).detach())


# ── random numbers ───────────────────────────────────────────────────────────────────────────────────────


def dropout():
    @pb.custom_gradient
    def f(x):
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)

        def grad(dy):
            return dy * mask * 2 * x

        return mask * x * x, grad

    return f


def test_a_second_derivative_draws_the_same_numbers():
    f, x = dropout(), torch.ones(64, requires_grad=True)
    for _ in range(2):
        y = f(x)
        after = torch.get_rng_state()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        assert torch.equal(h, 2 * y.detach())
        assert torch.equal(torch.get_rng_state(), after)


def test_transforms_draw_the_same_numbers():
    f, x = dropout(), torch.ones(64)

    def both(x):
        y = f(x)
        return y.sum(), y

    g, y = torch.func.grad(both, has_aux=True)(x)
    assert torch.equal(g, 2 * y)
    x.requires_grad_()
    y = torch.vmap(f, randomness="different")(x)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach())


def test_a_first_call_under_a_transform_draws_once():
    @pb.custom_gradient
    def f(x):
        return x * torch.rand_like(x), lambda dy: dy

    def drawn():
        torch.manual_seed(3)
        return torch.vmap(f, randomness="different")(torch.ones(8))

    assert torch.equal(drawn(), drawn())


def test_random_numbers_that_nobody_expected_are_refused_at_second_order():
    training = []

    @pb.custom_gradient
    def f(x):
        mask = torch.rand_like(x) if training else torch.ones_like(x)
        return mask * x * x, lambda dy: dy * mask * 2 * x

    x = torch.ones(4, requires_grad=True)
    f(x)
    training.append(True)
    with pytest.raises(pb.errors.SecondOrderError, match="random numbers"):
        torch.autograd.grad(f(x).sum(), x, create_graph=True)
    y = f(x)  # it is known now
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(g, 2 * y)
