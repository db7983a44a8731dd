"""The backend castwise of torch.compile beside inductor and eager execution.

    python benches/peers/torch_backend.py [--threads 1,2] [--sizes 4096,4194304] [--adamw 16777216] [--rounds 7] [--processes 3] [--only REGEX]

Run by a Python that has PyTorch and castwise. A workload runs in processes of its own for each number of threads, and a figure is the median of
theirs: they differ (the normalization of 2^22 f32 by castwise, on two threads: 0.6 to 1.2 ms). In a process contenders are timed in turns, each
after a pause and a call that is not timed, and a figure is the median of all turns. The first call is that of a fresh function, after each compiler
has compiled another one. inductor needs g++, and its caches are off. Chains of f16 and bf16 are compared in both arithmetics: rounded after every op
as in eager execution (`emulate_precision_casts` of inductor), and computed in f32 (`rounding` of castwise).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

#: The backend and the options of each contender.
CONTENDERS = {
    "eager": ("eager", {}),
    "inductor": ("inductor", {}),
    "castwise": ("castwise", {}),
    "inductor, exact": ("inductor", {"emulate_precision_casts": True}),
    "castwise, relaxed": ("castwise", {"rounding": "relaxed"}),
}


def contenders(workload):
    """Those that differ for a workload."""
    return [c for c in CONTENDERS if "," not in c or "f16" in workload]


def workloads(torch):
    """Functions and makers of their arguments, by name."""

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))

    def normalize(x, m, r, w, b):
        return (x - m) * r * w + b

    def adamw(p, g, m, v):
        m.lerp_(g.to(m.dtype), 0.1)
        v.mul_(0.999).addcmul_(g.to(v.dtype), g.to(v.dtype), value=0.001)
        p.mul_(1 - 1e-5)
        p.addcdiv_(m.to(p.dtype), (v.sqrt() / 0.0547).add_(1e-8).to(p.dtype), value=-0.0037)

    def cross_entropy(x, top, total, y):
        return (torch.log(total) + top - x) * y

    def randn(*shape, dtype=torch.float32):
        return torch.randn(*shape).to(dtype)

    def normalized(dtype):
        def make(n):
            rows, columns = max(n // 256, 1), 256
            stats = (randn(rows, 1, dtype=dtype), randn(rows, 1, dtype=dtype))
            return (randn(rows, columns, dtype=dtype), *stats, randn(columns, dtype=dtype), randn(columns, dtype=dtype))

        return make

    def step(dtype):
        return lambda n: (randn(n, dtype=dtype), randn(n, dtype=dtype), randn(n), randn(n).square())

    def entropy(n):
        rows = n // 256
        return randn(rows, 256), randn(rows, 1), randn(rows, 1).exp(), randn(rows, 256)

    f16, bf16, f32 = torch.float16, torch.bfloat16, torch.float32
    return {
        "gelu bf16": (gelu, lambda n: (randn(n, dtype=bf16),)),
        "normalize f16": (normalize, normalized(f16)),
        "normalize bf16": (normalize, normalized(bf16)),
        "normalize f32": (normalize, normalized(f32)),
        "adamw f32": (adamw, step(f32)),
        "adamw bf16": (adamw, step(bf16)),
        "cross entropy f32": (cross_entropy, entropy),
    }


#: What calls are timed with; first calls take real time, because inductor's C++ compiler is another process.
clock = time.perf_counter


def timed(f, repeats, clock=time.perf_counter):
    start = clock()
    for _ in range(repeats):
        f()
    return (clock() - start) / repeats


def turns(calls, rounds):
    """The median time of each call, in turns."""
    once = {name: min(timed(f, 1, clock) for _ in range(3)) for name, f in calls.items()}
    repeats = {name: max(1, math.ceil(0.02 / t)) for name, t in once.items()}
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, f in calls.items():
            # The threads of OpenMP spin for milliseconds after a call; they would take a core from the next contender.
            time.sleep(0.05)
            f()
            taken[name].append(timed(f, repeats[name], clock))
    return {name: statistics.median(t) for name, t in taken.items()}


def compiled(torch, f, name, arguments):
    """A function that calls the compiled one, and the time of its first call."""
    backend, options = CONTENDERS[name]
    g = f if name == "eager" else torch.compile(f, backend=backend, options=options or None, dynamic=False)
    first = timed(lambda: g(*arguments), 1)
    return (lambda: g(*arguments)), first


def measure(workload, threads, sizes, rounds):
    import torch
    import torch._inductor.config

    import castwise.torch  # noqa: F401

    torch._inductor.config.force_disable_caches = True
    torch.set_num_threads(threads)
    f, make = workloads(torch)[workload]
    names = contenders(workload)
    for name in names[1:]:
        compiled(torch, lambda x: x * 3 - 1, name, (torch.ones(8),))
    with torch.no_grad():
        for n in sizes:
            arguments = make(n)
            calls, firsts = {}, {}
            for name in names:
                torch._dynamo.reset()
                own = tuple(a.clone() for a in arguments)
                calls[name], firsts[name] = compiled(torch, f, name, own)
            # A reset forgets what was compiled before it.
            torch._dynamo.reset()
            calls = {name: compiled(torch, renamed(f, name), name, tuple(a.clone() for a in arguments))[0] for name in names}
            print(json.dumps({"workload": workload, "threads": threads, "n": n, "first": firsts, "call": turns(calls, rounds)}), flush=True)


def printed(command, environment):
    """What a process tells of its workload, for each size."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(*command, "failed:", *done.stderr.strip().splitlines()[-1:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def medians(processes):
    """What processes tell, with the medians of their times.

    >>> list(medians([[{"n": 8, "call": {"eager": t}}] for t in (3.0, 1.0, 2.0)]))
    [{'n': 8, 'call': {'eager': 2.0}}]
    """
    for alike in zip(*processes):
        times = {key: [r[key] for r in alike] for key in ("first", "call") if key in alike[0]}
        yield {**alike[0], **{key: {name: statistics.median(t[name] for t in all) for name in all[0]} for key, all in times.items()}}


def arithmetics(times):
    """The pairs of contenders that compute alike, with the name of what they do."""
    if "castwise, relaxed" not in times:
        return [("", "inductor", "castwise")]
    return [(", rounded after every op", "inductor, exact", "castwise"), (", in f32", "inductor", "castwise, relaxed")]


def renamed(f, name):
    """The same function with code of its own, so that Dynamo keeps one entry for each backend."""
    import types

    return types.FunctionType(f.__code__.replace(co_name=name.replace(", ", "_")), f.__globals__, name, f.__defaults__, f.__closure__)


def adamw_fused(threads, n, rounds):
    import torch

    import castwise.torch  # noqa: F401

    torch.set_num_threads(threads)

    def optimizer(**options):
        p = torch.nn.Parameter(torch.randn(n))
        p.grad = torch.randn(n)
        return torch.optim.AdamW([p], lr=1e-3, **options)

    f, make = workloads(torch)["adamw f32"]
    arguments = make(n)
    step = torch.compile(f, backend="castwise", dynamic=False)
    with torch.no_grad():
        step(*arguments)
        fused = optimizer(fused=True)
        fused.step()
        calls = {"fused": fused.step, "castwise": lambda: step(*arguments)}
        print(json.dumps({"workload": "adamw, beside fused=True", "threads": threads, "n": n, "call": turns(calls, rounds)}), flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", default="1,2")
    options.add_argument("--sizes", default="4096,4194304")
    options.add_argument("--adamw", type=int, default=1 << 24)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--processes", type=int, default=3)
    options.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    options.add_argument("--cpu-time", action="store_true", help="count processor time: for one thread on a busy machine")
    options.add_argument("--one", help="for the script itself: the workload of this process")
    given = options.parse_args()
    if given.cpu_time:
        global clock
        clock = time.process_time
    if given.one and given.threads == "1":
        # castwise has as many threads as the process has cores.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sizes = [int(n) for n in given.sizes.split(",")]
    if given.one == "fused":
        return adamw_fused(int(given.threads), given.adamw, given.rounds)
    if given.one:
        return measure(given.one, int(given.threads), sizes, given.rounds)
    import torch

    print(f"PyTorch {torch.__version__}, CPU capability {torch.backends.cpu.get_cpu_capability()}")
    ratios, first = [], []
    print("| workload | threads | elements | eager, µs | inductor, µs | castwise, µs | inductor / castwise | first call, ms: inductor, castwise |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for threads in given.threads.split(","):
        environment = {**os.environ, **{k: threads for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}}
        for workload in (w for w in [*workloads(torch), "fused"] if re.search(given.only, w)):
            command = [sys.executable, __file__, "--one", workload, "--threads", threads, "--sizes", given.sizes]
            command += ["--adamw", str(given.adamw), "--rounds", str(given.rounds)]
            command += ["--cpu-time"] if given.cpu_time else []
            for r in medians([printed(command, environment) for _ in range(given.processes)]):
                t = {name: 1e6 * v for name, v in r["call"].items()}
                if "fused" in t:
                    print(f"| {r['workload']} | {threads} | {r['n']} | {t['fused']:.1f} (fused) | | {t['castwise']:.1f} | {t['fused'] / t['castwise']:.2f} | |", flush=True)
                    continue
                for how, peer, own in arithmetics(t):
                    ratios.append(t[peer] / t[own])
                    first.append((r["first"][peer], r["first"][own]))
                    times = f"{t['eager']:.1f} | {t[peer]:.1f} | {t[own]:.1f} | {ratios[-1]:.2f}"
                    print(f"| {workload}{how} | {threads} | {r['n']} | {times} | {1e3 * first[-1][0]:.0f}, {1e3 * first[-1][1]:.0f} |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    early = statistics.fmean(b for _, b in first) / statistics.fmean(a for a, _ in first)
    print(f"calls: geometric mean {mean:.2f}, least {min(ratios):.2f}; first calls: {early:.3f} of inductor's")


if __name__ == "__main__":
    main()
