"""``castwise.xp``: the eager namespace, in the form of the array API standard 2025.12.

Guarantees: elementwise functions are castwise's ops, by their names or aliases; the other functions are made of ops and views, so
that every dtype is decided by the namespace's rules. Does not: have a table of ops, or change an array.
"""

from __future__ import annotations

import functools
from typing import Callable

from .. import _core
from ._base import REFUSED
from ._numbers import Numbers

__all__ = ["REFUSED", "Namespace", "of_array", "xp"]

#: The version of the standard.
VERSION = "2025.12"


def xp(rules: str) -> Namespace:
    """The namespace of the array API standard 2025.12, in which every op is computed at once, under rules.

    Elementwise functions are castwise's ops, also those beyond the standard, such as ``gelu``. Arrays do not change. dtypes are names:
    ``xp.float32`` is ``"f32"``.

    Args:
        rules: ``"torch"``, ``"paddle"``, ``"numpy"``, ``"jax"`` or ``"jax,x64"``.

    Returns:
        The same object for the same rules.

    Raises:
        ValueError: there are no such rules.

    >>> xp = castwise.xp("torch")
    >>> x = xp.asarray([1, 2, 3], dtype=xp.uint8)
    >>> xp.mean(x / 2)
    castwise.Array(1.0, f32, rules='torch')
    >>> x.__array_namespace__() is xp
    True
    """
    return _namespace(_core.Program(rules).rules)


@functools.lru_cache(maxsize=None)
def _namespace(rules: str) -> Namespace:
    return Namespace(rules)


def of_array(rules: str, *, api_version: str | None) -> Namespace:
    """What ``Array.__array_namespace__`` calls."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", VERSION):
        raise ValueError(f"the standard's version {api_version!r} is unknown: this is {VERSION}")
    return _namespace(rules)


class Namespace(Numbers):
    """A namespace of the array API standard, under rules: see ``castwise.xp``.

    >>> castwise.xp("numpy")
    <castwise.xp('numpy')>
    """

    __array_api_version__ = VERSION

    def __reduce__(self) -> tuple[Callable[[str], Namespace], tuple[str]]:
        return xp, (self._rules,)

    def __dir__(self) -> list[str]:
        dtypes = [*self.__array_namespace_info__().dtypes(), "float16", "bfloat16"]
        return sorted({*super().__dir__(), *dtypes, *_core.op_names(), *_core.composite_names(), *_core.generator_names()})
