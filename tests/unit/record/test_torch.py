"""The recorder sees every spelling of PyTorch's custom gradients, and changes nothing."""

import pickle

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import pullback as pb
from pullback import tree
from pullback.record import frameworks
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.record.sample import Sample, Spec


@pytest.fixture
def recorder():
    return Recorder()


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n=2):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        return g * ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1), None


class Sine(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


X = torch.arange(3.0)
MATRIX = torch.arange(6.0).reshape(2, 3)


def only(recorder):
    assert recorder.errors == []
    (rule,) = recorder.rules.values()
    return rule


def leaves(recorder):
    return [sample.leaves for sample in only(recorder).samples.values()]


def test_a_function_made_before_the_recording_is_seen(recorder):
    with recording(recorder):
        Power.apply(X, 3)
    Power.apply(X)
    rule = only(recorder)
    assert (rule.name, rule.kind, rule.calls) == ("Power", "torch.autograd.Function", 1)
    assert (rule.path, rule.framework) == (__file__, "torch")
    ((x, n),) = leaves(recorder)
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert n == 3


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: torch.func.grad(lambda x: Sine.apply(x).sum())(X), [0, 1, 2]),
        (lambda: torch.func.vmap(Sine.apply)(MATRIX), [0, 1, 2]),
        (lambda: torch.func.vmap(Sine.apply, in_dims=1)(MATRIX), [0, 3]),
        (lambda: torch.func.vmap(torch.func.grad(lambda x: Sine.apply(x).sum()))(MATRIX), [0, 1, 2]),
        (lambda: torch.func.jacrev(Sine.apply)(X), [0, 1, 2]),
    ],
    ids=["grad", "vmap", "vmap over columns", "vmap of grad", "jacrev"],
)
def test_transformations_carry_their_values(recorder, call, values):
    with recording(recorder):
        call()
    np.testing.assert_array_equal(leaves(recorder)[0][0], np.array(values, np.float32))


# The compiler itself makes one to find out what it is.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_the_compiler_gives_specs_until_a_value_comes(recorder):
    compiled = torch.compile(lambda x: Power.apply(x, 3) * 2, backend="eager", fullgraph=True)
    with recording(recorder):
        compiled(X)
        assert leaves(recorder) == [[Spec((3,), "float32"), 3]]
        Power.apply(X, 3)
    np.testing.assert_array_equal(leaves(recorder)[0][0], X)
    torch.compiler.reset()


def test_operators_are_seen_however_they_are_called(recorder):
    with recording(recorder):

        @torch.library.custom_op("recorded::halved", mutates_args=())
        def halved(x: torch.Tensor, by: float) -> torch.Tensor:
            return x * by

        halved(X, 0.5)
        assert not recorder.rules  # there is no backward yet
        halved.register_autograd(
            lambda ctx, g: (g * ctx.by, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
        )
        halved(X, 0.5)
        torch.ops.recorded.halved(X.clone().requires_grad_(), 0.5)
    rule = only(recorder)
    assert (rule.name, rule.kind, rule.calls) == ("recorded::halved", "torch.library", 2)
    assert rule.function is halved
    assert rule.location in recorder.defined


def test_pytorch_s_own_functions_are_left_out(recorder):
    x = X.clone().requires_grad_()
    with recording(recorder):
        torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True).sum().backward()
    assert not recorder.rules


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        torch.tensor([1.5, -2.0], dtype=torch.float16),
        torch.tensor([1 + 2j, 3]).conj(),
        torch.tensor([True, False]),
        torch.nn.Parameter(torch.ones(2, 2)).t(),
        torch.ones(()),
        torch.ones(0, 3),
    ],
    ids=lambda t: str(t.dtype),
)
def test_what_is_thawed_is_what_was_frozen(tensor):
    frozen = frameworks.freeze(tensor)
    structure = tree.flatten(((0,), {}))[1]
    ((thawed,), _) = frameworks.thaw(Sample([frozen], structure, "torch", "cpu"))
    assert thawed.dtype == tensor.dtype
    assert torch.equal(thawed, tensor)
    assert not thawed.requires_grad


def test_a_change_in_place_does_not_change_the_sample(recorder):
    x = torch.ones(2)
    with recording(recorder):
        Sine.apply(x)
    x.mul_(7)
    np.testing.assert_array_equal(leaves(recorder)[0][0], [1, 1])


def test_modes_of_the_program_do_not_see_the_copies(recorder):
    class Counting(TorchDispatchMode):
        seen: list = []  # noqa: RUF012

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    def run():
        Counting.seen = []
        with Counting():
            Sine.apply(X.clone().requires_grad_()).sum().backward()
        return Counting.seen

    plain = run()
    with recording(recorder):
        assert run() == plain
    assert leaves(recorder)[0][0].tolist() == [0, 1, 2]


def test_values_gradients_and_pickles_are_those_of_the_program(recorder):
    x = torch.linspace(0.1, 2, 5, requires_grad=True)

    def run():
        y = Power.apply(x, 3) + Sine.apply(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return [v.detach().numpy().tobytes() for v in (y, g, h)], str(y), pickle.dumps(Power.apply)

    plain = run()
    with recording(recorder):
        assert run() == plain
        assert pickle.loads(plain[2]) == Power.apply
    assert run() == plain


def test_nothing_is_left_behind(recorder):
    import torch.autograd.function as functions

    before = (functions._is_setup_context_defined, functions.FunctionMeta.__init__, functions.Function.apply)
    with recording(recorder):
        assert functions.Function.apply == before[2]
    assert (
        functions._is_setup_context_defined,
        functions.FunctionMeta.__init__,
        functions.Function.apply,
    ) == before


def test_a_compiler_of_our_own_rule_does_not_read_the_recorder(recorder):
    @pb.custom_gradient
    def doubled(x):
        def grad(dy):
            return dy * 2

        return x + x, grad

    def run():
        torch.compiler.reset()
        explained = torch._dynamo.explain(lambda x: doubled(x) + 1)(X)
        return explained.graph_count, explained.graph_break_count, str(explained.graphs[0].code)

    plain = run()
    with recording(recorder):
        assert run() == plain
    assert only(recorder).name.endswith(".doubled")
    torch.compiler.reset()


def test_another_version_of_a_framework_still_imports(tmp_path, monkeypatch, recorder):
    (tmp_path / "built_otherwise.py").write_text("value = 1")
    monkeypatch.syspath_prepend(str(tmp_path))

    def listen(module):
        raise AttributeError("no such function here")

    monkeypatch.setattr(frameworks.FRAMEWORKS["torch"], "listeners", lambda r: {"built_otherwise": listen})
    with recording(recorder):
        import built_otherwise
    assert built_otherwise.value == 1
    assert "no such function" in str(recorder.errors[0])
