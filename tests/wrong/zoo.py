"""The table of the zoo: wrong rules with the causes that name them, and right rules beside them.

A rule is one small function that returns its output and `grad`. `at` shows the bug; `harmless` are inputs
chosen without knowing it. Every module `rules_*.py` beside this file is read.
"""

from __future__ import annotations

import importlib
import pathlib
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

WRONG = {}
RIGHT = {}


@dataclass(frozen=True)
class Case:
    name: str
    function: object
    at: tuple
    harmless: tuple | None = None
    causes: frozenset = frozenset()


def wrong(*causes, at, harmless=None):
    """Enter a wrong rule."""

    def enter(body):
        name = body.__name__
        assert name not in WRONG, name
        WRONG[name] = Case(name, tf.custom_gradient(body), at, harmless, frozenset(causes))
        return body

    return enter


def right(at, plain=False):
    """Enter a right rule, or with `plain` a function without a rule."""

    def enter(body):
        name = body.__name__
        assert name not in RIGHT, name
        RIGHT[name] = Case(name, body if plain else tf.custom_gradient(body), at)
        return body

    return enter


def normal(*shape, seed=0, dtype="float32"):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), dtype)


def positive(*shape, seed=0, dtype="float32"):
    return tf.constant(np.random.default_rng(seed).uniform(0.3, 2.0, size=shape), dtype)


def probability(*shape, seed=0, dtype="float32"):
    return tf.constant(np.random.default_rng(seed).uniform(0.1, 0.9, size=shape), dtype)


def complexes(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return tf.constant(rng.normal(size=shape) + 1j * rng.normal(size=shape), tf.complex128)


def definite(n, seed=0):
    a = np.random.default_rng(seed).normal(size=(n, n))
    return tf.constant(a @ a.T + n * np.eye(n))


def constant(values, dtype="float32"):
    return tf.cast(tf.constant(values), dtype)


def index(*values):
    return tf.constant(values, tf.int32)


def discover():
    """Read every file of rules."""
    for path in sorted(pathlib.Path(__file__).parent.glob("rules_*.py")):
        importlib.import_module(path.stem)
    return WRONG, RIGHT
