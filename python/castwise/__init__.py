"""castwise: compiled elementwise programs with the dtypes of NumPy, PyTorch, Paddle and JAX.

    >>> import numpy as np, castwise
    >>> ndvi = castwise.compile("(nir - red) / (nir + red)")
    >>> ndvi(np.float32([3, 2]), np.float32([1, 2]))
    array([0.5, 0. ], dtype=float32)

The dtype of every result is that of the arrays' library, and ``rules=`` asks for another one's. Compiled and eager
results have the same bits. Every implicit cast can be explained:

    >>> print(castwise.explain("a * 0.5 + b", a="bf16", b="f16", rules="torch").splitlines()[1])
    2 casts: 2 exact, 0 that round, 0 that may leave the range
"""

from __future__ import annotations

from math import e, inf, nan, pi

from . import _core, _in_place as _in_place
from ._api import (
    Comparison,
    Explanation,
    NumExpr,
    can_cast,
    compare,
    compile,
    evaluate,
    explain,
    fix,
    get_num_threads,
    promote_types,
    re_evaluate,
    result_type,
    set_num_threads,
)
from ._core import (
    Array,
    Compiled,
    Executor,
    Optimizer,
    Program,
    Var,
    __version__,
    all_finite,
    clip_by_norm,
    clip_by_value,
    default_executor,
)
from ._errors import (
    Diagnostic,
    DivisionByZero,
    EmptyReduction,
    Error,
    FeedError,
    InternalError,
    LimitError,
    OutOfMemory,
    ProgramError,
    ShapeError,
)
from ._xp import xp

#: Names of all dtypes.
dtypes: tuple[str, ...] = tuple(_core.dtype_names())
#: Names of all rule sets.
rules: tuple[str, ...] = tuple(_core.rule_names())
#: Names of all ops, each of which is a function of this module.
ops: tuple[str, ...] = tuple(_core.op_names())
#: Names of all composites, functions of a few ops, each of which is a function of this module.
composites: tuple[str, ...] = tuple(_core.composite_names())
#: Names of all generators, values that follow from the index of each element, each of which is a function of this module.
generators: tuple[str, ...] = tuple(_core.generator_names())

__all__ = [
    "Array",
    "Comparison",
    "Compiled",
    "Diagnostic",
    "DivisionByZero",
    "EmptyReduction",
    "Error",
    "Executor",
    "Explanation",
    "FeedError",
    "InternalError",
    "LimitError",
    "NumExpr",
    "Optimizer",
    "OutOfMemory",
    "Program",
    "ProgramError",
    "ShapeError",
    "Var",
    "__version__",
    "all_finite",
    "can_cast",
    "clip_by_norm",
    "clip_by_value",
    "compare",
    "compile",
    "composites",
    "default_executor",
    "dtypes",
    "e",
    "evaluate",
    "explain",
    "fix",
    "generators",
    "get_num_threads",
    "inf",
    "nan",
    "ops",
    "pi",
    "promote_types",
    "re_evaluate",
    "result_type",
    "rules",
    "set_num_threads",
    "xp",
]


def __getattr__(name: str) -> _core.Function:
    """The ops of the table, their other names, composites, generators and ``blocks``, as functions: ``castwise.exp(x)``."""
    if not name.startswith("_"):
        try:
            found = _core.op(name)
        except TypeError:
            pass
        else:
            globals()[name] = found
            return found
    raise AttributeError(f"module 'castwise' has no attribute or op {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *ops, *composites, *generators, "blocks"})
