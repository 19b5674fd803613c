"""Foreign functions in TensorFlow: graphs, tapes, XLA, exports, distribution."""

import gc
import weakref

import numpy as np
import pytest
import tapes
import tensorflow as tf
from foreign import Recorded, floats, mixed

import pullback as pb
from pullback import hosts
from pullback.errors import DerivativeError, ExternalError
from pullback.hosts.numpy.callback import original
from pullback.hosts.specs import Spec

X = tf.constant([1.0, 2.0, 3.0])
ROWS = tf.reshape(tf.range(6.0), [2, 3])


def call(foreign, *tensors, outputs=None):
    return hosts.of(X).callback(foreign, tensors, outputs or [floats(3)])[0]


def like(x):
    shape = None if x.shape.rank is None else tuple(x.shape.as_list())
    return [Spec(shape, x.dtype.name, "floating")]


class Sine:
    """A rule whose body and `grad` are foreign."""

    def __init__(self):
        self.sine = Recorded(lambda x: [np.sin(x)], "sine")
        self.pull = Recorded(lambda dy, x: [dy * np.cos(x)], "sine_pullback")

        @pb.custom_gradient
        def rule(x):
            def grad(dy):
                return call(self.pull, dy, x, outputs=like(x))

            return call(self.sine, x, outputs=like(x)), grad

        self.rule = rule

    @property
    def counts(self):
        """Calls and batches of the function, then of its pullback."""
        return [len(seen) for f in (self.sine, self.pull) for seen in (f.calls, f.batches)]


@pytest.fixture
def sine():
    return Sine()


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────────────


def test_static_shapes_are_kept():
    foreign = Recorded(mixed)
    f = tf.function(lambda x, y: call(foreign, x, y))
    assert f.get_concrete_function(X, tf.ones([2])).output_shapes == [3]
    batched = tf.function(lambda rows, y: tf.vectorized_map(lambda x: call(foreign, x, y), rows))
    assert batched.get_concrete_function(ROWS, tf.ones([2])).output_shapes == [2, 3]


def test_shapes_that_nobody_knows(sine):
    for spec in (tf.TensorSpec([None]), tf.TensorSpec(None)):
        f = tf.function(sine.rule, input_signature=[spec])
        assert np.allclose(gradient(f, X), np.cos(X))
    rows = tf.function(
        lambda rows: tf.vectorized_map(sine.rule, rows), input_signature=[tf.TensorSpec([None, None])]
    )
    assert np.allclose(rows(ROWS), np.sin(ROWS))


def test_it_is_not_run_while_a_graph_is_optimised_nor_kept_as_a_constant():
    foreign = Recorded(lambda x: [x + len(foreign.calls)])
    f = tf.function(lambda: call(foreign, tf.constant([1.0, 2.0, 3.0])))
    f.get_concrete_function()
    assert foreign.calls == []
    assert f().numpy().tolist() == [2.0, 3.0, 4.0]
    assert f().numpy().tolist() == [3.0, 4.0, 5.0]


def test_branches_loops_and_data_sets(sine):
    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0.0:
            x = sine.rule(x)
        for _ in tf.range(2):
            x = sine.rule(x)
        return x

    assert np.allclose(f(X), np.sin(np.sin(np.sin(X))))
    rows = tf.data.Dataset.from_tensor_slices(ROWS).map(sine.rule)
    assert np.allclose(list(rows.as_numpy_iterator()), np.sin(ROWS))
    assert np.allclose(tf.map_fn(sine.rule, ROWS), np.sin(ROWS))


def test_strings_arrive_as_bytes():
    foreign = Recorded(lambda s: [np.array([w.upper() for w in s], object)])
    for wrap in (lambda f: f, tf.function):
        f = wrap(lambda s: call(foreign, s, outputs=[Spec((2,), "string", "other")]))
        assert f(tf.constant(["a", "b"])).numpy().tolist() == [b"A", b"B"]


# ── derivatives ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_of_foreign_functions(pull_without_xla, sine):
    _, (dx,) = pull_without_xla(sine.rule, [X], [tf.constant([1.0, 2.0, 4.0])])
    assert np.allclose(dx, np.cos(X) * [1.0, 2.0, 4.0])


@pytest.fixture(params=[m for m in tapes.MODES if m is not tapes.compiled], ids=lambda mode: mode.__name__)
def pull_without_xla(request):
    return request.param


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_a_jacobian_is_one_batch_of_the_pullback(sine, wrap):
    f = wrap(sine.rule)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert np.allclose(tape.jacobian(y, X), np.diag(np.cos(X)))
    assert sine.counts == [1, 0, 0, 1]


def test_the_gradient_of_a_map_is_one_batch_of_the_pullback(sine):
    dx = gradient(lambda rows: tf.vectorized_map(sine.rule, rows), ROWS)
    assert np.allclose(dx, np.cos(ROWS))
    assert sine.counts == [0, 1, 0, 1]


def test_a_batch_jacobian_through_a_map_is_one_batch(sine):
    with tf.GradientTape() as tape:
        tape.watch(ROWS)
        y = tf.vectorized_map(sine.rule, ROWS)
    jacobian = tape.batch_jacobian(y, ROWS)
    assert np.allclose(jacobian, [np.diag(np.cos(row)) for row in ROWS])
    assert sine.counts == [0, 1, 0, 1]


AROUND = {
    "function": lambda f, x: tf.function(f)(x),
    "branch": lambda f, x: tf.cond(x[0] > -1, lambda: f(x), lambda: x),
    "branch of a branch": lambda f, x: tf.cond(
        x[0] > -1, lambda: tf.cond(x[0] > -2, lambda: f(x), lambda: x), lambda: x
    ),
    "loop": lambda f, x: tf.while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, f(x)), (0, x))[1],
    "branch in a loop": lambda f, x: tf.while_loop(
        lambda i, x: i < 1, lambda i, x: (i + 1, tf.cond(x[0] > -1, lambda: f(x), lambda: x)), (0, x)
    )[1],
}


@pytest.mark.parametrize("around", AROUND.values(), ids=list(AROUND))
def test_branches_and_loops_are_differentiated(pull_without_xla, sine, around):
    def f(x):
        return around(sine.rule, x)

    _, (dx,) = pull_without_xla(f, [X], [tf.constant([1.0, 2.0, 4.0])])
    assert np.allclose(dx, np.cos(X) * [1.0, 2.0, 4.0])


@pytest.mark.parametrize("around", AROUND.values(), ids=list(AROUND))
def test_branches_and_loops_have_jacobians_and_are_mapped(sine, around):
    def f(x):
        return around(sine.rule, x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.function(f)(X)
    assert np.allclose(tape.jacobian(y, X), np.diag(np.cos(X)))
    before = sine.counts
    assert np.allclose(tf.vectorized_map(f, ROWS, fallback_to_while_loop=False), np.sin(ROWS))
    assert np.array_equal(np.subtract(sine.counts, before)[:2], [0, 1])


def test_a_tape_outside_the_function_is_refused_when_it_runs():
    f = tf.function(lambda x: call(Recorded(lambda x: [x]), x))
    with pytest.raises(tf.errors.InvalidArgumentError, match="a derivative of `simulate` was asked for"):
        gradient(f, X)


def test_forward_mode_is_refused():
    with (
        tf.autodiff.ForwardAccumulator(X, X) as forward,
        pytest.raises(DerivativeError, match="a derivative of `simulate`"),
    ):
        forward.jvp(call(Recorded(lambda x: [x]), X))


def test_a_persistent_tape_takes_first_derivatives(sine):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = tf.function(sine.rule)(X)
    assert np.allclose(tape.gradient(y, X), np.cos(X))


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_a_second_derivative_that_nobody_gave_is_refused(sine, wrap):
    with pytest.raises((DerivativeError, tf.errors.InvalidArgumentError), match="a derivative of `sine"):
        gradient(lambda x: gradient(wrap(sine.rule), x), X)


def test_the_checker_finds_such_a_rule_right(sine):
    report = pb.check(sine.rule, X)
    assert report.verdict == "right"


# ── XLA ──────────────────────────────────────────────────────────────────────────────────────────────────

COMPILED = r"`simulate` is in a function that XLA compiles \(jit_compile=True\)"


def test_xla_is_refused_before_it_compiles():
    foreign = Recorded(mixed)
    f = tf.function(lambda x: call(foreign, x, x), jit_compile=True)
    with pytest.raises(ExternalError, match=COMPILED):
        f(X)


def test_xla_is_refused_where_it_compiles_a_function_that_was_traced_before():
    foreign = Recorded(mixed)
    inner = tf.function(lambda x: call(foreign, x, x))
    inner(X)
    middle = tf.function(lambda x: inner(x) + 1)
    middle(X)
    with pytest.raises(ExternalError, match=COMPILED):
        tf.function(lambda x: middle(x), jit_compile=True)(X)
    with pytest.raises(ExternalError, match=COMPILED):
        tf.function(lambda x: tf.cond(x[0] > 0, lambda: inner(x), lambda: x), jit_compile=True)(X)
    assert inner(X).numpy().tolist() == [8.0, 10.0, 12.0], "the function itself is as it was"


def test_parts_beside_it_can_be_compiled(sine):
    @tf.function
    def f(x):
        return tf.function(tf.exp, jit_compile=True)(sine.rule(x))

    assert np.allclose(gradient(f, X), np.exp(np.sin(X)) * np.cos(X))


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────

EXPORTED = "`simulate` is in a function that is exported to a SavedModel"


def module(f, trace):
    made = tf.Module()
    made.f = tf.function(f, input_signature=[tf.TensorSpec([3])])
    if trace:
        made.f.get_concrete_function()
    return made


@pytest.mark.parametrize("trace", [False, True], ids=["traced on export", "traced before"])
@pytest.mark.parametrize("gradients", [False, True], ids=["without gradients", "with gradients"])
@pytest.mark.parametrize(
    "around",
    [
        lambda f, x: f(x),
        lambda f, x: tf.function(f)(x),
        lambda f, x: tf.cond(x[0] > 0, lambda: f(x), lambda: x),
        lambda f, x: tf.map_fn(f, x[None])[0],
        lambda f, x: tf.vectorized_map(f, x[None])[0],
    ],
    ids=["plain", "function", "branch", "loop", "map"],
)
def test_a_saved_model_is_refused_when_it_is_written(tmp_path, trace, gradients, around):
    foreign = Recorded(mixed)
    made = module(lambda x: around(lambda x: call(foreign, x, x), x), trace)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=gradients)
    with pytest.raises(ExternalError, match=EXPORTED):
        tf.saved_model.save(made, str(tmp_path), options=options)


def test_a_saved_model_of_one_concrete_function_is_refused(tmp_path):
    foreign = Recorded(mixed)
    inner = tf.function(lambda x: call(foreign, x, x))
    inner(X)
    f = tf.function(lambda x: inner(x)).get_concrete_function(tf.TensorSpec([3]))
    with pytest.raises(ExternalError, match=EXPORTED):
        tf.saved_model.save(tf.Module(), str(tmp_path), signatures=f)


def test_a_foreign_pullback_is_refused_where_gradients_are_exported(tmp_path, sine):
    @pb.custom_gradient
    def rule(x):
        return tf.sin(x), lambda dy: call(sine.pull, dy, x)

    with pytest.raises(ValueError, match="tracing gradients for SavedModel") as caught:
        tf.saved_model.save(module(rule, True), str(tmp_path / "with"))
    assert isinstance(caught.value.__cause__, ExternalError)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module(rule, True), str(tmp_path / "without"), options=options)
    assert np.allclose(tf.saved_model.load(str(tmp_path / "without")).f(X), np.sin(X))


def test_checkpoints_are_no_exports(tmp_path):
    foreign = Recorded(mixed)
    made = module(lambda x: call(foreign, x, x), True)
    made.weight = tf.Variable(1.0)
    tf.train.Checkpoint(model=made).save(str(tmp_path / "model"))


# ── devices, speed and memory ────────────────────────────────────────────────────────────────────────────


def test_a_strategy_runs_it_in_every_replica(sine):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    step = tf.function(lambda: strategy.run(lambda: gradient(sine.rule, X)))
    results = strategy.experimental_local_results(step())
    assert len(results) == 2
    assert all(np.allclose(r, np.cos(X)) for r in results)


def test_results_are_on_the_device_of_the_arguments():
    with tf.device("CPU:1"):
        x = tf.identity(X)
    assert call(Recorded(mixed), x, x).device == x.device


def test_a_graph_hands_over_views():
    foreign = Recorded(lambda x: [np.float32(x.sum())])
    x = tf.random.uniform([1 << 16])
    tf.function(lambda x: call(foreign, x, outputs=[floats()]))(x)
    assert foreign.calls[0][0].ctypes.data == x._numpy().ctypes.data


def test_memory_of_an_aligned_result_is_not_copied():
    def aligned(x):
        room = np.empty(x.nbytes + 64, np.uint8)
        start = -room.ctypes.data % 64
        result = room[start : start + x.nbytes].view(np.float32)
        address.append(result.ctypes.data)
        return [result]

    address = []
    result = call(Recorded(aligned), tf.ones([1 << 16]), outputs=[floats(1 << 16)])
    assert result._numpy().ctypes.data == address[0]


def test_a_foreign_function_goes_with_its_graph():
    def make():
        foreign = Recorded(mixed)
        f = tf.function(lambda x: tf.cond(x[0] > 0, lambda: call(foreign, x, x), lambda: x), autograph=False)
        return f.get_concrete_function(X), weakref.ref(foreign)

    f, alive = make()
    gc.collect()
    assert np.allclose(f(X), [8.0, 10.0, 12.0])
    del f
    gc.collect()
    assert alive() is None


def test_without_private_functions_it_is_a_numpy_function(monkeypatch, sine):
    monkeypatch.setattr(hosts.of(X), "recorded", False)
    foreign = Recorded(mixed)
    for wrap in (lambda f: f, tf.function):
        f = wrap(lambda x: call(foreign, x, x))
        result = f(X)
        assert result.numpy().tolist() == [8.0, 10.0, 12.0]
        assert result.shape == [3]
    assert np.allclose(gradient(tf.function(sine.rule), X), np.cos(X))
    with pytest.raises(DerivativeError, match="a derivative of `simulate`"):
        gradient(lambda x: call(foreign, x, x), X)


def test_the_exception_is_found_behind_the_error_of_a_graph():
    def fails(x):
        raise ArithmeticError("singular")

    with pytest.raises(tf.errors.UnknownError, match="ArithmeticError: singular") as caught:
        tf.function(lambda x: call(Recorded(fails), x))(X)
    assert "in fails" in str(caught.value)
    assert type(original(caught.value)) is ArithmeticError
