"""Executors, what is refused and described, views and NumPy's functions of a Var, tables for notebooks, pickling."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import castwise


def test_executors_have_limits_and_counts():
    own = castwise.Executor(threads=1, max_bytes=1000)
    f = castwise.compile("x * 2", executor=own)
    assert f.executor is own and f(np.ones(5)).tolist() == [2.0] * 5
    assert f.stats["runs"] == own.stats["runs"] == 1 and f.stats["programs"] == 1
    with pytest.raises(castwise.LimitError, match="1000"):
        f(np.ones(1000))
    late = castwise.compile("+".join(["sin(x)"] * 50), executor=castwise.Executor(time_limit=0.0))
    with pytest.raises(castwise.LimitError):
        late(np.ones(1 << 16))
    assert castwise.compile("x").executor is castwise.default_executor()
    for wrong in ({"threads": 0}, {"threads": 1 << 20}, {"time_limit": -1.0}, {"time_limit": float("nan")}):
        with pytest.raises(ValueError):
            castwise.Executor(**wrong)


def test_threads_of_the_process_can_be_changed():
    x, f = np.random.default_rng(0).normal(size=1 << 18).astype(np.float32), castwise.compile("sum(sin(x))")
    before, first = castwise.set_num_threads(1), f(x)
    assert castwise.get_num_threads() == 1 and castwise.set_num_threads(3) == 1
    assert f(x).tobytes() == first.tobytes()
    castwise.set_num_threads(before)
    with pytest.raises(ValueError, match="from 1 to 65536"):
        castwise.set_num_threads(0)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_child_forked_while_threads_run_has_threads_of_its_own():
    script = """
import os, signal, threading, warnings, numpy as np, castwise
warnings.simplefilter("ignore", DeprecationWarning)
f, x, stop = castwise.compile("sin(x) * 2 + sum(x)"), np.ones(1 << 18), []
def work():
    while not stop:
        f(x)
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
want = f(x).tobytes()
for _ in range(8):
    child = os.fork()
    if not child:
        signal.alarm(30)
        os._exit(0 if all(f(x).tobytes() == want for _ in range(3)) else 1)
    print(os.waitpid(child, 0)[1])
stop.append(1)
[t.join() for t in threads]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0"] * 8, done.stderr


def test_deny_raises_all_losses_with_their_places():
    u = np.ones(3, np.uint8)
    f = castwise.compile("(nir - red) / (nir + red)", deny="wrap")
    with pytest.raises(castwise.ProgramError, match="integers may wrap in 2 places") as e:
        f(u, u)
    assert [(d.kind, d.range) for d in e.value.diagnostics] == [("Wraps", (1, 10)), ("Wraps", (15, 24))]
    assert "cast(nir, i16)" in e.value.diagnostics[0].help
    assert f(u * 1.0, u).tolist() == [0.0] * 3

    def mixed(a, b):
        return 0.7 * a + b

    line = mixed.__code__.co_firstlineno + 1
    h, s = np.ones(3, np.float16), np.ones(3, np.float32)
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile(mixed, deny="lossy")(h, s)
    assert [(d.kind, d.file, d.line) for d in e.value.diagnostics] == [("Rounds", __file__, line)]
    assert castwise.compile(mixed, deny="range")(h, s).dtype == np.float32
    big = np.array([1 << 60])
    with pytest.raises(castwise.ProgramError):
        castwise.compile("n + h", rules="torch", deny="range")(big, h[:1])
    # A cast that is written is accepted.
    assert castwise.compile("cast(n, f16) + h", rules="torch", deny="lossy")(big // (1 << 58), h[:1]).dtype == np.float16
    with pytest.raises(ValueError, match="lossy, range or wrap"):
        castwise.compile("a", deny="all")


def test_what_a_call_would_be():
    f = castwise.compile("a * 2 + b")
    assert f.result_type(np.int64, np.float32) == "f64" and f.result_type(np.ones(2, np.float16), b=1) == "f16"
    assert castwise.compile("a + b", rules="torch").result_type("i64", "f32[]") == "f32"
    assert castwise.compile(lambda a: (a + 1, a > 0)).result_type(np.float16) == ("f16", "bool")
    assert castwise.compile(lambda a: {"s": a.sum()}).result_type(np.int8) == {"s": "i64"}
    assert "result f32" in castwise.compile("a + b", rules="torch").explain("i64", "f32[3, n]")
    assert "cast" in castwise.compile("a + b", rules="torch").text("i64", "f32")
    assert "kernel {" in f.kernels(np.float32, np.float32) and "mul.f32" in f.kernels(np.float32, np.float32)
    for call, error in [
        (lambda: f.result_type("f32", "f32"), "no argument is an array"),
        (lambda: f.result_type(np.float32), "`b` is missing"),
        (lambda: f.result_type(np.float32, a=1), "given twice"),
        (lambda: f.result_type(1, 2, 3), "3 arguments"),
        (lambda: f.result_type(np.datetime64, 1), "no dtype"),
    ]:
        with pytest.raises(TypeError, match=error):
            call()


def test_programs_keep_their_rules():
    p = castwise.Program("torch")
    p.fetch(p.data("x", "i64", ["n"]) * 0.5)
    assert castwise.compile(p)(np.ones(2, np.int64)).dtype == np.float32
    with pytest.raises(ValueError, match="with_rules"):
        castwise.compile(p, rules="numpy")
    assert castwise.compile(p.with_rules("numpy"))(np.ones(2, np.int64)).dtype == np.float64


X = np.arange(24.0).reshape(2, 3, 4)

FUNCTIONS = {
    "T": lambda x: x.T + 0,
    "mT": lambda x: x.mT + 0,
    "index": lambda x: x[:, 1:, ::2] * 1,
    "new axis": lambda x: x[None, ..., None, :2] * 1,
    "backwards": lambda x: x[..., ::-1] * 1,
    "sum": lambda x: np.sum(x, axis=1),
    "sum of two": lambda x: np.sum(x, axis=(0, -1), keepdims=True),
    "sum as f32": lambda x: np.sum(x, dtype=np.float32),
    "mean": lambda x: np.mean(x, -1),
    "prod": lambda x: np.prod(x + 1, axis=2),
    "var": lambda x: np.var(x, axis=-1, ddof=1),
    "std of two": lambda x: np.std(x, axis=(0, 2), keepdims=True),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumprod as f32": lambda x: np.cumprod(x + 1, -1, np.float32),
    "argmax": lambda x: np.argmax(x % 7, axis=1),
    "argmin of all": lambda x: np.argmin((x - 5) ** 2),
    "count_nonzero": lambda x: np.count_nonzero(x % 3, axis=(0, 1)),
    "nansum": lambda x: np.nansum(np.where(x > 4, x, np.nan), axis=0),
    "nanmean": lambda x: np.nanmean(np.where(x > 4, x, np.nan)),
    "median": lambda x: np.median(x % 7, axis=(0, 2)),
    "nanmedian": lambda x: np.nanmedian(np.where(x > 4, x, np.nan), axis=0, keepdims=True),
    "quantile": lambda x: np.quantile(x % 5, 0.3, axis=1),
    "quantile above": lambda x: np.quantile(x, 0.3, method="higher", axis=-1),
    "nanquantile": lambda x: np.nanquantile(np.where(x > 4, x, np.nan), 0.9),
    "percentile": lambda x: np.percentile(x % 11, 25, axis=2),
    "sort": lambda x: np.sort(x % 7, axis=1),
    "argsort": lambda x: np.argsort(x % 3, kind="stable"),
    "rank": lambda x: np.argsort(np.argsort(x % 5, axis=0, stable=True), axis=0),
    "max": lambda x: np.max(x, axis=0),
    "amin": lambda x: np.amin(x),
    "any": lambda x: np.any(x > 22, axis=-1),
    "all": lambda x: np.all(x >= 0),
    "where": lambda x: np.where(x > 3, x, -x),
    "clip": lambda x: np.clip(x, 2, 7),
    "clip above": lambda x: np.clip(x, None, 7),
    "round": lambda x: np.round(x / 3),
    "real": lambda x: np.real(x * 1j),
    "transpose": lambda x: np.transpose(x, (1, 2, 0)) + 0,
    "swapaxes": lambda x: np.swapaxes(x, 0, -1) + 0,
    "moveaxis": lambda x: np.moveaxis(x, 0, -1) + 0,
    "expand_dims": lambda x: np.expand_dims(x, (0, -1)) + 0,
    "squeeze": lambda x: np.squeeze(x[None, :], 0) + 0,
    "broadcast_to": lambda x: np.broadcast_to(x, (5, 2, 3, 4)) + 0,
    "flip": lambda x: np.flip(x, 1) + 0,
    "ufunc": lambda x: np.hypot(x, 2) + np.float32(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpys_functions_of_a_var_are_numpys(name):
    f = FUNCTIONS[name]
    got, want = castwise.compile(f)(X), f(X)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-15)


def test_numbers_and_dims_by_position_come_as_in_pytorch_and_numpy():
    x = np.array([[3, -4, 0], [1, 2, -2]], np.float32)
    cases = {
        "norm of all": (lambda x: castwise.norm(x, 1), np.linalg.norm(x.ravel(), 1)),
        "norm": (lambda x: castwise.norm(x, 1, -1), np.linalg.norm(x, 1, -1)),
        "quantile": (lambda x: castwise.quantile(x, 0.25, 0), np.quantile(x, 0.25, 0)),
        "median of all": (lambda x: castwise.nanquantile(x, 0.5), np.nanquantile(x, 0.5)),
        "kthvalue": (lambda x: castwise.kthvalue(x, 2, 1), np.sort(x, 1)[:, 1]),
        "topk": (lambda x: castwise.topk(x, 2), -np.sort(-x)[:, :2]),
        "topk of columns": (lambda x: castwise.topk(x, 1, 0), x.max(0, keepdims=True)),
        "normalize": (lambda x: castwise.normalize(x, 1, -1), x / np.linalg.norm(x, 1, -1, keepdims=True)),
        "method": (lambda x: castwise.compile(lambda v: v.norm(1, -1))(x), np.linalg.norm(x, 1, -1)),
        "var": (lambda x: castwise.var(x, 0, correction=0), np.var(x, 0)),
        "std": (lambda x: castwise.std(x, (0, 1), correction=0), np.std(x)),
    }
    for name, (f, want) in cases.items():
        np.testing.assert_allclose(f(x), want, rtol=1e-6, err_msg=name)
    with pytest.raises(TypeError, match=r"norm\(x, p, dims\) takes at most 3"):
        castwise.norm(x, 1, 0, True)
    with pytest.raises(TypeError, match=r"normal\(x\) takes at most 1"):
        castwise.normal(x, 5, 2)


@pytest.mark.parametrize(
    ("f", "signature"),
    [
        (castwise.hypot, "hypot(x, y)"),
        (castwise.sum, "sum(x, dims, *, keepdim, dtype)"),
        (castwise.var, "var(x, dims, *, correction, keepdim, dtype)"),
        (castwise.topk, "topk(x, k, dims, *, largest, dtype)"),
        (castwise.cast, "cast(x, dtype)"),
        (castwise.softmax, "softmax(x, dims, *, dtype)"),
        (castwise.normalize, "normalize(x, p, dims, *, eps)"),
        (castwise.isclose, "isclose(x, y, *, rtol, atol, equal_nan)"),
        (castwise.normal, "normal(x, *, seed, stream, dtype)"),
        (castwise.randint, "randint(x, low, high, *, seed, stream, dtype)"),
        (castwise.blocks, "blocks(scale, like, size)"),
    ],
)
def test_help_shows_what_a_call_takes(f, signature):
    assert f.__doc__.splitlines()[0] == signature
    assert signature in repr(f)


def test_what_help_shows_is_taken():
    functions = [f for f in (getattr(castwise, name) for name in dir(castwise)) if type(f) is type(castwise.exp)]
    for f in functions:
        names = f.__doc__.splitlines()[0].partition("(")[2].rstrip(")").split(", ")
        for name in set(names) - {"*"}:
            # The value or another argument may be wrong, but the name is none that a call does not have.
            with pytest.raises(Exception) as refused:
                f(**{name: object()})
            assert "no argument" not in str(refused.value) and "panicked" not in str(refused.value), (f, name)
    assert len(functions) > 150


def test_functions_of_known_extents():
    p = castwise.Program("numpy")
    x = p.data("x", "f64", [2, 3, 4])
    p.fetch(a=np.reshape(x, (6, -1)), b=x[1], c=x[:, -1, 0], d=np.ravel(x), e=np.squeeze(x[:1]), f=np.sort(-x, axis=None), g=np.cumsum(x))
    got = castwise.compile(p)(X)
    wanted = {"a": X.reshape(6, -1), "b": X[1], "c": X[:, -1, 0], "d": X.ravel(), "e": X[:1].squeeze()}
    wanted |= {"f": np.sort(-X, axis=None), "g": np.cumsum(X)}
    for name, want in wanted.items():
        np.testing.assert_array_equal(got[name], want)
    assert (np.shape(x), np.ndim(x), x.ndim) == ((2, 3, 4), 3, 3)
    for index, error in [(5, IndexError), ((0, 0, 0, 0), IndexError), ("a", TypeError), (True, TypeError), (slice(None, None, 0), ValueError)]:
        with pytest.raises(error):
            x[index]
    assert x[..., ::-2].shape == (2, 3, 2)
    with pytest.raises(ValueError, match="only `\\[::-1\\]` goes backwards"):
        p.data("z", "f64", [None])[::-2]
    with pytest.raises(TypeError, match="known only when a call comes"):
        p.data("y", "f64", [None])[0]


def test_functions_without_a_meaning_say_so():
    x = castwise.Program("numpy").data("x", "f64", [3])
    for call, text in [
        (lambda: np.concatenate([x, x]), "joins"),
        (lambda: np.lexsort((x, x)), "elementwise"),
        (lambda: np.quantile(x, [0.1, 0.9]), "one `q`"),
        (lambda: np.quantile(x, 0.5, method="hazen"), "methods linear"),
        (lambda: np.dot(x, x), "matrices"),
        (lambda: np.allclose(x, 1), "no value"),
        (lambda: np.std(x, where=[True]), "no `where`"),
        (lambda: np.fft.fft(x), "no op"),
        (lambda: np.sum(x, out=np.zeros(())), "no `out`"),
        (lambda: np.where(x), "both values"),
        (lambda: np.round(x, 2), "integers only"),
        (lambda: np.reshape(x, 3, order="F"), "order C"),
        (lambda: x.__dlpack__(), "no elements"),
        (lambda: 1 in x, "no elements"),
        (lambda: list(x), "iterated"),
        (lambda: len(x), "no length"),
        (lambda: np.asarray(x), "no elements"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    for convert in (bool, int, float, complex, lambda v: [1, 2][v]):
        with pytest.raises(ValueError, match="no value"):
            convert(x)


def test_tables_for_notebooks():
    p = castwise.Program("torch")
    a, b = p.data("a", "bf16", ["n"]), p.data("<b>", "i64", ["n"])
    p.fetch(a * 0.5 + b)
    html = p._repr_html_()
    assert 'class="castwise-rounds"' in html and "&lt;b&gt;" in html and "<b>" not in html and "script" not in html
    assert p.to_svg().startswith("<svg") and p.to_svg() in html and "cast %1 to bf16" in html
    f = castwise.compile("a + b")
    assert "table" not in f._repr_html_()
    f(np.ones(2), np.ones(2, np.float32))
    assert 'class="castwise-exact"' in f._repr_html_() and "<table>" in castwise.compile(p)._repr_html_()
    wrong = castwise.Program("paddle")
    wrong.data("x", "i64", [3]) + wrong.data("y", "f32", [3])
    assert wrong._repr_html_().startswith("<pre>")
    with pytest.raises(castwise.ProgramError):
        wrong.to_svg()


def test_everything_public_pickles():
    own = castwise.Executor(threads=2, max_bytes=1 << 30, time_limit=60.0, pool=1 << 20)
    assert repr(pickle.loads(pickle.dumps(own))) == repr(own)
    f = pickle.loads(pickle.dumps(castwise.compile("(a - b) / 2", deny="wrap", executor=own)))
    assert f.executor.threads == 2 and f.executor.time_limit == 60.0
    with pytest.raises(castwise.ProgramError):
        f(np.ones(2, np.uint8), np.ones(2, np.uint8))
    assert pickle.loads(pickle.dumps(castwise.exp)).__name__ == "exp"
    for name in ("FeedError", "ShapeError", "LimitError", "OutOfMemory", "DivisionByZero", "InternalError", "EmptyReduction"):
        e = pickle.loads(pickle.dumps(getattr(castwise, name)("text")))
        assert type(e).__name__ == name and str(e) == "text"
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(castwise.Program("numpy").data("x", "f32", []))
