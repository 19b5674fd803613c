"""Known small functions, node by node and edge by edge, on three hosts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb


@pb.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy


@tf.custom_gradient
def tf_rule(x):
    cosine = tf.cos(x)
    return tf.sin(x), lambda dy: dy * cosine


@jax.custom_vjp
def jax_rule(x):
    return jnp.sin(x)


jax_rule.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cosine, dy: (dy * cosine,))


class TorchRule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.cos(x))
        return torch.sin(x)

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0]


HOSTS = {
    "tensorflow": (tf.constant, tf_rule, tf.exp, "tf.custom_gradient"),
    "jax": (jnp.asarray, jax_rule, jnp.exp, "jax.custom_vjp"),
    "torch": (torch.tensor, TorchRule.apply, torch.exp, "torch.autograd.Function"),
}


@pytest.fixture(params=sorted(HOSTS))
def host(request):
    return request.param


def edges(graph):
    return {(graph.nodes[e.source].name, graph.nodes[e.target].name): e for e in graph.edges}


def test_every_node_and_edge_of_a_small_function(host):
    tensor, _, exp, _ = HOSTS[host]

    def f(x, y):
        return exp(x) * y

    graph = pb.graph(f, tensor([1.0, 2.0]), tensor([3.0, 4.0]))
    exp_name, mul_name = ("Exp", "Mul") if host == "tensorflow" else ("exp", "mul")
    assert [(n.name, n.kind) for n in graph.nodes] == [
        ("x", "input"),
        ("y", "input"),
        (exp_name, "operation"),
        (mul_name, "operation"),
        ("output", "output"),
    ]
    found = edges(graph)
    assert set(found) == {("x", exp_name), (exp_name, mul_name), ("y", mul_name), (mul_name, "output")}
    norms = {name: edge.gradient.norm for name, edge in found.items()}
    assert norms["x", exp_name] == pytest.approx(np.hypot(3 * np.e, 4 * np.e**2), rel=1e-5)
    assert norms[exp_name, mul_name] == pytest.approx(5.0, rel=1e-5)
    assert norms["y", mul_name] == pytest.approx(np.hypot(np.e, np.e**2), rel=1e-5)
    assert norms[mul_name, "output"] == pytest.approx(np.sqrt(2), rel=1e-5)
    assert {(e.shape, e.dtype, e.state) for e in graph.edges} == {((2,), "float32", "flows")}
    assert found[exp_name, mul_name].value.high == pytest.approx(np.e**2, rel=1e-5)
    assert graph.nodes[2].location.startswith("test_tracers.py:")
    assert graph.culprit is None
    assert (graph.title, graph.host, graph.problem, graph.notes) == ("f", host, "", ())


def test_cotangents_are_what_the_gradient_starts_from(host):
    tensor, _, exp, _ = HOSTS[host]
    graph = pb.graph(lambda x: exp(x), tensor([0.0, 0.0]), cotangents=[tensor([3.0, 4.0])])
    assert graph.nodes[0].gradient.norm == pytest.approx(5.0)


def test_rules_are_one_node_with_what_they_keep(host):
    tensor, rule, _, maker = HOSTS[host]
    graph = pb.graph(lambda x: square(rule(x)), tensor([1.0, 2.0, 3.0]))
    marked = {n.name: n for n in graph.nodes if n.rule is not None}
    assert len(graph.nodes) == 4, "what is inside a rule is not drawn"
    (native,) = set(marked) - {"square"}
    assert marked["square"].rule.maker == "pullback"
    assert marked[native].rule.maker == maker
    assert {n.rule.intent for n in marked.values()} == {"exact"}
    assert marked["square"].kept == marked[native].kept == 12


def test_rules_are_marked_by_intent(host):
    tensor = HOSTS[host][0]

    def f(x):
        return pb.round(pb.clip_gradient(x, norm=1.0))

    graph = pb.graph(f, tensor([0.2, 1.7]))
    assert [n.rule.intent for n in graph.nodes if n.rule is not None] == ["differs", "surrogate"]


def test_a_share_is_that_of_one_edge(host):
    """Of two users of a value, the one that gives NaN is told from the other."""
    tensor, _, exp, _ = HOSTS[host]

    def f(x):
        return exp(x) + (x * 0.0) ** 0.5 * 0.0

    graph = pb.graph(f, tensor([1.0, 2.0]))
    states = {
        graph.nodes[e.target].operation: e.state for e in graph.edges if graph.nodes[e.source].name == "x"
    }
    assert states[graph.nodes[1].operation] != states[next(reversed(states))]
    assert graph.nodes[graph.culprit.node].does in ("pow", "sqrt")
    assert graph.culprit.state == "nan"
    assert "what comes to it is finite" in graph.culprit.says


def test_what_stops_a_gradient_is_drawn(host):
    tensor, _, exp, _ = HOSTS[host]
    stop = {"tensorflow": tf.stop_gradient, "jax": jax.lax.stop_gradient, "torch": torch.Tensor.detach}[host]
    graph = pb.graph(lambda x: stop(exp(x)) * x, tensor([1.0, 2.0]))
    (stopped,) = [n for n in graph.nodes if n.does == "stop"]
    (into,) = [e for e in graph.edges if e.target == stopped.id]
    assert into.state == "none"
    assert graph.culprit is None, "x has a gradient along another path: the stop is meant"
    graph = pb.graph(lambda x: stop(exp(x)) * 2.0, tensor([1.0, 2.0]))
    assert graph.nodes[graph.culprit.node].does == "stop"


def test_a_function_that_cannot_be_traced_is_said_in_a_sentence_and_drawn_as_far_as_it_goes(host):
    tensor, _, exp, _ = HOSTS[host]

    def f(x):
        exp(x)
        raise ValueError("no more")

    graph = pb.graph(f, tensor([1.0, 2.0]))
    assert graph.problem.startswith("f cannot be ")
    assert "no more" in graph.problem
    assert "\n" not in graph.problem
    assert graph.nodes[0].name == "x"
    if host != "jax":
        assert any(n.does == "exp" for n in graph.nodes)


def test_what_is_no_function_is_refused():
    with pytest.raises(pb.errors.DefinitionError, match="expected: a function"):
        pb.graph(3.0)


# ── one host ─────────────────────────────────────────────────────────────────────────────────────────────


def test_jax_draws_a_box_where_python_asks_for_a_value():
    def f(x):
        return x * 2 if x[0] > 0 else x

    graph = pb.graph(f, jnp.asarray([1.0, 2.0]))
    assert graph.problem.startswith("f cannot be traced: TracerBoolConversionError")
    assert [n.name for n in graph.nodes] == ["x", "f", "output"]
    assert graph.nodes[0].gradient.norm == pytest.approx(np.sqrt(8))


def test_jitted_functions_of_jax_are_opened():
    inner = jax.jit(lambda x: jnp.sin(x))

    def layer(x):
        with jax.named_scope("encoder"):
            return inner(x)

    graph = pb.graph(layer, jnp.asarray(1.0))
    (sine,) = [n for n in graph.nodes if n.operation == "sin"]
    assert sine.scope[0] == "encoder"


def test_variables_of_tensorflow_are_named_and_functions_opened():
    weight = tf.Variable([2.0, 3.0], name="weight")
    fixed = tf.Variable([1.0, 1.0], trainable=False)

    @tf.function
    def inner(x):
        return x * weight * fixed

    def f(x):
        with tf.name_scope("block"):
            return inner(x)

    graph = pb.graph(f, tf.constant([1.0, 1.0]))
    assert [(n.name, n.kind) for n in graph.nodes if n.kind not in ("operation", "output")] == [
        ("x", "input"),
        ("weight", "variable"),
        ("a variable that is not trained", "captured"),
    ]
    assert [n.scope for n in graph.nodes if n.kind == "operation"] == [("block",), ("block",)]
    assert graph.nodes[1].gradient.norm == pytest.approx(np.sqrt(2))


def test_a_rule_that_gives_its_input_back_has_one_edge_for_each_operand():
    @pb.custom_gradient
    def kept(a, b):
        return (a, b), lambda da, db: (da, db)

    graph = pb.graph(lambda x: sum(kept(x * 2.0, x * 3.0)), tf.constant([1.0, 2.0]))
    node = next(n for n in graph.nodes if n.name == "kept")
    assert [e.state for e in graph.edges if e.target == node.id] == ["flows", "flows"]


def test_conditions_on_tensors_are_traced_as_a_tf_function_traces_them():
    @tf.function
    def inner(x):
        if tf.reduce_sum(x) > 0:
            return x * 2.0
        return x

    graph = pb.graph(lambda x: inner(x) + 1.0, tf.constant([1.0, 1.0]))
    assert graph.problem == ""
    assert graph.nodes[0].gradient.norm == pytest.approx(np.sqrt(8))


def test_modules_of_torch_are_scopes_and_parameters_are_named():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    graph = pb.graph(model, torch.ones(4, 2))
    assert {n.name for n in graph.nodes if n.kind == "variable"} == {"0.weight", "0.bias"}
    (tanh,) = [n for n in graph.nodes if n.name == "tanh"]
    assert tanh.scope == ("Sequential", "1 Tanh")
    assert model[0].weight.grad is None, "looking changes nothing"


def test_a_value_that_leaves_torch_is_drawn():
    def f(x):
        return x * (x * 2).sum().item()

    graph = pb.graph(f, torch.ones(2))
    assert [n.name for n in graph.nodes if n.does == "leave"] == ["item"]


def test_layers_that_make_their_weights_at_first_are_drawn_with_them():
    import keras

    graph = pb.graph(keras.layers.Dense(2, name="dense"), tf.ones((3, 4)))
    assert graph.notes == ()
    assert {n.name for n in graph.nodes if n.kind == "variable"} == {"dense/kernel", "dense/bias"}
    assert all(n.gradient is not None for n in graph.nodes if n.is_source)


def test_gradients_pass_through_loops_and_lists_of_tensors():
    graph = pb.graph(lambda x: tf.map_fn(lambda row: row * 2.0, x), tf.ones((3, 4)))
    assert graph.culprit is None
    assert graph.nodes[0].gradient.norm == pytest.approx(np.sqrt(48))


def test_what_only_runs_forward_is_said():
    def f(x):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    graph = pb.graph(f, jnp.ones(3))
    assert graph.notes[0].startswith("while has no derivative in JAX: ValueError: Reverse-mode")
    assert graph.nodes[graph.culprit.node].name == "while"


def test_an_input_that_is_returned_has_the_gradient_it_is_given(host):
    tensor = HOSTS[host][0]
    graph = pb.graph(lambda x: x, tensor([1.0, 2.0]))
    assert graph.nodes[0].gradient.norm == pytest.approx(np.sqrt(2))


def test_the_gradient_of_a_function_is_a_function_too():
    graph = pb.graph(torch.func.grad(lambda x: (x**3).sum()), torch.ones(2))
    assert graph.problem == ""
    assert graph.nodes[0].gradient.norm == pytest.approx(np.sqrt(72))


def test_too_many_operations_are_drawn_without_measures(monkeypatch):
    from pullback.graphs.jax import drawing as on_jax
    from pullback.graphs.tensorflow import drawing as on_tensorflow

    monkeypatch.setattr(on_jax, "MEASURED", 3)
    monkeypatch.setattr(on_tensorflow, "MEASURED", 3)
    for f, x in ((jnp.sin, jnp.ones(2)), (tf.sin, tf.ones(2))):
        graph = pb.graph(lambda x, f=f: f(f(f(f(x)))), x)
        assert "4 operations are too many" in graph.notes[0]
        assert [e.state for e in graph.edges] == ["unmeasured"] * 5
        assert graph.culprit is None


def test_a_captured_matrix_leads_to_the_product_that_reads_it():
    matrix = torch.ones(3, 2)
    for shape in ((3,), (5, 3), (4, 5, 3)):  # PyTorch reshapes before and after
        found = edges(pb.graph(lambda h: (h @ matrix).sum(), torch.ones(shape)))
        assert [target for source, target in found if source == "matrix"] == ["mm"]
