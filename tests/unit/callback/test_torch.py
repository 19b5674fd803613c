"""Foreign functions in PyTorch: the operator, `torch.compile`, `torch.func`, leaks."""

import gc
import weakref

import numpy as np
import pytest
import torch
from foreign import Recorded, floats, mixed
from torch.autograd import forward_ad

from pullback import hosts
from pullback.errors import DerivativeError, ExternalError
from pullback.hosts.specs import Spec
from pullback.hosts.torch import callback

X, Y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0])
ROWS = torch.arange(6.0).reshape(2, 3)
HOST = hosts.of(X)
REFUSED = "a derivative of `simulate` was asked for"


@pytest.fixture(autouse=True)
def _nothing_is_compiled_yet():
    torch.compiler.reset()


def call(foreign, *tensors, outputs=None):
    return HOST.callback(foreign, tensors, outputs or [floats(3)])[0]


def code(dtype):
    return callback._DTYPES.index(dtype)


@pytest.mark.parametrize("maps", [[], [1, 0], [0, 1, 1, 0]], ids=["plain", "mapped", "twice"])
def test_the_operator_is_as_pytorch_wants_it(maps):
    foreign = Recorded(mixed)
    x = ROWS if maps else X
    y = torch.ones(4, 2) if len(maps) > 2 else Y
    arguments = ([x, y], foreign.token, maps, [3], [1], [code(torch.float32)])
    assert set(torch.library.opcheck(torch.ops.pullback.foreign.default, arguments).values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_program_is_one_graph(backend, dynamic):
    foreign = Recorded(lambda x, y: [2 * x + y.sum()])

    def f(x, y):
        return torch.sin(call(foreign, x * 2, y, outputs=[floats(*x.shape)])) + 1

    compiled = torch.compile(f, fullgraph=True, backend=backend, dynamic=dynamic)
    for size in (3, 5):
        x = torch.arange(float(size))
        assert torch.allclose(compiled(x, Y), torch.sin(4 * x + 30) + 1)
        assert len(foreign.calls) == 1
        foreign.calls.clear()


def test_a_length_that_only_the_run_knows():
    foreign = Recorded(lambda x: [x[x > 0]])
    outputs = [Spec((None,), "float32", "floating")]
    assert call(foreign, X - 1, outputs=outputs).tolist() == [1.0, 2.0]

    @torch.compile(fullgraph=True, backend="aot_eager")
    def f(x):
        return call(foreign, x, outputs=outputs) * 2

    assert f(X - 1).tolist() == [2.0, 4.0]


def test_a_compiled_program_keeps_its_foreign_function():
    def make():
        foreign = Recorded(mixed)
        compiled = torch.compile(lambda x, y: call(foreign, x, y), fullgraph=True, backend="aot_eager")
        compiled(X, Y)
        return torch.export.export(Holding(foreign), (X, Y)).module()

    class Holding(torch.nn.Module):
        def __init__(self, foreign):
            super().__init__()
            self.foreign = foreign

        def forward(self, x, y):
            return call(self.foreign, x, y)

    program = make()
    gc.collect()
    assert program(X, Y).tolist() == [32.0, 34.0, 36.0]


def test_eager_calls_keep_nothing():
    def use():
        foreign = Recorded(mixed)
        call(foreign, X, Y)
        torch.func.vmap(lambda x: call(foreign, x, Y))(ROWS)
        return weakref.ref(foreign)

    alive = use()
    gc.collect()
    assert alive() is None


def test_a_foreign_function_without_a_number_gets_one():
    foreign = Recorded(mixed)
    del foreign.token
    result = torch.func.vmap(lambda x: call(foreign, x, Y))(ROWS)
    assert torch.equal(result, 2 * ROWS + 30)


@pytest.mark.parametrize(
    "take",
    [
        lambda f: f(X.clone().requires_grad_()).sum().backward(),
        lambda f: torch.autograd.functional.jacobian(f, X),
        lambda f: torch.func.jacrev(f)(X),
        lambda f: torch.func.jacfwd(f)(X),
        lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(ROWS),
        lambda f: torch.func.grad(lambda rows: torch.func.vmap(f)(rows).sum())(ROWS),
        lambda f: torch.func.hessian(lambda x: f(x).sum())(X),
    ],
    ids=["backward", "jacobian", "jacrev", "jacfwd", "map of grad", "grad of map", "hessian"],
)
def test_every_derivative_is_refused(take):
    with pytest.raises(DerivativeError, match=REFUSED):
        take(lambda x: call(Recorded(mixed), x, Y))


def test_dual_numbers_are_refused():
    with forward_ad.dual_level(), pytest.raises(DerivativeError, match=REFUSED):
        call(Recorded(mixed), forward_ad.make_dual(X, X), Y)


def test_a_derivative_that_nobody_takes_is_no_error():
    x = X.clone().requires_grad_()
    y = call(Recorded(mixed), x, Y)
    assert y.requires_grad
    with torch.no_grad():
        assert not call(Recorded(mixed), x, Y).requires_grad
    assert y.detach().tolist() == [32.0, 34.0, 36.0]


def test_a_function_of_autograd_can_be_made_of_them():
    class Sine(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return call(Recorded(lambda x: [np.sin(x)]), x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, dy):
            return call(pull, dy, *ctx.saved_tensors)

    pull = Recorded(lambda dy, x: [dy * np.cos(x)])
    x = X.clone().requires_grad_()
    Sine.apply(x).sum().backward()
    assert torch.allclose(x.grad, torch.cos(X))
    pull.calls.clear()
    assert torch.allclose(torch.func.jacrev(Sine.apply)(X), torch.diag(torch.cos(X)))
    assert len(pull.batches) == 1
    assert pull.calls == []


def test_views_and_conjugates_arrive_as_values():
    foreign = Recorded(lambda z: [z.copy()])
    z = torch.tensor([1 + 2j, 3 - 1j])
    outputs = [Spec((2,), "complex64", "complex")]
    assert torch.equal(call(foreign, z.conj(), outputs=outputs), z.conj().resolve_conj())
    assert call(foreign, ROWS.T[0], outputs=[floats(2)]).tolist() == [0.0, 3.0]


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
def test_a_dtype_that_numpy_has_not_is_refused():
    z = torch.tensor([1 + 2j]).to(torch.complex32)
    with pytest.raises(ExternalError, match="dtype complex32, which NumPy has no name for"):
        call(Recorded(lambda z: [z]), z)


def test_results_stand_in_rows():
    result = call(Recorded(lambda x: [np.asfortranarray(x)]), ROWS, outputs=[floats(2, 3)])
    assert result.is_contiguous()


def test_a_compiled_program_hands_over_views():
    foreign = Recorded(lambda x: [x + 1])
    torch.compile(lambda x: call(foreign, x), fullgraph=True, backend="aot_eager")(X)
    assert foreign.calls[0][0].ctypes.data == X.data_ptr()


def test_memory_of_a_fresh_result_is_not_copied():
    def fresh(x):
        result = x + 1
        address.append(result.ctypes.data)
        return [result]

    address = []
    assert call(Recorded(fresh), X).data_ptr() == address[0]


def test_the_fake_of_the_operator_is_where_its_tensors_are():
    foreign = Recorded(mixed)
    result = call(foreign, X, torch.ones(2, device="meta"))
    assert result.device.type == "meta"
    assert result.shape == (3,)
    assert foreign.calls == []


def test_parameters_are_tensors_too():
    weight = torch.nn.Parameter(X)
    with torch.no_grad():
        assert call(Recorded(mixed), weight, Y).tolist() == [32.0, 34.0, 36.0]
