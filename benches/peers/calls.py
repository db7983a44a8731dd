"""What a call of the Python package takes: small calls beside one op of NumPy and of PyTorch, and where results are.

    python benches/peers/calls.py [--rounds 9]

Run by a Python that has castwise, NumPy and, for its rows, PyTorch. Contenders are timed in turns on one core, by
processor time; a figure is the least of all turns. Exits with 1 if an argument or a result was copied.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np

import castwise

#: Ten ops.
CHAIN = "a * 2 + b * b - a * b + a * 0.5 - b * 3 + a"


def taken(call, repeats=20_000):
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats * 1e9


def least(calls, rounds):
    """Nanoseconds of each call, in turns."""
    best = {name: taken(call, 1000) for name, call in calls.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], taken(call))
    return best


def shown(title, best, one, limit):
    print(f"\n{title}")
    for name, t in best.items():
        print(f"  {name:24} {t:7.0f} ns")
    print(f"  limit {limit(best[one]):.0f} ns, the chain of ten ops {best['chain']:.0f} ns")


def uncopied(f, a, b, out, address):
    """Whether results are where `out` is, and arguments are read where they are."""
    f(a, b, out=out)
    before = address(out)
    a[0], b[0] = 3, 5
    f(a, b, out=out)
    return address(out) == before and float(out[0]) == float(f(a, b)[0])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    chain, one = castwise.compile(CHAIN), castwise.compile("a + b")
    a, b, out = (np.ones(16, np.float32) for _ in range(3))
    calls = {
        "numpy.add": lambda: np.add(a, b),
        "chain": lambda: chain(a, b),
        "chain, out=": lambda: chain(a, b, out=out),
        "a + b": lambda: one(a, b),
    }
    shown("NumPy, 16 elements of f32", least(calls, given.rounds), "numpy.add", lambda t: t + 300)
    right = uncopied(chain, a, b, out, lambda x: x.__array_interface__["data"][0])
    try:
        import torch
    except ImportError:
        return int(not right)
    torch.set_num_threads(1)
    s, t, o = (torch.ones(16) for _ in range(3))
    compiled = torch.compile(lambda a, b: a * 2 + b * b - a * b + a * 0.5 - b * 3 + a, backend="castwise")
    with torch.no_grad():
        compiled(s, t)
        calls = {
            "torch.add": lambda: torch.add(s, t),
            "chain": lambda: chain(s, t),
            "chain, out=": lambda: chain(s, t, out=o),
            "chain, torch.compile": lambda: compiled(s, t),
        }
        shown("PyTorch, 16 elements of f32", least(calls, given.rounds), "torch.add", lambda t: 1.2 * t)
    right &= uncopied(chain, s, t, o, lambda x: x.data_ptr())
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
