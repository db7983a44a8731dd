#!/usr/bin/env python3
"""Records random programs op by op with PyTorch and NumPy, for `tests/recorded_programs.rs`.

    python tests/golden/record_programs.py > tests/golden/programs.jsonl
    python tests/golden/record_programs.py 20000 7000 > elsewhere.jsonl

The second form draws so many programs of PyTorch, and half as many of NumPy, from the seed 7000 on; with
`CASTWISE_RECORDING=elsewhere.jsonl` the test reads that file.

`programs.jsonl` was recorded by PyTorch 2.15.0 (CPU, x86-64, AVX-512) and NumPy 2.4.6. Programs are drawn from fixed seeds,
so the same versions on the same kind of machine give the same file.

A line is one of these:

{"pool": dtype, "bits"}: elements that operands are taken from, one hex string; the first half of them is finite and small.
{"npy": bytes, "is": type}: a file as NumPy wrote it, and what it holds. Files are counted from 0.
{"by": "torch" or "numpy", "in": [operand], "do": [step], "is": [result], "out": {step: bits}, "ulp": {step: bound}}

An operand is `dtype shape layout start` or `npy n`. Its elements in row-major order are the pool's from `start` on, wrapped
around in the half where it begins; of the layout `row` they are one row, repeated. Shapes are `3,5`, or `-` of 0-d. The
layout is how a reader should lay them into memory, and no matter here. A step is `op operand … {attributes}`: operands are
the numbers of values (first those of `in`, then the steps), or scalars after `~`. A result is `dtype shape checksum`: FNV-1a
of 32 bits over the elements' bytes in row-major order. `out` has all bits of the last result, and of those that are not exact. Bytes are
little-endian, and every NaN is the positive quiet one without payload.

Results must agree bit for bit (any NaN is any NaN), but for those in `ulp`: elementary functions, of which the result may be
so many units of the last place away. No other step uses such a result.

PyTorch's programs mix dtypes, and its promotion decides. NumPy's convert explicitly: all operands of a step have one dtype
(but the condition of `where`), so that the rules of promotion do not matter.

What is not drawn: places where castwise departs from the frameworks (docs/deviations.md), and where these contradict
themselves or leave the result to the C++ compiler. `undecided` names each.
"""

import io
import json
import math
import random
import sys
import warnings

import numpy as np
import torch
from program_engines import (
    ARITHMETIC, BITS, COMPARISONS, DTYPES, ELEMENTARY, FLOATS, INTS, LOGIC, NUMERICAL, NUMPY, ORDER, PYTORCH, QUOTIENTS, RARE,
    REDUCTIONS, ROUNDING, SIZES, TORCH, WITHIN_TWO, Undrawn, is_complex, name_of, real64, traps,
    undecided,
)  # fmt: skip

warnings.filterwarnings("ignore")
np.seterr(all="ignore")
torch.set_num_threads(1)

# Elements of a half of a pool; a prime number, so that rows differ.
HALF = 131
# More elements than a vector of 512 bits holds of any dtype; some left over at the end, or (so that what is written past the
# end is past the memory) none.
DOMAINS = [(5, 13), (8, 16), (67,), (2, 3, 11), (131,)]
LAYOUTS = ["plain", "fortran", "stepped", "backwards", "odd"]
SCALARS = [2, -3, 1, 0.5, -2.0, 3.0, 0.25, 100]

FAMILIES = [
    (ARITHMETIC, 6), (ROUNDING, 1), (ORDER, 3), (COMPARISONS, 4), (LOGIC, 2), (BITS, 2), (QUOTIENTS, 2), (RARE, 2),
    (["where"], 5), (["cast"], 4), (REDUCTIONS, 1),
]  # fmt: skip
BINARY = {"add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max", "logical_and", "logical_or",
          "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "copysign",
          "nextafter", "heaviside", "gcd", "lcm", "pow", "atan2", "hypot", "xlogy", *COMPARISONS, *QUOTIENTS}  # fmt: skip
ARITY = {"where": 3, "clamp": 3}


def arity(op):
    return ARITY.get(op, 2 if op in BINARY else 1)


# ---- elements ----


def element(d, rng, wild):
    """A number of the dtype: small, or (half of the wild ones) from the ends of its range."""
    if is_complex(d):
        part = "f32" if d == "c64" else "f64"
        return complex(element(part, rng, False), element(part, rng, False))
    if d == "bool":
        return rng.randrange(2)
    if d in INTS:
        i = torch.iinfo(TORCH[d])
        if wild and rng.random() < 0.5:
            return rng.choice([i.min, i.max, i.max - 1, rng.randint(i.min, i.max), 0, 1])
        return max(i.min, rng.choice([rng.randint(-12, 12), rng.randint(0, 100)]))
    if wild and rng.random() < 0.5:
        f = torch.finfo(TORCH[d])
        least = f.tiny * f.eps
        ends = [0.0, -0.0, math.inf, -math.inf, math.nan, f.max, f.min, f.tiny, least, -3 * least, 1.0, -1.0, 0.5, 2.5]
        return rng.choice([*ends, rng.gauss(0, 1) * 2.0 ** rng.randint(-14, 14)])
    return rng.choice([rng.randint(-16, 16) / 4 or 1.0, rng.uniform(-5, 5), rng.gauss(0, 1)])


def pools():
    """For each dtype a PyTorch tensor of the elements: a half of small ones, and one of all kinds."""
    made = {}
    for d in DTYPES:
        rng = random.Random(f"pool {d}")
        numbers = [element(d, rng, wild) for wild in [False] * HALF + [True] * HALF]
        kind = torch.complex128 if is_complex(d) else torch.float64 if d in FLOATS else torch.int64
        made[d] = torch.tensor(numbers, dtype=kind).to(TORCH[d])
    return made


def raw(a):
    """The bytes of all elements in row-major order, with one NaN."""
    if isinstance(a, np.ndarray):
        a = torch.from_numpy(np.ascontiguousarray(a).reshape(a.shape).copy())
    a = torch.empty(a.numel(), dtype=a.dtype).copy_(a.resolve_conj().resolve_neg().reshape(-1))
    if a.is_complex():
        parts = torch.view_as_real(a).clone()
        parts[parts.isnan()] = math.nan
        a = parts.reshape(-1)
    elif a.is_floating_point():
        a[a.isnan()] = math.nan
    return bytes(a.view(torch.uint8).tolist()) if a.numel() else b""


def checksum(data):
    h = 0x811C9DC5
    for byte in data:
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{h:08x}"


def dims(shape):
    return ",".join(map(str, shape)) or "-"


# ---- .npy files ----


def files():
    """Files of NumPy: each dtype in both orders of memory and of bytes, and of one element."""
    made = []
    for d in NUMPY:
        pool = POOLS[d].numpy()
        kinds = [((5, 13), "F", "<"), ((5, 13), "C", ">"), ((2, 3, 11), "F", ">"), ((67,), "C", ">"), ((131,), "C", ">"),
                 ((8, 16), "F", ">"), ((), "C", ">"), ((1,), "C", ">")]  # fmt: skip
        for k, (shape, order, endian) in enumerate(kinds):
            n = math.prod(shape)
            start = (17 * k) % (HALF - 3)
            # The wild half, but for single elements: these would make whole results of one kind.
            values = pool[[(start + i) % HALF + (HALF if n > 1 and k % 2 else 0) for i in range(n)]].reshape(shape)
            array = np.array(values, dtype=np.dtype(NUMPY[d]).newbyteorder(endian), order=order)
            out = io.BytesIO()
            np.save(out, array)
            made.append((out.getvalue(), values.copy()))
    return made


POOLS = pools()
FILES = files()


# ---- programs ----


class Value:
    def __init__(self, array, final=False):
        self.array, self.final = array, final
        self.dtype, self.used = name_of(array), False


class Program:
    def __init__(self, engine, rng):
        self.engine, self.rng = engine, rng
        self.domain = rng.choice(DOMAINS)
        self.values, self.leaves, self.steps, self.results, self.ulps = [], [], [], [], {}

    # -- operands --

    def leaf(self):
        rng = self.rng
        if rng.random() < 0.2:
            # The first operand is of the whole domain, so that others of one element meet more of them.
            fits = [i for i, (_, a) in enumerate(FILES) if a.size == 1 and self.leaves or a.shape == self.domain]
            i = rng.choice(fits)
            self.leaves.append(f"npy {i}")
            self.values.append(Value(self.engine.load(FILES[i][1])))
            return
        d = rng.choice(self.engine.dtypes)
        shape, layout = self.domain, rng.choice(LAYOUTS)
        kind = rng.random() if self.leaves else 1
        if kind < 0.4:
            # One element: 0-d, or a dim of it.
            shape, layout = rng.choice([(), (1,), (1,) * len(shape)]), "plain"
        elif kind < 0.5:
            shape, layout = shape[-1:], rng.choice(["plain", "stepped", "backwards", "odd"])
        elif kind < 0.6 and len(shape) > 1:
            shape, layout = (*shape[:-1], 1), "plain"
        elif kind < 0.65 and len(shape) > 1:
            layout = "row"
        start = rng.randrange(HALF) + (HALF if rng.random() < 0.4 else 0)
        n = shape[-1] if layout == "row" else math.prod(shape)
        half = start - start % HALF
        elements = POOLS[d][[half + (start - half + i) % HALF for i in range(n)]]
        array = elements.expand(shape).clone() if layout == "row" else elements.reshape(shape)
        self.leaves.append(f"{d} {dims(shape)} {layout} {start}")
        self.values.append(Value(self.engine.load(array)))

    def pick(self, wanted=lambda v: True):
        """The number of a value, the last one more often than others."""
        fits = [i for i, v in enumerate(self.values) if not v.final and wanted(v)]
        if not fits:
            raise Undrawn
        return fits[-1] if self.rng.random() < 0.45 else self.rng.choice(fits)

    # -- steps --

    def apply(self, op, operands, attrs=None, ulp=None):
        """Appends a step; operands are numbers of values, or scalars as `("~", number)`."""
        args = [o[1] if isinstance(o, tuple) else self.values[o].array for o in operands]
        try:
            if traps(self.engine, op, args):
                raise Undrawn
            out = self.engine.run(op, args, attrs)
        except (RuntimeError, TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError, OverflowError):
            raise Undrawn from None
        if not isinstance(out, (torch.Tensor, np.ndarray)) or out.dtype not in (TORCH if self.engine is PYTORCH else NUMPY).values():
            raise Undrawn
        if ulp is None and undecided(self.engine, op, args, out, attrs):
            raise Undrawn
        if ulp is not None and self.engine.undecided_function(op, [real64(a) for a in args], self.engine.compute_dtype(op, args)):
            raise Undrawn
        text = [op] + [f"~{json.dumps(o[1])}" if isinstance(o, tuple) else str(o) for o in operands]
        if attrs is not None and op in REDUCTIONS:
            text.append("{" + ",".join(map(str, attrs[0])) + (" keepdim" if attrs[1] else "") + "}")
        elif attrs is not None:
            text.append("{" + attrs + "}")
        for o in operands:
            if not isinstance(o, tuple):
                self.values[o].used = True
        self.values.append(Value(out, final=ulp is not None))
        self.steps.append(" ".join(text))
        data = raw(out)
        self.results.append(f"{name_of(out)} {dims(out.shape)} {checksum(data) if ulp is None else '-'}")
        if ulp is not None:
            self.ulps[len(self.values) - 1] = ulp
        return len(self.values) - 1

    def cast(self, i, to):
        """Value `i` in a dtype; numbers that an integer does not hold are brought into its range before."""
        d = self.values[i].dtype
        if d == to:
            return i
        if d in FLOATS and to in INTS:
            if np.any(np.isnan(real64(self.values[i].array))):
                i = self.apply("where", [self.apply("isnan", [i]), ("~", 0.5), i])
            i = self.apply("clamp", [i, ("~", 0.0 if to == "u8" else -100.0), ("~", 100.0)])
        return self.apply("cast", [i], to)

    def without_zeros(self, i):
        """An integer divisor: 1 where it was 0."""
        v = self.values[i]
        if v.dtype in INTS and np.any(real64(v.array) == 0):
            return self.apply("where", [self.apply("eq", [i, ("~", 0)]), ("~", 1), i])
        return i

    def operand(self, like, scalars=0.2):
        """Another operand beside value `like`: of its dtype if the engine must not promote."""
        rng, d = self.rng, self.values[like].dtype
        if rng.random() < scalars and d != "bool":
            s = rng.choice(SCALARS)
            if self.engine is PYTORCH:
                return ("~", rng.choice([s, s, 0.1]))
            if d in INTS:
                return ("~", abs(int(s)))
            return ("~", float(s))
        others = [v for v in self.values if not v.final and v is not self.values[like]]
        singles = [v for v in others if real64(v.array).size == 1]
        fits = singles if singles and rng.random() < 0.35 else others or self.values
        i = self.pick(lambda v: v in fits)
        if self.engine is PYTORCH and rng.random() < 0.7:
            return i
        return self.cast(i, d)

    def step(self):
        rng = self.rng
        families, weights = zip(*FAMILIES)
        op = rng.choice(rng.choices(families, weights)[0])
        bools = lambda v: v.dtype == "bool"
        if op == "where":
            condition = self.pick(bools)
            a = self.pick(bools if rng.random() < 0.4 else lambda v: True)
            b = self.operand(a)
            branches = [a, b] if rng.random() < 0.5 else [b, a]
            return self.apply(op, [condition, *branches])
        if op == "cast":
            return self.cast(self.pick(), rng.choice(self.engine.dtypes))
        if op == "view_as":
            i = self.pick()
            d = self.values[i].dtype
            to = [t for t in self.engine.dtypes if SIZES[t] == SIZES[d] and t not in (d, "bool") and not is_complex(t)]
            return self.apply(op, [i], rng.choice(to or [d]))
        if op in REDUCTIONS:
            i = self.pick(lambda v: v.array.ndim > 0)
            axes = sorted(rng.sample(range(self.values[i].array.ndim), rng.randint(1, self.values[i].array.ndim)))
            # A reduced dim that is kept meets the others again.
            return self.apply(op, [i], (axes, rng.random() < 0.8))
        i = self.pick()
        if arity(op) == 1:
            return self.apply(op, [i])
        if arity(op) == 3:
            operands = [i, self.operand(i), self.operand(i)]
            # What is clamped is no scalar.
            swap = rng.randrange(3)
            if not isinstance(operands[swap], tuple):
                operands[0], operands[swap] = operands[swap], operands[0]
            return self.apply(op, operands)
        j = self.operand(i)
        if not isinstance(j, tuple) and rng.random() < 0.5:
            i, j = j, i
        if op in QUOTIENTS and not isinstance(j, tuple):
            j = self.without_zeros(j)
        return self.apply(op, [j, i] if isinstance(j, tuple) and rng.random() < 0.3 else [i, j])

    def function(self):
        """An elementary function, whose result no other step uses."""
        op = self.rng.choice(ELEMENTARY)
        i = self.pick(lambda v: v.dtype in FLOATS or v.dtype in INTS and self.engine is PYTORCH)
        operands = [i] if arity(op) == 1 else [i, self.cast(self.pick(), self.values[i].dtype)]
        d = self.values[i].dtype
        bound = 1 if d in ("f16", "bf16") else 2 if op in WITHIN_TWO and self.engine is PYTORCH else 4
        if op == "pow" and d in INTS:
            raise Undrawn
        return self.apply(op, operands, ulp=bound)

    def line(self):
        out = {}
        for i, v in enumerate(self.values):
            if i in self.ulps or i == len(self.values) - 1:
                out[str(i)] = raw(v.array).hex()
        record = {"by": self.engine.name, "in": self.leaves, "do": self.steps, "is": self.results, "out": out}
        if self.ulps:
            record["ulp"] = self.ulps
        return json.dumps(record, separators=(",", ":"))


def draw(engine, seed):
    rng = random.Random(f"{engine.name} {seed}")
    p = Program(engine, rng)
    for _ in range(rng.randint(2, 5)):
        p.leaf()
    steps = rng.choice([1, 2, 3, 4, 5, 6, 8, 12])
    for _ in range(40):
        if len(p.steps) >= steps:
            break
        try:
            p.step()
        except Undrawn:
            pass
    if rng.random() < 0.3:
        try:
            p.function()
        except Undrawn:
            pass
    return p if p.steps else None


def main():
    for d, pool in POOLS.items():
        print(json.dumps({"pool": d, "bits": raw(pool).hex()}, separators=(",", ":")))
    for data, array in FILES:
        held = f"{name_of(array)} {dims(array.shape)} {checksum(raw(array))}"
        print(json.dumps({"npy": data.hex(), "is": held}, separators=(",", ":")))
    counts = {}
    programs = int(sys.argv[1]) if len(sys.argv) > 1 else 2200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for engine, n in [(PYTORCH, programs), (NUMERICAL, programs // 2)]:
        for seed in range(first, first + n):
            p = draw(engine, seed)
            if p:
                print(p.line())
                for s in p.steps:
                    key = engine.name, s.split()[0]
                    counts[key] = counts.get(key, 0) + 1
    for key in sorted(counts):
        print(*key, counts[key], file=sys.stderr)


if __name__ == "__main__":
    main()
