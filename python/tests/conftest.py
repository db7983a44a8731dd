"""What several test files use."""

import gc
import os

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


def resident() -> int:
    """The bytes of the process in memory."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def stays_flat():
    """Checks that a hundred thousand calls take no memory. `call` makes one."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("reads /proc")

    def check(call, times=100_000, warm=2000):
        for _ in range(warm):
            call()
        gc.collect()
        before = resident()
        for _ in range(times):
            call()
        gc.collect()
        assert resident() - before < 4 << 20

    return check
