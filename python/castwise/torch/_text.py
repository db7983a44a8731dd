"""The text of a castwise program, and the table of what PyTorch's ops are in it.

Guarantees: dtypes and numbers are written as castwise reads them. Does not: know ops; the modules beside it fill the table.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch
from torch.fx import Node

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

HALVES = (torch.float16, torch.bfloat16)


def dtype_name(dtype: torch.dtype) -> str:
    """castwise's name of a dtype."""
    try:
        return _DTYPES[dtype]
    except KeyError:
        raise Unsupported(f"castwise lacks {dtype}") from None


def tensor_of(node: Node) -> torch.Tensor:
    """The fake tensor of a node that castwise can hold: on the CPU, strided, of a dtype of castwise."""
    return held(node.meta.get("val"))


def held(value: Any) -> torch.Tensor:
    """The same, of a node's value."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        raise Unsupported("not a strided tensor on the CPU")
    dtype_name(value.dtype)
    return value


def dim_text(extent: Any) -> str:
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
        return f"({float_text(z.real)}, {float_text(z.imag)})"
    if not dtype.is_floating_point:
        return str(int(value))
    # Rounded by PyTorch, because a number beyond the dtype's range is an error in the text.
    return float_text(torch.tensor(value, dtype=torch.float64).to(dtype).item())


def float_text(value: float) -> str:
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
        dims = ", ".join(dim_text(n) for n in value.shape)
        self.feeds.append(f"{name}: {dtype_name(value.dtype)}[{dims}]")
        return name

    def _line(self, line: str) -> str:
        self.lines.append(f"  %{len(self.lines)} = {line}\n")
        return f"%{len(self.lines) - 1}"

    def op(self, name: str, *operands: Operand, attrs: str = "") -> str:
        """Applies an op."""
        self.computed += 1
        return self._line(f"{name} {', '.join(map(operand_text, operands))}{attrs and f' {{{attrs}}}'}")

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

    def program(self, results: Sequence[str], relaxed: bool = False) -> str:
        """The whole text."""
        rounding = ", rounding = relaxed" if relaxed else ""
        head = f"program(rules = torch{rounding}{settings()}) ({', '.join(self.feeds)})"
        return f"castwise 1\n{head} {{\n{''.join(self.lines)}  fetch {', '.join(results)}\n}}\n"


def contracts() -> bool:
    """Whether PyTorch's loops contract products and sums: where its code is built for instructions that do."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def settings() -> str:
    default = torch.get_default_dtype()
    return (", contraction = torch" if contracts() else "") + (
        "" if default == torch.float32 else f", default = {dtype_name(default)}"
    )


def operand_text(x: Operand) -> str:
    if isinstance(x, str):
        return x
    if isinstance(x, bool):
        return f"~{str(x).lower()}"
    if isinstance(x, int):
        if not -(2**63) <= x < 2**64:
            raise Unsupported("an integer beyond 64 bits")
        return f"~{x}"
    if isinstance(x, float):
        return f"~{float_text(x)}"
    if isinstance(x, complex):
        return f"~({float_text(x.real)}, {float_text(x.imag)})"
    raise Unsupported(f"an operand that is a {type(x).__name__}")


# The table. A function takes the text, the node, and the node's arguments, in which nodes are names of values.

#: The name of a result; of an op with several results the names of all, with None for one that castwise lacks.
Lowered = str | tuple[str | None, ...]
Lowering = Callable[..., Lowered]
TABLE: dict[Any, Lowering] = {}
#: Overloads that give an alias of their first argument.
VIEWS: set[Any] = set()


def row(*overloads: Any, view: bool = False) -> Callable[[Lowering], Lowering]:
    def add(f: Lowering) -> Lowering:
        for o in overloads:
            TABLE[o] = f
            if view:
                VIEWS.add(o)
        return f

    return add


def in_f32(t: Text, n: Node, *values: str) -> list[str]:
    """Halves as f32, in which PyTorch's kernels of these formulas compute."""
    return [t.cast(v, torch.float32) for v in values] if tensor_of(n).dtype in HALVES else list(values)


def rounded(t: Text, n: Node, x: str) -> str:
    dtype = tensor_of(n).dtype
    return t.cast(x, dtype) if dtype in HALVES else x


def base(n: Node) -> str:
    assert isinstance(n.target, torch._ops.OpOverload)
    return n.target._schema.name.split("::")[1]


def argument(n: Node) -> torch.Tensor:
    first = n.args[0]
    assert isinstance(first, Node)
    return tensor_of(first)


def integer(value: Any) -> int:
    if not isinstance(value, int):
        raise Unsupported("a dynamic bound")
    return value
