"""A surrogate is recognised and told how to be declared; a mistake is never taken for one."""

import numpy as np
import pytest
import tensorflow as tf
import torch
from rules import RULES

import pullback as pb
from pullback.checker import Settings, check_subject
from pullback.rule import Intent
from pullback.view.subject import KnownAs, Subject

X = np.random.default_rng(3).normal(size=8) * 1.5
QUICK = Settings(seed=1, probes=("contract", "derivative", "linearity"))


def step(x):
    return (x > 0).astype(float)


def sigmoid_slope(x):
    s = 1 / (1 + np.exp(-4 * x))
    return 4 * s * (1 - s)


def nearest(x):
    codes = np.array([[30, 40], [-25, 50], [-60, -30], [50, -45], [0.3, 0.2]])
    apart = np.square(x.reshape(-1, 1, 2) - codes).sum(-1)
    return codes[apart.argmin(-1)].reshape(x.shape)


def checked(forward, pullback, *inputs, seed=1):
    def pulled(inputs, cotangents):
        given = pullback(*inputs, *cotangents)
        return given if isinstance(given, tuple) else (given,)

    subject = Subject(
        name="rule",
        inputs=inputs,
        names=("x", "s")[: len(inputs)],
        differentiable=(True,) * len(inputs),
        forward=lambda inputs: (forward(*inputs),),
        pullback=pulled,
        is_rule=True,
        known_as=KnownAs("package.module.Rule", "torch.autograd.Function", "Rule"),
    )
    return check_subject(subject, Settings(seed=seed, probes=QUICK.probes))


MEANT = {
    "round": (np.round, lambda x, d: d, "straight-through"),
    "round to an eighth": (lambda x: np.round(8 * x) / 8, lambda x, d: d, "straight-through"),
    "to half precision": (lambda x: x.astype(np.float16).astype(float), lambda x, d: d, "straight-through"),
    "floor": (np.floor, lambda x, d: d, "straight-through"),
    "nearest of a codebook": (nearest, lambda x, d: d, "straight-through"),
    "sign, masked": (np.sign, lambda x, d: d * (np.abs(x) < 1), "straight-through"),
    "clip": (lambda x: np.clip(x, -0.5, 0.5), lambda x, d: d, "straight-through"),
    "spike, sigmoid": (step, lambda x, d: d * sigmoid_slope(x), "surrogate gradient"),
    "spike, triangle": (step, lambda x, d: d * np.maximum(0, 1 - np.abs(x)), "surrogate gradient"),
    "spike, arctan": (step, lambda x, d: d / (1 + (np.pi * x) ** 2), "surrogate gradient"),
    "spike, fast sigmoid": (step, lambda x, d: d / (10 * np.abs(x) + 1) ** 2, "surrogate gradient"),
    "round, clipped": (np.round, lambda x, d: np.clip(d, -0.6, 0.6), "surrogate gradient"),
    "reversal": (lambda x: x.copy(), lambda x, d: -0.7 * d, "reversed gradient"),
    "scaling": (lambda x: x.copy(), lambda x, d: 0.1 * d, "scaled gradient"),
    "clipped": (lambda x: x.copy(), lambda x, d: np.clip(d, -0.1, 0.1), "clipped gradient"),
    "clipped seldom": (lambda x: x.copy(), lambda x, d: np.clip(d, -2, 2), "clipped gradient"),
    "clipped by norm": (
        lambda x: x.copy(),
        lambda x, d: d * min(1.0, 5.0 / max(np.linalg.norm(d), 1e-300)),
        "clipped gradient",
    ),
}


@pytest.mark.parametrize("seed", [1, 2, 5])
@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_recognised(name, seed):
    forward, pullback, reason = MEANT[name]
    report = checked(forward, pullback, X, seed=seed)
    assert (report.verdict, report.causes) == ("wrong", ["surrogate"])
    (failure,) = report.failures
    assert failure.sentence.startswith("looks like a surrogate: the function ")
    assert f'pb.declare(Rule, differs="{reason}")' in failure.edit
    assert '[tool.pullback.rules."package.module.Rule"]' in failure.edit
    assert f'# pullback: differs="{reason}"' in failure.edit


def drawn(p):
    if (p < 0).any() or (p > 1).any():
        raise ValueError("no probability")
    return (np.random.default_rng(0).random(p.shape) < p).astype(float)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_draw_by_probabilities_is_recognised(seed):
    """No point outside of them exists."""
    given = 1 / (1 + np.exp(-np.resize(X, 48) * np.linspace(0.5, 1, 48)))
    report = checked(drawn, lambda p, d: d, given, seed=seed)
    assert report.causes == ["surrogate"]


@pytest.mark.parametrize("both", [False, True])
def test_an_input_that_is_not_read_and_gets_the_gradient_of_another_is_recognised(both):
    """As the codes of a vector quantiser are returned, and the encoder is trained."""
    report = checked(lambda z, q: q.copy(), lambda z, q, d: (d, d * both), X, X + 0.3)
    assert report.causes == ["surrogate"]
    assert "`dy` is passed to `x`, which is not read" in report.failures[0].sentence


MISTAKES = {
    "a constant": (lambda x: np.zeros_like(x), lambda x, d: d),
    "round, wrong sign": (np.round, lambda x, d: -d),
    "round, upstream ignored": (np.round, lambda x, d: x),
    "round, upstream squared": (np.round, lambda x, d: d * d),
    "round, something added": (np.round, lambda x, d: d + 0.1 * x),
    "step, garbage": (step, lambda x, d: d * np.sin(40 * x)),
    "relu without its mask": (lambda x: np.maximum(x, 0), lambda x, d: d),
    "identity, reversed in order": (lambda x: x.copy(), lambda x, d: d[::-1]),
    "identity, its value added": (lambda x: x.copy(), lambda x, d: d + x),
    "cube, wrong factor": (lambda x: x**3, lambda x, d: d * 3 * x),
    "negation, sign": (lambda x: -x, lambda x, d: d),
    "sine, wrong sign": (np.sin, lambda x, d: -d * np.cos(x)),
    "sine, clipped": (np.sin, lambda x, d: np.clip(d, -0.1, 0.1) * np.cos(x)),
    "exp, passed through": (np.exp, lambda x, d: d),
}


@pytest.mark.parametrize("seed", [1, 2, 5])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_not_taken_for_one(name, seed):
    report = checked(*MISTAKES[name], X, seed=seed)
    assert report.verdict == "wrong"
    assert "surrogate" not in report.causes


@pytest.mark.parametrize("most", [0.1, 2.0])
def test_a_gradient_that_clips_its_upstream_is_explained_wherever_it_is_seen(most):
    """A small one is seen as a wrong derivative, a large one by its linearity alone."""
    report = checked(np.sin, lambda x, d: np.clip(d, -most, most) * np.cos(x), X)
    assert report.causes == ["upstream-nonlinear"]
    assert "for `2a - 3b` it is not twice" in report.failures[0].sentence


def test_a_small_term_without_the_upstream_is_explained():
    report = checked(np.sin, lambda x, d: d * np.cos(x) + 1e-12 * x, X)
    assert report.causes == ["upstream-additive"]


def test_a_flat_place_of_a_function_is_no_surrogate():
    report = checked(lambda x: np.maximum(x, 0), lambda x, d: d, -np.abs(X) - 0.1)
    assert "surrogate" not in report.causes


def test_the_other_inputs_that_are_wrong_are_named():
    """As in a quantiser whose step is learnt."""
    s = np.array(0.25)
    report = checked(
        lambda x, s: np.round(x / s) * s, lambda x, s, d: (d, np.sum(d * (np.round(x / s) - x / s))), X, s
    )
    assert report.causes == ["surrogate"]
    assert "that of `s` is not the derivative either" in report.failures[0].sentence


def test_a_rule_of_every_framework(framework):
    _, called, x = RULES[framework]()
    report = pb.check(called, x, seed=1, xla=False, export=False)
    assert report.causes == ["surrogate"]
    edit = report.failures[0].edit
    name = "Rounded" if framework == "torch" else "rounded"
    assert f'pb.declare({name}, differs="straight-through")' in edit
    assert f'[tool.pullback.rules."rules.of_{framework}.{name}"]' in edit


def test_a_rule_of_ours_is_told_its_own_way():
    @pb.custom_gradient
    def rounded(x):
        return tf.round(x), lambda dy: dy

    report = pb.check(rounded, tf.constant([0.3, 1.2]), seed=1, xla=False, export=False)
    assert report.failures[0].edit == (
        'if that is meant, declare it: `@pb.custom_gradient(differs="straight-through")`'
    )


def test_spikes_in_single_precision():
    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return (v > 1).float()  # in this dtype alone

        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g / (1 + (torch.pi * (v - 1)) ** 2)

    report = pb.check(Spike.apply, torch.linspace(0.2, 1.9, 12), seed=1, xla=False, export=False)
    assert report.causes == ["surrogate"]


@pytest.mark.parametrize("drawn", ["forward", "gradient"])
def test_what_is_declared_to_differ_may_be_drawn(drawn):
    class Estimate(torch.autograd.Function):
        count = 0

        @staticmethod
        def forward(ctx, x):
            Estimate.count += 1  # numbers that nobody can seed
            return torch.floor(x + 4 * np.random.default_rng(Estimate.count).random() * (drawn == "forward"))

        @staticmethod
        def backward(ctx, g):
            Estimate.count += 1
            return g * (1 + np.random.default_rng(Estimate.count).random() * (drawn == "gradient"))

    x = torch.tensor([0.3, 1.6, -0.7], dtype=torch.float64)
    asked = {"seed": 1, "probes": ["determinism", "derivative"]}
    assert pb.check(Estimate.apply, x, **asked).verdict == "wrong"
    pb.declare(Estimate, differs="an estimate")
    report = pb.check(Estimate.apply, x, **asked)
    assert report.verdict == "right"
    assert [f.cause for f in report.findings if f.probe == "determinism"] == [
        {"forward": "stateful-forward", "gradient": "non-deterministic"}[drawn]
    ]


@pytest.mark.parametrize(
    ("kind", "values", "recorded", "verdict"),
    [
        ("differs", lambda x: x + 1, None, "right"),  # another sampler: what is declared holds there, too
        ("differs", lambda x: x, lambda inputs: (inputs[0] + 1,), "right"),  # and where it is recorded
        ("differs", lambda x: x, None, "wrong"),
        ("exact", lambda x: x + 1, None, "wrong"),
    ],
)
def test_a_declaration_holds_for_other_values_of_a_compiled_variant(kind, values, recorded, verdict):
    subject = Subject(
        name="rule",
        inputs=(X,),
        names=("x",),
        differentiable=(True,),
        forward=lambda inputs: inputs,
        recorded=recorded,
        pullback=lambda inputs, cotangents: (2 * cotangents[0],),
        variants={"compiled": (lambda inputs: (values(inputs[0]),), lambda inputs, cots: (3 * cots[0],))},
        intent=Intent(kind, reason="implicit"),
        is_rule=True,
    )
    report = check_subject(subject, Settings(seed=1, probes=("compiled",)))
    assert report.verdict == verdict
    if verdict == "right":
        assert report.capabilities["compiled"] == "undecided"
