"""`%%check` runs a cell as it is, and shows the rules that it used."""

import warnings

import pytest
from test_html import Page

RULES = """
import torch

class Cube(torch.autograd.Function):
    "Raise to the third power."

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        print("backward")
        return 3 * x * dy
"""
USES = """
x = torch.linspace(-1.0, 2.0, 8, requires_grad=True)
y = Cube.apply(x).sum()
y.backward()
g = x.grad
"""


@pytest.fixture(scope="module")
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # IPython's own
        shell.run_line_magic("load_ext", "pullback")
    shell.run_cell(RULES)
    return shell


@pytest.fixture(scope="module")
def shown(shell):
    return shell.run_cell_magic("check", "--seed 1 --order 1", USES)


def test_a_cell_runs_and_what_it_used_is_checked(shell, shown):
    assert shell.user_ns["g"].shape == (8,)
    (report,) = shown.reports
    assert (report.name, report.verdict, report.causes) == ("Cube", "wrong", ["missing-factor"])
    assert report.seed == 1


def test_a_notebook_gets_the_page_of_the_rule_with_its_pictures_and_source(shown):
    found = Page(shown._repr_html_())
    assert found.texts_of("span", "name") == ["Cube"]
    assert "Claimed against measured gradient" in found.texts_of("figcaption")
    source = next(text for text in found.texts_of("pre") if "def backward" in text)
    assert source.index("def forward") < source.index("def backward")


def test_a_terminal_gets_the_same_as_text(shown):
    assert "in the gradient of `x` a factor `x` is missing" in repr(shown)
    assert repr(shown).endswith("1 rule: 1 wrong; seed 1")


def test_what_a_rule_prints_hundreds_of_times_is_printed_once(shell, capsys):
    shell.run_cell_magic("check", "--seed 1 --order 1", USES)
    assert capsys.readouterr().out.count("backward") == 2  # of the cell, and of the check


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("z = 1", "no custom gradient to check: the cell uses none"),
        ("1 / 0", "no custom gradient to check: the cell stopped before it used one"),
    ],
)
def test_a_cell_without_a_rule_says_so(shell, cell, said):
    shown = shell.run_cell_magic("check", "", cell)
    assert repr(shown) == said
    assert Page(shown._repr_html_()).texts_of("p") == [said]


def test_the_recorder_is_gone_when_the_cell_is_done(shell, shown):
    from pullback import define

    assert define.listeners == []
    shell.run_cell(USES)
    assert len(shown.reports) == 1
