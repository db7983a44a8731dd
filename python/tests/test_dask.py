"""Programs on the arrays of Dask: what is known before anything runs, bits, refusals, and a cluster that loses a worker."""

import doctest
import hashlib
import os
import pathlib
import pickle
import re
import signal
import time

import ml_dtypes
import numpy as np
import pytest

import castwise

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask[array] is not installed")

import castwise.dask  # noqa: E402
from castwise.dask import _apply, _block  # noqa: E402

#: The ops whose partial results merge.
REDUCTIONS = "sum prod nansum mean nanmean any all count_nonzero amax amin logsumexp norm var std".split()


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def random(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).random(shape).astype(dtype)


def same(a, b):
    """Equal in dtype, shape and bits."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def agrees(lazy, want):
    """A chunked result is what was said of it, and has these bits."""
    got = lazy.compute()
    assert lazy.dtype == got.dtype == want.dtype and lazy.shape == got.shape == want.shape
    for sizes, shape in zip(lazy.chunks, got.shape):
        assert sum(sizes) == shape
    same(got, want)


# Elementwise programs.


@pytest.mark.parametrize("rules", castwise.rules)
def test_bits_and_dtypes_are_those_of_one_array(dtype, rules):
    a, b = random((7, 9), dtype), random((9,), np.float32)
    f = castwise.compile("a + b", rules=rules)
    try:
        want = f(a, b)
    except castwise.ProgramError:
        with pytest.raises(castwise.ProgramError):
            castwise.dask.apply(f, da.from_array(a, chunks=(2, 4)), b)
        return
    agrees(castwise.dask.apply(f, da.from_array(a, chunks=(2, 4)), da.from_array(b, chunks=3)), want)


def test_arrays_broadcast_and_chunks_are_made_the_same():
    a, b, c = random((10, 12)), random((12,), "float64"), random((10, 1), "float16")
    f = castwise.compile("a * b - c * 2.5")
    x, y, z = da.from_array(a, chunks=(4, 5)), da.from_array(b, chunks=7), da.from_array(c, chunks=(3, 1))
    lazy = castwise.dask.apply(f, x, y, z)
    assert lazy.chunks == ((3, 1, 2, 2, 1, 1), (5, 2, 3, 2))
    agrees(lazy, f(a, b, c))
    agrees(castwise.dask.apply(f, c=z, a=x, b=y), f(a, b, c))
    agrees(castwise.dask.apply(f, x.astype(">f4"), y, z), f(a, b, c))
    agrees(
        castwise.dask.apply("a * b", x[:, None, :], z[:, 0][None, :, None]),
        castwise.compile("a * b")(a[:, None], c[:, 0][None, :, None]),
    )


def test_numbers_are_weak_and_arrays_are_not():
    x = da.from_array(random(6), chunks=4)
    assert castwise.dask.apply("x * s", x, 2.5).dtype == np.float32
    assert castwise.dask.apply("x * s", x, np.float64(2.5)).dtype == np.float64
    assert castwise.dask.apply("x * s", x, da.from_array(np.float64(2.5))).dtype == np.float64
    assert castwise.dask.apply("x * pi", x).dtype == np.float32
    agrees(castwise.dask.apply("x * s", x, np.float64(2.5)), x.compute() * np.float64(2.5))


def test_placeholders_of_programs_take_numbers():
    a = random(6)
    p = castwise.Program("numpy")
    p.fetch(p.data("x", "f32", [6]) * p.data("s", "f32", []) + p.data("n", "i8", [], weak=True))
    x = da.from_array(a, chunks=4)
    agrees(castwise.dask.apply(p, x, 2.5, 3), castwise.compile(p)(a, 2.5, 3))
    agrees(castwise.dask.apply(p, x, s=np.float32(2.5), n=np.int8(3)), castwise.compile(p)(a, 2.5, 3))
    for call, *given in ((castwise.dask.apply, p, x), (castwise.compile(p), a)):
        with pytest.raises(castwise.FeedError, match="`n`: is the number 300, the program declares i8, which holds"):
            call(*given, 2.5, 300)
    with pytest.raises(castwise.FeedError, match="`s`: is f64, expected f32"):
        castwise.dask.apply(p, x, np.float64(2.5), 3)


def test_several_results():
    a = random((5, 6))
    x = da.from_array(a, chunks=(2, 3))
    f = castwise.compile(lambda a: {"t": a.T + 1, "s": a.sum(), "u": a * 2, "v": a > 0.5, "same": a})
    lazy, want = castwise.dask.apply(f, x), f(a)
    assert list(lazy) == list(want)
    for name in ("t", "u", "v", "same"):
        agrees(lazy[name], want[name])
    p = castwise.Program("torch")
    y = p.data("x y", "f32", ["n", 6])
    p.fetch(**{"a b": y * 2, "largest": y.amax()})
    lazy, want = castwise.dask.apply(p, x), castwise.compile(p)(a)
    for name in want:
        agrees(lazy[name], want[name])


def test_fixed_extents_of_programs():
    a = random((8, 6))
    p = castwise.Program("numpy")
    x, y = p.data("x", "f32", [8, 6]), p.data("y", "f32", [6])
    p.fetch((x * y).amax(), x + y)
    lazy, want = (
        castwise.dask.apply(p, da.from_array(a, chunks=(3, 4)), da.from_array(a[0], chunks=5)),
        castwise.compile(p)(a, a[0]),
    )
    agrees(lazy[0], want[0])
    agrees(lazy[1], want[1])
    q = castwise.Program("numpy")
    x = q.data("x", "f32", [8, 6])
    q.fetch(x.reshape(6, 8))
    with pytest.raises(ValueError, match="fixes dim 1 of `x`"):
        castwise.dask.apply(q, da.from_array(a, chunks=(-1, 4)))
    agrees(castwise.dask.apply(q, da.from_array(a, chunks=-1)), a.reshape(6, 8))
    r = castwise.Program("numpy")
    r.fetch(r.data("x", "f32", [None, None]) * r.constant(a[0]))
    with pytest.raises(ValueError, match="needs dim 1 of `x` in one chunk"):
        castwise.dask.apply(r, da.from_array(a, chunks=(3, 4)))
    agrees(castwise.dask.apply(r, da.from_array(a, chunks=(3, -1))), a * a[0])


def test_ops_along_dims_of_one_chunk_run_in_blocks():
    a = random((8, 6))
    rows = da.from_array(a, chunks=(3, -1))
    for f in ("softmax(a, dim=-1)", "median(a, axis=1)", "cumsum(a, axis=1)", "argmax(a, axis=1, keepdim=True)"):
        agrees(castwise.dask.apply(f, rows), castwise.compile(f)(a))
    for f in (
        lambda a: a[:, 1::2] * 2,
        lambda a: a[:, ::-1],
        lambda a: castwise.sort(a, dim=1),
        lambda a: a.T.unsqueeze(0),
    ):
        agrees(castwise.dask.apply(f, rows), castwise.compile(f)(a))
    whole = da.from_array(a[:, :5], chunks=-1)
    for f in ("uniform(a, seed=3)", "sum(a)", "argmax(a)"):
        agrees(castwise.dask.apply(f, whole), castwise.compile(f)(a[:, :5]))
    agrees(castwise.dask.apply(lambda a: a + a.T, whole[:5]), a[:5, :5] + a[:5, :5].T)


# Reductions.


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("kind", ["uint8", "int32", "float16", "float32", "float64", "bfloat16", "bool"])
def test_reductions_of_chunks(op, kind):
    dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind)
    a = (random((37, 20)) * (3 if op != "prod" else 1.2)).astype(dtype)
    for what in (f"{op}(a)", f"{op}(a, axis=0)", f"{op}(a, axis=1, keepdim=True)"):
        f = castwise.compile(what)
        try:
            want = f(a)
        except castwise.ProgramError:
            with pytest.raises(castwise.ProgramError):
                castwise.dask.apply(f, da.from_array(a, chunks=(2, 7)))
            continue
        lazy = castwise.dask.apply(f, da.from_array(a, chunks=(2, 7)))
        got = lazy.compute()
        assert lazy.dtype == got.dtype == want.dtype and lazy.shape == got.shape == want.shape
        if want.dtype.kind in "biu" or op in ("amax", "amin"):
            same(got, want)
        else:
            ulp = float(ml_dtypes.finfo(want.dtype).eps)
            # castwise's logsumexp of halves rounds its steps to halves, as NumPy's does; chunks are merged in f32.
            steps = {"logsumexp": 8, "prod": 99}.get(op, 2)
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=steps * ulp)


def test_sums_of_halves_are_rounded_once():
    a = np.full(100_000, 0.1, np.float16)
    got = castwise.dask.apply("sum(a)", da.from_array(a, chunks=999)).compute()
    same(got, np.float16(np.float64(a[0]) * len(a)))
    same(castwise.dask.apply("mean(a)", da.from_array(a, chunks=999)).compute(), a[0])


def test_programs_with_reductions_inside():
    a = random((30, 40))
    x = da.from_array(a, chunks=(7, 9))
    got = castwise.dask.apply("(a - mean(a, axis=0)) / std(a, axis=0, correction=1)", x)
    assert got.chunks == x.chunks
    wide = a.astype(np.float64)
    np.testing.assert_allclose(got.compute(), (wide - wide.mean(0)) / wide.std(0, ddof=1), rtol=1e-4, atol=1e-5)
    got = castwise.dask.apply("sum(where(a > mean(a), a, 0.0))", x).compute()
    np.testing.assert_allclose(got, wide[a > wide.mean()].sum(), rtol=1e-5)


def test_variance_keeps_its_digits():
    a = (random(5000) + 1000).astype(np.float32)
    got = castwise.dask.apply("var(a, correction=1)", da.from_array(a, chunks=77)).compute()
    same(got, np.float32(a.astype(np.float64).var(ddof=1)))


def test_bits_follow_from_the_chunks_alone():
    a = random((64, 50))
    x = da.from_array(a, chunks=(5, 6))
    lazy = castwise.dask.apply(lambda a: (a.sum(), a.mean(axis=0), castwise.std(a, axis=1), castwise.logsumexp(a)), x)
    want = dask.compute(*lazy, scheduler="synchronous")
    for threads in (1, 3, 8):
        with dask.config.set({"split_every": threads + 1}):
            again = castwise.dask.apply(
                lambda a: (a.sum(), a.mean(axis=0), castwise.std(a, axis=1), castwise.logsumexp(a)), x
            )
        for got, one in zip(
            dask.compute(*again, scheduler="threads", num_workers=threads, optimize_graph=threads > 1), want
        ):
            same(got, one)
    # Another array of the same partial sums, which castwise merges.
    parts = np.array(
        [[castwise.compile("sum(a)")(a[i : i + 5, j : j + 6]) for j in range(0, 50, 6)] for i in range(0, 64, 5)]
    )
    level = [[castwise.compile("sum(a)")(parts[i : i + 4, j : j + 4]) for j in range(0, 9, 4)] for i in range(0, 13, 4)]
    same(want[0], castwise.compile("sum(a)")(np.array(level)))


def test_chunks_without_elements():
    a = random((10, 6))
    x = da.from_array(a, chunks=((0, 4, 0, 6, 0), (3, 3)))
    assert 0 in x.chunks[0]
    for f in ("amax(a)", "amin(a, axis=0)", "a * 2", "var(a)", "mean(a, axis=1)"):
        want = castwise.compile(f)(a)
        np.testing.assert_allclose(castwise.dask.apply(f, x).compute(), want, rtol=1e-6)
    agrees(castwise.dask.apply("sum(a)", x[:0]), castwise.compile("sum(a)")(a[:0]))
    with pytest.raises(castwise.EmptyReduction):
        castwise.dask.apply("amax(a)", x[:0]).compute()
    agrees(castwise.dask.apply("amax(a, axis=1)", x[:0]), castwise.compile("amax(a, axis=1)")(a[:0]))


def test_one_element_among_empty_chunks():
    a = random(9)
    x = da.from_array(a, chunks=3)
    y = x[x >= a.max()]
    y.compute_chunk_sizes()
    assert sorted(y.chunks[0]) == [0, 0, 1]
    for f in ("a * 2", "sum(a)", "cumsum(a, axis=0)"):
        agrees(castwise.dask.apply(f, y), castwise.compile(f)(a[a >= a.max()]))
    agrees(castwise.dask.apply("a + b", x, y), a + a.max())


def test_values_without_dims():
    a = np.float32(3)
    for f in ("cumsum(a, axis=0)", "sum(a, axis=0)", "amax(a, axis=0)", "a * 2", "count(a)", lambda a: a.flip(-1)):
        agrees(castwise.dask.apply(f, da.from_array(a)), np.asarray(castwise.compile(f)(a)))


def test_numbers_of_elements_are_those_of_all_chunks():
    a = random((10, 6))
    x = da.from_array(a, chunks=(5, 4))
    for f in ("a / count(a)", "a * count(a, axis=0)", "a * count(a, axis=-1)", "count(a)"):
        agrees(castwise.dask.apply(f, x), np.asarray(castwise.compile(f)(a)))
    for f in ("sum(a) / count(a)", "(a - sum(a, axis=0) / count(a, axis=0)) * 2", "sum(a * count(a))"):
        np.testing.assert_allclose(castwise.dask.apply(f, x).compute(), castwise.compile(f)(a), rtol=1e-5, atol=1e-6)
    # Arrays of all sizes have one program.
    before = castwise.dask.stats()["compiles"]
    agrees(castwise.dask.apply("a / count(a)", x[:7]), castwise.compile("a / count(a)")(a[:7]))
    assert castwise.dask.stats()["compiles"] == before
    some = x[x[:, 0] > 0.5]
    with pytest.raises(ValueError, match=r"`count` needs to know how many .*`a.compute_chunk_sizes\(\)`"):
        castwise.dask.apply("a / count(a)", some)
    whole = da.from_array(a, chunks=-1)
    kept = castwise.dask.apply("a / count(a)", whole[whole[:, 0] > 0.5])
    same(kept.compute(), castwise.compile("a / count(a)")(a[a[:, 0] > 0.5]))


@pytest.mark.parametrize("op", ["mean", "var", "std"])
def test_gradients_of_means(op):
    p = castwise.Program("torch")
    x = p.data("x", "f32", [None])
    (g,) = p.gradients([getattr(castwise, op)(x * x)], [x])
    p.fetch(g)
    a = random(10)
    got = castwise.dask.apply(p, da.from_array(a, chunks=5))
    assert got.chunks == ((5, 5),)
    np.testing.assert_allclose(got.compute(), castwise.compile(p)(a), rtol=1e-5, atol=1e-7)


# What is refused.


def test_unknown_sizes_of_chunks():
    a = random((20, 6))
    x = da.from_array(a, chunks=(6, 4))
    some = x[x[:, 0] > 0.5]
    kept = a[a[:, 0] > 0.5]
    for f in ("a * 2", "mean(a, axis=1)"):
        y = some if f == "a * 2" else some.rechunk({1: -1})
        np.testing.assert_allclose(castwise.dask.apply(f, y).compute(), castwise.compile(f)(kept), rtol=1e-6)
    for f in ("sum(a)", "sum(a, axis=0)", "nanmean(a)"):
        np.testing.assert_allclose(castwise.dask.apply(f, some).compute(), castwise.compile(f)(kept), rtol=1e-6)
    same(castwise.dask.apply("a + b", some, some * 2).compute(), kept + kept * 2)
    for op in ("mean", "var", "std", "amax", "amin"):
        with pytest.raises(ValueError, match=rf"`{op}` needs to know how many .*`a.compute_chunk_sizes\(\)`"):
            castwise.dask.apply(f"{op}(a)", some)
    with pytest.raises(ValueError, match="sizes are unknown"):
        castwise.dask.apply("a + b", some, x)
    # Blocks that don't fit are an error when they are found, and are not broadcast.
    with pytest.raises(castwise.FeedError):
        castwise.dask.apply("a + b", some[:, 0], x[:, 0][x[:, 0] > 0.999]).compute()


@pytest.mark.parametrize(
    "f, dim",
    [
        ("softmax(a, dim=-1)", 1),
        ("cumsum(a, axis=0)", 0),
        ("argmax(a)", 0),
        ("median(a)", 0),
        ("norm(a, p=1)", 0),
        ("uniform(a, seed=1)", 0),
        (lambda a: a[:, 1:], 1),
        (lambda a: a.flip(0), 0),
        (lambda a: a.flip(-1), 1),
        (lambda a: a.flip(-1, 0), 1),
        ("castwise 1\nprogram(rules = torch) (%a: f32[?, ?]) {\n  %0 = slice %a {dim = -1, start = 1}\n  fetch %0\n}\n", 1),
    ],
)
def test_other_ops_along_several_chunks(f, dim):
    x = da.ones((6, 6), chunks=2, dtype="f4")
    with pytest.raises(
        ValueError, match=rf"needs dim {dim} of `a` in one chunk; it is in 3: pass `a.rechunk\(\{{{dim}: -1\}}\)`"
    ):
        castwise.dask.apply(f, x)
    castwise.dask.apply(f, x.rechunk(-1)).compute()


def test_dims_of_one_array_that_meet():
    x = da.from_array(random((6, 6)), chunks=2)
    with pytest.raises(ValueError, match="two dims of one array meet"):
        castwise.dask.apply(lambda a: a + a.T, x)
    got = castwise.dask.apply("a + b", x, x.T).compute()
    same(got, x.compute() + x.compute().T)


def test_other_arrays_are_refused():
    x = da.from_array(random((6, 6)), chunks=2)
    masked = x.map_blocks(np.ma.masked_greater, 0.5)
    with pytest.raises(TypeError, match="`a` is a masked array, whose mask would be lost"):
        castwise.dask.apply("a + 1", masked)
    with pytest.raises(TypeError, match="`a` is a masked array"):
        castwise.dask.apply("a + b", np.ma.masked_greater(x.compute(), 0.5), x)
    hidden = x.map_blocks(np.ma.masked_greater, 0.5, meta=np.empty((0, 0), "f4"))
    with pytest.raises(TypeError, match="a block is a masked array"):
        castwise.dask.apply("a + 1", hidden).compute()
    with pytest.raises(TypeError, match="`a`: castwise has no dtype `object`"):
        castwise.dask.apply("a + 1", x.astype(object))
    lies = x.map_blocks(lambda block: block.astype("f8"), meta=np.empty((0, 0), "f4"))
    with pytest.raises(castwise.FeedError, match="is f64"):
        castwise.dask.apply("a + 1", lies).compute()
    for bad in ([1.0], "a", None):
        with pytest.raises(TypeError, match="not a Dask array, a NumPy array or a number"):
            castwise.dask.apply("a + b", x, bad)


def test_parameters_that_are_left_to_their_defaults():
    f, x = castwise.compile(lambda x, k=2.0, shift=None: x * k if shift is None else x * k + shift), da.ones(4, chunks=2)
    for arguments, named in (((x,), {}), ((x, 3.0), {}), ((x,), {"shift": x})):
        same(f(*arguments, **named).compute(), f(*(np.ones(4), *arguments[1:]), **dict.fromkeys(named, np.ones(4))))
    with pytest.raises(TypeError, match="`x` is missing"):
        f(shift=x)


def test_names_and_weak_arrays_of_programs():
    a = random((6, 5))
    p = castwise.Program("numpy")
    x, y = p.data("_0", "f32", ['"n" 1', None]), p.data('p "x] (', "f32", ['"n" 1', None])
    p.fetch(**{"a % b": (x - x.mean()) * y, "b": castwise.std(y)})
    f = castwise.compile(p)
    lazy = castwise.dask.apply(f, da.from_array(a, chunks=2), da.from_array(a, chunks=3))
    for name, want in f(a, a).items():
        np.testing.assert_allclose(lazy[name].compute(), want, rtol=1e-5, atol=1e-6)
    weak = castwise.Program("jax")
    x, y = weak.data("x", "f32", [None], weak=True), weak.data("y", "f16", [None])
    weak.fetch(x + y, castwise.amax(x) * y)
    f, a = castwise.compile(weak), random(6)
    lazy, want = castwise.dask.apply(f, da.from_array(a, chunks=4), np.float16(a)), f(a, np.float16(a))
    agrees(lazy[0], want[0])
    agrees(lazy[1], want[1])


def test_mistakes_are_found_before_anything_runs():
    x = da.from_array(random((6, 5)), chunks=2)
    u8 = (x * 10).astype("u1")
    with pytest.raises(castwise.ProgramError, match="cannot broadcast"):
        castwise.dask.apply("a + b", x, x[:, :3])
    with pytest.raises(castwise.ProgramError, match="may wrap"):
        castwise.dask.apply(castwise.compile("(a - b) / 2", deny="wrap"), u8, u8)
    for arguments, named in (((x,), {}), ((x, x, x), {}), ((x, x), {"a": x}), ((x,), {"b": x, "z": 1})):
        with pytest.raises(TypeError):
            castwise.dask.apply("a + b", *arguments, **named)
    for returned in (3, (), {}, (1,)):
        with pytest.raises(TypeError, match="the function returned"):
            castwise.dask.apply(lambda a: returned, x)
    with pytest.raises(TypeError, match="no argument is an array"):
        castwise.dask.apply("a + b", 1, 2)
    with pytest.raises(TypeError, match="rules of its own"):
        castwise.dask.apply(castwise.compile("a + 1"), x, rules="torch")
    p = castwise.Program("torch")
    p.fetch(p.data("x", "f32", ["n", 5]) + p.data("y", "f32", ["n", 1]))
    with pytest.raises(castwise.FeedError, match="`x`: is u8, expected f32"):
        castwise.dask.apply(p, u8, x[:, :1])
    with pytest.raises(castwise.FeedError, match="`y`: has 4 at axis 0"):
        castwise.dask.apply(p, x, x[:4, :1])
    with pytest.raises(castwise.FeedError, match="`x`: has 4 at axis 1, expected 5"):
        castwise.dask.apply(p, x[:, :4], x[:, :1])


# Other ways in.


def test_compiled_objects_are_functions_of_blocks():
    a = random((6, 7))
    x = da.from_array(a, chunks=(2, 3))
    f = castwise.compile("a * b")
    agrees(da.map_blocks(f, x, x), f(a, a))
    agrees(da.blockwise(f, "ij", x, "ij", x.rechunk((2, 3)), "ij", dtype="f4"), f(a, a))
    agrees(da.map_blocks(f, x.astype(ml_dtypes.bfloat16), 2.0), f(a.astype(ml_dtypes.bfloat16), 2.0))


def test_calls_with_arrays_of_dask_make_graphs():
    a = random((6, 7))
    x = da.from_array(a, chunks=(2, 3))
    f = castwise.compile("a * b - 1.0")
    agrees(f(x, x), f(a, a))
    agrees(f(b=2.0, a=x), f(a, 2.0))
    agrees(f(a, x), f(a, a))
    agrees(castwise.exp(x), castwise.exp(a))
    agrees(castwise.maximum(a[0], x), castwise.maximum(a[0], a))
    agrees(castwise.amax(x, axis=1), castwise.amax(a, axis=1))
    agrees(castwise.softmax(x.rechunk({1: -1}), dim=1), castwise.softmax(a, dim=1))
    agrees(castwise.where(x > 0.5, x, 0.0), castwise.where(a > 0.5, a, 0.0))
    # Ufuncs of NumPy are Dask's own, and in a function castwise's.
    assert isinstance(np.add(x, 1), da.Array)
    agrees(castwise.compile(lambda v: np.exp(v) * 2)(x), castwise.compile(lambda v: np.exp(v) * 2)(a))
    with pytest.raises(TypeError, match=r"`a` is an array of Dask: call `castwise.dask.apply`"):
        f(x, x, out=np.empty((6, 7), "f4"))
    with pytest.raises(TypeError, match="is an array of Dask"):
        castwise.compile(lambda v: v + x)(a)
    with pytest.raises(castwise.ProgramError):
        f(x, x[:, :5])


def test_xarray_keeps_names_and_coordinates():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    a = random((6, 7))
    x = xarray.DataArray(da.from_array(a, chunks=(2, 3)), dims=("y", "x"), coords={"x": np.arange(7)})
    f = castwise.compile("a * a - b")
    got = xarray.apply_ufunc(f, x, x.isel(y=0), dask="parallelized", output_dtypes=["f4"])
    assert got.dims == ("y", "x") and (got.x == x.x).all()
    same(got.values, f(a, a[0]))
    got = xarray.apply_ufunc(lambda *arrays: castwise.dask.apply(f, *arrays), x, x, dask="allowed")
    assert got.dtype == np.float32
    same(got.values, f(a, a))
    with pytest.raises(TypeError, match=r"xarray.apply_ufunc"):
        castwise.dask.apply(f, x, x)


def test_zarr_in_and_out(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    a = random((20, 30))
    da.from_array(a, chunks=(8, 9)).to_zarr(str(tmp_path / "in.zarr"))
    lazy = castwise.dask.apply("(a - mean(a)) * 2", da.from_zarr(str(tmp_path / "in.zarr")))
    lazy.to_zarr(str(tmp_path / "out.zarr"))
    out = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    assert out.chunks == (8, 9) and out.dtype == np.float32
    same(out[...], lazy.compute())


def test_examples_run():
    for module in (castwise.dask, _apply, _block):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed, module


def test_blocks_of_the_page_run():
    page = pathlib.Path(__file__).parents[2] / "docs" / "dask.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    assert len(blocks) > 5
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert test.examples and not runner.failures


# Processes.


def test_a_program_that_arrives_twice_is_compiled_once():
    x = da.from_array(random((40, 6)), chunks=(2, 6))
    f = castwise.compile("(a - mean(a)) / std(a) + 0.125")
    data = pickle.dumps(castwise.dask.apply(f, x))
    want = pickle.loads(data).compute()
    before = castwise.dask.stats()
    same(pickle.loads(data).compute(), want)
    again = castwise.dask.apply(f, da.from_array(random((90, 6), seed=1), chunks=(3, 6)))
    assert again.name == castwise.dask.apply(f, da.from_array(random((90, 6), seed=1), chunks=(3, 6))).name
    again.compute()
    after = castwise.dask.stats()
    assert after["compiles"] == before["compiles"] and after["runs"] > before["runs"]
    # Compiled objects in `map_blocks` too.
    g = pickle.dumps(castwise.compile("a * 3 + 0.0625"))
    pickle.loads(g)(np.ones(3))
    before = castwise.default_executor().stats["compiles"]
    pickle.loads(g)(np.ones(3))
    assert castwise.default_executor().stats["compiles"] == before


def test_errors_travel():
    for name in castwise.__all__:
        error = getattr(castwise, name)
        if isinstance(error, type) and issubclass(error, Exception):
            made = error.__new__(error, "text")
            made.__init__("text")
            again = pickle.loads(pickle.dumps(made))
            assert type(again) is error and str(again) == "text"


def test_versions_do_not_mix(monkeypatch):
    data = pickle.dumps(_block.Block("text", _block.ONE_THREAD))
    assert pickle.loads(data).text == "text"
    monkeypatch.setattr(_block, "__version__", "9.9.9")
    with pytest.raises(RuntimeError, match=r"castwise 0.* came to a process with castwise 9.9.9"):
        pickle.loads(data)


def test_an_executor_of_its_own_has_its_limits():
    f = castwise.compile("a + 1", executor=castwise.Executor(threads=1, max_bytes=100))
    x = da.ones(1000, chunks=500)
    with pytest.raises(castwise.LimitError):
        castwise.dask.apply(f, x).compute()


def _numbers(block_info=None, seed=0):
    """Numbers that follow from their positions: a block that is computed again is the same."""
    ((start, stop),) = block_info[None]["array-location"]
    n = np.arange(start, stop, dtype=np.uint32) * np.uint32(2654435761 + 2 * seed)
    return (n >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24) + np.float32(0.5)


def _digest(block):
    return np.frombuffer(hashlib.blake2b(block.tobytes(), digest_size=8).digest(), np.uint64)


def _large(elements, size):
    """A digest of each block of an elementwise result, and numbers that are reduced from it."""
    chunks = da.core.normalize_chunks(size, (elements,), dtype="f4")
    x, y = (da.map_blocks(_numbers, chunks=chunks, dtype="f4", meta=np.empty(0, "f4"), seed=seed) for seed in (0, 1))
    ratio = castwise.dask.apply("(x - y) / (x + y) + sqrt(x * y) * 0.5", x, y)
    digests = ratio.map_blocks(_digest, chunks=((1,) * ratio.numblocks[0],), dtype="u8", meta=np.empty(0, "u8"))
    numbers = castwise.dask.apply(
        lambda r: (r.sum(), r.mean(), castwise.std(r), castwise.amax(r), castwise.logsumexp(r)), ratio
    )
    return digests, numbers


def _warm():
    digests, numbers = _large(400, 20)
    dask.compute(digests, *numbers, scheduler="synchronous")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process")
def test_a_cluster_that_loses_a_worker_has_the_bits_of_one_process():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    digests, numbers = _large(100_000_000, 2_000_000)
    assert digests.numblocks == (50,)
    options = dict(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="1GiB")
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        client.run(_warm)
        compiled = {worker: stats["compiles"] for worker, stats in client.run(castwise.dask.stats).items()}
        assert len(compiled) == 2 and all(compiled.values())
        first = client.gather(client.compute([digests, *numbers]))
        # Of other sizes, on either worker, nothing is compiled.
        assert {w: s["compiles"] for w, s in client.run(castwise.dask.stats).items()} == compiled

        pids = client.run(os.getpid)
        blocks = client.compute([*digests.to_delayed().ravel(), *numbers])
        deadline = time.monotonic() + 300
        while sum(f.done() for f in blocks) < 10:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert not all(f.done() for f in blocks)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        found = client.gather(blocks)
        assert set(client.run(os.getpid).values()) != set(pids.values())
    same(np.concatenate(found[:50]), first[0])
    one = dask.compute(digests, *numbers, scheduler="synchronous")
    same(one[0], first[0])
    for lost, calm, alone in zip(found[50:], first[1:], one[1:]):
        same(lost, alone)
        same(calm, alone)
