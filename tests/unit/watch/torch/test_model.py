"""A module of PyTorch under a log: its layers and weights are heard, and it is left as it was."""

import copy
import io
import pickle
import threading

import pytest
import torch
from rows import expect

import pullback as pb


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(3, 4)
        self.relu = torch.nn.ReLU(inplace=True)
        self.cell = torch.nn.LSTMCell(4, 2)
        self.last = torch.nn.Linear(2, 1)

    def forward(self, x):
        h, c = self.cell(self.relu(self.first(x)))
        return self.last(h) + c.sum(1, keepdim=True)


X = torch.linspace(-1, 1, 15).reshape(5, 3)


def step(model, x=X):
    model.zero_grad()
    model(x).square().sum().backward()


def by_hand(model):
    """The gradients of the two lower layers, written out."""
    z = X @ model.first.weight.T + model.first.bias
    a = z.clamp(min=0).detach().requires_grad_()
    h, c = model.cell(a)
    y = model.last(h) + c.sum(1, keepdim=True)
    da, dh, dy = torch.autograd.grad(y.square().sum(), [a, h, y])
    return {"relu": da, "first": da * (z > 0), "cell[0]": dh, "last": dy, "Net": dy}


def test_layers_and_weights_are_heard_while_it_trains():
    model = Net()
    optimiser = torch.optim.SGD(model.parameters(), 0.01)
    true = by_hand(model)
    with pb.watch(model, every=2) as log:
        for i in range(5):
            step(model)
            if i == 0:
                weights = {name: weight.grad.clone() for name, weight in model.named_parameters()}
            optimiser.step()
    for name, gradient in (true | weights).items():
        assert log[name].of("step").tolist() == [0, 2, 4]
        expect(log[name][0], gradient.detach(), rtol=1e-4)
    assert log.names.index("last") < log.names.index("relu") < log.names.index("first")


def test_gradients_stay_what_they_are():
    model, other = Net(), Net()
    with pb.watch(model):
        step(model)
    step(other)
    for ours, plain in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(ours.grad, plain.grad, rtol=0, atol=0)


def state(model):
    """Everything that a log could leave behind."""
    hooks = [
        part._forward_hooks or part._backward_hooks or part._forward_pre_hooks for part in model.modules()
    ]
    weights = [getattr(weight, "_backward_hooks", None) for weight in model.parameters()]
    everywhere = torch.nn.modules.module._global_forward_hooks
    return any(hooks), any(weights), len(everywhere)


def test_nothing_is_left_behind():
    model = Net()
    keys = set(vars(model.first))
    with pb.watch(model) as log:
        assert not any(part._forward_hooks for part in model.modules())  # it is not written to at all
        step(model)
        copied = copy.deepcopy(model)
        loaded = pickle.loads(pickle.dumps(model))
        torch.save(model.state_dict(), io.BytesIO())
    heard = len(log["first"])
    for each in (model, copied, loaded):
        step(each)
        assert state(each) == (False, False, 0)
    assert set(vars(model.first)) == keys
    assert len(log["first"]) == heard == 1


def test_an_exception_closes_it():
    model = Net()
    log = pb.watch(model)
    with pytest.raises(RuntimeError, match="shapes"), log:
        step(model, torch.ones(2, 7))
    assert state(model) == (False, False, 0)
    assert len(log) == 0


def test_logs_inside_each_other_and_of_another_model():
    model, other = Net(), Net()
    with pb.watch(model, every=2) as outer:
        step(model)
        with pb.watch(model) as inner, pb.watch(other) as elsewhere:
            step(model)
            step(model)
            step(other)
        step(model)
    assert outer["first"].of("step").tolist() == [0, 2]
    assert inner["first"].of("step").tolist() == [0, 1]
    assert len(elsewhere["first"]) == 1
    assert state(model) == state(other) == (False, False, 0)


def test_a_weight_without_a_gradient_is_told():
    model = Net()
    model.unused = torch.nn.Linear(2, 2)
    with pb.watch(model) as log:
        step(model)
    assert log["unused.weight"].none == 1
    assert log["first.weight"].none == 0
    with pb.watch(model) as idle:
        model(X)
    assert "unused.weight" not in idle


def test_training_on_other_threads_is_heard():
    model = Net()
    with pb.watch(model) as log:
        threads = [threading.Thread(target=lambda: model(X).sum().backward()) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(log["first"].of("step")) == [0, 1, 2, 3]


def test_compiled_in_the_block():
    torch.compiler.reset()
    model = Net()
    true = by_hand(model)
    with pb.watch(model) as log:
        step(torch.compile(model, fullgraph=True, backend="aot_eager"))
    assert "Net" not in log  # its hook runs behind what is compiled
    for name in true.keys() - {"Net"}:
        expect(log[name][0], true[name].detach(), rtol=1e-4)


def test_compiled_before_the_block_is_said():
    torch.compiler.reset()
    model = Net()
    compiled = torch.compile(model, backend="aot_eager")
    step(compiled)
    with pb.watch(model) as log:
        step(compiled)
    assert len(log["first.weight"]) == 1  # weights are heard: they stand outside of what is compiled
    assert "compiled before" in str(log)


def test_what_is_no_model_is_refused_in_words():
    with pytest.raises(pb.errors.UnsupportedInputError, match=r"log\.look"), pb.watch({"w": torch.ones(2)}):
        pass
    with pytest.raises(pb.errors.OptionError, match="every=0"):
        pb.watch(Net(), every=0)
    with pytest.raises(pb.errors.NoTensorError, match="list"):
        pb.watch([1.0], "a list")
