"""Functions that were given another gradient."""

import numpy as np

import pullback as pb

X = np.array([0.7, -1.3, 2.1])
M = np.array([[0.7, -1.3, 2.1], [-0.4, 0.9, -2.6]])


def softplus(x):
    return pb.namespace(x).log1p(pb.namespace(x).exp(x))


def stable(dy, x, output):
    return dy * (1 - pb.namespace(x).exp(-output))


softplus_with_gradient = pb.with_gradient(softplus, stable)
pb.example(X)(softplus_with_gradient)


def scaled(x, factor):
    return x * factor


def halved(dy, x, factor):
    return dy * factor / 2, pb.unbroadcast(dy * x, like=factor)


product_with_half_a_gradient = pb.with_gradient(scaled, halved, differs="half of it")
pb.example(M, X)(product_with_half_a_gradient)


def eighths(x):
    return pb.namespace(x).round(x * 8) / 8


quantised = pb.straight_through(eighths)
pb.example(X)(quantised)


def spike(v):
    xp = pb.namespace(v)
    return xp.astype(v > 0, v.dtype)


def smooth_spike(v):
    return 1 / (1 + pb.namespace(v).exp(-2 * v))


spiking = pb.surrogate(spike, like=smooth_spike)
pb.example(X)(spiking)


def largest_and_sum(x):
    xp = pb.namespace(x)
    return xp.max(x, axis=-1), xp.sum(x, axis=-1)


def soft_largest_and_sum(x):
    xp = pb.namespace(x)
    return xp.log(xp.sum(xp.exp(x), axis=-1)), xp.sum(x, axis=-1)


soft_maximum = pb.surrogate(largest_and_sum, like=soft_largest_and_sum)
pb.example(M)(soft_maximum)
