"""Rules from partial derivatives alone."""

import numpy as np

import pullback as pb

X = np.array([0.7, -1.3, 2.1])


def softplus(x):
    return pb.namespace(x).log1p(pb.namespace(x).exp(x))


def sigmoid(x, output):
    return 1 - pb.namespace(x).exp(-output)


softplus_by_output = pb.elementwise(softplus, sigmoid)
pb.example(X)(softplus_by_output)


def length(a, b):
    return pb.namespace(a).sqrt(a * a + b * b)


def length_partials(a, b, output):
    return a / output, b / output


broadcast_length = pb.elementwise(length, length_partials)
pb.example(X, np.array([[0.5], [-2.0]]))(broadcast_length)


def power(x, exponent):
    return x**exponent


static_power = pb.elementwise(power, lambda x, exponent: exponent * x ** (exponent - 1))
pb.example(X, 3)(static_power)
