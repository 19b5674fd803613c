"""A host that offers executing and the facts of a tensor, and nothing else, runs rules."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import hosts
from pullback.errors import CotangentShapeError, HostError, NoTensorError
from pullback.new import texts
from pullback.ops.linear.kernels import kernels_of

HERE = Path(__file__).parent
X = np.array([0.3, -0.7, 1.1])


@pytest.fixture(scope="module")
def taped():
    """Make the framework and its host known, as a row of the table of hosts would."""
    sys.path.insert(0, str(HERE))
    framework = importlib.import_module("taped")
    sys.modules["pullback.hosts.taped"] = importlib.import_module("taped_host")
    row = hosts.Framework(
        needed="1.0",
        roots=("taped",),
        written="import taped",
        tensor="taped.Taped",
        constant="taped.Taped",
        namespace="taped",
    )
    hosts.SUPPORTED["taped"] = row
    hosts.ROOTS["taped"] = "taped"
    yield framework
    del hosts.SUPPORTED["taped"], hosts.ROOTS["taped"], sys.modules["pullback.hosts.taped"]
    sys.path.remove(str(HERE))
    hosts.host.cache_clear()


@pytest.fixture(scope="module")
def softplus(taped):
    @pb.custom_gradient
    def softplus(x, scale=1.0):
        e = taped.exp(x)

        def grad(dy):
            return dy * (scale * e.value / (1 + e.value))

        return taped.Taped(scale * np.log(1 + e.value)), grad

    return softplus


def test_a_rule_has_its_own_gradient(taped, softplus):
    x = taped.Taped(X)
    y = softplus(x, scale=2.0) * 3.0
    np.testing.assert_allclose(y.value, 6 * np.log(1 + np.exp(X)))
    np.testing.assert_allclose(taped.gradient(y, x), 6 / (1 + np.exp(-X)))


def test_outputs_keep_their_structure(taped):
    @pb.custom_gradient
    def both(x, y):
        def grad(dz, dw):
            return {"x": dz * y.value, "y": dw}

        return {"product": x * y, "sum": y + 1.0}["product"], y + 1.0, grad

    x, y = taped.Taped(X), taped.Taped(2 * X)
    z, w = both(x, y)
    np.testing.assert_allclose(taped.gradient(z, x), 2 * X)
    np.testing.assert_allclose(taped.gradient(w, y), np.ones(3))


def test_the_contract_holds(taped):
    @pb.custom_gradient
    def wrong(x):
        return x * 2.0, lambda dy: taped.Taped(np.ones(2))

    x = taped.Taped(X)
    with pytest.raises(CotangentShapeError, match=r"shape \(2,\) for argument `x` of shape \(3,\)"):
        taped.gradient(wrong(x), x)


def test_what_it_does_not_offer_is_refused_in_words(taped):
    x = taped.Taped(X)
    with pytest.raises(HostError, match="Taped arrays: a host that does not offer it"):
        pb.scale_gradient(x, 2.0)
    with pytest.raises(HostError, match="check"):
        pb.check(lambda x: x * 2.0, x)
    with pytest.raises(HostError, match="Taped has no gradients to draw"):
        pb.graph(lambda x: x * 2.0, x)
    with pytest.raises(HostError, match="checkpoint"):
        pb.checkpoint(lambda x: x * 2.0)(x)
    with pytest.raises(HostError, match="ops: Taped arrays: a host that does not offer it"):
        kernels_of(x)
    with pytest.raises(NoTensorError, match="watch"):
        pb.watch(x, "here")


def test_a_room_without_a_word_on_it_goes_on_without_it(taped):
    assert hosts.part("record", "taped") is None
    assert hosts.part("record", "jax") is not None
    with pb.watch() as log:
        assert log.names == []
    assert "import taped" in texts("mine", "taped")["mine.py"]


def test_it_is_short():
    lines = (HERE / "taped_host.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 50
