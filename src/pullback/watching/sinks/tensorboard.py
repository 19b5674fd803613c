"""A log in TensorBoard: sizes and counts as scalars, the decades as a histogram of log₁₀ of the sizes.

It is written by the framework that the program has: `tf.summary`, or `torch.utils.tensorboard`.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pullback.errors import HostError
from pullback.watching.record import BINS, LOWEST, Record

WRITERS = ("tensorflow", "torch")  # the first that the program has imported
_SCALARS = ("norm", "rms", "min", "max", "nan", "inf", "zero")
_EDGES = [float(LOWEST - 1 + i) for i in range(BINS + 1)]


class TensorBoard:
    """Write records into a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = str(folder)
        if importlib.util.find_spec("tensorboard") is None:
            raise HostError.about(
                "watch",
                found=f"to={self._folder!r}, and TensorBoard is not installed",
                expected="what its files are written with",
                fix="pip install tensorboard",
            )
        self._writer: Any = None

    def write(self, records: Sequence[Record]) -> None:
        """Write what is new."""
        if not records:
            return
        if self._writer is None:
            self._writer = _writer(self._folder)
        for record in records:
            for field in _SCALARS:
                value = float(getattr(record, field))
                if math.isfinite(value):
                    self._writer.scalar(f"{field}/{record.name}", value, record.step)
            self._writer.histogram(f"sizes/{record.name}", record.decades, record.step)
        self._writer.native.flush()

    def close(self) -> None:
        """Close the files."""
        if self._writer is not None:
            self._writer.native.close()


def _writer(folder: str) -> Any:
    for name in WRITERS:
        if name in sys.modules:
            return _TensorFlow(folder) if name == "tensorflow" else _Torch(folder)
    raise HostError.about(
        "watch",
        found=f"to={folder!r}, and neither TensorFlow nor PyTorch is imported",
        expected="a framework that writes for TensorBoard",
        fix='to="gradients.jsonl"',
    )


class _TensorFlow:
    def __init__(self, folder: str) -> None:
        import tensorflow as tf

        self._tf = tf
        self.native = tf.summary.create_file_writer(folder)

    def scalar(self, tag: str, value: float, step: int) -> None:
        with self._tf.init_scope(), self.native.as_default(step=step):
            self._tf.summary.scalar(tag, value)

    def histogram(self, tag: str, counts: Sequence[int], step: int) -> None:
        from tensorboard.plugins.histogram import metadata

        rows = [[left, right, float(n)] for left, right, n in zip(_EDGES, _EDGES[1:], counts)]
        about = metadata.create_summary_metadata(display_name=None, description=None)
        with self._tf.init_scope(), self.native.as_default(step=step):
            self._tf.summary.write(tag, self._tf.constant(rows, self._tf.float64), metadata=about)


class _Torch:
    def __init__(self, folder: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.native: Any = SummaryWriter(folder)

    def scalar(self, tag: str, value: float, step: int) -> None:
        self.native.add_scalar(tag, value, step)

    def histogram(self, tag: str, counts: Sequence[int], step: int) -> None:
        middles = [edge + 0.5 for edge in _EDGES[:-1]]
        self.native.add_histogram_raw(
            tag,
            min=_EDGES[0],
            max=_EDGES[-1],
            num=sum(counts),
            sum=sum(m * n for m, n in zip(middles, counts)),
            sum_squares=sum(m * m * n for m, n in zip(middles, counts)),
            bucket_limits=_EDGES[1:],
            bucket_counts=list(counts),
            global_step=step,
        )
