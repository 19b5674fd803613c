"""The pictures of the page: what was measured stands in them, and what is damaged is not drawn."""

import json
from importlib import resources

import pytest
from json_schema import errors
from saved import AT, FLAT, NAMES, document, heat, scatter, slice_of, stability
from test_html import HOSTILE, Page

from pullback.report.html.axis import axis_of, shown
from pullback.report.html.picture import drawn
from pullback.report.html.shapes import BOTTOM, LEFT, RIGHT, TOP
from pullback.report.page import page


def test_saved_findings_follow_the_schema():
    schema = json.loads((resources.files("pullback.report") / "schema.json").read_text(encoding="utf-8"))
    assert errors(document(), schema) == []


@pytest.fixture(scope="module")
def found():
    text, said = page(document())
    assert said == []
    return Page(text)


def test_every_rule_with_pictures_shows_them(found):
    captions = found.texts_of("figcaption")
    assert captions == [
        "Claimed against measured gradient",
        "Error over the shape of x",
        "The function along x[1, 3]",
        "Claimed against measured second derivative",
        "Error of the second derivative over the shape of x",
        "The gradient along x[1, 3]",
        "Claimed against measured gradient",
        "Error over the shape of x",
        "The function along x[1, 3]",
        "Stability over 40 decades",
    ]
    assert [e["aria-label"] for e in found.all("svg")] == captions


def test_each_point_says_its_index_and_both_values(found):
    titles = [e["text"] for e in found.all("title")]
    for name, v in zip(NAMES, FLAT):
        assert f"{name}\nclaimed {3 * v:.6g}\nmeasured {3 * v * v:.6g}" in titles


def test_points_lie_where_they_belong():
    (picture,) = drawn([scatter()])
    (low, high) = sorted(picture.dots, key=lambda dot: dot.x)[:: len(picture.dots) - 1]
    assert low.x < high.x
    assert (sum(dot.kind == "bad" for dot in picture.dots), len(picture.dots)) == (24, 24)
    (agreed,) = drawn([scatter(claimed=FLAT, measured=FLAT)])
    for dot in agreed.dots:  # on the diagonal
        assert (dot.x - LEFT) / (RIGHT - LEFT) == pytest.approx((BOTTOM - dot.y) / (BOTTOM - TOP), abs=1e-3)
    assert {dot.kind for dot in agreed.dots} == {"good"}


def test_a_claim_that_is_not_finite_is_at_the_top():
    (picture,) = drawn([scatter(claimed=["nan", *FLAT[1:]], measured=FLAT)])
    assert (picture.dots[-1].y, picture.dots[-1].kind) == (TOP, "lost")
    assert picture.legend == [("good", "agrees"), ("lost", "not finite")]


def test_what_differs_is_drawn_on_top():
    (picture,) = drawn([scatter(claimed=[FLAT[0] + 1, *FLAT[1:]], measured=FLAT)])
    assert [dot.kind for dot in picture.dots] == ["good"] * 23 + ["bad"]


def test_labels_of_many_axes_say_where_the_entries_begin_and_end():
    folded = {**heat(), "rows": ["0, 0 … 0, 1", "0, 2", "1, 0", "1, 1 … 1, 2"], "folded": True}
    (picture,) = drawn([folded])
    assert [text.text for text in picture.texts][:4] == ["0, 0", "1, 2", "0", "5"]
    assert "A cell shows the worst of several entries." in picture.note


def test_a_heat_map_has_a_cell_an_entry_and_no_colour_where_it_is_right():
    (picture,) = drawn([heat(cells=[0.0] * 23 + [1.0])])
    assert [box.share for box in picture.boxes[:24]] == [0.0] * 23 + [1.0]
    assert picture.boxes[23].title == "x[3, 5]\nerror 1"


def test_stability_marks_where_a_derivative_is_lost():
    (picture,) = drawn([stability()])
    lost = [dot for dot in picture.dots if "lost" in dot.kind]
    assert len(lost) == sum(v > 88 for v in AT)
    assert "by plain autodiff: 19 of 82 values; by the rule: none" in picture.note


def without(picture, name):
    return {key: value for key, value in picture.items() if key != name}


@pytest.mark.parametrize(
    "damaged",
    [
        *(without(make(), name) for make in (scatter, heat, slice_of, stability) for name in make()
          if name not in ("order", "folded", "apart")),
        {**heat(), "cells": [1.0]},
        {**scatter(), "claimed": ["soon"] * 24},
        {**slice_of(), "values": ["nan"] * 41},
        {"kind": "of a later version"},
        3,
    ],
)  # fmt: skip
def test_a_damaged_picture_is_left_out(damaged):
    assert drawn([damaged, scatter()])[-1].title == "Claimed against measured gradient"
    assert len(drawn([damaged])) == 0


@pytest.mark.parametrize("make", [scatter, heat, slice_of, stability])
def test_hostile_numbers_and_names_are_drawn_all_the_same(make):
    def worse(value):
        if isinstance(value, list):
            return [worse(v) for v in value]
        if isinstance(value, float):
            return value * 1e280
        return value

    huge = {name: value if name == "noise" else worse(value) for name, value in make().items()}
    zero = {
        name: [0.0] * len(value) if isinstance(value, list) and isinstance(value[0], float) else value
        for name, value in make().items()
    }
    for data in (huge, zero):
        data = {name: HOSTILE if name in ("input", "entry", "oracle") else v for name, v in data.items()}
        document_ = document(1)
        document_["rules"][0]["pictures"] = [data]
        found = Page(page(document_)[0])
        assert len(found.all("script")) == 1
        for circle in found.all("circle"):
            assert -50 < float(circle["cx"]) < 500


@pytest.mark.parametrize(
    "values", [[0.0], [1.0], [-3.0, 5.0], [1e-30, 1.0], [-1e20, -1e-20, 1e20], [1e300, -1e300], [5e-324, 1.0]]
)
def test_an_axis_holds_its_numbers_and_has_a_few_ticks(values):
    axis = axis_of(values, 0, 100)
    assert all(-1e-6 <= axis(v) <= 100 + 1e-6 for v in values)
    ticks = axis.ticks()
    assert 1 <= len(ticks) <= 13
    assert all(-1e-6 <= axis(t) <= 100 + 1e-6 for t in ticks)


def test_numbers_of_an_axis_are_written_as_people_do():
    assert [shown(v) for v in (0.0, -2.0, 0.25, 1e20, -1e-16, 12345.0, 2.5e7)] == [
        "0", "−2", "0.25", "1e20", "−1e-16", "1.23e4", "2.5e7",
    ]  # fmt: skip
