"""`torch.func.functionalize` around a rule: the rule runs below it, with its own gradient."""

import pytest
import torch
from torch.func import functionalize, grad, jvp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

import pullback as pb


@pb.custom_gradient
def exp(x):
    """Twice the true derivative."""
    y = torch.exp(x)

    def grad(dy):
        return 2 * dy * y

    return y, grad


def total(x):
    return exp(x).sum()


X = torch.tensor([0.1, 0.2])
TWICE = 2 * torch.exp(X)
AROUND = {
    "the values": (functionalize(exp), torch.exp(X)),
    "around grad": (functionalize(grad(total)), TWICE),
    "inside grad": (grad(functionalize(total)), TWICE),
    "around vmap": (functionalize(vmap(grad(exp))), TWICE),
    "inside vmap": (vmap(functionalize(grad(exp))), TWICE),
    "around forward mode": (functionalize(lambda x: jvp(exp, (x,), (torch.ones(2),))[1]), TWICE),
}


@pytest.mark.parametrize("name", AROUND)
def test_the_rule_is_used(name):
    function, want = AROUND[name]
    torch.testing.assert_close(function(X), want)


def test_what_was_changed_in_place_before_is_seen():
    def changed(x):
        y = x.clone()
        y[0].mul_(3)
        return exp(y).add_(1)

    torch.testing.assert_close(functionalize(changed)(X), changed(X))


def test_a_traced_graph_has_no_change_in_place_and_the_rule_of_the_user():
    graph = make_fx(functionalize(grad(total)))(X)
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert not any(name.split(".")[1].endswith("_") for name in names)
    torch.testing.assert_close(graph(X + 1), 2 * torch.exp(X + 1))
