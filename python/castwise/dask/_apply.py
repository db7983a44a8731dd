"""``apply``: reads arguments, writes the program for them, and leaves the graph to ``Plan``."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Sequence

import dask.array as da
import numpy as np

from .. import _api, _core
from .._core import Compiled, Program, Var
from .._errors import FeedError, ProgramError
from ._block import ONE_THREAD
from ._plan import Plan
from ._text import Source

#: Dask's functions, which have no types.
_dask: Any = da

_NUMBERS = (bool, int, float, complex)


def apply(
    f: str | Compiled | Program | Callable[..., Any], /, *arrays: Any, rules: str | None = None, **named: Any
) -> Any:
    """Applies a program to chunked arrays. Nothing is computed; dtype, shape and chunks of the results are known.

    Args:
        f: What ``castwise.compile`` takes, or a ``Compiled``.
        *arrays: Dask arrays, NumPy arrays and scalars (of one chunk), and Python numbers, in the order of the names. Arrays broadcast;
            dims that meet are given the same chunks. Numbers for a program's 0-d placeholders get the dtypes that it declares.
        rules: Whose promotion applies; by default NumPy's. A ``Compiled`` has its own.
        **named: Arguments by name.

    Returns:
        A Dask array; of several results a tuple or a dict, as from ``Compiled``. A worker gets the text of a program and
        compiles it once in a process. Each block runs on one thread, unless ``f`` is a ``Compiled`` with an executor of its own,
        whose settings then apply.

        Elementwise results have the bits of one array. A reduction over a dim of several chunks is computed of one partial result
        for each block, which are merged by position, at most 16 along a dim at a time: its bits depend on the chunks, and on nothing
        else.
        That is so for ``sum prod nansum mean nanmean any all count_nonzero amax amin logsumexp var std`` and ``norm`` of p = 2.

    Raises:
        ProgramError: the rules refuse the dtypes, or shapes do not broadcast.
        ValueError: another op goes along a dim of several chunks, or needs sizes of chunks that are unknown.
        TypeError: an argument is no such array; masked arrays are refused.

    >>> import dask.array as da, castwise.dask
    >>> nir, red = da.ones((4, 6), chunks=2, dtype="uint8") * 3, da.ones((4, 6), chunks=3, dtype="uint8")
    >>> ndvi = apply("(cast(nir, f32) - red) / (cast(nir, f32) + red)", nir, red)
    >>> ndvi.dtype, ndvi.chunks
    (dtype('float32'), ((2, 1, 1), (2, 1, 1, 2)))
    >>> apply("mean(x, axis=0)", ndvi).compute(scheduler="synchronous")
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    compiled = f if isinstance(f, Compiled) else _api.compile(f, rules=rules)
    if isinstance(f, Compiled) and rules is not None:
        raise TypeError("a Compiled has rules of its own: give `rules=` to `castwise.compile`")
    asked = _Asked(compiled)
    given = asked.typed({name: _argument(name, value) for name, value in asked.bound(arrays, named).items()})
    chunked = {name: x for name, x in given.items() if isinstance(x, da.Array)}
    if not chunked:
        raise TypeError("no argument is an array")
    asked.check(given)
    form = asked.form(given)
    source = Source(asked.program(given, sized=False))
    try:
        plan = Plan(source, list(chunked), list(chunked.values()), asked.settings)
    except ProgramError:
        # The same mistake, with the user's places.
        asked.program(given, sized=True).infer()
        raise
    results = plan.results()
    if isinstance(form, dict):
        return dict(zip(form, results, strict=True))
    return tuple(results) if isinstance(form, tuple) else results[0]


def _argument(name: str, value: Any) -> Any:
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, np.ma.MaskedArray) or isinstance(getattr(value, "_meta", None), np.ma.MaskedArray):
        raise TypeError(
            f"the argument `{name}` is a masked array, whose mask would be lost: fill it first, with `da.ma.filled`"
        )
    if isinstance(value, (np.ndarray, np.generic)):
        value = _dask.from_array(np.asarray(value), chunks=-1)
    if not isinstance(value, da.Array):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        help = "; call `xarray.apply_ufunc` with the compiled object" if kind.startswith("xarray.") else ""
        raise TypeError(f"the argument `{name}` is a {kind}, not a Dask array, a NumPy array or a number{help}")
    if not isinstance(value._meta, np.ndarray):
        kind = f"{type(value._meta).__module__}.{type(value._meta).__qualname__}"
        raise TypeError(f"the chunks of `{name}` are of {kind}, not NumPy arrays")
    _dtype(name, value)
    return value


class _Asked:
    """What was compiled, as it pickles."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.kind, self.what, options = compiled._parts()
        self.names = compiled.names
        self.defaults = compiled._defaults
        asked: Any = options.__reduce__()[1]
        self.rules, self.rounding, self.deny, executor = asked
        feeds = Source(Program.parse(self.what)).feeds if self.kind == "text" else []
        #: The dtypes of a program's placeholders.
        self.declared = [feed.dtype.rstrip("*") for feed in feeds]
        self.settings = ONE_THREAD if executor is None else tuple(executor.__reduce__()[1])

    def bound(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, as a call of the compiled object takes them: of an expression, `pi` and `e` are constants. Those that
        are left to their defaults are not among them."""
        known = {"pi": math.pi, "e": math.e} if self.kind == "expression" else {}
        names = list(self.names)
        if len(args) != len(names) or named:
            names = [name for name in names if name not in known]
        if len(args) > len(names):
            raise TypeError(f"{len(args)} arguments for {len(names)} names: {', '.join(names)}")
        found = dict(zip(names, args))
        for name in named:
            if name not in self.names:
                raise TypeError(f"there is no argument `{name}`; the names are {', '.join(self.names)}")
            if name in found:
                raise TypeError(f"the argument `{name}` is given twice")
        found |= named
        for name in self.names:
            if name not in found and name not in known and name not in self.defaults:
                raise TypeError(f"the argument `{name}` is missing")
        found = known | found
        return {name: found[name] for name in self.names if name in found}

    def typed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """These arguments, of a program as arrays of its placeholders' dtypes."""
        if self.kind != "text":
            return given
        arrays = {}
        for dtype, (name, x) in zip(self.declared, given.items(), strict=True):
            if not isinstance(x, da.Array):
                x = _dask.from_array(np.asarray(_fed(name, x, dtype)), chunks=-1)
            elif (found := _dtype(name, x)) != dtype:
                raise FeedError(f"feed `{name}`: is {found}, expected {dtype}")
            arrays[name] = x
        return arrays

    def program(self, given: Mapping[str, Any], *, sized: bool) -> Program:
        """The program for these arguments, with their extents, or for any."""
        if self.kind == "text":
            return Program.parse(self.what)
        program = Program(self.rules or "numpy", rounding=self.rounding)
        values = {}
        for name, x in given.items():
            if isinstance(x, da.Array):
                extents = [n if sized and not math.isnan(n) else None for n in x.shape]
                values[name] = program.data(name, _dtype(name, x), extents)
            else:
                values[name] = x
        if self.kind == "expression":
            result = program.expression(self.what, values)
        else:
            values = self.defaults | values
            result = self.what(*(values[name] for name in self.names))
        if isinstance(result, Mapping):
            program.fetch(*result.values())
        elif isinstance(result, Var):
            program.fetch(result)
        else:
            program.fetch(*result)
        return program

    def check(self, given: Mapping[str, Any]) -> None:
        """Raises what `deny` refuses, from a call with an element of each argument."""
        if self.deny is None:
            return
        one = {n: np.ones((1,) * x.ndim, x.dtype) if isinstance(x, da.Array) else x for n, x in given.items()}
        try:
            self.compiled(**one)
        except ProgramError:
            raise
        except (ValueError, ArithmeticError):
            # Of the values or extents of this call.
            pass

    def form(self, given: Mapping[str, Any]) -> Any:
        """What a call returns, with dtypes in the places of results."""
        if self.kind == "text":
            return self.compiled.result_type(*self.declared)
        form = self.compiled.result_type(**{n: _described(x) for n, x in given.items()})
        if form == () or form == {}:
            raise TypeError("the function returned no result")
        return form

def _described(x: Any) -> Any:
    return np.empty((0,) * x.ndim, x.dtype) if isinstance(x, da.Array) else x


def _dtype(name: str, x: da.Array) -> str:
    try:
        return Program("torch").data(name, x.dtype.newbyteorder("="), []).dtype
    except TypeError as e:
        raise TypeError(f"the argument `{name}`: {e}") from None


def _fed(name: str, number: Any, dtype: str) -> Any:
    """A number as a call of a compiled program takes it for a 0-d placeholder."""
    program = Program("torch")
    program.fetch(program.data(name, dtype, []))
    return _api.compile(program)(number)


def called(f: Any, args: tuple[Any, ...], named: Mapping[str, Any] | None) -> Any:
    """What ``f(*args, **named)`` gives if an argument is an array of Dask; ``f`` is compiled, an op or a composite."""
    named = named or {}
    if isinstance(f, Compiled):
        return apply(f, *args, **named)
    arrays = (da.Array, np.ndarray, np.generic)
    at = {i: f.operands[i] if i < len(f.operands) else f"x{i}" for i, x in enumerate(args) if isinstance(x, arrays)}
    by_name = [name for name, x in named.items() if isinstance(x, arrays)]

    def traced(*values: Var) -> Any:
        given = dict(zip((*at, *by_name), values))
        return f(
            *(given.get(i, x) for i, x in enumerate(args)), **{name: given.get(name, x) for name, x in named.items()}
        )

    compiled = _core.compile_function(traced, [*at.values(), *by_name], _core.Options())
    return apply(compiled, *(args[i] for i in at), **{name: named[name] for name in by_name})
