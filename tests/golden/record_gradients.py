#!/usr/bin/env python3
"""Records gradients of scans, order statistics, composites, views and fused products with PyTorch, for `xtask conformance`.

    python tests/golden/record_gradients.py > tests/golden/grad-more.jsonl

Recorded by PyTorch 2.15.0 (CPU, one thread). A line is a case as in grad.jsonl: operands, a program (`expr` or `program`), its result, a
cotangent and the gradient of each operand (`null`: an index has none).

What selects, moves or adds is compared bit for bit but for the sign of zeros. Other cases have a tolerance, which covers the distances of PyTorch's gradient
and of the rules' own, which half dtypes round once, from the same gradient in f64.
"""

import json
import math

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
          "c64": torch.complex64, "c128": torch.complex128, "i64": torch.int64}  # fmt: skip
NAMES = {v: k for k, v in DTYPES.items()}
EPS = {"f16": 2**-10, "bf16": 2**-7, "f32": 2**-23, "f64": 2**-52, "c64": 2**-23, "c128": 2**-52}
FLOATS = ["f64", "f32", "bf16", "f16"]
WIDE = ["f64", "f32"]


def bits(t):
    t = t.detach().resolve_conj().contiguous()
    raw = t.reshape(-1).view(torch.uint8).tolist() if t.numel() else []
    size = t.element_size()
    return [bytes(raw[i : i + size]).hex() for i in range(0, len(raw), size)]


def described(t):
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "bits": bits(t)}


class Random:
    """Numbers that follow from a seed alone."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def tensor(self, shape, dtype, kind="plain"):
        d = DTYPES[dtype]
        if dtype.startswith("c"):
            parts = [torch.randn(shape, generator=self.generator, dtype=torch.float64) for _ in range(2)]
            return torch.complex(*parts).to(d)
        x = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        if kind == "ties":
            x = (x * 2).round() / 2
        elif kind == "zeros":
            x = torch.where(torch.rand(shape, generator=self.generator) < 0.25, torch.zeros_like(x), x)
        elif kind == "nans":
            x = torch.where(torch.rand(shape, generator=self.generator) < 0.2, torch.full_like(x, math.nan), x)
        elif kind == "positive":
            x = x.abs() + 0.2
        return x.to(d)


def gradients(function, operands, cot):
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in operands]
    y = function(*leaves)
    wanted = [x for x in leaves if x.requires_grad]
    got = iter(torch.autograd.grad(y, wanted, cot.to(y.dtype).reshape(y.shape), allow_unused=True))
    all = []
    for x in leaves:
        g = next(got) if x.requires_grad else None
        all.append(torch.zeros_like(x) if g is None and x.requires_grad else g)
    return y, all


def wide(x):
    if not (x.is_floating_point() or x.is_complex()):
        return x
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def tolerance(dtypes, grads, exact):
    """Of the widest distance, and of the rounding of the coarsest dtype."""
    eps = max(EPS[d] for d in dtypes)
    atol = 0.0
    for g, e in zip(grads, exact):
        if g is None or not g.numel():
            continue
        off, size = (wide(g) - e).abs(), e.abs()
        finite = off.isfinite()
        far = off[finite].max().item() if finite.any() else 0.0
        most = size[size.isfinite()].max().item() if size.isfinite().any() else 0.0
        atol = max(atol, 2 * far + 8 * eps * most)
    return {"rtol": 4 * eps, "atol": atol}


def record(text, names, operands, function, exact, attrs=None):
    """A case, on standard output."""
    seed = sum(map(ord, json.dumps([text, names, [list(x.shape) for x in operands]])))
    shape = function(*operands).shape
    cot_dtype = NAMES[function(*operands).dtype]
    cot = Random(seed).tensor(list(shape), cot_dtype)
    y, grads = gradients(function, operands, cot)
    key = "program" if text.startswith("castwise") else "expr"
    case = {
        "op": "program", "names": names, key: text, "attrs": attrs or {},
        "args": [{"kind": "tensor", **described(x)} for x in operands],
        "out": described(y), "cot": described(cot),
        "grads": [None if g is None else described(g) for g in grads],
        "cmp": "zero_sign_free" if exact else "approx",
    }  # fmt: skip
    if not exact:
        _, reference = gradients(function, [wide(x) for x in operands], wide(cot))
        dtypes = [NAMES[x.dtype] for x in operands if x.dtype != torch.int64]
        case["tol"] = tolerance(dtypes, grads, reference)
    print(json.dumps(case, separators=(",", ":")))


def one(expr, function, dtypes, kinds, shapes, exact, seed):
    for i, d in enumerate(dtypes):
        for j, kind in enumerate(kinds):
            for k, shape in enumerate(shapes):
                x = Random(seed + 100 * i + 10 * j + k).tensor(list(shape), d, kind)
                record(expr, ["x"], [x], function, exact or d.startswith("f64") and exact)


def order():
    shapes = [(5, 4), (3, 2, 7)]
    for dim in (0, -1):
        for reverse in (False, True):
            word = "True" if reverse else "False"
            one(f"sort(x, dim={dim}, descending={word})", lambda x: x.sort(dim=dim, descending=reverse, stable=True)[0],
                FLOATS, ["plain", "ties", "nans"], shapes, True, 1)  # fmt: skip
            one(f"topk(x, k=2, dim={dim}, largest={word})", lambda x: x.topk(2, dim=dim, largest=reverse)[0],
                FLOATS, ["plain"], shapes, True, 2)  # fmt: skip
        one(f"kthvalue(x, k=2, dim={dim})", lambda x: x.kthvalue(2, dim=dim)[0], FLOATS, ["plain"], shapes, True, 3)
        one(f"median(x, dim={dim}, keepdim=True)", lambda x: x.median(dim=dim, keepdim=True)[0],
            FLOATS, ["plain"], shapes, True, 4)  # fmt: skip
        one(f"nanmedian(x, dim={dim})", lambda x: x.nanmedian(dim=dim)[0], WIDE, ["plain", "nans"], shapes, True, 5)
        for q in (0.0, 0.3, 0.75, 1.0):
            for how in ("linear", "lower", "higher", "nearest", "midpoint"):
                for name, f in (("quantile", torch.quantile), ("nanquantile", torch.nanquantile)):
                    kinds = ["plain"] if name == "quantile" else ["plain", "nans"]
                    one(f'{name}(x, q={q}, dim={dim}, interpolation="{how}")',
                        lambda x: f(x, q, dim=dim, interpolation=how), WIDE, kinds, shapes[:1], False, 6)  # fmt: skip
    one("median(x)", lambda x: x.median(), FLOATS, ["plain", "ties"], shapes, False, 7)
    one("nanmedian(x)", lambda x: x.nanmedian(), WIDE, ["plain", "ties", "nans"], shapes, False, 8)
    one("quantile(x, q=0.4)", lambda x: torch.quantile(x, 0.4), WIDE, ["plain"], shapes, False, 9)


def scans():
    shapes = [(5, 4), (2, 6), (1, 3)]
    for dim in (0, 1):
        for name, f in (("cummax", torch.cummax), ("cummin", torch.cummin)):
            one(f"{name}(x, dim={dim})", lambda x: f(x, dim=dim)[0], WIDE, ["plain", "ties", "nans"], shapes, True, 20)
            one(f"{name}(x, dim={dim})", lambda x: f(x, dim=dim)[0], FLOATS[2:], ["plain"], shapes, False, 21)
        one(f"cumsum(x, dim={dim})", lambda x: x.cumsum(dim=dim), [*FLOATS, "c128"], ["plain"], shapes, False, 22)
        one(f"cumprod(x, dim={dim})", lambda x: x.cumprod(dim=dim), [*FLOATS, "c128"], ["positive", "zeros"],
            shapes, False, 23)  # fmt: skip
        one(f"logcumsumexp(x, dim={dim})", lambda x: x.logcumsumexp(dim=dim), [*FLOATS, "c128"], ["plain"],
            shapes, False, 24)  # fmt: skip


def folds():
    shapes = [(4, 5), (2, 3, 3)]
    for dim in (0, -1):
        for expr, f in (
            (f"var(x, dim={dim})", lambda x: x.var(dim=dim)),
            (f"std(x, dim={dim}, keepdim=True)", lambda x: x.std(dim=dim, keepdim=True)),
            (f"norm(x, dim={dim})", lambda x: torch.linalg.vector_norm(x, dim=dim)),
            (f"norm(x, p=1, dim={dim})", lambda x: torch.linalg.vector_norm(x, 1, dim=dim)),
            (f"norm(x, p=3, dim={dim})", lambda x: torch.linalg.vector_norm(x, 3, dim=dim)),
            (f"logsumexp(x, dim={dim})", lambda x: x.logsumexp(dim=dim)),
        ):
            one(expr, f, FLOATS, ["plain"], shapes, False, 30)
        one(f"nansum(x, dim={dim})", lambda x: x.nansum(dim=dim), WIDE, ["nans"], shapes, False, 31)
        one(f"nanmean(x, dim={dim})", lambda x: x.nanmean(dim=dim), WIDE, ["nans"], shapes, False, 32)
    one("norm(x)", lambda x: torch.linalg.vector_norm(x), WIDE, ["plain", "zeros"], shapes, False, 33)
    one("aminmax(x)" if False else "amax(x, dim=0)", lambda x: x.amax(dim=0), FLOATS, ["ties"], shapes, False, 34)


def composites():
    r = Random(40)
    for d in FLOATS:
        for dim in (0, 1):
            one(f"softmax(x, dim={dim})", lambda x: x.softmax(dim), [d], ["plain"], [(4, 5)], False, 41)
            one(f"log_softmax(x, dim={dim})", lambda x: x.log_softmax(dim), [d], ["plain"], [(4, 5)], False, 42)
            one(f"normalize(x, dim={dim})", lambda x: F.normalize(x, dim=dim), [d], ["plain"], [(4, 5)], False, 43)
        x, y = (r.tensor([4, 5], d) for _ in range(2))
        w, b = (r.tensor([5], d) for _ in range(2))
        record("layer_norm(x, w, b)", ["x", "w", "b"], [x, w, b], lambda x, w, b: F.layer_norm(x, [5], w, b), False)
        record("rms_norm(x, w, eps=1e-5)", ["x", "w"], [x, w], lambda x, w: F.rms_norm(x, [5], w, 1e-5), False)
        record("cosine_similarity(x, y, dim=1)", ["x", "y"], [x, y], lambda x, y: F.cosine_similarity(x, y), False)
        record("vecdot(x, y)", ["x", "y"], [x, y], lambda x, y: torch.linalg.vecdot(x, y), False)
        record("dot(w, b)", ["w", "b"], [w, b], torch.dot, False)
        record("fma(x, y, w)", ["x", "y", "w"], [x, y, w], lambda x, y, w: torch.addcmul(w, x, y), False)
        n = r.tensor([4, 5], d, "nans")
        record("nan_to_num(x, nan=0.5)", ["x"], [n], lambda x: torch.nan_to_num(x, nan=0.5), True)
        for i, m in ((0, 3), (1, 6)):
            extents = [4, 5]
            extents[i] = m
            index = torch.randint(0, [4, 5][i], extents, generator=r.generator)
            record(f"take_along_dim(x, index, dim={i})", ["x", "index"], [x, index],
                   lambda x, index: torch.take_along_dim(x, index, i), d in WIDE)  # fmt: skip
            index = torch.randint(0, m, [4, 5], generator=r.generator)
            like = torch.zeros(extents, dtype=DTYPES[d])
            record(f"scatter_add(x, index, like, dim={i})", ["x", "index", "like"], [x, index, like],
                   lambda x, index, like: torch.zeros_like(like).scatter_add(i, index, x), True)  # fmt: skip
        like = r.tensor([4, 12], d)
        record("pad(x, like, dim=1, start=1, step=2)", ["x", "like"], [x, like],
               lambda x, like: torch.zeros_like(like).slice_scatter(x, 1, 1, 10, 2), True)  # fmt: skip
        scale = r.tensor([2, 3], d)
        record("blocks(scale, x, size=2)*x", ["scale", "x"], [scale, x],
               lambda s, x: s.repeat_interleave(2, 0).repeat_interleave(2, 1)[:4, :5] * x, False)  # fmt: skip
    one("cumsum(sort(x*x, dim=1), dim=1)", lambda x: (x * x).sort(dim=1, stable=True)[0].cumsum(1), WIDE, ["plain"],
        [(3, 4)], False, 44)  # fmt: skip


def views():
    for d in FLOATS:
        for text, f in (
            ("transpose %y {dims = [0, 1]}", lambda y: y.transpose(0, 1)),
            ("permute %y {dims = [2, 0, 1]}", lambda y: y.permute(2, 0, 1)),
            ("flip %y {dims = [0, 2]}", lambda y: y.flip(0, 2)),
            ("reshape %y {shape = [6, -1]}", lambda y: y.reshape(6, -1)),
            ("unsqueeze %y {dim = -2}", lambda y: y.unsqueeze(-2)),
            ("squeeze %y {dim = 0}", lambda y: y.squeeze(0)),
            ("slice %y {dim = 1, start = 1}", lambda y: y[:, 1:]),
            ("slice %y {dim = -1, start = -3, end = -1}", lambda y: y[..., -3:-1]),
            ("slice %y {dim = 2, start = 1, step = 2}", lambda y: y[..., 1::2]),
            ("slice %y {dim = 0, start = 9}", lambda y: y[9:]),
        ):
            # A product behind the view, so that its gradient is not the cotangent.
            program = (
                f"castwise 1\nprogram(rules = torch) (%x: {d}[2, 3, 4]) {{\n  %y = mul %x, ~3.0\n  %z = {text}\n"
                "  %w = mul %z, %z\n  fetch %w\n}\n"
            )
            x = Random(50).tensor([2, 3, 4], d)
            record(program, ["x"], [x], lambda x: f(x * 3.0) * f(x * 3.0), False)


if __name__ == "__main__":
    order()
    scans()
    folds()
    composites()
    views()
