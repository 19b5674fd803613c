"""Jobs that need an environment of their own; the tests of every day need none of them."""

import nox

CPU = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")


@nox.session
def wild(session: nox.Session) -> None:
    """Check programs over public packages, and make the table in docs/wild.md."""
    session.install("torch==2.13.0+cpu", *CPU)
    session.install("-e", ".[test]", *CPU)
    session.install("--no-deps", "-r", "tests/wild/requirements.txt")
    session.run("python", "tests/wild/run.py", *(session.posargs or ["--write"]))
