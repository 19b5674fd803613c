"""`pullback check` on programs as users write them: the rules seen are the rules called, each by itself."""

import json


def rules_of(project, name, text, *options):
    """Run the command on a script: exit code, verdicts by name, what was said, and the summary."""
    project.write(name, text)
    code, out, said = project.check(name, "--order", "1", "--json", f"{name}.json", *options)
    rules = json.loads((project.folder / f"{name}.json").read_text(encoding="utf-8"))["rules"]
    summary = next((line for line in reversed(out.splitlines()) if " rule" in line), "")
    return code, {rule["name"]: rule["verdict"] for rule in rules}, said, summary


def test_a_program_of_tensorflow(project):
    code, verdicts, said, summary = rules_of(
        project,
        "in_tensorflow.py",
        """
        import os
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import functools
        import keras, numpy as np, tensorflow as tf
        import pullback as pb

        def cubed(sign):
            @tf.custom_gradient
            def cube(x):
                return x**3, lambda dy: sign * 3 * x**2 * dy
            return cube

        def square(x):
            return x * x

        def good(dy, x):
            return 2 * x * dy

        def bad(dy, x):
            return x * dy

        right, wrong = pb.with_gradient(square, good), pb.with_gradient(square, bad)
        sine = pb.with_gradient(tf.sin, lambda dy, x: -dy * tf.cos(x))
        cosine = pb.elementwise(tf.cos, lambda x: -tf.sin(x))

        @pb.external(output=lambda x: x)
        def quantised(x):
            return np.round(x * 8) / 8

        passed = pb.straight_through(quantised)

        def value(y_true, y_pred):
            return keras.ops.mean((y_true - y_pred) ** 2, axis=-1)

        def slope(y_true, y_pred):
            return 2 * (y_pred - y_true)

        class Act(keras.layers.Layer):
            def call(self, x):
                @tf.custom_gradient
                def doubled(x):
                    return 2.0 * x, lambda dy: 2.0 * dy
                return passed(doubled(x))

        w = tf.Variable([0.5, -1.0])
        for step in range(100):
            with tf.GradientTape() as tape:
                y = cubed(1.0)(w) + right(w) + sine(w) + cosine(w)
                if step == 50:
                    y += cubed(-1.0)(w) + wrong(w)
            w.assign_sub(0.01 * tape.gradient(y, w))
        model = keras.Sequential([keras.layers.Dense(4), Act(), Act(), keras.layers.Dense(2)])
        model.compile("sgd", pb.loss(value, slope))
        model.fit(np.ones((8, 3), "float32"), np.ones((8, 2), "float32"), epochs=2, verbose=0)
        guided = pb.override(model, {"Dense": lambda dy, x: tf.zeros_like(x)})
        with tf.GradientTape() as tape:
            y = guided(tf.ones([2, 3]))
        """,
    )
    assert verdicts == {
        "cubed.cube[sign=1.0]": "right",
        "cubed.cube[sign=-1.0]": "wrong",
        "square[grad=good]": "right",
        "square[grad=bad]": "wrong",
        "sin": "wrong",
        "cos": "right",
        "Act.call.doubled": "right",
        "quantised": "right",
        "value": "wrong",
        "dense": "right",  # the places of the override
    }
    assert code == 1
    assert "not checked" not in summary
    assert all("uses others too" in line for line in said)


def test_a_program_of_jax(project):
    code, verdicts, said, _ = rules_of(
        project,
        "in_jax.py",
        """
        import functools
        import jax, jax.numpy as jnp
        import pullback as pb

        def powered(n, claimed):
            @jax.custom_vjp
            def power(x):
                return x**n

            def forward(x):
                return power(x), x

            def backward(claimed, x, g):
                return (claimed * x ** (n - 1) * g,)

            power.defvjp(forward, functools.partial(backward, claimed))
            return power

        class Layer:
            def __init__(self, scale):
                self.scale = scale
                self.calls = 0

            def __call__(self, x):
                self.calls += 1

                @jax.custom_gradient
                def scaled(x):
                    return self.scale * x, lambda g: self.scale * g
                return scaled(x)

        sine = jax.custom_jvp(jnp.sin)
        sine.defjvps(lambda t, out, x: -jnp.cos(x) * t)
        TABLE = {"a": jax.custom_gradient(lambda x: (2 * x, lambda g: 2 * g)),
                 "b": jax.custom_gradient(lambda x: (2 * x, lambda g: 3 * g))}
        layers = [Layer(2.0), Layer(2.0), Layer(3.0)]

        def loss(x):
            for layer in layers:
                x = layer(x)
            y = powered(2, 2)(x) + powered(3, 3)(x) + powered(3, 2)(x) + sine(x)
            return (y + sum(rule(x) for rule in TABLE.values())).sum() + jax.nn.relu(x).sum()

        x = jnp.array([0.5, 1.5])
        for _ in range(5):
            x = x - 1e-3 * jax.grad(loss)(x)
        """,
    )
    assert verdicts == {
        "powered.power[n=2, claimed=2]": "right",
        "powered.power[n=3, claimed=3]": "right",
        "powered.power[n=3, claimed=2]": "wrong",
        "sin": "wrong",
        "<lambda> (in_jax.py:35)": "right",
        "<lambda> (in_jax.py:36)": "wrong",
        "Layer.__call__.scaled[self.scale=2.0]": "right",
        "Layer.__call__.scaled[self.scale=3.0]": "right",
    }
    assert code == 1
    assert said == ["pullback: in_jax.py uses others too: 1 of JAX's own; `--all` checks them"]


TRAINED = """
    import torch
    from torch.autograd import Function

    def activation(slope):
        class Leaky(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.where(x > 0, x, 0.1 * x)

            @staticmethod
            def backward(ctx, g):
                return g * torch.where(ctx.saved_tensors[0] > 0, 1.0, slope)

        return Leaky

    class Linear(Function):
        @staticmethod
        def forward(ctx, module, x, size, weight, bias):
            ctx.save_for_backward(x, weight)
            return module(x).reshape(size)

        @staticmethod
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            g = g.reshape(x.shape[0], -1)
            return None, g @ weight, None, g.t() @ x, g.sum(0)

    class Negated(Linear):
        @staticmethod
        def backward(ctx, g):
            module, x, size, weight, bias = Linear.backward(ctx, g)
            return module, x, size, -weight, bias

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = torch.nn.Linear(3, 2)

        def forward(self, x):
            size = torch.Size([2, x.shape[0]])
            y = Linear.apply(self.inside, x, size, self.inside.weight, self.inside.bias)
            y = y + Negated.apply(self.inside, x, size, self.inside.weight, self.inside.bias)
            return activation(0.1).apply(y)

    torch.manual_seed(0)
    net = Net()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(20):
        optimiser.zero_grad()
        net(torch.randn(5, 3)).sum().backward()
        optimiser.step()
"""


def test_a_program_of_pytorch(project):
    found, verdicts, said, _ = rules_of(project, "in_torch.py", TRAINED)
    assert verdicts == {"Linear": "right", "Negated": "wrong", "activation.Leaky": "right"}
    assert (found, said) == (1, [])


def test_what_a_factory_makes_by_the_dozen_is_counted(project):
    code, verdicts, said, _ = rules_of(
        project,
        "dozens.py",
        """
        import torch
        import pullback as pb

        def scaled(a):
            @pb.custom_gradient
            def scale(x):
                return x * a, lambda dy: dy * a
            return scale

        for i in range(20):
            scaled(float(i + 1))(torch.ones(2))
        """,
    )
    assert (code, len(verdicts), set(verdicts.values())) == (0, 16, {"right"})
    assert said == ["pullback: scaled.scale (dozens.py:6): 4 more made by the same factory, not checked"]


def test_a_rule_that_cannot_be_run_again_is_not_checked_and_the_exit_code_says_so(project):
    code, verdicts, _, summary = rules_of(
        project,
        "once.py",
        """
        import torch

        class Once(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, source):
                ctx.factor = float(next(source))
                return ctx.factor * x

            @staticmethod
            def backward(ctx, g):
                return ctx.factor * g, None

        Once.apply(torch.ones(2, requires_grad=True), iter(["2"])).sum().backward()
        """,
    )
    assert (code, verdicts) == (2, {"Once": "undecided"})
    assert summary.startswith("1 rule: 1 not checked")


def test_a_module_s_rules_are_told_apart_and_one_that_only_a_table_holds_is_found(project):
    project.write(
        "lib/made.py",
        """
        import jax
        import pullback as pb

        def scaled(a):
            @jax.custom_gradient
            def scale(x):
                return 2.0 * x, lambda dy: a * dy
            return scale

        right, wrong, again = scaled(2.0), scaled(3.0), scaled(2.0)
        TABLE = [scaled(4.0)]
        rounded = pb.external(lambda x: x.round(), output=lambda x: x)
        """,
    )
    code, _, said = project.check("lib", "--order", "1", "--json", "made.json")
    rules = json.loads((project.folder / "made.json").read_text(encoding="utf-8"))["rules"]
    assert {rule["name"]: rule["verdict"] for rule in rules} == {
        "scaled.scale[a=2.0]": "right",
        "scaled.scale[a=3.0]": "wrong",
        "scaled.scale[a=4.0]": "wrong",
    }
    assert (code, said) == (1, [])
