"""Fit a matrix by the norm of what a linear solve leaves."""

import jax
import lineax as lx

keys = jax.random.split(jax.random.key(0), 3)
matrix, b = jax.random.normal(keys[0], (4, 3)), jax.random.normal(keys[1], (4,))


@jax.jit
def loss(matrix):
    solution = lx.linear_solve(lx.MatrixLinearOperator(matrix), b, lx.QR()).value
    rest = {"residual": matrix @ solution - b, "size": 0.1 * solution}
    return lx.internal.two_norm(rest) + lx.internal.rms_norm(solution) + lx.internal.max_norm(rest)


for _ in range(3):
    value, slope = jax.value_and_grad(loss)(matrix)
    matrix = matrix - 0.1 * slope
print(value)
