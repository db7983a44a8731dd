"""Views, and arrays that are joined, repeated and taken apart by an index."""

from __future__ import annotations

from typing import Any, Sequence

from .. import _core
from .._array_function import axis_of, integers_of
from .._core import Array
from ._base import count_of
from ._dtypes import Dtypes


class Shapes(Dtypes):
    """The functions of shapes."""

    def broadcast_shapes(self, *shapes: Sequence[int]) -> tuple[int, ...]:
        """The shape that shapes broadcast to.

        >>> castwise.xp("torch").broadcast_shapes((2, 1), (3,))
        (2, 3)
        """
        found: list[int] = []
        for shape in shapes:
            given = [1] * (len(found) - len(shape)) + [count_of(n, "an extent") for n in shape]
            found = [1] * (len(given) - len(found)) + found
            for at, n in enumerate(given):
                if n != found[at] and 1 not in (n, found[at]):
                    raise ValueError(f"shapes do not broadcast: {', '.join(map(str, shapes))}")
                found[at] = n if found[at] == 1 else found[at]
        return tuple(found)

    def broadcast_arrays(self, *arrays: Array) -> tuple[Array, ...]:
        """Arrays with the shape that their shapes broadcast to.

        >>> xp = castwise.xp("numpy")
        >>> [x.shape for x in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
        [(2, 3), (2, 3)]
        """
        if arrays:
            self._own(*arrays, name="broadcast_arrays")
        shape = self.broadcast_shapes(*(x.shape for x in arrays))
        return tuple(x.expand(*shape) for x in arrays)

    def broadcast_to(self, x: Array, /, shape: Sequence[int]) -> Array:
        """An array with another shape, in which dims of extent 1 are repeated and leading dims added.

        >>> xp = castwise.xp("numpy")
        >>> xp.broadcast_to(xp.ones(3), (2, 3)).shape
        (2, 3)
        """
        self._own(x, name="broadcast_to")
        if self.broadcast_shapes(x.shape, shape) != tuple(shape):
            raise ValueError(f"the shape {x.shape} does not broadcast to {tuple(shape)}")
        return x.expand(*shape)

    def expand_dims(self, x: Array, /, axis: Any = 0) -> Array:
        """An array with new dims of extent 1.

        >>> xp = castwise.xp("numpy")
        >>> xp.expand_dims(xp.ones(3), axis=1).shape
        (3, 1)
        """
        return self._viewed("expand_dims", x, axis)

    def flip(self, x: Array, /, *, axis: Any = None) -> Array:
        """An array with dims reversed; all without an axis.

        >>> xp = castwise.xp("numpy")
        >>> xp.flip(xp.arange(3))
        castwise.Array([2 1 0], i64, rules='numpy')
        """
        return self._viewed("flip", x, axis)

    def matrix_transpose(self, x: Array, /) -> Array:
        """An array with its last two dims swapped.

        >>> xp = castwise.xp("numpy")
        >>> xp.matrix_transpose(xp.ones((2, 3))).shape
        (3, 2)
        """
        self._own(x, name="matrix_transpose")
        return x.mT

    def moveaxis(self, x: Array, source: Any, destination: Any, /) -> Array:
        """An array with dims at other places.

        >>> xp = castwise.xp("numpy")
        >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
        """
        return self._viewed("moveaxis", x, source, destination)

    def permute_dims(self, x: Array, /, axes: Sequence[int]) -> Array:
        """An array with its dims in another order.

        >>> xp = castwise.xp("numpy")
        >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
        (3, 2)
        """
        return self._viewed("permute_dims", x, axes)

    def reshape(self, x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
        """The elements in row-major order under another shape, in which one extent may be -1.

        >>> xp = castwise.xp("numpy")
        >>> xp.reshape(xp.arange(4), (2, -1)).shape
        (2, 2)
        """
        self._own(x, name="reshape")
        return x.reshape(*integers_of(shape))

    def squeeze(self, x: Array, /, axis: Any) -> Array:
        """An array without dims of extent 1.

        >>> xp = castwise.xp("numpy")
        >>> xp.squeeze(xp.ones((1, 3)), axis=0).shape
        (3,)
        """
        return self._viewed("squeeze", x, axis)

    def unstack(self, x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
        """The parts of an array along a dim, without it.

        >>> xp = castwise.xp("numpy")
        >>> len(xp.unstack(xp.ones((2, 3))))
        2
        """
        self._own(x, name="unstack")
        moved = self._viewed("moveaxis", x, axis, 0)
        return tuple(moved[i] for i in range(moved.shape[0]))

    def concat(self, arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
        """Arrays joined along a dim, in the dtype that they promote to; flattened without an axis.

        >>> xp = castwise.xp("torch")
        >>> xp.concat([xp.asarray([1, 2]), xp.asarray([0.5])])
        castwise.Array([1.0 2.0 0.5], f32, rules='torch')
        """
        arrays = list(arrays)
        self._own(*arrays, name="concat")
        if axis is None:
            arrays, axis = [x.reshape(-1) for x in arrays], 0
        axis = axis_of(axis, arrays[0].ndim)
        dtype = self.result_type(*arrays)
        return _core.join([_core.array(x, self._rules, dtype) for x in arrays], axis)

    def stack(self, arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
        """Arrays of one shape joined along a new dim.

        >>> xp = castwise.xp("numpy")
        >>> xp.stack([xp.arange(2), xp.arange(2)]).shape
        (2, 2)
        """
        arrays = list(arrays)
        self._own(*arrays, name="stack")
        axis = axis_of(axis, arrays[0].ndim + 1)
        return self.concat([x.unsqueeze(axis) for x in arrays], axis=axis)

    def repeat(self, x: Array, repeats: int, /, *, axis: int | None = None) -> Array:
        """An array with each element repeated a number of times, which is one for all.

        >>> xp = castwise.xp("numpy")
        >>> xp.repeat(xp.arange(2), 2)
        castwise.Array([0 0 1 1], i64, rules='numpy')
        """
        self._own(x, name="repeat")
        if isinstance(repeats, Array):
            raise TypeError("repeat takes an integer: with an array the shape of the result depends on values")
        if axis is None:
            x, axis = x.reshape(-1), 0
        axis, shape, times = axis_of(axis, x.ndim), list(x.shape), count_of(repeats, "the number of repeats")
        wide = x.unsqueeze(axis + 1).expand(*shape[: axis + 1], times, *shape[axis + 1 :])
        return wide.reshape(*shape[:axis], shape[axis] * times, *shape[axis + 1 :])

    def take(self, x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
        """The parts of an array along a dim at integer indices, whose dims stand in the place of that dim.

        Negative indices count from the end; one outside of the dim is an error. An array of one dim needs no axis.

        >>> xp = castwise.xp("numpy")
        >>> xp.take(xp.asarray([1.5, 2.5, 3.5]), xp.asarray([2, 0]))
        castwise.Array([3.5 1.5], f64, rules='numpy')
        """
        self._own(x, indices, name="take")
        if axis is None and x.ndim != 1:
            raise ValueError(f"take needs an axis for an array of {x.ndim} dims")
        at = axis_of(0 if axis is None else axis, x.ndim)
        along = indices.reshape(*(-1 if i == at else 1 for i in range(x.ndim)))
        taken: Array = _core.op("take_along_dim")(x, along, at)
        return taken.reshape(*x.shape[:at], *indices.shape, *x.shape[at + 1 :])

    def take_along_axis(self, x: Array, indices: Array, /, *, axis: int = -1) -> Array:
        """The elements of an array at integer indices along a dim; the other dims of both broadcast.

        Negative indices count from the end; one outside of the dim is an error.

        >>> xp = castwise.xp("numpy")
        >>> x = xp.asarray([[3, 1, 2], [5, 6, 4]])
        >>> xp.squeeze(xp.take_along_axis(x, xp.argsort(x)[:, :1]), axis=1)
        castwise.Array([1 4], i64, rules='numpy')
        """
        self._own(x, indices, name="take_along_axis")
        if x.ndim != indices.ndim:
            raise ValueError(f"take_along_axis takes an index of {x.ndim} dims, as its array has, not of {indices.ndim}")
        at = axis_of(axis, x.ndim)
        others = self.broadcast_shapes(*((*a.shape[:at], 1, *a.shape[at + 1 :]) for a in (x, indices)))
        wide = x.expand(*others[:at], x.shape[at], *others[at + 1 :])
        taken: Array = _core.op("take_along_dim")(wide, indices, at)
        return taken

    def tile(self, x: Array, repetitions: Any, /) -> Array:
        """An array repeated as a whole, along each dim.

        >>> xp = castwise.xp("numpy")
        >>> xp.tile(xp.arange(2), (2,))
        castwise.Array([0 1 0 1], i64, rules='numpy')
        """
        self._own(x, name="tile")
        times = [count_of(n, "a number of repetitions") for n in integers_of(repetitions)]
        times = [1] * (x.ndim - len(times)) + times
        shape = [1] * (len(times) - x.ndim) + list(x.shape)
        pairs = [n for extent in shape for n in (1, extent)]
        wide = [n for pair in zip(times, shape) for n in pair]
        return x.reshape(*pairs).expand(*wide).reshape(*(t * n for t, n in zip(times, shape)))

    def roll(self, x: Array, /, shift: Any, *, axis: Any = None) -> Array:
        """An array whose elements are moved along dims, from the end to the start.

        >>> xp = castwise.xp("numpy")
        >>> xp.roll(xp.arange(4), 1)
        castwise.Array([3 0 1 2], i64, rules='numpy')
        """
        self._own(x, name="roll")
        if axis is None:
            return self.roll(x.reshape(-1), sum(integers_of(shift)), axis=0).reshape(*x.shape)
        axes, shifts = integers_of(axis), integers_of(shift)
        shifts = shifts * len(axes) if len(shifts) == 1 else shifts
        if len(axes) != len(shifts):
            raise ValueError("there are as many shifts as axes")
        for at, by in zip(axes, shifts):
            moved = self._viewed("moveaxis", x, at, 0)
            by = by % moved.shape[0] if moved.shape[0] else 0
            if by:
                x = self._viewed("moveaxis", self.concat([moved[-by:], moved[:-by]]), 0, at)
        return x
