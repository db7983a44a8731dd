"""The functions of the package: thin layers over ``castwise._core``."""

from __future__ import annotations

import functools
import html
import inspect
import math
import sys
import threading
from typing import Any, Callable, Iterable, Mapping, overload

from . import _core
from ._core import Compiled, Executor, Program, Var


@overload
def compile(
    f: str | Callable[..., Any] | Program,
    *,
    rules: str | None = None,
    rounding: str = "exact",
    deny: str | None = None,
    executor: Executor | None = None,
) -> Compiled: ...
@overload
def compile(
    f: None = None,
    *,
    rules: str | None = None,
    rounding: str = "exact",
    deny: str | None = None,
    executor: Executor | None = None,
) -> Callable[[Callable[..., Any]], Compiled]: ...
def compile(
    f: str | Callable[..., Any] | Program | None = None,
    *,
    rules: str | None = None,
    rounding: str = "exact",
    deny: str | None = None,
    executor: Executor | None = None,
) -> Compiled | Callable[[Callable[..., Any]], Compiled]:
    """Compiles an expression, a function, a program or a program's text.

    Args:
        f: An expression such as ``"(nir - red) / (nir + red)"``; a function, which is called once with ``Var``s for
            arguments of new dtypes or ranks; a ``Program``; or the text of one, which begins with ``castwise`` or
            ``program``. Without it, a decorator.
        rules: Whose promotion applies: ``"torch"``, ``"paddle"``, ``"numpy"``, ``"jax"``, ``"jax,x64"``. By default
            the rules of the arrays' library. A program has rules and a rounding of its own.
        rounding: ``"exact"`` rounds values of 16 and 8 bits after every op, as eager execution does; ``"relaxed"``
            only where a value is stored.
        deny: Implicit losses that a call refuses. ``"range"``: casts that may leave the range of the dtype, and integer
            ops that may wrap before a wider dtype takes the value; ``"lossy"``: also casts that round, and ops that round
            to 16 bits before a wider dtype takes the value; ``"wrap"``: only integer ops that may wrap so. Casts that
            the program contains are accepted.
        executor: What runs it; by default that of the process.

    Returns:
        A ``Compiled``, which is called with arrays. Its arguments are the expression's names in the order in which
        they first occur (``pi`` and ``e`` are the constants unless they are given), the function's parameters, or the program's placeholders. It is typed and compiled once for
        the dtypes and ranks of a call; any extents are allowed. A parameter that a call leaves out has its default, which may be any
        object and is a constant of the program. A function that is traced may call compiled functions and expressions of the same
        rules: their ops belong to its program, with its rounding, ``deny`` and executor.

    Raises:
        ProgramError: the expression or the text does not parse. Mistakes of dtypes and shapes, and what ``deny`` refuses,
            are raised by the call, all at once.

    >>> import numpy as np
    >>> @compile
    ... def scaled(x, factor):
    ...     return x * factor + 1
    >>> scaled(np.float32([1, 2]), 0.5)
    array([1.5, 2. ], dtype=float32)
    """
    if f is None:
        return lambda function: compile(function, rules=rules, rounding=rounding, deny=deny, executor=executor)
    options = _core.Options(rules, rounding, deny, executor)
    if isinstance(f, Program):
        return _core.compile_program(f, options)
    if isinstance(f, str):
        if f.lstrip().startswith(("castwise ", "program(")):
            return _core.compile_text(f, options)
        return _core.compile_expression(f, options)
    if callable(f):
        return of_function(f, options)
    raise TypeError(f"compile takes an expression, a function or a Program, not {type(f).__name__}")


def of_function(f: Callable[..., Any], options: _core.Options) -> Compiled:
    """Compiles a function, by its signature."""
    names, defaults = _parameters(f)
    return _core.compile_function(f, names, options, defaults)


def _parameters(f: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """The names of a function's parameters, and their defaults."""
    names, defaults = [], {}
    for p in inspect.signature(f).parameters.values():
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"the parameter `{p.name}` is not positional: a compiled function takes positional ones")
        names.append(p.name)
        if p.default is not p.empty:
            defaults[p.name] = p.default
    return names, defaults


@functools.lru_cache(maxsize=512)
def _compiled(text: str, rules: str | None) -> Compiled:
    return _core.compile_expression(text, _core.Options(rules))


class _Last(threading.local):
    """What this thread evaluated last."""

    compiled: Compiled | None = None


_last = _Last()


#: What names are in an expression where there are no such variables.
_CONSTANTS = {"pi": math.pi, "e": math.e}


def _found(
    names: Iterable[str], local: Mapping[str, Any] | None, globals_: Mapping[str, Any] | None, depth: int
) -> list[Any]:
    if local is None or globals_ is None:
        frame = sys._getframe(depth)
        local = frame.f_locals if local is None else local
        globals_ = frame.f_globals if globals_ is None else globals_
    found = []
    for name in names:
        if name in local:
            found.append(local[name])
        elif name in globals_:
            found.append(globals_[name])
        elif name in _CONSTANTS:
            found.append(_CONSTANTS[name])
        else:
            raise NameError(f"the expression has the name `{name}`, which is not a variable here")
    return found


def evaluate(
    ex: str,
    local_dict: Mapping[str, Any] | None = None,
    global_dict: Mapping[str, Any] | None = None,
    out: Any = None,
    order: str = "K",
    casting: str = "safe",
    sanitize: bool | None = None,
    *,
    rules: str | None = None,
) -> Any:
    """Computes an expression of the caller's variables, as ``numexpr.evaluate`` does, with castwise's dtypes.

    Nothing is evaluated as Python code. Compiled expressions are remembered.

    Args:
        ex: The expression.
        local_dict: Where names are looked up first; by default the caller's local variables.
        global_dict: Where they are looked up next; by default the caller's global variables.
        out: An array for the result.
        order: The layout of the result, which is row-major: ``"K"``, ``"A"`` and ``"C"`` are accepted.
        casting: What may happen to a result that is written to ``out``: ``"safe"`` and ``"same_kind"`` are accepted, and
            the rules decide.
        sanitize: Has no effect, because nothing is evaluated as Python code.
        rules: Whose promotion applies; by default the rules of the arrays' library.

    Raises:
        ValueError: another ``order`` or ``casting``.
        NameError: a name of the expression is no variable.

    >>> import numpy as np
    >>> a, b = np.arange(3), np.float32([0.5, 1, 2])
    >>> evaluate("2 * a + b")
    array([0.5, 3. , 6. ])
    """
    if order not in ("K", "A", "C"):
        raise ValueError(f"order={order!r}: results are row-major; transpose the result instead")
    if casting not in ("safe", "same_kind"):
        raise ValueError(f"casting={casting!r}: write a cast into the expression, as in `cast(a + b, f32)`")
    compiled = _compiled(ex, rules)
    arguments = _found(compiled.names, local_dict, global_dict, 2)
    _last.compiled = compiled
    return compiled(*arguments, out=out)


def re_evaluate(
    local_dict: Mapping[str, Any] | None = None, global_dict: Mapping[str, Any] | None = None, out: Any = None
) -> Any:
    """Computes this thread's last expression of ``evaluate`` again, with the variables as they are now.

    >>> import numpy as np
    >>> for a in (np.float32([1, 2]), np.float32([3, 4])):
    ...     print(evaluate("a * 2") if a[0] == 1 else re_evaluate())
    [2. 4.]
    [6. 8.]
    """
    compiled = _last.compiled
    if compiled is None:
        raise RuntimeError("`evaluate` has not been called in this thread")
    return compiled(*_found(compiled.names, local_dict, global_dict, 2), out=out)


def NumExpr(ex: str, *, rules: str | None = None) -> Compiled:
    """A compiled expression, under numexpr's name for it. Its arguments are in the order in which they occur.

    >>> import numpy as np
    >>> NumExpr("b - a")(np.arange(3), 1)
    array([-1,  0,  1])
    """
    return _compiled(ex, rules)


def _traced(f: Any, rules: str, declared: Mapping[str, Any]) -> Program:
    """The program of an expression or function for arguments of declared dtypes."""
    names = f.names if isinstance(f, Program) else compile(f, rules=rules).names
    unknown = set(declared) - set(names)
    if unknown:
        raise TypeError(f"there is no argument `{min(unknown)}`; the names are {', '.join(names)}")
    if isinstance(f, Program):
        other = next((name for name, what in declared.items() if not _is_array(what)), None)
        if other is not None:
            raise TypeError(f"the program declares `{other}`: it takes an array, not {declared[other]!r}")
        return f.with_rules(rules)
    program = Program(rules)
    defaults = _CONSTANTS if isinstance(f, str) else _parameters(f)[1]
    values = {}
    for name in names:
        if name in declared:
            values[name] = _declare(program, name, declared[name])
        elif name in defaults:
            values[name] = defaults[name]
        else:
            raise TypeError(f"the dtype of `{name}` is missing: pass `{name}=\"f32\"`, an array or a number")
    result = program.expression(f, values) if isinstance(f, str) else f(*values.values())
    if isinstance(result, Mapping):
        program.fetch(**result)
    elif isinstance(result, Var):
        program.fetch(result)
    else:
        program.fetch(*result)
    return program


def _is_array(what: Any) -> bool:
    # Scalar types such as `np.float32` have descriptors of these names.
    return hasattr(what, "dtype") and hasattr(what, "shape") and not isinstance(what, type)


def _declare(program: Program, name: str, what: Any) -> Any:
    """A placeholder for a dtype, a dtype with a shape, or an array; a number is itself."""
    if isinstance(what, (bool, int, float, complex)):
        return what
    if isinstance(what, str):
        dtype, _, dims = what.partition("[")
        shape = [int(d) if d.strip().isdigit() else d.strip() for d in dims.rstrip("]").split(",") if d.strip()]
        return program.data(name, dtype, [None if d == "?" else d for d in shape] if "[" in what else ["n"])
    if _is_array(what):
        # JAX's arrays and those of `castwise.xp` have different names for it.
        weak = getattr(what, "weak_type", False) or getattr(what, "weak", False)
        return program.data(name, what.dtype, list(what.shape), weak=bool(weak))
    return program.data(name, what, ["n"])


class Explanation(str):
    """What ``explain`` gives: text, which a notebook shows as a picture and a table.

    >>> explanation = explain("a * 0.5 + b", rules="torch", a="bf16", b="f16")
    >>> isinstance(explanation, str), explanation._repr_html_()[:5]
    (True, '<div>')
    """

    _html: Callable[[], str]

    def _repr_html_(self) -> str:
        return self._html()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def explain(f: Any, /, *, rules: str, numeric: bool = False, **arguments: Any) -> Explanation:
    """The casts that rules imply, with their reasons, and the typed program.

    Args:
        f: An expression, a function or a ``Program``.
        rules: Whose promotion applies.
        numeric: Whether to measure what each op and cast adds to the error of the result, against the same program in f64: on the
            arrays that are given, and on random elements, uniform between 0 and 1, where only a dtype is.
        **arguments: A dtype (``"f32"``), a dtype with a shape (``"bf16[3, n]"``), an array or a number for each name; measured beside
            arrays, a dtype needs its shape (``"bf16[3, 4]"``). A ``Program`` takes arrays for its placeholders.

    Returns:
        Text. A notebook shows it as a picture, in which casts have the colour of what they may lose, and a table; errors are bars.

    Raises:
        ProgramError: the rules refuse the dtypes, or the shapes do not broadcast.
        TypeError: a name that ``f`` has not, or anything but an array for a name of a ``Program``.
        ValueError: ``numeric`` of a program of several results.

    >>> print(explain("a + b", rules="torch", a="i64", b="f16").splitlines()[1])
    1 cast: 0 exact, 0 that round, 1 that may leave the range
    >>> print(explain("a * 0.5 + b", rules="torch", numeric=True, a="bf16[99]", b="f32[99]").splitlines()[0].split(";")[1])
     measured on 99 random elements (floats uniform between 0 and 1), relative to the same program in f64
    """
    program = _traced(f, rules, arguments)
    if not numeric:
        explanation = Explanation(program.explain())
        explanation._html = program._repr_html_
        return explanation
    feeds = {name: a for name, a in arguments.items() if _is_array(a)}
    text, shown = _core.measured(program, feeds)
    explanation = Explanation(f"{text}\n{program.explain()}")
    explanation._html = lambda: shown
    return explanation


def fix(
    ex: str, /, *, rules: str, tolerance: float | None = None, deny: str = "lossy", **arguments: Any
) -> str:
    """The expression with a small set of casts, after which it loses less. Its results keep their dtypes.

    Args:
        ex: The expression, of one result; or of several that are named, a text that ``castwise eval`` computes and ``compile`` does not.
        rules: Whose promotion applies.
        tolerance: The largest relative error that results may have, against the expression in f64; measured on the arrays, or on
            random elements for names with a dtype.
        deny: Without a tolerance: nothing is left that ``compile(…, deny=deny)`` refuses.
        **arguments: For each name a dtype (``"f32"``), a dtype with a shape (``"bf16[3, n]"``), an array or a number; beside arrays a
            dtype needs its shape (``"bf16[3, 4]"``).

    Raises:
        ProgramError: no set of casts that was tried reaches this, with the reason; or the expression is refused.
        TypeError: a name that the expression does not have.

    >>> fix("0.7*a + 0.3*b", rules="torch", a="bf16[4096]", b="f16[4096]", tolerance=1e-6)
    '0.7*cast(a, f32) + 0.3*cast(b, f32)'
    """
    values = tuple(what + "[n]" if isinstance(what, str) and "[" not in what else what for what in arguments.values())
    return _core.fix(ex, rules, deny, tolerance, list(arguments), values)


#: What a comparison has for each op.
Differing = tuple[str, str, "dict[str, str | None]"]


class Comparison(list[Differing]):
    """What ``compare`` gives: a list, which a notebook shows as a table.

    >>> compare("a + b", "torch", "numpy", a="i64", b="f32")._repr_html_().count("<tr")
    2
    """

    rules: tuple[str, ...]

    def _repr_html_(self) -> str:
        if not self:
            return "<div>The rule sets give every op the same dtype.</div>"
        escaped = html.escape
        heads = "".join(f'<th style="text-align:left">{escaped(name)}</th>' for name in ("op", *self.rules, "source"))
        rows = []
        for op, place, outcomes in self:
            # The first outcome is what the others are compared with.
            found = [outcomes.get(name) for name in self.rules]
            cells = [f"<td>{escaped(op)}</td>"]
            for dtype in found:
                colour = "#f8cecc" if dtype is None else "#d5e8d4" if dtype == found[0] else "#ffe6a0"
                cells.append(f'<td style="background:{colour};color:#000">{escaped(dtype or "refused")}</td>')
            rows.append(f"<tr>{''.join(cells)}<td>{escaped(place)}</td></tr>")
        return f"<table><tr>{heads}</tr>{''.join(rows)}</table>"


def compare(f: Any, /, *rules: str, **arguments: Any) -> Comparison:
    """Where rule sets differ: the op, its place, and the dtype that each gives, or ``None`` where it refuses.

    Args:
        f: An expression, a function or a ``Program``.
        *rules: Names of rule sets; all without.
        **arguments: What ``explain`` takes.

    Returns:
        A list; a notebook shows it as a table, in which what differs from the first rule set is coloured.

    >>> compare("a + b", "torch", "numpy", a="i64", b="f32")
    [('add', 'characters 0..5', {'torch': 'f32', 'numpy': 'f64'})]
    """
    names = list(rules) or list(_core.rule_names())
    program = _traced(f, names[0], arguments)
    found = _core.compare_program(program, names)
    comparison = Comparison((op, place, dict(outcomes)) for op, place, outcomes in found)
    comparison.rules = tuple(names)
    return comparison


def result_type(*operands: Any, rules: str, op: str = "add") -> str:
    """The dtype of an op's result, from arrays, Python numbers and dtypes.

    >>> result_type("i32", 2.5, rules="torch"), result_type("i32", 2.5, rules="numpy")
    ('f32', 'f64')
    """
    return _core.result_type(*operands, rules=rules, op=op)


def promote_types(a: Any, b: Any, *, rules: str) -> str:
    """The dtype that two dtypes promote to. Raises ``ProgramError`` if the rules refuse them.

    >>> promote_types("bf16", "f16", rules="torch")
    'f32'
    """
    return _core.promote_types(a, b, rules)


def can_cast(from_: Any, to: Any) -> bool:
    """Whether results of one dtype may be written to an array of another one, as ``torch.can_cast`` says.

    >>> can_cast("f32", "f16"), can_cast("f32", "i32")
    (True, False)
    """
    return _core.can_cast(from_, to)


def set_num_threads(n: int) -> int:
    """How many threads runs of the process's executor use at most from now on; returns the number before.

    >>> before = set_num_threads(1)
    >>> set_num_threads(before)
    1
    """
    executor = _core.default_executor()
    before = executor.threads
    executor.threads = n
    return before


def get_num_threads() -> int:
    """How many threads runs of the process's executor use at most.

    >>> get_num_threads() >= 1
    True
    """
    return _core.default_executor().threads
