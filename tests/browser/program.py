"""A small program with a right rule, a wrong one, one that is wrong in the second order, and a surrogate."""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def cube(x):
    """Raise to the third power.

    y = x³, so dy/dx = 3 x², and the pullback multiplies by 3 x².
    """
    return x**3


def cube_forward(x):
    return x**3, x


def cube_backward(x, dy):
    return (3 * x * dy,)


cube.defvjp(cube_forward, cube_backward)


@jax.custom_vjp
def softplus(x):
    """Give log(1 + exp(x)) with a gradient that does not overflow."""
    return jnp.log(1 + jnp.exp(x))


def softplus_forward(x):
    return jnp.logaddexp(x, 0.0), x


def softplus_backward(x, dy):
    return (dy * jax.nn.sigmoid(x),)


softplus.defvjp(softplus_forward, softplus_backward)


@jax.custom_vjp
def square(x):
    return x * x


def square_forward(x):
    return x * x, x


def square_backward(x, dy):
    return (2 * jax.lax.stop_gradient(x) * dy,)


square.defvjp(square_forward, square_backward)


@jax.custom_vjp
def quantise(x):
    """Round; the gradient goes straight through."""
    return jnp.round(x)


quantise.defvjp(lambda x: (jnp.round(x), None), lambda _, dy: (dy,))

if __name__ == "__main__":
    x = jnp.linspace(-2, 2, 24).reshape(4, 6) + 0.1
    for f in (cube, softplus, square, quantise):
        print(f.__name__, jax.grad(lambda x, f=f: f(x).sum())(x)[0, 0])
