"""A tensor that is being differentiated and reaches the body without being an argument is refused."""

import functools

import pytest
import tensorflow as tf

import pullback as pb

X = tf.constant([1.0, 2.0])
FACTOR = tf.constant([3.0, 4.0])


@pb.custom_gradient
def global_capture(x):
    def grad(dy):
        return dy * FACTOR

    return x * FACTOR, grad


def closure_capture():
    factor = tf.constant([3.0, 4.0])

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * factor

        return x * factor, grad

    return f, factor


class Holder:
    def __init__(self):
        self.factor = tf.constant([3.0, 4.0])

    def rule(self):
        @pb.custom_gradient
        def f(x):
            def grad(dy):
                return dy * self.factor

            return x * self.factor, grad

        return f, self.factor


def helper_capture():
    factor = tf.constant([3.0, 4.0])

    def helper(x):
        return x * factor

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy

        return helper(x), grad

    return f, factor


CAPTURES = {
    "a global": (lambda: (global_capture, FACTOR), "`FACTOR`"),
    "a closure": (closure_capture, "`factor`"),
    "an attribute": (lambda: Holder().rule(), ""),
    "a helper's closure": (helper_capture, ""),
}


def differentiate(f, factor):
    with tf.GradientTape() as tape:
        tape.watch(factor)
        y = f(X)
    return tape.gradient(y, factor)


@pytest.mark.parametrize("where", ["eager", "tape inside", "tape outside"])
@pytest.mark.parametrize("kind", CAPTURES)
def test_a_captured_and_differentiated_tensor_is_refused(kind, where):
    make, name = CAPTURES[kind]
    f, factor = make()
    run = {
        "eager": lambda: differentiate(f, factor),
        "tape inside": tf.function(lambda: differentiate(f, factor)),
        "tape outside": lambda: differentiate(tf.function(lambda x: f(x)), factor),
    }[where]
    with pytest.raises(pb.errors.CapturedTensorError, match=f"the body uses .*{name}"):
        run()


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_captured_tensor_that_nobody_differentiates_is_fine(kind, wrap):
    f, _ = CAPTURES[kind][0]()
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = wrap(lambda x: f(x))(X)
    assert tape.gradient(y, X) is not None


def test_the_second_call_is_watched_too():
    """Names in reach are looked at on every call, not only on the first."""
    f, factor = closure_capture()
    with tf.GradientTape() as tape:
        tape.watch(X)
        f(X)
    with pytest.raises(pb.errors.CapturedTensorError):
        differentiate(f, factor)


def behind_a_helper(factor):
    def helper(x, on):
        return x * factor if on else x

    return helper


def behind_an_object(factor):
    holder = Holder()
    holder.factor = factor
    return lambda x, on: x * holder.factor if on else x


def behind_a_table(factor):
    table = {"factor": factor}
    return lambda x, on: x * table["factor"] if on else x


def behind_a_function(factor):
    scaled = tf.function(lambda x: x * factor)
    return lambda x, on: scaled(x) if on else x


@pytest.mark.parametrize("follow", ["tape", "accumulator"])
@pytest.mark.parametrize("hide", [behind_a_helper, behind_an_object, behind_a_table, behind_a_function])
def test_a_tensor_that_only_a_later_call_reaches_is_refused(hide, follow):
    factor = tf.constant([3.0, 4.0])
    reach = hide(factor)

    @pb.custom_gradient
    def f(x, on):
        def grad(dy):
            return dy

        return reach(x, on), grad

    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch([X, factor])
            y = f(X, on=False)
        assert tape.gradient(y, X) is not None
    following = tf.GradientTape() if follow == "tape" else tf.autodiff.ForwardAccumulator(factor, factor)
    with following:
        if follow == "tape":
            following.watch(factor)
        with pytest.raises(pb.errors.CapturedTensorError):
            f(X, on=True)


STATE = {"factor": None}


def scaled(x):
    return x * 2 if STATE["factor"] is None else x * STATE["factor"]


def pass_on(dy):
    return dy


class Functor:
    def __call__(self, x):
        return scaled(x), pass_on

    def method(self, x):
        return scaled(x), pass_on


def wrapper(function):
    @functools.wraps(function)
    def wrapped(x):
        y, grad = function(x)
        return scaled(y), grad

    return wrapped


def plain(x):
    return tf.identity(x), lambda dy: dy


def by_string(x):
    return globals()["scaled"](x), lambda dy: dy


REACHING = {
    "an object": Functor(),
    "a method": Functor().method,
    "a partial function": functools.partial(Functor.method, None),
    "a wrapper": wrapper(plain),
    "globals()": by_string,
    "a helper": lambda x: (scaled(x), pass_on),
}


@pytest.mark.parametrize("kind", REACHING)
def test_a_body_that_may_reach_more_than_it_names_is_listened_to_in_every_call(kind, monkeypatch):
    f = pb.custom_gradient(REACHING[kind])
    with tf.GradientTape() as tape:
        tape.watch(X)
        factor = 3 * X
        f(X)
        f(X)
        monkeypatch.setitem(STATE, "factor", factor)
        with pytest.raises(pb.errors.CapturedTensorError):
            f(X)


def test_a_name_that_is_bound_anew_is_noticed(monkeypatch):
    monkeypatch.setitem(globals(), "FACTOR_OF_TODAY", 2.0)

    @pb.custom_gradient
    def f(x):
        return tf.identity(x) * FACTOR_OF_TODAY, lambda dy: dy  # noqa: F821

    with tf.GradientTape() as tape:
        tape.watch(X)
        f(X)
        f(X)
        monkeypatch.setitem(globals(), "FACTOR_OF_TODAY", 3 * X)
        with pytest.raises(pb.errors.CapturedTensorError, match="`FACTOR_OF_TODAY`"):
            f(X)


def test_an_attribute_is_refused_by_its_name():
    f, factor = Holder().rule()
    with pytest.raises(pb.errors.CapturedTensorError, match=r"the body uses `self\.factor`"):
        differentiate(f, factor)


def test_a_captured_tensor_that_is_returned_as_it_is_is_refused():
    class Hidden:
        factor = None

        @pb.custom_gradient
        def rule(self, x):
            return self.factor, lambda dy: dy

    hidden = Hidden()
    with tf.GradientTape() as tape:
        tape.watch(X)
        hidden.factor = 3 * X
        with pytest.raises(pb.errors.CapturedTensorError, match=r"the body uses `self\.factor`"):
            hidden.rule(X)


def test_a_tensor_computed_from_an_argument_of_the_function_is_refused_for_a_tape_outside():
    @tf.function
    def run(x):
        mean = tf.reduce_mean(x)

        @pb.custom_gradient
        def center(x):
            def grad(dy):
                return dy

            return x - mean, grad

        return center(x)

    def differentiated():
        with tf.GradientTape() as tape:
            tape.watch(X)
            run(X)

    with pytest.raises(pb.errors.CapturedTensorError, match="the body uses"):
        differentiated()


def test_a_stopped_tensor_may_be_captured():
    @tf.function
    def run(x):
        mean = tf.stop_gradient(tf.reduce_mean(x))

        @pb.custom_gradient
        def center(x):
            def grad(dy):
                return 5 * dy

            return x - mean, grad

        return center(x)

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = run(X)
    assert tape.gradient(y, X).numpy().tolist() == [5.0, 5.0]


def test_the_same_tensor_as_argument_and_in_the_closure_is_an_argument(wrap):
    x = tf.constant([1.0, 2.0])

    @pb.custom_gradient
    def f(a):
        def grad(dy):
            return dy * 2

        return a * 2, grad

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: f(x))(x)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 2.0]


def test_forward_mode_of_a_captured_tensor_is_refused():
    f, factor = closure_capture()
    with pytest.raises(pb.errors.CapturedTensorError), tf.autodiff.ForwardAccumulator(factor, tf.ones(2)):
        f(X)


def test_a_captured_variable_without_a_place_is_refused(wrap):
    v = tf.Variable(3.0, name="gain")

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * v

        return x * v, grad

    with pytest.raises(pb.errors.CapturedVariableError, match="`gain:0`"), tf.GradientTape():
        wrap(lambda x: f(x))(X)


def test_a_variable_that_is_not_trained_may_be_captured(wrap):
    v = tf.Variable(3.0, trainable=False)

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * v

        return x * v, grad

    run = wrap(lambda x: f(x))
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = run(X)
    assert tape.gradient(y, X).numpy().tolist() == [3.0, 3.0]


# ── calls of functions, of which a graph does not tell ───────────────────────────────────────────────────


@tf.function
def squared(x):
    return x * x


def looped(x):
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * squared(x)), (0, tf.ones_like(x)))[1]


PARTS = {
    "returned": squared,
    "used": lambda x: 1.0 * squared(x),
    "in a loop": lambda x: looped(x) / squared(x),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("order", [1, 2])
def test_a_body_may_call_a_function_of_its_arguments(part, order):
    @pb.custom_gradient
    def f(x):
        return PARTS[part](x), lambda dy: 2 * dy * x

    def differentiated(f, order):
        if not order:
            return f(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = differentiated(f, order - 1)
        return tape.gradient(y, X)

    expected = (2 * X, 2 * tf.ones_like(X))[order - 1]
    assert tf.function(lambda: differentiated(f, order))().numpy().tolist() == expected.numpy().tolist()


@pytest.mark.parametrize("part", PARTS)
def test_a_tensor_that_reaches_the_body_through_a_function_is_refused(part):
    holder = Holder()

    @pb.custom_gradient
    def f(x):
        return PARTS[part](holder.factor), lambda dy: dy

    with pytest.raises(pb.errors.CapturedTensorError, match="the body uses"):
        tf.function(lambda: differentiate(f, holder.factor))()
