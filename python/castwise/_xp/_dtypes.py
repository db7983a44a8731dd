"""dtypes: promotion, limits, and what a namespace has."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _core
from .._core import Array
from ._base import Base, check_device


class finfo_object(NamedTuple):
    """What ``finfo`` gives."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: str


class iinfo_object(NamedTuple):
    """What ``iinfo`` gives."""

    bits: int
    max: int
    min: int
    dtype: str


# Python's numbers, which have no dtype of their own.
NUMBERS = (bool, int, float, complex)


class Dtypes(Base):
    """The functions of dtypes."""

    def __array_namespace_info__(self) -> Info:
        """What the namespace has: devices, dtypes, capabilities."""
        return Info(self)

    def astype(self, x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
        """The same values in another dtype.

        >>> xp = castwise.xp("numpy")
        >>> xp.astype(xp.asarray(2.75), xp.int8)
        castwise.Array(2, i8, rules='numpy')
        """
        check_device(device)
        self._own(x, name="astype")
        return _core.array(x, self._rules, dtype)

    def can_cast(self, from_: Any, to: Any, /) -> bool:
        """Whether a dtype, or that of an array of this namespace, promotes to another one.

        >>> castwise.xp("numpy").can_cast("i8", "f16"), castwise.xp("numpy").can_cast("i64", "i8")
        (True, False)
        """
        name = _core.dtype_info(to)[0]
        if hasattr(from_, "dtype") and not isinstance(from_, type):
            self._own(from_, name="can_cast")
            from_ = from_.dtype
        elif type(from_) not in NUMBERS:
            from_ = _core.dtype_info(from_)[0]
        try:
            return self.result_type(from_, name) == name
        except TypeError:
            return False

    def result_type(self, *arrays_and_dtypes: Any) -> str:
        """The dtype of an op of arrays, dtypes and Python numbers.

        >>> castwise.xp("torch").result_type("i64", "f16", 2.5)
        'f16'
        """
        scalars = [v for v in arrays_and_dtypes if type(v) in NUMBERS]
        if arrays := [v for v in arrays_and_dtypes if isinstance(v, Array)]:
            self._own(*arrays, name="result_type")
        dtypes = [v.dtype if isinstance(v, Array) else v for v in arrays_and_dtypes if type(v) not in NUMBERS]
        if not dtypes:
            raise ValueError("result_type takes at least one array or dtype")
        found: str = _core.dtype_info(dtypes[0])[0]
        for d in dtypes[1:]:
            found = _core.promote_types(found, d, self._rules)
        for s in scalars:
            found = _core.result_type(found, s, rules=self._rules, op="add")
        return found

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        """Whether a dtype is another one, or of a kind such as ``"real floating"``; of several, one of them.

        >>> castwise.xp("torch").isdtype("bf16", "real floating")
        True
        """
        if isinstance(kind, tuple):
            return any(self.isdtype(dtype, k) for k in kind)
        name, own, *_ = _core.dtype_info(dtype)
        integers, floats = ("signed integer", "unsigned integer"), ("real floating", "complex floating")
        several = {"integral": integers, "numeric": (*integers, *floats)}
        if kind in several:
            return own in several[kind]
        return own == kind if kind in ("bool", *integers, *floats) else name == _core.dtype_info(kind)[0]

    def finfo(self, type: Any, /) -> finfo_object:
        """The limits of a float dtype, or of the parts of a complex one.

        >>> castwise.xp("torch").finfo("f16").max
        65504.0
        """
        name, _, bits, limits, _ = _core.dtype_info(type.dtype if isinstance(type, Array) else type)
        if limits is None:
            raise TypeError(f"finfo takes floats and complex numbers, not {name}: `iinfo` takes integers")
        eps, largest, least = limits
        if name.startswith("c"):
            name, bits = f"f{bits // 2}", bits // 2
        return finfo_object(bits, eps, largest, -largest, least, name)

    def iinfo(self, type: Any, /) -> iinfo_object:
        """The limits of an integer dtype.

        >>> castwise.xp("torch").iinfo("i8").min
        -128
        """
        name, _, bits, _, limits = _core.dtype_info(type.dtype if isinstance(type, Array) else type)
        if limits is None:
            raise TypeError(f"iinfo takes integers, not {name}")
        least, largest = limits
        return iinfo_object(bits, largest, least, name)


class Info:
    """What a namespace has, as the standard's inspection functions tell it."""

    def __init__(self, xp: Dtypes) -> None:
        self._xp = xp

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": None}

    def default_device(self) -> str:
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, str]:
        check_device(device)
        kinds = {"real floating": 1.0, "complex floating": 1j, "integral": 1}
        return {**{kind: self._xp._default(value) for kind, value in kinds.items()}, "indexing": "i64"}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, str]:
        check_device(device)
        names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
        found = {name: _core.dtype_info(name)[0] for name in names}
        return {name: d for name, d in found.items() if kind is None or self._xp.isdtype(d, kind)}

    def devices(self) -> tuple[str, ...]:
        return ("cpu",)
