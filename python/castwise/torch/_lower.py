"""What each op of an FX graph is in the text of a castwise program.

Guarantees: an overload of PyTorch whose arguments are the operands of a castwise op of the same name is that op; the
table below has the others. A node is lowered only if castwise infers the dtype and shape that PyTorch's meta kernel
gave. Does not: decide dtypes, or run anything.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any, Callable, Sequence

import torch
from torch.fx import Node

from .. import _core

aten, prims = torch.ops.aten, torch.ops.prims

#: An operand: the name of a value (``%3``), or a Python number.
Operand = Any


class Unsupported(Exception):
    """The op, or these arguments of it, stay with PyTorch."""


_DTYPES = {
    getattr(torch, name): short
    for short, name in {
        "bool": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
        "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
        "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
        "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
        "c32": "complex32", "c64": "complex64", "c128": "complex128",
    }.items()
}  # fmt: skip

_HALVES = (torch.float16, torch.bfloat16)


def dtype_name(dtype: torch.dtype) -> str:
    """castwise's name of a dtype."""
    try:
        return _DTYPES[dtype]
    except KeyError:
        raise Unsupported(f"castwise lacks {dtype}") from None


def tensor_of(node: Node) -> torch.Tensor:
    """The fake tensor of a node that castwise can hold: on the CPU, strided, of a dtype of castwise."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        raise Unsupported("not a strided tensor on the CPU")
    dtype_name(value.dtype)
    return value


def _dim(extent: Any) -> str:
    if isinstance(extent, int):
        return str(extent)
    name = str(extent)
    return name if name.isidentifier() else "?"


def _element(value: Any, dtype: torch.dtype) -> str:
    """A number as an element of a constant."""
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_complex:
        z = complex(value)
        return f"({_float(z.real)}, {_float(z.imag)})"
    if not dtype.is_floating_point:
        return str(int(value))
    # Rounded by PyTorch, because a number beyond the dtype's range is an error in the text.
    return _float(torch.tensor(value, dtype=torch.float64).to(dtype).item())


def _float(value: float) -> str:
    return "nan" if math.isnan(value) else repr(value)


class Text:
    """The text of a program that is being written."""

    def __init__(self) -> None:
        self.feeds: list[str] = []
        self.lines: list[str] = []
        #: Lines that compute: neither views nor constants.
        self.computed = 0

    def feed(self, value: torch.Tensor) -> str:
        name = f"%a{len(self.feeds)}"
        dims = ", ".join(_dim(n) for n in value.shape)
        self.feeds.append(f"{name}: {dtype_name(value.dtype)}[{dims}]")
        return name

    def _line(self, line: str) -> str:
        self.lines.append(f"  %{len(self.lines)} = {line}\n")
        return f"%{len(self.lines) - 1}"

    def op(self, name: str, *operands: Operand, attrs: str = "") -> str:
        """Applies an op."""
        self.computed += 1
        return self._line(f"{name} {', '.join(map(_operand, operands))}{attrs and f' {{{attrs}}}'}")

    def view(self, name: str, x: Operand, attrs: str) -> str:
        """Applies a view, or a conversion of bits."""
        return self._line(f"{name} {x} {{{attrs}}}")

    def cast(self, x: Operand, dtype: torch.dtype) -> str:
        return self.op("cast", x, attrs=f"dtype = {dtype_name(dtype)}")

    def constant(self, value: Any, dtype: torch.dtype, shape: Sequence[Any] = ()) -> str:
        if not all(isinstance(n, int) for n in shape):
            raise Unsupported("a constant of dynamic shape")
        to = f" to {list(shape)}" if len(shape) else ""
        return self._line(f"constant {dtype_name(dtype)}[] [{_element(value, dtype)}]{to}")

    def program(self, results: Sequence[str]) -> str:
        """The whole text."""
        head = f"program(rules = torch{_settings()}) ({', '.join(self.feeds)})"
        return f"castwise 1\n{head} {{\n{''.join(self.lines)}  fetch {', '.join(results)}\n}}\n"


def _contracts() -> bool:
    """Whether PyTorch's loops contract products and sums: where its code is built for instructions that do."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def _settings() -> str:
    default = torch.get_default_dtype()
    return (", contraction = torch" if _contracts() else "") + (
        "" if default == torch.float32 else f", default = {dtype_name(default)}"
    )


def _operand(x: Operand) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return f"~{str(x).lower()}"
    if isinstance(x, int):
        if not -(2**63) <= x < 2**64:
            raise Unsupported("an integer beyond 64 bits")
        return f"~{x}"
    if isinstance(x, float):
        return f"~{_float(x)}"
    if isinstance(x, complex):
        return f"~({_float(x.real)}, {_float(x.imag)})"
    raise Unsupported(f"an operand that is a {type(x).__name__}")


# The table. A function takes the text, the node, and the node's arguments, in which nodes are names of values.

Lowering = Callable[..., str]
_TABLE: dict[Any, Lowering] = {}
#: Overloads that give an alias of their first argument.
VIEWS: set[Any] = set()


def _row(*overloads: Any, view: bool = False) -> Callable[[Lowering], Lowering]:
    def add(f: Lowering) -> Lowering:
        for o in overloads:
            _TABLE[o] = f
            if view:
                VIEWS.add(o)
        return f

    return add


#: Names in PyTorch of ops that have another name in castwise.
_RENAMED = {
    "conj_physical": "conj", "_conj": "conj", "bitwise_not": "bitwise_not", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
}  # fmt: skip


@functools.cache
def _names() -> dict[str, _core.OpFunction]:
    ops = [_core.op(name) for name in _core.op_names()]
    return {alias: op for op in ops for alias in (op.__name__, *op.aliases)}


@functools.cache
def _derived(overload: Any) -> str | None:
    """The castwise op of the same name, if its operands are the overload's arguments."""
    if not isinstance(overload, torch._ops.OpOverload) or overload.namespace != "aten":
        return None
    schema = overload._schema
    name = schema.name.split("::")[1].removeprefix("special_")
    op = _names().get(_RENAMED.get(name, name))
    numbers = ("Tensor", "number")
    plain = all(str(a.type) in numbers and not a.kwarg_only for a in schema.arguments)
    if op is None or schema.is_mutable or not plain or len(schema.arguments) != len(op.operands):
        return None
    return op.__name__ if [str(r.type) for r in schema.returns] == ["Tensor"] else None


VIEWS.add(aten._conj.default)


@_row(aten.add.Tensor, aten.add.Scalar)
def _add(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return t.op("add", x, y) if alpha == 1 else t.op("add_scaled", x, y, alpha)


@_row(aten.sub.Tensor, aten.sub.Scalar)
def _sub(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return t.op("sub", x, y) if alpha == 1 else t.op("sub_scaled", x, y, alpha)


@_row(aten.rsub.Tensor, aten.rsub.Scalar)
def _rsub(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return _sub(t, n, y, x, alpha)


@_row(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _div(t: Text, n: Node, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    return t.op({None: "div", "floor": "floor_divide", "trunc": "div_trunc"}[rounding_mode], x, y)


@_row(prims.fma.default)
def _fma(t: Text, n: Node, x: Operand, y: Operand, z: Operand) -> str:
    # PyTorch's eager kernel of it rounds the product.
    return t.op("add", t.op("mul", x, y), z)


@_row(aten.pow.Tensor_Scalar)
def _pow(t: Text, n: Node, x: Operand, y: Any) -> str:
    # PyTorch's kernel of bf16 multiplies twice, and rounds twice; that of f16 rounds once.
    if y == 3 and tensor_of(n).dtype == torch.bfloat16:
        return t.op("mul", t.op("mul", x, x), x)
    return t.op("pow", x, y)


@_row(aten.clamp.default, aten.clamp.Tensor)
def _clamp(t: Text, n: Node, x: Operand, min: Operand = None, max: Operand = None) -> str:
    if max is None:
        return t.op("clamp_min", x, min)
    return t.op("clamp_max", x, max) if min is None else t.op("clamp", x, min, max)


@_row(aten.hardtanh.default)
def _hardtanh(t: Text, n: Node, x: Operand, min_val: Any = -1, max_val: Any = 1) -> str:
    return t.op("clamp", x, min_val, max_val)


@_row(aten.leaky_relu.default)
def _leaky_relu(t: Text, n: Node, x: Operand, negative_slope: Any = 0.01) -> str:
    return t.op("where", t.op("gt", x, 0), x, t.op("mul", x, negative_slope))


@_row(aten.gelu.default)
def _gelu(t: Text, n: Node, x: Operand, approximate: str = "none") -> str:
    return t.op("gelu" if approximate == "none" else "gelu_tanh", x)


@_row(aten.softplus.default)
def _softplus(t: Text, n: Node, x: Operand, beta: Any = 1, threshold: Any = 20) -> str:
    if (beta, threshold) != (1, 20):
        raise Unsupported("parameters of softplus")
    return t.op("softplus", x)


@_row(aten.addcmul.default)
def _addcmul(t: Text, n: Node, x: Operand, a: Operand, b: Operand, value: Any = 1) -> str:
    return t.op("addcmul", x, a, b, value)


@_row(aten.addcdiv.default)
def _addcdiv(t: Text, n: Node, x: Operand, a: Operand, b: Operand, value: Any = 1) -> str:
    return t.op("addcdiv", x, a, b, value)


def _reduced(t: Text, loss: str, reduction: int) -> str:
    return loss if reduction == 0 else t.op({1: "mean", 2: "sum"}[reduction], loss)


@_row(aten.mse_loss.default)
def _mse(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1) -> str:
    return _reduced(t, t.op("squared_difference", x, y), reduction)


@_row(aten.smooth_l1_loss.default)
def _smooth_l1(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1, beta: float = 1.0) -> str:
    return _reduced(t, t.op("smooth_l1", x, y, beta), reduction)


@_row(aten.huber_loss.default)
def _huber(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1, delta: float = 1.0) -> str:
    return _reduced(t, t.op("huber", x, y, delta), reduction)


def _in_f32(t: Text, n: Node, *values: str) -> list[str]:
    """Halves as f32, in which PyTorch's kernels of these formulas compute."""
    return [t.cast(v, torch.float32) for v in values] if tensor_of(n).dtype in _HALVES else list(values)


def _rounded(t: Text, n: Node, x: str) -> str:
    dtype = tensor_of(n).dtype
    return t.cast(x, dtype) if dtype in _HALVES else x


@_row(aten.sigmoid_backward.default)
def _sigmoid_backward(t: Text, n: Node, grad: str, y: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    grad, y = _in_f32(t, n, grad, y)
    return _rounded(t, n, t.op("mul", t.op("mul", grad, t.op("sub", 1, y)), y))


@_row(aten.tanh_backward.default)
def _tanh_backward(t: Text, n: Node, grad: str, y: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    if tensor_of(n).dtype == torch.float32 and _contracts():
        # PyTorch's loop of f32, and of no other dtype, has a fused multiply-add here.
        return t.op("mul", grad, t.op("fma", t.op("neg", y), y, t.constant(1, torch.float32)))
    grad, y = _in_f32(t, n, grad, y)
    return _rounded(t, n, t.op("mul", grad, t.op("sub", 1, t.op("mul", y, y))))


@_row(aten.threshold_backward.default)
def _threshold_backward(t: Text, n: Node, grad: str, x: str, threshold: Any) -> str:
    return t.op("where", t.op("le", x, threshold), t.constant(0, tensor_of(n).dtype), grad)


@_row(aten.silu_backward.default)
def _silu_backward(t: Text, n: Node, grad: str, x: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    grad, x = _in_f32(t, n, grad, x)
    s = t.op("sigmoid", x)
    slope = t.op("add", t.op("mul", x, t.op("sub", 1, s)), 1)
    return _rounded(t, n, t.op("mul", t.op("mul", grad, s), slope))


@_row(aten.gelu_backward.default)
def _gelu_backward(t: Text, n: Node, grad: str, x: str, approximate: str = "none") -> str:
    grad, x = _in_f32(t, n, grad, x)
    if approximate == "none":
        cdf = t.op("mul", t.op("add", t.op("erf", t.op("mul", x, math.sqrt(0.5))), 1), 0.5)
        pdf = t.op("mul", t.op("exp", t.op("mul", t.op("mul", x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
        return _rounded(t, n, t.op("mul", grad, t.op("add", cdf, t.op("mul", x, pdf))))
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    square = t.op("mul", x, x)
    th = t.op("tanh", t.op("mul", t.op("add", x, t.op("mul", t.op("mul", square, x), kappa)), beta))
    left = t.op("mul", t.op("add", th, 1), 0.5)
    inner = t.op("mul", t.op("add", t.op("mul", square, 3 * kappa), 1), beta)
    right = t.op("mul", t.op("mul", t.op("mul", x, 0.5), t.op("sub", 1, t.op("mul", th, th))), inner)
    return _rounded(t, n, t.op("mul", grad, t.op("add", left, right)))


@_row(aten._softmax.default, aten._log_softmax.default)
def _softmax(t: Text, n: Node, x: str, dim: int, half_to_float: bool) -> str:
    if half_to_float:
        raise Unsupported("half_to_float")
    (x,) = _in_f32(t, n, x)
    attrs = f"dims = [{dim}], keepdim"
    shifted = t.op("sub", x, t.op("amax", x, attrs=attrs))
    powers = t.op("exp", shifted)
    total = t.op("sum", powers, attrs=attrs)
    if n.target is aten._softmax.default:
        return _rounded(t, n, t.op("div", powers, total))
    return _rounded(t, n, t.op("sub", shifted, t.op("log", total)))


@_row(aten._softmax_backward_data.default)
def _softmax_backward(t: Text, n: Node, grad: str, y: str, dim: int, input_dtype: torch.dtype) -> str:
    if input_dtype != tensor_of(n).dtype:
        raise Unsupported("half_to_float")
    grad, y = _in_f32(t, n, grad, y)
    total = t.op("sum", t.op("mul", grad, y), attrs=f"dims = [{dim}], keepdim")
    return _rounded(t, n, t.op("mul", t.op("sub", grad, total), y))


@_row(aten._log_softmax_backward_data.default)
def _log_softmax_backward(t: Text, n: Node, grad: str, y: str, dim: int, input_dtype: torch.dtype) -> str:
    if input_dtype != tensor_of(n).dtype:
        raise Unsupported("half_to_float")
    grad, y = _in_f32(t, n, grad, y)
    total = t.op("sum", grad, attrs=f"dims = [{dim}], keepdim")
    return _rounded(t, n, t.op("sub", grad, t.op("mul", t.op("exp", y), total)))


def _reduce(
    t: Text, name: str, x: str, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> str:
    parts = [] if dims is None else [f"dims = {[dims] if isinstance(dims, int) else list(dims)}"]
    parts += ["keepdim"] if keepdim else []
    parts += [f"dtype = {dtype_name(dtype)}"] if dtype is not None else []
    return t.op(name, x, attrs=", ".join(parts))


@_row(aten.sum.default, aten.mean.default, aten.prod.default)
def _whole(t: Text, n: Node, x: str, dtype: torch.dtype | None = None) -> str:
    return _reduce(t, _base(n), x, dtype=dtype)


@_row(aten.max.default, aten.min.default)
def _extreme(t: Text, n: Node, x: str) -> str:
    return _reduce(t, "a" + _base(n), x)


@_row(aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int)
def _some(
    t: Text, n: Node, x: str, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> str:
    return _reduce(t, _base(n), x, None if dims in (None, []) else dims, keepdim, dtype)


@_row(aten.amax.default, aten.amin.default)
def _extremes(t: Text, n: Node, x: str, dim: Any = (), keepdim: bool = False) -> str:
    return _reduce(t, _base(n), x, dim or None, keepdim)


@_row(aten.any.dim, aten.any.dims, aten.all.dim, aten.all.dims)
def _truth(t: Text, n: Node, x: str, dim: Any = None, keepdim: bool = False) -> str:
    if dim == []:
        raise Unsupported("an empty list of dims")
    return _reduce(t, _base(n), x, dim, keepdim)


def _base(n: Node) -> str:
    assert isinstance(n.target, torch._ops.OpOverload)
    return n.target._schema.name.split("::")[1]


# Conversions, copies and constants.


@_row(prims.convert_element_type.default)
def _convert(t: Text, n: Node, x: str, dtype: torch.dtype) -> str:
    return t.cast(x, dtype)


@_row(aten._to_copy.default)
def _to_copy(t: Text, n: Node, x: str, dtype: torch.dtype | None = None, **_others: Any) -> str:
    return t.cast(x, tensor_of(n).dtype)


@_row(aten.clone.default)
def _clone(t: Text, n: Node, x: str, memory_format: Any = None) -> str:
    return x


@_row(aten.copy.default)
def _copy(t: Text, n: Node, x: str, source: str, non_blocking: bool = False) -> str:
    value, dtype = tensor_of(n), tensor_of(n).dtype
    source_node = n.args[1]
    if not isinstance(source_node, Node) or tensor_of(source_node).shape != value.shape:
        raise Unsupported("a copy that broadcasts")
    return source if tensor_of(source_node).dtype == dtype else t.cast(source, dtype)


@_row(aten.full.default)
def _full(t: Text, n: Node, size: Any, value: Any, **_others: Any) -> str:
    _operand(value)
    return t.constant(value, tensor_of(n).dtype, tensor_of(n).shape)


@_row(aten.scalar_tensor.default)
def _scalar_tensor(t: Text, n: Node, value: Any, **_others: Any) -> str:
    _operand(value)
    return t.constant(value, tensor_of(n).dtype)


@_row(aten.full_like.default, aten.zeros_like.default, aten.ones_like.default)
def _full_like(t: Text, n: Node, x: str, value: Any = None, **_others: Any) -> str:
    value = {"zeros_like": 0, "ones_like": 1}.get(_base(n), value)
    _operand(value)
    made = tensor_of(n)
    if all(isinstance(extent, int) for extent in made.shape):
        return t.constant(value, made.dtype, made.shape)
    constant = t.constant(value, made.dtype)
    return t.op("where", t.op("logical_or", t.op("isnan", x), True), constant, constant)


# Views. Sizes that are not numbers are written as -1 where one can be.


@_row(aten.alias.default, aten.detach.default, aten.lift_fresh.default, view=True)
def _alias(t: Text, n: Node, x: str) -> str:
    return x


@_row(aten.view.default, aten._unsafe_view.default, aten.reshape.default, view=True)
def _view(t: Text, n: Node, x: str, _size: Any) -> str:
    shape = [extent if isinstance(extent, int) else -1 for extent in tensor_of(n).shape]
    if shape.count(-1) > 1 or (-1 in shape and 0 in shape):
        raise Unsupported("several dynamic dims")
    return t.view("reshape", x, f"shape = {shape}")


@_row(aten.transpose.int, view=True)
def _transpose(t: Text, n: Node, x: str, a: int, b: int) -> str:
    return t.view("transpose", x, f"dims = [{a}, {b}]")


@_row(aten.t.default, view=True)
def _t(t: Text, n: Node, x: str) -> str:
    return x if tensor_of(n).ndim < 2 else t.view("transpose", x, "dims = [0, 1]")


@_row(aten.permute.default, view=True)
def _permute(t: Text, n: Node, x: str, dims: list[int]) -> str:
    return t.view("permute", x, f"dims = {list(dims)}")


@_row(aten.unsqueeze.default, view=True)
def _unsqueeze(t: Text, n: Node, x: str, dim: int) -> str:
    return t.view("unsqueeze", x, f"dim = {dim}")


@_row(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, view=True)
def _squeeze(t: Text, n: Node, x: str, dims: Any = None) -> str:
    shape = _argument(n).shape
    wanted = range(len(shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    for d in sorted({d % max(len(shape), 1) for d in wanted}, reverse=True):
        if len(shape) and isinstance(shape[d], int) and shape[d] == 1:
            x = t.view("squeeze", x, f"dim = {d}")
    return x


@_row(aten.slice.Tensor, view=True)
def _slice(t: Text, n: Node, x: str, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> str:
    bounds = {"start": start, "end": end if end is None or not isinstance(end, int) or end < 2**62 else None}
    given = [f"{k} = {_integer(v)}" for k, v in bounds.items() if v is not None]
    return t.view("slice", x, ", ".join([f"dim = {dim}", *given, f"step = {_integer(step)}"]))


@_row(aten.select.int, view=True)
def _select(t: Text, n: Node, x: str, dim: int, index: Any) -> str:
    start = _integer(index)
    end = "" if start == -1 else f", end = {start + 1}"
    return t.view("squeeze", t.view("slice", x, f"dim = {dim}, start = {start}{end}"), f"dim = {dim}")


@_row(aten.expand.default, view=True)
def _expand(t: Text, n: Node, x: str, _size: Any, implicit: bool = False) -> str:
    before, after = _argument(n).shape, tensor_of(n).shape
    shape: list[int] = []
    for i, extent in enumerate(after, len(before) - len(after)):
        if isinstance(extent, int):
            shape.append(extent)
        elif i >= 0 and str(before[i]) == str(extent):
            shape.append(-1)
        else:
            raise Unsupported("expanded to a dynamic extent")
    return t.view("expand", x, f"shape = {shape}")


@_row(aten.flip.default)
def _flip(t: Text, n: Node, x: str, dims: list[int]) -> str:
    return t.view("flip", x, f"dims = {list(dims)}")


@_row(aten.view.dtype, view=True)
def _bits(t: Text, n: Node, x: str, dtype: torch.dtype) -> str:
    if dtype.itemsize != _argument(n).dtype.itemsize:
        raise Unsupported("another size of elements")
    return t.view("view_as", x, f"dtype = {dtype_name(dtype)}")


def _argument(n: Node) -> torch.Tensor:
    first = n.args[0]
    assert isinstance(first, Node)
    return tensor_of(first)


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise Unsupported("a dynamic bound")
    return value


# Lowering of nodes.


def lower(t: Text, n: Node, names: dict[Node, str]) -> str:
    """Writes a node whose tensor arguments have names, and gives its name.

    Raises:
        Unsupported: castwise has no such op, or not for these arguments.
    """
    name = lambda a: names[a] if isinstance(a, Node) else a  # noqa: E731
    args, kwargs = torch.fx.node.map_arg((n.args, dict(n.kwargs)), name)
    args = [list(a) if isinstance(a, (list, tuple)) else a for a in args]
    if (row := _TABLE.get(n.target)) is not None:
        try:
            return row(t, n, *args, **{k: v for k, v in kwargs.items() if v is not None or k in ("min", "max")})
        except TypeError as e:
            raise Unsupported(str(e)) from None
    if (op := _derived(n.target)) is not None and not kwargs:
        return t.op(op, *args)
    raise Unsupported(f"castwise has no {n.target}")


def check(n: Node) -> None:
    """Lowers a node alone, and compares what castwise infers with the node's dtype and shape.

    Raises:
        Unsupported: the node can't be lowered, or castwise would give another dtype or shape.
    """
    made = tensor_of(n)
    if n.target not in VIEWS and not dense(made):
        raise Unsupported("a result whose memory has gaps")
    t = Text()
    names: dict[Node, str] = {}
    for source in n.all_input_nodes:
        names[source] = t.feed(tensor_of(source))
    # Its own line, so that the type of a feed or constant is written too.
    result = lower(t, n, names)
    wanted = f"{dtype_name(made.dtype)}[{', '.join(_dim(e) for e in made.shape)}]"
    if not _fits(_inferred(t.program([result]), result), wanted):
        raise Unsupported("castwise infers another type")


@functools.lru_cache(maxsize=4096)
def _inferred(text: str, result: str) -> str:
    try:
        typed = _core.Program.parse(text).infer()
    except Exception as e:
        raise Unsupported(str(e)) from None
    # Casts are lines of their own, so the result's number is that of the typed program's fetch.
    fetched = typed.rsplit("fetch ", 1)[1].split()[0]
    found = re.search(rf"{re.escape(fetched)}: (\w+\*?\[[^\]]*\])", typed)
    if found is None:
        raise Unsupported("castwise infers no type")
    return found[1]


def _fits(found: str, wanted: str) -> bool:
    """Whether two types agree as far as their dims are numbers."""
    (a, _, a_dims), (b, _, b_dims) = found.partition("["), wanted.partition("[")
    xs, ys = ([d for d in dims.rstrip("]").split(", ") if d] for dims in (a_dims, b_dims))
    numbers = lambda x, y: x == y or not (x.isdigit() and y.isdigit())  # noqa: E731
    return a == b and len(xs) == len(ys) and all(map(numbers, xs, ys))


def _hint(n: Any) -> int:
    """An extent's value when the graph was traced. Asking for it makes no guard."""
    return n if isinstance(n, int) else int(n.node.hint)


def memory_order(value: torch.Tensor) -> list[int]:
    """The dims in the order of memory, the outermost first."""
    strides = [_hint(s) for s in value.stride()]
    return sorted(range(value.ndim), key=lambda d: (-strides[d], d))


def dense(value: torch.Tensor) -> bool:
    """Whether elements lie without gaps, in any order of dims."""
    sizes, strides, expected = [_hint(n) for n in value.shape], [_hint(s) for s in value.stride()], 1
    if 0 in sizes:
        return True
    for d in sorted((d for d in range(value.ndim) if sizes[d] != 1), key=lambda d: (strides[d], -d)):
        if strides[d] != expected:
            return False
        expected *= sizes[d]
    return True
