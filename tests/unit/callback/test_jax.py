"""Foreign functions in JAX: transformations, compiled programs, several devices."""

import gc
import os
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from foreign import Recorded, floats, mixed

from pullback import hosts
from pullback.errors import DerivativeError
from pullback.hosts.numpy.callback import original
from pullback.hosts.specs import Spec

X, Y = jnp.array([1.0, 2.0, 3.0]), jnp.array([10.0, 20.0])
ROWS, PAIRS = jnp.arange(6.0).reshape(2, 3), jnp.arange(8.0).reshape(4, 2)
REFUSED = "a derivative of `simulate` was asked for"


def call(foreign, *arrays, outputs=None):
    return hosts.of(X).callback(foreign, arrays, outputs or [floats(3)])[0]


class Sine:
    """A custom_vjp whose function and pullback are foreign."""

    def __init__(self):
        self.sine = Recorded(lambda x: [np.sin(x)], "sine")
        self.pull = Recorded(lambda dy, x: [dy * np.cos(x)], "sine_pullback")
        self.rule = jax.custom_vjp(lambda x: call(self.sine, x))
        self.rule.defvjp(lambda x: (self.rule(x), x), lambda x, dy: (call(self.pull, dy, x),))


@pytest.fixture
def sine():
    return Sine()


@pytest.fixture(params=[False, True], ids=["eager", "jit"])
def wrap(request):
    return jax.jit if request.param else (lambda f: f)


def test_one_primitive_stands_in_a_program():
    foreign = Recorded(mixed)
    program = jax.make_jaxpr(jax.vmap(lambda x: call(foreign, x, Y)))(ROWS)
    assert [e.primitive.name for e in program.eqns] == ["foreign"]
    assert "called=simulate" in str(program)
    assert foreign.calls == []


def test_gradients_by_foreign_pullbacks(wrap, sine):
    assert np.allclose(wrap(jax.grad(lambda x: sine.rule(x).sum()))(X), np.cos(X))


def test_a_jacobian_is_one_batch_of_the_pullback(wrap, sine):
    assert np.allclose(wrap(jax.jacrev(sine.rule))(X), np.diag(np.cos(X)))
    assert (len(sine.pull.calls), len(sine.pull.batches)) == (0, 1)


def test_it_can_be_recomputed(wrap, sine):
    f = jax.checkpoint(lambda x: jnp.sum(sine.rule(jnp.sin(x)) ** 2))
    wanted = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(jnp.sin(x)) ** 2))(X)
    for ours, its in zip(wrap(jax.value_and_grad(f))(X), wanted):
        assert np.allclose(ours, its, atol=1e-6)
    assert len(sine.sine.calls) <= 2  # XLA may find that both are the same


def test_loops_and_branches(wrap, sine):
    def f(x):
        x, _ = jax.lax.scan(lambda x, _: (sine.rule(x), None), x, length=2)
        x = jax.lax.fori_loop(0, 1, lambda _, x: sine.rule(x), x)
        return jax.lax.cond(x[0] > 0, sine.rule, lambda x: x, x)

    assert np.allclose(wrap(f)(X), np.sin(np.sin(np.sin(np.sin(X)))))
    assert np.allclose(wrap(jax.vmap(f))(ROWS[1:]), np.sin(np.sin(np.sin(np.sin(ROWS[1:])))))


def test_a_loop_can_be_differentiated(sine):
    f = jax.jit(jax.grad(lambda x: jax.lax.scan(lambda x, _: (sine.rule(x), None), x, length=2)[0].sum()))
    assert np.allclose(f(X), np.cos(np.sin(X)) * np.cos(X))


def test_wide_numbers_are_what_jax_makes_of_them():
    foreign = Recorded(lambda x: [x])
    assert call(foreign, X, outputs=[floats(3, dtype="float64")]).dtype == jnp.float32


def test_a_value_that_is_not_used_is_not_computed():
    foreign = Recorded(mixed)
    jax.jit(lambda x: (call(foreign, x, Y), x)[1])(X)
    assert foreign.calls == []


def test_a_constant_is_not_computed_while_a_program_is_traced():
    foreign = Recorded(mixed)
    program = jax.jit(lambda: call(foreign, X, Y))
    program.trace()
    assert foreign.calls == []
    assert program().tolist() == [32.0, 34.0, 36.0]


@pytest.mark.parametrize(
    "take",
    [
        lambda f: jax.jvp(f, (X,), (X,)),
        lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(X),
        lambda f: jax.vjp(f, X)[1](X),
        lambda f: jax.jacfwd(f)(X),
        lambda f: jax.vmap(jax.grad(lambda x: f(x).sum()))(ROWS),
        lambda f: jax.grad(lambda rows: jax.vmap(f)(rows).sum())(ROWS),
        lambda f: jax.hessian(lambda x: f(x).sum())(X),
        lambda f: jax.linear_transpose(f, X)(X),
    ],
    ids=["jvp", "jit of jvp", "vjp", "jacfwd", "map of grad", "grad of map", "hessian", "transpose"],
)
def test_every_derivative_is_refused(take):
    with pytest.raises(DerivativeError, match=REFUSED):
        take(lambda x: call(Recorded(mixed), x, Y))


def test_a_derivative_that_nobody_takes_is_no_error(wrap):
    def f(x):
        return jnp.sum(x * jax.lax.stop_gradient(call(Recorded(mixed), x, Y)))

    assert wrap(jax.grad(f))(X).tolist() == [32.0, 34.0, 36.0]
    assert np.allclose(wrap(jax.vmap(jax.grad(f)))(ROWS), 2 * ROWS + 30)


def test_integers_have_no_derivative_to_refuse():
    count = Recorded(lambda x: [np.int32((x > 1).sum()), x])
    outputs = [Spec((), "int32", "integer"), floats(3)]

    def f(x):
        n, y = hosts.of(X).callback(count, [x], outputs)
        return jnp.sum(x) * n + jnp.sum(jax.lax.stop_gradient(y))

    assert jax.grad(f)(X).tolist() == [2.0, 2.0, 2.0]


def test_a_second_derivative_that_nobody_gave_is_refused(sine):
    with pytest.raises(DerivativeError, match="a derivative of `sine_pullback`"):
        jax.grad(lambda x: jax.grad(lambda x: sine.rule(x).sum())(x).sum())(X)


def test_the_exception_is_found_behind_the_error_of_a_program():
    def fails(x):
        raise ArithmeticError("singular")

    with pytest.raises(jax.errors.JaxRuntimeError, match="ArithmeticError: singular") as caught:
        jax.jit(lambda x: call(Recorded(fails), x))(X).block_until_ready()
    assert "in fails" in str(caught.value)
    assert type(original(caught.value)) is ArithmeticError


def test_a_foreign_function_goes_with_its_program():
    def make():
        foreign = Recorded(mixed)
        f = jax.jit(lambda x: call(foreign, x, Y))
        f(X)
        jax.vmap(lambda x: call(foreign, x, Y))(ROWS)
        return f, weakref.ref(foreign)

    f, alive = make()
    gc.collect()
    assert f(X).tolist() == [32.0, 34.0, 36.0]
    del f
    gc.collect()
    assert alive() is None


def test_an_export_is_refused_by_jax_itself():
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        jax.export.export(jax.jit(lambda x: call(Recorded(mixed), x, Y)))(X)


DEVICES = """
    import numpy as np, jax, jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    from foreign import Recorded, floats, mixed
    from pullback import hosts

    devices = jax.devices()
    assert len(devices) == 4
    mesh = Mesh(np.array(devices), ("i",))
    rows, y = jnp.arange(24.0).reshape(8, 3), jnp.array([10.0, 20.0])
    host = hosts.of(y)
    foreign = Recorded(mixed)
    one = lambda x: host.callback(foreign, [x, y], [floats(3)])[0]
    spread = jax.device_put(rows, NamedSharding(mesh, P("i")))

    # each shard is a batch of its own
    f = jax.shard_map(jax.vmap(one), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for run in (f, jax.jit(f)):
        foreign.batches.clear()
        assert np.array_equal(run(rows), 2 * rows + 30)
        assert [arrays[0].shape for arrays, _ in foreign.batches] == [(2, 3)] * 4

    # what differs between the shards is not taken for the same
    try:
        jax.shard_map(one, mesh=mesh, in_specs=P("i"), out_specs=P())(jnp.arange(12.0))
    except ValueError as error:
        assert "out_specs" in str(error)
    else:
        raise AssertionError("four results were taken for one")

    # a program with one view of spread data is one batch
    foreign.batches.clear()
    for run in (jax.vmap(one), jax.jit(jax.vmap(one))):
        assert np.array_equal(run(spread) + spread, 3 * rows + 30)
    assert [arrays[0].shape for arrays, _ in foreign.batches] == [(8, 3)] * 2

    # results are where the arguments were put
    x = jax.device_put(rows[0], devices[2])
    assert one(x).devices() == jax.jit(one)(x).devices() == {devices[2]}
"""


def test_several_devices():
    here = str(Path(__file__).parent)
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "PYTHONPATH": os.pathsep.join([here, *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DEVICES)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
