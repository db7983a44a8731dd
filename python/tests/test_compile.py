"""Expressions, functions, programs and their text; what they refuse; how they travel."""

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import castwise


def gelu(x):
    return 0.5 * x * (1 + castwise.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def test_eager_and_compiled_have_the_same_bits():
    x = np.random.default_rng(0).normal(size=10_000).astype(np.float16)
    inner = castwise.add(x, castwise.mul(0.044715, castwise.pow(x, 3)))
    eager = castwise.mul(castwise.mul(0.5, x), castwise.add(1, castwise.tanh(castwise.mul(0.7978845608, inner))))
    assert castwise.compile(gelu)(x).tobytes() == eager.tobytes()


def test_the_decorator_and_its_arguments():
    @castwise.compile(rules="torch")
    def f(a, b):
        return a + b

    assert f(np.ones(2, np.int64), np.ones(2, np.float32)).dtype == np.float32
    assert f.names == ["a", "b"]
    np.testing.assert_array_equal(f(b=np.float32([1]), a=np.int64([2])), [3])
    for call, text in [
        (lambda: f(np.ones(2)), "`b` is missing"),
        (lambda: f(1, 2, 3), "3 arguments for 2 names"),
        (lambda: f(np.ones(2), a=1), "`a` is given twice"),
        (lambda: f(np.ones(2), c=1), "no argument `c`"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()


def test_several_results():
    x = np.arange(6.0).reshape(2, 3)
    low, high = castwise.compile(lambda x: (castwise.amin(x), castwise.amax(x)))(x)
    assert (low, high) == (0, 5)
    named = castwise.compile(lambda x: {"sum": x.sum(dim=0), "mean": x.mean(dim=-1, keepdim=True)})(x)
    np.testing.assert_array_equal(named["sum"], x.sum(0))
    assert named["mean"].shape == (2, 1)
    outs = (np.zeros(()), np.zeros(()))
    castwise.compile(lambda x: (castwise.amin(x), castwise.amax(x)))(x, out=outs)
    assert outs[1] == 5


def test_programs_and_their_text():
    p = castwise.Program("torch")
    x, n = p.data("x", "bf16", ["n"]), p.data("n", np.int32, ["n"])
    p.fetch(double=x + x, scaled=n * 0.5)
    text = str(p)
    assert castwise.Program.parse(text).rules == "torch" and str(castwise.Program.parse(text)) == text
    result = castwise.compile(text)(np.ones(3, np.float32).astype("bfloat16"), np.int32([1, 2, 3]))
    assert list(result) == ["double", "scaled"] and result["scaled"].dtype == np.float32
    assert str(pickle.loads(pickle.dumps(p))) == text
    assert (x + 1).dtype == "bf16" and (x + 1).shape == (None,) and repr(x).startswith("<castwise.Var bf16[")
    assert p.data("k", "f64", [2, None]).shape == (2, None)


def test_weak_values_under_jax():
    p = castwise.Program("jax")
    scaled = p.data("n", "i32", [3]) * 2.5
    assert (scaled.dtype, scaled.weak) == ("f32", True)
    assert (scaled + p.data("h", "bf16", [3])).dtype == "bf16"
    assert castwise.result_type("i32", 2.5, rules="jax,x64") == "f64"


def test_all_mistakes_with_lines():
    p = castwise.Program("paddle")
    x, y = p.data("x", "i64", [3]), p.data("y", "f32", [3])
    first = sys._getframe().f_lineno + 1
    z = x + y
    z = z * castwise.logical_and(x, y)
    with pytest.raises(castwise.ProgramError) as e:
        p.check()
    found = e.value.diagnostics
    assert [(d.kind, d.file, d.line) for d in found][0] == ("PromotionRefused", __file__, first)
    assert 'rules="torch"' in found[0].help and isinstance(e.value, TypeError)
    again = pickle.loads(pickle.dumps(e.value))
    assert again.diagnostics == found and str(again) == str(e.value)


def test_expressions_name_their_parts():
    a, b = np.float32([3, 5]), np.float32([1, 2])
    f = castwise.compile("t = a - b; t * t")
    assert f.names == ["a", "b"] and f(a, b).tolist() == [4, 9]
    assert castwise.evaluate("t = a - b; u = t * 2; t + u").tolist() == [6, 9]
    assert castwise.NumExpr('"the part" = a + 1; clamp("the part" + e, min=0)').names == ["a", "e"]
    assert castwise.compile("pi = a + 1; pi * 2")(a).tolist() == [8, 12]
    assert "result f32" in castwise.explain("t = a - b; t * t", rules="torch", a="f32", b="bf16")
    for text, mistake in [("t = a; t = b; t", "assigned already"), ("u = t; t = a; t + u", "no input `t`")]:
        with pytest.raises(castwise.ProgramError, match=mistake):
            castwise.compile(text)


def test_carets_are_below_the_line_of_a_mistake():
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile("t = a;\n\"é\" + sqr(t)")
    assert str(e.value).splitlines()[1:3] == ['    "é" + sqr(t)', "          ^^^"]


def test_what_pytorch_and_numpy_users_write():
    x = np.float32([[-1, 2], [3, -4]])
    f = lambda x: (x.mean(-1), x.cumsum(0), x.amax((0, 1)), x.clamp(min=0), x.clamp(max=0), x.clamp(0), x.clip(-1, 1), x.to("f64"))  # noqa: E731
    want = (x.mean(-1), x.cumsum(0), x.max(), np.maximum(x, 0), np.minimum(x, 0), np.maximum(x, 0), x.clip(-1, 1), x.astype("f8"))
    for got, want in zip(castwise.compile(f, rules="torch")(x), want, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert castwise.mean(x, -1, keepdim=True).shape == castwise.mean(x, np.int64(1), keepdim=True).shape == (2, 1)
    assert castwise.clamp(x, None, 1).tolist() == [[-1, 1], [1, -4]]
    v = castwise.Program("torch").data("x", "f32", [2, 2])
    for call, text in [
        (lambda: v.mean(-1, dim=0), "twice"),
        (lambda: v.mean(-1, True), "at most 2"),
        (lambda: castwise.amax(x, np.array([0, 1])), "dims are integers, not a numpy.ndarray"),
        (lambda: castwise.amax(v, v), "dims are integers, not a castwise.Var"),
        (lambda: v.mean(True), "dims are integers, not a bool"),
        (lambda: v.mean((0, 1.0)), "dims are integers, not a float"),
        (lambda: v.clamp(), "3 operands"),
        (lambda: v.clamp(1, min=2), "twice"),
        (lambda: v.to("cuda"), "no dtype `cuda`"),
        (lambda: pow(v, 2, 5), "`pow` takes no modulus"),
        (lambda: pow(castwise.xp("numpy").ones(2), 2, 5), "`pow` takes no modulus"),
        (lambda: v.__rpow__(2, 5), "`pow` takes no modulus"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    assert (v**2).dtype == (2**v).dtype == "f32" and pow(v, 2, None).dtype == "f32"


def test_a_program_refuses_arrays_that_it_does_not_name():
    p = castwise.Program("torch")
    x = p.data("x", "bf16", [4])
    p.fetch(x * 0.7)
    given = np.ones(4, np.float32).astype("bfloat16")
    assert p.names == ["x"] and "random" not in castwise.explain(p, rules="torch", numeric=True, x=given)
    for numeric in (False, True):
        with pytest.raises(TypeError, match="no argument `y`; the names are x"):
            castwise.explain(p, rules="torch", numeric=numeric, y=given)
    with pytest.raises(TypeError, match="no argument `y`; the names are x"):
        castwise.compare(p, "torch", "numpy", y=given)
    for other in ("f32", 3.0, np.float32):
        with pytest.raises(TypeError, match="the program declares `x`: it takes an array"):
            castwise.explain(p, rules="torch", x=other)


def test_scalar_types_declare_dtypes():
    for dtype in (np.float32, np.dtype("f4"), "f32"):
        assert "result f32[?0]" in castwise.explain("a + 0.7", rules="torch", a=dtype)
        assert "random" in castwise.explain("a + 0.7", rules="torch", numeric=True, a=dtype)


def test_mistakes_in_expressions_have_carets():
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile("a + sqr(b)")
    assert str(e.value).splitlines()[1:3] == ["    a + sqr(b)", "        ^^^"]
    assert e.value.diagnostics[0].range == (4, 7)
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile('"é" + b', rules="paddle")(np.ones(2, np.int64), np.ones(2, np.float32))
    assert e.value.diagnostics[0].range == (0, 7)


@pytest.mark.parametrize(
    ("call", "error", "base"),
    [
        (lambda: castwise.compile("a // b", rules="torch")(np.ones(2, int), np.zeros(2, int)), "DivisionByZero", ZeroDivisionError),
        (lambda: castwise.compile("a + b")(np.ones(2), np.ones(3)), "ShapeError", ValueError),
        (lambda: castwise.compile(lambda x: x.amax())(np.ones(0)), "EmptyReduction", ValueError),
        (lambda: castwise.compile("a + 300")(np.ones(2, np.uint8)), "ProgramError", TypeError),
    ],
)
def test_errors_are_those_of_python_too(call, error, base):
    with pytest.raises(getattr(castwise, error)) as e:
        call()
    assert isinstance(e.value, base) and isinstance(e.value, castwise.Error)


def test_a_var_has_no_value():
    x = castwise.Program("numpy").data("x", "f32", [3])
    for wrong in (lambda: bool(x), lambda: len(x), lambda: list(x), lambda: np.asarray(x), lambda: x.no_such_op):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            wrong()
    with pytest.raises(TypeError, match="no `out`"):
        np.add(x, 1, out=np.zeros(3))
    with pytest.raises(TypeError, match="no op for numpy.spacing"):
        np.spacing(x)


def test_evaluate_takes_the_callers_variables():
    a, b = np.arange(4), np.float32([1, 2, 3, 4])
    np.testing.assert_array_equal(castwise.evaluate("a * b + 1"), a * b + 1)
    b = b * 2
    np.testing.assert_array_equal(castwise.re_evaluate(), a * b + 1)
    np.testing.assert_array_equal(castwise.evaluate("a + c", {"a": 1, "c": b}), b + 1)
    with pytest.raises(NameError, match="`nowhere`"):
        castwise.evaluate("a + nowhere")
    assert castwise.NumExpr("b - a")(b, a).tolist() == (b - a).tolist()


def test_compiled_objects_pickle():
    for f in (castwise.compile("a * 2 + b"), castwise.compile("a * 2", rules="jax,x64"), castwise.compile(gelu)):
        again = pickle.loads(pickle.dumps(f))
        assert again.names == f.names and repr(again) == repr(f)
        arguments = [np.ones(3)] * len(f.names)
        np.testing.assert_array_equal(again(*arguments), f(*arguments))


def square(x):
    return castwise.compile("x * x")(x)


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes(method):
    big = np.ones(1 << 20)
    square(big)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for r in pool.map(square, [big * i for i in range(4)]):
            assert r[0] == r[-1]


def test_threads_share_one_compiled_object():
    f, errors = castwise.compile("x * 2 + 1"), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            x = rng.integers(0, 9, rng.integers(0, 3000)).astype(rng.choice(["f4", "i2", "u1"]))
            if not np.array_equal(f(x), x * 2 + 1):
                errors.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.parametrize("into", [False, True])
def test_memory_stays_flat(stays_flat, into):
    f, x, out = castwise.compile("x * 2 + y"), np.ones(1000), np.zeros(1000) if into else None
    stays_flat(lambda: f(x, x, out=out))


def test_out_is_checked_in_every_call():
    f = castwise.compile(lambda x: (x + 1, x * 2))
    x = np.arange(6.0)
    a, b = np.zeros(6), np.zeros(6)
    for _ in range(2):
        f(x, out=(a, b))
        assert (a == x + 1).all() and (b == x * 2).all()
    both = np.zeros(6)
    with pytest.raises(ValueError, match="share elements"):
        f(x, out=(both, both))
    both.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(x, out=(a, both))
    with pytest.raises((TypeError, ValueError)):
        f(x, out=(a, np.zeros(5)))
    single = np.zeros(6, np.float32)
    f(x, out=(a, single))
    assert (single == x * 2).all()
    with pytest.raises((TypeError, ValueError)):
        f(x, out=(a, np.zeros(6, np.int64)))
    wide = np.zeros(12)
    made = f(x, out=(None, wide[::2]))
    assert (made[0] == x + 1).all() and (wide[::2] == x * 2).all() and not wide[1::2].any()
    f(x, out=(a, b))
    assert (a == x + 1).all() and (b == x * 2).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_signals_stop_a_run():
    script = """
import signal, numpy as np, castwise
x = np.ones(1 << 24)
f = castwise.compile("+".join(f"tan(sin(x) + {i})" for i in range(60)))
f(np.ones(4))
signal.setitimer(signal.ITIMER_REAL, 0.3)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    f(x)
except KeyboardInterrupt:
    print("interrupted")
print(f(np.ones(2)).shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "(2,)"], done.stderr


def test_fix():
    halves = {"a": "bf16[4096]", "b": "f16[4096]"}
    fixed = castwise.fix("0.7*a + 0.3*b", rules="torch", tolerance=1e-6, **halves)
    assert fixed == "0.7*cast(a, f32) + 0.3*cast(b, f32)"
    assert castwise.fix("0.7*a + 0.3*b", rules="torch", **halves) == fixed
    # On arrays: bands of bytes wrap, and what is found has the values of f64.
    red, nir = np.uint8([[10, 200, 7]]), np.uint8([[200, 10, 7]])
    fixed = castwise.fix("(nir - red) / (nir + red)", rules="torch", deny="wrap", nir=nir, red=red)
    got = castwise.compile(fixed, rules="torch")(**{n: v for n, v in (("nir", nir), ("red", red))})
    wide = (nir.astype(float) - red) / (nir.astype(float) + red)
    assert got.dtype == np.float32 and np.allclose(got, wide)
    # Several results, and a number.
    both = castwise.fix("low = w*a + b; high = a - b", rules="torch", tolerance=1e-6, w=0.7, **halves)
    assert "cast(a, f32)" in both and both.count("=") == 2
    with pytest.raises(castwise.ProgramError, match="rounds"):
        castwise.fix("a * 0.3", rules="torch", tolerance=1e-9, a="bf16")
    with pytest.raises(castwise.ProgramError, match="no input"):
        castwise.fix("a * b", rules="torch", a="bf16")
    with pytest.raises(ValueError, match="lossy"):
        castwise.fix("a * 0.3", rules="torch", deny="all", a="bf16")
    # Names that the expression has not, whatever they are; of several results every name is known.
    for more in ({"c": "f32"}, {"c": 3}, {"c": np.ones(3)}):
        with pytest.raises(TypeError, match="there is no argument `c`; the names are a, b, w"):
            castwise.fix("low = w*a + b; high = a - b", rules="torch", w=0.7, **halves, **more)
    with pytest.raises(TypeError, match="there is no argument `c`"):
        castwise.explain("a * 0.3", rules="torch", numeric=True, a="bf16", c="f32")
    program = castwise.Program("torch")
    program.fetch(program.data("a", "bf16", [4]) * 0.3)
    with pytest.raises(TypeError, match="there is no placeholder `c`; the names are a"):
        castwise._core.measured(program, {"c": np.ones(4)})


def test_explain_and_compare():
    text = castwise.explain("0.7*a + 0.3*b", rules="torch", a="bf16", b="f16")
    assert "mul rounds to bf16" in text and "add" in text
    assert castwise.compare("a + b", "torch", "numpy", a="i64", b="f32")[0][2] == {"torch": "f32", "numpy": "f64"}
    with pytest.raises(TypeError, match="dtype of `b` is missing"):
        castwise.explain("a + b", rules="torch", a="f32")
    assert castwise.promote_types(np.float32, "int64", rules="torch") == "f32"
    assert castwise.can_cast("f32", "f16") and not castwise.can_cast("f32", "i32")


def test_scalars_do_not_fill_the_memory():
    f, x = castwise.compile("x * s"), np.ones(3)
    for i in range(1000):
        assert f(x, float(i))[0] == i


def test_the_settings_of_rules_are_kept():
    p = castwise.Program("torch")
    p.fetch(p.data("n", "i32", ["k"]) * 0.5)
    wide = p.with_rules("jax,x64")
    assert wide.rules == "jax,x64" and wide.with_rules("jax").rules == "jax"
    assert castwise.compile(wide)(np.int32([1])).dtype == np.float64
    assert "result f64" in castwise.explain(p, rules="jax,x64") and "result f32" in castwise.explain(wide, rules="jax")
    for f, named in ((p, {}), (wide, {}), ("n * 0.5", {"n": "i32"})):
        found = castwise.compare(f, "jax", "jax,x64", **named)
        assert [outcomes for _, _, outcomes in found] == [{"jax": "f32", "jax,x64": "f64"}]
        assert "refused" not in found._repr_html_()


def test_weak_arrays_are_declared_as_such():
    weak = castwise.xp("jax").asarray([1], dtype="i32") * 2.5
    assert weak.weak and "result bf16[1]" in castwise.explain("a * w", rules="jax", a="bf16[1]", w=weak)
    p = castwise.Program("jax")
    w = p.data("w", "f32", weak=True)
    assert w.weak and (w * p.data("a", "bf16", [3])).dtype == "bf16"
    assert not castwise.Program("numpy").data("w", "f32", weak=True).weak


@pytest.mark.parametrize("rules", ["numpy", "torch", "jax"])
def test_pythons_types_are_dtypes_of_64_bits(rules):
    v = castwise.Program(rules).data("x", "f32", [2])
    for python, name in ((float, "f64"), (int, "i64"), (complex, "c128"), (bool, "bool")):
        assert v.to(python).dtype == castwise.cast(v, dtype=python).dtype == np.astype(v, python).dtype == name
        assert castwise.xp(rules).ones(2, dtype=python).dtype == name
        assert castwise.compile("x", rules=rules).result_type(python) == name
    assert np.mean(v, dtype=float).dtype == "f64" and castwise.promote_types(float, "f32", rules=rules) == "f64"


def scaled(x, factor=0.5, shift=None):
    return x * factor if shift is None else x * factor + shift


def test_parameters_that_a_call_leaves_out_have_their_defaults():
    f, x = castwise.compile(scaled), np.float32([1, 2])
    for _ in range(2):
        assert f(x).tolist() == [0.5, 1] and f(x, 2.0).tolist() == [2, 4] and f(x).dtype == np.float32
        assert f(x, shift=x).tolist() == [1.5, 3] and f(x, 1, x[:1]).tolist() == [2, 3]
    assert f.result_type(np.float16) == "f16" and f.result_type(np.int16, 3) == "i16"
    assert pickle.loads(pickle.dumps(f))(x).tolist() == [0.5, 1]
    assert "result f16" in castwise.explain(scaled, rules="torch", x="f16")
    assert castwise.compare(scaled, "torch", "numpy", x="i32")[0][2] == {"torch": "f32", "numpy": "f64"}
    weights = np.float32([10, 20])
    assert castwise.compile(lambda x, w=weights, /: x + w)(x).tolist() == [11, 22]
    with pytest.raises(TypeError, match="`x` is missing"):
        f(shift=x)
    with pytest.raises(TypeError, match="dtype of `x` is missing"):
        castwise.explain(scaled, rules="torch", shift="f32")


def test_compiled_objects_that_a_traced_function_calls():
    both = castwise.compile(lambda x, k=2.0: {"y": x * k, "z": x + 1})
    mean, pair = castwise.compile("mean(a) + pi", rules="numpy"), castwise.compile(lambda x: [x, -x])

    @castwise.compile
    def outer(x):
        found = both(x=x)
        negative = pair(found["y"])[1]
        return negative - mean(found["z"]), both(x, k=np.float32([1, 10]))["y"]

    x = np.float32([1, 2])
    first, second = outer(x)
    want = castwise.compile("-(x * 2.0) - (mean(x + 1) + pi)")(x)
    assert first.dtype == np.float32 and first.tobytes() == want.tobytes() and second.tolist() == [1, 20]
    assert both.stats["programs"] == mean.stats["programs"] == 0
    v = castwise.Program("torch").data("x", "f32", [2])
    assert both(v, 3)["y"].dtype == "f32" and castwise.compile("a + b")(v, 1j).dtype == "c64"
    p = castwise.Program("torch")
    p.fetch(p.data("x", "f32", [2]))
    for call, error, text in [
        (lambda: mean(v), castwise.ProgramError, 'rules are "torch", and this was compiled with rules="numpy"'),
        (lambda: castwise.compile(p)(v), castwise.ProgramError, "a compiled program takes arrays"),
        (lambda: both(v, out=x), TypeError, "takes no `out`"),
        (lambda: both(k=v), TypeError, "`x` is missing"),
        (lambda: castwise.compile(lambda x: 3)(v), TypeError, "the function returned a int"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_mistakes_of_an_expression_that_a_traced_function_calls_have_its_line():
    inner = castwise.compile("a + 300")

    def outer(x):
        return inner(x)

    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile(outer)(np.uint8([1]))
    found = e.value.diagnostics[0]
    assert (found.file, found.line, found.range) == (__file__, outer.__code__.co_firstlineno + 1, None)


def test_numbers_for_the_0_d_placeholders_of_a_program():
    p = castwise.Program("torch")
    k, x, n = p.data("k", "f16"), p.data("x", "f32", [None]), p.data("n", "u8")
    p.fetch(x * k, n + 1)
    f, x = castwise.compile(p), np.float32([1, 2])
    for k, n in ((2.5, 7), (0.1, 255), (3, True)):
        for got, want in zip(f(k, x, n), f(np.float16(k), x, np.uint8(n)), strict=True):
            assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    assert f.stats["programs"] == 1
    for k, given, n, text in [
        (2.5, x, 300, "`n`: is the number 300, the program declares u8, which holds 0 to 255"),
        (2.5, x, -1, "which holds 0 to 255"),
        (2.5, x, 1.0, "`n`: is the number 1.0, the program declares u8"),
        (1j, x, 1, "`k`: is the number .*, the program declares f16"),
        (2.5, 1.0, 1, "`x`: is f32.., the program declares f32.+"),
    ]:
        with pytest.raises(castwise.FeedError, match=text):
            f(k, given, n)
    alone = castwise.Program("numpy")
    alone.fetch(alone.data("x", "f64") * 2)
    assert castwise.compile(alone)(1).tolist() == 2.0 and castwise.compile(str(alone))(x=1.5).dtype == np.float64


def test_mistakes_of_a_compiled_program_have_lines():
    p = castwise.Program("paddle")
    x, y = p.data("x", "i64", [3]), p.data("y", "f32", [3])
    line = sys._getframe().f_lineno + 1
    p.fetch(x + y)
    with pytest.raises(castwise.ProgramError) as e:
        castwise.compile(p)(np.ones(3, np.int64), np.ones(3, np.float32))
    assert [(d.file, d.line) for d in e.value.diagnostics] == [(__file__, line)]
    late = castwise.compile(p.with_rules("torch"))
    p.fetch(x)
    assert late(np.ones(3, np.int64), np.ones(3, np.float32)).dtype == np.float32


@castwise.compile
def doubled(x, k=2):
    return x * k


class Holder:
    @castwise.compile(rules="torch")
    def halved(x):
        return x / 2


def test_decorated_functions_pickle_by_name():
    for f in (doubled, Holder.halved):
        assert pickle.loads(pickle.dumps(f)) is f
    other = castwise.compile(gelu)
    assert pickle.loads(pickle.dumps(other)) is not other

    @castwise.compile
    def local(x):
        return x

    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(local)
    script = "import pickle, castwise\n@castwise.compile\ndef f(x): return x\nprint(pickle.loads(pickle.dumps(f)) is f)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True"], done.stderr
