"""The workloads of `engines.rs` in polars, on the file that `--file` of that bench keeps.

    POLARS_MAX_THREADS=1 python3 datafusion/benches/engines_polars.py t.parquet [TURNS]

prints the least and the median time of each query in ms. The table is in memory, and queries run on polars' streaming engine.
"""

import statistics
import sys
import time

import polars as pl


def normal(x):
    t = 1 / (1 + 0.2316419 * x.abs())
    tail = (-x * x / 2).exp() * 0.3989422804014327 * t * (
        0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    return pl.when(x < 0).then(tail).otherwise(1 - tail)


def scholes():
    s, k, y, v = pl.col("spot"), pl.col("strike"), pl.col("years"), pl.col("vol")
    t = v * y.sqrt()
    d1 = ((s / k).log() + (0.03 + v * v / 2) * y) / t
    return s * normal(d1) - k * (-0.03 * y).exp() * normal(d1 - t)


def workloads(table):
    a, b = pl.col("a"), pl.col("b")
    nir, red = pl.col("nir").cast(pl.Float32), pl.col("red").cast(pl.Float32)
    ten = (((((((a * 0.5 + b) * a) - b) * 0.25) + a) * b + 1) * a) - b
    yield "one op, f32", table.select((a + b).sum())
    yield "ten ops, f32", table.select(ten.sum())
    yield "black-scholes, f64", table.select(scholes().sum())
    yield "ndvi, casts", table.select(((nir - red) / (nir + red + 1)).sum())
    yield "filter and expression", table.filter(a * a + b * b < 0.5).select((a * b + 1).sum())
    yield "aggregate", table.select((a * b).sum())


def main():
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    for name, query in workloads(pl.read_parquet(sys.argv[1]).lazy()):
        times = []
        for _ in range(turns + 1):
            begin = time.perf_counter()
            query.collect(engine="streaming")
            times.append((time.perf_counter() - begin) * 1e3)
        times = sorted(times[1:])
        print(f"{name:24} polars {times[0]:8.2f} {statistics.median(times):8.2f}")


main()
