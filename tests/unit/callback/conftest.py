"""Let the tests find the foreign functions by name, and take gradients on TensorFlow in its surroundings."""

import os
import sys

from tapes import clean_scope, pull, wrap  # noqa: F401 (fixtures)

sys.path.insert(0, os.path.dirname(__file__))
