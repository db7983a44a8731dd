"""array-api-strict as oracle: dtypes and values of the ops that the standard has too, under NumPy's rules."""

import itertools

import numpy as np
import pytest

import castwise

xp = pytest.importorskip("array_api_strict")

DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float32 float64 complex64 complex128".split()
UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert:bitwise_not ceil conj cos cosh exp expm1 floor imag isfinite isinf "
    "isnan log log10 log1p log2 logical_not negative:neg positive real reciprocal round sign sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide:div equal:eq "
    "floor_divide greater:gt greater_equal:ge hypot less:lt less_equal:le logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply:mul not_equal:ne pow remainder subtract:sub"
).split()
REDUCTIONS = "sum prod mean max:amax min:amin any all".split()


def sample(dtype, start):
    """Numbers from 1 to 5, which no op takes to its limits; functions with a domain get their part of it."""
    return ((np.arange(start, start + 6) % 5) + 1).astype(dtype)


def agree(got, want):
    want = np.from_dlpack(want)
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind in "fc":
        # The functions of both are within a few units of the last place; values are of the size 1.
        np.testing.assert_allclose(got, want, rtol=8 * np.finfo(want.dtype).eps, atol=8 * np.finfo(want.dtype).eps)
    else:
        np.testing.assert_array_equal(got, want)


def standard(call):
    """What the standard says; ``None`` where it says nothing."""
    try:
        return call()
    except TypeError:
        return None


@pytest.mark.filterwarnings("ignore:.*invalid value:RuntimeWarning")
@pytest.mark.parametrize("op", UNARY)
def test_ops_of_one_operand(op):
    theirs, _, ours = op.partition(":")
    seen = 0
    for dtype in DTYPES:
        x = sample(dtype, 0)
        if theirs in ("acos", "asin", "atanh") and x.dtype.kind in "fc":
            x = x / np.array(8, x.dtype)
        want = standard(lambda: getattr(xp, theirs)(xp.asarray(x)))
        if want is not None:
            agree(getattr(castwise, ours or theirs)(x), want)
            seen += 1
    assert seen


@pytest.mark.parametrize("op", BINARY)
def test_ops_of_two_operands(op):
    theirs, _, ours = op.partition(":")
    seen = 0
    for a, b in itertools.product(DTYPES, DTYPES):
        x, y = sample(a, 0), sample(b, 3)
        want = standard(lambda: getattr(xp, theirs)(xp.asarray(x), xp.asarray(y)))
        if want is not None:
            agree(castwise.compile(lambda x, y: getattr(castwise, ours or theirs)(x, y))(x, y), want)
            seen += 1
    assert seen


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op):
    theirs, _, ours = op.partition(":")
    seen = 0
    for dtype in DTYPES:
        x = sample(dtype, 0).reshape(2, 3)
        for axis in (None, 0, -1):
            want = standard(lambda: getattr(xp, theirs)(xp.asarray(x), axis=axis))
            if want is not None:
                agree(getattr(castwise, ours or theirs)(x, axis=axis), want)
                seen += 1
    assert seen


def test_promotion_of_two_dtypes():
    for a, b in itertools.product(DTYPES, DTYPES):
        want = standard(lambda: xp.result_type(getattr(xp, a), getattr(xp, b)))
        if want is not None:
            found = castwise.compile(lambda x, y: castwise.where(x == x, x, y))
            got = found(sample(a, 0), sample(b, 0)).dtype
            assert got == np.dtype(str(want).rpartition(".")[2].rstrip("'>"))
