"""What a body may return and a rule may be called with, as docs/contract.md says, on tensors of PyTorch."""

import numpy as np
import pytest
import torch

import pullback as pb


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_an_unused_output_has_a_cotangent_of_zeros():
    seen = []

    @pb.custom_gradient
    def f(x):
        def grad(da, db):
            seen.append(db)
            return da * 2 + db

        return x * 2, x + 1, grad

    x = leaf(1.0, 2.0)
    f(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert seen[0].tolist() == [0, 0]


def test_structures_keywords_and_statics():
    @pb.custom_gradient
    def f(pair, *, power=2, name="f", where=None):
        def grad(dy):
            return {"pair": {"a": power * dy, "b": None}}

        return power * pair["a"] + pair["b"], grad

    a, b = leaf(1.0), leaf(2.0)
    y = f({"a": a, "b": b}, power=3)
    y.backward()
    assert y.tolist() == [5]
    assert a.grad.tolist() == [3]
    assert b.grad is None


def test_integers_come_in_and_go_out():
    @pb.custom_gradient
    def pick(x, index):
        def grad(dv, di):
            return torch.zeros_like(x).index_put((index,), dv), None

        return x[index], index + 1, grad

    x = leaf(1.0, 2.0, 3.0)
    value, after = pick(x, torch.tensor([2, 0]))
    assert not after.requires_grad
    value.sum().backward()
    assert x.grad.tolist() == [1, 0, 1]


def test_numpy_arrays_beside_a_tensor():
    f = pb.custom_gradient(lambda x, w: (x * w, lambda dy: (dy * w, None)))
    x = leaf(1.0, 2.0)
    f(x, np.array([3.0, 4.0], np.float32)).sum().backward()
    assert x.grad.tolist() == [3, 4]


def test_a_cotangent_is_cast_to_the_dtype_of_its_input():
    f = pb.custom_gradient(lambda x: (x * 2, lambda dy: 2 * dy.double()))
    x = leaf(1.0, 2.0)
    f(x).sum().backward()
    assert x.grad.dtype == torch.float32


def test_none_is_no_gradient():
    f = pb.custom_gradient(lambda x, w: (x * w, lambda dy: (None, dy * x)))
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    f(x, w).sum().backward()
    assert x.grad is None
    assert w.grad.tolist() == [1, 2]


def test_a_partial_function_as_grad():
    import functools

    def pull(y, dy):
        return dy * y

    @pb.custom_gradient
    def exp(x):
        y = torch.exp(x)
        return y, functools.partial(pull, y)

    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad(exp(x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    torch.testing.assert_close(h, torch.exp(x))


def test_a_helper_inside_the_body():
    @pb.custom_gradient
    def exp(x):
        parts = {"y": [torch.exp(x)]}

        def helper(dy, depth):
            return helper(dy, depth - 1) if depth else dy * parts["y"][0]

        def grad(dy, *, scale=1.0):
            return scale * helper(dy, 3)

        return parts["y"][0], grad

    x = leaf(1.0, 2.0)
    exp(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.exp(x).detach())


def test_a_list_of_the_caller_stays_one_list():
    log = []

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            log.append(float(dy.sum()))
            return dy

        return x * 1, grad

    f(leaf(1.0, 2.0)).sum().backward()
    assert log == [2.0]


# ── refusals, in the words of every host ─────────────────────────────────────────────────────────────────


def pull(f, *inputs):
    f(*inputs).sum().backward()


REFUSED = {
    "a broadcast axis": (
        lambda: pull(
            pb.custom_gradient(lambda x, b: (x + b, lambda dy: (dy, dy))),
            torch.ones(4, 3, requires_grad=True),
            torch.ones(3, requires_grad=True),
        ),
        pb.errors.CotangentShapeError,
        r"pb\.unbroadcast",
    ),
    "one too few": (
        lambda: pull(pb.custom_gradient(lambda x, b: (x + b, lambda dy: dy)), leaf(1.0), leaf(1.0)),
        pb.errors.CotangentCountError,
        "returned 1 cotangent",
    ),
    "no grad": (
        lambda: pb.custom_gradient(lambda x: x)(leaf(1.0)),
        pb.errors.MissingGradError,
        "a tensor alone",
    ),
    "complex for real": (
        lambda: pull(pb.custom_gradient(lambda x: (x * 1, lambda dy: dy * 1j)), leaf(1.0)),
        pb.errors.CotangentDtypeError,
        "complex64 for argument `x`",
    ),
    "integer outputs only": (
        lambda: pb.custom_gradient(lambda x: (x.long(), lambda dy: dy))(leaf(1.0)),
        pb.errors.OutputError,
        "int64",
    ),
    "a condition on a vector": (
        lambda: pb.custom_gradient(lambda x: (x if x > 0 else -x, lambda dy: dy))(leaf(1.0, 2.0)),
        pb.errors.VectorConditionError,
        r"torch\.where",
    ),
    "a condition on a vector in grad": (
        lambda: pull(pb.custom_gradient(lambda x: (x * 1, lambda dy: dy if dy > 0 else -dy)), leaf(1.0, 2.0)),
        pb.errors.VectorConditionError,
        r"torch\.where",
    ),
    "a sparse tensor": (
        lambda: pb.scale_gradient(torch.eye(2).to_sparse(), 2.0),
        pb.errors.UnsupportedInputError,
        "`x` is a sparse tensor",
    ),
    "a quantized tensor": (
        lambda: pb.scale_gradient(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), 2.0),
        pb.errors.UnsupportedInputError,
        "quantized",
    ),
    "a nested tensor": (
        lambda: pb.scale_gradient(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), 2.0),
        pb.errors.UnsupportedInputError,
        "nested",
    ),
    "no tensor": (lambda: pb.scale_gradient("x", 2), pb.errors.NoTensorError, "no argument is a tensor"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_refused_at_the_rule(name):
    run, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        run()


def test_an_error_of_the_users_comes_as_it_is():
    def body(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        pb.custom_gradient(body)(leaf(1.0))
