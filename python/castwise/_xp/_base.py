"""What all parts of the namespace use: its rules, its ops by name, checks of arguments."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable

from .. import _core
from .._array_function import function
from .._core import Array

#: Functions of the standard that are not here, and why.
REFUSED = {
    "searchsorted": "castwise has no search in sorted values",
    **dict.fromkeys(
        ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"), "the shape of the result depends on values"
    ),
    "isin": "it compares each element with all others",
    **dict.fromkeys(("matmul", "tensordot", "linalg"), "castwise has no products of matrices"),
    "fft": "castwise has no Fourier transforms",
}


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f'arrays are on the device "cpu", not {device!r}')


def count_of(n: Any, what: str) -> int:
    """A number of times or elements, which is not negative."""
    found = operator.index(n)
    if found < 0:
        raise ValueError(f"{what} is negative: {found}")
    return found


class Base:
    """The ops of a namespace, by their names, and its constants."""

    e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None

    def __init__(self, rules: str) -> None:
        self.__name__ = f"castwise.xp({rules!r})"
        self._rules = rules

    def __repr__(self) -> str:
        return f"<{self.__name__}>"

    def __getattr__(self, name: str) -> Any:
        """An op by its name or alias, or a dtype."""
        if name in REFUSED:
            raise AttributeError(f"castwise.xp has no {name}: {REFUSED[name]}")
        if not name.startswith("_"):
            found = self._op(name) or self._dtype(name)
            if found is not None:
                setattr(self, name, found)
                return found
        raise AttributeError(f"castwise.xp has no {name!r}")

    def _op(self, name: str) -> Callable[..., Any] | None:
        try:
            op = _core.op(name)
        except TypeError:
            return None

        def of_arrays(*operands: Any, **named: Any) -> Any:
            self._own(*(x for x in (*operands, *named.values()) if isinstance(x, Array)), name=name)
            return op(*operands, **named)

        of_arrays.__name__, of_arrays.__doc__ = name, op.__doc__
        return of_arrays

    @staticmethod
    def _dtype(name: str) -> str | None:
        """The dtype of a name such as ``float32``."""
        try:
            found: str = _core.dtype_info(name)[0]
        except TypeError:
            return None
        return found if name == "bool" or name[-1].isdigit() or found.startswith("f8") else None

    def _own(self, *arrays: Any, name: str) -> None:
        """Checks that a function was given arrays of this namespace."""
        if not arrays:
            raise TypeError(f"{name} takes arrays of {self.__name__}: `asarray` makes them")
        for x in arrays:
            if not isinstance(x, Array):
                raise TypeError(f"{name} takes arrays of {self.__name__}, not a {type(x).__name__}: `asarray` makes them")
            if x.rules != self._rules:
                raise TypeError(f"{name} of {self.__name__} was given an array with the rules {x.rules!r}")

    def _viewed(self, name: str, x: Array, *arguments: Any) -> Array:
        """A function of NumPy's shape, which is one of views or ops, of an array of this namespace."""
        self._own(x, name=name)
        made: Array = function(name)(x, *arguments)
        return made

    def _default(self, value: Any) -> str:
        """The dtype of an array of Python numbers like this one."""
        return "bool" if isinstance(value, bool) else _core.result_type("bool", value, rules=self._rules)
