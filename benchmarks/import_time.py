"""What `import pullback` adds to importing NumPy, each import in a fresh process."""

from __future__ import annotations

import subprocess
import sys

from side_by_side import judge

CODE = "import numpy, time; start = time.perf_counter(); import pullback; print(time.perf_counter() - start)"

if __name__ == "__main__":
    times = []
    for _ in range(15):
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
        times.append(float(done.stdout) * 1e3)
    print(f"import pullback after NumPy: {min(times):.1f} ms at best, {sorted(times)[7]:.1f} ms in the middle")
    judge([("milliseconds / 60", sorted(times)[7] / 60, 1.0)])
