"""An override of a Keras model is that model in every way of running it that TensorFlow has.

What holds on every backend is in tests/unit/keras.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
import warm

import pullback as pb

X = np.array([[0.4, -1.3, 2.2], [0.1, -0.2, -0.6], [1.0, 0.3, 0.2]], "float32")
Y = np.array([[1.0], [0.5], [-1.0]], "float32")


@keras.saving.register_keras_serializable(package="tests_of_overrides")
def tenfold(dy, x):
    return tf.where(x > 0, 10 * dy, tf.zeros_like(dy))


def model_of(*layers):
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input([3]), *layers, keras.layers.Dense(1)])


def dense():
    keras.utils.set_random_seed(1)
    return keras.layers.Dense(4, "relu")


def slope(f, x=None):
    x = tf.constant(X) if x is None else x
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def step_of(model, **options):
    before = model.get_weights()
    model.compile(keras.optimizers.SGD(0.1), "mse", **options)
    model.fit(X, Y, batch_size=3, verbose=0, shuffle=False)
    return [a - b for a, b in zip(model.get_weights(), before)]


@pytest.mark.parametrize(
    "options", [{"run_eagerly": True}, {"jit_compile": True}, {"jit_compile": False}], ids=str
)
def test_it_trains_in_every_way(options):
    plain = step_of(model_of(dense()), **options)
    found = step_of(pb.override(model_of(dense()), {tf.nn.relu: tenfold}), **options)
    for mine, native, factor in zip(found, plain, (10, 10, 1, 1), strict=True):
        np.testing.assert_allclose(mine, factor * native, rtol=1e-4, atol=1e-6)


def test_its_gradients_in_a_tape_and_its_tangents(wrap):
    model = model_of(dense())
    seen = pb.override(model, {tf.nn.relu: tenfold})
    np.testing.assert_allclose(wrap(lambda x: slope(seen, x))(tf.constant(X)), 10 * slope(model), rtol=1e-5)
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = seen(x)
    np.testing.assert_allclose(accumulator.jvp(y)[:, 0], tf.reduce_sum(slope(seen), 1), rtol=1e-5)


def test_a_metric_and_a_train_step_of_the_users_are_used():
    class Counting(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = model_of(dense())
            self.steps = keras.metrics.Sum(name="steps")

        def call(self, x):
            return self.inner(x)

        def train_step(self, data):
            self.steps.update_state(1)
            return super().train_step(data) | {"steps": self.steps.result()}

    seen = pb.override(Counting(), {tf.nn.relu: tenfold})
    seen.compile("sgd", "mse")
    history = seen.fit(X, Y, batch_size=1, verbose=0).history
    assert history["steps"] == [3.0]
    assert seen.replaced == {"relu": 1}


class Traced(keras.layers.Layer):
    """A layer that somebody has put into a tf.function."""

    @tf.function
    def call(self, x):
        return tf.nn.relu(x) * 2


def test_a_traced_function_inside_is_copied_in_eager_mode_and_refused_in_a_graph():
    model = model_of(keras.layers.Dense(4), Traced())
    plain = slope(model)
    seen = pb.override(model, {tf.nn.relu: lambda dy, x: tenfold(dy, x)})
    for _ in range(2):
        np.testing.assert_allclose(slope(seen), 10 * plain, rtol=1e-5)
    np.testing.assert_allclose(slope(model), plain, rtol=1e-6)
    with pytest.raises(pb.errors.OverrideError, match=r"f\.python_function"):
        step_of(seen)


def test_a_traced_function_without_a_place_is_left_alone():
    seen = pb.override(model_of(dense(), Traced()), {"Dense": lambda dy, inputs: tf.zeros_like(inputs)})
    assert not np.any(slope(seen))
    assert seen.replaced == {"Dense": 2}


def test_the_original_may_grow_and_so_does_the_override():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([dense()])
    seen = pb.override(model, {tf.nn.relu: tenfold})
    model.add(keras.layers.Dense(2))
    assert seen(X).shape == (3, 2)
    assert model.built
    np.testing.assert_allclose(slope(seen), 10 * slope(model), rtol=1e-5)


def test_a_layer_alone():
    layer = dense()
    for kind, gradient in (("Relu", tenfold), ("Dense", lambda dy, inputs: 7 * inputs)):
        seen = pb.override(layer, {kind: gradient})
        assert isinstance(seen, keras.layers.Dense)
        factor = 10 * slope(layer) if kind == "Relu" else 7 * X
        np.testing.assert_allclose(slope(seen), factor, rtol=1e-5)
        assert seen.kernel is layer.kernel


def test_a_clone_of_its_class_is_refused():
    inputs = keras.Input([3])
    seen = pb.override(keras.Model(inputs, dense()(inputs)), {tf.nn.relu: tenfold})
    with pytest.raises(pb.errors.OverrideError, match="they would be lost"):
        keras.models.clone_model(seen)


def test_kinds_of_another_framework_are_refused_by_name():
    import torch

    with pytest.raises(
        pb.errors.OverrideError, match="kinds of PyTorch, and a model that runs on TensorFlow"
    ):
        pb.override(model_of(dense()), {torch.relu: tenfold})


def test_a_checkpoint_of_tensorflow_is_that_of_the_original(tmp_path):
    model = model_of(dense())
    seen = pb.override(model, {tf.nn.relu: tenfold})
    path = tf.train.Checkpoint(model=seen).save(str(tmp_path / "c"))
    other = model_of(dense())
    other.set_weights([0 * w for w in other.get_weights()])
    tf.train.Checkpoint(model=other).restore(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])


ELSEWHERE = """
import sys
import keras, numpy as np, tensorflow as tf
x = tf.ones([1, 3])
def slope(f):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy().ravel()
loaded = tf.saved_model.load(sys.argv[1] + "/exported")
print(*slope(loaded.serve))
try:
    keras.models.load_model(sys.argv[1] + "/m.keras")
except TypeError as error:
    print("pullback.keras" in str(error))
assert "pullback" not in sys.modules
import pullback.keras
def tenfold(dy, x):
    return tf.where(x > 0, 10 * dy, tf.zeros_like(dy))
keras.saving.register_keras_serializable(package="tests_of_overrides")(tenfold)
print(*slope(keras.models.load_model(sys.argv[1] + "/m.keras")))
"""


def test_it_is_loaded_in_another_process(tmp_path):
    seen = pb.override(model_of(dense()), {tf.nn.relu: tenfold})
    seen.export(str(tmp_path / "exported"), verbose=False)
    seen.save(tmp_path / "m.keras")
    script = tmp_path / "elsewhere.py"
    script.write_text(ELSEWHERE, encoding="utf-8")
    done = warm.run(script, tmp_path, modules=["tensorflow"])
    assert done.returncode == 0, done.stderr[-3000:]
    exported, told, loaded = done.stdout.splitlines()
    here = slope(seen, tf.ones([1, 3])).numpy().ravel()
    np.testing.assert_allclose(np.array(exported.split(), float), here, rtol=1e-5)
    assert told == "True"
    np.testing.assert_allclose(np.array(loaded.split(), float), here, rtol=1e-5)
