"""A diff of a patch is what git applies: the file is then, byte by byte, the text that was verified."""

import random
import subprocess

import pytest

from pullback.mend.diff import edited, unified
from pullback.mend.patch import Patch, Span


def git(folder, *arguments, given=None):
    done = subprocess.run(["git", "-C", folder, *arguments], input=given, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    return folder


def patch_of(file, text, *edits):
    """Make a patch: each edit is a piece of the text, and what stands there afterwards."""
    spans = []
    for old, new in edits:
        assert text.count(old) == 1
        spans.append(Span(text.index(old), text.index(old) + len(old), new))
    return Patch(str(file), text, tuple(sorted(spans, key=lambda s: s.start)), "words", (), 2)


def assert_applies(patch, folder, base=None):
    with open(patch.file, "w", encoding="utf-8", newline="") as file:
        file.write(patch.text)
    diff = unified(patch, str(folder))
    git(base or folder, "apply", "-", given=diff.encode())
    with open(patch.file, encoding="utf-8", newline="") as file:
        assert file.read() == edited(patch.text, patch.spans)
    return diff


BODY = """import math


def f(x):
    # the square
    def grad(dy):
        return dy * x

    return x * x, grad
"""
TWICE = ("dy * x\n", "dy * 2 * x\n")
FAR = "".join(f"line{i}\n" for i in range(40))


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        (BODY, [TWICE]),
        (BODY.replace("\n", "\r\n"), [("dy * x\r", "dy * 2 * x\r")]),
        (BODY.replace("    ", "\t"), [TWICE]),
        (BODY.replace("x", "größe"), [("dy * größe", "dy * 2 * größe")]),
        (BODY.replace("# the square", "# \u00a0\u2028\x0c\x1f the square"), [TWICE]),
        (BODY.rstrip("\n"), [("x * x, grad", "x * x * 1, grad")]),
        (BODY.rstrip("\n"), [TWICE]),
        (BODY.rstrip("\n"), [("x * x, grad", "x * x, grad\n")]),
        (BODY, [("x * x, grad\n", "x * x, grad")]),
        (BODY, [("import math", "import cmath"), ("dy * x\n", "dy * x.conj()\n")]),
        (BODY, [("dy * ", "2 * dy * "), ("x\n\n", "x\n")]),
        (BODY, [("        return dy * x\n", "")]),
        (BODY, [("    # the square\n", ""), ("import math\n", "import math\nimport cmath\n")]),
        ("x", [("x", "y")]),
        ("x\n", [("x\n", "")]),
        (FAR, [("line3\n", "line3\nmore\n"), ("line9\n", ""), ("line30\n", "line\n30\n"), ("line31\n", "")]),
    ],
)
def test_git_makes_the_verified_text_of_it(repository, text, edits):
    assert_applies(patch_of(repository / "rules.py", text, *edits), repository)


def test_any_edits_of_any_text(repository):
    rng = random.Random(0)
    for _ in range(40):
        text = "".join(rng.choice("ab \t\r\n\n") for _ in range(rng.randrange(1, 60)))
        places = sorted(
            rng.sample(range(len(text) + 1), min(len(text) + 1, 2 * rng.randrange(1, 4)) // 2 * 2)
        )
        spans = [
            Span(a, b, rng.choice(["", "c", "c\n", "\nc", "\n"])) for a, b in zip(places[::2], places[1::2])
        ]
        patch = Patch(str(repository / "any.py"), text, tuple(spans), "", (), 2)
        if edited(text, spans) in (text, ""):
            continue
        assert_applies(patch, repository)


def test_only_the_lines_around_are_shown(repository):
    diff = unified(patch_of(repository / "rules.py", FAR, ("line20\n", "line 20\n")), str(repository))
    assert diff.splitlines() == [
        "--- a/rules.py", "+++ b/rules.py", "@@ -18,7 +18,7 @@", " line17", " line18", " line19", "-line20",
        "+line 20", " line21", " line22", " line23",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["my rules.py", "größe.py", 'quo"te.py', "back\\slash.py", "tab\there.py", "a b/c d.py"]
)
def test_names_that_git_must_be_told_of(repository, name):
    (repository / name).parent.mkdir(exist_ok=True)
    assert_applies(patch_of(repository / name, BODY, TWICE), repository)


def test_paths_are_relative_to_the_working_folder(repository, monkeypatch):
    (repository / "deep" / "er").mkdir(parents=True)
    patch = patch_of(repository / "deep" / "er" / "rules.py", BODY, TWICE)
    assert assert_applies(patch, repository).startswith("--- a/deep/er/rules.py\n")
    assert assert_applies(patch, repository / "deep").startswith("--- a/er/rules.py\n")
    monkeypatch.chdir(repository / "deep" / "er")
    assert unified(patch).startswith("--- a/rules.py\n")


def test_a_file_elsewhere_says_where_its_diff_applies(repository, tmp_path):
    (repository / "deep").mkdir(exist_ok=True)
    above = patch_of(repository / "above.py", BODY, TWICE)
    diff = assert_applies(above, repository / "deep", base=repository)
    assert diff.startswith(f"# to be applied in {repository.resolve()}\n--- a/above.py\n")
    apart = patch_of(tmp_path / "apart.py", BODY, TWICE)
    diff = assert_applies(apart, repository, base=tmp_path)
    assert diff.startswith(f"# to be applied in {tmp_path.resolve()}\n--- a/apart.py\n")


def test_a_link_is_followed(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    patch = patch_of(tmp_path / "link" / "rules.py", BODY, TWICE)
    assert assert_applies(patch, repository).startswith("--- a/rules.py\n")
