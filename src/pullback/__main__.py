"""`python -m pullback`. Python puts the working folder first: what lies there is the script's, not ours."""

import sys

if not getattr(sys.flags, "safe_path", False):
    sys.path.pop(0)

from pullback.cli import main

main()
