"""Every violation of the contract raises at the rule, in the words of every host."""

import pytest
import torch

import pullback as pb


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


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
