"""NumPy's functions of a ``Var``: those that have a meaning in a program, under NumPy's parameters.

Guarantees: a function or argument that has no meaning raises ``TypeError`` with what to write instead. Does not: have dtypes
of its own; each function is an op or a view.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Mapping, Sequence

from . import _core
from ._core import Var

_FUNCTIONS: dict[str, Callable[..., Any]] = {}

#: Why functions are refused, where there is more to say than that castwise has no such op.
_REFUSED = {
    **dict.fromkeys(
        "concatenate stack vstack hstack dstack column_stack block append tile repeat split array_split".split(),
        "programs have no op that joins or repeats arrays: do it before the call or after it",
    ),
    **dict.fromkeys(
        "unique searchsorted partition argpartition lexsort".split(),
        "programs have elementwise ops and reductions along dims",
    ),
    **dict.fromkeys("dot matmul tensordot einsum inner outer".split(), "programs have no products of matrices"),
    **dict.fromkeys(
        "array_equal allclose array_equiv shares_memory may_share_memory".split(),
        "a Var has no value while a function is traced",
    ),
}


def _other(name: str) -> str:
    """Why a function of NumPy is refused: castwise may have one by its name, with parameters of its own."""
    try:
        return f"castwise's function of this name is castwise.{_core.op(name).__name__}"
    except TypeError:
        return "castwise has no op for it"


def apply(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``Var.__array_function__`` calls. NumPy's mark of an argument that is left out is none."""
    import numpy

    name = func.__name__
    found = _FUNCTIONS.get(name)
    if found is None:
        raise TypeError(f"numpy.{name} of a castwise.Var: {_REFUSED.get(name) or _other(name)}")
    try:
        return found(*args, **{key: value for key, value in kwargs.items() if value is not numpy._NoValue})
    except _Refused as e:
        raise TypeError(f"numpy.{name} of a castwise.Var {e}") from None


def function(name: str) -> Callable[..., Any]:
    """A function of NumPy by its name, for values that have the views and ops of a ``Var``."""
    found = _FUNCTIONS[name]

    def call(*args: Any) -> Any:
        try:
            return found(*args)
        except _Refused as e:
            raise TypeError(f"{name} {e}") from None

    return call


class _Refused(Exception):
    pass


def _named(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        _FUNCTIONS.update(dict.fromkeys(names, f))
        return f

    return add


def _as_numpy(dtype: Any) -> Any:
    """The dtype that NumPy takes this for, whose `"i8"` has 8 bytes; what NumPy does not know is castwise's."""
    import numpy

    try:
        return numpy.dtype(dtype)
    except TypeError:
        return dtype


def _dtype(dtype: Any) -> dict[str, Any]:
    """The argument of an op for a dtype that may be left out."""
    return {} if dtype is None else {"dtype": _as_numpy(dtype)}


def _none(**given: Any) -> None:
    """Refuses arguments that are not ``None``."""
    for name, value in given.items():
        if value is not None:
            raise _Refused(f"takes no `{name}`")


def _reduction(op: str, *names: str) -> None:
    @_named(*names)
    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
    ) -> Any:
        _none(out=out, initial=initial, where=where)
        return _core.op(op)(a, axis=axis, keepdims=keepdims, **_dtype(dtype))


_reduction("sum", "sum")
_reduction("prod", "prod")
_reduction("mean", "mean")
_reduction("nansum", "nansum")
_reduction("nanmean", "nanmean")


def _scan(op: str) -> None:
    @_named(op)
    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        _none(out=out)
        if axis is None and a.ndim > 1:
            a = a.reshape(-1)
        return _core.op(op)(a, axis=axis, **_dtype(dtype))


_scan("cumsum")
_scan("cumprod")


def _extreme(op: str, *names: str) -> None:
    @_named(*names)
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Any:
        _none(out=out, initial=initial, where=where)
        return _core.op(op)(a, axis=axis, keepdims=keepdims)


_extreme("amax", "max", "amax")
_extreme("amin", "min", "amin")
_extreme("any", "any")
_extreme("all", "all")


def _variance(op: str) -> None:
    @_named(op)
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Any:
        _none(out=out, where=where, mean=mean)
        if correction is not None and ddof != 0:
            raise ValueError("`correction` is another name of `ddof`, which is given")
        less = ddof if correction is None else correction
        return _core.op(op)(a, axis=axis, keepdims=keepdims, correction=float(less), **_dtype(dtype))


_variance("var")
_variance("std")


def _position(op: str) -> None:
    @_named(op)
    def reduce(a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        _none(out=out)
        return _core.op(op)(a, axis=axis, keepdims=keepdims)


_position("argmax")
_position("argmin")


def _median(op: str) -> None:
    @_named(op)
    def reduce(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
        _none(out=out)
        return _core.op(op)(a, axis=axis, keepdims=keepdims)


_median("median")
_median("nanmedian")

#: NumPy's methods of quantiles that castwise has.
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(op: str, name: str, whole: float) -> None:
    @_named(name)
    def reduce(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
        interpolation: Any = None,
    ) -> Any:
        _none(out=out, weights=weights)
        method = method if interpolation is None else interpolation
        if method not in _METHODS:
            raise _Refused(f"has the methods {', '.join(_METHODS)} only")
        try:
            part = float(q)
        except TypeError:
            raise _Refused("takes one `q`: write a call for each") from None
        return _core.op(op)(a, axis=axis, keepdims=keepdims, q=part / whole, interpolation=method)


_quantile("quantile", "quantile", 1)
_quantile("nanquantile", "nanquantile", 1)
_quantile("quantile", "percentile", 100)
_quantile("nanquantile", "nanpercentile", 100)


def _sort(op: str) -> None:
    @_named(op)
    def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        # Every sort here is stable.
        _none(order=order)
        if axis is None:
            a, axis = a if a.ndim == 1 else a.reshape(-1), -1
        return _core.op(op)(a, axis=axis)


_sort("sort")
_sort("argsort")


@_named("count_nonzero")
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _core.op("count_nonzero")(a, axis=axis, keepdims=keepdims)


def _unary(name: str) -> None:
    @_named(name)
    def one(val: Any) -> Any:
        return _core.op(name)(val)


_unary("real")
_unary("imag")


@_named("isclose")
def _isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return _core.op("isclose")(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


@_named("nan_to_num")
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise _Refused("does not change its operand: leave out `copy`")
    return _core.op("nan_to_num")(x, nan=nan, posinf=posinf, neginf=neginf)


@_named("angle")
def _angle(z: Any, deg: bool = False) -> Any:
    if deg:
        raise _Refused("gives radians only")
    return _core.op("angle")(z)


@_named("where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise _Refused("takes both values: the positions of true elements are a shape that depends on data")
    return _core.op("where")(condition, x, y)


#: An argument that a call leaves out, where ``None`` is one.
_MISSING = object()


@_named("clip")
def _clip(
    a: Any, a_min: Any = _MISSING, a_max: Any = _MISSING, out: Any = None, *, min: Any = _MISSING, max: Any = _MISSING
) -> Any:
    _none(out=out)
    if (a_min is _MISSING) != (a_max is _MISSING):
        raise _Refused("takes `a_min` and `a_max` together, or `min` and `max`")
    if a_min is not _MISSING and not (min is _MISSING and max is _MISSING):
        raise ValueError("`min` and `max` are other names of `a_min` and `a_max`, which are given")
    bounds = (min, max) if a_min is _MISSING else (a_min, a_max)
    low, high = (None if bound is _MISSING else bound for bound in bounds)
    return _core.op("positive")(a) if low is None and high is None else _core.op("clamp")(a, low, high)


@_named("round", "around", "round_")
def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    _none(out=out)
    if decimals:
        raise _Refused("rounds to integers only: scale before and after it")
    return _core.op("round")(a)


@_named("full_like")
def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    _none(shape=shape, device=device)
    made = _core.op("full_like")(a, value=fill_value, **_dtype(dtype))
    *_, limits = _core.dtype_info(made.dtype)
    if type(fill_value) is int and limits is not None and not limits[0] <= fill_value <= limits[1]:
        raise OverflowError(f"{fill_value} is outside of {made.dtype}")
    return made


def _filled(name: str, value: int) -> None:
    @_named(name)
    def filled(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        return _full_like(a, value, dtype, shape=shape, device=device)


_filled("zeros_like", 0)
_filled("ones_like", 1)


@_named("copy")
def _copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    return a


@_named("ptp")
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    _none(out=out)
    most, least = (_core.op(op)(a, axis=axis, keepdims=keepdims) for op in ("amax", "amin"))
    return most - least


@_named("diff")
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    _none(prepend=prepend, append=append)
    if n < 0:
        raise ValueError(f"the order {n} is negative")
    before = (slice(None),) * axis_of(axis, a.ndim)
    # As in NumPy, those of bools tell whether neighbours differ.
    differ = _core.op("ne" if a.dtype == "bool" else "sub")
    for _ in range(n):
        a = differ(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


@_named("shape")
def _shape(a: Any) -> Any:
    return a.shape


@_named("ndim")
def _ndim(a: Any) -> Any:
    return a.ndim


def axis_of(axis: Any, ndim: int) -> int:
    """The position of a dim that may be counted from the last one."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise ValueError(f"axis {at} is out of bounds for {ndim} dims")
    return at % ndim


def integers_of(given: Any) -> list[int]:
    """An integer of any library, or several."""
    try:
        return [operator.index(given)]
    except TypeError:
        return [operator.index(n) for n in given]


def _axes(axis: Any, ndim: int) -> list[int]:
    found = [axis_of(a, ndim) for a in integers_of(axis)]
    if len({*found}) != len(found):
        raise ValueError("an axis is given twice")
    return found


@_named("transpose", "permute_dims")
def _transpose(a: Var, axes: Any = None) -> Any:
    return a.T if axes is None else a.permute(*_axes(axes, a.ndim))


@_named("matrix_transpose")
def _matrix_transpose(x: Var) -> Any:
    return x.mT


@_named("swapaxes")
def _swapaxes(a: Var, axis1: int, axis2: int) -> Any:
    return a.transpose(axis_of(axis1, a.ndim), axis_of(axis2, a.ndim))


@_named("moveaxis")
def _moveaxis(a: Var, source: Any, destination: Any) -> Any:
    sources, targets = _axes(source, a.ndim), _axes(destination, a.ndim)
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` have different lengths")
    order = [i for i in range(a.ndim) if i not in sources]
    for to, of in sorted(zip(targets, sources)):
        order.insert(to, of)
    return a.permute(*order)


@_named("reshape")
def _reshape(a: Var, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    if order != "C":
        raise _Refused("has the order C only")
    _none(copy=copy)
    return a.reshape(*integers_of(newshape if shape is None else shape))


@_named("ravel")
def _ravel(a: Var, order: str = "C") -> Any:
    if order != "C":
        raise _Refused("has the order C only")
    return a.reshape(-1)


@_named("squeeze")
def _squeeze(a: Var, axis: Any = None) -> Any:
    shape = a.shape
    if axis is None:
        if None in shape:
            raise _Refused("needs an `axis` where extents are known only when a call comes")
        axis = [i for i, n in enumerate(shape) if n == 1]
    for at in sorted(_axes(axis, len(shape)), reverse=True):
        if shape[at] not in (None, 1):
            raise ValueError(f"axis {at} has {shape[at]} elements, not 1")
        a = a.squeeze(at)
    return a


@_named("expand_dims")
def _expand_dims(a: Var, axis: Any) -> Any:
    axes = integers_of(axis)
    for at in sorted(_axes(axes, a.ndim + len(axes))):
        a = a.unsqueeze(at)
    return a


@_named("broadcast_to")
def _broadcast_to(array: Var, shape: Any, subok: bool = False) -> Any:
    extents = integers_of(shape)
    # To `expand`, -1 is an extent that stays.
    if any(n < 0 for n in extents):
        raise ValueError(f"an extent of the shape {shape} is negative")
    return array.expand(*extents)


@_named("flip")
def _flip(m: Var, axis: Any = None) -> Any:
    return m.flip(*(range(m.ndim) if axis is None else _axes(axis, m.ndim)))


@_named("astype")
def _astype(x: Var, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    _none(device=device)
    return x.cast(_as_numpy(dtype))
