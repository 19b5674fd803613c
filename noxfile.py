"""Jobs that are too long for the tests of every day."""

import nox


@nox.session(venv_backend="none")
def generated(session: nox.Session) -> None:
    """Check two thousand generated rules a host against what is known of them."""
    session.run(
        "python", "-m", "pytest", "-q", "tests/generated", *session.posargs, env={"GENERATED": "2000"}
    )
