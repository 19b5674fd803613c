"""What a body may return and its `grad` may be and give, as docs/contract.md says, on tensors of PyTorch."""

import dataclasses
from typing import Any

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


def pair_type():
    @dataclasses.dataclass
    class Pair:
        a: Any
        b: Any

    return Pair


def test_a_dataclass_is_refused_by_its_fields_and_a_structure_once_it_is_registered():
    kind = pair_type()

    @pb.custom_gradient
    def product(pair):
        return pair.a * pair.b, lambda dy: kind(dy * pair.b, dy * pair.a)

    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with pytest.raises(pb.errors.NoTensorError, match=r"pass pair\.a, pair\.b, or register `Pair`"):
        product(kind(a, b))
    torch.export.register_dataclass(kind)
    product(kind(a, b)).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, 4], [1, 2])


def test_a_registered_dataclass_is_a_structure_of_outputs():
    kind = pair_type()
    torch.export.register_dataclass(kind)
    both = pb.custom_gradient(lambda x: (kind(2 * x, 3 * x), lambda d: 2 * d.a + 3 * d.b))
    x = leaf(1.0, 2.0)
    out = both(x)
    assert isinstance(out, kind)
    out.b.sum().backward()
    assert x.grad.tolist() == [3, 3]
