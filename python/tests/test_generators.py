"""Generators and blocks as functions and methods of Python."""

import numpy as np
import pytest

import castwise

X = np.zeros((2, 3), np.float32)


def test_generators_have_the_shape_of_their_operand():
    assert castwise.index(X).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert castwise.index(X, dim=1).tolist() == castwise.index(X, -1).tolist() == [[0, 1, 2]] * 2
    assert castwise.arange_like(X, 10, step=-2, dtype="i16").tolist() == [[10, 8, 6], [4, 2, 0]]
    assert castwise.linspace(X, -1, 1, dim=1).tolist() == [[-1.0, 0.0, 1.0]] * 2
    assert castwise.bernoulli(X, 1.0, seed=1).all() and not castwise.bernoulli(X, p=0.0, seed=1).any()
    assert castwise.uniform(X, seed=7, dtype=np.float64).dtype == np.float64


def test_random_numbers_depend_on_seed_and_stream_alone():
    x = np.zeros(1000, np.float32)

    def f(x):
        return x.uniform(seed=7), x.normal(seed=7, stream=1), x.randint(1, 7, seed=7, dtype="u8"), x.bernoulli(0.5, seed=3)

    traced = castwise.compile(f)
    first, again = traced(x), traced(x + 1)
    eager = [castwise.uniform(x, seed=7), castwise.normal(x, seed=7, stream=1), castwise.randint(x, 1, 7, seed=7, dtype="u8"),
             castwise.bernoulli(x, 0.5, seed=3)]  # fmt: skip
    for a, b, c in zip(first, again, eager):
        assert a.dtype == c.dtype and a.tobytes() == b.tobytes() == c.tobytes()
    uniform, normal, dice, coins = first
    assert (uniform >= 0).all() and (uniform < 1).all() and abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.1
    assert dice.dtype == np.uint8 and set(dice.tolist()) == set(range(1, 7)) and 400 < coins.sum() < 600
    assert castwise.uniform(x, seed=8).tobytes() != uniform.tobytes()
    # The n-th random generator of an expression has stream n.
    assert castwise.evaluate("uniform(x, seed=7)").tobytes() == castwise.compile("uniform(x, seed=7)")(x).tobytes()


def test_a_program_has_generators():
    p = castwise.Program("torch")
    x = p.data("x", "bf16", ["n"])
    p.fetch(noisy=x + x.normal(seed=1, dtype="bf16"), where=castwise.index(x))
    text = str(p)
    assert "normal %x {seed = 1, stream = 0, dtype = bf16}" in text and castwise.Program.parse(text).infer() == p.infer()


def test_blocks():
    scale, w = np.float32([[1, 2], [3, 4]]), np.zeros((3, 4), np.float32)
    want = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4]]
    assert castwise.blocks(scale, w, size=2).tolist() == castwise.blocks(scale, like=w, size=(2, 2)).tolist() == want
    assert castwise.compile(lambda s, w: s.blocks(w, 2))(scale, w).tolist() == want


@pytest.mark.parametrize(
    "wrong, text",
    [
        (lambda: castwise.uniform(X), "needs `seed="),
        (lambda: castwise.randint(X, seed=1), "needs `low="),
        (lambda: castwise.uniform(X, 1), r"uniform\(x\) takes at most 1"),
        (lambda: castwise.randint(X, 1, 2, low=2, seed=3), "given twice"),
        (lambda: castwise.uniform(X, seed=1, p=2), "no argument `p`"),
        (lambda: castwise.uniform(1.0, seed=1), "no argument is an array"),
        (lambda: castwise.index(X, dim="x"), "is a number"),
        (lambda: castwise.blocks(X, X), "needs `size="),
        (lambda: castwise.uniform(seed=1), "takes 1 operands, not 0"),
    ],
)
def test_wrong_arguments_are_type_errors(wrong, text):
    with pytest.raises(TypeError, match=text):
        wrong()


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="an integer from 0"):
        castwise.uniform(X, seed=-1)
    with pytest.raises(castwise.ProgramError, match="probability 2"):
        castwise.bernoulli(X, 2.0, seed=1)
    with pytest.raises(castwise.ProgramError, match="no integer"):
        castwise.randint(X, 3, 3, seed=1)
    with pytest.raises(castwise.ProgramError, match="floats, not i32"):
        castwise.uniform(X, seed=1, dtype="i32")
