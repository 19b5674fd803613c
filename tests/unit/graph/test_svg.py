"""The picture: boxes that do not touch, text that is legible, and what is wrong in red."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest
from made import chain, ladder, small

import pullback as pb
from pullback.graphs import svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph, **options):
    return ElementTree.fromstring(graph.svg(**options))


def boxes(root):
    """Give the boxes of the nodes: left, top, right, bottom."""
    found = []
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "node":
            rect = group.find(f"{SVG}rect")
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def texts(root):
    """Give the space of every text that stands beside a line."""
    found = []
    inside = {
        text for group in root.iter(f"{SVG}g") if group.get("class") for text in group.iter(f"{SVG}text")
    }
    for text in root.iter(f"{SVG}text"):
        if text.get("font-size") == "10" and text not in inside:
            x, y, wide = float(text.get("x")), float(text.get("y")), len(text.text) * 10 * 0.602
            found.append((x, y - 8, x + wide, y + 2))
    return found


def touch(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


GRAPHS = [small(), ladder(12), ladder(26), chain(25), chain(10_000)]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: f"{graph.title} {len(graph.nodes)}")
def test_nothing_lies_upon_something_else(graph):
    root = drawn(graph)
    found = boxes(root)
    assert len(found) > 3
    assert not [(a, b) for a, b in itertools.combinations(found, 2) if touch(a, b)]
    words = texts(root)
    assert not [(a, b) for a, b in itertools.combinations(words, 2) if touch(a, b)]
    assert not [(a, b) for a in words for b in found if touch(a, b)]
    width, height = float(root.get("width")), float(root.get("height"))
    assert min(min(box) for box in found + words) >= 0
    assert all(box[2] <= width and box[3] <= height for box in found + words)


def test_every_node_and_edge_is_drawn_and_says_more_when_pointed_at():
    root = drawn(small())
    groups = [g.get("class") for g in root.iter(f"{SVG}g")]
    assert (groups.count("node"), groups.count("edge")) == (5, 5)
    titles = [t.text for t in root.iter(f"{SVG}title")]
    assert "float32[3], gradient NaN" in titles
    assert "f\npullback: like g\nkeeps 2 KiB" in titles
    words = {t.text for t in root.iter(f"{SVG}text")}
    assert {"x", "exp", "f", "surrogate · keeps 2 KiB", "∂ NaN", "∂ 1.5", "None", "∂ 0"} <= words


def test_red_is_for_what_is_wrong():
    text = small().svg()
    assert text.count(svg.RED) > 3
    assert chain(5).svg().count(svg.RED) == 1, "the arrowhead that is not used"


def test_a_long_chain_fits_a_screen():
    root = drawn(chain(25))
    assert float(root.get("width")) <= 1280
    assert float(root.get("height")) <= 800


def test_a_picture_that_nobody_could_read_is_refused():
    with pytest.raises(pb.errors.OptionError, match="10002 boxes in one picture"):
        chain(10_000).svg(fold=False)


def mobilenet():
    """Draw a chain with the layers of Keras' MobileNet."""
    layers = ["conv1", "conv1_bn", "conv1_relu"]
    for i in range(1, 14):
        layers += [f"conv_pad_{i}"] if i in (2, 4, 6, 12) else []
        layers += [f"conv_{kind}_{i}{part}" for kind in ("dw", "pw") for part in ("", "_bn", "_relu")]
    layers += ["global_average_pooling2d", "dropout", "conv_preds", "reshape_2", "predictions"]
    return chain(4 * len(layers), scope=lambda i: ("mobilenet", layers[(i - 1) // 4]))


def test_mobilenet_fits_a_screen_folded_where_its_blocks_are():
    root = drawn(mobilenet())
    assert float(root.get("width")) <= 1280
    assert float(root.get("height")) <= 800
    names = [n.name for n in mobilenet().fold().nodes]
    assert {"conv_pw_7", "conv_pw_13", "output"} <= set(names)


def test_a_notebook_shows_it():
    assert small()._repr_svg_().startswith("<svg ")


def test_without_the_library_text_stays_and_svg_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "igraph", None)
    monkeypatch.setattr(svg, "available", lambda: False)
    graph = small()
    assert graph._repr_svg_() is None
    assert graph.dot()
    assert graph.mermaid()
    with pytest.raises(pb.errors.HostError, match=r"pip install 'pullback\[see\]'"):
        graph.svg()


def test_png_has_its_words_without_a_font_of_the_machine():
    import resvg_py

    from pullback.graphs import png
    from pullback.graphs.svg import FONT

    def drawn(words):
        text = f'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="30">{words}</svg>'
        return resvg_py.svg_to_bytes(svg_string=text, font_files=png._fonts(), skip_system_fonts=True)

    assert drawn(f'<text y="20" font-family="{FONT}">∂ ←</text>') != drawn("")


def test_png_is_drawn_or_says_what_to_install(tmp_path, monkeypatch):
    import sys

    path = tmp_path / "graph.png"
    small().save(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(pb.errors.HostError, match=r"pip install 'pullback\[see\]'"):
        small().png(path)
