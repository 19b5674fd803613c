"""The combinations that the tests were run with.

A line stands here because the tests of that host passed with those versions; a version that is merely allowed
does not. `nox -s versions` runs the ones that `.ci/run` does not.
"""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """Name versions that were tried together, as far as they matter: `major.minor`, and NumPy's `major`."""

    framework: str
    version: str
    python: str
    numpy: str


KNOWN = (
    Known("tensorflow", "2.16", "3.11", "1"),
    Known("tensorflow", "2.21", "3.10", "2"),
    Known("tensorflow", "2.21", "3.11", "2"),
    Known("tensorflow", "2.21", "3.13", "2"),
    Known("jax", "0.9", "3.11", "2"),
    Known("jax", "0.10", "3.11", "2"),
    Known("jax", "0.12", "3.12", "2"),
    Known("jax", "0.12", "3.13", "2"),
    Known("torch", "2.13", "3.11", "1"),
    Known("torch", "2.13", "3.11", "2"),
    Known("torch", "2.14", "3.10", "2"),
    Known("torch", "2.14", "3.14", "2"),
    Known("torch", "2.15", "3.12", "2"),
    Known("torch", "2.15", "3.13", "2"),
)


def combination(framework: str, version: str, python: str, numpy: str) -> Known:
    """Give the combination of full versions."""
    return Known(framework, _short(version), _short(python), numpy.partition(".")[0])


def sentence(here: Known) -> str:
    """Say whether a combination was tried, and if not, which were."""
    name = f"{here.framework} {here.version}, Python {here.python}, NumPy {here.numpy}"
    if here in KNOWN:
        return f"{name}: the tests were run with it"
    others = [known for known in KNOWN if known.framework == here.framework]
    tried = "; ".join(f"{known.version}, Python {known.python}, NumPy {known.numpy}" for known in others)
    return f"{name}: the tests were not run with it, but with {tried}"


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])
