"""Views of PyTorch in castwise's views. Sizes that are not numbers are written as -1 where one can be.

Guarantees: an overload that gives an alias of its first argument is one of `VIEWS`. Does not: decide shapes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ._text import VIEWS, Text, Unsupported, argument, dtype_name, integer, row, tensor_of

aten = torch.ops.aten

VIEWS.add(aten._conj.default)


@row(aten.alias.default, aten.detach.default, aten.lift_fresh.default, view=True)
def _alias(t: Text, n: Node, x: str) -> str:
    return x


@row(aten.view.default, aten._unsafe_view.default, aten.reshape.default, view=True)
def _view(t: Text, n: Node, x: str, _size: Any) -> str:
    shape = [extent if isinstance(extent, int) else -1 for extent in tensor_of(n).shape]
    if shape.count(-1) > 1 or (-1 in shape and 0 in shape):
        raise Unsupported("several dynamic dims")
    return t.view("reshape", x, f"shape = {shape}")


@row(aten.transpose.int, view=True)
def _transpose(t: Text, n: Node, x: str, a: int, b: int) -> str:
    return t.view("transpose", x, f"dims = [{a}, {b}]")


@row(aten.t.default, view=True)
def _t(t: Text, n: Node, x: str) -> str:
    return x if tensor_of(n).ndim < 2 else t.view("transpose", x, "dims = [0, 1]")


@row(aten.permute.default, view=True)
def _permute(t: Text, n: Node, x: str, dims: list[int]) -> str:
    return t.view("permute", x, f"dims = {list(dims)}")


@row(aten.unsqueeze.default, view=True)
def _unsqueeze(t: Text, n: Node, x: str, dim: int) -> str:
    return t.view("unsqueeze", x, f"dim = {dim}")


@row(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, view=True)
def _squeeze(t: Text, n: Node, x: str, dims: Any = None) -> str:
    shape = argument(n).shape
    wanted = range(len(shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    for d in sorted({d % max(len(shape), 1) for d in wanted}, reverse=True):
        if len(shape) and isinstance(shape[d], int) and shape[d] == 1:
            x = t.view("squeeze", x, f"dim = {d}")
    return x


@row(aten.slice.Tensor, view=True)
def _slice(t: Text, n: Node, x: str, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> str:
    bounds = {"start": start, "end": end if end is None or not isinstance(end, int) or end < 2**62 else None}
    given = [f"{k} = {integer(v)}" for k, v in bounds.items() if v is not None]
    return t.view("slice", x, ", ".join([f"dim = {dim}", *given, f"step = {integer(step)}"]))


@row(aten.select.int, view=True)
def _select(t: Text, n: Node, x: str, dim: int, index: Any) -> str:
    start = integer(index)
    end = "" if start == -1 else f", end = {start + 1}"
    return t.view("squeeze", t.view("slice", x, f"dim = {dim}, start = {start}{end}"), f"dim = {dim}")


@row(aten.expand.default, view=True)
def _expand(t: Text, n: Node, x: str, _size: Any, implicit: bool = False) -> str:
    before, after = argument(n).shape, tensor_of(n).shape
    shape: list[int] = []
    for i, extent in enumerate(after, len(before) - len(after)):
        if isinstance(extent, int):
            shape.append(extent)
        elif i >= 0 and str(before[i]) == str(extent):
            shape.append(-1)
        else:
            raise Unsupported("expanded to a dynamic extent")
    return t.view("expand", x, f"shape = {shape}")


@row(aten.flip.default)
def _flip(t: Text, n: Node, x: str, dims: list[int]) -> str:
    return t.view("flip", x, f"dims = {list(dims)}")


@row(aten.view.dtype, view=True)
def _bits(t: Text, n: Node, x: str, dtype: torch.dtype) -> str:
    if dtype.itemsize != argument(n).dtype.itemsize:
        raise Unsupported("another size of elements")
    return t.view("view_as", x, f"dtype = {dtype_name(dtype)}")
