"""The kernel for GPUs in PyTorch, interpreted on a processor: what it gives is what the plain way gives.

Triton and TensorFlow cannot stand in one process: `nox -s kernels` runs this where PyTorch is alone with it.
"""

import itertools

import pytest
import torch

from pullback.ops.linear import torch as kernels
from pullback.ops.linear import triton
from pullback.ops.linear.accumulated import loss_and_slopes

OPTIONS = {
    "plain": {"cap": None, "smoothing": 0.0, "z_loss": 0.0},
    "all": {"cap": 2.0, "smoothing": 0.1, "z_loss": 0.01},
    "smoothing": {"cap": None, "smoothing": 0.2, "z_loss": 0.0},
    "z-loss": {"cap": None, "smoothing": 0.0, "z_loss": 0.3},
}
DIGITS = {torch.float32: 2e-6, torch.bfloat16: 4e-3}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(
    ("shape", "dtype"), list(itertools.product([(5, 23), (3, 1), (2, 16384 + 9)], DIGITS)), ids=str
)
def test_the_kernel_gives_loss_and_slopes_of_each_row(shape, dtype, options):
    draw = torch.Generator().manual_seed(11)
    z = (3 * torch.randn(shape, generator=draw)).to(dtype)
    labels = torch.randint(0, shape[1], shape[:1], generator=draw)
    expected, (g,), scale, _ = loss_and_slopes(kernels, [z.clone()], labels, [0], **options)
    g = g if scale is None else g / scale[:, None]
    losses, slopes = triton.loss_and_slopes(z, labels, **options)
    assert slopes is z  # written over the logits
    torch.testing.assert_close(losses, expected, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(slopes.float(), g.float(), rtol=2 * DIGITS[dtype], atol=DIGITS[dtype])


def test_classes_that_are_out_and_labels_outside_have_the_loss_of_the_plain_way():
    z = torch.tensor([[0.5, -torch.inf, 1.0], [0.5, -torch.inf, 1.0], [1.0, 2.0, 3.0]])
    losses, slopes = triton.loss_and_slopes(z, torch.tensor([2, 1, 7]), **OPTIONS["plain"])
    torch.testing.assert_close(losses[0], torch.log1p(torch.tensor(-0.5).exp()))
    assert losses[1] == torch.inf
    assert slopes[0, 1] == 0
    assert abs(slopes[0].sum()) < 1e-6
    assert losses[2].isfinite()
