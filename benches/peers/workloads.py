"""The workloads of the bench `workloads` by other libraries: JSON lines of which the bench makes the tables of docs/performance.md.

    python benches/peers/workloads.py [--only REGEX] [--threads N] [--small] [--libraries numpy,torch,...] >> results.jsonl

README.md says how to install the libraries and how to make the tables. Inputs have the bits of castwise's; all elements of a result are compared with
f64. Each library runs in a process of its own; one that this Python cannot import is named on stderr. With one thread there are also `compile`
rows, which `--only` takes by that name: the time to the first result of a chain. Ends with an error if a result is wrong. The workloads of
dtypes.py are not here.

Variants: `fresh` allocates its result; `builtin` is the library's function for the workload; `out` is `out=` of NumPy, PyTorch (also for what is
in between) and numexpr, an argument of Numba's loop, `copy_` under `torch.compile`, a donated buffer of JAX, and the tensor of `paddle.static`'s
executor, which its next run overwrites. What a library refuses is a row `unsupported`.
"""

import argparse
import ast
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from dtypes import environment, measured

#: Library -> the module that it needs, in the order of the tables.
LIBRARIES = {"numpy": "numpy", "numexpr": "numexpr", "numba": "numba", "torch": "torch", "torch.compile": "torch", "jax": "jax"}
LIBRARIES |= {"paddle": "paddle", "paddle.static": "paddle"}
BUILTIN = ("gelu_tanh_f32", "mse_mean_f32", "huber_mean_f32")
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "i32": "int32", "u8": "uint8", "bool": "bool"}
TOLERANCE = {"bool": 0.0, "c64": 2e-5, "f16": 2e-2, "bf16": 2e-1, "f32": 2e-5, "f64": 1e-12}
#: What a library cannot compute as precisely as its dtype: the tolerance, and why.
LESS_PRECISE = {
    ("numexpr", "black_scholes_f64"): (5e-3, "numexpr has no erf: an approximation by tanh"),
    ("paddle.static", "black_scholes_f64"): (1e-7, "constants of a static Program are f32"),
}


# ---- The workloads, as benches/workloads/defs.rs has them -----------------------------------------------------------

K64, M4, M16, ROW_OF_PIXELS = 1 << 16, 1 << 22, 1 << 24, 1920 * 3


@dataclass
class Input:
    dtype: str
    low: float = -2.0
    high: float = 2.0
    shape: Callable = lambda n: (n,)


@dataclass
class Workload:
    """`text` is assignments and an expression, separated by `;`. If `mean`, the result is the mean of the elements."""

    name: str
    inputs: dict
    text: str
    out: str
    sizes: list
    mean: bool = False

    def domain(self, n):
        """The shape before a mean is taken."""
        return max((i.shape(n) for i in self.inputs.values()), key=math.prod)

    def has(self, *dtypes):
        return any(i.dtype in dtypes for i in self.inputs.values())


def same(names, *of):
    return {name: Input(*of) for name in names}


CHAIN = "((a * b + c) * 0.5 - d) * (a + 1.25) + (b - c) * (d * 0.125)"
GELU = "0.5 * x * (1.0 + tanh((x + 0.044715 * x * x * x) * 0.7978845608))"
SIGMOIDS = "log(exp(-abs(x)) + 1.0) + maximum(x, 0.0) - x * sigmoid(y) + sin(x) * cos(y)"
PRICE = "d = (log(s / k) + 0.07 * t) / (0.2 * sqrt(t)); e = d - 0.2 * sqrt(t); p = 0.5 * (1.0 + erf(d * 0.7071067811865476));"
PRICE += "q = 0.5 * (1.0 + erf(e * 0.7071067811865476)); s * p - k * exp(t * -0.05) * q"
NORM = "t = (x - mean) * rstd * w + b; where(t > 0.0, t, 0.01 * t)"
HUBER = "e = a - b; s = abs(e); where(s <= 1.0, 0.5 * e * e, s - 0.5)"
DIVISION = "((a // b) * b + a % b == a) & ((a ^ b) > 3)"

rows, one_a_row, one_row = (lambda n: (n // 1024, 1024)), (lambda n: (n // 1024, 1)), (lambda n: (1024,))
image, channels = (lambda n: (n // ROW_OF_PIXELS, 1920, 3)), (lambda n: (3,))
MATRIX = {"x": Input("f32", shape=rows), "mean": Input("f32", shape=one_a_row), "rstd": Input("f32", 0.5, shape=one_a_row)}
MATRIX |= {"w": Input("f32", shape=one_row), "b": Input("f32", shape=one_row)}
PIXELS = {"x": Input("u8", 0.0, 256.0, image), "m": Input("f32", 0.4, 0.5, channels), "s": Input("f32", 0.2, 0.3, channels)}
PRICES = same("sk", "f64", 10.0, 50.0) | {"t": Input("f64", 0.2, 2.0)}
INTEGERS = {"a": Input("i32", -1e6, 1e6), "b": Input("i32", -1000.0, 0.0)}

WORKLOADS = [
    Workload("chain_f32", same("abcd", "f32"), CHAIN, "f32", [1 << 10, K64, M16]),
    Workload("mixed", {"a": Input("f16"), "b": Input("f32"), "c": Input("bf16")}, "(a * b + c) * 2.5 - a", "f32", [K64, M16]),
    Workload("gelu_tanh_f32", same("x", "f32", -4.0, 4.0), GELU, "f32", [K64, M16]),
    Workload("sigmoid_chain_f32", same("xy", "f32", -8.0, 8.0), SIGMOIDS, "f32", [K64, M4]),
    Workload("black_scholes_f64", PRICES, PRICE, "f64", [K64, M4]),
    Workload("bias_norm_f32", MATRIX, NORM, "f32", [M4]),
    Workload("half_chain_f16", same("abc", "f16"), "(a * b + c) * a - b", "f16", [M16]),
    Workload("half_chain_bf16", same("abc", "bf16"), "(a * b + c) * a - b", "bf16", [M16]),
    Workload("mse_mean_f32", same("ab", "f32"), "e = a - b; e * e", "f32", [M16], mean=True),
    Workload("huber_mean_f32", same("ab", "f32"), HUBER, "f32", [M16], mean=True),
    Workload("complex_c64", same("abc", "c64"), "a * b + c * a - b", "c64", [M4]),
    Workload("int_i32", INTEGERS, DIVISION, "bool", [M4]),
    Workload("mask_bool", same("ab", "f32"), "where((a > 0.0) & (b < 1.0), a, b)", "f32", [M16]),
    Workload("cast_u8_f32", PIXELS, "(x * 0.00392156862745098 - m) / s", "f32", [1080 * ROW_OF_PIXELS]),
    Workload("tiny", same("abcd", "f32"), CHAIN, "f32", [16]),
]


def line(ops, seed):
    """A chain of `ops` operations on 16 elements, whose constants no other seed has."""
    step = lambda i: ("t * b", "t + c", f"t * {0.9 + (seed * 1000 + i) * 1e-7!r}", "t - d")[i % 4]
    text = "; ".join(["t = a * b", *(f"t = {step(i)}" for i in range(1, ops)), "t"])
    return Workload("compile", same("abcd", "f32"), text, "f32", [16])


def numbers(workload, name, count):
    """The numbers in [0, 1) of benches/workloads/data.rs: SplitMix64, seeded with the FNV-1a hash of both names."""
    seed = 0xCBF29CE484222325
    for byte in f"{workload}\0{name}".encode():
        seed = ((seed ^ byte) * 0x100000001B3) % (1 << 64)
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in [(30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)]:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def operands(w, n):
    """The inputs as NumPy arrays; those of bf16 are in f32."""
    made = {}
    for name, i in w.inputs.items():
        shape = i.shape(n)
        x = i.low + numbers(w.name, name, math.prod(shape) * (2 if i.dtype == "c64" else 1)) * (i.high - i.low)
        if i.dtype == "c64":
            x = x.astype(np.float32).view(np.complex64)
        elif i.dtype == "bf16":
            # Rounded once, ties to even: by way of f32 it would be rounded twice.
            bits = x.view(np.uint64)
            bits = bits + np.uint64((1 << 44) - 1) + ((bits >> np.uint64(45)) & np.uint64(1))
            x = (bits >> np.uint64(45) << np.uint64(45)).view(np.float64).astype(np.float32)
        made[name] = (np.floor(x) if i.dtype == "i32" else x).astype("float32" if i.dtype == "bf16" else DTYPES[i.dtype]).reshape(shape)
    return made


# ---- Texts as functions ---------------------------------------------------------------------------------------------

#: Functions by means of others, for libraries that do not have them.
SIGMOID, MAXIMUM, ERF = {"sigmoid": "1.0 / (1.0 + exp(-x))"}, {"maximum": "where(x > y, x, y)"}, {"erf": "tanh(x * (1.12837917 + 0.10091 * x * x))"}
OPS = {"Add": "add", "Sub": "subtract", "Mult": "multiply", "Div": "divide", "FloorDiv": "floor_divide", "Mod": "remainder", "BitAnd": "bitwise_and"}
OPS |= {"BitXor": "bitwise_xor", "USub": "negative", "Gt": "greater", "Lt": "less", "LtE": "less_equal", "Eq": "equal"}


class Replaced(ast.NodeTransformer):
    """Names become expressions, functions their texts in `x` and `y`, and floats, if there is a type for them, the names of constants."""

    def __init__(self, names, functions=(), constant=None):
        self.names, self.functions, self.constant, self.constants = names, functions, constant, {}

    def visit_Name(self, node):
        return self.names.get(node.id, node)

    def visit_Call(self, node):
        if node.func.id in self.functions:
            text = ast.parse(self.functions[node.func.id], mode="eval").body
            return self.visit(Replaced(dict(zip("xy", node.args))).visit(text))
        node.args = [self.visit(a) for a in node.args]
        return node

    def visit_UnaryOp(self, node):
        return self.visit(ast.Constant(-node.operand.value)) if isinstance(node.operand, ast.Constant) else self.generic_visit(node)

    def visit_Constant(self, node):
        if not self.constant or not isinstance(node.value, float):
            return node
        name = f"K{len(self.constants)}"
        self.constants[name] = self.constant(node.value)
        return ast.Name(name)


def parts(w, functions=(), typed=False):
    """The assignments (name, expression) of a text, its expression, and its constants. Untyped, a float would widen the f32 of some libraries."""
    r = Replaced({}, functions, (np.float64 if w.out == "f64" else np.float32) if typed else None)
    *before, last = ast.parse(w.text).body
    return [(s.targets[0].id, r.visit(s.value)) for s in before], r.visit(last.value), r.constants


def defined(lines, names):
    """The function `f` of these lines, with these global names."""
    exec("\n".join(lines), names)
    return names["f"]


def function(w, names, functions=(), typed=False):
    """The workload as a function of its inputs."""
    before, last, constants = parts(w, functions, typed)
    body = [*(f"    {name} = {ast.unparse(e)}" for name, e in before), f"    return {'average' * w.mean}({ast.unparse(last)})"]
    return defined([f"def f({', '.join(w.inputs)}):", *body], names | constants)


def into_given(w, names, data, functions=(), typed=False):
    """The workload as a function of nothing, in calls with `out=`. Each op is run once to have memory for its result; an operand of the same dtype and
    shape that has no name gives its own."""
    before, last, constants = parts(w, functions, typed)
    values, lines, made, unnamed, kept = names | constants | data, ["def f():"], set(), set(), {}

    def result(node):
        if isinstance(node, (ast.Name, ast.Constant)):
            return ast.unparse(node)
        if isinstance(node, ast.Call):
            op, of = node.func.id, node.args
        elif isinstance(node, ast.Compare):
            op, of = OPS[type(node.ops[0]).__name__], [node.left, *node.comparators]
        else:
            op, of = OPS[type(node.op).__name__], [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        of = [result(x) for x in of]
        if op in ("add", "multiply") and of[0] not in values:
            of.reverse()  # PyTorch has constants as second operands only
        y = eval(f"{op}({', '.join(of)})", values)
        fits = lambda x: op != "where" and x in unnamed and (values[x].dtype, values[x].shape) == (y.dtype, y.shape)
        name = next(filter(fits, of), f"r{len(lines)}")
        values[name] = y
        made.add(name)
        unnamed.add(name)
        lines.append(f"    {op}({', '.join(of)}, out={name})")
        return name

    for name, e in before:
        kept[name] = ast.Name(result(Replaced(kept).visit(e)))
        unnamed.clear()
    lines.append(f"    return {'average' * w.mean}({result(Replaced(kept).visit(last))})")
    for name in made:
        values[name][...] = 0  # so that a call that writes nothing is detected
    return defined(lines, values)


# ---- Libraries: each function returns what makes the call of a variant ----------------------------------------------

FUNCTIONS = "exp log sqrt tanh sin cos abs where"


def named(module, names):
    return {name: getattr(module, name) for name in names.split()}


def numpy_calls(w, n, data, threads):
    def where(c, x, y, out=None):
        if out is None:
            return np.where(c, x, y)
        np.copyto(out, y)
        np.copyto(out, x, where=c)

    names = named(np, f"{FUNCTIONS} maximum {' '.join(OPS.values())}") | {"average": np.mean}
    if "erf" in w.text:
        from scipy.special import erf

        names["erf"] = erf
    if w.has("bf16"):
        import ml_dtypes

        data = {k: x.astype(ml_dtypes.bfloat16) if w.inputs[k].dtype == "bf16" else x for k, x in data.items()}
    f, args = function(w, names, SIGMOID, typed=True), [*data.values()]
    return lambda kind: (lambda: f(*args)) if kind == "fresh" else into_given(w, names | {"where": where}, data, SIGMOID, typed=True)


def numexpr_calls(w, n, data, threads):
    import numexpr

    if w.has("bf16"):
        raise TypeError("numexpr has no bfloat16")
    before, last, constants = parts(w, SIGMOID | MAXIMUM | ERF, typed=True)  # its own `maximum` widens f32
    whole = {}
    for name, e in before:
        whole[name] = Replaced(whole).visit(e)
    text = ast.unparse(Replaced(whole).visit(last))
    data |= constants

    def make(kind):
        # What `evaluate` looks up in each call.
        f = numexpr.NumExpr(text, [(k, numexpr.necompiler.getType(x)) for k, x in data.items()])
        args, empty = [*data.values()], lambda: np.empty(w.domain(n), DTYPES[w.out])
        into = lambda out: f(*args, out=out, casting="unsafe", ex_uses_vml=False)
        if kind == "out":
            return partial(into, empty())
        if w.mean:
            return lambda: f(*args).mean()  # its own sum of 2^24 f32 is wrong by more than the tolerance
        # It computes f16 in f32 and c64 in c128, from which it converts only into a given result.
        return (lambda: into(empty())) if w.has("f16", "c64") else lambda: f(*args)

    return make


def numba_calls(w, n, data, threads):
    import numba

    if w.has("f16", "bf16"):
        raise TypeError("Numba has no float16 and no bfloat16 on CPUs")
    names = named(math, "exp log sqrt tanh sin cos erf") | {"abs": abs, "prange": numba.prange}
    names["where"] = numba.njit(lambda c, x, y: x if c else y, inline="always")
    domain, args = w.domain(n), [*data.values()]

    def at(shape):
        """The place of an element in an operand of this shape, which is repeated where its extent is 1."""
        axes = enumerate(shape, len(domain) - len(shape))
        return ", ".join("0" if extent == 1 != domain[axis] else f"i{axis}" for axis, extent in axes)

    before, last, constants = parts(w, SIGMOID | MAXIMUM, typed=True)
    lines = [f"def f(out, {', '.join(f'all_{k}' for k in data)}):", "    total = 0.0"]
    largest = "out" if not w.mean else f"all_{next(iter(data))}"
    lines += [f"{'    ' * (axis + 1)}for i{axis} in {'range' if axis else 'prange'}({largest}.shape[{axis}]):" for axis in range(len(domain))]
    body = [f"{k} = all_{k}[{at(x.shape)}]" for k, x in data.items()] + [f"{k} = {ast.unparse(e)}" for k, e in before]
    body.append(f"{'total +=' if w.mean else f'out[{at(domain)}] ='} {ast.unparse(last)}")
    lines += ["    " * (len(domain) + 1) + text for text in body] + ["    return total"]

    def make(kind):
        # By Python's rules, each division would be checked for zero, which prevents SIMD.
        f = numba.njit(defined(lines, names | constants), parallel=threads > 1, error_model="numpy")
        empty = lambda: np.empty((1,) if w.mean else domain, DTYPES[w.out])
        given = empty()
        if w.mean:
            return lambda: np.float32(f(given, *args) / n)

        def into(out):
            f(out, *args)
            return out

        return lambda: into(given if kind == "out" else empty())

    return make


def torch_calls(w, n, data, threads, compiled):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    if compiled:
        torch.compiler.reset()  # else code for a workload's second size is for all sizes
    data = {k: torch.from_numpy(x).to(getattr(torch, DTYPES[w.inputs[k].dtype]), copy=True) for k, x in data.items()}
    names = named(torch, f"{FUNCTIONS} erf sigmoid {' '.join(OPS.values())}") | {"equal": torch.eq, "average": torch.mean}
    names["maximum"] = lambda x, c, out=None: torch.clamp(x, min=c, out=out)
    f, args = function(w, names), [*data.values()]

    def make(kind):
        if kind == "builtin":
            of = dict(zip(BUILTIN, [lambda x: F.gelu(x, approximate="tanh"), F.mse_loss, F.huber_loss]))[w.name]
            return lambda: of(*args)
        if not compiled:
            return (lambda: f(*args)) if kind == "fresh" else into_given(w, names, data)
        if kind == "fresh":
            g = torch.compile(f)
            return lambda: g(*args)
        out = torch.zeros(w.domain(n), dtype=getattr(torch, DTYPES[w.out]))
        g = torch.compile(lambda out, *xs: out.copy_(f(*xs)))
        return lambda: g(out, *args)

    return make


def jax_calls(w, n, data, threads):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", w.out == "f64")
    args = [jnp.array(x, DTYPES[w.inputs[k].dtype]) for k, x in data.items()]
    f = function(w, named(jnp, f"{FUNCTIONS} maximum") | {"erf": jax.scipy.special.erf, "sigmoid": jax.nn.sigmoid, "average": jnp.mean})

    def make(kind):
        if kind == "fresh":
            g = jax.jit(f)
            return lambda: g(*args).block_until_ready()
        g = jax.jit(lambda out, *xs: f(*xs), donate_argnums=0, keep_unused=True)
        state = [jnp.zeros(w.domain(n), DTYPES[w.out])]
        # The memory of the result before becomes that of this one.
        return lambda: state.append(g(state.pop(), *args).block_until_ready()) or state[0]

    return make


def paddle_calls(w, n, data, threads, static):
    import paddle
    import paddle.nn.functional as F

    paddle.set_device("cpu")
    paddle.disable_static()
    data = {k: paddle.to_tensor(x).astype(DTYPES[w.inputs[k].dtype]) for k, x in data.items()}
    names = named(paddle, f"{FUNCTIONS} erf") | {"sigmoid": F.sigmoid, "maximum": lambda x, c: paddle.clip(x, min=c), "average": paddle.mean}
    f = function(w, names)
    if not static:
        builtin = dict(zip(BUILTIN, [lambda x: F.gelu(x, approximate=True), F.mse_loss, F.smooth_l1_loss])).get(w.name)
        return lambda kind: lambda: (builtin if kind == "builtin" else f)(*data.values())
    feed = {k: x.value().get_tensor() for k, x in data.items()}  # the memory of `data`, which a run does not copy
    paddle.enable_static()

    def make(kind):
        program, executor = paddle.static.Program(), paddle.static.Executor(paddle.CPUPlace())
        with paddle.static.program_guard(program, paddle.static.Program()):
            y = f(*(paddle.static.data(k, i.shape(n), DTYPES[i.dtype]) for k, i in w.inputs.items()))
        return lambda: (data, executor.run(program, feed=feed, fetch_list=[y], return_numpy=kind == "fresh")[0])[1]

    return make


CALLS: dict[str, Callable] = {"numpy": numpy_calls, "numexpr": numexpr_calls, "numba": numba_calls, "jax": jax_calls}
CALLS |= {"torch": partial(torch_calls, compiled=False), "torch.compile": partial(torch_calls, compiled=True)}
CALLS |= {"paddle": partial(paddle_calls, static=False), "paddle.static": partial(paddle_calls, static=True)}


def kinds(library, w):
    yield "fresh"
    # A mean's temporaries can be given to NumPy and PyTorch.
    if library in ("numpy", "torch") or library != "paddle" and not w.mean:
        yield "out"
    if library in ("torch", "paddle") and w.name in BUILTIN:
        yield "builtin"


# ---- Verification ---------------------------------------------------------------------------------------------------


def expected(w, data):
    """The result by NumPy, of f64, complex128 or bool."""
    erf = np.frompyfunc(math.erf, 1, 1)
    names = named(np, f"{FUNCTIONS} maximum") | {"erf": lambda x: erf(x).astype(np.float64), "average": np.mean}
    wide = {"c64": np.complex128, "i32": np.int64}
    return np.asarray(function(w, names, SIGMOID)(*(x.astype(wide.get(w.inputs[k].dtype, np.float64)) for k, x in data.items())))


def verify(row, w, result, want, tolerance):
    """The error is that of benches/workloads/data.rs, and of booleans the fraction that is wrong."""
    result = result if hasattr(result, "dtype") else np.array(result)  # a tensor of `paddle.static`
    dtype = str(result.dtype).split(".")[-1]
    if dtype == "bfloat16":
        result = result.float() if hasattr(result, "float") else result.astype("float32")
    elif dtype == "uint16" and w.out == "bf16":  # bf16 of `paddle.static`
        dtype, result = "bfloat16", (result.astype(np.uint32) << 16).view(np.float32)
    got, error = np.asarray(result), math.inf
    if got.shape == want.shape and want.dtype == bool:
        error = float(np.mean(got != want))
    elif got.shape == want.shape:
        size = np.abs(want)
        error = float((np.abs(got.astype(want.dtype) - want) / np.maximum(size, size.mean())).max())
    row["max_rel_err"] = error if error < math.inf else sys.float_info.max  # JSON has no infinity, and NaN is never right
    row |= {"out_dtype": dtype, "ok": dtype == DTYPES[w.out] and row["max_rel_err"] <= tolerance}


# ---- A library's process, and all of them ---------------------------------------------------------------------------


def filled(o, row, w, n, data, want, tolerance):
    """The row with its error and its time, for `compile` that of the first call; or with the reason why there is none."""
    try:
        make = CALLS[o.peer](w, n, dict(data), o.threads)
        start = time.perf_counter()
        call = make("fresh" if o.compile else row["variant"])
        result, first = call(), time.perf_counter() - start
        verify(row, w, result, want, tolerance)
        del result
        row["median_s"] = first if o.compile else measured(call, 0.02 if o.small else 0.3)
    except Exception as e:
        row["unsupported"] = (str(e).strip().splitlines() or [type(e).__name__])[0]
    return row


def workload_rows(o):
    for w in (w for w in WORKLOADS if re.search(o.only, w.name)):
        most = (2 * ROW_OF_PIXELS if w.name == "cast_u8_f32" else 1 << 12) if o.small else math.inf
        tolerance, note = LESS_PRECISE.get((o.peer, w.name), (TOLERANCE[w.out], None))
        for n in sorted({min(n, most) for n in w.sizes}):
            data = operands(w, n)
            want = expected(w, data)
            for kind in kinds(o.peer, w):
                row = {"peer": o.peer, "workload": w.name, "size": n, "threads": o.threads, "variant": kind}
                row |= {"note": note} if note else {}
                yield filled(o, row, w, n, data, want, tolerance)


def compile_rows(o):
    """Chains on 16 elements: the first one of the process, then three of each length, with constants of their own."""
    sys.setrecursionlimit(100_000)  # for the text of the longest chain
    data = {k: np.array([0.5 + (i * 5 + at * 3) % 16 / 32 for i in range(16)], np.float32) for at, k in enumerate("abcd")}
    later = [(ops, "later") for ops in ([10] if o.small else [10, 100, 1000]) for _ in range(3)]
    for seed, (ops, variant) in enumerate([(10, "first_in_process"), *later]):
        row, w = {"peer": o.peer, "workload": "compile", "size": ops, "threads": 1, "variant": variant}, line(ops, seed)
        yield filled(o, row, w, 16, data, expected(w, data), 1e-4)


def library_process(o):
    """Prints the rows of one library. Returns whether they are right."""
    try:
        importlib.import_module(LIBRARIES[o.peer])
    except ImportError as e:
        print(f"{o.peer} is left out: {e}", file=sys.stderr)
        return True
    if o.threads == 1 and not o.compile and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one thread stays on one core
    right = True
    for row in compile_rows(o) if o.compile else workload_rows(o):
        print(json.dumps(row), flush=True)
        wrong = f"WRONG: {row['out_dtype']}, error {row['max_rel_err']:.1e}" if row.get("ok") is False else ""
        if why := row.get("unsupported", wrong):
            print(f"{o.peer}, {row['workload']}, {row['size']}, {row['variant']}: {why}", file=sys.stderr)
        right &= not wrong
    return right


def run(o, peer, *more):
    """Runs a library in its own process and prints its rows. Returns whether they are right."""
    env = {k: v for k, v in environment(o.threads).items() if not k.startswith("OPENBLAS_")}
    env |= {name: str(o.threads) for name in ["NUMEXPR_MAX_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"]}
    # With one thread, `paddle.static` would else hand each op to another thread.
    env |= {"FLAGS_new_executor_serial_run": str(int(o.threads == 1)), "GLOG_minloglevel": "2"}
    env |= {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"} if more else {}
    command = [sys.executable, __file__, "--peer", peer, "--threads", str(o.threads), "--only", o.only, *more] + ["--small"] * o.small
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as child:
        for text in child.stdout:
            if text.startswith("{"):  # libraries print as well
                print(text, end="", flush=True)
    if child.returncode not in (0, 1):
        print(f"{peer} ended with {child.returncode}", file=sys.stderr)
    return child.returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", help="only workloads whose names match this regular expression")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--small", action="store_true", help="a smoke test, whose times mean nothing")
    p.add_argument("--libraries", default=",".join(LIBRARIES), help="only these, with commas")
    p.add_argument("--peer", choices=LIBRARIES, help=argparse.SUPPRESS)
    p.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.peer:
        return int(not library_process(o))
    right, libraries = True, o.libraries.split(",")
    if unknown := set(libraries) - set(LIBRARIES):
        p.error(f"unknown: {', '.join(sorted(unknown))}")
    for peer in libraries:
        if peer == "numpy" and o.threads > 1:
            print("numpy is left out: it has one thread", file=sys.stderr)
            continue
        right &= run(o, peer)
        if o.threads == 1 and re.search(o.only, "compile"):
            right &= run(o, peer, "--compile")
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
