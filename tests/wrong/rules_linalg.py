"""Rules of linear algebra and of complex numbers."""

import tensorflow as tf
from zoo import complexes, definite, normal, right, wrong

A, B = normal(3, 4), normal(4, 5, seed=1)
S = normal(3, 3, seed=2, dtype="float64") + 2 * tf.eye(3, dtype=tf.float64)
T = tf.linalg.matrix_transpose


@wrong("transposed", at=(normal(3, 3), normal(3, 3, seed=1)))
def matmul_untransposed(a, b):
    return a @ b, lambda d: (d @ b, a @ d)


@wrong("transposed", at=(normal(4, 3), normal(4, 5, seed=1)), harmless=(normal(3, 3), normal(3, 3, seed=1)))
def inner_product_partials_not_transposed(a, b):
    return T(a) @ b, lambda d: (d @ T(b), a @ d)


@wrong("transposed", at=(A,), harmless=(normal(3, 3),))
def transpose_passes_upstream(a):
    return T(a) * 2, lambda d: d * 2


@wrong("transposed", at=(S,), harmless=(tf.constant([[1.0, 3.0], [3.0, 2.0]]),))
def inverse_untransposed(a):
    y = tf.linalg.inv(a)
    return y, lambda d: -y @ d @ y


@wrong("sign", at=(S,))
def inverse_sign(a):
    y = tf.linalg.inv(a)
    return y, lambda d: T(y) @ d @ T(y)


@wrong("transposed", at=(S,))
def determinant_untransposed(a):
    y = tf.linalg.det(a)
    return y, lambda d: d * y * tf.linalg.inv(a)


@wrong("missing-term", at=(S,))
def square_counted_once(a):
    return a @ a, lambda d: d @ T(a)


@wrong("constant-factor", "missing-term", at=(normal(3, 3), normal(3, seed=1)))
def quadratic_form_half(a, x):
    return tf.einsum("i,ij,j->", x, a, x), lambda d: (d * x[:, None] * x[None], d * tf.linalg.matvec(a, x))


@wrong("sign", "inputs-swapped", at=(normal(4, 3), normal(4, 3, seed=1)))
def cross_product_order(a, b):
    return tf.linalg.cross(a, b), lambda d: (tf.linalg.cross(d, b), tf.linalg.cross(a, d))


@wrong("transposed", "sign", at=(S, normal(3, 2, dtype="float64")))
def solve_matrix_gradient_untransposed(a, b):
    y = tf.linalg.solve(a, b)

    def grad(d):
        g = tf.linalg.solve(a, d, adjoint=True)
        return -y @ T(g), g

    return y, grad


@wrong("wrong-region", "missing-term", at=(normal(3, 3),))
def trace_everywhere(a):
    return tf.linalg.trace(a), lambda d: d * tf.ones_like(a)


@wrong("conjugate-missing", at=(complexes(3),))
def complex_square(z):
    return z * z, lambda d: d * 2 * z


@wrong("conjugate-missing", at=(complexes(3), complexes(3, seed=1)))
def complex_product(a, b):
    return a * b, lambda d: (d * b, d * a)


@wrong("conjugate-missing", at=(complexes(2, 3), complexes(3, 2, seed=1)))
def complex_matmul(a, b):
    return a @ b, lambda d: (d @ T(b), T(a) @ d)


@wrong("conjugate-missing", at=(complexes(3),))
def complex_exponential(z):
    y = tf.exp(z)
    return y, lambda d: d * y


@wrong("conjugate-missing", "sign", at=(complexes(4),))
def complex_absolute(z):
    y = tf.abs(z)
    return y, lambda d: tf.cast(d, z.dtype) * tf.math.conj(z) / tf.cast(y, z.dtype)


@wrong("constant-factor", at=(complexes(4),))
def fourier_scaled(z):
    return tf.signal.fft(z), lambda d: tf.signal.ifft(d)


@right(at=(A, B))
def matmul(a, b):
    return a @ b, lambda d: (d @ T(b), T(a) @ d)


@right(at=(S,))
def inverse(a):
    y = tf.linalg.inv(a)
    return y, lambda d: -T(y) @ d @ T(y)


@right(at=(S,))
def determinant(a):
    y = tf.linalg.det(a)
    return y, lambda d: d * y * T(tf.linalg.inv(a))


@right(at=(definite(3),))
def cholesky_lower(a):
    y = tf.linalg.cholesky(a)

    def grad(d):
        half = tf.linalg.band_part(T(y) @ d, -1, 0)
        half = tf.linalg.set_diag(half, tf.linalg.diag_part(half) / 2)
        inner = tf.linalg.triangular_solve(
            y, T(tf.linalg.triangular_solve(y, T(half), adjoint=True)), adjoint=True
        )
        return (inner + T(inner)) / 2

    return y, grad


@right(at=(S, normal(3, 2, dtype="float64")))
def solve(a, b):
    y = tf.linalg.solve(a, b)

    def grad(d):
        g = tf.linalg.solve(a, d, adjoint=True)
        return -g @ T(y), g

    return y, grad


@right(at=(normal(4, 3), normal(4, 3, seed=1)))
def cross_product(a, b):
    return tf.linalg.cross(a, b), lambda d: (tf.linalg.cross(b, d), tf.linalg.cross(d, a))


@right(at=(complexes(3), complexes(3, seed=1)))
def complex_product_conjugated(a, b):
    return a * b, lambda d: (d * tf.math.conj(b), d * tf.math.conj(a))


@right(at=(complexes(2, 3), complexes(3, 2, seed=1)))
def complex_matmul_adjoint(a, b):
    return a @ b, lambda d: (d @ tf.linalg.adjoint(b), tf.linalg.adjoint(a) @ d)


@right(at=(complexes(4),))
def complex_modulus(z):
    y = tf.abs(z)
    return y, lambda d: tf.cast(d / y, z.dtype) * z


@right(at=(complexes(4),))
def fourier(z):
    n = tf.cast(tf.size(z), z.dtype)
    return tf.signal.fft(z), lambda d: tf.signal.ifft(d) * n


@right(at=(normal(4, 4),))
def outer_with_itself(a):
    return a @ T(a), lambda d: (d + T(d)) @ a
