"""Functions of JAX, TensorFlow and Keras are not called wrong; a dozen of each stand for all."""

import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent))

import driver
import jax_table
import keras_table
import tensorflow_table

CHOSEN = {
    jax_table: [
        "jax.numpy.abs(x)",
        "jax.numpy.sort(x)",
        "jax.numpy.cumprod(x)",
        "jax.numpy.floor(x)",
        "jax.numpy.maximum(x, y)",
        "jax.numpy.where(mask, x, y)",
        "jax.numpy.choose(i, [xs[:3], ys[:3], ps[:3]])",
        "jax.numpy.linalg.det(a)",
        "jax.numpy.angle(c)",
        "jax.nn.relu(x)",
        "jax.scipy.special.logit(t)",
        "jax.scipy.stats.norm.logpdf(x, y, p)",
    ],
    tensorflow_table: [
        "tensorflow.math.abs(x)",
        "tensorflow.math.cumprod(x)",
        "tensorflow.math.floor(x)",
        "tensorflow.math.reduce_max(x)",
        "tensorflow.math.top_k(x, 2)",
        "tensorflow.math.cumulative_logsumexp(x, axis=1, exclusive=True, reverse=True)",
        "tensorflow.math.segment_mean(x, seg)",
        "tensorflow.math.betainc(p, q, t)",
        "tensorflow.math.cumprod(c)",
        "tensorflow.math.xlogy(p, q)",
        "tensorflow.linalg.det(a)",
        "tensorflow.linalg.lu(a)",
        "tensorflow.linalg.trace(a)",
        "tensorflow.nn.relu(x)",
        "tensorflow.nn.softmax(x)",
        "tensorflow.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)",
    ],
    keras_table: [
        "keras.ops.floor(x)",
        "keras.ops.softmax(x)",
        "keras.ops.relu(x)",
        "keras.ops.maximum(x, y)",
        "keras.ops.where(mask, x, y)",
        "keras.ops.take(x, i)",
        "keras.ops.clip(x, -0.5, 1.5)",
        "keras.ops.det(a)",
        "keras.ops.sparsemax(x)",
        "keras.ops.hard_shrink(x)",
    ],
}
TABLES = {module: module.table() for module in CHOSEN}
CALLS = [(module, name) for module, names in CHOSEN.items() for name in names]


@pytest.mark.filterwarnings("ignore")  # the frameworks about their own functions
@pytest.mark.parametrize(("module", "name"), CALLS, ids=[name for _, name in CALLS])
def test_a_function_is_not_called_wrong(module, name):
    table = TABLES[module]
    found = driver.judged(next(table.calls[name]()))
    assert found["verdict"] in (("wrong",) if name in table.known else ("right", "undecided")), found


REPRODUCTIONS = dict.fromkeys(r for table in TABLES.values() for r in table.known.values())


@pytest.mark.parametrize("reproduction", REPRODUCTIONS, ids=lambda r: r.__name__)
def test_what_is_wrong_is_shown_without_the_checker(reproduction):
    claimed, true = (np.asarray(value) for value in reproduction())
    assert not np.allclose(claimed, true)


@pytest.mark.parametrize("module", CHOSEN, ids=lambda module: module.__name__)
def test_a_table_names_what_exists_once_and_what_is_known(module):
    table = TABLES[module]
    assert set(table.known) <= set(table.calls)
    assert not {name.split("(")[0] for name in table.calls} & set(table.left_out)


def test_a_line_of_the_page_is_replaced_and_others_stay():
    page = "| framework | version |\n| --- | --- |\n| Other | 1 |\n\nMore.\n"
    head = driver.Head("NumPy", "2.1", ("f(x)", "f(y)", "g(x)"), 5, {}, frozenset({"g(x)"}))
    found = {name: {"verdict": "wrong" if name == "g(x)" else "right"} for name in head.names}
    once = driver.written(page, head, found)
    assert once.splitlines()[3] == "| NumPy | 2.1 | 2 of 5 | 3 | 2 | 0 | 1 | 0 | 0 |"
    assert driver.written(once, head, found) == once
    assert once.splitlines()[2] == "| Other | 1 |"
