#!/usr/bin/env python3
"""Records what PyTorch answers, as cases for `xtask/src/conformance.rs`.

    python tests/golden/record_torch.py > tests/golden/torch-more.jsonl

`torch-more.jsonl` was recorded by PyTorch 2.15.0 (CPU, x86-64, AVX-512) with NumPy 2.4.6. Runs with any PyTorch from 2.6
on; another version or machine may give other last bits where a case says `approx`, and other cases `unstable`. The cases
are drawn from fixed seeds, so the same PyTorch gives the same file.

A line is a case: {"op", "args", "attrs", "out" or "error", "cmp"}. An operand is {"kind": "tensor" or "scalar", "dtype",
"shape", "bits"}; bits are one hex string an element, its bytes in memory order (little-endian; of complex numbers the real
part first). `cmp` says how to compare:

exact           the op's result is determined: bit for bit, any NaN equal to any NaN
zero_sign_free  the same, but +0 equals -0 (ties of the maximum and minimum ops)
approx          a function that neither side rounds correctly: within the function's bar
unstable        PyTorch contradicts itself: one element alone and the same among 67 copies, which its vector loop
                computes, differ. Only dtype and shape are facts then. Elements that are unstable get a case of their own.

`error` is the kind of refusal: unsupported_dtype, dtype_mismatch, shape, axis, empty, zero_division, bool_sub, bool_neg,
negative_integer_power, mean_dtype, cast. `cbrt`, which PyTorch lacks, is recorded from NumPy.

Not recorded: MIN / -1, its remainders, `lcm` of MIN (PyTorch dies of a trap); casts of floats to integers that can't hold them (undefined in C++), complex operands that are not finite
in inexact functions (PyTorch's vector and scalar code differ there), operands that PyTorch's signatures do not take.
"""

import itertools
import json
import random
import struct
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "c32": torch.complex32, "c64": torch.complex64, "c128": torch.complex128,
}  # fmt: skip
NAMES = {t: n for n, t in DTYPES.items()}
INTS = ["u8", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
COMPLEX = ["c32", "c64", "c128"]
PART = {"c32": "f16", "c64": "f32", "c128": "f64"}
# Copies of an element: a few vectors and a tail in every dtype.
COPIES = 67

# What a refusal's message says, in the order of the search.
CATEGORIES = [
    ("ZeroDivisionError", "zero_division"),
    ("must match the size", "shape"),
    ("must match the existing size", "shape"),
    ("Subtraction, the `-` operator", "bool_sub"),
    ("Negation, the `-` operator", "bool_neg"),
    ("heaviside is not yet implemented for tensors with different dtypes", "dtype_mismatch"),
    ("Integers to negative integer powers", "negative_integer_power"),
    ("mean(): could not infer output dtype", "mean_dtype"),
    ("Dimension out of range", "axis"),
    ("appears multiple times in the list of dims", "axis"),
    ("Expected reduction dim", "empty"),
    ("Specify the reduction dim", "empty"),
    ("can't be cast to the desired output type", "cast"),
    ("not implemented for", "unsupported_dtype"),
    ("not yet implemented for", "unsupported_dtype"),
    ("not supported", "unsupported_dtype"),
    ("does not support", "unsupported_dtype"),
    ("not intended to support", "unsupported_dtype"),
    ("is no longer supported", "unsupported_dtype"),
    ("only supports", "unsupported_dtype"),
]


class Scalar:
    """A Python number as an operand."""

    def __init__(self, value):
        self.value = value

    def encode(self):
        v = self.value
        kinds = {bool: ("bool", "<?", [v]), int: ("int", "<q", [v]), float: ("float", "<d", [v])}
        if isinstance(v, complex):
            kind, form, parts = "complex", "<dd", [v.real, v.imag]
        else:
            kind, form, parts = kinds[type(v)]
        return {"kind": "scalar", "dtype": kind, "shape": [], "bits": [struct.pack(form, *parts).hex()]}


def encode(t):
    """A tensor's dtype, shape and bits."""
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    size = t.element_size()
    raw = bytes(t.reshape(-1).view(torch.uint8).tolist()) if t.numel() else b""
    if t.dtype == torch.bool:
        raw = bytes(int(b != 0) for b in raw)
    bits = [raw[i : i + size].hex() for i in range(0, len(raw), size)]
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape), "bits": bits}


def category(e):
    text = f"{type(e).__name__}: {e}"
    for words, name in CATEGORIES:
        if words in text:
            return name
    raise SystemExit(f"a refusal of unknown kind: {text}")


def values(d, numbers):
    """A tensor of dtype `d`, each number rounded to it."""
    if d in COMPLEX:
        return torch.tensor([complex(x) for x in numbers], dtype=torch.complex128).to(DTYPES[d])
    kind = torch.float64 if d in FLOATS else torch.int64
    return torch.tensor(list(numbers), dtype=kind).to(DTYPES[d])


def special(d):
    """Zeros, ones, halves, what is not a number, and the ends of the range."""
    if d == "bool":
        return values(d, [0, 1])
    if d in INTS:
        i = torch.iinfo(DTYPES[d])
        return values(d, [x for x in [0, 1, -1, 2, -2, 3, 7, 12, -18, i.min, i.min + 1, i.max, i.max - 1] if i.min <= x <= i.max])
    if d in FLOATS:
        f = torch.finfo(DTYPES[d])
        inf = float("inf")
        least = f.tiny * f.eps
        return values(d, [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 3, 0.1, -7.25, f.eps, f.max, f.min, f.tiny, -f.tiny,
                          least, -3 * least, inf, -inf, float("nan")])  # fmt: skip
    return values(d, [0, 1, -1, 1j, -1j, 0.5 + 0.25j, -1.5 + 2j, 3 - 4j, -0.75 - 1.25j, 0.1j, 2.5])


def ordinary(d, n, rng):
    """Small numbers, as programs have them."""
    if d == "bool":
        return values(d, [rng.randrange(2) for _ in range(n)])
    if d in INTS:
        low = 0 if d == "u8" else -20
        return values(d, [rng.choice([rng.randint(low, 20), rng.randint(low, 20) * 5]) for _ in range(n)])
    number = lambda: rng.choice([rng.randint(-16, 16) / 4, rng.uniform(-5, 5), rng.gauss(0, 1)])
    if d in FLOATS:
        return values(d, [number() for _ in range(n)])
    return values(d, [complex(number(), number()) for _ in range(n)])


class Recorder:
    def __init__(self):
        self.lines = []
        self.seen = set()
        self.refused = set()

    def write(self, op, args, attrs, answer, cmp):
        args = [a.encode() if isinstance(a, Scalar) else {"kind": "tensor", **encode(a)} for a in args]
        line = json.dumps({"op": op, "args": args, "attrs": attrs, **answer, "cmp": cmp}, separators=(",", ":"))
        if line not in self.seen:
            self.seen.add(line)
            self.lines.append(line)

    def case(self, op, f, args, attrs=None, cmp="exact", elementwise=True):
        """Runs `f` and records the answer; elements in which PyTorch contradicts itself apart."""
        attrs = attrs or {}
        default = attrs.get("default_dtype")
        torch.set_default_dtype(DTYPES[default] if default else torch.float32)
        try:
            plain = lambda xs: f(*[x.value if isinstance(x, Scalar) else x for x in xs])
            try:
                out = plain(args)
            except (RuntimeError, ZeroDivisionError, IndexError, TypeError) as e:
                # One refusal of each mix of dtypes is enough.
                dtypes = [type(x.value) if isinstance(x, Scalar) else x.dtype for x in args]
                mix = (op, category(e), str(sorted(map(str, dtypes))), "dtype" in attrs)
                if mix in self.refused:
                    return None
                self.refused.add(mix)
                return self.write(op, args, attrs, {"error": category(e)}, "exact")
            if op == "ldexp" and (args[1].is_floating_point() or out.is_complex()):
                # A power that is not whole, or is computed by the complex formula.
                cmp = "approx"
            if out.is_complex() and op == "neg":
                # PyTorch subtracts from 0, or flips the sign, depending on where the element lies.
                cmp = "zero_sign_free"
            if out.is_complex() and cmp == "exact" and not out.is_conj() and op in ROUNDED_COMPLEX:
                cmp = "approx"
            stable = self.stable(plain, args, out, cmp) if elementwise else None
            if stable is None or bool(stable.all()):
                return self.write(op, args, attrs, {"out": encode(out)}, cmp)
            # Both halves keep PyTorch's own answer; their operands have one dim.
            for keep, kind in [(stable, cmp), (~stable, "unstable")]:
                part = [x if isinstance(x, Scalar) or x.dim() == 0 else x.expand(out.shape)[keep] for x in args]
                if int(keep.sum()):
                    self.write(op, part, attrs, {"out": encode(out[keep])}, kind)
        finally:
            torch.set_default_dtype(torch.float32)

    @staticmethod
    def stable(plain, args, out, cmp):
        """For each element whether its copies have its value: all its bits, or for `approx` nearly so."""
        dims = [x for x in args if not isinstance(x, Scalar) and x.dim() > 0]
        if not dims or out.numel() == 0:
            return None
        copies = [
            x.expand(out.shape).unsqueeze(-1).expand(*out.shape, COPIES).contiguous()
            if not isinstance(x, Scalar) and x.dim() > 0 else x
            for x in args
        ]  # fmt: skip
        many = plain(copies)
        one = out.unsqueeze(-1)
        if not out.is_floating_point() and not out.is_complex():
            return (many == one).all(-1)
        parts = lambda t: torch.view_as_real(t.to(torch.complex128).resolve_conj()) if t.is_complex() else t.double().unsqueeze(-1)
        many, one = parts(many), parts(one)
        same = (many == one) & (many.signbit() == one.signbit()) | many.isnan() & one.isnan()
        if cmp == "zero_sign_free":
            same |= many == one
        if cmp == "approx":
            near = {torch.float16: 2**-9, torch.bfloat16: 2**-6, torch.complex32: 2**-9}
            near = near.get(out.dtype, 2**-21 if out.dtype in (torch.float32, torch.complex64) else 2**-50)
            size = one.abs().amax(-1, keepdim=True)
            same |= (many - one).abs() <= near * size + torch.finfo(torch.float64).tiny
        return same.all(-1).all(-1)


# Complex results of these are rounded in more than one way.
ROUNDED_COMPLEX = {"mul", "div", "square", "abs", "sgn", "reciprocal", "ldexp", "addcdiv", "addcmul", "prod"}

EXACT_UNARY = {
    "frac": torch.frac, "sgn": torch.sgn, "sign": torch.sign, "positive": torch.positive, "neg": torch.neg,
    "abs": torch.abs, "square": torch.square, "reciprocal": torch.reciprocal, "relu": torch.relu, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "isnan": torch.isnan, "isinf": torch.isinf,
    "isfinite": torch.isfinite, "logical_not": torch.logical_not, "bitwise_not": torch.bitwise_not, "real": torch.real,
    "imag": torch.imag, "conj": torch.conj,
}  # fmt: skip
APPROX_UNARY = {
    "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "exp2": torch.exp2, "log10": torch.log10,
    "softplus": F.softplus, "exp": torch.exp, "expm1": torch.expm1, "log": torch.log, "log1p": torch.log1p,
    "log2": torch.log2, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "sigmoid": torch.sigmoid, "erf": torch.erf, "erfc": torch.erfc, "silu": F.silu,
    "gelu": F.gelu, "angle": torch.angle,
}  # fmt: skip
# Ops that no case of torch.jsonl has: function, how to compare, and where they take a Python number.
NEW_BINARY = {
    "gcd": (torch.gcd, "exact", ""), "lcm": (torch.lcm, "exact", ""), "heaviside": (torch.heaviside, "exact", ""),
    "xlogy": (torch.xlogy, "approx", "lr"), "float_power": (torch.float_power, "approx", "lr"),
    "logaddexp2": (torch.logaddexp2, "approx", ""), "ldexp": (torch.ldexp, "exact", ""),
}  # fmt: skip
OLD_BINARY = {
    "add": (torch.add, "exact"), "sub": (torch.sub, "exact"), "mul": (torch.mul, "exact"), "div": (torch.div, "exact"),
    "floor_divide": (torch.floor_divide, "exact"), "remainder": (torch.remainder, "exact"), "fmod": (torch.fmod, "exact"),
    "div_trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), "exact"), "pow": (torch.pow, "approx"),
    "maximum": (torch.maximum, "zero_sign_free"), "minimum": (torch.minimum, "zero_sign_free"),
    "fmax": (torch.fmax, "zero_sign_free"), "fmin": (torch.fmin, "zero_sign_free"), "eq": (torch.eq, "exact"),
    "ne": (torch.ne, "exact"), "lt": (torch.lt, "exact"), "le": (torch.le, "exact"), "gt": (torch.gt, "exact"),
    "ge": (torch.ge, "exact"), "logical_and": (torch.logical_and, "exact"), "logical_or": (torch.logical_or, "exact"),
    "logical_xor": (torch.logical_xor, "exact"), "bitwise_and": (torch.bitwise_and, "exact"),
    "bitwise_or": (torch.bitwise_or, "exact"), "bitwise_xor": (torch.bitwise_xor, "exact"),
    "bitwise_left_shift": (torch.bitwise_left_shift, "exact"),
    "bitwise_right_shift": (torch.bitwise_right_shift, "exact"), "hypot": (torch.hypot, "approx"),
    "copysign": (torch.copysign, "exact"), "atan2": (torch.atan2, "approx"), "logaddexp": (torch.logaddexp, "approx"),
    "nextafter": (torch.nextafter, "exact"),
}  # fmt: skip
SCALARS = [True, 0, 3, -2, 2.5, -0.0, float("nan"), float("inf"), 1.5 - 0.5j]


def unary(r):
    rng = random.Random(1)
    for op, f in {**EXACT_UNARY, **APPROX_UNARY}.items():
        cmp = "exact" if op in EXACT_UNARY else "approx"
        new = op in ("asinh", "acosh", "atanh", "exp2", "log10", "softplus", "frac", "sgn", "sign", "positive")
        for d in DTYPES:
            r.case(op, f, [special(d)], cmp=cmp)
            if new:
                x = ordinary(d, 6, rng)
                r.case(op, f, [x.reshape(2, 3)], cmp=cmp)
                r.case(op, f, [x[0]], cmp=cmp)
                if d in FLOATS and cmp == "approx":
                    # Near 1 and -1, where the inverse functions are steep, and the far ends.
                    near = [1 + s * 2.0**-k for k in (2, 5, 9) for s in (1, -1)]
                    wide = [s * 2.0**k for k in (-13, -6, 3, 7, 13) for s in (1, -1)]
                    r.case(op, f, [values(d, near + [-v for v in near])], cmp=cmp)
                    r.case(op, f, [values(d, wide)], cmp=cmp)
        if new:
            for d, shape in [("f32", (0,)), ("f64", (2, 0)), ("i32", (0, 3)), ("bf16", (0,))]:
                r.case(op, f, [torch.empty(shape, dtype=DTYPES[d])], cmp=cmp)
            for default in ["f64", "f16", "bf16"]:
                r.case(op, f, [special("i16")], {"default_dtype": default}, cmp)
                r.case(op, f, [special("bool")], {"default_dtype": default}, cmp)


def takes(f, *args):
    """Whether PyTorch computes `f` of these, so of their dtypes."""
    try:
        f(*args)
        return True
    except (RuntimeError, TypeError):
        return False


def pairs_of(x, y, rng, n):
    """n pairs of two lists of elements: all of them if they are few, else drawn."""
    both = list(itertools.product(range(len(x)), range(len(y))))
    rng.shuffle(both)
    both = both[:n]
    return x[[i for i, _ in both]], y[[j for _, j in both]]


def binary(r):
    rng = random.Random(2)
    for op, (f, cmp, scalars) in NEW_BINARY.items():
        exponents = op in ("float_power", "ldexp")
        # The second operand: of complex powers a small one, as their error grows with the exponent.
        second = lambda d, n: ordinary(d, n, rng) % 4 if op == "float_power" and d in INTS else ordinary(d, n, rng)
        for d in DTYPES:
            s = special(d)
            if op == "lcm" and d in INTS[1:]:
                s = s[s != torch.iinfo(s.dtype).min]
            x, y = pairs_of(s, second(d, 6) if exponents else s, rng, 24)
            r.case(op, f, [x, y], cmp=cmp)
            x, y = ordinary(d, 6, rng), second(d, 3)
            r.case(op, f, [x.reshape(2, 3), y], cmp=cmp)
            r.case(op, f, [x.reshape(2, 3, 1), y[0]], cmp=cmp)
            r.case(op, f, [x[:1], y], cmp=cmp)
        mixes = [p for p in itertools.product(DTYPES, DTYPES) if p[0] != p[1]]
        for a, b in rng.sample(mixes, 30):
            r.case(op, f, [ordinary(a, 4, rng), second(b, 4)], cmp=cmp)
        for a, b in rng.sample(mixes, 14):
            if rng.random() < 0.5:
                r.case(op, f, [ordinary(a, 3, rng), second(b, 1)[0]], cmp=cmp)
            else:
                r.case(op, f, [ordinary(a, 1, rng)[0], second(b, 3)], cmp=cmp)
        for d in ["f32", "i32", "i64", "f16"]:
            r.case(op, f, [torch.empty((2, 0), dtype=DTYPES[d]), ordinary(d, 2, rng).reshape(2, 1)], cmp=cmp)
            # Which of two mistakes is named first is no fact.
            if takes(f, ordinary(d, 2, rng), ordinary(d, 2, rng)):
                r.case(op, f, [ordinary(d, 4, rng), ordinary(d, 3, rng)], cmp=cmp)
        for d in DTYPES if scalars else []:
            for s in rng.sample(SCALARS, 4):
                x = ordinary(d, 4, rng)
                r.case(op, f, [x, Scalar(s)], cmp=cmp)
                r.case(op, f, [Scalar(s), x], cmp=cmp)
            r.case(op, f, [x[0], Scalar(rng.choice(SCALARS))], cmp=cmp)
        for default in ["f64", "f16", "bf16"]:
            r.case(op, f, [ordinary("i16", 4, rng), ordinary("u8", 4, rng)], {"default_dtype": default}, cmp)
    # Powers of two at the ends of the range.
    for d in FLOATS:
        x = values(d, [1.0, 1.5, -0.75, 3.0, -1.0, 0.0])
        r.case("ldexp", torch.ldexp, [x, values("i32", [3, -4, 10, -14, 0, 5])])
        f = torch.finfo(DTYPES[d])
        least, span = f.tiny * f.eps, int(np.log2(f.max) - np.log2(f.tiny * f.eps))
        # From one end to the other, and halves of the smallest number: to even.
        x = values(d, [least, f.max, f.max, 3 * least, 5 * least, -7 * least, 1.0, 0.0])
        r.case("ldexp", torch.ldexp, [x, values("i32", [span - 10, -span + 8, 1, -1, -1, -2, 3 * span, 3 * span])])
    for op, (f, cmp) in OLD_BINARY.items():
        for d in DTYPES:
            s = special(d)
            if op in ("floor_divide", "remainder", "fmod", "div_trunc") and d in INTS:
                x, y = pairs_of(s, s[s != 0], rng, 24)
                kills = (x == torch.iinfo(x.dtype).min) & (y == -1) if d != "u8" else torch.zeros_like(x).bool()
                x, y = x[~kills], y[~kills]
            elif d in COMPLEX:
                x, y = pairs_of(s, s[s != 0], rng, 10)
                if op == "pow":
                    x, y = x[x != 0], values(d, [2, 0.5, 1j, -1, 1.5 - 0.5j])[torch.arange(int((x != 0).sum())) % 5]
            elif op == "pow" and d in INTS:
                x, y = pairs_of(s, values(d, [0, 1, 2, 3, 5]), rng, 20)
            else:
                x, y = pairs_of(s, s, rng, 20)
            r.case(op, f, [x, y], cmp=cmp)


def ternary(r):
    rng = random.Random(3)
    f = lambda value: lambda x, a, b: torch.addcdiv(x, a, b, value=value)
    for d in DTYPES:
        x, a, b = ordinary(d, 6, rng), ordinary(d, 6, rng), ordinary(d, 6, rng)
        b = torch.where(b == 0, torch.ones_like(b), b)
        # Terms of one sign: a sum that cancels has no bar.
        if d in FLOATS:
            x, a, b = x.abs(), a.abs(), b.abs()
        for value in [1, 2, 0.5]:
            r.case("addcdiv", f(value), [x, a, b], {} if value == 1 else {"value": value}, "approx")
        r.case("addcdiv", f(1), [x.reshape(2, 3), a[:3], b[0]], {}, "approx")
        r.case("addcdiv", f(1), [x[0], a[1], b[1]], {}, "approx")
        r.case("addcdiv", f(1), [x[:0], a[:1], b[:1]], {}, "approx")
        if d in FLOATS:
            s = special(d)
            x, a = pairs_of(s, s, rng, 16)
            b = s[[rng.randrange(len(s)) for _ in range(16)]]
            # Where one term alone counts, the result has two roundings.
            r.case("addcdiv", f(1), [torch.zeros_like(x), a, b], {}, "approx")
            r.case("addcdiv", f(1), [x, torch.zeros_like(a), b], {}, "approx")
    for _ in range(60):
        a, b, c = (rng.choice(list(DTYPES)) for _ in range(3))
        x, y, z = ordinary(a, 3, rng), ordinary(b, 3, rng), ordinary(c, 3, rng)
        z = torch.where(z == 0, torch.ones_like(z), z)
        if not any(t.is_complex() for t in (x, y, z)):
            x, y, z = (t if t.dtype == torch.bool else t.abs() for t in (x, y, z))
        r.case("addcdiv", f(1), [x, y, z], {}, "approx")
    r.case("addcdiv", f(1), [torch.ones(2), torch.ones(3), torch.ones(3)], {}, "approx")

    # Bounds as tensors: of the same dtype, of another, 0-d, broadcast; the upper one wins.
    clamps = {
        "clamp": lambda x, a, b: torch.clamp(x, a, b),
        "clamp_min": lambda x, a: torch.clamp(x, min=a),
        "clamp_max": lambda x, a: torch.clamp(x, max=a),
    }
    for op, g in clamps.items():
        bounds = 2 if op == "clamp" else 1
        for d in DTYPES:
            s = special(d)
            n = min(len(s) ** 2, 24)
            draw = lambda: s[[rng.randrange(len(s)) for _ in range(n)]]
            r.case(op, g, [draw() for _ in range(bounds + 1)], cmp="zero_sign_free")
            x = ordinary(d, 6, rng).reshape(2, 3)
            more = [ordinary(d, 3, rng), ordinary(d, 2, rng).reshape(2, 1)]
            r.case(op, g, [x, *more[:bounds]], cmp="zero_sign_free")
            r.case(op, g, [x, *[m.reshape(-1)[0] for m in more[:bounds]]], cmp="zero_sign_free")
            r.case(op, g, [x[:0], *[m.reshape(-1)[:1] for m in more[:bounds]]], cmp="zero_sign_free")
        for _ in range(40):
            ds = [rng.choice(list(DTYPES)) for _ in range(bounds + 1)]
            tensors = [ordinary(d, 4, rng) for d in ds]
            if rng.random() < 0.3:
                tensors[-1] = tensors[-1][0]
            r.case(op, g, tensors, cmp="zero_sign_free")
        r.case(op, g, [torch.ones(3), *[torch.ones(2)] * bounds])


def casts(r):
    rng = random.Random(4)
    for a, b in itertools.product(DTYPES, DTYPES):
        f = lambda x: x.to(DTYPES[b])
        x = torch.cat([special(a), ordinary(a, 3, rng)])
        if b in INTS and (a in FLOATS or a in COMPLEX):
            real = x.real if x.is_complex() else x
            i = torch.iinfo(DTYPES[b])
            inside = real.double().isfinite() & (real.double().trunc() >= i.min) & (real.double().trunc() <= min(i.max, 2**62))
            x = x[inside]
        r.case("cast", f, [x], {"dtype": b})
        r.case("cast", f, [x[1]], {"dtype": b})
    # On the middle between two halves, but for a bit that f32 does not hold.
    ties = {"f16": 1 + 2**-11 + 2**-40, "bf16": 1 + 2**-8 + 2**-40}
    for d, x in ties.items():
        r.case("cast", lambda t: t.to(DTYPES[d]), [values("f64", [x, -x, 3 * x])], {"dtype": d})
        # Exactly on it: to even.
        tie = x - 2**-40
        r.case("cast", lambda t: t.to(DTYPES[d]), [values("f64", [tie, tie + 2**-7, -tie])], {"dtype": d})
    for d in ["f32", "f64", "f16", "bf16"]:
        big = torch.iinfo(torch.int64).max
        near = torch.tensor([big, -big, 2**53 + 1, 2**24 + 1, -(2**24) - 3, 2049, 2051, 257, 259, 65519, 65520])
        r.case("cast", lambda t: t.to(DTYPES[d]), [near], {"dtype": d})
    same_size = [["bool", "u8", "i8"], ["i16", "f16", "bf16"], ["i32", "f32", "c32"], ["i64", "f64", "c64"]]
    for group in same_size:
        for a, b in itertools.product(group, group):
            x = special(a)
            if b == "bool" and a != "bool":
                x = values(a, [0, 1, 1])
            r.case("view_as", lambda t: t.view(DTYPES[b]), [x], {"dtype": b})
            r.case("view_as", lambda t: t.view(DTYPES[b]), [x[:2].reshape(2, 1)], {"dtype": b})
    r.case("view_as", lambda t: t.view(torch.complex128), [special("c128")], {"dtype": "c128"})


def reductions(r):
    rng = random.Random(5)
    whole = {"sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin,
             "any": torch.any, "all": torch.all}  # fmt: skip
    for op, f in whole.items():
        exact = op in ("amax", "amin", "any", "all")
        zeros = "zero_sign_free" if op in ("amax", "amin") else "exact"
        for d in DTYPES:
            cmp = zeros if exact or d in INTS + ["bool"] else "approx"
            x = ordinary(d, 24, rng)
            if d in FLOATS and not exact:
                # A sum of one sign, and a product that stays in the range.
                x = x.abs() / 4 + 0.5
            if d in COMPLEX and not exact:
                x = (x.to(torch.complex128) / 8 + 1).to(DTYPES[d])
            x = x.reshape(2, 3, 4)
            reduce = lambda **k: lambda t: f(t, **k)
            r.case(op, f, [x], {}, cmp, False)
            r.case(op, f, [x[0, 0, 0]], {}, cmp, False)
            dims = rng.sample([0, 1, -1], 2)
            if op != "prod":
                dims.append(rng.choice([[0, 2], [-1, 0, 1]]))
            for dim in dims:
                keep = rng.random() < 0.5
                r.case(op, reduce(dim=dim, keepdim=keep), [x], {"dim": dim, "keepdim": keep}, cmp, False)
            # A dim without elements, or one beside it that has some.
            dim, keep = rng.choice([1, 2]), rng.random() < 0.5
            # Of no elements PyTorch takes any dtype: it looks for a kernel only where there is something to compute.
            if takes(f, x):
                r.case(op, reduce(dim=dim, keepdim=keep), [x[:, :0]], {"dim": dim, "keepdim": keep}, cmp, False)
            if exact:
                r.case(op, f, [special(d)], {}, cmp, False)
                s = special(d)[:20]
                s = s[: len(s) // 2 * 2]
                r.case(op, reduce(dim=1, keepdim=False), [s.reshape(-1, 2)], {"dim": 1, "keepdim": False}, cmp, False)
            else:
                for to in rng.sample(["f32", "f64", "c64", "i32"], 2):
                    kind = cmp if to == "i32" else "approx"
                    if to == "i32" and d in FLOATS + COMPLEX:
                        continue
                    r.case(op, reduce(dtype=DTYPES[to]), [x], {"dtype": to}, kind, False)
        for dim in [3, -4]:
            r.case(op, lambda t: f(t, dim=dim), [torch.ones(2, 1, 2)], {"dim": dim}, "exact", False)
        if op != "prod":
            r.case(op, lambda t: f(t, dim=[0, 0]), [torch.ones(2, 2)], {"dim": [0, 0]}, "exact", False)


def thresholds(r):
    # Above 20, the default of its threshold, softplus is the identity.
    for d in FLOATS:
        r.case("softplus", F.softplus, [values(d, [18, 19.5, 20, 20.5, 24, 30, 40])], cmp="approx")
    # Quotients beyond the significand.
    for d, big in [("f32", 1e30), ("f64", 1e300)]:
        x = values(d, [big, -big, 2.0**60, 1e9, 2.0**24 + 2])
        for op, f in [("fmod", torch.fmod), ("remainder", torch.remainder), ("floor_divide", torch.floor_divide)]:
            r.case(op, f, [x, values(d, [3, 0.1, -7, 1e-3, 3])])


def cbrt(r):
    for d, kind in [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)]:
        rng = random.Random(6)
        x = torch.cat([special(d), values(d, [8, 27, -64, 1e4, -1e-3]), ordinary(d, 8, rng)])
        f = lambda t: torch.from_numpy(np.cbrt(t.numpy().astype(kind)))
        r.case("cbrt", f, [x], cmp="approx")
        r.case("cbrt", f, [x[:0]], cmp="approx")


def main():
    r = Recorder()
    for part in [unary, binary, ternary, casts, reductions, thresholds, cbrt]:
        part(r)
    sys.stdout.write("".join(line + "\n" for line in r.lines))
    print(f"{len(r.lines)} cases by PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
