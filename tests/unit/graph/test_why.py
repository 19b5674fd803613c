"""Why a gradient is lost: one row a kind and host."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb

X = [1.0, 2.0]
ZERO = [0.0, 1.0]
ZEROS = {"tensorflow": tf.zeros(2), "jax": jnp.zeros(2), "torch": torch.zeros(2)}
ONES = {"tensorflow": tf.ones(2), "jax": jnp.ones(2), "torch": torch.ones(2)}
FROZEN = tf.Variable(X, trainable=False, name="frozen")
STORE = tf.Variable([0.0, 0.0])
OPPOSITE = torch.tensor([1.0, -1.0])
lax = jax.lax
LAYER = torch.nn.Linear(2, 2)


def tf_captured(x):
    y = x * 2.0

    @tf.custom_gradient
    def rule(a):
        return a * y, lambda dy: dy

    return rule(tf.ones(2))


class Reads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * Reads.y

    @staticmethod
    def backward(ctx, dy):
        return dy


def torch_captured(x):
    Reads.y = x * 2.0
    return Reads.apply(torch.ones(2, requires_grad=True))


def torch_unrecorded(x):
    with torch.no_grad():
        y = x * 2.0
    return y * 3.0


@tf.custom_gradient
def tf_zeros(x):
    return x * 2.0, lambda dy: dy * 0.0


@jax.custom_vjp
def jax_zeros(x):
    return x * 2.0


jax_zeros.defvjp(lambda x: (x * 2.0, None), lambda _, dy: (dy * 0.0,))


class Zeros(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, dy):
        return dy * 0.0


def jax_until(x):
    return lax.while_loop(lambda y: y[0] < 9, jnp.exp, x)


def torch_judged(x):
    return torch.nn.functional.binary_cross_entropy(torch.sigmoid(x), torch.ones_like(x))


# kind, host, function, point, the operation, the gradient
CASES = [
    ("stop", "tensorflow", lambda x: tf.stop_gradient(x) * 2.0, X, "StopGradient", "None"),
    ("stop", "jax", lambda x: jax.lax.stop_gradient(x) * 2.0, X, "stop_gradient", "0"),
    ("stop", "torch", lambda x: x.detach() * 2.0, X, "detach", "None"),
    ("stop", "torch", lambda x: x.data * 2.0, X, "data", "None"),
    ("stop", "torch", lambda x: x.clone().detach().requires_grad_() * 2.0, X, "detach", "None"),
    ("stop", "tensorflow", lambda x: pb.stop_gradient(x) * 2.0, X, "stop_gradient", "None"),
    ("stop", "jax", lambda x: pb.stop_gradient(x) * 2.0, X, "stop_gradient", "0"),
    ("stop", "torch", lambda x: pb.stop_gradient(x) * 2.0, X, "stop_gradient", "None"),
    ("stop", "torch", lambda x: Zeros.apply(x.data) * 2.0, X, "data", "None"),
    ("integer", "torch", lambda x: x * 2, [1, 2], "", "None"),
    ("integer", "tensorflow", lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32), X, "Cast", "None"),
    ("integer", "jax", lambda x: x.astype(int).astype(float), X, "convert_element_type", "0"),
    ("integer", "torch", lambda x: x.long().float() * 2.0, X, "long", "None"),
    ("numpy", "tensorflow", lambda x: tf.constant(np.sin((x * 2.0).numpy())), X, "numpy", "None"),
    ("numpy", "tensorflow", lambda x: tf.constant(np.asarray(x * 2.0)), X, "numpy", "None"),
    ("numpy", "tensorflow", lambda x: tf.numpy_function(np.sin, [x], x.dtype), X, "numpy_function", "None"),
    ("stored", "tensorflow", lambda x: STORE.assign(x * 2.0) * 3.0, X, "AssignVariableOp", "None"),
    ("numpy", "jax", lambda x: jnp.asarray(np.sin(np.asarray(x))), X, "<lambda>", "0"),
    ("numpy", "jax", lambda x: jnp.ones(2) * (x * 2.0).sum().item(), X, "<lambda>", "0"),
    ("numpy", "torch", lambda x: torch.ones(2) * (x * 2.0).sum().item(), X, "item", "None"),
    ("numpy", "torch", lambda x: torch.tensor(np.sin(x.detach().numpy())), X, "numpy", "None"),
    ("numpy", "torch", lambda x: torch.tensor(np.sin(x.numpy())), X, "numpy", "None"),
    ("captured", "tensorflow", tf_captured, X, "rule", "None"),
    ("captured", "torch", torch_captured, X, "Reads", "None"),
    ("elsewhere", "tensorflow", lambda x: ONES["tensorflow"] * 3.0, X, "captured (2,)", "None"),
    ("elsewhere", "jax", lambda x: ONES["jax"] * 3.0, X, "captured (2,)", "0"),
    ("elsewhere", "torch", lambda x: ONES["torch"] * 3.0, X, "captured (2,)", "None"),
    ("unused", "tensorflow", lambda x: tf.constant(3.0), X, "", "None"),
    ("unused", "jax", lambda x: jnp.asarray(3.0), X, "", "0"),
    ("unused", "torch", lambda x: torch.tensor(3.0), X, "", "None"),
    ("zero derivative", "tensorflow", lambda x: tf.round(x) * 2.0, X, "Round", "None"),
    ("zero derivative", "tensorflow", lambda x: tf.sign(x) * 2.0, X, "Sign", "0"),
    ("zero derivative", "tensorflow", lambda x: tf.cast(tf.argmax(x), tf.float32), X, "ArgMax", "None"),
    ("zero derivative", "tensorflow", lambda x: tf.cast(x > 0, tf.float32) * 2.0, X, "Greater", "None"),
    ("zero derivative", "jax", lambda x: jnp.round(x) * 2.0, X, "round", "0"),
    ("zero derivative", "jax", lambda x: jnp.sign(x) * 2.0, X, "sign", "0"),
    ("zero derivative", "jax", lambda x: jnp.argmax(x) * 2.0, X, "argmax", "0"),
    ("zero derivative", "jax", lambda x: (x > 0).astype(float) * 2.0, X, "gt", "0"),
    ("zero derivative", "torch", lambda x: x.round() * 2.0, X, "round", "0"),
    ("zero derivative", "torch", lambda x: torch.sign(x) * 2.0, X, "sign", "0"),
    ("zero derivative", "torch", lambda x: x.argmax() * 2.0, X, "argmax", "None"),
    ("zero derivative", "torch", lambda x: (x > 0).float() * 2.0, X, "gt", "None"),
    ("zero derivative", "jax", lambda x: (jax.nn.sigmoid(x) < 0.5).astype(float), X, "lt", "0"),
    ("no gradient", "jax", jax_until, X, "while", "not defined"),
    ("dead", "tensorflow", lambda x: tf.nn.relu(-x), X, "Relu", "0"),
    ("dead", "jax", lambda x: jax.nn.relu(-x), X, "relu", "0"),
    ("dead", "jax", lambda x: jnp.maximum(-x, 0.0), X, "max", "0"),
    ("dead", "torch", lambda x: torch.relu(-x), X, "relu", "0"),
    ("saturated", "tensorflow", lambda x: tf.sigmoid(1000 * x), X, "Sigmoid", "0"),
    ("saturated", "tensorflow", lambda x: tf.clip_by_value(x, 0.0, 0.5), X, None, "0"),
    ("saturated", "jax", lambda x: jax.nn.sigmoid(1000 * x), X, "logistic", "0"),
    ("saturated", "torch", torch_judged, [-200.0, -300.0], "sigmoid", "0"),
    ("saturated", "torch", lambda x: torch.tanh(1000 * x), X, "tanh", "0"),
    ("saturated", "torch", lambda x: x.clamp(0.0, 0.5), X, "clamp", "0"),
    ("where", "tensorflow", lambda x: tf.where(x < 0, x, 1.0), X, "SelectV2", "0"),
    ("where", "jax", lambda x: jnp.where(x < 0, x, 1.0), X, "select_n", "0"),
    ("where", "torch", lambda x: torch.maximum(x, ONES["torch"] * 9.0), X, "maximum", "0"),
    ("where", "torch", lambda x: torch.where(x < 0, x, 1.0), X, "where", "0"),
    ("0·inf", "tensorflow", lambda x: tf.where(x > 0, tf.math.log(x), 0.0), ZERO, "Log", "NaN"),
    ("0·inf", "tensorflow", lambda x: tf.math.log(x) * ZEROS["tensorflow"], ZERO, "Log", "NaN"),
    ("0·inf", "jax", lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), ZERO, "sqrt", "NaN"),
    ("0·inf", "jax", lambda x: jnp.sqrt(x) * ZEROS["jax"], ZERO, "sqrt", "NaN"),
    ("0·inf", "torch", lambda x: torch.where(x > 0, torch.sqrt(x), 0.0), ZERO, "sqrt", "NaN"),
    ("0·inf", "torch", lambda x: torch.sqrt(x) * ZEROS["torch"], ZERO, "sqrt", "NaN"),
    ("singular", "tensorflow", lambda x: tf.sqrt(x), ZERO, "Sqrt", "inf"),
    ("singular", "jax", lambda x: jnp.sqrt(x), ZERO, "sqrt", "inf"),
    ("singular", "torch", lambda x: torch.sqrt(x), ZERO, "sqrt", "inf"),
    ("forward", "tensorflow", lambda x: tf.sqrt(-x) * x, X, "Sqrt", "NaN"),
    ("forward", "jax", lambda x: jnp.sqrt(-x) * x, X, "sqrt", "NaN"),
    ("forward", "torch", lambda x: torch.sqrt(-x) * x, X, "sqrt", "NaN"),
    ("forward", "tensorflow", lambda x: x * tf.math.log(x), ZERO, "Mul", "NaN"),
    ("forward", "torch", lambda x: x * torch.log(x), ZERO, "mul", "NaN"),
    ("overflow", "torch", lambda x: x.half().float() * 1e6, X, "to_copy", "inf"),
    ("underflow", "torch", lambda x: (x.half() * 1e-4).float() * 1e-5, X, "mul", "0"),
    ("underflow", "jax", lambda x: (x.astype("float16") * 1e-4).astype("float32") * 1e-5, X, "mul", "0"),
    ("corner", "torch", lambda x: x.norm(), [0.0, 0.0], "linalg_vector_norm", "0"),
    ("corner", "torch", lambda x: x.std(), [2.0, 2.0], "std", "0"),
    ("cancels", "torch", lambda x: (x[0] * OPPOSITE).sum(), X, "mul", "0"),
    ("zero factor", "tensorflow", lambda x: x * ZEROS["tensorflow"], X, "Mul", "0"),
    ("zero factor", "jax", lambda x: x * ZEROS["jax"], X, "mul", "0"),
    ("zero factor", "torch", lambda x: x * ZEROS["torch"], X, "mul", "0"),
    ("rule", "tensorflow", lambda x: tf_zeros(x), X, "tf_zeros", "0"),
    ("rule", "jax", lambda x: jax_zeros(x), X, "jax_zeros", "0"),
    ("rule", "torch", lambda x: Zeros.apply(x), X, "Zeros", "0"),
    ("cancels", "tensorflow", lambda x: x - x, X, "", "0"),
    ("cancels", "jax", lambda x: x - x, X, "", "0"),
    ("cancels", "torch", lambda x: x - x, X, "", "0"),
    ("no_grad", "torch", torch_unrecorded, X, "mul", "None"),
    ("flows", "tensorflow", lambda x: x * 2.0, X, "", "2.83"),
    ("flows", "jax", lambda x: x * 2.0, X, "", "2.83"),
    ("flows", "torch", lambda x: x * 2.0, X, "", "2.83"),
]
TENSORS = {"tensorflow": tf.constant, "jax": jnp.asarray, "torch": torch.tensor}


@pytest.mark.parametrize(
    ("kind", "host", "f", "point", "operation", "gradient"),
    CASES,
    ids=[f"{case[1]}-{case[0]}-{case[4]}" for case in CASES],
)
def test_the_kind_of_a_loss_is_named(kind, host, f, point, operation, gradient):
    answer = pb.why(f, TENSORS[host](point))
    assert answer.kind == kind, str(answer)
    assert answer.gradient == gradient
    if operation is not None:
        assert answer.lost_at.partition(" (test_why")[0] == operation
    assert answer.fix or kind == "flows"
    if kind not in ("unused", "elsewhere"):
        assert answer.path[-1] == "x"


def tf_loop(x):
    for _ in tf.range(3):
        x = tf.round(x) * 2.0
    return x


def tf_nested(x):
    found = tf.TensorArray(tf.float32, 2)
    for i in tf.range(2):
        if x[i] > 0.0:
            found = found.write(i, tf.floor(x[i]))
        else:
            found = found.write(i, x[i] * 0.0 + tf.sign(x[i]))
    return found.stack()


def tf_branch(x):
    return tf.cast(tf.cast(x, tf.int32), tf.float32) if tf.reduce_sum(x) > 0.0 else x


def tf_swapped(x):
    """After an odd number of rounds it would flow: no operation loses it by itself."""
    a, b = x, x
    for _ in tf.range(2):
        a, b = b * 2.0, tf.round(a)
    return a


def _risen(y):
    return jnp.floor(y) + 1.0


AT_TF, AT_JAX = tf.constant(X), jnp.asarray(X)
INSIDE = [
    ("zero derivative", tf_loop, AT_TF, "Round in a loop"),
    ("zero derivative", tf_nested, AT_TF, "Floor in a loop"),
    ("zero derivative", lambda x: tf.map_fn(tf.floor, x), AT_TF, "Floor in a loop"),
    ("integer", tf_branch, AT_TF, "Cast in a branch"),
    ("numpy", lambda x: tf.py_function(lambda t: np.sin(t.numpy()), [x], x.dtype), AT_TF, "py_function"),
    ("zero derivative", lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.round(y), x), AT_JAX, "round in scan"),
    ("stop", lambda x: lax.map(lambda t: lax.stop_gradient(t), x), AT_JAX, "stop_gradient in scan"),
    ("zero derivative", lambda x: lax.cond(x[0] > 0, lax.floor, lambda t: t, x), AT_JAX, "floor in cond"),
    ("flows", lambda x: lax.cond(x[0] < 0, lax.floor, lambda t: t, x), AT_JAX, ""),
    ("zero derivative", lambda x: lax.while_loop(lambda y: y[0] < 9, _risen, x), AT_JAX, "floor in while"),
    ("zero derivative", jax.checkpoint(lambda x: jnp.sign(x) * 2.0), AT_JAX, "sign"),
]


@pytest.mark.parametrize(("kind", "f", "x", "operation"), INSIDE, ids=[case[3] or "flows" for case in INSIDE])
def test_a_loss_inside_of_a_loop_or_a_branch_is_named(kind, f, x, operation):
    answer = pb.why(f, x)
    assert (answer.kind, answer.lost_at.partition(" (test_why")[0]) == (kind, operation), str(answer)


def tf_chosen(x):
    return tf.stop_gradient(x) if tf.reduce_sum(x) > 0.0 else tf.round(x)


@pytest.mark.parametrize(
    ("f", "x", "at"),
    [
        (tf_chosen, AT_TF, "StopGradient in a branch"),
        (lambda x: lax.cond(x.sum() > 0, lax.floor, lambda t: t, x), AT_JAX, "floor in cond"),
    ],
    ids=["tensorflow", "jax"],
)
def test_neither_the_other_branch_nor_what_decides_is_blamed(f, x, at):
    answer = pb.why(f, x)
    assert (answer.lost_at.partition(" (test_why")[0], answer.also) == (at, ())


def test_what_runs_inside_of_a_loop_is_said_in_the_words_of_the_user():
    answer = str(pb.why(tf_loop, AT_TF))
    assert ": Round is constant between its steps" in answer
    assert "Path: output ← loop ← x." in answer


def test_only_the_answer_looks_into_loops():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, y: jnp.round(y), x)

    assert any(node.bodies for node in pb.why(f, AT_JAX).graph.nodes)
    assert not any(node.bodies for node in pb.graph(f, AT_JAX).nodes)


def test_where_a_way_leads_through_a_loop_no_operation_in_it_is_blamed():
    assert pb.why(tf_swapped, tf.constant(X)).lost_at.startswith("a loop")
    answer = pb.why(lambda x: jax.lax.scan(lambda c, t: (c, t * t + jnp.sign(t)), 1.0, x)[1], jnp.zeros(2))
    assert (answer.kind, answer.lost_at.partition(" (")[0]) == ("zero", "scan")


def test_a_value_that_where_does_not_select_may_be_nan():
    """The result is finite: it is the gradient alone that is not."""
    on_jax = pb.why(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), jnp.asarray([4.0, -1.0]))
    on_torch = pb.why(lambda x: torch.where(x > 0, torch.sqrt(x), 0.0), torch.tensor([4.0, -1.0]))
    for answer in (on_jax, on_torch):
        assert answer.kind == "0·inf"
        assert "where(ok, x, 1.0)" in answer.fix


def test_the_answer_is_a_few_sentences():
    def loss(x):
        return (x * 3.0).detach().sum()

    assert str(pb.why(loss, torch.tensor(X))).splitlines()[::2] == [
        "The gradient of loss by x is None.",
        "Path: output ← sum ← detach ← mul ← x.",
    ]
    assert "test_why.py:" in pb.why(loss, torch.tensor(X)).lost_at


def test_the_trap_of_where_has_its_own_fix():
    answer = pb.why(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), jnp.asarray(ZERO))
    assert "where(ok, x, 1.0)" in answer.fix


def test_of_several_arguments_the_worst_is_answered_for():
    answer = pb.why(lambda x, y: x * torch.sqrt(y), (torch.tensor([0.0]), torch.tensor([0.0])))
    assert answer.source == "y"
    assert answer.kind == "0·inf"


def test_every_place_that_loses_it_is_named():
    answer = pb.why(lambda x: tf.stop_gradient(tf.cast(tf.round(x), tf.int32) * 2), tf.constant(X))
    assert answer.also or answer.kind == "integer"


def test_thousands_of_operations_that_nobody_recorded_are_followed():
    def f(x):
        with torch.no_grad():
            for _ in range(1500):
                x = x * 1.0
        return x

    answer = pb.why(f, torch.tensor(X))
    assert answer.kind == "no_grad"
    assert len(answer.path) == 12


def test_a_stop_is_named_last_because_it_is_meant():
    answer = pb.why(lambda x: torch.round(x) - x.detach(), torch.tensor(X))
    assert answer.lost_at.startswith("round")
    assert answer.also[0].startswith("detach")


def test_nan_after_an_infinity_tells_where_that_began():
    answer = pb.why(lambda x: x * torch.log(x), torch.tensor(ZERO))
    assert "It is infinite before, from log (test_why.py:" in answer.means


@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_a_tensor_that_is_made_anew_has_its_own_fix():
    answer = pb.why(lambda x: torch.tensor([x.sum(), x.mean()]).sum(), torch.tensor(X))
    assert (answer.kind, answer.lost_at.partition(" ")[0]) == ("stop", "tensor")
    assert "torch.stack" in answer.fix


def test_the_line_of_the_user_is_named_and_not_that_of_numpy():
    assert "test_why.py:" in pb.why(lambda x: np.sort(x).sum(), torch.tensor(X)).lost_at


def test_what_pytorch_does_not_measure_is_not_known():
    def f(x):
        return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)

    answer = pb.why(f, torch.tensor(X))
    assert (answer.kind, answer.gradient) == ("unknown", "not known")
    assert "incompatible with .grad()" in str(answer)


# ── variables ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_variable_that_is_not_trained_is_not_watched():
    answer = pb.why(lambda: tf.reduce_sum(FROZEN * 2.0), FROZEN)
    assert answer.kind == "unwatched"
    assert "trainable=True" in answer.fix
    trained = tf.Variable(X)
    assert pb.why(lambda: tf.reduce_sum(trained * 2.0), trained).kind == "flows"
    assert pb.why(lambda v: tf.reduce_sum(v * 2.0), FROZEN).kind == "unwatched"


def test_a_constant_of_tensorflow_must_be_watched():
    assert "tape.watch" in str(pb.why(lambda x: x * 2.0, tf.constant(X)))


def test_a_parameter_is_followed_through_its_module():
    answer = pb.why(lambda: LAYER(torch.ones(2)).detach() * 2.0, LAYER.weight)
    assert answer.kind == "stop"
    assert answer.source == "LAYER.weight"


def test_variables_are_named_even_if_nothing_reads_them():
    assert pb.why(lambda: LAYER.weight.sum(), LAYER.bias).source == "LAYER.bias"
    other = torch.nn.Parameter(torch.ones(2, 3))
    assert pb.why(lambda: LAYER.weight.sum(), other).source == "a parameter (2, 3)"
    assert pb.why(lambda: tf.reduce_sum(FROZEN), FROZEN).source == "frozen"


def test_the_variables_of_a_model_are_asked_for_together():
    answer = pb.why(lambda: LAYER(torch.ones(2)).detach() * 2.0, list(LAYER.parameters()))
    assert answer.kind == "stop"
    assert pb.why(lambda: LAYER(torch.ones(2)), {"w": LAYER.weight, "b": LAYER.bias}).kind == "flows"


# ── tensors ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tensor_of_torch_knows_its_graph():
    x = torch.tensor(X, requires_grad=True)
    assert pb.why(torch.relu(-x * 2.0), x).kind == "dead"
    middle = x * 3.0
    assert pb.why((middle * 2.0).sum(), middle).gradient == "2.83"
    cut = (x * 2.0).detach().requires_grad_()
    answer = pb.why(cut * 3.0, x)
    assert answer.kind == "no history"
    assert "Pass the function" in answer.fix


def test_a_tensor_that_requires_no_gradient_is_told():
    x = torch.tensor(X)
    answer = pb.why((x * 2.0).sum(), x)
    assert answer.kind == "not required"
    assert "requires_grad_()" in answer.fix


@pytest.mark.parametrize("x", [tf.constant(X), jnp.asarray(X), torch.tensor(X)], ids=["tf", "jax", "torch"])
def test_of_a_function_that_fails_nothing_is_claimed(x):
    def fails(x):
        raise RuntimeError("out of order")

    answer = pb.why(fails, x)
    assert (answer.kind, answer.gradient) == ("unknown", "not known")
    assert "RuntimeError: out of order" in str(answer)


@pytest.mark.parametrize("tensor", [tf.constant(X), jnp.asarray(X)], ids=["tensorflow", "jax"])
def test_a_tensor_without_history_is_refused_in_words(tensor):
    with pytest.raises(pb.errors.InputError, match="no history is kept"):
        pb.why(tensor * 2.0, tensor)
