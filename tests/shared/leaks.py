"""Whether a process gains memory by what it does again and again."""

import os

ROUNDS = 4


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def gain(run, limit):
    """Give the least number of bytes that a round of work adds; the first one below the limit is enough.

    What leaks does so in every round. An allocator that asks the system for more, or a rest of another test,
    adds to one.
    """
    gained = []
    while len(gained) < ROUNDS and (not gained or gained[-1] >= limit):
        before = resident_bytes()
        run()
        gained.append(resident_bytes() - before)
    return min(gained)
