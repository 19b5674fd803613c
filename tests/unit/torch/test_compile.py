"""`torch.compile` takes a rule whole: no graph break, and nothing but its operations in the graph."""

import subprocess
import sys

import pytest
import torch
import torch._dynamo

import pullback as pb


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pb.custom_gradient
def exp(x):
    """Twice the true derivative."""
    y = torch.exp(x)

    def grad(dy):
        return 2 * dy * y

    return y, grad


@pb.custom_gradient
def with_options(x, *, factor, mode="sum", axes=(0, 1)):
    def grad(dy):
        return {"x": dy["a"] * factor + dy["b"]}

    return {"a": x * factor, "b": x + 1}, grad


@pb.custom_gradient
def dense(layer, x):
    def grad(dy):
        return {"weight": torch.outer(dy, x), "bias": 5 * dy}, dy @ layer.weight

    return layer(x), grad


@pb.custom_gradient
def nested(x):
    y = exp(x)
    return y, lambda dy: 3 * dy * y


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy, variables=None):
            return dy * self.w, [10 * dy * x for _ in variables]

        return x * self.w, grad


LAYER = torch.nn.Linear(3, 3)
SCALED = Scaled()
straight = pb.straight_through(torch.round)
tanh_like = pb.surrogate(torch.sign, like=torch.tanh)
own = pb.with_gradient(torch.exp, lambda dy, x, output: 7 * dy * output)
sine = pb.elementwise(torch.sin, torch.cos)


def structured(x):
    found = with_options(x, factor=3.0, mode="mean")
    return found["a"] + found["b"] * x


STEPS = {
    "a rule": lambda x: exp(x * 2),
    "keywords, statics and structures": structured,
    "a module as an argument": lambda x: dense(LAYER, x),
    "captured parameters": lambda x: SCALED(x),
    "a rule in a rule": lambda x: nested(x),
    "scale_gradient": lambda x: pb.scale_gradient(x, 0.1) * x,
    "reverse_gradient": lambda x: pb.reverse_gradient(x) * x,
    "clip_gradient": lambda x: pb.clip_gradient(x, norm=0.1),
    "stop_gradient": lambda x: pb.stop_gradient(x) * x,
    "map_gradient": lambda x: pb.map_gradient(x, lambda dy: dy * 5) * x,
    "heaviside": lambda x: pb.heaviside(x) + x,
    "round": lambda x: pb.round(x) * x,
    "argmax_one_hot": lambda x: pb.argmax_one_hot(x) * x,
    "straight_through": lambda x: straight(x) * x,
    "surrogate": lambda x: tanh_like(x) * x,
    "with_gradient": lambda x: own(x),
    "elementwise": lambda x: sine(x),
    "under torch.func": lambda x: torch.func.vmap(torch.func.grad(exp))(x),
}


def gradients(f, parameters=()):
    x = torch.tensor([0.3, -0.7, 1.1], requires_grad=True)
    y = f(x)
    return y.detach(), torch.autograd.grad((y * torch.tensor([1.0, 2.0, 3.0])).sum(), [x, *parameters])


@pytest.mark.parametrize("name", STEPS)
def test_compiled_as_one_graph_it_gives_the_same(name):
    step = STEPS[name]
    parameters = {"a module as an argument": [LAYER.bias], "captured parameters": [SCALED.w]}.get(name, [])
    want = gradients(step, parameters)
    got = gradients(torch.compile(step, backend="aot_eager", fullgraph=True), parameters)
    torch.testing.assert_close(got, want)


def test_inductor_compiles_it():
    want = gradients(STEPS["a rule"])
    got = gradients(torch.compile(STEPS["a rule"], backend="inductor", fullgraph=True))
    torch.testing.assert_close(got, want)


def test_the_graph_holds_the_operations_of_the_rule_only():
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    graphs = []

    def keep(module, inputs):
        graphs.append([str(node.target) for node in module.graph.nodes if node.op == "call_function"])
        return make_boxed_func(module.forward)

    compiled = torch.compile(exp, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep), fullgraph=True)
    compiled(torch.ones(3, requires_grad=True)).sum().backward()
    # a tensor that is kept is an alias, which costs nothing
    assert [[n.removeprefix("aten.") for n in graph if "detach" not in n] for graph in graphs] == [
        ["exp.default"],
        ["mul.Tensor", "mul.Tensor"],
    ]


def test_a_function_around_a_rule_is_not_passed_by():
    import functools

    @functools.wraps(exp)
    def doubled(x):
        return 2 * exp(x)

    compiled = torch.compile(lambda x: doubled(x), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(gradients(compiled), gradients(doubled))


def test_lengths_that_change():
    compiled = torch.compile(lambda x: exp(x).sum(), backend="aot_eager", fullgraph=True, dynamic=True)
    for n in (3, 5, 7):
        x = torch.ones(n, requires_grad=True)
        compiled(x).backward()
        torch.testing.assert_close(x.grad, 2 * torch.exp(x).detach())


def test_random_numbers_in_a_compiled_rule():
    @pb.custom_gradient
    def f(x):
        mask = torch.rand_like(x)
        return mask * x, lambda dy: dy * mask

    x = torch.ones(16, requires_grad=True)
    y = torch.compile(f, backend="aot_eager", fullgraph=True)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())


def test_a_broken_rule_says_so_while_it_is_compiled():
    f = pb.custom_gradient(lambda x: (x * 1, lambda dy: dy.sum()))
    with pytest.raises(Exception, match="a cotangent has its input's shape"):
        torch.compile(f, backend="aot_eager", fullgraph=True)(torch.ones(3, requires_grad=True))


class OwnError(Exception):
    """An error of the user's."""


def fails(x):
    raise OwnError("no such table")


def depends(x):
    return (x * 2 if x.sum() > 0 else x * 3), lambda dy: dy * 5


def captures(x):
    return x * CAPTURED, lambda dy: dy


def forgets(x):
    return x * 1


CAPTURED = torch.ones(3, requires_grad=True)
BROKEN = {
    "an error of the user's": (fails, OwnError, "no such table"),
    "no `grad`": (forgets, pb.errors.MissingGradError, "the body returned a tensor alone"),
    "a captured tensor": (captures, pb.errors.CapturedTensorError, "CAPTURED"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_body_fails_compiled_as_it_does_in_eager_mode(name):
    body, kind, text = BROKEN[name]
    rule = pb.custom_gradient(body)
    with pytest.raises(kind, match=text) as eager:
        rule(torch.ones(3, requires_grad=True))
    with pytest.raises(kind) as compiled:
        torch.compile(lambda x: rule(x), backend="aot_eager")(torch.ones(3, requires_grad=True))
    assert str(compiled.value) == str(eager.value)


@pytest.mark.parametrize("name", BROKEN)
def test_where_a_single_graph_is_asked_for_the_refusal_names_rule_and_cause(name):
    body, _, text = BROKEN[name]
    rule = pb.custom_gradient(body)
    with pytest.raises(Exception, match=text) as caught:
        torch.compile(lambda x: rule(x), backend="aot_eager", fullgraph=True)(
            torch.ones(3, requires_grad=True)
        )
    assert f"{body.__name__} (test_compile.py:" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 40


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch, where it goes on after the rule
def test_a_body_that_depends_on_numbers_runs_as_it_is():
    rule = pb.custom_gradient(depends)
    compiled = torch.compile(lambda x: rule(x) * 2, backend="aot_eager")
    for sign in (1.0, -1.0):
        x = (sign * torch.ones(3)).requires_grad_()
        torch.testing.assert_close(compiled(x), 2 * rule(x))
        assert torch.autograd.grad(compiled(x).sum(), x)[0].tolist() == [10.0] * 3


def test_a_rule_that_failed_once_is_tried_again():
    table = {"factor": "two"}

    @pb.custom_gradient
    def f(x):
        return x * float(table["factor"]), lambda dy: dy

    compiled = torch.compile(f, backend="aot_eager")
    with pytest.raises(ValueError, match="two"):
        compiled(torch.ones(3))
    table["factor"] = "2"
    assert compiled(torch.ones(3)).tolist() == [2.0] * 3


COLD = """
import pullback as pb
import sys
import torch
assert "pullback.hosts.torch" not in sys.modules and "torch._dynamo" not in sys.modules
x = torch.ones(3, requires_grad=True)
torch.compile(lambda x: pb.scale_gradient(x, 0.5).sum(), backend="aot_eager", fullgraph=True)(x).backward()
assert x.grad.tolist() == [0.5, 0.5, 0.5]
"""


def test_rules_older_than_pytorch_are_compiled_at_their_first_call():
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_eager_mode_does_not_load_the_compiler():
    code = (
        COLD.split("torch.compile")[0]
        + 'pb.round(x).sum().backward(); assert "torch._dynamo" not in sys.modules'
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
