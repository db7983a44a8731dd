"""The text of programs, taken apart: lines, what they refer to, and which dims of the arguments each dim comes from.

Dtypes and shapes are those that castwise infers: every value of a program is made a result, and its typed text is read.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, NamedTuple

from .. import _core
from .._core import Program

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_REFERENCE = re.compile(rf"%(?:{_QUOTED}|[\w.]+)")
_FEED = re.compile(rf'(%(?:{_QUOTED}|[\w.]+)): (\w+\*?)\[((?:{_QUOTED}|[^"\]])*)\]')
_VALUE = re.compile(r"\s*(%[\w.]+): (\w+\*?)\[([^\]]*)\] = (\w+)(.*)")
_LINE = re.compile(r"\s*(%[\w.]+) = (\w+)(.*)")
_NODE = re.compile(rf"({_QUOTED})|%(\d+)\b")
_COMMENT = re.compile(rf"({_QUOTED})|;.*")
_AXES = re.compile(r"dims? = \[?(-?\d+(?:, -?\d+)*)")
_DIMS = re.compile(r"dims = \[([^\]]*)\]")

#: Views that only rename dims: what is in a chunk stays in one.
_RENAMING = frozenset(("transpose", "permute", "unsqueeze", "squeeze", "expand", "view"))


class Feed(NamedTuple):
    """An argument of a program: ``%a: f32[n, 3]``."""

    ref: str
    dtype: str
    dims: tuple[str, ...]


class Line(NamedTuple):
    """A line of a program: ``%0 = add %a, ~1``."""

    ref: str
    op: str
    rest: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"  {self.ref} = {self.op}{self.rest}\n"


class Value(NamedTuple):
    """What inference says of a value; a dim that is no number names dims of arguments: ``?0|?2``."""

    dtype: str
    weak: bool
    dims: tuple[str, ...]

    @classmethod
    def read(cls, dtype: str, dims: str) -> Value:
        return cls(dtype.rstrip("*"), dtype.endswith("*"), _split(dims))


def labels(dim: str) -> frozenset[str]:
    """The dims of arguments that a dim comes from; none of a fixed one."""
    return frozenset(name for name in dim.split("|") if name.startswith("?"))


def _split(dims: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"{_QUOTED}|[^,\s]+", dims))


def _without_comment(line: str) -> str:
    return _COMMENT.sub(lambda found: found[1] or "", line)


class Source:
    """A program's text, which can be read again: arguments, lines and results."""

    def __init__(self, program: Program) -> None:
        first, *lines = str(program).splitlines()[1:]
        self.settings = first[: first.index(") (") + 1]
        self.feeds = [Feed(ref, dtype, _split(dims)) for ref, dtype, dims in _FEED.findall(first)]
        #: How names begin that no argument has. A placeholder can't be named by digits alone, as values are.
        self.prefix = "_"
        while any(f.ref.startswith("%" + self.prefix) for f in self.feeds):
            self.prefix += "_"
        self.lines: dict[str, Line] = {}
        self.results: list[str] = []
        for line in lines:
            if " = constant " not in line:
                line = _NODE.sub(lambda found: found[1] or f"%{self.prefix}{found[2]}", line)
            else:
                line = line.replace("%", f"%{self.prefix}", 1)
            if found := _LINE.match(line):
                ref, op, rest = found.groups()
                operands = () if op == "constant" else tuple(_REFERENCE.findall(rest))
                self.lines[ref] = Line(ref, op, rest, operands)
            elif line.lstrip().startswith("fetch "):
                self.results = _REFERENCE.findall(re.sub(rf" as {_QUOTED}", "", line))

    @staticmethod
    def operands(line: str) -> list[str]:
        """What a line refers to."""
        return _REFERENCE.findall(line.partition(" = ")[2])

    def text(self, feeds: Iterable[Feed], lines: Iterable[Any], results: Iterable[str]) -> str:
        """The text of another program of the same rules."""
        given = ", ".join(f"{f.ref}: {f.dtype}[{', '.join(f.dims)}]" for f in feeds)
        return f"castwise 1\n{self.settings} ({given}) {{\n{''.join(map(str, lines))}  fetch {', '.join(results)}\n}}\n"

    def typed(self, extents: Iterable[tuple[str, ...]] | None = None) -> Typed:
        """What inference says of every value, with other dims of the arguments if they are given."""
        feeds = self.feeds if extents is None else [f._replace(dims=d) for f, d in zip(self.feeds, extents)]
        refs = [f.ref for f in feeds] + list(self.lines)
        return Typed(Program.parse(self.text(feeds, self.lines.values(), refs)), refs)


class Typed:
    """The typed text of a program whose results are all its values."""

    def __init__(self, program: Program, refs: list[str]) -> None:
        first, *lines = program.infer().splitlines()
        self._typed: dict[str, Value] = {
            ref: Value.read(dtype, dims) for ref, dtype, dims in _FEED.findall(first)
        }
        self._steps: dict[str, Line] = {}
        found: list[str] = []
        for line in map(_without_comment, lines):
            if step := _VALUE.match(line):
                ref, dtype, dims, op, rest = step.groups()
                self._typed[ref] = Value.read(dtype, dims)
                operands = () if op == "constant" else tuple(_REFERENCE.findall(rest))
                self._steps[ref] = Line(ref, op, rest, operands)
            elif line.lstrip().startswith("fetch "):
                found = _REFERENCE.findall(re.sub(rf" as {_QUOTED}", "", line))
        self._of = dict(zip(refs, found, strict=True))
        given = (value.dims for ref, value in self._typed.items() if ref not in self._steps)
        self._arguments = frozenset().union(*(labels(dim) for dims in given for dim in dims))

    def __getitem__(self, ref: str) -> Value:
        return self._typed[self._of[ref]]

    def dims(self) -> Iterable[str]:
        """All dims of all values."""
        return (dim for value in self._typed.values() for dim in value.dims)

    def reduced(self, ref: str) -> tuple[int, ...] | None:
        """The positions of the dims that a value reduces, if it is a reduction itself."""
        step = self.step(ref)
        return None if step is None else self._along(step)

    def step(self, ref: str) -> Line | None:
        """The typed line of a value, which has all attributes; none of an argument."""
        return self._steps.get(self._of[ref])

    def needs_whole(self, except_: Iterable[str]) -> list[tuple[str, str]]:
        """Dims that must not be cut into chunks, with the op that needs them whole; without those that the values
        ``except_`` reduce."""
        cut = {self._of[ref] for ref in except_}
        steps = [step for step in self._steps.values() if step.ref not in cut]
        return [(dim, step.op) for step in steps for dim in self._whole(step)]

    def _along(self, step: Line) -> tuple[int, ...] | None:
        """The dims that an op of castwise's table goes along: those of reductions, scans and sorts are always in the text. A
        value without dims may be given dim 0, which it lacks."""
        axes = _axes(step)
        if axes is None or not step.operands or step.op not in _elementwise():
            return None
        rank = len(self._typed[step.operands[0]].dims)
        return tuple(axis for axis in axes if axis < rank)

    def _whole(self, step: Line) -> list[str]:
        result = self._typed[step.ref].dims
        operands = [self._typed[ref].dims for ref in step.operands]
        if (along := self._along(step)) is not None:
            return [operands[0][d] for d in along]
        if step.op in _RENAMING:
            kept = frozenset().union(*map(labels, result))
            return [dim for dim in operands[0] if not labels(dim) <= kept]
        if step.op in ("slice", "flip"):
            # A slice of all, such as the first of `x[:, 1:]`, has no more than a dim.
            cuts = step.op == "flip" or "," in step.rest
            axes = _AXES.search(step.rest)
            # A value without dims may be flipped along one.
            return [operands[0][int(d)] for d in axes[1].split(",")] if cuts and axes and operands[0] else []
        if step.op == "cast" or step.op == "view_as" or step.op in _elementwise():
            pairs = (pair for dims in operands for pair in zip(reversed(dims), reversed(result)))
            lost = [dim for dim, into in pairs if not labels(dim) <= labels(into)]
            # An extent that the program makes, such as that of a slice, which meets a dim of an argument.
            return lost + [dim for dim in result if not labels(dim) <= self._arguments]
        return [dim for dims in operands for dim in dims if labels(dim)]


def _elementwise() -> frozenset[str]:
    return frozenset(_core.op_names())


def counted(line: Line, rank: int) -> list[int]:
    """The dims whose elements a line of `count` counts: all if it names none."""
    axes = _axes(line)
    return list(range(rank)) if axes is None else axes


def _axes(line: Line) -> list[int] | None:
    """The dims that a line names."""
    found = _DIMS.search(line.rest)
    return None if found is None else [int(d) for d in found[1].split(",") if d.strip()]
