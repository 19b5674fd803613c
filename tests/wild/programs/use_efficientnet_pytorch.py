"""The activation and one block of EfficientNet, trained a little."""

import torch
from efficientnet_pytorch.model import MBConvBlock
from efficientnet_pytorch.utils import BlockArgs, GlobalParams

torch.manual_seed(0)
shared = GlobalParams(
    width_coefficient=1.0, depth_coefficient=1.0, image_size=8, dropout_rate=0.0, num_classes=4,
    batch_norm_momentum=0.99, batch_norm_epsilon=1e-3, drop_connect_rate=0.0, depth_divisor=8,
    min_depth=None, include_top=True,
)  # fmt: skip
args = BlockArgs(
    num_repeat=1, kernel_size=3, stride=[1], expand_ratio=2, input_filters=4, output_filters=4,
    se_ratio=0.25, id_skip=True,
)  # fmt: skip
block = MBConvBlock(args, shared, image_size=(8, 8))
x = torch.randn(2, 4, 8, 8)
for _step in range(2):
    loss = block(x).square().mean()
    loss.backward()
print(loss.item())
