#!/usr/bin/env python3
"""Records what PaddlePaddle answers, as cases for `xtask/src/conformance.rs`.

    python tests/golden/record_paddle.py > tests/golden/paddle-more.jsonl

`paddle-more.jsonl` was recorded by PaddlePaddle 3.3.1 (CPU, x86-64, AVX-512) with NumPy 2.4.6. The cases are drawn from
a fixed seed, so the same Paddle on the same kind of machine gives the same file; another may give other last bits where
a case says `approx`, and other cases `unstable`. An argument is another seed, a second one the number of draws.

A line is a case: {"op", "args", "attrs", "out" or "error", "cmp"}, as in `record_torch.py`; `rtol` and `atol` are what
`approx` needs beyond the function's bar. `attrs.via` is the form (operator, api such as `paddle.add`, or method) and
`attrs.axis` the one of Paddle's legacy ops. `unstable` also are zeros, infinities and subnormal numbers where Paddle
may have flushed a result to zero.

`error` is the kind of refusal, see CATEGORIES; `promoted` is the dtype that Paddle looked for a kernel of. Refusals
whose message is of no kind there are named on the standard error, and are no cases.

Not recorded, for castwise departs there, or Paddle contradicts its documents or itself: what `left_out` names; see
`docs/deviations.md`. Nor, for Paddle dies, hangs or leaves it to the C++ compiler: MIN / -1 and its remainder, negative
powers of integers, powers beyond 2^53, `gcd` of floats, `gcd` and `lcm` of MIN, casts of floats to integers that can't
hold them, an `axis` that sticks out.
"""

import itertools
import json
import os
import random
import re
import sys
import warnings

os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore")
import numpy as np
import paddle
import paddle.nn.functional as F
from paddle_values import (
    COMPLEX, DTYPES, FLOATS, INF, INTS, NAMES, NAN, PADDLE, RANGE, Scalar, Tensor, answer, count, fill, integral,
    nonzero, shapes, special, tamed, values,
)  # fmt: skip

# Copies of an element: a few vectors and a tail in every dtype.
COPIES = 67

# What a refusal's message says, in the order of the search.
CATEGORIES = [
    ("is not registered", "kernel_missing"),
    ("Type promotion only support", "promotion_refused"),
    ("division by zero", "div_zero"),
    ("must be Tensor, but got", "arg_not_tensor"),
    ("Broadcast dimension mismatch", "broadcast"),
    ("broadcast", "broadcast"),
    ("The type of data we are trying to retrieve", "dtype_mismatch"),
    ("data type of input", "unsupported_dtype"),
    ("data type of", "unsupported_dtype"),
    ("dtype of", "unsupported_dtype"),
    ("on a bool tensor is not supported", "unsupported_dtype"),
    ("must be bool", "condition_dtype"),
    ("expected to be a boolean Tensor", "condition_dtype"),
    ("There are no kernels which are registered", "kernel_missing"),
    ("has a size of 0", "empty"),
    ("The reduce dim index", "axis"),
    ("When input 0D Tensor, the axis", "axis"),
    ("has no attribute 'shape'", "arg_not_tensor"),
    ("must be tensor type", "arg_not_tensor"),
    ("y must be scalar, Tensor", "arg_not_tensor"),
    ("unsupported operand type(s)", "arg_not_tensor"),
    ("max should be greater than or equal to min", "bad_parameter"),
]


# The guide's list; of other ops a missing kernel says nothing about promotion.
GUIDE = """add sub mul div floor_divide pow eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor where fmax fmin logaddexp maximum minimum remainder nextafter atan2""".split()


def left_out(op, args, attrs):
    """Where an answer of Paddle's is no fact about its rules."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    scalars = [a.value for a in args if isinstance(a, Scalar)]
    dtypes = {t.dtype for t in tensors}
    mixed = len(dtypes) > 1
    ints, floats, complex_ = dtypes & {"bool", *INTS}, dtypes & set(FLOATS), dtypes & set(COMPLEX)
    empty = any(count(t.shape) == 0 for t in tensors)
    zero_dim = any(not t.shape for t in tensors)
    some = lambda test: any(test(t.numpy()).any() for t in tensors)
    size = lambda a: np.abs(a.astype(np.complex128))
    not_small = lambda bound: some(lambda a: ~(size(a) < bound))
    return any([
        # Other dtypes than castwise's, or refused by one of the two.
        op == "mean" and (ints or empty),
        op == "sum" and empty and "dtype" in attrs,
        op in ("frac", "sgn") and (ints or "bf16" in dtypes),
        op in ("sign", "round", "softplus", "ldexp", "hypot", "copysign") and complex_,
        op == "copysign" and (ints or mixed),
        # Squared in the operands' own dtypes; by a complex quotient that overflows.
        op == "hypot" and (mixed or not_small(1e4)),
        op == "remainder" and complex_ and not_small(1e9),
        op == "lerp" and ints,
        op == "heaviside" and mixed,
        op == "neg" and "bool" in dtypes,
        op in ("add_scaled", "sub_scaled") and (mixed or ints),
        op == "remainder" and ints and complex_,
        # Without elements Paddle looks at no dtypes, or makes a value of them.
        empty and (op.startswith("bitwise") or op in ("amax", "amin", "lerp")),
        # A 0-d operand meets the other one by several rules; with a scalar it gives shape [1], complex scalars c64.
        zero_dim and scalars and (op == "floor_divide" or any(isinstance(v, complex) for v in scalars)),
        zero_dim and mixed and op in ("floor_divide", "logaddexp"),
        # Scalars in functions: refused, or cut to some dtype.
        scalars and op.startswith("bitwise"),
        scalars and op in ("gcd", "lcm", "hypot", "copysign", "heaviside", "ldexp", "nextafter", "logaddexp"),
        scalars and attrs.get("via") in ("api", "method") and op not in ("maximum", "minimum", "fmax", "fmin", "atan2"),
        # Compared within 1e-15.
        op in ("eq", "ne") and (floats or complex_) and some(lambda a: size(a) < 1e-9),
        # Integers computed as floats.
        op in ("fmax", "fmin") and dtypes & {"i32", "i64"} or op == "trunc" and "i64" in dtypes,
        op == "atan2" and ints or op == "logaddexp" and "bool" in dtypes,
        # c128 computed in f32; NaN where there is a limit; 0 * inf; the limits that stand for bounds left out.
        op in ("exp", "sigmoid", "silu") and "c128" in dtypes,
        op in ("log2", "log10", "reciprocal") and complex_ and some(lambda a: a == 0),
        op == "ldexp" and not_small(100),
        op.startswith("clamp") and (any(not -1e9 < v < 1e9 for v in scalars) or scalars != sorted(scalars)),
        op.startswith("clamp") and not complex_ and not_small(1e9),
        # NaN met by a comparison.
        op in ("sign", "sgn", "relu") and some(np.isnan),
    ])  # fmt: skip


class Recorder:
    def __init__(self):
        self.lines = []
        self.seen = set()
        self.refused = set()

    def write(self, op, args, attrs, what, cmp):
        args = [{"kind": "scalar" if isinstance(a, Scalar) else "tensor", **a.encode()} for a in args]
        near = {}
        if cmp == "approx" and op in ROUGH:
            tolerance = {"f16": 2e-3, "bf16": 2e-2, "f64": 1e-12, "c128": 1e-12}.get(what["out"]["dtype"], 2e-6)
            near = {"rtol": tolerance, "atol": tolerance}
        line = json.dumps({"op": op, "args": args, "attrs": attrs, **what, "cmp": cmp, **near}, separators=(",", ":"))
        if line not in self.seen:
            self.seen.add(line)
            self.lines.append(line)

    def case(self, op, f, args, attrs=None, cmp="exact", elementwise=True):
        """Runs `f` and records the answer; elements in which Paddle contradicts itself apart."""
        attrs = attrs or {}
        if left_out(op, args, attrs):
            return
        plain = lambda xs: answer(f(*[x.paddle() for x in xs]))
        try:
            out = plain(args)
        except Exception as e:
            self.refusal(op, args, attrs, f"{type(e).__name__} {e}")
            return
        if op == "neg" or op == "mul" and any(isinstance(a, Scalar) for a in args) and cmp == "exact":
            # Paddle computes -x as 0 - x, and x * s as x * s + 0.
            cmp = "zero_sign_free"
        if op == "sqrt" or op == "ldexp" and args[1].dtype in FLOATS:
            cmp = "approx"
        if out.dtype in COMPLEX and cmp == "exact" and op in ROUNDED_COMPLEX:
            cmp = "approx"
        keep = self.stable(plain, args, out, cmp) if elementwise else None
        if keep is not None and op in FLUSHED and out.dtype in FLOATS + COMPLEX:
            # Zeros of what is none may have been subnormal. Of roots as powers the zeros and infinities are facts.
            if not any(isinstance(a, Scalar) and a.value in ROOTS for a in args):
                n = np.abs(out.numpy())
                keep &= np.isfinite(n) & (n >= 2.0 ** (-1022 if out.dtype in ("f64", "c128") else -126))
        if keep is None or keep.all():
            self.write(op, args, attrs, {"out": out.encode()}, cmp)
            return
        for mask, kind in [(keep, cmp), (~keep, "unstable")]:
            index = np.flatnonzero(mask.reshape(-1))
            part = [x.spread(out.shape).take(index) if isinstance(x, Tensor) and x.shape else x for x in args]
            if len(index):
                self.write(op, part, attrs, {"out": out.take(index).encode()}, kind)

    def refusal(self, op, args, attrs, text):
        """Records a refusal, one of each mix of dtypes."""
        kinds = [type(a.value).__name__ if isinstance(a, Scalar) else (a.dtype, len(a.shape) == 0) for a in args]
        kind = next((name for words, name in CATEGORIES if words in text), None)
        if kind is None:
            print(op, kinds, attrs, text[:300].replace("\n", " "), file=sys.stderr)
            return
        mix = (op, kind, str(kinds))
        if mix in self.refused:
            return
        self.refused.add(mix)
        what = {"error": kind}
        if kind == "kernel_missing" and op not in GUIDE:
            return
        # Which of two mistakes is named first is no fact.
        dtypes = {a.dtype for a in args if isinstance(a, Tensor)}
        if kind == "broadcast" and (len(dtypes) > 1 or dtypes & set(COMPLEX)):
            return
        if kind == "kernel_missing":
            found = re.search(r"Undefined\(AnyLayout\), (\w+)\)", text)
            if found and found.group(1) in NAMES:
                what["promoted"] = NAMES[found.group(1)]
        self.write(op, args, attrs, what, "exact")

    @staticmethod
    def stable(plain, args, out, cmp):
        """For each element whether its copies have its value: all its bits, or for `approx` nearly so."""
        wide = [x.copies(out.shape, COPIES) if isinstance(x, Tensor) and x.shape else x for x in args]
        if count(out.shape) == 0 or not any(isinstance(x, Tensor) and x.shape for x in args):
            return None
        many = plain(wide)
        a, b = many.numpy(), out.numpy()[..., None]
        if out.dtype in COMPLEX:
            a, b = np.stack([a.real, a.imag], -1), np.stack([b.real, b.imag], -1)
        else:
            a, b = a[..., None], b[..., None]
        if out.dtype in INTS + ["bool"]:
            return (a == b).all(-1).all(-1)
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
        if cmp == "zero_sign_free":
            same |= a == b
        if cmp == "approx":
            near = {"f16": 2**-9, "bf16": 2**-6, "f32": 2**-21, "c64": 2**-21}.get(out.dtype, 2**-50)
            size = np.abs(b).max(-1, keepdims=True).astype(np.float64)
            same |= np.abs(a.astype(np.float64) - b) <= near * size + 1e-320
        return same.all(-1).all(-1)


# Complex results of these are rounded in more than one way.
ROUNDED_COMPLEX = {
    "mul", "div", "square", "abs", "sgn", "reciprocal", "prod", "lerp", "remainder", "add_scaled", "sub_scaled",
    "sum", "mean",
}  # fmt: skip
# Less accurate than castwise's bars, or sums that cancel.
ROUGH = {
    "sqrt", "prod", "sum", "mean", "erf", "gelu", "gelu_tanh", "softplus", "silu", "sigmoid", "logaddexp", "lerp",
    "remainder", "add_scaled", "sub_scaled",
}  # fmt: skip
# These may give a subnormal result of operands that are none.
FLUSHED = {"mul", "div", "pow", "exp", "sigmoid", "logaddexp", "hypot", "silu", "gelu", "gelu_tanh"}
ROOTS = (0.5, -0.5, 1.5)

EXACT = {
    n: getattr(paddle, n)
    for n in """frac sgn sign positive neg abs square reciprocal floor ceil round trunc isnan isinf isfinite logical_not
    bitwise_not real imag conj sqrt""".split()
}  # fmt: skip
EXACT["relu"] = F.relu
APPROX = {
    n: getattr(paddle, n)
    for n in """rsqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    sigmoid erf angle""".split()
}  # fmt: skip
APPROX.update({"silu": F.silu, "gelu": F.gelu, "softplus": F.softplus})
APPROX["gelu_tanh"] = lambda x: F.gelu(x, approximate=True)

# castwise's name: Paddle's name, comparison, operator.
BINARY = {
    "add": ("add", "exact", "__add__"), "sub": ("subtract", "exact", "__sub__"),
    "mul": ("multiply", "exact", "__mul__"), "div": ("divide", "exact", "__truediv__"),
    "floor_divide": ("floor_divide", "exact", "__floordiv__"),
    "remainder": ("remainder", "exact", "__mod__"), "pow": ("pow", "approx", "__pow__"),
    "maximum": ("maximum", "zero_sign_free", None), "minimum": ("minimum", "zero_sign_free", None),
    "fmax": ("fmax", "zero_sign_free", None), "fmin": ("fmin", "zero_sign_free", None),
    "eq": ("equal", "exact", "__eq__"), "ne": ("not_equal", "exact", "__ne__"),
    "lt": ("less_than", "exact", "__lt__"), "le": ("less_equal", "exact", "__le__"),
    "gt": ("greater_than", "exact", "__gt__"), "ge": ("greater_equal", "exact", "__ge__"),
    "logical_and": ("logical_and", "exact", None), "logical_or": ("logical_or", "exact", None),
    "logical_xor": ("logical_xor", "exact", None), "bitwise_and": ("bitwise_and", "exact", "__and__"),
    "bitwise_or": ("bitwise_or", "exact", "__or__"), "bitwise_xor": ("bitwise_xor", "exact", "__xor__"),
    "atan2": ("atan2", "approx", None), "logaddexp": ("logaddexp", "approx", None),
    "nextafter": ("nextafter", "exact", None),
    "hypot": ("hypot", "approx", None), "copysign": ("copysign", "exact", None), "gcd": ("gcd", "exact", None),
    "lcm": ("lcm", "exact", None), "heaviside": ("heaviside", "exact", None), "ldexp": ("ldexp", "exact", None),
    "bitwise_left_shift": ("bitwise_left_shift", "exact", "__lshift__"),
    "bitwise_right_shift": ("bitwise_right_shift", "exact", "__rshift__"),
}  # fmt: skip
OPERATORS = {
    "__add__": lambda x, y: x + y, "__sub__": lambda x, y: x - y, "__mul__": lambda x, y: x * y,
    "__truediv__": lambda x, y: x / y, "__floordiv__": lambda x, y: x // y, "__mod__": lambda x, y: x % y,
    "__pow__": lambda x, y: x**y, "__eq__": lambda x, y: x == y, "__ne__": lambda x, y: x != y,
    "__lt__": lambda x, y: x < y, "__le__": lambda x, y: x <= y, "__gt__": lambda x, y: x > y,
    "__ge__": lambda x, y: x >= y, "__and__": lambda x, y: x & y, "__or__": lambda x, y: x | y,
    "__xor__": lambda x, y: x ^ y, "__lshift__": lambda x, y: x << y, "__rshift__": lambda x, y: x >> y,
}  # fmt: skip
SCALARS = [True, False, 0, 1, 3, -2, 100, 300, 2.5, 0.5, -0.5, 0.1, 1e10, 1e-30, NAN, INF, 1.5 - 0.5j, 2j]
WIDE = DTYPES + ["f32", "f64", "i32", "i64", "f32", "f64", "c64"]
DIVIDES = ("floor_divide", "remainder")
INTEGRAL = ("gcd", "lcm", *[op for op in BINARY if op.startswith("bitwise")])


def shifts(d, shape, rng):
    """Distances that no dtype's width is below."""
    return values(d, [rng.choice([0, 1, 2, 3, 5, 7]) for _ in range(count(shape))], shape)


def form(op, via):
    """The function of a form; nothing if the op lacks it."""
    name, _, operator = BINARY[op]
    if via == "operator":
        return OPERATORS.get(operator)
    if via == "method":
        return (lambda x, y: getattr(x, name)(y)) if hasattr(paddle.Tensor, name) else None
    return getattr(paddle, name)


def compared(op, dtypes):
    """How a binary op's results compare."""
    return "approx" if op == "remainder" and dtypes & set(COMPLEX) else BINARY[op][1]


def binary(r, rng):
    """Operators, functions and methods of drawn dtypes and shapes."""
    op = rng.choice(list(BINARY))
    operator = BINARY[op][2]
    via = rng.choice(["operator", "operator", "api", "method"])
    f = form(op, via)
    if f is None:
        via, f = "api", form(op, "api")
    a = rng.choice(INTS + ["bool"]) if op in INTEGRAL and rng.random() < 0.7 else rng.choice(WIDE)
    kind = rng.random()
    b = a if kind < 0.45 else rng.choice(WIDE)
    if op in ("gcd", "lcm") and not {a, b} <= set(INTS):
        return
    s, t = shapes(rng, 2)
    edge = rng.choice([0, 0.2, 0.6])
    if op == "lcm" or op == "pow" and {a, b} & set(COMPLEX):
        edge = 0
    x, y = fill(a, s, rng, edge), fill(b, t, rng, edge)
    if op.endswith("_shift") and b in INTS:
        y = shifts(b, t, rng)
    if kind > 0.75 and (operator or rng.random() < 0.3):
        s = Scalar(rng.choice(SCALARS))
        x, y = (s, y) if via == "operator" and rng.random() < 0.4 else (x, s)
    if op in DIVIDES and isinstance(y, Tensor):
        y = nonzero(y, rng if isinstance(x, Tensor) and x.shape == y.shape else None)
    x, y = tamed(op, x, y)
    if op == "pow" and integral(x) and isinstance(y, Scalar) and isinstance(y.value, float) and via != "operator":
        # Paddle cuts the exponent to an integer, and may hang.
        return
    dtypes = {t.dtype if isinstance(t, Tensor) else "c64" if isinstance(t.value, complex) else "" for t in (x, y)}
    r.case(op, f, [x, y], {"via": via}, compared(op, dtypes))


def unary(r, rng):
    op = rng.choice(list(EXACT) + list(APPROX))
    f, cmp = (EXACT[op], "exact") if op in EXACT else (APPROX[op], "approx")
    d = rng.choice(WIDE)
    edge = rng.choice([0, 0.3, 0.8])
    r.case(op, f, [fill(d, shapes(rng, 1)[0], rng, edge)], {}, cmp)


def casts(r, rng):
    a, b = rng.choice(DTYPES), rng.choice(DTYPES)
    x = fill(a, shapes(rng, 1)[0], rng, 0.3)
    if b in INTS and a in FLOATS + COMPLEX:
        v = x.numpy()
        v = (v.real if a in COMPLEX else v).astype(np.float64)
        lo, hi = RANGE[b]
        if not (np.isfinite(v) & (np.trunc(v) >= lo) & (np.trunc(v) <= min(hi, 2**62))).all():
            return
    f = rng.choice([lambda t: t.astype(PADDLE[b]), lambda t: paddle.cast(t, PADDLE[b])])
    r.case("cast", f, [x], {"dtype": b})


def ternary(r, rng):
    op = rng.choice("where where clamp clamp_min clamp_max lerp add_scaled sub_scaled div_trunc".split())
    a = rng.choice(WIDE)
    b = a if rng.random() < 0.6 else rng.choice(WIDE)
    edge = rng.choice([0, 0.3])
    s, t, u = shapes(rng, 3)
    x, y = fill(a, s, rng, edge), fill(b, t, rng, edge)
    if op == "where":
        c = fill("bool" if rng.random() < 0.95 else rng.choice(DTYPES), u, rng, 0.2)
        via = rng.choice(["api", "method"])
        if rng.random() < 0.2:
            y = Scalar(rng.choice(SCALARS))
        elif rng.random() < 0.1:
            x = Scalar(rng.choice(SCALARS))
        if via == "method" and isinstance(x, Tensor):
            r.case(op, lambda c, x, y: c.where(x, y), [c, x, y], {"via": "method"})
        else:
            r.case(op, paddle.where, [c, x, y], {"via": "api"})
    elif op.startswith("clamp"):
        low, high = (rng.choice([0, 1, -2, 5, 0.5, -1.5, 2.0, 100, 1e30, INF, NAN]) for _ in range(2))
        if rng.random() < 0.7 and low > high:
            low, high = high, low
        f = {
            "clamp": paddle.clip,
            "clamp_min": lambda x, m: paddle.clip(x, min=m),
            "clamp_max": lambda x, m: paddle.clip(x, max=m),
        }
        bounds = [Scalar(low), Scalar(high)] if op == "clamp" else [Scalar(low)]
        r.case(op, f[op], [x, *bounds], {}, "zero_sign_free")
    elif op == "lerp":
        w = fill(a, u, rng, 0) if rng.random() < 0.5 else Scalar(rng.choice([0.0, 0.25, 0.5, 0.9, 1.0]))
        # A sum that cancels has no bar, one of infinities no value.
        r.case(op, paddle.lerp, [fill(a, s, rng, 0), fill(b, t, rng, 0), w], {}, "approx")
    elif op == "div_trunc":
        if integral(x) and integral(y):
            x, y = tamed("remainder", x, nonzero(y, rng))
        r.case(op, lambda x, y: paddle.divide(x, y, rounding_mode="trunc"), [x, y], {})
    else:
        f = paddle.add if op == "add_scaled" else paddle.subtract
        r.case(op, lambda x, y, alpha: f(x, y, alpha=alpha), [x, y, Scalar(rng.choice([1, 2, -3, 0.5, 2.0]))])


REDUCTIONS = {
    "sum": [paddle.sum], "mean": [paddle.mean], "prod": [paddle.prod], "amax": [paddle.amax, paddle.max],
    "amin": [paddle.amin, paddle.min], "any": [paddle.any], "all": [paddle.all],
}  # fmt: skip


def reductions(r, rng):
    op = rng.choice(list(REDUCTIONS))
    f = rng.choice(REDUCTIONS[op])
    d = rng.choice(WIDE)
    shape = shapes(rng, 1)[0]
    exact = op in ("amax", "amin", "any", "all")
    edge = 0.6 if op in ("any", "all") else 0.3 if exact else 0
    x = fill(d, shape, rng, edge)
    if not exact and d in FLOATS:
        # A sum of one sign, and a product that stays in the range.
        v = np.abs(x.numpy().astype(np.float64)) / 4 + 0.5
        x = values(d, v.reshape(-1), shape)
    if not exact and d in COMPLEX:
        x = values(d, (x.numpy().astype(np.complex128) / 8 + 1).reshape(-1), shape)
    attrs, more = {}, {}
    rank = len(shape)
    kind = rng.random()
    if rank and kind < 0.5:
        attrs["dim"] = rng.randint(-rank, rank - 1)
    elif rank > 1 and kind < 0.7:
        attrs["dim"] = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    elif kind > 0.97:
        attrs["dim"] = rank + 1
    if "dim" in attrs:
        more["axis"] = attrs["dim"]
    if rng.random() < 0.5:
        more["keepdim"] = attrs["keepdim"] = rng.random() < 0.6
    if op in ("sum", "prod", "mean") and rng.random() < 0.2:
        to = rng.choice(["f32", "f64", "i32", "i64", "c64"])
        if to in FLOATS + COMPLEX or d in INTS + ["bool"]:
            more["dtype"] = PADDLE[to]
            attrs["dtype"] = to
    cmp = "zero_sign_free" if exact else "approx"
    if d in INTS + ["bool"] and "dtype" not in attrs and op != "mean":
        cmp = "exact"
    r.case(op, lambda t: f(t, **more), [x], attrs, cmp, False)


LEGACY = {
    "add": "elementwise_add", "sub": "elementwise_sub", "mul": "elementwise_mul", "div": "elementwise_div",
    "maximum": "elementwise_max", "minimum": "elementwise_min", "floor_divide": "elementwise_floordiv",
    "remainder": "elementwise_mod", "pow": "elementwise_pow",
}  # fmt: skip


def axes(r, rng):
    """The legacy ops' `axis`, where they are defined: the lower-rank operand within the other."""
    op = rng.choice(list(LEGACY))
    f = getattr(paddle._legacy_C_ops, LEGACY[op])
    rank = rng.randint(1, 4)
    full = [rng.choice([1, 2, 3]) for _ in range(rank)]
    if rng.random() < 0.06:
        full[rng.randrange(rank)] = 0
    k = rng.randint(1, rank)
    at = rng.randint(0, rank - k)
    low = [1 if rng.random() < 0.2 else n for n in full[at : at + k]]
    full = [1 if rng.random() < 0.1 else n for n in full]
    if rng.random() < 0.08:
        low[rng.randrange(k)] += 1
    if at + k < rank and rng.random() < 0.3:
        # Trailing ones are dropped.
        low += [1] * rng.randint(1, 2)
        low = low[:rank]
    axis = at if k < rank and len(low) < rank else -1
    if axis == rank - len(low) and rng.random() < 0.3:
        axis = -1
    d = rng.choice(["f32", "f64", "f32", "f64", "i32", "i64", "c64"])
    edge = 0.1 if op in ("add", "sub", "maximum", "minimum") else 0
    x, y = fill(d, full, rng, edge), fill(d, low, rng, edge)
    if rng.random() < 0.25:
        x, y = y, x
    if op in DIVIDES:
        y = nonzero(y, rng)
    if op == "div" and d in INTS:
        return
    x, y = tamed(op, x, y)
    r.case(op, lambda x, y: f(x, y, "axis", axis), [x, y], {"axis": axis}, compared(op, {d}), False)


def pairs(r, rng):
    """Every op on the special numbers of every dtype, in pairs."""
    for op, d in itertools.product(BINARY, DTYPES):
        both = list(itertools.product(special(d), special(d)))
        rng.shuffle(both)
        x, y = (values(d, [p[i] for p in both[:24]]) for i in range(2))
        if op in ("pow", "remainder") and d in COMPLEX or op == "lcm" or op == "gcd" and d not in INTS:
            continue
        if op.endswith("_shift") and d in INTS:
            y = shifts(d, y.shape, rng)
        if op in (*DIVIDES, "gcd") and d in INTS:
            y = nonzero(y)
        x, y = tamed(op, x, y)
        r.case(op, form(op, "api"), [x, y], {"via": "api"}, compared(op, {d}))
    for d in ["f32", "f64"]:
        for e in ROOTS:
            # C's pow and no root: +inf of -inf, +0 of -0.
            x = values(d, [x for x in special(d) if abs(x) < 1e30 or x in (INF, -INF)])
            r.case("pow", form("pow", "operator"), [x, Scalar(e)], {"via": "operator"}, "approx")
    for op, d in itertools.product([*EXACT, *APPROX], DTYPES):
        f, cmp = (EXACT[op], "exact") if op in EXACT else (APPROX[op], "approx")
        r.case(op, f, [values(d, special(d))], {}, cmp)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    draws = int(sys.argv[2]) if len(sys.argv) > 2 else 4400
    paddle.set_device("cpu")
    rng, r = random.Random(seed), Recorder()
    pairs(r, rng)
    for what in rng.choices([binary, unary, reductions, ternary, axes, casts], [50, 12, 16, 12, 5, 5], k=draws):
        what(r, rng)
    sys.stdout.write("".join(line + "\n" for line in r.lines))
    print(f"{len(r.lines)} cases by PaddlePaddle {paddle.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
