"""The exceptions of castwise. Each is also the built-in exception that fits, so that ``except TypeError`` works."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One mistake in a program.

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
    """What castwise raises."""


class ProgramError(Error, TypeError):
    """A program has mistakes: dtypes that do not mix, shapes that do not broadcast, text that does not parse.

    ``diagnostics`` has all of them.
    """

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[ProgramError], tuple[str, tuple[Diagnostic, ...]]]:
        return type(self), (str(self), self.diagnostics)


class FeedError(Error, ValueError):
    """An argument does not fit the program: it is missing, unknown, or has another dtype, rank or extent."""


class ShapeError(Error, ValueError):
    """A shape is impossible, or an array for a result has another one."""


class DivisionByZero(Error, ZeroDivisionError):
    """An integer was divided by zero, or raised to a negative power."""


class EmptyReduction(Error, ValueError):
    """The minimum or maximum of no elements."""


class LimitError(Error, ValueError):
    """A limit of the executor or of the library is exceeded."""


# The other way round, `OutOfMemory.__new__` is that of MemoryError and refuses the class. Dask's workers call it.
class OutOfMemory(MemoryError, Error):
    """There is no memory for a result."""


class InternalError(Error, RuntimeError):
    """A fault of castwise. Please report it with the text of the program."""
