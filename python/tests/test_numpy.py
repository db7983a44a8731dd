"""Arrays of NumPy: every dtype and layout is read in place or copied, and results own their memory."""

import itertools
import mmap
import operator

import ml_dtypes
import numpy as np
import pytest

import castwise
from conftest import values

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "stepped": lambda a: a[::2, 1::2],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "0-d": lambda a: a[1, 2].reshape(()),
    "empty": lambda a: a[:0],
    "fortran": np.asfortranarray,
}


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape) if a.dtype.itemsize > 1 else a
    view[...] = a
    return view


def swapped(a):
    return a.astype(a.dtype.newbyteorder()) if a.dtype.isbuiltin == 1 and a.dtype.itemsize > 1 else a


LAYOUTS |= {"read-only": read_only, "unaligned": unaligned, "big-endian": swapped}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_dtype_in_every_layout(dtype, layout):
    a = LAYOUTS[layout](values(dtype, (6, 8)))
    got = castwise.compile("cast(x, c128)")(a)
    assert got.dtype == np.complex128 and got.shape == a.shape
    np.testing.assert_array_equal(got, a.astype(np.complex128))
    # Under NumPy's rules floats of 8 bits are only stored.
    rules = "jax" if dtype.name.startswith("float8") else "numpy"
    same = castwise.compile("where(c, x, x)", rules=rules)(np.ones(a.shape, bool), a)
    assert same.dtype == a.dtype.newbyteorder("=") and same.shape == a.shape
    np.testing.assert_array_equal(same.astype(np.complex128), a.astype(np.complex128))


def test_results_own_their_memory_and_are_writable():
    x = np.arange(5.0)
    r = castwise.compile("x * 1.0")(x)
    assert r.flags.writeable and r.flags.c_contiguous and r.ctypes.data % 64 == 0
    r[0] = 7
    assert x[0] == 0 and not np.shares_memory(r, x)
    same = castwise.compile(lambda x: x)(x)
    assert not np.shares_memory(same, x)


def test_results_outlive_what_made_them():
    results = [castwise.compile(f"x + {i}")(np.zeros(1000)) for i in range(50)]
    assert [r[999] for r in results] == list(range(50))


def test_arguments_and_results_are_in_place(takes_one_result):
    f, x = castwise.compile("x * 2 + y", executor=castwise.Executor(pool=0)), np.ones(1 << 24, np.float32)
    assert takes_one_result(lambda: f(x, x), x.nbytes)[-1] == 3
    strided = np.ones((1 << 22, 8), np.float32)[:, 2:6]
    assert takes_one_result(lambda: f(strided.T[::-1], strided.T), x.nbytes).shape == (4, 1 << 22)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_out(shape):
    f = castwise.compile("x * 2 + 1")
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    out = np.full(shape, -1, np.float32)
    address = out.ctypes.data
    assert f(x, out=out) is out and out.ctypes.data == address
    np.testing.assert_array_equal(out, x * 2 + 1)


def test_out_in_any_layout_and_beside_its_input():
    f = castwise.compile("x * 10")
    out = np.zeros((3, 8))[:, ::2]
    np.testing.assert_array_equal(f(np.ones((3, 4)), out=out), np.full((3, 4), 10.0))
    a = np.arange(6.0)
    f(a[:-1], out=a[1:])
    np.testing.assert_array_equal(a, [0, 0, 10, 20, 30, 40])


@pytest.mark.parametrize("shape", [(7,), (300, 1000)])
def test_out_over_an_argument(shape):
    step = lambda p, m, g: (p - m * 0.5, m * 0.9 + g)  # noqa: E731
    rng = np.random.default_rng(1)
    p, m, g = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    want = castwise.compile(step)(p, m, g)
    # With room for no result beside those of `out`.
    for limits in ({}, {"max_bytes": 16}):
        f, out = castwise.compile(step, executor=castwise.Executor(**limits)), (p.copy(), m.copy())
        assert f(*out, g, out=out) is out
        for got, expected in zip(out, want):
            np.testing.assert_array_equal(got, expected)
    # What is read at other places is computed elsewhere.
    a = p.copy()
    castwise.compile(lambda x: x[::-1] + x)(a, out=a)
    np.testing.assert_array_equal(a, p[::-1] + p)
    with pytest.raises(castwise.LimitError):
        castwise.compile(lambda x: x[::-1] + x, executor=castwise.Executor(max_bytes=16))(a, out=a)


def test_out_for_some_of_the_results():
    f, x, a = castwise.compile(lambda x: (x + 1, x * 2, x - 1)), np.arange(4.0), np.zeros(4)
    plus, double, minus = f(x, out=(None, a, None))
    assert double is a and list(a) == [0, 2, 4, 6] and list(plus) == [1, 2, 3, 4] and list(minus) == [-1, 0, 1, 2]
    named = castwise.compile(lambda x: {"a": x + 1, "b": x * 2})
    made = named(x, out={"a": a, "b": None})
    assert made["a"] is a and list(made["b"]) == [0, 2, 4, 6]


def test_arrays_of_out_are_apart():
    f, x = castwise.compile(lambda x: (x + 1, x * 2)), np.arange(4.0)
    whole = np.zeros(8)
    for out in ((whole[:4], whole[:4]), (whole[:4], whole[3:7]), (whole[::2], whole[:4]), (whole[:4], whole[3::-1])):
        with pytest.raises(ValueError, match="share elements"):
            f(x, out=out)
    f(x, out=(whole[::2], whole[1::2]))
    assert list(whole) == [1, 0, 2, 2, 3, 4, 4, 6]


def test_bools_of_out_are_written_over():
    out = np.array([7, 0, 255], np.uint8).view(bool)
    assert castwise.compile("x > 1")(np.arange(3), out=out) is out and list(out.view(np.uint8)) == [0, 0, 1]


def test_out_is_refused_where_it_does_not_fit():
    f, x = castwise.compile("x * 2"), np.ones(3)
    with pytest.raises(castwise.ShapeError):
        f(x, out=np.zeros(4))
    with pytest.raises(castwise.ProgramError):
        f(x, out=np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="read-only"):
        f(x, out=read_only(np.zeros(3)))
    with pytest.raises(castwise.ShapeError, match="overlap"):
        f(x, out=np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,)))


def test_bools_of_other_bytes_are_true():
    odd = np.array([0, 1, 2, 255], np.uint8).view(bool)
    np.testing.assert_array_equal(castwise.compile("cast(x, i32)")(odd), [0, 1, 1, 1])
    np.testing.assert_array_equal(castwise.compile("~x")(odd[::2]), [True, False])


def test_scalars_by_their_exact_type():
    f = castwise.compile("x * s")
    x = np.ones(2, np.float32)
    assert f(x, 2).dtype == f(x, 2.5).dtype == np.float32
    assert f(x, np.float64(2.5)).dtype == np.float64
    assert f(x, 2j).dtype == np.complex64
    assert f(np.ones(2, np.int8), True).dtype == np.int8


def test_dtypes_that_castwise_lacks_are_named():
    for a in (np.zeros(2, np.longdouble), np.array(["a"]), np.zeros(2, "M8[s]"), np.zeros(2, ml_dtypes.int4)):
        with pytest.raises(TypeError, match="`x` is an array of .*castwise lacks"):
            castwise.compile("x + 1")(a)
    with pytest.raises(TypeError, match="`x` is a .*dict"):
        castwise.compile("x + 1")({})


def test_what_numpy_can_make_an_array_of():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    np.testing.assert_array_equal(castwise.compile("x + 1")(Wrapped()), [1, 2, 3])


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "arctan2", "power"])
def test_results_of_binary_ufuncs(name):
    rng = np.random.default_rng(1)
    for da in ("u1", "i4", "u8", "f2", "f4", "f8"):
        for db in ("i1", "u4", "f2", "f8"):
            a, b = (rng.integers(1, 5, 20).astype(d) for d in (da, db))
            want = getattr(np, name)(a, b)
            got = castwise.compile(lambda x, y: getattr(np, name)(x, y))(a, b)
            assert got.dtype == want.dtype, (name, da, db)
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=2e-3 if want.dtype == "f2" else 1e-6)


@pytest.mark.parametrize("name", "bool u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8".split())
def test_rint_gives_floats(name):
    x = np.array([0, 1, 1, 0]).astype(name)
    got = castwise.compile(lambda x: np.rint(x))(x)
    assert got.dtype == np.rint(x).dtype and got.tolist() == np.rint(x).tolist()
    for rules in ("torch", "jax", "jax,x64") if name[0] in "ui" and x.itemsize < 8 else ():
        same = castwise.compile(lambda x: (np.rint(x), np.exp(x)), rules=rules)(x)
        assert same[0].dtype == same[1].dtype and same[0].dtype.kind == "f"


def test_isclose_and_nan_to_num():
    x, y = np.array([1.0, np.nan, np.inf, 100]), np.array([1.001, np.nan, np.inf, 100.5])
    for named in ({}, {"rtol": 1e-2}, {"rtol": 0, "atol": 0.6, "equal_nan": True}):
        got = castwise.compile(lambda x, y: np.isclose(x, y, **named))(x, y)
        assert got.tolist() == np.isclose(x, y, **named).tolist()
    assert castwise.compile(lambda x: np.isclose(x, y))(x).tolist() == np.isclose(x, y).tolist()
    for named in ({}, {"nan": 3.0, "posinf": 7}):
        got = castwise.compile(lambda x: np.nan_to_num(x, **named))(x)
        assert got.tolist() == np.nan_to_num(x, **named).tolist()
    assert castwise.compile(lambda x: np.nan_to_num(x))(np.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="does not change its operand"):
        castwise.compile(lambda x: np.nan_to_num(x, copy=False))(x)


@pytest.mark.parametrize("name", ["bool", "i1", "u2", "i8", "f2", "f4", "f8", "c8"])
def test_arrays_like_others_and_differences(name):
    x = (np.arange(12).reshape(3, 4) % 5).astype(name)
    x[0, 0] = x[-1, -1]
    functions = [
        np.zeros_like,
        lambda x: np.ones_like(x, dtype="i4"),
        lambda x: np.full_like(x, 1),
        lambda x: np.full_like(x, 7, dtype=np.float32),
        np.copy,
        np.diff,
        lambda x: np.diff(x, n=2, axis=0),
        lambda x: np.diff(x, n=3, axis=0),
        lambda x: np.diff(x, n=0),
    ]
    if name not in ("bool", "c8"):
        functions += [np.ptp, lambda x: np.ptp(x, axis=1, keepdims=True)]
    for f in functions:
        for given in (x, x[:, :0], x.T):
            try:
                want = f(given)
            except ValueError:
                # The range of no elements.
                with pytest.raises(ValueError):
                    castwise.compile(lambda x: f(x))(given)
                continue
            got = castwise.compile(lambda x: f(x))(given)
            assert got.dtype == want.dtype and got.shape == want.shape and got.tolist() == want.tolist()
    if name == "i1":
        with pytest.raises(TypeError, match="takes no `prepend`"):
            castwise.compile(lambda x: np.diff(x, prepend=0))(x)
        for value, dtype in ((128, None), (-129, None), (-1, "u1"), (2**63, "i8")):
            with pytest.raises(OverflowError):
                castwise.compile(lambda x: np.full_like(x, value, dtype=dtype))(x)
        for value, dtype in ((-128, None), (255, "u1"), (300, "?"), (300, "f4")):
            got = castwise.compile(lambda x: np.full_like(x, value, dtype=dtype))(x)
            assert got.tolist() == np.full_like(x, value, dtype=dtype).tolist()


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for call in (castwise.compile("a + 1"), castwise.exp, lambda a: castwise.evaluate("a * 2")):
        with pytest.raises(TypeError, match="`[ax]` is a masked array, whose mask would be lost"):
            call(masked)
    same = castwise.compile("a + 1")(masked.filled(0))
    np.testing.assert_array_equal(same, [1, 3])


class Copying:
    """An object that gives NumPy a new array each time."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros(3)


class Showing:
    """An object that shows NumPy its memory."""

    def __init__(self):
        self.memory = np.zeros(3)

    def __array__(self, dtype=None, copy=None):
        return self.memory


def test_out_that_is_no_memory_of_its_object_is_refused():
    f = castwise.compile("a + 1")
    for out in [Copying(), np.float64(0)]:
        with pytest.raises(ValueError, match="gives NumPy a copy"):
            f(np.ones(np.shape(out)), out=out)
    shown = Showing()
    assert f(np.ones(3), out=shown) is shown
    assert shown.memory.tolist() == [2, 2, 2]


def test_a_closed_buffer_says_nothing_about_others():
    f = castwise.compile("a + 1")
    with mmap.mmap(-1, 2) as closed:
        pass
    with pytest.raises(TypeError, match="is a mmap.mmap"):
        f(closed)
    with mmap.mmap(-1, 2) as memory:
        assert f(memory).tolist() == [1, 1]


def test_dtypes_of_any_byte_order():
    assert "f32[2]" in str(castwise.explain("a + 1", rules="numpy", a=np.ones(2, ">f4")))


def outcome(f, *arguments):
    """Values with their dtype; nothing for what is refused."""
    try:
        with np.errstate(all="ignore"):
            found = f(*arguments)
    except (TypeError, ValueError, OverflowError, castwise.Error):
        return None
    # As text, in which NaNs are equal.
    return found.dtype, found.shape, str(found.tolist())


INTEGERS = "i1 u1 i2 u2 i4 u4 i8 u8".split()


def extremes(name):
    limits = np.iinfo(name)
    return np.array([limits.min, limits.min + 1, 0, 1, 7, limits.max - 1, limits.max], name)


@pytest.mark.parametrize("name", [*INTEGERS, "f2", "f4", "f8"])
def test_clip_is_numpys(name):
    x = extremes(name) if name in INTEGERS else np.array([-np.inf, -3, 0.5, 7, np.inf, np.nan], name)
    numbers = [None, -(2**40), -129, -128, -1, 0, 1, 100, 127, 128, 255, 256, 40000, 2**40, 2**63, 2**64 - 1, 2.5]
    for low, high in itertools.product(numbers, repeat=2):
        call = lambda x: np.clip(x, low, high)  # noqa: E731
        assert outcome(castwise.compile(call), x) == outcome(call, x), (low, high)
    # Dtypes promote together: u16 with i8 is i32, which with f32 is f64, but the three have f32.
    bounds = [np.array([[0], [1]], d) for d in (*INTEGERS, "f2", "f4", "c8", "?")]
    call = lambda x, low, high: np.clip(x, low, high)  # noqa: E731
    for low, high in itertools.product(bounds, repeat=2):
        assert castwise.compile(call)(x, low, high).dtype == np.clip(x, low, high).dtype


def test_clip_takes_its_bounds_as_numpy_does():
    x = np.array([1, 5, 9])
    for call in (
        lambda x: np.clip(x, min=2, max=7),
        lambda x: np.clip(x, max=7),
        lambda x: np.clip(x),
        lambda x: np.clip(x, 2),
        lambda x: np.clip(x, 2, max=7),
        lambda x: np.clip(x, 2, 7, max=8),
    ):
        assert outcome(castwise.compile(call), x) == outcome(call, x)
    # A number that is clipped is an array of NumPy's.
    got = castwise.compile(lambda low: np.clip(300, low, None), rules="numpy")(np.int8([1, 2]))
    assert got.dtype == np.clip(300, np.int8([1, 2]), None).dtype and got.tolist() == [300, 300]


@pytest.mark.parametrize("name", ["?", *INTEGERS, "f2", "f4", "f8", "c8", "c16"])
def test_isclose_to_numbers_is_numpys(name):
    x = extremes(name) if name in INTEGERS else np.array([0, 1, 100]).astype(name)
    x = np.append(x, np.array([np.inf, np.nan, 65504], name)) if name[0] in "fc" else x
    numbers = [True, 0, 1, -1, 300, -129, 2**40, 2**63 - 1, 2**64 - 1, 1.00001, 1e300, np.inf, np.nan, 1 + 1e-6j, 65504]
    named = [{}, {"rtol": 0.5, "atol": 1, "equal_nan": True}, {"rtol": 0, "atol": 0}]
    for number, more in itertools.product(numbers, named):
        call = lambda x: np.isclose(x, number, **more)  # noqa: E731
        assert outcome(castwise.compile(call), x) == outcome(call, x), (number, more)


IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()


@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place_keep_the_dtype_and_the_shape(name):
    call = lambda x, y: getattr(operator, name)(x, y)  # noqa: E731
    written = lambda x, y: call(x.copy(), y)  # noqa: E731
    arrays = [np.array([1, 2, 3]).astype(d) for d in ("?", *INTEGERS, "f2", "f4", "f8", "c8")]
    others = [*arrays, np.array([[1], [2]]), np.array([2]), True, 2, 300, -1, 0.5, 1j]
    for x, y in itertools.product(arrays, others):
        if name == "ipow" and x.dtype.kind + np.asarray(y).dtype.kind != "ff":
            # Powers of complex numbers are compared elsewhere, and NumPy squares bools as i8.
            continue
        assert outcome(castwise.compile(call), x, y) == outcome(written, x, y), (x.dtype, y)
    assert list(x) == [1, 2, 3]


def test_what_no_operator_writes_into():
    # What has no dims is a scalar of NumPy: another one takes its place.
    def scaled(x, y):
        s = np.sum(x)
        s *= y
        return s

    x = np.float32([1, 2])
    for y in (np.float64(0.1), np.float64([0.1, 0.2])):
        got = castwise.compile(scaled)(x, y)
        assert got.dtype == scaled(x, y).dtype == np.float64 and got.tolist() == scaled(x, y).tolist()

    def added(x, y):
        x += y
        return x

    for rules in ("jax", "paddle"):
        got = castwise.compile(added, rules=rules)(np.float32([1, 2]), np.float64([0.5]))
        assert got.dtype == np.float64 and got.tolist() == [1.5, 2.5]
    with pytest.raises(castwise.ProgramError, match="can't be cast to the desired output type i32"):
        castwise.compile(added, rules="torch")(np.int32([1, 2]), np.float32([0.5]))
    a = castwise.xp("numpy").asarray([1, 2], dtype="f32")
    b = a
    b += castwise.xp("numpy").asarray([0.5, 0.5])
    assert b.dtype == "f32" and np.asarray(a).tolist() == [1, 2]
    # Nothing is assigned that has the dtype and the shape already.
    assert [("assign" in castwise.explain(added, rules="numpy", x="f32", y=y)) for y in ("f64[n]", "f32[n]", 2.5)] == [True, False, False]
    # The place is the line of the operator.
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile(added)(np.int32([1]), 0.5)
    assert "test_numpy.py" in str(e.value)


def test_dtypes_that_numpys_functions_are_given_are_numpys():
    x = np.float32([[1, 2], [3, 4]])
    for dtype in ("i8", "u8", "f8", "f4", "<f4", "float64", np.int16, float, np.dtype("u1")):
        for call in (
            lambda x: np.sum(x, axis=0, dtype=dtype),
            lambda x: np.cumsum(x, axis=0, dtype=dtype),
            lambda x: np.astype(x, dtype),
        ):
            got = castwise.compile(call)(x)
            assert got.dtype == call(x).dtype and got.tolist() == call(x).tolist()
    assert castwise.compile(lambda x: np.var(x, dtype="f8"))(x).dtype == np.float64
    # What NumPy has no name for is castwise's.
    assert castwise.compile(lambda x: np.astype(x, "bf16"))(x).dtype == ml_dtypes.bfloat16
    assert castwise.compile(lambda x: np.sum(x, dtype="f64"))(x).dtype == np.float64


def test_arguments_are_read_as_numpy_reads_them():
    x = np.arange(6.0).reshape(2, 3)
    p = castwise.Program("numpy")
    v = p.data("x", "f64", [2, 3])
    for call in (
        lambda x: np.sum(x, axis=0, keepdims=np._NoValue),
        lambda x: np.reshape(x, np.int64(6)),
        lambda x: np.reshape(x, (np.int8(3), -1)),
        lambda x: np.expand_dims(x, np.int64(1)),
        lambda x: np.broadcast_to(x[0], (np.int64(4), 3)),
        lambda x: np.real(val=x),
    ):
        assert call(v).shape == call(x).shape
    for call, error in (
        (lambda x: np.broadcast_to(x, (2, -1)), ValueError),
        (lambda x: np.var(x, ddof=1, correction=2), ValueError),
    ):
        for value in (x, v):
            with pytest.raises(error):
                call(value)


def test_refusals_name_what_is_not_taken():
    x = castwise.Program("numpy").data("x", "f64", [3])
    for call, text in (
        (lambda: np.add(x, 1, dtype="f4"), "numpy.add of a castwise.Var takes operands only, no `dtype`"),
        (lambda: np.add(x, 1, where=[True, False, True]), "no `where`"),
        (lambda: np.add.reduce(x), "numpy.add.reduce of a castwise.Var"),
        (lambda: np.linalg.norm(x), "castwise's function of this name is castwise.norm"),
        (lambda: np.fft.fft(x), "castwise has no op for it"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_matrices_are_refused():
    with pytest.warns(PendingDeprecationWarning):
        m = np.matrix([[1.0, 2], [3, 4]])
    for call in (castwise.compile("a * a"), castwise.exp, lambda m: castwise.compile(lambda a: a * m)(np.ones((2, 2)))):
        with pytest.raises(TypeError, match="is a numpy.matrix, whose `\\*` and `\\*\\*` are products of matrices"):
            call(m)
    assert castwise.compile("a * a")(np.asarray(m)).tolist() == [[1, 4], [9, 16]]


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_numbers_of_any_size_are_true_or_false(name):
    for dtype in (*INTEGERS, "f2", "f8"):
        x = np.array([0, 1, 2]).astype(dtype)
        for number in (0, 1, -1, 256, 65536, -(2**32), 2**63 - 1, 0.0, 0.1, np.nan):
            call = lambda x: (getattr(np, name)(x, number), getattr(np, name)(number, x))  # noqa: E731
            got, want = castwise.compile(call)(x), call(x)
            assert [g.tolist() for g in got] == [w.tolist() for w in want], (dtype, number)
