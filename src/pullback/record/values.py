"""Making up values where only a shape and a dtype are known, or nothing but a name.

Framework-free. The order of the attempts is the order of likelihood; the first with which the call works and
gives finite numbers is taken.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

import numpy as np

from pullback.dtypes import kind, of_numpy
from pullback.record.sample import Sample, Spec
from pullback.rule import shown_signature
from pullback.view.native import Given

LENGTH = 3  # of an axis whose length nobody knows: one number, so that such axes fit each other
LABELS = {"labels", "label", "indices", "index", "ids", "idx", "segment_ids", "targets"}


def filled(sample: Sample, rng: np.random.Generator) -> Iterator[Sample]:
    """Give the sample with values in place of its specs: of any sign, then positive, then between 0 and 1."""
    for sign in ("normal", "positive", "unit"):
        leaves = [_value(leaf, rng, sign) if isinstance(leaf, Spec) else leaf for leaf in sample.leaves]
        yield replace(sample, leaves=leaves)


def like_data(sample: Sample, rng: np.random.Generator) -> Iterator[Sample]:
    """Give the sample with values of the kinds that data has where no gradient is asked: labels, masks."""
    for sign in ("simplex", "mask") if sample.still else ():
        leaves = [
            _value(leaf, rng, sign if i in sample.still else "normal") if isinstance(leaf, Spec) else leaf
            for i, leaf in enumerate(sample.leaves)
        ]
        yield replace(sample, leaves=leaves)


def _value(spec: Spec, rng: np.random.Generator, sign: str) -> np.ndarray[Any, Any]:
    shape = (LENGTH,) if spec.shape is None else tuple(LENGTH if n is None else n for n in spec.shape)
    if spec.dtype == "bool":
        return rng.random(shape) < 0.5
    dtype = of_numpy(spec.dtype)
    if dtype is None:
        raise TypeError(f"NumPy has no dtype {spec.dtype}")
    if kind(spec.dtype) == "integer":
        return rng.integers(0, 2, shape).astype(dtype)
    drawn = {
        "normal": rng.normal(size=shape),
        "positive": 0.5 + rng.random(shape),
        "unit": rng.uniform(0.1, 0.9, shape),
        "simplex": rng.dirichlet(np.ones(shape[-1]), shape[:-1]) if shape else rng.random(),
        "mask": np.resize([1.0, 0.0, 1.0], shape),
    }[sign]
    if kind(spec.dtype) == "complex":
        return np.asarray(drawn + 1j * rng.normal(size=shape), dtype)
    return np.asarray(drawn, dtype)


def tried(
    function: Any, rng: np.random.Generator, signature: inspect.Signature | None = None
) -> Iterator[Given]:
    """Give arguments to try: from annotations where there are any, then of the usual kinds."""
    known = signature or shown_signature(function)
    parameters = list(known.parameters.values()) if known else []
    needed = [
        p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    dims: dict[str, int] = {}
    told = {p.name: _told(p.annotation, rng, dims) for p in needed}
    free = [p for p in needed if told[p.name] is None]
    counts = (
        [len(free)]
        if parameters and (needed or not any(p.kind is p.VAR_POSITIONAL for p in parameters))
        else [1, 2, 3]
    )
    for count in counts:
        names = [p.name for p in free] if len(free) == count else [f"argument {i}" for i in range(count)]
        for dtype in ("float32", "float64"):
            for made in _combinations(names, rng, dtype):
                given = {**told, **dict(zip(names, made))}
                kwargs = {p.name: given[p.name] for p in needed if p.kind is p.KEYWORD_ONLY}
                positional = [p.name for p in needed if p.kind is not p.KEYWORD_ONLY] if needed else names
                yield tuple(given[name] for name in positional), kwargs


def _combinations(names: list[str], rng: np.random.Generator, dtype: str) -> Iterator[tuple[Any, ...]]:
    def normal(*shape: int) -> Any:
        return rng.normal(size=shape).astype(dtype)

    def labels(*shape: int) -> Any:
        return rng.integers(0, 3, shape).astype("int32")

    count = len(names)
    if count == 0:
        yield ()
        return
    marked = [name.lower() in LABELS for name in names]
    if any(marked) and not all(marked):
        for shape in ((3,), (3, 4)):
            yield tuple(labels(3) if m else normal(*shape) for m in marked)
    for sizes in ((3,), (3, 4), (3, 3), (), (2, 5, 5, 3)):
        yield tuple(normal(*sizes) for _ in names)
    yield tuple((0.5 + rng.random((3,))).astype(dtype) for _ in names)
    square = normal(3, 3)
    yield tuple((square @ square.T + 3 * np.eye(3)).astype(dtype) for _ in names)
    if count == 2:
        yield normal(3, 4), normal(4, 2)
        yield normal(3, 4), normal(4)
        yield normal(3, 3), normal(3)
        for shape in ((3, 4), (3,)):
            yield normal(*shape), labels(3)
            yield labels(3), normal(*shape)
    if count == 3:
        yield normal(3, 4), normal(4, 2), normal(2)
        yield normal(3, 4), normal(4), normal(4)
    for numbers in itertools.product((2, 0.5), repeat=max(count - 1, 0)) if count > 1 else ():
        yield (normal(3), *numbers)


def _told(annotation: Any, rng: np.random.Generator, dims: dict[str, int]) -> Any:
    """Read a value off an annotation, or None: a number type, a Literal, a TensorSpec, a jaxtyping shape."""
    simple = {int: 2, float: 0.5, bool: True, "int": 2, "float": 0.5, "bool": True}
    if isinstance(annotation, (type, str)) and annotation in simple:
        return simple[annotation]
    if get_origin(annotation) is Literal:
        return get_args(annotation)[0]
    axes = getattr(annotation, "dim_str", None)
    if isinstance(axes, str):  # jaxtyping
        shape = tuple(
            int(a) if a.isdigit() else dims.setdefault(a, 3 + len(dims)) for a in axes.split() if a != "..."
        )
        kinds = tuple(getattr(annotation, "dtypes", ())) or ("float32",)
        dtype = "float32" if "float32" in kinds else "int32" if "int32" in kinds else str(kinds[0])
        return _value(Spec(shape, dtype), rng, "normal")
    shape_of: Any = getattr(annotation, "shape", None)
    dtype_of: Any = getattr(annotation, "dtype", None)
    if isinstance(shape_of, tuple) and hasattr(dtype_of, "name"):  # a jax.ShapeDtypeStruct
        return _value(Spec(shape_of, dtype_of.name), rng, "normal")
    if hasattr(shape_of, "as_list") and hasattr(dtype_of, "name"):  # a TensorSpec
        known = None if shape_of.rank is None else tuple(shape_of.as_list())
        return _value(Spec(known, dtype_of.name), rng, "normal")
    return None
