"""castwise.xp: array-api-strict as oracle, what it refuses, and the table of its functions."""

import importlib.util
import inspect
import itertools
import pathlib
import pickle

import numpy as np
import pytest

import castwise
from castwise import _xp

strict = pytest.importorskip("array_api_strict")

xp = castwise.xp("numpy")
ROOT = pathlib.Path(__file__).parents[2]
DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float32 float64 complex64 complex128".split()
#: Functions of these parts of the standard, by the number of their operands.
ELEMENTWISE = {
    name: sum(p.kind is p.POSITIONAL_ONLY for p in inspect.signature(f).parameters.values())
    for name, f in vars(strict._elementwise_functions).items()
    if name in strict.__all__ and inspect.isfunction(f) and f.__module__ == strict._elementwise_functions.__name__
}


def sample(dtype, start, n=6):
    """Numbers from 1 to 5, which no op takes to its limits."""
    return ((np.arange(start, start + n) % 5) + 1).astype(dtype)


def agree(got, want):
    """A result, or several, against those of the standard."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        return [agree(g, w) for g, w in zip(got, want)]
    want, got = np.from_dlpack(want), np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind in "fc":
        # The functions of both are within a few units of the last place; values are of the size 1.
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=8 * eps, atol=8 * eps)
    else:
        np.testing.assert_array_equal(got, want)


def both(call, *arrays):
    """Checks a call with both namespaces; returns whether the standard has a meaning for it."""
    try:
        want = call(strict, *map(strict.asarray, arrays))
    except TypeError:
        return False
    agree(call(xp, *map(xp.asarray, arrays)), want)
    return True


def test_there_are_functions_of_one_and_two_operands():
    assert len(ELEMENTWISE) > 60 and {*ELEMENTWISE.values()} == {1, 2}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name):
    seen = 0
    for dtypes in itertools.product(DTYPES, repeat=ELEMENTWISE[name]):
        arrays = [sample(d, 3 * i) for i, d in enumerate(dtypes)]
        if name in ("acos", "asin", "atanh") and arrays[0].dtype.kind in "fc":
            arrays = [arrays[0] / np.array(8, arrays[0].dtype)]
        seen += both(lambda xp, *x: getattr(xp, name)(*x), *arrays)
    assert seen


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [n for n, operands in ELEMENTWISE.items() if operands == 2])
def test_python_numbers_beside_arrays(name):
    for dtype, number in itertools.product(DTYPES, (True, 2, 0.5, 1 + 1j)):
        both(lambda xp, x: getattr(xp, name)(x, number), sample(dtype, 0))
        both(lambda xp, x: getattr(xp, name)(number, x), sample(dtype, 0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", "abs ceil floor trunc round sign signbit sqrt isnan isinf isfinite negative reciprocal".split())
def test_special_values(name):
    for dtype in ("float32", "float64"):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 0.5, -0.5, 1.5, 2.5], dtype)
        both(lambda xp, x: getattr(xp, name)(x), x)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="])
def test_operators(operator):
    call = eval(f"lambda xp, x, y: x {operator} y")
    backwards = eval(f"lambda xp, x: 2 {operator} x")
    assert sum(both(call, sample(a, 0), sample(b, 3)) for a, b in itertools.product(DTYPES, DTYPES)) >= 9
    assert sum(both(backwards, sample(a, 0)) for a in DTYPES)


REDUCTIONS = "sum prod mean var std max min all any argmax argmin count_nonzero".split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    seen = 0
    axes = (None, 0, -1) if name.startswith("arg") else (None, 0, -1, (0, 1), ())
    for dtype, axis, keepdims in itertools.product(DTYPES, axes, (False, True)):
        seen += both(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), sample(dtype, 0).reshape(2, 3))
    assert seen


X, I, B = sample("float64", 0, 12).reshape(3, 4), sample("int64", 1, 12).reshape(3, 4), sample("bool", 0, 12).reshape(3, 4)

CALLS = {
    "sum as": lambda xp, x: xp.sum(x, dtype=xp.float32, axis=1),
    "prod as": lambda xp, x: xp.prod(x, dtype=xp.complex128),
    "var corrected": lambda xp, x: xp.var(x, axis=0, correction=1),
    "std corrected": lambda xp, x: xp.std(x, correction=1.5, keepdims=True),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1),
    "cumulative_sum of one dim": lambda xp, x: xp.cumulative_sum(x[0, :]),
    "cumulative_sum with 0": lambda xp, x: xp.cumulative_sum(x, axis=-2, include_initial=True),
    "cumulative_prod with 1": lambda xp, x: xp.cumulative_prod(x, axis=-1, include_initial=True),
    "cumulative_prod as": lambda xp, x: xp.cumulative_prod(x, axis=0, dtype=xp.float32),
    "sort": lambda xp, x: xp.sort(x, axis=0),
    "sort descending": lambda xp, x: xp.sort(x, descending=True),
    "argsort": lambda xp, x: xp.argsort(x),
    "argsort descending": lambda xp, x: xp.argsort(x[:, :1], axis=0, descending=True),
    "diff": lambda xp, x: xp.diff(x),
    "diff twice": lambda xp, x: xp.diff(x, axis=0, n=2),
    "diff with ends": lambda xp, x: xp.diff(x, prepend=x[:, :1], append=x[:, 2:]),
    "vecdot": lambda xp, x: xp.vecdot(x, x[:1, :], axis=-1),
    "vecdot complex": lambda xp, x: xp.vecdot(x * 1j, x + 2j),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "where": lambda xp, x: xp.where(x > 2, x, 0.0),
    "clip": lambda xp, x: xp.clip(x, 2, 4),
    "clip by an array": lambda xp, x: xp.clip(x, max=x[0, :]),
    "astype": lambda xp, x: xp.astype(x, xp.int8),
    "concat": lambda xp, x: xp.concat([x, x[:1, :], x[:0, :]]),
    "concat mixed": lambda xp, x: xp.concat((x, xp.astype(x, xp.float32)), axis=-1),
    "concat flat": lambda xp, x: xp.concat([x, x[0, :]], axis=None),
    "stack": lambda xp, x: xp.stack([x, x + 1], axis=-1),
    "unstack": lambda xp, x: xp.unstack(x, axis=1),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=-1),
    "flip": lambda xp, x: xp.flip(x),
    "flip one": lambda xp, x: xp.flip(x, axis=1),
    "moveaxis": lambda xp, x: xp.moveaxis(x[None, ...], (0, 1), (-1, 0)),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "repeat": lambda xp, x: xp.repeat(x, 3),
    "repeat along": lambda xp, x: xp.repeat(x, 2, axis=1),
    "repeat nothing": lambda xp, x: xp.repeat(x, 0, axis=0),
    "reshape": lambda xp, x: xp.reshape(x, (2, -1)),
    "reshape of a view": lambda xp, x: xp.reshape(x.T, (12,)),
    "roll": lambda xp, x: xp.roll(x, 5),
    "roll along": lambda xp, x: xp.roll(x, (1, -6), axis=(0, 1)),
    "roll back": lambda xp, x: xp.roll(x, -1, axis=-1),
    "squeeze": lambda xp, x: xp.squeeze(x[None, :1, :], axis=(0, 1)),
    "take": lambda xp, x: xp.take(x, xp.asarray([2, 0, 0, -1]), axis=-1),
    "take of one dim": lambda xp, x: xp.take(x[0, :], xp.asarray([3, 1])),
    "take nothing": lambda xp, x: xp.take(x, xp.zeros(0, dtype=xp.int64), axis=0),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0),
    "take_along_axis for all": lambda xp, x: xp.take_along_axis(x, xp.asarray([[1, -1, 0]])),
    "take_along_axis of one": lambda xp, x: xp.take_along_axis(x[:1, :], xp.asarray([[1, 2], [0, 3]]), axis=1),
    "tile": lambda xp, x: xp.tile(x, (2, 1, 2)),
    "tile of fewer": lambda xp, x: xp.tile(x, (2,)),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 3, 4)),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x[:1, :], x[:, :1]),
    "meshgrid": lambda xp, x: xp.meshgrid(x[0, :], x[:, 0]),
    "meshgrid ij": lambda xp, x: xp.meshgrid(x[0, :], x[:, 0], x[1, :2], indexing="ij"),
    "tril": lambda xp, x: xp.tril(x),
    "triu above": lambda xp, x: xp.triu(x, k=1),
    "zeros_like": lambda xp, x: xp.zeros_like(x),
    "ones_like as": lambda xp, x: xp.ones_like(x, dtype=xp.uint8),
    "full_like": lambda xp, x: xp.full_like(x, 3),
    "full": lambda xp, x: [xp.full((2, 3), v) for v in (True, 1, 0.5, 1j)],
    "zeros": lambda xp, x: [xp.zeros(3), xp.zeros((2, 0), dtype=xp.int8), xp.zeros(())],
    "ones": lambda xp, x: [xp.ones((2, 2)), xp.ones(2, dtype=xp.complex64)],
    "arange": lambda xp, x: [xp.arange(5), xp.arange(1, 9, 3), xp.arange(0, -1, -0.25), xp.arange(3, dtype=xp.float32), xp.arange(3, 1)],
    "linspace": lambda xp, x: [xp.linspace(0, 1, 5), xp.linspace(1, -2, 4, endpoint=False), xp.linspace(2, 3, 1, dtype=xp.float32), xp.linspace(0, 1j, 3)],
    "eye": lambda xp, x: [xp.eye(3), xp.eye(2, 4, k=1), xp.eye(3, k=-1, dtype=xp.int32)],
    "asarray": lambda xp, x: [xp.asarray(v) for v in (True, 2, 0.5, 1j, [[1, 2], [3, 4]], [1, 2.5], [], [[], []], [True, False], (1, 2j), [2**63])],
    "asarray as": lambda xp, x: xp.asarray([[1.5, -2.25]], dtype=xp.float32),
    "from_dlpack": lambda xp, x: xp.from_dlpack(x),
    "integers": lambda xp, x: [x[0, 1], x[-1, -4], x[1, ...], x[..., 2]],
    "slices": lambda xp, x: [x[1:, ::2], x[:, -3:-1], x[3:, :], x[None, :, None, 0]],
    "backwards": lambda xp, x: [x[::-1, :], x[:, ::-2], x[2:0:-1, -1::-3], x[0:2:-1, :], x[:, 1::-1]],
    "elements": lambda xp, x: list(iter(x[0, :])),
    "transposes": lambda xp, x: [x.T, x.mT, abs(-x), +x],
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    assert both(CALLS[name], X)
    for x in (I, B, X.astype(np.float32)):
        both(CALLS[name], x)


def test_dtypes():
    assert (xp.float32, xp.bool, xp.complex128, xp.bfloat16) == ("f32", "bool", "c128", "bf16")
    dtypes = [*DTYPES, 1, 1.0, 1j, True]
    for a, b in itertools.product(dtypes, dtypes):
        of = lambda xp, d: getattr(xp, d) if isinstance(d, str) else d  # noqa: E731
        try:
            want = strict.result_type(of(strict, a), of(strict, b))
        except (TypeError, ValueError):
            continue
        assert getattr(xp, str(want).rpartition(".")[2].rstrip("'>")) == xp.result_type(of(xp, a), of(xp, b))
    for a, b in itertools.product(DTYPES, DTYPES):
        if strict.can_cast(getattr(strict, a), getattr(strict, b)):
            assert xp.can_cast(getattr(xp, a), getattr(xp, b))
            assert xp.can_cast(xp.ones(2, dtype=getattr(xp, a)), getattr(xp, b))
    assert not xp.can_cast(xp.ones(2), xp.int8) and xp.can_cast(np.dtype("i1"), "f16") and xp.can_cast(np.float32, "f64")
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
    for d, kind in itertools.product(DTYPES, kinds):
        assert xp.isdtype(getattr(xp, d), kind) == strict.isdtype(getattr(strict, d), kind)
    assert xp.isdtype("f32", ("bool", xp.float32)) and not xp.isdtype("f32", xp.float64)
    for d in DTYPES[-4:]:
        ours, theirs = xp.finfo(getattr(xp, d)), strict.finfo(getattr(strict, d))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, field) == getattr(theirs, field), (d, field)
    for d in DTYPES[1:9]:
        ours, theirs = xp.iinfo(getattr(xp, d)), strict.iinfo(getattr(strict, d))
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    with pytest.raises(TypeError, match="iinfo"):
        xp.finfo("i8")
    with pytest.raises(TypeError, match="takes integers"):
        xp.iinfo("f32")


def test_the_namespace_tells_what_it_has():
    info = xp.__array_namespace_info__()
    assert info.devices() == ("cpu",) and info.default_device() == "cpu"
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": None}
    assert {*info.dtypes()} == {*DTYPES} == {*strict.__array_namespace_info__().dtypes()}
    assert {*info.dtypes(kind=("bool", "real floating"))} == {"bool", "float32", "float64"}
    assert info.default_dtypes() == {"real floating": "f64", "complex floating": "c128", "integral": "i64", "indexing": "i64"}
    assert castwise.xp("torch").__array_namespace_info__().default_dtypes()["real floating"] == "f32"
    assert castwise.xp("paddle").__array_namespace_info__().default_dtypes()["integral"] == "i64"
    assert castwise.xp("jax").__array_namespace_info__().default_dtypes()["integral"] == "i32"
    assert (xp.e, xp.pi, xp.newaxis, xp.__array_api_version__) == (np.e, np.pi, None, "2025.12")
    assert {"exp", "float32", "asarray", "gelu", "softmax", "uniform"} <= {*dir(xp)}
    x = xp.ones(2)
    assert x.__array_namespace__() is xp is castwise.xp("numpy") and x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="2030.01"):
        x.__array_namespace__(api_version="2030.01")
    with pytest.raises(ValueError, match="unknown rules"):
        castwise.xp("nonsense")


def test_arrays_keep_their_rules():
    for rules, dtype in {"torch": "f32", "numpy": "f64", "jax": "f32", "jax,x64": "f64", "paddle": "f32"}.items():
        space = castwise.xp(rules)
        x = space.asarray([1, 2], dtype=space.int32) * 0.5
        assert (x.dtype, x.rules, space.mean(x).rules) == (dtype, rules, rules)
        assert castwise.exp(x).rules == rules and x.sum().ndim == 0
    torch = castwise.xp("torch")
    assert torch.asarray(xp.ones(2)).rules == "torch"
    for call in (lambda: xp.ones(2) + torch.ones(2), lambda: xp.exp(torch.ones(2)), lambda: xp.sum(torch.ones(2))):
        with pytest.raises(TypeError, match="rules"):
            call()


def test_bits_are_those_of_compiled_programs():
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    f = lambda x: castwise.tanh(x) * 0.5 + x  # noqa: E731
    for rules in ("torch", "numpy", "jax", "paddle"):
        got = np.asarray(f(castwise.xp(rules).asarray(x)))
        assert got.tobytes() == castwise.compile(f, rules=rules)(x).tobytes()


def test_memory_of_others_is_never_shared():
    own = np.ones(3)
    x = xp.asarray(own)
    own[:] = 5
    assert np.asarray(x).tolist() == [1, 1, 1]
    for out in (np.asarray(x), np.from_dlpack(x)):
        out[:] = 7
        assert np.asarray(x).tolist() == [1, 1, 1]
    wide = np.asarray(xp.broadcast_to(xp.ones(1), (2, 3)))
    wide[0, 0] = 3
    assert wide.sum() == 8
    for call in (lambda: xp.asarray(own, copy=False), lambda: np.array(x, copy=False)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)


def test_numbers_and_texts():
    assert (bool(xp.asarray(2)), int(xp.asarray(2.5)), float(xp.asarray(3)), complex(xp.asarray(1j))) == (True, 2, 3.0, 1j)
    assert int(xp.asarray(2**64 - 1, dtype=xp.uint64)) == 2**64 - 1 and [1, 2, 3][xp.asarray(1)] == 2
    assert float(castwise.xp("torch").asarray(0.1, dtype="bf16")) == 0.10009765625
    assert len(xp.ones((2, 3))) == 2 and [float(x) for x in xp.arange(2)] == [0.0, 1.0]
    assert repr(xp.asarray([1, 2])) == "castwise.Array([1 2], i64, rules='numpy')"
    x = castwise.xp("jax").asarray([[1, 2]])
    again = pickle.loads(pickle.dumps(x))
    assert (again.dtype, again.shape, again.rules) == ("i32", (1, 2), "jax") and pickle.loads(pickle.dumps(xp)) is xp
    assert x.to_device("cpu") is x
    y = z = xp.ones(2)
    y += 1
    assert np.asarray(z).tolist() == [1, 1] and np.asarray(y).tolist() == [2, 2]


def test_what_is_refused():
    x = xp.ones((2, 3))
    for call, error, text in [
        (lambda: bool(x), TypeError, "no number"),
        (lambda: float(xp.asarray(1j)), TypeError, "complex"),
        (lambda: [1][xp.asarray(0.5)], TypeError, "no index"),
        (lambda: x.__setitem__(0, 1), TypeError, "does not change"),
        (lambda: x[x > 0], TypeError, "index"),
        (lambda: x[True], TypeError, "bool"),
        (lambda: x[5], IndexError, "outside"),
        (lambda: x[0, 0, 0], IndexError, "3 dims"),
        (lambda: x[::0], ValueError, "step 0"),
        (lambda: x @ x, TypeError, "unsupported operand"),
        (lambda: x + np.ones(3), TypeError, "asarray"),
        (lambda: np.ones(3) + x, TypeError, "asarray"),
        (lambda: xp.exp(np.ones(3)), TypeError, "asarray"),
        (lambda: xp.exp(2.0), TypeError, "asarray"),
        (lambda: xp.concat([x, np.ones(3)]), TypeError, "asarray"),
        (lambda: xp.concat([]), TypeError, "concat"),
        (lambda: xp.concat([x, xp.ones((3, 2))]), ValueError, "one shape"),
        (lambda: xp.stack([x, xp.ones(3)]), ValueError, "one shape"),
        (lambda: xp.repeat(x, xp.asarray([1, 2]), axis=0), TypeError, "depends on values"),
        (lambda: xp.asarray([[1], [1, 2]]), ValueError, "lengths"),
        (lambda: xp.asarray(["a"]), TypeError, "str"),
        (lambda: xp.asarray([1, 300], dtype=xp.uint8), OverflowError, "300 is outside of u8"),
        (lambda: xp.full(2, -1, dtype=xp.uint8), OverflowError, "-1 is outside of u8"),
        (lambda: castwise.xp("jax").asarray(-(2**40)), OverflowError, "i32"),
        (lambda: xp.asarray([2**64]), OverflowError, "outside of i64"),
        (lambda: xp.asarray(1, device="gpu"), ValueError, "cpu"),
        (lambda: x.to_device("gpu"), ValueError, "cpu"),
        (lambda: xp.zeros((-1,)), ValueError, "negative"),
        (lambda: xp.zeros((1 << 40, 1 << 40)), castwise.Error, "elements"),
        (lambda: xp.broadcast_to(x, (3, 2)), ValueError, "broadcast"),
        (lambda: xp.tril(xp.ones(2)), ValueError, "two dims"),
        (lambda: xp.arange(0, 1, 0), castwise.Error, "arange"),
        (lambda: xp.searchsorted, AttributeError, "sorted values"),
        (lambda: xp.take(xp.ones((2, 3)), xp.asarray([0])), ValueError, "needs an axis"),
        (lambda: xp.take(xp.ones(3), xp.asarray([3])), castwise.Error, "3"),
        (lambda: xp.take(xp.ones(3), xp.asarray([0.0])), castwise.Error, "integer"),
        (lambda: xp.take_along_axis(xp.ones(3), xp.asarray([[0]])), ValueError, "of 1 dims"),
        (lambda: xp.linalg, AttributeError, "matrices"),
        (lambda: xp.nonsense, AttributeError, "nonsense"),
        (lambda: castwise.compile("a + 1")(x), TypeError, "rules of its own"),
        (lambda: len(xp.asarray(1)), TypeError, "no length"),
        (lambda: xp.sum(x, axis=7), castwise.Error, "dim"),
        (lambda: xp.repeat(x, -1), ValueError, "negative"),
        (lambda: xp.tile(x, (2, -1)), ValueError, "negative"),
        (lambda: xp.broadcast_to(x, (-1, 2, 3)), ValueError, "negative"),
        (lambda: xp.broadcast_to(x, (2, -1)), ValueError, "negative"),
        (lambda: xp.broadcast_shapes((2,), (-1, 2)), ValueError, "negative"),
        (lambda: xp.diff(x, n=-1), ValueError, "negative"),
        (lambda: xp.can_cast(np.ones(3), xp.float64), TypeError, "asarray"),
        (lambda: xp.can_cast(castwise.xp("torch").ones(3), xp.float64), TypeError, "rules 'torch'"),
        (lambda: xp.can_cast("nonsense", xp.float64), TypeError, "no dtype `nonsense`"),
        (lambda: xp.can_cast(x, x), TypeError, "no dtype"),
        (lambda: xp.result_type(castwise.xp("torch").ones(3), "f32"), TypeError, "rules 'torch'"),
        (lambda: xp.meshgrid(x, x[0, :]), ValueError, "one dim, not of 2"),
        (lambda: xp.meshgrid(xp.asarray(1)), ValueError, "one dim, not of 0"),
    ]:
        with pytest.raises(error, match=text):
            call()


#: Functions of the shape of an array, which are no ops.
VIEWS = {
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2)),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=0),
    "flip": lambda xp, x: xp.flip(x),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
    "meshgrid": lambda xp, x: xp.meshgrid(x[0], x[0]),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "reshape": lambda xp, x: xp.reshape(x, (4,)),
    "squeeze": lambda xp, x: xp.squeeze(x[:1], axis=0),
    "unstack": lambda xp, x: xp.unstack(x),
    "roll": lambda xp, x: xp.roll(x, 1),
    "tril": lambda xp, x: xp.tril(x),
    "triu": lambda xp, x: xp.triu(x),
    "full_like": lambda xp, x: xp.full_like(x, 7),
    "zeros_like": lambda xp, x: xp.zeros_like(x),
    "ones_like": lambda xp, x: xp.ones_like(x),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_take_arrays_of_their_namespace(name):
    VIEWS[name](xp, xp.ones((2, 2)))
    with pytest.raises(TypeError, match=f"{name} takes arrays of castwise.xp.*asarray"):
        VIEWS[name](xp, np.ones((2, 2)))
    with pytest.raises(TypeError, match=f"{name} of castwise.xp.* was given an array with the rules 'torch'"):
        VIEWS[name](xp, castwise.xp("torch").ones((2, 2)))


def test_the_table_of_the_docs_is_that_of_the_namespace():
    spec = importlib.util.spec_from_file_location("array_api_table", ROOT / "python/tools/array_api_table.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text().partition(tool.MARK)[2] == tool.table(), "python python/tools/array_api_table.py --write"
    for name in _xp.REFUSED:
        with pytest.raises(AttributeError, match=_xp.REFUSED[name][:30]):
            getattr(xp, name)


def test_array_api_compat_knows_the_arrays():
    compat = pytest.importorskip("array_api_compat")
    x = xp.asarray([1.0, 2.0])
    assert compat.array_namespace(x, x) is xp and compat.is_array_api_obj(x)
    assert compat.device(x) == "cpu" and compat.to_device(x, "cpu") is x and compat.size(x) == 2
    assert not compat.is_lazy_array(x) and not compat.is_numpy_array(x) and not compat.is_numpy_namespace(xp)
    with pytest.raises(TypeError):
        compat.array_namespace(x, np.ones(2))


#: Functions of array-api-extra on arrays of castwise.
EXTRA = {
    "atleast_nd": lambda xpx, x: xpx.atleast_nd(x, ndim=3),
    "kron": lambda xpx, x: xpx.kron(x, x),
    "sinc": lambda xpx, x: xpx.sinc(x),
    "isclose": lambda xpx, x: xpx.isclose(x, x + 1e-12),
    "nunique": lambda xpx, x: x + float(xpx.nunique(x)),
    "default_dtype": lambda xpx, x: x.__array_namespace__().zeros(2, dtype=xpx.default_dtype(x.__array_namespace__())),
}
#: Those that need what castwise has not.
EXTRA_REFUSED = {
    "pad": lambda xpx, x: xpx.pad(x, 1),
    "cov": lambda xpx, x: xpx.cov(x),
    "create_diagonal": lambda xpx, x: xpx.create_diagonal(x),
    "setdiff1d": lambda xpx, x: xpx.setdiff1d(x, x),
}


@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra_runs(name):
    xpx = pytest.importorskip("array_api_extra")
    values = [0.5, 1.5, 2.0]
    agree(EXTRA[name](xpx, xp.asarray(values)), EXTRA[name](xpx, strict.asarray(values)))


@pytest.mark.parametrize("name", EXTRA_REFUSED)
def test_array_api_extra_says_what_is_missing(name):
    xpx = pytest.importorskip("array_api_extra")
    with pytest.raises((TypeError, AttributeError), match="castwise|does not change|index"):
        EXTRA_REFUSED[name](xpx, xp.asarray([0.5, 1.5, 2.0]))
