"""Elementwise functions with parameters of their own, reductions, scans and order."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._array_function import axis_of
from .._core import Array
from ._base import count_of
from ._creation import Creation


class Numbers(Creation):
    """The functions of values."""

    def clip(self, x: Array, /, min: Any = None, max: Any = None) -> Array:
        """An array whose elements below ``min`` or above ``max`` are replaced by these.

        >>> xp = castwise.xp("numpy")
        >>> xp.clip(xp.arange(4), 1, 2)
        castwise.Array([1 1 2 2], i64, rules='numpy')
        """
        return self._viewed("clip", x, min, max)

    def signbit(self, x: Array, /) -> Array:
        """Whether floats have a minus sign, zeros and NaNs too.

        >>> xp = castwise.xp("numpy")
        >>> xp.signbit(xp.asarray([-0.0, 1.0]))
        castwise.Array([ true false], bool, rules='numpy')
        """
        self._own(x, name="signbit")
        return _core.op("copysign")(self.ones((), dtype=x.dtype), x) < 0

    def _reduce(self, op: str, x: Array, axis: Any, keepdims: bool, **named: Any) -> Array:
        self._own(x, name=op)
        given = {name: value for name, value in named.items() if value is not None}
        return _core.op(op)(x, axis=axis, keepdims=keepdims, **given)

    def sum(self, x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """The sum along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.sum(xp.asarray([1, 2], dtype=xp.int8))
        castwise.Array(3, i64, rules='numpy')
        """
        return self._reduce("sum", x, axis, keepdims, dtype=dtype)

    def prod(self, x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
        """The product along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.prod(xp.asarray([2, 3]))
        castwise.Array(6, i64, rules='numpy')
        """
        return self._reduce("prod", x, axis, keepdims, dtype=dtype)

    def mean(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """The mean along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.mean(xp.asarray([1, 2]))
        castwise.Array(1.5, f64, rules='numpy')
        """
        return self._reduce("mean", x, axis, keepdims)

    def var(self, x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
        """The variance along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.var(xp.asarray([1.0, 3.0]))
        castwise.Array(1.0, f64, rules='numpy')
        """
        return self._reduce("var", x, axis, keepdims, correction=float(correction))

    def std(self, x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
        """The standard deviation along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.std(xp.asarray([1.0, 3.0]))
        castwise.Array(1.0, f64, rules='numpy')
        """
        return self._reduce("std", x, axis, keepdims, correction=float(correction))

    def max(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """The largest element along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.max(xp.asarray([1, 3]))
        castwise.Array(3, i64, rules='numpy')
        """
        return self._reduce("amax", x, axis, keepdims)

    def min(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """The smallest element along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.min(xp.asarray([1, 3]))
        castwise.Array(1, i64, rules='numpy')
        """
        return self._reduce("amin", x, axis, keepdims)

    def all(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """Whether all elements along dims are true.

        >>> xp = castwise.xp("numpy")
        >>> xp.all(xp.asarray([1, 0]))
        castwise.Array(false, bool, rules='numpy')
        """
        return self._reduce("all", x, axis, keepdims)

    def any(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """Whether an element along dims is true.

        >>> xp = castwise.xp("numpy")
        >>> xp.any(xp.asarray([1, 0]))
        castwise.Array(true, bool, rules='numpy')
        """
        return self._reduce("any", x, axis, keepdims)

    def argmax(self, x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
        """The position of the first of the largest elements along a dim, or in row-major order.

        >>> xp = castwise.xp("numpy")
        >>> xp.argmax(xp.asarray([1, 3]))
        castwise.Array(1, i64, rules='numpy')
        """
        return self._reduce("argmax", x, axis, keepdims)

    def argmin(self, x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
        """The position of the first of the smallest elements along a dim, or in row-major order.

        >>> xp = castwise.xp("numpy")
        >>> xp.argmin(xp.asarray([1, 3]))
        castwise.Array(0, i64, rules='numpy')
        """
        return self._reduce("argmin", x, axis, keepdims)

    def count_nonzero(self, x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
        """The number of elements that are not zero along dims.

        >>> xp = castwise.xp("numpy")
        >>> xp.count_nonzero(xp.asarray([1, 0]))
        castwise.Array(1, i64, rules='numpy')
        """
        return self._reduce("count_nonzero", x, axis, keepdims)

    def _scan(self, op: str, x: Array, axis: int | None, dtype: Any, first: int | None) -> Array:
        self._own(x, name=op)
        if axis is None:
            if x.ndim > 1:
                raise ValueError("of an array of several dims an axis is needed")
            axis = 0
        made = _core.op(op)(x, axis=axis, **({} if dtype is None else {"dtype": dtype}))
        if first is None:
            return made
        shape = list(made.shape)
        shape[axis_of(axis, made.ndim)] = 1
        return self.concat([self.full(shape, first, dtype=made.dtype), made], axis=axis)

    def cumulative_sum(
        self, x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        """The sums of all elements so far along a dim, after a zero if ``include_initial``.

        >>> xp = castwise.xp("numpy")
        >>> xp.cumulative_sum(xp.asarray([1, 2]), include_initial=True)
        castwise.Array([0 1 3], i64, rules='numpy')
        """
        return self._scan("cumsum", x, axis, dtype, 0 if include_initial else None)

    def cumulative_prod(
        self, x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        """The products of all elements so far along a dim, after a one if ``include_initial``.

        >>> xp = castwise.xp("numpy")
        >>> xp.cumulative_prod(xp.asarray([2, 3]))
        castwise.Array([2 6], i64, rules='numpy')
        """
        return self._scan("cumprod", x, axis, dtype, 1 if include_initial else None)

    def sort(self, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
        """The elements along a dim in order; every sort is stable.

        >>> xp = castwise.xp("numpy")
        >>> xp.sort(xp.asarray([2, 3, 1]), descending=True)
        castwise.Array([3 2 1], i64, rules='numpy')
        """
        self._own(x, name="sort")
        return _core.op("sort")(x, axis=axis, descending=descending)

    def argsort(self, x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
        """The positions of the elements along a dim in order; every sort is stable.

        >>> xp = castwise.xp("numpy")
        >>> xp.argsort(xp.asarray([2, 3, 1]))
        castwise.Array([2 0 1], i64, rules='numpy')
        """
        self._own(x, name="argsort")
        return _core.op("argsort")(x, axis=axis, descending=descending)

    def vecdot(self, x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
        """The sums of products along a dim; of complex numbers ``x1`` is conjugated.

        >>> xp = castwise.xp("numpy")
        >>> xp.vecdot(xp.asarray([1, 2]), xp.asarray([3, 4]))
        castwise.Array(11, i64, rules='numpy')
        """
        self._own(x1, x2, name="vecdot")
        return _core.op("vecdot")(x1, x2, axis=axis)

    def diff(self, x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None) -> Array:
        """The differences of neighbours along a dim, ``n`` times; before that other arrays are joined to the start or the end.

        >>> xp = castwise.xp("numpy")
        >>> xp.diff(xp.asarray([1, 4, 9]))
        castwise.Array([3 5], i64, rules='numpy')
        """
        self._own(x, name="diff")
        times = count_of(n, "the number of differences")
        parts = [part for part in (prepend, x, append) if part is not None]
        return self._viewed("diff", self.concat(parts, axis=axis) if len(parts) > 1 else x, times, axis)
