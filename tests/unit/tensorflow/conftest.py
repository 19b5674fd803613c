"""Take gradients on TensorFlow in each of its surroundings."""

from tapes import clean_scope, pull, wrap  # noqa: F401 (fixtures)
