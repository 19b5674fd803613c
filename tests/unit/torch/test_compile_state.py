"""A compiled rule sees what its body and its `grad` read change, as eager mode does, and nothing else."""

import functools
import gc
import types
import weakref

import numpy as np
import pytest
import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounterWithBackend

import pullback as pb


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=64):
        yield
    torch._dynamo.reset()


def gradient(f):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = f(x)
    return y.detach(), torch.autograd.grad(y.sum(), x)[0]


class Settings:
    kind = 2.0

    def __init__(self, tau):
        self.tau = tau
        self.other = 0


class Slotted:
    __slots__ = ("tau",)

    def __init__(self, tau):
        self.tau = tau


class Scaling:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(1.0)
        self.factor = 2.0

    def forward(self, x):
        return self.drop(x) + self.factor * x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tau = 0.5
        self.settings = Settings(0.3)
        self.inner = Inner()
        self.table = torch.ones(2)
        self.register_buffer("buffer", torch.ones(2))
        self.act = torch.abs
        self._hidden = 1.0
        self.steps = 0

    def helper(self):
        return self._hidden

    @property
    def doubled(self):
        return 2 * self.settings.kind

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy):
            factor = 3.0 if self.training else 7.0
            return dy * factor * self.tau * self.helper() * self.table * self.buffer

        y = self.inner(x * self.settings.tau * self.doubled)
        return self.act(y) * getattr(self, "extra", 1.0), grad


FACTOR, HELPED, MODE = 2.0, 3.0, "a"
NESTED = {"list": [1.0, 2.0], (1, 2): 1.0}
KNOWN = {"a", "b"}
TABLE = torch.tensor([3.0, 4.0])
SLOTTED, SETTINGS, SCALING = Slotted(2.0), Settings(5.0), Scaling(2.0)
SPACE = types.ModuleType("a_module_of_the_user")
SPACE.tau = 2.0
PARTIAL = functools.partial(lambda x, k: x * k, k=3.0)


def helper():
    return HELPED


def settings():
    return SETTINGS


def set_global(name, value):
    globals()[name] = value


def closed_over(tau):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * tau * FACTOR * helper() * TABLE * len(KNOWN - {"a"})

        y = x * NESTED["list"][1] * NESTED[1, 2] * SLOTTED.tau * settings().tau * Settings.kind * SPACE.tau
        return SCALING(PARTIAL(y)) * TABLE * (1 if MODE == "a" else 2), grad

    def rebind(value):
        nonlocal tau
        tau = value

    return f, rebind


model = Model()
of_names, rebind = closed_over(0.5)


def more(holder, name):
    """Add one to an attribute."""
    return lambda: setattr(holder(), name, getattr(holder(), name) + 1)


def again(name, change):
    """Bind a global to something else."""
    return lambda: set_global(name, change(globals()[name]))


IN_A_MODULE = {
    "self.training": lambda: model.eval(),
    "a number of self": more(lambda: model, "tau"),
    "an object's number": more(lambda: model.settings, "tau"),
    "an object": lambda: setattr(model, "settings", Settings(0.9)),
    "a constant of a class": more(lambda: Settings, "kind"),
    "a module inside": more(lambda: model.inner, "factor"),
    "what a method reads": more(lambda: model, "_hidden"),
    "a function": lambda: setattr(model, "act", torch.square),
    "an attribute that was not there": lambda: setattr(model, "extra", 2.0),
    "a tensor, in place": lambda: model.table.mul_(3),
    "another tensor": lambda: setattr(model, "table", torch.tensor([5.0, 6.0])),
    "a buffer, in place": lambda: model.buffer.mul_(3),
    "another buffer": lambda: setattr(model, "buffer", torch.tensor([5.0, 6.0])),
}
BY_NAMES = {
    "a closure cell": lambda: rebind(0.9),
    "a global": again("FACTOR", lambda value: value + 1),
    "a helper's global": again("HELPED", lambda value: value + 1),
    "a string": again("MODE", lambda value: value + "a"),
    "an element": lambda: NESTED["list"].__setitem__(1, NESTED["list"][1] + 1),
    "an element by an odd key": lambda: NESTED.__setitem__((1, 2), NESTED[1, 2] + 1),
    "a set": lambda: KNOWN.add("c"),
    "a slot": more(lambda: SLOTTED, "tau"),
    "what a helper gives": more(lambda: SETTINGS, "tau"),
    "a module of Python": more(lambda: SPACE, "tau"),
    "an object that is called": more(lambda: SCALING, "factor"),
    "a partial function": again("PARTIAL", lambda p: functools.partial(p.func, k=p.keywords["k"] + 1)),
    "a tensor, in place": lambda: TABLE.add_(1),
    "another tensor": again("TABLE", lambda value: value + 1),
    "a helper": again("helper", lambda known: lambda: known() + 1),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("rule", "changes"), [("model", IN_A_MODULE), ("of_names", BY_NAMES)])
def test_whatever_it_reads_may_change(rule, changes, backend, monkeypatch):
    of_names, rebind = closed_over(0.5)
    fresh = {"model": Model(), "of_names": of_names, "rebind": rebind, "KNOWN": {"a", "b"}, "MODE": "a"}
    for name, value in {**fresh, "helper": helper}.items():
        monkeypatch.setitem(globals(), name, value)
    function = fresh[rule]
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(lambda x: function(x), backend=counter, fullgraph=True)
    before = gradient(function)
    torch.testing.assert_close(gradient(compiled), before)
    for what, change in changes.items():
        change()
        want = gradient(function)
        assert not all(map(torch.equal, want, before)), what
        torch.testing.assert_close(gradient(compiled), want, msg=lambda text, what=what: f"{what}: {text}")
        before, count = want, counter.frame_count
        gradient(compiled)
        assert counter.frame_count == count, f"{what}: compiled again for nothing"


def test_what_it_does_not_read_may_change_for_free():
    model = Model()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    gradient(compiled)
    for step in range(3):
        model.steps = step + 1
        model.settings.other = step + 1
        model.table.add_(1)
        model.tau = float("0.5")  # an equal number
        torch.testing.assert_close(gradient(compiled), gradient(model))
    assert counter.frame_count == 1


class Plain:
    """An object that is no module, with a rule for a method."""

    def __init__(self):
        self.factor = 2.0
        self.table = torch.tensor([1.0, 3.0])

    @pb.custom_gradient
    def rule(self, x):
        def grad(dy):
            return dy * self.table * self.factor

        return x * self.table * self.factor, grad


def test_a_method_of_any_object():
    plain = Plain()
    compiled = torch.compile(lambda x: plain.rule(x), backend="aot_eager", fullgraph=True)
    changes = [
        lambda: setattr(plain, "factor", 3.0),
        lambda: plain.table.mul_(2),
        lambda: setattr(plain, "table", TABLE),
    ]
    for change in [lambda: None, *changes]:
        change()
        torch.testing.assert_close(gradient(compiled), gradient(plain.rule))


@pb.custom_gradient
def through(modules, x):
    def grad(dy):
        factor = 1.0 if modules["all"][0].training else 2.0
        return {"modules": None, "x": dy * factor * modules["all"][0].factor}

    return modules["all"][0](x), grad


def test_modules_in_a_structure():
    inner = Inner()
    function = functools.partial(through, {"all": [inner]})
    compiled = torch.compile(lambda x: through({"all": [inner]}, x), backend="aot_eager", fullgraph=True)
    for change in (lambda: None, inner.eval, more(lambda: inner, "factor")):
        change()
        torch.testing.assert_close(gradient(compiled), gradient(function))


LAYER = torch.nn.Linear(2, 2)
TWICE = Scaling(2.0)
nested = pb.custom_gradient(lambda x: (of_names(x), lambda dy: dy * FACTOR))
MADE = {
    "elementwise": pb.elementwise(lambda x: torch.sin(x) * FACTOR, lambda x: torch.cos(x) * FACTOR),
    "straight_through": pb.straight_through(lambda x: torch.round(x) * FACTOR),
    "surrogate": pb.surrogate(lambda x: torch.sign(x), like=lambda x: torch.tanh(x) * FACTOR),
    "with_gradient": pb.with_gradient(torch.exp, lambda dy, x: dy * FACTOR * TABLE),
    "with_gradient of a module": pb.with_gradient(LAYER, lambda dy, x: dy * FACTOR),
    "map_gradient": lambda x: pb.map_gradient(x, lambda dy: dy * FACTOR),
    "map_gradient by an object": lambda x: pb.map_gradient(x, TWICE) * FACTOR,
    "a rule in a rule": nested,
    "override": pb.override(lambda x: torch.relu(x) * TABLE, {torch.relu: lambda dy, x: dy * FACTOR}),
    "override of a module": pb.override(
        torch.nn.Sequential(LAYER, torch.nn.ReLU()), {"ReLU": lambda dy: dy * FACTOR}
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_rules_that_are_made_of_functions(name):
    function = MADE[name]
    compiled = torch.compile(lambda x: function(x), backend="aot_eager", fullgraph=True)
    for change in (lambda: None, BY_NAMES["a global"], BY_NAMES["another tensor"]):
        change()
        torch.testing.assert_close(gradient(compiled), gradient(function))


def test_an_override_compiles_as_it_is():
    function = MADE["override"]
    torch.testing.assert_close(
        gradient(torch.compile(function, backend="aot_eager", fullgraph=True)), gradient(function)
    )


def test_parameters_that_a_rule_names_get_their_gradients():
    parameter = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * parameter, [10 * dy * x for _ in variables]

        return x * parameter, grad

    x = torch.tensor([1.0, 2.0])
    torch.compile(f, backend="aot_eager", fullgraph=True)(x).sum().backward()
    assert parameter.grad.tolist() == [10.0, 20.0]


def test_inductor_does_not_keep_the_numbers_of_a_tensor():
    table = torch.tensor(2.0)

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * table

        return x * table, grad

    compiled = torch.compile(f, backend="inductor", fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled), gradient(f))
        table.mul_(3)


def test_lengths_and_numbers_change_together():
    scale = 2.0

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * scale * x.shape[0]

        return x * scale * TABLE.sum(), grad

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=True)
    for scale in (2.0, 3.0, 4.0):
        for n in (3, 5, 7):
            x = torch.ones(n, requires_grad=True)
            torch.testing.assert_close(compiled(x), f(x))
            compiled(x).sum().backward()
            assert x.grad.tolist() == [scale * n] * n


ARRAY = np.array([1.0, 2.0], np.float32)


@pb.custom_gradient
def of_an_array(x):
    def grad(dy):
        return dy * torch.from_numpy(ARRAY)

    return x * torch.from_numpy(ARRAY), grad


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch, where it goes on after the rule
def test_what_cannot_be_watched_is_refused_or_run_as_it_is():
    with pytest.raises(Exception, match=r"of_an_array \(.*\): it reads ARRAY, a NumPy array"):
        gradient(torch.compile(of_an_array, backend="aot_eager", fullgraph=True))
    compiled = torch.compile(of_an_array, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled), gradient(of_an_array))
        ARRAY[:] += 1


def test_compiled_objects_are_not_kept_alive():
    def compiled(made, call):
        gradient(torch.compile(lambda x: call(made, x), backend="aot_eager", fullgraph=True))
        return weakref.ref(made)

    gone = compiled(Plain(), Plain.rule), compiled(Model(), Model.__call__)
    torch._dynamo.reset()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
