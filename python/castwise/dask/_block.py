"""What runs in a worker: a program on the blocks of one task.

A ``Block`` pickles as the text of its program. In a process, all blocks of one text are one ``Compiled``, and all programs
run on one executor for each setting, so that a program is compiled once in a process however often it arrives there.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from .. import _api
from .._core import Compiled, Executor, __version__

#: The arguments of an ``Executor``.
Settings = tuple[Any, ...]

#: One thread: the workers of Dask are what runs at the same time.
ONE_THREAD: Settings = (1, None, None, None)

_lock = threading.Lock()


@functools.lru_cache(maxsize=None)
def executor(settings: Settings) -> Executor:
    """The executor of this process for these settings."""
    return Executor(*settings)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str, settings: Settings) -> Compiled:
    return _api.compile(text, executor=executor(settings))


def stats() -> dict[str, int | float]:
    """What the blocks of this process have done so far: runs, compilations and more, as ``Executor.stats``.

    ``client.run(castwise.dask.stats)`` asks all workers. Blocks of compiled objects with an executor of their own
    are not in it.

    >>> import castwise.dask
    >>> castwise.dask.stats()["runs"] >= 0
    True
    """
    return executor(ONE_THREAD).stats


def checked(block: Any) -> Any:
    """A block as an array that has no more than dtype, shape and elements."""
    # Dims that are not in the result are whole: dask has one block of them in a list.
    while isinstance(block, list):
        (block,) = block
    if isinstance(block, np.ma.MaskedArray):
        raise TypeError("a block is a masked array, whose mask would be lost: fill it first, with `da.ma.filled(x, 0)`")
    if not isinstance(block, (np.ndarray, np.generic, bool, int, float, complex)):
        kind = f"{type(block).__module__}.{type(block).__qualname__}"
        raise TypeError(f"a block is a {kind}, not a NumPy array")
    return np.asarray(block)


def other_version(version: str) -> str | None:
    """Why a program doesn't run here, if it comes from another version."""
    if version == __version__:
        return None
    return f"a program of castwise {version} came to a process with castwise {__version__}: install one version"


def _received(version: str, block: type[Block], arguments: tuple[Any, ...]) -> Block:
    """A block that arrives. Bits are promised within a version, so no graph mixes two."""
    if refusal := other_version(version):
        raise RuntimeError(refusal)
    return block(*arguments)


class Block:
    """A program that is called with blocks."""

    def __init__(self, text: str, settings: Settings) -> None:
        self.text, self.settings = text, settings
        self._ran = False

    def __call__(self, *blocks: Any) -> Any:
        return self.run(*map(checked, blocks))

    def run(self, *arrays: Any) -> Any:
        if self._ran:
            return _compiled(self.text, self.settings)(*arrays)
        # Threads that begin together compile once.
        with _lock:
            compiled = _compiled(self.text, self.settings)
            if not compiled.stats["programs"]:
                made = compiled(*arrays)
                self._ran = True
                return made
        self._ran = True
        return compiled(*arrays)

    def arguments(self) -> tuple[Any, ...]:
        """Those of the class."""
        return self.text, self.settings

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (__version__, type(self), self.arguments())

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return (f"castwise.dask.{type(self).__name__}", *self.arguments())

    def __repr__(self) -> str:
        return f"castwise {type(self).__name__.lower()}"


class Merge(Block):
    """A program that is called with neighbouring partial results, which are one array, and a count of elements if there is one."""

    def __init__(self, text: str, settings: Settings, elements: int | None = None) -> None:
        super().__init__(text, settings)
        # An argument, so that arrays of all sizes have one program.
        self.more = () if elements is None else (np.asarray(elements, np.int64),)

    def __call__(self, partial: Any, axis: Any = None, keepdims: bool = True) -> Any:
        made = self.merged(checked(partial))
        return made if keepdims else np.squeeze(made, axis)

    def merged(self, partial: Any) -> Any:
        return self.run(partial, *self.more)

    def arguments(self) -> tuple[Any, ...]:
        return self.text, self.settings, *map(int, self.more)


class Moments(Block):
    """Count, mean and sum of squared distances from it, of the elements of blocks, as the last dim of f64.

    ``places`` has, for each dim that is reduced, where its extent is found: the blocks and their dims that it comes from.
    ``fixed`` is the product of the extents of those that are the same in all blocks.
    """

    def __init__(
        self, text: str, settings: Settings, places: tuple[tuple[tuple[int, int], ...], ...], fixed: int
    ) -> None:
        super().__init__(text, settings)
        self.places, self.fixed = places, fixed

    def __call__(self, *blocks: Any) -> Any:
        arrays = [checked(block) for block in blocks]
        n = self.fixed
        for place in self.places:
            extents = {arrays[at].shape[dim] for at, dim in place} - {1}
            n *= extents.pop() if extents else 1
        mean, squares = self.run(*arrays)
        return np.stack([np.full_like(mean, n), mean, squares], axis=-1)

    def arguments(self) -> tuple[Any, ...]:
        return self.text, self.settings, self.places, self.fixed


class MergedMoments(Merge):
    """Neighbouring results of ``Moments``, merged into one."""

    def merged(self, partial: Any) -> Any:
        return np.concatenate(self.run(partial), axis=-1)


class Pick:
    """One of several results of a block."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, results: tuple[Any, ...]) -> Any:
        return results[self.at]

    def __dask_tokenize__(self) -> tuple[str, int]:
        return ("castwise.dask.Pick", self.at)


def first(x: Any, axis: Any = None, keepdims: Any = None) -> Any:
    """The first step of a tree whose leaves are partial results already."""
    return x
