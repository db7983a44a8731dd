#!/usr/bin/env python3
"""Records what JAX answers for reductions, scans, ops of order and composites, as cases for `xtask/src/conformance.rs`.

    python tests/golden/record_jax_ops.py > tests/golden/ops-jax.jsonl

`ops-jax.jsonl` was recorded by JAX 0.10.2 (CPU, x86-64). The cases are drawn from a fixed seed, so the same JAX gives the same file.
A line is a case as `record_torch.py` describes it, with `x64` among the attributes. A function of two results has `outs` and `cmps`.

`cmp` is `exact` where the result is determined: positions, elements that are chosen, integers. It is `approx` with `rtol` and `atol`
where numbers are computed: JAX adds in the dtype itself, in an order of XLA's. Of n elements the tolerance is then n halves of an ulp of
what is added up; 4 ulp for a function that is applied to it.
"""

import json
import random
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

DTYPES = {
    "bool": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
NAMES = {np.dtype(t): n for n, t in DTYPES.items()}
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}

# What a refusal's message says, in the order of the search.
CATEGORIES = [
    ("zero-size", "empty"),
    ("empty", "empty"),
    ("out of bounds", "dim"),
    ("Quantiles must be in the range", "bad_parameter"),
    ("does not accept dtype", "unsupported_dtype"),
    ("requires ndarray or scalar arguments", "unsupported_dtype"),
    ("not supported", "unsupported_dtype"),
    ("does not support", "unsupported_dtype"),
    ("must be", "unsupported_dtype"),
    ("subtract", "bool_sub"),
    ("k argument", "bad_parameter"),
]


def encode(x):
    x = np.asarray(x)
    size = x.dtype.itemsize
    raw = x.tobytes()
    return {
        "dtype": NAMES[x.dtype],
        "shape": list(np.shape(x)),
        "bits": [raw[i : i + size].hex() for i in range(0, len(raw), size)],
    }


def category(e):
    text = f"{type(e).__name__}: {e}"
    for words, name in CATEGORIES:
        if words in text:
            return name
    return None


def draw(d, shape, rng, kind):
    """An operand: small numbers, with equal ones and zeros among them; or also what is not finite."""
    n = int(np.prod(shape, dtype=int))
    if d == "bool":
        numbers = [rng.randrange(2) for _ in range(n)]
    elif d[0] == "u":
        numbers = [rng.randrange(0, 9) for _ in range(n)]
    elif d[0] == "i":
        numbers = [rng.randrange(-8, 9) for _ in range(n)]
    else:
        inf = float("inf")
        special = [0.0, -0.0, inf, -inf, float("nan")]
        part = lambda: rng.choice(special) if kind == "special" and rng.random() < 0.3 else rng.randrange(-40, 41) / 8
        numbers = [complex(part(), part()) if d[0] == "c" else part() for _ in range(n)]
        if kind == "infinite":
            numbers = [-inf if rng.random() < 0.8 else x for x in numbers]
    with np.errstate(all="ignore"):
        return np.array(numbers).reshape(shape).astype(DTYPES[d])


def axis(attrs):
    dim = attrs.get("dim")
    return tuple(dim) if isinstance(dim, list) else dim


def kept(attrs):
    return {"axis": axis(attrs), "keepdims": attrs.get("keepdim", False)}


ORDER = {"inf": np.inf, "-inf": -np.inf}
REDUCTIONS = {
    "var": lambda x, a: jnp.var(x, ddof=a.get("correction", 0), **kept(a)),
    "std": lambda x, a: jnp.std(x, ddof=a.get("correction", 0), **kept(a)),
    "norm": lambda x, a: jnp.linalg.vector_norm(x, ord=ORDER.get(a.get("p"), a.get("p", 2)), **kept(a)),
    "logsumexp": lambda x, a: jax.nn.logsumexp(x, **kept(a)),
    "nansum": lambda x, a: jnp.nansum(x, **kept(a)),
    "nanmean": lambda x, a: jnp.nanmean(x, **kept(a)),
    "median": lambda x, a: jnp.median(x, **kept(a)),
    "nanmedian": lambda x, a: jnp.nanmedian(x, **kept(a)),
}
CHOSEN = {
    "argmax": lambda x, a: jnp.argmax(x, **kept(a)),
    "argmin": lambda x, a: jnp.argmin(x, **kept(a)),
    "count_nonzero": lambda x, a: jnp.count_nonzero(x, **kept(a)),
    "aminmax": lambda x, a: (jnp.min(x, **kept(a)), jnp.max(x, **kept(a))),
    "sort": lambda x, a: (
        jnp.sort(x, axis=axis(a), stable=True, descending=a.get("descending", False)),
        jnp.argsort(x, axis=axis(a), stable=True, descending=a.get("descending", False)),
    ),
    "topk": lambda x, a: tuple(jax.lax.top_k(x, a["k"])),
    "cummax": lambda x, a: jax.lax.cummax(x, axis=axis(a)),
    "cummin": lambda x, a: jax.lax.cummin(x, axis=axis(a)),
}
SCANS = {
    "cumsum": lambda x, a: jnp.cumsum(x, axis=axis(a)),
    "cumprod": lambda x, a: jnp.cumprod(x, axis=axis(a)),
    "logcumsumexp": lambda x, a: jax.lax.cumlogsumexp(x, axis=axis(a)),
}
COMPOSITES = {
    "softmax": lambda x, a: jax.nn.softmax(x, axis=axis(a)),
    "log_softmax": lambda x, a: jax.nn.log_softmax(x, axis=axis(a)),
}
QUANTILES = {
    "quantile": lambda x, a: jnp.quantile(x, a["q"], axis=axis(a), method=a["interpolation"]),
    "nanquantile": lambda x, a: jnp.nanquantile(x, a["q"], axis=axis(a), method=a["interpolation"]),
}
TWO = {
    "isclose": lambda x, y, a: jnp.isclose(x, y, **a),
    "dot": lambda x, y, a: jnp.dot(x, y),
    "vecdot": lambda x, y, a: jnp.vecdot(x, y),
}


def tolerance(name, out, xs, attrs):
    """`cmp` of a result, and its tolerance."""
    d = NAMES[np.asarray(out).dtype]
    if d not in EPSILON or name in CHOSEN:
        return {"cmp": "exact"}
    eps, x = EPSILON[d], np.asarray(xs[0])
    # An operand that is narrower, and computed with as it is.
    eps = max([eps] + [EPSILON[NAMES[np.asarray(y).dtype]] for y in xs if NAMES[np.asarray(y).dtype] in EPSILON])
    wide = np.abs(x.astype(np.complex128 if np.iscomplexobj(x) else np.float64))
    finite = wide[np.isfinite(wide)]
    n = max(1, x.shape[axis(attrs)] if x.ndim and isinstance(axis(attrs), int) else x.size)
    if name in ("cumsum", "nansum", "nanmean", "dot", "vecdot"):
        other = np.abs(np.asarray(xs[-1]).astype(np.complex128)) if len(xs) > 1 else 1.0
        added = np.sum(finite) if len(xs) == 1 else np.sum(np.where(np.isfinite(wide * other), wide * other, 0))
        return {"cmp": "approx", "rtol": eps, "atol": float(n * eps / 2 * added)}
    if name == "cumprod":
        return {"cmp": "approx", "rtol": float(n * eps), "atol": 0.0}
    if name in QUANTILES or name in ("median", "nanmedian"):
        return {"cmp": "approx", "rtol": 2 * eps, "atol": float(2 * eps * (finite.max() if finite.size else 0))}
    return {"cmp": "approx", "rtol": 4 * eps, "atol": 4 * eps}


def record(name, call, xs, attrs, x64):
    case = {"op": name, "args": [{"kind": "tensor", "weak": False, **encode(x)} for x in xs], "attrs": {**attrs, "x64": x64}}
    try:
        out = call(*[jnp.asarray(x) for x in xs], attrs)
    except (TypeError, ValueError, NotImplementedError, IndexError, OverflowError) as e:
        error = category(e)
        # JAX has no positions of medians, which are the second result of these names.
        if error is None or name in ("median", "nanmedian"):
            print(f"{name} {attrs} of {[x.dtype for x in xs]}: {type(e).__name__}: {e}", file=sys.stderr)
            return
        print(json.dumps({**case, "error": error, "cmp": "exact"}, separators=(",", ":")))
        return
    if isinstance(out, tuple):
        case["outs"] = [encode(o) for o in out]
        case["cmps"] = ["exact"] * len(out)
        case["cmp"] = "exact"
    else:
        case["out"] = {**encode(out), "weak": bool(getattr(out, "weak_type", False))}
        case.update(tolerance(name, out, xs, attrs))
    print(json.dumps(case, separators=(",", ":")))


def cases(d, rng, x64):
    is_float = d not in ("bool",) and d[0] in "fbc"
    operands = [draw(d, s, rng, "ordinary") for s in [(3, 5), ()]]
    if is_float:
        operands += [draw(d, (4, 6), rng, "special"), draw(d, (9,), rng, "infinite")]
    for x in operands:
        dims = [{}] if x.ndim == 0 else [{"dim": rng.randrange(-x.ndim, x.ndim)}, {}]
        for name, call in {**REDUCTIONS, **CHOSEN, **SCANS, **COMPOSITES, **QUANTILES}.items():
            line = name in SCANS or name in ("sort", "topk", "cummax", "cummin") or name in COMPOSITES
            for attrs in map(dict, dims):
                if line and "dim" not in attrs:
                    continue
                if name == "topk":
                    attrs = {"k": rng.randrange(0, x.shape[-1] + 1), "dim": -1}
                elif name in ("cummax", "cummin", "logcumsumexp"):
                    attrs["dim"] = attrs["dim"] % x.ndim
                elif name == "sort":
                    attrs["descending"] = rng.random() < 0.5
                elif name in QUANTILES:
                    attrs["q"] = rng.choice([0.0, 0.25, 0.5, 0.7, 1.0])
                    attrs["interpolation"] = rng.choice(["linear", "lower", "higher", "midpoint", "nearest"])
                elif name in ("var", "std") and rng.random() < 0.5:
                    attrs["correction"] = rng.choice([0, 1, 2])
                elif name == "norm":
                    attrs["p"] = rng.choice([0, 1, 2, 3, "inf", "-inf"])
                if not line and name not in QUANTILES and rng.random() < 0.3:
                    attrs["keepdim"] = True
                record(name, call, [x], attrs, x64)
    one, two = draw(d, (6,), rng, "ordinary"), draw(d, (6,), rng, "ordinary")
    for name, call in TWO.items():
        record(name, call, [one, two], {}, x64)
    empty = np.zeros((2, 0), DTYPES[d])
    for name, call in {**REDUCTIONS, **CHOSEN, **SCANS}.items():
        if name in ("topk", "cummax", "cummin") or name == "sort" and d == "bool":
            continue
        record(name, call, [empty], {"dim": 1}, x64)


def main():
    rng = random.Random(32)
    for x64, dtypes in [
        (False, ["bool", "u8", "u32", "i8", "i16", "i32", "f16", "bf16", "f32", "c64"]),
        (True, ["u64", "i8", "i32", "i64", "f32", "f64", "c128"]),
    ]:
        jax.config.update("jax_enable_x64", x64)
        for d in dtypes:
            cases(d, rng, x64)
            # Each case compiles something.
            jax.clear_caches()


main()
