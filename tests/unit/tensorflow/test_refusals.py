"""Every violation of the contract raises at the rule, in eager mode and in a graph."""

import numpy as np
import pytest
import tensorflow as tf

import pullback as pb

X = tf.ones([4, 3])
B = tf.ones([3])


def gradient(f, inputs, wrap):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = wrap(lambda *ts: f(*ts))(*inputs)
    return tape.gradient(y, inputs)


def returning(make):
    """A rule of two arguments whose `grad` returns what `make(dy, x, b)` gives."""

    @pb.custom_gradient
    def add(x, b):
        def grad(dy):
            return make(dy, x, b)

        return x + b, grad

    return add


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda dy, x, b: dy, "returned 1 cotangent\n"),
        (lambda dy, x, b: (dy,), "returned 1 cotangent\n"),
        (lambda dy, x, b: (dy, dy, dy), "returned 3 cotangents\n"),
        (lambda dy, x, b: {"x": dy, "bias": dy}, "a cotangent for `bias`, which is no argument"),
    ],
    ids=["bare", "one", "three", "unknown name"],
)
def test_a_wrong_number_of_cotangents(make, message, wrap):
    with pytest.raises(pb.errors.CotangentCountError) as caught:
        gradient(returning(make), [X, B], wrap)
    assert message in str(caught.value)
    assert "`x`, `b`" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda dy, x, b: (dy, dy), "`b` was broadcast along axis 0"),
        (
            lambda dy, x, b: (tf.reduce_sum(dy), tf.reduce_sum(dy, 0)),
            "shape () for argument `x` of shape (4, 3)",
        ),
        (lambda dy, x, b: (tf.transpose(dy), None), "transpose it back"),
        (lambda dy, x, b: (dy[:, :2], None), "shape (4, 2) for argument `x` of shape (4, 3)"),
        (lambda dy, x, b: (dy, 1.0), "shape () for argument `b`"),
    ],
    ids=["broadcast", "scalar", "transposed", "other", "number"],
)
def test_a_wrong_shape(make, message, wrap):
    with pytest.raises(pb.errors.CotangentShapeError) as caught:
        gradient(returning(make), [X, B], wrap)
    assert message in str(caught.value)


def test_the_fix_of_a_broadcast_shape_works(wrap):
    _, db = gradient(returning(lambda dy, x, b: (dy, pb.unbroadcast(dy, like=b))), [X, B], wrap)
    np.testing.assert_allclose(db, [4.0] * 3)


def test_the_broadcast_axes_are_named():
    @pb.custom_gradient
    def f(x, b):
        def grad(dy):
            return dy, dy

        return x * b, grad

    with pytest.raises(pb.errors.CotangentShapeError, match="along axes 0, 2"):
        gradient(f, [tf.ones([5, 4, 3]), tf.ones([4, 1])], lambda f: f)


@pytest.mark.parametrize(
    ("cotangent", "message"),
    [
        (lambda dy: tf.complex(dy, dy), "complex64 for argument `x`, which is float32"),
        (lambda dy: tf.cast(dy, tf.int32), "int32 for argument `x`"),
        (lambda dy: dy > 0, "bool for argument `x`"),
        (lambda dy: "dx", "a str for argument `x`"),
    ],
    ids=["complex", "integer", "bool", "string"],
)
def test_a_wrong_dtype(cotangent, message, wrap):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return cotangent(dy)

        return x * 2, grad

    with pytest.raises(pb.errors.CotangentDtypeError) as caught:
        gradient(f, [X], wrap)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: x * 2, "a tensor alone"),
        (lambda x: None, "nothing"),
        (lambda x: (x, x), "2 values, the last a tensor"),
        (lambda x: (lambda dy: dy,), "only `grad`"),
    ],
    ids=["tensor", "nothing", "two tensors", "only grad"],
)
def test_a_body_without_grad(body, message, wrap):
    with pytest.raises(pb.errors.MissingGradError, match=f"the body returned {message}"):
        wrap(pb.custom_gradient(body))(X)


@pytest.mark.parametrize(
    "grad",
    [lambda: 0, lambda a, b: a, lambda a, *, key: a],
    ids=["none", "two", "keyword"],
)
def test_a_grad_with_the_wrong_signature(grad, wrap):
    f = pb.custom_gradient(lambda x: (x * 2, grad))
    if grad.__kwdefaults__ is None and grad.__code__.co_kwonlyargcount:
        expected = (pb.errors.GradSignatureError, TypeError)
    else:
        expected = pb.errors.GradSignatureError
    with pytest.raises(expected):
        gradient(f, [X], wrap)


@pytest.mark.parametrize("how", ["tf.cond", "if"])
def test_a_vector_condition(how, wrap):
    @pb.custom_gradient
    def by_cond(x):
        def grad(dy):
            return dy

        return tf.cond(x > 0, lambda: 2 * x, lambda: x), grad

    @pb.custom_gradient
    def by_if(x):
        if x > 0:
            y = 2 * x
        else:
            y = x

        def grad(dy):
            return dy

        return y, grad

    with pytest.raises(pb.errors.VectorConditionError, match=r"tf\.where"):
        wrap(lambda x: {"tf.cond": by_cond, "if": by_if}[how](x))(B)


def test_a_vector_condition_in_grad(wrap):
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            if x > 0:
                return dy
            return 2 * dy

        return x * 2, grad

    with pytest.raises(pb.errors.VectorConditionError):
        gradient(f, [B], wrap)


def test_errors_of_the_users_own_pass_through(wrap):
    @pb.custom_gradient
    def f(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        wrap(lambda x: f(x))(X)


@pytest.mark.parametrize("argument", [3, "three", None, [1, 2]])
def test_no_tensor_at_all(argument, wrap):
    @pb.custom_gradient
    def f(x):
        return tf.ones(3), lambda dy: dy

    with pytest.raises(pb.errors.NoTensorError, match="no argument is a tensor"):
        wrap(lambda: f(argument))()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]),
        lambda: tf.sparse.from_dense(tf.eye(2)),
        lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])),
        lambda: tf.quantization.quantize(tf.ones(3), 0.0, 1.0, tf.qint8).output,
    ],
    ids=["ragged", "sparse", "slices", "quantized"],
)
def test_inputs_that_no_rule_can_take(make, wrap):
    @pb.custom_gradient
    def f(x, y):
        return y * 1.0, lambda dy: (None, dy)

    with pytest.raises(pb.errors.UnsupportedInputError, match="`x` "):
        wrap(lambda: f(make(), X))()


def test_a_ragged_output_is_refused(wrap):
    @pb.custom_gradient
    def f(x):
        return tf.RaggedTensor.from_tensor(x), lambda dy: dy

    with pytest.raises(pb.errors.UnsupportedInputError, match="an output"):
        wrap(lambda x: tf.nest.flatten(f(x)))(X)


def test_only_integer_outputs_are_refused(wrap):
    @pb.custom_gradient
    def f(x):
        return tf.argmax(x, -1), lambda dy: dy

    with pytest.raises(pb.errors.OutputError, match="int64"):
        wrap(lambda x: f(x))(X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pb.custom_gradient(3),
        lambda: pb.custom_gradient(order=2)(lambda x: x),
        lambda: pb.custom_gradient(like=tf.sin, differs="why")(lambda x: x),
        lambda: pb.custom_gradient(like="tf.sin")(lambda x: x),
        lambda: pb.custom_gradient(differs=" ")(lambda x: x),
        lambda: pb.custom_gradient(differs=True)(lambda x: x),
    ],
    ids=["no function", "order 2", "both intents", "like a string", "no reason", "differs=True"],
)
def test_a_definition_that_makes_no_sense(make):
    with pytest.raises(pb.errors.DefinitionError):
        make()


def test_the_error_names_function_argument_and_line(wrap):
    with pytest.raises(
        pb.errors.CotangentShapeError,
        match=r"^(in user code:[\s\S]*)?[\s\S]*add \(test_refusals.py:\d+\): .*argument `b`",
    ):
        gradient(returning(lambda dy, x, b: (dy, dy)), [X, B], wrap)


def test_intent_is_kept_on_the_rule():
    like = pb.custom_gradient(like=tf.identity)(lambda x: (tf.round(x), lambda dy: dy))
    differs = pb.custom_gradient(differs="reversal")(lambda x: (x, lambda dy: -dy))
    exact = pb.custom_gradient(lambda x: (x, lambda dy: dy))
    assert (like.rule.intent.kind, like.rule.intent.function) == ("like", tf.identity)
    assert (differs.rule.intent.kind, differs.rule.intent.reason) == ("differs", "reversal")
    assert exact.rule.intent.kind == "exact"
    assert "the derivative of identity" in repr(like.rule)


@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize(
    ("known", "shape"),
    [([None, None], (1, 3)), (None, (1, 3)), (None, (3,))],
    ids=["lengths", "lengths of any rank", "rank"],
)
def test_a_shape_that_is_found_wrong_when_the_graph_runs_names_the_rule_and_the_argument(
    known, shape, compiled
):
    @pb.custom_gradient
    def shifted(x, bias):
        def grad(dy):
            return dy, dy

        return x + bias, grad

    def gradient(x, bias):
        with tf.GradientTape() as tape:
            tape.watch([x, bias])
            y = shifted(x, bias)
        return tape.gradient(y, [x, bias])

    signature = [tf.TensorSpec([None, None]), tf.TensorSpec(known)]
    run = tf.function(gradient, input_signature=signature, jit_compile=compiled)
    words = "cotangent_of_bias_of_shifted" if compiled else "shifted .*another shape for argument `bias`"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words) as caught:
        run(tf.ones([4, 3]), tf.ones(shape))
    if not compiled:
        assert "[found] [4 3] [expected]" in str(caught.value)
        assert "pb.unbroadcast(dbias, like=bias)" in str(caught.value)
    assert [d.shape for d in run(tf.ones([4, 3]), tf.ones([4, 3]))] == [(4, 3)] * 2
