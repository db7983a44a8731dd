"""CPU tensors of PyTorch: read in place, results are tensors, and dtypes and bits are PyTorch's."""

import numpy as np
import pytest

import castwise

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c32": torch.complex32,
    "c64": torch.complex64,
    "c128": torch.complex128,
}

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, 1::2],
    "expanded": lambda a: a[:1].expand(4, -1),
    "0-d": lambda a: a[1, 2],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_in_every_layout(name, layout):
    a = LAYOUTS[layout]((torch.arange(24) % 2).reshape(4, 6).to(torch.float32).to(DTYPES[name]))
    got = castwise.compile(f"cast(x, {name})")(a)
    assert got.dtype == a.dtype and got.shape == a.shape
    assert torch.equal(got.to(torch.complex64), a.to(torch.complex64))


def test_promotion_is_that_of_pytorch():
    of = [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
    f = castwise.compile("a + b")
    for da in of:
        for db in of:
            for a in (torch.ones(2, 1, dtype=da), torch.ones((), dtype=da)):
                b = torch.ones(3, dtype=db)
                got, want = f(a, b), a + b
                assert got.dtype == want.dtype, (da, db, a.shape)
                assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_bits_of_arithmetic(dtype):
    a, b, c = (torch.randn(4096, generator=torch.Generator().manual_seed(i)).to(dtype) for i in range(3))
    f = castwise.compile(lambda a, b, c: (a - b) * c + a * 0.5 - b / (c * c + 1))
    assert torch.equal(f(a, b, c), (a - b) * c + a * 0.5 - b / (c * c + 1))


def test_no_copy_and_own_memory():
    x = torch.zeros(1000)
    out = torch.ones(1000)
    address = out.data_ptr()
    assert castwise.compile("x + 3")(x, out=out) is out and out.data_ptr() == address and out[0] == 3
    r = castwise.compile("x + 3")(x)
    r[0] = 7
    assert x[0] == 0 and r.data_ptr() % 64 == 0


@pytest.mark.parametrize("into", [False, True])
def test_memory_stays_flat(stays_flat, into):
    f, x, out = castwise.compile("x * 2 + y"), torch.ones(1000), torch.ones(1000) if into else None
    stays_flat(lambda: f(x, x, out=out))


@pytest.mark.parametrize("name", DTYPES)
def test_results_keep_their_memory(name):
    results = [castwise.compile(f"cast(x + {i}, {name})")(torch.zeros(100)) for i in range(2)]
    assert [r[99].item() for r in results] == [0, 1] and results[0].is_contiguous()


def test_lazy_bits_are_resolved():
    c = torch.tensor([1 + 2j, 3 - 1j])
    f = castwise.compile("c * 2")
    assert torch.equal(f(c.conj()), c.conj() * 2)
    assert torch.equal(f(c.conj().imag), c.conj().imag * 2)
    with pytest.raises(ValueError, match="lazy conjugation"):
        f(c, out=torch.zeros_like(c).conj())


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation")
def test_quantized_tensors_are_refused():
    with pytest.raises(TypeError, match="quantized"):
        castwise.compile("x + 1")(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))


def test_what_is_refused():
    f = castwise.compile("x + 1")
    for x, text in [
        (torch.ones(3, requires_grad=True), "detach"),
        (torch.ones(3).to_sparse(), "to_dense"),
        (torch.ones(3, device="meta"), "meta"),
        (torch.nn.Parameter(torch.ones(3)), "detach"),
    ]:
        with pytest.raises(TypeError, match=text):
            f(x)
    with pytest.raises(ValueError, match="several libraries"):
        castwise.compile("x + y")(torch.ones(2), np.ones(2))
    mixed = castwise.compile("x + y", rules="torch")(torch.ones(2, dtype=torch.int32), np.ones(2, np.float32))
    assert mixed.dtype == torch.float32
