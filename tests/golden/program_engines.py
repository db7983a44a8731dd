"""The engines of `record_programs.py`: what PyTorch and NumPy compute, and where that is no fact.

Guarantees: `run` gives an engine's own result of one step, or raises `Undrawn`; `undecided` names the places where castwise
departs from the frameworks (docs/deviations.md), and where these contradict themselves. Does not: draw programs.
"""

import itertools

import numpy as np
import torch

INTS = ["u8", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
COMPLEX = ["c64", "c128"]
# PyTorch has few kernels of c32, NumPy has no such dtype.
DTYPES = ["bool", *INTS, *FLOATS, *COMPLEX]
TORCH = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64,
    "c128": torch.complex128,
}  # fmt: skip
NUMPY = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
SIZES = {"bool": 1, "u8": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8, "c64": 8, "c128": 16}

ARITHMETIC = ["add", "sub", "mul", "div", "square", "neg", "abs", "reciprocal"]
ROUNDING = ["floor", "ceil", "round", "trunc", "frac"]
ORDER = ["maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max", "relu", "sign"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
LOGIC = ["logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"]
QUOTIENTS = ["floor_divide", "remainder", "fmod", "div_trunc"]
RARE = ["copysign", "nextafter", "heaviside", "gcd", "lcm", "pow", "real", "imag", "conj", "positive", "view_as",
        "sqrt"]
REDUCTIONS = ["sum", "prod", "amax", "amin", "any", "all"]
# Elementary functions, by the ulps that the two engines may lie apart: each has its own bar, of 1 or 2. `logaddexp` and
# `gelu` cancel, so ulps of their results say nothing.
WITHIN_TWO = ["sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tan", "atan", "asin", "acos", "sigmoid",
              "erf", "pow", "exp2", "log10", "acosh", "atanh"]  # fmt: skip
WITHIN_FOUR = ["sinh", "cosh", "tanh", "erfc", "atan2", "hypot", "asinh", "xlogy", "silu", "softplus"]
ELEMENTARY = WITHIN_TWO + WITHIN_FOUR


def is_complex(d):
    return d in COMPLEX


def name_of(a):
    table = TORCH if isinstance(a, torch.Tensor) else NUMPY
    return next(n for n, t in table.items() if a.dtype == t)


class Undrawn(Exception):
    """The step is not recorded: the engine refuses it, or its result is no fact."""


def real64(a):
    """Real elements in f64, for questions about their size; integers beyond 2^53 are rounded."""
    if isinstance(a, torch.Tensor):
        return a.to(torch.complex128 if a.is_complex() else torch.float64).resolve_conj().resolve_neg().numpy()
    return np.asarray(a, dtype=np.complex128 if np.iscomplexobj(a) else np.float64)


def zeros_of_both_signs(a, b):
    return bool(np.any((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))))


def traps(engine, op, args):
    """Whether PyTorch may die of the step, or its result is undefined in C++: quotients of MIN, and gcd-of-min."""
    if op not in (*QUOTIENTS, "gcd", "lcm"):
        return False
    d = engine.compute_dtype(op, args)
    if d not in INTS:
        return False
    (x, y), i = (real64(a) for a in args), torch.iinfo(TORCH[d])
    if op == "lcm":
        return bool(np.any(np.abs(x * y) > i.max))
    if op == "gcd":
        return d != "u8" and bool(np.any(np.minimum(x, y) == i.min))
    return bool(np.any((y == -1) & (x == i.min)))


def undecided(engine, op, args, out, attrs):
    """Whether the result is no fact. `args` are arrays and numbers, `out` is what the engine gave."""
    x = [real64(a) for a in args]
    d = engine.compute_dtype(op, args)
    complex_ = any(np.iscomplexobj(a) for a in x)
    integers = d in INTS or d == "bool"
    result = real64(out)
    if op in QUOTIENTS:
        if integers and np.any(x[1] == 0):
            return True  # An error here, a trap or 0 there.
        if not integers and not np.all(np.isfinite(to_dtype(np.abs(x[0] / x[1]), d)) | (x[1] == 0)):
            return True  # fmod-of-far.
    if op in ("maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max"):
        if complex_:
            return True  # castwise refuses it; PyTorch takes complex bounds of real numbers.
        # What a narrower dtype makes a zero of counts, too.
        pairs = itertools.combinations([to_dtype(v, d) for v in x], 2)
        if any(zeros_of_both_signs(a, b) for a, b in pairs):
            return True  # zero-ties.
    if op == "relu" and np.any((x[0] == 0) & np.signbit(x[0])):
        return True  # zero-ties.
    if op in ("amax", "amin") and np.any(x[0] == 0) and len(set(np.signbit(x[0][x[0] == 0]).tolist())) > 1:
        return True  # zero-ties.
    if op == "cast":
        to = attrs
        if to in INTS and not np.iscomplexobj(x[0]) and name_of(args[0]) in FLOATS:
            i = torch.iinfo(TORCH[to])
            whole = np.trunc(x[0])
            if not np.all(np.isfinite(whole) & (whole >= i.min) & (whole <= min(i.max, 2**62))):
                return True  # cast-saturates.
        if to in INTS and np.iscomplexobj(x[0]):
            return True  # cast-saturates; castwise takes the real part, NumPy and PyTorch too, but warn.
        if to in ("f16", "bf16") and name_of(args[0]) == "f64" and engine is PYTORCH:
            return True  # cast-rounds-once.
    if d in ("f16", "bf16") or op == "cast" and attrs in ("f16", "bf16"):
        if any(name_of(a) in ("i32", "i64") and np.any(np.abs(v) > 2**24) for a, v in zip(args, x) if not is_number(a)):
            return True  # cast-rounds-once: the frameworks round to f32 first.
    if op == "copysign" and np.any(np.isnan(x[1])):
        return True  # The sign of a NaN.
    if op == "view_as" and np.any(np.isnan(x[0])):
        return True  # The bits of a NaN.
    if complex_ and op in ("mul", "div", "square", "reciprocal", "abs", "sqrt"):
        return True  # Composed of real operations, which are rounded in more than one way.
    if complex_ and op in ("add", "sub", "neg"):
        # Parts that are not finite, and zeros' signs: PyTorch multiplies by `alpha`, and subtracts from 0.
        if not np.all(np.isfinite(result)) or np.any(result.real == 0) or np.any(result.imag == 0):
            return True
    return engine.undecided(op, args, x, d, result)


def to_dtype(a, d):
    """Numbers rounded to a float dtype, for its overflow."""
    return torch.from_numpy(np.atleast_1d(a)).to(TORCH[d]).double().numpy() if d in FLOATS else a


def is_number(a):
    return isinstance(a, (bool, int, float))


class PyTorch:
    name = "torch"
    dtypes = DTYPES
    unary = {
        "neg": torch.neg, "abs": torch.abs, "square": torch.square, "reciprocal": torch.reciprocal, "floor": torch.floor,
        "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "frac": torch.frac, "relu": torch.relu,
        "sign": torch.sign, "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "real": torch.real,
        "imag": torch.imag, "conj": torch.conj, "positive": torch.positive, "silu": torch.nn.functional.silu,
        "softplus": torch.nn.functional.softplus,
    }  # fmt: skip
    binary = {
        "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        "clamp_min": lambda x, y: torch.clamp(x, min=y),
        "clamp_max": lambda x, y: torch.clamp(x, max=y),
    }
    # With a number on the left. (A quotient is another one: left-division.)
    swapped = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}

    def load(self, array):
        return torch.from_numpy(np.array(array)) if isinstance(array, np.ndarray) else array

    def compute_dtype(self, op, args):
        if op in ("cast", "view_as"):
            return name_of(args[0])
        args = args[1:] if op == "where" else args
        common = args[0]
        if len(args) == 1:
            return name_of(common) if not is_number(common) else "f32"
        types = torch.result_type(args[0], args[1])
        if len(args) == 3:
            types = torch.promote_types(types, torch.result_type(args[1], args[2]))
        found = next((n for n, t in TORCH.items() if t == types), None)
        if found is None:
            raise Undrawn
        floats = op in ("div", "copysign", "atan2", "xlogy") and (found in INTS or found == "bool")
        return "f32" if floats else found

    def run(self, op, args, attrs):
        if op == "cast":
            return args[0].to(TORCH[attrs])
        if op == "view_as":
            return args[0].contiguous().view(TORCH[attrs])
        if op in REDUCTIONS:
            axes, keep = attrs
            if op == "prod":
                if len(axes) != 1:
                    raise Undrawn
                axes = axes[0]
            return getattr(torch, op)(args[0], dim=axes, keepdim=keep)
        if op == "clamp" and is_number(args[1]) != is_number(args[2]):
            raise Undrawn  # It takes two tensors or two numbers, and a 0-d tensor beside a number as one.
        if is_number(args[0]):
            if op not in self.swapped:
                raise Undrawn
            return self.swapped[op](*args)
        f = self.unary.get(op) or self.binary.get(op) or getattr(torch, op)
        return f(*args)

    def undecided(self, op, args, x, d, result):
        halves = d in ("f16", "bf16")
        if op in ("mul", "div") and halves and not is_number(args[1]):
            if args[1].dim() > 0 and args[1].numel() == 1 and name_of(args[1]) != d:
                return True  # A right operand of shape [1], which counts as 0-d.
        if op in ("div_trunc", "floor_divide") and halves:
            whole = np.trunc if op == "div_trunc" else np.floor
            if any(np.any(to_dtype(whole(to_dtype(x[0], d) / y), d) != result) for y in (x[1], to_dtype(x[1], d))):
                return True  # Quotients of halves that are rounded before they are made whole.
        if op in ("sum", "prod") and d not in INTS and d != "bool":
            return True  # The order of the elements is not fixed.
        if op == "pow" and d not in INTS:
            return True  # Elementary.
        if op == "sqrt":
            return True  # It is not correctly rounded.
        if d == "bf16" and any(isinstance(a, torch.Tensor) and a.is_complex() for a in args):
            return True  # bf16 with a complex operand of a lower tier.
        return False

    def undecided_function(self, op, x, d):
        """As `undecided`, of elementary functions."""
        if op == "erf" and d in ("f16", "bf16") and np.any((np.abs(x[0]) < 1e-3) & (x[0] != 0)):
            return True  # half-erf.
        if op == "softplus" and np.any(x[0] > 20):
            return True  # softplus-threshold.
        if op in ("sigmoid", "silu") and np.any(x[0] < -80):
            return True  # sigmoid of f32 below -90, and what is made of it.
        if op == "pow" and np.any((x[1] == 0.5) & ((x[0] == 0) | np.isinf(x[0]))):
            return True  # half-pow-sqrt.
        return False


class NumPy:
    name = "numpy"
    dtypes = [d for d in DTYPES if d != "bf16"]
    functions = {
        "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "round": np.rint,
        "isfinite": np.isfinite, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
        "gt": np.greater, "ge": np.greater_equal, "bitwise_not": np.invert, "bitwise_left_shift": np.left_shift,
        "bitwise_right_shift": np.right_shift, "clamp": np.clip, "clamp_min": np.maximum, "clamp_max": np.minimum,
        "pow": np.power, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
        "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "amax": np.max, "amin": np.min, "cast": None,
        "view_as": None,
    }  # fmt: skip
    # PyTorch's names of what NumPy has not.
    missing = {"div_trunc", "relu", "frac", "rsqrt", "sigmoid", "erf", "erfc", "xlogy", "silu", "softplus"}

    def load(self, array):
        return array.numpy() if isinstance(array, torch.Tensor) else array

    def compute_dtype(self, op, args):
        return name_of(next(a for a in args[op == "where" :] if not is_number(a)))

    def run(self, op, args, attrs):
        if op in self.missing:
            raise Undrawn
        d = self.compute_dtype(op, args)
        if op == "cast":
            return args[0].astype(NUMPY[attrs])
        if op == "view_as":
            return np.ascontiguousarray(args[0]).reshape(args[0].shape).view(NUMPY[attrs])
        if is_complex(d) and op in (*COMPARISONS[2:], *ORDER, "amax", "amin"):
            raise Undrawn  # NumPy orders complex numbers.
        if op in ("any", "all") and d == "u8":
            raise Undrawn  # PyTorch's result is u8.
        if op in REDUCTIONS:
            axes, keep = attrs
            wide = {"dtype": np.int64} if op in ("sum", "prod") else {}
            return np.asarray(getattr(np, op)(args[0], axis=tuple(axes), keepdims=keep, **wide))
        if op in ("div", "reciprocal", "copysign", "sqrt", *ELEMENTARY) and d not in FLOATS + COMPLEX and op != "pow":
            raise Undrawn  # NumPy has a float dtype of its own for each integer one.
        if op in (*ROUNDING, "square", "sign", "abs", "clamp", *QUOTIENTS) and (d == "bool" or is_complex(d)):
            raise Undrawn  # PyTorch refuses these, or they have other dtypes or meanings.
        if op == "imag" and not is_complex(d) or op == "heaviside" and any(map(is_number, args)):
            raise Undrawn  # PyTorch refuses these.
        numbers = [NUMPY[d](a) if is_number(a) else a for a in args]
        if any(is_number(a) and NUMPY[d](a) != a for a in args):
            raise Undrawn
        out = np.asarray((self.functions.get(op) or getattr(np, op))(*numbers))
        expected = "bool" if op in COMPARISONS + LOGIC else d
        if op in ("abs", "real", "imag") and is_complex(d):
            expected = "f32" if d == "c64" else "f64"
        if name_of(out) != expected:
            raise Undrawn
        return out

    def undecided(self, op, args, x, d, result):
        if op in ("sum", "prod") and d not in INTS and d != "bool":
            return True  # The order of the elements is not fixed.
        if op == "pow" and d not in INTS:
            return True  # Elementary.
        if op == "nextafter" and d == "f16" and zeros_of_both_signs(*x):
            return True  # The first zero; in the other dtypes the second one, as C has it.
        if op in ("sign", "heaviside") and np.any(np.isnan(x[0])):
            return True  # NaN in NumPy, 0 in PyTorch.
        if op == "remainder" and d in FLOATS and np.any((result == 0) & (np.signbit(x[0]) != np.signbit(x[1]))):
            return True  # A zero has the divisor's sign in NumPy, the dividend's in PyTorch.
        return False

    def undecided_function(self, op, x, d):
        return False


PYTORCH = PyTorch()
NUMERICAL = NumPy()
