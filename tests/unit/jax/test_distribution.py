"""Rules on four devices, in a process of their own: shards and shardings."""

import subprocess
import sys
import textwrap

PROGRAM = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import pullback as pb

jax.config.update("jax_enable_x64", True)
assert jax.device_count() == 4
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
x, scalar = jnp.arange(8.0) / 10, jnp.asarray(2.0)

@pb.custom_gradient
def f(x, w):
    kept = jnp.cos(x)
    def grad(dy):
        return dy * kept * w, pb.unbroadcast(dy * jnp.sin(x), like=w)
    return jnp.sin(x) * w, grad

def plain(x, w):
    return jnp.sin(x) * w

def loss(g):
    return lambda x, w: (g(x, w) * jnp.arange(8.0)).sum()

derivatives = {
    "grad": lambda g: jax.grad(g, (0, 1)),
    "jvp": lambda g: lambda a, b: jax.jvp(g, (a, b), (a, b)),
    "hessian": lambda g: jax.hessian(g, (0, 1)),
    "reverse over forward": lambda g: jax.jacrev(jax.jacfwd(g, (0, 1)), (0, 1)),
}
for spec, w in ((P(), scalar), (P("d"), x + 1)):
    mapped = jax.shard_map(f, mesh=mesh, in_specs=(P("d"), spec), out_specs=P("d"))
    for name, derivative in derivatives.items():
        got, want = jax.jit(derivative(loss(mapped)))(x, w), derivative(loss(plain))(x, w)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)

inside = jax.shard_map(
    jax.grad(lambda a, b: f(a, b).sum(), (0, 1)), mesh=mesh, in_specs=(P("d"), P()), out_specs=(P("d"), P())
)
want = jax.grad(lambda a, b: plain(a, b).sum(), (0, 1))(x, scalar)
for a, b in zip(jax.jit(inside)(x, scalar), want):
    np.testing.assert_allclose(a, b, rtol=1e-9)

@pb.custom_gradient
def total(x):
    return jax.lax.psum(x.sum(), "d"), lambda dy: jnp.broadcast_to(dy, x.shape)

summed = jax.shard_map(total, mesh=mesh, in_specs=P("d"), out_specs=P())
assert jax.grad(summed)(x).tolist() == [1.0] * 8
np.testing.assert_allclose(jax.jvp(summed, (x,), (x,))[1], x.sum())

sharded, everywhere = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
step = jax.jit(
    jax.grad(lambda a, b: f(a, b).sum(), (0, 1)),
    in_shardings=(sharded, everywhere), out_shardings=(sharded, everywhere),
)
got = step(x, scalar)
assert got[0].sharding.spec == P("d")
np.testing.assert_allclose(got[0], want[0], rtol=1e-9)

explicit = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    placed = jax.device_put(x, NamedSharding(explicit, P("d")))
    got = jax.jit(jax.grad(lambda a: f(a, scalar).sum()))(placed)
    assert jax.typeof(got).sharding.spec == P("d")
    batched = jax.grad(lambda a: jax.vmap(f, in_axes=(0, None))(a, scalar).sum())(placed)
    np.testing.assert_allclose(batched, want[0], rtol=1e-9)

def watched(a):
    return (pb.watch(jnp.sin(a), "sharded") ** 2).sum()

with pb.watch() as log:
    jax.jit(jax.grad(watched))(placed)
    with jax.set_mesh(explicit):
        jax.jit(jax.grad(watched))(placed)
        jax.grad(watched)(placed)
np.testing.assert_allclose(log["sharded"].of("norm"), 3 * [np.linalg.norm(2 * np.sin(x))], rtol=1e-6)
print("all held")
"""


def test_shard_map_and_shardings_on_four_devices():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=400
    )
    assert done.stdout.strip() == "all held", done.stderr[-3000:]
