"""Statistics, order, scans, chains over rows, random numbers and blocks, in turns with NumPy, PyTorch and JAX.

README.md says how to install the peers. castwise is the Python package, on NumPy's arrays. Prints milliseconds a call for one thread and
for two, how many times as fast as the best peer castwise is, and the geometric mean; `--only REGEX` takes some rows. Results are compared
with each other's in f64 where they are not random.
"""

import json
import math
import re
import statistics
import sys

from dtypes import in_turns, measured, options, summary, turn_of

PEERS = {"castwise": "torch", "numpy": "jax", "torch": "torch", "torch.compile": "torch", "jax": "jax"}
N = 1 << 24
SIDE = 4096


def rows(scale):
    """Each row: its name, the operands (dtype, shape), and the text for castwise, if it is one. `scale` divides the sizes."""
    n, side = N // scale, max(SIDE // int(math.sqrt(scale)), 8)
    square = [("f32", (side, side))]
    yield "var last", square, "var(x, dims=-1)"
    yield "var first", square, "var(x, dims=0)"
    yield "argmax", square, "argmax(x, dims=-1)"
    yield "quantile", [("f32", (n // 4,))], "quantile(x, q=0.9)"
    yield "cumsum", [("f32", (n,))], "cumsum(x, dim=0)"
    yield "cumsum 0", square, "cumsum(x, dim=0)"
    yield "cumsum 1", square, "cumsum(x, dim=1)"
    for name, text in [("softmax", "softmax(x)"), ("layer_norm", "layer_norm(x, w, b)"), ("rms_norm", "rms_norm(x, w)")]:
        for dtype in ["f32", "bf16"]:
            for width in [64, 768, 4096]:
                weights = {"softmax": 0, "layer_norm": 2, "rms_norm": 1}[name]
                shape = (max(n // width, 2), width)
                yield f"{name} {dtype} {width}", [(dtype, shape)] + [(dtype, (width,))] * weights, text
    yield "uniform", [("f32", (n,))], "uniform(x, seed=1)"
    yield "bernoulli", [("f32", (n,))], "cast(bernoulli(x, p=0.3, seed=1), f32)"
    yield "slerp", [("bf16", (n,)), ("bf16", (n,))], None
    blocks = (max(side // 128, 1),) * 2
    yield "blocks", [("f8e4m3fn", (side, side)), ("f32", blocks)], "cast(x, f32) * blocks(w, like=x, size=128)"


def operands(of):
    import ml_dtypes
    import numpy as np

    rng = np.random.default_rng(1)
    types = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn}
    return [rng.normal(0.0, 1.0, shape).astype(np.float32).astype(types[dtype]) for dtype, shape in of]


# ---- A peer's process -----------------------------------------------------------------------------------------------


def castwise_call(name, text, args, threads):
    import castwise

    def slerp(a, b):
        x, y = castwise.cast(a, "f32"), castwise.cast(b, "f32")
        cosine = castwise.sum(x * y) * castwise.rsqrt(castwise.sum(x * x) * castwise.sum(y * y))
        t = castwise.acos(castwise.minimum(castwise.maximum(cosine, -1.0), 1.0))
        s = castwise.sin(0.5 * t) / castwise.sin(t)
        return castwise.cast(s * x + s * y, "bf16")

    f = castwise.compile(text or slerp, rules="torch", executor=castwise.Executor(threads=threads))
    return lambda: f(*args)


def numpy_call(name, text, args, threads):
    import numpy as np

    x, kind = args[0], name.split()[0]
    calls = {
        "var": lambda: np.var(x, axis=-1 if "last" in name else 0, ddof=1),
        "argmax": lambda: np.argmax(x, -1),
        "quantile": lambda: np.quantile(x, 0.9),
        "cumsum": lambda: np.cumsum(x, axis=int(name.split()[1]) if " " in name else 0),
        "uniform": lambda: np.random.default_rng(1).random(x.shape, np.float32),
        "bernoulli": lambda: (np.random.default_rng(1).random(x.shape, np.float32) < 0.3).astype(np.float32),
    }
    return calls[kind]


def torch_call(name, text, args, threads, compiled):
    import ml_dtypes
    import numpy as np
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)

    def tensor(a):
        if a.dtype == np.float32:
            return torch.from_numpy(a).clone()
        if a.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(a.view(np.uint16)).clone().view(torch.bfloat16)
        return torch.from_numpy(a.view(np.uint8)).clone().view(torch.float8_e4m3fn)

    def slerp(a, b):
        x, y = a.float(), b.float()
        t = torch.acos(((x * y).sum() * torch.rsqrt((x * x).sum() * (y * y).sum())).clamp(-1, 1))
        s = torch.sin(0.5 * t) / torch.sin(t)
        return (s * x + s * y).bfloat16()

    def blocks(x, w):
        whole = w.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return x.float() * whole[: x.shape[0], : x.shape[1]]

    kind = name.split()[0]
    f = {
        "var": lambda x: x.var(-1 if "last" in name else 0),
        "argmax": lambda x: x.argmax(-1),
        "quantile": lambda x: torch.quantile(x, 0.9),
        "cumsum": lambda x: x.cumsum(int(name.split()[1]) if " " in name else 0),
        "softmax": lambda x: F.softmax(x, -1),
        "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-5),
        "uniform": lambda x: torch.rand_like(x),
        "bernoulli": lambda x: torch.empty_like(x).bernoulli_(0.3),
        "slerp": slerp,
        "blocks": blocks,
    }[kind]
    f, args = torch.compile(f) if compiled else f, [tensor(a) for a in args]
    return lambda: f(*args)


def jax_call(name, text, args, threads):
    import jax
    import jax.numpy as jnp

    def layer_norm(x, w, b):
        y = x.astype(jnp.float32)
        m = y.mean(-1, keepdims=True)
        return ((y - m) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5) * w + b).astype(x.dtype)

    def rms_norm(x, w):
        y = x.astype(jnp.float32)
        return (y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5) * w).astype(x.dtype)

    def slerp(a, b):
        x, y = a.astype(jnp.float32), b.astype(jnp.float32)
        t = jnp.arccos(jnp.clip((x * y).sum() * jax.lax.rsqrt((x * x).sum() * (y * y).sum()), -1, 1))
        s = jnp.sin(0.5 * t) / jnp.sin(t)
        return (s * x + s * y).astype(jnp.bfloat16)

    kind = name.split()[0]
    f = {
        "var": lambda x: x.var(-1 if "last" in name else 0, ddof=1),
        "argmax": lambda x: x.argmax(-1),
        "quantile": lambda x: jnp.quantile(x, 0.9),
        "cumsum": lambda x: x.cumsum(int(name.split()[1]) if " " in name else 0),
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "uniform": lambda x: jax.random.uniform(jax.random.key(1), x.shape),
        "bernoulli": lambda x: jax.random.bernoulli(jax.random.key(1), 0.3, x.shape).astype(jnp.float32),
        "slerp": slerp,
        "blocks": lambda x, w: x.astype(jnp.float32) * w.repeat(128, 0).repeat(128, 1)[: x.shape[0], : x.shape[1]],
    }[kind]
    g, args = jax.jit(f), [jnp.array(a) for a in args]
    return lambda: g(*args).block_until_ready()


def digest(result):
    """Some elements of a result, in f64."""
    import numpy as np

    if hasattr(result, "detach"):
        result = result.float() if result.is_floating_point() else result
        result = result.detach().numpy()
    flat = np.asarray(result).astype(np.float64).reshape(-1)
    return flat[:: max(flat.size // 50, 1)].tolist()


def each_row(o, all, fill):
    """Prints the result of each row that `--only` takes: what `fill(row, name, *others)` adds to it, or why it can't."""
    for name, *others in all:
        if not re.search(o.only, name):
            continue
        row = {"peer": o.peer, "row": name, "threads": o.threads}
        try:
            fill(row, name, *others)
        except Exception as e:
            row["unsupported"] = (str(e).strip().splitlines() or [type(e).__name__])[0]
        print(json.dumps(row), flush=True)


def peer_process(o):
    makers = {
        "castwise": castwise_call,
        "numpy": numpy_call,
        "torch": lambda *a: torch_call(*a, compiled=False),
        "torch.compile": lambda *a: torch_call(*a, compiled=True),
        "jax": jax_call,
    }

    def fill(row, name, of, text):
        call = makers[o.peer](name, text, operands(of), o.threads)
        result = call()
        if name.split()[0] not in ("uniform", "bernoulli"):
            row["digest"] = digest(result)
        row["median_s"] = measured(call, 0.02 if o.small else 0.3)

    each_row(o, rows(1 << 10 if o.small else 1), fill)


# ---- All peers in turns ---------------------------------------------------------------------------------------------


def differs(a, b):
    """Whether digests are further apart than the rounding of bf16, where few elements may be one unit more. NaN is never right.

    >>> nan = float("nan")
    >>> [differs([1.0, 2.0], b) for b in ([1.0, 2.0], [1.0, 2.01], [1.0, 2.1], [1.0], [1.0, nan])]
    [False, False, True, True, True]
    >>> differs([nan], [nan])
    True
    """
    near = lambda x, y: abs(x - y) <= 2e-2 * max(abs(x), abs(y), 1e-2)
    return len(a) != len(b) or not all(near(x, y) for x, y in zip(a, b))


def table(peers, made, threads, key, what, factor):
    """Prints the medians of all turns, a line for each row, and returns how many times as good as the best peer castwise is."""
    print(f"\n{what}, {threads} thread(s):\n\n| row | " + " | ".join(peers) + " | best / castwise |")
    print("| --- |" + " ---: |" * (len(peers) + 1))
    ratios = []
    for name in dict.fromkeys(r["row"] for r in made):
        mine = [r for r in made if (r["row"], r["threads"]) == (name, threads) and key in r]
        turns = {peer: [r[key] for r in mine if r["peer"] == peer] for peer in peers}
        of = {peer: statistics.median(t) * factor if t else None for peer, t in turns.items()}
        others = [v for peer, v in of.items() if peer != "castwise" and v]
        ratio = min(others) / of["castwise"] if others and of["castwise"] else None
        ratios += [ratio] if ratio else []
        figures = [f"{v:.3f}" if v is not None else "–" for v in of.values()]
        print(f"| {name} | " + " | ".join([*figures, f"{ratio:.2f}" if ratio else "–"]) + " |")
    return ratios


def conclude(made, ratios):
    """Prints the mean of the ratios and what peers refuse; ends with an error if a peer has other results than castwise."""
    wrong = set()
    for ours in (r for r in made if r["peer"] == "castwise" and "digest" in r):
        same = [r for r in made if (r["row"], r["threads"]) == (ours["row"], ours["threads"]) and "digest" in r]
        wrong |= {f"{r['row']}: {r['peer']}" for r in same if differs(ours["digest"], r["digest"])}
    summary("best / castwise", ratios)
    refused = {f"{r['peer']}, {r['row']}: {r['unsupported']}" for r in made if "unsupported" in r}
    print("".join(f"\n{line}" for line in sorted(refused)))
    if wrong:
        sys.exit("other results than castwise's: " + "; ".join(sorted(wrong)))


def report(made):
    all_threads = sorted({r["threads"] for r in made})
    conclude(made, [r for threads in all_threads for r in table(PEERS, made, threads, "median_s", "ms", 1e3)])


def main():
    p = options(__doc__)
    p.add_argument("--only", default="", help="only rows whose names match this regular expression")
    o = p.parse_args()
    if o.peer:
        return peer_process(o)
    report(in_turns(o, turn_of(PEERS, __file__)))


if __name__ == "__main__":
    main()
