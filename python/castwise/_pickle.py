"""How compiled objects pickle: as a text, as a function, or as the name of a function that they decorate.

Guarantees: what is loaded by a name is the object of that name, as for functions. Does not: pickle functions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable

from . import _api, _core
from ._core import Compiled, Options


def reduced(compiled: Compiled, parts: tuple[str, Any, Options]) -> tuple[Callable[..., Compiled], tuple[Any, ...]]:
    """What ``Compiled.__reduce__`` gives."""
    kind, source, options = parts
    if kind == "function":
        name = getattr(source, "__module__", None), getattr(source, "__qualname__", None)
        # cloudpickle takes functions of `__main__` by value, because another process has another one.
        by_value = name[0] == "__main__" and "cloudpickle" in sys.modules
        if not by_value and _is_named(compiled, *name):
            return named, name
    return rebuilt, parts


def _is_named(compiled: Compiled, module: Any, name: Any) -> bool:
    try:
        return named(module, name) is compiled
    except (AttributeError, ImportError, TypeError, ValueError):
        return False


def named(module: str, name: str) -> Any:
    """The object of a qualified name."""
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def rebuilt(kind: str, source: Any, options: Options) -> Compiled:
    """The object that was compiled of a source of this kind."""
    if kind == "expression":
        return _core.compile_expression(source, options)
    return _core.compile_text(source, options) if kind == "text" else _api.of_function(source, options)
