"""What several test files use."""

import ml_dtypes
import numpy as np
import pytest

#: NumPy's dtypes that castwise has, and those of ml_dtypes.
DTYPES = [
    np.dtype(name)
    for name in (
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
    )
] + [np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]


def values(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers that every dtype holds exactly."""
    n = int(np.prod(shape))
    return (np.arange(n) % 7).astype(dtype).reshape(shape)


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> np.dtype:
    return request.param
