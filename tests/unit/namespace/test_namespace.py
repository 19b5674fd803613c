"""One body, written in array-API names, is the same rule on every framework, and a function of NumPy's."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import pullback as pb


@pb.custom_gradient
def log1pexp(x):
    xp = pb.namespace(x)
    e = xp.exp(x)

    def grad(dy):
        return dy * (1 - 1 / (1 + e))

    return xp.log(1 + e), grad


@pb.custom_gradient
def cross_entropy(logits, labels):
    """Per example; labels are distributions."""
    xp = pb.namespace(logits, labels)
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    total = xp.sum(xp.exp(shifted), axis=-1, keepdims=True)
    probabilities = xp.exp(shifted) / total
    losses = -xp.sum(labels * (shifted - xp.log(total)), axis=-1)

    def grad(dy):
        return xp.expand_dims(dy, axis=-1) * (probabilities - labels), None

    return losses, grad


@pb.custom_gradient
def normalised_matmul(a, b):
    """a·b with the rows of the result of length one."""
    xp = pb.namespace(a)
    product = xp.matmul(a, b)
    length = xp.sqrt(xp.sum(product * product, axis=-1, keepdims=True))
    y = product / length

    def grad(dy):
        dproduct = (dy - y * xp.sum(y * dy, axis=-1, keepdims=True)) / length
        return (
            xp.matmul(dproduct, xp.matrix_transpose(b)),
            xp.matmul(xp.matrix_transpose(a), dproduct),
        )

    return y, grad


A = np.array([[0.7, -1.3, 2.1], [-0.4, 0.9, -2.6]])
LABELS = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
B = np.array([[0.5, -0.1], [0.3, 0.8], [-0.6, 0.4]])
RULES = {
    "log1pexp": (log1pexp, [A], lambda x: jnp.logaddexp(x, 0.0)),
    "cross_entropy": (
        cross_entropy,
        [A, LABELS],
        lambda x, p: -jnp.sum(jax.lax.stop_gradient(p) * jax.nn.log_softmax(x), -1),
    ),
    "normalised_matmul": (
        normalised_matmul,
        [A, B],
        lambda a, b: (a @ b) / jnp.linalg.norm(a @ b, axis=-1, keepdims=True),
    ),
}


def weighted(xp, y):
    return xp.sum(
        y * xp.asarray(np.cos(np.arange(y.size if xp is jnp else np.prod(y.shape))).reshape(y.shape))
    )


def by_tensorflow(f, arrays):
    tensors = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = f(*tensors)
        total = weighted(pb.namespace(y), y)
    return y.numpy(), [g.numpy() for g in tape.gradient(total, tensors, unconnected_gradients="zero")]


def by_jax(f, arrays):
    with jax.enable_x64(True):
        arrays = [jnp.asarray(a) for a in arrays]
        y = f(*arrays)
        gradients = jax.grad(lambda *xs: weighted(jnp, f(*xs)), argnums=tuple(range(len(arrays))))(*arrays)
        return np.asarray(y), [np.asarray(g) for g in gradients]


def by_torch(f, arrays):
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = f(*tensors)
    gradients = torch.autograd.grad(weighted(pb.namespace(y), y), tensors, allow_unused=True)
    return y.detach().numpy(), [
        np.zeros(t.shape) if g is None else g.numpy() for g, t in zip(gradients, tensors)
    ]


@pytest.mark.parametrize("run", [by_tensorflow, by_jax, by_torch])
@pytest.mark.parametrize("name", RULES)
def test_one_body_runs_on_every_framework(name, run):
    rule, arrays, reference = RULES[name]
    value, gradients = run(rule, arrays)
    expected, expected_gradients = by_jax(reference, arrays)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, wanted in zip(gradients, expected_gradients):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_one_body_runs_on_numpy_for_values(name):
    rule, arrays, reference = RULES[name]
    y = rule(*arrays)
    assert type(y) is np.ndarray
    np.testing.assert_allclose(y, by_jax(reference, arrays)[0], rtol=1e-12)


def test_the_namespace_is_the_frameworks_own_where_it_has_one():
    import array_api_compat.torch

    assert pb.namespace(jnp.ones(2)) is jnp
    assert pb.namespace(np.ones(2)) is np
    assert pb.namespace(torch.ones(2)) is array_api_compat.torch


@pytest.mark.parametrize("make", [tf.constant, jnp.asarray, torch.tensor])
def test_numpy_beside_a_tensor_counts_as_its_framework(make):
    tensor = make([1.0, 2.0])
    assert pb.namespace(np.ones(2), tensor) is pb.namespace(tensor)
    assert pb.namespace(tensor, np.ones(2), 3.0, None) is pb.namespace(tensor)


def test_it_is_found_inside_transformations():
    spaces = []

    def seen(x):
        spaces.append(pb.namespace(x))
        return x * 2.0

    jax.jit(jax.vmap(jax.grad(lambda x: seen(x))))(jnp.ones(3))
    assert set(spaces) == {jnp}
    spaces.clear()
    tf.function(seen)(tf.ones(3))
    assert spaces == [pb.namespace(tf.ones(1))]
    spaces.clear()
    torch.func.vmap(torch.func.grad(seen))(torch.ones(3))
    assert spaces == [pb.namespace(torch.ones(1))]


@pytest.mark.parametrize("axis", [-1, (-2, -1)])
def test_an_axis_from_the_end_is_the_same_one_in_a_batch(axis):
    x = np.arange(24.0).reshape(2, 3, 4)
    found = tf.vectorized_map(lambda row: pb.namespace(row).roll(row, 1, axis=axis), tf.constant(x))
    np.testing.assert_array_equal(found, np.roll(x, 1, axis=axis))


def test_a_variable_and_a_numpy_scalar_have_a_namespace():
    assert pb.namespace(tf.Variable(1.0)) is pb.namespace(tf.ones(1))
    assert pb.namespace(torch.nn.Parameter(torch.ones(2))) is pb.namespace(torch.ones(1))
    assert pb.namespace(np.int64(3)) is np


def test_two_frameworks_are_refused_by_name():
    with pytest.raises(
        pb.errors.HostError, match=r"a TensorFlow tensor \(EagerTensor\) and a PyTorch tensor"
    ):
        pb.namespace(tf.ones(2), torch.ones(2))


@pytest.mark.parametrize("value", ["x", [1.0], {"a": 1}, len, object()], ids=lambda v: type(v).__name__)
def test_what_is_no_array_is_refused(value):
    with pytest.raises(pb.errors.UnsupportedInputError, match=f"a {type(value).__name__}, which is no array"):
        pb.namespace(tf.ones(2), value)


def test_numbers_alone_are_refused():
    with pytest.raises(pb.errors.NoTensorError, match=r"no argument is an array \(int, NoneType\)"):
        pb.namespace(1, None)


def test_a_missing_array_api_compat_is_named():
    code = (
        "import sys; sys.modules['array_api_compat'] = None\n"
        "import torch, pullback as pb\n"
        "try:\n    pb.namespace(torch.ones(1))\n"
        "except pb.errors.HostError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "fix: pip install array-api-compat" in done.stdout, done.stderr


def test_autograph_converts_the_function_and_nothing_of_the_library():
    ran = set()

    def look(frame, event, _):
        if "__autograph_generated" in frame.f_code.co_filename:
            ran.add(frame.f_code.co_name)

    @tf.function
    def traced(x):
        xp = pb.namespace(x)
        if xp.sum(x) > 0:  # a condition that only AutoGraph can make
            x = xp.maximum(x, 2)
        return xp.linalg.matrix_norm(xp.expand_dims(x, axis=0))

    sys.setprofile(look)
    try:
        found = traced(tf.ones([3, 3]))
    finally:
        sys.setprofile(None)
    np.testing.assert_allclose(found, [6.0])
    assert "tf__traced" in ran
    assert not {name for name in ran if name.startswith("tf__")} - {"tf__traced"}


def test_what_it_makes_lies_where_its_arrays_do():
    x = torch.ones(3, device="meta")  # a device that every machine has
    xp = pb.namespace(x, 2.0)
    made = [xp.arange(3), xp.zeros((3,)), xp.ones(3), xp.full((3,), 2.0), xp.eye(3), xp.asarray([1.0, 2.0])]
    made += [xp.linspace(0, 1, 3), xp.empty((3,)), xp.asarray(2, dtype=xp.float64), xp.asarray(x)]
    made += [xp.asarray(np.ones(2)), xp.asarray(np.float32(1))]  # NumPy's arrays name a device, too
    assert {tensor.device.type for tensor in made} == {"meta"}
    assert [made[0].dtype, made[8].dtype] == [torch.int64, torch.float64]
    assert xp.zeros((3,), device="cpu").device.type == "cpu"
    assert xp.asarray(torch.ones(2)).device.type == "cpu"  # a tensor stays where it is
    assert xp is pb.namespace(x)
    assert xp.sum(x).device.type == "meta"
