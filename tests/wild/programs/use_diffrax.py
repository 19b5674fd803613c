"""A neural differential equation by two adjoints."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

times = jnp.linspace(0.0, 1.0, 4)
target = jnp.stack([jnp.cos(times), jnp.sin(times)], 1)
net = eqx.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=jax.random.key(0))


def loss(net, adjoint):
    """How far the solution is from a circle."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, args: args(y)),
        diffrax.Tsit5(),
        t0=0.0,
        t1=1.0,
        dt0=0.1,
        y0=jnp.array([1.0, 0.0]),
        args=net,
        saveat=diffrax.SaveAt(ts=times),
        adjoint=adjoint,
        stepsize_controller=diffrax.ConstantStepSize(),
    )
    return jnp.mean((solution.ys - target) ** 2)


for adjoint in (diffrax.BacksolveAdjoint(), diffrax.RecursiveCheckpointAdjoint()):
    value, grads = eqx.filter_value_and_grad(loss)(net, adjoint)
    net = eqx.apply_updates(net, jax.tree.map(lambda g: -0.01 * g, grads))
