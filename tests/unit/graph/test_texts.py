"""A graph as DOT, Mermaid and plain text."""

from dataclasses import replace

import pytest
from made import chain, small

import pullback as pb

DOT = """\
digraph {
  rankdir=TB;
  node [shape=box, style=rounded, fontname="sans-serif", fontsize=11];
  edge [fontname="sans-serif", fontsize=9, color="#8a8f98"];
  label="f\\nfirst culprit: exp (a.py:3): what comes to it is finite, and what it passes on has NaN";
  n0 [label="x", shape=ellipse];
  n1 [label="exp", color="#c5221f", fontcolor="#c5221f", penwidth=2];
  n2 [label="f [surrogate]\\nkeeps 2 KiB", color="#8250df", penwidth=2, tooltip="pullback: like g"];
  n3 [label="stop"];
  n4 [label="output", shape=ellipse];
  n0 -> n1 [label="float32[3]\\n∂ NaN", color="#c5221f", fontcolor="#c5221f"];
  n1 -> n2 [label="float32[3]\\n∂ 1.5"];
  n0 -> n3 [label="float32[3]\\n∂ None", color="#c5221f", fontcolor="#c5221f", style=dashed];
  n3 -> n4 [label="float32[3]\\n∂ 1.5"];
  n2 -> n4 [label="float32[?, 3]\\n∂ 0", color="#c5221f", fontcolor="#c5221f"];
}
"""
MERMAID = """\
    n0(["x"])
    n1["exp"]:::culprit
    n2["f [surrogate]<br>keeps 2 KiB"]:::surrogate
    n3["stop"]
    n4(["output"])
    n0 -->|"float32[3]<br>∂ NaN"| n1
    n1 -->|"float32[3]<br>∂ 1.5"| n2
    n0 -.->|"float32[3]<br>∂ None"| n3
    n3 -->|"float32[3]<br>∂ 1.5"| n4
    n2 -->|"float32[?, 3]<br>∂ 0"| n4
    linkStyle 0,2,4 stroke:#c5221f
"""
TEXT = """\
f on torch: 3 operations
   0  x  float32[3]  gradient NaN
   1  exp  ← 0 (∂ NaN)  float32[3]  a.py:3
   2  f [surrogate]  ← 1 (∂ 1.5)  float32[?, 3]  keeps 2 KiB
   3  stop  ← 0 (∂ None)  float32[3]
   4  output  ← 3 (∂ 1.5), 2 (∂ 0)
first culprit: exp (a.py:3): what comes to it is finite, and what it passes on has NaN"""


def test_dot():
    assert small().dot() == DOT


def test_mermaid():
    text = small().mermaid()
    assert text.startswith("flowchart TD\n")
    assert text.endswith(MERMAID)


def test_text():
    assert str(small()) == TEXT


def test_names_of_users_are_no_code():
    graph = small()
    hostile = replace(graph.nodes[3], name='<script>"]#\\')
    graph = replace(graph, nodes=(*graph.nodes[:3], hostile, graph.nodes[4]))
    assert 'n3 [label="<script>\\"]#\\\\"];' in graph.dot()
    assert 'n3["#lt;script#gt;#quot;]#35;\\"]' in graph.mermaid()
    assert "<script>" not in graph.svg()


def test_a_long_graph_is_folded_in_a_terminal():
    lines = str(chain(1000)).splitlines()
    assert len(lines) < 130
    assert lines[0] == "chain on jax: 1000 operations"


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(pb.errors.OptionError, match=r"ends in \.pdf"):
        small().save(tmp_path / "graph.pdf")
