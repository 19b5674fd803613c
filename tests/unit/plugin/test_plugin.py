"""The fixture, `pb.testing`, and `pb.check` itself."""

import subprocess
import sys
import types
from importlib.metadata import entry_points

import pytest
import tensorflow as tf

import pullback as pb
from pullback.errors import WrongGradientError

pytest_plugins = ["pytester"]


def right(x):
    return x**3


@tf.custom_gradient
def wrong(x):
    def grad(dy):
        return dy * x

    return x**3, grad


X = tf.constant([0.5, -1.0, 2.0])


def test_check_is_a_function():
    report = pb.check(right, X, seed=1)
    assert report.verdict == "right"
    import pullback.checker.finding

    assert isinstance(pb.check, types.FunctionType)
    assert isinstance(pb.check(right, X, seed=1), pullback.checker.finding.Report)
    from pullback.checker import check

    assert check(right, X, seed=1) == pb.check(right, X, seed=1)


def test_check_works_before_and_after_the_package_is_imported():
    code = (
        "import sys, pullback as pb\n"
        "heavy = {'numpy', 'tensorflow', 'rich', 'click', 'pytest', 'pullback.checker'} & set(sys.modules)\n"
        "assert not heavy - {'numpy'}, heavy\n"
        "assert callable(pb.check)\n"
        "import pullback.checker\n"
        "assert callable(pb.check) and pullback.checker.Report and pb.testing.assert_gradient\n"
        "assert 'tensorflow' not in sys.modules and 'check' in dir(pb)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="nothing"):
        _ = pb.nothing


def test_assert_gradient_gives_the_report_or_fails_with_it():
    assert pb.testing.assert_gradient(right, X, seed=1).seed == 1
    with pytest.raises(WrongGradientError, match=r"wrong[\s\S]*measured[\s\S]*tf\.GradientTape"):
        pb.testing.assert_gradient(wrong, X, seed=1)


def test_strict_fails_on_undecided():
    def whole(n):
        return tf.cast(n, tf.float32)

    n = tf.constant([1, 2])
    assert pb.testing.assert_gradient(whole, n).verdict == "undecided"
    with pytest.raises(WrongGradientError, match="undecided"):
        pb.testing.assert_gradient(whole, n, strict=True)


def run(pytester):
    # An installed pullback brings the plugin by itself, and it cannot be registered twice.
    brought = any(e.value == "pullback.pytest_plugin" for e in entry_points(group="pytest11"))
    # Not in this process: it would forget the modules that it imports first, and PyTorch registers some once.
    return pytester.runpytest_subprocess(*([] if brought else ["-p", "pullback.pytest_plugin"]))


def test_the_fixture_fails_a_test_with_the_report(pytester):
    pytester.makepyfile(
        """
        import tensorflow as tf

        @tf.custom_gradient
        def wrong(x):
            return x**3, lambda dy: -dy * 3 * x**2

        def test_right(check_gradient):
            assert check_gradient(tf.sin, tf.constant([1.0, 2.0])).verdict == "right"

        def test_wrong(check_gradient):
            check_gradient(wrong, tf.constant([1.0, 2.0]))
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*wrong (*): wrong*", "*sign:*", "*tf.GradientTape*"])
    assert "assert_gradient" not in result.stdout.str()
    assert result.stdout.str().count("wrong sign") == 1


def test_the_fixture_knows_the_rules_of_jax_and_pytorch(pytester):
    pytester.makepyfile(
        """
        import jax, jax.numpy as jnp, torch
        import pullback as pb

        @jax.custom_vjp
        def cube(x):
            return x**3

        cube.defvjp(lambda x: (x**3, x), lambda x, g: (-3 * x**2 * g,))

        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                return -3 * ctx.saved_tensors[0] ** 2 * g

        @pb.custom_gradient
        def doubled(x):
            def grad(dy):
                return 2 * dy
            return x + x, grad

        def test_right(check_gradient):
            for x in (jnp.ones(2), torch.ones(2)):
                assert check_gradient(doubled, x, order=1).verdict == "right"

        def test_wrong_in_jax(check_gradient):
            check_gradient(cube, jnp.array([1.0, 2.0]), order=1)

        def test_wrong_in_torch(check_gradient):
            check_gradient(Cube.apply, torch.tensor([1.0, 2.0]), order=1)

        def test_wrong_without_the_fixture():
            pb.testing.assert_gradient(Cube.apply, torch.tensor([1.0, 2.0]), order=1)
        """
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=3)
    assert "report = check(" not in result.stdout.str()  # the test is shown, not the source of pullback
    result.stdout.fnmatch_lines(
        ["*cube*: wrong*", "*sign:*", "*jax.vjp*", "*Cube*: wrong*", "*sign:*", "*torch*"]
    )
