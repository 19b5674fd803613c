"""Every example runs in a process of its own, and fails when what it claims is wrong."""

import ast
import runpy
import shutil
from pathlib import Path

import pytest
import warm

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN_ALL = runpy.run_path(str(EXAMPLES / "run_all.py"))
FILES = [path for path in RUN_ALL["examples"]() if path.parent.name != "gallery"]  # test_gallery.py


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_holds(path):
    done = warm.run(path, deprecated="error")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows what it found"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_is_short_and_can_be_imported(path):
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    assert text.count("\n") < 70
    assert ast.get_docstring(ast.parse(text)).splitlines()[0].endswith("?"), "the first line is a question"
    guarded = [node for node in body if isinstance(node, ast.If)]
    assert [ast.unparse(node.test) for node in guarded] == ["__name__ == '__main__'"]
    claims = [n for n in ast.walk(guarded[0]) if isinstance(n, ast.Assert) or "assert_" in ast.unparse(n)]
    assert claims, "an example asserts what it claims"
    loose = [node for node in body if isinstance(node, (ast.Expr, ast.For, ast.With)) and node is not body[0]]
    assert not loose, "an import runs nothing"


def test_every_question_of_the_users_has_an_example():
    assert {path.stem for path in FILES} >= {
        "both_modes",
        "domain_adversarial",
        "double_backward",
        "elementwise_partials",
        "external_assignment",
        "external_c_function",
        "external_dask",
        "external_heat",
        "external_ode",
        "external_program",
        "guided_backpropagation",
        "leaky_relu_gradient",
        "loss_with_its_own_gradient",
        "loss_without_nan",
        "many_inputs_outputs",
        "newton_second_order",
        "non_differentiable",
        "quantised_training",
        "replace_gradient",
        "spiking_layer",
        "stable_log1pexp",
        "stable_softmax",
    }


@pytest.mark.parametrize(("claim", "status"), [("1 + 1 == 2", 0), ("1 + 1 == 3", 1)])
def test_run_all_fails_when_an_example_does(tmp_path, claim, status):
    shutil.copy(EXAMPLES / "run_all.py", tmp_path)
    (tmp_path / "sum.py").write_text(f'"""Does it hold?"""\nassert {claim}\n', encoding="utf-8")
    done = warm.run(tmp_path / "run_all.py")
    assert done.returncode == status
    assert done.stdout.startswith("ok" if status == 0 else "FAILED")
