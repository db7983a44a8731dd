"""Composites as functions and methods, and the constants of expressions."""

import math
import pickle

import numpy as np
import pytest

import castwise


def test_functions_and_methods_are_the_same():
    x = np.float32([[1, 2, 3], [4, 5, 7]])
    want = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    assert np.allclose(castwise.softmax(x), want) and castwise.softmax(x).dtype == np.float32
    traced = castwise.compile(lambda x: (x.softmax(-1), x.softmax(dim=-1), castwise.softmax(x)))(x)
    assert all(t.tobytes() == castwise.softmax(x, axis=-1).tobytes() for t in traced)
    bias = np.ones(3, np.float32)
    normed = castwise.compile(lambda x, b: castwise.layer_norm(x, bias=b, eps=1e-6))(x, bias)
    assert np.allclose(normed, (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + 1, atol=1e-5)
    assert castwise.isclose(x, x + np.float32(1e-9), rtol=0).all()
    assert castwise.nan_to_num(np.float32([np.nan, np.inf]), posinf=2).tolist() == [0, 2]
    assert set(castwise.composites) <= set(dir(castwise))
    assert pickle.loads(pickle.dumps(castwise.rms_norm)).operands == ["x", "weight"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: castwise.softmax(x, p=1),
        lambda x: castwise.softmax(),
        lambda x: castwise.isclose(x),
        lambda x: castwise.dot(x, x, x),
        lambda x: castwise.softmax(x, x=x),
        lambda x: castwise.softmax(1.0),
    ],
)
def test_wrong_arguments_are_type_errors(wrong):
    with pytest.raises(TypeError):
        wrong(np.ones(3, np.float32))


def test_dims_by_position_as_in_pytorch():
    x, index = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1, 0, 1]])
    want = np.take_along_axis(x, index, 0)
    np.testing.assert_array_equal(castwise.take_along_dim(x, index, 0), want)
    np.testing.assert_array_equal(castwise.take_along_dim(x, index, dim=0), want)
    np.testing.assert_array_equal(castwise.cosine_similarity(x, x + 1, 0), castwise.cosine_similarity(x, x + 1, dim=0))
    for wrong in (
        lambda: castwise.take_along_dim(x, index, 0, 1),
        lambda: castwise.take_along_dim(x, index, 0, dim=0),
        lambda: castwise.take_along_dim(x, index, x),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_refusals_name_the_composite():
    with pytest.raises(castwise.ProgramError, match="`dot`"):
        castwise.dot(np.ones((2, 2)), np.ones((2, 2)))


def test_constants_give_way_to_what_is_given():
    assert (castwise.pi, castwise.e, castwise.inf) == (math.pi, math.e, math.inf) and math.isnan(castwise.nan)
    f = castwise.compile("pi * x")
    assert f(np.ones(1)) == f(x=np.ones(1)) == math.pi
    assert f(np.full(1, 2.0), np.full(1, 5.0)) == f(np.full(1, 5.0), pi=2.0) == 10
    x = np.ones(1)
    assert castwise.evaluate("x * e") == math.e
    e = 2.0
    assert castwise.evaluate("x * e") == 2
    with pytest.raises(TypeError, match="`x` is missing"):
        f()
