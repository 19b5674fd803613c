"""The gradient of a rule that reduces or solves is right to 4 roundoffs of the sum of its terms."""

import numpy as np
import pytest
from asked import ASK, DTYPES
from exact_rows import BOUND, MATRICES, ROWS


@pytest.mark.parametrize("host", ASK)
@pytest.mark.parametrize("name", [*ROWS, *MATRICES])
def test_the_gradient_is_right_to_four_roundoffs_of_its_terms(name, host):
    case = (ROWS | MATRICES)[name]
    for dtype in DTYPES:
        _, found = ASK[host](case.rule, case.points(dtype), [case.cotangent(dtype)])
        worst = [float(np.max(error)) for error in case.errors(dtype, found)]
        assert max(worst) <= BOUND, (dtype, worst)
