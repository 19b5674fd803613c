"""Generated rules in any number, or a part of them, on one host; each fault is said as soon as it is found.

A crash costs its rule and no other; a check that does not return ends the run, with the line where it stands.

    python tests/generated/many.py [HOST] [--first 0] [--last 2000] [--wider]
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import time
import traceback
from collections import Counter

from generator import generated
from hosts import HOSTS, mistake
from wider import wider

HANGS = 1800  # seconds of the clock for one rule: far beyond its budget of CPU time, on a busy machine too


def main():
    """Check the rules, and count what was said of them; fail where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("host", nargs="?", default="PyTorch", choices=tuple(HOSTS))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=2000, help="the first one that is left out")
    parser.add_argument("--wider", action="store_true", help="rules of further shapes")
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("JAX_ENABLE_X64", "1")  # half of the rules are in float64
    made = wider if given.wider else generated
    seen, faults, slowest, start = Counter(), 0, (0.0, 0), time.process_time()
    for seed in range(given.first, given.last):
        faulthandler.dump_traceback_later(HANGS, exit=True)
        before = time.process_time()
        try:
            said = mistake(seed, given.host, made=made, seen=seen)
        except Exception as error:
            said = f"{seed}: a crash: {''.join(traceback.format_exception(error))}"
        slowest = max(slowest, (time.process_time() - before, seed))
        if said:
            faults += 1
            print(said, flush=True)
        if seed % 50 == 49:
            print(f"{seed + 1 - given.first} rules, {time.process_time() - start:.0f} s", flush=True)
    faulthandler.cancel_dump_traceback_later()
    counts = ", ".join(f"{truth} called {verdict} {n}" for (truth, verdict), n in sorted(seen.items()))
    print(f"\n| {given.host} | {given.last - given.first} rules | {faults} faults | {counts} | ", end="")
    print(f"slowest {slowest[1]}: {slowest[0]:.1f} s |")
    return int(faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())
