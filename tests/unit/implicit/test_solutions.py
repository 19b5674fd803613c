"""What is asked of a solution, of its condition and of a linear system: else an error with its numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
from asking import HOSTS

import pullback as pb
from pullback import errors

on_every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
X = np.array([4.0, 9.0])
ONE = np.ones(2)


def gradient(host, f, *arrays):
    return host.pulled(f, arrays, ONE)[1]


def root_of(x):
    return pb.namespace(x).sqrt(x)


def doubled(z, x):
    return z * z - 2 * x


wrong = pb.implicit.root(doubled, root_of)


@on_every_host
def test_a_solution_that_does_not_satisfy_its_condition_is_an_error_with_the_residual(host):
    with pytest.raises(errors.SolutionError, match="`doubled`: the residual is 9\n  expected: at most 4"):
        wrong(host.tensor(X))


def test_numpy_asks_it_too():
    with pytest.raises(errors.SolutionError, match="the residual is 9"):
        wrong(X)


def test_a_program_of_tensorflow_asserts_it_and_xla_gives_nan():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)does not satisfy `doubled`.*numbers\] \[9"
    ):
        tf.function(wrong)(tf.constant(X))
    assert np.isnan(tf.function(wrong, jit_compile=True)(tf.constant(X))).all()


def test_a_program_of_jax_raises_it():
    with pytest.raises(Exception, match="does not satisfy `doubled`: the residual is 9"):
        jax.block_until_ready(jax.jit(wrong)(jnp.asarray(X)))
    with pytest.raises(Exception, match="does not satisfy `doubled`: the residual is 9"):
        jax.block_until_ready(jax.jit(jax.vmap(wrong))(jnp.stack([X, X])))


def test_batches_of_pytorch_raise_it():
    with pytest.raises(errors.SolutionError, match="the residual is 9"):
        torch.func.vmap(wrong)(torch.as_tensor(np.stack([0 * X, X])))


@on_every_host
def test_a_tolerance_is_what_the_user_says(host):
    loose = pb.implicit.root(lambda z, x: z - x, lambda x: x + 0.01, tolerance=1e-2)
    np.testing.assert_allclose(gradient(host, loose, X)[0], ONE)
    strict = pb.implicit.root(lambda z, x: z - x, lambda x: x + 1e-8, tolerance=1e-12)
    with pytest.raises(errors.SolutionError, match="the residual is 1e-08"):
        strict(host.tensor(X))
    anything = pb.implicit.root(doubled, root_of, tolerance=float("inf"))
    np.testing.assert_allclose(anything(host.tensor(X)), [2, 3])


@on_every_host
def test_nan_is_no_solution(host):
    lost = pb.implicit.root(lambda z, x: z - x, lambda x: x / (0 * x) * 0)
    with pytest.raises(errors.SolutionError, match="the residual is nan"), np.errstate(invalid="ignore"):
        lost(host.tensor(X))


@on_every_host
@pytest.mark.parametrize("method", ["dense", "gmres", "bicgstab", "cg"])
def test_a_singular_system_is_an_error(host, method):
    flat = pb.implicit.root(lambda z, x: (z - x) ** 2, lambda x: 1 * x, method=method)
    found = "is singular: its least pivot is 0" if method == "dense" else f"was not solved by {method}"
    with pytest.raises(Exception, match=found):  # JAX tells in its own words what a program raised
        gradient(host, flat, X)


@on_every_host
@pytest.mark.parametrize("method", ["dense", "gmres", "bicgstab", "cg"])
def test_every_method_solves(host, method):
    n = 12
    matrix = np.eye(n) * 3 - np.eye(n, k=1) - np.eye(n, k=-1)
    b = np.sin(np.arange(n))

    def solved(b, matrix):
        return pb.implicit.linear_solve(
            lambda x, m: pb.namespace(m).matmul(m, x), b, matrix, method=method, symmetric=method == "cg"
        )

    value, (db, dm) = host.pulled(solved, [b, matrix], np.ones(n))
    u = np.linalg.solve(matrix.T, np.ones(n))
    np.testing.assert_allclose(value, np.linalg.solve(matrix, b), rtol=1e-8)
    np.testing.assert_allclose(db, u, rtol=1e-8)
    np.testing.assert_allclose(dm, -np.outer(u, value), rtol=1e-8)


@on_every_host
@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cg"])
def test_by_default_a_system_is_solved_as_exactly_as_the_dtype_allows(host, method):
    n = 40
    matrix = np.eye(n) * 3 - np.eye(n, k=1) - np.eye(n, k=-1)
    b = np.sin(np.arange(n))

    def solved(b):
        return pb.implicit.linear_solve(lambda x: 3 * x - shifted(x, 1) - shifted(x, -1), b, method=method)

    def shifted(x, by):
        xp = pb.namespace(x)
        nothing = xp.zeros_like(x[:1])
        return xp.concat([nothing, x[:-1]]) if by > 0 else xp.concat([x[1:], nothing])

    value, (db,) = host.pulled(solved, [b], np.ones(n))
    np.testing.assert_allclose(value, np.linalg.solve(matrix, b), rtol=0, atol=1e-15)
    np.testing.assert_allclose(db, np.linalg.solve(matrix, np.ones(n)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cg"])
def test_a_residual_that_stands_still_at_roundoff_is_a_solution(method):
    """Here A·x cannot be written to 8 units of roundoff of b: the largest terms of its sums are 1e4 of b."""
    n, products = 60, []
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    matrix = turn @ np.diag(np.linspace(1, 2, n) ** 8 * 40) @ turn.T
    b = turn[:, 0]

    def multiply(x):
        products.append(x)
        return matrix @ x

    x = pb.implicit.linear_solve(multiply, b, method=method)
    off = np.linalg.norm(matrix @ x - b)
    assert 8 * 2.0**-53 < off < 1e-12
    assert len(products) < 900, "it ends where nothing is gained, and not with its iterations"


def test_all_passes_share_the_iterations():
    products = []

    def multiply(x):
        products.append(x)
        return np.linspace(1, 9, x.size) * x

    with pytest.raises(errors.SolutionError, match="within 30 iterations"):
        pb.implicit.linear_solve(multiply, np.ones(100), method="cg", iterations=30, accuracy=1e-14)
    assert len(products) <= 30 + 4  # one for each pass, and one that tries the function


def test_a_system_that_is_not_solved_in_its_iterations_is_an_error():
    n = 100
    matrix = np.diag(np.linspace(1, 1e4, n))
    ask = {"method": "cg", "iterations": 5, "symmetric": True}
    with pytest.raises(errors.SolutionError, match=r"not solved by cg: .*\n.* within 5 iterations"):
        pb.implicit.linear_solve(lambda x: matrix @ x, np.ones(n), **ask)
    ask["accuracy"] = 0.9
    assert np.linalg.norm(matrix @ pb.implicit.linear_solve(lambda x: matrix @ x, np.ones(n), **ask) - 1) < 9


def test_a_direction_that_the_residual_does_not_see_is_found():
    """In a rotation by a right angle A·b stands upright on b: the residual alone would give nothing new."""
    turn = np.roll(np.eye(20), 1, 0)
    x = pb.implicit.linear_solve(lambda x: turn @ x, np.eye(20)[0], method="gmres")
    np.testing.assert_allclose(turn @ x, np.eye(20)[0], atol=1e-12)


def test_a_basis_that_is_begun_anew_goes_on_from_what_is_left():
    """Complex, of two tensors, each example of a batch with its own number of directions."""
    rng = np.random.default_rng(3)
    matrices = np.stack([np.eye(40) * 2.0, np.eye(40) * 2.0 + rng.normal(size=(40, 40)) * 0.1])
    b = rng.normal(size=(2, 40)) + 1j * rng.normal(size=(2, 40))

    def solved(matrix, b):
        def multiply(x, matrix):
            whole = torch.cat([x["one"], x["two"]])
            return dict(zip(x, torch.split(matrix @ whole, [25, 15])))

        found = pb.implicit.linear_solve(multiply, {"one": b[:25], "two": b[25:]}, matrix, method="gmres")
        return torch.cat([found["one"], found["two"]])

    given = torch.as_tensor(matrices, dtype=torch.complex128), torch.as_tensor(b)
    known = np.linalg.solve(matrices, b[..., None])[..., 0]
    np.testing.assert_allclose(torch.func.vmap(solved)(*given), known, atol=1e-13)
    np.testing.assert_allclose(solved(*(x[1] for x in given)), known[1], atol=1e-13)


def test_units_do_not_make_a_system_singular():
    matrix = np.array([[1e-12, 1e-13], [3.0, 1e9]])
    x = pb.implicit.linear_solve(lambda x: matrix @ x, np.ones(2))
    np.testing.assert_allclose(x, np.linalg.solve(matrix, np.ones(2)), rtol=1e-10)


def test_complex_systems_need_not_be_holomorphic():
    x = pb.implicit.linear_solve(lambda x: 2 * x + np.conj(x) * 1j, np.array([1 + 2j, 3 - 1j]))
    np.testing.assert_allclose(2 * x + np.conj(x) * 1j, [1 + 2j, 3 - 1j])


# ── what is captured ─────────────────────────────────────────────────────────────────────────────────────


def test_a_captured_tensor_that_is_differentiated_is_refused():
    x, w = torch.tensor(X, requires_grad=True), torch.tensor(ONE, requires_grad=True)
    with pytest.raises(errors.CapturedTensorError, match="`w`"):
        pb.implicit.root(lambda z, x: z * z - w * x, root_of)(x)
    with pytest.raises(errors.CapturedTensorError, match="`w`"):
        pb.implicit.linear_solve(lambda v: w * v, x)
    with pytest.raises(errors.CapturedTensorError, match="`w`"):
        pb.implicit.argmin(lambda z, x: (w * (z - x) ** 2).sum(), lambda x: x)(x)


def test_a_captured_variable_or_traced_array_is_refused():
    v = tf.Variable(ONE)
    with tf.GradientTape() as tape, pytest.raises(errors.CapturedVariableError):
        pb.implicit.root(lambda z, x: z * z - v * x, root_of)(tf.constant(X))
    assert tape is not None

    def captured(w):
        return pb.implicit.root(lambda z, x: z * z - w * x, root_of)(jnp.asarray(X)).sum()

    with pytest.raises(errors.CapturedTensorError):
        jax.grad(captured)(jnp.asarray(ONE))


# ── how a condition is called ────────────────────────────────────────────────────────────────────────────


@on_every_host
def test_a_condition_takes_what_it_names_and_an_initial_guess_has_no_gradient(host):
    @pb.implicit.root(lambda z, x: z * z - x)
    def solve(x, init, steps=20):
        for _ in range(steps):
            init = (init + x / init) / 2
        return init

    dx, dinit = gradient(host, solve, X, ONE)
    np.testing.assert_allclose(dx, 0.5 / np.sqrt(X))
    np.testing.assert_array_equal(dinit if dinit is not None else 0 * X, 0 * X)
    (dx,) = gradient(host, lambda x: solve(x, init=ONE, steps=30), X)
    np.testing.assert_allclose(dx, 0.5 / np.sqrt(X))


@on_every_host
def test_structures_go_in_and_come_out(host):
    def condition(z, theta):
        return {"a": z["a"] ** 3 - theta[0], "b": (z["b"][0] - theta[1] * z["a"],)}

    @pb.implicit.root(condition)
    def solve(init, theta):
        a = theta[0] ** (1 / 3)
        return {"a": a, "b": (theta[1] * a,)}

    p, q = X, np.array([2.0, 3.0])
    dp, dq = gradient(host, lambda p, q: solve(None, (p, q))["b"][0], p, q)
    np.testing.assert_allclose(dp, q * p ** (-2 / 3) / 3)
    np.testing.assert_allclose(dq, p ** (1 / 3))


def test_an_unclear_condition_is_refused():
    unclear = pb.implicit.root(lambda z, a, b=1.0: z - a, lambda u, v: v)
    with pytest.raises(errors.DefinitionError, match="the same names"):
        unclear(X, X)


@pytest.mark.parametrize(
    ("ask", "error", "found"),
    [
        (lambda: pb.implicit.root(3, root_of), errors.DefinitionError, "condition=3"),
        (lambda: pb.implicit.root(doubled, 3), errors.DefinitionError, "solver=3"),
        (lambda: pb.implicit.root(doubled, root_of, method="lu"), errors.OptionError, "method='lu'"),
        (lambda: pb.implicit.root(doubled, root_of, tolerance=-1), errors.OptionError, "tolerance=-1"),
        (lambda: pb.implicit.root(doubled, root_of, iterations=0), errors.OptionError, "iterations=0"),
        (lambda: pb.implicit.linear_solve(3, X), errors.DefinitionError, "matvec=3"),
        (lambda: pb.implicit.linear_solve(lambda x: x[:1], X), errors.OutputError, r"gives \(1,\)"),
        (lambda: pb.implicit.root(lambda z, x: z[:1], root_of)(X), errors.OutputError, r"gives \(1,\)"),
        (lambda: pb.implicit.fixed_point(lambda z, x: (z, z), root_of)(X), errors.OutputError, "gives"),
        (
            lambda: pb.implicit.argmin(lambda z, x: z - x, root_of)(torch.tensor(X)),
            errors.OutputError,
            r"the objective gives shape \(2,\)",
        ),
        (
            lambda: pb.implicit.root(doubled, lambda x: (x, torch.tensor(3)))(torch.tensor(X)),
            errors.OutputError,
            "the solution holds int64",
        ),
    ],
)
def test_bad_input_is_refused_in_words(ask, error, found):
    with pytest.raises(error, match=found):
        ask()


def test_nothing_to_solve_is_solved():
    empty = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    solve = pb.implicit.root(lambda z, x: z - x, lambda x: 1 * x)
    assert torch.autograd.grad(solve(empty).sum(), empty)[0].shape == (0,)
