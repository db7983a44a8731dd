"""Compiled programs on the arrays of Dask: see ``apply``.

>>> import castwise.dask, dask.array as da
>>> x = da.arange(6, chunks=3, dtype="float32")
>>> y = castwise.dask.apply("(x - mean(x)) * 2", x)
>>> y
dask.array<castwise, shape=(6,), dtype=float32, chunksize=(3,), chunktype=numpy.ndarray>
>>> y.compute(scheduler="synchronous")
array([-5., -3., -1.,  1.,  3.,  5.], dtype=float32)
"""

from __future__ import annotations

from ._apply import apply
from ._apply import called as _called  # noqa: F401, what the compiled module calls
from ._block import stats

__all__ = ["apply", "stats"]
