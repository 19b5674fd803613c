"""Rules of complex numbers: `dy` is dL/d conj(y) on every host."""

import numpy as np

import pullback as pb

Z = np.array([0.7 + 0.2j, -1.3 + 1.1j, 0.4 - 0.8j])
W = np.array([0.1 - 0.6j, 0.9 + 0.3j, -0.5 + 0.5j])


@pb.custom_gradient
@pb.example(Z)
def exponential(z):
    """Holomorphic: dz = dy · conj(f′(z))."""
    xp = pb.namespace(z)
    y = xp.exp(z)

    def grad(dy):
        return dy * xp.conj(y)

    return y, grad


@pb.custom_gradient
@pb.example(Z, W)
def quotient(a, b):
    """Two complex inputs."""
    xp = pb.namespace(a)

    def grad(dy):
        return dy / xp.conj(b), -dy * xp.conj(a / (b * b))

    return a / b, grad


@pb.custom_gradient
@pb.example(Z)
def squared_size(z):
    """Complex to real: dz = 2 · dy · z."""
    xp = pb.namespace(z)

    def grad(dy):
        return 2 * xp.astype(dy, z.dtype) * z

    return xp.real(z * xp.conj(z)), grad


logarithm = pb.elementwise(lambda z: pb.namespace(z).log(z), lambda z: 1 / z)
pb.example(Z)(logarithm)
