"""Named places in PyTorch: the gradient that flows there is what the log has."""

import numpy as np
import pytest
import torch
from rows import FAR, LARGE, ODD, expect, expect_sampled
from torch.utils.checkpoint import checkpoint

import pullback as pb
from pullback.watching import torch as on_torch

W = torch.tensor(np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32))
X = torch.tensor(np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32))


def loss(x, w):
    h = torch.tanh(x @ w)
    return pb.watch(h, "hidden").square().sum()


def by_hand(x, w):
    return 2 * torch.tanh(x @ w)  # of the loss with respect to the hidden values


compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
WAYS = {
    "backward": lambda: loss(X, W.clone().requires_grad_()).backward(),
    "torch.func.grad": lambda: torch.func.grad(loss, argnums=1)(X, W),
    "checkpoint": lambda: checkpoint(loss, X, W.clone().requires_grad_(), use_reentrant=False).backward(),
    "compiled": lambda: compiled(X, W.clone().requires_grad_()).backward(),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_heard_in_every_way_it_is_taken(way):
    with pb.watch() as log:
        WAYS[way]()
    assert log.names == ["hidden"]
    (record,) = log["hidden"]
    expect(record, by_hand(X, W))
    assert record.step == 0
    assert log["hidden"].none == 0


def test_a_batch_of_gradients_is_one_record():
    xs = torch.stack([X, 2 * X])
    with pb.watch() as log:
        torch.func.vmap(torch.func.grad(loss, argnums=1), (0, None))(xs, W)
    (record,) = log["hidden"]
    expect(record, by_hand(xs, W))


def test_forward_mode_passes_and_is_not_heard():
    with pb.watch() as log:
        value, tangent = torch.func.jvp(lambda w: loss(X, w), (W,), (W,))
    plain = torch.func.jvp(lambda w: torch.tanh(X @ w).square().sum(), (W,), (W,))
    torch.testing.assert_close((value, tangent), plain)
    assert len(log) == 0


@pytest.fixture(params=[True, False], ids=["handed over", "computed where it is"])
def either_way(request, monkeypatch):
    monkeypatch.setattr(on_torch, "HANDS_OVER", request.param)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_every_number_of_a_row(dtype):
    with np.errstate(over="ignore"):
        gradient = torch.tensor(ODD).to(dtype)
    x = torch.zeros(len(ODD), dtype=dtype, requires_grad=True)
    with pb.watch() as log:
        pb.watch(x, "odd").backward(gradient)
    expect(log["odd"][0], gradient.to(torch.float64 if dtype == torch.float64 else torch.float32))


@pytest.mark.usefixtures("either_way")
def test_complex_sparse_empty_and_integer():
    with pb.watch() as log:
        z = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
        pb.watch(z, "complex").backward(torch.tensor([3 + 4j, -1j]))
        empty = torch.zeros(0, requires_grad=True)
        pb.watch(empty, "empty").sum().backward()
        whole = torch.arange(3)
        assert pb.watch(whole, "whole") is whole
        log.look(torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (4,), check_invariants=False), "sparse")
        log.look(torch.tensor([1 + 2j, 3 - 4j]).conj().imag, "negated when it is read")
    expect(log["negated when it is read"][0], np.array([-2, 4], np.float32))
    expect(log["complex"][0], np.array([3 + 4j, -1j], np.complex64))
    assert log["empty"][0].size == 0
    assert log["sparse"][0].norm == 5.0
    assert "whole" not in log


def test_each_nth_gradient_is_kept():
    with pb.watch(every=3) as log:
        for factor in range(1, 8):
            loss(X * factor, W.clone().requires_grad_()).backward()
    assert log["hidden"].of("step").tolist() == [0, 3, 6]
    expect(log["hidden"][1], by_hand(4 * X, W))


def test_outside_of_a_log_the_tensor_itself_is_given():
    x = X.clone().requires_grad_()
    assert pb.watch(x, "nobody") is x
    with pb.watch() as log:
        pass
    assert pb.watch(x, "nobody") is x
    assert len(log) == 0


def test_a_value_may_be_changed_in_place_behind_a_place():
    w = W.clone().requires_grad_()
    with pb.watch() as log:
        pb.watch(X @ w, "product").mul_(3).sum().backward()
    expect(log["product"][0], np.full((5, 3), 3.0, np.float32))
    torch.testing.assert_close(w.grad, 3 * X.T @ torch.ones(5, 3))


def test_compiled_code_hears_in_a_log_and_only_there():
    w = W.clone().requires_grad_()
    torch.compiler.reset()
    compiled(X, w).backward()  # compiled before any log
    with pb.watch(every=2) as log:
        for _ in range(3):
            compiled(X, w).backward()
    compiled(X, w).backward()
    with pb.watch() as again:
        compiled(X, w).backward()
    assert log["hidden"].of("step").tolist() == [0, 2]
    assert len(again["hidden"]) == 1


def test_a_place_that_no_gradient_reaches_is_told():
    w = W.clone().requires_grad_()
    with pb.watch() as log:
        for _ in range(3):
            h = pb.watch(torch.tanh(X @ w), "hidden")
            pb.watch(X @ w, "cut off").detach()
            h.sum().backward()
        with torch.no_grad():
            pb.watch(X @ w, "not recorded")
    assert log["cut off"].none == 3
    assert log["hidden"].none == 0
    assert "not recorded" not in log
    assert "cut off: no gradient arrived, 3 times" in str(log)


def test_a_compiled_place_that_no_gradient_reaches_is_told():
    @torch.compile(fullgraph=True, backend="aot_eager")
    def lossy(w):
        pb.watch(X @ w, "cut off").detach()
        return pb.watch(torch.tanh(X @ w), "kept").sum()

    with pb.watch() as log:
        lossy(W.clone().requires_grad_()).backward()
    assert log["cut off"].none == 1
    assert log["kept"].none == 0


def test_a_second_backward_pass_is_a_second_step():
    w = W.clone().requires_grad_()
    with pb.watch() as log:
        value = loss(X, w)
        value.backward(retain_graph=True)
        value.backward()
    assert log["hidden"].of("step").tolist() == [0, 1]


@pytest.mark.usefixtures("either_way")
def test_the_decades_of_a_large_gradient_are_those_of_a_sample():
    with pb.watch() as log:
        log.look(torch.tensor(LARGE), "large")
    expect_sampled(log)


@pytest.mark.usefixtures("either_way")
def test_very_small_and_very_large_gradients_have_their_norms():
    for gradient in FAR:
        with pb.watch() as log:
            log.look(torch.tensor(gradient), "far")
        for history in log:
            expect(history[0], gradient)
