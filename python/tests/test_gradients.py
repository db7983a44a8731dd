"""Gradients of programs."""

import castwise
import numpy as np
import pytest


def test_gradients_of_a_regression():
    p = castwise.Program("torch")
    x, y = p.data("x", "float32", ["n"]), p.data("y", "float32", ["n"])
    w = p.data("w", "float32", [])
    d = x * w - y
    loss = (d * d).mean()
    (g,) = p.gradients([loss], [w])
    p.fetch(loss=loss, g=g)
    f = castwise.compile(p)
    xs = np.arange(4, dtype=np.float32)
    out = f(xs, 3 * xs, np.array(1, np.float32))
    assert out["g"] == np.float32(-2 * 2 * (xs * xs).mean())


def test_cotangents_and_refusals():
    p = castwise.Program("torch")
    x, c = p.data("x", "float32", [2]), p.data("c", "float32", [2])
    (g,) = p.gradients([x * x], [x], [c])
    p.fetch(g)
    out = castwise.compile(p)(np.array([1, 2], np.float32), np.array([1, 10], np.float32))
    np.testing.assert_array_equal(out, [2, 40])
    with pytest.raises(Exception, match="needs a cotangent"):
        p.gradients([x * x], [x])
    with pytest.raises(Exception, match="`median` has no gradient"):
        p.gradients([x.median()], [x])
    with pytest.raises(TypeError):
        p.gradients([1.0], [x])
