"""CPU tensors of Paddle: read in place, results are tensors, and dtypes are Paddle's."""

import numpy as np
import pytest

import castwise

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def paddle():
    return pytest.importorskip("paddle")


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
DTYPES += ["float8_e4m3fn", "float8_e5m2"]
LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "0-d": lambda a: a[1, 2],
    "empty": lambda a: a[:0],
    "part": lambda a: a[1:, 2:4],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_every_layout(paddle, dtype, layout):
    whole = paddle.to_tensor((np.arange(24) % 2).reshape(4, 6).astype("float32"))
    # Paddle slices no floats of 8 bits.
    early = not dtype.startswith("float8")
    a = LAYOUTS[layout](whole.astype(dtype)) if early else LAYOUTS[layout](whole).astype(dtype)
    got = castwise.compile("cast(x, f32)")(a)
    assert isinstance(got, paddle.Tensor) and got.shape == a.shape
    np.testing.assert_array_equal(got.numpy(), a.astype("float32").numpy())
    same = castwise.compile(lambda x: x)(a)
    assert same.dtype == a.dtype and same.shape == a.shape
    np.testing.assert_array_equal(same.astype("float32").numpy(), a.astype("float32").numpy())


def test_promotion_is_that_of_paddle(paddle):
    # What Paddle adds on the CPU.
    of = "float32 float64 complex64 complex128".split()
    f = castwise.compile("a + b")
    for da in of:
        for db in of:
            a, b = paddle.ones([2, 1], da), paddle.ones([3], db)
            assert f(a, b).dtype == (a + b).dtype, (da, db)


def test_no_copy_and_own_memory(paddle):
    f, x, out = castwise.compile("x + 3"), paddle.zeros([1000]), paddle.ones([1000])
    address = out.data_ptr()
    assert f(x, out=out) is out and out.data_ptr() == address and float(out[0]) == 3
    r = f(x)
    assert r.data_ptr() % 64 == 0
    r[0] = 7
    assert float(x[0]) == 0
    part = paddle.zeros([4, 6])
    f(paddle.zeros([6, 4]), out=part.T)
    assert float(part.sum()) == 72


def test_arguments_and_results_are_in_place(paddle, takes_one_result):
    f, x = castwise.compile("x * 2 + y", executor=castwise.Executor(pool=0)), paddle.ones([1 << 24])
    assert float(takes_one_result(lambda: f(x, x), 4 << 24)[-1]) == 3
    # Written where they are read: the addresses are the same.
    y = paddle.ones([1000])
    address = y.data_ptr()
    small = castwise.compile("x * 2 + y", executor=castwise.Executor(max_bytes=16))
    assert small(y, y, out=y) is y and y.data_ptr() == address and float(y.sum()) == 3000


def test_memory_stays_flat(paddle, stays_flat):
    f, x = castwise.compile("x * 2 + y"), paddle.ones([1000])
    stays_flat(lambda: f(x, x))


def test_what_is_refused(paddle):
    f, x = castwise.compile("x + 1"), paddle.ones([3])
    x.stop_gradient = False
    with pytest.raises(TypeError, match="detach"):
        f(x)
    with pytest.raises(TypeError, match="sparse"):
        f(paddle.sparse.sparse_coo_tensor([[0], [0]], [1.0], [2, 2]))
    with pytest.raises(ValueError, match="several libraries"):
        castwise.compile("x + y")(paddle.ones([3]), np.ones(3))


def test_dtypes_by_their_objects(paddle):
    assert castwise.promote_types(paddle.bfloat16, paddle.float16, rules="torch") == "f32"
    assert castwise.can_cast(paddle.float32, paddle.float64)
    assert castwise.result_type(paddle.ones([2], "float16"), 2.5, rules="paddle") == "f16"
