"""The recorder sees every spelling of JAX's custom derivatives, and changes nothing."""

import functools
import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pullback.checker.settings import Settings
from pullback.record.checking import checked
from pullback.record.listening import recording
from pullback.record.recorder import Recorder
from pullback.record.sample import Placeholder, Spec


@pytest.fixture
def recorder():
    return Recorder()


@jax.custom_vjp
def scaled(x, factor):
    return x * factor


scaled.defvjp(
    lambda x, factor: (x * factor, (x, factor)), lambda kept, g: (g * kept[1], jnp.sum(g * kept[0]))
)


@jax.custom_jvp
def cube(x):
    return x**3


cube.defjvps(lambda t, out, x: 3 * x**2 * t)


@jax.custom_gradient
def square(x):
    return x * x, lambda g: 2 * x * g


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def power(n, x):
    return x**n


power.defvjp(lambda n, x: (x**n, x), lambda n, x, g: (n * x ** (n - 1) * g,))


@jax.custom_vjp
def noisy(key, x):
    return x * jax.random.normal(key)


noisy.defvjp(lambda key, x: (noisy(key, x), key), lambda key, g: (None, g * jax.random.normal(key)))


@jax.custom_jvp
def weighed(x, weight):
    return jnp.sin(x) * weight


weighed.defjvps(lambda t, out, x, w: t * jnp.cos(x) * w, lambda t, out, x, w: t * jnp.sin(x))
X = jnp.arange(3.0)


def only(recorder):
    assert recorder.errors == []
    (rule,) = recorder.rules.values()
    return rule


def leaves(recorder):
    return [sample.leaves for sample in only(recorder).samples.values()]


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        (lambda: scaled(X, 2.0), "scaled", "jax.custom_vjp"),
        (lambda: cube(X), "cube", "jax.custom_jvp"),
        (lambda: square(X), "square", "jax.custom_gradient"),
        (lambda: power(2, X), "power", "jax.custom_vjp"),
    ],
)
def test_rules_made_before_the_recording_are_seen(recorder, call, name, kind):
    with recording(recorder):
        call()
    call()
    rule = only(recorder)
    assert (rule.name, rule.kind, rule.framework, rule.calls) == (name, kind, "jax", 1)
    assert rule.path == __file__


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: jax.grad(lambda x: cube(x).sum())(X), [0, 1, 2]),
        (lambda: jax.jvp(cube, (X,), (X,)), [0, 1, 2]),
        (lambda: jax.vmap(cube)(jnp.arange(6.0).reshape(2, 3)), [0, 1, 2]),
        (lambda: jax.vmap(cube, in_axes=1)(jnp.arange(6.0).reshape(2, 3)), [0, 3]),
        (lambda: jax.vmap(jax.vmap(cube, in_axes=1))(jnp.arange(12.0).reshape(2, 2, 3)), [0, 3]),
        (lambda: jax.vmap(jax.grad(lambda x: cube(x).sum()))(jnp.arange(6.0).reshape(2, 3)), [0, 1, 2]),
        (lambda: jax.hessian(lambda x: cube(x).sum())(X), [0, 1, 2]),
    ],
    ids=["grad", "jvp", "vmap", "vmap over columns", "vmap of vmap", "vmap of grad", "hessian"],
)
def test_eager_transformations_carry_their_values(recorder, call, values):
    with recording(recorder):
        call()
    ((value,),) = leaves(recorder)
    np.testing.assert_array_equal(value, np.array(values, np.float32))


def test_a_number_that_a_transformation_was_handed_is_an_array(recorder):
    with recording(recorder):
        jax.vmap(jax.grad(weighed, argnums=(0, 1)), (0, None))(X, 0.2)
    rule = only(recorder)
    ((_, weight),) = leaves(recorder)
    assert (weight.shape, weight.dtype, float(weight)) == ((), np.float32, np.float32(0.2))
    (entry,) = checked(rule, target="", settings=Settings(seed=1))
    assert entry.report.verdict == "right"


def test_under_jit_there_are_specs_until_a_value_comes(recorder):
    with recording(recorder):
        jax.jit(jax.grad(lambda x: square(x).sum()))(X)
        assert leaves(recorder) == [[Spec((3,), "float32")]]
        square(X)
    np.testing.assert_array_equal(leaves(recorder)[0][0], X)


def test_numbers_that_jax_differentiates_are_arrays_and_nondiff_ones_are_not(recorder):
    with recording(recorder):
        power(2.5, 3.0)
    ((n, x),) = leaves(recorder)
    assert n == 2.5
    assert isinstance(n, float)
    assert (x.dtype, x.shape) == (np.float32, ())


def test_keys_are_made_again(recorder):
    with recording(recorder):
        jax.jit(noisy)(jax.random.key(1), X)
    assert isinstance(leaves(recorder)[0][0], Placeholder)
    (entry,) = checked(only(recorder), target="", settings=Settings(seed=1, order=1))
    assert entry.report.verdict == "right"


def test_jax_s_own_rules_are_left_out_unless_asked(recorder):
    everything = Recorder(everything=True)
    with recording(recorder), recording(everything):
        jax.nn.relu(X)
    assert not recorder.rules
    assert [rule.name for rule in everything.rules.values()] == ["relu"]


def test_definitions_are_told(recorder):
    with recording(recorder):

        @jax.custom_gradient
        def later(x):
            return x, lambda g: g

    assert [(rule.name, rule.kind) for rule in recorder.defined.values()] == [
        ("test_definitions_are_told.later", "jax.custom_gradient")
    ]


def test_a_rule_over_a_tracer_is_no_leak_of_ours_and_says_why_it_was_not_run(recorder):
    @jax.jit
    def outer(x):
        @jax.custom_jvp
        def inner(y):
            return y * x

        inner.defjvps(lambda t, out, y: t * x)
        return inner(2.0)

    with recording(recorder):
        outer(3.0)
    (entry,) = checked(only(recorder), target="", settings=Settings(seed=1))
    assert entry.report.verdict == "undecided"
    assert "only while JAX traced it" in entry.report.findings[0].sentence


def test_traced_programs_and_caches_stay_the_same(recorder):
    def loss(x):
        return jnp.sum(scaled(x, 2.0) + cube(x) + square(x) + power(3, x))

    def run():
        step = jax.jit(jax.value_and_grad(loss))
        values = [np.asarray(v).tobytes() for _ in range(3) for v in step(X)]
        text = step.lower(X).as_text(debug_info=False)
        return values, text, step._cache_size(), str(jax.make_jaxpr(jax.grad(loss))(X))

    plain = run()
    with recording(recorder):
        assert run() == plain
    assert run() == plain


def test_a_call_that_does_not_bind_is_no_call(recorder):
    with recording(recorder), pytest.raises(TypeError, match="missing a required argument"):
        scaled(X)
    assert not recorder.rules


def test_nothing_is_left_behind(recorder):
    module = importlib.import_module("jax._src.custom_derivatives")
    before = (
        module.resolve_kwargs,
        jax.custom_vjp.__init__,
        jax.custom_vjp.__call__,
        jax.custom_jvp.__init__,
    )
    with recording(recorder):
        assert jax.custom_vjp.__call__ is before[2]
    after = (module.resolve_kwargs, jax.custom_vjp.__init__, jax.custom_vjp.__call__, jax.custom_jvp.__init__)
    assert after == before


class Layer(eqx.Module):
    weight: jax.Array
    bias: jax.Array


@eqx.filter_custom_vjp
def applied(layer, x):
    return layer.weight @ x + layer.bias


@applied.def_fwd
def _applied_forward(perturbed, layer, x):
    return applied(layer, x), None


@applied.def_bwd
def _applied_backward(kept, dy, perturbed, layer, x):
    return Layer(2 * jnp.outer(dy, x), dy)


@eqx.filter_custom_jvp
def pushed(layer, x):
    return layer.weight @ x + layer.bias


@pushed.def_jvp
def _pushed_forward(primals, tangents):
    (layer, x), (step, dx) = primals, tangents
    moved = 2 * (step.weight @ x) + step.bias
    return pushed(layer, x), moved if dx is None else moved + layer.weight @ dx


@pytest.mark.parametrize("rule", [applied, pushed], ids=["vjp", "jvp"])
def test_what_equinox_takes_apart_has_the_names_of_the_user(recorder, rule):
    layer, x = Layer(jnp.full((2, 3), 0.3), jnp.full(2, 0.1)), jnp.array([0.1, -0.2, 0.3])
    with recording(recorder):
        eqx.filter_grad(lambda layer: rule(layer, x).sum())(layer)
    (found,) = recorder.rules.values()
    (entry,) = checked(found, target="", settings=Settings(seed=1, order=1))
    assert entry.report.failures[0].where == "`layer.weight`"


@jax.custom_vjp
def cross_entropy(logits, labels):
    return -(labels * jax.nn.log_softmax(logits)).sum(-1).mean()


cross_entropy.defvjp(
    lambda logits, labels: (cross_entropy(logits, labels), (jax.nn.softmax(logits), labels)),
    lambda kept, g: (g * (kept[0] - kept[1]) / len(kept[0]), jnp.zeros_like(kept[1])),
)


@jax.custom_vjp
def summed(logits, labels):
    return cross_entropy(logits, labels)


summed.defvjp(
    lambda logits, labels: (cross_entropy(logits, labels), (jax.nn.softmax(logits), labels)),
    lambda kept, g: (g * (kept[0] - kept[1]), jnp.zeros_like(kept[1])),
)


@pytest.mark.parametrize(("loss", "verdict"), [(cross_entropy, "right"), (summed, "wrong")])
@pytest.mark.parametrize("inside", [True, False], ids=["jit of grad", "grad of jit"])
def test_labels_that_no_gradient_is_asked_of_are_data(recorder, loss, verdict, inside):
    x, labels = jnp.arange(12.0).reshape(4, 3) / 6, jax.nn.one_hot(jnp.array([0, 2, 1, 1]), 3)
    with recording(recorder):
        if inside:
            jax.jit(jax.grad(lambda x, labels: loss(jnp.sin(x), labels)))(x, labels)
        else:
            jax.grad(jax.jit(lambda x, labels: loss(jnp.sin(x), labels)))(x, labels)
    (rule,) = (rule for rule in recorder.rules.values() if rule.name == loss.__name__)
    assert rule.moved == {2: {0}}
    (entry,) = checked(rule, target="", settings=Settings(seed=1, order=1))
    assert entry.report.verdict == verdict
