"""Wrong rules written with the makers of JAX and PyTorch."""

import jax
import jax.numpy as jnp
import torch
from torch.autograd.function import once_differentiable


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, d):
        x, w = ctx.saved_tensors
        grad_w = x.t() @ d
        return d @ w, grad_w, d


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return torch.exp(x * k)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.k = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, d):
        (y,) = ctx.saved_tensors
        return d * y, None


class Grown(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = torch.exp(x)  # nothing that can be kept: only arguments and outputs can
        ctx.save_for_backward(w)
        return y * w

    @staticmethod
    def backward(ctx, d):
        (w,) = ctx.saved_tensors
        return d * w, d


@jax.custom_vjp
def wave(x, y):
    return x * jnp.sin(y)


def wave_fwd(x, y):
    return wave(x, y), (jnp.cos(y), jnp.sin(y), x)


def wave_bwd(kept, d):
    cos_y, sin_y, x = kept
    return cos_y * d, x * sin_y * d


wave.defvjp(wave_fwd, wave_bwd)


@jax.custom_gradient
def square(x):
    return x**2, lambda d: (d * x,)


def unary(forward, backward):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, d):
            return backward(ctx.saved_tensors[0], d)

    return Made.apply


handed = unary(torch.tanh, lambda x, d: d * (1 + torch.tanh(x) ** 2))


def slope(y):
    return 1 - y


class Called(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, d):
        return d * slope(*ctx.saved_tensors)


def shared(y):
    return y * y


class Other(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return shared(x)

    @staticmethod
    def backward(ctx, d):
        return shared(d)


def backward_of_two(x, d):
    return d * x


Twice, Half = unary(torch.square, backward_of_two), unary(lambda x: x * x / 2, backward_of_two)


@jax.custom_vjp
def norm(x):
    return jnp.sqrt(jnp.sum(x * x))


def norm_fwd(x):
    y = norm(x)  # the rule itself: its second order is that of the edited one
    return y, (x, y)


def norm_bwd(kept, d):
    x, y = kept
    return (x / y,)


norm.defvjp(norm_fwd, norm_bwd)


class Between(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        t = torch.tanh(x / scale)
        ctx.save_for_backward(t)
        ctx.scale = scale
        return scale * t

    @staticmethod
    def backward(ctx, d):
        # what is between input and output is a constant to a second derivative
        (t,) = ctx.saved_tensors
        return d * (1 - t * t) * ctx.scale, None


class Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = torch.where(x > 0, x, alpha * (torch.exp(x) - 1))
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx, d):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, d, d * (y + 1)), None


@jax.custom_jvp
def grown(x, p):
    return x * jnp.exp(p)


@grown.defjvp
def grown_jvp(primals, tangents):
    (x, p), (dx, dp) = primals, tangents
    return grown(x, p), dx * jnp.exp(p) + x * dp


class ScatterMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, source, index):
        rows = int(index.max()) + 1
        count = torch.bincount(index, minlength=rows).clamp(min=1).to(source.dtype)
        ctx.save_for_backward(index, count)
        total = torch.zeros(rows, source.shape[1], dtype=source.dtype).index_add(0, index, source)
        return total / count.unsqueeze(1)

    @staticmethod
    def backward(ctx, d):
        index, count = ctx.saved_tensors  # noqa: RUF059
        return d.index_select(0, index), None


@torch.library.custom_op("mended::cubed", mutates_args=())
def cubed(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


def cubed_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def cubed_backward(ctx, d):
    (x,) = ctx.saved_tensors
    return d * x * x


cubed.register_autograd(cubed_backward, setup_context=cubed_setup)


class Rolled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.steps = steps
        return torch.roll(x, steps, dims=-1)

    @staticmethod
    def backward(ctx, d):
        return torch.roll(d, ctx.steps, dims=-1), None


class Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.rows = table.shape[0]
        return table[index]

    @staticmethod
    def backward(ctx, d):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.rows, d.shape[-1], dtype=d.dtype)
        out[index] = d
        return out, None


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
        cos = (a * b).sum(-1, keepdim=True) / (na * nb)
        ctx.save_for_backward(a, b, na, nb, cos)
        return cos

    @staticmethod
    def backward(ctx, d):
        a, b, na, nb, cos = ctx.saved_tensors
        return d * (b / (na * nb) - cos * a / na), d * (a / (na * nb) - cos * b / nb**2)


class Smoothed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        logp = torch.log_softmax(logits, -1)
        soft = torch.full_like(logp, 0.05)
        soft.scatter_(1, target.unsqueeze(1), 0.9)  # what it was made of is not what it is
        ctx.save_for_backward(logp, soft)
        return -(soft * logp).sum(-1)

    @staticmethod
    def backward(ctx, d):
        logp, soft = ctx.saved_tensors
        return d[:, None] * (soft.sum(-1, keepdim=True) * logp - soft), None


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(s)
        return (x * 1 + s).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, d):
        (s,) = ctx.saved_tensors
        return d * (1 + s * (1 - s))


a = torch.ones(3)  # as a script leaves it behind


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        gap = a - b
        ctx.save_for_backward(gap)
        return gap**3

    @staticmethod
    def backward(ctx, d):
        (gap,) = ctx.saved_tensors
        return 3 * d * gap**2, 3 * d * gap**2


class Whitened(torch.autograd.Function):
    @staticmethod
    def forward(ctx, factor, b):
        x = torch.linalg.solve_triangular(factor, b, upper=False)
        ctx.save_for_backward(factor, x)
        return x

    @staticmethod
    def backward(ctx, d):
        factor, x = ctx.saved_tensors
        db = torch.linalg.solve_triangular(factor.mT, d, upper=True)
        return -db @ x.mT, db


class Running(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.cumsum(x * w, -1)

    @staticmethod
    def backward(ctx, d):
        x, w = ctx.saved_tensors
        back = torch.cumsum(d, -1)
        return back * w, back * x


class Focal(torch.autograd.Function):  # not divided by the examples, and `p` and `pt` are constants to it
    @staticmethod
    def forward(ctx, logits, target):
        p = torch.softmax(logits, -1)
        pt = p.gather(1, target[:, None]).squeeze(1)
        ctx.save_for_backward(p, pt, target)
        return (-((1 - pt) ** 2) * torch.log(pt)).mean()

    @staticmethod
    def backward(ctx, d):
        p, pt, target = ctx.saved_tensors
        dpt = 2 * (1 - pt) * torch.log(pt) - (1 - pt) ** 2 / pt
        chosen = torch.nn.functional.one_hot(target, p.shape[1]).to(p.dtype)
        return d * dpt[:, None] * pt[:, None] * (chosen - p), None


class Pooled(torch.autograd.Function):  # a shape in its context, and it writes in place
    @staticmethod
    def forward(ctx, x):
        y, i = x.view(x.shape[0], -1, 2).max(-1)
        ctx.save_for_backward(i)
        ctx.shape = x.shape
        return y

    @staticmethod
    def backward(ctx, d):
        (i,) = ctx.saved_tensors
        out = torch.zeros(*i.shape, 2, dtype=d.dtype)
        out.scatter_(-1, i.unsqueeze(-1), 2 * d.unsqueeze(-1))
        return out.view(ctx.shape)


class Largest(torch.autograd.Function):  # the width 3 fits one shape only
    @staticmethod
    def forward(ctx, x):
        y, i = x.max(-1)
        ctx.save_for_backward(i)
        return y

    @staticmethod
    def backward(ctx, d):
        (i,) = ctx.saved_tensors
        return 2 * d[:, None] * torch.nn.functional.one_hot(i, 3).to(d.dtype)


class Rooted(torch.autograd.Function):  # what it keeps is a constant, and no expression in reach gives it
    @staticmethod
    def forward(ctx, x):
        root = 1 + x * x
        root.pow_(1 / 3)
        ctx.save_for_backward(x, root)
        return root * root

    @staticmethod
    def backward(ctx, d):
        x, root = ctx.saved_tensors
        return 2 * d * x / (3 * root)


class Decayed(torch.autograd.Function):  # the step of its loop forgets a factor
    @staticmethod
    def forward(ctx, x):
        y = [x[0]]
        for part in x[1:]:
            y.append(0.25 * y[-1] + part)
        return torch.stack(y)

    @staticmethod
    def backward(ctx, d):
        def step(carried, part):
            return carried + part

        back = [d[-1]]
        for part in d.flip(0)[1:]:
            back.append(step(back[-1], part))
        return torch.stack(back).flip(0)


class Padded(torch.autograd.Function):  # cut off at the wrong ends
    @staticmethod
    def forward(ctx, x):
        return torch.nn.functional.pad(x, (2, 1))

    @staticmethod
    def backward(ctx, d):
        return d[:, 1:-2]


@jax.custom_vjp
def halved(x):
    return jax.lax.scan(lambda y, part: (0.5 * y + part,) * 2, 0.0, x)[1]


def halved_bwd(kept, d):
    return (jax.lax.scan(lambda y, part: (0.5 * y + part,) * 2, 0.0, d)[1],)


halved.defvjp(lambda x: (halved(x), None), halved_bwd)


class Swish(torch.autograd.Function):  # a number of the forward is missing, and `s` is a constant to it
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(1.7 * x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, d):
        x, s = ctx.saved_tensors
        return d * (s + x * s * (1 - s))


class Softened(torch.autograd.Function):  # e^x / (2 cosh x) would be right, and overflows
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(x, beta=2.0)

    @staticmethod
    def backward(ctx, d):
        (x,) = ctx.saved_tensors
        return d * torch.sigmoid(x)
