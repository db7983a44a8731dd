"""Calls after calls of one object: what the arguments of the last one were is kept, and must not be taken for others."""

import numpy as np
import pytest

import castwise

A = np.arange(12, dtype=np.float32).reshape(3, 4) + 1

ARGUMENTS = {
    "same": A,
    "other memory": A * 2,
    "transposed": np.ascontiguousarray(A.T).T,
    "stepped": np.repeat(A, 2, axis=1)[:, ::2],
    "reversed": A[::-1, ::-1],
    "expanded": np.broadcast_to(A[:1], (3, 4)),
    "foreign byte order": A.astype(">f4"),
    "f64": A.astype(np.float64),
    "i32 of the same size": A.astype(np.int32),
    "one more row": np.vstack([A, A[:1]]),
    "one dim": A.ravel(),
    "0-d": A[0, 0],
    "no elements": A[:0],
    "read-only": np.frombuffer(A.tobytes(), np.float32).reshape(3, 4),
    "a number": 2.5,
    "unaligned": np.frombuffer(b"x" + A.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4),
    "a memoryview": memoryview(A),
    "a record": np.zeros((3, 4), [("a", "f4"), ("b", "u1")])["a"],
}


@pytest.mark.parametrize("second", ARGUMENTS)
def test_arguments_are_not_taken_for_those_of_the_last_call(second):
    f = castwise.compile("x * 2 - y", rules="numpy")
    given = ARGUMENTS[second]
    want = np.asarray(given) * np.asarray(given).dtype.type(2) - A[0, 0]
    for _ in range(3):
        assert np.array_equal(f(A, A[0, 0]), A * 2 - A[0, 0])
        got = f(given, A[0, 0])
        assert np.array_equal(got, want) and np.asarray(got).shape == want.shape
        again = f(given, A[0, 0])
        assert again.dtype == got.dtype and np.array_equal(again, want)


def test_scalars_are_those_of_this_call():
    f = castwise.compile("x * k")
    for k in (2, 3, 3, 2.0, 0.0, -0.0, True, 2j):
        got, want = f(A, k), A * k
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_bytes_of_bools_are_looked_at_each_time():
    f = castwise.compile("x + y")
    true, odd = np.array([True, False]), np.array([2, 0], np.uint8).view(bool)
    for x in (true, odd, true, odd):
        assert f(x, true).tolist() == [True, False]


def test_arguments_that_are_not_read():
    f = castwise.compile(lambda x, unused: x + 1)
    for unused in (A, A[0], A.astype(int), 3):
        assert np.array_equal(f(A, unused), A + 1)


def test_names_and_mistakes_after_a_call():
    f = castwise.compile("x - y")
    assert np.array_equal(f(A, A), A * 0)
    assert np.array_equal(f(y=A, x=A * 2), A)
    for wrong in (lambda: f(A), lambda: f(A, A, A), lambda: f(A, A, y=A), lambda: f(A, None)):
        with pytest.raises(TypeError):
            wrong()
    assert np.array_equal(f(A, A * 2), -A)


def test_tensors_after_arrays_and_after_tensors():
    torch = pytest.importorskip("torch")
    f = castwise.compile("x * 2 + y")
    t = torch.from_numpy(A.copy())
    for x, y in ((A, A), (t, t), (t.T.contiguous().T, t), (t.double(), t), (t, t)):
        made = f(x, y)
        assert type(made) is type(x) and bool((made == x * 2 + y).all())
    with pytest.raises(TypeError, match="requires gradients"):
        f(t.clone().requires_grad_(), t)
    z = torch.randn(3, 8, dtype=torch.complex64)
    stepped, negated = torch.randn(3, 8, 2)[:, :, 1], z.conj().imag
    assert stepped.stride() == negated.stride() and negated.is_neg()
    for x in (stepped, negated, stepped, negated):
        assert torch.equal(f(x, x), x * 3)
    with pytest.raises(TypeError, match="sparse"):
        f(t.to_sparse(), t)
    with pytest.raises(TypeError, match="device meta"):
        f(t.to("meta"), t)
    with pytest.raises(ValueError, match="several libraries"):
        f(t, A)
    assert torch.equal(f(t, t), t * 3)
