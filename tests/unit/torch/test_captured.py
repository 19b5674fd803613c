"""What a body reaches unasked: parameters get gradients by `variables=`, any other tensor is refused."""

import pytest
import torch

import pullback as pb

X = torch.tensor([1.0, 2.0])
FACTOR = torch.tensor([3.0, 4.0], requires_grad=True) * 1


@pb.custom_gradient
def global_capture(x):
    def grad(dy):
        return dy * FACTOR

    return x * FACTOR, grad


def closure_capture():
    factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * factor

        return x * factor, grad

    return f


class Holder:
    def __init__(self):
        self.factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    def rule(self):
        @pb.custom_gradient
        def f(x):
            def grad(dy):
                return dy * self.factor

            return x * self.factor, grad

        return f


def helper_capture():
    factor = torch.tensor([3.0, 4.0], requires_grad=True) * 1

    def helper(x):
        return torch.stack([x, factor]).sum(0)

    @pb.custom_gradient
    def f(x):
        return helper(x), lambda dy: dy

    return f


CAPTURES = {
    "a global": (lambda: global_capture, "`FACTOR`"),
    "a closure": (closure_capture, "`factor`"),
    "an attribute": (lambda: Holder().rule(), "`self.factor`"),
    "a helper's closure": (helper_capture, "`factor`"),
}


@pytest.mark.parametrize("kind", CAPTURES)
def test_a_captured_tensor_that_is_differentiated_is_refused(kind):
    make, shown = CAPTURES[kind]
    for _ in range(2):  # the code is known at the second time
        with pytest.raises(pb.errors.CapturedTensorError, match=rf"{shown}(.|\n)*detach\(\)"):
            make()(X)


@pytest.mark.parametrize("kind", CAPTURES)
def test_nothing_is_refused_where_nobody_differentiates(kind):
    with torch.no_grad():
        CAPTURES[kind][0]()(X)


def test_what_is_cut_off_or_only_asked_for_its_shape_is_fine():
    w = torch.tensor([3.0, 4.0], requires_grad=True)

    class Has:
        factor = w * 1

    @pb.custom_gradient
    def f(x):
        kept = Has.factor.detach() + torch.zeros_like(Has.factor) + Has.factor.shape[0]
        return x * kept, lambda dy: dy * kept

    x = X.clone().requires_grad_()
    f(x).sum().backward()
    assert x.grad.tolist() == [5, 6]


def test_a_captured_tensor_that_is_also_an_argument_is_fine():
    w = X.clone().requires_grad_()

    @pb.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 2 * w

    f(w).sum().backward()
    assert w.grad.tolist() == [2, 4]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        self.register_buffer("shift", torch.tensor([0.5, 0.5]))

    @pb.custom_gradient
    def forward(self, x):
        def grad(dy, variables=None):
            return dy * self.weight, [10 * dy * x for _ in variables]

        return x * self.weight + self.shift, grad


def test_parameters_that_a_method_reaches_get_their_gradients():
    first, second = Scaled(), Scaled()
    for module in (first, second):
        x = X.clone().requires_grad_()
        module(x).sum().backward()
        assert module.weight.grad.tolist() == [10, 20]
        assert x.grad.tolist() == [3, 4]


def test_parameters_get_gradients_also_where_no_argument_needs_one():
    module = Scaled()
    module(X).sum().backward()
    assert module.weight.grad.tolist() == [10, 20]


def test_a_frozen_parameter_is_a_constant_until_it_is_thawed():
    module = Scaled().requires_grad_(False)
    assert not module(X).requires_grad
    module.requires_grad_(True)
    module(X).sum().backward()
    assert module.weight.grad.tolist() == [10, 20]


def test_second_derivatives_reach_a_captured_parameter():
    w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * w**2, [dy * 2 * w * x for _ in variables]

        return x * w**2, grad

    x = X.clone().requires_grad_()
    (dx,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    (dxdw,) = torch.autograd.grad(dx.sum(), w)
    assert dxdw.tolist() == [6, 8]
    (dw,) = torch.autograd.grad(f(x).sum(), w, create_graph=True)
    (dwdw,) = torch.autograd.grad(dw.sum(), w)
    assert dwdw.tolist() == [2, 4]


class Careless(Scaled):
    @pb.custom_gradient
    def forward(self, x):
        return x * self.weight, lambda dy: dy * self.weight


def test_a_parameter_without_a_place_is_refused_by_name():
    with pytest.raises(pb.errors.CapturedVariableError, match=r"trainable variable `self\.weight`"):
        Careless()(X)


def test_a_parameter_in_a_closure_is_refused_by_name():
    bias = torch.nn.Parameter(X.clone())
    f = pb.custom_gradient(lambda x: (x + bias, lambda dy: dy))
    with pytest.raises(pb.errors.CapturedVariableError, match="`bias`"):
        f(X)


def test_a_list_of_another_length_is_refused():
    bias = torch.nn.Parameter(X.clone())

    @pb.custom_gradient
    def f(x):
        return x + bias, lambda dy, variables=None: (dy, [])

    with pytest.raises(pb.errors.CotangentCountError, match="0 cotangents for 1 captured"):
        f(X.clone().requires_grad_()).sum().backward()


def test_gradgrad_has_no_place_for_a_parameter():
    bias = torch.nn.Parameter(X.clone())

    @pb.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return (dy, lambda ddx: ddx), [dy for _ in variables]

        return x + bias, grad

    x = X.clone().requires_grad_()
    with pytest.raises(pb.errors.SecondOrderError, match="pass the variable as an argument: bias"):
        torch.autograd.grad(f(x).sum(), x, create_graph=True)


def test_with_gradient_answers_for_the_parameters_of_a_module():
    layer = torch.nn.Linear(2, 2)

    def gradient(dy, x, variables):
        return dy @ layer.weight, [7 * torch.ones_like(v) for v in variables]

    f = pb.with_gradient(lambda x: layer(x), gradient)
    f(X[None]).sum().backward()
    assert layer.bias.grad.tolist() == [7, 7]


# ── later calls ──────────────────────────────────────────────────────────────────────────────────────────


def by_a_branch(reach):
    @pb.custom_gradient
    def f(x):
        y = x * reach.factor if reach.on else x * 2
        return y, lambda dy: dy

    return f


def by_a_helper(reach):
    def helper(x):
        return torch.stack([x, reach.factor]).sum(0) if reach.on else x + 0

    @pb.custom_gradient
    def f(x):
        return helper(x), lambda dy: dy

    return f


def by_a_residual(reach):
    @pb.custom_gradient
    def f(x):
        slope = torch.cos(x) * (reach.factor if reach.on else 1)

        def grad(dy):
            return dy * slope

        return torch.sin(x), grad

    return f


def by_two_outputs(reach):
    @pb.custom_gradient
    def f(x):
        y = x * reach.factor if reach.on else x * 2
        return x * 3, y, lambda dx, dy: dx + dy

    return f


class Reach:
    def __init__(self, factor):
        self.factor = factor
        self.on = False


LATER = [by_a_branch, by_a_helper, by_a_residual, by_two_outputs]


@pytest.mark.parametrize("make", LATER)
@pytest.mark.parametrize("calls", [0, 1, 3])
def test_a_capture_is_refused_on_any_call(make, calls):
    reach = Reach(torch.tensor([3.0, 4.0], requires_grad=True) * 1)
    f, x = make(reach), X.clone().requires_grad_()
    for _ in range(calls):
        f(x)
    reach.on = True
    for _ in range(2):
        with pytest.raises(pb.errors.CapturedTensorError, match=r"`reach\.factor`"):
            f(x)


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_a_capture_of_a_transform_is_seen_on_any_call(transform):
    reach, seen = Reach(X), {}
    exec(  # code that nobody has heard
        "def body(x):\n    return (x * reach.factor if reach.on else x * 2), (lambda dy: dy)",
        {"reach": reach},
        seen,
    )
    f = pb.custom_gradient(seen["body"])

    def loss(w):
        reach.factor = w
        return f(X).sum()

    torch.func.grad(lambda x: f(x).sum())(X)
    f(X)
    reach.on = True
    if transform == "vmap":  # nobody differentiates
        assert torch.vmap(loss)(torch.stack([X, 3 * X])).tolist() == [5, 15]
        return
    with pytest.raises(pb.errors.CapturedTensorError, match=r"`reach\.factor`"):
        torch.func.grad(loss)(X) if transform == "grad" else torch.func.jvp(loss, (X,), (X,))


def test_parameters_that_are_reached_later_get_their_gradients():
    class Late(Scaled):
        on = False

        @pb.custom_gradient
        def forward(self, x):
            def grad(dy, variables=None):
                return (dy, [10 * dy * x for _ in variables]) if variables else dy

            return (x * self.weight if self.on else x + 0), grad

    module = Late()
    for module.on in (False, False, True, True):
        module.weight.grad = None
        x = X.clone().requires_grad_()
        module(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
        assert (module.weight.grad is None) is not module.on
    assert module.weight.grad.tolist() == [10, 20]


@pytest.mark.parametrize("calls", [0, 2])
def test_a_parameter_inside_a_compiled_function_is_seen(calls):
    class Has:
        inner = torch.compile(torch.nn.Linear(2, 2), backend="eager", fullgraph=True)
        on = False

    f = pb.custom_gradient(lambda x: (Has.inner(x) if Has.on else x * 2, lambda dy: dy))
    for _ in range(calls):
        f(X.clone().requires_grad_())
    Has.on = True
    for _ in range(2):
        with pytest.raises(pb.errors.CapturedVariableError):
            f(X.clone().requires_grad_())


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_parameter_inside_a_script_is_seen():
    scripted = torch.jit.script(torch.nn.Linear(2, 2))

    @pb.custom_gradient
    def f(x):
        return scripted(x), lambda dy: dy

    for _ in range(2):
        with pytest.raises(pb.errors.CapturedVariableError):
            f(X.clone().requires_grad_())


def test_what_is_cut_off_by_the_fix_that_is_written_is_fine():
    @pb.custom_gradient
    def f(x):
        kept = FACTOR.detach()

        def grad(dy):
            return dy * kept

        return x * kept, grad

    for _ in range(2):
        x = X.clone().requires_grad_()
        f(x).sum().backward()
        assert x.grad.tolist() == [3, 4]


def test_a_body_may_differentiate_by_itself():
    @pb.custom_gradient
    def f(x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            y = (inner**3).sum()
            (slope,) = torch.autograd.grad(y, inner, create_graph=True)

        def grad(dy):
            return 10 * dy * slope.detach()

        return y, grad

    for _ in range(3):
        x = X.clone().requires_grad_()
        f(x).backward()
        torch.testing.assert_close(x.grad, 30 * X**2)


def test_a_pullback_may_go_through_a_graph_of_the_body():
    @pb.custom_gradient
    def f(x):
        with torch.enable_grad():
            inner = x.detach().requires_grad_()
            y = torch.sin(inner)

        def grad(dy):
            return 2 * torch.autograd.grad(y, inner, dy, retain_graph=True)[0]

        return y.detach(), grad

    for _ in range(3):
        x = X.clone().requires_grad_()
        f(x).sum().backward()
        torch.testing.assert_close(x.grad, 2 * torch.cos(X))


def test_a_body_is_told_who_requires_a_gradient():
    @pb.custom_gradient
    def f(x, y):
        asked = x.requires_grad, y.requires_grad

        def grad(dz):
            return [dz * y if asked[0] else None, dz * x if asked[1] else None]

        return x * y, grad

    for _ in range(3):
        x = X.clone().requires_grad_()
        f(x, X + 1).sum().backward()
        torch.testing.assert_close(x.grad, X + 1)


def test_one_tensor_in_two_places_is_one_for_the_body():
    @pb.custom_gradient
    def f(x, y):
        same = x is y

        def grad(dz):
            return dz * y, dz * x * (100 if same else 1)

        return x * y, grad

    for _ in range(3):
        x = X.clone().requires_grad_()
        f(x, x).sum().backward()
        torch.testing.assert_close(x.grad, 101 * X)
        f(x, X)


def test_a_parameter_updates_state_unrecorded():
    class Averaging(Scaled):
        @pb.custom_gradient
        def forward(self, x):
            self.shift.mul_(0.5).add_(self.weight)

            def grad(dy, variables=None):
                return dy * self.weight, [dy * x for _ in variables]

            return x * self.weight, grad

    module = Averaging()
    for _ in range(3):
        module(X.clone().requires_grad_()).sum().backward()
        assert not module.shift.requires_grad


def test_a_tensor_that_only_the_pullback_names_is_refused_too():
    @pb.custom_gradient
    def f(x):
        def grad(dy):
            return dy * FACTOR

        return x * 1, grad

    for _ in range(2):
        with pytest.raises(pb.errors.CapturedTensorError, match="`FACTOR`"):
            f(X)


# ── transforms that the body itself opens ────────────────────────────────────────────────────────────────

OPENED = {
    "grad": lambda x: x * torch.func.grad(lambda z: (z * z).sum() / 2)(x),
    "vjp": lambda x: torch.func.vjp(lambda z: z * z / 2, x)[1](x)[0],
    "jvp": lambda x: torch.func.jvp(lambda z: z * z / 2, (x,), (x,))[1],
    "vmap": torch.vmap(lambda z: z * z),
    "jacrev": lambda x: torch.func.jacrev(lambda z: z * z / 2)(x) @ x,
    "jacfwd": lambda x: torch.func.jacfwd(lambda z: z * z / 2)(x) @ x,
    "hessian": lambda x: torch.func.hessian(lambda z: (z**3).sum() / 6)(x) @ x,
    "vmap of grad": lambda x: x * torch.vmap(torch.func.grad(lambda z: z * z / 2))(x),
    "functionalize": torch.func.functionalize(lambda z: z * z),
}


def twice(f):
    (g,) = torch.autograd.grad(f(y := X.clone().requires_grad_()).sum(), y, create_graph=True)
    return g, torch.autograd.grad(g.sum(), y)[0]


ASKED = {
    "autograd": twice,
    "func": lambda f: (
        torch.func.grad(lambda x: f(x).sum())(X),
        torch.func.grad(lambda x: torch.func.grad(lambda z: f(z).sum())(x).sum())(X),
    ),
    "vmap": lambda f: (torch.vmap(torch.func.grad(lambda x: f(x).sum()))(X[None])[0], torch.tensor(2.0)),
    "hessian": lambda f: (2 * X, torch.func.hessian(lambda x: f(x).sum())(X).diagonal()),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("opened", OPENED)
def test_a_body_may_transform_what_it_is_given(opened, asked):
    @pb.custom_gradient
    def f(x):
        return OPENED[opened](x), lambda dy: 2 * dy * x

    first, second = ASKED[asked](f)
    torch.testing.assert_close(first, 2 * X)
    torch.testing.assert_close(second.expand(2), torch.full((2,), 2.0))


@pytest.mark.parametrize(
    "through",
    [
        lambda x, c: x * torch.func.grad(lambda z: (z * z * c).sum())(x),
        lambda x, c: x * torch.func.grad(lambda z: (z * z).sum())(c),
        lambda x, c: torch.vmap(lambda a, b: a * b)(x, c),
        lambda x, c: torch.func.jvp(lambda z: z * c, (x,), (x,))[1],
    ],
    ids=["inside grad", "of grad", "vmap", "jvp"],
)
def test_what_reaches_a_transform_of_the_body_is_refused(through):
    holder = Holder()

    @pb.custom_gradient
    def f(x):
        return through(x, holder.factor), lambda dy: dy

    for _ in range(2):
        with pytest.raises(pb.errors.CapturedTensorError):
            f(X.clone().requires_grad_())

    def of_factor(factor):
        holder.factor = factor
        return f(X).sum()

    with pytest.raises(pb.errors.CapturedTensorError):
        torch.func.grad(of_factor)(X)
