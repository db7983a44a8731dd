"""Gradients of programs."""

import runpy
from pathlib import Path

import castwise
import ml_dtypes
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
    with pytest.raises(Exception, match="`view_as` has no gradient"):
        p.gradients([x.view_as("int32").view_as("float32").sum()], [x])
    with pytest.raises(TypeError):
        p.gradients([1.0], [x])


def test_a_curve_is_fitted():
    """The example, whose losses are beside those that PyTorch gave."""
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "curve_fit.py"))
    losses, recorded = example["train"](), example["RECORDED"]
    for step, want in recorded.items():
        assert losses[step - 1] == pytest.approx(want, rel=1e-3), step


def test_optimizers():
    step = castwise.Optimizer("adamw", weight_decay=0.0)
    assert step.states == ["exp_avg", "exp_avg_sq"]
    assert step.values(0.1, 1) == pytest.approx([0.1 / (1 - 0.9), (1 - 0.999) ** 0.5, 1.0])
    p = castwise.Program("torch")
    x = p.data("x", "bfloat16", [2])
    master, m, v = (p.data(name, "float32", [2]) for name in ("master", "m", "v"))
    numbers = [p.data(name, "float32", []) for name in step.numbers]
    loss, g = p.value_and_gradients((x * x).sum(), [x])
    (g,), norm = castwise.clip_by_norm([g], 1.0)
    (g,) = castwise.clip_by_value([g], 0.5)
    p.fetch(loss, norm, castwise.all_finite([g]), *step.update_master(x, master, g, [m, v], numbers))
    f = castwise.compile(p)
    one = np.ones(2, np.float32)
    named = dict(zip(step.numbers, map(np.float32, step.values(0.01, 1)), strict=True))
    loss, norm, fine, new, copy, *_ = f(
        x=one.astype(ml_dtypes.bfloat16), master=one, m=0 * one, v=0 * one, **named
    )
    assert (float(loss), bool(fine), new.dtype) == (2.0, True, ml_dtypes.bfloat16)
    np.testing.assert_allclose(copy, 0.99, rtol=1e-6)
    with pytest.raises(ValueError, match='no optimizer "newton"'):
        castwise.Optimizer("newton")
    with pytest.raises(ValueError, match="exp_avg_sq"):
        step.update(x, g, [m], numbers)
    with pytest.raises(TypeError):
        step.update(x, g, [1.0, 2.0], numbers)


def test_gradients_come_from_generators_too():
    p = castwise.Program("torch")
    given = [p.data(name, "float32", [1]) for name in "abc"]
    clipped, norm = castwise.clip_by_norm((g for g in given), 100.0)
    limited = castwise.clip_by_value((g for g in given), 2.5)
    p.fetch(norm, castwise.all_finite(g for g in given), *clipped, *limited)
    norm, fine, *rest = castwise.compile(p)(*(np.float32([n]) for n in (np.inf, 2, 3)))
    assert norm == np.inf and not fine and len(rest) == 6 and rest[3:] == [2.5, 2, 2.5]
    for call in (lambda g: castwise.clip_by_norm(g, 1.0), lambda g: castwise.clip_by_value(g, 1.0), castwise.all_finite):
        with pytest.raises(ValueError, match="no gradients"):
            call(iter([]))


def test_optimizers_refuse_what_is_not_theirs():
    for name, keyword, value in [
        ("sgd", "betas", (0.9, 0.99)), ("adam", "momentum", 0.0), ("adamw", "nesterov", False), ("adagrad", "alpha", 0.5),
        ("rmsprop", "amsgrad", True), ("lion", "eps", 1e-8), ("ema", "weight_decay", 0.1), ("ema", "maximize", True), ("sgd", "decay", 0.5),
    ]:  # fmt: skip
        with pytest.raises(TypeError, match=f"{name} takes no {keyword}"):
            castwise.Optimizer(name, **{keyword: value})
    for given in ({"nesterov": True}, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}):
        with pytest.raises(ValueError, match="nesterov"):
            castwise.Optimizer("sgd", **given)
    for dtype, text in [("i32", "floats, not i32"), (np.complex64, "floats, not c64"), ("nonsense", "no dtype `nonsense`")]:
        with pytest.raises(TypeError, match=text):
            castwise.Optimizer("adam", dtype)
    for dtype in (np.float32, np.dtype("f8"), "bfloat16", ml_dtypes.bfloat16):
        assert castwise.Optimizer("adam", dtype).states == ["exp_avg", "exp_avg_sq"]
    assert castwise.Optimizer("sgd", momentum=0.9, nesterov=True).states == ["momentum_buffer"]
    assert castwise.Optimizer("rmsprop", momentum=0.9, centered=True, maximize=True).states == ["square_avg", "grad_avg", "momentum_buffer"]


def test_gradients_of_what_is_moved():
    p = castwise.Program("torch")
    x = p.data("x", "float32", [4])
    index = p.constant(np.array([3, 0, 3]))
    y = castwise.take_along_dim(x, index, dim=0)
    g = p.gradients([(y * y).sum() + x.sort().cumsum(dim=0)[1:].sum()], [x])
    p.fetch(*g)
    out = castwise.compile(p)(np.array([1, 2, 3, 4], np.float32))
    np.testing.assert_array_equal(out, [2 + 3, 3, 2, 16 + 1])
