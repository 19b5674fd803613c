"""What the tests of mending share: a report of a wrong rule, and files that are read as modules."""

import importlib.util

from pullback.checker.finding import Report

# All that a search reads of a report are the points that failed; it finds others without them.
WRONG = Report("a rule", "wrong", (), None, "", {}, seed=1)


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
