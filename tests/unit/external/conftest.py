"""Let tests, and the processes they start, find the functions that are simulated."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
