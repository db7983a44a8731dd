"""Reductions, scans and ops of order of PyTorch in castwise's ops.

Guarantees: an op whose positions of equal elements PyTorch leaves open is not here. Does not: decide dtypes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from ._text import Text, Unsupported, base, dtype_name, float_text, in_f32, rounded, row, tensor_of

aten = torch.ops.aten


@row(aten._softmax.default, aten._log_softmax.default)
def _softmax(t: Text, n: Node, x: str, dim: int, half_to_float: bool) -> str:
    if half_to_float:
        raise Unsupported("half_to_float")
    (x,) = in_f32(t, n, x)
    attrs = f"dims = [{dim}], keepdim"
    shifted = t.op("sub", x, t.op("amax", x, attrs=attrs))
    powers = t.op("exp", shifted)
    total = t.op("sum", powers, attrs=attrs)
    if n.target is aten._softmax.default:
        return rounded(t, n, t.op("div", powers, total))
    return rounded(t, n, t.op("sub", shifted, t.op("log", total)))


@row(aten._softmax_backward_data.default)
def _softmax_backward(t: Text, n: Node, grad: str, y: str, dim: int, input_dtype: torch.dtype) -> str:
    if input_dtype != tensor_of(n).dtype:
        raise Unsupported("half_to_float")
    grad, y = in_f32(t, n, grad, y)
    total = t.op("sum", t.op("mul", grad, y), attrs=f"dims = [{dim}], keepdim")
    return rounded(t, n, t.op("mul", t.op("sub", grad, total), y))


@row(aten._log_softmax_backward_data.default)
def _log_softmax_backward(t: Text, n: Node, grad: str, y: str, dim: int, input_dtype: torch.dtype) -> str:
    if input_dtype != tensor_of(n).dtype:
        raise Unsupported("half_to_float")
    grad, y = in_f32(t, n, grad, y)
    total = t.op("sum", grad, attrs=f"dims = [{dim}], keepdim")
    return rounded(t, n, t.op("sub", grad, t.op("mul", t.op("exp", y), total)))


def _attrs(**given: Any) -> str:
    """Attributes as text; those that are None are left out."""
    texts = {True: "true", False: "false"}
    return ", ".join(
        f"{k} = {texts[v] if isinstance(v, bool) else dtype_name(v) if isinstance(v, torch.dtype) else v}"
        for k, v in given.items()
        if v is not None
    )


def _over(dims: Any, keepdim: bool = False, **given: Any) -> str:
    """The attributes of a reduction. No dims are all."""
    dims = None if dims is None else [dims] if isinstance(dims, int) else list(dims)
    parts = [_attrs(dims=dims), "keepdim" if keepdim else "", _attrs(**given)]
    return ", ".join(filter(None, parts))


def _reduce(
    t: Text, name: str, x: str, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> str:
    return t.op(name, x, attrs=_over(dims, keepdim, dtype=dtype))


@row(aten.sum.default, aten.mean.default, aten.prod.default, aten.nansum.default)
def _whole(t: Text, n: Node, x: str, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> str:
    return _reduce(t, base(n), x, None if dims in (None, []) else dims, keepdim, dtype)


@row(aten.max.default, aten.min.default)
def _extreme(t: Text, n: Node, x: str) -> str:
    return _reduce(t, "a" + base(n), x)


@row(aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int)
def _some(
    t: Text, n: Node, x: str, dims: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> str:
    return _reduce(t, base(n), x, None if dims in (None, []) else dims, keepdim, dtype)


@row(aten.amax.default, aten.amin.default)
def _extremes(t: Text, n: Node, x: str, dim: Any = (), keepdim: bool = False) -> str:
    return _reduce(t, base(n), x, dim or None, keepdim)


@row(aten.any.dim, aten.any.dims, aten.all.dim, aten.all.dims)
def _truth(t: Text, n: Node, x: str, dim: Any = None, keepdim: bool = False) -> str:
    if dim == []:
        raise Unsupported("an empty list of dims")
    return _reduce(t, base(n), x, dim, keepdim)


@row(aten.argmax.default, aten.argmin.default)
def _position(t: Text, n: Node, x: str, dim: int | None = None, keepdim: bool = False) -> str:
    return _reduce(t, base(n), x, dim, keepdim)


@row(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def _count(t: Text, n: Node, x: str, dim: Any = None) -> str:
    return _reduce(t, "count_nonzero", x, None if dim in (None, []) else dim)


@row(aten.logsumexp.default)
def _logsumexp(t: Text, n: Node, x: str, dim: Any, keepdim: bool = False) -> str:
    return _reduce(t, "logsumexp", x, dim or None, keepdim)


@row(aten.linalg_vector_norm.default)
def _norm(
    t: Text, n: Node, x: str, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> str:
    if isinstance(ord, complex) or ord != ord:
        raise Unsupported("an order that is no number")
    dims = None if dim in (None, []) else dim
    return t.op("norm", x, attrs=_over(dims, keepdim, p=float_text(float(ord)), dtype=dtype))


# Variances are summed in f64, as by PyTorch, which updates a mean and a sum of squares by element.


def _moment(t: Text, n: Node, name: str, x: str, dim: Any, correction: Any, keepdim: bool) -> tuple[str, str]:
    dims = None if dim in (None, []) else dim
    correction = float_text(float(1 if correction is None else correction))
    return t.op(name, x, attrs=_over(dims, keepdim, correction=correction)), _over(dims, keepdim)


@row(aten.var.correction, aten.std.correction)
def _var(t: Text, n: Node, x: str, dim: Any = None, correction: Any = None, keepdim: bool = False) -> str:
    return _moment(t, n, base(n), x, dim, correction, keepdim)[0]


@row(aten.var_mean.correction, aten.std_mean.correction)
def _var_mean(
    t: Text, n: Node, x: str, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> tuple[str, str]:
    made, attrs = _moment(t, n, base(n).removesuffix("_mean"), x, dim, correction, keepdim)
    return made, t.op("mean", x, attrs=attrs)


# Scans. PyTorch accumulates f32 in f64 and the halves in f32, element by element, as castwise does.


@row(aten.cumsum.default, aten.cumprod.default)
def _scan(t: Text, n: Node, x: str, dim: int, dtype: torch.dtype | None = None) -> str:
    return t.op(base(n), x, attrs=_over(dim, dtype=dtype))


@row(aten.logcumsumexp.default)
def _logcumsumexp(t: Text, n: Node, x: str, dim: int) -> str:
    return t.op("logcumsumexp", x, attrs=_over(dim))


@row(aten.cummax.default, aten.cummin.default)
def _extreme_so_far(t: Text, n: Node, x: str, dim: int) -> tuple[str, str]:
    return t.op(base(n), x, attrs=_over(dim)), t.op(base(n) + "_indices", x, attrs=_over(dim))


# Order. `sort` without `stable`, `topk`, `median` along a dim and `kthvalue` leave open which of equal elements is where.


@row(aten.sort.stable)
def _sort(
    t: Text, n: Node, x: str, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[str, str]:
    if not stable:
        raise Unsupported("the order of equal elements")
    attrs = _attrs(dims=[dim], descending=descending or None)
    return t.op("sort", x, attrs=attrs), t.op("argsort", x, attrs=attrs)
