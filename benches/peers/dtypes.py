"""Unsigned integers and 8-bit floats: the bench `workloads` in turns with NumPy, PyTorch and JAX.

README.md says how to install the peers and what is measured. Prints a table for each number of threads and the
geometric mean; with --results also appends every row as a line of JSON.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Peer -> the folder of its environment.
PEERS = {"castwise-python": "torch", "numpy": "jax", "torch": "torch", "torch.compile": "torch", "jax": "jax", "copy": "jax"}
# What is no other library.
OWN = ("castwise-python", "copy")
SIZES = {"cast_u16_f32": [1080 * 1920 * 3], "cast_f8_bf16": [1 << 24], "chain_u32": [1 << 16, 1 << 20, 1 << 24]}
SMALL = {"cast_u16_f32": [11520], "cast_f8_bf16": [4096], "chain_u32": [4096]}
# Bytes read and written per element, without the image's means and deviations.
BYTES = {"cast_u16_f32": 6, "cast_f8_bf16": 3, "chain_u32": 16}


# ---- A peer's process -----------------------------------------------------------------------------------------------


def inputs(workload, n):
    """The operands as NumPy arrays, and the exact result."""
    import ml_dtypes
    import numpy as np

    rng = np.random.default_rng(1)
    if workload == "cast_u16_f32":
        x = rng.integers(0, 10000, (n // 5760, 1920, 3), dtype=np.uint16)
        m, s = rng.uniform(0.4, 0.5, 3).astype(np.float32), rng.uniform(0.2, 0.3, 3).astype(np.float32)
        return [x, m, s], (x * 1e-4 - m.astype(np.float64)) / s
    if workload == "cast_f8_bf16":
        x = rng.uniform(-448, 448, n).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
        return [x], x.astype(np.float32)
    a, b, c = (rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(3))
    return [a, b, c], np.maximum(a * b + c, a) ^ (a >> np.uint32(3))


def is_right(result, expected):
    import numpy as np

    if expected.dtype != np.float64:
        return result.shape == expected.shape and bool((result == expected).all())
    error = np.abs(result - expected) / np.maximum(np.abs(expected), np.abs(expected).mean())
    return result.shape == expected.shape and float(error.max()) < 2e-5


def numpy_calls(workload, args, threads):
    import ml_dtypes
    import numpy as np

    if workload == "cast_u16_f32":
        # Without the dtype of the factor, NumPy would compute in f64.
        (x, m, s), k, out = args, np.float32(1e-4), np.empty(args[0].shape, np.float32)
        into = lambda: np.divide(np.subtract(np.multiply(x, k, out=out), m, out=out), s, out=out)
        return {"fresh": lambda: (x * k - m) / s, "out": into}, lambda r: r
    if workload == "cast_f8_bf16":
        out = np.empty(args[0].shape, ml_dtypes.bfloat16)

        def into():
            np.copyto(out, args[0], casting="unsafe")
            return out

        return {"fresh": lambda: args[0].astype(ml_dtypes.bfloat16), "out": into}, lambda r: r.astype(np.float32)
    (a, b, c), three, out, other = args, np.uint32(3), np.empty_like(args[0]), np.empty_like(args[0])

    def into():
        np.maximum(np.add(np.multiply(a, b, out=out), c, out=out), a, out=out)
        return np.bitwise_xor(out, np.right_shift(a, three, out=other), out=out)

    return {"fresh": lambda: np.maximum(a * b + c, a) ^ (a >> three), "out": into}, lambda r: r


def castwise_calls(workload, args, threads):
    """The Python package on NumPy's arrays."""
    import ml_dtypes
    import numpy as np

    import castwise

    text, dtype = {
        "cast_u16_f32": ("(x * 1e-4 - m) / s", np.float32),
        "cast_f8_bf16": ("cast(x, bf16)", ml_dtypes.bfloat16),
        "chain_u32": ("maximum(a * b + c, a) ^ bitwise_right_shift(a, 3)", np.uint32),
    }[workload]
    # The factor of the image is an f32, as it is for PyTorch.
    rules = "torch" if workload == "cast_u16_f32" else None
    f = castwise.compile(text, rules=rules, executor=castwise.Executor(threads=threads))
    out = np.empty(args[0].shape, dtype)
    narrow = dtype == ml_dtypes.bfloat16
    calls = {"fresh": lambda: f(*args), "out": lambda: f(*args, out=out)}
    return calls, lambda r: r.astype(np.float32) if narrow else r


def torch_calls(workload, args, threads, compiled):
    import numpy as np
    import torch

    torch.set_num_threads(threads)
    if workload == "cast_f8_bf16":
        args = [torch.from_numpy(args[0].view(np.uint8)).clone().view(torch.float8_e4m3fn)]
        f, out = lambda x: x.to(torch.bfloat16), torch.empty(args[0].shape, dtype=torch.bfloat16)
        into = lambda x: out.copy_(x)
    elif workload == "cast_u16_f32":
        args = [torch.from_numpy(a).clone() for a in args]
        f, out = lambda x, m, s: (x * 1e-4 - m) / s, torch.empty(args[0].shape)
        into = lambda x, m, s: torch.mul(x, 1e-4, out=out).sub_(m).div_(s)
    else:
        args = [torch.from_numpy(a).clone() for a in args]
        f, out = lambda a, b, c: torch.maximum(a * b + c, a) ^ (a >> 3), torch.empty_like(args[0])
        into = lambda a, b, c: out.copy_(f(a, b, c))
    if compiled:
        g, h = torch.compile(f), torch.compile(lambda out, *xs: out.copy_(f(*xs)))
        calls = {"fresh": lambda: g(*args), "out": lambda: h(out, *args)}
    else:
        calls = {"fresh": lambda: f(*args), "out": lambda: into(*args)}
    return calls, lambda r: (r.float() if r.dtype == torch.bfloat16 else r).numpy()


def jax_calls(workload, args, threads):
    import jax
    import jax.numpy as jnp
    import numpy as np

    f, dtype = {
        "cast_u16_f32": (lambda x, m, s: (x * 1e-4 - m) / s, jnp.float32),
        "cast_f8_bf16": (lambda x: x.astype(jnp.bfloat16), jnp.bfloat16),
        "chain_u32": (lambda a, b, c: jnp.maximum(a * b + c, a) ^ (a >> 3), jnp.uint32),
    }[workload]
    shape, args = args[0].shape, [jnp.array(a) for a in args]
    g = jax.jit(f)
    # A donated buffer becomes the result.
    h = jax.jit(lambda out, *xs: f(*xs), donate_argnums=0, keep_unused=True)
    state = [jnp.zeros(shape, dtype)]

    def into():
        state[0] = h(state[0], *args).block_until_ready()
        return state[0]

    def values(r):
        return np.asarray(r).astype(np.float32) if dtype == jnp.bfloat16 else np.asarray(r)

    return {"fresh": lambda: g(*args).block_until_ready(), "out": into}, values


def copy_calls(workload, args, threads):
    """A copy of as many bytes as the workload reads and writes."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    half = args[0].size * BYTES[workload] // 2
    source, target = np.ones(half, np.uint8), np.empty(half, np.uint8)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads)))
    pool = ThreadPoolExecutor(threads)

    def one(part):
        np.copyto(part[1], part[0])

    into = (lambda: one(parts[0])) if threads == 1 else (lambda: list(pool.map(one, parts)))
    return {"out": into}, None


def measured(call, seconds):
    """The median time of a call, measured as the bench `workloads` does."""
    now = time.perf_counter
    start, warm = now(), 0
    while warm < 2 or (now() - start < seconds / 4 and warm < 5000):
        call()
        warm += 1
    inner = max(1, int(20e-6 / ((now() - start) / warm)))
    samples, start = [], now()
    while now() - start < seconds or len(samples) < 5:
        begin = now()
        for _ in range(inner):
            call()
        samples.append((now() - begin) / inner)
    return statistics.median(samples)


def peer_process(peer, threads, small):
    makers = {
        "castwise-python": castwise_calls,
        "numpy": numpy_calls,
        "torch": lambda *a: torch_calls(*a, compiled=False),
        "torch.compile": lambda *a: torch_calls(*a, compiled=True),
        "jax": jax_calls,
        "copy": copy_calls,
    }
    for workload, sizes in (SMALL if small else SIZES).items():
        for n in sizes:
            args, expected = inputs(workload, n)
            calls, values = makers[peer](workload, args, threads)
            for variant, call in calls.items():
                row = {"peer": peer, "workload": workload, "size": n, "threads": threads, "variant": variant}
                try:
                    row["ok"] = values is None or is_right(values(call()), expected)
                    row["median_s"] = measured(call, 0.02 if small else 0.3)
                except Exception as e:
                    row["unsupported"] = (str(e).strip().splitlines() or [type(e).__name__])[0]
                print(json.dumps(row), flush=True)


# ---- All peers in turns ---------------------------------------------------------------------------------------------


def environment(threads):
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    for name in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC"]:
        env[name] = str(threads)
    eigen = "true" if threads > 1 else "false"
    env["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={eigen} intra_op_parallelism_threads={threads}"
    return env


def rows_of(command, threads):
    # One thread stays on one core.
    pinned = ["taskset", "-c", "0"] if threads == 1 else []
    done = subprocess.run(pinned + command, cwd=ROOT, env=environment(threads), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: failed")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def turn(o, threads):
    small = ["--small"] if o.small else []
    only = "^(" + "|".join(SIZES) + ")$"
    bench = ["cargo", "bench", "--quiet", "--bench", "workloads", "--"]
    rows = rows_of(bench + ["--json", "--only", only, "--threads", str(threads)] + small, threads)
    for peer, folder in PEERS.items():
        if o.peers and peer not in o.peers.split(","):
            continue
        python = str(Path(o.venvs).resolve() / folder / "bin" / "python")
        rows += rows_of([python, __file__, "--peer", peer, "--threads", str(threads)] + small, threads)
    return rows


def best(rows, peer, threads, workload, n, variants):
    """GB/s by the faster of these variants, each the median of all turns."""
    times = {}
    for r in rows:
        if (r["peer"], r["threads"], r["workload"], r["size"]) == (peer, threads, workload, n):
            if r["variant"] in variants and "median_s" in r:
                times.setdefault(r["variant"], []).append(r["median_s"])
    each = [n * BYTES[workload] / statistics.median(t) / 1e9 for t in times.values()]
    return max(each, default=None)


def report(rows, small):
    ratios, own = [], []
    for threads in sorted({r["threads"] for r in rows}):
        peers = [p for p in PEERS if p not in OWN]
        heads = ["workload", "elements", "result", "castwise", "castwise-python", *peers, "castwise / best", "copy"]
        print(f"\nGB/s, {threads} thread(s):\n\n| " + " | ".join(heads) + " |")
        print("| --- | ---: | --- |" + " ---: |" * (len(heads) - 3))
        for workload, sizes in (SMALL if small else SIZES).items():
            for n in sizes:
                # A call into a given result is compared with calls of any kind.
                for result, ours, theirs in [("allocated", ["fresh"], ["fresh"]), ("given", ["out"], ["fresh", "out"])]:
                    of = lambda peer, variants: best(rows, peer, threads, workload, n, variants)
                    castwise, others = of("castwise", ours), [of(p, theirs) for p in peers]
                    python, known = of("castwise-python", ours), [x for x in others if x]
                    if python:
                        own.append((python / castwise, workload, n, result, threads))
                    if known:
                        ratios.append(castwise / max(known))
                    figures = [castwise, python, *others, ratios[-1] if known else None, of("copy", ["out"])]
                    texts = [f"{x:.2f}" if x else "–" for x in figures]
                    print(f"| {workload} | {n} | {result} | " + " | ".join(texts) + " |")
    summary("castwise / best", ratios)
    if own:
        print("Python / Rust: least {:.2f} ({}, {} elements, {}, {} thread(s))".format(*min(own)))
    refused = {f"{r['peer']}, {r['workload']}: {r['unsupported']}" for r in rows if "unsupported" in r}
    print("".join(f"\n{line}" for line in sorted(refused)))
    wrong = {f"{r['peer']}, {r['workload']}, {r['variant']}" for r in rows if r.get("ok") is False}
    if wrong:
        sys.exit("wrong results: " + "; ".join(sorted(wrong)))


def options(doc):
    """The options of all benches that run peers in turns."""
    p = argparse.ArgumentParser(description=doc)
    p.add_argument("--venvs", default="peers", help="the folder with the environments `torch` and `jax`")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--small", action="store_true", help="a smoke test, whose times mean nothing")
    p.add_argument("--results", help="a file to which the rows are appended")
    p.add_argument("--peer", help=argparse.SUPPRESS)
    p.add_argument("--threads", type=int, help="1 or 2; both if not given")
    return p


def turn_of(peers, script):
    """What runs a turn of a script: each peer in a process of its own, by the Python of its folder."""

    def turn(o, threads):
        made = []
        for peer, folder in peers.items():
            python = Path(o.venvs).resolve() / folder / "bin" / "python"
            if not python.exists():
                print(f"{peer} is left out: there is no {python}", file=sys.stderr)
                continue
            own = [str(python), str(Path(script).resolve()), "--peer", peer, "--threads", str(threads), "--only", o.only]
            made += rows_of(own + (["--small"] if o.small else []), threads)
        return made

    return turn


def in_turns(o, turn):
    """The rows of all turns, with one and with two threads."""
    rows = []
    for number in range(o.turns):
        for threads in [o.threads] if o.threads else [1, 2]:
            print(f"turn {number + 1}, {threads} thread(s)", file=sys.stderr)
            rows += turn(o, threads)
    if o.results:
        with open(o.results, "a") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
    return rows


def summary(what, ratios):
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\nGeometric mean of {what}: {mean:.2f}; least: {min(ratios):.2f}")


def main():
    p = options(__doc__)
    p.add_argument("--peers", default="", help="only these, with commas; `castwise-python` compares the package with the library")
    o = p.parse_args()
    if o.peer:
        return peer_process(o.peer, o.threads, o.small)
    report(in_turns(o, turn), o.small)


if __name__ == "__main__":
    main()
