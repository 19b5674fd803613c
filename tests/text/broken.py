"""One broken rule per text of an error, and how to make it speak.

The rules stand at module level, as most rules do, so that their source lines are those of this file. They are
written in array-API names; each case takes a tensor of shape (3,) of any framework, and raises. In TensorFlow
it does so in eager mode and inside a tf.function.
"""

import concurrent.futures
import threading

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tensorflow as tf
import torch

import pullback as pb
from pullback import errors, hosts
from pullback.hosts.foreign import register
from pullback.hosts.specs import Spec


def around(function):
    """Put a rule into what surrounds it when it is differentiated: here nothing."""
    return function


def host_of(x):
    return hosts.of(x).name


def gradient(function, *inputs):
    """Differentiate by the framework that the inputs are of; in PyTorch so that it can be done again."""
    if host_of(inputs[0]) == "JAX":
        y, pull = jax.vjp(around(function), *inputs)
        return pull(jax.tree.map(jnp.ones_like, y))
    if host_of(inputs[0]) == "PyTorch":
        inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
        outputs = around(function)(*inputs)
        flat = list(outputs) if isinstance(outputs, tuple) else [outputs]
        ones = [torch.ones_like(y) for y in flat]
        return torch.autograd.grad(flat, inputs, ones, create_graph=True)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = around(function)(*inputs)
    return tape.gradient(y, inputs)


def second_gradient(function, x):
    if host_of(x) != "TensorFlow":
        return gradient(lambda x: gradient(function, x)[0], x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        (first,) = gradient(function, x)
    return outer.gradient(first, x)


def push(function, x):
    """Ask for forward mode."""
    if host_of(x) == "JAX":
        return jax.jvp(around(function), (x,), (jnp.ones_like(x),))
    if host_of(x) == "PyTorch":
        return torch.func.jvp(around(function), (x,), (torch.ones_like(x),))
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = around(function)(x)
    return forward.jvp(y)


# ── the definition ───────────────────────────────────────────────────────────────────────────────────────


def undecided(x):
    def grad(dy):
        return dy

    return x, grad


def definition(x):
    pb.custom_gradient(like=undecided, differs="both")(undecided)


def definition_order(x):
    pb.custom_gradient(order=2)(undecided)


def definition_partials(x):
    pb.elementwise(undecided, "cos")


# ── what the body and `grad` return ──────────────────────────────────────────────────────────────────────


@pb.custom_gradient
def square_without_grad(x):
    return x**2


def missing_grad(x):
    square_without_grad(x)


@pb.custom_gradient
def halves(x):
    def grad(dy):
        return dy

    return x / 2, x / 2, grad


def grad_signature(x):
    gradient(halves, x)


class Gradient:
    """Stand where a function should."""


@pb.custom_gradient
def square_with_class(x):
    return x**2, Gradient


def missing_grad_class(x):
    square_with_class(x)


@pb.custom_gradient
def square_with_gradgrad(x):
    def grad(dy):
        def gradgrad():
            return 2 * dy

        return 2 * x * dy, gradgrad

    return x**2, grad


def grad_signature_gradgrad(x):
    second_gradient(square_with_gradgrad, x)


@pb.custom_gradient
def product_with_one(a, b):
    def grad(dy):
        return dy * b

    return a * b, grad


def cotangent_count(x):
    gradient(product_with_one, x, x + 1)


@pb.custom_gradient
def product_by_name(a, b):
    def grad(dy):
        return {"a": dy * b, "c": dy * a}

    return a * b, grad


def cotangent_count_unknown_name(x):
    gradient(product_by_name, x, x + 1)


@pb.custom_gradient
def square_without_return(x):
    def grad(dy):
        print(dy)

    return x**2, grad


def cotangent_count_no_return(x):
    gradient(square_without_return, x)


@pb.custom_gradient
def square_with_one_return(x, negative=False):
    def grad(dy):  # noqa: RET503 (the mistake)
        if negative:
            return -2 * x * dy

    return x**2, grad


def cotangent_count_path(x):
    gradient(square_with_one_return, x)


@pb.custom_gradient
def product_of_x_and_y(x, y):
    def grad(dy):
        return dy * y

    return x * y, grad


def cotangent_count_names(x):
    gradient(product_of_x_and_y, x, x + 1)


def nothing(dy):
    print(dy)


def mapped(x):
    return pb.map_gradient(x, nothing)


def cotangent_count_map(x):
    gradient(mapped, x)


def product(a, b):
    return a * b


def second(a, b):
    return b


product_of_partials = pb.elementwise(product, second)


def cotangent_count_partials(x):
    gradient(product_of_partials, x, x + 1)


@pb.custom_gradient
def add(x, bias):
    def grad(dy):
        return dy, dy

    return x + bias, grad


def cotangent_shape(x):
    gradient(add, pb.namespace(x).stack([x] * 4), x)


@pb.custom_gradient
def square_summed(x):
    def grad(dy):
        return pb.namespace(x).sum(2 * x * dy)

    return x**2, grad


def cotangent_shape_summed(x):
    gradient(square_summed, x)


@pb.custom_gradient
def turn(x):
    def grad(dy):
        return dy

    return pb.namespace(x).matrix_transpose(x), grad


def cotangent_shape_transposed(x):
    gradient(turn, pb.namespace(x).stack([x, x]))


@pb.custom_gradient
def square_of_seven(x):
    def grad(dy):
        return pb.namespace(dy).ones(7)

    return x**2, grad


def cotangent_shape_other(x):
    gradient(square_of_seven, x)


@pb.custom_gradient
def wave(x):
    def grad(dy):
        return pb.namespace(dy).astype(dy, pb.namespace(dy).complex64)

    return pb.namespace(x).sin(x), grad


def cotangent_dtype(x):
    gradient(wave, x)


@pb.custom_gradient
def square_in_words(x):
    def grad(dy):
        return "2x"

    return x**2, grad


def cotangent_dtype_no_number(x):
    gradient(square_in_words, x)


@pb.custom_gradient
def square_in_objects(x):
    def grad(dy):
        return np.array([2, None, "x"], object)

    return x**2, grad


def cotangent_dtype_objects(x):
    gradient(square_in_objects, x)


FOREIGN_ONES = {"TensorFlow": jnp.ones(3), "JAX": torch.ones(3), "PyTorch": jnp.ones(3)}


@pb.custom_gradient
def square_elsewhere(x):
    def grad(dy):
        return FOREIGN_ONES[host_of(dy)]

    return x**2, grad


def host_cotangent(x):
    gradient(square_elsewhere, x)


@pb.custom_gradient
def double(x):
    def grad(dy):
        return 2 * dy

    return 2 * x, grad


@double.pushforward
def double_summed(dx, x):
    return pb.namespace(dx).sum(2 * dx)


def cotangent_shape_tangent(x):
    push(double, x)


@pb.custom_gradient
def triple(x):
    def grad(dy):
        return 3 * dy

    return 3 * x, grad


@triple.pushforward
def triple_alone(dx):
    return 3 * dx


def grad_signature_pushforward(x):
    push(triple, x)


@tf.autograph.experimental.do_not_convert  # a converted copy has no source line of its own
def scale_by(weight):
    @pb.custom_gradient
    def scale(x):
        def grad(dy):
            return dy * weight

        return weight * x, grad

    return scale


def captured_tensor(x):
    gradient(lambda x: scale_by(2 * x)(pb.namespace(x).ones(3)), x)


class Amplifier:
    def __init__(self, gain):
        self.gain = gain

    @pb.custom_gradient
    def amplify(self, x):
        def grad(dy):
            return dy * self.gain

        return self.gain * x, grad


def amplified(x):
    return Amplifier(2 * x).amplify(pb.namespace(x).ones(3))


def captured_tensor_attribute(x):
    gradient(amplified, x)


_weight = tf.Variable([1.0, 2.0, 3.0], name="weight")


@pb.custom_gradient
def scale_by_variable(x):
    def grad(dy):
        return dy * _weight

    return _weight * x, grad


def captured_variable(x):
    gradient(scale_by_variable, x)


@pb.custom_gradient
def count(x):
    def grad(dy):
        return dy

    return pb.namespace(x).astype(x, pb.namespace(x).int32), grad


def output(x):
    gradient(count, x)


@pb.custom_gradient
def kink_by_cond(x):
    def grad(dy):
        return dy

    return tf.cond(x > 0, lambda: 2 * x, lambda: x), grad


def vector_condition(x):
    kink_by_cond(x)


@pb.custom_gradient
def kink_by_if(x):
    y = x
    if x > 0:
        y = 2 * x

    def grad(dy):
        return dy

    return y, grad


def vector_condition_if(x):
    kink_by_if(x)


# ── what a rule is called with, and asked for ────────────────────────────────────────────────────────────


@pb.custom_gradient
def square(x):
    def grad(dy):
        return 2 * x * dy

    return x**2, grad


def no_tensor(x):
    square(2)


def unsupported_input(x):
    square(x.to_sparse() if host_of(x) == "PyTorch" else tf.RaggedTensor.from_row_lengths(x, [1, 2]))


def unsupported_input_dtype(x):
    square(tf.bitcast(tf.zeros([3], tf.int8), tf.qint8))


@pb.custom_gradient(order=1)
def square_once(x):
    def grad(dy):
        return 2 * x * dy

    return x**2, grad


def second_order(x):
    second_gradient(square_once, x)


@pb.custom_gradient(differs="the gradient is kept small")
def calm(x):
    def grad(dy):
        return pb.namespace(dy).clip(dy, -1.0, 1.0)

    return x * 1.0, grad


def forward_mode(x):
    push(calm, x)


@pb.custom_gradient
def sine(x):
    def grad(dy):
        return pb.namespace(x).cos(x)

    return pb.namespace(x).sin(x), grad


_AT = [0.5, -1.0, 2.0]
REPORTS = {
    "TensorFlow": pb.check(sine, tf.constant(_AT), seed=1),
    "JAX": pb.check(sine, jnp.asarray(_AT), seed=1),
    "PyTorch": pb.check(sine, torch.tensor(_AT), seed=1),
}


def wrong_gradient(x):
    REPORTS[host_of(x)].raise_if_wrong()


def host(x):
    add(x, jnp.ones(3) if host_of(x) == "TensorFlow" else tf.ones(3))


class Foreign:
    name = "simulate"
    where = "simulate (broken.py:1)"

    def __init__(self):
        self.token = register(self)

    def __call__(self, arrays):
        return arrays


FOREIGN = Foreign()


def callback(x):
    return hosts.of(x).callback(FOREIGN, [x], [Spec((3,), "float32", "floating")])[0]


def external(x):
    tf.function(callback, jit_compile=True, autograph=False)(x)


def derivative(x):
    gradient(callback, x)


@pb.external(output=lambda x: x)
def simulate(x):
    return 2 * x


def external_gradient(x):
    gradient(simulate, x)


@pb.external(output=lambda x: x, gradient="central", sparsity=np.eye(3))
def coupled(x):
    return x**2 + x[::-1]


def external_gradient_sparsity(x):
    gradient(coupled, jnp.asarray([1.0, 2.0, 3.0]))  # found when it runs: a graph would have its own class


@pb.external(output=lambda x: x, cache=8)
def remembered(x, solver):
    return 2 * x


def option_cache(x):
    remembered(x, Foreign())


MEMORY, TOGETHER = np.zeros(3, np.float32), threading.Barrier(2, timeout=30)


@pb.external(output=lambda x: x)
def in_place(x):
    TOGETHER.wait()
    MEMORY[:] = 2 * x
    TOGETHER.wait()
    return MEMORY


def external_shared(x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for call in [pool.submit(in_place, np.ones(3, np.float32)) for _ in range(2)]:
            call.result()


# ── replacing a gradient ─────────────────────────────────────────────────────────────────────────────────


def steps(x):
    return pb.namespace(x).round(x)


def total(x):
    return pb.namespace(x).sum(x)


def pair(x):
    return x, x


def surrogate(x):
    pb.surrogate(steps, like=total)(x)


def surrogate_structure(x):
    pb.surrogate(steps, like=pair)(x)


def scaled_by(x, factor):
    return x * factor


def surrogate_arguments(x):
    pb.surrogate(steps, like=scaled_by)(x)


def grad_signature_map(x):
    gradient(lambda x: pb.map_gradient(x, scaled_by), x)


def option_axis(x):
    pb.argmax_one_hot(x, axis=7)


def option_counter(x):
    gradient(lambda x: pb.finite_gradient(x, counter="lost"), x)


@pb.custom_gradient
def labelled(x):
    def grad(dy, dlabels):
        return dy

    return x * 1, np.array(["a", None], dtype=object), grad


def unsupported_input_output(x):
    labelled(x)


def unsupported_input_objects(x):
    add(x, np.array([1.0, 2.0, None], dtype=object))


def best(x):
    return x, pb.namespace(x).argmax(x)


def surrogate_dtype(x):
    pb.surrogate(best, like=pair)(x)


def halved(dy, unknown, other):
    return dy / 2


def grad_signature_with_gradient(x):
    gradient(pb.with_gradient(steps, halved), x)


def slope(x):
    return pb.namespace(x).cos(x)


def grad_signature_forgotten(x):
    pb.with_gradient(steps, slope)


def slope_times(dy, x):
    return dy * pb.namespace(x).cos(x)


def grad_signature_partial(x):
    pb.elementwise(steps, slope_times)


def summed(dy):
    return pb.namespace(dy).sum(dy)


def cotangent_shape_with_gradient(x):
    gradient(pb.with_gradient(steps, summed), x)


def surrogate_straight_through(x):
    pb.straight_through(total)(x)


def output_elementwise(x):
    gradient(pb.elementwise(pair, slope), x)


def cotangent_dtype_partial(x):
    gradient(pb.elementwise(steps, str), x)


def definition_with_gradient(x):
    pb.with_gradient(steps, 0.5)


def option(x):
    pb.clip_gradient(x, norm=-1.0)


def option_word(x):
    pb.heaviside(x, slope="sigmod")


def option_factor(x):
    pb.scale_gradient(x, pb.namespace(x).ones((4, 3)))


def option_two(x):
    pb.clip_gradient(x, norm=1.0, value=1.0)


def guarded(x):
    return pb.forbid_gradient(x, reason="labels are no parameters")


def forbidden_gradient(x):
    gradient(guarded, x)


def clipped(x):
    return pb.clip_gradient(x, norm=1.0)


def forward_mode_clip(x):
    push(clipped, x)


def cubed(dy):
    return dy**3


def cubed_on_the_way_back(x):
    return pb.map_gradient(x, cubed)


def forward_mode_map(x):
    push(cubed_on_the_way_back, x)


RELU = {"TensorFlow": tf.nn.relu, "JAX": jax.nn.relu, "PyTorch": torch.relu}
OTHER = {"TensorFlow": tf.nn.elu, "JAX": jnp.sin, "PyTorch": torch.sin}
NO_OPERATION = {"TensorFlow": tf.nn.gelu, "JAX": jax.nn.gelu}


def net(x):
    return RELU[host_of(x)](x) * 2.0


def override(x):
    pb.override(net, {OTHER[host_of(x)]: halved})(x)


def override_no_operation(x):
    pb.override(net, {NO_OPERATION[host_of(x)]: halved})(x)


def override_nothing(x):
    pb.override(net, [halved])


def override_made_anew(x):
    inputs = keras.Input([3])
    model = keras.Model(inputs, keras.layers.Dense(1, "relu")(inputs))
    keras.models.clone_model(pb.override(model, {keras.ops.relu: halved}))


def override_other_framework(x):
    pb.override(keras.layers.Dense(1, name="net"), {torch.relu: halved})


def spread(y_true, y_pred):
    return (y_pred - y_true) ** 2


def averaged(y_true, y_pred):
    return ((y_pred - y_true) ** 2).mean() if host_of(y_pred) != "TensorFlow" else tf.reduce_mean(y_pred)


def first(y_true, y_pred):
    return y_pred[:1]


def output_loss(x):
    gradient(pb.loss(averaged, spread).function, x, x)


def cotangent_shape_loss(x):
    gradient(pb.loss(spread, first).function, x, x)


def cotangent_dtype_loss(x):
    gradient(pb.loss(spread, forgotten).function, x, x)


def forgotten(y_true, y_pred):
    pass


def definition_loss(x):
    pb.loss(spread, net)


def configuration(x):
    from pullback.configuration import parsed

    parsed(b'[tool.pullback.rules."package.Quantise"]\ndifers = "straight-through"', "pyproject.toml")


# name of the snapshot → what is raised, and by what; the first name of a class is its anchor
CASES = {
    "definition": (errors.DefinitionError, definition),
    "definition-order": (errors.DefinitionError, definition_order),
    "definition-partials": (errors.DefinitionError, definition_partials),
    "definition-loss": (errors.DefinitionError, definition_loss),
    "missing-grad": (errors.MissingGradError, missing_grad),
    "missing-grad-class": (errors.MissingGradError, missing_grad_class),
    "grad-signature": (errors.GradSignatureError, grad_signature),
    "grad-signature-gradgrad": (errors.GradSignatureError, grad_signature_gradgrad),
    "grad-signature-pushforward": (errors.GradSignatureError, grad_signature_pushforward),
    "cotangent-count": (errors.CotangentCountError, cotangent_count),
    "cotangent-count-unknown-name": (errors.CotangentCountError, cotangent_count_unknown_name),
    "cotangent-count-no-return": (errors.CotangentCountError, cotangent_count_no_return),
    "cotangent-count-path": (errors.CotangentCountError, cotangent_count_path),
    "cotangent-count-names": (errors.CotangentCountError, cotangent_count_names),
    "cotangent-count-map": (errors.CotangentCountError, cotangent_count_map),
    "cotangent-count-partials": (errors.CotangentCountError, cotangent_count_partials),
    "cotangent-shape": (errors.CotangentShapeError, cotangent_shape),
    "cotangent-shape-summed": (errors.CotangentShapeError, cotangent_shape_summed),
    "cotangent-shape-transposed": (errors.CotangentShapeError, cotangent_shape_transposed),
    "cotangent-shape-other": (errors.CotangentShapeError, cotangent_shape_other),
    "cotangent-shape-tangent": (errors.CotangentShapeError, cotangent_shape_tangent),
    "cotangent-shape-with-gradient": (errors.CotangentShapeError, cotangent_shape_with_gradient),
    "cotangent-dtype": (errors.CotangentDtypeError, cotangent_dtype),
    "cotangent-dtype-no-number": (errors.CotangentDtypeError, cotangent_dtype_no_number),
    "cotangent-dtype-objects": (errors.CotangentDtypeError, cotangent_dtype_objects),
    "cotangent-dtype-partial": (errors.CotangentDtypeError, cotangent_dtype_partial),
    "cotangent-shape-loss": (errors.CotangentShapeError, cotangent_shape_loss),
    "cotangent-dtype-loss": (errors.CotangentDtypeError, cotangent_dtype_loss),
    "captured-tensor": (errors.CapturedTensorError, captured_tensor),
    "captured-tensor-attribute": (errors.CapturedTensorError, captured_tensor_attribute),
    "captured-variable": (errors.CapturedVariableError, captured_variable),
    "output": (errors.OutputError, output),
    "output-elementwise": (errors.OutputError, output_elementwise),
    "output-loss": (errors.OutputError, output_loss),
    "vector-condition": (errors.VectorConditionError, vector_condition),
    "vector-condition-if": (errors.VectorConditionError, vector_condition_if),
    "no-tensor": (errors.NoTensorError, no_tensor),
    "unsupported-input": (errors.UnsupportedInputError, unsupported_input),
    "unsupported-input-dtype": (errors.UnsupportedInputError, unsupported_input_dtype),
    "unsupported-input-objects": (errors.UnsupportedInputError, unsupported_input_objects),
    "unsupported-input-output": (errors.UnsupportedInputError, unsupported_input_output),
    "second-order": (errors.SecondOrderError, second_order),
    "forward-mode": (errors.ForwardModeError, forward_mode),
    "wrong-gradient": (errors.WrongGradientError, wrong_gradient),
    "host": (errors.HostError, host),
    "host-cotangent": (errors.HostError, host_cotangent),
    "surrogate": (errors.SurrogateError, surrogate),
    "surrogate-structure": (errors.SurrogateError, surrogate_structure),
    "surrogate-arguments": (errors.SurrogateError, surrogate_arguments),
    "surrogate-dtype": (errors.SurrogateError, surrogate_dtype),
    "surrogate-straight-through": (errors.SurrogateError, surrogate_straight_through),
    "grad-signature-with-gradient": (errors.GradSignatureError, grad_signature_with_gradient),
    "grad-signature-forgotten": (errors.GradSignatureError, grad_signature_forgotten),
    "grad-signature-map": (errors.GradSignatureError, grad_signature_map),
    "grad-signature-partial": (errors.GradSignatureError, grad_signature_partial),
    "definition-with-gradient": (errors.DefinitionError, definition_with_gradient),
    "option": (errors.OptionError, option),
    "option-word": (errors.OptionError, option_word),
    "option-factor": (errors.OptionError, option_factor),
    "option-axis": (errors.OptionError, option_axis),
    "option-counter": (errors.OptionError, option_counter),
    "option-two": (errors.OptionError, option_two),
    "forbidden-gradient": (errors.ForbiddenGradientError, forbidden_gradient),
    "forward-mode-clip": (errors.ForwardModeError, forward_mode_clip),
    "forward-mode-map": (errors.ForwardModeError, forward_mode_map),
    "override": (errors.OverrideError, override),
    "override-no-operation": (errors.OverrideError, override_no_operation),
    "override-nothing": (errors.OverrideError, override_nothing),
    "override-made-anew": (errors.OverrideError, override_made_anew),
    "override-other-framework": (errors.OverrideError, override_other_framework),
    "configuration": (errors.ConfigurationError, configuration),
    "external": (errors.ExternalError, external),
    "external-shared": (errors.ExternalError, external_shared),
    "external-gradient-sparsity": (errors.ExternalGradientError, external_gradient_sparsity),
    "option-cache": (errors.OptionError, option_cache),
    "external-gradient": (errors.ExternalGradientError, external_gradient),
    "derivative-external": (errors.DerivativeError, derivative),
}

# those that are raised when a rule is differentiated; a tape outside a tf.function must raise them too
DIFFERENTIATED = [
    "cotangent-count",
    "cotangent-count-unknown-name",
    "cotangent-count-no-return",
    "cotangent-count-path",
    "cotangent-count-names",
    "cotangent-count-map",
    "cotangent-count-partials",
    "cotangent-shape",
    "cotangent-shape-summed",
    "cotangent-shape-transposed",
    "cotangent-shape-other",
    "cotangent-shape-loss",
    "cotangent-dtype-loss",
    "cotangent-dtype",
    "cotangent-dtype-no-number",
    "cotangent-dtype-objects",
    "cotangent-dtype-partial",
    "host-cotangent",
    "cotangent-shape-with-gradient",
    "grad-signature",
    "grad-signature-gradgrad",
    "grad-signature-map",
    "captured-variable",
    "output",
    "forward-mode",
]

# what cannot go wrong elsewhere: JAX has no variables, no sparse arrays, and takes a random key as argument;
# PyTorch lifts parameters, has hardly a dtype without arithmetic, and takes any function for an operation
IMPOSSIBLE = {
    "jax": [
        *("captured-variable", "vector-condition", "unsupported-input", "unsupported-input-dtype"),
        "external",  # there a compiled program calls Python
    ],
    "torch": [
        *("captured-variable", "vector-condition", "unsupported-input-dtype", "override-no-operation"),
        "external",
    ],
}
# where another thing is wrong, because the frameworks have other things: the same sentences in other words
OWN_WORDS = [
    "unsupported-input",
    "host",
    "host-cotangent",
    "override",
    "override-no-operation",
    "option-counter",
]
