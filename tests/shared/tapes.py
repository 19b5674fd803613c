"""TensorFlow with two logical devices, and one way to take gradients in each of its surroundings."""

import pytest
import tensorflow as tf

# MirroredStrategy needs two devices; the number is fixed once TensorFlow has started.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(autouse=True)
def clean_scope():
    """Put back what `tf.map_fn` leaves behind when its body raises: strategies stumble over it later."""
    tf.compat.v1.get_variable_scope()._caching_device = None


def _pull(f, tensors, cotangents):
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs = f(*tensors)
    flat = tf.nest.flatten(outputs)
    given = flat_cotangents(flat) if cotangents is None else cotangents
    return outputs, tape.gradient(flat, tensors, output_gradients=given)


def flat_cotangents(outputs):
    """Make a cotangent for each output that is not constant and not symmetric."""
    made = []
    for k, y in enumerate(outputs):
        ramp = tf.range(tf.size(y, out_type=tf.int32))
        values = tf.cast(tf.sin(1.0 + k + 0.7 * tf.cast(ramp, tf.float32)), y.dtype)
        made.append(tf.reshape(values, tf.shape(y)))
    return made


def _unknown(tensors):
    return [tf.TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors]


def eager(f, tensors, cotangents=None):
    return _pull(f, tensors, cotangents)


def inside(f, tensors, cotangents=None):
    """The tape inside a tf.function."""
    return tf.function(lambda *ts: _pull(f, list(ts), cotangents))(*tensors)


def inside_unknown(f, tensors, cotangents=None):
    """The tape inside a tf.function that knows no lengths."""
    run = tf.function(lambda *ts: _pull(f, list(ts), cotangents), input_signature=_unknown(tensors))
    return run(*tensors)


def outside(f, tensors, cotangents=None):
    """The tape outside the tf.function."""
    return _pull(tf.function(lambda *ts: f(*ts)), tensors, cotangents)


def outside_unknown(f, tensors, cotangents=None):
    return _pull(tf.function(lambda *ts: f(*ts), input_signature=_unknown(tensors)), tensors, cotangents)


def compiled(f, tensors, cotangents=None):
    """The tape and the function compiled by XLA."""
    return tf.function(lambda *ts: _pull(f, list(ts), cotangents), jit_compile=True)(*tensors)


MODES = [eager, inside, inside_unknown, outside, outside_unknown, compiled]


@pytest.fixture(params=MODES, ids=lambda mode: mode.__name__)
def pull(request):
    """Run a function and pull cotangents back, in each surrounding in turn: (outputs, gradients)."""
    return request.param


@pytest.fixture(params=[False, True], ids=["eager", "graph"])
def wrap(request):
    """Leave a function as it is, or make a tf.function of it."""
    return tf.function if request.param else (lambda f: f)
