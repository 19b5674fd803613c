"""How arguments reach a rule: structures, keywords, statics, integers and NumPy."""

import numpy as np
import torch

import pullback as pb


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


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
