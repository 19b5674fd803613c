"""Structures come apart and together without loss."""

import collections
import time

import pytest

from pullback import tree

Point = collections.namedtuple("Point", "x y")

STRUCTURES = [
    1,
    [1, 2, [3]],
    (1, (2,), [3]),
    {"b": 1, "a": {"c": 2}},
    Point(1, [2, 3]),
    collections.OrderedDict(z=1, a=2),
    {1: "x", "a": 2},
    [],
]


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_what_is_flattened_is_rebuilt(structure):
    leaves, built = tree.flatten(structure)
    again = tree.unflatten(built, leaves)
    assert again == structure
    assert type(again) is type(structure)


def test_a_tuple_that_c_made_is_a_structure():
    made = time.struct_time(range(9))
    leaves, shape = tree.flatten(made)
    assert leaves == list(range(9))
    assert tree.unflatten(shape, leaves) == made


def test_leaves_of_a_dict_come_in_the_order_of_its_keys():
    assert tree.flatten({"b": 1, "a": 2})[0] == [2, 1]


def test_a_tree_keeps_no_leaf_alive():
    leaves, built = tree.flatten({"a": object()})
    assert built.template == {"a": None}
    assert len(leaves) == 1


@pytest.mark.parametrize(
    ("structure", "value", "expected"),
    [
        ([1, 2], (3, 4), [3, 4]),
        ({"a": 1, "b": 2}, {"a": 5}, [5, None]),
        ([1, [2, 3]], [None, None], [None, None, None]),
        ([1, [2, 3]], None, [None, None, None]),
        ([1, 2], [3], None),
        ([1, 2], 3, None),
        ({"a": 1}, {"c": 1}, None),
        ({"a": 1}, [1], None),
    ],
)
def test_a_value_is_laid_along_a_structure_or_refused(structure, value, expected):
    assert tree.match(tree.flatten(structure)[1], value) == expected
