"""Reductions over dims that are in several chunks: what a chunk contributes, and how that is merged.

Guarantees: partial results have the op's math dtype (f32 for floats of 16 and 8 bits), or f64 where the op itself
computes in it; they are merged by position, at most 16 along a dim at a time, so that the bits depend on the chunks alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ._text import Line, Value

#: The most partial results that one task merges along one dim; of several dims fewer along each, but 2.
WIDTH = 16

_WIDE = {"f8e4m3fn": "f32", "f8e5m2": "f32", "f16": "f32", "bf16": "f32", "c32": "c64"}


class Kind(NamedTuple):
    """How an op is computed of chunks."""

    #: The op on the elements of a chunk.
    partial: str
    #: The op on partial results.
    merge: str
    #: Which dtype partial results have: the result's, what it is computed in, or f64.
    math: str = "wide"
    #: Whether the extents must be known.
    known: bool = False


KINDS: dict[str, Kind] = {
    "sum": Kind("sum", "sum"),
    "prod": Kind("prod", "prod"),
    "nansum": Kind("nansum", "sum"),
    "mean": Kind("sum", "sum", known=True),
    "nanmean": Kind("nansum", "sum"),
    "any": Kind("any", "any", "result"),
    "all": Kind("all", "all", "result"),
    "count_nonzero": Kind("count_nonzero", "sum", "result"),
    # A chunk that turns out to be empty has none.
    "amax": Kind("amax", "amax", "result", known=True),
    "amin": Kind("amin", "amin", "result", known=True),
    "logsumexp": Kind("logsumexp", "logsumexp"),
    "norm": Kind("norm", "norm", "f64"),
    "var": Kind("", "", "f64", known=True),
    "std": Kind("", "", "f64", known=True),
}


class Cut(NamedTuple):
    """A reduction of a program that is computed of chunks."""

    line: Line
    #: The typed line, which has every attribute.
    step: Line
    operand: Value
    result: Value
    dims: tuple[int, ...]
    #: How the names of new lines begin.
    prefix: str

    @property
    def kind(self) -> Kind:
        return KINDS[self.line.op]

    @property
    def keeps(self) -> bool:
        return len(self.result.dims) == len(self.operand.dims) and bool(self.dims)

    @property
    def math(self) -> str:
        """The dtype of partial results."""
        return {"result": self.result.dtype, "f64": "f64"}.get(
            self.kind.math, _WIDE.get(self.result.dtype, self.result.dtype)
        )

    @property
    def over(self) -> str:
        return f"dims = {list(self.dims)}, keepdim"

    def number(self) -> float:
        """The number that the op has: the correction of a variance, the order of a norm."""
        found = re.search(r"(?:correction|p) = ([^,}]+)", self.step.rest)
        return float(found[1]) if found else 0.0

    def partial(self) -> tuple[list[str], list[str]]:
        """Lines that compute partial results of the operand, and their names."""
        lines, at = self._converted()
        if self.line.op in ("var", "std"):
            lines += [
                f"%{self.prefix}mean = mean {at} {{{self.over}}}",
                f"%{self.prefix}distance = sub {at}, %{self.prefix}mean",
                f"%{self.prefix}square = square %{self.prefix}distance",
                f"%{self.prefix}squares = sum %{self.prefix}square {{{self.over}}}",
            ]
            return lines, [f"%{self.prefix}mean", f"%{self.prefix}squares"]
        initial = re.search(r"initial = [^,}]+", self.step.rest)
        more = f", {initial[0]}" if initial else ""
        lines.append(f"%{self.prefix}part = {self.kind.partial} {at} {{{self.over}{more}}}")
        return lines, [f"%{self.prefix}part"]

    def numbers(self) -> tuple[list[str], list[str]]:
        """Lines that count the elements that are no NaN."""
        lines, at = self._converted()
        lines += [
            f"%{self.prefix}nan = isnan {at}",
            f"%{self.prefix}number = logical_not %{self.prefix}nan",
            f"%{self.prefix}count = count_nonzero %{self.prefix}number {{{self.over}}}",
        ]
        return lines, [f"%{self.prefix}count"]

    def _converted(self) -> tuple[list[str], str]:
        """Lines that convert the operand to the dtype that is computed in, by way of that which `dtype` asks for."""
        if self.kind.math == "result":
            return [], self.line.operands[0]
        lines, at, dtype = [], self.line.operands[0], self.operand.dtype
        for n, into in enumerate((self.result.dtype, self.math)):
            if into != dtype:
                lines.append(f"%{self.prefix}x{n} = cast {at} {{dtype = {into}}}")
                at, dtype = f"%{self.prefix}x{n}", into
        return lines, at

    def merge(self) -> list[str]:
        """Lines that merge partial results ``%p`` into ``%merged``."""
        return [f"%merged = {self.kind.merge} %p {{{self.over}}}"]

    def finish(self) -> list[str]:
        """Lines that make the result ``%result`` of ``%merged``, and for a mean of the count ``%n``."""
        lines, at = [], "%merged"
        if self.line.op == "mean":
            lines, at = [f"%count = cast %n {{dtype = {self.math}}}", "%mean = div %merged, %count"], "%mean"
        return [*lines, f"%result = cast {at} {{dtype = {self.result.dtype}}}"]

    def merged_moments(self) -> list[str]:
        """Lines that merge counts, means and squares along the last dim of ``%p`` into ``%n``, ``%mean`` and ``%squares``."""
        last = len(self.operand.dims)
        return [
            *(
                f"%{name} = slice %p {{dim = {last}, start = {i}, end = {i + 1}}}"
                for i, name in enumerate(("k", "m", "q"))
            ),
            f"%n = sum %k {{{self.over}}}",
            "%weighted = mul %k, %m",
            f"%total = sum %weighted {{{self.over}}}",
            "%mean = div %total, %n",
            "%between = sub %m, %mean",
            "%square = square %between",
            "%spread = mul %k, %square",
            f"%outer = sum %spread {{{self.over}}}",
            f"%inner = sum %q {{{self.over}}}",
            "%squares = add %inner, %outer",
        ]

    def variance(self) -> list[str]:
        """Lines that make the result of the moments ``%p``, whose last dim is counts, means and squares."""
        last = len(self.result.dims)
        root = ["%root = sqrt %quotient"] if self.line.op == "std" else []
        return [
            *(f"%{name} = slice %p {{dim = {last}, start = {i}, end = {i + 1}}}" for i, name in ((0, "k"), (2, "q"))),
            f"%n = squeeze %k {{dim = {last}}}",
            f"%squares = squeeze %q {{dim = {last}}}",
            f"%less = sub %n, ~{self.number()!r}",
            "%divisor = maximum %less, ~0.0",
            "%quotient = div %squares, %divisor",
            *root,
            f"%result = cast {'%root' if root else '%quotient'} {{dtype = {self.result.dtype}}}",
        ]


def cut_of(
    line: Line, step: Line | None, operand: Value, result: Value, dims: tuple[int, ...], prefix: str
) -> Cut | None:
    """How a reduction is computed of chunks, or ``None`` if castwise doesn't."""
    if step is None or line.op not in KINDS or step.op != line.op or "output" in line.rest:
        return None
    cut = Cut(line, step, operand, result, dims, prefix)
    if cut.kind.math != "result" and line.op in ("var", "std", "norm", "logsumexp") and operand.dtype.startswith("c"):
        return None
    if line.op == "norm" and cut.number() != 2.0:
        return None
    return cut
