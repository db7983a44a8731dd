"""Tensors, scalars and the drawing of values for `record_paddle.py`.

A `Tensor` holds its elements as little-endian bytes, so that what is recorded is what Paddle was given, bit for bit;
a `Scalar` holds a Python number. The rest draws dtypes' special and ordinary values, and shapes that broadcast.
"""

import struct
import sys

import numpy as np
import paddle

np.seterr(all="ignore")
NUMPY = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
PADDLE = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
    "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
NAMES = {v: k for k, v in PADDLE.items()}
DTYPES = list(PADDLE)
INTS, FLOATS, COMPLEX = DTYPES[1:6], DTYPES[6:10], DTYPES[10:]
SIZE = {
    "bool": 1, "u8": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
    "c64": 8, "c128": 16,
}  # fmt: skip
RANGE = {d: (int(np.iinfo(NUMPY[d]).min), int(np.iinfo(NUMPY[d]).max)) for d in INTS}


class Tensor:
    """Elements as little-endian bytes."""

    def __init__(self, dtype, shape, raw):
        self.dtype, self.shape, self.raw = dtype, tuple(shape), raw

    def paddle(self):
        if self.dtype == "bf16":
            a = np.frombuffer(self.raw, np.int16).reshape(self.shape).copy()
            return paddle.to_tensor(a).view("bfloat16")
        return paddle.to_tensor(np.frombuffer(self.raw, NUMPY[self.dtype]).reshape(self.shape).copy())

    def encode(self):
        n = SIZE[self.dtype]
        bits = [self.raw[i : i + n].hex() for i in range(0, len(self.raw), n)]
        return {"dtype": self.dtype, "shape": list(self.shape), "bits": bits}

    def numpy(self):
        """For comparisons: bf16 as f32."""
        if self.dtype == "bf16":
            return (np.frombuffer(self.raw, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        return np.frombuffer(self.raw, NUMPY[self.dtype]).reshape(self.shape)

    def take(self, index):
        n = SIZE[self.dtype]
        return Tensor(self.dtype, [len(index)], b"".join(self.raw[i * n : i * n + n] for i in index))

    def spread(self, shape):
        """Its elements in each place of a shape that it broadcasts to."""
        bits = np.frombuffer(self.raw, np.dtype((np.void, SIZE[self.dtype]))).reshape(self.shape)
        return Tensor(self.dtype, shape, np.ascontiguousarray(np.broadcast_to(bits, shape)).tobytes())

    def copies(self, shape, n):
        """The same, each element n times side by side."""
        wide, size = self.spread(shape), SIZE[self.dtype]
        raw = b"".join(wide.raw[i : i + size] * n for i in range(0, len(wide.raw), size))
        return Tensor(self.dtype, [*shape, n], raw)


def answer(t):
    """A tensor of Paddle's."""
    a = t.numpy()
    d = NAMES[str(t.dtype).replace("paddle.", "")]
    return Tensor(d, t.shape, np.ascontiguousarray(a).tobytes())


class Scalar:
    """A Python number as an operand."""

    def __init__(self, value):
        self.value = value

    def paddle(self):
        return self.value

    def encode(self):
        v = self.value
        if isinstance(v, complex):
            kind, raw = "complex", struct.pack("<dd", v.real, v.imag)
        else:
            kind, form = {bool: ("bool", "<?"), int: ("int", "<q"), float: ("float", "<d")}[type(v)]
            raw = struct.pack(form, v)
        return {"dtype": kind, "shape": [], "bits": [raw.hex()]}


def values(d, numbers, shape=None):
    """A tensor of dtype `d`, each number rounded to it."""
    numbers = list(numbers)
    if d == "bool":
        raw = bytes(bool(x) for x in numbers)
    elif d in INTS:
        raw = b"".join(int(x).to_bytes(SIZE[d], "little", signed=d != "u8") for x in numbers)
    elif d == "bf16":
        bits = np.array(numbers, np.float64).astype(np.float32).view(np.uint32)
        nan = np.isnan(bits.view(np.float32))
        bits = np.where(nan, 0x7FC00000, bits + (0x7FFF + ((bits >> 16) & 1)))
        raw = (bits >> 16).astype(np.uint16).tobytes()
    elif d in COMPLEX:
        part = np.float32 if d == "c64" else np.float64
        flat = [p for x in numbers for p in (complex(x).real, complex(x).imag)]
        raw = np.array(flat, np.float64).astype(part).tobytes()
    else:
        raw = np.array(numbers, np.float64).astype(NUMPY[d]).tobytes()
    return Tensor(d, shape if shape is not None else [len(numbers)], raw)


INF, NAN = float("inf"), float("nan")
# The distance above 1, the largest and the smallest normal number.
LIMITS = {
    "f16": (2.0**-10, 65504.0, 2.0**-14), "bf16": (2.0**-7, 3.3895313892515355e38, 2.0**-126),
    "f32": (2.0**-23, 3.4028234663852886e38, 2.0**-126), "f64": (2.0**-52, sys.float_info.max, 2.0**-1022),
}  # fmt: skip


def special(d):
    """Zeros, ones, halves, what is not a number, and the ends of the range."""
    if d == "bool":
        return [0, 1]
    if d in INTS:
        lo, hi = RANGE[d]
        return [x for x in [0, 1, -1, 2, -2, 3, 7, 12, -18, lo, lo + 1, hi, hi - 1] if lo <= x <= hi]
    if d in FLOATS:
        eps, big, tiny = LIMITS[d]
        # No number near the subnormal ones: Paddle's kernels flush those to zero.
        small = tiny if d == "f16" else tiny**0.8
        common = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 3, 0.1, -7.25]
        return [*common, eps, big, -big, small, -3 * small, INF, -INF, NAN]
    return [0, 1, -1, 1j, -1j, 0.5 + 0.25j, -1.5 + 2j, 3 - 4j, -0.75 - 1.25j, 0.1j, 2.5]


def ordinary(d, rng):
    """A small number, as programs have them."""
    if d == "bool":
        return rng.randrange(2)
    if d in INTS:
        low = 0 if d == "u8" else -20
        return rng.choice([rng.randint(low, 20), rng.randint(low, 20) * 5])
    number = lambda: rng.choice([rng.randint(-16, 16) / 4, rng.uniform(-5, 5), rng.gauss(0, 1)])
    return number() if d in FLOATS else complex(number(), number())


def count(shape):
    """The number of elements."""
    return int(np.prod(shape, dtype=np.int64))


def fill(d, shape, rng, edge):
    """A tensor of drawn numbers, the part `edge` of them special."""
    edges = special(d)
    draw = lambda: rng.choice(edges) if rng.random() < edge else ordinary(d, rng)
    return values(d, [draw() for _ in range(count(shape))], shape)


def shapes(rng, n):
    """Shapes that broadcast, mostly."""
    rank = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    full = [rng.choice([1, 2, 3, 4]) for _ in range(rank)]
    if rank and rng.random() < 0.06:
        full[rng.randrange(rank)] = 0
    if n == 1:
        return [full]
    out = []
    for _ in range(n):
        s = list(full)
        if rng.random() < 0.5:
            s = s[rng.randint(0, rank) :]
        out.append([1 if rng.random() < 0.15 else k for k in s])
    if rank and rng.random() < 0.04:
        k = rng.randrange(n)
        if out[k]:
            out[k][rng.randrange(len(out[k]))] += 1
    return out


def integral(x):
    """Whether an operand is a tensor of bool or integers."""
    return isinstance(x, Tensor) and x.dtype in INTS + ["bool"]


def tamed(op, x, y):
    """The operands without what Paddle dies of, or what is no power of an integer that f64 holds."""
    if op in ("floor_divide", "remainder", "gcd", "lcm"):
        for t in (x, y):
            if integral(t) and t.dtype in INTS[1:]:
                a = t.numpy().copy()
                a[a == RANGE[t.dtype][0]] += 1
                t.raw = a.tobytes()
    if op == "pow":
        exponents = lambda t: (np.abs(t.numpy().astype(np.int64)) % 4).astype(NUMPY[t.dtype]).tobytes()
        bases = lambda t: (t.numpy().astype(np.int64) % 128).astype(NUMPY[t.dtype]).tobytes()
        if integral(y):
            y.raw = exponents(y)
        if integral(x) and (integral(y) or isinstance(y, Scalar) and isinstance(y.value, int)):
            x.raw = bases(x)
        if integral(x) and isinstance(y, Scalar) and isinstance(y.value, int):
            y.value = abs(int(y.value)) % 4
        if isinstance(x, Scalar) and isinstance(x.value, int):
            x.value = int(x.value) % 128
    return x, y


def nonzero(t, rng=None):
    """No zero among integer divisors, or few if there is an `rng`: one is an error already, and Paddle dies of some."""
    if integral(t) and not (rng and rng.random() < 0.1):
        a = t.numpy().copy()
        a[a == 0] = 1
        t.raw = a.tobytes()
    return t
