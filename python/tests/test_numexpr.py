"""The expressions and functions of numexpr's user guide. `expected` was recorded with numexpr 2.14.2 and NumPy 2.4.6; the
differences are those that README.md lists."""

import json
import pathlib

import numpy as np
import pytest

import castwise

RECORDED = json.loads(pathlib.Path(__file__).with_name("numexpr.json").read_text())


def arguments():
    a, b = np.array([1.5, -2.25, 3.0]), np.array([2.0, 4.0, -0.5])
    return {
        "a": a, "b": b, "i": np.array([7, -8, 9]), "j": np.array([2, 3, 4]), "p": a > 0, "q": b > 0, "c": a + 1j * b,
        "f": np.float32([1.5, -2.25, 3.0]), "m": np.arange(6.0).reshape(2, 3), "u": np.array([0.1, 0.5, 0.9]),
    }  # fmt: skip


@pytest.mark.parametrize("expression", RECORDED["equal"])
def test_what_both_have_is_equal(expression):
    dtype, values = RECORDED["equal"][expression]
    want = np.array([complex(v) for v in np.ravel(values)]).reshape(np.shape(values))
    got = castwise.evaluate(expression, arguments())
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(complex), want, rtol=1e-15)


@pytest.mark.parametrize("expression", RECORDED["refused"])
def test_what_castwise_lacks_is_refused(expression):
    with pytest.raises(castwise.ProgramError):
        castwise.evaluate(expression, arguments())


def test_the_session_of_numexprs_readme():
    a = np.arange(1e4)
    b = np.arange(1e4)
    np.testing.assert_array_equal(castwise.evaluate("a + 1"), a + 1)
    np.testing.assert_array_equal(castwise.evaluate("a * b - 4.1 * a > 2.5 * b"), a * b - 4.1 * a > 2.5 * b)
    with np.errstate(invalid="ignore"):
        want = np.sin(a) + np.arcsinh(a / b)
    # The terms cancel: an ulp of each.
    np.testing.assert_allclose(castwise.evaluate("sin(a) + arcsinh(a/b)"), want, rtol=0, atol=4e-16, equal_nan=True)
    # That of the user guide: names of other scopes, and the last expression again.
    c = castwise.evaluate("2*a + 3*b", local_dict={"a": a}, global_dict={"b": b + 1})
    np.testing.assert_array_equal(c, 2 * a + 3 * (b + 1))
    np.testing.assert_array_equal(castwise.re_evaluate({"a": a[:3], "b": b[:3]}), 5 * b[:3])
    # Strings are no elements of castwise.
    with pytest.raises(TypeError, match="castwise lacks"):
        castwise.evaluate("s == s", {"s": np.array([b"abba", b"abbb", b"abbcdef"])})


def test_dtypes_are_castwises():
    a = arguments()
    assert castwise.evaluate("2.0 * f", a).dtype == np.float32 and castwise.evaluate("abs(c)", a).dtype == np.float64
    half = {"h": np.ones(2, np.float16), "s": np.ones(2, np.uint8)}
    assert castwise.evaluate("h * 2", half).dtype == np.float16 and castwise.evaluate("s + s", half).dtype == np.uint8


def test_arguments_of_evaluate():
    a, out = np.arange(3.0), np.zeros(3)
    assert castwise.evaluate("a + 1", out=out) is out and out.tolist() == [1, 2, 3]
    assert castwise.evaluate("a + 1", order="C", casting="same_kind", sanitize=False).tolist() == [1, 2, 3]
    assert castwise.evaluate("a + b", global_dict={"b": 2}).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="row-major"):
        castwise.evaluate("a + 1", order="F")
    with pytest.raises(ValueError, match="write a cast"):
        castwise.evaluate("a + 1", casting="unsafe")
    with pytest.raises(castwise.Error):
        castwise.evaluate("a + 1", out=np.zeros(3, np.int64))
    with pytest.raises(TypeError):
        castwise.evaluate("a + 1", ex_uses_vml=True)
    assert castwise.re_evaluate({"a": np.ones(2)}).tolist() == [2, 2]
