"""``x += y`` and the like of a ``Var`` or an ``Array``.

Guarantees: under rules whose arrays such an operator writes into, ``x`` keeps its dtype and shape, or the operator is refused.
Does not: change a value; other names for it keep the old one. (A class of the compiled module can't have such operators that
give another object, so that they are added here.)
"""

from __future__ import annotations

import operator
from typing import Any, Callable

from . import _core


def _operator(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def in_place(x: Any, other: Any) -> Any:
        return _core.assigned(x, compute(x, other))

    return in_place


for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    setattr(_core.Operators, f"__i{_name}__", _operator(getattr(operator, f"__{_name}__")))
