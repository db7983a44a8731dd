"""The backend ``castwise`` of ``torch.compile``: elementwise ops, reductions and views on the CPU are compiled.

    >>> import torch
    >>> @torch.compile(backend="castwise")
    ... def gelu(x):
    ...     return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    >>> gelu(torch.tensor([0.0, 1.0], dtype=torch.bfloat16))
    tensor([0.0000, 0.8398], dtype=torch.bfloat16)

AOTAutograd traces forward and backward graphs; what castwise has becomes programs, and PyTorch runs the rest. Results
have the bits of ``backend="aot_eager"`` but for elementary functions and sums, whose bounds are in the documentation
page ``torch-backend.md``. Intermediate values of f16 and bf16 are rounded after every op, as PyTorch does it, unless
``options={"rounding": "relaxed"}`` leaves them in f32.

The module uses internal interfaces of PyTorch; the versions it is tested with are on that page.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from ._graph import compile_graph

__all__ = ["backend"]


def backend(gm: torch.fx.GraphModule, example_inputs: list[Any], **options: Any) -> Callable[..., Any]:
    """The backend: ``torch.compile(f, backend="castwise")``, or ``backend=castwise.torch.backend``.

    Args:
        gm: A graph of Dynamo.
        example_inputs: Its arguments, which are fake tensors.
        options: ``{"rounding": "exact"}``, the default, or ``{"rounding": "relaxed"}``: chains of f16 and bf16 are computed in
            f32 and only their results are rounded, as inductor does it. They are faster and closer to the exact result, and their
            bits are not those of eager execution.

    Returns:
        A function of the graph's arguments.

    Raises:
        TypeError: an option that there is not.
        ValueError: another rounding.
    """
    compiler = partial(compile_graph, relaxed=_is_relaxed(**(options.pop("options", None) or {})))
    if options:
        raise TypeError(f"the backend castwise takes options={{'rounding': …}}, not {', '.join(options)}")
    compiled = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    made: Callable[..., Any] = compiled(gm, example_inputs)
    return made


def _is_relaxed(rounding: str = "exact", **others: Any) -> bool:
    if others:
        raise TypeError(f"the backend castwise has the option 'rounding', not {', '.join(map(repr, others))}")
    if rounding not in ("exact", "relaxed"):
        raise ValueError(f"rounding is 'exact' or 'relaxed', not {rounding!r}")
    return rounding == "relaxed"
