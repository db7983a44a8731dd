"""Arrays of given values, and of others' elements."""

from __future__ import annotations

import array as buffers
import math
from typing import Any, Iterable, Sequence

from .. import _core
from .._array_function import integers_of
from .._core import Array
from ._base import check_device
from ._shapes import Shapes


def kind_of(value: Any) -> int:
    """The category of a Python number."""
    for at, kind in enumerate((bool, int, float, complex)):
        if isinstance(value, kind):
            return at
    raise TypeError(f"an element is a {type(value).__name__}, not a number")


#: A number of each category.
NUMBERS: tuple[Any, ...] = (True, 1, 1.0, 1j)


def elements_of(flat: Iterable[Any], kind: int) -> Any:
    """Numbers of one category as a buffer, or complex ones as an array."""
    flat = list(flat)
    if kind == 0:
        return memoryview(bytes(flat)).cast("?")
    if kind == 1:
        try:
            return buffers.array("q", flat)
        except OverflowError:
            return buffers.array("Q", flat)
    if kind == 2:
        return buffers.array("d", flat)
    numbers = [complex(v) for v in flat]
    parts = ([v.real for v in numbers], [v.imag for v in numbers])
    return _core.op("complex")(*(_core.array(buffers.array("d", part), "numpy") for part in parts))


def diagonal_of(x: Array) -> Array:
    """The number of the diagonal of each element of the last two dims."""
    if x.ndim < 2:
        raise ValueError("an array of at least two dims is needed")
    index = _core.op("index")
    return index(x, dim=-1) - index(x, dim=-2)


class Creation(Shapes):
    """The functions that make arrays."""

    def asarray(self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
        """An array of numbers, of nested sequences of numbers, or with a copy of an array of any library on the CPU.

        >>> castwise.xp("numpy").asarray([[1, 2], [3, 4.5]])
        castwise.Array([[1.0 2.0]
                        [3.0 4.5]], f64, rules='numpy')
        """
        check_device(device)
        if isinstance(obj, (bool, int, float, complex)) and type(obj) in (bool, int, float, complex):
            return self.full((), obj, dtype=dtype)
        if isinstance(obj, (list, tuple)):
            return self._nested(obj, dtype)
        if copy is False and not isinstance(obj, Array):
            raise ValueError("arrays of castwise.xp do not change, so those of others are copied")
        return _core.array(obj, self._rules, dtype)

    def _nested(self, obj: Sequence[Any], dtype: Any) -> Array:
        shape: list[int] = []
        level: list[Any] = list(obj)
        while True:
            shape.append(len(level) // math.prod(shape) if level else 0)
            if not any(isinstance(o, (list, tuple)) for o in level):
                break
            lengths = {len(o) if isinstance(o, (list, tuple)) else -1 for o in level}
            if len(lengths) != 1:
                raise ValueError("nested sequences have different lengths")
            if lengths == {0}:
                shape.append(0)
                level = []
                break
            level = [o for inner in level for o in inner]
        if any(isinstance(o, Array) for o in level):
            found = self.stack([o if isinstance(o, Array) else self.asarray(o) for o in level])
            return _core.array(found.reshape(*shape, *found.shape[1:]), self._rules, dtype)
        kind = max(map(kind_of, level), default=2)
        if kind == 1:
            dtype = self._holding(min(level), max(level), dtype)
        return _core.array(elements_of(level, kind), self._rules, dtype or self._default(NUMBERS[kind])).reshape(*shape)

    def _holding(self, least: int, largest: int, dtype: Any) -> str:
        """The dtype of integers from `least` to `largest`: the one that is asked for, or the default; u64 where that is too narrow."""
        name, *_, limits = _core.dtype_info(dtype or self._default(1))
        if limits is None or limits[0] <= least and largest <= limits[1]:
            return name
        if dtype is None and least >= 0 and largest < 2**64:
            return "u64"
        raise OverflowError(f"{least if least < limits[0] else largest} is outside of {name}")

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
        """An array with a copy of what ``__dlpack__`` gives.

        >>> xp = castwise.xp("numpy")
        >>> xp.from_dlpack(xp.arange(3)).shape
        (3,)
        """
        return self.asarray(x, device=device, copy=copy)

    def full(self, shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        """An array of one number.

        >>> castwise.xp("torch").full((2,), 0.5)
        castwise.Array([0.5 0.5], f32, rules='torch')
        """
        check_device(device)
        if type(fill_value) is int:
            dtype = self._holding(fill_value, fill_value, dtype)
        return _core.full(integers_of(shape), fill_value, dtype or self._default(fill_value), self._rules)

    def zeros(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
        """An array of zeros; of floats by default.

        >>> xp = castwise.xp("numpy")
        >>> xp.zeros(2)
        castwise.Array([0.0 0.0], f64, rules='numpy')
        """
        return self.full(shape, 0, dtype=dtype or self._default(1.0), device=device)

    def ones(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
        """An array of ones; of floats by default.

        >>> xp = castwise.xp("numpy")
        >>> xp.ones(2, dtype=xp.int8)
        castwise.Array([1 1], i8, rules='numpy')
        """
        return self.full(shape, 1, dtype=dtype or self._default(1.0), device=device)

    #: Memory without values is not handed out.
    empty = zeros

    def full_like(self, x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        """An array of one number, with the shape and by default the dtype of another.

        >>> xp = castwise.xp("numpy")
        >>> xp.full_like(xp.arange(2), 7)
        castwise.Array([7 7], i64, rules='numpy')
        """
        return self._like(x, fill_value, dtype, device, "full_like")

    def zeros_like(self, x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
        """Zeros, with the shape and by default the dtype of another array.

        >>> xp = castwise.xp("numpy")
        >>> xp.zeros_like(xp.arange(2))
        castwise.Array([0 0], i64, rules='numpy')
        """
        return self._like(x, 0, dtype, device, "zeros_like")

    def ones_like(self, x: Array, /, *, dtype: Any = None, device: Any = None) -> Array:
        """Ones, with the shape and by default the dtype of another array.

        >>> xp = castwise.xp("numpy")
        >>> xp.ones_like(xp.arange(2))
        castwise.Array([1 1], i64, rules='numpy')
        """
        return self._like(x, 1, dtype, device, "ones_like")

    def _like(self, x: Array, fill_value: Any, dtype: Any, device: Any, name: str) -> Array:
        self._own(x, name=name)
        return self.full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)

    empty_like = zeros_like

    def arange(self, start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
        """The numbers from ``start`` on and before ``stop``, ``step`` apart.

        >>> castwise.xp("numpy").arange(5, 0, -2)
        castwise.Array([5 3 1], i64, rules='numpy')
        """
        check_device(device)
        start, stop = (0, start) if stop is None else (start, stop)
        dtype = dtype or self._default(NUMBERS[max(1, kind_of(start), kind_of(stop), kind_of(step))])
        return _core.arange(start, stop, step, dtype, self._rules)

    def linspace(
        self, start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
    ) -> Array:
        """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the last one.

        >>> castwise.xp("numpy").linspace(0, 1, 3)
        castwise.Array([0.0 0.5 1.0], f64, rules='numpy')
        """
        dtype = dtype or self._default(NUMBERS[max(2, kind_of(start), kind_of(stop))])
        if isinstance(start, complex) or isinstance(stop, complex):
            start, stop = complex(start), complex(stop)
            parts = [
                self.linspace(a, b, num, dtype="f64", device=device, endpoint=endpoint)
                for a, b in ((start.real, stop.real), (start.imag, stop.imag))
            ]
            return _core.array(_core.op("complex")(*parts), self._rules, dtype)
        if not endpoint and num > 0:
            stop = start + (stop - start) * (num - 1) / num
        line = _core.op("linspace")(self.zeros((num,), dtype="f64", device=device), float(start), float(stop), dtype="f64")
        return _core.array(line, self._rules, dtype)

    def eye(self, n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
        """Ones on the diagonal ``k`` of a matrix of zeros.

        >>> xp = castwise.xp("numpy")
        >>> xp.eye(2, dtype=xp.int8)
        castwise.Array([[1 0]
                        [0 1]], i8, rules='numpy')
        """
        like = self.zeros((n_rows, n_rows if n_cols is None else n_cols), dtype="bool", device=device)
        return _core.array(diagonal_of(like) == k, self._rules, dtype or self._default(1.0))

    def tril(self, x: Array, /, *, k: int = 0) -> Array:
        """The elements on the diagonal ``k`` and below; zeros above.

        >>> xp = castwise.xp("numpy")
        >>> xp.tril(xp.ones((2, 2), dtype=xp.int8))[0]
        castwise.Array([1 0], i8, rules='numpy')
        """
        self._own(x, name="tril")
        return self.where(diagonal_of(x) <= k, x, self.zeros((), dtype=x.dtype))  # type: ignore[no-any-return]

    def triu(self, x: Array, /, *, k: int = 0) -> Array:
        """The elements on the diagonal ``k`` and above; zeros below.

        >>> xp = castwise.xp("numpy")
        >>> xp.triu(xp.ones((2, 2), dtype=xp.int8))
        castwise.Array([[1 1]
                        [0 1]], i8, rules='numpy')
        """
        self._own(x, name="triu")
        return self.where(diagonal_of(x) >= k, x, self.zeros((), dtype=x.dtype))  # type: ignore[no-any-return]

    def meshgrid(self, *arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
        """Arrays of one dim each as arrays of all of them, for all pairs of their elements.

        >>> xp = castwise.xp("numpy")
        >>> xp.meshgrid(xp.arange(3), xp.arange(2))[1].shape
        (2, 3)
        """
        if indexing not in ("xy", "ij"):
            raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
        if arrays:
            self._own(*arrays, name="meshgrid")
        for x in arrays:
            if x.ndim != 1:
                raise ValueError(f"meshgrid takes arrays of one dim, not of {x.ndim}")
        n = len(arrays)
        places = list(range(n))
        if indexing == "xy" and n > 1:
            places[0], places[1] = 1, 0
        shaped = [x.reshape(*(-1 if d == at else 1 for d in range(n))) for x, at in zip(arrays, places)]
        return self.broadcast_arrays(*shaped)
