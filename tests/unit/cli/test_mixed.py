"""Modules, functions and programs that use several frameworks."""

import json

import pytest


@pytest.fixture(scope="module")
def library(project):
    project.write(
        "lib/in_jax.py",
        """
        import functools
        import jax, jax.numpy as jnp
        import pullback as pb

        @pb.example(jnp.ones((2, 3)), jnp.ones(3))
        @jax.custom_vjp
        def linear(x, w):
            return x @ w

        linear.defvjp(lambda x, w: (x @ w, (x, w)), lambda kept, g: (g[:, None] * kept[1], kept[0].T @ g))

        @jax.custom_gradient
        @pb.example(jnp.array([0.5, 2.0]))
        def logarithm(x):
            assert x.shape == (2,)
            return jnp.log(x), lambda g: g * x

        @jax.custom_jvp
        def cube(x: jax.ShapeDtypeStruct((2, 2), jnp.float32)):
            assert x.shape == (2, 2)
            return x**3

        cube.defjvps(lambda t, out, x: 3 * x**2 * t)
        TABLE = [jax.jit(cube)]
        """,
    )
    project.write(
        "lib/in_torch.py",
        """
        import torch
        import pullback as pb

        @pb.example(torch.ones(2, 3), torch.ones(3))
        class Linear(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                assert x.shape == (2, 3)
                ctx.save_for_backward(x, w)
                return x @ w

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return g[:, None] * w, x.T @ g

        class Doubled(torch.autograd.Function):
            @staticmethod
            @pb.example(torch.tensor([1.0, 2.0]), 2)
            def forward(ctx, x, n):
                return x * n

            @staticmethod
            def backward(ctx, g):
                return g, None

        class Abstract(torch.autograd.Function):
            pass

        @torch.library.custom_op("mixed::halved", mutates_args=())
        def halved(x: torch.Tensor, by: float) -> torch.Tensor:
            return x * by

        halved.register_autograd(
            lambda ctx, g: (g * ctx.by, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
        )
        """,
    )
    return project


def test_a_folder_of_two_frameworks(library):
    code, _, said = library.check("lib", "--order", "1", "--json", "lib.json")
    rules = json.loads((library.folder / "lib.json").read_text(encoding="utf-8"))["rules"]
    assert said == []
    assert {rule["name"]: (rule["verdict"], rule["signature"]) for rule in rules} == {
        "linear": ("right", "float32[2,3], float32[3]"),
        "logarithm": ("wrong", "float32[2]"),
        "cube": ("right", "float32[2,2]"),
        "Linear": ("right", "float32[2,3], float32[3]"),
        "Doubled": ("wrong", "float32[2]"),
        "mixed::halved": ("right", "float32[3]"),
    }
    assert code == 1


def test_functions_are_named_as_a_user_would(library):
    targets = ["in_jax.py:linear", "in_torch.py::Linear", "in_torch.py:Linear.apply", "in_torch.py:halved"]
    code, out, said = library.check(*(f"lib/{target}" for target in targets), "--order", "1")
    assert (code, said) == (0, [])
    assert "3 rules: 3 right" in out


def test_one_rule_is_checked_on_every_host_that_it_ran_on(project):
    project.write(
        "all.py",
        """
        import jax.numpy as jnp, tensorflow as tf, torch
        import pullback as pb

        @pb.custom_gradient
        def doubled(x):
            def grad(dy):
                return dy * 2
            return x + x, grad

        for x in (tf.ones([2]), jnp.ones(2), torch.ones(2)):
            doubled(x)
        """,
    )
    code, _, said = project.check("all.py", "--order", "1", "--json", "all.json")
    rules = json.loads((project.folder / "all.json").read_text(encoding="utf-8"))["rules"]
    assert [rule["verdict"] for rule in rules] == ["right"] * 3
    assert (code, said) == (0, [])


def test_a_stopped_program_loses_nothing(project):
    project.write(
        "endless.py",
        """
        import jax, jax.numpy as jnp, torch

        @jax.custom_gradient
        def square(x):
            return x * x, lambda g: g * x

        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, g):
                return 3 * ctx.saved_tensors[0] ** 2 * g

        if __name__ == "__main__":
            while True:
                try:
                    jax.jit(jax.grad(lambda x: square(x).sum()))(jnp.ones(3))
                    Cube.apply(torch.ones(3))
                except Exception:
                    pass
        """,
    )
    code, out, said = project.check("endless.py", "--calls", "20", "--order", "1")
    assert said == ["pullback: endless.py was stopped after 20 calls; what it had used by then is checked"]
    assert "2 rules: 1 right, 1 wrong" in out
    assert code == 1
