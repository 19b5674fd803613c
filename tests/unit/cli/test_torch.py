"""`pullback check` on programs of PyTorch: every spelling is found, judged, and changes nothing."""

import json

import pytest

TRAIN = """
    import pickle, sys, traceback, warnings
    import torch
    import pullback as pb
    from torch.autograd import Function
    from torch.autograd.function import once_differentiable

    class Power(Function):
        @staticmethod
        def forward(ctx, x, n=2):
            if x.shape == (7,):
                warnings.warn("seven", stacklevel=2)
                raise ValueError("seven")
            ctx.save_for_backward(x)
            ctx.n = n
            return x**n

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    class Sine(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return torch.sin(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return -g * torch.cos(ctx.saved_tensors[0])

    apply_early = Sine.apply

    class Cosine(Sine):
        @staticmethod
        def forward(x):
            return torch.cos(x)

        @staticmethod
        def backward(ctx, g):
            return -g * torch.sin(ctx.saved_tensors[0])

    def scaling(a):
        class Scaled(Function):
            @staticmethod
            def forward(ctx, x):
                return a * x

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                return a * g

        return Scaled

    class Compiled(Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.n = n
            return torch.log(x) * n

        @staticmethod
        def backward(ctx, g):
            return g / ctx.saved_tensors[0] * ctx.n, None

    @torch.library.custom_op("mylib::tripled", mutates_args=())
    def tripled(x: torch.Tensor, factor: float = 3.0) -> torch.Tensor:
        return x * factor

    tripled.register_fake(lambda x, factor=3.0: torch.empty_like(x))
    tripled.register_autograd(
        lambda ctx, g: (g * ctx.factor, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
    )

    library = torch.library.Library("named", "DEF")
    library.define("cube(Tensor x) -> Tensor")
    library.impl("cube", lambda x: x**3, "CompositeExplicitAutograd")

    def cube_backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g

    torch.library.register_autograd(
        "named::cube", cube_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
    )

    @pb.custom_gradient
    def own(x):
        def grad(dy):
            return dy * 2
        return x * 2, grad

    torch.manual_seed(0)
    layer = torch.nn.Linear(5, 5)
    x = torch.linspace(0.1, 2, 5, requires_grad=True)
    y = Power.apply(layer(x), 3) + apply_early(x) + Cosine.apply(x) + scaling(2.0).apply(x) + own(x)
    y = y + tripled(x) + torch.ops.mylib.tripled(x, 2.0) + torch.ops.named.cube(x)
    y.sum().backward()
    for tensor in (y.detach(), x.grad, layer.weight.grad):
        print(tensor.numpy().tobytes().hex())
    print(y, torch.func.vmap(torch.func.grad(lambda x: Sine.apply(x).sum()))(torch.ones(2, 3)))
    print(torch.compile(lambda x: Compiled.apply(x, 3) * 2, backend="aot_eager", fullgraph=True)(x))
    print(Power.apply(torch.ones(2, dtype=torch.bfloat16)), pickle.loads(pickle.dumps(Power.apply)))
    try:
        Power.apply(torch.ones(7))
    except ValueError:
        traceback.print_exc(file=sys.stdout)
    print(torch.rand(3), sorted({"tensorflow", "jax"} & set(sys.modules)))
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
    verdicts["Power"].discard("undecided")  # at the shape that it refuses
    assert verdicts == {
        "Power": {"right"},
        "Sine": {"wrong"},
        "Cosine": {"right"},
        "scaling.Scaled": {"right"},
        "Compiled": {"right"},
        "mylib::tripled": {"right"},
        "named::cube": {"right"},
        "own": {"right"},
    }
    assert code == 1
    assert all("of PyTorch's own; `--all` checks them" in line for line in said)  # those of its compiler


def test_the_mistake_is_named_with_the_line_of_its_class(trained):
    _, out, _, rules = trained
    assert "wrong: sign" in out
    assert {rule["line"] for rule in rules if rule["name"] == "Sine"} == {23}


def test_calls_are_told_apart_by_shape_dtype_and_statics(trained):
    *_, rules = trained
    signatures = {(rule["name"], rule["signature"]) for rule in rules}
    assert {("Sine", "float32[5]"), ("Sine", "float32[3]"), ("Power", "bfloat16[2]")} <= signatures
    assert len([rule for rule in rules if rule["name"] == "mylib::tripled"]) == 2


def test_the_program_prints_the_same(project, trained):
    plain = project.python("train.py")
    assert plain.endswith("[]\n")  # neither TensorFlow nor JAX was imported
    assert trained[1].startswith(plain)
