"""How does one gradient give jax.jvp, jax.hessian and jax.vmap as well?

A `jax.custom_vjp` has no forward mode: `jax.jvp`, `jax.jacfwd` and `jax.hessian` refuse it. A rule has a
pullback that is linear in `dy`, and the pushforward is its transpose.
"""

import jax
import jax.numpy as jnp

import pullback as pb


# y  = log(1 + eˣ), computed without overflow
# dx = dy · σ(x)
@pb.example(jnp.array([-2.0, 0.5, 30.0]))
@pb.custom_gradient
def softplus(x):
    def grad(dy):
        return dy * jax.nn.sigmoid(x)

    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))), grad


if __name__ == "__main__":
    x = jnp.array([-2.0, 0.5, 30.0])
    slope, curvature = jax.nn.sigmoid(x), jax.nn.sigmoid(x) * jax.nn.sigmoid(-x)
    pushed = jax.jvp(softplus, [x], [jnp.ones(3)])[1]
    hessian = jax.hessian(lambda x: softplus(x).sum())(x)
    batched = jax.jit(jax.vmap(jax.grad(softplus)))(x)
    assert jnp.allclose(pushed, slope)
    assert jnp.allclose(batched, slope)
    assert jnp.allclose(hessian, jnp.diag(curvature), atol=1e-6)
    print("forward mode", pushed, "curvature", jnp.diag(hessian))
    native = jax.custom_vjp(jax.nn.softplus)
    native.defvjp(lambda x: (native(x), x), lambda x, dy: (dy * jax.nn.sigmoid(x),))
    try:
        jax.jvp(native, [x], [jnp.ones(3)])
    except TypeError as error:
        print("custom_vjp:", str(error).splitlines()[0][:60])
    else:
        raise AssertionError("a custom_vjp has a forward mode now")
