"""Which nodes of an FX graph castwise computes, and as what.

Guarantees: an overload of PyTorch whose arguments are the operands of a castwise op of the same name is that op; the
table has the others. A node is lowered only if castwise infers the dtypes and shapes that PyTorch's meta kernel gave. Does not:
decide dtypes, or run anything.
"""

from __future__ import annotations

import functools
import operator
import re
from typing import Any

import torch
from torch.fx import Node

from .. import _core
from . import _pointwise, _reduce, _views  # noqa: F401
from ._text import TABLE, VIEWS, Lowered, Text, Unsupported, dim_text, dtype_name, held, tensor_of


#: Names in PyTorch of ops that have another name in castwise.
_RENAMED = {
    "conj_physical": "conj", "_conj": "conj", "bitwise_not": "bitwise_not", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift", "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor",
}  # fmt: skip


#: Ops that take any of several equal elements, which shows in the sign of a zero.
_UNORDERED = ("median", "nanmedian")


@functools.cache
def _names() -> dict[str, _core.Function]:
    ops = [_core.op(name) for name in _core.op_names()]
    return {alias: op for op in ops for alias in (op.__name__, *op.aliases)}


@functools.cache
def _derived(overload: Any) -> str | None:
    """The castwise op of the same name, if its operands are the overload's arguments."""
    if not isinstance(overload, torch._ops.OpOverload) or overload.namespace != "aten":
        return None
    schema = overload._schema
    name = schema.name.split("::")[1].removeprefix("special_")
    if name in _UNORDERED:
        return None
    op = _names().get(_RENAMED.get(name, name))
    numbers = ("Tensor", "number")
    plain = all(str(a.type) in numbers and not a.kwarg_only for a in schema.arguments)
    if op is None or schema.is_mutable or not plain or len(schema.arguments) != len(op.operands):
        return None
    return op.__name__ if [str(r.type) for r in schema.returns] == ["Tensor"] else None


def lower(t: Text, n: Node, names: dict[Node, Lowered]) -> Lowered:
    """Writes a node whose tensor arguments have names, and gives its name; several of a node with several results.

    Raises:
        Unsupported: castwise has no such op, or not for these arguments.
    """
    name = lambda a: names[a] if isinstance(a, Node) else a  # noqa: E731
    if n.target is operator.getitem:
        source, at = n.args
        assert isinstance(source, Node) and isinstance(at, int)
        made = names[source]
        found = made[at] if isinstance(made, tuple) else None
        if found is None:
            raise Unsupported("a result that castwise lacks")
        return found
    given, kwargs = torch.fx.node.map_arg((n.args, dict(n.kwargs)), name)
    args: list[Any] = [list(a) if isinstance(a, (list, tuple)) else a for a in given]
    if (lowering := TABLE.get(n.target)) is not None:
        try:
            return lowering(t, n, *args, **{k: v for k, v in kwargs.items() if v is not None or k in ("min", "max")})
        except TypeError as e:
            raise Unsupported(str(e)) from None
    if (op := _derived(n.target)) is not None and not kwargs:
        return t.op(op, *args)
    raise Unsupported(f"castwise has no {n.target}")


def check(n: Node) -> None:
    """Lowers a node alone, and compares what castwise infers with the node's dtypes and shapes.

    Raises:
        Unsupported: the node can't be lowered, or castwise would give another dtype or shape.
    """
    value = n.meta.get("val")
    several = isinstance(value, (list, tuple))
    used = {u.args[1] for u in n.users} if several else {0}
    if several and not all(u.target is operator.getitem for u in n.users):
        raise Unsupported("results that are used as a whole")
    t = Text()
    names: dict[Node, Lowered] = {source: t.feed(tensor_of(source)) for source in n.all_input_nodes}
    # Its own line, so that the type of a feed or constant is written too.
    lowered = lower(t, n, names)
    values, results = (value, lowered) if isinstance(value, (list, tuple)) else ((value,), (lowered,))
    for at, (made, result) in enumerate(zip(values, results, strict=True)):
        if at not in used:
            continue
        made = held(made)
        if n.target not in VIEWS and not dense(made):
            raise Unsupported("a result whose memory has gaps")
        wanted = f"{dtype_name(made.dtype)}[{', '.join(dim_text(e) for e in made.shape)}]"
        if not isinstance(result, str) or not _fits(_inferred(t.program([result]), result), wanted):
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
