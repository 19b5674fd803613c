"""An override of a module is a module: the same one, but for its gradients."""

import copy
import gc
import io
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pullback as pb

X = torch.tensor([[0.4, -1.3, 2.2], [0.1, -0.2, -0.6]])


class Net(nn.Module):
    """A network with a parameter, a buffer, submodules, and a mode that its forward reads."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 1)
        self.gain = nn.Parameter(torch.ones(1))
        self.register_buffer("shift", torch.zeros(1))
        self.scale = 1.0

    def forward(self, x, *, twice=False):
        y = self.b(F.dropout(F.relu(self.a(x)), 0.5, self.training)) * self.gain + self.shift
        return self.scale * (2 * y if twice else y)


def tenfold(dy, x):
    return 10 * dy * (x > 0)


def blocked(dy, input):
    return torch.zeros_like(input)


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net().eval()


def slopes(module):
    module.zero_grad()
    module(X).sum().backward()
    return [p.grad.clone() for p in module.parameters()]


def test_it_is_a_module_of_the_same_class_with_the_same_parts(net):
    seen = pb.override(net, {F.relu: tenfold})
    assert isinstance(seen, Net)
    assert repr(seen) == repr(net)
    assert [n for n, _ in seen.named_modules()] == [n for n, _ in net.named_modules()]
    for (name, mine), (other, theirs) in zip(seen.named_parameters(), net.named_parameters(), strict=True):
        assert name == other
        assert mine is theirs
    assert seen.state_dict().keys() == net.state_dict().keys()
    torch.testing.assert_close(seen(X, twice=True), net(X, twice=True))


def test_only_the_gradients_differ(net):
    seen = pb.override(net, {F.relu: tenfold})
    for name, mine, theirs in zip(dict(net.named_parameters()), slopes(seen), slopes(net), strict=True):
        torch.testing.assert_close(mine, 10 * theirs if name.startswith("a.") else theirs)
    assert seen.replaced == {"relu": 1}


def test_an_optimizer_of_it_trains_the_original(net):
    before, expected = copy.deepcopy(net), slopes(net)
    seen = pb.override(net, {F.relu: tenfold})
    optimizer = torch.optim.SGD(seen.parameters(), lr=0.1)
    slopes(seen)
    optimizer.step()
    torch.testing.assert_close(net.a.weight, before.a.weight - 0.1 * 10 * expected[1])


def test_the_mode_the_dtype_and_plain_attributes_are_shared_both_ways(net):
    seen = pb.override(net, {F.relu: tenfold})
    seen.train()
    assert net.training
    assert net.a.training
    net.eval()
    assert not seen.training
    torch.testing.assert_close(seen(X), net(X))  # a dropout would differ
    net.scale = 3.0
    assert seen.scale == 3.0
    torch.testing.assert_close(seen(X), net(X))
    seen.to(torch.float64)
    assert net.shift.dtype == net.a.weight.dtype == torch.float64
    seen.load_state_dict(Net().state_dict())
    torch.testing.assert_close(seen.a.weight, net.a.weight)


def test_hooks_run_once(net):
    seen = pb.override(net, {F.relu: tenfold})
    met = []
    seen.register_forward_hook(lambda module, inputs, output: met.append(module))
    seen.a.register_forward_pre_hook(lambda module, inputs: met.append(module))
    seen(X)
    assert met == [net.a, seen]


@pytest.mark.parametrize(
    "kind", [F.relu, torch.relu, "relu", nn.Linear, "Linear"], ids=["F", "torch", "relu", "nn", "Linear"]
)
def test_it_is_saved_loaded_and_copied_with_its_gradients(net, kind):
    gradient = blocked if "inear" in str(kind) else tenfold
    seen = pb.override(net, {kind: gradient})
    file = io.BytesIO()
    torch.save(seen, file)
    file.seek(0)
    for again in (torch.load(file, weights_only=False), copy.deepcopy(seen)):
        assert isinstance(again, Net)
        assert again.a.weight is not net.a.weight
        for mine, theirs in zip(slopes(again), slopes(seen), strict=True):
            torch.testing.assert_close(mine, theirs)
        assert sum(again.replaced.values()) == (2 if gradient is blocked else 1)


def test_an_override_of_an_override_has_both(net):
    seen = pb.override(pb.override(net, {F.relu: tenfold}), {torch.add: lambda dy, *_: (7 * dy, None)})
    for name, mine, theirs in zip(dict(net.named_parameters()), slopes(seen), slopes(net), strict=True):
        torch.testing.assert_close(mine, (70 if name.startswith("a.") else 7) * theirs)
    assert seen.original.replaced == {"relu": 1}


def test_inside_another_module(net):
    class Opaque(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = pb.override(net, {F.relu: tenfold})

        def forward(self, x):
            return F.relu(-self.net(x))

    whole = Opaque()
    assert set(whole.state_dict()) == {f"net.{name}" for name in net.state_dict()}
    whole(X).sum().backward()
    assert whole.net.replaced == {"relu": 1}
    outer = pb.override(whole, {Net: lambda dy, x: torch.zeros_like(x)})
    outer(X)
    assert outer.replaced == {"Net": 1}


def test_a_module_that_is_of_the_kind_itself():
    seen = pb.override(nn.ReLU(), {nn.ReLU: tenfold})
    x = X.clone().requires_grad_()
    seen(x).sum().backward()
    torch.testing.assert_close(x.grad, 10.0 * (X > 0))


def test_functional_call_and_parameters_as_a_vector(net):
    seen = pb.override(net, {F.relu: tenfold})
    zeros = {name: torch.zeros_like(p) for name, p in seen.named_parameters()}
    assert torch.func.functional_call(seen, zeros, (X,)).abs().sum() == 0
    assert nn.utils.parameters_to_vector(seen.parameters()).numel() == 22


def test_a_name_of_the_user_wins():
    class Named(nn.Linear):
        replaced = "mine"

        def __init__(self):
            super().__init__(3, 3)
            self.original = "mine too"

    seen = pb.override(Named(), {F.linear: lambda dy, *_: (dy, None, None)})
    seen(X)
    assert (seen.replaced, seen.original) == ("mine", "mine too")


def test_it_is_freed_with_its_original(net):
    seen = pb.override(net, {F.relu: tenfold})
    slopes(seen)
    held = weakref.ref(seen)
    del seen
    gc.collect()
    assert held() is None


def test_what_compile_makes_of_it_is_its_own(net):
    seen = pb.override(net, {F.relu: tenfold})
    seen._compiled_call_impl = lambda x: "compiled"
    assert seen(X) == "compiled"
    torch.testing.assert_close(net(X), seen.original(X))


def test_what_would_lose_the_gradients_is_refused(net):
    seen = pb.override(net, {F.relu: tenfold})
    with pytest.raises(pb.errors.OverrideError, match="they would be lost"):
        type(seen)()
    net.forward = lambda x: x
    with pytest.raises(pb.errors.OverrideError, match="set from outside"):
        pb.override(net, {F.relu: tenfold})


def test_a_kind_that_is_not_there_is_an_error_by_the_name_of_the_module(net):
    with pytest.raises(
        pb.errors.OverrideError, match=r"Net: nothing in it is of the kind 'elu'(.|\n)*Linear"
    ):
        pb.override(net, {F.elu: tenfold})(X)
