"""The log itself: what it answers, in words, tables and pictures. No framework is needed."""

import copy
import itertools
import math
import pickle
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pullback.watching import watchpoints
from pullback.watching.hearing import HEARING
from pullback.watching.log import Log
from pullback.watching.record import BINS, WIDTH, edges


def row(size, *, nan=0, inf=0, zero=0, count=4):
    made = np.zeros(WIDTH)
    made[:8] = size * math.sqrt(count), -size, size, 0, count + nan + inf, nan, inf, zero
    return made


def filled(sizes, **odd):
    """Make a log of places with a size at each step, in the order of the backward pass."""
    log = Log()
    for name, steps in sizes.items():
        number = watchpoints.number(f"{name}")
        watchpoints.of(number).rank = 0
        watchpoints.of(number).arrived()
        for step, size in enumerate(steps):
            log.take(number, step, row(size, **odd.get(name, {}) if step == len(steps) - 1 else {}))
    return log


def test_rows_that_overtake_each_other_stand_by_their_steps():
    log, number = Log(), watchpoints.number("overtaken")
    for step in (1, 0, 3, 2):
        log.take(number, step, row(step + 1))
        log.gather()
    assert log["overtaken"].of("norm").tolist() == [2, 4, 6, 8]


def test_a_place_is_found_by_its_name():
    log = filled({"a": [1, 2], "b": [3]})
    assert log.names == ["a", "b"]
    assert "a" in log
    assert log["a"].of("norm").tolist() == [2, 4]
    assert log["a"][0].rms == 1
    assert len(log) == 2
    with pytest.raises(KeyError, match="'c'; this log has heard 'a', 'b'"):
        log["c"]


def test_the_first_nan_is_the_earliest_step_and_the_first_place_of_the_pass():
    log = filled(
        {"late": [1, 1, 1], "near": [1, 1], "deep": [1, 1]}, late={"nan": 1}, near={"nan": 2}, deep={"nan": 1}
    )
    assert log.first_nan == (1, "near")
    assert str(log).startswith("NaN was seen first at step 1, at near")
    assert log.first_inf is None
    assert filled({"a": [1]}).first_nan is None


def test_what_vanishes_and_explodes_over_the_layers():
    log = filled({"last": [1.0], "middle": [1e-2], "first": [1e-5], "wild": [1e4]})
    assert [trend.name for trend in log.vanishing()] == ["first"]
    assert [trend.name for trend in log.vanishing(factor=50)] == ["middle", "first"]
    assert [trend.name for trend in log.exploding()] == ["wild"]
    assert str(log.vanishing()[0]) == (
        "first: its gradient is 1.0e-05 times that at last, where the backward pass begins"
    )


def test_what_vanishes_and_explodes_over_the_steps():
    log = filled({"falls": [1.0] * 4 + [1e-5] * 4, "stays": [1.0] * 8})
    (trend,) = log.vanishing()
    assert (trend.name, trend.ratio) == ("falls", pytest.approx(1e-5))
    assert "from 1.0e+00 to 1.0e-05, from step 0 to 7" in trend.words
    assert log.exploding() == []


def test_a_log_that_heard_nothing_says_so():
    assert str(Log()) == "nothing was heard"
    ElementTree.fromstring(Log().svg())


def test_the_table_has_a_line_for_each_place_and_the_worst_comes_first_in_print():
    log = filled({f"layer {i}": [1.0] for i in range(30)}, **{"layer 17": {"inf": 3}})
    assert len(log.table().splitlines()) == 31
    said = str(log).splitlines()
    assert said[0] == "inf was seen first at step 0, at layer 17"
    assert any(line.startswith("layer 17 ") for line in said)
    assert said[-1] == "and 18 more places: log.table()"


def test_pictures_escape_names():
    log = filled({"<script>": [1.0, 2.0]}, **{"<script>": {"nan": 1}})
    root = ElementTree.fromstring(log._repr_svg_())
    assert "<script>" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "&lt;script&gt;" in log._repr_html_()
    assert "<script>" not in log._repr_html_()
    assert len([path for path in root.iter() if path.get("class") == "bad"]) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda log: pickle.loads(pickle.dumps(log))])
def test_a_log_can_be_copied_and_pickled_even_while_it_is_open(copied):
    log = filled({"a": [1, 2]})
    with log:
        inside = copied(log)
    for each in (inside, copied(log)):
        assert each["a"].of("norm").tolist() == [2, 4]
        assert str(each) == str(log)
    assert HEARING.logs == ()


def test_gradients_that_do_not_come():
    log = Log()
    cut, kept = (watchpoints.of(watchpoints.number(name)) for name in ("cut", "kept"))
    for _ in range(2):
        log.awaits(cut)
        log.awaits(kept)
        log.arrives(kept)
    log.awaits(cut)
    log.awaits(kept)  # a forward pass alone: nobody asks for gradients
    with log:
        pass
    assert log["cut"].none == 2
    assert "kept" not in log


def test_decades_cover_every_size():
    bounds = edges()
    assert len(bounds) == BINS
    assert (bounds[0][0], bounds[-1][1]) == (0.0, math.inf)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(bounds))
