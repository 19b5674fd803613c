"""`pullback check` on programs of JAX: every spelling is found, judged, and changes nothing."""

import json

import pytest

# What is printed are bits, traced programs with their source lines, and cache sizes: all must stay the same.
TRAIN = """
    import functools, sys, traceback
    import jax, jax.numpy as jnp, numpy as np
    import pullback as pb
    from jax import custom_vjp
    from jax.custom_derivatives import custom_jvp as early

    @custom_vjp
    def product(x, y):
        return jnp.sin(x) * y

    def product_fwd(x, y):
        return product(x, y), (x, y)

    def product_bwd(kept, g):
        x, y = kept
        return jnp.cos(x) * y * g, jnp.sin(x) * g

    product.defvjp(product_fwd, product_bwd)

    @early
    def cube(x):
        return x**3

    cube.defjvps(lambda t, out, x: -3 * x**2 * t)

    @jax.custom_gradient
    def square(x):
        if x.shape == (7,):
            raise ValueError("seven")
        return x**2, lambda g: 2 * x * g

    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    power.defvjp(lambda x, n: (x**n, x), lambda n, x, g: (n * x ** (n - 1) * g,))

    @functools.partial(jax.custom_jvp, nondiff_argnames=("offset",))
    def shifted(x, offset):
        return jnp.exp(x) + offset * x

    @shifted.defjvp
    def shifted_jvp(offset, primals, tangents):
        (x,), (t,) = primals, tangents
        return shifted(x, offset), (jnp.exp(x) + offset) * t

    def scaling(a):
        @jax.custom_vjp
        def scaled(x):
            return a * x

        scaled.defvjp(lambda x: (a * x, None), lambda kept, g: (a * g,))
        return scaled

    class Model:
        rate = 3.0

        @jax.custom_vjp
        def total(weights):
            return weights["w"] @ weights["b"]

        total.defvjp(
            lambda weights: (Model.total(weights), weights),
            lambda weights, g: ({"w": g * weights["b"], "b": g * weights["w"]},),
        )

        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def method(self, x):
            return self.rate * x

        method.defvjp(lambda self, x: (self.rate * x, None), lambda self, kept, g: (g * self.rate,))

    @jax.custom_vjp
    def noisy(key, x):
        return x * jax.random.normal(key, x.shape)

    noisy.defvjp(
        lambda key, x: (noisy(key, x), key), lambda key, g: (None, g * jax.random.normal(key, g.shape))
    )

    @jax.jit
    @jax.custom_gradient
    def logarithm(x):
        return jnp.log(x), lambda g: g / x

    @pb.custom_gradient
    def own(x):
        def grad(dy):
            return dy * 2
        return x * 2, grad

    x = jnp.linspace(0.1, 2, 5)

    def loss(x):
        return jnp.sum(product(x, y=x) + cube(x) + square(x) + power(x, 3) + shifted(x, np.ones(5)) + own(x))

    step = jax.jit(jax.value_and_grad(loss))
    for value in (jax.grad(loss)(x), *step(x), *step(x), jax.vmap(jax.grad(loss))(jnp.ones((2, 5)))):
        print(np.asarray(value).tobytes().hex())
    print(step._cache_size(), jax.make_jaxpr(jax.grad(loss))(x))
    print(step.lower(x).as_text(debug_info=True))
    for a in (1.0, 2.0):
        print(scaling(a)(x), product(2.0, 3.0))
    print(Model.total({"w": x, "b": x}), Model.method(Model(), x))
    print(jax.jit(jax.grad(lambda x: noisy(jax.random.key(0), x).sum()))(x), logarithm(x))
    for fails in (lambda: square(jnp.ones(7)), lambda: jax.jit(square)(jnp.ones(7))):
        try:
            fails()
        except ValueError:
            traceback.print_exc(file=sys.stdout)
    print(sorted({"tensorflow", "torch"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def trained(project):
    project.write("train.py", TRAIN)
    code, out, said = project.check("train.py", "--json", "report.json", "--order", "1", afresh=True)
    rules = json.loads((project.folder / "report.json").read_text(encoding="utf-8"))["rules"]
    return code, out, said, rules


def test_every_spelling_is_found_and_judged(trained):
    code, _, said, rules = trained
    verdicts = {}
    for rule in rules:
        verdicts.setdefault(rule["name"], set()).add(rule["verdict"])
    verdicts["square"].discard("undecided")  # at the shape that it refuses
    assert verdicts == {
        "product": {"right"},
        "cube": {"wrong"},
        "square": {"right"},
        "power": {"right"},
        "shifted": {"right"},
        "scaling.scaled[a=1.0]": {"right"},
        "scaling.scaled[a=2.0]": {"right"},
        "Model.total": {"right"},
        "Model.method": {"right"},
        "noisy": {"right"},
        "logarithm": {"right"},
        "own": {"right"},
    }
    assert (code, said) == (1, [])


def test_the_mistake_is_named_with_its_place(trained):
    _, out, _, rules = trained
    assert "wrong: sign" in out
    cube = next(rule for rule in rules if rule["name"] == "cube")
    assert (cube["line"], cube["signature"]) == (21, "float32[5]")


def test_values_are_those_that_eager_transformations_carry(trained):
    *_, rules = trained
    signatures = {(rule["name"], rule["signature"]) for rule in rules}
    assert ("Model.total", "float32[5], float32[5]") in signatures
    assert ("product", "float32[], float32[]") in signatures


def test_the_program_prints_the_same(project, trained):
    plain = project.python("train.py")
    assert plain.endswith("[]\n")  # neither TensorFlow nor PyTorch was imported
    assert trained[1].startswith(plain)
