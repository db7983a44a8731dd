"""The exceptions of castwise. Each is also the built-in exception that fits, so that ``except TypeError`` works."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One mistake in a program.

    >>> try:
    ...     castwise.compile("a +")
    ... except castwise.ProgramError as e:
    ...     print(e.diagnostics[0].range)
    (3, 3)

    Attributes:
        kind: The kind of mistake, such as ``"PromotionRefused"``.
        message: One sentence with the op, its operands with dtype and shape, what was expected and what was found.
        help: What to write instead, or ``None``.
        file: The source file, or ``None`` for a mistake in an expression or in the text of a program.
        line: The line in that file, from 1, or ``None``.
        range: The characters of the expression or text, as ``(start, end)``, or ``None``.
    """

    kind: str
    message: str
    help: str | None
    file: str | None
    line: int | None
    range: tuple[int, int] | None


class Error(Exception):
    """What castwise raises.

    >>> issubclass(castwise.ShapeError, castwise.Error)
    True
    """


class ProgramError(Error, TypeError):
    """A program has mistakes: dtypes that do not mix, shapes that do not broadcast, text that does not parse.

    ``diagnostics`` has all of them.

    >>> castwise.promote_types("i64", "f32", rules="paddle")
    Traceback (most recent call last):
    castwise._errors.ProgramError: ...
    """

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[ProgramError], tuple[str, tuple[Diagnostic, ...]]]:
        return type(self), (str(self), self.diagnostics)


class FeedError(Error, ValueError):
    """An argument does not fit the program: it is missing, unknown, or has another dtype, rank or extent.

    >>> p = castwise.Program("numpy")
    >>> p.fetch(p.data("x", "f32", [3]) * 2)
    >>> castwise.compile(p)(np.ones(2, np.float32))
    Traceback (most recent call last):
    castwise._errors.FeedError: ...
    """


class ShapeError(Error, ValueError):
    """A shape is impossible, or an array for a result has another one.

    >>> castwise.compile("a * 2")(np.ones(3), out=np.ones(2))
    Traceback (most recent call last):
    castwise._errors.ShapeError: ...
    """


class DivisionByZero(Error, ZeroDivisionError):
    """An integer was divided by zero, or raised to a negative power.

    >>> castwise.compile("a // b", rules="torch")(np.int64([1]), np.int64([0]))
    Traceback (most recent call last):
    castwise._errors.DivisionByZero: ...
    """


class EmptyReduction(Error, ValueError):
    """The minimum or maximum of no elements.

    >>> castwise.amax(np.ones(0))
    Traceback (most recent call last):
    castwise._errors.EmptyReduction: ...
    """


class LimitError(Error, ValueError):
    """A limit of the executor or of the library is exceeded.

    >>> castwise.compile("a * 2", executor=castwise.Executor(max_bytes=100))(np.ones(1000))
    Traceback (most recent call last):
    castwise._errors.LimitError: ...
    """


# The other way round, `OutOfMemory.__new__` is that of MemoryError and refuses the class. Dask's workers call it.
class OutOfMemory(MemoryError, Error):
    """There is no memory for a result.

    >>> issubclass(castwise.OutOfMemory, MemoryError)
    True
    """


class InternalError(Error, RuntimeError):
    """A fault of castwise. Please report it with the text of the program.

    >>> issubclass(castwise.InternalError, RuntimeError)
    True
    """
