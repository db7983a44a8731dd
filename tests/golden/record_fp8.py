#!/usr/bin/env python3
"""Records weights in 8-bit floats as compressed-tensors writes them, and what it makes of them again.

    python tests/golden/record_fp8.py tests/golden/merge/flat

Needs compressed-tensors, PyTorch and safetensors (the files were made with 0.20.1, 2.15.0 and 0.8.0). `fp8-compressed.safetensors` has weights of
the format `float-quantized` with one scale for all elements, for each row and for each block, in bf16 and f32;
`fp8-compressed-dequantized.safetensors` has DTYPE.NAME: the weight that compressed-tensors computes in the scale's dtype and converts.
"""

import pathlib
import sys

import torch
from compressed_tensors.quantization import QuantizationArgs, QuantizationStrategy
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
from safetensors.torch import save_file

BLOCK = 16
NAMES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
SHAPES = {"tensor": (24, 40), "channel": (40, 24), "block": (40, 24)}


def scales(weight, strategy):
    """The scale of each part of a weight: its largest magnitude becomes 448, the largest of float8_e4m3fn."""
    most = weight.abs()
    if strategy == "tensor":
        return (most.amax() / 448).reshape(1)
    if strategy == "channel":
        return most.amax(1, keepdim=True) / 448
    rows = [torch.stack([b.amax() for b in r.split(BLOCK, 1)]) for r in most.split(BLOCK, 0)]
    return torch.stack(rows) / 448


def main(folder):
    torch.manual_seed(26)
    stored, expected = {"norm.weight": torch.randn(24).bfloat16()}, {}
    for strategy, shape in SHAPES.items():
        block = [BLOCK, BLOCK] if strategy == "block" else None
        args = QuantizationArgs(num_bits=8, type="float", strategy=QuantizationStrategy(strategy), block_structure=block)
        for dtype in (torch.bfloat16, torch.float32):
            name = f"{strategy}.{NAMES[dtype]}.weight"
            weight = torch.randn(shape)
            scale = scales(weight, strategy).to(dtype)
            zero = torch.zeros_like(scale)
            q = quantize(weight.to(dtype), scale, zero, args, dtype=torch.float8_e4m3fn)
            stored |= {name: q.contiguous(), f"{name}_scale": scale}
            value = dequantize(q, scale, zero, args)
            # From a scale in bf16 the product has been rounded to it.
            dtypes = [torch.bfloat16] if dtype == torch.bfloat16 else [torch.bfloat16, torch.float16, torch.float32]
            expected |= {f"{NAMES[to]}.{name}": value.to(to).contiguous() for to in dtypes}
    save_file(stored, folder / "fp8-compressed.safetensors")
    save_file(expected, folder / "fp8-compressed-dequantized.safetensors")


main(pathlib.Path(sys.argv[1]))
