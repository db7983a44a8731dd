"""Elementwise ops, their gradients, conversions and constants of PyTorch in castwise's ops.

Guarantees: formulas are those of PyTorch's kernels where their rounding shows. Does not: decide dtypes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from ._text import (
    HALVES,
    Operand,
    Text,
    Unsupported,
    base,
    contracts,
    in_f32,
    operand_text,
    rounded,
    row,
    tensor_of,
)

aten, prims = torch.ops.aten, torch.ops.prims


@row(aten.add.Tensor, aten.add.Scalar)
def _add(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return t.op("add", x, y) if alpha == 1 else t.op("add_scaled", x, y, alpha)


@row(aten.sub.Tensor, aten.sub.Scalar)
def _sub(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return t.op("sub", x, y) if alpha == 1 else t.op("sub_scaled", x, y, alpha)


@row(aten.rsub.Tensor, aten.rsub.Scalar)
def _rsub(t: Text, n: Node, x: Operand, y: Operand, alpha: Any = 1) -> str:
    return t.op("sub", y, x) if alpha == 1 else t.op("sub_scaled", y, x, alpha)


@row(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _div(t: Text, n: Node, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    return t.op({None: "div", "floor": "floor_divide", "trunc": "div_trunc"}[rounding_mode], x, y)


@row(prims.fma.default)
def _fma(t: Text, n: Node, x: Operand, y: Operand, z: Operand) -> str:
    # PyTorch's eager kernel of it rounds the product.
    return t.op("add", t.op("mul", x, y), z)


@row(aten.pow.Tensor_Scalar)
def _pow(t: Text, n: Node, x: Operand, y: Any) -> str:
    # PyTorch's kernel of bf16 multiplies twice, and rounds twice; that of f16 rounds once.
    if y == 3 and tensor_of(n).dtype == torch.bfloat16:
        return t.op("mul", t.op("mul", x, x), x)
    return t.op("pow", x, y)


@row(aten.clamp.default, aten.clamp.Tensor)
def _clamp(t: Text, n: Node, x: Operand, min: Operand = None, max: Operand = None) -> str:
    if max is None:
        return t.op("clamp_min", x, min)
    return t.op("clamp_max", x, max) if min is None else t.op("clamp", x, min, max)


@row(aten.hardtanh.default)
def _hardtanh(t: Text, n: Node, x: Operand, min_val: Any = -1, max_val: Any = 1) -> str:
    return t.op("clamp", x, min_val, max_val)


@row(aten.leaky_relu.default)
def _leaky_relu(t: Text, n: Node, x: Operand, negative_slope: Any = 0.01) -> str:
    return t.op("where", t.op("gt", x, 0), x, t.op("mul", x, negative_slope))


@row(aten.gelu.default)
def _gelu(t: Text, n: Node, x: Operand, approximate: str = "none") -> str:
    return t.op("gelu" if approximate == "none" else "gelu_tanh", x)


@row(aten.softplus.default)
def _softplus(t: Text, n: Node, x: Operand, beta: Any = 1, threshold: Any = 20) -> str:
    if (beta, threshold) != (1, 20):
        raise Unsupported("parameters of softplus")
    return t.op("softplus", x)


@row(aten.addcmul.default)
def _addcmul(t: Text, n: Node, x: Operand, a: Operand, b: Operand, value: Any = 1) -> str:
    return t.op("addcmul", x, a, b, value)


@row(aten.addcdiv.default)
def _addcdiv(t: Text, n: Node, x: Operand, a: Operand, b: Operand, value: Any = 1) -> str:
    return t.op("addcdiv", x, a, b, value)


def reduced_loss(t: Text, loss: str, reduction: int) -> str:
    return loss if reduction == 0 else t.op({1: "mean", 2: "sum"}[reduction], loss)


@row(aten.mse_loss.default)
def _mse(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1) -> str:
    return reduced_loss(t, t.op("squared_difference", x, y), reduction)


@row(aten.smooth_l1_loss.default)
def _smooth_l1(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1, beta: float = 1.0) -> str:
    return reduced_loss(t, t.op("smooth_l1", x, y, beta), reduction)


@row(aten.huber_loss.default)
def _huber(t: Text, n: Node, x: Operand, y: Operand, reduction: int = 1, delta: float = 1.0) -> str:
    return reduced_loss(t, t.op("huber", x, y, delta), reduction)


@row(aten.sigmoid_backward.default)
def _sigmoid_backward(t: Text, n: Node, grad: str, y: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    grad, y = in_f32(t, n, grad, y)
    return rounded(t, n, t.op("mul", t.op("mul", grad, t.op("sub", 1, y)), y))


@row(aten.tanh_backward.default)
def _tanh_backward(t: Text, n: Node, grad: str, y: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    if tensor_of(n).dtype == torch.float32 and contracts():
        # PyTorch's loop of f32, and of no other dtype, has a fused multiply-add here.
        return t.op("mul", grad, t.op("fma", t.op("neg", y), y, t.constant(1, torch.float32)))
    grad, y = in_f32(t, n, grad, y)
    return rounded(t, n, t.op("mul", grad, t.op("sub", 1, t.op("mul", y, y))))


@row(aten.threshold_backward.default)
def _threshold_backward(t: Text, n: Node, grad: str, x: str, threshold: Any) -> str:
    return t.op("where", t.op("le", x, threshold), t.constant(0, tensor_of(n).dtype), grad)


@row(aten.silu_backward.default)
def _silu_backward(t: Text, n: Node, grad: str, x: str) -> str:
    if tensor_of(n).dtype.is_complex:
        raise Unsupported("complex")
    grad, x = in_f32(t, n, grad, x)
    s = t.op("sigmoid", x)
    slope = t.op("add", t.op("mul", x, t.op("sub", 1, s)), 1)
    return rounded(t, n, t.op("mul", t.op("mul", grad, s), slope))


@row(aten.gelu_backward.default)
def _gelu_backward(t: Text, n: Node, grad: str, x: str, approximate: str = "none") -> str:
    grad, x = in_f32(t, n, grad, x)
    if approximate == "none":
        cdf = t.op("mul", t.op("add", t.op("erf", t.op("mul", x, math.sqrt(0.5))), 1), 0.5)
        pdf = t.op("mul", t.op("exp", t.op("mul", t.op("mul", x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
        return rounded(t, n, t.op("mul", grad, t.op("add", cdf, t.op("mul", x, pdf))))
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    square = t.op("mul", x, x)
    th = t.op("tanh", t.op("mul", t.op("add", x, t.op("mul", t.op("mul", square, x), kappa)), beta))
    left = t.op("mul", t.op("add", th, 1), 0.5)
    inner = t.op("mul", t.op("add", t.op("mul", square, 3 * kappa), 1), beta)
    right = t.op("mul", t.op("mul", t.op("mul", x, 0.5), t.op("sub", 1, t.op("mul", th, th))), inner)
    return rounded(t, n, t.op("mul", grad, t.op("add", left, right)))


# Conversions, copies and constants.


@row(prims.convert_element_type.default)
def _convert(t: Text, n: Node, x: str, dtype: torch.dtype) -> str:
    return t.cast(x, dtype)


@row(aten._to_copy.default)
def _to_copy(t: Text, n: Node, x: str, dtype: torch.dtype | None = None, **_others: Any) -> str:
    return t.cast(x, tensor_of(n).dtype)


@row(aten.clone.default)
def _clone(t: Text, n: Node, x: str, memory_format: Any = None) -> str:
    return x


@row(aten.copy.default)
def _copy(t: Text, n: Node, x: str, source: str, non_blocking: bool = False) -> str:
    value, dtype = tensor_of(n), tensor_of(n).dtype
    source_node = n.args[1]
    if not isinstance(source_node, Node) or tensor_of(source_node).shape != value.shape:
        raise Unsupported("a copy that broadcasts")
    return source if tensor_of(source_node).dtype == dtype else t.cast(source, dtype)


@row(aten.full.default)
def _full(t: Text, n: Node, size: Any, value: Any, **_others: Any) -> str:
    operand_text(value)
    return t.constant(value, tensor_of(n).dtype, tensor_of(n).shape)


@row(aten.scalar_tensor.default)
def _scalar_tensor(t: Text, n: Node, value: Any, **_others: Any) -> str:
    operand_text(value)
    return t.constant(value, tensor_of(n).dtype)


@row(aten.full_like.default, aten.zeros_like.default, aten.ones_like.default)
def _full_like(t: Text, n: Node, x: str, value: Any = None, **_others: Any) -> str:
    value = {"zeros_like": 0, "ones_like": 1}.get(base(n), value)
    operand_text(value)
    made = tensor_of(n)
    if all(isinstance(extent, int) for extent in made.shape):
        return t.constant(value, made.dtype, made.shape)
    constant = t.constant(value, made.dtype)
    return t.op("where", t.op("logical_or", t.op("isnan", x), True), constant, constant)
