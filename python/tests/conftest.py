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
def takes_one_result():
    """Checks that a call takes the memory of its result, which has `size` bytes, and no more: neither that nor an argument is
    copied. The executor must have no pool."""

    def peak() -> int:
        with open("/proc/self/status") as f:
            return 1024 * int(next(line for line in f if line.startswith("VmHWM")).split()[1])

    def check(call, size):
        gc.collect()
        try:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
        except OSError:
            pytest.skip("can't reset the peak of the memory in use")
        before = resident()
        result = call()
        assert 0.9 * size < peak() - before < 1.5 * size
        return result

    return check


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
