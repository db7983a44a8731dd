"""The graph of a program on chunked arrays: one blockwise step for each set of results, and trees where reductions cross
chunks.

Guarantees: nothing is computed; dims that meet have one chunking; every step has the dtype, shape and chunks that castwise
infers. Does not: cut anything but the reductions of ``_cuts``; other ops along a dim need it in one chunk.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Iterable, Sequence

import dask.array as da
import numpy as np

from .._core import Program
from .._errors import FeedError, ProgramError
from ._block import Block, Merge, MergedMoments, Moments, Pick, Settings, first
from ._cuts import WIDTH, Cut, cut_of
from ._text import Feed, Line, Source, Typed, counted, labels

#: Dask's functions, which have no types.
_dask: Any = da


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a dtype of castwise."""
    if name in ("bf16", "f8e4m3fn", "f8e5m2"):
        import ml_dtypes

        own: type[Any] = getattr(ml_dtypes, {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn"}.get(name, "float8_e5m2"))
        return np.dtype(own)
    if name == "c32":
        raise TypeError("a result is c32, which NumPy lacks: cast it to c64")
    kinds = {"u": "uint", "i": "int", "f": "float", "c": "complex"}
    return np.dtype("bool" if name == "bool" else kinds[name[0]] + name[1:])


def known(extent: float) -> bool:
    return not math.isnan(extent)


class Plan:
    """A program and its chunked arguments, in the order of the program's placeholders."""

    def __init__(self, source: Source, names: Sequence[str], arrays: Sequence[da.Array], settings: Settings) -> None:
        self.source, self.settings = source, settings
        self.names = dict(zip((f.ref for f in source.feeds), names, strict=True))
        self._check_extents(arrays)
        self.typed = self._typed(arrays)
        arrays = [self._without_empty_chunks(x) for x in arrays]
        extents = [tuple("?" if not known(n) else str(n) for n in x.shape) for x in arrays]
        #: The same program, with the extents of the arrays.
        self.sized = source.typed(extents)
        self.cuts: dict[str, da.Array] = {}
        self._join(arrays)
        self._unify(arrays)
        self._private()
        self._count()
        for ref, cut in self._find_cuts().items():
            self.cuts[ref] = self._cut(cut)

    # Dims.

    def _without_empty_chunks(self, x: da.Array) -> da.Array:
        """Chunks without elements have no smallest element, and nothing else to contribute; and a dim of one element has no
        index, so it must be one chunk."""
        reduces = any(self.typed.reduced(ref) is not None for ref in self.source.lines)

        def kept(sizes: tuple[float, ...]) -> tuple[float, ...]:
            if 0 not in sizes or not (reduces or sum(sizes) == 1):
                return sizes
            return tuple(n for n in sizes if n) or (0,) if known(sum(sizes)) else sizes

        chunks = tuple(map(kept, x.chunks))
        made: da.Array = x if chunks == x.chunks else _dask.rechunk(x, chunks)
        return made

    def _check_extents(self, arrays: Sequence[da.Array]) -> None:
        """A program may fix extents, or say by a name that two are one."""
        named: dict[str, tuple[str, int, float]] = {}
        for feed, x in zip(self.source.feeds, arrays):
            name = self.names[feed.ref]
            if len(feed.dims) != x.ndim:
                raise FeedError(f"feed `{name}`: has {x.ndim} dims, expected {len(feed.dims)}")
            for axis, (dim, n) in enumerate(zip(feed.dims, x.shape)):
                if dim == "?" or not known(n):
                    continue
                if dim.isdigit() and int(dim) != n:
                    raise FeedError(f"feed `{name}`: has {n} at axis {axis}, expected {dim}")
                other = named.setdefault(dim, (name, axis, n))
                if not dim.isdigit() and other[2] != n:
                    at = f"`{other[0]}` has {other[2]} at axis {other[1]}"
                    raise FeedError(f"feed `{name}`: has {n} at axis {axis}, but {at}, and they are one dim")

    def _typed(self, arrays: Sequence[da.Array]) -> Typed:
        """Types the program. Extents that it fixes become any where an array has several chunks."""
        fixed = None
        for i, (feed, x) in enumerate(zip(self.source.feeds, arrays)):
            for axis, (dim, count) in enumerate(zip(feed.dims, x.numblocks)):
                if dim.isdigit() and count > 1:
                    fixed = f"the program fixes dim {axis} of `{self.names[feed.ref]}`, and needs it in one chunk"
                    dims = ("?" if d.isdigit() and n > 1 else d for d, n in zip(feed.dims, x.numblocks))
                    self.source.feeds[i] = feed._replace(dims=tuple(dims))
        try:
            return self.source.typed()
        except ProgramError as e:
            if fixed:
                raise ValueError(fixed) from e
            raise

    def _join(self, arrays: Sequence[da.Array]) -> None:
        """Finds which dims of arguments meet: they have one index. Those of extent 1 are broadcast and have none."""
        self._class: dict[str, str] = {}
        for feed, x in zip(self.source.feeds, arrays):
            for dim, n in zip(self.typed[feed.ref].dims, x.shape):
                self._class.update({name: name for name in labels(dim) if n != 1})
        for dim in self.typed.dims():
            meeting = sorted({self._root(name) for name in labels(dim) if name in self._class})
            for other in meeting[1:]:
                self._class[other] = meeting[0]
        for name in self._class:
            self._class[name] = self._root(name)

    def _root(self, name: str) -> str:
        while self._class[name] != name:
            name = self._class[name]
        return name

    def index(self, dim: str) -> str | None:
        """The index of a dim, or ``None`` of one that is the same in all blocks."""
        found = {self._class[name] for name in labels(dim) if name in self._class}
        return min(found) if found else None

    def _unify(self, arrays: Sequence[da.Array]) -> None:
        """Gives dims of one index one chunking."""
        self.arrays: dict[str, da.Array] = {}
        alone = itertools.count()
        given: list[Any] = []
        for feed, x in zip(self.source.feeds, arrays):
            given += [x, tuple(self.index(dim) or f"={next(alone)}" for dim in self.typed[feed.ref].dims)]
        try:
            _, made = _dask.core.unify_chunks(*given)
        except ValueError as e:
            sizes = ", ".join(f"`{self.names[f.ref]}` {x.chunks}" for f, x in zip(self.source.feeds, arrays))
            raise ValueError(f"chunks whose sizes are unknown can't be made the same: {sizes}") from e
        self.arrays = dict(zip((f.ref for f in self.source.feeds), made))
        #: The sizes of the chunks of each index.
        self.chunks: dict[str, tuple[float, ...]] = {}
        for ref, x in self.arrays.items():
            for dim, sizes in zip(self.typed[ref].dims, x.chunks):
                if (index := self.index(dim)) is not None:
                    self.chunks[index] = sizes

    def _private(self) -> None:
        """A dim that meets another one of the same value, as those of ``x + x.T`` do, must be in one chunk; such dims have no
        index."""
        for ref in (*self.arrays, *self.source.lines):
            found = [index for dim in self.typed[ref].dims if (index := self.index(dim)) is not None]
            for index in {i for i in found if found.count(i) > 1}:
                if len(self.chunks[index]) > 1 or not known(self.chunks[index][0]):
                    self._refuse(index, "two dims of one array meet")
                self._class = {name: root for name, root in self._class.items() if root != index}

    def _refuse(self, index: str, why: str) -> None:
        for ref, x in self.arrays.items():
            for axis, dim in enumerate(self.typed[ref].dims):
                if self.index(dim) == index:
                    name = self.names[ref]
                    raise ValueError(
                        f"{why}, which needs dim {axis} of `{name}` in one chunk; it is in {len(self.chunks[index])}: "
                        f"pass `{name}.rechunk({{{axis}: -1}})`"
                    )
        raise ValueError(why)

    # Steps.

    def _count(self) -> None:
        """Numbers of elements, which blocks don't know: arguments, so that arrays of all sizes have one program."""
        for ref, line in self.source.lines.items():
            if line.op != "count":
                continue
            axes = counted(line, len(self.typed[line.operands[0]].dims))
            sizes = [self.sized[line.operands[0]].dims[axis] for axis in axes]
            if all(size.isdigit() for size in sizes):
                self.cuts[ref] = _dask.from_array(np.asarray(math.prod(map(int, sizes)), np.int64))
                continue
            if any(self._cut_index(self.typed[line.operands[0]].dims[axis]) is not None for axis in axes):
                self._refuse_unknown("count")

    def _cut_index(self, dim: str) -> str | None:
        """The index of a dim in several chunks, or ``None`` of other dims."""
        index = self.index(dim)
        return None if index is None or len(self.chunks[index]) < 2 else index

    def _refuse_unknown(self, op: str) -> None:
        name = next(self.names[ref] for ref, x in self.arrays.items() if not all(map(known, x.shape)))
        raise ValueError(f"`{op}` needs to know how many elements there are: call `{name}.compute_chunk_sizes()` first")

    def _find_cuts(self) -> dict[str, Cut]:
        """The reductions that cross chunks. All other ops along a dim must find it in one chunk."""
        found = {}
        for ref, line in self.source.lines.items():
            dims = self.typed.reduced(ref)
            if dims is None or not line.operands:
                continue
            operand = self.typed[line.operands[0]]
            cut = cut_of(line, self.typed.step(ref), operand, self.typed[ref], dims, self.source.prefix)
            if cut and any(self._cut_index(operand.dims[d]) is not None for d in dims):
                found[ref] = cut
        for dim, op in self.typed.needs_whole(found):
            if (index := self._cut_index(dim)) is not None:
                self._refuse(index, f"`{op}` goes along a dim")
        return found

    def _step(
        self,
        results: Sequence[str],
        dims: Sequence[str],
        sizes: Sequence[str],
        made: Sequence[str],
        *,
        more: Sequence[str] = (),
        once: frozenset[str] = frozenset(),
        fixed: int | None = None,
    ) -> list[da.Array]:
        """One blockwise step that computes values of the program, and then the lines ``more``.

        Results have these dims; ``sizes`` has the extents of those without index, ``made`` the dtypes. Indices in
        ``once`` are reduced to one element a block. With ``fixed``, the results are those of ``Moments``.
        """
        feeds, lines = self._needed(results if not more else [r for line in more for r in Source.operands(line)])
        text = self.source.text(feeds, [*map(str, lines), *(f"  {line}\n" for line in more)], results)
        out, new, seen = [], {}, itertools.count()
        for dim, size in zip(dims, sizes):
            index = self.index(dim)
            out.append(index or f"+{next(seen)}")
            if index is None:
                if not size.isdigit():
                    raise ValueError(
                        "an extent of a result follows from unknown sizes of chunks: call `compute_chunk_sizes()` first"
                    )
                new[out[-1]] = int(size)
        if fixed is not None:
            out.append("moments")
            new["moments"] = 3
        given: list[Any] = []
        for feed in feeds:
            x = self.arrays[feed.ref] if feed.ref in self.arrays else self.cuts[feed.ref]
            given += [x, tuple(self.index(dim) or f"-{next(seen)}" for dim in self.typed[feed.ref].dims)]
        call = (
            Block(text, self.settings)
            if fixed is None
            else Moments(text, self.settings, self._places(once, feeds), fixed)
        )
        dtypes = [numpy_dtype(name) for name in made]
        kwargs = {"adjust_chunks": {index: (1,) * len(self.chunks[index]) for index in once}} if once else {}
        return _blockwise(call, tuple(out), given, dtypes, new_axes=new or None, **kwargs)

    def _needed(self, refs: Iterable[str]) -> tuple[list[Feed], list[Line]]:
        """The lines that values need, and what these take as arguments: the program's, and what was cut."""
        seen: set[str] = set()
        waiting = list(refs)
        while waiting:
            ref = waiting.pop()
            if ref in seen:
                continue
            seen.add(ref)
            if ref in self.source.lines and ref not in self.cuts:
                waiting += self.source.lines[ref].operands
        given = [ref for ref in (*self.arrays, *self.cuts) if ref in seen]
        return [self._feed(ref) for ref in given], [
            line for ref, line in self.source.lines.items() if ref in seen and ref not in self.cuts
        ]

    def _feed(self, ref: str) -> Feed:
        """A placeholder for blocks. Its dims have names, so that blocks that don't fit are an error and never broadcast."""
        value, sized = self.typed[ref], self.sized[ref]
        dims = (f"d{index[1:]}" if (index := self.index(dim)) else size for dim, size in zip(value.dims, sized.dims))
        return Feed(ref, value.dtype + "*" * value.weak, tuple("?" if "?" in dim else dim for dim in dims))

    def results(self) -> list[da.Array]:
        """The results of the program."""
        made: dict[str, da.Array] = dict(self.cuts)
        groups: dict[tuple[str, ...], list[str]] = {}
        for ref in dict.fromkeys(self.source.results):
            if ref not in made:
                groups.setdefault(self.typed[ref].dims, []).append(ref)
        for dims, refs in groups.items():
            dtypes = [self.typed[ref].dtype for ref in refs]
            made.update(zip(refs, self._step(refs, dims, self.sized[refs[0]].dims, dtypes)))
        return [made[ref] for ref in self.source.results]

    # Reductions across chunks.

    def _cut(self, cut: Cut) -> da.Array:
        dims = cut.operand.dims
        sizes = [self.sized[cut.line.operands[0]].dims[d] for d in cut.dims]
        if cut.kind.known and not all(size.isdigit() for size in sizes):
            self._refuse_unknown(cut.line.op)
        elements = math.prod(map(int, sizes)) if cut.line.op == "mean" else None
        if cut.line.op in ("var", "std"):
            return self._variance(cut)
        if cut.line.op == "nanmean":
            total = self._tree(cut, self._partial(cut, cut.partial(), cut.math), cut.merge(), cut.merge(), cut.math)
            count_dtype = self._count_dtype()
            counts = self._partial(cut, cut.numbers(), count_dtype)
            merge = [f"%merged = sum %p {{{cut.over}}}"]
            count = self._tree(cut, counts, merge, [*merge, f"%result = cast %merged {{dtype = {cut.math}}}"], cut.math)
            both = [Feed(f"%{name}", cut.math, ("?",) * total.ndim) for name in "sn"]
            lines = ["%mean = div %s, %n", f"%result = cast %mean {{dtype = {cut.result.dtype}}}"]
            index = tuple(range(total.ndim))
            call = Block(self._text(both, lines, ["%result"]), self.settings)
            return _blockwise(call, index, [total, index, count, index], [numpy_dtype(cut.result.dtype)])[0]
        partial = self._partial(cut, cut.partial(), cut.math)
        return self._tree(cut, partial, cut.merge(), [*cut.merge(), *cut.finish()], cut.result.dtype, elements)

    def _count_dtype(self) -> str:
        """What `count_nonzero` gives under the program's rules."""
        text = self._text([Feed("%p", "f32", ())], ["%n = count_nonzero %p {dims = []}"], ["%n"])
        return Typed(Program.parse(text), ["%n"])["%n"].dtype

    def _partial(self, cut: Cut, lines: tuple[list[str], list[str]], dtype: str, fixed: int | None = None) -> da.Array:
        """The partial results of a reduction: an array with one element for each block, in the dims that are reduced."""
        operand = cut.line.operands[0]
        dims = [*cut.operand.dims]
        sizes = ["1" if d in cut.dims else size for d, size in enumerate(self.sized[operand].dims)]
        once = frozenset(i for d in cut.dims if (i := self.index(dims[d])) is not None)
        return self._step(lines[1], dims, sizes, [dtype], more=lines[0], once=once, fixed=fixed)[0]

    def _tree(
        self, cut: Cut, x: da.Array, merge: list[str], last: list[str], dtype: str, elements: int | None = None
    ) -> da.Array:
        """Merges partial results by position."""
        p = [Feed("%p", _name(x.dtype), ("?",) * x.ndim)]
        combine = Merge(self._text(p, merge, ["%merged"]), self.settings)
        counted = [] if elements is None else [Feed("%n", "i64", ())]
        final = Merge(self._text(p + counted, last, [_target(last[-1])]), self.settings, elements)
        return _reduced(x, combine, final, cut, numpy_dtype(dtype))

    def _variance(self, cut: Cut) -> da.Array:
        f64 = np.dtype("float64")
        dims, sizes = cut.operand.dims, self.sized[cut.line.operands[0]].dims
        fixed = math.prod(int(sizes[d]) for d in cut.dims if self.index(dims[d]) is None)
        moments = self._partial(cut, cut.partial(), "f64", fixed)
        p = Feed("%p", "f64", (*("?",) * (moments.ndim - 1), "3"))
        text = self._text([p], cut.merged_moments(), ["%n", "%mean", "%squares"])
        merge = MergedMoments(text, self.settings)
        merged = _reduced(moments, merge, merge, cut, f64)
        p = p._replace(dims=(*("?",) * (merged.ndim - 1), "3"))
        finish = Block(self._text([p], cut.variance(), ["%result"]), self.settings)
        index = tuple(range(merged.ndim))
        return _blockwise(finish, index[:-1], [merged, index], [numpy_dtype(cut.result.dtype)])[0]

    def _places(self, once: frozenset[str], feeds: Sequence[Feed]) -> tuple[Any, ...]:
        """Where the extents of reduced dims are found in blocks."""
        return tuple(
            tuple(
                (at, axis)
                for at, feed in enumerate(feeds)
                for axis, dim in enumerate(self.typed[feed.ref].dims)
                if self.index(dim) == index
            )
            for index in sorted(once)
        )

    def _text(self, feeds: Sequence[Feed], lines: Sequence[str], results: Sequence[str]) -> str:
        return self.source.text(feeds, [f"  {line}\n" for line in lines], results)


def _target(line: str) -> str:
    return line.split(" = ", 1)[0]


def _name(dtype: np.dtype[Any]) -> str:
    return Program("torch").data("x", dtype, []).dtype


def _reduced(x: da.Array, merge: Merge, final: Merge, cut: Cut, dtype: np.dtype[Any]) -> da.Array:
    """A tree whose shape follows from the number of blocks alone."""
    width = max(2, int(WIDTH ** (1 / len(cut.dims))))
    made: da.Array = _dask.reduction(
        x,
        chunk=first,
        combine=merge,
        aggregate=final,
        axis=cut.dims,
        keepdims=cut.keeps,
        dtype=dtype,
        split_every=dict.fromkeys(cut.dims, width),
        meta=np.empty((0,) * (x.ndim if cut.keeps else x.ndim - len(cut.dims)), dtype),
        name="castwise",
    )
    return made


def _blockwise(
    call: Block, out: tuple[Any, ...], given: Sequence[Any], dtypes: Sequence[np.dtype[Any]], **more: Any
) -> list[da.Array]:
    """A blockwise step, and its results one by one."""
    several = len(dtypes) > 1
    dtype = np.dtype(object) if several else dtypes[0]
    meta = np.empty((0,) * len(out), dtype)
    made = _dask.blockwise(
        call, out, *given, dtype=dtype, meta=meta, token="castwise", align_arrays=False, concatenate=None, **more
    )
    if not several:
        return [made]
    return [
        _dask.blockwise(
            Pick(i),
            out,
            made,
            out,
            dtype=d,
            meta=np.empty((0,) * len(out), d),
            token="castwise-result",
            align_arrays=False,
        )
        for i, d in enumerate(dtypes)
    ]
