"""Whatever has DLPack, a buffer or `__array__`."""

import array
import subprocess
import sys

import array_api_strict as strict
import numpy as np
import pytest

import castwise


class Exported:
    """An array that has nothing but DLPack."""

    def __init__(self, a, versions=True, device=(1, 0)):
        self.a, self.versions, self.device = a, versions, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **named):
        if not self.versions and named:
            raise TypeError("unexpected keyword argument")
        return self.a.__dlpack__(**named)


LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "stepped": lambda a: a[::2, 1::2],
    "0-d": lambda a: a[1:2, 2:3].reshape(()),
    "empty": lambda a: a[:0],
}
DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("versions", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_every_layout(dtype, layout, versions):
    a = LAYOUTS[layout]((np.arange(48) % 2).reshape(6, 8).astype(dtype))
    got = castwise.compile("where(c, x, x)")(np.ones(a.shape, bool), Exported(a, versions))
    assert isinstance(got, np.ndarray) and got.dtype == a.dtype
    np.testing.assert_array_equal(got, a)


def test_memory_is_that_of_the_object():
    f, out = castwise.compile("x + 1"), np.zeros(5)
    target = Exported(out)
    assert f(np.ones(5), out=target) is target and out[0] == 2
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(np.ones(5), out=target)
    np.testing.assert_array_equal(f(Exported(out)), [3] * 5)


def test_out_that_exports_a_copy_is_refused():
    class Copied(Exported):
        def __dlpack__(self, **named):
            return self.a.__dlpack__(copy=True, **named)

    f, out = castwise.compile("x + 1"), np.zeros(5)
    with pytest.raises(ValueError, match="exports one by DLPack"):
        f(np.ones(5), out=Copied(out))
    assert not out.any() and f(Copied(out)).tolist() == [1] * 5


def test_other_devices_are_refused():
    with pytest.raises(TypeError, match="`x` is on the device .2, 0."):
        castwise.compile("x + 1")(Exported(np.ones(3), device=(2, 0)))


def test_bools_of_other_bytes_are_true():
    odd = np.array([0, 1, 2, 255], np.uint8).view(bool)
    np.testing.assert_array_equal(castwise.compile("cast(x, i32)")(Exported(odd)), [0, 1, 1, 1])


def test_arrays_of_a_library_without_rules():
    f = castwise.compile("x * 2 + y", rules="numpy")
    x, y = strict.asarray([1.0, 2.0]), strict.asarray([3.0, 4.0])
    got = f(x, y)
    assert type(got) is type(x) and bool(strict.all(got == strict.asarray([5.0, 8.0])))
    with pytest.raises(ValueError, match="has no rules of its own"):
        castwise.compile("x + y")(x, y)
    with pytest.raises(ValueError, match="several libraries"):
        castwise.compile("x + y")(x, np.ones(2))


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_buffers(code):
    x = array.array(code, [1, 2, 3])
    got = castwise.compile("where(c, x, x)")(np.ones(3, bool), x)
    assert got.dtype == np.asarray(x).dtype and got.tolist() == [1, 2, 3]
    castwise.compile("where(c, x, x)")(np.ones(3, bool), np.asarray(x)[::-1], out=x)
    assert x.tolist() == [3, 2, 1]


def test_bytes_are_numbers():
    f = castwise.compile("x + 1")
    assert f(b"ab").tolist() == [98, 99] and f(b"ab").dtype == np.uint8
    assert f(memoryview(bytearray(b"abcd"))[::2]).tolist() == [98, 100]
    with pytest.raises(ValueError, match="read-only"):
        f(np.ones(2, np.uint8), out=b"ab")


def test_without_numpy():
    code = """
import array, sys, castwise
r = castwise.compile("x * 2 + 1")(array.array("d", [1, 2, 3]))
print(type(r).__name__, r.dtype, r.shape, r.__dlpack_device__(), "numpy" in sys.modules)
again = castwise.compile("x + 1")(r)
import numpy as np
print(np.from_dlpack(r).tolist(), np.from_dlpack(again).tolist(), castwise.compile("x + 0.5")(r).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "Memory f64 (3,) (1, 0) False",
        "[3.0, 5.0, 7.0] [4.0, 6.0, 8.0] [3.5, 5.5, 7.5]",
    ], done.stdout


def test_results_are_exported_without_a_copy():
    r = castwise.compile("x + 1")(np.zeros(9))
    memory = r.base
    a, b = np.from_dlpack(memory), np.from_dlpack(memory)
    del r, memory
    assert a.ctypes.data == b.ctypes.data and a.tolist() == [1.0] * 9


@pytest.mark.parametrize("x", [Exported(np.ones(1000)), Exported(np.ones(1000), False), array.array("d", [1] * 1000)])
def test_memory_stays_flat(stays_flat, x):
    f = castwise.compile("x * 2 + y")
    stays_flat(lambda: f(x, x))


def test_memory_stays_flat_with_another_library(stays_flat):
    f, x = castwise.compile("x * 2 + y", rules="numpy"), strict.ones(1000)
    stays_flat(lambda: f(x, x), 20_000)
