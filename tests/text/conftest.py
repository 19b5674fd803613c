"""Start TensorFlow with the devices that other folders need: the broken rules have tensors of their own."""

import tapes  # noqa: F401
