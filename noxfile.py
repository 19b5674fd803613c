"""Jobs that need an environment of their own, or more time than the tests of every day have."""

import nox

CPU = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")


@nox.session
def wild(session: nox.Session) -> None:
    """Check programs over public packages, and make the table in docs/wild.md."""
    session.install("torch==2.13.0+cpu", *CPU)
    session.install("-e", ".[test]", *CPU)
    session.install("--no-deps", "-r", "tests/wild/requirements.txt")
    session.run("python", "tests/wild/run.py", *(session.posargs or ["--write"]))


@nox.session
def generated(session: nox.Session) -> None:
    """Check two thousand generated rules a host against what is known of them."""
    session.install("torch==2.13.0+cpu", *CPU)
    session.install("-e", ".[test]", *CPU)
    session.run("python", "-m", "pytest", "-q", "tests/generated", env={"GENERATED": "2000"})
