"""Blocks of castwise beside blocks of NumPy and numexpr, in the same graphs of Dask.

    python benches/dask/blocks.py [--elements 20000000] [--block 1000000] [--threads 1,2] [--rounds 7]

Run by a Python that has castwise, dask[array], numexpr and NumPy. The data is generated before, and held as one array for each
block; a block of a result is dropped when it is made, so that writing it is measured and joining blocks is not. The
threads are Dask's: castwise and numexpr compute a block on one. Contenders are timed in turns; a figure is the median.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import time

import dask
import dask.array as da
import numexpr
import numpy as np

import castwise
import castwise.dask

CONTENDERS = ("castwise", "numpy", "numexpr")


def ndvi(nir, red):
    return (nir - red) / (nir + red)


def ten_ops(a, b):
    return ((a * 2 + b) * (a - b) + 0.5) * (a + 1.5) - b * b


def gauss(x):
    return np.exp(-(x * x) * 0.5) * 0.3989423


def clipped(a, b):
    return np.where(a > b, np.sqrt(a), a * b)


#: Name -> a function for NumPy, the expression for castwise and numexpr, and the dtypes of the arguments.
WORKLOADS = {
    "ndvi f32": (ndvi, "(nir - red) / (nir + red)", {"nir": "f4", "red": "f4"}),
    "ndvi u16": (
        lambda nir, red: ndvi(nir.astype("f4"), red.astype("f4")),
        "(cast(nir, f32) - red) / (cast(nir, f32) + red)",
        {"nir": "u2", "red": "u2"},
    ),
    "ten ops f32": (ten_ops, "((a * 2 + b) * (a - b) + 0.5) * (a + 1.5) - b * b", {"a": "f4", "b": "f4"}),
    "ten ops f64": (ten_ops, "((a * 2 + b) * (a - b) + 0.5) * (a + 1.5) - b * b", {"a": "f8", "b": "f8"}),
    "exp f32": (gauss, "exp(-(x * x) * 0.5) * 0.3989423", {"x": "f4"}),
    "where, sqrt f32": (clipped, "where(a > b, sqrt(a), a * b)", {"a": "f4", "b": "f4"}),
    "mean of ten ops f32": (
        lambda a, b: ten_ops(a, b).mean(),
        "mean(((a * 2 + b) * (a - b) + 0.5) * (a + 1.5) - b * b)",
        {"a": "f4", "b": "f4"},
    ),
}


def dropped(block):
    """Nothing of a block."""
    return np.zeros((1,), np.uint8)


def graphs(name, arrays):
    """The graph of each contender."""
    function, expression, _ = WORKLOADS[name]
    inner = expression.removeprefix("mean(").removesuffix(")") if expression.startswith("mean(") else expression
    text = inner.replace("cast(nir, f32)", "nir")
    # In numexpr a number with a point is a double, and makes the rest one.
    wide = any(x.dtype == "f8" for x in arrays.values())
    numbers = {} if wide else {f"c{i}": np.float32(n) for i, n in enumerate(sorted(set(re.findall(r"\d+\.\d+", text))))}
    for constant, n in numbers.items():
        text = re.sub(rf"\b{re.escape(str(n))}\b", constant, text)

    def by_numexpr(*blocks):
        return numexpr.evaluate(text, dict(zip(arrays, blocks)) | numbers, {})

    def by_numpy(*blocks):
        return ten_ops(*blocks) if inner is not expression else function(*blocks)

    ours = castwise.dask.apply(expression, *arrays.values())
    dtype = ours.dtype
    made = {
        "castwise": ours,
        "numpy": da.map_blocks(by_numpy, *arrays.values(), dtype=dtype, meta=np.empty(0, dtype)),
        # numexpr computes with u16 as i32 and divides in f64, so its blocks are converted before.
        "numexpr": da.map_blocks(
            by_numexpr,
            *(x.astype("f4") if x.dtype == "u2" else x for x in arrays.values()),
            dtype=dtype,
            meta=np.empty(0, dtype),
        ),
    }
    if inner is not expression:
        return {who: made[who] if who == "castwise" else made[who].mean() for who in made}
    return {who: x.map_blocks(dropped, dtype="u1", chunks=((1,) * x.numblocks[0],)) for who, x in made.items()}


def data(name, elements, block):
    rng = np.random.default_rng(1)
    made = {}
    for argument, dtype in WORKLOADS[name][2].items():
        draw = (
            (lambda n: rng.integers(1, 10000, n, dtype="u2"))
            if dtype == "u2"
            else (lambda n: rng.uniform(0.5, 2, n).astype(dtype))
        )
        blocks = [da.from_array(draw(min(block, elements - at)), chunks=-1) for at in range(0, elements, block)]
        made[argument] = da.concatenate(blocks)
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=20_000_000)
    parser.add_argument("--block", type=int, default=1_000_000)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    numexpr.set_num_threads(1)
    print(
        f"castwise {castwise.__version__}, NumPy {np.__version__}, numexpr {numexpr.__version__}, Dask {dask.__version__}"
    )
    for threads in map(int, asked.threads.split(",")):
        print(f"\n{asked.elements} elements in blocks of {asked.block}, {threads} threads of Dask, ms\n")
        print(
            f"| workload | {' | '.join(CONTENDERS)} | numpy / castwise | numexpr / castwise |\n| --- | ---: | ---: | ---: | ---: | ---: |"
        )
        ratios = {"numpy": [], "numexpr": []}
        options = {"scheduler": "synchronous"} if threads == 1 else {"scheduler": "threads", "num_workers": threads}
        for name in WORKLOADS:
            made = graphs(name, data(name, asked.elements, asked.block))
            times = {who: [] for who in CONTENDERS}
            for turn in range(asked.rounds + 1):
                for who in CONTENDERS:
                    begin = time.perf_counter()
                    made[who].compute(**options)
                    if turn:
                        times[who].append(1e3 * (time.perf_counter() - begin))
            ms = {who: statistics.median(times[who]) for who in CONTENDERS}
            for who in ratios:
                ratios[who].append(ms[who] / ms["castwise"])
            cells = [f"{ms[who]:.1f}" for who in CONTENDERS] + [f"{ratios[who][-1]:.2f}" for who in ratios]
            print(f"| {name} | {' | '.join(cells)} |")
        means = [f"{math.exp(statistics.fmean(map(math.log, all))):.2f}" for all in ratios.values()]
        print(f"| geometric mean | | | | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
