"""Solutions have the derivatives of their conditions: as they are known, in both modes, to second order."""

import numpy as np
import pytest
from asking import HOSTS
from problems import PROBLEMS, directions, second

CLOSE = {"rtol": 1e-6, "atol": 1e-7}  # a second order is compared with differences
every = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
on_every_host = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)


def cotangent(problem):
    return directions([problem.solution(*problem.parameters)], 1)[0]


def close(found, known):
    for a, b in zip(found, known, strict=True):
        np.testing.assert_allclose(a, b, **CLOSE)


@on_every_host
@every
def test_a_gradient_is_that_of_the_condition(problem, host):
    dz, solution = cotangent(problem), problem.solution(*problem.parameters)
    value, found = host.pulled(problem.solve, problem.parameters, dz)
    close([value, *found], [solution, *problem.pullback(dz, solution, *problem.parameters)])


@on_every_host
@pytest.mark.parametrize("problem", [PROBLEMS[0], PROBLEMS[3]], ids=lambda problem: problem.name)
def test_it_is_the_same_in_the_other_mode_of_a_host(problem, host):
    dz, solution = cotangent(problem), problem.solution(*problem.parameters)
    value, found = host.otherwise(problem.solve, problem.parameters, dz)
    close([value, *found], [solution, *problem.pullback(dz, solution, *problem.parameters)])


@on_every_host
@every
def test_forward_mode_is_the_transpose_of_reverse_mode(problem, host):
    dz, along = cotangent(problem), directions(problem.parameters, 2)
    known = problem.pullback(dz, problem.solution(*problem.parameters), *problem.parameters)
    pushed = host.pushed(problem.solve, problem.parameters, along)
    np.testing.assert_allclose(np.sum(pushed * dz), sum(np.sum(a * b) for a, b in zip(known, along)), **CLOSE)


@on_every_host
@every
def test_second_order_is_that_of_the_condition(problem, host):
    dz, along = cotangent(problem), directions(problem.parameters, 2)
    close(host.second(problem.solve, problem.parameters, dz, along), second(problem, dz, along))


@on_every_host
@every
def test_forward_over_reverse_is_the_same_second_order(problem, host):
    dz, along = cotangent(problem), directions(problem.parameters, 2)
    close(host.pushed_pull(problem.solve, problem.parameters, dz, along), second(problem, dz, along))


@every
def test_numpy_gives_values(problem):
    close([problem.solve(*problem.parameters)], [problem.solution(*problem.parameters)])
