"""Jobs that take long or need an environment of their own; the tests of every day need none of them."""

import nox


@nox.session
def wild(session: nox.Session) -> None:
    """Check programs over public packages, and make the table in docs/wild.md."""
    session.install("-e", ".[test]")
    session.install("--no-deps", "-r", "tests/wild/requirements.txt")
    session.run("python", "tests/wild/run.py", *(session.posargs or ["--write"]))


TABLES = ("opinfo", "jax_table", "tensorflow_table", "keras_table")


@nox.session
@nox.parametrize("table", TABLES, ids=TABLES)
def tables(session: nox.Session, table: str) -> None:
    """Check a framework's own functions, at all samples of the table, and make its line in docs/tables.md."""
    session.install("-e", ".[test]")
    session.run("python", "-W", "ignore", "tests/tables/driver.py", table, *(session.posargs or ["--write"]))


@nox.session
def generated(session: nox.Session) -> None:
    """Check two thousand generated rules a host against what is known of them."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-q", "tests/generated", env={"GENERATED": "2000"})


@nox.session
def seeds(session: nox.Session) -> None:
    """Check the rules of the zoo at twenty seeds: a verdict does not depend on one."""
    session.install("-e", ".[test]")
    for host in session.posargs or ("PyTorch", "JAX", "TensorFlow"):
        session.run("python", "-W", "ignore", "tests/wrong/seeds.py", host)
