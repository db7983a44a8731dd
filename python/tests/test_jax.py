"""Arrays of JAX: read in place, results are arrays of JAX, and dtypes are JAX's with its setting of 64 bits."""

import ml_dtypes
import numpy as np
import pytest

import castwise

jax = pytest.importorskip("jax")
jnp = jax.numpy

NARROW = "bool uint8 uint16 uint32 int8 int16 int32 float16 bfloat16 float32 complex64 float8_e4m3fn float8_e5m2".split()
WIDE = "uint64 int64 float64 complex128".split()
SHAPES = {"2-d": (4, 6), "0-d": (), "empty": (0, 3), "transposed": (6, 4)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", NARROW + WIDE)
def test_every_dtype(dtype, shape):
    with jax.enable_x64(dtype in WIDE):
        x = jnp.asarray(np.arange(int(np.prod(SHAPES[shape]))).reshape(SHAPES[shape]) % 2).astype(dtype)
        x = x.T if shape == "transposed" else x
        got = castwise.compile("where(c, x, x)")(jnp.ones(x.shape, bool), x)
        assert isinstance(got, jax.Array) and got.dtype == x.dtype and got.shape == x.shape
        assert np.asarray(got).tobytes() == np.asarray(x).tobytes()


def test_arguments_and_results_are_in_place(monkeypatch, takes_one_result):
    made, take = [], jax.dlpack.from_dlpack

    def taken(memory):
        made.append(np.from_dlpack(memory).ctypes.data)
        return take(memory)

    monkeypatch.setattr(jax.dlpack, "from_dlpack", taken)
    f = castwise.compile("x * 2 + y", executor=castwise.Executor(pool=0))
    for dtype in ("float32", "uint8", "int32"):
        for n in (1, 7, 4096):
            x = jnp.ones(n, dtype)
            assert f(x, x).unsafe_buffer_pointer() == made[-1]
    x = jnp.ones(1 << 24, "float32").block_until_ready()
    assert int(takes_one_result(lambda: f(x, x), x.nbytes)[-1]) == 3 and len(made) == 10


def test_results_are_not_copied_and_own_their_memory():
    x = jnp.arange(4096, dtype=jnp.float32)
    f = castwise.compile("x + 1")
    addresses = {f(x).unsafe_buffer_pointer() for _ in range(5)}
    assert all(a % 64 == 0 for a in addresses)
    results = [castwise.compile(f"x + {i}")(x) for i in range(20)]
    assert [int(r[0]) for r in results] == list(range(20)) and int(x[0]) == 0


@pytest.mark.parametrize("x64", [False, True])
def test_promotion_is_that_of_jax(x64):
    f = castwise.compile("a + b")
    with jax.enable_x64(x64):
        of = "bool uint8 int8 int32 float16 bfloat16 float32".split() + (["int64", "float64"] if x64 else [])
        for da in of:
            for db in of:
                a, b = jnp.ones((2, 1), da), jnp.ones(3, db)
                assert f(a, b).dtype == (a + b).dtype, (da, db)
            assert castwise.compile("a * 2.5")(jnp.ones(2, da)).dtype == (jnp.ones(2, da) * 2.5).dtype


def test_weak_arrays_promote_as_scalars():
    weak, half = jnp.asarray(2.5), jnp.ones(3, jnp.bfloat16)
    assert weak.weak_type and castwise.compile("a * b")(half, weak).dtype == (half * weak).dtype == jnp.bfloat16
    assert castwise.mul(half, weak).dtype == jnp.bfloat16
    assert castwise.result_type(half, weak, rules="jax") == "bf16"
    p = castwise.Program("jax")
    assert (p.data("x", "bf16", [3]) * p.constant(weak)).dtype == "bf16"
    assert "result bf16[3]" in castwise.explain("a * b", rules="jax", a=half, b=weak)


def test_what_is_refused():
    f = castwise.compile("x + 1")
    with pytest.raises(TypeError, match="traced by JAX"):
        jax.jit(f)(jnp.ones(3))
    with pytest.raises(ValueError, match="can't be written"):
        f(jnp.ones(3), out=jnp.ones(3))
    with pytest.raises(TypeError, match="jax_enable_x64"):
        castwise.compile("cast(x, f64)", rules="jax,x64")(jnp.ones(3))
    with pytest.raises(ValueError, match="several libraries"):
        castwise.compile("x + y")(jnp.ones(3), np.ones(3))
    with pytest.raises(TypeError, match="castwise lacks"):
        f(jnp.ones(3, jnp.int4))


def test_dtypes_by_their_objects():
    assert castwise.promote_types(jnp.bfloat16, jnp.dtype("float16"), rules="jax") == "f32"
    assert castwise.can_cast(jnp.float32, ml_dtypes.bfloat16)


def test_memory_stays_flat(stays_flat):
    f, x = castwise.compile("x * 2 + y"), jnp.ones(1000)
    # A result of JAX takes as long as a dozen of the others.
    stays_flat(lambda: f(x, x), 20_000, warm=20_000)


def test_out_of_numpy():
    out = np.zeros(3, np.float32)
    assert castwise.compile("x + 1")(jnp.ones(3), out=out) is out and out[0] == 2
